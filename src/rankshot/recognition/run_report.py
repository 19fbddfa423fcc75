"""The report of a run, and why its inputs were assigned their classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import InputError, quote_names, suggest_name
from rankshot.pages.images import Outcomes
from rankshot.pages.report import Report, build_report, write_lead
from rankshot.recognition.run_folder import Run
from rankshot.zeroshot.class_rankings import only_new
from rankshot.zeroshot.explanation import Explanation, explain
from rankshot.zeroshot.files.predictions import read_predictions, read_truth
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.paper.probabilistic_ranking import ProbabilisticRanking

TITLE = "Predictions of new classes"


def report_run(run: Run, truth: str | Path | None = None, *, title: str = TITLE) -> Report:
    """Collect the report of a run, which `render_report` turns into a page.

    Parameters
    ----------
    run : Run
        From `open_run`.
    truth : str or Path, optional
        A table of the true classes, with the columns id and label. Inputs without a label are left
        out.
    title : str
        The heading.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> from rankshot.recognition.run_report import report_run
    >>> scores = rs.Scores([[4.0, 0.5]], ["bus", "leopard"])
    >>> found = rs.recognise(scores, {"cat": ["leopard"], "truck": ["bus"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(folder + "/run")
    ...     page = report_run(rs.recognition.open_run(folder + "/run"))
    >>> page.overview.counts
    {'truck': 1, 'cat': 0}
    """
    ids, classes = [str(name) for name in run.ids], [str(name) for name in run.head.classes_]
    rows, labels = np.arange(len(ids)), None
    if truth is not None:
        labels = read_truth(truth, ids, partial=True).astype(str)
        # Inputs that the head was fitted to do not test it.
        fitted = [name in run.labelled for name in ids]
        rows = np.flatnonzero((labels != "") & ~np.array(fitted, bool))
        labels = labels[rows]
        if unknown := sorted({*labels.tolist()} - {*classes}):
            rule = f"is not one of the predicted classes{suggest_name(unknown[0], classes)}"
            raise InputError("truth", unknown[0], rule, where=str(truth))
    outcomes = Outcomes(
        [ids[row] for row in rows], run.labels[rows], run.proba[rows], labels, classes
    )
    known = run.knowledge
    scores: Any = known.batch
    rankings = only_new(known.rankings)
    used = rankings[np.isin(rankings.targets.astype(str), classes)]
    k = min(run.settings.k or used.n_items, used.n_items)
    consensus = ProbabilisticRanking(k=k, posterior="consensus").fit(used.top(k)).consensus_
    # With seen classes among the predicted ones, the contributions are those of new classes only.
    is_new = isinstance(run.head, LinearHead)

    images, notes = _find_images(run, outcomes)
    predicted = (run.forecast or {}).get("predicted")
    settings = [(key, str(value)) for key, value in run.model.items() if key != "takes"]
    return build_report(
        title,
        outcomes,
        head=run.head if is_new else None,
        scores=scores[rows] if is_new else None,
        images=images,
        rankings=used,
        consensus=consensus,
        n_places=k,
        forecast=None if predicted is None else Interval(*predicted),
        lead=write_lead(
            with_examples=known.examples is not None, with_evidence=scores.evidence is not None
        ),
        kind="new" if is_new else "seen and new",
        settings=(
            ("run", run.folder.resolve().name),
            *settings,
            ("places of each ranking", str(k)),
        ),
        notes=(*run.notes, *notes),
    )


def report_predictions(path: Path, truth: str | Path | None = None) -> Report:
    """Collect the report of a file of predictions.

    Parameters
    ----------
    path : Path
        Predictions (.csv, .parquet).
    truth : str or Path, optional
        As for `report_run`.
    """
    predicted = read_predictions(path)
    ids = [str(name) for name in predicted.ids]
    labels = None if truth is None else read_truth(truth, ids).astype(str)
    outcomes = Outcomes(
        ids, predicted.labels.astype(str), predicted.proba, labels, predicted.targets
    )
    return build_report(TITLE, outcomes, lead=write_lead())


def explain_run(
    run: Run, ids: Sequence[str], *, target: str | None = None, against: str | None = None
) -> dict[str, Explanation]:
    """Explain the predictions of some inputs of a run, by their ids.

    Parameters
    ----------
    run : Run
    ids : sequence of str
        The ids of the inputs.
    target, against : str, optional
        The class to explain, and the one to compare it with; see `explain`.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> scores = rs.Scores([[4.0, 0.5]], ["bus", "leopard"])
    >>> found = rs.recognise(scores, {"cat": ["leopard"], "truck": ["bus"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found.save(folder + "/run")
    ...     run = rs.recognition.open_run(folder + "/run")
    >>> rs.recognition.explain_run(run, ["0"])["0"].target
    'truck'
    """
    row_of = {str(name): row for row, name in enumerate(run.ids)}
    if missing := [name for name in ids if name not in row_of]:
        rule = f"is not one of the inputs{suggest_name(missing[0], row_of)}"
        hint = f"the first are {quote_names(list(row_of)[:3])}"
        raise InputError("ids", missing[0], rule, hint=hint)
    scores: Any = run.knowledge.batch
    rows = [row_of[name] for name in ids]
    found = explain(run.head, scores[rows], target=target, against=against)
    return dict(zip(ids, found, strict=True))


def _find_images(run: Run, outcomes: Outcomes) -> tuple[dict[int, Any], list[str]]:
    """The files of inputs that are images, by row, if they are still there."""
    inputs = run.read_inputs() if run.model.get("takes") == "images" else {}
    values = {row: inputs[name][0] for row, name in enumerate(outcomes.ids) if name in inputs}
    there = {row: file for row, file in values.items() if Path(file).is_file()}
    gone = "The images are no longer where the run found them."
    return there, [gone] if values and not there else []

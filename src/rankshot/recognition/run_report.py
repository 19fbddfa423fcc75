"""The report of a run, why its inputs were assigned their classes, and what would help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from rankshot import pages
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    count_others,
    format_count,
    format_share,
    quote_names,
    suggest_name,
)
from rankshot.pages.images import Outcomes
from rankshot.pages.report import LEAD, Report, build_report
from rankshot.ranking.rankings import Rankings
from rankshot.recognition.recognition import rehearse_known
from rankshot.recognition.run_folder import Run, open_run
from rankshot.recognition.scoring import check_scores
from rankshot.zeroshot.class_rankings import only_new
from rankshot.zeroshot.explanation import Explanation, explain
from rankshot.zeroshot.forecast import Forecast
from rankshot.zeroshot.joint_head import load_head
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.paper.ranking_methods import ProbabilisticRanking
from rankshot.zeroshot.scores import Scores, count_predictions, standardize_rows
from rankshot.zeroshot.tables import read_predictions, read_truth

TITLE = "Predictions of new classes"
SHOWN = 5
"""Pairs of classes, and seen classes to collect inputs of."""
MOST_INPUTS = 2_000
"""Of more inputs, some are taken evenly: the examination takes a minute at most."""
LEAST_COVERAGE = 0.5
MAX_PLACES = 10
Step = tuple[str, list[object]]
"""What would help, and the words of the command."""


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
            rule += count_others(unknown)
            raise InputError("truth", unknown[0], rule, where=str(truth))
    outcomes = Outcomes(
        [ids[row] for row in rows], run.labels[rows], run.proba[rows], labels, classes
    )
    known = run.knowledge
    scores: Any = known.batch
    rankings = only_new(known.rankings)
    used = rankings[np.isin(rankings.targets.astype(str), classes)]
    k = min(run.settings.k or used.n_items, used.n_items)
    # With seen classes among the predicted ones, the contributions are those of new classes only.
    is_new = isinstance(run.head, LinearHead)

    images, notes = _find_images(run, outcomes)
    settings = [(key, str(value)) for key, value in run.model.items() if key != "takes"]
    return build_report(
        title,
        outcomes,
        head=run.head if is_new else None,
        scores=scores[rows] if is_new else None,
        images=images,
        rankings=used,
        consensus=_merge(used, k),
        n_places=k,
        forecast=run.predicted,
        lead=LEAD,
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
    return build_report(TITLE, outcomes, lead=LEAD)


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
        rule = f"is not one of the inputs{suggest_name(missing[0], row_of)}{count_others(missing)}"
        hint = f"the first are {quote_names(list(row_of)[:3])}"
        raise InputError("ids", missing[0], rule, hint=hint)
    scores: Any = run.knowledge.batch
    rows = [row_of[name] for name in ids]
    found = explain(run.head, scores[rows], target=target, against=against)
    return dict(zip(ids, found, strict=True))


def _find_images(run: Run, outcomes: Outcomes) -> tuple[dict[int, Any], list[str]]:
    """The files of inputs that are images, by row, if they are still there."""
    inputs = run.read_inputs() if run.model.get("takes") == "images" else {}
    values = {row: inputs[name] for row, name in enumerate(outcomes.ids) if name in inputs}
    there = {row: file for row, file in values.items() if Path(file).is_file()}
    gone = "The images are no longer where the run found them."
    return there, [gone] if values and not there else []


# ---- What would help


def examine_run(folder: Path) -> tuple[list[str], list[Step]]:
    """Lines that say what is known of a run, and the next steps, the most useful first.

    Parameters
    ----------
    folder : Path
        The folder of a run.
    """
    run = open_run(folder)
    batch = run.knowledge.batch
    assert batch is not None  # noqa: S101 (a run always has scores)
    rows = np.linspace(0, len(batch) - 1, min(len(batch), MOST_INPUTS)).round().astype(int)
    again: list[object] = ["recognise", "INPUTS", "--folder", folder]
    lines, steps = _examine_network(run, batch[rows], again)
    new = only_new(run.knowledge.rankings)
    pairs = {*zip(new.sources, new.targets, strict=True)}
    ranked = Counter(sorted(source or "no source" for source, _ in pairs))
    classes = format_count(len(new.target_names), "new class")
    lines.append(f"rankings (random guessing: {format_share(1 / len(new.target_names))})")
    lines += [f"  {source}: ranks {n} of {classes}" for source, n in ranked.items()]
    if not new.rater_names:
        text = "answers from a language model: so far, all rankings come from tables"
        steps.append((text, ["rank", "--seen", "SEEN", "--new", "NAMES", "--prompts", "prompts"]))
    k = min(MAX_PLACES, new.n_items)
    alike = pages.find_similar_classes(_merge(new, k), k)[:SHOWN]
    lines.append("most similar new classes (distance; 0 = identical)")
    lines += [f"  {a} and {b}: {format_share(far)}" for a, b, far in alike] or ["  none"]
    steps.append(("labels for the inputs that the page shows first", ["review", folder]))
    more, lacking = _examine_reference(run)
    lines += more
    if lacking:
        text = f"a reference: labelled inputs of seen classes; begin with {quote_names(lacking)}"
        steps.append((text, [*again, "--reference", "SEEN"]))
    return lines, steps


def rehearse_run(folder: Path) -> Forecast:
    """Hold out seen classes of a run once more, to choose settings and forecast the accuracy."""
    run = open_run(folder)
    notes: list[str] = []
    forecast = rehearse_known(run.knowledge, run.settings, notes)
    if forecast is None:
        raise InputError("reference", NO_VALUE, "is not enough", hint="; ".join(notes))
    return forecast


def describe_head(path: Path) -> list[str]:
    """Lines that say what a saved head contains, and how it came about."""
    head = load_head(path)
    lines = [
        repr(head),
        f"classes: {quote_names(head.classes_.tolist(), 20)}",
        f"seen classes: {quote_names(head.inner.seen, 20)}",
    ]
    return [*lines, *(f"{name}: {value}" for name, value in head.inner.about.items())]


def _examine_network(run: Run, inputs: Scores, again: list[object]) -> tuple[list[str], list[Step]]:
    """What the model says, how accurate it is, and what is doubtful."""
    check = check_scores(inputs)
    lines = [*(f"{name}: {value}" for name, value in run.model.items() if value)]
    lines += check.describe()
    doubts = [*check.doubts]
    scores, labels = run.knowledge.reference or (None, None)
    if scores is not None and labels is not None:
        check = check_scores(scores, labels)
        lines += check.describe()[1:]
        doubts += [doubt for doubt in check.doubts if doubt not in doubts]
    fix = [*again, "--preprocessing", "NAME"]
    return ["model", *(f"  {line}" for line in lines)], [(doubt, fix) for doubt in doubts]


def _merge(rankings: Rankings, k: int) -> Rankings:
    """The consensus of the rankings of each new class."""
    method = ProbabilisticRanking(k=k, posterior="consensus").fit(rankings.top(k))
    return cast("Rankings", method.consensus_)


def _examine_reference(run: Run) -> tuple[list[str], list[str]]:
    """What the reference covers, and the seen classes that it lacks."""
    scores = None if run.knowledge.reference is None else run.knowledge.reference[0]
    head = run.knowledge.fit_alone(run.settings)
    weight = head.weights_.sum(axis=0)
    text = "none: which scores are high for every input is not known"
    if scores is not None:
        n_classes = np.count_nonzero(count_predictions(standardize_rows(scores.values)))
        of = f"{n_classes:,} of the {len(scores.items):,} seen classes"
        text = f"{len(scores):,} inputs, which the model assigns to {of}"
    lines = ["reference", f"  {text}"]
    if float(weight @ head.coverage_ / weight.sum()) >= LEAST_COVERAGE:
        return lines, []
    order = np.argsort(-weight * (1 - head.coverage_), kind="stable")[:SHOWN]
    return lines, [run.knowledge.seen[i] for i in order]

"""The report of a run, or of a file of predictions; and explanations of some of its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot import pages
from rankshot.core.errors import InputError, format_count, prefix_errors, quote_names
from rankshot.recognition.run_folder import MANIFEST, Run, find_input_folder, open_run
from rankshot.zeroshot.class_rankings import only_new
from rankshot.zeroshot.explanation import Explanation, explain
from rankshot.zeroshot.files.predictions import read_predictions, read_truth
from rankshot.zeroshot.linear_head import LinearHead
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.paper import ProbabilisticRanking
from rankshot.zeroshot.scores import Scores

TITLE = "Predictions of new classes"
MAX_PLACES = 10
"""The largest number of places that distances between rankings compare."""


def build_run_report(
    source: Path, truth: Path | None = None, images: Path | None = None
) -> pages.Report:
    """What a page shows of a run, or of a file of predictions.

    Parameters
    ----------
    source : Path
        The folder of a run, or predictions (.csv, .parquet).
    truth : Path, optional
        The classes of all or some inputs.
    images : Path, optional
        A folder of the input images; by default where the run read them.
    """
    run = open_run(source) if (source / MANIFEST).is_file() else None
    if run is None:
        predicted = read_predictions(source)
        ids = [str(name) for name in predicted.ids]
        outcomes = pages.Outcomes(
            ids, predicted.labels.astype(str), predicted.proba, None, predicted.targets
        )
    else:
        ids = [str(name) for name in run.ids]
        classes = run.head.classes_.tolist()
        outcomes = pages.Outcomes(ids, run.labels, run.proba, None, classes)
    rows: NDArray[np.intp] = np.arange(len(ids))
    lead = ""
    if truth is not None:
        learned = () if run is None else run.example_ids
        rows, labels, lead = _read_labels(truth, outcomes, learned)
        outcomes = pages.Outcomes(
            [ids[row] for row in rows],
            outcomes.predicted[rows],
            outcomes.proba[rows],
            labels,
            outcomes.classes,
        )
    more = {} if run is None else _describe_run(run, rows, images)
    if images is not None:
        more["images"] = images
    with prefix_errors(source):
        return pages.build_report(TITLE, outcomes, lead=lead, **more)


def explain_run(
    source: Path, ids: Sequence[str], *, target: str | None = None, against: str | None = None
) -> dict[str, Explanation]:
    """Explanations of some inputs of a run, by their ids."""
    run = open_run(source)
    row_of = {str(name): row for row, name in enumerate(run.ids)}
    for name in ids:
        if name not in row_of:
            hint = f"the first ids are {quote_names(list(row_of)[:3])}"
            raise InputError("id", name, "is not the id of an input", hint=hint)
    rows = np.array([row_of[name] for name in ids])
    scores = _scores(run)[rows]
    return dict(zip(ids, explain(run.head, scores, target=target, against=against), strict=True))


def _scores(run: Run) -> Scores:
    """Scores of the inputs of a run."""
    scores = run.knowledge.batch
    assert scores is not None  # noqa: S101 (a run always has them)
    return scores


def _describe_run(run: Run, rows: NDArray[np.intp], images: Path | None) -> dict[str, Any]:
    """Rankings, explanations, images and settings that a run adds to a report."""
    rankings = only_new(run.knowledge.rankings)
    k = min(run.settings.k or rankings.n_items, rankings.n_items)
    consensus = ProbabilisticRanking(k=k, posterior="consensus").fit(rankings.top(k)).consensus_
    # Classes that have examples alone have no ranking to show.
    ranked = {*rankings.target_names}
    kind = "new" if ranked >= {*run.head.classes_.tolist()} else "seen and new"
    more: dict[str, Any] = {"kind": kind, "n_places": min(k, MAX_PLACES)}
    more |= {"rankings": rankings, "consensus": consensus}
    settings = [("places of each ranking", f"the first {k}")]
    settings += [(name, str(value)) for name, value in run.model.items() if value]
    more["settings"] = tuple(settings)
    more["notes"] = run.notes
    if run.forecast and run.forecast.get("predicted"):
        more["forecast"] = Interval(*run.forecast["predicted"])
    if isinstance(run.head, LinearHead):
        scores = _scores(run)

        def find_scores(wanted: Collection[int]) -> Iterator[tuple[int, Scores]]:
            for row in wanted:
                yield row, scores[[int(rows[row])]]

        more |= {"head": run.head, "find_scores": find_scores}
    if images is None and (folder := find_input_folder(run)) is not None:
        more["images"] = folder
    return more


def _read_labels(
    path: Path, outcomes: pages.Outcomes, learned: Collection[str]
) -> tuple[NDArray[np.intp], NDArray[np.str_], str]:
    """Rows with labels that the head was not fitted to, the labels, and a remark on the others."""
    labels = read_truth(path, outcomes.ids, partial=True).astype(str)
    is_example = np.array([name in learned for name in outcomes.ids])
    rows = np.flatnonzero((labels != "") & ~is_example)
    if not len(rows):
        raise InputError("truth", str(path), "has labels of examples only, which cannot test")
    classes = list(outcomes.classes)
    for row in rows[~np.isin(labels[rows], classes)]:
        rule = f"is not one of the predicted classes: {quote_names(classes)}"
        raise InputError("truth", labels[row], rule, where=f"{path}, {outcomes.ids[row]}")
    remark = ""
    if used := int((is_example & (labels != "")).sum()):
        remark = f"Examples do not count as test inputs: {format_count(used, 'example')} left out."
    return rows, labels[rows], remark

"""A report of predictions: what is known about them, and its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import format_count
from rankshot.pages.explanations import (
    ShownInput,
    format_alternatives,
    format_contributions,
    show_inputs,
)
from rankshot.pages.images import Outcomes
from rankshot.pages.page import Card, format_percent, render_page
from rankshot.pages.predictions import (
    Evaluation,
    PredictionOverview,
    count_predictions,
    evaluate_predictions,
    format_classes,
    format_confusions,
    list_cards,
    suggest_step,
    write_headline,
)
from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import TargetSummary, summarize_target
from rankshot.zeroshot.linear_head import Predictor
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scores import Scores

SUMMARIES_SHOWN, SIMILAR_SHOWN = 40, 10
"""Classes whose consensus is shown, and pairs of similar classes."""
MAX_PLACES = 10
"""Places of rankings that are compared, unless fewer are used."""
MAX_COMPARED = 1000
"""Classes of which every pair is compared."""
SimilarPair = tuple[str, str, float]


LEAD = (
    "The classifier was not trained on the new classes. It knows them by rankings of the classes "
    "that it was trained on, the seen classes, and by examples if there are any."
)
"""How the classifier knows the new classes."""


@dataclass(frozen=True)
class Report:
    """Everything that a page shows. Sections that are None or empty are left out.

    Attributes
    ----------
    title, lead : str
        The heading, and one or two sentences about the subject of the page.
    kind : str
        Which classes could be predicted: ``"new"``, ``"seen and new"``.
    forecast : Interval, optional
        The accuracy that a rehearsal predicted.
    cards : tuple of Card
        Facts at the top, before those that follow from the predictions.
    evaluation : Evaluation, optional
    overview : PredictionOverview, optional
        Instead of an evaluation, if the true classes are not known.
    inputs : tuple of ShownInput
        Some inputs, with their images, and why they got their classes.
    consensuses : tuple of TargetSummary
    similar : tuple of (str, str, float)
        The most similar new classes, and the distance between their rankings.
    comparison : mapping
        The accuracy of each method with each source, as an interval.
    settings : tuple of (str, str)
        Names and values at the end: files, the network, the date.
    notes : tuple of str
        Remarks at the end.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.pages import Report
    >>> votes = rs.Rankings.from_orders(
    ...     [["lion", "fox"], ["lion", "bus"]], items=["bus", "fox", "lion"], targets="cat")
    >>> Report("My classes", consensuses=tuple(rs.ranking.summarize(votes))).consensuses[0].target
    'cat'
    """

    title: str
    lead: str = ""
    kind: str = "new"
    forecast: Interval | None = None
    cards: tuple[Card, ...] = ()
    evaluation: Evaluation | None = None
    overview: PredictionOverview | None = None
    inputs: tuple[ShownInput, ...] = ()
    consensuses: tuple[TargetSummary, ...] = ()
    similar: tuple[SimilarPair, ...] = ()
    comparison: Mapping[str, Mapping[str, Interval]] | None = None
    settings: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def build_report(
    title: str,
    outcomes: Outcomes,
    *,
    head: Predictor | None = None,
    scores: Scores | None = None,
    images: Mapping[int, Path | NDArray[np.uint8]] | None = None,
    rankings: Rankings | None = None,
    consensus: Rankings | None = None,
    n_places: int = MAX_PLACES,
    cards: Sequence[Card] = (),
    notes: Sequence[str] = (),
    **values: Any,
) -> Report:
    """Collect what a page shows of predictions.

    Parameters
    ----------
    title : str
        The heading.
    outcomes : Outcomes
        The predictions, and the true classes if they are known.
    head, scores : optional
        The head that made the predictions, and the scores of all inputs: some predictions are
        explained.
    images : mapping, optional
        By row, the file or the pixels of an image.
    rankings, consensus : Rankings, optional
        Rankings of the classes, and one ranking per class that they agree on.
    n_places : int
        How many places of them are compared.
    cards, notes, **values
        Attributes of the `Report`: its lead, kind, cards, settings and notes.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.pages import Outcomes, build_report
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4]])
    >>> found = Outcomes(["a", "b"], np.array(["cat", "cat"]), proba, None, ["cat", "dog"])
    >>> build_report("Cats and dogs", found).overview.counts
    {'cat': 2, 'dog': 0}
    """
    if outcomes.truth is None:
        values["overview"] = count_predictions(outcomes)
        detail = "their confidence is included"
    else:
        values["evaluation"] = evaluate_predictions(outcomes)
        detail = "counted as wrong, but not in the confusion matrix"
    if n_rejected := int(outcomes.rejected.sum()):
        cards = (*cards, Card("Rejected", f"{n_rejected:,}", detail))
    if rankings is not None and consensus is not None:
        k = min(n_places, consensus.n_items)
        values["consensuses"] = tuple(
            summarize_target(target, theirs, consensus.select(target=target), k)
            for target, theirs in rankings.by_target().items()
        )
        values["similar"] = find_similar_classes(consensus, k)
    inputs, unreadable = show_inputs(outcomes, images or {}, head, scores)
    notes = (*notes, *unreadable)
    return Report(title, cards=tuple(cards), notes=notes, inputs=inputs, **values)


def render_report(report: Report) -> str:
    """Return a report as an HTML page: one file, no script, nothing loaded from elsewhere.

    Needs Jinja2.

    Parameters
    ----------
    report : Report

    Examples
    --------
    >>> from rankshot.pages import Report, render_report
    >>> page = render_report(Report("Cats & dogs", notes=("A remark.",)))
    >>> "<h1>Cats &amp; dogs</h1>" in page, "A remark." in page
    (True, True)
    """
    evaluation, overview = report.evaluation, report.overview
    result = evaluation or overview
    # Results come first; how they came about is folded.
    sections = {
        "images": [one for one in report.inputs if one.thumbnail],
        "predictions": overview,
        "confusions": evaluation and format_confusions(evaluation),
        "classes": evaluation and format_classes(evaluation),
        "calibration": evaluation and evaluation.calibration,
        "explanations": [
            (one, format_contributions(one.why), format_alternatives(one.why))
            for one in report.inputs
            if one.why
        ],
        "similar_classes": [
            (a, b, 1 - far, format_percent(1 - far)) for a, b, far in report.similar
        ],
        "consensus": report.consensuses[:SUMMARIES_SHOWN],
        "comparison": report.comparison,
        "about_this_report": report.settings or report.notes,
    }
    sections = {key: content for key, content in sections.items() if content}
    folds = {
        "consensus": format_count(len(report.consensuses), "class"),
        "comparison": format_count(len(report.comparison or ()), "method"),
    }
    return render_page(
        "report.html",
        title=report.title,
        report=report,
        contents=[(key, key.replace("_", " ").capitalize()) for key in sections],
        folds=folds,
        headline=result and write_headline(result, report.kind, report.forecast),
        cards=[*report.cards, *(list_cards(result) if result else [])],
        step=suggest_step(result) if result else "",
        **sections,
    )


# ---- Rankings of the classes


def find_similar_classes(consensus: Rankings, k: int) -> tuple[SimilarPair, ...]:
    """Find the pairs of targets with the smallest distances between the first k places.

    Pairs that have nothing in common are left out. With more than 1,000 targets, only the first
    1,000 are compared.

    Parameters
    ----------
    consensus : Rankings
        One ranking per target.
    k : int
        How many places are compared.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.pages import find_similar_classes
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "cat", "fox"]],
    ...     targets=["dog", "wolf", "car"])
    >>> [(*names, round(distance, 2)) for *names, distance in find_similar_classes(rankings, k=3)]
    [('dog', 'wolf', 0.33), ('car', 'wolf', 0.67)]
    """
    compared = consensus[:MAX_COMPARED]
    names = [str(name) for name in compared.targets]
    distance = compare_common_items(compared, k=k)
    # The order inside a tie is unknown, so a ranking with ties has a distance from itself.
    own = distance.diagonal()
    excess = np.maximum(distance - (own[:, None] + own) / 2, 0.0)
    # At distance 1, two classes have nothing in common.
    pairs = np.argwhere(np.triu(distance < 1, 1)).tolist()
    found = [
        (float(excess[i, j]), min(names[i], names[j]), max(names[i], names[j])) for i, j in pairs
    ]
    return tuple((a, b, far) for far, a, b in sorted(found)[:SIMILAR_SHOWN])

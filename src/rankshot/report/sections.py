"""The contents of a report as its template needs them, section by section.

The template does no arithmetic: all texts and lengths of bars are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.result_tables import Comparison, ComparisonRow
from rankshot.ranking.concordance import TargetSummary
from rankshot.report.charts import (
    MAX_POINTS,
    PlotLine,
    draw_intervals,
    draw_map,
    draw_reliability,
    find_largest_groups,
)
from rankshot.report.contents import ClassMap, Evaluation, ExplainedInput
from rankshot.report.svg import Html, fit_axis
from rankshot.report.texts import (
    MISSING,
    Bar,
    format_column,
    format_number,
    format_percent,
    make_bars,
)
from rankshot.zeroshot.metrics import format_share

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
MAX_CLASSES = 40
"""A larger matrix is replaced by a list of this length."""
MAX_SUMMARIES = 40
MAX_EXPLANATIONS = 24
MAX_PLACES = 12
MAX_SOURCES = 10
MAX_CONTRIBUTIONS = 12
MAX_ALTERNATIVES = 8
HEAT_STEPS = 9
"""Colours of a heat table in the style sheet, besides the empty one."""


# ---- Comparison


class ComparisonCell(NamedTuple):
    """One cell of a comparison, as texts."""

    estimate: str
    interval: str
    best_of_method: bool
    best_of_all: bool


def format_comparison(comparison: Comparison) -> dict[str, Any]:
    """Return the rows by method, with the best of them marked, and their plot."""
    methods: dict[str, list[ComparisonRow]] = {}
    for row in comparison.rows:
        methods.setdefault(row.method, []).append(row)
    bests = {method: _best_estimate(rows) for method, rows in methods.items()}
    best = max(bests.values(), default=-math.inf)
    tables = {
        method: [(row.source, _format_cells(row, bests[method], best)) for row in rows]
        for method, rows in methods.items()
    }
    lines = []
    for method, rows in methods.items():
        lines.append(PlotLine(method))
        lines += [PlotLine(row.source, row.cells, method) for row in rows]
    cells = [cell for row in comparison.rows for cell in row.cells if cell is not None]
    plot = Html()
    if cells:
        axis = fit_axis([value for cell in cells for value in cell])
        title = (
            f"Accuracy with interval of the {len(comparison.rows)} rows of the table, from "
            f"{format_share(axis.low)} on the left to {format_share(axis.high)} on the right"
        )
        plot = draw_intervals(lines, comparison.classifiers, axis, title)
    return {
        "classifiers": comparison.classifiers,
        "caption": comparison.caption,
        "methods": tables,
        "lines": lines,
        "plot": plot,
        "some_missing": any(cell is None for row in comparison.rows for cell in row.cells),
    }


def _best_estimate(rows: Sequence[ComparisonRow]) -> float:
    estimates = [cell.estimate for row in rows for cell in row.cells if cell is not None]
    return max(estimates, default=-math.inf)


def _format_cells(
    row: ComparisonRow, best_of_method: float, best_of_all: float
) -> list[ComparisonCell | None]:
    return [
        None
        if cell is None
        else ComparisonCell(
            format_share(cell.estimate),
            f"{format_share(cell.low)}–{format_share(cell.high)}",
            cell.estimate == best_of_method,
            cell.estimate == best_of_all,
        )
        for cell in row.cells
    ]


# ---- Consensus


@dataclass(frozen=True)
class FormattedSummary:
    """The consensus of one target, as texts and bars."""

    target: str
    places: list[tuple[int, tuple[str, ...]]]
    more_places: int
    concordance: str
    concordance_length: float
    mean_distance: str
    distances: list[Bar]
    more_distances: int


def format_consensus(summaries: Sequence[TargetSummary]) -> dict[str, Any]:
    """Return the summaries, with bars of one scale, and a note if some are left out."""
    selected, note = select_summaries(summaries)
    longest = max((d for summary in selected for _, d in summary.disagreement), default=0.0)
    return {"summaries": [_format_summary(one, longest) for one in selected], "note": note}


def select_summaries(summaries: Sequence[TargetSummary]) -> tuple[Sequence[TargetSummary], str]:
    """Return the summaries to show, and a sentence that says how they were selected."""
    n = len(summaries)
    if n <= MAX_SUMMARIES:
        return summaries, ""
    measured = [summary for summary in summaries if summary.concordance is not None]
    if not measured:
        note = f"Only the first {MAX_SUMMARIES} of {n:,} classes are shown."
        return summaries[:MAX_SUMMARIES], note
    measured.sort(key=lambda summary: (summary.concordance, summary.target))
    selected = measured[:MAX_SUMMARIES]
    note = f"Only the {len(selected)} of {n:,} classes with the lowest agreement are shown."
    return selected, note


def _format_summary(summary: TargetSummary, longest: float) -> FormattedSummary:
    groups = [place if isinstance(place, tuple) else (place,) for place in summary.order]
    # A tie of two items in the second place is followed by the fourth place.
    numbers = np.cumsum([1, *(len(group) for group in groups)]).tolist()
    distances = sorted(summary.disagreement, key=lambda pair: (-pair[1], pair[0]))[:MAX_SOURCES]
    W, distance = summary.concordance, summary.mean_distance
    return FormattedSummary(
        target=summary.target or "(all)",
        places=list(zip(numbers, groups[:MAX_PLACES], strict=False)),
        more_places=max(len(groups) - MAX_PLACES, 0),
        concordance="" if W is None else format_share(W),
        concordance_length=0.0 if W is None else W,
        mean_distance="" if distance is None else format_number(distance),
        distances=make_bars(distances, format_column([d for _, d in distances]), longest),
        more_distances=len(summary.disagreement) - len(distances),
    )


# ---- Map


def format_map(points: ClassMap) -> dict[str, Any]:
    """Return the chart, its legend, and a note if some points or names are left out."""
    groups = find_largest_groups(points)
    n, n_groups = len(points.names), len(set(points.groups))
    title = f"Map of {n:,} points in {n_groups:,} groups"
    notes = []
    if n_groups > len(groups):
        notes.append(
            f"Only the {len(groups)} largest of {n_groups:,} groups are named; "
            "the points of the others are small grey dots."
        )
    if n > MAX_POINTS:
        step = math.ceil(n / MAX_POINTS)
        notes.append(f"Of {n:,} points, one in {step} is drawn.")
    return {
        "caption": points.caption,
        "chart": draw_map(points, title),
        "legend": groups,
        "note": " ".join(notes),
    }


# ---- Explanations


class ContributionTable(NamedTuple):
    """Bars for the largest contributions, and a note about the others."""

    bars: list[Bar]
    note: str


@dataclass(frozen=True)
class FormattedExplanation:
    """The explanation of one input, as texts and bars."""

    name: str
    target: str
    truth: str | None
    probability: str
    right: bool | None
    items: ContributionTable
    sources: ContributionTable
    alternatives: list[Bar]


def format_explanations(inputs: Sequence[ExplainedInput]) -> dict[str, Any]:
    """Return the first explanations, each with bars of its own scale."""
    note = ""
    if len(inputs) > MAX_EXPLANATIONS:
        note = f"Only the first {MAX_EXPLANATIONS} of {len(inputs):,} inputs are shown."
    return {"inputs": [_format_explanation(one) for one in inputs[:MAX_EXPLANATIONS]], "note": note}


def _format_explanation(one: ExplainedInput) -> FormattedExplanation:
    why = one.explanation
    others = [pair for pair in why.alternatives if pair[0] != why.target]
    alternatives = sorted(others, key=lambda pair: (-pair[1], pair[0]))[:MAX_ALTERNATIVES]
    return FormattedExplanation(
        name=one.name,
        target=why.target,
        truth=one.truth,
        probability=format_percent(why.probability),
        right=None if one.truth is None else one.truth == why.target,
        items=_format_contributions(why.items),
        sources=_format_contributions(why.sources),
        alternatives=make_bars(alternatives, [format_percent(p) for _, p in alternatives], 1.0),
    )


def _format_contributions(pairs: Sequence[tuple[str, float]]) -> ContributionTable:
    by_size = sorted(pairs, key=lambda pair: (-abs(pair[1]), pair[0]))
    shown, rest = by_size[:MAX_CONTRIBUTIONS], by_size[MAX_CONTRIBUTIONS:]
    shown.sort(key=lambda pair: (-pair[1], pair[0]))
    values = [
        *(contribution for _, contribution in shown),
        sum(contribution for _, contribution in rest),
    ]
    *texts, rest_text = format_column(values, signed=True)
    longest = max((abs(contribution) for _, contribution in shown), default=0.0)
    note = f"Sum of the {len(rest):,} smaller contributions: {rest_text}" if rest else ""
    return ContributionTable(make_bars(shown, texts, longest), note)


# ---- Evaluation


class ClassLine(NamedTuple):
    """The accuracy of a class, and the classes that its inputs were most often confused with."""

    bar: Bar
    inputs: int
    confused_with: tuple[str, ...]
    times: int


class PairLine(NamedTuple):
    """Two classes and a number about them."""

    first: str
    second: str
    text: str
    share: str
    length: float


def format_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """Return the numbers, a bar per class, both matrices or their worst cells, and reliability."""
    L = len(evaluation.classes)
    small = L <= MAX_CLASSES
    low, high = evaluation.accuracy.low, evaluation.accuracy.high
    return {
        "metrics": [
            ("Accuracy", format_share(evaluation.accuracy.estimate)),
            *((f"Top-{k} accuracy", format_share(share)) for k, share in evaluation.top_k),
            ("Calibration error", format_share(evaluation.expected_calibration_error)),
            ("Log loss", format_number(evaluation.log_loss)),
        ],
        "interval": f"{format_share(low)}–{format_share(high)}",
        "n_classes": L,
        "chance": f"{format_number(100 / L)}%",
        "classes": evaluation.classes,
        "class_lines": _format_classes(evaluation),
        "confusion": _format_confusion(evaluation) if small else [],
        "confusions": [] if small else _list_confusions(evaluation),
        "pairwise": _format_pairwise(evaluation) if small else [],
        "pairs": [] if small else _list_hardest_pairs(evaluation),
        "diagram": draw_reliability(
            evaluation.reliability, "Accuracy against confidence, with one disc per bin"
        ),
        "bins": _format_bins(evaluation),
    }


def _format_classes(evaluation: Evaluation) -> list[ClassLine]:
    lines = []
    for i in find_hardest_classes(evaluation.per_class, evaluation.classes):
        counts = np.array(evaluation.confusion[i])
        counts[i] = 0
        times = int(counts.max())
        others = np.flatnonzero(counts == times) if times else np.empty(0, np.intp)
        share = evaluation.per_class[i]
        bar = Bar(evaluation.classes[i], format_percent(share), 0.0 if math.isnan(share) else share)
        confused_with = tuple(sorted(evaluation.classes[j] for j in others))
        lines.append(ClassLine(bar, evaluation.n_inputs[i], confused_with, times))
    return lines


def _format_confusion(evaluation: Evaluation) -> list[tuple[str, list[tuple[str, str]]]]:
    counts = np.asarray(evaluation.confusion)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return [
        (name, [(choose_heat_class(s), f"{c:,}") for s, c in zip(*row, strict=True)])
        for name, row in zip(
            evaluation.classes, zip(shares.tolist(), counts.tolist(), strict=True), strict=True
        )
    ]


def _format_pairwise(evaluation: Evaluation) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (name, [_format_pairwise_cell(share, diagonal=i == j) for j, share in enumerate(row)])
        for i, (name, row) in enumerate(
            zip(evaluation.classes, np.asarray(evaluation.pairwise).tolist(), strict=True)
        )
    ]


def _format_pairwise_cell(share: float, *, diagonal: bool) -> tuple[str, str]:
    """Return the CSS class and the text of a cell; colours start at one half, random guessing."""
    if math.isnan(share):
        return "", "" if diagonal else MISSING
    per_cent = round(100 * share)
    return ("below" if per_cent < 50 else choose_heat_class(2 * share - 1)), str(per_cent)


def _list_confusions(evaluation: Evaluation) -> list[PairLine]:
    counts = np.asarray(evaluation.confusion)
    totals = counts.sum(axis=1)
    found = find_largest_confusions(counts, evaluation.classes)
    most = max((int(counts[pair]) for pair in found), default=0)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            f"{counts[i, j]:,}",
            format_percent(counts[i, j] / totals[i]),
            counts[i, j] / most,
        )
        for i, j in found
    ]


def _list_hardest_pairs(evaluation: Evaluation) -> list[PairLine]:
    shares = np.asarray(evaluation.pairwise)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            format_percent(float(shares[i, j])),
            "",
            float(shares[i, j]),
        )
        for i, j in find_hardest_pairs(shares, evaluation.classes)
    ]


def _format_bins(evaluation: Evaluation) -> list[tuple[str, str, Bar]]:
    most = max((count for _, _, count in evaluation.reliability), default=0)
    return [
        (format_percent(confidence), format_percent(share), Bar("", f"{count:,}", count / most))
        for confidence, share, count in evaluation.reliability
        if count
    ]


def choose_heat_class(share: float) -> str:
    """Return the CSS class of a cell of a heat table, for a share from 0 to 1.

    Examples
    --------
    >>> from rankshot.report.sections import choose_heat_class
    >>> [choose_heat_class(share) for share in (0, 0.5, 1, float("nan"))]
    ['h0', 'h5', 'h9', '']
    """
    if math.isnan(share):
        return ""
    # Halves are rounded up, so that all steps are equally wide; round() rounds them to even.
    return f"h{math.floor(HEAT_STEPS * min(max(share, 0), 1) + 0.5)}"


# ---- Selections from large results


def find_largest_confusions(
    confusion: NDArray[np.integer], classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs (true class, predicted class) with the largest counts, largest first.

    Classes are given by their positions in ``classes``.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report.sections import find_largest_confusions
    >>> find_largest_confusions(np.array([[9, 2], [3, 9]]), ["cat", "dog"])
    [(1, 0), (0, 1)]
    """
    wrong = np.array(confusion, dtype=float)
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    return _take_first_pairs(-wrong[rows, columns], rows, columns, classes)


def find_hardest_pairs(
    pairwise: NDArray[np.floating], classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs of classes with the lowest two-class accuracy, lowest first.

    Each pair is given once, in alphabetical order of its names.
    """
    by_name = _rank_names(classes)
    rows, columns = np.nonzero(~np.isnan(pairwise) & (by_name[:, None] < by_name))
    values = np.asarray(pairwise, dtype=float)[rows, columns]
    return _take_first_pairs(values, rows, columns, classes)


def find_hardest_classes(per_class: Sequence[float], classes: Sequence[str]) -> list[int]:
    """Return the positions of the classes with the lowest accuracy, lowest first, NaN last."""
    order = sorted(range(len(classes)), key=lambda i: (_nan_last(per_class[i]), classes[i]))
    return order[:MAX_CLASSES]


def _nan_last(value: float) -> float:
    return np.inf if np.isnan(value) else value


def _rank_names(classes: Sequence[str]) -> Ints:
    """Return the place of each class in alphabetical order."""
    order = np.argsort(np.array(classes, dtype=object), kind="stable")
    return np.argsort(order)


def _take_first_pairs(
    values: Floats, rows: Ints, columns: Ints, classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs with the smallest values; equal ones are ordered by their names."""
    by_name = _rank_names(classes)
    first = np.lexsort((by_name[columns], by_name[rows], values))[:MAX_CLASSES]
    return [(int(rows[i]), int(columns[i])) for i in first]

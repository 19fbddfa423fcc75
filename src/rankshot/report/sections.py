"""From the contents of a report to what its template writes, section by section.

The template has no arithmetic: shares, widths and texts are settled here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.tables import Comparison, ComparisonRow
from rankshot.report.charts import (
    MOST_POINTS,
    PlotLine,
    interval_plot,
    map_groups,
    reliability_diagram,
    scatter_map,
)
from rankshot.report.contents import ClassMap, ConsensusCard, Evaluation, ExplanationCard
from rankshot.report.svg import Html, share_axis
from rankshot.report.texts import (
    NONE,
    Bar,
    aligned_texts,
    bars,
    number_text,
    percent_text,
    share_text,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
MOST_CLASSES = 40
"""Classes that a matrix shows in full; also the length of the list that replaces a larger one."""
MOST_CARDS = 40
MOST_EXPLANATIONS = 24
MOST_PLACES = 12
MOST_SOURCES = 10
MOST_PUSHES = 12
MOST_ALTERNATIVES = 8
HEAT_STEPS = 9
"""Steps of the style sheet's colours for heat tables, beyond the empty one."""


# -------------------- report.large_results
# What is shown of a result too large for a page: the part most worth a look, and what it is.


class Pair(NamedTuple):
    """Two classes, as places in the list of classes."""

    first: int
    second: int


def hardest_cards(cards: Sequence[ConsensusCard]) -> tuple[Sequence[ConsensusCard], str]:
    """Return the cards to show, and a sentence that says which those are."""
    if len(cards) <= MOST_CARDS:
        return cards, ""
    known = [card for card in cards if card.concordance is not None]
    if not known:
        return cards[:MOST_CARDS], f"The first {MOST_CARDS} of {len(cards):,} targets are shown."
    known.sort(key=lambda card: (card.concordance, card.target))
    shown = known[:MOST_CARDS]
    said = f"Shown are the {len(shown)} of {len(cards):,} targets whose sources agree least."
    return shown, said


def largest_confusions(confusion: NDArray[np.integer], classes: Sequence[str]) -> list[Pair]:
    """Return the pairs (truth, what it was taken for) with the largest counts, largest first.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.report.sections import largest_confusions
    >>> largest_confusions(np.array([[9, 2], [3, 9]]), ["cat", "dog"])
    [Pair(first=1, second=0), Pair(first=0, second=1)]
    """
    wrong = np.array(confusion, dtype=float)
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    return _first_pairs(-wrong[rows, columns], rows, columns, classes)


def hardest_pairs(pairwise: NDArray[np.floating], classes: Sequence[str]) -> list[Pair]:
    """Return the pairs of classes with the lowest two-class accuracy, lowest first.

    A pair is given once, the name that comes first in the alphabet first.
    """
    by_name = _name_ranks(classes)
    rows, columns = np.nonzero(~np.isnan(pairwise) & (by_name[:, None] < by_name))
    values = np.asarray(pairwise, dtype=float)[rows, columns]
    return _first_pairs(values, rows, columns, classes)


def lowest_classes(per_class: Sequence[float], classes: Sequence[str]) -> list[int]:
    """Return the places of the classes with the lowest accuracy, lowest first, unknown last."""
    order = sorted(range(len(classes)), key=lambda i: (_nan_last(per_class[i]), classes[i]))
    return order[:MOST_CLASSES]


def _nan_last(value: float) -> float:
    return np.inf if np.isnan(value) else value


def _name_ranks(classes: Sequence[str]) -> Ints:
    """Return the place of each class in the alphabet."""
    order = np.argsort(np.array(classes, dtype=object), kind="stable")
    return np.argsort(order)


def _first_pairs(values: Floats, rows: Ints, columns: Ints, classes: Sequence[str]) -> list[Pair]:
    """Return the pairs with the smallest values; names settle which of equal ones come first."""
    by_name = _name_ranks(classes)
    first = np.lexsort((by_name[columns], by_name[rows], values))[:MOST_CLASSES]
    return [Pair(int(rows[i]), int(columns[i])) for i in first]


# -------------------- report.sections
# From the contents of a report to what its template writes, section by section.
#
# The template has no arithmetic: shares, widths and texts are settled here.


# -------------------------------------------------------------------- comparison


class Cell(NamedTuple):
    """A cell of a comparison."""

    estimate: str
    interval: str
    best_of_method: bool
    best_of_all: bool


def comparison_section(comparison: Comparison) -> dict[str, Any]:
    """Return the rows by method, with the best marked, and the plot of them."""
    methods: dict[str, list[ComparisonRow]] = {}
    for row in comparison.rows:
        methods.setdefault(row.method, []).append(row)
    bests = {method: _best(rows) for method, rows in methods.items()}
    best = max(bests.values(), default=-math.inf)
    tables = {
        method: [(row.source, _cells(row, bests[method], best)) for row in rows]
        for method, rows in methods.items()
    }
    lines = []
    for method, rows in methods.items():
        lines.append(PlotLine(method))
        lines += [PlotLine(row.source, row.cells, method) for row in rows]
    known = [cell for row in comparison.rows for cell in row.cells if cell is not None]
    plot = Html()
    if known:
        axis = share_axis([value for cell in known for value in cell])
        title = (
            f"Accuracy and its interval for {len(comparison.rows)} rows of the table, from "
            f"{share_text(axis.low)} on the left to {share_text(axis.high)} on the right"
        )
        plot = interval_plot(lines, comparison.classifiers, axis, title)
    return {
        "classifiers": comparison.classifiers,
        "caption": comparison.caption,
        "methods": tables,
        "lines": lines,
        "plot": plot,
        "some_missing": any(cell is None for row in comparison.rows for cell in row.cells),
    }


def _best(rows: Sequence[ComparisonRow]) -> float:
    known = [cell.estimate for row in rows for cell in row.cells if cell is not None]
    return max(known, default=-math.inf)


def _cells(row: ComparisonRow, best_of_method: float, best_of_all: float) -> list[Cell | None]:
    return [
        None
        if cell is None
        else Cell(
            share_text(cell.estimate),
            f"{share_text(cell.low)}–{share_text(cell.high)}",
            cell.estimate == best_of_method,
            cell.estimate == best_of_all,
        )
        for cell in row.cells
    ]


# -------------------------------------------------------------------- consensus


@dataclass(frozen=True)
class CardView:
    """A consensus as the template writes it."""

    target: str
    places: list[tuple[int, tuple[str, ...]]]
    more_places: int
    concordance: str
    concordance_length: float
    mean_distance: str
    sources: list[Bar]
    more_sources: int


def consensus_section(cards: Sequence[ConsensusCard]) -> dict[str, Any]:
    """Return the cards, with bars of one scale, and a sentence where not all are shown."""
    shown, said = hardest_cards(cards)
    longest = max((d for card in shown for _, d in card.sources), default=0.0)
    return {"cards": [_card_view(card, longest) for card in shown], "said": said}


def _card_view(card: ConsensusCard, longest: float) -> CardView:
    groups = [place if isinstance(place, tuple) else (place,) for place in card.order]
    # A tie takes as many places as it has members: first, second = second, fourth.
    numbers = np.cumsum([1, *(len(group) for group in groups)]).tolist()
    sources = sorted(card.sources, key=lambda pair: (-pair[1], pair[0]))[:MOST_SOURCES]
    W, distance = card.concordance, card.mean_distance
    return CardView(
        target=card.target,
        places=list(zip(numbers, groups[:MOST_PLACES], strict=False)),
        more_places=max(len(groups) - MOST_PLACES, 0),
        concordance="" if W is None else share_text(W),
        concordance_length=0.0 if W is None else W,
        mean_distance="" if distance is None else number_text(distance),
        sources=bars(sources, aligned_texts([d for _, d in sources]), longest),
        more_sources=len(card.sources) - len(sources),
    )


# -------------------------------------------------------------------- map


def map_section(points: ClassMap) -> dict[str, Any]:
    """Return the drawing, its legend, and a sentence where not all is shown."""
    groups = map_groups(points)
    n, n_groups = len(points.names), len(set(points.groups))
    title = f"Map of {n:,} points in {n_groups:,} groups"
    said = []
    if n_groups > len(groups):
        said.append(
            f"Only the {len(groups)} largest of {n_groups:,} groups are named; "
            "the points of the others are small grey dots."
        )
    if n > MOST_POINTS:
        step = math.ceil(n / MOST_POINTS)
        said.append(f"Of {n:,} points, one in {step} is drawn.")
    return {
        "caption": points.caption,
        "drawing": scatter_map(points, title),
        "legend": groups,
        "said": " ".join(said),
    }


# -------------------------------------------------------------------- explanations


class PushTable(NamedTuple):
    """Bars for the largest pushes, and a sentence about the others."""

    bars: list[Bar]
    said: str


@dataclass(frozen=True)
class ExplanationView:
    """An explanation as the template writes it."""

    card: ExplanationCard
    probability: str
    right: bool | None
    pushes: PushTable
    sources: PushTable
    alternatives: list[Bar]


def explanation_section(cards: Sequence[ExplanationCard]) -> dict[str, Any]:
    """Return the first cards, each with bars of its own scale."""
    shown = cards[:MOST_EXPLANATIONS]
    said = ""
    if len(shown) < len(cards):
        said = f"The first {len(shown)} of {len(cards):,} inputs are shown."
    return {"cards": [_explanation_view(card) for card in shown], "said": said}


def _explanation_view(card: ExplanationCard) -> ExplanationView:
    alternatives = sorted(card.alternatives, key=lambda pair: (-pair[1], pair[0]))
    alternatives = alternatives[:MOST_ALTERNATIVES]
    return ExplanationView(
        card=card,
        probability=percent_text(card.probability),
        right=None if card.truth is None else card.truth == card.predicted,
        pushes=_push_table(card.pushes),
        sources=_push_table(card.sources),
        alternatives=bars(alternatives, [percent_text(p) for _, p in alternatives], 1.0),
    )


def _push_table(pairs: Sequence[tuple[str, float]]) -> PushTable:
    by_size = sorted(pairs, key=lambda pair: (-abs(pair[1]), pair[0]))
    shown, rest = by_size[:MOST_PUSHES], by_size[MOST_PUSHES:]
    shown.sort(key=lambda pair: (-pair[1], pair[0]))
    values = [*(push for _, push in shown), sum(push for _, push in rest)]
    *texts, rest_text = aligned_texts(values, signed=True)
    longest = max((abs(push) for _, push in shown), default=0.0)
    said = f"{len(rest):,} smaller ones together: {rest_text}" if rest else ""
    return PushTable(bars(shown, texts, longest), said)


# -------------------- report.evaluation_section
# From an evaluation to what the template writes of it.


class ClassLine(NamedTuple):
    """A class's accuracy, and what it is most often taken for."""

    bar: Bar
    inputs: int
    taken_for: tuple[str, ...]
    times: int


class PairLine(NamedTuple):
    """Two classes and a figure about them."""

    first: str
    second: str
    text: str
    share: str
    length: float


def evaluation_section(evaluation: Evaluation) -> dict[str, Any]:
    """Return the figures, the bars of each class, both matrices or their worst, and reliability."""
    L = len(evaluation.classes)
    small = L <= MOST_CLASSES
    low, high = evaluation.accuracy.low, evaluation.accuracy.high
    return {
        "figures": [
            ("Accuracy", share_text(evaluation.accuracy.estimate)),
            *((f"In the top {k}", share_text(share)) for k, share in evaluation.top_k),
            ("Calibration error", share_text(evaluation.expected_calibration_error)),
            ("Log loss", number_text(evaluation.log_loss)),
        ],
        "interval": f"{share_text(low)}–{share_text(high)}",
        "n_classes": L,
        "chance": f"{number_text(100 / L)}%",
        "classes": evaluation.classes,
        "class_lines": _class_lines(evaluation),
        "confusion": _confusion_rows(evaluation) if small else [],
        "confusions": [] if small else _confusion_list(evaluation),
        "pairwise": _pairwise_rows(evaluation) if small else [],
        "pairs": [] if small else _pair_list(evaluation),
        "diagram": reliability_diagram(
            evaluation.reliability, "How often right, against how sure, with a disc for each bin"
        ),
        "bins": _bin_lines(evaluation),
    }


def _class_lines(evaluation: Evaluation) -> list[ClassLine]:
    lines = []
    for i in lowest_classes(evaluation.per_class, evaluation.classes):
        counts = np.array(evaluation.confusion[i])
        counts[i] = 0
        times = int(counts.max())
        others = np.flatnonzero(counts == times) if times else np.empty(0, np.intp)
        share = evaluation.per_class[i]
        bar = Bar(evaluation.classes[i], percent_text(share), 0.0 if math.isnan(share) else share)
        taken_for = tuple(sorted(evaluation.classes[j] for j in others))
        lines.append(ClassLine(bar, evaluation.n_inputs[i], taken_for, times))
    return lines


def _confusion_rows(evaluation: Evaluation) -> list[tuple[str, list[tuple[str, str]]]]:
    counts = np.asarray(evaluation.confusion)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    return [
        (name, [(heat(s), f"{c:,}") for s, c in zip(*row, strict=True)])
        for name, row in zip(
            evaluation.classes, zip(shares.tolist(), counts.tolist(), strict=True), strict=True
        )
    ]


def _pairwise_rows(evaluation: Evaluation) -> list[tuple[str, list[tuple[str, str]]]]:
    return [
        (name, [_pairwise_cell(share, diagonal=i == j) for j, share in enumerate(row)])
        for i, (name, row) in enumerate(
            zip(evaluation.classes, np.asarray(evaluation.pairwise).tolist(), strict=True)
        )
    ]


def _pairwise_cell(share: float, *, diagonal: bool) -> tuple[str, str]:
    """Return the class and text of a cell; its colour starts at one half, a blind guess."""
    if math.isnan(share):
        return "", "" if diagonal else NONE
    per_cent = round(100 * share)
    return ("below" if per_cent < 50 else heat(2 * share - 1)), str(per_cent)


def _confusion_list(evaluation: Evaluation) -> list[PairLine]:
    counts = np.asarray(evaluation.confusion)
    totals = counts.sum(axis=1)
    found = largest_confusions(counts, evaluation.classes)
    most = max((int(counts[pair]) for pair in found), default=0)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            f"{counts[i, j]:,}",
            percent_text(counts[i, j] / totals[i]),
            counts[i, j] / most,
        )
        for i, j in found
    ]


def _pair_list(evaluation: Evaluation) -> list[PairLine]:
    shares = np.asarray(evaluation.pairwise)
    return [
        PairLine(
            evaluation.classes[i],
            evaluation.classes[j],
            percent_text(float(shares[i, j])),
            "",
            float(shares[i, j]),
        )
        for i, j in hardest_pairs(shares, evaluation.classes)
    ]


def _bin_lines(evaluation: Evaluation) -> list[tuple[str, str, Bar]]:
    most = max((count for _, _, count in evaluation.reliability), default=0)
    return [
        (percent_text(confidence), percent_text(share), Bar("", f"{count:,}", count / most))
        for confidence, share, count in evaluation.reliability
        if count
    ]


def heat(share: float) -> str:
    """Return the class of a cell of a heat table, for a share from 0 to 1.

    Examples
    --------
    >>> from rankshot.report.sections import heat
    >>> heat(0), heat(0.5), heat(1), heat(float("nan"))
    ('h0', 'h5', 'h9', '')
    """
    if math.isnan(share):
        return ""
    # Halves go up, so that the steps are equally wide: round() would send them to even steps.
    return f"h{math.floor(HEAT_STEPS * min(max(share, 0), 1) + 0.5)}"

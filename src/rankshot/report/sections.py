"""From the contents of a report to what its template writes, section by section.

The template has no arithmetic: shares, widths and texts are settled here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankshot.experiments.comparison import Comparison, ComparisonRow
from rankshot.report import large_results as large
from rankshot.report.bars import Bar, bars
from rankshot.report.charts import (
    MOST_POINTS,
    PlotLine,
    interval_plot,
    map_groups,
    scatter_map,
)
from rankshot.report.contents import ClassMap, ConsensusCard, ExplanationCard
from rankshot.report.svg import Html, share_axis
from rankshot.report.texts import aligned_texts, number_text, percent_text, share_text

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
    shown, said = large.hardest_cards(cards)
    longest = max((d for card in shown for _, d in card.sources), default=0.0)
    return {"cards": [_card_view(card, longest) for card in shown], "said": said}


def _card_view(card: ConsensusCard, longest: float) -> CardView:
    groups = [place if isinstance(place, tuple) else (place,) for place in card.order]
    # A tie takes as many places as it has members: first, second = second, fourth.
    numbers = np.cumsum([1, *(len(group) for group in groups)]).tolist()
    sources = sorted(card.sources, key=lambda pair: (-pair[1], pair[0]))[: large.MOST_SOURCES]
    W, distance = card.concordance, card.mean_distance
    return CardView(
        target=card.target,
        places=list(zip(numbers, groups[: large.MOST_PLACES], strict=False)),
        more_places=max(len(groups) - large.MOST_PLACES, 0),
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
    shown = cards[: large.MOST_EXPLANATIONS]
    said = ""
    if len(shown) < len(cards):
        said = f"The first {len(shown)} of {len(cards):,} inputs are shown."
    return {"cards": [_explanation_view(card) for card in shown], "said": said}


def _explanation_view(card: ExplanationCard) -> ExplanationView:
    alternatives = sorted(card.alternatives, key=lambda pair: (-pair[1], pair[0]))
    alternatives = alternatives[: large.MOST_ALTERNATIVES]
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
    shown, rest = by_size[: large.MOST_PUSHES], by_size[large.MOST_PUSHES :]
    shown.sort(key=lambda pair: (-pair[1], pair[0]))
    values = [*(push for _, push in shown), sum(push for _, push in rest)]
    *texts, rest_text = aligned_texts(values, signed=True)
    longest = max((abs(push) for _, push in shown), default=0.0)
    said = f"{len(rest):,} smaller ones together: {rest_text}" if rest else ""
    return PushTable(bars(shown, texts, longest), said)

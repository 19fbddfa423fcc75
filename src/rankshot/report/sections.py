"""The contents of a report as its template needs them, section by section.

The template does no arithmetic: all texts and lengths of bars are computed here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rankshot.ranking.agreement import TargetSummary
from rankshot.ranking.maps import find_largest_groups
from rankshot.report.charts import (
    MAX_POINTS,
    PlotLine,
    draw_intervals,
    draw_map,
)
from rankshot.report.contents import (
    ClassMap,
    ExplainedInput,
    MethodComparison,
    MethodRow,
    SourceTable,
)
from rankshot.report.pictures import Picture
from rankshot.report.svg import Html, fit_axis
from rankshot.report.texts import (
    MINUS,
    Bar,
    choose_heat_class,
    format_column,
    format_percent,
    make_bars,
    shorten,
)
from rankshot.zeroshot.explanation import ContributionGroup
from rankshot.zeroshot.metrics import format_share

MAX_SUMMARIES = 40
FEW_NAMES = 12
"""So many names always have room on a map."""
MAX_EXPLANATIONS = 24
MAX_PLACES = 12
MAX_BARS = 10
MAX_RATERS = 12
MAX_ALTERNATIVES = 8


# ---- MethodComparison


class ComparisonCell(NamedTuple):
    """One cell of a comparison, as texts."""

    estimate: str
    interval: str
    best_of_method: bool
    best_of_all: bool


def format_comparison(comparison: MethodComparison) -> dict[str, Any]:
    """Return the rows by method, with the best of them marked, and their plot."""
    methods: dict[str, list[MethodRow]] = {}
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


def _best_estimate(rows: Sequence[MethodRow]) -> float:
    estimates = [cell.estimate for row in rows for cell in row.cells if cell is not None]
    return max(estimates, default=-math.inf)


def _format_cells(
    row: MethodRow, best_of_method: float, best_of_all: float
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
    distances = sorted(summary.disagreement, key=lambda pair: (-pair[1], pair[0]))[:MAX_BARS]
    W, distance = summary.concordance, summary.mean_distance
    return FormattedSummary(
        target=summary.target or "(all)",
        places=list(zip(numbers, groups[:MAX_PLACES], strict=False)),
        more_places=max(len(groups) - MAX_PLACES, 0),
        concordance="" if W is None else format_share(W),
        concordance_length=0.0 if W is None else W,
        mean_distance="" if distance is None else format_share(distance),
        distances=make_bars(distances, [format_share(d) for _, d in distances], longest),
        more_distances=len(summary.disagreement) - len(distances),
    )


# ---- Sources


def format_sources(table: SourceTable) -> dict[str, Any]:
    """Return the sources as texts, and notes about those that know only some of the items."""
    partial = [line for line in table.lines if line.known < table.n_items]
    notes = [
        f"{line.name} knows only {line.known:,} of the {table.n_items:,} seen classes. It is "
        "compared with each other source on the seen classes that both know."
        for line in partial
    ]
    return {
        "names": [line.name for line in table.lines],
        "lines": [
            (
                line.name,
                f"{line.n_rankings:,}",
                f"{line.known:,}",
                format_share(line.to_consensus),
                [_format_distance(far) for far in line.to_others],
            )
            for line in table.lines
        ],
        "k": table.k,
        "notes": notes,
    }


def _format_distance(distance: float) -> tuple[str, str]:
    """Return the CSS class and the text of a distance: a strong colour where it is small."""
    text = "" if math.isnan(distance) else format_share(distance)
    return choose_heat_class(1 - distance), text


# ---- Map


def format_map(points: ClassMap) -> dict[str, Any]:
    """Return the chart, its legend, and a note if some points or names are left out."""
    groups = find_largest_groups(points.groups)
    n, n_groups = len(points.names), len(set(points.groups))
    title = f"Map of {n:,} points in {n_groups:,} groups"
    notes = []
    if n_groups > len(groups):
        notes.append(
            f"Only the {len(groups)} largest of {n_groups:,} groups are named; "
            "the points of the others are small grey dots."
        )
    if n_groups > FEW_NAMES:
        notes.append("A name for which there is no room on the map is only in the legend below it.")
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

    caption: str
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
    rival: str
    tables: list[ContributionTable]
    alternatives: list[Bar]
    picture: Picture | None


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
    groups = why.group_items()
    longest = max((abs(c) for group in groups for _, c in group.shown), default=0.0)
    tables = [_format_group(group, longest) for group in groups]
    if why.sources:
        tables.append(_format_sources(why.sources))
    return FormattedExplanation(
        name=one.name,
        target=why.target,
        truth=one.truth,
        probability=format_percent(why.probability),
        right=None if one.truth is None else one.truth == why.target,
        rival=why.rival,
        tables=tables,
        alternatives=make_bars(alternatives, [format_percent(p) for _, p in alternatives], 1.0),
        picture=one.picture,
    )


def _format_group(group: ContributionGroup, longest: float) -> ContributionTable:
    """Return the contributions of seen classes, all groups with one scale."""
    shown = sorted(group.shown, key=lambda pair: (-pair[1], pair[0]))
    values = [*(contribution for _, contribution in shown), group.total]
    *texts, total = format_column(values, signed=True)
    heading = shorten(group.heading, 160)
    caption = f"{heading[:1].upper()}{heading[1:]}, together {total}"
    note = f"{group.describe_rest()}.".replace("-", MINUS) if group.rest else ""
    return ContributionTable(caption, make_bars(shown, texts, longest), note)


def _format_sources(pairs: Sequence[tuple[str, float]]) -> ContributionTable:
    by_size = sorted(pairs, key=lambda pair: (-abs(pair[1]), pair[0]))
    shown = sorted(by_size[:MAX_RATERS], key=lambda pair: (-pair[1], pair[0]))
    texts = format_column([contribution for _, contribution in shown], signed=True)
    longest = max(abs(contribution) for _, contribution in shown)
    rest = len(by_size) - len(shown)
    note = f"{rest:,} others would give less." if rest else ""
    return ContributionTable(
        "What each source alone would give", make_bars(shown, texts, longest), note
    )

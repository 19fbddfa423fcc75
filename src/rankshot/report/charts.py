"""The charts of a report, as SVG: accuracies with intervals, a map of classes, reliability."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.label_places import place_labels, text_width
from rankshot.ranking.maps import find_largest_groups
from rankshot.report.contents import ClassMap
from rankshot.report.svg import (
    N_COLORS,
    Axis,
    Html,
    draw_chart,
    draw_line,
    draw_mark,
    element,
    format_coordinate,
)
from rankshot.report.texts import format_percent, shorten
from rankshot.zeroshot.metrics import Interval, format_share

Floats = NDArray[np.float64]
MAX_RADIUS, MIN_RADIUS = 12.0, 2.5
"""Of the discs of a reliability diagram, in pixels."""
MAX_POINTS = 2000
OTHERS = -1
"""The number of the mark of all other groups."""
MARGIN = 0.06
"""Around the points of a map, as a fraction of its height."""
MAX_ASPECT = 1.6
"""The largest ratio of a map's width to its height; the smallest is 1."""
MAX_LABEL_LETTERS = 22
PAGE_LAYOUTS = (("wide", 860.0, 13.0), ("narrow", 300.0, 11.0))
"""Labels are placed twice, for a computer and for a phone: class, width and font size in pixels."""
PANEL_LAYOUTS = (("panel", 280.0, 12.0),)
"""The layout of a map beside others, which is about as wide as a phone on every screen."""
MIN_LEADER = 12.0
"""A label further than this from its group, in pixels, is connected to it by a line."""


# ---- Dots and intervals


class PlotLine(NamedTuple):
    """One line of `draw_intervals`: a row of a comparison, or a heading, which has no cells."""

    label: str
    cells: tuple[Interval | None, ...] = ()
    method: str = ""


def draw_intervals(
    lines: Sequence[PlotLine], classifiers: Sequence[str], axis: Axis, title: str
) -> Html:
    """Return dots with intervals, one mark per classifier, without the labels of the lines.

    The chart has the height of the lines and of two more, for the ticks above and below.
    """
    n = len(lines) + 2
    parts = []
    for tick in axis.ticks:
        x = axis.locate(tick)
        parts.append(draw_line(x, 1 / n, x, 1 - 1 / n, "grid"))
        for y in (0.5 / n, 1 - 0.5 / n):
            at = {"x": format_coordinate(x), "y": format_coordinate(y), "dy": "0.35em"}
            parts.append(element("text", f"{tick:.2f}".removeprefix("0"), class_="tick", **at))
    for number, row in enumerate(lines, start=1):
        for kind, cell in enumerate(row.cells):
            if cell is not None:
                y = (number + (kind + 1) / (len(row.cells) + 1)) / n
                names = [shorten(t, 60) for t in (row.method, row.label, classifiers[kind])]
                parts += _draw_interval(cell, axis, y, kind, ", ".join(names))
    style = f"height:calc(var(--row)*{n})"
    return draw_chart(title, *parts, class_="intervals", style=style)


def _draw_interval(cell: Interval, axis: Axis, y: float, kind: int, name: str) -> list[Html]:
    low, high = axis.locate(cell.low), axis.locate(cell.high)
    values = (
        f"{format_share(cell.estimate)} ({format_share(cell.low)} to {format_share(cell.high)})"
    )
    return [
        draw_line(low, y, high, y, f"whisker c{kind % N_COLORS}"),
        draw_mark(kind, axis.locate(cell.estimate), y, f"{name}: {values}"),
    ]


# ---- Reliability


def draw_reliability(
    bins: Sequence[tuple[float, float, int]],
    title: str,
    before: Sequence[tuple[float, float, int]] = (),
) -> Html:
    """Return accuracy (up) against confidence (right), with one disc per bin.

    The area of a disc is the number of inputs. A calibrated classifier has all discs on the
    diagonal. The bins ``before`` the calibration are rings.
    """
    parts = [element("rect", width="100%", height="100%", class_="frame")]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        text = format_percent(tick, digits=0)
        parts += [draw_line(tick, 0, tick, 1, "grid"), draw_line(0, tick, 1, tick, "grid")]
        below = {"x": format_coordinate(tick), "y": "100%", "dy": "1.5em"}
        parts.append(element("text", text, class_="tick", **below))
        left = {"x": 0, "y": format_coordinate(1 - tick), "dx": -7, "dy": "0.35em"}
        parts.append(element("text", text, class_="tick end", **left))
    parts.append(draw_line(0, 1, 1, 0, "diagonal"))
    most = max((count for _, _, count in (*bins, *before)), default=0)
    parts += [draw_line(c, 1 - c, c, 1 - share, "gap") for c, share, count in bins if count]
    parts += _draw_bins(bins, most, "bin")
    # Rings are above the discs, which they do not hide.
    parts += _draw_bins(before, most, "bin before")
    return draw_chart(title, *parts, class_="reliability")


def _draw_bins(bins: Sequence[tuple[float, float, int]], most: int, class_: str) -> list[Html]:
    when = "Before: " if "before" in class_ else ""
    return [
        element(
            "circle",
            element(
                "title",
                f"{when}{count:,} inputs: mean confidence {format_percent(confidence)}, "
                f"accuracy {format_percent(share)}",
            ),
            cx=format_coordinate(confidence),
            cy=format_coordinate(1 - share),
            r=f"{max(MAX_RADIUS * math.sqrt(count / most), MIN_RADIUS):.1f}",
            class_=class_,
        )
        for confidence, share, count in bins
        if count
    ]


# ---- Map


def draw_map(
    points: ClassMap, title: str, layouts: Sequence[tuple[str, float, float]] = PAGE_LAYOUTS
) -> Html:
    """Return the points, with one scale for both axes, and the name of each group at its centre.

    The names are placed once for each of the ``layouts``. A map without a layout needs a legend.
    """
    places, aspect = scale_to_unit(np.array(points.x, float), np.array(points.y, float))
    groups = find_largest_groups(points.groups)
    kinds = {group.name: group.kind for group in groups}
    drawn = range(0, len(points.names), math.ceil(len(points.names) / MAX_POINTS))
    marks = []
    for i in drawn:
        tooltip = f"{shorten(points.names[i], 80)} ({shorten(points.groups[i], 80)})"
        kind = kinds.get(points.groups[i], OTHERS)
        x, y = places[i].tolist()
        marks.append(
            _draw_small_dot(x, y, tooltip) if kind == OTHERS else draw_mark(kind, x, y, tooltip)
        )
    members = np.array(points.groups, dtype=object)
    centers = np.array([places[members == group.name].mean(axis=0) for group in groups])
    names = [group.name for group in groups]
    labels = [draw_labels(names, centers, places[drawn], aspect, *layout) for layout in layouts]
    style = f"aspect-ratio:{aspect:.4f}"
    return draw_chart(title, *marks, *labels, class_="map", style=style)


def scale_to_unit(x: Floats, y: Floats) -> tuple[Floats, float]:
    """Return the points as fractions of a chart, and the ratio of its width to its height.

    Both axes have the same scale, and y goes up.
    """
    points = np.column_stack([x, y])
    # Differences of numbers near the largest float would overflow.
    points = points / (np.abs(points).max() or 1)
    width, height = np.ptp(points, axis=0).tolist()
    aspect = min(max(width, height), MAX_ASPECT * height) / height if height else MAX_ASPECT
    room = ((aspect - 2 * MARGIN, width), (1 - 2 * MARGIN, height))
    scale = min((there / needed for there, needed in room if needed), default=0.0)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    return 0.5 + (points - middle) * [scale / aspect, -scale], aspect


def _draw_small_dot(x: float, y: float, tooltip: str) -> Html:
    dot = element("circle", cx=format_coordinate(x), cy=format_coordinate(y), r=3)
    return element("g", element("title", tooltip), dot, class_="other")


# ---- Labels of a map


def draw_labels(
    names: Sequence[str],
    centers: Floats,
    marks: Floats,
    aspect: float,
    class_: str,
    width: float,
    font_size: float,
) -> Html:
    """Return names near their centres, placed for a chart with a given width in pixels.

    A name for which there is no room is left out; the marks have tooltips, and the map a legend.
    """
    box = np.array([width, width / aspect])
    texts = [shorten(name, MAX_LABEL_LETTERS) for name in names]
    sizes = np.array([[text_width(text, font_size) + 6, font_size * 1.35] for text in texts])
    found = place_labels(centers * box, sizes, marks * box, box)
    parts = []
    for text, name, center, place, size in zip(texts, names, centers, found, sizes, strict=True):
        if np.isnan(place).any():
            continue
        away = np.abs(place - center * box) > size / 2 + MIN_LEADER
        if away.any():
            parts.append(draw_line(*_leader_ends(place, center * box, size, box), "leader"))
        x, y = (place / box).tolist()
        at = {"x": format_coordinate(x), "y": format_coordinate(y), "dy": "0.35em"}
        parts.append(element("text", element("title", shorten(name, 80)), text, **at))
    return element("g", *parts, class_=f"labels {class_}")


def _leader_ends(
    place: Floats, center: Floats, size: Floats, box: Floats
) -> tuple[float, float, float, float]:
    """Return the ends of a line from the near edge of a label to the centre of its group."""
    way = center - place
    with np.errstate(divide="ignore"):
        edge = float(np.min(size / 2 / np.abs(way)))
    x1, y1 = ((place + min(edge, 1) * way) / box).tolist()
    x2, y2 = (center / box).tolist()
    return x1, y1, x2, y2

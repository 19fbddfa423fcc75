"""The charts of a report, as SVG: accuracies with intervals, a map of classes, reliability."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.report.contents import ClassMap
from rankshot.report.svg import N_COLORS, Axis, Html, drawing, element, joined, line, mark, percent
from rankshot.report.texts import cut, percent_text, share_text

if TYPE_CHECKING:
    from rankshot.zeroshot.metrics import Interval

Floats = NDArray[np.float64]
DIRECTIONS = 16
RINGS = 40
MARK_RADIUS = 4.0
COST_OF_COVERING = 25.0
"""A label goes this many pixels further away to leave one more mark uncovered."""
MOST_POINTS = 2000
MOST_GROUPS = 40
"""Groups that get a mark and a label of their own on a map."""
OTHERS = -1
"""The number of the mark of all other groups."""
MARGIN = 0.06
"""Around the points of a map, as a part of its height."""
WIDEST = 1.6
"""A map is at most this many times as wide as high, and at least as wide as high."""
LABEL_LETTERS = 22
DRAWN_WIDTHS = (("wide", 860.0, 13.0), ("narrow", 300.0, 11.0))
"""Labels are placed twice, for a desk and for a phone: class, width and font size in pixels."""
PANEL_WIDTHS = (("panel", 280.0, 12.0),)
"""For a drawing that is about as wide as a phone everywhere, because others stand beside it."""
SHORTEST_LEADER = 12.0
LARGEST_DISC, SMALLEST_DISC = 12.0, 2.5


# -------------------- report.label_places
# Where the labels of a map go: beside what they name, and never on one another.


def text_width(text: str, font_size: float) -> float:
    """Return about how wide a text is; letters of Chinese, Japanese and Korean are square."""
    ems = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in text)
    return ems * font_size


def place_labels(centers: Floats, sizes: Floats, points: Floats, box: Floats) -> Floats:
    """Return the middle of each label, as near to its centre as the others and the marks allow.

    Parameters
    ----------
    centers : ndarray, shape (n, 2)
        Where each label would be best.
    sizes : ndarray, shape (n, 2)
        Widths and heights.
    points : ndarray, shape (m, 2)
        Marks, better left uncovered.
    box : ndarray, shape (2,)
        Width and height of the drawing.

    Examples
    --------
    Two labels for one place stand one above the other:

    >>> import numpy as np
    >>> from rankshot.report.charts import place_labels
    >>> middle, size = [50.0, 50.0], [40.0, 10.0]
    >>> place_labels(np.array([middle] * 2), np.array([size] * 2), np.empty((0, 2)),
    ...              np.array([100.0, 100.0])).tolist()
    [[50.0, 50.0], [50.0, 40.0]]
    """
    places = np.empty_like(centers)
    sums = _sums(points, box)
    # The widest have the fewest places to go, so they choose first.
    for chosen, label in enumerate(order := np.argsort(-sizes[:, 0], kind="stable")):
        free = _candidates(centers[label], sizes[label], box)
        reach = (sizes[label] + sizes[order[:chosen]]) / 2
        overlap = _overlap(free, places[order[:chosen]], reach).sum(axis=1)
        covered = _covered(sums, free, sizes[label] / 2 + MARK_RADIUS)
        moved = np.hypot(*(free - centers[label]).T)
        # An overlap costs more than any way, but where no place is free the least of it wins.
        cost = moved + COST_OF_COVERING * covered + 1e4 * overlap
        places[label] = free[np.argmin(cost)]
    return places


def _candidates(center: Floats, size: Floats, box: Floats) -> Floats:
    """Return the centre and rings around it, moved to where the label is inside the box."""
    angles = np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS - np.pi / 2
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    # Half a label's height a ring: fine enough to stack labels without a gap.
    radii = np.arange(1, RINGS + 1) * size[1] / 2
    rings = (radii[:, None, None] * circle).reshape(-1, 2)
    moved = center + np.vstack([np.zeros((1, 2)), rings])
    inside: Floats = np.clip(
        moved, np.minimum(size / 2, box / 2), np.maximum(box - size / 2, box / 2)
    )
    return inside.round(6)


def _sums(points: Floats, box: Floats) -> Floats:
    """Return how many points are above and left of each pixel, so that rectangles are counted."""
    width, height = np.ceil(box).astype(int) + 1
    counts = np.zeros((height + 1, width + 1))
    columns, rows = np.clip(np.floor(points), 0, np.ceil(box)).astype(int).T
    np.add.at(counts, (rows + 1, columns + 1), 1)
    sums: Floats = counts.cumsum(axis=0).cumsum(axis=1)
    return sums


def _covered(sums: Floats, places: Floats, half: Floats) -> Floats:
    """Return how many points are within ``half`` a width and height of each place."""
    most = np.array(sums.shape[::-1]) - 1
    left, top = np.clip(np.round(places - half), 0, most).astype(int).T
    right, bottom = np.clip(np.round(places + half), 0, most).astype(int).T
    counts: Floats = sums[bottom, right] - sums[top, right] - sums[bottom, left] + sums[top, left]
    return counts


def _overlap(places: Floats, others: Floats, reach: Floats) -> Floats:
    """Return by how many pixels boxes at ``places`` overlap each other, the lesser of two ways."""
    gap = reach - np.abs(places[:, None] - others)
    least: Floats = gap.min(axis=-1)
    return np.maximum(least, 0)


# -------------------- report.charts
# The charts of a report, as SVG: accuracies with intervals, a map of classes, reliability.


# -------------------------------------------------------------------- dots and intervals


class PlotLine(NamedTuple):
    """One line of `interval_plot`: a row of a comparison, or a heading, which has no cells."""

    label: str
    cells: tuple[Interval | None, ...] = ()
    method: str = ""


def interval_plot(
    lines: Sequence[PlotLine], classifiers: Sequence[str], axis: Axis, title: str
) -> Html:
    """Return dots with intervals, one mark a classifier; the labels of the lines stand outside.

    The drawing is as high as the lines and one more above and below, for the ticks.
    """
    n = len(lines) + 2
    parts = []
    for tick in axis.ticks:
        x = axis.place(tick)
        parts.append(line(x, 1 / n, x, 1 - 1 / n, "grid"))
        for y in (0.5 / n, 1 - 0.5 / n):
            at = {"x": percent(x), "y": percent(y), "dy": "0.35em"}
            parts.append(element("text", f"{tick:.2f}".removeprefix("0"), class_="tick", **at))
    for number, row in enumerate(lines, start=1):
        for kind, cell in enumerate(row.cells):
            if cell is not None:
                y = (number + (kind + 1) / (len(row.cells) + 1)) / n
                said = ", ".join(cut(t, 60) for t in (row.method, row.label, classifiers[kind]))
                parts.append(_dot(cell, axis, y, kind, said))
    style = f"height:calc(var(--row)*{n})"
    return drawing(title, *parts, class_="intervals", style=style)


def _dot(cell: Interval, axis: Axis, y: float, kind: int, said: str) -> Html:
    low, high = axis.place(cell.low), axis.place(cell.high)
    bar = line(low, y, high, y, f"whisker c{kind % N_COLORS}")
    values = f"{share_text(cell.estimate)} ({share_text(cell.low)} to {share_text(cell.high)})"
    return joined([bar, mark(kind, axis.place(cell.estimate), y, f"{said}: {values}")])


# -------------------------------------------------------------------- the map


class Group(NamedTuple):
    """A group of a map: its mark's number, its name, and how many points it has."""

    kind: int
    name: str
    size: int


def map_groups(points: ClassMap) -> list[Group]:
    """Return the groups that get a mark of their own, as they come; only the largest of many."""
    counts = Counter(points.groups)
    largest = sorted(counts, key=lambda name: (-counts[name], name))[:MOST_GROUPS]
    kept = [name for name in counts if name in set(largest)]
    return [Group(kind, name, counts[name]) for kind, name in enumerate(kept)]


def scatter_map(
    points: ClassMap, title: str, layouts: Sequence[tuple[str, float, float]] = DRAWN_WIDTHS
) -> Html:
    """Return the points, with one scale for both axes, and each group's name near its centre.

    The names are placed once for each of the ``layouts``; where there is none, a legend has to do.
    """
    places, aspect = unit_places(np.array(points.x, float), np.array(points.y, float))
    groups = map_groups(points)
    kinds = {group.name: group.kind for group in groups}
    drawn = range(0, len(points.names), math.ceil(len(points.names) / MOST_POINTS))
    marks = []
    for i in drawn:
        said = f"{cut(points.names[i], 80)} ({cut(points.groups[i], 80)})"
        kind = kinds.get(points.groups[i], OTHERS)
        x, y = places[i].tolist()
        marks.append(mark(kind, x, y, said) if kind != OTHERS else _other_mark(x, y, said))
    members = np.array(points.groups, dtype=object)
    centers = np.array([places[members == group.name].mean(axis=0) for group in groups])
    names = [group.name for group in groups]
    labels = [group_labels(names, centers, places[drawn], aspect, *layout) for layout in layouts]
    style = f"aspect-ratio:{aspect:.4f}"
    return drawing(title, *marks, *labels, class_="map", style=style)


def unit_places(x: Floats, y: Floats) -> tuple[Floats, float]:
    """Return where points stand, as fractions of a drawing, and its width divided by its height.

    A step of 1 in x is as long as a step of 1 in y, and y goes up.
    """
    points = np.column_stack([x, y])
    # Numbers near the largest that there are would overflow in their differences.
    points = points / (np.abs(points).max() or 1)
    width, height = np.ptp(points, axis=0).tolist()
    aspect = min(max(width, height), WIDEST * height) / height if height else WIDEST
    room = ((aspect - 2 * MARGIN, width), (1 - 2 * MARGIN, height))
    scale = min((there / needed for there, needed in room if needed), default=0.0)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    return 0.5 + (points - middle) * [scale / aspect, -scale], aspect


def _other_mark(x: float, y: float, said: str) -> Html:
    dot = element("circle", cx=percent(x), cy=percent(y), r=3)
    return element("g", element("title", said), dot, class_="other")


def group_labels(
    names: Sequence[str],
    centers: Floats,
    marks: Floats,
    aspect: float,
    class_: str,
    width: float,
    font_size: float,
) -> Html:
    """Return names near their centres, placed for a drawing of some width in pixels."""
    box = np.array([width, width / aspect])
    texts = [cut(name, LABEL_LETTERS) for name in names]
    sizes = np.array([[text_width(text, font_size) + 6, font_size * 1.35] for text in texts])
    found = place_labels(centers * box, sizes, marks * box, box)
    parts = []
    for text, name, center, place, size in zip(texts, names, centers, found, sizes, strict=True):
        away = np.abs(place - center * box) > size / 2 + SHORTEST_LEADER
        if away.any():
            parts.append(line(*_leader(place, center * box, size, box), "leader"))
        x, y = (place / box).tolist()
        at = {"x": percent(x), "y": percent(y), "dy": "0.35em"}
        parts.append(element("text", element("title", cut(name, 80)), text, **at))
    return element("g", *parts, class_=f"labels {class_}")


def _leader(
    place: Floats, center: Floats, size: Floats, box: Floats
) -> tuple[float, float, float, float]:
    """Return a line from the edge of a label, on its near side, to the centre of its group."""
    way = center - place
    with np.errstate(divide="ignore"):
        edge = float(np.min(size / 2 / np.abs(way)))
    x1, y1 = ((place + min(edge, 1) * way) / box).tolist()
    x2, y2 = (center / box).tolist()
    return x1, y1, x2, y2


# -------------------------------------------------------------------- reliability


def reliability_diagram(bins: Sequence[tuple[float, float, int]], title: str) -> Html:
    """Return accuracy (up) against confidence (right): a disc a bin, its area the inputs in it.

    A classifier that is as often right as it is sure has all its discs on the diagonal.
    """
    parts = [element("rect", width="100%", height="100%", class_="frame")]
    for tick in (0, 0.25, 0.5, 0.75, 1):
        text = percent_text(tick, digits=0)
        parts += [line(tick, 0, tick, 1, "grid"), line(0, tick, 1, tick, "grid")]
        parts.append(element("text", text, x=percent(tick), y="100%", dy="1.5em", class_="tick"))
        left = {"x": 0, "y": percent(1 - tick), "dx": -7, "dy": "0.35em"}
        parts.append(element("text", text, class_="tick end", **left))
    parts.append(line(0, 1, 1, 0, "diagonal"))
    used = [(confidence, share, count) for confidence, share, count in bins if count]
    most = max((count for _, _, count in used), default=0)
    parts += [line(c, 1 - c, c, 1 - share, "gap") for c, share, _ in used]
    for confidence, share, count in used:
        said = (
            f"{count:,} inputs: {percent_text(confidence)} sure on average, "
            f"{percent_text(share)} right"
        )
        disc = element(
            "circle",
            element("title", said),
            cx=percent(confidence),
            cy=percent(1 - share),
            r=f"{max(LARGEST_DISC * math.sqrt(count / most), SMALLEST_DISC):.1f}",
            class_="bin",
        )
        parts.append(disc)
    return drawing(title, *parts, class_="reliability")

"""The charts of the paper's four figures: a tree, maps, cells of rankings, pairs of classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.class_maps import ClassTree, SemanticMap
from rankshot.experiments.ranking_cells import Cell, RankingCells
from rankshot.experiments.two_classes import TwoClasses
from rankshot.ranking.maps import Group, find_largest_groups
from rankshot.ranking.matrices import NamedOrder
from rankshot.report.charts import (
    PANEL_LAYOUTS,
    PlotLine,
    draw_intervals,
    draw_labels,
    draw_map,
)
from rankshot.report.contents import ClassMap
from rankshot.report.svg import (
    N_COLORS,
    Html,
    draw_chart,
    draw_line,
    draw_mark,
    draw_mark_outline,
    element,
    fit_axis,
    format_coordinate,
)
from rankshot.report.texts import shorten
from rankshot.zeroshot.metrics import format_share

Floats = NDArray[np.float64]
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
MAX_NUMBERED = 8
"""The number of cells, the largest ones, with a number and a written ranking."""
UNITS = 1000
"""Polygons cannot have percentages as coordinates: they are drawn in a nested SVG of this size."""
HATCHING = 0.016
"""The distance between two lines of a hatching."""
STEP, MARK_ROOM, EDGE = 22, 16, 7
"""Pixels from a node to those below it, from a mark to its name, and at the left edge."""
MAX_LETTERS = 26
ROW_REM = 1.6


# ---- Cells of rankings
#
# Points u are fractions of the chart, from its upper left corner. A line is where w'u + b is 0. A
# cell is a part of the square on one side of every line.


def draw_cells(found: RankingCells) -> Html:
    """Return the cells, the lines, some inputs, and the numbers of the largest cells."""
    coef, intercept = scale_lines(found)
    kinds = {name: kind for kind, name in enumerate(found.classes)}
    polygons = [cell_polygon(cell, coef, intercept) for cell in found.cells]
    size = found.high - found.low
    aspect = float(size[0] / size[1])
    cells = [
        _draw_cell(cell, polygon, kinds)
        for cell, polygon in zip(found.cells, polygons, strict=True)
    ]
    view = {"viewBox": f"0 0 {UNITS} {UNITS}", "preserveAspectRatio": "none", "aria_hidden": "true"}
    parts = [element("svg", *cells, width="100%", height="100%", **view)]
    first, second = np.triu_indices(len(found.classes), 1)
    for w, b, i, j in zip(coef, intercept, first, second, strict=True):
        if (ends := chord(SQUARE, w, b)) is not None:
            tooltip = f"{shorten(found.classes[i], 60)} | {shorten(found.classes[j], 60)}"
            (x1, y1), (x2, y2) = ends.tolist()
            drawn = draw_line(x1, y1, x2, y2, "pair-line")
            parts.append(element("g", element("title", tooltip), drawn))
    places = (found.inputs - found.low) / size * [1, -1] + [0, 1]
    for (x, y), label in zip(places.tolist(), found.input_labels.tolist(), strict=True):
        parts.append(draw_mark(kinds[label], x, y, shorten(label, 80)))
    middles = np.array([centroid(polygon) for polygon in polygons[:MAX_NUMBERED]])
    for number, (x, y) in enumerate(middles.tolist(), start=1):
        at = {"x": format_coordinate(x), "y": format_coordinate(y), "dy": "0.35em"}
        parts.append(element("text", str(number), class_="cell-number", **at))
    centers = np.array([places[found.input_labels == name].mean(axis=0) for name in found.classes])
    covered = np.vstack([places, middles])
    parts += [
        draw_labels(found.classes, centers, covered, aspect, *layout) for layout in PANEL_LAYOUTS
    ]
    title = f"{len(found.cells)} cells of the plane, separated by {len(coef)} lines"
    return draw_chart(title, *parts, class_="map cells", style=f"aspect-ratio:{aspect:.4f}")


def format_ranking(ranking: NamedOrder) -> str:
    """Return a ranking on one line.

    Examples
    --------
    >>> from rankshot.report.paper_figures import format_ranking
    >>> format_ranking(("bus", ("fox", "wolf")))
    'bus › fox = wolf'
    """
    return " › ".join(" = ".join(one) if isinstance(one, tuple) else one for one in ranking)


def scale_lines(found: RankingCells) -> tuple[Floats, Floats]:
    """Return the lines for points that are fractions of the chart, where y goes down."""
    size = (found.high - found.low) * [1, -1]
    corner = np.array([found.low[0], found.high[1]])
    return found.coef * size, found.intercept + found.coef @ corner


def cell_polygon(cell: Cell, coef: Floats, intercept: Floats) -> Floats:
    """Return the corners of a cell: the part of the square on its side of every line."""
    polygon = SQUARE
    for sign, w, b in zip(cell.signs, coef, intercept, strict=True):
        polygon = _clip_polygon(polygon, sign * w, sign * b)
    return polygon


def chord(polygon: Floats, w: Floats, b: float) -> Floats | None:
    """Return the two points where a line crosses the edge of a convex polygon, or None."""
    crossings = _crossings(polygon, w, b)
    return crossings[~np.isnan(crossings[:, 0])] if np.isfinite(crossings).any() else None


def centroid(polygon: Floats) -> Floats:
    """Return the centroid of a polygon."""
    after = np.roll(polygon, -1, axis=0)
    cross = polygon[:, 0] * after[:, 1] - after[:, 0] * polygon[:, 1]
    return np.asarray(((polygon + after) * cross[:, None]).sum(axis=0) / (3 * cross.sum()))


def _clip_polygon(polygon: Floats, w: Floats, b: float) -> Floats:
    """Return the part of a convex polygon where w'u + b is positive."""
    inside = polygon @ w + b > 0
    if inside.all():
        return polygon
    # Each corner that stays is followed by the point where its edge crosses the line, if it does.
    corners = np.where(inside[:, None], polygon, np.nan)
    pieces = np.stack([corners, _crossings(polygon, w, b)], axis=1).reshape(-1, 2)
    return np.asarray(pieces[~np.isnan(pieces[:, 0])])


def _crossings(polygon: Floats, w: Floats, b: float) -> Floats:
    """Return the point where each edge crosses a line; NaN for an edge that does not cross it."""
    value = polygon @ w + b
    after = np.roll(polygon, -1, axis=0)
    crosses = (value > 0) != (np.roll(value, -1) > 0)
    step = np.full(len(polygon), np.nan)
    np.divide(value, value - np.roll(value, -1), out=step, where=crosses)
    return np.asarray(polygon + step[:, None] * (after - polygon))


def _draw_cell(cell: Cell, polygon: Floats, kinds: dict[str, int]) -> Html:
    """Return a cell in the colour of the class that it ranks first; a cycle of pairs is hatched."""
    first = cell.ranking[0]
    look = "nobody" if isinstance(first, tuple) else f"c{kinds[first] % N_COLORS}"
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (UNITS * polygon).tolist())
    tooltip = format_ranking(tuple(_shorten_names(one) for one in cell.ranking))
    if not cell.transitive:
        tooltip += " (the winners of pairs form a cycle)"
    parts = [element("title", tooltip), element("polygon", points=corners)]
    if not cell.transitive:
        parts.append(element("path", d=_hatching_path(polygon), class_="hatching"))
    return element("g", *parts, class_=f"cell {look}")


def _shorten_names(one: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return tuple(shorten(name, 60) for name in one) if isinstance(one, tuple) else shorten(one, 60)


def _hatching_path(polygon: Floats) -> str:
    """Return diagonal lines across a polygon, as a path."""
    way = np.array([1.0, 1.0])
    low, high = (polygon @ way).min(), (polygon @ way).max()
    path = []
    for place in np.arange(np.ceil(low / HATCHING), np.ceil(high / HATCHING)) * HATCHING:
        if (ends := chord(polygon, way, -float(place))) is not None:
            (x1, y1), (x2, y2) = (UNITS * ends).tolist()
            path.append(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")
    return "".join(path)


# ---- Maps


def draw_semantic_map(points: SemanticMap, *, labels: bool) -> Html:
    """Return a map of classes, with their names beside the points or without (see `map_legend`)."""
    n_points, n_classes = len(points.targets), len(set(points.targets))
    shown = f"{n_points} classes" if labels else f"{n_points} points of {n_classes} classes"
    title = f"Map of {shown} by {points.name}"
    return draw_map(_to_class_map(points), title, PANEL_LAYOUTS if labels else ())


def map_legend(points: SemanticMap) -> list[Group]:
    """Return the classes and their marks, which are the same on all maps of these classes."""
    return find_largest_groups(points.targets)


def _to_class_map(points: SemanticMap) -> ClassMap:
    x, y = points.places.T.tolist()
    return ClassMap(points.sources, points.targets, tuple(x), tuple(y))


# ---- Tree


def draw_tree(tree: ClassTree) -> Html:
    """Return the tree as an outline with one line per node, which fits a phone.

    A class has the same mark as on the maps.
    """
    nodes = list(tree.root.walk())
    kinds = {name: kind for kind, (name, _) in enumerate(tree.senses)}
    middles = [format_coordinate((row + 0.5) / len(nodes)) for row in range(len(nodes))]
    parts = [element("desc", str(tree.root))]
    for row, (depth, _) in enumerate(nodes[1:], start=1):
        parent = max(above for above in range(row) if nodes[above][0] == depth - 1)
        x = EDGE + STEP * (depth - 1)
        # A branch starts below the label of its parent.
        start = format_coordinate((parent + 0.85) / len(nodes))
        down = {"x1": x, "y1": start, "x2": x, "y2": middles[row]}
        across = {"x1": x, "y1": middles[row], "x2": x + STEP - 9, "y2": middles[row]}
        parts += [element("line", class_="branch", **ends) for ends in (down, across)]
    for middle, (depth, node) in zip(middles, nodes, strict=True):
        x = EDGE + STEP * depth
        kind = kinds.get(node.label)
        if kind is not None:
            shape = draw_mark_outline(kind, str(x), middle)
            parts.append(element("g", shape, class_=f"c{kind % N_COLORS}"))
            x += MARK_ROOM
        label = node.label if node.is_class else node.label.replace("_", " ")
        text = {"x": x - EDGE + 2, "y": middle, "dy": "0.35em"}
        look = "class-name" if node.is_class else "kind"
        shown = shorten(label, MAX_LETTERS)
        parts.append(
            element("text", element("title", shorten(label, 80)), shown, class_=look, **text)
        )
    title = f"Tree of {len(kinds)} classes in WordNet"
    style = f"height:{ROW_REM * len(nodes):.1f}rem"
    return draw_chart(title, *parts, class_="tree", style=style)


# ---- Pairs of classes


def two_class_lines(found: TwoClasses) -> list[PlotLine]:
    """Return one line per pair, and one for the mean over all pairs."""
    lines = [
        PlotLine(f"{one} – {other}", cells, "two classes")
        for (one, other), cells in zip(found.pairs, found.accuracy, strict=True)
    ]
    return [*lines, PlotLine(f"all {found.n_pairs} pairs", found.mean, "mean")]


def draw_two_classes(found: TwoClasses) -> Html:
    """Return the plot, without the labels of its lines."""
    lines = two_class_lines(found)
    axis = fit_axis([value for row in lines for cell in row.cells if cell for value in cell])
    title = (
        f"Accuracy on {len(found.pairs)} pairs of classes by {len(found.methods)} methods, from "
        f"{format_share(axis.low)} on the left to {format_share(axis.high)} on the right"
    )
    return draw_intervals(lines, found.methods, axis, title)

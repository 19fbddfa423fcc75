"""Cells of the plane that lines cut out, each with its ranking.

Places are fractions of the drawing, from its upper left corner. There a line is where w'u + b is 0,
and a cell is what is left of the square when it is cut along every line.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.class_maps import ClassTree, SemanticMap
from rankshot.experiments.ranking_cells import Cell, RankingCells
from rankshot.experiments.two_classes import TwoClasses
from rankshot.ranking.dense import NamedOrder
from rankshot.report.charts import (
    PANEL_WIDTHS,
    Group,
    PlotLine,
    group_labels,
    interval_plot,
    map_groups,
    scatter_map,
)
from rankshot.report.contents import ClassMap
from rankshot.report.svg import (
    N_COLORS,
    Html,
    drawing,
    element,
    line,
    mark,
    mark_shape,
    percent,
    share_axis,
)
from rankshot.report.texts import cut, share_text

Floats = NDArray[np.float64]
SQUARE = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
NUMBERED = 8
"""So many of the largest cells have a number, and their ranking is written out."""
UNITS = 1000
"""A nested drawing of so many units a side takes polygons, whose places cannot be per cent."""
HATCHING = 0.016
"""From one line of a hatching to the next."""
STEP, MARK_ROOM, EDGE = 22, 16, 7
"""Pixels: from a node to those below it, from a mark to its name, and left of everything."""
MOST_LETTERS = 26
ROW_REM = 1.6


# -------------------- report.cells_figure
# Cells of the plane that lines cut out, each with its ranking.
#
# Places are fractions of the drawing, from its upper left corner. There a line is where w'u + b is 0,
# and a cell is what is left of the square when it is cut along every line.


def cells_drawing(found: RankingCells) -> Html:
    """Return the cells, the lines, some inputs, and the numbers of the largest cells."""
    coef, intercept = unit_lines(found)
    kinds = {name: kind for kind, name in enumerate(found.classes)}
    polygons = [cell_polygon(cell, coef, intercept) for cell in found.cells]
    size = found.high - found.low
    aspect = float(size[0] / size[1])
    areas = [
        _area(cell, polygon, kinds) for cell, polygon in zip(found.cells, polygons, strict=True)
    ]
    view = {"viewBox": f"0 0 {UNITS} {UNITS}", "preserveAspectRatio": "none", "aria_hidden": "true"}
    parts = [element("svg", *areas, width="100%", height="100%", **view)]
    first, second = np.triu_indices(len(found.classes), 1)
    for w, b, i, j in zip(coef, intercept, first, second, strict=True):
        if (ends := chord(SQUARE, w, b)) is not None:
            said = f"{cut(found.classes[i], 60)} | {cut(found.classes[j], 60)}"
            (x1, y1), (x2, y2) = ends.tolist()
            drawn = line(x1, y1, x2, y2, "pair-line")
            parts.append(element("g", element("title", said), drawn))
    places = (found.inputs - found.low) / size * [1, -1] + [0, 1]
    for (x, y), label in zip(places.tolist(), found.input_labels.tolist(), strict=True):
        parts.append(mark(kinds[label], x, y, cut(label, 80)))
    middles = np.array([centroid(polygon) for polygon in polygons[:NUMBERED]])
    for number, (x, y) in enumerate(middles.tolist(), start=1):
        at = {"x": percent(x), "y": percent(y), "dy": "0.35em"}
        parts.append(element("text", str(number), class_="cell-number", **at))
    centers = np.array([places[found.input_labels == name].mean(axis=0) for name in found.classes])
    covered = np.vstack([places, middles])
    parts += [
        group_labels(found.classes, centers, covered, aspect, *layout) for layout in PANEL_WIDTHS
    ]
    title = f"{len(found.cells)} cells of the plane that {len(coef)} lines cut out"
    return drawing(title, *parts, class_="map cells", style=f"aspect-ratio:{aspect:.4f}")


def ranking_text(ranking: NamedOrder) -> str:
    """Return a ranking on one line.

    Examples
    --------
    >>> from rankshot.report.paper_figures import ranking_text
    >>> ranking_text(("bus", ("fox", "wolf")))
    'bus › fox = wolf'
    """
    return " › ".join(" = ".join(one) if isinstance(one, tuple) else one for one in ranking)


def unit_lines(found: RankingCells) -> tuple[Floats, Floats]:
    """Return the lines in fractions of the drawing, where y goes down."""
    size = (found.high - found.low) * [1, -1]
    corner = np.array([found.low[0], found.high[1]])
    return found.coef * size, found.intercept + found.coef @ corner


# -------------------------------------------------------------------- geometry


def cell_polygon(cell: Cell, coef: Floats, intercept: Floats) -> Floats:
    """Return the corners of a cell: of the square, what is on its side of every line."""
    polygon = SQUARE
    for sign, w, b in zip(cell.signs, coef, intercept, strict=True):
        polygon = _cut_off(polygon, sign * w, sign * b)
    return polygon


def chord(polygon: Floats, w: Floats, b: float) -> Floats | None:
    """Return the two points where a line enters and leaves a convex polygon, if it does."""
    crossings = _crossings(polygon, w, b)
    return crossings[~np.isnan(crossings[:, 0])] if np.isfinite(crossings).any() else None


def centroid(polygon: Floats) -> Floats:
    """Return the centre of gravity of a polygon."""
    after = np.roll(polygon, -1, axis=0)
    cross = polygon[:, 0] * after[:, 1] - after[:, 0] * polygon[:, 1]
    return np.asarray(((polygon + after) * cross[:, None]).sum(axis=0) / (3 * cross.sum()))


def _cut_off(polygon: Floats, w: Floats, b: float) -> Floats:
    """Return the part of a convex polygon where w'u + b is positive."""
    inside = polygon @ w + b > 0
    # After each corner that stays, or instead of it, comes where its edge crosses the line.
    corners = np.where(inside[:, None], polygon, np.nan)
    pieces = np.stack([corners, _crossings(polygon, w, b)], axis=1).reshape(-1, 2)
    return np.asarray(pieces[~np.isnan(pieces[:, 0])])


def _crossings(polygon: Floats, w: Floats, b: float) -> Floats:
    """Return where the edge from each corner to the next crosses a line; NaN where none does."""
    value = polygon @ w + b
    after = np.roll(polygon, -1, axis=0)
    crosses = (value > 0) != (np.roll(value, -1) > 0)
    step = np.full(len(polygon), np.nan)
    np.divide(value, value - np.roll(value, -1), out=step, where=crosses)
    return np.asarray(polygon + step[:, None] * (after - polygon))


# -------------------------------------------------------------------- areas


def _area(cell: Cell, polygon: Floats, kinds: dict[str, int]) -> Html:
    """Return a cell, in the colour of the class that it ranks first, hatched where it is odd."""
    first = cell.ranking[0]
    look = "nobody" if isinstance(first, tuple) else f"c{kinds[first] % N_COLORS}"
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in (UNITS * polygon).tolist())
    said = ranking_text(tuple(_short(one) for one in cell.ranking))
    if not cell.transitive:
        said += " (the winners of pairs form a circle)"
    parts = [element("title", said), element("polygon", points=corners)]
    if not cell.transitive:
        parts.append(element("path", d=_hatching(polygon), class_="hatching"))
    return element("g", *parts, class_=f"cell {look}")


def _short(one: str | tuple[str, ...]) -> str | tuple[str, ...]:
    return tuple(cut(name, 60) for name in one) if isinstance(one, tuple) else cut(one, 60)


def _hatching(polygon: Floats) -> str:
    """Return slanted lines across a polygon, as a path."""
    way = np.array([1.0, 1.0])
    low, high = (polygon @ way).min(), (polygon @ way).max()
    path = []
    for place in np.arange(np.ceil(low / HATCHING), np.ceil(high / HATCHING)) * HATCHING:
        if (ends := chord(polygon, way, -float(place))) is not None:
            (x1, y1), (x2, y2) = (UNITS * ends).tolist()
            path.append(f"M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}")
    return "".join(path)


# -------------------- report.map_figure
# Maps of classes, side by side, with one legend for all of them.


def labelled_map(points: SemanticMap) -> Html:
    """Return a map with a point a class, each with its name beside it."""
    title = f"Map of {len(points.targets)} classes by {points.name}"
    return scatter_map(_class_map(points), title, PANEL_WIDTHS)


def marked_map(points: SemanticMap) -> Html:
    """Return a map with several points a class, told apart by their marks; see `map_legend`."""
    n_classes = len(set(points.targets))
    title = f"Map of {len(points.targets)} points of {n_classes} classes by {points.name}"
    return scatter_map(_class_map(points), title, ())


def map_legend(points: SemanticMap) -> list[Group]:
    """Return the classes and their marks: the same on all maps of the same points."""
    return map_groups(_class_map(points))


def _class_map(points: SemanticMap) -> ClassMap:
    x, y = points.places.T.tolist()
    return ClassMap(points.sources, points.targets, tuple(x), tuple(y))


# -------------------- report.tree_figure
# A tree of classes, drawn as an outline: a line a node, which fits a phone and a column.


def tree_drawing(tree: ClassTree) -> Html:
    """Return the tree, from the top; the classes have the marks that they have on the maps."""
    nodes = list(tree.root.walk())
    kinds = {name: kind for kind, (name, _) in enumerate(tree.senses)}
    middles = [percent((row + 0.5) / len(nodes)) for row in range(len(nodes))]
    parts = [element("desc", str(tree.root))]
    for row, (depth, _) in enumerate(nodes[1:], start=1):
        parent = max(above for above in range(row) if nodes[above][0] == depth - 1)
        x = EDGE + STEP * (depth - 1)
        # A branch starts below its word.
        start = percent((parent + 0.85) / len(nodes))
        down = {"x1": x, "y1": start, "x2": x, "y2": middles[row]}
        across = {"x1": x, "y1": middles[row], "x2": x + STEP - 9, "y2": middles[row]}
        parts += [element("line", class_="branch", **ends) for ends in (down, across)]
    for middle, (depth, node) in zip(middles, nodes, strict=True):
        x = EDGE + STEP * depth
        kind = kinds.get(node.label)
        if kind is not None:
            shape = mark_shape(kind, str(x), middle)
            parts.append(element("g", shape, class_=f"c{kind % N_COLORS}"))
            x += MARK_ROOM
        label = node.label if node.is_class else node.label.replace("_", " ")
        text = {"x": x - EDGE + 2, "y": middle, "dy": "0.35em"}
        look = "class-name" if node.is_class else "kind"
        shown = cut(label, MOST_LETTERS)
        parts.append(element("text", element("title", cut(label, 80)), shown, class_=look, **text))
    title = f"Tree of {len(kinds)} classes in WordNet"
    style = f"height:{ROW_REM * len(nodes):.1f}rem"
    return drawing(title, *parts, class_="tree", style=style)


# -------------------- report.two_class_figure
# Accuracies on pairs of classes, drawn as dots with intervals, a mark a method.


def two_class_lines(found: TwoClasses) -> list[PlotLine]:
    """Return a line a pair, and one for the mean over all pairs."""
    lines = [
        PlotLine(f"{one} – {other}", cells, "two classes")
        for (one, other), cells in zip(found.pairs, found.accuracy, strict=True)
    ]
    return [*lines, PlotLine(f"all {found.n_pairs} pairs", found.mean, "mean")]


def two_class_drawing(found: TwoClasses) -> Html:
    """Return the plot; the names of its lines stand outside."""
    lines = two_class_lines(found)
    axis = share_axis([value for row in lines for cell in row.cells if cell for value in cell])
    title = (
        f"Accuracy on {len(found.pairs)} pairs of classes by {len(found.methods)} methods, from "
        f"{share_text(axis.low)} on the left to {share_text(axis.high)} on the right"
    )
    return interval_plot(lines, found.methods, axis, title)

"""Maps of classes, side by side, with one legend for all of them."""

from __future__ import annotations

from rankshot.experiments.semantic_maps import SemanticMap
from rankshot.report.charts import PANEL_WIDTHS, Group, map_groups, scatter_map
from rankshot.report.contents import ClassMap
from rankshot.report.svg import Html


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

"""A map of rankings or classes: what is similar is near. Names are placed where there is room."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.spatial.distance import cdist

from rankshot.core.errors import RankshotError, quote_names
from rankshot.plots.axes import (
    COLOURS,
    GRID,
    LETTER,
    LIGHT,
    MUTED,
    TITLE_GID,
    WIDTH,
    Display,
    choose_names,
    choose_style,
    shorten,
)
from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.parts import require_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity

Floats = NDArray[np.float64]
FONT_SIZE = 9.0
"""Points."""
LABEL_LETTERS = 22
CAPTION_LETTERS = 80
GROUPS_WITHOUT_LEGEND = 12
"""So many names nearly always have room on a map."""
MAX_RANKINGS = 1000
"""A map shows at most this many rankings, because it needs the distance of every pair."""
MAX_GROUPS = 40
"""Groups with a mark and a label of their own on a map."""
LEADER = 1.5
"""A label further from its point than this many lines is joined to it."""


@dataclass(eq=False, repr=False)
class MapDisplay(Display):
    """A map on which the distances of points are about those of rankings, or of classes.

    The points come from classical multidimensional scaling. The name of a group is near the middle
    of its points. The 40 largest groups have names and marks; the points of the others are grey.
    If every point is a group of its own, all have the same mark, and their names beside them. A
    name for which there is no room is left out; more than 12 groups have a legend below the map.
    Use `from_rankings` or `from_similarity` to make one.

    Parameters
    ----------
    places : ndarray of shape (points, 2)
    groups : list of str
        The group of each point.
    caption : str
        What is compared; it is written below the map.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["lion", "fox", "bus"], ["fox", "lion", "bus"], ["bus", "lion", "fox"]],
    ...     targets=["cat", "cat", "truck"])
    >>> display = rs.plots.MapDisplay.from_rankings(votes)
    >>> display.places[:, 0].round(2).tolist()
    [-0.11, -0.44, 0.56]
    """

    places: Floats
    groups: list[str]
    caption: str = ""

    @classmethod
    def from_rankings(
        cls,
        rankings: Rankings,
        *,
        groups: Iterable[Any] | None = None,
        k: int | None = None,
        ax: Any = None,
    ) -> MapDisplay:
        """Draw a point for each ranking, by Kendall's distance.

        Parameters
        ----------
        rankings : Rankings
            The first 1,000 are drawn.
        groups : iterable of names, optional
            The group of each ranking, such as ``mixture.predict(rankings)``; by default its
            target, or else its source, its rater or its number.
        k : int, optional
            How many places are compared; at most, and by default, as many as the shortest ranking
            has.
        """
        rankings = require_rankings(rankings)
        names = choose_names(rankings.targets, rankings.sources, rankings.raters)
        if groups is not None:
            names = [str(name) for name in groups]
        if len(rankings) < 2 or len(names) != len(rankings):
            raise RankshotError(
                "a map needs two rankings or more, each with a group, not "
                f"{len(names):,} groups for {len(rankings):,} rankings"
            )
        found = place_rankings(rankings[:MAX_RANKINGS], k)
        first = f"the first {found.k} places" if found.k > 1 else "the first place"
        caption = f"Kendall's distance of {first}"
        if len(rankings) > MAX_RANKINGS:
            caption += f"; the first {MAX_RANKINGS:,} of {len(rankings):,} rankings"
        return cls(found.places, names[:MAX_RANKINGS], caption).plot(ax)

    @classmethod
    def from_similarity(cls, similarity: Similarity, *, ax: Any = None) -> MapDisplay:
        """Draw a point for each target, by the Euclidean distance of its similarities to the items.

        Parameters
        ----------
        similarity : Similarity
            Targets and items that the source does not know are left out.

        Examples
        --------
        >>> import rankshot as rs
        >>> table = rs.Similarity(
        ...     [[.9, .2], [.8, .3], [.1, .9]], ["cat", "dog", "truck"], ["tiger", "bus"])
        >>> rs.plots.MapDisplay.from_similarity(table).groups
        ['cat', 'dog', 'truck']
        """
        values = similarity.values[:, ~np.isnan(similarity.values).all(axis=0)]
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        names = [similarity.targets[row] for row in known]
        unknown = [name for name in similarity.targets if name not in set(names)]
        if len(names) < 2:
            raise RankshotError(
                "a map needs two targets or more whose similarity to all items is known; "
                f"{quote_names(unknown)} cannot be placed"
            )
        caption = f"Euclidean distance of similarities, {similarity.source}"
        if unknown:
            caption += f"; without {quote_names(unknown, 3)}"
        return cls(place_points(cdist(values[known], values[known])), names, caption).plot(ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        width = width or WIDTH
        names = self._list_legend()
        rows = math.ceil(len(names) / _count_columns(names, width))
        return width, 0.8 * width + 0.17 * rows

    def _list_legend(self) -> list[str]:
        """Return the names of a legend; a few groups, and points without groups, have none."""
        names = find_largest_groups(self.groups)
        alone = len(set(self.groups)) == len(self.groups)
        return [] if alone or len(names) <= GROUPS_WITHOUT_LEGEND else names

    def _draw(self, ax: Any) -> None:
        members = np.array(self.groups, dtype=object)
        legend = self._list_legend()
        names, centers = self.groups, self.places
        if len(set(names)) == len(names):
            self._draw_points(self.places, choose_style(0, 0))
        else:
            names = find_largest_groups(self.groups)
            centers = np.array([self.places[members == name].mean(axis=0) for name in names])
            others = self.places[~np.isin(members, names)]
            self._draw_points(others, {"marker": ".", "color": LIGHT, "markersize": 4})
            for kind, name in enumerate(names):
                style = choose_style(kind, kind // len(COLOURS))
                if legend:
                    style["label"] = shorten(name, LABEL_LETTERS)
                points = self.places[members == name]
                self._draw_points(points, style | {"gid": TITLE_GID + shorten(name, 80)})
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.08)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(shorten(self.caption, CAPTION_LETTERS), fontsize=FONT_SIZE)
        if legend:
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.08 if self.caption else 0)}
            n_columns = _count_columns(legend, ax.figure.get_figwidth())
            ax.legend(**below, ncols=n_columns, fontsize=8, frameon=False, handletextpad=0.1)
        ax.spines[:].set_color(GRID)
        self._draw_labels(names, centers)

    def _draw_points(self, points: Floats, style: dict[str, Any]) -> None:
        self.ax_.plot(*points.T, **{**style, "linestyle": "none"}, alpha=0.8)

    def _draw_labels(self, names: list[str], centers: Floats) -> None:
        """Write names near their centres where there is room, in the present size of the axes."""
        ax = self.ax_
        ax.figure.draw_without_rendering()
        box, to_pixels = ax.get_window_extent(), ax.transData
        corner = np.array([box.x0, box.y0])
        line = FONT_SIZE * ax.figure.dpi / 72
        texts = [shorten(name, LABEL_LETTERS) for name in names]
        sizes = np.array([[_measure_text(text, line) + 6, 1.35 * line] for text in texts])
        middles = to_pixels.transform(centers) - corner
        marks = to_pixels.transform(self.places) - corner
        found = place_labels(middles, sizes, marks, np.array([box.width, box.height]))
        for text, center, middle, place in zip(texts, centers, middles, found, strict=True):
            if np.isnan(place).any():
                continue
            far = np.abs(place - middle)[1] > LEADER * line
            ax.annotate(
                text,
                center,
                to_pixels.inverted().transform(place + corner),
                ha="center",
                va="center",
                fontsize=FONT_SIZE,
                arrowprops={"arrowstyle": "-", "color": MUTED} if far else None,
            )


def _count_columns(names: list[str], width: float) -> int:
    longest = max((len(shorten(name, LABEL_LETTERS)) for name in names), default=1)
    return max(1, int((width - 0.3) / (LETTER * longest + 0.35)))


# ---- Places of labels

MARK_RADIUS = 4.0
DIRECTIONS = 16
RINGS = 10
"""A label is tried in this many directions, at this many distances: half a line apart. A longer
leader would cross other labels."""
ROUNDING = 1e-5
"""Labels that overlap by less, in pixels, are beside each other."""
COST_OF_COVERING = 25.0
"""A label moves this many pixels further away to leave one more mark uncovered."""
MAX_COVERED = 3
"""A label that covers more marks than this hides more than it tells."""


def _measure_text(text: str, font_size: float) -> float:
    """Return the approximate width of a text; Chinese, Japanese and Korean letters are square."""
    ems = sum(1.0 if unicodedata.east_asian_width(letter) in "WF" else 0.6 for letter in text)
    return ems * font_size


def place_labels(centers: Floats, sizes: Floats, points: Floats, box: Floats) -> Floats:
    """Return the middle of each label, as near to its centre as other labels and marks allow.

    A label that would overlap others, or many marks (``points``), has no place: NaN. ``sizes`` are
    widths and heights, and so is ``box``, of the chart.

    Examples
    --------
    Two labels for the same place are put one above the other:

    >>> import numpy as np
    >>> from rankshot.plots.map import place_labels
    >>> middle, size = [50.0, 50.0], [40.0, 10.0]
    >>> place_labels(np.array([middle] * 2), np.array([size] * 2), np.empty((0, 2)),
    ...              np.array([100.0, 100.0])).tolist()
    [[50.0, 50.0], [50.0, 40.0]]
    """
    places = np.full(centers.shape, np.nan)
    # The widest label has the fewest possible places, so it is placed first.
    for chosen, label in enumerate(order := np.argsort(-sizes[:, 0], kind="stable")):
        free = _list_candidates(centers[label], sizes[label], box)
        placed = order[:chosen][~np.isnan(places[order[:chosen], 0])]
        gap = (sizes[label] + sizes[placed]) / 2 - np.abs(free[:, None] - places[placed])
        free = free[~(gap.min(axis=-1) > ROUNDING).any(axis=1)]
        near = np.abs(free[:, None] - points) < sizes[label] / 2 + MARK_RADIUS
        covered = near.all(axis=-1).sum(axis=1)
        cost = np.hypot(*(free - centers[label]).T) + COST_OF_COVERING * covered
        cost[covered > MAX_COVERED] = np.inf
        if np.isfinite(cost).any():
            places[label] = free[np.argmin(cost)]
    return places


def _list_candidates(center: Floats, size: Floats, box: Floats) -> Floats:
    """Return the centre and rings around it, moved so that the label is inside the box."""
    angles = np.arange(DIRECTIONS) * 2 * np.pi / DIRECTIONS - np.pi / 2
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    # Rings are half the height of a label apart, so that labels can be stacked without a gap.
    radii = np.arange(1, RINGS + 1) * size[1] / 2
    rings = (radii[:, None, None] * circle).reshape(-1, 2)
    moved = center + np.vstack([np.zeros((1, 2)), rings])
    low, high = np.minimum(size / 2, box / 2), np.maximum(box - size / 2, box / 2)
    inside: Floats = np.clip(moved, low, high).round(6)
    return inside


# ---- Where the points are


def place_points(distances: Floats) -> Floats:
    """Place points in the plane, by classical scaling, at nearly the given distances.

    The farthest point on each axis has a positive coordinate. An axis that the distances do not
    need is 0.
    """
    squares = np.square(distances)
    rows = squares.mean(axis=1)
    products = -0.5 * (squares - rows - rows[:, None] + squares.mean())
    n_axes = min(2, len(products))
    values, vectors = eigh(products, subset_by_index=(len(products) - n_axes, len(products) - 1))
    points = vectors[:, ::-1] * np.sqrt(np.maximum(values[::-1], 0))
    farthest = np.take_along_axis(points, np.abs(points).argmax(axis=0)[None], axis=0)
    points = points * np.where(farthest < 0, -1, 1)
    return np.pad(points, ((0, 0), (0, 2 - n_axes)))


class RankingMap(NamedTuple):
    """The places of rankings on a map, and what a caption needs.

    ``k`` places of each ranking were compared; ``n_apart`` pairs have no two items in common.
    """

    places: Floats
    k: int
    n_apart: int


def place_rankings(rankings: Rankings, k: int | None = None) -> RankingMap:
    """Place rankings on a map, by Kendall's distance of their first ``k`` places.

    The default, and the most, is the length of the shortest ranking. Subset rankings are compared
    on the items that both compare; two rankings without two common items are placed as if they had
    opposite orders.
    """
    shortest = int(rankings.lengths.min())
    k = shortest if k is None else min(k, shortest)
    distances = compare_common_items(rankings, k=k)
    apart = np.isnan(distances)
    distances[apart] = 1
    # The mean distance of a ranking with ties to itself is positive; that of a point is 0.
    np.fill_diagonal(distances, 0)
    return RankingMap(place_points(distances), k, int(apart.sum()) // 2)


def find_largest_groups(groups: Sequence[str]) -> list[str]:
    """Return the groups with a mark of their own: the largest, in the order of the points."""
    counts = Counter(groups)
    largest = set(sorted(counts, key=lambda name: (-counts[name], name))[:MAX_GROUPS])
    return [name for name in counts if name in largest]

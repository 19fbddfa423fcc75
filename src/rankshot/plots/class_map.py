"""A map of rankings or classes on Matplotlib axes: what is similar is near."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr
from rankshot.core.label_places import place_labels, text_width
from rankshot.core.validation import require_whole_number
from rankshot.plots.axes import COLOURS, Display, choose_names, choose_style, shorten
from rankshot.ranking.maps import MAX_RANKINGS, find_largest_groups, place_points, place_rankings
from rankshot.ranking.parts import require_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity

Floats = NDArray[np.float64]
SIZE = (6.4, 5.2)
"""Inches."""
FONT_SIZE = 9.0
"""Points."""
LABEL_LETTERS = 22
CAPTION_LETTERS = 80
POINTS_PER_INCH = 72.0
LEADER = 1.5
"""A label further from its point than this many lines is joined to it."""


@dataclass(eq=False, repr=False)
class MapDisplay(Display):
    """A map on which the distances of points are about those of rankings, or of classes.

    The points come from classical multidimensional scaling. The name of a group is near the middle
    of its points. The 40 largest groups have names and marks; the points of the others are grey.
    If every point is a group of its own, all have the same mark, and their names beside them. A
    name for which there is no room is left out. Use `from_rankings` or `from_similarity` to make
    one.

    Parameters
    ----------
    places : ndarray of shape (points, 2)
    groups : list of str
        The group of each point.
    caption : str
        What is compared; it is written below the map.

    Attributes
    ----------
    ax_, figure_
        The Matplotlib axes and figure of the last `plot`.

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
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        rankings = require_rankings(rankings)
        if len(rankings) < 2:
            raise RankshotError(
                f"a map needs two rankings or more, not {format_count(len(rankings), 'ranking')}"
            )
        names = choose_names(rankings.targets, rankings.sources, rankings.raters)
        if groups is not None:
            names = [str(name) for name in groups]
            if len(names) != len(rankings):
                raise RankshotError(f"{len(names):,} groups for {len(rankings):,} rankings")
        k = None if k is None else require_whole_number("k", k)
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
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.

        Examples
        --------
        >>> import rankshot as rs
        >>> table = rs.Similarity(
        ...     [[.9, .2], [.8, .3], [.1, .9]], ["cat", "dog", "truck"], ["tiger", "bus"])
        >>> rs.plots.MapDisplay.from_similarity(table).groups
        ['cat', 'dog', 'truck']
        """
        if not isinstance(similarity, Similarity):
            raise RankshotError(f"expected a Similarity, not {short_repr(similarity)}")
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

    def plot(self, ax: Any = None) -> MapDisplay:
        """Draw on ``ax``, or on a new figure; return the display."""
        ax = self._open_axes(ax, *SIZE)
        members = np.array(self.groups, dtype=object)
        if len(set(self.groups)) == len(self.groups):
            names, centers = self.groups, self.places
            self._draw_points(self.places, choose_style(0, 0))
        else:
            groups = find_largest_groups(self.groups)
            names = [group.name for group in groups]
            centers = np.array([self.places[members == name].mean(axis=0) for name in names])
            others = self.places[~np.isin(members, names)]
            self._draw_points(others, {"marker": ".", "color": "0.75", "markersize": 4})
            for group in groups:
                style = choose_style(group.kind, group.kind // len(COLOURS))
                self._draw_points(self.places[members == group.name], style)
        ax.set_aspect("equal", adjustable="datalim")
        ax.margins(0.08)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel(shorten(self.caption, CAPTION_LETTERS), fontsize=FONT_SIZE)
        self._draw_labels(names, centers)
        return self

    def _draw_points(self, points: Floats, style: dict[str, Any]) -> None:
        self.ax_.plot(*points.T, **{**style, "linestyle": "none"}, alpha=0.8)

    def _draw_labels(self, names: list[str], centers: Floats) -> None:
        """Write names near their centres where there is room, in the present size of the axes."""
        ax = self.ax_
        ax.figure.draw_without_rendering()
        box, to_pixels = ax.get_window_extent(), ax.transData
        corner = np.array([box.x0, box.y0])
        line = FONT_SIZE * ax.figure.dpi / POINTS_PER_INCH
        texts = [shorten(name, LABEL_LETTERS) for name in names]
        sizes = np.array([[text_width(text, line) + 6, 1.35 * line] for text in texts])
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
                arrowprops={"arrowstyle": "-", "color": "0.6"} if far else None,
            )

"""Displays of rankings, side by side or pair by pair, and of the models fitted to them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names
from rankshot.pages.axes import (
    COLOURS,
    GRID,
    LIGHT,
    ROW_HEIGHT,
    WIDTH,
    Display,
    choose_style,
    draw_intervals,
    draw_matrix,
    hide_spines,
    measure_matrix,
    name_rows,
    shorten,
)
from rankshot.ranking.consensus.precedence import precedence, sort_by_average
from rankshot.ranking.parts import AnyRankings, require_any_rankings
from rankshot.ranking.rankings import Rankings, require_rankings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankshot.ranking.models.mixture import RankingMixture
    from rankshot.ranking.models.plackett_luce import WorthModel

Floats = NDArray[np.float64]
COLUMNS_SHOWN = 12
"""Rankings side by side that can be read."""
PLACES_SHOWN = 10
COLUMN_WIDTH = 1.45
"""Inches per ranking, for `CELL_LETTERS` letters."""
CELL_LETTERS = 18
TITLE_LETTERS = 60
MAX_NUMBERED = 12
"""Matrices of at most this many items have numbers in their cells."""


# ---- Side by side


@dataclass(eq=False, repr=False)
class RankingsDisplay(Display):
    """The rankings of one target side by side, one column per ranking, best first.

    Items that occur in most columns have a colour, the same in all columns. An "=" marks items that
    are tied with their neighbours. Use `from_rankings` to make one.

    Parameters
    ----------
    orders : list of list
        For each ranking its items, best first; a list of items inside is a tie.
    names : list of str
        The names of the columns.
    k : int
        How many places are drawn.
    title : str
        What the items are ranked for, and what is left out.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["leopard", "tiger", "fox"], ["tiger", ["fox", "leopard"]]], targets="cat",
    ...     sources=["WordNet", "survey"])
    >>> display = rs.pages.RankingsDisplay.from_rankings(votes, "cat")
    >>> [text.get_text() for text in display.ax_.texts]
    ['leopard', 'tiger', 'fox', 'tiger', '= fox', '= leopard']
    """

    orders: list[list[str | list[str]]]
    names: list[str]
    k: int = PLACES_SHOWN
    title: str = ""

    @classmethod
    def from_rankings(
        cls,
        rankings: Rankings,
        target: str | None = None,
        *,
        k: int = PLACES_SHOWN,
        ax: Axes | None = None,
    ) -> RankingsDisplay:
        """Draw the rankings of one target.

        Parameters
        ----------
        rankings : Rankings
            Each is named by its rater, or else by its source or its number. The first 12 are
            drawn.
        target : str, optional
            Which rankings to draw; it can be left out if all have the same target or none.
        k : int
            How many places are drawn.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        rankings = require_rankings(rankings)
        if target is None and len(rankings.target_names) > 1:
            raise RankshotError(
                f"these are rankings of several targets, {quote_names(rankings.target_names)}: "
                "choose one (target)"
            )
        chosen = rankings.select(target=target)
        shown = chosen[:COLUMNS_SHOWN]
        title = list(chosen.target_names)
        if len(chosen) > len(shown):
            title.append(f"the first {len(shown)} of {len(chosen):,} rankings")
        labels = zip(shown.raters, shown.sources, shown.targets, strict=True)
        names = [str(next(filter(None, some), row)) for row, some in enumerate(labels, 1)]
        return cls(shown.orders(), names, k, ", ".join(title)).plot(ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        n_rows = max(len(_list_cells(order, self.k)) for order in self.orders)
        width = width or max(4.0, 0.6 + COLUMN_WIDTH * len(self.orders))
        return width, 0.9 + ROW_HEIGHT * n_rows

    def _draw(self, ax: Axes) -> None:
        columns = [_list_cells(order, self.k) for order in self.orders]
        n_rows = max(map(len, columns))
        colours = _colour_shared_items(columns)
        for x, column in enumerate(columns):
            for y, (item, text) in enumerate(column):
                # The colours are light, so that the names can be read.
                colour = colours.get(item, GRID)
                ax.barh(y, 0.94, height=0.86, left=x - 0.47, color=colour, alpha=0.35)
                ax.text(x, y, text, ha="center", va="center", fontsize=8)
        names = [shorten(name, CELL_LETTERS) for name in self.names]
        ax.set_xticks(range(len(columns)), names, fontsize=9)
        ax.xaxis.tick_top()
        ax.set_yticks(range(n_rows), [str(row + 1) for row in range(n_rows)])
        ax.set_xlim(-0.5, len(columns) - 0.5)
        ax.set_ylim(n_rows - 0.5, -0.5)
        ax.tick_params(length=0)
        ax.set_title(shorten(self.title, TITLE_LETTERS))
        hide_spines(ax, "top", "right", "left", "bottom")


def _list_cells(order: list[str | list[str]], k: int) -> list[tuple[str, str]]:
    """Return items and their texts, at most ``k``; the last says how many of a tie are cut off."""
    groups = [group if isinstance(group, list) else [group] for group in order]
    cells = [
        (item, ("= " if len(group) > 1 else "") + shorten(item, CELL_LETTERS))
        for group in groups
        for item in group
    ]
    ends = accumulate(len(group) for group in groups)
    end = next((end for end in ends if end >= k), len(cells))
    return cells[:k] if end <= k else [*cells[: k - 1], ("", f"= {end - k + 1:,} more")]


def _colour_shared_items(columns: list[list[tuple[str, str]]]) -> dict[str, str]:
    """Return the colours of the items that most columns list, but at least two."""
    places: dict[str, list[int]] = {}
    for column in columns:
        for place, (item, _) in enumerate(column):
            places.setdefault(item, []).append(place)
    shared = [item for item in places if item and len(places[item]) > 1]
    shared.sort(key=lambda item: (-len(places[item]), sum(places[item]), item))
    return dict(zip(shared, COLOURS, strict=False))


# ---- Precedence


@dataclass(eq=False, repr=False)
class PrecedenceDisplay(Display):
    """How often each item was placed before every other, among the rankings that order the two.

    The item of the row was placed before that of the column. Use `from_rankings` to make one.

    Parameters
    ----------
    items : list of str
        The names of the rows and of the columns.
    shares : ndarray of shape (items, items)
        From 0 to 1; NaN for two items that no ranking orders.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], weights=[3, 1])
    >>> display = rs.pages.PrecedenceDisplay.from_rankings(votes)
    >>> [text.get_text() for text in display.ax_.texts]
    ['75', '100', '25', '100', '0', '0']
    """

    items: list[str]
    shares: Floats

    @classmethod
    def from_rankings(cls, rankings: AnyRankings, *, ax: Axes | None = None) -> PrecedenceDisplay:
        """Draw the items sorted by average place.

        Parameters
        ----------
        rankings : Rankings
            In memory or in parts.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        rankings = require_any_rankings(rankings)
        order = sort_by_average(rankings)
        before = precedence(rankings)[np.ix_(order, order)]
        both = before + before.T
        shares = np.divide(before, both, out=np.full(before.shape, np.nan), where=both > 0)
        return cls([rankings.items[i] for i in order], shares).plot(ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        side, margin = measure_matrix(self.items)
        return width or 1.08 * side + margin + 0.7, side + margin

    def _draw(self, ax: Axes) -> None:
        percent = 100 * self.shares
        texts: list[tuple[int, int, str]] = []
        if len(self.items) <= MAX_NUMBERED:
            texts = [(i, j, f"{percent[i, j]:.0f}") for i, j in np.argwhere(~np.isnan(percent))]
        draw_matrix(ax, percent, self.items, "PuOr_r", "row before column, %", texts)


# ---- Models


@dataclass(eq=False, repr=False)
class WorthsDisplay(Display):
    """The log-worths or Elo points of items, best first, with comparison intervals.

    The intervals come from quasi-variances, for comparisons of two items. Grey bars at the right
    join items of which none is clearly better than another, adjusted for all comparisons. Use
    `from_leaderboard` or `from_model` to make one.

    Parameters
    ----------
    items : list of str
        The names of the rows, from top to bottom.
    log_worths : ndarray of shape (items,)
    intervals : ndarray of shape (items, 2), optional
        The ends of the intervals.
    level : float
        Their confidence level, for the label.
    scale : str
        What the numbers are, for the label.
    runs : list of tuple of int
        The first and the last row of each grey bar.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"]], weights=[3, 2])
    >>> display = rs.pages.WorthsDisplay.from_leaderboard(rs.leaderboard(votes))
    >>> display.ax_.get_xlabel()
    'log-worth, with 95% comparison intervals'
    """

    items: list[str]
    log_worths: Floats
    intervals: Floats | None = None
    level: float = 0.95
    scale: str = "log-worth"
    runs: list[tuple[int, int]] = field(default_factory=list)

    @classmethod
    def from_leaderboard(cls, leaderboard: Any, *, ax: Axes | None = None) -> WorthsDisplay:
        """Draw the worths of a leaderboard with its comparison intervals.

        Parameters
        ----------
        leaderboard : Leaderboard
            From `rankshot.leaderboard`.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        rows = np.array([(row.rating, row.low, row.high) for row in leaderboard])
        scale = "Elo points" if leaderboard.scale == "elo" else leaderboard.scale
        items = list(leaderboard.items)
        runs = leaderboard.unclear_runs
        return cls(items, rows[:, 0], rows[:, 1:], leaderboard.level, scale, runs).plot(ax)

    @classmethod
    def from_model(cls, model: WorthModel, *, ax: Axes | None = None) -> WorthsDisplay:
        """Draw the worths of a fitted model, without intervals.

        Parameters
        ----------
        model : PlackettLuce or DavidsonLuce
            The fitted model.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.

        Examples
        --------
        >>> import rankshot as rs
        >>> model = rs.PlackettLuce.from_worths({"a": 1, "b": 4, "c": 2})
        >>> rs.pages.WorthsDisplay.from_model(model).items
        ['b', 'c', 'a']
        """
        order = np.lexsort((np.array(model.items_), -model.log_worths_))
        return cls([model.items_[i] for i in order], model.log_worths_[order]).plot(ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        return width or WIDTH, 1 + ROW_HEIGHT * len(self.items)

    def _draw(self, ax: Axes) -> None:
        label, ends = self.scale, np.full((len(self.items), 2), np.nan)
        if self.intervals is not None:
            ends = self.intervals
            label += f", with {100 * self.level:g}% comparison intervals"
        draw_intervals(ax, np.column_stack([self.log_worths, ends]))
        ax.set_xlabel(label)
        name_rows(ax, self.items)
        lanes: list[int] = []
        for first, last in self.runs:
            # Each bar is in the first column that is free.
            lane = next((i for i, end in enumerate(lanes) if end < first), len(lanes))
            lanes[lane : lane + 1] = [last]
            x, rows = 1.01 + 0.012 * lane, (first - 0.25, last + 0.25)
            beside = ax.get_yaxis_transform()
            ax.plot((x, x), rows, transform=beside, color=LIGHT, linewidth=2, clip_on=False)


@dataclass(eq=False, repr=False)
class GroupsDisplay(Display):
    """What each group of raters prefers: log-worths, or places, with one line per group.

    Use `from_mixture` to make one.

    Parameters
    ----------
    items : list of str
        The names of the rows, from top to bottom.
    values : ndarray of shape (groups, items)
        Log-worths, or places.
    weights : ndarray of shape (groups,)
        The shares of the groups.
    are_worths : bool
        Whether the values are log-worths; otherwise they are places.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], weights=[30, 10])
    >>> mixture = rs.RankingMixture(n_starts=2, random_state=0).fit(votes)
    >>> display = rs.pages.GroupsDisplay.from_mixture(mixture)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['group 1 (75%)', 'group 2 (25%)']
    """

    items: list[str]
    values: Floats
    weights: Floats
    are_worths: bool = True

    @classmethod
    def from_mixture(cls, mixture: RankingMixture, *, ax: Axes | None = None) -> GroupsDisplay:
        """Draw the groups of a mixture, the items sorted by their mean over the groups.

        Parameters
        ----------
        mixture : RankingMixture
            The fitted mixture. Its log-worths are drawn or, for models without worths, places in
            the modes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        models, weights = mixture.models_, np.asarray(mixture.weights_, np.float64)
        items = models[0].items_
        are_worths = all(hasattr(model, "log_worths_") for model in models)
        if are_worths:
            values = np.array([model.log_worths_ for model in models])
        else:
            modes = Rankings.from_orders([model.mode_ for model in models], items=items)
            values = modes.positions().astype(np.float64)
        mean = weights @ values
        order = np.lexsort((items, -mean if are_worths else mean))
        names = [items[i] for i in order]
        return cls(names, values[:, order], weights, are_worths).plot(ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        return width or WIDTH, 1.5 + ROW_HEIGHT * len(self.items)

    def _draw(self, ax: Axes) -> None:
        many = len(self.values) > 1
        for g, (row, weight) in enumerate(zip(self.values, self.weights, strict=True)):
            style = choose_style(g)
            if not many:
                # A line from item to item is for comparing groups.
                style["linestyle"] = "none"
            label = f"group {g + 1} ({100 * weight:.0f}%)"
            ax.plot(row, np.arange(len(self.items)), label=label, **style)
        ax.set_xlabel("log-worth in the group" if self.are_worths else "place in the group's order")
        if many:
            ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
        name_rows(ax, self.items)

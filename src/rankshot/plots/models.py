"""Displays of fitted models: worths with intervals, and the groups of a mixture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.plots.axes import (
    COLOURS,
    MARKERS,
    ROW_HEIGHT,
    Display,
    choose_style,
    name_rows,
)
from rankshot.plots.places import find_mean_places
from rankshot.ranking.models.leaderboard import Leaderboard
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]


@dataclass(eq=False, repr=False)
class WorthsDisplay(Display):
    """The log-worths of items, best first, with comparison intervals.

    The intervals come from quasi-variances: items whose intervals do not overlap differ clearly.
    Use `from_leaderboard` or `from_model` to make one.

    Parameters
    ----------
    items : list of str
        The names of the rows, from top to bottom.
    log_worths : ndarray of shape (items,)
    intervals : ndarray of shape (items, 2), optional
        The ends of the intervals.
    level : float
        Their confidence level, for the label.

    Attributes
    ----------
    ax_, figure_
        The Matplotlib axes and figure of the last `plot`.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], weights=[3, 2])
    >>> display = rs.plots.WorthsDisplay.from_leaderboard(rs.leaderboard(votes, random_state=0))
    >>> display.ax_.get_xlabel()
    'log-worth, with 95 % comparison intervals'
    """

    items: list[str]
    log_worths: Floats
    intervals: Floats | None = None
    level: float = 0.95

    @classmethod
    def from_leaderboard(cls, leaderboard: Leaderboard, *, ax: Any = None) -> WorthsDisplay:
        """Draw the worths of a leaderboard with its comparison intervals.

        Parameters
        ----------
        leaderboard : Leaderboard
            From `rankshot.leaderboard`.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        if not isinstance(leaderboard, Leaderboard):
            raise RankshotError(
                f"expected a Leaderboard, not {short_repr(leaderboard)}: make one with "
                "leaderboard(rankings), or use from_model for a fitted model"
            )
        return cls(
            list(leaderboard.items),
            leaderboard.log_worths,
            leaderboard.comparison_intervals,
            leaderboard.level,
        ).plot(ax)

    @classmethod
    def from_model(cls, model: Any, *, ax: Any = None) -> WorthsDisplay:
        """Draw the worths of a fitted model, without intervals.

        Parameters
        ----------
        model : PlackettLuce, DavidsonLuce or PlackettLuceRegression
            Fitted.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.

        Examples
        --------
        >>> import rankshot as rs
        >>> model = rs.PlackettLuce.from_worths({"a": 1, "b": 4, "c": 2})
        >>> rs.plots.WorthsDisplay.from_model(model).items
        ['b', 'c', 'a']
        """
        if not hasattr(model, "log_worths_"):
            raise RankshotError(f"expected a fitted model with worths, not {short_repr(model)}")
        order = np.lexsort((model.items_, -model.log_worths_))
        return cls([model.items_[i] for i in order], model.log_worths_[order]).plot(ax)

    def plot(self, ax: Any = None) -> WorthsDisplay:
        """Draw on ``ax``, or on a new figure; return the display."""
        ax = self._open_axes(ax, 6.4, 1 + ROW_HEIGHT * len(self.items))
        y = np.arange(len(self.items))
        label = "log-worth"
        if self.intervals is not None:
            low, high = np.asarray(self.intervals).T
            ax.hlines(y, low, high, color=COLOURS[0], linewidth=1.5)
            label += f", with {100 * self.level:g} % comparison intervals"
        ax.plot(self.log_worths, y, MARKERS[0], color=COLOURS[0], markersize=5)
        ax.set_xlabel(label)
        name_rows(ax, self.items)
        return self


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

    Attributes
    ----------
    ax_, figure_
        The Matplotlib axes and figure of the last `plot`.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], weights=[30, 10])
    >>> mixture = rs.RankingMixture(n_starts=2, random_state=0).fit(votes)
    >>> display = rs.plots.GroupsDisplay.from_mixture(mixture)
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['group 1 (75 %)', 'group 2 (25 %)']
    """

    items: list[str]
    values: Floats
    weights: Floats
    are_worths: bool = True

    @classmethod
    def from_mixture(cls, mixture: Any, *, ax: Any = None) -> GroupsDisplay:
        """Draw the groups of a mixture, the items sorted by their mean over the groups.

        Parameters
        ----------
        mixture : RankingMixture
            Fitted. Log-worths are drawn if its models have them, otherwise places in their modes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        if not hasattr(mixture, "models_"):
            raise RankshotError(f"expected a fitted RankingMixture, not {short_repr(mixture)}")
        models, weights = mixture.models_, np.asarray(mixture.weights_, np.float64)
        items = models[0].items_
        are_worths = all(hasattr(model, "log_worths_") for model in models)
        values = np.array(
            [m.log_worths_ if are_worths else _find_mode_places(m.mode_, items) for m in models]
        )
        mean = weights @ values
        order = np.lexsort((items, -mean if are_worths else mean))
        names = [items[i] for i in order]
        return cls(names, values[:, order], weights, are_worths).plot(ax)

    def plot(self, ax: Any = None) -> GroupsDisplay:
        """Draw on ``ax``, or on a new figure; return the display."""
        ax = self._open_axes(ax, 6.4, 1.5 + ROW_HEIGHT * len(self.items))
        many = len(self.values) > 1
        for g, (row, weight) in enumerate(zip(self.values, self.weights, strict=True)):
            style = choose_style(g, g)
            if not many:
                # A line from item to item is for comparing groups.
                style["linestyle"] = "none"
            label = f"group {g + 1} ({100 * weight:.0f} %)"
            ax.plot(row, np.arange(len(self.items)), label=label, **style)
        ax.set_xlabel("log-worth in the group" if self.are_worths else "place in the group's order")
        if many:
            ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
        name_rows(ax, self.items)
        return self


def _find_mode_places(mode: tuple[Any, ...], items: tuple[str, ...]) -> Floats:
    order = Rankings.from_orders([mode], items=items)
    return np.asarray(find_mean_places(order)[0])

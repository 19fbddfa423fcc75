"""Pictures of rankings on Matplotlib axes: worths, bump charts, precedence, groups of raters.

Each function draws on ``ax``, or on a new figure of a fitting size, and returns the axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_module
from rankshot.ranking.checks import require_any_rankings, require_rankings
from rankshot.ranking.consensus.average_places import sort_by_average
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.models.leaderboard import Leaderboard
from rankshot.ranking.parts import AnyRankings
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's colours, which colour-blind people tell apart; the markers differ, too."""
MARKERS = "osD^vP"
LINES = ("-", "--", ":", "-.")
LONGEST_NAME = 32
ROW_HEIGHT = 0.24
"""Inches per item: names in the default font do not overlap."""
NUMBERED = 12
"""Matrices of at most this many items have numbers in their cells."""
CELL = 0.18
"""Inches per row and column of a matrix."""
LETTER = 0.07
"""Inches per letter of a name beside a matrix."""
TIE_STEP = 0.2
"""How far apart the lines of tied items are drawn, in places."""
HIGHEST = 150
"""Inches: Matplotlib cannot draw much more."""
COLOURED = 12
"""Lines of a bump chart after these, by mean place, are grey: more are not told apart."""
COLUMNS_SHOWN = 12


def plot_worths(board: Any, ax: Any = None) -> Any:
    """Plot the log-worths of a leaderboard, best first, with comparison intervals.

    The intervals come from quasi-variances: items whose intervals do not overlap differ clearly.

    Parameters
    ----------
    board : Leaderboard, or a fitted model with worths
        A model has no intervals; `leaderboard` gives them.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.ranking.plots import plot_worths
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], weights=[3, 2])
    >>> axes = plot_worths(rs.leaderboard(votes, random_state=0))
    >>> axes.get_xlabel()
    'log-worth, with 95 % comparison intervals'
    """
    items, values = _read_worths(board)
    ax = _require_axes(ax, 6.4, 1 + ROW_HEIGHT * len(items))
    y = np.arange(len(items))
    label = "log-worth"
    if isinstance(board, Leaderboard):
        low, high = board.comparison_intervals.T
        ax.hlines(y, low, high, color=COLOURS[0], linewidth=1.5)
        label += f", with {100 * board.level:g} % comparison intervals"
    ax.plot(values, y, MARKERS[0], color=COLOURS[0], markersize=5)
    ax.set_xlabel(label)
    _name_rows(ax, items)
    return ax


def _read_worths(board: Any) -> tuple[list[str], Floats]:
    if isinstance(board, Leaderboard):
        return list(board.items), board.log_worths
    if not hasattr(board, "log_worths_"):
        raise RankshotError(
            f"expected a leaderboard or a fitted model with worths, not {short_repr(board)}"
        )
    order = np.lexsort((board.items_, -board.log_worths_))
    return [board.items_[i] for i in order], board.log_worths_[order]


def plot_bump(rankings: Rankings | Mapping[str, Leaderboard], ax: Any = None) -> Any:
    """Plot rankings side by side, with a line from each item's place to its next place.

    Parameters
    ----------
    rankings : Rankings, or mapping of names to leaderboards
        Rankings are named by their raters, or else by their sources, targets or numbers. Tied
        items have the mean of their places, and are drawn close to each other. At most 12 columns
        can be read.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.ranking.plots import plot_bump
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], raters=["ann", "bo"])
    >>> axes = plot_bump(votes)
    >>> [label.get_text() for label in axes.get_xticklabels()]
    ['ann', 'bo']
    """
    items, names, places = _read_places(rankings)
    ax = _require_axes(ax, max(4.0, 3.4 + 1.1 * len(names)), 1 + ROW_HEIGHT * len(items))
    x, drawn = np.arange(len(names)), _part_ties(places)
    # An item that no ranking places is drawn last: its mean is that of the added row alone.
    means = np.nanmean(np.vstack([places, np.full(len(items), len(items))]), axis=0)
    for number, i in enumerate(np.argsort(means, kind="stable")):
        style = _line_style(number, number // len(COLOURS))
        if number >= COLOURED:
            style = {"color": "0.8", "linewidth": 0.8, "zorder": 1, "marker": ".", "markersize": 3}
        ax.plot(x, drawn[:, i], **style)
    columns = [_shorten(name) for name in names]
    long = max(map(len, columns)) > 8
    ax.set_xticks(x, columns, rotation=30 if long else 0, ha="right" if long else "center")
    ax.set_ylim(len(items) + 0.5, 0.5)
    ax.set_yticks(*_place_names(items, places[0]))
    ax.tick_params(length=0)
    _hide_spines(ax, "top", "right", "left", "bottom")
    if len(names) > 1:
        right = ax.secondary_yaxis("right")
        right.set_yticks(*_place_names(items, places[-1]))
        right.tick_params(length=0)
        _hide_spines(right, "right")
    return ax


def _part_ties(places: Floats) -> Floats:
    """Move tied items a little apart, so that their lines do not hide each other."""
    parted = places.copy()
    for row, moved in zip(places, parted, strict=True):
        for place in set(row[~np.isnan(row)].tolist()):
            tied = np.flatnonzero(row == place)
            moved[tied] += TIE_STEP * (np.arange(tied.size) - (tied.size - 1) / 2)
    return parted


def _read_places(
    rankings: Rankings | Mapping[str, Leaderboard],
) -> tuple[list[str], list[str], Floats]:
    """Return items, the names of the columns, and the place of each item; NaN if it has none."""
    if isinstance(rankings, Mapping):
        if not rankings or not all(isinstance(b, Leaderboard) for b in rankings.values()):
            raise RankshotError(
                f"expected rankings, or a mapping of names to leaderboards, not "
                f"{short_repr(rankings)}"
            )
        boards = list(rankings.values())
        items = list(boards[0].items)
        if any(set(board.items) != set(items) for board in boards):
            raise RankshotError("the leaderboards must have the same items")
        rows = [[_mean_ranks(board)[board.items.index(item)] for item in items] for board in boards]
        _require_columns(len(boards))
        return items, [str(name) for name in rankings], np.array(rows)
    rankings = require_rankings(rankings)
    _require_columns(len(rankings))
    names = [
        rankings.raters[row] or rankings.sources[row] or rankings.targets[row] or str(row + 1)
        for row in range(len(rankings))
    ]
    return list(rankings.items), names, _mean_listed_places(rankings)


def _require_columns(count: int) -> None:
    if not 1 <= count <= COLUMNS_SHOWN:
        raise RankshotError(
            f"a bump chart has 1 to {COLUMNS_SHOWN} columns, not {count:,}: choose some rankings, "
            "such as rankings[:5]"
        )


def _mean_ranks(board: Leaderboard) -> Floats:
    ranks, counts = board.ranks, np.bincount(board.ranks)
    return np.asarray(ranks + (counts[ranks] - 1) / 2)


def _mean_listed_places(rankings: Rankings) -> Floats:
    """Return the places of listed items from 1, the mean of them for ties; NaN elsewhere."""
    rows = rankings.entry_rows
    within = np.arange(rows.size) - rankings.starts[rows] + 1.0
    _, group = np.unique(np.column_stack([rows, rankings.places]), axis=0, return_inverse=True)
    means = np.bincount(group.ravel(), within) / np.bincount(group.ravel())
    places = np.full((len(rankings), rankings.n_items), np.nan)
    places[rows, rankings.codes] = means[group.ravel()]
    return places


def plot_precedence(rankings: AnyRankings, ax: Any = None) -> Any:
    """Plot how often each item was placed before each other, among rankings that order the two.

    The items are sorted by average place. The row is the item that was placed before.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.ranking.plots import plot_precedence
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]], weights=[3, 1])
    >>> axes = plot_precedence(votes)
    >>> [text.get_text() for text in axes.texts]
    ['75', '100', '25', '100', '0', '0']
    """
    rankings = require_any_rankings(rankings)
    order = sort_by_average(rankings)
    items = [rankings.items[i] for i in order]
    before = precedence(rankings)[np.ix_(order, order)]
    both = before + before.T
    shares = np.divide(before, both, out=np.full(before.shape, np.nan), where=both > 0)
    C = len(items)
    side = max(2.4, CELL * C)
    names = [_shorten(item) for item in items]
    margin = LETTER * max(map(len, names)) + 0.3
    ax = _require_axes(ax, 1.08 * side + margin + 0.7, side + margin)
    image = ax.imshow(100 * shares, cmap="PuOr_r", vmin=0, vmax=100)
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02)
    bar.set_label("row before column, %")
    if C <= NUMBERED:
        for i, j in np.argwhere(both > 0):
            share = 100 * shares[i, j]
            # Both ends of the colours are dark.
            colour = "white" if abs(share - 50) > 28 else "black"
            ax.text(j, i, f"{share:.0f}", ha="center", va="center", color=colour, fontsize=8)
    ax.set_xticks(range(C), names, rotation=90, fontsize=8)
    ax.set_yticks(range(C), names, fontsize=8)
    ax.tick_params(length=0)
    return ax


def plot_groups(mixture: Any, ax: Any = None) -> Any:
    """Plot what each group of raters prefers: log-worths, or places, one line per group.

    Parameters
    ----------
    mixture : RankingMixture
        Fitted. Log-worths are plotted if its models have them, otherwise places in their modes.
    ax : matplotlib.axes.Axes, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not hasattr(mixture, "models_"):
        raise RankshotError(f"expected a fitted RankingMixture, not {short_repr(mixture)}")
    models, weights = mixture.models_, np.asarray(mixture.weights_, np.float64)
    items = models[0].items_
    has_worths = all(hasattr(model, "log_worths_") for model in models)
    values = np.array(
        [model.log_worths_ if has_worths else _mode_places(model.mode_, items) for model in models]
    )
    mean = weights @ values
    order = np.lexsort((items, -mean if has_worths else mean))
    ax = _require_axes(ax, 6.4, 1.5 + ROW_HEIGHT * len(items))
    for g, weight in enumerate(weights):
        label = f"group {g + 1} ({100 * weight:.0f} %)"
        style = _line_style(g, g)
        if len(models) == 1:
            # A line from item to item is for comparing groups.
            style["linestyle"] = "none"
        ax.plot(values[g, order], np.arange(len(items)), label=label, **style)
    ax.set_xlabel("log-worth in the group" if has_worths else "place in the group's order")
    if len(models) > 1:
        ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
    _name_rows(ax, [items[i] for i in order])
    return ax


def _mode_places(mode: tuple[Any, ...], items: tuple[str, ...]) -> Floats:
    order = Rankings.from_orders([mode], items=items)
    return np.asarray(_mean_listed_places(order)[0])


# ---- Axes


def _require_axes(ax: Any, width: float, height: float) -> Any:
    """Return the axes, or those of a new figure of this size in inches."""
    pyplot = require_module("matplotlib.pyplot", "plots", "plot")
    if ax is not None:
        return ax
    if height > HIGHEST:
        raise RankshotError(
            f"a plot of so many items would be {height:,.0f} inches high; choose some of them, or "
            "give axes to draw on (ax)"
        )
    return pyplot.subplots(figsize=(width, max(2.0, height)), layout="constrained")[1]


def _line_style(colour: int, shape: int) -> dict[str, Any]:
    """Return a style for lines that differ in colour or in shape."""
    return {
        "color": COLOURS[colour % len(COLOURS)],
        "marker": MARKERS[shape % len(MARKERS)],
        "linestyle": LINES[shape % len(LINES)],
        "markersize": 5,
    }


def _hide_spines(ax: Any, *sides: str) -> None:
    for side in sides:
        ax.spines[side].set_visible(False)


def _name_rows(ax: Any, items: list[str]) -> None:
    ax.set_yticks(range(len(items)), [_shorten(item) for item in items])
    ax.set_ylim(len(items) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color="0.9")
    ax.set_axisbelow(True)
    _hide_spines(ax, "top", "right", "left")


def _place_names(items: list[str], places: Floats) -> tuple[list[float], list[str]]:
    """Return one tick per place, with the names of its items; tied ones are joined by commas."""
    ticks: dict[float, list[str]] = {}
    for item, place in zip(items, places.tolist(), strict=True):
        if not np.isnan(place):
            ticks.setdefault(place, []).append(item)
    where = sorted(ticks)
    return where, [f"{place:g}. {_shorten(', '.join(ticks[place]))}" for place in where]


def _shorten(name: str) -> str:
    """Leave out the middle of a long name: names often differ at their ends."""
    half = LONGEST_NAME // 2
    short = name if len(name) <= LONGEST_NAME else f"{name[: half - 1]}…{name[-half:]}"
    # Matplotlib would read what stands between two dollar signs as a formula.
    return short.replace("$", r"\$")

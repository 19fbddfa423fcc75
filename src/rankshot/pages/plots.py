"""Plots of rankings, worths and results, in one style."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import InputError, quote_names
from rankshot.core.files import replace_file
from rankshot.core.validation import require_module
from rankshot.ranking.rankings import Rankings, require_rankings
from rankshot.zeroshot.metrics import reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's colours, which colour-blind people can distinguish; the markers differ as
well."""
MARKERS = "osD^vP"
MUTED, LIGHT, GRID = "#737373", "#bfbfbf", "#e5e5e5"
WIDTH = 6.4
"""Inches: plots whose names are at the left."""
ROW_HEIGHT = 0.24
"""Inches per item: names in the default font do not overlap."""
MAX_LETTERS, CELL_LETTERS, TITLE_LETTERS = 32, 18, 60
COLUMNS_SHOWN, PLACES_SHOWN = 12, 10
"""Rankings side by side that can be read, and places of each."""
COLUMN_WIDTH = 1.45
"""Inches per ranking."""
LARGEST_DISC, SMALLEST_DISC = 20.0, 4.0
"""Diameters in points."""


def save_plot(axes: Axes, path: str | Path) -> None:
    """Write a plot as an image.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        What a function of this module returned.
    path : str or Path
        The file to write (.png, .svg, .pdf).

    Examples
    --------
    >>> import tempfile, rankshot as rs
    >>> board = rs.leaderboard({"winner": ["tea", "rum"], "loser": ["rum", "tea"]})
    >>> axes = rs.pages.plot_leaderboard(board)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.pages.save_plot(axes, folder + "/ratings.svg")
    """
    path = Path(path)
    with replace_file(path) as stream:
        axes.figure.figure.savefig(stream.buffer, format=path.suffix[1:], dpi=150)


def create_axes(width: float, height: float) -> Axes:
    """Return the axes of a new figure of this size in inches."""
    pyplot = require_module("matplotlib.pyplot", "plots", "cli")
    axes: Axes = pyplot.subplots(figsize=(width, max(2.0, height)), layout="constrained")[1]
    return axes


def hide_spines(ax: Axes, *sides: str) -> None:
    """Remove some of the lines around axes."""
    for side in sides:
        ax.spines[side].set_visible(False)


def draw_intervals(ax: Axes, intervals: NDArray[Any]) -> None:
    """Draw (estimate, low, high) of each row; rows with NaN are left out."""
    y = range(len(intervals))
    ax.hlines(y, *intervals[:, 1:].T, color=COLOURS[0], linewidth=1.5)
    ax.plot(intervals[:, 0], y, MARKERS[0], color=COLOURS[0], markersize=5)


def name_rows(ax: Axes, names: list[str]) -> None:
    """Write names at the left, the first at the top, and draw lines only for the numbers below."""
    ax.set_yticks(range(len(names)), [shorten(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="x", color=GRID)
    ax.set_axisbelow(True)
    hide_spines(ax, "top", "right", "left")


def shorten(name: str, letters: int = MAX_LETTERS) -> str:
    """Leave out the middle of a long name: names often differ at their ends."""
    half = letters // 2
    short = name if len(name) <= letters else f"{name[: half - 1]}…{name[-half:]}"
    # SVG has no control characters, and text between two dollar signs would be a formula.
    return re.sub(r"[\x00-\x1f\x7f]", " ", short).replace("$", r"\$")


# ---- Rankings


def plot_rankings(
    rankings: Rankings,
    target: str | None = None,
    *,
    k: int = PLACES_SHOWN,
    ax: Axes | None = None,
) -> Axes:
    """Draw the rankings of one target side by side, one column per ranking, best first.

    Items that occur in most columns have a colour, the same in all columns. An "=" marks items that
    are tied with their neighbours.

    Parameters
    ----------
    rankings : Rankings
        Each is named by its rater, or else by its source or its number. The first 12 are drawn.
    target : str, optional
        Which rankings to draw; it can be left out if all have the same target or none.
    k : int
        How many places are drawn.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["leopard", "tiger", "fox"], ["tiger", ["fox", "leopard"]]], targets="cat",
    ...     sources=["WordNet", "survey"])
    >>> [text.get_text() for text in rs.pages.plot_rankings(votes, "cat").texts]
    ['leopard', 'tiger', 'fox', 'tiger', '= fox', '= leopard']
    """
    rankings = require_rankings(rankings)
    if target is None and len(rankings.target_names) > 1:
        targets = quote_names(rankings.target_names)
        raise InputError("target", None, f"must be one of {targets}")
    chosen = rankings.select(target=target)
    shown = chosen[:COLUMNS_SHOWN]
    title = list(chosen.target_names)
    if len(chosen) > len(shown):
        title.append(f"the first {len(shown)} of {len(chosen):,} rankings")
    labels = zip(shown.raters, shown.sources, shown.targets, strict=True)
    names = [str(next(filter(None, some), row)) for row, some in enumerate(labels, 1)]
    columns = [_list_cells(order, k) for order in shown.orders()]
    n_rows = max(map(len, columns))
    if ax is None:
        width = max(4.0, 0.6 + COLUMN_WIDTH * len(columns))
        ax = create_axes(width, 0.9 + ROW_HEIGHT * n_rows)
    colours = _colour_shared_items(columns)
    for x, column in enumerate(columns):
        for y, (item, text) in enumerate(column):
            # The colours are light, so that the names can be read.
            colour = colours.get(item, GRID)
            ax.barh(y, 0.94, height=0.86, left=x - 0.47, color=colour, alpha=0.35)
            ax.text(x, y, text, ha="center", va="center", fontsize=8)
    ax.set_xticks(range(len(columns)), [shorten(name, CELL_LETTERS) for name in names], fontsize=9)
    ax.xaxis.tick_top()
    ax.set_yticks(range(n_rows), [str(row + 1) for row in range(n_rows)])
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(n_rows - 0.5, -0.5)
    ax.tick_params(length=0)
    ax.set_title(shorten(", ".join(title), TITLE_LETTERS))
    hide_spines(ax, "top", "right", "left", "bottom")
    return ax


def _list_cells(order: list[str | list[str]], k: int) -> list[tuple[str, str]]:
    """Return the first ``k`` items and their texts."""
    groups = [group if isinstance(group, list) else [group] for group in order]
    return [
        (item, ("= " if len(group) > 1 else "") + shorten(item, CELL_LETTERS))
        for group in groups
        for item in group
    ][:k]


def _colour_shared_items(columns: list[list[tuple[str, str]]]) -> dict[str, str]:
    """Return the colours of the items that most columns list, but at least two."""
    places: dict[str, list[int]] = {}
    for column in columns:
        for place, (item, _) in enumerate(column):
            places.setdefault(item, []).append(place)
    shared = [item for item in places if len(places[item]) > 1]
    shared.sort(key=lambda item: (-len(places[item]), sum(places[item]), item))
    return dict(zip(shared, COLOURS, strict=False))


def plot_leaderboard(leaderboard: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the log-worths or Elo points of items, best first, with comparison intervals.

    The intervals come from quasi-variances, for comparisons of two items. Grey bars at the right
    join items of which none is clearly better than another, adjusted for all comparisons.

    Parameters
    ----------
    leaderboard : Leaderboard
        From `rankshot.leaderboard`.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "c", "a"]], weights=[3, 2])
    >>> rs.pages.plot_leaderboard(rs.leaderboard(votes)).get_xlabel()
    'log-worth, with 95% comparison intervals'
    """
    ax = ax or create_axes(WIDTH, 1 + ROW_HEIGHT * len(leaderboard))
    rows = np.array([(row.rating, row.low, row.high) for row in leaderboard])
    # An item that never lost has an interval without an upper end.
    known = rows[np.isfinite(rows)]
    draw_intervals(ax, np.clip(rows, known.min(), known.max()))
    scale = "Elo points" if leaderboard.scale == "elo" else leaderboard.scale
    ax.set_xlabel(f"{scale}, with {100 * leaderboard.level:g}% comparison intervals")
    name_rows(ax, list(leaderboard.items))
    lanes: list[int] = []
    for first, last in leaderboard.unclear_runs:
        # Each bar is in the first column that is free.
        lane = next((i for i, end in enumerate(lanes) if end < first), len(lanes))
        lanes[lane : lane + 1] = [last]
        x, ends = 1.01 + 0.012 * lane, (first - 0.25, last + 0.25)
        beside = ax.get_yaxis_transform()
        ax.plot((x, x), ends, transform=beside, color=LIGHT, linewidth=2, clip_on=False)
    return ax


# ---- Results


def plot_reliability(
    y_true: ArrayLike,
    proba: ArrayLike,
    classes: Iterable[object],
    *,
    n_bins: int = 15,
    ax: Axes | None = None,
) -> Axes:
    """Draw a reliability diagram: the accuracy of predictions against their confidence, in bins.

    The confidence of a prediction is the largest probability of its input. A calibrated classifier
    has all discs on the diagonal; below it, the classifier is overconfident. The area of a disc
    shows the number of inputs in the bin. `rankshot.zeroshot.metrics.reliability` has the numbers.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true class of each input.
    proba : array-like of shape (n, L)
        The probability of each class, such as ``head.predict_proba(scores)``.
    classes : iterable of names
        The L classes, in the order of the columns, such as ``head.classes_``.
    n_bins : int
        The number of bins, of equal width.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import rankshot as rs
    >>> proba = [[.9, .1], [.7, .3], [.2, .8]]
    >>> ax = rs.pages.plot_reliability(["cat", "dog", "dog"], proba, ["cat", "dog"], n_bins=2)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['calibrated', 'calibration error 13.3%']
    """
    bins = reliability(y_true, proba, classes, n_bins)
    ax = ax or create_axes(5.2, 5.2)
    ax.plot([0, 1], [0, 1], ":", color=MUTED, label="calibrated")
    used = bins.count > 0
    x, y, count = bins.confidence[used], bins.accuracy[used], bins.count[used]
    label = f"calibration error {bins.expected_calibration_error:.1%}"
    ax.plot(x, y, color=COLOURS[0], linewidth=1, label=label)
    size = np.maximum(LARGEST_DISC * np.sqrt(count / count.max()), SMALLEST_DISC)
    ax.scatter(x, y, size**2, color=COLOURS[0], alpha=0.6)
    ax.set(xlim=(-0.02, 1.05), ylim=(-0.02, 1.05), xlabel="confidence", ylabel="accuracy")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter("{x:.0%}")
    ax.set_aspect("equal")
    ax.grid(color=GRID)
    ax.set_axisbelow(True)
    # Above the axes, where it hides no disc.
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=8)
    return ax


def plot_comparison(
    results: Mapping[str, Sequence[float]],
    *,
    chance: float | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a comparison of methods: the accuracy of each with its interval, the best first.

    Parameters
    ----------
    results : mapping of names to (estimate, low, high)
        Such as intervals of `metrics.wilson_interval` or `Forecast.predicted`.
    chance : float, optional
        The accuracy of random guessing, drawn as a dashed line.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default, on a new figure.

    Returns
    -------
    matplotlib.axes.Axes

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.zeroshot.metrics import wilson_interval
    >>> ax = rs.pages.plot_comparison(
    ...     {"ConSE": wilson_interval(40, 100), "WeightedMean": wilson_interval(52, 100)},
    ...     chance=0.1)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['WeightedMean', 'ConSE']
    """
    pairs = sorted(results.items(), key=lambda pair: (-pair[1][0], str(pair[0])))
    ax = ax or create_axes(WIDTH, 1.1 + ROW_HEIGHT * len(pairs))
    draw_intervals(ax, np.array([cell for _, cell in pairs], np.float64))
    if chance is not None:
        ax.axvline(chance, color=MUTED, linestyle="--", linewidth=1, label="chance")
        ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)
    ax.set_xlabel("accuracy")
    name_rows(ax, [str(name) for name, _ in pairs])
    return ax

"""Displays of results: a comparison of methods, and the explanation of one decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number
from rankshot.plots.axes import (
    COLOURS,
    MARKERS,
    NUMBER_SIZE,
    ROW_HEIGHT,
    Display,
    name_rows,
    shorten,
)
from rankshot.zeroshot.explanation import Contributions, Explanation

Floats = NDArray[np.float64]
HEADING_LETTERS = 70
MAX_BARS = 8
"""Of each group of contributions, the strongest; the others of a group are added up."""


# ---- Comparison


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """A comparison of methods: a number with its interval for each, the best first.

    Use `from_results` or `from_rehearsal` to make one.

    Parameters
    ----------
    names : list of str
        The names of the rows, from top to bottom.
    intervals : ndarray of shape (rows, 3)
        Estimate, low and high end.
    chance : float, optional
        What random guessing gives; a dashed line.

    Attributes
    ----------
    ax_, figure_
        The Matplotlib axes and figure of the last `plot`.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.zeroshot.metrics import wilson_interval
    >>> display = rs.plots.ComparisonDisplay.from_results(
    ...     {"ConSE": wilson_interval(40, 100), "WeightedMean": wilson_interval(52, 100)},
    ...     chance=0.1)
    >>> display.names
    ['WeightedMean', 'ConSE']
    """

    names: list[str]
    intervals: Floats
    chance: float | None = None

    @classmethod
    def from_results(
        cls, results: Mapping[str, Any], *, chance: float | None = None, ax: Any = None
    ) -> ComparisonDisplay:
        """Draw results, sorted by their estimates.

        Parameters
        ----------
        results : mapping of names to (estimate, low, high)
            Such as intervals of `Bootstrap.interval`, `metrics.wilson_interval` or
            `Rehearsal.predict_accuracy`.
        chance : float, optional
            What random guessing gives, such as one divided by the number of classes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        if not isinstance(results, Mapping) or not results:
            raise RankshotError(
                f"expected a mapping of names to (estimate, low, high), not {short_repr(results)}"
            )
        if chance is not None:
            chance = require_number("chance", chance, above=-np.inf, below=np.inf)
        pairs = [(str(name), _require_interval(name, cell)) for name, cell in results.items()]
        return cls._from_pairs(pairs, chance).plot(ax)

    @classmethod
    def from_rehearsal(
        cls, rehearsal: Any, *, chance: float | None = None, ax: Any = None
    ) -> ComparisonDisplay:
        """Draw what a rehearsal tried; the way that it chose has the word "chosen".

        Parameters
        ----------
        rehearsal : Rehearsal
            Fitted.
        chance : float, optional
            What random guessing gives, such as one divided by the number of classes of a fold.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        if not hasattr(rehearsal, "trials_"):
            raise RankshotError(f"expected a fitted Rehearsal, not {short_repr(rehearsal)}")
        pairs = [
            (
                trial.what + (" (chosen)" if trial.accuracy is rehearsal.accuracy_ else ""),
                np.array(trial.accuracy),
            )
            for trial in rehearsal.trials_
        ]
        return cls._from_pairs(pairs, chance).plot(ax)

    @classmethod
    def _from_pairs(
        cls, pairs: list[tuple[str, Floats]], chance: float | None
    ) -> ComparisonDisplay:
        pairs = sorted(pairs, key=lambda pair: (-pair[1][0], pair[0]))
        return cls([name for name, _ in pairs], np.array([cell for _, cell in pairs]), chance)

    def plot(self, ax: Any = None) -> ComparisonDisplay:
        """Draw on ``ax``, or on a new figure; return the display."""
        ax = self._open_axes(ax, 6.4, 1.1 + ROW_HEIGHT * len(self.names))
        estimate, low, high = self.intervals.T
        y = np.arange(len(self.names))
        ax.hlines(y, low, high, color=COLOURS[0], linewidth=1.5)
        ax.plot(estimate, y, MARKERS[0], color=COLOURS[0], markersize=5)
        if self.chance is not None:
            ax.axvline(self.chance, color="0.4", linestyle="--", linewidth=1, label="chance")
            ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)
        ax.set_xlabel("accuracy")
        name_rows(ax, self.names)
        return self


def _require_interval(name: object, cell: Any) -> Floats:
    try:
        numbers = np.asarray(cell, np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (3,) or not np.isfinite(numbers).all() or numbers[1] > numbers[2]:
        raise RankshotError(
            f"{short_repr(name)}: expected (estimate, low, high), three numbers with low <= high, "
            f"not {short_repr(cell)}"
        )
    return numbers


# ---- Explanation


@dataclass(eq=False, repr=False)
class ExplanationDisplay(Display):
    """Why an input got its class: bars for what each seen class and each source contributed.

    A bar to the right speaks for the class. A contribution of 0.7 doubles the odds. Those of the
    seen classes add up; that of a source is what this source alone would give. Of each group, the
    eight strongest are drawn. Use `from_explanation` to make one.

    Parameters
    ----------
    explanation : Explanation
        From `rankshot.explain`.

    Attributes
    ----------
    ax_, figure_
        The Matplotlib axes and figure of the last `plot`.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> why = rs.explain(head, [[0.1, 3.0, 1.5, -1.0]])[0]
    >>> display = rs.plots.ExplanationDisplay.from_explanation(why)
    >>> display.ax_.get_title()
    'cat (94.4%) rather than the average class'
    """

    explanation: Explanation

    @classmethod
    def from_explanation(cls, explanation: Explanation, *, ax: Any = None) -> ExplanationDisplay:
        """Draw an explanation of one input.

        Parameters
        ----------
        explanation : Explanation
            One element of the list that `rankshot.explain` returns.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        if not isinstance(explanation, Explanation):
            raise RankshotError(
                f"expected an Explanation, not {short_repr(explanation)}: explain returns a list "
                "of them, one per input"
            )
        return cls(explanation).plot(ax)

    def plot(self, ax: Any = None) -> ExplanationDisplay:
        """Draw on ``ax``, or on a new figure; return the display."""
        rows: list[tuple[str, float | None]] = []
        for heading, pairs in self._group_rows():
            rows += [(heading, None), *pairs]
        ax = self._open_axes(ax, 6.4, 1.2 + ROW_HEIGHT * len(rows))
        name_rows(ax, ["" if value is None else name for name, value in rows])
        for y, (name, value) in enumerate(rows):
            if value is None:
                ax.text(
                    0,
                    y,
                    shorten(name, HEADING_LETTERS),
                    transform=ax.get_yaxis_transform(),
                    va="center",
                    weight="bold",
                    fontsize=9,
                    # White, so that no line goes through the words.
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 1},
                )
                continue
            ax.barh(y, value, height=0.7, color=COLOURS[0 if value > 0 else 1])
            ax.annotate(
                f"{value:+.2f}",
                (value, y),
                (3 if value >= 0 else -3, 0),
                textcoords="offset points",
                ha="left" if value >= 0 else "right",
                va="center",
                fontsize=NUMBER_SIZE,
            )
        ax.axvline(0, color="0.4", linewidth=1)
        ax.margins(x=0.12)
        ax.set_xlabel("contribution to the log-odds")
        why = self.explanation
        ax.set_title(
            f"{shorten(why.target)} ({why.probability:.1%}) rather than {shorten(why.rival)}"
        )
        return self

    def _group_rows(self) -> list[tuple[str, Contributions]]:
        """Return headings with their contributions, sorted; the weakest are added up."""
        why = self.explanation
        groups: list[tuple[str, Contributions]] = []
        if why.gate:
            groups.append(("a new class rather than a seen one", why.gate))
        for group in why.group_items():
            pairs = (*group.shown, *group.rest)
            rest = sum(value for _, value in pairs[MAX_BARS:])
            bars = _sort_contributions(pairs[:MAX_BARS])
            if len(pairs) > MAX_BARS:
                bars = (*bars, (f"{len(pairs) - MAX_BARS:,} others", rest))
            groups.append((f"{group.heading}, together {group.total:+.2f}", bars))
        if why.sources:
            strongest = sorted(why.sources, key=lambda pair: (-abs(pair[1]), pair[0]))[:MAX_BARS]
            left = len(why.sources) - len(strongest)
            heading = "sources, each alone" + (f"; {left:,} more are not shown" if left else "")
            groups.append((heading, _sort_contributions(strongest)))
        return groups


def _sort_contributions(pairs: Iterable[tuple[str, float]]) -> Contributions:
    return tuple(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))

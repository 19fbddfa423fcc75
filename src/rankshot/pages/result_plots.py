"""Displays of results: reliability, confusions, a comparison of methods, and an explanation."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import as_names
from rankshot.pages.axes import (
    COLOURS,
    GRID,
    LETTER,
    MUTED,
    NUMBER_SIZE,
    ROW_HEIGHT,
    WIDTH,
    Display,
    choose_style,
    draw_intervals,
    draw_matrix,
    measure_matrix,
    name_rows,
    shorten,
)
from rankshot.zeroshot.explanation import Explanation
from rankshot.zeroshot.metrics import (
    FEW_CLASSES,
    Reliability,
    choose_confused_classes,
    compare_labels,
    count_confusions,
    describe_left_out,
    reliability,
    require_labels,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from rankshot.zeroshot.rehearsal import Rehearsal

Floats = NDArray[np.float64]
LARGEST_DISC, SMALLEST_DISC = 20.0, 4.0
"""Diameters in points."""
DIGIT = 0.065
"""Inches per digit of a number in a cell."""
MAX_BARS = 15
"""Contributions that are drawn; the others are added up."""


# ---- Reliability


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """A reliability diagram: the accuracy of predictions against their confidence, in bins.

    The confidence of a prediction is the largest probability of its input. A calibrated classifier
    has all discs on the diagonal; below it, the classifier is overconfident. The area of a disc,
    and the number next to it, show the number of inputs in the bin. A second display on the same
    axes gets another colour. Use `from_predictions` to make one.

    Parameters
    ----------
    reliability : Reliability
        The bins; see `rankshot.zeroshot.metrics.reliability`.
    name : str, optional
        For the legend.

    Examples
    --------
    >>> import rankshot as rs
    >>> proba = [[.9, .1], [.7, .3], [.2, .8]]
    >>> display = rs.pages.ReliabilityDisplay.from_predictions(
    ...     ["cat", "dog", "dog"], proba, ["cat", "dog"], n_bins=2, name="my head")
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['calibrated', 'my head, calibration error 13.3%']
    """

    reliability: Reliability
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        classes: Iterable[object],
        *,
        n_bins: int = 15,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> ReliabilityDisplay:
        """Draw the reliability of probabilities.

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
        name : str, optional
            For the legend.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        return cls(reliability(y_true, proba, classes, n_bins), name).plot(ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        return width or 5.2, width or 5.2

    def _draw(self, ax: Axes) -> None:
        number = sum(line.get_gid() == "reliability" for line in ax.lines)
        if number == 0:
            ax.plot([0, 1], [0, 1], ":", color=MUTED, label="calibrated")
        bins = self.reliability
        used = bins.count > 0
        x, y, count = bins.confidence[used], bins.accuracy[used], bins.count[used]
        style = choose_style(number)
        label = f"calibration error {bins.expected_calibration_error:.1%}"
        if self.name is not None:
            label = f"{shorten(self.name)}, {label}"
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        ax.plot(x, y, **line, linewidth=1, label=label, gid="reliability")
        size = np.maximum(LARGEST_DISC * np.sqrt(count / count.max()), SMALLEST_DISC)
        ax.scatter(x, y, size**2, color=style["color"], marker=style["marker"], alpha=0.6)
        for i in range(len(x)):
            below = y[i] < x[i]
            ax.annotate(
                f"{count[i]:,}",
                (x[i], y[i]),
                (0, (-1 if below else 1) * (size[i] / 2 + 3)),
                textcoords="offset points",
                ha="center",
                va="top" if below else "bottom",
                fontsize=NUMBER_SIZE,
                color=style["color"],
            )
        ax.set(xlim=(-0.02, 1.05), ylim=(-0.08, 1.08), xlabel="confidence", ylabel="accuracy")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:.0%}")
        ax.set_aspect("equal")
        ax.grid(color=GRID)
        ax.set_axisbelow(True)
        # Above the axes, where it hides no disc.
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=8)


# ---- Confusion


@dataclass(eq=False, repr=False)
class ConfusionDisplay(Display):
    """A confusion matrix that stays readable for many classes.

    There is one row per true class and one column per predicted class. The numbers are counts, 0 is
    blank, and the colour is the share of the row. With more than 20 classes, only those that were
    confused are drawn, at most the 40 with the most confusions; the title states what is left out.
    Use `from_predictions` to make one.

    Parameters
    ----------
    confusion : ndarray of int, shape (L, L)
        Counts of all classes.
    classes : list of str
        The L classes.

    Examples
    --------
    >>> import rankshot as rs
    >>> truth, predicted = ["cat", "cat", "dog"], ["cat", "dog", "dog"]
    >>> display = rs.pages.ConfusionDisplay.from_predictions(truth, predicted)
    >>> display.confusion.tolist()
    [[1, 1], [0, 1]]
    """

    confusion: NDArray[np.int64]
    classes: list[str]

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        labels: Iterable[object] | None = None,
        ax: Axes | None = None,
    ) -> ConfusionDisplay:
        """Draw how often inputs of each class were assigned to each class.

        Parameters
        ----------
        y_true, y_pred : array-like of shape (n,)
            The true and the predicted class of each input.
        labels : iterable of names, optional
            The classes, in the order of the rows. By default all that occur, sorted. Inputs whose
            true or predicted class is none of these, such as rejected inputs, are not counted.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        truth, _ = compare_labels(y_true, y_pred)
        predicted = require_labels(y_pred, "y_pred")
        occurring = sorted({*truth, *predicted})
        classes = occurring if labels is None else list(as_names(labels, "labels"))
        if not set(truth) & set(classes):
            raise RankshotError(
                f"none of the labels {quote_names(classes, 4)} is in y_true, which has "
                f"{quote_names(sorted(set(truth)), 4)}"
            )
        return cls(count_confusions(truth, predicted, classes), classes).plot(ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        kept, _ = self._choose_classes()
        longest = len(f"{self.confusion[np.ix_(kept, kept)].max():,}")
        cell = max(0.24, DIGIT * longest + 0.1)
        side, margin = measure_matrix([self.classes[i] for i in kept], cell)
        return width or 1.08 * side + margin + 1.0, side + margin + 0.5

    def _choose_classes(self) -> tuple[list[int], str]:
        """Return the classes to draw, and a sentence about the others."""
        L = len(self.classes)
        kept = choose_confused_classes(self.confusion, self.classes)
        if not kept:
            note = f"No class was confused. Only {FEW_CLASSES} of {L:,} classes are shown."
            return list(range(FEW_CLASSES)), note
        return kept, describe_left_out(len(kept), L) if len(kept) < L else ""

    def _draw(self, ax: Axes) -> None:
        kept, note = self._choose_classes()
        shares = self.confusion / np.maximum(self.confusion.sum(axis=1, keepdims=True), 1)
        counts, shares = self.confusion[np.ix_(kept, kept)], shares[np.ix_(kept, kept)]
        names = [self.classes[i] for i in kept]
        # White is transparent, so that a page may be dark.
        colours = import_module("matplotlib.colors").LinearSegmentedColormap.from_list(
            "shares", [f"{COLOURS[0]}00", COLOURS[0]]
        )
        texts = [(i, j, f"{counts[i, j]:,}") for i, j in np.argwhere(counts)]
        draw_matrix(ax, 100 * shares, names, colours, "inputs of the true class, %", texts)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        ax.set_title(textwrap.fill(note, int(ax.figure.figure.get_figwidth() / LETTER)), fontsize=9)


# ---- Comparison


@dataclass(eq=False, repr=False)
class ComparisonDisplay(Display):
    """A comparison of methods: a number with its interval for each.

    Use `from_results` or `from_rehearsal` to make one.

    Parameters
    ----------
    names : list of str
        The names of the rows, from top to bottom.
    intervals : ndarray of shape (rows, 3)
        Estimate, low and high end; NaN for a row that is a heading.
    chance : float, optional
        The result of random guessing, drawn as a dashed line.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.zeroshot.metrics import wilson_interval
    >>> display = rs.pages.ComparisonDisplay.from_results(
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
        cls,
        results: Mapping[str, Sequence[float]],
        *,
        chance: float | None = None,
        ax: Axes | None = None,
    ) -> ComparisonDisplay:
        """Draw results, sorted by their estimates, the best first.

        Parameters
        ----------
        results : mapping of names to (estimate, low, high)
            Such as intervals of `Bootstrap.interval`, `metrics.wilson_interval` or
            `Rehearsal.predict_accuracy`.
        chance : float, optional
            The accuracy of random guessing, such as one divided by the number of classes.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        for name, cell in results.items():
            if np.shape(cell) != (3,) or not cell[1] <= cell[2]:
                raise RankshotError(
                    f"{short_repr(name)}: expected (estimate, low, high), three numbers with low "
                    f"<= high, not {short_repr(cell)}"
                )
        pairs = sorted(results.items(), key=lambda pair: (-pair[1][0], str(pair[0])))
        intervals = np.array([cell for _, cell in pairs], np.float64)
        return cls([str(name) for name, _ in pairs], intervals, chance).plot(ax)

    @classmethod
    def from_rehearsal(
        cls, rehearsal: Rehearsal, *, chance: float | None = None, ax: Axes | None = None
    ) -> ComparisonDisplay:
        """Draw what a rehearsal tried; the chosen settings are marked "chosen".

        Parameters
        ----------
        rehearsal : Rehearsal
            A fitted rehearsal.
        chance : float, optional
            The accuracy of random guessing, such as one divided by the number of classes of a fold.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default, on a new figure.
        """
        best = rehearsal.accuracy_
        tried = {
            f"{trial.what}{' (chosen)' if trial.accuracy is best else ''}": trial.accuracy
            for trial in rehearsal.forecast_.trials
        }
        return cls.from_results(tried, chance=chance, ax=ax)

    def _measure(self, width: float | None) -> tuple[float, float]:
        return width or WIDTH, 1.1 + ROW_HEIGHT * len(self.names)

    def _draw(self, ax: Axes) -> None:
        draw_intervals(ax, self.intervals)
        if self.chance is not None:
            ax.axvline(self.chance, color=MUTED, linestyle="--", linewidth=1, label="chance")
            ax.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)
        ax.set_xlabel("accuracy")
        name_rows(ax, self.names)
        for label, row in zip(ax.get_yticklabels(), self.intervals, strict=True):
            label.set_fontweight("bold" if np.isnan(row).all() else "normal")


# ---- Explanation


@dataclass(eq=False, repr=False)
class ExplanationDisplay(Display):
    """Why an input was assigned its class: bars for what each seen class contributed.

    A bar to the right supports the class. A contribution of 0.7 doubles the odds. The 15 strongest
    are drawn, and the sum of the others. Use `from_explanation` to make one.

    Parameters
    ----------
    explanation : Explanation
        From `rankshot.explain`.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> why = rs.explain(head, [[0.1, 3.0, 1.5, -1.0]])[0]
    >>> display = rs.pages.ExplanationDisplay.from_explanation(why)
    >>> display.ax_.get_title()
    'cat (97.4%) rather than the average class'
    """

    explanation: Explanation

    @classmethod
    def from_explanation(
        cls, explanation: Explanation, *, ax: Axes | None = None
    ) -> ExplanationDisplay:
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

    def _measure(self, width: float | None) -> tuple[float, float]:
        return width or WIDTH, 1.2 + ROW_HEIGHT * len(self._choose_bars())

    def _draw(self, ax: Axes) -> None:
        bars, why = self._choose_bars(), self.explanation
        name_rows(ax, [name for name, _ in bars])
        values = [value for _, value in bars]
        drawn = ax.barh(range(len(bars)), values, height=0.7)
        for bar, value in zip(drawn, values, strict=True):
            bar.set_color(COLOURS[0 if value > 0 else 1])
        ax.bar_label(drawn, fmt="{:+.2f}", padding=3, fontsize=NUMBER_SIZE)
        ax.axvline(0, color=MUTED, linewidth=1)
        ax.margins(x=0.12)
        ax.set_xlabel("contribution to the log-odds")
        ax.set_title(
            f"{shorten(why.target)} ({why.probability:.1%}) rather than {shorten(why.rival)}"
        )

    def _choose_bars(self) -> list[tuple[str, float]]:
        """Return the strongest seen classes, sorted, and the sum of the others."""
        pairs = sorted(self.explanation.items, key=lambda pair: (-abs(pair[1]), pair[0]))
        bars = sorted(pairs[:MAX_BARS], key=lambda pair: (-pair[1], pair[0]))
        if len(pairs) > MAX_BARS:
            others = sum(value for _, value in pairs[MAX_BARS:])
            bars.append((f"{len(pairs) - MAX_BARS:,} others", others))
        return bars

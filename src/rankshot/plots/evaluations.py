"""Displays of predictions beside the true classes: reliability and confusions."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.validation import as_names
from rankshot.plots.axes import (
    LETTER,
    NUMBER_SIZE,
    Display,
    choose_style,
    measure_matrix,
    name_cells,
    shorten,
)
from rankshot.zeroshot.confusions import (
    FEW_CLASSES,
    choose_confused_classes,
    count_confusions,
    describe_left_out,
)
from rankshot.zeroshot.metrics import Reliability, format_share, reliability
from rankshot.zeroshot.scored_tables import compare_labels, require_labels

LARGEST, SMALLEST = 20.0, 4.0
"""The diameters of discs, in points."""
DIGIT = 0.065
"""Inches per digit of a number in a cell."""
DARK = 0.55
"""On cells with a larger share than this, numbers are white."""


# ---- Reliability


@dataclass(eq=False, repr=False)
class ReliabilityDisplay(Display):
    """A reliability diagram: the accuracy of inputs against their confidence, in bins.

    The confidence of an input is its largest probability. A calibrated classifier has all discs on
    the diagonal; below it, the classifier is too sure. The area of a disc, and the number beside
    it, is the number of inputs in the bin. A second display on the same axes gets another colour.
    Use `from_predictions` to make one.

    Parameters
    ----------
    reliability : Reliability
        The bins; see `rankshot.zeroshot.metrics.reliability`.
    name : str, optional
        For the legend.

    Attributes
    ----------
    ax_, figure_
        The Matplotlib axes and figure of the last `plot`.

    Examples
    --------
    >>> import rankshot as rs
    >>> proba = [[.9, .1], [.7, .3], [.2, .8]]
    >>> display = rs.plots.ReliabilityDisplay.from_predictions(
    ...     ["cat", "dog", "dog"], proba, ["cat", "dog"], n_bins=2, name="my head")
    >>> [text.get_text() for text in display.ax_.get_legend().get_texts()]
    ['calibrated', 'my head, calibration error .133']
    """

    reliability: Reliability
    name: str | None = None

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        classes: Iterable[Any],
        *,
        n_bins: int = 15,
        name: str | None = None,
        ax: Any = None,
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

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw on ``ax``, or on a new figure; return the display."""
        ax = self._open_axes(ax, 5.2, 5.2)
        number = sum(line.get_gid() == "reliability" for line in ax.lines)
        if number == 0:
            ax.plot([0, 1], [0, 1], ":", color="0.5", label="calibrated")
        bins = self.reliability
        used = bins.count > 0
        x, y, count = bins.confidence[used], bins.accuracy[used], bins.count[used]
        style = choose_style(number, number)
        label = f"calibration error {format_share(bins.expected_calibration_error)}"
        if self.name is not None:
            label = f"{shorten(self.name)}, {label}"
        line = {"color": style["color"], "linestyle": style["linestyle"]}
        ax.plot(x, y, **line, linewidth=1, label=label, gid="reliability")
        size = np.maximum(LARGEST * np.sqrt(count / count.max()), SMALLEST)
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
        ax.set_aspect("equal")
        ax.grid(color="0.9")
        ax.set_axisbelow(True)
        # Above the axes, where it hides no disc.
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, fontsize=8)
        return self


# ---- Confusion


@dataclass(eq=False, repr=False)
class ConfusionDisplay(Display):
    """A confusion matrix that stays readable for many classes.

    One row per true class and one column per predicted class. The numbers are counts, 0 is blank,
    and the colour is the share of the row. Of more than 20 classes, those that were confused are
    drawn, at most the 40 with the most confusions; the title says what is left out. Use
    `from_predictions` to make one.

    Parameters
    ----------
    confusion : ndarray of int, shape (L, L)
        Counts of all classes.
    classes : list of str
        The L classes.

    Attributes
    ----------
    ax_, figure_
        The Matplotlib axes and figure of the last `plot`.

    Examples
    --------
    >>> import rankshot as rs
    >>> truth, predicted = ["cat", "cat", "dog"], ["cat", "dog", "dog"]
    >>> display = rs.plots.ConfusionDisplay.from_predictions(truth, predicted)
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
        labels: Iterable[Any] | None = None,
        ax: Any = None,
    ) -> ConfusionDisplay:
        """Draw how often each class got each class.

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

    def plot(self, ax: Any = None) -> ConfusionDisplay:
        """Draw on ``ax``, or on a new figure; return the display."""
        L = len(self.classes)
        kept, note = choose_confused_classes(self.confusion, self.classes), ""
        if not kept:
            kept = list(range(FEW_CLASSES))
            note = f"No class was confused. Only {FEW_CLASSES} of {L:,} classes are shown."
        elif len(kept) < L:
            note = describe_left_out(len(kept), L)
        shares = self.confusion / np.maximum(self.confusion.sum(axis=1, keepdims=True), 1)
        counts, shares = self.confusion[np.ix_(kept, kept)], shares[np.ix_(kept, kept)]
        names = [self.classes[i] for i in kept]
        texts = [[f"{count:,}" if count else "" for count in row] for row in counts.tolist()]
        longest = max(len(text) for row in texts for text in row)
        side, margin = measure_matrix(names, max(0.24, DIGIT * longest + 0.1))
        ax = self._open_axes(ax, 1.08 * side + margin + 1.0, side + margin + 0.5)
        image = ax.imshow(100 * shares, cmap="Blues", vmin=0, vmax=100)
        bar = ax.figure.colorbar(image, ax=ax, fraction=0.04, pad=0.02)
        bar.set_label("inputs of the true class, %")
        for i, row in enumerate(texts):
            for j, text in enumerate(row):
                if text:
                    colour = "white" if shares[i, j] > DARK else "black"
                    ax.text(
                        j, i, text, ha="center", va="center", fontsize=NUMBER_SIZE, color=colour
                    )
        name_cells(ax, names)
        ax.set_xlabel("predicted class")
        ax.set_ylabel("true class")
        ax.set_title(textwrap.fill(note, int(side / LETTER)), fontsize=9)
        return self

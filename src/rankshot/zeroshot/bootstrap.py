"""Bootstrap intervals: how much a metric would change with other inputs of the same classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError
from rankshot.core.validation import Seed, require_number, require_whole_number
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scored_tables import require_labels

Floats = NDArray[np.float64]
RESAMPLES_PER_BLOCK = 50
"""Resamples that are drawn together; it limits the memory."""


class Bootstrap:
    """Resamples of n inputs, drawn with replacement within each class.

    All metrics of one experiment are computed on the same resamples, so that differences
    between methods have intervals, too.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes of the inputs.
    n_resamples : int
        The number of resamples.
    random_state : int, optional
        The seed.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.zeroshot import Bootstrap
    >>> right = np.repeat([1.0, 0.0], [60, 40])
    >>> found = Bootstrap(["cat"] * 100, random_state=0).interval(right)
    >>> print(f"{found.estimate:.2f}, from {found.low:.1f} to {found.high:.1f}")
    0.60, from 0.5 to 0.7
    """

    def __init__(
        self, y_true: ArrayLike, *, n_resamples: int = 1000, random_state: Seed = 0
    ) -> None:
        labels = np.array(require_labels(y_true, "y_true"))
        n_resamples = require_whole_number("n_resamples", n_resamples)
        rng = np.random.default_rng(random_state)
        self.n_inputs = len(labels)
        self._counts = np.zeros((n_resamples, len(labels)), np.uint8)
        for name in np.unique(labels):
            rows = np.flatnonzero(labels == name)
            for start in range(0, n_resamples, RESAMPLES_PER_BLOCK):
                some = self._counts[start : start + RESAMPLES_PER_BLOCK]
                drawn = rng.integers(rows.size, size=(len(some), rows.size))
                drawn += rows.size * np.arange(len(some))[:, None]
                counts = np.bincount(drawn.ravel(), minlength=len(some) * rows.size)
                some[:, rows] = counts.reshape(len(some), rows.size)

    def interval(
        self, values: ArrayLike, weights: ArrayLike | None = None, confidence: float = 0.95
    ) -> Interval:
        """Return the mean of one value per input, with its bootstrap percentile interval.

        Parameters
        ----------
        values : array-like of shape (n,)
            1 where a prediction is right and 0 where it is wrong, for example.
        weights : array-like of shape (n,), optional
            The weight of each input. With `class_weights` all classes count the same.
        confidence : float
            The share of the resamples inside the interval.
        """
        confidence = require_number("confidence", confidence, above=0, below=1)
        numbers = self._require_one_per_input("values", values)
        weight = self._require_one_per_input(
            "weights", np.ones(self.n_inputs) if weights is None else weights
        )
        total = self._means(weight)
        if weight.min() < 0 or total.min() <= 0:
            raise RankshotError(
                "weights must not be negative, and every resample needs an input with a weight "
                "above 0"
            )
        means = self._means(numbers * weight) / total
        tail = (1 - confidence) / 2
        low, high = np.quantile(means, [tail, 1 - tail])
        return Interval(float(np.average(numbers, weights=weight)), float(low), float(high))

    def _require_one_per_input(self, what: str, values: ArrayLike) -> Floats:
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError) as error:
            raise RankshotError(f"{what} must be numbers: {error}") from None
        if numbers.shape != (self.n_inputs,):
            raise RankshotError(
                f"{self.n_inputs} inputs need {self.n_inputs} {what}, not shape {numbers.shape}"
            )
        if (odd := np.flatnonzero(~np.isfinite(numbers))).size:
            raise RankshotError(f"{what}, row {odd[0]}: expected a number, not {numbers[odd[0]]}")
        return numbers

    def _means(self, values: Floats) -> Floats:
        blocks = [
            self._counts[start : start + RESAMPLES_PER_BLOCK].astype(np.float64) @ values
            for start in range(0, len(self._counts), RESAMPLES_PER_BLOCK)
        ]
        return np.concatenate(blocks) / self.n_inputs


def class_interval(y_true: ArrayLike, right: ArrayLike, random_state: Seed = 0) -> Interval:
    """Return the mean class accuracy, with an interval from resamples of *classes*.

    It is for statements about classes in general: a few classes differ more from one another
    than the inputs of one class do.
    """
    labels = np.asarray(y_true).astype(str)
    _, code, size = np.unique(labels, return_inverse=True, return_counts=True)
    by_class = np.bincount(code, np.asarray(right, np.float64)) / size
    return Bootstrap(["class"] * len(size), random_state=random_state).interval(by_class)


def class_weights(y_true: ArrayLike) -> Floats:
    """Return the weight 1 / n_c of each input, n_c being the size of its class."""
    _, code, size = np.unique(
        np.asarray(y_true).astype(str), return_inverse=True, return_counts=True
    )
    return np.asarray(1.0 / size[code])

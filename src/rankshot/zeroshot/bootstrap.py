"""Bootstrap intervals: how much a figure would change with other inputs of the same classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.errors import RankshotError
from rankshot.ranking.sampling import Seed
from rankshot.zeroshot.metrics import Interval

Floats = NDArray[np.float64]

ROUNDS_AT_ONCE = 50
"""Resamples drawn together: memory stays that of so many rows of counts."""


class Bootstrap:
    """Resamples of n inputs, drawn with replacement inside each class.

    All figures of one experiment are taken from the same resamples, so differences between
    methods have intervals, too.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes of the inputs.
    n_resamples : int
    random_state : int, optional

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.zeroshot.bootstrap import Bootstrap
    >>> right = np.repeat([1.0, 0.0], [60, 40])
    >>> found = Bootstrap(["cat"] * 100, random_state=0).interval(right)
    >>> print(f"{found.estimate:.2f}, from {found.low:.1f} to {found.high:.1f}")
    0.60, from 0.5 to 0.7
    """

    def __init__(
        self, y_true: ArrayLike, *, n_resamples: int = 1000, random_state: Seed = 0
    ) -> None:
        labels = np.asarray(y_true).astype(str)
        if labels.ndim != 1 or labels.size == 0:
            raise RankshotError("there are no labels to resample")
        rng = np.random.default_rng(random_state)
        self.n_inputs = len(labels)
        self._counts = np.zeros((n_resamples, len(labels)), np.uint8)
        for name in np.unique(labels):
            rows = np.flatnonzero(labels == name)
            for start in range(0, n_resamples, ROUNDS_AT_ONCE):
                some = self._counts[start : start + ROUNDS_AT_ONCE]
                drawn = rng.integers(rows.size, size=(len(some), rows.size))
                drawn += rows.size * np.arange(len(some))[:, None]
                counts = np.bincount(drawn.ravel(), minlength=len(some) * rows.size)
                some[:, rows] = counts.reshape(len(some), rows.size)

    def interval(
        self, values: ArrayLike, weights: ArrayLike | None = None, confidence: float = 0.95
    ) -> Interval:
        """Return the mean of a value an input, and the interval that resamples put it in.

        Parameters
        ----------
        values : array-like of shape (n,)
            1 where a prediction is right and 0 where it is wrong, for example.
        weights : array-like of shape (n,), optional
            What each input counts; one over the size of its class, for the mean over classes.
        confidence : float
            The part of the resamples inside.
        """
        numbers = np.asarray(values, np.float64)
        if numbers.shape != (self.n_inputs,):
            raise RankshotError(
                f"{self.n_inputs} inputs need {self.n_inputs} values, not shape {numbers.shape}"
            )
        weight = np.ones(self.n_inputs) if weights is None else np.asarray(weights, np.float64)
        means = self._means(numbers * weight) / self._means(weight)
        tail = (1 - confidence) / 2
        low, high = np.quantile(means, [tail, 1 - tail])
        return Interval(float(np.average(numbers, weights=weight)), float(low), float(high))

    def _means(self, values: Floats) -> Floats:
        blocks = [
            self._counts[start : start + ROUNDS_AT_ONCE].astype(np.float64) @ values
            for start in range(0, len(self._counts), ROUNDS_AT_ONCE)
        ]
        return np.concatenate(blocks) / self.n_inputs


def class_weights(y_true: ArrayLike) -> Floats:
    """Return one over the size of the class of each input: so classes count alike."""
    _, code, size = np.unique(
        np.asarray(y_true).astype(str), return_inverse=True, return_counts=True
    )
    return np.asarray(1.0 / size[code])

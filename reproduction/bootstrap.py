"""Resamples of inputs: intervals of the reproduction's tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import InputError
from rankshot.core.validation import Seed
from rankshot.zeroshot.metrics import N_RESAMPLES, Interval

Floats = NDArray[np.float64]
RESAMPLES_PER_BLOCK = 50
"""Resamples that are drawn together; it limits the memory."""


class Bootstrap:
    """Resamples of n inputs, drawn with replacement within each class.

    All metrics of one experiment are computed on the same resamples, so that differences between
    methods have intervals as well.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes of the inputs.
    random_state : int, optional
        The seed.

    Examples
    --------
    >>> import numpy as np
    >>> from reproduction.bootstrap import Bootstrap
    >>> right = np.repeat([1.0, 0.0], [60, 40])
    >>> found = Bootstrap(["cat"] * 100, random_state=0).interval(right)
    >>> print(f"{found.estimate:.2f}, from {found.low:.1f} to {found.high:.1f}")
    0.60, from 0.5 to 0.7
    """

    def __init__(self, y_true: ArrayLike, *, random_state: Seed = 0) -> None:
        labels = np.asarray(y_true).astype(str)
        rng = np.random.default_rng(random_state)
        self._counts = np.zeros((N_RESAMPLES, len(labels)), np.uint8)
        for name in np.unique(labels):
            rows = np.flatnonzero(labels == name)
            for start in range(0, N_RESAMPLES, RESAMPLES_PER_BLOCK):
                some = self._counts[start : start + RESAMPLES_PER_BLOCK]
                drawn = rng.integers(rows.size, size=(len(some), rows.size))
                drawn += rows.size * np.arange(len(some))[:, None]
                counts = np.bincount(drawn.ravel(), minlength=len(some) * rows.size)
                some[:, rows] = counts.reshape(len(some), rows.size)

    def interval(self, values: ArrayLike, weights: ArrayLike | None = None) -> Interval:
        """Mean of one value per input, with its 95% bootstrap percentile interval.

        Parameters
        ----------
        values : array-like of shape (n,)
            For example, 1 for a correct prediction and 0 for a wrong one.
        weights : array-like of shape (n,), optional
            Positive weights, one per input. With `class_weights`, all classes have equal weight.
        """
        n = self._counts.shape[1]
        numbers = np.asarray(values, np.float64)
        weight = np.ones(n) if weights is None else np.asarray(weights, np.float64)
        if not numbers.shape == weight.shape == (n,) or not np.isfinite(numbers @ weight):
            raise InputError("values", values, f"must be one number for each of {n} inputs")
        means = self._sums(numbers * weight) / self._sums(weight)
        low, high = np.quantile(means, [0.025, 0.975])
        return Interval(float(np.average(numbers, weights=weight)), float(low), float(high))

    def _sums(self, values: Floats) -> Floats:
        blocks = row_blocks(*self._counts.shape)
        return np.concatenate([self._counts[rows].astype(np.float64) @ values for rows in blocks])

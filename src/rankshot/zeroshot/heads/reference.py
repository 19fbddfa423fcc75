"""`Reference`: standardise scores and log-posteriors by those of inputs of seen classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import Array, Constants, to_numpy
from rankshot.core.blocks import CACHED_CELLS, row_blocks
from rankshot.core.errors import RankshotError
from rankshot.zeroshot.scores import Kind, Scores, as_scores

Floats = NDArray[np.floating]
Function = Callable[[Floats, Kind], Floats]
LEAST_INPUTS = 10
"""The smallest number of inputs for means and standard deviations."""
SAME = 16
"""Numbers that differ by less than this number of units in the last place are equal."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Means and standard deviations over inputs of seen classes.

    Attributes
    ----------
    kind : str
        The kind of the scores.
    score_mean, score_std : ndarray of shape (columns,)
        Mean and standard deviation of each column of the scores.
    target_mean, target_std : ndarray of shape (new classes,)
        Mean and standard deviation of the log-posterior of each new class, computed from the
        standardised scores.
    """

    kind: Kind
    score_mean: Floats
    score_std: Floats
    target_mean: NDArray[np.float64]
    target_std: NDArray[np.float64]

    def standardize_scores(self, values: Floats, kind: Kind) -> Floats:
        """Return scores in standard deviations from their mean."""
        self.require_kind(kind)
        return np.asarray(standardize(values, self.score_mean, self.score_std))

    def require_kind(self, kind: Kind) -> None:
        """Raise unless scores are of the same kind as those of the reference."""
        if kind != self.kind:
            raise RankshotError(f"the reference has {self.kind} scores, these are {kind}")

    def constants(self) -> Constants:
        """Return the arrays for formulas in any library."""
        return {
            "score_mean": self.score_mean,
            "score_std": self.score_std,
            "target_mean": self.target_mean,
            "target_std": self.target_std,
        }

    def standardize_log_posterior(self, log_posterior: Floats) -> NDArray[np.float64]:
        """Return log-posteriors, one row per class, in standard deviations from their mean."""
        shape = (-1,) + (1,) * (log_posterior.ndim - 1)
        mean, std = self.target_mean.reshape(shape), self.target_std.reshape(shape)
        return np.asarray((log_posterior - mean) / std)


def as_reference(reference: Scores | ArrayLike, items: tuple[str, ...]) -> Scores:
    """Return the scores of a reference in main memory, where heads are fitted."""
    table = as_scores(reference, items)
    if isinstance(table.values, np.ndarray):
        return table
    return Scores(to_numpy(table.values), items, table.kind)


def fit_reference(table: Scores, log_posterior: Function) -> Reference:
    """Compute the means and standard deviations over some inputs.

    Parameters
    ----------
    table : Scores
        Scores of inputs of seen classes.
    log_posterior : callable
        The function of a head that returns log-posteriors, with one row per class, for scores
        and their kind.
    """
    require_enough(table)
    values = table.values
    mean, std = mean_and_std(values)
    blocks = row_blocks(len(values), values.shape[1], CACHED_CELLS)
    of_targets = np.concatenate(
        [log_posterior(standardize(values[rows], mean, std), table.kind) for rows in blocks],
        axis=1,
    )
    target_mean, target_std = mean_and_std(of_targets.T)
    return Reference(
        table.kind,
        mean,
        std,
        np.asarray(target_mean, np.float64),
        np.asarray(target_std, np.float64),
    )


def require_enough(reference: Scores) -> None:
    """Raise if a reference has too few inputs for means and standard deviations."""
    if len(reference) < LEAST_INPUTS:
        raise RankshotError(
            f"the reference has {len(reference)} inputs: at least {LEAST_INPUTS} are needed, and "
            "several hundred are better"
        )


def standardize(values: Array, mean: Array, std: Array) -> Array:
    """Return values in standard deviations from their mean, in any library."""
    return (values - mean) / std


def mean_and_std(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each column; 1 for a constant column.

    The first row is subtracted before: the mean of many equal numbers is rounded, so that their
    standard deviation would not be exactly 0.
    """
    total, squares = np.zeros((2, values.shape[1]))
    for rows in row_blocks(len(values), values.shape[1]):
        total += np.subtract(values[rows], values[0], dtype=np.float64).sum(axis=0)
    mean = values[0] + total / len(values)
    for rows in row_blocks(len(values), values.shape[1]):
        from_mean = np.subtract(values[rows], values[0], dtype=np.float64) - total / len(values)
        squares += np.einsum("ni,ni->i", from_mean, from_mean)
    deviation = np.sqrt(squares / len(values))
    largest = np.maximum(values.max(axis=0), -values.min(axis=0))
    std = np.where(deviation > SAME * np.finfo(values.dtype).eps * largest, deviation, 1.0)
    return mean.astype(values.dtype), std.astype(values.dtype)

"""What is usual for inputs of seen classes, and how far from it others are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import CACHED_CELLS, row_blocks
from rankshot.core.errors import RankshotError
from rankshot.zeroshot.scores import Kind, Scores

Floats = NDArray[np.floating]
Function = Callable[[Floats, Kind], NDArray[np.float64]]
LEAST_INPUTS = 10
"""A mean and a standard deviation of fewer inputs say nothing."""
SAME = 16
"""Numbers that differ by fewer units in the last place than this are the same."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Means and standard deviations over inputs of seen classes.

    Attributes
    ----------
    kind : str
        That of the scores.
    score_mean, score_std : ndarray of shape (columns,)
        Of each column of the scores.
    target_mean, target_std : ndarray of shape (targets,)
        Of the log-posterior of each target, by scores measured so.
    """

    kind: Kind
    score_mean: Floats
    score_std: Floats
    target_mean: NDArray[np.float64]
    target_std: NDArray[np.float64]

    def scaled(self, values: Floats, kind: Kind) -> Floats:
        """Return scores in standard deviations from their mean."""
        if kind != self.kind:
            raise RankshotError(f"the reference has {self.kind} scores, these are {kind}")
        return _scaled(values, self.score_mean, self.score_std)

    def standardized(self, log_posterior: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return log-posteriors, targets first, in standard deviations from their mean."""
        shape = (-1,) + (1,) * (log_posterior.ndim - 1)
        mean, spread = self.target_mean.reshape(shape), self.target_std.reshape(shape)
        return np.asarray((log_posterior - mean) / spread)


def fit_reference(table: Scores, log_posterior: Function) -> Reference:
    """Return what is usual for some inputs.

    Parameters
    ----------
    table : Scores
        Of inputs of seen classes.
    log_posterior : callable
        Of a head, from scores and their kind: a row a target.
    """
    if len(table) < LEAST_INPUTS:
        raise RankshotError(
            f"the reference has {len(table)} inputs: at least {LEAST_INPUTS} are needed, and some "
            "hundreds are better"
        )
    values = table.values
    mean, spread = _mean_and_std(values)
    blocks = row_blocks(len(values), values.shape[1], CACHED_CELLS)
    of_targets = np.concatenate(
        [log_posterior(_scaled(values[rows], mean, spread), table.kind) for rows in blocks], axis=1
    )
    target_mean, target_std = _mean_and_std(of_targets.T)
    return Reference(
        table.kind,
        mean,
        spread,
        np.asarray(target_mean, np.float64),
        np.asarray(target_std, np.float64),
    )


def _scaled(values: Floats, mean: Floats, spread: Floats) -> Floats:
    return np.asarray((values - mean) / spread)


def _mean_and_std(values: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the standard deviation of each column, 1 for what never changes.

    They are measured from the first row: the mean of many equal numbers is rounded, and their
    deviation from it would not be 0.
    """
    moved = np.subtract(values, values[0], dtype=np.float64)
    mean, deviation = values[0] + moved.mean(axis=0), moved.std(axis=0)
    rounding = SAME * np.finfo(values.dtype).eps * np.abs(values).max(axis=0)
    spread = np.where(deviation > rounding, deviation, 1.0)
    return mean.astype(values.dtype), spread.astype(values.dtype)

"""Whether ratings explain the votes between two items: a score test of each pair."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from rankshot.leaderboards.evidence import ScoreTests, adjust_holm
from rankshot.leaderboards.pair_models import PairLikelihood
from rankshot.ranking.models.information import variances_of_differences

Floats = NDArray[np.float64]
LEAST_VOTES = 10
"""Pairs with fewer votes are not tested: their shares are hardly normal."""


def find_misfit(tests: ScoreTests) -> Floats:
    """Return the p-values of each pair having the wins that its ratings explain; NaN if not tested.

    They are adjusted for all pairs (Holm 1979). The variance is that of the model, less what the
    fit explains, or that of raters if it is larger.
    """
    C = len(tests.covariance)
    found = np.full((C, C), np.nan)
    likelihood = tests.likelihood
    if not isinstance(likelihood, PairLikelihood):
        return found
    pair, slope, information, weights = likelihood.of_pairs(tests.parameters)
    size = np.bincount(pair, weights, C * C)
    of_pair = np.bincount(pair, weights * information, C * C)
    share = of_pair * variances_of_differences(tests.covariance).ravel()
    # The votes of a pair that nothing else connects are explained by its ratings alone.
    left = np.maximum(1 - share, 0.0)
    variance = of_pair * left
    for units in tests.units[:2]:
        cell = units.unit * (C * C) + pair[units.number]
        cells, at = np.unique(cell, return_inverse=True)
        sums = np.bincount(at, units.weights * slope[units.number]) ** 2
        variance = np.maximum(variance, np.bincount(cells % (C * C), sums, C * C) * left)
    tested = np.flatnonzero((size >= LEAST_VOTES) & (left > 1e-6))
    z = np.bincount(pair, weights * slope, C * C)[tested] / np.sqrt(variance[tested])
    p = np.full(C * C, np.nan)
    p[tested] = adjust_holm(2 * ndtr(-np.abs(z)))
    return np.asarray(np.fmin(p.reshape(C, C), p.reshape(C, C).T))

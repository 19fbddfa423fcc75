r"""Which ranks items may really have, and which votes would tell more.

The rank interval of item i contains its true rank with at least the given probability, however
close the worths are (Mogstad et al. 2024). Draws of the errors d give the number c that

.. math:: \max_j |d_i - d_j| / s_{ij}

stays below with this probability, where s are the standard errors of differences. Items that are
more than c standard errors above i count as really above it, and likewise below. Differences with
few degrees of freedom count as many normal standard errors as are equally improbable. Then the
maximum is over the items that are left, with a smaller c, until no more items are told from i
(step-down).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri, stdtr

from rankshot.ranking.models.information import variances_of_differences

Floats = NDArray[np.float64]


def find_scores(log_worths: Floats, covariance: Floats, degrees: Floats) -> Floats:
    """Return how far items (columns) are above others (rows), in normal standard errors.

    Those of Student's distribution with ``degrees[i, j]`` are moved to equal probabilities.
    """
    scales = np.sqrt(np.maximum(variances_of_differences(covariance), 0.0))
    difference = log_worths - log_worths[:, None]
    # An item does not differ from itself, nor do items that the errors do not tell apart.
    t = np.divide(difference, scales, out=np.zeros_like(scales), where=scales > 0)
    with np.errstate(under="ignore"):
        return np.asarray(-np.sign(t) * ndtri(stdtr(degrees, -np.abs(t))))


def adjust_holm(p: Floats) -> Floats:
    """Return p-values that hold for all of them together (Holm 1979)."""
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


def draw_errors(covariance: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw normal errors of log-worths, one column per draw."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ rng.standard_normal((len(covariance), n)))


def find_rank_intervals(
    scores: Floats, covariance: Floats, errors: Floats, level: float
) -> NDArray[np.int64]:
    """Return the best and the worst rank of each item."""
    # Bonferroni's bound decides most pairs: the first maximum would only lower it a little.
    bound = -ndtri((1 - level) / (2 * max(len(scores) - 1, 1)))
    scales = np.sqrt(np.maximum(variances_of_differences(covariance), 0.0))
    undecided = (scales > 0) & (np.abs(scores) <= bound)
    # Single precision is enough for a quantile of draws, and fits in the cache.
    draws = errors.astype(np.float32)
    rates = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0).astype(np.float32)
    nth = min(int(np.ceil(level * draws.shape[1])), draws.shape[1]) - 1
    for i, row in enumerate(undecided):
        left = np.flatnonzero(row)
        sizes = np.abs(draws[left] - draws[i]) * rates[i, left, None]
        while left.size:
            reach = np.partition(sizes.max(axis=0), nth)[nth]
            still = np.abs(scores[i, left]) <= reach
            if still.all():
                break
            left, sizes = left[still], sizes[still]
        undecided[i] = False
        undecided[i, left] = True
    decided = (scales > 0) & ~undecided
    best = 1 + (decided & (scores > 0)).sum(axis=1)
    worst = len(scores) - (decided & (scores < 0)).sum(axis=1)
    return np.column_stack([best, worst])


def choose_pairs(log_worths: Floats, covariance: Floats, n: int) -> list[tuple[int, int]]:
    r"""Return the pairs whose votes are expected to tell most of the order, one after the other.

    A vote between i and j has the information h = p (1 - p) of their difference, and changes the
    covariance V to V - h V e eᵀ V / (1 + h eᵀ V e), with e = e_i - e_j. Each pair is the one that
    most lowers the variances of all differences, each in units of itself and weighted by the
    probability that its order is wrong.
    """
    difference = log_worths[:, None] - log_worths
    information = expit(difference) * expit(-difference)
    V, chosen = covariance.copy(), []
    for _ in range(n):
        variances = variances_of_differences(V)
        safe = np.where(variances > 0, variances, np.inf)
        weights = ndtr(-np.abs(difference) / np.sqrt(safe)) / safe
        laplacian = np.diag(weights.sum(axis=1)) - weights
        gain = information * variances_of_differences(V @ laplacian @ V)
        gain /= 1 + information * variances
        gain[np.tril_indices_from(gain)] = -np.inf  # (j, i) is the same pair, up to rounding
        i, j = divmod(int(np.argmax(gain)), len(V))
        moved = V[:, i] - V[:, j]
        V = V - information[i, j] / (1 + information[i, j] * variances[i, j]) * np.outer(
            moved, moved
        )
        chosen.append((i, j))
    return chosen

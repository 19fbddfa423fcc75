r"""The default head: what the rankings say of new classes, as linear functions of the scores.

With the scores f of an input, standardised to mean 0 and variance 1 over the C seen classes, and
the weights w of the rankings (one row per new class, see `center_weights`), the log-posterior is

.. math:: \ell_z(x) = [(1 - s) w_z + s a_z] \cdot f(x) - s a_z \cdot m + \sum_i b_{zi} \beta_i(x)

- m and R are the mean and the correlations of f over a reference, and
  :math:`a_z = (R + u C I)^{-1} w_z`, scaled to variance 1 over the reference, is the linear
  discriminant whose class means are the weights: scores that rise and fall together are not
  independent evidence. s is the share of the reference; without one, s = 0.
- A column that is high, or low, for nearly all inputs of the reference tells nothing: the part of
  its mean that exceeds its standard deviation is subtracted in full, with its bonus (`Baseline`).
- β is a bonus for the seen classes with the five largest scores (`rank_bonus`): it depends on the
  order of the scores alone, which no rescaling of logits changes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from rankshot.core.arrays import largest_of_rows
from rankshot.zeroshot.scores import count_effective, count_predictions

Floats = NDArray[np.float64]
UNCERTAINTY = 0.1
"""u, the variance of each score that the rankings leave open, as a share of all variance."""
SHARE = 0.5
"""s of inputs that are classified one at a time. With few seen classes or short lists a reference
can do harm, and half of it does hardly any."""
PLACE_BONUS = tuple(1.5 / place for place in range(1, 6))
"""The bonus of the largest score, the second and so on. From 1 / place to 2 / place, for three,
five or all places, the accuracy on held-out seen classes is the same."""
ROUNDING = 1e-12
"""Lengths and variances that are smaller than this are zeros with a rounding error."""


class Baseline(NamedTuple):
    """The standardised scores of a reference in the mean, as far as it covers each seen class.

    Attributes
    ----------
    mean : ndarray of shape (C,)
        m, times the coverage.
    correlations : ndarray of shape (C, C)
        R; those of a class that is not covered are 0.
    coverage : ndarray of shape (C,)
        From 0 to 1: see `measure_coverage`.
    excess : ndarray of shape (C,)
        The part of the mean beyond one standard deviation of the score. Scores of a class that up
        to half of the inputs belong to have none.
    bonus : ndarray of shape (C,)
        The mean rank bonus, times the share of the excess in the mean.
    """

    mean: Floats
    correlations: Floats
    coverage: Floats
    excess: Floats
    bonus: Floats

    def weigh(self, share: float) -> Floats:
        """The scores from which others are counted, if this share of the reference is used."""
        return np.asarray(share * self.mean + (1 - share) * self.excess)


class LinearPart(NamedTuple):
    """Linear log-posteriors of new classes: one row of slopes per class.

    Attributes
    ----------
    slopes : ndarray of shape (L, C)
        Of standardised scores.
    rank_slopes : ndarray of shape (L, C)
        Of the rank bonus.
    offsets : ndarray of shape (L,)
    """

    slopes: Floats
    rank_slopes: Floats
    offsets: Floats

    def evaluate(self, f: Floats, bonus: Floats) -> Floats:
        """Return the log-posteriors of standardised scores and their `rank_bonus`."""
        return np.asarray(f @ self.slopes.T + bonus @ self.rank_slopes.T + self.offsets)


# ---- One input


def rank_bonus(scores: Any, xp: Any = np) -> Any:
    """Return the bonus of each score for its place among the scores of the same input.

    Tied scores share the bonus of their places equally, so the order of the columns is irrelevant.

    Parameters
    ----------
    scores : array of shape (n, C)
        Of any library with the array API; missing values are not allowed.
    xp : module
        The library.

    Examples
    --------
    >>> rank_bonus(np.array([[0.0, 5.0, 3.0, 1.0], [2.0, 2.0, 0.0, 0.0]])).round(2)
    array([[0.38, 1.5 , 0.75, 0.5 ],
           [1.12, 1.12, 0.44, 0.44]])
    """
    return _bonus_of_largest(scores) if xp is np else _bonus_by_level(scores, xp)


def _bonus_by_level(scores: Any, xp: Any) -> Any:
    """The bonus without any choice that depends on the values: for graphs, compilers and ties."""
    bonuses = PLACE_BONUS[: scores.shape[1]]
    largest, total = largest_of_rows(scores, len(bonuses), xp), 0.0
    for place, bonus in enumerate(bonuses):
        # All scores that are equal to the one at this place share its bonus.
        at = xp.astype(scores == largest[:, place : place + 1], scores.dtype)
        total = total + at * (bonus / xp.sum(at, axis=1, keepdims=True))
    return total


def _bonus_of_largest(scores: NDArray[Any]) -> NDArray[Any]:
    """The bonus from the columns of the largest scores: several times as fast in NumPy."""
    bonus = np.array(PLACE_BONUS[: scores.shape[1]], scores.dtype)
    left, rows = scores.copy(), np.arange(len(scores))
    total, level = np.zeros_like(scores), np.full(len(scores), np.inf)
    is_tied = np.zeros(len(scores), bool)
    for share in bonus:
        best = left.argmax(axis=1)
        is_tied |= left[rows, best] == level
        level = left[rows, best]
        total[rows, best], left[rows, best] = share, -np.inf
    # Scores that are not among the largest may be equal to the last of them.
    is_tied |= left.max(axis=1) == level
    total[is_tied] = _bonus_by_level(scores[is_tied], np)
    return total


# ---- The weights of the rankings


def center_weights(weights: Floats) -> Floats:
    """Return the weights of each new class, divided by the length of their deviation from the mean.

    A class with few or short lists then has no advantage. A class without weights keeps zeros.
    """
    length = _deviation(weights)
    return np.asarray(weights / np.where(length > ROUNDING, length, np.inf))


def rank_weights(weights: Floats) -> Floats:
    """Return the weights of the rank bonus: those of `center_weights` times √length.

    The bonus is a bet on the largest scores. A short list bets more on its first classes than a
    long one, and wins more often: half of this advantage is kept, on a logarithmic scale.
    """
    length = _deviation(weights)
    factor = np.sqrt(length)
    known = factor[length > ROUNDING]
    return np.asarray(center_weights(weights) * factor / (known.mean() if known.size else 1.0))


def _deviation(weights: Floats) -> Floats:
    deviations = weights - weights.mean(axis=1, keepdims=True)
    return np.asarray(np.linalg.norm(deviations, axis=1, keepdims=True))


# ---- The reference


def measure_baseline(f: Floats) -> Baseline:
    """Return the mean and the correlations of the standardised scores ``f`` of a reference."""
    counts = count_predictions(f)
    mean = f.mean(axis=0)
    covariance = f.T @ f / len(f) - np.outer(mean, mean)
    coverage = np.maximum(measure_coverage(counts), _measure_trust(mean, covariance, counts))
    variance = covariance.diagonal()
    scale = np.sqrt(np.where(variance > ROUNDING, variance, 1.0) / np.maximum(coverage, ROUNDING))
    correlations = covariance / np.outer(scale, scale)
    np.fill_diagonal(correlations, 1.0)
    beyond = np.maximum(np.abs(mean) - np.sqrt(np.maximum(variance, 0.0)), 0.0)
    share = coverage * beyond / np.maximum(np.abs(mean), ROUNDING)
    bonus = share * rank_bonus(f).mean(axis=0)
    return Baseline(coverage * mean, correlations, coverage, share * mean, bonus)


def measure_coverage(counts: Floats) -> Floats:
    """Return how far a reference covers each seen class, given the number of its predictions.

    It is n / (n + C) for a class that is predicted n times. Inputs of other classes are a baseline
    as well: it is at least N / (N + C) · m / C, where N is the number of all inputs and m the
    effective number of classes among them (Simpson's).
    """
    n, C = counts.sum(), len(counts)
    return np.asarray(np.maximum(counts / (counts + C), n / (n + C) * count_effective(counts) / C))


def _measure_trust(mean: Floats, covariance: Floats, counts: Floats) -> Floats:
    """Return the share of each mean score that is not due to chance, from 0 to 1.

    This is the estimator of James and Stein: true means have the variance b and their errors the
    variance e, so a measured mean is worth b / (b + e). Inputs of one class are not independent, so
    classes count. b is one standard error below its estimate, as few classes hardly show it.
    """
    m, total = count_effective(counts), float(np.trace(covariance))
    if m <= 1 or total <= ROUNDING:
        # All inputs are of one class, or equal.
        return np.zeros(len(mean))
    error = covariance.diagonal() / (m - 1)
    directions = total**2 / (covariance**2).sum()
    true = (mean**2).mean() - error.mean() * (1 + np.sqrt(2 / directions))
    return np.asarray(true / (true + error)) if true > 0 else np.zeros(len(mean))


# ---- The head


def fit_linear_part(
    weights: Floats, baseline: Baseline | None = None, share: float = SHARE
) -> LinearPart:
    """Return the log-posteriors by the rankings.

    Parameters
    ----------
    weights : ndarray of shape (L, C)
        The mean weight of each seen class over the rankings of each new class.
    baseline : Baseline, optional
        By a reference.
    share : float
        How much of the reference is used, from 0 to 1.
    """
    w, ranks = center_weights(weights), rank_weights(weights)
    if baseline is None:
        return LinearPart(w, ranks, np.zeros(len(w)))
    C, R = w.shape[1], baseline.correlations
    a = np.linalg.solve(R + UNCERTAINTY * C * np.eye(C), w.T).T
    variance = ((a @ R) * a).sum(axis=1, keepdims=True)
    a /= np.sqrt(np.where(variance > ROUNDING, variance, np.inf))
    offsets = share * (a @ baseline.mean) + (1 - share) * (w @ baseline.excess)
    return LinearPart((1 - share) * w + share * a, ranks, -offsets - ranks @ baseline.bonus)


def choose_share(f: Floats, bonus: Floats, weights: Floats, baseline: Baseline) -> float:
    """Return the share of the reference for a batch: all of it, or the default.

    All of it is right if the classes then are predicted more evenly than without any reference, by
    the entropy of their frequencies. No labels are used.
    """

    def measure_entropy(base: Baseline | None) -> float:
        predicted = fit_linear_part(weights, base, 1.0).evaluate(f, bonus).argmax(axis=1)
        return float(entr(np.bincount(predicted) / len(predicted)).sum())

    return 1.0 if measure_entropy(baseline) > measure_entropy(None) else SHARE

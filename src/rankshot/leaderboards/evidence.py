r"""How certain it is that one item is above another: tests of pairs, and claims about all of them.

A Wald test divides an estimate by its error. For an item that won nearly all of its votes the error
grows faster than the estimate, so that more evidence makes the test weaker (Hauck and Donner 1977).
Where two items are far apart and the Wald test is not decisive, a *score test* replaces it: the
model is fitted with a fixed difference :math:`\delta`, and the derivative S of the log-likelihood
in :math:`\delta` is compared with its error there, which is finite. Its variance is that of the
model or, if larger, that of the raters' own derivatives around their mean (with 1 / (1 - p) for a
rater with the share p of the information), and Student's t distribution has as many degrees of
freedom as the shares allow. Half a vote is taken off S: votes are whole.

Claims for many looks use e-values. If the difference of two equal items were drawn from a normal
distribution of variance :math:`\tau^2`, the likelihood ratio to no difference would be

.. math:: E = \sqrt{\frac{s^2}{s^2 + \tau^2}} \exp \frac{z^2 \tau^2}{2 (s^2 + \tau^2)}

for the statistic z with the error s. As votes come in, E has mean 1 if there is no difference, and
it ever exceeds 1 / p with a probability of at most p (Ville 1939; Robbins 1970). Where earlier
votes decide which pairs are next, this is not true of one difference, but of all log-worths
together: with their covariance V, :math:`\tfrac12 \log \det (1 + \tau^2 V^{-1})` replaces the
logarithm of the root, and the claims hold for all pairs at once (Abbasi-Yadkori et al. 2011).

References
----------
Hauck and Donner (1977), Wald's test as applied to hypotheses in logit analysis. Journal of the
American Statistical Association 72. Boos (1992), On generalized score tests. The American
Statistician 46. Robbins (1970), Statistical methods related to the law of the iterated logarithm.
Annals of Mathematical Statistics 41. Abbasi-Yadkori, Pal and Szepesvari (2011), Improved algorithms
for linear stochastic bandits. Advances in Neural Information Processing Systems 24. Holm (1979), A
simple sequentially rejective multiple test procedure. Scandinavian Journal of Statistics 6.
Mogstad, Romano, Shaikh and Wilhelm (2024), Inference for ranks. Review of Economic Studies 91.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.optimize import brentq
from scipy.special import expit, log_ndtr, ndtr, ndtri, ndtri_exp, stdtr, stdtrit

from rankshot.core.newton import Point, maximize
from rankshot.ranking.models.information import WorthLikelihood, variances_of_differences
from rankshot.ranking.models.robust_errors import Units

Floats = NDArray[np.float64]
FAR_APART = 2.0
"""Log-odds. A Wald statistic of two items that met each other grows with evidence up to 2.4."""
DECISIVE = 6.0
"""Wald statistics above this decide among any number of pairs that a board can have."""
EXACT = 1e-6
"""The log-likelihood that a fit with a fixed difference may miss."""
MANY = 1e12
"""Degrees of freedom of what is normal."""
EFFECT = 1.0
"""τ: the difference, in log-odds, that e-values are best at. They hold for any."""
FARTHEST = 60.0
"""Log-odds beyond which no bound of a difference is searched."""


# ---- Claims for one look, or for many


def adjust_holm(p: Floats) -> Floats:
    """Return p-values that hold for all of them together (Holm 1979)."""
    order = np.argsort(p)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1)))
    return adjusted


class Looks(NamedTuple):
    """For how many looks at the votes claims hold.

    Attributes
    ----------
    kind : {"one", "many", "guided"}
        One, at a number of votes that was fixed; any number; or any number, where earlier votes
        decide which pairs are next.
    log_root : float
        The half of the log-determinant above.
    """

    kind: str
    log_root: float = 0.0

    def log_p(self, z: Floats | float, errors: Floats | float) -> Floats:
        """Return logarithms of two-sided p-values."""
        if self.kind == "one":
            return np.asarray(np.minimum(np.log(2) + log_ndtr(-np.abs(z)), 0.0))
        ratio, root = self._mix(errors)
        return np.asarray(np.minimum(root - np.asarray(z) ** 2 * ratio / (2 * (1 + ratio)), 0.0))

    def _mix(self, errors: Floats | float) -> tuple[Floats, Floats | float]:
        """Return τ²/s², and the logarithm of the root above."""
        ratio = EFFECT**2 / np.maximum(np.asarray(errors) ** 2, np.finfo(float).tiny)
        return ratio, self.log_root if self.kind == "guided" else np.log1p(ratio) / 2

    def adjust(self, p: Floats) -> Floats:
        """Return p-values that hold for all of them together."""
        return p if self.kind == "guided" else adjust_holm(p)

    def reach(self, errors: Floats, degrees: Floats, level: float) -> Floats:
        """Return half the width of intervals of estimates with these errors."""
        with np.errstate(divide="ignore"):
            t = stdtrit(degrees, (1 + level) / 2)
            if self.kind != "one":
                ratio, root = self._mix(errors)
                z = np.sqrt(2 * (1 + 1 / ratio) * (root - np.log1p(-level)))
                t = t * z / ndtri((1 + level) / 2)
        return np.asarray(t * errors)


def allow_looks(kind: str, covariance: Floats) -> Looks:
    """Return for how many looks claims hold, of log-worths with this covariance."""
    values = np.linalg.eigvalsh(covariance)
    values = values[values > 1e-12 * max(float(values[-1]), np.finfo(float).tiny)]
    return Looks(kind, float(np.log1p(EFFECT**2 / values).sum()) / 2)


# ---- Score tests


class Score(NamedTuple):
    """A signed statistic, in normal standard errors, and the error of the difference under it."""

    z: float
    error: float


@dataclass(frozen=True, eq=False)
class ScoreTests:
    """Tests of the difference between an item and others, from fits in which it is fixed.

    Attributes
    ----------
    likelihood : WorthLikelihood
    parameters : ndarray
        Those of the fit without a fixed difference.
    ridge : float
        The penalty of log-worths and coefficients.
    units : tuple of Units
        Raters, and other clusters with both together; none if votes are independent.
    step : float
        What a vote weighs.
    inverse : ndarray
        That of the information: the covariance of the parameters if votes are independent.
    """

    likelihood: WorthLikelihood
    parameters: Floats
    ridge: Floats
    units: tuple[Units, ...]
    step: float
    inverse: Floats

    def test(self, item: int, other: int, difference: float = 0.0) -> Score:
        """Test that an item is ``difference`` above another one."""
        score, direction, variance, b = self._fit(item, other, difference)
        degrees = np.inf
        if self.units:
            slopes = self.likelihood.row_gradients(b) @ direction
            found = [_sum_units(slopes, units) for units in self.units]
            of_units = found[0][0]
            if len(found) > 1:
                of_units = max(of_units, found[1][0], of_units + found[1][0] - found[2][0])
            variance = max(variance, of_units)
            degrees = max(min(each[1] for each in found[:2]), 1.0)
        size = max(abs(score) - self.step / 2, 0.0) / np.sqrt(variance)
        return Score(float(np.sign(score) * to_normal(size, degrees)), float(1 / np.sqrt(variance)))

    def _fit(self, item: int, other: int, difference: float) -> tuple[float, Floats, float, Floats]:
        """Return the score, its direction free of other parameters, its variance, and the fit."""
        likelihood, ridge, same = self.likelihood, self.ridge, other - (other > item)

        def expand(some: Floats) -> Floats:
            return np.insert(some, item, some[same] + difference)

        def fold(rows: Floats) -> Floats:
            """Rows of the free parameters: the item moves with the other one."""
            found = np.delete(rows, item, axis=0)
            found[same] += rows[item]
            return found

        def evaluate(some: Floats) -> Point:
            b = expand(some)
            point = likelihood.evaluate(b)
            value = point.value - float(ridge @ b**2) / 2
            return Point(value, fold(point.gradient - ridge * b), point.value_size)

        def inform(b: Floats) -> Floats:
            return likelihood.information(b) + np.diag(ridge)

        def curvature(some: Floats) -> Floats:
            return fold(fold(inform(expand(some))).T)

        shift = (np.arange(ridge.size - 1) < likelihood.n_items - 1).astype(float)
        start = np.delete(self.parameters, item)
        start[same] = (start[same] + self.parameters[item] - difference) / 2
        optimum = maximize(evaluate, curvature, start, invariant=shift, tol=EXACT)
        b = expand(optimum.parameters)
        score = float((likelihood.evaluate(b).gradient - ridge * b)[item])
        information = inform(b)
        crossed, inner = fold(information[item]), fold(fold(information).T)
        # The likelihood does not depend on a shift of all log-worths.
        inner += np.outer(shift, shift) * (inner.trace() / shift.sum() ** 2)
        inner[np.diag_indices(shift.size)] *= 1 + 1e-12
        moved = solve(inner, crossed, assume_a="pos", check_finite=False)
        direction = -np.insert(moved, item, moved[same])
        direction[item] += 1.0
        return score, direction, float(information[item, item] - crossed @ moved), b

    def bound(
        self, item: int, other: int, estimate: float, side: int, level: float, looks: Looks
    ) -> float:
        """Return the end of the interval of a difference, below (-1) or above it (1)."""

        def excess(difference: float) -> float:
            found = self.test(item, other, difference)
            return float(looks.log_p(found.z, found.error)) - float(np.log1p(-level))

        near, far = estimate, estimate + side
        while excess(far) > 0:
            near, far = far, far + 2 * (far - near)
            if abs(far - estimate) > FARTHEST:
                return side * float("inf")
        return float(brentq(excess, near, far, xtol=0.005)) if excess(near) > 0 else near


def _sum_units(slopes: Floats, units: Units) -> tuple[float, float]:
    """Return the variance of a sum of slopes by units, and its degrees of freedom."""
    single = units.weights * slopes[units.number]
    # A unit may stand for several equal single rankings.
    copies = units.copies
    sums = np.bincount(units.unit, single, copies.size) / np.sqrt(copies)
    h = np.bincount(units.unit, single**2, copies.size) / copies
    share = np.minimum(h / (copies @ h), 1 - 1e-6)
    centred = sums - float(copies @ sums) * share
    return float(copies @ (centred**2 / (1 - share))), 1 / float(copies @ share**2) - 1


def to_normal(t: float | Floats, degrees: float | Floats) -> Floats:
    """Return the normal statistics that are as improbable as those of Student's t."""
    with np.errstate(under="ignore", divide="ignore"):
        log_tail = np.log(stdtr(np.minimum(degrees, MANY), -np.abs(t)))
        # Tails too small for a number are those of the normal distribution, and finite.
        tail = np.where(np.isfinite(log_tail), log_tail, log_ndtr(-np.abs(t)))
        return np.asarray(-np.sign(t) * ndtri_exp(tail))


# ---- Evidence of all pairs


class Evidence(NamedTuple):
    """For each pair of items, how far the row is above the column.

    Attributes
    ----------
    z : ndarray of shape (C, C)
        In normal standard errors.
    errors : ndarray of shape (C, C)
        The standard errors of the differences.
    by_score : ndarray of bool of shape (C, C)
        Whether z is of a score test.
    """

    z: Floats
    errors: Floats
    by_score: NDArray[np.bool_]


def find_pair_degrees(covariance: Floats, degrees: Floats) -> Floats:
    """Return the degrees of freedom of each difference: mostly those of the less certain item."""
    variances = np.maximum(np.diag(covariance), np.finfo(float).tiny)
    both = np.add.outer(variances, variances)
    degrees = np.minimum(degrees, MANY)
    return np.asarray(both / np.add.outer(variances / degrees, variances / degrees))


def find_evidence(
    log_worths: Floats,
    covariance: Floats,
    degrees: Floats,
    tests: ScoreTests,
    places: NDArray[np.intp],
) -> Evidence:
    """Return how far items are above others, by Wald tests or score tests.

    ``places`` are the numbers of the items in ``tests``.
    """
    errors = np.sqrt(np.maximum(variances_of_differences(covariance), 0.0))
    difference = log_worths[:, None] - log_worths
    # An item does not differ from itself, nor do items that the errors do not tell apart.
    t = np.divide(difference, errors, out=np.zeros_like(errors), where=errors > 0)
    z = to_normal(t, find_pair_degrees(covariance, degrees))
    by_score = np.zeros(z.shape, bool)
    unclear = (np.abs(difference) > FAR_APART) & (np.abs(z) < DECISIVE)
    for i, j in np.argwhere(np.triu(unclear)).tolist():
        found = tests.test(int(places[i]), int(places[j]))
        if abs(found.z) > abs(z[i, j]) and found.z * difference[i, j] > 0:
            z[i, j], z[j, i] = found.z, -found.z
            errors[i, j] = errors[j, i] = found.error
            by_score[i, j] = by_score[j, i] = True
    return Evidence(z, errors, by_score)


# ---- Which ranks items may really have
#
# The rank interval of item i contains its true rank with at least the given probability, however
# close the worths are (Mogstad et al. 2024). Draws of the errors d give the number c that
#
#     max_j |d_i - d_j| / s_ij
#
# stays below with this probability, where s are the standard errors of differences. Items that are
# more than c standard errors above i count as really above it, and likewise below. Then the maximum
# is over the items that are left, with a smaller c, until no more items are told from i.


def draw_errors(covariance: Floats, n: int, rng: np.random.Generator) -> Floats:
    """Draw normal errors of log-worths, one column per draw."""
    values, vectors = np.linalg.eigh(covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root @ rng.standard_normal((len(covariance), n)))


def find_rank_intervals(
    evidence: Evidence, covariance: Floats, errors: Floats, level: float, looks: Looks
) -> NDArray[np.int64]:
    """Return the best and the worst rank of each item; for one look, from draws of errors."""
    z, C = evidence.z, len(covariance)
    if looks.kind != "one":
        p = np.exp(looks.log_p(z, evidence.errors))
        decided = np.array([looks.adjust(np.delete(row, i)) < 1 - level for i, row in enumerate(p)])
        full = np.zeros((C, C), bool)
        full[~np.eye(C, dtype=bool)] = decided.ravel()
        return _count_ranks(z, full)
    # Single precision is enough for a quantile of draws, and fits in the cache.
    draws = errors.astype(np.float32)
    # Bonferroni's bound decides most pairs: the first maximum would only lower it a little.
    bound = -ndtri((1 - level) / (2 * max(C - 1, 1)))
    scales = np.sqrt(np.maximum(variances_of_differences(covariance), 0.0))
    undecided = (scales > 0) & (np.abs(z) <= bound)
    rates = np.divide(1, scales, out=np.zeros_like(scales), where=scales > 0).astype(np.float32)
    nth = min(int(np.ceil(level * draws.shape[1])), draws.shape[1]) - 1
    for i, row in enumerate(undecided):
        left = np.flatnonzero(row)
        sizes = np.abs(draws[left] - draws[i]) * rates[i, left, None]
        while left.size:
            reach = np.partition(sizes.max(axis=0), nth)[nth]
            # Score tests of one item with others are less alike than the draws are.
            still = (np.abs(z[i, left]) <= reach) | evidence.by_score[i, left]
            if still.all():
                break
            left, sizes = left[still], sizes[still]
        undecided[i] = False
        undecided[i, left] = True
    return _count_ranks(z, (scales > 0) & ~undecided)


def _count_ranks(z: Floats, decided: NDArray[np.bool_]) -> NDArray[np.int64]:
    best = 1 + (decided & (z < 0)).sum(axis=1)
    worst = len(z) - (decided & (z > 0)).sum(axis=1)
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

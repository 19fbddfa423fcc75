"""The tie integral: the probability that tied items come next, under Plackett-Luce.

Plackett-Luce ranks items by the times at which independent exponential clocks ring: item i has
rate v_i. Exponential clocks have no memory. Hence the probability of a ranking with ties is a
product over its groups, and for one group only the total rate r of the later items matters. "At
least m of the g items of the group ring before any later item" is an integral over the time t at
which the first later item rings. With x = log(r t) and q_i the probability that item i has rung
by then,

    P = ∫ P(N ≥ m | x) exp(x - e^x) dx,     q_i = 1 - exp(-exp(θ_i - log r + x)),

where N is a sum of independent Bernoulli(q_i). The integrand is smooth and vanishes on both
sides, so the trapezoidal rule is exact up to rounding. `tied_log_prob` computes it fast, for many
inputs; `TiedChoice` has derivatives as well, and keeps everything in logarithms, so that rates may
differ by any factor.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, loggamma, logsumexp, roots_genlaguerre

Floats = NDArray[np.float64]
LOWEST = -37.0
"""For smaller x, exp(x - e^x) is less than the rounding error of the integral."""
MARGIN = 7.0
"""The largest value of the integrand is not its total: this much more of its logarithm counts."""
CHUNK_CELLS = 1 << 17
"""How many cells, items by nodes by inputs, are computed at a time: they stay in the cache."""
MOST_LAGUERRE = 8
"""With more nodes, the rule of Gauss and Laguerre would take longer than the trapezoidal rule."""
LAGUERRE_TAKEN = 50
"""If more items count than this, the weights of the rule of Gauss and Laguerre lose digits."""
SAFETY = 4.0
"""The logarithm of the factor by which this error is kept below the tolerance."""
SMALLEST_LOG = -600.0
"""Probabilities below exp of this are multiplied as logarithms."""


def tied_log_prob(
    log_worths: Floats, log_rest: Floats, taken: int, tolerance: float = 1e-14
) -> Floats:
    """Return the log-probability that ``taken`` of the tied items precede all of the rest.

    If the group is slow compared with the rest, few nodes of Gauss and Laguerre are enough.
    Otherwise the nodes of the trapezoidal rule are a fraction of an octave apart, and exponentials
    are computed for the first few of them only: twice the time means q + q (1 - q) instead of
    q, which loses no digits.

    Parameters
    ----------
    log_worths : ndarray of shape (g, n)
        The log-worths of the items of the group, with one column per input.
    log_rest : ndarray of shape (n,)
        The log of the total worth of the later items; finite.
    taken : int
        m, from 1 to g.
    tolerance : float
        The largest relative error of the probability.
    """
    ratios = log_worths - log_rest
    if taken == 1:
        # The first of all items is one of the group.
        return np.asarray(-np.logaddexp(0, -logsumexp(ratios, axis=0)))
    if taken == 2 and np.abs(ratios).max() < -SMALLEST_LOG / 2:
        return _log_prob_of_two(ratios)
    log_total, slowest = logsumexp(ratios, axis=0), ratios.min(axis=0)
    result = np.empty(log_total.size)
    # Inputs whose items ring at similar times share their nodes.
    by_time = np.argsort(-log_total)
    while by_time.size:
        integrate, x = _choose_rule(float(log_total[by_time[0]]), taken, tolerance)
        part, by_time = np.split(by_time, [max(1, CHUNK_CELLS // (len(ratios) * x.size))])
        if taken * (slowest[part].min() + x[0]) < SMALLEST_LOG:
            result[part] = TiedChoice(ratios[:, part].T, np.zeros(part.size), taken).log_prob
        else:
            result[part] = integrate(ratios[:, part], taken, x)
    return result


def _choose_rule(
    log_total: float, taken: int, tolerance: float
) -> tuple[Callable[[Floats, int, Floats], Floats], Floats]:
    """Return the rule of integration for groups of at most this total rate, and its nodes x."""
    # The rule of Gauss and Laguerre integrates exp(-A r t) with an error of about (A / (A + 2))^2n.
    total = np.exp(np.clip(log_total, LOWEST, -LOWEST))
    needed = int(np.ceil((np.log(tolerance) - SAFETY) / np.log(total / (total + 2)) / 2))
    if needed <= MOST_LAGUERRE and taken <= LAGUERRE_TAKEN:
        return _integrate_by_laguerre, np.log(_laguerre(needed, taken)[0])
    lowest = _lowest(log_total, taken, np.log(tolerance))
    return _integrate_by_octaves, _octaves(taken, lowest, tolerance)


@lru_cache
def _laguerre(n: int, taken: int) -> tuple[Floats, Floats]:
    """Return nodes r t and weights of the integral of P(N ≥ m | r t) exp(-r t).

    The weight function is (r t)^m exp(-r t), as P(N ≥ m) is about proportional to (r t)^m.
    """
    nodes, weights = roots_genlaguerre(n, taken)
    return nodes, weights / nodes**taken


def _integrate_by_laguerre(ratios: Floats, taken: int, x: Floats) -> Floats:
    nodes, weights = _laguerre(x.size, taken)
    rung = -np.expm1(-np.exp(ratios) * nodes[:, None, None])
    return np.asarray(np.log(weights @ _at_least(rung, taken)))


def _log_prob_of_two(ratios: Floats) -> Floats:
    """Return the log-probability that two of the items come first: Σ_i v_i/T (G - v_i)/(T - v_i).

    G is the worth of the group, T that of all items; the others of a group are added up.
    """
    largest = np.maximum(ratios.max(axis=0), 0)
    worths, rest = np.exp(ratios - largest), np.exp(-largest)
    others = np.zeros(worths.shape)
    np.cumsum(worths[:-1], axis=0, out=others[1:])
    others[:-1] += np.cumsum(worths[:0:-1], axis=0)[::-1]
    pairs = (worths * others / (others + rest)).sum(axis=0)
    return np.asarray(np.log(pairs / (worths.sum(axis=0) + rest)))


def _integrate_by_octaves(ratios: Floats, taken: int, x: Floats) -> Floats:
    # Faster items have certainly rung, at any node.
    rung = ring_by_octaves(np.exp(np.minimum(ratios, -SMALLEST_LOG)), x)
    tail = _at_least(rung, taken)
    return np.asarray(np.log(np.exp(x - np.exp(x)) @ tail * (x[1] - x[0])))


def ring_by_octaves(rates: Floats, x: Floats) -> Floats:
    """Return the probability q that items of these rates have rung, with the nodes first.

    Twice the time means q + q (1 - q) instead of q: only the first octave needs exponentials. The
    sum reaches 1, where the product q (2 - q) would stay one rounding error below it.
    """
    octave = round(np.log(2) / (x[1] - x[0]))
    rung = np.empty((x.size, *rates.shape))
    rung[:octave] = -np.expm1(-rates * np.exp(x[:octave, None, None]))
    for j in range(octave, x.size, octave):
        before, after = rung[j - octave : j], rung[j : j + octave]
        np.subtract(1, before, out=after)
        after *= before
        after += before
    return rung


def _octaves(taken: int, lowest: float, tolerance: float) -> Floats:
    """Return nodes from ``lowest`` upwards, in whole octaves."""
    # To the right, the integrand is at most exp((m + 1) x - e^x).
    highest = np.log(gammainccinv(taken + 1, tolerance))
    return _fill_octaves(lowest, highest, _nodes_per_octave(taken, tolerance))


def _fill_octaves(lowest: float, highest: float, octave: int) -> Floats:
    n_octaves = int(np.ceil((highest - lowest) / np.log(2)))
    return np.asarray(lowest + np.arange(n_octaves * octave) * np.log(2) / octave)


def tie_nodes(taken: int, tolerance: float) -> Floats:
    """Return nodes of the trapezoidal rule that suit groups of any rates."""
    return _octaves(taken, float(np.log(tolerance)), tolerance)


@lru_cache
def _nodes_per_octave(taken: int, tolerance: float) -> int:
    """Return how many nodes of the trapezoidal rule an octave needs.

    Of the integrand of slow items, exp((m + 1) x - e^x), the rule with the step h leaves the
    error 2 |Γ(m + 1 + 2πi/h)| / Γ(m + 1). No group has a sharper integrand.
    """
    octave = 1
    while True:
        frequency = 2 * np.pi * octave / np.log(2)
        error = loggamma(taken + 1 + 1j * frequency).real - loggamma(taken + 1)
        if 2 * np.exp(error) < tolerance:
            return octave
        octave += 1


class TiedChoice:
    """The probability that ``taken`` of the tied items precede all of the rest, for n groups.

    Parameters
    ----------
    log_worths : ndarray of shape (n, g)
        The log-worths of the items in each group.
    log_rest : ndarray of shape (n,)
        The log of the total worth of the later items; finite.
    taken : int
        m, from 1 to g.

    Attributes
    ----------
    log_prob : ndarray of shape (n,)
        log P(N ≥ m).
    """

    def __init__(self, log_worths: Floats, log_rest: Floats, taken: int) -> None:
        self.taken = taken
        self.size = log_worths.shape[1]
        ratios = log_worths - log_rest[:, None]
        self._x = x = place_nodes(
            self.size, _lowest(float(ratios.max()) + np.log(self.size), taken)
        )
        step = x[1] - x[0]
        self._y = ratios[:, :, None] + x
        log_density = self._log_tail + x - np.exp(x)
        log_integral: Floats = logsumexp(log_density, axis=1)
        self.log_prob: Floats = log_integral + np.log(step)
        # The distribution of x given that the group came first.
        self._posterior = np.exp(log_density - log_integral[:, None])

    @cached_property
    def _log_tail(self) -> Floats:
        """Log of P(N ≥ m | x), from plain products if none of them underflows."""
        if self.taken * self._y.min() < SMALLEST_LOG:
            return _log_at_least(self._log_rung, self._log_missed, self.taken)
        with np.errstate(over="ignore"):
            times = np.exp(self._y)
        return np.log(_at_least(-np.expm1(-times), self.taken))

    @cached_property
    def _log_missed(self) -> Floats:
        with np.errstate(over="ignore"):
            return -np.exp(self._y)

    @cached_property
    def _log_rung(self) -> Floats:
        with np.errstate(divide="ignore"):
            # log(1 - exp(-z)): either formula is exact on its side; for tiny z it is y.
            rung = np.where(
                self._log_missed > -0.5,
                np.log(-np.expm1(self._log_missed)),
                np.log1p(-np.exp(self._log_missed)),
            )
        return np.where(self._y < -36, self._y, rung)

    @cached_property
    def _log_slope(self) -> Floats:
        """Log of d q / d θ = exp(y - e^y)."""
        return np.asarray(self._y + self._log_missed)

    @cached_property
    def _influence(self) -> Floats:
        others = _log_exactly_without_one(self._log_rung, self._log_missed, self.taken - 1)
        return np.exp(self._log_slope + others - self._log_tail[:, None])

    @cached_property
    def gradient(self) -> Floats:
        """Derivatives of `log_prob` in the log-worths of the group, as (n, g).

        The derivative in log r is minus their sum: a common factor of all rates has no effect.
        """
        gradient: Floats = np.einsum("nx,nix->ni", self._posterior, self._influence)
        return gradient

    @cached_property
    def hessian(self) -> Floats:
        """Second derivatives, as (n, g + 1, g + 1), in the log-worths and, last, in log r.

        They are the mean of the integrand's second derivatives, minus gradient gradientᵀ.
        """
        n, size = self.gradient.shape
        result = np.empty((n, size + 1, size + 1))
        for i in range(size):
            others = np.delete(np.arange(size), i)
            rung, missed = self._log_rung[:, others], self._log_missed[:, others]
            slopes = self._log_slope[:, [i]] + self._log_slope[:, others] - self._log_tail[:, None]
            curvature = np.exp(slopes + _log_exactly_without_one(rung, missed, self.taken - 2))
            curvature -= np.exp(slopes + _log_exactly_without_one(rung, missed, self.taken - 1))
            result[:, i, others] = np.einsum("nx,njx->nj", self._posterior, curvature)
            # q'' = q' (1 - e^y); where e^y overflows, q' is 0.
            bend = self._influence[:, i] * (1 + np.maximum(self._log_missed[:, i], -1e300))
            result[:, i, i] = np.einsum("nx,nx->n", self._posterior, bend)
        result[:, :size, :size] -= self.gradient[:, :, None] * self.gradient[:, None, :]
        by_rest = 1 - np.exp(self._x)
        slope_rest = self._posterior @ by_rest
        mixed = np.einsum("nx,nix,x->ni", self._posterior, self._influence, by_rest)
        mixed -= self.gradient * slope_rest[:, None]
        result[:, :size, size] = result[:, size, :size] = mixed
        result[:, size, size] = self._posterior @ (by_rest**2 - np.exp(self._x)) - slope_rest**2
        return result


def _lowest(fastest: float, taken: int, negligible: float = LOWEST) -> float:
    """Return the x below which the integrand is negligible, exp of ``negligible``.

    To the left, where hardly any item has rung, it decreases like exp((m + 1) x).
    """
    return float(max(negligible, -max(fastest, 0.0) + (negligible - MARGIN) / (taken + 1)))


def place_nodes(size: int, lowest: float = LOWEST) -> Floats:
    """Return nodes of the trapezoidal rule for a group of this size, in whole octaves."""
    # A group of g slow items has its peak at r t = g + 1, in log r t of width 1/sqrt(g + 1).
    width = 1 / np.sqrt(size + 1)
    highest = np.log(size + 1 + 10 / width + 40)
    return _fill_octaves(lowest, highest, int(np.ceil(np.log(2) / min(0.25, width / 2))))


def _at_least(rung: Floats, count: int) -> Floats:
    """Return P(N ≥ count), over axis 1: at most ``size - count`` have not rung."""
    size = rung.shape[1]
    if count == size:
        return np.asarray(rung.prod(axis=1))
    if size - count < count:
        return np.asarray(_count_missed(rung, size - count).sum(axis=0))
    return np.asarray(_count_rung(rung, count)[-1])


def _count_rung(rung: Floats, most: int) -> Floats:
    """Return P(N = c) for c < ``most`` and, last, P(N ≥ ``most``), over axis 1."""
    n, size, nodes = rung.shape
    state, arrived = np.zeros((most + 1, n, nodes)), np.empty((most, n, nodes))
    state[0] = 1
    for i in range(size):
        # Of the first i items at most i have rung.
        reached = min(i + 1, most)
        np.multiply(state[:reached], rung[:, i], out=arrived[:reached])
        state[:reached] -= arrived[:reached]
        state[1 : reached + 1] += arrived[:reached]
    return state


def _count_missed(rung: Floats, most: int) -> Floats:
    """Return P(c have not rung) for c up to ``most``, over axis 1."""
    n, size, nodes = rung.shape
    state, stayed = np.zeros((most + 1, n, nodes)), np.empty((most + 1, n, nodes))
    state[0] = 1
    for i in range(size):
        reached = min(i + 1, most)
        np.multiply(state, rung[:, i], out=stayed)
        # What does not ring moves on by one; more than ``most`` are too many.
        state -= stayed
        stayed[1 : reached + 1] += state[:reached]
        state, stayed = stayed, state
    return state


def _log_at_least(log_rung: Floats, log_missed: Floats, count: int) -> Floats:
    """Return the log of `_at_least`, from logarithms."""
    n, size, nodes = log_rung.shape
    if count == size:
        return np.asarray(log_rung.sum(axis=1))
    state = np.full((count + 1, n, nodes), -np.inf)
    state[0] = 0
    for i in range(size):
        arrived = state[:-1] + log_rung[:, i]
        # Sums of many logarithms may overflow to -inf: the probability is 0.
        with np.errstate(over="ignore"):
            state[:-1] += log_missed[:, i]
        state[1:] = np.logaddexp(state[1:], arrived)
    tail: Floats = state[-1]
    return tail


def _log_exactly_without_one(log_rung: Floats, log_missed: Floats, count: int) -> Floats:
    """Return log P(N - N_i = count) for every item i: how many of the others have rung."""
    n, size, nodes = log_rung.shape
    if count < 0 or count > size - 1:
        return np.full((n, size, nodes), -np.inf)
    if count == size - 1:
        return np.asarray(log_rung.sum(axis=1)[:, None] - log_rung)
    before = _log_running_counts(log_rung, log_missed, count)
    after = _log_running_counts(log_rung[:, ::-1], log_missed[:, ::-1], count)
    result = np.empty((n, size, nodes))
    for i in range(size):
        result[:, i] = logsumexp(before[i] + after[size - 1 - i][::-1], axis=0)
    return result


def _log_running_counts(log_rung: Floats, log_missed: Floats, count: int) -> Floats:
    """Return log P(c of the first i items have rung) as [i, c], for c up to ``count``."""
    n, size, nodes = log_rung.shape
    running = np.full((size, count + 1, n, nodes), -np.inf)
    running[0, 0] = 0
    for i in range(size - 1):
        running[i + 1] = running[i] + log_missed[:, i]
        running[i + 1, 1:] = np.logaddexp(running[i + 1, 1:], running[i, :-1] + log_rung[:, i])
    return running

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
inputs and rates that differ by any factor; `TiedClasses` has its derivatives, for fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, gammaln, loggamma, logsumexp

Floats = NDArray[np.float64]
LOWEST = -37.0
"""For smaller x, exp(x - e^x) is less than the rounding error of the integral."""
MARGIN = 7.0
"""The largest value of the integrand is not its total: this much more of its logarithm counts."""
TOLERANCE = 1e-14
"""The part of a probability that the nodes of the trapezoidal rule may miss."""
CHUNK_CELLS = 1 << 17
"""How many cells, items by nodes by inputs, are computed at a time: they stay in the cache."""
SMALLEST_LOG = -600.0
"""Probabilities below exp of this are multiplied as logarithms."""
CLASS_MARGIN = 44.0
"""Where its logarithm is this far below the largest value, the integrand is negligible."""


def tied_log_prob(log_worths: Floats, log_rest: Floats, taken: int) -> Floats:
    """Log-probability that ``taken`` of the tied items precede all of the rest.

    The nodes of the trapezoidal rule are a fraction of an octave apart, and exponentials
    are computed for the first few of them only: twice the time means q + q (1 - q) instead of
    q, which loses no digits.
    """
    ratios = log_worths - log_rest
    if taken == 1:
        # The first of all items is one of the group.
        return np.asarray(-np.logaddexp(0, -logsumexp(ratios, axis=0)))
    log_total, slowest = logsumexp(ratios, axis=0), ratios.min(axis=0)
    result = np.empty(log_total.size)
    # Inputs whose items ring at similar times share their nodes.
    by_time = np.argsort(-log_total)
    while by_time.size:
        x = _tie_nodes(float(log_total[by_time[0]]), taken)
        part, by_time = np.split(by_time, [max(1, CHUNK_CELLS // (len(ratios) * x.size))])
        if taken * (slowest[part].min() + x[0]) < SMALLEST_LOG:
            result[part] = integrate_logs(ratios[:, part], taken)
        else:
            result[part] = _integrate_by_octaves(ratios[:, part], taken, x)
    return result


def _integrate_by_octaves(ratios: Floats, taken: int, x: Floats) -> Floats:
    # Faster items have certainly rung, at any node.
    rung = ring_by_octaves(np.exp(np.minimum(ratios, -SMALLEST_LOG)), x)
    tail = rung.prod(axis=1) if taken == rung.shape[1] else _at_least(rung, taken)
    return np.asarray(np.log(np.exp(x - np.exp(x)) @ tail * (x[1] - x[0])))


def ring_by_octaves(rates: Floats, x: Floats) -> Floats:
    """Probability q that items of these rates have rung, with the nodes first.

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


def _tie_nodes(log_total: float, taken: int) -> Floats:
    """Nodes of the trapezoidal rule for groups of at most this total rate, in whole octaves."""
    # To the right, the integrand is at most exp((m + 1) x - e^x).
    highest = np.log(gammainccinv(taken + 1, TOLERANCE))
    lowest = _lowest(log_total, taken, np.log(TOLERANCE))
    return _fill_octaves(lowest, highest, _nodes_per_octave(taken))


def _fill_octaves(lowest: float, highest: float, octave: int) -> Floats:
    n_octaves = int(np.ceil((highest - lowest) / np.log(2)))
    return np.asarray(lowest + np.arange(n_octaves * octave) * np.log(2) / octave)


@lru_cache
def _nodes_per_octave(taken: int) -> int:
    """Number of nodes of the trapezoidal rule an octave needs.

    Of the integrand of slow items, exp((m + 1) x - e^x), the rule with the step h leaves the
    error 2 |Γ(m + 1 + 2πi/h)| / Γ(m + 1). No group has a sharper integrand.
    """
    octave = 1
    while True:
        frequency = 2 * np.pi * octave / np.log(2)
        error = loggamma(taken + 1 + 1j * frequency).real - loggamma(taken + 1)
        if 2 * np.exp(error) < TOLERANCE:
            return octave
        octave += 1


def integrate_logs(ratios: Floats, taken: int) -> Floats:
    """Same as `tied_log_prob`, from ratios (g, n) of any size, all in logarithms."""
    size = len(ratios)
    x = place_nodes(size, _lowest(float(ratios.max()) + np.log(size), taken))
    y = ratios.T[:, :, None] + x
    with np.errstate(over="ignore", divide="ignore"):
        log_missed = -np.exp(y)
        # log(1 - exp(-z)): either formula is exact on its side; for tiny z it is y.
        log_rung = np.where(
            log_missed > -0.5, np.log(-np.expm1(log_missed)), np.log1p(-np.exp(log_missed))
        )
    log_rung = np.where(y < -36, y, log_rung)
    if taken == size:
        log_tail = log_rung.sum(axis=1)
    else:
        state = np.full((taken + 1, len(y), x.size), -np.inf)
        state[0] = 0
        for i in range(size):
            arrived = state[:-1] + log_rung[:, i]
            # Sums of many logarithms may overflow to -inf: the probability is 0.
            with np.errstate(over="ignore"):
                state[:-1] += log_missed[:, i]
            state[1:] = np.logaddexp(state[1:], arrived)
        log_tail = state[-1]
    return np.asarray(logsumexp(log_tail + x - np.exp(x), axis=1) + np.log(x[1] - x[0]))


def _lowest(fastest: float, taken: int, negligible: float = LOWEST) -> float:
    """X below which the integrand is negligible, exp of ``negligible``.

    To the left, where hardly any item has rung, it decreases like exp((m + 1) x).
    """
    return float(max(negligible, -max(fastest, 0.0) + (negligible - MARGIN) / (taken + 1)))


def place_nodes(size: int, lowest: float = LOWEST) -> Floats:
    """Nodes of the trapezoidal rule for a group of this size, in whole octaves."""
    # A group of g slow items has its peak at r t = g + 1, in log r t of width 1/sqrt(g + 1).
    width = 1 / np.sqrt(size + 1)
    highest = np.log(size + 1 + 10 / width + 40)
    return _fill_octaves(lowest, highest, int(np.ceil(np.log(2) / min(0.25, width / 2))))


def _at_least(rung: Floats, count: int) -> Floats:
    """P(N ≥ count), over axis 1."""
    n, size, nodes = rung.shape
    # P(N = c) for c < count and, last, P(N ≥ count).
    state, arrived = np.zeros((count + 1, n, nodes)), np.empty((count, n, nodes))
    state[0] = 1
    for i in range(size):
        # Of the first i items at most i have rung.
        reached = min(i + 1, count)
        np.multiply(state[:reached], rung[:, i], out=arrived[:reached])
        state[:reached] -= arrived[:reached]
        state[1 : reached + 1] += arrived[:reached]
    return np.asarray(state[-1])


# ---- Ties of many alike items, for fits
#
# A fit has one worth per class of alike items (see `alike_items`). So the log-probability of a tie
# and its derivatives are needed by class, and members of one class share all terms. An item of
# class c has rung by the time r t = e^x with probability q_c, and N counts the items of the tie
# that have rung. The tie comes first if its m-th item rings before any later item does, which a
# later item has not done with probability exp(-e^x):
#
#     P = ∫ F' exp(-e^x) dx = ∫ F exp(x - e^x) dx,     F = P(N ≥ m | x),
#
# The derivatives of F are probabilities that exactly m - 1 or m - 2 of the other items have rung:
#
#     F_c  = n_c q_c' P(N without one of c = m - 1),     F' = Σ_c F_c,
#     F_ab = n_a n_b q_a' q_b' (P(N without one of a, one of b = m - 2) - P(… = m - 1)),
#
# and the derivatives of P are ∫ F_c exp(x - e^x) dx and ∫ F_ab exp(x - e^x) dx. The trapezoidal
# rule is exact up to rounding. Products of probabilities are plain numbers here, which are faster
# than logarithms. So that those of large ties do not underflow, each factor q is multiplied by its
# part of exp(-e^x), and divided by a number near its largest value: ``log_scale`` is their product.


class TiedClasses:
    """The probability that ``taken`` of the tied items precede all of the rest, for n ties.

    Attributes
    ----------
    log_prob : ndarray of shape (n,)
        log P(N ≥ m).
    gradient : ndarray of shape (n, p)
        Its derivatives in the log-worths of the classes. The derivative in log r is minus their
        sum: a common factor of all rates has no effect.
    """

    def __init__(
        self, log_worths: Floats, counts: NDArray[np.int64], log_rest: Floats, taken: int
    ) -> None:
        size = int(counts[0].sum())
        ratios = log_worths - log_rest[:, None]
        # Below the lowest node, the integrand is negligible: there it decreases like exp(m x).
        fastest = float(ratios.max()) + np.log(size)
        x = place_nodes(size, float(-max(fastest, 0.0) - CLASS_MARGIN / taken))
        rates = np.exp(ratios)
        rung = np.ascontiguousarray(np.moveaxis(ring_by_octaves(rates, x), 0, 2))
        self._times = rates[:, :, None] * np.exp(x)
        self._slope = self._times * (1 - rung)
        self._counts = counts[:, :, None].astype(float)
        self._rung = (
            _AllRung(rung, x, self._counts)
            if taken == size
            else _SomeRung(rung, x, self._times, self._counts, taken)
        )
        step = x[1] - x[0]
        self._weights = step * np.exp(x)
        first = self._first
        self._prob = step * first.sum(axis=(1, 2))
        # Where no order of the tie is probable, its probability is 0: no fit goes there.
        with np.errstate(divide="ignore"):
            self.log_prob: Floats = np.log(self._prob) + self._rung.log_scale
        self.gradient: Floats = (first @ self._weights) / self._prob[:, None]

    @cached_property
    def _first(self) -> Floats:
        """F_c, as (n, p, x)."""
        return np.asarray(self._counts * self._slope * self._rung.without_one)

    @cached_property
    def hessian(self) -> Floats:
        """Second derivatives, as (n, p + 1, p + 1), in the log-worths and, last, in log r."""
        n, p, _ = self._times.shape
        slopes = self._counts * self._slope
        second = np.empty((n, p, p))
        for b, without_two in enumerate(self._rung.iterate_without_two()):
            others = slopes[:, : b + 1].copy()
            # A class has one item less to choose the second item from.
            others[:, b] -= self._slope[:, b]
            terms = others * slopes[:, [b]] * without_two
            # q'' = q' (1 - e^y)
            terms[:, b] += self._first[:, b] * (1 - self._times[:, b])
            second[:, : b + 1, b] = second[:, b, : b + 1] = terms @ self._weights
        second /= self._prob[:, None, None]
        second -= self.gradient[:, :, None] * self.gradient[:, None, :]
        # A common factor of all rates has no effect: rows and columns add up to zero.
        result = np.zeros((n, p + 1, p + 1))
        result[:, :p, :p] = second
        result[:, :p, p] = result[:, p, :p] = -second.sum(axis=2)
        result[:, p, p] = second.sum(axis=(1, 2))
        return result


class _AllRung:
    """How probable it is that all other items of a tie have rung."""

    def __init__(self, rung: Floats, x: Floats, counts: Floats) -> None:
        self._rung = rung
        share = rung * np.exp(-np.exp(x) / counts[0].sum())
        largest = share.max(axis=2, keepdims=True)
        share /= largest
        self.log_scale: Floats = (counts * np.log(largest)).sum(axis=(1, 2))
        # Powers take much longer than products, and most classes are single items.
        every = (share if np.all(counts == 1) else share**counts).prod(axis=1)
        self.without_one: Floats = every[:, None] / rung

    def iterate_without_two(self) -> Iterator[Floats]:
        for b in range(self._rung.shape[1]):
            yield self.without_one[:, : b + 1] / self._rung[:, [b]]


class _SomeRung:
    """How probable it is that exactly m - 1, or m - 2, of the other items of a tie have rung.

    Distributions are arrays with the count, from 0 to m - 1, on the first axis.
    """

    def __init__(self, rung: Floats, x: Floats, times: Floats, counts: Floats, taken: int) -> None:
        n, p, nodes = times.shape
        self._times, self._counts, self._taken = times, counts, taken
        size = counts[0].sum()
        log_ways = gammaln(size + 1) - gammaln(taken + 1) - gammaln(size - taken + 1)
        # A count of k is multiplied by the k-th power of a factor. For equal items, that of m is
        # then about 1 where it is most probable.
        log_part = -np.exp(x) / max(taken - 1, 1)
        self._log_rung = np.log(rung)
        log_each = self._log_rung - times * ((size - taken) / taken) + log_part
        log_unit = log_each.max(axis=(1, 2)) + log_ways / taken
        log_factor = log_part - log_unit[:, None]
        self.log_scale: Floats = (taken - 1) * log_unit
        self._factor = np.exp(log_factor)
        self._log_rung += log_factor[:, None]
        # A single item has no factor to take the part with it.
        self._apart = np.exp(-np.exp(x)) if taken == 1 else 1.0
        self._whole, self._less_one = self._count_rung(0), self._count_rung(1)
        nobody = np.zeros((taken, n, nodes))
        nobody[0] = 1
        # The classes after each one, and the classes before it together with the rest of it.
        self._after = [nobody]
        for c in range(p - 1, 0, -1):
            self._after.append(_convolve(self._after[-1], self._whole[:, :, c]))
        self._after.reverse()
        self._before = [nobody]
        for c in range(p - 1):
            self._before.append(_convolve(self._before[-1], self._whole[:, :, c]))
        self._up_to = [
            _convolve(before, self._less_one[:, :, c]) for c, before in enumerate(self._before)
        ]
        self.without_one: Floats = np.stack(
            [_sum_to(a, b) * self._apart for a, b in zip(self._up_to, self._after, strict=True)],
            axis=1,
        )

    def _count_rung(self, less: int) -> Floats:
        """P(0, …, m - 1 items have rung) of each class, without ``less`` of its items."""
        counts = np.maximum(self._counts - less, 0)
        rung = np.arange(self._taken)[:, None, None, None]
        missed = np.maximum(counts - rung, 0)
        log_ways = gammaln(counts + 1) - gammaln(rung + 1) - gammaln(missed + 1)
        log_ways = np.where(rung > counts, -np.inf, log_ways)
        return np.exp(log_ways + rung * self._log_rung - missed * self._times)

    def iterate_without_two(self) -> Iterator[Floats]:
        """Yield P(m - 2) - P(m - 1) without one of b and one of a, for a up to b."""
        less_two = self._count_rung(2)
        runs = np.empty((self._taken, 0, *self._after[0].shape[1:]))
        for b, after in enumerate(self._after):
            from_b = _convolve(after, self._less_one[:, :, b])
            twice = _convolve(self._before[b], less_two[:, :, b])
            both = np.empty((after.shape[1], b + 1, after.shape[2]))
            both[:, :b] = np.moveaxis(self._fall(runs, from_b[:, None]), 0, 1)
            both[:, b] = self._fall(twice, after)
            yield both
            runs = _convolve(runs, self._whole[:, None, :, b])
            runs = np.concatenate([runs, self._up_to[b][:, None]], axis=1)

    def _fall(self, a: Floats, b: Floats) -> Floats:
        """Probability that two counts add up to m - 2, minus that of m - 1."""
        fewer = (a[:-1] * b[-2::-1]).sum(axis=0) * self._factor
        return np.asarray((fewer - _sum_to(a, b)) * self._apart)


def _convolve(a: Floats, b: Floats) -> Floats:
    """Distribution of the sum of two counts."""
    total = a * b[0]
    for count in range(1, len(a)):
        total[count:] += a[:-count] * b[count]
    return np.asarray(total)


def _sum_to(a: Floats, b: Floats) -> Floats:
    """Probability that two counts add up to m - 1."""
    return np.asarray((a * b[::-1]).sum(axis=0))

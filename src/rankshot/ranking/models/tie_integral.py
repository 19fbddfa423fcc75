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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from rankshot.core.arrays import row_blocks

Floats = NDArray[np.float64]
MARGIN = 44.0
"""Where its logarithm is this far below the largest value, the integrand is negligible."""
FASTEST = 37.0
"""Items with a larger ratio to the rest ring before it, up to rounding."""
CHUNK_CELLS = 1 << 17
"""How many cells, items by nodes by inputs, are computed at a time: they stay in the cache."""
SMALLEST_LOG = -600.0
"""Probabilities below exp of this are multiplied as logarithms."""


def tied_log_prob(log_worths: Floats, log_rest: Floats, taken: int) -> Floats:
    """Log-probability that ``taken`` of the tied items precede all of the rest, for each column."""
    ratios = log_worths - log_rest
    if taken == 1:
        # The first of all items is one of the group.
        return np.asarray(-np.logaddexp(0, -logsumexp(ratios, axis=0)))
    size, n = ratios.shape
    fastest, result = ratios.max(axis=0), np.empty(n)
    # Inputs whose items ring at similar times share their nodes.
    by_time = np.argsort(fastest)
    for rows in row_blocks(n, size * place_nodes(size, taken).size, CHUNK_CELLS):
        part = by_time[rows]
        x = place_nodes(size, taken, min(float(fastest[part].max()), FASTEST))
        is_small = taken * (ratios[:, part].min() + x[0]) < SMALLEST_LOG
        integrate = integrate_logs if is_small else _integrate
        result[part] = integrate(ratios[:, part], taken, x)
    return result


def _integrate(ratios: Floats, taken: int, x: Floats) -> Floats:
    # Faster items have certainly rung, at any node.
    rates = np.exp(np.minimum(ratios, -SMALLEST_LOG))
    rung = -np.expm1(-rates * np.exp(x[:, None, None]))
    tail = rung.prod(axis=1) if taken == len(ratios) else _at_least(rung, taken)
    return np.asarray(np.log(np.exp(x - np.exp(x)) @ tail * (x[1] - x[0])))


def place_nodes(size: int, taken: int, fastest: float = 0.0) -> Floats:
    """Nodes of the trapezoidal rule for a group of this size, and its largest log-ratio."""
    # A group of g slow items has its peak at r t = g + 1, in log r t of width 1/sqrt(g + 1).
    width = 1 / np.sqrt(size + 1)
    highest = np.log(size + 1 + 10 / width + 40)
    # To the left, where hardly any item has rung, the integrand decreases like exp(m x).
    lowest = -max(fastest + np.log(size), 0.0) - MARGIN / taken
    return np.arange(lowest, highest, min(0.23, 0.45 * width))


def integrate_logs(ratios: Floats, taken: int, x: Floats) -> Floats:
    """The same as `_integrate`, for ratios of any size: all in logarithms."""
    size = len(ratios)
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
        x = place_nodes(size, taken, float(ratios.max()))
        rates = np.exp(ratios)
        self._times = rates[:, :, None] * np.exp(x)
        rung = -np.expm1(-self._times)
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

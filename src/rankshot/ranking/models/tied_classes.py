"""The tie integral for fits: the probability that tied items come next, if many of them are alike.

A fit has one worth per class of alike items (see `alike_items`). So the log-probability of a tie
and its derivatives are needed by class, and members of one class share all terms. With the clocks
of `rankshot.ranking.models.tie_integral`, an item of class c has rung by the time r t = e^x with
probability q_c, and N counts the items of the tie that have rung. The tie comes first if its m-th
item rings before any later item does, which a later item has not done with probability exp(-e^x):

    P = ∫ F' exp(-e^x) dx = ∫ F exp(x - e^x) dx,     F = P(N ≥ m | x),

The derivatives of F are probabilities that exactly m - 1 or m - 2 of the other items have rung:

    F_c  = n_c q_c' P(N without one of c = m - 1),     F' = Σ_c F_c,
    F_ab = n_a n_b q_a' q_b' (P(N without one of a, one of b = m - 2) - P(… = m - 1)),

and the derivatives of P are ∫ F_c exp(x - e^x) dx and ∫ F_ab exp(x - e^x) dx. The trapezoidal
rule is exact up to rounding. Products of probabilities are plain numbers here: faster than
logarithms, but only for worths that do not differ too much (`TiedClasses.can_hold`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from rankshot.ranking.models.tie_integral import SMALLEST_LOG, place_nodes, ring_by_octaves

Floats = NDArray[np.float64]
MARGIN = 44.0
"""Where its logarithm is this far below the largest value, the integrand is negligible."""


class TiedClasses:
    """The probability that ``taken`` of the tied items precede all of the rest, for n ties.

    Parameters
    ----------
    log_worths : ndarray of shape (n, p)
        The log-worth of an item of each class.
    counts : ndarray of shape (n, p)
        How many items of each class are in the tie, at least 1; all ties have one size.
    log_rest : ndarray of shape (n,)
        The log of the total worth of the later items; finite.
    taken : int
        m, from 1 to the size of the ties.

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
        self._x = x = place_nodes(size, _lowest(ratios, size, taken))
        rates = np.exp(ratios)
        rung = np.ascontiguousarray(np.moveaxis(ring_by_octaves(rates, x), 0, 2))
        self._times = rates[:, :, None] * np.exp(x)
        self._slope = self._times * (1 - rung)
        self._counts = counts[:, :, None].astype(float)
        self._rung = (
            _AllRung(rung, self._counts)
            if taken == size
            else _SomeRung(rung, self._times, self._counts, taken)
        )
        step = x[1] - x[0]
        self._weights = step * np.exp(x - np.exp(x))
        first = self._first
        self._prob = first.sum(axis=1) @ (step * np.exp(-np.exp(x)))
        self.log_prob: Floats = np.log(self._prob)
        self.gradient: Floats = (first @ self._weights) / self._prob[:, None]

    @staticmethod
    def can_hold(log_worths: Floats, log_rest: Floats, size: int, taken: int) -> bool:
        """Tell whether no product of probabilities underflows."""
        ratios = log_worths - log_rest[:, None]
        slowest = float(ratios.min()) + _lowest(ratios, size, taken)
        return taken * slowest > SMALLEST_LOG and float(ratios.max()) < -SMALLEST_LOG

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


def _lowest(ratios: Floats, size: int, taken: int) -> float:
    """Return the x below which the integrand is negligible: there it decreases like exp(m x)."""
    fastest = float(ratios.max()) + np.log(size)
    return float(-max(fastest, 0.0) - MARGIN / taken)


class _AllRung:
    """How probable it is that all other items of a tie have rung."""

    def __init__(self, rung: Floats, counts: Floats) -> None:
        self._rung = rung
        # Powers take much longer than products, and most classes are single items.
        every = (rung if np.all(counts == 1) else rung**counts).prod(axis=1)
        self.without_one: Floats = every[:, None] / self._rung

    def iterate_without_two(self) -> Iterator[Floats]:
        for b in range(self._rung.shape[1]):
            yield self.without_one[:, : b + 1] / self._rung[:, [b]]


class _SomeRung:
    """How probable it is that exactly m - 1, or m - 2, of the other items of a tie have rung.

    Distributions are arrays with the count, from 0 to m - 1, on the first axis.
    """

    def __init__(self, rung: Floats, times: Floats, counts: Floats, taken: int) -> None:
        n, p, nodes = times.shape
        self._times, self._counts, self._taken = times, counts, taken
        self._log_rung = np.log(rung)
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
            [_sum_to(a, b) for a, b in zip(self._up_to, self._after, strict=True)], axis=1
        )

    def _count_rung(self, less: int) -> Floats:
        """Return P(0, …, m - 1 items have rung) of each class, without ``less`` of its items."""
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
            both[:, :b] = np.moveaxis(_fall(runs, from_b[:, None]), 0, 1)
            both[:, b] = _fall(twice, after)
            yield both
            runs = _convolve(runs, self._whole[:, None, :, b])
            runs = np.concatenate([runs, self._up_to[b][:, None]], axis=1)


def _convolve(a: Floats, b: Floats) -> Floats:
    """Return the distribution of the sum of two counts."""
    total = a * b[0]
    for count in range(1, len(a)):
        total[count:] += a[:-count] * b[count]
    return np.asarray(total)


def _sum_to(a: Floats, b: Floats) -> Floats:
    """Return the probability that two counts add up to m - 1."""
    return np.asarray((a * b[::-1]).sum(axis=0))


def _fall(a: Floats, b: Floats) -> Floats:
    """Return the probability that two counts add up to m - 2, minus that of m - 1."""
    return np.asarray((a[:-1] * b[-2::-1]).sum(axis=0) - _sum_to(a, b))

"""Sums over all orders of all subsets, one subset size after the other.

With pairwise log-odds f, the orders of a set S of items sum to

    G(S) = Σ_orders Π_{a before b} e^{f_ab} = Σ_{i ∈ S} G(S - i) Π_{j ∈ S - i} e^{f_ji},

i being the item that comes last. The number of terms is that of the subsets, not of the
orders. Subsets of one size are numbered by the combinatorial number system: the set
c_1 < c_2 < … < c_s has number Σ_t binom(c_t, t).
"""

from __future__ import annotations

from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.special import comb as binomial
from scipy.special import logsumexp

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_SUBSETS = 5_000_000
"""How many subsets of one size are affordable: 4 of 100 items have 3.9 million."""


def affordable(n_items: int, k: int) -> bool:
    """Tell whether all subsets of up to ``k`` items can be gone through."""
    return max(comb(n_items, s) for s in range(1, k + 1)) <= MAX_SUBSETS


class OrderSums:
    """log G(S) for all subsets S of up to ``k`` items.

    Parameters
    ----------
    log_odds : ndarray of shape (C, C) or (C, C, n)
        f, antisymmetric; of n problems at once, where there is a third axis, which all sums
        then have as their last.
    k : int
        The largest size of subset; must be `affordable`.
    """

    def __init__(self, log_odds: Floats, k: int) -> None:
        self.log_odds = log_odds
        self.n_items = len(log_odds)
        self.subsets: list[NDArray[np.int16]] = [np.zeros((1, 0), np.int16)]
        problems = log_odds.shape[2:]
        self.log_sums: list[Floats] = [np.zeros((1, *problems))]
        for size in range(1, k + 1):
            subsets = self._next_subsets(size)
            self.subsets.append(subsets)
            log_sum = np.full((len(subsets), *problems), -np.inf)
            for last in range(size):
                np.logaddexp(log_sum, self._log_term(subsets, last), out=log_sum)
            self.log_sums.append(log_sum)

    def _next_subsets(self, size: int) -> NDArray[np.int16]:
        """List the subsets of one size by number: those below each largest item, in turn."""
        smaller = self.subsets[size - 1]
        parts = [
            np.column_stack([smaller[: comb(top, size - 1)], np.full(comb(top, size - 1), top)])
            for top in range(size - 1, self.n_items)
        ]
        return np.concatenate(parts).astype(np.int16)

    def _log_term(self, subsets: NDArray[np.int16], last: int) -> Floats:
        """Return log G(S - i) + Σ_{j ∈ S - i} f_ji, i being the ``last``-th item of each S."""
        size = subsets.shape[1]
        item = subsets[:, last]
        log_term: Floats = self.log_sums[size - 1][self.number_without(subsets, last)]
        for other in range(size):
            if other != last:
                log_term = log_term + self.log_odds[subsets[:, other], item]
        return log_term

    def number_without(self, subsets: NDArray[np.int16], last: int) -> Ints:
        """Return the numbers of the subsets that lack their ``last``-th item."""
        size = subsets.shape[1]
        table = binomial(np.arange(self.n_items)[:, None], np.arange(size + 1), exact=False)
        table = np.rint(table).astype(np.int64)
        number = np.zeros(len(subsets), np.int64)
        for other in range(size):
            if other != last:
                # Items after the one that is gone move one place down.
                number += table[subsets[:, other], other + (other < last)]
        return number

    def log_weights(self, row_sums: Floats, size: int) -> Floats:
        """Return log Σ_{orders of S} of the weight of S coming first: Σ_{i ∈ S} R_i + log G(S)."""
        return np.asarray(row_sums[self.subsets[size]].sum(axis=1) + self.log_sums[size])

    def before_counts(self, mass: dict[int, Floats]) -> tuple[Floats, Floats]:
        """Return how much of the mass lists each item, and each pair in each order.

        Parameters
        ----------
        mass : dict of ndarray
            For some sizes, the mass on every subset; inside one the orders share it by weight.

        Returns
        -------
        listed : ndarray of shape (C,)
        before : ndarray of shape (C, C)
            ``before[j, i]``: both listed, j before i.
        """
        C = self.n_items
        listed, before = np.zeros(C), np.zeros((C, C))
        flow = np.zeros(0)
        for size in range(max(mass), 0, -1):
            subsets = self.subsets[size]
            here = mass.get(size, np.zeros(len(subsets)))
            for column in range(size):
                listed += np.bincount(subsets[:, column], here, minlength=C)
            if flow.size:
                here = here + flow
            flow = np.zeros(len(self.subsets[size - 1]))
            for last in range(size):
                share = here * np.exp(self._log_term(subsets, last) - self.log_sums[size])
                flow += np.bincount(self.number_without(subsets, last), share, minlength=flow.size)
                for other in range(size):
                    if other != last:
                        pair = subsets[:, other].astype(np.int64) * C + subsets[:, last]
                        before += np.bincount(pair, share, minlength=C * C).reshape(C, C)
        return listed, before

    def sample_orders(
        self, row_sums: Floats, size: int, n: int, rng: np.random.Generator
    ) -> NDArray[np.int32]:
        """Draw lists of ``size`` items: first which, by weight, then the last, and so on."""
        log_weights = self.log_weights(row_sums, size)
        cumulative = np.cumsum(np.exp(log_weights - log_weights.max()))
        number = np.searchsorted(cumulative, rng.random(n) * cumulative[-1], side="right")
        chosen = self.subsets[size][np.minimum(number, cumulative.size - 1)]
        lists = np.empty((n, size), np.int32)
        for left in range(size, 0, -1):
            log_terms = np.column_stack([self._log_term(chosen, last) for last in range(left)])
            # The largest of Gumbel-shifted log-probabilities is a draw from them.
            last = np.argmax(log_terms + rng.gumbel(size=log_terms.shape), axis=1)
            lists[:, left - 1] = np.take_along_axis(chosen, last[:, None], axis=1)[:, 0]
            kept = np.arange(left) != last[:, None]
            chosen = chosen[kept].reshape(n, left - 1)
        return lists


def log_sum_of_choices(log_odds: Floats, row_sums: Floats, taken: int) -> Floats:
    """Return log Σ over ordered choices of ``taken`` of a few items of their weights."""
    sums = OrderSums(log_odds, taken)
    return np.asarray(logsumexp(sums.log_weights(row_sums, taken), axis=0))

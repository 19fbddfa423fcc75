"""P(π|x), the probability of rankings under the scores of a classifier.

Scores with one column per class define a Plackett-Luce model of rankings, one-vs-one scores a
Babington-Smith model. Both can give the first places of a ranking more weight. Arrays have one row
per input.
"""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln, logsumexp

from rankshot.core.arrays import BLOCK_CELLS, row_blocks
from rankshot.core.errors import InputError
from rankshot.ranking.matrices import iterate_choices, listed_orders, rows_with_tied_choices
from rankshot.ranking.models.babington_smith import (
    log_sum_of_choices,
    require_affordable,
)
from rankshot.ranking.models.tie_integral import tied_log_prob
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.scores import Scores, pair_columns

Doubles = NDArray[np.float64]
Ints = NDArray[np.integer]
LEAST_TOTAL = 1e-290
"""Sums of worths below this (the largest worth is 1) may have lost terms by underflow."""


def stage_weights(rankings: Rankings, decay: float) -> Doubles:
    """The weight r^-decay of the r-th place, one row per ranking; 0 after its end.

    Tied items share the mean weight of the places that they take, because their order is
    unknown.
    """
    longest = int(rankings.lengths.max(initial=0))
    place = np.arange(longest)
    weights = np.where(place < rankings.lengths[:, None], (1.0 + place) ** -decay, 0.0)
    begin, _, row, taken = rankings.groups
    for first, m, r in zip(begin, taken, row, strict=True):
        if m > 1:
            weights[r, first : first + m] = weights[r, first : first + m].mean()
    return weights


def log_chance(rankings: Rankings, weights: Doubles) -> Doubles:
    """The weighted log-probability of each ranking where all scores are equal.

    At each place, one of the remaining items is chosen uniformly.
    """
    left = rankings.n_compared[:, None] - np.arange(weights.shape[1])
    return -np.asarray((weights * np.log(np.maximum(left, 1))).sum(axis=1))


class _Tie(NamedTuple):
    """A tie of one list: its items, of which ``taken`` count, and what comes after it.

    ``end`` is the place after it, ``weight`` the weight of its places.
    """

    row: int
    end: int
    taken: int
    items: Ints
    weight: float
    has_later: bool


class PlackettLuceScorer:
    r"""log P(π|x) of many rankings, minus its value where all scores are equal.

    By the equation 14 of Hamm and Belkin (2015),

    .. math:: P(\pi|x) = \prod_{i=1}^K \frac{e^{f_{\pi^{-1}(i)}(x)}}
              {\sum_{j \ge i} e^{f_{\pi^{-1}(j)}(x)}}

    Every ranking is a list of items; tied items are next to each other. At each place, the
    logarithm of the total worth of this item and all later ones is accumulated, from the last place
    to the first. It is never the total minus the items already placed, because this difference
    cancels for a confident classifier. The probability of a tied ranking is the mean over the
    orders that it allows, an integral.

    Parameters
    ----------
    rankings : Rankings
        Full, top-K or subset rankings.
    decay : float
        The logarithm of the i-th factor has the weight i^-decay. For 0 all factors have the
        same weight, as in the equation.
    """

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        n_items = rankings.n_items
        stages = stage_weights(rankings, decay)
        self._chance = log_chance(rankings, stages)
        begin, size, row, taken = rankings.groups
        single = (taken > 0) & (size == 1)
        # A column of worth 0 fills the last places of shorter lists. The items after the first K of
        # a top-K list are the rest. A subset ranking has no rest; the items that it lists after its
        # first K have no weight.
        self._order = listed_orders(rankings).T.astype(np.int64)
        self._weights = np.zeros(self._order.shape)
        self._weights[begin[single], row[single]] = stages[row[single], begin[single]]
        self._has_rest = ~rankings.is_subset & (rankings.n_listed < n_items)
        self._after = np.repeat(self._has_rest[:, None], n_items, axis=1)
        self._after[rankings.entry_rows, rankings.codes] = False
        self._ties = []
        for first, m, r, t in zip(begin, size, row, taken, strict=True):
            if m == 1 or t == 0:
                continue
            weight, end = float(stages[r, first]), int(first + m)
            # The integral is of sets; one of their orders is as probable as any other.
            self._chance[r] += weight * (gammaln(m + 1) - gammaln(m - t + 1))
            goes_on = end < len(self._order) and self._order[end, r] < n_items
            items = self._order[first:end, r]
            has_later = bool(self._has_rest[r] or goes_on)
            self._ties.append(_Tie(int(r), end, int(t), items, weight, has_later))

    def log_prob(self, table: Scores) -> Doubles:
        """One row per input, one column per ranking."""
        return self.log_prob_of(np.asarray(table.values, np.float64))

    def log_prob_of(self, values: Doubles) -> Doubles:
        """The same for an array of scores, one column per item."""
        f = values - values.max(axis=1, keepdims=True)
        later = self._log_rest(f)
        f = np.column_stack([f, np.full(len(f), -np.inf)])
        result = np.repeat(-self._chance[None], len(f), axis=0)
        for place in range(len(self._order), -1, -1):
            for tie in self._ties:
                if tie.end == place and tie.has_later:
                    log_prob = tied_log_prob(f[:, tie.items].T, later[:, tie.row], tie.taken)
                    result[:, tie.row] += tie.weight * log_prob
            if place == 0:
                break
            item = f[:, self._order[place - 1]]
            later = np.logaddexp(later, item)
            weights = self._weights[place - 1]
            some = np.flatnonzero(weights)
            result[:, some] += weights[some] * (item[:, some] - later[:, some])
        return result

    def _log_rest(self, f: Doubles) -> Doubles:
        """The log of the total worth of the items after each list."""
        total = np.exp(f) @ self._after.T
        with np.errstate(divide="ignore"):
            log_rest = np.log(total)
        # Where sums underflow, logarithms are added.
        for column in np.flatnonzero(self._has_rest & (total < LEAST_TOTAL).any(axis=0)):
            rows = total[:, column] < LEAST_TOTAL
            items = np.flatnonzero(self._after[column])
            log_rest[rows, column] = logsumexp(f[np.ix_(rows, items)], axis=1)
        return np.asarray(log_rest)


class BabingtonSmithScorer:
    r"""log P(π|x) of many rankings for many inputs, up to a constant that depends only on x.

    The equation 15 of Hamm and Belkin (2015), from pairwise scores f_ij = -f_ji:

    .. math:: P(\pi|x) \propto \prod_{i=1}^K \prod_{j > i} e^{f_{\pi^{-1}(i) \pi^{-1}(j)}(x)}

    Its logarithm is linear in the scores. The constant differs between rankings of different
    lengths, so all rankings must have one length. The probability of a tied ranking is the mean
    over the orders that it allows. The parameters are those of `PlackettLuceScorer`.
    """

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        if rankings.is_subset.any():
            raise InputError("rankings", "subset", "must be top-K rankings, for one-vs-one scores")
        shortest, longest = int(rankings.lengths.min()), int(rankings.lengths.max())
        if shortest != longest:
            row = int(np.argmin(rankings.lengths))
            raise InputError(
                "rankings",
                shortest,
                f"must have one length for one-vs-one scores; others have {longest} items",
                where=f"ranking {row} (of {rankings.targets[row]!r})",
                hint=f"use k={shortest}, or scores with one column per class",
            )
        self._n_items = rankings.n_items
        self._column, self._sign = pair_columns(self._n_items)
        self._rankings, self._weights = rankings, stage_weights(rankings, decay)
        self._tied = rows_with_tied_choices(rankings)
        self.design = self._sum_pairs(np.setdiff1d(np.arange(len(rankings)), self._tied))

    def _sum_pairs(self, rows: NDArray[np.intp]) -> csr_array:
        """The matrix from scores to the log-weights of strict rankings, as columns."""
        n = len(self._rankings)
        design = csr_array((self._sign.shape[0] * (self._n_items - 1) // 2, n), dtype=np.float64)
        left = np.ones((rows.size, self._n_items), bool)
        starts = self._rankings.starts[rows]
        for place in range(self._weights.shape[1] if rows.size else 0):
            items = self._rankings.codes[starts + place]
            left[np.arange(rows.size), items] = False
            row, other = np.nonzero(left)
            # Strict rankings of one length have the same weights.
            weight = float(self._weights[rows[0], place])
            signs = weight * self._sign[items[row], other]
            cells = signs, (self._column[items[row], other], rows[row])
            design += csr_array(cells, shape=design.shape)
        return design

    def log_prob(self, table: Scores) -> Doubles:
        """One row per input, one column per ranking."""
        # Thousands of scores are added: single precision is not enough.
        f = np.asarray(table.pairs, np.float64)
        result = np.asarray(f @ self.design)
        for row in self._tied:
            left, place = np.ones(self._n_items, bool), 0
            for members, taken in iterate_choices(self._rankings[row]):
                part = self._log_choice(members, taken, left, f.T)
                result[:, row] += self._weights[row, place] * part
                left[members] = False
                place += taken
        return result

    def _log_choice(self, tied: Ints, taken: int, left: NDArray[np.bool_], f: Doubles) -> Doubles:
        """The logarithm of the mean weight over the orders of the next items."""
        g = len(tied)
        require_affordable(g, taken)
        column, sign = self._column[tied], self._sign[tied]
        sums = np.array([s[left] @ f[c[left]] for c, s in zip(column, sign, strict=True)])
        if g == 1:
            return np.asarray(sums[0])
        result = np.empty(f.shape[1])
        cells = max(comb(g, m) for m in range(1, taken + 1)) + g * g
        for rows in row_blocks(f.shape[1], cells, BLOCK_CELLS // 4):
            log_odds = f[column[:, tied], rows] * sign[:, tied, None]
            result[rows] = log_sum_of_choices(log_odds, sums[:, rows], taken)
        return np.asarray(result - gammaln(g + 1) + gammaln(g - taken + 1))


def log_prob_given_scores(rankings: Rankings, table: Scores, decay: float = 0.0) -> Doubles:
    """Log P(π|x) by the scorer of the kind of scores: one row per input, one column per list."""
    model = PlackettLuceScorer if table.pairs is None else BabingtonSmithScorer
    return model(rankings, decay).log_prob(table)

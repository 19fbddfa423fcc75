r"""Kendall's W, over the items that rankings compare, as far as they go.

With r_a the places of the n items in ranking a, less their mean, S = |Σ w_a r_a|² is the sum of
<r_a, r_b> over all pairs of rankings. W is S divided by the sum of what <r_a, r_b> can be at most:
(|r_a|² + |r_b|²) / 2, after the longer ranking has been cut to the length of the shorter one. What
a ranking leaves open is no disagreement. If all have the same length, nothing is cut, and this is
the classic W = 12 S / (m² (n³ - n) - m ΣT), corrected for ties.

All sums are over the ranked items of each ranking, and none over pairs of rankings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.ranking.checks import require_any_rankings
from rankshot.ranking.layouts import group_by_place
from rankshot.ranking.parts import AnyRankings, add_results, keep_counted, reduce_parts
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.restriction import keep_ranked_items, mark_ranked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING = 1e-12


def concordance(rankings: AnyRankings) -> float | None:
    r"""Return Kendall's W over the items that the rankings compare, corrected for ties and lengths.

    1 is full agreement. Random rankings have about 1/m, where m is their number, and less if they
    are so short that most items are ranked only once or twice.

    - If all rankings order the same number of items, W = 12 S / (m² (n³ - n) - m ΣT). S is the sum
      of squared deviations of the items' total places from their mean, n the number of items, and
      T = Σ (t³ - t) over the ties of a ranking. The items after its first K are one tie.
    - Items that no ranking has among its first K do not count.
    - Rankings of different lengths agree fully if they agree as far as the shorter one goes: in
      the denominator, the longer one is cut there.
    - Subset rankings: W is taken within each set of compared items, and averaged with the weights
      of the rankings. A set that only one ranking compares does not count.

    A ranking of weight w counts as w rankings. W is 1 if no ranking orders anything, and None if no
    two rankings compare the same items.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a"], ["a", "b"]], items=["a", "b", "c", "d", "e", "f"])
    >>> rs.ranking.concordance(votes)
    1.0
    """
    rankings = keep_ranked_items(keep_counted(require_any_rankings(rankings)))
    # A set that only one ranking compares needs no sums: there may be as many sets as rankings.
    sets = reduce_parts(rankings, _count_sets)
    shared = sets.keys[(sets.sums > 1).any(axis=0)]
    return reduce_parts(rankings, _sum_places, shared).concordance(rankings.n_items)


@dataclass(frozen=True)
class _KeyedSums:
    """Sums over what has the same key; ``keys`` are sorted, and ``sums`` has a column for each."""

    keys: Ints
    sums: Floats

    @classmethod
    def of(cls, keys: Ints, *values: Floats) -> _KeyedSums:
        if keys.size and keys.min() >= 0 and keys.max() < keys.size:
            # Sums over all numbers from 0 to the largest are faster than sorting.
            used = np.flatnonzero(np.bincount(keys))
            return cls(used, np.array([np.bincount(keys, each)[used] for each in values]))
        distinct, which = np.unique(keys, return_inverse=True)
        sums = [np.bincount(which, each, minlength=distinct.size) for each in values]
        return cls(distinct, np.array(sums))

    def __add__(self, other: _KeyedSums) -> _KeyedSums:
        keys = np.append(self.keys, other.keys)
        return _KeyedSums.of(keys, *np.hstack([self.sums, other.sums]))


# ---- Sets of compared items


def _count_sets(rankings: Rankings) -> _KeyedSums:
    """Return the number and the weight of the rankings of each set."""
    return _KeyedSums.of(_number_sets(rankings), np.ones(len(rankings)), rankings.weights)


def _number_sets(rankings: Rankings) -> Ints:
    """Return a number for the set of items that each ranking compares: all, or those it lists.

    Each item has a random number of 64 bits, and a set has their sum. So rankings of other parts
    have the same numbers, and of a million sets, no two have the same number by chance.
    """
    bits = np.iinfo(np.int64)
    number = np.random.default_rng(0).integers(bits.min, bits.max, rankings.n_items, endpoint=True)
    if not len(rankings):
        return np.empty(0, np.int64)
    of_listed = np.add.reduceat(number[rankings.codes], rankings.starts[:-1])
    return np.where(rankings.is_subset, of_listed, number.sum())


# ---- Sums of places
#
# An item that a ranking of length K does not rank has the place (n + K) / 2, the mean of those
# that remain. Less this, a ranking adds q - (n + K) / 2 to an item at place q, and 0 to others.
#
# Cut after K items, the places have |r|² = Σ (q_j - n/2)² + (Σ (q_j - n/2))² / (n - K), where j
# goes from 1 to K. The sum over rankings follows from those of 1, Σ q_j, (Σ q_j)² and Σ q_j².
# n, the number of items that rankings of the set rank, is known only at the end.


class _PlaceSums(NamedTuple):
    """Weighted sums over the rankings of each set.

    The keys of ``items`` are set · C + item: sums of q - K/2 and of 1. The keys of the others are
    set · C + K - 1: sums for |r|² of the rankings that end after K items, and of all that have K.
    """

    items: _KeyedSums
    ends: _KeyedSums
    every: _KeyedSums

    def concordance(self, n_items: int) -> float | None:
        """Return the mean of W over sets, weighted with their rankings."""
        if not self.items.keys.size:
            return None
        which = self.items.keys // n_items
        n = np.bincount(which)
        totals = self.items.sums[0] - n[which] / 2 * self.items.sums[1]
        means = np.bincount(which, totals) / n
        S = np.bincount(which, (totals - means[which]) ** 2)
        which, K = np.divmod(self.ends.keys, n_items)
        K += 1
        ends = self.ends.sums
        every = self.every.sums[:, np.searchsorted(self.every.keys, self.ends.keys)]
        # Pairs of which the shorter one ends after K items: the longer one is cut there.
        pairs = _sum_squares(ends, n[which], K) * (every[0] - ends[0])
        pairs += ends[0] * _sum_squares(every, n[which], K)
        most, weight = np.bincount(which, pairs), np.bincount(which, ends[0])
        W = np.ones(n.size)
        np.divide(S, most, out=W, where=most > ROUNDING * weight**2 * n**3)
        return float(np.average(np.minimum(W, 1), weights=weight))


def _sum_squares(sums: Floats, n: Ints, K: Ints) -> Floats:
    """Return Σ w |r|² of rankings that are cut after K of n items."""
    weight, total, total_squared, squares = sums
    first = squares - n * total + K * n**2 / 4 * weight
    rest = total_squared - K * n * total + (K * n) ** 2 / 4 * weight
    return np.asarray(first + rest / np.maximum(n - K, 1))


def _sum_places(rankings: Rankings, sets: Ints) -> _PlaceSums:
    """Return the sums of the rankings whose set is one of ``sets``, which are sorted."""
    numbers = _number_sets(rankings)
    counted = np.flatnonzero(np.isin(numbers, sets))
    which = np.searchsorted(sets, numbers)
    found = _sum_block(rankings[:0], which[:0])
    for rows in row_blocks(counted.size, 8 * (rankings.codes.size // max(len(rankings), 1) + 1)):
        found = add_results(found, _sum_block(rankings[counted[rows]], which[counted[rows]]))
    return found


def _sum_block(rankings: Rankings, sets: Ints) -> _PlaceSums:
    ranked = mark_ranked(rankings)
    begin, size, _ = group_by_place(rankings)
    place = np.repeat(begin + size / 2, size)[ranked]
    row = rankings.entry_rows[ranked]
    length = np.bincount(row, minlength=len(rankings))
    first = np.cumsum(length) - length
    nth = np.arange(row.size) - first[row]
    weight = rankings.weights[row]
    total, squares = (_sum_so_far(values, first, row) for values in (place, place**2))
    every = np.array([weight, weight * total, weight * total**2, weight * squares])
    begins = sets * rankings.n_items
    key, last = begins[row] + nth, first + length - 1
    return _PlaceSums(
        _KeyedSums.of(
            begins[row] + rankings.codes[ranked], weight * (place - length[row] / 2), weight
        ),
        _KeyedSums.of(key[last], *every[:, last]),
        _KeyedSums.of(key, *every),
    )


def _sum_so_far(values: Floats, first: Ints, row: Ints) -> Floats:
    """Return the cumulative sums of ``values`` within each row."""
    before = np.append(0.0, np.cumsum(values))
    return np.asarray(before[1:] - before[first][row])

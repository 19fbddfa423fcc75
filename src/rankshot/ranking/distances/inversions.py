"""Counting the pairs of items that two rankings put in opposite orders, in O(C log C).

Two strict rankings are one permutation: the places in the second of the items of the first, in
order. The pairs in opposite orders are its inversions. With ties, items tied in one ranking are
taken in the order of the other one: then no pair that is tied anywhere is an inversion.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.ranking.layouts import completed_orders, levels
from rankshot.ranking.rankings import Rankings

Ints = NDArray[np.int64]
LEAF = 8
"""Groups of fewer than twice as many values are compared pair by pair."""


class PairCounts(NamedTuple):
    """Numbers of pairs of items, one value per pair of rankings."""

    discordant: NDArray[np.float64]
    tied_in_both: NDArray[np.float64]


def compare_orders(
    a: Rankings, b: Rankings, rows_a: NDArray[np.intp], rows_b: NDArray[np.intp]
) -> PairCounts:
    """Compare ranking ``rows_a[t]`` of a with ranking ``rows_b[t]`` of b, for every t.

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c"], ["c"]], items=["a", "b", "c"])
    >>> compare_orders(r, r, np.array([0, 1]), np.array([1, 1]))
    PairCounts(discordant=array([2., 0.]), tied_in_both=array([0., 1.]))
    """
    counts = PairCounts(np.zeros(rows_a.size), np.zeros(rows_a.size))
    levels_b = levels(b)
    strict = is_strict(a) and (a is b or is_strict(b))
    orders = completed_orders(a) if strict else None
    levels_a = levels_b if a is b or strict else levels(a)
    for some in row_blocks(rows_a.size, 8 * a.n_items):
        i, j = rows_a[some], rows_b[some]
        if orders is not None:
            permuted: NDArray[Any] = np.take_along_axis(levels_b[j], orders[i], axis=1)
        else:
            permuted, counts.tied_in_both[some] = merge_ties(levels_a[i], levels_b[j])
        counts.discordant[some] = count_inversions(permuted)
    return counts


def is_strict(rankings: Rankings) -> bool:
    """Tell whether every ranking puts all items in order; the last item need not be listed."""
    return not rankings.has_ties and bool(np.all(rankings.n_listed >= rankings.n_items - 1))


def merge_ties(a: NDArray[Any], b: NDArray[Any]) -> tuple[Ints, Ints]:
    """Return permutations that break the ties of each by the other, and the pairs tied in both."""
    n, C = a.shape
    key_a, key_b = a * np.int64(C + 1) + b, b * np.int64(C + 1) + a
    order_a, order_b = (np.argsort(key, axis=1, kind="stable") for key in (key_a, key_b))
    place_b = np.empty((n, C), np.int64)
    np.put_along_axis(place_b, order_b, np.arange(C)[None], axis=1)
    begins = np.ones((n, C), bool)
    by_key = np.take_along_axis(key_a, order_a, axis=1)
    begins[:, 1:] = by_key[:, 1:] != by_key[:, :-1]
    first = np.flatnonzero(begins)
    size = np.diff(np.append(first, n * C))
    tied = np.bincount(first // C, size * (size - 1) // 2, minlength=n).astype(np.int64)
    return np.take_along_axis(place_b, order_a, axis=1), tied


def count_inversions(permutations: NDArray[Any]) -> Ints:
    """Return the number of inversions of each row, a permutation of 0, 1, …, C - 1.

    A group of values in sequence is split into its smaller and its larger half. The smaller
    values pass over the larger ones before them: the sum of their places, minus 0 + 1 + … for
    the smaller ones before them. The halves are groups of their own, and so on.

    Examples
    --------
    >>> count_inversions(np.array([[0, 1, 2], [2, 1, 0]]))
    array([0, 3])
    """
    n, C = permutations.shape
    depth = max(0, int(np.log2(max(C, 1) / LEAF)))
    width = -(-C // 2**depth)
    size, groups = width * 2**depth, 1
    # The smallest integers are the fastest; values added after the last one invert nothing.
    values = np.empty((n, size), np.int16 if size < 2**15 else np.int32)
    values[:, :C], values[:, C:] = permutations, np.arange(C, size)
    total, rows = np.zeros(n, np.int64), np.arange(n)
    flat = values.reshape(-1)
    while size > width:
        half = size // 2
        small = flat < half
        places = np.flatnonzero(small)
        # Each group begins at a multiple of its size.
        begins = size * groups * (rows * groups + (groups - 1) / 2)
        total += places.reshape(n, -1).sum(axis=1) - (half * begins).astype(np.int64)
        total -= groups * (half * (half - 1) // 2)
        halves = np.empty((n * groups, 2, half), flat.dtype)
        halves[:, 0] = flat[places].reshape(-1, half)
        halves[:, 1] = flat[np.flatnonzero(~small)].reshape(-1, half)
        halves[:, 1] -= half
        flat, size, groups = halves.reshape(-1), half, 2 * groups
    leaves = np.ascontiguousarray(flat.reshape(-1, width).T).reshape(width, n, groups)
    for step in range(1, width):
        total += np.count_nonzero(leaves[:-step] > leaves[step:], axis=(0, 2))
    return total

"""Mean Kendall distances, from the numbers of items that the places of two rankings share.

A ranking is a few places, some of them ties, and the rest after them. Whether a pair of items
counts in a mean over the orders that ties allow depends only on the places of the two items. So
for two rankings, all counts of pairs are sums over the small table N[g, g']: the number of items
in place g of one and in place g' of the other. This takes as long for many items as for few.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.blocks import row_blocks
from rankshot.ranking.checks import require_rankings
from rankshot.ranking.distances.inversions import compare_orders
from rankshot.ranking.layouts import ABSENT, group_by_place, levels
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def compare_common_items(a: Rankings, b: Rankings | None = None, k: int = 10) -> Floats:
    r"""Return distances between the rankings of ``a`` and ``b``, each over the items both compare.

    A subset ranking says nothing of the items that it does not list, so each pair is compared on
    the items that both know. The distance is `mean_kendall_distance` of the first places there,
    divided by the largest possible one: 0 is the same order, 1 is the opposite order.

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default.
    k : int
        How many places are compared; fewer if one of the two lists is shorter.

    Returns
    -------
    ndarray of shape (len(a), len(b))
        NaN where two rankings have fewer than two items in common, or no place.

    Examples
    --------
    The second ranking does not know the bus. Both order the other items in the same way:

    >>> import rankshot as rs
    >>> from rankshot.ranking.distances.shared_places import compare_common_items
    >>> items = ["bus", "cat", "fox"]
    >>> whole = rs.Rankings.from_orders([["fox", "bus", "cat"]], items=items)
    >>> part = rs.Rankings.from_orders([["fox", "cat"]], items=items, kind="subset")
    >>> compare_common_items(whole, part)
    array([[0.]])
    """
    require_rankings(a)
    second = a if b is None else require_rankings(b).with_items(a.items)
    distance = np.empty((len(a), len(second)))
    for rows, columns, part in iterate_common_distances(a, second, k):
        distance[rows, columns] = part
    return distance


def iterate_common_distances(
    a: Rankings, b: Rankings, k: int
) -> Iterator[tuple[slice, slice, Floats]]:
    """Yield blocks of the matrix of `compare_common_items`: rows, columns and values."""
    for rows, columns, table, places in _count_shared(a, b, k):
        n_items = table.sum(axis=(2, 3))
        listed = (table.sum(axis=3)[..., :-1].sum(axis=2), table.sum(axis=2)[..., :-1].sum(axis=2))
        k_both = np.minimum(places, np.minimum(*listed)).astype(np.int64)
        largest = k_both * (2 * n_items - k_both - 1) / 2
        part = np.full(largest.shape, np.nan)
        np.divide(_mean_distance(table, k_both), largest, out=part, where=largest > 0)
        yield rows, columns, part


def mean_distance_by_places(a: Rankings, b: Rankings, k: int) -> Floats:
    """Return the matrix of mean top-k Kendall distances between rankings of all items."""
    distance = np.empty((len(a), len(b)))
    for rows, columns, table, places in _count_shared(a, b, k):
        distance[rows, columns] = _mean_distance(table, np.full(places.shape, k))
    return distance


def _count_shared(a: Rankings, b: Rankings, k: int) -> Iterator[tuple[slice, slice, Floats, Ints]]:
    """Yield blocks of rankings of a and of b: their tables N, and how many places both have."""
    width, height = (min(k, int(r.places.max(initial=0)) + 1) + 1 for r in (a, b))
    for rows in row_blocks(len(a), max(a.n_items, width * height)):
        first = _list_groups(a[rows], k)
        cells = len(first.known) * width * height
        for columns in row_blocks(len(b), max(b.n_items, cells)):
            second = _list_groups(b[columns], k)
            places = np.minimum(first.places[:, None], second.places)
            yield rows, columns, _count_shared_items(first, second), places


class _Groups(NamedTuple):
    """Rankings as groups: ``listed`` has one row per ranking and group, ``known`` one per ranking.

    Both have one column per item. The rest after the last group is the last group, empty in
    ``listed``. ``places`` is the number of places that count.
    """

    listed: csr_array
    known: NDArray[np.float32]
    places: Ints
    n_groups: int


def _list_groups(rankings: Rankings, k: int) -> _Groups:
    cut = rankings.top(min(k, rankings.n_items))
    begin, size, row = group_by_place(cut)
    counts = np.repeat(begin < cut.lengths[row], size)
    rows, items = cut.entry_rows[counts], cut.codes[counts]
    n_groups = int(cut.places[counts].max(initial=0)) + 2
    cells = (rows * n_groups + cut.places[counts], items)
    shape = (len(cut) * n_groups, cut.n_items)
    listed = csr_array((np.ones(rows.size, np.float32), cells), shape=shape)
    known = (levels(cut) != ABSENT).astype(np.float32)
    return _Groups(listed, known, cut.lengths, n_groups)


def _count_shared_items(a: _Groups, b: _Groups) -> Floats:
    """Return N[a, b, g, g']: the items in group g of one ranking and in group g' of the other."""
    shape = (len(a.known), a.n_groups, len(b.known), b.n_groups)
    table = (a.listed @ b.listed.T).toarray().reshape(shape).transpose(0, 2, 1, 3).astype(float)
    known_b = (a.listed @ b.known.T).reshape(shape[:3]).transpose(0, 2, 1)
    known_a = (b.listed @ a.known.T).reshape(*shape[2:], shape[0]).transpose(2, 0, 1)
    table[:, :, :, -1] = known_b - table.sum(axis=3)
    table[:, :, -1, :] = known_a - table.sum(axis=2)
    # The last line counted the rest of both as minus the items that only one of them lists.
    table[:, :, -1, -1] = 0
    table[:, :, -1, -1] = a.known @ b.known.T - table.sum(axis=(2, 3))
    counts: Floats = table
    return counts


class _Shares(NamedTuple):
    """Probabilities of each group that items are among the first k.

    ``inside``: of one item. ``before``: that it precedes another item of its group, and is among
    the first k. ``outside``: that it and another item of its group are both not.
    """

    inside: Floats
    before: Floats
    outside: Floats


def _share_places(sizes: Floats, k: Ints) -> _Shares:
    placed = np.cumsum(sizes, axis=-1) - sizes
    taken = np.clip(k[..., None] - placed, 0, sizes)
    left = sizes - taken
    pairs = np.maximum(sizes * (sizes - 1), 1)
    return _Shares(
        taken / np.maximum(sizes, 1),
        (taken * (taken - 1) / 2 + taken * left) / pairs,
        left * (left - 1) / pairs,
    )


def _mean_distance(table: Floats, k: Ints) -> Floats:
    """Return the mean top-k distances of pairs of rankings from their tables N.

    With F[g, h] the probability that an item of place g precedes one of place h, within the first
    k, the sum of N ∘ (F_a N F_b) counts pairs in opposite orders, and likewise for pairs that both
    rankings leave out. An item is no pair with itself.
    """
    a, b = _share_places(table.sum(axis=3), k), _share_places(table.sum(axis=2), k)
    a, b = _Shares(*(x[..., None] for x in a)), _Shares(*(x[:, :, None] for x in b))
    after = table.sum(axis=2, keepdims=True) - np.cumsum(table, axis=2)
    by_a = a.inside * after + a.before * table
    before = by_a * b.inside
    by_both = np.cumsum(before, axis=3) - before + b.before * by_a
    opposite = (table * (by_both - a.before * b.before)).sum(axis=(2, 3))
    out_a, out_b = 1 - a.inside, 1 - b.inside
    by_a = out_a * (out_a * table).sum(axis=2, keepdims=True) + (a.outside - out_a**2) * table
    by_both = out_b * (out_b * by_a).sum(axis=3, keepdims=True) + (b.outside - out_b**2) * by_a
    both_out = (table * (by_both - a.outside * b.outside)).sum(axis=(2, 3))
    n_left = table.sum(axis=(2, 3)) - k
    return np.asarray(opposite + (n_left * (n_left - 1) - both_out) / 2)


# ---- Few long rankings: the pairs in opposite orders by sorting, and corrections for ties


def mean_distance_by_sorting(a: Rankings, b: Rankings, k: int) -> Floats:
    """Return the matrix of mean top-k Kendall distances between rankings cut to their first k."""
    i, j = map(np.ravel, np.indices((len(a), len(b))))
    discordant = compare_orders(a, b, i, j).discordant.reshape(len(a), len(b))
    distance = np.empty(discordant.shape)
    groups_b = [_Levels.of(level, k) for level in levels(b)]
    for row, level in enumerate(levels(a)):
        first = _Levels.of(level, k)
        for column, second in enumerate(groups_b):
            opposite = _count_opposite(first, second, discordant[row, column])
            n_left = a.n_items - k
            both_out = _count_left_by_both(first, second)
            distance[row, column] = opposite + n_left * (n_left - 1) / 2 - both_out
    return distance


class _Levels(NamedTuple):
    """One ranking: the level of each item, the shares of each level, and the level that k cuts.

    Only items of the cut level may or may not be among the first k; ``out`` is the probability
    that one is not. All later items come after the first k.
    """

    level: NDArray[np.int32]
    sizes: Floats
    shares: _Shares
    cut: NDArray[np.bool_]
    later: NDArray[np.bool_]
    out: float

    @classmethod
    def of(cls, level: NDArray[np.int32], k: int) -> _Levels:
        sizes = np.bincount(level).astype(float)
        shares = _share_places(sizes, np.array(k))
        last = int(np.flatnonzero(shares.inside > 0)[-1])
        out = 1 - float(shares.inside[last])
        return cls(level, sizes, shares, level == last, level > last, out)


def _count_opposite(a: _Levels, b: _Levels, discordant: float) -> float:
    """Return the mean number of pairs in opposite orders, where the first one of each is in k."""
    # In order in both: the first one of a ranking may be an item of its cut level.
    total = discordant - a.out * _count_passed_later(a, b) - b.out * _count_passed_later(b, a)
    total += a.out * b.out * int((a.cut & b.later).sum()) * int((a.later & b.cut).sum())
    # Tied in one, in order in the other; tied in both.
    cells, sizes = np.unique(a.level * np.int64(b.sizes.size) + b.level, return_counts=True)
    pairs = sizes * (sizes - 1) / 2
    before_a = a.shares.before[cells // b.sizes.size]
    before_b = b.shares.before[cells % b.sizes.size]
    for one, other, before in ((a, b, before_a), (b, a, before_b)):
        tied = one.sizes * (one.sizes - 1) / 2
        cut, later = (
            np.bincount(one.level[some], minlength=tied.size) for some in (other.cut, other.later)
        )
        total += float(one.shares.before @ (tied - other.out * cut * later) - before @ pairs)
    return total + 2 * float((before_a * before_b) @ pairs)


def _count_passed_later(one: _Levels, other: _Levels) -> int:
    """Count pairs of an item of the cut level and a later one that the other ranking reverses."""
    later = np.bincount(other.level[one.later], minlength=other.sizes.size)
    return int((np.cumsum(later) - later)[other.level[one.cut]].sum())


def _count_left_by_both(a: _Levels, b: _Levels) -> float:
    """Return the mean number of pairs of which both rankings leave out both items."""
    numbers = np.array([(x & y).sum() for x in (a.cut, a.later) for y in (b.cut, b.later)])
    tables = []
    for one in (a, b):
        outside = float(one.shares.outside[one.level[one.cut][0]])
        tables.append(np.array([[outside, one.out], [one.out, 1.0]]))
    chance = np.kron(*tables)
    return float(numbers @ chance @ numbers - numbers @ np.diag(chance)) / 2

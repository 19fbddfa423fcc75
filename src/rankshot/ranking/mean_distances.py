"""Mean Kendall distances: over the orders that ties allow, and over pairs of rankings.

A ranking is a few places, some of them ties, and the rest after them. Whether a pair of items
counts in a mean over the orders that ties allow depends only on the places of the two items. So
for two rankings, all counts of pairs are sums over the small table N[g, g']: the number of items
in place g of one and in place g' of the other. This takes as long for many items as for few.

Means over all pairs of many rankings need no table of pairs of rankings: they follow from sums
over rankings of what each says of pairs of items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.core.blocks import row_blocks
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.distances import (
    compare_orders,
    count_ordered_pairs,
    kendall_distance,
    prepare_rankings,
    sorting_is_cheaper,
)
from rankshot.ranking.matrices import ABSENT, group_by_place, levels, rows_with_tied_choices
from rankshot.ranking.parts import (
    AnyRankings,
    KeyedSums,
    RankingParts,
    add_results,
    map_rows,
    reduce_parts,
    refuse_partial,
    require_rankings,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_CELLS = 2**29
"""Cells of the tables of all pairs of rankings that are compared one by one: about a minute."""
MOST_LINKS = 2**23
"""Pairs of items that all rankings list, each for itself."""
RANKINGS_PER_BATCH = 64
"""Rankings that are compared at once: more of them take longer, and so do many small batches."""


def mean_kendall_distance(a: Rankings, b: Rankings | None = None, k: int | None = None) -> Floats:
    r"""Return the matrix of mean top-k Kendall distances between rankings of ``a`` and of ``b``.

    A tie stands for every strict order of its items, and each is equally likely; the items that
    a list leaves out are tied after its last item. The distance is the mean of `kendall_distance`
    over the strict top-k lists that the two rankings allow, drawn independently. Without ties it
    equals that distance. With ties the two differ: the Hausdorff distance takes the worst case,
    so that a ranking with large ties is far from every strict one.

    Between strict top-k lists the distance counts pairs of items in opposite orders, and pairs
    that the first list leaves out and the second does not. Its mean needs only the probabilities
    that a pair is in either order, or left out, in each of the two rankings.

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings are refused.
    k : int, optional
        Compare the first k; all by default.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c"], [["a", "b", "c"]]], items=["a", "b", "c"])
    >>> rs.ranking.mean_kendall_distance(r)
    array([[0. , 1.5],
           [1.5, 1.5]])
    >>> rs.kendall_distance(r)
    array([[0., 3.],
           [3., 0.]])
    """
    first, second = prepare_rankings(a, b, k)
    C = first.n_items
    k = C if k is None else int(k)
    if all(_is_strict_to(r, k) for r in (first, second)):
        return kendall_distance(first, None if b is None else second)
    n_places = min(k, max(int(r.places.max(initial=0)) + 1 for r in (first, second)))
    if (n_places + 2) ** 3 <= C**2:
        return mean_distance_by_places(first, second, k)
    if sorting_is_cheaper(first, second, symmetric=False):
        return mean_distance_by_sorting(first, second, k)
    return _mean_by_pairs(first, second, k)


def _is_strict_to(rankings: Rankings, k: int) -> bool:
    """Tell whether every ranking has one strict list of its first k items."""
    reaches = rankings.lengths >= min(k, rankings.n_items - 1)
    return bool(reaches.all()) and not rows_with_tied_choices(rankings).size


def _mean_by_pairs(first: Rankings, second: Rankings, k: int) -> Floats:
    """Compute mean distances from tables of all pairs of items, a block of them at a time."""
    C = first.n_items
    distance = np.zeros((len(first), len(second)))
    for items in row_blocks(C, 4 * C):
        cells = 4 * (items.stop - items.start) * C
        for rows in row_blocks(len(first), cells):
            before, _, out_a = _pair_probabilities(first[rows], k, items)
            for columns in row_blocks(len(second), cells):
                _, after, out_b = _pair_probabilities(second[columns], k, items)
                in_b = 1 - out_b
                in_b[:, np.arange(in_b.shape[1]), np.arange(C)[items]] = 0
                distance[rows, columns] += np.tensordot(before, after, axes=([1, 2], [1, 2]))
                distance[rows, columns] += np.tensordot(out_a, in_b, axes=([1, 2], [1, 2])) / 2
    return distance


def _pair_probabilities(rankings: Rankings, k: int, items: slice) -> tuple[Floats, Floats, Floats]:
    """Return probabilities for each of ``items`` and every item, over the orders of ties.

    That it precedes the other one, which it does from the first k; that the other one precedes it
    likewise; and that both come after the first k.
    """
    level = levels(rankings)
    n, C = level.shape
    sizes = np.zeros((n, C + 1))
    np.add.at(sizes, (np.arange(n)[:, None], level), 1)
    shares = _Shares.of(sizes, np.cumsum(sizes, axis=1) - sizes, k)
    share, within, beyond = (np.take_along_axis(table, level, axis=1) for table in shares)
    own, other = level[:, items, None], level[:, None, :]
    same = own == other
    same[:, np.arange(same.shape[1]), np.arange(C)[items]] = False
    tied = same * within[:, items, None]
    before = (own < other) * share[:, items, None] + tied
    after = (own > other) * share[:, None, :] + tied
    out = (own < other) * (1 - share)[:, items, None] + (own > other) * (1 - share)[:, None, :]
    return before, after, out + same * beyond[:, items, None]


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
    >>> from rankshot.ranking.mean_distances import compare_common_items
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
    """Probabilities of each group of tied items, of which some belong to the first k.

    ``inside``: that an item does. ``before``: that it precedes another item of its group, and
    does. ``outside``: that it and another item of its group both do not.
    """

    inside: Floats
    before: Floats
    outside: Floats

    @classmethod
    def of(cls, size: NDArray[Any], begin: NDArray[Any], k: Ints | int) -> _Shares:
        """Return the shares of groups of ``size`` items, with ``begin`` items before them."""
        taken = np.clip(k - begin, 0, size)
        left = size - taken
        pairs = np.maximum(size * (size - 1), 1)
        return cls(
            taken / np.maximum(size, 1),
            (taken * (taken - 1) / 2 + taken * left) / pairs,
            left * (left - 1) / pairs,
        )


def _mean_distance(table: Floats, k: Ints) -> Floats:
    """Return the mean top-k distances of pairs of rankings from their tables N.

    With F[g, h] the probability that an item of place g precedes one of place h, within the first
    k, the sum of N ∘ (F_a N F_b) counts pairs in opposite orders, and likewise for pairs that both
    rankings leave out. An item is no pair with itself.
    """
    sizes_a, sizes_b, k_of = table.sum(axis=3), table.sum(axis=2), k[..., None]
    a = _Shares.of(sizes_a, np.cumsum(sizes_a, axis=-1) - sizes_a, k_of)
    b = _Shares.of(sizes_b, np.cumsum(sizes_b, axis=-1) - sizes_b, k_of)
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
        shares = _Shares.of(sizes, np.cumsum(sizes) - sizes, k)
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


# ---- The distance of `kendall_distance`
#
# With o the number of pairs that a ranking puts in order, those tied in b alone are o_a minus
# those ordered in both. So d(a, b) = |opposite| + max(o_a, o_b) - |ordered in both|
# = max(o_a, o_b) - Σ B_a[i, j] B_b[i, j].


def mean_kendall_distances(rankings: AnyRankings, weight: float) -> tuple[float, Floats]:
    """Return the mean distance between two different rankings, and that of each to the others.

    A ranking of weight w counts as w rankings; ``weight`` is the sum of all. For rankings in parts,
    the distances of each are a lazy array.
    """
    pairs = weight**2 - reduce_parts(rankings, _weight_of_own_pairs)
    if isinstance(rankings, Rankings) and len(rankings) < rankings.n_items:
        # A table of rankings by rankings is smaller than one of items by items.
        to_all = kendall_distance(rankings) @ rankings.weights
        others = weight - _weight_once(rankings)
        return float(rankings.weights @ to_all) / pairs, to_all / others
    sums = reduce_parts(rankings, _sum_orders)
    larger = sums.sum_of_larger_than(sums.counts.keys)
    total = float(sums.counts.sums[0] @ larger) - float((sums.before**2).sum())
    return max(total, 0.0) / pairs, map_rows(rankings, _distances_to_others, sums, weight)


def _weight_of_own_pairs(rankings: Rankings) -> float:
    """Return the weight of the pairs of a ranking and itself.

    A weight above 1 stands for equal rankings, which are different rankings of distance 0.
    """
    return float(_weight_once(rankings) @ rankings.weights)


def _weight_once(rankings: Rankings) -> Floats:
    return np.asarray(np.minimum(rankings.weights, 1))


class _Orders(NamedTuple):
    """``before[i, j]`` is the weight of the rankings that put i before j.

    ``counts`` has the weight of the rankings with each number of ordered pairs.
    """

    before: Floats
    counts: KeyedSums

    def sum_of_larger_than(self, values: Ints) -> Floats:
        """Return Σ w_b max(o, o_b) for each number o of ordered pairs."""
        keys, [weights] = self.counts.keys, self.counts.sums
        smaller = np.append(0.0, np.cumsum(weights))
        larger = np.append(np.cumsum((weights * keys)[::-1])[::-1], 0.0)
        n_smaller = np.searchsorted(keys, values, side="right")
        return np.asarray(values * smaller[n_smaller] + larger[n_smaller])


def _sum_orders(rankings: Rankings) -> _Orders:
    refuse_partial(rankings, "no distance is defined between rankings of different items")
    # A tie that K cuts counts as a whole.
    whole = replace(rankings, lengths=rankings.n_listed)
    ordered = count_ordered_pairs(whole).astype(np.int64)
    return _Orders(precedence(whole), KeyedSums.of(ordered, whole.weights))


def _distances_to_others(rankings: Rankings, sums: _Orders, weight: float) -> Floats:
    larger = sums.sum_of_larger_than(count_ordered_pairs(rankings).astype(np.int64))
    # Rounding of fractional weights can make it negative.
    to_all = np.maximum(larger - _sum_over_orders(rankings, sums.before), 0)
    return np.asarray(to_all / (weight - _weight_once(rankings)))


def _sum_over_orders(rankings: Rankings, table: Floats) -> Floats:
    """Return, for each ranking, the sum of ``table[i, j]`` over the pairs that put i before j."""
    result = np.zeros(len(rankings))
    for rows in row_blocks(len(rankings), rankings.n_items):
        by_item = np.ascontiguousarray(levels(rankings[rows]).T)
        for i in range(rankings.n_items):
            result[rows] += table[i] @ (by_item[i] < by_item)
    return result


# ---- The distance of `compare_common_items`, for rankings of all items
#
# Between the first k places of two rankings, the mean over the orders that ties allow is
# Σ P_a[i, j] P_b[j, i] + Σ O_a[i, j] (1 - O_b[i, j]) / 2. P is the probability that i precedes j
# and is among the first k, and O that both come after them. k is the smaller of the two lengths,
# so each length has its own sums.


def mean_common_distance(rankings: AnyRankings, k: int) -> float | None:
    """Return the weighted mean of `compare_common_items` over pairs of different rankings.

    Rankings of a subset have no such sums: the pairs of those that differ are compared one by one.
    In parts, and where there are too many that differ, this would take too long, and the result is
    None.
    """
    shape = reduce_parts(rankings, _look_at_lengths, min(k, rankings.n_items))
    if shape.n_partial or _few_pairs(rankings, k):
        most = MOST_CELLS if shape.n_partial else np.inf
        return _mean_over_pairs(rankings, k, most) if isinstance(rankings, Rankings) else None
    lengths = np.flatnonzero(shape.by_length)
    pairs = shape.weight**2 - shape.own_pairs
    if rankings.n_items < 2 or not pairs > 0:
        return None
    total = 0.0
    for number, sums in zip(
        lengths, reduce_parts(rankings, _sum_by_length, tuple(lengths.tolist())), strict=True
    ):
        largest = number * (2 * rankings.n_items - number - 1) / 2
        total += (_sum_over_pairs(sums.equal, sums.longer) - sums.own) / largest
    return float(max(total, 0.0) / pairs)


def _few_pairs(rankings: AnyRankings, k: int) -> bool:
    """Tell whether comparing all pairs, on tables of places, is less work than the sums."""
    if isinstance(rankings, RankingParts):
        return False
    return len(rankings) * (k + 1) ** 2 < rankings.n_items**2


def _mean_over_pairs(rankings: Rankings, k: int, most: float) -> float | None:
    merged = rankings.unique()
    # Pairs of a ranking and itself do not count; those of it and an equal one do.
    own = replace(rankings, weights=_weight_once(rankings) * rankings.weights).unique().weights
    parts = _split_comparable(merged)
    places = min(k, int(merged.places.max(initial=0)) + 1) + 1
    if sum(len(rows) ** 2 for rows in parts) * places**2 > most:
        return None
    total = weight = 0.0
    for rows in parts:
        sums = _sum_over_different(merged[rows], own[rows], k)
        total, weight = total + sums[0], weight + sums[1]
    return total / weight if weight > 0 else None


def _sum_over_different(rankings: Rankings, own: Floats, k: int) -> tuple[float, float]:
    """Return the sums of w_a w_b d(a, b) and of w_a w_b over pairs of different rankings."""
    total = weight = 0.0
    for rows, columns, distance in iterate_common_distances(rankings, rankings, k):
        weights = np.outer(rankings.weights[rows], rankings.weights[columns])
        same = np.arange(rows.start, rows.stop)[:, None] == np.arange(columns.start, columns.stop)
        weights[same] -= own[rows][same.any(axis=1)]
        weights[np.isnan(distance)] = 0
        total += float((weights * np.nan_to_num(distance)).sum())
        weight += float(weights.sum())
    return total, weight


def _split_comparable(rankings: Rankings) -> list[Ints]:
    """Split rankings into sets, such that rankings of two sets never compare the same two items.

    Votes between two items have many small sets, which are joined to batches. Rankings of all items
    are one set.
    """
    sizes, C = rankings.n_listed, rankings.n_items
    n_pairs = sizes * (sizes - 1) // 2
    if not rankings.is_subset.all() or n_pairs.sum() > MOST_LINKS:
        return [np.arange(len(rankings))]
    links = []
    for rows, cells in rankings.lists.rows_by_size():
        codes = np.sort(rankings.codes[cells], axis=1)
        i, j = np.triu_indices(cells.shape[1], 1)
        pairs = codes[:, i].astype(np.int64) * C + codes[:, j]
        links.append(np.column_stack([np.repeat(rows, i.size), pairs.ravel()]))
    row, pair = np.concatenate(links).T
    _, pair = np.unique(pair, return_inverse=True)
    n = len(rankings)
    graph = coo_array((np.ones(row.size), (row, n + pair)), shape=(n + pair.size,) * 2)
    label = connected_components(graph, directed=False)[1][:n]
    by_label = np.argsort(label, kind="stable")
    ends = np.flatnonzero(np.diff(label[by_label])) + 1
    _, first_of_batch = np.unique(ends // RANKINGS_PER_BATCH, return_index=True)
    return list(np.split(by_label, ends[first_of_batch]))


class _Shape(NamedTuple):
    n_partial: int
    by_length: Ints
    weight: float
    own_pairs: float


def _look_at_lengths(rankings: Rankings, k: int) -> _Shape:
    partial = rankings.is_subset & (rankings.n_listed < rankings.n_items)
    lengths = np.bincount(np.minimum(rankings.lengths, k), minlength=k + 1)
    own_pairs = _weight_of_own_pairs(rankings)
    return _Shape(int(partial.sum()), lengths, float(rankings.weights.sum()), own_pairs)


class _Places(NamedTuple):
    """Sums over rankings: of P and O as above, and of the weights."""

    before: Floats
    out: Floats
    weight: float


class _LengthSums(NamedTuple):
    """The sums of the rankings of a length, and of the longer ones, cut at that length.

    ``own`` is the sum of d(a, a) over pairs of a ranking and itself: with ties, it is not 0.
    """

    equal: _Places
    longer: _Places
    own: float


def _sum_by_length(rankings: Rankings, lengths: tuple[int, ...]) -> tuple[_LengthSums, ...]:
    found = []
    for number in lengths:
        long = rankings[rankings.lengths >= number]
        is_equal = long.lengths == number
        if number == lengths[-1]:
            # Longer ones are cut there.
            is_equal[:] = True
        cut = long.top(number)
        found.append(
            _LengthSums(
                _sum_probabilities(cut[is_equal]),
                _sum_probabilities(cut[~is_equal]),
                _sum_own_distances(cut[is_equal]),
            )
        )
    return tuple(found)


def _sum_over_pairs(equal: _Places, longer: _Places) -> float:
    """Return Σ w_a w_b d(a, b) over the pairs of which the shorter one has this length."""
    every: _Places = add_results(equal, longer)
    return _square(every) - _square(longer)


def _square(sums: _Places) -> float:
    opposite = float((sums.before * sums.before.T).sum())
    return opposite + float((sums.out * (sums.weight - sums.out)).sum()) / 2


def _sum_probabilities(rankings: Rankings) -> _Places:
    C = rankings.n_items
    groups = _TiedGroups(rankings)
    weights = rankings.weights
    before = precedence(rankings) if len(rankings) else np.zeros((C, C))
    before += groups.sum_pairs(weights[groups.row] * groups.within)
    out = np.zeros((C, C))
    for rows in row_blocks(len(rankings), C):
        outside = np.ones((rows.stop - rows.start, C))
        some = slice(*np.searchsorted(groups.entry_row, [rows.start, rows.stop]))
        outside[groups.entry_row[some] - rows.start, groups.code[some]] = groups.left_out[
            groups.entry_group[some]
        ]
        out += (outside * weights[rows, None]).T @ outside
    # Two items of one tie are not left out independently.
    out += groups.sum_pairs(weights[groups.row] * (groups.beyond - groups.left_out**2))
    np.fill_diagonal(before, 0)
    np.fill_diagonal(out, 0)
    return _Places(before, out, float(weights.sum()))


def _sum_own_distances(rankings: Rankings) -> float:
    """Return the sum of d(a, a), the mean distance of two orders that the ties of a allow."""
    groups = _TiedGroups(rankings)
    same = groups.size * (groups.size - 1)
    later = rankings.n_items - groups.begin - groups.size
    part = same * (groups.within**2 + groups.beyond * (1 - groups.beyond) / 2)
    part += groups.size * later * groups.left_out * (1 - groups.left_out)
    return float((_weight_once(rankings) * rankings.weights)[groups.row] @ part)


class _TiedGroups:
    """The items of equal place that belong, at least in part, to the first K of a ranking.

    ``left_out`` is the probability that an item of the group does not belong to the first K,
    ``beyond`` that two do not, and ``within`` that one precedes the other and belongs to them.
    """

    def __init__(self, rankings: Rankings) -> None:
        begin, size, row = group_by_place(rankings)
        counted = begin < rankings.lengths[row]
        self.entry_group = np.repeat(np.cumsum(counted) - 1, size)[np.repeat(counted, size)]
        entries = np.repeat(counted, size)
        self.entry_row, self.code = rankings.entry_rows[entries], rankings.codes[entries]
        self.begin, self.size, self.row = begin[counted], size[counted], row[counted]
        inside, self.within, self.beyond = _Shares.of(
            self.size, self.begin, rankings.lengths[self.row]
        )
        self.left_out = 1 - inside
        self.n_items = rankings.n_items

    def sum_pairs(self, values: Floats) -> Floats:
        """Add up ``values``, one per group, over the pairs of items of each group."""
        tied = self.size[self.entry_group] > 1
        shape = (self.size.size, self.n_items)
        cells = (self.entry_group[tied], self.code[tied])
        member = csr_array((np.ones(cells[0].size), cells), shape=shape)
        weighted = csr_array((values[cells[0]], cells), shape=shape)
        sums: Floats = (member.T @ weighted).toarray()
        return sums

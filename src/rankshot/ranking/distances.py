"""Distances between rankings: Kendall's, its mean over ties, and rank-biased overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.arrays import BLOCK_CELLS, row_blocks
from rankshot.core.validation import require_number, require_whole_number
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.matrices import (
    ABSENT,
    completed_orders,
    group_by_place,
    levels,
    rows_with_tied_choices,
)
from rankshot.ranking.parts import (
    AnyRankings,
    KeyedSums,
    map_rows,
    reduce_parts,
    refuse_partial,
    require_rankings,
)
from rankshot.ranking.rankings import Rankings

Float32s = NDArray[np.float32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TILE_ROWS = 512
TILE_PAIRS = BLOCK_CELLS // TILE_ROWS
"""A tile compares `TILE_ROWS` rankings on `TILE_PAIRS` pairs of items at a time."""
DENSE_ADVANTAGE = 30
"""A dense product does this many multiplications in the time of one of a sparse product."""
SORTING_COST = 3, 7
"""Comparing two rankings by sorting takes as long as this many signs of pairs of items for each
item and each halving of their number: without ties, and with ties."""
LEAF_VALUES = 8
"""Groups of fewer than twice as many values are compared pair by pair, to count inversions."""


def kendall_distance(a: Rankings, b: Rankings | None = None, k: int | None = None) -> Floats:
    r"""Return the matrix of Kendall distances between the rankings of ``a`` and of ``b``.

    For full rankings it is the number of pairs that the two put in opposite orders (the
    paper's equation 4). A ranking with ties, and a top-K list, stands for all full rankings
    that refine it, and the distance is the Hausdorff distance between the two sets,

    .. math:: d(a, b) = |U| + \max(|S|, |T|),

    with U the pairs in opposite orders, S those tied in a alone, T those tied in b alone
    (Critchlow 1985; Fagin et al. 2006). The items that a top-K list leaves out are tied after its
    last item, so lists may have different lengths. For two lists of one length the value is
    Critchlow's top-K distance: the paper's equation 5 with its misprint corrected (``D`` is the
    set of items that only the *second* list names).

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings raise an error: the
        distance to a ranking of other items is undefined.
    k : int, optional
        Compare only the first k of each; a tie that k cuts is kept whole. For another k in each
        ranking, give ``rankings.top(k)``.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders(
    ...     [["a", "b", "c", "d"], ["d", "c", "b", "a"], ["a"]], items=["a", "b", "c", "d"])
    >>> rs.kendall_distance(r)
    array([[0., 6., 3.],
           [6., 0., 6.],
           [3., 6., 0.]])
    """
    first, second = prepare_rankings(a, b, k)
    if sorting_is_cheaper(first, second, symmetric=b is None):
        return _compare_by_sorting(first, second, symmetric=b is None)
    distance = np.empty((len(first), len(second)))
    longest = max(int(r.n_listed.max(initial=1)) for r in (first, second))
    pairs = longest**2 if _sparse_is_cheaper(first, second) else 1
    step = max(1, min(TILE_ROWS, BLOCK_CELLS // max(a.n_items, pairs)))
    for i in range(0, len(first), step):
        tile_a = first[i : i + step]
        for j in range(i if b is None else 0, len(second), step):
            tile_b = tile_a if b is None and i == j else second[j : j + step]
            distance[i : i + step, j : j + step] = _tile(tile_a, tile_b)
            if b is None:
                distance[j : j + step, i : i + step] = distance[i : i + step, j : j + step].T
    return distance


def prepare_rankings(
    a: Rankings, b: Rankings | None, k: int | None = None
) -> tuple[Rankings, Rankings]:
    """Return both, over the same items and cut after k places; refuse rankings of a subset."""
    first = require_rankings(a)
    second = first if b is None else require_rankings(b).with_items(a.items)
    for rankings in (first, second):
        refuse_partial(rankings, "no distance is defined between rankings of different items")
    if k is None:
        return first, second
    k = require_whole_number("k", k, most=a.n_items)
    first = first.top(k)
    return first, first if b is None else second.top(k)


# ---- Few long rankings: each pair by sorting


def sorting_is_cheaper(a: Rankings, b: Rankings, *, symmetric: bool) -> bool:
    """Estimate whether comparing pairs of rankings takes less time than tables of pairs of items.

    The tables have a sign for each pair of items and ranking, and a product for each two rankings.
    """
    C = a.n_items
    n_compared = len(a) * (len(a) - 1) / 2 if symmetric else len(a) * len(b)
    n_signs = len(a) if symmetric else len(a) + len(b)
    strict = is_strict(a) and (symmetric or is_strict(b))
    sorting = n_compared * C * max(np.log2(C), 1) * SORTING_COST[not strict]
    tables = C * C / 2 * (n_signs + len(a) * len(b) / DENSE_ADVANTAGE)
    return bool(sorting < tables) and not _sparse_is_cheaper(a, b)


def _compare_by_sorting(a: Rankings, b: Rankings, *, symmetric: bool) -> Floats:
    shape = (len(a), len(b))
    i, j = np.triu_indices(len(a), 1) if symmetric else map(np.ravel, np.indices(shape))
    counts = compare_orders(a, b, i, j)
    # Those tied in one alone: |S| = |tied in a| - |tied in both|, and likewise |T|.
    tied_a, tied_b = (_count_pairs(a.n_items) - count_ordered_pairs(r) for r in (a, b))
    distance = np.zeros(shape)
    distance[i, j] = counts.discordant + np.maximum(tied_a[i], tied_b[j]) - counts.tied_in_both
    return distance + distance.T if symmetric else distance


def _tile(a: Rankings, b: Rankings) -> Floats:
    """Return |U| + max(|S|, |T|) for every pair of two small sets of rankings."""
    if a.has_ties or b.has_ties:
        agreement, both = _sign_products(a, b)
        ordered_a, ordered_b = count_ordered_pairs(a), count_ordered_pairs(b)
        discordant = (both - agreement) / 2
    else:
        # Without ties inside the lists, the number of items that both lists name determines
        # everything except the order of these items.
        member_a, member_b = _members(a), _members(b)
        shared = (member_a @ member_b.T).astype(float)
        every = _count_pairs(a.n_items)
        ordered_a, ordered_b = (every - _count_pairs(a.n_items - r.n_listed) for r in (a, b))
        left_by_both = a.n_items - a.n_listed[:, None] - b.n_listed + shared
        both = ordered_a[:, None] + ordered_b - every + _count_pairs(left_by_both)
        if _sparse_is_cheaper(a, b):
            discordant = _discordant_lists(a, b, member_a, member_b, shared)
        else:
            discordant = (both - _sign_products(a, b, both=False)[0]) / 2
    return discordant + np.maximum(ordered_a[:, None] - both, ordered_b - both)


def _count_pairs(n: int | NDArray[Any]) -> Floats:
    return np.asarray(n) * (np.asarray(n) - 1.0) / 2


# ---- Counting pairs of any rankings


def _sign_products(a: Rankings, b: Rankings, *, both: bool = True) -> tuple[Floats, Floats]:
    """Return, for all pairs of rankings, s_a · s_b and |s_a| · |s_b| over all pairs of items.

    The sign s of a pair of items is -1, 0 or 1. The first product counts concordant minus
    discordant pairs; the second, computed only if ``both``, counts the pairs ordered in both.
    """
    levels_a, levels_b = (levels(r).astype(np.float32) for r in (a, b))
    product = np.zeros((len(a), len(b)))
    ordered_in_both = np.zeros((len(a), len(b)))
    for run in _runs_of_pairs(a.n_items, TILE_PAIRS):
        signs_a = _signs(levels_a, run)
        signs_b = signs_a if a is b else _signs(levels_b, run)
        product += signs_a @ signs_b.T
        if both:
            ordered_in_both += np.abs(signs_a) @ np.abs(signs_b).T
    return product, ordered_in_both


def _signs(table: Float32s, run: list[tuple[int, int, int]]) -> Float32s:
    signs = np.empty((len(table), sum(end - begin for _, begin, end in run)), np.float32)
    column = 0
    for i, begin, end in run:
        width = end - begin
        np.subtract(table[:, i : i + 1], table[:, begin:end], out=signs[:, column : column + width])
        column += width
    # Levels are whole numbers: their clipped difference is its sign.
    return np.clip(signs, -1, 1, out=signs)


def _runs_of_pairs(n_items: int, width: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield the pairs (i, j) with i < j, at most ``width`` at a time, as (i, first j, end)."""
    run: list[tuple[int, int, int]] = []
    room = width
    for i in range(n_items - 1):
        begin = i + 1
        while begin < n_items:
            end = min(n_items, begin + room)
            run.append((i, begin, end))
            room -= end - begin
            begin = end
            if room == 0:
                yield run
                run, room = [], width
    if run:
        yield run


def count_ordered_pairs(rankings: Rankings) -> Floats:
    """Return how many pairs of items each ranking puts in order."""
    C = rankings.n_items
    if is_strict(rankings):
        return np.full(len(rankings), float(_count_pairs(C)))
    bucket = rankings.entry_rows * C + rankings.places
    sizes = np.bincount(bucket, minlength=len(rankings) * C).reshape(-1, C)
    tied = _count_pairs(sizes).sum(axis=1) + _count_pairs(C - rankings.n_listed)
    return np.asarray(_count_pairs(C) - tied)


# ---- Counting pairs of lists without ties


def _members(rankings: Rankings) -> Float32s:
    table = np.zeros((len(rankings), rankings.n_items), np.float32)
    table[rankings.entry_rows, rankings.codes] = 1
    return table


def _sparse_is_cheaper(a: Rankings, b: Rankings) -> bool:
    """Estimate which of the two ways to count inversions takes fewer multiplications."""
    dense = float(len(a) * len(b)) * float(_count_pairs(a.n_items))
    # The worst case: lists that share all their items.
    sparse = float(_count_pairs(a.n_listed).sum()) * len(b)
    return sparse * DENSE_ADVANTAGE < dense


def _discordant_lists(
    a: Rankings, b: Rankings, member_a: Float32s, member_b: Float32s, shared: Floats
) -> Floats:
    """Count discordant pairs: both items in both lists, or one, or each in one list alone.

    With A the shared items and places counted from 0, an item of A has a(i) items before it
    in list a, so Σ_A a(i) - |A|(|A| - 1)/2 of them are not in A: they come after it in b.
    """
    signs_a, signs_b = _pair_signs(a), _pair_signs(b)
    agreement = (signs_a @ signs_b.T).toarray()
    inverted = (_count_pairs(shared) - agreement) / 2
    placed_a, placed_b = _members(a), _members(b)
    placed_a[a.entry_rows, a.codes] = a.places
    placed_b[b.entry_rows, b.codes] = b.places
    passed = placed_a @ member_b.T + member_a @ placed_b.T - shared * (shared - 1)
    apart = (a.n_listed[:, None] - shared) * (b.n_listed - shared)
    return np.asarray(inverted + passed + apart)


def _pair_signs(rankings: Rankings) -> csr_array:
    """Return the signs of the pairs of items that a list names: ±1 in column i C + j, i < j."""
    C = rankings.n_items
    rows, columns, signs = [], [], []
    for these, cells in rankings.lists.rows_by_size():
        lists = rankings.codes[cells].astype(np.int64)
        earlier, later = np.triu_indices(cells.shape[1], 1)
        i, j = lists[:, earlier], lists[:, later]
        rows.append(np.repeat(these, earlier.size))
        columns.append((np.minimum(i, j) * C + np.maximum(i, j)).ravel())
        signs.append(np.where(i < j, np.float32(1), np.float32(-1)).ravel())
    data = np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))
    return csr_array(data, shape=(len(rankings), C * C))


def chance_distance(n_items: int, k: int) -> float:
    """Return the mean distance between two top-k lists, if all of them are equally probable.

    With o the probability that a list leaves out both items of a pair, each order of the pair has
    the probability (1 - o)/2. The pair counts if the orders are opposite, or if only the first
    list leaves it out: (1 - o)²/2 + o (1 - o) = (1 - o²)/2.
    """
    pairs = n_items * (n_items - 1) / 2
    left_out = (n_items - k) * (n_items - k - 1) / 2 / max(pairs, 1)
    return max(pairs * (1 - left_out**2) / 2, 0.5)


# ---- Counting inversions, in O(C log C)
#
# Two strict rankings are one permutation: the places in the second of the items of the first, in
# order. The pairs in opposite orders are its inversions. With ties, items tied in one ranking are
# taken in the order of the other one: then no pair that is tied anywhere is an inversion.


class PairCounts(NamedTuple):
    """Numbers of pairs of items, one value per pair of rankings."""

    discordant: Floats
    tied_in_both: Floats


def compare_orders(
    a: Rankings, b: Rankings, rows_a: NDArray[np.intp], rows_b: NDArray[np.intp]
) -> PairCounts:
    """Compare ranking ``rows_a[t]`` of a with ranking ``rows_b[t]`` of b, for every t."""
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
    """
    n, C = permutations.shape
    depth = max(0, int(np.log2(max(C, 1) / LEAF_VALUES)))
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


# ---- Mean distances: over the orders that ties allow, and over pairs of rankings
#
# A ranking is a few places, some of them ties, and the rest after them. Whether a pair of items
# counts in a mean over the orders that ties allow depends only on the places of the two items. So
# for two rankings, all counts of pairs are sums over the small table N[g, g']: the number of items
# in place g of one and in place g' of the other. This takes as long for many items as for few.


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
        Over the same items; ``b`` is ``a`` by default. Subset rankings raise an error.
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
    """
    require_rankings(a)
    second = a if b is None else require_rankings(b).with_items(a.items)
    distance = np.full((len(a), len(second)), np.nan)
    for rows, columns, table, places in _count_shared(a, second, k):
        n_items = table.sum(axis=(2, 3))
        listed = (table.sum(axis=3)[..., :-1].sum(axis=2), table.sum(axis=2)[..., :-1].sum(axis=2))
        k_both = np.minimum(places, np.minimum(*listed)).astype(np.int64)
        largest = k_both * (2 * n_items - k_both - 1) / 2
        part = distance[rows, columns]
        np.divide(_mean_distance(table, k_both), largest, out=part, where=largest > 0)
    return distance


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
    rankings leave out. An item and itself are not a pair.
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
    to_all = np.maximum(larger - sum_over_orders(rankings, sums.before), 0)
    return np.asarray(to_all / (weight - _weight_once(rankings)))


def sum_over_orders(rankings: Rankings, table: Floats) -> Floats:
    """Return, for each ranking, the sum of ``table[i, j]`` over the pairs that put i before j."""
    result = np.zeros(len(rankings))
    for rows in row_blocks(len(rankings), rankings.n_items):
        by_item = np.ascontiguousarray(levels(rankings[rows]).T)
        present = by_item != ABSENT
        for i in range(rankings.n_items):
            result[rows] += table[i] @ ((by_item[i] < by_item) & present[i])
    return result


# ---- Rank-biased overlap


def rank_biased_overlap(a: Rankings, b: Rankings | None = None, p: float = 0.9) -> Floats:
    r"""Return the matrix of rank-biased overlaps between the rankings of ``a`` and of ``b``.

    It is a similarity from 0 (no item in common) to 1 (the same list), and the first places count
    most: with :math:`A_d` the agreement of the first d items of both lists, the share that they
    have in common, it is

    .. math:: (1 - p) \sum_{d=1}^\infty p^{d-1} A_d.

    Lists end. Their agreement after that is extrapolated: the unseen items of the shorter list
    agree as often as its last depth does, and after the end of the longer list the agreement stays
    the same (RBO_ext, equation 32 of Webber et al.). Tied items all occur at the first of their
    places, and the agreement is twice the number of common items, divided by the number of items
    of both lists to that depth. Only the listed items count: a top-K list says nothing about places
    after K here.

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings raise an error: an item that
        was not compared is not an item that comes later.
    p : float
        Between 0 and 1: how much depth matters. The first 10 places have 86 % of the weight for
        p = 0.9.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    References
    ----------
    Webber, Moffat and Zobel (2010), A similarity measure for indefinite rankings. ACM
    Transactions on Information Systems 28.

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a"]], items=["a", "b", "c", "d"])
    >>> rs.rank_biased_overlap(r).round(3)
    array([[1. , 0.9],
           [0.9, 1. ]])
    """
    p = require_number("p", p, above=0, below=1)
    first, second = prepare_rankings(a, b)
    depth = max(int(r.n_listed.max(initial=1)) for r in (first, second))
    begins_a, begins_b = (_first_places(r, depth) for r in (first, second))
    seen_a, seen_b = (_count_by_depth(table, depth) for table in (begins_a, begins_b))
    overlap = np.empty((len(first), len(second)))
    for i in range(len(first)):
        for some in row_blocks(len(second), 4 * first.n_items):
            common = _count_by_depth(np.maximum(begins_a[i], begins_b[some]), depth)
            sizes = np.broadcast_to(first.n_listed[i], common.shape[:1]), second.n_listed[some]
            overlap[i, some] = _extrapolate(common, seen_a[i] + seen_b[some], *sizes, p)
    return overlap


def _first_places(rankings: Rankings, depth: int) -> Ints:
    """Return the place of each item, that of the first of its tie, from 0; ``depth`` if absent."""
    table = levels(rankings)
    listed = np.zeros(table.shape, bool)
    listed[rankings.entry_rows, rankings.codes] = True
    sizes = np.zeros((len(table), rankings.n_items + 1), np.int64)
    np.add.at(sizes, (np.arange(len(table))[:, None], table), 1)
    begins = np.take_along_axis(np.cumsum(sizes, axis=1) - sizes, table, axis=1)
    return np.where(listed, begins, depth)


def _count_by_depth(begins: Ints, depth: int) -> Ints:
    """Return how many items have begun at depth 1, at depth 2, and so on."""
    n = len(begins)
    cells = np.arange(n)[:, None] * (depth + 1) + begins
    counts = np.bincount(cells.ravel(), minlength=n * (depth + 1)).reshape(n, depth + 1)
    return np.cumsum(counts[:, :-1], axis=1)


def _extrapolate(common: Ints, seen: Ints, size_a: Ints, size_b: Ints, p: float) -> Floats:
    """Return RBO_ext from the common items and the items of both lists to each depth."""
    short, long = np.minimum(size_a, size_b)[:, None], np.maximum(size_a, size_b)[:, None]
    depth = np.arange(1, common.shape[1] + 1)
    agreement = 2 * common / seen
    at_short = np.take_along_axis(agreement, short - 1, axis=1)
    # After its end, the shorter list goes on with items of which this share is common.
    missing = np.maximum(depth - short, 0)
    agreement = 2 * (common + at_short * missing) / (seen + missing)
    last = np.take_along_axis(agreement, long - 1, axis=1)[:, 0]
    weights = np.where(depth <= long, p ** (depth - 1.0), 0.0)
    return np.asarray((1 - p) * (weights * agreement).sum(axis=1) + last * p ** long[:, 0])

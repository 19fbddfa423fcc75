"""Kendall's distance between rankings, for all pairs at once, and its mean over ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.blocks import BLOCK_CELLS, row_blocks
from rankshot.core.validation import require_whole_number
from rankshot.ranking.checks import refuse_partial, require_rankings
from rankshot.ranking.distances.inversions import compare_orders, is_strict
from rankshot.ranking.distances.shared_places import (
    mean_distance_by_places,
    mean_distance_by_sorting,
)
from rankshot.ranking.layouts import levels, rows_with_tied_choices
from rankshot.ranking.rankings import Rankings

Float32s = NDArray[np.float32]
Floats = NDArray[np.float64]
TILE_ROWS = 512
TILE_PAIRS = BLOCK_CELLS // TILE_ROWS
"""A tile compares `TILE_ROWS` rankings on `TILE_PAIRS` pairs of items at a time."""
DENSE_ADVANTAGE = 30
"""A dense product does this many multiplications in the time of one of a sparse product."""
SORTING_COST = 3, 7
"""Comparing two rankings by sorting takes as long as this many signs of pairs of items for each
item and each halving of their number: without ties, and with ties."""


def kendall_distance(
    a: Rankings, b: Rankings | None = None, k: int | None = None
) -> NDArray[np.float64]:
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
        Over the same items; ``b`` is ``a`` by default. Subset rankings are refused: the
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
    first = _prepare_rankings(require_rankings(a), k)
    second = first if b is None else _prepare_rankings(require_rankings(b).with_items(a.items), k)
    if _sorting_is_cheaper(first, second, symmetric=b is None):
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


def _prepare_rankings(rankings: Rankings, k: int | None) -> Rankings:
    refuse_partial(rankings, "no distance is defined between rankings of different items")
    if k is None:
        return rankings
    return rankings.top(require_whole_number("k", k, most=rankings.n_items))


# ---- Few long rankings: each pair by sorting


def _sorting_is_cheaper(a: Rankings, b: Rankings, *, symmetric: bool) -> bool:
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


def _tile(a: Rankings, b: Rankings) -> NDArray[np.float64]:
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
        both = _count_pairs_ordered_in_both(a, b, shared)
        ordered_a, ordered_b = (
            _count_pairs(a.n_items) - _count_tied_pairs(a),
            _count_pairs(b.n_items) - _count_tied_pairs(b),
        )
        if _sparse_is_cheaper(a, b):
            discordant = _discordant_lists(a, b, member_a, member_b, shared)
        else:
            discordant = (both - _sign_products(a, b, both=False)[0]) / 2
    return discordant + np.maximum(ordered_a[:, None] - both, ordered_b - both)


def _count_pairs(n: int | NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(n) * (np.asarray(n) - 1.0) / 2


# ---- Counting pairs of any rankings


def _sign_products(
    a: Rankings, b: Rankings, *, both: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
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


def count_ordered_pairs(rankings: Rankings) -> NDArray[np.float64]:
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


def _count_tied_pairs(rankings: Rankings) -> NDArray[np.float64]:
    return _count_pairs(rankings.n_items - rankings.n_listed)


def _count_pairs_ordered_in_both(
    a: Rankings, b: Rankings, shared: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Count the pairs ordered in both: all pairs minus those tied in a, in b or in both."""
    left_by_both = a.n_items - a.n_listed[:, None] - b.n_listed + shared
    tied_in_both = left_by_both * (left_by_both - 1) / 2
    return np.asarray(
        _count_pairs(a.n_items)
        - _count_tied_pairs(a)[:, None]
        - _count_tied_pairs(b)
        + tied_in_both
    )


def _sparse_is_cheaper(a: Rankings, b: Rankings) -> bool:
    """Estimate which of the two ways to count inversions takes fewer multiplications."""
    dense = float(len(a) * len(b)) * float(_count_pairs(a.n_items))
    # The worst case: lists that share all their items.
    sparse = float(_count_pairs(a.n_listed).sum()) * len(b)
    return sparse * DENSE_ADVANTAGE < dense


def _discordant_lists(
    a: Rankings, b: Rankings, member_a: Float32s, member_b: Float32s, shared: NDArray[np.float64]
) -> NDArray[np.float64]:
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
    for size in np.unique(rankings.n_listed):
        these = np.flatnonzero(rankings.n_listed == size)
        lists = rankings.codes[rankings.starts[these][:, None] + np.arange(size)].astype(np.int64)
        earlier, later = np.triu_indices(size, 1)
        i, j = lists[:, earlier], lists[:, later]
        rows.append(np.repeat(these, earlier.size))
        columns.append((np.minimum(i, j) * C + np.maximum(i, j)).ravel())
        signs.append(np.where(i < j, np.float32(1), np.float32(-1)).ravel())
    data = np.concatenate(signs), (np.concatenate(rows), np.concatenate(columns))
    return csr_array(data, shape=(len(rankings), C * C))


# ---- Mean distance over the strict orders that ties allow


def chance_distance(n_items: int, k: int) -> float:
    """Return the mean distance between two top-k lists, if all of them are equally probable.

    With o the probability that a list leaves out both items of a pair, each order of the pair has
    the probability (1 - o)/2. The pair counts if the orders are opposite, or if only the first
    list leaves it out: (1 - o)²/2 + o (1 - o) = (1 - o²)/2.
    """
    pairs = n_items * (n_items - 1) / 2
    left_out = (n_items - k) * (n_items - k - 1) / 2 / max(pairs, 1)
    return max(pairs * (1 - left_out**2) / 2, 0.5)


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
    first = _prepare_rankings(require_rankings(a), k)
    second = first if b is None else _prepare_rankings(require_rankings(b).with_items(a.items), k)
    C = first.n_items
    k = C if k is None else int(k)
    if all(_is_strict_to(r, k) for r in (first, second)):
        return kendall_distance(first, None if b is None else second)
    n_places = min(k, max(int(r.places.max(initial=0)) + 1 for r in (first, second)))
    if (n_places + 2) ** 3 <= C**2:
        return mean_distance_by_places(first, second, k)
    if _sorting_is_cheaper(first, second, symmetric=False):
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
                distance[rows, columns] += _products(before, after) + _products(out_a, in_b) / 2
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
    placed = np.cumsum(sizes, axis=1) - sizes
    size, taken = (
        np.take_along_axis(table, level, axis=1) for table in (sizes, np.clip(k - placed, 0, sizes))
    )
    own, other = level[:, items, None], level[:, None, :]
    same = own == other
    same[:, np.arange(same.shape[1]), np.arange(C)[items]] = False
    # Of s tied items m belong to the first k: both, one or none of a pair.
    pairs = np.maximum(size * (size - 1), 1)
    within = ((taken * (taken - 1) / 2 + taken * (size - taken)) / pairs)[:, items, None]
    beyond = ((size - taken) * (size - taken - 1) / pairs)[:, items, None]
    share = taken / size
    before = (own < other) * share[:, items, None] + same * within
    after = (own > other) * share[:, None, :] + same * within
    out = (own < other) * (1 - share)[:, items, None] + (own > other) * (1 - share)[:, None, :]
    return before, after, out + same * beyond


def _products(x: Floats, y: Floats) -> Floats:
    return np.asarray(x.reshape(len(x), -1) @ y.reshape(len(y), -1).T)

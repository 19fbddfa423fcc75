"""Distances between rankings: Kendall's, and its mean over ties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.arrays import BLOCK_CELLS, row_blocks
from rankshot.core.errors import InputError
from rankshot.core.validation import require_whole_number
from rankshot.ranking.matrices import (
    ABSENT,
    levels,
    mark_ranked,
    rows_with_tied_choices,
)
from rankshot.ranking.rankings import Rankings, refuse_partial, require_rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
TILE_ROWS = 512
"""All pairs of this many rankings are compared at a time."""
DENSE_ADVANTAGE = 640
"""How many pairs of items are compared in the time that takes one cell of a table of places."""
MOST_PLACES = 16_000
"""A table of the pairs of more places takes more than 1 GB."""


def kendall_distance(a: Rankings, b: Rankings | None = None, k: int | None = None) -> Floats:
    r"""Matrix of Kendall distances between the rankings of ``a`` and of ``b``.

    For full rankings it is the number of pairs that the two put in opposite orders (equation 4 of
    Hamm and Belkin, 2015). A ranking with ties, and a top-K list, stands for all full rankings that
    refine it, and the distance is the Hausdorff distance between the two sets,

    .. math:: d(a, b) = |U| + \max(|S|, |T|),

    where U are the pairs in opposite orders, S those tied only in a, and T those tied only in b
    (Critchlow 1985; Fagin et al. 2006). The items that a top-K list leaves out are tied after its
    last item, so lists may have different lengths. For two lists of equal length, the value is
    Critchlow's top-K distance: equation 5 of Hamm and Belkin with its misprint corrected (``D`` is
    the set of items that only the *second* list names).

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings raise an error: the
        distance to a ranking of other items is undefined.
    k : int, optional
        Compare only the first k items of each ranking; a tie that k cuts is kept whole. To use a
        different k for each ranking, pass ``rankings.top(k)``.

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
    n_groups = max(int(r.places.max(initial=0)) for r in (first, second)) + 2
    if DENSE_ADVANTAGE * n_groups**2 < first.n_items**2:
        return _compare_groups(first, second)
    step = max(1, min(TILE_ROWS, BLOCK_CELLS // first.n_items))
    distance = np.empty((len(first), len(second)))
    for i in range(0, len(first), step):
        tile_a = first[i : i + step]
        for j in range(i if b is None else 0, len(second), step):
            tile_b = tile_a if b is None and i == j else second[j : j + step]
            distance[i : i + step, j : j + step] = _compare_pairs(tile_a, tile_b)
            if b is None:
                distance[j : j + step, i : i + step] = distance[i : i + step, j : j + step].T
    return distance


def prepare_rankings(
    a: Rankings, b: Rankings | None, k: int | None = None
) -> tuple[Rankings, Rankings]:
    """Both, over the same items and cut after k places; refuse rankings of a subset."""
    first = require_rankings(a)
    second = first if b is None else require_rankings(b).with_items(first.items)
    for rankings in (first, second):
        refuse_partial(rankings, "no distance is defined between rankings of different items")
    if k is None:
        return first, second
    k = require_whole_number("k", k, most=first.n_items)
    first = first.top(k)
    return first, first if b is None else second.top(k)


def _compare_pairs(a: Rankings, b: Rankings) -> Floats:
    """|U| + max(|S|, |T|) for every two rankings, from the signs of all pairs of items.

    With signs s of -1, 0 or 1, s_a · s_b counts concordant minus discordant pairs, and
    |s_a| · |s_b| the pairs that both put in order.
    """
    # One row per item: pairs of rows are gathered faster than pairs of columns.
    levels_a, levels_b = (levels(r).T.astype(np.float32) for r in (a, b))
    strict = not any(_count_tied(r).any() for r in (a, b))
    C = a.n_items
    n_pairs = C * (C - 1) / 2
    agreement = np.zeros((len(a), len(b)))
    both = np.full(agreement.shape, n_pairs if strict else 0.0)
    for items in row_blocks(C, 4 * TILE_ROWS * C):
        i, j = np.nonzero(np.arange(C)[items, None] < np.arange(C))
        i += items.start
        signs_a = np.sign(levels_a[i] - levels_a[j])
        signs_b = signs_a if a is b else np.sign(levels_b[i] - levels_b[j])
        agreement += signs_a.T @ signs_b
        if not strict:
            both += np.abs(signs_a).T @ np.abs(signs_b)
    ordered_a, ordered_b = (n_pairs - _count_tied(r) for r in (a, b))
    return np.asarray((both - agreement) / 2 + np.maximum(ordered_a[:, None], ordered_b) - both)


def _count_pairs(n: int | NDArray[np.number]) -> Floats:
    return np.asarray(n) * (np.asarray(n) - 1.0) / 2


def _count_tied(rankings: Rankings) -> Floats:
    """Number of pairs of items each ranking ties."""
    _, size, row, _ = rankings.groups
    tied = np.bincount(row, _count_pairs(size), minlength=len(rankings))
    return np.asarray(tied + _count_pairs(rankings.n_items - rankings.n_listed))


# ---- Few places, and means over the orders that ties allow
#
# A ranking is a few places, some of them ties, and the rest after them. Whether a pair of items
# counts depends only on the places of the two items. So for two rankings, all counts of pairs are
# sums over the small table N[g, g']: the number of items in place g of one and in place g' of the
# other. This takes as long for many items as for few.


def _compare_groups(a: Rankings, b: Rankings) -> Floats:
    """|U| + max(|S|, |T|) for every two rankings, from their tables N."""
    distance = np.empty((len(a), len(b)))
    for rows, columns, table, _ in _count_shared(a, b, a.n_items):
        after = table.sum(axis=2, keepdims=True) - np.cumsum(table, axis=2)
        opposite = (table * (np.cumsum(after, axis=3) - after)).sum(axis=(2, 3))
        tied_a, tied_b = (_count_pairs(table.sum(axis=n)).sum(axis=2) for n in (3, 2))
        tied_in_one = np.maximum(tied_a, tied_b) - _count_pairs(table).sum(axis=(2, 3))
        distance[rows, columns] = opposite + tied_in_one
    return distance


def mean_kendall_distance(a: Rankings, b: Rankings | None = None, k: int | None = None) -> Floats:
    r"""Matrix of mean top-k Kendall distances between rankings of ``a`` and of ``b``.

    A tie means that every strict order of its items is equally likely; the items that a list
    leaves out are tied after its last item. The distance is the mean of `kendall_distance` over
    the strict top-k lists that the two rankings allow, drawn independently. Without ties, the two
    distances are equal. With ties they differ: the Hausdorff distance is a worst case, so a
    ranking with large ties is far from every strict ranking.

    Between strict top-k lists the distance counts pairs of items in opposite orders, and pairs
    that the first list leaves out and the second does not. Its mean needs only the probabilities
    that a pair is in either order, or left out, in each of the two rankings.

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings raise an error.
    k : int, optional
        Compare only the first k items; all by default.

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
    distance = np.empty((len(first), len(second)))
    for rows, columns, table, places in _count_shared(first, second, k):
        distance[rows, columns] = _mean_distance(table, np.full(places.shape, k))
    return distance


def _is_strict_to(rankings: Rankings, k: int) -> bool:
    """Tell whether every ranking has one strict list of its first k items."""
    reaches = rankings.lengths >= min(k, rankings.n_items - 1)
    return bool(reaches.all()) and not rows_with_tied_choices(rankings).size


def compare_common_items(a: Rankings, b: Rankings | None = None, k: int = 10) -> Floats:
    r"""Distances between the rankings of ``a`` and ``b``, each over the items both compare.

    A subset ranking says nothing of the items that it does not list, so each pair is compared on
    the items that both know. The distance is `mean_kendall_distance` of the first places there,
    divided by the largest possible one: 0 is the same order, 1 is the opposite order.
    """
    a = require_rankings(a)
    second = a if b is None else require_rankings(b).with_items(a.items)
    if (depth := int(min(k, a.lengths.max(initial=0)))) > MOST_PLACES:
        gigabytes = f"{4e-9 * depth**2:,.0f} GB"
        raise InputError("k", k, f"is too many places for a table of all pairs ({gigabytes})")
    distance = np.full((len(a), len(second)), np.nan)
    for rows, columns, table, places in _count_shared(a, second, k):
        n_items = table.sum(axis=(2, 3))
        listed = (table.sum(axis=3)[..., :-1].sum(axis=2), table.sum(axis=2)[..., :-1].sum(axis=2))
        k_both = np.minimum(places, np.minimum(*listed)).astype(np.int64)
        largest = k_both * (2 * n_items - k_both - 1) / 2
        part = distance[rows, columns]
        np.divide(_mean_distance(table, k_both), largest, out=part, where=largest > 0)
    return distance


def _count_shared(a: Rankings, b: Rankings, k: int) -> Iterator[tuple[slice, slice, Floats, Ints]]:
    """Yield blocks of rankings of a and of b: their tables N, and how many places both have."""
    width, height = (min(k, int(r.places.max(initial=0)) + 1) + 1 for r in (a, b))
    for rows in row_blocks(len(a), max(a.n_items, width * height)):
        first = _tabulate_groups(a[rows], k)
        cells = len(first.known) * width * height
        for columns in row_blocks(len(b), max(b.n_items, cells)):
            second = _tabulate_groups(b[columns], k)
            places = np.minimum(first.places[:, None], second.places)
            yield rows, columns, _count_shared_items(first, second), places


class _GroupTables(NamedTuple):
    """Rankings as groups: ``listed`` has one row per ranking and group, ``known`` one per ranking.

    Both have one column per item. The rest after the last group is the last group, empty in
    ``listed``. ``places`` is the number of places that count.
    """

    listed: csr_array
    known: NDArray[np.float32]
    places: Ints
    n_groups: int


def _tabulate_groups(rankings: Rankings, k: int) -> _GroupTables:
    cut = rankings.top(min(k, rankings.n_items))
    ranked = mark_ranked(cut)
    rows, items, places = cut.entry_rows[ranked], cut.codes[ranked], cut.places[ranked]
    n_groups = int(places.max(initial=0)) + 2
    cells = (rows * n_groups + places, items)
    shape = (len(cut) * n_groups, cut.n_items)
    listed = csr_array((np.ones(rows.size, np.float32), cells), shape=shape)
    known = (levels(cut) != ABSENT).astype(np.float32)
    return _GroupTables(listed, known, cut.lengths, n_groups)


def _count_shared_items(a: _GroupTables, b: _GroupTables) -> Floats:
    """N[a, b, g, g']: the items in group g of one ranking and in group g' of the other."""
    shape = (len(a.known), a.n_groups, len(b.known), b.n_groups)
    table = (a.listed @ b.listed.T).toarray().reshape(shape).transpose(0, 2, 1, 3).astype(float)
    known_b = (a.listed @ b.known.T).reshape(shape[:3]).transpose(0, 2, 1)
    known_a = (b.listed @ a.known.T).reshape(*shape[2:], shape[0]).transpose(2, 0, 1)
    table[:, :, :, -1] = known_b - table.sum(axis=3)
    table[:, :, -1, :] = known_a - table.sum(axis=2)
    # The last line counted the rest of both as minus the items that only one of them lists.
    table[:, :, -1, -1] = 0
    # Some BLAS kernels set the flag of invalid values for small float32 matrices of zeros and ones.
    with np.errstate(invalid="ignore"):
        known_both = a.known @ b.known.T
    table[:, :, -1, -1] = known_both - table.sum(axis=(2, 3))
    counts: Floats = table
    return counts


def _share_places(size: Floats, k: Ints) -> tuple[Floats, Floats, Floats]:
    """Probabilities of groups of ``size`` tied items, of which some belong to the first k.

    First that an item does, then that it precedes another item of its group and does, last that
    it and another item of its group both do not.
    """
    taken = np.clip(k - np.cumsum(size, axis=-1) + size, 0, size)
    left, pairs = size - taken, np.maximum(size * (size - 1), 1)
    before = (taken * (taken - 1) / 2 + taken * left) / pairs
    return taken / np.maximum(size, 1), before, left * (left - 1) / pairs


def _mean_distance(table: Floats, k: Ints) -> Floats:
    """Mean top-k distances of pairs of rankings from their tables N.

    With F[g, h] the probability that an item of place g precedes one of place h, within the first
    k, the sum of N ∘ (F_a N F_b) counts pairs in opposite orders, and likewise for pairs that both
    rankings leave out. An item and itself are not a pair.
    """
    sizes, k_of = (table.sum(axis=3), table.sum(axis=2)), k[..., None]
    in_a, before_a, none_a = (x[..., None] for x in _share_places(sizes[0], k_of))
    in_b, before_b, none_b = (x[:, :, None] for x in _share_places(sizes[1], k_of))
    after = table.sum(axis=2, keepdims=True) - np.cumsum(table, axis=2)
    by_a = in_a * after + before_a * table
    before = by_a * in_b
    by_both = np.cumsum(before, axis=3) - before + before_b * by_a
    opposite = (table * (by_both - before_a * before_b)).sum(axis=(2, 3))
    out_a, out_b = 1 - in_a, 1 - in_b
    by_a = out_a * (out_a * table).sum(axis=2, keepdims=True) + (none_a - out_a**2) * table
    by_both = out_b * (out_b * by_a).sum(axis=3, keepdims=True) + (none_b - out_b**2) * by_a
    both_out = (table * (by_both - none_a * none_b)).sum(axis=(2, 3))
    n_left = table.sum(axis=(2, 3)) - k
    return np.asarray(opposite + (n_left * (n_left - 1) - both_out) / 2)


# ---- Distances of raters: between two rankings of each, and from the majority of the others
#
# Both are means over pairs of items: 0 for agreement, 1 for disagreement, 1/2 for neither, so that
# rankings of different lengths and of different subsets of the items can be compared.


def paired_distances(first: Rankings, second: Rankings) -> Floats:
    """Normalised Kendall distance between each ranking and its counterpart.

    It is the mean over the pairs of items that at least one of the two orders: 0 if both have the
    same order, 1 if they have opposite orders, 1/2 if only one of them orders the pair. Equal
    rankings have distance 0, random ones about 1/2. Rankings that differ only in their length stay
    below 1/2.
    """
    a, b = _sign_all_pairs(levels(first)), _sign_all_pairs(levels(second))
    either = np.count_nonzero(a | b, axis=(1, 2))
    return np.asarray(np.abs(a - b).sum(axis=(1, 2)) / 2 / either)


def distances_to_majority(rankings: Rankings, least: int) -> Floats:
    """Distance of each ranking from the majority of the other raters.

    It is the mean over the pairs of items that the ranking orders, and that at least ``least``
    rankings of others compare: 0 if more of them agree than disagree, 1 if more disagree, 1/2 if
    equally many do. Without such a pair it is NaN. Whatever the others say, the mean distance of a
    random ranking is exactly 1/2.
    """
    _, rater = np.unique(rankings.raters.astype(str), return_inverse=True)
    by_rater = np.split(np.argsort(rater, kind="stable"), np.cumsum(np.bincount(rater))[:-1])
    table = levels(rankings)
    is_there = (table != ABSENT).astype(np.float64)
    # How many more rankings have item i before j than after it, and how many compare the two.
    margins = sum(_sign_all_pairs(table[rows]).sum(axis=0) for rows in by_rater)
    compared = is_there.T @ is_there
    distance = np.empty(len(table))
    for rows in by_rater:
        signs, own = _sign_all_pairs(table[rows]), is_there[rows]
        majority = np.sign(margins - signs.sum(axis=0))
        signs[:, compared - own.T @ own < least] = 0
        agreed = (signs * majority).sum(axis=(1, 2))
        with np.errstate(invalid="ignore"):
            distance[rows] = (1 - agreed / np.count_nonzero(signs, axis=(1, 2))) / 2
    return distance


def _sign_all_pairs(table: NDArray[np.int32]) -> NDArray[np.int8]:
    """s: ``s[r, i, j]`` is 1 if ranking r has i before j, -1 if after, 0 if neither."""
    before = (table[:, :, None] < table[:, None, :]) & (table != ABSENT)[:, :, None]
    signs: NDArray[np.int8] = before.astype(np.int8) - before.transpose(0, 2, 1)
    return signs

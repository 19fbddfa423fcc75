"""Distances between rankings that compare different items."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.blocks import row_blocks
from rankshot.ranking.checks import require_rankings
from rankshot.ranking.layouts import ABSENT, group_by_place, levels
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]


def compare_common_items(a: Rankings, b: Rankings | None = None, k: int = 10) -> Floats:
    r"""Return distances between the rankings of ``a`` and ``b``, each over the items both compare.

    A subset ranking says nothing of the items that it does not list, so each pair is compared on
    the items that both know. The distance is `mean_kendall_distance` of the first places there,
    divided by the largest possible one: 0 is the same order, 1 is the opposite order.

    A ranking is a few groups of tied items, and the rest after them. For two rankings, let
    N[g, g'] be the number of items in group g of one and g' of the other. All counts of pairs of
    items are sums over this small table, whatever the number of items.

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
    >>> from rankshot.ranking.common_items import compare_common_items
    >>> items = ["bus", "cat", "fox"]
    >>> whole = rs.Rankings.from_orders([["fox", "bus", "cat"]], items=items)
    >>> part = rs.Rankings.from_orders([["fox", "cat"]], items=items, kind="subset")
    >>> compare_common_items(whole, part)
    array([[0.]])
    """
    first = _list_groups(require_rankings(a), k)
    second = first if b is None else _list_groups(require_rankings(b).with_items(a.items), k)
    distance = np.empty((len(first.known), len(second.known)))
    width = first.n_groups * second.n_groups
    for rows in row_blocks(len(distance), len(second.known) * width):
        table = _count_shared_items(first.take(rows), second)
        places = np.minimum(first.places[rows, None], second.places)
        distance[rows] = _distance_of_tables(table, places)
    return distance


class _Groups(NamedTuple):
    """Rankings as groups: ``listed`` has one row per ranking and group, ``known`` one per ranking.

    Both have one column per item. The rest after the last group is the last group, empty in
    ``listed``. ``places`` is the number of places that count.
    """

    listed: csr_array
    known: NDArray[np.float32]
    places: NDArray[np.int64]
    n_groups: int

    def take(self, rows: slice) -> _Groups:
        groups = slice(rows.start * self.n_groups, rows.stop * self.n_groups)
        return _Groups(self.listed[groups], self.known[rows], self.places[rows], self.n_groups)


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


def _share_places(sizes: Floats, k: NDArray[np.int64]) -> _Shares:
    placed = np.cumsum(sizes, axis=-1) - sizes
    taken = np.clip(k[..., None] - placed, 0, sizes)
    left = sizes - taken
    pairs = np.maximum(sizes * (sizes - 1), 1)
    return _Shares(
        taken / np.maximum(sizes, 1),
        (taken * (taken - 1) / 2 + taken * left) / pairs,
        left * (left - 1) / pairs,
    )


def _distance_of_tables(table: Floats, places: NDArray[np.int64]) -> Floats:
    """Return the mean top-k distances from the tables N, divided by the largest possible ones."""
    total = table.sum(axis=(2, 3))
    sizes_a, sizes_b = table.sum(axis=3), table.sum(axis=2)
    listed = np.minimum(sizes_a[..., :-1].sum(axis=-1), sizes_b[..., :-1].sum(axis=-1))
    k = np.minimum(places, listed).astype(np.int64)
    a, b = _share_places(sizes_a, k), _share_places(sizes_b, k)
    inside_a, outside_a = a.inside[..., None], 1 - a.inside[..., None]
    inside_b, outside_b = b.inside[:, :, None], 1 - b.inside[:, :, None]
    same = table * (table - 1)
    later_b = _sum_after(table, 3)
    later_a = _sum_after(table, 2)
    later_both = _sum_after(later_a, 3)
    # Items of later groups of a that are in earlier groups of b, weighted by what b needs.
    swapped = _sum_before(later_a * inside_b, 3)
    swapped_out = _sum_before(later_a * outside_b, 3)

    def add(values: Floats) -> Floats:
        return np.asarray(values.sum(axis=(2, 3)))

    opposite = (
        add(table * inside_a * swapped)
        + add(table * later_a * inside_a * b.before[:, :, None])
        + add(table * later_b * inside_b * a.before[..., None])
        + add(same * a.before[..., None] * b.before[:, :, None])
    )
    both_out = (
        2 * add(table * outside_a * (outside_b * later_both + swapped_out))
        + 2 * add(table * later_a * outside_a * b.outside[:, :, None])
        + 2 * add(table * later_b * outside_b * a.outside[..., None])
        + add(same * a.outside[..., None] * b.outside[:, :, None])
    )
    out_of_one = (total - k) * (total - k - 1)
    largest = k * (2 * total - k - 1) / 2
    distance = np.full(total.shape, np.nan)
    np.divide(opposite + (out_of_one - both_out) / 2, largest, out=distance, where=largest > 0)
    return distance


def _sum_after(table: Floats, axis: int) -> Floats:
    return np.asarray(table.sum(axis=axis, keepdims=True) - np.cumsum(table, axis=axis))


def _sum_before(table: Floats, axis: int) -> Floats:
    return np.asarray(np.cumsum(table, axis=axis) - table)

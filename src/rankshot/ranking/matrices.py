"""Rankings laid out for computation: as matrices, as groups of tied items, over fewer items.

Computations on large data take these layouts one block of rankings at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.arrays import row_blocks
from rankshot.core.validation import as_names
from rankshot.ranking.construction import count_places
from rankshot.ranking.rankings import Rankings, require_rankings

ABSENT = -1
"""The level of an item that a subset ranking does not list."""
NamedOrder = tuple["str | tuple[str, ...]", ...]
"""Names, best first; a tie is a tuple inside the tuple."""


def iterate_blocks(rankings: Rankings, cells_per_row: int) -> Iterator[Rankings]:
    """Yield the rankings in blocks; without a copy if there is only one."""
    blocks = list(row_blocks(len(rankings), cells_per_row))
    return iter([rankings]) if len(blocks) <= 1 else (rankings[rows] for rows in blocks)


# ---- Matrices: one row per ranking


def levels(rankings: Rankings) -> NDArray[np.int32]:
    """Level of every item in every ranking: 0 is best, equal levels are tied.

    The items that a top-K ranking leaves out share the level after its last one; those that a
    subset ranking leaves out are `ABSENT`. A tie that K cuts is one level.
    """
    after_last = rankings.places[rankings.starts[1:] - 1] + 1
    table = np.empty((len(rankings), rankings.n_items), np.int32)
    table[:] = np.where(rankings.is_subset, ABSENT, after_last)[:, None]
    table[rankings.entry_rows, rankings.codes] = rankings.places
    return table


def last_levels(rankings: Rankings) -> NDArray[np.int32]:
    """Level of each ranking's K-th item; a tie there may reach past K."""
    return np.asarray(rankings.places[rankings.starts[:-1] + rankings.lengths - 1])


def alike_items(rankings: Rankings) -> NDArray[np.intp]:
    """Class of each item: items at the same level in every ranking are alike.

    The numbers do not depend on the order of the items, unless all items differ: then item i has
    the number i.
    """
    C = rankings.n_items
    if np.any((rankings.n_listed >= C - 1) & ~rankings.rows_with_ties):
        # A strict ranking of all items but one tells all of them apart.
        return np.arange(C)
    # Items are alike if the sums of their levels, each times a random number of the ranking, are
    # equal: whole numbers modulo 2^64. The level of items that are not listed counts as 0.
    rng, sums = np.random.default_rng(0), np.zeros(C, np.uint64)
    for block in iterate_blocks(rankings, int(rankings.n_listed.max(initial=1))):
        factors = rng.integers(2**63, size=len(block), dtype=np.uint64)
        rows, after_last = block.entry_rows, block.places[block.starts[1:] - 1] + 1
        shifts = block.places - np.where(block.is_subset, ABSENT, after_last)[rows]
        np.add.at(sums, block.codes, factors[rows] * shifts.astype(np.int64).view(np.uint64))
    number = np.unique(sums, return_inverse=True)[1]
    return np.arange(C) if number.max() + 1 == C else number


def completed_orders(rankings: Rankings) -> NDArray[np.int32]:
    """Every ranking as a row of C item numbers, the listed items first.

    The other items of a top-K ranking follow by number. The row of a subset ranking is filled up
    with C, which is not an item.
    """
    n, C = len(rankings), rankings.n_items
    if rankings.codes.size == n * C:
        return rankings.codes.reshape(n, C)
    level = levels(rankings)
    level[level == ABSENT] = C
    order = np.argsort(level, axis=1, kind="stable").astype(np.int32)
    return np.where(np.take_along_axis(level, order, axis=1) == C, np.int32(C), order)


def listed_orders(rankings: Rankings, spare: int = 0) -> NDArray[np.int32]:
    """Listed items of every ranking as a row, filled up with C, which is not an item.

    The rows are as long as the longest list, and have ``spare`` further cells.
    """
    width = int(rankings.n_listed.max(initial=0)) + spare
    # Without gaps, the entries are the table: nothing is copied.
    if rankings.codes.size == len(rankings) * width:
        return rankings.codes.reshape(len(rankings), width)
    table = np.full((len(rankings), width), rankings.n_items, np.int32)
    table[rankings.entry_rows, count_places(rankings.starts)] = rankings.codes
    return table


# ---- Groups of tied items; an item that is not tied is a group of one


def last_shares(rankings: Rankings) -> NDArray[np.float64]:
    """Share of the items at each ranking's K-th place that belongs to the first K.

    It is 1 unless K cuts a tie; each of the tied items belongs to the first K with this
    probability.
    """
    if np.all(rankings.lengths == rankings.n_listed):
        return np.ones(len(rankings))
    groups = rankings.groups
    is_last = (groups.taken > 0) & (groups.begin + groups.taken == rankings.lengths[groups.row])
    return np.asarray(groups.taken[is_last] / groups.size[is_last])


def middle_places(rankings: Rankings) -> NDArray[np.float64]:
    """Place of each entry, from 1/2; tied items have the mean of their places."""
    if not rankings.has_ties:
        return np.asarray(rankings.places + 0.5)
    groups = rankings.groups
    return np.repeat(groups.begin + groups.size / 2, groups.size)


def iterate_choices(ranking: Rankings) -> Iterator[tuple[NDArray[np.int32], int]]:
    """Yield, for one ranking, the items of each group within its first K, and how many count.

    All items of a group count, unless K cuts it.
    """
    for begin, size, _, taken in zip(*ranking.groups, strict=True):
        if taken > 0:
            yield ranking.codes[begin : begin + size], int(taken)


def rows_with_tied_choices(rankings: Rankings) -> NDArray[np.int64]:
    """Numbers of the rankings that have a tie within their first K."""
    groups = rankings.groups
    return np.unique(groups.row[(groups.size > 1) & (groups.taken > 0)])


def group_ties(values: NDArray[np.number], tolerance: float) -> list[NDArray[np.intp]]:
    """Sort by value, smallest first, and tie neighbours that differ by at most ``tolerance``."""
    by_value = np.argsort(values, kind="stable")
    gaps = np.flatnonzero(np.diff(values[by_value]) > tolerance) + 1
    # Slices: np.split takes ten times as long.
    return [by_value[begin:end] for begin, end in pairwise([0, *gaps.tolist(), values.size])]


def count_ties(rankings: Rankings) -> NDArray[np.float64]:
    """Weight of the rankings that list two items at the same place, for each pair."""
    groups = rankings.groups
    tied = np.repeat(groups.size > 1, groups.size)
    group = np.repeat(np.arange(groups.size.size), groups.size)[tied]
    members = csr_array(
        (np.ones(group.size), (group, rankings.codes[tied])),
        shape=(groups.size.size, rankings.n_items),
    )
    weights = rankings.weights[groups.row]
    table = np.asarray((members.T @ members.multiply(weights[:, None])).toarray())
    np.fill_diagonal(table, 0.0)
    return table


def name_groups(groups: list[NDArray[np.intp]], items: tuple[str, ...]) -> NamedOrder:
    """Groups of item numbers as an order of names; names inside a tie are sorted."""
    return tuple(
        items[group[0]] if len(group) == 1 else tuple(sorted(items[i] for i in group))
        for group in groups
    )


# ---- Some of the items: those named, or those that somebody ranked


def restrict_items(rankings: Rankings, items: Iterable[object]) -> Rankings:
    """Rankings of some of their items; a ranking that lists none of them is left out.

    The remaining items keep their order. Where K cuts a tie that loses items, it is unknown how
    many of the others belong to the first K, and the list ends before the tie.
    """
    rankings = require_rankings(rankings)
    names = as_names(items)
    code = {name: i for i, name in enumerate(names)}
    recode = np.array([code.get(name, -1) for name in rankings.items], np.int32)
    codes = recode[rankings.codes]
    kept = codes >= 0
    groups = rankings.groups
    size, row, taken = groups.size, groups.row, groups.taken
    group = np.repeat(np.arange(row.size), size)
    n_kept = np.bincount(group[kept], minlength=row.size)
    unclear = groups.is_cut & (n_kept < size)
    counted = np.where(unclear, 0, np.where(taken == size, n_kept, taken))
    # Beyond the cut a top-K list names nothing; a subset ranking keeps its later items.
    kept &= (counted > 0)[group] | rankings.is_subset[row[group]]
    lists = rankings.lists._replace(codes=codes).keep(kept)
    lengths = np.bincount(row, counted, minlength=len(rankings)).astype(np.int64)
    informative = np.flatnonzero((lengths > 0) & ((lists.sizes > 1) | ~rankings.is_subset))
    # A group that has been removed leaves no gap.
    lists = lists.take(informative).renumber()
    some = rankings[informative]
    return replace(some, items=names, lengths=lengths[informative], **lists._asdict())


def mark_ranked(rankings: Rankings) -> NDArray[np.bool_]:
    """Mask of the listed items that are ranked: not after the first K of a subset ranking.

    All items of a tie that K cuts are ranked.
    """
    return np.asarray(rankings.places <= last_levels(rankings)[rankings.entry_rows])


def find_ranked_items(rankings: Rankings) -> NDArray[np.bool_]:
    """Mask of the items that some ranking has among its first K."""
    ranked = np.bincount(rankings.codes[mark_ranked(rankings)], minlength=rankings.n_items)
    return np.asarray(ranked > 0)


def keep_ranked_items(rankings: Rankings, is_ranked: NDArray[np.bool_] | None = None) -> Rankings:
    """Leave out the items that no ranking has among its first K. All rankings stay.

    It is unknown whether such an item was compared with anything: a survey may not have shown it.
    A single item is not left alone, because it would no longer be before the others.
    """
    is_kept = find_ranked_items(rankings) if is_ranked is None else is_ranked
    if is_kept.all() or is_kept.sum() < 2:
        return rankings
    names = tuple(rankings.items[i] for i in np.flatnonzero(is_kept))
    kept = is_kept[rankings.codes]
    recode = (np.cumsum(is_kept) - 1).astype(np.int32)
    lists = rankings.lists._replace(codes=recode[rankings.codes]).keep(kept)
    return replace(rankings, items=names, **lists._asdict())

"""Rankings as dense matrices, a fixed block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.rankings import Rankings

BLOCK_CELLS = 1 << 21
"""Cells of the largest dense array that a computation builds besides its answer."""

CACHED_CELLS = 1 << 16
"""Cells of arrays that many steps go over, one after the other: they stay in the cache."""

ABSENT = -1
"""The level of an item that a subset ranking does not list."""


def row_blocks(n: int, cells_per_row: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Split ``n`` rows into runs whose dense arrays have about ``cells`` cells."""
    size = max(1, cells // max(1, cells_per_row))
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))


def levels(rankings: Rankings) -> NDArray[np.int32]:
    """Return the level of every item in every ranking: 0 is best, equal levels are tied.

    What a top-K ranking leaves out shares the level after its last one; what a subset ranking
    leaves out is `ABSENT`. A tie that K cuts is one level, whole.
    """
    after_last = rankings.places[rankings.starts[1:] - 1] + 1
    table = np.empty((len(rankings), rankings.n_items), np.int32)
    table[:] = np.where(rankings.is_subset, ABSENT, after_last)[:, None]
    table[rankings.entry_rows, rankings.entries] = rankings.places
    return table


def completed_orders(rankings: Rankings) -> NDArray[np.int32]:
    """Return every ranking as a row of C item numbers, what it lists first.

    The rest of a top-K ranking follows by number; the row of a subset ranking is filled up
    with C, which is no item.
    """
    n, C = len(rankings), rankings.n_items
    if rankings.entries.size == n * C:
        return rankings.entries.reshape(n, C)
    rows = rankings.entry_rows
    table = np.full((n, C), C, np.int32)
    table[rows, np.arange(rows.size) - rankings.starts[rows]] = rankings.entries
    unlisted = np.repeat(~rankings.is_subset[:, None], C, axis=1)
    unlisted[rows, rankings.entries] = False
    left_rows, left_items = np.nonzero(unlisted)
    left = np.bincount(left_rows, minlength=n)
    nth = np.arange(left_rows.size) - np.repeat(np.cumsum(left) - left, left)
    table[left_rows, rankings.n_listed[left_rows] + nth] = left_items
    return table


def last_levels(rankings: Rankings) -> NDArray[np.int32]:
    """Return the level of each ranking's K-th item; a tie there may reach past K."""
    last: NDArray[np.int32] = rankings.places[rankings.starts[:-1] + rankings.lengths - 1]
    return last

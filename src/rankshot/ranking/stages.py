"""Rankings as a sequence of choices: which item, or which tied items, come next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from rankshot.ranking.blocks import BLOCK_CELLS, completed_orders, row_blocks
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.tied_choice import n_nodes


class TiedStages(NamedTuple):
    """Stages at which ``taken`` of ``size`` tied items come next, one a row.

    The items of stage t stand in column ``column[t]`` of `Stages.order`; what comes later
    starts at row ``end[t]``.
    """

    size: int
    taken: int
    members: NDArray[np.intp]
    column: NDArray[np.int64]
    end: NDArray[np.int64]


class Stages(NamedTuple):
    """A block of rankings, one a column, items from best to worst down the rows.

    Attributes
    ----------
    order : ndarray of shape (C, n)
        Item numbers; C, which is no item, after the end of a subset ranking. Rankings lie in
        columns so that running sums over a ranking are sums of long rows.
    chosen : ndarray of bool of shape (C, n)
        Where a single item is chosen from it and all that follow.
    ties : list of TiedStages
        The other choices, by size of the tie and number taken. Ties with nothing after them
        say nothing and are left out.
    log_ways : ndarray of shape (n,)
        The log of the number of strict rankings that the ties of each ranking allow.
    """

    order: NDArray[np.intp]
    chosen: NDArray[np.bool_]
    ties: list[TiedStages]
    log_ways: NDArray[np.float64]


def stages_of(block: Rankings) -> Stages:
    """Lay out a block of rankings as choices."""
    C = block.n_items
    order = np.ascontiguousarray(completed_orders(block).T, dtype=np.intp)
    if not block.has_ties:
        chosen = np.arange(C)[:, None] < block.lengths
        return Stages(order, chosen, [], np.zeros(len(block)))
    begin, size, column = groups_of(block)
    counted = begin < block.lengths[column]
    begin, size, column = begin[counted], size[counted], column[counted]
    single = size == 1
    chosen = np.zeros(order.shape, bool)
    chosen[begin[single], column[single]] = True
    taken = np.minimum(size, block.lengths[column] - begin)
    end = begin + size
    compared = np.where(block.is_subset, block.n_listed, C)
    tied = ~single & (end < compared[column])
    ties = []
    for g, m in np.unique(np.column_stack([size, taken])[tied], axis=0).tolist():
        these = np.flatnonzero(tied & (size == g) & (taken == m))
        # What is computed of a tie has a cell for each of its items at each point of a grid.
        for rows in row_blocks(these.size, g * n_nodes(g), BLOCK_CELLS // 4):
            some = these[rows]
            members = order[begin[some][:, None] + np.arange(g), column[some][:, None]]
            ties.append(TiedStages(g, m, members, column[some], end[some]))
    # g items of which m are taken, in order: g! / (g - m)! ways.
    ways = gammaln(size + 1) - gammaln(size - taken + 1)
    log_ways = np.bincount(column, ways, minlength=len(block)).astype(float)
    return Stages(order, chosen, ties, log_ways)


def groups_of(
    block: Rankings,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row, the size and the column of every group of equal place."""
    rows = block.entry_rows
    fresh = np.ones(rows.size, bool)
    fresh[1:] = (rows[1:] != rows[:-1]) | (block.places[1:] != block.places[:-1])
    first = np.flatnonzero(fresh)
    size = np.diff(np.append(first, rows.size))
    return first - block.starts[rows[first]], size, rows[first]


def choices_of(ranking: Rankings) -> Iterator[tuple[NDArray[np.int32], int]]:
    """Yield, for one ranking, the items of each group that counts, and how many are taken."""
    for begin, size, _ in zip(*groups_of(ranking), strict=True):
        taken = min(int(size), int(ranking.lengths[0] - begin))
        if taken > 0:
            yield ranking.entries[begin : begin + size], taken


def rows_with_tied_choices(rankings: Rankings) -> NDArray[np.int64]:
    """Return the numbers of the rankings that have a tie among what counts."""
    begin, size, row = groups_of(rankings)
    return np.unique(row[(size > 1) & (begin < rankings.lengths[row])])

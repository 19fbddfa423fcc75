"""How often each item is placed before each other one: all that a consensus needs to know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.blocks import ABSENT, last_levels, levels, row_blocks
from rankshot.ranking.rankings import Rankings


def precedence(rankings: Rankings) -> NDArray[np.float64]:
    """Return W, where ``W[i, j]`` is the weight of the rankings that place i before j.

    A listed item precedes what a top-K ranking leaves out; tied items and items that a subset
    ranking leaves out precede nothing. If K cuts a tie so that m of its g items belong to the
    first K, each of them precedes the rest with probability m/g, and counts so.

    Examples
    --------
    >>> import rankshot as rs
    >>> precedence(rs.Rankings.from_orders([["a", "b"], ["b"]], items=list("abc")))
    array([[0., 1., 1.],
           [1., 0., 2.],
           [0., 0., 0.]])
    """
    C = rankings.n_items
    W = np.zeros((C, C))
    for rows in row_blocks(len(rankings), C):
        W += _block_precedence(rankings[rows])
    return W


def _block_precedence(block: Rankings) -> NDArray[np.float64]:
    C = block.n_items
    table = levels(block)
    # Counting in bytes, with the rankings along the fast axis, is what makes this quick.
    by_item = np.ascontiguousarray(table.T.astype(np.uint8 if C < 255 else np.uint32))
    # An absent item has wrapped around to the largest level: it precedes nothing by itself,
    # and the mask keeps it from being preceded.
    present = np.ascontiguousarray((table != ABSENT).T) if block.is_subset.any() else None
    weights = block.weights.astype(np.float32) if _exact_in_float32(block) else block.weights
    W = np.empty((C, C))
    for i in range(C):
        before = by_item[i] < by_item
        if present is not None:
            before &= present
        W[i] = before.astype(weights.dtype) @ weights
    return W - _overcounted(block, table)


def _exact_in_float32(block: Rankings) -> bool:
    """Whole weights whose sum is small add up without rounding in single precision."""
    return bool(np.all(block.weights == np.rint(block.weights)) and block.weights.sum() < 2**24)


def _overcounted(block: Rankings, table: NDArray[np.int32]) -> NDArray[np.float64] | float:
    """Return what counting a cut tie as whole adds too much: (1 - m/g) for each pair."""
    last = last_levels(block)[:, None]
    tied = table == last
    size = tied.sum(axis=1)
    taken = block.lengths - ((table < last) & (table != ABSENT)).sum(axis=1)
    cut = np.flatnonzero(taken < size)
    if cut.size == 0:
        return 0.0
    excess = block.weights[cut] * (1 - taken[cut] / size[cut])
    result: NDArray[np.float64] = (tied[cut] * excess[:, None]).T @ (table[cut] > last[cut])
    return result

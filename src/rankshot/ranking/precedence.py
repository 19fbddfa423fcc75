"""How often each item is placed before each other one: all that a consensus needs to know."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.blocks import ABSENT, last_levels, levels, row_blocks
from rankshot.ranking.rankings import Rankings

DENSE_ADVANTAGE = 16
"""How many comparisons of bytes take the time of counting one pair."""


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
    for size in np.unique(rankings.n_listed).tolist():
        some = rankings[np.flatnonzero(rankings.n_listed == size)]
        short = size**2 * DENSE_ADVANTAGE < C**2
        count, cells = (_count_in_lists, 4 * size**2) if short else (_count_in_tables, C)
        for rows in row_blocks(len(some), cells):
            W += count(some[rows])
    np.fill_diagonal(W, 0)
    return W


def _count_in_lists(block: Rankings) -> NDArray[np.float64]:
    """Count within lists of one length, short ones: what they leave out takes no time.

    An item precedes all others, but for those that its list does not place after it.
    """
    C, n = block.n_items, len(block)
    items = block.entries.reshape(n, -1).astype(np.int64)
    places = block.places.reshape(n, -1)
    weight = np.broadcast_to(block.weights[:, None], items.shape).copy()
    # Of g tied items that K cuts, each is listed with probability m/g.
    tied = places == last_levels(block)[:, None]
    size = tied.sum(axis=1)
    taken = block.lengths - (places < last_levels(block)[:, None]).sum(axis=1)
    weight *= np.where(tied, (taken / size)[:, None], 1.0)
    after = places[:, :, None] < places[:, None, :]
    subset = block.is_subset[:, None, None]
    signed = np.where(subset, after, after - 1.0) * weight[:, :, None]
    pairs = items[:, :, None] * C + items[:, None, :]
    W = np.bincount(pairs.ravel(), signed.ravel(), minlength=C * C).reshape(C, C)
    top = ~block.is_subset
    wins = np.bincount(items[top].ravel(), weight[top].ravel(), minlength=C)
    return np.asarray(W + wins[:, None])


def _count_in_tables(block: Rankings) -> NDArray[np.float64]:
    """Compare the levels of all items, whole columns of rankings at a time."""
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

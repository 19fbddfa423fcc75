"""Precedence: how often each item is placed before each other one."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.layouts import ABSENT, iterate_blocks, last_levels, levels
from rankshot.ranking.parts import AnyRankings, reduce_parts
from rankshot.ranking.rankings import Rankings

DENSE_ADVANTAGE = 16
"""Comparing this many pairs of bytes takes as long as counting one pair of a list."""


def precedence(
    rankings: AnyRankings, among: NDArray[np.integer] | None = None
) -> NDArray[np.float64]:
    """Return W, where ``W[i, j]`` is the weight of the rankings that place i before j.

    ``among``, if given, are the numbers of the items that are compared, in the order of W.

    A listed item precedes the items that a top-K ranking leaves out. Tied items do not precede
    one another, and an item that a subset ranking leaves out precedes nothing. If K cuts a tie so
    that m of its g items belong to the first K, each of them precedes the items after the tie
    with probability m/g, which is the weight that counts.

    Examples
    --------
    >>> import rankshot as rs
    >>> precedence(rs.Rankings.from_orders([["a", "b"], ["b"]], items=list("abc")))
    array([[0., 1., 1.],
           [1., 0., 2.],
           [0., 0., 0.]])
    """
    return reduce_parts(rankings, _count_precedence, among)


def _count_precedence(
    rankings: Rankings, among: NDArray[np.integer] | None = None
) -> NDArray[np.float64]:
    C = rankings.n_items
    if among is not None and len(among) == C:
        return np.asarray(_count_precedence(rankings)[np.ix_(among, among)])
    if among is not None:
        blocks = iterate_blocks(rankings, C)
        return np.asarray(sum(_count_in_tables(block, among) for block in blocks))
    W = np.zeros((C, C))
    sizes = rankings.n_listed
    for size in sorted(set(sizes.tolist())):
        these = sizes == size
        some = rankings if these.all() else rankings[these]
        short = size**2 * DENSE_ADVANTAGE < C**2
        count, cells = (_count_in_lists, 4 * size**2) if short else (_count_in_tables, C)
        for block in iterate_blocks(some, cells):
            W += count(block)
    np.fill_diagonal(W, 0)
    return W


def _count_in_lists(block: Rankings) -> NDArray[np.float64]:
    """Count pairs within short lists of one length: items that are left out take no time.

    A listed item precedes all others, except those that its list does not place after it.
    """
    C, n = block.n_items, len(block)
    items = block.codes.reshape(n, -1).astype(np.int64)
    places = block.places.reshape(n, -1)
    weight = np.broadcast_to(block.weights[:, None], items.shape).copy()
    # Each of g tied items that K cuts is among the first K with probability m/g.
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


def _count_in_tables(
    block: Rankings, among: NDArray[np.integer] | slice = slice(None)
) -> NDArray[np.float64]:
    """Compare the levels of items, whole columns of rankings at a time."""
    every = levels(block)
    table = every[:, among]
    C = table.shape[1]
    # Bytes, and rankings along the fast axis, make this fast.
    by_item = np.ascontiguousarray(table.T.astype(np.uint8 if block.n_items < 255 else np.uint32))
    # The level of an absent item wraps around to the largest number, so it precedes nothing;
    # the mask makes that nothing precedes it.
    present = np.ascontiguousarray((table != ABSENT).T) if block.is_subset.any() else None
    weights = block.weights.astype(np.float32) if _exact_in_float32(block) else block.weights
    W = np.empty((C, C))
    for i in range(C):
        before = by_item[i] < by_item
        if present is not None:
            before &= present
        W[i] = before.astype(weights.dtype) @ weights
    return W - _count_excess(block, every, table)


def _exact_in_float32(block: Rankings) -> bool:
    """Tell whether the weights can be summed in single precision without rounding."""
    return bool(np.all(block.weights == np.rint(block.weights)) and block.weights.sum() < 2**24)


def _count_excess(
    block: Rankings, every: NDArray[np.int32], table: NDArray[np.int32]
) -> NDArray[np.float64] | float:
    """Return the excess of counting a cut tie as a whole one: (1 - m/g) for each pair.

    ``every`` has the levels of all items, ``table`` those of the items compared.
    """
    last = last_levels(block)[:, None]
    size = (every == last).sum(axis=1)
    taken = block.lengths - ((every < last) & (every != ABSENT)).sum(axis=1)
    cut = np.flatnonzero(taken < size)
    if cut.size == 0:
        return 0.0
    excess = block.weights[cut] * (1 - taken[cut] / size[cut])
    tied = (table[cut] == last[cut]) * excess[:, None]
    result: NDArray[np.float64] = tied.T @ (table[cut] > last[cut])
    return result

"""What consensus rules need of rankings: precedence, and average places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError
from rankshot.ranking.matrices import (
    ABSENT,
    iterate_blocks,
    last_levels,
    last_shares,
    levels,
    middle_places,
)
from rankshot.ranking.rankings import Rankings

MOST_ITEMS = 16_000
"""A table of the pairs of more items takes more than 2 GB."""
DENSE_ADVANTAGE = 16
"""Comparing this many pairs of bytes takes as long as counting one pair of a list."""


def precedence(rankings: Rankings, among: NDArray[np.integer] | None = None) -> NDArray[np.float64]:
    """W, where ``W[i, j]`` is the weight of the rankings that place i before j.

    ``among``, if given, are the numbers of the items that are compared, in the order of W.

    A listed item precedes the items that a top-K ranking leaves out. Tied items do not precede
    one another, and an item that a subset ranking leaves out precedes nothing. If K cuts a tie so
    that m of its g items belong to the first K, each of them precedes the items after the tie
    with probability m/g, which is the weight that counts.
    """
    C = rankings.n_items
    size = C if among is None else len(among)
    if size > MOST_ITEMS:
        raise InputError(
            "rankings",
            size,
            f"items are too many for a table of all pairs ({8e-9 * size**2:,.0f} GB)",
            hint=f"rank at most {MOST_ITEMS:,} items, or use borda",
        )
    if among is not None and len(among) == C:
        return np.asarray(precedence(rankings)[np.ix_(among, among)])
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
    weight = np.broadcast_to(block.weights[:, None], items.shape)
    if np.any(block.lengths < items.shape[1]):
        # Each of g tied items that K cuts is among the first K with probability m/g.
        groups = block.groups
        share = np.repeat(groups.taken / groups.size, groups.size)
        weight = weight * share.reshape(items.shape)
    one, two = np.triu_indices(items.shape[1], 1)
    top = ~block.is_subset[:, None]
    after = (places[:, one] < places[:, two]) - 1.0 * top
    pairs = items[:, one] * C + items[:, two]
    W = np.bincount(pairs.ravel(), (after * weight[:, one]).ravel(), C * C).reshape(C, C)
    if top.any():
        back = np.bincount(pairs.ravel(), (top * weight[:, two]).ravel(), C * C).reshape(C, C)
        wins = np.bincount(items.ravel(), (top * weight).ravel(), C)
        W = W + wins[:, None] - back.T
    return np.asarray(W)


def _count_in_tables(
    block: Rankings, among: NDArray[np.integer] | slice = slice(None)
) -> NDArray[np.float64]:
    """Compare the levels of items, whole columns of rankings at a time."""
    table = levels(block)[:, among]
    C = table.shape[1]
    # Bytes, and rankings along the fast axis, make this fast.
    by_item = np.ascontiguousarray(table.T.astype(np.uint8 if block.n_items < 255 else np.uint32))
    # The level of an absent item wraps around to the largest number, so it precedes nothing;
    # the mask makes that nothing precedes it.
    present = np.ascontiguousarray((table != ABSENT).T) if block.is_subset.any() else None
    W = np.empty((C, C))
    # OpenBLAS may raise the flag for what lies beside the data, which is finite.
    with np.errstate(invalid="ignore"):
        for i in range(C):
            before = by_item[i] < by_item
            if present is not None:
                before &= present
            W[i] = before @ block.weights
    return W - _count_excess(block, table)


def _count_excess(block: Rankings, table: NDArray[np.int32]) -> NDArray[np.float64] | float:
    """Excess of counting a cut tie as a whole one: (1 - m/g) for each pair.

    ``table`` has the levels of the items that are compared.
    """
    missing = 1 - last_shares(block)
    cut = np.flatnonzero(missing)
    if cut.size == 0:
        return 0.0
    last = last_levels(block)[cut, None]
    tied = (table[cut] == last) * (block.weights * missing)[cut, None]
    result: NDArray[np.float64] = tied.T @ (table[cut] > last)
    return result


# ---- Average places


def average_places(rankings: Rankings) -> NDArray[np.float64]:
    """Mean place of every item, as a fraction of the number of items that a ranking compares.

    The first place of C is 1/2 of C. Items that share a place have the mean of the places that
    they take, and so have those that a top-K ranking leaves out. An item that no ranking lists has
    1, which is after all others.
    """
    n_compared, weights, rows = rankings.n_compared, rankings.weights, rankings.entry_rows
    of_top = np.where(rankings.is_subset, 0.0, weights)
    # The items that a top-K ranking leaves out share a place: only the listed ones are visited.
    left_out = (rankings.n_listed + n_compared) / 2 / n_compared
    shift = weights[rows] * middle_places(rankings) / n_compared[rows] - (of_top * left_out)[rows]
    C, codes, listed = rankings.n_items, rankings.codes, item_weights(rankings)
    total = float(of_top @ left_out) + np.bincount(codes, shift, C)
    of_subsets = np.bincount(codes, np.where(rankings.is_subset, weights, 0.0)[rows], C)
    weight = of_top.sum() + of_subsets
    return np.asarray(np.divide(total, weight, out=np.ones(C), where=listed > 0))


def item_weights(rankings: Rankings) -> NDArray[np.float64]:
    """Weight of the rankings that list each item."""
    weights = rankings.weights[rankings.entry_rows]
    return np.bincount(rankings.codes, weights, minlength=rankings.n_items).astype(float)


def average_order(rankings: Rankings) -> tuple[str, ...]:
    """Order the items by their average place; names break ties."""
    return tuple(rankings.items[i] for i in sort_by_average(rankings))


def sort_by_average(rankings: Rankings) -> NDArray[np.intp]:
    """Sort the items by average place, then by name: the order of the columns has no effect."""
    average = np.round(average_places(rankings), 12)
    return np.lexsort((np.array(rankings.items), average))

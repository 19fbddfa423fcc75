"""One order for many rankings: Borda's method, and Kemeny's by search or with proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_choice, require_number
from rankshot.ranking.checks import require_one_subject
from rankshot.ranking.kemeny_solvers import (
    adjacent_search,
    insertion_search,
    reversed_weight,
    settle_ties,
    solve_exactly,
)
from rankshot.ranking.layouts import (
    ABSENT,
    NamedOrder,
    alike_items,
    group_ties,
    last_levels,
    levels,
    mean_places,
    name_groups,
)
from rankshot.ranking.parts import AnyRankings, keep_counted, reduce_parts
from rankshot.ranking.rankings import Rankings

DENSE_ADVANTAGE = 16
"""Comparing this many pairs of bytes takes as long as counting one pair of a list."""
Method = Literal["adjacent", "insertion", "exact"]
METHODS = ("adjacent", "insertion", "exact")


@dataclass(frozen=True)
class Consensus:
    """An order of all items that stands for many rankings.

    Attributes
    ----------
    order : tuple of str
        The items, best first; a tie, which only `borda` has, is a tuple inside the tuple.
    score : float
        Kemeny's score: the weight of the pairs that the order reverses, summed over the
        rankings. For full rankings it is the sum of their Kendall distances to the order. A
        pair that the order ties counts half.
    bound : float
        No order has a smaller score than this.
    optimal : bool
        Whether the bound proves that no order is better.
    """

    order: NamedOrder
    score: float
    bound: float
    optimal: bool


def borda(rankings: AnyRankings) -> Consensus:
    """Order the items by their average place.

    Tied items share the mean of their places, and so do the items that a top-K list leaves out.
    In a subset ranking the places count as fractions of its length, and an item that no ranking
    places counts as placed in the middle. Items of equal average stay tied.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "a", "c"], ["c"]], items=["a", "b", "c"])
    >>> rs.borda(votes).order
    (('a', 'b'), 'c')
    """
    require_one_subject(rankings)
    groups = group_ties(average_places(rankings), tolerance=1e-9)
    W = precedence(rankings)
    place = np.empty(rankings.n_items, int)
    for number, group in enumerate(groups):
        place[group] = number
    score = float(W.T[place[:, None] < place].sum())
    # Both orders of a tied pair are equally likely: it counts half. The diagonal of W is 0.
    score += float(W[place[:, None] == place].sum()) / 2
    gap = _majority_gap(W, score)
    return Consensus(name_groups(groups, rankings.items), score, score - gap, optimal=gap == 0)


def kemeny(
    rankings: AnyRankings,
    method: Method = "insertion",
    *,
    time_limit: float | None = None,
    verbose: bool = False,
) -> Consensus:
    """Find the order with the smallest sum of Kendall distances to the rankings.

    Top-K lists, ties and subset rankings count the pairs that they put in order, and no others.

    Parameters
    ----------
    rankings : Rankings or PartitionedRankings
        What to merge; weights count.
    method : {"adjacent", "insertion", "exact"}
        ``"adjacent"`` is the paper's search: from the average ranking, swap the neighbours
        that lower the score most, at most 1,000 times. ``"insertion"`` moves single items to any
        place and shuffles parts of the order to leave local optima; it is stronger and usually
        finds an optimum. ``"exact"`` proves optimality by linear and, where needed, integer
        programming.
    time_limit : float, optional
        Seconds that ``"exact"`` may take; then it returns the best order and bound so far.
    verbose : bool
        Show progress.

    Returns
    -------
    Consensus
        ``optimal`` says whether the bound proves the order to be one of the best; with
        fractional weights, to within one part in a million of the score.

    Notes
    -----
    If several orders are best, neighbours that the rankings do not tell apart are in the order of
    their average places, then of their names. The order in which the items were listed has no
    influence. Items at the same level
    in every ranking, such as those that no ranking lists, are moved together and stay sorted by
    name; the order among them has no meaning. So short lists of many items take as long as the
    listed items alone.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "b", "c"], ["b", "c", "a"]], items=["a", "b", "c"])
    >>> rs.kemeny(votes, method="exact")
    Consensus(order=('a', 'b', 'c'), score=2.0, bound=2.0, optimal=True)
    """
    require_choice("method", method, METHODS)
    if time_limit is not None:
        require_number("time_limit", time_limit, above=0)
        if method != "exact":
            raise RankshotError(f"time_limit is for method='exact', not {method!r}")
    require_one_subject(rankings)
    classes = _sort_classes(rankings)
    sizes = np.array([len(items) for items in classes])
    W = precedence(rankings, np.array([items[0] for items in classes]))
    W *= sizes[:, None] * sizes
    if method == "exact":
        found, gap = solve_exactly(W, time_limit=time_limit, verbose=verbose)
        score = reversed_weight(W, found)
    else:
        found = adjacent_search(W) if method == "adjacent" else insertion_search(W)
        score = reversed_weight(W, found)
        gap = _majority_gap(W, score)
    found = settle_ties(W, found)
    order = tuple(rankings.items[i] for number in found for i in classes[number])
    return Consensus(order, score, score - gap, optimal=gap == 0)


def _sort_classes(rankings: AnyRankings) -> list[NDArray[np.intp]]:
    """Return the items in classes of alike ones, in the canonical order of their first items.

    Some best order has the items of each class next to each other: moving all of them to the best
    place of any of them costs nothing. So classes are ordered instead of items.
    """
    start = _canonical_start(rankings)
    number = alike_items(keep_counted(rankings))[start]
    _, first = np.unique(number, return_index=True)
    by_class = start[np.argsort(first[number], kind="stable")]
    return np.split(by_class, np.cumsum(np.bincount(number)[number[np.sort(first)]])[:-1])


def average_places(rankings: AnyRankings) -> NDArray[np.float64]:
    """Return the mean place of every item, as a fraction of the ranking's length.

    An item that no ranking places counts as placed in the middle.
    """
    total, weight = reduce_parts(rankings, _sum_places)
    placed = weight > 0
    return np.where(placed, total / np.where(placed, weight, 1.0), 0.5)


def _sum_places(rankings: Rankings) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted sum of the places of each item, and the sum of the weights."""
    C = rankings.n_items
    total, weight = np.zeros(C), np.zeros(C)
    for rows in row_blocks(len(rankings), C):
        block = rankings[rows]
        table = levels(block)
        present = table != ABSENT
        size = present.sum(axis=1)
        fractions = mean_places(table) / size[:, None]
        total += block.weights @ np.where(present, fractions, 0.0)
        weight += block.weights @ present
    return total, weight


def average_order(rankings: AnyRankings) -> tuple[str, ...]:
    """Order the items by their average place; names break ties."""
    return tuple(rankings.items[i] for i in _canonical_start(rankings))


def _canonical_start(rankings: AnyRankings) -> NDArray[np.intp]:
    """Sort the items by average place, then by name: the order of the columns has no effect."""
    average = np.round(average_places(rankings), 12)
    return np.lexsort((np.array(rankings.items), average))


def _majority_gap(W: NDArray[np.float64], score: float) -> float:
    """Return by how much a score exceeds a lower bound: every pair in its majority's order."""
    gap = score - float(np.triu(np.minimum(W, W.T), 1).sum())
    return gap if gap > 1e-12 * score else 0.0


# ---- Precedence: how often each item is placed before each other one


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
        blocks = (rankings[rows] for rows in row_blocks(len(rankings), C))
        return np.asarray(sum(_count_in_tables(block, among) for block in blocks))
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

"""The consensus of the answers to one target, and how stable it is.

Everything follows from the pairwise margins: how many more answers put one item before another
than after it. The Kemeny score of an order is the sum of the margins that it reverses. To leave
one answer out, its own votes are subtracted from the margins; no other answer is counted again.

`rankshot.ranking.consensus.kemeny_solvers` finds the Kemeny order of one set of rankings, of any
size. The stability needs the orders of hundreds of small tables that differ by one answer each.
`best_orders` solves these together as arrays, and it breaks ties between equally good orders by
a fixed rule, so that two tables with the same best orders get the same one.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.ranking.consensus.kemeny_solvers import improve_by_insertion
from rankshot.ranking.matrices import ABSENT

Levels = NDArray[np.int32]
Signs = NDArray[np.int8]
Margins = NDArray[np.int64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
MOST_SOLVED = 15
"""The largest cycle of majorities that is solved exactly, by enumerating all subsets of its
items. For a larger cycle, the order is one that moving a single item does not improve."""


# ---- Pairs of items


def pair_signs(table: Levels) -> Signs:
    """Return s: ``s[r, i, j]`` is 1 if answer r has i before j, -1 if after, 0 if neither.

    An item that an answer does not rank is `ABSENT`. It is neither before nor after any item.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.

    Examples
    --------
    >>> pair_signs(np.array([[0, 1, ABSENT]]))[0].tolist()
    [[0, 1, 0], [-1, 0, 0], [0, 0, 0]]
    """
    before = (table[:, :, None] < table[:, None, :]) & (table != ABSENT)[:, :, None]
    signs: Signs = before.astype(np.int8) - before.transpose(0, 2, 1)
    return signs


def pairwise_margins(table: Levels) -> Margins:
    """Return how many more answers have item i before j than after it.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.

    Examples
    --------
    >>> pairwise_margins(np.array([[0, 1, 1], [0, 1, 2], [1, 0, 2]])).tolist()
    [[0, 1, 3], [-1, 0, 2], [-3, -2, 0]]
    """
    n = table.shape[1]
    margins = np.zeros((n, n), np.int64)
    for rows in row_blocks(len(table), n * n):
        margins += pair_signs(table[rows]).sum(axis=0, dtype=np.int64)
    return margins


# ---- The consensus


def consensus_places(margins: Margins, n_ranked: Numbers, n_shown: Numbers) -> Numbers:
    """Return the place of every item in the consensus, for each of several tables.

    The consensus is a Kemeny order. Neighbours are tied if equally many answers prefer one and
    the other; in a larger tie, this holds for all pairs. If there are several best orders, the
    first one is taken: by the items' total margins, then by item number. Items that nobody
    ranked are tied after all others.

    Parameters
    ----------
    margins : ndarray of shape (t, n, n)
        How many more answers have i before j than after it. Number the items by name.
    n_ranked, n_shown : ndarray of shape (t, n)
        How many answers rank the item, and how many were shown it.

    Returns
    -------
    ndarray of shape (t, n)
        The number of items that come before; tied items have the same place. `ABSENT` if an item
        was never shown.

    Examples
    --------
    Two answers say 0 > 1 > 2 and one says 0 > 2 > 1. Without one of the two, 1 and 2 are tied.

    >>> one = pair_signs(np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1]])).astype(np.int64)
    >>> tables = np.array([one.sum(axis=0), one[1:].sum(axis=0)])
    >>> count = np.array([[3, 3, 3], [2, 2, 2]])
    >>> consensus_places(tables, count, count)
    array([[0, 1, 2],
           [0, 1, 1]])
    """
    margins = _put_unranked_last(margins, n_ranked)
    order = best_orders(margins)
    places = np.empty_like(order)
    np.put_along_axis(places, order, _tied_places(_reorder(margins, order)), axis=1)
    places[n_shown == 0] = ABSENT
    return places


def _put_unranked_last(margins: Margins, n_ranked: Numbers) -> Margins:
    """Let every item that somebody ranked win against every item that nobody ranked."""
    wins = (n_ranked > 0)[:, :, None] & (n_ranked == 0)[:, None, :]
    forced = np.where(wins, np.maximum(margins, 1), margins)
    return np.where(wins.transpose(0, 2, 1), -forced.transpose(0, 2, 1), forced)


def _tied_places(margins: Margins) -> Numbers:
    """Return where the tie of each item begins; the items are numbered in consensus order."""
    n = margins.shape[1]
    number = np.arange(n)
    differ = np.triu(margins != 0, 1)
    last = np.where(differ, number[:, None], -1).max(axis=1)
    places = np.zeros(last.shape, np.int64)
    for item in range(1, n):
        begin = places[:, item - 1]
        places[:, item] = np.where(last[:, item] >= begin, item, begin)
    return places


def _reorder(margins: Margins, order: Numbers) -> Margins:
    """Return the tables with their items numbered by their place in the orders."""
    rows = np.arange(len(margins))[:, None, None]
    return margins[rows, order[:, :, None], order[:, None, :]]


# ---- Kemeny orders of many small tables


def best_orders(margins: Margins) -> Numbers:
    """Return the Kemeny order of the items in each of several tables; see `consensus_places`.

    Items that beat one another in a cycle are solved as a problem of their own. The cycles then
    follow one another at no cost (the extended Condorcet principle).

    Parameters
    ----------
    margins : ndarray of shape (t, n, n)

    Examples
    --------
    In the cycle 0 > 1 > 2 > 0, the margin of 2 over 0 is the smallest; and 3 beats all.

    >>> best_orders(np.array([[[0, 5, -3, -1], [-5, 0, 4, -1], [3, -4, 0, -1], [1, 1, 1, 0]]]))
    array([[3, 0, 1, 2]])
    """
    # From here on, items are numbered by their total margins, then by their old numbers.
    number = np.argsort(-margins.sum(axis=2), axis=1, kind="stable")
    margins = _reorder(margins, number)
    reachable = _find_reachable(margins > 0)
    cycle = reachable & reachable.transpose(0, 2, 1)
    head = cycle.argmax(axis=2)
    n = margins.shape[1]
    # An item that reaches another cycle reaches more items than that cycle does. The items of
    # one cycle stay together.
    order = np.argsort(-reachable.sum(axis=2) * n + head, axis=1, kind="stable")
    size = np.where(head == np.arange(n), cycle.sum(axis=2), 0)
    for length in np.unique(size[size > 2]).tolist():
        table, first = np.nonzero(size == length)
        items = np.nonzero(cycle[table, first])[1].reshape(-1, length)
        begin = np.nonzero(order[table] == first[:, None])[1]
        among = margins[table[:, None, None], items[:, :, None], items[:, None, :]]
        best = np.take_along_axis(items, _order_cycles(np.maximum(among, 0)), axis=1)
        order[table[:, None], begin[:, None] + np.arange(length)] = best
    return np.take_along_axis(number, order, axis=1)


def _find_reachable(beats: Bools) -> Bools:
    """Return which items can be reached by steps from winners to losers; each reaches itself."""
    n = beats.shape[1]
    reachable = beats | np.eye(n, dtype=bool)
    for _ in range(max(n - 1, 1).bit_length()):
        # Matrix products of floats are much faster than those of other types.
        steps = reachable.astype(np.float32)
        reachable = steps @ steps > 0
    return reachable


def _order_cycles(W: Margins) -> Numbers:
    n = W.shape[1]
    if n > MOST_SOLVED:
        return np.array([improve_by_insertion(one.astype(float), np.arange(n)) for one in W])
    blocks = row_blocks(len(W), n << n)
    return np.concatenate([_first_best_orders(W[rows]) for rows in blocks])


def _first_best_orders(W: Margins) -> Numbers:
    """Return the lexicographically first of the best orders of each table.

    If an item comes first in a set, it reverses the weights of the others before it, and the
    rest of the set is ordered optimally. Item i is in set s if bit i of s is set.
    """
    t, n, _ = W.shape
    # Whole numbers of this size are exact in floats.
    reversed_by = np.zeros((1 << n, n, t))
    for item in range(n):
        reversed_by[1 << item : 2 << item] = reversed_by[: 1 << item] + W[:, item].T
    least = np.zeros((1 << n, t))
    for sets, first in _sets_by_size(n):
        rest = sets[:, None] - (1 << first)
        least[sets] = (reversed_by[sets[:, None], first] + least[rest]).min(axis=1)
    orders = np.empty((t, n), np.int64)
    tables, items = np.arange(t)[:, None], np.arange(n)
    left = np.full(t, (1 << n) - 1)
    for place in range(n):
        rest = left[:, None] & ~(1 << items)
        scores = reversed_by[left[:, None], items, tables] + least[rest, tables]
        is_best = (scores == least[left, tables[:, 0]][:, None]) & (rest != left[:, None])
        orders[:, place] = is_best.argmax(axis=1)
        left -= 1 << orders[:, place]
    return orders


@cache
def _sets_by_size(n: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the sets of 2, 3, …, n items, and the items of each."""
    has = (np.arange(1 << n)[:, None] >> np.arange(n)) & 1
    found = []
    for size in range(2, n + 1):
        sets = np.flatnonzero(has.sum(axis=1) == size)
        found.append((sets, np.nonzero(has[sets])[1].reshape(-1, size)))
    return found


# ---- Leaving one answer out


def leave_one_out_stability(
    table: Levels, is_ranked: Bools, places: Numbers, n_first: int
) -> tuple[float, float] | None:
    """Return the share of answers that can be left out, one at a time, with the same consensus.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.
    is_ranked : ndarray of shape (m, n)
        Whether the answer ranks the item.
    places : ndarray of shape (n,)
        The consensus of all answers; see `consensus_places`.
    n_first : int
        How many of the first places are looked at separately.

    Returns
    -------
    tuple of float, or None
        The share for all places, and the share for the first ones, with every tie that begins
        in them. None if there are fewer than two answers.

    Examples
    --------
    >>> answers = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1]])
    >>> leave_one_out_stability(answers, answers >= 0, np.array([0, 1, 2]), 1)
    (0.3333333333333333, 1.0)
    """
    m, n = table.shape
    if m < 2:
        return None
    # Leaving out equal answers has the same effect, so that it is computed once.
    both, count = np.unique(np.hstack([table, is_ranked]), axis=0, return_counts=True)
    some, some_ranked = both[:, :n], both[:, n:].astype(np.int64)
    margins, n_ranked = pairwise_margins(table), is_ranked.sum(axis=0)
    n_shown = np.asarray((table != ABSENT).sum(axis=0))
    stay = np.zeros(2)
    for rows in row_blocks(len(some), 8 * n * n):
        without = (
            margins - pair_signs(some[rows]),
            n_ranked - some_ranked[rows],
            n_shown - (some[rows] != ABSENT),
        )
        stay += [count[rows] @ keeps for keeps in _keeps_consensus(*without, places, n_first)]
    whole, first = (stay / m).tolist()
    return whole, first


def _keeps_consensus(
    margins: Margins, n_ranked: Numbers, n_shown: Numbers, places: Numbers, n_first: int
) -> tuple[Bools, Bools]:
    """Return whether each of several tables has this consensus: all places, and the first."""
    order = np.argsort(places, kind="stable")
    left = _put_unranked_last(margins, n_ranked)[:, order[:, None], order]
    is_whole = np.all(n_shown > 0, axis=1)
    n = len(places)
    begins = places < n_first
    yes, no = _decide_by_margins(left, places[order], n)
    yes_first, no_first = _decide_by_margins(left, places[order], int(begins.sum()))
    whole, first = yes & is_whole, yes_first & is_whole
    undecided = np.flatnonzero(~(whole | no) | ~(first | no_first))
    for rows in row_blocks(undecided.size, 8 * n * n):
        some = undecided[rows]
        found = consensus_places(margins[some], n_ranked[some], n_shown[some])
        whole[some] = np.all(found == places, axis=1)
        found_begins = (found < n_first) & (found != ABSENT)
        same = np.where(begins, found == places, ~found_begins)
        first[some] = np.all(same, axis=1)
    return whole, first


def _decide_by_margins(left: Margins, places: Numbers, k: int) -> tuple[Bools, Bools]:
    """Return whether the margins alone show that the first k items stay, or that they do not.

    The items are numbered in consensus order. The k-th item ends a tie.
    """
    tied = places[:, None] == places
    is_broken = np.any(left[:, :k, :k][:, tied[:k, :k]], axis=1)
    ahead = np.triu(~tied, 1)[:k]
    # Every best order begins like this if each of these items beats all that come after it.
    wins = np.all(left[:, :k][:, ahead] > 0, axis=1)
    no: Bools = is_broken
    # Beyond MOST_SOLVED items, the search returns an order that no single move improves. It
    # starts from one arrangement of the items, and ties have several arrangements.
    if len(places) <= MOST_SOLVED or np.array_equal(tied[:k, :k], np.eye(k, dtype=bool)):
        no = no | _move_improves(left[:, :k, :k])
    return np.asarray(wins & ~is_broken), np.asarray(no)


def _move_improves(left: Margins) -> Bools:
    """Return whether moving a single item to another place gives a better order.

    Moving i behind j costs the margins of i over all items from i + 1 to j. Moving j before i
    costs the margins of all items from i to j - 1 over j.
    """
    ahead = np.triu(left, 1)
    behind = np.cumsum(ahead, axis=2)
    before = np.cumsum(ahead[:, ::-1], axis=1)
    return np.asarray(np.any(behind < 0, axis=(1, 2)) | np.any(before < 0, axis=(1, 2)))

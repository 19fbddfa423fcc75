"""Whether a consensus stays the same when one answer is left out.

Kemeny's score of an order is the sum, over the pairs of items that it reverses, of the margin
by which the rankings prefer the other way round. Leaving one answer out takes its own votes off
the margins; no ranking is counted again. For most answers the margins alone then tell whether
the order is still a best one; only where they do not is the best score worked out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.ranking.blocks import row_blocks
from rankshot.ranking.kemeny_search import insertion_search, reversed_weight
from rankshot.survey.quality import Levels, Signs, pair_signs

Margins = NDArray[np.int64]

MOST_ENUMERATED = 10
"""Of so many items all sets are enumerated; of more, a best order is searched for."""


def margins_of(table: Levels) -> Margins:
    """Return how many more answers have item i before j than after it.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.
    """
    n = table.shape[1]
    margins = np.zeros((n, n), np.int64)
    for rows in row_blocks(len(table), n * n):
        margins += pair_signs(table[rows]).sum(axis=0, dtype=np.int64)
    return margins


def share_that_stays(table: Levels, ties: Sequence[int], places: int) -> float | None:
    """Return the share of answers without which a consensus stays as it is.

    It stays if the others alone prefer no order to it, and neither of two items that it ties.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer. The items stand as in the consensus.
    ties : sequence of int
        How many items the consensus ties, from the first place on; 1 is no tie. The answers
        put as many one way as the other.
    places : int
        How many of the first places must stay, with all that is tied with the last of these.

    Returns
    -------
    float or None
        None below two answers.

    Examples
    --------
    >>> answers = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1], [0, 2, 1]])
    >>> share_that_stays(answers, [1, 2], 1), share_that_stays(answers, [1, 2], 3)
    (1.0, 0.0)
    """
    m, n = table.shape
    if m < 2:
        return None
    group = np.repeat(np.arange(len(ties)), ties)
    k = int(np.sum(group <= group[min(places, n) - 1]))
    tied = group[:k, None] == group[:k]
    margins = margins_of(table)
    stay = 0
    for rows in row_blocks(m, 8 * n * n):
        votes = pair_signs(table[rows])
        # Without an answer that tells apart what is tied, the tie is decided.
        tells_apart = np.any(votes[:, :k, :k][:, tied], axis=1)
        stay += int(np.sum(stays_best(margins, votes, k) & ~tells_apart))
    return stay / len(table)


def stays_best(margins: Margins, votes: Signs, k: int) -> NDArray[np.bool_]:
    """Return, for each answer, whether the first k places stay as they are without it.

    They do if some order that is a best one without that answer begins with the same k items in
    the same places. With k = n this means that the whole order still is a best one.

    Parameters
    ----------
    margins : ndarray of shape (n, n)
        How many more answers have i before j than after it. The items are numbered as they
        stand in the consensus, which is 0, 1, 2, ….
    votes : ndarray of shape (m, n, n)
        What each answer adds to the margins: 1, 0 or -1.
    k : int
        From 1 to n.

    Examples
    --------
    Two answers say 0 > 1 > 2 and one says 2 > 0 > 1. Without one of the two, both orders are best.

    >>> up, down = np.array([[0, 1, 1], [-1, 0, 1], [-1, -1, 0]]), np.array(
    ...     [[0, 1, -1], [-1, 0, -1], [1, 1, 0]])
    >>> stays_best(up + up + down, np.array([up, up, down]), 3)
    array([ True,  True,  True])
    >>> stays_best(up + down, np.array([up, down]), 1)
    array([False,  True])
    """
    left = margins - votes.astype(np.int64)
    # No order can do better on the pairs of the first k than to give each its majority.
    stays: NDArray[np.bool_] = np.all(np.triu(left, 1)[:, :k] >= 0, axis=(1, 2))
    unclear = np.flatnonzero(~stays & ~_a_move_helps(left[:, :k, :k]))
    n = len(margins)
    for rows in row_blocks(unclear.size, n << min(n, MOST_ENUMERATED)):
        stays[unclear[rows]] = _begin_best_orders(left[unclear[rows]], k)
    return stays


def _a_move_helps(left: Margins) -> NDArray[np.bool_]:
    """Whether moving a single item to another place gives a better order.

    Moving i behind j costs the margins of i over all from i + 1 to j; moving j before i costs
    those of all from i to j - 1 over j.
    """
    ahead = np.triu(left, 1)
    behind = np.cumsum(ahead, axis=2)
    before = np.cumsum(ahead[:, ::-1], axis=1)
    return np.asarray(np.any(behind < 0, axis=(1, 2)) | np.any(before < 0, axis=(1, 2)))


def _begin_best_orders(left: Margins, k: int) -> NDArray[np.bool_]:
    """Compare the best order of all with the best that begins as the consensus does."""
    W = np.maximum(left, 0)
    reversed_first = np.tril(W, -1)[:, :, :k].sum(axis=(1, 2))
    n = W.shape[1]
    if n <= MOST_ENUMERATED:
        least = least_scores(W)
        everything = (1 << n) - 1
        rest = everything - ((1 << k) - 1)
        return np.asarray(reversed_first + least[:, rest] <= least[:, everything])
    rest_scores = np.array([_least_score(one[k:, k:]) for one in W])
    return np.asarray(reversed_first + rest_scores <= [_least_score(one) for one in W])


def least_scores(W: Margins) -> Margins:
    """Return Kemeny's least score of every set of items, in each of several tables.

    Whichever item of a set comes first, it reverses the weights of the others before it, and
    the rest of the set is ordered as well as can be.

    Parameters
    ----------
    W : ndarray of shape (m, n, n)
        The weight of i before j; the diagonal is 0.

    Returns
    -------
    ndarray of shape (m, 2 ** n)
        Item i belongs to set number s if bit i of s is set.

    Examples
    --------
    A cycle, 0 > 1 > 2 > 0, reverses its lightest pair.

    >>> least_scores(np.array([[[0, 5, 0], [0, 0, 4], [3, 0, 0]]]))[0, 0b111]
    np.int64(3)
    """
    n = W.shape[1]
    has = _members(n)
    # Products of floats are much quicker, and whole numbers of this size are exact in them.
    reversed_by = has @ W.astype(float)
    least = np.zeros((len(W), len(has)))
    for sets, first in _sets_by_size(n):
        rest = sets[:, None] - (1 << first)
        least[:, sets] = (reversed_by[:, sets[:, None], first] + least[:, rest]).min(axis=2)
    return least.astype(np.int64)


@cache
def _members(n: int) -> NDArray[np.float64]:
    """Return which of n items belong to each set."""
    return ((np.arange(1 << n)[:, None] >> np.arange(n)) & 1).astype(float)


@cache
def _sets_by_size(n: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return the sets of 2, 3, …, n items, and the items of each."""
    has = _members(n)
    found = []
    for size in range(2, n + 1):
        sets = np.flatnonzero(has.sum(axis=1) == size)
        found.append((sets, np.nonzero(has[sets])[1].reshape(-1, size)))
    return found


def _least_score(W: Margins) -> int:
    """Return Kemeny's least score of many items: enumerated, or searched for where they are many.

    Items in no cycle of majorities are ordered at no cost (Condorcet's principle, extended), so
    that every set of items that beat one another in a circle is a problem of its own.
    """
    total = 0
    _, label = connected_components(csr_array(W), connection="strong")
    for cycle in np.flatnonzero(np.bincount(label) > 1).tolist():
        items = np.flatnonzero(label == cycle)
        among = W[np.ix_(items, items)]
        if items.size <= MOST_ENUMERATED:
            total += int(least_scores(among[None])[0, -1])
        else:
            weights = among.astype(float)
            total += round(reversed_weight(weights, insertion_search(weights)))
    return total

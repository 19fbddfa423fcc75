"""The consensus that is shown, and whether it stays when one answer is left out.

All follows from the margins: how many more answers have one item before another than after it.
Kemeny's score of an order is the sum of the margins that it reverses. Leaving an answer out
takes its own votes off the margins; no answer is counted again. Where the margins that are left
do not decide by themselves, the consensus of the others is worked out as that of all was.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.ranking.layouts import ABSENT
from rankshot.survey import pairwise as solver
from rankshot.survey.pairwise import Levels, Margins, arranged, best_orders, margins_of, pair_signs

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]


def shown_places(margins: Margins, n_ranked: Numbers, n_shown: Numbers) -> Numbers:
    """Return the place of every item in the consensus, in each of several tallies.

    The consensus is an order of Kemeny's. Neighbours are tied where as many answers put one way
    as the other, all pairs of them. Of several best orders it is the first by the items' margins
    over all others, and by number. Items that nobody ranked are tied behind all others.

    Parameters
    ----------
    margins : ndarray of shape (t, n, n)
        How many more answers have i before j than after it. Number the items by name.
    n_ranked, n_shown : ndarray of shape (t, n)
        How many answers rank the item, and how many were shown it.

    Returns
    -------
    ndarray of shape (t, n)
        How many items come before; tied items have the same place. `ABSENT` where an item was
        never shown.

    Examples
    --------
    Two answers say 0 > 1 > 2 and one says 0 > 2 > 1; without one of the two, 1 and 2 are tied.

    >>> one = pair_signs(np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1]])).astype(np.int64)
    >>> tallies = np.array([one.sum(axis=0), one[1:].sum(axis=0)])
    >>> count = np.array([[3, 3, 3], [2, 2, 2]])
    >>> shown_places(tallies, count, count)
    array([[0, 1, 2],
           [0, 1, 1]])
    """
    margins = _with_unranked_last(margins, n_ranked)
    order = best_orders(margins)
    places = np.empty_like(order)
    np.put_along_axis(places, order, _tied_places(arranged(margins, order)), axis=1)
    places[n_shown == 0] = ABSENT
    return places


def shares_that_stay(
    table: Levels, is_ranked: Bools, places: Numbers, n_first: int
) -> tuple[float, float] | None:
    """Return the share of answers without which the same consensus would be shown.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.
    is_ranked : ndarray of shape (m, n)
        Whether the answer ranks the item.
    places : ndarray of shape (n,)
        The consensus of all answers; see `shown_places`.
    n_first : int
        How many of the first places are looked at by themselves.

    Returns
    -------
    tuple of float, or None
        The share for all places, and that for the first ones, with every tie that begins in
        them. None below two answers.

    Examples
    --------
    >>> answers = np.array([[0, 1, 2], [0, 1, 2], [0, 2, 1]])
    >>> shares_that_stay(answers, answers >= 0, np.array([0, 1, 2]), 1)
    (0.3333333333333333, 1.0)
    """
    m, n = table.shape
    if m < 2:
        return None
    # Equal answers have equal consequences.
    both, count = np.unique(np.hstack([table, is_ranked]), axis=0, return_counts=True)
    some, some_ranked = both[:, :n], both[:, n:].astype(np.int64)
    margins, n_ranked, n_shown = margins_of(table), is_ranked.sum(axis=0), _shown(table)
    stay = np.zeros(2)
    for rows in row_blocks(len(some), 8 * n * n):
        without = (
            margins - pair_signs(some[rows]),
            n_ranked - some_ranked[rows],
            n_shown - (some[rows] != ABSENT),
        )
        stay += [count[rows] @ stays for stays in _stays(*without, places, n_first)]
    whole, first = (stay / m).tolist()
    return whole, first


def _shown(table: Levels) -> Numbers:
    return np.asarray((table != ABSENT).sum(axis=0))


def _with_unranked_last(margins: Margins, n_ranked: Numbers) -> Margins:
    """Let every item that somebody ranked win against every one that nobody did."""
    wins = (n_ranked > 0)[:, :, None] & (n_ranked == 0)[:, None, :]
    forced = np.where(wins, np.maximum(margins, 1), margins)
    return np.where(wins.transpose(0, 2, 1), -forced.transpose(0, 2, 1), forced)


def _tied_places(margins: Margins) -> Numbers:
    """Return where the tie of each item begins; the items are numbered as they stand."""
    n = margins.shape[1]
    number = np.arange(n)
    told_apart = np.triu(margins != 0, 1)
    last = np.where(told_apart, number[:, None], -1).max(axis=1)
    places = np.zeros(last.shape, np.int64)
    for item in range(1, n):
        begin = places[:, item - 1]
        places[:, item] = np.where(last[:, item] >= begin, item, begin)
    return places


# -------------------------------------------------------------------- leaving out


def _stays(
    margins: Margins, n_ranked: Numbers, n_shown: Numbers, places: Numbers, n_first: int
) -> tuple[Bools, Bools]:
    """Whether each of several tallies shows the places of a consensus: all, and the first."""
    order = np.argsort(places, kind="stable")
    left = _with_unranked_last(margins, n_ranked)[:, order[:, None], order]
    is_whole = np.all(n_shown > 0, axis=1)
    n = len(places)
    begins = places < n_first
    yes, no = _decided(left, places[order], n)
    yes_first, no_first = _decided(left, places[order], int(begins.sum()))
    whole, first = yes & is_whole, yes_first & is_whole
    open_ = np.flatnonzero(~(whole | no) | ~(first | no_first))
    for rows in row_blocks(open_.size, 8 * n * n):
        some = open_[rows]
        found = shown_places(margins[some], n_ranked[some], n_shown[some])
        whole[some] = np.all(found == places, axis=1)
        found_begins = (found < n_first) & (found != ABSENT)
        same = np.where(begins, found == places, ~found_begins)
        first[some] = np.all(same, axis=1)
    return whole, first


def _decided(left: Margins, places: Numbers, k: int) -> tuple[Bools, Bools]:
    """Whether margins alone say that the first k items stay as they are, or that they do not.

    The items are numbered as they stand. The k-th ends a tie.
    """
    tied = places[:, None] == places
    is_open = np.any(left[:, :k, :k][:, tied[:k, :k]], axis=1)
    ahead = np.triu(~tied, 1)[:k]
    # Every best order begins so if each of these beats all that come after.
    wins = np.all(left[:, :k][:, ahead] > 0, axis=1)
    no: Bools = is_open
    # What is searched for is the best up to moves: of one arrangement, and ties have many.
    if len(places) <= solver.MOST_SOLVED or np.array_equal(tied[:k, :k], np.eye(k, dtype=bool)):
        no = no | _a_move_helps(left[:, :k, :k])
    return np.asarray(wins & ~is_open), np.asarray(no)


def _a_move_helps(left: Margins) -> Bools:
    """Whether moving a single item to another place gives a better order.

    Moving i behind j costs the margins of i over all from i + 1 to j; moving j before i costs
    those of all from i to j - 1 over j.
    """
    ahead = np.triu(left, 1)
    behind = np.cumsum(ahead, axis=2)
    before = np.cumsum(ahead[:, ::-1], axis=1)
    return np.asarray(np.any(behind < 0, axis=(1, 2)) | np.any(before < 0, axis=(1, 2)))

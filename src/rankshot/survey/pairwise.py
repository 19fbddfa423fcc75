"""What answers say of each pair of items: one before the other, after it, or neither."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.ranking.kemeny_solvers import improve_by_insertion
from rankshot.ranking.layouts import ABSENT

Levels = NDArray[np.int32]
Signs = NDArray[np.int8]
Margins = NDArray[np.int64]
Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
MOST_SOLVED = 15
"""Of so many items in one circle of majorities all sets are enumerated. Of more, an order is
shown that moving a single item does not improve."""


# -------------------- survey.pair_signs
# What answers say of each pair of items: one before the other, after it, or neither.


def pair_signs(table: Levels) -> Signs:
    """Return s: ``s[r, i, j]`` is 1 if r has i before j, -1 if after, 0 if neither.

    An item that an answer could not rank is `ABSENT`, and before and after nothing.

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


def margins_of(table: Levels) -> Margins:
    """Return how many more answers have item i before j than after it.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.

    Examples
    --------
    >>> margins_of(np.array([[0, 1, 1], [0, 1, 2], [1, 0, 2]])).tolist()
    [[0, 1, 3], [-1, 0, 2], [-3, -2, 0]]
    """
    n = table.shape[1]
    margins = np.zeros((n, n), np.int64)
    for rows in row_blocks(len(table), n * n):
        margins += pair_signs(table[rows]).sum(axis=0, dtype=np.int64)
    return margins


# -------------------- survey.best_orders
# Kemeny's order of many small tables of margins at once.
#
# `rankshot.kemeny` orders one set of rankings. Leaving out every answer of a survey in turn makes
# hundreds of tables that differ little, and these are ordered together.


def best_orders(margins: Margins) -> Numbers:
    """Return Kemeny's order of the items in each of several tables; see `shown_places`.

    Items that beat one another in a circle are a problem of their own, and the circles follow
    one another at no cost (Condorcet's principle, extended).

    Parameters
    ----------
    margins : ndarray of shape (t, n, n)

    Examples
    --------
    2 beats 0 by the least of a circle, 0 > 1 > 2 > 0; and 3 beats all.

    >>> best_orders(np.array([[[0, 5, -3, -1], [-5, 0, 4, -1], [3, -4, 0, -1], [1, 1, 1, 0]]]))
    array([[3, 0, 1, 2]])
    """
    # From here on items are numbered by their margins over all others, then as they were.
    number = np.argsort(-margins.sum(axis=2), axis=1, kind="stable")
    margins = arranged(margins, number)
    reached = _reached(margins > 0)
    circle = reached & reached.transpose(0, 2, 1)
    head = circle.argmax(axis=2)
    n = margins.shape[1]
    # Whoever reaches another circle reaches more than that one does. A circle stays together.
    order = np.argsort(-reached.sum(axis=2) * n + head, axis=1, kind="stable")
    size = np.where(head == np.arange(n), circle.sum(axis=2), 0)
    for length in np.unique(size[size > 2]).tolist():
        table, first = np.nonzero(size == length)
        items = np.nonzero(circle[table, first])[1].reshape(-1, length)
        begin = np.nonzero(order[table] == first[:, None])[1]
        among = margins[table[:, None, None], items[:, :, None], items[:, None, :]]
        best = np.take_along_axis(items, _circle_orders(np.maximum(among, 0)), axis=1)
        order[table[:, None], begin[:, None] + np.arange(length)] = best
    return np.take_along_axis(number, order, axis=1)


def arranged(margins: Margins, order: Numbers) -> Margins:
    """Return the tables with their items numbered as they stand in the orders."""
    rows = np.arange(len(margins))[:, None, None]
    return margins[rows, order[:, :, None], order[:, None, :]]


def _reached(beats: Bools) -> Bools:
    """Return which items can be reached by steps from winners to losers; each reaches itself."""
    n = beats.shape[1]
    reached = beats | np.eye(n, dtype=bool)
    for _ in range(max(n - 1, 1).bit_length()):
        # Products of floats are much quicker than those of anything else.
        steps = reached.astype(np.float32)
        reached = steps @ steps > 0
    return reached


def _circle_orders(W: Margins) -> Numbers:
    n = W.shape[1]
    if n > MOST_SOLVED:
        return np.array([improve_by_insertion(one.astype(float), np.arange(n)) for one in W])
    blocks = row_blocks(len(W), n << n)
    return np.concatenate([_first_best_orders(W[rows]) for rows in blocks])


def _first_best_orders(W: Margins) -> Numbers:
    """Return, of the best orders of each table, the first in the order of the dictionary.

    Whichever item of a set comes first, it reverses the weights of the others before it, and
    the rest of the set is ordered as well as can be. Item i is in set s if bit i of s is set.
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

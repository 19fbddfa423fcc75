"""Local search for Kemeny's consensus, on the matrix of precedences alone.

An order is an array of item numbers, best first; ``W[i, j]`` is the weight of the rankings
that place i before j. The searches start from the order 0, 1, 2, …
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Items = NDArray[np.intp]

MAX_SWAPS = 1000
SHAKEN = 12
TOLERANCE = 1e-12
"""Gains that are smaller than this part of the largest weight are rounding errors."""


def reversed_weight(W: Floats, order: Items) -> float:
    """Return Kemeny's score: the weight of all pairs that the order reverses."""
    return float(np.tril(W[np.ix_(order, order)], -1).sum())


def adjacent_search(W: Floats) -> Items:
    """Swap the two neighbours that lower the score most, until none does (the paper's search)."""
    order = np.arange(len(W))
    excess = W.T - W
    for _ in range(MAX_SWAPS):
        gain = excess[order[:-1], order[1:]]
        best = int(np.argmax(gain)) if gain.size else 0
        if not gain.size or gain[best] <= TOLERANCE * excess.max():
            break
        order[best], order[best + 1] = order[best + 1], order[best]
    return order


def settled(W: Floats, order: Items) -> Items:
    """Move single items to where they cost least, until none wants to move."""
    order = order.copy()
    _settle_all(W - W.T, order, np.random.default_rng(0))
    return order


def insertion_search(W: Floats) -> Items:
    """Move single items to where they cost least, and shake stretches of the order.

    After the first local optimum, a stretch of `SHAKEN` neighbours is shuffled and its items
    are settled again; the result is kept unless it is worse. The shaking is seeded: the same
    precedences always give the same order.
    """
    C = len(W)
    rng = np.random.default_rng(0)
    excess = W - W.T
    order = np.arange(C)
    _settle_all(excess, order, rng)
    for _ in range(C // 2):
        order = _shaken(excess, order, rng)
    _settle_all(excess, order, rng)
    return order


def _settle_all(excess: Floats, order: Items, rng: np.random.Generator) -> None:
    while _settle(excess, order, rng.permutation(len(order)).tolist()) > 0:
        pass


def _settle(excess: Floats, order: Items, items: list[int]) -> float:
    """Move each of ``items`` to its best place, in turn and in place; return what was gained.

    Behind its first r competitors an item costs the sum of its excesses over them.
    """
    gained = 0.0
    least_gain = TOLERANCE * len(order) * float(excess.max())
    for item in items:
        cost = excess[item].take(order).cumsum()
        here = int((order == item).argmax())
        best = int(cost.argmin())
        least = float(cost[best])
        if least >= 0:
            best, least = -1, 0.0
        gain = float(cost[here]) - least
        if gain <= least_gain:
            continue
        gained += gain
        if best < here:
            order[best + 2 : here + 1] = order[best + 1 : here].copy()
            order[best + 1] = item
        else:
            order[here:best] = order[here + 1 : best + 1].copy()
            order[best] = item
    return gained


def _shaken(excess: Floats, order: Items, rng: np.random.Generator) -> Items:
    trial = order.copy()
    begin = int(rng.integers(0, max(len(order) - SHAKEN, 0) + 1))
    stretch = trial[begin : begin + SHAKEN]
    before = _stretch_cost(excess, stretch)
    rng.shuffle(stretch)
    loss = _stretch_cost(excess, stretch) - before
    items = stretch.tolist()
    while (gained := _settle(excess, trial, items)) > 0:
        loss -= gained
    return trial if loss <= 0 else order


def _stretch_cost(excess: Floats, stretch: Items) -> float:
    # The excess counts a pair's two sides against each other, so twice.
    return float(np.tril(excess[np.ix_(stretch, stretch)], -1).sum()) / 2

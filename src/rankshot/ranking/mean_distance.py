"""Kendall's distance where ties mean that nobody knows: its mean over what they allow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.arguments import refuse_partial, require_rankings
from rankshot.ranking.blocks import levels, row_blocks
from rankshot.ranking.columns import checked_lengths
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]


def mean_kendall_distance(a: Rankings, b: Rankings | None = None, k: int | None = None) -> Floats:
    r"""Return the matrix of mean top-k Kendall distances between rankings of ``a`` and of ``b``.

    A tie stands for every strict order of its items, each as likely as the others; what a list
    leaves out is tied after its last item. The distance is the mean of `kendall_distance` over
    the strict top-k lists that two rankings allow, drawn independently. Without ties it *is*
    that distance. With ties the two differ: Hausdorff's distance takes the worst case, so that
    a ranking with large ties is far from every strict one.

    Between strict top-k lists the distance counts pairs of items in opposite orders, and pairs
    that the first list leaves out and the second does not. Its mean needs only the chance of
    each pair to stand in one order, or to be left out, in either ranking.

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings are refused.
    k : int, optional
        Compare the first k; all by default.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c"], [["a", "b", "c"]]], items=["a", "b", "c"])
    >>> rs.mean_kendall_distance(r)
    array([[0. , 1.5],
           [1.5, 1.5]])
    >>> rs.kendall_distance(r)
    array([[0., 3.],
           [3., 0.]])
    """
    first = require_rankings(a)
    second = first if b is None else require_rankings(b).with_items(a.items)
    for rankings in (first, second):
        refuse_partial(rankings, "no distance is defined between rankings of different items")
    C = first.n_items
    k = C if k is None else int(checked_lengths(k, 1, C)[0])
    distance = np.empty((len(first), len(second)))
    for rows in row_blocks(len(first), 4 * C * C):
        before_a, out_a = _chances(first[rows], k)
        for columns in row_blocks(len(second), 4 * C * C):
            before_b, out_b = _chances(second[columns], k)
            opposite = _products(before_a, before_b.transpose(0, 2, 1))
            left_by_first = _products(out_a, _off_diagonal(1 - out_b)) / 2
            distance[rows, columns] = opposite + left_by_first
    return distance


def _chances(rankings: Rankings, k: int) -> tuple[Floats, Floats]:
    """Return how likely i is before j in the first k, and how likely both are beyond."""
    level = levels(rankings)
    n, C = level.shape
    sizes = np.zeros((n, C + 1))
    np.add.at(sizes, (np.arange(n)[:, None], level), 1)
    placed = np.cumsum(sizes, axis=1) - sizes
    size, taken = (
        np.take_along_axis(table, level, axis=1) for table in (sizes, np.clip(k - placed, 0, sizes))
    )
    earlier = level[:, :, None] < level[:, None, :]
    same = _off_diagonal(level[:, :, None] == level[:, None, :])
    # Of s tied items m are listed: a pair of them is both, one or none of these.
    pairs = np.maximum(size * (size - 1), 1)
    within = (taken * (taken - 1) / 2 + taken * (size - taken)) / pairs
    beyond = (size - taken) * (size - taken - 1) / pairs
    share = taken / size
    before = earlier * share[:, :, None] + same * within[:, :, None]
    missed = earlier * (1 - share)[:, :, None]
    out = missed + missed.transpose(0, 2, 1) + same * beyond[:, :, None]
    return before, out


def _off_diagonal(table: NDArray[Any]) -> NDArray[Any]:
    """Set what compares an item with itself to zero, in place."""
    i = np.arange(table.shape[1])
    table[:, i, i] = 0
    return table


def _products(x: Floats, y: Floats) -> Floats:
    return np.asarray(x.reshape(len(x), -1) @ y.reshape(len(y), -1).T)

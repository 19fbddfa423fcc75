"""Distances other than Kendall's: footrule, Spearman, Cayley, Hamming; and rank-biased overlap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_number, require_whole_number
from rankshot.ranking.checks import describe_ranking, refuse_partial, require_rankings
from rankshot.ranking.distances.inversions import is_strict
from rankshot.ranking.layouts import levels
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# ---- Sums over the places of items


def footrule_distance(a: Rankings, b: Rankings | None = None, k: int | None = None) -> Floats:
    r"""Return the matrix of Spearman's footrule distances between rankings of ``a`` and ``b``.

    For full rankings it is the sum over the items of how far apart their places are,
    :math:`\sum_i |a(i) - b(i)|`. A ranking with ties, and a top-K list, stands for all full
    rankings that refine it, and the distance is the Hausdorff distance between the two sets, as
    for `kendall_distance` (Critchlow 1985). The most distant refinements break the ties of one by
    the reversed other, and then those of the other by the first (Fagin et al. 2006).

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings are refused.
    k : int, optional
        Compare only the first k of each; a tie that k cuts is kept whole.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    References
    ----------
    Critchlow (1985), Metric methods for analyzing partially ranked data. Springer.
    Fagin, Kumar, Mahdian, Sivakumar and Vee (2006), Comparing partial rankings. SIAM J. Discrete
    Mathematics 20.

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"], ["a"]])
    >>> rs.ranking.footrule_distance(r)
    array([[0., 4., 2.],
           [4., 0., 4.],
           [2., 4., 0.]])
    """
    return _compare_places(a, b, k, "cityblock", lambda x, y: np.abs(x - y).sum(axis=1))


def spearman_distance(a: Rankings, b: Rankings | None = None, k: int | None = None) -> Floats:
    r"""Return the matrix of Spearman's distances between the rankings of ``a`` and of ``b``.

    For full rankings it is :math:`\sum_i (a(i) - b(i))^2`, from which Spearman's correlation is
    :math:`1 - 6 d / (C^3 - C)`. Ties and top-K lists are compared as in `footrule_distance`.

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings are refused.
    k : int, optional
        Compare only the first k of each; a tie that k cuts is kept whole.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]])
    >>> rs.ranking.spearman_distance(r)
    array([[0., 8.],
           [8., 0.]])
    """
    return _compare_places(a, b, k, "sqeuclidean", lambda x, y: ((x - y) ** 2).sum(axis=1))


def _compare_places(
    a: Rankings,
    b: Rankings | None,
    k: int | None,
    metric: str,
    compare: Callable[[Ints, Ints], Any],
) -> Floats:
    first, second = _require_both(a, b)
    if k is not None:
        k = require_whole_number("k", k, most=first.n_items)
        first, second = first.top(k), second.top(k)
    levels_a, levels_b = levels(first).astype(np.int64), levels(second).astype(np.int64)
    if is_strict(first) and is_strict(second):
        return np.asarray(cdist(levels_a, levels_b, metric))
    distance = np.empty((len(first), len(second)))
    for i, level in enumerate(levels_a):
        for columns in row_blocks(len(second), 4 * first.n_items):
            others = levels_b[columns]
            one = np.broadcast_to(level, others.shape)
            distance[i, columns] = np.maximum(
                compare(_break_ties(one, -others), _break_ties(others, one)),
                compare(_break_ties(one, others), _break_ties(others, -one)),
            )
    return distance


def _break_ties(table: Ints, by: Ints) -> Ints:
    """Return places without ties: those of ``table``, its ties by ``by``, then by number."""
    order = np.argsort(table * (2 * np.abs(by).max(initial=0) + 1) + by, axis=1, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(order.shape[1])[None], axis=1)
    return places


# ---- Permutations


def cayley_distance(a: Rankings, b: Rankings | None = None) -> Floats:
    """Return the matrix of Cayley distances between the rankings of ``a`` and of ``b``.

    It is the least number of swaps of any two items that turns one ranking into the other: C minus
    the number of cycles of the permutation between them.

    Parameters
    ----------
    a, b : Rankings
        Full rankings without ties, over the same items; ``b`` is ``a`` by default.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c", "d"], ["d", "b", "c", "a"]])
    >>> rs.ranking.cayley_distance(r)
    array([[0., 1.],
           [1., 0.]])
    """
    first, second = _require_both(a, b)
    places_a, places_b = (_require_permutations(r, "Cayley") for r in (first, second))
    orders = np.argsort(places_a, axis=1)
    distance = np.empty((len(first), len(second)))
    for i, order in enumerate(orders):
        for columns in row_blocks(len(second), 4 * first.n_items):
            labels = label_cycles(places_b[columns][:, order])
            distance[i, columns] = (labels != np.arange(first.n_items)).sum(axis=1)
    return distance


def label_cycles(permutations: Ints) -> Ints:
    """Return the smallest element of the cycle of each element, for each row.

    Examples
    --------
    >>> label_cycles(np.array([[1, 0, 2], [1, 2, 0]]))
    array([[0, 0, 2],
           [0, 0, 0]])
    """
    n, C = permutations.shape
    labels = np.tile(np.arange(C), (n, 1))
    # After t steps a label is the smallest of 2^t elements in a row.
    for _ in range(int(C - 1).bit_length()):
        labels = np.minimum(labels, np.take_along_axis(labels, permutations, axis=1))
        permutations = np.take_along_axis(permutations, permutations, axis=1)
    return labels


def hamming_distance(a: Rankings, b: Rankings | None = None) -> Floats:
    """Return the matrix of Hamming distances: how many items have different places.

    Parameters
    ----------
    a, b : Rankings
        Full rankings without ties, over the same items; ``b`` is ``a`` by default.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c", "d"], ["d", "b", "c", "a"]])
    >>> rs.ranking.hamming_distance(r)
    array([[0., 2.],
           [2., 0.]])
    """
    first, second = _require_both(a, b)
    places = (_require_permutations(r, "Hamming") for r in (first, second))
    return np.asarray(np.round(cdist(*places, "hamming") * first.n_items))


def _require_permutations(rankings: Rankings, name: str) -> Ints:
    return require_places(
        rankings,
        f"the {name} distance is defined for permutations alone. Use Kendall's, the footrule or "
        "Spearman's distance",
    )


def require_places(rankings: Rankings, why: str) -> Ints:
    """Return the place of every item, from 0, or raise for a ranking that is not full or has ties.

    The last item of a top-K ranking need not be listed.
    """
    refuse_partial(rankings, why)
    short = rankings.n_listed < rankings.n_items - 1
    if (short | rankings.rows_with_ties).any():
        row = int((short | rankings.rows_with_ties).argmax())
        problem = "does not order all items" if short[row] else "has ties"
        raise RankshotError(f"{describe_ranking(rankings, row)} {problem}: {why}")
    return levels(rankings).astype(np.int64)


# ---- Rank-biased overlap


def rank_biased_overlap(a: Rankings, b: Rankings | None = None, p: float = 0.9) -> Floats:
    r"""Return the matrix of rank-biased overlaps between the rankings of ``a`` and of ``b``.

    It is a similarity from 0 (no item in common) to 1 (the same list), and the first places count
    most: with :math:`A_d` the agreement of the first d items of both lists, the share that they
    have in common, it is

    .. math:: (1 - p) \sum_{d=1}^\infty p^{d-1} A_d.

    Lists end. Their agreement after that is extrapolated: the unseen items of the shorter list
    agree as often as its last depth does, and after the end of the longer list the agreement stays
    the same (RBO_ext, equation 32 of Webber et al.). Tied items all occur at the first of their
    places, and the agreement is twice the number of common items, divided by the number of items
    of both lists to that depth. Only the listed items count: a top-K list says nothing of places
    after K here.

    Parameters
    ----------
    a, b : Rankings
        Over the same items; ``b`` is ``a`` by default. Subset rankings are refused: an item that
        was not compared is not an item that comes later.
    p : float
        Between 0 and 1: how much depth matters. The first 10 places have 86 % of the weight for
        p = 0.9.

    Returns
    -------
    ndarray of shape (len(a), len(b))

    References
    ----------
    Webber, Moffat and Zobel (2010), A similarity measure for indefinite rankings. ACM
    Transactions on Information Systems 28.

    Examples
    --------
    >>> import rankshot as rs
    >>> r = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a"]], items=["a", "b", "c", "d"])
    >>> rs.rank_biased_overlap(r).round(3)
    array([[1. , 0.9],
           [0.9, 1. ]])
    """
    p = require_number("p", p, above=0, below=1)
    first, second = _require_both(a, b)
    depth = max(int(r.n_listed.max(initial=1)) for r in (first, second))
    begins_a, begins_b = (_first_places(r, depth) for r in (first, second))
    seen_a, seen_b = (_count_by_depth(table, depth) for table in (begins_a, begins_b))
    overlap = np.empty((len(first), len(second)))
    for i in range(len(first)):
        for some in row_blocks(len(second), 4 * first.n_items):
            common = _count_by_depth(np.maximum(begins_a[i], begins_b[some]), depth)
            sizes = np.broadcast_to(first.n_listed[i], common.shape[:1]), second.n_listed[some]
            overlap[i, some] = _extrapolate(common, seen_a[i] + seen_b[some], *sizes, p)
    return overlap


def _first_places(rankings: Rankings, depth: int) -> Ints:
    """Return the place of each item, that of the first of its tie, from 0; ``depth`` if absent."""
    table = levels(rankings)
    listed = np.zeros(table.shape, bool)
    listed[rankings.entry_rows, rankings.codes] = True
    sizes = np.zeros((len(table), rankings.n_items + 1), np.int64)
    np.add.at(sizes, (np.arange(len(table))[:, None], table), 1)
    begins = np.take_along_axis(np.cumsum(sizes, axis=1) - sizes, table, axis=1)
    return np.where(listed, begins, depth)


def _count_by_depth(begins: Ints, depth: int) -> Ints:
    """Return how many items have begun at depth 1, at depth 2, and so on."""
    n = len(begins)
    cells = np.arange(n)[:, None] * (depth + 1) + begins
    counts = np.bincount(cells.ravel(), minlength=n * (depth + 1)).reshape(n, depth + 1)
    return np.cumsum(counts[:, :-1], axis=1)


def _extrapolate(common: Ints, seen: Ints, size_a: Ints, size_b: Ints, p: float) -> Floats:
    """Return RBO_ext from the common items and the items of both lists to each depth."""
    short, long = np.minimum(size_a, size_b)[:, None], np.maximum(size_a, size_b)[:, None]
    depth = np.arange(1, common.shape[1] + 1)
    agreement = 2 * common / seen
    at_short = np.take_along_axis(agreement, short - 1, axis=1)
    # After its end, the shorter list goes on with items of which this share is common.
    missing = np.maximum(depth - short, 0)
    agreement = 2 * (common + at_short * missing) / (seen + missing)
    last = np.take_along_axis(agreement, long - 1, axis=1)[:, 0]
    weights = np.where(depth <= long, p ** (depth - 1.0), 0.0)
    return np.asarray((1 - p) * (weights * agreement).sum(axis=1) + last * p ** long[:, 0])


def _require_both(a: Rankings, b: Rankings | None) -> tuple[Rankings, Rankings]:
    first = require_rankings(a)
    second = first if b is None else require_rankings(b).with_items(a.items)
    for rankings in (first, second):
        refuse_partial(rankings, "no distance is defined between rankings of different items")
    return first, second

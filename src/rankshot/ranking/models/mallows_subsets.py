r"""The likelihood of subset rankings in the Mallows model with Kendall's distance.

A subset ranking orders m of the C items. Its probability is the sum over all full rankings with
that order. The model inserts the items in the order of the centre, one after the other: the i-th
passes over V of the i - 1 items before it with probability e^{-λV} / φ_i(λ). So the items that the
centre ranks before or after all m of them have no influence, and what matters of a ranking of the
first i items is only which of its i places belong to items of the subset. The sum goes through
these sets of places: binomial(i, t) of them after t items of the subset. For two items there is a
closed form.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations, product
from math import comb, factorial, perm
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import binom

from rankshot.core.errors import RankshotError
from rankshot.ranking.matrices import iterate_choices, rows_with_tied_choices
from rankshot.ranking.models.mallows_likelihood import (
    MallowsStatistics,
    log_phi,
    pole_remainder,
    rank_items,
)
from rankshot.ranking.parts import describe_ranking
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_ORDERS = 5040
"""A ranking with ties may allow at most this many strict orders."""
MOST_WORK = 50_000_000
"""The sums over sets of places may have at most this many terms."""
UNLISTED = -1
SAFE_SUM = 1e-250
"""Smaller sums of probabilities may have lost terms that are too small for a number."""
LEAST_LOG = float(np.finfo(float).min)
"""Stands for the logarithm of 0 where -∞ less itself would be no number."""


def find_partial(rankings: Rankings) -> NDArray[np.bool_]:
    """Tell which rankings compare only some of the items."""
    return np.asarray(rankings.is_subset & (rankings.n_listed < rankings.n_items))


def log_prob_with_subsets(rankings: Rankings, center: tuple[str, ...], spread: float) -> Floats:
    """Return the log-probability of each ranking, of all items or of a subset."""
    partial = find_partial(rankings)
    rank = rank_items(center, rankings.items)
    result = np.empty(len(rankings))
    result[~partial] = MallowsStatistics(rankings[~partial], rank).log_prob(spread)
    if partial.any():
        result[partial] = SubsetOrders(rankings[partial], rank).log_prob(spread)
    return result


def fit_spread_with_subsets(rankings: Rankings, center: tuple[str, ...]) -> tuple[float, float]:
    """Return the spread of the largest likelihood, and its logarithm.

    It is searched on a grid, then between the neighbours of the best point: with subset rankings
    the log-likelihood need not be concave.
    """
    partial = find_partial(rankings)
    rank = rank_items(center, rankings.items)
    sums = MallowsStatistics(rankings[~partial], rank).add_up(rankings.weights[~partial])
    subsets, weights = SubsetOrders(rankings[partial], rank), rankings.weights[partial]
    counted = weights > 0

    def value(spread: float) -> float:
        found = subsets.log_prob(spread)[counted]
        return sums.log_likelihood(spread) + float(weights[counted] @ found)

    if sums.least_cost() == 0 and subsets.agree()[counted].all():
        return np.inf, value(np.inf)
    grid = [0.0, *(0.02 * 2.0 ** np.arange(9))]
    values = [value(spread) for spread in grid]
    while values[-1] == max(values):
        grid.append(2 * grid[-1])
        values.append(value(grid[-1]))
    best = int(np.argmax(values))
    bounds = (grid[max(best - 1, 0)], grid[best + 1])
    found = minimize_scalar(lambda x: -value(x), bounds=bounds, options={"xatol": 1e-10})
    inside = float(found.x), -float(found.fun)
    return max(inside, (grid[best], values[best]), key=lambda pair: pair[1])


class _Part(NamedTuple):
    """Rankings of one size: order number ``which`` of ``orders`` is one of ranking ``nth``."""

    rows: Ints
    nth: Ints
    which: Ints
    orders: _Insertions | _Pairs


class SubsetOrders:
    """The strict orders that subset rankings allow, by what their probability depends on.

    Parameters
    ----------
    rankings : Rankings
        Subset rankings.
    rank : ndarray of shape (C,)
        The rank of each item in the centre, from 0.
    """

    def __init__(self, rankings: Rankings, rank: Ints) -> None:
        self._n = len(rankings)
        self._shares = np.ones(self._n)
        rows, orders = self._list_orders(rankings)
        self._agrees = np.zeros(self._n, bool)
        self._parts: list[_Part] = []
        sizes = np.array([order.shape[1] for order in orders])
        for size in np.unique(sizes).tolist():
            same = np.flatnonzero(sizes == size)
            row = np.concatenate([rows[i] for i in same])
            ranks = rank[np.concatenate([orders[i] for i in same])]
            self._agrees[row[(np.diff(ranks, axis=1) > 0).all(axis=1)]] = True
            # One item alone has one order: its probability is 1.
            if size > 1:
                distinct, which = np.unique(_describe_orders(ranks), axis=0, return_inverse=True)
                kind = _Pairs if size == 2 else _Insertions
                some, nth = np.unique(row, return_inverse=True)
                self._parts.append(_Part(some, nth, which.ravel(), kind(distinct)))

    def _list_orders(self, rankings: Rankings) -> tuple[list[Ints], list[NDArray[Any]]]:
        """Return the rows and the orders of item numbers, in parts of one length."""
        rows: list[Ints] = []
        orders: list[NDArray[Any]] = []
        loose = np.zeros(len(rankings), bool)
        loose[rows_with_tied_choices(rankings)] = True
        loose |= rankings.lengths < rankings.n_listed - 1
        for size in np.unique(rankings.n_listed[~loose]).tolist():
            these = np.flatnonzero(~loose & (rankings.n_listed == size))
            rows.append(these)
            orders.append(rankings.codes[rankings.starts[these][:, None] + np.arange(size)])
        for row in np.flatnonzero(loose).tolist():
            allowed, self._shares[row] = _refine(rankings, row)
            rows.append(np.full(len(allowed), row))
            orders.append(allowed)
        return rows, orders

    def agree(self) -> NDArray[np.bool_]:
        """Tell which rankings allow the order of the centre."""
        return self._agrees

    def log_prob(self, spread: float) -> Floats:
        """Return the log-probability of each ranking."""
        result = np.log(self._shares)
        for part in self._parts:
            log_probs = part.orders.log_probabilities(spread)[part.which]
            largest = np.full(part.rows.size, LEAST_LOG)
            np.maximum.at(largest, part.nth, log_probs)
            scaled = np.bincount(part.nth, np.exp(log_probs - largest[part.nth]))
            with np.errstate(divide="ignore"):
                result[part.rows] += np.log(scaled) + largest
        return result


def _refine(rankings: Rankings, row: int) -> tuple[Ints, float]:
    """Return all strict orders that a ranking allows, and the share of each of its strict lists.

    Every order inside a tie is equally likely. The items after the first K have any order.
    """
    ranking = rankings[row]
    choices = list(iterate_choices(ranking))
    n_lists = 1
    for items, taken in choices:
        n_lists *= perm(len(items), taken)
    left = ranking.codes.size - sum(taken for _, taken in choices)
    if n_lists * factorial(left) > MOST_ORDERS:
        raise RankshotError(
            f"{describe_ranking(rankings, row)} compares a subset of the items, and its ties allow "
            f"more than {MOST_ORDERS:,} orders: Mallows sums over each of them. Use PlackettLuce"
        )
    every = set(ranking.codes.tolist())
    orders = []
    for parts in product(*(permutations(items.tolist(), taken) for items, taken in choices)):
        first = sum(parts, ())
        rest = sorted(every - set(first))
        orders += [first + last for last in permutations(rest)]
    return np.array(orders), 1 / n_lists


def _describe_orders(ranks: Ints) -> Ints:
    """Return what the probability of each order depends on, in the order of the centre.

    First how many items lie between neighbours of the subset in the centre; then, for each item
    of the subset but the first, how many of those before it in the centre are preferred to it.
    """
    preference = np.argsort(ranks, axis=1)
    between = np.diff(np.sort(ranks, axis=1), axis=1) - 1
    preferred = preference[:, :, None] < preference[:, None, :]
    before = np.triu(np.ones(preferred.shape[1:], bool), 1)
    return np.hstack([between, (preferred & before).sum(axis=1)[:, 1:]])


# ---- Two items


class _Pairs:
    """Orders of two items, with some items of the centre between them.

    With n items from one to the other, the probability that the centre's order is reversed is
    (n - 1) / (e^{(n-1)λ} - 1) - n / (e^{nλ} - 1).
    """

    def __init__(self, described: Ints) -> None:
        self._sizes: Floats = described[:, 0].astype(float) + 2
        self._agrees = described[:, 1] == 1

    def log_probabilities(self, spread: float) -> Floats:
        """Return the log-probability of each order."""
        n = self._sizes
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # The formula without its factor e^{-(n-1)λ}, which can be too small for a number.
            far = (1 - n) / np.expm1((1 - n) * spread) + n * np.exp(-spread) / np.expm1(-n * spread)
            # The poles of the two terms at zero cancel.
            near = 0.5 - n * pole_remainder(n * spread) + (n - 1) * pole_remainder((n - 1) * spread)
            reverse = np.where(n * spread > 1, np.log(far) - (n - 1) * spread, np.log(near))
            return np.where(self._agrees, np.log1p(-np.exp(reverse)), reverse)


# ---- More items: insert the items of the centre one after the other


class _Terms(NamedTuple):
    """What the sums are made of: numbers, or their logarithms.

    ``powers[v]`` is e^{-λv}, ``phi[m]`` is φ_m, and ``inverse_phi[m]`` is 1 / φ_{m+1}. ``times``
    and ``plus`` multiply and add two of them.
    """

    powers: Floats
    phi: Floats
    inverse_phi: Floats
    times: np.ufunc
    plus: np.ufunc
    zero: float


class _Insertions:
    """Orders of three or more items, as `_describe_orders` returns them."""

    def __init__(self, described: Ints) -> None:
        n, m = len(described), described.shape[1] // 2 + 1
        ends = np.cumsum(described[:, : m - 1] + 1, axis=1)
        width = int(ends.max()) + 1
        # One column per item of the centre from the first of the subset on: how many items of the
        # subset before it are preferred to it, or `UNLISTED`.
        self._ways = np.full((n, width), UNLISTED)
        self._ways[:, 0] = 0
        self._ways[np.arange(n)[:, None], ends] = described[:, m - 1 :]
        self._listed = np.cumsum(self._ways >= 0, axis=1)
        self._last = ends[:, -1]
        # Orders that begin alike share a number, in each column, and their sums.
        self._begins = np.zeros((n, width), np.int64)
        for i in range(1, width):
            both = self._begins[:, i - 1] * (m + 1) + self._ways[:, i] + 1
            self._begins[:, i] = np.unique(both, return_inverse=True)[1]
        self._refuse_long_sums(m)

    def _refuse_long_sums(self, m: int) -> None:
        work = 0
        for i in range(1, self._ways.shape[1]):
            for ends in (False, True):
                some = (self._last == i) if ends else (self._last > i)
                first = np.unique(self._begins[some, i], return_index=True)[1]
                for t in self._listed[some, i][first].tolist():
                    work += comb(i, t - 1) if ends else comb(i + 1, t) * (t + 1)
            if work > MOST_WORK:
                raise RankshotError(
                    f"Mallows sums over the places of the {m} items of a subset among the items "
                    f"between them in the centre: here over more than {MOST_WORK:,} sets of "
                    "places. Use PlackettLuce, rank all items, or give shorter lists"
                )

    def log_probabilities(self, spread: float) -> Floats:
        """Return the log-probability of each order.

        Sums of logarithms take twice as long, and are needed only for very improbable orders.
        """
        passed = np.arange(1, self._ways.shape[1] + 1)
        powers = np.append(0.0, -spread * passed)
        phi = np.append(-np.inf, log_phi(spread, passed))
        plain = _Terms(np.exp(powers), np.exp(phi), np.exp(-phi[1:]), np.multiply, np.add, 0.0)
        found = self._sum(plain, 1.0)
        if found.min() < SAFE_SUM and spread < np.inf:
            return self._sum(_Terms(powers, phi, -phi[1:], np.add, np.logaddexp, -np.inf), 0.0)
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(found))

    def _sum(self, terms: _Terms, one: float) -> Floats:
        n, width = self._ways.shape
        result = np.empty(n)
        # One row of sums over sets of places for each way to begin.
        sums = {0: np.array([one])}
        for i in range(1, width):
            before, sums = sums, {}
            steps = np.column_stack([self._ways[:, i], self._listed[:, i]])
            for way, t in np.unique(steps[self._last >= i], axis=0).tolist():
                some = (steps == (way, t)).all(axis=1) & (self._last >= i)
                ends = some & (self._last == i)
                if ends.any():
                    begins, which = np.unique(self._begins[ends, i - 1], return_inverse=True)
                    rows = np.array([before[b] for b in begins.tolist()])
                    products = terms.times(rows, _last_weights(i, t - 1, way, terms))
                    made = terms.plus.reduce(products, axis=1)
                    result[ends] = terms.times(made, terms.inverse_phi[i])[which]
                goes_on = some & ~ends
                if goes_on.any():
                    begins, first = np.unique(self._begins[goes_on, i - 1], return_index=True)
                    rows = np.array([before[b] for b in begins.tolist()])
                    made = terms.times(_insert(rows, i, t, way, terms), terms.inverse_phi[i])
                    sums.update(zip(self._begins[goes_on, i][first].tolist(), made, strict=True))
        return result


def _insert(rows: Floats, i: int, t: int, way: int, terms: _Terms) -> Floats:
    """Return the sums over the sets of t of i + 1 places, after an insertion among i items.

    Sets are numbered by Σ binomial(p_u, u), with places p_1 < p_2 < … < p_t from 0: this is how
    the set is found from which an insertion leads to a given one.
    """
    sets = _list_sets(i + 1, t)
    if way != UNLISTED:
        # The listed item is the one at place p_way, and the later ones were one place before.
        source = _number(sets[:, :way]) + _number(sets[:, way + 1 :] - 1, begin=way + 1)
        return np.asarray(terms.times(rows[:, source], terms.powers[i - sets[:, way]]))
    padded = np.pad(sets, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, i + 1)))
    result = np.full((len(rows), len(sets)), terms.zero)
    for gap in range(t + 1):
        size = padded[:, gap + 1] - padded[:, gap] - 1
        some = np.flatnonzero(size > 0)
        source = _number(sets[some, :gap]) + _number(sets[some, gap:] - 1, begin=gap + 1)
        weights = terms.times(terms.powers[i + 1 - padded[some, gap + 1]], terms.phi[size[some]])
        result[:, some] = terms.plus(result[:, some], terms.times(rows[:, source], weights))
    return result


def _last_weights(i: int, t: int, way: int, terms: _Terms) -> Floats:
    """Return the weight of each set of t of i places when the last listed item comes."""
    padded = np.pad(_list_sets(i, t), ((0, 0), (1, 1)), constant_values=((0, 0), (-1, i)))
    begin, end = padded[:, way], padded[:, way + 1]
    return np.asarray(terms.times(terms.powers[i - end], terms.phi[end - begin]))


def _number(places: Ints, begin: int = 1) -> Ints:
    """Return Σ binomial(p_u, u) of each row, where u counts from ``begin``."""
    size = np.arange(begin, begin + places.shape[1])
    return np.asarray(np.rint(binom(places, size)).sum(axis=1).astype(np.int64))


@lru_cache(maxsize=64)
def _list_sets(n: int, t: int) -> Ints:
    """Return all sets of t of n places, sorted by their numbers.

    Examples
    --------
    >>> _list_sets(3, 2).tolist()
    [[0, 1], [0, 2], [1, 2]]
    """
    if t == 0:
        return np.zeros((1, 0), np.int64)
    last = np.arange(t - 1, n)
    counts = np.array([comb(p, t - 1) for p in last.tolist()])
    rows = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.column_stack([_list_sets(n - 1, t - 1)[rows], np.repeat(last, counts)])

r"""The Mallows model: the farther a ranking is from the centre, the less probable it is.

The model draws a ranking stage by stage (Fligner and Verducci 1986). At a stage with m items
left, V of them that the centre prefers to the one drawn are passed over, with probability
e^{-λV} / φ_m(λ), φ_m(λ) = 1 + e^{-λ} + … + e^{-(m-1)λ}.

A tie of g items allows g! orders. The other items that the centre prefers cost the same in
each order, and the orders inside the tie sum to φ_1 φ_2 … φ_g. Where K cuts the tie, so that
only m of the g are drawn, the sum over the choices of m goes through the tie in the centre's
order, in g steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import InputError
from rankshot.core.estimators import Estimator, check_is_fitted
from rankshot.core.validation import (
    Seed,
    as_names,
    require_choice,
    require_generator,
    require_number,
    require_whole_number,
    require_whole_numbers,
)
from rankshot.ranking.consensus.kemeny import METHODS, kemeny
from rankshot.ranking.consensus.precedence import average_order
from rankshot.ranking.construction import count_places
from rankshot.ranking.rankings import (
    Rankings,
    keep_counted,
    merge_copies,
    refuse_partial,
    require_one_subject,
    require_rankings,
    require_sample_length,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FAR = 1024.0
"""A spread at which only the centre, or rankings that ties make equal to it, are possible."""
NO_SUBSETS = "Mallows cannot be fitted to such rankings; use PlackettLuce"


class Mallows(Estimator):
    r"""The Mallows model of full and top-K rankings, ties included, with Kendall's distance.

    The probability of a full ranking is :math:`e^{-\lambda d(\pi, \pi_0)} / \varphi(\lambda)`. That
    of a top-K ranking (equation 11 of Hamm and Belkin (2015), after Fligner and Verducci) is

    .. math:: P(\pi; \pi_0, \lambda) = \frac{1}{\varphi(\lambda)} e^{-\lambda \sum_{j=1}^K V_j}

    where V_j counts the items still unplaced at stage j that the centre π₀ prefers to the one
    placed. Lists of different lengths may be mixed: each has its own normaliser. A tie means
    that the order of its items is unknown and every order is equally likely; the sum over the
    orders is exact. Subset rankings raise an error: `PlackettLuce` accepts them.

    Parameters
    ----------
    method : {"insertion", "exact", "adjacent", "borda"}
        How the centre is found. The maximum-likelihood centre is Kemeny's consensus, so
        ``"exact"`` gives a provably optimal maximum-likelihood estimate; see `kemeny`. ``"borda"``
        orders the items by average place.

    Attributes
    ----------
    items_ : tuple of str
    center_ : tuple of str
        The centre π₀: all items, best first; for top-K rankings one of several (see the notes).
    spread_ : float
        The spread λ; infinite if all rankings agree with the centre.
    mode_ : tuple of str
        The same as ``center_``.
    log_likelihood_ : float
        The log-likelihood of the rankings that were fitted.

    Notes
    -----
    In a tie that K cuts, each item is among the first K with some probability, which is its weight
    in the consensus. The centre is then close to the maximum-likelihood centre, but not always
    equal to it.

    The maximum-likelihood centre of top-K lists is often not unique, and one of the best orders is
    returned. The order of the items that no list contains has no influence on the likelihood: they
    are sorted by name, after all others. Listed items can often change places as well: there were
    several best orders in each of 54 small fits to lists with K = 2.

    References
    ----------
    Fligner and Verducci (1986), Distance based ranking models. JRSS B 48.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "c", "b"], ["b", "a"]], items=["a", "b", "c"])
    >>> model = rs.Mallows().fit(votes)
    >>> model.center_, round(model.spread_, 4)
    (('a', 'b', 'c'), 1.0443)
    """

    def __init__(
        self, *, method: Literal["insertion", "exact", "adjacent", "borda"] = "insertion"
    ) -> None:
        self.method = method

    @classmethod
    def from_center(cls, center: Sequence[str], spread: float) -> Mallows:
        """Fitted model with a ``center`` (all items, best first) and a ``spread``.

        Examples
        --------
        >>> from rankshot import Mallows
        >>> Mallows.from_center(["b", "a"], spread=0.5).mode_
        ('b', 'a')
        """
        spread = require_number("spread", spread, least=0)
        names = as_names(center, "center")
        return cls()._with_center(names, names, spread)

    def fit(self, rankings: Rankings) -> Mallows:
        """Find the centre, then the spread that makes the rankings most probable.

        Parameters
        ----------
        rankings : Rankings or dict of lists
            Full or top-K rankings; their weights are used.
        """
        rankings = require_one_subject(rankings)
        require_choice("method", self.method, (*METHODS, "borda"))
        refuse_partial(rankings, NO_SUBSETS)
        if self.method == "borda":
            center = average_order(rankings)
        else:
            center = cast("tuple[str, ...]", kemeny(rankings, self.method).order)
        statistics = MallowsStatistics(merge_copies(keep_counted(rankings))[0], center)
        self._with_center(rankings.items, center, best_spread(statistics))
        self.log_likelihood_ = float(statistics.weights @ statistics.log_prob(self.spread_))
        return self

    def _with_center(
        self, items: tuple[str, ...], center: tuple[str, ...], spread: float
    ) -> Mallows:
        self.items_ = items
        self.center_ = self.mode_ = center
        self.spread_ = spread
        return self

    def log_prob(self, rankings: Rankings) -> Floats:
        """Log-probability of each ranking."""
        check_is_fitted(self)
        rankings = require_rankings(rankings).with_items(self.items_)
        return MallowsStatistics(rankings, self.center_).log_prob(self.spread_)

    def sample(self, n: int = 1, k: int | None = None, random_state: Seed = None) -> Rankings:
        """Draw ``n`` top-``k`` rankings (full by default), with the seed ``random_state``.

        The draws are exact (repeated insertion): the numbers V_j are independent, and each has a
        geometric distribution that is truncated at the number of items left.

        Examples
        --------
        >>> from rankshot import Mallows
        >>> model = Mallows.from_center(["a", "b", "c"], spread=3.0)
        >>> model.sample(2, random_state=0)
        Rankings: 2 rankings of 3 items
          a > b > c
          a > b > c
        """
        check_is_fitted(self)
        C = len(self.items_)
        k = require_sample_length(n, k, C)
        rng = require_generator(random_state)
        code = {name: i for i, name in enumerate(self.items_)}
        center = np.array([code[name] for name in self.center_], np.int32)
        lists, left = np.empty((n, k), np.int32), np.arange(C, C - k, -1)[:, None]
        # The inverse of the truncated geometric distribution has limits at 0 and infinity.
        spread = min(max(self.spread_, 1e-300), 1e300)
        for rows in row_blocks(n, C):
            share = rng.random((k, rows.stop - rows.start))
            passed = np.log1p(share * np.expm1(-spread * left)) / -spread
            # Rounding can give the number after the last item.
            passed = np.minimum(passed.astype(np.int32), left - 1)
            lists[rows] = center[_place(passed, C)].T
        return Rankings.from_item_numbers(lists, items=self.items_)


# ---- The likelihood


def mallows_log_normalizer(spread: float, n_items: int, k: ArrayLike | None = None) -> Floats:
    r"""Log φ(λ), which is Σ_{j=1}^K log (1 - e^{-(C-j+1)λ}) / (1 - e^{-λ}).

    Parameters
    ----------
    spread : float
        λ, from 0 (all rankings are equally likely) to infinity (only the centre is possible).
    n_items : int
        C.
    k : int or array of int, optional
        Lengths of the lists; C by default.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.ranking import mallows_log_normalizer
    >>> np.exp(mallows_log_normalizer(0.0, 4, [1, 2, 4])).round(6)
    array([ 4., 12., 24.])
    """
    spread = require_number("spread", spread, least=0)
    n_items = require_whole_number("n_items", n_items, least=0)
    lengths = require_whole_numbers("k", n_items if k is None else k)
    if np.any((lengths < 0) | (lengths > n_items)):
        raise InputError("k", k, f"must be from 0 to {n_items}, the number of items")
    of_stages = np.cumsum(log_phi(spread, n_items)[::-1])
    return np.asarray(np.append(0.0, of_stages)[lengths])


def log_phi(spread: float, n_items: int) -> Floats:
    """Log φ_m(λ) for the stage sizes m = 1, …, ``n_items``."""
    return np.asarray(np.log(np.cumsum(np.exp(-_times(spread, np.arange(n_items))))))


def mean_passed(spread: float, n_items: int) -> Floats:
    """E[V] at stages of the sizes m = 1, …, ``n_items``."""
    passed = np.arange(n_items)
    weights = np.exp(-_times(spread, passed))
    return np.asarray(np.cumsum(passed * weights) / np.cumsum(weights))


class MallowsStatistics:
    """What the probability of each ranking depends on, given the centre.

    Attributes
    ----------
    distance : ndarray of shape (n,)
        Σ V_j, without pairs of items of one tie, and without ties that K cuts.
    cuts : list of (rows, taken, passed)
        Ties of one size of which the same number, ``taken``, belongs to the first K.
        ``passed[t, i]`` counts the items outside the tie, still unplaced, that the centre prefers
        to the tie's i-th item; ties are sorted by the centre.
    """

    def __init__(self, rankings: Rankings, center: tuple[str, ...]) -> None:
        refuse_partial(rankings, NO_SUBSETS)
        place = {name: i for i, name in enumerate(center)}
        rank = np.array([place[name] for name in rankings.items])
        n = len(rankings)
        self.n_items, self.lengths = rankings.n_items, rankings.lengths
        self.weights = rankings.weights
        passed = _count_passed(rankings, rank)
        groups = rankings.groups
        begin, size, row, taken = groups
        whole = np.repeat(taken == size, size)
        self.distance = np.bincount(rankings.entry_rows[whole], passed[whole], minlength=n)
        tied = (size > 1) & (taken > 0)
        self.tied_taken, self.tied_row = taken[tied], row[tied]
        self.log_ways = np.bincount(row, gammaln(size + 1) - gammaln(size - taken + 1), minlength=n)
        self.cuts: list[tuple[Ints, int, Ints]] = []
        for g, m in np.unique(np.column_stack([size, taken])[groups.is_cut], axis=0).tolist():
            these = np.flatnonzero((size == g) & (taken == m))
            entries = (rankings.starts[row[these]] + begin[these])[:, None] + np.arange(g)
            by_centre = np.argsort(rank[rankings.codes[entries]], axis=1)
            sorted_entries = np.take_along_axis(entries, by_centre, axis=1)
            self.cuts.append((row[these], m, passed[sorted_entries]))

    def log_prob(self, spread: float) -> Floats:
        """Log-probability of each ranking."""
        result = -_times(spread, self.distance)
        own = np.append(0.0, np.cumsum(log_phi(spread, self.n_items)))
        np.add.at(result, self.tied_row, own[self.tied_taken])
        for rows, taken, passed in self.cuts:
            result[rows] += _log_drawn(spread, taken, passed)[0]
        normalizer = mallows_log_normalizer(spread, self.n_items, self.lengths)
        return np.asarray(result - normalizer - self.log_ways)

    def slope(self, spread: float) -> float:
        """Derivative of the weighted log-likelihood in the spread."""
        mean = np.append(0.0, np.cumsum(mean_passed(spread, self.n_items)))
        # K stages of sizes C, C - 1, …; the orders inside a tie have stages 1, 2, …
        slope = self.weights @ (mean[-1] - mean[self.n_items - self.lengths] - self.distance)
        slope -= self.weights[self.tied_row] @ mean[self.tied_taken]
        for rows, taken, passed in self.cuts:
            slope -= self.weights[rows] @ _log_drawn(spread, taken, passed)[1]
        return float(slope)


def _count_passed(rankings: Rankings, rank: Ints) -> Ints:
    """Return, for every entry, how many items the centre prefers to it come after it.

    Tied items do not come after one another.
    """
    entry_rank = rank[rankings.codes]
    gone = np.empty(rankings.codes.size, np.int64)
    longest = int(rankings.n_listed.max(initial=1))
    for rows in row_blocks(len(rankings), longest):
        block = rankings[rows]
        ends = slice(rankings.starts[rows.start], rankings.starts[rows.stop])
        column = block.entry_rows
        place = count_places(block.starts)
        # One column per ranking, filled up with items that the centre places last.
        ranks = np.full((longest, len(block)), rankings.n_items, np.int32)
        ranks[place, column] = entry_rank[ends]
        places = np.full((longest, len(block)), longest, np.int32)
        places[place, column] = block.places
        counts = np.zeros((longest, len(block)), np.int64)
        for q in range(longest):
            counts[q] = ((ranks < ranks[q]) & (places <= places[q])).sum(axis=0)
        gone[ends] = counts[place, column]
    return np.asarray(entry_rank - gone)


def _log_drawn(spread: float, taken: int, passed: Ints) -> tuple[Floats, Floats]:
    """Log Σ e^{-λ cost} over the choices of m from each tie, and the mean cost.

    The sum goes through the tie in the centre's order. If j of the first t items were drawn, the
    next one, if drawn, passes over t - j items of the tie and over ``passed`` items outside it.
    """
    n, size = passed.shape
    log_sum = np.full((taken + 1, n), -np.inf)
    log_sum[0] = 0
    mean = np.zeros((taken + 1, n))
    for t in range(size):
        j = np.arange(taken)[:, None]
        cost = passed[:, t] + np.maximum(t - j, 0)
        drawn = log_sum[:-1] - _times(spread, cost)
        total = np.logaddexp(log_sum[1:], drawn)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isneginf(total), 0.0, np.exp(drawn - total))
        mean[1:] = (1 - share) * mean[1:] + share * (mean[:-1] + cost)
        log_sum[1:] = total
    return log_sum[-1], mean[-1]


def _times(spread: float, cost: Ints | Floats) -> Floats:
    """λ cost, with 0 for no cost even at an infinite spread."""
    with np.errstate(invalid="ignore"):
        return np.where(cost > 0, spread * cost, 0.0)


def best_spread(statistics: MallowsStatistics) -> float:
    """Find the root of the slope, which decreases: the log-likelihood is concave."""
    if statistics.slope(0.0) <= 0:
        return 0.0
    # So far out, only the least cost is left of the slope: 0 if all rankings agree.
    if statistics.slope(FAR) >= 0:
        return np.inf
    high = 1.0
    while statistics.slope(high) > 0:
        high *= 2
    return float(brentq(statistics.slope, 0.0, high, xtol=1e-14, rtol=1e-14))


# ---- Sampling


def _place(passed: Ints, n_items: int) -> NDArray[np.intp]:
    """Centre's ranks of the items placed, one row per stage.

    V_j numbers an item among those left at stage j. To go back one stage, the item placed there
    is put back among them: all later numbers from its own on increase by one.
    """
    # The smallest integers that can hold the rank of any item are the fastest.
    small = np.uint8 if n_items <= 256 else np.uint32
    ranks = passed.astype(small)
    for j in range(len(ranks) - 2, -1, -1):
        later = ranks[j + 1 :]
        np.add(later, later >= ranks[j], out=later)
    return ranks.astype(np.intp)

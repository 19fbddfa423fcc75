"""The likelihood of the Mallows model, and the sums over rankings from which it is fitted.

The model draws a ranking stage by stage (Fligner and Verducci 1986). At a stage with m items
left, V of them that the centre prefers to the one drawn are passed over, with probability
e^{-λV} / φ_m(λ), φ_m(λ) = 1 + e^{-λ} + … + e^{-(m-1)λ}.

A tie of g items allows g! orders. The other items that the centre prefers cost the same in
each order, and the orders inside the tie sum to φ_1 φ_2 … φ_g. Where K cuts the tie, so that
only m of the g are drawn, the sum over the choices of m goes through the tie in the centre's
order, in g steps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import gammaln

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import (
    require_choice,
    require_number,
    require_whole_number,
    require_whole_numbers,
)
from rankshot.ranking.matrices import group_by_place
from rankshot.ranking.models.mallows_distances import DISTANCES, normalize
from rankshot.ranking.parts import refuse_partial
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]


def mallows_log_normalizer(
    spread: float, n_items: int, k: ArrayLike | None = None, *, distance: str = "kendall"
) -> Floats:
    r"""Return log φ(λ), which is Σ_{j=1}^K log (1 - e^{-(C-j+1)λ}) / (1 - e^{-λ}) for Kendall's.

    Parameters
    ----------
    spread : float
        λ, from 0 (all rankings are equally likely) to infinity (only the centre is possible).
    n_items : int
        C.
    k : int or array of int, optional
        Lengths of the lists; C by default, and for other distances than Kendall's.
    distance : {"kendall", "footrule", "spearman", "cayley", "hamming"}
        That of the model; see `Mallows`.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot import mallows_log_normalizer
    >>> np.exp(mallows_log_normalizer(0.0, 4, [1, 2, 4])).round(6)
    array([ 4., 12., 24.])
    >>> float(mallows_log_normalizer(0.1, 50, distance="footrule").round(4))
    91.3432
    """
    spread = require_number("spread", spread, least=0)
    n_items = require_whole_number("n_items", n_items, least=0)
    if require_choice("distance", distance, ("kendall", *DISTANCES)) != "kendall":
        if k is not None:
            raise RankshotError(f"k is for distance='kendall', not {distance!r}")
        return np.asarray(normalize(distance, spread, n_items).log)
    lengths = require_whole_numbers("k", n_items if k is None else k)
    if np.any((lengths < 0) | (lengths > n_items)):
        raise RankshotError(f"k={short_repr(k)} is not between 0 and the {n_items} items")
    by_stage = log_phi(spread, np.arange(n_items, 0, -1))
    return np.asarray(np.append(0.0, np.cumsum(by_stage))[lengths])


def log_phi(spread: float, sizes: NDArray[np.int64]) -> Floats:
    """Return log φ_m(λ) for every stage size m."""
    if spread == 0:
        return np.asarray(np.log(sizes))
    return np.asarray(np.log(-np.expm1(-spread * sizes)) - np.log(-np.expm1(-spread)))


def mean_passed(spread: float, sizes: NDArray[np.int64]) -> Floats:
    """Return E[V] at stages of size m: 1/(e^λ - 1) - m/(e^{mλ} - 1), exact for small λ, too."""
    m = sizes.astype(float)
    if spread < 0.5:
        # The poles of the two terms at zero cancel.
        return (m - 1) / 2 + pole_remainder(np.array([spread])) - m * pole_remainder(spread * m)
    with np.errstate(over="ignore"):
        return np.asarray(1 / np.expm1(spread) - m / np.expm1(spread * m))


def pole_remainder(x: Floats) -> Floats:
    """Return 1/(e^x - 1) - 1/x + 1/2, whose poles cancel, by its series near zero."""
    small = np.abs(x) < 0.1
    safe = np.where(small, 1.0, x)
    with np.errstate(over="ignore"):
        direct = 1 / np.expm1(safe) - 1 / safe + 0.5
    series = x / 12 * (1 - x**2 / 60 * (1 - x**2 / 42 * (1 - x**2 / 40)))
    return np.where(small, series, direct)


class CutTies(NamedTuple):
    """Ties of one size of which the same number, ``taken``, belongs to the first K.

    ``rows`` are their rankings. ``passed[t, i]`` counts the items outside the tie, still
    unplaced, that the centre prefers to the tie's i-th item; ties are sorted by the centre.
    """

    taken: int
    rows: NDArray[np.int64]
    passed: NDArray[np.int64]


class WeightedCutTies(NamedTuple):
    """The same for ties of many rankings: each differs from the others, and has a weight."""

    taken: int
    weights: Floats
    passed: NDArray[np.int64]


class MallowsStatistics:
    """What the probability of each ranking depends on, given the centre.

    Parameters
    ----------
    rankings : Rankings
        Top-K rankings.
    rank : ndarray of shape (C,)
        The rank of each item in the centre, from 0.

    Attributes
    ----------
    distance : ndarray of shape (n,)
        Σ V_j, without pairs of items of one tie, and without ties that K cuts.
    """

    def __init__(self, rankings: Rankings, rank: NDArray[np.int64]) -> None:
        refuse_partial(
            rankings,
            "Mallows takes such rankings only in memory. If they fit, give rankings.compute()",
        )
        n = len(rankings)
        self.n_items = rankings.n_items
        self.lengths = rankings.lengths
        passed = _count_passed(rankings, rank)
        begin, size, row = group_by_place(rankings)
        taken = np.clip(rankings.lengths[row] - begin, 0, size)
        whole = np.repeat(taken == size, size)
        self.distance = np.bincount(rankings.entry_rows[whole], passed[whole], minlength=n)
        tied = (size > 1) & (taken > 0)
        self.tied_taken, self.tied_row = taken[tied], row[tied]
        self.log_ways = np.bincount(row, gammaln(size + 1) - gammaln(size - taken + 1), minlength=n)
        self.cuts: list[CutTies] = []
        cut = (taken > 0) & (taken < size)
        for g, m in np.unique(np.column_stack([size, taken])[cut], axis=0).tolist():
            these = np.flatnonzero(cut & (size == g) & (taken == m))
            entries = (rankings.starts[row[these]] + begin[these])[:, None] + np.arange(g)
            by_centre = np.argsort(rank[rankings.codes[entries]], axis=1)
            sorted_entries = np.take_along_axis(entries, by_centre, axis=1)
            self.cuts.append(CutTies(m, row[these], passed[sorted_entries]))

    def log_prob(self, spread: float) -> Floats:
        """Return the log-probability of each ranking."""
        result = -_times(spread, self.distance)
        own = np.append(0.0, np.cumsum(log_phi(spread, np.arange(1, self.n_items + 1))))
        np.add.at(result, self.tied_row, own[self.tied_taken])
        for cut in self.cuts:
            result[cut.rows] += _log_drawn(spread, cut)[0]
        normalizer = mallows_log_normalizer(spread, self.n_items, self.lengths)
        return np.asarray(result - normalizer - self.log_ways)

    def add_up(self, weights: Floats) -> MallowsSums:
        """Return the sufficient statistics of all rankings for the spread."""
        n = self.n_items + 1
        return MallowsSums(
            float(weights @ self.distance),
            np.bincount(self.lengths, weights, minlength=n).astype(float),
            np.bincount(self.tied_taken, weights[self.tied_row], minlength=n).astype(float),
            float(weights @ self.log_ways),
            tuple(
                _merge_equal(WeightedCutTies(cut.taken, weights[cut.rows], cut.passed))
                for cut in self.cuts
            ),
        )


@dataclass(frozen=True)
class MallowsSums:
    """The sufficient statistics of weighted rankings for the spread, given the centre.

    Attributes
    ----------
    distance, log_ways : float
        The sums of those of the rankings.
    by_length : ndarray of shape (C + 1,)
        The weight of the rankings of each length.
    by_tie : ndarray of shape (C + 1,)
        The weight of the ties of which each number of items was drawn.
    cuts : tuple of WeightedCutTies
        Ties that K cuts, with their weights; equal ones are merged.
    """

    distance: float
    by_length: Floats
    by_tie: Floats
    log_ways: float
    cuts: tuple[WeightedCutTies, ...]

    def __add__(self, other: MallowsSums) -> MallowsSums:
        return MallowsSums(
            self.distance + other.distance,
            self.by_length + other.by_length,
            self.by_tie + other.by_tie,
            self.log_ways + other.log_ways,
            _join_cuts(self.cuts + other.cuts),
        )

    def log_likelihood(self, spread: float) -> float:
        """Return the weighted sum of `MallowsStatistics.log_prob`."""
        n_items = len(self.by_length) - 1
        own = np.append(0.0, np.cumsum(log_phi(spread, np.arange(1, n_items + 1))))
        normalizers = mallows_log_normalizer(spread, n_items, np.arange(n_items + 1))
        value = float(self.by_tie @ own - self.by_length @ normalizers) - self.log_ways
        value -= float(_times(spread, np.array(self.distance)))
        return value + sum(float(cut.weights @ _log_drawn(spread, cut)[0]) for cut in self.cuts)

    def slope(self, spread: float) -> float:
        """Return the derivative of the log-likelihood in the spread."""
        sizes = np.arange(1, len(self.by_length))
        mean = np.append(0.0, np.cumsum(mean_passed(spread, sizes)))
        # K stages of sizes C, C - 1, …; the orders inside a tie have stages 1, 2, …
        slope = float(self.by_length @ (mean[-1] - mean[::-1]) - self.by_tie @ mean)
        slope -= self.distance
        return slope - sum(float(cut.weights @ _log_drawn(spread, cut)[1]) for cut in self.cuts)

    def least_cost(self) -> float:
        """Return the least distance to the centre that ties allow; 0 means that all agree."""
        return self.distance + sum(float(cut.weights @ _least_drawn(cut)) for cut in self.cuts)


def _merge_equal(cut: WeightedCutTies) -> WeightedCutTies:
    """Merge equal ties and add up their weights; those of weight 0 are left out."""
    counted = cut.weights > 0
    passed, which = np.unique(cut.passed[counted], axis=0, return_inverse=True)
    weights = np.bincount(which.ravel(), cut.weights[counted], minlength=len(passed)).astype(float)
    return WeightedCutTies(cut.taken, weights, passed)


def _join_cuts(cuts: tuple[WeightedCutTies, ...]) -> tuple[WeightedCutTies, ...]:
    """Merge ties of one size and number taken into one value."""
    by_shape: dict[tuple[int, int], list[WeightedCutTies]] = {}
    for cut in cuts:
        by_shape.setdefault((cut.taken, cut.passed.shape[1]), []).append(cut)
    return tuple(
        _merge_equal(
            WeightedCutTies(
                taken,
                np.concatenate([cut.weights for cut in same]),
                np.concatenate([cut.passed for cut in same]),
            )
        )
        for (taken, _), same in by_shape.items()
    )


def rank_items(center: tuple[str, ...], items: tuple[str, ...]) -> NDArray[np.int64]:
    """Return the rank of each item in the centre, from 0."""
    place = {name: i for i, name in enumerate(center)}
    return np.array([place[name] for name in items])


def add_up_statistics(rankings: Rankings, center: tuple[str, ...]) -> MallowsSums:
    """Return the sufficient statistics of rankings for the spread around a centre."""
    return MallowsStatistics(rankings, rank_items(center, rankings.items)).add_up(rankings.weights)


def _count_passed(rankings: Rankings, rank: NDArray[np.int64]) -> NDArray[np.int64]:
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
        place = np.arange(column.size) - block.starts[column]
        # One column per ranking, filled up with items that the centre places last.
        ranks = np.full((longest, len(block)), rankings.n_items, np.int32)
        ranks[place, column] = entry_rank[ends]
        places = np.full((longest, len(block)), longest, np.int32)
        places[place, column] = block.places
        counts = np.zeros((longest, len(block)), np.int64)
        for q in range(longest):
            if rankings.has_ties:
                counts[q] = ((ranks < ranks[q]) & (places <= places[q])).sum(axis=0)
            else:
                counts[q] = (ranks[:q] < ranks[q]).sum(axis=0)
        gone[ends] = counts[place, column]
    return np.asarray(entry_rank - gone)


def _log_drawn(spread: float, cut: CutTies | WeightedCutTies) -> tuple[Floats, Floats]:
    """Return log Σ e^{-λ cost} over the choices of m from each tie, and the mean cost.

    The sum goes through the tie in the centre's order. If j of the first t items were drawn, the
    next one, if drawn, passes over t - j items of the tie and over ``passed`` items outside it.
    """
    n, size = cut.passed.shape
    log_sum = np.full((cut.taken + 1, n), -np.inf)
    log_sum[0] = 0
    mean = np.zeros((cut.taken + 1, n))
    for t in range(size):
        j = np.arange(cut.taken)[:, None]
        cost = cut.passed[:, t] + np.maximum(t - j, 0)
        drawn = log_sum[:-1] - _times(spread, cost)
        total = np.logaddexp(log_sum[1:], drawn)
        with np.errstate(invalid="ignore"):
            share = np.where(np.isneginf(total), 0.0, np.exp(drawn - total))
        mean[1:] = (1 - share) * mean[1:] + share * (mean[:-1] + cost)
        log_sum[1:] = total
    return log_sum[-1], mean[-1]


def _least_drawn(cut: WeightedCutTies) -> Floats:
    """Return the least cost of drawing m from each tie, by the same recursion."""
    least = np.full((cut.taken + 1, len(cut.passed)), np.inf)
    least[0] = 0
    for t in range(cut.passed.shape[1]):
        others = np.maximum(t - np.arange(cut.taken)[:, None], 0)
        least[1:] = np.minimum(least[1:], least[:-1] + cut.passed[:, t] + others)
    drawn: Floats = least[-1]
    return drawn


def _times(spread: float, cost: NDArray[np.int64] | Floats) -> Floats:
    """Return λ cost, with 0 for no cost even at an infinite spread."""
    with np.errstate(invalid="ignore"):
        return np.where(cost > 0, spread * cost, 0.0)


def best_spread(sums: MallowsSums) -> float:
    """Find the root of the slope, which decreases: the log-likelihood is concave."""
    if sums.slope(0.0) <= 0:
        return 0.0
    if sums.least_cost() == 0:
        return np.inf
    high = 1.0
    while sums.slope(high) > 0:
        high *= 2
    return float(brentq(sums.slope, 0.0, high, xtol=1e-14, rtol=1e-14))

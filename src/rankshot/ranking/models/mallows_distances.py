r"""Mallows models of full rankings with distances other than Kendall's.

All of these distances depend only on the permutation between a ranking and the centre: they do not
change if both rename their items in the same way. So the normaliser, the sum of e^{-λd} over all
permutations, does not depend on the centre, and samples around the identity serve any centre. A
permutation is an array of places: the place, from 0, of the item that the centre ranks r-th.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, linear_sum_assignment
from scipy.special import gammaln, logsumexp

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.ranking.consensus.precedence import average_order
from rankshot.ranking.distances import cayley_distance, label_cycles, require_places
from rankshot.ranking.parts import (
    AnyRankings,
    RankingParts,
    keep_counted_part,
    merge_copies,
    reduce_parts,
    with_items,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
SPEARMAN_ITEMS = 18
"""The sum over all sets of places, of which there are 2^C, is exact up to this many items."""
ENUMERATED_ITEMS = 6
"""Up to this many items, all centres are tried for Cayley's distance."""
DIGITS = 12
"""Mean distances that agree to so many decimals are the same, but for rounding."""


class Normalizer(NamedTuple):
    """log φ(λ), and the mean distance, which is minus its derivative."""

    log: float
    mean: float


class RankDistance(NamedTuple):
    """What a Mallows model needs of a distance.

    ``measure`` returns the distances of permutations to the identity, ``normalize(spread, C)`` the
    normaliser, ``draw(spread, C, n, rng)`` permutations, ``find_center`` the best centre.
    """

    measure: Callable[[Ints], Ints]
    normalize: Callable[[float, int], Normalizer]
    draw: Callable[[float, int, int, np.random.Generator], Ints]
    find_center: Callable[[AnyRankings], tuple[str, ...]]


class FullSums(NamedTuple):
    """The sums of the weighted distances to a centre, and of the weights."""

    distance: float
    weight: float


def add_up_distances(rankings: Rankings, center: tuple[str, ...], name: str) -> FullSums:
    """Return the sufficient statistics of full rankings for the spread around a centre."""
    distance = measure_distances(rankings, center, name)
    return FullSums(float(rankings.weights @ distance), float(rankings.weights.sum()))


def measure_distances(rankings: Rankings, center: tuple[str, ...], name: str) -> Ints:
    """Return the distance of each full ranking to the centre."""
    return DISTANCES[name].measure(_require_full(rankings.with_items(center), name))


def _require_full(rankings: Rankings, name: str) -> Ints:
    return require_places(
        rankings,
        f"Mallows(distance={name!r}) has a likelihood for full rankings without ties alone. Use "
        "distance='kendall', or PlackettLuce",
    )


def normalize(name: str, spread: float, n_items: int) -> Normalizer:
    """Return log φ(λ) and the mean distance; an infinite spread leaves only the centre."""
    if np.isinf(spread):
        return Normalizer(0.0, 0.0)
    return DISTANCES[name].normalize(spread, n_items)


def log_prob_full(rankings: Rankings, center: tuple[str, ...], spread: float, name: str) -> Floats:
    """Return the log-probability of each full ranking."""
    distance = measure_distances(rankings, center, name)
    cost = np.where(distance > 0, spread * np.maximum(distance, 1), 0.0)
    return np.asarray(-cost - normalize(name, spread, rankings.n_items).log)


def fit_spread(sums: FullSums, name: str, n_items: int) -> tuple[float, float]:
    """Return the spread whose mean distance is the mean of the rankings, and its log-likelihood."""
    wanted = sums.distance / sums.weight

    def excess(spread: float) -> float:
        return normalize(name, spread, n_items).mean - wanted

    if wanted == 0:
        return np.inf, 0.0
    spread, high = 0.0, 1.0
    if excess(0.0) > 0:
        while excess(high) > 0:
            high *= 2
        spread = float(brentq(excess, 0.0, high, xtol=1e-13, rtol=1e-13))
    log_normalizer = normalize(name, spread, n_items).log
    return spread, -spread * sums.distance - sums.weight * log_normalizer


def draw_permutations(
    name: str, spread: float, n_items: int, n: int, rng: np.random.Generator
) -> Ints:
    """Draw permutations around the identity."""
    if np.isinf(spread):
        return np.tile(np.arange(n_items), (n, 1))
    return DISTANCES[name].draw(spread, n_items, n, rng)


# ---- Centres


def _count_places(rankings: Rankings, name: str) -> Floats:
    """Return the weight of the rankings that give each item each place."""
    C = rankings.n_items
    places = _require_full(rankings, name)
    cells = np.arange(C) * C + places
    weights = np.repeat(rankings.weights, C)
    return np.bincount(cells.ravel(), weights, minlength=C * C).reshape(C, C).astype(float)


def _assign_places(
    rankings: AnyRankings, name: str, cost: Callable[[int], Floats]
) -> tuple[str, ...]:
    """Give each item a place so that the sum of the costs is smallest.

    ``cost(C)`` has one row per place that a ranking gives and one column per place in the centre.
    The items are first sorted by their average places, so that their numbers have no influence.
    """
    order = average_order(rankings)
    counts = reduce_parts(with_items(rankings, order), _count_places, name)
    _, place = linear_sum_assignment(counts @ cost(len(order)))
    return tuple(order[i] for i in np.argsort(place))


def _footrule_center(rankings: AnyRankings) -> tuple[str, ...]:
    return _assign_places(
        rankings, "footrule", lambda C: np.abs(np.subtract.outer(np.arange(C), np.arange(C))) * 1.0
    )


def _hamming_center(rankings: AnyRankings, name: str = "hamming") -> tuple[str, ...]:
    return _assign_places(rankings, name, lambda C: 1 - np.eye(C))


def _cayley_center(rankings: AnyRankings) -> tuple[str, ...]:
    """Try all centres of few items; else search from several starts, without proof."""
    if isinstance(rankings, RankingParts):
        raise RankshotError(
            "the centre for Cayley's distance is searched in memory, not in parts: if the rankings "
            "fit, give rankings.compute(), else method='borda' or another distance"
        )
    order = _hamming_center(rankings, "cayley")
    votes = merge_copies(keep_counted_part(rankings.with_items(order)))[0]
    # Means of distances can be rounded, so that equal ones are equal: they have no unit.
    shares = votes.weights / votes.weights.sum()
    places = _require_full(votes, "cayley")
    C = len(order)
    if C <= ENUMERATED_ITEMS:
        starts = np.array(list(permutations(range(C))), np.int32)
        every = Rankings.from_item_numbers(starts, items=order, trusted=True)
        best = starts[np.argmin(np.round(cayley_distance(every, votes) @ shares, DIGITS))]
        return tuple(order[i] for i in best)
    heaviest = np.argsort(-shares, kind="stable")[:5]
    starts = np.vstack([np.arange(C), np.argsort(places[heaviest], axis=1)])
    found = [_swap_items(places, shares, start) for start in starts]
    return tuple(order[i] for i in min(found, key=lambda pair: pair[0])[1])


def _swap_items(places: Ints, shares: Floats, center: Ints) -> tuple[float, Ints]:
    """Swap the two items of a centre that lower the distances most, until no swap does.

    A swap splits the cycle that has both items, which lowers the distance by one, or merges two
    cycles, which raises it by one.
    """
    center = center.copy()
    C = center.size
    while True:
        labels = label_cycles(places[:, center])
        together = np.zeros((C, C))
        for rows in row_blocks(len(labels), C * C):
            same = labels[rows, :, None] == labels[rows, None, :]
            together += np.tensordot(shares[rows], same, 1)
        together = np.triu(together, 1)
        i, j = np.unravel_index(int(together.argmax()), together.shape)
        if together[i, j] <= 0.5 + 1e-12:
            distance = (labels != np.arange(C)).sum(axis=1)
            return round(float(shares @ distance), DIGITS), center
        center[[i, j]] = center[[j, i]]


# ---- Cayley: C minus the number of cycles


def _measure_cayley(places: Ints) -> Ints:
    return np.asarray((label_cycles(places) != np.arange(places.shape[1])).sum(axis=1))


def _normalize_cayley(spread: float, n_items: int) -> Normalizer:
    """Return the product over j < C of 1 + j e^{-λ}."""
    weights = np.arange(1, n_items) * np.exp(-spread)
    return Normalizer(float(np.log1p(weights).sum()), float((weights / (1 + weights)).sum()))


def _draw_cayley(spread: float, n_items: int, n: int, rng: np.random.Generator) -> Ints:
    """Let each item stay, or swap it with one of those before it, which joins two cycles."""
    places = np.tile(np.arange(n_items), (n, 1))
    for j in range(1, n_items):
        weight = j * np.exp(-spread)
        rows = np.flatnonzero(rng.random(n) * (1 + weight) < weight)
        other = rng.integers(0, j, rows.size)
        places[rows, j], places[rows, other] = places[rows, other], places[rows, j]
    return places


# ---- Hamming: how many places differ


def _measure_hamming(places: Ints) -> Ints:
    return np.asarray((places != np.arange(places.shape[1])).sum(axis=1))


def _hamming_log_weights(spread: float, n_items: int) -> Floats:
    """Return log (C over d) D_d e^{-λd}, where D_d is the number of derangements of d items."""
    d = np.arange(n_items + 1)
    signed = np.where(d % 2 == 0, 1.0, -1.0) * np.exp(-gammaln(d + 1))
    with np.errstate(divide="ignore"):
        # D_d = d! Σ (-1)^i / i!, which is exactly 0 for d = 1.
        log_derangements = np.log(np.maximum(np.cumsum(signed), 0))
    return np.asarray(
        gammaln(n_items + 1) - gammaln(n_items - d + 1) + log_derangements - spread * d
    )


def _normalize_hamming(spread: float, n_items: int) -> Normalizer:
    log_weights = _hamming_log_weights(spread, n_items)
    log = float(logsumexp(log_weights))
    return Normalizer(log, float(np.exp(log_weights - log) @ np.arange(n_items + 1)))


def _draw_hamming(spread: float, n_items: int, n: int, rng: np.random.Generator) -> Ints:
    """Draw the distance, the items that change places, and a derangement of them."""
    log_weights = _hamming_log_weights(spread, n_items)
    chances = np.exp(log_weights - logsumexp(log_weights))
    number = rng.choice(n_items + 1, n, p=chances / chances.sum())
    column = np.arange(n_items)
    moved = np.argsort(rng.random((n, n_items)), axis=1)
    taken = np.tile(column, (n, 1))
    left = np.flatnonzero(number > 0)
    # A random order is a derangement with a probability of about 1/e: the others are drawn again.
    while left.size:
        keys = np.where(column < number[left, None], rng.random((left.size, n_items)), column + 1.0)
        taken[left] = np.argsort(keys, axis=1)
        fixed = (taken[left] == column) & (column < number[left, None])
        left = left[fixed.any(axis=1)]
    places = np.empty((n, n_items), np.int64)
    np.put_along_axis(places, moved, np.take_along_axis(moved, taken, axis=1), axis=1)
    return places


# ---- Footrule: the sum of |place - rank|
#
# Go through the ranks and the places 1, 2, …, C together. After step i, k of the first i items
# have a place after i, and k of the first i places belong to later items. Each of them reaches over
# the border between i and i + 1, so that the distance is the sum of 2k over all steps. From k, the
# next item and the next place may both stay open (k + 1, in one way); one of them may be matched
# with an open one (k, in 2k ways) or they with each other (k, in one way); or both may be matched
# with open ones (k - 1, in k² ways). So the sum over all permutations takes C²/2 steps. These are
# the weighted Motzkin paths of Guay-Paquet and Petersen (2014), The generating function for total
# displacement.


def _measure_footrule(places: Ints) -> Ints:
    return np.asarray(np.abs(places - np.arange(places.shape[1])).sum(axis=1))


def _ways_to_go_on(before: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the sums that come to each k from k - 1, from k and from k + 1."""
    k = np.arange(before.size)
    opened, closed = np.zeros_like(before), np.zeros_like(before)
    opened[1:] = before[:-1]
    closed[:-1] = before[1:] * k[1:] ** 2
    return opened, before * (2 * k + 1), closed


def _normalize_footrule(spread: float, n_items: int) -> Normalizer:
    k = np.arange(n_items // 2 + 2)
    sums = (k == 0).astype(float)
    costs = np.zeros(k.size)
    log = 0.0
    for _ in range(n_items):
        sums, costs = (np.exp(-2 * spread * k) * sum(_ways_to_go_on(x)) for x in (sums, costs))
        costs += 2 * k * sums
        scale = sums.sum()
        sums, costs, log = sums / scale, costs / scale, log + np.log(scale)
    return Normalizer(float(log + np.log(sums[0])), float(costs[0] / sums[0]))


def _draw_footrule(spread: float, n_items: int, n: int, rng: np.random.Generator) -> Ints:
    """Draw the numbers k backwards from the sums of all steps, then the matches of each step."""
    k = np.arange(n_items // 2 + 2)
    sums = [(k == 0).astype(float)]
    for _ in range(n_items):
        after = np.exp(-2 * spread * k) * sum(_ways_to_go_on(sums[-1]))
        sums.append(after / after.sum())
    path = np.zeros((n_items + 1, n), np.int64)
    for i in range(n_items, 0, -1):
        opened, kept, closed = (x[path[i]] for x in _ways_to_go_on(sums[i - 1]))
        u = rng.random(n) * (opened + kept + closed)
        path[i - 1] = path[i] + np.where(u < opened, -1, np.where(u < opened + kept, 0, 1))
    return _match_places(path, rng)


def _match_places(path: Ints, rng: np.random.Generator) -> Ints:
    """Draw a permutation for each path of numbers of open items and places."""
    n_items, n = len(path) - 1, path.shape[1]
    rows = np.arange(n)
    places = np.empty((n, n_items), np.int64)
    items, slots = (np.zeros((n, n_items), np.int64) for _ in range(2))
    for i in range(n_items):
        before, after = path[i], path[i + 1]
        # Which of the 2k + 1 ways: 0 .. k-1 place the item, k .. 2k-1 fill the place, 2k does both
        # with each other.
        way = rng.integers(0, 2 * before + 1)
        closes, keeps = after < before, after == before
        place_item = closes | (keeps & (way < before))
        fill_place = closes | (keeps & (way >= before) & (way < 2 * before))
        own = keeps & (way == 2 * before)
        places[own, i] = i
        some = rows[place_item]
        places[some, i] = _take_one(slots, some, before[some], rng)
        some = rows[fill_place]
        places[some, _take_one(items, some, before[some], rng)] = i
        some = rows[~(place_item | own)]
        items[some, before[some] - fill_place[some]] = i
        some = rows[~(fill_place | own)]
        slots[some, before[some] - place_item[some]] = i
    return places


def _take_one(opened: Ints, rows: Ints, number: Ints, rng: np.random.Generator) -> Ints:
    """Draw one of the open items or places of each row; the last one takes its cell."""
    which = rng.integers(0, number)
    drawn = opened[rows, which]
    opened[rows, which] = opened[rows, number - 1]
    return drawn


# ---- Spearman: the sum of (place - rank)², whose normaliser is a permanent


def _measure_spearman(places: Ints) -> Ints:
    return np.asarray(((places - np.arange(places.shape[1])) ** 2).sum(axis=1))


@lru_cache(maxsize=4)
def _sets_by_size(n_items: int) -> tuple[Ints, ...]:
    """Return the sets of each number of items, as bits of a number."""
    sets = np.arange(2**n_items)
    sizes = np.bitwise_count(sets)
    return tuple(sets[sizes == size] for size in range(n_items + 1))


def _sum_over_sets(spread: float, n_items: int) -> tuple[Floats, Floats]:
    """Return, for each set of places, Σ e^{-λd} over the ways to fill it with the first items.

    The second table has the sums of d e^{-λd}.
    """
    if n_items > SPEARMAN_ITEMS:
        raise RankshotError(
            f"the normaliser of Spearman's distance is a sum over all sets of the {n_items} items: "
            f"it is computed for at most {SPEARMAN_ITEMS}. Use distance='footrule' or 'kendall'"
        )
    sums, costs = np.zeros(2**n_items), np.zeros(2**n_items)
    sums[0] = 1
    for rank, sets in enumerate(_sets_by_size(n_items)[1:]):
        for place in range(n_items):
            some = sets[sets >> place & 1 == 1]
            before = some ^ (1 << place)
            cost = (rank - place) ** 2
            weight = np.exp(-spread * cost)
            sums[some] += weight * sums[before]
            costs[some] += weight * (costs[before] + cost * sums[before])
    return sums, costs


def _normalize_spearman(spread: float, n_items: int) -> Normalizer:
    sums, costs = _sum_over_sets(spread, n_items)
    return Normalizer(float(np.log(sums[-1])), float(costs[-1] / sums[-1]))


def _draw_spearman(spread: float, n_items: int, n: int, rng: np.random.Generator) -> Ints:
    """Draw the place of the last item from the sums over sets, then that of the one before."""
    sums = _sum_over_sets(spread, n_items)[0]
    column = np.arange(n_items)
    left = np.full(n, 2**n_items - 1)
    places = np.empty((n, n_items), np.int64)
    for rank in range(n_items - 1, -1, -1):
        free = left[:, None] >> column & 1 == 1
        weights = np.exp(-spread * (rank - column) ** 2) * sums[left[:, None] & ~(1 << column)]
        ends = np.cumsum(np.where(free, weights, 0.0), axis=1)
        u = rng.random(n) * ends[:, -1]
        places[:, rank] = (u[:, None] >= ends).sum(axis=1)
        left ^= 1 << places[:, rank]
    return places


DISTANCES = {
    "footrule": RankDistance(
        _measure_footrule, _normalize_footrule, _draw_footrule, _footrule_center
    ),
    "spearman": RankDistance(
        # The sum of squares is smallest in the order of the mean places.
        _measure_spearman,
        _normalize_spearman,
        _draw_spearman,
        average_order,
    ),
    "cayley": RankDistance(_measure_cayley, _normalize_cayley, _draw_cayley, _cayley_center),
    "hamming": RankDistance(_measure_hamming, _normalize_hamming, _draw_hamming, _hamming_center),
}

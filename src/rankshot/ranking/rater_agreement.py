"""How much rankings agree: Kendall's W, distances, and a summary for every target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_whole_number
from rankshot.ranking.distances import (
    compare_common_items,
    mean_kendall_distances,
)
from rankshot.ranking.matrices import (
    Some,
    find_ranked_items,
    group_by_place,
    keep_ranked_items,
    last_levels,
    mark_ranked,
    restrict_items,
)
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.parts import (
    AnyRankings,
    KeyedSums,
    add_results,
    count_rankings,
    keep_counted,
    map_parts,
    reduce_parts,
    refuse_partial,
    require_any_rankings,
    require_model,
    require_one_subject,
    require_some,
    select_target,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING_ERROR = 1e-12
DEFAULT_K = 10
"""The number of places of each ranking that count, by default; in zero-shot heads as well."""


def concordance(rankings: AnyRankings) -> float | None:
    r"""Return Kendall's W over the items that the rankings compare, corrected for ties and lengths.

    1 is full agreement. Random rankings have about 1/m, where m is their number, and less if they
    are so short that most items are ranked only once or twice.

    - If all rankings order the same number of items, W = 12 S / (m² (n³ - n) - m ΣT). S is the sum
      of squared deviations of the items' total places from their mean, n the number of items, and
      T = Σ (t³ - t) over the ties of a ranking. The items after its first K are one tie.
    - Items that no ranking has among its first K do not count.
    - Rankings of different lengths agree fully if they agree as far as the shorter one goes: in
      the denominator, the longer one is cut there.
    - Subset rankings: W is taken within each set of compared items, and averaged with the weights
      of the rankings. A set that only one ranking compares does not count.

    W is 1 if no ranking orders anything, and None if no
    two rankings compare the same items.

    Parameters
    ----------
    rankings : Rankings
        In memory or in parts; a ranking of weight w counts as w rankings.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a"], ["a", "b"]], items=["a", "b", "c", "d", "e", "f"])
    >>> rs.ranking.concordance(votes)
    1.0
    """
    rankings = keep_ranked_items(keep_counted(require_any_rankings(rankings)))
    # A set that only one ranking compares needs no sums: there may be as many sets as rankings.
    sets = reduce_parts(rankings, _count_sets)
    shared = sets.keys[(sets.sums > 1).any(axis=0)]
    return reduce_parts(rankings, _sum_places, shared).concordance(rankings.n_items)


# ---- How W is computed
#
# With r_a the places of the n items in ranking a, less their mean, S = |Σ w_a r_a|² is the sum of
# <r_a, r_b> over all pairs of rankings. W is S divided by the sum of what <r_a, r_b> can be at
# most: (|r_a|² + |r_b|²) / 2, after the longer ranking has been cut to the length of the shorter
# one. All sums are over the ranked items of each ranking, and none over pairs of rankings.


def _count_sets(rankings: Rankings) -> KeyedSums:
    """Return the number and the weight of the rankings of each set."""
    return KeyedSums.of(_number_sets(rankings), np.ones(len(rankings)), rankings.weights)


def _number_sets(rankings: Rankings) -> Ints:
    """Return a number for the set of items that each ranking compares: all, or those it lists.

    Each item has a random number of 64 bits, and a set has their sum. So rankings of other parts
    have the same numbers, and of a million sets, no two have the same number by chance.
    """
    bits = np.iinfo(np.int64)
    number = np.random.default_rng(0).integers(bits.min, bits.max, rankings.n_items, endpoint=True)
    if not len(rankings):
        return np.empty(0, np.int64)
    of_listed = np.add.reduceat(number[rankings.codes], rankings.starts[:-1])
    return np.where(rankings.is_subset, of_listed, number.sum())


# ---- Sums of places
#
# An item that a ranking of length K does not rank has the place (n + K) / 2, the mean of those
# that remain. Less this, a ranking adds q - (n + K) / 2 to an item at place q, and 0 to others.
#
# Cut after K items, the places have |r|² = Σ (q_j - n/2)² + (Σ (q_j - n/2))² / (n - K), where j
# goes from 1 to K. The sum over rankings follows from those of 1, Σ q_j, (Σ q_j)² and Σ q_j².
# n, the number of items that rankings of the set rank, is known only at the end.


class _PlaceSums(NamedTuple):
    """Weighted sums over the rankings of each set.

    The keys of ``items`` are set · C + item: sums of q - K/2 and of 1. The keys of the others are
    set · C + K - 1: sums for |r|² of the rankings that end after K items, and of all that have K.
    """

    items: KeyedSums
    ends: KeyedSums
    every: KeyedSums

    def concordance(self, n_items: int) -> float | None:
        """Return the mean of W over sets, weighted with their rankings."""
        if not self.items.keys.size:
            return None
        which = self.items.keys // n_items
        n = np.bincount(which)
        totals = self.items.sums[0] - n[which] / 2 * self.items.sums[1]
        means = np.bincount(which, totals) / n
        S = np.bincount(which, (totals - means[which]) ** 2)
        which, K = np.divmod(self.ends.keys, n_items)
        K += 1
        ends = self.ends.sums
        every = self.every.sums[:, np.searchsorted(self.every.keys, self.ends.keys)]
        # Pairs of which the shorter one ends after K items: the longer one is cut there.
        pairs = _sum_squares(ends, n[which], K) * (every[0] - ends[0])
        pairs += ends[0] * _sum_squares(every, n[which], K)
        most, weight = np.bincount(which, pairs), np.bincount(which, ends[0])
        W = np.ones(n.size)
        np.divide(S, most, out=W, where=most > ROUNDING_ERROR * weight**2 * n**3)
        return float(np.average(np.minimum(W, 1), weights=weight))


def _sum_squares(sums: Floats, n: Ints, K: Ints) -> Floats:
    """Return Σ w |r|² of rankings that are cut after K of n items."""
    weight, total, total_squared, squares = sums
    first = squares - n * total + K * n**2 / 4 * weight
    rest = total_squared - K * n * total + (K * n) ** 2 / 4 * weight
    return np.asarray(first + rest / np.maximum(n - K, 1))


def _sum_places(rankings: Rankings, sets: Ints) -> _PlaceSums:
    """Return the sums of the rankings whose set is one of ``sets``, which are sorted."""
    numbers = _number_sets(rankings)
    counted = np.flatnonzero(np.isin(numbers, sets))
    which = np.searchsorted(sets, numbers)
    found = _sum_block(rankings[:0], which[:0])
    for rows in row_blocks(counted.size, 8 * (rankings.codes.size // max(len(rankings), 1) + 1)):
        found = add_results(found, _sum_block(rankings[counted[rows]], which[counted[rows]]))
    return found


def _sum_block(rankings: Rankings, sets: Ints) -> _PlaceSums:
    ranked = mark_ranked(rankings)
    begin, size, _ = group_by_place(rankings)
    place = np.repeat(begin + size / 2, size)[ranked]
    row = rankings.entry_rows[ranked]
    length = np.bincount(row, minlength=len(rankings))
    first = np.cumsum(length) - length
    nth = np.arange(row.size) - first[row]
    weight = rankings.weights[row]
    total, squares = (_sum_so_far(values, first, row) for values in (place, place**2))
    every = np.array([weight, weight * total, weight * total**2, weight * squares])
    begins = sets * rankings.n_items
    key, last = begins[row] + nth, first + length - 1
    return _PlaceSums(
        KeyedSums.of(
            begins[row] + rankings.codes[ranked], weight * (place - length[row] / 2), weight
        ),
        KeyedSums.of(key[last], *every[:, last]),
        KeyedSums.of(key, *every),
    )


def _sum_so_far(values: Floats, first: Ints, row: Ints) -> Floats:
    """Return the cumulative sums of ``values`` within each row."""
    before = np.append(0.0, np.cumsum(values))
    return np.asarray(before[1:] - before[first][row])


# ---- Agreement


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of several rankings.

    Attributes
    ----------
    concordance : float
        Kendall's W: 1 if all rankings agree as far as they go, about 1/m if m rankings are
        unrelated.
    mean_kendall_distance : float
        The mean of `kendall_distance` between two of the rankings: a number of pairs of items.
        Pairs that only one of the two orders count.
    distance_to_others : ndarray
        The same for each ranking and the others: the largest disagrees most.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["tiger", "lynx", "fox"], ["tiger", "lynx", "fox"], ["fox", "lynx", "tiger"]])
    >>> found = rs.agreement(votes)
    >>> found.distance_to_others
    array([1.5, 1.5, 3. ])
    >>> print(f"the third disagrees most; W is {found.concordance:.2f}")
    the third disagrees most; W is 0.11
    """

    concordance: float
    mean_kendall_distance: float
    distance_to_others: NDArray[np.float64]


def agreement(rankings: AnyRankings) -> Agreement:
    """Measure how much rankings of the same target agree.

    Items that no ranking ranks do not count. For rankings in parts, ``distance_to_others`` is a
    lazy array. Pairs and other rankings of a subset have no such distance: `concordance` takes
    them.

    Parameters
    ----------
    rankings : Rankings
        In memory or in parts, of one target; a ranking of weight w counts as w rankings.

    Examples
    --------
    >>> import rankshot as rs
    >>> raters = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "b", "c"], ["a", "c", "b"]], items=["a", "b", "c"])
    >>> found = rs.agreement(raters)
    >>> round(found.concordance, 3), round(found.mean_kendall_distance, 3)
    (0.778, 0.667)
    >>> found.distance_to_others
    array([0.5, 0.5, 1. ])
    """
    found = require_one_subject(rankings)
    if not found.has_pairs:
        raise RankshotError("agreement needs at least two rankings, or one of a weight above 1")
    ranked = keep_ranked_items(rankings)
    if isinstance(ranked, Rankings):
        refuse_partial(ranked, "it has no distance to the others. concordance(rankings) takes it")
    mean, to_others = mean_kendall_distances(ranked, found.weight)
    # It is None only for rankings of a subset.
    W = cast("float", concordance(ranked))
    return Agreement(W, mean, to_others)


# ---- Summaries: the consensus of every target, and who disagrees with it


@dataclass(frozen=True, eq=False)
class TargetSummary:
    """A summary of the rankings of one target.

    Distances are those of the first k places, over the items that two rankings compare: 0 is
    agreement, 1 is the opposite order. With ties they are means over the orders that the ties
    allow. Items that are in none of the first k places do not count.

    Attributes
    ----------
    target : str or None
        None if the rankings name no target.
    n_rankings : int
        How many there are; a ranking of weight 2 is one of them.
    model : PlackettLuce, Mallows, BabingtonSmith or None
        The model, fitted to the first k places of the rankings.
    order : tuple
        The first k places of the consensus; a tie is a tuple inside it. The
        order of all items is ``model.mode_``.
    k : int
        How many places count, at most the length of the longest ranking.
    concordance : float or None
        Kendall's W of the first k: 1 if all rankings agree as far as they go, about 1/m if m
        rankings are unrelated. For subset rankings it is the mean over the sets of items that
        several rankings compare; None if there is none.
    mean_distance : float or None
        Mean distance of the rankings to the consensus; None for a single one, which is its own
        consensus.
    disagreement : tuple of (str, float)
        The same for each rater (or source, for rankings without a rater), the largest first.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["leopard", "tiger"], ["fox", "leopard"]],
    ...     items=["bus", "fox", "leopard", "tiger"], targets="cat", raters=["ann", "bob", "cy"])
    >>> found = rs.summarize(votes)[0]
    >>> found.target, found.n_rankings, found.order
    ('cat', 3, ('leopard', 'tiger'))
    >>> [rater for rater, distance in found.disagreement if distance > 0.2]
    ['cy']
    """

    target: str | None
    n_rankings: int
    model: Any
    order: tuple[Any, ...]
    k: int
    concordance: float | None
    mean_distance: float | None
    disagreement: tuple[tuple[str, float], ...]


def summarize(
    rankings: AnyRankings, model: Any | None = None, k: int | None = DEFAULT_K
) -> list[TargetSummary]:
    """Summarize the rankings of every target.

    The consensus is the one that a zero-shot head with the same ``k`` and prior uses. It has as
    many places as the longest ranking: two for pairs, three for ballots of three. The order of all
    items is ``model.mode_`` of a summary, or that of `borda` or `kemeny`.

    Parameters
    ----------
    rankings : Rankings or PartitionedRankings
        If no ranking names a target, all are interpreted as rankings of one target.
    model : PlackettLuce, Mallows or BabingtonSmith, optional
        The model that merges the rankings; `PlackettLuce` by default. A copy is fitted to each
        target.
    k : int or None
        The number of places of each ranking that count; all for None. In distances, a shorter list
        is compared as far as it goes.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["leopard", "tiger"], ["fox", "leopard"]],
    ...     items=["bus", "fox", "leopard", "tiger"], targets="cat", raters=["ann", "bob", "cy"])
    >>> brief = rs.summarize(votes)[0]
    >>> brief.order, round(brief.concordance, 2), brief.disagreement[0][0]
    (('leopard', 'tiger'), 0.33, 'cy')
    """
    rankings = keep_counted(require_any_rankings(rankings))
    found = require_some(rankings)
    model = PlackettLuce() if model is None else require_model(model)
    if k is not None:
        rankings = rankings.top(min(require_whole_number("k", k), rankings.n_items))
    if None in found.targets and len(found.targets) > 1:
        which = "some ranking"
        if isinstance(rankings, Rankings):
            which = f"ranking {rankings.targets.tolist().index(None)}"
        raise RankshotError(f"{which} has no target, but others have")
    summaries = []
    for target in sorted(found.targets, key=str):
        theirs = rankings if target is None else map_parts(rankings, select_target, target)
        fitted = clone(model).fit(theirs)
        consensus = merge_rankings(theirs, fitted)
        length = int(consensus.lengths[0])
        summaries.append(summarize_target(target, theirs, consensus, length, model=fitted))
    return summaries


def merge_rankings(rankings: AnyRankings, model: Any) -> Rankings:
    """Return the consensus of the rankings of one target: the mode of the model fitted to them.

    It is as long as the longest of them: nothing is known of later places. Items that no ranking
    compares are left out: then the consensus is a subset ranking. A single ranking, with its ties
    and its kind, is its own consensus.
    """
    found = count_rankings(rankings)
    if found.n_rankings == 1:
        return reduce_parts(rankings, _take_all)
    target = found.target_names[0] if found.target_names else None
    mode = Rankings.from_orders([model.mode_], items=rankings.items, targets=target)
    n_top, listed = reduce_parts(rankings, _count_listed)
    compared = np.flatnonzero(listed)
    if n_top == 0 and compared.size < rankings.n_items:
        among = restrict_items(mode, [rankings.items[i] for i in compared])
        mode = replace(among.change_items(rankings.items), is_subset=np.array([True]))
    return mode.top(found.longest)


def _take_all(rankings: Rankings) -> Rankings:
    return rankings


def _count_listed(rankings: Rankings) -> tuple[int, NDArray[np.int64]]:
    """Return the number of top-K rankings, and how often each item is listed."""
    listed = np.bincount(rankings.codes, minlength=rankings.n_items)
    return int((~rankings.is_subset).sum()), listed


def summarize_target(
    target: str | None,
    rankings: AnyRankings,
    consensus: Rankings,
    k: int,
    *,
    model: Any = None,
    labels: NDArray[Any] | None = None,
) -> TargetSummary:
    """Summarize the rankings of one target around a consensus of them.

    ``labels``, if given, are those of `TargetSummary.disagreement`, one per ranking.
    """
    order = [tuple(x) if isinstance(x, list) else x for x in consensus.orders()[0]]
    # The later items of a subset ranking are tied after its first k places.
    n_places = int(last_levels(consensus)[0]) + 1
    found = count_rankings(rankings)
    first, center = keep_first_places(rankings, consensus, k)
    sums = reduce_parts(first, _sum_by_label, center, k, labels, combine=_merge_sums)
    means = {label: distance / weight for label, (distance, weight) in sums.items()}
    mean = means.pop(None, None)
    furthest = sorted(means.items(), key=lambda pair: (-pair[1], str(pair[0])))
    return TargetSummary(
        target,
        found.n_rankings,
        model,
        tuple(order[:n_places]),
        min(k, int(consensus.lengths[0])),
        concordance(first),
        mean if found.has_pairs else None,
        cast("tuple[tuple[str, float], ...]", tuple(furthest if found.has_pairs else ())),
    )


def keep_first_places(rankings: Some, consensus: Rankings, k: int) -> tuple[Some, Rankings]:
    """Return the first k places of rankings and of a consensus, and only the items that are there.

    Other items are last for all: distances that count them look like agreement.
    """
    k = min(k, rankings.n_items)
    first = cast("Some", rankings.top(k))
    center = consensus.with_items(rankings.items).top(k)
    is_there = find_ranked_items(first) | find_ranked_items(center)
    return keep_ranked_items(first, is_there), keep_ranked_items(center, is_there)


def find_origins(rankings: Rankings) -> NDArray[np.object_]:
    """Return the rater of each ranking, or its source if it has no rater."""
    pairs = zip(rankings.raters, rankings.sources, strict=True)
    return np.array([rater or source for rater, source in pairs], object)


_LabelSums = dict[str | None, tuple[float, float]]
"""The weighted sum of distances to the consensus, and the weight: of each label, of all (None)."""


def _sum_by_label(
    rankings: Rankings, consensus: Rankings, k: int, labels: NDArray[Any] | None = None
) -> _LabelSums:
    labels = find_origins(rankings) if labels is None else labels
    distance = compare_common_items(rankings, consensus, k)[:, 0]
    known = np.flatnonzero(~np.isnan(distance))
    sums: _LabelSums = {}
    for label, far, weight in zip(
        labels[known], distance[known].tolist(), rankings.weights[known].tolist(), strict=True
    ):
        for name in {label, None}:
            before = sums.get(name, (0.0, 0.0))
            sums[name] = (before[0] + weight * far, before[1] + weight)
    return sums


def _merge_sums(a: _LabelSums, b: _LabelSums) -> _LabelSums:
    merged = dict(a)
    for name, (distance, weight) in b.items():
        before = merged.get(name, (0.0, 0.0))
        merged[name] = (before[0] + distance, before[1] + weight)
    return merged

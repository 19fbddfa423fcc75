"""Rules of social choice: Copeland, Schulze, the median rank, Condorcet winner and Smith set.

Except for the median rank, they need only `precedence`: i beats j if the rankings that place i
before j have more weight than those that place j before i. Ties, top-K lists and subset rankings
count the pairs that they put in order. Items that no ranking lists lose against all others.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.consensus.kemeny import Consensus, make_consensus
from rankshot.ranking.consensus.kemeny_solvers import majority_groups
from rankshot.ranking.consensus.precedence import item_weights, places_of_entries, precedence
from rankshot.ranking.matrices import group_ties, iterate_blocks
from rankshot.ranking.parts import AnyRankings, reduce_parts, require_one_subject
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]


def copeland(rankings: AnyRankings) -> Consensus:
    """Order the items by how many others they beat, minus how many beat them.

    Items of equal numbers are tied.

    Parameters
    ----------
    rankings : Rankings or PartitionedRankings
        What to merge; weights count.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]])
    >>> rs.copeland(votes).order
    ('a', ('b', 'c'))
    """
    require_one_subject(rankings)
    W = precedence(rankings)
    beats = _find_majorities(W, rankings)
    losses_minus_wins = beats.sum(axis=0) - beats.sum(axis=1)
    return make_consensus(rankings, group_ties(losses_minus_wins, tolerance=0.5), W)


def schulze(rankings: AnyRankings) -> Consensus:
    """Order the items by Schulze's method: the strongest paths of majorities.

    A path is as strong as its weakest majority, and a majority is as strong as the weight of the
    rankings that agree with it ("winning votes"). An item is better than another if its strongest
    path to it is stronger than the one back. This is a partial order. The items are sorted by how
    many are better than they are, and those with equal numbers are tied. So the first group has
    Schulze's winners.

    Parameters
    ----------
    rankings : Rankings or PartitionedRankings
        What to merge; weights count.

    References
    ----------
    M. Schulze (2011), "A new monotonic, clone-independent, reversal symmetric, and
    Condorcet-consistent single-winner election method", Social Choice and Welfare 36, 267-303.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]], weights=[4, 3, 2])
    >>> rs.schulze(votes).order
    ('a', 'b', 'c')
    """
    require_one_subject(rankings)
    W = precedence(rankings)
    path = np.where(W > W.T, W, 0.0)
    for k in range(len(path)):
        np.maximum(path, np.minimum(path[:, [k]], path[k]), out=path)
    better = _find_majorities(path, rankings)
    n_better = better.sum(axis=0)
    return make_consensus(rankings, group_ties(n_better, tolerance=0.5), W)


def median_rank(rankings: AnyRankings) -> Consensus:
    """Order the items by the median of their places.

    Places are those of `borda`: tied items share the mean of their places, and so do the items
    that a top-K list leaves out; in a subset ranking, places are fractions of its length. Halfway
    between two places, the median is their mean. Items of equal median are tied.

    Parameters
    ----------
    rankings : Rankings or PartitionedRankings
        What to merge; a weight counts as that many rankings.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["a", "b", "c"], ["c", "b", "a"]])
    >>> rs.ranking.median_rank(votes).order
    ('a', 'b', 'c')
    """
    require_one_subject(rankings)
    table = reduce_parts(rankings, _count_places, combine=_merge_places)
    medians = _weighted_medians(*table, rankings.n_items)
    # A place is below 1, so the items that no ranking lists come last.
    medians[item_weights(rankings) == 0] = 1.0
    return make_consensus(rankings, group_ties(medians, tolerance=1e-9))


def condorcet_winner(rankings: AnyRankings) -> str | None:
    """Return the item that beats every other one, or None if there is none.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]])
    >>> rs.ranking.condorcet_winner(votes)
    'a'
    """
    require_one_subject(rankings)
    wins = _find_majorities(precedence(rankings), rankings).sum(axis=1)
    best = int(wins.argmax())
    return rankings.items[best] if wins[best] == rankings.n_items - 1 else None


def smith_set(rankings: AnyRankings) -> tuple[str, ...]:
    """Return the smallest set of items that beat every item outside of it, sorted by name.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c", "d"], ["b", "c", "a", "d"], ["c", "a", "b", "d"]])
    >>> rs.ranking.smith_set(votes)
    ('a', 'b', 'c')
    """
    require_one_subject(rankings)
    unbeaten = ~_find_majorities(precedence(rankings), rankings).T
    np.fill_diagonal(unbeaten, val=False)
    return tuple(sorted(rankings.items[i] for i in majority_groups(unbeaten)[0]))


def _find_majorities(W: Floats, rankings: AnyRankings) -> NDArray[np.bool_]:
    """Return which item beats which by ``W``; the items that no ranking lists beat nothing."""
    listed = item_weights(rankings) > 0
    return np.asarray((W > W.T) | (listed[:, None] & ~listed))


# ---- Medians: the weight of each place of each item


PlaceWeights = tuple[NDArray[np.integer], Floats, Floats]
"""Items, places and weights: one entry for each place that an item has, sorted by both."""


def _count_places(rankings: Rankings) -> PlaceWeights:
    """Return the places of all items that rankings compare, as fractions of their length."""
    return reduce(_merge_places, map(_count_in_block, iterate_blocks(rankings, rankings.n_items)))


def _count_in_block(block: Rankings) -> PlaceWeights:
    place = places_of_entries(block)
    absent = -1.0
    table = np.empty((len(block), block.n_items))
    table[:] = np.where(block.is_subset, absent, place.left_out)[:, None]
    table[block.entry_rows, block.codes] = place.listed
    row, item = np.nonzero(table != absent)
    return _sum_equal_places(item, table[row, item], block.weights[row])


def _merge_places(a: PlaceWeights, b: PlaceWeights) -> PlaceWeights:
    item, place, weight = (np.concatenate(pair) for pair in zip(a, b, strict=True))
    return _sum_equal_places(item, place, weight)


def _sum_equal_places(item: NDArray[np.integer], place: Floats, weight: Floats) -> PlaceWeights:
    order = np.lexsort((place, item))
    item, place, weight = item[order], place[order], weight[order]
    first = np.ones(item.size, bool)
    first[1:] = (np.diff(item) > 0) | (np.diff(place) > 0)
    return item[first], place[first], np.add.reduceat(weight, np.flatnonzero(first))


def _weighted_medians(
    item: NDArray[np.integer], place: Floats, weight: Floats, n_items: int
) -> Floats:
    """Return the median place of each item; half of the weight is on either side of it."""
    ends = np.searchsorted(item, np.arange(n_items), side="right")
    starts = np.searchsorted(item, np.arange(n_items), side="left")
    medians = np.ones(n_items)
    for i in np.flatnonzero(ends > starts).tolist():
        own = slice(starts[i], ends[i])
        total = weight[own].cumsum()
        half = total[-1] / 2
        # The first place that has at least half, and the first that has more, of the weight.
        low = int((total >= half * (1 - 1e-12)).argmax())
        high = int((total > half * (1 + 1e-12)).argmax())
        medians[i] = (place[own][low] + place[own][high]) / 2
    return medians

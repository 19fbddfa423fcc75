"""Rules of social choice: Copeland, Schulze, Condorcet winner, Smith set.

They need only `precedence`: i beats j if the rankings that place i before j have more weight than
those that place j before i. Rankings with ties, top-K lists and subset rankings contribute only
the pairs that they order. Items that no ranking lists lose to all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.consensus.kemeny import Consensus, make_consensus
from rankshot.ranking.consensus.kemeny_solvers import majority_groups
from rankshot.ranking.consensus.precedence import item_weights, precedence
from rankshot.ranking.matrices import group_ties
from rankshot.ranking.rankings import Rankings, require_one_subject

Floats = NDArray[np.float64]


def copeland(rankings: Rankings) -> Consensus:
    """Order the items by how many others they beat, minus how many beat them (Copeland 1951).

    Items with equal numbers are tied.

    Parameters
    ----------
    rankings : Rankings or dict of lists
        The rankings to merge; their weights are used.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["a", "c", "b"]])
    >>> rs.ranking.copeland(votes).order
    ('a', ('b', 'c'))
    """
    rankings = require_one_subject(rankings)
    W = precedence(rankings)
    beats = _find_majorities(W, rankings)
    losses_minus_wins = beats.sum(axis=0) - beats.sum(axis=1)
    return make_consensus(rankings, group_ties(losses_minus_wins, tolerance=0.5), W)


def schulze(rankings: Rankings) -> Consensus:
    """Order the items by Schulze's method: the strongest paths of majorities.

    A path is as strong as its weakest majority, and a majority is as strong as the weight of the
    rankings that agree with it ("winning votes"). Item i is better than item j if the strongest
    path from i to j is stronger than the strongest path from j to i. This is a partial order.
    Items are sorted by the number of items that are better, and items with equal numbers are tied.
    So the first group contains Schulze's winners.

    Parameters
    ----------
    rankings : Rankings or dict of lists
        The rankings to merge; their weights are used.

    References
    ----------
    M. Schulze (2011), "A new monotonic, clone-independent, reversal symmetric, and
    Condorcet-consistent single-winner election method", Social Choice and Welfare 36, 267-303.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]], weights=[4, 3, 2])
    >>> rs.ranking.schulze(votes).order
    ('a', 'b', 'c')
    """
    rankings = require_one_subject(rankings)
    W = precedence(rankings)
    path = np.where(W > W.T, W, 0.0)
    for k in range(len(path)):
        np.maximum(path, np.minimum(path[:, [k]], path[k]), out=path)
    better = _find_majorities(path, rankings)
    n_better = better.sum(axis=0)
    return make_consensus(rankings, group_ties(n_better, tolerance=0.5), W)


def condorcet_winner(rankings: Rankings) -> str | None:
    """Item that beats every other one, or None if there is none.

    Parameters
    ----------
    rankings : Rankings
        Rankings of any kind; their weights are used.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["c", "a", "b"]])
    >>> rs.ranking.condorcet_winner(votes)
    'a'
    """
    rankings = require_one_subject(rankings)
    wins = _find_majorities(precedence(rankings), rankings).sum(axis=1)
    best = int(wins.argmax())
    return rankings.items[best] if wins[best] == rankings.n_items - 1 else None


def smith_set(rankings: Rankings) -> tuple[str, ...]:
    """Smallest set of items that beat every item outside it (Smith 1973), by name.

    Parameters
    ----------
    rankings : Rankings
        Rankings of any kind; their weights are used.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c", "d"], ["b", "c", "a", "d"], ["c", "a", "b", "d"]])
    >>> rs.ranking.smith_set(votes)
    ('a', 'b', 'c')
    """
    rankings = require_one_subject(rankings)
    unbeaten = ~_find_majorities(precedence(rankings), rankings).T
    np.fill_diagonal(unbeaten, val=False)
    return tuple(sorted(rankings.items[i] for i in majority_groups(unbeaten)[0]))


def _find_majorities(W: Floats, rankings: Rankings) -> NDArray[np.bool_]:
    """Matrix of which item beats which by ``W``; the items that no ranking lists beat nothing."""
    listed = item_weights(rankings) > 0
    return np.asarray((W > W.T) | (listed[:, None] & ~listed))

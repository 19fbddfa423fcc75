"""One order for many rankings: Borda's method, Kemeny's by search or with proof, voting rules."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import monotonic
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError
from rankshot.core.validation import require_choice, require_number
from rankshot.ranking.consensus.kemeny_solvers import (
    adjacent_search,
    insertion_search,
    majority_groups,
    reversed_weight,
    settle_ties,
    solve_exactly,
)
from rankshot.ranking.consensus.precedence import (
    average_places,
    item_weights,
    precedence,
    sort_by_average,
)
from rankshot.ranking.matrices import (
    NamedOrder,
    alike_items,
    count_ties,
    group_ties,
    name_groups,
)
from rankshot.ranking.rankings import Rankings, keep_counted, merge_copies, require_one_subject

Method = Literal["adjacent", "insertion", "exact"]
METHODS = get_args(Method)


@dataclass(frozen=True, eq=False, repr=False)
class Consensus:
    """An order of all items that represents many rankings.

    Items that no ranking lists come last.

    Attributes
    ----------
    order : tuple of str
        The items, best first; a tie is a tuple inside the tuple.
    score : float
        Kemeny's score: the weight of the pairs that the order reverses, summed over the
        rankings. For full rankings it is the sum of their Kendall distances to the order. A
        pair that the order ties counts half.
    bound : float
        A lower bound: no order has a smaller score.
    optimal : bool
        Whether the bound proves that no order is better.

    Notes
    -----
    Methods that do not need the score, such as `borda`, compute it on first access.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["tiger", "lynx", "fox"], ["lynx", "tiger", "fox"], ["tiger", "fox", "lynx"]])
    >>> found = rs.kemeny(votes, method="exact")
    >>> found.order, found.score, found.optimal
    (('tiger', 'lynx', 'fox'), 2.0, True)
    """

    order: NamedOrder
    _measure: Callable[[], tuple[float, float]]

    @cached_property
    def _score_and_gap(self) -> tuple[float, float]:
        return self._measure()

    @property
    def score(self) -> float:
        """The weight of the pairs that the order reverses."""
        return self._score_and_gap[0]

    @property
    def bound(self) -> float:
        """No order has a smaller score."""
        score, gap = self._score_and_gap
        return score - gap

    @property
    def optimal(self) -> bool:
        """Whether the bound proves that no order is better."""
        return self._score_and_gap[1] == 0

    def __repr__(self) -> str:
        names = "order", "score", "bound", "optimal"
        return f"Consensus({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def borda(rankings: Rankings) -> Consensus:
    """Order the items by their average place.

    Tied items share the mean of their places, and so do the items that a top-K list leaves out. In
    a subset ranking, places are fractions of its length. Items with equal averages are tied, and
    items that no ranking lists are tied at the end.

    Parameters
    ----------
    rankings : Rankings
        Rankings of any kind; their weights are used.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["b", "a", "c"], ["c"]], items=["a", "b", "c"])
    >>> rs.borda(votes).order
    (('a', 'b'), 'c')
    """
    rankings = require_one_subject(rankings)
    return make_consensus(rankings, group_ties(average_places(rankings), tolerance=1e-9))


def make_consensus(
    rankings: Rankings,
    groups: list[NDArray[np.intp]],
    W: NDArray[np.float64] | None = None,
) -> Consensus:
    """Groups of item numbers, best first, as the consensus of rankings.

    ``W`` is their precedence, if it is known.
    """
    place = np.empty(rankings.n_items, np.intp)
    place[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [g.size for g in groups])
    order = name_groups(groups, rankings.items)
    return Consensus(
        order, lambda: _measure_places(precedence(rankings) if W is None else W, place)
    )


def kemeny(
    rankings: Rankings,
    method: Method = "insertion",
    *,
    time_limit: float | None = None,
) -> Consensus:
    """Find the order with the smallest sum of Kendall distances to the rankings (Kemeny 1959).

    Top-K lists, rankings with ties and subset rankings contribute only the pairs that they order.

    Parameters
    ----------
    rankings : Rankings or dict of lists
        The rankings to merge; their weights are used.
    method : {"adjacent", "insertion", "exact"}
        ``"adjacent"`` is the search of Hamm and Belkin (2015): from the average ranking, swap the
        neighbours that lower the score most, at most 1,000 times. ``"insertion"`` moves single
        items to any place and shuffles parts of the order to leave local optima; it is stronger and
        usually finds an optimum. ``"exact"`` proves optimality by linear and, where needed, integer
        programming.
    time_limit : float, optional
        The time limit of the proof of ``"exact"`` in seconds. When it is reached, the best order
        and bound so far are returned; the order is at least as good as that of ``"insertion"``.

    Returns
    -------
    Consensus
        ``optimal`` is True if the bound proves that no
        order is better; with fractional weights, to within one part in a million of the score.

    Notes
    -----
    If several orders are best, neighbours that the rankings do not distinguish are sorted by
    average place, then by name. Items at the same level in every ranking, such as those that no
    ranking lists, are moved together and sorted by name.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "b", "c"], ["b", "c", "a"]], items=["a", "b", "c"])
    >>> rs.kemeny(votes, method="exact")
    Consensus(order=('a', 'b', 'c'), score=2.0, bound=2.0, optimal=True)
    """
    require_choice("method", method, METHODS)
    deadline = np.inf
    if time_limit is not None:
        if method != "exact":
            raise InputError("time_limit", time_limit, f"applies to method='exact', not {method!r}")
        deadline = monotonic() + require_number("time_limit", time_limit, above=0)
    rankings = require_one_subject(rankings)
    if n_open := count_open_pairs(rankings):
        C = rankings.n_items
        warnings.warn(
            f"{n_open:,} of {C * (C - 1) // 2:,} pairs of items were never compared, so the "
            "rankings hardly determine their order: use the worths of PlackettLuce, or leaderboard",
            stacklevel=2,
        )
    return find_order(rankings, method, deadline)


def find_order(rankings: Rankings, method: Method, deadline: float = np.inf) -> Consensus:
    """Consensus of rankings that need no checks."""
    if (own := only_order(rankings)) is not None:
        return Consensus(own, lambda: (0.0, 0.0))
    classes = _sort_classes(rankings)
    sizes = np.array([len(items) for items in classes])
    first = np.array([items[0] for items in classes])
    W = precedence(rankings, first)
    W *= sizes[:, None] * sizes
    if method == "exact":
        numbers, gap = solve_exactly(W, deadline=deadline)
        score = reversed_weight(W, numbers)
    else:
        numbers = adjacent_search(W) if method == "adjacent" else insertion_search(W)
        score = reversed_weight(W, numbers)
        gap = _majority_gap(W, score)
    numbers = settle_ties(W, numbers)
    order = tuple(rankings.items[i] for number in numbers for i in classes[number])
    return Consensus(order, lambda: (score, gap))


def only_order(rankings: Rankings) -> tuple[str, ...] | None:
    """The order of all items, if all rankings are equal, strict and full: no table is needed."""
    counted = keep_counted(rankings)
    if counted.n_listed.min() < counted.n_items or len(only := merge_copies(counted)[0]) > 1:
        return None
    return None if only.has_ties else tuple(only.items[i] for i in only.codes)


def count_open_pairs(rankings: Rankings) -> int:
    """How many pairs of items no ranking compares, if some rankings are of subsets."""
    if not rankings.is_subset.any():
        return 0
    W = precedence(rankings)
    return int(np.count_nonzero(np.triu(W + W.T + count_ties(rankings) == 0, 1)))


def _sort_classes(rankings: Rankings) -> list[NDArray[np.intp]]:
    """Items in classes of alike ones, in the canonical order of their first items.

    Some best order has the items of each class next to each other: moving all of them to the best
    place of any of them costs nothing. So classes are ordered instead of items.
    """
    start = sort_by_average(rankings)
    number = alike_items(keep_counted(rankings))[start]
    if int(number.max()) + 1 == number.size:
        return list(start[:, None])
    _, first = np.unique(number, return_index=True)
    by_class = start[np.argsort(first[number], kind="stable")]
    return np.split(by_class, np.cumsum(np.bincount(number)[number[np.sort(first)]])[:-1])


# ---- The score of a consensus with ties


def _measure_places(W: NDArray[np.float64], place: NDArray[np.intp]) -> tuple[float, float]:
    """Kemeny's score of the items at these places, and how far it is above a bound."""
    score = float(W.T[place[:, None] < place].sum())
    # Both orders of a tied pair are equally likely: it counts half. The diagonal of W is 0.
    score += float(W[place[:, None] == place].sum()) / 2
    return score, _majority_gap(W, score)


def _majority_gap(W: NDArray[np.float64], score: float) -> float:
    """Excess of a score over a lower bound: every pair in its majority's order."""
    gap = score - float(np.triu(np.minimum(W, W.T), 1).sum())
    return gap if gap > 1e-12 * score else 0.0


# ---- Rules of social choice: Copeland, Schulze, Condorcet winner, Smith set
#
# They need only `precedence`: i beats j if the rankings that place i before j have more weight than
# those that place j before i. Rankings with ties, top-K lists and subset rankings contribute only
# the pairs that they order. Items that no ranking lists lose to all others.


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


def _find_majorities(W: NDArray[np.float64], rankings: Rankings) -> NDArray[np.bool_]:
    """Matrix of which item beats which by ``W``; the items that no ranking lists beat nothing."""
    listed = item_weights(rankings) > 0
    return np.asarray((W > W.T) | (listed[:, None] & ~listed))

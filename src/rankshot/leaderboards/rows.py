"""What a leaderboard says of an item, and of two items."""

from __future__ import annotations

from typing import NamedTuple


class Comparison(NamedTuple):
    """The difference between the ratings of two items, and how certain it is.

    Attributes
    ----------
    difference : float
        The rating of the first item minus that of the second, on the scale of the leaderboard. For
        log-worths, these are the log-odds that the first is placed before the second.
    standard_error : float
    interval : tuple of float
        The confidence interval of the difference, at the level of the leaderboard.
    certainty : float
        One minus the one-sided p-value of the hypothesis that the first item is not better.
    p_value : float
        The p-value of the hypothesis that the worths are equal, adjusted by Holm's method for all
        pairs of the leaderboard. Interval and certainty are for two items that were chosen before
        the votes were seen.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
    >>> found = rs.leaderboard(votes, rs.PlackettLuce(regularization=0)).compare("a", "b")
    >>> round(found.difference, 3), round(found.standard_error, 3), round(found.certainty, 4)
    (1.099, 0.365, 0.9982)
    """

    difference: float
    standard_error: float
    interval: tuple[float, float]
    certainty: float
    p_value: float


class Estimate(NamedTuple):
    """A number with its interval, at the level of the leaderboard.

    Attributes
    ----------
    value : float
    interval : tuple of float

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]])
    >>> rs.leaderboard(votes).probability("a", "b").value
    0.5
    """

    value: float
    interval: tuple[float, float]


class Standing(NamedTuple):
    """One row of a leaderboard.

    Attributes
    ----------
    rank : int
        The rank, from 1; items of equal worth share the best of their ranks.
    item : str
    rating, low, high : float
        The log-worth or the Elo rating, with its comparison interval.
    best_rank, worst_rank : int
        The ends of the confidence interval of the rank.
    better_than : int
        The number of items that it is significantly better than, adjusted for all comparisons.
    votes : float
        The total weight of the rankings that compare the item with others.
    wins, ties, share : float
        How often it came before another item, how often it tied, and the share of wins among all
        comparisons, where a tie is half a win.
    standard_error : float
        The standard error of the rating.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[30, 10])
    >>> row = rs.leaderboard(votes)["a"]
    >>> row.rank, row.votes, row.wins, row.share
    (1, 40.0, 30.0, 0.75)
    """

    rank: int
    item: str
    rating: float
    low: float
    high: float
    best_rank: int
    worst_rank: int
    better_than: int
    votes: float
    wins: float
    ties: float
    share: float
    standard_error: float


class Misfit(NamedTuple):
    """How often an item beat another, and how often their ratings expect it.

    Attributes
    ----------
    first, second : str
    votes : float
    observed, expected : float
        The share of the votes that the first item wins; a tie is half a win.
    p_value : float
        The p-value of the hypothesis that the ratings explain the votes, adjusted by Holm's method
        for all pairs that were tested; NaN for a pair with fewer than ten votes.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pair_counts([[0, 9], [7, 0]], items=["a", "b"])
    >>> rs.leaderboard(votes).misfits()[0].votes
    16.0
    """

    first: str
    second: str
    votes: float
    observed: float
    expected: float
    p_value: float

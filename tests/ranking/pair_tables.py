"""Pairs with ties: published tables, and simulated votes."""

import numpy as np

import rankshot as rs

PUDDING = """
    1 2 19 22 16, 1 3 16 19 12, 2 3 19 19 10, 1 4 18 23 13, 2 4 23 19 9, 3 4 19 20 15, 1 5 13 19 18,
    2 5 16 20 12, 3 5 16 15 17, 4 5 17 14 16, 1 6 18 21 12, 2 6 22 20 12, 3 6 13 18 10,
    4 6 14 19 18, 5 6 11 21 12"""
"""Davidson (1970), example 2: two brands, wins of the first, of the second, and ties."""
SPRINGALL = """
    2 1 2 16 7, 3 1 0 21 1, 4 1 5 10 10, 5 1 2 15 7, 6 1 0 22 2, 7 1 12 3 9, 8 1 13 9 5,
    9 1 10 12 3, 3 2 6 11 5, 4 2 17 2 7, 5 2 9 6 8, 6 2 8 12 6, 7 2 24 2 0, 8 2 16 3 5, 9 2 15 2 7,
    4 3 22 2 4, 5 3 14 4 5, 6 3 11 4 7, 7 3 24 1 3, 8 3 22 0 3, 9 3 17 2 6, 5 4 3 14 9, 6 4 2 18 4,
    7 4 12 6 5, 8 4 10 6 6, 9 4 8 9 11, 6 5 5 11 9, 7 5 20 0 2, 8 5 15 2 5, 9 5 13 5 9, 7 6 27 1 0,
    8 6 19 1 5, 9 6 18 2 2, 8 7 2 13 8, 9 7 2 21 5, 9 8 6 8 8"""
"""Springall (1973), as in R's BradleyTerry2: flavour strength of nine gels."""


def read_table(text, n_items):
    wins, ties = np.zeros((2, n_items, n_items))
    for line in text.split(","):
        i, j, won, lost, tied = map(int, line.split())
        wins[i - 1, j - 1], wins[j - 1, i - 1] = won, lost
        ties[i - 1, j - 1] = ties[j - 1, i - 1] = tied
    return rs.Rankings.from_pair_counts(wins, ties=ties, items=range(1, n_items + 1))


def draw_pairs(rng, n, n_items, chances=None):
    """Return two different items for each vote."""
    first = rng.choice(n_items, n, p=chances)
    return first, (first + rng.integers(1, n_items, n)) % n_items


def draw_outcomes(rng, log_odds, tie_parameter=0.0):
    """Return 0 where the first item wins, 1 where the second does, 2 for ties: Davidson's model."""
    half = log_odds / 2
    chances = np.array([np.exp(half), np.exp(-half), np.full(half.size, tie_parameter)])
    return (rng.random(half.size) * chances.sum(axis=0) > chances.cumsum(axis=0)).sum(axis=0)


def make_votes(first, second, outcome, items, **options):
    """Return the rankings of two items with these outcomes."""
    names = np.array(items)
    winners, losers = np.where(outcome == 1, (second, first), (first, second))
    return rs.Rankings.from_pairs(
        names[winners], names[losers], ties=outcome == 2, items=items, **options
    )


def draw_votes(rng, theta, n, items, tie_parameter=0.0, chances=None):
    """Return votes between random items of these log-worths."""
    first, second = draw_pairs(rng, n, len(theta), chances)
    outcome = draw_outcomes(rng, theta[first] - theta[second], tie_parameter)
    return make_votes(first, second, outcome, items)

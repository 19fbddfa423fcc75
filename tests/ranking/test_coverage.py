"""How often 95 % intervals of differences hold the truth, by simulation.

The numbers are those of docs/results/guide.md.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import rankshot as rs

REPEATS = 400
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)


def name(C):
    return [f"{i:02}" for i in range(C)]


def make_votes(first, second, outcome, C, **options):
    """Votes with the outcomes 0 (first), 1 (second) or 2 (a tie)."""
    names = np.array(name(C))
    winners, losers = np.where(outcome == 1, (second, first), (first, second))
    return rs.Rankings.from_pairs(
        names[winners], names[losers], ties=outcome == 2, items=name(C), **options
    )


def draw_pairs(rng, n, C, chances=None):
    first = rng.choice(C, n, p=chances)
    return first, (first + rng.integers(1, C, n)) % C


def draw_votes(rng, theta, n, chances=None):
    first, second = draw_pairs(rng, n, theta.size, chances)
    lost = rng.random(n) > expit(theta[first] - theta[second])
    return make_votes(first, second, lost.astype(int), theta.size), theta


def few_votes(rng):
    return draw_votes(rng, rng.normal(size=8), 80)


def unbalanced(rng):
    chances = np.arange(1, 11) ** -1.5
    return draw_votes(rng, rng.normal(size=10), 600, chances / chances.sum())


def never_beaten(rng):
    """In about three of four draws the first item loses no vote."""
    theta = np.append(4.5, 0.5 * rng.normal(size=7))
    return draw_votes(rng, theta, 200)


def ties(rng):
    theta, n = rng.normal(size=8), 300
    first, second = draw_pairs(rng, n, 8)
    d = theta[first] - theta[second]
    chances = np.array([np.exp(d / 2), np.exp(-d / 2), np.full(n, 0.8)])
    outcome = (rng.random(n) * chances.sum(axis=0) > chances.cumsum(axis=0)).sum(axis=0)
    return make_votes(first, second, outcome, 8), theta


def draw_lists(rng, n, k):
    theta = rng.normal(size=10)
    model = rs.PlackettLuce.from_worths(dict(zip(name(10), np.exp(theta), strict=True)))
    return model.sample(n, k, rng), theta


def top_3_lists(rng):
    return draw_lists(rng, 60, 3)


def five_full_rankings(rng):
    return draw_lists(rng, 5, None)


def draw_by_raters(rng, n_raters, each):
    """Raters with tastes of their own; the truth is what all people would vote, on average."""
    theta, C, n = 0.5 * rng.normal(size=6), 6, n_raters * each
    taste = theta + 0.8 * rng.normal(size=(n_raters, C))
    rater = np.repeat(np.arange(n_raters), each)
    first, second = draw_pairs(rng, n, C)
    lost = rng.random(n) > expit(taste[rater, first] - taste[rater, second])
    votes = make_votes(first, second, lost.astype(int), C, raters=[f"p{i}" for i in rater])
    gap = theta[:, None] - theta
    mean = expit(gap[..., None] + 0.8 * np.sqrt(2) * NODES) @ NODE_WEIGHTS / NODE_WEIGHTS.sum()
    np.fill_diagonal(mean, 0)
    everybody = rs.Rankings.from_pair_counts(mean, items=name(C))
    return votes, rs.PlackettLuce(regularization=0).fit(everybody).log_worths_


def raters_8_of_20(rng):
    return draw_by_raters(rng, 8, 20)


def raters_20_of_100(rng):
    return draw_by_raters(rng, 20, 100)


def raters_40_of_20(rng):
    return draw_by_raters(rng, 40, 20)


CASES = [
    *(few_votes, unbalanced, never_beaten, ties, top_3_lists, five_full_rankings),
    *(raters_8_of_20, raters_20_of_100, raters_40_of_20),
]


def measure(case, repeats=REPEATS):
    """Return the share of differences inside their intervals, and its standard error."""
    shares = []
    for seed in range(repeats):
        votes, theta = case(np.random.default_rng(seed))
        board = rs.leaderboard(votes, n_draws=2, min_votes=0)
        truth = theta[[int(item) for item in board.items]]
        i, j = np.triu_indices(len(truth), 1)
        V, error = board.covariance, (board.log_worths - truth)
        reach = board._quantile * np.sqrt(V[i, i] + V[j, j] - 2 * V[i, j])
        shares.append(np.mean(np.abs(error[i] - error[j]) <= reach))
    return np.mean(shares), np.std(shares) / np.sqrt(repeats)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:some items always won")
@pytest.mark.parametrize("case", CASES)
def test_intervals_cover(case):
    share, error = measure(case)
    assert error < 0.008
    assert 0.93 < share < 0.97


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:some items always won")
def test_intervals_that_ignore_raters_do_not_cover():
    def nameless(rng):
        votes, theta = raters_20_of_100(rng)
        return replace(votes, raters=np.full(len(votes), None)), theta

    assert measure(nameless, 100)[0] < 0.75

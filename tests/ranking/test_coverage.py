"""How often 95 % intervals of differences hold the truth, by simulation.

The numbers are those of docs/results/guide.md.
"""

from dataclasses import replace

import numpy as np
import pytest
from pair_tables import draw_outcomes, draw_pairs, draw_votes, make_votes
from scipy.special import expit

import rankshot as rs

REPEATS = 400
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(40)
SKEWED = np.arange(1, 11) ** -1.5


def name(C):
    return [f"{i:02}" for i in range(C)]


def draw(rng, theta, n, **options):
    return draw_votes(rng, theta, n, name(theta.size), **options), theta


def draw_lists(rng, n, k):
    theta = rng.normal(size=10)
    model = rs.PlackettLuce.from_worths(dict(zip(name(10), np.exp(theta), strict=True)))
    return model.sample(n, k, rng), theta


def draw_by_raters(rng, n_raters, each):
    """Raters with tastes of their own; the truth is what all people would vote, on average."""
    theta, C, n = 0.5 * rng.normal(size=6), 6, n_raters * each
    taste = theta + 0.8 * rng.normal(size=(n_raters, C))
    rater = np.repeat(np.arange(n_raters), each)
    first, second = draw_pairs(rng, n, C)
    outcome = draw_outcomes(rng, taste[rater, first] - taste[rater, second])
    votes = make_votes(first, second, outcome, name(C), raters=[f"p{i}" for i in rater])
    gap = theta[:, None] - theta
    mean = expit(gap[..., None] + 0.8 * np.sqrt(2) * NODES) @ NODE_WEIGHTS / NODE_WEIGHTS.sum()
    np.fill_diagonal(mean, 0)
    everybody = rs.Rankings.from_pair_counts(mean, items=name(C))
    return votes, rs.PlackettLuce(regularization=0).fit(everybody).log_worths_


CASES = {
    "few votes": lambda rng: draw(rng, rng.normal(size=8), 80),
    "unbalanced": lambda rng: draw(rng, rng.normal(size=10), 600, chances=SKEWED / SKEWED.sum()),
    # In about three of four draws the first item loses no vote.
    "never beaten": lambda rng: draw(rng, np.append(4.5, 0.5 * rng.normal(size=7)), 200),
    "ties": lambda rng: draw(rng, rng.normal(size=8), 300, tie_parameter=0.8),
    "top 3 lists": lambda rng: draw_lists(rng, 60, 3),
    "five full rankings": lambda rng: draw_lists(rng, 5, None),
    "raters: 8 of 20": lambda rng: draw_by_raters(rng, 8, 20),
    "raters: 20 of 100": lambda rng: draw_by_raters(rng, 20, 100),
    "raters: 40 of 20": lambda rng: draw_by_raters(rng, 40, 20),
}


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
    share, error = measure(CASES[case])
    assert error < 0.008
    assert 0.93 < share < 0.97


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:some items always won")
def test_intervals_that_ignore_raters_do_not_cover():
    def nameless(rng):
        votes, theta = CASES["raters: 20 of 100"](rng)
        return replace(votes, raters=np.full(len(votes), None)), theta

    assert measure(nameless, 100)[0] < 0.75

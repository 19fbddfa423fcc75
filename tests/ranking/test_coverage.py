"""How often 95% intervals of differences hold the truth, by simulation.

The numbers are those of docs/results/guide.md.
"""

from dataclasses import replace

import numpy as np
import pytest
from pair_tables import draw_outcomes, draw_pairs, draw_votes, make_votes
from scipy.special import expit, stdtrit

import rankshot as rs
from rankshot.leaderboards.evidence import find_pair_degrees

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


def draw_by_raters(rng, volumes, *, unnamed=0.0, nameless=0):
    """Raters with tastes of their own; the truth is what all people would vote, on average.

    Some votes have lost their rater, or all votes of some raters.
    """
    theta, C, n = 0.5 * rng.normal(size=6), 6, sum(volumes)
    taste = theta + 0.8 * rng.normal(size=(len(volumes), C))
    rater = np.repeat(np.arange(len(volumes)), volumes)
    first, second = draw_pairs(rng, n, C)
    outcome = draw_outcomes(rng, taste[rater, first] - taste[rater, second])
    lost = (rng.random(n) < unnamed) | (rater < nameless)
    raters = [None if gone else f"p{i}" for i, gone in zip(rater, lost, strict=True)]
    return make_votes(first, second, outcome, name(C), raters=raters), ask_all(theta, 0.8)


def ask_all(theta, std):
    """Return the log-worths that fit what all people vote, whose tastes have this deviation."""
    gap = theta[:, None] - theta
    mean = expit(gap[..., None] + std * np.sqrt(2) * NODES) @ NODE_WEIGHTS / NODE_WEIGHTS.sum()
    np.fill_diagonal(mean, 0)
    everybody = rs.Rankings.from_pair_counts(mean, items=name(theta.size))
    return rs.PlackettLuce(regularization=0).fit(everybody).log_worths_


def draw_by_prompts(rng, n_raters, n_prompts, n):
    """Raters and prompts both favour some items: two-way clusters."""
    theta, C = 0.5 * rng.normal(size=6), 6
    sizes = n_raters, n_prompts
    who = [rng.integers(0, size, n) for size in sizes]
    taste = theta + sum(
        0.6 * rng.normal(size=(size, C))[i] for size, i in zip(sizes, who, strict=True)
    )
    first, second = draw_pairs(rng, n, C)
    row = np.arange(n)
    outcome = draw_outcomes(rng, taste[row, first] - taste[row, second])
    votes = make_votes(first, second, outcome, name(C), raters=[f"p{i}" for i in who[0]])
    return votes, ask_all(theta, 0.6 * np.sqrt(2)), who[1]


def share_out(n_raters, n):
    """Return volumes in proportion to 1, 1/2, 1/3, …"""
    shares = 1 / np.arange(1, n_raters + 1)
    return np.maximum(1, np.round(n * shares / shares.sum())).astype(int).tolist()


CASES = {
    "few votes": lambda rng: draw(rng, rng.normal(size=8), 80),
    "unbalanced": lambda rng: draw(rng, rng.normal(size=10), 600, chances=SKEWED / SKEWED.sum()),
    # In about three of four draws the first item loses no vote.
    "never beaten": lambda rng: draw(rng, np.append(4.5, 0.5 * rng.normal(size=7)), 200),
    "ties": lambda rng: draw(rng, rng.normal(size=8), 300, tie_parameter=0.8),
    "top 3 lists": lambda rng: draw_lists(rng, 60, 3),
    "five full rankings": lambda rng: draw_lists(rng, 5, None),
    "2 raters": lambda rng: draw_by_raters(rng, [60] * 2),
    "3 raters": lambda rng: draw_by_raters(rng, [60] * 3),
    "5 raters": lambda rng: draw_by_raters(rng, [40] * 5),
    "8 raters": lambda rng: draw_by_raters(rng, [20] * 8),
    "20 raters": lambda rng: draw_by_raters(rng, [100] * 20),
    "100 raters": lambda rng: draw_by_raters(rng, [20] * 100),
    "5 unequal": lambda rng: draw_by_raters(rng, share_out(5, 500)),
    "20 unequal": lambda rng: draw_by_raters(rng, share_out(20, 1000)),
    "100 unequal": lambda rng: draw_by_raters(rng, share_out(100, 4000)),
    "lost names": lambda rng: draw_by_raters(rng, [50] * 20, unnamed=0.3),
    "nameless raters": lambda rng: draw_by_raters(rng, [50] * 20, nameless=5),
    "raters and prompts": lambda rng: draw_by_prompts(rng, 20, 20, 1000),
    "5 raters, 200 prompts": lambda rng: draw_by_prompts(rng, 5, 200, 600),
}


def measure(case, repeats=REPEATS):
    """Return the share of differences inside their intervals, and its standard error."""
    shares = []
    for seed in range(repeats):
        votes, theta, *cluster = case(np.random.default_rng(seed))
        options = {"cluster": cluster[0]} if cluster else {}
        board = rs.leaderboard(votes, n_draws=2, min_votes=0, **options)
        truth = theta[[int(item) for item in board.items]]
        i, j = np.triu_indices(len(truth), 1)
        V, error = board.covariance, (board.log_worths - truth)
        reach = stdtrit(find_pair_degrees(V, board.degrees)[i, j], 0.975) * np.sqrt(
            V[i, i] + V[j, j] - 2 * V[i, j]
        )
        shares.append(np.mean(np.abs(error[i] - error[j]) <= reach))
    return np.mean(shares), np.std(shares) / np.sqrt(repeats)


@pytest.mark.slow
@pytest.mark.filterwarnings(
    "ignore:some items always won", "ignore:.* have no rater", "ignore:the raters agree more"
)
@pytest.mark.parametrize("case", CASES)
def test_intervals_cover(case):
    share, error = measure(CASES[case])
    assert error < 0.008
    # Two raters say little about how much raters differ.
    assert 0.93 < share < (0.985 if case == "2 raters" else 0.97)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:some items always won")
def test_intervals_that_ignore_raters_do_not_cover():
    def nameless(rng):
        votes, theta = CASES["20 raters"](rng)
        return replace(votes, raters=np.full(len(votes), None)), theta

    assert measure(nameless, 100)[0] < 0.75


@pytest.mark.slow
def test_errors_by_raters_are_those_of_a_cluster_bootstrap():
    """Raters are drawn with replacement, each with all votes; the raters have unequal volumes."""
    votes, _ = draw_by_raters(np.random.default_rng(1), share_out(40, 2000))
    number = np.array([int(name[1:]) for name in votes.raters])
    rng, found = np.random.default_rng(0), []
    for _ in range(400):
        drawn = np.bincount(rng.integers(0, 40, 40), minlength=40)
        model = rs.PlackettLuce().fit(replace(votes, weights=drawn[number].astype(float)))
        found.append(model.log_worths_)
    board = rs.leaderboard(votes)
    errors = [np.std([x[votes.items.index(item)] for x in found]) for item in board.items]
    # A bootstrap has no correction for few raters: it is a little lower.
    assert np.mean(board.standard_errors / errors) == pytest.approx(1.08, abs=0.12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:some items always won")
@pytest.mark.parametrize("volumes", [None, [40] * 5, [150] * 20])
def test_equal_items_differ_clearly_in_at_most_5_percent_of_boards(volumes):
    """However many comparisons there are, while intervals of 30 items often do not overlap."""
    C, wrong, apart = 30 if volumes is None else 10, 0, 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        if volumes is None:
            votes = draw(rng, np.zeros(C), 3000)[0]
        else:
            rater = np.repeat(np.arange(len(volumes)), volumes)
            taste = 0.8 * rng.normal(size=(len(volumes), C))
            a, b = draw_pairs(rng, rater.size, C)
            outcome = draw_outcomes(rng, taste[rater, a] - taste[rater, b])
            votes = make_votes(a, b, outcome, name(C), raters=[f"p{i}" for i in rater])
        board = rs.leaderboard(votes, n_draws=2, min_votes=0)
        low, high = board.comparison_intervals.T
        wrong += board.clearly_better.any()
        apart += low.max() > high.min()
    assert wrong / 300 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 300)
    assert volumes or apart / 300 > 0.4


@pytest.mark.slow
def test_equal_categories_differ_clearly_in_at_most_5_percent_of_boards():
    wrong = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        parts = []
        for target in ("one", "two"):
            rater = np.repeat(np.arange(5), 60)
            taste = 0.8 * rng.normal(size=(5, 6))
            a, b = draw_pairs(rng, 300, 6)
            outcome = draw_outcomes(rng, taste[rater, a] - taste[rater, b])
            raters = [f"{target} {i}" for i in rater]
            parts.append(make_votes(a, b, outcome, name(6), raters=raters, targets=target))
        board = rs.leaderboard(rs.Rankings.concatenate(parts), n_draws=2, category=True)
        found = board.differences()
        wrong += found[0].p_value < 0.05
    assert wrong / 300 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 300)

"""Reliability of raters, and Krippendorff's alpha, against definitions and published values."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from pair_tables import draw_outcomes, draw_pairs, make_votes
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest

import rankshot as rs
from rankshot.leaderboards.raters import weigh_raters

NAMES, THETA = list("abcdef"), np.linspace(1.5, -1.5, 6)


@pytest.fixture(scope="module")
def crowd():
    """Return the votes of eight honest raters, a coin and a contrary one."""
    rng = np.random.default_rng(3)
    rater = np.repeat(np.arange(10), 80)
    sign = np.where(rater == 8, 0.0, np.where(rater == 9, -1.0, 1.0))
    a, b = draw_pairs(rng, rater.size, 6)
    outcome = draw_outcomes(rng, sign * (THETA[a] - THETA[b]))
    return make_votes(a, b, outcome, NAMES, raters=[f"p{i}" for i in rater])


def test_spam_is_found(crowd):
    found = {each.rater: each for each in rs.leaderboards.rater_reliability(crowd)}
    assert [name for name, each in found.items() if each.p_value < 0.05] == ["p8", "p9"]
    assert all(found[f"p{i}"].reliability > 0.75 for i in range(8))
    assert found["p8"].reliability == pytest.approx(0.5, abs=0.2)
    assert found["p9"].reliability < 0.2
    assert found["p9"].agreement < 0.4
    assert found["p0"].agreement > 0.6


def test_reliabilities_have_the_largest_likelihood(crowd):
    """EM against a general optimiser of the likelihood of Crowd-BT."""
    found = {each.rater: each.reliability for each in rs.leaderboards.rater_reliability(crowd)}
    winner, loser = crowd.codes.reshape(-1, 2).T
    rater = np.array([int(name[1:]) for name in crowd.raters])

    def loss(x):
        p, eta = expit(x[winner] - x[loser]), expit(x[6:])[rater]
        return -np.log(eta * p + (1 - eta) * (1 - p)).sum() + 0.005 * x[:6] @ x[:6]

    at = minimize(loss, np.append(np.zeros(6), np.full(10, 2.0)), tol=1e-9).x
    assert [found[f"p{i}"] for i in range(10)] == pytest.approx(expit(at[6:]), abs=0.01)


def test_agreement_is_with_the_others_alone(crowd):
    """One Newton step is near the board that is fitted without the rater."""
    found = {each.rater: each for each in rs.leaderboards.rater_reliability(crowd)}
    for name in ("p0", "p9"):
        own = crowd.raters == name
        theta = rs.PlackettLuce().fit(crowd[~own]).log_worths_
        winner, loser = crowd[own].codes.reshape(-1, 2).T
        assert found[name].agreement == pytest.approx(np.mean(theta[winner] > theta[loser]))
        p = expit(np.abs(theta[winner] - theta[loser]))
        assert found[name].expected == pytest.approx(p.mean(), abs=0.01)


def test_honest_raters_are_seldom_suspected():
    """In one board of twenty at most, however many raters there are."""
    rng = np.random.default_rng(5)
    rater = np.repeat(np.arange(12), 40)
    n_suspected = 0
    for _ in range(25):
        a, b = draw_pairs(rng, rater.size, 6)
        outcome = draw_outcomes(rng, THETA[a] - THETA[b])
        votes = make_votes(a, b, outcome, NAMES, raters=[f"p{i}" for i in rater])
        n_suspected += min(each.p_value for each in rs.leaderboards.rater_reliability(votes)) < 0.05
    assert binomtest(n_suspected, 25, 0.05, "greater").pvalue > 0.05


def test_a_vote_weighs_as_much_as_it_informs(crowd):
    """Between equal items, by Fisher's information about their difference."""
    eta = {each.rater: each.reliability for each in rs.leaderboards.rater_reliability(crowd)}
    weights = weigh_raters(crowd)
    for rater in ("p0", "p8"):
        steps = np.array([-1e-4, 0, 1e-4])
        p = eta[rater] * expit(steps) + (1 - eta[rater]) * expit(-steps)
        information = ((p[2] - p[0]) / 2e-4) ** 2 / (p[1] * (1 - p[1]))
        wanted = information / 0.25 if eta[rater] > 0.5 else 0
        assert weights[crowd.raters == rater] == pytest.approx(wanted, abs=1e-6)


def test_votes_can_count_by_reliability(crowd):
    plain, weighed = (rs.leaderboard(crowd, weigh_raters=how) for how in (False, True))

    def miss(board):
        gap = board.log_worths - THETA[[NAMES.index(item) for item in board.items]]
        return np.abs(gap).mean()

    assert miss(weighed) < miss(plain)
    with pytest.raises(rs.RankshotError, match="reliability needs votes of two or more raters"):
        rs.leaderboards.rater_reliability(replace(crowd, raters=np.full(len(crowd), None)))
    with pytest.raises(rs.RankshotError, match="reliability needs votes between two items"):
        rs.leaderboards.rater_reliability(rs.Rankings.from_orders([["a", "b", "c"]]))


X = np.nan
PUBLISHED = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, X, X, X],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, X, 3],
    [X, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, X],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, X],
]
"""Krippendorff (2011), example C: four observers, twelve units, missing values."""


@pytest.mark.parametrize(
    ("metric", "wanted"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)]
)
def test_alpha_is_the_published_one(metric, wanted):
    assert rs.ranking.krippendorff_alpha(PUBLISHED, metric) == pytest.approx(wanted, abs=5e-4)


def test_alpha_of_rankings_is_that_of_all_their_pairs():
    orders = [["a", "b", "c", "d"], ["b", "a", "c", "d"], ["a", ["b", "d"], "c"]]
    rankings = rs.Rankings.from_orders(orders)
    places = rankings.positions()
    table = [[np.sign(row[i] - row[j]) for i, j in permutations(range(4), 2)] for row in places]
    wanted = rs.ranking.krippendorff_alpha(table, "interval")
    assert rs.ranking.krippendorff_alpha(rankings) == pytest.approx(wanted)
    assert rs.ranking.krippendorff_alpha(rankings[[0, 0]]) == 1
    with pytest.raises(rs.RankshotError, match="alpha needs two raters"):
        rs.ranking.krippendorff_alpha([[1, X], [X, 2]])

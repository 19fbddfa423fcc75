"""Agreement of raters, and Krippendorff's alpha, against definitions and published values."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from pair_tables import draw_outcomes, draw_pairs, make_votes
from scipy.stats import binomtest

import rankshot as rs
from refusals import refuses

NAMES, THETA = list("abcdef"), np.linspace(1.5, -1.5, 6)


def vote(rng, rater, signs=None, theta=THETA):
    """Return votes of raters; ``signs`` multiply what they think of the items."""
    sign = 1.0 if signs is None else np.asarray(signs)[rater]
    a, b = draw_pairs(rng, rater.size, 6)
    outcome = draw_outcomes(rng, sign * (theta[a] - theta[b]))
    return make_votes(a, b, outcome, NAMES, raters=[f"p{i}" for i in rater])


def test_spam_is_found():
    """Eight honest raters, a coin and a contrary one."""
    rater = np.repeat(np.arange(10), 80)
    votes = vote(np.random.default_rng(3), rater, [1] * 8 + [0, -1])
    found = {each.rater: each for each in rs.leaderboards.rater_agreement(votes)}
    assert [name for name, each in found.items() if each.p_value < 0.05] == ["p9", "p8"]
    assert found["p9"].agreement < 0.4
    assert found["p0"].agreement > 0.6


def test_the_expected_agreement_is_the_mean_over_who_gave_which_vote(rng):
    """Against permutations of the raters of each pair."""
    votes = vote(rng, np.repeat(np.arange(4), 30), theta=THETA / 2)
    found = {each.rater: each for each in rs.leaderboards.rater_agreement(votes)}
    codes = np.sort(votes.codes.reshape(-1, 2), axis=1)
    pair = codes @ [6, 1]
    drawn = []
    for _ in range(300):
        raters = votes.raters.copy()
        for which in np.unique(pair):
            raters[pair == which] = rng.permutation(raters[pair == which])
        shuffled = rs.leaderboards.rater_agreement(replace(votes, raters=raters))
        drawn.append({each.rater: each.agreement for each in shuffled})
    for name, each in found.items():
        values = [one[name] for one in drawn]
        assert each.expected == pytest.approx(np.mean(values), abs=4 * np.std(values) / 300**0.5)


@pytest.mark.parametrize("theta", [THETA, np.zeros(6)])
def test_honest_raters_are_seldom_suspected(theta):
    """In one board of twenty at most, however many raters there are."""
    rng = np.random.default_rng(5)
    boards = (vote(rng, np.repeat(np.arange(12), 40), theta=theta) for _ in range(60))
    p = [rs.leaderboards.rater_agreement(votes)[0].p_value for votes in boards]
    assert binomtest(sum(x < 0.05 for x in p), 60, 0.05, "greater").pvalue > 0.05


def test_agreement_needs_votes_of_several_raters(rng):
    votes = vote(rng, np.zeros(20, int))
    with refuses("rater"):
        rs.leaderboards.rater_agreement(votes)
    with refuses("votes"):
        rs.leaderboards.rater_agreement(rs.Rankings.from_orders([["a", "b", "c"]]))


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
    for metric in ("nominal", "ordinal"):
        wanted = rs.ranking.krippendorff_alpha(table, metric)
        assert rs.ranking.krippendorff_alpha(rankings, metric) == pytest.approx(wanted)
    assert rs.ranking.krippendorff_alpha(rankings[[0, 0]]) == 1
    with refuses("values"):
        rs.ranking.krippendorff_alpha([[1, X], [X, 2]])

from itertools import permutations

import mpmath
import numpy as np
import pytest
from brute import mallows

import rankshot as rs
from rankshot.ranking import mallows_log_normalizer
from rankshot.ranking.models.mallows import MallowsStatistics, mean_passed
from refusals import refuses

CENTER = ("c", "a", "e", "b", "d")
ITEMS = list("abcde")


@pytest.mark.parametrize("spread", [0.0, 1e-9, 0.2, 1.5, 10.0])
def test_probability_is_the_sum_over_full_rankings_ties_included(random_rankings, spread):
    """Lists, ties and cut ties against the enumeration of all 120 full rankings."""
    model = rs.Mallows.from_center(CENTER, spread)
    rankings = random_rankings(n_items=5, n=25)
    for k in (None, 1, 2, 3):
        some = rankings if k is None else rankings.top(k)
        expected = [
            mallows(order, CENTER, spread, int(taken))
            for order, taken in zip(some.orders(), some.lengths, strict=True)
        ]
        assert np.exp(model.log_prob(some)) == pytest.approx(np.array(expected), rel=1e-12)


@pytest.mark.parametrize("spread", [0.0, 1e-12, 0.1, 3.0, 200.0, np.inf])
def test_the_normaliser_and_its_derivative_are_those_of_truncated_geometrics(spread):
    sizes = np.arange(1, 51)
    with mpmath.workdps(30):
        terms = [mpmath.exp(-spread * v) if v else mpmath.mpf(1) for v in range(50)]
        phi = [mpmath.fsum(terms[:m]) for m in sizes]
        passed = [mpmath.fsum(v * terms[v] for v in range(m)) for m in sizes]
        log_phi = [float(mpmath.log(x)) for x in phi]
        means = [float(x / y) for x, y in zip(passed, phi, strict=True)]
    assert mean_passed(spread, 50) == pytest.approx(means, rel=1e-13)
    for k in (1, 20, 50):
        expected = sum(log_phi[50 - k :])
        assert mallows_log_normalizer(spread, 50, k) == pytest.approx(expected, rel=1e-13)


def test_fit_finds_the_best_centre_and_spread_of_all(rng):
    """Against a search over all 24 centres and a fine grid of spreads."""
    orders = [list(rng.permutation(4)[: rng.integers(1, 5)]) for _ in range(15)]
    rankings = rs.Rankings.from_orders(orders, items=range(4), weights=rng.integers(1, 5, size=15))
    model = rs.Mallows(method="exact").fit(rankings)
    best = max(
        rankings.weights @ statistics.log_prob(spread)
        for statistics in (MallowsStatistics(rankings, c) for c in permutations(rankings.items))
        for spread in np.linspace(0, 2, 101)
    )
    assert model.log_likelihood_ >= best
    assert model.log_likelihood_ == pytest.approx(best, abs=0.02)
    assert model.log_likelihood_ == pytest.approx(
        rankings.weights @ model.log_prob(rankings), rel=1e-12
    )


@pytest.mark.parametrize("k", [None, 2])
def test_the_spread_maximises_the_likelihood_with_ties(random_rankings, rng, k):
    rankings = random_rankings(n_items=5, n=20, weights=rng.random(20))
    rankings = rankings if k is None else rankings.top(k)
    model = rs.Mallows().fit(rankings)

    def value(spread):
        return rankings.weights @ rs.Mallows.from_center(model.center_, spread).log_prob(
            rankings.with_items(model.center_)
        )

    best = value(model.spread_)
    assert model.spread_ > 0
    for other in (model.spread_ * 0.999, model.spread_ * 1.001, 0.0, 5.0):
        assert value(other) < best


def test_rankings_that_all_agree_have_an_infinite_spread():
    rankings = rs.Rankings.from_orders([["b", "a"], ["b"], ["b", ["a", "c"]]], items=list("abcd"))
    model = rs.Mallows().fit(rankings.top(2))
    assert model.spread_ == np.inf
    assert model.center_[0] == "b"
    some = rs.Rankings.from_orders([list(model.center_), ["a"]], items=list("abcd"))
    assert model.log_prob(some).tolist() == [0, -np.inf]
    assert model.sample(3, random_state=0).orders() == [list(model.center_)] * 3


def test_the_spread_has_an_end_where_rankings_contradict_each_other():
    """c or d first, where all others put a first: no spread makes that free."""
    model = rs.Mallows().fit(rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[3, 3]))
    assert model.spread_ == 0
    assert model.log_likelihood_ == pytest.approx(6 * np.log(0.5))
    agree = rs.Rankings.from_orders([list("abcd")] * 10, items=list("abcd"))
    cut = rs.Rankings.from_orders([[["c", "d"]]], items=list("abcd")).top(1)
    assert 1 < rs.Mallows().fit(rs.Rankings.concatenate([agree, cut])).spread_ < 3
    for k in (-1, [1, 3]):
        with refuses("k"):
            mallows_log_normalizer(1.0, 2, k)

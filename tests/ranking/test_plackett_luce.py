import mpmath
import numpy as np
import pytest
from brute import plackett_luce as brute_probability
from scipy.optimize import minimize

import rankshot as rs
from peak_memory import peak_of
from rankshot.ranking.matrices import alike_items
from rankshot.ranking.models import plackett_luce, plackett_luce_stages
from rankshot.ranking.models.information import find_one_sided, maximize_worths
from rankshot.ranking.models.plackett_luce import Likelihood
from refusals import refuses

WORTHS = {"a": 3.0, "b": 0.5, "c": 1.0, "d": 7.0, "e": 0.02}


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_probability_is_the_sum_over_full_rankings_ties_included(random_rankings, kind):
    """Every list, tie, cut tie and subset against the enumeration of all 120 full rankings."""
    model = rs.PlackettLuce.from_worths(WORTHS)
    rankings = random_rankings(n_items=5, n=25, kind=kind)
    for k in (None, 1, 2, 3):
        some = rankings if k is None else rankings.top(k)
        expected = [
            brute_probability(order, WORTHS, list(WORTHS), kind, int(taken))
            for order, taken in zip(some.orders(), some.lengths, strict=True)
        ]
        assert np.exp(model.log_prob(some)) == pytest.approx(np.array(expected), rel=1e-12)


def test_score_gaps_of_a_thousand_keep_their_digits():
    """Worths e^0, e^-500, e^-1000, …: subtracting the placed from the total would leave nothing."""
    theta = np.array([0.0, -500.0, -1000.0, -1000.5])
    model = rs.PlackettLuce()._with_log_worths(("a", "b", "c", "d"), theta)
    lists = [["a", "b", "c", "d"], ["d", "c", "b", "a"], ["b", "a"], ["c"], ["a", ["c", "b"]]]
    rankings = rs.Rankings.from_orders(lists, items=list("abcd"))
    with mpmath.workdps(1000):
        worths = {x: mpmath.exp(t) for x, t in zip("abcd", theta.tolist(), strict=True)}

        def log_p(order):
            left, total = mpmath.fsum(worths.values()), mpmath.mpf(0)
            for item in order:
                total += mpmath.log(worths[item] / left)
                left -= worths[item]
            return total

        tied = (mpmath.exp(log_p("acb")) + mpmath.exp(log_p("abc"))) / 2
        expected = [float(log_p(x)) for x in lists[:-1]] + [float(mpmath.log(tied))]
    assert model.log_prob(rankings) == pytest.approx(expected, rel=1e-14, abs=1e-14)


def climb_slowly(rankings, regularization):
    """The penalised maximum by BFGS with numerical derivatives of `log_prob`."""

    def loss(theta):
        moved = rs.PlackettLuce()._with_log_worths(rankings.items, theta)
        return regularization / 2 * theta @ theta - rankings.weights @ moved.log_prob(rankings)

    found = minimize(loss, np.zeros(rankings.n_items), method="BFGS", options={"gtol": 1e-6})
    return found.x - found.x.mean(), -found.fun


@pytest.mark.parametrize("regularization", [0.0, 0.3])
@pytest.mark.parametrize("kind", ["top", "subset"])
def test_the_fit_is_the_maximum_of_the_log_likelihood(random_rankings, rng, kind, regularization):
    rankings = random_rankings(n_items=5, n=60, kind=kind, shortest=3, weights=rng.random(60))
    model = rs.PlackettLuce(regularization=regularization, tol=1e-12).fit(rankings)
    expected, best = climb_slowly(rankings, regularization)
    value = model.log_likelihood_ - regularization / 2 * model.log_worths_ @ model.log_worths_
    assert best - 1e-12 * abs(best) <= value <= best + 1e-8
    assert model.log_worths_ == pytest.approx(expected, abs=1e-5)
    assert model.log_likelihood_ == pytest.approx(
        rankings.weights @ model.log_prob(rankings), rel=1e-12
    )


@pytest.mark.parametrize("cells", [1, 40, 1 << 15])
def test_blocks_change_nothing(random_rankings, monkeypatch, cells):
    rankings = random_rankings(n_items=6, n=30)
    theta = np.linspace(-1, 1, 6)
    expected = Likelihood(rankings).evaluate(theta)
    curvature = Likelihood(rankings).information(theta)
    monkeypatch.setattr(plackett_luce_stages, "BLOCK_CELLS", cells)
    likelihood = Likelihood(rankings)
    found = likelihood.evaluate(theta)
    assert found.value == pytest.approx(expected.value, rel=1e-13)
    assert found.gradient == pytest.approx(expected.gradient, rel=1e-11, abs=1e-12)
    assert likelihood.information(theta) == pytest.approx(curvature, rel=1e-11, abs=1e-12)


def test_newton_climbs_where_cut_ties_bend_the_likelihood_the_wrong_way(rng):
    """Ties of three of which one is taken: information that is not positive."""
    for _ in range(2):
        orders = [[list(map(int, rng.permutation(6)[:3]))] for _ in range(6)]
        rankings = rs.Rankings.from_orders(orders, items=range(6)).top(1)
        model = rs.PlackettLuce().fit(rankings)
        assert model.n_iter_ < 50
        penalty = 0.005 * model.log_worths_ @ model.log_worths_
        assert model.log_likelihood_ - penalty >= climb_slowly(rankings, 0.01)[1] - 1e-6


@pytest.mark.parametrize(
    ("orders", "kind", "name"),
    [
        ([["a", "b", "c"], ["b", "a", "c"]], "top", "c"),
        ([["a", "b"], ["b", "a"]], "subset", "c"),
        ([[["a", "b"], "c"], ["a", "c", "b"]], "top", "a"),
    ],
)
def test_without_a_regulariser_an_estimate_that_does_not_exist_is_refused(orders, kind, name):
    rankings = rs.Rankings.from_orders(orders, items=list("abc"), kind=kind)
    with refuses("regularization", 0) as caught:
        rs.PlackettLuce(regularization=0).fit(rankings)
    assert repr(name) in caught.value.rule
    rs.PlackettLuce(regularization=0.1).fit(rankings)


def test_groups_that_the_rankings_do_not_connect():
    """a and b beat each other, c beats a, d loses to b and beats f, and nothing meets e."""
    before = np.zeros((6, 6))
    before[[0, 1, 2, 1, 3], [1, 0, 0, 3, 5]] = [1, 0.5, 2, 1, 1]
    is_apart, sides, text = find_one_sided(before, tuple("abcdef"))
    assert is_apart.tolist() == [False, False, True, True, True, True]
    assert sides.tolist() == [0, 0, 1, 0, 0, -1]
    assert [repr(item) in text for item in "abcdef"] == [False, False, True, False, True, True]
    # A group of one is compared with others of one: both ends are named.
    assert find_one_sided(before[3:, 3:], tuple("def"))[1].tolist() == [1, 0, -1]
    assert find_one_sided(before[:2, :2], tuple("ab"))[1:] == (pytest.approx([0, 0]), "")


def test_a_cut_tie_connects_what_came_before_it_but_not_its_own_items():
    """a before b and c for sure, then one of them; b before c before a closes the circle."""
    cut = rs.Rankings.from_orders([["a", ["b", "c"]]], items=list("abcd")).top(2)
    circle = rs.Rankings.from_orders([["b", "c", "d", "a"]], items=list("abcd"))
    together = rs.Rankings.concatenate([cut, circle])
    assert np.isfinite(rs.PlackettLuce(regularization=0).fit(together).log_worths_).all()
    only_cut = rs.Rankings.from_orders([[["b", "c"], "a"]], items=list("abcd")).top(1)
    with refuses("regularization", 0):
        rs.PlackettLuce(regularization=0).fit(only_cut)


# ---- Alike items have one worth


def fit_every_item(rankings, regularization=0.01):
    """The same fit with one parameter per item: slow, and nothing to understand."""
    likelihood = Likelihood(rankings)
    penalty = np.full(rankings.n_items, regularization)
    found = maximize_worths(likelihood, penalty, 1e-12)
    assert found.converged
    theta = found.parameters
    return theta - theta.mean(), likelihood.evaluate(theta).value


@pytest.mark.parametrize("kind", ["top", "subset"])
@pytest.mark.parametrize("k", [None, 2])
def test_one_worth_for_alike_items_is_the_fit_of_every_item(random_rankings, rng, kind, k):
    """Few rankings of 9 items: some are listed by none, some always tied, some cut by K."""
    for _ in range(2):
        rankings = random_rankings(n_items=9, n=3, kind=kind, weights=rng.random(3) + 0.5)
        rankings = rankings if k is None else rankings.top(k)
        model = rs.PlackettLuce(tol=1e-12).fit(rankings)
        theta, value = fit_every_item(rankings)
        assert model.log_worths_ == pytest.approx(theta, abs=1e-5)
        assert model.log_likelihood_ == pytest.approx(value, abs=1e-6)
        classes = alike_items(rankings)
        for number in range(classes.max() + 1):
            assert np.ptp(model.log_worths_[classes == number]) == 0


def test_a_fit_to_short_lists_of_many_items_has_few_parameters(rng, monkeypatch):
    """Two lists of 10 of 3,000 items, and a tie of 100 of which 5 count: 72 MB for a matrix."""
    lists = rng.permutation(3000)
    orders = [lists[:10].tolist(), [*lists[5:10].tolist(), lists[10:110].tolist()]]
    rankings = rs.Rankings.from_orders(orders, items=range(3000)).top(10)
    found = []
    monkeypatch.setattr(
        plackett_luce,
        "maximize_worths",
        lambda likelihood, *rest: (
            found.append(likelihood.counts.size) or maximize_worths(likelihood, *rest)
        ),
    )
    peak, model = peak_of(lambda: rs.PlackettLuce().fit(rankings))
    assert found == [12]
    assert peak < 20e6
    assert len(model.worths_) == 3000
    assert model.worths_.sum() == pytest.approx(1)
    assert len(model.mode_[-1]) == 3000 - 110

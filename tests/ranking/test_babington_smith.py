from itertools import permutations

import numpy as np
import pytest
from brute import babington_smith_weight, strict_refinements
from scipy.optimize import minimize

import rankshot as rs
from rankshot.ranking.models import babington_smith
from refusals import refuses

ITEMS = list("abcde")


@pytest.fixture
def log_odds(rng):
    f = rng.normal(size=(5, 5))
    return f - f.T


def table(f):
    items = ITEMS[: len(f)]
    return {a: dict(zip(items, row, strict=True)) for a, row in zip(items, f.tolist(), strict=True)}


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_equation_13_probabilities_by_enumeration(log_odds, k):
    model = rs.BabingtonSmith.from_log_odds(2 * log_odds, items=ITEMS)
    lists = list(permutations(ITEMS, k))
    weights = np.array([babington_smith_weight(x, table(log_odds), ITEMS) for x in lists])
    rankings = rs.Rankings.from_orders(lists, items=ITEMS)
    assert np.exp(model.log_prob(rankings)) == pytest.approx(weights / weights.sum(), rel=1e-12)
    assert model._log_normalizers([k])[0] == pytest.approx(np.log(weights.sum()), rel=1e-13)
    assert np.exp(model.log_weight(rankings)) == pytest.approx(weights, rel=1e-12)


def test_ties_are_the_mean_over_the_strict_rankings(log_odds, random_rankings):
    model = rs.BabingtonSmith.from_log_odds(2 * log_odds, items=ITEMS)
    rankings = random_rankings(n_items=5, n=20)
    for some in (rankings, rankings.top(1), rankings.top(3)):
        expected = [
            np.mean(
                [
                    babington_smith_weight(x, table(log_odds), ITEMS)
                    for x in strict_refinements(order, int(k))
                ]
            )
            for order, k in zip(some.orders(), some.lengths, strict=True)
        ]
        assert np.exp(model.log_weight(some)) == pytest.approx(np.array(expected), rel=1e-12)


@pytest.mark.parametrize("k", [2, 4])
def test_fit_maximises_the_penalised_likelihood(rng, k):
    """Against a plain optimiser over the enumerated probabilities of four items."""
    items = list("abcd")
    orders = [list(rng.permutation(items)[: rng.integers(1, k + 1)]) for _ in range(12)]
    rankings = rs.Rankings.from_orders(orders, items=items, weights=rng.integers(1, 4, size=12))
    model = rs.BabingtonSmith(regularization=0.2).fit(rankings)
    upper = np.triu_indices(4, 1)

    def matrix(x):
        f = np.zeros((4, 4))
        f[upper] = x
        return f - f.T

    def negative(x):
        f = table(matrix(x))
        total = -0.1 * x @ x
        for order, weight in zip(orders, rankings.weights, strict=True):
            lists = permutations(items, len(order))
            z = sum(babington_smith_weight(other, f, items) for other in lists)
            total += weight * np.log(babington_smith_weight(tuple(order), f, items) / z)
        return -total

    plain = minimize(negative, np.zeros(6), method="BFGS", options={"gtol": 1e-6})
    assert model.log_odds_ == pytest.approx(2 * matrix(plain.x), abs=2e-4)
    penalty = 0.1 * ((model.log_odds_[upper] / 2) ** 2).sum()
    assert model.log_likelihood_ - penalty == pytest.approx(-plain.fun, abs=1e-8)


def test_hundred_items_four_places_has_an_exact_normaliser(rng):
    """If f_ij = s_i - s_j, the sum over lists factors, and can be done by plain loops for K = 2."""
    s = rng.normal(0, 0.02, size=100)
    model = rs.BabingtonSmith.from_log_odds(2 * (s[:, None] - s), items=range(100))
    row = 100 * s - s.sum()
    total = sum(
        np.exp(row[i] + row[j] + s[i] - s[j]) for i in range(100) for j in range(100) if i != j
    )
    assert model._log_normalizers([2])[0] == pytest.approx(np.log(total), rel=1e-12)


def test_what_is_not_affordable_says_so_and_offers_the_weight(monkeypatch):
    model = rs.BabingtonSmith.from_log_odds(np.zeros((100, 100)), items=range(100))
    rankings = rs.Rankings.from_orders([list(range(10))], items=range(100))
    for call in (
        lambda: model.log_prob(rankings),
        lambda: model.sample(1, k=10),
        lambda: rs.BabingtonSmith().fit(rankings),
    ):
        with refuses("k", 10):
            call()
    assert model.log_weight(rankings).tolist() == [0]
    monkeypatch.setattr(babington_smith, "MAX_SUBSETS", 10)
    with refuses("k", 3):
        rs.BabingtonSmith.from_log_odds(np.zeros((7, 7)), items=range(7)).sample(1, 3)
    # The largest number of subsets is that of half the items.
    with refuses("k", 7):
        rs.BabingtonSmith.from_log_odds(np.zeros((7, 7)), items=range(7)).sample(1)

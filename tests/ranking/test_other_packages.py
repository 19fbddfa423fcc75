"""What `docs/guide/rankings.md` says of choix, against it."""

import numpy as np
import pytest

import rankshot as rs

N = 5


@pytest.fixture
def choix():
    return pytest.importorskip("choix")


def lists(rng, size, n=60):
    return [tuple(map(int, rng.permutation(N)[:size])) for _ in range(n)]


def subsets(data):
    return rs.Rankings.from_orders(data, items=range(N), kind="subset")


def fit(rankings, regularization=0.0):
    return rs.PlackettLuce(regularization=regularization).fit(rankings)


def test_rankings_of_choix_are_subset_rankings(choix, rng):
    data = lists(rng, 3, 30)
    model = fit(subsets(data))
    assert model.log_worths_ == pytest.approx(choix.ilsr_rankings(N, data), abs=1e-6)
    expected = choix.log_likelihood_rankings(data, model.log_worths_)
    assert model.log_likelihood_ == pytest.approx(expected)
    # Our penalty is twice that of choix.
    for alpha in (0.01, 0.5):
        expected = choix.opt_rankings(N, data, alpha=alpha)
        assert fit(subsets(data), 2 * alpha).log_worths_ == pytest.approx(expected, abs=1e-5)


def test_pairs_and_tables_of_counts_of_choix(choix, rng):
    data = lists(rng, 2)
    winners, losers = map(list, zip(*data, strict=True))
    pairs = rs.Rankings.from_pairs(winners, losers, items=range(N))
    assert fit(pairs).log_worths_ == pytest.approx(choix.ilsr_pairwise(N, data), abs=1e-6)
    counts = np.zeros((N, N))
    np.add.at(counts, (winners, losers), 1)
    table = rs.Rankings.from_pair_counts(counts, items=range(N))
    assert fit(table).log_worths_ == pytest.approx(choix.ilsr_pairwise_dense(counts), abs=1e-6)


def test_fit_agrees_with_choix_on_top_lists(choix, rng):
    """A top-K list is K choices from what is left, which choix calls top-1 data."""
    data = np.argsort(-(rng.normal(size=9) + rng.gumbel(size=(80, 9))), axis=1)
    choices = [(int(r[i]), [int(x) for x in r[i + 1 :]]) for r in data for i in range(3)]
    expected = choix.ilsr_top1(9, choices, max_iter=1000, tol=1e-12)
    rankings = rs.Rankings.from_item_numbers(data, items=range(9)).top(3)
    model = rs.PlackettLuce(regularization=0).fit(rankings)
    assert model.log_worths_ == pytest.approx(expected - expected.mean(), abs=1e-5)


def test_top_1_lists_and_probabilities_of_choix(choix, rng):
    data = [(first, rest) for first, *rest in lists(rng, 4, 80)]
    top = subsets([[first, rest] for first, rest in data]).top(1)
    model = fit(top)
    assert model.log_worths_ == pytest.approx(choix.ilsr_top1(N, data), abs=1e-6)
    asked = subsets([[0, [1, 2]], [1, [0, 2]], [2, [0, 1]]]).top(1)
    expected = choix.probabilities([0, 1, 2], model.log_worths_)
    assert np.exp(model.log_prob(asked)) == pytest.approx(expected)

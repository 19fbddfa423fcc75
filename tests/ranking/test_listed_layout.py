"""Short rankings of many items: only the listed items are laid out, and nothing else changes."""

import numpy as np
import pytest
from brute import plackett_luce as brute_probability
from hypothesis import event, given, settings, strategies as st

import rankshot as rs
from peak_memory import peak_of
from random_rankings import rankings_of
from rankshot.ranking.matrices import ABSENT, alike_items, levels
from rankshot.ranking.models import plackett_luce_stages
from rankshot.ranking.models.information import require_estimable
from rankshot.ranking.models.plackett_luce import Likelihood
from refusals import refuses

ITEMS = list("abcdef")
WEIGHTS = st.sampled_from([0.3, 1.0, 2.5])


def lay_out_listed(monkeypatch):
    """Lay out no ranking completely, however many items it lists."""
    monkeypatch.setattr(plackett_luce_stages, "LISTED_PART", 2.0)


@settings(max_examples=15)
@given(rankings=rankings_of(ITEMS, WEIGHTS, most=4), seed=st.integers(0, 2**32 - 1))
def test_the_value_is_the_brute_force_likelihood_and_the_others_are_its_derivatives(rankings, seed):
    rng = np.random.default_rng(seed)
    theta, h = rng.normal(size=6), 1e-5
    with pytest.MonkeyPatch.context() as monkeypatch:
        lay_out_listed(monkeypatch)
        likelihood = Likelihood(rankings)
        assert not any(block.complete for block in likelihood._blocks)
    worths = dict(zip(ITEMS, np.exp(theta), strict=True))
    probabilities = [
        brute_probability(order, worths, ITEMS, "subset" if subset else "top", int(taken))
        for order, subset, taken in zip(
            rankings.orders(), rankings.is_subset, rankings.lengths, strict=True
        )
    ]
    value = likelihood.evaluate(theta).value
    assert value == pytest.approx(rankings.weights @ np.log(probabilities), rel=1e-11, abs=1e-12)

    def gradient(at):
        return likelihood.evaluate(at).gradient

    steps = h * np.eye(6)
    values = [
        [likelihood.evaluate(theta + sign * step).value for sign in (1, -1)] for step in steps
    ]
    slopes = [(up - down) / (2 * h) for up, down in values]
    assert gradient(theta) == pytest.approx(slopes, abs=1e-6)
    bends = np.array([(gradient(theta + s) - gradient(theta - s)) / (2 * h) for s in steps])
    information = likelihood.information(theta)
    assert information == pytest.approx(-bends, abs=1e-6)


@pytest.mark.parametrize("scale", [0.5, 8.0, 40.0])
def test_both_layouts_agree_where_listed_items_have_nearly_all_worth(
    random_rankings, rng, monkeypatch, scale
):
    """The total minus the listed worth would have no correct digits."""
    rankings = random_rankings(n_items=6, n=30, weights=rng.random(30), kind=["top", "subset"] * 15)
    theta = scale * rng.permutation(6)
    complete = Likelihood(rankings)
    lay_out_listed(monkeypatch)
    listed = Likelihood(rankings)
    expected, found = (one.evaluate(theta) for one in (complete, listed))
    assert found.value == pytest.approx(expected.value, rel=1e-11)
    assert found.gradient == pytest.approx(expected.gradient, rel=1e-10, abs=1e-10)
    assert listed.information(theta) == pytest.approx(
        complete.information(theta), rel=1e-8, abs=1e-9
    )
    split = [part.complete for block in listed._blocks for part in block.split(theta)]
    assert split == {0.5: [False], 8.0: [True, False], 40.0: [True, False]}[scale]


def test_a_long_chain_of_comparisons_has_its_exact_answer(rng):
    """Each item against the next only: log-worths are sums of log-odds."""
    C = 400
    forth, back = rng.random((2, C - 1)) * 20 + 0.1
    first = np.arange(C - 1)
    pairs = np.concatenate([np.c_[first, first + 1], np.c_[first + 1, first]])
    rankings = rs.Rankings.from_orders(
        pairs.tolist(), items=range(C), kind="subset", weights=np.concatenate([forth, back])
    )
    truth = -np.append(0, np.cumsum(np.log(forth / back)))
    model = rs.PlackettLuce(regularization=0).fit(rankings)
    assert model.log_worths_ == pytest.approx(truth - truth.mean(), abs=1e-5)


def test_short_lists_take_the_memory_of_what_they_list(rng):
    """20,000 lists of 5 of 1,000 items: 160 MB as a table of all items, 8 MB as a matrix."""
    lists = np.argsort(rng.random((2000, 1000)), axis=1)[:, :50].reshape(-1, 5)
    rankings = rs.Rankings.from_item_numbers(lists, items=range(1000))
    peak, model = peak_of(lambda: rs.PlackettLuce().fit(rankings))
    assert peak < 80e6
    assert model.log_likelihood_ == pytest.approx(model.log_prob(rankings).sum(), rel=1e-10)


# ---- Whether the estimate exists


@settings(max_examples=30)
@given(rankings=rankings_of(list("abc"), WEIGHTS, most=8))
def test_the_estimate_exists_if_the_graph_of_all_pairs_is_strongly_connected(rankings):
    """Against the definition: an edge for each pair of which one item surely came first."""
    rankings = rankings[rankings.lengths == rankings.n_listed]
    level = levels(rankings)
    earlier = (level[:, :, None] < level[:, None]) & (level != ABSENT)[:, :, None]
    before = (earlier & (level != ABSENT)[:, None]).any(axis=0)
    reached = np.linalg.matrix_power(before + np.eye(3), 3) > 0
    event(f"exists: {reached.all()}")
    if reached.all():
        require_estimable(rankings)
    else:
        with refuses("regularization"):
            require_estimable(rankings)


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_items_are_alike_if_every_ranking_has_them_at_the_same_level(random_rankings, rng, kind):
    for _ in range(30):
        rankings = random_rankings(n_items=6, n=3, kind=kind).top(rng.integers(1, 7, 3))
        by_item, number = levels(rankings).T, alike_items(rankings)
        assert np.array_equal(number[:, None] == number, (by_item[:, None] == by_item).all(axis=2))

"""Short rankings of many items: only the listed items are laid out, and nothing else changes."""

import numpy as np
import pytest
from brute import plackett_luce as brute_probability
from hypothesis import given, settings, strategies as st
from strategies import tied_groups

import rankshot as rs
from rankshot.ranking.models import plackett_luce_stages
from rankshot.ranking.models.plackett_luce_likelihood import Likelihood

ITEMS = list("abcdef")


@st.composite
def mixtures(draw):
    """Full, top-K and subset rankings, with ties, cut ones among them, and weights."""
    orders = draw(st.lists(tied_groups(ITEMS), min_size=1, max_size=4))
    kinds = [draw(st.sampled_from(["top", "subset"])) for _ in orders]
    weights = [draw(st.sampled_from([0.3, 1.0, 2.5])) for _ in orders]
    rankings = rs.Rankings.from_orders(orders, items=ITEMS, kind=kinds, weights=weights)
    return rankings.top(np.array([draw(st.integers(1, 6)) for _ in orders]))


def lay_out_listed(monkeypatch):
    """Lay out no ranking completely, however many items it lists."""
    monkeypatch.setattr(plackett_luce_stages, "LISTED_PART", 2.0)


@settings(max_examples=40)
@given(rankings=mixtures(), seed=st.integers(0, 2**32 - 1))
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
    value, _ = likelihood.value_and_expected(theta)
    assert value == pytest.approx(rankings.weights @ np.log(probabilities), rel=1e-11, abs=1e-12)

    def gradient(at):
        return likelihood.wins - likelihood.value_and_expected(at)[1]

    steps = h * np.eye(6)
    values = [
        [likelihood.value_and_expected(theta + sign * step)[0] for sign in (1, -1)]
        for step in steps
    ]
    slopes = [(up - down) / (2 * h) for up, down in values]
    assert gradient(theta) == pytest.approx(slopes, abs=1e-6)
    bends = np.array([(gradient(theta + s) - gradient(theta - s)) / (2 * h) for s in steps])
    information = likelihood.information(theta)
    assert information == pytest.approx(-bends, abs=1e-6)
    curvature = likelihood.curvature(theta)
    assert curvature @ theta == pytest.approx(information @ theta, abs=1e-10)
    assert curvature.diagonal() == pytest.approx(np.diag(information), abs=1e-10)


@pytest.mark.parametrize("scale", [0.5, 8.0, 80.0])
def test_both_layouts_agree_where_listed_items_have_nearly_all_worth(
    random_rankings, rng, monkeypatch, scale
):
    """The total minus the listed worth would have no correct digits."""
    rankings = random_rankings(n_items=6, n=30, weights=rng.random(30), kind=["top", "subset"] * 15)
    theta = scale * rng.permutation(6)
    complete = Likelihood(rankings)
    lay_out_listed(monkeypatch)
    listed = Likelihood(rankings)
    expected, found = (one.value_and_expected(theta) for one in (complete, listed))
    assert found[0] == pytest.approx(expected[0], rel=1e-11)
    assert found[1] == pytest.approx(expected[1], rel=1e-11, abs=1e-11)
    assert listed.information(theta) == pytest.approx(
        complete.information(theta), rel=1e-8, abs=1e-9
    )
    split = [part.complete for block in listed._blocks for part in block.split(theta)]
    assert split == {0.5: [False], 8.0: [True, False], 80.0: [True]}[scale]

"""Mixtures against enumeration, other optimisers, and simulated groups that are known."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize
from sklearn.base import clone

import rankshot as rs
from random_rankings import tied_groups
from refusals import refuses

ABCD = ["a", "b", "c", "d"]


def all_orders(items):
    return rs.Rankings.from_orders(list(permutations(items)), items=items)


@pytest.fixture(scope="module")
def votes():
    """All orders of four items, with counts from two groups."""
    one = rs.PlackettLuce.from_worths({"a": 8, "b": 4, "c": 2, "d": 1})
    two = rs.PlackettLuce.from_worths({"a": 1, "b": 3, "c": 4, "d": 9})
    drawn = rs.Rankings.concatenate(
        [one.sample(250, random_state=1), two.sample(150, random_state=2)]
    )
    return drawn.unique()


@pytest.fixture(scope="module")
def raters():
    """Sixty raters of two groups, with three rankings each: top-2 or of all five items."""
    items, rng, sizes = [*ABCD, "e"], np.random.default_rng(0), (36 * 3, 24 * 3)
    models = rs.Mallows.from_center(items, 0.8), rs.Mallows.from_center(items[::-1], 0.8)
    drawn = [model.sample(n, random_state=rng) for model, n in zip(models, sizes, strict=True)]
    lists = rs.Rankings.concatenate(drawn).with_items(items).top(np.tile([5, 2, 5], 60))
    names = np.array([f"r{i // 3:02}" for i in range(180)], object)
    return replace(lists, raters=names), np.repeat([0, 1], sizes)


# ---- The likelihood


@pytest.mark.parametrize("model", [rs.PlackettLuce(), rs.Mallows()])
def test_probabilities_of_all_rankings_add_up_to_one(votes, model):
    mixture = rs.RankingMixture(model, 2, n_starts=2, random_state=0).fit(votes)
    everything = all_orders(ABCD)
    assert np.exp(mixture.log_prob(everything)).sum() == pytest.approx(1, abs=1e-12)
    assert np.exp(mixture.log_prob(everything.top(2).unique())).sum() == pytest.approx(1, abs=1e-12)
    parts = [m.log_prob(everything) for m in mixture.models_]
    by_hand = np.log(sum(w * np.exp(p) for w, p in zip(mixture.weights_, parts, strict=True)))
    assert mixture.log_prob(everything) == pytest.approx(by_hand)
    assert votes.weights @ mixture.log_prob(votes) == pytest.approx(mixture.log_likelihood_)


def test_all_rankings_of_a_rater_count_together(raters):
    rankings, _ = raters
    mixture = rs.RankingMixture(n_starts=2, random_state=0).fit(rankings)
    total, memberships = 0.0, mixture.predict_proba(rankings)
    for rater in rankings.rater_names:
        theirs = rankings.select(rater=rater)
        products = [np.exp(m.log_prob(theirs).sum()) for m in mixture.models_]
        joint = mixture.weights_ * products
        total += np.log(joint.sum())
        for row in np.flatnonzero(rankings.raters == rater):
            assert memberships[row] == pytest.approx(joint / joint.sum())
    assert total == pytest.approx(mixture.log_likelihood_)
    assert mixture.n_raters_ == 60


# ---- The fit


@pytest.mark.parametrize("model", [rs.PlackettLuce(regularization=0), rs.Mallows(method="exact")])
def test_groups_are_a_maximum_of_another_optimiser(votes, model):
    """In the share, and in worths or spreads."""
    mixture = rs.RankingMixture(model, random_state=0, tol=1e-6).fit(votes)
    assert [m.mode_[0] for m in mixture.models_] == ["a", "d"]

    def build(fitted, parameters):
        if isinstance(model, rs.Mallows):
            return rs.Mallows.from_center(fitted.center_, abs(parameters[0]))
        return rs.PlackettLuce.from_worths(dict(zip(ABCD, np.exp(parameters), strict=True)))

    def negative(parameters):
        share, groups = 1 / (1 + np.exp(-parameters[0])), np.split(parameters[1:], 2)
        one, two = (
            build(*each).log_prob(votes) for each in zip(mixture.models_, groups, strict=True)
        )
        return -votes.weights @ np.logaddexp(np.log(share) + one, np.log1p(-share) + two)

    own = [getattr(m, "log_worths_", [getattr(m, "spread_", 0)]) for m in mixture.models_]
    start = np.concatenate([[0.5], *own])
    start[1:] += np.random.default_rng(0).normal(scale=0.3, size=start.size - 1)
    found = minimize(negative, start)
    assert mixture.log_likelihood_ == pytest.approx(-found.fun, abs=1e-3)


@pytest.mark.parametrize("model", [rs.Mallows(), None])
def test_one_group_is_the_model_alone(random_rankings, model):
    rankings = random_rankings(n_items=4, n=20, shortest=4, weights=np.arange(1, 21) / 4)
    mixture = rs.RankingMixture(model, 1).fit(rankings)
    alone = clone(model or rs.PlackettLuce()).fit(rankings)
    assert mixture.log_likelihood_ == pytest.approx(alone.log_likelihood_, abs=1e-9)
    assert mixture.log_prob(rankings) == pytest.approx(alone.log_prob(rankings), abs=1e-6)
    assert mixture.models_[0].mode_ == alone.mode_
    assert mixture.weights_.tolist() == [1.0]
    assert (mixture.predict_proba(rankings) == 1).all()


@settings(max_examples=6)
@given(
    st.lists(tied_groups(ABCD), min_size=3, max_size=12),
    st.integers(0, 2**32 - 1),
    st.sampled_from(["plackett-luce", "plackett-luce of subsets", "mallows"]),
)
def test_em_never_falls(orders, seed, kind):
    rng = np.random.default_rng(seed)
    n = len(orders)
    subset = rng.random(n) < 0.5 if "subsets" in kind else np.zeros(n, bool)
    rankings = rs.Rankings.from_orders(
        orders,
        items=ABCD,
        weights=rng.choice([0.01, 0.5, 1, 3, 100], n),
        raters=rng.choice(["x", "y", None], n).tolist(),
        kind=["subset" if s else "top" for s in subset],
    )
    rankings = rankings.top(rng.integers(1, 5, n))
    model = rs.Mallows(method="borda") if kind == "mallows" else rs.PlackettLuce()
    n_groups = int(rng.integers(1, min(3, n) + 1))
    mixture = rs.RankingMixture(model, n_groups, n_starts=2, random_state=seed, tol=0.1)
    alone = rankings.raters == None  # noqa: E711
    n_units = len(rankings.rater_names) + rankings.weights[alone].sum()
    if n_units < n_groups and n_groups > 1:
        with refuses("n_groups", n_groups):
            mixture.fit(rankings)
        return
    mixture.fit(rankings)
    steps = np.diff(mixture.history_)
    assert (steps >= -1e-10 * np.abs(mixture.history_[:-1]) - 1e-10).all()
    assert np.isfinite(mixture.log_likelihood_)
    assert mixture.weights_.sum() == pytest.approx(1)
    assert (np.diff(mixture.weights_) <= 1e-12).all()
    assert mixture.predict_proba(rankings).sum(axis=1) == pytest.approx(np.ones(n))


# ---- Known groups


@pytest.mark.parametrize("model", [rs.PlackettLuce(), rs.Mallows()])
def test_raters_are_put_into_their_groups(raters, model):
    rankings, truth = raters
    mixture = rs.RankingMixture(model, n_starts=4, random_state=0).fit(rankings)
    assert (mixture.predict(rankings) == truth).mean() >= 0.97
    assert mixture.weights_ == pytest.approx([0.6, 0.4], abs=0.03)
    assert [m.mode_[0] for m in mixture.models_] == ["a", "e"]
    # One ranking says less than three of the same rater.
    nobody = replace(rankings, raters=np.full(len(rankings), None, object))
    alone = clone(mixture).fit(nobody)
    assert (alone.predict(nobody) == truth).mean() < (mixture.predict(rankings) == truth).mean()


def test_by_default_em_goes_on_until_little_is_gained(votes):
    found = rs.RankingMixture(n_starts=1, random_state=1).fit(votes)
    best = rs.RankingMixture(n_starts=1, random_state=1, tol=1e-8).fit(votes)
    assert found.log_likelihood_ == pytest.approx(best.log_likelihood_, abs=0.01)
    # Three worths for each of two groups, and a share.
    assert found.n_parameters_ == 7
    assert found.bic_ == pytest.approx(-2 * found.log_likelihood_ + 7 * np.log(400))
    with pytest.warns(UserWarning, match="converge"):
        hasty = rs.RankingMixture(n_starts=1, random_state=1, max_iter=1).fit(votes)
    assert hasty.n_iter_ == len(hasty.history_) == 1


def test_two_groups_of_equal_rankings_are_one_model():
    alike = rs.Rankings.from_orders([ABCD] * 3, raters=list("xyz"))
    mixture = rs.RankingMixture(rs.PlackettLuce(regularization=1), random_state=0).fit(alike)
    one = rs.PlackettLuce(regularization=1).fit(alike)
    assert mixture.models_[0].mode_ == mixture.models_[1].mode_ == one.mode_
    assert mixture.predict_proba(alike[:1])[0] == pytest.approx(mixture.weights_)


def test_rankings_of_several_targets_are_merged_and_warned_of_once(votes):
    mixture = rs.RankingMixture(rs.Mallows(), n_starts=1, random_state=0)
    alone = clone(mixture).fit(votes)
    targets = np.array(["cat", "dog"] * len(votes), object)[: len(votes)]
    with pytest.warns(UserWarning, match="several targets") as told:
        found = mixture.fit(replace(votes, targets=targets))
    assert len(told) == 1
    assert found.log_likelihood_ == pytest.approx(alone.log_likelihood_, abs=1e-9)


def test_bic_finds_the_number_of_groups(raters, votes):
    one = rs.PlackettLuce.from_worths({"a": 8, "b": 4, "c": 2, "d": 1}).sample(200, random_state=5)
    for rankings, model, expected in (
        (raters[0], rs.Mallows(), 2),
        (votes, None, 2),
        (one, None, 1),
    ):
        bic = [
            rs.RankingMixture(model, n, n_starts=1, random_state=0).fit(rankings).bic_
            for n in range(1, 4)
        ]
        assert 1 + np.argmin(bic) == expected


def test_there_are_no_more_groups_than_raters():
    # Weights that add up to a fraction of a rater; ten times 0.1 is a bit less than 1.
    orders = [ABCD, ABCD[1:], ABCD[::-1]]
    for weight, n_groups in ((0.1, 3), (0.03, 1)):
        parts = rs.Rankings.from_orders(orders * 10, items=ABCD, weights=[weight] * 30)
        mixture = rs.RankingMixture(n_groups=n_groups, n_starts=1, random_state=0)
        assert len(mixture.fit(parts).models_) == n_groups
        with pytest.raises(rs.InputError) as error:
            mixture.set_params(n_groups=n_groups + 1).fit(parts)
        assert error.value.parameter == "n_groups"

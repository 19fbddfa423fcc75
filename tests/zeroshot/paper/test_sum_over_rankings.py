"""P(z|x) = Σ_π P(π|x) P(z|π): enumerated, or estimated with its standard error."""

from itertools import permutations

import numpy as np
import pytest

import exact
import rankshot as rs
from refusals import refuses

ITEMS = ("a", "b", "c", "d", "e")
C = len(ITEMS)
PAIRS = C * (C - 1) // 2
PRIORS = {
    "plackett-luce": rs.PlackettLuce(),
    "mallows": rs.Mallows(),
    "babington-smith": rs.BabingtonSmith(),
}
RANKINGS = rs.Rankings.from_orders(
    [["a", "b", "c"], ["b", "a", "d"], ["e", "d", "c"], ["d", "e", "a"], ["c", "e", "a"], ["c"]],
    items=ITEMS,
    targets=["u", "u", "v", "v", "w", "w"],
)

each_prior = pytest.mark.parametrize("prior", PRIORS)
each_kind = pytest.mark.parametrize("kind", ["multiclass", "one-vs-one"])


@pytest.fixture
def sampling(monkeypatch):
    """Nothing is small enough to be enumerated."""
    monkeypatch.setattr("rankshot.zeroshot.paper.likelihoods.MAX_RANKINGS", 0)


def head_of(prior, k=2, **options):
    return rs.ProbabilisticRanking(k=k, prior=PRIORS[prior], posterior="sum", **options)


def scores_of(rng, kind, n=4, scale=1.0):
    size = (n, PAIRS if kind == "one-vs-one" else C)
    return rs.Scores(rng.normal(scale=scale, size=size), ITEMS, kind)


def ranker_prob(row, kind, k):
    """P(π|x) of all lists of k items, in the order of ``permutations``."""
    if kind == "one-vs-one":
        f = exact.by_pair(row, ITEMS)
        weights = [exact.babington_smith(pi, f, ITEMS) for pi in permutations(ITEMS, k)]
    else:
        f = dict(zip(ITEMS, row, strict=True))
        weights = [exact.plackett_luce(pi, f) for pi in permutations(ITEMS, k)]
    return np.exp(exact.log_normalized(weights))


def enumerated(head, scores):
    """The sum, term by term."""
    lists = rs.Rankings.from_orders(permutations(ITEMS, head.k), items=ITEMS)
    p_of_pi = np.exp([head.priors_[z].log_prob(lists) for z in head.classes_])
    p_of_z = p_of_pi / p_of_pi.sum(axis=0)
    return np.array([p_of_z @ ranker_prob(row, scores.kind, head.k) for row in scores.columns])


@each_kind
@each_prior
@pytest.mark.parametrize("k", [2, 5])
def test_the_exact_sum(rng, prior, kind, k):
    head, scores = head_of(prior, k).fit(RANKINGS), scores_of(rng, kind)
    proba, error = head.sum_over_rankings(scores)
    np.testing.assert_allclose(proba, enumerated(head, scores), rtol=1e-9)
    np.testing.assert_allclose(head.predict_proba(scores), proba, rtol=1e-12)
    assert not error.any()


def test_a_prior_that_is_not_used_is_refused():
    with refuses("prior"):
        rs.ProbabilisticRanking(prior=rs.Mallows()).fit(RANKINGS)
    with refuses("n_samples", 1):
        rs.ProbabilisticRanking(posterior="sum", n_samples=1).fit(RANKINGS)


def test_a_ranking_that_no_target_could_have_supports_none():
    """One ranking per target, and Mallows: P(π|z) is 1 for it and 0 for all others."""
    rankings = rs.Rankings.from_orders([["a", "b"], ["c", "d"]], items=ITEMS, targets=["u", "v"])
    head = head_of("mallows").fit(rankings)
    row = np.array([0.5, 1.0, -1.0, 0.0, 2.0])
    p = dict(zip(permutations(ITEMS, 2), ranker_prob(row, "multiclass", 2), strict=True))
    u, v = p["a", "b"], p["c", "d"]
    np.testing.assert_allclose(head.predict_proba([row]), [[(1 + u - v) / 2, (1 + v - u) / 2]])


@pytest.mark.usefixtures("sampling")
@each_kind
@each_prior
def test_the_estimate_is_within_its_errors(rng, prior, kind):
    head = head_of(prior, n_samples=3000, random_state=0).fit(RANKINGS)
    scores = scores_of(rng, kind)
    proba, error = head.sum_over_rankings(scores)
    assert (error > 0).all()
    assert (error < 0.02).all()
    assert (np.abs(proba - enumerated(head, scores)) < 5 * error).all()
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_allclose(head.predict_proba(scores), proba, rtol=1e-12)
    other = head_of(prior, n_samples=3000, random_state=1).fit(RANKINGS)
    assert (other.predict_proba(scores) != proba).any()


@pytest.mark.slow
@pytest.mark.usefixtures("sampling")
@each_kind
def test_the_standard_errors_are_about_right(rng, kind):
    """Over many seeds the estimates scatter as they say, around the exact sum."""
    scores, estimates, errors = scores_of(rng, kind, n=3), [], []
    for seed in range(50):
        head = head_of("plackett-luce", n_samples=100, random_state=seed).fit(RANKINGS)
        proba, error = head.sum_over_rankings(scores)
        estimates.append(proba)
        errors.append(error)
    scatter = np.std(estimates, axis=0, ddof=1)
    # The relative error of a standard deviation of 50 values is 1/√98: 10 %.
    assert (np.abs(scatter / np.mean(errors, axis=0) - 1) < 0.4).all()
    off = (np.mean(estimates, axis=0) - enumerated(head, scores)) / (scatter / np.sqrt(50))
    assert np.abs(off).max() < 5


@pytest.mark.usefixtures("sampling")
def test_a_class_that_no_draw_supports_has_probability_0():
    rankings = rs.Rankings.from_orders([["a"], ["b"]], items=["a", "b"], targets=["u", "v"])
    head = head_of("mallows", k=1, random_state=0).fit(rankings)
    confident = [[1000.0, 0.0]]
    np.testing.assert_array_equal(head.predict_proba(confident), [[1, 0]])


@pytest.mark.usefixtures("sampling")
def test_samples_of_scores_of_any_range(rng):
    """The first two items have all but e^-900 of the worth: the third draw is among the others."""
    lists = [["e", "b", "a"], ["e", "b", "c"], ["e", "b", "d"]]
    rankings = rs.Rankings.from_orders(lists, items=ITEMS, targets=["u", "v", "w"])
    head = head_of("mallows", k=3, n_samples=20_000).fit(rankings)
    proba, _ = head.sum_over_rankings([[-900.0, 0.0, -901.0, -2000.0, 40.0]])
    np.testing.assert_allclose(proba, [[1 / (1 + np.exp(-1)), 1 / (1 + np.e), 0]], atol=0.02)

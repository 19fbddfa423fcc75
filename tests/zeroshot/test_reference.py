"""Scores standardised by a reference, against plain NumPy."""

import numpy as np
import pytest
from head_cases import ITEMS, VOTES
from scipy.special import log_softmax
from sklearn.base import clone
from test_weighted_mean import like, scores

import rankshot as rs
from rankshot.zeroshot.scores import KINDS

PR = rs.ProbabilisticRanking
HEADS = {
    "default": PR(k=3),
    "paper": PR(k=2, posterior="consensus", decay=0, prior=rs.Mallows()),
}

each_head = pytest.mark.parametrize("name", HEADS)
each_kind = pytest.mark.parametrize("kind", KINDS)


def fitted(name, reference=None, rankings=VOTES):
    return clone(HEADS[name]).fit(rankings, reference=reference)


# ------------------------------------------------------------------ the numbers


@each_kind
@each_head
def test_it_is_standardised_scores_and_then_standardised_targets(rng, name, kind):
    usual, new = scores(rng, kind), scores(rng, kind, n=25)
    mean, std = usual.values.mean(axis=0), usual.values.std(axis=0)
    plain = fitted(name)
    of_usual, of_new = (
        plain.decision_function(like(table, (table.values - mean) / std)) for table in (usual, new)
    )
    standard = (of_new - of_usual.mean(axis=0)) / of_usual.std(axis=0)
    expected = log_softmax(standard / 0.25, axis=1)
    head = fitted(name, usual)
    np.testing.assert_allclose(head.log_proba(new), expected, rtol=1e-9, atol=1e-11)
    assert not np.allclose(expected, plain.log_proba(new), atol=0.1)
    # For the reference itself every target is usual.
    own = head.decision_function(usual)
    np.testing.assert_allclose(own.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(own.std(axis=0), 1, rtol=1e-12)


# ------------------------------------------------------------------ what never changes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n", "constant"), [(10, -1 / 3), (1000, 1e5 / 7)])
def test_a_column_that_never_changes_is_only_moved(rng, n, constant, dtype):
    """The mean of many tenths is no tenth: rounding error is no deviation."""
    usual = scores(rng, "multiclass", n).values.astype(dtype)
    usual[:, 2] = constant
    head = fitted("default", usual)
    assert head.reference_.score_std[2] == 1
    assert head.reference_.score_mean[2] == dtype(constant)
    new = scores(rng, "multiclass", 5).values
    new[:, 2] = constant + np.array([0, 0.5, -1, 2, 0.25])
    std = np.where(np.arange(5) == 2, 1, usual.std(axis=0, dtype=np.float64))
    scaled = (new - usual.mean(axis=0, dtype=np.float64)) / std
    np.testing.assert_allclose(
        head.reference_.standardize_scores(new, "multiclass"),
        scaled,
        rtol=1e-5,
        atol=1e-5 * (1 + constant**2),
    )
    assert np.abs(head.log_proba(new)).max() < 100


def test_a_target_that_never_changes_is_only_moved(rng):
    """A ranking with all items tied carries no information."""
    lists = rs.Rankings.from_orders(
        [[list(ITEMS)], [*ITEMS], [*ITEMS[::-1]]], items=ITEMS, targets=["any", "u", "v"]
    )
    head = PR(decay=0.5).fit(lists, scores(rng, "multiclass"))
    assert head.reference_.target_std[0] == 1
    assert (head.reference_.target_std[1:] > 0.1).all()
    found = head.decision_function(scores(rng, "multiclass", n=9))
    np.testing.assert_allclose(found[:, 0], 0, atol=1e-9)
    assert (np.abs(found[:, 1:]) > 1e-3).all()


# ------------------------------------------------------------------ numbers of few digits


def test_the_standard_deviation_of_many_single_numbers_far_from_zero(rng):
    """Added up in single precision, their mean would be off by more than they are apart."""
    values = (5000 + 0.05 * rng.normal(size=(100_000, len(ITEMS)))).astype(np.float32)
    lists = rs.Rankings.from_orders([["a"], ["b"]], items=ITEMS, targets=["u", "v"])
    found = PR(k=1).fit(lists, values).reference_
    np.testing.assert_allclose(found.score_std, np.float64(values).std(axis=0), rtol=1e-5)


# ------------------------------------------------------------------ explanations


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (HEADS["default"], "multiclass"),
        (HEADS["paper"], "one-vs-one"),
        (rs.WeightedMean(k=3), "one-vs-rest"),
        (rs.WeightedMean(k=3), "one-vs-one"),
    ],
)
def test_parts_of_items_add_up_to_the_standardised_log_posterior(rng, head, kind):
    head, new = clone(head).fit(VOTES, scores(rng, kind)), scores(rng, kind, n=25)
    parts = head.item_contributions(new.values, kind)
    assert parts.shape == (25, 4, len(ITEMS))
    np.testing.assert_allclose(parts.sum(axis=2), head.decision_function(new), atol=1e-9)


@each_kind
def test_parts_of_sources_average_to_the_standardised_log_posterior(rng, kind):
    head, new = fitted("default", scores(rng, kind)), scores(rng, kind, n=25)
    names, parts = head.source_log_posteriors(new.values, kind)
    assert names == ("me", "you")
    weights = np.array(
        [
            [VOTES.weights[(VOTES.targets == z) & (VOTES.sources == s)].sum() for s in names]
            for z in head.classes_
        ]
    )
    assert (np.isnan(parts) == (weights == 0)).all()
    # Both sources have the same weight for all classes; "you" lacks two of them.
    shares = weights.sum(axis=0) / (weights > 0).sum(axis=0)
    raw = parts * head.reference_.target_std[:, None] + head.reference_.target_mean[:, None]
    neutral = np.log(np.nanmean(np.exp(raw), axis=1, keepdims=True))
    whole = np.where(np.isnan(raw), neutral, raw) @ (shares / shares.sum())
    expected = head.reference_.standardize_log_posterior(whole.T).T
    np.testing.assert_allclose(expected, head.decision_function(new), atol=1e-9)


# ------------------------------------------------------------------ tensors


@pytest.mark.parametrize(
    "fit",
    [
        lambda reference: PR().fit(VOTES, reference),
        lambda reference: rs.WeightedMean().fit(VOTES, reference=reference),
        lambda reference: rs.SeenAndNew(rs.WeightedMean().fit(VOTES)).fit(reference),
    ],
)
def test_a_reference_may_be_a_tensor(rng, fit):
    """A head is fitted in main memory, wherever the scores of the reference are."""
    torch = pytest.importorskip("torch")
    usual, new = (scores(rng, "multiclass", n, dtype=np.float32) for n in (60, 5))
    tensor = like(usual, torch.tensor(usual.values, requires_grad=True))
    expected, found = (fit(reference).log_proba(new) for reference in (usual, tensor))
    np.testing.assert_array_equal(found, expected)

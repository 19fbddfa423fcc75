"""The decision between old and new classes: its budget holds, by simulation."""

from dataclasses import replace

import numpy as np
import pytest
from head_cases import find_excess

from rankshot.zeroshot.class_means import (
    DENSITY_WEIGHT,
    ClassModel,
    Examples,
    Groups,
    Inputs,
    Reference,
)
from rankshot.zeroshot.default_head import rank_bonus
from rankshot.zeroshot.together import (
    FEATURE_WEIGHT,
    NEVER,
    Batch,
    DecisionData,
    find_threshold,
    fit_together,
)

C = 8
RANKED = np.zeros((2, C))
RANKED[0, [0, 1]] = 0.6, 0.4
RANKED[1, [4, 5]] = 0.6, 0.4
NEW = np.zeros((2, C))
NEW[0, [0, 1, 2]] = NEW[1, [4, 5, 7]] = 2.0


def draw(rng, centers, n):
    codes = rng.choice(len(centers), n)
    x = centers[codes] + rng.normal(size=(n, C))
    x = x - x.mean(axis=1, keepdims=True)
    f = x / x.std(axis=1, keepdims=True)
    return Inputs(f, rank_bonus(f), np.zeros((n, 0))), codes


def fit(rng, n, budget, *, with_labels=True, examples=None):
    inputs, codes = draw(rng, 3 * np.eye(C), n)
    first = inputs.f.argmax(axis=1)
    counts = first == codes if with_labels else np.ones(n, bool)
    return fit_together(DecisionData(RANKED, Reference(inputs, first), examples), counts, budget)


@pytest.mark.parametrize(
    ("n", "with_labels", "n_classes", "n_draws"),
    [
        (300, True, 0, 40),
        (30, True, 0, 40),
        *(
            pytest.param(*design, 100, marks=pytest.mark.slow)
            for design in [(300, True, 0), (300, False, 0), (300, True, 2), (300, True, 1)]
        ),
    ],
)
def test_the_loss_is_within_the_budget(n, with_labels, n_classes, n_draws):
    budget, losses, found = 0.05, [], []
    for seed in range(n_draws):
        rng = np.random.default_rng(seed)
        examples = Examples(*draw(rng, NEW[:n_classes], 6)) if n_classes else None
        fitted = fit(rng, n, budget, with_labels=with_labels, examples=examples)
        tested, codes = draw(rng, 3 * np.eye(C), 300)
        first = tested.f.argmax(axis=1)
        above = find_excess(fitted, tested, first).max(axis=1) > 0
        losses.append(np.mean(above & (first == codes) if with_labels else above))
        new, _ = draw(rng, NEW, 100)
        found.append(np.mean(find_excess(fitted, new, new.f.argmax(axis=1)).max(axis=1) > 0))
        assert fitted.budget.n_inputs == n
        assert fitted.budget.loss <= budget
    assert np.mean(losses) <= budget + 2 * np.std(losses) / np.sqrt(n_draws)
    # At least a third of the budget is used, and it is worth it.
    assert np.mean(losses) > budget / 3
    assert np.mean(found) > 2 * budget


def test_too_few_inputs_allow_no_new_class():
    values = np.arange(30.0)
    everything = np.ones(30, bool)
    assert find_threshold(values, everything, 0.02).threshold == NEVER
    # 1 / budget - 1 inputs are enough.
    assert find_threshold(np.arange(49.0), np.ones(49, bool), 0.02).threshold == 48


def test_the_threshold_loses_fewer_than_its_rank():
    values = np.array([3.0, 1, 2, 5, 4, 9, 8, 7, 6])
    counts = values != 9
    found = find_threshold(values, counts, 0.3)
    assert found.threshold == 6
    assert found.loss == pytest.approx(2 / 9)
    assert find_threshold(values, counts, 1.0).threshold == -NEVER


def test_examples_of_one_class_do_not_harm_the_other():
    rng = np.random.default_rng(0)
    few, codes = draw(rng, NEW[:1], 5)
    tested, truth = draw(rng, NEW, 2000)
    found = []
    for examples in (None, Examples(few, codes)):
        fitted = fit(np.random.default_rng(1), 600, 0.05, examples=examples)
        g = find_excess(fitted, tested, tested.f.argmax(axis=1))
        predicted = np.where(g.max(axis=1) > 0, g.argmax(axis=1), -1)
        found.append([np.mean(predicted[truth == z] == z) for z in (0, 1)])
    (without, other_without), (with_examples, other_with) = found
    assert with_examples > without
    assert other_with > other_without - 0.02


def test_features_have_a_weight_of_their_own_between_seen_and_new_classes():
    rng = np.random.default_rng(0)
    usual, first = draw(rng, 3 * np.eye(C), 200)
    few, codes = draw(rng, NEW, 10)
    usual, few = (x._replace(features=rng.normal(size=(len(x.f), 3))) for x in (usual, few))
    known = DecisionData(RANKED, Reference(usual, first), Examples(few, codes))
    decision = known.fit()
    # Beside each other, new classes count scores and features the same.
    alone = ClassModel(RANKED, decision.by_rankings, known.reference, known.examples)
    seen = alone.fit_maps()[1]
    np.testing.assert_allclose(
        decision.seen.feature_slopes, 2 * FEATURE_WEIGHT * seen.feature_slopes
    )
    np.testing.assert_allclose(decision.seen.slopes, 2 * (1 - FEATURE_WEIGHT) * seen.slopes)
    assert 0 < FEATURE_WEIGHT < 0.5


def test_log_likelihoods_count_less_where_rankings_alone_tell_the_new_classes():
    rng = np.random.default_rng(0)
    usual, first = draw(rng, 3 * np.eye(C), 200)
    known = DecisionData(RANKED, Reference(usual, first))
    nowhere = np.zeros(0, np.intp)
    none = Examples(usual.take(nowhere), nowhere)
    alone = ClassModel(RANKED, known.fit().by_rankings, known.reference, none)
    _, seen = alone.fit_maps()
    np.testing.assert_allclose(known.fit().seen.slopes, DENSITY_WEIGHT * seen.slopes)
    assert 0 < DENSITY_WEIGHT < 1
    # A batch of one improbable input is as good as none, but its weight is that of a batch.
    inputs, _ = draw(rng, NEW[:1], 1)
    batch = Batch(inputs, np.full((1, 2), -9.0), np.zeros((90, 2)))
    by_batch = replace(known, batch=batch).fit()
    np.testing.assert_allclose(by_batch.seen.slopes, seen.slopes, rtol=1e-6)


# ---- Batches of both groups


def test_an_input_of_a_batch_is_new_as_far_as_its_log_odds_are_more_frequent():
    rng = np.random.default_rng(0)
    inputs, _ = draw(rng, NEW, 40)
    batch = Batch(inputs, rng.normal(0.5, 1, (40, 2)), rng.normal(size=(90, 2)))
    proba = batch.weigh().proba
    own, usual = batch.log_odds.max(axis=1), batch.reference.max(axis=1)
    for row, value in enumerate(own):
        expected = (1 + sum(usual >= value)) / 91
        share = sum(own >= value) / 40
        assert proba[row].sum() == pytest.approx(max(0, 1 - expected / share))
        odds = np.exp(batch.log_odds[row, 0] - batch.log_odds[row, 1])
        assert proba[row, 0] == pytest.approx(odds * proba[row, 1])
    # A fold of the reference becomes part of the batch.
    left = np.arange(90) < 30
    joined = batch.join(draw(rng, NEW, 30)[0], left)
    assert [len(part) for part in (joined.inputs.f, joined.log_odds, joined.reference)] == [
        *(70, 70, 60)
    ]


def test_uncertain_points_count_by_their_purity():
    x, proba = np.eye(3), np.array([[1.0, 0], [0.5, 0.2], [0.5, 0]])
    nothing = Groups.collect(np.zeros((0, 3)), np.zeros(0, int), 2)
    groups = nothing.plus(x, proba)
    np.testing.assert_allclose(groups.counts, [1.5, 0.04])
    np.testing.assert_allclose(groups.means, [[0.5, 0.25, 0.25], [0, 1, 0]])


@pytest.mark.parametrize(
    "n_new", [*(pytest.param(n, marks=pytest.mark.slow) for n in (0, 15)), 150]
)
def test_the_loss_in_a_batch_of_both_groups_is_within_the_budget(n_new):
    """Of the inputs of the batch themselves, of which the means know some."""
    budget, losses, found = 0.05, [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        inputs, codes = draw(rng, 3 * np.eye(C), 200)
        known = DecisionData(RANKED, Reference(inputs, inputs.f.argmax(axis=1)))
        counts = known.reference.predicted == codes
        seen, codes = draw(rng, 3 * np.eye(C), 150)
        new, _ = draw(rng, NEW, n_new)
        batch, first = seen.plus(new), seen.plus(new).f.argmax(axis=1)
        above = [
            find_excess(each, batch, first).max(axis=1) > 0
            for each in (
                fit_together(known, counts, budget),
                fit_together(known.use_batch(batch, first), counts, budget),
            )
        ]
        losses.append(np.mean(above[1][:150] & (first[:150] == codes)))
        found.append([np.mean(each[150:]) if n_new else 0.0 for each in above])
    assert np.mean(losses) <= budget + 2 * np.std(losses) / np.sqrt(12)
    alone, jointly = np.mean(found, axis=0)
    assert jointly >= alone - 0.02
    if n_new == 150:
        assert jointly > alone + 0.03

"""Evidence of another model: its weight, and what heads do with it."""

import numpy as np
import pytest
from examples_problem import CLASSES, ITEMS, draw_problem
from scipy.special import log_softmax, softmax

import rankshot as rs
from rankshot.testing import check_head
from rankshot.zeroshot import word_evidence
from rankshot.zeroshot.evidence import center_evidence, weigh_evidence
from refusals import refuses


def opinions(rng, y, strength):
    """Log-probabilities of a calibrated model that knows this much."""
    values = strength * np.eye(4)[y] + rng.normal(size=(len(y), 4)) * np.sqrt(strength)
    return log_softmax(values, axis=1)


def standardized(evidence):
    centered, scale = center_evidence(evidence)
    return centered / scale


@pytest.fixture(scope="module")
def problem():
    """Scores whose rankings say something, and features and evidence that say more."""
    rng = np.random.default_rng(1)
    rankings, values, features, y = draw_problem(rng)
    # Other columns, in another order; cosines have a small range.
    table = 0.1 * opinions(rng, y, 1.5)[:, [2, 0, 3, 1]] + 0.7
    evidence = rs.Scores(np.column_stack([table, table[:, 0]]), ["c", "a", "d", "b", "other"])
    scores = rs.Scores(values, ITEMS, features=features, evidence=evidence)
    return rankings, scores, np.array(CLASSES)[y]


# ------------------------------------------------------------------ evidence


def test_the_weight_follows_from_the_agreement():
    """With many inputs and independent errors, the accuracy of the evidence is found."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=100_000)
    by_head, evidence = opinions(rng, y, 2.0), standardized(opinions(rng, y, 0.7))
    weight = weigh_evidence(by_head, evidence)
    accuracy = np.mean(evidence.argmax(axis=1) == y)
    confidence = softmax(weight * evidence, axis=1).max(axis=1).mean()
    assert confidence == pytest.approx(accuracy, abs=0.01)


def test_evidence_of_one_class_has_no_weight():
    scores = rs.Scores([[1.0, 2.0], [0.0, 3.0]], ["a", "b"])
    both = scores.with_blocks(evidence=rs.Scores([[1.0], [5.0]], ["new"]))
    assert rs.recognise(both, {"new": ["a"]}).proba.tolist() == [[1.0], [1.0]]
    assert weigh_evidence(np.zeros((2, 1)), np.zeros((2, 1))) == 0


def test_evidence_that_agrees_by_chance_has_no_weight_and_of_few_inputs_less(rng):
    by_head = opinions(rng, rng.integers(4, size=400), 2.0)
    assert weigh_evidence(by_head, standardized(rng.normal(size=(400, 4)))) < 0.05
    assert weigh_evidence(by_head, standardized(-by_head)) == 0
    assert weigh_evidence(by_head, standardized(100 * by_head)) <= 1
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=40)
    few = opinions(rng, y, 2.0), standardized(opinions(rng, y, 1.0))
    many = [np.tile(table, (25, 1)) for table in few]
    assert 0 < weigh_evidence(*few) < weigh_evidence(*many) < 1


def test_a_head_with_evidence_is_the_sum_of_both(problem):
    rankings, scores, truth = problem
    head = rs.WeightedMean(evidence_weight=0.7).fit(rankings, evidence=scores)
    alone = rs.WeightedMean().fit(rankings)
    e = scores.evidence.select(CLASSES).values
    e = e - e.mean(axis=1, keepdims=True)
    expected = log_softmax(alone.log_proba(scores) + 0.7 * e / e.std(), axis=1)
    np.testing.assert_allclose(head.log_proba(scores), expected, atol=1e-9)
    # A single input gets the same answer as in the batch.
    np.testing.assert_allclose(head.log_proba(scores[7:8]), expected[7:8], atol=1e-9)
    both = rs.WeightedMean().fit(rankings, evidence=scores)
    right = [np.mean(h == truth) for h in (both.predict(scores), alone.predict(scores))]
    # 160 inputs have a standard error of .04.
    assert right[0] > right[1]
    assert right[0] > np.mean(np.array(CLASSES)[e.argmax(axis=1)] == truth) - 0.04


def test_examples_and_files_go_along(problem):
    rankings, scores, truth = problem
    head = rs.WeightedMean().fit(rankings, examples=(scores[::20], truth[::20]), evidence=scores)
    check_head(head, scores[:9])
    assert head.head_.evidence == tuple(CLASSES)


WRONG = {
    "no names": (lambda s: s.with_blocks(evidence=np.ones((160, 4))), None),
    "rows": (lambda s: s.with_blocks(evidence=s.evidence[:9]), 9),
    "columns": (lambda s: s.with_blocks(evidence=s.evidence.select(["a", "b"])), "c"),
    "none": (lambda s: rs.Scores(s.values, ITEMS), None),
    "an array": (lambda s: s.values, None),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_evidence(problem, name):
    rankings, scores, _ = problem
    make, value = WRONG[name]
    with refuses("evidence", *([] if value is None else [value])):
        rs.WeightedMean().fit(rankings, evidence=make(scores))


def test_words():
    found = word_evidence(
        ["what is my balance", "flip a coin for me", "no common word"],
        ["account_balance", "flip_coin"],
        corpus=["is it me", "what for"],
    )
    assert found.items == ("account_balance", "flip_coin")
    assert found.values[:2].argmax(axis=1).tolist() == [0, 1]
    same = word_evidence(["flip coin"], ["flip_coin", "other"])
    np.testing.assert_allclose(same.values[0, 0], 1, rtol=1e-6)

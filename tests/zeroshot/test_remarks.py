"""What is said of odd predictions: when, and of which classes."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.zeroshot.remarks import describe_closed_set, describe_predictions, describe_similar

ITEMS = [f"s{i}" for i in range(8)]
RANKINGS = {"u": ["s0", "s1"], "v": ["s2", "s3"], "w": ["s4", "s5"], "x": ["s6", "s7"]}


@pytest.fixture
def inputs(rng):
    return rs.Scores(rng.normal(size=(40, 8)), ITEMS)


def fit(rankings=RANKINGS, **known):
    lists = rs.Rankings.from_orders(list(rankings.values()), items=ITEMS, targets=list(rankings))
    return rs.WeightedMean().fit(lists, **known)


def test_a_class_of_half_of_the_inputs_is_named(inputs):
    even = np.repeat(["u", "v", "w", "x"], 10)
    most = np.repeat(["u", "v"], [25, 15])
    assert describe_predictions(fit(), even, even, inputs) == []
    (line,) = describe_predictions(fit(), most, most, inputs)
    assert "'u'" in line
    assert "'v'" not in line
    less = np.repeat(["u", "v", "w"], [15, 15, 10])
    assert describe_predictions(fit(), less, less, inputs) == []
    # Few inputs, or few classes, say nothing.
    assert describe_predictions(fit(), most[:10], most[:10], inputs[:10]) == []
    two = fit({name: RANKINGS[name] for name in "uv"})
    assert describe_predictions(two, most, most, inputs) == []


def test_a_batch_that_changes_most_labels_is_mentioned(inputs):
    alone = np.repeat(["u", "v", "w", "x"], 10)
    assert len(describe_predictions(fit(), np.roll(alone, 25), alone, inputs)) == 1
    for n, changed in [(20, 0), (21, 1)]:
        order = np.arange(40) % 10 * 4 + np.arange(40) // 10
        others = np.where(order < n, np.roll(alone, 10), alone)
        assert len(describe_predictions(fit(), others, alone, inputs)) == changed


def test_examples_that_change_most_labels_are_mentioned(inputs):
    head = fit(examples=(inputs[:4], ["u", "v", "w", "x"]))
    by_rankings = head.by_rankings_.predict(inputs)
    even = np.repeat(["u", "v", "w", "x"], 10)
    others = np.where(by_rankings == even, np.roll(even, 10), even)
    lines = describe_predictions(head, others, others, inputs)
    assert len(lines) == 1 + (max(np.unique(others, return_counts=True)[1]) >= 20)
    assert len(describe_predictions(head, by_rankings, by_rankings, inputs)) == len(lines) - 1


def test_inputs_of_which_the_model_is_certain_are_counted():
    certain = rs.Scores(30.0 * np.eye(40)[[0, 0, 0, 1]], [f"s{i}" for i in range(40)])
    (line,) = describe_closed_set(certain)
    assert "'s0', 's1'" in line
    assert describe_closed_set(rs.Scores(np.tile([0.0, 1, 2], (3, 1)), ["a", "b", "c"])) == []


def test_nearly_equal_rankings_are_named():
    near = RANKINGS | {"u": ["s0", "s1", "s2"], "v": [["s0", "s1"], "s2"]}
    lines = describe_similar(fit(near).head_)
    assert len(lines) == (np.corrcoef(fit(near).head_.slopes[:2])[0, 1] > 0.98)
    long = {"u": ITEMS, "v": [*ITEMS[:6], "s7", "s6"], "w": ITEMS[::-1]}
    (line,) = describe_similar(fit(long).head_)
    assert "'u' with 'v'" in line
    many = dict.fromkeys("uvwx", ITEMS) | {"y": ITEMS[::-1]}
    many = {name: [*row[:6], *np.roll(row[6:], i)] for i, (name, row) in enumerate(many.items())}
    *_, line = describe_similar(fit(many).head_)
    assert line.count(" with ") == 3
    assert describe_similar(fit().head_) == []
    (line,) = describe_similar(fit(RANKINGS | {"v": ["s0", "s1"]}).head_)
    assert "'u' and 'v'" in line or "'u', 'v'" in line

"""The symptoms on docs/guide/troubleshooting.md: its causes make them, its remedies end them."""

import numpy as np
import pytest

import rankshot as rs

SEEN = ["leopard", "wolf", "mouse", "bus", "tractor", "bicycle", "rose", "shark"]
ORDERS = {
    "cat": ["leopard", "mouse", "wolf"],
    "dog": ["wolf", "mouse", "leopard"],
    "truck": ["bus", "tractor", "bicycle"],
    "tulip": ["rose", "mouse"],
}


@pytest.fixture
def rankings():
    return rs.Rankings.from_orders(list(ORDERS.values()), items=SEEN, targets=list(ORDERS))


@pytest.fixture
def inputs():
    """Return scores of 50 inputs of each new class, and their labels."""
    rng = np.random.default_rng(0)
    labels = np.repeat(list(ORDERS), 50)
    means = [[4.0 - 3 * o.index(s) / 2 if s in o else 0.0 for s in SEEN] for o in ORDERS.values()]
    return np.repeat(means, 50, axis=0) + rng.normal(size=(200, len(SEEN))), labels


def accuracy(head, scores, labels):
    return np.mean(head.predict(scores) == labels)


def test_a_high_column_makes_one_class_win_and_a_reference_ends_it(rankings, inputs):
    scores, labels = inputs
    shift = 12.0 * (np.array(SEEN) == "rose")
    high = rs.Scores(scores + shift, SEEN)
    alone = rs.WeightedMean().fit(rankings)
    assert np.mean(alone.predict(high) == "tulip") > 0.9
    usual = (
        np.random.default_rng(1).normal(size=(400, len(SEEN))) + 4 * np.eye(8)[np.arange(400) % 8]
    )
    informed = rs.WeightedMean().fit(rankings, reference=rs.Scores(usual + shift, SEEN))
    assert accuracy(informed, high, labels) > accuracy(alone, high, labels) + 0.3


def test_columns_in_another_order_are_worse_than_chance_and_names_end_it(rankings, inputs):
    scores, labels = inputs
    head = rs.WeightedMean().fit(rankings)
    shuffled = sorted(SEEN)
    moved = scores[:, [SEEN.index(name) for name in shuffled]]
    assert accuracy(head, moved, labels) < 0.25
    assert accuracy(head, rs.Scores(moved, shuffled), labels) > 0.8

"""Inputs to label next: one from the middle of each group, whatever the order of the inputs."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.zeroshot import suggest
from refusals import refuses

ITEMS = [f"seen{i}" for i in range(6)]
SIZES = [40, 30, 20, 10]


@pytest.fixture(scope="module")
def problem():
    """Four separate groups of inputs, of different sizes."""
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(4), SIZES)
    values = 10 * rng.normal(size=(4, 6))[group] + rng.normal(size=(100, 6))
    mixed = rng.permutation(100)
    targets = ["a", "b", "c", "d"]
    rankings = rs.Rankings.from_scores(rng.normal(size=(4, 6)), items=ITEMS, targets=targets)
    return rs.WeightedMean().fit(rankings), values[mixed], group[mixed]


def test_the_middle_of_each_group_is_suggested_with_its_guess(problem):
    head, values, group = problem
    found = suggest(head, values, 4)
    f = values - values.mean(axis=1, keepdims=True)
    f /= f.std(axis=1, keepdims=True)
    middle = []
    for g in range(4):
        members = np.flatnonzero(group == g)
        far = np.linalg.norm(f[members] - f[members].mean(axis=0), axis=1)
        middle.append(members[far.argmin()])
    # The largest group comes first.
    assert found.rows.tolist() == middle
    best = head.predict_proba(values[middle])
    assert found.labels.tolist() == head.classes_[best.argmax(axis=1)].tolist()
    np.testing.assert_allclose(found.proba, best.max(axis=1))


def test_the_order_of_inputs_and_classes_does_not_matter(problem):
    head, values, _ = problem
    found = suggest(head, values, 12)
    assert len(set(found.rows)) == 12
    rows, columns = np.random.default_rng(1).permutation(100), np.arange(6)[::-1]
    moved = rs.Scores(values[rows][:, columns], np.array(ITEMS)[columns])
    assert rows[suggest(head, moved, 12).rows].tolist() == found.rows.tolist()
    # Nor do the last digits, which depend on the processor.
    blurred = values * (1 + 1e-14 * np.random.default_rng(2).normal(size=values.shape))
    assert suggest(head, blurred, 12).rows.tolist() == found.rows.tolist()


def test_labelled_inputs_are_left_out_and_equal_ones_are_one(problem):
    head, values, group = problem
    first = suggest(head, values, 4)
    again = suggest(head, values, 4, labelled=first.rows)
    assert sorted(group[again.rows]) == [0, 1, 2, 3]
    assert not set(again.rows) & set(first.rows)
    whole = suggest(head, values, 4, labelled=np.flatnonzero(group == 0))
    assert 0 not in group[whole.rows]
    assert len(suggest(head, values[[0, 0, 1, 1, 1]], 4).rows) == 2
    assert len(suggest(head, values[:3], 9).rows) == 3


def test_pairs_of_classes(problem):
    head, values, group = problem
    first, second = np.triu_indices(6, 1)
    pairs = rs.Scores(values[:, first] - values[:, second], ITEMS, "one-vs-one")
    assert group[suggest(head, pairs, 4).rows].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("parameter", "n", "labelled"), [("n", 0, ()), ("labelled", 2, range(100))]
)
def test_what_cannot_be_suggested(problem, parameter, n, labelled):
    head, values, _ = problem
    with refuses(parameter):
        suggest(head, values, n, labelled=list(labelled))


def test_features_tell_inputs_apart(rng):
    """Where the scores say nothing, one input of each group of features is suggested."""
    group = np.arange(60) % 4
    features = 5 * np.eye(4, 6)[group] + 0.1 * rng.normal(size=(60, 6)) + 100
    scores = rs.Scores(rng.normal(size=(60, 3)), ["a", "b", "c"], features=features)
    rankings = rs.Rankings.from_orders([["a"], ["b"]], items=["a", "b", "c"], targets=["p", "q"])
    found = rs.zeroshot.suggest(rs.WeightedMean().fit(rankings), scores, 4)
    assert {*group[found.rows].tolist()} == {0, 1, 2, 3}

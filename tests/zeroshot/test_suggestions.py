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
    return rs.Scores(values[mixed], ITEMS), group[mixed]


def test_the_middle_of_each_group_is_suggested(problem):
    scores, group = problem
    f = scores.values - scores.values.mean(axis=1, keepdims=True)
    f /= f.std(axis=1, keepdims=True)
    middle = []
    for g in range(4):
        members = np.flatnonzero(group == g)
        far = np.linalg.norm(f[members] - f[members].mean(axis=0), axis=1)
        middle.append(members[far.argmin()])
    # The largest group comes first.
    assert suggest(scores, 4).tolist() == middle


def test_the_order_of_inputs_and_classes_does_not_matter(problem):
    scores, _ = problem
    found = suggest(scores, 12)
    assert len(set(found)) == 12
    rows, columns = np.random.default_rng(1).permutation(100), np.arange(6)[::-1]
    moved = rs.Scores(scores.values[rows][:, columns], np.array(ITEMS)[columns])
    assert rows[suggest(moved, 12)].tolist() == found.tolist()
    # Nor do the last digits, which depend on the processor.
    noise = 1e-14 * np.random.default_rng(2).normal(size=scores.values.shape)
    assert suggest(rs.Scores(scores.values * (1 + noise), ITEMS), 12).tolist() == found.tolist()


def test_some_inputs_are_left_out_and_equal_ones_are_one(problem):
    scores, group = problem
    first = suggest(scores, 4)
    again = suggest(scores, 4, among=np.delete(np.arange(100), first))
    assert sorted(group[again]) == [0, 1, 2, 3]
    assert not {*again} & {*first}
    assert 0 not in group[suggest(scores, 4, among=np.flatnonzero(group))]
    assert len(suggest(scores[[0, 0, 1, 1, 1]], 4)) == 2
    assert len(suggest(scores[:3], 9)) == 3


@pytest.mark.parametrize(("parameter", "n", "among"), [("n", 0, [1]), ("among", 2, [])])
def test_what_cannot_be_suggested(problem, parameter, n, among):
    with refuses(parameter):
        suggest(problem[0], n, among=among)


def test_features_tell_inputs_apart(rng):
    """Where the scores say nothing, one input of each group of features is suggested."""
    group = np.arange(60) % 4
    features = 5 * np.eye(4, 6)[group] + 0.1 * rng.normal(size=(60, 6)) + 100
    scores = rs.Scores(rng.normal(size=(60, 3)), ["a", "b", "c"], features=features)
    assert {*group[suggest(scores, 4)].tolist()} == {0, 1, 2, 3}

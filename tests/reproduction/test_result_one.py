"""Result 1: sources and raters, each left out and found again, by hand."""

import numpy as np
import pytest
from reproduction.benchmark import Benchmark
from reproduction.class_vectors import load_class_vectors
from reproduction.result_one import bayes_is_correct, source_table
from small_run import without_images

import rankshot as rs
from rankshot.datasets.embedded import (
    class_names,
    load_held_out_panel,
    load_panel,
    load_similarities,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found():
    animals = Benchmark(
        without_images("animals", *class_names("animals")),
        load_similarities("animals"),
        {"similar": load_panel("animals", "similar")},
        {"similar": load_held_out_panel("animals", "similar")},
        load_class_vectors("animals"),
    )
    return source_table(animals)


def test_animals_by_hand(found):
    """Of 42 points, those whose nearest neighbour is of their class; half for one of two."""
    expected = {
        "Euclidean": 12,
        "Euclidean, normalised": 23,
        "Kendall, Hausdorff, K = 2": 23,
        "Kendall, Hausdorff, K = 10": 19,
    }
    for name, n in expected.items():
        assert found.row(name)[0].ours.estimate == pytest.approx(n / 42), name


# ---- Raters


@pytest.fixture
def panel(rng):
    """Four rankings each of three targets, with some that are more like another target's."""
    orders = {"cow": "abcdef", "elk": "badcfe", "yak": "fedcba"}
    lists, targets = [], []
    for target, order in orders.items():
        for _ in range(4):
            noise = np.argsort(np.arange(6) + rng.normal(scale=1.6, size=6))
            lists.append([order[i] for i in noise])
            targets.append(target)
    return rs.Rankings.from_orders(lists, items=list("abcdef"), targets=targets)


@pytest.mark.parametrize("model", [rs.Mallows, rs.PlackettLuce])
@pytest.mark.parametrize("k", [2, 6])
def test_bayes_by_refitting_everything(panel, model, k):
    cut = panel.top(k)
    found = bayes_is_correct(cut, model())
    expected = []
    for row in range(len(cut)):
        others = cut[np.arange(len(cut)) != row]
        log_prob = {
            target: model().fit(theirs).log_prob(cut[row])[0]
            for target, theirs in others.by_target().items()
        }
        best = max(log_prob.values())
        ties = [z for z, value in log_prob.items() if value == best or abs(value - best) < 1e-9]
        expected.append((cut.targets[row] in ties) / len(ties))
    assert found.tolist() == pytest.approx(expected)
    assert 0 < found.mean() < 1 or k == 6

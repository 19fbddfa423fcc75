"""Result 1: sources and raters, each left out and found again, by hand."""

from math import dist, isnan

import numpy as np
import pytest
from reproduction.benchmark import Benchmark
from reproduction.class_vectors import load_class_vectors
from reproduction.result_one import bayes_is_correct, source_table
from small_run import hausdorff, without_images

import rankshot as rs
from rankshot.datasets.embedded import (
    class_names,
    load_held_out_panel,
    load_panel,
    load_similarities,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def animals():
    return Benchmark(
        without_images("animals", *class_names("animals")),
        load_similarities("animals"),
        {"similar": load_panel("animals", "similar")},
        {"similar": load_held_out_panel("animals", "similar")},
        load_class_vectors("animals"),
    )


@pytest.fixture(scope="module")
def found(animals):
    return source_table(animals)


# ---- By hand


def filled_rows(sources):
    """(target, similarities) of all points that say something, as plain lists."""
    for table in sources.values():
        rows = zip(table.targets, table.values.tolist(), strict=True)
        ranked = [(z, row) for z, row in rows if len({v for v in row if not isnan(v)}) > 1]
        least = min(v for _, row in ranked for v in row if not isnan(v))
        yield from ((z, [least if isnan(v) else v for v in row]) for z, row in ranked)


def one_nearest_neighbour(points, distance):
    right = 0.0
    for i, (target, row) in enumerate(points):
        far = {j: distance(row, other) for j, (_, other) in enumerate(points) if j != i}
        least = min(far.values())
        nearest = [j for j, d in far.items() if d <= least + 1e-9 * least]
        right += sum(points[j][0] == target for j in nearest) / len(nearest)
    return right / len(points)


def normalized(row):
    total = sum(abs(v) for v in row)
    return [v / total for v in row]


def kendall(k):
    """The distance of the first k; a tie that k cuts is whole, the rest is last."""

    def list_places(row):
        order = [sum(other > v for other in row) for v in row]
        return [place if place < k else len(row) for place in order]

    return lambda one, other: hausdorff(list_places(one), list_places(other))


def test_animals_by_hand(animals, found):
    points = list(filled_rows(animals.real.sources))
    assert len(points) == 42
    expected = {
        "Euclidean": one_nearest_neighbour(points, dist),
        "Euclidean, normalised": one_nearest_neighbour(
            [(target, normalized(row)) for target, row in points], dist
        ),
        "Kendall, Hausdorff, K = 2": one_nearest_neighbour(points, kendall(2)),
        "Kendall, Hausdorff, K = 10": one_nearest_neighbour(points, kendall(10)),
    }
    for name, figure in expected.items():
        assert found.row(name)[0].ours.estimate == pytest.approx(figure, abs=1e-12), name


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

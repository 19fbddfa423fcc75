"""Result 1: sources and raters, each left out and found again, by hand."""

from itertools import permutations, product
from math import dist, isnan

import numpy as np
import pytest
from reproduction.benchmark import Benchmark
from reproduction.result_one import (
    bayes_is_correct,
    source_table,
)

import rankshot as rs
from rankshot.datasets import ImageData
from rankshot.datasets.embedded import (
    class_names,
    load_class_vectors,
    load_held_out_panel,
    load_panel,
    load_similarities,
)
from rankshot.sources.vectors import ClassVectors

pytestmark = pytest.mark.slow

ITEMS = tuple("abcdefghijkl")


def images(name, seen, new):
    nothing, nobody = np.zeros((0, 2), np.float32), np.array([], str)
    return ImageData(name, *(nothing, nobody) * 3, seen_classes=seen, new_classes=new)


def make_benchmark(sources=None, panel=None, name="animals"):
    """A benchmark without images, of the tables or rankings given."""
    said = next(iter(sources.values())) if sources else panel
    items = said.items
    targets = said.targets if sources else panel.target_names
    anything = panel or rs.Rankings.from_orders([list(items)], items=items, targets=targets[0])
    vectors = ClassVectors(["x"], [[1.0]], "test")
    return Benchmark(
        images(name, items, targets), sources or {}, {"": anything}, {"": anything}, vectors
    )


@pytest.fixture(scope="module")
def animals():
    seen, new = class_names("animals")
    return Benchmark(
        images("animals", seen, new),
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


def places(row, k):
    """The place of each item in the first k; a tie that k cuts is whole, the rest is last."""
    order = [sum(other > v for other in row) for v in row]
    return [place if place < k else len(row) for place in order]


def hausdorff(k):
    def distance(one, other):
        p, q = places(one, k), places(other, k)
        opposite = tied_p = tied_q = 0
        for i in range(len(p)):
            for j in range(i):
                opposite += (p[i] - p[j]) * (q[i] - q[j]) < 0
                tied_p += p[i] == p[j] and q[i] != q[j]
                tied_q += p[i] != p[j] and q[i] == q[j]
        return opposite + max(tied_p, tied_q)

    return distance


def test_animals_by_hand(animals, found):
    points = list(filled_rows(animals.real.sources))
    assert len(points) == 42
    expected = {
        "Euclidean": one_nearest_neighbour(points, dist),
        "Euclidean, normalized": one_nearest_neighbour(
            [(target, normalized(row)) for target, row in points], dist
        ),
        "Kendall, Hausdorff, K = 2": one_nearest_neighbour(points, hausdorff(2)),
        "Kendall, Hausdorff, K = 10": one_nearest_neighbour(points, hausdorff(10)),
    }
    for name, figure in expected.items():
        assert found.row(name)[0].ours.estimate == pytest.approx(figure, abs=1e-12), name


def strict_orders(row):
    """All orders of the items that the similarities allow, as places."""
    values = sorted(set(row), reverse=True)
    groups = [[i for i, v in enumerate(row) if v == value] for value in values]
    for parts in product(*map(permutations, groups)):
        order = [i for part in parts for i in part]
        yield [order.index(i) for i in range(len(row))]


def mean_over_ties(k):
    def distance(one, other):
        strict = hausdorff(k)
        # Places are best if small, similarities if large.
        pairs = product(strict_orders(one), strict_orders(other))
        all_of_them = [strict([-x for x in p], [-x for x in q]) for p, q in pairs]
        return sum(all_of_them) / len(all_of_them)

    return distance


@pytest.fixture
def tied_sources(rng):
    """One source ties, cut by K = 2 and 5 among others; two of the others lack something."""
    targets = ["cow", "elk", "yak"]
    likes = rng.normal(size=(3, 12))
    strict, noisy = (likes + scale * rng.normal(size=(3, 12)) for scale in (0.6, 0.9))
    noisy[1] = np.nan
    noisy[0, 4] = np.nan
    place = np.argsort(np.argsort(-likes - 0.5 * rng.normal(size=(3, 12)), axis=1), axis=1)
    tied = np.array([9, 8, 8, 7, 6, 6, 5, 4, 3, 2, 1, 0.5])[place]
    flat = strict * 0 + 1.0
    flat[2] = strict[1]
    tables = {"strict": strict, "noisy": noisy, "tied": tied, "flat": flat}
    return {name: rs.Similarity(v, targets, ITEMS, name) for name, v in tables.items()}


@pytest.mark.parametrize("k", [2, 5])
def test_the_mean_over_ties_by_hand(tied_sources, k):
    points = list(filled_rows(tied_sources))
    assert "".join(target[0] for target, _ in points) == "cey" + "cy" + "cey" + "y"
    table = source_table(make_benchmark(tied_sources))
    for name, distance in (("mean over ties", mean_over_ties(k)), ("Hausdorff", hausdorff(k))):
        expected = one_nearest_neighbour(points, distance)
        got = table.row(f"Kendall, {name}, K = {k}")[0].ours.estimate
        assert got == pytest.approx(expected, abs=1e-12)


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
@pytest.mark.parametrize("k", [1, 2, 4, 6])
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

"""Two classes at a time: against the metric, against counting, and pairs that no result chose."""

from dataclasses import replace
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from reproduction.benchmark import load_benchmark
from reproduction.two_classes import (
    MethodScores,
    choose_pairs,
    choose_pairs_by_panel,
    evaluate_pairs,
    two_class_table,
)

import rankshot as rs
from rankshot.datasets import load_cifar
from rankshot.datasets.embedded import load_panel
from rankshot.zeroshot.metrics import pairwise_accuracy


@pytest.fixture(scope="module")
def benchmark():
    """Return a part of the embedded data, with classes of different sizes."""
    data = load_cifar()
    number = {name: i for i, name in enumerate(data.new_classes)}
    keep = np.array([i % (4 + number[name]) == 0 for i, name in enumerate(data.new_label)])
    part = replace(data, new=data.new[keep], new_label=data.new_label[keep])
    return load_benchmark(part)


def scores_of(benchmark, strength, rng):
    """Return scores in few steps, so that many tie."""
    truth, classes = benchmark.data.new_label, np.array(benchmark.data.new_classes)
    values = rng.normal(size=(len(truth), 10)) + strength * (truth[:, None] == classes)
    return MethodScores(np.round(values), tuple(classes.tolist()))


def test_figures_are_those_of_the_metric_whatever_the_columns(benchmark, rng):
    plain = scores_of(benchmark, 1.0, rng)
    order = rng.permutation(10)
    mixed = MethodScores(
        np.column_stack([np.full(len(plain.values), 9.0), plain.values[:, order]]),
        ("a seen class", *np.array(plain.targets)[order].tolist()),
    )
    table = pairwise_accuracy(benchmark.data.new_label, plain.values, plain.targets)
    found = evaluate_pairs(benchmark, {"plain": plain, "mixed": mixed})
    assert found.methods == ("plain", "mixed")
    for (one, other), (cell, same) in zip(found.pairs, found.accuracy, strict=True):
        expected = table[plain.targets.index(one), plain.targets.index(other)]
        assert cell.estimate == pytest.approx(expected)
        assert cell == same
        assert cell.low < cell.estimate < cell.high
    assert found.n_pairs == 45
    assert found.mean[0] == found.mean[1]
    assert found.mean[0].estimate == pytest.approx(np.nanmean(table))


def test_equal_scores_count_one_half(benchmark):
    classes, n = benchmark.data.new_classes, len(benchmark.data.new_label)
    found = evaluate_pairs(benchmark, {"blind": MethodScores(np.full((n, 10), -np.inf), classes)})
    assert {cell for row in found.accuracy for cell in row} == {(0.5, 0.5, 0.5)}
    assert found.mean[0].estimate == pytest.approx(0.5)


def test_intervals_are_those_of_resampling_by_hand(benchmark, rng):
    method = scores_of(benchmark, 0.7, rng)
    truth = benchmark.data.new_label
    found = evaluate_pairs(benchmark, {"method": method})
    rows = [np.flatnonzero(truth == name) for name in benchmark.data.new_classes]
    pair = tuple(method.targets.index(name) for name in found.pairs[0])
    shares, means = [], []
    for _ in range(300):
        drawn = np.concatenate([rng.choice(own, own.size) for own in rows])
        table = pairwise_accuracy(truth[drawn], method.values[drawn], method.targets)
        shares.append(table[pair])
        means.append(np.nanmean(table))
    for values, cell in ((shares, found.accuracy[0][0]), (means, found.mean[0])):
        width = 2 * 1.96 * np.std(values)
        assert 0.8 * width < cell.high - cell.low < 1.25 * width


def test_the_table_has_a_row_a_pair_and_their_mean(benchmark, rng):
    methods = {"weak": scores_of(benchmark, 0.3, rng), "strong": scores_of(benchmark, 2.0, rng)}
    found = evaluate_pairs(benchmark, methods)
    table = two_class_table(found)
    assert (table.name, table.columns) == ("figure 4", ("classes", "weak", "strong"))
    assert len(table.rows) == len(found.pairs) + 1
    for (one, other), cells in zip(found.pairs, found.accuracy, strict=True):
        assert table.row(f"{one} or {other}") == tuple(cells)
    # The mean is that of all pairs, not of those that have a row.
    assert table.rows[-1] == ("mean of all 45 pairs", *found.mean)
    weak, strong = table.row("mean of all 45 pairs")
    assert weak.high < strong.low


# ---- Pairs


def test_cifar_has_the_pairs_of_the_paper(benchmark):
    pairs = choose_pairs(benchmark)
    assert {("automobile", "deer"), ("deer", "ship"), ("cat", "truck")} <= set(pairs)
    assert {name for pair in pairs for name in pair} <= set(benchmark.data.new_classes)


def mean_places(panel, target):
    """Return the mean place of each item; those that a list leaves out share the last ones."""
    places = []
    for order in panel.select(target=target).orders():
        rest = (len(order) + 1 + len(panel.items)) / 2
        places.append([order.index(i) + 1 if i in order else rest for i in panel.items])
    return np.mean(places, axis=0)


def hausdorff(a, b):
    """Return |U| + max(|S|, |T|), counting pair by pair."""
    opposite = tied_in_a = tied_in_b = 0
    for i, j in combinations(range(len(a)), 2):
        x, y = (np.sign(np.round(p[i] - p[j], 9)) for p in (a, b))
        opposite += x * y < 0
        tied_in_a += x == 0 and y != 0
        tied_in_b += y == 0 and x != 0
    return opposite + max(tied_in_a, tied_in_b)


def test_pairs_of_animals_are_the_most_and_the_least_alike_of_the_panel():
    panel = load_panel("animals", "similar")
    places = {name: mean_places(panel, name) for name in panel.target_names}
    distance = {
        pair: hausdorff(places[pair[0]], places[pair[1]])
        for pair in combinations(sorted(places), 2)
    }
    expected = []
    for sign in (1, -1):
        left = sorted(distance, key=lambda pair: (sign * distance[pair], pair))
        for _ in range(3):
            expected.append(left[0])
            left = [pair for pair in left if not set(pair) & set(expected[-1])]
    found = choose_pairs_by_panel(panel)
    assert found == tuple(expected)
    assert ("humpback+whale", "seal") in found


def test_pairs_do_not_depend_on_the_order_of_rankings_and_items(rng):
    panel = load_panel("animals", "similar")
    shuffled = panel[rng.permutation(len(panel))].with_items(rng.permutation(panel.items).tolist())
    assert choose_pairs_by_panel(shuffled) == choose_pairs_by_panel(panel)


# ---- Errors


def test_what_cannot_be_judged_is_named(benchmark, rng):
    good = scores_of(benchmark, 1.0, rng)
    renamed = MethodScores(good.values, ("airplanes", *good.targets[1:]))
    holey = MethodScores(np.where(good.values > 2, np.nan, good.values), good.targets)
    short = MethodScores(good.values[1:], good.targets)
    for scores, message in (
        (renamed, r"PR: there is no column 'airplane' \(did you mean 'airplanes'\?\)"),
        (holey, r"PR: row \d+, class '\w+': .* not nan"),
        (short, r"PR: .* labels in y_true"),
    ):
        with pytest.raises(rs.RankshotError, match=message):
            evaluate_pairs(benchmark, {"PR": scores})
    with pytest.raises(rs.RankshotError, match="methods must not be empty"):
        evaluate_pairs(benchmark, {})


def test_a_class_without_inputs_is_named(benchmark, rng):
    data = benchmark.data
    keep = data.new_label != "frog"
    labels = {"new_label": data.new_label[keep], "new_classes": data.new_classes}
    lame = SimpleNamespace(
        name=benchmark.name,
        data=SimpleNamespace(**labels),
        real=SimpleNamespace(test_label=data.new_label[keep], targets=benchmark.real.targets),
    )
    with pytest.raises(rs.RankshotError, match="no test input of 'frog'"):
        evaluate_pairs(lame, {"PR": scores_of(lame, 1.0, rng)})

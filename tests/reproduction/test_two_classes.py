"""Two classes at a time: against counting, and pairs that no result chose."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from reproduction.benchmark import load_benchmark
from reproduction.two_classes import MethodScores, choose_pairs_by_panel, evaluate_pairs

from rankshot.datasets import load_cifar
from rankshot.datasets.embedded import load_panel

pytestmark = pytest.mark.slow


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


def pairwise_accuracy(truth, values, classes):
    """The share of the inputs of two classes with the higher value of their own; half for a tie."""
    table = np.full((len(classes),) * 2, np.nan)
    for a, b in combinations(range(len(classes)), 2):
        is_one = truth == classes[a]
        lead = np.where(is_one, 1, -1) * (values[:, a] - values[:, b])
        rows = is_one | (truth == classes[b])
        table[a, b] = table[b, a] = (0.5 + 0.5 * np.sign(lead[rows])).mean()
    return table


def test_figures_are_those_of_counting_whatever_the_columns(benchmark, rng):
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


# ---- Pairs


def test_pairs_of_animals_are_the_most_and_the_least_alike_of_the_panel():
    """As counted by hand; no class is in two of three pairs."""
    assert choose_pairs_by_panel(load_panel("animals", "similar")) == (
        *(("humpback+whale", "seal"), ("raccoon", "rat"), ("leopard", "persian+cat")),
        *(("giant+panda", "rat"), ("hippopotamus", "persian+cat"), ("chimpanzee", "pig")),
    )

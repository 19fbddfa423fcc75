"""The peers, tuned on a made rehearsal: their rows by hand."""

from dataclasses import replace

import numpy as np
import pytest
from reproduction.benchmark import Benchmark
from reproduction.class_vectors import ClassVectors
from reproduction.classifiers import train_classifier
from reproduction.data import AnimalData
from reproduction.peer_comparison import (
    ESZSL_GRID,
    UNIT,
    expand_grid,
    format_setting,
    peer_table,
)
from reproduction.peers.linear import ESZSL
from sklearn.metrics import balanced_accuracy_score

import rankshot as rs

pytestmark = pytest.mark.slow

SEEN = tuple("abcdefghijkl")
UNSEEN = ("cow", "elk", "yak")
HELD_OUT = ("d", "h", "l")


@pytest.fixture(scope="module")
def benchmark():
    """Features are a noisy image of the vectors of the classes, with a mean of their own."""
    rng = np.random.default_rng(20150701)
    names = SEEN + UNSEEN
    words = rng.normal(size=(len(names), 4))
    answers = np.column_stack([words > 0, words[:, :3] > 0.5]).astype(float)
    to_features = rng.normal(size=(4, 6))

    def part(classes, n):
        labels = np.repeat(classes, n)
        code = [names.index(label) for label in labels]
        X = words[code] @ to_features + rng.normal(scale=1.5, size=(len(code), 6)) + 2.0
        return X.astype(np.float32), labels

    images = AnimalData(
        "made",
        *part(SEEN, 20),
        *part(SEEN, 4),
        *part(UNSEEN, 30),
        seen_classes=SEEN,
        new_classes=UNSEEN,
        attributes=ClassVectors(names, answers, "attributes"),
    )
    items = [name for name in SEEN if name not in HELD_OUT]
    panel, held_out = (
        rs.Rankings.from_orders([list(of[:3])] * 3, items=of, targets=list(targets))
        for of, targets in ((SEEN, UNSEEN), (items, HELD_OUT))
    )
    vectors = ClassVectors(names, words, "words")
    return Benchmark(images, {}, {"similar": panel}, {"similar": held_out}, vectors)


@pytest.fixture(scope="module")
def classifiers(benchmark):
    return tuple(
        train_classifier("multiclass", 1.0, task.train, task.train_label)
        for task in (benchmark.rehearsal, benchmark.real)
    )


@pytest.fixture(scope="module")
def table(benchmark, classifiers):
    return peer_table(benchmark, *classifiers, str)


# ---- By hand


def prepared(task, kind):
    train, test = task.train.astype(float), task.test.astype(float)
    if kind == UNIT:
        train, test = (np.array([x / np.sqrt(x @ x) for x in X]) for X in (train, test))
    mean = sum(train) / len(train)
    size = np.sqrt(np.mean([(x - mean) @ (x - mean) for x in train]))
    return (train - mean) / size, (test - mean) / size


def eszsl(task, vectors, setting):
    """The predictions of the peer; ``test_peers`` has its formula."""
    X, T = prepared(task, setting["features"])
    penalties = {name: value for name, value in setting.items() if name != "features"}
    peer = ESZSL(**penalties).fit(X, task.train_label, vectors)
    return peer.predict(T, vectors.select(task.targets))


@pytest.mark.parametrize("source", ["words", "attributes"])
def test_eszsl_is_tuned_on_the_rehearsal_and_judged_on_the_new(benchmark, table, source):
    vectors = benchmark.vectors if source == "words" else benchmark.attributes
    task = benchmark.rehearsal
    accuracies = [
        balanced_accuracy_score(task.test_label, eszsl(task, vectors, setting))
        for setting in expand_grid(ESZSL_GRID)
    ]
    best = expand_grid(ESZSL_GRID)[int(np.argmax(accuracies))]
    right = eszsl(benchmark.real, vectors, best) == benchmark.real.test_label
    _, setting, rehearsal, accuracy, by_class = table.row("ESZSL", source)
    assert setting == format_setting(best)
    assert rehearsal == pytest.approx(max(accuracies))
    assert min(accuracies) < max(accuracies)
    assert accuracy.estimate == pytest.approx(right.mean())
    assert by_class.estimate == pytest.approx(right.mean())  # classes of one size
    assert accuracy.low < accuracy.estimate < accuracy.high


# ---- The table


def test_new_labels_choose_nothing(benchmark, table, classifiers):
    data = benchmark.data
    turned = np.roll(data.new_label, 30)
    other = replace(benchmark, data=replace(data, new_label=turned))
    again = peer_table(other, *classifiers, str)
    for row, changed in zip(table.rows, again.rows, strict=True):
        assert row[:5] == changed[:5]
    assert any(row[5] != changed[5] for row, changed in zip(table.rows, again.rows, strict=True))

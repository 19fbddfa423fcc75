"""The experiments on texts: a whole run of the command on a part of the embedded requests."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from reproduction.benchmark import TextTask, load_benchmark, make_tfidf
from reproduction.classifiers import LEAST_SQUARES
from reproduction.result_tables import write_csv
from small_run import small_grids

from rankshot.datasets.embedded import load_intents
from reproduction import reproduction as pipeline, text_peers

pytestmark = pytest.mark.slow

N = {"train": 8, "val": 3, "test": 8}
"""Requests per intent."""
GRID = {"multiclass": (10.0,), LEAST_SQUARES: (1.0,)}
PARTS = {"seen_train": "train", "seen_validation": "val", "seen_test": "test", "new": "test"}


def first_of_each(labels, n):
    names = np.unique(labels)
    return np.sort(np.concatenate([np.flatnonzero(labels == one)[:n] for one in names]))


@pytest.fixture(scope="module")
def data():
    whole = load_intents()
    parts = {}
    for part, split in PARTS.items():
        labels = getattr(whole, f"{part}_label")
        rows = first_of_each(labels, N[split])
        parts |= {part: getattr(whole, part)[rows], f"{part}_label": labels[rows]}
    return replace(whole, **parts)


@pytest.fixture(scope="module")
def benchmark(data):
    return load_benchmark(data)


# ---- Tasks


def test_features_are_of_the_texts_that_are_trained_on(benchmark, data):
    """What occurs only in requests of the held-out classes is unknown."""
    task = benchmark.rehearsal
    assert isinstance(task, TextTask)
    assert task.train.shape == (90 * N["train"], task.test.shape[1])
    assert set(task.train_label) == set(task.items)
    assert task.targets == data.held_out_classes
    expected = make_tfidf().fit(task.train_text).transform(task.test_text)
    assert abs(task.test - expected).max() == 0
    assert benchmark.real.train.shape[0] == 120 * N["train"]
    assert benchmark.real.train.shape[1] > task.train.shape[1]
    assert benchmark.attributes is None


# ---- A whole run


def test_rankings_beat_chance_and_the_vectors_of_names(benchmark, tmp_path, monkeypatch):
    """One of thirty is right by chance."""
    monkeypatch.setattr(text_peers, "NAME_GRID", {"weight_of_a_name": (10.0,)})
    with small_grids():
        found = pipeline.reproduce_texts(benchmark, tmp_path, lambda _: None, grid=GRID)
    write_csv(found.all_tables, tmp_path / "numbers.csv")
    with (tmp_path / "numbers.csv").open(newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))

    def figure(table, row, column):
        (found,) = (
            float(line["value"])
            for line in lines
            if (line["table"], line["column"]) == (table, column) and line["row"].startswith(row)
        )
        return found

    ours = figure("peers", "rankings, and similarity of request and name", "accuracy")
    assert ours > 0.4
    assert ours > figure("peers", "ConSE |", "accuracy")
    assert ours > figure("peers", "similarity of request", "accuracy")

"""The table of the first page: all methods are measured on the same inputs."""

import numpy as np
import pytest
from reproduction.examples_table import draw_inputs
from reproduction.overview import draw_unequal, measure_draw, measured_table, published_table
from reproduction.scored_tasks import ScoredTask

import rankshot as rs
from rankshot.datasets import load_sounds


@pytest.fixture(scope="module")
def task():
    """The sounds in the package; the clips themselves, without labels, are the reference."""
    data = load_sounds()
    rankings = {"panel": data.rankings, "WordNet": data.rankings.select(rater="rater-1")}
    return ScoredTask("sounds", data.scores, data.labels, data.scores, data.labels, rankings)


def test_the_rows_are_accuracies_on_the_tested_inputs(task):
    found = measure_draw(task, {}, 0)
    rows = draw_inputs(task.labels, 0).tested
    head = rs.WeightedMean().fit(task.rankings["panel"], reference=task.reference)
    correct = head.predict(task.scores[rows]) == task.labels[rows]
    by_class = [correct[task.labels[rows] == name].mean() for name in np.unique(task.labels)]
    assert found["rankshot"] == pytest.approx(np.mean(by_class))
    assert found["chance"] == 0.1
    assert found["rankshot and 5 examples per class"] > found["rankshot"]


def test_frequencies_are_unequal(task):
    rows = np.arange(len(task.labels))
    kept = draw_unequal(task.labels, rows, 0)
    counts = np.unique(task.labels[kept], return_counts=True)[1]
    assert sorted(counts, reverse=True) == [40 // place for place in range(1, 11)]
    assert set(kept) <= set(rows)


def test_the_table_has_a_dash_where_a_data_set_lacks_a_method():
    table = measured_table({"a": {"chance": 0.1}, "b": {"chance": 0.2, "words": 0.3}}, 2)
    assert table.row("words") == (None, 0.3)
    assert published_table().row("CLIP ViT-B/16", "CIFAR")[0] == 0.916

"""Rankings and examples together, against each alone: what is drawn, and what is compared."""

import numpy as np
import pytest
from reproduction.examples_table import (
    DESIGNS,
    POOL,
    Cell,
    Design,
    Measurement,
    draw_inputs,
    format_cells,
)
from reproduction.scored_tasks import load_scored_tasks
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import NearestCentroid

import rankshot as rs


@pytest.fixture(scope="module")
def cells(task):
    return list(Measurement(task, n_draws=2).cells())


@pytest.mark.parametrize("design", DESIGNS, ids=str)
def test_examples_are_drawn_by_design_and_never_tested(task, design):
    draw = draw_inputs(task.labels, seed=3)
    rows = draw.examples(design)
    counts = [(task.labels[rows] == name).sum() for name in np.unique(task.labels)]
    assert sorted(counts) == sorted([design.more] * 5 + [design.fewer] * 5)
    assert not set(rows) & set(draw.tested)
    assert set(draw.pool.ravel()) & set(draw.tested) == set()
    assert draw.pool.shape == (10, POOL)


def test_the_shuffled_panel_has_no_class_with_its_own_rankings(task):
    measured = Measurement(task, n_draws=1)
    draw = measured.draws[0]
    mixed = measured._rankings("shuffled panel", draw)
    panel = task.rankings["panel"]
    assert sorted(mixed.targets) == sorted(panel.targets)
    assert not (mixed.targets == panel.targets).any()


@pytest.mark.parametrize("numbers", ["scores", "features"])
def test_examples_alone_are_the_nearest_centroid(task, numbers):
    measured = Measurement(task, n_draws=1)
    draw, design = measured.draws[0], Design(5, 5)
    if numbers == "scores":
        f, usual = (
            (x - x.mean(1)[:, None]) / x.std(1)[:, None]
            for x in (task.scores.values.astype(float), task.reference.values.astype(float))
        )
        x = (f - usual.mean(0)) / usual.std(0)
    else:
        x = task.scores.features - task.reference.features.astype(float).mean(0)
        x /= np.sqrt((x**2).sum(1))[:, None]
    rows = draw.examples(design)
    model = NearestCentroid().fit(x[rows], task.labels[rows])
    expected = model.predict(x[draw.tested]) == task.labels[draw.tested]
    np.testing.assert_array_equal(measured._by_means(draw, design, numbers).correct, expected)


def test_without_examples_the_head_is_that_of_the_rankings_alone(task, cells):
    head = rs.WeightedMean().fit(task.rankings["panel"], reference=task.reference)
    found = []
    for draw in Measurement(task, n_draws=2).draws:
        labels = task.labels[draw.tested]
        found.append(balanced_accuracy_score(labels, head.predict(task.scores[draw.tested])))
    cell = cells[0]
    assert (cell.rankings, cell.examples) == ("panel", "0")
    assert cell.both == cell.rankings_alone == pytest.approx(np.mean(found))
    assert cell.gain == 0


def test_what_is_lost_is_flagged():
    shares = {"rankings_alone": 0.5, "examples_alone": 0.6, "seconds": 0.0}
    fewer = {"rankings_alone_fewer": 0.5, "examples_alone_fewer": 0.0}
    names = ("cifar", "panel", "scores")
    low = {"both": 0.58, "both_fewer": 0.48, "calibration_error": 0.1, **shares, **fewer}
    assert Cell(*names, "5 and 0", **low).flags == "LOST, LOST FEWER"
    assert Cell(*names, "1", **low).flags == "LOST, CALIBRATION"
    good = Cell(
        *names, "1", both=0.595, both_fewer=0.495, calibration_error=0.07, **shares, **fewer
    )
    assert good.flags == ""
    assert good.gain == pytest.approx(-0.005)


def test_tables_have_one_row_per_rankings_and_numbers(cells):
    accuracy, calibration = format_cells(cells)
    assert [row[1:3] for row in accuracy.rows] == [
        (rankings, numbers)
        for rankings in ("panel", "shuffled panel")
        for numbers in ("scores", "features")
    ]
    assert len(accuracy.columns) == 3 + len(DESIGNS)
    assert calibration.rows[0][3] == cells[0].calibration_error


@pytest.mark.shared_data
def test_the_published_split_has_the_accuracies_on_the_page(shared_data):
    found = [
        balanced_accuracy_score(task.labels, head.predict(task.scores))
        for task in load_scored_tasks("sounds", shared_data, print, ("published",))
        for head in [rs.WeightedMean().fit(task.rankings["panel"], reference=task.reference)]
    ]
    assert np.round(found, 3).tolist() == [0.558, 0.56, 0.578]

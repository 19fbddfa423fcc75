"""What is drawn and compared in the tables of accuracies: on the sounds of the package."""

import numpy as np
import pytest
from reproduction.batches import (
    draw_batches,
    format_tables as format_batches,
    measure as measure_batches,
)
from reproduction.examples_table import (
    DESIGNS,
    HALF,
    POOL,
    Cell,
    Measurement,
    draw_inputs,
    format_tables as format_examples,
)
from reproduction.overview import (
    alone_table,
    first_page_table,
    measure_task,
    rank_by_first_guess,
    rank_by_highest,
)
from reproduction.result_tables import ResultTable, write_section
from reproduction.together import (
    N_EXAMPLES,
    Decided,
    Outcome,
    Row,
    format_tables as format_together,
)
from sklearn.metrics import balanced_accuracy_score
from sklearn.neighbors import NearestCentroid

import rankshot as rs

CLASSES = 10


@pytest.mark.parametrize("design", DESIGNS)
def test_examples_are_drawn_by_design_and_never_tested(task, design):
    draw = draw_inputs(task.labels, seed=3)
    rows = draw.examples(design)
    counts = [(task.labels[rows] == name).sum() for name in np.unique(task.labels)]
    expected = [0] * 5 + [5] * 5 if design == HALF else [int(design)] * CLASSES
    assert sorted(counts) == expected
    assert not set(draw.pool.ravel()) & set(draw.tested)
    assert draw.pool.shape == (CLASSES, POOL)


def test_the_shuffled_panel_has_no_class_with_its_own_rankings(task):
    measured = Measurement(task, n_draws=1)
    mixed, panel = measured._rankings("shuffled panel", measured.draws[0]), task.rankings["panel"]
    assert sorted(mixed.targets) == sorted(panel.targets)
    assert not (mixed.targets == panel.targets).any()


def test_examples_alone_are_the_nearest_centroid(task):
    measured = Measurement(task, n_draws=1)
    draw, x = measured.draws[0], measured._vectors("features")
    rows = draw.examples("5")
    expected = NearestCentroid().fit(x[rows], task.labels[rows]).predict(x[draw.tested])
    (found,) = measured._by_examples("features", "5")["nearest class mean"]
    np.testing.assert_array_equal(found, expected)


def test_what_is_clearly_below_the_best_breaks_the_rule():
    names = ("sounds", "panel", "scores", "1")
    alone = {"rankings alone": [0.5, 0.5], "nearest class mean": [0.6, 0.6]}
    assert Cell(*names, [0.58, 0.58], alone).breaks
    assert not Cell(*names, [0.60, 0.56], alone).breaks
    assert Cell(*names, [0.595, 0.595], alone).gain == pytest.approx(-0.005)


def test_rules_of_one_line():
    weights = np.array([[1.0, 0.5, 0.0, 0.0], [0.0, 1.0, 0.5, 0.0]])
    f = np.array([[0.0, 3.0, 2.0, 9.0], [5.0, 4.0, 0.0, 9.0]])
    # Nobody lists the last column. The next one is listed by the second class, then the first.
    assert rank_by_first_guess(weights, f).tolist() == [1, 0]
    # Both list the second column; the third column is the second one's next.
    assert rank_by_highest(weights, f).tolist() == [1, 0]


def test_batches_have_the_classes_and_sizes_that_they_are_named_by(task):
    batches = draw_batches(task.labels, 0)
    sizes = {
        kind: np.unique(task.labels[rows], return_counts=True)[1] for kind, rows in batches.items()
    }
    assert (len(sizes["all"]), len(sizes["half"])) == (CLASSES, 5)
    assert sizes["all"].max() == 30
    assert sizes["5 per class"].tolist() == [5] * CLASSES
    assert len(set(sizes["unequal"])) > 2


def test_area_and_accuracy_at_a_loss_are_those_of_all_thresholds():
    rng = np.random.default_rng(0)
    seen, new = rng.normal(size=200), rng.normal(1, 1, size=100)
    right, correct = rng.random(200) < 0.9, rng.random(100) < 0.7
    labels = np.repeat(["a", "b"], 50)
    decided = Decided((seen, new), (right, correct), labels)
    area = 0.0
    for t in np.sort(seen[right]):
        found = correct & (new > t)
        area += (found[:50].mean() + found[50:].mean()) / 2 / 200
    assert decided.area() == pytest.approx(area)
    assert decided.accuracy_at(1.0) == pytest.approx(correct.mean())


def test_a_section_of_a_page_is_replaced(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n", encoding="utf-8")
    table = ResultTable("x", "Title", ("row", "value"), (("one", 0.5),))
    for _ in range(2):
        write_section(page, "x", [table])
    text = page.read_text("utf-8")
    assert text.count(".500") == 1
    assert "old" not in text
    assert text.startswith("a\n")
    assert text.endswith("-->\nb\n")
    with pytest.raises(rs.RankshotError):
        write_section(page, "y", [table])


@pytest.fixture(scope="module")
def found(task):
    return measure_task(task, 1, examples=True)


def test_the_methods_are_measured_on_the_tested_inputs(task, found):
    rows = draw_inputs(task.labels, 0).tested
    head = rs.WeightedMean().fit(task.rankings["panel"], reference=task.reference)
    expected = balanced_accuracy_score(task.labels[rows], head.predict(task.scores[rows]))
    assert found["rankshot"] == pytest.approx(expected)
    assert found["chance"] == 0.1


def test_tables_have_a_row_for_each_task(task, found):
    means = {"letters": found}
    assert [row[0] for row in alone_table(means).rows] == [
        "letters",
        "mean",
        "worst, below the best",
    ]
    assert len(first_page_table(means, 1).rows) == 6
    examples = list(Measurement(task, n_draws=1).cells())
    assert format_examples(examples, 1)[0].rows[0][0] == task.name
    batches = list(measure_batches(task, 1))
    assert format_batches(batches, 1, 0.0)[0].rows[0][0] == task.name
    one = Outcome((0.02, 0.05), (0.3, 0.4), (0.1, 0.2), 0.5)
    together = [Row(task.name, n, [one]) for n in N_EXAMPLES]
    assert format_together(together, 1)[1].rows[0][:3] == (task.name, "0.300", "0.400")
    published = [Row(f"sounds published {i}", n, [one]) for i in (1, 2) for n in N_EXAMPLES]
    first = format_together(published, 1)[0]
    assert first.columns == ("method", "sounds (ESC-50)")
    assert [row[1] for row in first.rows] == [".200", "**.400**", ".200", "**.400**"]

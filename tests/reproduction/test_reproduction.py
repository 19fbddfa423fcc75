"""All experiments in one run, on a part of the embedded data: the same code, in seconds."""

import shutil
from dataclasses import replace
from math import isfinite

import numpy as np
import pytest
from reproduction.benchmark import load_benchmark
from reproduction.classifiers import LEAST_SQUARES, SETTINGS, ClassifierCache
from reproduction.peer_comparison import peer_table
from reproduction.reproduction import GRID, reproduce
from reproduction.result_tables import OursAndPaper
from reproduction.two_classes import two_class_table

from rankshot.zeroshot.bootstrap import Bootstrap
from rankshot.zeroshot.metrics import Interval
from reproduction import paper_tables as table_two, reproduction as module
from shared_run import GRID as SHARED_GRID, PLACES, small_grids

pytestmark = pytest.mark.slow

FULL_SUM, PEERS = "full sum", "peers"
RESULT_ONE = ("result 1, sources", "result 1, raters")


@pytest.fixture(scope="module")
def benchmark(reproduction):
    return load_benchmark(reproduction.images)


@pytest.fixture(scope="module")
def directory(reproduction):
    return reproduction.directory


@pytest.fixture(scope="module")
def whole(reproduction):
    return reproduction.result


def trainings(said):
    return [text.removeprefix("training ") for text in said if text.startswith("training ")]


# ---- All that is there


def test_all_tables_are_there_in_the_order_of_the_paper(whole):
    assert whole.name == "cifar"
    assert [(table.name, len(table.rows)) for table in whole.all_tables] == [
        ("table 1", 6),
        ("classifiers", 5),
        # DS, DR: three sources, their average and two means; PR: three, their average and six.
        ("table 2", 6 + 6 + 10),
        (RESULT_ONE[0], 8),
        (RESULT_ONE[1], 2),
        (FULL_SUM, 6),
        (PEERS, 4),
        ("improvements", len(whole.ablation.steps)),
        ("selection", len(whole.ablation.selection.trials)),
        # Two classifiers and both, with two heads.
        ("settings", 3 * 2 * len(PLACES)),
        # What is chosen, three questions and five linguistic sources.
        ("predicted accuracy", 1 + 3 + 5),
        # Three rows each, two with labels, and one of the model itself.
        ("calibration", 3 * 9 + 2 + 1),
        # The pairs of the paper's figure, and the mean of all.
        ("figure 4", len(whole.figures.two_classes.pairs) + 1),
    ]
    assert all(table.title and table.columns for table in whole.all_tables)
    # Figure 4 has no notes, and is not among the tables of a report.
    assert all(table.notes for table in whole.tables)
    assert whole.all_tables[:-1] == whole.tables
    assert whole.table("table 2") is whole.tables[2]
    assert whole.seconds > 0


NO_SHARES = {"µs per input", "gain over the consensus", "log-loss"}


def numbers(table):
    """All figures of a table, with the heads of their columns."""
    for row in table.rows:
        for column, value in zip(table.columns, row, strict=True):
            ours = value.ours if isinstance(value, OursAndPaper) else value
            if isinstance(ours, int | float | Interval):
                yield column, ours


def test_all_figures_are_shares_inside_their_intervals(whole):
    for table in whole.all_tables[1:]:
        found = list(numbers(table))
        assert found, table.name
        for column, value in found:
            parts = value if isinstance(value, Interval) else (value,)
            assert all(map(isfinite, parts)), (table.name, column)
            if column not in NO_SHARES:
                assert all(0 <= part <= 1 for part in parts), (table.name, column, value)
            if isinstance(value, Interval):
                assert value.low <= value.estimate <= value.high, (table.name, column, value)


def test_every_cell_of_table_2_is_measured_but_those_that_cannot_be(whole):
    table = whole.table("table 2")
    assert table.columns[2:] == SETTINGS
    for row in table.rows:
        for name, cell in zip(SETTINGS, row[2:], strict=True):
            assert (cell is None) == (row[0] == "Direct Similarity" and name == "one-vs-one")
            # One in ten is right by chance.
            assert cell is None or cell.ours.estimate > 0.12, row


def test_the_classifiers_know_seen_images(benchmark, whole, directory):
    """And those chosen are the best of their grids, by the accuracy on validation images."""
    table = whole.table("classifiers")
    assert [row[:2] for row in table.rows] == [
        (setting, f"{C:g}") for setting, Cs in SHARED_GRID.items() for C in Cs
    ]
    task = benchmark.real
    nothing = ClassifierCache(task.name, task.train, task.train_label, directory, pytest.fail)
    for setting, Cs in SHARED_GRID.items():
        best = max(Cs, key=lambda C: table.row(setting, f"{C:g}")[0].estimate)
        for C in Cs:
            accuracy, chosen = table.row(setting, f"{C:g}")
            assert chosen == ("yes" if best == C else "")
            labels = nothing.load_or_train(setting, C).predict(task.validation)
            right = np.mean(labels == task.validation_label)
            assert accuracy.estimate == pytest.approx(right)
            # One in a hundred is right by chance.
            assert accuracy.low > 0.3


def test_the_default_beats_chance_and_the_papers_sources(benchmark, whole):
    (default,) = (one for one in whole.ablation.steps if one.idea.endswith("the default"))
    assert Bootstrap(benchmark.real.test_label).interval(default.correct).low > 0.3
    wordnet = whole.table("table 2").row("Direct Similarity", "WordNet")[2]
    assert default.correct.mean() > wordnet.ours.estimate


def test_the_grid_of_a_whole_run_has_all_classifiers():
    assert set(GRID) == set(SHARED_GRID) == {*SETTINGS, LEAST_SQUARES}
    assert all(len(set(Cs)) == len(Cs) > 1 for Cs in GRID.values())


def test_the_figures_are_of_this_benchmark(benchmark, whole):
    found = whole.figures.two_classes
    assert found.methods == (
        *("PR, linguistic", "Direct Similarity"),
        *("regression to word vectors", "settings chosen on seen classes"),
    )
    assert found.n_pairs == 45
    for cell in found.mean:
        # One of two is right by chance.
        assert 0.5 < cell.low <= cell.estimate <= cell.high < 1
    assert whole.table("figure 4") == two_class_table(found)
    names = {node.label for _, node in whole.figures.tree.root.walk() if node.is_class}
    assert names == set(benchmark.data.new_classes)
    for points in (*whole.figures.word_maps, *whole.figures.source_maps):
        assert set(points.targets) <= set(benchmark.data.new_classes)


# ---- New classes only report


def test_peers_are_tuned_without_new_images_and_labels(benchmark, whole, directory):
    """The ablation is held to the same in their own tests."""
    data, rng = benchmark.data, np.random.default_rng(0)
    other = load_benchmark(
        replace(
            data,
            new=rng.normal(size=data.new.shape).astype(np.float32),
            new_label=rng.permutation(data.new_label),
        )
    )
    models = [
        ClassifierCache(
            task.name, task.train, task.train_label, directory, pytest.fail
        ).load_or_train("multiclass", 0.03)
        for task in (other.rehearsal, other.real)
    ]
    with small_grids():
        table = peer_table(other, *models, lambda text: None)
    ours = whole.table(PEERS)
    assert [row[:5] for row in table.rows] == [row[:5] for row in ours.rows]
    for row, expected in zip(table.rows, ours.rows, strict=True):
        assert row[5].estimate < 0.2 < expected[5].estimate


# ---- Runs that were stopped


def test_every_classifier_is_trained_once(reproduction, directory):
    expected = [
        *(
            f"{setting}, C = {C:g}, on 100 classes"
            for setting, Cs in SHARED_GRID.items()
            for C in Cs
        ),
        *("multiclass, C = 0.003, on 80 classes", "multiclass, C = 0.03, on 80 classes"),
        "least squares, C = 0.001, on 80 classes",
    ]
    assert sorted(trainings(reproduction.said)) == sorted(expected)
    assert sorted(path.name for path in directory.iterdir()) == sorted(
        [
            *("cifar-all-one-vs-rest-0.001.npz", "cifar-all-one-vs-one-0.001.npz"),
            *("cifar-all-multiclass-0.003.npz", "cifar-all-multiclass-0.03.npz"),
            *("cifar-others-multiclass-0.003.npz", "cifar-others-multiclass-0.03.npz"),
            *("cifar-all-least-squares-0.001.npz", "cifar-others-least-squares-0.001.npz"),
        ]
    )


def test_a_run_that_was_stopped_goes_on_to_the_same_end(
    benchmark, whole, directory, tmp_path, monkeypatch
):
    """As if it had been stopped before two classifiers were there: only those are trained."""
    # What takes long is not measured again, and of Table 2 a few rows are. (That the ablation
    # finds its classifiers again is seen in its own tests.)
    for name, key in zip(("source_table", "rater_table"), RESULT_ONE, strict=True):
        monkeypatch.setattr(module, name, lambda benchmark, key=key: whole.table(key))
    monkeypatch.setattr(module, "full_sum_table", lambda *_: whole.table(FULL_SUM))
    monkeypatch.setattr(module, "run_ablation", lambda *_: whole.ablation)
    monkeypatch.setattr(module, "build_paper_figures", lambda *_: whole.figures)
    paper_methods = table_two.paper_methods
    monkeypatch.setattr(table_two, "paper_methods", lambda *given: paper_methods(*given)[:7])
    place = tmp_path / "classifiers"
    shutil.copytree(directory, place)
    (place / "cifar-all-one-vs-rest-0.001.npz").unlink()
    (place / "cifar-others-multiclass-0.03.npz").unlink()
    said = []
    with small_grids():
        again = reproduce(benchmark, place, said.append, SHARED_GRID)
    assert trainings(said) == [
        "one-vs-rest, C = 0.001, on 100 classes",
        "multiclass, C = 0.03, on 80 classes",
    ]
    for name in ("table 1", "classifiers", PEERS, "settings", "figure 4"):
        assert again.table(name) == whole.table(name)
    for row in again.table("table 2").rows:
        # The average is there after the last source, so it is not cut off.
        assert row in whole.table("table 2").rows
    assert len(again.table("table 2").rows) == 8

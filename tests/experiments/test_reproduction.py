"""All experiments in one run, on a part of the embedded data: the same code, in seconds."""

from dataclasses import replace
from functools import partial
from math import isfinite

import numpy as np
import pytest
from joblib import parallel_config
from sklearn import config_context

from rankshot.datasets.cifar import load_cifar
from rankshot.experiments import ablation, reproduction
from rankshot.experiments import evaluator as evaluator_module
from rankshot.experiments import paper_tables as table_two
from rankshot.experiments.benchmark import load_benchmark
from rankshot.experiments.classifiers import LEAST_SQUARES, SETTINGS, ClassifierCache
from rankshot.experiments.full_sum import full_sum_table
from rankshot.experiments.peer_comparison import peer_table
from rankshot.experiments.reproduction import GRID, reproduce
from rankshot.experiments.tables import OursAndPaper
from rankshot.experiments.two_classes import two_class_table
from rankshot.zeroshot.bootstrap import Bootstrap
from rankshot.zeroshot.metrics import Interval

SMALL = {
    "one-vs-rest": (0.001,),
    "one-vs-one": (0.001,),
    "multiclass": (0.003, 0.03),
    LEAST_SQUARES: (0.001,),
}
PARTS = {"seen_train": 12, "seen_validation": 6, "new": 20}
"""How many images of each class there are."""

FULL_SUM, PEERS = "full sum", "peers"
RESULT_ONE = ("result 1, sources", "result 1, raters")


def few_images():
    """The first images of every class."""
    data, chosen = load_cifar(), {}
    for part, n in PARTS.items():
        labels = getattr(data, f"{part}_label")
        rows = np.sort(
            np.concatenate([np.flatnonzero(labels == name)[:n] for name in np.unique(labels)])
        )
        chosen |= {part: getattr(data, part)[rows], f"{part}_label": labels[rows]}
    return replace(data, **chosen)


@pytest.fixture(scope="module")
def benchmark():
    return load_benchmark(few_images())


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("run") / "classifiers"


@pytest.fixture(scope="module")
def said():
    return []


@pytest.fixture(scope="module")
def whole(benchmark, directory, said):
    # Of 4,950 support vector machines most of the time is spent around them.
    quickly = config_context(assume_finite=True, skip_parameter_validation=True)
    with quickly, parallel_config("sequential"), pytest.MonkeyPatch.context() as patch:
        # A thousand draws an input take long, and 30 inputs are enough to see that they work.
        patch.setattr(reproduction, "full_sum_table", partial(full_sum_table, n_inputs=30))
        # All settings to choose from are tried in the tests of the improvements.
        patch.setattr(ablation, "SOURCE_WEIGHTS", ablation.SOURCE_WEIGHTS[:1])
        for name in ("HEAD_WEIGHTS", "SHRINKAGES"):
            patch.setattr(evaluator_module, name, getattr(evaluator_module, name)[:1])
        return reproduce(benchmark, directory, said.append, SMALL)


def trainings(said):
    return [text.removeprefix("training ") for text in said if text.startswith("training ")]


# ------------------------------------------------------------------ all that is there


def test_all_tables_are_there_in_the_order_of_the_paper(whole):
    assert whole.name == "cifar"
    assert [(table.name, len(table.rows)) for table in whole.tables] == [
        ("table 1", 6),
        ("classifiers", 5),
        # DS, DR: three sources, their average and two means; PR: three, their average and six.
        ("table 2", 6 + 6 + 10),
        (RESULT_ONE[0], 8),
        (RESULT_ONE[1], 2),
        (FULL_SUM, 6),
        (PEERS, 4),
        ("improvements", len(whole.ablation.steps)),
        ("settings", 8),
        # The pairs of the paper's figure, and the mean of all.
        ("figure 4", len(whole.figures.two_classes.pairs) + 1),
    ]
    assert all(table.title and table.columns for table in whole.tables)
    # Figure 4 has nothing that its figure does not say.
    assert all(table.notes for table in whole.tables[:-1])
    assert whole.table("table 2") is whole.tables[2]
    assert whole.seconds > 0


NO_SHARES = {"µs per input", "gain over the consensus"}


def numbers(table):
    """All figures of a table, with the heads of their columns."""
    for row in table.rows:
        for column, value in zip(table.columns, row, strict=True):
            ours = value.ours if isinstance(value, OursAndPaper) else value
            if isinstance(ours, int | float | Interval):
                yield column, ours


def test_all_figures_are_shares_inside_their_intervals(whole):
    for table in whole.tables[1:]:
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
        (setting, f"{C:g}") for setting, Cs in SMALL.items() for C in Cs
    ]
    task = benchmark.real
    nothing = ClassifierCache(task.name, task.train, task.train_label, directory, pytest.fail)
    for setting, Cs in SMALL.items():
        best = max(Cs, key=lambda C: table.row(setting, f"{C:g}")[0].estimate)
        for C in Cs:
            accuracy, chosen = table.row(setting, f"{C:g}")
            assert chosen == ("yes" if best == C else "")
            labels = nothing.load_or_train(setting, C).predict(task.validation)
            right = np.mean(labels == task.validation_label)
            assert accuracy.estimate == pytest.approx(right)
            # One in a hundred is right by chance.
            assert accuracy.low > 0.3


def test_the_default_head_on_the_panel_beats_chance_and_the_papers_sources(benchmark, whole):
    (default,) = (one for one in whole.ablation.steps if one.idea == "the default head")
    assert Bootstrap(benchmark.real.test_label).interval(default.correct).low > 0.3
    wordnet = whole.table("table 2").row("Direct Similarity", "WordNet")[2]
    assert default.correct.mean() > wordnet.ours.estimate


def test_the_grid_of_a_whole_run_has_all_classifiers():
    assert set(GRID) == set(SMALL) == {*SETTINGS, LEAST_SQUARES}
    assert all(len(set(Cs)) == len(Cs) > 1 for Cs in GRID.values())


def test_the_figures_are_of_this_study(benchmark, whole):
    found = whole.figures.two_classes
    assert found.methods == (
        *("PR, linguistic", "Direct Similarity"),
        *("regression to word vectors", "PR, all that seen classes support"),
    )
    assert found.n_pairs == 45
    for cell in found.mean:
        # One of two is right by chance.
        assert 0.5 < cell.low <= cell.estimate <= cell.high < 1
    assert whole.table("figure 4") == two_class_table(found)
    names = {node.label for _, node in whole.figures.tree.root.walk() if node.is_class}
    assert names == set(benchmark.images.new_classes)
    for points in (*whole.figures.word_maps, *whole.figures.source_maps):
        assert set(points.targets) <= set(benchmark.images.new_classes)


# ------------------------------------------------------------------ unseen classes only report


def test_peers_are_tuned_without_unseen_images_and_labels(benchmark, whole, directory):
    """The improvements are held to the same in their own tests."""
    data, rng = benchmark.images, np.random.default_rng(0)
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
    table = peer_table(other, *models, lambda text: None)
    ours = whole.table(PEERS)
    assert [row[:5] for row in table.rows] == [row[:5] for row in ours.rows]
    for row, expected in zip(table.rows, ours.rows, strict=True):
        assert row[5].estimate < 0.2 < expected[5].estimate


# ------------------------------------------------------------------ runs that were stopped


def test_every_classifier_is_trained_once(whole, said, directory):
    expected = [
        *(f"{setting}, C = {C:g}, on 100 classes" for setting, Cs in SMALL.items() for C in Cs),
        *("multiclass, C = 0.003, on 80 classes", "multiclass, C = 0.03, on 80 classes"),
        "least squares, C = 0.001, on 80 classes",
    ]
    assert sorted(trainings(said)) == sorted(expected)
    assert sorted(path.name for path in directory.iterdir()) == sorted(
        [
            *("cifar-all-one-vs-rest-0.001.npz", "cifar-all-one-vs-one-0.001.npz"),
            *("cifar-all-multiclass-0.003.npz", "cifar-all-multiclass-0.03.npz"),
            *("cifar-others-multiclass-0.003.npz", "cifar-others-multiclass-0.03.npz"),
            *("cifar-all-least-squares-0.001.npz", "cifar-others-least-squares-0.001.npz"),
        ]
    )


def test_a_run_that_was_stopped_goes_on_to_the_same_end(benchmark, whole, directory, monkeypatch):
    """As if it had been stopped before two classifiers were there: only those are trained."""
    # What takes long is not measured again, and of Table 2 a few rows are. (That improvements
    # find their classifiers again is seen in their own tests.)
    for name, key in zip(("source_table", "rater_table"), RESULT_ONE, strict=True):
        monkeypatch.setattr(reproduction, name, lambda benchmark, key=key: whole.table(key))
    monkeypatch.setattr(reproduction, "full_sum_table", lambda *_: whole.table(FULL_SUM))
    monkeypatch.setattr(reproduction, "run_ablation", lambda *_: whole.ablation)
    monkeypatch.setattr(reproduction, "build_paper_figures", lambda *_: whole.figures)
    paper_methods = table_two.paper_methods
    monkeypatch.setattr(table_two, "paper_methods", lambda *given: paper_methods(*given)[:7])
    (directory / "cifar-all-one-vs-rest-0.001.npz").unlink()
    (directory / "cifar-others-multiclass-0.03.npz").unlink()
    said = []
    again = reproduce(benchmark, directory, said.append, SMALL)
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

"""All experiments in one run, on a part of the embedded data: nothing is chosen by new classes."""

from dataclasses import replace

import numpy as np
import pytest
from reproduction.ablation import run_ablation
from reproduction.benchmark import load_benchmark
from reproduction.classifiers import ClassifierCache
from reproduction.evaluator import Evaluator
from reproduction.selection import LEAST_GAIN
from sklearn.base import clone
from small_run import GRID, run_all, small_grids

import rankshot as rs
from rankshot.zeroshot.metrics import Bootstrap

pytestmark = pytest.mark.slow

C = 0.03
FIRST, LAST = "the paper's: consensus, K = 4", "settings chosen on seen classes"
DEFAULT = "the mean of both classifiers: the default"
CEILING = "for comparison: the true ranking of each class"


def make_evaluator(images, directory):
    benchmark = load_benchmark(images)
    tasks = (benchmark.real, benchmark.rehearsal)
    caches = {
        task.name: ClassifierCache(task.name, task.train, task.train_label, directory, str)
        for task in tasks
    }
    return Evaluator(benchmark, caches)


@pytest.fixture(scope="module")
def reproduction(tmp_path_factory):
    with small_grids():
        yield run_all(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def evaluator(reproduction):
    return make_evaluator(reproduction.images, reproduction.directory)


@pytest.fixture(scope="module")
def found(reproduction):
    return reproduction.result.ablation


def step(found, idea):
    (one,) = (one for one in found.steps if one.idea == idea)
    return one


# ---- New classes only report


@pytest.fixture(scope="module")
def elsewhere(reproduction, evaluator):
    """The same with noise for the new images, and labels drawn by lot."""
    data, rng = evaluator.benchmark.data, np.random.default_rng(0)
    other = replace(
        data,
        new=rng.normal(size=data.new.shape).astype(np.float32),
        new_label=rng.permutation(data.new_label),
    )
    return run_ablation(make_evaluator(other, reproduction.directory), C, GRID, lambda _: None)


def test_nothing_is_chosen_by_new_images_or_labels(found, elsewhere):
    ours, theirs = (
        [(one.idea, one.chosen, one.rehearsal, one.looks_at) for one in run.steps]
        for run in (found, elsewhere)
    )
    assert ours == theirs
    for ours, theirs in (
        (found.chosen, elsewhere.chosen),
        *((found.bases[name], elsewhere.bases[name]) for name in found.bases),
    ):
        assert (ours.setting, ours.C, ours.reference) == (
            *(theirs.setting, theirs.C, theirs.reference),
        )
        assert (ours.sources, ours.raters) == (theirs.sources, theirs.raters)
        assert ours.head.get_params() == theirs.head.get_params()


# ---- The steps


def test_the_first_step_is_the_papers(evaluator, found):
    """Told again without configurations: consensus by Plackett-Luce, four places, all alike."""
    task = evaluator.benchmark.real
    scores = evaluator.caches[task.name].load_or_train("multiclass", C).scores(task.test)
    head = rs.ProbabilisticRanking(k=4, decay=0, posterior="consensus").fit(task.panel)
    expected = head.predict(scores) == task.test_label
    assert found.steps[0].idea == FIRST
    assert found.steps[0].correct.tolist() == expected.tolist()


# ---- Changes to the default


def test_a_change_is_kept_if_it_gains_more_than_its_standard_error(evaluator, found):
    trials = found.selection.trials
    parts = list(dict.fromkeys(one.part for one in trials))
    assert parts == ["questions", "classifier", "head", "reference", "sources", "raters"]
    for one in trials:
        if one.kept:
            assert one.gain.mean > one.gain.standard_error
            assert one.gain.mean >= LEAST_GAIN
            alike = [other for other in trials if other.part == one.part]
            if one.part != "questions":
                assert one.rehearsal.estimate == max(other.rehearsal.estimate for other in alike)
    last = step(found, LAST)
    assert last.rehearsal == evaluator.rehearse(found.chosen)
    assert last.correct.tolist() == evaluator.mark_correct(found.chosen).tolist()
    kept = [one for one in trials if one.kept]
    expected = kept[-1].rehearsal if kept else step(found, DEFAULT).rehearsal
    assert last.rehearsal == expected


def test_the_ceiling_by_hand(evaluator, found):
    """All classes by their score for each new class, in standard deviations."""
    task, configuration = evaluator.benchmark.real, found.chosen
    tables = [evaluator.scores(configuration, task, part) for part in ("validation", "test")]
    usual, values = (table.values.astype(float) for table in tables)
    orders = []
    for name in task.targets:
        mean = values[task.test_label == name].mean(axis=0)
        height = (mean - usual.mean(axis=0)) / usual.std(axis=0)
        orders.append([task.items[i] for i in np.argsort(-height)])
    rankings = rs.Rankings.from_orders(orders, items=task.items, targets=task.targets)
    head = clone(configuration.head).fit(rankings, tables[0])
    labels = head.predict(tables[1])
    assert step(found, CEILING).correct.tolist() == (labels == task.test_label).tolist()


def test_the_default_beats_chance_and_the_papers_sources(reproduction, evaluator, found):
    default = step(found, DEFAULT)
    truth = evaluator.benchmark.real.test_label
    assert Bootstrap(truth).interval(default.correct).low > 0.3
    wordnet = reproduction.result.table("table 2").row("Direct Similarity", "WordNet")[2]
    assert default.correct.mean() > wordnet.ours.estimate

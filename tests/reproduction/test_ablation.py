"""Better than the paper, on a part of the embedded data: nothing is chosen by new classes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from reproduction.ablation import (
    BOTH,
    rehearse_refined,
    run_ablation,
    settings_table,
)
from reproduction.benchmark import load_benchmark
from reproduction.classifiers import LEAST_SQUARES, ClassifierCache
from reproduction.evaluator import Evaluator
from reproduction.selection import LEAST_GAIN
from sklearn.base import clone

import rankshot as rs
from rankshot.zeroshot.bootstrap import Bootstrap
from rankshot.zeroshot.metrics import Interval
from shared_run import DECAYS, GRID, PLACES, small_grids

C = 0.03
FIRST, LAST = "the paper's: consensus, K = 4", "settings chosen on seen classes"
MEAN, INFORMED = "the mean over raters, more places of falling weight", "the same with a reference"
LOGISTIC, SQUARES = "regularization by seen classes", "least squares in its place"
DEFAULT = "the mean of both classifiers: the default"
PAPERS_K = "the same at the paper's K = 4"
CEILING = "no method: the true ranking of each class"
WITH_BATCH = "settings chosen on seen classes, with the batch"


def make_evaluator(images, directory, said, kind=Evaluator):
    benchmark = load_benchmark(images)
    return kind(
        benchmark,
        {
            task.name: ClassifierCache(
                task.name, task.train, task.train_label, directory, said.append
            )
            for task in (benchmark.real, benchmark.rehearsal)
        },
    )


@pytest.fixture(scope="module", autouse=True)
def grids():
    """The same settings as in the shared run."""
    with small_grids():
        yield


@pytest.fixture(scope="module")
def directory(reproduction):
    return reproduction.directory


@pytest.fixture(scope="module")
def said(reproduction):
    return reproduction.said


@pytest.fixture(scope="module")
def evaluator(reproduction, directory):
    return make_evaluator(reproduction.images, directory, [])


@pytest.fixture(scope="module")
def found(reproduction):
    return reproduction.result.ablation


def step(found, idea):
    (one,) = (one for one in found.steps if one.idea == idea)
    return one


def methods(found):
    """All steps but the ceiling, which looks at labels."""
    return [one for one in found.steps if one.looks_at != "labels"]


# ---- New classes only report


@pytest.fixture(scope="module")
def said_again():
    return []


@pytest.fixture(scope="module")
def elsewhere(evaluator, found, directory, said_again):
    """The same with noise for the new images, and labels drawn by lot."""
    data, rng = evaluator.benchmark.data, np.random.default_rng(0)
    other = replace(
        data,
        new=rng.normal(size=data.new.shape).astype(np.float32),
        new_label=rng.permutation(data.new_label),
    )
    return run_ablation(make_evaluator(other, directory, said_again), C, GRID, said_again.append)


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


def test_what_is_reported_is_that_of_the_new_images(found, elsewhere):
    """Of noise one in ten is right, or hardly more."""
    for ours, theirs in zip(methods(found), methods(elsewhere), strict=True):
        assert ours.correct.shape == theirs.correct.shape == (200,)
        assert theirs.correct.mean() < 0.2
        assert ours.correct.mean() > theirs.correct.mean() + 0.05


def test_a_second_run_trains_nothing(said, elsewhere, said_again):
    """Its classifiers are those of the first: what they depend on is the same."""
    trained = [text for text in said if text.startswith("training")]
    # The shared run also trains the classifiers of Table 2.
    assert len(set(trained)) == len(trained)
    assert set(trained) >= {
        f"training {setting}, C = {c:g}, on {n} classes"
        for setting, c, sizes in (
            ("multiclass", 0.003, (80,)),
            ("multiclass", 0.03, (80, 100)),
            (LEAST_SQUARES, 0.001, (80, 100)),
        )
        for n in sizes
    }
    assert [text for text in said_again if text.startswith("training")] == []


# ---- The steps


def test_the_first_step_is_the_papers(evaluator, found):
    """Told again without configurations: consensus by Plackett-Luce, four places, all alike."""
    task = evaluator.benchmark.real
    scores = evaluator.caches[task.name].load_or_train("multiclass", C).scores(task.test)
    head = rs.ProbabilisticRanking(k=4, decay=0, posterior="consensus").fit(task.panel)
    expected = head.predict(scores) == task.test_label
    assert found.steps[0].idea == FIRST
    assert found.steps[0].correct.tolist() == expected.tolist()


def test_the_default_beats_chance_clearly(evaluator, found):
    """One of ten is right by chance. And of the seen classes that play, one of twenty."""
    default = step(found, DEFAULT)
    assert Bootstrap(evaluator.benchmark.real.test_label).interval(default.correct).low > 0.3
    assert default.rehearsal.low > 0.3


def test_the_first_steps_ask_the_papers_question_and_then_the_others(evaluator, found):
    task = evaluator.benchmark.real
    scores = evaluator.caches[task.name].load_or_train("multiclass", C).scores(task.test)
    mean = rs.ProbabilisticRanking().fit(task.panels["similar"])
    assert step(found, MEAN).correct.tolist() == (mean.predict(scores) == task.test_label).tolist()
    usual = evaluator.caches[task.name].load_or_train("multiclass", C).scores(task.validation)
    for question in ("contrast", "photographs"):
        head = rs.ProbabilisticRanking().fit(task.panels[question], usual)
        expected = head.predict(scores) == task.test_label
        assert step(found, f"another question: {question}").correct.tolist() == expected.tolist()


def test_regularization_is_the_best_on_seen_classes(evaluator, found):
    for name, idea in (("multiclass", LOGISTIC), (LEAST_SQUARES, SQUARES)):
        base = found.bases[name]
        assert base.C in GRID[name]
        assert base.reference
        tried = [evaluator.rehearse(replace(base, C=c)).estimate for c in GRID[name]]
        assert step(found, idea).rehearsal == evaluator.rehearse(base)
        assert step(found, idea).rehearsal.estimate == max(tried)
    default = found.bases[BOTH]
    tried = [
        evaluator.rehearse(replace(default, C=one, partner=(LEAST_SQUARES, other))).estimate
        for one, other in product(GRID["multiclass"], GRID[LEAST_SQUARES])
    ]
    assert step(found, DEFAULT).rehearsal.estimate == max(tried)


# ---- Changes of the default


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


def test_the_table_of_changes_has_all_trials(evaluator, found):
    table = found.selection.table(Bootstrap(evaluator.benchmark.real.test_label))
    assert len(table.rows) == len(found.selection.trials)
    for row, one in zip(table.rows, found.selection.trials, strict=True):
        assert row[:3] == (one.part, one.change, one.rehearsal)
        assert (row[4] == "yes") is one.kept
        assert row[5].estimate == pytest.approx(one.correct.mean())


def same(one, other):
    """Whether two configurations are the same, their heads compared by parameters."""
    ours, theirs = (
        vars(configuration) | {"head": configuration.head.get_params()}
        for configuration in (one, other)
    )
    return ours == theirs


class Doubtful(Evaluator):
    def is_clearly_better(self, new, old):
        return False


class Hopeful(Evaluator):
    """Every change gains a lot."""

    def is_clearly_better(self, new, old):
        return True

    def rehearsal_gain(self, new, old):
        return super().rehearsal_gain(new, old)._replace(mean=1.0)


@pytest.mark.parametrize("kind", [Doubtful, Hopeful])
def test_the_rule_decides_on_every_part(evaluator, found, directory, kind):
    """What is not surely better is not kept, however it rehearses; what is surely better, is."""
    other = make_evaluator(evaluator.benchmark.data, directory, [], kind)
    result = run_ablation(other, C, GRID, lambda text: None)
    if kind is Doubtful:
        assert same(result.chosen, found.bases[BOTH])
        assert not any(one.kept for one in result.selection.trials)
    else:
        # Questions are left out one by one, until one is left.
        assert len(result.chosen.questions) == 1
        assert result.chosen.partner is None
        assert not same(result.chosen, replace(result.chosen, head=found.bases[BOTH].head))
        assert not result.chosen.reference
        assert list(result.chosen.sources.values()) == [0.3]
        assert result.chosen.raters


def test_the_last_configuration_at_the_papers_k(evaluator, found):
    configuration = found.chosen.with_head(k=4)
    papers = step(found, PAPERS_K)
    assert papers.rehearsal == evaluator.rehearse(configuration)
    assert papers.correct.tolist() == evaluator.mark_correct(configuration).tolist()
    assert found.steps.index(papers) == found.steps.index(step(found, LAST)) + 1


def test_the_ceiling_is_above_all_and_was_rehearsed_by_nobody(found):
    """It is told what new classes score, so it must not count as a method."""
    ceiling = step(found, CEILING)
    assert ceiling.looks_at == "labels"
    assert ceiling.rehearsal is None
    assert all(isinstance(one.rehearsal, Interval) for one in methods(found))
    assert len(methods(found)) == len(found.steps) - 1
    alone = [one for one in found.steps if one.looks_at == "nothing"]
    assert ceiling.correct.mean() > max(one.correct.mean() for one in alone)


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


def test_steps_with_the_batch_come_last(found):
    assert [(one.looks_at, one.idea) for one in found.steps[-4:]] == [
        ("labels", CEILING),
        ("batch", "frequencies of targets, by EM"),
        ("batch", "equal frequencies of targets"),
        ("batch", WITH_BATCH),
    ]
    assert {one.looks_at for one in found.steps[:-4]} == {"nothing"}
    assert len({one.idea for one in found.steps}) == len(found.steps)


def test_the_batch_is_used_with_the_classifier_that_rehearses_best(evaluator, found):
    squares = [replace(found.bases[LEAST_SQUARES], C=C) for C in GRID[LEAST_SQUARES]]
    bases = [found.chosen, found.bases["multiclass"], *squares]
    rehearsals = rehearse_refined(evaluator, bases)
    best = max(rehearsals, key=lambda one: rehearsals[one].estimate)
    last = step(found, WITH_BATCH)
    assert last.rehearsal == rehearsals[best]
    said = [f"{name}, C = {C:g}" for name, C in best.classifiers]
    assert last.chosen == " and ".join(said)
    low, high = found.batch_range
    assert low <= last.correct.mean() <= high


def test_every_idea_is_announced_before_it_is_tried(found, said):
    ideas = [one.idea for one in methods(found)]
    assert [text for text in said if text in ideas] == ideas
    assert "a ceiling: the true orders" in said


# ---- Tables


def test_the_table_has_all_steps_with_their_figures(evaluator, found):
    truth = evaluator.benchmark.real.test_label
    table = found.table(Bootstrap(truth), truth)
    assert len(table.rows) == len(found.steps)
    for one in found.steps:
        rehearsed, overall, by_class = table.row(one.idea, one.chosen, one.looks_at)
        assert rehearsed == one.rehearsal
        assert (rehearsed is None) == (one.looks_at == "labels")
        assert overall.estimate == pytest.approx(one.correct.mean())
        shares = [one.correct[truth == name].mean() for name in np.unique(truth)]
        assert by_class.estimate == pytest.approx(np.mean(shares))
        for cell in (overall, by_class) if rehearsed is None else (rehearsed, overall, by_class):
            assert isinstance(cell, Interval)
            assert 0 <= cell.low <= cell.estimate <= cell.high <= 1


def test_the_table_says_how_far_settings_of_the_batch_reach(evaluator, found):
    truth = evaluator.benchmark.real.test_label
    notes = replace(found, batch_range=(0.25, 0.5)).table(Bootstrap(truth), truth).notes
    assert (
        notes[-1] == "Classifiers with the batch within 0.01 of the best rehearsal: .250 to .500."
    )


def test_the_mean_over_classes_counts_classes_alike(found):
    """Where classes are of different sizes the two figures differ."""
    truth = np.repeat(["cat", "dog"], [150, 50])
    odd = replace(found, steps=(replace(found.steps[0], correct=truth == "cat"),))
    _, overall, by_class = odd.table(Bootstrap(truth), truth).row(FIRST, "similar", "nothing")
    assert (overall.estimate, by_class.estimate) == (pytest.approx(0.75), pytest.approx(0.5))


def test_settings_are_rehearsed_one_by_one(evaluator, found):
    base = found.bases["multiclass"]
    table = settings_table(evaluator, {"multiclass": base})
    assert table.columns == ("classifier", "head", "K", *(f"decay {decay:g}" for decay in DECAYS))
    assert [row[:3] for row in table.rows] == [
        ("multiclass", head, f"{k}")
        for head in ("WeightedMean", "ProbabilisticRanking")
        for k in PLACES
    ]
    default = table.row("multiclass", "WeightedMean", "15")[DECAYS.index(0.5)]
    assert default == evaluator.rehearse(base)
    other = replace(base, head=rs.ProbabilisticRanking(k=4, decay=0.25))
    found_there = table.row("multiclass", "ProbabilisticRanking", "4")[DECAYS.index(0.25)]
    assert found_there == evaluator.rehearse(other)
    assert all(0 < value.low < value.high < 1 for row in table.rows for value in row[3:])

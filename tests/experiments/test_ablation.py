"""Better than the paper, on a part of the embedded data: nothing is chosen by new classes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

import rankshot as rs
from rankshot.experiments import ablation as module, batch_trials
from rankshot.experiments.ablation import run_ablation, settings_table
from rankshot.experiments.benchmark import load_benchmark
from rankshot.experiments.classifiers import LEAST_SQUARES, ClassifierCache
from rankshot.experiments.evaluator import Evaluator
from rankshot.zeroshot.bootstrap import Bootstrap
from rankshot.zeroshot.metrics import Interval
from shared_run import DECAYS, GRID, PLACES, SOURCE_WEIGHTS, TEMPERATURES, small_grids

C = 0.03
FIRST, LAST = "the paper's: consensus, K = 4", "all that seen classes support"
DEFAULT, INFORMED = "the default head", "the default head with a reference"
LOGISTIC, SQUARES = "regularization by seen classes", "least squares in its place"
OWN_PLACES = "K and decay for this data set"
PAPERS_K = "the same at the paper's K = 4"
CEILING = "no method: the true ranking of each class"
REFINED = "batch refinement, frequencies"
WITH_BATCH = "all that seen classes support, with the batch"


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


def test_the_default_head_beats_chance_clearly(evaluator, found):
    """One of ten is right by chance. And of the seen classes that play, one of twenty."""
    default = step(found, DEFAULT)
    assert Bootstrap(evaluator.benchmark.real.test_label).interval(default.correct).low > 0.3
    assert default.rehearsal.low > 0.3


def test_every_choice_is_the_best_on_seen_classes(evaluator, found):
    """Settings that were chosen rehearse at least as well as those they were chosen from."""

    def figure(idea):
        return step(found, idea).rehearsal.estimate

    assert figure("K chosen") >= figure(FIRST)
    mean, default = figure("the mean over raters, no consensus"), figure(DEFAULT)
    assert figure("later places weigh less") >= max(mean, default)
    # The temperature may be left as it is.
    assert 1 in TEMPERATURES
    assert figure("scores divided by a temperature") >= default
    assert figure(LOGISTIC) >= figure(INFORMED)
    for name, idea in (("multiclass", LOGISTIC), (LEAST_SQUARES, SQUARES)):
        base = found.bases[name]
        assert base.C in GRID[name]
        assert base.reference
        tried = [evaluator.rehearse(replace(base, C=c)).estimate for c in GRID[name]]
        assert step(found, idea).rehearsal == evaluator.rehearse(base)
        assert figure(idea) == max(tried)


def test_what_is_supported_is_kept_and_what_is_not_is_not(evaluator, found):
    """One step up at a time, each by more than its standard error."""
    chosen = found.bases["multiclass"]
    if evaluator.is_clearly_better(found.bases[LEAST_SQUARES], chosen):
        chosen = found.bases[LEAST_SQUARES]
    placed = evaluator.choose_best(
        chosen.with_head(k=k, decay=d) for k, d in product(PLACES, DECAYS)
    )
    own = step(found, OWN_PLACES)
    assert own.chosen == f"K = {placed.head.k}, decay {placed.head.decay:g}"
    assert own.rehearsal == evaluator.rehearse(placed)
    chosen = placed if evaluator.is_clearly_better(placed, chosen) else chosen
    merged = evaluator.choose_best(
        replace(chosen, sources={source: weight})
        for source, weight in product(evaluator.benchmark.sources, SOURCE_WEIGHTS)
    )
    chosen = merged if evaluator.is_clearly_better(merged, chosen) else chosen
    assert same(found.chosen, chosen)
    last = step(found, LAST)
    assert last.chosen == described(chosen)
    assert last.rehearsal == evaluator.rehearse(found.chosen)
    assert last.correct.tolist() == evaluator.mark_correct(found.chosen).tolist()


def described(configuration):
    sources = "".join(f", {name} at {weight:g}" for name, weight in configuration.sources.items())
    places = f"K = {configuration.head.k}, decay {configuration.head.decay:g}"
    return f"{configuration.setting}, C = {configuration.C:g}, {places}, a reference{sources}"


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


class Gullible(Evaluator):
    def is_clearly_better(self, new, old):
        return True


@pytest.mark.parametrize("kind", [Doubtful, Gullible])
def test_the_rule_decides_on_classifier_places_and_sources(
    evaluator, found, directory, monkeypatch, kind
):
    """What is not surely better is not kept, however it rehearses; what is surely better, is."""
    monkeypatch.setattr(module, "PLACES", (2, 4))
    monkeypatch.setattr(module, "DECAYS", (0.0, 0.25))
    monkeypatch.setattr(module, "SOURCE_WEIGHTS", (0.3,))
    for name in ("HEAD_WEIGHTS", "SHRINKAGES"):
        monkeypatch.setattr(batch_trials, name, getattr(batch_trials, name)[:1])
    other = make_evaluator(evaluator.benchmark.data, directory, [], kind)
    chosen = run_ablation(other, C, GRID, lambda text: None).chosen
    if kind is Doubtful:
        assert same(chosen, found.bases["multiclass"])
    else:
        assert chosen.setting == LEAST_SQUARES
        # Neither is that of the default head.
        assert chosen.head.k in (2, 4)
        assert chosen.head.decay in (0.0, 0.25)
        assert list(chosen.sources.values()) == [0.3]


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
    """The ten classes that score highest for each new class, in standard deviations."""
    task, configuration = evaluator.benchmark.real, found.chosen
    model = evaluator.caches[task.name].load_or_train(configuration.setting, configuration.C)
    usual, values = (model.scores(X).values.astype(float) for X in (task.validation, task.test))
    orders = []
    for name in task.targets:
        mean = values[task.test_label == name].mean(axis=0)
        height = (mean - usual.mean(axis=0)) / usual.std(axis=0)
        orders.append([task.items[i] for i in np.argsort(-height)[:10]])
    rankings = rs.Rankings.from_orders(orders, items=task.items, targets=task.targets)
    head = clone(configuration.head).fit(rankings, model.scores(task.validation))
    labels = head.predict(model.scores(task.test))
    assert step(found, CEILING).correct.tolist() == (labels == task.test_label).tolist()


def test_steps_with_the_batch_come_last(found):
    assert [(one.looks_at, one.idea) for one in found.steps[-6:]] == [
        ("labels", CEILING),
        ("batch", "frequencies of targets, by EM"),
        ("batch", "equal frequencies of targets"),
        ("batch", f"{REFINED} estimated"),
        ("batch", f"{REFINED} equal"),
        ("batch", WITH_BATCH),
    ]
    assert {one.looks_at for one in found.steps[:-6]} == {"nothing"}
    assert len({one.idea for one in found.steps}) == len(found.steps)


def test_the_batch_is_used_as_the_rehearsal_likes_best(found):
    """Of the two assumptions about frequencies, that which rehearses better."""
    both = [step(found, f"{REFINED} {prior}") for prior in ("estimated", "equal")]
    for one, prior in zip(both, ("estimated", "equal"), strict=True):
        assert one.chosen.endswith(f"frequencies {prior}")
    best = max(both, key=lambda one: one.rehearsal.estimate)
    last = step(found, WITH_BATCH)
    assert (last.chosen, last.rehearsal) == (best.chosen, best.rehearsal)
    assert last.correct.tolist() == best.correct.tolist()
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
    assert notes[-1] == "Settings of the batch within 0.01 of the best rehearsal: .250 to .500."


def test_the_mean_over_classes_counts_classes_alike(found):
    """Where classes are of different sizes the two figures differ."""
    truth = np.repeat(["cat", "dog"], [150, 50])
    odd = replace(found, steps=(replace(found.steps[0], correct=truth == "cat"),))
    _, overall, by_class = odd.table(Bootstrap(truth), truth).row(FIRST, "", "nothing")
    assert (overall.estimate, by_class.estimate) == (pytest.approx(0.75), pytest.approx(0.5))


def test_settings_are_rehearsed_one_by_one(evaluator, found):
    table = settings_table(evaluator, {"multiclass": found.bases["multiclass"]})
    assert table.columns == ("classifier", "K", *(f"decay {decay:g}" for decay in DECAYS))
    assert [row[:2] for row in table.rows] == [("multiclass", f"{k}") for k in PLACES]
    default = table.row("multiclass", "10")[DECAYS.index(0.5)]
    assert default == evaluator.rehearse(found.bases["multiclass"])
    other = found.bases["multiclass"].with_head(k=4, decay=0.25)
    assert table.row("multiclass", "4")[DECAYS.index(0.25)] == evaluator.rehearse(other)
    assert all(0 < value.low < value.high < 1 for row in table.rows for value in row[2:])

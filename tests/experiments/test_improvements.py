"""Better than the paper, on a part of the embedded data: nothing is chosen by unseen classes."""

from dataclasses import replace

import numpy as np
import pytest

import rankshot as rs
from rankshot.datasets.cifar import load_cifar
from rankshot.experiments.improvements import DECAYS, PLACES, improvements, settings_table
from rankshot.experiments.recipes import Kitchen
from rankshot.experiments.study import study_of
from rankshot.experiments.training import LEAST_SQUARES, Workshop
from rankshot.zeroshot.bootstrap import Bootstrap
from rankshot.zeroshot.metrics import Interval

GRID = {"multiclass": (0.003, 0.03), LEAST_SQUARES: (0.001,)}
C = 0.03
PARTS = {"seen_train": 12, "seen_validation": 6, "unseen": 20}
"""How many images of each class there are."""

FIRST, LAST = "the paper's: consensus, K = 4", "all that seen classes support"
DEFAULT, INFORMED = "the default head", "the default head with a reference"
LOGISTIC, SQUARES = "regularisation by seen classes", "least squares in its place"


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


def kitchen_of(images, directory, said):
    study = study_of(images)
    return Kitchen(
        study,
        {
            task.name: Workshop(task.name, task.train, task.train_label, directory, said.append)
            for task in (study.real, study.rehearsal)
        },
    )


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("classifiers")


@pytest.fixture(scope="module")
def said():
    return []


@pytest.fixture(scope="module")
def kitchen(directory, said):
    return kitchen_of(few_images(), directory, said)


@pytest.fixture(scope="module")
def found(kitchen, said):
    return improvements(kitchen, C, GRID, said.append)


def step(found, idea):
    (one,) = (one for one in found.steps + found.batch_steps if one.idea == idea)
    return one


def methods(found):
    """All steps but the ceiling, the last of those without the batch."""
    return found.steps[:-1] + found.batch_steps


# ------------------------------------------------------------------ unseen classes only report


@pytest.fixture(scope="module")
def said_again():
    return []


@pytest.fixture(scope="module")
def elsewhere(kitchen, found, directory, said_again):
    """The same with noise for the unseen images, and labels drawn by lot."""
    data, rng = kitchen.study.images, np.random.default_rng(0)
    other = replace(
        data,
        unseen=rng.normal(size=data.unseen.shape).astype(np.float32),
        unseen_label=rng.permutation(data.unseen_label),
    )
    return improvements(kitchen_of(other, directory, said_again), C, GRID, said_again.append)


def test_nothing_is_chosen_by_unseen_images_or_labels(found, elsewhere):
    for ours, theirs in (
        (found.steps, elsewhere.steps),
        (found.batch_steps, elsewhere.batch_steps),
    ):
        assert [(one.idea, one.chosen, one.rehearsed) for one in ours] == [
            (one.idea, one.chosen, one.rehearsed) for one in theirs
        ]
    for ours, theirs in (
        (found.chosen, elsewhere.chosen),
        *((found.bases[name], elsewhere.bases[name]) for name in found.bases),
    ):
        assert (ours.setting, ours.C, ours.reference) == (
            *(theirs.setting, theirs.C, theirs.reference),
        )
        assert (ours.sources, ours.raters) == (theirs.sources, theirs.raters)
        assert ours.head.get_params() == theirs.head.get_params()


def test_what_is_reported_is_that_of_the_unseen_images(found, elsewhere):
    """Of noise one in ten is right, or hardly more."""
    for ours, theirs in zip(methods(found), methods(elsewhere), strict=True):
        assert ours.right.shape == theirs.right.shape == (200,)
        assert theirs.right.mean() < 0.2
        assert ours.right.mean() > theirs.right.mean() + 0.05


def test_a_second_run_trains_nothing(said, elsewhere, said_again):
    """Its classifiers are those of the first: what they depend on is the same."""
    trained = [text for text in said if text.startswith("training")]
    assert sorted(trained) == sorted(
        f"training {setting}, C = {c:g}, on {n} classes"
        for setting, c, sizes in (
            ("multiclass", 0.003, (80,)),
            ("multiclass", 0.03, (80, 100)),
            (LEAST_SQUARES, 0.001, (80, 100)),
        )
        for n in sizes
    )
    assert [text for text in said_again if text.startswith("training")] == []


# ------------------------------------------------------------------ the steps


def test_the_first_step_is_the_papers(kitchen, found):
    """Told again without recipes: consensus by Plackett-Luce, four places, all alike."""
    task = kitchen.study.real
    scores = kitchen.workshops[task.name].classifier("multiclass", C).scores(task.test)
    head = rs.ProbabilisticRanking(k=4, decay=0, posterior="consensus").fit(task.panel)
    expected = head.predict(scores) == task.test_label
    assert found.steps[0].idea == FIRST
    assert found.steps[0].right.tolist() == expected.tolist()


def test_the_default_head_beats_chance_clearly(kitchen, found):
    """One of ten is right by chance. And of the seen classes that play, one of twenty."""
    default = step(found, DEFAULT)
    assert Bootstrap(kitchen.study.real.test_label).interval(default.right).low > 0.3
    assert default.rehearsed > 0.3


def test_every_choice_is_the_best_on_seen_classes(kitchen, found):
    """Settings that were chosen rehearse at least as well as those they were chosen from."""
    assert step(found, "K chosen").rehearsed >= step(found, FIRST).rehearsed
    mean, default = step(found, "the mean over raters, no consensus"), step(found, DEFAULT)
    decayed = step(found, "places lose weight")
    assert decayed.rehearsed >= max(mean.rehearsed, default.rehearsed)
    assert step(found, LOGISTIC).rehearsed >= step(found, INFORMED).rehearsed
    for name, idea in (("multiclass", LOGISTIC), (LEAST_SQUARES, SQUARES)):
        base = found.bases[name]
        assert base.C in GRID[name]
        assert base.reference
        tried = [kitchen.rehearsed(replace(base, C=c)) for c in GRID[name]]
        assert step(found, idea).rehearsed == kitchen.rehearsed(base) == max(tried)


def test_what_is_supported_is_kept_and_what_is_not_is_not(kitchen, found):
    """One step up at a time, each by more than its standard error."""
    chosen = found.bases["multiclass"]
    if kitchen.surely_better(found.bases[LEAST_SQUARES], chosen):
        chosen = found.bases[LEAST_SQUARES]
    assert (found.chosen.setting, found.chosen.C) == (chosen.setting, chosen.C)
    assert bool(found.chosen.sources) == (
        found.chosen is not chosen and kitchen.surely_better(found.chosen, chosen)
    )
    last = step(found, LAST)
    assert last.chosen.startswith(f"{chosen.setting}, C = {chosen.C:g}, the default head")
    assert last.rehearsed == kitchen.rehearsed(found.chosen)
    assert last.right.tolist() == kitchen.right(found.chosen).tolist()


def test_the_ceiling_is_above_all_and_was_rehearsed_by_nobody(found):
    """It is told what unseen classes score, so it must not count as a method."""
    ceiling = found.steps[-1]
    assert "no method" in ceiling.idea
    assert ceiling.rehearsed is None
    assert all(one.rehearsed is not None for one in methods(found))
    assert ceiling.right.mean() > max(one.right.mean() for one in found.steps[:-1])


def test_the_ceiling_by_hand(kitchen, found):
    """The ten classes that score highest for each unseen class, in standard deviations."""
    task, recipe = kitchen.study.real, found.chosen
    model = kitchen.workshops[task.name].classifier(recipe.setting, recipe.C)
    usual, values = (model.scores(X).values.astype(float) for X in (task.validation, task.test))
    orders = []
    for name in task.targets:
        mean = values[task.test_label == name].mean(axis=0)
        height = (mean - usual.mean(axis=0)) / usual.std(axis=0)
        orders.append([task.items[i] for i in np.argsort(-height)[:10]])
    rankings = rs.Rankings.from_orders(orders, items=task.items, targets=task.targets)
    head = rs.ProbabilisticRanking().fit(rankings, model.scores(task.validation))
    labels = head.predict(model.scores(task.test))
    assert found.steps[-1].right.tolist() == (labels == task.test_label).tolist()


def test_steps_with_the_batch_are_apart(found):
    assert [one.idea for one in found.batch_steps] == [
        "how often targets occur, by EM",
        "targets taken to occur equally often",
        "where the inputs of targets are, frequencies estimated",
        "where the inputs of targets are, frequencies equal",
    ]
    assert not {one.idea for one in found.batch_steps} & {one.idea for one in found.steps}


def test_every_idea_is_announced_before_it_is_tried(found, said):
    ideas = [one.idea for one in methods(found)]
    assert [text for text in said if text in ideas] == ideas
    assert "a ceiling: the true orders" in said


# ------------------------------------------------------------------ tables


def test_the_table_has_all_steps_with_their_figures(kitchen, found):
    truth = kitchen.study.real.test_label
    table = found.table(Bootstrap(truth), truth)
    assert len(table.rows) == len(found.steps) + len(found.batch_steps)
    for steps, batch in ((found.steps, "no"), (found.batch_steps, "yes")):
        for one in steps:
            rehearsed, overall, by_class = table.row(one.idea, one.chosen, batch)
            assert rehearsed == one.rehearsed
            assert rehearsed is None or 0 <= rehearsed <= 1
            assert overall.estimate == pytest.approx(one.right.mean())
            shares = [one.right[truth == name].mean() for name in np.unique(truth)]
            assert by_class.estimate == pytest.approx(np.mean(shares))
            for cell in (overall, by_class):
                assert isinstance(cell, Interval)
                assert 0 <= cell.low <= cell.estimate <= cell.high <= 1


def test_the_mean_over_classes_counts_classes_alike(found):
    """Where classes are of different sizes the two figures differ."""
    truth = np.repeat(["cat", "dog"], [150, 50])
    odd = replace(found, steps=(replace(found.steps[0], right=truth == "cat"),), batch_steps=())
    _, overall, by_class = odd.table(Bootstrap(truth), truth).row(FIRST, "", "no")
    assert (overall.estimate, by_class.estimate) == (pytest.approx(0.75), pytest.approx(0.5))


def test_settings_are_rehearsed_one_by_one(kitchen, found):
    table = settings_table(kitchen, {"multiclass": found.bases["multiclass"]})
    assert table.columns == ("classifier", "K", *(f"decay {decay:g}" for decay in DECAYS))
    assert [row[:2] for row in table.rows] == [("multiclass", f"{k}") for k in PLACES]
    default = table.row("multiclass", "10")[DECAYS.index(0.5)]
    assert default == kitchen.rehearsed(found.bases["multiclass"])
    other = found.bases["multiclass"].with_head(k=4, decay=0.25)
    assert table.row("multiclass", "4")[DECAYS.index(0.25)] == kitchen.rehearsed(other)
    assert all(0 < value < 1 for row in table.rows for value in row[2:])

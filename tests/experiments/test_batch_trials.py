"""Settings of the batch: each tried on the rehearsal, and looked up elsewhere only if good."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import rankshot as rs
from rankshot.experiments.evaluator import (
    NEARLY_BEST,
    PRIORS,
    SHRINKAGES,
    HEAD_WEIGHTS,
    BatchSetting,
    BatchTrials,
    Configuration,
)
from rankshot.zeroshot.metrics import Interval

ITEMS, TARGETS = list("abcdef"), ("cow", "elk", "yak")
LISTS = rs.Rankings.from_orders([["a"], ["b"], ["c"]], items=ITEMS, targets=TARGETS)
BASES = [Configuration("multiclass", C, rs.ProbabilisticRanking(k=1)) for C in (0.5, 2.0)]


class Pantry:
    """A kitchen of two tasks with classes of different sizes; scores are multiplied by C."""

    def __init__(self, rng):
        self.asked = []
        self.study = SimpleNamespace(rehearsal=made(rng, "others"), real=made(rng, "all"))

    def scores(self, recipe, task, part):
        assert part == "test"
        self.asked.append(task.name)
        return rs.Scores(recipe.C * task.test, ITEMS)

    def fitted(self, recipe, task):
        return rs.ProbabilisticRanking(k=1).fit(LISTS)


def made(rng, name):
    code = np.repeat(np.arange(3), (15, 25, 40))
    test = rng.normal(size=(80, 6)) + 0.8 * np.eye(6)[code] + 0.8 * np.eye(6)[code + 3]
    return SimpleNamespace(name=name, test=test, test_label=np.array(TARGETS)[code])


@pytest.fixture
def pantry(rng):
    return Pantry(rng)


@pytest.fixture
def trials(pantry):
    return BatchTrials(pantry, BASES)


def right_by_hand(setting, task):
    scores = rs.Scores(setting.base.C * task.test, ITEMS)
    refined = rs.BatchRefinement(
        rs.ProbabilisticRanking(k=1).fit(LISTS),
        trust=setting.trust,
        shrinkage=setting.shrinkage,
        class_prior=setting.prior,
    )
    return refined.fit(scores).predict(scores) == task.test_label


def test_every_setting_is_rehearsed_by_the_mean_over_classes(trials, pantry):
    grid = product(BASES, HEAD_WEIGHTS, SHRINKAGES, PRIORS)
    assert list(trials.rehearsed) == [BatchSetting(*values) for values in grid]
    task = pantry.study.rehearsal
    for setting, found in trials.rehearsed.items():
        right = right_by_hand(setting, task)
        shares = [right[task.test_label == name].mean() for name in TARGETS]
        assert found.estimate == pytest.approx(np.mean(shares))
        # Of three classes resamples have now the best one only, now the worst.
        assert (found.low, found.high) == pytest.approx((min(shares), max(shares)))
    assert len({found.estimate for found in trials.rehearsed.values()}) > 5


def test_the_best_is_chosen_by_the_rehearsal_alone(trials, pantry):
    for priors in (("estimated",), ("equal",), PRIORS):
        best = trials.best(priors)
        allowed = {s: r.estimate for s, r in trials.rehearsed.items() if s.prior in priors}
        assert best in allowed
        assert trials.rehearsed[best].estimate == max(allowed.values())
    assert set(pantry.asked) == {"others"}


def test_what_is_right_is_that_of_unseen_classes(trials, pantry):
    for setting in (trials.best(["equal"]), trials.best(["estimated"])):
        expected = right_by_hand(setting, pantry.study.real)
        assert trials.right(setting).tolist() == expected.tolist()
        assert 0.4 < expected.mean() < 1


def test_the_range_is_of_settings_that_rehearse_nearly_as_well(trials, monkeypatch):
    """And the others are not even looked up."""
    settings = list(trials.rehearsed)
    figures = [0.6, 0.6 - 0.9 * NEARLY_BEST, 0.6 - 1.1 * NEARLY_BEST, 0.3, 0.6 - 0.5 * NEARLY_BEST]
    reached = dict(zip(settings, (7, 3, 1, 10, 5), strict=False))
    trials.rehearsed = {
        setting: Interval(figure, 0.0, 1.0)
        for setting, figure in zip(settings, figures, strict=False)
    }
    looked_up = []

    def right(setting):
        looked_up.append(setting)
        return np.arange(10) < reached[setting]

    monkeypatch.setattr(trials, "right", right)
    assert trials.range_of_nearly_best() == pytest.approx((0.3, 0.7))
    assert looked_up == [settings[0], settings[1], settings[4]]

"""Settings of the batch: each tried on the rehearsal, and looked up elsewhere only if good."""

from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import rankshot as rs
from rankshot.experiments.batch_trials import (
    HEAD_WEIGHTS,
    NEARLY_BEST,
    PRIORS,
    SHRINKAGES,
    BatchSetting,
    BatchTrials,
)
from rankshot.experiments.evaluator import Configuration
from rankshot.zeroshot.metrics import Interval

ITEMS, TARGETS = list("abcdef"), ("cow", "elk", "yak")
LISTS = rs.Rankings.from_orders([["a"], ["b"], ["c"]], items=ITEMS, targets=TARGETS)
BASES = [Configuration("multiclass", C, rs.ProbabilisticRanking(k=1)) for C in (0.5, 2.0)]


class FakeEvaluator:
    """An evaluator of two tasks with classes of different sizes; scores are multiplied by C."""

    def __init__(self, rng):
        self.asked = []
        self.benchmark = SimpleNamespace(rehearsal=made(rng, "others"), real=made(rng, "all"))

    def scores(self, configuration, task, part):
        assert part == "test"
        self.asked.append(task.name)
        return rs.Scores(configuration.C * task.test, ITEMS)

    def fit_head(self, configuration, task):
        return rs.ProbabilisticRanking(k=1).fit(LISTS)


def made(rng, name):
    code = np.repeat(np.arange(3), (15, 25, 40))
    test = rng.normal(size=(80, 6)) + 0.8 * np.eye(6)[code] + 0.8 * np.eye(6)[code + 3]
    return SimpleNamespace(name=name, test=test, test_label=np.array(TARGETS)[code])


@pytest.fixture
def evaluator(rng):
    return FakeEvaluator(rng)


@pytest.fixture
def trials(evaluator):
    return BatchTrials(evaluator, BASES)


def right_by_hand(setting, task):
    scores = rs.Scores(setting.base.C * task.test, ITEMS)
    refined = rs.BatchRefinement(
        rs.ProbabilisticRanking(k=1).fit(LISTS),
        head_weight=setting.head_weight,
        shrinkage=setting.shrinkage,
        class_prior=setting.prior,
    )
    return refined.fit(scores).predict(scores) == task.test_label


def test_every_setting_is_rehearsed_by_the_mean_over_classes(trials, evaluator):
    grid = product(BASES, HEAD_WEIGHTS, SHRINKAGES, PRIORS)
    assert list(trials.rehearsals) == [BatchSetting(*values) for values in grid]
    task = evaluator.benchmark.rehearsal
    for setting, found in trials.rehearsals.items():
        right = right_by_hand(setting, task)
        shares = [right[task.test_label == name].mean() for name in TARGETS]
        assert found.estimate == pytest.approx(np.mean(shares))
        # Of three classes resamples have now the best one only, now the worst.
        assert (found.low, found.high) == pytest.approx((min(shares), max(shares)))
    assert len({found.estimate for found in trials.rehearsals.values()}) > 5


def test_the_best_is_chosen_by_the_rehearsal_alone(trials, evaluator):
    for priors in (("estimated",), ("equal",), PRIORS):
        best = trials.choose_best(priors)
        allowed = {s: r.estimate for s, r in trials.rehearsals.items() if s.prior in priors}
        assert best in allowed
        assert trials.rehearsals[best].estimate == max(allowed.values())
    assert set(evaluator.asked) == {"others"}


def test_what_is_right_is_that_of_new_classes(trials, evaluator):
    for setting in (trials.choose_best(["equal"]), trials.choose_best(["estimated"])):
        expected = right_by_hand(setting, evaluator.benchmark.real)
        assert trials.mark_correct(setting).tolist() == expected.tolist()
        assert 0.4 < expected.mean() < 1


def test_the_range_is_of_settings_that_rehearse_nearly_as_well(trials, monkeypatch):
    """And the others are not even looked up."""
    settings = list(trials.rehearsals)
    figures = [0.6, 0.6 - 0.9 * NEARLY_BEST, 0.6 - 1.1 * NEARLY_BEST, 0.3, 0.6 - 0.5 * NEARLY_BEST]
    reached = dict(zip(settings, (7, 3, 1, 10, 5), strict=False))
    trials.rehearsals = {
        setting: Interval(figure, 0.0, 1.0)
        for setting, figure in zip(settings, figures, strict=False)
    }
    looked_up = []

    def mark_correct(setting):
        looked_up.append(setting)
        return np.arange(10) < reached[setting]

    monkeypatch.setattr(trials, "mark_correct", mark_correct)
    assert trials.range_of_nearly_best() == pytest.approx((0.3, 0.7))
    assert looked_up == [settings[0], settings[1], settings[4]]

"""Classifiers with the batch: each rehearsed, and looked up elsewhere only if good."""

from types import SimpleNamespace

import numpy as np
import pytest
from reproduction.ablation import (
    NEARLY_BEST,
    mark_refined,
    range_of_nearly_best,
    rehearse_refined,
)
from reproduction.evaluator import Configuration

import rankshot as rs
from rankshot.zeroshot.metrics import Interval
from reproduction import ablation

ITEMS, TARGETS = list("abcdef"), ("cow", "elk", "yak")
LISTS = rs.Rankings.from_orders([["a"], ["b"], ["c"]], items=ITEMS, targets=TARGETS)
BASES = [Configuration("multiclass", C, rs.ProbabilisticRanking(k=1)) for C in (0.1, 0.5, 1, 2, 5)]


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


def right_by_hand(configuration, task):
    scores = rs.Scores(configuration.C * task.test, ITEMS)
    refined = rs.BatchRefinement(rs.ProbabilisticRanking(k=1).fit(LISTS))
    return refined.fit(scores).predict(scores) == task.test_label


def test_every_configuration_is_rehearsed_by_the_mean_over_classes(evaluator):
    rehearsals = rehearse_refined(evaluator, BASES)
    assert list(rehearsals) == BASES
    task = evaluator.benchmark.rehearsal
    for configuration, found in rehearsals.items():
        right = right_by_hand(configuration, task)
        shares = [right[task.test_label == name].mean() for name in TARGETS]
        assert found.estimate == pytest.approx(np.mean(shares))
        # Of three classes resamples have now the best one only, now the worst.
        assert (found.low, found.high) == pytest.approx((min(shares), max(shares)))
    assert len({found.estimate for found in rehearsals.values()}) > 2
    assert set(evaluator.asked) == {"others"}


def test_what_is_right_is_that_of_the_task(evaluator):
    for task in (evaluator.benchmark.rehearsal, evaluator.benchmark.real):
        expected = right_by_hand(BASES[1], task)
        assert mark_refined(evaluator, BASES[1], task).tolist() == expected.tolist()
        assert 0.4 < expected.mean() < 1


def test_the_range_is_of_configurations_that_rehearse_nearly_as_well(evaluator, monkeypatch):
    """And the others are not even looked up."""
    figures = [0.6, 0.6 - 0.9 * NEARLY_BEST, 0.6 - 1.1 * NEARLY_BEST, 0.3, 0.6 - 0.5 * NEARLY_BEST]
    reached = dict(zip(BASES, (7, 3, 1, 10, 5), strict=True))
    rehearsals = {
        one: Interval(figure, 0.0, 1.0) for one, figure in zip(BASES, figures, strict=True)
    }
    looked_up = []

    def mark(evaluator, configuration, task):
        assert task is evaluator.benchmark.real
        looked_up.append(configuration)
        return np.arange(10) < reached[configuration]

    monkeypatch.setattr(ablation, "mark_refined", mark)
    assert range_of_nearly_best(evaluator, rehearsals) == pytest.approx((0.3, 0.7))
    assert looked_up == [BASES[0], BASES[1], BASES[4]]

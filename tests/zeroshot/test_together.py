"""The decision between old and new classes: its budget holds, by simulation."""

import numpy as np
import pytest

from rankshot.zeroshot.class_means import Examples, Inputs, Reference
from rankshot.zeroshot.default_head import rank_bonus
from rankshot.zeroshot.together import NEVER, Known, find_threshold, fit_together

C = 8
RANKED = np.zeros((2, C))
RANKED[0, [0, 1]] = 0.6, 0.4
RANKED[1, [4, 5]] = 0.6, 0.4
NEW = np.zeros((2, C))
NEW[0, [0, 1, 2]] = NEW[1, [4, 5, 7]] = 2.0


def draw(rng, centers, n):
    codes = rng.choice(len(centers), n)
    x = centers[codes] + rng.normal(size=(n, C))
    x = x - x.mean(axis=1, keepdims=True)
    f = x / x.std(axis=1, keepdims=True)
    return Inputs(f, rank_bonus(f)), codes


def fit(rng, n, budget, *, with_labels=True, examples=None):
    inputs, codes = draw(rng, 3 * np.eye(C), n)
    first = inputs.f.argmax(axis=1)
    counts = first == codes if with_labels else np.ones(n, bool)
    return fit_together(Known(RANKED, Reference(inputs, first), examples), counts, budget)


@pytest.mark.parametrize(
    ("n", "with_labels", "n_classes"),
    [(300, True, 0), (300, False, 0), (30, True, 0), (300, True, 2), (300, True, 1)],
)
def test_the_loss_is_within_the_budget(n, with_labels, n_classes):
    budget, losses, found = 0.05, [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        examples = Examples(*draw(rng, NEW[:n_classes], 6)) if n_classes else None
        fitted = fit(rng, n, budget, with_labels=with_labels, examples=examples)
        tested, codes = draw(rng, 3 * np.eye(C), 300)
        first = tested.f.argmax(axis=1)
        above = fitted.excess(tested, first).max(axis=1) > 0
        losses.append(np.mean(above & (first == codes) if with_labels else above))
        new, _ = draw(rng, NEW, 100)
        found.append(np.mean(fitted.excess(new, new.f.argmax(axis=1)).max(axis=1) > 0))
        assert fitted.budget.n_inputs == n
        assert fitted.budget.loss <= budget
    assert np.mean(losses) <= budget + 2 * np.std(losses) / 10
    # At least a third of the budget is used, and it is worth it.
    assert np.mean(losses) > budget / 3
    assert np.mean(found) > 2 * budget


def test_too_few_inputs_allow_no_new_class():
    values = np.arange(30.0)
    everything = np.ones(30, bool)
    assert find_threshold(values, everything, 0.02).threshold == NEVER
    # 1 / budget - 1 inputs are enough.
    assert find_threshold(np.arange(49.0), np.ones(49, bool), 0.02).threshold == 48


def test_the_threshold_loses_fewer_than_its_rank():
    values = np.array([3.0, 1, 2, 5, 4, 9, 8, 7, 6])
    counts = values != 9
    found = find_threshold(values, counts, 0.3)
    assert found.threshold == 6
    assert found.loss == pytest.approx(2 / 9)
    assert find_threshold(values, counts, 1.0).threshold == -NEVER


def test_examples_of_one_class_do_not_harm_the_other():
    rng = np.random.default_rng(0)
    few, codes = draw(rng, NEW[:1], 5)
    tested, truth = draw(rng, NEW, 2000)
    found = []
    for examples in (None, Examples(few, codes)):
        fitted = fit(np.random.default_rng(1), 600, 0.05, examples=examples)
        g = fitted.excess(tested, tested.f.argmax(axis=1))
        predicted = np.where(g.max(axis=1) > 0, g.argmax(axis=1), -1)
        found.append([np.mean(predicted[truth == z] == z) for z in (0, 1)])
    (without, other_without), (with_examples, other_with) = found
    assert with_examples > without
    assert other_with > other_without - 0.02

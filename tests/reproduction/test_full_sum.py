"""The sum over rankings against the consensus: enumerated by hand, and drawn."""

from itertools import permutations
from math import exp, log

import numpy as np
import pytest
from reproduction.benchmark import Task
from reproduction.full_sum import classify_by_sum

import rankshot as rs
from rankshot.zeroshot.scores import Scores

pytestmark = pytest.mark.slow

TARGETS = ("cow", "elk", "yak")


def made(rng, n_items, n=40):
    """A task whose inputs score the items of their class's rankings higher, and the scores."""
    items = tuple("abcdefghijklmnop"[:n_items])
    likes = rng.normal(size=(3, n_items))
    orders = [
        [items[i] for i in np.argsort(-row - rng.normal(scale=0.5, size=n_items))[:5]]
        for row in likes
        for _ in range(4)
    ]
    panel = rs.Rankings.from_orders(orders, items=items, targets=np.repeat(TARGETS, 4).tolist())
    code = rng.integers(3, size=n)
    values = 1.5 * likes[code] + rng.normal(scale=1.5, size=(n, n_items))
    empty = dict.fromkeys(("train", "validation", "test"), np.zeros((0, 1), np.float32))
    labels = dict.fromkeys(("train_label", "validation_label"), np.array([], str))
    labels["test_label"] = np.array(TARGETS)[code]
    names = {"name": "made", "items": items, "targets": TARGETS}
    task = Task(**names, **empty, **labels, sources={}, panels={"similar": panel})
    return task, Scores(values, items)


# ---- By hand


def plackett_luce(log_worths, order):
    """log P of a list of item numbers, choice by choice."""
    left, total = list(range(len(log_worths))), 0.0
    for item in order:
        total += log_worths[item] - log(sum(exp(log_worths[i]) for i in left))
        left.remove(item)
    return total


def mallows(center, spread, order):
    left, total = list(center), 0.0
    for item in order:
        chances = [exp(-spread * passed) for passed in range(len(left))]
        total += log(chances[left.index(item)] / sum(chances))
        left.remove(item)
    return total


def log_likelihoods(prior, task, order):
    """log P(π|z) of each target."""
    found = []
    for target in TARGETS:
        model = prior.fit(task.panel.select(target=target))
        if isinstance(model, rs.PlackettLuce):
            found.append(plackett_luce(model.log_worths_.tolist(), order))
        else:
            center = [task.items.index(name) for name in model.center_]
            found.append(mallows(center, model.spread_, order))
    return found


@pytest.mark.parametrize("prior", [rs.PlackettLuce(), rs.Mallows()], ids=["P.-L.", "Mallows"])
def test_the_sum_is_equation_7(rng, prior):
    """All 120 lists of 4 of 5 items, one by one."""
    task, scores = made(rng, 5, n=12)
    orders = list(permutations(range(5), 4))
    likelihoods = [[exp(v) for v in log_likelihoods(prior, task, order)] for order in orders]
    found = classify_by_sum(prior, task, scores, 100)
    expected = []
    for row in scores.values.tolist():
        proba = [0.0] * 3
        for order, of_targets in zip(orders, likelihoods, strict=True):
            weight = exp(plackett_luce(row, order))
            for z in range(3):
                proba[z] += weight * of_targets[z] / sum(of_targets)
        assert sum(proba) == pytest.approx(1)
        expected.append(TARGETS[int(np.argmax(proba))])
    assert found.labels.tolist() == expected
    assert found.standard_error == 0.0
    assert len(set(expected)) > 1

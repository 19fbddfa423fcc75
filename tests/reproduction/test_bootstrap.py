"""Intervals from resamples of inputs, against a plain loop."""

import numpy as np
import pytest
from reproduction.bootstrap import Bootstrap

from rankshot.zeroshot.metrics import class_weights

SIZES = {"cat": 7, "dog": 60, "elk": 33}


@pytest.fixture
def labels(rng):
    """Classes of different sizes, mixed."""
    return rng.permutation(np.repeat(list(SIZES), list(SIZES.values())))


def by_hand(labels, values, weights, rng, n=4000):
    """Weighted means of inputs drawn class by class."""
    rows = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    drawn = np.concatenate([rng.choice(own, (n, own.size)) for own in rows], axis=1)
    return np.average(values[drawn], weights=weights[drawn], axis=1)


def test_intervals_of_a_naive_loop(rng, labels):
    values = (rng.random(100) < 0.6).astype(float)
    found = Bootstrap(labels)
    for weights in (np.ones(100), class_weights(labels)):
        means = by_hand(labels, values, weights, rng)
        low, high = np.quantile(means, [0.025, 0.975])
        interval = found.interval(values, weights)
        assert interval.low == pytest.approx(low, abs=0.3 * means.std())
        assert interval.high == pytest.approx(high, abs=0.3 * means.std())
        assert interval.estimate == pytest.approx(means.mean(), abs=0.1 * means.std())


@pytest.mark.parametrize("weighted", [False, True])
def test_the_true_share_is_inside_as_often_as_promised(weighted):
    rng = np.random.default_rng(1)
    labels = np.repeat(["cat", "dog", "elk"], [20, 40, 60])
    chance = np.repeat([0.4, 0.6, 0.8], [20, 40, 60])
    weights = class_weights(labels) if weighted else np.ones(120)
    truth = np.average(chance, weights=weights)
    bootstrap = Bootstrap(labels)
    inside = 0
    for _ in range(600):
        _, low, high = bootstrap.interval(rng.random(120) < chance, weights)
        inside += low <= truth <= high
    # 95%, less what a bootstrap of some tens of inputs lacks; four standard errors around that.
    assert 0.90 < inside / 600 < 0.985

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

"""Bootstrap intervals, against plain resamples and the binomial law."""

import numpy as np
import pytest

from rankshot.zeroshot.metrics import Bootstrap, class_interval, class_weights, mean_class_accuracy

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
    found = Bootstrap(labels, n_resamples=4000)
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
    bootstrap = Bootstrap(labels, n_resamples=400)
    inside = 0
    for _ in range(600):
        _, low, high = bootstrap.interval(rng.random(120) < chance, weights)
        inside += low <= truth <= high
    # 95%, less what a bootstrap of some tens of inputs lacks; four standard errors around that.
    assert 0.90 < inside / 600 < 0.985


# ------------------------------------------------------------------ mean over classes


def test_class_weights_make_classes_count_alike(rng, labels):
    weights = class_weights(labels)
    for name, size in SIZES.items():
        np.testing.assert_allclose(weights[labels == name], 1 / size)
    predicted = rng.permutation(labels)
    found = Bootstrap(labels).interval(labels == predicted, weights)
    assert found.estimate == pytest.approx(mean_class_accuracy(labels, predicted))
    assert found.low < found.estimate < found.high


def test_an_interval_over_classes_is_of_resamples_of_classes(rng):
    """Against draws of classes, each with all its inputs."""
    names = [f"class {i}" for i in range(12)]
    labels = rng.permutation(np.repeat(names, rng.integers(3, 40, size=12)))
    chance = dict(zip(names, rng.random(12), strict=True))
    right = rng.random(len(labels)) < [chance[name] for name in labels]
    shares = np.array([right[labels == name].mean() for name in names])
    found = class_interval(labels, right)
    assert found.estimate == pytest.approx(shares.mean())
    assert found.estimate == pytest.approx(
        mean_class_accuracy(labels, np.where(right, labels, "wrong"))
    )
    means = rng.choice(shares, (20_000, 12)).mean(axis=1)
    expected = np.quantile(means, [0.025, 0.975])
    assert found[1:] == pytest.approx(expected, abs=0.25 * means.std())
    # Resamples of inputs are not what it is about: classes differ far more.
    inputs = Bootstrap(labels).interval(right, class_weights(labels))
    assert found.high - found.low > 1.5 * (inputs.high - inputs.low)


# ------------------------------------------------------------------ seeds


def test_a_seed_decides(labels):
    values = np.arange(100.0) % 7
    one, same, other = (
        Bootstrap(labels, random_state=seed).interval(values)
        for seed in (3, np.random.default_rng(3), 4)
    )
    assert one == same
    assert one != other
    assert one == pytest.approx(other, rel=0.05)
    assert Bootstrap(labels).interval(values) == Bootstrap(labels, random_state=0).interval(values)

"""Bootstrap intervals: counts of the resamples; intervals against loops and the binomial law."""

import numpy as np
import pytest
from scipy.stats import binom

from rankshot import RankshotError
from rankshot.zeroshot.metrics import Bootstrap, class_interval, class_weights, mean_class_accuracy

SIZES = {"cat": 7, "dog": 60, "elk": 33}


@pytest.fixture
def labels(rng):
    """Classes of different sizes, mixed."""
    return rng.permutation(np.repeat(list(SIZES), list(SIZES.values())))


def by_hand(labels, values, weights, rng, n=4000):
    """Weighted means of inputs drawn class by class, as anybody would write it."""
    rows = [np.flatnonzero(labels == name) for name in np.unique(labels)]
    means = []
    for _ in range(n):
        drawn = np.concatenate([rng.choice(own, own.size) for own in rows])
        means.append(np.average(values[drawn], weights=weights[drawn]))
    return np.array(means)


# ------------------------------------------------------------------ the resamples


@pytest.mark.parametrize("n_resamples", [1, 50, 120])
def test_every_resample_has_as_many_of_each_class(labels, n_resamples):
    counts = Bootstrap(labels, n_resamples=n_resamples)._counts
    assert counts.shape == (n_resamples, 100)
    for name, size in SIZES.items():
        of_class = counts[:, labels == name].sum(axis=1, dtype=int)
        np.testing.assert_array_equal(of_class, size)


def test_inputs_are_drawn_alike_and_with_replacement(labels):
    """How often an input of a class of m is drawn is binomial: m draws, each with chance 1/m."""
    n = 20_000
    counts = Bootstrap(labels, n_resamples=n)._counts
    for name, size in SIZES.items():
        own = counts[:, labels == name]
        for k in range(4):
            chance = binom.pmf(k, size, 1 / size)
            error = np.sqrt(chance * (1 - chance) / n)
            np.testing.assert_allclose((own == k).mean(axis=0), chance, atol=4.5 * error)


def test_resamples_are_not_each_others_copies():
    counts = Bootstrap(["cat"] * 30, n_resamples=150)._counts
    assert len(np.unique(counts, axis=0)) == 150


# ------------------------------------------------------------------ the intervals


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_quantiles_of_the_means_of_its_resamples(rng, labels, weighted):
    values, weights = rng.normal(size=100), rng.random(100) if weighted else np.ones(100)
    found = Bootstrap(labels, n_resamples=130)
    means = [
        np.average(np.repeat(values, row), weights=np.repeat(weights, row))
        for row in found._counts.astype(int)
    ]
    for confidence in (0.5, 0.95):
        tail = (1 - confidence) / 2
        expected = np.average(values, weights=weights), *np.quantile(means, [tail, 1 - tail])
        interval = found.interval(values, weights if weighted else None, confidence)
        assert interval == pytest.approx(expected, abs=1e-12)


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


@pytest.mark.parametrize("right", [5, 60, 100])
def test_one_class_is_a_binomial(right):
    values = np.repeat([1.0, 0.0], [right, 100 - right])
    found = Bootstrap(["cat"] * 100, n_resamples=20_000).interval(values)
    law = binom(100, right / 100)
    assert found.estimate == right / 100
    assert 100 * found.low == pytest.approx(law.ppf(0.025), abs=1.01)
    assert 100 * found.high == pytest.approx(law.ppf(0.975), abs=1.01)


def test_classes_that_are_all_right_or_all_wrong_leave_no_doubt(labels):
    """Resamples keep the sizes of classes, so that nothing is left to chance."""
    right = labels == "dog"
    assert Bootstrap(labels).interval(right) == pytest.approx((0.6, 0.6, 0.6))
    third = Bootstrap(labels).interval(right, class_weights(labels))
    assert third == pytest.approx((1 / 3, 1 / 3, 1 / 3))


def test_a_difference_has_an_interval_too(rng, labels):
    """That of two methods that are right together is narrow, though each alone is unsure."""
    one = rng.random(100) < 0.5
    other = one.copy()
    other[:2] = ~other[:2]
    bootstrap = Bootstrap(labels)
    both = bootstrap.interval(one.astype(float) - other)
    alone = bootstrap.interval(one)
    assert both.high - both.low < 0.5 * (alone.high - alone.low)


def test_weights_that_leave_out_a_class(rng, labels):
    values = rng.normal(size=100)
    kept = labels != "elk"
    found = Bootstrap(labels, n_resamples=100).interval(values, weights=kept)
    assert found.estimate == pytest.approx(values[kept].mean())
    values[~kept] = 1e6
    assert Bootstrap(labels, n_resamples=100).interval(values, weights=kept) == found


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


def test_more_inputs_make_it_narrower():
    few, many = (Bootstrap(["cat"] * n).interval(np.tile([0.0, 1.0], n // 2)) for n in (100, 1600))
    assert (few.high - few.low) / (many.high - many.low) == pytest.approx(4, rel=0.15)


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
    """Against a loop that draws classes, each with all its inputs."""
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
    means = np.array([rng.choice(shares, 12).mean() for _ in range(20_000)])
    expected = np.quantile(means, [0.025, 0.975])
    assert found[1:] == pytest.approx(expected, abs=0.25 * means.std())
    # Resamples of inputs are not what it is about: classes differ far more.
    inputs = Bootstrap(labels).interval(right, class_weights(labels))
    assert found.high - found.low > 1.5 * (inputs.high - inputs.low)


def test_an_interval_over_classes_does_not_see_how_many_inputs_they_have(rng):
    labels = np.repeat(["cat", "dog", "elk"], [10, 20, 30])
    right = np.concatenate([np.arange(n) < n * share for n, share in ((10, 1), (20, 0.5), (30, 0))])
    found = class_interval(labels, right)
    assert found.estimate == pytest.approx(0.5)
    assert class_interval(np.repeat(labels, 7), np.repeat(right, 7)) == pytest.approx(found)
    mixed = rng.permutation(60)
    assert class_interval(labels[mixed], right[mixed]) == pytest.approx(found)
    assert class_interval(["cat", "cat"], [True, False]) == (0.5, 0.5, 0.5)


def test_a_seed_decides_on_the_classes_drawn(rng):
    labels = np.repeat([f"class {i}" for i in range(20)], 5)
    right = rng.random(100) < 0.5
    assert class_interval(labels, right) == class_interval(labels, right, random_state=0)
    one, other = (class_interval(labels, right, random_state=seed) for seed in (3, 4))
    assert one != other
    assert one.estimate == other.estimate


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


def test_names_of_classes_may_be_numbers():
    values = np.arange(30.0)
    by_number = Bootstrap(np.repeat([1, 2, 3], 10)).interval(values)
    assert Bootstrap(np.repeat(["1", "2", "3"], 10)).interval(values) == by_number


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([], "y_true is empty"),
        ("cat", "y_true must be one class name for each input, not 'cat'"),
        ([["cat", "dog"]], "y_true must be one class name for each input"),
        (["cat", None], "y_true, row 1: expected the name of a class, not None"),
        (["cat", ""], "y_true, row 1: expected the name of a class, not ''"),
    ],
)
def test_labels_that_are_none(labels, message):
    with pytest.raises(RankshotError, match=message):
        Bootstrap(labels)


@pytest.mark.parametrize("n", [0, -1, 2.5, "many", True])
def test_numbers_of_resamples_that_are_none(n):
    with pytest.raises(RankshotError, match="n_resamples must be a whole number from 1 on, not"):
        Bootstrap(["cat"], n_resamples=n)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, 0.0], r"3 inputs need 3 values, not shape \(2,\)"),
        ([[1.0, 0.0, 1.0]], r"3 inputs need 3 values, not shape \(1, 3\)"),
        (0.5, r"3 inputs need 3 values, not shape \(\)"),
        ([1.0, np.nan, 1.0], "values, row 1: expected a number, not nan"),
        (["yes", "no", "no"], "values must be numbers: .*yes"),
    ],
)
def test_values_that_do_not_fit(values, message):
    with pytest.raises(RankshotError, match=message):
        Bootstrap(["cat", "cat", "dog"]).interval(values)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, 1.0], r"3 inputs need 3 weights, not shape \(2,\)"),
        ([1.0, np.inf, 1.0], "weights, row 1: expected a number, not inf"),
        ([1.0, -1.0, 5.0], "weights must not be negative"),
        ([0.0, 0.0, 0.0], "every resample needs an input with a weight"),
        # Both draws of the class may be the one that weighs nothing.
        ([1.0, 0.0, 0.0], "every resample needs an input with a weight"),
    ],
)
def test_weights_that_do_not_fit(weights, message):
    with pytest.raises(RankshotError, match=message):
        Bootstrap(["cat", "cat", "dog"]).interval([1.0, 0.0, 1.0], weights)


@pytest.mark.parametrize("confidence", [0, 1, 95, np.nan, "high"])
def test_confidences_that_make_no_sense(confidence):
    with pytest.raises(RankshotError, match="confidence must be"):
        Bootstrap(["cat", "cat"]).interval([1.0, 0.0], confidence=confidence)

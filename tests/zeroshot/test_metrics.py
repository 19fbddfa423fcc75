"""The metrics, against scikit-learn and SciPy or against plain loops."""

import numpy as np
import pytest
import sklearn.metrics as sk
from scipy.stats import binomtest

from rankshot.zeroshot import metrics as m
from refusals import refuses

CLASSES = ["cat", "dog", "fox", "ship", "truck"]
CAT_DOG = ["cat", "dog"]


def test_accuracies_are_those_of_scikit_learn(rng):
    y_true, y_pred = rng.choice(CLASSES, (2, 60))
    y_pred[:25] = y_true[:25]
    recalls = sk.recall_score(y_true, y_pred, labels=CLASSES, average=None)
    assert m.per_class_accuracy(y_true, y_pred) == dict(zip(CLASSES, recalls, strict=True))
    # Names that were predicted only are no classes, and numbers become text.
    assert m.per_class_accuracy([10, 9, 9], ["10", "9", "rejected"]) == {"10": 1, "9": 0.5}
    assert m.class_weights(["b", "a", "b", "b"]).tolist() == [1 / 3, 1, 1 / 3, 1 / 3]


# -------------------------------------------------------------------- intervals


@pytest.mark.parametrize(("correct", "n"), [(0, 1), (7, 7), (3, 7), (2754, 6180)])
def test_wilson_interval_is_that_of_scipy(correct, n):
    found = m.wilson_interval(correct, n)
    expected = binomtest(correct, n).proportion_ci(0.95, method="wilson")
    assert found == pytest.approx((correct / n, expected.low, expected.high), abs=1e-12)
    assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_wilson_interval_of_parts_solves_its_equation():
    z = 1.959963984540054
    p, *ends = found = m.wilson_interval(2.5, 12)
    for end in ends:
        assert (p - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / 12, rel=1e-12)
    assert ends[0] < p < ends[1]
    assert str(found) == ".208 [.067, .491]"


def test_the_interval_of_a_mean_over_classes(rng):
    """Equal classes count as their inputs; small ones widen it, so that it covers the mean."""
    found = m.mean_class_interval([0.2, 0.4, np.nan, 0.9], [50, 50, 0, 50])
    assert found == pytest.approx(m.wilson_interval(75, 150))
    assert m.mean_class_interval([1.0, 0.0], [1, 3])[1:] == m.wilson_interval(1.5, 3)[1:]
    # The mean of shares exceeds 1 by rounding.
    assert m.mean_class_interval([1 + 1e-16, 1 + 4e-16], [3, 3]).high == 1
    n = np.array([400, 100, 50, 25, 12, 12])
    truth = np.array([0.9, 0.5, 0.3, 0.8, 0.6, 0.4])
    shares = rng.binomial(n, truth, size=(1000, 6)) / n
    intervals = [m.mean_class_interval(share, n) for share in shares]
    assert 0.94 < np.mean([x.low <= truth.mean() <= x.high for x in intervals]) < 0.995


def test_an_interval_over_classes_is_of_resamples_of_classes(rng):
    shares = rng.random(12)
    found = m.class_interval(shares)
    means = rng.choice(shares, (20_000, 12)).mean(axis=1)
    assert found.estimate == pytest.approx(shares.mean())
    assert found[1:] == pytest.approx(np.quantile(means, [0.025, 0.975]), abs=0.2 * means.std())


# -------------------------------------------------------------------- calibration


def bins_by_loops(y_true, proba, classes, n_bins):
    bins = [[] for _ in range(n_bins)]
    for label, row in zip(y_true, proba.tolist(), strict=True):
        best = [c for c, p in zip(classes, row, strict=True) if p == max(row)]
        place = next(b for b in range(n_bins) if b / n_bins < max(row) <= (b + 1) / n_bins)
        bins[place].append((max(row), (label in best) / len(best)))
    return bins


@pytest.mark.parametrize("n_bins", [1, 15])
@pytest.mark.parametrize("ties", [False, True])
def test_reliability_is_what_loops_say(rng, n_bins, ties):
    """Of probabilities of which many are equal, to the last bit, and some 0, as well."""
    counts = rng.integers(0, 3, (60, 5)) + np.eye(5)[0] if ties else rng.random((60, 5))
    proba = counts / counts.sum(axis=1, keepdims=True)
    y_true = rng.choice(CLASSES, 60)
    bins = bins_by_loops(y_true, proba, CLASSES, n_bins)
    found = m.reliability(y_true, proba, CLASSES, n_bins)
    means = [np.mean(each, axis=0) if each else (np.nan, np.nan) for each in bins]
    assert found.count.tolist() == [len(each) for each in bins]
    np.testing.assert_allclose(found.confidence, [mean[0] for mean in means], rtol=1e-13)
    np.testing.assert_allclose(found.accuracy, [mean[1] for mean in means], rtol=1e-13)
    gaps = [len(each) * abs(np.subtract(*np.mean(each, axis=0))) for each in bins if each]
    assert found.expected_calibration_error == pytest.approx(sum(gaps) / 60, abs=1e-14)


@pytest.mark.parametrize("n_bins", [10, 100])
def test_a_confidence_on_an_edge_belongs_below_it(n_bins):
    edges = [round((b + 1) / n_bins, 2) for b in range(n_bins)]
    found = m.reliability(["cat"] * n_bins, [[edge, 0.0] for edge in edges], CAT_DOG, n_bins)
    assert found.count.tolist() == [1] * n_bins
    assert found.confidence.tolist() == edges
    assert found.edges.tolist() == [0, *edges]


def test_a_softmax_in_single_precision_may_round_above_one():
    found = m.reliability(["cat"], [[1.0000001, 0.0]], CAT_DOG)
    assert found.confidence[-1] == found.accuracy[-1] == 1
    assert len(found.count) == 15


@pytest.mark.parametrize(
    ("parameter", "value", "call"),
    [
        ("'dog'", np.nan, lambda: m.reliability(["cat"], [[0.0, np.nan]], CAT_DOG)),
        ("'cat'", 1.001, lambda: m.reliability(["cat"], [[1.001, 0.0]], CAT_DOG)),
        ("'dog'", -0.1, lambda: m.reliability(["cat"], [[0.5, -0.1]], CAT_DOG)),
        ("y_true", "dgo", lambda: m.reliability(["cat", "dgo"], np.zeros((2, 2)), CAT_DOG)),
        ("proba", (2, 2), lambda: m.reliability(["cat"], np.zeros((2, 2)), CAT_DOG)),
        ("n_bins", 0, lambda: m.reliability(["cat"], [[0.6, 0.4]], CAT_DOG, 0)),
        ("correct", 3, lambda: m.wilson_interval(3, 2)),
        ("n", 0, lambda: m.wilson_interval(0, 0)),
    ],
)
def test_bad_calls(parameter, value, call):
    with refuses(parameter) as caught:
        call()
    np.testing.assert_equal(caught.value.value, value)

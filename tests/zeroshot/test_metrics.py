"""The metrics, against scikit-learn and SciPy or against plain loops."""

import numpy as np
import pytest
import sklearn.metrics as sk
from scipy.stats import binomtest

from rankshot.zeroshot import metrics as m
from refusals import refuses

CLASSES = ["cat", "dog", "fox", "ship", "truck"]


def labelled(rng, n=60, classes=CLASSES):
    return rng.choice(classes, n)


def distinct(rng, n=60, L=5):
    """Probabilities without ties."""
    return rng.dirichlet(np.ones(L), n)


def tied(rng, n=60, L=5):
    """Probabilities of which many are equal, to the last bit, and some 0."""
    counts = rng.integers(0, 3, (n, L))
    counts[counts.sum(axis=1) == 0] = 1
    return counts / counts.sum(axis=1, keepdims=True)


def drawn(rng, proba):
    """Labels as the probabilities have it, so that they are now too high and now too low."""
    return np.array([rng.choice(CLASSES, p=row) for row in proba])


# -------------------------------------------------------------------- predictions


def test_accuracies_are_those_of_scikit_learn(rng):
    y_true, y_pred = labelled(rng), labelled(rng)
    y_pred[:25] = y_true[:25]
    recalls = sk.recall_score(y_true, y_pred, labels=CLASSES, average=None)
    assert m.per_class_accuracy(y_true, y_pred) == pytest.approx(
        dict(zip(CLASSES, recalls, strict=True))
    )


@pytest.mark.parametrize(("correct", "n"), [(0, 1), (3, 7), (2754, 6180)])
def test_wilson_interval_is_that_of_scipy(correct, n):
    found = m.wilson_interval(correct, n)
    expected = binomtest(correct, n).proportion_ci(0.95, method="wilson")
    assert found == pytest.approx((correct / n, expected.low, expected.high), abs=1e-12)
    assert 0 <= found.low <= found.estimate <= found.high <= 1


def test_wilson_interval_solves_its_equation_for_parts_too():
    z = 1.959963984540054
    p, *ends = m.wilson_interval(2.5, 12)
    for end in ends:
        assert (p - end) ** 2 == pytest.approx(z**2 * end * (1 - end) / 12, rel=1e-12)
    assert ends[0] < p < ends[1]


def test_the_interval_of_a_mean_over_equal_classes_is_that_of_all_inputs():
    found = m.mean_class_interval([0.2, 0.4, np.nan, 0.9], [50, 50, 0, 50])
    assert found == pytest.approx(m.wilson_interval(75, 150))
    assert m.mean_class_interval([1 / 3] * 3, [3, 3, 3]).high <= 1


def test_the_interval_of_a_mean_over_classes_covers_it(rng):
    """95 of 100 intervals, or somewhat more, cover the truth, however uneven the classes are."""
    n = np.array([400, 100, 50, 25, 12, 12])
    truth = np.array([0.9, 0.5, 0.3, 0.8, 0.6, 0.4])
    shares = rng.binomial(n, truth, size=(2000, 6)) / n
    found = [m.mean_class_interval(share, n) for share in shares]
    covered = np.mean([one.low <= truth.mean() <= one.high for one in found])
    assert 0.94 < covered < 0.995
    # The number of inputs alone would promise too much.
    promised = [m.wilson_interval(share.mean() * n.sum(), n.sum()) for share in shares]
    assert np.mean([one.low <= truth.mean() <= one.high for one in promised]) < 0.8


# -------------------------------------------------------------------- calibration


def reliability_by_loops(y_true, proba, classes, n_bins):
    bins = [[] for _ in range(n_bins)]
    for label, row in zip(y_true, proba, strict=True):
        best = [c for c, p in zip(classes, row, strict=True) if p == max(row)]
        place = next(b for b in range(n_bins) if b / n_bins < max(row) <= (b + 1) / n_bins)
        bins[place].append((max(row), (label in best) / len(best)))
    return bins


@pytest.mark.parametrize("n_bins", [1, 15])
@pytest.mark.parametrize("table", [distinct, tied])
def test_reliability_is_what_loops_say(rng, table, n_bins):
    proba = table(rng)
    y_true = drawn(rng, proba)
    bins = reliability_by_loops(y_true, proba.tolist(), CLASSES, n_bins)
    found = m.reliability(y_true, proba, CLASSES, n_bins)
    means = [np.mean(each, axis=0) if each else (np.nan, np.nan) for each in bins]
    assert found.count.tolist() == [len(each) for each in bins]
    np.testing.assert_allclose(found.confidence, [mean[0] for mean in means], rtol=1e-13)
    np.testing.assert_allclose(found.accuracy, [mean[1] for mean in means], rtol=1e-13)
    gaps = [len(each) * abs(np.subtract(*np.mean(each, axis=0))) for each in bins if each]
    error = sum(gaps) / len(y_true)
    assert found.expected_calibration_error == pytest.approx(error, abs=1e-14)


@pytest.mark.parametrize("n_bins", [10, 100])
def test_a_confidence_on_an_edge_belongs_below_it(n_bins):
    edges = [round((b + 1) / n_bins, 2) for b in range(n_bins)]
    table = [[edge, 0.0] for edge in edges]
    found = m.reliability(["cat"] * n_bins, table, ["cat", "dog"], n_bins)
    assert found.count.tolist() == [1] * n_bins
    assert found.confidence.tolist() == edges
    assert found.edges.tolist() == [0, *edges]


def test_a_softmax_in_single_precision_may_round_above_one():
    found = m.reliability(["cat"], [[1.0000001, 0.0]], ["cat", "dog"])
    assert found.confidence[-1] == found.accuracy[-1] == 1


# -------------------------------------------------------------------- what is refused

ROW = [[0.6, 0.4]]
ZEROS = [[0.0, 0.0]]  # fit to be probabilities and to be their logarithms
CAT_DOG = ["cat", "dog"]
BAD = [
    ("proba", m.reliability, (["cat"], [[0.0, np.nan]], CAT_DOG)),
    ("proba", m.reliability, (["cat"], [[1.001, 0.0]], CAT_DOG)),
    ("y_true", m.reliability, (["cat", "dgo"], ZEROS * 2, CAT_DOG)),
    ("proba", m.reliability, (["cat"], ZEROS * 2, CAT_DOG)),
    ("n_bins", m.reliability, (["cat"], ROW, CAT_DOG, 0)),
    ("y_pred", m.per_class_accuracy, (["cat", "dog"], ["cat"])),
    ("y_pred", m.per_class_accuracy, (["cat", "dog"], ["cat", float("nan")])),
    ("correct", m.wilson_interval, (3, 2)),
]


@pytest.mark.parametrize(("parameter", "figure", "args"), BAD)
def test_bad_calls(parameter, figure, args):
    with refuses(parameter):
        figure(*args)


def test_class_weights_make_classes_count_alike():
    np.testing.assert_allclose(m.class_weights(["b", "a", "b", "b"]), [1 / 3, 1, 1 / 3, 1 / 3])


def test_an_interval_over_classes_is_of_resamples_of_classes(rng):
    """Against draws of classes, each with all its inputs."""
    names = [f"class {i}" for i in range(12)]
    labels = rng.permutation(np.repeat(names, rng.integers(3, 40, size=12)))
    chance = dict(zip(names, rng.random(12), strict=True))
    right = rng.random(len(labels)) < [chance[name] for name in labels]
    shares = np.array([right[labels == name].mean() for name in names])
    found = m.class_interval(shares)
    assert found.estimate == pytest.approx(shares.mean())
    means = rng.choice(shares, (20_000, 12)).mean(axis=1)
    expected = np.quantile(means, [0.025, 0.975])
    assert found[1:] == pytest.approx(expected, abs=0.25 * means.std())

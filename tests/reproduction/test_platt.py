"""Platt scaling, against a general optimiser and scikit-learn's."""

import numpy as np
import pytest
from reproduction.platt import fit_platt
from scipy.optimize import minimize, root
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_blobs
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC

from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.scores import Scores

ITEMS = ("tiger", "bus", "fox", "leopard")


def platt_by_scipy(f, positive):
    """One column: a general optimiser, polished until the gradient is zero."""
    f, positive = np.asarray(f, float), np.asarray(positive)
    n = positive.sum()
    targets = np.where(positive, (n + 1) / (n + 2), 1 / ((~positive).sum() + 2))

    def loss(ab):
        z = ab[0] * f + ab[1]
        return np.sum(np.logaddexp(0, z) - targets * z)

    def gradient(ab):
        error = expit(ab[0] * f + ab[1]) - targets
        return np.array([error @ f, error.sum()])

    rough = minimize(loss, [0.0, 0.0], jac=gradient, method="BFGS").x
    polished = root(gradient, rough, tol=1e-14).x
    assert np.abs(gradient(polished)).max() < 1e-11 * (1 + np.abs(f).max() * f.size)
    return polished


def held_out(rng, kind, n=60, items=ITEMS, noise=1.0):
    """Noisy scores that know a little; every class occurs, some more often than others."""
    C = len(items)
    classes = np.concatenate([np.arange(C), rng.integers(0, C, n - C) // rng.integers(1, 3, n - C)])
    of = (classes[:, None] == np.arange(C)).astype(float)
    if kind == "one-vs-one":
        first, second = np.triu_indices(C, 1)
        of = of[:, first] - of[:, second]
    values = of + noise * rng.normal(size=of.shape) + rng.normal(size=of.shape[1])
    return Scores(values, items, kind), np.array(items)[classes]


def test_one_vs_rest_columns_are_fitted_against_all_others(rng):
    scores, y = held_out(rng, "one-vs-rest")
    fitted = fit_platt(scores, y)
    for column, item in enumerate(ITEMS):
        expected = platt_by_scipy(scores.values[:, column], y == item)
        assert [part[column] for part in fitted] == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_one_vs_one_columns_are_fitted_to_the_inputs_of_their_pair(rng):
    scores, y = held_out(rng, "one-vs-one")
    fitted = fit_platt(scores, y)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for column, (i, j) in enumerate(pairs):
        inside = (y == ITEMS[i]) | (y == ITEMS[j])
        expected = platt_by_scipy(scores.values[inside, column], y[inside] == ITEMS[i])
        assert [part[column] for part in fitted] == pytest.approx(expected, rel=1e-8, abs=1e-8)


def by_scikit_learn(n_classes):
    """A LinearSVC, and what scikit-learn's own sigmoid calibration makes of held-out inputs."""
    X, y = make_blobs(300, centers=n_classes, cluster_std=4.0, random_state=3)
    model = LinearSVC(C=0.1, random_state=0).fit(X[:100], y[:100])
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid", ensemble=False)
    calibrated.fit(X[100:], y[100:])
    scores = scores_of(model, X[100:])
    return scores, y[100:].astype(str), calibrated


def test_scikit_learn_finds_the_same_for_one_vs_rest():
    scores, y, calibrated = by_scikit_learn(4)
    fitted = fit_platt(scores, y)
    theirs = calibrated.calibrated_classifiers_[0].calibrators
    # Theirs is 1 / (1 + exp(a f + b)), and another optimiser.
    assert fitted[0] == pytest.approx([-each.a_ for each in theirs], rel=1e-5)
    assert fitted[1] == pytest.approx([-each.b_ for each in theirs], rel=1e-5, abs=1e-5)


def test_separated_sides_get_the_smoothed_targets():
    """Two values of f, one per side: the sigmoid can meet both targets."""
    y = np.array(["bus"] * 3 + ["fox"] * 5)
    f = np.where(y == "bus", 2.0, -1.0)
    slope, intercept = fit_platt(Scores(f[:, None], ["bus", "fox"], "one-vs-one"), y)
    assert expit(slope * 2 + intercept) == pytest.approx(4 / 5, abs=1e-12)
    assert expit(-slope + intercept) == pytest.approx(1 / 7, abs=1e-12)


@pytest.mark.parametrize("distance", [3, 100, 1e5])
def test_one_input_far_from_the_others(rng, distance):
    """Where whole Newton steps run away."""
    y = np.array(["bus"] + ["fox"] * 49)
    f = rng.normal(size=50) + distance * (y == "bus")
    fitted = fit_platt(Scores(f[:, None], ["bus", "fox"], "one-vs-one"), y)
    slope, intercept = platt_by_scipy(f / distance, y == "bus")
    assert fitted[0] == pytest.approx([slope / distance], rel=1e-8)
    assert fitted[1] == pytest.approx([intercept], rel=1e-8)

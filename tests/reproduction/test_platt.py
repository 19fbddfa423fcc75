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


def test_one_vs_one_columns_are_fitted_to_the_inputs_of_their_pair(rng):
    """Noisy scores that know a little; every class occurs, some more often than others."""
    classes = np.concatenate([np.arange(4), rng.integers(0, 4, 56) // rng.integers(1, 3, 56)])
    of = (classes[:, None] == np.arange(4)).astype(float)
    first, second = np.triu_indices(4, 1)
    values = of[:, first] - of[:, second] + rng.normal(size=(60, 6)) + rng.normal(size=6)
    scores, y = Scores(values, ITEMS, "one-vs-one"), np.array(ITEMS)[classes]
    fitted = fit_platt(scores, y)
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    for column, (i, j) in enumerate(pairs):
        inside = (y == ITEMS[i]) | (y == ITEMS[j])
        expected = platt_by_scipy(scores.columns[inside, column], y[inside] == ITEMS[i])
        assert [part[column] for part in fitted] == pytest.approx(expected, rel=1e-8, abs=1e-8)


def test_scikit_learn_finds_the_same_for_one_vs_rest():
    """Its own sigmoid calibration of a LinearSVC, on held-out inputs."""
    X, y = make_blobs(300, centers=4, cluster_std=4.0, random_state=3)
    model = LinearSVC(C=0.1, random_state=0).fit(X[:100], y[:100])
    calibrated = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid", ensemble=False)
    calibrated.fit(X[100:], y[100:])
    fitted = fit_platt(scores_of(model, X[100:]), y[100:].astype(str))
    theirs = calibrated.calibrated_classifiers_[0].calibrators
    # Theirs is 1 / (1 + exp(a f + b)), and another optimiser.
    assert fitted[0] == pytest.approx([-each.a_ for each in theirs], rel=1e-5)
    assert fitted[1] == pytest.approx([-each.b_ for each in theirs], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("distance", [3, 1e5])
def test_one_input_far_from_the_others(rng, distance):
    """Where whole Newton steps run away."""
    y = np.array(["bus"] + ["fox"] * 49)
    f = rng.normal(size=50) + distance * (y == "bus")
    fitted = fit_platt(Scores(f[:, None], ["bus", "fox"], "one-vs-one"), y)
    slope, intercept = platt_by_scipy(f / distance, y == "bus")
    assert fitted[0] == pytest.approx([slope / distance], rel=1e-8)
    assert fitted[1] == pytest.approx([intercept], rel=1e-8)

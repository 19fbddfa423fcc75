"""ESZSL, SAE and vector regression, each against its equations written out anew."""

import numpy as np
import pytest
from reproduction.peers.linear import ESZSL, SAE, VectorRegression
from sklearn.linear_model import Ridge

from rankshot.sources.vectors import ClassVectors

SEEN = ["ant", "bee", "cat", "dog"]
TARGETS = ["eel", "fox", "gnu"]


class Data:
    """Few inputs of unequal numbers a class, and what the equations call X, Y and S."""

    def __init__(self, rng, n=30, d=5, a=3):
        self.vectors = ClassVectors([*SEEN, *TARGETS], rng.normal(size=(7, a)), "test")
        self.targets = self.vectors.select(TARGETS)
        codes = np.r_[np.arange(4), rng.choice(4, n - 4, p=[0.1, 0.2, 0.3, 0.4])]
        self.X = rng.normal(size=(n, d)) + rng.normal(size=(4, d))[codes]
        self.y = np.array(SEEN)[codes]
        # A loop a class: no shared helper.
        self.unit = {
            name: value / np.sqrt((value**2).sum())
            for name, value in zip(self.vectors.names, self.vectors.values, strict=True)
        }
        self.S = np.array([self.unit[name] for name in SEEN])
        self.Y = np.array([[1.0 if name == label else -1.0 for name in SEEN] for label in self.y])
        self.vector_of_input = np.array([self.unit[label] for label in self.y])
        self.X_new = rng.normal(size=(6, d))


@pytest.fixture
def data(rng):
    return Data(rng)


def cosine(u, v):
    return u @ v / np.sqrt(u @ u) / np.sqrt(v @ v)


def central_differences(function, at, step=1e-5):
    gradient = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        there = np.zeros_like(at)
        there[place] = step
        gradient[place] = (function(at + there) - function(at - there)) / (2 * step)
    return gradient


def assert_minimum(function, at, rng):
    """No gradient, and nothing nearby or far away is better: the objectives are convex."""
    scale = np.abs(central_differences(function, at + 1.0)).max()
    assert np.abs(central_differences(function, at)).max() < 1e-7 * scale
    best = function(at)
    for size in [1e-3, 1e-2, 0.1, 1.0, 10.0]:
        for _ in range(20):
            assert function(at + size * rng.normal(size=at.shape)) > best


@pytest.mark.parametrize(("gamma", "lam"), [(0.1, 5.0), (20.0, 0.02)])
def test_eszsl_minimises_its_objective(data, rng, gamma, lam):
    X, S, Y = data.X, data.S, data.Y
    peer = ESZSL(feature_penalty=gamma, vector_penalty=lam).fit(X, data.y, data.vectors)

    def objective(V):
        return (
            ((X @ V @ S.T - Y) ** 2).sum()
            + gamma * ((V @ S.T) ** 2).sum()
            + lam * ((X @ V) ** 2).sum()
            + gamma * lam * (V**2).sum()
        )

    assert_minimum(objective, peer.weights_, rng)
    inverse = np.linalg.inv
    V = inverse(X.T @ X + gamma * np.eye(5)) @ X.T @ Y @ S @ inverse(S.T @ S + lam * np.eye(3))
    np.testing.assert_allclose(peer.weights_, V, rtol=1e-10, atol=1e-12)
    expected = [[x @ V @ data.unit[name] for name in TARGETS] for x in data.X_new]
    np.testing.assert_allclose(peer.decision_function(data.X_new, data.targets), expected)


@pytest.mark.parametrize("weight", [0.05, 30.0])
def test_sae_minimises_its_objective(data, rng, weight):
    X, S = data.X, data.vector_of_input
    peer = SAE(encoder_weight=weight).fit(X, data.y, data.vectors)

    def objective(W):
        return ((X - S @ W) ** 2).sum() + weight * ((X @ W.T - S) ** 2).sum()

    assert_minimum(objective, peer.weights_, rng)


@pytest.mark.parametrize("penalty", [0.01, 300.0])
def test_vector_regression_is_ridge_regression(data, penalty):
    # Features far from zero, so that the intercept matters.
    X = data.X + 100.0
    peer = VectorRegression(penalty=penalty).fit(X, data.y, data.vectors)
    ridge = Ridge(alpha=penalty, solver="svd").fit(X, data.vector_of_input)
    np.testing.assert_allclose(peer.weights_, ridge.coef_.T, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(peer.intercept_, ridge.intercept_, rtol=1e-8, atol=1e-8)
    expected = [[cosine(p, data.unit[z]) for z in TARGETS] for p in ridge.predict(X[:6])]
    np.testing.assert_allclose(peer.decision_function(X[:6], data.targets), expected, rtol=1e-7)

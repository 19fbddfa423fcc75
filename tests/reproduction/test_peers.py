"""The peers, each against its equations written out anew, or against scikit-learn."""

import numpy as np
import pytest
from reproduction.class_vectors import ClassVectors, load_class_vectors
from reproduction.peers.attributes import DAP, IAP, fit_logistic_regressions
from reproduction.peers.base import MeanImputation
from reproduction.peers.linear import ESZSL, SAE, VectorRegression
from sklearn.linear_model import LogisticRegression, Ridge

from rankshot.datasets import load_similarities

SEEN = ["ant", "bee", "cat", "dog"]
TARGETS = ["eel", "fox", "gnu"]
ATTRIBUTES = {
    "ant": [1, 0, 0, 1, 1],
    "bee": [1, 1, 0, 0, 1],
    "cat": [0, 1, 1, 0, 1],
    "dog": [0, 0, 1, 0, 1],
    "eel": [1, 0, 1, 1, 1],
    "fox": [0, 1, 0, 1, 0],
    "gnu": [0, 0, 1, 0, 1],
}
"""The last attribute is the same for all seen classes, and not for all targets."""


def class_vectors(names, table=ATTRIBUTES):
    return ClassVectors(names, [table[name] for name in names], "test")


@pytest.fixture
def inputs(rng):
    codes = np.r_[np.arange(4), rng.integers(4, size=56)]
    X = rng.normal(size=(60, 3)) + rng.normal(size=(4, 3))[codes]
    return X, np.array(SEEN)[codes], rng.normal(size=(8, 3))


# ---- Logistic regressions


@pytest.mark.parametrize("penalty", [0.01, 50.0])
def test_logistic_regressions_are_those_of_sklearn(rng, penalty):
    X = rng.normal(size=(200, 4)) * [1, 10, 0.1, 1] + [0, 5, 0, -2]
    log_odds = X @ (rng.normal(size=(4, 6)) * [[1], [0.2], [5], [1]]) + [0, 1, -1, 2, -3, 0]
    answers = (rng.random((200, 6)) < 1 / (1 + np.exp(-log_odds))).astype(float)
    found = fit_logistic_regressions(X, answers, penalty).log_odds(X)
    for column in range(6):
        model = LogisticRegression(
            C=1 / penalty, solver="newton-cholesky", tol=1e-12, max_iter=1000
        )
        expected = model.fit(X, answers[:, column]).decision_function(X)
        np.testing.assert_allclose(found[:, column], expected, rtol=1e-5, atol=1e-5)


# ---- DAP and IAP


def assert_product(decided, predicted, present):
    """Lampert's product over attributes, of the probabilities that they are ``present``."""
    expected = np.ones((len(present), len(TARGETS)))
    for m in range(4):  # The fifth is the same for all seen classes.
        prior = sum(ATTRIBUTES[name][m] for name in SEEN) / len(SEEN)
        for column, z in enumerate(TARGETS):
            p = present[:, m]
            expected[:, column] *= p / prior if ATTRIBUTES[z][m] else (1 - p) / (1 - prior)
    np.testing.assert_allclose(np.exp(decided), expected, rtol=1e-5)
    assert predicted.tolist() == [TARGETS[int(np.argmax(row))] for row in expected]


def test_dap_is_the_product_over_attributes(inputs):
    X, y, X_new = inputs
    vectors = class_vectors([*SEEN, *TARGETS])
    peer = DAP(penalty=0.5).fit(X, y, vectors)
    new = X_new, vectors.select(TARGETS)
    model = LogisticRegression(C=2, solver="newton-cholesky", tol=1e-12)
    answers = [[ATTRIBUTES[name][m] for name in y] for m in range(4)]
    present = [model.fit(X, labels).predict_proba(X_new)[:, 1] for labels in answers]
    assert_product(peer.decision_function(*new), peer.predict(*new), np.transpose(present))


def test_iap_is_sums_over_classes_and_a_product_over_attributes(rng):
    P = rng.dirichlet(np.ones(4), size=9)
    peer = IAP().fit(class_vectors(SEEN))
    new = P, class_vectors(TARGETS)
    present = P @ [ATTRIBUTES[name][:4] for name in SEEN]
    assert_product(peer.decision_function(*new), peer.predict(*new), present)


def test_a_missing_number_is_the_mean_over_training_classes_that_have_it():
    nan = np.nan
    seen = ClassVectors(["ant", "bee", "cat"], [[1, nan, 5], [3, 8, nan], [nan, 2, nan]], "test")
    imputation = MeanImputation.from_training(seen)
    np.testing.assert_array_equal(
        imputation.complete(seen).values, [[1, 5, 5], [3, 8, 5], [2, 2, 5]]
    )
    target = ClassVectors(["hen", "ibis"], [[nan, nan, 7], [100, 100, nan]], "test")
    np.testing.assert_array_equal(imputation.complete(target).values, [[2, 5, 7], [100, 100, 5]])


# ---- Linear maps


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


def assert_minimum(function, at, rng):
    """Nothing nearby or far away is better: the objectives are convex."""
    best = function(at)
    for size in [1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]:
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


@pytest.mark.parametrize(
    ("dataset", "unknown"), [("cifar", []), ("animals", []), ("intents", ["rollover_401k"])]
)
def test_class_vectors_give_the_table(dataset, unknown):
    vectors, table = (
        load_class_vectors(dataset),
        load_similarities(dataset)["GloVe 100d"],
    )
    assert (vectors.names, vectors.source) == (table.targets, table.source)
    anew = vectors.cosines(table.targets, table.items)
    np.testing.assert_allclose(anew.values, table.values, rtol=0, atol=1e-6)
    assert np.array(vectors.names)[np.isnan(vectors.values).any(axis=1)].tolist() == unknown


def test_the_vectors_are_those_that_glove_published():
    """The first numbers of the line of "cat" in glove.6B.100d.txt, up to their scale."""
    published = np.array([0.23088, 0.28283, 0.6318, -0.59411, -0.58599, 0.63255])
    cat = load_class_vectors().select(["cat"]).values[0, :6]
    np.testing.assert_allclose(cat / cat[0], published / published[0], rtol=1e-5)

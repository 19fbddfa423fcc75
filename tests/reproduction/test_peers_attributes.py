"""DAP and IAP, by explicit products and sums; many logistic regressions against scikit-learn's."""

import math

import numpy as np
import pytest
from reproduction.peers.attributes import DAP, IAP, fit_logistic_regressions
from reproduction.peers.base import MeanImputation
from sklearn.linear_model import LogisticRegression

from rankshot.sources.vectors import ClassVectors
from rankshot.zeroshot.scores import Scores

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


# ---- DAP


def dap_by_loops(X, y, X_new, table, penalty):
    """Lampert's product, an attribute and a target at a time."""
    products = np.ones((len(X_new), len(TARGETS)))
    for m in range(4):  # The fifth is the same for all seen classes.
        labels = [table[name][m] for name in y]
        model = LogisticRegression(C=1 / penalty, solver="newton-cholesky", tol=1e-12)
        p = model.fit(X, labels).predict_proba(X_new)[:, 1]
        prior = sum(table[name][m] for name in SEEN) / len(SEEN)
        for column, z in enumerate(TARGETS):
            if table[z][m]:
                products[:, column] *= p / prior
            else:
                products[:, column] *= (1 - p) / (1 - prior)
    return products


def test_dap_is_the_product_over_attributes(inputs):
    X, y, X_new = inputs
    vectors = class_vectors([*SEEN, *TARGETS])
    peer = DAP(penalty=0.5).fit(X, y, vectors)
    expected = dap_by_loops(X, y, X_new, ATTRIBUTES, 0.5)
    found = peer.decision_function(X_new, vectors.select(TARGETS))
    np.testing.assert_allclose(np.exp(found), expected, rtol=1e-5)
    best = [TARGETS[int(np.argmax(row))] for row in expected]
    assert peer.predict(X_new, vectors.select(TARGETS)).tolist() == best


# ---- IAP


def iap_by_loops(P, table):
    products = np.ones((len(P), len(TARGETS)))
    for row, proba in enumerate(P):
        for m in range(4):
            present = sum(p * table[name][m] for p, name in zip(proba, SEEN, strict=True))
            prior = sum(table[name][m] for name in SEEN) / len(SEEN)
            for column, z in enumerate(TARGETS):
                ratio = present / prior if table[z][m] else (1 - present) / (1 - prior)
                products[row, column] *= ratio
    return products


def test_iap_is_sums_over_classes_and_a_product_over_attributes(rng):
    P = rng.dirichlet(np.ones(4), size=9)
    peer = IAP().fit(class_vectors(SEEN))
    targets = class_vectors(TARGETS)
    expected = iap_by_loops(P, ATTRIBUTES)
    np.testing.assert_allclose(np.exp(peer.decision_function(P, targets)), expected, rtol=1e-10)
    best = [TARGETS[int(np.argmax(row))] for row in expected]
    assert peer.predict(P, targets).tolist() == best


@pytest.mark.parametrize("gap", [740.0, 1000.0])
def test_iap_stays_right_for_a_classifier_that_is_very_sure(gap):
    """All but ant have e^-gap and less: few digits of e^-740 fit in a double, none of e^-1000."""
    scores = Scores([[0.0, -gap, -gap - 100, -gap - 200]], SEEN)
    found = IAP().fit(class_vectors(SEEN)).decision_function(scores, class_vectors(TARGETS))
    # Only the largest of each group counts: the others are e^-100 of it.
    present, absent = [0, -gap, -gap - 100, 0], [-gap - 100, 0, 0, -gap]
    prior = [0.5, 0.5, 0.5, 0.25]
    for column, z in enumerate(TARGETS):
        expected = sum(
            present[m] - math.log(prior[m])
            if ATTRIBUTES[z][m]
            else absent[m] - math.log(1 - prior[m])
            for m in range(4)
        )
        assert found[0, column] == pytest.approx(expected, rel=1e-12)


def test_a_missing_number_is_the_mean_over_training_classes_that_have_it():
    nan = np.nan
    seen = ClassVectors(["ant", "bee", "cat"], [[1, nan, 5], [3, 8, nan], [nan, 2, nan]], "test")
    imputation = MeanImputation.from_training(seen)
    np.testing.assert_array_equal(
        imputation.complete(seen).values, [[1, 5, 5], [3, 8, 5], [2, 2, 5]]
    )
    target = ClassVectors(["hen", "ibis"], [[nan, nan, 7], [100, 100, nan]], "test")
    np.testing.assert_array_equal(imputation.complete(target).values, [[2, 5, 7], [100, 100, 5]])

"""DAP and IAP, by explicit products and sums; many logistic regressions against scikit-learn's."""

import math

import numpy as np
import pytest
from reproduction.peers import attributes as logistic_regressions
from reproduction.peers.attributes import DAP, IAP, fit_logistic_regressions
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from rankshot.core.errors import RankshotError
from rankshot.sources.class_vectors import ClassVectors
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


@pytest.mark.parametrize("penalty", [0.01, 1.0, 50.0])
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


def test_a_logistic_regression_of_separable_answers_minimises_its_objective():
    """The penalty alone keeps the weights finite, and full Newton steps run away."""
    X = np.array([[-100, 10], [-10, 30], [-10, 0], [2, 30], [0, -100], [1000, 1000]], float)
    answers = np.array([[1.0], [1.0], [0.0], [1.0], [0.0], [1.0]])
    fitted = fit_logistic_regressions(X, answers, 1e-4)

    def objective(w):
        f = X @ w[:-1] + w[-1]
        return np.logaddexp(0, f).sum() - answers[:, 0] @ f + 1e-4 / 2 * (w[:-1] ** 2).sum()

    here = objective(np.append(fitted.weights, fitted.intercepts))
    best = minimize(objective, np.zeros(3), method="Powell", options={"xtol": 1e-10, "ftol": 1e-14})
    assert here <= best.fun + 1e-9


def test_a_regression_does_not_depend_on_the_others(rng):
    X = rng.normal(size=(80, 3))
    answers = (X @ rng.normal(size=(3, 5)) + rng.normal(size=(80, 5)) > 0).astype(float)
    together = fit_logistic_regressions(X, answers, 0.1).log_odds(X)
    alone = fit_logistic_regressions(X, answers[:, [3]], 0.1).log_odds(X)
    np.testing.assert_allclose(together[:, [3]], alone, atol=1e-5)


def test_regressions_that_are_not_done_are_refused(rng, monkeypatch):
    monkeypatch.setattr(logistic_regressions, "MAX_STEPS", 1)
    answers = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    with pytest.raises(RankshotError, match="2 of 2 logistic regressions did not converge in 1"):
        fit_logistic_regressions(rng.normal(size=(4, 2)), answers, 1e-3)


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


def test_numbers_are_attributes_above_the_mean_of_all_entries(inputs, rng):
    """The mean of all entries of the training classes, not of a column, and not of targets."""
    X, y, X_new = inputs
    numbers = {
        name: [10 * value + rng.uniform(0, 4) for value in row] for name, row in ATTRIBUTES.items()
    }
    numbers["fox"] = [value + 1e6 * (value > 5) for value in numbers["fox"]]
    mean = np.mean([numbers[name] for name in SEEN])
    assert 4 < mean < 10
    continuous, binary = class_vectors([*SEEN, *TARGETS], numbers), class_vectors([*SEEN, *TARGETS])
    peer, other = DAP().fit(X, y, continuous), DAP().fit(X, y, binary)
    assert peer.attributes_.threshold == pytest.approx(mean, rel=1e-12)
    np.testing.assert_array_equal(
        peer.decision_function(X_new, continuous.select(TARGETS)),
        other.decision_function(X_new, binary.select(TARGETS)),
    )


def test_an_attribute_that_all_training_classes_share_says_nothing(inputs):
    X, y, X_new = inputs
    without = {name: row[:4] for name, row in ATTRIBUTES.items()}
    full, short = class_vectors([*SEEN, *TARGETS]), class_vectors([*SEEN, *TARGETS], without)
    np.testing.assert_array_equal(
        DAP().fit(X, y, full).decision_function(X_new, full.select(TARGETS)),
        DAP().fit(X, y, short).decision_function(X_new, short.select(TARGETS)),
    )
    np.testing.assert_array_equal(DAP().fit(X, y, full).attributes_.prior, [0.5, 0.5, 0.5, 0.25])


def test_attributes_that_tell_no_classes_apart_are_refused(inputs):
    X, y, _ = inputs
    alike = ClassVectors(SEEN, np.tile([1.0, 0.0], (4, 1)), "test")
    with pytest.raises(RankshotError, match="no attribute differs between the 4 training classes"):
        DAP().fit(X, y, alike)


def test_a_penalty_is_positive(inputs):
    X, y, _ = inputs
    with pytest.raises(RankshotError, match="penalty must be positive and finite, not 0"):
        DAP(penalty=0).fit(X, y, class_vectors(SEEN))


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


def test_iap_takes_scores_with_their_classes_in_any_order(rng):
    logits = rng.normal(size=(5, 4))
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    turned = Scores(logits[:, ::-1], SEEN[::-1])
    found = IAP().fit(class_vectors(SEEN)).decision_function(turned, class_vectors(TARGETS))
    np.testing.assert_allclose(np.exp(found), iap_by_loops(P, ATTRIBUTES), rtol=1e-10)


def test_iap_divides_one_vs_rest_probabilities_by_their_sum(rng):
    odds = rng.normal(size=(5, 4))
    sigmoid = 1 / (1 + np.exp(-odds))
    P = sigmoid / sigmoid.sum(axis=1, keepdims=True)
    scores = Scores(odds, SEEN, kind="one-vs-rest")
    found = IAP().fit(class_vectors(SEEN)).decision_function(scores, class_vectors(TARGETS))
    np.testing.assert_allclose(np.exp(found), iap_by_loops(P, ATTRIBUTES), rtol=1e-10)


@pytest.mark.parametrize("gap", [500.0, 740.0, 1000.0])
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


def test_iap_names_a_class_that_has_no_attributes(rng):
    scores = Scores(rng.normal(size=(2, 5)), [*SEEN, "doe"])
    with pytest.raises(RankshotError, match=r"'doe' \(did you mean 'dog'\?\)"):
        IAP().fit(class_vectors(SEEN)).predict(scores, class_vectors(TARGETS))


def test_iap_refuses_what_is_no_probability():
    peer, targets = IAP().fit(class_vectors(SEEN)), class_vectors(TARGETS)
    with pytest.raises(RankshotError, match="row 1: multiclass probabilities must add up to one"):
        peer.predict([[0.25] * 4, [0.5] * 4], targets)
    with pytest.raises(RankshotError, match="4 classes need a table of 4 columns"):
        peer.predict([[0.5, 0.5]], targets)


def test_dap_and_iap_take_threshold_and_priors_alike(inputs):
    X, y, _ = inputs
    vectors = class_vectors([*SEEN, *TARGETS])
    dap, iap = DAP().fit(X, y, vectors), IAP().fit(vectors.select(SEEN))
    assert dap.attributes_.threshold == iap.attributes_.threshold
    np.testing.assert_array_equal(dap.attributes_.prior, iap.attributes_.prior)

"""The one Newton solver, on problems whose maximum is known."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from rankshot.core.newton import Point, maximize


@pytest.fixture
def logistic(rng):
    X, won = rng.normal(size=(60, 4)), rng.random(60) < 0.5

    def evaluate(b):
        theta = X @ b
        value = float(np.sum(won * theta - np.logaddexp(0, theta)))
        return Point(value, X.T @ (won - expit(theta)))

    return evaluate, lambda b: X.T * (expit(X @ b) * expit(-X @ b)) @ X


@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_a_penalised_regression_is_that_of_a_plain_search(logistic, ridge):
    evaluate, curvature = logistic

    def loss(b):
        return ridge / 2 * b @ b - evaluate(b).value

    found = maximize(evaluate, curvature, np.zeros(4), ridge=ridge)
    plain = minimize(loss, found.parameters + 0.01, method="Nelder-Mead", options={"xatol": 1e-9})
    assert found.converged
    assert found.value == pytest.approx(-plain.fun, abs=1e-8)
    assert found.parameters == pytest.approx(plain.x, abs=1e-4)


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_direction_that_the_likelihood_does_not_know(ridge):
    """Only differences are known: without a penalty, the mean stays where it was."""
    D = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1], [1, -1, 0]], float)
    won = np.array([1, 1, 1, 0])

    def evaluate(b):
        value = float(np.sum(won * (D @ b) - np.logaddexp(0, D @ b)))
        return Point(value, D.T @ (won - expit(D @ b)))

    def curvature(b):
        return D.T * (expit(D @ b) * expit(-D @ b)) @ D

    start = np.array([1.0, 2.0, 3.0]) * (ridge == 0)
    found = maximize(evaluate, curvature, start, ridge=ridge, invariant=np.ones(3))
    assert found.converged
    gradient = evaluate(found.parameters).gradient - ridge * found.parameters
    assert gradient == pytest.approx(0, abs=1e-6)
    assert found.parameters.mean() == pytest.approx(start.mean())


def test_steps_stay_inside_the_domain_and_where_the_curvature_is_wrong():
    """log x - x⁴ / 4 + x², which is not concave everywhere, has its maximum at 1 / x = x³ - 2 x."""

    def evaluate(x):
        if x[0] <= 0:
            return Point(-np.inf, np.zeros(1))
        return Point(float(np.log(x[0]) - x[0] ** 4 / 4 + x[0] ** 2), 1 / x - x**3 + 2 * x)

    root = max(np.roots([1, 0, -2, 0, -1]).real)
    for start in (0.01, 0.9, 5.0):
        found = maximize(evaluate, lambda x: np.diag(1 / x**2 + 3 * x**2 - 2), np.array([start]))
        assert found.parameters == pytest.approx([root], abs=1e-6)


def test_too_few_iterations_and_values_that_are_no_numbers_do_not_converge(logistic):
    evaluate, curvature = logistic
    few = maximize(evaluate, curvature, np.zeros(4), max_iter=1, tol=1e-30)
    assert (few.n_iter, few.converged) == (1, False)
    bad = maximize(
        lambda x: Point(0.0, np.full(1, np.nan)), lambda x: np.full((1, 1), np.nan), np.zeros(1)
    )
    assert not bad.converged

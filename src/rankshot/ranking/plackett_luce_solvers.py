"""Three ways to the same maximum of the penalised Plackett-Luce likelihood.

All maximise ``value(θ) - regularization/2 Σ θ_i²`` over log-worths θ, and stop when they
estimate that less than ``tol`` is left to gain.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import wrightomega

from rankshot.core.progress import ProgressLine
from rankshot.ranking.plackett_luce_likelihood import Likelihood

Floats = NDArray[np.float64]


class Solver(Protocol):
    """A function from a likelihood to log-worths, iterations, and whether it converged."""

    def __call__(
        self,
        likelihood: Likelihood,
        regularization: float,
        tol: float,
        max_iter: int,
        line: ProgressLine,
    ) -> tuple[Floats, int, bool]:
        """Return log-worths, the number of iterations, and whether they converged."""


def solve_newton(
    likelihood: Likelihood, regularization: float, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """Newton's method with step halving, after one step of `solve_mm` from equal worths."""
    theta = np.zeros(likelihood.n_items)
    _, expected = likelihood.value_and_expected(theta)
    theta = mm_step(theta, likelihood.wins, expected, regularization)
    value, expected = _evaluate_with_penalty(likelihood, theta, regularization)
    gain, fresh_enough = np.inf, 0.0
    for iteration in range(1, max_iter + 1):
        gradient = likelihood.wins - expected - regularization * theta
        # The curvature is computed again once the gains fall less than a hundredfold per step.
        if gain > fresh_enough:
            factor = _curvature(likelihood.information(theta), regularization)
            gain = np.inf
        fresh_enough = gain / 100
        step = cho_solve(factor, gradient)
        gain = float(gradient @ step) / 2
        line.update(f"iteration {iteration}, log-likelihood {value:.6f}, to gain {gain:.1e}")
        theta, value, expected = _climb(likelihood, regularization, theta, value, step)
        if gain <= tol:
            return theta, iteration, True
    return theta, max_iter, False


def _curvature(information: Floats, regularization: float) -> tuple[Floats, bool]:
    """Factor the penalised information; make it positive definite where it is not.

    With ties that K cuts the log-likelihood need not be concave. The steps are then shorter.
    """
    C = len(information)
    curvature = information + regularization * np.eye(C)
    if regularization == 0:
        # The likelihood does not depend on a common factor of all worths: add a curvature there.
        curvature += max(np.trace(curvature), np.finfo(float).tiny) / C**2
    lift = 0.0
    while True:
        try:
            return cho_factor(curvature + lift * np.eye(C))  # type: ignore[no-any-return]
        except LinAlgError:
            lift = max(10 * lift, 1e-6 * float(np.abs(np.diag(curvature)).max()))


def _climb(
    likelihood: Likelihood, regularization: float, theta: Floats, value: float, step: Floats
) -> tuple[Floats, float, Floats]:
    """Take the step, halved until the value does not decrease (except by rounding)."""
    least = value - 1e-13 * abs(value)
    scale = 1.0
    while True:
        trial = theta + scale * step
        trial_value, expected = _evaluate_with_penalty(likelihood, trial, regularization)
        if trial_value >= least or scale < 1e-10:
            return trial, trial_value, expected
        scale /= 2


def solve_mm(
    likelihood: Likelihood, regularization: float, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """Hunter's minorisation-maximisation: every step increases the likelihood, slowly.

    The gains shrink by a constant factor, from which the gain still to come is estimated.
    """
    theta = np.zeros(likelihood.n_items)
    value, expected = _evaluate_with_penalty(likelihood, theta, regularization)
    last_gain = np.inf
    next_check = 3
    for iteration in range(1, max_iter + 1):
        theta = mm_step(theta, likelihood.wins, expected, regularization)
        new_value, expected = _evaluate_with_penalty(likelihood, theta, regularization)
        gain, value = new_value - value, new_value
        ratio = min(gain / last_gain, 1.0) if last_gain > 0 else 0.0
        to_come = gain * ratio / (1 - ratio) if ratio < 1 else np.inf
        last_gain = gain
        line.update(f"iteration {iteration}, log-likelihood {value:.6f}, to gain {to_come:.1e}")
        rounding = 8 * np.finfo(float).eps * abs(value)
        if iteration >= next_check and (gain <= rounding or to_come <= tol):
            # Very small steps can still be far from the optimum: check the gradient.
            gradient = likelihood.wins - expected - regularization * theta
            factor = _curvature(likelihood.information(theta), regularization)
            if float(gradient @ cho_solve(factor, gradient)) / 2 <= max(tol, rounding):
                return theta, iteration, True
            next_check = 2 * iteration
    return theta, max_iter, False


def mm_step(theta: Floats, wins: Floats, expected: Floats, regularization: float) -> Floats:
    """Maximise the minorising function, one log-worth at a time.

    With exposure d_i = expected_i / v_i, the maximum is where wins_i - d_i e^θ - η θ = 0:
    Hunter's v_i = wins_i / d_i without the penalty η, Wright's omega function with it.
    """
    new = np.zeros_like(theta)
    # An item that never could be chosen is determined by the penalty alone.
    exposed = expected > 0
    log_exposure = np.log(expected[exposed]) - theta[exposed]
    if regularization == 0:
        new[exposed] = np.log(wins[exposed]) - log_exposure
    else:
        log_scaled = log_exposure - np.log(regularization)
        omega = wrightomega(wins[exposed] / regularization + log_scaled)
        new[exposed] = np.log(omega) - log_scaled
    # The likelihood does not depend on a common shift, and the penalty is least without one.
    return np.asarray(new - new.mean())


def solve_lbfgs(
    likelihood: Likelihood, regularization: float, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """SciPy's L-BFGS-B, on log-worths scaled by how often each item is chosen."""
    start = np.zeros(likelihood.n_items)
    first, expected = _evaluate_with_penalty(likelihood, start, regularization)
    scale = 1 / np.sqrt(expected + regularization)
    iteration = 0

    def negative(scaled: Floats) -> tuple[float, Floats]:
        theta = scale * scaled
        value, expected = _evaluate_with_penalty(likelihood, theta, regularization)
        gradient = likelihood.wins - expected - regularization * theta
        # Values relative to the first one keep more digits near the optimum.
        return first - value, -scale * gradient

    def count(intermediate_result: object) -> None:
        nonlocal iteration
        iteration += 1
        value = first - float(intermediate_result.fun)  # type: ignore[attr-defined]
        line.update(f"iteration {iteration}, log-likelihood {value:.6f}")

    result = minimize(
        negative,
        start,
        jac=True,
        method="L-BFGS-B",
        callback=count,
        options={
            "maxiter": max_iter,
            "maxfun": 4 * max_iter,
            "ftol": 0.0,
            "gtol": 1e-9,
            "maxcor": 20,
        },
    )
    theta = scale * result.x
    # A line search that stops because of rounding has converged as far as possible.
    _, gradient = negative(result.x)
    return (
        theta - theta.mean(),
        iteration,
        bool(gradient @ gradient <= max(tol, 1e-12 * abs(first))),
    )


def _evaluate_with_penalty(
    likelihood: Likelihood, theta: Floats, regularization: float
) -> tuple[float, Floats]:
    value, expected = likelihood.value_and_expected(theta)
    return value - regularization / 2 * float(theta @ theta), expected

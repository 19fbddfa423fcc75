"""Three ways to the same maximum of the penalised Plackett-Luce likelihood.

All maximise ``value(θ) - 1/2 Σ penalty_c θ_c²`` over log-worths θ, and stop when they estimate
that less than ``tol`` is left to gain. A class c of alike items has the penalty of all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs
from scipy.optimize import minimize
from scipy.special import wrightomega

from rankshot.core.progress import ProgressLine
from rankshot.ranking.models.plackett_luce_curvature import SMALL, Curvature
from rankshot.ranking.models.plackett_luce_likelihood import Likelihood, PartsLikelihood

Floats = NDArray[np.float64]
AnyLikelihood = Likelihood | PartsLikelihood
EPSILON = float(np.finfo(float).eps)
SHORT_STEP = 1e-4
"""Newton's method ends with a step that changes no log-worth by more."""
LONGEST_STEP = 10.0
"""A step changes no log-worth by more: where rankings weigh next to nothing, rounding decides."""
LAST_FEW = 4
EXACT = 1e-4
"""Conjugate gradients end when so many directions have added less than this part of the gain."""


class Solver(Protocol):
    """A function from a likelihood to log-worths, iterations, and whether it converged."""

    def __call__(
        self,
        likelihood: AnyLikelihood,
        penalty: Floats,
        tol: float,
        max_iter: int,
        line: ProgressLine,
    ) -> tuple[Floats, int, bool]:
        """Return log-worths, the number of iterations, and whether they converged."""


def solve_newton(
    likelihood: AnyLikelihood, penalty: Floats, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """Newton's method with step halving, after one step of `solve_mm` from equal worths."""
    theta = np.zeros(likelihood.n_classes)
    _, expected = likelihood.value_and_expected(theta)
    theta = mm_step(theta, likelihood.wins, expected, penalty)
    value, expected = _evaluate_with_penalty(likelihood, theta, penalty)
    gain, fresh_enough = np.inf, 0.0
    for iteration in range(1, max_iter + 1):
        gradient = likelihood.wins - expected - penalty * theta
        # The curvature is computed again once the gains fall less than a hundredfold per step.
        fresh = gain > fresh_enough
        if fresh:
            solve = _curvature_solver(likelihood, theta, penalty)
            gain = np.inf
        fresh_enough = gain / 100
        # A common shift of all log-worths is rounding, which a small penalty would magnify.
        step = _centre(solve(gradient), penalty)
        step *= LONGEST_STEP / max(float(np.abs(step).max()), LONGEST_STEP)
        gain = float(gradient @ step) / 2
        line.update(f"iteration {iteration}, mean log-likelihood {value:.6f}, to gain {gain:.1e}")
        # Where worths differ by many orders of magnitude, a long step can gain very little.
        reached = gain <= tol and float(np.abs(step).max()) <= SHORT_STEP
        reached |= gain <= _round_gain(likelihood, expected, step)
        last = theta
        theta, value, expected = _climb(likelihood, penalty, theta, value, step)
        if reached or (fresh and np.array_equal(theta, last)):
            return theta, iteration, reached
    return theta, max_iter, False


def _curvature_solver(
    likelihood: AnyLikelihood, theta: Floats, penalty: Floats
) -> Callable[[Floats], Floats]:
    """Return a function that divides a gradient by the penalised curvature: a Newton step."""
    curvature = likelihood.curvature(theta)
    if likelihood.n_classes <= SMALL:
        factor = _factor(curvature.toarray(), penalty)
        return lambda gradient: np.asarray(dpotrs(factor, gradient)[0])
    return partial(_conjugate_gradients, curvature, penalty)


def _round_gain(likelihood: AnyLikelihood, expected: Floats, step: Floats) -> float:
    """Return what a step gains by rounding alone.

    The gradient is a difference of large sums, and never more exact than these.
    """
    return 4 * EPSILON * float((likelihood.wins + expected) @ np.abs(step))


def _factor(information: Floats, penalty: Floats) -> Floats:
    """Return the Cholesky factor of the penalised information, made positive definite if need be.

    With ties that K cuts the log-likelihood need not be concave. The steps are then shorter.
    """
    C = len(information)
    curvature = information + np.diag(penalty)
    if not penalty.any():
        # The likelihood does not depend on a common factor of all worths: add a curvature there.
        curvature += max(np.trace(curvature), np.finfo(float).tiny) / C**2
    lift = 0.0
    while True:
        factor, failed = dpotrf(curvature + lift * np.eye(C))
        if not failed:
            return np.asarray(factor)
        lift = max(10 * lift, 1e-6 * float(np.abs(np.diag(curvature)).max()))


def _conjugate_gradients(curvature: Curvature, penalty: Floats, gradient: Floats) -> Floats:
    """Solve with products of the matrix and vectors: no factor of a large matrix is needed.

    Every direction adds to what the step gains. The solution is exact enough once the last few
    directions have added nearly nothing. It is a step upward wherever the search ends.
    """
    diagonal = curvature.diagonal() + penalty
    scale = 1 / np.maximum(diagonal, EPSILON * diagonal.max())
    step, residual = np.zeros_like(gradient), gradient
    direction = scale * residual
    length = float(residual @ direction)
    gains: list[float] = []
    while length > 0 and len(gains) < 10 * len(gradient):
        bent = curvature @ direction + penalty * direction
        bend = float(direction @ bent)
        if bend <= 0:
            # With ties that K cuts the log-likelihood need not be concave.
            return step if gains else direction
        rate = length / bend
        step = step + rate * direction
        residual = residual - rate * bent
        gains.append(rate * length)
        if sum(gains[-LAST_FEW:]) <= EXACT * sum(gains) and len(gains) > LAST_FEW:
            break
        conditioned = scale * residual
        longer = float(residual @ conditioned)
        direction = conditioned + longer / length * direction
        length = longer
    return step


def _climb(
    likelihood: AnyLikelihood, penalty: Floats, theta: Floats, value: float, step: Floats
) -> tuple[Floats, float, Floats]:
    """Take the step, halved until the value does not decrease (except by rounding), or none."""
    # The value is a difference of sums of this size.
    size = abs(value) + float(likelihood.wins.sum()) * (1 + float(theta.max() - theta.min()))
    least = value - 4 * EPSILON * size
    scale = 1.0
    while True:
        trial = theta + scale * step
        trial_value, expected = _evaluate_with_penalty(likelihood, trial, penalty)
        if trial_value >= least or scale == 0:
            return trial, trial_value, expected
        scale = scale / 2 if scale > 1e-10 else 0.0


def solve_mm(
    likelihood: AnyLikelihood, penalty: Floats, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """Hunter's minorisation-maximisation: every step increases the likelihood, slowly.

    The gains shrink by a constant factor, from which the gain still to come is estimated.
    """
    theta = np.zeros(likelihood.n_classes)
    value, expected = _evaluate_with_penalty(likelihood, theta, penalty)
    last_gain = np.inf
    next_check = 3
    for iteration in range(1, max_iter + 1):
        theta = mm_step(theta, likelihood.wins, expected, penalty)
        new_value, expected = _evaluate_with_penalty(likelihood, theta, penalty)
        gain, value = new_value - value, new_value
        ratio = min(gain / last_gain, 1.0) if last_gain > 0 else 0.0
        to_come = gain * ratio / (1 - ratio) if ratio < 1 else np.inf
        last_gain = gain
        line.update(
            f"iteration {iteration}, mean log-likelihood {value:.6f}, to gain {to_come:.1e}"
        )
        rounding = 8 * EPSILON * abs(value)
        if iteration >= next_check and (gain <= rounding or to_come <= tol):
            # Very small steps can still be far from the optimum: check the gradient.
            gradient = likelihood.wins - expected - penalty * theta
            step = _curvature_solver(likelihood, theta, penalty)(gradient)
            if float(gradient @ step) / 2 <= max(tol, rounding):
                return theta, iteration, True
            next_check = 2 * iteration
    return theta, max_iter, False


def mm_step(theta: Floats, wins: Floats, expected: Floats, penalty: Floats) -> Floats:
    """Maximise the minorising function, one log-worth at a time.

    With exposure d_i = expected_i / v_i, the maximum is where wins_i - d_i e^θ - η θ = 0:
    Hunter's v_i = wins_i / d_i without the penalty η, Wright's omega function with it.
    """
    new = np.zeros_like(theta)
    # An item that never could be chosen is determined by the penalty alone.
    exposed = expected > 0
    log_exposure = np.log(expected[exposed]) - theta[exposed]
    if not penalty.any():
        new[exposed] = np.log(wins[exposed]) - log_exposure
    else:
        log_scaled = log_exposure - np.log(penalty[exposed])
        omega = wrightomega(wins[exposed] / penalty[exposed] + log_scaled)
        new[exposed] = np.log(omega) - log_scaled
    return _centre(new, penalty)


def _centre(theta: Floats, penalty: Floats) -> Floats:
    """Shift log-worths to where the penalty is least: the likelihood depends on no common shift."""
    total = float(penalty.sum())
    return np.asarray(theta - (penalty @ theta / total if total > 0 else theta.mean()))


def solve_lbfgs(
    likelihood: AnyLikelihood, penalty: Floats, tol: float, max_iter: int, line: ProgressLine
) -> tuple[Floats, int, bool]:
    """SciPy's L-BFGS-B, on log-worths scaled by how often each item is chosen."""
    start = np.zeros(likelihood.n_classes)
    first, expected = _evaluate_with_penalty(likelihood, start, penalty)
    scale = 1 / np.sqrt(expected + penalty)
    iteration = 0

    def negative(scaled: Floats) -> tuple[float, Floats]:
        theta = scale * scaled
        value, expected = _evaluate_with_penalty(likelihood, theta, penalty)
        gradient = likelihood.wins - expected - penalty * theta
        # Values relative to the first one keep more digits near the optimum.
        return first - value, -scale * gradient

    def count(intermediate_result: object) -> None:
        nonlocal iteration
        iteration += 1
        value = first - float(intermediate_result.fun)  # type: ignore[attr-defined]
        line.update(f"iteration {iteration}, mean log-likelihood {value:.6f}")

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
    gradient = -negative(result.x)[1] / scale
    gain = float(gradient @ _curvature_solver(likelihood, theta, penalty)(gradient)) / 2
    # A line search that stops because of rounding has converged as far as possible.
    return _centre(theta, penalty), iteration, gain <= max(tol, 1e-13 * abs(first))


def _evaluate_with_penalty(
    likelihood: AnyLikelihood, theta: Floats, penalty: Floats
) -> tuple[float, Floats]:
    value, expected = likelihood.value_and_expected(theta)
    return value - float(penalty @ theta**2) / 2, expected

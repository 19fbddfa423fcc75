r"""Newton's method for penalised log-likelihoods: one solver for all models.

`maximize` finds the maximum of

.. math:: \ell(b) - \tfrac12 \sum_j \text{ridge}_j b_j^2

A model gives the log-likelihood ℓ as two functions, its value with the gradient and its curvature.
Example: logistic regression.

>>> import numpy as np
>>> from scipy.special import expit
>>> X, won = np.array([[1.0, 0.5], [0.2, 1.0], [-1.0, 0.3], [0.4, -2.0]]), np.array([1, 1, 0, 0])
>>> def evaluate(b):
...     value = np.sum(won * (X @ b) - np.logaddexp(0, X @ b))
...     return Point(float(value), X.T @ (won - expit(X @ b)))
>>> def curvature(b):
...     return X.T * (expit(X @ b) * expit(-X @ b)) @ X
>>> maximize(evaluate, curvature, np.zeros(2), ridge=1.0).parameters.round(3)
array([0.635, 0.752])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

Floats = NDArray[np.float64]
EPSILON = float(np.finfo(float).eps)
SHORT_STEP = 1e-4
"""The last step changes no θ by more: where curvatures differ by many orders of magnitude, a long
step can gain very little."""
LONGEST_STEP = 10.0
"""No θ changes by more in one step."""
STALE_GAIN = 1e-2
"""The curvature is computed again once a step would gain more than this part of the last one."""
FAR_GAIN = 0.25
"""It is also computed again after a step whose gain differed from the expected one by this part."""
LEAST_SHARE = 0.1
"""A step must gain at least this part of what the curvature promises (Armijo's rule)."""
SMALLEST_LIFT = 1e-12
"""A curvature that is not positive definite is raised by at least this part of its diagonal."""


class Point(NamedTuple):
    """A log-likelihood at some parameters.

    ``value_size`` and ``gradient_size`` are the sizes of the sums that value and gradient are
    differences of; both have rounding errors in proportion.
    """

    value: float
    gradient: Floats
    value_size: float = 0.0
    gradient_size: Floats | float = 0.0


class Optimum(NamedTuple):
    """The parameters found, the penalised log-likelihood there, and how they were found."""

    parameters: Floats
    value: float
    n_iter: int
    converged: bool


class _State(NamedTuple):
    b: Floats
    value: float
    slope: Floats
    point: Point

    @property
    def rounding(self) -> float:
        return 4 * EPSILON * max(abs(self.value), self.point.value_size)


def maximize(
    evaluate: Callable[[Floats], Point],
    curvature: Callable[[Floats], Floats],
    start: Floats,
    *,
    ridge: Floats | float = 0.0,
    invariant: Floats | None = None,
    tol: float = 1e-10,
    max_iter: int = 1000,
) -> Optimum:
    """Maximise a penalised log-likelihood by Newton's method with step halving."""
    b = np.asarray(start, np.float64)
    ridge = np.broadcast_to(np.asarray(ridge, np.float64), b.shape)

    def measure(b: Floats) -> _State:
        point = evaluate(b)
        value = point.value - float(ridge @ b**2) / 2
        return _State(b, value, point.gradient - ridge * b, point)

    here = measure(b)
    # The curvature is kept while the last step gained at most so much.
    gain, most_gain = np.inf, 0.0
    for iteration in range(1, max_iter + 1):
        fresh = gain > most_gain
        if fresh:
            factor, gain = _factorise(curvature(here.b), ridge, invariant), np.inf
        most_gain = STALE_GAIN * gain
        step = _find_step(factor, here.slope, ridge, invariant)
        step *= LONGEST_STEP / max(float(np.abs(step).max(initial=0.0)), LONGEST_STEP)
        change = np.abs(step)
        gain = float(here.slope @ step) / 2
        reached = gain <= tol and float(change.max(initial=0.0)) <= SHORT_STEP
        reached |= gain <= 4 * EPSILON * float(np.sum(here.point.gradient_size * change))
        last, here = here, _climb(measure, here, step, gain)
        if abs(here.value - last.value - gain) > FAR_GAIN * gain + here.rounding:
            most_gain = 0.0
        if reached or (fresh and np.array_equal(here.b, last.b)):
            return Optimum(here.b, here.value, iteration, bool(reached))
    return Optimum(here.b, here.value, max_iter, converged=False)


def _climb(measure: Callable[[Floats], _State], here: _State, step: Floats, gain: float) -> _State:
    """Take the step, halved until it gains enough (except for rounding), or none."""
    scale = 1.0
    while scale > 1e-10:
        trial = measure(here.b + scale * step)
        if trial.value >= here.value + LEAST_SHARE * scale * gain - here.rounding:
            return trial
        scale /= 2
    return here


def _factorise(matrix: Floats, ridge: Floats, invariant: Floats | None) -> Floats:
    """Cholesky factor of the penalised curvature, made positive definite.

    Where a log-likelihood is not concave, a lift makes steps shorter.
    """
    n = len(matrix)
    curvature = matrix + np.diag(ridge)
    if invariant is not None and not ridge.any():
        # The likelihood does not depend on this direction: add a curvature there.
        size = max(float(np.trace(curvature)), np.finfo(float).tiny)
        curvature += size / n**2 * np.outer(invariant, invariant)
    largest = max(float(np.abs(np.diag(curvature)).max(initial=0.0)), np.finfo(float).tiny)
    lift = 0.0
    while True:
        factor, failed = dpotrf(curvature + lift * np.eye(n) if lift else curvature)
        # A matrix that is not finite has no factor: the step is not a number, and none is taken.
        if not failed or not np.isfinite(largest):
            return np.asarray(factor)
        lift = max(10 * lift, SMALLEST_LIFT * largest)


def _find_step(factor: Floats, slope: Floats, ridge: Floats, invariant: Floats | None) -> Floats:
    """Newton step from the factor of the curvature and the gradient."""
    step = np.asarray(dpotrs(factor, slope)[0])
    if invariant is not None:
        # A step along this direction is rounding, which a small penalty would magnify.
        weights = ridge * invariant if ridge.any() else invariant
        step -= float(weights @ step) / float(weights @ invariant) * invariant
    return step

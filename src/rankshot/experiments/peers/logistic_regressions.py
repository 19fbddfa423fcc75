"""Many logistic regressions on the same features, at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit

from rankshot.ranking.errors import RankshotError

Floats = NDArray[np.float64]

MAX_STEPS = 100
LEAST_GAIN = 1e-8
"""A regression is done with the step that promises less than this of log-likelihood an input."""

INNER_ACCURACY = 0.1
"""Newton's equations are solved to this part, and better near the optimum."""


class LogisticRegressions(NamedTuple):
    """The weights (d, M) and intercepts (M,) of M logistic regressions."""

    weights: Floats
    intercepts: Floats

    def log_odds(self, X: Floats) -> Floats:
        """Return the log-odds of each answer for each input, (n, M)."""
        return np.asarray(X @ self.weights + self.intercepts)


def fit_logistic_regressions(X: Floats, answers: Floats, penalty: float) -> LogisticRegressions:
    r"""Fit a logistic regression to each column of answers (n, M), zeros and ones.

    Each minimises, with the intercept not penalised,

    .. math:: \sum_i \log(1 + e^{f_i}) - a_i f_i + \frac{α}{2} |w|^2, \qquad f_i = w^T x_i + b.

    Newton's method for all columns together, its equations solved by conjugate gradients: a
    Hessian XᵀDX for each column and step would cost d products with X, this costs two for each
    of a few iterations, and they are products of large matrices. Since D ≤ 1/4, one matrix
    XᵀX/4 + αI bounds all Hessians; its factor is the preconditioner.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = fit_logistic_regressions(X, np.array([[0.0], [1.0], [0.0], [1.0]]), penalty=0.5)
    >>> fitted.log_odds(X).round(3).ravel()
    array([-0.893, -0.298,  0.298,  0.893])
    """
    problem = _Problem.of(X, penalty)
    W = np.zeros((problem.Z.shape[1], answers.shape[1]))
    active = np.arange(answers.shape[1])
    for _ in range(MAX_STEPS):
        proba = expit(problem.Z @ W[:, active])
        gradient = problem.Z.T @ (proba - answers[:, active]) + problem.penalties * W[:, active]
        direction = problem.newton_direction(gradient, proba * (1 - proba))
        W[:, active] += problem.step(W[:, active], direction, gradient, answers[:, active])
        promised = -(gradient * direction).sum(axis=0) / 2
        active = active[promised > LEAST_GAIN * len(X)]
        if active.size == 0:
            return LogisticRegressions(W[:-1], W[-1])
    raise RankshotError(
        f"{len(active)} of {answers.shape[1]} logistic regressions are not done after {MAX_STEPS} "
        f"steps: take a larger penalty than {penalty:g}, or features of a common scale"
    )


class _Problem(NamedTuple):
    """Features with a column of ones, the penalty of each row of weights, the bound's factor."""

    Z: Floats
    penalties: Floats
    factor: Any

    @classmethod
    def of(cls, X: Floats, penalty: float) -> _Problem:
        Z = np.column_stack([X, np.ones(len(X))])
        penalties = np.append(np.full(X.shape[1], penalty), 0.0)
        return cls(Z, penalties[:, None], cho_factor(Z.T @ Z / 4 + np.diag(penalties)))

    def preconditioned(self, gradient: Floats) -> Floats:
        return np.asarray(cho_solve(self.factor, gradient))

    def newton_direction(self, gradient: Floats, D: Floats) -> Floats:
        """Solve (ZᵀDZ + α) x = -gradient for all columns by preconditioned conjugate gradients."""
        x, residual = np.zeros_like(gradient), -gradient
        z = self.preconditioned(residual)
        size = first = (residual * z).sum(axis=0)
        enough = first * np.minimum(INNER_ACCURACY**2, first / len(D))
        q = z
        for _ in range(len(gradient)):
            Hq = self.Z.T @ (D * (self.Z @ q)) + self.penalties * q
            # A column that is done rests: its next quotient could be 0 / 0.
            going = size > enough
            along = np.divide(size, (q * Hq).sum(axis=0), out=np.zeros_like(size), where=going)
            x, residual = x + along * q, residual - along * Hq
            z = self.preconditioned(residual)
            size, before = (residual * z).sum(axis=0), size
            if (size <= enough).all():
                break
            q = z + np.divide(size, before, out=np.zeros_like(size), where=going) * q
        return x

    def step(self, W: Floats, direction: Floats, gradient: Floats, answers: Floats) -> Floats:
        """Return the direction, halved for each column until its objective falls enough."""
        f, df = self.Z @ W, self.Z @ direction
        now = self._objective(W, f, answers)
        slope = (gradient * direction).sum(axis=0)
        # Near the optimum the objective cannot show a fall that is lost in its last digits.
        lost = 1e-12 * np.abs(now)
        length = np.ones(W.shape[1])
        for _ in range(50):
            then = self._objective(W + length * direction, f + length * df, answers)
            short = then > now + 1e-4 * length * slope + lost
            if not short.any():
                break
            length = np.where(short, length / 2, length)
        return length * direction

    def _objective(self, W: Floats, f: Floats, answers: Floats) -> Floats:
        loss = (np.logaddexp(0, f) - answers * f).sum(axis=0)
        return np.asarray(loss + (self.penalties * W**2).sum(axis=0) / 2)

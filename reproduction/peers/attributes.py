"""Peers that predict attributes first, and targets from attributes: DAP and IAP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import expit, log_expit, logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_number
from rankshot.sources.vectors import ClassVectors
from rankshot.zeroshot.scores import Scores, log_class_probabilities
from reproduction.peers.base import (
    CompleteVectors,
    MeanImputation,
    Peer,
    Training,
    choose_targets,
)

Floats = NDArray[np.float64]
MAX_STEPS = 100
LEAST_GAIN = 1e-8
"""A regression ends when the expected gain of log-likelihood per input is below this."""
INNER_ACCURACY = 0.1
"""The relative accuracy of Newton's equations; it is higher near the optimum."""
SMALLEST_LOG = -600.0
"""Sums of probabilities below the exponential of this lose digits or are zero."""


@dataclass(frozen=True, eq=False)
class BinaryAttributes:
    """Binary attributes of classes.

    A class has an attribute if its number is above the mean over all entries of the training
    classes' table, as in Lampert et al. A table of zeros and ones does not change.

    An attribute that all training classes have, or none, is left out: it cannot be learned, so
    P(a|x) = P(a), and its factor is one. Therefore priors are never 0 or 1: with C classes they
    are between 1/C and 1 - 1/C.

    Attributes
    ----------
    threshold : float
    differs : ndarray of bool
        Which attributes differ between training classes.
    prior : ndarray
        P(a_m = 1) of those that differ, the mean over training classes.
    """

    threshold: float
    differs: NDArray[np.bool_]
    prior: Floats

    @classmethod
    def from_training(cls, training: CompleteVectors) -> BinaryAttributes:
        """Compute threshold and priors from the training classes."""
        threshold = float(training.values.mean())
        mean = (training.values > threshold).mean(axis=0)
        differs = (mean > 0) & (mean < 1)
        if not differs.any():
            raise RankshotError(
                f"no attribute differs between the {len(training.names)} training classes: none is "
                f"above the mean, {threshold:.3g}, for some of them and not for others"
            )
        return cls(threshold, differs, mean[differs])

    def has_attributes(self, classes: CompleteVectors) -> NDArray[np.bool_]:
        """Return which of the attributes that differ each class has, one row per class."""
        return np.asarray(classes.values[:, self.differs] > self.threshold)

    def log_posterior(
        self, log_present: Floats, log_absent: Floats, targets: CompleteVectors
    ) -> Floats:
        r"""Return log P(z|x) up to a constant for each x, one column per target.

        .. math:: P(z|x) ∝ \prod_m P(a_m^z | x) / P(a_m^z)

        Parameters
        ----------
        log_present, log_absent : ndarray of shape (n, attributes that differ)
            log P(a_m = 1 | x) and log P(a_m = 0 | x).
        targets : CompleteVectors
        """
        has = self.has_attributes(targets).astype(np.float64)
        for_present = (log_present - np.log(self.prior)) @ has.T
        for_absent = (log_absent - np.log1p(-self.prior)) @ (1 - has).T
        posterior: Floats = for_present + for_absent
        return posterior


# ---- Logistic regressions


class LogisticRegressions(NamedTuple):
    """The weights (d, M) and intercepts (M,) of M logistic regressions."""

    weights: Floats
    intercepts: Floats

    def log_odds(self, X: Floats) -> Floats:
        """Return the log-odds of each answer for each input, (n, M)."""
        return np.asarray(X @ self.weights + self.intercepts)


def fit_logistic_regressions(X: Floats, answers: Floats, penalty: float) -> LogisticRegressions:
    r"""Fit one logistic regression to each column of answers (n, M), which are zeros and ones.

    Each minimises, with the intercept not penalised,

    .. math:: \sum_i \log(1 + e^{f_i}) - a_i f_i + \frac{α}{2} |w|^2, \qquad f_i = w^T x_i + b.

    Newton's method is run for all columns together, and its equations are solved by conjugate
    gradients. A Hessian XᵀDX for each column and step would cost d products with X; this costs two
    for each of a few iterations, and they are products of large matrices. Since D ≤ 1/4, one
    matrix XᵀX/4 + αI bounds all Hessians; its factor is the preconditioner.

    Examples
    --------
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> fitted = fit_logistic_regressions(X, np.array([[0.0], [1.0], [0.0], [1.0]]), penalty=0.5)
    >>> fitted.log_odds(X).round(3).ravel()
    array([-0.893, -0.298,  0.298,  0.893])
    """
    problem = _RegressionProblem.build(X, penalty)
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
        f"{len(active)} of {answers.shape[1]} logistic regressions did not converge in {MAX_STEPS} "
        f"steps: use a penalty larger than {penalty:g}, or scale the features"
    )


class _RegressionProblem(NamedTuple):
    """Features with a column of ones, the penalty of each row of weights, the preconditioner."""

    Z: Floats
    penalties: Floats
    factor: Any

    @classmethod
    def build(cls, X: Floats, penalty: float) -> _RegressionProblem:
        Z = np.column_stack([X, np.ones(len(X))])
        penalties = np.append(np.full(X.shape[1], penalty), 0.0)
        return cls(Z, penalties[:, None], cho_factor(Z.T @ Z / 4 + np.diag(penalties)))

    def precondition(self, gradient: Floats) -> Floats:
        return np.asarray(cho_solve(self.factor, gradient))

    def newton_direction(self, gradient: Floats, D: Floats) -> Floats:
        """Solve (ZᵀDZ + α) x = -gradient for all columns by preconditioned conjugate gradients."""
        x, residual = np.zeros_like(gradient), -gradient
        z = self.precondition(residual)
        size = first = (residual * z).sum(axis=0)
        enough = first * np.minimum(INNER_ACCURACY**2, first / len(D))
        q = z
        for _ in range(len(gradient)):
            Hq = self.Z.T @ (D * (self.Z @ q)) + self.penalties * q
            # A finished column is not updated: its next quotient could be 0 / 0.
            going = size > enough
            along = np.divide(size, (q * Hq).sum(axis=0), out=np.zeros_like(size), where=going)
            x, residual = x + along * q, residual - along * Hq
            z = self.precondition(residual)
            size, before = (residual * z).sum(axis=0), size
            if (size <= enough).all():
                break
            q = z + np.divide(size, before, out=np.zeros_like(size), where=going) * q
        return x

    def step(self, W: Floats, direction: Floats, gradient: Floats, answers: Floats) -> Floats:
        """Return the direction, halved for each column until its objective decreases enough."""
        f, df = self.Z @ W, self.Z @ direction
        now = self._objective(W, f, answers)
        slope = (gradient * direction).sum(axis=0)
        # Near the optimum the decrease can be smaller than the rounding error of the objective.
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


# ---- Methods


class DAP(Peer):
    r"""Direct attribute prediction of Lampert, Nickisch & Harmeling (2009).

    The class vectors are attributes. They are binary, or numbers that count as 1 above the mean of
    all entries of the training classes' table. One logistic regression per attribute learns
    P(a_m|x), and

    .. math:: P(z|x) ∝ \prod_m \frac{P(a_m^z | x)}{P(a_m^z)},

    where the prior P(a_m) is the mean over training classes. An attribute that is the same for
    all training classes has the factor 1. `decision_function` is the logarithm of the product.

    Parameters
    ----------
    penalty : float
        α in the regressions' Σ loss + α |w|² / 2: scikit-learn's 1 / C.

    Attributes
    ----------
    attributes_ : BinaryAttributes
        The threshold, the attributes that differ between training classes, and their priors.
    regressions_ : LogisticRegressions
        One for each attribute that differs.

    Examples
    --------
    >>> from rankshot.sources import ClassVectors
    >>> names, values = ["lion", "bus", "cat", "van"], [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> vectors = ClassVectors(names, values, "me")
    >>> X, y = [[2, 0], [3, 1], [0, 2], [1, 3]], ["lion", "lion", "bus", "bus"]
    >>> peer = DAP().fit(X, y, vectors)
    >>> peer.predict([[5, 1], [0, 4]], vectors.select(["cat", "van"]))
    array(['cat', 'van'], dtype='<U3')
    """

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def _learn(self, training: Training) -> None:
        penalty = require_number("penalty", self.penalty, above=0, below=np.inf)
        self.attributes_ = BinaryAttributes.from_training(training.classes)
        present = self.attributes_.has_attributes(training.classes).astype(np.float64)
        self.regressions_ = fit_logistic_regressions(training.X, present[training.codes], penalty)

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        f = self.regressions_.log_odds(X)
        return self.attributes_.log_posterior(log_expit(f), log_expit(-f), targets)


class IAP(BaseEstimator):  # type: ignore[misc]
    r"""Indirect attribute prediction of Lampert, Nickisch & Harmeling (2009).

    It uses the probabilities of a classifier of the seen classes, without further training:

    .. math:: P(a_m|x) = \sum_y P(a_m|y)\, P(y|x), \qquad
        P(z|x) ∝ \prod_m \frac{P(a_m^z | x)}{P(a_m^z)}.

    P(a_m|y) is 1 or 0: attributes are made binary, and their priors are computed, as in `DAP`.

    Attributes
    ----------
    items_ : tuple of str
        The seen classes.
    attributes_ : BinaryAttributes
        The threshold, the attributes that differ between seen classes, and their priors.

    Examples
    --------
    >>> from rankshot.sources import ClassVectors
    >>> names, values = ["lion", "bus", "cat", "van"], [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> vectors = ClassVectors(names, values, "me")
    >>> peer = IAP().fit(vectors.select(["lion", "bus"]))
    >>> peer.predict([[.9, .1], [.3, .7]], vectors.select(["cat", "van"]))
    array(['cat', 'van'], dtype='<U3')
    """

    def fit(self, vectors: ClassVectors) -> IAP:
        """Learn the attributes of the seen classes; missing ones (NaN) get the mean over others."""
        self._imputation = MeanImputation.from_training(vectors)
        seen = self._imputation.complete(vectors)
        self.attributes_ = BinaryAttributes.from_training(seen)
        self._present = self.attributes_.has_attributes(seen)
        self.items_ = seen.names
        return self

    def decision_function(self, probabilities: Scores | ArrayLike, targets: ClassVectors) -> Floats:
        """Return log P(z|x) up to a constant for each x, one column per target.

        Parameters
        ----------
        probabilities : Scores or array-like of shape (n, C)
            P(y|x): a table whose rows sum to one, with its columns in the order of ``items_``; or
            scores, which are converted by softmax (one-vs-rest: by the sigmoid, divided by its sum
            over classes).
        targets : ClassVectors
        """
        check_is_fitted(self, "items_")
        if not isinstance(probabilities, Scores):
            probabilities = Scores.from_probabilities(probabilities, self.items_)
        scores = probabilities.with_items(self.items_)
        log_proba = log_class_probabilities(
            np.asarray(scores.values, np.float64), scores.kind, "IAP"
        )
        log_proba = log_proba - logsumexp(log_proba, axis=1, keepdims=True)
        return self.attributes_.log_posterior(
            log_group_probability(log_proba, self._present),
            log_group_probability(log_proba, ~self._present),
            self._imputation.complete(targets),
        )

    def predict(self, probabilities: Scores | ArrayLike, targets: ClassVectors) -> NDArray[np.str_]:
        """Return the most probable target of each input; the first by name if several tie."""
        return choose_targets(self.decision_function(probabilities, targets), targets.names)


def log_group_probability(log_proba: Floats, members: NDArray[np.bool_]) -> Floats:
    """Return the logarithm of the total probability of each group of classes.

    Parameters
    ----------
    log_proba : ndarray of shape (n, C)
    members : ndarray of bool of shape (C, groups)
        The classes of each group; no group may be empty.

    Examples
    --------
    >>> log_proba = np.array([[0.0, -1000.0, -1000.0]])
    >>> log_group_probability(log_proba, np.array([[False], [True], [True]])).round(3)
    array([[-999.307]])
    """
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.exp(log_proba) @ members.astype(np.float64))
    # Very small probabilities underflow: these are summed as logarithms, group by group.
    low = logs < SMALLEST_LOG
    for group in np.flatnonzero(low.any(axis=0)):
        rows = low[:, group]
        logs[rows, group] = logsumexp(log_proba[np.ix_(rows, members[:, group])], axis=1)
    return logs

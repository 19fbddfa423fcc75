"""Peers that predict attributes first, and targets from attributes: DAP and IAP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_number
from rankshot.zeroshot.scores import Scores, log_class_probabilities
from reproduction.class_vectors import ClassVectors
from reproduction.peers.base import (
    CompleteVectors,
    MeanImputation,
    Peer,
    Training,
    choose_targets,
)

Floats = NDArray[np.float64]
MAX_STEPS = 2000
LEAST_SLOPE, ENOUGH_SLOPE = 1e-7, 1e-4
"""The slopes at which the fit of all regressions ends, and up to which it has converged."""
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

    All are fitted together, so that a step costs two products of large matrices. XᵀX/4 + αI bounds
    the Hessian of each; its Cholesky factor makes the problem well conditioned.
    """
    Z = np.column_stack([X, np.ones(len(X))])
    penalties = np.append(np.full(X.shape[1], penalty), 0.0)[:, None]
    factor = cholesky(Z.T @ Z / 4 + np.diag(penalties[:, 0]))

    def compute(flat: Floats) -> tuple[float, Floats]:
        W = solve_triangular(factor, flat.reshape(Z.shape[1], -1))
        f = Z @ W
        loss = (np.logaddexp(0, f) - answers * f).sum() + (penalties * W**2).sum() / 2
        slope = Z.T @ (expit(f) - answers) + penalties * W
        return float(loss), solve_triangular(factor, slope, trans="T").ravel()

    start = np.zeros(Z.shape[1] * answers.shape[1])
    options = {"maxiter": MAX_STEPS, "maxfun": 2 * MAX_STEPS, "ftol": 0.0, "gtol": LEAST_SLOPE}
    found = minimize(compute, start, jac=True, method="L-BFGS-B", options=options)
    if not np.abs(compute(found.x)[1]).max() < ENOUGH_SLOPE:
        raise RankshotError(
            f"logistic regressions did not converge in {MAX_STEPS} steps: use a penalty larger "
            f"than {penalty:g}, or scale the features"
        )
    W = solve_triangular(factor, found.x.reshape(Z.shape[1], -1))
    return LogisticRegressions(W[:-1], W[-1])


# ---- Methods


class DAP(Peer):
    r"""Direct attribute prediction of Lampert, Nickisch & Harmeling (2009).

    The class vectors are attributes. They are binary, or numbers that count as 1 above the mean of
    all entries of the training classes' table. One logistic regression per attribute learns
    P(a_m|x), and

    .. math:: P(z|x) ∝ \prod_m \frac{P(a_m^z | x)}{P(a_m^z)},

    where the prior P(a_m) is the mean over training classes. An attribute that is the same for
    all training classes has the factor 1. `decision_function` is the logarithm of the product.
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
        """Return log P(z|x) up to a constant for each x, one column per target."""
        check_is_fitted(self, "items_")
        if not isinstance(probabilities, Scores):
            probabilities = Scores.from_probabilities(probabilities, self.items_)
        scores = probabilities.with_items(self.items_)
        log_proba = log_class_probabilities(scores)
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
    """Return the logarithm of the total probability of each group of classes."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.exp(log_proba) @ members.astype(np.float64))
    # Very small probabilities underflow: these are summed as logarithms, group by group.
    low = logs < SMALLEST_LOG
    for group in np.flatnonzero(low.any(axis=0)):
        rows = low[:, group]
        logs[rows, group] = logsumexp(log_proba[np.ix_(rows, members[:, group])], axis=1)
    return logs

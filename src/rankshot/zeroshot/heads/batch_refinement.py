"""`BatchRefinement`: refine the decisions of a head by the distribution of a whole batch."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.special import log_softmax, logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_choice, require_number, require_whole_number
from rankshot.zeroshot.heads.base import BaseHead, require_temperature
from rankshot.zeroshot.heads.reference import SAME
from rankshot.zeroshot.scores import Kind, Scores, as_scores, sum_pair_scores

Floats = NDArray[np.float64]
CLASS_PRIORS = ("equal", "estimated")
MOST_EXCESS = 0.01
"""The largest relative error of the share of the batch that a balanced class may have."""


class BatchRefinement(BaseHead, BaseEstimator):
    r"""A head that uses all inputs of a batch, without labels, to decide on each of them.

    The rankings tell roughly where the inputs of a new class are; the batch shows where they
    really are. The scores of every class z have a normal distribution, all with one covariance,
    and

    .. math:: \log P(z|x) = w \log P_{head}(z|x)
              + \log N(f(x); \mu_z, \Sigma) + \log P(z) + \text{const}

    with the weight w = ``head_weight``. Means, covariance and P(z) are found by the EM algorithm,
    which starts from the probabilities of the head. This is *transductive*: the answers depend
    on the batch, so report them separately from those of other heads. With fewer than about fifty
    inputs per class, or if some classes do not occur at all, it is worse than its head.

    Parameters
    ----------
    head : head
        A fitted head. The classes are those of this head.
    head_weight : float
        The weight of the head's log-probabilities. With 0 the head only gives the initial
        probabilities.
    class_prior : {"equal", "estimated"}
        Whether all classes are assumed to be equally frequent in the batch, or P(z) is estimated,
        too. Use "estimated" if a class may be rare.
    shrinkage : float
        The covariance is (1 - shrinkage) times the estimate plus shrinkage times a multiple of
        the identity matrix.
    n_iterations : int
        The number of iterations of the EM algorithm.
    temperature : float or None
        Log-probabilities are divided by it before they are normalised; by default 1.

    Attributes
    ----------
    items_, classes_
        Those of the head.
    means_ : ndarray of shape (L, C)
        Mean of the standardised scores of each of the L classes: in standard deviations from
        their mean over the batch. For one-vs-one scores these are the sums over the pairs of each
        seen class.
    covariance_ : ndarray of shape (C, C)
        Covariance of the standardised scores within each class.
    log_prior_ : ndarray of shape (L,)
        log P(z). For ``"equal"``, the constants that make the classes equally frequent.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard"], ["bus"]], items=["bus", "fox", "leopard"], targets=["cat", "truck"])
    >>> head = rs.ProbabilisticRanking().fit(rankings)
    >>> truth = np.repeat(["cat", "truck"], 100)
    >>> batch = np.repeat([[0.0, 6.0, 1.5], [1.5, 0.0, 0.0]], 100, axis=0)
    >>> batch += np.random.default_rng(0).normal(size=batch.shape)
    >>> print(f"{np.mean(head.predict(batch) == truth):.1f}")
    0.9
    >>> refined = rs.BatchRefinement(head).fit(batch)
    >>> print(f"{np.mean(refined.predict(batch) == truth):.1f}")
    1.0
    """

    def __init__(
        self,
        head: BaseHead,
        *,
        head_weight: float = 1.0,
        class_prior: Literal["equal", "estimated"] = "equal",
        shrinkage: float = 0.1,
        n_iterations: int = 10,
        temperature: float | None = None,
    ) -> None:
        self.head = head
        self.head_weight = head_weight
        self.class_prior = class_prior
        self.shrinkage = shrinkage
        self.n_iterations = n_iterations
        self.temperature = temperature

    def fit(self, scores: Scores | ArrayLike) -> BatchRefinement:
        """Estimate the distribution of the scores of each class.

        Parameters
        ----------
        scores : Scores or array-like
            Scores of all inputs of the batch.
        """
        self._check_parameters()
        check_is_fitted(self.head, "classes_")
        self.items_, self.classes_ = self.head.items_, self.head.classes_
        table = as_scores(scores, self.items_)
        if len(table) < len(self.classes_):
            raise RankshotError(
                f"a batch of {len(table)} inputs is too small to estimate {len(self.classes_)} "
                "classes"
            )
        features = _features(table.values, table.kind, len(self.items_))
        self._kind = table.kind
        self._center = features.mean(axis=0)
        self._std = _column_std(features, table.values)
        features = (features - self._center) / self._std
        head_log_proba = np.asarray(self.head.predict_log_proba(table), np.float64)
        log_share = head_log_proba
        for _ in range(self.n_iterations):
            self._maximize(features, log_share)
            log_share = log_softmax(self._joint(features, head_log_proba), axis=1)
        return self

    def _check_parameters(self) -> None:
        if not isinstance(self.head, BaseHead):
            raise RankshotError(f"head must be a fitted head, not {short_repr(self.head)}")
        require_number("head_weight", self.head_weight, least=0, below=np.inf)
        require_number("shrinkage", self.shrinkage, above=0, most=1)
        require_temperature(self.temperature)
        require_choice("class_prior", self.class_prior, CLASS_PRIORS)
        require_whole_number("n_iterations", self.n_iterations)

    def _maximize(self, features: Floats, log_share: Floats) -> None:
        """Estimate means, covariance and class prior from the probabilities of each class."""
        share = np.exp(log_share)
        size = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
        self.means_ = share.T @ features / size[:, None]
        within = (features.T @ features - (self.means_.T * size) @ self.means_) / len(features)
        mean_variance = np.trace(within) / len(within)
        within *= 1 - self.shrinkage
        # Directions without any variance need a little, too.
        within.flat[:: len(within) + 1] += self.shrinkage * max(mean_variance, 1e-12)
        self.covariance_ = within
        self._slopes = cho_solve(cho_factor(within), self.means_.T)
        self._offsets = -0.5 * (self.means_ * self._slopes.T).sum(axis=1)
        self.log_prior_ = np.log(size / len(features))

    def _joint(self, features: Floats, head_log_proba: Floats) -> Floats:
        """Return the log-posteriors of the batch; balance the class prior if it is "equal"."""
        joint = self.head_weight * head_log_proba + features @ self._slopes + self._offsets
        if self.class_prior == "equal":
            self.log_prior_ = balancing_offsets(joint)
        return np.asarray(joint + self.log_prior_)

    def _log_posterior(self, values: NDArray[np.floating], kind: Kind) -> Floats:
        if kind != self._kind:
            raise RankshotError(f"fitted to {self._kind} scores, but these are {kind}")
        features = (_features(values, kind, len(self.items_)) - self._center) / self._std
        head_log_proba = self.head.predict_log_proba(Scores(values, self.items_, kind))
        joint = self.head_weight * head_log_proba + features @ self._slopes + self._offsets
        return np.asarray((joint + self.log_prior_).T, np.float64)


def _features(values: NDArray[np.floating], kind: Kind, n_items: int) -> Floats:
    """Return one column per seen class: scores minus their mean, or sums over pairs."""
    f = np.asarray(values, np.float64)
    if kind == "one-vs-one":
        return sum_pair_scores(f, n_items)
    return np.asarray(f - f.mean(axis=1, keepdims=True))


def _column_std(features: Floats, values: NDArray[np.floating]) -> Floats:
    """Return the standard deviation of each column; 1 if it is only rounding error."""
    deviation = features.std(axis=0)
    largest = max(float(np.abs(values).max()), float(np.abs(features).max()))
    rounding = SAME * float(np.finfo(values.dtype).eps) * largest
    return np.where(deviation > rounding, deviation, 1.0)


def balancing_offsets(joint: Floats) -> Floats:
    """Return what to add to each column so that all columns get the same share of the rows.

    The shares of a row are its softmax. The offsets minimise a convex function whose gradient is
    the excess of each column over its share. Iterative scaling of the columns (Sinkhorn) has the
    same limit, but needs thousands of iterations if the rows are confident.
    """
    n, L = joint.shape

    def excess(added: Floats) -> Floats:
        return np.asarray(softmax(joint + added, axis=1).sum(axis=0) * L / n - 1)

    def total(added: Floats) -> float:
        return float(logsumexp(joint + added, axis=1).sum() * L / n - added.sum())

    def curvature(added: Floats) -> Floats:
        share = softmax(joint + added, axis=1)
        return np.asarray((np.diag(share.sum(axis=0)) - share.T @ share) * L / n)

    options = {"gtol": 1e-10, "max_trust_radius": 1e6}
    try:
        found = minimize(
            total, np.zeros(L), jac=excess, hess=curvature, method="trust-exact", options=options
        ).x
        left = float(np.abs(excess(found)).max())
    except ValueError:
        # A class with probability 0 for all inputs: no offset can balance it.
        left = np.inf
    if not left < MOST_EXCESS:
        raise RankshotError(
            "the classes cannot be made equally frequent in this batch: use class_prior='estimated'"
        )
    return np.asarray(found - found.mean())

"""`BatchRefinement`: refine the decisions of a head by the distribution of a whole batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.special import expit, logit, logsumexp, softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import (
    Array,
    Constants,
    Library,
    Lost,
    log_softmax,
    row_blocks,
    with_prefix,
)
from rankshot.core.errors import RankshotError, format_count, short_repr
from rankshot.core.newton import Point, maximize
from rankshot.core.validation import require_choice
from rankshot.zeroshot.evidence import find_log_factor
from rankshot.zeroshot.examples import as_examples
from rankshot.zeroshot.heads.base import BaseHead, require_temperature
from rankshot.zeroshot.runner import most_probable
from rankshot.zeroshot.scores import (
    ROUNDING_UNITS,
    Kind,
    Scores,
    as_scores,
    class_scores,
    pair_constants,
)

Floats = NDArray[np.float64]
ClassPrior = Literal["equal", "estimated"]
CLASS_PRIORS = ("auto", "equal", "estimated")
DENSITY_WEIGHT = 0.5
"""The weight of the normal log-density. Scores are not quite normal, and the density of many
columns is far too confident; with half of it, the EM algorithm changes its mind more easily."""
LEAST_PER_CLASS = 5
"""The inputs per class from which on a batch is used without being asked for."""
DIRECTIONS_PER_CLASS = 4
INPUTS_PER_DIRECTION = 20
"""There are four principal components per class, or more if there are this many inputs for each."""
LEAST_SHRINKAGE = 0.1
N_ITERATIONS = 10
"""The number of iterations of the EM algorithm."""
LEAST_VARIETY = 0.8
"""The variety of the head's answers below which classes are not assumed to be equally frequent. On
three data sets, equally frequent classes have .78 to 1.1, with half of them absent .53 to .77, and
with frequencies 1, 1/2, 1/3, … .51 to .9; a higher bound gains less where classes are equally
frequent, and a lower one loses more where they are not."""
LEAST_AGREEMENT = {"equal": 0.55, "estimated": 0.65}
"""The share of the batch for which refined answers must be those of the head. Estimated frequencies
lead astray more easily."""
MOST_LOST = 0.12
"""How much agreement the assumption of equal frequencies may cost. In batches of 2 to 30 classes of
two data sets, by lists of language models, equally frequent classes cost .0 to .12, frequencies 1,
1/2, 1/3, … mostly more, and absent classes nearly always."""
CONFIDENCE = (0.3, 1.5)
"""The log-odds of the share of right answers are about .3 plus 1.5 times those of the mean
confidence of the head: fitted to batches of held-out classes of three data sets, with good and bad
rankings. How often head and refined answers agree tells much less."""
MOST_EXCESS = 0.01
"""The largest relative error of the share of the batch that a balanced class may have."""


class BatchRefinement(BaseHead, BaseEstimator):
    r"""A head that uses all inputs of a batch, without labels, to decide on each of them.

    The rankings say roughly where the inputs of a new class are; the batch shows where they
    really are. The scores of every class z have a normal distribution, all with one covariance,
    and

    .. math:: \log P(z|x) = \tfrac1t \left[ \log P_{head}(z|x)
              + \tfrac12 \log N(f(x); \mu_z, \Sigma) + \log P(z) \right] + \text{const}

    where f(x) are the first principal components of the standardised scores, at least four per
    class. Means, covariance and P(z) are found by the EM algorithm, which starts from the
    probabilities of the head. The factor 1/2 corrects for overconfident densities.

    How often the refined answers are right follows from how certain the head is: if its mean
    confidence has log-odds l, the share of correct answers has log-odds of about 1.5 l + .3, and is
    not assumed to be below this confidence. So the temperature t is the smallest number from 1 on
    at which the mean probability of the answers is at most this share. If the answers are those of
    the head for less than 55% of the batch (65% if P(z) is estimated), the solution has drifted
    away from the rankings: a warning is given, and the head's own answers are kept. This happens if
    many classes do not occur in the batch. Absent classes are not always noticed, so list only
    classes that may occur.

    This is *transductive*: the answers depend on the batch, so report them separately from those
    of other heads.

    Parameters
    ----------
    head : head
        A fitted head. The classes are those of this head.
    class_prior : {"auto", "equal", "estimated"}
        Whether all classes are assumed to be equally frequent in the batch, or P(z) is estimated.
        "auto" assumes equal frequencies unless the head's answers contradict it, or the refined
        answers agree less with them than if P(z) is estimated (by more than .12).
    temperature : float or None
        t. By default as described above.

    Attributes
    ----------
    fell_back_ : bool
        Whether the head's own answers are kept. With fewer inputs than classes they are, and the
        following attributes do not exist.
    agreement_ : float
        The share of the batch for which the refined answers are those of the head.
    class_prior_ : {"equal", "estimated"}
        What was assumed of the frequencies.
    calibration_temperature_ : float
        The default of t.
    directions_ : ndarray of shape (C, d)
        The principal components, for standardised scores: in standard deviations from their mean
        over the batch. For one-vs-one scores these are the sums over the pairs of each seen class.
    means_ : ndarray of shape (L, d)
        Mean of each of the L classes in these directions.
    covariance_ : ndarray of shape (d, d)
        Covariance within each class in these directions.
    log_prior_ : ndarray of shape (L,)
        log P(z). For equal frequencies, the constants that make the classes equally frequent.

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

    _learned = (
        *("_kind", "fell_back_", "class_prior_", "agreement_", "calibration_temperature_"),
        *("directions_", "means_", "covariance_", "log_prior_"),
        *("_center", "_projection", "_slopes", "_offsets"),
    )

    def __init__(
        self,
        head: BaseHead,
        *,
        class_prior: Literal["auto", "equal", "estimated"] = "auto",
        temperature: float | None = None,
    ) -> None:
        self.head = head
        self.class_prior = class_prior
        self.temperature = temperature

    def fit(
        self,
        scores: Scores | ArrayLike,
        examples: tuple[Scores | ArrayLike, ArrayLike] | None = None,
    ) -> BatchRefinement:
        """Estimate the distribution of the scores of each class.

        Parameters
        ----------
        scores : Scores or array-like
            Scores of all inputs of the batch.
        examples : scores and labels, optional
            More inputs, whose classes are known.
        """
        require_temperature(self.temperature)
        require_choice("class_prior", self.class_prior, CLASS_PRIORS)
        check_is_fitted(self.head, "classes_")
        self.items_, self.classes_ = self.head.items_, self.head.classes_
        table = as_scores(scores, self.items_)
        self._kind = table.kind
        n, L = len(table), len(self.classes_)
        self.fell_back_ = n < L
        if self.fell_back_:
            warnings.warn(
                f"a batch of {n} inputs is too small to estimate {L} classes: the answers of the "
                "head are kept",
                stacklevel=2,
            )
            return self
        head_log_proba = np.asarray(self.head.predict_log_proba(table), np.float64)
        projected = self._project(table)
        known = self._project_examples(examples)
        priors, least = self._priors_to_try(head_log_proba), dict(LEAST_AGREEMENT)
        if len(priors) > 1:
            self._refine(projected, head_log_proba, "estimated", *known)
            least["equal"] = max(least["equal"], self.agreement_ - MOST_LOST)
        for prior in priors:
            self._refine(projected, head_log_proba, prior, *known)
            if self.agreement_ >= least[prior]:
                return self
        self.fell_back_ = True
        warnings.warn(
            f"the refined answers are those of the head for only {self.agreement_:.0%} of the "
            "batch, so the answers of the head are kept: many classes may not occur in the batch, "
            "or the rankings may be wrong",
            stacklevel=2,
        )
        return self

    def _expected_kind(self) -> Kind | None:
        return self._kind

    def _project(self, table: Scores) -> Floats:
        """Find the principal components of the standardised scores; return the batch in them."""
        n, C = len(table), len(self.items_)
        self._center = sum((f.sum(axis=0) for f in _feature_blocks(table, C)), np.zeros(C)) / n
        scatter = np.zeros((C, C))
        for f in _feature_blocks(table, C):
            scatter += (f - self._center).T @ (f - self._center) / n
        std = np.sqrt(scatter.diagonal())
        largest = max(np.abs(table.values).max(), np.abs(self._center).max())
        std[std <= ROUNDING_UNITS * np.finfo(table.values.dtype).eps * largest] = 1.0
        d = min(C, max(DIRECTIONS_PER_CLASS * len(self.classes_), n // INPUTS_PER_DIRECTION))
        self._variances, self.directions_ = eigh(
            scatter / np.outer(std, std), subset_by_index=[C - d, C - 1]
        )
        self._projection = self.directions_ / std[:, None]
        self._shrinkage = max(d / (d + n), LEAST_SHRINKAGE)
        return self._in_directions(table)

    def _in_directions(self, table: Scores) -> Floats:
        blocks = _feature_blocks(table, len(self.items_))
        return np.concatenate([(f - self._center) @ self._projection for f in blocks])

    def _project_examples(self, examples: Any) -> tuple[Floats, Floats]:
        """Return examples in the principal components, and their probabilities: 0 and 1."""
        L = len(self.classes_)
        if examples is None:
            return np.zeros((0, self.directions_.shape[1])), np.zeros((0, L))
        table, labels = as_examples(examples, self.items_, self.classes_.tolist())
        return self._in_directions(table), np.eye(L)[np.searchsorted(self.classes_, labels)]

    def _priors_to_try(self, head_log_proba: Floats) -> tuple[ClassPrior, ...]:
        if self.class_prior != "auto":
            return (self.class_prior,)
        impossible = np.isneginf(head_log_proba).all(axis=0).any()
        if impossible or variety(head_log_proba) < LEAST_VARIETY:
            return ("estimated",)
        return ("equal", "estimated")

    def _refine(
        self,
        projected: Floats,
        head_log_proba: Floats,
        prior: ClassPrior,
        examples: Floats,
        known: Floats,
    ) -> None:
        """Run the EM algorithm, and calibrate its probabilities."""
        self.class_prior_ = prior
        log_share, offsets = head_log_proba, None
        everything = np.concatenate([projected, examples])
        scatter = len(projected) * np.diag(self._variances) + examples.T @ examples
        for _ in range(N_ITERATIONS):
            share = np.concatenate([np.exp(log_share), known])
            self._maximize(everything, share, scatter / len(everything))
            joint = head_log_proba + projected @ self._slopes + self._offsets
            if prior == "equal":
                self.log_prior_ = offsets = balancing_offsets(joint, offsets)
            log_share = log_softmax(joint + self.log_prior_, np, 1)
        same = most_probable(log_share) == most_probable(head_log_proba)
        self.agreement_ = float(same.mean())
        # A head that is completely sure has infinite log-odds.
        confidence = min(np.exp(head_log_proba.max(axis=1)).mean(), 1 - 1e-9)
        # The line is below chance for heads of high temperature, and no confidence can be so low.
        right = max(confidence, expit(CONFIDENCE[0] + CONFIDENCE[1] * logit(confidence)))
        self.calibration_temperature_ = calibrating_temperature(log_share, float(right))

    def _maximize(self, projected: Floats, share: Floats, total: Floats) -> None:
        """Estimate means, covariance and class prior from the probabilities of each class.

        ``total`` has the mean products of the inputs in the directions.
        """
        size = np.maximum(share.sum(axis=0), np.finfo(float).tiny)
        self.means_ = share.T @ projected / size[:, None]
        within = total - (self.means_.T * size) @ self.means_ / len(projected)
        mean_variance = np.trace(within) / len(within)
        within *= 1 - self._shrinkage
        # Directions without any variance also need a little.
        within.flat[:: len(within) + 1] += self._shrinkage * max(mean_variance, 1e-12)
        self.covariance_ = within
        self._slopes = DENSITY_WEIGHT * cho_solve(cho_factor(within), self.means_.T)
        self._offsets = -0.5 * (self.means_ * self._slopes.T).sum(axis=1)
        self.log_prior_ = np.log(size / len(projected))

    def _default_temperature(self) -> float:
        return 1.0 if self.fell_back_ else self.calibration_temperature_

    def _constants(self, kind: Kind, dtype: np.dtype[np.floating]) -> Constants:
        constants = with_prefix("head", self.head._full_constants(kind, dtype))
        return constants | pair_constants(len(self.items_), kind) | self._own_constants()

    def _own_constants(self) -> Constants:
        """Return what the head's answers are refined by: linear functions of the scores."""
        temperature = {"temperature_of_head": np.array(self.head.temperature_)}
        if self.fell_back_:
            return temperature
        return temperature | {
            "center": self._center,
            "slopes": self._projection @ self._slopes,
            "offsets": self._offsets + self.log_prior_,
        }

    def _log_posterior(self, values: NDArray[np.floating], kind: Kind) -> Floats:
        return np.asarray(self._formula(values, kind, self._own_constants(), np, None).T)

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        if kind != self._kind:
            raise RankshotError(f"fitted to {self._kind} scores, but these are {kind}")
        by_head = self.head._evaluate(f, kind, c, xp, lost)
        log_proba = log_softmax(by_head / c["temperature_of_head"], xp, 1)
        if self.fell_back_:
            return log_proba
        f = np.asarray(f, np.float64) if xp is np else f
        features = _features(f, kind, len(self.items_), c, xp)
        return log_proba + (features - c["center"]) @ c["slopes"] + c["offsets"]


def _features(f: Array, kind: Kind, n_items: int, c: Constants, xp: Library) -> Array:
    """Return one column per seen class: scores minus their mean, or sums over pairs."""
    f = class_scores(f, kind, n_items, c, xp)
    return f if kind == "one-vs-one" else f - xp.mean(f, axis=1, keepdims=True)


def _feature_blocks(table: Scores, n_items: int) -> Iterator[Floats]:
    for rows in row_blocks(len(table), table.values.shape[1]):
        yield _features(np.asarray(table.values[rows], np.float64), table.kind, n_items, {}, np)


def variety(log_proba: Floats) -> float:
    """Return the effective number of classes in the answers, as a share of all classes.

    This is the number of equally frequent classes with which two inputs have the same answer as
    often as here (Simpson's index, without bias in small batches).
    """
    n, L = log_proba.shape
    counts = np.bincount(most_probable(log_proba), minlength=L)
    same = counts @ (counts - 1) / (n * (n - 1)) if n > 1 else 0.0
    return 1 / (L * same) if same > 0 else np.inf


def calibrating_temperature(log_proba: Floats, accuracy: float) -> float:
    """Return the smallest temperature from 1 on with a mean confidence of at most ``accuracy``.

    The confidence of a row is its largest probability; at infinite temperature it is 1 / L.
    """
    # Sure rows may differ by thousands.
    return float(np.exp(-min(0.0, find_log_factor(log_proba, accuracy, (-20.0, 0.0)))))


def balancing_offsets(joint: Floats, start: Floats | None = None) -> Floats:
    """Return what to add to each column so that all columns get the same share of the rows.

    The shares of a row are its softmax. The offsets minimise a convex function whose gradient is
    the excess of each column over its share. Iterative scaling of the columns (Sinkhorn) has the
    same limit, but needs thousands of iterations if the rows are confident.
    """
    n, L = joint.shape

    def evaluate(added: Floats) -> Point:
        log_total = logsumexp(joint + added, axis=1)
        shares = np.exp(joint + added - log_total[:, None]).sum(axis=0) * L / n
        value = float(added.sum() - log_total.sum() * L / n)
        size = float(np.abs(added).sum() + np.abs(log_total).sum() * L / n)
        return Point(value, 1 - shares, size, 1 + shares)

    def curvature(added: Floats) -> Floats:
        share = softmax(joint + added, axis=1)
        # Where all rows are sure, there is no curvature: then the longest step is taken.
        return np.asarray(
            (np.diag(share.sum(axis=0)) - share.T @ share) * L / n + 1e-12 * np.eye(L)
        )

    # A class with probability 0 for all inputs cannot be balanced by any offset.
    impossible = np.isneginf(joint).all(axis=0).any()
    if not impossible:
        found = maximize(
            evaluate,
            curvature,
            np.zeros(L) if start is None else start,
            invariant=np.ones(L),
            tol=1e-20,
            longest_step=30.0,
        ).parameters
    if impossible or not np.abs(evaluate(found).gradient).max() < MOST_EXCESS:
        raise RankshotError(
            "the classes cannot be made equally frequent in this batch: use class_prior='estimated'"
        )
    return np.asarray(found - found.mean())


def refine_batch(
    head: BaseHead,
    scores: Scores,
    examples: tuple[Scores, ArrayLike] | None = None,
    batch: str = "auto",
) -> tuple[BaseHead, str]:
    """Return a head that a batch has refined, or the head as it was, and a sentence that says why.

    With "auto", a batch is used if there are at least five inputs per class, and if the refined
    answers are near those of the head.
    """
    n, L = len(scores), len(head.classes_)
    require_choice("batch", batch, ("auto", "yes", "no"))
    is_alone = not hasattr(head, "head")
    if batch == "yes" and not is_alone:
        raise RankshotError(f"a batch refines a head of new classes alone, not {short_repr(head)}")
    if batch == "no" or L < 2 or not is_alone:
        return head, ""
    if batch == "auto" and n < LEAST_PER_CLASS * L:
        return head, (
            f"batch: each input is decided alone; from {LEAST_PER_CLASS * L} inputs on, "
            f"{LEAST_PER_CLASS} per class, all are decided together"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refined = BatchRefinement(head).fit(scores, examples)
    if refined.fell_back_:
        return head, f"batch: each input is decided alone, since {caught[-1].message}"
    n_changed = n - round(refined.agreement_ * n)
    frequencies = "equally frequent" if refined.class_prior_ == "equal" else "of unequal frequency"
    return refined, (
        f"batch: the {n:,} inputs are decided together, the classes assumed to be {frequencies}: "
        f"this changes {format_count(n_changed, 'label')} ({n_changed / n:.0%}). Classes "
        "that do not occur do harm: leave them out, or decide each input alone"
    )

"""`BatchRefinement`: refine the predictions of a head by the distribution of a whole batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.special import digamma
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
from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr
from rankshot.core.validation import require_choice
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.evidence import find_log_factor
from rankshot.zeroshot.examples import as_examples
from rankshot.zeroshot.heads.base import BaseHead, require_temperature
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
LEAST_VARIETY = 0.9
"""The variety of the classes, found with equal prior probabilities, from which on they are assumed
to be equally frequent. On held-out seen classes, all classes have .88 to .99 and half of them .66
to .92: the largest where the head is poor, and both assumptions are about as good. On the
page of default numbers, .8 to 1 are not clearly worse."""
N_SCALINGS = 20
"""The steps of iterative scaling that make the classes of a batch equally frequent."""
MOST_DIRECTIONS = 200
"""Of more seen classes, this many principal components are used: the time grows with the cube."""
LEAST_SPREAD = 1e-9
CONCENTRATIONS = (1e-3, 1e4)
"""Bounds of variances, of shares and of the Dirichlet concentration."""
N_ITERATIONS = 10
"""The number of iterations of the EM algorithm. With poor rankings, more of them lead away from the
head: on held-out seen classes, five are as good, and 50 lose .03 without a reference."""


class BatchRefinement(BaseHead, BaseEstimator):
    r"""A head that uses all inputs of a batch, without labels, to predict each of them.

    The rankings say roughly where the inputs of a new class are; the batch shows where they
    really are. The scores of every class z have a normal distribution, all with one covariance,
    and

    .. math:: \log P(z|x) = \tfrac1t \left[ \log P_{head}(z|x)
              + \tfrac12 E \log N(f(x); \mu_z, \Sigma) + E \log P(z) \right] + \text{const}

    where f(x) are the standardised scores. The expectations are over what is not known: the means
    have a normal prior with the covariance between the classes, and the frequencies a Dirichlet
    prior. Both priors, Sigma (shrunk by OAS) and the distributions of means and frequencies are
    found by the variational EM algorithm, which starts from the probabilities of the head. Where a
    class has few inputs, its mean is uncertain, which lowers its expected density: so classes that
    do not occur vanish, and unequal frequencies are found. The factor 1/2 corrects for
    overconfident densities.

    First, all classes have the same P(z). If their shares of the batch are clearly unequal, P(z)
    is estimated. Otherwise the algorithm starts once more from a solution in which all classes
    have the same share, since the head may prefer some classes without reason.

    A batch shows no label, so it cannot be seen how much it helps: the temperature t is the
    smallest number from 1 on at which the mean confidence is not above that of the head.

    This is *transductive*: the predictions depend on the batch, so report them separately from
    those of other heads.

    Parameters
    ----------
    head : head
        A fitted head. The classes are those of this head.
    class_prior : {"auto", "equal", "estimated"}
        Whether P(z) is estimated, or all classes are assumed to be equally frequent. "auto"
        decides as described above.
    temperature : float or None
        t. By default as described above.

    Attributes
    ----------
    fell_back_ : bool
        Whether the head's own predictions are kept: with fewer inputs than classes they are, and
        the following attributes do not exist.
    agreement_ : float
        The share of the batch for which the refined predictions are those of the head.
    class_prior_ : {"equal", "estimated"}
        What was assumed of the frequencies.
    frequencies_ : ndarray of shape (L,)
        The share of each class in the batch.
    calibration_temperature_ : float
        The default of t.
    directions_ : ndarray of shape (C, d)
        Directions in which the covariance within classes is the identity, for scores minus their
        mean over the batch. For one-vs-one scores these are the sums over the pairs of each seen
        class.
    means_ : ndarray of shape (L, d)
        Expected mean of each of the L classes in these directions.
    spread_ : ndarray of shape (d,)
        The prior variance of these means.
    log_prior_ : ndarray of shape (L,)
        E log P(z).

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

    name = "batch-refinement"
    head: BaseHead
    _learned = (
        *("_kind", "fell_back_", "class_prior_", "agreement_", "frequencies_"),
        *(
            "calibration_temperature_",
            "directions_",
            "means_",
            "spread_",
            "log_prior_",
            "_center",
            "_slopes",
            "_offsets",
        ),
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
                f"a batch of {n} inputs is too small to estimate {L} classes: the predictions "
                "of the head are kept",
                stacklevel=2,
            )
            return self
        head_log_proba = np.asarray(self.head.predict_log_proba(table), np.float64)
        data = self._standardize(table), head_log_proba, *self._standardize_examples(examples)
        # A class that the head rules out for all inputs cannot have the same share.
        is_possible = np.isfinite(head_log_proba).any(axis=0).all()
        if self.class_prior == "equal" and not is_possible:
            raise RankshotError(
                "the classes cannot be made equally frequent in this batch: use "
                "class_prior='estimated'"
            )
        prior = self.class_prior
        if prior == "auto":
            self._refine(*data, prior="equal")
            is_even = is_possible and variety(self.frequencies_) >= LEAST_VARIETY
            prior = "equal" if is_even else "estimated"
        self.class_prior_: ClassPrior = prior
        start = self._refine(*data, prior="balanced") if prior == "equal" else None
        log_share = self._refine(*data, prior=prior, start=start)
        self.agreement_ = float(np.mean(most_probable(log_share) == most_probable(head_log_proba)))
        confidence = np.exp(head_log_proba.max(axis=1)).mean()
        self.calibration_temperature_ = calibrating_temperature(log_share, float(confidence))
        return self

    def _expected_kind(self) -> Kind | None:
        return self._kind

    def _standardize(self, table: Scores) -> Floats:
        """Return the batch in the principal components of its standardised scores."""
        n, C = len(table), len(self.items_)
        self._center = sum((f.sum(axis=0) for f in _feature_blocks(table, C)), np.zeros(C)) / n
        scatter = np.zeros((C, C))
        for f in _feature_blocks(table, C):
            scatter += (f - self._center).T @ (f - self._center) / n
        std = np.sqrt(scatter.diagonal())
        largest = max(np.abs(table.values).max(), np.abs(self._center).max())
        std[std <= ROUNDING_UNITS * np.finfo(table.values.dtype).eps * largest] = 1.0
        d = min(C, MOST_DIRECTIONS)
        components = eigh(scatter / np.outer(std, std), subset_by_index=[C - d, C - 1])[1]
        self._components = components / std[:, None]
        return self._in_components(table)

    def _in_components(self, table: Scores) -> Floats:
        blocks = _feature_blocks(table, len(self.items_))
        return np.concatenate([(f - self._center) @ self._components for f in blocks])

    def _standardize_examples(self, examples: Any) -> tuple[Floats, Floats]:
        """Return examples in the principal components, and their probabilities: 0 and 1."""
        L = len(self.classes_)
        if examples is None:
            return np.zeros((0, self._components.shape[1])), np.zeros((0, L))
        table, labels = as_examples(examples, self.items_, self.classes_.tolist())
        return self._in_components(table), np.eye(L)[np.searchsorted(self.classes_, labels)]

    def _refine(
        self,
        points: Floats,
        head_log_proba: Floats,
        examples: Floats,
        known: Floats,
        *,
        prior: Literal["estimated", "balanced", "equal"],
        start: Floats | None = None,
    ) -> Floats:
        """Run the variational EM algorithm; return the log-probabilities of the batch."""
        L = len(self.classes_)
        everything = np.concatenate([points, examples])
        n = len(everything)
        total = everything.T @ everything / n
        log_share = head_log_proba if start is None else start
        share = np.concatenate([np.exp(log_share), known])
        within, concentration, self.log_prior_ = None, 1.0, np.full(L, -np.log(L))
        for _ in range(N_ITERATIONS):
            size, sums = share.sum(axis=0), share.T @ everything
            if within is None:
                means = sums / np.maximum(size, np.finfo(float).tiny)[:, None]
                within = total - means.T @ sums / n
            within = shrink(within, n)
            # In these directions, the covariance within classes is the identity.
            variances, axes = eigh(total, within)
            self.spread_ = np.maximum(variances - 1, LEAST_SPREAD)
            uncertainty = 1 / (size[:, None] + 1 / self.spread_)
            self.means_ = sums @ axes * uncertainty
            self._slopes = DENSITY_WEIGHT * axes @ self.means_.T
            expected = (self.means_**2 + uncertainty).sum(axis=1)
            self._offsets = -0.5 * DENSITY_WEIGHT * expected
            if prior == "estimated":
                concentration = improve_concentration(concentration, size)
                self.log_prior_ = digamma(size + concentration) - digamma(n + L * concentration)
            joint = head_log_proba + points @ self._slopes + self._offsets
            if prior == "balanced":
                self.log_prior_ = balance(joint, self.log_prior_)
            log_share = log_softmax(joint + self.log_prior_, np, 1)
            share = np.concatenate([np.exp(log_share), known])
            self.frequencies_ = share[: len(points)].mean(axis=0)
            inverse = within @ axes
            means = self.means_ @ inverse.T
            within = total - (means.T @ sums + sums.T @ means - (means.T * size) @ means) / n
            within += (inverse * (size @ uncertainty / n)) @ inverse.T
        self.directions_ = self._components @ axes
        self._slopes = self._components @ self._slopes
        return log_share

    def _default_temperature(self) -> float:
        return 1.0 if self.fell_back_ else self.calibration_temperature_

    def _constants(self, kind: Kind, dtype: np.dtype[np.floating]) -> Constants:
        constants = with_prefix("head", self.head._full_constants(kind, dtype))
        return constants | pair_constants(len(self.items_), kind) | self._own_constants()

    def _own_constants(self) -> Constants:
        """Return what the head's predictions are refined by: linear functions of the scores."""
        temperature = {"temperature_of_head": np.array(self.head.temperature_)}
        if self.fell_back_:
            return temperature
        return temperature | {
            "center": self._center,
            "slopes": self._slopes,
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


def variety(frequencies: Floats) -> float:
    """Return the effective number of classes (Simpson's index), as a share of all classes."""
    return float(1 / (len(frequencies) * (frequencies**2).sum()))


def balance(joint: Floats, log_prior: Floats) -> Floats:
    """Return constants that give all columns nearly the same share of the rows (Sinkhorn)."""
    L = joint.shape[1]
    for _ in range(N_SCALINGS):
        share = np.exp(log_softmax(joint + log_prior, np, 1)).mean(axis=0)
        log_prior = log_prior - np.log(np.maximum(share * L, LEAST_SPREAD))
    return log_prior


def shrink(covariance: Floats, n: int) -> Floats:
    """Return an estimated covariance shrunk to a multiple of the identity.

    The weight is that of the oracle approximating shrinkage (Chen, Wiesel, Eldar and Hero 2010).
    """
    d = len(covariance)
    mean = np.trace(covariance) / d
    squares = (covariance**2).mean()
    excess = (n + 1) * (squares - mean**2 / d)
    weight = min(1.0, (squares + mean**2) / excess) if excess > 0 else 1.0
    # Directions without any variance also need a little.
    return np.asarray((1 - weight) * covariance + weight * max(mean, 1e-12) * np.eye(d))


def improve_concentration(concentration: float, size: Floats) -> float:
    """Return a Dirichlet concentration under which the sizes are more likely (Minka 2000)."""
    L, n = len(size), size.sum()
    ratio = (digamma(size + concentration) - digamma(concentration)).mean() / (
        digamma(n + L * concentration) - digamma(L * concentration)
    )
    return float(np.clip(concentration * ratio, *CONCENTRATIONS))


def calibrating_temperature(log_proba: Floats, accuracy: float) -> float:
    """Return the smallest temperature from 1 on with a mean confidence of at most ``accuracy``.

    The confidence of a row is its largest probability; at infinite temperature it is 1 / L.
    """
    # Sure rows may differ by thousands.
    return float(np.exp(-min(0.0, find_log_factor(log_proba, accuracy, (-20.0, 0.0)))))


def refine_batch(
    head: BaseHead,
    scores: Scores,
    examples: tuple[Scores, ArrayLike] | None = None,
    batch: str = "auto",
) -> tuple[BaseHead, str]:
    """Return a head that a batch has refined, or the head as it was, and a sentence that says why.

    With "auto", a batch is used if there are at least five inputs per class.
    """
    n, L = len(scores), len(head.classes_)
    require_choice("batch", batch, ("auto", "yes", "no"))
    is_alone = head.head is None
    if batch == "yes" and not is_alone:
        raise RankshotError(f"a batch refines a head of new classes alone, not {short_repr(head)}")
    if batch == "no" or L < 2 or not is_alone:
        return head, ""
    if batch == "auto" and n < LEAST_PER_CLASS * L:
        return head, (
            f"batch: inputs are predicted one at a time; from {LEAST_PER_CLASS * L} inputs on, "
            f"{LEAST_PER_CLASS} per class, they are predicted as a batch"
        )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        refined = BatchRefinement(head).fit(scores, examples)
    if refined.fell_back_:
        return head, f"batch: inputs are predicted one at a time, since {caught[-1].message}"
    n_changed = n - round(refined.agreement_ * n)
    absent = refined.classes_[refined.frequencies_ * n < 1].tolist()
    return refined, (
        f"batch: the {n:,} inputs are predicted as a batch: this changes "
        f"{format_count(n_changed, 'label')} ({n_changed / n:.0%})"
        + f". No input seems to be of {quote_names(absent)}"
        * bool(absent)
    )

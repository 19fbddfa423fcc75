"""`BatchRefinement`: refine the predictions of a head by the distribution of a whole batch."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.special import digamma, log_softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import row_blocks
from rankshot.core.validation import require_choice
from rankshot.zeroshot.class_means import DENSITY_WEIGHT
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.evidence import find_log_factor
from rankshot.zeroshot.examples import as_examples
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import (
    ROUNDING_UNITS,
    Scores,
    count_effective,
    standardize_blocks,
    standardize_rows,
)
from rankshot.zeroshot.tables import as_scores
from rankshot.zeroshot.weighted_mean import Examples, WeightedMean

Floats = NDArray[np.float64]
ClassPrior = Literal["auto", "equal", "estimated"]
LEAST_PER_CLASS = 5
"""The inputs per class from which on a batch is used without being asked for. On held-out seen
classes, batches of two or three inputs per class gain nothing, those of five gain .01 to .03."""
EQUALITY_POWER = 6
"""The weight of equal frequencies is this power of the variety of the classes. On held-out seen
classes, 2 to 16 are not clearly worse."""
LARGEST_SHARE_ERROR = 1e-3
MOST_SCALINGS = 200
"""Iterative scaling stops as soon as the relative errors of all shares are this small, or after so
many steps."""
MOST_DIRECTIONS = 200
"""Of more seen classes, this many principal components are used: the time grows with the cube."""
LEAST_SPREAD = 1e-9
CONCENTRATIONS = (1e-3, 1e4)
"""Bounds of variances, of shares and of the Dirichlet concentration."""
N_ITERATIONS = 10
"""The number of iterations of the EM algorithm. With poor rankings, more of them lead away from the
head: on held-out seen classes, five are as good, and 50 lose .03 without a reference."""


class Data(NamedTuple):
    """A batch in its principal components, the head's log-probabilities of it, and examples.

    The probabilities of examples are 0 and 1.
    """

    points: Floats
    head_log_proba: Floats
    examples: Floats
    known: Floats


class Mixture(NamedTuple):
    """One normal distribution per class: its log-probabilities of the batch.

    ``slopes`` and ``offsets`` are what it adds to those of the head, as linear functions of points.
    """

    log_share: Floats
    slopes: Floats
    offsets: Floats


class BatchRefinement(Predictor, BaseEstimator):
    r"""A head that uses all inputs of a batch, without labels, to predict each of them.

    The rankings predict roughly which scores the inputs of a new class have; the batch shows which
    scores they really have. The scores of every class z have a normal distribution, all with one
    covariance, and

    .. math:: \log P(z|x) = \tfrac1t \left[ \log P_{head}(z|x)
              + \tfrac12 E \log N(f(x); \mu_z, \Sigma) + E \log P(z) \right] + \text{const}

    where f(x) are the scores, standardised in each input and then over the batch: some inputs may
    have scores many times as large as others, such as long texts, which is hardly informative about
    their class. The expectations are over unknown parameters: the means have a normal prior with
    the covariance between the classes, and the frequencies a Dirichlet prior. Both priors, Sigma
    (shrunk by OAS) and the distributions of means and frequencies are found by the variational EM
    algorithm, which starts from the probabilities of the head. Where a class has few inputs, its
    mean is uncertain, which lowers its expected density: so classes that do not occur get hardly
    any inputs, and unequal frequencies are found. The factor 1/2 corrects for overconfident
    densities.

    The head may prefer some classes without reason, or they may really be more frequent. So two
    solutions are found. In one of them P(z) is estimated. In the other one all classes have the
    same P(z), and the algorithm starts from probabilities that give all of them the same share of
    the batch. The log-probabilities are a weighted mean of both. The second one has the weight
    v^6, where v is the variety of the classes that are found with the same P(z) from the head's
    own probabilities: 1 / (L Σ share²), which is 1 if all L classes have the same share and 1/2 if
    half of them are absent. The power 6 was chosen on held-out seen classes.

    If the head has learned evidence of another model, its scores are further columns of f: each
    block of columns has the same variance.

    With labelled examples, their classes are fixed in the algorithm. A head that has learned from
    the same examples repeats their errors for all inputs. The rankings correct these errors, as
    the densities do: so the log-probabilities of the rankings alone are added to those of the
    head, also with the factor 1/2.

    A batch has no labels, so it cannot show how much it helps: the temperature t is the smallest
    number of at least 1 for which the mean confidence does not exceed that of the head. If there
    is none, as where all classes are equally probable or inputs are copies of a few, the head
    stays as it was.

    This is *transductive*: the predictions depend on the batch, so report them separately from
    those of other heads.

    Parameters
    ----------
    head : WeightedMean or LinearHead
        A fitted head. The classes are those of this head.
    class_prior : {"auto", "equal", "estimated"}
        Whether P(z) is estimated, or all classes are assumed to be equally frequent. "auto"
        weighs both as described above.

    Attributes
    ----------
    head_ : LinearHead
        The refined head, as a value. With fewer than two inputs per class it is the head itself,
        and the following attributes do not exist.
    agreement_ : float
        The share of the batch for which the refined predictions are those of the head.
    equality_ : float
        The weight of the solution with equal frequencies, from 0 to 1.
    frequencies_ : ndarray of shape (L,)
        The share of each class in the batch.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> items = ["bus", "car", "fox", "leopard", "oak"]
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard"], ["bus"]], items=items, targets=["cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> truth = np.repeat(["cat", "truck"], 100)
    >>> batch = np.repeat([[0.0, 0, 6, 1.5, 0], [1.5, 4, 0, 0, 0]], 100, axis=0)
    >>> batch += np.random.default_rng(0).normal(size=batch.shape)
    >>> print(f"{np.mean(head.predict(batch) == truth):.1f}")
    0.8
    >>> refined = rs.zeroshot.BatchRefinement(head).fit(batch)
    >>> print(f"{np.mean(refined.predict(batch) == truth):.1f}")
    1.0
    """

    def __init__(
        self,
        head: WeightedMean | LinearHead,
        *,
        class_prior: ClassPrior = "auto",
    ) -> None:
        self.head = head
        self.class_prior = class_prior

    def fit(self, scores: Scores | ArrayLike, examples: Examples | None = None) -> BatchRefinement:
        """Estimate the distribution of the scores of each class.

        Parameters
        ----------
        scores : Scores or array-like
            Scores of all inputs of the batch.
        examples : scores and labels, optional
            Inputs whose classes are known, such as those that the head has learned from.
        """
        require_choice("class_prior", self.class_prior, get_args(ClassPrior))
        fitted = self.head
        if isinstance(fitted, WeightedMean):
            fitted = fitted.use_batch(as_scores(scores, fitted.inner.seen))
        head = fitted.inner
        self.classes_ = head.classes_
        table = head.require(as_scores(scores, head.seen))
        n, L = len(table), len(head.classes)
        if problem := describe_small_batch(n, L):
            warnings.warn(problem, stacklevel=2)
            self.head_ = head
            return self
        base = head
        if examples is not None and isinstance(fitted, WeightedMean):
            base = self._add_rankings(fitted)
        few, known = None, np.zeros((0, L))
        if examples is not None:
            few, labels = as_examples(examples, head.seen, head.classes)
            known = np.eye(L)[np.searchsorted(head.classes_, labels)]
        # Another model's scores are columns as well, if all inputs have them.
        evidence = base.evidence if few is None or few.evidence is not None else ()
        components = find_components(table, evidence)
        log_proba = np.asarray(base.log_proba(table), np.float64)
        points = components.transform(table)
        shown = np.zeros((0, points.shape[1])) if few is None else components.transform(few)
        data = Data(points, log_proba, shown, known)
        self.equality_, mixtures = self._refine(data)
        slopes = components.axes @ sum(w * one.slopes for w, one in mixtures)
        offsets = sum(w * one.offsets for w, one in mixtures) - components.center @ slopes
        log_share = log_softmax(sum(w * one.log_share for w, one in mixtures), axis=1)
        alone = np.asarray(head.log_proba(table), np.float64)
        confidence = float(np.exp(alone.max(axis=1)).mean())
        temperature = calibrating_temperature(log_share, confidence)
        has_temperature = np.isfinite(temperature)
        log_share = log_share if has_temperature else alone
        self.frequencies_ = np.exp(log_share).mean(axis=0)
        self.agreement_ = float(np.mean(most_probable(log_share) == most_probable(alone)))
        if not has_temperature:
            self.head_ = head
            return self
        # Features keep their slopes. The mean of evidence is subtracted in each input.
        all_slopes, C = base.slopes / base.temperature, len(head.seen)
        all_slopes[:, base.blocks["scores"]] += slopes[:C].T
        if evidence:
            all_slopes[:, base.blocks["evidence"]] += (slopes[C:] - slopes[C:].mean(axis=0)).T
        self.head_ = replace(
            base,
            slopes=all_slopes,
            rank_slopes=base.rank_slopes / base.temperature,
            offsets=base.offsets / base.temperature + offsets,
            temperature=temperature,
            kind=table.kind,
            about={**head.about, "batch": {"n": n}},
        )
        return self

    @staticmethod
    def _add_rankings(fitted: WeightedMean) -> LinearHead:
        """The head, plus half of the log-probabilities by the rankings alone.

        If a class has examples only, nothing is added.
        """
        head, other = fitted.head_, fitted.by_rankings_
        if not fitted.has_examples or not fitted.weights_.any(axis=1).all():
            return head
        slopes = head.slopes / head.temperature
        slopes[:, head.blocks["scores"]] += DENSITY_WEIGHT * other.slopes / other.temperature
        offsets = head.offsets / head.temperature
        offsets = offsets + DENSITY_WEIGHT * other.offsets / other.temperature
        ranks = head.rank_slopes / head.temperature
        ranks = ranks + DENSITY_WEIGHT * other.rank_slopes / other.temperature
        return replace(head, slopes=slopes, offsets=offsets, rank_slopes=ranks, temperature=1.0)

    def _refine(self, data: Data) -> tuple[float, list[tuple[float, Mixture]]]:
        """The weight of equal frequencies, and the solutions with their weights."""
        L = data.head_log_proba.shape[1]
        equality = float(self.class_prior == "equal")
        if self.class_prior == "auto":
            share = np.exp(run_em(data, prior="equal").log_share).mean(axis=0)
            equality = (count_effective(share) / L) ** EQUALITY_POWER
        mixtures = []
        if equality > 0:
            start = run_em(data, prior="balanced").log_share
            mixtures.append((equality, run_em(data, prior="equal", start=start)))
        if equality < 1:
            mixtures.append((1 - equality, run_em(data, prior="estimated")))
        return equality, mixtures

    @property
    def inner(self) -> LinearHead:
        """The fitted head, as a value."""
        check_is_fitted(self, "head_")
        return self.head_


class Components(NamedTuple):
    """The principal components of the columns of a batch.

    The columns are the standardised scores, and those of another model for the classes
    ``evidence``, with mean 0 in each input.
    """

    evidence: tuple[str, ...]
    center: Floats
    axes: Floats

    def transform(self, table: Scores) -> Floats:
        """Inputs along the components."""
        blocks = list_columns(table, self.evidence)
        return np.concatenate([(f - self.center) @ self.axes for f in blocks])


def list_columns(table: Scores, evidence: tuple[str, ...]) -> Iterator[Floats]:
    """The columns of some inputs at a time."""
    if not evidence:
        yield from standardize_blocks(table)
        return
    for rows in row_blocks(len(table), table.values.shape[1]):
        others = np.asarray(table[rows].evidence_of(evidence), np.float64)
        centered = others - others.mean(axis=1, keepdims=True)
        yield np.hstack([standardize_rows(table.values[rows]), centered])


def find_components(table: Scores, evidence: tuple[str, ...] = ()) -> Components:
    """The principal components of a batch.

    All columns of a block have the same variance, and both blocks have the same in all.
    """
    n, C, E = len(table), len(table.items), len(evidence)
    d = C + E
    center = sum((f.sum(axis=0) for f in list_columns(table, evidence)), np.zeros(d)) / n
    scatter = np.zeros((d, d))
    for f in list_columns(table, evidence):
        scatter += (f - center).T @ (f - center) / n
    std = np.sqrt(scatter.diagonal())
    eps = np.finfo(table.values.dtype).eps
    rounding = ROUNDING_UNITS * eps * np.abs(table.values).max()
    std[:C][std[:C] * table.values.std() <= rounding] = 1.0
    std[C:][std[C:] <= ROUNDING_UNITS * eps * max(std[C:], default=0.0)] = 1.0
    weight = np.append(np.ones(C), np.full(E, np.sqrt(C / max(E, 1)))) / std
    kept = min(d, MOST_DIRECTIONS)
    axes = eigh(scatter * np.outer(weight, weight), subset_by_index=[d - kept, d - 1])[1]
    return Components(evidence, center, axes * weight[:, None])


def run_em(
    data: Data,
    *,
    prior: Literal["estimated", "balanced", "equal"],
    start: Floats | None = None,
) -> Mixture:
    """Run the variational EM algorithm."""
    points, head_log_proba, examples, known = data
    L = head_log_proba.shape[1]
    everything = np.concatenate([points, examples])
    n = len(everything)
    total = everything.T @ everything / n
    log_share = head_log_proba if start is None else start
    share = np.concatenate([np.exp(log_share), known])
    within, concentration, log_prior = None, 1.0, np.full(L, -np.log(L))
    for _ in range(N_ITERATIONS):
        size, sums = share.sum(axis=0), share.T @ everything
        if within is None:
            means = sums / np.maximum(size, np.finfo(float).tiny)[:, None]
            within = total - means.T @ sums / n
        within = shrink(within, n)
        # In these directions, the covariance within classes is the identity.
        variances, axes = eigh(total, within)
        spread = np.maximum(variances - 1, LEAST_SPREAD)
        uncertainty = 1 / (size[:, None] + 1 / spread)
        means = sums @ axes * uncertainty
        slopes = DENSITY_WEIGHT * axes @ means.T
        offsets = -0.5 * DENSITY_WEIGHT * (means**2 + uncertainty).sum(axis=1)
        if prior == "estimated":
            concentration = improve_concentration(concentration, size)
            log_prior = digamma(size + concentration) - digamma(n + L * concentration)
        joint = head_log_proba + points @ slopes + offsets
        if prior == "balanced":
            log_prior = balance(joint, log_prior)
        log_share = log_softmax(joint + log_prior, axis=1)
        share = np.concatenate([np.exp(log_share), known])
        inverse = within @ axes
        back = means @ inverse.T
        within = total - (back.T @ sums + sums.T @ back - (back.T * size) @ back) / n
        within += (inverse * (size @ uncertainty / n)) @ inverse.T
    return Mixture(log_share, slopes, offsets + log_prior)


def balance(joint: Floats, log_prior: Floats) -> Floats:
    """Constants that give all columns nearly the same share of the rows (Sinkhorn)."""
    L = joint.shape[1]
    for _ in range(MOST_SCALINGS):
        share = np.exp(log_softmax(joint + log_prior, axis=1)).mean(axis=0)
        if np.abs(share * L - 1).max() < LARGEST_SHARE_ERROR:
            break
        log_prior = log_prior - np.log(np.maximum(share * L, LEAST_SPREAD))
    return log_prior


def shrink(covariance: Floats, n: int) -> Floats:
    """An estimated covariance shrunk to a multiple of the identity.

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
    """A Dirichlet concentration under which the sizes are more likely (Minka 2000)."""
    L, n = len(size), size.sum()
    ratio = (digamma(size + concentration) - digamma(concentration)).mean() / (
        digamma(n + L * concentration) - digamma(L * concentration)
    )
    return float(np.clip(concentration * ratio, *CONCENTRATIONS))


def calibrating_temperature(log_proba: Floats, accuracy: float) -> float:
    """The smallest temperature from 1 on with a mean confidence of at most ``accuracy``.

    The confidence of a row is its largest probability; at infinite temperature it is 1 / L.
    """
    # Sure rows may differ by thousands.
    return float(np.exp(-min(0.0, find_log_factor(log_proba, accuracy, (-20.0, 0.0)))))


def describe_small_batch(n: int, n_classes: int) -> str:
    """Why n inputs are too few to learn from them, or an empty text."""
    # One input per class shows nothing of the variance within classes.
    if n >= 2 * n_classes:
        return ""
    return (
        f"a batch of {n} inputs is too small to estimate {n_classes} classes: the predictions of "
        "the head are kept"
    )


def refine_batch(
    head: WeightedMean | LinearHead,
    scores: Scores,
    examples: Examples | None = None,
    batch: bool | Literal["auto"] = "auto",  # noqa: FBT001 (a choice of three)
) -> LinearHead:
    """A head that a batch has refined, or the head as it was.

    With "auto", a batch is used if there are at least five inputs per class. What was done is in
    ``about`` of the head: the number of inputs, of those whose label changes, and the classes that
    no input seems to be of; or why inputs are classified one at a time.
    """
    fitted = head.inner
    n, L = len(scores), len(fitted.classes)
    if batch is False or L < 2:
        return fitted
    reason, least = describe_small_batch(n, L), LEAST_PER_CLASS * L
    if batch == "auto" and n < least:
        reason = f"{least} or more are classified jointly ({LEAST_PER_CLASS} per class)"
    if reason:
        return fitted.with_about(batch={"n": n, "reason": reason})
    refined = BatchRefinement(head).fit(scores, examples)
    changed = n - round(refined.agreement_ * n)
    absent = refined.classes_[refined.frequencies_ * n < 1].tolist()
    return refined.head_.with_about(batch={"n": n, "changed": changed, "absent": absent})

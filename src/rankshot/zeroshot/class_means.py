r"""Means of classes: what a reference, the rankings and labelled examples say of them together.

An input x (its scores, and its features if there are any) is the mean of its class plus noise with
the covariance S, the same for all classes. All means are those of a posterior distribution: each is
shrunk towards what is known beforehand, by the inputs of its class.

- *Seen classes.* A seen class has a high score of its own, a e_c; inputs of a reference that the
  classifier assigns to it tell the rest. The variance of this rest is measured by the products of
  pairs of inputs of one class.
- *New classes.* Beforehand, the mean is W · (means of the seen classes), with the weights W of the
  rankings, rescaled to the length that new classes have. The residual is normal. A shift is common
  to all new classes. Examples correct all of it, from the first one on.

The log-likelihood of a class with the mean m is then linear in x:

.. math:: v(x, m) = t (x P m - \tfrac12 m P m)

with the precision P of an input about an uncertain mean. The factor t calibrates: the values of a
class vary over inputs of other classes as much as by the model. `fit_correction` is a logistic
regression of what is left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
ISOTROPIC = 0.75
"""The share of the noise that is the same in all directions, however many inputs tell its shape."""
SIGNAL = 0.35
"""ρ, the mean squared length of the mean of a class where inputs have length 1, without any
reference."""
EXPLAINED = 0.225, 0.375
"""The variance of the means of new classes that the rankings explain, and the variance of the rest,
as shares of ρ of the seen classes."""
SLOPE_STD = 0.5
"""The standard deviation of the factor of the rankings' means, see `measure_slope`."""
FEATURE_SHARE = 0.5
"""The share of features in the squared length of a point, with many examples."""
RANKING_EXAMPLES = 5.0
"""The log-posterior by the rankings has the weight k / (k + n) beside n examples per class: the
means know the rankings as well."""
RIDGE = 1.0
"""The penalty of the logistic correction, for inputs of length 1."""
FACTORS = 0.5, 0.5
"""The factors of the log-posteriors by rankings and by means, before any example is left out, and
the standard deviation of their logarithms."""
N_FOLDS = 5
"""Inputs are left out in this number of groups."""
TINY = 1e-12


class Usual(NamedTuple):
    """How inputs become points x: what is subtracted, divided by, and the weight of features.

    Attributes
    ----------
    mean, std : ndarray of shape (C,)
        Of each standardised score over a reference.
    n_features : int
    feature_weight : float
        From 0 to 1: squared, the share of features in the squared length of x.
    """

    mean: Floats
    std: Floats
    n_features: int
    feature_weight: float = 0.0

    @classmethod
    def measure(cls, f: Floats | None, C: int, n_features: int, share: float) -> Self:
        """Return what is usual over a reference ``f``, or without one if it is None."""
        if f is None:
            return cls(np.zeros(C), np.ones(C), n_features, share**0.5)
        std = f.std(axis=0)
        return cls(f.mean(axis=0), np.where(std > TINY**0.5, std, 1.0), n_features, share**0.5)

    def embed(self, f: Floats, features: Floats | None) -> Floats:
        """Return inputs as points: standardised scores, and features of length 1."""
        x = (f - self.mean) / self.std / np.sqrt(f.shape[1])
        if features is None or self.feature_weight == 0:
            return np.asarray(x)
        weight = self.feature_weight
        return np.hstack([np.sqrt(1 - weight**2) * x, weight * features])

    def unfold(self, slopes: Floats, offsets: Floats) -> tuple[Floats, Floats, Floats]:
        """Return slopes of standardised scores, of features of length 1, and offsets."""
        C, weight = len(self.mean), self.feature_weight
        of_scores = slopes[:, :C] * np.sqrt((1 - weight**2) / C) / self.std
        of_features = weight * slopes[:, C:]
        if weight == 0:
            of_features = np.zeros((len(slopes), self.n_features))
        return of_scores, of_features, offsets - of_scores @ self.mean


class Groups(NamedTuple):
    """Sums of points over classes: all that the means of classes depend on."""

    counts: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def collect(cls, x: Floats, codes: Codes, n_classes: int) -> Self:
        """Return the number, the sum and the sum of squared lengths of the points of each class."""
        sums = np.zeros((n_classes, x.shape[1]))
        np.add.at(sums, codes, x)
        counts, squares = (
            np.bincount(codes, weight, n_classes).astype(float)
            for weight in (None, np.vecdot(x, x))
        )
        return cls(counts, sums, squares)

    @classmethod
    def expect(cls, x: Floats, proba: Floats) -> Self:
        """Return what points of uncertain classes tell, given the probabilities of these.

        The number of points of a class is multiplied by their mean probability (their purity), each
        weighed by its own: 10 points that are of the class with probability .1 count as .1 point.
        """
        size = proba.sum(axis=0)
        purity = np.vecdot(proba.T, proba.T) / np.maximum(size, TINY)
        return cls(purity * size, purity[:, None] * (proba.T @ x), np.zeros(len(size)))

    def plus(self, other: Self) -> Self:
        """Return the sums over both."""
        return type(self)(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    @property
    def means(self) -> Floats:
        """The mean of each class, 0 for one without points."""
        return np.asarray(self.sums / np.where(self.counts > 0, self.counts, 1)[:, None])

    def common(self) -> float | None:
        """Return the mean product of two points of one class, of classes with two or more."""
        many = self.counts > 1
        if not many.any():
            return None
        pairs = (np.vecdot(self.sums, self.sums) - self.squares)[many]
        return float((pairs / (self.counts * (self.counts - 1))[many]).mean())


class Noise(NamedTuple):
    """The noise within classes, and the variance of all inputs.

    Attributes
    ----------
    axes : ndarray of shape (d, d)
        Its principal axes, as columns.
    variance : ndarray of shape (d,)
        Its variance along each of them.
    total : ndarray of shape (d, d), optional
        The covariance of all inputs of a reference, in these axes.
    """

    axes: Floats
    variance: Floats
    total: Floats | None = None

    @classmethod
    def measure(cls, x: Floats, codes: Codes, means: Floats) -> Self:
        """Return the noise of points about the means of their classes."""
        n = len(x)
        around = x - means[codes]
        within = around.T @ around / max(n - len(np.unique(codes)), 1)
        variance, axes = _find_axes(within, ISOTROPIC)
        centered = (x - x.mean(axis=0)) @ axes
        return cls(axes, variance, centered.T @ centered / n)

    @classmethod
    def expect(cls, x: Floats, codes: Codes) -> Self:
        """Return the noise of examples alone; its shape counts as far as they can tell it."""
        groups = Groups.collect(x, codes, int(codes.max()) + 1)
        d, free = x.shape[1], len(x) - int((groups.counts > 0).sum())
        around = x - groups.means[codes]
        within = around.T @ around / max(free, 1)
        size = np.trace(within)
        shape = within / size if size > TINY else np.eye(d) / d
        told = free / (free + d)
        variance, axes = _find_axes((1 - SIGNAL) * shape, 1 - (1 - ISOTROPIC) * told)
        return cls(axes, variance)


def _find_axes(covariance: Floats, isotropic: float) -> tuple[Floats, Floats]:
    """Return variances and principal axes of a covariance that is shrunk to a sphere."""
    d = len(covariance)
    shrunk = (1 - isotropic) * covariance
    shrunk.flat[:: d + 1] += isotropic * max(np.trace(covariance), TINY) / d
    return np.linalg.eigh(shrunk)


class SeenMeans(NamedTuple):
    """The means of the seen classes, in the axes of the noise; ``signal`` is ρ."""

    means: Floats
    signal: float


class ClassMeans(NamedTuple):
    """The means of seen and of new classes along the axes of the noise, and the precision.

    ``slope`` says how well the rankings explain the examples (see `measure_slope`).
    """

    seen: Floats
    new: Floats
    precision: Floats
    slope: float = 1.0


def fit_seen_means(groups: Groups, noise: Noise, n_classes: int) -> SeenMeans:
    """Return the means of the seen classes by the inputs that are assigned to them.

    Parameters
    ----------
    groups : Groups
        Of a reference, by the predicted classes.
    noise : Noise
    n_classes : int
        The first coordinates of a point are the scores of the seen classes.
    """
    C, d = n_classes, len(noise.axes)
    common, many = groups.common(), groups.counts > 1
    rho = SIGNAL if common is None else float(np.clip(common, 0.02, 0.95))
    means = groups.means
    own = float(means[many, np.flatnonzero(many)].mean()) if many.any() else np.sqrt(rho)
    expected = own * noise.axes[:C]
    residual = max(rho - own**2, 0.05 * rho) / d
    n = groups.counts[:, None]
    gain = n * residual / (n * residual + noise.variance)
    return SeenMeans(expected + gain * np.where(n > 0, means @ noise.axes - expected, 0.0), rho)


def expect_seen_means(n_classes: int, noise: Noise) -> SeenMeans:
    """Return the means of the seen classes without a reference: only their own scores are high."""
    return SeenMeans(np.sqrt(SIGNAL) * noise.axes[:n_classes], SIGNAL)


def fit_new_means(
    seen: SeenMeans,
    noise: Noise,
    weights: Floats,
    examples: Groups,
    unlabelled: Groups | None = None,
) -> ClassMeans:
    """Return the means of the new classes by their rankings and examples.

    Parameters
    ----------
    seen : SeenMeans
    noise : Noise
    weights : ndarray of shape (L, C)
        W; a row of zeros for a class without rankings.
    examples : Groups
    unlabelled : Groups, optional
        Of uncertain classes.
    """
    d, v, n = len(noise.axes), noise.variance, examples.counts[:, None]
    explained, rest = (share * seen.signal for share in EXPLAINED)
    total = weights.sum(axis=1, keepdims=True)
    prior = weights / np.where(total > TINY, total, np.inf) @ seen.means
    length = np.linalg.norm(prior, axis=1, keepdims=True)
    prior *= np.sqrt(explained) / np.where(length > TINY, length, np.inf)
    # What a batch tells of a class is by its rankings, so it cannot judge these.
    slope = measure_slope(prior, examples.means @ noise.axes, n / (n * rest / d + v))
    prior *= slope
    if unlabelled is not None:
        examples = examples.plus(unlabelled)
        n = examples.counts[:, None]
    observed = examples.means @ noise.axes
    unexplained = explained * max(0.0, 1 - slope**2)
    residual = np.where(length > TINY, rest + unexplained, rest + explained) / d
    tells = n / (n * residual + v)
    shift = (tells * (observed - prior)).sum(axis=0) / (d / rest + tells.sum(axis=0))
    gain = n * residual / (n * residual + v)
    new = prior + shift + gain * np.where(n > 0, observed - prior - shift, 0.0)
    precision = 1 / (v + (residual * v / (v + n * residual)).mean(axis=0))
    return ClassMeans(seen.means, new, precision, slope)


def measure_slope(prior: Floats, observed: Floats, weights: Floats) -> float:
    """Return the factor of the prior means of new classes that the examples support.

    It is the slope of a regression of the observed on the prior means, both about their mean over
    classes with examples: 1 if the rankings are as good as expected, and about 0 if they are wrong.
    Beforehand it is normal, with mean 1.

    Parameters
    ----------
    prior, observed : ndarray of shape (L, d)
    weights : ndarray of shape (L, d)
        The precision of each observed mean; 0 for a class without examples.
    """
    has = weights.any(axis=1)
    if has.sum() < 2:
        return 1.0
    one, other, w = prior[has], observed[has], weights[has]
    one, other = one - one.mean(axis=0), other - other.mean(axis=0)
    known = 1 / SLOPE_STD**2
    slope = (known + (w * one * other).sum()) / (known + (w * one**2).sum())
    return float(np.clip(slope, 0.0, 1.5))


def assign_folds(codes: Codes, n_folds: int = N_FOLDS) -> Codes:
    """Return a fold for each input, so that the inputs of a class are in different folds.

    Classes are taken in the order of their first inputs, whatever their names are.
    """
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first[number], kind="stable")
    fold = np.empty_like(codes)
    fold[order] = np.arange(len(codes)) % n_folds
    return fold


def fit_correction(x: Floats, codes: Codes, log_posterior: Floats) -> Floats:
    r"""Return slopes, one row per class, that correct log-posteriors by logistic regression.

    The log-posteriors of each example are those of means that were found without it, so they do not
    know its class. The slopes maximise the log-likelihood of the labels less ``RIDGE`` / 2 times
    their squares: few examples correct little.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    codes : ndarray of int
    log_posterior : ndarray of shape (n, L)
    """
    n, L = log_posterior.shape
    basis, scale, axes = np.linalg.svd(x, full_matrices=False)
    points, ridge = basis * scale, RIDGE * float(np.vecdot(x, x).mean())
    rows = np.arange(n)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        slopes = parameters.reshape(L, -1)
        log_proba = log_softmax(log_posterior + points @ slopes.T, axis=1)
        excess = np.exp(log_proba)
        excess[rows, codes] -= 1
        value = -log_proba[rows, codes].sum() + 0.5 * ridge * (slopes**2).sum()
        return float(value), (excess.T @ points + ridge * slopes).ravel()

    found = minimize(loss, np.zeros(L * len(scale)), jac=True, method="L-BFGS-B").x
    return np.asarray(found.reshape(L, -1) @ axes)


# ---- New classes, from all that is known


class Inputs(NamedTuple):
    """Inputs as columns: standardised scores, their rank bonus, and features of length 1."""

    f: Floats
    bonus: Floats
    features: Floats | None = None

    def take(self, rows: NDArray[np.bool_] | Codes) -> Inputs:
        """Return some of the inputs."""
        features = None if self.features is None else self.features[rows]
        return Inputs(self.f[rows], self.bonus[rows], features)

    def plus(self, other: Inputs) -> Inputs:
        """Return these inputs and others, which have the same columns."""
        f, bonus = (np.concatenate([self[i], other[i]]) for i in (0, 1))
        if self.features is None or other.features is None:
            return Inputs(f, bonus)
        return Inputs(f, bonus, np.concatenate([self.features, other.features]))


class LinearMap(NamedTuple):
    """Linear functions of inputs, one per class: slopes of each kind of column, and offsets."""

    slopes: Floats
    rank_slopes: Floats
    feature_slopes: Floats
    offsets: Floats

    def evaluate(self, inputs: Inputs) -> Floats:
        """Return the values, with one row per input."""
        total = inputs.f @ self.slopes.T + self.offsets
        if self.rank_slopes.size:
            total = total + inputs.bonus @ self.rank_slopes.T
        if inputs.features is not None and self.feature_slopes.size:
            total = total + inputs.features @ self.feature_slopes.T
        return np.asarray(total)

    def plus(self, other: LinearMap, factors: Floats | float = 1.0) -> LinearMap:
        """Return these functions plus others, each of which is multiplied by a factor."""
        column = np.reshape(factors, (-1, 1))
        return LinearMap(
            *(
                mine + (column if mine.ndim == 2 else np.ravel(factors)) * theirs
                for mine, theirs in zip(self, other, strict=True)
            )
        )


class Reference(NamedTuple):
    """Inputs of seen classes: columns, and the classes that the classifier predicts for them."""

    inputs: Inputs
    predicted: Codes


class Examples(NamedTuple):
    """Inputs of new classes, and their classes."""

    inputs: Inputs
    codes: Codes


class Unlabelled(NamedTuple):
    """Inputs of a batch, and the probability that each is of each new class."""

    inputs: Inputs
    proba: Floats


@dataclass(frozen=True)
class Space:
    """The points of all inputs, with the noise about the means of their classes.

    ``trust``, from 0 to 1, is a factor of the weight of the rankings.
    """

    weights: Floats
    part: LinearMap
    usual: Usual
    noise: Noise
    reference: Groups | None
    points: Floats
    codes: Codes
    unlabelled: Groups | None = None
    correction: Floats | None = None
    trust: float = 1.0
    means_factor: float = 1.0
    temperature: float = 1.0

    @property
    def examples(self) -> Groups:
        """The examples of each class."""
        return Groups.collect(self.points, self.codes, len(self.weights))

    @cached_property
    def means(self) -> ClassMeans:
        """The means of all classes."""
        C = self.weights.shape[1]
        if self.reference is None:
            seen = expect_seen_means(C, self.noise)
        else:
            seen = fit_seen_means(self.reference, self.noise, C)
        return fit_new_means(seen, self.noise, self.weights, self.examples, self.unlabelled)

    @property
    def ranking_share(self) -> Floats:
        """The weight of the log-posterior by the rankings, the same for all classes."""
        counts = self.examples.counts
        share = RANKING_EXAMPLES / (RANKING_EXAMPLES + counts.mean())
        return np.full(len(counts), self.trust * share)

    def fit_maps(self) -> tuple[LinearMap, LinearMap]:
        """Return the log-posteriors of the new classes, and log-likelihoods of the seen ones."""
        means = self.means
        factor = self.means_factor * self._calibrate(means)
        new, of_seen = (
            self._unfold(factor * m * means.precision, m) for m in (means.new, means.seen)
        )
        if self.correction is not None:
            new = new.plus(self._unfold_points(self.correction, np.zeros(len(self.weights))))
        return new.plus(self.part, self.ranking_share), of_seen

    def _calibrate(self, means: ClassMeans) -> float:
        """Return t: log-odds are calibrated if their variance is the distance of their means."""
        directions = means.new * means.precision
        distance = np.vecdot(means.new, directions)
        if self.noise.total is not None:
            spread = np.vecdot(directions @ self.noise.total, directions)
        else:
            # The variance over examples of other classes.
            values = self.points @ self.noise.axes @ directions.T
            others = self.codes[:, None] != np.arange(len(self.weights))
            if not others.any():
                return 1.0
            spread = np.full(len(directions), values[others].var())
        return float(distance.sum() / max(spread.sum(), TINY))

    def _unfold(self, slopes: Floats, means: Floats) -> LinearMap:
        """Return log-likelihoods x · slopes - ½ mean · slopes, along the axes of the noise."""
        return self._unfold_points(slopes @ self.noise.axes.T, -0.5 * np.vecdot(slopes, means))

    def _unfold_points(self, slopes: Floats, offsets: Floats) -> LinearMap:
        of_scores, of_features, offsets = self.usual.unfold(slopes, offsets)
        return LinearMap(of_scores, np.zeros_like(of_scores), of_features, offsets)


def fit_space(
    weights: Floats,
    part: LinearMap,
    reference: Reference | None,
    examples: Examples | None,
    unlabelled: Unlabelled | None = None,
) -> Space:
    """Return where the inputs of all classes lie.

    Parameters
    ----------
    weights : ndarray of shape (L, C)
        Of the rankings.
    part : LinearMap
        The log-posteriors by the rankings.
    reference : Reference, optional
    examples : Examples, optional
        One of the two is needed.
    unlabelled : Unlabelled, optional
        Inputs that may be of new classes.
    """
    C, n_features = weights.shape[1], part.feature_slopes.shape[1]
    share = 0.0
    if examples is not None and examples.inputs.features is not None:
        # With few examples of each class, features hardly tell what is noise.
        mean_size = len(examples.codes) / len(np.unique(examples.codes))
        share = FEATURE_SHARE * mean_size / (mean_size + 1)
    f = None if reference is None else reference.inputs.f
    usual = Usual.measure(f, C, n_features, share)
    points, codes = np.zeros((0, C + n_features * (share > 0))), np.zeros(0, np.intp)
    if examples is not None:
        points, codes = usual.embed(*examples.inputs[::2]), examples.codes
    if reference is None:
        groups, noise = None, Noise.expect(points, codes)
    else:
        x = usual.embed(*reference.inputs[::2])
        groups = Groups.collect(x, reference.predicted, C)
        noise = Noise.measure(x, reference.predicted, groups.means)
    expected = None
    if unlabelled is not None:
        expected = Groups.expect(usual.embed(*unlabelled.inputs[::2]), unlabelled.proba)
    return Space(weights, part, usual, noise, groups, points, codes, expected)


def learn_correction(space: Space, examples: Examples) -> Space:
    """Learn from examples what the means leave, leaving some of the examples out in turn.

    It tells new classes from each other. Whether an input is new, the means tell better.
    """
    counts, codes = space.examples.counts, space.codes
    has = np.flatnonzero(counts)
    if len(has) == len(counts):
        # Rankings that the examples contradict hardly count. Without examples, a class has no more.
        space = replace(space, trust=min(space.means.slope, 1.0))
    if len(has) < 2:
        return replace(space, temperature=1 / FACTORS[0])
    if counts.max() < 2:
        # The rankings do not know the only example of a class, so it can still judge them.
        by_rankings = (space.part.evaluate(examples.inputs) * space.ranking_share)[:, has]
        own = np.searchsorted(has, codes)
        a, b = fit_factors(by_rankings, np.zeros_like(by_rankings), own)
        return replace(space, means_factor=b / a, temperature=1 / a)
    fold, shape = assign_folds(codes), (len(codes), len(counts))
    by_rankings, by_means = np.zeros(shape), np.zeros(shape)
    for j in range(N_FOLDS):
        left = fold == j
        inputs, points, known = examples.inputs.take(left), space.points[~left], codes[~left]
        noise = space.noise if space.reference is not None else Noise.expect(points, known)
        kept = replace(space, points=points, codes=known, noise=noise)
        by_rankings[left] = space.part.evaluate(inputs) * kept.ranking_share
        by_means[left] = kept.fit_maps()[0].evaluate(inputs) - by_rankings[left]
    # Classes without examples cannot be the correct ones.
    own, by_rankings, by_means = np.searchsorted(has, codes), by_rankings[:, has], by_means[:, has]
    a, b = fit_factors(by_rankings, by_means, own)
    correction = np.zeros((len(counts), space.points.shape[1]))
    correction[has] = fit_correction(space.points, own, a * by_rankings + b * by_means) / a
    return replace(space, correction=correction, means_factor=b / a, temperature=1 / a)


def fit_factors(one: Floats, other: Floats, codes: Codes) -> tuple[float, float]:
    """Return the factors of two tables of log-posteriors whose sum makes labels most probable.

    Few labels change little: beforehand, the logarithms of both factors are normal.
    """
    usual, spread = FACTORS
    rows = np.arange(len(codes))

    def loss(log_factors: Floats) -> tuple[float, Floats]:
        factors, off = np.exp(log_factors), (log_factors - np.log(usual)) / spread
        log_proba = log_softmax(factors[0] * one + factors[1] * other, axis=1)
        excess = np.exp(log_proba)
        excess[rows, codes] -= 1
        slopes = factors * [(excess * one).sum(), (excess * other).sum()] + off / spread
        return float(0.5 * off @ off - log_proba[rows, codes].sum()), slopes

    a, b = np.exp(minimize(loss, np.log([usual, usual]), jac=True, method="L-BFGS-B").x)
    return float(a), float(b)

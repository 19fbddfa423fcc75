r"""Means of classes: what a reference, the rankings and labelled examples say of them together.

An input has points of one or two kinds: its scores, and its features. Each kind has a model of its
own (`Space`). A point x is the mean of its class plus noise with the covariance S, the same for all
classes. All means are those of a posterior distribution: each is shrunk towards what is known
beforehand, by the inputs of its class.

- *Seen classes.* A seen class has a high score of its own, a e_c; inputs of a reference that the
  classifier assigns to it tell the rest. The variance of this rest is measured by the products of
  pairs of inputs of one class.
- *New classes.* Beforehand, the mean is W · (means of the seen classes), with the weights W of the
  rankings, rescaled to the length that new classes have. The residual is normal. A shift is common
  to all new classes. Examples correct all of it, from the first one on.

The log-likelihood of a class with the mean m is then linear in x:

.. math:: v(x, m) = t (x P m - \tfrac12 m P m)

with the precision P of an input about an uncertain mean. The factor t calibrates: the values of a
class vary over inputs of other classes as much as by the model. Features and scores repeat each
other, so the log-likelihood is a weighted mean over both kinds. `fit_correction` is a logistic
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
EXPLAINED = 0.3
"""The variance of the means of new classes that the rankings explain, and as much again that they
do not, as a share of ρ of the seen classes."""
RANKING_EXAMPLES = 5.0
"""The log-posterior by the rankings has the weight k / (k + n) beside n examples per class: the
means know the rankings as well."""
DENSITY_WEIGHT = 0.5
"""The weight of normal log-densities, before labels tell a better one: scores are not quite normal,
and densities of many columns are far too confident."""
N_FOLDS = 5
"""Inputs are left out in this number of groups."""
TINY = 1e-12


# ---- Inputs, and linear functions of them


class Inputs(NamedTuple):
    """Inputs as columns: standardised scores, their rank bonus, and features of length 1.

    Without features, there are 0 columns of them.
    """

    f: Floats
    bonus: Floats
    features: Floats

    def take(self, rows: NDArray[np.bool_] | Codes) -> Inputs:
        """Return some of the inputs."""
        return Inputs(*(part[rows] for part in self))

    def plus(self, other: Inputs) -> Inputs:
        """Return these inputs and others, which have the same columns."""
        return Inputs(*map(np.concatenate, zip(self, other, strict=True)))


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
            total += inputs.bonus @ self.rank_slopes.T
        if self.feature_slopes.size:
            total += inputs.features @ self.feature_slopes.T
        return total

    def plus(self, other: LinearMap, factors: Floats) -> LinearMap:
        """Return these functions plus others, each of which is multiplied by a factor."""
        return LinearMap(
            *(mine + (theirs.T * factors).T for mine, theirs in zip(self, other, strict=True))
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


# ---- The points of classes


class Groups(NamedTuple):
    """Sums of points over classes, and of their squared lengths: all that means depend on."""

    counts: Floats
    sums: Floats
    squares: Floats

    @classmethod
    def collect(cls, x: Floats, codes: Codes, n_classes: int) -> Self:
        """Return the sums over the points of each class."""
        sums = np.zeros((n_classes, x.shape[1]))
        np.add.at(sums, codes, x)
        counts = np.bincount(codes, minlength=n_classes).astype(float)
        squares = np.bincount(codes, np.vecdot(x, x), n_classes).astype(float)
        return cls(counts, sums, squares)

    def plus(self, x: Floats, proba: Floats) -> Self:
        """Return the sums over these points and others, whose classes are uncertain.

        The number of points of a class is multiplied by their mean probability (their purity), each
        weighed by its own: 10 points that are of the class with probability .1 count as .1 point.
        """
        size = proba.sum(axis=0)
        purity = np.vecdot(proba.T, proba.T) / np.maximum(size, TINY)
        sums = self.sums + purity[:, None] * (proba.T @ x)
        return self._replace(counts=self.counts + purity * size, sums=sums)

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


class ClassMeans(NamedTuple):
    """The means of new classes, and the precision of an input about an uncertain mean.

    ``slope`` says how well the rankings explain the examples (see `measure_slope`).
    """

    new: Floats
    precision: Floats
    slope: float = 1.0


@dataclass(frozen=True)
class Space:
    """Where one kind of column places the seen classes, along the axes of the noise within classes.

    Attributes
    ----------
    center : ndarray of shape (d,)
        Of the columns.
    rotation : ndarray of shape (d, d)
        From columns to points.
    variance : ndarray of shape (d,)
        Of the noise.
    signal : float
        ρ of the seen classes.
    seen : ndarray of shape (C, d)
        These means.
    total : ndarray of shape (d, d), optional
        The covariance of all inputs of a reference.
    """

    center: Floats
    rotation: Floats
    variance: Floats
    signal: float
    seen: Floats
    total: Floats | None = None

    def place(self, columns: Floats) -> Floats:
        """Return columns as points."""
        return np.asarray((columns - self.center) @ self.rotation)

    def unfold(self, slopes: Floats, offsets: Floats) -> tuple[Floats, Floats]:
        """Return slopes of points as those of columns, and the offsets."""
        slopes = slopes @ self.rotation.T
        return slopes, offsets - slopes @ self.center

    @classmethod
    def measure(cls, columns: Floats, codes: Codes, own: Floats) -> Self:
        """Return the space of a reference.

        Parameters
        ----------
        columns : ndarray of shape (n, d)
        codes : ndarray of int
            The predicted classes.
        own : ndarray of shape (C, d)
            The direction of the score of each seen class; zeros for features.
        """
        n, d = columns.shape
        center, scale = columns.mean(axis=0), np.ones(d)
        if own.any():
            std = columns.std(axis=0)
            scale = 1 / np.where(std > TINY**0.5, std, 1.0) / np.sqrt(d)
        x = (columns - center) * scale
        around = x - Groups.collect(x, codes, len(own)).means[codes]
        within = around.T @ around / max(n - len(np.unique(codes)), 1)
        variance, axes = find_axes(within, ISOTROPIC)
        points = x @ axes
        means, signal = fit_seen_means(
            Groups.collect(points, codes, len(own)), variance, own @ axes
        )
        total = points.T @ points / n
        return cls(center, scale[:, None] * axes, variance, signal, means, total)

    @classmethod
    def expect(cls, columns: Floats, codes: Codes, own: Floats) -> Self:
        """Return the space without a reference, of examples of new classes.

        Only the own score of a seen class is high. The shape of the noise counts as far as the
        examples can tell it.
        """
        d = columns.shape[1]
        scale = 1 / np.sqrt(d) if own.any() else 1.0
        groups = Groups.collect(columns, codes, int(codes.max()) + 1)
        free = len(codes) - int((groups.counts > 0).sum())
        around = columns - groups.means[codes]
        within = around.T @ around
        size = np.trace(within)
        shape = within / size if size > TINY else np.eye(d) / d
        told = free / (free + d)
        variance, axes = find_axes((1 - SIGNAL) * shape, 1 - (1 - ISOTROPIC) * told)
        seen = np.sqrt(SIGNAL) * own @ axes
        return cls(np.zeros(d), scale * axes, variance, SIGNAL, seen)

    def fit_new_means(self, weights: Floats, examples: Groups, batch: Groups | None) -> ClassMeans:
        """Return the means of the new classes by their rankings, and by their points.

        Parameters
        ----------
        weights : ndarray of shape (L, C)
            W; a row of zeros for a class without rankings.
        examples : Groups
        batch : Groups, optional
            The same with the points of a batch, whose classes are uncertain. What these tell of a
            class is by its rankings, so they cannot judge them.
        """
        v, n, d = self.variance, examples.counts[:, None], len(self.variance)
        explained = rest = EXPLAINED * self.signal
        total = weights.sum(axis=1, keepdims=True)
        prior = weights / np.where(total > TINY, total, np.inf) @ self.seen
        length = np.linalg.norm(prior, axis=1, keepdims=True)
        prior *= np.sqrt(explained) / np.where(length > TINY, length, np.inf)
        slope = measure_slope(prior, examples.means, n / (n * rest / d + v))
        prior *= slope
        known = examples if batch is None else batch
        n, observed = known.counts[:, None], known.means
        unexplained = explained * max(0.0, 1 - slope**2)
        residual = np.where(length > TINY, rest + unexplained, rest + explained) / d
        tells = n / (n * residual + v)
        shift = (tells * (observed - prior)).sum(axis=0) / (d / rest + tells.sum(axis=0))
        gain = n * residual / (n * residual + v)
        new = prior + shift + gain * np.where(n > 0, observed - prior - shift, 0.0)
        precision = 1 / (v + (residual * v / (v + n * residual)).mean(axis=0))
        return ClassMeans(new, precision, slope)

    def calibrate(self, means: ClassMeans, points: Floats, codes: Codes) -> float:
        """Return t: log-odds are calibrated if their variance is the distance of their means."""
        directions = means.new * means.precision
        distance = np.vecdot(means.new, directions)
        if self.total is not None:
            spread = np.vecdot(directions @ self.total, directions)
        else:
            # The variance over examples of other classes.
            others = codes[:, None] != np.arange(len(directions))
            if not others.any():
                return 1.0
            spread = np.full(len(directions), (points @ directions.T)[others].var())
        return float(distance.sum() / max(spread.sum(), TINY))


def find_axes(covariance: Floats, isotropic: float) -> tuple[Floats, Floats]:
    """Return variances and principal axes of a covariance that is shrunk to a sphere."""
    d = len(covariance)
    shrunk = (1 - isotropic) * covariance
    shrunk.flat[:: d + 1] += isotropic * max(np.trace(covariance), TINY) / d
    return np.linalg.eigh(shrunk)


def fit_seen_means(groups: Groups, variance: Floats, own: Floats) -> tuple[Floats, float]:
    """Return the means of the seen classes by the inputs that are assigned to them, and ρ.

    Parameters
    ----------
    groups : Groups
        Of a reference, by the predicted classes, along the axes of the noise.
    variance : ndarray of shape (d,)
        Of the noise.
    own : ndarray of shape (C, d)
        The direction of the score of each seen class; zeros for features.
    """
    means, n, many = groups.means, groups.counts[:, None], groups.counts > 1
    common = groups.common()
    rho = SIGNAL if common is None else float(np.clip(common, 0.02, 0.95))
    high = np.vecdot(means, own)[many].mean() if many.any() else np.sqrt(rho)
    expected = high * own
    residual = max(rho - high**2 * own.any(), 0.05 * rho) / len(variance)
    gain = n * residual / (n * residual + variance)
    return expected + gain * np.where(n > 0, means - expected, 0.0), rho


def measure_slope(prior: Floats, observed: Floats, weights: Floats) -> float:
    """Return the factor of the prior means of new classes that the examples support.

    It is the slope of a regression of the observed on the prior means, both about their mean over
    classes with examples: 1 if the rankings are as good as expected, and about 0 if they are wrong.
    Beforehand it is normal, with mean 1 and variance 1.

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
    slope = (1 + (w * one * other).sum()) / (1 + (w * one**2).sum())
    return float(np.clip(slope, 0.0, 1.5))


# ---- New classes, from all that is known


@dataclass(frozen=True)
class ClassModel:
    """Log-likelihoods of all classes, from all that is known.

    Attributes
    ----------
    weights : ndarray of shape (L, C)
        Of the rankings.
    part : LinearMap
        The log-posteriors by the rankings.
    reference : Reference, optional
    examples : Examples
        There may be none if there is a reference.
    unlabelled : Unlabelled, optional
        Inputs that may be of new classes.
    feature_weight : float
        The weight of features, if there are any. By default, both kinds of columns count the same.
    trust : float
        From 0 to 1, a factor of the weight of the rankings.
    """

    weights: Floats
    part: LinearMap
    reference: Reference | None
    examples: Examples
    unlabelled: Unlabelled | None = None
    feature_weight: float = 0.5
    trust: float = 1.0

    @property
    def kinds(self) -> dict[str, float]:
        """The kinds of columns, with their weights."""
        if not self.part.feature_slopes.shape[1]:
            return {"f": 1.0}
        return {"f": 1 - self.feature_weight, "features": self.feature_weight}

    @cached_property
    def spaces(self) -> dict[str, Space]:
        """The space of each kind of columns."""
        known = self.reference or self.examples
        fit = Space.measure if self.reference else Space.expect
        C, found = self.weights.shape[1], {}
        for kind in self.kinds:
            columns = getattr(known.inputs, kind)
            own = np.eye(C) if kind == "f" else np.zeros((C, columns.shape[1]))
            found[kind] = fit(columns, known[1], own)
        return found

    @cached_property
    def points(self) -> dict[str, Floats]:
        """The examples as points of each space."""
        return {k: s.place(getattr(self.examples.inputs, k)) for k, s in self.spaces.items()}

    @cached_property
    def means(self) -> dict[str, ClassMeans]:
        """The means of the new classes in each space."""
        found = {}
        for kind, space in self.spaces.items():
            groups = Groups.collect(self.points[kind], self.examples.codes, len(self.weights))
            batch = None
            if self.unlabelled is not None:
                columns = getattr(self.unlabelled.inputs, kind)
                batch = groups.plus(space.place(columns), self.unlabelled.proba)
            found[kind] = space.fit_new_means(self.weights, groups, batch)
        return found

    @property
    def ranking_share(self) -> float:
        """The weight of the log-posterior by the rankings."""
        n_examples = len(self.examples.codes) / len(self.weights)
        return self.trust * RANKING_EXAMPLES / (RANKING_EXAMPLES + n_examples)

    def fit_maps(self, factor: float = 1.0) -> tuple[LinearMap, LinearMap]:
        """Return log-likelihoods of the new and of the seen classes, times a factor."""
        slopes: list[dict[str, Floats]] = [{}, {}]
        offsets = [np.zeros(n) for n in self.weights.shape]
        for kind, space in self.spaces.items():
            means = self.means[kind]
            scale = factor * self.kinds[kind]
            scale *= space.calibrate(means, self.points[kind], self.examples.codes)
            for i, m in enumerate((means.new, space.seen)):
                along = scale * m * means.precision
                slopes[i][kind], offset = space.unfold(along, -0.5 * np.vecdot(along, m))
                offsets[i] += offset
        new, seen = (self._map(*each) for each in zip(slopes, offsets, strict=True))
        return new, seen

    def _map(self, slopes: dict[str, Floats], offsets: Floats) -> LinearMap:
        L, d = len(offsets), self.part.feature_slopes.shape[1]
        features = slopes.get("features", np.zeros((L, d)))
        return LinearMap(slopes["f"], np.zeros_like(slopes["f"]), features, offsets)

    def correct(self, slopes: Floats) -> LinearMap:
        """Return linear functions of the points of all kinds, side by side, as those of columns."""
        found, offsets, start = {}, np.zeros(len(slopes)), 0
        for kind, space in self.spaces.items():
            stop = start + len(space.variance)
            found[kind], offset = space.unfold(slopes[:, start:stop], np.zeros(len(slopes)))
            offsets, start = offsets + offset, stop
        return self._map(found, offsets)


class Learned(NamedTuple):
    """Log-posteriors of new classes that examples have corrected, and their temperature."""

    log_posterior: LinearMap
    temperature: float
    trust: float


def learn_correction(model: ClassModel, examples: Examples) -> Learned:
    """Learn from examples what the means leave, leaving some of the examples out in turn.

    It tells new classes from each other. Whether an input is new, the means tell better.
    """
    codes, L = examples.codes, len(model.weights)
    has, counts = np.unique(codes, return_counts=True)
    if len(has) == L:
        # Rankings that the examples contradict hardly count. Without examples, a class has no more.
        model = replace(model, trust=min(model.means["f"].slope, 1.0))
    # No example is left out of one per class: the factors would be smaller by half.
    a = b = DENSITY_WEIGHT / (1 if counts.max() > 1 else 2)
    correction = None
    if len(has) > 1 and counts.max() > 1:
        fold, tables = assign_folds(codes), np.zeros((2, len(codes), L))
        for j in range(N_FOLDS):
            left = fold == j
            inputs, rest = examples.inputs.take(left), examples.inputs.take(~left)
            kept = replace(model, examples=Examples(rest, codes[~left]))
            if model.reference is not None:
                kept.__dict__["spaces"] = model.spaces
            tables[0, left] = model.part.evaluate(inputs) * kept.ranking_share
            tables[1, left] = kept.fit_maps()[0].evaluate(inputs)
        points = np.hstack([*model.points.values()]) / np.sqrt(len(model.kinds))
        # Classes without examples cannot be the correct ones.
        own = np.searchsorted(has, codes)
        (a, b), slopes = fit_correction(points, own, tables[:, :, has])
        correction = np.zeros((L, slopes.shape[1]))
        correction[has] = slopes / (a * np.sqrt(len(model.kinds)))
    new = model.fit_maps(b / a)[0].plus(model.part, np.full(L, model.ranking_share))
    if correction is not None:
        new = new.plus(model.correct(correction), np.ones(L))
    return Learned(new, 1 / a, model.trust)


def assign_folds(codes: Codes) -> Codes:
    """Return a fold for each input, so that the inputs of a class are in different folds.

    Classes are taken in the order of their first inputs, whatever their names are.
    """
    _, first, number = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first[number], kind="stable")
    fold = np.empty_like(codes)
    fold[order] = np.arange(len(codes)) % N_FOLDS
    return fold


def fit_correction(x: Floats, codes: Codes, tables: Floats) -> tuple[Floats, Floats]:
    """Return factors of log-posteriors, and slopes by class, that make labels most probable.

    The log-posteriors of each example are those of means that were found without it, so they do not
    know its class. Beforehand, the logarithms of their factors are normal, and the slopes are so
    where inputs have length 1, all with variance 1: few examples correct little.

    Parameters
    ----------
    x : ndarray of shape (n, d)
    codes : ndarray of int
    tables : ndarray of shape (k, n, L)
        Log-posteriors.
    """
    k, n, L = tables.shape
    basis, scale, axes = np.linalg.svd(x, full_matrices=False)
    points, ridge = basis * scale, float(np.vecdot(x, x).mean())
    start = np.append(np.full(k, np.log(DENSITY_WEIGHT)), np.zeros(L * len(scale)))

    def loss(parameters: Floats) -> tuple[float, Floats]:
        factors, off = np.exp(parameters[:k]), (parameters - start)[:k]
        slopes = parameters[k:].reshape(L, -1)
        log_proba = log_softmax(np.tensordot(factors, tables, 1) + points @ slopes.T, axis=1)
        excess = np.exp(log_proba) - np.eye(L)[codes]
        value = 0.5 * (off @ off + ridge * (slopes**2).sum()) - log_proba[np.arange(n), codes].sum()
        by_factor = factors * (excess * tables).sum(axis=(1, 2)) + off
        return float(value), np.append(by_factor, excess.T @ points + ridge * slopes)

    found = minimize(loss, start, jac=True, method="L-BFGS-B").x
    return np.exp(found[:k]), found[k:].reshape(L, -1) @ axes

"""Labelled examples of new classes: what they and the rankings say of the means of the classes.

How much each of them counts is measured on the examples themselves, from the first one on.
`fit_class_means` has the model. `learn_examples`, at the end, applies it to scores and to features,
and calibrates the sum of both.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import expit, softmax
from scipy.stats import norm

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import InputError, suggest_name
from rankshot.zeroshot.evidence import Weighed, measure_loss
from rankshot.zeroshot.formula import scale_features
from rankshot.zeroshot.scores import Scores, as_scores, standardize_rows

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
SIGNAL = 0.35, 0.5
"""ρ without a reference, and the standard deviation of its logarithm: .12 to .48 on held-out seen
classes of four data sets."""
SHARE = 0.5, 0.3
"""ρ as a share of another one: that of the seen classes that binary classifiers predict for a
reference, or for features that of the scores. Of a softmax, which says how probable each class is,
it is 1. The second number is the standard deviation of the logarithm."""
EXPLAINED_BY_RATERS = 0.45, 0.2
"""The share of ρ that rankings of people and language models explain, β² / ρ, and the standard
deviation of its logarithm."""
EXPLAINED_BY_TABLES = 0.12, 0.5
"""The same for rankings of tables, such as WordNet and word vectors."""
CALIBRATION = 0.5
"""The standard deviation of the logarithms of the factors that calibrate log-odds."""
N_FOLDS = 5
"""Examples are left out in this number of groups, to calibrate."""
PAIRS = 1.0
"""Classes with fewer pairs of inputs in a reference do not tell what these have in common."""
ISOTROPIC = 0.75
"""The share of the noise that is the same in all directions, however many inputs tell its shape."""


def as_examples(
    examples: tuple[Scores | ArrayLike, ArrayLike], items: tuple[str, ...], ranked: Sequence[str]
) -> tuple[Scores, NDArray[np.str_]]:
    """The scores and labels of examples of new classes.

    A class may have examples and no ranking, unless its name looks like that of a ranked class.
    """
    try:
        scores, names = examples
    except (TypeError, ValueError):
        raise InputError(
            "examples", examples, "must be a pair: scores, and the class of each row"
        ) from None
    table = as_scores(scores, items)
    labels = np.asarray(names).astype(str)
    if labels.shape != (len(table),) or len(table) == 0:
        raise InputError(
            "examples", labels.shape, f"must have one label for each of {len(table)} rows"
        )
    for name in sorted(set(labels.tolist())):
        require_example_label(name, items, ranked)
    return table, labels


def require_example_label(
    name: str, items: Collection[str], ranked: Collection[str], where: str = ""
) -> None:
    """Raise for a label that is a seen class, or looks like a misspelt name of a new one."""
    if name in items:
        raise InputError("examples", name, "is a seen class, not a new one", where)
    if name not in ranked and (close := suggest_name(name, ranked)):
        rule = f"has no ranking{close}"
        raise InputError("examples", name, rule, where, "correct the label, or rank the class")


class Signal(NamedTuple):
    """What is known of ρ, the mean squared length of the means of classes, before any example.

    ``spread`` is the standard deviation of the logarithm of ``size``.
    """

    size: float
    spread: float

    def combine(self, other: Signal) -> Signal:
        """What two independent estimates say together."""
        own, others = self.spread**-2, other.spread**-2
        log_size = (own * np.log(self.size) + others * np.log(other.size)) / (own + others)
        return Signal(float(np.exp(log_size)), float((own + others) ** -0.5))


class Noise(NamedTuple):
    """The noise within classes: its variances along ``axes`` (columns), as shares of all noise.

    ``total`` is the covariance of all inputs, if a reference tells it.
    """

    axes: Floats
    shares: Floats
    total: Floats | None


class Usual(NamedTuple):
    """What is usual of standardised scores, by a reference or without one.

    ``mean`` and ``std`` have one number per seen class. ``feature_share`` is ρ of features as a
    share of that of the scores.
    """

    mean: Floats
    std: Floats
    noise: Noise | None
    signal: Signal
    feature_share: float = SHARE[0]

    @classmethod
    def without_reference(cls, n_items: int) -> Usual:
        """What is known beforehand."""
        return cls(np.zeros(n_items), np.ones(n_items), None, Signal(*SIGNAL))


class Prototypes(NamedTuple):
    """What the rankings say of the means of the classes.

    ``directions`` has one row per class, of length 1, or 0 for a class without rankings.
    ``explained`` is the share of ρ that β² is, with the standard deviation of its logarithm.
    """

    directions: Floats
    explained: tuple[float, float]


class Discriminant(NamedTuple):
    """Linear log-odds of classes: x · slopes + offsets, with one row of slopes per class.

    ``slope`` and ``signal`` are β and ρ.
    """

    slopes: Floats
    offsets: Floats
    slope: float
    signal: float


def fit_class_means(
    x: Floats,
    labels: Codes,
    n_classes: int,
    signal: Signal,
    noise: Noise | None = None,
    prototypes: Prototypes | None = None,
) -> Discriminant:
    r"""Learn from examples, and from what rankings say, the means of the classes.

    An input of the class z is x = μ_z + noise with the covariance S, and the mean is
    μ_z = c + β w_z + a normal residual with the variance τ² = (ρ - β²) / d in each of the d
    directions. Here S⁻¹ w_z are the directions of the rankings: they name the seen classes whose
    scores tell z from other classes. The shift c is common to all classes. All of it is measured: β
    by a regression of the means of the examples of each class, c and ρ by the products of pairs of
    examples, of different classes and of the same class. While there are few examples, what is
    known beforehand counts as well.

    The means are those of the posterior distribution. An input is judged with the covariance
    S + V, where V is the mean posterior covariance of the means of the classes. The log-odds are
    then divided by how much more they vary over inputs of other classes than by this model.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        The examples; their mean squared length is about 1.
    labels : ndarray of int
        Their classes.
    n_classes : int
    signal : Signal
        What is known of ρ.
    noise : Noise, optional
        By a reference, or by the examples. By default S is the same in all directions.
    prototypes : Prototypes, optional
        By rankings.
    """
    d = x.shape[1]
    counts = np.bincount(labels, minlength=n_classes)
    has = counts > 0
    means = np.zeros((n_classes, d))
    np.add.at(means, labels, x)
    means[has] /= counts[has, None]
    size = float(np.vecdot(x, x).mean())
    common = _measure_common(means[has], size)
    directions = np.zeros_like(means) if prototypes is None else prototypes.directions
    total = None if noise is None else noise.total
    if noise is not None and total is not None:
        # Rankings name the scores that tell a class from others: the slopes, not the mean. Noise
        # that is measured on the examples would turn the rankings towards these.
        directions = (directions @ noise.axes * noise.shares) @ noise.axes.T
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        directions /= np.where(length > 0, length, 1.0)
    ranked: NDArray[np.bool_] = np.vecdot(directions, directions) > 0
    beta = explained = 0.0
    if prototypes is not None and ranked.any():
        # What all rankings have in common does not distinguish classes.
        explained = float(directions[ranked].var(axis=0).sum())
        share, spread = prototypes.explained
        # β is a square root, so its logarithm varies half as much.
        prior = np.sqrt(share * signal.size)
        usual = prior, prior * 0.5 * np.hypot(spread, signal.spread)
        beta, error = _measure_slope(
            means, directions, has & ranked, usual, size / d / np.maximum(counts, 1)
        )
        if beta > 0 and explained > 0:
            by_slope = Signal(beta**2 * explained / share, np.hypot(spread, 2 * error / beta))
            signal = signal.combine(by_slope)
    rho = _measure_signal(x, labels, means, counts, common, signal)
    rho = max(min(rho, size - common), beta**2 * explained, 1e-6 * size)
    residual = np.where(ranked, rho - beta**2 * explained, rho)[:, None] / d

    left = max(size - common - rho, 1e-3 * size)
    expected, observed, variance = beta * directions, means, np.full(d, left / d)
    if noise is not None:
        expected, observed = expected @ noise.axes, observed @ noise.axes
        variance = left * noise.shares
    m, uncertain = posterior_means(observed, counts, expected, residual, variance, common / d)
    center = m.mean(axis=0)
    m -= center
    slopes = m / (variance + uncertain.mean(axis=0))
    own = np.vecdot(m, slopes)
    if noise is not None:
        slopes, center = slopes @ noise.axes.T, noise.axes @ center
    # Log-odds are calibrated if their variance is the distance between their means.
    variance = _measure_spread(x - center, labels, slopes, total)
    factor = own.sum() / variance.sum()
    slopes *= factor
    return Discriminant(slopes, -slopes @ center - 0.5 * factor * own, beta, rho)


def posterior_means(
    observed: Floats,
    counts: Codes,
    expected: Floats,
    residual: Floats,
    variance: Floats,
    common: float,
) -> tuple[Floats, Floats]:
    """The posterior means of the means of classes, and their variances given the shift.

    All directions are independent. The mean of a class is a shift that is common to all classes,
    plus what is expected of the class, plus a residual.

    Parameters
    ----------
    observed : ndarray of shape (classes, d)
        Means over the examples of each class.
    counts : ndarray of int
        The number of examples of each class, 0 for none.
    expected : ndarray of shape (classes, d)
        By the rankings.
    residual : ndarray of shape (classes, 1)
        The variance of the residual in each direction.
    variance : ndarray of shape (d,)
        The variance of an example about the mean of its class.
    common : float
        The variance of the shift in each direction.
    """
    n = counts[:, None]
    precision = (n > 0) / (residual + variance / np.maximum(n, 1))
    shift = (precision * (observed - expected)).sum(axis=0) * common
    shift /= 1 + precision.sum(axis=0) * common
    prior = expected + shift
    gain = n * residual / (n * residual + variance)
    found = prior + gain * np.where(n > 0, observed - prior, 0.0)
    return found, residual * variance / (variance + n * residual)


def _measure_common(means: Floats, size: float) -> float:
    """|c|², by the products of means of different classes."""
    k = len(means)
    if k < 2:
        # One class does not tell what it has in common with others.
        return 0.0
    products = means @ means.T
    found = (products.sum() - np.trace(products)) / (k * (k - 1))
    return float(min(max(found, 0.0), 0.9 * size))


def _measure_slope(
    means: Floats,
    directions: Floats,
    known: NDArray[np.bool_],
    usual: tuple[float, float],
    variance: Floats,
) -> tuple[float, float]:
    """β, not below 0, and its standard error, from the classes that have examples."""
    k = int(known.sum())
    prior, std = usual
    if k < 2:
        return prior, std
    w = directions[known] - directions[known].mean(axis=0)
    weight = np.vecdot(w, w)
    total = weight.sum()
    if total <= 0:
        return prior, std
    each = np.vecdot(w, means[known] - means[known].mean(axis=0))
    found = each.sum() / total
    residual = each - found * weight
    # Of few classes, residuals are small by chance.
    by_model = (weight * variance[known]).sum()
    error = np.sqrt(max(residual @ residual * k / (k - 1), by_model)) / total
    precision = std**-2 + error**-2
    beta = (prior / std**2 + found / error**2) / precision
    # Wrong rankings are those of other classes, chosen at random: the slope is then that of correct
    # ones divided by 1 - the number of ranked classes. Beforehand, both are equally probable.
    others = int(directions.any(axis=1).sum()) - 1
    wrong = norm.logpdf(found, -prior / others, np.hypot(std / others, error))
    log_odds = norm.logpdf(found, prior, np.hypot(std, error)) - wrong
    return max(float(expit(log_odds) * beta), 0.0), float(precision**-0.5)


def _measure_signal(
    x: Floats, labels: Codes, means: Floats, counts: Codes, common: float, usual: Signal
) -> float:
    """ρ, by the products of pairs of examples of one class."""
    # The most probable value: too large a value costs more than one that is too small.
    before = usual.size * np.exp(-(usual.spread**2))
    many = counts > 1
    if many.sum() < 3:
        return float(before)
    squares = np.bincount(labels, np.vecdot(x, x), minlength=len(counts))[many]
    n = counts[many]
    found = (n**2 * np.vecdot(means, means)[many] - squares) / (n * (n - 1)) - common
    error = found.std(ddof=1) / np.sqrt(len(found))
    own, others = (before * usual.spread) ** -2, max(error, 1e-9) ** -2
    return float((own * before + others * found.mean()) / (own + others))


def measure_noise(x: Floats, labels: Codes, directions: Floats) -> Noise:
    """The noise within classes, by the examples alone.

    All that is known lies in the span of the examples and of the ``directions`` of rankings, so
    only axes of this span are returned.
    """
    d = x.shape[1]
    known = np.concatenate([x, directions])
    basis = np.linalg.qr(known.T)[0] if len(known) < d else np.eye(d)
    around = (x - x.mean(axis=0)) @ basis
    counts = np.bincount(labels).astype(float)
    sums = np.zeros((len(counts), basis.shape[1]))
    np.add.at(sums, labels, around)
    within = around.T @ around - measure_between(
        sums, counts, float(np.vecdot(around, around).sum())
    )
    axes, shares = _find_axes(within, d, measure_shrinkage(within, len(x) - 1, d))
    return Noise(basis @ axes, shares, None)


def measure_shrinkage(scatter: Floats, n: int, d: int) -> float:
    """How much of a covariance in d directions is best taken to be the same in all of them.

    The scatter has n degrees of freedom. By the estimate OAS of Chen, Wiesel, Eldar and Hero
    (2010), "Shrinkage algorithms for MMSE covariance estimation".
    """
    trace = float(np.trace(scatter))
    if n < 1 or trace <= 0:
        return 1.0
    squares = float((scatter**2).sum()) / trace**2
    told = (n + 1) * (squares - 1 / d)
    return min((squares + 1) / told, 1.0) if told > 0 else 1.0


def _find_axes(within: Floats, d: int, shrinkage: float = 0.0) -> tuple[Floats, Floats]:
    """The axes of the noise, and its shares along them.

    A part of it is the same in all d directions; the rest has the shape ``within``, as far as this
    is not shrunk.
    """
    told = (1 - ISOTROPIC) * (1 - shrinkage)
    shape = told * within / max(np.trace(within), 1e-300)
    shape.flat[:: len(within) + 1] += (1 - told) / d
    shares, axes = np.linalg.eigh(shape)
    return axes, shares


def _measure_spread(x: Floats, labels: Codes, slopes: Floats, total: Floats | None) -> Floats:
    """The variance of the values of each class over inputs of other classes."""
    if total is not None:
        return np.asarray(np.maximum(np.vecdot(slopes @ total, slopes), 1e-300))
    length = np.vecdot(slopes, slopes)
    k = len(np.unique(labels))
    if k < 2:
        # Inputs of other classes may lie in any direction.
        ratio = float(np.mean(x**2))
    else:
        values = x @ slopes.T / np.sqrt(np.where(length > 0, length, 1.0))
        others = labels[:, None] != np.arange(len(slopes))
        n = others.sum(axis=0)
        # Deviations are from the mean: two or three classes lie opposite to each other, and the
        # distance between them is not noise. Few inputs do not show how large the noise is, so one
        # more input with the mean square is added for each class.
        around = n @ values.var(axis=0, where=others)
        square = float((values**2)[others].mean()) * k / (k - 1)
        ratio = (around + len(n) * square) / n.sum()
    return np.asarray(np.maximum(ratio * length, 1e-300))


def measure_reference(table: Scores, coverage: Floats) -> Usual:
    """What a reference says, as far as it covers each seen class.

    Scores have mean 0 and variance 1 over the seen classes. The classes of features are the
    predicted ones.
    """
    C = len(table.items)
    is_softmax = table.kind == "multiclass"
    total, products, counts = np.zeros(C), np.zeros((C, C)), np.zeros(C)
    sums, shares, weighed = np.zeros((C, C)), np.zeros((2, C)), np.zeros((C, C))
    d = 0 if table.features is None else table.features.shape[1]
    center = np.asarray(table.features.mean(axis=0), np.float64).ravel() if d else np.zeros(0)
    feature_sums = np.zeros((C, d))
    for rows in row_blocks(len(table), max(table.values.shape[1], d)):
        f = standardize_rows(table.values[rows])
        predicted = f.argmax(axis=1)
        total += f.sum(axis=0)
        products += f.T @ f
        counts += np.bincount(predicted, minlength=C)
        np.add.at(sums, predicted, f)
        if d:
            x = scale_features(as_dense(table.features[rows]), center, np)
            np.add.at(feature_sums, predicted, x)
        if is_softmax:
            p = softmax(table.values[rows].astype(np.float64), axis=1)
            weighed += p.T @ f
            shares += p.sum(axis=0), (p**2).sum(axis=0)
    n = len(table)
    if not is_softmax:
        weighed, shares = sums, np.array([counts, counts])
    mean = coverage * total / n
    variance = np.diagonal(products) / n - (total / n) ** 2
    std = np.sqrt(np.where(variance > 1e-12, variance, 1.0)) ** coverage
    scale = std * np.sqrt(C)
    trust = np.sqrt(np.outer(coverage, coverage))
    np.fill_diagonal(trust, 1.0)
    around = (sums - np.outer(counts, total / n)) / scale
    scatter = (products - np.outer(total, total) / n) / np.outer(scale, scale)
    within = scatter - measure_between(around, counts, float(np.trace(scatter)))
    noise = Noise(*_find_axes(within * trust, C), scatter / n * trust)
    share = 1.0 if is_softmax else SHARE[0]
    # The squared length of an input is about 1.
    centered = (weighed - shares[0][:, None] * mean) / scale
    found = _measure_pairs(centered, shares[0], shares[1], 1.0)
    signal = Signal(*SIGNAL) if found is None else Signal(max(share * found, 1e-3), SHARE[1])
    score_sums = (sums - counts[:, None] * mean) / scale
    by_scores, by_features = (
        _measure_pairs(each, counts, counts, 1.0) for each in (score_sums, feature_sums)
    )
    if not d or not by_features or not by_scores or by_features * by_scores < 0:
        return Usual(mean, std, noise, signal)
    return Usual(mean, std, noise, signal, by_features / by_scores)


def measure_between(sums: Floats, counts: Floats, total: float) -> Floats:
    """The scatter of the means of classes, given the sums of their inputs.

    The inputs have mean 0, and the sum of their squared lengths is ``total``. The mean of a class
    is that of the posterior distribution: the inputs of a small class hardly tell what is the mean
    and what is noise. If pairs of inputs of one class have the share g of the squared length of an
    input in common, it is the sum of the n inputs times g / (n g + 1 - g).
    """
    common = _measure_pairs(sums, counts, counts, total / counts.sum()) or 0.0
    g = min(max(common * counts.sum() / total, 0.0), 1.0) if total > 0 else 0.0
    own = np.maximum(counts * g + 1 - g, 1e-100)
    return np.asarray((sums * (g * (own + 1 - g) / own**2)[:, None]).T @ sums)


def _measure_pairs(sums: Floats, counts: Floats, squares: Floats, size: float) -> float | None:
    """The mean product of two inputs of one class, of the classes that have two inputs.

    These are the products of the sums less each input with itself. Inputs may belong to classes in
    part: ``counts`` and ``squares`` are sums of these shares and of their squares.
    """
    pairs = counts**2 - squares
    known = pairs > PAIRS
    if not known.any():
        return None
    return float(((np.vecdot(sums, sums) - squares * size)[known] / pairs[known]).mean())


def fit_factors(one: Floats, other: Floats, labels: Codes, usual: float) -> tuple[float, float]:
    """The factors of two tables of log-odds whose sum makes labels most probable.

    Few labels change little: both factors are ``usual`` beforehand, and `CALIBRATION` is the
    standard deviation of their logarithms.
    """
    known = Weighed(one, other, labels, np.ones(len(labels)))

    def loss(log_factors: Floats) -> tuple[float, Floats]:
        factors, off = np.exp(log_factors), (log_factors - np.log(usual)) / CALIBRATION
        value, slopes = measure_loss([known], *factors)
        return value + 0.5 * float(off @ off), factors * slopes + off / CALIBRATION

    a, b = np.exp(minimize(loss, np.log([usual, usual]), jac=True).x)
    return float(a), float(b)


def assign_folds(labels: Codes) -> Codes:
    """A fold for each example, so that the examples of a class are in different folds."""
    order = np.argsort(labels, kind="stable")
    fold = np.empty_like(labels)
    fold[order] = np.arange(len(labels)) % N_FOLDS
    return fold


def measure_dependence(one: Floats, other: Floats, labels: Codes) -> float:
    """The factor of the sum of two log-odds that share what they see of an input.

    Both are tables of labelled inputs. With strengths a and b and the correlation r over inputs of
    other classes, it is (a² + b²) / (a² + b² + 2 a b r).
    """
    others = labels[:, None] != np.arange(one.shape[1])
    if not others.any():
        return 1.0
    x, y = one[others] - one[others].mean(), other[others] - other[others].mean()
    xx, yy = float(x @ x), float(y @ y)
    return (xx + yy) / max(xx + yy + 2 * max(float(x @ y), 0.0), 1e-300) if xx + yy > 0 else 1.0


def balance_classes(values: Floats, labels: Codes) -> Floats:
    """A factor of the log-odds of each class, given those of the examples.

    Over inputs of other classes, those of classes with few and with many examples then have one
    variance, their mean. So classes with few examples are neither preferred nor neglected.
    """
    counts = np.bincount(labels, minlength=values.shape[1])
    others = labels[:, None] != np.arange(len(counts))
    if others.sum(axis=0).min() < 2:
        # A single input has no variance.
        return np.ones(len(counts))
    variances = values.var(axis=0, where=others)
    _, group = np.unique(counts, return_inverse=True)
    of_group = (np.bincount(group, variances) / np.bincount(group))[group]
    return np.asarray(np.sqrt(variances.mean() / np.where(of_group > 0, of_group, np.inf)))


def as_dense(features: Any) -> Floats:
    """Features as an array."""
    return np.asarray(features.toarray() if issparse(features) else features, np.float64)


def center_features(features: Any, labels: Codes) -> Floats:
    """The mean of features over the classes of examples."""
    there = np.unique(labels)
    means = [np.asarray(features[labels == z]).mean(axis=0) for z in there]
    return np.asarray(np.mean(means, axis=0))


# ---- What is learned from all examples


class ExampleFacts(NamedTuple):
    """What a head learned from labelled examples.

    Attributes
    ----------
    n_examples : int
        The number of examples.
    slope : float
        β: how closely the scores of the examples follow the rankings; 0 if they do not agree. Only
        for a `WeightedMean`.
    signal : float
        ρ: the share of the variation in the scores, or else in the features, that examples of one
        class have in common.
    only_class : str
        The class of all examples, if it has a ranking: then nothing is learned from them, as they
        do not show what distinguishes the class from others. Otherwise empty.

    Examples
    --------
    >>> from rankshot.zeroshot import ExampleFacts
    >>> ExampleFacts._fields
    ('n_examples', 'slope', 'signal', 'only_class')
    """

    n_examples: int
    slope: float
    signal: float
    only_class: str = ""


@dataclass(frozen=True, eq=False)
class LogOdds:
    """Linear functions of standardised scores and of features, one column per class.

    Features are centred and scaled to length 1.
    """

    slopes: Floats
    offsets: Floats
    feature_center: Floats
    feature_slopes: Floats

    def evaluate(self, known: Known) -> Floats:
        """The log-odds of some inputs."""
        total = known.f @ self.slopes + self.offsets
        if len(self.feature_slopes):
            features = scale_features(known.features, self.feature_center, np)
            total = total + features @ self.feature_slopes
        return np.asarray(total)

    def scale(self, factors: float | Floats) -> LogOdds:
        """These log-odds times a factor, or times one for each class."""
        return LogOdds(
            factors * self.slopes,
            factors * self.offsets,
            self.feature_center,
            factors * self.feature_slopes,
        )

    def add(self, other: LogOdds) -> LogOdds:
        """The sum of two, of which at most one has a centre of features."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return LogOdds(*(one + two for one, two in pairs))


class Known(NamedTuple):
    """Examples: standardised scores, features and classes."""

    f: Floats
    features: Floats
    codes: Codes

    def take(self, rows: NDArray[np.bool_]) -> Known:
        """Some of the examples."""
        return Known(self.f[rows], self.features[rows], self.codes[rows])


def learn_examples(
    known: Known, usual: Usual, prototypes: Prototypes
) -> tuple[LogOdds, ExampleFacts]:
    """Learn log-odds from examples and rankings; calibrate by leaving examples out in turn."""
    of_scores, of_features, facts = _learn_parts(known, usual, prototypes)
    is_ranked = prototypes.directions.any(axis=1)
    fold, tested = assign_folds(known.codes), []
    for group in np.unique(fold):
        kept, left = known.take(fold != group), known.take(fold == group)
        # An example that is all that is known of a class cannot be left out.
        left = left.take(is_ranked[left.codes] | np.isin(left.codes, kept.codes))
        if len(kept.codes) and len(left.codes):
            a, b, _ = _learn_parts(kept, usual, prototypes)
            tested.append((a.evaluate(left), b.evaluate(left), left.codes))
    expected = measure_dependence(
        of_scores.evaluate(known), of_features.evaluate(known), known.codes
    )
    factors = expected, expected
    if tested:
        one, other, codes = (np.concatenate(parts) for parts in zip(*tested, strict=True))
        factors = fit_factors(one, other, codes, expected)
    total = of_scores.scale(factors[0]).add(of_features.scale(factors[1]))
    # Log-odds vary as much for classes with few examples as for the others.
    return total.scale(balance_classes(total.evaluate(known), known.codes)), facts


def _learn_parts(
    known: Known, usual: Usual, prototypes: Prototypes
) -> tuple[LogOdds, LogOdds, ExampleFacts]:
    """Learn from the scores of some examples, with the rankings, and from their features."""
    (n_classes, n_items), n_features = prototypes.directions.shape, known.features.shape[1]
    u = (known.f - usual.mean) / usual.std / np.sqrt(n_items)
    noise = usual.noise
    if noise is None:
        noise = measure_noise(u, known.codes, prototypes.directions)
    by_scores = fit_class_means(u, known.codes, n_classes, usual.signal, noise, prototypes)
    slopes = (by_scores.slopes / usual.std / np.sqrt(n_items)).T
    none = LogOdds(
        np.zeros((n_items, n_classes)),
        np.zeros(n_classes),
        np.zeros(n_features),
        np.zeros((n_features, n_classes)),
    )
    of_scores = replace(none, slopes=slopes, offsets=by_scores.offsets - usual.mean @ slopes)
    expected = Signal(usual.feature_share * by_scores.signal, SHARE[1])
    of_features, signal = _learn_features(known, none, expected)
    return (
        of_scores,
        of_features,
        ExampleFacts(len(known.codes), by_scores.slope, signal or by_scores.signal),
    )


def _learn_features(known: Known, none: LogOdds, signal: Signal) -> tuple[LogOdds, float | None]:
    """Learn from the features of examples; also ρ, or None if they say nothing."""
    if not known.features.shape[1]:
        return none, None
    center = center_features(known.features, known.codes)
    x = scale_features(known.features, center, np)
    # Features are centred by the examples, so those of a single class say nothing of others.
    if np.ptp(known.codes) == 0 or not x.any():
        return replace(none, feature_center=center), None
    fitted = fit_class_means(x, known.codes, len(none.offsets), signal)
    log_odds = replace(
        none, feature_center=center, feature_slopes=fitted.slopes.T, offsets=fitted.offsets
    )
    return log_odds, fitted.signal

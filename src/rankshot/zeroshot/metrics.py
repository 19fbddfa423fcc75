"""Metrics of a zero-shot classifier that scikit-learn does not have.

Classes are names; whole numbers become text. Every true class must have a column of probabilities.
Classes with the same probability are equally likely to be predicted, so the order of the columns
never matters.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.metrics import recall_score

from rankshot.core.errors import InputError, format_share, suggest_name
from rankshot.core.validation import as_names, require_number, require_whole_number
from rankshot.zeroshot.scores import PROBABILITY_RULE

__all__ = [
    "Interval",
    "Reliability",
    "mean_class_interval",
    "per_class_accuracy",
    "reliability",
    "wilson_interval",
]

Floats = NDArray[np.float64]
N_RESAMPLES = 1000


class Interval(NamedTuple):
    """A share with its confidence interval.

    Attributes
    ----------
    estimate : float
    low, high : float
        The ends of the interval.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import wilson_interval
    >>> print(wilson_interval(160, 200))
    .800 [.739, .850]
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        estimate, low, high = map(format_share, self)
        return f"{estimate} [{low}, {high}]"


# ---- Accuracies


def per_class_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """Accuracy of every class that occurs in ``y_true``, sorted by name.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        The true and the predicted class of each input.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import per_class_accuracy
    >>> per_class_accuracy(["dog", "cat", "cat", "cat"], ["fox", "cat", "cat", "dog"])
    {'cat': 0.6666666666666666, 'dog': 0.0}
    """
    true, predicted = (np.asarray(labels).astype(str) for labels in (y_true, y_pred))
    names = np.unique(true)
    shares = recall_score(true, predicted, labels=names, average=None)
    return dict(zip(names.tolist(), shares.tolist(), strict=True))


def class_weights(y_true: ArrayLike) -> Floats:
    """Weight 1 / n_c of each input, n_c being the size of its class."""
    _, code = np.unique(np.asarray(y_true).astype(str), return_inverse=True)
    return np.asarray(1.0 / np.bincount(code)[code])


# ---- Intervals


def wilson_interval(correct: float, n: float) -> Interval:
    """Share correct / n with Wilson's 95% score interval.

    It stays inside [0, 1], and its coverage is close to 95% even for small n and for shares near
    0 and 1.

    Parameters
    ----------
    correct : float
        The number of correct predictions; fractional if a tie counts as partly correct.
    n : float
        The number of inputs, or the effective sample size if inputs are weighted.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import wilson_interval
    >>> print(wilson_interval(1780, 4000))
    .445 [.430, .460]
    """
    n = require_number("n", n, above=0)
    correct = require_number("correct", correct, least=0, most=n)
    # The ends x solve (p - x)² = 2 h x (1 - x).
    p, h = correct / n, float(ndtri(0.025)) ** 2 / (2 * n)
    reach = sqrt(h * (h + 2 * p * (1 - p)))
    low, high = (p + h - reach) / (1 + 2 * h), (p + h + reach) / (1 + 2 * h)
    return Interval(p, max(low, 0.0), min(high, 1.0))


def mean_class_interval(shares: ArrayLike, n_inputs: ArrayLike) -> Interval:
    """Mean of the accuracies of L classes, with Wilson's interval.

    The mean gives each input of class c the weight 1 / (L n_c). Weighted inputs are as informative
    as 1 / Σ weight² = L² / Σ 1/n_c inputs of equal weight (Kish 1965).

    Parameters
    ----------
    shares : array-like of shape (L,)
        The accuracy of each class.
    n_inputs : array-like of shape (L,)
        The number n_c of inputs of each class; classes without inputs are left out.

    Examples
    --------
    Three inputs in four of both classes are recognised, but there are few inputs of the second:

    >>> from rankshot.zeroshot.metrics import mean_class_interval, wilson_interval
    >>> print(mean_class_interval([.75, .75], [400, 4]), wilson_interval(303, 404))
    .750 [.504, .899] .750 [.706, .790]
    """
    counts = np.asarray(n_inputs, dtype=float)
    there = counts > 0
    mean = float(np.asarray(shares, dtype=float)[there].mean())
    n = float(there.sum() ** 2 / (1 / counts[there]).sum())
    # The mean of shares may exceed 1 by rounding.
    return wilson_interval(min(mean, 1.0) * n, n)


def class_interval(shares: ArrayLike) -> Interval:
    """The mean of the accuracies of classes, with a 95% interval from resamples of *classes*.

    Use it for statements about classes in general: classes differ more from one another than the
    inputs of one class do.
    """
    values = np.asarray(shares, np.float64)
    drawn = np.random.default_rng(0).integers(len(values), size=(N_RESAMPLES, len(values)))
    low, high = np.quantile(values[drawn].mean(axis=1), [0.025, 0.975])
    return Interval(float(values.mean()), float(low), float(high))


# ---- Calibration


def reliability(
    y_true: ArrayLike, proba: ArrayLike, classes: Iterable[object], n_bins: int = 15
) -> Reliability:
    """Compare the largest probability of each row (its confidence) with the accuracy.

    If m classes share the largest probability and the true class is one of them, the input counts
    as 1/m correct.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true class of each input.
    proba : array-like of shape (n, L)
        The probability of each class.
    classes : iterable of names
        The L classes, in the order of the columns.
    n_bins : int
        The number of bins, of equal width on (0, 1].

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import reliability
    >>> found = reliability(["cat", "dog"], [[.9, .1], [.7, .3]], ["cat", "dog"], n_bins=2)
    >>> found.confidence, found.accuracy, found.count
    (array([nan, 0.8]), array([nan, 0.5]), array([0, 2]))
    >>> round(found.expected_calibration_error, 3)
    0.3
    """
    n_bins = require_whole_number("n_bins", n_bins)
    names, labels = as_names(classes, "classes"), np.asarray(y_true).astype(str)
    values = np.asarray(proba, np.float64)
    if values.shape != (len(labels), len(names)):
        rule = f"must have the shape {(len(labels), len(names))}"
        raise InputError("proba", values.shape, rule)
    PROBABILITY_RULE.refuse_first(values, "row {}".format, names.__getitem__)
    if unknown := sorted({*labels.tolist()} - {*names}):
        close = suggest_name(unknown[0], names)
        raise InputError("y_true", unknown[0], f"is not one of the classes{close}")
    columns = {name: i for i, name in enumerate(names)}
    own = values[np.arange(len(labels)), [columns[name] for name in labels.tolist()]]
    top = values.max(axis=1)
    right = np.where(own == top, 1 / (values == top[:, None]).sum(axis=1), 0.0)
    top = np.minimum(top, 1.0)
    # Not linspace: a multiple of a rounded step is not always the fraction nearest to b / n.
    edges = np.arange(n_bins + 1) / n_bins
    bins = np.maximum(np.searchsorted(edges, top) - 1, 0)
    count = np.bincount(bins, minlength=n_bins)
    with np.errstate(invalid="ignore"):
        confidence, share = (np.bincount(bins, x, n_bins) / count for x in (top, right))
    return Reliability(edges, confidence, share, count)


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram: confidence and accuracy in bins of confidence; see `reliability`.

    Attributes
    ----------
    edges : ndarray of shape (bins + 1,)
        Bin b holds the confidences above ``edges[b]`` and up to ``edges[b + 1]``.
    confidence, accuracy : ndarray of shape (bins,)
        Mean confidence and accuracy in each bin; NaN for an empty bin.
    count : ndarray of int of shape (bins,)
        Number of inputs in each bin.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import reliability
    >>> reliability(["cat"], [[.9, .1]], ["cat", "dog"], n_bins=2).edges
    array([0. , 0.5, 1. ])
    """

    edges: Floats
    confidence: Floats
    accuracy: Floats
    count: NDArray[np.int64]

    @property
    def expected_calibration_error(self) -> float:
        """The mean over inputs of ``|accuracy - confidence|`` of their bin; 0 is perfect."""
        used = self.count > 0
        gap = np.abs(self.accuracy[used] - self.confidence[used])
        return float(np.average(gap, weights=self.count[used]))

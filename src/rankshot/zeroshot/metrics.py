"""Metrics of a zero-shot classifier.

In all functions, ``y_true`` holds the classes of n inputs and ``y_pred`` the predicted classes.
``proba`` is a table of n rows, with one column for each of the L ``classes``; every class in
``y_true`` must be one of them. Classes are names; whole numbers become text. Classes with the same
probability are equally likely to be predicted, so the order of the columns never matters.

For a confusion matrix use `sklearn.metrics.confusion_matrix` with ``labels=classes``.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.validation import as_names, require_number, require_whole_number
from rankshot.zeroshot.scored_tables import (
    ROUNDING,
    Reliability,
    class_codes,
    compare_labels,
    require_probabilities,
    require_scored_table,
)

__all__ = [
    "GeneralizedAccuracy",
    "Interval",
    "Reliability",
    "accuracy",
    "expected_calibration_error",
    "generalized_accuracy",
    "mean_class_accuracy",
    "mean_class_interval",
    "negative_log_likelihood",
    "pairwise_accuracy",
    "per_class_accuracy",
    "reliability",
    "top_k_accuracy",
    "wilson_interval",
]

Floats = NDArray[np.float64]


def accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the share of inputs whose class is predicted correctly.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import accuracy
    >>> accuracy(["cat", "cat", "cat", "dog"], ["cat", "cat", "dog", "fox"])
    0.5
    """
    return float(compare_labels(y_true, y_pred)[1].mean())


def per_class_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """Return the accuracy of every class that occurs in ``y_true``, sorted by name.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import per_class_accuracy
    >>> per_class_accuracy(["dog", "cat", "cat", "cat"], ["fox", "cat", "cat", "dog"])
    {'cat': 0.6666666666666666, 'dog': 0.0}
    """
    labels, right = compare_labels(y_true, y_pred)
    names = sorted(set(labels))
    codes = class_codes(labels, names)
    shares = np.bincount(codes, right) / np.bincount(codes)
    return dict(zip(names, shares.tolist(), strict=True))


def mean_class_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> float:
    """Return the mean of `per_class_accuracy`: a rare class counts as much as a common one.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import mean_class_accuracy
    >>> mean_class_accuracy(["cat", "cat", "cat", "dog"], ["cat", "cat", "cat", "cat"])
    0.5
    """
    return float(np.mean(list(per_class_accuracy(y_true, y_pred).values())))


def mean_class_interval(shares: ArrayLike, n_inputs: ArrayLike) -> Interval:
    """Return the mean of the accuracies of classes, with Wilson's interval.

    The mean gives each of the n_c inputs of class c the weight 1 / (L n_c). Weighted inputs are
    as informative as 1 / Σ weight² = L² / Σ 1/n_c inputs of equal weight (Kish 1965), which is
    the number of inputs if all classes have equally many. Classes without inputs are left out.

    Parameters
    ----------
    shares, n_inputs : array-like of shape (L,)
        The accuracy and the number of inputs of each class.

    Examples
    --------
    Three inputs in four of both classes are recognised, but there are few inputs of the second:

    >>> from rankshot.zeroshot.metrics import mean_class_interval, wilson_interval
    >>> print(mean_class_interval([.75, .75], [400, 4]), wilson_interval(303, 404))
    .750 [.504, .899] .750 [.706, .790]
    """
    counts = np.asarray(n_inputs, dtype=float)
    there = counts > 0
    if not there.any():
        raise RankshotError("no class has an input: there is nothing to measure")
    mean = float(np.asarray(shares, dtype=float)[there].mean())
    n = float(there.sum() ** 2 / (1 / counts[there]).sum())
    # The mean of shares may exceed 1 by rounding.
    return wilson_interval(min(mean, 1.0) * n, n)


class GeneralizedAccuracy(NamedTuple):
    """Accuracies on new and on seen classes that compete, and their harmonic mean.

    Attributes
    ----------
    new, seen : float
        The mean accuracies of the new and of the seen classes.
    harmonic : float
        Their harmonic mean.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import generalized_accuracy
    >>> found = generalized_accuracy(
    ...     ["cat", "cat", "fox", "fox"], ["fox", "cat", "fox", "fox"], seen=["fox"])
    >>> found.new, found.seen
    (0.5, 1.0)
    """

    new: float
    seen: float
    harmonic: float


def generalized_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, seen: Iterable[Any]
) -> GeneralizedAccuracy:
    """Return the mean class accuracy of the new and of the seen classes, and its harmonic mean.

    This is the protocol of Xian, Schiele and Akata (2017), who write U for the accuracy on new
    classes and S for that on seen classes: H = 2 U S / (U + S). It is high only if both are, and
    0 if both are 0. ``seen`` names the classes that the classifier was trained on, whether they
    occur in ``y_true`` or not; every other class is a new class.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true classes.
    y_pred : array-like of shape (n,)
        The predicted classes.
    seen : iterable of names
        The seen classes.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import generalized_accuracy
    >>> generalized_accuracy(["cat", "cat", "fox"], ["fox", "cat", "fox"], seen=["fox", "tiger"])
    GeneralizedAccuracy(new=0.5, seen=1.0, harmonic=0.6666666666666666)
    """
    trained = set(as_names(list(seen) if isinstance(seen, (set, frozenset)) else seen, "seen"))
    shares = per_class_accuracy(y_true, y_pred)
    of_seen = [share for name, share in shares.items() if name in trained]
    of_new = [share for name, share in shares.items() if name not in trained]
    if not of_seen or not of_new:
        kind = "new" if of_seen else "seen"
        raise RankshotError(
            f"y_true has no {kind} class, only {quote_names(shares)}; the seen classes are "
            f"{quote_names(sorted(trained))}. For classes of one kind use mean_class_accuracy"
        )
    U, S = float(np.mean(of_new)), float(np.mean(of_seen))
    return GeneralizedAccuracy(U, S, 2 * U * S / (U + S) if U + S > 0 else 0.0)


class Interval(NamedTuple):
    """A share and the ends of its confidence interval; as text, ``.445 [.430, .461]``.

    Attributes
    ----------
    estimate : float
        The share.
    low, high : float
        The ends of the interval.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import wilson_interval
    >>> found = wilson_interval(160, 200)
    >>> print(found)
    .800 [.739, .850]
    >>> found.estimate
    0.8
    """

    estimate: float
    low: float
    high: float

    def __str__(self) -> str:
        estimate, low, high = map(format_share, self)
        return f"{estimate} [{low}, {high}]"


def format_share(share: float) -> str:
    """Return a share as ``.445``, with three digits and no zero before the point.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import format_share
    >>> [format_share(share) for share in (0.4451, 1, -1e-17, -0.05, float("nan"))]
    ['.445', '1.000', '.000', '-.050', 'n/a']
    """
    if isnan(share):
        return "n/a"
    text = f"{share:.3f}".replace("-0.000", "0.000")
    return text.replace("0.", ".", 1) if abs(share) < 1 else text


def wilson_interval(correct: float, n: float, level: float = 0.95) -> Interval:
    """Return the share ``correct / n`` with Wilson's score interval.

    It stays inside [0, 1], and its coverage is close to ``level`` for small ``n`` and for shares
    near 0 and 1, too. ``correct`` may be fractional, because a tie can count as part of a hit; so
    may ``n``, as a number of inputs of equal weight that is as informative as weighted ones.

    Parameters
    ----------
    correct : float
        The number of correct predictions.
    n : float
        The number of all predictions.
    level : float
        The confidence level.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import wilson_interval
    >>> print(wilson_interval(1780, 4000))
    .445 [.430, .460]
    """
    n = require_number("n", n, above=0)
    correct = require_number("correct", correct, least=0, most=n)
    level = require_number("level", level, above=0, below=1)
    h = float(ndtri((1 - level) / 2)) ** 2 / (2 * n)
    p, q = correct / n, (n - correct) / n
    return Interval(p, _wilson_low(p, h), 1 - _wilson_low(q, h))


def _wilson_low(p: float, h: float) -> float:
    """Return the smaller root of (p - x)² = 2 h x (1 - x), where h = z² / 2n.

    It is the product of the roots divided by the larger root, so that nothing cancels.
    """
    return p**2 / (p + h + sqrt(h**2 + 2 * h * p * (1 - p))) if p > 0 else 0.0


# -------------------------------------------------------------------- probabilities


def top_k_accuracy(y_true: ArrayLike, proba: ArrayLike, classes: Iterable[Any], k: int) -> float:
    """Return the share of inputs whose class is among the ``k`` most probable; 1 <= k <= L.

    Where t classes tie for the last s places, each of them counts s/t. Only the order in each
    row matters, so log-probabilities and other scores can be passed, too.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n, L)
        The probabilities, or other scores, one column per class.
    classes : iterable of names
        The L classes, in the order of the columns.
    k : int
        How many classes count.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import top_k_accuracy
    >>> proba = [[.6, .2, .2], [.1, .8, .1]]
    >>> top_k_accuracy(["fox", "dog"], proba, ["cat", "dog", "fox"], k=2)
    0.75
    """
    scored = require_scored_table(y_true, proba, classes)
    return scored.top_k_accuracy(require_whole_number("k", k, most=scored.values.shape[1]))


def negative_log_likelihood(
    y_true: ArrayLike, log_proba: ArrayLike, classes: Iterable[Any]
) -> float:
    """Return the mean of -log P(true class); infinite if a true class has probability 0.

    ``log_proba`` holds natural logarithms of probabilities; ``-inf`` is probability 0. This is
    the cross-entropy that `sklearn.metrics.log_loss` computes. That function takes probabilities
    and clips them away from 0; this one takes log-probabilities, so that small probabilities keep
    their value.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true classes.
    log_proba : array-like of shape (n, L)
        The log-probabilities, one column per class.
    classes : iterable of names
        The L classes, in the order of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.zeroshot.metrics import negative_log_likelihood
    >>> log_proba = np.log([[.5, .5], [.2, .8]])
    >>> round(negative_log_likelihood(["cat", "dog"], log_proba, ["cat", "dog"]), 4)
    0.4581
    """
    rule = "a log-probability is at most 0 (np.log of a probability)"
    scored = require_scored_table(y_true, log_proba, classes, -np.inf, ROUNDING, rule)
    return float(0 - scored.of_truth.mean())  # not -mean, which gives -0.0 for a perfect score


def reliability(
    y_true: ArrayLike, proba: ArrayLike, classes: Iterable[Any], n_bins: int = 15
) -> Reliability:
    """Compare the largest probability of each row (its confidence) with the accuracy.

    The ``n_bins`` bins have equal width on (0, 1]. If m classes share the largest probability
    and the true class is one of them, the input counts 1/m. No row of ``proba`` may be all 0.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n, L)
        The probabilities, one column per class.
    classes : iterable of names
        The L classes, in the order of the columns.
    n_bins : int
        The number of bins.

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
    return require_probabilities(y_true, proba, classes).reliability(n_bins)


def expected_calibration_error(
    y_true: ArrayLike, proba: ArrayLike, classes: Iterable[Any], n_bins: int = 15
) -> float:
    """Return the mean difference between confidence and accuracy in the bins of `reliability`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n, L)
        The probabilities, one column per class.
    classes : iterable of names
        The L classes, in the order of the columns.
    n_bins : int
        The number of bins.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import expected_calibration_error
    >>> proba = [[.75, .25], [.75, .25], [.75, .25], [.75, .25]]
    >>> expected_calibration_error(["cat", "cat", "dog", "cat"], proba, ["cat", "dog"])
    0.0
    """
    return reliability(y_true, proba, classes, n_bins).expected_calibration_error


def pairwise_accuracy(y_true: ArrayLike, proba: ArrayLike, classes: Iterable[Any]) -> Floats:
    """Return the two-class accuracy of every pair of classes, as in the paper's last figure.

    Cell (a, b) is the share of the inputs of class a or b for which the true class is the more
    probable of the two; equal probabilities count one half. The matrix is symmetric, with NaN on
    the diagonal and where a pair has no inputs. Only the order in each row matters, so
    log-probabilities can be passed, too.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true classes.
    proba : array-like of shape (n, L)
        The probabilities, or other scores, one column per class.
    classes : iterable of names
        The L classes, in the order of the columns.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import pairwise_accuracy
    >>> proba = [[.6, .3, .1], [.5, .4, .1]]
    >>> pairwise_accuracy(["cat", "dog"], proba, ["cat", "dog", "ship"])
    array([[nan, 0.5, 1. ],
           [0.5, nan, 1. ],
           [1. , 1. , nan]])
    """
    return require_scored_table(y_true, proba, classes).pairwise_accuracy()

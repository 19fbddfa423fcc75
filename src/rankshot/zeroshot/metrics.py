"""Metrics of a zero-shot classifier.

Classes are names; whole numbers become text. Every true class must have a column of probabilities.
Classes with the same probability are equally likely to be predicted, so the order of the columns
never matters.

For a confusion matrix use `sklearn.metrics.confusion_matrix` with ``labels=classes``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri
from sklearn.metrics import confusion_matrix

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import RankshotError, format_share, quote_names, short_repr, suggest_name
from rankshot.core.validation import Seed, as_name, as_names, require_number, require_whole_number

__all__ = [
    "GeneralizedAccuracy",
    "Interval",
    "Reliability",
    "expected_calibration_error",
    "generalized_accuracy",
    "mean_class_interval",
    "per_class_accuracy",
    "reliability",
    "wilson_interval",
]

Floats = NDArray[np.float64]
PROBABILITY_ROUNDING = 1e-6
"""How far a probability may be outside [0, 1]: a softmax in single precision is, by 1e-7."""


def per_class_accuracy(y_true: ArrayLike, y_pred: ArrayLike) -> dict[str, float]:
    """Return the accuracy of every class that occurs in ``y_true``, sorted by name.

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
    labels, right = compare_labels(y_true, y_pred)
    names, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    return dict(zip(names.tolist(), (np.bincount(codes, right) / sizes).tolist(), strict=True))


def mean_class_interval(shares: ArrayLike, n_inputs: ArrayLike) -> Interval:
    """Return the mean of the accuracies of L classes, with Wilson's interval.

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


class GeneralizedAccuracy(NamedTuple):
    """What `generalized_accuracy` returns.

    Attributes
    ----------
    new, seen : float
        The mean class accuracies of new and of seen classes, where both may be predicted.
    harmonic : float
        Their harmonic mean.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import generalized_accuracy
    >>> generalized_accuracy(["cat", "fox"], ["cat", "cat"], seen=["fox"]).new
    1.0
    """

    new: float
    seen: float
    harmonic: float


def generalized_accuracy(
    y_true: ArrayLike, y_pred: ArrayLike, seen: Iterable[object]
) -> GeneralizedAccuracy:
    """Return the mean class accuracies of new and of seen classes, and their harmonic mean.

    This is the protocol of Xian, Schiele and Akata (2017), who write U for the accuracy on new
    classes and S for that on seen classes: H = 2 U S / (U + S). Every class that is not in
    ``seen`` is a new class.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        The true and the predicted class of each input.
    seen : iterable of names
        The classes that the classifier was trained on, whether they occur in ``y_true`` or not.

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
            f"{quote_names(sorted(trained))}. If all classes are new or all are seen, use "
            "mean_class_accuracy"
        )
    U, S = float(np.mean(of_new)), float(np.mean(of_seen))
    return GeneralizedAccuracy(U, S, 2 * U * S / (U + S) if U + S > 0 else 0.0)


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


def wilson_interval(correct: float, n: float) -> Interval:
    """Return the share correct / n with Wilson's 95% score interval.

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
    h = float(ndtri(0.025)) ** 2 / (2 * n)
    p, q = correct / n, (n - correct) / n
    return Interval(p, _wilson_low(p, h), 1 - _wilson_low(q, h))


def _wilson_low(p: float, h: float) -> float:
    """Return the smaller root of (p - x)² = 2 h x (1 - x), where h = z² / 2n.

    It is the product of the roots divided by the larger root, so that nothing cancels.
    """
    return p**2 / (p + h + sqrt(h**2 + 2 * h * p * (1 - p))) if p > 0 else 0.0


# -------------------------------------------------------------------- probabilities


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
    truth, values = require_probabilities(y_true, proba, classes)
    own, top = values[np.arange(len(truth)), truth], values.max(axis=1)
    right = np.where(own == top, 1 / (values == top[:, None]).sum(axis=1), 0.0)
    top = np.minimum(top, 1.0)
    # Not linspace: a multiple of a rounded step is not always the fraction nearest to b / n.
    edges = np.arange(n_bins + 1) / n_bins
    bins = np.maximum(np.searchsorted(edges, top) - 1, 0)
    count = np.bincount(bins, minlength=n_bins)
    confidence, share = (_divide(np.bincount(bins, x, n_bins), count) for x in (top, right))
    return Reliability(edges, confidence, share, count)


def expected_calibration_error(
    y_true: ArrayLike, proba: ArrayLike, classes: Iterable[object]
) -> float:
    """Return the mean difference between confidence and accuracy in the bins of `reliability`.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The true class of each input.
    proba : array-like of shape (n, L)
        The probability of each class.
    classes : iterable of names
        The L classes, in the order of the columns.

    Examples
    --------
    >>> from rankshot.zeroshot.metrics import expected_calibration_error
    >>> proba = [[.75, .25], [.75, .25], [.75, .25], [.75, .25]]
    >>> expected_calibration_error(["cat", "cat", "dog", "cat"], proba, ["cat", "dog"])
    0.0
    """
    return reliability(y_true, proba, classes).expected_calibration_error


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


def _divide(parts: NDArray[np.floating | np.integer], wholes: NDArray[np.int64]) -> Floats:
    """Divide, with NaN where the divisor is 0."""
    unknown = np.full(wholes.shape, np.nan)
    return np.asarray(np.divide(parts, wholes, out=unknown, where=wholes > 0))


def require_probabilities(
    y_true: ArrayLike, proba: ArrayLike, classes: Iterable[object]
) -> tuple[NDArray[np.intp], Floats]:
    """Validate labels and a table of probabilities, and return the column of each label, and it."""
    names, labels = as_names(classes, "classes"), require_labels(y_true, "y_true")
    values = np.asarray(proba, dtype=np.float64)
    if values.shape != (len(labels), len(names)):
        raise RankshotError(
            f"{len(labels)} labels in y_true and {len(names)} classes need probabilities of shape "
            f"({len(labels)}, {len(names)}), not {values.shape}"
        )
    # The extremes are NaN if any cell is NaN, and finding them takes no memory.
    most = 1 + PROBABILITY_ROUNDING
    if not (values.min() >= 0 and values.max() <= most):
        row, column = np.argwhere(~((values >= 0) & (values <= most)))[0]
        raise RankshotError(
            f"row {row}, class {short_repr(names[column])}: probabilities must be from 0 to 1 "
            f"(apply np.exp to log-probabilities), not {values[row, column]}"
        )
    code = {name: i for i, name in enumerate(names)}
    codes = np.fromiter((code.get(label, -1) for label in labels), np.intp, len(labels))
    if codes.min() < 0:
        row = int(codes.argmin())
        raise RankshotError(
            f"y_true, row {row}: {short_repr(labels[row])} is not one of the {len(names)} classes"
            f"{suggest_name(labels[row], names)}"
        )
    return codes, values


def compare_labels(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[list[str], Floats]:
    """Return the true labels, and 1 where the predicted label is the same, else 0."""
    true, predicted = require_labels(y_true, "y_true"), require_labels(y_pred, "y_pred")
    if len(true) != len(predicted):
        raise RankshotError(f"y_true has {len(true)} labels, but y_pred has {len(predicted)}")
    return true, np.fromiter(map(str.__eq__, true, predicted), np.float64, len(true))


def require_labels(labels: ArrayLike, what: str) -> list[str]:
    """Return labels as names; raise for the first one that is not a name."""
    # As objects: otherwise NumPy turns a missing label among names into the text 'nan'.
    cells = np.asarray(labels, dtype=object)
    if cells.ndim != 1 or cells.size == 0:
        raise RankshotError(
            f"{what} must be one class name for each input, not {short_repr(labels)}"
        )
    names: list[Any] = cells.tolist()
    for row, label in enumerate(names):
        if type(label) is not str or not label:
            names[row] = as_name(label)
            if names[row] is None:
                raise RankshotError(
                    f"{what}, row {row}: expected the name of a class, not {short_repr(label)}"
                )
    return names


# -------------------------------------------------------------------- resamples

N_RESAMPLES = 1000
RESAMPLES_PER_BLOCK = 50
"""Resamples that are drawn together; it limits the memory."""


class Bootstrap:
    """Resamples of n inputs, drawn with replacement within each class.

    All metrics of one experiment are computed on the same resamples, so that differences between
    methods have intervals as well.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        The classes of the inputs.
    random_state : int, optional
        The seed.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.zeroshot import Bootstrap
    >>> right = np.repeat([1.0, 0.0], [60, 40])
    >>> found = Bootstrap(["cat"] * 100, random_state=0).interval(right)
    >>> print(f"{found.estimate:.2f}, from {found.low:.1f} to {found.high:.1f}")
    0.60, from 0.5 to 0.7
    """

    def __init__(self, y_true: ArrayLike, *, random_state: Seed = 0) -> None:
        labels = np.array(require_labels(y_true, "y_true"))
        rng = np.random.default_rng(random_state)
        self._counts = np.zeros((N_RESAMPLES, len(labels)), np.uint8)
        for name in np.unique(labels):
            rows = np.flatnonzero(labels == name)
            for start in range(0, N_RESAMPLES, RESAMPLES_PER_BLOCK):
                some = self._counts[start : start + RESAMPLES_PER_BLOCK]
                drawn = rng.integers(rows.size, size=(len(some), rows.size))
                drawn += rows.size * np.arange(len(some))[:, None]
                counts = np.bincount(drawn.ravel(), minlength=len(some) * rows.size)
                some[:, rows] = counts.reshape(len(some), rows.size)

    def interval(self, values: ArrayLike, weights: ArrayLike | None = None) -> Interval:
        """Return the mean of one value per input, with its 95% bootstrap percentile interval.

        Parameters
        ----------
        values : array-like of shape (n,)
            For example, 1 for a correct prediction and 0 for a wrong one.
        weights : array-like of shape (n,), optional
            Positive weights, one per input. With `class_weights`, all classes have equal weight.
        """
        n = self._counts.shape[1]
        numbers = np.asarray(values, np.float64)
        weight = np.ones(n) if weights is None else np.asarray(weights, np.float64)
        if not numbers.shape == weight.shape == (n,) or not np.isfinite(numbers @ weight):
            raise RankshotError(f"{n} inputs need one number each, not {short_repr(values)}")
        means = self._sums(numbers * weight) / self._sums(weight)
        low, high = np.quantile(means, [0.025, 0.975])
        return Interval(float(np.average(numbers, weights=weight)), float(low), float(high))

    def _sums(self, values: Floats) -> Floats:
        blocks = row_blocks(*self._counts.shape)
        return np.concatenate([self._counts[rows].astype(np.float64) @ values for rows in blocks])


def class_interval(y_true: ArrayLike, right: ArrayLike) -> Interval:
    """Return the mean class accuracy, with an interval from resamples of *classes*.

    Use it for statements about classes in general: classes differ more from one another than the
    inputs of one class do.
    """
    _, code = np.unique(np.asarray(y_true).astype(str), return_inverse=True)
    by_class = np.bincount(code, np.asarray(right, np.float64)) / np.bincount(code)
    return Bootstrap(["class"] * len(by_class)).interval(by_class)


def class_weights(y_true: ArrayLike) -> Floats:
    """Return the weight 1 / n_c of each input, n_c being the size of its class."""
    _, code = np.unique(np.asarray(y_true).astype(str), return_inverse=True)
    return np.asarray(1.0 / np.bincount(code)[code])


# -------------------------------------------------------------------- confusions

Ints = NDArray[np.intp]
MAX_CLASSES = 40
"""Classes in a matrix, and pairs in a list."""
FEW_CLASSES = 20
"""At most this many classes are all in the matrix."""


def count_confusions(
    y_true: Sequence[str] | NDArray[np.str_],
    y_pred: Sequence[str] | NDArray[np.str_],
    classes: Sequence[str],
) -> NDArray[np.int64]:
    """Return how many inputs of each class (row) got each class (column).

    An input whose true or predicted class is none of the ``classes`` is not counted.
    """
    with warnings.catch_warnings():
        # scikit-learn asks for `labels` where there is one class, or nearly one class per input.
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(confusion_matrix(y_true, y_pred, labels=classes))


def choose_confused_classes(confusion: NDArray[np.integer], classes: Sequence[str]) -> list[int]:
    """Return the classes of the matrix, in their order: those with the most confusions.

    A class is confused if its inputs got another class, or if it was given to inputs of another.
    A few classes are all shown.
    """
    if len(classes) <= FEW_CLASSES:
        return list(range(len(classes)))
    wrong = np.array(confusion)
    np.fill_diagonal(wrong, 0)
    times = wrong.sum(axis=0) + wrong.sum(axis=1)
    order = np.lexsort((_rank_names(classes), -times))[:MAX_CLASSES]
    return sorted(int(i) for i in order if times[i])


def describe_left_out(kept: int, L: int) -> str:
    """Return a sentence about the classes that are not in the matrix."""
    if kept < MAX_CLASSES:
        return f"The other {L - kept:,} of {L:,} classes were never confused, and are left out."
    return f"Only the {kept} of {L:,} classes with the most confusions are shown."


def find_largest_confusions(
    confusion: NDArray[np.integer], classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs (true class, predicted class) with the largest counts, largest first.

    Classes are given by their positions in ``classes``.
    """
    wrong = np.array(confusion, dtype=float)
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    return _take_first_pairs(-wrong[rows, columns], rows, columns, classes)


def find_lowest_pairs(
    pairwise: NDArray[np.floating], classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs of classes with the lowest values of a symmetric matrix, lowest first.

    Each pair is given once, in alphabetical order of its names.
    """
    by_name = _rank_names(classes)
    rows, columns = np.nonzero(~np.isnan(pairwise) & (by_name[:, None] < by_name))
    values = np.asarray(pairwise, dtype=float)[rows, columns]
    return _take_first_pairs(values, rows, columns, classes)


def _rank_names(classes: Sequence[str]) -> Ints:
    """Return the place of each class in alphabetical order."""
    return np.unique(np.array(classes, dtype=object), return_inverse=True)[1]


def _take_first_pairs(
    values: Floats, rows: Ints, columns: Ints, classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs with the smallest values; equal ones are ordered by their names."""
    by_name = _rank_names(classes)
    first = np.lexsort((by_name[columns], by_name[rows], values))[:MAX_CLASSES]
    return [(int(rows[i]), int(columns[i])) for i in first]

"""Validated labels and tables of probabilities, from which the metrics are computed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.validation import as_names

Floats = NDArray[np.float64]
ROUNDING = 1e-6
"""How far a probability may be outside [0, 1]: a softmax in single precision is, by 1e-7."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """A reliability diagram: confidence and accuracy in bins of confidence.

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
    >>> found = reliability(["cat", "dog"], [[.9, .1], [.7, .3]], ["cat", "dog"], n_bins=2)
    >>> found.edges, found.count
    (array([0. , 0.5, 1. ]), array([0, 2]))
    >>> round(found.expected_calibration_error, 3)
    0.3
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


class ScoredTable(NamedTuple):
    """A validated table: the column of each row's true class, and the numbers.

    The methods compute metrics, so that several of them need only one validation.
    """

    truth: NDArray[np.intp]
    values: Floats

    @property
    def of_truth(self) -> Floats:
        """The value of each row's true class."""
        own: Floats = self.values[np.arange(len(self.truth)), self.truth]
        return own

    def top_k_accuracy(self, k: int) -> float:
        """Return the share of inputs whose class is among the ``k`` best."""
        return float(self._chance_in_top(k).mean())

    def reliability(self, n_bins: int = 15) -> Reliability:
        """Compare confidence and accuracy; the numbers must be probabilities."""
        top = np.minimum(self.values.max(axis=1), 1.0)
        if top.min() == 0:
            raise RankshotError(f"row {top.argmin()}: every class has probability 0")
        # Not linspace: a multiple of a rounded step is not always the fraction nearest to b / n.
        edges = np.arange(n_bins + 1) / n_bins
        bins = np.searchsorted(edges, top) - 1
        count = np.bincount(bins, minlength=n_bins)
        confidence = _shares(np.bincount(bins, top, n_bins), count)
        right = _shares(np.bincount(bins, self._chance_in_top(1), n_bins), count)
        return Reliability(edges, confidence, right, count)

    def pairwise_accuracy(self) -> Floats:
        """Return the two-class accuracy of every pair of classes."""
        values, own = self.values, self.of_truth[:, None]
        n, L = values.shape
        # Twice the wins of each true class over each other class: integers, so sums are exact.
        wins = np.zeros((L, L), np.int64)
        for rows in row_blocks(n, L):
            below, not_above = values[rows] < own[rows], values[rows] <= own[rows]
            np.add.at(wins, self.truth[rows], np.add(below, not_above, dtype=np.int64))
        inputs = np.bincount(self.truth, minlength=L)
        shares = _shares(wins + wins.T, 2 * (inputs[:, None] + inputs))
        np.fill_diagonal(shares, np.nan)
        return shares

    def _chance_in_top(self, k: int) -> Floats:
        """Return the probability that each true class is in the top k if ties are cut at random."""
        values, own = self.values, self.of_truth[:, None]
        chance = np.empty(len(own))
        for rows in row_blocks(*values.shape):
            above = (values[rows] > own[rows]).sum(axis=1)
            tied = (values[rows] == own[rows]).sum(axis=1)
            chance[rows] = np.clip((k - above) / tied, 0, 1)
        return chance


def _shares(parts: NDArray[Any], wholes: NDArray[np.int64]) -> Floats:
    """Divide, with NaN where the divisor is 0."""
    shares = np.full(wholes.shape, np.nan)
    np.divide(parts, wholes, out=shares, where=wholes > 0)
    return shares


def require_probabilities(
    y_true: ArrayLike, proba: ArrayLike, classes: Iterable[Any]
) -> ScoredTable:
    """Validate labels and a table of probabilities, one per class."""
    rule = "a probability is from 0 to 1 (np.exp of its logarithm)"
    return require_scored_table(y_true, proba, classes, 0, 1 + ROUNDING, rule)


def require_scored_table(
    y_true: ArrayLike,
    table: ArrayLike,
    classes: Iterable[Any],
    low: float = -np.inf,
    high: float = np.inf,
    rule: str = "expected a number",
) -> ScoredTable:
    """Validate labels, and a table of numbers between ``low`` and ``high``, one per class."""
    names, labels = as_names(classes, "classes"), require_labels(y_true, "y_true")
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RankshotError(f"probabilities must be a table of numbers: {error}") from None
    if values.shape != (len(labels), len(names)):
        raise RankshotError(
            f"{len(labels)} labels in y_true and {len(names)} classes need probabilities of shape "
            f"({len(labels)}, {len(names)}), not {values.shape}"
        )
    # The extremes are NaN if any cell is NaN, and finding them takes no memory.
    if not (values.min() >= low and values.max() <= high):
        row, column = np.argwhere(~((values >= low) & (values <= high)))[0]
        where = f"row {row}, class {short_repr(names[column])}"
        raise RankshotError(f"{where}: {rule}, not {values[row, column]}")
    return ScoredTable(class_codes(labels, names), values)


def class_codes(labels: list[str], classes: Sequence[str]) -> NDArray[np.intp]:
    """Return the index of each label in the classes; raise for the first unknown label."""
    code = {name: i for i, name in enumerate(classes)}
    codes = np.fromiter((code.get(label, -1) for label in labels), np.intp, len(labels))
    if codes.min() < 0:
        row = int(codes.argmin())
        raise RankshotError(
            f"y_true, row {row}: {short_repr(labels[row])} is not one of the {len(classes)} classes"
            f"{suggest_name(labels[row], classes)}"
        )
    return codes


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
    if cells.ndim != 1:
        raise RankshotError(
            f"{what} must be one class name for each input, not {short_repr(labels)}"
        )
    if cells.size == 0:
        raise RankshotError(f"{what} is empty: there is nothing to measure")
    names: list[Any] = cells.tolist()
    for row, label in enumerate(names):
        if type(label) is not str or not label:
            try:
                names[row] = as_names([label])[0]
            except RankshotError:
                problem = f"expected the name of a class, not {short_repr(label)}"
                raise RankshotError(f"{what}, row {row}: {problem}") from None
    return names

"""Labels and tables that a caller wants measured, checked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.encode import as_names
from rankshot.ranking.errors import RankshotError, did_you_mean, shown

Floats = NDArray[np.float64]


class ScoredTable(NamedTuple):
    """A checked table: the column of each row's true class, and the numbers."""

    truth: NDArray[np.intp]
    values: Floats

    @property
    def of_truth(self) -> Floats:
        """The number of each row's true class."""
        own: Floats = self.values[np.arange(len(self.truth)), self.truth]
        return own


def scored_table(
    y_true: ArrayLike,
    table: ArrayLike,
    classes: Iterable[Any],
    low: float = -np.inf,
    high: float = np.inf,
    rule: str = "expected a number",
) -> ScoredTable:
    """Check labels and a table of numbers from ``low`` to ``high`` for each of the classes."""
    names, labels = as_names(classes, "classes"), label_names(y_true, "y_true")
    try:
        values = np.asarray(table, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise RankshotError(f"probabilities must be a table of numbers: {error}") from None
    if values.shape != (len(labels), len(names)):
        raise RankshotError(
            f"{len(labels)} labels in y_true and {len(names)} classes need probabilities of shape "
            f"({len(labels)}, {len(names)}), not {values.shape}"
        )
    # The extremes are NaN if any cell is, and finding them takes no memory.
    if not (values.min() >= low and values.max() <= high):
        row, column = np.argwhere(~((values >= low) & (values <= high)))[0]
        where = f"row {row}, class {shown(names[column])}"
        raise RankshotError(f"{where}: {rule}, not {values[row, column]}")
    return ScoredTable(class_codes(labels, names), values)


def class_codes(labels: list[str], classes: Sequence[str]) -> NDArray[np.intp]:
    """Return the place of each label among the classes, or name the first that has none."""
    code = {name: i for i, name in enumerate(classes)}
    codes = np.fromiter((code.get(label, -1) for label in labels), np.intp, len(labels))
    if codes.min() < 0:
        row = int(codes.argmin())
        raise RankshotError(
            f"y_true, row {row}: {shown(labels[row])} is not one of the {len(classes)} classes"
            f"{did_you_mean(labels[row], classes)}"
        )
    return codes


def compared(y_true: ArrayLike, y_pred: ArrayLike) -> tuple[list[str], Floats]:
    """Return the true labels, and 1 where the predicted one is the same, else 0."""
    true, predicted = label_names(y_true, "y_true"), label_names(y_pred, "y_pred")
    if len(true) != len(predicted):
        raise RankshotError(f"y_true has {len(true)} labels, but y_pred has {len(predicted)}")
    return true, np.fromiter(map(str.__eq__, true, predicted), np.float64, len(true))


def label_names(labels: ArrayLike, what: str) -> list[str]:
    """Return labels as names, or say which is none."""
    # As objects: NumPy would make the text 'nan' of a missing label among names.
    cells = np.asarray(labels, dtype=object)
    if cells.ndim != 1:
        raise RankshotError(f"{what} must be one class name for each input, not {shown(labels)}")
    if cells.size == 0:
        raise RankshotError(f"{what} is empty: there is nothing to measure")
    names: list[Any] = cells.tolist()
    for row, label in enumerate(names):
        if type(label) is not str or not label:
            try:
                names[row] = as_names([label])[0]
            except RankshotError:
                problem = f"expected the name of a class, not {shown(label)}"
                raise RankshotError(f"{what}, row {row}: {problem}") from None
    return names


def whole_number(what: str, value: int, most: float = np.inf) -> int:
    """Return a positive whole number, or say what was passed instead."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= value <= most:
        limit = f"to {most}" if most < np.inf else "on"
        raise RankshotError(f"{what} must be a whole number from 1 {limit}, not {shown(value)}")
    return int(value)

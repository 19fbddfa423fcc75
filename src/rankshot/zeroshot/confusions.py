"""Confusions: how often one class got another, which classes are confused most, which pairs."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix

Floats = NDArray[np.float64]
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

    Examples
    --------
    >>> from rankshot.zeroshot.confusions import count_confusions
    >>> count_confusions(["cat", "dog", "dog"], ["cat", "cat", "none"], ["cat", "dog"]).tolist()
    [[1, 0], [1, 0]]
    """
    with warnings.catch_warnings():
        # scikit-learn asks for `labels` where there is one class, or nearly one class per input.
        warnings.simplefilter("ignore", UserWarning)
        return np.asarray(confusion_matrix(y_true, y_pred, labels=classes))


def choose_confused_classes(confusion: NDArray[np.integer], classes: Sequence[str]) -> list[int]:
    """Return the classes of the matrix, in their order: those with the most confusions.

    A class is confused if its inputs got another class, or if it was given to inputs of another.
    A few classes are all shown.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.zeroshot.confusions import choose_confused_classes
    >>> names = [f"class {i}" for i in range(30)]
    >>> confusion = 9 * np.eye(30, dtype=int)
    >>> confusion[4, 17] = 1
    >>> choose_confused_classes(confusion, names)
    [4, 17]
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

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.zeroshot.confusions import find_largest_confusions
    >>> find_largest_confusions(np.array([[9, 2], [3, 9]]), ["cat", "dog"])
    [(1, 0), (0, 1)]
    """
    wrong = np.array(confusion, dtype=float)
    np.fill_diagonal(wrong, 0)
    rows, columns = np.nonzero(wrong)
    return _take_first_pairs(-wrong[rows, columns], rows, columns, classes)


def find_hardest_pairs(
    pairwise: NDArray[np.floating], classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs of classes with the lowest two-class accuracy, lowest first.

    Each pair is given once, in alphabetical order of its names.
    """
    by_name = _rank_names(classes)
    rows, columns = np.nonzero(~np.isnan(pairwise) & (by_name[:, None] < by_name))
    values = np.asarray(pairwise, dtype=float)[rows, columns]
    return _take_first_pairs(values, rows, columns, classes)


def _rank_names(classes: Sequence[str]) -> Ints:
    """Return the place of each class in alphabetical order."""
    order = np.argsort(np.array(classes, dtype=object), kind="stable")
    return np.argsort(order)


def _take_first_pairs(
    values: Floats, rows: Ints, columns: Ints, classes: Sequence[str]
) -> list[tuple[int, int]]:
    """Return the pairs with the smallest values; equal ones are ordered by their names."""
    by_name = _rank_names(classes)
    first = np.lexsort((by_name[columns], by_name[rows], values))[:MAX_CLASSES]
    return [(int(rows[i]), int(columns[i])) for i in first]

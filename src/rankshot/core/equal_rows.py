"""Equal rows of tables of whole numbers, found without comparing them one by one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def number_rows(columns: Iterable[NDArray[Any]], n: int) -> NDArray[np.int64]:
    """Give each of n rows of small whole numbers a number; equal rows have the same.

    Columns are packed into one integer as far as they fit. Before the next column would not
    fit, the packed values are replaced by their numbers, which makes room.

    Examples
    --------
    >>> number_rows([np.array([5, 2, 5]), np.array([0, 7, 0])], 3)
    array([1, 0, 1])
    """
    key = np.zeros(n, np.int64)
    span = 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if span * width >= 2**62:
            key, span = _number_values(key, span)
            if span == n:
                break
        key = key * width + column
        span *= width
    return _number_values(key, span)[0]


def _number_values(values: NDArray[np.int64], span: int) -> tuple[NDArray[np.int64], int]:
    """Return a number for each value below ``span`` that occurs, and how many there are."""
    if span > 8 * values.size:
        found, numbers = np.unique(values, return_inverse=True)
        return numbers.astype(np.int64), found.size
    occurs = np.zeros(span, bool)
    occurs[values] = True
    numbers = np.cumsum(occurs)
    return numbers[values] - 1, int(numbers[-1]) if span else 0


def find_first(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first row of each number.

    Examples
    --------
    >>> find_first(np.array([1, 0, 1, 2]))
    array([1, 0, 3])
    """
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    # Of several values for one cell NumPy keeps the last.
    first[numbers[::-1]] = np.arange(numbers.size)[::-1]
    return first

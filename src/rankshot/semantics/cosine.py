"""The cosine of vectors, by which names are compared."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def unit_vectors(vectors: ArrayLike) -> Floats:
    """Scale rows to length 1; a row of zeros, which points nowhere, becomes NaN.

    Examples
    --------
    >>> unit_vectors([[3, 4], [0, 0]])
    array([[0.6, 0.8], [nan, nan]])
    """
    table = np.asarray(vectors, dtype=np.float64)
    # Scaled by their largest number first, so that no square overflows or vanishes.
    largest = np.abs(table).max(axis=1, keepdims=True, initial=0)
    scaled = np.full(table.shape, np.nan)
    np.divide(table, largest, out=scaled, where=largest > 0)
    unit: Floats = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return unit


def cosine(left: ArrayLike, right: ArrayLike) -> Floats:
    """Return the cosine of every row of ``left`` with every row of ``right``.

    A matrix product may round the same dot product differently from column to column, which would
    break a tie by column number. So equal rows are multiplied once, and rows are put in an
    order of their own first: equal vectors tie exactly, and permuting the input permutes the
    output and changes no bit of it.

    Examples
    --------
    >>> cosine([[3, 4], [0, 0]], [[3, 4], [0, 1]])
    array([[1. , 0.8], [nan, nan]])
    """
    # Adding zero turns -0.0 into 0.0, which sorts and compares as the same row.
    rows, row_of = np.unique(unit_vectors(left) + 0.0, axis=0, return_inverse=True)
    columns, column_of = np.unique(unit_vectors(right) + 0.0, axis=0, return_inverse=True)
    product: Floats = np.clip(rows @ columns.T, -1.0, 1.0)
    return product[np.ix_(row_of, column_of)]

"""Vectors of classes, and their cosine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, format_count, suggest_name
from rankshot.core.validation import as_names
from rankshot.sources.similarity import Similarity

Floats = NDArray[np.float64]


def unit_vectors(vectors: ArrayLike) -> Floats:
    """Scale rows to length 1; a row of zeros, which has no direction, becomes NaN.

    Examples
    --------
    >>> unit_vectors([[3, 4], [0, 0]])
    array([[0.6, 0.8], [nan, nan]])
    """
    table = np.asarray(vectors, dtype=np.float64)
    # Divided by the largest number first, so that no square overflows or underflows.
    largest = np.abs(table).max(axis=1, keepdims=True, initial=0)
    scaled = np.full(table.shape, np.nan)
    np.divide(table, largest, out=scaled, where=largest > 0)
    unit: Floats = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    return unit


def cosine(left: ArrayLike, right: ArrayLike) -> Floats:
    """Return the cosine of every row of ``left`` with every row of ``right``.

    A matrix product may round the same dot product differently from column to column, and so
    break ties. Therefore equal rows are multiplied once, and the rows are sorted first: equal
    vectors have exactly equal cosines, and permuting the input permutes the output and changes
    no bit of it.

    Examples
    --------
    >>> cosine([[3, 4], [0, 0]], [[3, 4], [0, 1]])
    array([[1. , 0.8], [nan, nan]])
    """
    # Adding zero turns -0.0 into 0.0, so that equal rows have equal bytes.
    rows, row_of = np.unique(unit_vectors(left) + 0.0, axis=0, return_inverse=True)
    columns, column_of = np.unique(unit_vectors(right) + 0.0, axis=0, return_inverse=True)
    product: Floats = np.clip(rows @ columns.T, -1.0, 1.0)
    return product[np.ix_(row_of, column_of)]


@dataclass(frozen=True, eq=False, repr=False)
class ClassVectors:
    """One vector per class, a word vector or attributes, for methods that learn from vectors.

    Parameters
    ----------
    names : iterable of names
        The classes, each once.
    values : array-like of shape (classes, dimension)
        Finite numbers, or NaN for missing ones. Stored as a read-only copy.
    source : str
        Where the numbers come from.

    Examples
    --------
    >>> from rankshot.sources import ClassVectors
    >>> vectors = ClassVectors(["cat", "tiger", "bus"], [[3, 4], [0, 2], [1, 0]], "me")
    >>> vectors
    ClassVectors: 3 names with 2 numbers each, of me
    >>> vectors.select(["bus", "cat"]).values
    array([[1., 0.],
           [3., 4.]])
    >>> vectors.cosines(["cat"], ["tiger", "bus"]).values
    array([[0.8, 0.6]])
    """

    names: tuple[str, ...]
    values: Floats
    source: str

    def __init__(
        self, names: Iterable[Any], values: ArrayLike, source: str = "class vectors"
    ) -> None:
        texts = as_names(names, "names")
        try:
            table = np.array(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise RankshotError(f"vectors must be a table of numbers: {error}") from None
        if table.ndim != 2 or len(table) != len(texts) or table.shape[1] == 0:
            raise RankshotError(
                f"{len(texts)} names need a table of {len(texts)} rows, not shape {table.shape}"
            )
        if (odd := np.argwhere(np.isinf(table))).size:
            row, column = odd[0]
            raise RankshotError(f"the vector of {texts[row]!r} is infinite at place {column}")
        table.flags.writeable = False
        for field, value in (("names", texts), ("values", table), ("source", source)):
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return (
            f"ClassVectors: {format_count(len(self), 'name')} with "
            f"{format_count(self.dimension, 'number')} each, of {self.source}"
        )

    @property
    def dimension(self) -> int:
        """The number of elements of a vector."""
        return int(self.values.shape[1])

    def select(self, names: Iterable[Any]) -> ClassVectors:
        """Return the vectors of some names, in the given order."""
        row = {name: i for i, name in enumerate(self.names)}
        wanted = as_names(names, "names")
        for name in wanted:
            if name not in row:
                hint = suggest_name(name, self.names)
                raise RankshotError(f"{self.source} has no vector of {name!r}{hint}")
        return ClassVectors(wanted, self.values[[row[name] for name in wanted]], self.source)

    def cosines(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the cosine of every target with every item.

        NaN where a vector has a missing number, or is zero and so has no direction.
        """
        left, right = self.select(targets), self.select(items)
        values = cosine(left.values, right.values)
        return Similarity(values, left.names, right.names, self.source)

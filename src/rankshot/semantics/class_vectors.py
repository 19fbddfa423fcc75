"""`ClassVectors`: one vector a class, for methods that learn from vectors and not from rankings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.encode import as_names
from rankshot.ranking.errors import RankshotError, did_you_mean
from rankshot.semantics.cosine import cosine
from rankshot.semantics.similarity import Similarity

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class ClassVectors:
    """A vector for each class: of a word, or of attributes.

    Parameters
    ----------
    names : iterable of names
        The classes, each once.
    values : array-like of shape (classes, dimension)
        Finite numbers, or NaN for what is missing. Kept as a copy that is read-only.
    source : str
        Where the numbers come from.

    Examples
    --------
    >>> from rankshot.semantics.class_vectors import ClassVectors
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
            f"ClassVectors: {len(self)} names with {self.dimension} numbers each, of {self.source}"
        )

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return int(self.values.shape[1])

    def select(self, names: Iterable[Any]) -> ClassVectors:
        """Return the vectors of some names, in the order given."""
        row = {name: i for i, name in enumerate(self.names)}
        wanted = as_names(names, "names")
        for name in wanted:
            if name not in row:
                hint = did_you_mean(name, self.names)
                raise RankshotError(f"{self.source} has no vector of {name!r}{hint}")
        return ClassVectors(wanted, self.values[[row[name] for name in wanted]], self.source)

    def cosines(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the cosine of every target with every item.

        NaN where a vector has a number missing, or is zeros and so points nowhere.
        """
        left, right = self.select(targets), self.select(items)
        values = cosine(left.values, right.values)
        return Similarity(values, left.names, right.names, self.source)

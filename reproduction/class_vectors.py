"""Vectors of classes: word vectors, and attributes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import InputError, format_count, suggest_name
from rankshot.core.validation import as_names
from rankshot.datasets import class_names
from rankshot.sources.similarity import Similarity
from rankshot.sources.vectors import cosine

Floats = NDArray[np.float64]


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
    >>> from reproduction.class_vectors import ClassVectors
    >>> vectors = ClassVectors(["cat", "tiger", "bus"], [[3, 4], [0, 2], [1, 0]], "me")
    >>> vectors
    ClassVectors: 3 names with 2 numbers each, from me
    >>> vectors.select(["bus", "cat"]).values
    array([[1., 0.],
           [3., 4.]])
    >>> vectors.cosines(["cat"], ["tiger", "bus"]).values
    array([[0.8, 0.6]])
    """

    def __init__(
        self, names: Iterable[object], values: ArrayLike, source: str = "class vectors"
    ) -> None:
        self.names = as_names(names, "names")
        self.values: Floats = np.array(values, dtype=np.float64)
        self.source = source
        shape = self.values.shape
        if self.values.ndim != 2 or shape[0] != len(self.names) or shape[1] == 0:
            raise InputError("values", shape, f"must have the shape ({len(self.names)}, dimension)")
        self.values.flags.writeable = False

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return (
            f"ClassVectors: {format_count(len(self), 'name')} with "
            f"{format_count(self.values.shape[1], 'number')} each, from {self.source}"
        )

    def select(self, names: Iterable[object]) -> ClassVectors:
        """Return the vectors of some names, in the given order."""
        row = {name: i for i, name in enumerate(self.names)}
        wanted = as_names(names, "names")
        if absent := [name for name in wanted if name not in row]:
            hint = suggest_name(absent[0], self.names)
            raise InputError("names", absent[0], f"has no vector in {self.source}{hint}")
        return ClassVectors(wanted, self.values[[row[name] for name in wanted]], self.source)

    def cosines(self, targets: Iterable[object], items: Iterable[object]) -> Similarity:
        """Return the cosines of ``targets`` with ``items``.

        NaN if a vector has missing numbers, or is zero.
        """
        left, right = self.select(targets), self.select(items)
        values = cosine(left.values, right.values)
        return Similarity(values, left.names, right.names, self.source)


def load_class_vectors(dataset: str = "cifar") -> ClassVectors:
    """Return the GloVe 6B vectors of all classes of a data set: 100 dimensions, unit length.

    A name of several words has the mean of the vectors of its words, as in `WordVectors`;
    ``class_vectors.md``, beside this file, describes where they come from. The new
    classes are first, then the seen ones. The intent ``rollover_401k`` has no vector (NaN).

    Parameters
    ----------
    dataset : {"cifar", "animals", "intents"}
        The data set.

    Examples
    --------
    >>> from reproduction.class_vectors import load_class_vectors
    >>> load_class_vectors("animals")
    ClassVectors: 50 names with 100 numbers each, from GloVe 100d
    >>> load_class_vectors().select(["cat", "pickup_truck"]).values.shape
    (2, 100)
    """
    seen, new = class_names(dataset)
    with np.load(Path(__file__).with_name("class_vectors.npz"), allow_pickle=False) as arrays:
        return ClassVectors(new + seen, arrays[dataset], "GloVe 100d")

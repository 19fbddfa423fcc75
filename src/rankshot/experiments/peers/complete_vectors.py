"""The vectors of classes as peers compute with them: no number missing, of length one if asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.errors import RankshotError, listed
from rankshot.semantics.class_vectors import ClassVectors
from rankshot.semantics.cosine import unit_vectors

Floats = NDArray[np.float64]


class CompleteVectors(NamedTuple):
    """Names of classes and their vectors, a row a class, all numbers known."""

    names: tuple[str, ...]
    values: Floats

    def unit(self) -> Floats:
        """Return the vectors scaled to length one, or name a class whose vector is zero."""
        scaled = unit_vectors(self.values)
        nowhere = np.flatnonzero(np.isnan(scaled).any(axis=1))
        if nowhere.size:
            name = self.names[nowhere[0]]
            raise RankshotError(
                f"class {name!r}: its vector is zero and has no direction; leave the class out, or "
                "give it a vector"
            )
        return scaled


@dataclass(frozen=True, eq=False)
class MeanImputation:
    """Fills what is missing (NaN) with the mean over the training classes that have it.

    Targets are filled with the same means: what is chosen among must not change what a target is.

    Examples
    --------
    >>> from rankshot.semantics.class_vectors import ClassVectors
    >>> nan = float("nan")
    >>> seen = ClassVectors(["lion", "bus"], [[1.0, nan], [0.0, 4.0]], "me")
    >>> imputation = MeanImputation.of(seen)
    >>> imputation.complete(seen).values
    array([[1., 4.],
           [0., 4.]])
    >>> imputation.complete(ClassVectors(["cat"], [[nan, 5.0]], "me")).values
    array([[0.5, 5. ]])
    """

    means: Floats

    @classmethod
    def of(cls, training: ClassVectors) -> MeanImputation:
        """Take the means of the training classes; a column that none of them has is refused."""
        values = np.asarray(training.values, np.float64)
        known = ~np.isnan(values)
        unknown = np.flatnonzero(~known.any(axis=0))
        if unknown.size:
            raise RankshotError(
                f"column {unknown[0]} of the class vectors is missing for all training classes "
                f"({listed(training.names, 4)}): leave the column out"
            )
        return cls(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))

    def complete(self, vectors: ClassVectors) -> CompleteVectors:
        """Return vectors with all numbers known; a class that has none is refused."""
        values = np.asarray(vectors.values, np.float64)
        if values.shape[1] != len(self.means):
            raise RankshotError(
                f"the vectors have {values.shape[1]} numbers, but those of the training classes "
                f"have {len(self.means)}"
            )
        missing = np.isnan(values)
        nothing = np.flatnonzero(missing.all(axis=1))
        if nothing.size:
            raise RankshotError(
                f"class {vectors.names[nothing[0]]!r} has no vector: all its numbers are missing"
            )
        return CompleteVectors(tuple(vectors.names), np.where(missing, self.means, values))

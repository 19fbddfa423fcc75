"""The common interface of the peers: features and class vectors in, predicted targets out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import RankshotError, quote_names
from rankshot.sources.vectors import unit_vectors
from rankshot.zeroshot.decide import most_probable
from reproduction.class_vectors import ClassVectors

Floats = NDArray[np.float64]


class CompleteVectors(NamedTuple):
    """Names of classes and their vectors, one row per class, without missing numbers."""

    names: tuple[str, ...]
    values: Floats

    def to_unit(self) -> Floats:
        """Return the vectors scaled to length one; a vector of zeros is refused."""
        scaled = unit_vectors(self.values)
        nowhere = np.flatnonzero(np.isnan(scaled).any(axis=1))
        if nowhere.size:
            name = self.names[nowhere[0]]
            raise RankshotError(
                f"class {name!r}: its vector is zero and has no direction; leave the class out, or "
                "give it another vector"
            )
        return scaled


@dataclass(frozen=True, eq=False)
class MeanImputation:
    """Replaces missing numbers (NaN) by the mean over the training classes.

    Targets are filled with the same means, so that the vector of a target does not depend on the
    other targets.
    """

    means: Floats

    @classmethod
    def from_training(cls, training: ClassVectors) -> MeanImputation:
        """Compute the means of the training classes; a column without any number is refused."""
        values = np.asarray(training.values, np.float64)
        known = ~np.isnan(values)
        unknown = np.flatnonzero(~known.any(axis=0))
        if unknown.size:
            raise RankshotError(
                f"column {unknown[0]} of the class vectors is missing for all training classes "
                f"({quote_names(training.names, 4)}): leave the column out"
            )
        return cls(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))

    def complete(self, vectors: ClassVectors) -> CompleteVectors:
        """Return vectors without missing numbers; a class without any number is refused."""
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


class Training(NamedTuple):
    """Features (n, d), the index of each input's class, and the vectors of the classes."""

    X: Floats
    codes: NDArray[np.intp]
    classes: CompleteVectors

    @property
    def counts(self) -> NDArray[np.intp]:
        """The number of inputs of each class."""
        return np.bincount(self.codes, minlength=len(self.classes.names))

    def class_sums(self) -> Floats:
        """Return the sum of the features of each class, one row per class.

        This is YᵀX, where Y (n, classes) is 1 for the class of each input and 0 elsewhere. If S
        has one vector per class, Y S has one per input, and XᵀY S is the product of the transposed
        sums and S.
        """
        n = len(self.codes)
        indicator = csr_array(
            (np.ones(n), self.codes, np.arange(n + 1)), (n, len(self.classes.names))
        )
        return np.asarray(indicator.T @ self.X)


def require_features(X: ArrayLike, n_features: int | None = None) -> Floats:
    """Return features as a table of finite numbers in double precision, or raise an error."""
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RankshotError(f"X must be a table of numbers: {error}") from None
    if table.ndim != 2 or (n_features is not None and table.shape[1] != n_features):
        wanted = "d" if n_features is None else n_features
        raise RankshotError(f"X must have the shape (n, {wanted}), not {table.shape}")
    finite = np.isfinite(table)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise RankshotError(
            f"X: row {row}, column {column} is {table[row, column]}; features must be finite"
        )
    return table


def encode_classes(y: ArrayLike, n: int) -> tuple[tuple[str, ...], NDArray[np.intp]]:
    """Return the sorted classes of n labels, and the index of the class of each label."""
    labels = np.asarray(y).astype(str)
    if labels.shape != (n,):
        raise RankshotError(f"X has {n} rows, but y has {len(labels)} labels")
    names, codes = np.unique(labels, return_inverse=True)
    return tuple(names.tolist()), codes


class Peer(BaseEstimator, ABC):  # type: ignore[misc]
    """A method that is trained on features and recognises new classes by their vectors.

    Subclasses have only the equations: `_learn` trains the method, and `_scores` returns how well
    each target fits each input. Validation and missing numbers are handled here.
    """

    classes_: tuple[str, ...]
    n_features_in_: int

    def fit(self, X: ArrayLike, y: ArrayLike, vectors: ClassVectors) -> Self:
        """Train on features (n, d) and the names of their classes.

        Only the vectors of the classes in ``y`` are used; their order does not matter. Missing
        numbers (NaN) are replaced by the mean over the classes that have them.
        """
        features = require_features(X)
        names, codes = encode_classes(y, len(features))
        seen = vectors.select(names)
        self._imputation = MeanImputation.from_training(seen)
        self.classes_, self.n_features_in_ = names, features.shape[1]
        self._learn(Training(features, codes, self._imputation.complete(seen)))
        return self

    def decision_function(self, X: ArrayLike, targets: ClassVectors) -> Floats:
        """Return how well each target fits, one row per input and one column per target."""
        check_is_fitted(self, "classes_")
        features = require_features(X, self.n_features_in_)
        return self._scores(features, self._imputation.complete(targets))

    def predict(self, X: ArrayLike, targets: ClassVectors) -> NDArray[np.str_]:
        """Return the best target of each input; the first by name if several tie."""
        return choose_targets(self.decision_function(X, targets), targets.names)

    @abstractmethod
    def _learn(self, training: Training) -> None:
        """Train on validated features and complete vectors."""

    @abstractmethod
    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        """Return the scores of validated features, one column per target."""


def choose_targets(scores: Floats, names: tuple[str, ...]) -> NDArray[np.str_]:
    """Return the name of the largest score of each row.

    Scores that differ by less than a billionth of the row's largest absolute value count as ties,
    so that rounding does not decide. The first name in alphabetical order wins a tie.
    """
    order = np.argsort(names)
    by_name = scores[:, order]
    size = np.abs(by_name).max(axis=1, keepdims=True)
    scaled = np.divide(by_name, size, out=np.zeros_like(by_name), where=size > 0)
    best: NDArray[np.str_] = np.array(names)[order][most_probable(scaled)]
    return best


def cosines(left: Floats, unit: Floats) -> Floats:
    """Return the cosine of each row with each of some vectors of length one.

    The cosine of a row of zeros is 0.
    """
    length = np.linalg.norm(left, axis=1, keepdims=True)
    products: Floats = left @ unit.T
    return np.asarray(np.divide(products, length, out=np.zeros_like(products), where=length > 0))

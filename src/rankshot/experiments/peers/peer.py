"""The one face of the peers: features and class vectors in, a choice among targets out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.experiments.peers.complete_vectors import CompleteVectors, MeanImputation
from rankshot.experiments.peers.training import Training, as_features, class_codes_of
from rankshot.ranking.arguments import require_number
from rankshot.ranking.errors import RankshotError, shown
from rankshot.semantics.class_vectors import ClassVectors
from rankshot.zeroshot.decisions import most_probable

Floats = NDArray[np.float64]


class Peer(BaseEstimator, ABC):  # type: ignore[misc]
    """A method that learns from features, and meets new classes by their vectors.

    Whatever a method needs beyond its equations is here. It says in `_learn` how it is trained,
    and in `_scores` how well each target fits each input.

    Attributes
    ----------
    classes_ : tuple of str
        The classes it was trained on, sorted.
    n_features_in_ : int
    """

    classes_: tuple[str, ...]
    n_features_in_: int

    def fit(self, X: ArrayLike, y: ArrayLike, vectors: ClassVectors) -> Self:
        """Train on features (n, d) and the names of their classes.

        Of the vectors only those of the classes in ``y`` are looked at, in any order. Numbers
        that are missing (NaN) are the mean over the classes that have them.
        """
        features = as_features(X)
        names, codes = class_codes_of(y, len(features))
        known = vectors.select(names)
        self._imputation = MeanImputation.of(known)
        self.classes_, self.n_features_in_ = names, features.shape[1]
        self._learn(Training(features, codes, self._imputation.complete(known)))
        return self

    def decision_function(self, X: ArrayLike, targets: ClassVectors) -> Floats:
        """Return how well each target fits, a row an input and a column a target."""
        check_is_fitted(self, "classes_")
        features = as_features(X, self.n_features_in_)
        return self._scores(features, self._imputation.complete(targets))

    def predict(self, X: ArrayLike, targets: ClassVectors) -> NDArray[np.str_]:
        """Return the target that fits each input best; of equals, the first by name."""
        return chosen(self.decision_function(X, targets), targets.names)

    @abstractmethod
    def _learn(self, training: Training) -> None:
        """Learn from checked features and complete vectors."""

    @abstractmethod
    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        """Return the scores of checked features, a column a target."""


def chosen(scores: Floats, names: tuple[str, ...]) -> NDArray[np.str_]:
    """Return the name of the largest score of each row.

    Scores that differ by less than a billionth of the row's largest size are not told apart: the
    order in which sums were taken must not decide. The first name in the alphabet does.

    Examples
    --------
    >>> chosen(np.array([[1.0 + 1e-15, 1.0], [2.0, 1.0]]), ("dog", "cat"))
    array(['cat', 'dog'], dtype='<U3')
    """
    order = np.argsort(names)
    by_name = scores[:, order]
    size = np.abs(by_name).max(axis=1, keepdims=True)
    scaled = np.divide(by_name, size, out=np.zeros_like(by_name), where=size > 0)
    best: NDArray[np.str_] = np.array(names)[order][most_probable(scaled)]
    return best


def cosines(left: Floats, unit: Floats) -> Floats:
    """Return the cosine of each row with each of some vectors of length one.

    A row of zeros is as near to one as to another: 0.
    """
    length = np.linalg.norm(left, axis=1, keepdims=True)
    products: Floats = left @ unit.T
    return np.asarray(np.divide(products, length, out=np.zeros_like(products), where=length > 0))


def positive(what: str, value: float) -> float:
    """Return a hyperparameter as a number, or say that it must be positive."""
    number = require_number(what, value)
    if not 0 < number < np.inf:
        raise RankshotError(f"{what} must be positive, not {shown(value)}")
    return number

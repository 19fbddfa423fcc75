"""ConSE: a convex combination of the word vectors of the most probable seen classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankshot.core.arrays import Array, Constants, Library, Lost, largest
from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.validation import require_whole_number
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot.heads.base import BaseHead, require_temperature
from rankshot.zeroshot.heads.direct_similarity import require_similarity, share_of_largest
from rankshot.zeroshot.heads.fitted_state import FittedState, State
from rankshot.zeroshot.scores import Kind, log_class_probabilities

Floats = NDArray[np.floating]


class ConSE(BaseHead, BaseEstimator):
    r"""ConSE of Norouzi et al. (2014): the other method that needs no retraining.

    An input is mapped to the mean of the word vectors s of its T most probable seen classes,
    weighted by their probabilities, and gets the new class with the largest cosine to it. With
    vectors of length one, that is the class with the largest

    .. math:: \frac{1}{\sum_t P(y_t|x)} \sum_{t=1}^T P(y_t|x)\, \cos(s(y_t), s(z)),

    since the length of the mean is the same for all new classes. So the method needs only a table
    of cosines. ConSE itself defines no probabilities; here they are the softmax of these numbers
    divided by ``temperature``.

    Parameters
    ----------
    n_classes : int
        T; the original takes up to 10. Classes that tie for the last places share them.
    temperature : float or None
        Temperature of the softmax; it does not change the decision. By default .1.

    Attributes
    ----------
    items_ : tuple of str
        The seen classes, in the order of the columns of the scores.
    classes_ : ndarray of str
        The new classes, sorted.

    Examples
    --------
    >>> import rankshot as rs
    >>> cosines = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> rs.ConSE(n_classes=2).fit(cosines).predict([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    array(['cat', 'truck'], dtype='<U5')
    """

    def __init__(self, *, n_classes: int = 10, temperature: float | None = None) -> None:
        self.n_classes = n_classes
        self.temperature = temperature

    def fit(self, similarity: Similarity) -> ConSE:
        """Store the cosines of new and seen classes; seen classes without a vector are left out."""
        require_whole_number("n_classes", self.n_classes)
        require_temperature(self.temperature)
        similarity = require_similarity(similarity)
        self.items_ = similarity.items
        self.classes_ = np.array(similarity.targets)
        self._has_vector = ~np.isnan(similarity.values).any(axis=0)
        if not self._has_vector.any():
            raise RankshotError(
                f"there is no seen class that {similarity.source} compares with all new classes: "
                f"each of {quote_names(self.items_)} has no similarity to some new class"
            )
        self._cosines = similarity.values[:, self._has_vector]
        return self

    def _describe_state(self) -> State:
        return {"cosines": self._cosines, "has_vector": self._has_vector}

    def _restore_state(self, state: FittedState) -> None:
        require_whole_number("n_classes", self.n_classes)
        self._has_vector = state.take_array("has_vector", len(self.items_), kind="b")
        n = int(self._has_vector.sum())
        require_whole_number("the number of seen classes with a vector", n)
        self._cosines = state.take_array("cosines", len(self.classes_), n)

    def _default_temperature(self) -> float:
        return 0.1

    def _constants(self, kind: Kind, dtype: np.dtype[np.floating]) -> Constants:
        del kind, dtype
        return {"cosines": self._cosines.T, "columns": np.flatnonzero(self._has_vector)}

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        del lost
        return self._weights(f, kind, c, xp) @ c["cosines"]

    def _weights(self, f: Array, kind: Kind, c: Constants, xp: Library) -> Array:
        """Return the weight in the mean of each seen class that has a vector."""
        log_proba = log_class_probabilities(f, kind, "ConSE", xp)
        log_proba, f = (xp.take(table, c["columns"], axis=1) for table in (log_proba, f))
        # By score, because probabilities close to one are rounded to one.
        share = share_of_largest(f, int(self.n_classes), xp)
        weights = share * xp.exp(log_proba - largest(log_proba, xp, 1))
        return weights / xp.sum(weights, axis=1, keepdims=True)

    def item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return the terms of the log-posteriors, of shape (n, new classes, seen classes)."""
        f = np.asarray(values, np.float64)
        weights = self._weights(f, kind, self._constants(kind, f.dtype), np)
        terms = np.zeros((len(values), len(self.classes_), len(self.items_)))
        terms[:, :, self._has_vector] = self._cosines * weights[:, None]
        return terms

"""ConSE: a convex combination of the vectors of the most probable classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import require_number
from rankshot.semantics.similarity import Similarity
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.direct_similarity import require_similarity, share_of_largest
from rankshot.zeroshot.scores import Kind, log_class_probabilities

Floats = NDArray[np.floating]


class ConSE(BaseHead, BaseEstimator):
    r"""ConSE of Norouzi et al. (2014): the other method that needs no retraining.

    An input is placed at the mean of the word vectors s of its T most probable classes, each
    weighted by its probability, and goes to the target nearest by the cosine. With vectors of
    length one, that is the target with the largest

    .. math:: \frac{1}{\sum_t P(y_t|x)} \sum_{t=1}^T P(y_t|x)\, \cos(s(y_t), s(z)),

    since the length of the mean is the same for all targets. So a table of cosines is all it
    needs. The probabilities are a softmax of these numbers over ``temperature``: the method
    itself has none.

    Parameters
    ----------
    n_classes : int
        T; the original takes up to 10. Classes that tie for the last places share them.
    temperature : float
        Of the softmax; it does not change the decision.

    Attributes
    ----------
    items_ : tuple of str
    classes_ : ndarray of str
        The targets, sorted.

    Examples
    --------
    >>> import rankshot as rs
    >>> cosines = rs.Similarity(
    ...     [[.9, .8, .1], [.1, .2, .9]], ["cat", "truck"], ["leopard", "tiger", "bus"])
    >>> rs.ConSE(n_classes=2).fit(cosines).predict([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    array(['cat', 'truck'], dtype='<U5')
    """

    def __init__(self, *, n_classes: int = 10, temperature: float = 0.1) -> None:
        self.n_classes = n_classes
        self.temperature = temperature

    def fit(self, similarity: Similarity) -> ConSE:
        """Take the cosines of targets and seen classes; a class without a vector is left out."""
        n = self.n_classes
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise RankshotError(f"n_classes must be a positive integer, not {short_repr(n)}")
        if not 0 < require_number("temperature", self.temperature) < np.inf:
            raise RankshotError(f"temperature must be positive, not {self.temperature!r}")
        similarity = require_similarity(similarity)
        self.items_ = similarity.items
        self.classes_ = np.array(similarity.targets)
        self._known = ~np.isnan(similarity.values).any(axis=0)
        if not self._known.any():
            raise RankshotError(
                f"there is no item that {similarity.source} compares with all targets: each of "
                f"{quote_names(self.items_)} is unknown for some"
            )
        self._cosines = similarity.values[:, self._known]
        return self

    def _weights(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return the part of each class that has a vector in the mean."""
        log_proba = log_class_probabilities(values, kind, "ConSE")[:, self._known]
        # By score: probabilities close to one round to one.
        share = share_of_largest(values[:, self._known], int(self.n_classes))
        weights = share * np.exp(log_proba - log_proba.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _log_posterior(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        return np.asarray(self._cosines @ self._weights(values, kind).T / self.temperature)

    def item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return what each item adds to the log-posterior of each target, (n, targets, items)."""
        parts = np.zeros((len(values), len(self.classes_), len(self.items_)))
        parts[:, :, self._known] = self._cosines * self._weights(values, kind)[:, None]
        return parts / self.temperature

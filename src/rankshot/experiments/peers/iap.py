"""IAP: attributes predicted from the probabilities of the seen classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.experiments.peers.binary_attributes import BinaryAttributes
from rankshot.experiments.peers.complete_vectors import MeanImputation
from rankshot.experiments.peers.peer import chosen
from rankshot.semantics.class_vectors import ClassVectors
from rankshot.zeroshot.class_probabilities import log_class_probabilities
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]

SMALLEST_LOG = -600.0
"""Sums of probabilities below its exponential have lost digits, or are zero."""


class IAP(BaseEstimator):  # type: ignore[misc]
    r"""Indirect attribute prediction of Lampert, Nickisch & Harmeling (2009).

    From what a classifier says of the classes it knows, without another training,

    .. math:: P(a_m|x) = \sum_y P(a_m|y)\, P(y|x), \qquad
        P(z|x) ∝ \prod_m \frac{P(a_m^z | x)}{P(a_m^z)}.

    P(a_m|y) is 1 or 0: attributes are made binary, and their priors taken, as in `DAP`.

    Attributes
    ----------
    items_ : tuple of str
        The seen classes.
    attributes_ : BinaryAttributes
        The threshold, the attributes that differ between seen classes, and their priors.

    Examples
    --------
    >>> from rankshot.semantics.class_vectors import ClassVectors
    >>> names, values = ["lion", "bus", "cat", "van"], [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> vectors = ClassVectors(names, values, "me")
    >>> peer = IAP().fit(vectors.select(["lion", "bus"]))
    >>> peer.predict([[.9, .1], [.3, .7]], vectors.select(["cat", "van"]))
    array(['cat', 'van'], dtype='<U3')
    """

    def fit(self, vectors: ClassVectors) -> IAP:
        """Take the attributes of the seen classes; missing ones (NaN) are the mean over others."""
        self._imputation = MeanImputation.of(vectors)
        seen = self._imputation.complete(vectors)
        self.attributes_ = BinaryAttributes.of(seen)
        self._present = self.attributes_.present(seen)
        self.items_ = seen.names
        return self

    def decision_function(self, probabilities: Scores | ArrayLike, targets: ClassVectors) -> Floats:
        """Return log P(z|x) up to what depends on x alone, a column a target.

        Parameters
        ----------
        probabilities : Scores or array-like of shape (n, C)
            P(y|x): a table whose rows add up to one, with its columns in the order of
            ``items_``; or scores, of which the softmax is taken (one-vs-rest: the sigmoid,
            divided by its sum over classes).
        targets : ClassVectors
        """
        check_is_fitted(self, "items_")
        if not isinstance(probabilities, Scores):
            probabilities = Scores.from_probabilities(probabilities, self.items_)
        scores = probabilities.with_items(self.items_)
        log_proba = log_class_probabilities(scores.values, scores.kind, "IAP")
        log_proba = log_proba - logsumexp(log_proba, axis=1, keepdims=True)
        return self.attributes_.log_posterior(
            log_share(log_proba, self._present),
            log_share(log_proba, ~self._present),
            self._imputation.complete(targets),
        )

    def predict(self, probabilities: Scores | ArrayLike, targets: ClassVectors) -> NDArray[np.str_]:
        """Return the most probable target of each input; of equals, the first by name."""
        return chosen(self.decision_function(probabilities, targets), targets.names)


def log_share(log_proba: Floats, members: NDArray[np.bool_]) -> Floats:
    """Return the logarithm of what each group of classes has of the probability.

    Parameters
    ----------
    log_proba : ndarray of shape (n, C)
    members : ndarray of bool of shape (C, groups)
        No group may be empty.

    Examples
    --------
    >>> log_share(np.array([[0.0, -1000.0, -1000.0]]), np.array([[False], [True], [True]])).round(3)
    array([[-999.307]])
    """
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(np.exp(log_proba) @ members.astype(np.float64))
    # A confident classifier leaves less than can be written for a group: there, one by one.
    low = logs < SMALLEST_LOG
    for group in np.flatnonzero(low.any(axis=0)):
        rows = low[:, group]
        logs[rows, group] = logsumexp(log_proba[np.ix_(rows, members[:, group])], axis=1)
    return logs

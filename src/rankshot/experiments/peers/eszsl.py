"""ESZSL: a bilinear fit of features and class vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from rankshot.experiments.peers.complete_vectors import CompleteVectors
from rankshot.experiments.peers.peer import Peer, positive
from rankshot.experiments.peers.training import Training

Floats = NDArray[np.float64]


class ESZSL(Peer):
    r"""The embarrassingly simple zero-shot learning of Romera-Paredes & Torr (2015).

    A class fits an input by xᵀV s. With features X (n, d), class vectors S (C, a) of length
    one, and Y (n, C) of 1 for the class of an input and -1 for all others, as in their paper, V
    is the one minimiser of

    .. math:: |X V S^T - Y|^2 + γ |V S^T|^2 + λ |X V|^2 + γλ |V|^2,

    .. math:: V = (X^T X + γ I)^{-1}\, X^T Y S\, (S^T S + λ I)^{-1}.

    Parameters
    ----------
    feature_penalty : float
        γ.
    vector_penalty : float
        λ.

    Attributes
    ----------
    weights_ : ndarray of shape (d, a)
        V.

    Examples
    --------
    >>> from rankshot.semantics.class_vectors import ClassVectors
    >>> names, values = ["lion", "bus", "cat", "van"], [[4, 1], [0, 5], [5, 2], [1, 6]]
    >>> vectors = ClassVectors(names, values, "me")
    >>> X, y = [[2, 0], [3, 1], [0, 2], [1, 3]], ["lion", "lion", "bus", "bus"]
    >>> peer = ESZSL().fit(X, y, vectors)
    >>> peer.predict([[5, 1], [0, 4]], vectors.select(["cat", "van"]))
    array(['cat', 'van'], dtype='<U3')
    """

    def __init__(self, *, feature_penalty: float = 1.0, vector_penalty: float = 1.0) -> None:
        self.feature_penalty = feature_penalty
        self.vector_penalty = vector_penalty

    def _learn(self, training: Training) -> None:
        X, S, sums = training.X, training.classes.unit(), training.class_sums()
        # Y is twice the table of ones and zeros, less one everywhere.
        XtY = 2 * sums.T - sums.sum(axis=0)[:, None]
        of_features = X.T @ X + positive("feature_penalty", self.feature_penalty) * np.eye(
            X.shape[1]
        )
        of_vectors = S.T @ S + positive("vector_penalty", self.vector_penalty) * np.eye(S.shape[1])
        half = solve(of_features, XtY @ S, assume_a="pos")
        self.weights_: Floats = solve(of_vectors, half.T, assume_a="pos").T

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        return X @ (self.weights_ @ targets.unit().T)

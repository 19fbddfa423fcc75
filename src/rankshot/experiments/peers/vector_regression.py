"""Ridge regression from features to class vectors."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve

from rankshot.experiments.peers.complete_vectors import CompleteVectors
from rankshot.experiments.peers.peer import Peer, cosines, positive
from rankshot.experiments.peers.training import Training

Floats = NDArray[np.float64]


class VectorRegression(Peer):
    r"""Ridge regression of the class vector on the features; the nearest target by cosine.

    With features X and the vector of each input's class S (scaled to length one), both less
    their means x̄ and s̄, it minimises

    .. math:: |X W - S|^2 + α |W|^2, \qquad W = (X^T X + α I)^{-1} X^T S,

    and places an input at s̄ + (x - x̄)ᵀ W.

    Parameters
    ----------
    penalty : float
        α.

    Attributes
    ----------
    weights_ : ndarray of shape (d, a)
        W.
    intercept_ : ndarray of shape (a,)
        s̄ - x̄ᵀ W.

    Examples
    --------
    >>> from rankshot.semantics.class_vectors import ClassVectors
    >>> names, values = ["lion", "bus", "cat", "van"], [[4, 1], [0, 5], [5, 2], [1, 6]]
    >>> vectors = ClassVectors(names, values, "me")
    >>> X, y = [[2, 0], [3, 1], [0, 2], [1, 3]], ["lion", "lion", "bus", "bus"]
    >>> peer = VectorRegression().fit(X, y, vectors)
    >>> peer.predict([[5, 1], [0, 4]], vectors.select(["cat", "van"]))
    array(['cat', 'van'], dtype='<U3')
    """

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def _learn(self, training: Training) -> None:
        X, S, counts = training.X, training.classes.unit(), training.counts
        n = len(X)
        mean_x, mean_s = X.mean(axis=0), counts @ S / n
        # The features are centred before their squares are summed: afterwards digits are lost.
        centred = X - mean_x
        gram = centred.T @ centred + positive("penalty", self.penalty) * np.eye(X.shape[1])
        sums = training.class_sums() - counts[:, None] * mean_x
        self.weights_: Floats = solve(gram, sums.T @ (S - mean_s), assume_a="pos")
        self.intercept_: Floats = mean_s - mean_x @ self.weights_

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        return cosines(X @ self.weights_ + self.intercept_, targets.unit())

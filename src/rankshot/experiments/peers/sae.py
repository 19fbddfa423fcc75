"""SAE: a linear autoencoder whose code is the class vector."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh, solve_sylvester

from rankshot.experiments.peers.complete_vectors import CompleteVectors
from rankshot.experiments.peers.peer import Peer, cosines, positive
from rankshot.experiments.peers.training import Training
from rankshot.ranking.errors import RankshotError, shown
from rankshot.semantics.cosine import unit_vectors

Floats = NDArray[np.float64]
Direction = Literal["to vectors", "to features"]

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


class SAE(Peer):
    r"""The semantic autoencoder of Kodirov, Xiang & Gong (2017).

    One matrix W (a, d) encodes features as class vectors, and its transpose decodes them. With
    features X (n, d) and the vector of each input's class S (n, a), of length one, it minimises

    .. math:: |X - S W|^2 + λ |X W^T - S|^2,

    which is a Sylvester equation,

    .. math:: (S^T S)\, W + W\, (λ X^T X) = (1 + λ)\, S^T X.

    Parameters
    ----------
    encoder_weight : float
        λ: how much encoding counts, against decoding.
    direction : {"to vectors", "to features"}
        Where inputs and targets are compared, by cosine: W x with s, or x with Wᵀs.

    Attributes
    ----------
    weights_ : ndarray of shape (a, d)
        W.

    Examples
    --------
    >>> from rankshot.semantics.class_vectors import ClassVectors
    >>> names, values = ["lion", "bus", "cat", "van"], [[4, 1], [0, 5], [5, 2], [1, 6]]
    >>> vectors = ClassVectors(names, values, "me")
    >>> X, y = [[2, 0], [3, 1], [0, 2], [1, 3]], ["lion", "lion", "bus", "bus"]
    >>> peer = SAE(direction="to features").fit(X, y, vectors)
    >>> peer.predict([[5, 1], [0, 4]], vectors.select(["cat", "van"]))
    array(['cat', 'van'], dtype='<U3')
    """

    def __init__(self, *, encoder_weight: float = 1.0, direction: Direction = "to vectors") -> None:
        self.encoder_weight = encoder_weight
        self.direction = direction

    def _learn(self, training: Training) -> None:
        if self.direction not in DIRECTIONS:
            raise RankshotError(
                f"direction must be one of {', '.join(map(repr, DIRECTIONS))}, not "
                f"{shown(self.direction)}"
            )
        weight = positive("encoder_weight", self.encoder_weight)
        X, S = training.X, training.classes.unit()
        A = (S.T * training.counts) @ S
        B = weight * (X.T @ X)
        _refuse_singular(A, B)
        self.weights_: Floats = solve_sylvester(A, B, (1 + weight) * S.T @ training.class_sums())

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        unit = targets.unit()
        if self.direction == "to vectors":
            return cosines(X @ self.weights_.T, unit)
        prototypes = unit_vectors(unit @ self.weights_)
        # A target that is decoded to nothing is near to no input.
        return cosines(X, np.nan_to_num(prototypes))


def _refuse_singular(A: Floats, B: Floats) -> None:
    """Raise where the equation has many solutions: the solver would return one, and not say so."""
    a, b = eigvalsh(A), eigvalsh(B)
    if a[0] + b[0] <= (a[-1] + b[-1]) * np.finfo(float).eps * max(len(a), len(b)):
        raise RankshotError(
            f"the {len(b)} features are linearly dependent, and so are the {len(a)} numbers of the "
            "class vectors: the autoencoder has many solutions. Train on more inputs or classes, "
            "or reduce the features by PCA"
        )

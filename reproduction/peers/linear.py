"""Peers that are linear in the features: ESZSL, SAE and regression to class vectors."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh, solve, solve_sylvester

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_choice, require_number
from rankshot.sources.vectors import unit_vectors
from reproduction.peers.base import (
    CompleteVectors,
    Peer,
    Training,
    cosines,
)

Floats = NDArray[np.float64]
Direction = Literal["to vectors", "to features"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)


class ESZSL(Peer):
    r"""The embarrassingly simple zero-shot learning of Romera-Paredes & Torr (2015).

    The score of a class for an input is xᵀV s. With features X (n, d), class vectors S (C, a) of
    length one, and Y (n, C) of 1 for the class of an input and -1 for all others, as in their
    paper, V is the unique minimiser of

    .. math:: |X V S^T - Y|^2 + γ |V S^T|^2 + λ |X V|^2 + γλ |V|^2,

    .. math:: V = (X^T X + γ I)^{-1}\, X^T Y S\, (S^T S + λ I)^{-1}.
    """

    def __init__(self, *, feature_penalty: float = 1.0, vector_penalty: float = 1.0) -> None:
        self.feature_penalty = feature_penalty
        self.vector_penalty = vector_penalty

    def _learn(self, training: Training) -> None:
        feature_penalty, vector_penalty = (
            require_number(what, getattr(self, what), above=0, below=np.inf)
            for what in ("feature_penalty", "vector_penalty")
        )
        X, S, sums = training.X, training.classes.to_unit(), training.class_sums()
        # Y is 2 times the indicator matrix of classes, minus 1.
        XtY = 2 * sums.T - sums.sum(axis=0)[:, None]
        of_features = X.T @ X + feature_penalty * np.eye(X.shape[1])
        of_vectors = S.T @ S + vector_penalty * np.eye(S.shape[1])
        half = solve(of_features, XtY @ S, assume_a="pos")
        self.weights_: Floats = solve(of_vectors, half.T, assume_a="pos").T

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        return X @ (self.weights_ @ targets.to_unit().T)


class SAE(Peer):
    r"""The semantic autoencoder of Kodirov, Xiang & Gong (2017).

    One matrix W (a, d) encodes features as class vectors, and its transpose decodes them. With
    features X (n, d) and the vector of each input's class S (n, a), of length one, it minimises

    .. math:: |X - S W|^2 + λ |X W^T - S|^2,

    which is a Sylvester equation,

    .. math:: (S^T S)\, W + W\, (λ X^T X) = (1 + λ)\, S^T X.
    """

    def __init__(self, *, encoder_weight: float = 1.0, direction: Direction = "to vectors") -> None:
        self.encoder_weight = encoder_weight
        self.direction = direction

    def _learn(self, training: Training) -> None:
        require_choice("direction", self.direction, DIRECTIONS)
        weight = require_number("encoder_weight", self.encoder_weight, above=0, below=np.inf)
        X, S = training.X, training.classes.to_unit()
        A = (S.T * training.counts) @ S
        B = weight * (X.T @ X)
        _refuse_singular(A, B)
        self.weights_: Floats = solve_sylvester(A, B, (1 + weight) * S.T @ training.class_sums())

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        unit = targets.to_unit()
        if self.direction == "to vectors":
            return cosines(X @ self.weights_.T, unit)
        prototypes = unit_vectors(unit @ self.weights_)
        # A target that is decoded to zeros has the cosine 0 with all inputs.
        return cosines(X, np.nan_to_num(prototypes))


def _refuse_singular(A: Floats, B: Floats) -> None:
    """Raise an error if the equation has many solutions; the solver would return one of them."""
    a, b = eigvalsh(A), eigvalsh(B)
    if a[0] + b[0] <= (a[-1] + b[-1]) * np.finfo(float).eps * max(len(a), len(b)):
        raise RankshotError(
            f"the {len(b)} features are linearly dependent, and so are the {len(a)} numbers of the "
            "class vectors: the autoencoder has many solutions. Train on more inputs or classes, "
            "or reduce the features by PCA"
        )


class VectorRegression(Peer):
    r"""Ridge regression from features to class vectors; the nearest target by cosine wins.

    With features X and the vector of each input's class S (scaled to length one), both minus
    their means x̄ and s̄, it minimises

    .. math:: |X W - S|^2 + α |W|^2, \qquad W = (X^T X + α I)^{-1} X^T S,

    and maps an input to s̄ + (x - x̄)ᵀ W.
    """

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def _learn(self, training: Training) -> None:
        penalty = require_number("penalty", self.penalty, above=0, below=np.inf)
        X, S, counts = training.X, training.classes.to_unit(), training.counts
        n = len(X)
        mean_x, mean_s = X.mean(axis=0), counts @ S / n
        # Centering after the squares are summed would lose digits.
        centered = X - mean_x
        gram = centered.T @ centered + penalty * np.eye(X.shape[1])
        sums = training.class_sums() - counts[:, None] * mean_x
        self.weights_: Floats = solve(gram, sums.T @ (S - mean_s), assume_a="pos")
        self.intercept_: Floats = mean_s - mean_x @ self.weights_

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        return cosines(X @ self.weights_ + self.intercept_, targets.to_unit())

"""DAP: attributes predicted from features, and targets from attributes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from rankshot.experiments.peers.binary_attributes import BinaryAttributes
from rankshot.experiments.peers.complete_vectors import CompleteVectors
from rankshot.experiments.peers.logistic_regressions import fit_logistic_regressions
from rankshot.experiments.peers.peer import Peer, positive
from rankshot.experiments.peers.training import Training

Floats = NDArray[np.float64]


class DAP(Peer):
    r"""Direct attribute prediction of Lampert, Nickisch & Harmeling (2009).

    The class vectors are attributes: yes or no, or numbers, which count as yes above the mean
    of all entries of the training classes' table. A logistic regression for each attribute
    learns P(a_m|x), and

    .. math:: P(z|x) ∝ \prod_m \frac{P(a_m^z | x)}{P(a_m^z)},

    where the prior P(a_m) is the mean over training classes. An attribute that is the same for
    all training classes has the factor 1, which keeps priors from 0 and 1. `decision_function`
    is the logarithm of the product.

    Parameters
    ----------
    penalty : float
        α in the regressions' Σ loss + α |w|² / 2: scikit-learn's 1 / C.

    Attributes
    ----------
    attributes_ : BinaryAttributes
        The threshold, the attributes that differ between training classes, and their priors.
    regressions_ : LogisticRegressions
        One for each attribute that differs.

    Examples
    --------
    >>> from rankshot.semantics.class_vectors import ClassVectors
    >>> names, values = ["lion", "bus", "cat", "van"], [[1, 0], [0, 1], [1, 0], [0, 1]]
    >>> vectors = ClassVectors(names, values, "me")
    >>> X, y = [[2, 0], [3, 1], [0, 2], [1, 3]], ["lion", "lion", "bus", "bus"]
    >>> peer = DAP().fit(X, y, vectors)
    >>> peer.predict([[5, 1], [0, 4]], vectors.select(["cat", "van"]))
    array(['cat', 'van'], dtype='<U3')
    """

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def _learn(self, training: Training) -> None:
        penalty = positive("penalty", self.penalty)
        self.attributes_ = BinaryAttributes.of(training.classes)
        present = self.attributes_.present(training.classes).astype(np.float64)
        self.regressions_ = fit_logistic_regressions(training.X, present[training.codes], penalty)

    def _scores(self, X: Floats, targets: CompleteVectors) -> Floats:
        f = self.regressions_.log_odds(X)
        return self.attributes_.log_posterior(log_expit(f), log_expit(-f), targets)

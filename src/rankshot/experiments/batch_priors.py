"""How frequent targets are in a batch: what a head says of all inputs, used for each of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

Floats = NDArray[np.float64]


def with_estimated_frequencies(log_proba: Floats, n_rounds: int = 50) -> Floats:
    """Return log-probabilities with the frequencies of targets that explain the batch best.

    Expectation and maximisation over P(z), after Saerens, Latinne and Decaestecker (2002): each
    round P(z) is the mean of P(z|x) over the batch, and P(z|x) is that of the head times P(z).
    """
    log_prior = np.zeros(log_proba.shape[1])
    for _ in range(n_rounds):
        posterior = np.exp(log_softmax(log_proba + log_prior, axis=1))
        log_prior = np.log(np.maximum(posterior.mean(axis=0), np.finfo(float).tiny))
    return np.asarray(log_softmax(log_proba + log_prior, axis=1))

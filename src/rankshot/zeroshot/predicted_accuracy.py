"""Predict the accuracy on new classes from the accuracy on held-out seen classes.

A model with two parts. An input has one decision value per new class; over the reference these
values have mean 0, variance 1 and the correlations K. For an input of class z they are shifted by
d K_z: its own value by the *strength* d of the class, and those of similar classes with it. So
similar classes are confused, and the more candidates there are, the more often.

The strengths of held-out classes follow from their accuracies, and those of the new classes are
predicted from them: classes with similar rankings have similar strengths. New classes are rarely
a random sample of all classes. If they resemble each other and no held-out class, their strengths
are uncertain together, and the interval is wide.

Unlabelled inputs of the new classes narrow it: where the probabilities of predicted classes are
higher than in the rehearsal, the accuracy usually is, by as much.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.special import softmax

from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.weighted_mean import WeightedMean

Floats = NDArray[np.float64]
STRENGTHS = np.linspace(-1.0, 6.0, 141)
"""The strengths that are told apart: from worse than chance to nearly always right."""
SHARES = np.linspace(0.0, 0.95, 20)
"""The shares of the variance of strengths that similar classes may have in common."""
N_INPUTS = 400
"""The number of simulated inputs of each class."""
N_DRAWS = 1000
"""The number of draws of the strengths of the new classes."""
MOST_CLASSES = 100
"""Of more new classes, this many are simulated, each against all."""
CONFIDENCE_ERROR = 0.2
"""The standard deviation of the change in accuracy less the change in mean confidence. Of .05, .1,
.15, .2, .25 and .3, it is the smallest with which at least 95% of the intervals contain the
accuracy on held-out seen classes."""


def correlate_classes(head: WeightedMean, scores: Scores) -> Floats:
    """The correlations of the decision values of the classes; 0 for a constant one."""
    values = np.asarray(head.decision_function(scores), np.float64)
    values = values - values.mean(axis=0)
    size = np.sqrt((values**2).sum(axis=0))
    values /= np.where(size > 0, size, 1.0)
    correlations = values.T @ values
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)


def simulate_accuracies(correlations: Floats, classes: NDArray[np.intp] | None = None) -> Floats:
    """The accuracy of each class, one row per class, for each of the `STRENGTHS`.

    All classes compete; rows are returned for those in ``classes``, by default for all.
    """
    root = _symmetric_root(correlations)
    noise = np.random.default_rng(0).standard_normal((N_INPUTS, len(root))) @ root
    chosen = np.arange(len(root)) if classes is None else classes
    accuracy = np.empty((len(chosen), len(STRENGTHS)))
    for row, z in enumerate(chosen):
        # z beats j if noise_z + d > noise_j + d K_zj. Equal classes beat each other half the time.
        lead = np.maximum(1 - correlations[z], 1e-6)
        needed = (noise - noise[:, [z]]) / lead
        needed[:, z] = -np.inf
        least = np.sort(needed.max(axis=1))
        accuracy[row] = np.searchsorted(least, STRENGTHS) / N_INPUTS
    return accuracy


def _symmetric_root(covariance: Floats) -> Floats:
    # Other roots depend on the signs of eigenvectors, which are arbitrary.
    variance, directions = np.linalg.eigh(covariance)
    return np.asarray((directions * np.sqrt(np.maximum(variance, 0.0))) @ directions.T)


def find_strengths(accuracies: Floats, correlations: Floats) -> Floats:
    """The strength with which each class reaches its accuracy among the others."""
    simulated = simulate_accuracies(correlations)
    return np.array(
        [np.interp(a, row, STRENGTHS) for a, row in zip(accuracies, simulated, strict=True)]
    )


def draw_strengths(strengths: Floats, similarity: Floats, rng: np.random.Generator) -> Floats:
    """Draw strengths of new classes, one row per draw, given those of held-out classes.

    Strengths are a Gaussian process: the covariance of two classes is their ``similarity`` times a
    share of the variance. The mean has a flat prior, the variance σ² the prior 1/σ², the share a
    uniform one; all three are integrated out.

    Parameters
    ----------
    strengths : ndarray of shape (n,)
    similarity : ndarray of shape (n + L, n + L)
        A correlation matrix of the n held-out and the L new classes, in this order.
    """
    n, size = len(strengths), len(similarity)
    found = []
    for share in SHARES:
        S = (1 - share) * np.eye(size) + share * similarity
        L = np.linalg.cholesky(S[:n, :n])
        given = np.column_stack([strengths, np.ones(n), S[:n, n:]])
        d, ones, to_new = np.split(solve_triangular(L, given, lower=True), [1, 2], axis=1)
        weight = float((ones**2).sum())
        mean = float((ones * d).sum()) / weight
        residual = d - mean * ones
        # Strengths are read off a grid, which limits how equal they can be.
        total = float((residual**2).sum()) + n * (STRENGTHS[1] - STRENGTHS[0]) ** 2 / 12
        log_likelihood = -np.log(np.diag(L)).sum() - (np.log(weight) + (n - 1) * np.log(total)) / 2
        lacking = 1 - to_new.T @ ones
        covariance = S[n:, n:] - to_new.T @ to_new + lacking @ lacking.T / weight
        center = mean + to_new.T @ residual
        found.append((log_likelihood, center[:, 0], covariance * total / (n - 1)))
    likelihood = softmax([one[0] for one in found])
    draws = []
    for number, (_, center, covariance) in zip(
        rng.multinomial(N_DRAWS, likelihood), found, strict=True
    ):
        scale = np.sqrt((n - 1) / rng.chisquare(n - 1, (number, 1)))
        noise = rng.standard_normal((number, len(center))) @ _symmetric_root(covariance)
        draws.append(center + scale * noise)
    return np.concatenate(draws)


def predict_mean_accuracy(
    strengths: Floats,
    similarity: Floats,
    correlations: Floats,
    by_confidence: tuple[float, float] | None = None,
) -> Interval:
    """The mean accuracy of new classes, with a 95% interval for these classes.

    It is one for the *next* classes, and wider than one for the mean of many classes.

    Parameters
    ----------
    strengths : ndarray of shape (n,)
        Of the held-out classes.
    similarity : ndarray of shape (n + L, n + L)
        How similar the held-out and the new classes are: see `draw_strengths`.
    correlations : ndarray of shape (L, L)
        Of the decision values of the new classes.
    by_confidence : tuple of float, optional
        The accuracy of the held-out classes plus the change in mean confidence, and the standard
        deviation of its error.
    """
    n, rng = len(strengths), np.random.default_rng(0)
    chosen = rng.permutation(len(correlations))[:MOST_CLASSES]
    both = np.concatenate([np.arange(n), n + chosen])
    drawn = draw_strengths(strengths, similarity[np.ix_(both, both)], rng)
    column = np.searchsorted(STRENGTHS, drawn).clip(max=len(STRENGTHS) - 1)
    simulated = simulate_accuracies(correlations, chosen)
    means = simulated[np.arange(len(chosen)), column].mean(axis=1)
    if by_confidence is not None:
        means = reweigh_draws(means, *by_confidence)
    low, high = np.quantile(means, [0.025, 0.975])
    return Interval(float(means.mean()), float(low), float(high))


def reweigh_draws(draws: Floats, center: float, error: float) -> Floats:
    """Draws from the posterior, given draws from the prior and a measurement with normal errors."""
    ordered = np.sort(draws)
    weights = softmax(-(((ordered - center) / error) ** 2) / 2)
    places = (np.arange(len(draws)) + 0.5) / len(draws)
    chosen = np.searchsorted(np.cumsum(weights), places)
    return np.asarray(ordered[chosen.clip(max=len(draws) - 1)])

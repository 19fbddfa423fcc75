"""How accurate new classes will be, from how accurate held-out seen classes were.

A model with two parts. An input has one decision value per new class; over the reference these
values have mean 0, variance 1 and the correlations K. For an input of class z they are shifted by
d K_z: its own value by the *strength* d of the class, and those of similar classes with it. So
similar classes are confused, and the more candidates there are, the more often.

The strengths of held-out classes follow from their accuracies. The correlations of the new classes
are known before there is any input of them: from their rankings and the reference.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from rankshot.core.validation import Seed
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
STRENGTHS = np.linspace(-1.0, 6.0, 141)
"""The strengths that are told apart: from worse than chance to nearly always right."""
N_INPUTS = 400
"""The number of simulated inputs of each class."""
N_DRAWS = 1000
"""The number of draws of the strengths of the new classes."""
LOG_ODDS_STD = 0.25
"""What the model does not know: new classes are not drawn at random among all classes, and raters
know some better than others. A standard deviation of the log-odds of the mean accuracy, chosen so
that 95 % of the intervals of three data sets contain the accuracy of their new classes."""
MOST_CLASSES = 100
"""Of more new classes, this many are simulated, each against all."""


def correlate_classes(head: BaseHead, scores: Scores) -> Floats:
    """Return the correlations of the decision values of the classes; 0 for a constant one."""
    values = np.asarray(head.decision_function(scores), np.float64)
    values = values - values.mean(axis=0)
    size = np.sqrt((values**2).sum(axis=0))
    values /= np.where(size > 0, size, 1.0)
    correlations = values.T @ values
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)


def simulate_accuracies(
    correlations: Floats, most: int | None = None, random_state: Seed = 0
) -> Floats:
    """Return the accuracy of each class, one row per class, for each of the `STRENGTHS`.

    Of more than ``most`` classes, this many are chosen at random.
    """
    L = len(correlations)
    variance, directions = np.linalg.eigh(correlations)
    # The symmetric root: any other depends on the signs of eigenvectors, which are arbitrary.
    root = (directions * np.sqrt(np.maximum(variance, 0.0))) @ directions.T
    rng = np.random.default_rng(random_state)
    noise = rng.standard_normal((N_INPUTS, L)) @ root
    classes = np.arange(L) if most is None or most >= L else rng.choice(L, most, replace=False)
    accuracy = np.empty((len(classes), len(STRENGTHS)))
    for row, z in enumerate(classes):
        # z beats j if noise_z + d > noise_j + d K_zj. Equal classes beat each other half the time.
        lead = np.maximum(1 - correlations[z], 1e-6)
        needed = (noise - noise[:, [z]]) / lead
        needed[:, z] = -np.inf
        least = np.sort(needed.max(axis=1))
        accuracy[row] = np.searchsorted(least, STRENGTHS) / N_INPUTS
    return accuracy


def find_strengths(accuracies: Floats, correlations: Floats) -> Floats:
    """Return the strength with which each class reaches its accuracy among the others."""
    simulated = simulate_accuracies(correlations)
    return np.array(
        [np.interp(a, row, STRENGTHS) for a, row in zip(accuracies, simulated, strict=True)]
    )


def predict_mean_accuracy(strengths: Floats, correlations: Floats) -> Interval:
    """Return the mean accuracy of new classes with these correlations, with a 95 % interval.

    The strengths of the new classes are drawn at random from the given ones, which are themselves
    a random sample: so they are resampled first. The interval is thus one for the *next* classes,
    and wider than one for the mean of many classes. It also allows for what the model does not
    know: see `LOG_ODDS_STD`.
    """
    simulated = simulate_accuracies(correlations, MOST_CLASSES)
    rng = np.random.default_rng(0)
    samples = rng.choice(strengths, (N_DRAWS, len(strengths)))
    drawn = rng.integers(len(strengths), size=(N_DRAWS, len(simulated)))
    column = np.searchsorted(STRENGTHS, np.take_along_axis(samples, drawn, axis=1))
    column = np.minimum(column, len(STRENGTHS) - 1)
    means = simulated[np.arange(len(simulated)), column].mean(axis=1)
    # An accuracy of 1 has infinite odds.
    error = LOG_ODDS_STD * rng.standard_normal(N_DRAWS)
    shifted = expit(logit(np.clip(means, 0.005, 0.995)) + error)
    low, high = np.quantile([means, shifted], [0.025, 0.975], axis=1)
    return Interval(float(means.mean()), float(low.min()), float(high.max()))

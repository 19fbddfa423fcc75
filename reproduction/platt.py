"""Platt scaling: log-odds from the decision values of binary classifiers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
MAX_ITERATIONS = 100
LEAST_GAIN = 1e-12
"""The fit ends when a Newton step would gain less log-likelihood than this."""


def fit_platt(scores: Scores, y: NDArray[np.str_]) -> tuple[Floats, Floats]:
    r"""Return the slope a and the intercept b of each column of one-vs-rest or one-vs-one scores.

    A decision value f tells on which side of a boundary an input is, but not how probable that
    is. Platt models the probability as a sigmoid, :math:`P(+ | f) = 1/(1 + e^{-(a f + b)})`, so
    that a f + b are log-odds, and fits it to inputs that the classifier was not trained on. Of a
    class against the rest, the inputs of the class are positive; of a pair of classes, those of
    the first are positive, those of the second negative, and all others are ignored.

    Platt (1999), Probabilistic outputs for support vector machines. Advances in Large Margin
    Classifiers. Lin, Lin and Weng (2007), A note on Platt's probabilistic outputs for support
    vector machines. Machine Learning 68.
    """
    items = np.array(scores.items)
    if scores.kind == "one-vs-one":
        first, second = (items[index] for index in np.triu_indices(len(items), 1))
        columns = [(y == a, (y == a) | (y == b)) for a, b in zip(first, second, strict=True)]
    else:
        columns = [(y == name, np.ones(len(y), bool)) for name in items]
    fitted = [
        fit_sigmoid(scores.columns[used, column].astype(np.float64), positive[used])
        for column, (positive, used) in enumerate(columns)
    ]
    slopes, intercepts = np.array(fitted).T
    return slopes, intercepts


def fit_sigmoid(f: Floats, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """Return a and b of P(+|f) by maximum likelihood: Newton's method with step halving.

    The targets are (N₊ + 1) / (N₊ + 2) and 1 / (N₋ + 2) instead of 1 and 0, so that the parameters
    are finite even if f separates the two sides.
    """
    n = positive.sum()
    targets = np.where(positive, (n + 1) / (n + 2), 1 / ((~positive).sum() + 2))
    # Centred and scaled, which changes only the numerical accuracy.
    center = f.mean()
    scale = np.abs(f - center).mean() or 1.0
    x = (f - center) / scale

    def compute_loss(slope: float, intercept: float) -> float:
        z = slope * x + intercept
        return float((-log_expit(-z) - targets * z).sum())

    slope, intercept = 0.0, float(np.log(targets.mean() / (1 - targets.mean())))
    loss, gain = compute_loss(slope, intercept), np.inf
    for _ in range(MAX_ITERATIONS):
        z = slope * x + intercept
        error, weight = targets - expit(z), expit(z) * expit(-z)
        # Centred at their weighted mean, the steps of slope and level are independent.
        mean = weight @ x / weight.sum()
        uphill, level = error @ (x - mean), error.sum()
        curvature = weight @ (x - mean) ** 2
        turn = uphill / curvature if curvature > 0 else 0.0
        lift = level / weight.sum() - mean * turn
        gain = (uphill * turn + level**2 / weight.sum()) / 2
        length = 1.0
        # The last term allows for rounding.
        while (new_loss := compute_loss(slope + length * turn, intercept + length * lift)) > (
            loss - 1e-4 * length * gain + 1e-12 * loss
        ) and length > 1e-10:
            length /= 2
        slope, intercept, loss = slope + length * turn, intercept + length * lift, new_loss
        if gain <= LEAST_GAIN:
            break
    return slope / scale, intercept - slope * center / scale

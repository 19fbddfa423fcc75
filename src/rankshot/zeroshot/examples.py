"""Labelled examples of new classes: a ridge regression added to what the rankings say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.sparse import issparse
from scipy.special import log_softmax

from rankshot.core.errors import RankshotError, suggest_name
from rankshot.zeroshot.scores import Scores, as_scores

Floats = NDArray[np.float64]
RIDGE = 1.0
"""The penalty, in units of the mean squared length of the features. From .3 to 3, the accuracy on
held-out seen classes is the same."""
USUAL_WEIGHTS = 0.8, 0.2
"""The usual weights of the head and of one example per class, chosen on held-out seen classes of
three data sets. The second grows with the square root of the number of examples per class."""
LOG_WEIGHT_STD = np.array([0.25, 0.5])
"""How far the logarithms of the weights may be from those of the usual ones."""


def as_examples(
    examples: tuple[Scores | ArrayLike, ArrayLike], items: tuple[str, ...], ranked: Sequence[str]
) -> tuple[Scores, NDArray[np.str_]]:
    """Return the scores and labels of examples of new classes.

    A class may have examples and no ranking, unless its name looks like that of a ranked class.
    """
    try:
        given, names = examples
    except (TypeError, ValueError):
        raise RankshotError("examples must be a pair: scores, and the class of each row") from None
    scores = as_scores(given, items)
    labels = np.asarray(names).astype(str)
    if labels.shape != (len(scores),) or len(scores) == 0:
        raise RankshotError(
            f"examples: {len(scores)} rows of scores need as many labels, not {labels.shape}"
        )
    for name in sorted(set(labels.tolist())):
        if name in items:
            raise RankshotError(
                f"examples: {name!r} is a seen class; examples are inputs of new classes"
            )
        if name not in ranked and (close := suggest_name(name, ranked)):
            raise RankshotError(f"examples: no ranking of {name!r}{close}")
    return scores, labels


class Refinement(NamedTuple):
    r"""What labelled examples change: log P(z|x) = a log P_head(z|x) + (φ(x) - m)·W_z + const.

    Attributes
    ----------
    head_weight : float
        a, the weight of the log-probabilities of the head.
    slopes : ndarray of shape (features, classes)
        W. Classes without examples have zeros.
    center : ndarray of shape (features,)
        m, the mean of the features over the examples; all classes have the same weight.
    example_weight : float
        b, by which the slopes of the regression were multiplied, in units of the standard deviation
        of its predictions for examples that are left out.
    """

    head_weight: float
    slopes: Floats
    center: Floats
    example_weight: float


class Weighed(NamedTuple):
    """What a head and examples say of some labelled inputs, and the weights of these inputs."""

    by_head: Floats
    by_examples: Floats
    labels: NDArray[np.intp]
    weight: Floats


def refine(
    log_proba: Floats,
    features: Any,
    labels: NDArray[np.intp],
    usual: tuple[float, float] = USUAL_WEIGHTS,
) -> Refinement:
    """Learn from labelled examples how to correct the log-probabilities of a head.

    The slopes are those of a ridge regression to the classes, in which each class has the same
    weight. Its predictions for examples that are left out have a closed form. The weights of the
    head and of the regression are those under which these predictions make the labels most
    probable, with a normal prior of the logarithms of both weights: few examples change little.

    Parameters
    ----------
    log_proba : ndarray of shape (n, classes)
        Log-probabilities of the examples by the head.
    features : ndarray or sparse array of shape (n, features)
        What the regression sees of them.
    labels : ndarray of int
        The column of the class of each example.
    usual : two numbers
        The most probable weights beforehand, of the head and of one example per class.
    """
    features = features.toarray() if issparse(features) else features
    n, n_classes = log_proba.shape
    there, counts = np.unique(labels, return_counts=True)
    size = np.bincount(labels, minlength=n_classes)[labels]
    weight = counts.mean() / size
    center = weight @ features / n
    targets = np.zeros((n, n_classes))
    targets[:, there] = -1 / len(there)
    targets[np.arange(n), labels] += 1
    slopes, left_out = _ridge(features - center, targets, weight)
    scale = left_out[:, there].std() or 1.0
    # The only example of a class cannot be predicted from the others.
    several = size > 1
    known = Weighed(
        *(log_proba[several], left_out[several] / scale, labels[several], weight[several])
    )
    head_weight, example_weight = find_weights(
        [known], np.array([usual[0], usual[1] * np.sqrt(n / n_classes)])
    )
    return Refinement(head_weight, slopes * (example_weight / scale), center, example_weight)


def _ridge(features: Floats, targets: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return the slopes of a weighted ridge regression, and its predictions by leaving one out."""
    root = np.sqrt(weight)[:, None]
    U, s, Vt = np.linalg.svd(root * features, full_matrices=False)
    # All features of the examples may be equal.
    penalty = RIDGE * (s @ s / len(features)) or 1.0
    shrinkage = s**2 / (s**2 + penalty)
    projected = U.T @ (root * targets)
    residual = targets - U @ (shrinkage[:, None] * projected) / root
    leverage = (U**2) @ shrinkage
    slopes = Vt.T @ ((s / (s**2 + penalty))[:, None] * projected)
    return slopes, targets - residual / (1 - leverage)[:, None]


def find_weights(parts: Sequence[Weighed], usual: Floats) -> tuple[float, float]:
    """Return the weights of head and examples that make labels most probable, given the prior."""

    def loss(log_weights: Floats) -> tuple[float, Floats]:
        a, b = np.exp(log_weights)
        off = (log_weights - np.log(usual)) / LOG_WEIGHT_STD
        value, gradient = 0.5 * off @ off, off / LOG_WEIGHT_STD
        for by_head, by_examples, labels, weight in parts:
            rows = np.arange(len(labels))
            log_proba = log_softmax(a * by_head + b * by_examples, axis=1)
            excess = np.exp(log_proba)
            excess[rows, labels] -= 1
            excess *= weight[:, None]
            value = value - weight @ log_proba[rows, labels]
            slopes = a * (excess * by_head).sum(), b * (excess * by_examples).sum()
            gradient = gradient + np.array(slopes)
        return value, gradient

    head_weight, example_weight = np.exp(minimize(loss, np.log(usual), jac=True).x)
    return float(head_weight), float(example_weight)

"""The constant that lets seen and unseen classes compete: calibrated stacking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class SeenOrUnseen(NamedTuple):
    """What is to be known of inputs to judge any calibration constant.

    Attributes
    ----------
    margin : ndarray of shape (n,)
        Log-probability of the best seen class less that of the best unseen one. An input goes
        to the seen class where this exceeds the constant.
    right_if_seen, right_if_unseen : ndarray of bool
        Whether the best seen, and the best unseen, class is the true one.
    weight : ndarray
        One over the number of inputs of its class, and over the number of seen (or unseen)
        classes: accuracies are means over classes.
    is_unseen : ndarray of bool
        Whether the true class is an unseen one.
    """

    margin: Floats
    right_if_seen: NDArray[np.bool_]
    right_if_unseen: NDArray[np.bool_]
    weight: Floats
    is_unseen: NDArray[np.bool_]


def seen_or_unseen(
    log_proba: NDArray[np.floating],
    classes: NDArray[np.str_],
    seen: NDArray[np.bool_],
    y: NDArray[np.str_],
) -> SeenOrUnseen:
    """Sum up what a generalised zero-shot classifier says of labelled inputs."""
    best_seen = log_proba[:, seen].argmax(axis=1)
    best_unseen = log_proba[:, ~seen].argmax(axis=1)
    rows = np.arange(len(y))
    margin = log_proba[:, seen][rows, best_seen] - log_proba[:, ~seen][rows, best_unseen]
    names, which, count = np.unique(y, return_inverse=True, return_counts=True)
    name_unseen = ~np.isin(names, classes[seen])
    n_alike = np.where(name_unseen, name_unseen.sum(), (~name_unseen).sum())
    return SeenOrUnseen(
        margin.astype(np.float64),
        classes[seen][best_seen] == y,
        classes[~seen][best_unseen] == y,
        (1 / (count * n_alike))[which],
        name_unseen[which],
    )


def harmonic_means(inputs: SeenOrUnseen, constants: Floats) -> Floats:
    """Return the harmonic mean of seen and unseen accuracy for every constant."""
    order = np.argsort(inputs.margin)
    # Inputs of a margin up to the constant go to unseen classes.
    n_unseen = np.searchsorted(inputs.margin[order], constants, side="right")

    def accuracy(of: NDArray[np.bool_]) -> Floats:
        weight = np.where(of, inputs.weight, 0.0)[order]
        below = np.append(0, np.cumsum(weight * inputs.right_if_unseen[order]))
        above = np.append(0, np.cumsum((weight * inputs.right_if_seen[order])[::-1]))[::-1]
        return np.asarray(below[n_unseen] + above[n_unseen])

    unseen, seen = accuracy(inputs.is_unseen), accuracy(~inputs.is_unseen)
    total = unseen + seen
    return np.divide(2 * unseen * seen, total, out=np.zeros_like(total), where=total > 0)


def best_calibration(folds: Sequence[SeenOrUnseen]) -> tuple[float, float]:
    """Return the constant with the largest harmonic mean, averaged over folds, and that mean.

    Between two neighbouring margins all constants are alike. The middle of the first stretch
    without a better one is taken.
    """
    margins = np.unique(np.concatenate([fold.margin for fold in folds]))
    edges = np.concatenate([[margins[0] - 1], margins, [margins[-1] + 1]])
    # Where fold after fold adds up in another order, equal means differ in their last digits.
    means = np.mean([harmonic_means(fold, edges[:-1]) for fold in folds], axis=0).round(12)
    first = int(np.argmax(means))
    worse = np.flatnonzero(means[first:] < means[first])
    end = first + (int(worse[0]) if worse.size else means.size - first)
    return float((edges[first] + edges[end]) / 2), float(means[first])

"""From log-probabilities to classes: the only rule for the largest, for ties and for rejection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.arrays import Array, Library, numpy_dtype, other_library, to_numpy
from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import require_whole_number

Floats = NDArray[np.floating]
REJECTED = "rejected"
"""The label of an input for which no class is probable enough."""
EQUAL_LOG_PROBA = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
"""Log-probabilities that differ by less than this (relative to them, beyond 1) are equal: rounding
must not decide. Among equals, the first name in alphabetical order is predicted."""


class Top(NamedTuple):
    """The most probable classes of each input, best first, and their probabilities.

    Attributes
    ----------
    labels : ndarray of str, shape (n, k)
        The classes.
    proba : ndarray of shape (n, k)
        Their probabilities.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"], ["tiger", "bus"]],
    ...     items=["bus", "leopard", "tiger", "tram"], targets=["cat", "truck", "toy tiger"])
    >>> best = rs.WeightedMean().fit(rankings).top([[0.1, 3.0, 1.5, -1.0]], k=2)
    >>> best.labels, best.proba.round(2)
    (array([['cat', 'toy tiger']], dtype='<U9'), array([[0.94, 0.05]]))
    """

    labels: NDArray[np.str_]
    proba: Floats


def find_best(log_proba: Array, xp: Library) -> Array:
    """The column of the largest value of each row, in any library; among equals, the first."""
    top = xp.max(log_proba, axis=1, keepdims=True)
    size = xp.where(xp.abs(top) > 1.0, xp.abs(top), 1.0)
    tied = EQUAL_LOG_PROBA[numpy_dtype(log_proba)] * size
    return xp.argmax(xp.astype(log_proba >= top - tied, xp.int8), axis=1)


def most_probable(log_proba: Array) -> NDArray[np.intp]:
    """The column of the largest value of each row, in NumPy; among equals, the first."""
    with np.errstate(invalid="ignore"):
        best = find_best(log_proba, other_library(log_proba) or np)
    if (xp := other_library(log_proba)) is not None:
        # Scores on other devices have not been checked.
        best = to_numpy(xp.where(xp.isnan(xp.max(log_proba, axis=1)), -1, best))
        if (best < 0).any():
            where = f"row {np.argmax(best < 0)}"
            raise InputError("scores", NO_VALUE, "are not finite", where=where)
    return np.asarray(best)


def first_guesses(scores: Floats, items: Sequence[str]) -> NDArray[np.intp]:
    """The column of the largest score of each row; among equals, the first name."""
    by_name = np.argsort(np.array(items), kind="stable")
    is_largest = scores == scores.max(axis=1, keepdims=True)
    return np.asarray(by_name[is_largest[:, by_name].argmax(axis=1)])


def label_or_reject(
    log_proba: Floats, classes: NDArray[np.str_], reject_below: float | None
) -> NDArray[np.str_]:
    """The most probable class of each row, or `REJECTED` if it is too improbable."""
    best = most_probable(log_proba)
    labels: NDArray[np.str_] = classes[best]
    if reject_below is None:
        return labels
    sure = np.exp(log_proba[np.arange(len(best)), best]) >= reject_below
    return np.where(sure, labels, REJECTED)


def take_top(log_proba: Floats, classes: NDArray[np.str_], k: int) -> Top:
    """The k most probable classes of each row and their probabilities."""
    k = require_whole_number("k", k, most=len(classes))
    rows = np.arange(len(log_proba))
    labels = np.empty((len(rows), k), classes.dtype)
    proba = np.empty(labels.shape, log_proba.dtype)
    taken = np.zeros(log_proba.shape, bool)
    for place in range(k):
        column = most_probable(np.where(taken, -np.inf, log_proba))
        labels[:, place] = classes[column]
        proba[:, place] = np.exp(log_proba[rows, column])
        taken[rows, column] = True
    return Top(labels, proba)

"""From log-probabilities to decisions: the only rule for the largest, for ties and rejection."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.arrays import Array, numpy_dtype, other_library, to_numpy
from rankshot.core.errors import RowError
from rankshot.core.validation import require_whole_number
from rankshot.zeroshot.scores import is_lazy, map_row_blocks

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
    (array([['cat', 'toy tiger']], dtype='<U9'), array([[0.78, 0.17]]))
    """

    labels: NDArray[np.str_]
    proba: Floats


def normalize_log_proba(
    log_posterior: Floats,
    allowed: NDArray[np.bool_] | None,
    dtype: np.dtype[np.floating],
    *,
    temperature: float = 1.0,
) -> Floats:
    """Return log-probabilities, normalised over the allowed classes of each column.

    The differences from the largest value are divided by the temperature. Only they are rounded to
    ``dtype``.
    """
    if allowed is not None:
        log_posterior[~allowed] = -np.inf
    largest = log_posterior.max(axis=0)
    impossible = np.isneginf(largest)
    if impossible.any():
        # All classes have probability 0: all allowed classes become equally probable.
        log_posterior[:, impossible] = 0.0
        if allowed is not None:
            log_posterior[~allowed] = -np.inf
        largest = log_posterior.max(axis=0)
    log_proba = ((log_posterior - largest) / temperature).astype(dtype)
    log_proba -= np.log(np.exp(log_proba).sum(axis=0))
    return np.asarray(log_proba)


def most_probable(log_proba: Floats) -> NDArray[np.intp]:
    """Return the column of the largest value of each row; among equals, the first."""
    xp = other_library(log_proba) or np
    top = xp.max(log_proba, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        tied = EQUAL_LOG_PROBA[numpy_dtype(log_proba)] * xp.clip(xp.abs(top), 1.0, None)
        is_best = xp.astype(log_proba >= top - tied, xp.int8)
    best = xp.argmax(is_best, axis=1)
    if xp is not np:
        # Scores on other devices have not been checked.
        best = to_numpy(xp.where(xp.isnan(top[:, 0]), -1, best))
        if (best < 0).any():
            raise RowError(": the scores are not finite", int(np.argmax(best < 0)))
    return np.asarray(best)


def label_or_reject(
    log_proba: Floats, classes: NDArray[np.str_], reject_below: float | None, reject_label: str
) -> NDArray[np.str_]:
    """Return the most probable class of each row, or ``reject_label`` if it is too improbable."""
    best = most_probable(log_proba)
    labels: NDArray[np.str_] = classes[best]
    if reject_below is None:
        return labels
    sure = np.exp(log_proba[np.arange(len(best)), best]) >= reject_below
    return np.where(sure, labels, reject_label)


def take_top(log_proba: Floats, classes: NDArray[np.str_], k: int) -> Top:
    """Return the k most probable classes of each row and their probabilities."""
    k = require_whole_number("k", k, most=len(classes))
    rows = np.arange(len(log_proba))
    labels = np.empty((len(rows), k), classes.dtype)
    proba = np.empty(labels.shape, log_proba.dtype)
    taken = np.zeros(log_proba.shape, bool)
    for place in range(k):
        column = most_probable(np.where(taken, -np.inf, log_proba))
        # If only impossible classes are left, take the first that is not taken yet.
        column = np.where(taken[rows, column], np.argmin(taken, axis=1), column)
        labels[:, place] = classes[column]
        proba[:, place] = np.exp(log_proba[rows, column])
        taken[rows, column] = True
    return Top(labels, proba)


def predict_names(log_proba: Array, classes: NDArray[np.str_]) -> NDArray[np.str_]:
    """Return the most probable class of each row; lazily for arrays of Dask."""
    if is_lazy(log_proba):
        names: NDArray[np.str_] = map_row_blocks(log_proba, predict_names, classes)
        return names
    return classes[most_probable(log_proba)]


def predict_top(log_proba: Array, classes: NDArray[np.str_], k: int) -> Top:
    """Return the k most probable classes of each row; lazily for arrays of Dask."""
    if is_lazy(log_proba):
        parts = [map_row_blocks(log_proba, _take_field, (classes, k, i)) for i in range(2)]
        return Top(*parts)
    return take_top(to_numpy(log_proba), classes, k)


def _take_field(log_proba: Array, constant: tuple[NDArray[np.str_], int, int]) -> Array:
    classes, k, field = constant
    return take_top(to_numpy(log_proba), classes, k)[field]

"""Run a head on scores of any kind: blocks of inputs, arrays of any library, Dask; and decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import Array, numpy_dtype, other_library, to_numpy
from rankshot.core.errors import RankshotError, RowError, short_repr, suggest_name
from rankshot.core.validation import require_whole_number

Floats = NDArray[np.floating]
Candidates = ArrayLike | Sequence[Iterable[str]] | None
REJECTED = "rejected"
"""The label of an input for which no class is probable enough."""
TIED = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
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
        tied = TIED[numpy_dtype(log_proba)] * xp.clip(xp.abs(top), 1.0, None)
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
    left = log_proba.copy()
    labels = np.empty((len(left), k), classes.dtype)
    proba = np.empty((len(left), k), left.dtype)
    rows = np.arange(len(left))
    taken = np.zeros(left.shape, bool)
    for place in range(k):
        column = most_probable(np.where(taken, -np.inf, left))
        # If only impossible classes are left, take the first that is not taken yet.
        column = np.where(taken[rows, column], np.argmin(taken, axis=1), column)
        labels[:, place] = classes[column]
        proba[:, place] = np.exp(log_proba[rows, column])
        taken[rows, column] = True
    return Top(labels, proba)


def candidate_mask(candidates: Candidates, n: int, classes: NDArray[Any]) -> Array | None:
    """Return which classes each input may get, or None for all."""
    if candidates is None:
        return None
    is_other = other_library(candidates) is not None
    if is_other or (isinstance(candidates, np.ndarray) and candidates.dtype == bool):
        mask: Any = candidates
        if mask.shape != (n, len(classes)):
            raise RankshotError(
                f"candidates must have the shape ({n}, {len(classes)}), not {tuple(mask.shape)}"
            )
        if is_other:
            return mask
    else:
        mask = _mask_of_names(candidates, n, classes)
    empty = np.flatnonzero(~mask.any(axis=1))
    if empty.size:
        raise RankshotError(f"candidates: input {empty[0]} has no candidate")
    return mask


def _mask_of_names(candidates: Any, n: int, classes: NDArray[Any]) -> NDArray[np.bool_]:
    try:
        lists = list(candidates)
    except TypeError:
        raise RankshotError(
            f"candidates must be one list of names per input, not {short_repr(candidates)}"
        ) from None
    if len(lists) != n:
        raise RankshotError(f"candidates: {n} inputs need {n} lists of names, not {len(lists)}")
    code = {name: i for i, name in enumerate(classes)}
    mask = np.zeros((n, len(classes)), bool)
    for row, names in enumerate(lists):
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise RankshotError(
                f"candidates: input {row} needs a list of names, not {short_repr(names)}"
            )
        for name in names:
            if not isinstance(name, str) or name not in code:
                raise RankshotError(
                    f"candidates: input {row}: no class {short_repr(name)}"
                    f"{suggest_name(name, classes)}"
                )
            mask[row, code[name]] = True
    return mask

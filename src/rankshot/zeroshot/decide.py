"""From scores to decisions: run a head, and the only rule for the largest, for ties and rejection.

A head is mathematics: what `fit` learned, a formula, and for some heads a faster way for NumPy
arrays. This module knows what heads have in common with each other, and nothing else of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import (
    Array,
    Constants,
    Dtype,
    Library,
    Lost,
    device_of,
    log_softmax,
    numpy_dtype,
    other_library,
    row_blocks,
    to_library,
    to_numpy,
)
from rankshot.core.errors import RankshotError, RowError, suggest_name
from rankshot.core.validation import require_whole_number
from rankshot.zeroshot.scores import (
    Columns,
    Kind,
    Scores,
    as_scores,
    is_dask,
    is_lazy,
    map_row_blocks,
    name_columns,
    warn_of_probabilities,
)

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
    (array([['cat', 'toy tiger']], dtype='<U9'), array([[0.85, 0.12]]))
    """

    labels: NDArray[np.str_]
    proba: Floats


def normalize_log_proba(
    log_posterior: Floats,
    dtype: Dtype,
    temperature: float = 1.0,
    allowed: NDArray[np.bool_] | None = None,
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
    log_proba: Floats, classes: NDArray[np.str_], reject_below: float | None
) -> NDArray[np.str_]:
    """Return the most probable class of each row, or `REJECTED` if it is too improbable."""
    best = most_probable(log_proba)
    labels: NDArray[np.str_] = classes[best]
    if reject_below is None:
        return labels
    sure = np.exp(log_proba[np.arange(len(best)), best]) >= reject_below
    return np.where(sure, labels, REJECTED)


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
    if is_dask(log_proba):
        names: NDArray[np.str_] = map_row_blocks(log_proba, predict_names, classes)
        return names
    return classes[most_probable(log_proba)]


def predict_top(log_proba: Array, classes: NDArray[np.str_], k: int) -> Top:
    """Return the k most probable classes of each row; lazily for arrays of Dask."""
    if is_dask(log_proba):
        parts = [map_row_blocks(log_proba, _take_field, (classes, k, i)) for i in range(2)]
        return Top(*parts)
    return take_top(to_numpy(log_proba), classes, k)


def _take_field(log_proba: Array, constant: tuple[NDArray[np.str_], int, int]) -> Array:
    classes, k, field = constant
    return take_top(to_numpy(log_proba), classes, k)[field]


# ---- Run a head on scores: in blocks, on arrays of any library, lazily on Dask


class FittedHead(Columns, Protocol):
    """A head, as far as it is run here; `BaseHead` documents the methods."""

    items_: tuple[str, ...]
    classes_: NDArray[np.str_]

    @property
    def temperature_(self) -> float: ...  # noqa: D102
    def _list_temperatures(self) -> tuple[float, ...]: ...
    def _block_rows(self, kind: Kind) -> int: ...
    def _formula_cells(self, kind: Kind) -> int: ...
    def _constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants: ...
    def _log_posterior(
        self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost
    ) -> Array: ...


ARRAY_CELLS = 1 << 28
"""The number of cells of the temporary arrays of libraries with large memory of their own."""
_CONVERTED: WeakKeyDictionary[
    FittedHead, tuple[NDArray[np.str_], dict[tuple[object, ...], Constants]]
] = WeakKeyDictionary()
"""The constants of heads in other libraries, and the classes of the fit that they belong to."""


def run_head(
    head: FittedHead,
    scores: Scores | ArrayLike,
    candidates: Candidates = None,
    *,
    normalize: bool = True,
) -> Array:
    """Return log P(z|x), one row per input, or the log-posteriors before they are normalised."""
    if is_lazy(scores):
        return _run_lazily(head, scores, candidates, normalize=normalize)
    table = as_scores(scores, head.items_)
    mask = mask_candidates(candidates, len(table), head.classes_)
    if (xp := other_library(table.values)) is not None:
        log_posterior = _run_formula(head, table, xp)
        if mask is not None:
            if isinstance(mask, np.ndarray):
                mask = to_library(mask, xp, table.values)
            log_posterior = xp.where(mask, log_posterior, -np.inf)
        return log_softmax(log_posterior / head.temperature_, xp, 1) if normalize else log_posterior
    result = np.empty((len(table), len(head.classes_)), table.values.dtype)
    c = head._constants(table.kind, result.dtype, np)
    for rows in iterate_rows(head, table):
        block = head._log_posterior(table._inputs(rows, head), table.kind, c, np, None).T
        if normalize:
            allowed = None if mask is None else mask[rows].T
            # With one row per class, sums over classes are faster.
            block = np.ascontiguousarray(block)
            block = normalize_log_proba(block, result.dtype, head.temperature_, allowed)
        result[rows] = block.T
    return result


def _run_lazily(
    head: FittedHead, scores: Scores | ArrayLike, candidates: Candidates, *, normalize: bool
) -> Array:
    """Return the same as a lazy array of Dask, with the blocks of rows of the scores."""
    if candidates is not None:
        raise RankshotError(
            "candidates need scores in memory: pass them for each block of a Dask array, "
            "with dask.array.map_blocks"
        )
    if head.n_extra_columns_:
        raise RankshotError(
            "the head needs features or evidence of each input, which Dask arrays and data "
            "frames do not have: pass Scores(values, items, features=, evidence=) of each block"
        )
    is_plain = not isinstance(scores, Scores)
    lazy = scores if isinstance(scores, Scores) else name_columns(scores, head.items_)
    constant = head, lazy.items, lazy.kind, is_plain, normalize
    return map_row_blocks(lazy.values, _run_on_block, constant)


def _run_on_block(
    block: Array, constant: tuple[FittedHead, tuple[str, ...], Kind, bool, bool]
) -> Array:
    head, items, kind, is_plain, normalize = constant
    scores = Scores(block, items, kind)
    if is_plain:
        warn_of_probabilities(scores)
    return run_head(head, scores, normalize=normalize)


def iterate_rows(head: FittedHead, table: Scores) -> Iterator[slice]:
    """Yield the rows that are computed together on a CPU."""
    return row_blocks(len(table), 1, head._block_rows(table.kind))


def _run_formula(head: FittedHead, table: Scores, xp: Library) -> Array:
    """Return the log-posteriors as an array of the library and the device of the scores."""
    values = table.values
    c = _convert_constants(head, values, table.kind, xp)
    cells = int(values.shape[1]) + head._formula_cells(table.kind)
    blocks = list(row_blocks(len(table), cells, ARRAY_CELLS)) or [slice(0, 0)]
    with _full_precision(xp):
        inputs = (table._inputs(rows, head) for rows in blocks)
        parts = [_run_block(head, f, table.kind, c, xp) for f in inputs]
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


def _run_block(head: FittedHead, f: Array, kind: Kind, c: Constants, xp: Library) -> Array:
    if "jax" in xp.__name__:
        # Under its transformations, nothing may depend on values.
        return head._log_posterior(f, kind, c, xp, None)
    lost: list[Array] = []
    result = head._log_posterior(f, kind, c, xp, lost)
    # How many inputs are lost is known without a look at any value.
    if any(xp.nonzero(where)[0].shape[0] for where in lost):
        return head._log_posterior(f, kind, c, xp, None)
    return result


def _full_precision(xp: Library) -> AbstractContextManager[object]:
    """Return a context in which JAX does not round matrix products to TF32 on a GPU."""
    if "jax" not in xp.__name__:
        return nullcontext()
    precise: AbstractContextManager[object] = sys.modules["jax"].default_matmul_precision("highest")
    return precise


def _convert_constants(head: FittedHead, values: Array, kind: Kind, xp: Library) -> Constants:
    """Return the constants in the library, precision and device of some scores; kept."""
    # What torch makes in its inference mode has no place in the computation of a gradient.
    mode = getattr(xp, "is_inference_mode_enabled", bool)()
    place = xp.__name__, str(values.dtype), str(device_of(values)), mode
    key = kind, *place, *head._list_temperatures()
    classes, kept = _CONVERTED.get(head, (None, {}))
    # Another fit makes other constants.
    if classes is not head.classes_:
        _CONVERTED[head] = head.classes_, (kept := {})
    if key in kept:
        return kept[key]
    constants = {
        name: to_library(array, xp, values)
        for name, array in head._constants(kind, numpy_dtype(values), xp).items()
    }
    # What JAX makes inside a transformation is not valid outside.
    if "jax" not in xp.__name__:
        kept[key] = constants
    return constants


# ---- The classes that each input may be assigned

Candidates = ArrayLike | Sequence[Iterable[str]] | None
"""One list of names per input, or an array of bool with one row per input; None for all."""


def mask_candidates(candidates: Candidates, n: int, classes: NDArray[np.str_]) -> Array | None:
    """Return which classes each input may get, or None for all."""
    if candidates is None:
        return None
    mask: Any = candidates
    if not (other_library(mask) or (isinstance(mask, np.ndarray) and mask.dtype == bool)):
        mask = _mask_of_names(list(mask), classes)
    if tuple(mask.shape) != (n, len(classes)):
        raise RankshotError(
            f"candidates must have the shape ({n}, {len(classes)}), not {tuple(mask.shape)}"
        )
    if isinstance(mask, np.ndarray) and (empty := np.flatnonzero(~mask.any(axis=1))).size:
        raise RankshotError(f"candidates: input {empty[0]} has no candidate")
    return mask


def _mask_of_names(lists: list[Any], classes: NDArray[np.str_]) -> NDArray[np.bool_]:
    code = {name: i for i, name in enumerate(classes.tolist())}
    mask = np.zeros((len(lists), len(classes)), bool)
    for row, names in enumerate(lists):
        for name in names:
            if name not in code:
                raise RankshotError(
                    f"candidates: input {row}: no class {name!r}{suggest_name(name, classes)}"
                )
            mask[row, code[name]] = True
    return mask

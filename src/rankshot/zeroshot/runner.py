"""Run a head on scores: in blocks, on arrays of any library, lazily on Dask.

A head is mathematics: what `fit` learned, a formula, and for some heads a faster way for NumPy
arrays. This module knows what heads have in common with each other, and nothing else of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import (
    Array,
    Constants,
    Library,
    device_of,
    log_softmax,
    numpy_dtype,
    other_library,
    row_blocks,
    to_library,
)
from rankshot.core.errors import RankshotError, suggest_name
from rankshot.zeroshot.decide import normalize_log_proba
from rankshot.zeroshot.scores import (
    Kind,
    Scores,
    as_scores,
    is_lazy,
    map_row_blocks,
    name_columns,
    warn_of_probabilities,
)

Floats = NDArray[np.floating]
Candidates = ArrayLike | Sequence[Iterable[str]] | None
ARRAY_CELLS = 1 << 28
"""The number of cells of the temporary arrays of libraries with large memory of their own."""
_CONVERTED: WeakKeyDictionary[Any, tuple[Any, dict[Any, Constants]]] = WeakKeyDictionary()
"""The constants of heads in other libraries, and the classes of the fit that they belong to."""


def run_head(
    head: Any, scores: Scores | ArrayLike, candidates: Candidates = None, *, normalize: bool = True
) -> Array:
    """Return log P(z|x), one row per input, or the log-posteriors before they are normalised."""
    if is_lazy(scores):
        if candidates is not None:
            raise RankshotError(
                "candidates need scores in memory: pass them for each block of a Dask array, "
                "with dask.array.map_blocks"
            )
        if head.n_features_:
            raise RankshotError(
                "the head needs features or evidence of each input, which Dask arrays and data "
                "frames do not have: pass Scores(values, items, features=, evidence=) of each block"
            )
        is_plain = not isinstance(scores, Scores)
        lazy: Any = name_columns(scores, head.items_) if is_plain else scores
        constant = head, lazy.items, lazy.kind, is_plain, normalize
        return map_row_blocks(lazy.values, _run_on_block, constant)
    table = as_scores(scores, head.items_)
    mask = _candidate_mask(candidates, len(table), head.classes_)
    if (xp := other_library(table.values)) is not None:
        log_posterior = _run_formula(head, table, xp)
        if mask is not None:
            if isinstance(mask, np.ndarray):
                mask = to_library(mask, xp, table.values)
            log_posterior = xp.where(mask, log_posterior, -np.inf)
        return log_softmax(log_posterior / head.temperature_, xp, 1) if normalize else log_posterior
    result = np.empty((len(table), len(head.classes_)), table.values.dtype)
    for rows in iterate_rows(head, table):
        block = head._full_log_posterior(table._inputs(rows, head), table.kind)
        if normalize:
            allowed = None if mask is None else mask[rows].T
            block = normalize_log_proba(block, allowed, result.dtype, temperature=head.temperature_)
        result[rows] = block.T
    return result


def _run_on_block(block: Array, constant: tuple[Any, tuple[str, ...], Kind, bool, bool]) -> Array:
    head, items, kind, is_plain, normalize = constant
    scores = Scores(block, items, kind)
    if is_plain:
        warn_of_probabilities(scores)
    return run_head(head, scores, normalize=normalize)


# ---- Blocks of inputs


def iterate_rows(head: Any, table: Scores) -> Iterator[slice]:
    """Yield the rows that are computed together on a CPU."""
    return row_blocks(len(table), 1, head._block_rows(table.kind))


# ---- Arrays of other libraries


def _run_formula(head: Any, table: Scores, xp: Library) -> Array:
    """Return the log-posteriors as an array of the library and the device of the scores."""
    values = table.values
    c = _convert_constants(head, values, table.kind, xp)
    cells = int(values.shape[1]) + head._formula_cells(table.kind)
    blocks = list(row_blocks(len(table), cells, ARRAY_CELLS)) or [slice(0, 0)]
    with _full_precision(xp):
        inputs = (table._inputs(rows, head) for rows in blocks)
        parts = [_run_block(head, f, table.kind, c, xp) for f in inputs]
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=0)


def _run_block(head: Any, f: Array, kind: Kind, c: Constants, xp: Library) -> Array:
    if "jax" in xp.__name__:
        # Under its transformations, nothing may depend on values.
        return head._full_formula(f, kind, c, xp, None)
    lost: list[Array] = []
    result = head._full_formula(f, kind, c, xp, lost)
    # How many inputs are lost is known without a look at any value.
    if any(xp.nonzero(where)[0].shape[0] for where in lost):
        return head._full_formula(f, kind, c, xp, None)
    return result


def _full_precision(xp: Library) -> Any:
    """Return a context in which JAX does not round matrix products to TF32 on a GPU."""
    if "jax" not in xp.__name__:
        return nullcontext()
    return sys.modules["jax"].default_matmul_precision("highest")


def _convert_constants(head: Any, values: Array, kind: Kind, xp: Library) -> Constants:
    """Return the constants in the library, precision and device of some scores; kept."""
    # What torch makes in its inference mode has no place in the computation of a gradient.
    mode = getattr(xp, "is_inference_mode_enabled", bool)()
    key = kind, xp.__name__, str(values.dtype), str(device_of(values)), mode
    classes, kept = _CONVERTED.get(head, (None, {}))
    # Another fit makes other constants.
    if classes is not head.classes_:
        _CONVERTED[head] = head.classes_, (kept := {})
    if key in kept:
        return kept[key]
    constants = {
        name: to_library(array, xp, values)
        for name, array in head._full_constants(kind, numpy_dtype(values)).items()
    }
    # What JAX makes inside a transformation is not valid outside.
    if "jax" not in xp.__name__:
        kept[key] = constants
    return constants


# ---- Candidates


def _candidate_mask(candidates: Candidates, n: int, classes: NDArray[Any]) -> Array | None:
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


def _mask_of_names(lists: list[Any], classes: NDArray[Any]) -> NDArray[np.bool_]:
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

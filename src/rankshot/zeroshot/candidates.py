"""The classes that each input may be assigned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import Array, other_library
from rankshot.core.errors import RankshotError, suggest_name

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

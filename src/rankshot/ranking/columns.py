"""What stands beside each ranking: its weight, its kind, its target, source and rater."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.encode import Where, numbered
from rankshot.ranking.errors import RankshotError, shown

Kind = Literal["top", "subset"]
Labels = Sequence[str | None] | NDArray[np.object_] | str | None


Column = NDArray[Any]


def columns_beside(
    n: int,
    targets: Labels = None,
    sources: Labels = None,
    raters: Labels = None,
    weights: ArrayLike | None = None,
    kind: Kind | Sequence[Kind] = "top",
    where: Where = numbered,
) -> tuple[Column, Column, Column, Column, Column]:
    """Return the checked columns of ``n`` rankings: subset, weight, target, source, rater."""
    return (
        _subset_flags(kind, n, where),
        _checked_weights(weights, n, where),
        _label_column(targets, n, "targets", where),
        _label_column(sources, n, "sources", where),
        _label_column(raters, n, "raters", where),
    )


def checked_lengths(k: int | NDArray[np.int64], n: int, n_items: int) -> NDArray[np.int64]:
    """Return K for each of ``n`` rankings, from one number for all or one for each."""
    lengths = np.asarray(k)
    if not np.issubdtype(lengths.dtype, np.integer):
        raise RankshotError(f"k={shown(k)} is not a whole number")
    if lengths.shape not in ((), (n,)):
        raise RankshotError(f"k has shape {lengths.shape} for {n} rankings")
    bad = (lengths < 1) | (lengths > n_items)
    if bad.any():
        row = int(np.argmax(bad))
        where = f"ranking {row}: " if lengths.ndim else ""
        value = lengths[row] if lengths.ndim else k
        raise RankshotError(f"{where}k={value} is not between 1 and the {n_items} items")
    return np.broadcast_to(lengths, n)


def _subset_flags(kind: Kind | Sequence[Kind], n: int, where: Where) -> NDArray[np.bool_]:
    if not isinstance(kind, Iterable):
        raise RankshotError(f"kind must be 'top' or 'subset', or a list of them, not {shown(kind)}")
    kinds = [kind] * n if isinstance(kind, str) else list(kind)
    if len(kinds) != n:
        raise RankshotError(f"kind has {len(kinds)} entries for {n} rankings")
    for row, value in enumerate(kinds):
        if value not in ("top", "subset"):
            raise RankshotError(f"{where(row)}: kind must be 'top' or 'subset', not {shown(value)}")
    return np.fromiter((value == "subset" for value in kinds), bool, n)


def _checked_weights(weights: ArrayLike | None, n: int, where: Where) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n)
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _odd_weight(weights, where) from None
    if values.shape != (n,):
        raise RankshotError(f"weights have shape {values.shape} for {n} rankings")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise RankshotError(
            f"{where(row)}: the weight {values[row]} is not a finite number of 0 or more"
        )
    return values


def _odd_weight(weights: ArrayLike, where: Where) -> RankshotError:
    """Find the weight that is no number."""
    for row, weight in enumerate(weights if isinstance(weights, (list, tuple, np.ndarray)) else []):
        try:
            float(weight)
        except (TypeError, ValueError, OverflowError):
            return RankshotError(f"{where(row)}: the weight {shown(weight)} is not a number")
    return RankshotError(f"weights must be numbers, not {shown(weights)}")


def _label_column(labels: Labels, n: int, what: str, where: Where) -> NDArray[np.object_]:
    column = np.full(n, None, object)
    if labels is None:
        return column
    if isinstance(labels, str):
        column[:] = labels
        return column
    if not isinstance(labels, Iterable):
        raise RankshotError(f"{what} must be text, or a list of text, not {shown(labels)}")
    values = list(labels)
    if len(values) != n:
        raise RankshotError(f"{what} has {len(values)} entries for {n} rankings")
    if not {type(label) for label in values} <= {str, type(None)}:
        for row, label in enumerate(values):
            if label is not None and not isinstance(label, str):
                raise RankshotError(f"{where(row)}: {what[:-1]} must be text, not {shown(label)}")
        values = [None if label is None else str(label) for label in values]
    if "" in values:
        raise RankshotError(
            f"{where(values.index(''))}: {what[:-1]} is empty: name it, or leave it out"
        )
    column[:] = values
    return column


def distinct(labels: NDArray[np.object_]) -> tuple[str, ...]:
    """Return the labels that occur, sorted."""
    return tuple(sorted({label for label in labels if label is not None}))

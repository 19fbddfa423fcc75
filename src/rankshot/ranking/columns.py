"""What stands beside each ranking: its weight, its kind, its target, source and rater."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.encode import Where, numbered
from rankshot.ranking.errors import RankshotError

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


def _subset_flags(kind: Kind | Sequence[Kind], n: int, where: Where) -> NDArray[np.bool_]:
    kinds = [kind] * n if isinstance(kind, str) else list(kind)
    if len(kinds) != n:
        raise RankshotError(f"kind has {len(kinds)} entries for {n} rankings")
    for row, value in enumerate(kinds):
        if value not in ("top", "subset"):
            raise RankshotError(f"{where(row)}: kind must be 'top' or 'subset', not {value!r}")
    return np.fromiter((value == "subset" for value in kinds), bool, n)


def _checked_weights(weights: ArrayLike | None, n: int, where: Where) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n)
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise RankshotError(f"weights must be numbers: {error}") from None
    if values.shape != (n,):
        raise RankshotError(f"weights have shape {values.shape} for {n} rankings")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise RankshotError(
            f"{where(row)}: the weight {values[row]} is not a finite number of 0 or more"
        )
    return values


def _label_column(labels: Labels, n: int, what: str, where: Where) -> NDArray[np.object_]:
    column = np.full(n, None, object)
    if labels is None:
        return column
    if isinstance(labels, str):
        column[:] = labels
        return column
    if len(labels) != n:
        raise RankshotError(f"{what} has {len(labels)} entries for {n} rankings")
    if {type(label) for label in labels} <= {str, type(None)}:
        column[:] = labels
        return column
    for row, label in enumerate(labels):
        if label is not None and not isinstance(label, str):
            raise RankshotError(f"{where(row)}: {what[:-1]} must be text, not {label!r}")
        column[row] = None if label is None else str(label)
    return column


def distinct(labels: NDArray[np.object_]) -> tuple[str, ...]:
    """Return the labels that occur, sorted."""
    return tuple(sorted({label for label in labels if label is not None}))

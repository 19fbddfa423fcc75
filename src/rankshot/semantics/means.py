"""Merging similarity tables of several sources, as the paper's baselines do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.errors import RankshotError
from rankshot.semantics.similarity import Similarity

Floats = NDArray[np.float64]


def arithmetic_mean(tables: Sequence[Similarity]) -> Similarity:
    """Average tables, each scaled to [0, 1]; a cell that a source does not know counts without it.

    Examples
    --------
    >>> import rankshot as rs
    >>> one = rs.Similarity([[0, 1, 2]], ["cat"], ["bus", "fox", "tiger"])
    >>> two = rs.Similarity([[10, 30, 20]], ["cat"], ["bus", "fox", "tiger"])
    >>> rs.arithmetic_mean([one, two]).values
    array([[0.  , 0.75, 0.75]])
    """
    return _merged(tables, "arithmetic mean", lambda scaled: scaled)


def geometric_mean(tables: Sequence[Similarity]) -> Similarity:
    """Take the geometric mean of tables, each scaled to [0, 1].

    Scaling makes the smallest value of every source 0, and one 0 makes the whole mean 0,
    whatever the others say. So a 0 counts as half of that source's smallest positive value:
    less than all it has seen, but no veto.

    Examples
    --------
    >>> import rankshot as rs
    >>> one = rs.Similarity([[0, 1, 2]], ["cat"], ["bus", "fox", "tiger"])
    >>> two = rs.Similarity([[10, 30, 20]], ["cat"], ["bus", "fox", "tiger"])
    >>> rs.geometric_mean([one, two]).values.round(3)
    array([[0.25 , 0.707, 0.707]])
    """
    logged = _merged(tables, "geometric mean", lambda scaled: np.log(_above_zero(scaled)))
    return Similarity(np.exp(logged.values), logged.targets, logged.items, logged.source)


def _above_zero(scaled: Floats) -> Floats:
    positive = scaled[scaled > 0]
    least = positive.min() / 2 if positive.size else 1.0
    return np.where(scaled == 0, least, scaled)


def _merged(
    tables: Sequence[Similarity], name: str, view: Callable[[Floats], Floats]
) -> Similarity:
    if isinstance(tables, Similarity) or not all(isinstance(t, Similarity) for t in tables):
        raise RankshotError(f"the {name} needs a list of Similarity tables")
    if not tables:
        raise RankshotError(f"the {name} needs at least one table")
    first = tables[0]
    views = np.stack(
        [view(table.select(first.targets, first.items).scaled().values) for table in tables]
    )
    known = np.isfinite(views)
    # Summed from the smallest up, so that the order of the sources rounds no tie away.
    total = np.sort(np.where(known, views, 0.0), axis=0).sum(axis=0)
    count = known.sum(axis=0)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return Similarity(mean, first.targets, first.items, source=name)

"""Rankings restricted to some of their items: those named, or those that somebody ranked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankshot.core.validation import as_names
from rankshot.ranking.entries import Entries, row_starts
from rankshot.ranking.matrices import group_by_place, last_levels
from rankshot.ranking.parts import AnyRankings, reduce_parts, require_rankings
from rankshot.ranking.rankings import Rankings

Some = TypeVar("Some", bound=AnyRankings)
"""Rankings, or rankings in parts: the result is of the same type."""


def restrict_items(rankings: Rankings, items: Iterable[Any]) -> Rankings:
    """Return rankings of some of their items; a ranking that lists none of them is left out.

    The remaining items keep their order. Where K cuts a tie that loses items, it is unknown how
    many of the others belong to the first K, and the list ends before the tie.

    Examples
    --------
    >>> r = Rankings.from_orders([["a", ["b", "c"], "d"], ["b"]], items=["a", "b", "c", "d", "e"])
    >>> restrict_items(r, ["a", "c", "d", "e"])
    Rankings: 1 ranking of 4 items
      a > c > d
    """
    require_rankings(rankings)
    names = as_names(items)
    code = {name: i for i, name in enumerate(names)}
    recode = np.array([code.get(name, -1) for name in rankings.items], np.int32)
    codes = recode[rankings.codes]
    kept = codes >= 0
    begin, size, row = group_by_place(rankings)
    group = np.repeat(np.arange(row.size), size)
    left = np.bincount(group[kept], minlength=row.size)
    taken = np.clip(rankings.lengths[row] - begin, 0, size)
    unclear = (taken > 0) & (taken < size) & (left < size)
    counted = np.where(unclear, 0, np.where(taken == size, left, taken))
    # Beyond the cut a top-K list names nothing; a subset ranking keeps its later items.
    kept &= (counted > 0)[group] | rankings.is_subset[row[group]]
    n = len(rankings)
    entry_rows = rankings.entry_rows[kept]
    sizes = np.bincount(entry_rows, minlength=n)
    lengths = np.bincount(row, counted, minlength=n).astype(np.int64)
    # Places are counted again, so that a group that has been removed leaves no gap.
    there = np.bincount(group[kept], minlength=row.size) > 0
    number = np.cumsum(there) - 1
    first_number = np.append(number, 0)[np.searchsorted(row, np.arange(n))]
    first_number += ~np.append(there, True)[np.searchsorted(row, np.arange(n))]
    places = (number[group[kept]] - first_number[entry_rows]).astype(np.int32)
    lists = Entries(codes[kept], places, row_starts(sizes)).sort_ties()
    informative = np.flatnonzero((lengths > 0) & ((sizes > 1) | ~rankings.is_subset))
    lists = lists.take(informative)
    return replace(
        rankings[informative],
        items=names,
        codes=lists.codes,
        places=lists.places,
        starts=lists.starts,
        lengths=lengths[informative],
    )


# ---- Items that somebody ranked


def mark_ranked(rankings: Rankings) -> NDArray[np.bool_]:
    """Return which listed items are ranked: not among those after the first K of a subset ranking.

    All items of a tie that K cuts are ranked.
    """
    ranked: NDArray[np.bool_] = rankings.places <= last_levels(rankings)[rankings.entry_rows]
    return ranked


def find_ranked_items(rankings: AnyRankings) -> NDArray[np.bool_]:
    """Return which of the items some ranking has among its first K."""
    return reduce_parts(rankings, _count_ranked) > 0


def keep_ranked_items(rankings: Some, is_ranked: NDArray[np.bool_] | None = None) -> Some:
    """Leave out the items that no ranking has among its first K. All rankings stay.

    It is unknown whether such an item was compared with anything: a survey may not have shown it.
    A single item is not left alone, because it would no longer be before the others.

    Parameters
    ----------
    is_ranked : ndarray of bool, optional
        The items to keep: those of `find_ranked_items`, and others.

    Examples
    --------
    >>> keep_ranked_items(Rankings.from_orders([["a"], ["c", "a"]], items=["a", "b", "c", "d"]))
    Rankings: 2 rankings of 2 items
      a
      c > a
    """
    is_kept = find_ranked_items(rankings) if is_ranked is None else is_ranked
    if is_kept.all() or is_kept.sum() < 2:
        return rankings
    names = tuple(rankings.items[i] for i in np.flatnonzero(is_kept))
    if isinstance(rankings, Rankings):
        return cast("Some", _drop_items(rankings, is_kept, names))
    return cast("Some", rankings.map_parts(_drop_items, is_kept, names, items=names))


def _count_ranked(rankings: Rankings) -> NDArray[np.int64]:
    return np.bincount(rankings.codes[mark_ranked(rankings)], minlength=rankings.n_items)


def _drop_items(rankings: Rankings, is_kept: NDArray[np.bool_], names: tuple[str, ...]) -> Rankings:
    """Drop items after the first K: no place changes."""
    kept = is_kept[rankings.codes]
    recode = (np.cumsum(is_kept) - 1).astype(np.int32)
    sizes = np.bincount(rankings.entry_rows[kept], minlength=len(rankings))
    return replace(
        rankings,
        items=names,
        codes=recode[rankings.codes[kept]],
        places=rankings.places[kept],
        starts=row_starts(sizes),
    )

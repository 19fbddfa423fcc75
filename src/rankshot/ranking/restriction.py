"""Rankings restricted to some of their items, or to those that compare all items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from rankshot.core.names import as_names
from rankshot.ranking.checks import require_rankings
from rankshot.ranking.encoding import Entries, row_starts
from rankshot.ranking.layouts import group_by_place
from rankshot.ranking.rankings import Rankings


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


def keep_complete(rankings: Rankings) -> Rankings:
    """Return the rankings that compare all items: those that a distance is defined for."""
    return rankings[~rankings.is_subset | (rankings.n_listed == rankings.n_items)]

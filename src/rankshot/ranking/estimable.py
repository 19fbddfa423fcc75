"""Whether the rankings hold enough comparisons for worths to be estimated at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.ranking.blocks import last_levels, levels
from rankshot.ranking.errors import RankshotError, listed
from rankshot.ranking.precedence import precedence
from rankshot.ranking.rankings import Rankings


def require_estimable(rankings: Rankings) -> None:
    """Raise unless the Plackett-Luce maximum-likelihood estimate exists.

    It does exactly when the items cannot be split in two so that none of one part is ever
    placed before one of the other: the graph of "was placed before" is strongly connected
    (Hunter 2004). Usually a few rankings prove it, so they are read in growing portions.
    """
    rankings = _without_cut_ties(rankings[rankings.weights > 0])
    C = rankings.n_items
    before = np.zeros((C, C), bool)
    begin, size = 0, 128
    while begin < len(rankings):
        before |= precedence(rankings[begin : begin + size]) > 0
        count, label = _strong_components(before)
        if count == 1:
            return
        begin, size = begin + size, 2 * size
    if C > 1:
        count, label = _strong_components(before)
        raise RankshotError(_message(before, count, label, rankings.items))


def _strong_components(before: NDArray[np.bool_]) -> tuple[int, NDArray[np.int32]]:
    count, label = connected_components(csr_array(before), connection="strong")
    return int(count), label


def _without_cut_ties(rankings: Rankings) -> Rankings:
    """Drop what stands in a tie that K cuts: it need not have been placed before the rest."""
    table = levels(rankings)
    last = last_levels(rankings)[:, None]
    whole = ((table <= last) & (table >= 0)).sum(axis=1) <= rankings.lengths
    return rankings[whole]


def _message(
    before: NDArray[np.bool_], count: int, label: NDArray[np.int32], items: tuple[str, ...]
) -> str:
    part = np.zeros((len(items), count))
    part[np.arange(len(items)), label] = 1
    between = (part.T @ before @ part) > 0
    np.fill_diagonal(between, val=False)
    parts: list[str] = []
    loses, wins = np.asarray(between.any(axis=0)), np.asarray(between.any(axis=1))
    for ends, text in (
        (wins & ~loses, "never placed after another"),
        (loses & ~wins, "never placed before another"),
        (~wins & ~loses, "never compared with the others"),
    ):
        names = [items[i] for i in np.flatnonzero(ends[label])]
        if names:
            parts.append(f"{text}: {listed(names)}")
    return (
        "the Plackett-Luce maximum-likelihood estimate does not exist: the items fall into "
        f"{count} groups whose worths cannot be compared ({'; '.join(parts)}). "
        "Use regularization > 0, or add rankings that connect them"
    )

"""The places of items in rankings, and their average over all rankings."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.layouts import group_by_place, iterate_blocks
from rankshot.ranking.parts import AnyRankings, reduce_parts
from rankshot.ranking.rankings import Rankings


def average_places(rankings: AnyRankings) -> NDArray[np.float64]:
    """Return the mean place of every item, as a fraction of the ranking's length.

    An item that no ranking lists has 1, which is after all others.
    """
    total, weight, listed = reduce_parts(rankings, _sum_places)
    return np.where(listed > 0, total / np.where(listed > 0, weight, 1.0), 1.0)


def item_weights(rankings: AnyRankings) -> NDArray[np.float64]:
    """Return the weight of the rankings that list each item."""
    return reduce_parts(rankings, _sum_listed)


def _sum_listed(part: Rankings) -> NDArray[np.float64]:
    weights = part.weights[part.entry_rows]
    return np.bincount(part.codes, weights, minlength=part.n_items).astype(float)


class Places(NamedTuple):
    """Places as fractions of the number of items that a ranking compares."""

    listed: NDArray[np.float64]
    left_out: NDArray[np.float64]


def places_of_entries(block: Rankings) -> Places:
    """Return the place of each entry, and of what each top-K ranking leaves out.

    Items that share a place have the mean of the places that they take; the first place of C is
    1/2 of C.
    """
    place = block.places + 0.5
    if block.has_ties:
        begin, size, _ = group_by_place(block)
        place = np.repeat(begin + size / 2, size)
    n_listed = block.n_listed
    n_compared = np.where(block.is_subset, n_listed, block.n_items)
    left_out = (n_listed + n_compared) / 2 / n_compared
    return Places(place / n_compared[block.entry_rows], left_out)


def _sum_places(
    rankings: Rankings,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the weighted sum of the places of each item, and the weights that place and list it.

    The items that a top-K ranking leaves out share a place, so only the listed ones are visited.
    """
    C = rankings.n_items
    total, weight, listed = np.zeros(C), np.zeros(C), np.zeros(C)
    for block in iterate_blocks(rankings, int(rankings.n_listed.max(initial=1))):
        rows, codes, place = block.entry_rows, block.codes, places_of_entries(block)
        of_top = np.where(block.is_subset, 0.0, block.weights)
        own = block.weights[rows]
        shift = own * place.listed - (of_top * place.left_out)[rows]
        total += of_top @ place.left_out + np.bincount(codes, shift, minlength=C)
        listed += np.bincount(codes, own, minlength=C)
        weight += of_top.sum()
        if block.is_subset.any():
            weight += np.bincount(codes, own - of_top[rows], minlength=C)
    return total, weight, listed


def average_order(rankings: AnyRankings) -> tuple[str, ...]:
    """Order the items by their average place; names break ties."""
    return tuple(rankings.items[i] for i in sort_by_average(rankings))


def sort_by_average(rankings: AnyRankings) -> NDArray[np.intp]:
    """Sort the items by average place, then by name: the order of the columns has no effect."""
    average = np.round(average_places(rankings), 12)
    return np.lexsort((np.array(rankings.items), average))

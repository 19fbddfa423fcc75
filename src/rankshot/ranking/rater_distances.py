"""Kendall distances of raters: between two rankings each, and from the majority of the others.

Both are means over pairs of items: 0 for agreement, 1 for disagreement, 1/2 for neither, so that
rankings of different lengths and of different subsets of the items can be compared.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.core.arrays import row_blocks
from rankshot.ranking.matrices import ABSENT, levels
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]


def paired_distances(first: Rankings, second: Rankings) -> Floats:
    """Return the normalised Kendall distance between each ranking and its counterpart.

    It is the mean over the pairs of items that at least one of the two orders: 0 if both have the
    same order, 1 if they have opposite orders, 1/2 if only one of them orders the pair. Equal
    rankings have distance 0, random ones about 1/2. Rankings that differ only in their length stay
    below 1/2.
    """
    a, b = _sign_pairs(levels(first)), _sign_pairs(levels(second))
    either = np.count_nonzero(a | b, axis=(1, 2))
    return np.asarray(np.abs(a - b).sum(axis=(1, 2)) / 2 / either)


def distances_to_majority(rankings: Rankings, least: int) -> Floats:
    """Return how far each ranking is from the majority of the other raters.

    It is the mean over the pairs of items that the ranking orders, and that at least ``least``
    rankings of others compare: 0 if more of them agree than disagree, 1 if more disagree, 1/2 if
    equally many do. Without such a pair it is NaN. Whatever the others say, the mean distance of a
    random ranking is exactly 1/2.
    """
    _, rater = np.unique(rankings.raters.astype(str), return_inverse=True)
    in_order = np.argsort(rater, kind="stable")
    table, sizes = levels(rankings)[in_order], np.bincount(rater)
    ends = np.cumsum(sizes)
    # Blocks of raters, so that all rankings of a rater are in one block.
    blocks = [
        slice(ends[some.start] - sizes[some.start], ends[some.stop - 1])
        for some in row_blocks(len(sizes), int(sizes.max()) * table.shape[1] ** 2)
    ]
    # How many more rankings have item i before j than after it, and how many compare the two.
    margins = sum(_sign_pairs(table[rows]).sum(axis=0, dtype=np.int64) for rows in blocks)
    is_there = (table != ABSENT).astype(np.int8)
    compared = is_there.T.astype(np.float64) @ is_there
    distance = np.empty(len(table))
    for rows in blocks:
        signs = _sign_pairs(table[rows])
        together = is_there[rows, :, None] * is_there[rows, None, :]
        _, begin, own = np.unique(rater[in_order][rows], return_index=True, return_inverse=True)
        theirs, shown = (np.add.reduceat(x, begin, axis=0)[own] for x in (signs, together))
        signs[compared - shown < least] = 0
        agreed = (signs * np.sign(margins - theirs)).sum(axis=(1, 2))
        ordered = np.count_nonzero(signs, axis=(1, 2))
        with np.errstate(invalid="ignore"):
            distance[in_order[rows]] = (1 - agreed / ordered) / 2
    return distance


def _sign_pairs(table: NDArray[np.int32]) -> NDArray[np.int8]:
    """Return s: ``s[r, i, j]`` is 1 if ranking r has i before j, -1 if after, 0 if neither."""
    before = (table[:, :, None] < table[:, None, :]) & (table != ABSENT)[:, :, None]
    signs: NDArray[np.int8] = before.astype(np.int8) - before.transpose(0, 2, 1)
    return signs

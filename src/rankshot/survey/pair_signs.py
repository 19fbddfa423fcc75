"""What answers say of each pair of items: one before the other, after it, or neither."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.blocks import ABSENT, row_blocks

Levels = NDArray[np.int32]
Signs = NDArray[np.int8]
Margins = NDArray[np.int64]


def pair_signs(table: Levels) -> Signs:
    """Return s: ``s[r, i, j]`` is 1 if r has i before j, -1 if after, 0 if neither.

    An item that an answer could not rank is `ABSENT`, and before and after nothing.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.

    Examples
    --------
    >>> pair_signs(np.array([[0, 1, ABSENT]]))[0].tolist()
    [[0, 1, 0], [-1, 0, 0], [0, 0, 0]]
    """
    before = (table[:, :, None] < table[:, None, :]) & (table != ABSENT)[:, :, None]
    signs: Signs = before.astype(np.int8) - before.transpose(0, 2, 1)
    return signs


def margins_of(table: Levels) -> Margins:
    """Return how many more answers have item i before j than after it.

    Parameters
    ----------
    table : ndarray of shape (m, n)
        The level of each item in each answer.

    Examples
    --------
    >>> margins_of(np.array([[0, 1, 1], [0, 1, 2], [1, 0, 2]])).tolist()
    [[0, 1, 3], [-1, 0, 2], [-3, -2, 0]]
    """
    n = table.shape[1]
    margins = np.zeros((n, n), np.int64)
    for rows in row_blocks(len(table), n * n):
        margins += pair_signs(table[rows]).sum(axis=0, dtype=np.int64)
    return margins

"""The order of classes that one-vs-one scores give: by the pairs that each wins."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.floating]


def wins(values: Floats, n_items: int) -> NDArray[np.float64]:
    """Return numbers that order classes by the pairs they win, then by the sum of their scores.

    A pair of score 0 is half a win for each.
    """
    first, second = np.triu_indices(n_items, 1)
    ones, pair = np.ones(first.size), np.arange(first.size)
    cells = np.append(ones, -ones), (np.append(first, second), np.append(pair, pair))
    against_all = csr_array(cells, shape=(n_items, first.size))
    wins = against_all @ np.sign(values).T / 2
    # Rounded, so that the order in which they were added up decides nothing.
    sums = np.round(against_all @ values.T.astype(np.float64), 9)
    # Wins differ by halves at least: sums squeezed into (-1/4, 1/4) only break ties.
    return np.asarray(wins + sums / (4 * (1 + np.abs(sums)))).T

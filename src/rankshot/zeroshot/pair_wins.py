"""One-vs-one scores, class by class: the pairs that each wins, and the sum of its scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.floating]


def wins(values: Floats, n_items: int) -> NDArray[np.float64]:
    """Return numbers that order classes by the pairs they win, then by the sum of their scores.

    A pair of score 0 is half a win for each.
    """
    wins = pair_sums(np.sign(values), n_items) / 2
    # Rounded, so that the order in which they were added up decides nothing.
    sums = np.round(pair_sums(values, n_items), 9)
    # Wins differ by halves at least: sums squeezed into (-1/4, 1/4) only break ties.
    return np.asarray(wins + sums / (4 * (1 + np.abs(sums))))


def pair_sums(values: Floats, n_items: int) -> NDArray[np.float64]:
    """Return Σ_j f_ij for every class i, a row an input."""
    first, second = np.triu_indices(n_items, 1)
    ones, pair = np.ones(first.size), np.arange(first.size)
    cells = np.append(ones, -ones), (np.append(first, second), np.append(pair, pair))
    against_all = csr_array(cells, shape=(n_items, first.size))
    return np.asarray((against_all @ values.T.astype(np.float64)).T)

"""How much each place of a ranking counts: the first say more than the last."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.arguments import require_number
from rankshot.ranking.errors import RankshotError, shown
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.stages import groups_of


def stage_weights(rankings: Rankings, decay: float) -> NDArray[np.float64]:
    """Return the weight r^-decay of the r-th place, a row a ranking; 0 after its end.

    Items of a tie share the mean weight of the places that they take, since nobody knows which
    of them takes which.
    """
    longest = int(rankings.lengths.max(initial=0))
    place = np.arange(longest)
    weights = np.where(place < rankings.lengths[:, None], (1.0 + place) ** -decay, 0.0)
    begin, size, row = groups_of(rankings)
    taken = np.minimum(size, rankings.lengths[row] - begin)
    for first, m, r in zip(begin, taken, row, strict=True):
        if m > 1:
            weights[r, first : first + m] = weights[r, first : first + m].mean()
    return weights


def require_decay(decay: float) -> float:
    """Return how fast the weight of a place falls: 0, not at all, or more."""
    if isinstance(decay, str | bytes | bool | np.bool_):
        raise RankshotError(f"decay must be a number, not {shown(decay)}")
    value = require_number("decay", decay)
    if not 0 <= value < np.inf:
        raise RankshotError(f"decay must be 0 or more, and finite, not {value}")
    return value


def log_chance(rankings: Rankings, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted log-probability of each ranking where all items are alike.

    At each place one is chosen from all that are left.
    """
    compared = np.where(rankings.is_subset, rankings.n_listed, rankings.n_items)
    left = compared[:, None] - np.arange(weights.shape[1])
    return -np.asarray((weights * np.log(np.maximum(left, 1))).sum(axis=1))

"""The stages of a ranking: their weights, and log-probabilities where all scores are equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number
from rankshot.ranking.matrices import group_by_place
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.floating]


class StageLogProb(NamedTuple):
    """The terms of one stage in the log-probabilities of some rankings.

    ``groups`` has the group of each ranking, ``members`` one row per ranking: the items of the
    stage. ``log_prob`` is the log-probability that they come next, with one row per ranking and
    one column per input. ``chance`` is its value where all scores are equal. Both are multiplied
    by ``weight``.
    """

    groups: NDArray[np.intp]
    members: NDArray[np.integer]
    log_prob: Floats
    chance: Floats
    weight: float


def stage_weights(rankings: Rankings, decay: float) -> NDArray[np.float64]:
    """Return the weight r^-decay of the r-th place, one row per ranking; 0 after its end.

    Tied items share the mean weight of the places that they take, because their order is
    unknown.
    """
    longest = int(rankings.lengths.max(initial=0))
    place = np.arange(longest)
    weights = np.where(place < rankings.lengths[:, None], (1.0 + place) ** -decay, 0.0)
    begin, size, row = group_by_place(rankings)
    taken = np.minimum(size, rankings.lengths[row] - begin)
    for first, m, r in zip(begin, taken, row, strict=True):
        if m > 1:
            weights[r, first : first + m] = weights[r, first : first + m].mean()
    return weights


def require_decay(decay: float) -> float:
    """Return the decay of the weights as a float; it must be finite and not negative."""
    if isinstance(decay, str | bytes | bool | np.bool_):
        raise RankshotError(f"decay must be a number, not {short_repr(decay)}")
    return require_number("decay", decay, least=0, below=np.inf)


def log_chance(rankings: Rankings, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted log-probability of each ranking where all scores are equal.

    At each place, one of the remaining items is chosen uniformly.
    """
    compared = np.where(rankings.is_subset, rankings.n_listed, rankings.n_items)
    left = compared[:, None] - np.arange(weights.shape[1])
    return -np.asarray((weights * np.log(np.maximum(left, 1))).sum(axis=1))

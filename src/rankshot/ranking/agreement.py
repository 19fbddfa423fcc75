"""How far rankings agree with one another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.arguments import require_one_subject
from rankshot.ranking.blocks import ABSENT, levels, row_blocks
from rankshot.ranking.distances import kendall_distance
from rankshot.ranking.errors import RankshotError
from rankshot.ranking.mean_places import mean_places
from rankshot.ranking.rankings import Rankings


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of several rankings.

    Attributes
    ----------
    concordance : float
        Kendall's W: 1 if all rankings are the same, near 0 if they have nothing in common.
    mean_distance : float
        Mean Kendall distance between two different rankings.
    distance_to_others : ndarray
        For each ranking, its mean distance to the others: the largest disagrees most.
    """

    concordance: float
    mean_distance: float
    distance_to_others: NDArray[np.float64]


def agreement(rankings: Rankings) -> Agreement:
    """Measure how far rankings of the same thing agree.

    A ranking of weight w counts as w rankings. What a top-K list leaves out shares the mean of
    the places left, and the ties are corrected for in Kendall's W.

    Examples
    --------
    >>> import rankshot as rs
    >>> raters = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a", "b", "c"], ["a", "c", "b"]], items=["a", "b", "c"])
    >>> found = rs.agreement(raters)
    >>> round(found.concordance, 3), round(found.mean_distance, 3)
    (0.778, 0.667)
    >>> found.distance_to_others
    array([0.5, 0.5, 1. ])
    """
    require_one_subject(rankings)
    weights = rankings.weights
    total = float(weights.sum())
    if not total > weights.max():
        raise RankshotError("agreement needs at least two rankings of positive weight")
    distance = kendall_distance(rankings)
    to_all = distance @ weights
    others = total - np.minimum(weights, 1)
    # A weight above 1 stands for equal rankings, which are at distance 0 of one another.
    pairs = total**2 - float(np.minimum(weights, 1) @ weights)
    mean = float(weights @ to_all) / pairs
    return Agreement(concordance(rankings), mean, to_all / others)


def concordance(rankings: Rankings) -> float:
    r"""Return Kendall's W = 12 S / (m² (C³ - C) - m ΣT), corrected for ties.

    S is the sum of squared deviations of the items' total places from their mean, m the number
    of rankings, and T = Σ (t³ - t) over the ties of each. It is 1 where nothing is ordered.
    """
    C = rankings.n_items
    places, ties = np.zeros(C), 0.0
    for rows in row_blocks(len(rankings), C):
        block = rankings[rows]
        table = levels(block)
        if np.any(table == ABSENT):
            raise RankshotError("concordance is not defined for rankings of different items")
        places += block.weights @ mean_places(table)
        cells = np.arange(len(block))[:, None] * (C + 1) + table
        sizes = np.bincount(cells.ravel(), minlength=len(block) * (C + 1)).reshape(-1, C + 1)
        ties += float(block.weights @ (sizes.astype(float) ** 3 - sizes).sum(axis=1))
    m = float(rankings.weights.sum())
    spread = float(((places - places.mean()) ** 2).sum())
    most = m**2 * (C**3 - C) - m * ties
    return 12 * spread / most if most > 0 else 1.0

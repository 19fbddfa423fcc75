"""The rankings of every target in brief: their consensus, and who disagrees with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.ranking.agreement import concordance
from rankshot.ranking.arguments import require_rankings
from rankshot.ranking.errors import RankshotError, shown
from rankshot.ranking.mean_distance import mean_kendall_distance
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.restriction import of_all_items

MOST_COMPARED = 10
"""By default so many places are compared, or fewer where lists are shorter."""


@dataclass(frozen=True, eq=False)
class TargetSummary:
    """The rankings of one target in brief.

    Distances are Kendall's, of the first k, as shares of the largest possible: 0 is agreement,
    1 is the opposite order. Where items tie they are means over what the ties allow.

    Attributes
    ----------
    target : str or None
        None where the rankings name no target.
    n_rankings : int
    model : PlackettLuce, Mallows or BabingtonSmith
        Fitted to them.
    order : tuple
        Its mode, cut to k; a tie is a tuple inside it.
    k : int
    concordance : float or None
        Kendall's W of the first k; None for a single ranking, or rankings of subsets.
    mean_distance : float or None
        Mean distance between two of the rankings.
    disagreement : tuple of (str, float)
        Raters (or sources, of rankings without a rater), and their mean distance to the
        consensus; the largest first.
    """

    target: str | None
    n_rankings: int
    model: Any
    order: tuple[Any, ...]
    k: int
    concordance: float | None
    mean_distance: float | None
    disagreement: tuple[tuple[str, float], ...]


def summarize(
    rankings: Rankings, model: Any | None = None, k: int | None = None
) -> list[TargetSummary]:
    """Sum up the rankings of every target.

    Parameters
    ----------
    rankings : Rankings
        If none names a target, all are taken to be of one.
    model : PlackettLuce, Mallows or BabingtonSmith, optional
        Merges them; by default `PlackettLuce`. A copy is fitted to each target.
    k : int, optional
        How many places are compared; by default 10, or the median length of the target's lists.
        What a shorter list leaves out is tied after it.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["leopard", "tiger"], ["fox", "leopard"]],
    ...     items=["bus", "fox", "leopard", "tiger"], targets="cat", raters=["ann", "bob", "cy"])
    >>> brief = rs.summarize(votes)[0]
    >>> brief.order, round(brief.concordance, 2), brief.disagreement[0]
    (('leopard', 'tiger'), 0.53, ('cy', 0.6))
    """
    require_rankings(rankings)
    rankings = rankings[rankings.weights > 0]
    if len(rankings) == 0:
        raise RankshotError("there are no rankings to sum up (or all have weight 0)")
    model = PlackettLuce() if model is None else model
    named: Mapping[Any, Rankings] = rankings.by_target() or {None: rankings}
    if sum(map(len, named.values())) < len(rankings):
        row = int(np.argmax([target is None for target in rankings.targets]))
        raise RankshotError(f"ranking {row} has no target, but others have")
    return [_summary(target, theirs, clone(model), k) for target, theirs in named.items()]


def _summary(target: str | None, rankings: Rankings, model: Any, k: int | None) -> TargetSummary:
    model.fit(rankings)
    # Not the shortest: one person who stops after the first item would cut everybody to one.
    usual = int(np.median(rankings.lengths))
    k = min(MOST_COMPARED, usual) if k is None else k
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= rankings.n_items:
        raise RankshotError(f"k must be between 1 and the {rankings.n_items} items, not {shown(k)}")
    consensus = Rankings.from_orders([model.mode_], items=rankings.items).top(k)
    whole = of_all_items(rankings)
    first = whole.top(np.minimum(whole.lengths, k))
    several = len(first) > 1
    return TargetSummary(
        target,
        len(rankings),
        model,
        tuple(tuple(x) if isinstance(x, list) else x for x in consensus.orders()[0]),
        k,
        concordance(first) if several else None,
        _mean_distance(first, k) if several else None,
        disagreement(rankings, consensus),
    )


def disagreement(rankings: Rankings, consensus: Rankings) -> tuple[tuple[str, float], ...]:
    """Return raters and their mean distance to a consensus, the largest first.

    A ranking without a rater counts for its source. Subsets, which have no distance, and
    rankings of which nobody knows where they come from, are left out.

    Parameters
    ----------
    rankings : Rankings
    consensus : Rankings
        One, over the same items. Each ranking is compared as far as both go.
    """
    whole = of_all_items(rankings)
    origin = [rater or source for rater, source in zip(whole.raters, whole.sources, strict=True)]
    labels: NDArray[Any] = np.array(origin, object)
    k = np.minimum(whole.lengths, consensus.lengths[0])
    distance = np.empty(len(whole))
    for length in np.unique(k).tolist():
        rows = k == length
        far = _largest_distance(whole.n_items, length)
        distance[rows] = mean_kendall_distance(whole[rows], consensus, length)[:, 0] / far
    means = {
        name: float(np.average(distance[labels == name], weights=whole.weights[labels == name]))
        for name in {label for label in origin if label is not None}
    }
    return tuple(sorted(means.items(), key=lambda pair: (-pair[1], pair[0])))


def _mean_distance(rankings: Rankings, k: int) -> float:
    """Return the weighted mean distance between two different rankings."""
    distance = mean_kendall_distance(rankings, k=k) / _largest_distance(rankings.n_items, k)
    weights = np.outer(rankings.weights, rankings.weights)
    np.fill_diagonal(weights, 0)
    return float(np.average(distance, weights=weights))


def _largest_distance(n_items: int, k: int) -> float:
    """Return how many pairs of items a top-k list puts in order: all of them can be reversed."""
    return max(k * (2 * n_items - k - 1) / 2, 1.0)

"""How much rankings agree: Kendall's W, distances, and a summary for every target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_whole_number
from rankshot.ranking.checks import require_one_subject, require_rankings
from rankshot.ranking.distances import kendall_distance
from rankshot.ranking.layouts import ABSENT, last_levels, levels, mean_places
from rankshot.ranking.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.restriction import keep_complete, restrict_items
from rankshot.ranking.shared_places import compare_common_items

DEFAULT_K = 10
"""The number of places of each ranking that count, by default; in zero-shot heads as well."""


@dataclass(frozen=True, eq=False)
class Agreement:
    """The agreement of several rankings.

    Attributes
    ----------
    concordance : float
        Kendall's W: 1 if all rankings are equal, near 0 if they are unrelated.
    mean_distance : float
        Mean Kendall distance between two different rankings.
    distance_to_others : ndarray
        For each ranking, its mean distance to the others: the largest disagrees most.
    """

    concordance: float
    mean_distance: float
    distance_to_others: NDArray[np.float64]


def agreement(rankings: Rankings) -> Agreement:
    """Measure how much rankings of the same target agree.

    A ranking of weight w counts as w rankings. The items that a top-K list leaves out share the
    mean of the remaining places, and Kendall's W is corrected for ties.

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
    # A weight above 1 stands for equal rankings, whose distance is 0.
    pairs = total**2 - float(np.minimum(weights, 1) @ weights)
    mean = float(weights @ to_all) / pairs
    return Agreement(concordance(rankings), mean, to_all / others)


def concordance(rankings: Rankings) -> float:
    r"""Return Kendall's W = 12 S / (m² (C³ - C) - m ΣT), corrected for ties.

    S is the sum of squared deviations of the items' total places from their mean, m the number
    of rankings, and T = Σ (t³ - t) over the ties of each. W is 1 if no ranking orders anything.
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
    deviation = float(((places - places.mean()) ** 2).sum())
    most = m**2 * (C**3 - C) - m * ties
    return 12 * deviation / most if most > 0 else 1.0


# ---- Summaries: the consensus of every target, and who disagrees with it


@dataclass(frozen=True, eq=False)
class TargetSummary:
    """A summary of the rankings of one target.

    Distances are those of `compare_common_items`, of the first k places: 0 is agreement, 1 is the
    opposite order. With ties they are means over the orders that the ties allow.

    Attributes
    ----------
    target : str or None
        None if the rankings name no target.
    n_rankings : int
    model : PlackettLuce, Mallows, BabingtonSmith or None
        The model, fitted to the first k places of the rankings.
    order : tuple
        The first k places of the consensus (`merge_rankings`); a tie is a tuple inside it.
    k : int
        How many places count, at most the length of the longest ranking.
    concordance : float or None
        Kendall's W of the first k, of the rankings that compare all items; None for fewer than two.
    mean_distance : float or None
        Mean distance between two of the rankings; None for a single one.
    disagreement : tuple of (str, float)
        Raters (or sources, for rankings without a rater), and their mean distance to the
        consensus, the largest first. Empty for a single ranking, which is its own consensus.
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
    rankings: Rankings, model: Any | None = None, k: int | None = DEFAULT_K
) -> list[TargetSummary]:
    """Summarize the rankings of every target.

    The consensus is the one that a zero-shot head with the same ``k`` and prior uses.

    Parameters
    ----------
    rankings : Rankings
        If no ranking names a target, all are taken as rankings of one target.
    model : PlackettLuce, Mallows or BabingtonSmith, optional
        The model that merges the rankings; `PlackettLuce` by default. A copy is fitted to each
        target.
    k : int or None
        The number of places of each ranking that count; all for None. In distances, a shorter list
        is compared as far as it goes.

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
        raise RankshotError("there are no rankings to summarize (or all have weight 0)")
    model = PlackettLuce() if model is None else model
    if k is not None:
        rankings = rankings.top(min(require_whole_number("k", k), rankings.n_items))
    named: Mapping[Any, Rankings] = rankings.by_target() or {None: rankings}
    if sum(map(len, named.values())) < len(rankings):
        row = int(np.argmax([target is None for target in rankings.targets]))
        raise RankshotError(f"ranking {row} has no target, but others have")
    summaries = []
    for target, theirs in named.items():
        fitted = clone(model).fit(theirs)
        consensus = merge_rankings(theirs, fitted)
        length = int(consensus.lengths[0])
        summaries.append(summarize_target(target, theirs, consensus, length, model=fitted))
    return summaries


def merge_rankings(rankings: Rankings, model: Any) -> Rankings:
    """Return the consensus of the rankings of one target: the mode of the model fitted to them.

    It is as long as the longest of them: nothing is known of later places. Items that no ranking
    compares are left out: then the consensus is a subset ranking. A single ranking, with its ties
    and its kind, is its own consensus.
    """
    if len(rankings) == 1:
        return rankings
    mode = Rankings.from_orders(
        [model.mode_], items=rankings.items, targets=rankings.targets[:1].tolist()
    )
    compared = np.unique(rankings.codes)
    if rankings.is_subset.all() and compared.size < rankings.n_items:
        among = restrict_items(mode, [rankings.items[i] for i in compared])
        mode = replace(among.change_items(rankings.items), is_subset=np.array([True]))
    return mode.top(int(rankings.lengths.max()))


def summarize_target(
    target: str | None,
    rankings: Rankings,
    consensus: Rankings,
    k: int,
    *,
    model: Any = None,
    labels: NDArray[Any] | None = None,
) -> TargetSummary:
    """Summarize the rankings of one target around a consensus of them.

    ``labels``, if given, are those of `TargetSummary.disagreement`, one per ranking.
    """
    order = [tuple(x) if isinstance(x, list) else x for x in consensus.orders()[0]]
    # The later items of a subset ranking are tied after its first k places.
    n_places = int(last_levels(consensus)[0]) + 1
    whole = keep_complete(rankings).top(min(k, rankings.n_items))
    several = len(rankings) > 1
    labels = find_origins(rankings) if labels is None else labels
    return TargetSummary(
        target,
        len(rankings),
        model,
        tuple(order[:n_places]),
        min(k, int(consensus.lengths[0])),
        concordance(whole) if len(whole) > 1 else None,
        _mean_of_pairs(rankings, k) if several else None,
        _mean_by_label(labels, rankings, consensus, k) if several else (),
    )


def find_origins(rankings: Rankings) -> NDArray[np.object_]:
    """Return the rater of each ranking, or its source if it has no rater."""
    pairs = zip(rankings.raters, rankings.sources, strict=True)
    return np.array([rater or source for rater, source in pairs], object)


def _mean_of_pairs(rankings: Rankings, k: int) -> float | None:
    """Return the weighted mean distance between two different rankings."""
    distance = compare_common_items(rankings, k=k)
    weights = np.outer(rankings.weights, rankings.weights)
    np.fill_diagonal(weights, 0)
    weights[np.isnan(distance)] = 0
    return float(np.average(np.nan_to_num(distance), weights=weights)) if weights.any() else None


def _mean_by_label(
    labels: NDArray[Any], rankings: Rankings, consensus: Rankings, k: int
) -> tuple[tuple[str, float], ...]:
    """Return labels and the mean distance of their rankings to the consensus, largest first."""
    distance = compare_common_items(rankings, consensus, k)[:, 0]
    means = {}
    for name in {label for label in labels if label is not None}:
        theirs = (labels == name) & ~np.isnan(distance)
        if theirs.any():
            means[name] = float(np.average(distance[theirs], weights=rankings.weights[theirs]))
    return tuple(sorted(means.items(), key=lambda pair: (-pair[1], pair[0])))

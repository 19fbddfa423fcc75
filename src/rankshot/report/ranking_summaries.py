"""What a report says of the rankings: the consensus of each class, the sources, and a map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.agreement import (
    TargetSummary,
    find_origins,
    keep_first_places,
    summarize_target,
)
from rankshot.ranking.maps import MAX_RANKINGS, place_rankings
from rankshot.ranking.mean_distances import compare_common_items
from rankshot.ranking.rankings import Rankings
from rankshot.report.contents import ClassMap, SourceLine, SourceTable

Floats = NDArray[np.float64]
MAX_SOURCES = 12
"""Sources in the table that compares each of them with each other."""


def summarize_rankings(
    rankings: Rankings, consensus: Rankings, k: int, *, by_source: bool = False
) -> tuple[TargetSummary, ...]:
    """Summarize the rankings of each target around a consensus that is given.

    Parameters
    ----------
    rankings : Rankings
    consensus : Rankings
        One ranking per target, such as ``consensus_`` of a head.
    k : int
        How many places are compared.
    by_source : bool
        Whether the distances to the consensus are those of sources; by default those of raters,
        or of the source of a ranking without a rater.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import summarize_rankings
    >>> votes = rs.Rankings.from_orders(
    ...     [["lion", "fox"], ["fox", "lion"], ["lion", "bus"]], items=["bus", "fox", "lion"],
    ...     targets="cat", raters=["ann", "bob", "cy"])
    >>> head = rs.ProbabilisticRanking(k=2, posterior="consensus").fit(votes)
    >>> brief = summarize_rankings(votes, head.consensus_, k=2)[0]
    >>> brief.order, brief.disagreement[0]
    (('lion', 'fox'), ('bob', 0.3333333333333333))
    """
    return tuple(
        summarize_target(
            target,
            theirs,
            consensus.select(target=target),
            k,
            labels=theirs.sources if by_source else None,
        )
        for target, theirs in rankings.by_target().items()
    )


# ---- Sources


def compare_sources(rankings: Rankings, consensus: Rankings, k: int) -> SourceTable | None:
    """Compare the sources with the consensus and with each other, by the rankings of each target.

    If there is one source, its raters are compared. The result is None if there are fewer than
    two.

    Parameters
    ----------
    rankings : Rankings
        The rankings of all sources.
    consensus : Rankings
        One ranking per target.
    k : int
        How many places of each ranking are compared.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import compare_sources
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "fox", "cat"], ["bus", "cat"]],
    ...     items=["bus", "cat", "fox"], targets=["dog", "dog", "car", "car"],
    ...     sources=["wordnet", "glove", "wordnet", "glove"])
    >>> head = rs.ProbabilisticRanking(posterior="consensus").fit(rankings)
    >>> table = compare_sources(rankings, head.consensus_, k=2)
    >>> [(line.name, round(line.to_consensus, 2)) for line in table.lines]
    [('glove', 0.33), ('wordnet', 0.33)]
    """
    labels = rankings.sources if len(rankings.source_names) > 1 else find_origins(rankings)
    counts = {name: int((labels == name).sum()) for name in {*labels} - {None}}
    names = sorted(sorted(counts, key=lambda name: (-counts[name], name))[:MAX_SOURCES])
    if len(names) < 2:
        return None
    member = (labels[:, None] == np.array(names, object)).astype(float)
    sums, numbers = np.zeros((2, len(names), len(names)))
    to_consensus = np.full(len(rankings), np.nan)
    for target in rankings.target_names:
        rows = np.flatnonzero(rankings.targets == target)
        first, center = keep_first_places(rankings[rows], consensus.select(target=target), k)
        distance = compare_common_items(first, k=k)
        np.fill_diagonal(distance, np.nan)
        there = ~np.isnan(distance)
        sums += member[rows].T @ np.where(there, distance, 0) @ member[rows]
        numbers += member[rows].T @ there @ member[rows]
        to_consensus[rows] = compare_common_items(first, center, k)[:, 0]
    means = np.divide(sums, numbers, out=np.full(sums.shape, np.nan), where=numbers > 0)
    compared = np.where(rankings.is_subset, rankings.n_listed, rankings.n_items)
    lines = [
        SourceLine(
            str(name),
            counts[name],
            int(compared[labels == name].min()),
            _mean_or_nan(to_consensus[labels == name]),
            tuple(row),
        )
        for name, row in zip(names, means.tolist(), strict=True)
    ]
    return SourceTable(tuple(lines), rankings.n_items, k)


def _mean_or_nan(values: Floats) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else float("nan")


# ---- Map


def map_rankings(rankings: Rankings, k: int) -> ClassMap | None:
    """Place every ranking on a map by Kendall's distance of the first k places.

    The groups are the targets. The result is None if there are fewer than three rankings.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import map_rankings
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "fox", "cat"]],
    ...     targets=["dog", "wolf", "car"])
    >>> found = map_rankings(rankings, k=3)
    >>> found.groups, len(found.x)
    (('dog', 'wolf', 'car'), 3)
    """
    drawn = rankings[:MAX_RANKINGS]
    if len(drawn) < 3 or not drawn.target_names:
        return None
    places, k, apart = place_rankings(drawn, k)
    first = f"the first {k} places" if k > 1 else "the first place"
    how = (
        f"Each mark is one ranking. The map shows Kendall’s distances between {first} of the "
        "rankings, by classical multidimensional scaling."
    )
    caption = [how]
    if np.any(drawn.is_subset & (drawn.n_listed < drawn.n_items)):
        caption.append(
            "Rankings that know only some of the seen classes are compared with the others on "
            "these."
        )
    if apart:
        caption.append(
            f"{apart:,} pairs of rankings have no two seen classes in common, and are placed as "
            "if they had opposite orders."
        )
    if len(drawn) < len(rankings):
        caption.append(f"Only the first {len(drawn):,} of {len(rankings):,} rankings are shown.")
    return ClassMap(
        tuple(str(origin or "") for origin in find_origins(drawn)),
        tuple(map(str, drawn.targets)),
        tuple(places[:, 0].tolist()),
        tuple(places[:, 1].tolist()),
        " ".join(caption),
    )

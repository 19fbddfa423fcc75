"""What a report says about the rankings: the consensus of each class, and similar classes.

The template does no arithmetic: all texts and lengths of bars are computed here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import TargetSummary, summarize_target
from rankshot.report.contents import SimilarClasses
from rankshot.report.formatting import PairLine
from rankshot.zeroshot.metrics import find_lowest_pairs, format_share

MAX_SUMMARIES = 40
MAX_PLACES = 12
MAX_SIMILAR = 10
MAX_COMPARED = 1000
"""Classes of which every pair is compared."""


# ---- Consensus


def summarize_rankings(
    rankings: Rankings, consensus: Rankings, k: int
) -> tuple[TargetSummary, ...]:
    """Summarise the rankings of each target around a consensus that is given.

    Parameters
    ----------
    rankings : Rankings
    consensus : Rankings
        One ranking per target, such as ``consensus_`` of a head.
    k : int
        How many places are compared.

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
        summarize_target(target, theirs, consensus.select(target=target), k)
        for target, theirs in rankings.by_target().items()
    )


def format_consensus(summaries: Sequence[TargetSummary]) -> dict[str, object]:
    """Return the summaries, and a note if some are left out."""
    selected, note = summaries, ""
    if len(summaries) > MAX_SUMMARIES:
        measured = [summary for summary in summaries if summary.concordance is not None]
        measured.sort(key=lambda summary: (summary.concordance, summary.target))
        which = "with the lowest agreement " if measured else ""
        selected = (measured or summaries)[:MAX_SUMMARIES]
        note = f"Only {len(selected)} of {len(summaries):,} classes {which}are shown."
    return {"summaries": [_format_summary(one) for one in selected], "note": note}


def _format_summary(summary: TargetSummary) -> dict[str, object]:
    groups = [place if isinstance(place, tuple) else (place,) for place in summary.order]
    # A tie of two items in the second place is followed by the fourth place.
    numbers = np.cumsum([1, *(len(group) for group in groups)]).tolist()
    W, distance = summary.concordance, summary.mean_distance
    return {
        "target": summary.target or "(all)",
        "places": list(zip(numbers, groups[:MAX_PLACES], strict=False)),
        "more_places": max(len(groups) - MAX_PLACES, 0),
        "concordance": "" if W is None else format_share(W),
        "concordance_length": W or 0.0,
        "mean_distance": "" if distance is None else format_share(distance),
    }


# ---- Classes that are alike


def find_similar_classes(consensus: Rankings, k: int) -> SimilarClasses | None:
    """Find the pairs of targets with the smallest distances between the first k places.

    The result is None if no two targets have anything in common. Of more than 1,000 targets, the
    first 1,000 are compared.

    Parameters
    ----------
    consensus : Rankings
        One ranking per target.
    k : int
        How many places are compared.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.report import find_similar_classes
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "cat", "fox"]],
    ...     targets=["dog", "wolf", "car"])
    >>> found = find_similar_classes(rankings, k=3)
    >>> [(*names, round(distance, 2)) for *names, distance in found.pairs]
    [('dog', 'wolf', 0.33), ('car', 'wolf', 0.67)]
    """
    compared = consensus[:MAX_COMPARED]
    names = [str(name) for name in compared.targets]
    distance = compare_common_items(compared, k=k)
    # The order inside a tie is unknown, so a ranking with ties has a distance from itself.
    own = distance.diagonal()
    excess = np.maximum(distance - (own[:, None] + own) / 2, 0.0)
    distance = np.where(distance < 1, excess, distance)
    pairs = tuple(
        (names[i], names[j], float(distance[i, j]))
        for i, j in find_lowest_pairs(distance, names)[:MAX_SIMILAR]
        # At distance 1, two classes have nothing in common.
        if distance[i, j] < 1
    )
    return SimilarClasses(pairs, len(compared), len(consensus), k) if pairs else None


def format_similar_classes(found: SimilarClasses) -> dict[str, object]:
    """Return the pairs, and a note if some classes were not compared."""
    note = ""
    if found.n_compared < found.n_classes:
        note = f"Only the first {found.n_compared:,} of {found.n_classes:,} classes were compared."
    pairs = [PairLine(a, b, format_share(far), "", far) for a, b, far in found.pairs]
    return {"pairs": pairs, "k": found.k, "note": note}

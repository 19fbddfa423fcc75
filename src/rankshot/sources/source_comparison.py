"""Whether sources of rankings agree with one another: the paper's Result 1."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from rankshot.core.errors import RankshotError
from rankshot.ranking.distances import kendall_distance
from rankshot.ranking.parts import require_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity

Floats = NDArray[np.float64]
TOLERANCE = 1e-9
"""Relative differences below this count as ties, so that rounding does not decide."""


@dataclass(frozen=True, eq=False)
class SourceAgreement:
    """How well sources agree about the same targets.

    Attributes
    ----------
    sources : tuple of str
        The names of the sources.
    distances : ndarray of shape (sources, sources)
        Mean Kendall distance between the rankings of the same target by two sources; on the
        diagonal, between different rankings by one source. NaN where they share no target.
    accuracy : float
        How often the nearest other ranking has the same target: the leave-one-out accuracy of a
        nearest-neighbour classifier.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "fox", "cat"], ["bus", "cat"]],
    ...     items=["bus", "cat", "fox"], targets=["dog", "dog", "car", "car"],
    ...     sources=["wordnet", "glove", "wordnet", "glove"])
    >>> found = rs.sources.source_agreement(rankings)
    >>> found.sources, found.accuracy
    (('glove', 'wordnet'), 1.0)
    """

    sources: tuple[str, ...]
    distances: Floats
    accuracy: float


def source_agreement(rankings: Rankings, k: int | None = None) -> SourceAgreement:
    """Compare the sources of rankings, by the Kendall distance between their first ``k`` items.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["fox", "cat", "bus"], ["cat", "fox", "bus"], ["bus", "fox", "cat"], ["bus", "cat"]],
    ...     items=["bus", "cat", "fox"], targets=["dog", "dog", "car", "car"],
    ...     sources=["wordnet", "glove", "wordnet", "glove"])
    >>> found = rs.sources.source_agreement(rankings)
    >>> found.sources, float(found.distances[0, 1]), found.accuracy
    (('glove', 'wordnet'), 1.0, 1.0)
    """
    require_rankings(rankings)
    if len(rankings.target_names) == 0 or len(rankings.source_names) == 0:
        raise RankshotError("rankings must have targets and sources, to compare their sources")
    distance = kendall_distance(rankings, k=k)
    sources, targets = rankings.source_names, rankings.targets
    same_target = (targets[:, None] == targets) & ~np.eye(len(rankings), dtype=bool)
    means = np.full((len(sources), len(sources)), np.nan)
    for i, one in enumerate(sources):
        for j, other in enumerate(sources):
            pairs = same_target & np.outer(rankings.sources == one, rankings.sources == other)
            if pairs.any():
                means[i, j] = distance[pairs].mean()
    accuracy = float(nearest_is_correct(distance, targets).mean())
    return SourceAgreement(sources, means, accuracy)


def similarity_accuracy(tables: Sequence[Similarity], *, normalized: bool = False) -> float:
    """Return the nearest-neighbour accuracy of similarity values, by Euclidean distance.

    The rows of all tables are the points and their targets are the classes. ``normalized``
    divides every row by the sum of its absolute values first, as the paper does. Compare the
    result with `source_agreement`, which uses only the order of the values.

    Examples
    --------
    >>> import rankshot as rs
    >>> one = rs.Similarity([[.9, .1], [.2, .7]], ["cat", "car"], ["fox", "bus"])
    >>> two = rs.Similarity([[.8, .3], [.1, .9]], ["cat", "car"], ["fox", "bus"])
    >>> rs.sources.similarity_accuracy([one, two])
    1.0
    """
    if len(tables) < 2:
        raise RankshotError("at least two tables are needed to compare sources")
    first = tables[0]
    rows = np.concatenate([table.select(first.targets, first.items).values for table in tables])
    if not np.isfinite(rows).all():
        row, column = np.argwhere(~np.isfinite(rows))[0]
        target, item = first.targets[row % len(first.targets)], first.items[column]
        raise RankshotError(
            f"some similarities are unknown, for example that of {target!r} and {item!r}"
        )
    if normalized:
        rows = rows / np.maximum(np.abs(rows).sum(axis=1, keepdims=True), np.finfo(float).tiny)
    distance = cdist(rows, rows)
    labels = np.array(first.targets * len(tables), dtype=object)
    return float(nearest_is_correct(distance, labels).mean())


def nearest_is_correct(distance: Floats, labels: NDArray[Any]) -> Floats:
    """Return for each point whether the nearest other point has the same label: 1 or 0.

    Where several points are equally near, it is the share of them with the same label.

    Examples
    --------
    >>> places = np.array([0.0, 1.0, 2.0, 9.0])
    >>> distance = np.abs(places[:, None] - places)
    >>> nearest_is_correct(distance, np.array(["cat", "cat", "dog", "dog"]))
    array([1. , 0.5, 0. , 1. ])
    """
    others = distance.copy()
    np.fill_diagonal(others, np.inf)
    nearest = others <= others.min(axis=1, keepdims=True) * (1 + TOLERANCE)
    correct = nearest & (labels[:, None] == labels)
    return np.asarray(correct.sum(axis=1) / nearest.sum(axis=1))

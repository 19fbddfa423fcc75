"""Maps of rankings: points in the plane whose distances are about those of the rankings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import ClassicalMDS

from rankshot.ranking.mean_distances import compare_common_items
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
MAX_RANKINGS = 1000
"""A map shows at most this many rankings, because it needs the distance of every pair."""
MAX_GROUPS = 40
"""Groups with a mark and a label of their own on a map."""


def place_points(distances: Floats) -> Floats:
    """Place points in the plane, by classical scaling, at nearly the given distances.

    The farthest point on each axis has a positive coordinate. An axis that the distances do not
    need is 0: scikit-learn takes the root of an eigenvalue that may be negative there.
    """
    with np.errstate(invalid="ignore"):
        points = ClassicalMDS(metric="precomputed").fit_transform(distances)
    return np.asarray(np.nan_to_num(points))


class RankingMap(NamedTuple):
    """The places of rankings on a map, and what a caption needs.

    ``k`` places of each ranking were compared; ``n_apart`` pairs have no two items in common.
    """

    places: Floats
    k: int
    n_apart: int


def place_rankings(rankings: Rankings, k: int | None = None) -> RankingMap:
    """Place rankings on a map, by Kendall's distance of their first ``k`` places.

    Parameters
    ----------
    rankings : Rankings
        At most `MAX_RANKINGS`. Subset rankings are compared on the items that both compare; two
        rankings without two common items are placed as if they had opposite orders.
    k : int, optional
        At most the length of the shortest ranking, which is the default.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.ranking.maps import place_rankings
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["a", "b"], ["b", "a"]])
    >>> place_rankings(votes).places[:, 0].round(2).tolist()
    [-0.33, -0.33, 0.67]
    """
    shortest = int(rankings.lengths.min())
    k = shortest if k is None else min(k, shortest)
    distances = compare_common_items(rankings, k=k)
    apart = np.isnan(distances)
    distances[apart] = 1
    # The mean distance of a ranking with ties to itself is positive; that of a point is 0.
    np.fill_diagonal(distances, 0)
    return RankingMap(place_points(distances), k, int(apart.sum()) // 2)


class Group(NamedTuple):
    """A group of a map: the number of its mark, its name, and its number of points."""

    kind: int
    name: str
    size: int


def find_largest_groups(groups: Sequence[str]) -> list[Group]:
    """Return the groups with a mark of their own: the largest, in the order of the points."""
    counts = Counter(groups)
    largest = sorted(counts, key=lambda name: (-counts[name], name))[:MAX_GROUPS]
    kept = [name for name in counts if name in set(largest)]
    return [Group(kind, name, counts[name]) for kind, name in enumerate(kept)]

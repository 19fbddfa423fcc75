"""Deterministic Ranking: new classes by the distance of their ranking from that of the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankshot.core.arrays import Array, Constants, Dtype, Library, Lost
from rankshot.core.errors import RankshotError
from rankshot.ranking.distances import ListDistances, mean_kendall_distance
from rankshot.ranking.matrices import listed_orders, restrict_items, rows_with_tied_choices
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import DEFAULT_K
from rankshot.zeroshot.heads.base import require_k, require_targets
from rankshot.zeroshot.heads.probabilistic_ranking import (
    RankingModel,
    consensus_rankings,
    fit_priors,
    require_prior,
)
from rankshot.zeroshot.heads.semantic_head import SemanticHead
from rankshot.zeroshot.scores import Kind, score_by_pair_wins

Floats = NDArray[np.floating]
LEAST_ROWS = 64
"""Inputs that are computed together, also if there are thousands of classes."""


class DeterministicRanking(SemanticHead, BaseEstimator):
    r"""Predict the new class whose ranking is closest to the ranking by the scores.

    This is the deterministic method (DR) of Hamm and Belkin (2015) [1]_, equation 3:

    .. math:: z(x) = \arg\min_z d_K(\pi(x), \pi_z)

    π(x) orders the seen classes by their scores, highest first, and π_z is the ranking of the new
    class z. With one-vs-one scores, π(x) orders the seen classes by the number of pairs that each
    wins, and classes with equal numbers by the sums of their scores. The distance is Kendall's
    distance of top-K rankings (equations 4 and 5): the number of pairs of seen classes that the
    two rankings order differently. For ties it is the mean over the strict rankings that the ties
    allow (`mean_kendall_distance`). For a subset ranking, π(x) is restricted to the items that were
    compared, and the distance is scaled so that its mean over all orders of the items is that of a
    top-K ranking: otherwise, classes with subset rankings would be closer to any input. Distances
    are mostly whole numbers, so ties are frequent: tied new classes are equally probable, and
    `predict` returns the alphabetically first.

    The method itself does not define probabilities. Here they follow from Mallows models around
    the rankings of the new classes, with a common spread: P(z|x) ∝ exp(-λ d).

    Parameters
    ----------
    k : int or None
        The number of places of each ranking that are used; None means all. The paper uses 4.
    prior : PlackettLuce, Mallows or BabingtonSmith, optional
        The model whose mode is the consensus of a new class with several rankings; by default
        `PlackettLuce`.
    temperature : float or None
        1/λ, where λ is the spread of the Mallows models; it does not change the decision. By
        default 1.

    Attributes
    ----------
    consensus_ : Rankings
        One ranking per new class, cut to ``k``.

    References
    ----------
    .. [1] J. Hamm and M. Belkin, "Probabilistic zero-shot classification with semantic rankings",
       2015.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "truck"])
    >>> head = rs.DeterministicRanking(k=2).fit(rankings)
    >>> head.predict([[0.1, 1.2, 3.0, 2.5, -1.0]])
    array(['cat'], dtype='<U5')
    """

    name = "deterministic"
    _learned = ("consensus_", "_k")

    def __init__(
        self,
        *,
        k: int | None = DEFAULT_K,
        prior: RankingModel | None = None,
        temperature: float | None = None,
    ) -> None:
        self.k = k
        self.prior = prior
        self.temperature = temperature

    def require_parameters(self) -> None:
        """Raise for a parameter with a wrong value."""
        super().require_parameters()
        require_k(self.k)
        require_prior(self.prior)

    def _fit(self, semantics: Rankings, reference: object, labels: object) -> None:
        """Find the consensus of the rankings of each new class."""
        rankings = require_targets(semantics)
        self.items_ = rankings.items
        self.classes_ = np.array(rankings.target_names)
        # Places after the end of the longest ranking carry no information.
        self._k = min(require_k(self.k, rankings.n_items), int(rankings.lengths.max()))
        priors = fit_priors(rankings, self.prior, self._k)
        self.consensus_ = consensus_rankings(rankings, priors, self._k)
        self._prepare()

    def _prepare(self) -> None:
        self._parts = _group_by_items(self.consensus_, self._k)

    def _formula_constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        if xp is np:
            return {}
        if kind == "one-vs-one" or self.consensus_.is_subset.any() or not self._parts[0].is_strict:
            raise RankshotError(
                "DeterministicRanking needs NumPy arrays for one-vs-one scores, and for rankings "
                "with ties, of subsets or of different lengths. WeightedMean and "
                "ProbabilisticRanking accept other arrays for all of these"
            )
        order = self.consensus_.top(self._k).codes.reshape(-1, self._k).T
        member = np.zeros((len(self.items_), len(self.classes_)))
        member[order, np.arange(len(self.classes_))] = 1
        return {"order": order.astype(np.int64), "member": member}

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        """Return minus the distances of strict rankings from scores, which may be equal.

        At most one tie is cut by the first k places: ``taken`` of its ``size`` items are among
        them, and every choice is equally likely.
        """
        if xp is np:
            return -self._measure_distances(f, kind).T
        first = xp.sort(f, axis=1)[:, len(self.items_) - self._k :]
        cut = first[:, :1]
        above, level = (xp.astype(is_so, f.dtype) for is_so in (f > cut, f == cut))
        size = xp.sum(level, axis=1, keepdims=True)
        taken = self._k - xp.sum(above, axis=1, keepdims=True)
        pairs = xp.where(size > 1, size * (size - 1), 1.0)
        # Of a pair in the tie: one given item precedes the other, or both are after the first k.
        one_first = (taken * (taken - 1) / 2 + taken * (size - taken)) / pairs
        both_out = (size - taken) * (size - taken - 1) / pairs

        def by_level(score: Array, if_above: Array | float, if_cut: Array) -> Array:
            return xp.where(score > cut, if_above, xp.where(score == cut, if_cut, 0.0))

        distance = 0.0
        listed = [xp.take(f, c["order"][place, :], axis=1) for place in range(self._k)]
        for place, score in enumerate(listed):
            # Items before this one in the scores that are not before it in the list
            higher = xp.sum(xp.astype(first[:, :, None] > score[:, None, :], f.dtype), axis=1)
            same = xp.sum(xp.astype(first[:, :, None] == score[:, None, :], f.dtype), axis=1)
            distance = distance + higher + by_level(score, (same - 1) / 2, one_first * (size - 1))
            for other in listed[:place]:
                if_higher = by_level(other, 1.0, taken / size)
                if_same = xp.where(other == score, by_level(score, 0.5, one_first), 0.0)
                distance = distance - xp.where(other > score, if_higher, if_same)
        # Pairs that the list leaves out and the scores do not
        left_out = len(self.items_) - self._k
        out_level = size - level @ c["member"]
        out_below = left_out - out_level - (self._k - taken - above @ c["member"])
        in_both = out_below * (out_below - 1) / 2 + out_below * out_level * (1 - taken / size)
        in_both = in_both + out_level * (out_level - 1) / 2 * both_out
        return in_both - distance - left_out * (left_out - 1) / 2

    def _formula_cells(self, kind: Kind) -> int:
        return 8 * self._k * len(self.classes_)

    def _block_rows(self, kind: Kind) -> int:
        # Orders and sparse products take long to begin, whatever the number of inputs.
        return max(super()._block_rows(kind), LEAST_ROWS)

    def _measure_distances(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return the distances for NumPy arrays, with one row per class."""
        order = score_by_pair_wins(values, len(self.items_)) if kind == "one-vs-one" else values
        distance = np.empty((len(self.classes_), len(values)))
        for part in self._parts:
            distance[part.rows] = part.measure(order)
        return distance


class _Compared:
    """The rankings of some new classes that compare the same items, and distances to them."""

    def __init__(self, consensus: Rankings, k: int, rows: NDArray[np.intp]) -> None:
        self.rows = rows
        self._columns = _compared_items(consensus)
        items = [consensus.items[i] for i in self._columns]
        self._k = min(k, len(items))
        # All items that are left were compared: these are top-K rankings of them.
        among = restrict_items(consensus, items)
        self._consensus = replace(among, is_subset=np.zeros(len(among), bool)).top(self._k)
        self._scale = chance_distance(consensus.n_items, k) / chance_distance(len(items), self._k)
        self.is_strict = not rows_with_tied_choices(self._consensus).size and bool(
            (self._consensus.lengths == self._k).all()
        )
        is_faster = ListDistances.is_faster(self._consensus, self._k, is_strict=self.is_strict)
        self._lists = ListDistances(self._consensus, self._k) if is_faster else None

    def measure(self, scores: Floats) -> NDArray[np.float64]:
        """Return the distances from the orders of some scores, with one row per class."""
        items = self._consensus.items
        compared = scores if len(items) == scores.shape[1] else scores[:, self._columns]
        ranked = Rankings.from_scores(compared, items=items, k=self._k)
        # Equal scores are rare, and take long.
        tied = np.flatnonzero(ranked.rows_with_ties)
        if self._lists is None or tied.size == len(ranked):
            return mean_kendall_distance(self._consensus, ranked, self._k) * self._scale
        lists = listed_orders(ranked)[:, : self._k]
        distance = self._lists.measure(lists)
        if tied.size:
            distance[:, tied] = mean_kendall_distance(self._consensus, ranked[tied], self._k)
        return distance * self._scale


def _compared_items(ranking: Rankings) -> NDArray[np.integer]:
    """Return the numbers of the items that the first of some rankings compares."""
    if ranking.is_subset[0]:
        return np.sort(ranking.codes[: ranking.starts[1]])
    return np.arange(ranking.n_items)


def _group_by_items(rankings: Rankings, k: int) -> list[_Compared]:
    """Return the rankings that compare the same items, as groups."""
    groups: dict[bytes, list[int]] = {}
    for row, ranking in enumerate(rankings):
        groups.setdefault(_compared_items(ranking).astype(np.int64).tobytes(), []).append(row)
    return [_Compared(rankings[rows], k, rows) for rows in map(np.array, groups.values())]


def chance_distance(n_items: int, k: int) -> float:
    """Return the mean distance between two top-k lists, if all of them are equally probable.

    With o the probability that a list leaves out both items of a pair, each order of the pair has
    the probability (1 - o)/2. The pair counts if the orders are opposite, or if only the first
    list leaves it out: (1 - o)²/2 + o (1 - o) = (1 - o²)/2.
    """
    pairs = n_items * (n_items - 1) / 2
    left_out = (n_items - k) * (n_items - k - 1) / 2 / max(pairs, 1)
    return max(pairs * (1 - left_out**2) / 2, 0.5)

"""Deterministic Ranking: targets by the distance of their ranking to the classifier's."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankshot.core.errors import RankshotError
from rankshot.core.validation import require_number
from rankshot.ranking.checks import refuse_partial
from rankshot.ranking.choices import rows_with_tied_choices
from rankshot.ranking.distances import kendall_distance, mean_kendall_distance
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.prior import (
    RankingModel,
    consensus_rankings,
    fit_priors,
    require_k,
    require_targets,
)
from rankshot.zeroshot.scores import Kind, score_by_pair_wins

Floats = NDArray[np.floating]


class DeterministicRanking(BaseHead, BaseEstimator):
    r"""The paper's deterministic method (DR), equation 3.

    .. math:: z(x) = \arg\min_z d_K(\pi(x), \pi_z)

    π(x) puts the seen classes in the order of their scores; one-vs-one, in the order of the
    pairs that each wins, and of the sums of their scores where they win as many. The distance
    is Kendall's of top-K lists (equations 4 and 5); where items tie, its mean over the strict
    lists that the ties allow (`mean_kendall_distance`). Distances are whole numbers, mostly, and
    tie often: tied targets are equally probable, and `predict` takes the first by name.

    The probabilities are those of Mallows models of one spread around the targets' rankings,
    P(z|x) ∝ exp(-spread d): the method itself has none.

    Parameters
    ----------
    k : int or None
        How many items of each list count; all for None. The paper reports 4.
    prior : PlackettLuce, Mallows or BabingtonSmith, optional
        Merges the rankings of a target, where it has several: the mode of the model.
    spread : float
        Of the probabilities; it does not change the decision.

    Attributes
    ----------
    items_ : tuple of str
    classes_ : ndarray of str
        The targets, sorted.
    consensus_ : Rankings
        One ranking a target, cut to ``k``.

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

    def __init__(
        self, *, k: int | None = 10, prior: RankingModel | None = None, spread: float = 1.0
    ) -> None:
        self.k = k
        self.prior = prior
        self.spread = spread

    def fit(self, rankings: Rankings) -> DeterministicRanking:
        """Find the consensus of each target's rankings.

        Parameters
        ----------
        rankings : Rankings
            Of all seen classes, full or top-K; no distance is defined to those of subsets.
        """
        if not 0 < require_number("spread", self.spread) < np.inf:
            raise RankshotError(f"spread must be positive, not {self.spread!r}")
        rankings = require_targets(rankings)
        refuse_partial(rankings, "no distance is defined to it. Use ProbabilisticRanking")
        self.items_ = rankings.items
        self.classes_ = np.array(rankings.target_names)
        # Places beyond every list say nothing.
        self._k = min(require_k(self.k, rankings.n_items), int(rankings.lengths.max()))
        self.consensus_ = consensus_rankings(rankings, fit_priors(rankings, self.prior), self._k)
        return self

    def _log_posterior(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        order = score_by_pair_wins(values, len(self.items_)) if kind == "one-vs-one" else values
        ranked = Rankings.from_scores(order, items=self.items_, k=self._k)
        tied = rows_with_tied_choices(self.consensus_)
        if tied.size or (self.consensus_.lengths < self._k).any() or ranked.has_ties:
            distance = mean_kendall_distance(self.consensus_, ranked, self._k)
        else:
            distance = kendall_distance(self.consensus_, ranked)
        return np.asarray(-self.spread * distance)

"""Deterministic Ranking: new classes by the distance of their ranking from that of the scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from rankshot.core.validation import require_number
from rankshot.ranking.checks import refuse_partial
from rankshot.ranking.distances import kendall_distance, mean_kendall_distance
from rankshot.ranking.layouts import rows_with_tied_choices
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.alignment import require_targets
from rankshot.zeroshot.heads.base import DEFAULT_K, BaseHead, require_k
from rankshot.zeroshot.prior import RankingModel, consensus_rankings, fit_priors
from rankshot.zeroshot.scores import Kind, score_by_pair_wins

Floats = NDArray[np.floating]


class DeterministicRanking(BaseHead, BaseEstimator):
    r"""The paper's deterministic method (DR), equation 3.

    .. math:: z(x) = \arg\min_z d_K(\pi(x), \pi_z)

    π(x) orders the seen classes by their scores. One-vs-one, it orders them by the number of
    pairs that each class wins, and classes with equal numbers by the sums of their scores. The
    distance is Kendall's distance of top-K rankings (equations 4 and 5); for ties it is the mean
    over the strict rankings that the ties allow (`mean_kendall_distance`). Distances are mostly
    whole numbers and often equal: then new classes are equally probable, and `predict` answers
    the first by name.

    The method itself defines no probabilities. Here they are those of Mallows models with one
    spread around the rankings of the new classes, P(z|x) ∝ exp(-spread d).

    Parameters
    ----------
    k : int or None
        The number of places of each ranking that count; all for None. The paper uses 4.
    prior : PlackettLuce, Mallows or BabingtonSmith, optional
        The model whose mode is the consensus of a new class with several rankings; by default
        `PlackettLuce`.
    spread : float
        The spread λ of the Mallows models; it does not change the decision.

    Attributes
    ----------
    items_ : tuple of str
        The seen classes, in the order of the columns of the scores.
    classes_ : ndarray of str
        The new classes, sorted.
    consensus_ : Rankings
        One ranking per new class, cut to ``k``.

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
        self, *, k: int | None = DEFAULT_K, prior: RankingModel | None = None, spread: float = 1.0
    ) -> None:
        self.k = k
        self.prior = prior
        self.spread = spread

    def fit(self, rankings: Rankings) -> DeterministicRanking:
        """Find the consensus of the rankings of each new class.

        Parameters
        ----------
        rankings : Rankings
            Full or top-K rankings of the seen classes. Subset rankings are refused, because no
            distance is defined for them.
        """
        require_number("spread", self.spread, above=0, below=np.inf)
        rankings = require_targets(rankings)
        refuse_partial(rankings, "no distance is defined to it. Use ProbabilisticRanking")
        self.items_ = rankings.items
        self.classes_ = np.array(rankings.target_names)
        # Places after the end of the longest ranking carry no information.
        self._k = min(require_k(self.k, rankings.n_items), int(rankings.lengths.max()))
        priors = fit_priors(rankings, self.prior, self._k)
        self.consensus_ = consensus_rankings(rankings, priors, self._k)
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

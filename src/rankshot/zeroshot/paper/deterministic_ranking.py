"""Deterministic Ranking: new classes by the distance of their ranking from that of the scores."""

from __future__ import annotations

import numpy as np

from rankshot.core.errors import InputError
from rankshot.core.validation import require_whole_number
from rankshot.ranking.distances import mean_kendall_distance
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import DEFAULT_K
from rankshot.zeroshot.class_rankings import as_rankings
from rankshot.zeroshot.paper.method import Method
from rankshot.zeroshot.paper.probabilistic_ranking import (
    RankingModel,
    consensus_rankings,
    fit_priors,
    require_prior,
)
from rankshot.zeroshot.scores import Doubles, Floats, Scores, sum_pairs


class DeterministicRanking(Method):
    r"""Predict the new class whose ranking is closest to the ranking by the scores.

    This is the deterministic method (DR) of Hamm and Belkin (2015) [1]_, equation 3:

    .. math:: z(x) = \arg\min_z d_K(\pi(x), \pi_z)

    π(x) orders the seen classes by their scores, highest first, and π_z is the ranking of the new
    class z. With one-vs-one scores, π(x) orders the seen classes by the number of pairs that each
    wins, and classes with equal numbers by the sums of their scores. The distance is Kendall's
    distance of top-K rankings (equations 4 and 5): the number of pairs of seen classes that the
    two rankings order differently. For ties it is the mean over the strict rankings that the ties
    allow (`mean_kendall_distance`). Distances are mostly whole numbers, so ties are frequent: tied
    new classes are equally probable, and `predict` returns the alphabetically first.

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
    >>> head = rs.zeroshot.paper.DeterministicRanking(k=2).fit(rankings)
    >>> head.predict([[0.1, 1.2, 3.0, 2.5, -1.0]])
    array(['cat'], dtype='<U5')
    """

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

    def fit(self, rankings: Rankings) -> DeterministicRanking:
        """Find the consensus of the rankings of each new class.

        Parameters
        ----------
        rankings : Rankings
            Top-K rankings of the seen classes, at least one for each new class.
        """
        self._require_temperature()
        require_prior(self.prior)
        rankings = as_rankings(rankings)
        if rankings.is_subset.any():
            raise InputError("rankings", "subset", "must be top-K rankings")
        self.items_ = rankings.items
        self.classes_ = np.array(rankings.target_names)
        # Places after the end of the longest ranking carry no information.
        longest = int(rankings.lengths.max())
        k = longest if self.k is None else min(require_whole_number("k", self.k), longest)
        priors = fit_priors(rankings, self.prior, k, singles=False)
        self.consensus_ = consensus_rankings(rankings, priors, k)
        self._k = k
        return self

    def _log_posterior(self, table: Scores) -> Doubles:
        """Minus the distances."""
        scores = table.values
        if table.pairs is not None:
            scores = score_by_pair_wins(table.pairs, len(self.items_))
        ranked = Rankings.from_scores(scores, items=self.items_, k=self._k)
        return -mean_kendall_distance(self.consensus_, ranked, self._k).T


def score_by_pair_wins(pairs: Floats, n_items: int) -> Doubles:
    """One number per class that orders classes by the pairs they win.

    Classes that win the same number of pairs are ordered by the sum of their scores. A pair with
    score 0 is half a win for each class.
    """
    pairs = np.asarray(pairs, np.float64)
    wins = sum_pairs(np.sign(pairs), n_items) / 2
    # Rounded, so that the order of the additions has no influence.
    sums = np.round(sum_pairs(pairs, n_items), 9)
    # Wins differ by at least 1/2, so sums that are scaled into (-1/4, 1/4) only break ties.
    return np.asarray(wins + sums / (4 * (1 + np.abs(sums))))

"""Probabilistic Ranking: new classes by the probability of their rankings given the scores."""

from __future__ import annotations

from collections.abc import Mapping
from math import perm
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import InputError
from rankshot.core.validation import Seed, require_choice, require_number, require_whole_number
from rankshot.ranking.models.babington_smith import BabingtonSmith
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import DEFAULT_K, merge_rankings
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.zeroshot.class_rankings import DECAY, as_rankings
from rankshot.zeroshot.files.score_tables import as_scores
from rankshot.zeroshot.paper.likelihoods import log_prob_given_scores
from rankshot.zeroshot.paper.method import Method
from rankshot.zeroshot.paper.sum_over_rankings import MAX_RANKINGS, PosteriorSum, SumOverRankings
from rankshot.zeroshot.scores import Doubles, Scores

RankingModel = PlackettLuce | Mallows | BabingtonSmith
"""A prior."""
POSTERIORS = ("consensus", "mean", "sum")


def require_prior(prior: RankingModel | None) -> RankingModel:
    """The prior model, by default `PlackettLuce()`."""
    prior = PlackettLuce() if prior is None else prior
    if not isinstance(prior, RankingModel):
        raise InputError("prior", prior, "must be a ranking model such as PlackettLuce()")
    return prior


def fit_priors(
    rankings: Rankings, prior: RankingModel | None, k: int, *, singles: bool
) -> dict[str, RankingModel]:
    """Fit a copy of the model to the first k places of the rankings of each new class: P(π|z).

    Classes with a single ranking are left out, unless ``singles`` is true: one ranking needs
    no merging.
    """
    prior = require_prior(prior)
    return {
        target: clone(prior).fit(theirs)
        for target, theirs in rankings.top(k).by_target().items()
        if singles or len(theirs) > 1
    }


def consensus_rankings(rankings: Rankings, priors: Mapping[Any, RankingModel], k: int) -> Rankings:
    """One ranking per new class, π_0^z: the mode of its prior, cut to k.

    ``priors`` are those of `fit_priors` for the same k. See `merge_rankings`. Rankings without a
    target are those of one class, None.
    """
    first = rankings[rankings.weights > 0].top(k)
    named: dict[Any, Rankings] = dict(first.by_target()) or {None: first}
    return Rankings.concatenate(
        [merge_rankings(theirs, priors.get(target)) for target, theirs in named.items()]
    )


class ProbabilisticRanking(Method):
    r"""Predict the new class whose ranking is the most probable, given the scores.

    This is the probabilistic method (PR) of Hamm and Belkin (2015) [1]_; equations are those of
    their paper. The scores of a classifier define a model of rankings: Plackett-Luce for one score
    per class (equation 14), Babington-Smith for one score per pair of classes (equation 15). A high
    score makes a seen class likely to come first. A new class is as probable as its ranking is
    under this model. The parameter ``posterior`` decides what
    happens if a new class has several rankings:

    - ``"mean"``: log P(z|x) is the weighted mean of log P(π|x) over the rankings of the class z.
      Nothing is merged.
    - ``"consensus"``, the classifiers of Hamm and Belkin (equations 16 and 17): the rankings of a
      new class are merged into one, the mode of the prior fitted to them, and
      P(z|x) ∝ P(π_0^z|x).
    - ``"sum"``, equation 7: Σ_π P(π|x) P(z|π) over all top-k rankings π, with
      P(z|π) ∝ P(π|z) from the priors, which are fitted to at least ten places. The sum is exact
      for at most 20,000 rankings; otherwise it is estimated from exact samples of P(π|x), in a
      time proportional to ``n_samples`` and to the number of inputs. See `sum_over_rankings`.

    The rankings may have different lengths: every P(π|x) is divided by the probability of π where
    all scores are equal, which is the same for all rankings of one length. The
    classifier of Hamm and Belkin is ``ProbabilisticRanking(k=4, posterior="consensus", decay=0)``.

    Parameters
    ----------
    k : int or None
        The number of places of each ranking that are used; None means all. The paper uses 4.
    decay : float
        How fast the weights of the places decrease: log P(π|x) is a sum over the places of π, and
        the r-th term has the weight r^-decay. With 0 all places have the same weight, as in the
        paper. Not used by ``posterior="sum"``.
    prior : PlackettLuce, Mallows or BabingtonSmith, optional
        The model P(π|z) of the rankings of a new class; a copy is fitted for each class. By
        default `PlackettLuce`. The consensus of a single ranking is the ranking itself. Not used
        by ``posterior="mean"``.
    posterior : {"mean", "consensus", "sum"}
        How several rankings of a new class are combined: the mean of their log-probabilities, their
        consensus, or the sum over all rankings.
    temperature : float or None
        Log-probabilities are divided by it before they are normalised: a larger temperature makes
        the probabilities more equal, but does not change the decision. The default is 1 for
        ``"consensus"`` and ``"sum"``. For ``"mean"`` it is the square root of the number of places
        used, because the places of a ranking are not independent observations.
    n_samples : int
        The number of rankings sampled per input if the sum is not exact.
    random_state : int
        The seed for sampling.

    Attributes
    ----------
    rankings_ : Rankings
        The rankings of the new classes, cut to ``k``.
    priors_ : dict
        The model fitted to the rankings of each new class that has several (of every new class
        for ``posterior="sum"``). Empty for ``posterior="mean"``.
    consensus_ : Rankings or None
        One ranking per new class, cut to ``k``. None for ``posterior="mean"``.

    References
    ----------
    .. [1] J. Hamm and M. Belkin, "Probabilistic zero-shot classification with semantic rankings",
       2015.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["tiger", "leopard", "fox"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "cat", "truck"])
    >>> head = rs.ProbabilisticRanking(k=2).fit(rankings)
    >>> logits = [[0.1, 1.2, 3.0, 2.5, -1.0], [4.0, 0.0, 0.0, 0.5, 2.0]]
    >>> head.predict_proba(logits).round(3)
    array([[0.983, 0.017],
           [0.012, 0.988]])
    """

    def __init__(
        self,
        *,
        k: int | None = LIST_LENGTH,
        decay: float = DECAY,
        prior: RankingModel | None = None,
        posterior: Literal["mean", "consensus", "sum"] = "mean",
        temperature: float | None = None,
        n_samples: int = 1000,
        random_state: Seed = 0,
    ) -> None:
        self.k = k
        self.decay = decay
        self.prior = prior
        self.posterior = posterior
        self.temperature = temperature
        self.n_samples = n_samples
        self.random_state = random_state

    def _require_parameters(self) -> None:
        self._require_temperature()
        require_number("decay", self.decay, least=0, below=np.inf)
        require_choice("posterior", self.posterior, POSTERIORS)
        require_whole_number("n_samples", self.n_samples, least=2)
        require_prior(self.prior)
        if self.prior is not None and self.posterior == "mean":
            raise InputError(
                "prior",
                self.prior,
                "is not used by posterior='mean', which does not merge rankings",
                hint="use posterior='consensus' or 'sum', or leave out the prior",
            )

    def fit(self, rankings: Rankings) -> ProbabilisticRanking:
        """Fit the priors and the consensus of the new classes.

        Parameters
        ----------
        rankings : Rankings
            Rankings of the seen classes, at least one for each new class; their weights are used.
        """
        self._require_parameters()
        rankings = as_rankings(rankings)
        C = rankings.n_items
        k = C if self.k is None else min(require_whole_number("k", self.k), C)
        is_sum = self.posterior == "sum"
        if not is_sum:
            # Places after the end of the longest ranking carry no information, and a tie of all
            # remaining items takes long.
            k = min(k, int(rankings.lengths.max()))
        self.items_ = rankings.items
        self.classes_ = np.array(rankings.target_names)
        self.rankings_ = rankings.top(k)
        self.priors_: dict[str, RankingModel] = {}
        self.consensus_: Rankings | None = None
        if self.posterior != "mean":
            # The sum has short rankings because it costs much; its priors need not know so little.
            places = min(max(k, DEFAULT_K), C) if is_sum else k
            self.priors_ = fit_priors(rankings, self.prior, places, singles=is_sum)
            self.consensus_ = consensus_rankings(rankings, self.priors_, places).top(k)
        self._compared = self.consensus_ or self.rankings_
        z = np.searchsorted(self.classes_, self._compared.targets.astype(str))
        weights = self._compared.weights
        cells = weights / np.bincount(z, weights)[z], (np.arange(len(z)), z)
        self._mean = csr_array(cells, (len(z), len(self.classes_)))
        self._sum = self._make_sum(k) if is_sum else None
        return self

    def _make_sum(self, k: int) -> SumOverRankings:
        """The sum over rankings, with its random numbers if there are too many rankings."""
        log_uniform = seed = None
        if perm(len(self.items_), k) > MAX_RANKINGS:
            rng = np.random.default_rng(self.random_state)
            log_uniform = -rng.standard_exponential((k, self.n_samples))
            seed = int(rng.integers(2**32))
        models = [self.priors_[target] for target in self.classes_]
        return SumOverRankings(models, self.items_, k, log_uniform, seed)

    def _default_temperature(self) -> float:
        return float(np.sqrt(self._compared.lengths.max())) if self.posterior == "mean" else 1.0

    def _log_posterior(self, table: Scores) -> Doubles:
        if self._sum is not None:
            return self._sum.log_proba(table)[0].T
        log_prob = log_prob_given_scores(self._compared, table, self.decay)
        return np.asarray(log_prob @ self._mean)

    def _cells_per_input(self) -> int:
        if self._sum is not None:
            return self._sum.cells_per_input
        return len(self.items_) + len(self._compared)

    def sum_over_rankings(self, scores: Scores | ArrayLike) -> PosteriorSum:
        """P(z|x) of ``scores`` by ``posterior="sum"``, with standard errors of the probabilities.

        The standard error is 0 if the sum is exact, or if all samples agree.
        """
        check_is_fitted(self, "classes_")
        if self._sum is None:
            raise InputError("posterior", self.posterior, "must be 'sum'")
        table = as_scores(scores, self.items_)
        proba = np.empty((len(table), len(self.classes_)))
        error = np.empty(proba.shape)
        for rows in row_blocks(len(table), self._sum.cells_per_input):
            log_proba, errors = self._sum.log_proba(table[rows])
            proba[rows], error[rows] = np.exp(log_proba).T, errors.T
        return PosteriorSum(proba, error)

"""The methods of Hamm and Belkin (2015) that use rankings: deterministic and probabilistic."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import InputError
from rankshot.core.validation import Seed, require_choice, require_number, require_whole_number
from rankshot.ranking.distances import mean_kendall_distance
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import DEFAULT_K, merge_rankings
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.zeroshot.class_rankings import DECAY, as_rankings
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.paper.likelihoods import (
    PosteriorSum,
    RankingModel,
    log_prob_given_scores,
    sum_over_rankings,
)
from rankshot.zeroshot.scores import Doubles, Floats, Scores, sum_pairs
from rankshot.zeroshot.tables import as_scores

POSTERIORS = ("consensus", "mean", "sum")


class Method(BaseEstimator, ABC):
    """A method of the paper. Log-posteriors are divided by ``temperature_``, and normalised."""

    items_: tuple[str, ...]
    classes_: NDArray[np.str_]
    temperature_ = 1.0
    _n_compared = 0

    @abstractmethod
    def _log_posterior(self, table: Scores) -> Doubles:
        """Log P(z|x) plus a constant per input; -inf for impossible classes."""

    def log_proba(self, scores: Scores | ArrayLike) -> Doubles:
        """Log-probabilities of ``scores``: one row per input, one column per class."""
        check_is_fitted(self, "classes_")
        table = as_scores(scores, self.items_)
        values = np.empty((len(table), len(self.classes_)))
        cells = len(self.items_) + len(self.classes_) + self._n_compared
        for rows in row_blocks(len(table), cells):
            values[rows] = self._log_posterior(table[rows]) / self.temperature_
        return np.asarray(log_softmax(values, axis=1))

    def predict_proba(self, scores: Scores | ArrayLike) -> Doubles:
        """Probabilities of ``scores``: one row per input, one column per class in ``classes_``."""
        return np.asarray(np.exp(self.log_proba(scores)))

    def predict(self, scores: Scores | ArrayLike) -> NDArray[np.str_]:
        """The most probable class for each row of ``scores``; among equals, the first by name."""
        return self.classes_[most_probable(self.log_proba(scores))]


class _RankingMethod(Method):
    """A method that is fitted to rankings, of which the first k places count."""

    k: int | None
    prior: RankingModel | None

    def _read(self, rankings: object) -> tuple[Rankings, int]:
        """The rankings of the new classes, and k, which is at most the number of seen classes."""
        lists = as_rankings(rankings)
        self.items_, self.classes_ = lists.items, np.array(lists.target_names)
        C = lists.n_items
        return lists, C if self.k is None else min(require_whole_number("k", self.k), C)

    def _fit_prior(self, rankings: Rankings) -> RankingModel:
        """P(π|z) of the rankings of one class."""
        model: RankingModel = clone(PlackettLuce() if self.prior is None else self.prior)
        return model.fit(rankings)

    def _merge(self, rankings: Rankings) -> Rankings:
        """One ranking per new class, π_0^z: the mode of its prior, as long as its rankings."""
        # One ranking needs no merging.
        return Rankings.concatenate(
            [
                merge_rankings(theirs, self._fit_prior(theirs) if len(theirs) > 1 else None)
                for theirs in rankings.by_target().values()
            ]
        )


class DeterministicRanking(_RankingMethod):
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

    The method itself does not define probabilities. Here they follow from Mallows models with
    spread 1 around the rankings of the new classes: P(z|x) ∝ exp(-d).

    Parameters
    ----------
    k : int or None
        The number of places of each ranking that are used; None means all. The paper uses 4.
    prior : PlackettLuce, Mallows or BabingtonSmith, optional
        The model whose mode is the consensus of a new class with several rankings; by default
        `PlackettLuce`.

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
    ) -> None:
        self.k = k
        self.prior = prior

    def fit(self, rankings: Rankings) -> DeterministicRanking:
        """Find the consensus of the rankings of each new class.

        Parameters
        ----------
        rankings : Rankings
            Top-K rankings of the seen classes, at least one for each new class.
        """
        lists, k = self._read(rankings)
        if lists.is_subset.any():
            raise InputError("rankings", "subset", "must be top-K rankings")
        # Places after the end of the longest ranking carry no information.
        self._k = min(k, int(lists.lengths.max()))
        self.consensus_ = self._merge(lists.top(self._k))
        return self

    def _log_posterior(self, table: Scores) -> Doubles:
        """Minus the distances."""
        scores = table.values
        if table.pairs is not None:
            scores = score_by_pair_wins(table.pairs, len(self.items_))
        ranked = Rankings.from_scores(scores, items=self.items_, k=self._k)
        return -mean_kendall_distance(self.consensus_, ranked, self._k).T


class ProbabilisticRanking(_RankingMethod):
    r"""Predict the new class whose ranking is the most probable, given the scores.

    This is the probabilistic method (PR) of Hamm and Belkin (2015) [1]_; equations are those of
    their paper. The scores of a classifier define a model of rankings: Plackett-Luce for one score
    per class (equation 14), Babington-Smith for one score per pair of classes (equation 15). A high
    score makes a seen class likely to come first. A new class is as probable as its ranking is
    under this model. The parameter ``posterior`` decides what
    happens if a new class has several rankings:

    - ``"mean"``: log P(z|x) is the weighted mean of log P(π|x) over the rankings of the class z,
      divided by the square root of the number of places used, because the places of a ranking are
      not independent observations. Nothing is merged.
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
        One ranking per new class, cut to ``k``; only for ``posterior="consensus"``.

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
        n_samples: int = 1000,
        random_state: Seed = 0,
    ) -> None:
        self.k = k
        self.decay = decay
        self.prior = prior
        self.posterior = posterior
        self.n_samples = n_samples
        self.random_state = random_state

    def fit(self, rankings: Rankings) -> ProbabilisticRanking:
        """Fit the priors and the consensus of the new classes.

        Parameters
        ----------
        rankings : Rankings
            Rankings of the seen classes, at least one for each new class; their weights are used.
        """
        require_number("decay", self.decay, least=0, below=np.inf)
        require_choice("posterior", self.posterior, POSTERIORS)
        require_whole_number("n_samples", self.n_samples, least=2)
        if self.prior is not None and self.posterior == "mean":
            hint = "use posterior='consensus' or 'sum', or leave out the prior"
            raise InputError("prior", self.prior, "is not used by posterior='mean'", hint=hint)
        lists, self._k = self._read(rankings)
        self.priors_: dict[str, RankingModel] = {}
        self.consensus_: Rankings | None = None
        if self.posterior == "sum":
            # The sum has short rankings because it costs much; its priors need not know so little.
            places = min(max(self._k, DEFAULT_K), lists.n_items)
            by_target = lists.top(places).by_target()
            self.priors_ = {name: self._fit_prior(theirs) for name, theirs in by_target.items()}
        else:
            # Places after the end of the longest ranking carry no information, and a tie of all
            # remaining items takes long.
            self._k = min(self._k, int(lists.lengths.max()))
        self.rankings_ = self._compared = lists.top(self._k)
        if self.posterior == "consensus":
            self.consensus_ = self._compared = self._merge(self.rankings_)
        if self.posterior == "mean":
            self.temperature_ = float(np.sqrt(self._compared.lengths.max()))
        self._n_compared = len(self._compared)
        z = np.searchsorted(self.classes_, self._compared.targets.astype(str))
        weights = self._compared.weights
        cells = weights / np.bincount(z, weights)[z], (np.arange(len(z)), z)
        self._mean = csr_array(cells, (len(z), len(self.classes_)))
        return self

    def _log_posterior(self, table: Scores) -> Doubles:
        if self.posterior == "sum":
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self.sum_over_rankings(table).proba))
        return np.asarray(log_prob_given_scores(self._compared, table, self.decay) @ self._mean)

    def sum_over_rankings(self, scores: Scores | ArrayLike) -> PosteriorSum:
        """P(z|x) of ``scores`` by ``posterior="sum"``, with standard errors of the probabilities.

        The standard error is 0 if the sum is exact, or if all samples agree.
        """
        check_is_fitted(self, "classes_")
        priors = [self.priors_[target] for target in self.classes_]
        table = as_scores(scores, self.items_)
        return sum_over_rankings(priors, table, self._k, self.n_samples, self.random_state)


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

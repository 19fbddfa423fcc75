"""Probabilistic Ranking: targets by the probability of their rankings under the scores."""

from __future__ import annotations

from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.core.validation import Seed
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.heads.reference import Reference, fit_reference
from rankshot.zeroshot.heads.sum_over_rankings import PosteriorSum, SumOverRankings
from rankshot.zeroshot.prior import (
    RankingModel,
    consensus_rankings,
    fit_priors,
    require_k,
    require_prior,
    require_targets,
)
from rankshot.zeroshot.scorers import Scorers, require_decay
from rankshot.zeroshot.scores import Kind, Scores, as_scores

Floats = NDArray[np.floating]
POSTERIORS = ("consensus", "mean", "sum")


class ProbabilisticRanking(BaseHead, BaseEstimator):
    r"""The paper's method (PR): a target is as probable as its ranking, given the scores.

    The scores of a classifier are a model of rankings: Plackett-Luce where there is one a
    class (equation 14), Babington-Smith where there is one a pair (equation 15). A target is
    as probable as its ranking is under that model. By ``posterior``:

    - ``"mean"``: log P(z|x) is the weighted mean of log P(π|x) over the rankings of the
      target: each rater speaks for itself, and nothing is merged.
    - ``"consensus"``, the paper's classifiers (equations 16 and 17): the rankings of a target
      are merged into one, the mode of the prior fitted to them, and
      P(z|x) ∝ P(π_0^z|x).
    - ``"sum"``, equation 7: Σ_π P(π|x) P(z|π) over all top-k rankings π, with
      P(z|π) ∝ P(π|z) from the priors. Exact where there are at most 20,000 rankings; otherwise
      estimated from rankings drawn exactly from P(π|x). See `sum_over_rankings`.

    Lists need not be of one length: every P(π|x) is divided by the probability of π where all
    scores are equal, which is the same for lists of one length.

    The defaults are those that did best on *seen* classes that played unseen ones, two data sets
    taken together; ``docs/reproduction.md`` has the figures. The paper's own classifier is
    ``ProbabilisticRanking(k=4, posterior="consensus", decay=0)``.

    Parameters
    ----------
    k : int or None
        How many items of each list count; all for None. The paper reports 4.
    decay : float
        How fast places lose weight: log P(π|x) is a sum over the places of π, of which the
        r-th counts r^-decay times. 0 is the paper's: all alike. Not used by the sum.
    prior : PlackettLuce, Mallows or BabingtonSmith, optional
        The model of a target's rankings, P(π|z); fitted to those of each target. By default
        `PlackettLuce`. A target's only ranking is its own consensus. Not used by the mean.
    posterior : {"mean", "consensus", "sum"}
        See above.
    n_samples : int
        How many rankings are drawn for each input, where the sum is not exact.
    random_state : int, optional
        For those draws.

    Attributes
    ----------
    items_ : tuple of str
        The seen classes, in the order of the columns of the scores.
    classes_ : ndarray of str
        The targets, sorted.
    rankings_ : Rankings
        What it was fitted to, cut to ``k``.
    priors_ : dict
        The model fitted to the rankings of each target that has several (of every target, for
        the sum); there is none for ``posterior="mean"``.
    consensus_ : Rankings
        One ranking a target, cut to ``k``; there is none for ``posterior="mean"``.
    reference_ : Reference or None
        What is usual for inputs of seen classes, where `fit` was told.

    References
    ----------
    Hamm and Belkin (2015), Probabilistic zero-shot classification with semantic rankings.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["tiger", "leopard", "fox"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "cat", "truck"])
    >>> head = rs.ProbabilisticRanking(k=2).fit(rankings)
    >>> logits = [[0.1, 1.2, 3.0, 2.5, -1.0], [4.0, 0.0, 0.0, 0.5, 2.0]]
    >>> head.predict(logits)
    array(['cat', 'truck'], dtype='<U5')
    >>> head.predict_proba(logits).round(3)
    array([[0.997, 0.003],
           [0.002, 0.998]])

    The paper's classifier merges the two rankings of a cat, and its places count alike:

    >>> paper = rs.ProbabilisticRanking(k=4, decay=0, posterior="consensus").fit(rankings)
    >>> print(paper.consensus_.select(target="cat").orders()[0])
    [['leopard', 'tiger'], 'fox']

    Where buses and trams always score high, 4 and 2 are little for them:

    >>> import numpy as np
    >>> usual = np.random.default_rng(0).normal(size=(200, 5)) + [5, 0, 0, 0, 5]
    >>> head.fit(rankings, reference=usual).predict(logits)
    array(['cat', 'cat'], dtype='<U5')
    """

    def __init__(
        self,
        *,
        k: int | None = 10,
        decay: float = 0.5,
        prior: RankingModel | None = None,
        posterior: Literal["mean", "consensus", "sum"] = "mean",
        n_samples: int = 1000,
        random_state: Seed = None,
    ) -> None:
        self.k = k
        self.decay = decay
        self.prior = prior
        self.posterior = posterior
        self.n_samples = n_samples
        self.random_state = random_state

    def fit(
        self, rankings: Rankings, reference: Scores | ArrayLike | None = None
    ) -> ProbabilisticRanking:
        """Learn what semantics say of the targets.

        Parameters
        ----------
        rankings : Rankings
            Of the seen classes, at least one for each target; their weights count.
        reference : Scores or array-like, optional
            What the classifier says of inputs of seen classes that it was not trained on, several
            of every class; no labels are needed. Scores, and then log P(z|x) of each target,
            are measured from their mean there, in standard deviations. So a class that always
            scores high, a target whose ranking always fits, and the scale of the scores (that
            of a support vector machine, for example) no longer matter.
        """
        if self.posterior not in POSTERIORS:
            allowed = ", ".join(POSTERIORS)
            raise RankshotError(f"posterior must be one of {allowed}, not {self.posterior!r}")
        rankings = require_targets(rankings)
        k = require_k(self.k, rankings.n_items)
        require_decay(self.decay)
        require_prior(self.prior)
        if self.posterior != "sum":
            # Places beyond every list say nothing, and ties of all that is left take long.
            k = min(k, int(rankings.lengths.max()))
        self.items_ = rankings.items
        self.classes_ = np.array(rankings.target_names)
        self.rankings_ = rankings.top(k)
        if self.posterior == "mean":
            # Of an earlier fit with another posterior.
            self.__dict__.pop("consensus_", None)
            self.__dict__.pop("priors_", None)
            self._prepare(self.rankings_, reference)
            return self
        self.priors_ = fit_priors(rankings, self.prior, singles=self.posterior == "sum")
        self.consensus_ = consensus_rankings(rankings, self.priors_, k)
        self._prepare(self.consensus_, reference)
        if self.posterior == "sum":
            models = [self.priors_[target] for target in self.classes_]
            self._sum = SumOverRankings(models, self.items_, k, self.n_samples, self.random_state)
        return self

    def _prepare(self, compared: Rankings, reference: Scores | ArrayLike | None) -> None:
        """Lay out the rankings whose probability decides, and how they add up to targets."""
        self._compared = compared
        self._merge = averaging_matrix(compared, self.classes_)
        self._scorers = Scorers(compared, self.decay)
        self.reference_: Reference | None = None
        if reference is not None:
            if self.posterior == "sum":
                raise RankshotError(
                    "the sum over rankings takes no reference: use another posterior"
                )
            table = as_scores(reference, self.items_)
            self.reference_ = fit_reference(table, self._raw_log_posterior)
            # What items usually add is needed for explanations only, and takes long.
            self._reference_values = table.values
            self._usual_contributions: NDArray[np.float64] | None = None

    def _log_posterior(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        if self.posterior == "sum":
            return self._sum.log_proba_by_target(values, kind)[0]
        if self.reference_ is None:
            return self._raw_log_posterior(values, kind)
        raw = self._raw_log_posterior(self.reference_.scaled(values, kind), kind)
        return self.reference_.standardized(raw)

    def _raw_log_posterior(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return the same without regard to the reference."""
        scorer = self._scorers.get_scorer(kind)
        log_prob = scorer.log_prob_by_ranking(values)
        log_prob -= scorer.log_chance[:, None]
        return log_prob if self.posterior == "consensus" else np.asarray(self._merge @ log_prob)

    def _cells_per_input(self, values: Floats) -> int:
        if self.posterior == "sum":
            return self._sum.cells_per_input
        return int(values.shape[1]) + len(self._compared)

    def item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return what each item adds to the log-posterior of each target, (n, targets, items).

        A ranking is a product of choices: how much more probable each is than by chance
        belongs to the item chosen, or in equal parts to the items of a tie. For the sum over
        rankings they are those of the consensus.
        """
        if self.reference_ is None:
            return self._raw_item_contributions(values, kind)
        parts = self._raw_item_contributions(self.reference_.scaled(values, kind), kind)
        if self._usual_contributions is None:
            self._usual_contributions = self._mean_contributions(self.reference_)
        return np.asarray((parts - self._usual_contributions) / self.reference_.target_std[:, None])

    def _mean_contributions(self, reference: Reference) -> NDArray[np.float64]:
        """Return what each item adds to each target, on average over the reference."""
        values, total = self._reference_values, np.zeros((len(self.classes_), len(self.items_)))
        for rows in row_blocks(len(values), len(self._compared) * len(self.items_)):
            block = reference.scaled(values[rows], reference.kind)
            total += self._raw_item_contributions(block, reference.kind).sum(axis=0)
        return total / len(values)

    def _raw_item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        scorer = self._scorers.get_scorer(kind)
        parts = np.zeros((len(self._compared), len(self.items_), len(values)))
        f = np.ascontiguousarray(values.T)
        for row in range(len(self._compared)):
            for members, log_prob, chance, weight in scorer.stage_log_probs(row, f):
                parts[row, members] += weight * (log_prob - chance) / len(members)
        return np.asarray(np.einsum("zr,rin->nzi", self._merge, parts))

    def source_log_posteriors(
        self, values: Floats, kind: Kind
    ) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return the sources, and the log-posterior of each target by each alone.

        Where all rankings come from one source, its raters take the place of sources. A source
        without a ranking of a target has NaN; the shape is (n, targets, sources). One-vs-one
        there are none where lists differ in length: their probabilities do not compare.
        """
        uneven = np.ptp(self.rankings_.lengths) > 0 or self.rankings_.is_subset.any()
        if kind == "one-vs-one" and uneven:
            return (), np.zeros((len(values), len(self.classes_), 0))
        labels = self.rankings_.sources
        if len(self.rankings_.source_names) < 2 and self.rankings_.rater_names:
            labels = self.rankings_.raters
        names = tuple(sorted({label for label in labels if label is not None}))
        scorer = Scorers(self.rankings_, self.decay).get_scorer(kind)
        if self.reference_ is not None:
            values = self.reference_.scaled(values, kind)
        log_prob = scorer.log_prob_by_ranking(values)
        log_prob -= scorer.log_chance[:, None]
        parts = np.full((len(values), len(self.classes_), len(names)), np.nan)
        for z, s in product(range(len(self.classes_)), range(len(names))):
            theirs = (self.rankings_.targets == self.classes_[z]) & (labels == names[s])
            if theirs.any():
                parts[:, z, s] = np.average(
                    log_prob[theirs], axis=0, weights=self.rankings_.weights[theirs]
                )
        if self.reference_ is not None:
            parts = self.reference_.standardized(parts.transpose(1, 0, 2)).transpose(1, 0, 2)
        return names, parts

    def sum_over_rankings(self, scores: Scores | ArrayLike) -> PosteriorSum:
        """Return P(z|x) by ``posterior="sum"``, with the standard error of every figure.

        The error is 0 where the sum was exact (and where all rankings drawn say the same).
        """
        check_is_fitted(self, "classes_")
        if self.posterior != "sum":
            raise RankshotError(f"sum_over_rankings needs posterior='sum', not {self.posterior!r}")
        table = as_scores(scores, self.items_)
        proba = np.empty((len(table), len(self.classes_)))
        error = np.empty(proba.shape)
        for rows in row_blocks(len(table), self._sum.cells_per_input):
            log_proba, spread = self._sum.log_proba_by_target(table.values[rows], table.kind)
            proba[rows], error[rows] = np.exp(log_proba).T, spread.T
        return PosteriorSum(proba, error)


def averaging_matrix(rankings: Rankings, targets: NDArray[np.str_]) -> NDArray[np.float64]:
    """Return the matrix that takes a value a ranking to its weighted mean a target."""
    weights = np.where(targets[:, None] == rankings.targets, rankings.weights, 0.0)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))

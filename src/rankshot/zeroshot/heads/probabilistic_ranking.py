"""Probabilistic Ranking: new classes by the probability of their rankings given the scores."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from math import log, perm
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import (
    BLOCK_CELLS,
    CACHED_CELLS,
    Array,
    Constants,
    Dtype,
    Library,
    Lost,
    logsumexp,
    row_blocks,
)
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import Seed, require_choice, require_number, require_whole_number
from rankshot.ranking.checks import keep_counted
from rankshot.ranking.models.babington_smith import BabingtonSmith
from rankshot.ranking.models.mallows import Mallows
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.rater_agreement import DEFAULT_K, merge_rankings
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.zeroshot.heads.base import (
    DECAY,
    Reference,
    as_reference,
    mean_and_std,
    require_k,
    require_targets,
    sources_of,
    sources_or_raters,
    standardize,
)
from rankshot.zeroshot.heads.semantic_head import SemanticHead
from rankshot.zeroshot.heads.sum_over_rankings import MAX_RANKINGS, PosteriorSum, SumOverRankings
from rankshot.zeroshot.likelihoods import GroupedScorer, Scorers, stage_weights
from rankshot.zeroshot.scores import Kind, Scores, as_scores, n_columns

RankingModel = PlackettLuce | Mallows | BabingtonSmith
"""A prior."""


def require_prior(prior: RankingModel | None) -> RankingModel:
    """Return the prior model, by default `PlackettLuce()`."""
    prior = PlackettLuce() if prior is None else prior
    if not isinstance(prior, RankingModel):
        raise RankshotError(
            f"the prior must be a ranking model such as PlackettLuce(), not {short_repr(prior)}"
        )
    return prior


def fit_priors(
    rankings: Rankings, prior: RankingModel | None, k: int, *, singles: bool = False
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
    """Return one ranking per new class, π_0^z: the mode of its prior, cut to k.

    ``priors`` are those of `fit_priors` for the same k. See `merge_rankings`. Rankings without a
    target are those of one class, None.
    """
    first = keep_counted(rankings).top(k)
    named: Mapping[Any, Rankings] = first.by_target() or {None: first}
    return Rankings.concatenate(
        [merge_rankings(theirs, priors.get(target)) for target, theirs in named.items()]
    )


Floats = NDArray[np.floating]


class MeanOverSources:
    r"""From log P(π|x) of each ranking π to one value per class.

    A source may have several rankings of a class: its value L_s(z) is their weighted mean. The
    value of the class is the weighted mean over the sources, with the same weight of a source for
    all classes: the mean weight of its rankings of a class.

    Some sources rank easier items than others, so values are only comparable within a source. A
    class that a source does not rank gets what the classes that it ranks get on average there,
    log (1/n_s) Σ_z exp L_s(z). So the source is neutral: it decides among the classes that it
    ranks, and the class neither gains nor loses by not being ranked. A source that ranks a single
    class has no effect. Sources without a common class, neither directly nor through other
    sources, cannot be compared so: the value of a class is the mean over the sources that are
    connected with its own, and these values are compared as they are.

    There is at least one ranking for each of the ``classes``. Rankings without a source count as
    one source, named "".

    Attributes
    ----------
    groups : ndarray of int
        A number for each ranking: rankings of one group have the same class, source and weight,
        so that their log-probabilities may be added.
    matrices : dict of sparse arrays
        What `combine` multiplies by; one row per group.
    missing : dict of str to list of str
        For each source that does not rank all classes connected with it: those that it lacks.
    unused : tuple of str
        The sources that rank one of several classes.
    """

    def __init__(self, rankings: Rankings, classes: NDArray[np.str_]) -> None:
        z = np.searchsorted(classes, rankings.targets.astype(str))
        names, s = np.unique(sources_of(rankings), return_inverse=True)
        n_classes, n_sources = len(classes), len(names)
        total = np.zeros((n_sources, n_classes))
        np.add.at(total, (s, z), rankings.weights)
        ranked = total > 0
        share = total.sum(axis=1) / ranked.sum(axis=1)
        together = _connected(ranked)
        self.missing = {
            str(names[source]): classes[together[source] & ~ranked[source]].tolist()
            for source in np.flatnonzero((together & ~ranked).any(axis=1))
        }
        # A source that ranks one of several classes compares nothing.
        alone = (ranked.sum(axis=1) == 1) & (together.sum(axis=1) > 1)
        self.unused = tuple(map(str, names[alone]))
        together[alone] = False
        lacks = together & ~ranked
        # The weight of each source for each class.
        share_of = np.where(together, share[:, None], 0.0)
        share_of /= share_of.sum(axis=0)
        keys, self.groups = np.unique(
            np.column_stack([s, z, rankings.weights]), axis=0, return_inverse=True
        )
        s, z = keys[:, :2].T.astype(int)
        row, in_mean = np.arange(len(keys)), keys[:, 2] / total[s, z]
        own = csr_array((share_of[s, z] * in_mean, (row, z)), (len(keys), n_classes))
        cells = in_mean, (row, s * n_classes + z)
        by_source = csr_array(cells, (len(keys), n_sources * n_classes)).tocsc()
        partial = np.flatnonzero(lacks.any(axis=1))
        self.matrices: Constants = {"own": own}
        for i, source in enumerate(partial):
            columns = source * n_classes + np.flatnonzero(ranked[source])
            self.matrices[f"partial{i}"] = by_source[:, columns]
        # The usual case: one source, and rankings of equal weight. Groups are in the order of z.
        self._one_group_each = n_sources == 1 and len(keys) == n_classes
        self._n_partial = partial.size
        self._neutral_share = np.where(lacks, share_of, 0.0)[partial]

    def constants(self) -> Constants:
        """Return the arrays of `combine`."""
        dense = {name: matrix.toarray()[self.groups] for name, matrix in self.matrices.items()}
        return dense | {"neutral_share": self._neutral_share}

    def list_matrices(self) -> tuple[csr_array, list[csr_array], NDArray[np.float64]]:
        """Return the weights of rankings for classes, for those of each source that lacks some.

        The last array has the weights of these sources for the classes that they lack.
        """
        own, *partial = (matrix[self.groups] for matrix in self.matrices.values())
        return own, partial, self._neutral_share

    def combine(self, log_prob: Array, c: Constants, xp: Library) -> Array:
        """Return one column per class, from one column per ranking.

        ``c`` has the `constants` in another library. NumPy arrays have one column per group, and
        are multiplied by sparse ones.
        """
        if xp is np:
            if self._one_group_each:
                return log_prob * self.matrices["own"].data.astype(log_prob.dtype)
            c = self.matrices | {"neutral_share": self._neutral_share}
        result = log_prob @ c["own"]
        # Symbolic arrays do not know their shape.
        neutral = [
            logsumexp(log_prob @ c[f"partial{i}"], xp, 1)
            - log(self.matrices[f"partial{i}"].shape[1])
            for i in range(self._n_partial)
        ]
        return result + xp.concat(neutral, axis=1) @ c["neutral_share"] if neutral else result


def _connected(ranked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Mark the sources and classes that are connected, directly or through others."""
    n_sources, n_classes = ranked.shape
    source, target = np.nonzero(ranked)
    size = n_sources + n_classes
    graph = csr_array((np.ones(source.size), (source, n_sources + target)), shape=(size, size))
    part = connected_components(graph, directed=False)[1]
    return np.asarray(part[:n_sources, None] == part[n_sources:])


TEMPERATURE_WITH_REFERENCE = 0.25
"""The geometric mean of the best temperatures on held-out seen classes of three data sets with two
classifiers each, rounded. They are .08 to .52."""
POSTERIORS = ("consensus", "mean", "sum")


class ProbabilisticRanking(SemanticHead, BaseEstimator):
    r"""Predict the new class whose ranking is the most probable, given the scores.

    This is the probabilistic method (PR) of Hamm and Belkin (2015) [1]_; equations are those of
    their paper. The scores of a classifier define a model of rankings: Plackett-Luce for one score
    per class (equation 14), Babington-Smith for one score per pair of classes (equation 15). A high
    score makes a seen class likely to come first. A new class is as probable as its ranking is
    under this model. The parameter ``posterior`` decides what
    happens if a new class has several rankings:

    - ``"mean"``: log P(z|x) is the weighted mean of log P(π|x) over the rankings of the class z.
      Nothing is merged. Classes are compared on equal terms even if a source does not rank all of
      them: for that source, such a class gets the average of the classes that it does rank. The
      time per input grows with the number of rankings: with 10 for each class, it is about 4 times
      that of ``"consensus"``, and 7 times that of `WeightedMean`, which merges them when it is
      fitted.
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
        used, because the places of a ranking are not independent observations; with a reference,
        which standardises the log-posteriors, it is .25. `Rehearsal` finds a better value.
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
    missing_ : dict of str to list of str
        The new classes that each incomplete source does not rank; see above. Empty unless
        ``posterior="mean"``.
    unused_ : tuple of str
        The sources that rank only one of several new classes: such sources are not used.

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

    If buses and trams always have high scores, 4 and 2 are low scores for them:

    >>> import numpy as np
    >>> usual = np.random.default_rng(0).normal(size=(200, 5)) + [5, 0, 0, 0, 5]
    >>> head.fit(rankings, reference=usual).predict(logits)
    array(['cat', 'cat'], dtype='<U5')
    """

    name = "probabilistic"
    _learned = (
        *("rankings_", "consensus_", "_usual_contributions"),
        *("_sum_places", "_log_uniform", "_sum_seed"),
    )
    _records: ClassVar[Mapping[str, type]] = {"reference_": Reference}

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

    @property
    def takes_reference(self) -> bool:
        """Whether `fit` can use a reference: the sum over rankings has its own scale."""
        return self.posterior != "sum"

    def require_parameters(self) -> None:
        """Raise for a parameter with a wrong value."""
        super().require_parameters()
        require_k(self.k)
        require_number("decay", self.decay, least=0, below=np.inf)
        require_choice("posterior", self.posterior, POSTERIORS)
        require_whole_number("n_samples", self.n_samples, least=2)
        require_prior(self.prior)
        if self.prior is not None and self.posterior == "mean":
            raise RankshotError(
                "posterior='mean' does not merge rankings, so it needs no prior: use "
                "posterior='consensus' or 'sum', or leave out the prior"
            )

    def _fit(
        self,
        semantics: Rankings,
        reference: Scores | ArrayLike | None,
        labels: object,
    ) -> None:
        """Fit the priors and the consensus of the new classes.

        With a reference, the scores, and then log P(z|x) of each new class, are standardised by
        their means and standard deviations over it. So the result no longer depends on seen classes
        that always have high scores, on new classes whose rankings always fit, and on the scale of
        the scores.
        """
        rankings = require_targets(semantics)
        k = require_k(self.k, rankings.n_items)
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
        self.reference_: Reference | None = None
        self._usual_contributions: NDArray[np.float64] | None = None
        if self.posterior != "mean":
            # The sum has short rankings because it costs much; its priors need not know so little.
            places = min(max(k, DEFAULT_K), rankings.n_items) if is_sum else k
            self.priors_ = fit_priors(rankings, self.prior, places, singles=is_sum)
            self.consensus_ = consensus_rankings(rankings, self.priors_, places).top(k)
        if is_sum:
            self._draw_numbers(k)
        self._prepare()
        if reference is not None:
            table = as_reference(reference, self.items_)
            self.reference_ = self._fit_reference(table)
            # The mean contributions are needed for explanations and files only, and take long.
            self._reference_values = table.values

    def _draw_numbers(self, k: int) -> None:
        """Draw the random numbers of a sum over too many rankings; they are part of the head."""
        self._sum_places = k
        self._log_uniform: NDArray[np.float64] | None = None
        self._sum_seed: int | None = None
        if perm(len(self.items_), k) > MAX_RANKINGS:
            rng = np.random.default_rng(self.random_state)
            self._log_uniform = -rng.standard_exponential((k, self.n_samples))
            self._sum_seed = int(rng.integers(2**32))

    def _prepare(self) -> None:
        """Build the scorers of the rankings that are compared."""
        self._compared = self.consensus_ or self.rankings_
        self._mean: MeanOverSources | None = None
        if self.posterior == "mean":
            self._mean = MeanOverSources(self._compared, self.classes_)
        self.missing_ = {} if self._mean is None else self._mean.missing
        self.unused_ = () if self._mean is None else self._mean.unused
        self._scorers = Scorers(self._compared, self.decay)
        self._grouped: dict[Kind, GroupedScorer] = {}
        if self.posterior == "sum":
            models = [self.priors_[target] for target in self.classes_]
            self._sum = SumOverRankings(
                models, self.items_, self._sum_places, self._log_uniform, self._sum_seed
            )

    def _describe_state(self) -> dict[str, object]:
        if self.reference_ is not None:
            self._average_contributions(self.reference_)
        return super()._describe_state() | _describe_priors(self.priors_)

    def _restore_state(self, state: Mapping[str, Any]) -> None:
        self.priors_ = _restore_priors(state, require_prior(self.prior), self.items_)
        super()._restore_state(state)

    def _default_temperature(self) -> float:
        if self.reference_ is not None:
            return TEMPERATURE_WITH_REFERENCE
        return float(np.sqrt(self._compared.lengths.max())) if self.posterior == "mean" else 1.0

    def _formula_constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        constants = {} if self.reference_ is None else self.reference_.constants()
        if xp is np:
            return constants
        if self.posterior == "sum":
            raise RankshotError(
                "posterior='sum' needs NumPy arrays. posterior='mean' and posterior='consensus' "
                "accept arrays of any library"
            )
        constants |= self._scorers.get_scorer(kind).constants(dtype)
        return constants if self._mean is None else constants | self._mean.constants()

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        if self.posterior == "sum":
            return self._sum.log_proba_by_target(f, kind)[0].T
        if self.reference_ is None:
            return self._raw_formula(f, kind, c, xp, lost)
        self.reference_.require_kind(kind)
        f = standardize(f, c["score_mean"], c["score_std"])
        result = self._raw_formula(f, kind, c, xp, lost)
        return standardize(result, c["target_mean"], c["target_std"])

    def _raw_formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        """Return the log-posterior before it is standardised by the reference."""
        if xp is np:
            log_prob = self._grouped_scorer(kind).log_prob(f).T
        else:
            log_prob = self._scorers.get_scorer(kind)(f, c, xp, lost)
        return log_prob if self._mean is None else self._mean.combine(log_prob, c, xp)

    def _grouped_scorer(self, kind: Kind) -> GroupedScorer:
        """Return P(π|x) on NumPy arrays, built on first use."""
        if kind not in self._grouped:
            groups = np.arange(len(self._compared)) if self._mean is None else self._mean.groups
            scorer = self._scorers.get_scorer(kind)
            self._grouped[kind] = GroupedScorer(scorer, self._compared, self.decay, groups)
        return self._grouped[kind]

    def _fit_reference(self, table: Scores) -> Reference:
        """Return the means and standard deviations over some inputs."""
        values, kind = table.values, table.kind
        mean, std = mean_and_std(values)
        blocks = row_blocks(len(values), 1, self._block_rows(kind))
        scaled = (standardize(values[rows], mean, std) for rows in blocks)
        of_targets = np.concatenate([self._raw_formula(f, kind, {}, np, None) for f in scaled])
        return Reference(kind, mean, std, *mean_and_std(of_targets))

    def _formula_cells(self, kind: Kind) -> int:
        return self._scorers.get_scorer(kind).cells_per_input

    def _block_rows(self, kind: Kind) -> int:
        if self.posterior == "sum":
            return CACHED_CELLS // self._sum.cells_per_input
        cells = n_columns(len(self.items_), kind) + len(self._compared)
        # Sparse products are fastest in the cache.
        return (CACHED_CELLS if kind == "one-vs-one" else BLOCK_CELLS // 8) // cells

    def item_contributions(self, values: Floats, kind: Kind) -> NDArray[np.float64]:
        """Return the contributions of seen classes to ``values``, scores of a ``kind``.

        They have the shape (n, new classes, seen classes). See `ItemContributions`.
        """
        if self.reference_ is None:
            return self._split_by_item(kind).of_inputs(values)
        scaled = self.reference_.standardize_scores(values, kind)
        usual = self._average_contributions(self.reference_)
        deviation = self._split_by_item(kind).of_inputs(scaled) - usual
        return np.asarray(deviation / self.reference_.target_std[:, None])

    def _average_contributions(self, reference: Reference) -> NDArray[np.float64]:
        """Return the mean of the contributions over the inputs of the reference; kept."""
        if self._usual_contributions is None:
            scaled = reference.standardize_scores(self._reference_values, reference.kind)
            self._usual_contributions = self._split_by_item(reference.kind).average(scaled)
        return self._usual_contributions

    def _split_by_item(self, kind: Kind) -> ItemContributions:
        if self._mean is not None:
            return ItemContributions(self._compared, self.decay, kind, *self._mean.list_matrices())
        # One ranking for each class, in their order.
        n = len(self.classes_)
        each, none = csr_array(np.eye(n)), np.empty((0, n))
        return ItemContributions(self._compared, self.decay, kind, each, [], none)

    def source_log_posteriors(
        self, values: Floats, kind: Kind
    ) -> tuple[tuple[str, ...], NDArray[np.float64]]:
        """Return the names of the sources, and the log-posteriors by each source alone.

        ``values`` are scores of a ``kind``. If all rankings have one source, its raters take the
        place of sources. The array has the shape (n, new classes, sources), and NaN where a source
        has no ranking of a class. It is empty for one-vs-one scores if the rankings have different
        lengths, because their probabilities cannot be compared.
        """
        uneven = np.ptp(self.rankings_.lengths) > 0 or self.rankings_.is_subset.any()
        if kind == "one-vs-one" and uneven:
            return super().source_log_posteriors(values, kind)
        names, labels = sources_or_raters(self.rankings_)
        if self.reference_ is not None:
            values = self.reference_.standardize_scores(values, kind)
        log_prob = Scorers(self.rankings_, self.decay).get_scorer(kind).log_prob(values)
        log_posteriors = np.full((len(values), len(self.classes_), len(names)), np.nan)
        for z, s in product(range(len(self.classes_)), range(len(names))):
            theirs = (self.rankings_.targets == self.classes_[z]) & (labels == names[s])
            if theirs.any():
                weights = self.rankings_.weights[theirs]
                log_posteriors[:, z, s] = np.average(log_prob[:, theirs], axis=1, weights=weights)
        if self.reference_ is not None:
            log_posteriors = self.reference_.standardize_log_posterior(log_posteriors)
        return names, log_posteriors

    def sum_over_rankings(self, scores: Scores | ArrayLike) -> PosteriorSum:
        """Return P(z|x) of ``posterior="sum"``, with the standard error of every probability.

        The standard error is 0 if the sum is exact, or if all samples agree.
        """
        require_choice("posterior", self.posterior, ("sum",))
        check_is_fitted(self, "_sum")
        table = as_scores(scores, self.items_)
        proba = np.empty((len(table), len(self.classes_)))
        error = np.empty(proba.shape)
        for rows in row_blocks(len(table), self._sum.cells_per_input):
            log_proba, errors = self._sum.log_proba_by_target(table.values[rows], table.kind)
            proba[rows], error[rows] = np.exp(log_proba).T, errors.T
        return PosteriorSum(proba, error)


# ---- The priors in a file


def _describe_priors(models: Mapping[str, RankingModel]) -> dict[str, object]:
    """Return what the models of some classes learned: numbers as arrays with one row per class."""
    if not models:
        return {}
    state: dict[str, object] = {"prior_targets": list(models)}
    for name in vars(next(iter(models.values()))):
        if name.endswith("_") and name != "items_":
            values = [getattr(model, name) for model in models.values()]
            is_number = isinstance(values[0], np.ndarray | float | int)
            state[f"prior_{name.strip('_')}"] = np.array(values) if is_number else values
    return state


def _restore_priors(
    state: Mapping[str, Any], prior: RankingModel, items: tuple[str, ...]
) -> dict[str, RankingModel]:
    """Return the fitted models of a state."""
    models: dict[str, RankingModel] = {}
    learned = {
        key.removeprefix("prior_"): value
        for key, value in state.items()
        if key.startswith("prior_") and key != "prior_targets"
    }
    for row, target in enumerate(state.get("prior_targets", ())):
        models[target] = model = clone(prior)
        model.items_ = items
        for name, values in learned.items():
            value = values[row]
            if not isinstance(values, np.ndarray):
                value = _as_tuples(value)
            elif values.ndim == 1:
                value = value.item()
            setattr(model, f"{name}_", value)
    return models


def _as_tuples(value: object) -> object:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


# ---- Terms of the log-posteriors, by seen class


class ItemContributions:
    """The parts of log P(z|x), one for each seen class.

    The r-th term of log P(π|x), minus its value for equal scores, is the contribution of the item
    at the r-th place; tied items share their terms equally. It is the difference between the
    log-probabilities of the first r and of the first r - 1 places. Where a source does not rank a
    class, its rankings of other classes contribute, as far as the class depends on them. The rest
    is shared equally by all seen classes that contribute.

    Parameters
    ----------
    rankings : Rankings
        R rankings of L classes.
    decay : float
        As for `ProbabilisticRanking`.
    kind : str
        The kind of the scores.
    own : sparse array of shape (R, L)
        The weight of each ranking for its class.
    lacking : list of sparse arrays of shape (R, L_s)
        For each source that lacks a class, the weights of its rankings for the classes that it has.
    neutral_share : ndarray
        The weight of each of these sources for the L classes.
    """

    def __init__(
        self,
        rankings: Rankings,
        decay: float,
        kind: Kind,
        own: csr_array,
        lacking: list[csr_array],
        neutral_share: Floats,
    ) -> None:
        self._weights = stage_weights(rankings, decay)
        self._scorers = [
            Scorers(rankings.top(place + 1)).get_scorer(kind)
            for place in range(self._weights.shape[1])
        ]
        self._shape = own.shape[1], rankings.n_items
        self._lacking, self._neutral_share = lacking, neutral_share
        begin, size, _, _ = rankings.groups
        begin, size, row = np.repeat(begin, size), np.repeat(size, size), rankings.entry_rows
        end = np.minimum(begin + size, rankings.lengths[row])
        (n, L), C, self._own = own.shape, rankings.n_items, own
        # A ranking is of one class.
        class_of, weight_of = own.indices, own.data
        self._members, self._cells = [], []
        for place in range(len(self._scorers)):
            there = np.flatnonzero((begin <= place) & (place < end))
            ranking, item, share = row[there], rankings.codes[there], 1 / size[there]
            self._members.append(csr_array((share, (ranking, item)), (n, C)))
            # One row of items for each class, one after the other.
            column = class_of[ranking] * C + item
            cells = weight_of[ranking] * share, (ranking, column)
            self._cells.append(csr_array(cells, (n, L * C)))
        listed = csr_array(sum(self._members))
        weights = (own.T @ listed).toarray()
        for share, within in zip(neutral_share, lacking, strict=True):
            weights += share[:, None] * (within.sum(axis=1) @ listed)
        self._contributes = weights > 0

    def of_inputs(self, values: Floats) -> NDArray[np.float64]:
        """Return the contributions, of shape (n, classes, seen classes)."""
        return self._add_up(values, np.eye(len(values)))

    def average(self, values: Floats) -> NDArray[np.float64]:
        """Return the mean of the contributions over inputs, of shape (classes, seen classes)."""
        total = np.zeros(self._shape)
        for rows in row_blocks(len(values), self._weights.size):
            total += self._add_up(values[rows], np.ones((1, len(values[rows]))))[0]
        return total / len(values)

    def _add_up(self, values: Floats, pool: Floats) -> NDArray[np.float64]:
        """Return sums of contributions, with one row of ``pool`` for each sum over inputs."""
        L, C = self._shape
        terms = self._find_terms(values)
        log_prob = np.sum(terms, axis=0)
        result = sum(
            (pool @ term) @ cells for term, cells in zip(terms, self._cells, strict=True)
        ).reshape(-1, L, C)
        if not self._lacking:
            return np.asarray(result)
        total = log_prob @ self._own
        for share, within in zip(self._neutral_share, self._lacking, strict=True):
            by_class = log_prob @ within
            largest = by_class.max(axis=1, keepdims=True)
            mean = largest + np.log(np.exp(by_class - largest).mean(axis=1, keepdims=True))
            total = total + mean * share
            # A class that the source lacks depends on its most probable classes.
            slopes = softmax(by_class, axis=1) @ within.T
            by_item = sum(
                (pool @ (slopes * term)) @ members
                for term, members in zip(terms, self._members, strict=True)
            )
            result = result + share[:, None] * by_item[:, None]
        left = pool @ total - result.sum(axis=2)
        number = np.maximum(self._contributes.sum(axis=1), 1)
        return np.asarray(result + self._contributes * (left / number)[:, :, None])

    def _find_terms(self, values: Floats) -> list[NDArray[np.float64]]:
        """Return the terms of log P(π|x), one array of inputs by rankings for each place."""
        until = np.array([scorer.log_prob(values) for scorer in self._scorers])
        return list(np.diff(until, axis=0, prepend=0) * self._weights.T[:, None])

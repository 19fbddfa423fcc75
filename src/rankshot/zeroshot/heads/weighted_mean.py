"""Weighted Mean: new classes by the mean score of the seen classes that their rankings list."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator

from rankshot.core.arrays import (
    BLOCK_CELLS,
    CACHED_CELLS,
    Array,
    Constants,
    Dtype,
    Library,
    Lost,
)
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number
from rankshot.ranking.rankings import Rankings
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.zeroshot.examples import (
    EXPLAINED_BY_RATERS,
    EXPLAINED_BY_TABLES,
    SHARE,
    Prototypes,
    Signal,
)
from rankshot.zeroshot.heads.base import (
    DECAY,
    Reference,
    as_reference,
    quote_sources,
    require_k,
    require_targets,
    source_names,
    sources_of,
    sources_or_raters,
)
from rankshot.zeroshot.heads.semantic_head import SemanticHead
from rankshot.zeroshot.scores import (
    Kind,
    Scores,
    center_rows,
    class_scores,
    count_effective,
    count_predictions,
    pair_constants,
    standardize_blocks,
    standardize_rows,
)

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
TEMPERATURE = 0.7
TEMPERATURE_BY_TABLES = 1.0
"""The default temperatures, for rankings by raters and for those from similarity tables, which
explain less. The best ones on held-out seen classes of four data sets are .38 to .93 and .70 to
1.60. They do not depend on the number of seen classes: for raters and a network of 1,000 outputs
they are 1.02 without a reference and .65 with one."""
ROUNDING = 1e-12
"""Weights that are smaller than this are zeros with a rounding error."""
UNCERTAINTY = 0.1
"""The variance of each score that the rankings leave open, as a share of the sum of all
variances. From .05 to .2, the accuracy on held-out seen classes is the same."""


class WeightedMean(SemanticHead, BaseEstimator):
    r"""Predict the new class whose ranked seen classes have the highest weighted mean score.

    .. math:: \log P(z|x) = \frac{1}{T} \sum_i w_{zi} f_i(x) + \text{const}

    The weight of a seen class i falls with its place r in a ranking of the new class z as r^-decay,
    and is 0 after the first k places. The weights of a ranking add up to 1. Tied classes share the
    weights of their places. For subset rankings, the mean weight of the listed classes is
    subtracted, because they were compared with each other only. If z has several rankings, the
    weights are the mean over them. Finally, they are scaled to unit length, so that a new class
    with few or short rankings has no advantage.

    Not all sources are equally reliable. By default, only rankings of sources with raters (people,
    language models) are used. Tables without raters (WordNet, word vectors, corpora) are
    *fallbacks*: they are used only for classes that no rater ranked. If there are no raters, tables
    that do not rank all new classes are fallbacks. With a reference, so are sources that list
    unrelated classes together.

    The scores f of each input are standardised to mean 0 and variance 1 over the seen classes.
    Without a reference, nothing else is done. As with the methods of Hamm & Belkin (2015),
    "Probabilistic Zero-shot Classification with Semantic Rankings", rankings and the scores of a
    classifier are enough; a weighted mean replaces the likelihood of a ranking.

    A reference is the baseline of each score. Each score is then standardised over the inputs of
    the reference, so that a seen class whose scores are always high has no advantage. Scores of
    similar seen classes rise and fall together: they are not independent evidence, so they get less
    weight. For this, the weights are multiplied by (R + u C I)^-1, where R is the matrix of
    correlations of the C scores, I the identity and u = .1. This is the linear discriminant whose
    class means are the weights of the rankings, where u is the error of these means. Finally, the
    log-posteriors of each new class are scaled to variance 1 over the reference.

    A reference may lack inputs of some of the C seen classes. The coverage of a class is the weight
    of the reference for this class: a class with coverage 0 is treated as if there were no
    reference. It is n / (n + C) for a class that is predicted for n inputs of the reference. Inputs
    of other classes are a baseline as well: the coverage is at least N / (N + C) · m / C, where N
    is the number of all inputs and m the effective number of predicted classes (Simpson's). It is
    also at least the share of the mean scores that is not due to chance: even a few inputs show
    which scores of a network with 1,000 outputs are always high.

    With labelled examples of new classes, the rankings predict the mean scores of a class, and the
    examples correct them (see `fit_class_means` in ``rankshot.zeroshot.examples``). The weight of
    each is estimated from the examples: rankings that do not agree with them have no influence.

    All this is one matrix product, so the head is as fast as a linear classifier. On held-out
    seen classes of three data sets, it is slightly more accurate than `ProbabilisticRanking` with
    a reference, and equally accurate without.

    Parameters
    ----------
    k : int or None
        The number of places of each ranking that are used; None means all.
    decay : float
        How fast the weights of the places decrease: place r has the weight r^-decay.
    temperature : float or None
        T, by which log-posteriors are divided: a larger T makes the probabilities of the classes
        more equal, but does not change the predictions. By default 1 for rankings from similarity
        tables such as WordNet, and .7 for all others; `Rehearsal` finds a better value.
    evidence_weight : float or None
        The weight of another model's evidence. By default it is estimated without labels; a
        rehearsal finds a better value.
    source_weights : dict of str to float, optional
        The weight of each source, instead of the rule above; "" stands for rankings without a
        source. A source that has weight 0 or is not named is a fallback. A rehearsal finds good
        values.

    example_prior : two numbers, optional
        β and ρ of examples of new classes (see ``examples_``), as a rehearsal measured them on
        held-out seen classes. They matter while there are few examples.

    Attributes
    ----------
    rankings_ : Rankings
        The rankings of the new classes that are used, with the weights of their sources, cut to
        ``k``.
    source_weights_ : dict of str to float
        The weight of each source.
    weights_ : ndarray of shape (new classes, seen classes)
        The weights w.
    coverage_ : ndarray of shape (seen classes,)
        How far the reference covers each seen class, from 0 to 1; zeros without a reference.
    examples_ : ExampleFacts or None
        What was learned from examples.
    evidence_weight_ : float or None
        The weight of evidence, if there was any.
    missing_ : dict of str to list of str
        For each source that is used but does not rank all new classes, the classes that it lacks.
        The weights of such a class are the mean over the other sources.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["tiger", "leopard", "fox"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> logits = [[0.1, 1.2, 3.0, 2.5, -1.0], [4.0, 0.0, 0.0, 0.5, 2.0]]
    >>> head.predict_proba(logits).round(2)
    array([[0.98, 0.02],
           [0.02, 0.98]])
    """

    name = "weighted-mean"
    takes_reference = True
    weighs_sources = True
    _learned = (
        *("rankings_", "source_weights_", "weights_", "coverage_"),
        *("_factor", "_slopes", "_offsets"),
    )
    _records: ClassVar[Mapping[str, type]] = {"reference_": Reference}

    def __init__(
        self,
        *,
        k: int | None = LIST_LENGTH,
        decay: float = DECAY,
        temperature: float | None = None,
        evidence_weight: float | None = None,
        source_weights: Mapping[str, float] | None = None,
        example_prior: tuple[float, float] | None = None,
    ) -> None:
        self.k = k
        self.decay = decay
        self.temperature = temperature
        self.evidence_weight = evidence_weight
        self.source_weights = source_weights
        self.example_prior = example_prior

    def require_parameters(self) -> None:
        """Raise for a parameter with a wrong value."""
        super().require_parameters()
        require_k(self.k)
        require_number("decay", self.decay, least=0, below=np.inf)
        if self.evidence_weight is not None:
            require_number("evidence_weight", self.evidence_weight, least=0, below=np.inf)
        for number in self.example_prior or ():
            require_number("example_prior", number, least=0, below=np.inf)

    def _fit(
        self, semantics: Rankings, reference: Scores | ArrayLike | None, labels: Sequence[str]
    ) -> None:
        """Compute the weights of the seen classes."""
        rankings = require_targets(semantics)
        self.items_ = items = rankings.items
        names = rankings.target_names
        self.classes_ = np.unique([*names, *labels])
        self.coverage_ = np.zeros(len(items))
        usual = correlations = None
        if reference is not None:
            usual, correlations = self._find_usual(as_reference(reference, items))
        rankings = rankings.top(require_k(self.k, rankings.n_items))
        self.source_weights_ = self._choose_sources(rankings, correlations)
        self.rankings_ = weigh_sources(rankings, self.source_weights_)
        self.weights_ = np.nan_to_num(self._mean_weights(self.rankings_))
        self.reference_: Reference | None = None
        self._factor: Doubles | None = None
        self._slopes, self._offsets = self.weights_, np.zeros(len(self.classes_))
        if usual is not None and correlations is not None:
            self._fit_reference(usual, correlations)
        self._prepare()

    def _prepare(self) -> None:
        self.missing_ = _find_missing(self.rankings_, self.source_weights_ or {})
        usual = self.reference_
        self._target_std: Any = 1.0 if usual is None else usual.target_std[:, None]

    def _prototypes(self) -> Prototypes:
        directions = self.weights_ - self.weights_.mean(axis=1, keepdims=True)
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        directions /= np.where(length > ROUNDING, length, np.inf)
        explained = EXPLAINED_BY_RATERS if self._by_raters else EXPLAINED_BY_TABLES
        if self.example_prior is not None:
            slope, signal = self.example_prior
            explained = max(slope**2 / max(signal, ROUNDING), ROUNDING), explained[1]
        return Prototypes(directions, explained)

    def _usual_signal(self) -> Signal | None:
        if self.example_prior is None:
            return None
        return Signal(max(self.example_prior[1], ROUNDING), SHARE[1])

    def _coverage(self) -> Doubles:
        return self.coverage_

    def _mean_weights(self, rankings: Rankings) -> Doubles:
        """Return the weights of the classes by some of the rankings; NaN for a class without."""
        z = np.searchsorted(self.classes_, rankings.targets.astype(str))
        shape = len(self.classes_), len(rankings)
        total = csr_array((rankings.weights, (z, np.arange(len(rankings)))), shape)
        weights = (total @ listed_weights(rankings, self.decay)).toarray()
        length = np.linalg.norm(weights, axis=1, keepdims=True)
        # Subset rankings that contradict each other have no weights.
        weights /= np.where(length > ROUNDING * total.sum(axis=1)[:, None], length, np.inf)
        weights[np.bincount(z, minlength=shape[0]) == 0] = np.nan
        return np.asarray(weights)

    def _choose_sources(self, rankings: Rankings, correlations: Doubles | None) -> dict[str, float]:
        """Return the weight of each source."""

        def coherence(part: Rankings) -> float:
            if correlations is None:
                return np.inf
            return measure_coherence(np.nan_to_num(self._mean_weights(part)), correlations)

        if self.source_weights is not None:
            return require_source_weights(self.source_weights, rankings)
        return choose_source_weights(rankings, coherence)

    def _find_usual(self, table: Scores) -> tuple[Reference, Doubles]:
        """Return what is usual for the scores over a reference, and their correlations.

        Both hold as far as the reference covers each seen class.
        """
        C = len(self.items_)
        total, products, counts = np.zeros(C), np.zeros((C, C)), np.zeros(C)
        for f in standardize_blocks(table):
            total += f.sum(axis=0)
            products += f.T @ f
            counts += count_predictions(f)
        mean = total / len(table)
        covariance = products / len(table) - np.outer(mean, mean)
        trust = measure_trust(mean, covariance, counts)
        self.coverage_ = coverage = np.maximum(measure_coverage(counts), trust)
        variance = covariance.diagonal()
        std = np.sqrt(np.where(variance > ROUNDING, variance, 1.0))
        correlations = covariance / np.outer(std, std) * np.sqrt(np.outer(coverage, coverage))
        np.fill_diagonal(correlations, 1.0)
        of_targets = np.zeros(len(self.classes_)), np.ones(len(self.classes_))
        usual = Reference(table.kind, coverage * mean, std**coverage, *of_targets)
        return usual, correlations

    def _fit_reference(self, usual: Reference, correlations: Doubles) -> None:
        """Set the slopes of the log-posteriors by what is usual."""
        C = len(self.items_)
        factor = cho_factor(correlations + UNCERTAINTY * C * np.eye(C))
        # The other half of the matrix is not used.
        self._factor = factor[0][~np.tri(C, k=-1, dtype=bool)]
        slopes = cho_solve(factor, self.weights_.T).T
        target_variance = ((slopes @ correlations) * slopes).sum(axis=1)
        target_std = np.sqrt(np.where(target_variance > ROUNDING, target_variance, 1.0))
        self.reference_ = replace(usual, target_std=target_std)
        self._slopes = slopes / target_std[:, None] / usual.score_std
        self._offsets = -self._slopes @ usual.score_mean

    def _decorrelate(self, rows: Floats) -> Doubles:
        """Return rows times (R + u C I)^-1."""
        factor = np.zeros((len(self.items_),) * 2, order="F")
        factor[~np.tri(len(factor), k=-1, dtype=bool)] = self._factor
        return np.asarray(cho_solve((factor, False), rows.T.astype(np.float64)).T)

    @property
    def _by_raters(self) -> bool:
        """Whether people or language models ranked; a ranking without a source is the user's."""
        return bool(self.rankings_.rater_names) or not self.rankings_.source_names

    def _default_temperature(self) -> float:
        return TEMPERATURE if self._by_raters else TEMPERATURE_BY_TABLES

    def _formula_constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        # In single precision if the scores are.
        slopes = self._slopes.astype(dtype, copy=False).T
        own = {"slopes": slopes, "offsets": self._offsets}
        return own | pair_constants(len(self.items_), kind, xp)

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        if self.reference_ is not None:
            self.reference_.require_kind(kind)
        scores, std = center_rows(class_scores(f, kind, len(self.items_), c, xp), xp)
        return scores @ c["slopes"] / std + c["offsets"]

    def _block_rows(self, kind: Kind) -> int:
        # A matrix product is slower in blocks of a few rows.
        factor = BLOCK_CELLS // CACHED_CELLS if kind == "one-vs-one" else 4
        return factor * super()._block_rows(kind)

    def _evidence_of_items(self, values: Floats, kind: Kind) -> Doubles:
        """Return what the score of each seen class tells, in the order of ``items_``."""
        f: Doubles = standardize_rows(values, kind, len(self.items_))
        if self.reference_ is not None:
            f = self._decorrelate(self.reference_.standardize_scores(f, kind))
        return f

    def item_contributions(self, values: Floats, kind: Kind) -> Doubles:
        """Return what the rankings add to the log-posteriors of ``values``, scores of a ``kind``.

        They have the shape (n, new classes, seen classes).

        With a reference, the term of a seen class is its weight times what its score adds beyond
        the scores of the classes that it is correlated with.
        """
        f = self._evidence_of_items(values, kind)
        return np.asarray(self.weights_ * f[:, None] / self._target_std)

    def source_log_posteriors(self, values: Floats, kind: Kind) -> tuple[tuple[str, ...], Doubles]:
        """Return the names of the sources, and the log-posteriors by each source alone.

        ``values`` are scores of a ``kind``. If all rankings have one source, its raters take the
        place of sources. The array has the shape (n, new classes, sources), and NaN where a source
        has no ranking of a class.
        """
        names, labels = sources_or_raters(self.rankings_)
        f = self._evidence_of_items(values, kind)
        weights = np.array([self._mean_weights(self.rankings_[labels == s]) for s in names])
        log_posteriors = np.einsum("szi,ni->nzs", weights.reshape(-1, *self.weights_.shape), f)
        return names, log_posteriors / self._target_std


def listed_weights(rankings: Rankings, decay: float) -> csr_array:
    """Return the weights of the items that each ranking lists, with one row per ranking.

    The weight of an item falls with its place r as r^-decay. Items of a tie share the weights of
    their places, as far as these are among the first K. Each row has the sum 1. Of a subset
    ranking, the mean over the items that it lists is subtracted: it compares no others.

    Examples
    --------
    >>> lists = Rankings.from_orders([["a", ["b", "c"]]], items=["a", "b", "c", "d"])
    >>> listed_weights(lists.top(2), decay=1).toarray().round(3)
    array([[0.667, 0.167, 0.167, 0.   ]])
    """
    places = 1.0 + np.arange(rankings.lengths.max(initial=0))
    total = np.append(0.0, np.cumsum(places**-decay))
    begin, size, row, _ = rankings.groups
    last = rankings.lengths[row]
    share = total[np.minimum(begin + size, last)] - total[np.minimum(begin, last)]
    listed = np.repeat(share / total[last] / size, size)
    rows = rankings.entry_rows
    listed -= np.where(rankings.is_subset, 1 / rankings.n_listed, 0.0)[rows]
    return csr_array((listed, (rows, rankings.codes)), (len(rankings), rankings.n_items))


def measure_coverage(counts: Doubles) -> Doubles:
    """Return how far a reference covers each class, from the number of its predictions."""
    n, C = counts.sum(), len(counts)
    return np.asarray(np.maximum(counts / (counts + C), n / (n + C) * count_effective(counts) / C))


def measure_trust(mean: Doubles, covariance: Doubles, counts: Doubles) -> Doubles:
    """Return how far the mean scores of a reference can be told from chance, from 0 to 1.

    This is empirical Bayes, as in the estimator of James and Stein: true means have the variance b,
    and their errors the variance e, so b / (b + e) of a measured mean is true. Inputs of one class
    are not independent, so classes count, not inputs: ``counts`` are the numbers of inputs that
    each class is predicted for. b is one standard error below its estimate, since few classes
    hardly tell it.
    """
    m, total = count_effective(counts), np.trace(covariance)
    if m <= 1 or total <= ROUNDING:
        # All inputs are of one class, or the same.
        return np.zeros(len(mean))
    error = covariance.diagonal() / (m - 1)
    directions = total**2 / (covariance**2).sum()
    true = (mean**2).mean() - error.mean() * (1 + np.sqrt(2 / directions))
    return np.asarray(true / (true + error)) if true > 0 else np.zeros(len(mean))


def _find_missing(rankings: Rankings, weights: Mapping[str, float]) -> dict[str, list[str]]:
    """Return for each source that counts the targets that it does not rank, if there are any."""
    sources = sources_of(rankings)
    missing = {
        source: sorted({*rankings.target_names} - {*rankings.targets[sources == source]})
        for source, weight in weights.items()
        if weight > 0
    }
    return {source: classes for source, classes in missing.items() if classes}


# ---- Weights of sources

LEAST_COHERENCE = 1.64
"""Standard deviations above chance: of sources with random lists, one in 20 is above."""


def choose_source_weights(
    rankings: Rankings, coherence: Callable[[Rankings], float]
) -> dict[str, float]:
    """Return the default weight of each source: 1 or 0.

    Sources with raters (people, language models) count. Those without (tables: WordNet, vectors,
    corpora) count only if there are no others, and if they rank all classes that any such table
    ranks. A source does not count if it is not more coherent than chance and clearly less coherent
    than another one: with few classes, no source may be above chance. Sources that do not count
    fill in: see `weigh_sources`.

    Parameters
    ----------
    rankings : Rankings
    coherence : function
        Returns how coherent the rankings of a source are, as `measure_coherence`; infinite where
        this is not known.
    """
    names = sources_of(rankings)
    parts = {source: rankings[names == source] for source in source_names(rankings)}
    if len(parts) == 1:
        return dict.fromkeys(parts, 1.0)
    found = {source: coherence(part) for source, part in parts.items()}
    best = max((value for value in found.values() if value < np.inf), default=0.0)
    # The difference of two coherences has twice the variance of one.
    least = min(LEAST_COHERENCE, best - np.sqrt(2) * LEAST_COHERENCE)
    trusted = [source for source in parts if found[source] >= least]
    if raters := [source for source in trusted if parts[source].rater_names]:
        trusted = raters
    else:
        most = max(len(parts[source].target_names) for source in trusted)
        trusted = [s for s in trusted if len(parts[s].target_names) == most]
    return {source: float(source in trusted) for source in parts}


def measure_coherence(listed: Floats, correlations: Floats) -> float:
    r"""Return how coherent lists are, in standard deviations above chance.

    Seen classes that are listed together should have scores that rise and fall together. This is
    Mantel's statistic [1]_, :math:`\sum_{i \ne j} A_{ij} R_{ij}`, with the correlations R of the
    scores and A = w'w, where w are the weights of the seen classes in the lists of each new class.
    Its mean and variance over all permutations of the seen classes have a closed form. It is
    infinite where nothing can be told, as with fewer than four seen classes.

    Parameters
    ----------
    listed : ndarray of shape (new classes, seen classes)
        w.
    correlations : ndarray of shape (seen classes, seen classes)
        R.

    References
    ----------
    .. [1] N. Mantel, "The detection of disease clustering and a generalized regression approach",
       Cancer Research 27 (1967), 209-220.
    """
    n = len(correlations)
    if n < 4:
        return np.inf
    together = listed.T @ listed
    # Without their means over pairs, both have the mean 0.
    A, R = (_center_pairs(matrix) for matrix in (together, correlations))
    pairs = n * (n - 1)
    a, r = (np.array([(x**2).sum(), (x.sum(axis=1) ** 2).sum()]) for x in (A, R))
    variance = 2 * a[0] * r[0] / pairs
    variance += 4 * (a[1] - a[0]) * (r[1] - r[0]) / (pairs * (n - 2))
    variance += (2 * a[0] - 4 * a[1]) * (2 * r[0] - 4 * r[1]) / (pairs * (n - 2) * (n - 3))
    scale = a[0] * r[0] / pairs
    if variance <= np.finfo(float).eps * max(scale, 1.0):
        return np.inf
    return float((A * R).sum() / np.sqrt(variance))


def _center_pairs(matrix: Floats) -> Floats:
    """Return a symmetric matrix without its diagonal, and without the mean of all other cells."""
    n = len(matrix)
    others = ~np.eye(n, dtype=bool)
    return np.where(others, matrix - matrix[others].mean(), 0.0)


def weigh_sources(rankings: Rankings, weights: Mapping[str, float]) -> Rankings:
    """Multiply the weights of rankings by those of their sources.

    A source with the weight 0 only fills in: its rankings count for classes that no other ranks.
    """
    weighed = rankings.weights * [weights[source] for source in sources_of(rankings)]
    targets = rankings.targets.astype(str)
    is_lost = ~np.isin(targets, targets[weighed > 0])
    weighed = np.where(is_lost, rankings.weights, weighed)
    return replace(rankings, weights=weighed)[weighed > 0]


def require_source_weights(weights: Mapping[str, float], rankings: Rankings) -> dict[str, float]:
    """Return the weights of the sources of some rankings, 0 for those that are not named.

    At least one must be above 0.
    """
    if not isinstance(weights, Mapping):
        raise RankshotError(
            f"source_weights must be a dict of sources and weights, not {short_repr(weights)}"
        )
    for source, weight in weights.items():
        require_number(f"source_weights[{source!r}]", weight, least=0, below=np.inf)
    found = {source: float(weights.get(source, 0.0)) for source in source_names(rankings)}
    if not any(found.values()):
        wanted = quote_sources(source for source, weight in weights.items() if weight > 0)
        raise RankshotError(
            f"no ranking by {wanted or 'a source'} with a weight in source_weights, only by "
            f"{quote_sources(found)}"
        )
    return found

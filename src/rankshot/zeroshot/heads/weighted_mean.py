"""Weighted Mean: new classes by the mean score of the seen classes that their rankings list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import sqrt
from typing import Any

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
    Library,
    Lost,
    largest,
    log_softmax,
    row_blocks,
    row_norm,
)
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number
from rankshot.ranking.matrices import group_by_place
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.evidence import (
    USUAL_WEIGHTS,
    as_examples,
    center_evidence,
    refine,
    weigh_evidence,
)
from rankshot.zeroshot.heads.base import (
    ROUNDING_UNITS,
    BaseHead,
    Reference,
    as_reference,
    require_k,
    require_targets,
    require_temperature,
    sources_of,
    sources_or_raters,
)
from rankshot.zeroshot.scores import Kind, Scores, class_scores, pair_constants
from rankshot.zeroshot.source_weights import (
    choose_source_weights,
    measure_coherence,
    require_source_weights,
    weigh_sources,
)

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
MOST_PLACES = 15
"""The default k. Lists of 15 classes were slightly better than lists of 10 on held-out seen
classes."""
TEMPERATURE = 0.9
TEMPERATURE_WITH_REFERENCE = 0.5
"""The default temperatures for up to 100 seen classes: geometric means of the best ones on held-out
seen classes of three data sets with two classifiers each, which are .76 to 1.23 without a reference
and .38 to .66 with one that covers all seen classes."""
MANY_CLASSES = 100
TEMPERATURE_POWER = 0.2
"""Among more seen classes the temperature grows with this power of their number."""
COVERING_INPUTS = 10
"""A reference covers a seen class by half if it has this many inputs of it."""
COVERAGE_BY_OTHERS = {"multiclass": 0.5, "one-vs-rest": 0.0, "one-vs-one": 0.0}
"""How far a reference of very many classes covers those that it lacks. The scores of one softmax
depend on each other, so that inputs of some classes tell what is usual for the others."""
TIED_SCORES = 1e-5
"""Standardised scores that differ by less are equal: then both classes are predicted by half."""
ROUNDING = 1e-12
"""Weights that are smaller than this are zeros with a rounding error."""
UNCERTAINTY = 0.1
"""The variance of each score that the rankings leave open, as a share of the sum of all
variances. From .05 to .2, the accuracy on held-out seen classes is the same."""


class WeightedMean(BaseHead, BaseEstimator):
    r"""A new class is probable if the seen classes in its rankings have high scores.

    .. math:: \log P(z|x) = \frac{1}{T} \sum_i w_{zi} f_i(x) + \text{const}

    The weight of a seen class i falls with its place r in a ranking of the new class z as
    r^-decay, and is 0 after the first k places. The weights of a ranking have the sum 1. Tied
    classes share the weights of their places. Of a subset ranking, the mean weight of the listed
    classes is subtracted, because they were compared with each other only. If z has several
    rankings, the weights are the mean over them. Last, they are scaled to the sum of squares 1, so
    that a new class with few or short rankings has no advantage.

    Not all sources deserve the same trust. By default, the rankings of sources with raters (people,
    language models) count. Those of tables without raters (WordNet, word vectors, corpora) only
    fill in: they count for classes that no rater ranked. Without raters, tables that lack classes
    fill in. With a reference, so do sources that list unrelated classes together.

    The scores f of each input have mean 0 and variance 1 over the seen classes. With a reference,
    they are then standardised over its inputs, and seen classes whose scores rise and fall together
    count less: with the matrix R of their correlations, the weights are multiplied by (R + u C
    I)^-1 with u = .1. This is the linear discriminant if the rankings give the mean scores of a
    class only roughly. Instead of the sum of squares, the variance of each new class over the
    reference is 1. A seen class c counts in means, variances and correlations as far as the
    reference covers it: with n inputs for which c is the prediction, this is n / (n + 10). Scores
    of one softmax depend on each other, so that m classes cover all others at least by half of m /
    (m + 10). A reference that lacks most classes changes little.

    With labelled examples of new classes,

    .. math:: \log P(z|x) = a \log P_{rankings}(z|x) + b \, g_z(x) + \text{const}

    where g is a ridge regression on the features of the examples, or else on their standardised
    scores. How much the rankings and the examples count, a and b, follows from the examples: each
    is predicted from the others. With one example per class, a = .8 and b = .2, unless a rehearsal
    found other numbers.

    Evidence of another model, as rows of numbers e, where larger means more likely, adds
    c (e - mean e) / s, where s is the standard deviation over all inputs of `fit`. Its weight c is
    at most 1, and follows from how often the head and the evidence agree.

    All this is one matrix product, so the head is as fast as a linear classifier. On held-out
    seen classes of three data sets, it is slightly more accurate than `ProbabilisticRanking` with
    a reference, and equally accurate without.

    Parameters
    ----------
    k : int or None
        The number of places of each ranking that count; all for None.
    decay : float
        How fast the weight of the places falls.
    temperature : float or None
        T. A larger temperature makes the probabilities of the classes more equal; the decisions
        are the same. By default .9 without a reference, .5 with one that covers all seen classes,
        and more if there are more than 100 of them. `Rehearsal` finds a better value.
    evidence_weight : float or None
        c. By default it is found without labels; a rehearsal finds a better value.
    source_weights : dict of str to float, optional
        By which the weights of the rankings of each source are multiplied, instead of the rule
        above; "" for rankings without a source. A source with the weight 0, or that is not named,
        fills in. A rehearsal finds good values.

    example_prior : two numbers, optional
        The usual a, and b for one example per class. By default .8 and .2; a rehearsal finds
        better values.

    Attributes
    ----------
    rankings_ : Rankings
        The rankings of the new classes that count, with the weights of their sources, cut to ``k``.
    source_weights_ : dict of str to float
        The weight of each source.
    weights_ : ndarray of shape (new classes, seen classes)
        The weights w.
    coverage_ : ndarray of shape (seen classes,)
        How far the reference covers each seen class, from 0 to 1; zeros without a reference.
    example_weights_ : tuple of two numbers, or None
        a and b, if there were examples.
    evidence_weight_ : float or None
        c, if there was evidence.
    missing_ : dict of str to list of str
        For each source that counts and does not rank all new classes, those that it lacks. The
        weights of such a class are the mean over the other sources.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["tiger", "leopard", "fox"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> logits = [[0.1, 1.2, 3.0, 2.5, -1.0], [4.0, 0.0, 0.0, 0.5, 2.0]]
    >>> head.predict_proba(logits).round(2)
    array([[0.96, 0.04],
           [0.04, 0.96]])
    """

    _learned = (
        *("rankings_", "source_weights_", "weights_", "reference_", "coverage_", "_factor"),
        *("example_weights_", "evidence_weight_", "_slopes", "_offsets", "_feature_slopes"),
    )

    def __init__(
        self,
        *,
        k: int | None = MOST_PLACES,
        decay: float = 0.5,
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

    def fit(
        self,
        rankings: Rankings,
        reference: Scores | ArrayLike | None = None,
        examples: tuple[Scores | ArrayLike, ArrayLike] | None = None,
        evidence: Scores | None = None,
    ) -> WeightedMean:
        """Compute the weights of the seen classes.

        Parameters
        ----------
        rankings : Rankings
            Rankings of the seen classes, at least one for each new class. Their weights count.
        reference : Scores or array-like, optional
            Scores of varied inputs of seen classes that the classifier was not trained on; no
            labels are needed.
        examples : scores and labels, optional
            Scores of inputs of new classes, and the class of each. There may be any number of them,
            even for classes that have no ranking. If these are `Scores` with ``features``, all
            scores to be classified must have such features.
        evidence : Scores, optional
            Scores with ``evidence``, of inputs as they will be classified; no labels are needed.
            All scores to be classified must have evidence of the same model.
        """
        rankings = require_targets(rankings)
        require_temperature(self.temperature)
        require_number("decay", self.decay, least=0, below=np.inf)
        if self.evidence_weight is not None:
            require_number("evidence_weight", self.evidence_weight, least=0, below=np.inf)
        for number in self.example_prior or ():
            require_number("example_prior", number, above=0, below=np.inf)
        if evidence is not None and not isinstance(evidence, Scores):
            raise RankshotError(
                "evidence must be Scores(values, items, evidence=...) of inputs to be classified, "
                f"not {short_repr(evidence)}"
            )
        self.items_ = items = rankings.items
        names = rankings.target_names
        labelled = None if examples is None else as_examples(examples, items, names)
        labels = [] if labelled is None else labelled[1].tolist()
        self.classes_ = np.unique([*names, *labels])
        self.coverage_ = np.zeros(len(items))
        usual = None if reference is None else self._find_usual(as_reference(reference, items))
        rankings = rankings.top(require_k(self.k, rankings.n_items))
        self.source_weights_ = self._choose_sources(rankings, None if usual is None else usual[1])
        self.rankings_ = weigh_sources(rankings, self.source_weights_)
        self.weights_ = np.nan_to_num(self._mean_weights(self.rankings_))
        self.reference_: Reference | None = None
        self._factor: Doubles | None = None
        self._slopes, self._offsets = self.weights_, np.zeros(len(self.classes_))
        if usual is not None:
            self._fit_reference(*usual)
        # A class without rankings is as probable as the others on average: their log-posteriors
        # have variance 1.
        unranked = ~np.isin(self.classes_, names)
        self._offsets[unranked] = 0.5 / self.temperature_
        self.example_weights_: tuple[float, float] | None = None
        self._feature_slopes = np.zeros((len(self.classes_), 0))
        if labelled is not None:
            self._fit_examples(*labelled)
        self.evidence_weight_: float | None = None
        if evidence is not None:
            self._fit_evidence(evidence.with_items(self.items_))
        self._prepare()
        return self

    def _prepare(self) -> None:
        self.missing_ = _find_missing(self.rankings_, self.source_weights_)
        usual = self.reference_
        self._target_std: Any = 1.0 if usual is None else usual.target_std[:, None]
        if self.example_weights_ is not None:
            # A file has a list.
            self.example_weights_ = (self.example_weights_[0], self.example_weights_[1])
        # Cast once: there are many blocks of scores.
        self._cast: dict[np.dtype[np.floating], tuple[Floats, Floats]] = {
            np.dtype(dtype): (self._slopes.astype(dtype), self._feature_slopes.astype(dtype))
            for dtype in (np.float32, np.float64)
        }

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
        if self.source_weights is not None:
            return require_source_weights(self.source_weights, rankings)
        if correlations is None:
            return choose_source_weights(rankings)

        def coherence(part: Rankings) -> float:
            return measure_coherence(np.nan_to_num(self._mean_weights(part)), correlations)

        return choose_source_weights(rankings, coherence)

    def _find_usual(self, table: Scores) -> tuple[Reference, Doubles]:
        """Return what is usual for the scores over a reference, and their correlations.

        Both hold as far as the reference covers each seen class.
        """
        C = len(self.items_)
        total, products, counts = np.zeros(C), np.zeros((C, C)), np.zeros(C)
        for rows in row_blocks(len(table), table.values.shape[1]):
            f = standardize_rows(table.values[rows], table.kind, C)
            total += f.sum(axis=0)
            products += f.T @ f
            counts += count_predictions(f)
        # Simpson's effective number of classes.
        variety = counts.sum() ** 2 / (counts @ counts)
        least = COVERAGE_BY_OTHERS[table.kind] * measure_coverage(variety)
        self.coverage_ = coverage = np.maximum(measure_coverage(counts), least)
        mean = total / len(table)
        covariance = products / len(table) - np.outer(mean, mean)
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

    def _fit_examples(self, table: Scores, labels: NDArray[np.str_]) -> None:
        """Add to slopes and offsets what labelled examples tell."""
        f = standardize_rows(table.values, table.kind, len(self.items_))
        log_proba = log_softmax((f @ self._slopes.T + self._offsets) / self.temperature_, np, 1)
        usual = USUAL_WEIGHTS if self.example_prior is None else self.example_prior
        columns = np.searchsorted(self.classes_, labels)
        found = refine(log_proba, self.features_of(table), columns, usual)
        self.example_weights_ = found.head_weight, found.example_weight
        slopes = self.temperature_ * found.slopes.T
        self._slopes = found.head_weight * self._slopes
        self._offsets = found.head_weight * self._offsets - slopes @ found.center
        if table.features is None:
            self._slopes += slopes
        else:
            self._feature_slopes = slopes

    def features_of(self, table: Scores) -> Any:
        """Return what is learned from examples: their features, or else their standardised scores.

        Used by `Rehearsal`. The features of a ``table`` may be sparse.
        """
        if table.features is not None:
            return table.features
        return standardize_rows(table.values, table.kind, len(self.items_))

    def _fit_evidence(self, table: Scores) -> None:
        """Add slopes of evidence: one column per class, of which the mean is subtracted."""
        L = len(self.classes_)
        names = tuple(self.classes_.tolist())
        given, scale = center_evidence(np.asarray(table._evidence_of(names), np.float64))
        self._prepare()
        weight = self.evidence_weight
        if weight is None:
            log_proba = np.asarray(self.predict_log_proba(table), np.float64)
            weight = weigh_evidence(log_proba, given / scale)
        slopes = self.temperature_ * weight / scale * (np.eye(L) - 1 / L)
        self._feature_slopes = np.hstack([self._feature_slopes, slopes])
        self.evidence_weight_ = float(weight)

    def _decorrelate(self, rows: Floats) -> Doubles:
        """Return rows times (R + u C I)^-1."""
        factor = np.zeros((len(self.items_),) * 2, order="F")
        factor[~np.tri(len(factor), k=-1, dtype=bool)] = self._factor
        return np.asarray(cho_solve((factor, False), rows.T.astype(np.float64)).T)

    def _default_temperature(self) -> float:
        covered = float(self.coverage_.mean())
        usual = TEMPERATURE ** (1 - covered) * TEMPERATURE_WITH_REFERENCE**covered
        return float(usual * max(1, len(self.items_) / MANY_CLASSES) ** TEMPERATURE_POWER)

    def _constants(self, kind: Kind, dtype: np.dtype[np.floating]) -> Constants:
        slopes, feature_slopes = self._cast[dtype]
        constants: Constants = {"slopes": slopes.T, "offsets": self._offsets}
        if self.n_features_:
            constants["feature_slopes"] = feature_slopes.T
        return constants | pair_constants(len(self.items_), kind)

    @property
    def n_features_(self) -> int:
        """The number of columns that inputs need besides their scores: features, then evidence."""
        return int(self._feature_slopes.shape[1])

    @property
    def evidence_classes_(self) -> tuple[str, ...]:
        """The classes of the evidence that inputs need in addition to their scores."""
        return () if self.evidence_weight_ is None else tuple(self.classes_.tolist())

    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:  # noqa: ARG002
        if self.reference_ is not None:
            self.reference_.require_kind(kind)
        scores, std = center_rows(class_scores(f, kind, len(self.items_), c, xp), xp)
        log_posterior = scores @ c["slopes"] / std + c["offsets"]
        if self.n_features_:
            log_posterior += f[:, -self.n_features_ :] @ c["feature_slopes"]
        return log_posterior

    def _log_posterior(self, values: Floats, kind: Kind) -> Floats:
        # In single precision if the scores are.
        c = self._constants("multiclass", values.dtype)
        return np.ascontiguousarray(self._formula(values, kind, c, np, None).T)

    def _block_rows(self, kind: Kind) -> int:
        # A matrix product is slower in blocks of a few rows.
        factor = BLOCK_CELLS // CACHED_CELLS if kind == "one-vs-one" else 4
        return factor * super()._block_rows(kind)

    def _evidence_of_items(self, values: Floats, kind: Kind) -> Doubles:
        """Return what the score of each seen class tells, in the order of ``items_``."""
        f: Doubles = standardize_rows(values, kind, len(self.items_))
        if self.reference_ is not None:
            f = self._decorrelate(self.reference_.standardize_scores(f, kind))
        return f if self.example_weights_ is None else self.example_weights_[0] * f

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
    begin, size, row = group_by_place(rankings)
    last = rankings.lengths[row]
    share = total[np.minimum(begin + size, last)] - total[np.minimum(begin, last)]
    listed = np.repeat(share / total[last] / size, size)
    rows = rankings.entry_rows
    listed -= np.where(rankings.is_subset, 1 / rankings.n_listed, 0.0)[rows]
    return csr_array((listed, (rows, rankings.codes)), (len(rankings), rankings.n_items))


def center_rows(f: Array, xp: Library = np) -> tuple[Array, Array]:
    """Return scores with mean 0 in each row, and their standard deviations.

    The scores of a row may have been divided by a number: only their ratio to the standard
    deviation counts. Where all scores are equal, the standard deviation is infinite.
    """
    mean = xp.mean(f, axis=1, keepdims=True)
    centered = f - mean
    limits = xp.finfo(f.dtype)
    is_safe = False
    if xp is np:
        # Mostly, squares neither underflow nor overflow.
        with np.errstate(over="ignore"):
            squares = np.vecdot(centered, centered)[:, None]
        is_safe = bool(((squares > limits.tiny / limits.eps) & (squares < np.inf)).all())
        norm = np.sqrt(squares)
    if not is_safe:
        top = largest(xp.abs(centered), xp, 1)
        scale = xp.where(top > 0, top, 1.0)
        centered, mean = centered / scale, mean / scale
        norm = row_norm(centered, xp)
    std = norm / sqrt(f.shape[1])
    is_rounding = std <= ROUNDING_UNITS * float(limits.eps) * xp.abs(mean)
    return centered, xp.where(is_rounding, np.inf, std)


def standardize_rows(
    values: Array, kind: Kind, n_items: int, c: Constants | None = None, xp: Library = np
) -> Array:
    """Return one score per seen class, with mean 0 and variance 1 in each row.

    NumPy arrays become float64. For other libraries, ``c`` has the constants of `pair_constants`.
    """
    f, std = center_rows(class_scores(values, kind, n_items, c or {}, xp), xp)
    return np.asarray(f / std, np.float64) if xp is np else f / std


def count_predictions(f: Floats) -> Doubles:
    """Return how often each class has the highest of standardised scores."""
    first = f >= f.max(axis=1, keepdims=True) - TIED_SCORES
    return np.asarray((first / first.sum(axis=1, keepdims=True)).sum(axis=0))


def measure_coverage(counts: Any) -> Any:
    """Return how far a reference covers each class, from the number of its predictions."""
    return counts / (counts + COVERING_INPUTS)


def _find_missing(rankings: Rankings, weights: Mapping[str, float]) -> dict[str, list[str]]:
    """Return for each source that counts the targets that it does not rank, if there are any."""
    sources = sources_of(rankings)
    missing = {
        source: sorted({*rankings.target_names} - {*rankings.targets[sources == source]})
        for source, weight in weights.items()
        if weight > 0
    }
    return {source: classes for source, classes in missing.items() if classes}

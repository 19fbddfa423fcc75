"""`WeightedMean`: fits a `LinearHead` to rankings, a reference and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import Array, to_numpy
from rankshot.core.errors import InputError
from rankshot.core.validation import require_number, require_whole_number
from rankshot.ranking.rankings import Rankings
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.zeroshot.class_rankings import (
    DECAY,
    Orders,
    as_rankings,
    choose_source_weights,
    list_missing,
    listed_weights,
    measure_coherence,
    require_source_weights,
    require_targets,
    weigh_sources,
)
from rankshot.zeroshot.evidence import center_evidence, weigh_evidence
from rankshot.zeroshot.examples import (
    EXPLAINED_BY_RATERS,
    EXPLAINED_BY_TABLES,
    SHARE,
    ExampleFacts,
    Known,
    Prototypes,
    Signal,
    Usual,
    as_dense,
    as_examples,
    learn_examples,
    measure_reference,
)
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import (
    Scores,
    as_scores,
    count_effective,
    count_predictions,
    standardize_blocks,
    standardize_rows,
)

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Labelled = tuple[Scores | ArrayLike, ArrayLike | None]
Examples = tuple[Scores | ArrayLike, ArrayLike]
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
LEAST_INPUTS = 10
"""The smallest number of inputs of a reference."""


class Baseline(NamedTuple):
    """What a reference says of standardised scores, as far as it covers each seen class.

    Means, standard deviations and correlations; and the coverage, from 0 to 1.
    """

    mean: Doubles
    std: Doubles
    correlations: Doubles
    coverage: Doubles


class WeightedMean(Predictor, BaseEstimator):
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
    head_ : LinearHead
        What was fitted, as a value: it can be saved, exported and moved to other array libraries.
    by_rankings_ : LinearHead
        The same without examples and evidence.
    classes_ : ndarray of str
        The new classes, sorted.
    rankings_ : Rankings
        The rankings of the new classes that are used, with the weights of their sources, cut to
        ``k``.
    source_weights_ : dict of str to float
        The weight of each source.
    weights_ : ndarray of shape (new classes, seen classes)
        The weights w.
    listed_ : ndarray of shape (new classes, seen classes)
        The same before they are scaled: means over the rankings.
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
        if self.k is not None:
            require_whole_number("k", self.k)
        require_number("decay", self.decay, least=0, below=np.inf)
        if self.temperature is not None:
            require_number("temperature", self.temperature, above=0, below=np.inf)
        if self.evidence_weight is not None:
            require_number("evidence_weight", self.evidence_weight, least=0, below=np.inf)
        for number in self.example_prior or ():
            require_number("example_prior", number, least=0, below=np.inf)

    def fit(
        self,
        rankings: Rankings | Orders,
        *,
        reference: Scores | ArrayLike | Labelled | None = None,
        examples: Examples | None = None,
        evidence: Scores | None = None,
        raters: Sequence[str] | None = None,
    ) -> Self:
        """Learn from rankings of the new classes, and from whatever else is known.

        Parameters
        ----------
        rankings : Rankings or dict
            Rankings of the seen classes, at least one for each new class; their weights are used. A
            dict has one list of seen classes per new class, most similar first; it needs a
            reference or examples that name the seen classes.
        reference : Scores or array-like, or such scores and labels, optional
            Scores of varied inputs of seen classes that the classifier was not trained on; their
            labels are not used.
        examples : scores and labels, optional
            Scores of inputs of new classes, and the class of each. There may be any number of them,
            even of classes that have no ranking. Nothing is learned from examples of a single class
            that has a ranking. If these are `Scores` with ``features``, all scores to be classified
            must have such features.
        evidence : Scores, optional
            Scores with ``evidence``, of inputs like those to be classified; no labels are needed.
            All scores to be classified must have evidence of the same model.
        raters : sequence of str, optional
            The raters of a dict, whose values then are lists of one list per rater.
        """
        self.require_parameters()
        tables = (reference[0] if isinstance(reference, tuple) else reference), evidence
        tables = *tables, examples[0] if isinstance(examples, tuple) and examples else None
        items = next((table.items for table in tables if isinstance(table, Scores)), None)
        lists = as_rankings(rankings, items if isinstance(rankings, Mapping) else None, raters)
        lists = require_targets(lists)
        seen = lists.items
        labelled = None
        if examples is not None:
            labelled = as_examples(examples, seen, [str(name) for name in lists.target_names])
        if evidence is not None and not isinstance(evidence, Scores):
            raise InputError("evidence", evidence, "must be Scores(values, items, evidence=...)")
        table = None if reference is None else as_reference(reference, seen)
        names = [] if labelled is None else labelled[1].tolist()
        self.classes_ = np.unique([*lists.target_names, *names])
        self._fit_rankings(lists, table)
        self.examples_: ExampleFacts | None = None
        self.evidence_weight_: float | None = None
        if labelled is not None:
            self._learn_examples(*labelled, table)
        if evidence is not None:
            self._learn_evidence(evidence.with_items(seen))
        self._describe(table)
        return self

    def _fit_rankings(self, rankings: Rankings, table: Scores | None) -> None:
        """Compute the head by rankings, and by a reference, alone."""
        C = len(rankings.items)
        base = None if table is None else measure_baseline(table)
        self.coverage_ = np.zeros(C) if base is None else base.coverage
        rankings = rankings.top(C if self.k is None else min(self.k, C))
        self.source_weights_ = self._choose_sources(rankings, base)
        self.rankings_ = weigh_sources(rankings, self.source_weights_)
        self.missing_ = list_missing(self.rankings_, self.source_weights_)
        self.listed_ = self._list_weights(self.rankings_)
        self.weights_ = np.nan_to_num(self._mean_weights(self.rankings_))
        slopes, usual = self.weights_, np.zeros(C)
        if base is not None:
            factor = cho_factor(base.correlations + UNCERTAINTY * C * np.eye(C))
            slopes = cho_solve(factor, self.weights_.T).T
            variance = ((slopes @ base.correlations) * slopes).sum(axis=1)
            std = np.sqrt(np.where(variance > ROUNDING, variance, 1.0))
            slopes, usual = slopes / std[:, None] / base.std, base.mean
        default = TEMPERATURE if self._by_raters else TEMPERATURE_BY_TABLES
        self.head_ = self.by_rankings_ = LinearHead(
            rankings.items,
            self.classes_.tolist(),
            slopes,
            -slopes @ usual,
            default if self.temperature is None else self.temperature,
            usual_scores=usual,
            kind=None if table is None else table.kind,
        )

    @property
    def _by_raters(self) -> bool:
        """Whether people or language models ranked; a ranking without a source is the user's."""
        return bool(self.rankings_.rater_names) or not self.rankings_.source_names

    def _list_weights(self, rankings: Rankings) -> Doubles:
        """The mean weights of each class over its rankings; those of a list add up to 1."""
        z = np.searchsorted(self.classes_, rankings.targets.astype(str))
        shape = len(self.classes_), len(rankings)
        total = csr_array((rankings.weights, (z, np.arange(len(rankings)))), shape)
        sums = (total @ listed_weights(rankings, self.decay)).toarray()
        weight = np.asarray(total.sum(axis=1)).reshape(-1, 1)
        return np.asarray(sums / np.where(weight > 0, weight, 1.0))

    def _mean_weights(self, rankings: Rankings) -> Doubles:
        """The weights of the classes by some of the rankings; NaN for a class without."""
        z = np.searchsorted(self.classes_, rankings.targets.astype(str))
        shape = len(self.classes_), len(rankings)
        total = csr_array((rankings.weights, (z, np.arange(len(rankings)))), shape)
        weights = (total @ listed_weights(rankings, self.decay)).toarray()
        length = np.linalg.norm(weights, axis=1, keepdims=True)
        # Subset rankings that contradict each other have no weights.
        weights /= np.where(length > ROUNDING * total.sum(axis=1)[:, None], length, np.inf)
        weights[np.bincount(z, minlength=shape[0]) == 0] = np.nan
        return np.asarray(weights)

    def _choose_sources(self, rankings: Rankings, base: Baseline | None) -> dict[str, float]:
        """The weight of each source."""

        def coherence(part: Rankings) -> float:
            if base is None:
                return np.inf
            return measure_coherence(np.nan_to_num(self._mean_weights(part)), base.correlations)

        if self.source_weights is not None:
            return require_source_weights(self.source_weights, rankings)
        return choose_source_weights(rankings, coherence)

    # ---- Labelled examples, and another model's scores

    def _learn_examples(
        self, table: Scores, labels: NDArray[np.str_], reference: Scores | None
    ) -> None:
        directions = self.weights_ - self.weights_.mean(axis=1, keepdims=True)
        length = np.linalg.norm(directions, axis=1, keepdims=True)
        directions /= np.where(length > ROUNDING, length, np.inf)
        there = np.unique(labels)
        if len(there) == 1 and directions.any(axis=1)[self.classes_ == there[0]].all():
            self.examples_ = ExampleFacts(len(labels), 0.0, 0.0, str(there[0]))
            return
        explained = EXPLAINED_BY_RATERS if self._by_raters else EXPLAINED_BY_TABLES
        usual = Usual.without_reference(len(self.head_.seen))
        if reference is not None:
            usual = measure_reference(reference, self.coverage_)
        if self.example_prior is not None:
            slope, signal = self.example_prior
            explained = max(slope**2 / max(signal, ROUNDING), ROUNDING), explained[1]
            usual = usual._replace(signal=Signal(max(signal, ROUNDING), SHARE[1]))
        features = np.zeros((len(labels), 0)) if table.features is None else table.features
        known = Known(
            standardize_rows(table.values),
            as_dense(features),
            np.searchsorted(self.classes_, labels),
        )
        log_odds, self.examples_ = learn_examples(known, usual, Prototypes(directions, explained))
        head = self.by_rankings_
        # The temperature divides all that the head says.
        self.head_ = replace(
            head,
            slopes=head.temperature * np.vstack([log_odds.slopes, log_odds.feature_slopes]).T,
            offsets=head.temperature * log_odds.offsets,
            usual_features=log_odds.feature_center,
            usual_scores=usual.mean,
        )

    def _learn_evidence(self, table: Scores) -> None:
        """Add slopes of evidence: one column per class, of which the mean is subtracted."""
        head, L = self.head_, len(self.classes_)
        evidence, scale = center_evidence(np.asarray(table.evidence_of(head.classes), np.float64))
        weight = self.evidence_weight
        if weight is None:
            log_proba = np.asarray(head.log_proba(table), np.float64)
            weight = weigh_evidence(log_proba, evidence / scale)
        slopes = head.temperature * weight / scale * (np.eye(L) - 1 / L)
        self.head_ = replace(head, slopes=np.hstack([head.slopes, slopes]), evidence=head.classes)
        self.evidence_weight_ = float(weight)

    def _describe(self, table: Scores | None) -> None:
        """Note in the head how it came about."""
        order = np.argsort(-self.weights_, axis=1, kind="stable")
        listed = {
            name: [self.head_.seen[i] for i in places if row[i] != 0]
            for name, places, row in zip(self.head_.classes, order, self.weights_, strict=True)
        }
        facts: dict[str, Any] = {
            "head": repr(self),
            "rankings": len(self.rankings_),
            "sources": list(self.rankings_.source_names),
            "source_weights": self.source_weights_,
            "missing": self.missing_,
            "listed": listed,
        }
        if table is not None:
            facts["reference"] = len(table)
        if self.examples_ is not None:
            facts["examples"] = self.examples_._asdict()
        if self.evidence_weight_ is not None:
            facts["evidence_weight"] = self.evidence_weight_
        self.head_ = self.head_.with_about(**facts)

    # ---- Predictions, by the head

    @property
    def inner(self) -> LinearHead:
        """The fitted head, as a value."""
        check_is_fitted(self, "head_")
        return self.head_

    def log_proba(self, scores: Scores | ArrayLike) -> Array:
        """As `LinearHead.log_proba`."""
        return self.inner.log_proba(scores)

    def decision_function(self, scores: Scores | ArrayLike) -> Array:
        """As `LinearHead.decision_function`."""
        return self.inner.decision_function(scores)

    def save(
        self, path: str | Path, *, note: str = "", provenance: Mapping[str, object] | None = None
    ) -> None:
        """Write the fitted head to one file (.rankshot): see `LinearHead.save`."""
        self.inner.save(path, note=note, provenance=provenance)


# ---- The reference


def as_reference(reference: Scores | ArrayLike | Labelled, items: tuple[str, ...]) -> Scores:
    """The scores of a reference, of enough inputs, in main memory; labels are left out."""
    scores = reference[0] if isinstance(reference, tuple) and len(reference) == 2 else reference
    table = as_scores(scores, items)
    if len(table) < LEAST_INPUTS:
        raise InputError(
            "reference",
            len(table),
            f"must have at least {LEAST_INPUTS} inputs",
            hint="several hundred are better",
        )
    columns = np.ascontiguousarray(to_numpy(table.columns))
    return Scores.from_validated(columns, table.items, table.kind, table.features, table.evidence)


def measure_baseline(table: Scores) -> Baseline:
    """What is usual for the scores over a reference, as far as it covers each seen class."""
    C = len(table.items)
    total, products, counts = np.zeros(C), np.zeros((C, C)), np.zeros(C)
    for f in standardize_blocks(table):
        total += f.sum(axis=0)
        products += f.T @ f
        counts += count_predictions(f)
    mean = total / len(table)
    covariance = products / len(table) - np.outer(mean, mean)
    trust = measure_trust(mean, covariance, counts)
    coverage = np.maximum(measure_coverage(counts), trust)
    variance = covariance.diagonal()
    std = np.sqrt(np.where(variance > ROUNDING, variance, 1.0))
    correlations = covariance / np.outer(std, std) * np.sqrt(np.outer(coverage, coverage))
    np.fill_diagonal(correlations, 1.0)
    return Baseline(coverage * mean, std**coverage, correlations, coverage)


def measure_coverage(counts: Doubles) -> Doubles:
    """How far a reference covers each class, from the number of its predictions."""
    n, C = counts.sum(), len(counts)
    return np.asarray(np.maximum(counts / (counts + C), n / (n + C) * count_effective(counts) / C))


def measure_trust(mean: Doubles, covariance: Doubles, counts: Doubles) -> Doubles:
    """How far the mean scores of a reference can be told from chance, from 0 to 1.

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

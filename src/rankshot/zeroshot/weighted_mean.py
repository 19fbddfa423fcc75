"""`WeightedMean`: fits a `LinearHead` to rankings, a reference and examples."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from rankshot.core.arrays import Array, to_numpy
from rankshot.core.errors import InputError
from rankshot.core.validation import require_number, require_whole_number
from rankshot.ranking.rankings import Rankings
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.zeroshot import class_means
from rankshot.zeroshot.class_means import ClassModel, Inputs, LinearMap, Reference, learn_correction
from rankshot.zeroshot.class_rankings import (
    DECAY,
    Orders,
    as_rankings,
    choose_source_weights,
    listed_weights,
    measure_coherence,
    require_source_weights,
    weigh_sources,
)
from rankshot.zeroshot.decide import first_guesses
from rankshot.zeroshot.default_head import (
    SHARE,
    Baseline,
    choose_share,
    fit_linear_part,
    measure_baseline,
    rank_bonus,
)
from rankshot.zeroshot.evidence import center_evidence, weigh_evidence
from rankshot.zeroshot.examples import as_examples
from rankshot.zeroshot.formula import scale_features
from rankshot.zeroshot.linear_head import LinearHead, Predictor
from rankshot.zeroshot.scores import Scores, standardize_rows
from rankshot.zeroshot.tables import as_scores, read_labelled

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Labelled = tuple[Scores | ArrayLike, ArrayLike | None]
Examples = tuple[Scores | ArrayLike, ArrayLike]
ROUNDING = 1e-12
"""Weights that are smaller than this are zeros with a rounding error."""
LEAST_INPUTS = 10
"""The smallest number of inputs of a reference."""


class WeightedMean(Predictor, BaseEstimator):
    r"""Predict the new class whose ranked seen classes have the highest weighted mean score.

    .. math:: \log P(z|x) = \frac{1}{T} \sum_i \left( a_{zi} f_i(x) + b_{zi} \beta_i(x) \right)
              + \text{const}

    The weight of a seen class i falls with its place r in a ranking of the new class z as r^-decay,
    and is 0 after the first k places. The weights of a ranking add up to 1. Tied classes share the
    weights of their places. For subset rankings, the mean weight of the listed classes is
    subtracted, because they were compared with each other only. If z has several rankings, the
    weights are the mean over them. Finally, they are scaled to unit length, so that a new class
    with few or short rankings has no advantage: these are the slopes a without a reference.

    The scores f of each input are standardised to mean 0 and variance 1 over the seen classes.
    Their order counts as well: β is a bonus for the five largest scores (`rank_bonus`), which no
    rescaling of logits changes. Its slopes b are the same weights, but shorter lists keep half of
    their advantage.

    Not all sources are equally reliable. By default, only rankings of sources with raters (people,
    language models) are used. Tables without raters (WordNet, word vectors, corpora) are
    *fallbacks*: they are used only for classes that no rater ranked. If there are no raters, tables
    that do not rank all new classes are fallbacks. With a reference, so are sources that list
    unrelated classes together.

    A reference is the baseline of each score. Scores of similar seen classes rise and fall
    together: they are not independent evidence, so they get less weight. For this, the weights are
    multiplied by (R + u C I)^-1, where R is the matrix of correlations of the C scores, I the
    identity and u = .1, and scaled to variance 1 over the reference. This is the linear
    discriminant whose class means are the weights of the rankings, where u is the error of these
    means. Half of it counts, and half of the weights as they are: for few seen classes or short
    lists, a reference can do harm. In a batch, all of it counts if the classes are then predicted
    more evenly.

    A reference may lack inputs of some of the C seen classes. The coverage of a class is the weight
    of the reference for this class: a class with coverage 0 is treated as if there were no
    reference (`measure_coverage`).

    With labelled examples of new classes, the rankings predict the mean of a class, and the
    examples correct it, from the first one on (see ``rankshot.zeroshot.class_means``).

    All this is one matrix product and five comparisons of each score, so the head is nearly as
    fast as a linear classifier.

    Parameters
    ----------
    k : int or None
        The number of places of each ranking that are used; None means all.
    decay : float
        How fast the weights of the places decrease: place r has the weight r^-decay.
    temperature : float or None
        T, by which log-posteriors are divided: a larger T makes the probabilities of the classes
        more equal, but does not change the predictions. By default 1; a rehearsal finds a better
        value. With examples, they tell it.
    evidence_weight : float or None
        The weight of another model's evidence. By default it is estimated without labels; a
        rehearsal finds a better value.
    source_weights : dict of str to float, optional
        The weight of each source, instead of the rule above; "" stands for rankings without a
        source. A source that has weight 0 or is not named is a fallback. A rehearsal finds good
        values.

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
    share_ : float
        How much of the reference is used, from 0 to 1.
    evidence_weight_ : float or None
        The weight of evidence, if there was any.

    Examples
    --------
    >>> import rankshot as rs
    >>> rankings = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["tiger", "leopard", "fox"], ["bus", "tram"]],
    ...     items=["bus", "fox", "leopard", "tiger", "tram"], targets=["cat", "cat", "truck"])
    >>> head = rs.WeightedMean().fit(rankings)
    >>> logits = [[0.1, 1.2, 3.0, 2.5, -1.0], [4.0, 0.0, 0.0, 0.5, 2.0]]
    >>> head.predict_proba(logits).round(2)
    array([[1.  , 0.  ],
           [0.01, 0.99]])
    """

    def __init__(
        self,
        *,
        k: int | None = LIST_LENGTH,
        decay: float = DECAY,
        temperature: float | None = None,
        evidence_weight: float | None = None,
        source_weights: Mapping[str, float] | None = None,
    ) -> None:
        self.k = k
        self.decay = decay
        self.temperature = temperature
        self.evidence_weight = evidence_weight
        self.source_weights = source_weights

    def require_parameters(self) -> None:
        """Raise for a parameter with a wrong value."""
        if self.k is not None:
            require_whole_number("k", self.k)
        require_number("decay", self.decay, least=0, below=np.inf)
        if self.temperature is not None:
            require_number("temperature", self.temperature, above=0, below=np.inf)
        if self.evidence_weight is not None:
            require_number("evidence_weight", self.evidence_weight, least=0, below=np.inf)

    def fit(
        self,
        rankings: Rankings | Orders,
        *,
        reference: Scores | ArrayLike | Labelled | None = None,
        examples: Examples | None = None,
        evidence: Scores | None = None,
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
            even of classes that have no ranking. If these are `Scores` with ``features``, all
            scores to be classified must have such features.
        evidence : Scores, optional
            Scores with ``evidence``, of inputs like those to be classified; no labels are needed.
            All scores to be classified must have evidence of the same model.
        """
        self.require_parameters()
        usual, few = read_labelled(reference)[0], read_labelled(examples)
        tables = usual, evidence, few[0]
        items = next((table.items for table in tables if isinstance(table, Scores)), None)
        lists = as_rankings(rankings, items)
        seen = lists.items
        labelled = None if examples is None else as_examples(few, seen, lists.target_names)
        table = None if usual is None else as_reference(usual, seen)
        names = [] if labelled is None else labelled[1].tolist()
        self.classes_ = np.unique([*lists.target_names, *names])
        self._fit_rankings(lists, table)
        self.has_examples = labelled is not None
        self.evidence_weight_: float | None = None
        if labelled is not None:
            self._learn_examples(*labelled, table)
        if evidence is not None:
            self._learn_evidence(as_scores(evidence, seen))
        self._describe(table, 0 if labelled is None else len(labelled[1]))
        return self

    def _fit_rankings(self, rankings: Rankings, table: Scores | None) -> None:
        """Compute the head by rankings, and by a reference, alone."""
        C = len(rankings.items)
        self._kind = None if table is None else table.kind
        base = None if table is None else measure_baseline(standardize_rows(table.values))
        self._baseline = base
        self.coverage_ = np.zeros(C) if base is None else base.coverage
        rankings = rankings.top(C if self.k is None else min(self.k, C))
        self.source_weights_ = self._choose_sources(rankings, base)
        self.rankings_ = weigh_sources(rankings, self.source_weights_)
        self.listed_ = self._list_weights(self.rankings_)
        self.weights_ = unit_rows(self.listed_)
        self.share_ = 0.0 if base is None else SHARE
        self.head_ = self.by_rankings_ = self._combine(rankings.items)

    def _combine(self, seen: tuple[str, ...]) -> LinearHead:
        """The head by rankings and the share of the reference."""
        part = fit_linear_part(self.listed_, self._baseline, self.share_)
        base = self._baseline
        return LinearHead(
            seen,
            self.classes_.tolist(),
            part.slopes,
            part.offsets,
            1.0 if self.temperature is None else self.temperature,
            rank_slopes=part.rank_slopes,
            usual_scores=None if base is None else base.weigh(self.share_),
            kind=self._kind,
        )

    def use_batch(self, table: Scores) -> WeightedMean:
        """The estimator for a ``table`` of scores that are classified jointly.

        All of the reference is used if the classes of the batch are then predicted more evenly.
        """
        check_is_fitted(self, "head_")
        if self._baseline is None or self.has_examples or self.evidence_weight_ is not None:
            return self
        f, bonus = standardize_rows(table.values), rank_bonus(np.asarray(table.values, np.float64))
        share = choose_share(f, bonus, self.listed_, self._baseline)
        if share == self.share_:
            return self
        other = copy(self)
        other.share_ = share
        about = self.head_.about
        other.head_ = other.by_rankings_ = other._combine(self.head_.seen).with_about(**about)
        return other

    def _list_weights(self, rankings: Rankings) -> Doubles:
        """The mean weights of each class over its rankings; those of a list add up to 1."""
        z = np.searchsorted(self.classes_, rankings.targets.astype(str))
        shape = len(self.classes_), len(rankings)
        total = csr_array((rankings.weights, (z, np.arange(len(rankings)))), shape)
        sums = (total @ listed_weights(rankings, self.decay)).toarray()
        weight = np.asarray(total.sum(axis=1)).reshape(-1, 1)
        return np.asarray(sums / np.where(weight > 0, weight, 1.0))

    def _choose_sources(self, rankings: Rankings, base: Baseline | None) -> dict[str, float]:
        """The weight of each source."""

        def coherence(part: Rankings) -> float:
            if base is None:
                return np.inf
            return measure_coherence(unit_rows(self._list_weights(part)), base.correlations)

        if self.source_weights is not None:
            return require_source_weights(self.source_weights, rankings)
        return choose_source_weights(rankings, coherence)

    # ---- Labelled examples, and another model's scores

    def _learn_examples(
        self, table: Scores, labels: NDArray[np.str_], reference: Scores | None
    ) -> None:
        head, L = self.by_rankings_, len(self.classes_)
        usual = find_usual_features(reference, table, labels)
        none = np.zeros((L, usual.size))
        part = LinearMap(head.slopes, head.rank_slopes, none, head.offsets)
        known = None
        if reference is not None:
            inputs = describe_inputs(reference, usual)
            known = Reference(inputs, first_guesses(reference.values, reference.items))
        codes = np.searchsorted(self.classes_, labels)
        few = class_means.Examples(describe_inputs(table, usual), codes)
        learned = learn_correction(ClassModel(self.listed_, part, known, few), few)
        new = learned.log_posterior
        # The temperature divides all that the head says.
        factor = head.temperature / learned.temperature
        self.head_ = replace(
            head,
            slopes=factor * np.hstack([new.slopes, new.feature_slopes]),
            rank_slopes=factor * new.rank_slopes,
            offsets=factor * new.offsets,
            usual_features=usual,
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

    def _describe(self, table: Scores | None, n_examples: int) -> None:
        """Note in the head how it came about."""
        order = np.argsort(-self.weights_, axis=1, kind="stable")
        listed = {
            name: [self.head_.seen[i] for i in places if row[i] != 0]
            for name, places, row in zip(self.head_.classes, order, self.weights_, strict=True)
        }
        facts = {
            "head": repr(self),
            "rankings": len(self.rankings_),
            "source_weights": self.source_weights_,
            "listed": listed,
            "reference": None if table is None else len(table),
            "examples": n_examples or None,
            "evidence_weight": self.evidence_weight_,
        }
        facts = {name: value for name, value in facts.items() if value is not None}
        self.head_ = self.head_.with_about(**facts)

    # ---- Predictions, by the head

    @property
    def inner(self) -> LinearHead:
        """The fitted head, as a value."""
        check_is_fitted(self, "head_")
        return self.head_

    def decision_function(self, scores: Scores | ArrayLike) -> Array:
        """As `LinearHead.decision_function` of ``scores``."""
        return self.inner.decision_function(scores)


def unit_rows(weights: Doubles) -> Doubles:
    """Weights of length 1; subset rankings that contradict each other have none."""
    length = np.linalg.norm(weights, axis=1, keepdims=True)
    return np.asarray(weights / np.where(length > ROUNDING, length, np.inf))


# ---- The reference


def as_reference(reference: Scores | ArrayLike, items: tuple[str, ...]) -> Scores:
    """The scores of a reference, of enough inputs, in main memory."""
    table = as_scores(reference, items)
    if len(table) < LEAST_INPUTS:
        rule, hint = f"must have at least {LEAST_INPUTS} inputs", "several hundred are better"
        raise InputError("reference", len(table), rule, hint=hint)
    columns = np.ascontiguousarray(to_numpy(table.columns))
    return Scores.from_validated(columns, table.items, table.kind, table.features, table.evidence)


# ---- Inputs as columns


def describe_inputs(table: Scores, usual_features: Doubles) -> Inputs:
    """Standardised scores, their rank bonus, and features if there are any that are used."""
    features = np.zeros((len(table), 0))
    if usual_features.size:
        d = 0 if table.features is None else table.features.shape[1]
        if d != usual_features.size:
            rule = f"must be {usual_features.size} columns, as those of the examples"
            raise InputError("features", d, rule)
        features = scale_features(_as_dense(table.features), usual_features, np)
    bonus = rank_bonus(np.asarray(table.values, np.float64))
    return Inputs(standardize_rows(table.values), bonus, features)


def find_usual_features(reference: Scores | None, few: Scores, labels: NDArray[np.str_]) -> Doubles:
    """What is subtracted from features; empty if there are none that can be compared."""
    if few.features is None or (reference is not None and reference.features is None):
        return np.zeros(0)
    if reference is not None:
        return np.asarray(_as_dense(reference.features).mean(axis=0))
    features = _as_dense(few.features)
    means = [features[labels == name].mean(axis=0) for name in np.unique(labels)]
    return np.asarray(np.mean(means, axis=0))


def _as_dense(features: Any) -> Doubles:
    return np.asarray(features.toarray() if issparse(features) else features, np.float64)

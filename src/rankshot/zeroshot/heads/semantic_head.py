"""`SemanticHead`: heads that are fitted to rankings or similarities, and to what else is known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import (
    Array,
    Constants,
    Library,
    Lost,
    log_softmax,
    with_prefix,
    without_prefix,
)
from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.evidence import center_evidence, weigh_evidence
from rankshot.zeroshot.examples import (
    SHARE,
    SIGNAL,
    Prototypes,
    Signal,
    as_dense,
    as_examples,
    assign_folds,
    balance_classes,
    center_features,
    compare_signals,
    fit_class_means,
    fit_factors,
    measure_dependence,
    measure_noise,
    measure_reference,
    scale_features,
)
from rankshot.zeroshot.heads.base import (
    BaseHead,
    Semantics,
    as_reference,
    require_semantics,
    require_temperature,
)
from rankshot.zeroshot.scores import (
    Kind,
    Scores,
    center_rows,
    class_scores,
    n_columns,
    pair_constants,
    standardize_rows,
)

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Codes = NDArray[np.intp]
Examples = tuple[Scores | ArrayLike, ArrayLike]
ADDED = "added"
LINEAR = ("head_weight", "slopes", "offsets", "feature_slopes")


class ExampleFacts(NamedTuple):
    """What a head learned from labelled examples.

    Attributes
    ----------
    n_examples : int
        The number of examples.
    slope : float
        β: how closely the scores of the examples follow the rankings; 0 if they do not agree. Only
        for a `WeightedMean`.
    signal : float
        ρ: the share of the scores, or else of the features, that the examples of a class have in
        common.
    only_class : str
        The class of all examples, if it has a ranking: then nothing is learned from them, as they
        do not show what distinguishes the class from others. Otherwise empty.

    Examples
    --------
    >>> from rankshot.zeroshot import ExampleFacts
    >>> ExampleFacts._fields
    ('n_examples', 'slope', 'signal', 'only_class')
    """

    n_examples: int
    slope: float
    signal: float
    only_class: str = ""


@dataclass(frozen=True, eq=False)
class Additions:
    """What examples and evidence add to the log-probabilities of a head: linear functions.

    ``slopes`` are those of standardised scores; features are centred and scaled to length 1.
    """

    head_weight: Doubles
    slopes: Doubles
    offsets: Doubles
    feature_center: Doubles
    feature_slopes: Doubles
    evidence_slopes: Doubles

    @classmethod
    def zeros(cls, n_items: int, n_features: int, n_classes: int) -> Additions:
        """Return additions of nothing."""
        L = n_classes
        slopes, feature_slopes = np.zeros((n_items, L)), np.zeros((n_features, L))
        return cls(
            *(np.zeros(()), slopes, np.zeros(L)),
            *(np.zeros(n_features), feature_slopes, np.zeros((0, L))),
        )

    def constants(self, dtype: Any = np.float64) -> Constants:
        """Return the arrays of the formula."""
        return {name: value.astype(dtype, copy=False) for name, value in vars(self).items()}

    def apply(self, f: Array, std: Array, extra: Array, c: Constants, xp: Library) -> Array:
        """Return what is added for scores with mean 0 and their ``std``, features and evidence."""
        total = f @ c["slopes"] / std + c["offsets"]
        n = self.feature_slopes.shape[0]
        if n:
            total = (
                total + scale_features(extra[:, :n], c["feature_center"], xp) @ c["feature_slopes"]
            )
        if self.evidence_slopes.shape[0]:
            total = total + extra[:, n:] @ c["evidence_slopes"]
        return total

    def evaluate(self, known: _Known) -> Doubles:
        """Return the log-odds of some inputs."""
        total = self.apply(known.f, 1.0, known.features, self.constants(), np)
        return np.asarray(total + self.head_weight * known.by_head)

    def multiply(self, factor: float) -> Additions:
        """Return the same log-odds times a factor."""
        return replace(self, **{name: factor * getattr(self, name) for name in LINEAR})

    def balance(self, known: _Known) -> Additions:
        """Return log-odds that vary as much for classes with few examples as for the others."""
        factors = balance_classes(self.evaluate(known), known.codes)
        linear = {name: factors * getattr(self, name) for name in LINEAR if name != "head_weight"}
        return replace(self, **linear)

    def add(self, other: Additions) -> Additions:
        """Return the sum of two log-odds, of which one at most has features."""
        center = self.feature_center + other.feature_center
        sums = {name: getattr(self, name) + getattr(other, name) for name in LINEAR}
        return replace(self, feature_center=center, **sums)


class _Known(NamedTuple):
    """Examples: standardised scores, features, log-probabilities by the head, and classes."""

    f: Doubles
    features: Doubles
    by_head: Doubles
    codes: Codes

    def take(self, rows: NDArray[np.bool_]) -> _Known:
        return _Known(self.f[rows], self.features[rows], self.by_head[rows], self.codes[rows])


class SemanticHead(BaseHead):
    """A head over new classes: fitted to rankings or similarities, and to what else is known."""

    semantics: ClassVar[type[Semantics]] = Rankings
    """What the head is fitted to."""
    weighs_sources: ClassVar[bool] = False
    """Whether the weights of sources are a parameter of the head."""
    k: int | None = None
    prior: Any = None
    evidence_weight: float | None = None
    source_weights_: Mapping[str, float] | None = None
    examples_: ExampleFacts | None = None
    evidence_weight_: float | None = None
    _additions: Additions | None = None

    @property
    def takes_reference(self) -> bool:
        """Whether `fit` can use a reference."""
        return False

    def require_parameters(self) -> None:
        """Raise for a parameter with a wrong value."""
        require_temperature(self.temperature)

    @abstractmethod
    def _fit(self, semantics: Any, reference: Scores | ArrayLike | None, labels: Any) -> None:
        """Learn from rankings or similarities, for their classes and those of ``labels``."""

    def fit(
        self,
        semantics: Any,
        reference: Scores | ArrayLike | None = None,
        examples: Examples | None = None,
        evidence: Scores | None = None,
    ) -> Self:
        """Learn from rankings or similarities of the new classes, and from what else is known.

        Parameters
        ----------
        semantics : Rankings or Similarity
            Rankings of the seen classes, at least one for each new class, whose weights count; or
            similarities, for `DirectSimilarity` and `ConSE`.
        reference : Scores or array-like, optional
            Scores of varied inputs of seen classes that the classifier was not trained on; no
            labels are needed. Not for `DeterministicRanking`, `DirectSimilarity` and `ConSE`.
        examples : scores and labels, optional
            Scores of inputs of new classes, and the class of each. There may be any number of them;
            for a `WeightedMean`, even of classes that have no ranking. Nothing is learned from
            examples of a single class that has a ranking. If these are `Scores` with ``features``,
            all scores to be classified must have such features.
        evidence : Scores, optional
            Scores with ``evidence``, of inputs as they will be classified; no labels are needed.
            All scores to be classified must have evidence of the same model.
        """
        self.require_parameters()
        if reference is not None and not self.takes_reference:
            raise RankshotError(f"{short_repr(self)} cannot use a reference: leave it out")
        if evidence is not None and not isinstance(evidence, Scores):
            raise RankshotError(
                "evidence must be Scores(values, items, evidence=...) of inputs to be classified, "
                f"not {short_repr(evidence)}"
            )
        labelled = None
        if examples is not None:
            known = require_semantics(semantics)
            labelled = as_examples(examples, known.items, [str(name) for name in known.targets])
        self._additions, self.examples_, self.evidence_weight_ = None, None, None
        self._fit(semantics, reference, [] if labelled is None else labelled[1].tolist())
        if labelled is not None:
            self._learn_examples(*labelled, reference)
        if evidence is not None:
            self._learn_evidence(evidence.with_items(self.items_))
        return self

    # ---- Labelled examples

    def _prototypes(self) -> Prototypes | None:
        """Return what the rankings say of the means of the classes, if the head knows it."""
        return None

    def _coverage(self) -> Doubles:
        """Return how far a reference covers each seen class."""
        return np.ones(len(self.items_))

    def _usual_signal(self) -> Signal | None:
        """Return what is known of ρ, if a rehearsal measured it."""
        return None

    def _learn_examples(
        self, table: Scores, labels: NDArray[np.str_], reference: Scores | ArrayLike | None
    ) -> None:
        """Learn from examples, and calibrate by leaving some of them out in turn."""
        if lost := sorted({*labels.tolist()} - {*self.classes_.tolist()}):
            raise RankshotError(
                f"{type(self).__name__} cannot learn {quote_names(lost)} from examples alone; "
                "WeightedMean can"
            )
        ranked, there = self._ranked(), np.unique(labels)
        if len(there) == 1 and ranked[self.classes_ == there[0]].all():
            self.examples_ = ExampleFacts(len(labels), 0.0, 0.0, str(there[0]))
            return
        usual, share = None, SHARE[0]
        by_head, features = np.zeros((len(labels), len(self.classes_))), table.features
        if reference is not None:
            given = as_reference(reference, self.items_)
            usual = measure_reference(given, self._coverage())
            if features is not None and given.features is not None:
                share = compare_signals(given, *usual[:2])
        if self._prototypes() is None:
            by_head = np.asarray(self.predict_log_proba(table), np.float64)
        if features is not None:
            features = as_dense(features)
        known = _Known(
            np.asarray(standardize_rows(table.values, table.kind, len(self.items_))),
            np.zeros((len(labels), 0)) if features is None else features,
            by_head,
            np.searchsorted(self.classes_, labels),
        )
        (one, other), self.examples_ = self._learn(known, usual, share)
        fold, tested = assign_folds(known.codes), []
        for group in np.unique(fold):
            kept, left = known.take(fold != group), known.take(fold == group)
            # An example that is all that is known of a class cannot be left out.
            left = left.take(ranked[left.codes] | np.isin(left.codes, kept.codes))
            if len(kept.codes) and len(left.codes):
                parts, _ = self._learn(kept, usual, share)
                tested.append((*(part.evaluate(left) for part in parts), left.codes))
        usual_factor = measure_dependence(one.evaluate(known), other.evaluate(known), known.codes)
        factors = usual_factor, usual_factor
        if tested:
            a, b, codes = (np.concatenate(table) for table in zip(*tested, strict=True))
            factors = fit_factors(a, b, codes, usual_factor)
        total = one.multiply(factors[0]).add(other.multiply(factors[1]))
        self._additions = total if total.head_weight else total.balance(known)

    def _add_rankings(self, weight: float) -> Self:
        """Return a head that adds log-probabilities without the examples, times a weight.

        If a class has examples only, nothing is added.
        """
        added = self._additions
        if added is None or self.examples_ is None or not self._ranked().all():
            return self
        found = copy(self)
        found._additions = replace(added, head_weight=added.head_weight + weight)
        return found

    def _ranked(self) -> NDArray[np.bool_]:
        """Return which classes have rankings or similarities."""
        prototypes = self._prototypes()
        if prototypes is None:
            return np.ones(len(self.classes_), bool)
        return np.asarray(prototypes.directions.any(axis=1))

    def _learn(
        self, known: _Known, usual: Any, share: float
    ) -> tuple[tuple[Additions, Additions], ExampleFacts]:
        """Return what the rankings or similarities say, and what else some examples say.

        A head that knows the means of the classes learns both from the scores together.
        """
        C, L = len(self.items_), len(self.classes_)
        mean, std, noise, signal = np.zeros(C), np.ones(C), None, Signal(*SIGNAL)
        if usual is not None:
            mean, std, noise, signal = usual
        prototypes = self._prototypes()
        u = (known.f - mean) / std / np.sqrt(C)
        if usual is None and prototypes is not None:
            noise = measure_noise(u, known.codes, prototypes.directions)
        signal = self._usual_signal() or signal
        by_scores = fit_class_means(u, known.codes, L, signal, noise, prototypes)
        slopes = (by_scores.slopes / std / np.sqrt(C)).T
        none = Additions.zeros(C, known.features.shape[1], L)
        of_scores = replace(none, slopes=slopes, offsets=by_scores.offsets - mean @ slopes)
        expected = Signal(share * by_scores.signal, SHARE[1])
        of_features, found = self._learn_features(known, none, expected)
        facts = ExampleFacts(len(known.codes), by_scores.slope, found or by_scores.signal)
        if prototypes is not None:
            return (of_scores, of_features), facts
        alone = replace(none, head_weight=np.array(1.0))
        return (alone, of_scores if found is None else of_features), facts

    def _learn_features(
        self, known: _Known, none: Additions, signal: Signal
    ) -> tuple[Additions, float | None]:
        """Return what the features of examples say, and ρ; None if they say nothing."""
        if not known.features.shape[1]:
            return none, None
        center = center_features(known.features, known.codes)
        x = scale_features(known.features, center, np)
        # Features are centred by the examples, so those of a single class say nothing of others.
        if np.ptp(known.codes) == 0 or not x.any():
            return replace(none, feature_center=center), None
        found = fit_class_means(x, known.codes, len(self.classes_), signal)
        added = replace(
            none, feature_center=center, feature_slopes=found.slopes.T, offsets=found.offsets
        )
        return added, found.signal

    # ---- Evidence of another model

    def _learn_evidence(self, table: Scores) -> None:
        """Add slopes of evidence: one column per class, of which the mean is subtracted."""
        L = len(self.classes_)
        names = tuple(self.classes_.tolist())
        given, scale = center_evidence(np.asarray(table._evidence_of(names), np.float64))
        weight = self.evidence_weight
        if weight is None:
            log_proba = np.asarray(self.predict_log_proba(table), np.float64)
            weight = weigh_evidence(log_proba, given / scale)
        added = self._additions
        if added is None:
            added = replace(Additions.zeros(len(self.items_), 0, L), head_weight=np.array(1.0))
        by_class = weight / scale * (np.eye(L) - 1 / L)
        self._additions = replace(added, evidence_slopes=by_class)
        self.evidence_weight_ = float(weight)

    # ---- The formula, with what is added

    @property
    def n_features_(self) -> int:
        """The number of columns that inputs need besides their scores: features, then evidence."""
        added = self._additions
        return 0 if added is None else len(added.feature_slopes) + len(added.evidence_slopes)

    @property
    def evidence_classes_(self) -> tuple[str, ...]:
        """The classes of the evidence that inputs need in addition to their scores."""
        return () if self.evidence_weight_ is None else tuple(self.classes_.tolist())

    def _full_constants(self, kind: Kind, dtype: np.dtype[np.floating]) -> Constants:
        constants = {}
        if self._additions is None or self._additions.head_weight:
            constants = self._constants(kind, dtype)
        if self._additions is None:
            return constants
        added = self._additions.constants() | {"temperature": np.array(self.temperature_)}
        return constants | pair_constants(len(self.items_), kind) | with_prefix(ADDED, added)

    def _full_formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        if self._additions is None:
            return self._formula(f, kind, c, xp, lost)
        n = n_columns(len(self.items_), kind)
        own = without_prefix(ADDED, c)
        scores = center_rows(class_scores(f[:, :n], kind, len(self.items_), c, xp), xp)
        total = self._additions.apply(*scores, f[:, n:], own, xp)
        if self._additions.head_weight:
            by_head = self._formula(f[:, :n], kind, c, xp, lost) / own["temperature"]
            total = total + own["head_weight"] * log_softmax(by_head, xp, 1)
        return total * own["temperature"]

    def _full_log_posterior(self, values: Floats, kind: Kind) -> Floats:
        if self._additions is None:
            return self._log_posterior(values, kind)
        n = n_columns(len(self.items_), kind)
        # In single precision if the scores are.
        c = self._additions.constants(values.dtype)
        scores = center_rows(class_scores(values[:, :n], kind, len(self.items_), {}, np), np)
        total = self._additions.apply(*scores, values[:, n:], c, np)
        if self._additions.head_weight:
            by_head = self._log_posterior(np.ascontiguousarray(values[:, :n]), kind).T
            total += self._additions.head_weight * log_softmax(by_head / self.temperature_, np, 1)
        return np.ascontiguousarray(total.T) * self.temperature_

    # ---- Files

    def _describe_state(self) -> dict[str, Any]:
        state = super()._describe_state()
        state["examples"] = None if self.examples_ is None else list(self.examples_)
        state["evidence_weight"] = self.evidence_weight_
        if self._additions is not None:
            state |= {f"{ADDED}_{name}": value for name, value in vars(self._additions).items()}
        return state

    def _restore_state(self, state: Mapping[str, Any]) -> None:
        facts = state["examples"]
        self.examples_ = None if facts is None else ExampleFacts(*facts)
        self.evidence_weight_ = state["evidence_weight"]
        if f"{ADDED}_slopes" in state:
            parts = (np.asarray(state[f"{ADDED}_{part.name}"]) for part in fields(Additions))
            self._additions = Additions(*parts)
        super()._restore_state(state)

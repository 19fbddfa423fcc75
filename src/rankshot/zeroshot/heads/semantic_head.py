"""`SemanticHead`: heads that are fitted to rankings or similarities, and to what else is known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.arrays import (
    Array,
    Constants,
    Dtype,
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
    Additions,
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

Doubles = NDArray[np.float64]
Examples = tuple[Scores | ArrayLike, ArrayLike]
ADDED = "added"


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
    _added: Additions | None = None
    _learned: ClassVar[tuple[str, ...]] = ("evidence_weight_",)
    _records: ClassVar[Mapping[str, type]] = {"examples_": ExampleFacts, "_added": Additions}

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
        """Learn from rankings or similarities of the new classes, and from whatever else is known.

        Parameters
        ----------
        semantics : Rankings or Similarity
            Rankings of the seen classes, at least one for each new class; their weights are used.
            Or similarities, for `DirectSimilarity` and `ConSE`.
        reference : Scores or array-like, optional
            Scores of varied inputs of seen classes that the classifier was not trained on; no
            labels are needed. Not for `DeterministicRanking`, `DirectSimilarity` and `ConSE`.
        examples : scores and labels, optional
            Scores of inputs of new classes, and the class of each. There may be any number of them;
            for a `WeightedMean`, even of classes that have no ranking. Nothing is learned from
            examples of a single class that has a ranking. If these are `Scores` with ``features``,
            all scores to be classified must have such features.
        evidence : Scores, optional
            Scores with ``evidence``, of inputs like those to be classified; no labels are
            needed.
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
        self._added, self.examples_, self.evidence_weight_ = None, None, None
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
        """Learn from examples what is added to the log-probabilities of the head."""
        if lost := sorted({*labels.tolist()} - {*self.classes_.tolist()}):
            raise RankshotError(
                f"{type(self).__name__} cannot learn {quote_names(lost)} from examples alone; "
                "WeightedMean can"
            )
        ranked, there = self._ranked(), np.unique(labels)
        if len(there) == 1 and ranked[self.classes_ == there[0]].all():
            self.examples_ = ExampleFacts(len(labels), 0.0, 0.0, str(there[0]))
            return
        usual = Usual.without_reference(len(self.items_))
        if reference is not None:
            usual = measure_reference(as_reference(reference, self.items_), self._coverage())
        if (signal := self._usual_signal()) is not None:
            usual = usual._replace(signal=signal)
        prototypes = self._prototypes()
        by_head = np.zeros((len(labels), len(self.classes_)))
        if prototypes is None:
            by_head = np.asarray(self.predict_log_proba(table), np.float64)
        features = np.zeros((len(labels), 0)) if table.features is None else table.features
        known = Known(
            standardize_rows(table.values, table.kind, len(self.items_)),
            as_dense(features),
            by_head,
            np.searchsorted(self.classes_, labels),
        )
        self._added, self.examples_ = learn_examples(known, usual, prototypes, ranked)

    def _add_rankings(self, weight: float) -> Self:
        """Return a head that adds log-probabilities without the examples, times a weight.

        If a class has examples only, nothing is added.
        """
        added = self._added
        if added is None or self.examples_ is None or not self._ranked().all():
            return self
        found = copy(self)
        found._added = replace(added, head_weight=added.head_weight + weight)
        return found

    def _ranked(self) -> NDArray[np.bool_]:
        """Return which classes have rankings or similarities."""
        prototypes = self._prototypes()
        if prototypes is None:
            return np.ones(len(self.classes_), bool)
        return np.asarray(prototypes.directions.any(axis=1))

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
        added = self._added
        if added is None:
            added = replace(Additions.zeros(len(self.items_), 0, L), head_weight=1.0)
        by_class = weight / scale * (np.eye(L) - 1 / L)
        self._added = replace(added, evidence_slopes=by_class)
        self.evidence_weight_ = float(weight)

    # ---- The formula, with what is added

    @property
    def n_features_(self) -> int:
        """The number of features that inputs need besides their scores."""
        return 0 if self._added is None else len(self._added.feature_slopes)

    @property
    def evidence_classes_(self) -> tuple[str, ...]:
        """The classes of the evidence that inputs need besides their scores."""
        return () if self.evidence_weight_ is None else tuple(self.classes_.tolist())

    @abstractmethod
    def _formula(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        """Return the log-posteriors by rankings or similarities alone, as `_log_posterior`."""

    @abstractmethod
    def _formula_constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        """Return the NumPy arrays that the formula needs for scores of the library ``xp``."""

    def _constants(self, kind: Kind, dtype: Dtype, xp: Library) -> Constants:
        if self._added is None:
            return self._formula_constants(kind, dtype, xp)
        added = self._added.constants(dtype)
        added["temperature"] = np.array(self.temperature_, dtype)
        constants = with_prefix(ADDED, added) | pair_constants(len(self.items_), kind, xp)
        if self._added.head_weight:
            constants |= self._formula_constants(kind, dtype, xp)
        return constants

    def _log_posterior(self, f: Array, kind: Kind, c: Constants, xp: Library, lost: Lost) -> Array:
        if self._added is None:
            return self._formula(f, kind, c, xp, lost)
        n = n_columns(len(self.items_), kind)
        own = without_prefix(ADDED, c)
        scores = center_rows(class_scores(f[:, :n], kind, len(self.items_), c, xp), xp)
        total = self._added.apply(*scores, f[:, n:], own, xp)
        if self._added.head_weight:
            by_head = self._formula(f[:, :n], kind, c, xp, lost) / own["temperature"]
            total = total + own["head_weight"] * log_softmax(by_head, xp, 1)
        return total * own["temperature"]

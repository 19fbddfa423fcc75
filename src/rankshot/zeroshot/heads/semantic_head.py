"""`SemanticHead`: heads that are fitted to rankings or similarities, and to what else is known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse

from rankshot.core.arrays import (
    Array,
    Constants,
    Library,
    Lost,
    log_softmax,
    row_norm,
    with_prefix,
    without_prefix,
)
from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.zeroshot.evidence import center_evidence, weigh_evidence
from rankshot.zeroshot.examples import (
    CALIBRATION,
    HEAD_WEIGHT,
    SIGNAL,
    SIGNAL_OF_FEATURES,
    Prototypes,
    Signal,
    as_examples,
    assign_folds,
    center_features,
    fit_class_means,
    fit_factor,
    measure_dependence,
    measure_reference,
)
from rankshot.zeroshot.heads.base import BaseHead, as_reference
from rankshot.zeroshot.scores import (
    Kind,
    Scores,
    n_columns,
    pair_constants,
    standardize_rows,
)

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Codes = NDArray[np.intp]
Examples = tuple[Scores | ArrayLike, ArrayLike]
ADDED = "added"


class ExampleFacts(NamedTuple):
    """What a head learned from labelled examples.

    Attributes
    ----------
    n_examples : int
        The number of examples.
    slope : float
        β: how far the scores of the examples follow the rankings; 0 for rankings that are wrong.
        Only of a `WeightedMean`.
    signal : float
        ρ: the share of the scores, or else of the features, that the examples of a class have in
        common.
    head_weight : float
        The weight of the log-probabilities by rankings or similarities alone; 0 where these are
        part of the means of the classes.

    Examples
    --------
    >>> from rankshot.zeroshot import ExampleFacts
    >>> ExampleFacts._fields
    ('n_examples', 'slope', 'signal', 'head_weight')
    """

    n_examples: int
    slope: float
    signal: float
    head_weight: float


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

    def constants(self) -> Constants:
        """Return the arrays of the formula."""
        return dict(vars(self))

    def apply(self, f: Array, extra: Array, c: Constants, xp: Library) -> Array:
        """Return what is added for standardised scores ``f``, features and then evidence."""
        total = f @ c["slopes"] + c["offsets"]
        n = self.feature_slopes.shape[0]
        if n:
            total = total + _scale(extra[:, :n], c["feature_center"], xp) @ c["feature_slopes"]
        if self.evidence_slopes.shape[0]:
            total = total + extra[:, n:] @ c["evidence_slopes"]
        return total

    def evaluate(self, known: _Known) -> Doubles:
        """Return the log-odds of some inputs."""
        total = self.apply(known.f, known.features, self.constants(), np)
        return np.asarray(total + self.head_weight * known.by_head)

    def multiply(self, factor: float) -> Additions:
        """Return the same log-odds times a factor."""
        names = ("head_weight", "slopes", "offsets", "feature_slopes")
        return replace(self, **{name: factor * getattr(self, name) for name in names})


class _Known(NamedTuple):
    """Examples: standardised scores, features, log-probabilities by the head, and classes."""

    f: Doubles
    features: Doubles
    by_head: Doubles
    codes: Codes

    def take(self, rows: NDArray[np.bool_]) -> _Known:
        return _Known(self.f[rows], self.features[rows], self.by_head[rows], self.codes[rows])


def _scale(features: Array, center: Array, xp: Library) -> Array:
    """Return features less their centre, with length 1 in each row."""
    centered = features - center
    length = row_norm(centered, xp)
    return centered / xp.where(length > 0, length, 1.0)


class SemanticHead(BaseHead):
    """A head over new classes: fitted to rankings or similarities, and to what else is known."""

    examples_: ExampleFacts | None = None
    evidence_weight_: float | None = None
    _additions: Additions | None = None

    @property
    def takes_reference(self) -> bool:
        """Whether `fit` can use a reference."""
        return False

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
            for a `WeightedMean`, even of classes that have no ranking. If these are `Scores` with
            ``features``, all scores to be classified must have such features.
        evidence : Scores, optional
            Scores with ``evidence``, of inputs as they will be classified; no labels are needed.
            All scores to be classified must have evidence of the same model.
        """
        if reference is not None and not self.takes_reference:
            raise RankshotError(f"{short_repr(self)} cannot use a reference: leave it out")
        if evidence is not None and not isinstance(evidence, Scores):
            raise RankshotError(
                "evidence must be Scores(values, items, evidence=...) of inputs to be classified, "
                f"not {short_repr(evidence)}"
            )
        labelled = None
        if examples is not None:
            ranked = [str(name) for name in getattr(semantics, "targets", ())]
            labelled = as_examples(examples, getattr(semantics, "items", ()), ranked)
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
                f"examples: {type(self).__name__} has nothing but examples of {quote_names(lost)}; "
                "WeightedMean takes such classes"
            )
        usual = None
        if reference is not None:
            usual = measure_reference(as_reference(reference, self.items_), self._coverage())
        by_head, features = np.zeros((len(labels), len(self.classes_))), table.features
        if self._prototypes() is None:
            by_head = np.asarray(self.predict_log_proba(table), np.float64)
        if features is not None:
            features = np.asarray(features.toarray() if issparse(features) else features, float)
        known = _Known(
            np.asarray(standardize_rows(table.values, table.kind, len(self.items_))),
            np.zeros((len(labels), 0)) if features is None else features,
            by_head,
            np.searchsorted(self.classes_, labels),
        )
        learned, self.examples_ = self._learn(known, usual)
        fold, tested = assign_folds(known.codes), []
        ranked = self._ranked()
        for one in np.unique(fold):
            kept, left = known.take(fold != one), known.take(fold == one)
            # An example that is all that is known of a class cannot be left out.
            left = left.take(ranked[left.codes] | np.isin(left.codes, kept.codes))
            if len(kept.codes) and len(left.codes):
                tested.append((self._learn(kept, usual)[0].evaluate(left), left.codes))
        factor = 1.0
        if tested:
            values, codes = map(np.concatenate, zip(*tested, strict=True))
            factor = fit_factor(log_softmax(values, np, 1), codes, CALIBRATION)
        self._additions = learned.multiply(factor)

    def _ranked(self) -> NDArray[np.bool_]:
        """Return which classes have rankings or similarities."""
        prototypes = self._prototypes()
        if prototypes is None:
            return np.ones(len(self.classes_), bool)
        return np.asarray(prototypes.directions.any(axis=1))

    def _learn(self, known: _Known, usual: Any) -> tuple[Additions, ExampleFacts]:
        """Return what some examples add."""
        C, L = len(self.items_), len(self.classes_)
        mean, std, noise, signal = np.zeros(C), np.ones(C), None, Signal(*SIGNAL)
        if usual is not None:
            mean, std, noise, signal = usual
        prototypes = self._prototypes()
        u = (known.f - mean) / std / np.sqrt(C)
        signal = self._usual_signal() or signal
        by_scores = fit_class_means(u, known.codes, L, signal, noise, prototypes)
        slopes = (by_scores.slopes / std / np.sqrt(C)).T
        offsets = by_scores.offsets - mean @ slopes
        weight, found = 0.0, by_scores
        if prototypes is None:
            weight = fit_factor(known.by_head, known.codes, HEAD_WEIGHT)
        center, feature_slopes = np.zeros(0), np.zeros((0, L))
        if known.features.shape[1]:
            center = center_features(known.features, known.codes)
            x = _scale(known.features, center, np)
            feature_slopes = np.zeros((x.shape[1], L))
        # Features are centred by the examples, so those of a single class say nothing of others.
        if known.features.shape[1] and np.ptp(known.codes) > 0 and x.any():
            share, spread = SIGNAL_OF_FEATURES
            usual_signal = Signal(share * by_scores.signal, spread)
            found = fit_class_means(x, known.codes, L, usual_signal)
            feature_slopes = found.slopes.T
            if prototypes is None:
                slopes, offsets = 0.0 * slopes, found.offsets
            else:
                values = x @ feature_slopes + found.offsets
                factor = measure_dependence(known.f @ slopes + offsets, values, known.codes)
                slopes, feature_slopes = factor * slopes, factor * feature_slopes
                offsets = factor * (offsets + found.offsets)
        added = Additions(
            np.array(weight), slopes, offsets, center, feature_slopes, np.zeros((0, L))
        )
        return added, ExampleFacts(len(known.codes), by_scores.slope, found.signal, weight)

    # ---- Evidence of another model

    def _learn_evidence(self, table: Scores) -> None:
        """Add slopes of evidence: one column per class, of which the mean is subtracted."""
        L = len(self.classes_)
        names = tuple(self.classes_.tolist())
        given, scale = center_evidence(np.asarray(table._evidence_of(names), np.float64))
        weight: float | None = getattr(self, "evidence_weight", None)
        if weight is None:
            log_proba = np.asarray(self.predict_log_proba(table), np.float64)
            weight = weigh_evidence(log_proba, given / scale)
        added = self._additions
        if added is None:
            slopes, none = np.zeros((len(self.items_), L)), np.zeros((0, L))
            added = Additions(np.array(1.0), slopes, np.zeros(L), np.zeros(0), none, none)
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
        scores = standardize_rows(f[:, :n], kind, len(self.items_), c, xp)
        total = self._additions.apply(scores, f[:, n:], own, xp)
        if self._additions.head_weight:
            by_head = self._formula(f[:, :n], kind, c, xp, lost) / own["temperature"]
            total = total + own["head_weight"] * log_softmax(by_head, xp, 1)
        return total * own["temperature"]

    def _full_log_posterior(self, values: Floats, kind: Kind) -> Floats:
        if self._additions is None:
            return self._log_posterior(values, kind)
        n = n_columns(len(self.items_), kind)
        f = np.asarray(standardize_rows(values[:, :n], kind, len(self.items_)))
        total = self._additions.apply(f, values[:, n:], self._additions.constants(), np)
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

"""`Rehearsal`: hold out seen classes to choose settings, calibrate, and predict accuracy.

The first part chooses and calibrates, the second one holds classes out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from rankshot.core.errors import (
    RankshotError,
    format_count,
    format_share,
    quote_names,
    short_repr,
    suggest_name,
)
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import require_whole_number
from rankshot.ranking.matrices import restrict_items
from rankshot.ranking.rankings import Rankings
from rankshot.sources.similarity import Similarity
from rankshot.zeroshot import metrics
from rankshot.zeroshot.classifier import require_same_length
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.estimator_scores import scores_of
from rankshot.zeroshot.evidence import (
    Weighed,
    center_evidence,
    fit_evidence,
    fit_temperature,
)
from rankshot.zeroshot.examples import ExampleFacts
from rankshot.zeroshot.heads.base import (
    LEAST_INPUTS,
    BaseHead,
    Semantics,
    align_to,
    only_new,
    require_semantics,
    select_targets,
    source_names,
)
from rankshot.zeroshot.heads.seen_and_new import Gate, SeenAndNew, fit_gate
from rankshot.zeroshot.heads.semantic_head import Examples, SemanticHead
from rankshot.zeroshot.heads.weighted_mean import (
    WeightedMean,
    require_source_weights,
    weigh_sources,
)
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.plan import Plan
from rankshot.zeroshot.predicted_accuracy import (
    correlate_classes,
    find_strengths,
    predict_mean_accuracy,
)
from rankshot.zeroshot.scores import Scores, class_scores

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Correlations = tuple[Labels, Floats]
"""Some classes, and the correlations of their decision values."""
Grid = Mapping[str, Sequence[object]]
GRID: Grid = {"k": (5, 10, 15), "decay": (0.25, 0.5, 0.75)}
"""The settings that are tried by default, as far as the head has these parameters."""
REFERENCE_SHARE = 0.25
"""The share of the inputs that a classifier is not trained on, if it is trained again."""
ENOUGH_CLASSES = 20
"""With fewer rehearsed classes, temperatures of eight differed by a factor of three."""
SOURCE_WEIGHTS = (0.0, 0.3, 1.0)
"""The weights of a source that are tried."""
TEMPERATURES = (1e-4, 1e4)
"""The range of temperatures."""
ENOUGH_TO_JUDGE = 50
"""The number of inputs from which on a classifier that is no better than chance is noticed."""
LEAST_CLASSES = 5
"""With fewer classes, a rehearsal tells nothing about other classes."""
USUAL_FOLDS = 5
"""The number of groups, if there are classes enough for two in each."""


class Rehearsal(BaseEstimator):
    """Hold out some seen classes to estimate how well new classes will be recognised.

    The scores of the held-out classes are removed, and the head has to recognise their inputs by
    their rankings, as if they were new classes. This requires labelled scores of inputs of seen
    classes, and rankings of seen classes by the same sources that rank the new classes (command:
    ``rankshot rank --rehearse labels.csv``). It requires no data of the new classes. A rehearsal

    - chooses the weights of the sources, ``k``, ``decay`` and whether to use a reference. A change
      is made only if the accuracy increases by more than its standard error over the classes
      (twice the standard error for source weights, because more of them are tried);
    - finds the temperature that calibrates the probabilities, and the weight of evidence from
      another model, if the scores have evidence for the held-out classes;
    - finds the weight of labelled examples, for which some inputs of the held-out classes are
      used;
    - predicts the accuracy on the new classes (`predict_accuracy`);
    - learns the gate that decides between seen and new classes, if both may be predicted
      (`SeenAndNew`), and "none of these": half of the held-out classes serve as new ones, and
      inputs of the other half belong to no class.

    Parameters
    ----------
    head : head, optional
        The head whose settings are chosen; by default a `WeightedMean`.
    grid : dict of str to list, optional
        The parameter values to try, in all combinations. By default some values of ``k`` and
        ``decay``.
    estimator : classifier, optional
        If given, `fit` takes inputs instead of scores, and the classifier is retrained without the
        held-out classes. This is more realistic, because a trained classifier has already learned
        from inputs of the held-out classes.
    n_folds : int, optional
        If the rankings list rehearsed classes, these are divided at random into this number of
        groups, which are held out in turn. Otherwise, all are held out together. A group has at
        least two classes: the default is 5, and half the number of classes if there are fewer than
        10.
    verbose : bool
        Show the progress on standard error.

    Attributes
    ----------
    plan_ : Plan
        What was chosen: the parameters of the head with its temperature, the weights of the
        sources, whether to use a reference, and the gate between seen and new classes (if there
        are enough inputs of other seen classes) with the temperature of the seen classes.
    head_ : head
        A copy of the head with these settings; not fitted.
    trials_ : list of Trial
        All trials, in order; the first is the head with its own settings.
    accuracy_ : Interval
        The mean accuracy of the rehearsed classes with the chosen settings, and its 95% interval
        from resamples of classes.
    calibration_error_ : tuple of float
        The expected calibration error on the rehearsed classes, with the default temperature and
        with the chosen one, which was fitted to the same inputs.
    together_ : GeneralizedAccuracy or None
        The accuracies on the rehearsed and on the other seen classes if both may be predicted, and
        their harmonic mean. They are measured on the inputs that the gate was fitted to.
    other_share_ : float
        The largest share of inputs of other classes that this gate estimates in a group of
        held-out classes, although there are none; 1 without a gate.
    classes_ : ndarray of str
        The rehearsed classes.
    estimator_ : classifier
        The classifier with the chosen settings, trained on all inputs; only with ``estimator``.

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> rng = np.random.default_rng(0)
    >>> places = np.arange(12)
    >>> names = np.array([f"class{i:02}" for i in places])
    >>> label = np.repeat(places, 30)                    # classes on a line, as a network sees them
    >>> scores = -abs(label[:, None] - places) + rng.normal(size=(360, 12))
    >>> near = rs.Similarity(-abs(places[:, None] - places).astype(float), names, names)
    >>> rehearsal = rs.Rehearsal(n_folds=3).fit(
    ...     rs.Scores(scores, names), names[label], near.to_rankings())
    >>> print(rehearsal.accuracy_)
    .953 [.911, .986]
    >>> new = rs.Similarity(-abs(np.array([[2.5], [7.5]]) - places), ["new1", "new2"], names)
    >>> head = rehearsal.fit_head(new.to_rankings())
    >>> head.predict(-abs(2.5 - places)[None])
    array(['new1'], dtype='<U4')
    """

    def __init__(
        self,
        head: BaseHead | None = None,
        *,
        grid: Grid | None = None,
        estimator: BaseEstimator | None = None,
        n_folds: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.head = head
        self.grid = grid
        self.estimator = estimator
        self.n_folds = n_folds
        self.verbose = verbose

    def fit(self, X: object, y: object, rankings: Semantics) -> Rehearsal:
        """Hold out classes, choose the settings, and measure the accuracy.

        Parameters
        ----------
        X : Scores, or inputs of the ``estimator``
            Scores of inputs of seen classes that the classifier was not trained on: of the
            rehearsed classes, and of others for the reference. The scores need no columns for the
            rehearsed classes; evidence from another model does. With an ``estimator``: its
            training inputs. It is trained on a part of them, and never evaluated on inputs that it
            was trained on.
        y : array-like of names
            Their classes.
        rankings : Rankings or Similarity
            Rankings of *seen* classes, by the sources that rank the new classes; similarities for
            a head that takes them.
        """
        head = WeightedMean() if self.head is None else self.head
        if not isinstance(head, SemanticHead):
            raise RankshotError(
                f"head must not contain another head: pass one such as WeightedMean(), not "
                f"{short_repr(head)}"
            )
        require_same_length(X, y)
        labels = np.asarray(y).astype(str)
        semantics = _require_rehearsed(rankings, labels)
        if self.estimator is None:
            X = _require_scores(X, labels, semantics)
        groups = choose_groups(semantics, self.n_folds)
        self.classes_ = np.array(sorted(name for group in groups for name in group))
        grid = self._read_grid(head)
        with ProgressLine("rehearsal", enabled=self.verbose) as line:
            line.update("training" if self.estimator is not None else "scores")
            folds = [self._make_fold(X, labels, semantics, group) for group in groups]
            trials = _Trials(head, folds, line)
            trials.choose(grid)
            trials.choose_evidence()
        self._calibrate(trials)
        self._rehearsed = semantics
        if isinstance(X, Scores):
            self._reference = X
        else:
            self.estimator_ = clone(self.estimator).fit(X, labels)
            self._reference = scores_of(self.estimator_, X)
        return self

    def _read_grid(self, head: SemanticHead) -> list[dict[str, object]]:
        """Return the settings of the head to try."""
        there = head.get_params()
        grid = self.grid
        if grid is None:
            grid = {name: values for name, values in GRID.items() if name in there}
        for name in grid:
            if name not in there or name == "temperature":
                raise RankshotError(
                    f"grid: {name!r} is not a parameter of {type(head).__name__} that can be "
                    f"chosen{suggest_name(name, there)}; the temperature is found without a grid"
                )
        return list(ParameterGrid(grid))

    def _make_fold(
        self, X: object, labels: Labels, semantics: Semantics, group: tuple[str, ...]
    ) -> Fold:
        """Hold out a group; train the classifier again without it, if there is one."""
        if isinstance(X, Scores):
            return hold_out(X, labels, semantics, group)
        rng = np.random.default_rng(0)
        kept = np.isin(labels, group) | (rng.random(len(labels)) < REFERENCE_SHARE)
        train = np.flatnonzero(~kept)
        trained = clone(self.estimator).fit(_safe_indexing(X, train), labels[train])
        scores = scores_of(trained, _safe_indexing(X, np.flatnonzero(kept)))
        return hold_out(scores, labels[kept], semantics, group)

    def _calibrate(self, stage: _Trials) -> None:
        """Keep what was chosen, with its temperature and its gate."""
        chosen, outcomes = stage.chosen, stage.chosen_outcomes
        self.trials_, self.accuracy_ = stage.trials, chosen.accuracy
        own = stage.with_params(temperature=None)
        before = stage.fit(stage.folds[0], own).temperature_
        tables = [(one.values, one.columns, metrics.class_weights(one.labels)) for one in outcomes]
        after = fit_temperature(tables, TEMPERATURES)
        self.calibration_error_ = tuple(
            float(np.mean([one.calibration_error(t) for one in outcomes])) for t in (before, after)
        )
        found: dict[str, object] = {"temperature": after}
        if stage.has_evidence and chosen.plan.head.evidence_weight is None:
            found["evidence_weight"] = 0.0
        plan = stage.rehearse_examples(stage.with_params(**found))
        self.together_: metrics.GeneralizedAccuracy | None = None
        self.other_share_ = 1.0
        if all(len(fold.seen) >= LEAST_INPUTS for fold in stage.folds):
            gate, seen_temperature, self.together_, self.other_share_ = _rehearse_gate(stage, plan)
            plan = replace(plan, gate=gate, seen_temperature=seen_temperature)
        self.plan_ = replace(plan, default_temperature=before)
        self.head_ = self.plan_.make_head()
        self._chosen = chosen

    def fit_head(
        self,
        rankings: Semantics,
        reference: Scores | None = None,
        *,
        examples: Examples | None = None,
        evidence: Scores | None = None,
        classes: Literal["new", "all"] = "new",
        none: bool = False,
    ) -> BaseHead:
        """Return the chosen head, fitted to the new classes.

        Parameters
        ----------
        rankings : Rankings or Similarity
            Rankings of the new classes by the same sources. Rankings of seen classes are ignored.
        reference : Scores, optional
            Scores of inputs of seen classes by the classifier that will be used. By default the
            scores passed to `fit`. With an ``estimator``, these are scores of training inputs, and
            scores of held-out inputs are better.
        examples, evidence : optional
            Labelled examples of new classes, and scores with evidence of another model, as in
            `WeightedMean.fit`.
        classes : {"new", "all"}
            Whether only new classes may be predicted, or seen classes as well (`SeenAndNew`).
        none : bool
            Whether "none of these" may be predicted as well.
        """
        check_is_fitted(self, "plan_")
        table = self._reference if reference is None else reference
        new = only_new(align_to(rankings, table.items))
        plan = replace(self.plan_, classes=classes, none=none)
        require_gate(plan)
        return plan.fit(new, table, examples, evidence)

    def predict_accuracy(
        self, rankings: Semantics, reference: Scores | None = None, trial: Trial | None = None
    ) -> Interval | None:
        """Predict the mean accuracy of new classes, with a 95% interval for these classes.

        The prediction depends on the accuracies of the rehearsed classes, especially those with
        similar rankings, on the number of new classes, and on how similar the rankings of the new
        classes are to each other.

        Parameters
        ----------
        rankings, reference
            As for `fit_head`.
        trial : Trial, optional
            One of ``trials_``, such as a single source; by default the chosen settings.

        Returns
        -------
        Interval or None
            None if no ranking in use has a rater, as with WordNet and word vectors. Such tables
            rank some kinds of classes well and others badly: on held-out seen classes, the
            coverage of the intervals was below their nominal level.
        """
        check_is_fitted(self, "plan_")
        tried = self._chosen if trial is None else trial
        if tried not in self.trials_:
            raise RankshotError(f"trial must be one of trials_, not {short_repr(trial)}")
        table = self._reference if reference is None else reference
        new: Any = only_new(align_to(rankings, table.items))
        if not _has_raters(new, tried.plan):
            return None
        head = tried.plan.fit(new, table)
        strengths = [
            find_strengths(np.array([tried.by_class[z] for z in classes]), correlations)
            for classes, correlations in tried.correlations
        ]
        rehearsed: Any = self._rehearsed
        rehearsed = align_to(restrict_items(rehearsed, table.items), table.items)
        both = tried.plan.fit(Rankings.concatenate([rehearsed, new]), table)
        names = np.concatenate([*(classes for classes, _ in tried.correlations), head.classes_])
        order = np.searchsorted(both.classes_, names)
        similarity = correlate_classes(both, table)[np.ix_(order, order)]
        return predict_mean_accuracy(
            np.concatenate(strengths), similarity, correlate_classes(head, table)
        )


def _has_raters(new: Semantics, plan: Plan) -> bool:
    """Return whether people or language models made some of the rankings that count."""
    if not isinstance(new, Rankings):
        return False
    if plan.source_weights is not None:
        new = weigh_sources(new, require_source_weights(plan.source_weights, new))
    return bool(new.rater_names)


def describe_prediction(
    rehearsal: Rehearsal, new: Semantics | None, predicted: Interval | None
) -> list[str]:
    """Return sentences on the accuracy that a rehearsal predicts, and on what is doubtful.

    ``predicted`` is what `Rehearsal.predict_accuracy` returns for the rankings ``new``, if there
    are any.
    """
    lines = []
    if new is not None:
        n_new = len(set(new.targets) - set(new.items))
        classes = format_count(n_new, "new class")
        text = (
            f"no accuracy is predicted for the {classes}: tables without raters, such as WordNet, "
            "rank some kinds of classes well and others badly, so held-out classes cannot "
            "predict the accuracy on new ones. If people or language models made these rankings, "
            "name the raters"
        )
        if predicted is not None:
            text = (
                f"predicted mean accuracy of the {classes}, each input alone, with 95% interval: "
                f"{predicted} (random guessing: {format_share(1 / n_new)})"
            )
        lines.append(text)
        lines += _describe_sources_alone(rehearsal, new)
    if len(rehearsal.classes_) < ENOUGH_CLASSES:
        can_rehearse = len(rehearsal._reference.items) >= ENOUGH_CLASSES
        remedy = f"; hold out {ENOUGH_CLASSES} or more" * can_rehearse
        lines.append(
            f"warning: only {len(rehearsal.classes_)} classes were held out, so the temperature is "
            f"uncertain{remedy}"
        )
    return lines


def _describe_sources_alone(rehearsal: Rehearsal, new: Semantics) -> list[str]:
    """Return the predicted accuracy of the new classes by each of several sources alone."""
    lines = []
    for trial in rehearsal.trials_:
        weights = trial.plan.source_weights or {}
        used = [source for source, weight in weights.items() if weight > 0]
        if trial.what.endswith(" alone") and used[0] in source_names(new):
            predicted = rehearsal.predict_accuracy(new, trial=trial)
            if predicted is not None:
                lines.append(f"predicted for {used[0] or 'no source'} alone: {predicted}")
    return lines


def _require_rehearsed(rankings: Semantics, labels: Labels) -> Semantics:
    """Return the rankings of classes that have inputs; they can be rehearsed."""
    semantics = require_semantics(rankings)
    targets, there = np.array(semantics.targets, object).astype(str), np.unique(labels)
    known = np.isin(targets, there)
    if not known.any():
        raise RankshotError(
            "none of the inputs belongs to a ranked class: the rankings are of "
            f"{quote_names(np.unique(targets).tolist(), 4)}, the inputs are of "
            f"{quote_names(there.tolist(), 4)}. A rehearsal needs rankings of seen classes"
        )
    return select_targets(semantics, known)


def _require_scores(X: object, labels: Labels, semantics: Semantics) -> Scores:
    """Return X, if it has scores for these labels."""
    if not isinstance(X, Scores):
        raise RankshotError(
            f"X must be Scores of inputs of seen classes, not {short_repr(X)}; "
            "inputs need estimator="
        )
    known = {*X.items, *semantics.targets}
    if unknown := [name for name in dict.fromkeys(labels.tolist()) if name not in known]:
        raise RankshotError(
            f"the labels {quote_names(unknown)} are neither classes of the scores nor ranked"
            f"{suggest_name(unknown[0], X.items)}"
        )
    return X


def require_gate(plan: Plan) -> None:
    """Raise if a rehearsal could not learn what decides between seen and new classes."""
    if not plan.has_gate:
        return
    if plan.gate is None:
        raise RankshotError(
            "there is no gate between seen and new classes: the rehearsal had fewer than "
            f"{LEAST_INPUTS} inputs of other seen classes"
        )
    if plan.none and plan.classes == "all" and plan.gate.none is None:
        raise RankshotError(
            "'none of these' was not rehearsed: each group of held-out classes has fewer than "
            f"{2 * LEAST_CLASSES}, so rehearse more classes, or use fewer groups"
        )


# ---- Trials: what is tried, what is chosen, and the temperature that calibrates it


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to recognise the rehearsed classes, and how accurate it was.

    ``what`` says it in words: ``"default settings"``, ``"k=5, decay=0.25"``, ``"WordNet alone"``,
    ``"survey 1, WordNet 0.3"``.
    The interval of the mean accuracy is from resamples of classes. ``correlations`` has the classes
    of each fold, and the correlations of their decision values.
    """

    what: str
    plan: Plan
    accuracy: Interval
    by_class: dict[str, float]
    correlations: Sequence[Correlations] = field(repr=False)

    def is_clearly_better(self, other: Trial, n_errors: float = 1.0) -> bool:
        """Return whether the gain is larger than this number of standard errors over the classes.

        With few classes, the best of several trials is often best by chance.
        """
        gain = np.array([self.by_class[name] - other.by_class[name] for name in self.by_class])
        return bool(gain.mean() > n_errors * gain.std(ddof=1) / np.sqrt(len(gain)))


class _Outcome(NamedTuple):
    """What a head says about the inputs of the held-out classes of a fold."""

    labels: Labels
    classes: Labels
    values: Floats

    @property
    def columns(self) -> NDArray[np.intp]:
        return np.searchsorted(self.classes, self.labels)

    def calibration_error(self, temperature: float) -> float:
        proba = softmax(self.values / temperature, axis=1)
        return metrics.expected_calibration_error(self.labels, proba, self.classes)


class _Trials:
    """All trials with the scores of one classifier, and what was chosen among them."""

    def __init__(self, head: SemanticHead, folds: list[Fold], line: ProgressLine) -> None:
        self.head, self.folds, self._line = head, folds, line
        self.trials: list[Trial] = []
        self.has_evidence = "evidence_weight" in head.get_params() and all(
            fold.new.evidence is not None for fold in folds
        )
        self._outcomes: list[list[_Outcome]] = []
        enough = all(len(fold.seen) >= LEAST_INPUTS for fold in folds)
        reference = head.takes_reference and enough
        own = Plan(head=head, reference=reference)
        own = replace(own, source_weights=self._default_source_weights(own))
        self.chosen = self._evaluate("default settings", own)

    def _default_source_weights(self, plan: Plan) -> dict[str, float] | None:
        """Return the weights of all sources; a source counts if it does so in any fold."""
        if isinstance(self.folds[0].semantics, Similarity):
            return None
        weights: dict[str, float] = {}
        for fold in self.folds:
            fitted = self.fit(fold, plan)
            ones = dict.fromkeys(source_names(fold.semantics), 1.0)
            for source, weight in (fitted.source_weights_ or ones).items():
                weights[source] = max(weight, weights.get(source, 0.0))
        return dict(sorted(weights.items()))

    @property
    def chosen_outcomes(self) -> list[_Outcome]:
        """What the chosen head says, for each fold."""
        return self._outcomes[self.trials.index(self.chosen)]

    def choose(self, grid: list[dict[str, object]]) -> None:
        """Try other sources, parameters and no reference; keep what is clearly better."""
        self._choose_source_weights()
        tried = [
            self._evaluate(
                ", ".join(f"{name}={value}" for name, value in params.items()),
                self.with_params(**params),
            )
            for params in grid
            if params
        ]
        self._keep_if_better(tried)
        if self.chosen.plan.reference:
            without = replace(self.chosen.plan, reference=False)
            self._keep_if_better([self._evaluate("no reference", without)])

    def choose_evidence(self) -> None:
        """Try evidence with the weight, and the temperature, that make the labels most probable."""
        if not self.has_evidence or self.chosen.plan.head.evidence_weight is not None:
            return
        parts = []
        for fold, one in zip(self.folds, self.chosen_outcomes, strict=True):
            given, scale = center_evidence(fold.new._evidence_of(tuple(one.classes.tolist())))
            weight = metrics.class_weights(one.labels)
            parts.append(Weighed(one.values, given / scale, one.columns, weight))
        temperature, evidence_weight = fit_evidence(parts)
        plan = self.with_params(temperature=temperature, evidence_weight=evidence_weight)
        # Accuracies are predicted from rankings and a reference, which has no such evidence.
        tried = self._evaluate("with evidence", plan, self.chosen.correlations)
        self._keep_if_better([tried])

    def _choose_source_weights(self) -> None:
        """Try each source alone, then change one weight at a time while that is clearly better."""
        names = tuple(self.chosen.plan.source_weights or ())
        if len(names) < 2:
            return
        alone = [{name: float(name == only) for name in names} for only in names]
        self._keep_if_better([self._weigh(weights) for weights in alone], 2)
        before = None
        while before is not self.chosen:
            before = self.chosen
            weights = dict(before.plan.source_weights or {})
            changed = [weights | {name: step} for name in names for step in SOURCE_WEIGHTS]
            self._keep_if_better([self._weigh(each) for each in changed if any(each.values())], 2)

    def _weigh(self, weights: dict[str, float]) -> Trial:
        """Try some weights of sources; the largest is 1."""
        largest = max(weights.values())
        weights = {source: weight / largest for source, weight in weights.items()}
        used = {source or "no source": weight for source, weight in weights.items() if weight > 0}
        what = ", ".join(f"{source} {weight:.2g}" for source, weight in used.items())
        if len(used) == 1:
            what = f"{next(iter(used))} alone"
        return self._evaluate(what, replace(self.chosen.plan, source_weights=weights))

    def _keep_if_better(self, trials: list[Trial], n_errors: float = 1.0) -> None:
        best = max(trials, key=lambda trial: trial.accuracy.estimate, default=self.chosen)
        if best.is_clearly_better(self.chosen, n_errors):
            self.chosen = best

    def with_params(self, **params: object) -> Plan:
        """Return the chosen plan with some parameters of its head replaced."""
        plan = self.chosen.plan
        return replace(plan, head=clone(plan.head).set_params(**params))

    def rehearse_examples(self, plan: Plan) -> Plan:
        """Return a plan with β and ρ of labelled examples, as the held-out classes show them."""
        if "example_prior" not in self.head.get_params():
            return plan
        facts = [self._learn_examples(fold, plan) for fold in self.folds]
        prior = np.mean([(one.slope, one.signal) for one in facts], axis=0).tolist()
        return replace(plan, head=clone(plan.head).set_params(example_prior=prior))

    def _learn_examples(self, fold: Fold, plan: Plan) -> ExampleFacts:
        """Return what all inputs of held-out classes tell as examples, by their scores alone."""
        examples = replace(fold.new, features=None), fold.new_label
        head = cast("SemanticHead", plan.fit(fold.semantics, fold.seen, examples))
        return cast("ExampleFacts", head.examples_)

    def fit(self, fold: Fold, plan: Plan) -> SemanticHead:
        """Return the head of a plan, fitted to the held-out classes of a fold."""
        evidence = fold.new if plan.head.evidence_weight and self.has_evidence else None
        head = plan.fit(fold.semantics, fold.seen, evidence=evidence)
        return cast("SemanticHead", head)

    def _evaluate(
        self, what: str, plan: Plan, correlations: Sequence[Correlations] | None = None
    ) -> Trial:
        """Measure one way to recognise the held-out classes; the same way only once."""
        for trial in self.trials:
            if trial.plan.to_json() == plan.to_json():
                return trial
        self._line.update(what)
        outcomes, found = [], []
        for fold in self.folds:
            head = self.fit(fold, plan)
            values = np.asarray(head.decision_function(fold.new), np.float64)
            outcomes.append(_Outcome(fold.new_label, head.classes_, values))
            # Without a reference, correlations are those over the inputs themselves.
            table = fold.seen if len(fold.seen) > 1 else fold.new
            if correlations is None:
                found.append((head.classes_, correlate_classes(head, table)))
        labels = np.concatenate([one.labels for one in outcomes])
        right = np.concatenate(
            [one.classes[most_probable(one.values)] == one.labels for one in outcomes]
        )
        by_class = {str(z): float(right[labels == z].mean()) for z in np.unique(labels)}
        accuracy = metrics.class_interval(labels, right)
        trial = Trial(what, plan, accuracy, by_class, correlations or found)
        self.trials.append(trial)
        self._outcomes.append(outcomes)
        return trial


# ---- The gate between seen and new classes


def _rehearse_gate(
    stage: _Trials, plan: Plan
) -> tuple[Gate, float, metrics.GeneralizedAccuracy, float]:
    """Learn the gate from inputs of held-out classes and of the other seen classes.

    Returned are the gate, the temperature of the seen classes, the accuracies where both may be
    answered, as means over the folds, and the largest share of other inputs found in a fold.
    """
    folds = stage.folds
    pairs = [SeenAndNew(stage.fit(f, plan)).fit(f.seen, f.seen_label) for f in folds]
    new = [both.gate_features(fold.new) for both, fold in zip(pairs, folds, strict=True)]
    seen = [both.gate_features(fold.seen) for both, fold in zip(pairs, folds, strict=True)]
    gate = fit_gate(np.concatenate(new), np.concatenate(seen))
    halves = [groups for fold in folds for groups in _features_of_halves(fold, stage)]
    if halves:
        groups = (np.concatenate(group) for group in zip(*halves, strict=True))
        gate = Gate(gate.new, fit_gate(*groups).none)
    temperatures = np.array([both.seen_temperature_ for both in pairs], np.float64)
    seen_temperature = float(np.exp(np.log(temperatures).mean()))
    measured = []
    for pair, fold in zip(pairs, folds, strict=True):
        both = SeenAndNew(pair.head, gate=gate, seen_temperature=seen_temperature).fit(fold.seen)
        truth = np.concatenate([fold.new_label, fold.seen_label])
        found = np.concatenate([both.predict(fold.new), both.predict(fold.seen)])
        measured.append(metrics.generalized_accuracy(truth, found, fold.seen.items))
    together = metrics.GeneralizedAccuracy(*np.mean(measured, axis=0).tolist())
    return gate, seen_temperature, together, max(map(gate.estimate_other_share, new))


def _features_of_halves(fold: Fold, stage: _Trials) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield the features of new classes, seen classes and neither.

    Half of the held-out classes stand for new ones. The inputs of the other half are of no class
    that the head knows.
    """
    names = np.unique(fold.new_label)
    if len(names) < 2 * LEAST_CLASSES:
        return
    for half in (names[::2], names[1::2]):
        is_half = np.isin(np.array(fold.semantics.targets, object), half)
        part = fold._replace(semantics=select_targets(fold.semantics, is_half))
        both = SeenAndNew(stage.fit(part, stage.chosen.plan)).fit(fold.seen)
        features = both.gate_features(fold.new)
        known = np.isin(fold.new_label, half)
        yield features[known], both.gate_features(fold.seen), features[~known]


# ---- Held-out classes: which, and with which rankings


class Fold(NamedTuple):
    """Some held-out classes that stand for new ones.

    ``semantics`` are those of the held-out classes, by the other seen classes. ``new`` are scores
    of their inputs, without their own columns; ``seen`` those of inputs of the other classes.
    """

    semantics: Semantics
    new: Scores
    new_label: Labels
    seen: Scores
    seen_label: Labels


def choose_groups(semantics: Semantics, n_folds: int | None) -> list[tuple[str, ...]]:
    """Return the groups of classes that are held out together: see `Rehearsal`."""
    ranked = sorted(set(semantics.targets))
    if len(ranked) < LEAST_CLASSES:
        raise RankshotError(
            f"only {format_count(len(ranked), 'seen class')} with rankings and inputs "
            f"({quote_names(ranked)}): a rehearsal needs at least {LEAST_CLASSES}, and 20 are "
            "better"
        )
    if not _listed_items(semantics) & set(ranked):
        return [tuple(ranked)]
    most = len(ranked) // 2
    number = min(USUAL_FOLDS, most) if n_folds is None else n_folds
    number = require_whole_number("n_folds", number, least=1, most=most)
    mixed = np.random.default_rng(0).permutation(ranked)
    return [tuple(group.tolist()) for group in np.array_split(mixed, number)]


def hold_out(scores: Scores, labels: Labels, semantics: Semantics, group: tuple[str, ...]) -> Fold:
    """Hold out a group of classes: their columns leave the scores and the rankings."""
    left = scores.select([name for name in scores.items if name not in group])
    # Classes without a column that are in another group are neither.
    is_new, is_seen = np.isin(labels, group), np.isin(labels, left.items)
    _require_agreement(left[is_seen], labels[is_seen])
    about = _restrict(semantics, group, left.items)
    return Fold(about, left[is_new], labels[is_new], left[is_seen], labels[is_seen])


def _require_agreement(scores: Scores, labels: Labels) -> None:
    """Raise if the classifier is no better than chance: then scores and labels do not belong."""
    if len(scores) < ENOUGH_TO_JUDGE:
        return
    values = class_scores(scores.values, scores.kind, len(scores.items), {}, np)
    agreement = float(np.mean(np.array(scores.items)[most_probable(values)] == labels))
    if agreement < 2 / len(scores.items):
        raise RankshotError(
            f"only {agreement:.1%} of the inputs of other seen classes have the highest score for "
            "their own class: do the labels belong to these scores, row by row?"
        )


def _listed_items(semantics: Semantics) -> set[str]:
    """Return the items that rankings list; of similarities, all."""
    if isinstance(semantics, Similarity):
        return set(semantics.items)
    return {semantics.items[code] for code in np.unique(semantics.codes)}


def _restrict(semantics: Semantics, group: tuple[str, ...], items: tuple[str, ...]) -> Semantics:
    """Return the rankings of the held-out group, by the remaining seen classes."""
    about = select_targets(semantics, np.isin(np.array(semantics.targets, object), group))
    if isinstance(about, Similarity):
        return about.select(about.targets, items)
    if wrong := sorted(_listed_items(about) - set(items) - set(group)):
        raise RankshotError(
            f"the rankings list {quote_names(wrong)}, which the scores do not have"
            f"{suggest_name(wrong[0], items)}"
        )
    about = restrict_items(about, [name for name in about.items if name in set(items)])
    if missing := sorted(set(group) - set(about.target_names)):
        raise RankshotError(
            f"the rankings of {quote_names(missing)} list no seen class that is left if "
            f"{quote_names(group)} are held out"
        )
    return align_to(about, items)

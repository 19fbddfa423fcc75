"""`Forecast`: what a rehearsal found. Seen classes are held out as if they were new.

The settings that are clearly better on held-out classes are chosen, probabilities are calibrated,
and the accuracy on new classes is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.model_selection import ParameterGrid

from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    format_count,
    format_share,
    quote_names,
    suggest_name,
)
from rankshot.core.validation import require_whole_number
from rankshot.ranking.matrices import restrict_items
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot import metrics
from rankshot.zeroshot.class_rankings import (
    only_new,
    require_source_weights,
    source_names,
    weigh_sources,
)
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.evidence import Weighed, center_evidence, fit_evidence, fit_temperature
from rankshot.zeroshot.metrics import Interval
from rankshot.zeroshot.predicted_accuracy import (
    CONFIDENCE_ERROR,
    correlate_classes,
    find_strengths,
    predict_mean_accuracy,
)
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.weighted_mean import LEAST_INPUTS, WeightedMean

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Correlations = tuple[Labels, Floats]
"""Some classes, and the correlations of their decision values."""
Grid = Mapping[str, Sequence[object]]
GRID: Grid = {"k": (5, 10, 15), "decay": (0.25, 0.5, 0.75)}
"""The settings that are tried by default."""
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


Known = Any
"""`rankshot.Knowledge`, which is above this file."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to recognise the rehearsed classes, and how accurate it was.

    Attributes
    ----------
    what : str
        In words: ``"default settings"``, ``"k=5, decay=0.25"``, ``"WordNet alone"``,
        ``"survey 1, WordNet 0.3"``.
    settings : Settings
    accuracy : Interval
        The mean accuracy, with an interval from resamples of classes.
    by_class : dict of str to float
        The accuracy on each rehearsed class.
    confidence : float
        The mean probability of the predicted class; all rehearsed classes have equal weight.
    correlations : list
        The classes of each fold, and the correlations of their decision values.

    Examples
    --------
    >>> from rankshot.zeroshot import Settings, Trial
    >>> from rankshot.zeroshot.metrics import Interval
    >>> one, other = (
    ...     Trial(f"k={k}", Settings(k=k), Interval(a, 0, 1), {"cat": a, "dog": a + 0.1}, a, [])
    ...     for k, a in ((5, 0.5), (10, 0.7)))
    >>> other.is_clearly_better(one)
    True
    """

    what: str
    settings: Settings
    accuracy: Interval
    by_class: dict[str, float]
    confidence: float
    correlations: Sequence[Correlations] = field(repr=False)

    def is_clearly_better(self, other: Trial, n_errors: float = 1.0) -> bool:
        """Whether the gain is larger than ``n_errors`` standard errors over the classes.

        With few classes, the best of several trials is often best by chance. The gain is that over
        the ``other`` trial.
        """
        gain = np.array([self.by_class[name] - other.by_class[name] for name in self.by_class])
        return bool(gain.mean() > n_errors * gain.std(ddof=1) / np.sqrt(len(gain)))


@dataclass(frozen=True, eq=False, repr=False)
class Forecast:
    """What a rehearsal found.

    Attributes
    ----------
    known : Knowledge
        What was rehearsed on.
    settings : Settings
        What was chosen: the weights of the sources, ``k``, ``decay``, whether to use a reference,
        the temperature that calibrates, and the weight of evidence.
    trials : list of Trial
        All trials, in order; the first has the settings with which the rehearsal began.
    chosen : Trial
        The trial with the settings that were chosen.
    accuracy : Interval
        The mean accuracy of the rehearsed classes with the chosen settings, and its 95% interval
        from resamples of classes.
    calibration_error : tuple of float
        The expected calibration error on the rehearsed classes, with the default temperature and
        with the chosen one, which was fitted to the same inputs.
    classes : ndarray of str
        The rehearsed classes.
    predicted : Interval or None
        The mean accuracy on the new classes, with a 95% interval for these classes; None if there
        are no rankings of new classes, or none by raters (see `predict_accuracy`).

    Examples
    --------
    >>> import numpy as np, rankshot as rs
    >>> places = np.arange(12)
    >>> names = [f"class{i:02}" for i in places]
    >>> near = rs.Similarity(-abs(places[:, None] - places).astype(float), names, names)
    >>> label = np.repeat(places, 10)
    >>> noise = np.random.default_rng(0).normal(size=(120, 12))
    >>> reference = rs.Scores(noise - abs(label[:, None] - places), names), np.array(names)[label]
    >>> rs.Knowledge(near.to_rankings(), reference).rehearse(n_folds=3)
    Forecast: .917 [.842, .983] on 12 held-out classes
    """

    known: Known
    settings: Settings
    trials: list[Trial]
    chosen: Trial
    calibration_error: tuple[float, float]
    classes: Labels
    predicted: Interval | None = None

    def __repr__(self) -> str:
        return f"Forecast: {self.accuracy} on {len(self.classes)} held-out classes"

    @property
    def accuracy(self) -> Interval:
        """The mean accuracy of the rehearsed classes."""
        return self.chosen.accuracy

    def predict_accuracy(
        self, rankings: Rankings, reference: Scores | None = None, trial: Trial | None = None
    ) -> Interval | None:
        """The mean accuracy of new classes, with a 95% interval for these classes.

        It depends on the accuracies of the rehearsed classes, especially those with similar
        rankings, on the number of new classes, and on how similar the rankings of the new classes
        are to each other. A batch of the rehearsal narrows the interval, if seen classes and "none
        of these" cannot be predicted: the mean probability of the predicted classes is compared
        with that of the rehearsed classes.

        Parameters
        ----------
        rankings : Rankings
            Rankings of the new classes by the same sources.
        reference : Scores, optional
            By default that of the rehearsal.
        trial : Trial, optional
            One of ``trials``, such as a single source; by default the chosen settings.

        Returns
        -------
        Interval or None
            None if no ranking in use has a rater, as with WordNet and word vectors. Such tables
            rank some kinds of classes well and others badly: on held-out seen classes, the
            coverage of the intervals was below their nominal level.
        """
        tried = self.chosen if trial is None else trial
        if not any(tried is one for one in self.trials):
            raise InputError("trial", tried.what, "is not one of the trials")
        table = _scores_of(self.known) if reference is None else reference
        make = type(self.known)
        new = make(rankings, table)
        if not _has_raters(only_new(new.rankings), tried.settings):
            return None
        head = new.fit_alone(tried.settings)
        strengths = [
            find_strengths(np.array([tried.by_class[z] for z in classes]), correlations)
            for classes, correlations in tried.correlations
        ]
        rehearsed = self.known.rankings[
            np.isin(self.known.rankings.targets.astype(str), self.classes)
        ]
        # As targets of both kinds: a head for rankings of seen and of new classes alike.
        items = table.items
        some = restrict_items(rehearsed, [name for name in rehearsed.items if name in set(items)])
        everything = Rankings.concatenate([some.change_items(items), only_new(new.rankings)])
        used = table if tried.settings.use_reference else None
        both = tried.settings.make_estimator().fit(everything, reference=used)
        names = np.concatenate([*(classes for classes, _ in tried.correlations), head.classes_])
        order = np.searchsorted(both.classes_, names)
        similarity = correlate_classes(both, table)[np.ix_(order, order)]
        return predict_mean_accuracy(
            np.concatenate(strengths),
            similarity,
            correlate_classes(head, table),
            self._predict_by_confidence(head, tried),
        )

    def _predict_by_confidence(
        self, head: WeightedMean, tried: Trial
    ) -> tuple[float, float] | None:
        """The accuracy as far as the confidence on the batch tells, and its standard error."""
        batch, rankings = self.known.batch, self.known.rankings
        new = {*rankings.targets} - {*rankings.items} - {*self.classes}
        if batch is None or new != set(head.classes_) or tried.settings.evidence_weight:
            return None
        confidence = head.predict_proba(batch.with_blocks()).max(axis=1).mean()
        accuracy = np.mean([*tried.by_class.values()]) + confidence - tried.confidence
        # The variance of a probability is at most 1/4.
        return float(accuracy), float(np.sqrt(CONFIDENCE_ERROR**2 + 1 / (4 * len(batch))))

    def describe(self, new: Rankings | None = None) -> list[str]:
        """Sentences on the accuracy that is predicted, and on what is doubtful.

        Parameters
        ----------
        new : Rankings, optional
            The rankings of the new classes, if there are any.
        """
        before, after = map(format_share, self.calibration_error)
        with_reference = "with" if self.settings.use_reference else "without"
        lines = [
            (
                f"rehearsal: {self.accuracy} of the inputs of {len(self.classes)} held-out seen "
                f"classes are recognised ({with_reference} a reference; calibration error {before} "
                f"before, {after} after)"
            )
        ]
        if new is not None:
            lines += self._describe_new(new)
        if len(self.classes) < ENOUGH_CLASSES:
            can_rehearse = len(self.known.rankings.items) >= ENOUGH_CLASSES
            remedy = f"; hold out {ENOUGH_CLASSES} or more" * can_rehearse
            lines.append(
                f"warning: only {len(self.classes)} classes were held out, so the temperature is "
                f"uncertain{remedy}"
            )
        return lines

    def _describe_new(self, new: Rankings) -> list[str]:
        n_new = len(set(new.targets) - set(new.items))
        classes = format_count(n_new, "new class")
        predicted = self.predict_accuracy(new)
        if predicted is None:
            why = (
                f"no accuracy is predicted for the {classes}: tables without raters, such as "
                "WordNet, rank some kinds of classes well and others badly, so held-out classes "
                "cannot predict the accuracy on new ones. If people or language models made these "
                "rankings, name the raters"
            )
            return [why]
        text = (
            f"predicted mean accuracy of the {classes}, each input alone, with 95% interval: "
            f"{predicted} (random guessing: {format_share(1 / n_new)})"
        )
        batch = "inputs of the new classes as a batch, " if self.known.batch is None else ""
        narrower = (
            f"what would narrow this interval: more held-out classes than {len(self.classes)}, "
            f"{batch}labels of some inputs of the new classes"
        )
        lines = [text, narrower]
        for trial in self.trials:
            weights = trial.settings.source_weights or {}
            used = [source for source, weight in weights.items() if weight > 0]
            if trial.what.endswith(" alone") and used[0] in source_names(new):
                alone = self.predict_accuracy(new, trial=trial)
                if alone is not None:
                    lines.append(f"predicted for {used[0] or 'no source'} alone: {alone}")
        return lines


def _scores_of(known: Known) -> Scores:
    if known.reference is None:
        raise InputError("reference", NO_VALUE, "is missing")
    scores: Scores = known.reference[0]
    return scores


def _has_raters(new: Rankings, settings: Settings) -> bool:
    """Whether people or language models made some of the rankings that count."""
    if settings.source_weights is not None:
        new = weigh_sources(new, require_source_weights(settings.source_weights, new))
    return bool(new.rater_names)


def rehearse(
    known: Known,
    settings: Settings,
    grid: Grid | None = None,
    n_folds: int | None = None,
    folds: Sequence[Fold] | None = None,
) -> Forecast:
    """Hold out classes, choose the settings, and measure the accuracy: see `Knowledge.rehearse`.

    ``folds`` may have been made by `make_folds`.
    """
    made = make_folds(known, n_folds) if folds is None else folds
    values = _read_grid(grid)
    trials = _Trials(settings, made)
    trials.choose(values)
    trials.choose_evidence()
    chosen, outcomes = trials.chosen, trials.chosen_outcomes
    plain = replace(chosen.settings, temperature=None)
    before = made[0].known.fit_alone(trials.allowed(plain)).head_.temperature
    tables = [(one.values, one.columns, metrics.class_weights(one.labels)) for one in outcomes]
    after = fit_temperature(tables, TEMPERATURES)
    error = [
        float(np.mean([one.calibration_error(t) for one in outcomes])) for t in (before, after)
    ]
    best = replace(chosen.settings, temperature=after)
    if trials.has_evidence and best.evidence_weight is None:
        best = replace(best, evidence_weight=0.0)
    classes = np.array(sorted(name for fold in made for name in np.unique(fold.new_label)))
    if settings.has_gate:
        # A batch may have inputs of other classes, so its confidence does not tell the accuracy.
        known = type(known)(known.rankings, known.reference, known.examples)
    found = Forecast(known, best, trials.trials, chosen, (error[0], error[1]), classes)
    is_new = ~np.isin(known.rankings.targets.astype(str), [*known.rankings.items, *classes])
    if not is_new.any():
        return found
    return replace(found, predicted=found.predict_accuracy(known.rankings[is_new]))


def _read_grid(grid: Grid | None) -> list[dict[str, object]]:
    """The settings to try."""
    names = [*WeightedMean().get_params()]
    for name in grid or ():
        if name not in names or name == "temperature":
            raise InputError(
                "grid",
                name,
                f"is not a setting that can be chosen{suggest_name(name, names)}",
                hint="the temperature is found without a grid",
            )
    return list(ParameterGrid(GRID if grid is None else grid))


# ---- Trials: what is tried, and what is chosen


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
        return metrics.reliability(self.labels, proba, self.classes).expected_calibration_error


class _Trials:
    """All trials with the scores of one classifier, and what was chosen among them."""

    def __init__(self, settings: Settings, folds: Sequence[Fold]) -> None:
        self.folds = folds
        self.trials: list[Trial] = []
        self.has_evidence = all(fold.new.evidence is not None for fold in folds)
        self._outcomes: list[list[_Outcome]] = []
        self._enough = all(len(_scores_of(fold.known)) >= LEAST_INPUTS for fold in folds)
        settings = replace(settings, classes="new", none=False, batch=False, seen_loss=None)
        settings = self.allowed(settings)
        settings = replace(settings, source_weights=self._default_source_weights(settings))
        self.chosen = self._evaluate("default settings", settings)

    def allowed(self, settings: Settings) -> Settings:
        """The settings, without a reference that is too small."""
        return settings if self._enough else replace(settings, use_reference=False)

    def _default_source_weights(self, settings: Settings) -> dict[str, float]:
        """The weights of all sources; a source counts if it does so in any fold."""
        weights: dict[str, float] = {}
        for fold in self.folds:
            for source, weight in fold.known.fit_alone(settings).source_weights_.items():
                weights[source] = max(weight, weights.get(source, 0.0))
        return dict(sorted(weights.items()))

    @property
    def chosen_outcomes(self) -> list[_Outcome]:
        """What the chosen head says, for each fold."""
        return self._outcomes[self.trials.index(self.chosen)]

    def choose(self, grid: list[dict[str, object]]) -> None:
        """Try other sources, settings and no reference; keep what is clearly better."""
        self._choose_source_weights()
        tried = [
            self._evaluate(
                ", ".join(f"{name}={value}" for name, value in values.items()),
                replace(self.chosen.settings, **cast("Any", values)),
            )
            for values in grid
            if values
        ]
        self._keep_if_better(tried)
        if self.chosen.settings.use_reference:
            without = replace(self.chosen.settings, use_reference=False)
            self._keep_if_better([self._evaluate("no reference", without)])

    def choose_evidence(self) -> None:
        """Try evidence with the weight, and the temperature, that make the labels most probable."""
        if not self.has_evidence or self.chosen.settings.evidence_weight is not None:
            return
        parts = []
        for fold, one in zip(self.folds, self.chosen_outcomes, strict=True):
            evidence, scale = center_evidence(fold.new.evidence_of(one.classes.tolist()))
            weight = metrics.class_weights(one.labels)
            parts.append(Weighed(one.values, evidence / scale, one.columns, weight))
        temperature, own_weight = fit_evidence(parts)
        settings = replace(
            self.chosen.settings, temperature=temperature, evidence_weight=own_weight
        )
        # Accuracies are predicted from rankings and a reference, which has no such evidence.
        tried = self._evaluate("with evidence", settings, self.chosen.correlations)
        self._keep_if_better([tried])

    def _choose_source_weights(self) -> None:
        """Try each source alone, then change one weight at a time while that is clearly better."""
        names = tuple(self.chosen.settings.source_weights or ())
        if len(names) < 2:
            return
        alone = [{name: float(name == only) for name in names} for only in names]
        self._keep_if_better([self._weigh(weights) for weights in alone], 2)
        before = None
        while before is not self.chosen:
            before = self.chosen
            weights = dict(before.settings.source_weights or {})
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
        return self._evaluate(what, replace(self.chosen.settings, source_weights=weights))

    def _keep_if_better(self, trials: list[Trial], n_errors: float = 1.0) -> None:
        best = max(trials, key=lambda trial: trial.accuracy.estimate, default=self.chosen)
        if best.is_clearly_better(self.chosen, n_errors):
            self.chosen = best

    def _fit(self, fold: Fold, settings: Settings) -> WeightedMean:
        """The head that is fitted to the held-out classes of a fold."""
        evidence = fold.new if settings.evidence_weight and self.has_evidence else None
        reference = fold.known.reference if settings.use_reference else None
        return settings.make_estimator().fit(
            fold.known.rankings, reference=reference, evidence=evidence
        )

    def _evaluate(
        self, what: str, settings: Settings, correlations: Sequence[Correlations] | None = None
    ) -> Trial:
        """Measure one way to recognise the held-out classes; the same way only once."""
        for trial in self.trials:
            if trial.settings == settings:
                return trial
        outcomes, measured, confidences = [], [], []
        for fold in self.folds:
            head = self._fit(fold, settings)
            values = np.asarray(head.decision_function(fold.new), np.float64)
            outcomes.append(_Outcome(fold.new_label, head.classes_, values))
            confidences.append(softmax(values / head.head_.temperature, axis=1).max(axis=1))
            # Without a reference, correlations are those over the inputs themselves.
            seen = _scores_of(fold.known)
            table = seen if len(seen) > 1 else fold.new
            if correlations is None:
                measured.append((head.classes_, correlate_classes(head, table)))
        labels = np.concatenate([one.labels for one in outcomes])
        right = np.concatenate(
            [one.classes[most_probable(one.values)] == one.labels for one in outcomes]
        )
        by_class = {str(z): float(right[labels == z].mean()) for z in np.unique(labels)}
        accuracy = metrics.class_interval(labels, right)
        confidence = np.average(np.concatenate(confidences), weights=metrics.class_weights(labels))
        trial = Trial(
            what, settings, accuracy, by_class, float(confidence), correlations or measured
        )
        self.trials.append(trial)
        self._outcomes.append(outcomes)
        return trial


# ---- Held-out classes: which, and with which rankings


class Fold(NamedTuple):
    """Some held-out classes that stand for new ones.

    ``known`` has their rankings by the other seen classes, and inputs of these as its reference.
    ``new`` are scores of inputs of the held-out classes, without their own columns.
    """

    known: Known
    new: Scores
    new_label: Labels


def make_folds(known: Known, n_folds: int | None = None) -> list[Fold]:
    """Hold out all labelled classes that are ranked, in groups."""
    scores, labels = known.reference or (None, None)
    if scores is None or labels is None:
        raise InputError("reference", NO_VALUE, "must have labels for a rehearsal")
    rankings = require_rehearsed(known.rankings, labels)
    unknown = [
        z for z in dict.fromkeys(labels.tolist()) if z not in {*scores.items, *rankings.targets}
    ]
    if unknown:
        raise InputError(
            "labels",
            unknown[0],
            f"is neither a class of the scores nor ranked{suggest_name(unknown[0], scores.items)}",
        )
    groups = choose_groups(rankings, n_folds)
    return [hold_out(type(known), scores, labels, rankings, group) for group in groups]


def require_rehearsed(rankings: Rankings, labels: Labels) -> Rankings:
    """The rankings of classes that have inputs; they can be rehearsed."""
    targets, there = rankings.targets.astype(str), np.unique(labels)
    known = np.isin(targets, there)
    if not known.any():
        raise InputError(
            "rankings",
            NO_VALUE,
            "must be of seen classes with labelled inputs, for a rehearsal",
            hint=f"they are of {quote_names(np.unique(targets).tolist(), 4)}, the inputs of "
            f"{quote_names(there.tolist(), 4)}",
        )
    return rankings[known]


def choose_groups(rankings: Rankings, n_folds: int | None) -> list[tuple[str, ...]]:
    """The groups of classes that are held out together: see `Knowledge.rehearse`."""
    ranked = sorted(set(rankings.targets))
    if len(ranked) < LEAST_CLASSES:
        raise InputError(
            "rankings",
            len(ranked),
            f"must be of at least {LEAST_CLASSES} seen classes with inputs, for a rehearsal",
            hint=f"they are of {quote_names(ranked)}; 20 classes are better",
        )
    if not _listed_items(rankings) & set(ranked):
        return [tuple(ranked)]
    most = len(ranked) // 2
    number = min(USUAL_FOLDS, most) if n_folds is None else n_folds
    number = require_whole_number("n_folds", number, least=1, most=most)
    mixed = np.random.default_rng(0).permutation(ranked)
    return [tuple(group.tolist()) for group in np.array_split(mixed, number)]


def hold_out(
    make: Any,
    scores: Scores,
    labels: Labels,
    rankings: Rankings,
    group: tuple[str, ...],
) -> Fold:
    """Hold out a group of classes: their columns leave the scores and the rankings."""
    left = scores.select([name for name in scores.items if name not in group])
    # Classes without a column that are in another group are neither.
    is_new, is_seen = np.isin(labels, group), np.isin(labels, left.items)
    seen = left[is_seen], labels[is_seen]
    _require_agreement(*seen)
    known = make(_restrict(rankings, group, left.items), seen)
    return Fold(known, left[is_new], labels[is_new])


def _require_agreement(scores: Scores, labels: Labels) -> None:
    """Raise if the classifier is no better than chance: then scores and labels do not belong."""
    if len(scores) < ENOUGH_TO_JUDGE:
        return
    agreement = float(np.mean(np.array(scores.items)[most_probable(scores.values)] == labels))
    if agreement < 2 / len(scores.items):
        raise InputError(
            "labels",
            NO_VALUE,
            f"are the classes with the highest score of only {agreement:.1%} of the inputs of "
            "other seen classes",
            hint="do the labels belong to these scores, row by row?",
        )


def _listed_items(rankings: Rankings) -> set[str]:
    """The items that rankings list."""
    return {rankings.items[code] for code in np.unique(rankings.codes)}


def _restrict(rankings: Rankings, group: tuple[str, ...], items: tuple[str, ...]) -> Rankings:
    """The rankings of the held-out group, by the remaining seen classes."""
    about = rankings[np.isin(rankings.targets.astype(str), group)]
    if wrong := sorted(_listed_items(about) - set(items) - set(group)):
        raise InputError(
            "rankings",
            wrong[0],
            f"is listed, and the scores do not have it{suggest_name(wrong[0], items)}",
        )
    about = restrict_items(about, [name for name in about.items if name in set(items)])
    if missing := sorted(set(group) - set(about.target_names)):
        raise InputError(
            "rankings",
            missing[0],
            "lists no seen class that is left",
            hint=f"held out together: {quote_names(group)}",
        )
    return about.change_items(items)

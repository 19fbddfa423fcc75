"""`Forecast`: what a rehearsal found. Seen classes are held out as if they were new.

The settings that are clearly better on held-out classes are chosen, probabilities are calibrated,
and the accuracy on new classes is predicted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
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
from rankshot.zeroshot.class_rankings import (
    as_rankings,
    only_new,
    require_source_weights,
    weigh_sources,
)
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.evidence import fit_temperature
from rankshot.zeroshot.metrics import Interval, class_interval, class_weights, reliability
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
Grid = Mapping[str, Sequence[object]]
GRID: Grid = {"k": (5, 10, 15), "decay": (0.25, 0.5, 0.75)}
"""The settings that are tried by default."""
ENOUGH_CLASSES = 20
"""With fewer rehearsed classes, temperatures of eight differed by a factor of three."""
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


class Outcome(NamedTuple):
    """What a head says about the inputs of the held-out classes of a fold.

    ``correlations`` are those of the decision values of the classes over inputs of other classes.
    """

    labels: Labels
    classes: Labels
    values: Floats
    temperature: float
    correlations: Floats

    @property
    def columns(self) -> NDArray[np.intp]:
        """The column of the class of each input."""
        return np.searchsorted(self.classes, self.labels)


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to recognise the rehearsed classes, and how accurate it was.

    Attributes
    ----------
    what : str
        In words: ``"default settings"``, ``"k=5, decay=0.25"``, ``"WordNet alone"``.
    settings : Settings
    accuracy : Interval
        The mean accuracy, with an interval from resamples of classes.
    by_class : dict of str to float
        The accuracy on each rehearsed class.
    outcomes : list
        What the head of each fold says.

    Examples
    --------
    >>> from rankshot.zeroshot import Settings, Trial
    >>> from rankshot.zeroshot.metrics import Interval
    >>> one, other = (
    ...     Trial(f"k={k}", Settings(k=k), Interval(a, 0, 1), {"cat": a, "dog": a + 0.1}, [])
    ...     for k, a in ((5, 0.5), (10, 0.7)))
    >>> other.is_clearly_better(one)
    True
    """

    what: str
    settings: Settings
    accuracy: Interval
    by_class: dict[str, float]
    outcomes: Sequence[Outcome] = field(repr=False)

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
        and the temperature that calibrates.
    trials : list of Trial
        All trials, in order; the first has the settings with which the rehearsal began.
    chosen : Trial
        The trial with the settings that were chosen.
    calibration_error : tuple of float
        The expected calibration error on the rehearsed classes, with the default temperature and
        with the chosen one, which was fitted to the same inputs.
    classes : ndarray of str
        The rehearsed classes.

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

    def __repr__(self) -> str:
        return f"Forecast: {self.accuracy} on {len(self.classes)} held-out classes"

    @property
    def accuracy(self) -> Interval:
        """The mean accuracy of the rehearsed classes, and its 95% interval over classes."""
        return self.chosen.accuracy

    @property
    def new(self) -> Labels:
        """The new classes among the rankings: neither seen classes nor rehearsed ones."""
        rankings = self.known.rankings
        return np.setdiff1d(rankings.targets.astype(str), [*rankings.items, *self.classes])

    @cached_property
    def predicted(self) -> Interval | None:
        """The mean accuracy on the new classes, with a 95% interval for these classes.

        None if there are no rankings of new classes, or none by raters: see `predict_accuracy`.
        """
        return self.predict_accuracy(self.known.rankings) if self.new.size else None

    def predict_accuracy(
        self, rankings: Rankings, reference: Scores | None = None
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

        Returns
        -------
        Interval or None
            None if no ranking in use has a rater, as with WordNet and word vectors. Such tables
            rank some kinds of classes well and others badly: on held-out seen classes, the
            coverage of the intervals was below their nominal level.
        """
        tried, settings = self.chosen, self.chosen.settings
        table: Scores = self.known.reference[0] if reference is None else reference
        items = table.items
        named = as_rankings(rankings, items)
        new = only_new(named[~np.isin(named.targets.astype(str), self.classes)])
        weights = require_source_weights(settings.source_weights or {}, new)
        if not weigh_sources(new, weights).rater_names:
            return None
        used = table if settings.use_reference else None
        head = settings.make_estimator().fit(new, reference=used)
        strengths = [
            find_strengths(np.array([tried.by_class[z] for z in one.classes]), one.correlations)
            for one in tried.outcomes
        ]
        # As targets of both kinds: a head for rankings of seen and of new classes alike.
        known = self.known.rankings
        rehearsed = known[np.isin(known.targets.astype(str), self.classes)]
        some = restrict_items(rehearsed, [name for name in rehearsed.items if name in {*items}])
        everything = Rankings.concatenate([some.change_items(items), new])
        both = settings.make_estimator().fit(everything, reference=used)
        names = np.concatenate([*(one.classes for one in tried.outcomes), head.classes_])
        order = np.searchsorted(both.classes_, names)
        similarity = correlate_classes(both, table)[np.ix_(order, order)]
        return predict_mean_accuracy(
            np.concatenate(strengths),
            similarity,
            correlate_classes(head, table),
            self._predict_by_confidence(head),
        )

    def _predict_by_confidence(self, head: WeightedMean) -> tuple[float, float] | None:
        """The accuracy as far as the confidence on the batch tells, and its standard error."""
        batch, tried = self.known.batch, self.chosen
        if batch is None or {*self.new} != {*head.classes_}:
            return None
        own = [softmax(one.values / one.temperature, axis=1).max(axis=1) for one in tried.outcomes]
        weights = class_weights(np.concatenate([one.labels for one in tried.outcomes]))
        usual = np.average(np.concatenate(own), weights=weights)
        confidence = head.predict_proba(batch.with_blocks()).max(axis=1).mean()
        accuracy = np.mean([*tried.by_class.values()]) + confidence - usual
        # The variance of a probability is at most 1/4.
        return float(accuracy), float(np.sqrt(CONFIDENCE_ERROR**2 + 1 / (4 * len(batch))))

    def describe(self) -> list[str]:
        """Sentences on the accuracy that is predicted, and on what is doubtful."""
        before, after = map(format_share, self.calibration_error)
        with_reference = "with" if self.settings.use_reference else "without"
        n, n_new = len(self.classes), len(self.new)
        measured = (
            f"rehearsal: {self.accuracy} of the inputs of {n} held-out seen classes are recognised "
            f"({with_reference} a reference; calibration error {before} before, {after} after)"
        )
        lines = [measured]
        classes = format_count(n_new, "new class")
        if n_new and self.predicted is None:
            lines.append(
                f"no accuracy is predicted for the {classes}: tables without raters, such as "
                "WordNet, rank some kinds of classes well and others badly, so held-out classes "
                "cannot predict the accuracy on new ones. If people or language models made these "
                "rankings, name the raters"
            )
        elif n_new:
            batch = "inputs of the new classes as a batch, " if self.known.batch is None else ""
            predicted = (
                f"predicted mean accuracy of the {classes}, each input alone, with 95% interval: "
                f"{self.predicted} (random guessing: {format_share(1 / n_new)})"
            )
            narrower = (
                f"what would narrow this interval: more held-out classes than {n}, "
                f"{batch}labels of some inputs of the new classes"
            )
            lines += [predicted, narrower]
        if n < ENOUGH_CLASSES:
            can_rehearse = len(self.known.rankings.items) >= ENOUGH_CLASSES
            remedy = f"; hold out {ENOUGH_CLASSES} or more" * can_rehearse
            lines.append(
                f"warning: only {n} classes were held out, so the temperature is uncertain{remedy}"
            )
        return lines


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
    search = _Search(settings, made)
    search.choose_source_weights()
    search.choose_settings(values)
    chosen = search.chosen
    outcomes, best = chosen.outcomes, chosen.settings
    before = made[0].fit(replace(best, temperature=None)).head_.temperature
    tables = [(one.values, one.columns, class_weights(one.labels)) for one in outcomes]
    after = fit_temperature(tables, TEMPERATURES)
    error = _calibration_error(outcomes, before), _calibration_error(outcomes, after)
    best = replace(best, temperature=after)
    if settings.has_gate:
        # A batch may have inputs of other classes, so its confidence does not tell the accuracy.
        known = replace(known, batch=None)
    return Forecast(known, best, search.trials, chosen, error, np.array(sorted(chosen.by_class)))


def _read_grid(grid: Grid | None) -> list[dict[str, object]]:
    """The settings to try."""
    names = {*WeightedMean().get_params()} - {"temperature"}
    if unknown := [name for name in grid or () if name not in names]:
        close = suggest_name(unknown[0], sorted(names))
        raise InputError("grid", unknown[0], f"is not a setting that can be chosen{close}")
    return [values for values in ParameterGrid(GRID if grid is None else grid) if values]


def _calibration_error(outcomes: Sequence[Outcome], temperature: float) -> float:
    diagrams = [
        reliability(one.labels, softmax(one.values / temperature, axis=1), one.classes)
        for one in outcomes
    ]
    return float(np.mean([diagram.expected_calibration_error for diagram in diagrams]))


# ---- Trials: what is tried, and what is chosen


class _Search:
    """All trials with the scores of one classifier, and what was chosen among them."""

    def __init__(self, settings: Settings, folds: Sequence[Fold]) -> None:
        self.folds = folds
        self.trials: list[Trial] = []
        settings = replace(settings, classes="new", none=False, batch=False, seen_loss=None)
        if any(len(fold.reference) < LEAST_INPUTS for fold in folds):
            settings = replace(settings, use_reference=False)
        # A source counts if it does so in any fold.
        weights: dict[str, float] = {}
        for fold in folds:
            for source, weight in fold.fit(settings).source_weights_.items():
                weights[source] = max(weight, weights.get(source, 0.0))
        settings = replace(settings, source_weights=dict(sorted(weights.items())))
        self.chosen = self._evaluate("default settings", settings)

    def choose_source_weights(self) -> None:
        """Try each source alone."""
        settings, names = self.chosen.settings, tuple(self.chosen.settings.source_weights or ())
        tried = []
        for only in names if len(names) > 1 else ():
            weights = {name: float(name == only) for name in names}
            alone = replace(settings, source_weights=weights)
            tried.append(self._evaluate(f"{only or 'no source'} alone", alone))
        self._keep_if_better(tried, 2)

    def choose_settings(self, grid: list[dict[str, object]]) -> None:
        """Try other settings, and no reference."""
        tried = [
            self._evaluate(
                ", ".join(f"{name}={value}" for name, value in values.items()),
                replace(self.chosen.settings, **cast("Any", values)),
            )
            for values in grid
        ]
        self._keep_if_better(tried)
        if self.chosen.settings.use_reference:
            without = replace(self.chosen.settings, use_reference=False)
            self._keep_if_better([self._evaluate("no reference", without)])

    def _keep_if_better(self, trials: list[Trial], n_errors: float = 1.0) -> None:
        best = max(trials, key=lambda trial: trial.accuracy.estimate, default=self.chosen)
        if best.is_clearly_better(self.chosen, n_errors):
            self.chosen = best

    def _evaluate(self, what: str, settings: Settings) -> Trial:
        """Measure one way to recognise the held-out classes; the same way only once."""
        for trial in self.trials:
            if trial.settings == settings:
                return trial
        outcomes = []
        for fold in self.folds:
            head = fold.fit(settings)
            values = np.asarray(head.decision_function(fold.new), np.float64)
            # Without a reference, correlations are those over the inputs themselves.
            others = fold.reference if len(fold.reference) > 1 else fold.new
            correlations = correlate_classes(head, others)
            temperature = head.head_.temperature
            own = Outcome(fold.labels, head.classes_, values, temperature, correlations)
            outcomes.append(own)
        labels = np.concatenate([one.labels for one in outcomes])
        right = np.concatenate(
            [one.classes[most_probable(one.values)] == one.labels for one in outcomes]
        )
        by_class = {str(z): float(right[labels == z].mean()) for z in np.unique(labels)}
        trial = Trial(what, settings, class_interval(labels, right), by_class, outcomes)
        self.trials.append(trial)
        return trial


# ---- Held-out classes: which, and with which rankings


class Fold(NamedTuple):
    """Some held-out classes that stand for new ones.

    ``rankings`` are theirs by the other seen classes, whose inputs are the ``reference``. ``new``
    are scores of inputs of the held-out classes, without their own columns.
    """

    rankings: Rankings
    reference: Scores
    new: Scores
    labels: Labels

    def fit(self, settings: Settings) -> WeightedMean:
        """A head for the held-out classes."""
        reference = self.reference if settings.use_reference else None
        return settings.make_estimator().fit(self.rankings, reference=reference)


def make_folds(known: Known, n_folds: int | None = None) -> list[Fold]:
    """Hold out all labelled classes that are ranked, in groups."""
    scores, labels = known.reference or (None, None)
    if scores is None or labels is None:
        raise InputError("reference", NO_VALUE, "must have labels for a rehearsal")
    rankings = require_rehearsed(known.rankings, labels)
    allowed = {*scores.items, *rankings.targets}
    if unknown := [z for z in dict.fromkeys(labels.tolist()) if z not in allowed]:
        close = suggest_name(unknown[0], scores.items)
        rule = f"is neither a class of the scores nor ranked{close}"
        raise InputError("labels", unknown[0], rule)
    groups = choose_groups(rankings, n_folds)
    return [hold_out(scores, labels, rankings, group) for group in groups]


def require_rehearsed(rankings: Rankings, labels: Labels) -> Rankings:
    """The rankings of classes that have inputs; they can be rehearsed."""
    known = np.isin(rankings.targets.astype(str), labels)
    ranked = sorted(set(rankings.targets[known]))
    if len(ranked) < LEAST_CLASSES:
        raise InputError(
            "rankings",
            len(ranked),
            f"must be of at least {LEAST_CLASSES} seen classes with labelled inputs, for a "
            "rehearsal",
            hint=f"they are of {quote_names(rankings.target_names, 4)}, the inputs of "
            f"{quote_names(np.unique(labels).tolist(), 4)}; 20 classes are better",
        )
    return rankings[known]


def choose_groups(rankings: Rankings, n_folds: int | None) -> list[tuple[str, ...]]:
    """The groups of classes that are held out together: see `Knowledge.rehearse`."""
    ranked = sorted(set(rankings.targets))
    listed = {rankings.items[code] for code in np.unique(rankings.codes)}
    if not listed & set(ranked):
        return [tuple(ranked)]
    most = len(ranked) // 2
    number = min(USUAL_FOLDS, most) if n_folds is None else n_folds
    number = require_whole_number("n_folds", number, least=1, most=most)
    mixed = np.random.default_rng(0).permutation(ranked)
    return [tuple(group.tolist()) for group in np.array_split(mixed, number)]


def hold_out(scores: Scores, labels: Labels, rankings: Rankings, group: tuple[str, ...]) -> Fold:
    """Hold out a group of classes: their columns leave the scores and the rankings."""
    left = scores.select([name for name in scores.items if name not in group])
    # Classes without a column that are in another group are neither.
    is_new, is_seen = np.isin(labels, group), np.isin(labels, left.items)
    reference = left[is_seen]
    _require_agreement(reference, labels[is_seen])
    about = rankings[np.isin(rankings.targets.astype(str), group)]
    about = restrict_items(about, [name for name in about.items if name in {*left.items}])
    if missing := sorted({*group} - {*about.target_names}):
        raise InputError(
            "rankings",
            missing[0],
            "lists no seen class that is left",
            hint=f"held out together: {quote_names(group)}",
        )
    return Fold(about.change_items(left.items), reference, left[is_new], labels[is_new])


def _require_agreement(scores: Scores, labels: Labels) -> None:
    """Raise if the classifier is no better than chance: then scores and labels do not belong."""
    agreement = float(np.mean(np.array(scores.items)[most_probable(scores.values)] == labels))
    if len(scores) >= ENOUGH_TO_JUDGE and agreement < 2 / len(scores.items):
        raise InputError(
            "labels",
            NO_VALUE,
            f"are the classes with the highest score of only {agreement:.1%} of the inputs of "
            "other seen classes",
            hint="do the labels belong to these scores, row by row?",
        )

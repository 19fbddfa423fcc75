"""A rehearsal: seen classes are held out, and recognised by their rankings as if they were new.

The settings that are clearly better on held-out classes are chosen, probabilities are calibrated,
and the strengths are measured from which the accuracy on new classes is forecast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.model_selection import ParameterGrid

from rankshot.core.errors import NO_VALUE, InputError, quote_names, suggest_name
from rankshot.core.validation import require_whole_number
from rankshot.ranking.matrices import restrict_items
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.decide import most_probable
from rankshot.zeroshot.evidence import fit_temperature
from rankshot.zeroshot.forecast import Forecast, Trial, correlate_classes, find_strengths
from rankshot.zeroshot.metrics import class_weights, per_class_accuracy, reliability
from rankshot.zeroshot.scores import Scores
from rankshot.zeroshot.settings import Settings
from rankshot.zeroshot.weighted_mean import LEAST_INPUTS, WeightedMean

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
Grid = Mapping[str, Sequence[object]]
GRID: Grid = {"k": (5, 10, 15), "decay": (0.25, 0.5, 0.75)}
"""The settings that are tried by default."""
TEMPERATURES = (1e-4, 1e4)
"""The range of temperatures."""
ENOUGH_TO_JUDGE = 50
"""The number of inputs from which on a classifier that is no better than chance is noticed."""
LEAST_CLASSES = 5
"""With fewer classes, a rehearsal tells nothing about other classes."""
USUAL_FOLDS = 5
"""The number of groups, if there are classes enough for two in each."""


def rehearse(
    rankings: Rankings,
    reference: tuple[Scores, Labels | None] | None,
    settings: Settings,
    batch: Scores | None = None,
    grid: Grid | None = None,
    n_folds: int | None = None,
    folds: Sequence[Fold] | None = None,
) -> Forecast:
    """Hold out classes, choose the settings, and measure the accuracy: see `Knowledge.rehearse`.

    ``folds`` may have been made by classifiers that were trained without the held-out classes.
    """
    scores, labels = reference or (None, None)
    if scores is None or labels is None:
        raise InputError("reference", NO_VALUE, "must have labels for a rehearsal")
    folds = make_folds(rankings, scores, labels, n_folds) if folds is None else folds
    trials, chosen = _choose_settings(settings, folds, _read_grid(grid))
    strengths: dict[str, float] = {}
    confidence, tables = 0.0, []
    for fold in folds:
        head = fold.fit(chosen.settings)
        values = np.asarray(head.decision_function(fold.new), np.float64)
        weights = class_weights(fold.labels)
        tables.append((values, np.searchsorted(head.classes_, fold.labels), weights))
        confidence += float(weights @ softmax(values / head.head_.temperature, axis=1).max(axis=1))
        # Without a reference, correlations are those over the inputs themselves.
        others = fold.reference if len(fold.reference) > 1 else fold.new
        accuracies = np.array([chosen.by_class[name] for name in head.classes_])
        found = find_strengths(accuracies, correlate_classes(head, others))
        strengths |= dict(zip(head.classes_.tolist(), found.tolist(), strict=True))
    temperature = fit_temperature(tables, TEMPERATURES)

    def calibration_error(temperature: float) -> float:
        diagrams = [
            reliability(codes, softmax(values / temperature, axis=1), range(values.shape[1]))
            for values, codes, _ in tables
        ]
        return float(np.mean([diagram.expected_calibration_error for diagram in diagrams]))

    return Forecast(
        rankings,
        scores,
        # With a gate, a batch may have inputs of other classes.
        None if settings.has_gate else batch,
        replace(chosen.settings, temperature=temperature),
        trials,
        chosen,
        (calibration_error(1.0), calibration_error(temperature)),
        strengths,
        confidence / len(strengths),
    )


# ---- Trials: what is tried, and what is chosen


def _read_grid(grid: Grid | None) -> dict[str, Mapping[str, Any]]:
    """The settings to try, by their description."""
    names = {*WeightedMean().get_params()} - {"temperature"}
    if unknown := [name for name in grid or () if name not in names]:
        close = suggest_name(unknown[0], sorted(names))
        raise InputError("grid", unknown[0], f"is not a setting that can be chosen{close}")
    every = ParameterGrid(GRID if grid is None else grid)
    return {
        ", ".join(f"{name}={value}" for name, value in values.items()): values
        for values in every
        if values
    }


def _choose_settings(
    settings: Settings, folds: Sequence[Fold], grid: Mapping[str, Mapping[str, Any]]
) -> tuple[list[Trial], Trial]:
    """All trials, and the one that was chosen: each source alone, a grid, and no reference."""
    if any(len(fold.reference) < LEAST_INPUTS for fold in folds):
        settings = replace(settings, use_reference=False)
    # A source counts if it does so in any fold.
    weights: dict[str, float] = {}
    for fold in folds:
        for source, weight in fold.fit(settings).source_weights_.items():
            weights[source] = max(weight, weights.get(source, 0.0))
    trials: list[Trial] = []

    def measure(what: str, settings: Settings) -> Trial:
        for trial in trials:
            if trial.settings == settings:
                return trial
        by_class: dict[str, float] = {}
        for fold in folds:
            by_class |= per_class_accuracy(fold.labels, fold.fit(settings).predict(fold.new))
        trials.append(Trial(what, settings, dict(sorted(by_class.items()))))
        return trials[-1]

    def improve(
        chosen: Trial, changes: Mapping[str, Mapping[str, Any]], n_errors: float = 1.0
    ) -> Trial:
        """The best change of the settings, if it is clearly better."""
        tried = [measure(what, replace(chosen.settings, **new)) for what, new in changes.items()]
        best = max(tried, key=lambda trial: trial.accuracy.estimate, default=chosen)
        return best if best.is_clearly_better(chosen, n_errors) else chosen

    chosen = measure(
        "default settings", replace(settings, source_weights=dict(sorted(weights.items())))
    )
    alone = {
        f"{only or 'no source'} alone": {
            "source_weights": {name: float(name == only) for name in sorted(weights)}
        }
        for only in (sorted(weights) if len(weights) > 1 else ())
    }
    chosen = improve(improve(chosen, alone, n_errors=2), grid)
    if chosen.settings.use_reference:
        chosen = improve(chosen, {"no reference": {"use_reference": False}})
    return trials, chosen


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


def make_folds(
    rankings: Rankings, scores: Scores, labels: Labels, n_folds: int | None = None
) -> list[Fold]:
    """Hold out all labelled classes that are ranked, in groups."""
    rankings = require_rehearsed(rankings, labels)
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
        rule = f"must be of at least {LEAST_CLASSES} seen classes with labelled inputs"
        theirs = quote_names(np.unique(labels).tolist(), 4)
        hint = f"they are of {quote_names(rankings.target_names, 4)}, the inputs of {theirs}"
        raise InputError("rankings", len(ranked), rule, hint=hint)
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
    # If the classifier is no better than chance, scores and labels do not belong to each other.
    first = np.array(left.items)[most_probable(reference.values)]
    agreement = float(np.mean(first == labels[is_seen]))
    if len(reference) >= ENOUGH_TO_JUDGE and agreement < 2 / len(left.items):
        rule = (
            f"are the classes with the highest score of only {agreement:.1%} of the inputs of "
            "other seen classes"
        )
        hint = "do the labels belong to these scores, row by row?"
        raise InputError("labels", NO_VALUE, rule, hint=hint)
    about = rankings[np.isin(rankings.targets.astype(str), group)]
    about = restrict_items(about, [name for name in about.items if name in {*left.items}])
    if missing := sorted({*group} - {*about.target_names}):
        hint = f"held out together: {quote_names(group)}"
        raise InputError("rankings", missing[0], "lists no seen class that is left", hint=hint)
    return Fold(about.change_items(left.items), reference, left[is_new], labels[is_new])

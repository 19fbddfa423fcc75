"""Trials of a rehearsal: what is tried, what is chosen, and the temperature that calibrates it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax
from sklearn.base import clone

from rankshot.core.progress import ProgressLine
from rankshot.zeroshot.bootstrap import class_interval, class_weights
from rankshot.zeroshot.heads.base import BaseHead, takes_reference
from rankshot.zeroshot.heads.reference import LEAST_INPUTS
from rankshot.zeroshot.metrics import Interval, expected_calibration_error
from rankshot.zeroshot.rehearsal.folds import Fold, find_unranked, select_sources, source_names
from rankshot.zeroshot.scores import Scores

Floats = NDArray[np.float64]
Labels = NDArray[np.str_]
TEMPERATURES = (1e-4, 1e4)
"""The range of temperatures."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to recognise the rehearsed classes, and how accurate it was.

    Attributes
    ----------
    what : str
        What was tried: ``"default settings"``, ``"k=5, decay=0.25"``, ``"without WordNet"``.
    params : dict
        The parameters of the head that differ from its own.
    reference : bool
        Whether the head was fitted with a reference.
    sources : tuple of str
        The sources of its rankings; rankings without a source have the name "".
    accuracy : Interval
        The mean accuracy of the classes, with a 95 % interval from resamples of classes.
    by_class : dict of str to float
        The accuracy of each class.
    """

    what: str
    params: dict[str, Any]
    reference: bool
    sources: tuple[str, ...]
    accuracy: Interval
    by_class: dict[str, float]

    def is_clearly_better(self, other: Trial) -> bool:
        """Return whether the gain is larger than its standard error over the classes.

        With few classes, the best of several trials is often best by chance.
        """
        gain = np.array([self.by_class[name] - other.by_class[name] for name in self.by_class])
        return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))


class Outcome(NamedTuple):
    """What a head says about the inputs of the held-out classes of a fold."""

    labels: Labels
    classes: Labels
    values: Floats
    correlations: Floats


class Trials:
    """All trials with the scores of one classifier, and what was chosen among them."""

    def __init__(self, head: BaseHead, folds: list[Fold], line: ProgressLine) -> None:
        self.head, self.folds, self._line = head, folds, line
        self.trials: list[Trial] = []
        self._outcomes: list[list[Outcome]] = []
        enough = all(len(fold.seen) >= LEAST_INPUTS for fold in folds)
        self.first = self.chosen = self.evaluate(
            "default settings",
            {},
            tuple(sorted({name for fold in folds for name in source_names(fold.semantics)})),
            reference=takes_reference(head) and enough,
        )

    @property
    def chosen_outcomes(self) -> list[Outcome]:
        """What the chosen head says, for each fold."""
        return self._outcomes[self.trials.index(self.chosen)]

    def choose(self, grid: list[dict[str, Any]]) -> None:
        """Try other sources, parameters and no reference; keep what is clearly better."""
        self._choose_sources()
        tried = [
            self.evaluate(
                _describe(params), params, self.chosen.sources, reference=self.chosen.reference
            )
            for params in grid
            if params
        ]
        self._keep_if_better(tried)
        if self.chosen.reference:
            params, sources = self.chosen.params, self.chosen.sources
            self._keep_if_better([self.evaluate("no reference", params, sources, reference=False)])

    def _choose_sources(self) -> None:
        """Leave out one source after the other, as long as that is clearly better.

        What is left must rank all classes.
        """
        names, reference = self.chosen.sources, self.chosen.reference
        if len(names) == 1:
            return
        alone = [
            self.evaluate(f"{name or 'no source'} alone", {}, (name,), reference=reference)
            for name in names
            if self._rank_all((name,))
        ]
        while len(names) > 2:
            without = [
                self.evaluate(f"without {name or 'no source'}", {}, others, reference=reference)
                for name in names
                if self._rank_all(others := tuple(other for other in names if other != name))
            ]
            self._keep_if_better(without)
            if self.chosen.sources == names:
                return
            names = self.chosen.sources
        # Of two sources, one is left out if the other alone is clearly better.
        self._keep_if_better([trial for trial in alone if trial.sources[0] in names])

    def _rank_all(self, sources: tuple[str, ...]) -> bool:
        """Return whether some sources together rank all classes of every fold."""
        return not any(find_unranked(fold.semantics, sources) for fold in self.folds)

    def _keep_if_better(self, trials: list[Trial]) -> None:
        best = max(trials, key=lambda trial: trial.accuracy.estimate, default=self.chosen)
        if best.is_clearly_better(self.chosen):
            self.chosen = best

    def head_with(self, params: dict[str, Any]) -> Any:
        """Return a copy of the head with some parameters."""
        return clone(self.head).set_params(**params)

    def fit_chosen(self, fold: Fold) -> Any:
        """Return the chosen head, fitted to the held-out classes of a fold."""
        chosen = self.chosen
        return self._fit(fold, chosen.params, chosen.sources, reference=chosen.reference)

    def _fit(
        self, fold: Fold, params: dict[str, Any], sources: tuple[str, ...], *, reference: bool
    ) -> Any:
        head, semantics = self.head_with(params), select_sources(fold.semantics, sources)
        return head.fit(semantics, fold.seen) if reference else head.fit(semantics)

    def evaluate(
        self, what: str, params: dict[str, Any], sources: tuple[str, ...], *, reference: bool
    ) -> Trial:
        """Measure one way to recognise the held-out classes; the same way only once."""
        own = self.head.get_params()  # type: ignore[attr-defined]
        params = {name: value for name, value in params.items() if value != own[name]}
        for trial in self.trials:
            if (trial.params, trial.reference, trial.sources) == (params, reference, sources):
                return trial
        self._line.update(what)
        outcomes = []
        for fold in self.folds:
            head = self._fit(fold, params, sources, reference=reference)
            values = np.asarray(head.decision_function(fold.new), np.float64)
            # Without a reference, correlations are those over the inputs themselves.
            correlations = correlate_classes(head, fold.seen if len(fold.seen) > 1 else fold.new)
            outcomes.append(Outcome(fold.new_label, head.classes_, values, correlations))
        labels = np.concatenate([one.labels for one in outcomes])
        right = np.concatenate(
            [one.classes[one.values.argmax(axis=1)] == one.labels for one in outcomes]
        )
        by_class = {
            name: float(right[labels == name].mean()) for name in np.unique(labels).tolist()
        }
        trial = Trial(what, params, reference, sources, class_interval(labels, right), by_class)
        self.trials.append(trial)
        self._outcomes.append(outcomes)
        return trial


def fit_temperature(outcomes: Sequence[Outcome]) -> float:
    """Return the temperature with the smallest log-loss, where all classes weigh the same."""
    parts = [
        (one.values, np.searchsorted(one.classes, one.labels), class_weights(one.labels))
        for one in outcomes
    ]

    def loss(log_temperature: float) -> float:
        return -sum(
            float(
                weight @ log_softmax(values / np.exp(log_temperature), axis=1)[np.arange(len(y)), y]
            )
            for values, y, weight in parts
        )

    found = minimize_scalar(loss, bounds=np.log(TEMPERATURES), method="bounded")
    return float(np.exp(found.x))


def calibration_error(outcome: Outcome, temperature: float) -> float:
    """Return the expected calibration error with a temperature."""
    proba = np.exp(log_softmax(outcome.values / temperature, axis=1))
    return expected_calibration_error(outcome.labels, proba, outcome.classes)


def correlate_classes(head: BaseHead, scores: Scores) -> Floats:
    """Return the correlations of the decision values of the classes; 0 for a constant one."""
    values = np.asarray(head.decision_function(scores), np.float64)
    values = values - values.mean(axis=0)
    size = np.sqrt((values**2).sum(axis=0))
    values /= np.where(size > 0, size, 1.0)
    correlations = values.T @ values
    np.fill_diagonal(correlations, 1.0)
    return np.asarray(correlations)


def _describe(params: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in params.items())

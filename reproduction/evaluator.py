"""Configurations of a zero-shot classifier: chosen in the rehearsal, measured on new classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import (
    Interval,
    class_interval,
    mean_class_accuracy,
    per_class_accuracy,
)
from rankshot.zeroshot.scores import Scores
from reproduction.benchmark import Benchmark, Task
from reproduction.classifiers import (
    ClassifierCache,
    LinearClassifier,
    average_classifiers,
)

Labels = NDArray[np.str_]
Head = ProbabilisticRanking | WeightedMean


@dataclass(frozen=True, eq=False)
class Configuration:
    """All parts and settings of a zero-shot classifier."""

    setting: str
    C: float
    head: Head
    reference: bool = False
    partner: tuple[str, float] | None = None
    questions: tuple[str, ...] = ()
    sources: Mapping[str, float] = field(default_factory=dict)
    raters: Mapping[str, float] = field(default_factory=dict)

    def with_head(self, **params: object) -> Configuration:
        """Return a configuration with other parameters of the head."""
        return replace(self, head=clone(self.head).set_params(**params))

    @property
    def classifiers(self) -> tuple[tuple[str, float], ...]:
        """The one or two classifiers, each with its regularization."""
        return ((self.setting, self.C), *([self.partner] if self.partner else []))


class Gain(NamedTuple):
    """A mean difference over classes, and its standard error."""

    mean: float
    standard_error: float


@dataclass(frozen=True, eq=False)
class Evaluator:
    """Evaluates configurations on the two tasks of a benchmark."""

    benchmark: Benchmark
    caches: Mapping[str, ClassifierCache]
    """The classifiers of each task, by name of the task."""

    @cached_property
    def _scores(self) -> dict[tuple[Any, ...], Scores]:
        return {}

    def scores(self, configuration: Configuration, task: Task, part: str) -> Scores:
        """Return the classifier's scores of the "validation" or "test" inputs of a task."""
        key = (task.name, configuration.classifiers, part)
        if key not in self._scores:
            self._scores[key] = self.classifier(configuration, task).scores(getattr(task, part))
        return self._scores[key]

    def classifier(self, configuration: Configuration, task: Task) -> LinearClassifier:
        """Return the classifier of a configuration, trained on a task, or the mean of two."""
        cache = self.caches[task.name]
        model = cache.load_or_train(configuration.setting, configuration.C)
        if configuration.partner is None:
            return model
        other = cache.load_or_train(*configuration.partner)
        return average_classifiers(model, other, task.validation)

    @cached_property
    def _heads(self) -> dict[tuple[Configuration, str], Head]:
        return {}

    def fit_head(self, configuration: Configuration, task: Task) -> Head:
        """Return the head of a configuration, fitted for a task; it is fitted once and kept."""
        key = (configuration, task.name)
        if key not in self._heads:
            reference = (
                self.scores(configuration, task, "validation") if configuration.reference else None
            )
            head: Head = clone(configuration.head)
            self._heads[key] = head.fit(weight_rankings(configuration, task), reference)
        return self._heads[key]

    def predict(self, configuration: Configuration, task: Task) -> Labels:
        """Return the predicted targets of a task's test inputs."""
        return self.fit_head(configuration, task).predict(self.scores(configuration, task, "test"))

    def rehearse(self, configuration: Configuration) -> Interval:
        """Return the mean class accuracy in the rehearsal, where settings are chosen.

        The interval is from resamples of classes.
        """
        task = self.benchmark.rehearsal
        correct = self.predict(configuration, task) == task.test_label
        return class_interval(task.test_label, correct)

    def rehearsal_gain(self, new: Configuration, old: Configuration) -> Gain:
        """Return the gain in mean class accuracy in the rehearsal, over the same classes."""
        task = self.benchmark.rehearsal
        ours, theirs = (
            np.array(list(per_class_accuracy(task.test_label, self.predict(one, task)).values()))
            for one in (new, old)
        )
        gain = ours - theirs
        return Gain(float(gain.mean()), float(gain.std(ddof=1) / np.sqrt(len(gain))))

    def is_clearly_better(self, new: Configuration, old: Configuration) -> bool:
        """Return whether the gain in the rehearsal exceeds one standard error over classes.

        With few classes in the rehearsal, the best of many configurations is often best by chance.
        """
        gain = self.rehearsal_gain(new, old)
        return gain.mean > gain.standard_error

    def choose_best(self, configurations: Iterable[Configuration]) -> Configuration:
        """Return the configuration with the highest rehearsal accuracy; the first one of a tie."""
        return max(
            list(configurations), key=lambda configuration: self.rehearse(configuration).estimate
        )

    def mark_correct(self, configuration: Configuration) -> NDArray[np.bool_]:
        """Return which test inputs of *new* classes are predicted correctly.

        Use it to report a result, never to choose a configuration.
        """
        task = self.benchmark.real
        return np.asarray(self.predict(configuration, task) == task.test_label)


def weight_rankings(configuration: Configuration, task: Task) -> Rankings:
    """Return the rankings of the panel and of a configuration's sources, with their weights."""
    panels = [task.panels[question] for question in configuration.questions or task.panels]
    # All questions weigh the same, however many raters answered them. A mean over the raters of
    # all questions was less accurate in both rehearsals with several questions.
    size = np.mean([panel.weights.sum() for panel in panels])
    panel = Rankings.concatenate(
        replace(one, weights=one.weights * (size / one.weights.sum())) for one in panels
    )
    if configuration.raters:
        weights = np.array([configuration.raters[name] for name in panel.raters])
        panel = replace(panel, weights=panel.weights * weights)
    parts = [panel]
    for source, weight in configuration.sources.items():
        rankings = task.rankings(source)
        # A source has one ranking per target. Its weight is relative to the panel's total weight
        # for a target.
        panel_weight = panel.weights.sum() / len(task.targets)
        parts.append(replace(rankings, weights=np.full(len(rankings), weight * panel_weight)))
    return Rankings.concatenate(parts)


def weigh_raters(evaluator: Evaluator, configuration: Configuration) -> dict[str, float]:
    """Return for each rater the gain over chance of its rankings alone, in the rehearsal."""
    task = evaluator.benchmark.rehearsal
    scores = evaluator.scores(configuration, task, "test")
    reference = (
        evaluator.scores(configuration, task, "validation") if configuration.reference else None
    )
    weights = {}
    panel = weight_rankings(replace(configuration, raters={}, sources={}), task)
    for rater in panel.rater_names:
        head = clone(configuration.head).fit(panel.select(rater=rater), reference)
        found = mean_class_accuracy(task.test_label, head.predict(scores))
        weights[rater] = max(found - 1 / len(task.targets), 0.01)
    return weights

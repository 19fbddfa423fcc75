"""Configurations for a zero-shot classifier: chosen on the rehearsal, then measured on unseen classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import clone

from rankshot.experiments.benchmark import Benchmark, Task
from rankshot.experiments.classifiers import ClassifierCache
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.bootstrap import class_interval
from rankshot.zeroshot.heads.batch_refinement import BatchRefinement
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.metrics import Interval, mean_class_accuracy, per_class_accuracy
from rankshot.zeroshot.scores import Scores

Labels = NDArray[np.str_]
Floats = NDArray[np.float64]
Correct = NDArray[np.bool_]
Prior = Literal["equal", "estimated"]
PRIORS: tuple[Prior, ...] = ("estimated", "equal")
HEAD_WEIGHTS = (0.3, 1.0, 2.0)
SHRINKAGES = (0.05, 0.2)
NEARLY_BEST = 0.01
"""Settings that rehearse so near to the best are as good as it, for all that is known."""


# -------------------- experiments.configurations
# Configurations for a zero-shot classifier: chosen on the rehearsal, then measured on unseen classes.


@dataclass(frozen=True, eq=False)
class Configuration:
    """All that a zero-shot classifier is made of.

    Attributes
    ----------
    setting, C : str, float
        The classifier and its regularisation.
    head : ProbabilisticRanking
        Not fitted.
    reference : bool
        Whether the head is told what is usual for seen validation inputs.
    temperature : float
        What scores are divided by.
    sources : mapping of str to float
        What the rankings of each source weigh together, the panel's being 1.
    raters : mapping of str to float
        What each rater of the panel weighs; all the same if empty.
    """

    setting: str
    C: float
    head: ProbabilisticRanking
    reference: bool = False
    temperature: float = 1.0
    sources: Mapping[str, float] = field(default_factory=dict)
    raters: Mapping[str, float] = field(default_factory=dict)

    def with_head(self, **params: object) -> Configuration:
        """Return it with other settings of the head."""
        return replace(self, head=clone(self.head).set_params(**params))


@dataclass(frozen=True, eq=False)
class Evaluator:
    """A benchmark and its classifiers: where configurations are tried."""

    benchmark: Benchmark
    caches: Mapping[str, ClassifierCache]
    """By name of the task."""

    @cached_property
    def _scores(self) -> dict[tuple[str, str, float, str], Scores]:
        return {}

    def scores(self, configuration: Configuration, task: Task, part: str) -> Scores:
        """Return what the configuration's classifier says of a task's "validation" or "test" inputs."""
        key = (task.name, configuration.setting, configuration.C, part)
        if key not in self._scores:
            model = self.caches[task.name].load_or_train(configuration.setting, configuration.C)
            self._scores[key] = model.scores(getattr(task, part))
        found = self._scores[key]
        if configuration.temperature == 1:
            return found
        return Scores(found.values / configuration.temperature, found.items, found.kind)

    @cached_property
    def _heads(self) -> dict[tuple[Configuration, str], ProbabilisticRanking]:
        return {}

    def fit_head(self, configuration: Configuration, task: Task) -> ProbabilisticRanking:
        """Return the configuration's head, fitted for a task."""
        key = (configuration, task.name)
        if key not in self._heads:
            reference = (
                self.scores(configuration, task, "validation") if configuration.reference else None
            )
            head: ProbabilisticRanking = clone(configuration.head)
            self._heads[key] = head.fit(weight_rankings(configuration, task), reference)
        return self._heads[key]

    def predict(self, configuration: Configuration, task: Task) -> Labels:
        """Return the targets that the configuration gives to a task's test inputs."""
        return self.fit_head(configuration, task).predict(self.scores(configuration, task, "test"))

    def rehearse(self, configuration: Configuration) -> Interval:
        """Return how good a configuration is where settings are chosen: seen classes playing unseen.

        It is the mean over classes, with its interval over resamples of classes.
        """
        task = self.benchmark.rehearsal
        right = self.predict(configuration, task) == task.test_label
        return class_interval(task.test_label, right)

    def is_clearly_better(self, new: Configuration, old: Configuration) -> bool:
        """Return whether a configuration rehearses better by more than one standard error over classes.

        With a few classes to rehearse on, the best of many configurations is often best by chance.
        """
        task = self.benchmark.rehearsal
        ours, theirs = (
            np.array(list(per_class_accuracy(task.test_label, self.predict(one, task)).values()))
            for one in (new, old)
        )
        gain = ours - theirs
        return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))

    def choose_best(self, configurations: Iterable[Configuration]) -> Configuration:
        """Return the configuration that rehearses best; of equals, the first."""
        return max(
            list(configurations), key=lambda configuration: self.rehearse(configuration).estimate
        )

    def mark_correct(self, configuration: Configuration) -> NDArray[np.bool_]:
        """Return which inputs of *unseen* classes a configuration gets right: to report, not to choose."""
        task = self.benchmark.real
        return np.asarray(self.predict(configuration, task) == task.test_label)


def weight_rankings(configuration: Configuration, task: Task) -> Rankings:
    """Return the rankings of a configuration's sources, weighted."""
    panel = task.panel
    if configuration.raters:
        panel = replace(
            panel, weights=np.array([configuration.raters[name] for name in panel.raters])
        )
    parts = [panel]
    for source, weight in configuration.sources.items():
        listed = task.rankings(source)
        # The panel's rankings of a target weigh 1 together, and so do those of a source.
        of_target = panel.weights.sum() / len(task.targets)
        parts.append(replace(listed, weights=np.full(len(listed), weight * of_target)))
    return Rankings.concatenate(parts)


def weigh_raters(evaluator: Evaluator, configuration: Configuration) -> dict[str, float]:
    """Return what each rater's rankings alone are worth on the rehearsal, more than by chance."""
    task = evaluator.benchmark.rehearsal
    scores = evaluator.scores(configuration, task, "test")
    reference = (
        evaluator.scores(configuration, task, "validation") if configuration.reference else None
    )
    worth = {}
    for rater in task.panel.rater_names:
        head = clone(configuration.head).fit(task.panel.select(rater=rater), reference)
        found = mean_class_accuracy(task.test_label, head.predict(scores))
        worth[rater] = max(found - 1 / len(task.targets), 0.01)
    return worth


# -------------------- experiments.batch_priors
# How frequent targets are in a batch: what a head says of all inputs, used for each of them.


def adjust_for_frequencies(log_proba: Floats, n_rounds: int = 50) -> Floats:
    """Return log-probabilities with the frequencies of targets that explain the batch best.

    Expectation and maximisation over P(z), after Saerens, Latinne and Decaestecker (2002): each
    round P(z) is the mean of P(z|x) over the batch, and P(z|x) is that of the head times P(z).
    """
    log_prior = np.zeros(log_proba.shape[1])
    for _ in range(n_rounds):
        posterior = np.exp(log_softmax(log_proba + log_prior, axis=1))
        log_prior = np.log(np.maximum(posterior.mean(axis=0), np.finfo(float).tiny))
    return np.asarray(log_softmax(log_proba + log_prior, axis=1))


# -------------------- experiments.batch_trials
# Settings of `BatchRefinement`, chosen on the rehearsal.


class BatchSetting(NamedTuple):
    """A configuration, refined on the whole batch."""

    base: Configuration
    head_weight: float
    shrinkage: float
    prior: Prior


class BatchTrials:
    """Settings of `BatchRefinement`, each tried once on the rehearsal.

    What they reach on unseen classes is looked up only for those that rehearse well.
    """

    def __init__(self, evaluator: Evaluator, bases: Sequence[Configuration]) -> None:
        self.evaluator = evaluator
        grid = product(bases, HEAD_WEIGHTS, SHRINKAGES, PRIORS)
        self.rehearsals = {setting: self._rehearse(setting) for setting in map(_setting, grid)}

    def choose_best(self, priors: Sequence[Prior]) -> BatchSetting:
        """Return the setting that rehearses best, among those with some class priors."""
        return max(
            (setting for setting in self.rehearsals if setting.prior in priors),
            key=lambda setting: self.rehearsals[setting].estimate,
        )

    def predict(self, setting: BatchSetting, task: Task) -> Labels:
        """Return the targets that a setting gives to a task's test inputs."""
        base, head_weight, shrinkage, prior = setting
        scores = self.evaluator.scores(base, task, "test")
        head = BatchRefinement(
            self.evaluator.fit_head(base, task),
            trust=head_weight,
            shrinkage=shrinkage,
            class_prior=prior,
        )
        return head.fit(scores).predict(scores)

    def _rehearse(self, setting: BatchSetting) -> Interval:
        task = self.evaluator.benchmark.rehearsal
        right = self.predict(setting, task) == task.test_label
        return class_interval(task.test_label, right)

    def mark_correct(self, setting: BatchSetting) -> Correct:
        """Return which inputs of unseen classes a setting gets right."""
        task = self.evaluator.benchmark.real
        return np.asarray(self.predict(setting, task) == task.test_label)

    def range_of_nearly_best(self) -> tuple[float, float]:
        """Return the least and the most that settings as good as the best reach."""
        least = self.rehearsals[self.choose_best(PRIORS)].estimate - NEARLY_BEST
        found = [
            float(self.mark_correct(setting).mean())
            for setting, rehearsed in self.rehearsals.items()
            if rehearsed.estimate >= least
        ]
        return min(found), max(found)


def _setting(values: tuple[Configuration, float, float, Prior]) -> BatchSetting:
    return BatchSetting(*values)

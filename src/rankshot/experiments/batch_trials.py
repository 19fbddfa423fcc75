"""Ideas that use all test inputs together: target frequencies by EM, and `BatchRefinement`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from rankshot.experiments.benchmark import Task
from rankshot.experiments.evaluator import Configuration, Evaluator
from rankshot.zeroshot.bootstrap import class_interval
from rankshot.zeroshot.heads.batch_refinement import BatchRefinement
from rankshot.zeroshot.metrics import Interval

Labels = NDArray[np.str_]
Floats = NDArray[np.float64]
Correct = NDArray[np.bool_]
Prior = Literal["equal", "estimated"]
PRIORS: tuple[Prior, ...] = ("estimated", "equal")
HEAD_WEIGHTS = (0.3, 1.0, 2.0)
SHRINKAGES = (0.05, 0.2)
NEARLY_BEST = 0.01
"""Settings whose rehearsal accuracy is within this of the best count as nearly best."""


def adjust_for_frequencies(log_proba: Floats, n_rounds: int = 50) -> Floats:
    """Return log-probabilities adjusted to the target frequencies of the batch, estimated by EM.

    The method of Saerens, Latinne and Decaestecker (2002): in each round P(z) is the mean of
    P(z|x) over the batch, and P(z|x) is that of the head times P(z), normalized.
    """
    log_prior = np.zeros(log_proba.shape[1])
    for _ in range(n_rounds):
        posterior = np.exp(log_softmax(log_proba + log_prior, axis=1))
        log_prior = np.log(np.maximum(posterior.mean(axis=0), np.finfo(float).tiny))
    return np.asarray(log_softmax(log_proba + log_prior, axis=1))


class BatchSetting(NamedTuple):
    """A configuration and the parameters of its `BatchRefinement`."""

    base: Configuration
    head_weight: float
    shrinkage: float
    prior: Prior


class BatchTrials:
    """Settings of `BatchRefinement`, each evaluated once in the rehearsal.

    Accuracies on new classes are computed only for the best and the nearly best settings.
    """

    def __init__(self, evaluator: Evaluator, bases: Sequence[Configuration]) -> None:
        self.evaluator = evaluator
        grid = product(bases, HEAD_WEIGHTS, SHRINKAGES, PRIORS)
        settings = [BatchSetting(*values) for values in grid]
        self.rehearsals = {setting: self._rehearse(setting) for setting in settings}

    def choose_best(self, priors: Sequence[Prior]) -> BatchSetting:
        """Return the setting with the highest rehearsal accuracy among those with these priors."""
        return max(
            (setting for setting in self.rehearsals if setting.prior in priors),
            key=lambda setting: self.rehearsals[setting].estimate,
        )

    def predict(self, setting: BatchSetting, task: Task) -> Labels:
        """Return the predicted targets of a task's test inputs."""
        base, head_weight, shrinkage, prior = setting
        scores = self.evaluator.scores(base, task, "test")
        head = BatchRefinement(
            self.evaluator.fit_head(base, task),
            head_weight=head_weight,
            shrinkage=shrinkage,
            class_prior=prior,
        )
        return head.fit(scores).predict(scores)

    def _rehearse(self, setting: BatchSetting) -> Interval:
        task = self.evaluator.benchmark.rehearsal
        correct = self.predict(setting, task) == task.test_label
        return class_interval(task.test_label, correct)

    def mark_correct(self, setting: BatchSetting) -> Correct:
        """Return which test inputs of new classes are predicted correctly."""
        task = self.evaluator.benchmark.real
        return np.asarray(self.predict(setting, task) == task.test_label)

    def range_of_nearly_best(self) -> tuple[float, float]:
        """Return the lowest and the highest accuracy of nearly best settings on new classes."""
        least = self.rehearsals[self.choose_best(PRIORS)].estimate - NEARLY_BEST
        found = [
            float(self.mark_correct(setting).mean())
            for setting, rehearsed in self.rehearsals.items()
            if rehearsed.estimate >= least
        ]
        return min(found), max(found)

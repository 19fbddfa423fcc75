"""Settings of `BatchRefinement`, chosen on the rehearsal."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.experiments.recipes import Kitchen, Recipe
from rankshot.experiments.study import Task
from rankshot.zeroshot.batch_refinement import BatchRefinement
from rankshot.zeroshot.bootstrap import class_interval
from rankshot.zeroshot.metrics import Interval

Labels = NDArray[np.str_]
Right = NDArray[np.bool_]
Prior = Literal["equal", "estimated"]
PRIORS: tuple[Prior, ...] = ("estimated", "equal")

TRUSTS = (0.3, 1.0, 2.0)
SHRINKAGES = (0.05, 0.2)
NEARLY = 0.01
"""Settings that rehearse so near to the best are as good as it, for all that is known."""


class BatchSetting(NamedTuple):
    """A recipe, refined on the whole batch."""

    base: Recipe
    trust: float
    shrinkage: float
    prior: Prior


class BatchTrials:
    """Settings of `BatchRefinement`, each tried once on the rehearsal.

    What they reach on unseen classes is looked up only for those that rehearse well.
    """

    def __init__(self, kitchen: Kitchen, bases: Sequence[Recipe]) -> None:
        self.kitchen = kitchen
        grid = product(bases, TRUSTS, SHRINKAGES, PRIORS)
        self.rehearsed = {setting: self._rehearsed(setting) for setting in map(_setting, grid)}

    def best(self, priors: Sequence[Prior]) -> BatchSetting:
        """Return the setting that rehearses best, among those with some class priors."""
        return max(
            (setting for setting in self.rehearsed if setting.prior in priors),
            key=lambda setting: self.rehearsed[setting].estimate,
        )

    def predicted(self, setting: BatchSetting, task: Task) -> Labels:
        """Return the targets that a setting gives to a task's test inputs."""
        base, trust, shrinkage, prior = setting
        scores = self.kitchen.scores(base, task, "test")
        head = BatchRefinement(
            self.kitchen.fitted(base, task), trust=trust, shrinkage=shrinkage, class_prior=prior
        )
        return head.fit(scores).predict(scores)

    def _rehearsed(self, setting: BatchSetting) -> Interval:
        task = self.kitchen.study.rehearsal
        right = self.predicted(setting, task) == task.test_label
        return class_interval(task.test_label, right)

    def right(self, setting: BatchSetting) -> Right:
        """Return which inputs of unseen classes a setting gets right."""
        task = self.kitchen.study.real
        return np.asarray(self.predicted(setting, task) == task.test_label)

    def range_of_nearly_best(self) -> tuple[float, float]:
        """Return the least and the most that settings as good as the best reach."""
        least = self.rehearsed[self.best(PRIORS)].estimate - NEARLY
        found = [
            float(self.right(setting).mean())
            for setting, rehearsed in self.rehearsed.items()
            if rehearsed.estimate >= least
        ]
        return min(found), max(found)


def _setting(values: tuple[Recipe, float, float, Prior]) -> BatchSetting:
    return BatchSetting(*values)

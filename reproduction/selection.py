"""Honest selection: a default is changed only where seen classes clearly favour the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import format_share
from rankshot.zeroshot.heads.probabilistic_ranking import ProbabilisticRanking
from rankshot.zeroshot.heads.weighted_mean import WeightedMean
from rankshot.zeroshot.metrics import Bootstrap, Interval
from reproduction.benchmark import find_unranked_targets
from reproduction.classifiers import LEAST_SQUARES, AnnounceStep
from reproduction.evaluator import (
    Configuration,
    Evaluator,
    Gain,
    Head,
    weigh_raters,
)
from reproduction.result_tables import ResultTable, Value

Correct = NDArray[np.bool_]
PLACES = (5, 10, 15)
DECAYS = (0.25, 0.5, 0.75)
SOURCE_WEIGHTS = (0.1, 0.3)
LEAST_GAIN = 0.005
"""Smaller gains are not worth a change."""
RULE_NOTE = (
    "The default uses everything available: both classifiers and the answers to all questions, "
    "because a mean has less noise than its parts. A change is kept only if, on the held-out seen "
    "classes, it gains more than one standard error over these classes, and at least "
    f"{format_share(LEAST_GAIN)}; of several changes to one part, only the best can be kept. "
    "Questions are left out one at a time."
)
ORDER_NOTE = (
    "The changes are tried from the top down, each in addition to those that were kept above it; "
    "gains are relative to what was kept so far. The column of new classes is for information "
    "only."
)


@dataclass(frozen=True, eq=False)
class Trial:
    """A change of a configuration, and its results."""

    part: str
    change: str
    rehearsal: Interval
    gain: Gain
    kept: bool
    correct: Correct


@dataclass(eq=False)
class Selection:
    """The changes that were tried so far, and the configuration with those that were kept."""

    evaluator: Evaluator
    chosen: Configuration
    trials: list[Trial] = field(default_factory=list)

    def try_changes(self, part: str, changes: Mapping[str, Configuration]) -> bool:
        """Try changes of one part, and keep the best one if it is clearly better.

        Returns whether it is kept.
        """
        if not changes:
            return False
        evaluator, old = self.evaluator, self.chosen
        best = evaluator.choose_best(changes.values())
        worth_it = evaluator.rehearsal_gain(best, old).mean >= LEAST_GAIN
        if worth_it and evaluator.is_clearly_better(best, old):
            self.chosen = best
        for change, one in changes.items():
            kept, gain = one is self.chosen, evaluator.rehearsal_gain(one, old)
            correct = evaluator.mark_correct(one)
            rehearsal = evaluator.rehearse(one)
            self.trials.append(Trial(part, change, rehearsal, gain, kept, correct))
        return self.chosen is best

    def table(self, bootstrap: Bootstrap) -> ResultTable:
        """Return all trials."""
        rows: list[tuple[Value, ...]] = [
            (
                *(one.part, one.change, one.rehearsal),
                f"{format_share(one.gain.mean)} ± {format_share(one.gain.standard_error)}",
                "yes" if one.kept else "",
                bootstrap.interval(one.correct),
            )
            for one in self.trials
        ]
        return ResultTable(
            "selection",
            "Changes to the default: what seen classes support, and what did not help",
            (
                *("part", "change", "held-out seen classes"),
                *("gain ± standard error", "kept", "new classes"),
            ),
            tuple(rows),
            (RULE_NOTE, ORDER_NOTE),
            n_labels=2,
        )


def make_default(
    evaluator: Evaluator, grid: Mapping[str, Sequence[float]]
) -> tuple[Configuration, dict[str, Configuration]]:
    """Return the default, and the same with each of its two classifiers alone.

    The regularisation is the best of the grid in the rehearsal, of both classifiers together and
    of each alone.
    """
    settings = {
        setting: [Configuration(setting, C, WeightedMean(), reference=True) for C in grid[setting]]
        for setting in ("multiclass", LEAST_SQUARES)
    }
    alone = {setting: evaluator.choose_best(tried) for setting, tried in settings.items()}
    both = evaluator.choose_best(
        replace(one, partner=(other.setting, other.C)) for one, other in product(*settings.values())
    )
    return both, alone


def select(
    evaluator: Evaluator,
    default: Configuration,
    alone: Mapping[str, Configuration],
    announce: AnnounceStep,
) -> Selection:
    """Try to change the parts of the default one after the other."""
    found = Selection(evaluator, default)
    announce("selection: questions of the panel")
    _leave_out_questions(found)
    announce("selection: classifiers")
    changes = {
        f"{name} alone": replace(found.chosen, setting=name, C=one.C, partner=None)
        for name, one in alone.items()
    }
    found.try_changes("classifier", changes)
    announce("selection: heads")
    found.try_changes("head", _other_heads(found.chosen))
    found.try_changes("reference", {"none": replace(found.chosen, reference=False)})
    announce("selection: sources and raters")
    found.try_changes("sources", _more_sources(found))
    weights = weigh_raters(evaluator, found.chosen)
    found.try_changes("raters", {"by their accuracy": replace(found.chosen, raters=weights)})
    return found


def _leave_out_questions(found: Selection) -> None:
    questions = tuple(found.evaluator.benchmark.rehearsal.panels)
    while len(questions) > 1:
        fewer = [tuple(one for one in questions if one != left_out) for left_out in questions]
        changes = {" + ".join(kept): replace(found.chosen, questions=kept) for kept in fewer}
        if not found.try_changes("questions", changes):
            return
        questions = found.chosen.questions


def _other_heads(chosen: Configuration) -> dict[str, Configuration]:
    heads: list[Head] = [
        *(WeightedMean(k=k, decay=decay) for k, decay in product(PLACES, DECAYS)),
        *(ProbabilisticRanking(k=k) for k in PLACES),
    ]
    return {
        f"{type(head).__name__}, K = {head.k}, decay {head.decay:g}": replace(chosen, head=head)
        for head in heads
        if repr(head) != repr(chosen.head)
    }


def _more_sources(found: Selection) -> dict[str, Configuration]:
    """Return the best weight of each linguistic source in addition to the panel."""
    changes = {}
    for name, table in found.evaluator.benchmark.rehearsal.sources.items():
        if len(find_unranked_targets(table)) == len(table.targets):
            continue
        best = found.evaluator.choose_best(
            replace(found.chosen, sources={name: weight}) for weight in SOURCE_WEIGHTS
        )
        changes[f"{name} at {best.sources[name]:g} in addition"] = best
    return changes

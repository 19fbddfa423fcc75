"""A block of rankings in a Plackett-Luce fit: its log-likelihood and the expected choices.

A block is laid out with the classes that its rankings list (see `Stages`). In a top-K ranking all
others come after these, and only their total worth matters: that of all classes, minus that of
the listed ones. Where little is left, this difference has few correct digits. Such rankings are
laid out completely, for the log-worths at hand.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.models.plackett_luce_stages import (
    SMALLEST_REST,
    StageLogs,
    Stages,
    build_stages,
    choose_tied,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
SAFE_RANGE = 300.0
"""Log-worths that differ by more are summed as logarithms, which takes longer: the square of a
worth must not underflow."""


def need_logs(theta: Floats) -> bool:
    """Tell whether worths differ too much for plain sums."""
    return bool(theta.max() - theta.min() > SAFE_RANGE)


@dataclass
class Block:
    """Some rankings of classes of items.

    Parameters
    ----------
    rankings : Rankings
        Of classes; their ``lengths`` count items.
    counts : ndarray of shape (C,)
        How many items each class has.
    complete : bool
        Whether all classes are laid out.
    """

    rankings: Rankings
    counts: NDArray[np.int64]
    complete: bool

    def __post_init__(self) -> None:
        self.stages: Stages = build_stages(self.rankings, self.counts, complete=self.complete)
        self.weights = self.rankings.weights
        self.n_classes = C = len(self.counts)
        self.order = self.stages.order
        # There is no choice below the last one: short lists of many items cost less.
        last = np.flatnonzero(self.stages.chosen.any(axis=1)).max(initial=0)
        self.depth = 1 + max([int(last), *(int(tie.end.max()) for tie in self.stages.ties)])
        self.chosen = self.stages.chosen[: self.depth]
        self.has_rest = bool(self.stages.has_rest.any())
        self.choices = self.chosen * self.weights
        self.single_wins = np.bincount(
            self.order[: self.depth].ravel(), self.choices.ravel(), minlength=C + 1
        )[:C]
        self.tied_wins = np.zeros(C)
        for tie in self.stages.ties:
            np.add.at(self.tied_wins, tie.members, self.weights[tie.column][:, None] * tie.counts)
        self._last_split: tuple[NDArray[np.bool_], list[Block]] | None = None

    def split(self, theta: Floats) -> list[Block]:
        """Return blocks of the same rankings, in which no rest is too small at these log-worths."""
        if self.complete:
            return [self]
        if need_logs(theta):
            small = np.ones(len(self.weights), bool)
        elif self.has_rest:
            small = self.stages.has_rest & (self._sum_rest(theta) < SMALLEST_REST)
        else:
            return [self]
        if not small.any():
            return [self]
        # Later steps of a fit split alike.
        if self._last_split is None or not np.array_equal(self._last_split[0], small):
            blocks = [Block(self.rankings[small], self.counts, complete=True)]
            if not small.all():
                blocks.append(Block(self.rankings[~small], self.counts, complete=False))
            self._last_split = small, blocks
        return self._last_split[1]

    def _sum_rest(self, theta: Floats) -> Floats:
        """Return which part of the total worth the classes have that a ranking does not list."""
        worths = self.counts * np.exp(theta)
        listed = np.append(worths / worths.sum(), 0.0).take(self.order)
        return np.asarray(1 - listed.sum(axis=0))

    def sum_remaining(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the worths in order, and the total worth of each item and all that follow."""
        by_class = np.zeros(self.n_classes + 1)
        by_class[:-1] = self.counts * np.exp(theta)
        worths = by_class.take(self.order)
        remaining = np.empty((len(worths) + 1, worths.shape[1]))
        remaining[:-1] = worths
        remaining[-1] = 0
        if self.has_rest:
            remaining[-1] = (by_class.sum() - worths.sum(axis=0)) * self.stages.has_rest
        add_up(remaining[::-1])
        return worths, remaining

    def totals(self, remaining: Floats) -> Floats:
        """Return the total worth that each single item was chosen from, and 1 elsewhere."""
        return np.where(self.chosen, remaining[: self.depth], 1.0)

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Return the weighted sum of `StageLogs.log_prob`, and the expected choices.

        A fit spends most of its time here. Plain sums of worths, which are several times faster
        than logarithms, are used as long as no worth can underflow.
        """
        if need_logs(theta):
            return self._value_and_expected_by_logs(theta)
        C = self.n_classes
        worths, remaining = self.sum_remaining(theta)
        totals = self.totals(remaining)
        log_totals = np.log(totals).sum(axis=0)
        value = float(self.single_wins @ theta)
        value -= float(self.weights @ (log_totals + self.stages.log_ways))
        rate = self.choices / totals
        expected = np.zeros(C)
        for tie in self.stages.ties:
            weight = self.weights[tie.column]
            total = remaining[tie.end, tie.column]
            choice = choose_tied(tie, theta, np.log(total))
            value += float(weight @ choice.log_prob)
            np.add.at(expected, tie.members, weight[:, None] * (tie.counts - choice.gradient))
            # For the items after it, a tie is a choice that they have lost.
            np.add.at(rate, (tie.end, tie.column), weight * choice.gradient.sum(axis=1) / total)
        add_up(rate)
        if self.has_rest:
            # All classes lose every choice of the ranking; a listed one only those before it.
            lost = rate[-1] * self.stages.has_rest
            expected += lost.sum() * (self.counts * np.exp(theta))
            rate = rate - lost
        worths[: self.depth] *= rate
        worths[self.depth :] *= rate[-1]
        expected += np.bincount(self.order.ravel(), worths.ravel(), minlength=C + 1)[:C]
        return value, expected

    def _value_and_expected_by_logs(self, theta: Floats) -> tuple[float, Floats]:
        """Return the same as `value_and_expected`, from ratios that never exceed 1.

        Σ 1/S over the stages so far is stored as a multiple of 1/S at the last of them.
        """
        logs = StageLogs(self.stages, theta)
        value = float(self.weights @ logs.log_prob_of_singles)
        choices = self.stages.chosen * self.weights
        expected = np.zeros(self.n_classes)
        for tie, choice in logs.iterate_ties():
            weight = self.weights[tie.column]
            value += float(weight @ choice.log_prob)
            np.add.at(expected, tie.members, weight[:, None] * (tie.counts - choice.gradient))
            np.add.at(choices, (tie.end, tie.column), weight * choice.gradient.sum(axis=1))
        remaining = logs.log_remaining
        carry_down(choices, np.exp(difference(remaining[1:-1], remaining[:-2])))
        shares = np.exp(difference(logs.log_worths, remaining[:-1])) * choices
        C = self.n_classes
        expected += np.bincount(self.order.ravel(), shares.ravel(), minlength=C + 1)[:C]
        return value, expected


def add_up(rows: Floats) -> None:
    """Turn rows into their running sums, in place.

    The loop adds whole rows, which is faster than ``np.cumsum`` along this axis.
    """
    for above, row in pairwise(rows):
        np.add(row, above, out=row)


def carry_down(rows: Floats, shrink: Floats) -> None:
    """Add to every row, in place, the row above times ``shrink``, from the first row down."""
    for p in range(1, len(rows)):
        rows[p] += rows[p - 1] * shrink[p - 1]


def difference(a: Floats, b: Floats) -> Floats:
    """Return a - b of logarithms, and -inf where both are -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(a), -np.inf, a - b)

"""The Plackett-Luce log-likelihood of rankings, and its derivatives in the log-worths.

`Likelihood` adds up the log-probabilities of rankings for the solvers; `PartsLikelihood` does so
for rankings in parts, of which each worker holds one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.ranking.encoding import Entries, row_starts
from rankshot.ranking.models.plackett_luce_stages import (
    LargeRatios,
    StageLogs,
    Stages,
    TiedStages,
    build_stages,
    choose_tied,
)
from rankshot.ranking.models.tied_classes import TiedClasses
from rankshot.ranking.parts import (
    AnyRankings,
    RankingParts,
    keep_counted,
    keep_counted_part,
    reduce_parts,
)
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
T = TypeVar("T")
CACHED_CELLS = 1 << 15
"""Blocks of this size (256 kB) stay in the cache, and allocating them costs no page faults."""
SAFE_RANGE = 300.0
"""Log-worths that differ by more are summed as logarithms, which takes longer: the square of a
worth must not underflow."""


class Likelihood:
    """The log-likelihood of weighted rankings, as the solvers need it.

    The derivative in the log-worth of item i is ``wins[i] - expected[i]``: how often it was
    chosen, minus how often the model expects it to be. All sums are running sums along the
    rankings, so the cost of one evaluation is proportional to the number of their classes.

    Parameters
    ----------
    rankings : Rankings
    class_of : ndarray of shape (items,), optional
        The class of each item, such as `alike_items`: items of one class must be at the same
        level in every ranking. By default each item is a class of its own.

    Attributes
    ----------
    counts : ndarray of shape (C,)
        How many items each class has.
    wins : ndarray of shape (C,)
        The weight of the rankings that list a class among their first K, times its count.
    """

    def __init__(self, rankings: Rankings, class_of: NDArray[np.intp] | None = None) -> None:
        rankings = keep_counted_part(rankings)
        self.counts: NDArray[np.int64] = np.ones(rankings.n_items, np.int64)
        if class_of is not None and class_of.max() + 1 < rankings.n_items:
            self.counts = np.bincount(class_of)
            rankings = _list_classes(rankings, class_of)
        self.n_classes = len(self.counts)
        self._blocks = [
            _Block(build_stages(rankings[rows], self.counts), rankings.weights[rows])
            for rows in row_blocks(len(rankings), self.n_classes, CACHED_CELLS)
        ]
        self.wins: Floats = np.sum([b.single_wins + b.tied_wins for b in self._blocks], axis=0)

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood, and the expected number of times each class is chosen."""
        theta = theta - theta.max()
        value, expected = 0.0, np.zeros(self.n_classes)
        for block in self._blocks:
            part, chosen = block.value_and_expected(theta)
            value += part
            expected += chosen
        return value, expected

    def information(self, theta: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        theta = theta - theta.max()
        return np.asarray(sum(block.information(theta) for block in self._blocks))


def _list_classes(rankings: Rankings, class_of: NDArray[np.intp]) -> Rankings:
    """List the classes of items instead of the items; ``lengths`` still count items."""
    _, representatives = np.unique(class_of, return_index=True)
    kept = np.isin(rankings.codes, representatives)
    sizes = np.bincount(rankings.entry_rows[kept], minlength=len(rankings))
    lists = Entries(
        class_of[rankings.codes[kept]].astype(np.int32), rankings.places[kept], row_starts(sizes)
    )
    names = tuple(rankings.items[i] for i in representatives)
    return replace(
        rankings, items=names, codes=lists.codes, places=lists.places, starts=lists.starts
    )


@dataclass
class _Block:
    stages: Stages
    weights: Floats

    def __post_init__(self) -> None:
        C = len(self.stages.order)
        self.n_classes = C
        self.order = self.stages.order
        # There is no choice below the last one: short lists of many items cost less.
        last = np.flatnonzero(self.stages.chosen.any(axis=1)).max(initial=0)
        self.depth = 1 + max([int(last), *(int(tie.end.max()) for tie in self.stages.ties)])
        self.chosen = self.stages.chosen[: self.depth]
        self.single_wins = np.bincount(
            self.order[: self.depth].ravel(), (self.chosen * self.weights).ravel(), minlength=C + 1
        )[:C]
        self.tied_wins = np.zeros(C)
        for tie in self.stages.ties:
            np.add.at(self.tied_wins, tie.members, self.weights[tie.column][:, None] * tie.counts)

    def _sum_remaining(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the worths in order, and the total worth of each item and all that follow."""
        worths = np.append(self.stages.counts * np.exp(theta), 0.0).take(self.order)
        remaining = np.zeros((self.n_classes + 1, worths.shape[1]))
        remaining[:-1] = worths
        _add_up(remaining[::-1])
        return worths, remaining

    def _totals(self, remaining: Floats) -> Floats:
        """Return the total worth that each single item was chosen from, and 1 elsewhere."""
        return np.where(self.chosen, remaining[: self.depth], 1.0)

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Return the weighted sum of `StageLogs.log_prob`, and the expected choices.

        A fit spends most of its time here. Plain sums of worths, which are several times faster
        than logarithms, are used as long as no worth can underflow.
        """
        if np.ptp(theta) > SAFE_RANGE:
            return self._value_and_expected_by_logs(theta)
        C = self.n_classes
        worths, remaining = self._sum_remaining(theta)
        totals = self._totals(remaining)
        log_totals = np.log(totals).sum(axis=0)
        value = float(self.single_wins @ theta)
        value -= float(self.weights @ (log_totals + self.stages.log_ways))
        rate = self.chosen * self.weights
        rate /= totals
        expected = np.zeros(C)
        for tie in self.stages.ties:
            weight = self.weights[tie.column]
            total = remaining[tie.end, tie.column]
            choice = choose_tied(tie, theta, np.log(total))
            value += float(weight @ choice.log_prob)
            np.add.at(expected, tie.members, weight[:, None] * (tie.counts - choice.gradient))
            # For the items after it, a tie is a choice that they have lost.
            np.add.at(rate, (tie.end, tie.column), weight * choice.gradient.sum(axis=1) / total)
        _add_up(rate)
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
        _carry_down(choices, np.exp(_difference(remaining[1:-1], remaining[:-2])))
        shares = np.exp(_difference(logs.log_worths, remaining[:-1])) * choices
        C = self.n_classes
        expected += np.bincount(self.order.ravel(), shares.ravel(), minlength=C + 1)[:C]
        return value, expected

    def information(self, theta: Floats) -> Floats:
        r"""Sum diag(p) - p pᵀ over the choices.

        The p_a p_b of one ranking sum to v_a v_b Σ 1/S² over the stages at which both remain.
        That running sum grows along the ranking, so it is the smaller of the sums at a and b.
        """
        both = (
            self._sum_pair_products_by_logs(theta)
            if np.ptp(theta) > SAFE_RANGE
            else self._sum_pair_products(theta)
        )
        # At every stage the probabilities of the remaining items add up to one.
        information = np.diag(both.sum(axis=1)) - both
        if self.stages.ties:
            logs = StageLogs(self.stages, theta)
            for tie, choice in logs.iterate_ties():
                information -= self._tie_hessian(theta, logs.log_remaining, tie, choice)
        return information

    def _sum_pair_products(self, theta: Floats) -> Floats:
        """Return Σ p_a p_b over the single choices."""
        C = self.n_classes
        _, remaining = self._sum_remaining(theta)
        rate = self.chosen * self.weights
        rate /= self._totals(remaining) ** 2
        _add_up(rate)
        running = np.zeros((C + 1, len(self.weights)))
        column = np.arange(len(self.weights))
        running[self.order[: self.depth], column] = rate
        running[self.order[self.depth :], column] = rate[-1]
        overlap = np.empty((C, C))
        for a in range(C):
            overlap[a, a:] = np.minimum(running[a], running[a:C]).sum(axis=1)
            overlap[a:, a] = overlap[a, a:]
        v = self.stages.counts * np.exp(theta)
        return np.asarray(v[:, None] * v * overlap)

    def _sum_pair_products_by_logs(self, theta: Floats) -> Floats:
        """Return the same for worths whose squares would underflow."""
        C, n = self.n_classes, len(self.weights)
        remaining = StageLogs(self.stages, theta).log_remaining
        choices = self.stages.chosen * self.weights
        _carry_down(choices, np.exp(2 * _difference(remaining[1:-1], remaining[:-2])))
        with np.errstate(divide="ignore", invalid="ignore"):
            log_rate = np.where(choices > 0, np.log(choices) - 2 * remaining[:-1], -np.inf)
        running = np.full((C + 1, n), -np.inf)
        running[self.order, np.arange(n)] = log_rate
        both = np.empty((C, C))
        totals = theta + np.log(self.stages.counts)
        for a in range(C):
            log_overlap = np.minimum(running[a], running[:C])
            both[a] = np.exp(log_overlap + (totals[a] + totals)[:, None]).sum(axis=1)
        return both

    def _tie_hessian(
        self,
        theta: Floats,
        remaining: Floats,
        tie: TiedStages,
        choice: TiedClasses | LargeRatios,
    ) -> Floats:
        """Return the second derivatives of a tie in all log-worths."""
        C, g = self.n_classes, tie.members.shape[1]
        weight = self.weights[tie.column]
        rest = remaining[tie.end, tie.column]
        stage = np.arange(len(rest))[:, None]
        later = np.arange(C)[:, None] >= tie.end
        shares = np.zeros((C + 1, len(rest)))
        shares[self.order[:, tie.column], stage.T] = later
        # Only later items have a share; the ratio of the others may overflow.
        totals = theta + np.log(self.stages.counts)
        ratio = np.where(shares[:C] > 0, totals[:, None] - rest, -np.inf)
        shares = np.exp(ratio)
        slope = -choice.gradient.sum(axis=1)
        hessian: Floats = (shares * (weight * (choice.hessian[:, g, g] - slope))) @ shares.T
        hessian[np.diag_indices(C)] += shares @ (weight * slope)
        mixed = np.zeros((len(rest), C))
        mixed[stage, tie.members] = weight[:, None] * choice.hessian[:, :g, g]
        cross = shares @ mixed
        hessian += cross + cross.T
        own = weight[:, None, None] * choice.hessian[:, :g, :g]
        np.add.at(hessian, (tie.members[:, :, None], tie.members[:, None, :]), own)
        return hessian


def _add_up(rows: Floats) -> None:
    """Turn rows into their running sums, in place.

    The loop adds whole rows, which is faster than ``np.cumsum`` along this axis.
    """
    for above, row in pairwise(rows):
        np.add(row, above, out=row)


def _carry_down(rows: Floats, shrink: Floats) -> None:
    """Add to every row, in place, the row above times ``shrink``, from the first row down."""
    for p in range(1, len(rows)):
        rows[p] += rows[p - 1] * shrink[p - 1]


def _difference(a: Floats, b: Floats) -> Floats:
    """Return a - b of logarithms, and -inf where both are -inf."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(a), -np.inf, a - b)


# ---- Rankings in parts


class PartsLikelihood:
    """The same as `Likelihood` for rankings in parts: each value is one pass over all parts."""

    def __init__(self, rankings: RankingParts, class_of: NDArray[np.intp]) -> None:
        self._rankings, self._class_of = rankings, class_of
        self.counts: NDArray[np.int64] = np.bincount(class_of)
        self.n_classes = len(self.counts)
        self.wins = self._add_up(_wins_of_part)
        self._last: tuple[Floats, tuple[float, Floats]] | None = None

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood, and the expected number of times each class is chosen."""
        # A fit ends with the log-worths that it has tried last.
        if self._last is None or not np.array_equal(self._last[0], theta):
            self._last = theta.copy(), self._add_up(_value_of_part, theta)
        return self._last[1]

    def information(self, theta: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        return self._add_up(_information_of_part, theta)

    def _add_up(self, function: Callable[..., T], *arguments: Any) -> T:
        return reduce_parts(self._rankings, function, self._class_of, *arguments)


def _wins_of_part(part: Rankings, class_of: NDArray[np.intp]) -> Floats:
    return Likelihood(part, class_of).wins


def _value_of_part(
    part: Rankings, class_of: NDArray[np.intp], theta: Floats
) -> tuple[float, Floats]:
    return Likelihood(part, class_of).value_and_expected(theta)


def _information_of_part(part: Rankings, class_of: NDArray[np.intp], theta: Floats) -> Floats:
    return Likelihood(part, class_of).information(theta)


def build_likelihood(
    rankings: AnyRankings, class_of: NDArray[np.intp] | None = None
) -> Likelihood | PartsLikelihood:
    """Return the likelihood of rankings, in parts or not."""
    if isinstance(rankings, Rankings):
        return Likelihood(rankings, class_of)
    every = np.arange(rankings.n_items) if class_of is None else class_of
    return PartsLikelihood(cast("RankingParts", keep_counted(rankings)), every)

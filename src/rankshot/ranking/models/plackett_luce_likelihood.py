"""The Plackett-Luce log-likelihood of rankings, and its derivatives in the log-worths.

`Likelihood` adds up the log-probabilities of rankings for the solvers; `PartsLikelihood` does so
for rankings in parts, of which each worker holds one at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.entries import Entries, row_starts
from rankshot.ranking.models.plackett_luce_blocks import Block
from rankshot.ranking.models.plackett_luce_curvature import Curvature, sum_curvature
from rankshot.ranking.models.plackett_luce_stages import split_by_width
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


class Likelihood:
    """The log-likelihood of weighted rankings, as the solvers need it.

    The derivative in the log-worth of item i is ``wins[i] - expected[i]``: how often it was
    chosen, minus how often the model expects it to be. All sums are running sums along the
    rankings, so the cost of one evaluation is proportional to the number of classes that they list.

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
            Block(rankings[rows], self.counts, complete)
            for rows, complete in split_by_width(rankings.n_listed, self.n_classes, CACHED_CELLS)
        ]
        self.wins: Floats = np.sum([b.single_wins + b.tied_wins for b in self._blocks], axis=0)

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood, and the expected number of times each class is chosen."""
        theta = theta - theta.max()
        value, expected = 0.0, np.zeros(self.n_classes)
        for block in self._split(theta):
            part, chosen = block.value_and_expected(theta)
            value += part
            expected += chosen
        return value, expected

    def curvature(self, theta: Floats) -> Curvature:
        """Return minus the second derivatives, as a matrix that need not be dense."""
        theta = theta - theta.max()
        return sum_curvature(self._split(theta), self.counts, theta)

    def information(self, theta: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        return self.curvature(theta).toarray()

    def _split(self, theta: Floats) -> list[Block]:
        return [part for block in self._blocks for part in block.split(theta)]


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
        return self.curvature(theta).toarray()

    def curvature(self, theta: Floats) -> Curvature:
        """Return minus the second derivatives, as a matrix that need not be dense."""
        return self._add_up(_curvature_of_part, theta)

    def _add_up(self, function: Callable[..., T], *arguments: Any) -> T:
        return reduce_parts(self._rankings, function, self._class_of, *arguments)


def _wins_of_part(part: Rankings, class_of: NDArray[np.intp]) -> Floats:
    return Likelihood(part, class_of).wins


def _value_of_part(
    part: Rankings, class_of: NDArray[np.intp], theta: Floats
) -> tuple[float, Floats]:
    return Likelihood(part, class_of).value_and_expected(theta)


def _curvature_of_part(part: Rankings, class_of: NDArray[np.intp], theta: Floats) -> Curvature:
    return Likelihood(part, class_of).curvature(theta)


def build_likelihood(
    rankings: AnyRankings, class_of: NDArray[np.intp] | None = None
) -> Likelihood | PartsLikelihood:
    """Return the likelihood of rankings, in parts or not."""
    if isinstance(rankings, Rankings):
        return Likelihood(rankings, class_of)
    every = np.arange(rankings.n_items) if class_of is None else class_of
    return PartsLikelihood(cast("RankingParts", keep_counted(rankings)), every)

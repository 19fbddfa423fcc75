"""The Plackett-Luce log-likelihood of rankings, and its derivatives in the log-worths.

`Likelihood` adds up the log-probabilities of rankings for the solver; `PartsLikelihood` does so
for rankings in parts, of which each worker holds one at a time.

A common factor of all worths has no effect, so the rows of the matrix of second derivatives add
up to zero, and its entries off the diagonal tell all of it. Entry (a, b) is B_ab = Σ p_a p_b over
the choices from which both remain, with the worths v and the total S at each choice:

    B_ab = v_a v_b Σ 1/S² .

Let r be the running sum of 1/S² along a ranking. In a subset ranking, two listed classes share the
r of the earlier one. In a top-K ranking, the classes that are not listed share the whole sum R with
each other, and r with a listed one. So with E = ΣR over all rankings, and d_a = Σ(R - r_a) over
those that list a,

    B_ab = v_a v_b (E - d_a - d_b + Σ (R - r of the later one)),

where the last sum is over the rankings that list both: a sparse matrix, if rankings are short.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from rankshot.core.arrays import BLOCK_CELLS
from rankshot.core.newton import Point
from rankshot.ranking.entries import Entries, row_starts
from rankshot.ranking.models.plackett_luce_stages import Block, TiedStages, add_up, split_by_width
from rankshot.ranking.models.tie_integral import TiedClasses
from rankshot.ranking.parts import AnyRankings, RankingParts, keep_counted, keep_counted_part
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
SMALL = 256
"""Matrices of up to this many classes are dense."""
FIT_CELLS = 1 << 15
"""Blocks of this size (256 kB) stay in the cache, and allocating them costs no page faults."""
KEPT_ENTRIES = 1 << 21
"""For so many listed items, sums of worths are kept: 50 MB."""
WIDEST_RANGE = 300.0
"""Log-worths of a fit differ by no more: the square of a worth must not be 0."""
SPARSE_PART = 4
"""Larger ones are sparse if rankings list less than one in this many pairs of classes."""


@dataclass(frozen=True)
class Curvature:
    """Minus the second derivatives of a log-likelihood at some log-worths.

    Off the diagonal the matrix is minus B = E v vᵀ + v yᵀ + y vᵀ + P; its rows add up to zero.

    Attributes
    ----------
    worths : ndarray of shape (C,)
        v, by class.
    everywhere : float
        E.
    left_out : ndarray of shape (C,)
        y.
    pairs : ndarray or sparse array of shape (C, C)
        P.
    """

    worths: Floats
    everywhere: float
    left_out: Floats
    pairs: Floats | csr_array

    def __add__(self, other: Curvature) -> Curvature:
        """Return the curvature of both log-likelihoods, at the same log-worths."""
        return Curvature(
            self.worths,
            self.everywhere + other.everywhere,
            self.left_out + other.left_out,
            self.pairs + other.pairs,
        )

    def toarray(self) -> Floats:
        """Return the matrix."""
        pairs = self.pairs if isinstance(self.pairs, np.ndarray) else self.pairs.toarray()
        crossed = np.outer(self.worths, self._beside)
        both = pairs + crossed + crossed.T
        np.fill_diagonal(both, 0.0)
        return np.asarray(np.diag(both.sum(axis=1)) - both)

    def diagonal(self) -> Floats:
        """Return the diagonal of the matrix."""
        own = self.pairs.diagonal() + 2 * self.worths * self._beside
        return np.asarray(self._row_sums - own)

    def __matmul__(self, vector: Floats) -> Floats:
        """Return the product of the matrix and a vector."""
        return np.asarray(self._row_sums * vector - self._multiply(vector))

    @cached_property
    def _beside(self) -> Floats:
        """The u in B = P + v uᵀ + u vᵀ."""
        return self.left_out + self.everywhere / 2 * self.worths

    @cached_property
    def _row_sums(self) -> Floats:
        return self._multiply(np.ones_like(self.worths))

    def _multiply(self, vector: Floats) -> Floats:
        """Return B times a vector."""
        product = self.pairs @ vector
        product += self.worths * (self._beside @ vector)
        product += self._beside * (self.worths @ vector)
        return np.asarray(product)


def sum_curvature(blocks: list[Block], counts: NDArray[np.int64], theta: Floats) -> Curvature:
    """Return the curvature of the log-likelihood of some blocks."""
    C = len(theta)
    everywhere, left_out, table = 0.0, np.zeros(C), _PairTable(C)
    dense = None
    for block in blocks:
        if block.complete:
            both = _sum_complete(block, theta)
            dense = both if dense is None else dense + both
        else:
            shared, apart = _sum_listed(block, theta, table)
            everywhere += shared
            left_out += apart
    pairs = table.total() if dense is None else dense + table.total()
    worths: Floats = np.asarray(counts * np.exp(theta), np.float64)
    return Curvature(worths, everywhere, left_out, pairs)


class _PairTable:
    """Sums of numbers of pairs of classes: a sparse matrix while it is large and sparse.

    Numbers are collected, and added up whenever there are many, so that they fill no memory.
    """

    def __init__(self, n_classes: int) -> None:
        # C, which is not a class, is left out in the end.
        self._shape = n_classes + 1, n_classes + 1
        small = n_classes <= SMALL
        self._half: Floats | csr_array = np.zeros(self._shape) if small else csr_array(self._shape)
        self._waiting: list[tuple[NDArray[np.intp], NDArray[np.intp], Floats]] = []
        self._n_waiting = 0

    def add(self, first: NDArray[np.intp], second: NDArray[np.intp], values: Floats) -> None:
        """Add to the numbers of some pairs, in either order, as many as there are values."""
        first, second = (np.broadcast_to(x, values.shape).ravel() for x in (first, second))
        self._waiting.append((first, second, values.ravel()))
        self._n_waiting += values.size
        if self._n_waiting > BLOCK_CELLS // 4:
            self._add_up()

    def total(self) -> Floats | csr_array:
        """Return the sums."""
        if self._waiting:
            self._add_up()
        half = self._half[:-1, :-1]
        return half + half.T

    def _add_up(self) -> None:
        first, second, values = (np.concatenate(x) for x in zip(*self._waiting, strict=True))
        self._waiting, self._n_waiting = [], 0
        n = self._shape[0]
        if isinstance(self._half, np.ndarray):
            self._half += np.bincount(first * n + second, values, n * n).reshape(n, n)
            return
        self._half = self._half + coo_array((values, (first, second)), self._shape).tocsr()
        # Each pair is there once, and twice in the sum.
        if 2 * self._half.nnz > n * n // SPARSE_PART:
            self._half = self._half.toarray()


# ---- Rankings of which only the listed classes are laid out


def _sum_listed(block: Block, theta: Floats, table: _PairTable) -> tuple[float, Floats]:
    """Return E and y; add the numbers of the pairs that a ranking lists to the table of P."""
    C, order, has_rest = block.n_classes, block.order, block.stages.has_rest
    worths, remaining, totals, choices, _ = block.sum_up(theta)
    rate = np.zeros(order.shape)
    rate[: block.depth] = block.choices / totals**2
    left_out = np.zeros(C + 1)
    for tie, choice in zip(block.stages.ties, choices, strict=True):
        weight, rest = block.weights[tie.column], remaining[tie.end, tie.column]
        g = tie.members.shape[1]
        # Two later classes, two tied ones (each pair is met twice), and one of each.
        by_rest = choice.hessian[:, g, g] + choice.gradient.sum(axis=1)
        np.add.at(rate, (tie.end, tie.column), weight * by_rest / rest**2)
        tied, other = tie.members[:, :, None], tie.members[:, None]
        table.add(tied, other, weight[:, None, None] / 2 * choice.hessian[:, :g, :g])
        mixed = (weight / rest)[:, None] * choice.hessian[:, :g, g]
        top = has_rest[tie.column]
        np.add.at(left_out, tie.members, mixed * top[:, None])
        later = np.arange(len(order)) >= tie.end[:, None]
        # y gives a share to all classes; it is taken back from those that are not later.
        shares = worths[:, tie.column].T * (later - 1.0 * top[:, None])
        table.add(tied, order[:, tie.column].T[:, None], mixed[:, :, None] * shares[:, None])
    add_up(rate)
    whole = rate[-1] * has_rest
    for i in range(len(order) - 1):
        shared = np.where(has_rest, whole - rate[i + 1 :], rate[i])
        shared *= worths[i]
        shared *= worths[i + 1 :]
        table.add(order[i], order[i + 1 :], shared)
    missed = worths * (whole - rate) * has_rest
    left_out -= np.bincount(order.ravel(), missed.ravel(), minlength=C + 1)
    return float(whole.sum()), left_out[:C]


# ---- Rankings of which all classes are laid out


def _sum_complete(block: Block, theta: Floats) -> Floats:
    """Return B of a block."""
    C = block.n_classes
    _, remaining, totals, choices, _ = block.sum_up(theta)
    rate = block.choices / totals**2
    add_up(rate)
    running = np.zeros((C + 1, len(block.weights)))
    column = np.arange(len(block.weights))
    running[block.order[: block.depth], column] = rate
    running[block.order[block.depth :], column] = rate[-1]
    both = np.empty((C, C))
    v = block.stages.counts * np.exp(theta)
    for a in range(C):
        both[a, a:] = np.minimum(running[a], running[a:C]).sum(axis=1)
        both[a:, a] = both[a, a:]
    both *= v[:, None] * v
    for tie, choice in zip(block.stages.ties, choices, strict=True):
        rest = np.log(remaining[tie.end, tie.column])
        both += _tie_hessian(block, theta, rest, tie, choice)
    return both


def _tie_hessian(
    block: Block,
    theta: Floats,
    rest: Floats,
    tie: TiedStages,
    choice: TiedClasses,
) -> Floats:
    """Return the second derivatives of a tie in all log-worths."""
    C, g = block.n_classes, tie.members.shape[1]
    weight = block.weights[tie.column]
    stage = np.arange(len(rest))[:, None]
    later = np.arange(C)[:, None] >= tie.end
    shares = np.zeros((C + 1, len(rest)))
    shares[block.order[:, tie.column], stage.T] = later
    # Only later items have a share; the ratio of the others may overflow.
    totals = theta + np.log(block.stages.counts)
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


# ---- The log-likelihood


class BaseLikelihood(ABC):
    """What the solver needs of a log-likelihood of classes of items.

    The derivative in the log-worth of class c is ``wins[c] - expected[c]``: how often it was
    chosen, minus how often the model expects it to be. A class has ``counts[c]`` items.
    """

    counts: NDArray[np.int64]
    wins: Floats

    @abstractmethod
    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood, and the expected number of times each class is chosen."""

    @abstractmethod
    def curvature(self, theta: Floats) -> Curvature:
        """Return minus the second derivatives, as a matrix that need not be dense."""

    def information(self, theta: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        return self.curvature(theta).toarray()

    def evaluate(self, theta: Floats) -> Point:
        """Return the log-likelihood and its gradient."""
        span = float(theta.max() - theta.min())
        if span > WIDEST_RANGE:
            return Point(-np.inf, np.zeros_like(theta))
        value, expected = self.value_and_expected(theta)
        size = abs(value) + float(self.wins.sum()) * (1 + span)
        return Point(value, self.wins - expected, size, self.wins + expected)


class Likelihood(BaseLikelihood):
    """The log-likelihood of weighted rankings, as the solvers need it.

    All sums are running sums along the rankings, so the cost of one evaluation is proportional to
    the number of classes that they list.
    """

    def __init__(
        self, rankings: Rankings, class_of: NDArray[np.intp] | None = None, n_kept: int = 1
    ) -> None:
        rankings = keep_counted_part(rankings)
        # Sums at log-worths that are used again, as far as they take little memory.
        n_kept = min(n_kept, KEPT_ENTRIES // max(rankings.codes.size, 1))
        self.counts: NDArray[np.int64] = np.ones(rankings.n_items, np.int64)
        if class_of is not None and class_of.max() + 1 < rankings.n_items:
            self.counts = np.bincount(class_of)
            rankings = _list_classes(rankings, class_of)
        self.n_classes = len(self.counts)
        self._blocks = [
            Block(rankings[rows], self.counts, complete, n_kept)
            for rows, complete in split_by_width(rankings.n_listed, self.n_classes, FIT_CELLS)
        ]
        self.wins: Floats = np.sum([block.wins for block in self._blocks], axis=0)

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Add up those of the blocks."""
        theta = theta - theta.max()
        value, expected = 0.0, np.zeros(self.n_classes)
        for block in self._split(theta):
            part, chosen = block.value_and_expected(theta)
            value += part
            expected += chosen
        return value, expected

    def curvature(self, theta: Floats) -> Curvature:
        """Add up those of the blocks."""
        theta = theta - theta.max()
        return sum_curvature(self._split(theta), self.counts, theta)

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


class PartsLikelihood(BaseLikelihood):
    """The same as `Likelihood` for rankings in parts: each value is one pass over all parts."""

    def __init__(self, rankings: RankingParts, class_of: NDArray[np.intp]) -> None:
        self.counts: NDArray[np.int64] = np.bincount(class_of)
        self.n_classes = len(self.counts)
        self._add_up = rankings.prepare(Likelihood, class_of, 0)
        self.wins = self._add_up(attrgetter("wins"))

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Add up those of the parts."""
        found: tuple[float, Floats] = self._add_up(Likelihood.value_and_expected, theta)
        return found

    def curvature(self, theta: Floats) -> Curvature:
        """Add up those of the parts."""
        found: Curvature = self._add_up(Likelihood.curvature, theta)
        return found


def build_likelihood(
    rankings: AnyRankings, class_of: NDArray[np.intp] | None = None
) -> BaseLikelihood:
    """Return the likelihood of rankings, in parts or not."""
    if isinstance(rankings, Rankings):
        return Likelihood(rankings, class_of)
    every = np.arange(rankings.n_items) if class_of is None else class_of
    return PartsLikelihood(cast("RankingParts", keep_counted(rankings)), every)

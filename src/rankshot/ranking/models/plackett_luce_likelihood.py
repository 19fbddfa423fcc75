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

from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from rankshot.core.arrays import BLOCK_CELLS
from rankshot.core.newton import Point
from rankshot.ranking.entries import Entries, row_starts
from rankshot.ranking.models.plackett_luce_stages import Block, BlockSums, add_up, split_by_width
from rankshot.ranking.parts import AnyRankings, RankingParts, keep_counted, keep_counted_part
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
SMALL = 256
"""Matrices of up to this many classes are dense."""
FIT_CELLS = 1 << 15
"""Blocks of this size (256 kB) stay in the cache, and allocating them costs no page faults."""
KEPT_ENTRIES = 1 << 21
"""Sums of worths are kept for at most this many listed items (50 MB)."""
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
    worths: Floats = np.asarray(counts * np.exp(theta), np.float64)
    everywhere, left_out = 0.0, np.zeros(C + 1)
    table = _PairTable(C, is_dense=C <= SMALL or any(block.complete for block in blocks))
    for block in blocks:
        sums = block.sum_up(theta)
        rate = _sum_choices(block, sums, table, left_out)
        if block.complete:
            table.half[:-1, :-1] += _sum_complete(block, rate) * worths[:, None] * worths
        else:
            everywhere += _sum_listed(block, sums.worths, rate, table, left_out)
    return Curvature(worths, everywhere, left_out[:C], table.total())


class _PairTable:
    """Sums of numbers of pairs of classes: a sparse matrix while it is large and sparse.

    Numbers are collected, and added up whenever there are many, so that they fill no memory.
    """

    def __init__(self, n_classes: int, *, is_dense: bool) -> None:
        # C, which is not a class, is left out in the end.
        self._shape = n_classes + 1, n_classes + 1
        self.half: Any = np.zeros(self._shape) if is_dense else csr_array(self._shape)
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
        half = self.half[:-1, :-1]
        return half + half.T

    def _add_up(self) -> None:
        first, second, values = (np.concatenate(x) for x in zip(*self._waiting, strict=True))
        self._waiting, self._n_waiting = [], 0
        n = self._shape[0]
        if isinstance(self.half, np.ndarray):
            self.half += np.bincount(first * n + second, values, n * n).reshape(n, n)
            return
        self.half = self.half + coo_array((values, (first, second)), self._shape).tocsr()
        # Each pair is there once, and twice in the sum.
        if 2 * self.half.nnz > n * n // SPARSE_PART:
            self.half = self.half.toarray()


def _sum_choices(block: Block, sums: BlockSums, table: _PairTable, left_out: Floats) -> Floats:
    """Return r of each cell; add the tied pairs to the table of P, and what ties add to y."""
    order = block.order
    rate = np.zeros(order.shape)
    rate[: block.depth] = block.choices / sums.totals**2
    for tie, choice in zip(block.stages.ties, sums.choices, strict=True):
        weight, rest = block.weights[tie.column], sums.remaining[tie.end, tie.column]
        g = tie.members.shape[1]
        # Two later classes, two tied ones (each pair is met twice), and one of each.
        by_rest = choice.hessian[:, g, g] + choice.gradient.sum(axis=1)
        np.add.at(rate, (tie.end, tie.column), weight * by_rest / rest**2)
        tied, other = tie.members[:, :, None], tie.members[:, None]
        table.add(tied, other, weight[:, None, None] / 2 * choice.hessian[:, :g, :g])
        mixed = (weight / rest)[:, None] * choice.hessian[:, :g, g]
        top = block.stages.has_rest[tie.column]
        np.add.at(left_out, tie.members, mixed * top[:, None])
        later = np.arange(len(order)) >= tie.end[:, None]
        # y gives a share to all classes; it is taken back from those that are not later.
        shares = sums.worths[:, tie.column].T * (later - 1.0 * top[:, None])
        table.add(tied, order[:, tie.column].T[:, None], mixed[:, :, None] * shares[:, None])
    add_up(rate)
    return rate


def _sum_listed(
    block: Block, worths: Floats, rate: Floats, table: _PairTable, left_out: Floats
) -> float:
    """Return E; add the pairs that a ranking lists to the table of P, and the rest to y."""
    order, has_rest = block.order, block.stages.has_rest
    whole = rate[-1] * has_rest
    for i in range(len(order) - 1):
        shared = np.where(has_rest, whole - rate[i + 1 :], rate[i])
        shared *= worths[i]
        shared *= worths[i + 1 :]
        table.add(order[i], order[i + 1 :], shared)
    missed = worths * (whole - rate) * has_rest
    left_out -= np.bincount(order.ravel(), missed.ravel(), minlength=left_out.size)
    return float(whole.sum())


def _sum_complete(block: Block, rate: Floats) -> Floats:
    """Return Σ r of the earlier one of two classes, where all of them are laid out."""
    C = block.n_classes
    running = np.zeros((C + 1, len(block.weights)))
    running[block.order, np.arange(len(block.weights))] = rate
    half = np.zeros((C, C))
    for a in range(C):
        half[a, a:] = np.minimum(running[a], running[a:C]).sum(axis=1)
    return half


# ---- The log-likelihood


class Likelihood:
    """The log-likelihood of weighted rankings, as the solvers need it.

    The derivative in the log-worth of class c is ``wins[c] - expected[c]``: how often it was
    chosen, minus how often the model expects it to be. A class has ``counts[c]`` items.

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

    def evaluate(self, theta: Floats) -> Point:
        """Return the log-likelihood and its gradient."""
        span = float(theta.max() - theta.min())
        if span > WIDEST_RANGE:
            return Point(-np.inf, np.zeros_like(theta))
        value, expected = self.value_and_expected(theta)
        size = abs(value) + float(self.wins.sum()) * (1 + span)
        return Point(value, self.wins - expected, size, self.wins + expected)

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
    return replace(rankings, items=names, **lists._asdict())


# ---- Rankings in parts


class PartsLikelihood(Likelihood):
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


def build_likelihood(rankings: AnyRankings, class_of: NDArray[np.intp] | None = None) -> Likelihood:
    """Return the likelihood of rankings, in parts or not."""
    if isinstance(rankings, Rankings):
        return Likelihood(rankings, class_of)
    every = np.arange(rankings.n_items) if class_of is None else class_of
    return PartsLikelihood(cast("RankingParts", keep_counted(rankings)), every)

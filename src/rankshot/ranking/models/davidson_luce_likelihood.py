r"""The Davidson-Luce log-likelihood of rankings, and its derivatives.

A ranking is a sequence of choices of sets. A set S of k items is chosen from the remaining items A
with a probability proportional to f(S) = δ_k (Π α_i)^(1/k). The sum of f over all sets of k items
is δ_k times an elementary symmetric polynomial of the numbers α_i^(1/k). One more item gives

.. math:: e_j(A \cup \{i\}) = e_j(A) + \alpha_i^{1/k} e_{j-1}(A).

The remaining items of a ranking's stages are nested. So one pass from its last item to its first
gives the sums of all its stages, one pass back gives the derivatives, and no set is enumerated.
Where worths differ by very large factors, all sums are sums of logarithms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError
from rankshot.ranking.matrices import completed_orders, group_by_place
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
BLOCK_CELLS = 1 << 18
SAFE_RANGE = 600.0
"""Sums whose logarithms can differ by more are summed as logarithms."""


# ---- Polynomials


class Sums(NamedTuple):
    """Polynomials of items p, p + 1, …, in row p, as `Polynomials.add_items` computes them.

    Attributes
    ----------
    log_whole : ndarray of shape (m, sizes, n)
        The logarithm of e_k for each size k.
    without, with_item : ndarrays of shape (m, rows, n)
        Which share of each polynomial is due to sets without item p, and with it.
    """

    log_whole: Floats
    without: Floats
    with_item: Floats


class Polynomials:
    """The elementary symmetric polynomials e_1, …, e_k of the numbers α^(1/k), for some sizes k.

    An array of their logarithms has a first row for e_0 = 1, and then the rows of all sizes.

    Attributes
    ----------
    sizes : ndarray
        The sizes k that a chosen set can have, ascending.
    scale : ndarray
        1/k for each row but the first.
    previous : ndarray
        The row of the polynomial of one degree less, for each row but the first.
    whole : ndarray
        For each size k, the row of e_k.
    """

    def __init__(self, sizes: Ints) -> None:
        self.sizes = sizes
        self.n_rows = 1 + int(sizes.sum())
        self.scale = np.repeat(1 / sizes, sizes)[:, None]
        self.whole = np.cumsum(sizes)
        self.previous = np.arange(self.n_rows - 1)
        self.previous[self.whole - sizes] = 0
        self._lower = self.previous[self.previous > 0] - 1

    def add_items(self, theta: Floats) -> Sums:
        """Return the polynomials of items p, p + 1, …, in row p; each column is a list of items.

        Plain sums are several times faster than logarithms; they are used as long as none of
        them can underflow or overflow.
        """
        m, n = theta.shape
        finite = theta[np.isfinite(theta)]
        largest, smallest = finite.max(initial=-np.inf), finite.min(initial=np.inf)
        if largest - smallest + self.sizes.max() * np.log(max(m, 1)) > SAFE_RANGE:
            return self._add_logs(theta)
        worths = np.exp(theta - largest)
        roots = np.repeat([worths ** (1 / size) for size in self.sizes], self.sizes, axis=0)
        sums = np.zeros((m + 1, self.n_rows, n))
        sums[:, 0] = 1.0
        added = np.empty((m, self.n_rows - 1, n))
        for p in reversed(range(m)):
            np.multiply(roots[:, p], sums[p + 1, self.previous], out=added[p])
            np.add(sums[p + 1, 1:], added[p], out=sums[p, 1:])
        total = np.where(sums[:-1, 1:] > 0, sums[:-1, 1:], 1.0)
        with np.errstate(divide="ignore"):
            return Sums(
                np.log(sums[:-1, self.whole]) + largest, sums[1:, 1:] / total, added / total
            )

    def _add_logs(self, theta: Floats) -> Sums:
        m, n = theta.shape
        logs = np.full((m + 1, self.n_rows, n), -np.inf)
        logs[:, 0] = 0.0
        for p in reversed(range(m)):
            after = logs[p + 1]
            np.logaddexp(after[1:], self.scale * theta[p] + after[self.previous], out=logs[p, 1:])
        total = np.where(np.isneginf(logs[:-1, 1:]), 0.0, logs[:-1, 1:])
        with_item = np.exp(self.scale * theta[:, None] + logs[1:, self.previous] - total)
        return Sums(logs[:-1, self.whole], np.exp(logs[1:, 1:] - total), with_item)

    def pass_down(self, rows: Floats, moved: Floats) -> None:
        """Add what moves from each polynomial to that of one degree less."""
        rows[self._lower] += moved[self._lower + 1]


# ---- Rankings as sequences of choices


class Block(NamedTuple):
    """Rankings with the same number of alternatives m, one per column.

    Attributes
    ----------
    codes : ndarray of shape (m, n)
        The alternatives in order; those that are not placed come last.
    chosen : ndarray of shape (m, n)
        1/k for an item that is chosen in a set of k, and 0 for one that is not placed.
    place, column, size : ndarrays with one entry per choice
        How many items of its ranking come before the choice, the ranking, and how many are chosen.
    rows : ndarray of shape (n,)
        The numbers of the rankings.
    """

    codes: Ints
    chosen: Floats
    place: Ints
    column: Ints
    size: Ints
    rows: Ints


def iterate_blocks(rankings: Rankings, n_rows: int) -> Iterator[Block]:
    """Yield rankings as sequences of choices, for arrays of ``n_rows`` numbers per item."""
    width = _count_alternatives(rankings)
    for m in np.unique(width):
        of_width = np.flatnonzero(width == m)
        for some in row_blocks(of_width.size, int(m) * n_rows, BLOCK_CELLS):
            yield _build_block(rankings[of_width[some]], int(m), of_width[some])


def _build_block(part: Rankings, m: int, rows: Ints) -> Block:
    n = len(part)
    codes = part.codes.reshape(n, m) if m < part.n_items else completed_orders(part)
    begin, size, column = group_by_place(part)
    kept = _is_choice(part, begin, column)
    nth = np.arange(part.codes.size) - part.starts[part.entry_rows]
    chosen = np.zeros((m, n))
    chosen[nth, part.entry_rows] = np.repeat(np.where(kept, 1 / size, 0.0), size)
    return Block(codes.T.astype(np.intp), chosen, begin[kept], column[kept], size[kept], rows)


def _count_alternatives(rankings: Rankings) -> Ints:
    return np.where(rankings.is_subset, rankings.n_listed, rankings.n_items)


def _is_choice(rankings: Rankings, begin: Ints, row: Ints) -> NDArray[np.bool_]:
    """Whether groups of tied items are choices: not those after the first K, nor a last item."""
    within = begin < rankings.lengths[row]
    return np.asarray(within & (begin + 1 < _count_alternatives(rankings)[row]))


def count_choices(rankings: Rankings) -> tuple[Ints, Ints]:
    """Return the size of each chosen set, and the number of items that it was chosen from."""
    begin, size, row = group_by_place(rankings)
    kept = _is_choice(rankings, begin, row)
    return size[kept], (_count_alternatives(rankings)[row] - begin)[kept]


def refuse_cut_ties(rankings: Rankings) -> None:
    """Raise for the first ranking with a tie that K cuts."""
    begin, size, row = group_by_place(rankings)
    K = rankings.lengths[row]
    cut = (begin < K) & (begin + size > K)
    if cut.any():
        first = int(np.argmax(cut))
        raise RankshotError(
            f"ranking {row[first]}: K = {K[first]} cuts a tie of {size[first]} items. Where a tie "
            "is an outcome, its items are chosen together: rank to the end of the tie, or use "
            "PlackettLuce, where a tie means that the order is unknown"
        )


# ---- The log-likelihood


@dataclass
class Parameters:
    """Log-worths, and the logarithms of the tie parameters of each size (0 for size 1)."""

    theta: Floats
    gamma: Floats

    @classmethod
    def unpack(cls, values: Floats, n_items: int) -> Parameters:
        """Split one array of log-worths and log tie parameters."""
        return cls(values[:n_items], np.append(0.0, values[n_items:]))


def log_prob(rankings: Rankings, sizes: Ints, parameters: Parameters) -> Floats:
    """Return the log-probability of each ranking; sets of other sizes are never chosen."""
    polynomials = Polynomials(sizes)
    result = np.zeros(len(rankings))
    for block in iterate_blocks(rankings, polynomials.n_rows):
        theta = parameters.theta[block.codes]
        log_sums = polynomials.add_items(theta).log_whole[block.place, :, block.column]
        total = logsumexp(log_sums + parameters.gamma, axis=1)
        log_delta = np.where(block.size[:, None] == sizes, parameters.gamma, -np.inf).max(axis=1)
        result[block.rows] = (block.chosen * theta).sum(axis=0)
        np.add.at(result, block.rows[block.column], log_delta - total)
    return result


class Likelihood:
    """The log-likelihood of weighted rankings, in log-worths and log tie parameters.

    The model is a log-linear one: a derivative is ``observed - expected``, where ``observed``
    holds Σ 1/k over the chosen sets of k items that an item is in, and how often each size was
    chosen.

    Parameters
    ----------
    rankings : Rankings
    sizes : ndarray
        The sizes that a chosen set can have, 1 first.

    Attributes
    ----------
    widest : int
        The largest number of alternatives of a ranking.
    """

    def __init__(self, rankings: Rankings, sizes: Ints) -> None:
        self.n_items = rankings.n_items
        self._polynomials = Polynomials(sizes)
        self._blocks = [
            (block, rankings.weights[block.rows])
            for block in iterate_blocks(rankings, self._polynomials.n_rows)
        ]
        self.widest = max((len(block.codes) for block, _ in self._blocks), default=0)
        self.observed = np.zeros(self.n_items + sizes.size - 1)
        for block, weights in self._blocks:
            np.add.at(self.observed[: self.n_items], block.codes, block.chosen * weights)
            of_size = block.size[:, None] == sizes[1:]
            self.observed[self.n_items :] += weights[block.column] @ of_size

    def value_and_expected(self, values: Floats) -> tuple[float, Floats]:
        """Return the log-likelihood, and what the model expects in place of ``observed``."""
        parameters = Parameters.unpack(values, self.n_items)
        value, expected = float(self.observed @ values), np.zeros_like(values)
        for block, weights in self._blocks:
            passes = _Passes(self._polynomials, block, weights, parameters)
            value -= float(weights[block.column] @ passes.log_totals)
            np.add.at(expected, block.codes, passes.expected)
            expected[self.n_items :] += passes.by_size[:, 1:].sum(axis=0)
        return value, expected

    def information(self, values: Floats) -> Floats:
        """Return minus the matrix of second derivatives."""
        C, parameters = self.n_items, Parameters.unpack(values, self.n_items)
        information = np.zeros((values.size, values.size))
        for block, weights in self._blocks:
            passes = _Passes(self._polynomials, block, weights, parameters)
            # The matrix is symmetric: the passes of item p can end there.
            for p, codes in enumerate(block.codes):
                slope = np.zeros((p + 1, 1))
                slope[p] = 1.0
                change, _ = passes.differentiate(slope, np.zeros_like(parameters.gamma))
                change[p] /= 2
                np.add.at(information, (block.codes[: p + 1], codes), change)
            slope = np.zeros((len(block.codes), 1))
            for k, direction in enumerate(np.eye(parameters.gamma.size)[1:], C):
                change, by_size = passes.differentiate(slope, direction)
                np.add.at(information[:, k], block.codes, change)
                information[C:, k] += by_size[:, 1:].sum(axis=0) / 2
        return information + information.T


class _Passes:
    """The pass from the last items of rankings to the first, and back, of one block.

    Attributes
    ----------
    log_totals : ndarray
        The logarithm of the sum that each choice is divided by.
    by_size : ndarray of shape (choices, sizes)
        The weight of each choice, times the probability of each size.
    expected : ndarray of shape (m, n)
        What the model expects of ``Block.chosen``, times the weights.
    """

    def __init__(
        self, polynomials: Polynomials, block: Block, weights: Floats, parameters: Parameters
    ) -> None:
        self._polynomials, self._block = polynomials, block
        theta = parameters.theta[block.codes]
        log_whole, self._without, self._with = polynomials.add_items(theta)
        self._at = block.place[:, None], polynomials.whole - 1, block.column[:, None]
        log_sums = log_whole[block.place, :, block.column] + parameters.gamma
        self.log_totals = logsumexp(log_sums, axis=1)
        self._probability = np.exp(log_sums - self.log_totals[:, None])
        self._weights = weights[block.column][:, None]
        self.by_size = self._weights * self._probability
        self._rates = np.zeros_like(self._without)
        self._rates[self._at] = self.by_size
        self.expected = np.empty_like(theta)
        for p, rates in enumerate(self._rates):
            moved = rates * self._with[p]
            self.expected[p] = (polynomials.scale * moved).sum(axis=0)
            if p + 1 < len(theta):
                self._rates[p + 1] += rates * self._without[p]
                polynomials.pass_down(self._rates[p + 1], moved)

    def differentiate(self, theta: Floats, gamma: Floats) -> tuple[Floats, Floats]:
        """Return the derivatives of ``expected`` and ``by_size`` in a direction.

        It is zero in later items than those of ``theta``, and only these are returned.
        """
        polynomials, m = self._polynomials, len(theta)
        logs = np.zeros((len(self._rates) + 1, polynomials.n_rows, self._rates.shape[2]))
        for p in reversed(range(m)):
            step = polynomials.scale * theta[p] + logs[p + 1, polynomials.previous]
            logs[p, 1:] = self._without[p] * logs[p + 1, 1:] + self._with[p] * step
        slope = logs[:, 1:][self._at] + gamma
        mean = (self._probability * slope).sum(axis=1, keepdims=True)
        by_size = self.by_size * (slope - mean)
        rates = np.zeros_like(self._rates)
        rates[self._at] = by_size
        expected = np.empty_like(self.expected[:m])
        for p in range(m):
            step = polynomials.scale * theta[p] + logs[p + 1, polynomials.previous]
            moved = self._with[p] * (rates[p] + self._rates[p] * (step - logs[p, 1:]))
            expected[p] = (polynomials.scale * moved).sum(axis=0)
            if p + 1 < m:
                change = logs[p + 1, 1:] - logs[p, 1:]
                rates[p + 1] += self._without[p] * (rates[p] + self._rates[p] * change)
                polynomials.pass_down(rates[p + 1], moved)
        return expected, by_size

"""P(π|x), the probability of rankings under the scores of a classifier, on NumPy arrays.

Scores with one column per class define a Plackett-Luce model of rankings, one-vs-one scores a
Babington-Smith model. Both scorers can give the first places of a ranking more weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from rankshot.core.arrays import BLOCK_CELLS, CACHED_CELLS, logsumexp, row_blocks
from rankshot.core.errors import RankshotError, format_count
from rankshot.ranking.matrices import (
    group_by_place,
    iterate_choices,
    mark_ranked,
    rows_with_tied_choices,
)
from rankshot.ranking.models.babington_smith import (
    NO_SUBSETS,
    log_sum_of_choices,
    require_affordable,
)
from rankshot.ranking.models.tie_integral import tied_log_prob
from rankshot.ranking.parts import refuse_partial
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.scores import Kind, pair_columns

Floats = NDArray[np.floating]


class StageLogProb(NamedTuple):
    """The terms of one stage in the log-probabilities of some rankings.

    ``groups`` has the group of each ranking, ``members`` one row per ranking: the items of the
    stage. ``log_prob`` is the log-probability that they come next, with one row per ranking and
    one column per input. ``chance`` is its value where all scores are equal. Both are multiplied
    by ``weight``.
    """

    groups: NDArray[np.intp]
    members: NDArray[np.integer]
    log_prob: Floats
    chance: Floats
    weight: float


def stage_weights(rankings: Rankings, decay: float) -> NDArray[np.float64]:
    """Return the weight r^-decay of the r-th place, one row per ranking; 0 after its end.

    Tied items share the mean weight of the places that they take, because their order is
    unknown.
    """
    longest = int(rankings.lengths.max(initial=0))
    place = np.arange(longest)
    weights = np.where(place < rankings.lengths[:, None], (1.0 + place) ** -decay, 0.0)
    begin, size, row = group_by_place(rankings)
    taken = np.minimum(size, rankings.lengths[row] - begin)
    for first, m, r in zip(begin, taken, row, strict=True):
        if m > 1:
            weights[r, first : first + m] = weights[r, first : first + m].mean()
    return weights


def log_chance(rankings: Rankings, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted log-probability of each ranking where all scores are equal.

    At each place, one of the remaining items is chosen uniformly.
    """
    compared = np.where(rankings.is_subset, rankings.n_listed, rankings.n_items)
    left = compared[:, None] - np.arange(weights.shape[1])
    return -np.asarray((weights * np.log(np.maximum(left, 1))).sum(axis=1))


Ints = NDArray[np.int32]
Doubles = NDArray[np.float64]


class BabingtonSmithScorer:
    r"""P(π|x) of many rankings for many inputs, up to a factor that depends only on x.

    The paper's equation 15, from pairwise scores f_ij = -f_ji:

    .. math:: P(\pi|x) \propto \prod_{i=1}^K \prod_{j > i} e^{f_{\pi^{-1}(i) \pi^{-1}(j)}(x)}

    Its logarithm is linear in the scores. The missing factor differs between rankings of
    different lengths, so all rankings must have one length. The probability of a tied ranking is
    the mean over the orders that it allows. The parameters are those of `PlackettLuceScorer`.

    Attributes
    ----------
    log_chance : ndarray of shape (groups,)
        The log-weight of each group where all scores are equal: 0, without the normaliser.
    design : sparse array of shape (groups, C (C - 1) / 2)
        What scores are multiplied by for the log-weights of strict rankings; ``has_ties`` tells
        whether there are others.
    """

    block_cells = CACHED_CELLS

    def __init__(
        self, rankings: Rankings, decay: float = 0.0, groups: NDArray[np.intp] | None = None
    ) -> None:
        refuse_partial(rankings, NO_SUBSETS)
        shortest, longest = int(rankings.lengths.min()), int(rankings.lengths.max())
        if shortest != longest:
            row = int(np.argmin(rankings.lengths))
            raise RankshotError(
                f"one-vs-one scores need rankings of one length: ranking {row} (of "
                f"{rankings.targets[row]!r}) has {format_count(shortest, 'item')}, others have "
                f"{longest}. Use k={shortest}, or scores with one column per class"
            )
        self._groups = np.arange(len(rankings)) if groups is None else groups
        self.n_groups = int(self._groups.max()) + 1
        self.n_items = rankings.n_items
        self._column, self._sign = pair_columns(self.n_items)
        self._n_pairs = self.n_items * (self.n_items - 1) // 2
        self._rankings = rankings
        self._weights = stage_weights(rankings, decay)
        self.log_chance = np.zeros(self.n_groups)
        self._tied = rows_with_tied_choices(rankings)
        self.has_ties = self._tied.size > 0
        self._strict = np.setdiff1d(np.arange(len(rankings)), self._tied)
        n = self._strict.size
        cells = np.ones(n), (self._groups[self._strict], np.arange(n))
        by_group = csr_array(cells, shape=(self.n_groups, n))
        self.design = by_group @ self._signs_of_lists(rankings[self._strict], decay)

    def log_prob_by_group(self, values: Floats) -> NDArray[np.float64]:
        """Return log P(π|x) without its normaliser, with one row per group of rankings."""
        # Thousands of scores are added: single precision is not enough.
        f = np.ascontiguousarray(values.T, np.float64)
        result = np.asarray(self.design @ f)
        for row in self._tied:
            for stage in self._stages_of(row, f):
                result[self._groups[row]] += stage.weight * stage.log_prob[0]
        return result

    def stage_log_probs(self, f: Floats) -> Iterator[StageLogProb]:
        """Yield the stages of all rankings, with log-weights; scores have one column per input."""
        for row in range(len(self._rankings)):
            yield from self._stages_of(row, f)

    def _stages_of(self, row: int, f: Floats) -> Iterator[StageLogProb]:
        left = np.ones(self.n_items, bool)
        place = 0
        for members, taken in iterate_choices(self._rankings[row]):
            row_sums = self._row_sums(members, left) @ f
            single = len(members) == 1
            part = row_sums[0] if single else self._tied_part(members, taken, row_sums, f)
            group, weight = self._groups[[row]], float(self._weights[row, place])
            yield StageLogProb(group, members[None], part[None], np.zeros(1), weight)
            left[members] = False
            place += taken

    def _signs_of_lists(self, lists: Rankings, decay: float) -> csr_array:
        """Return the matrix from scores to the log-weights of strict rankings of one length."""
        k = int(lists.lengths.max(initial=0))
        order = lists.codes[lists.starts[:-1, None] + np.arange(k)]
        left = np.ones((len(lists), self.n_items), bool)
        design = csr_array((len(lists), self._n_pairs), dtype=np.float64)
        for items, weights in zip(order.T, stage_weights(lists, decay).T, strict=True):
            left[np.arange(len(lists)), items] = False
            row, other = np.nonzero(left)
            # Strict rankings of one length have the same weights.
            design += weights[0] * self._signs(row, items[row], other, len(lists))
        return design

    def _row_sums(self, members: Ints, left: NDArray[np.bool_]) -> csr_array:
        """Return the matrix from scores to Σ_j f_ij over the items left, one row per member."""
        row, other = np.nonzero(left & (np.arange(self.n_items) != members[:, None]))
        return self._signs(row, members[row], other, len(members))

    def _signs(
        self, row: NDArray[np.intp], item: Ints, other: NDArray[np.intp], n_rows: int
    ) -> csr_array:
        """Return the matrix that adds f of ``item`` against ``other`` to each ``row``."""
        signs = self._sign[item, other].astype(np.float64)
        cells = signs, (row, self._column[item, other])
        return csr_array(cells, shape=(n_rows, self._n_pairs))

    def _tied_part(self, tied: Ints, taken: int, row_sums: Floats, f: Floats) -> Floats:
        """Return the logarithm of the mean weight over the orders of a tie."""
        g = len(tied)
        require_affordable(g, taken)
        column, sign = self._column[np.ix_(tied, tied)], self._sign[np.ix_(tied, tied)]
        result = np.empty(f.shape[1])
        largest = max(comb(g, m) for m in range(1, taken + 1))
        for rows in row_blocks(f.shape[1], largest + g * g, BLOCK_CELLS // 4):
            log_odds = np.asarray(f[column, rows] * sign[:, :, None], np.float64)
            sums = np.asarray(row_sums[:, rows], np.float64)
            result[rows] = log_sum_of_choices(log_odds, sums, taken)
        return np.asarray(result - gammaln(g + 1) + gammaln(g - taken + 1))


FLOAT64 = np.dtype(np.float64)
TIE_TOLERANCE = {np.dtype(np.float32): 1e-6, FLOAT64: 1e-14}
"""The relative error of the probability that tied items come next."""
SPARSE = 0.05
"""Below this share of cells that are not 0, a sparse matrix is faster than a dense one."""
LARGE = 30.0
"""Scores that are further below the largest are added up in double precision."""
LEAST_TOTAL = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-290}
"""Totals below this (the largest worth is 1) may have lost terms by underflow. They are computed
again with logarithms, which takes longer."""


class _Lists(NamedTuple):
    """Strict rankings of one length, in groups of ``size``, with one column per ranking.

    The columns are the first rankings of all groups, then the second ones, and so on.
    ``order[i]`` holds the i-th item of each ranking, by its place among the listed items; its term
    has the weight ``weights[i]``. ``rest``, with one row per ranking, marks the listed items after
    all placed items; the last column is for the unlisted ones. ``rows`` are the numbers of the
    rankings.
    """

    rows: NDArray[np.intp]
    groups: NDArray[np.intp]
    size: int
    order: NDArray[np.intp]
    weights: NDArray[np.float64]
    rest: NDArray[np.bool_]


class PlackettLuceScorer:
    r"""P(π|x) of many rankings for many inputs, the paper's equation 14.

    .. math:: P(\pi|x) = \prod_{i=1}^K \frac{e^{f_{\pi^{-1}(i)}(x)}}
              {\sum_{j \ge i} e^{f_{\pi^{-1}(j)}(x)}}

    The sum at each stage is accumulated from the last stage to the first. It is never computed
    as the total minus the items already placed, because this difference cancels for a confident
    classifier. The probability of a tied ranking is the mean over the orders that it allows.

    Parameters
    ----------
    rankings : Rankings
        Full, top-K or subset rankings.
    decay : float
        The logarithm of the i-th factor has the weight i^-decay. For 0 all factors have the
        same weight, as in the equation.
    groups : ndarray of int, optional
        A number for each ranking, from 0. The log-probabilities of the rankings of one group are
        added. By default every ranking is a group of its own.

    Attributes
    ----------
    log_chance : ndarray of shape (groups,)
        The log-probability of each group where all scores are equal.
    block_cells : int
        How many cells, inputs by items and rankings, are best computed at a time.
    """

    # `ranking.models.plackett_luce` has the same formula for one vector of worths, many rankings.
    # Here every input has a score vector of its own. So the loop runs over stages, with whole
    # blocks of inputs, in float32 if the scores are. Logarithms take long: factors of equal weight
    # are multiplied first. What both have in common, the choice among tied items, is shared:
    # `tie_integral`.

    def __init__(
        self, rankings: Rankings, decay: float = 0.0, groups: NDArray[np.intp] | None = None
    ) -> None:
        self._weights = stage_weights(rankings, decay)
        self.n_items = rankings.n_items
        self._rankings = rankings
        self._groups = np.arange(len(rankings)) if groups is None else groups
        self.n_groups = int(self._groups.max()) + 1
        self.log_chance = np.bincount(self._groups, log_chance(rankings, self._weights))
        unlisted = np.ones(rankings.n_items, bool)
        unlisted[rankings.codes] = False
        # The listed items come first.
        self._columns = np.argsort(unlisted, kind="stable")
        self._place = np.argsort(self._columns)
        self._listed = self._columns[~unlisted[self._columns]]
        self._rest = _mark_unplaced(rankings)
        tied = rows_with_tied_choices(rankings)
        self._lists = list(self._gather(np.setdiff1d(np.arange(len(rankings)), tied)))
        self._tied_rows = tied
        self._choices = {row: list(iterate_choices(rankings[row]))[::-1] for row in tied}
        # Ties take most of the time, and less of it for many inputs at once.
        self.block_cells = BLOCK_CELLS // 2 if tied.size else BLOCK_CELLS // 8
        self._numerators = self._sum_placed()
        self._converted: dict[np.dtype[np.floating], tuple[Any, list[Floats]]] = {}

    def _gather(self, strict: NDArray[np.intp]) -> Iterator[_Lists]:
        """Yield the strict rankings by their length and the size of their groups."""
        lengths = self._rankings.lengths[strict]
        for k in np.unique(lengths):
            rows = strict[lengths == k]
            rows = rows[np.argsort(self._groups[rows], kind="stable")]
            groups, first, sizes = np.unique(
                self._groups[rows], return_index=True, return_counts=True
            )
            for size in np.unique(sizes):
                of_size = sizes == size
                theirs = rows[first[of_size] + np.arange(size)[:, None]].ravel()
                codes = self._rankings.codes[self._rankings.starts[theirs] + np.arange(k)[:, None]]
                # Strict rankings of one length have the same weights.
                weights = self._weights[theirs[0], :k]
                unlisted = ~self._rankings.is_subset[theirs]
                rest = np.column_stack([self._rest[theirs][:, self._listed], unlisted])
                order = self._place[codes]
                yield _Lists(theirs, groups[of_size], int(size), order, weights, rest)

    def _sum_placed(self) -> Any:
        """Return the matrix from scores to the weighted sum over the placed items of each group."""
        cells = [np.empty((3, 0))]
        for lists in self._lists:
            groups = np.tile(lists.groups, lists.size)
            for places, weight in zip(lists.order, lists.weights, strict=True):
                cells.append(np.array([np.full(groups.size, weight), groups, places]))
        weights, row, column = np.concatenate(cells, axis=1)
        shape = self.n_groups, self._listed.size
        matrix = csr_array((weights, (row.astype(int), column.astype(int))), shape=shape)
        return matrix if matrix.nnz < SPARSE * np.prod(shape) else matrix.toarray()

    def log_prob_by_group(self, values: Floats) -> Floats:
        """Return log P(π|x), with one row per group of rankings and one column per input.

        For scores in float32, all that takes time is float32.
        """
        result = np.empty((self.n_groups, len(values)), values.dtype)
        for rows in row_blocks(len(values), self.n_items + self._groups.size, self.block_cells):
            result[:, rows] = self._block_log_prob(values[rows])
        return result

    def _block_log_prob(self, values: Floats) -> Floats:
        f = values.T[self._columns]
        f -= f.max(axis=0)
        n_listed = self._numerators.shape[1]
        worths = np.empty((len(f) + 1, len(values)), f.dtype)
        np.exp(f, out=worths[:-1])
        # The items that no ranking lists matter only by the sum of their worths.
        worths[n_listed] = worths[n_listed:-1].sum(axis=0)
        f, worths = f[:n_listed], worths[: n_listed + 1]
        # Sums of large numbers in float32 would depend on the order of the items.
        precise = np.dtype(np.float64) if f.min(initial=0) < -LARGE else f.dtype
        numerators = self._convert(precise)[0]
        result = np.asarray(numerators @ f.astype(precise, copy=False), f.dtype)
        least = np.full(len(values), np.inf, f.dtype)
        for lists, rest in zip(self._lists, self._convert(f.dtype)[1], strict=True):
            # What underflows is computed again.
            with np.errstate(divide="ignore", invalid="ignore"):
                log_totals, smallest = _weighted_log_totals(lists, rest, worths, self.n_items)
            if lists.groups.size == self.n_groups:
                result -= log_totals
            else:
                result[lists.groups] -= log_totals
            np.minimum(least, smallest, out=least)
        if self._tied_rows.size:
            self._add_tied(result, np.asarray(values.T, np.float64))
        lost = np.flatnonzero(least < LEAST_TOTAL[f.dtype])
        if lost.size:
            result[:, lost] = self._log_prob_despite_underflow(values[lost])
        return np.asarray(result)

    def _convert(self, dtype: np.dtype[np.floating]) -> tuple[Any, list[Floats]]:
        """Return the matrices of placed and of unplaced items in some precision; kept."""
        if dtype not in self._converted:
            rests = [lists.rest.astype(dtype) for lists in self._lists]
            self._converted[dtype] = self._numerators.astype(dtype), rests
        return self._converted[dtype]

    def _log_prob_despite_underflow(self, values: Floats) -> Floats:
        """Return the same where worths underflow: in float64, and then with logarithms."""
        if values.dtype == np.float32:
            return self._block_log_prob(values.astype(np.float64))
        result = np.zeros((self.n_groups, len(values)))
        for stage in self.stage_log_probs(values.T):
            np.add.at(result, stage.groups, stage.weight * stage.log_prob)
        return result

    def stage_log_probs(self, scores: Floats) -> Iterator[StageLogProb]:
        """Yield the stages of all rankings, the last ones first; those of strict lists together.

        Scores have one column per input.
        """
        f = np.asarray(scores, np.float64)
        for lists in self._lists:
            yield from self._stages_of_lists(lists, f)
        for row, later in zip(self._tied_rows, self._log_rest(self._tied_rows, f), strict=True):
            yield from self._stages_of_tied(row, f, later)

    def _log_rest(self, rows: NDArray[np.intp], f: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log of the total worth of the items after some rankings, for each input."""
        top, rest = f.max(axis=0), self._rest[rows]
        total = rest.astype(np.float64) @ np.exp(f - top)
        with np.errstate(divide="ignore"):
            log_rest = np.log(total) + top
        lost = (total < LEAST_TOTAL[f.dtype]) & np.asarray(rest.any(axis=1))[:, None]
        for i in np.flatnonzero(lost.any(axis=1)):
            log_rest[i, lost[i]] = logsumexp(f[:, lost[i]][rest[i]], np, 0)
        return np.asarray(log_rest)

    def _stages_of_lists(self, lists: _Lists, f: Doubles) -> Iterator[StageLogProb]:
        later = self._log_rest(lists.rows, f)
        groups, n_later = self._groups[lists.rows], self._rest[lists.rows].sum(axis=1)
        for place in reversed(range(len(lists.order))):
            items = self._columns[lists.order[place]]
            theirs = f[items]
            n_later = n_later + 1
            # log(v / (v + later)), without computing the sum
            log_prob = -np.logaddexp(0, later - theirs)
            weight = float(lists.weights[place])
            yield StageLogProb(groups, items[:, None], log_prob, -np.log(n_later), weight)
            later = theirs - log_prob

    def _add_tied(self, result: Floats, f: NDArray[np.float64]) -> None:
        """Add the log-probabilities of the tied rankings to those of their groups."""
        tolerance = TIE_TOLERANCE[result.dtype]
        for row, later in zip(self._tied_rows, self._log_rest(self._tied_rows, f), strict=True):
            stages = self._stages_of_tied(row, f, later, tolerance)
            result[self._groups[row]] += sum(each.weight * each.log_prob[0] for each in stages)

    def _stages_of_tied(
        self, row: int, f: Doubles, later: Doubles, tolerance: float = TIE_TOLERANCE[FLOAT64]
    ) -> Iterator[StageLogProb]:
        n_later, place = int(self._rest[row].sum()), int(self._rankings.lengths[row])
        for members, taken in self._choices[row]:
            place -= taken
            theirs, g = f[members], len(members)
            if g == 1:
                log_prob = np.asarray(-np.logaddexp(0, later - theirs[0]), np.float64)
                total = theirs[0] - log_prob
            else:
                total = np.logaddexp(later, logsumexp(theirs, np, 0)[0])
                log_prob = np.full(later.size, gammaln(g - taken + 1) - gammaln(g + 1))
                if n_later:
                    log_prob += tied_log_prob(theirs, later, taken, tolerance)
            chance = gammaln(n_later + g - taken + 1) - gammaln(n_later + g + 1)
            group, weight = self._groups[[row]], float(self._weights[row, place])
            yield StageLogProb(group, members[None], log_prob[None], np.array([chance]), weight)
            later = total
            n_later += g


def _mark_unplaced(rankings: Rankings) -> NDArray[np.bool_]:
    """Mark the items after all placed items of each ranking; none for subset rankings."""
    rest = np.repeat(~rankings.is_subset[:, None], rankings.n_items, axis=1)
    rest[rankings.entry_rows, rankings.codes] = ~mark_ranked(rankings)
    return rest


class _LogSum:
    """Σ weight · log(factor): consecutive factors of one weight are multiplied first.

    Up to ``most`` factors are multiplied before their logarithm is taken.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[np.floating], most: int) -> None:
        self._sum, self._product = np.zeros(shape, dtype), np.empty(shape, dtype)
        self._most, self._n, self._weight = most, 0, 0.0

    def add(self, factors: Floats, weight: float) -> None:
        """Add the logarithms of factors, which are along the first axis."""
        for begin in range(0, len(factors), self._most):
            some = factors[begin : begin + self._most]
            if self._n + len(some) > self._most or weight != self._weight:
                self._take_logarithm()
            if self._n:
                self._product *= some[0] if len(some) == 1 else some.prod(axis=0)
            else:
                np.multiply.reduce(some, axis=0, out=self._product)
            self._n, self._weight = self._n + len(some), weight

    def _take_logarithm(self) -> None:
        if self._n:
            np.log(self._product, out=self._product)
            if self._weight != 1:
                self._product *= self._weight
            self._sum += self._product
        self._n = 0

    def total(self) -> Floats:
        """Return the sum of all that was added."""
        self._take_logarithm()
        return self._sum


def _weighted_log_totals(
    lists: _Lists, rest: Floats, worths: Floats, n_items: int
) -> tuple[Floats, Floats]:
    """Return Σ weight · log(total) over the stages of all rankings of each group.

    The second array holds the smallest total of each input.
    """
    remaining = rest @ worths
    taken = np.empty_like(remaining)
    np.take(worths, lists.order[-1], axis=0, out=taken, mode="clip")
    remaining += taken
    # The last stage has the smallest total.
    smallest = remaining.min(axis=0)
    shape = lists.groups.size, worths.shape[1]
    log_sum = _LogSum(shape, worths.dtype, _most_factors(smallest, n_items))
    for i in reversed(range(len(lists.order))):
        log_sum.add(remaining.reshape(lists.size, *shape), float(lists.weights[i]))
        if i:
            np.take(worths, lists.order[i - 1], axis=0, out=taken, mode="clip")
            remaining += taken
    return log_sum.total(), smallest


def _most_factors(smallest: Floats, n_items: int) -> int:
    """Return how many totals can be multiplied without underflow or overflow.

    A total is at most the number of items, listed or not, as the largest worth is 1. Inputs whose
    totals lost digits are computed again, and do not count here.
    """
    least = smallest[smallest >= LEAST_TOTAL[smallest.dtype]].min(initial=1.0)
    most = -np.log(np.finfo(smallest.dtype).tiny)
    return max(1, int(most / max(-np.log(least), np.log(n_items), 1.0)))


Scorer = PlackettLuceScorer | BabingtonSmithScorer


class Scorers:
    """The scorers of some rankings for every kind of scores; each is built on first use.

    The parameters are those of the scorers.
    """

    def __init__(
        self, rankings: Rankings, decay: float = 0.0, groups: NDArray[np.intp] | None = None
    ) -> None:
        self._parameters = rankings, decay, groups
        self._made: dict[bool, Scorer] = {}

    def get_scorer(self, kind: Kind) -> Scorer:
        """Return the scorer for one kind of scores: Babington-Smith for one-vs-one."""
        pairs = kind == "one-vs-one"
        if pairs not in self._made:
            model = BabingtonSmithScorer if pairs else PlackettLuceScorer
            self._made[pairs] = model(*self._parameters)
        return self._made[pairs]

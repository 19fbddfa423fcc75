"""P(π|x) of rankings under one-vs-one scores, which define a Babington-Smith model."""

from __future__ import annotations

from collections.abc import Iterator
from math import comb

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from rankshot.core.blocks import BLOCK_CELLS, CACHED_CELLS, row_blocks
from rankshot.core.errors import RankshotError, format_count
from rankshot.ranking.matrices import iterate_choices, rows_with_tied_choices
from rankshot.ranking.models.babington_smith import (
    NO_SUBSETS,
    log_sum_of_choices,
    require_affordable,
)
from rankshot.ranking.parts import refuse_partial
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.scores import pair_columns
from rankshot.zeroshot.stages import StageLogProb, stage_weights

Floats = NDArray[np.floating]
Ints = NDArray[np.int32]


class BabingtonSmithScorer:
    r"""P(π|x) of many rankings for many inputs, up to a factor that depends only on x.

    The paper's equation 15, from pairwise scores f_ij = -f_ji:

    .. math:: P(\pi|x) \propto \prod_{i=1}^K \prod_{j > i} e^{f_{\pi^{-1}(i) \pi^{-1}(j)}(x)}

    Its logarithm is linear in the scores. The missing factor differs between rankings of
    different lengths, so all rankings must have one length. The probability of a tied ranking is
    the mean over the orders that it allows.

    Parameters
    ----------
    rankings : Rankings
        Full or top-K rankings of one length.
    decay : float
        The logarithm of the i-th factor has the weight i^-decay.
    groups : ndarray of int, optional
        A number for each ranking, from 0. The log-weights of the rankings of one group are added.
        By default every ranking is a group of its own.

    Attributes
    ----------
    log_chance : ndarray of shape (groups,)
        The log-weight of each group where all scores are equal: 0, without the normaliser.
    design : sparse array of shape (groups, C (C - 1) / 2)
        What scores are multiplied by for the log-weights of strict rankings.
    has_ties : bool
        Whether some rankings have ties; they are not in ``design``.
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
        design = self._signs_of_lists(rankings[self._strict], decay)
        self.design = self._sum_over_groups(self._strict) @ design

    def _sum_over_groups(self, rows: NDArray[np.intp]) -> csr_array:
        cells = np.ones(rows.size), (self._groups[rows], np.arange(rows.size))
        return csr_array(cells, shape=(self.n_groups, rows.size))

    def log_prob_by_group(self, values: Floats) -> NDArray[np.float64]:
        """Return log P(π|x) without its normaliser, with one row per group of rankings.

        Parameters
        ----------
        values : ndarray of shape (n, C (C - 1) / 2)
            Scores, with one row per input.
        """
        # Thousands of scores are added: single precision is not enough.
        f = np.ascontiguousarray(values.T, np.float64)
        result = np.asarray(self.design @ f)
        for row in self._tied:
            for stage in self._stages_of(row, f):
                result[self._groups[row]] += stage.weight * stage.log_prob[0]
        return result

    def stage_log_probs(self, f: Floats) -> Iterator[StageLogProb]:
        """Yield the stages of all rankings, with log-weights; their chance is 0.

        Parameters
        ----------
        f : ndarray of shape (C (C - 1) / 2, n)
            Scores, with one column per input.
        """
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

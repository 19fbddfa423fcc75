"""The Plackett-Luce ranker: how probable rankings are under the scores of a classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from rankshot.ranking.blocks import BLOCK_CELLS, CACHED_CELLS, row_blocks
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.stages import choices_of, groups_of, rows_with_tied_choices
from rankshot.ranking.tied_choice import TiedChoice, n_nodes
from rankshot.zeroshot.stage_weights import log_chance, stage_weights

Floats = NDArray[np.floating]
Ints = NDArray[np.int32]

LEAST_TOTAL = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-290}
"""Totals below this, where the largest score counts 1, are not to be trusted: parts of them
may have underflowed. They are summed as logarithms instead, which takes longer."""


class StagePart(NamedTuple):
    """What one stage of a ranking adds to its log-probability.

    ``log_prob`` is that of the ``members`` coming next, an input each; ``chance`` is the same
    where all scores are equal. Both count ``weight`` times.
    """

    members: Ints
    log_prob: Floats
    chance: float
    weight: float


class _Lists(NamedTuple):
    """Rankings of one length without ties: those numbered ``rows`` of all.

    ``order[i]`` has the i-th item of each, and counts ``weights[i]`` times; ``rest`` marks, a row
    a ranking, the items that are compared with those placed and left.
    """

    rows: NDArray[np.intp]
    order: Ints
    weights: NDArray[np.float64]
    rest: NDArray[np.bool_]


class PlackettLuceRanker:
    r"""P(π|x) of many rankings for many inputs, the paper's equation 14.

    .. math:: P(\pi|x) = \prod_{i=1}^K \frac{e^{f_{\pi^{-1}(i)}(x)}}
              {\sum_{j \ge i} e^{f_{\pi^{-1}(j)}(x)}}

    What remains at each stage is added up from its own parts, never found as a total less what
    is gone: for a confident classifier that difference has no digits left. A tie is the mean
    over the orders that it allows.

    Parameters
    ----------
    rankings : Rankings
        Full, top-K or of subsets.
    decay : float
        The logarithm of the i-th factor counts i^-decay times. For 0 all are alike, as in the
        equation.

    Attributes
    ----------
    log_chance : ndarray of shape (rankings,)
        What every ranking has where all scores are equal.
    """

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        self._weights = stage_weights(rankings, decay)
        self.log_chance = log_chance(rankings, self._weights)
        self.n_items = rankings.n_items
        self.n_rankings = len(rankings)
        self._rankings = rankings
        self._rest = _left_over(rankings)
        self._tied = rows_with_tied_choices(rankings)
        strict = np.setdiff1d(np.arange(len(rankings)), self._tied)
        lengths = rankings.lengths[strict]
        self._lists = [self._gather(strict[lengths == k], int(k)) for k in np.unique(lengths)]

    def _gather(self, rows: NDArray[np.intp], k: int) -> _Lists:
        """Put strict rankings of one length side by side."""
        order = self._rankings.entries[self._rankings.starts[rows][:, None] + np.arange(k)]
        # Strict lists of one length have the same weights.
        weights = self._weights[rows[0], :k]
        return _Lists(rows, np.ascontiguousarray(order.T), weights, self._rest[rows])

    def log_prob(self, values: Floats) -> NDArray[np.float64]:
        """Return log P(π|x), a row an input and a column a ranking.

        Parameters
        ----------
        values : ndarray of shape (n, C)
            Scores. Those of float32 are exponentiated and summed as such, which is where the
            time goes, and added up in double precision.
        """
        result = np.empty((len(values), self.n_rankings))
        for rows in row_blocks(len(values), self.n_items + self.n_rankings, CACHED_CELLS):
            result[rows] = self.by_columns(values[rows]).T
        return result

    def by_columns(self, values: Floats) -> NDArray[np.float64]:
        """Return the same of a few inputs, a row a ranking: sums run along long rows."""
        result = np.empty((self.n_rankings, len(values)))
        for lists in self._lists:
            result[lists.rows] = self._lists_log_prob(lists, values)
        for row in self._tied:
            result[row] = self._by_stages(row, values)
        return result

    def _by_stages(self, row: int, values: Floats) -> Floats:
        parts = self.stage_log_probs(row, values.T)
        return np.asarray(sum(stage.weight * stage.log_prob for stage in parts))

    def _lists_log_prob(self, lists: _Lists, values: Floats) -> NDArray[np.float64]:
        f = values.T.copy(order="C")
        f -= f.max(axis=0)
        worths = np.exp(f)
        remaining = lists.rest.astype(f.dtype) @ worths
        # The last choice has the smallest total.
        least = (remaining + worths[lists.order[-1]]).min(axis=0)
        result = np.zeros(remaining.shape)
        for items, weight in zip(lists.order[::-1], lists.weights[::-1], strict=True):
            remaining += worths[items]
            with np.errstate(divide="ignore", invalid="ignore"):
                stage = f[items] - np.log(remaining)
                result += stage if weight == 1 else weight * stage
        lost = np.flatnonzero(least < LEAST_TOTAL[f.dtype])
        if lost.size:
            result[:, lost] = self._far_apart(lists, values[lost])
        return result

    def _far_apart(self, lists: _Lists, values: Floats) -> NDArray[np.float64]:
        """Return the same where worths underflow: in double precision, then as logarithms."""
        if values.dtype == np.float32:
            return self._lists_log_prob(lists, values.astype(np.float64))
        return np.array([self._by_stages(row, values) for row in lists.rows])

    def stage_log_probs(self, row: int, scores: Floats) -> Iterator[StagePart]:
        """Yield the stages of a ranking, last first.

        Parameters
        ----------
        row : int
            The number of the ranking.
        scores : ndarray of shape (C, n)
            A column an input.
        """
        f = np.asarray(scores, np.float64)
        rest = self._rest[row]
        n_later = int(rest.sum())
        later = _log_total(f[rest]) if n_later else np.full(f.shape[1], -np.inf)
        place = int(self._rankings.lengths[row])
        for members, taken in reversed(list(choices_of(self._rankings[row]))):
            place -= taken
            theirs, g = f[members], len(members)
            if g == 1:
                # log v / (v + later) without forming the sum
                log_prob = -np.logaddexp(0, later - theirs[0])
            else:
                ways = gammaln(g + 1) - gammaln(g - taken + 1)
                log_prob = _tied_log_prob(theirs, later, taken) - ways
            chance = gammaln(n_later + g - taken + 1) - gammaln(n_later + g + 1)
            yield StagePart(members, log_prob, float(chance), float(self._weights[row, place]))
            later = np.logaddexp(later, _log_total(theirs))
            n_later += g


def _left_over(rankings: Rankings) -> NDArray[np.bool_]:
    """Mark what each ranking puts after all that it places: nothing outside of a subset."""
    rest = np.repeat(~rankings.is_subset[:, None], rankings.n_items, axis=1)
    rest[rankings.entry_rows, rankings.entries] = False
    begin, size, row = groups_of(rankings)
    dropped = np.repeat(begin >= rankings.lengths[row], size)
    rest[rankings.entry_rows[dropped], rankings.entries[dropped]] = True
    return rest


def _log_total(f: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = f.max(axis=0)
    return np.asarray(largest + np.log(np.exp(f - largest).sum(axis=0)))


def _tied_log_prob(theirs: NDArray[np.float64], later: NDArray[np.float64], taken: int) -> Floats:
    """Return the log-probability that ``taken`` of a group come before all of the rest."""
    if np.isneginf(later).all():
        return np.zeros(later.size)
    result = np.empty(later.size)
    for rows in row_blocks(later.size, len(theirs) * n_nodes(len(theirs)), BLOCK_CELLS // 4):
        result[rows] = TiedChoice(theirs[:, rows].T, later[rows], taken).log_prob
    return result

"""What each seen class adds to the log-posteriors of `ProbabilisticRanking`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import softmax

from rankshot.core.arrays import row_blocks
from rankshot.ranking.matrices import group_by_place
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.likelihoods import Scorers, stage_weights
from rankshot.zeroshot.scores import Kind

Floats = NDArray[np.float64]


class ItemContributions:
    """The parts of log P(z|x), one for each seen class.

    The r-th term of log P(π|x), minus its value for equal scores, is the contribution of the item
    at the r-th place; tied items share their terms equally. It is the difference between the
    log-probabilities of the first r and of the first r - 1 places. Where a source does not rank a
    class, its rankings of other classes contribute, as far as the class depends on them. The rest
    is shared equally by all seen classes that contribute.

    Parameters
    ----------
    rankings : Rankings
        R rankings of L classes.
    decay : float
        As for `ProbabilisticRanking`.
    kind : str
        The kind of the scores.
    own : sparse array of shape (R, L)
        The weight of each ranking for its class.
    lacking : list of sparse arrays of shape (R, L_s)
        For each source that lacks a class, the weights of its rankings for the classes that it has.
    neutral_share : ndarray
        The weight of each of these sources for the L classes.
    """

    def __init__(
        self,
        rankings: Rankings,
        decay: float,
        kind: Kind,
        own: csr_array,
        lacking: list[csr_array],
        neutral_share: Floats,
    ) -> None:
        self._weights = stage_weights(rankings, decay)
        self._scorers = [
            Scorers(rankings.top(place + 1)).get_scorer(kind)
            for place in range(self._weights.shape[1])
        ]
        self._shape = own.shape[1], rankings.n_items
        self._lacking, self._neutral_share = lacking, neutral_share
        begin, size, _ = group_by_place(rankings)
        begin, size, row = np.repeat(begin, size), np.repeat(size, size), rankings.entry_rows
        end = np.minimum(begin + size, rankings.lengths[row])
        (n, L), C, self._own = own.shape, rankings.n_items, own.tocoo()
        self._members, self._cells = [], []
        for place in range(len(self._scorers)):
            there = np.flatnonzero((begin <= place) & (place < end))
            cells = 1 / size[there], (row[there], rankings.codes[there])
            members = csr_array(cells, (n, C))
            self._members.append(members)
            # One row of items for each class, one after the other.
            each = members[self._own.row].tocoo()
            column = self._own.col[each.row] * C + each.col
            cells = self._own.data[each.row] * each.data, (self._own.row[each.row], column)
            self._cells.append(csr_array(cells, (n, L * C)))
        listed = csr_array(sum(self._members))
        weights = (own.T @ listed).toarray()
        for share, within in zip(neutral_share, lacking, strict=True):
            weights += share[:, None] * (within.sum(axis=1) @ listed)
        self._contributes = weights > 0

    def of_inputs(self, values: NDArray[np.floating]) -> Floats:
        """Return the contributions, of shape (n, classes, seen classes)."""
        return self._add_up(values, np.eye(len(values)))

    def average(self, values: NDArray[np.floating]) -> Floats:
        """Return the mean of the contributions over inputs, of shape (classes, seen classes)."""
        total = np.zeros(self._shape)
        for rows in row_blocks(len(values), self._weights.size):
            total += self._add_up(values[rows], np.ones((1, len(values[rows]))))[0]
        return total / len(values)

    def _add_up(self, values: NDArray[np.floating], pool: Floats) -> Floats:
        """Return sums of contributions, with one row of ``pool`` for each sum over inputs."""
        L, C = self._shape
        terms = self._find_terms(values)
        log_prob = np.sum(terms, axis=0)
        result = sum(
            (pool @ term) @ cells for term, cells in zip(terms, self._cells, strict=True)
        ).reshape(-1, L, C)
        if not self._lacking:
            return np.asarray(result)
        total = log_prob @ self._own.tocsr()
        for share, within in zip(self._neutral_share, self._lacking, strict=True):
            by_class = log_prob @ within
            largest = by_class.max(axis=1, keepdims=True)
            mean = largest + np.log(np.exp(by_class - largest).mean(axis=1, keepdims=True))
            total = total + mean * share
            # A class that the source lacks depends on its most probable classes.
            slopes = softmax(by_class, axis=1) @ within.T
            by_item = sum(
                (pool @ (slopes * term)) @ members
                for term, members in zip(terms, self._members, strict=True)
            )
            result = result + share[:, None] * by_item[:, None]
        left = pool @ total - result.sum(axis=2)
        number = np.maximum(self._contributes.sum(axis=1), 1)
        return np.asarray(result + self._contributes * (left / number)[:, :, None])

    def _find_terms(self, values: NDArray[np.floating]) -> list[Floats]:
        """Return the terms of log P(π|x), one array of inputs by rankings for each place."""
        until = np.array([scorer.log_prob(values) for scorer in self._scorers])
        return list(np.diff(until, axis=0, prepend=0) * self._weights.T[:, None])

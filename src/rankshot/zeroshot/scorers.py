"""Scorers: P(π|x), the probability of rankings under the scores of a classifier.

Scores with one column per class define a Plackett-Luce model of rankings, one-vs-one scores a
Babington-Smith model. Both scorers can give the first places of a ranking more weight.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from rankshot.core.blocks import BLOCK_CELLS, CACHED_CELLS, row_blocks
from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number
from rankshot.ranking.babington_smith import NO_SUBSETS, log_sum_of_choices, require_affordable
from rankshot.ranking.checks import refuse_partial
from rankshot.ranking.layouts import group_by_place, iterate_choices, rows_with_tied_choices
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.tie_integral import TiedChoice, n_nodes
from rankshot.zeroshot.scores import Kind, pair_columns

Floats = NDArray[np.floating]
Ints = NDArray[np.int32]
LEAST_TOTAL = {np.dtype(np.float32): 1e-30, np.dtype(np.float64): 1e-290}
"""Totals below this (the largest worth is 1) may have lost terms by underflow. They are computed
again with logarithms, which takes longer."""


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


def require_decay(decay: float) -> float:
    """Return the decay of the weights as a float; it must be finite and not negative."""
    if isinstance(decay, str | bytes | bool | np.bool_):
        raise RankshotError(f"decay must be a number, not {short_repr(decay)}")
    return require_number("decay", decay, least=0, below=np.inf)


def log_chance(rankings: Rankings, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted log-probability of each ranking where all scores are equal.

    At each place, one of the remaining items is chosen uniformly.
    """
    compared = np.where(rankings.is_subset, rankings.n_listed, rankings.n_items)
    left = compared[:, None] - np.arange(weights.shape[1])
    return -np.asarray((weights * np.log(np.maximum(left, 1))).sum(axis=1))


# -------------------------------------------------------------------- Plackett-Luce


class StageLogProb(NamedTuple):
    """The term of one stage in the log-probability of a ranking.

    ``log_prob`` is the log-probability that the ``members`` come next, with one value per input.
    ``chance`` is its value where all scores are equal. Both are multiplied by ``weight``.
    """

    members: Ints
    log_prob: Floats
    chance: float
    weight: float


class _Lists(NamedTuple):
    """Rankings of one length without ties; ``rows`` are their numbers among all rankings.

    ``order[i]`` holds the i-th item of each ranking; its term has the weight ``weights[i]``.
    ``rest``, with one row per ranking, marks the items that come after all placed items.
    """

    rows: NDArray[np.intp]
    order: Ints
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

    Attributes
    ----------
    log_chance : ndarray of shape (rankings,)
        The log-probability of each ranking where all scores are equal.
    """

    # `ranking.plackett_luce` has the same formula for one vector of worths and many rankings.
    # Here every input has a score vector of its own. So the loop runs over stages, with whole
    # blocks of inputs that fit into the cache, in float32 if the scores are. What both have in
    # common, the choice among tied items, is shared: `TiedChoice`.

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        self._weights = stage_weights(rankings, decay)
        self.log_chance = log_chance(rankings, self._weights)
        self.n_items = rankings.n_items
        self.n_rankings = len(rankings)
        self._rankings = rankings
        self._rest = _mark_unplaced(rankings)
        self._tied = rows_with_tied_choices(rankings)
        strict = np.setdiff1d(np.arange(len(rankings)), self._tied)
        lengths = rankings.lengths[strict]
        self._lists = [self._gather(strict[lengths == k], int(k)) for k in np.unique(lengths)]

    def _gather(self, rows: NDArray[np.intp], k: int) -> _Lists:
        """Collect strict rankings of one length."""
        order = self._rankings.codes[self._rankings.starts[rows][:, None] + np.arange(k)]
        # Strict rankings of one length have the same weights.
        weights = self._weights[rows[0], :k]
        return _Lists(rows, np.ascontiguousarray(order.T), weights, self._rest[rows])

    def log_prob(self, values: Floats) -> NDArray[np.float64]:
        """Return log P(π|x), with one row per input and one column per ranking.

        Parameters
        ----------
        values : ndarray of shape (n, C)
            Scores. For float32, the exponentials and the sums over items, which take most of
            the time, are float32; the sum over stages is float64.
        """
        result = np.empty((len(values), self.n_rankings))
        for rows in row_blocks(len(values), self.n_items + self.n_rankings, CACHED_CELLS):
            result[rows] = self.log_prob_by_ranking(values[rows]).T
        return result

    def log_prob_by_ranking(self, values: Floats) -> NDArray[np.float64]:
        """Return the same for one block of inputs, transposed: one row per ranking."""
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
        # The last stage has the smallest total.
        least = (remaining + worths[lists.order[-1]]).min(axis=0)
        result = np.zeros(remaining.shape)
        for items, weight in zip(lists.order[::-1], lists.weights[::-1], strict=True):
            remaining += worths[items]
            with np.errstate(divide="ignore", invalid="ignore"):
                stage = f[items] - np.log(remaining)
                result += stage if weight == 1 else weight * stage
        lost = np.flatnonzero(least < LEAST_TOTAL[f.dtype])
        if lost.size:
            result[:, lost] = self._log_prob_despite_underflow(lists, values[lost])
        return result

    def _log_prob_despite_underflow(self, lists: _Lists, values: Floats) -> NDArray[np.float64]:
        """Return the same where worths underflow: in float64, and then with logarithms."""
        if values.dtype == np.float32:
            return self._lists_log_prob(lists, values.astype(np.float64))
        return np.array([self._by_stages(row, values) for row in lists.rows])

    def stage_log_probs(self, row: int, scores: Floats) -> Iterator[StageLogProb]:
        """Yield the stages of a ranking, the last one first.

        Parameters
        ----------
        row : int
            The number of the ranking.
        scores : ndarray of shape (C, n)
            Scores, with one column per input.
        """
        f = np.asarray(scores, np.float64)
        rest = self._rest[row]
        n_later = int(rest.sum())
        later = _log_total(f[rest]) if n_later else np.full(f.shape[1], -np.inf)
        place = int(self._rankings.lengths[row])
        for members, taken in reversed(list(iterate_choices(self._rankings[row]))):
            place -= taken
            theirs, g = f[members], len(members)
            if g == 1:
                # log(v / (v + later)), without computing the sum
                log_prob = -np.logaddexp(0, later - theirs[0])
            else:
                ways = gammaln(g + 1) - gammaln(g - taken + 1)
                log_prob = _tied_log_prob(theirs, later, taken) - ways
            chance = gammaln(n_later + g - taken + 1) - gammaln(n_later + g + 1)
            yield StageLogProb(members, log_prob, float(chance), float(self._weights[row, place]))
            later = np.logaddexp(later, _log_total(theirs))
            n_later += g


def _mark_unplaced(rankings: Rankings) -> NDArray[np.bool_]:
    """Mark the items after all placed items of each ranking; none for subset rankings."""
    rest = np.repeat(~rankings.is_subset[:, None], rankings.n_items, axis=1)
    rest[rankings.entry_rows, rankings.codes] = False
    begin, size, row = group_by_place(rankings)
    dropped = np.repeat(begin >= rankings.lengths[row], size)
    rest[rankings.entry_rows[dropped], rankings.codes[dropped]] = True
    return rest


def _log_total(f: NDArray[np.float64]) -> NDArray[np.float64]:
    largest = f.max(axis=0)
    return np.asarray(largest + np.log(np.exp(f - largest).sum(axis=0)))


def _tied_log_prob(theirs: NDArray[np.float64], later: NDArray[np.float64], taken: int) -> Floats:
    """Return the log-probability that ``taken`` items of a group come before all later items."""
    if np.isneginf(later).all():
        return np.zeros(later.size)
    result = np.empty(later.size)
    for rows in row_blocks(later.size, len(theirs) * n_nodes(len(theirs)), BLOCK_CELLS // 4):
        result[rows] = TiedChoice(theirs[:, rows].T, later[rows], taken).log_prob
    return result


# -------------------------------------------------------------------- Babington-Smith


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

    Attributes
    ----------
    log_chance : ndarray of shape (rankings,)
        The log-weight of each ranking where all scores are equal: 0, without the normaliser.
    """

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        refuse_partial(rankings, NO_SUBSETS)
        shortest, longest = int(rankings.lengths.min()), int(rankings.lengths.max())
        if shortest != longest:
            row = int(np.argmin(rankings.lengths))
            raise RankshotError(
                f"one-vs-one scores need rankings of one length: ranking {row} (of "
                f"{rankings.targets[row]!r}) has {shortest} items, others have {longest}. Use "
                f"k={shortest}, or scores with one column per class"
            )
        self.n_rankings = len(rankings)
        self.n_items = rankings.n_items
        self._column, self._sign = pair_columns(self.n_items)
        self._n_pairs = self.n_items * (self.n_items - 1) // 2
        self._rankings = rankings
        self._weights = stage_weights(rankings, decay)
        self.log_chance = np.zeros(len(rankings))
        self._tied = rows_with_tied_choices(rankings)
        self._strict = np.setdiff1d(np.arange(len(rankings)), self._tied)
        self._design = self._signs_of_lists(rankings[self._strict], decay)

    def log_prob_by_ranking(self, values: Floats) -> NDArray[np.float64]:
        """Return log P(π|x) without its normaliser, with one row per ranking.

        Parameters
        ----------
        values : ndarray of shape (n, C (C - 1) / 2)
            Scores, with one row per input.
        """
        # Thousands of scores are added: single precision is not enough.
        f = np.ascontiguousarray(values.T, np.float64)
        result = np.empty((self.n_rankings, f.shape[1]))
        result[self._strict] = self._design @ f
        for row in self._tied:
            parts = self.stage_log_probs(row, f)
            result[row] = sum(stage.weight * stage.log_prob for stage in parts)
        return result

    def stage_log_probs(self, row: int, f: Floats) -> Iterator[StageLogProb]:
        """Yield the stages of a ranking, the first one first, with log-weights; their chance is 0.

        Parameters
        ----------
        row : int
            The number of the ranking.
        f : ndarray of shape (C (C - 1) / 2, n)
            Scores, with one column per input.
        """
        left = np.ones(self.n_items, bool)
        place = 0
        for members, taken in iterate_choices(self._rankings[row]):
            row_sums = self._row_sums(members, left) @ f
            single = len(members) == 1
            part = row_sums[0] if single else self._tied_part(members, taken, row_sums, f)
            yield StageLogProb(members, part, 0.0, float(self._weights[row, place]))
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


# -------------------------------------------------------------------- by the kind of scores


Scorer = PlackettLuceScorer | BabingtonSmithScorer


class Scorers:
    """The scorers of some rankings for every kind of scores; each is built on first use."""

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        self._rankings = rankings
        self._decay = decay
        self._made: dict[bool, Scorer] = {}

    def get_scorer(self, kind: Kind) -> Scorer:
        """Return the scorer for one kind of scores: Babington-Smith for one-vs-one."""
        pairs = kind == "one-vs-one"
        if pairs not in self._made:
            model = BabingtonSmithScorer if pairs else PlackettLuceScorer
            self._made[pairs] = model(self._rankings, self._decay)
        return self._made[pairs]

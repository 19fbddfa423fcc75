"""P(π|x) on arrays of any library: the formulas of the scorers, without branches.

The scorers of NumPy arrays, in `scorers`, are faster on a CPU. These run on any device, have
gradients, and become graphs of ONNX. All arrays have one row per input.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from rankshot.core.arrays import (
    LEAST,
    Array,
    Constants,
    Library,
    Lost,
    largest,
    logaddexp,
    logsumexp,
)
from rankshot.core.errors import RankshotError
from rankshot.ranking.matrices import group_by_place, listed_orders
from rankshot.ranking.models.tie_integral import tie_nodes
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.likelihoods.scorers import BabingtonSmithScorer, log_chance, stage_weights

NODE_TOLERANCE = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-14}
"""The relative error of the probability that tied items come next."""
FEW_CELLS = 256
"""Up to this number of columns, the scores of all places are gathered at once."""
HIGHEST_LOG_TIME = 80.0
"""At this time every item has rung; later times would overflow."""


class _Tie(NamedTuple):
    """Ties of one size at one place of some lists.

    ``items`` has one row per tied item and one column per list; ``taken`` of the items count.
    """

    end: int
    taken: int
    rows: NDArray[np.int64]
    items: NDArray[np.int64]
    weights: NDArray[np.float64]
    has_later: NDArray[np.bool_]


class PlackettLuceFormula:
    r"""log P(π|x) of many rankings, minus its value where all scores are equal (equation 14).

    Every ranking is a list of items; tied items are next to each other. At each place, the
    logarithm of the total worth of this item and all later ones is kept, from the last place to
    the first:

    .. math:: L_i = \log (e^{L_{i+1}} + e^{f_{\pi^{-1}(i)}}), \quad
              \log P = \sum_i w_i (f_{\pi^{-1}(i)} - L_i)

    The items of a tie have the weight 0 in this sum, and an integral of their own.
    """

    def __init__(self, rankings: Rankings, decay: float) -> None:
        self.n_items, self.n_rankings = rankings.n_items, len(rankings)
        stages = stage_weights(rankings, decay)
        self._chance = log_chance(rankings, stages)
        begin, size, row = group_by_place(rankings)
        is_placed = begin < rankings.lengths[row]
        # The items after the first K of a top-K list are the rest. A subset ranking has no rest;
        # the items that it lists after its first K have no weight.
        self._order = listed_orders(rankings).T.astype(np.int64)
        self._weights = np.zeros(self._order.shape)
        single = is_placed & (size == 1)
        self._weights[begin[single], row[single]] = stages[row[single], begin[single]]
        self._member = np.zeros((self.n_rankings, self.n_items), bool)
        self._member[rankings.entry_rows, rankings.codes] = True
        self._has_rest = ~rankings.is_subset & (rankings.n_listed < self.n_items)
        # Plain values: a compiler would record operations on arrays.
        self._all_have_rest = bool(self._has_rest.all())
        self._is_padded = bool((self._order == self.n_items).any())
        self._n_places = len(self._order)
        self._is_weighted = (self._weights != 1).any(axis=1).tolist()
        self._n_largest = 1 + int(rankings.n_listed[self._has_rest].max(initial=0))
        tied = is_placed & (size > 1)
        taken = np.minimum(size, rankings.lengths[row] - begin)
        keys = np.column_stack([begin, size, taken])[tied]
        self._ties = [
            self._gather_ties(row[tied][(keys == key).all(axis=1)], key.tolist(), stages)
            for key in np.unique(keys, axis=0)
        ]

    def _gather_ties(self, rows: NDArray[Any], key: list[int], stages: NDArray[np.float64]) -> _Tie:
        """Gather the ties of some lists that have the same begin, size and number taken."""
        begin, size, taken = key
        end = begin + size
        weights = np.zeros((rows.size, self.n_rankings))
        weights[np.arange(rows.size), rows] = stages[rows, begin]
        # The integral is of sets; one of their orders is as probable as any other.
        self._chance[rows] += stages[rows, begin] * (gammaln(size + 1) - gammaln(size - taken + 1))
        goes_on = np.append(self._order, [[self.n_items] * self.n_rankings], axis=0)[end, rows]
        has_later = self._has_rest[rows] | (goes_on < self.n_items)
        return _Tie(end, taken, rows, self._order[begin:end, rows], weights, has_later)

    def constants(self, dtype: np.dtype[np.floating]) -> Constants:
        """Return the arrays that the formula needs, for one precision."""
        constants = {
            "number": np.arange(self.n_items),
            "order": self._order,
            "weights": self._weights,
            "chance": self._chance,
            "member": self._member.T,
            "has_rest": self._has_rest,
            "unplaced": (self._member < self._has_rest[:, None]).T.astype(np.float64),
        }
        for i, tie in enumerate(self._ties):
            nodes = tie_nodes(tie.taken, NODE_TOLERANCE[dtype])
            constants |= {
                f"tie{i}_rows": tie.rows,
                f"tie{i}_items": tie.items,
                f"tie{i}_weights": tie.weights,
                f"tie{i}_has_later": tie.has_later,
                f"tie{i}_nodes": nodes,
                f"tie{i}_log_density": nodes - np.exp(nodes) + np.log(nodes[1] - nodes[0]),
            }
        return constants

    @property
    def cells_per_input(self) -> int:
        """Roughly the number of cells of the largest temporary arrays."""
        tied = max((8 * 200 * tie.rows.size for tie in self._ties), default=0)
        return 4 * (self.n_items + self.n_rankings) + tied

    def __call__(self, f: Array, c: Constants, xp: Library, lost: Lost) -> Array:
        """Return one column per ranking, from scores ``f`` and the `constants` in one library."""
        # What all scores of an input have in common would cost digits.
        top, bottom = largest(f, xp, 1), -largest(-f, xp, 1)
        common = xp.where(top < 0, top, xp.where(bottom > 0, bottom, 0.0))
        f = f - common
        if lost is None:
            return self._log_prob(f, self._log_rest(f, c, xp), c, xp)
        log_rest, is_lost = self._log_rest_by_product(f, top - common, c, xp)
        lost.append(is_lost)
        return self._log_prob(f, log_rest, c, xp)

    def _log_prob(self, f: Array, later: Array, c: Constants, xp: Library) -> Array:
        items = self._listed_scores(f, c, xp)
        result = -c["chance"]
        for place in range(self._n_places, -1, -1):
            for i, tie in enumerate(self._ties):
                if tie.end == place:
                    log_prob = self._tie_log_prob(i, f, later, c, xp)
                    result = result + log_prob @ c[f"tie{i}_weights"]
            if place > 0:
                item = items(place - 1)
                later = logaddexp(later, item, xp)
                term = item - later
                if self._is_weighted[place - 1]:
                    term = c["weights"][place - 1, :] * term
                result = result + term
        return result

    def _listed_scores(self, f: Array, c: Constants, xp: Library) -> Callable[[int], Array]:
        """Return a function from a place to the scores of the items that the lists have there."""
        if self._is_padded:
            # A column of worth 0, which shorter lists take at their last places.
            f = xp.concat([f, xp.full_like(f[:, :1], LEAST)], axis=1)
        n = self.n_rankings
        if n * self._n_places <= FEW_CELLS:
            # Few columns take as long as one.
            every = xp.take(f, xp.reshape(c["order"], (-1,)), axis=1)
            return lambda place: every[:, place * n : (place + 1) * n]
        return lambda place: xp.take(f, c["order"][place, :], axis=1)

    def _log_rest_by_product(
        self, f: Array, top: Array, c: Constants, xp: Library
    ) -> tuple[Array, Array]:
        """Return the same as `_log_rest` by a matrix product, and where worths underflow."""
        total = xp.exp(f - top) @ c["unplaced"]
        if not self._all_have_rest:
            total = xp.where(c["has_rest"], total, 1.0)
        limits = xp.finfo(f.dtype)
        least = float(limits.smallest_normal / limits.eps)
        is_lost = xp.any(total < least, axis=1)
        log_rest = xp.log(xp.where(total < least, least, total)) + top
        return self._without_rest(log_rest, c, xp), is_lost

    def _without_rest(self, log_rest: Array, c: Constants, xp: Library) -> Array:
        """Put log 0 where no items are left after a list."""
        return log_rest if self._all_have_rest else xp.where(c["has_rest"], log_rest, LEAST)

    def _log_rest(self, f: Array, c: Constants, xp: Library) -> Array:
        """Return the log of the total worth of the items after each list, for any scores.

        m is the largest score of an item that is not in the list. It is among the K + 1 largest of
        the input. From the total worth of all items up to m, those of the list are subtracted.
        Each of these is at most m, which remains: so few digits cancel.
        """
        m, up_to_m = LEAST, LEAST
        for i, score, total in reversed(self._largest_items(f, c, xp)):
            is_outside = ~xp.take(c["member"], i, axis=0)
            m = xp.where(is_outside, score, m)
            up_to_m = xp.where(is_outside, total, up_to_m)
        items, left = self._listed_scores(f, c, xp), 1.0
        for place in range(self._n_places):
            item = items(place)
            left = left - xp.exp(xp.where(item <= m, item - up_to_m, LEAST))
        least = float(xp.finfo(f.dtype).eps)
        log_rest = up_to_m + xp.log(xp.where(left > least, left, least))
        return self._without_rest(log_rest, c, xp)

    def _largest_items(
        self, f: Array, c: Constants, xp: Library
    ) -> list[tuple[Array, Array, Array]]:
        """Return the items with the largest scores, the largest first.

        For each: its number, its score, and the log of the total worth of all items up to this
        score.
        """
        items, scores = [], []
        for _ in range(self._n_largest):
            i = xp.argmax(f, axis=1)
            is_largest = c["number"] == i[:, None]
            items.append(i)
            # Not the maximum: among equal scores, its gradient would be shared.
            scores.append(xp.sum(xp.where(is_largest, f, 0.0), axis=1, keepdims=True))
            f = xp.where(is_largest, LEAST, f)
        totals = [logsumexp(f, xp, 1)]
        for score in reversed(scores):
            totals.append(logaddexp(totals[-1], score, xp))
        totals = totals[:0:-1]
        for j in range(1, len(totals)):
            # Items with equal scores have the same total.
            totals[j] = xp.where(scores[j] == scores[j - 1], totals[j - 1], totals[j])
        return list(zip(items, scores, totals, strict=True))

    def _tie_log_prob(self, i: int, f: Array, later: Array, c: Constants, xp: Library) -> Array:
        """Return the log-probability that enough tied items precede all later ones.

        It is the integral of `rankshot.ranking.models.tie_integral`, with logarithms throughout.
        """
        tie = self._ties[i]
        has_later = c[f"tie{i}_has_later"]
        log_rest = xp.where(has_later, xp.take(later, c[f"tie{i}_rows"], axis=1), 0.0)
        ratios = [
            xp.take(f, c[f"tie{i}_items"][item, :], axis=1) - log_rest
            for item in range(len(tie.items))
        ]
        log_tail = self._log_at_least(ratios, tie.taken, c[f"tie{i}_nodes"], xp)
        log_prob = logsumexp(log_tail + c[f"tie{i}_log_density"], xp, 2)[:, :, 0]
        return xp.where(has_later, log_prob, 0.0)

    @staticmethod
    def _log_at_least(ratios: list[Array], taken: int, nodes: Array, xp: Library) -> Array:
        """Return log P(N ≥ taken) at each node, the last axis."""
        least = log(xp.finfo(ratios[0].dtype).eps)
        # log P(N = c) for c below taken, and last log P(N ≥ taken).
        state: list[Any] = [0.0] + [LEAST] * taken
        for ratio in ratios:
            y = ratio[:, :, None] + nodes
            y = xp.where(y < HIGHEST_LOG_TIME, y, HIGHEST_LOG_TIME)
            early, missed = y < least, -xp.exp(y)
            # log(1 - exp(-e^y)), which is y for small y.
            rung = xp.where(early, y, xp.log(-xp.expm1(xp.where(early, -1.0, missed))))
            moved = [count + rung for count in state[:-1]]
            kept = [count + missed for count in state[:-1]] + [state[-1] + 0.0 * missed]
            state = kept[:1] + [logaddexp(*both, xp) for both in zip(kept[1:], moved, strict=True)]
        return state[-1]


class BabingtonSmithFormula:
    """log P(π|x) of many strict rankings under one-vs-one scores, without normaliser (equation 15).

    The parameters are those of `BabingtonSmithScorer`.
    """

    def __init__(self, rankings: Rankings, decay: float) -> None:
        scorer = BabingtonSmithScorer(rankings, decay)
        if scorer.has_ties:
            raise RankshotError(
                "rankings with ties and one-vs-one scores need NumPy arrays: the mean over the "
                "orders of a tie is computed there only"
            )
        self._design = scorer.design.toarray().T

    def constants(self, dtype: np.dtype[np.floating]) -> Constants:  # noqa: ARG002
        """Return the arrays that the formula needs."""
        return {"design": self._design}

    @property
    def cells_per_input(self) -> int:
        """The number of scores of an input."""
        return len(self._design)

    def __call__(self, f: Array, c: Constants, xp: Library, lost: Lost) -> Array:  # noqa: ARG002
        """Return one column per ranking."""
        return f @ c["design"]


ArrayFormula = PlackettLuceFormula | BabingtonSmithFormula

"""P(π|x), the probability of rankings under the scores of a classifier.

Scores with one column per class define a Plackett-Luce model of rankings, one-vs-one scores a
Babington-Smith model. Both can give the first places of a ranking more weight. The formulas are
for arrays of any library: they run on any device, have gradients, and become graphs of ONNX. Their
arrays have one row per input. `GroupedScorer` is faster on NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import comb, log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import gammaln

from rankshot.core.arrays import (
    BLOCK_CELLS,
    LEAST,
    Array,
    Constants,
    Dtype,
    Library,
    Lost,
    largest,
    logaddexp,
    logsumexp,
    row_blocks,
)
from rankshot.core.errors import RankshotError, format_count
from rankshot.ranking.checks import refuse_partial
from rankshot.ranking.matrices import (
    iterate_choices,
    listed_orders,
    mark_ranked,
    rows_with_tied_choices,
)
from rankshot.ranking.models.babington_smith import (
    NO_SUBSETS,
    log_sum_of_choices,
    require_affordable,
)
from rankshot.ranking.models.tie_integral import tie_nodes, tied_log_prob
from rankshot.ranking.rankings import Rankings
from rankshot.zeroshot.scores import Kind, pair_columns

Floats = NDArray[np.floating]
Doubles = NDArray[np.float64]
Ints = NDArray[np.integer]
FLOAT64 = np.dtype(np.float64)
TIE_TOLERANCE = {np.dtype(np.float32): 1e-7, FLOAT64: 1e-14}
"""The relative error of the probability that tied items come next."""
FEW_CELLS = 256
"""Up to this number of columns, the scores of all places are gathered at once."""
HIGHEST_LOG_TIME = 80.0
"""By this time every item has arrived; later times would overflow."""


def stage_weights(rankings: Rankings, decay: float) -> NDArray[np.float64]:
    """Return the weight r^-decay of the r-th place, one row per ranking; 0 after its end.

    Tied items share the mean weight of the places that they take, because their order is
    unknown.
    """
    longest = int(rankings.lengths.max(initial=0))
    place = np.arange(longest)
    weights = np.where(place < rankings.lengths[:, None], (1.0 + place) ** -decay, 0.0)
    begin, _, row, taken = rankings.groups
    for first, m, r in zip(begin, taken, row, strict=True):
        if m > 1:
            weights[r, first : first + m] = weights[r, first : first + m].mean()
    return weights


def log_chance(rankings: Rankings, weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted log-probability of each ranking where all scores are equal.

    At each place, one of the remaining items is chosen uniformly.
    """
    left = rankings.n_compared[:, None] - np.arange(weights.shape[1])
    return -np.asarray((weights * np.log(np.maximum(left, 1))).sum(axis=1))


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


class PlackettLuceScorer:
    r"""log P(π|x) of many rankings, minus its value where all scores are equal.

    By the equation 14 of Hamm and Belkin (2015),

    .. math:: P(\pi|x) = \prod_{i=1}^K \frac{e^{f_{\pi^{-1}(i)}(x)}}
              {\sum_{j \ge i} e^{f_{\pi^{-1}(j)}(x)}}

    Every ranking is a list of items; tied items are next to each other. At each place, the total
    worth of this item and all later ones is accumulated, from the last place to the first. It is
    never the total minus the items already placed, because this difference cancels for a confident
    classifier. Where worths underflow, logarithms of totals are accumulated instead. The
    probability of a tied ranking is the mean over the orders that it allows, an integral.

    Parameters
    ----------
    rankings : Rankings
        Full, top-K or subset rankings.
    decay : float
        The logarithm of the i-th factor has the weight i^-decay. For 0 all factors have the
        same weight, as in the equation.
    """

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        self.n_items, self.n_rankings = rankings.n_items, len(rankings)
        stages = stage_weights(rankings, decay)
        self._chance = log_chance(rankings, stages)
        begin, size, row, taken = rankings.groups
        is_placed = taken > 0
        # The items after the first K of a top-K list are the rest. A subset ranking has no rest;
        # the items that it lists after its first K have no weight.
        self._order = listed_orders(rankings).T.astype(np.int64)
        self._weights = np.zeros(self._order.shape)
        single = is_placed & (size == 1)
        self._weights[begin[single], row[single]] = stages[row[single], begin[single]]
        codes = self._order[begin[single], row[single]]
        cells = stages[row[single], begin[single]], (codes, row[single])
        self._placed = csr_array(cells, (self.n_items, self.n_rankings))
        self._has_rest = ~rankings.is_subset & (rankings.n_listed < self.n_items)
        # Plain values: a compiler would record operations on arrays.
        self._all_have_rest = bool(self._has_rest.all())
        self._is_padded = bool((self._order == self.n_items).any())
        # Of a list without a rest, the last item has the smallest total.
        last = listed_orders(rankings)[np.arange(self.n_rankings), rankings.n_listed - 1]
        self._after = np.repeat(self._has_rest[:, None], self.n_items, axis=1)
        self._after[rankings.entry_rows, rankings.codes] = False
        self._after[~self._has_rest, last[~self._has_rest]] = True
        self._n_places = len(self._order)
        self._kept: Constants | None = None
        self._is_weighted = (self._weights != 1).any(axis=1).tolist()
        tied = is_placed & (size > 1)
        keys = np.column_stack([begin, size, taken])[tied]
        self._ties = [
            self._gather_ties(row[tied][(keys == key).all(axis=1)], key.tolist(), stages)
            for key in np.unique(keys, axis=0)
        ]

    def _gather_ties(self, rows: NDArray[np.intp], key: list[int], stages: Doubles) -> _Tie:
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

    def constants(self, dtype: Dtype) -> Constants:
        """Return the arrays that the formula needs, for one precision."""
        return self._list_constants(dtype) | {"placed": self._placed.toarray()}

    def _list_constants(self, dtype: Dtype) -> Constants:
        constants = {
            "order": self._order,
            "weights": self._weights,
            "chance": self._chance,
            "is_after": self._after,
            "placed": self._placed,
            "has_rest": self._has_rest,
            "after": self._after.T.astype(np.float64),
        }
        for i, tie in enumerate(self._ties):
            nodes = tie_nodes(tie.taken, TIE_TOLERANCE[dtype])
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
        """Roughly the number of cells of the largest temporary arrays of other libraries."""
        tied = max((8 * 200 * tie.rows.size for tie in self._ties), default=0)
        return self.n_items * self.n_rankings + tied

    def __call__(self, f: Array, c: Constants, xp: Library, lost: Lost) -> Array:
        """Return one column per ranking, from scores ``f`` and the `constants` in one library."""
        # What all scores of an input have in common would cost digits.
        top, bottom = largest(f, xp, 1), -largest(-f, xp, 1)
        common = xp.where(top < 0, top, xp.where(bottom > 0, bottom, 0.0))
        f = f - common
        if lost is None:
            return self._log_prob(f, self._log_rest(f, c, xp), c, xp)
        result, is_lost = self._log_prob_by_worths(f, top - common, c, xp)
        lost.append(is_lost)
        return result

    def log_prob(self, values: Floats) -> Doubles:
        """Return the same for a NumPy array, one row per input."""
        f, lost = np.asarray(values, np.float64), list[Array]()
        if self._kept is None:
            self._kept = self._list_constants(FLOAT64)
        result = self(f, self._kept, np, lost)
        again = np.flatnonzero(lost[0])
        for rows in row_blocks(again.size, self.n_items * self.n_rankings):
            result[again[rows]] = self(f[again[rows]], self._kept, np, None)
        return np.asarray(result)

    def _log_prob_by_worths(
        self, f: Array, top: Array, c: Constants, xp: Library
    ) -> tuple[Array, Array]:
        """Return the same as `_log_prob` from sums of worths, and where these underflow."""
        f = f - top
        limits = xp.finfo(f.dtype)
        least = float(limits.smallest_normal)
        # No total is 0, so that none has an infinite logarithm.
        worths = xp.exp(xp.where(f < log(least), log(least), f))
        total = worths @ c["after"]
        is_lost = xp.any(total < self.n_items * least / float(limits.eps), axis=1)
        if not self._all_have_rest:
            total = xp.where(c["has_rest"], total, least)
        result, listed = f @ c["placed"] - c["chance"], self._listed_scores(worths, c, xp, least)
        for place in range(self._n_places, -1, -1):
            for i, tie in enumerate(self._ties):
                if tie.end == place:
                    log_prob = self._tie_log_prob(i, f, xp.log(total), c, xp)
                    result = result + log_prob @ c[f"tie{i}_weights"]
            if place > 0:
                total = total + listed(place - 1)
                log_total = xp.log(total)
                if self._is_weighted[place - 1]:
                    log_total = c["weights"][place - 1, :] * log_total
                result = result - log_total
        return result, is_lost

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

    def _listed_scores(
        self, f: Array, c: Constants, xp: Library, none: float = LEAST
    ) -> Callable[[int], Array]:
        """Return a function from a place to the scores of the items that the lists have there."""
        if self._is_padded:
            # A column of worth 0, which shorter lists take at their last places.
            f = xp.concat([f, xp.full_like(f[:, :1], none)], axis=1)
        n = self.n_rankings
        if n * self._n_places <= FEW_CELLS:
            # Few columns take as long as one.
            every = xp.take(f, xp.reshape(c["order"], (-1,)), axis=1)
            return lambda place: every[:, place * n : (place + 1) * n]
        return lambda place: xp.take(f, c["order"][place, :], axis=1)

    def _log_rest(self, f: Array, c: Constants, xp: Library) -> Array:
        """Return the log of the total worth of the items after each list, for any scores."""
        log_rest = logsumexp(xp.where(c["is_after"], f[:, None, :], LEAST), xp, 2)[:, :, 0]
        return log_rest if self._all_have_rest else xp.where(c["has_rest"], log_rest, LEAST)

    def _tie_log_prob(self, i: int, f: Array, later: Array, c: Constants, xp: Library) -> Array:
        """Return the log-probability that enough tied items precede all later ones.

        It is the integral of `rankshot.ranking.models.tie_integral`, with logarithms throughout.
        """
        tie = self._ties[i]
        has_later = c[f"tie{i}_has_later"]
        log_rest = xp.where(has_later, xp.take(later, c[f"tie{i}_rows"], axis=1), 0.0)
        if xp is np:
            # The same integral, with as few nodes as the scores need.
            parts = [
                tied_log_prob(f[:, items].T, rest, tie.taken, TIE_TOLERANCE[FLOAT64])
                for items, rest in zip(tie.items.T, log_rest.T, strict=True)
            ]
            return np.where(has_later, np.array(parts).T, 0.0)
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
        state: list[Array] = [0.0] + [LEAST] * taken
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


class BabingtonSmithScorer:
    r"""log P(π|x) of many rankings for many inputs, up to a constant that depends only on x.

    The equation 15 of Hamm and Belkin (2015), from pairwise scores f_ij = -f_ji:

    .. math:: P(\pi|x) \propto \prod_{i=1}^K \prod_{j > i} e^{f_{\pi^{-1}(i) \pi^{-1}(j)}(x)}

    Its logarithm is linear in the scores. The constant differs between rankings of different
    lengths, so all rankings must have one length. The probability of a tied ranking is the mean
    over the orders that it allows; it is computed for NumPy arrays only. The parameters are those
    of `PlackettLuceScorer`.
    """

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        refuse_partial(rankings, NO_SUBSETS)
        shortest, longest = int(rankings.lengths.min()), int(rankings.lengths.max())
        if shortest != longest:
            row = int(np.argmin(rankings.lengths))
            raise RankshotError(
                f"one-vs-one scores need rankings of one length: ranking {row} (of "
                f"{rankings.targets[row]!r}) has {format_count(shortest, 'item')}, others have "
                f"{longest}. Use k={shortest}, or scores with one column per class"
            )
        self._n_items = rankings.n_items
        self._column, self._sign = pair_columns(self._n_items)
        self._rankings, self._weights = rankings, stage_weights(rankings, decay)
        self._tied = rows_with_tied_choices(rankings)
        self.design = self._sum_pairs(np.setdiff1d(np.arange(len(rankings)), self._tied))

    def _sum_pairs(self, rows: NDArray[np.intp]) -> csr_array:
        """Return the matrix from scores to the log-weights of strict rankings, as columns."""
        n = len(self._rankings)
        design = csr_array((self._sign.shape[0] * (self._n_items - 1) // 2, n), dtype=np.float64)
        left = np.ones((rows.size, self._n_items), bool)
        starts = self._rankings.starts[rows]
        for place in range(self._weights.shape[1] if rows.size else 0):
            items = self._rankings.codes[starts + place]
            left[np.arange(rows.size), items] = False
            row, other = np.nonzero(left)
            # Strict rankings of one length have the same weights.
            weight = float(self._weights[rows[0], place])
            signs = weight * self._sign[items[row], other]
            cells = signs, (self._column[items[row], other], rows[row])
            design += csr_array(cells, shape=design.shape)
        return design

    def constants(self, dtype: Dtype) -> Constants:  # noqa: ARG002
        """Return the arrays that the formula needs."""
        if self._tied.size:
            raise RankshotError(
                "rankings with ties and one-vs-one scores need NumPy arrays: the mean over the "
                "orders of a tie is computed there only"
            )
        return {"design": self.design.toarray()}

    @property
    def cells_per_input(self) -> int:
        """The number of scores of an input, and of rankings."""
        return sum(self.design.shape)

    def __call__(self, f: Array, c: Constants, xp: Library, lost: Lost) -> Array:  # noqa: ARG002
        """Return one column per ranking."""
        return f @ c["design"]

    def log_prob(self, values: Floats) -> Doubles:
        """Return the same for a NumPy array, one row per input."""
        # Thousands of scores are added: single precision is not enough.
        f = np.asarray(values, np.float64)
        result = np.asarray(f @ self.design)
        for row in self._tied:
            left, place = np.ones(self._n_items, bool), 0
            for members, taken in iterate_choices(self._rankings[row]):
                part = self._log_choice(members, taken, left, f.T)
                result[:, row] += self._weights[row, place] * part
                left[members] = False
                place += taken
        return result

    def _log_choice(self, tied: Ints, taken: int, left: NDArray[np.bool_], f: Doubles) -> Doubles:
        """Return the logarithm of the mean weight over the orders of the next items."""
        g = len(tied)
        require_affordable(g, taken)
        column, sign = self._column[tied], self._sign[tied]
        sums = np.array([s[left] @ f[c[left]] for c, s in zip(column, sign, strict=True)])
        if g == 1:
            return np.asarray(sums[0])
        result = np.empty(f.shape[1])
        cells = max(comb(g, m) for m in range(1, taken + 1)) + g * g
        for rows in row_blocks(f.shape[1], cells, BLOCK_CELLS // 4):
            log_odds = f[column[:, tied], rows] * sign[:, tied, None]
            result[rows] = log_sum_of_choices(log_odds, sums[:, rows], taken)
        return np.asarray(result - gammaln(g + 1) + gammaln(g - taken + 1))


Scorer = PlackettLuceScorer | BabingtonSmithScorer


class Scorers:
    """The scorers of some rankings for every kind of scores; each is built on first use.

    The parameters are those of the scorers.
    """

    def __init__(self, rankings: Rankings, decay: float = 0.0) -> None:
        self._parameters = rankings, decay
        self._made: dict[bool, Scorer] = {}

    def get_scorer(self, kind: Kind) -> Scorer:
        """Return the scorer for one kind of scores: Babington-Smith for one-vs-one."""
        pairs = kind == "one-vs-one"
        if pairs not in self._made:
            model = BabingtonSmithScorer if pairs else PlackettLuceScorer
            self._made[pairs] = model(*self._parameters)
        return self._made[pairs]


# ---- NumPy arrays, added up over groups of rankings
#
# The results are the same. It is about twice as fast for strict rankings in float64, four times in
# float32: arrays have one column per input, logarithms are taken of products, and float32 stays
# float32.

FLOAT32 = np.dtype(np.float32)
SPARSE = 0.05
"""Below this share of cells that are not 0, a sparse matrix is faster than a dense one."""
LARGE = 30.0
"""Scores that are further below the largest are added up in double precision."""
LEAST_TOTAL = {FLOAT32: 1e-30, FLOAT64: 1e-290}
"""Totals below this (the largest worth is 1) may have lost terms by underflow."""


class GroupedScorer:
    """The sum of the log-probabilities of a scorer over the rankings of each group.

    Parameters
    ----------
    scorer : PlackettLuceScorer or BabingtonSmithScorer
        Knows P(π|x) of each ranking.
    rankings, decay
        Those of the scorer.
    groups : ndarray of int
        A number for each ranking, from 0.
    """

    def __init__(
        self, scorer: Scorer, rankings: Rankings, decay: float, groups: NDArray[np.intp]
    ) -> None:
        self._scorer = scorer
        every = np.arange(len(rankings))
        self._by_group = csr_array((np.ones(every.size), (groups, every)))
        tied = rows_with_tied_choices(rankings)
        strict = np.setdiff1d(every, tied)
        self._tied = type(scorer)(rankings[tied], decay) if tied.size else None
        self._tied_by_group = self._by_group[:, tied]
        self._strict: _StrictPairs | _StrictLists
        if isinstance(scorer, BabingtonSmithScorer):
            self._strict = _StrictPairs(self._by_group @ scorer.design.T)
        else:
            n_groups = self._by_group.shape[0]
            self._strict = _StrictLists(rankings[strict], decay, groups[strict], n_groups)

    def log_prob(self, values: Floats) -> Floats:
        """Return one row per group and one column per input."""
        result, lost = self._strict.log_prob(values)
        if self._tied is not None:
            result += self._tied_by_group @ self._tied.log_prob(values).T
        if lost.size:
            result[:, lost] = self._by_group @ self._scorer.log_prob(values[lost]).T
        return result


class _StrictPairs:
    """log P(π|x) by one-vs-one scores: a matrix from scores to groups."""

    def __init__(self, design: csr_array) -> None:
        self._design = design.tocsr()

    def log_prob(self, values: Floats) -> tuple[Floats, NDArray[np.intp]]:
        """Return one row per group; no input is lost."""
        # Thousands of scores are added: single precision is not enough.
        f = np.ascontiguousarray(values.T, np.float64)
        return np.asarray(self._design @ f), np.empty(0, np.intp)


class _Lists(NamedTuple):
    """Strict rankings of one length, in groups of ``size``, with one column per ranking.

    The columns are the first rankings of all groups, then the second ones, and so on.
    ``order[i]`` holds the i-th item of each ranking, by its place among the listed items; its term
    has the weight ``weights[i]``. ``rest``, with one row per ranking, marks the listed items after
    all placed items; the last column is for the unlisted ones.
    """

    groups: NDArray[np.intp]
    size: int
    order: NDArray[np.intp]
    weights: NDArray[np.float64]
    rest: NDArray[np.bool_]


class _StrictLists:
    """log P(π|x) of strict rankings, by totals of worths from the last place to the first.

    As in `PlackettLuceScorer`, it is relative to its value where all scores are equal.
    """

    def __init__(
        self, rankings: Rankings, decay: float, groups: NDArray[np.intp], n_groups: int
    ) -> None:
        self._rankings, self._groups = rankings, groups
        self._n_groups = n_groups
        self._weights = stage_weights(rankings, decay)
        chance = log_chance(rankings, self._weights)
        self._chance = np.bincount(groups, chance, minlength=n_groups)[:, None]
        unlisted = np.ones(rankings.n_items, bool)
        unlisted[rankings.codes] = False
        # The listed items come first.
        self._columns = np.argsort(unlisted, kind="stable")
        self._n_listed = rankings.n_items - int(unlisted.sum())
        self._lists = list(self._gather())
        self._numerators = self._sum_placed()
        self._converted: dict[Dtype, tuple[Floats | csr_array, list[Floats]]] = {}

    def _gather(self) -> Iterator[_Lists]:
        """Yield the rankings by their length and the size of their groups."""
        rankings = self._rankings
        after = np.repeat(~rankings.is_subset[:, None], rankings.n_items, axis=1)
        after[rankings.entry_rows, rankings.codes] = ~mark_ranked(rankings)
        after = after[:, self._columns[: self._n_listed]]
        place_of = np.argsort(self._columns)
        for k in np.unique(rankings.lengths):
            rows = np.flatnonzero(rankings.lengths == k)
            rows = rows[np.argsort(self._groups[rows], kind="stable")]
            groups, first, sizes = np.unique(
                self._groups[rows], return_index=True, return_counts=True
            )
            for size in np.unique(sizes):
                of_size = sizes == size
                theirs = rows[first[of_size] + np.arange(size)[:, None]].ravel()
                codes = rankings.codes[rankings.starts[theirs] + np.arange(k)[:, None]]
                # Strict rankings of one length have the same weights.
                weights = self._weights[theirs[0], :k]
                rest = np.column_stack([after[theirs], ~rankings.is_subset[theirs]])
                yield _Lists(groups[of_size], int(size), place_of[codes], weights, rest)

    def _sum_placed(self) -> Floats | csr_array:
        """Return the matrix from scores to the weighted sum over the placed items of each group."""
        matrix = csr_array((self._n_groups, self._n_listed))
        for lists in self._lists:
            k, n = lists.order.shape
            row, weights = np.tile(lists.groups, lists.size * k), np.repeat(lists.weights, n)
            matrix += csr_array((weights, (row, lists.order.ravel())), matrix.shape)
        return matrix if matrix.nnz < SPARSE * np.prod(matrix.shape) else matrix.toarray()

    def log_prob(self, values: Floats) -> tuple[Floats, NDArray[np.intp]]:
        """Return one row per group, and the inputs in which worths underflow.

        It has the precision of the scores.
        """
        f, n_listed = values.T[self._columns], self._n_listed
        f -= f.max(axis=0)
        worths = np.exp(f)
        if n_listed < len(f):
            # The items that no ranking lists matter only by the sum of their worths.
            worths[n_listed] = worths[n_listed:].sum(axis=0)
        f, worths = f[:n_listed], worths[: n_listed + 1]
        # Sums of large numbers in float32 would depend on the order of the items.
        precise = FLOAT64 if f.min(initial=0) < -LARGE else f.dtype
        numerators, rests = self._convert(f.dtype)
        if precise != f.dtype:
            numerators = self._convert(precise)[0]
        result = np.asarray(numerators @ f.astype(precise, copy=False) - self._chance, f.dtype)
        least = np.full(len(values), np.inf, f.dtype)
        for lists, rest in zip(self._lists, rests, strict=True):
            # What underflows is computed again.
            with np.errstate(divide="ignore", invalid="ignore"):
                log_totals, smallest = _weighted_log_totals(lists, rest, worths, len(self._columns))
            if len(log_totals) == len(result):
                result -= log_totals
            else:
                result[lists.groups] -= log_totals
            np.minimum(least, smallest, out=least)
        return result, np.flatnonzero(least < LEAST_TOTAL[f.dtype])

    def _convert(self, dtype: Dtype) -> tuple[Floats | csr_array, list[Floats]]:
        """Return the matrices of placed and of unplaced items in some precision; kept."""
        if dtype not in self._converted:
            # Without unlisted items, there is no column for them.
            n = min(self._n_listed + 1, len(self._columns))
            rests = [lists.rest[:, :n].astype(dtype) for lists in self._lists]
            self._converted[dtype] = self._numerators.astype(dtype), rests
        return self._converted[dtype]


def _weighted_log_totals(
    lists: _Lists, rest: Floats, worths: Floats, n_items: int
) -> tuple[Floats, Floats]:
    """Return Σ weight · log(total) over the places of all rankings of each group.

    The second array holds the smallest total of each input. Logarithms take long: totals of equal
    weight are multiplied first.
    """
    total = rest @ worths
    taken = np.empty_like(total)
    shape = lists.groups.size, worths.shape[1]
    result, product = np.zeros(shape, total.dtype), np.empty(shape, total.dtype)
    n, weights = 0, lists.weights.tolist()
    for i in reversed(range(len(lists.order))):
        np.take(worths, lists.order[i], axis=0, out=taken, mode="clip")
        total += taken
        if i == len(lists.order) - 1:
            # The last place has the smallest total.
            smallest = total.min(axis=0)
            most = _most_factors(smallest, n_items)
        for j, factors in enumerate(total.reshape(lists.size, *shape), 1):
            np.multiply(product, factors, out=product) if n else np.copyto(product, factors)
            n += 1
            is_last = j == lists.size and (i == 0 or weights[i - 1] != weights[i])
            if is_last or n == most:
                np.log(product, out=product)
                product *= weights[i]
                result += product
                n = 0
    return result, smallest


def _most_factors(smallest: Floats, n_items: int) -> int:
    """Return how many totals can be multiplied without underflow or overflow.

    A total is at most the number of items, listed or not, as the largest worth is 1. Inputs whose
    totals lost digits are computed again, and do not count here.
    """
    least = smallest[smallest >= LEAST_TOTAL[smallest.dtype]].min(initial=1.0)
    most = -np.log(np.finfo(smallest.dtype).tiny)
    return max(1, int(most / max(-np.log(least), np.log(n_items), 1.0)))

r"""The mean distance between two of many rankings, from sums over the rankings.

Distances count pairs of items. With B[i, j] = 1 where a ranking puts i before j, the number of
pairs that two rankings put in opposite orders is Σ B_a[i, j] B_b[j, i]. So its sum over all b
depends only on Σ B_b, a table of items by items, and no two rankings are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.core.blocks import row_blocks
from rankshot.ranking.checks import refuse_partial
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.distances.kendall import count_ordered_pairs, kendall_distance
from rankshot.ranking.distances.shared_places import iterate_common_distances
from rankshot.ranking.layouts import group_by_place, levels
from rankshot.ranking.parts import AnyRankings, RankingParts, add_results, map_rows, reduce_parts
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
MOST_CELLS = 2**29
"""Cells of the tables of all pairs of rankings that are compared one by one: about a minute."""
MOST_LINKS = 2**23
"""Pairs of items that all rankings list, each for itself."""
BATCH = 64
"""Rankings that are compared at once: more of them take longer, and so do many small batches."""


# ---- The distance of `kendall_distance`
#
# With o the number of pairs that a ranking puts in order, those tied in b alone are o_a minus
# those ordered in both. So d(a, b) = |opposite| + max(o_a, o_b) - |ordered in both|
# = max(o_a, o_b) - Σ B_a[i, j] B_b[i, j].


def mean_kendall_distances(rankings: AnyRankings, weight: float) -> tuple[float, Floats]:
    """Return the mean distance between two different rankings, and that of each to the others.

    A ranking of weight w counts as w rankings; ``weight`` is the sum of all. For rankings in parts,
    the distances of each are a lazy array.
    """
    pairs = weight**2 - reduce_parts(rankings, _weight_of_own_pairs)
    if isinstance(rankings, Rankings) and len(rankings) < rankings.n_items:
        # A table of rankings by rankings is smaller than one of items by items.
        to_all = kendall_distance(rankings) @ rankings.weights
        return float(rankings.weights @ to_all) / pairs, to_all / _weight_of_others(
            rankings, weight
        )
    sums = reduce_parts(rankings, _sum_orders)
    total = sums.counts.sum_of_larger() - float((sums.before**2).sum())
    return max(total, 0.0) / pairs, map_rows(rankings, _distances_to_others, sums, weight)


def _weight_of_own_pairs(rankings: Rankings) -> float:
    """Return the weight of the pairs of a ranking and itself.

    A weight above 1 stands for equal rankings, which are different rankings of distance 0.
    """
    return float(_weight_once(rankings) @ rankings.weights)


def _weight_once(rankings: Rankings) -> Floats:
    return np.asarray(np.minimum(rankings.weights, 1))


def _weight_of_others(rankings: Rankings, weight: float) -> Floats:
    return np.asarray(weight - _weight_once(rankings))


@dataclass(frozen=True)
class _Counts:
    """The weight of the rankings with each number of ordered pairs; ``values`` are sorted."""

    values: Floats
    weights: Floats

    @classmethod
    def of(cls, values: Floats, weights: Floats) -> _Counts:
        distinct, which = np.unique(values, return_inverse=True)
        return cls(distinct, np.bincount(which, weights, minlength=distinct.size).astype(float))

    def __add__(self, other: _Counts) -> _Counts:
        both = (np.append(getattr(self, x), getattr(other, x)) for x in ("values", "weights"))
        return _Counts.of(*both)

    def sum_of_larger_than(self, values: Floats) -> Floats:
        """Return Σ w_b max(o, o_b) for each o."""
        smaller = np.append(0.0, np.cumsum(self.weights))
        larger = np.append(np.cumsum((self.weights * self.values)[::-1])[::-1], 0.0)
        n_smaller = np.searchsorted(self.values, values, side="right")
        return np.asarray(values * smaller[n_smaller] + larger[n_smaller])

    def sum_of_larger(self) -> float:
        """Return Σ w_a w_b max(o_a, o_b) over all pairs."""
        return float(self.weights @ self.sum_of_larger_than(self.values))


class _Orders(NamedTuple):
    """``before[i, j]`` is the weight of the rankings that put i before j."""

    before: Floats
    counts: _Counts


def _sum_orders(rankings: Rankings) -> _Orders:
    whole = _keep_cut_ties_whole(rankings)
    return _Orders(precedence(whole), _Counts.of(count_ordered_pairs(whole), whole.weights))


def _keep_cut_ties_whole(rankings: Rankings) -> Rankings:
    refuse_partial(rankings, "no distance is defined between rankings of different items")
    return replace(rankings, lengths=rankings.n_listed)


def _distances_to_others(rankings: Rankings, sums: _Orders, weight: float) -> Floats:
    whole = _keep_cut_ties_whole(rankings)
    larger = sums.counts.sum_of_larger_than(count_ordered_pairs(whole))
    # Rounding of fractional weights can make it negative.
    to_all = np.maximum(larger - sum_over_orders(whole, sums.before), 0)
    return np.asarray(to_all / _weight_of_others(rankings, weight))


def sum_over_orders(rankings: Rankings, table: Floats) -> Floats:
    """Return, for each ranking, the sum of ``table[i, j]`` over the pairs that put i before j."""
    result = np.zeros(len(rankings))
    for rows in row_blocks(len(rankings), rankings.n_items):
        by_item = np.ascontiguousarray(levels(rankings[rows]).T)
        for i in range(rankings.n_items):
            result[rows] += table[i] @ (by_item[i] < by_item)
    return result


# ---- The distance of `compare_common_items`, for rankings of all items
#
# Between the first k places of two rankings, the mean over the orders that ties allow is
# Σ P_a[i, j] P_b[j, i] + Σ O_a[i, j] (1 - O_b[i, j]) / 2. P is the probability that i precedes j
# and is among the first k, and O that both come after them. k is the smaller of the two lengths,
# so each length has its own sums.


def mean_common_distance(rankings: AnyRankings, k: int) -> float | None:
    """Return the weighted mean of `compare_common_items` over pairs of different rankings.

    Rankings of a subset have no such sums: the pairs of those that differ are compared one by one.
    In parts, and where there are too many that differ, this would take too long, and the result is
    None.
    """
    shape = reduce_parts(rankings, _look_at_lengths, min(k, rankings.n_items))
    if shape.n_partial or _few_pairs(rankings, k):
        most = MOST_CELLS if shape.n_partial else np.inf
        return _mean_over_pairs(rankings, k, most) if isinstance(rankings, Rankings) else None
    lengths = np.flatnonzero(shape.by_length)
    pairs = shape.weight**2 - shape.own_pairs
    if rankings.n_items < 2 or not pairs > 0:
        return None
    total = 0.0
    for number, sums in zip(
        lengths, reduce_parts(rankings, _sum_by_length, tuple(lengths.tolist())), strict=True
    ):
        largest = number * (2 * rankings.n_items - number - 1) / 2
        total += (_sum_over_pairs(sums.equal, sums.longer) - sums.own) / largest
    return float(max(total, 0.0) / pairs)


def _few_pairs(rankings: AnyRankings, k: int) -> bool:
    """Tell whether comparing all pairs, on tables of places, is less work than the sums."""
    if isinstance(rankings, RankingParts):
        return False
    return len(rankings) * (k + 1) ** 2 < rankings.n_items**2


def _mean_over_pairs(rankings: Rankings, k: int, most: float) -> float | None:
    merged = rankings.unique()
    # Pairs of a ranking and itself do not count; those of it and an equal one do.
    own = replace(rankings, weights=_weight_once(rankings) * rankings.weights).unique().weights
    parts = _split_comparable(merged)
    places = min(k, int(merged.places.max(initial=0)) + 1) + 1
    if sum(len(rows) ** 2 for rows in parts) * places**2 > most:
        return None
    total = weight = 0.0
    for rows in parts:
        sums = _sum_over_different(merged[rows], own[rows], k)
        total, weight = total + sums[0], weight + sums[1]
    return total / weight if weight > 0 else None


def _sum_over_different(rankings: Rankings, own: Floats, k: int) -> tuple[float, float]:
    """Return the sums of w_a w_b d(a, b) and of w_a w_b over pairs of different rankings."""
    total = weight = 0.0
    for rows, columns, distance in iterate_common_distances(rankings, rankings, k):
        weights = np.outer(rankings.weights[rows], rankings.weights[columns])
        same = np.arange(rows.start, rows.stop)[:, None] == np.arange(columns.start, columns.stop)
        weights[same] -= own[rows][same.any(axis=1)]
        weights[np.isnan(distance)] = 0
        total += float((weights * np.nan_to_num(distance)).sum())
        weight += float(weights.sum())
    return total, weight


def _split_comparable(rankings: Rankings) -> list[Ints]:
    """Split rankings into sets, such that rankings of two sets never compare the same two items.

    Votes between two items have many small sets, which are joined to batches. Rankings of all items
    are one set.
    """
    sizes, C = rankings.n_listed, rankings.n_items
    n_pairs = sizes * (sizes - 1) // 2
    if not rankings.is_subset.all() or n_pairs.sum() > MOST_LINKS:
        return [np.arange(len(rankings))]
    links = []
    for size in np.unique(sizes):
        rows = np.flatnonzero(sizes == size)
        codes = np.sort(rankings.codes[rankings.starts[rows][:, None] + np.arange(size)], axis=1)
        i, j = np.triu_indices(size, 1)
        pairs = codes[:, i].astype(np.int64) * C + codes[:, j]
        links.append(np.column_stack([np.repeat(rows, i.size), pairs.ravel()]))
    row, pair = np.concatenate(links).T
    _, pair = np.unique(pair, return_inverse=True)
    n = len(rankings)
    graph = coo_array((np.ones(row.size), (row, n + pair)), shape=(n + pair.size,) * 2)
    label = connected_components(graph, directed=False)[1][:n]
    by_label = np.argsort(label, kind="stable")
    ends = np.flatnonzero(np.diff(label[by_label])) + 1
    _, first_of_batch = np.unique(ends // BATCH, return_index=True)
    return list(np.split(by_label, ends[first_of_batch]))


class _Shape(NamedTuple):
    n_partial: int
    by_length: Ints
    weight: float
    own_pairs: float


def _look_at_lengths(rankings: Rankings, k: int) -> _Shape:
    partial = rankings.is_subset & (rankings.n_listed < rankings.n_items)
    lengths = np.bincount(np.minimum(rankings.lengths, k), minlength=k + 1)
    own_pairs = _weight_of_own_pairs(rankings)
    return _Shape(int(partial.sum()), lengths, float(rankings.weights.sum()), own_pairs)


class _Places(NamedTuple):
    """Sums over rankings: of P and O as above, and of the weights."""

    before: Floats
    out: Floats
    weight: float


class _LengthSums(NamedTuple):
    """The sums of the rankings of a length, and of the longer ones, cut at that length.

    ``own`` is the sum of d(a, a) over pairs of a ranking and itself: with ties, it is not 0.
    """

    equal: _Places
    longer: _Places
    own: float


def _sum_by_length(rankings: Rankings, lengths: tuple[int, ...]) -> tuple[_LengthSums, ...]:
    found = []
    for number in lengths:
        long = rankings[rankings.lengths >= number]
        is_equal = long.lengths == number
        if number == lengths[-1]:
            # Longer ones are cut there.
            is_equal[:] = True
        cut = long.top(number)
        found.append(
            _LengthSums(
                _sum_probabilities(cut[is_equal]),
                _sum_probabilities(cut[~is_equal]),
                _sum_own_distances(cut[is_equal]),
            )
        )
    return tuple(found)


def _sum_over_pairs(equal: _Places, longer: _Places) -> float:
    """Return Σ w_a w_b d(a, b) over the pairs of which the shorter one has this length."""
    every: _Places = add_results(equal, longer)
    return _square(every) - _square(longer)


def _square(sums: _Places) -> float:
    opposite = float((sums.before * sums.before.T).sum())
    return opposite + float((sums.out * (sums.weight - sums.out)).sum()) / 2


def _sum_probabilities(rankings: Rankings) -> _Places:
    C = rankings.n_items
    groups = _Groups(rankings)
    weights = rankings.weights
    before = precedence(rankings) if len(rankings) else np.zeros((C, C))
    before += groups.sum_pairs(weights[groups.row] * groups.within)
    out = np.zeros((C, C))
    for rows in row_blocks(len(rankings), C):
        outside = np.ones((rows.stop - rows.start, C))
        some = slice(*np.searchsorted(groups.entry_row, [rows.start, rows.stop]))
        outside[groups.entry_row[some] - rows.start, groups.code[some]] = groups.left_out[
            groups.entry_group[some]
        ]
        out += (outside * weights[rows, None]).T @ outside
    # Two items of one tie are not left out independently.
    out += groups.sum_pairs(weights[groups.row] * (groups.beyond - groups.left_out**2))
    np.fill_diagonal(before, 0)
    np.fill_diagonal(out, 0)
    return _Places(before, out, float(weights.sum()))


def _sum_own_distances(rankings: Rankings) -> float:
    """Return the sum of d(a, a), the mean distance of two orders that the ties of a allow."""
    groups = _Groups(rankings)
    same = groups.size * (groups.size - 1)
    later = rankings.n_items - groups.begin - groups.size
    part = same * (groups.within**2 + groups.beyond * (1 - groups.beyond) / 2)
    part += groups.size * later * groups.left_out * (1 - groups.left_out)
    return float((_weight_once(rankings) * rankings.weights)[groups.row] @ part)


class _Groups:
    """The items of equal place that belong, at least in part, to the first K of a ranking.

    ``left_out`` is the probability that an item of the group does not belong to the first K,
    ``beyond`` that two do not, and ``within`` that one precedes the other and belongs to them.
    """

    def __init__(self, rankings: Rankings) -> None:
        begin, size, row = group_by_place(rankings)
        counted = begin < rankings.lengths[row]
        self.entry_group = np.repeat(np.cumsum(counted) - 1, size)[np.repeat(counted, size)]
        entries = np.repeat(counted, size)
        self.entry_row, self.code = rankings.entry_rows[entries], rankings.codes[entries]
        self.begin, self.size, self.row = begin[counted], size[counted], row[counted]
        taken = np.minimum(rankings.lengths[self.row] - self.begin, self.size)
        left = self.size - taken
        pairs = np.maximum(self.size * (self.size - 1), 1)
        self.left_out = left / self.size
        self.beyond = left * (left - 1) / pairs
        self.within = (taken * (taken - 1) / 2 + taken * left) / pairs
        self.n_items = rankings.n_items

    def sum_pairs(self, values: Floats) -> Floats:
        """Add up ``values``, one per group, over the pairs of items of each group."""
        tied = self.size[self.entry_group] > 1
        shape = (self.size.size, self.n_items)
        cells = (self.entry_group[tied], self.code[tied])
        member = csr_array((np.ones(cells[0].size), cells), shape=shape)
        weighted = csr_array((values[cells[0]], cells), shape=shape)
        sums: Floats = (member.T @ weighted).toarray()
        return sums

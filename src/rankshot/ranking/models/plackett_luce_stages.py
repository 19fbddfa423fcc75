"""A Plackett-Luce ranking as a sequence of choices: which item, or which tied items, come next.

`Stages` lays out a block of rankings as such choices. `log_prob` gives their log-probabilities
for any log-worths; `Block` gives the log-likelihood and the expected choices for a fit, fast.

There is one log-worth per class of items, and a class has one or more items of equal worth. A
class of n items is like one item of n times the worth, except where it is in a tie.

A block is laid out with the classes that its rankings list. In a top-K ranking all others come
after these, and only their total worth matters: that of all classes, minus that of the listed
ones. Where little is left, this difference has few correct digits. Such rankings are laid out
completely, for the log-worths at hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack
from scipy.special import gammaln, logsumexp, softmax

from rankshot.core.arrays import BLOCK_CELLS, CACHED_CELLS, row_blocks
from rankshot.ranking.construction import row_starts
from rankshot.ranking.matrices import completed_orders, listed_orders
from rankshot.ranking.models.tie_integral import TiedClasses, place_nodes, tied_log_prob
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
LISTED_PART = 1 / 3
"""Rankings that list this part of the classes, or more, are laid out with all of them."""
SMALLEST_REST = 1e-3
"""Where the classes that are not listed have a smaller part of the total worth, they are laid out,
too: the total minus the worth of the listed ones would have few correct digits."""


class TiedStages(NamedTuple):
    """Stages at which ``taken`` of some tied items come next, one row per stage.

    The tie of stage t has ``counts[t]`` items of the classes ``members[t]``. They are in column
    ``column[t]`` of `Stages.order`; the later items start at row ``end[t]``.
    """

    taken: int
    members: NDArray[np.intp]
    counts: NDArray[np.int64]
    column: NDArray[np.int64]
    end: NDArray[np.int64]


class Stages(NamedTuple):
    """A block of rankings, one column per ranking, classes from best to worst down the rows.

    Attributes
    ----------
    order : ndarray of shape (D, n)
        Class numbers; C, not a class, after the end of a ranking. Rankings lie in columns, so
        that running sums over a ranking are sums of long rows.
    chosen : ndarray of bool of shape (D, n)
        Where a single item is chosen from it and all that follow; the last item is left, and not
        chosen.
    has_rest : ndarray of bool of shape (n,)
        Where the classes that are not in ``order`` come after those that are.
    ties : list of TiedStages
        The other choices, by size of the tie and number taken. A tie with nothing after it has
        probability 1 and is left out.
    log_ways : ndarray of shape (n,)
        The log of the number of strict rankings that the ties of each ranking allow.
    """

    order: NDArray[np.intp]
    chosen: NDArray[np.bool_]
    has_rest: NDArray[np.bool_]
    ties: list[TiedStages]
    log_ways: NDArray[np.float64]


def build_stages(
    block: Rankings, counts: NDArray[np.int64] | None = None, *, complete: bool = True
) -> Stages:
    """Lay out a block of rankings as a sequence of choices."""
    C = block.n_items
    counts = np.ones(C, np.int64) if counts is None else counts
    has_rest = ~block.is_subset & (block.n_listed < C)
    if complete:
        has_rest[:] = False
        table = completed_orders(block)
    else:
        # A tie at the end of a list is followed by one more row, for the rest.
        table = listed_orders(block, spare=int(has_rest.any()))
    order = np.ascontiguousarray(table.T, dtype=np.intp)
    begin, width, column, _ = block.groups
    first = block.starts[column] + begin
    n_before = np.append(0, np.cumsum(counts[block.codes]))
    size = n_before[first + width] - n_before[first]
    placed = n_before[first] - n_before[block.starts[column]]
    counted = placed < block.lengths[column]
    begin, width, column, size, placed = (
        values[counted] for values in (begin, width, column, size, placed)
    )
    end = begin + width
    has_later = end < block.n_compared[column]
    single, tied = (size == 1) & has_later, (size > 1) & has_later
    chosen = np.zeros(order.shape, bool)
    chosen[begin[single], column[single]] = True
    taken = np.minimum(size, block.lengths[column] - placed)
    ties = []
    shapes = np.column_stack([width, size, taken])
    for g, items, m in np.unique(shapes[tied], axis=0).tolist():
        these = np.flatnonzero(tied & (shapes == (g, items, m)).all(axis=1))
        # The integral of a tie needs one cell per class, count and grid point. In a tie that K
        # does not cut, all items are chosen, and nothing is counted.
        cells = g * (m if m < items else 1) * place_nodes(items, m).size
        for rows in row_blocks(these.size, cells, BLOCK_CELLS // 4):
            some = these[rows]
            members = order[begin[some][:, None] + np.arange(g), column[some][:, None]]
            ties.append(TiedStages(m, members, counts[members], column[some], end[some]))
    # g items of which m are taken, in order: g! / (g - m)! ways.
    ways = gammaln(size + 1) - gammaln(size - taken + 1)
    log_ways = np.bincount(column, ways, minlength=len(block)).astype(float)
    return Stages(order, chosen, has_rest, ties, log_ways)


def _log_prob(stages: Stages, theta: Floats) -> Floats:
    """Log-probability of each ranking of single items, for any ratio of worths.

    All is in logarithms. The remaining worth at each stage is summed from the last item up, never
    as the total minus the worth of the placed items: that difference has no correct digits if the
    placed items have nearly all of the worth.
    """
    # After the end of a subset ranking, nothing remains.
    log_worths = np.append(theta, -np.inf).take(stages.order)
    # From the rest, if there is one, up to the first item.
    upward = np.full((len(log_worths) + 1, len(stages.log_ways)), -np.inf)
    upward[1:] = log_worths[::-1]
    if stages.has_rest.any():
        log_total = logsumexp(theta)
        listed = np.exp(log_worths - log_total).sum(axis=0)
        upward[0, stages.has_rest] = log_total + np.log1p(-listed[stages.has_rest])
    log_remaining = np.logaddexp.accumulate(upward, axis=0)[::-1]
    # log v/(v + later), without the sum in the denominator
    with np.errstate(invalid="ignore"):
        ratio = log_remaining[1:] - log_worths
    log_odds = np.where(stages.chosen, ratio, -np.inf)
    result: Floats = -np.logaddexp(0, log_odds).sum(axis=0) - stages.log_ways
    for tie in stages.ties:
        rest = log_remaining[tie.end, tie.column]
        log_prob = tied_log_prob(theta[tie.members].T, rest, tie.taken)
        np.add.at(result, tie.column, log_prob)
    return result


def log_prob(rankings: Rankings, items: tuple[str, ...], theta: Floats) -> Floats:
    """Log-probability of each ranking; ``theta`` has the log-worths of ``items``."""
    rankings = rankings.with_items(items)
    worths = softmax(theta)
    listed = np.bincount(rankings.entry_rows, worths[rankings.codes], minlength=len(rankings))
    # Rankings that leave too little worth out are laid out completely.
    small_rest = ~rankings.is_subset & (1 - listed < SMALLEST_REST)
    widths = np.where(small_rest, theta.size, rankings.n_listed)
    result = np.empty(len(rankings))
    for rows, complete in split_by_width(widths, theta.size):
        result[rows] = _log_prob(build_stages(rankings[rows], complete=complete), theta)
    return result


def split_by_width(
    widths: NDArray[np.int64], n_classes: int, cells: int = BLOCK_CELLS
) -> Iterator[tuple[NDArray[np.intp], bool]]:
    """Split rankings into blocks of similar widths, and say which are laid out completely.

    These are the rankings that list a large part of the classes: a complete layout needs no
    corrections for the rest, and little more room.
    """
    complete = LISTED_PART * n_classes <= widths
    full = np.flatnonzero(complete)
    yield from ((full[rows], True) for rows in row_blocks(full.size, n_classes, cells))
    short = np.flatnonzero(~complete)
    short = short[np.argsort(-widths[short], kind="stable")]
    begin = 0
    while begin < short.size:
        end = begin + max(1, cells // int(widths[short[begin]]))
        yield short[begin:end], False
        begin = end


# ---- A block of rankings in a fit


@dataclass
class Block:
    """Some rankings of classes of items."""

    rankings: Rankings
    counts: NDArray[np.int64]
    complete: bool

    def __post_init__(self) -> None:
        self.stages: Stages = build_stages(self.rankings, self.counts, complete=self.complete)
        self.n_classes = len(self.counts)
        self.order = self.stages.order
        self.has_rest = bool(self.stages.has_rest.any())
        C, self.weights = self.n_classes, self.rankings.weights
        self.choices = self.stages.chosen * self.weights
        wins = np.bincount(self.order.ravel(), self.choices.ravel(), minlength=C + 1)
        self.wins = wins[:C].astype(np.float64)
        for tie in self.stages.ties:
            np.add.at(self.wins, tie.members, self.weights[tie.column][:, None] * tie.counts)
        self._last_split: tuple[NDArray[np.bool_], list[Block]] | None = None

    def split(self, theta: Floats) -> list[Block]:
        """Blocks of the same rankings, in which no rest is too small at these log-worths."""
        if self.complete or not self.has_rest:
            return [self]
        # Which part of the total worth the classes have that a ranking does not list.
        worths = self.counts * np.exp(theta)
        rest = 1 - np.append(worths / worths.sum(), 0.0).take(self.order).sum(axis=0)
        small = self.stages.has_rest & (rest < SMALLEST_REST)
        if not small.any():
            return [self]
        # Later steps of a fit split alike.
        if self._last_split is None or not np.array_equal(self._last_split[0], small):
            rows = np.flatnonzero(small)
            blocks = [
                Block(self.rankings[rows[some]], self.counts, complete=True)
                for some in row_blocks(rows.size, self.n_classes, CACHED_CELLS)
            ]
            if not small.all():
                blocks.append(Block(self.rankings[~small], self.counts, complete=False))
            self._last_split = small, blocks
        return self._last_split[1]

    def sum_up(self, theta: Floats) -> BlockSums:
        """What the log-worths determine."""
        by_class = np.zeros(self.n_classes + 1)
        by_class[:-1] = self.counts * np.exp(theta)
        worths = by_class.take(self.order)
        remaining = np.empty((len(worths) + 1, worths.shape[1]))
        remaining[-1] = 0
        if self.has_rest:
            remaining[-1] = (by_class.sum() - worths.sum(axis=0)) * self.stages.has_rest
        for nth in reversed(range(len(worths))):
            np.add(worths[nth], remaining[nth + 1], out=remaining[nth])
        # What a single item was chosen from, and 1 elsewhere. A single item is a class of one.
        totals, shares = (np.where(self.stages.chosen, x, 1.0) for x in (remaining[:-1], worths))
        log_probs: Floats = np.log(shares / totals).sum(axis=0) - self.stages.log_ways
        choices = []
        for tie in self.stages.ties:
            rest = np.log(remaining[tie.end, tie.column])
            choices.append(TiedClasses(theta[tie.members], tie.counts, rest, tie.taken))
            np.add.at(log_probs, tie.column, choices[-1].log_prob)
        return BlockSums(worths, remaining, totals, choices, log_probs)

    def value_and_expected(self, theta: Floats) -> tuple[float, Floats]:
        """Weighted sum of `log_prob`, and the expected choices.

        A fit spends most of its time here: plain sums of worths are several times faster than
        logarithms.
        """
        C, sums = self.n_classes, self.sum_up(theta)
        of_cells, lost, tied = self._expect(sums)
        listed = np.bincount(self.order.ravel(), of_cells.ravel(), minlength=C + 1)
        expected: Floats = listed[:C].astype(np.float64, copy=False)
        if self.has_rest:
            expected += lost.sum() * (self.counts * np.exp(theta))
        for tie, slopes in zip(self.stages.ties, tied, strict=True):
            of_tie = self.weights[tie.column][:, None] * tie.counts - slopes
            np.add.at(expected, tie.members, of_tie)
        return float(self.weights @ sums.log_probs), expected

    def gradients(self, theta: Floats) -> csr_array:
        """Derivatives of each ranking, times its weight; the block lays out all that counts."""
        of_cells, _, tied = self._expect(self.sum_up(theta))
        slopes = self.choices - of_cells
        order, shape = self.order.T, (len(self.weights), self.n_classes)
        kept = order < self.n_classes
        found = csr_array((slopes.T[kept], order[kept], row_starts(kept.sum(axis=1))), shape=shape)
        for tie, slope in zip(self.stages.ties, tied, strict=True):
            rows = np.repeat(tie.column, slope.shape[1])
            found = found + csr_array((slope.ravel(), (rows, tie.members.ravel())), shape=shape)
        return found

    def _expect(self, sums: BlockSums) -> tuple[Floats, Floats, list[Floats]]:
        """Expected choices of items.

        First the expectations of the cells of ``order``, then what all classes have in proportion
        to their worths, and the slopes of each tie in the log-worths of its members: observed minus
        expected choices.
        """
        worths, remaining, totals, choices, _ = sums
        rate, tied = self.choices / totals, []
        for tie, choice in zip(self.stages.ties, choices, strict=True):
            tied.append(self.weights[tie.column][:, None] * choice.gradient)
            # For the items after it, a tie is a choice that they have lost.
            total = remaining[tie.end, tie.column]
            np.add.at(rate, (tie.end, tie.column), tied[-1].sum(axis=1) / total)
        add_up(rate)
        lost = np.zeros(len(self.weights))
        if self.has_rest:
            lost = rate[-1] * self.stages.has_rest
            # All classes lose every choice of the ranking; a listed one only those before it.
            rate -= lost
        return worths * rate, lost, tied


class BlockSums(NamedTuple):
    """What log-worths determine in a block, whatever the weights of its rankings.

    ``worths`` are those of the cells of ``order``, ``remaining`` the total worth of each cell and
    all that follow, ``totals`` what single items were chosen from, and ``choices`` the ties.
    """

    worths: Floats
    remaining: Floats
    totals: Floats
    choices: list[TiedClasses]
    log_probs: Floats


def find_gradients(rankings: Rankings, theta: Floats) -> csr_array:
    """Derivatives of the log-probability of each ranking in the log-worths, one row per ranking."""
    theta, counts = theta - theta.max(), np.ones(theta.size, np.int64)
    plain = replace(rankings, weights=np.ones(len(rankings)))
    # A top-K list says something about all items.
    widths = np.where(rankings.is_subset, rankings.n_listed, theta.size)
    split = list(split_by_width(widths, theta.size))
    parts = [Block(plain[rows], counts, complete).gradients(theta) for rows, complete in split]
    order = np.concatenate([rows for rows, _ in split])
    return vstack(parts, format="csr")[np.argsort(order)]


def add_up(rows: Floats) -> None:
    """Turn rows into their running sums, in place.

    The loop adds whole rows, which is faster than ``np.cumsum`` along this axis.
    """
    for above, row in pairwise(rows):
        np.add(row, above, out=row)

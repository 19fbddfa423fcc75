"""How much rankings agree: Kendall's W, distances, and a summary for every target."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.estimators import clone
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.ranking.consensus.kemeny import Method, count_open_pairs, find_order, only_order
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.construction import (
    count_places,
    distinct_values,
    number_labels,
    row_starts,
)
from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.matrices import (
    NamedOrder,
    count_ties,
    find_ranked_items,
    keep_ranked_items,
    last_levels,
    mark_ranked,
    middle_places,
    restrict_items,
)
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import (
    Rankings,
    has_pairs,
    keep_counted,
    merge_copies,
    require_model,
    require_rankings,
    require_some,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
ROUNDING_ERROR = 1e-12
MOST_SOLVED_ITEMS = 20
"""Of more items, a Kemeny order with ties is a good one, and perhaps not the best."""
DEFAULT_K = 10
"""The number of places of each ranking that are used by default."""


def concordance(rankings: Rankings) -> float | None:
    r"""Kendall's W over the items that the rankings compare, corrected for ties and lengths.

    1 is full agreement. Unrelated raters have about 1/m, where m is their number, and more if they
    compare only some of the items; `agreement` returns the exact value. All rankings by one rater
    are combined into one.

    - If all rankings order the same number of items, W = 12 S / (m² (n³ - n) - m ΣT). S is the sum
      of squared deviations of the items' total places from their mean, n the number of items, and
      T = Σ (t³ - t) over the ties of a ranking. The items after its first K are one tie.
    - Items that no ranking has among its first K are ignored.
    - Rankings of different lengths agree fully if they agree up to the length of the shorter one:
      in the denominator, the longer one is cut there.
    - Rankings of different subsets (incomplete blocks): W is Durbin's statistic, in the form of
      Benard and van Elteren for any sets and ties, divided by its value if every ranking followed
      the order of `kemeny`. In balanced designs this is Durbin's W.

    W is 1 if no ranking orders any items. It is None if there are fewer than two raters, or if the
    subset rankings cannot contradict one another.

    Parameters
    ----------
    rankings : Rankings
        The rankings. A ranking without a rater and with weight w counts as
        w raters.

    References
    ----------
    Durbin (1951), Incomplete blocks in ranking experiments. British Journal of Statistical
    Psychology 4. Benard and van Elteren (1953), A generalization of the method of m rankings.
    Indagationes Mathematicae 15.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["a", "b", "c"], ["a"], ["a", "b"]], items=["a", "b", "c", "d", "e", "f"])
    >>> rs.ranking.concordance(votes)
    1.0
    """
    return measure_concordance(rankings)[0]


def krippendorff_alpha(values: object, metric: str | None = None) -> float:
    """Krippendorff's alpha: 1 is full agreement, 0 is agreement by chance.

    Parameters
    ----------
    values : Rankings or array-like of shape (raters, units)
        Numbers, one row per rater and NaN where there is none. For `Rankings`, the units are the
        pairs of items, and the values are "before", "tied" and "after", as -1, 0 and 1.
    metric : {"nominal", "ordinal", "interval"}, optional
        How two numbers are compared: equal or not, by the difference of their ranks, or by their
        difference. The default is "nominal", and "interval" for `Rankings`.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability. University of Pennsylvania.

    Examples
    --------
    >>> import rankshot as rs
    >>> nan = float("nan")
    >>> round(rs.ranking.krippendorff_alpha([[1, 2, 3, 3], [1, 2, 3, nan], [nan, 2, 2, 3]]), 3)
    0.719
    >>> votes = rs.Rankings.from_orders([["a", "b", "c"], ["a", "b", "c"], ["b", "a", "c"]])
    >>> round(rs.ranking.krippendorff_alpha(votes), 3)
    0.58
    """
    metric = metric or ("interval" if isinstance(values, Rankings) else "nominal")
    require_choice("metric", metric, ("nominal", "ordinal", "interval"))
    if isinstance(values, Rankings):
        before, tied = precedence(values), count_ties(values)
        # Each pair counts in both directions: which item is the first of two has no meaning.
        counts = np.array([before, tied, before.T]).reshape(3, -1).T
        levels = np.arange(3.0)
    else:
        table = np.asarray(values, np.float64)
        levels = np.unique(table[~np.isnan(table)])
        counts = (table[..., None] == levels).sum(axis=0).astype(np.float64)
    counts = counts[counts.sum(axis=1) > 1]
    size, total = counts.sum(axis=1), counts.sum(axis=0)
    if metric == "ordinal":
        levels = np.cumsum(total) - total / 2
    apart = np.subtract.outer(levels, levels) ** 2
    if metric == "nominal":
        apart = (apart > 0).astype(np.float64)
    observed = float(((counts @ apart * counts).sum(axis=1) / np.maximum(size - 1, 1)).sum())
    chance = float(total @ apart @ total) / max(float(size.sum()) - 1, 1.0)
    if not size.size:
        rule = "must have two raters with values for the same unit"
        raise InputError("values", NO_VALUE, rule)
    return 1 - observed / chance if chance else 1.0


def measure_concordance(rankings: Rankings) -> tuple[float | None, str]:
    """W, and why there is none."""
    rankings = prepare_raters(rankings)
    blocks = arrange_blocks(rankings)
    if isinstance(blocks, str):
        return None, blocks
    most = blocks.find_most(rankings)
    length = float(blocks.measure(sum_deviations(rankings)))
    return min(length / most, 1.0) if most else 1.0, ""


class Blocks(NamedTuple):
    """What W is a ratio of: the squared length of the items' totals A, and its largest value.

    The length is AᵀMA, in the metric of a matrix M. ``rank`` is the place of each item in the
    consensus, for rankings of different subsets.
    """

    metric: Floats | None = None
    rank: Ints | None = None

    def measure(self, totals: Floats) -> Floats:
        """AᵀMA of each row of totals; without a metric, AᵀA."""
        scaled = totals if self.metric is None else totals @ self.metric
        return np.asarray(np.sum(scaled * totals, axis=-1))

    def find_most(self, rankings: Rankings) -> float:
        """Largest AᵀMA that rankings can have; 0 if no ranking orders anything."""
        if self.rank is None:
            return _find_most(rankings)
        return float(self.measure(sum_deviations(rankings, self.rank)))


def arrange_blocks(rankings: Rankings) -> Blocks | str:
    """Metric and order that W of the rankings of raters needs, or why there is no W."""
    raters = set(rankings.raters.tolist())
    if len(raters) < 2 and not (None in raters and has_pairs(rankings)):
        return "W needs the rankings of at least two raters"
    n = rankings.n_items
    if np.all(rankings.n_compared == n):
        return Blocks()
    pairs, comparisons = _sum_blocks(rankings)
    n_parts, _ = connected_components(csr_array(pairs > 0), directed=False)
    # As many comparisons as degrees of freedom always agree with some worths of the items.
    if comparisons <= n - n_parts:
        return "W needs rankings that can contradict one another; these compare different items"
    number = {name: place for place, name in enumerate(find_order(rankings, "insertion").order)}
    rank = np.array([number[item] for item in rankings.items])
    covariance = np.diag(pairs.sum(axis=1)) - pairs
    return Blocks(np.asarray(np.linalg.pinv(covariance, hermitian=True), np.float64), rank)


def prepare_raters(rankings: Rankings) -> Rankings:
    """Leave out what does not count, and let all rankings of a rater together count as one."""
    counted = keep_ranked_items(keep_counted(require_rankings(rankings)))
    rater, weights = number_labels(counted.raters), counted.weights
    shares = weights / np.bincount(rater, weights)[rater]
    return replace(counted, weights=np.where(rater > 0, shares, weights))


# ---- Rankings of all items
#
# With r_a the places of the n items in ranking a, less their mean, S = |Σ w_a r_a|² is the sum of
# <r_a, r_b> over all pairs of rankings. W is S divided by the sum of what <r_a, r_b> can be at
# most: (|r_a|² + |r_b|²) / 2, after the longer ranking has been cut to the length of the shorter
# one. All sums are over the ranked items of each ranking, and none over pairs of rankings.
#
# Cut after K items, the places have |r|² = Σ (q_j - n/2)² + (Σ (q_j - n/2))² / (n - K), where j
# goes from 1 to K.


def _find_most(rankings: Rankings) -> float:
    """Largest S that rankings of all items can have; 0 if no ranking orders anything."""
    n, weights, ranked = rankings.n_items, rankings.weights, mark_ranked(rankings)
    row, shift = rankings.entry_rows[ranked], middle_places(rankings)[ranked] - n / 2
    length = np.bincount(row, minlength=len(rankings))
    nth, most = count_places(row_starts(length)), 0.0
    for K in np.unique(length):
        first = nth < K
        squares, sums = (
            np.bincount(row[first], shift[first] ** power, len(rankings)) for power in (2, 1)
        )
        weighed = weights * (squares + sums**2 / max(n - K, 1))
        # Pairs of which the shorter one ends after K items.
        ends, longer = length == K, length > K
        most += weighed[ends].sum() * weights[ends | longer].sum()
        most += weighed[longer].sum() * weights[ends].sum()
    return float(most) if most > ROUNDING_ERROR * weights.sum() ** 2 * n**3 else 0.0


# ---- Rankings of different subsets: incomplete blocks
#
# With r_a the places in ranking a less their mean, A = Σ w_a r_a are the totals of the items. If
# each ranking is random, of k items, A has the covariance Σ w_a |r_a|² / (k - 1) (I - J / k): I and
# J have ones on the diagonal, and everywhere, for the items of the ranking. The metric is the
# inverse of this covariance.


def deviations(rankings: Rankings) -> tuple[Floats, Floats]:
    """Place of each entry, and of the items left out, less the mean of its ranking."""
    of_rest = np.where(rankings.is_subset, 0, rankings.n_listed / 2)
    return middle_places(rankings) - rankings.n_compared[rankings.entry_rows] / 2, of_rest


def sum_deviations(rankings: Rankings, rank: Ints | None = None) -> Floats:
    """Totals of the items; with ``rank``, of rankings in this order of all items."""
    of_entries, of_rest = deviations(rankings)
    rows, codes = rankings.entry_rows, rankings.codes
    if rank is not None:
        top = ~rankings.is_subset[rows]
        codes = codes[np.lexsort((rank[codes], rows))]
        codes = np.where(top, np.argsort(rank)[count_places(rankings.starts)], codes)
    weights = rankings.weights
    shifts = weights[rows] * (of_entries - of_rest[rows])
    return np.asarray(
        np.bincount(codes, shifts, minlength=rankings.n_items) + float(weights @ of_rest)
    )


def _sum_blocks(rankings: Rankings) -> tuple[Floats, float]:
    """Minus the covariance of the totals off the diagonal, and the number of comparisons."""
    of_entries, of_rest = deviations(rankings)
    n_compared = rankings.n_compared
    of_listed = np.bincount(rankings.entry_rows, of_entries**2, minlength=len(rankings))
    squares = of_listed + (n_compared - rankings.n_listed) * of_rest**2
    share = rankings.weights * squares / np.maximum(n_compared - 1, 1) / n_compared
    subset = rankings.is_subset
    # Ties are broken: each pair of a ranking is counted, in one order or the other.
    places, lengths = count_places(rankings.starts), rankings.n_listed
    strict = replace(rankings, places=places, lengths=lengths, weights=share)
    before = precedence(strict[subset & (share > 0)])
    pairs = before + before.T + float(share[~subset].sum())
    sizes = np.where(squares > 0, n_compared - 1, 0)
    alone = np.array([rater is None for rater in rankings.raters], bool)
    # The same set of items counts once for each rater, and all items are the empty set.
    lists = np.split(rankings.codes, rankings.starts[1:-1])
    sets = [
        frozenset(codes.tolist() if part else ()) for codes, part in zip(lists, subset, strict=True)
    ]
    once = {*zip(rankings.raters[~alone], compress(sets, ~alone), sizes[~alone], strict=True)}
    n_comparisons = float(np.maximum(rankings.weights, 1)[alone] @ sizes[alone])
    return pairs, n_comparisons + sum(int(size) for *_, size in once)


# ---- Summaries: the consensus of every target, and who disagrees with it


@dataclass(frozen=True, eq=False)
class TargetSummary:
    """A summary of the rankings of one target.

    Distances are computed over the first k places and the items that both rankings compare: 0 is
    the same order, 1 is the opposite order. With ties, they are means over the orders that the
    ties allow. Items that are never in the first k places are ignored.

    Attributes
    ----------
    target : str or None
        The target, or None if the rankings have none.
    n_rankings : int
        The number of rankings, regardless of their weights.
    model : PlackettLuce, Mallows, BabingtonSmith or None
        The model, fitted to the first k places of the rankings.
    order : tuple
        The first k places of the consensus; a tie is a tuple inside it. The
        order of all items is ``model.mode_``.
    k : int
        The number of places that are used, at most the length of the longest ranking.
    concordance : float or None
        Kendall's W of all places, whatever k is: 1 if all rankings agree on the items they share,
        about 1/m if m raters are unrelated. If it is None, ``note`` states why.
    mean_distance : float or None
        The mean distance of the rankings to the consensus; None for a single ranking, which is its
        own consensus.
    disagreement : tuple of (str, float)
        The mean distance for each rater (or source, for rankings without a rater), largest first.
    note : str
        Why there is no W; otherwise empty.
    consensus : Rankings or None
        The consensus as a ranking of all items.
    n_open_pairs : int
        The number of pairs of ranked items that were never compared, as in votes between two items
        and other subset rankings. Kemeny's method hardly determines the order of such pairs.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["leopard", "tiger"], ["fox", "leopard"]],
    ...     items=["bus", "fox", "leopard", "tiger"], targets="cat", raters=["ann", "bob", "cy"])
    >>> found = rs.ranking.summarize(votes)[0]
    >>> found.target, found.n_rankings, found.order
    ('cat', 3, ('leopard', 'tiger'))
    >>> [rater for rater, distance in found.disagreement if distance > 0.2]
    ['cy']
    """

    target: str | None
    n_rankings: int
    model: Any
    order: NamedOrder
    k: int
    concordance: float | None
    mean_distance: float | None
    disagreement: tuple[tuple[str, float], ...]
    note: str = ""
    consensus: Rankings | None = None
    n_open_pairs: int = 0


def summarize(
    rankings: Rankings, model: Any = None, k: int | None = DEFAULT_K
) -> list[TargetSummary]:
    """Summarise the rankings of every target.

    The consensus is the one that a zero-shot head with the same ``k`` and prior uses. It has as
    many places as the longest top-K list (three for ballots with three places), or all items of
    subset rankings. The order of all items is ``model.mode_`` of a summary, or that of `borda` or
    `kemeny`.

    Parameters
    ----------
    rankings : Rankings or dict of lists
        If no ranking names a target, all are interpreted as rankings of one target.
    model : PlackettLuce, Mallows, BabingtonSmith or "kemeny", optional
        The model that merges the rankings; `PlackettLuce` by default. A copy is fitted to each
        target. ``"kemeny"`` is the Kemeny order of all ranked items; neighbours that equally many
        rankings prefer are tied, as in a survey.
    k : int or None
        The number of places of each ranking that are used for the consensus and for distances;
        None means all. A shorter list is compared up to its own length. W uses all places.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders(
    ...     [["leopard", "tiger"], ["leopard", "tiger"], ["fox", "leopard"]],
    ...     items=["bus", "fox", "leopard", "tiger"], targets="cat", raters=["ann", "bob", "cy"])
    >>> brief = rs.ranking.summarize(votes)[0]
    >>> brief.order, round(brief.concordance, 2), brief.disagreement[0][0]
    (('leopard', 'tiger'), 0.33, 'cy')
    """
    rankings = keep_counted(require_some(rankings))
    is_kemeny = isinstance(model, str) and model == "kemeny"
    if not is_kemeny:
        model = PlackettLuce() if model is None else require_model(model)
    first = rankings
    if k is not None:
        first = rankings.top(min(require_whole_number("k", k), rankings.n_items))
    targets = set(rankings.targets.tolist())
    if None in targets and len(targets) > 1:
        row = rankings.targets.tolist().index(None)
        rule = "must be given for all rankings or for none"
        raise InputError("target", None, rule, where=f"ranking {row}")
    summaries = []
    for target in sorted(targets, key=str):
        here = np.flatnonzero(rankings.targets == target)
        theirs, few = rankings[here], first[here]
        fitted = None if is_kemeny else clone(model).fit(few)
        consensus = merge_by_kemeny(few) if is_kemeny else merge_rankings(few, fitted, cut=False)
        length = min(int(consensus.lengths[0]), k or rankings.n_items)
        consensus = consensus.top(length)
        summary = summarize_target(target, theirs, consensus, length, model=fitted)
        n_open = count_open_pairs(keep_ranked_items(few))
        summaries.append(replace(summary, n_open_pairs=n_open))
    return summaries


def merge_rankings(rankings: Rankings, model: Any, *, cut: bool = True) -> Rankings:
    """Consensus of the rankings of one target: the mode of the model fitted to them.

    It is as long as the longest of them: nothing is known of later places of top-K lists. Without
    ``cut``, that of subset rankings has all items that are compared. Items that no ranking
    compares are left out: then the consensus is a subset ranking. If all rankings are equal, the
    consensus is that ranking, with its ties and its kind.
    """
    if len(distinct := merge_copies(rankings)[0]) == 1:
        return distinct
    target = next(iter(rankings.target_names), None)
    mode = Rankings.from_orders([model.mode_], items=rankings.items, targets=target)
    n_top = int((~rankings.is_subset).sum())
    compared = np.unique(rankings.codes)
    if n_top == 0 and compared.size < rankings.n_items:
        among = restrict_items(mode, [rankings.items[i] for i in compared])
        mode = replace(among.change_items(rankings.items), is_subset=np.array([True]))
    longest = int(rankings.lengths.max(initial=0, where=rankings.weights > 0))
    return mode.top(longest) if cut or n_top else mode


def merge_by_kemeny(rankings: Rankings) -> Rankings:
    """Kemeny order of the rankings of one target, with ties.

    Neighbours that equally many rankings prefer are tied. Items that no ranking has among its
    first K are left out.
    """
    few = keep_ranked_items(rankings)
    groups: list[list[str]] = []
    if (order := only_order(few)) is not None:
        groups = [[name] for name in order]
    else:
        method: Method = "exact" if few.n_items <= MOST_SOLVED_ITEMS else "insertion"
        number = {name: i for i, name in enumerate(few.items)}
        W = precedence(few)
        are_equal = np.isclose(W, W.T, rtol=1e-9, atol=0)
        for name in cast("tuple[str, ...]", find_order(few, method).order):
            if groups and are_equal[[number[other] for other in groups[-1]], number[name]].all():
                groups[-1].append(name)
            else:
                groups.append([name])
    return Rankings.from_orders(
        [[sorted(group) if len(group) > 1 else group[0] for group in groups]],
        items=rankings.items,
        targets=next(iter(rankings.target_names), None),
        kind="subset" if rankings.is_subset.all() else "top",
    )


def summarize_target(
    target: str | None,
    rankings: Rankings,
    consensus: Rankings,
    k: int,
    *,
    model: Any = None,
) -> TargetSummary:
    """Summarise the rankings of one target around a consensus of them."""
    order = [tuple(x) if isinstance(x, list) else x for x in consensus.orders()[0]]
    # The later items of a subset ranking are tied after its first k places.
    n_places = int(last_levels(consensus)[0]) + 1
    mean: float | None = None
    furthest: list[tuple[str, float]] = []
    if has_pairs(rankings):
        mean, furthest = _average_distances(rankings, consensus, k)
    W, why_not = measure_concordance(rankings)
    return TargetSummary(
        target,
        len(rankings),
        model,
        tuple(order[:n_places]),
        min(k, int(consensus.lengths[0])),
        W,
        mean,
        tuple(furthest),
        why_not,
        consensus,
    )


def _average_distances(
    rankings: Rankings, consensus: Rankings, k: int
) -> tuple[float | None, list[tuple[str, float]]]:
    """Mean distance to the consensus, and that of each rater, or source, largest first."""
    k = min(k, rankings.n_items)
    both = rankings.top(k), consensus.with_items(rankings.items).top(k)
    # Other items are last for all: distances that count them look like agreement.
    is_there = find_ranked_items(both[0]) | find_ranked_items(both[1])
    first, center = (keep_ranked_items(some, is_there) for some in both)
    pairs = zip(rankings.raters, rankings.sources, strict=True)
    labels = np.array([rater or source for rater, source in pairs], object)
    distance = compare_common_items(first, center, k)[:, 0]
    number, compared = number_labels(labels), ~np.isnan(distance)
    if not compared.any():
        return None, []
    weights = np.where(compared, rankings.weights, 0.0)
    total = np.bincount(number, weights * np.where(compared, distance, 0.0))
    weight = np.bincount(number, weights)
    means = np.divide(total, weight, out=np.full(weight.size, np.nan), where=weight > 0).tolist()
    named = zip(distinct_values(labels), means[1:], strict=True)
    known = [(name, mean) for name, mean in named if not np.isnan(mean)]
    return float(total.sum() / weight.sum()), sorted(known, key=lambda pair: (-pair[1], pair[0]))

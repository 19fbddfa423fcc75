"""Whether the rankings hold enough comparisons for worths to be estimated at all."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from rankshot.ranking.blocks import ABSENT, last_levels, levels
from rankshot.ranking.errors import RankshotError, listed
from rankshot.ranking.precedence import precedence
from rankshot.ranking.rankings import Rankings


def require_estimable(rankings: Rankings) -> None:
    """Raise unless the Plackett-Luce maximum-likelihood estimate exists.

    It does exactly when the items cannot be split in two so that none of one part is ever
    placed before one of the other: the graph of "was placed before" is strongly connected
    (Hunter 2004). A tie that K cuts says only that some of its items came before the rest; it is
    left out, which is on the safe side: an estimate that rests on it is refused, too.
    """
    given = rankings[rankings.weights > 0]
    rankings = _without_cut_ties(given)
    before = precedence(rankings) > 0 if rankings.has_ties else _next_in_line(rankings)
    count, label = connected_components(csr_array(before), connection="strong")
    if count > 1:
        cut = bool((given.lengths < given.n_listed).any())
        raise RankshotError(_message(before, int(count), label, rankings.items, cut=cut))


def _next_in_line(rankings: Rankings) -> NDArray[np.bool_]:
    """Return which item ever came right before which: as good as all of "before", and cheaper.

    After the last item of a top-K list comes all that it leaves out. Item j is left out by
    some list that ends with i unless all that end with i name it.
    """
    C, entries, rows = rankings.n_items, rankings.entries.astype(np.int64), rankings.entry_rows
    follows = rows[1:] == rows[:-1]
    pairs = (entries[:-1] * C + entries[1:])[follows]
    before = np.bincount(pairs, minlength=C * C).reshape(C, C) > 0
    top = rankings[~rankings.is_subset]
    last = top.entries[top.starts[1:] - 1].astype(np.int64)
    ends_with = np.bincount(last, minlength=C)
    named = np.bincount(last[top.entry_rows] * C + top.entries, minlength=C * C).reshape(C, C)
    return np.asarray(before | (named < ends_with[:, None]))


def _without_cut_ties(rankings: Rankings) -> Rankings:
    """End rankings before a tie that K cuts: its items need not have come before the rest."""
    if not rankings.has_ties:
        return rankings
    table = levels(rankings)
    last = last_levels(rankings)[:, None]
    sure = ((table < last) & (table != ABSENT)).sum(axis=1)
    whole = sure + (table == last).sum(axis=1) <= rankings.lengths
    lengths = np.where(whole, rankings.lengths, sure)
    kept = lengths > 0
    return rankings[kept].top(lengths[kept])


def _message(
    before: NDArray[np.bool_],
    count: int,
    label: NDArray[np.int32],
    items: tuple[str, ...],
    *,
    cut: bool,
) -> str:
    part = np.zeros((len(items), count))
    part[np.arange(len(items)), label] = 1
    between = (part.T @ before @ part) > 0
    np.fill_diagonal(between, val=False)
    sizes = np.bincount(label)
    # Who stands apart is named, not whom they stand apart from.
    in_main_group = (label == np.argmax(sizes)) & (sizes.max() > 1)
    parts: list[str] = []
    loses, wins = np.asarray(between.any(axis=0)), np.asarray(between.any(axis=1))
    for ends, text in (
        (wins & ~loses, "nothing else was placed before"),
        (loses & ~wins, "nothing else was placed after"),
        (~wins & ~loses, "nothing else was compared with"),
    ):
        names = [items[i] for i in np.flatnonzero(ends[label] & ~in_main_group)]
        if names:
            parts.append(f"{text} {listed(names)}")
    verdict = "need not exist, ties that K cuts aside" if cut else "does not exist"
    return (
        f"the Plackett-Luce maximum-likelihood estimate {verdict}: the items fall into "
        f"{count} groups whose worths cannot be compared ({'; '.join(parts)}). "
        "Use regularization > 0, or add rankings that connect them"
    )

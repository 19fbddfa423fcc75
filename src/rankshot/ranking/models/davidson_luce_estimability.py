r"""Whether rankings determine the Davidson-Luce estimate.

Add s times d to the log-worths and s times e to the log tie parameters, where e_1 = 0. As s grows,
every choice from a set A comes to be of the sets S with the largest score

.. math:: e_{|S|} + \frac{1}{|S|} \sum_{i \in S} d_i.

The likelihood is concave. So the estimate exists, and is the only one, unless the rankings always
chose a set of the largest score for some scores that are not all the same.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array, vstack
from scipy.sparse.csgraph import connected_components

from rankshot.core.errors import RankshotError, quote_names
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.matrices import group_by_place, levels
from rankshot.ranking.models.davidson_luce_likelihood import count_choices
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Choice = tuple[tuple[int, ...], tuple[int, ...]]
"""The items that were chosen, and those that they were chosen from."""
ZERO = 1e-7
"""Smaller scores are rounding of the linear program."""
HELP = "Use regularization > 0, or add rankings that connect them"


def require_tie_sizes(rankings: Rankings) -> Ints:
    """Return the sizes of chosen sets, 1 first; raise if a tie parameter would be infinite.

    It is infinite if smaller sets are never chosen where a tie of this size could have been.
    """
    chosen, available = count_choices(rankings)
    sizes = np.union1d([1], chosen)
    most = np.array([available[chosen == size].max(initial=1) for size in sizes])
    chosen_over = most[:, None] >= sizes
    count, label = connected_components(csr_array(chosen_over), connection="strong")
    if count > 1:
        size = sizes[np.flatnonzero(label != label[0])[0]]
        raise RankshotError(
            f"the tie parameter of ties of {size} items is infinite: wherever such a tie was "
            "possible, items tied. Add rankings with fewer ties, or use PlackettLuce"
        )
    return sizes


def require_finite_worths(rankings: Rankings, sizes: Ints) -> None:
    """Raise unless the maximum-likelihood worths exist.

    They do if wins and losses connect all items both ways. They do not if wins, losses and ties
    leave some items apart. In between, where ties are needed as links, a linear program decides.
    """
    wins = csr_array(precedence(rankings))
    if connected_components(wins, connection="strong")[0] == 1:
        return
    choices = _list_choices(rankings)
    # The items of a tie, in a circle.
    tied = [pair for s, _ in choices for pair in zip(s, (*s[1:], s[0]), strict=True)]
    ties = csr_array((np.ones(len(tied)), tuple(np.transpose(tied))), shape=wins.shape)
    count, label = connected_components(wins + ties, connection="strong")
    if count > 1:
        counts = np.bincount(label)
        main = int(np.argmax(counts))
        apart = [rankings.items[i] for i in np.flatnonzero(label != main)]
        names = apart if counts[main] > 1 else list(rankings.items)
        raise RankshotError(
            f"the Davidson-Luce maximum-likelihood estimate does not exist: {quote_names(names)} "
            "did not both win and lose against the other items, or tie with them, directly or "
            f"through others. {HELP}"
        )
    direction = _find_direction(wins, choices, sizes)
    if direction is not None:
        low, high = int(direction.argmin()), int(direction.argmax())
        raise RankshotError(
            "the Davidson-Luce maximum-likelihood estimate does not exist: only ties speak for "
            f"{rankings.items[low]!r} against {rankings.items[high]!r}, so that their worths grow "
            f"apart without end, and the tie parameter with them. {HELP}"
        )


def _list_choices(rankings: Rankings) -> list[Choice]:
    """Return the different choices of all rankings."""
    table = levels(rankings)
    begin, _, row = group_by_place(rankings)
    found: dict[Choice, None] = {}
    for first, i in zip(begin.tolist(), row.tolist(), strict=True):
        if first < rankings.lengths[i]:
            level = rankings.places[rankings.starts[i] + first]
            chosen, among = np.flatnonzero(table[i] == level), np.flatnonzero(table[i] >= level)
            found[tuple(chosen.tolist()), tuple(among.tolist())] = None
    return list(found)


def _find_direction(wins: csr_array, choices: list[Choice], sizes: Ints) -> Floats | None:
    """Return scores d of which every choice has the largest, or None if all are the same.

    Few of the sets that could have been chosen matter: those of the largest score are added to the
    linear program until none of them has a larger score than the chosen set.
    """
    C = wins.shape[0]

    def score(chosen: tuple[int, ...]) -> Floats:
        row = np.zeros(C + sizes.size)
        row[list(chosen)] = 1 / len(chosen)
        row[C + np.searchsorted(sizes, len(chosen))] = 1
        return row

    winner, loser = wins.nonzero()
    nth = np.arange(winner.size)
    shape = (winner.size, C + sizes.size)
    above = csr_array((np.ones(winner.size), (nth, winner)), shape=shape)
    above -= csr_array((np.ones(winner.size), (nth, loser)), shape=shape)
    new = [score(s) - score((i,)) for s, _ in choices if len(s) > 1 for i in s]
    # If no score of a winner is above that of a loser, or of a tie above that of one of its items,
    # then all are the same.
    gain = above.sum(axis=0) + np.sum(new, axis=0)
    bounds = [(-1, 1)] * C + [(0, 0)] + [(-2, 2)] * (sizes.size - 1)
    while True:
        above = vstack([above, csr_array(np.array(new))], format="csr")
        found = linprog(-gain, A_ub=-above, b_ub=np.zeros(above.shape[0]), bounds=bounds)
        if -found.fun <= ZERO * above.shape[0]:
            return None
        new = []
        for chosen, among in choices:
            by_score = sorted(among, key=lambda i: -found.x[i])
            for size in sizes[sizes <= len(among)].tolist():
                row = score(chosen) - score(tuple(by_score[:size]))
                if row @ found.x < -10 * ZERO:
                    new.append(row)
        if not new:
            return np.asarray(found.x[:C])

"""Votes that the ratings do not explain: of pairs of items, and of raters."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import ndtr

from rankshot.core.errors import InputError
from rankshot.leaderboards.evidence import ScoreTests, adjust_holm
from rankshot.leaderboards.pair_models import PairLikelihood
from rankshot.ranking.construction import number_labels
from rankshot.ranking.models.information import variances_of_differences
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings, are_votes, require_rankings
from rankshot.ranking.votes import Votes

Floats = NDArray[np.float64]
LEAST_VOTES = 10
"""Pairs with fewer votes are not tested: their shares are hardly normal."""


def find_misfit(tests: ScoreTests) -> Floats:
    """Return the p-values of each pair having the wins that its ratings explain; NaN if not tested.

    They are adjusted for all pairs (Holm 1979). The variance of a score s with the information I is
    that of the model or, if it is larger, that of the raters: the sum of (s_g - I d_g)² over the
    raters g, where d_g is what a rater added to the difference between the two log-worths.
    """
    likelihood, C = tests.likelihood, tests.likelihood.n_items
    if not isinstance(likelihood, PairLikelihood):
        return np.full((C, C), np.nan)
    pair, slope, information, weights = likelihood.of_pairs(tests.parameters)
    size = np.bincount(pair, weights, C * C)
    of_pair = np.bincount(pair, weights * information, C * C)
    share = of_pair * variances_of_differences(tests.inverse[:C, :C]).ravel()
    # The votes of a pair that nothing else connects are explained by its ratings alone.
    left = np.maximum(1 - share, 0.0)
    variance = of_pair * left
    gradients = likelihood.row_gradients(tests.parameters) @ tests.inverse[:, :C]
    for units in tests.units[:2]:
        n = units.copies.size
        added = csr_array((units.weights, (units.unit, units.number)), (n, len(gradients)))
        added = added @ gradients
        cell = units.unit * (C * C) + pair[units.number]
        cells, at = np.unique(cell, return_inverse=True)
        who, which = np.divmod(cells, C * C)
        sums = np.bincount(at, units.weights * slope[units.number])
        crossed = sums * (added[who, which // C] - added[who, which % C])
        squares, crossed = (np.bincount(which, x, C * C) for x in (sums**2, crossed))
        spread = variances_of_differences(added.T @ added).ravel()
        of_raters = squares - 2 * of_pair * crossed + of_pair**2 * spread
        variance = np.maximum(variance, of_raters)
    tested = np.flatnonzero((size >= LEAST_VOTES) & (left > 1e-6))
    z = np.bincount(pair, weights * slope, C * C)[tested] / np.sqrt(variance[tested])
    p = np.full(C * C, np.nan)
    p[tested] = adjust_holm(2 * ndtr(-np.abs(z)))
    return np.asarray(np.fmin(p.reshape(C, C), p.reshape(C, C).T))


class RaterAgreement(NamedTuple):
    """How often a rater agrees with the ratings.

    Attributes
    ----------
    rater : str
    votes : float
        The total weight of the votes that prefer one of two items.
    agreement : float
        The share of these votes for the item with the higher rating.
    expected : float
        The share if the votes of each pair were shared out among its raters at random.
    p_value : float
        The probability of so little agreement by chance, adjusted by Holm's method for all raters.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(["a"] * 45 + ["b"] * 15, ["b"] * 45 + ["a"] * 15,
    ...     raters=["ann", "bob", "cy"] * 15 + ["ann", "bob", "spam", "spam", "spam"] * 3)
    >>> [(each.rater, each.votes, each.agreement, each.expected, each.p_value < 0.05) for each in
    ...     rs.leaderboards.rater_agreement(votes)][0]
    ('spam', 9.0, 0.0, 0.75, True)
    """

    rater: str
    votes: float
    agreement: float
    expected: float
    p_value: float


def rater_agreement(votes: Rankings | Votes) -> list[RaterAgreement]:
    r"""Return the agreement of each rater with all votes, the least explained by chance first.

    Ties and votes without a rater are ignored. If a rater votes like the others, who of them gave
    which of the votes of a pair is chance, given all votes of the pair. So the number of votes for
    the favourite, k of K, has a hypergeometric distribution, with the mean n K / N for n of the N
    votes, whatever the items are worth. The ratings decide only who the favourite is.

    Parameters
    ----------
    votes : Rankings or Votes
        Votes between two items, with raters.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(["a"] * 8 + ["b"] * 2, ["b"] * 8 + ["a"] * 2,
    ...     raters=["ann", "bob"] * 5)
    >>> [each.rater for each in rs.leaderboards.rater_agreement(votes)]
    ['ann', 'bob']
    """
    rankings = require_rankings(votes.rankings if isinstance(votes, Votes) else votes)
    if not are_votes(rankings):
        raise InputError("votes", len(rankings), "must be votes between two items; use agreement")
    rater = number_labels(rankings.raters)
    kept = (rater > 0) & ~rankings.rows_with_ties & (rankings.weights > 0)
    names = sorted({*rankings.raters[kept].tolist()})
    if len(names) < 2:
        raise InputError("rater", names, "must be two or more: name their column")
    part = rankings[kept]
    part = replace(part, targets=np.full(len(part), None, object))
    g, w = number_labels(part.raters) - 1, part.weights
    winner, loser = part.codes.reshape(-1, 2).T.astype(np.int64)
    theta = PlackettLuce().fit(part).log_worths_
    agrees = np.where(theta[winner] == theta[loser], 0.5, theta[winner] > theta[loser])
    # One cell for each rater and pair, in which n votes have the weight a, and b its square.
    low, high = np.minimum(winner, loser), np.maximum(winner, loser)
    _, pair = np.unique(low * rankings.n_items + high, return_inverse=True)
    total, favourite = np.bincount(pair, w), np.bincount(pair, w * agrees)
    share = favourite / total
    cells, cell = np.unique(g * np.int64(total.size) + pair, return_inverse=True)
    who, which = np.divmod(cells, total.size)
    n = np.bincount(cell, w)
    spread = share * (1 - share) * total / np.maximum(total - 1, 1) * (total > 1)
    single = np.where(np.all(w % 1 == 0), w, w**2)
    chance = (np.bincount(cell, single) - n**2 / total[which]) * spread[which]
    votes_of, agreed = np.bincount(g, w), np.bincount(g, w * agrees)
    expected, variance = np.bincount(who, n * share[which]), np.bincount(who, chance)
    # Half a vote: counts are whole.
    gap = np.minimum(agreed - expected + 0.5, 0.0)
    z = np.divide(gap, np.sqrt(variance), out=np.zeros_like(gap), where=variance > 1e-12)
    columns = votes_of, agreed / votes_of, expected / votes_of, adjust_holm(ndtr(z))
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    found = (RaterAgreement(*row) for row in rows)
    return sorted(found, key=lambda row: (row.p_value, row.agreement - row.expected))

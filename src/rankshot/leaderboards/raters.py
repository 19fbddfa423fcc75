"""The reliability of each rater: agreement with the others, and noise."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from rankshot.core.errors import RankshotError
from rankshot.leaderboards.board import adjust_holm
from rankshot.leaderboards.pair_models import PairLikelihood
from rankshot.ranking.checks import are_votes
from rankshot.ranking.construction import number_labels
from rankshot.ranking.models.information import maximize_worths
from rankshot.ranking.models.plackett_luce import PlackettLuce
from rankshot.ranking.rankings import Rankings, require_rankings

Floats = NDArray[np.float64]
START = 0.9
"""The reliability that the search starts from: it must know which end of the scale is good."""
CONVERGED, MOST_ROUNDS = 1e-4, 500


class RaterReliability(NamedTuple):
    """The reliability of one rater.

    Attributes
    ----------
    rater : str
    votes : float
        The total weight of the votes that prefer one of two items.
    agreement : float
        The share of these votes for the item that all other raters together rate higher.
    expected : float
        The expected share if the rater voted as the others do.
    p_value : float
        The probability of so little agreement by chance, adjusted by Holm's method for all raters.
    reliability : float
        η of Crowd-BT: the rater reports the outcome drawn from the model with this probability,
        and otherwise the opposite. 0.5 means random votes, and less than 0.5 contrary votes.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(["a"] * 45 + ["b"] * 15, ["b"] * 45 + ["a"] * 15,
    ...     raters=["ann", "bob", "cy"] * 15 + ["ann", "bob", "spam", "spam", "spam"] * 3)
    >>> [(each.rater, each.votes, round(each.agreement, 2)) for each in
    ...     rs.leaderboards.rater_reliability(votes)][-1]
    ('spam', 9.0, 0.0)
    """

    rater: str
    votes: float
    agreement: float
    expected: float
    p_value: float
    reliability: float


def rater_reliability(votes: Rankings) -> list[RaterReliability]:
    """Return the reliability of each rater, the most reliable first.

    Ties and votes without a rater are ignored. Reliabilities and worths are estimated together by
    maximum likelihood, with EM.

    Parameters
    ----------
    votes : Rankings
        Votes between two items, with raters.

    References
    ----------
    Chen, Bennett, Collins-Thompson and Horvitz (2013), Pairwise ranking aggregation in a
    crowdsourced setting. WSDM.

    Examples
    --------
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_pairs(["a"] * 8 + ["b"] * 2, ["b"] * 8 + ["a"] * 2,
    ...     raters=["ann", "bob"] * 5)
    >>> [each.rater for each in rs.leaderboards.rater_reliability(votes)]
    ['ann', 'bob']
    """
    require_rankings(votes)
    if not are_votes(votes):
        raise RankshotError(
            "reliability needs votes between two items; for other rankings, use agreement"
        )
    rater = number_labels(votes.raters)
    kept = (rater > 0) & ~votes.rows_with_ties & (votes.weights > 0)
    if np.unique(rater[kept]).size < 2:
        raise RankshotError("reliability needs votes of two or more raters: name their column")
    names = sorted({*votes.raters[kept].tolist()})
    part = replace(votes[kept], targets=np.full(int(kept.sum()), None, object))
    g, w = number_labels(part.raters) - 1, part.weights
    winner, loser = part.codes.reshape(-1, 2).T.astype(np.intp)
    n = np.bincount(g, w)
    p = expit(_differ_without_own(part, winner, loser, g))
    agrees = np.where(p == 0.5, 0.5, p > 0.5)
    larger = np.maximum(p, 1 - p)
    agreement, expected = (np.bincount(g, w * x) / n for x in (agrees, larger))
    variance = np.bincount(g, w**2 * larger * (1 - larger))
    z = np.divide(
        n * (agreement - expected), np.sqrt(variance), out=np.zeros(n.size), where=variance > 0
    )
    columns = n, agreement, expected, adjust_holm(ndtr(z)), _fit_crowd(part, winner, loser, g)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return sorted((RaterReliability(*row) for row in rows), key=lambda row: -row.reliability)


def weigh_raters(votes: Rankings) -> Floats:
    """Return the weights of votes times (2 η - 1)²: what a vote of a rater tells, by Crowd-BT."""
    tells = {
        each.rater: max(2 * each.reliability - 1, 0.0) ** 2 for each in rater_reliability(votes)
    }
    return votes.weights * [tells.get(rater, 1.0) for rater in votes.raters]


def _differ_without_own(
    votes: Rankings, winner: NDArray[np.intp], loser: NDArray[np.intp], g: NDArray[np.int64]
) -> Floats:
    """Return the log-odds that the others give to the winner of each vote.

    Without the votes of a rater, the worths are one Newton step away: by A⁻¹ s / (1 - a), where s
    are the rater's derivatives, and a the share in the information A.
    """
    model = PlackettLuce().fit(votes)
    C, theta, w = votes.n_items, model.log_worths_, votes.weights
    q = expit(theta[loser] - theta[winner])
    sums = np.zeros((int(g.max()) + 1, C))
    np.add.at(sums, (g, winner), w * q)
    np.add.at(sums, (g, loser), -w * q)
    share = np.bincount(g, w * q * (1 - q)) / float(w @ (q * (1 - q)))
    theta = theta - sums @ model.covariance(votes) / (1 - np.minimum(share, 0.5))[:, None]
    return np.asarray(theta[g, winner] - theta[g, loser])


def _fit_crowd(
    votes: Rankings, winner: NDArray[np.intp], loser: NDArray[np.intp], g: NDArray[np.int64]
) -> Floats:
    """Return η of each rater, by EM: a vote is reversed with probability 1 - η."""
    C, w, n = votes.n_items, votes.weights, np.bincount(g, votes.weights)
    pair, number = np.unique(np.append(winner * C + loser, loser * C + winner), return_inverse=True)
    model = PlackettLuce().fit(votes)
    eta, theta, ridge = np.full(n.size, START), model.log_worths_, model.regularization
    for _ in range(MOST_ROUNDS):
        p = expit(theta[winner] - theta[loser])
        as_drawn = eta[g] * p
        as_drawn /= as_drawn + (1 - eta[g]) * (1 - p)
        wins = np.bincount(number, np.append(w * as_drawn, w * (1 - as_drawn))).astype(float)
        ones = np.ones(pair.size)
        likelihood = PairLikelihood(*np.divmod(pair, C), ones, wins, C, has_ties=False)
        theta = maximize_worths(likelihood, ridge, start=theta).parameters
        new = np.bincount(g, w * as_drawn) / n
        change, eta = float(np.abs(new - eta).max()), new
        if change < CONVERGED:
            break
    return eta

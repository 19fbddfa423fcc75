"""Votes with ties as outcomes: published estimates, derivatives, and when an estimate exists."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pair_tables import PUDDING, SPRINGALL, read_table

import rankshot as rs
from rankshot.leaderboards.pair_models import PairLikelihood, fit_matches
from rankshot.ranking.models.information import find_covariance
from refusals import refuses

MLE = rs.PlackettLuce(regularization=0)
PUBLISHED = {
    "pudding": (
        read_table(PUDDING, 6),
        [0.2202419002, 0.1529777049, 0.1751449086, 0.1338652270, 0.3771348958],
        [0.187216981, 0.193518358, 0.188211086, 0.192704560, 0.192406233],
        (-0.2919270862, 0.08249869, -809.7095101),
        (1e-8, 1e-8),
    ),
    "springall": (
        read_table(SPRINGALL, 9),
        [-2.27322954559, -3.29074993942, -0.39761046448, -1.89478943361, -2.84284729328,
         1.28146667695, 0.00489786626, -0.60743834343],
        [0.28681811853, 0.32250408855, 0.26101192837, 0.27911170100, 0.30389782484, 0.29576927704,
         0.26478005980, 0.26078153615],
        (-0.14439169086, 0.09020630193, -732.0672554),
        (1e-7, 1e-6),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PUBLISHED)
def test_published_tables(case):
    """`btmodel(undecided = TRUE)` of R's psychotools 0.7.2, relative to the first item."""
    votes, log_worths, errors, (log_tie, tie_error, log_likelihood), (atol, error_atol) = PUBLISHED[
        case
    ]
    board = rs.leaderboard(votes, MLE)
    at = [board.items.index(item) for item in votes.items]
    found, V = board.log_worths[at], board.covariance[np.ix_(at, at)]
    assert_allclose((found - found[0])[1:], log_worths, atol=atol)
    assert_allclose(np.sqrt(np.diag(V) + V[0, 0] - 2 * V[0])[1:], errors, atol=error_atol)
    assert_allclose(np.log(board.tie_parameter), log_tie, atol=atol)
    fit = fit_matches(votes, np.empty((len(votes), 0)), (), has_ties=True, penalty=0.0)
    V = find_covariance(fit.likelihood, fit.parameters, fit.ridge, votes.items)
    assert_allclose(np.sqrt(V[-1, -1]), tie_error, atol=error_atol)
    assert_allclose(fit.likelihood.evaluate(fit.parameters).value, log_likelihood, atol=1e-6)
    if case == "pudding":
        # Davidson's own estimates, of seven iterations.
        davidson = [0.1388005, 0.1729985, 0.1617420, 0.1653930, 0.1586805, 0.2023855, 0.7468147]
        assert_allclose([*board.worths[at], board.tie_parameter], davidson, atol=3e-5)


def test_derivatives(rng):
    votes = read_table(PUDDING, 6)
    likelihood = PairLikelihood(votes, rng.normal(size=(len(votes), 2)), has_ties=True)
    point = rng.normal(size=9)
    steps = 1e-5 * np.eye(9)
    pairs = [(likelihood.evaluate(point + s), likelihood.evaluate(point - s)) for s in steps]
    slopes = [(up.value - down.value) / 2e-5 for up, down in pairs]
    curvatures = [(down.gradient - up.gradient) / 2e-5 for up, down in pairs]
    assert_allclose(likelihood.evaluate(point).gradient, slopes, rtol=1e-6)
    assert_allclose(likelihood.information(point), curvatures, atol=1e-4)
    listed = likelihood.row_gradients(point)
    assert_allclose(votes.weights @ listed, likelihood.evaluate(point).gradient)


@pytest.mark.filterwarnings("ignore:some items always won")
@pytest.mark.parametrize("ties", ["outcome", "half", "ignore"])
@pytest.mark.parametrize("cycle", [True, False])
def test_votes_without_a_penalty_need_a_cycle_of_wins(ties, cycle):
    """Or ties, if they are half wins. Whether there is a maximum shows in a tiny penalty."""
    back = ["b", "a"] if cycle else ["a", "b"]
    votes = rs.Rankings.from_pairs(
        ["a", "a", back[0]] * 2, ["b", "b", back[1]] * 2, ties=[False, True, False] * 2
    )
    far = rs.leaderboard(votes, rs.PlackettLuce(regularization=1e-9), ties=ties, min_votes=0)
    assert (np.ptp(far.log_worths) > 5) == (not cycle and ties != "half")
    if cycle or ties == "half":
        board = rs.leaderboard(votes, MLE, ties=ties, min_votes=0)
        assert_allclose(board.log_worths, far.log_worths, atol=1e-6)
    else:
        with refuses("regularization", 0):
            rs.leaderboard(votes, MLE, ties=ties)

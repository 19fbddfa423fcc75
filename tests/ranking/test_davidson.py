"""Votes with ties as outcomes: published estimates, derivatives, and when an estimate exists."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pair_tables import PUDDING, SPRINGALL, read_table
from scipy.optimize import linprog

import rankshot as rs
from rankshot.leaderboards.pair_models import PairLikelihood, fit_matches
from rankshot.ranking.models.information import find_covariance

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
    fit = fit_matches(
        votes, np.empty((len(votes), 0)), (), has_ties=True, penalty=0.0, is_connected=True
    )
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


def grows_without_bound(votes, n_items):
    """Whether a direction exists in which no vote becomes less probable.

    A vote is its winner, its loser, and whether it is a tie; parameters are log-worths and the
    logarithm of the tie parameter.
    """
    rows = []
    for first, second, is_tie in votes:
        first_wins, second_wins, tie = np.zeros((3, n_items + 1))
        first_wins[first] = second_wins[second] = tie[-1] = 1
        tie[[first, second]] = 0.5
        own = tie if is_tie else first_wins
        rows += [other - own for other in (first_wins, second_wins, tie) if other is not own]
    bounds = [(-1, 1)] * n_items + [(-2, 2)]
    found = linprog(np.sum(rows, axis=0), np.array(rows), np.zeros(len(rows)), bounds=bounds)
    return found.fun < -1e-6


def test_an_estimate_is_found_where_it_exists_and_nowhere_else(rng):
    """Against a linear program over all outcomes of the votes."""
    count = {True: 0, False: 0}
    for _ in range(60):
        n = int(rng.integers(5, 10))
        first = rng.integers(0, 4, n)
        second = (first + rng.integers(1, 4, n)) % 4
        is_tie = rng.random(n) < 0.4
        if np.union1d(first, second).size < 4 or not is_tie.any():
            continue
        votes = rs.Rankings.from_pairs(first, second, ties=is_tie, items=range(4))
        grows = grows_without_bound(zip(first, second, is_tie, strict=True), 4)
        # Items that nothing connects have no common scale either.
        links = np.eye(4)
        links[first, second] = links[second, first] = 1
        grows |= not np.linalg.matrix_power(links, 4).all()
        count[grows] += 1
        settings = {"has_ties": True, "penalty": 0.0, "is_connected": True}
        if grows:
            with pytest.raises(rs.RankshotError, match="does not exist"):
                fit_matches(votes, np.empty((n, 0)), (), **settings)
        else:
            fit = fit_matches(votes, np.empty((n, 0)), (), **settings)
            assert np.abs(fit.parameters).max() < 20
    assert min(count.values()) > 10


@pytest.mark.parametrize("ties", ["half", "ignore"])
def test_votes_without_a_penalty_need_a_cycle_of_wins(ties):
    votes = rs.Rankings.from_pairs(["a", "a"], ["b", "b"], ties=[False, ties == "ignore"])
    with pytest.raises(rs.InputError) as caught:
        rs.leaderboard(votes, MLE, ties=ties)
    assert (caught.value.parameter, caught.value.value) == ("regularization", 0)

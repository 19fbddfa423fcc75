"""Covariances of log-worths and quasi-variances, against R and exact arithmetic."""

import numpy as np
import pytest
from pair_tables import PUDDING, read_table

import rankshot as rs
from rankshot.ranking.models.information import (
    find_quasi_variances,
    invert_curvature,
    variances_of_differences,
)

CITATIONS = {
    "Biometrika": [714, 730, 498, 221],
    "Comm Statist": [33, 425, 68, 17],
    "JASA": [320, 813, 1072, 142],
    "JRSS-B": [284, 276, 325, 188],
}
BASEBALL = {
    "Baltimore": [0, 1, 7, 4, 2, 3, 1],
    "Boston": [12, 0, 7, 2, 6, 7, 6],
    "Cleveland": [6, 6, 0, 4, 4, 6, 5],
    "Detroit": [9, 11, 9, 0, 6, 5, 7],
    "Milwaukee": [11, 7, 9, 7, 0, 7, 9],
    "New York": [10, 6, 7, 8, 6, 0, 6],
    "Toronto": [12, 7, 8, 6, 4, 7, 0],
}
"""Data sets of R's BradleyTerry2: how often the row won against each column.

R's numbers below were computed with ``control = glm.control(epsilon = 1e-15, maxit = 200)``.
"""


def fit_wins(table):
    wins = np.array(list(table.values()))
    np.fill_diagonal(wins, 0)
    pairs = rs.Rankings.from_pair_counts(wins, items=table)
    model = rs.PlackettLuce(regularization=0, tol=1e-13).fit(pairs)
    return model, model.covariance(pairs)


def from_first(covariance):
    """Return the covariance of the differences from the first item, as R reports it."""
    C = len(covariance)
    contrast = np.eye(C) - np.eye(C)[:, [0]].T
    return (contrast @ covariance @ contrast.T)[1:, 1:]


# ---- Covariances


def test_citations_and_baseball_in_bradley_terry_2():
    """``vcov(BTm(cbind(win1, win2), player1, player2, data = countsToBinomial(citations)))``.

    ``summary(BTm(cbind(home.wins, away.wins), home.team, away.team, data = baseball))``.
    """
    model, covariance = fit_wins(CITATIONS)
    assert (model.log_worths_ - model.log_worths_[0])[1:] == pytest.approx(
        [-2.9490724968, -0.4795697698, 0.2689540558], abs=1e-8
    )
    assert from_first(covariance) == pytest.approx(
        np.array(
            [
                [0.01051554583511, 0.00227454711971, 0.00146041939949],
                [0.00227454711971, 0.00367099411192, 0.00168355767865],
                [0.00146041939949, 0.00168355767865, 0.00501688395765],
            ]
        ),
        rel=1e-9,
    )
    _, covariance = fit_wins(BASEBALL)
    assert np.sqrt(np.diag(from_first(covariance))) == pytest.approx(
        [
            *[0.333878206989, 0.331876672711, 0.339568506378],
            *[0.343255981594, 0.335860922525, 0.336669401422],
        ],
        rel=1e-8,
    )


@pytest.mark.parametrize("regularization", [0, 0.5])
@pytest.mark.parametrize("kind", ["top", "subset"])
def test_it_inverts_the_numerical_second_derivatives(random_rankings, rng, regularization, kind):
    rankings = random_rankings(n_items=5, n=20, weights=rng.random(20), kind=kind, shortest=2)
    model = rs.PlackettLuce(regularization=regularization, tol=1e-13).fit(rankings)

    def objective(theta):
        at = rs.PlackettLuce.from_worths(dict(zip(rankings.items, np.exp(theta), strict=True)))
        penalty = regularization / 2 * theta @ theta
        return rankings.weights @ at.log_prob(rankings) - penalty

    # The coordinates are those of an orthogonal basis of log-worths that add up to zero.
    basis = np.linalg.svd(np.eye(5) - 1 / 5)[0][:, :4]
    h = 1e-3
    steps = h * basis.T

    def bend(step):
        ahead, here, behind = (objective(model.log_worths_ + sign * step) for sign in (1, 0, -1))
        return (ahead - 2 * here + behind) / h**2

    hessian = np.array([[(bend(a + b) - bend(a - b)) / 4 for b in steps] for a in steps])
    expected = basis @ np.linalg.inv(-hessian) @ basis.T
    assert model.covariance(rankings) == pytest.approx(expected, rel=1e-3, abs=1e-5)


def test_weights_of_different_size_have_exact_errors():
    """A chain a - b - c - d with weights from 1 to 1e12: variances add up along it."""
    chain = rs.Rankings.from_orders(
        [["a", "b"], ["c", "b"], ["c", "d"]], kind="subset", weights=[1e12, 3e6, 1]
    )
    worths = {"a": 3, "b": 1, "c": 2, "d": 1}
    links = np.array([1e12 * 3 / 16, 3e6 * 2 / 9, 2 / 9])
    from_a = np.append(0, np.cumsum(1 / links))
    found = variances_of_differences(rs.PlackettLuce.from_worths(worths).covariance(chain))
    assert found == pytest.approx(np.abs(from_a[:, None] - from_a), rel=1e-6, abs=1e-6)
    assert found[2, 3] == pytest.approx(1 / links[2], rel=1e-10)


@pytest.mark.parametrize(
    "orders", [[["a", "b"], ["c", "d"]], [["a", "b"], ["b", "c"]], [[["a", "b"]], ["c", "d"]]]
)
def test_items_that_are_not_compared_have_infinite_errors(orders):
    model = rs.PlackettLuce.from_worths({"a": 1, "b": 2, "c": 3, "d": 1})
    pairs = rs.Rankings.from_orders(orders, items=list("abcd"), kind="subset")
    with pytest.raises(rs.RankshotError):
        model.standard_errors(pairs)
    # A prior is enough.
    assert np.isfinite(rs.PlackettLuce().fit(pairs).standard_errors(pairs)).all()


@pytest.mark.parametrize(("last", "error"), [(0.25, None), (1 / 9 + 1e-11, "b"), (0.1, "b")])
def test_a_parameter_that_the_others_explain_is_refused(last, error):
    """The pivot of b is its information less what a explains, in units of itself."""
    curvature = np.array([[9.0, 1], [1, last]]) * 1e6
    if error is None:
        assert invert_curvature(curvature, ["a", "b"]) == pytest.approx(np.linalg.inv(curvature))
    else:
        with pytest.raises(rs.RankshotError, match=error):
            invert_curvature(curvature, ["a", "b"])


# ---- Quasi-variances

COSINES = np.cos(np.outer(np.arange(1, 7), np.arange(1, 7)))
COSINES = COSINES @ COSINES.T + np.diag(np.arange(1, 7)) / 4
NEARLY_EQUAL = np.eye(4)
NEARLY_EQUAL[[0, 1, 0, 2], [1, 0, 2, 0]] = 0.95, 0.95, 0.2, 0.2


@pytest.mark.parametrize(
    ("covariance", "variances"),
    [
        (
            COSINES,
            [
                *[2.52998179085, 3.25760513141, 6.18698629521],
                *[3.18116579428, 3.79437262308, 5.23741988198],
            ],
        ),
        (np.array([[1, 0.9, 0], [0.9, 1, 0.6], [0, 0.6, 2]]), [0.7, -0.5, 2.3]),
        (NEARLY_EQUAL, [-0.0360708376115, 0.1375972448432, 1.5363469642004, 1.7100150466551]),
        (
            fit_wins(CITATIONS)[1],
            [0.00177417668259, 0.00850747203549, 0.00183576933416, 0.00342411547859],
        ),
        (
            fit_wins(BASEBALL)[1],
            [
                *[0.0655477771427, 0.0464659730792, 0.0490069321637, 0.0481792633803],
                *[0.0500043801623, 0.0467958522462, 0.0470374388367],
            ],
        ),
    ],
    ids=["cosines", "three items", "nearly equal", "citations", "baseball"],
)
def test_quasi_variances_are_those_of_qvcalc(covariance, variances):
    """qvcalc 1.0.2: ``qvcalc(covariance, factorname = "x", estimates = ...)$qvframe``.

    qvcalc stops when six digits are right; the gradient shows that ours are nearer the minimum.
    """
    found = find_quasi_variances(covariance)
    assert found == pytest.approx(variances, rel=1e-5)
    first, second = np.triu_indices(len(covariance), 1)
    sums = found[first] + found[second]
    slopes = np.log(sums / variances_of_differences(covariance)[first, second]) / sums
    gradient = np.bincount(first, slopes, len(found)) + np.bincount(second, slopes, len(found))
    assert gradient == pytest.approx(0, abs=1e-9)


def test_the_pudding_example_of_plackett_luce_in_r():
    """summary(mod, ref = NULL) and qvcalc(mod) of its vignette, after 7 of R's iterations."""
    pudding = read_table(PUDDING, 6)
    board = rs.leaderboard(pudding, rs.PlackettLuce(regularization=0))
    at = [board.items.index(item) for item in pudding.items]
    assert board.standard_errors[at] == pytest.approx(
        [0.121949, 0.121818, 0.126823, 0.122003, 0.127054, 0.126594], rel=1e-4
    )
    covariance, found = board.covariance[np.ix_(at, at)], board.quasi_variances[at]
    assert found == pytest.approx(
        [0.01766108, 0.01761919, 0.01948091, 0.01769538, 0.01957908, 0.01937796], rel=2e-4
    )
    # The vignette has them in per cent, with one digit.
    i, j = np.triu_indices(6, 1)
    errors = np.sqrt((found[i] + found[j]) / variances_of_differences(covariance)[i, j]) - 1
    assert errors.min().round(3) == -0.008
    assert errors.max().round(3) == 0.008

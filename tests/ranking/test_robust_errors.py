"""Errors that are clustered by rater, against numerical derivatives; covariates of a match."""

from dataclasses import replace

import numpy as np
import pytest
from pair_tables import draw_outcomes, draw_pairs, draw_votes
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import t as student

import rankshot as rs
from rankshot.ranking.models.pair_likelihood import PairLikelihood
from rankshot.ranking.models.plackett_luce_stages import find_gradients, log_prob

NAMES, THETA = list("abcde"), np.linspace(1, -1, 5)


def differentiate(f, at, h=1e-5):
    """Return the derivatives of each value of f, one column per parameter."""
    steps = h * np.eye(at.size)
    return np.array([(f(at + step) - f(at - step)) / (2 * h) for step in steps]).T


def loop_over_raters(log_probs, at, raters, weights, ridge):
    """Return A⁻¹ B A⁻¹ G/(G - 1) of log-worths that add up to zero, and of the parameters after."""
    slopes = differentiate(log_probs, at) * weights[:, None]
    bend = differentiate(lambda x: differentiate(log_probs, x).T @ weights, at, 1e-4)
    C = len(NAMES)
    prior = np.zeros_like(bend)
    prior[:C, :C] = ridge * (np.eye(C) - 1 / C)
    inverse = np.linalg.pinv(prior - bend, rcond=1e-6)
    groups = [slopes[raters == name].sum(axis=0) for name in np.unique(raters)]
    B = sum(np.outer(s, s) for s in groups) * len(groups) / (len(groups) - 1)
    found = inverse @ B @ inverse
    centre = np.eye(at.size)
    centre[:C, :C] -= 1 / C
    return centre @ found @ centre


def sort_like(board, covariance):
    at = [NAMES.index(item) for item in board.items]
    return covariance[np.ix_(at, at)]


def name_raters(rankings, n):
    raters = np.array([f"p{i % n}" for i in range(len(rankings))], object)
    return replace(rankings, raters=raters)


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_derivatives_of_rankings_with_ties(random_rankings, rng, kind):
    rankings = random_rankings(n_items=8, n=30, kind=kind, shortest=2)
    theta = rng.normal(size=8)
    found = find_gradients(rankings, theta)
    wanted = differentiate(lambda x: log_prob(rankings, rankings.items, x), theta)
    dense = found.listed.toarray() - np.outer(found.rest, found.worths)
    assert dense == pytest.approx(wanted, abs=1e-7)


@pytest.mark.parametrize("kind", ["top", "subset"])
def test_errors_are_clustered_by_rater(random_rankings, rng, kind):
    votes = random_rankings(n_items=5, n=40, kind=kind, shortest=2, weights=rng.integers(1, 4, 40))
    votes = name_raters(replace(votes, items=tuple(NAMES)), 7)
    board = rs.leaderboard(votes, rs.PlackettLuce(), min_votes=0)
    model = rs.PlackettLuce().fit(votes)
    wanted = loop_over_raters(
        lambda x: log_prob(votes, votes.items, x),
        model.log_worths_, votes.raters.astype(str), votes.weights, 0.01,
    )  # fmt: skip
    assert board.covariance == pytest.approx(sort_like(board, wanted), rel=1e-3, abs=1e-6)
    assert board.degrees == 6
    reach = student.ppf(0.975, 6) * board.standard_errors
    assert board.intervals[:, 1] - board.log_worths == pytest.approx(reach)
    assert "40 rankings by 7 raters" in repr(replace(board, weight=40))


@pytest.fixture
def tied(rng):
    return draw_votes(rng, THETA, 120, NAMES, tie_parameter=0.8)


@pytest.fixture
def strict(rng):
    return draw_votes(rng, THETA, 120, NAMES)


@pytest.mark.parametrize("longer", [False, True])
def test_ties_as_outcomes_are_clustered_too(tied, longer):
    """Pairs have formulas of their own; with one longer ranking all go through sums over sets."""
    votes = tied
    if longer:
        more = rs.Rankings.from_orders([["a", ["b", "c"], "d"]], items=NAMES, kind="subset")
        votes = rs.Rankings.concatenate([votes, more])
    votes = name_raters(votes, 9)
    board = rs.leaderboard(votes)
    model = rs.DavidsonLuce().fit(votes)

    def log_probs(x):
        worths = dict(zip(NAMES, np.exp(x[:5]), strict=True))
        return rs.DavidsonLuce.from_worths(worths, {2: np.exp(x[5])}).log_prob(votes)

    at = np.append(model.log_worths_, np.log(model.tie_parameters_[2]))
    wanted = loop_over_raters(log_probs, at, votes.raters.astype(str), votes.weights, 0.01)
    assert board.covariance == pytest.approx(sort_like(board, wanted[:5, :5]), rel=1e-3, abs=1e-6)


def test_half_wins_have_the_errors_of_their_votes(tied):
    """A tie of two equal items says exactly 1/2, with no chance in it."""
    votes = tied
    board = rs.leaderboard(votes, ties="half")
    a, b = votes.codes.reshape(-1, 2).T
    won = np.where(votes.rows_with_ties, 0.5, 1.0)

    def log_probs(x):
        d = x[a] - x[b]
        return won * np.log(expit(d)) + (1 - won) * np.log(expit(-d))

    at = minimize(lambda x: -log_probs(x).sum() + 0.005 * x @ x, np.zeros(5), tol=1e-12).x
    wanted = loop_over_raters(log_probs, at, np.arange(len(votes)), np.ones(len(votes)), 0.01)
    assert board.covariance == pytest.approx(sort_like(board, wanted), rel=2e-3, abs=1e-6)


def test_only_ratios_of_weights_that_are_not_counts_matter(rng, strict):
    pandas = pytest.importorskip("pandas")
    winner, loser = zip(*strict.orders(), strict=True)
    weights = rng.uniform(0.5, 2, len(strict))
    errors = []
    for factor in (1, 100, 0.01):
        frame = pandas.DataFrame({"winner": winner, "loser": loser, "weight": factor * weights})
        errors.append(rs.leaderboard(frame).standard_errors)
    assert errors[1] == pytest.approx(errors[0], rel=1e-9)
    assert errors[2] == pytest.approx(errors[0], rel=1e-9)
    frame["weight"] = 100
    wanted = rs.leaderboard(strict)
    assert rs.leaderboard(frame).standard_errors == pytest.approx(wanted.standard_errors)
    # Counts are counts: a hundred times as many votes.
    counted = rs.leaderboard(frame, count="weight", model=rs.PlackettLuce(regularization=1e-9))
    once = rs.leaderboard(strict, rs.PlackettLuce(regularization=1e-11))
    assert counted.standard_errors == pytest.approx(once.standard_errors / 10, rel=1e-6)


def test_a_single_rater_cannot_say_what_others_would(tied):
    votes = replace(tied, raters=np.full(120, "ann", object))
    with pytest.warns(UserWarning, match="all rankings are of one rater"):
        board = rs.leaderboard(votes)
    assert board.n_raters == 0
    # Votes without a rater are raters of their own.
    half = replace(votes, raters=np.where(np.arange(120) < 60, None, votes.raters))
    assert rs.leaderboard(half).degrees == 60


def test_an_item_that_never_lost_keeps_its_wide_interval(strict):
    """All its derivatives are nearly zero: raters seem to agree on it exactly."""
    wins = rs.Rankings.from_pairs(["new"] * 30, ["a", "b", "c"] * 10, items=[*NAMES, "new"])
    votes = rs.Rankings.concatenate([strict.change_items(wins.items), wins])
    with pytest.warns(UserWarning, match="nothing else was placed before 'new'"):
        by_rater = rs.leaderboard(name_raters(votes, 10))
    with pytest.warns(UserWarning, match="nothing else was placed before 'new'"):
        alone = rs.leaderboard(votes)
    assert by_rater.items[0] == "new"
    assert by_rater.standard_errors[0] >= 0.99 * alone.standard_errors[0]


# ---- Covariates


@pytest.fixture(scope="module")
def styled():
    """Return votes with a length that helps, and the truth."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    n = 3000
    a, b = draw_pairs(rng, n, 5)
    length = rng.normal(size=(n, 2)) + 0.5 * THETA[np.stack([a, b], axis=1)]
    d = THETA[a] - THETA[b] + 0.6 * (length[:, 0] - length[:, 1]) + 0.25
    outcome = draw_outcomes(rng, d, 0.5)
    names = np.array(NAMES)
    return pandas.DataFrame(
        {
            "left": names[a], "right": names[b],
            "winner": np.array(["left", "right", "tie"])[outcome],
            "length_a": length[:, 0], "length_b": length[:, 1], "rater": np.arange(n) // 20,
        }
    )  # fmt: skip


@pytest.mark.parametrize("ties", ["outcome", "half", "ignore"])
def test_covariates_are_fitted_with_the_worths(styled, ties):
    board = rs.leaderboard(styled, covariates=["length", "position"], ties=ties)
    found = [styled[name].map(NAMES.index).to_numpy() for name in ("left", "right")]
    gap = (styled.length_a - styled.length_b).to_numpy()
    sign = styled.winner.map({"left": 1.0, "right": -1.0, "tie": 0.0}).to_numpy()
    kept = (sign != 0) | (ties != "ignore")

    def log_probs(x):
        d = x[found[0]] - x[found[1]] + gap * x[5] + x[6]
        delta = np.exp(x[7]) if ties == "outcome" else 0.0
        total = np.exp(d / 2) + np.exp(-d / 2) + delta
        tie = x[7] if ties == "outcome" else 0.0
        return (np.where(sign == 0, tie, sign * d / 2) - np.log(total))[kept]

    def loss(x):
        return -log_probs(x).sum() + 0.005 * x[:5] @ x[:5]

    start = np.zeros(7 + (ties == "outcome"))
    at = minimize(loss, start, tol=1e-10).x
    worths = [at[NAMES.index(item)] for item in board.items]
    assert board.log_worths == pytest.approx(worths - np.mean(at[:5]), abs=1e-3)
    values = [board.effects[name].value for name in ("length", "position")]
    assert values == pytest.approx(at[5:7], abs=1e-3)
    raters = styled.rater.to_numpy()[kept]
    V = loop_over_raters(log_probs, at, raters, np.ones(kept.sum()), 0.01)
    assert board.covariance == pytest.approx(sort_like(board, V[:5, :5]), rel=5e-3, abs=1e-6)
    low, high = board.effects["length"].interval
    assert (high - low) / 2 == pytest.approx(student.ppf(0.975, 149) * np.sqrt(V[5, 5]), rel=5e-3)
    assert f"effect of length: {at[5]:.3g}" in repr(board)


@pytest.mark.parametrize("has_ties", [False, True])
def test_squares_of_votes_are_those_of_their_derivatives(has_ties):
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=30)
    sign = rng.choice([1.0, -1.0, 0.0] if has_ties else [1.0, -1.0], 30)
    votes = first, (first + rng.integers(1, 4, size=30)) % 4, sign, np.ones(30), 4
    likelihood = PairLikelihood(*votes, rng.normal(size=(30, 2)), has_ties=has_ties)
    b, weights = rng.normal(size=likelihood.size), rng.random(30)
    g = likelihood.gradients(b).toarray()
    np.testing.assert_allclose(likelihood.squares(b, weights), g.T @ (weights[:, None] * g))


def test_bad_covariates_are_refused(styled):
    with pytest.raises(rs.RankshotError, match="no column 'size' for a covariate, nor 'size_a', "):
        rs.leaderboard(styled, covariates=["size"])
    with pytest.raises(rs.RankshotError, match="covariate 'zero' is 0 in all votes"):
        rs.leaderboard(styled.assign(zero=0.0), covariates="zero")

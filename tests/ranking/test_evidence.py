"""Score tests, claims for many looks and the test of fit, against their definitions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from pair_tables import draw_outcomes, draw_pairs, make_votes
from scipy.integrate import trapezoid
from scipy.optimize import minimize
from scipy.special import expit
from scipy.stats import binomtest, norm

import rankshot as rs
from rankshot.leaderboards.evidence import Looks, allow_looks, choose_pairs, to_normal
from rankshot.ranking.models.information import variances_of_differences

pytestmark = pytest.mark.filterwarnings("ignore:some items always won")


def count(wins):
    return rs.Rankings.from_pair_counts(wins, items=list("abcdef")[: len(wins)])


def test_an_item_that_never_lost_is_better():
    board = rs.leaderboard(count([[0, 100, 100], [0, 0, 50], [0, 50, 0]]))
    assert [row.better_than for row in board] == [2, 0, 0]
    assert board.rank_intervals.tolist() == [[1, 1], [2, 3], [2, 3]]
    low, high = board.compare("a", "b").interval
    assert low == pytest.approx(3.7, abs=0.3)
    assert high == np.inf
    ballots = rs.Rankings.from_orders([list("abcd")] * 20)
    assert [row.better_than for row in rs.leaderboard(ballots)] == [3, 2, 1, 0]


@pytest.mark.parametrize("n", [3, 4, 5, 6, 8, 12, 100])
def test_two_items_have_about_the_exact_binomial_p_value(n):
    board = rs.leaderboard(count([[0, n], [0, 0]]), min_votes=0)
    exact = binomtest(n, n).pvalue
    assert board.p_values[0, 1] >= exact
    z = (n / 2 - 0.5) / np.sqrt(n / 4)
    assert board.p_values[0, 1] == pytest.approx(2 * norm.sf(z), rel=0.02)
    # The interval is that of the same test: p (1 - p) with which n wins are just possible.
    low = expit(board.compare("a", "b").interval[0])
    edge = (n * (1 - low) - 0.5) / np.sqrt(n * low * (1 - low))
    assert n < 6 or edge == pytest.approx(norm.isf(0.025), abs=0.05)


def test_evidence_never_makes_a_claim_weaker():
    for lost in (0, 1):
        boards = (rs.leaderboard(count([[0, n], [lost, 0]])) for n in (5, 10, 30, 100, 300))
        assert np.all(np.diff([board.p_values[0, 1] for board in boards]) < 0)


def test_a_score_test_is_that_of_a_fit_with_equal_worths(rng):
    """By a general optimiser, and the information about the difference by its definition."""
    wins = rng.poisson(6, (4, 4)).astype(float)
    np.fill_diagonal(wins, 0)
    board = rs.leaderboard(count(wins), rs.PlackettLuce(regularization=0.01))
    i, j = board.items.index("a"), board.items.index("b")

    def loss(x):
        theta = np.array([x[0], *x])
        gap = theta[:, None] - theta
        return -np.sum(wins * np.log(expit(gap))) + 0.005 * theta @ theta

    theta = minimize(loss, np.zeros(3), tol=1e-12).x[[0, 0, 1, 2]]
    chance = expit(theta[:, None] - theta)
    both = wins + wins.T
    score = float(np.sum(wins[0] - both[0] * chance[0]) - 0.01 * theta[0])
    weight = both * chance * chance.T
    A = np.diag(weight.sum(axis=1)) - weight + 0.01 * np.eye(4)
    N = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    own = A[0, 0] - A[0] @ N @ np.linalg.solve(N.T @ A @ N, N.T @ A[0])
    found = board.tests.test(int(board.places[i]), int(board.places[j]))
    assert found.error == pytest.approx(own**-0.5, rel=1e-4)
    wanted = np.sign(score) * max(abs(score) - 0.5, 0) * own**-0.5
    assert found.z == pytest.approx(wanted, abs=1e-3)


def test_raters_who_agree_by_chance_count_as_votes_and_others_do_not(rng):
    """Fifty raters who each always vote for the same item are fifty votes."""
    raters = [f"p{i // 10}" for i in range(500)]
    names = ["a" if i // 10 < 40 else "b" for i in range(500)]
    others = ["b" if name == "a" else "a" for name in names]
    board = rs.leaderboard(rs.Rankings.from_pairs(names, others, raters=raters))
    z = board.tests.test(0, 1).z
    assert abs(z) == pytest.approx(to_normal((40 - 25) / np.sqrt(50 * 0.16), 49), rel=0.03)
    alike = rs.leaderboard(
        rs.Rankings.from_pairs(["a"] * 498 + ["b"] * 2, ["b"] * 498 + ["a"] * 2, raters=raters)
    )
    assert alike.clearly_better[0, 1]


def test_an_e_value_is_the_likelihood_ratio_to_a_normal_difference():
    for z, error in ((1.0, 0.3), (3.0, 0.1), (2.5, 2.0)):
        estimate = z * error
        grid = np.linspace(-9, 9, 20001)
        mixed = trapezoid(norm.pdf(estimate, grid, error) * norm.pdf(grid), grid)
        e = mixed / norm.pdf(estimate, 0, error)
        found = Looks("many").log_p(z, error)
        assert found == pytest.approx(min(-np.log(e), 0), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-5, 1, 1e3])
def test_guided_looks_have_the_determinant_of_all_log_worths(rng, scale):
    root = scale * rng.normal(size=(5, 5))
    V = root @ root.T
    V -= V.mean(axis=0)
    V -= V.mean(axis=1, keepdims=True)
    A = np.linalg.pinv(V)
    wanted = np.linalg.slogdet(np.eye(5) + A)[1] / 2
    assert allow_looks("guided", V).log_root == pytest.approx(wanted)


@pytest.mark.parametrize("looks", ["many", "guided"])
def test_more_looks_need_more_evidence(rng, looks):
    a, b = draw_pairs(rng, 800, 5)
    theta = np.linspace(1, -1, 5)
    votes = make_votes(a, b, draw_outcomes(rng, theta[a] - theta[b]), list("abcde"))
    one, more = rs.leaderboard(votes), rs.leaderboard(votes, looks=looks)
    assert np.all(more.p_values >= one.p_values - 1e-12)
    assert more.clearly_better.sum() <= one.clearly_better.sum()
    assert np.all(np.diff(more.comparison_intervals) > np.diff(one.comparison_intervals))
    assert np.all(np.diff(more.rank_intervals) >= np.diff(one.rank_intervals))
    pair = more.items[0], more.items[-1]
    low, high = more.compare(*pair).interval
    assert low < one.compare(*pair).interval[0] < one.compare(*pair).interval[1] < high


@pytest.mark.parametrize("n_raters", [0, 12])
def test_the_test_of_fit_is_the_score_test_of_one_more_parameter_for_a_pair(rng, n_raters):
    """Its variance is that of the model, or that of the raters' own scores if it is larger."""
    wins = rng.poisson(15, (4, 4)) + 3
    wins[0, 1] += 250
    np.fill_diagonal(wins, 0)
    won, lost = np.repeat(np.argwhere(wins >= 0), wins.ravel(), axis=0).T
    # Raters differ as strongly as items do.
    rater = np.where(rng.random(won.size) < 0.4, won, rng.integers(0, 12, won.size))
    names = np.array(list("abcd"))
    raters = [f"p{i}" for i in rater] if n_raters else None
    votes = rs.Rankings.from_pairs(names[won], names[lost], raters=raters)
    board = rs.leaderboard(votes, rs.PlackettLuce(regularization=1e-8))
    found = {(each.first, each.second): each.p_value for each in board.misfits()}
    theta, both = board.log_worths, board.wins + board.wins.T
    chance = expit(theta[:, None] - theta)
    weight = both * chance * chance.T
    A = np.diag(weight.sum(axis=1)) - weight
    V, p = np.linalg.pinv(A), {}
    at = np.argsort([list("abcd").index(item) for item in board.items])
    won, lost = at[won], at[lost]
    slopes = (np.eye(4)[won] - np.eye(4)[lost]) * chance[lost, won][:, None]
    own = np.array([np.bincount(rater, column, 12) for column in slopes.T]).T
    for i in range(4):
        for j in range(i + 1, 4):
            score = board.wins[i, j] - both[i, j] * chance[i, j]
            of_votes = ((won == i) & (lost == j)) * chance[j, i]
            of_votes = of_votes - ((won == j) & (lost == i)) * chance[i, j]
            of_model = weight[i, j] * (1 - weight[i, j] * (V[i, i] + V[j, j] - 2 * V[i, j]))
            after = np.bincount(rater, of_votes, 12) - weight[i, j] * own @ (V[i] - V[j])
            of_raters = np.square(after).sum() if n_raters else 0
            if of_model > 1e-6:
                error = np.sqrt(max(of_model, of_raters))
                p[board.items[i], board.items[j]] = 2 * norm.sf(abs(score) / error)
    smallest = min(p, key=p.get)
    assert p[smallest] < 0.01
    assert board.misfits()[0][:2] == smallest
    assert found[smallest] == pytest.approx(min(1, len(p) * p[smallest]), rel=1e-3)
    # Every pair is tested, however strongly raters differ.
    assert len(p) == 6
    assert np.isfinite([*found.values()]).all()


def test_ignored_ties_do_not_change_a_board_of_raters(rng):
    theta = np.array([4.0, 0.0, 0.3])
    a = rng.integers(0, 3, 300)
    b = (a + rng.integers(1, 3, 300)) % 3
    wins = rng.random(300) < 1 / (1 + np.exp(theta[b] - theta[a]))
    pairs = [[f"i{i}" for i in np.where(wins, x, y)] for x, y in ((a, b), (b, a))]
    votes = rs.Rankings.from_pairs(*pairs, raters=[f"r{i % 10}" for i in range(300)])
    ties = rs.Rankings.from_pairs(
        ["i0"] * 60, ["i1"] * 60, ties=[True] * 60, raters=["r1", "r2"] * 30, items=votes.items
    )
    alone = rs.leaderboard(votes, ties="ignore")
    both = rs.leaderboard(rs.Rankings.concatenate([votes, ties]), ties="ignore")
    assert_allclose(both.p_values, alone.p_values)
    assert_allclose(both.compare("i0", "i1").interval, alone.compare("i0", "i1").interval)


def test_ties_alone_do_not_limit_the_lead_of_an_item_that_never_lost(rng):
    ties = rs.Rankings.from_pairs(["a"] * 14, ["b"] * 14, ties=[True] * 14)
    wins = rs.Rankings.from_pairs(["a"] * 26, ["b"] * 26)
    with pytest.warns(UserWarning, match="always won"):
        board = rs.leaderboard(rs.Rankings.concatenate([wins, ties]))
    low, high = board.compare("a", "b").interval
    assert low > 0
    assert high == np.inf
    # Where two items beat each other, the tie parameter has a limit, and ties connect.
    both = rs.Rankings.from_pairs(["b", "c"] * 20, ["c", "b"] * 20)
    parts = (x.change_items(("a", "b", "c")) for x in (wins, ties, both))
    board = rs.leaderboard(rs.Rankings.concatenate(parts))
    assert np.isfinite(board.comparison_intervals).all()
    assert board.warnings == ()


# ---- Which votes to ask for next, and how many


def test_votes_needed_shrink_intervals_by_the_root_of_their_number(rng):
    wins = [[0, 30, 20], [10, 0, 25], [15, 20, 0]]
    for scale in ("log-worth", "elo"):
        board = rs.leaderboard(count(wins), scale=scale)
        width = np.mean([row.high - row.low for row in board])
        assert board.votes_needed(width / 2) == 360
        assert board.votes_needed(width / 1.5) == 150
        assert board.votes_needed(1.01 * width) == 0


def test_each_pair_is_the_one_that_lowers_the_variances_most(rng):
    """Against the definition: the covariance after each possible vote."""
    root = rng.normal(size=(5, 5))
    V = np.linalg.inv(root @ root.T + 0.1 * np.eye(5))
    theta = rng.normal(size=5)
    spread = variances_of_differences(V)
    i, j = np.triu_indices(5, 1)
    z = -np.abs(theta[i] - theta[j]) / np.sqrt(spread[i, j])
    weights = norm.cdf(z) / spread[i, j]
    gains = {}
    for a, b in zip(i.tolist(), j.tolist(), strict=True):
        e = np.eye(5)[a] - np.eye(5)[b]
        p = expit(theta[a] - theta[b])
        after = np.linalg.inv(np.linalg.inv(V) + p * (1 - p) * np.outer(e, e))
        lower = spread[i, j] - variances_of_differences(after)[i, j]
        gains[a, b] = weights @ lower
    assert tuple(sorted(choose_pairs(theta, V, 1)[0])) == max(gains, key=gains.get)

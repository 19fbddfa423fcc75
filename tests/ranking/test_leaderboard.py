"""Leaderboards: what they say of differences and ranks, against simulation."""

from dataclasses import replace

import numpy as np
import pytest

import rankshot as rs

TRUTH = rs.PlackettLuce.from_worths({"a": 4.0, "b": 2.0, "c": 1.98, "d": 1.96, "e": 0.5, "f": 0.4})
MODEL = rs.PlackettLuce(regularization=0.001)


@pytest.fixture(scope="module")
def votes():
    return TRUTH.sample(200, k=3, random_state=1)


@pytest.fixture(scope="module")
def board(votes):
    return rs.leaderboard(votes, MODEL, random_state=0)


def test_it_is_the_fit_sorted(votes, board):
    model = rs.PlackettLuce(regularization=0.001).fit(votes)
    order = np.argsort(-model.log_worths_)
    assert board.items == tuple(model.items_[i] for i in order)
    assert board.log_worths == pytest.approx(model.log_worths_[order], abs=1e-9)
    assert board.worths == pytest.approx(model.worths_[order], abs=1e-9)
    assert board.standard_errors == pytest.approx(model.standard_errors(votes)[order], rel=1e-6)
    reach = 1.959963985 * board.standard_errors
    assert board.intervals[:, 1] - board.log_worths == pytest.approx(reach, rel=1e-8)
    assert board.ranks.tolist() == [1, 2, 3, 4, 5, 6]
    assert board.weight == 200


def test_a_model_with_features_must_be_fitted(votes):
    model = rs.PlackettLuceRegression(alpha=0.01, l1_ratio=0)
    with pytest.raises(rs.RankshotError, match="a model with features must be fitted before"):
        rs.leaderboard(votes, model)
    model.fit(votes, np.arange(12).reshape(6, 2) ** 1.5)
    board = rs.leaderboard(votes, model, random_state=0)
    assert sorted(board.log_worths) == pytest.approx(sorted(model.log_worths_))
    with pytest.raises(rs.RankshotError, match="the bootstrap cannot fit it again"):
        rs.leaderboard(votes, model, method="bootstrap")


def test_compare_is_a_test_of_the_difference(board):
    i, j = board.items.index("a"), board.items.index("e")
    found = board.compare("a", "e")
    V = board.covariance
    error = np.sqrt(V[i, i] + V[j, j] - 2 * V[i, j])
    assert found.standard_error == pytest.approx(error)
    assert found.difference == board.log_worths[i] - board.log_worths[j]
    assert np.diff(found.interval)[0] == pytest.approx(2 * 1.959963985 * error)
    assert found.probability > 0.999
    assert board.compare("e", "a").probability == pytest.approx(1 - found.probability, abs=1e-12)
    assert board.compare("a", "a") == (0.0, 0.0, (0.0, 0.0), 0.5)


# ---- The bootstrap


@pytest.fixture(scope="module")
def drawn(votes):
    return rs.leaderboard(votes, MODEL, method="bootstrap", n_draws=300, random_state=0)


def test_the_bootstrap_agrees_with_the_information(board, drawn):
    assert drawn.items == board.items
    # 300 draws know a standard error to 1/sqrt(2·300) = 4 %.
    assert drawn.standard_errors == pytest.approx(board.standard_errors, rel=0.2)
    assert np.abs(drawn.rank_intervals - board.rank_intervals).max() <= 1


def test_raters_are_drawn_with_all_their_rankings(votes):
    """A rater who votes nine times says no more than one who votes once."""
    copies = votes[np.repeat(np.arange(200), 9)]
    raters = replace(copies, raters=np.repeat([f"p{i}" for i in range(200)], 9).astype(object))
    options = {"method": "bootstrap", "n_draws": 100, "random_state": 0}
    alone = rs.leaderboard(copies, MODEL, **options)
    together = rs.leaderboard(raters, MODEL, **options)
    assert together.log_worths == pytest.approx(alone.log_worths, abs=1e-9)
    # 100 draws know a standard error to 7 %.
    assert together.standard_errors / alone.standard_errors == pytest.approx(3, rel=0.3)


def refuse_bootstrap(votes, message, model=MODEL):
    with pytest.raises(rs.RankshotError, match=message):
        rs.leaderboard(votes, model, method="bootstrap", n_draws=20, random_state=0)


def warn_of_bootstrap(votes, message, model=MODEL):
    with pytest.warns(UserWarning, match=message):
        return rs.leaderboard(votes, model, method="bootstrap", n_draws=20, random_state=0)


def subsets(*orders, weights, **options):
    return rs.Rankings.from_orders(orders, weights=weights, kind="subset", **options)


def test_the_bootstrap_refuses_items_that_are_not_compared():
    """Only the regulariser would hold them in place, and all draws would agree."""
    both = [["a", "b"], ["b", "a"]]
    apart = subsets(*both, ["c", "d"], ["d", "c"], weights=[1000, 1000, 2000, 1000])
    refuse_bootstrap(apart, r"directly or through others: 'c', 'd'\. Leave them out")
    alone = subsets(*both, ["c"], weights=[10, 10, 10])
    refuse_bootstrap(alone, "through others: 'c'")
    unlisted = subsets(*both, weights=[10, 10], items=list("abc"))
    refuse_bootstrap(unlisted, "through others: 'c'")
    assert rs.leaderboard(unlisted, random_state=0).rank_intervals.tolist() == [[1, 3]] * 3
    tied = subsets(*both, [["b", "c"]], weights=[10, 10, 10])
    refuse_bootstrap(tied, "through others: 'c'")


def test_the_bootstrap_warns_of_items_that_always_won_or_lost():
    votes = subsets(["a", "b"], ["b", "a"], ["b", "c"], weights=[20, 20, 20])
    warn_of_bootstrap(votes, r"too small: nothing else was placed after 'c'\. All draws")
    tied = subsets(["a", "b"], ["b", "a"], [["b", "c"]], weights=[20, 20, 20])
    # Where a tie is an outcome, it says that two items are alike; but it is no win.
    warn_of_bootstrap(tied, "nothing else was compared with 'c'", rs.DavidsonLuce())


def test_the_bootstrap_needs_several_raters():
    one = rs.Rankings.from_orders([["a", "b", "c"]])
    refuse_bootstrap(one, r"at least 2 raters, .*; here is 1 \(a ranking of weight w")
    orders = [["a", "b"], ["b", "a"], ["a", "b"], ["b", "a"]]
    refuse_bootstrap(rs.Rankings.from_orders(orders, raters=["ann"] * 4), "here is 1 ")
    refuse_bootstrap(rs.Rankings.from_orders(orders, weights=[4e-301] * 4), "here is 1.6e-300 ")
    warn_of_bootstrap(rs.Rankings.from_orders(orders), "draws from only 4 raters or rankings")


def test_draws_without_an_estimate_are_drawn_again():
    """A draw of the one order alone, of which there are about a third."""
    votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[50, 1])
    message = (
        r"^\d of 2\d draws .* could not be fitted, .*\(the last one: the Plackett-Luce maximum"
    )
    board = warn_of_bootstrap(votes, message, rs.PlackettLuce(regularization=0))
    assert np.isfinite(board.covariance).all()
    ties = rs.Rankings.from_orders([["a", "b"], ["b", "a"], [["a", "b"]]], weights=[1, 1, 30])
    board = warn_of_bootstrap(
        ties, "the tie parameter of ties of 2 items is inf", rs.DavidsonLuce()
    )
    assert board.standard_errors[0] > 0


# ---- Corners and text


@pytest.mark.parametrize("method", ["simulation", "bootstrap"])
def test_items_that_nothing_tells_apart_share_their_rank(method):
    votes = rs.Rankings.from_orders([["a"], ["b"]], items=list("abcd"), weights=[20, 10])
    if method == "simulation":
        board = rs.leaderboard(votes, n_draws=50, random_state=0)
    else:
        board = warn_of_bootstrap(votes, "nothing else was placed after 'c', 'd'")
    assert board.ranks.tolist() == [1, 2, 3, 3]
    assert np.isfinite(board.intervals).all()
    assert np.isfinite(board.quasi_variances).all()
    assert np.isfinite(board.comparison_intervals).all()
    assert board.rank_intervals[2:, 1].tolist() == [4, 4]


def test_a_negative_quasi_variance_is_shown_as_the_standard_error():
    """The errors of b and c are opposite, and a is between them; it is not known exactly."""
    board = rs.leaderboard(rs.Rankings.from_orders([["a", "b", "c"]]), random_state=0)
    covariance = np.array([[0.5, 0, 0], [0, 1, -1], [0, -1, 1]])
    board = replace(board, covariance=covariance)
    # q_a + q_b = q_a + q_c = 1.5 and q_b + q_c = 4.
    assert board.quasi_variances == pytest.approx([-0.5, 2, 2])
    widths = np.diff(board.comparison_intervals)[:, 0] / (2 * 1.959963985)
    assert widths**2 == pytest.approx([0.5, 2, 2])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 1}, "level must be positive and below 1, not 1"),
        ({"method": "jackknife"}, "method must be one of 'simulation', 'bootstrap'"),
        ({"n_draws": 1}, "n_draws must be a whole number from 2 on, not 1"),
    ],
)
def test_bad_options_are_refused(votes, change, message):
    with pytest.raises(rs.RankshotError, match=message):
        rs.leaderboard(votes, **change)


# ---- How often intervals of ranks hold the true ranks of nearly equal items

NAMES = [f"{i:02}" for i in range(20)]
N_VOTES = 2000


def vote(log_worths, rng):
    """Return votes between two items that are drawn at random."""
    first, second = rng.permuted(np.tile(np.arange(20), (N_VOTES, 1)), axis=1)[:, :2].T
    wins = rng.random(N_VOTES) < 1 / (1 + np.exp(log_worths[second] - log_worths[first]))
    winners, losers = np.where(wins, [first, second], [second, first])
    names = np.array(NAMES)
    return rs.Rankings.from_pairs(names[winners], names[losers], items=NAMES)


@pytest.mark.slow
def test_intervals_cover_the_true_ranks_where_drawn_ranks_do_not():
    """The numbers of docs/guide/leaderboards.md."""
    coverage = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        log_worths = 0.01 * rng.standard_normal(20)
        true = dict(zip(NAMES, 1 + np.argsort(np.argsort(-log_worths)), strict=True))
        board = rs.leaderboard(vote(log_worths, rng), random_state=seed)
        draws = rng.multivariate_normal(board.log_worths, board.covariance, 1000, method="eigh")
        ranks = 1 + np.argsort(np.argsort(-draws, axis=1), axis=1)
        ranges = np.quantile(ranks, [0.025, 0.975], axis=0).T
        wanted = np.array([true[item] for item in board.items])
        coverage.append(
            [
                ((low <= wanted) & (wanted <= high)).mean()
                for low, high in (board.rank_intervals.T, ranges.T)
            ]
        )
    by_intervals, by_draws = np.mean(coverage, axis=0)
    assert by_intervals > 0.99
    assert 0.8 < by_draws < 0.87

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


def test_a_fitted_model_is_used_as_it_is(votes):
    board = rs.leaderboard(votes, TRUTH, random_state=0)
    assert board.log_worths[board.items.index("a")] == TRUTH.log_worths_[0]
    assert board.standard_errors[0] == pytest.approx(TRUTH.standard_errors(votes)[0], rel=1e-9)
    other = rs.leaderboard(votes.with_items(TRUTH.items_[::-1]), TRUTH, random_state=0)
    assert other.standard_errors == pytest.approx(board.standard_errors, rel=1e-9)


def test_the_bootstrap_fits_a_fitted_model_again(votes):
    options = {"method": "bootstrap", "n_draws": 5, "random_state": 0}
    fitted = rs.PlackettLuce(regularization=0.001).fit(TRUTH.sample(9, random_state=0))
    one, two = (rs.leaderboard(votes, model, **options) for model in (fitted, MODEL))
    assert one.log_worths.tolist() == two.log_worths.tolist()


def test_a_model_with_features_must_be_fitted(votes):
    model = rs.PlackettLuceRegression(alpha=0.01, l1_ratio=0)
    with pytest.raises(rs.RankshotError, match="a model with features must be fitted before"):
        rs.leaderboard(votes, model)
    model.fit(votes, np.arange(12).reshape(6, 2) ** 1.5)
    board = rs.leaderboard(votes, model, random_state=0)
    assert sorted(board.log_worths) == pytest.approx(sorted(model.log_worths_))
    with pytest.raises(rs.RankshotError, match="the bootstrap cannot fit it again"):
        rs.leaderboard(votes, model, method="bootstrap")


def test_draws_without_an_estimate_are_refused():
    votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], weights=[5, 1])
    with pytest.raises(
        rs.RankshotError, match=r"the bootstrap drew .* cannot be fitted: .*Use reg"
    ):
        rs.leaderboard(votes, rs.PlackettLuce(regularization=0), method="bootstrap")


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


def test_rank_intervals_hold_the_true_ranks(rng):
    """Also of items that are nearly equal, where ranks drawn around the estimate would not."""
    truth = np.argsort(np.argsort(-TRUTH.log_worths_)) + 1
    held = []
    for seed in range(150):
        votes = TRUTH.sample(60, random_state=rng)
        board = rs.leaderboard(votes, MODEL, level=0.8, n_draws=200, random_state=seed)
        low, high = board.rank_intervals.T
        true = truth[[TRUTH.items_.index(item) for item in board.items]]
        inside = dict(zip(board.items, (low <= true) & (true <= high), strict=True))
        held.append([inside[item] for item in TRUTH.items_])
    shares = np.mean(held, axis=0)
    # The standard error of a share of 0.8 is 0.033.
    assert shares.min() > 0.7
    assert np.mean(held) > 0.8


def test_rank_intervals_become_narrow():
    few, many = (
        rs.leaderboard(TRUTH.sample(n, random_state=0), MODEL, random_state=0).rank_intervals
        for n in (5, 20_000)
    )
    assert np.diff(few).mean() > 3.5
    assert many[[0, -2, -1]].tolist() == [[1, 1], [5, 5], [6, 6]]


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


def test_weights_are_copies_for_the_bootstrap(votes):
    times = np.arange(30) % 4
    copies = votes[np.repeat(np.arange(30), times)]
    weighted = replace(votes[:30], weights=times.astype(float))
    options = {"method": "bootstrap", "n_draws": 20, "random_state": 3}
    one, two = (rs.leaderboard(r, MODEL, **options) for r in (copies, weighted))
    assert one.standard_errors == pytest.approx(two.standard_errors, rel=1e-9)
    assert one.items == two.items


def test_names_have_no_influence(votes, board):
    renamed = rs.leaderboard(votes.with_items(TRUTH.items_[::-1]), MODEL, random_state=0)
    assert renamed.items == board.items
    assert renamed.standard_errors == pytest.approx(board.standard_errors, rel=1e-6)


# ---- Corners and text


@pytest.mark.parametrize("method", ["simulation", "bootstrap"])
def test_items_that_nothing_tells_apart_share_their_rank(method):
    votes = rs.Rankings.from_orders([["a"], ["a"], ["b"]], items=list("abcd"))
    board = rs.leaderboard(votes, method=method, n_draws=50, random_state=0)
    assert board.ranks.tolist() == [1, 2, 3, 3]
    assert np.isfinite(board.intervals).all()
    assert np.isfinite(board.quasi_variances).all()
    assert np.isfinite(board.comparison_intervals).all()
    assert board.rank_intervals[2:, 1].tolist() == [4, 4]


def test_one_item():
    board = rs.leaderboard(rs.Rankings.from_orders([["a"]]), random_state=0)
    assert board.rank_intervals.tolist() == [[1, 1]]
    assert board.quasi_variances.tolist() == [0.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"level": 1}, "level must be positive and below 1, not 1"),
        ({"method": "jackknife"}, "method must be one of 'simulation', 'bootstrap'"),
        ({"n_draws": 1}, "n_draws must be a whole number from 2 on, not 1"),
        ({"rankings": [["a", "b"]]}, "expected Rankings"),
        ({"rankings": TRUTH.sample(1)[:0]}, "there are no rankings"),
    ],
)
def test_bad_options_are_refused(votes, change, message):
    options = {"rankings": votes, **change}
    with pytest.raises(rs.RankshotError, match=message):
        rs.leaderboard(**options)


def test_the_bootstrap_refuses_what_no_ranking_lists():
    pairs = rs.Rankings.from_orders([["a", "b"], ["b", "a"]], items=list("abc"), kind="subset")
    with pytest.raises(rs.RankshotError, match=r"no ranking lists: 'c'\. Leave them out"):
        rs.leaderboard(pairs, method="bootstrap")
    assert rs.leaderboard(pairs, random_state=0).rank_intervals.tolist() == [[1, 3]] * 3


def test_unknown_items_are_refused(board):
    with pytest.raises(rs.RankshotError, match="unknown item 'aa'"):
        board.compare("a", "aa")


def test_the_text_has_one_line_per_item(board):
    lines = repr(board).splitlines()
    assert lines[0] == "Leaderboard: 6 items, 200 rankings, 95 % intervals by simulation"
    assert lines[1].split() == ["rank", "item", "log-worth", "interval", "ranks"]
    assert len(lines) == 8
    best, worst = board.rank_intervals[0]
    assert lines[2].split()[:2] == ["1", "a"]
    assert lines[2].endswith(f"{best} to {worst}")
    html = board._repr_html_()
    assert html.count("<tr>") == 7


def test_long_boards_are_cut():
    items = [f"<{i}>" for i in range(30)]
    board = rs.leaderboard(rs.Rankings.from_orders([items]), random_state=0)
    assert repr(board).endswith("… and 10 more")
    assert "&lt;0&gt;" in board._repr_html_()


def test_columns_are_for_data_frames(board):
    columns = board.to_columns()
    assert {len(values) for values in columns.values()} == {6}
    assert columns["item"] == list(board.items)
    assert columns["best_rank"] == board.rank_intervals[:, 0].tolist()
    assert type(columns["rank"][0]) is int

"""Leaderboards: what they say of differences, ranks, ties, raters and thin items."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from pair_tables import draw_votes
from scipy.stats import t as student

import rankshot as rs
from rankshot.leaderboards.evidence import Looks, Score, find_evidence, find_rank_intervals
from refusals import refuses

TRUTH = rs.PlackettLuce.from_worths({"a": 4.0, "b": 2.0, "c": 1.98, "d": 1.96, "e": 0.5, "f": 0.4})
MODEL = rs.PlackettLuce(regularization=0.001)


@pytest.fixture(scope="module")
def votes():
    return TRUTH.sample(200, k=3, random_state=1)


@pytest.fixture(scope="module")
def board(votes):
    return rs.leaderboard(votes, MODEL)


def test_it_is_the_fit_sorted(votes, board):
    model = rs.PlackettLuce(regularization=0.001).fit(votes)
    order = np.argsort(-model.log_worths_)
    assert board.items == tuple(model.items_[i] for i in order)
    assert board.log_worths == pytest.approx(model.log_worths_[order], abs=1e-9)
    assert board.worths == pytest.approx(model.worths_[order], abs=1e-9)
    assert board.standard_errors == pytest.approx(model.standard_errors(votes)[order], rel=1e-6)
    # 200 rankings: 400 degrees of freedom.
    reach = student.ppf(0.975, 400) * board.standard_errors
    assert board.intervals[:, 1] - board.log_worths == pytest.approx(reach, rel=1e-8)
    assert board.ranks.tolist() == [1, 2, 3, 4, 5, 6]
    assert board.weight == 200


def test_compare_is_a_test_of_the_difference(board):
    i, j = board.items.index("a"), board.items.index("e")
    found = board.compare("a", "e")
    V = board.covariance
    error = np.sqrt(V[i, i] + V[j, j] - 2 * V[i, j])
    assert found.standard_error == pytest.approx(error)
    assert found.difference == board.log_worths[i] - board.log_worths[j]
    assert np.diff(found.interval)[0] == pytest.approx(2 * student.ppf(0.975, 400) * error)
    assert found.certainty > 0.999
    assert board.compare("e", "a").certainty == pytest.approx(1 - found.certainty, abs=1e-12)
    assert board.compare("a", "a") == (0.0, 0.0, (0.0, 0.0), 0.5, 1.0)


# ---- What a board can be asked


def make_pairs(wins, ties=None):
    return rs.Rankings.from_pair_counts(wins, ties=ties, items=list("abc"))


WINS = [[0, 6, 4], [3, 0, 5], [2, 4, 0]]
TIES = [[0, 2, 1], [2, 0, 3], [1, 3, 0]]


def test_rows_columns_and_data_frames():
    board = rs.leaderboard(make_pairs(WINS, TIES))
    row = board["b"]
    assert (row.votes, row.wins, row.ties, row.share) == (23, 8, 5, 10.5 / 23)
    assert [each.item for each in board] == list(board.items)
    assert (row.low, row.high) == tuple(board.comparison_intervals[board.items.index("b")])
    frame = board.to_frame()
    assert list(frame.columns)[:3] == ["rank", "item", "rating"]
    assert list(frame["item"]) == list(board.items)
    assert list(frame["rating"]) == pytest.approx(list(board.log_worths))
    assert board.votes_needed(1e6) == 0
    with refuses("item", "d"):
        board["d"]


def test_the_elo_scale_is_400_points_for_odds_of_ten():
    votes = make_pairs(WINS, TIES)
    plain, elo = (rs.leaderboard(votes, scale=scale) for scale in ("log-worth", "elo"))
    gap = plain.log_worths[0] - plain.log_worths[1]
    points = [row.rating for row in elo]
    assert 10 ** ((points[0] - points[1]) / 400) == pytest.approx(np.exp(gap))
    assert np.mean(points) == pytest.approx(1000)
    assert "elo" in repr(elo)
    # Errors and differences have the same scale; probabilities have none.
    unit = 400 / np.log(10)
    errors = [row.standard_error for row in elo]
    assert errors == pytest.approx(unit * plain.standard_errors)
    mine, other = (board.compare("a", "b") for board in (elo, plain))
    assert mine.difference == pytest.approx(elo["a"].rating - elo["b"].rating)
    assert mine.standard_error == pytest.approx(unit * other.standard_error)
    assert mine.interval == pytest.approx(tuple(unit * end for end in other.interval))
    assert mine.certainty == pytest.approx(other.certainty)
    chances = [board.probability("a", "b") for board in (elo, plain)]
    assert chances[0].value == pytest.approx(chances[1].value)
    assert chances[0].interval == pytest.approx(chances[1].interval)


@pytest.mark.parametrize("ties", ["outcome", "half"])
def test_probabilities_are_those_of_the_model(ties):
    board = rs.leaderboard(make_pairs(WINS, TIES), ties=ties)
    a, b = (board.worths[board.items.index(x)] for x in "ab")
    tie = board.tie_parameter * np.sqrt(a * b)
    found = board.probability("a", "b")
    assert found.value == pytest.approx(a / (a + b + tie))
    ends = np.array(board.compare("a", "b").interval)
    wanted = 1 / (1 + np.exp(-ends) + board.tie_parameter * np.exp(-ends / 2))
    assert found.interval == pytest.approx(tuple(wanted))
    i, j = board.items.index("a"), board.items.index("b")
    share = (a + tie / 2) / (a + b + tie)
    assert board.win_rates[i, j] == pytest.approx(share)
    assert board.observed_win_rates[i, j] == pytest.approx((6 + 1) / 11)
    assert np.isnan(np.diag(board.win_rates)).all()
    assert np.isnan(np.diag(board.observed_win_rates)).all()


# ---- Ties


def test_ties_are_one_choice():
    votes = make_pairs(WINS, TIES)
    orders = {
        "half": rs.PlackettLuce().fit(make_pairs(np.add(WINS, np.array(TIES) / 2))),
        "ignore": rs.PlackettLuce().fit(make_pairs(WINS)),
    }
    for ties, model in orders.items():
        board = rs.leaderboard(votes, ties=ties)
        found = dict(zip(board.items, board.log_worths, strict=True))
        assert [found[x] for x in "abc"] == pytest.approx(model.log_worths_, abs=1e-6)
    outcome = rs.leaderboard(votes, ties="outcome")
    assert rs.leaderboard(votes).tie_parameter == outcome.tie_parameter > 0
    assert rs.leaderboard(make_pairs(WINS)).tie_parameter == 0
    longer = rs.Rankings.from_orders([["a", ["b", "c"]], ["c", "b", "a"]])
    for ties in ("half", "outcome"):
        with refuses("ties", ties):
            rs.leaderboard(longer, ties=ties)
    wanted, board = rs.PlackettLuce().fit(longer), rs.leaderboard(longer)
    assert board.log_worths == pytest.approx(np.sort(wanted.log_worths_)[::-1], abs=1e-6)
    with refuses("model", "Mallows"):
        rs.leaderboard(votes, rs.Mallows())


# ---- Thin and one-sided items


@pytest.fixture
def plain(rng):
    return draw_votes(rng, -0.5 * np.arange(4), 400, list("abcd"))


def test_an_item_with_few_votes_is_listed_apart_and_changes_no_other(plain):
    thin = rs.Rankings.from_pairs(["new", "new"], ["a", "b"], items=[*"abcd", "new"])
    both = rs.Rankings.concatenate([plain.change_items(thin.items), thin])
    with pytest.warns(UserWarning, match="'new'"):
        board = rs.leaderboard(both)
    assert board.thin == {"new": 2}
    assert "too few votes to be ranked: new (2)" in repr(board)
    wanted = rs.leaderboard(plain)
    assert board.items == wanted.items
    assert board.comparison_intervals == pytest.approx(wanted.comparison_intervals, abs=0.02)
    assert board.intervals == pytest.approx(wanted.intervals, abs=0.02)
    with pytest.warns(UserWarning, match="'new'"):
        assert rs.leaderboard(both, min_votes=0).items[0] == "new"
    with refuses("min_votes", 1000):
        rs.leaderboard(plain, min_votes=1000)


def test_votes_of_weight_zero_do_not_count(plain):
    weights = np.repeat([0.0, 1.0], [100, 300])
    raters = np.array([f"p{i // 25}" for i in range(400)], object)
    board = rs.leaderboard(replace(plain, weights=weights, raters=raters))
    wanted = rs.leaderboard(replace(plain[100:], raters=raters[100:]))
    assert repr(board) == repr(wanted)
    assert board.n_raters == 12


def test_items_that_nothing_compares_are_warned_of():
    pairs = [["a", "b"], ["b", "a"], ["c", "d"], ["d", "c"]]
    votes = rs.Rankings.from_orders(pairs, kind="subset", weights=[20, 20, 20, 10])
    with pytest.warns(UserWarning, match="'c', 'd'"):
        board = rs.leaderboard(votes)
    assert board.rank_intervals.tolist() == [[1, 4]] * 4


# ---- Files, tables, categories and covariates


def test_a_file_is_votes(tmp_path, plain):
    path = tmp_path / "games.csv"
    path.write_text("home,away,result\n" + "x,y,1\nx,y,0.5\ny,x,1\n" * 9)
    columns = {"a": "home", "b": "away", "winner": "result", "outcomes": "score"}
    wanted = rs.leaderboard(rs.leaderboards.read_votes(path, **columns))
    assert repr(rs.leaderboard(str(path), **columns)) == repr(wanted)
    with refuses("a"):
        rs.leaderboard(plain, a="home")


def test_each_category_has_the_board_of_its_votes(plain):
    votes = replace(plain, targets=np.array(["one", "two"] * 200, object))
    board = rs.leaderboard(votes, category=True)
    assert list(board.categories) == ["one", "two"]
    assert board.weight == 400
    for name, each in board.categories.items():
        assert repr(each) == repr(rs.leaderboard(votes.select(target=name)))
    with refuses("category", True):
        rs.leaderboard(plain, category=True)


def test_a_category_has_the_items_that_its_votes_compare():
    votes = rs.Rankings.from_pairs(list("abcd") * 20, list("badc") * 20)
    votes = replace(votes, targets=np.array(["one", "one", "two", "two"] * 20, object))
    with pytest.warns(UserWarning, match="'c', 'd'"):
        board = rs.leaderboard(votes, category=True)
    assert [each.items for each in board.categories.values()] == [("a", "b"), ("c", "d")]
    assert [each.thin for each in board.categories.values()] == [{}, {}]


@pytest.mark.filterwarnings("ignore:some items always won")
def test_long_boards_are_shown_in_part(rng):
    items = [f"item{i:03}" for i in range(105)]
    thin = rs.Rankings.from_pairs(items[:26], items[-26:], items=items)
    some = draw_votes(rng, np.linspace(1, -1, 25), 2500, items[:25]).change_items(tuple(items))
    board = rs.leaderboard(rs.Rankings.concatenate([some, thin]), min_votes=20)
    text = repr(board)
    assert [item in text for item in board.items] == [True] * 20 + [False] * 5
    assert "and 5 more" in text
    assert sum(item in text for item in board.thin) == 20
    assert f"and {len(board.thin) - 20} more" in text


# ---- Corners and text


def test_items_that_nothing_tells_apart_share_their_rank():
    votes = rs.Rankings.from_orders([["a"], ["b"]], items=list("abcd"), weights=[20, 10])
    with pytest.warns(UserWarning, match="'c', 'd'"):
        board = rs.leaderboard(votes)
    assert board.ranks.tolist() == [1, 2, 3, 3]
    assert np.isfinite(board.intervals).all()
    assert np.isfinite(board.quasi_variances).all()
    assert np.isfinite(board.comparison_intervals[:2]).all()
    assert board.rank_intervals[2:, 1].tolist() == [4, 4]


def test_the_interval_of_an_item_that_never_lost_is_that_to_the_best_other():
    wins = {("a", "b"): 6, ("a", "c"): 5, ("b", "c"): 7, ("c", "b"): 4}
    pairs, counts = zip(*wins.items(), strict=True)
    with pytest.warns(UserWarning, match="'a'"):
        board = rs.leaderboard(rs.Rankings.from_orders(pairs, weights=counts, kind="subset"))
    assert board.items[:2] == ("a", "b")
    low, high = board.compare("a", "b").interval
    expected = board.log_worths[1] + np.array([low, high]) / board.unit
    np.testing.assert_allclose(board.comparison_intervals[0], expected)
    assert low > 0
    assert high == np.inf


def test_a_negative_quasi_variance_is_shown_as_the_standard_error(board):
    """The errors of b and c are opposite, and a is between them; it is not known exactly."""
    covariance = np.array([[0.5, 0, 0], [0, 1, -1], [0, -1, 1]])
    three = {"items": ("a", "b", "c"), "log_worths": np.zeros(3), "degrees": np.full(3, 9.0)}
    small = replace(board, **three, covariance=covariance)
    # q_a + q_b = q_a + q_c = 1.5 and q_b + q_c = 4.
    assert small.quasi_variances == pytest.approx([-0.5, 2, 2])
    widths = np.diff(small.comparison_intervals)[:, 0] / (2 * student.ppf(0.975, 9))
    assert widths**2 == pytest.approx([0.5, 2, 2])


# ---- Intervals of ranks


def step_down(i, theta, scale, errors, nth):
    """Return the items that are told from item i, and those that the first step tells, by loops."""
    others = {j for j in range(len(theta)) if j != i}
    left, steps = set(others), []
    while left:
        sizes = [np.abs(errors[i] - errors[j]) / scale[i, j] for j in left]
        reach = np.sort(np.max(sizes, axis=0))[nth]
        steps.append({j for j in left if abs(theta[i] - theta[j]) / scale[i, j] > reach})
        if not steps[-1]:
            break
        left -= steps[-1]
    return others - left, steps[0]


def test_rank_intervals_step_down():
    """Against the definition: the maximum is over the items that are not told apart yet."""
    C, shorter = 7, 0
    for seed in range(5):
        rng = np.random.default_rng(seed)
        theta, root = rng.normal(size=C), 0.3 * rng.normal(size=(C, C))
        V, errors = root @ root.T, root @ rng.normal(size=(C, 2000))
        scale = np.sqrt(np.diag(V)[:, None] + np.diag(V) - 2 * V)
        none = SimpleNamespace(test=lambda *_: Score(0.0, 1.0))
        evidence = find_evidence(theta, V, np.full(C, np.inf), none, np.arange(C))
        found = find_rank_intervals(evidence, V, errors, 0.9, Looks("one"))
        for i in range(C):
            told, first = step_down(i, theta, scale, errors, 1799)
            above, below = (sum(sign * (theta[j] - theta[i]) > 0 for j in told) for sign in (1, -1))
            assert found[i].tolist() == [1 + above, C - below]
            shorter += len(told) - len(first)
    assert shorter > 0


# ---- Clear differences, and anchors


def test_clear_differences_are_those_of_holm(board):
    """Against a loop over the definition."""
    C, V = len(board), board.covariance
    pairs = [(i, j) for i in range(C) for j in range(i + 1, C)]
    p = {}
    for i, j in pairs:
        t = (board.log_worths[i] - board.log_worths[j]) / np.sqrt(V[i, i] + V[j, j] - 2 * V[i, j])
        p[i, j] = 2 * student.sf(abs(t), board.degrees[i])
    largest = 0.0
    for nth, pair in enumerate(sorted(pairs, key=p.get)):
        largest = max(largest, min(1.0, p[pair] * (len(pairs) - nth)))
        assert board.p_values[pair] == pytest.approx(largest, rel=1e-6)
        assert board.p_values[pair[::-1]] == pytest.approx(largest, rel=1e-6)
        assert board.clearly_better[pair] == (largest < 0.05)
    assert 0 < board.clearly_better.sum() < len(pairs)
    assert [row.better_than for row in board] == board.clearly_better.sum(axis=1).tolist()
    assert board.compare("a", "e").p_value == board.p_values[0, board.items.index("e")]
    for first, last in board.unclear_runs:
        assert not board.clearly_better[first : last + 1, first : last + 1].any()
        for wider in ((first - 1, last), (first, last + 1)):
            if wider[0] >= 0 and wider[1] < C:
                assert board.clearly_better[wider]


def test_anchors_shift_all_ratings(plain):
    board = rs.leaderboard(plain, scale="elo")
    fixed = rs.leaderboard(plain, scale="elo", anchors={"b": 1500, "unknown": 7})
    assert fixed["b"].rating == pytest.approx(1500)
    assert fixed.compare("a", "d") == board.compare("a", "d")
    # A newcomer changes the mean; the ratings of yesterday's board are kept on average.
    wins = rs.Rankings.from_pairs(["new", "a"] * 20, ["a", "new"] * 20, items=[*"abcd", "new"])
    more = rs.Rankings.concatenate([plain.change_items(wins.items), wins])
    free, kept = (rs.leaderboard(more, scale="elo", anchors=x) for x in (None, board.ratings))
    old = [kept.ratings[item] - board.ratings[item] for item in "abcd"]
    assert np.mean(old) == pytest.approx(0, abs=1e-9)
    assert abs(np.mean([free.ratings[item] - board.ratings[item] for item in "abcd"])) > 10
    with refuses("anchors"):
        rs.leaderboard(plain, anchors={"x": 1})

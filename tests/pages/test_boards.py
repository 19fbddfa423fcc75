"""The page of a leaderboard."""

import json
from dataclasses import replace

import numpy as np
import pytest
from html_walker import HOSTILE, Walker, check_accessible, check_self_contained

import rankshot as rs
from rankshot.leaderboards import rater_agreement, render_board

pytest.importorskip("jinja2")


def draw(rng, theta, n, **options):
    first = rng.integers(0, len(theta), n)
    second = (first + rng.integers(1, len(theta), n)) % len(theta)
    won = rng.random(n) < 1 / (1 + np.exp(theta[second] - theta[first]))
    names = [f"model <{i}>" for i in range(len(theta))]
    winners, losers = np.where(won, (first, second), (second, first))
    pairs = ([names[i] for i in side] for side in (winners, losers))
    return rs.Rankings.from_pairs(*pairs, items=names, **options)


@pytest.mark.parametrize(("C", "n"), [(2, 40), (60, 3000)])
@pytest.mark.filterwarnings("ignore:some items always won")
def test_boards_of_any_size_have_a_page(rng, C, n):
    votes = draw(rng, rng.normal(size=C), n, raters=[f"rater {i % 7}" for i in range(n)])
    board = rs.leaderboard(votes, scale="elo")
    page = render_board(board, title="A & B")
    check_self_contained(page, has_script=True)
    check_accessible(Walker(page))
    assert "<h1>A &amp; B</h1>" in page
    assert "58 points: the first wins about 6 of 10" in page
    assert page.count("model &lt;0&gt;") > 0
    assert "rater 3" in page
    cards = page[page.index("Raters") :]
    assert cards.index(">7<") < 200
    assert page.count("clearly better than") >= len(board)


def test_all_that_the_first_item_beats_are_named_before_the_ratings(rng):
    board = rs.leaderboard(draw(rng, np.array([3.0, 0.0, -3.0]), 600))
    assert board.clearly_better[0].sum() == 2
    text = Walker(render_board(board)).text
    verdict = text[: text.index("Ratings")]
    assert all(item in verdict for item in board.items)


def test_hostile_names_are_no_markup():
    wins = np.triu(np.full((6, 6), 3), 1) + np.tril(np.full((6, 6), 2), -1)
    votes = rs.Rankings.from_pair_counts(wins, items=HOSTILE)
    page = render_board(rs.leaderboard(votes), title=HOSTILE[0], notes=HOSTILE)
    found = Walker(page)
    tags = [tag for tag, _ in found.tags]
    assert not {*tags} & {"img", "b"}
    assert tags.count("script") == 2
    assert not any(key.startswith("on") for _, given in found.tags for key in given)
    assert all(name in found.text for name in HOSTILE)


def test_categories_and_covariates_are_side_by_side(rng):
    pandas = pytest.importorskip("pandas")
    votes = draw(rng, np.array([1.0, 0.0, -1.0]), 600)
    left, right = np.array(votes.items)[votes.codes.reshape(-1, 2)].T
    table = pandas.DataFrame(
        {"left": left, "right": right, "winner": "left", "length": rng.normal(size=600),
         "topic": ["maths", "poems"] * 300}
    )  # fmt: skip
    board = rs.leaderboard(table, category="topic", covariates="length")
    page = render_board(board)
    check_self_contained(page, has_script=True)
    check_accessible(Walker(page))
    for each in (board, *board.categories.values()):
        assert f"{each.effects['length'].value:.3g}" in page
        assert f"{each.ratings['model <0>']:.2f}" in page
    assert "Ratings: all categories" in page
    assert "<h1>Leaderboard</h1>" in page
    assert "0.33: the first wins about 6 of 10" in page


@pytest.mark.filterwarnings("ignore:some items always won", "ignore:.* have no rater")
def test_votes_of_a_judge_are_counted_by_item():
    votes = rs.Rankings.from_pairs(
        list("aabac"),
        list("bccba"),
        ties=[False, True, False, False, False],
        weights=[1, 2, 1, 3, 1],
        raters=["ann", "ann", "bob", None, "bob"],
    )
    board = rs.leaderboard(votes, min_votes=1)
    page = render_board(board)
    judges = json.loads(page.partition('id="judges">')[2].partition("</script>")[0])
    found = {each["name"]: dict(zip(board.items, each["votes"], strict=True)) for each in judges}
    # The number of votes, and the share that was won; a tie is half a win.
    assert found == {
        "ann": {"a": [3, 0.667], "b": [1, 0.0], "c": [2, 0.5]},
        "bob": {"a": [1, 0.0], "b": [1, 1.0], "c": [2, 0.5]},
    }


def test_raters_of_longer_rankings_have_a_page():
    drawn = rs.Mallows.from_center(list("abcd"), 0.5).sample(60, random_state=0)
    votes = replace(drawn, raters=np.array([f"p{i % 9}" for i in range(60)], object))
    page = render_board(rs.leaderboard(votes))
    check_self_contained(page, has_script=True)
    assert 'id="judges">[]<' in page


def test_warnings_stand_on_the_page_and_in_the_numbers(rng):
    votes = draw(rng, np.array([2.0, 0.0]), 60, raters="ann")
    with pytest.warns(UserWarning, match="one rater"):
        board = rs.leaderboard(votes)
    (text,) = board.to_dict()["warnings"]
    page = render_board(board)
    assert text[1:] in page
    # The claim is about this rater alone.
    assert "In the votes of this one rater" in page


@pytest.mark.filterwarnings("ignore:some items always won")
def test_small_pairs_have_no_map(rng):
    few, many = draw(rng, np.zeros(6), 90), draw(rng, np.zeros(6), 900)
    assert 'class="matrix"' not in render_board(rs.leaderboard(few))
    assert 'class="matrix"' in render_board(rs.leaderboard(many))


def test_raters_are_checked_at_the_level_of_the_board(rng):
    """One of twenty raters disagrees somewhat: p is between 1 % and 50 %."""
    votes = draw(rng, np.array([1.0, 0.0, -1.0]), 400)
    turned = rs.Rankings.from_pairs(["model <2>"] * 13, ["model <0>"] * 13, items=votes.items)
    named = [
        replace(part, raters=np.array(names, object))
        for part, names in (
            (votes, [f"p{i % 19}" for i in range(400)]),
            (turned, ["odd"] * 13),
        )
    ]
    both = rs.Rankings.concatenate(named)
    (p,) = [each.p_value for each in rater_agreement(both) if each.rater == "odd"]
    marks = [
        render_board(rs.leaderboard(both, level=level)).count('badge bad">check')
        for level in (1 - p / 2, 1 - 2 * p)
    ]
    assert marks == [0, 1]


def test_votes_that_no_order_of_worths_explains_are_named():
    wins = [[0, 90, 10], [10, 0, 90], [90, 10, 0]]
    votes = rs.Rankings.from_pair_counts(wins, items=["rock", "scissors", "paper"])
    page = render_board(rs.leaderboard(votes))
    assert "Observed and expected wins" in page
    fair = rs.Rankings.from_pair_counts(np.full((3, 3), 50) - 50 * np.eye(3), items=list("abc"))
    assert "Observed and expected wins" not in render_board(rs.leaderboard(fair))

"""Displays of rankings and models: what is drawn is what was computed, and no names overlap."""

from types import SimpleNamespace

import numpy as np
import pytest

import rankshot as rs


def make_votes(n_items, n=40):
    names = [
        f"item {i}" if i % 3 else f"{i}: a long name of more than 32 letters"
        for i in range(n_items)
    ]
    worths = np.exp(np.random.default_rng(n_items).normal(size=n_items))
    model = rs.PlackettLuce.from_worths(dict(zip(names, worths, strict=True)))
    return model.sample(n, random_state=0)


def names_at(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def assert_readable(axes, *names):
    """No two names of an axis overlap, and none leaves the picture."""
    axes.figure.canvas.draw()
    for axis in names:
        boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        assert min(min(box.x0, box.y0) for box in boxes) >= -1


def test_worths_have_comparison_intervals():
    board = rs.leaderboard(make_votes(5), random_state=0)
    axes = board.plot().ax_
    points = axes.lines[0]
    assert points.get_xdata() == pytest.approx(board.log_worths)
    segments = np.array(axes.collections[0].get_segments())
    assert segments[:, :, 0] == pytest.approx(board.comparison_intervals)
    assert segments[:, 0, 1].tolist() == points.get_ydata().tolist()
    # The best is at the top.
    assert axes.yaxis.get_inverted()
    assert axes.get_xlabel() == "log-worth, with 95 % comparison intervals"


def test_names_are_readable():
    n_items = 10
    votes = make_votes(n_items)
    axes = rs.plots.WorthsDisplay.from_leaderboard(
        rs.leaderboard(votes, n_draws=10, random_state=0)
    ).ax_
    assert len(names_at(axes.yaxis)) == n_items
    assert_readable(axes, axes.yaxis)
    axes = rs.plots.PrecedenceDisplay.from_rankings(votes).ax_
    assert_readable(axes, axes.xaxis, axes.yaxis)


def test_rankings_are_side_by_side():
    """Texts are drawn at column and place, and a shared item has one colour."""
    votes = rs.Rankings.from_orders(
        [["a", ["b", "c"], "d"], ["d", "a", "e"]], items=list("abcde"), sources=["WordNet", "me"]
    )
    axes = rs.plots.RankingsDisplay.from_rankings(votes).ax_
    cells = {(*text.get_position(), text.get_text()) for text in axes.texts}
    assert cells == {
        *((0, 0, "a"), (0, 1, "= b"), (0, 2, "= c"), (0, 3, "d")),
        *((1, 0, "d"), (1, 1, "a"), (1, 2, "e")),
    }
    assert names_at(axes.xaxis) == ["WordNet", "me"]
    colours = {}
    for patch, text in zip(axes.patches, axes.texts, strict=True):
        colours.setdefault(text.get_text().removeprefix("= "), set()).add(patch.get_facecolor())
    assert all(len(found) == 1 for found in colours.values())
    assert colours["b"] == colours["c"] == colours["e"]
    assert len({*colours["a"], *colours["b"], *colours["d"]}) == 3


def test_precedence_is_a_share_of_the_rankings_that_order_both():
    votes = rs.Rankings.from_orders(
        [["a", "b"], ["b", "a"], ["b", "c"]], kind="subset", weights=[3, 1, 2]
    )
    axes = rs.plots.PrecedenceDisplay.from_rankings(votes).ax_
    shares = axes.images[0].get_array()
    order = names_at(axes.yaxis)
    a, b, c = (order.index(item) for item in "abc")
    assert shares[a, b] == 75
    assert shares[b, a] == 25
    assert shares[b, c] == 100
    assert np.isnan(np.ma.filled(shares[a, c], np.nan))
    assert sorted(text.get_text() for text in axes.texts) == ["0", "100", "25", "75"]


def make_mixture(**attributes):
    models = [SimpleNamespace(items_=tuple("abc"), **values) for values in attributes["models"]]
    return SimpleNamespace(models_=models, weights_=[0.3, 0.7])


def test_groups_with_worths():
    worths = [np.array([1.0, 0.0, -1.0]), np.array([-2.0, 0.0, 2.0])]
    axes = rs.plots.GroupsDisplay.from_mixture(
        make_mixture(models=[{"log_worths_": values} for values in worths])
    ).ax_
    assert names_at(axes.yaxis) == ["c", "b", "a"]
    assert [line.get_xdata().tolist() for line in axes.lines] == [[-1, 0, 1], [2, 0, -2]]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["group 1 (30 %)", "group 2 (70 %)"]


V = rs.plots.RankingsDisplay.from_rankings


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: rs.plots.PrecedenceDisplay.from_rankings(None), "expected Rankings, not None"),
        (lambda: V(rs.Rankings.from_orders([["a"]] * 2, targets=["x", "y"])), "several targets"),
    ],
)
def test_other_values_are_refused(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call()

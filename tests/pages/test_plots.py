"""Plots: what is drawn is what was computed by other means, and no names overlap."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib import pyplot as plt

import rankshot as rs
from rankshot.zeroshot.metrics import Interval, reliability
from refusals import refuses

NAMES = ["cat", "dog", "fox"]
VOTES = rs.PlackettLuce.from_worths(dict(zip("abcde", range(1, 6), strict=True))).sample(
    40, random_state=0
)
HOSTILE = '</b>"$x{$ id=" 猫\x1b'


@pytest.fixture(autouse=True)
def _close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def names_at(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def assert_inside(axes):
    """All of the plot is inside the figure."""
    figure = axes.figure
    figure.get_layout_engine().execute(figure)
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0) >= -0.01
    assert box.x1 <= width + 0.01
    assert box.y1 <= height + 0.01


def test_worths_have_comparison_intervals():
    board = rs.leaderboard(VOTES)
    axes = rs.pages.plot_leaderboard(board)
    points = axes.lines[0]
    assert points.get_xdata() == pytest.approx(board.log_worths)
    segments = np.array(axes.collections[0].get_segments())
    assert segments[:, :, 0] == pytest.approx(board.comparison_intervals)
    assert segments[:, 0, 1].tolist() == points.get_ydata().tolist()
    # The best is at the top.
    assert axes.yaxis.get_inverted()
    assert axes.get_xlabel() == "log-worth, with 95% comparison intervals"


def test_a_bar_for_each_run_of_items_that_are_not_clearly_different():
    worths = dict(zip("abcdefghij", 1.5 ** np.arange(10), strict=True))
    votes = rs.PlackettLuce.from_worths(worths).sample(60, random_state=0)
    board = rs.leaderboard(votes)
    axes = rs.pages.plot_leaderboard(board)
    bars = [line.get_xydata() for line in axes.lines[1:]]
    ends = [tuple(bar[:, 1]) for bar in bars]
    assert ends == [(first - 0.25, last + 0.25) for first, last in board.unclear_runs]
    pairs = list(combinations(bars, 2))
    overlap = [one[1, 1] > other[0, 1] for one, other in pairs]
    assert {*overlap} == {True, False}
    # None is drawn over another, and there are no more columns than needed.
    assert all(
        one[0, 0] != other[0, 0]
        for (one, other), is_over in zip(pairs, overlap, strict=True)
        if is_over
    )
    assert len({bar[0, 0] for bar in bars}) < len(bars)


def test_rankings_are_side_by_side():
    """Texts are drawn at column and place, and a shared item has one colour."""
    votes = rs.Rankings.from_orders(
        [["a", ["b", "c"], "d"], ["d", "a", "e"]], items=list("abcde"), sources=["WordNet", "me"]
    )
    axes = rs.pages.plot_rankings(votes)
    cells = {(*text.get_position(), text.get_text()) for text in axes.texts}
    assert cells == {
        *((0, 0, "a"), (0, 1, "= b"), (0, 2, "= c"), (0, 3, "d")),
        *((1, 0, "d"), (1, 1, "a"), (1, 2, "e")),
    }
    assert names_at(axes.xaxis) == ["WordNet", "me"]
    assert {line.get_markersize() for line in axes.xaxis.get_ticklines()} == {0}
    colours = {}
    for patch, text in zip(axes.patches, axes.texts, strict=True):
        colours.setdefault(text.get_text().removeprefix("= "), set()).add(patch.get_facecolor())
        assert np.allclose(patch.get_center(), text.get_position())
    assert all(len(found) == 1 for found in colours.values())
    assert colours["b"] == colours["c"] == colours["e"]
    assert len({*colours["a"], *colours["b"], *colours["d"]}) == 3


def test_many_long_rankings_fit_side_by_side_and_what_is_left_out_is_told():
    items = [f"a seen class {i}" for i in range(15)]
    votes = rs.Rankings.from_orders([items] * 14, raters=[f"a long name {i}" for i in range(14)])
    axes = rs.pages.plot_rankings(votes, k=15)
    assert [len(axes.texts), len(axes.patches)] == [12 * 15] * 2
    assert all(number in axes.get_title() for number in ("12", "14"))
    assert names_at(axes.yaxis) == [str(place) for place in range(1, 16)]
    assert (axes.get_xlim(), axes.get_ylim()) == ((-0.5, 11.5), (14.5, -0.5))
    assert_inside(axes)
    boxes = {text.get_position(): text.get_window_extent() for text in axes.texts}
    for (x, y), box in boxes.items():
        for other in ((x + 1, y), (x, y + 1)):
            assert other not in boxes or not box.overlaps(boxes[other])
    few = rs.pages.plot_rankings(votes[:12])
    assert (few.get_title(), len(names_at(few.yaxis))) == ("", 10)
    assert_inside(few)


def test_colours_are_for_the_items_that_most_rankings_list():
    orders = [[*"abcdefgz"], [*"abcdefgz"], [*"hijklmz"]]
    axes = rs.pages.plot_rankings(rs.Rankings.from_orders(orders))
    pairs = zip(axes.patches, axes.texts, strict=True)
    colours = {text.get_text(): patch.get_facecolor() for patch, text in pairs}
    plain = colours["h"]
    assert {name for name, colour in colours.items() if colour != plain} == {*"abcdez"}


def test_discs_are_the_bins_and_their_numbers(rng):
    proba = rng.dirichlet([0.7] * 3, size=500)
    y = np.array([rng.choice(NAMES, p=row) for row in proba])
    for n_bins in ({"n_bins": 5}, {}):
        axes = rs.pages.plot_reliability(y, proba, NAMES, **n_bins)
        bins, discs = reliability(y, proba, NAMES, **n_bins), axes.collections[0]
        used = bins.count > 0
        wanted = np.column_stack([bins.confidence, bins.accuracy])[used]
        np.testing.assert_allclose(discs.get_offsets(), wanted)
        # The area of a disc is proportional to the number of its inputs.
        shares = bins.count[used] / bins.count.max()
        np.testing.assert_allclose(discs.get_sizes() / 20**2, shares)
        label = axes.get_legend().get_texts()[1].get_text()
        assert label == f"calibration error {bins.expected_calibration_error:.1%}"
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("confidence", "accuracy")
        assert_inside(axes)


RESULTS = {
    "low": (0.3, 0.2, 0.45),
    "a method with a name that is much longer than others": Interval(0.6, 0.5, 0.65),
    "middle": np.array([0.4, 0.35, 0.5]),
}


def test_results_are_sorted_with_their_intervals_and_chance():
    axes = rs.pages.plot_comparison(RESULTS, chance=0.1)
    wanted = np.array(sorted(RESULTS.values(), key=lambda cell: -cell[0]))
    assert [name[:6] for name in names_at(axes.yaxis)] == ["a meth", "middle", "low"]
    points, chance = axes.lines
    assert points.get_xdata() == pytest.approx(wanted[:, 0])
    assert list(points.get_ydata()) == [0, 1, 2]
    segments = np.array(axes.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, :, 0], wanted[:, 1:])
    assert chance.get_xdata() == [0.1, 0.1]
    assert axes.yaxis.get_inverted()
    assert_inside(axes)
    assert len(rs.pages.plot_comparison(RESULTS).lines) == 1


def test_the_middle_of_a_long_name_is_left_out():
    names = ["x" * 32, "begin" + "x" * 23 + "end", "begin" + "x" * 25 + "end"]
    axes = rs.pages.plot_comparison(dict.fromkeys(names, (0.5, 0.4, 0.6)))
    (short,) = {*names_at(axes.yaxis)} - {*names[:2]}
    assert (len(short), short[:5], short[-3:]) == (32, "begin", "end")


@pytest.mark.filterwarnings("ignore:Glyph")
def test_all_draw_hostile_names_on_given_axes_or_new_ones():
    votes = rs.Rankings.from_orders([[HOSTILE, "b"], ["b", HOSTILE]], sources=[HOSTILE, "x"])
    _, given = plt.subplots()
    pages = rs.pages
    draws = [
        lambda ax: pages.plot_reliability(["a"], [[0.9, 0.1]], ["a", "b"], ax=ax),
        lambda ax: pages.plot_comparison({HOSTILE: (0.5, 0.4, 0.6)}, ax=ax),
        lambda ax: pages.plot_leaderboard(rs.leaderboard(votes), ax=ax),
        lambda ax: pages.plot_rankings(votes, ax=ax),
    ]
    for draw in draws:
        assert draw(given) is given
        given.figure.canvas.draw()
        assert draw(None).figure is not given.figure


def test_rankings_of_two_classes_are_refused():
    with refuses("target", None):
        rs.pages.plot_rankings(rs.Rankings.from_orders([["a"]] * 2, targets=["x", "y"]))

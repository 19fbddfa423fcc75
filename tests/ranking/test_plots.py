"""Plots: what is drawn is what was computed, and no names overlap."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import rankshot as rs
from rankshot.ranking.plots import plot_bump, plot_groups, plot_precedence, plot_worths

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def _close_figures():
    pyplot.switch_backend("Agg")
    yield
    pyplot.close("all")


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


def assert_readable(axes, axis):
    """No two names overlap, and none leaves the picture."""
    axes.figure.canvas.draw()
    boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])
    assert min(box.x0 for box in boxes) >= -1
    assert min(box.y0 for box in boxes) >= -1


def test_worths_have_comparison_intervals():
    board = rs.leaderboard(make_votes(5), random_state=0)
    axes = plot_worths(board)
    points = axes.lines[0]
    assert points.get_xdata() == pytest.approx(board.log_worths)
    segments = np.array(axes.collections[0].get_segments())
    assert segments[:, :, 0] == pytest.approx(board.comparison_intervals)
    assert segments[:, 0, 1].tolist() == points.get_ydata().tolist()
    # The best is at the top.
    assert axes.yaxis.get_inverted()
    assert axes.get_xlabel() == "log-worth, with 95 % comparison intervals"


def test_a_model_has_no_intervals():
    model = rs.PlackettLuce().fit(make_votes(4))
    axes = plot_worths(model)
    assert axes.lines[0].get_xdata() == pytest.approx(np.sort(model.log_worths_)[::-1])
    assert not axes.collections
    assert axes.get_xlabel() == "log-worth"


def test_a_plot_is_drawn_on_given_axes():
    _, given = pyplot.subplots()
    votes = make_votes(3)
    assert plot_worths(rs.leaderboard(votes, random_state=0), ax=given) is given
    assert plot_bump(votes[:2], ax=given) is given
    assert plot_precedence(votes, ax=given) is given


@pytest.mark.parametrize("n_items", [2, 25])
def test_names_are_readable(n_items):
    votes = make_votes(n_items)
    axes = plot_worths(rs.leaderboard(votes, n_draws=10, random_state=0))
    assert len(names_at(axes.yaxis)) == n_items
    assert_readable(axes, axes.yaxis)
    assert_readable(plot_bump(votes[:4]), pyplot.gca().yaxis)
    axes = plot_precedence(votes)
    assert_readable(axes, axes.xaxis)
    assert_readable(axes, axes.yaxis)


def test_a_bump_chart_shows_places_and_ties():
    votes = rs.Rankings.from_orders(
        [["a", ["b", "c"], "d"], ["d", "a"]], items=list("abcd"), raters=["ann", "bo"]
    )
    axes = plot_bump(votes)
    assert names_at(axes.xaxis) == ["ann", "bo"]
    lines = {tuple(np.nan_to_num(line.get_ydata(), nan=-1)) for line in axes.lines}
    # Tied items are drawn beside each other, around their mean place.
    assert lines == {(1, 2), (2.4, -1), (2.6, -1), (4, 1)}
    assert names_at(axes.yaxis) == ["1. a", "2.5. b, c", "4. d"]
    right = axes.child_axes[0]
    assert names_at(right.yaxis) == ["1. d", "2. a"]


def test_a_bump_chart_of_leaderboards():
    boards = {
        year: rs.leaderboard(rs.Rankings.from_orders([order]), random_state=0)
        for year, order in {"2024": ["a", "b", "c"], "2025": ["c", "a", "b"]}.items()
    }
    axes = plot_bump(boards)
    assert names_at(axes.xaxis) == ["2024", "2025"]
    assert {tuple(line.get_ydata()) for line in axes.lines} == {(1, 2), (2, 3), (3, 1)}


def test_precedence_is_a_share_of_the_rankings_that_order_both():
    votes = rs.Rankings.from_orders(
        [["a", "b"], ["b", "a"], ["b", "c"]], kind="subset", weights=[3, 1, 2]
    )
    axes = plot_precedence(votes)
    shares = axes.images[0].get_array()
    order = names_at(axes.yaxis)
    a, b, c = (order.index(item) for item in "abc")
    assert shares[a, b] == 75
    assert shares[b, a] == 25
    assert shares[b, c] == 100
    assert np.isnan(np.ma.filled(shares[a, c], np.nan))
    assert sorted(text.get_text() for text in axes.texts) == ["0", "100", "25", "75"]


@pytest.mark.parametrize("names", ["abcde", ["a name of some length", "b", "c"]])
def test_precedence_fills_the_picture(names):
    """No strip of more than half an inch is empty beside the names."""
    axes = plot_precedence(rs.Rankings.from_orders([list(names)]))
    figure = axes.figure
    figure.canvas.draw()
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert max(box.x0, width - box.x1) < 0.5
    assert max(box.y0, height - box.y1) < 0.5


def make_mixture(**attributes):
    models = [SimpleNamespace(items_=tuple("abc"), **values) for values in attributes["models"]]
    return SimpleNamespace(models_=models, weights_=[0.3, 0.7])


def test_groups_with_worths():
    worths = [np.array([1.0, 0.0, -1.0]), np.array([-2.0, 0.0, 2.0])]
    axes = plot_groups(make_mixture(models=[{"log_worths_": values} for values in worths]))
    assert names_at(axes.yaxis) == ["c", "b", "a"]
    assert [line.get_xdata().tolist() for line in axes.lines] == [[-1, 0, 1], [2, 0, -2]]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["group 1 (30 %)", "group 2 (70 %)"]


def test_groups_of_a_fitted_mixture():
    """The groups are in the order of the mixture: the largest first."""
    votes = rs.Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], weights=[30, 10])
    mixture = rs.RankingMixture(n_starts=2, random_state=0).fit(votes)
    axes = plot_groups(mixture)
    names = names_at(axes.yaxis)
    for line, model in zip(axes.lines, mixture.models_, strict=True):
        wanted = [model.log_worths_[model.items_.index(name)] for name in names]
        assert line.get_xdata() == pytest.approx(wanted)
    assert names == ["a", "b", "c"]


def test_one_group_has_points_and_no_line():
    votes = rs.Rankings.from_orders([["a", "b", "c"], ["c", "b", "a"]], weights=[30, 10])
    axes = plot_groups(rs.RankingMixture(n_groups=1, n_starts=1, random_state=0).fit(votes))
    assert axes.lines[0].get_linestyle() == "None"
    assert axes.get_legend() is None


def test_groups_with_orders():
    modes = [("a", "b", "c"), ("c", ("a", "b"))]
    axes = plot_groups(make_mixture(models=[{"mode_": mode} for mode in modes]))
    assert axes.get_xlabel() == "place in the group's order"
    assert names_at(axes.yaxis) == ["c", "a", "b"]
    assert [line.get_xdata().tolist() for line in axes.lines] == [[3, 1, 2], [1, 2.5, 2.5]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: plot_worths(3), "expected a leaderboard or a fitted model with worths, not 3"),
        (lambda: plot_worths(rs.PlackettLuce()), "expected a leaderboard or a fitted model"),
        (lambda: plot_bump(make_votes(3)), "1 to 12 columns, not 40: choose some"),
        (lambda: plot_bump({}), "a mapping of names to leaderboards"),
        (lambda: plot_bump("x"), "expected Rankings, not 'x'"),
        (lambda: plot_precedence(None), "expected Rankings, not None"),
        (lambda: plot_groups(rs.PlackettLuce()), "expected a fitted RankingMixture"),
    ],
)
def test_other_values_are_refused(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call()


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(rs.RankshotError, match=r"plots need matplotlib.*rankshot\[plot\]"):
        plot_precedence(make_votes(3))


def test_names_are_no_formulas(tmp_path):
    """A pair of dollar signs begins a formula, and a wrong formula cannot be drawn."""
    names = [r"$\foo{$", "$x_1$", "5$"]
    votes = rs.Rankings.from_orders([names, names[::-1]], sources=names[:2])
    axes = [plot(votes) for plot in (plot_bump, plot_precedence)]
    axes.append(plot_worths(rs.leaderboard(votes, random_state=0)))
    for number, ax in enumerate(axes):
        ax.figure.savefig(tmp_path / f"{number}.svg")
        ticks = [label.get_text() for label in ax.get_yticklabels()]
        assert all(r"\$" in text for text in ticks)

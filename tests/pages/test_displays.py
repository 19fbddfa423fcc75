"""Displays: what is drawn is what was computed by other means, no names overlap; SVG for pages."""

import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot as plt

import rankshot as rs
from rankshot.zeroshot.metrics import Interval

NAMES = ["cat", "dog", "fox"]


@pytest.fixture(autouse=True)
def _close_figures():
    plt.switch_backend("Agg")
    yield
    plt.close("all")


def names_at(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def assert_inside(display):
    """All of the plot is inside the figure."""
    figure = display.figure_
    figure.get_layout_engine().execute(figure)
    box = figure.get_tightbbox()
    width, height = figure.get_size_inches()
    assert min(box.x0, box.y0) >= -0.01
    assert box.x1 <= width + 0.01
    assert box.y1 <= height + 0.01


def assert_readable(axes, *names):
    """No two names of an axis overlap, and none leaves the plot."""
    axes.figure.draw_without_rendering()
    for axis in names:
        boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
        for i, box in enumerate(boxes):
            assert not any(box.overlaps(other) for other in boxes[i + 1 :])
        assert min(min(box.x0, box.y0) for box in boxes) >= -1


# ---- Rankings and models


def make_votes(n_items, n=40):
    names = [
        f"item {i}" if i % 3 else f"{i}: a long name of more than 32 letters"
        for i in range(n_items)
    ]
    worths = np.exp(np.random.default_rng(n_items).normal(size=n_items))
    model = rs.PlackettLuce.from_worths(dict(zip(names, worths, strict=True)))
    return model.sample(n, random_state=0)


def test_worths_have_comparison_intervals():
    board = rs.leaderboard(make_votes(5), random_state=0)
    axes = rs.pages.WorthsDisplay.from_leaderboard(board).ax_
    points = axes.lines[0]
    assert points.get_xdata() == pytest.approx(board.log_worths)
    segments = np.array(axes.collections[0].get_segments())
    assert segments[:, :, 0] == pytest.approx(board.comparison_intervals)
    assert segments[:, 0, 1].tolist() == points.get_ydata().tolist()
    # The best is at the top.
    assert axes.yaxis.get_inverted()
    assert axes.get_xlabel() == "log-worth, with 95% comparison intervals"


def test_names_are_readable():
    votes = make_votes(10)
    board = rs.leaderboard(votes, n_draws=10, random_state=0)
    axes = rs.pages.WorthsDisplay.from_leaderboard(board).ax_
    assert len(names_at(axes.yaxis)) == 10
    assert_readable(axes, axes.yaxis)
    axes = rs.pages.PrecedenceDisplay.from_rankings(votes).ax_
    assert_readable(axes, axes.xaxis, axes.yaxis)


def test_rankings_are_side_by_side():
    """Texts are drawn at column and place, and a shared item has one colour."""
    votes = rs.Rankings.from_orders(
        [["a", ["b", "c"], "d"], ["d", "a", "e"]], items=list("abcde"), sources=["WordNet", "me"]
    )
    axes = rs.pages.RankingsDisplay.from_rankings(votes).ax_
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
    axes = rs.pages.PrecedenceDisplay.from_rankings(votes).ax_
    shares = axes.images[0].get_array()
    order = names_at(axes.yaxis)
    a, b, c = (order.index(item) for item in "abc")
    assert shares[a, b] == 75
    assert shares[b, a] == 25
    assert shares[b, c] == 100
    assert np.isnan(np.ma.filled(shares[a, c], np.nan))
    # A dark page changes black, and white, but not the colour of these cells.
    assert {text.get_color() for text in axes.texts} <= {"#fefefe", "#010101"}
    assert sorted(text.get_text() for text in axes.texts) == ["0", "100", "25", "75"]


@pytest.mark.parametrize(
    ("attribute", "values", "drawn"),
    [
        ("log_worths_", np.array([[1.0, 0, -1], [-2, 0, 2]]), [[-1, 0, 1], [2, 0, -2]]),
        ("mode_", [tuple("abc"), tuple("cba")], [[3, 2, 1], [1, 2, 3]]),
    ],
)
def test_groups_by_worths_or_by_places(attribute, values, drawn):
    models = [SimpleNamespace(items_=tuple("abc"), **{attribute: row}) for row in values]
    mixture = SimpleNamespace(models_=models, weights_=[0.3, 0.7])
    axes = rs.pages.GroupsDisplay.from_mixture(mixture).ax_
    assert names_at(axes.yaxis) == ["c", "b", "a"]
    assert [line.get_xdata().tolist() for line in axes.lines] == drawn
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["group 1 (30%)", "group 2 (70%)"]


# ---- Reliability


def draw_probabilities(rng, n=500):
    proba = rng.dirichlet([0.7] * 3, size=n)
    drawn = [rng.choice(NAMES, p=row) for row in proba]
    return np.array(drawn), proba


def test_discs_are_the_bins_and_their_numbers(rng):
    y, proba = draw_probabilities(rng)
    display = rs.pages.ReliabilityDisplay.from_predictions(y, proba, NAMES, n_bins=5, name="head")
    confidence = proba.max(axis=1)
    right = np.array(NAMES)[proba.argmax(axis=1)] == y
    wanted, counts = [], []
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (confidence > low) & (confidence <= low + 0.2)
        if inside.any():
            wanted.append((confidence[inside].mean(), right[inside].mean()))
            counts.append(int(inside.sum()))
    discs = display.ax_.collections[0]
    np.testing.assert_allclose(discs.get_offsets(), wanted)
    assert texts_of(display.ax_) == [str(count) for count in counts]
    # The area of a disc is proportional to the number of its inputs.
    np.testing.assert_allclose(
        discs.get_sizes() / max(discs.get_sizes()), np.array(counts) / max(counts)
    )
    error = np.average([abs(c - a) for c, a in wanted], weights=counts)
    label = display.ax_.get_legend().get_texts()[1].get_text()
    assert label == f"head, calibration error {error:.1%}"
    assert_inside(display)


# ---- Confusion


def test_cells_are_counts_and_colours_are_shares_of_the_row():
    y_true = ["a"] * 4 + ["b"] * 2 + ["c"]
    y_pred = ["a", "a", "a", "b", "c", "b", "c"]
    display = rs.pages.ConfusionDisplay.from_predictions(y_true, y_pred)
    assert display.confusion.tolist() == [[3, 1, 0], [0, 1, 1], [0, 0, 1]]
    cells = {(*text.get_position()[::-1], text.get_text()) for text in display.ax_.texts}
    assert cells == {(0, 0, "3"), (0, 1, "1"), (1, 1, "1"), (1, 2, "1"), (2, 2, "1")}
    shares = display.ax_.images[0].get_array()
    assert shares.tolist() == [[75, 25, 0], [0, 50, 50], [0, 0, 100]]
    assert names_at(display.ax_.yaxis) == names_at(display.ax_.xaxis) == ["a", "b", "c"]
    assert display.ax_.get_title() == ""


def test_of_many_classes_the_most_confused_are_drawn():
    classes = np.array([f"a class with a long name, which has number {i:03}" for i in range(100)])
    y_true = np.repeat(classes, 20)
    # The first 60 classes are confused with the next one, more often the later they come.
    wrong = np.arange(20) < np.arange(1, 61)[:, None] // 4
    y_pred = y_true.reshape(100, 20).copy()
    y_pred[:60][wrong] = np.repeat(classes[1:61], 20).reshape(60, 20)[wrong]
    display = rs.pages.ConfusionDisplay.from_predictions(y_true, y_pred.ravel())
    gone = (y_pred != classes[:, None]).sum(axis=1)
    come = np.array([(y_pred == name).sum() for name in classes]) - (20 - gone)
    times = gone + come
    worst = sorted(np.argsort(-times, kind="stable")[:40])
    ends = [name[-3:] for name in names_at(display.ax_.yaxis)]
    assert ends == [f"{i:03}" for i in worst]
    note = display.ax_.get_title().replace("\n", " ")
    assert note == "Only the 40 of 100 classes with the most confusions are shown."
    assert_inside(display)


# ---- Comparison

RESULTS = {
    "low": (0.3, 0.2, 0.45),
    "a method with a name that is much longer than others": Interval(0.6, 0.5, 0.65),
    "middle": np.array([0.4, 0.35, 0.5]),
}


def test_results_are_sorted_with_their_intervals_and_chance():
    display = rs.pages.ComparisonDisplay.from_results(RESULTS, chance=0.1)
    wanted = np.array([RESULTS[name] for name in display.names])
    assert display.names == [
        "a method with a name that is much longer than others",
        "middle",
        "low",
    ]
    points, chance = display.ax_.lines
    assert points.get_xdata() == pytest.approx(wanted[:, 0])
    assert list(points.get_ydata()) == [0, 1, 2]
    segments = np.array(display.ax_.collections[0].get_segments())
    np.testing.assert_allclose(segments[:, :, 0], wanted[:, 1:])
    assert chance.get_xdata() == [0.1, 0.1]
    assert display.ax_.yaxis.get_inverted()
    assert_inside(display)
    assert len(rs.pages.ComparisonDisplay.from_results(RESULTS).ax_.lines) == 1


def test_a_heading_has_no_mark():
    cells = np.array([[np.nan] * 3, [0.1, 0.0, 0.2], [0.3, 0.2, 0.4]])
    display = rs.pages.ComparisonDisplay(["method", "a", "b"], cells).plot()
    np.testing.assert_allclose(display.ax_.lines[0].get_xdata(), cells[:, 0])
    labels = display.ax_.get_yticklabels()
    assert [label.get_fontweight() for label in labels] == ["bold", "normal", "normal"]
    assert_inside(display)


def test_a_rehearsal_shows_what_was_tried_and_chosen():
    rng = np.random.default_rng(0)
    places = np.arange(12)
    names = np.array([f"class{i:02}" for i in places])
    label = np.repeat(places, 10)
    scores = -abs(label[:, None] - places) + rng.normal(size=(120, 12))
    near = rs.Similarity(-abs(places[:, None] - places).astype(float), names, names)
    rehearsal = rs.Rehearsal(n_folds=3, grid={"k": [2, 5]}).fit(
        rs.Scores(scores, names), names[label], near.to_rankings()
    )
    _, ax = plt.subplots()
    display = rs.pages.ComparisonDisplay.from_rehearsal(rehearsal, chance=0.25, ax=ax)
    assert display.ax_ is ax
    chosen = [name for name in display.names if name.endswith(" (chosen)")]
    assert len(chosen) == 1
    assert display.intervals[display.names.index(chosen[0])].tolist() == [*rehearsal.accuracy_]
    tried = {trial.what: trial.accuracy.estimate for trial in rehearsal.trials_}
    drawn = {
        name.removesuffix(" (chosen)"): row[0]
        for name, row in zip(display.names, display.intervals, strict=True)
    }
    assert drawn == tried
    assert (np.diff(display.intervals[:, 0]) <= 0).all()


# ---- Explanation


def make_explanation(**values):
    given = {
        "target": "cat",
        "probability": 0.8,
        "against": None,
        "items": (("lion", 1.5), ("bus", -0.5), ("fox", 0.25)),
        "sources": (("me", 1.0), ("you", 2.0)),
        "alternatives": (("cat", 0.8), ("dog", 0.2)),
        "listed": ("lion", "fox"),
    }
    return rs.zeroshot.Explanation(**{**given, **values})


def bars_of(axes):
    """Return the rows that have a bar: name and length."""
    rows = names_at(axes.yaxis)
    return [
        (rows[round(bar.get_y() + bar.get_height() / 2)], bar.get_width()) for bar in axes.patches
    ]


def test_bars_are_the_contributions():
    display = rs.pages.ExplanationDisplay.from_explanation(make_explanation())
    assert bars_of(display.ax_) == [("lion", 1.5), ("fox", 0.25), ("bus", -0.5)]
    assert texts_of(display.ax_) == ["+1.50", "+0.25", "-0.50"]
    assert display.ax_.get_title() == "cat (80.0%) rather than the average class"
    assert_inside(display)
    many = make_explanation(items=tuple((f"c{i:02}", 20.0 - i) for i in range(20)))
    bars = bars_of(rs.pages.ExplanationDisplay.from_explanation(many).ax_)
    assert bars == [*many.items[:15], ("5 others", 15.0)]


# ---- All


def list_displays(name="cat", ax=None):
    votes = rs.Rankings.from_orders([[name, "b"], ["b", name]], sources=[name, "x"])
    plots = rs.pages
    return [
        plots.ReliabilityDisplay.from_predictions(
            ["a"], [[0.9, 0.1]], ["a", "b"], name=name, ax=ax
        ),
        plots.ConfusionDisplay.from_predictions([name, "b"], ["b", "b"], ax=ax),
        plots.ComparisonDisplay.from_results({name: (0.5, 0.4, 0.6)}, ax=ax),
        plots.ExplanationDisplay.from_explanation(make_explanation(target=name), ax=ax),
        plots.PrecedenceDisplay.from_rankings(votes, ax=ax),
        plots.WorthsDisplay.from_leaderboard(rs.leaderboard(votes, random_state=0), ax=ax),
        plots.WorthsDisplay.from_model(rs.PlackettLuce().fit(votes), ax=ax),
        plots.GroupsDisplay.from_mixture(rs.RankingMixture(n_groups=1).fit(votes), ax=ax),
        plots.RankingsDisplay.from_rankings(votes, ax=ax),
    ]


def test_given_axes_are_used_and_a_display_can_be_drawn_again():
    _, given = plt.subplots()
    for display in list_displays(ax=given):
        assert display.ax_ is given
        assert display.figure_ is given.figure
        assert repr(display) == f"<{type(display).__name__}>"
    assert display.plot() is display
    assert display.ax_ is not given


HOSTILE = '</b>"$x{$ id=" 猫\x1b'


@pytest.mark.filterwarnings("ignore:Glyph")
def test_svg_stands_beside_others_on_a_page():
    """Names are text, ids differ, nothing is fetched, and the same plot is the same SVG."""
    ids = []
    displays = list_displays(HOSTILE)
    for display in displays:
        svg = display.to_svg("<the> title", width=4)
        root = ET.fromstring(svg)
        assert (root.tag, root.get("role"), root[0].text) == ("svg", "img", "<the> title")
        assert not re.search("https?:|<metadata|<script|xmlns", svg)
        own = [element.get("id") for element in root.iter() if element.get("id")]
        assert {element.get("href")[1:] for element in root.iter("use")} <= set(own)
        ids += own
        assert HOSTILE.replace("\x1b", " ") in "".join(root.itertext())
    assert len(ids) == len(set(ids))
    assert displays[-1].to_svg("<the> title", width=4) == svg


R, C = rs.pages.ReliabilityDisplay.from_predictions, rs.pages.ConfusionDisplay.from_predictions
M, V = rs.pages.ComparisonDisplay.from_results, rs.pages.RankingsDisplay.from_rankings


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: R(["cow"], [[0.5, 0.5]], ["cat", "dog"]), "y_true, row 0: 'cow' is not one of"),
        (lambda: R(["a"], [[1.0]], ["a"], n_bins=0), "n_bins must be .*, not 0"),
        (lambda: C(["a", "b"], ["a"]), "y_true has 2 labels, but y_pred has 1"),
        (lambda: C(["a"], ["b"], labels=["c", "b"]), "none of the labels 'c', 'b' is in y_true"),
        (lambda: M({"WordNet": (0.4, 0.5, 0.3)}), "'WordNet': expected .* low <= high, not"),
        (
            lambda: rs.pages.ExplanationDisplay.from_explanation([make_explanation()]),
            "explain returns a list of them",
        ),
        (lambda: rs.pages.PrecedenceDisplay.from_rankings(None), "expected Rankings, not None"),
        (lambda: V(rs.Rankings.from_orders([["a"]] * 2, targets=["x", "y"])), "several targets"),
    ],
)
def test_other_values_are_refused(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call()

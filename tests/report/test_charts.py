"""The charts: the places of marks and labels."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from rankshot.core.label_places import (
    _count_covered,
    _cumulative_counts,
    place_labels,
    text_width,
)
from rankshot.ranking.maps import MAX_GROUPS, find_largest_groups
from rankshot.report.charts import (
    MAX_POINTS,
    PAGE_LAYOUTS,
    PlotLine,
    draw_intervals,
    draw_map,
    draw_reliability,
    scale_to_unit,
)
from rankshot.report.contents import ClassMap
from rankshot.report.svg import N_COLORS, SHAPES, Axis, draw_mark, element, fit_axis
from rankshot.zeroshot.metrics import Interval

UNIT = Axis(0.0, 1.0, (0.0, 0.5, 1.0))


def parsed(svg):
    return ET.fromstring(svg)


def fraction(text):
    assert text.endswith("%")
    return float(text[:-1]) / 100


def uses(svg):
    """Return (mark, x, y) of each mark; x and y are fractions of the chart."""
    return [
        (int(use.get("href").removeprefix("#mark")), fraction(use.get("x")), fraction(use.get("y")))
        for use in parsed(svg).iter("use")
    ]


def lines(svg, class_):
    return [
        tuple(fraction(line.get(end)) for end in ("x1", "y1", "x2", "y2"))
        for line in parsed(svg).iter("line")
        if class_ in line.get("class").split()
    ]


# ---- Parts


def test_text_and_attributes_are_escaped():
    made = element("text", '<b> & "', title='"><script>')
    assert made == '<text title="&quot;&gt;&lt;script&gt;">&lt;b&gt; &amp; &quot;</text>'


def test_every_pair_of_shape_and_colour_is_used():
    kinds = {
        re.search(r'class="(c\d)".*href="#(mark\d)"', draw_mark(kind, 0, 0)).groups()
        for kind in range(len(SHAPES) * N_COLORS)
    }
    assert len(kinds) == len(SHAPES) * N_COLORS == 56


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0, 1], (0, 0.2, 0.4, 0.6, 0.8, 1)),
        ([1, 1], (0.99, 1)),
        ([0, 0], (0, 0.01)),
        ([0.3, 0.5], (0.3, 0.35, 0.4, 0.45, 0.5)),
        ([-1e-17, 1 + 1e-16], (0, 0.2, 0.4, 0.6, 0.8, 1)),
    ],
)
def test_an_axis_has_round_ticks(values, ticks):
    assert fit_axis(values).ticks == ticks


def test_an_axis_holds_what_it_is_made_for(rng):
    for values in rng.uniform(size=(200, 3)) ** rng.uniform(0.2, 5, size=(200, 1)):
        axis = fit_axis(values.tolist())
        assert 0 <= axis.low <= values.min() + 1e-12
        assert values.max() - 1e-12 <= axis.high <= 1 + 1e-12
        assert 2 <= len(axis.ticks) <= 7


# ---- Dots and intervals


def test_one_half_is_in_the_middle():
    svg = draw_intervals([PlotLine("a", (Interval(0.5, 0.25, 1.0),))], ["svm"], UNIT, "plot")
    # One line for the ticks above, one below.
    assert uses(svg) == [(0, 0.5, 0.5)]
    assert lines(svg, "whisker") == [(0.25, 0.5, 1.0, 0.5)]


def test_the_axis_may_be_a_part_of_0_to_1():
    axis = Axis(0.2, 0.6, (0.2, 0.4, 0.6))
    svg = draw_intervals([PlotLine("a", (Interval(0.3, 0.2, 0.4),))], ["svm"], axis, "plot")
    assert uses(svg) == [(0, 0.25, 0.5)]
    assert lines(svg, "whisker") == [(0, 0.5, 0.5, 0.5)]
    assert [line[0] for line in lines(svg, "grid")] == [0, 0.5, 1]


def test_classifiers_have_marks_of_their_own_one_above_the_other():
    cells = (Interval(0.1, 0, 0.2), None, Interval(0.9, 0.8, 1))
    svg = draw_intervals(
        [PlotLine("heading"), PlotLine("a", cells, "method")], ["x", "y", "z"], UNIT, "plot"
    )
    # Four lines: ticks, the heading, the row (from 1/2 to 3/4), ticks.
    assert uses(svg) == [(0, 0.1, 0.5625), (2, 0.9, 0.6875)]
    titles = [title.text for title in parsed(svg).iter("title")]
    assert titles == [
        "plot",
        "method, a, x: .100 (.000 to .200)",
        "method, a, z: .900 (.800 to 1.000)",
    ]


# ---- The map


def test_a_map_has_one_scale_for_both_axes(rng):
    for scale in ([1, 1], [5, 1], [1, 5], [1e-8, 1], [1, 1e-300]):
        x, y = (rng.normal(size=(30, 2)) * scale).T
        places, aspect = scale_to_unit(x, y)
        assert 1 <= aspect <= 1.6
        assert places.min() > 0
        assert places.max() < 1
        drawn = places * [aspect, -1]
        far = np.hypot(np.subtract.outer(x, x), np.subtract.outer(y, y))
        seen = np.hypot(*(np.subtract.outer(side, side) for side in drawn.T))
        np.testing.assert_allclose(seen / seen.max(), far / far.max(), atol=1e-9)
        # Right is right, and up is up.
        assert np.argmax(places[:, 0]) == np.argmax(x)
        if np.ptp(y) > 1e-12:
            assert np.argmin(places[:, 1]) == np.argmax(y)


@pytest.mark.parametrize("x", [[3.0], [2.0, 2.0], [0.0, 0.0]])
def test_points_in_one_place_are_in_the_middle(x):
    places, _ = scale_to_unit(np.array(x), np.array(x))
    np.testing.assert_array_equal(places, 0.5)


def test_numbers_of_any_size_can_be_drawn():
    places, _ = scale_to_unit(np.array([-1e308, 1e308]), np.array([0.0, 1e308]))
    assert np.isfinite(places).all()
    assert places[0, 0] < places[1, 0]


def class_map(groups, rng):
    x, y = rng.normal(size=(2, len(groups)))
    names = tuple(f"{group} {i}" for i, group in enumerate(groups))
    return ClassMap(names, tuple(groups), tuple(x), tuple(y))


def test_a_map_has_one_mark_a_point_by_group_with_a_tooltip(rng):
    svg = draw_map(class_map(["cat", "dog", "cat", "fox"], rng), "map")
    assert [kind for kind, _, _ in uses(svg)] == [0, 1, 0, 2]
    titles = [title.text for title in parsed(svg).iter("title")]
    assert titles[:5] == ["map", "cat 0 (cat)", "dog 1 (dog)", "cat 2 (cat)", "fox 3 (fox)"]
    labels = [t.text or "".join(t.itertext()) for t in parsed(svg).iter("text")]
    assert len(labels) == 6  # three groups, for a desk and for a phone


def test_only_the_largest_of_many_groups_are_named(rng):
    groups = [f"g{i}" for i in range(100) for _ in range(1 + (i >= 60))]
    found = find_largest_groups(groups)
    assert [group.name for group in found] == [f"g{i}" for i in range(60, 100)]
    assert len(found) == MAX_GROUPS
    assert {group.size for group in found} == {2}
    svg = draw_map(class_map(groups, rng), "map")
    assert len(list(parsed(svg).iter("circle"))) == 60


def test_a_map_draws_a_part_of_very_many_points(rng):
    svg = draw_map(class_map(["a"] * (2 * MAX_POINTS + 1), rng), "map")
    assert len(uses(svg)) == math.ceil((2 * MAX_POINTS + 1) / 3)


# ---- Labels


def overlaps(places, sizes):
    gap = (sizes[:, None] + sizes) / 2 - np.abs(places[:, None] - places)
    return np.triu(gap.min(axis=-1) > 1e-6, k=1)


def test_labels_never_overlap_and_stay_in_the_box(rng):
    box = np.array([800.0, 500.0])
    for _ in range(20):
        # Three clusters: at their centres nearly all labels would be on one another.
        centers = rng.normal(size=(30, 2)) * 8 + np.repeat([[200, 100], [600, 80], [5, 480]], 10, 0)
        sizes = np.column_stack([rng.uniform(30, 140, 30), np.full(30, 17.0)])
        assert overlaps(centers, sizes).any()
        places = place_labels(centers, sizes, centers, box)
        there = ~np.isnan(places[:, 0])
        assert there.sum() >= 15
        places, sizes = places[there], sizes[there]
        assert not overlaps(places, sizes).any()
        assert (places - sizes / 2 >= -1e-6).all()
        assert (places + sizes / 2 <= box + 1e-6).all()


def test_no_two_labels_of_forty_classes_overlap_and_no_leader_is_long(rng):
    """Forty classes with seven rankings each, half of them in one heap."""
    groups = [f"a class of number {i}" for i in range(40) for _ in range(7)]
    middles = rng.normal(size=(40, 2)) * np.where(np.arange(40) < 20, 0.02, 1)[:, None]
    x, y = (np.repeat(middles, 7, axis=0) + 0.05 * rng.normal(size=(280, 2))).T
    svg = draw_map(ClassMap(tuple(groups), tuple(groups), tuple(x), tuple(y)), "map")
    aspect = float(re.search(r"aspect-ratio:([\d.]+)", svg).group(1))
    for name, width, font_size in PAGE_LAYOUTS:
        box = np.array([width, width / aspect])
        (labels,) = (g for g in parsed(svg).iter("g") if g.get("class") == f"labels {name}")
        texts = list(labels.iter("text"))
        places = np.array([[fraction(t.get("x")), fraction(t.get("y"))] for t in texts]) * box
        sizes = np.array([[text_width(t[0].tail, font_size), font_size] for t in texts])
        assert 5 < len(texts) < 40
        assert not overlaps(places, sizes).any()
        for line in labels.iter("line"):
            ends = np.array([fraction(line.get(end)) for end in ("x1", "y1", "x2", "y2")])
            assert np.hypot(*(ends[2:] - ends[:2]) * box) < 0.68 * font_size * 10


def test_a_label_without_room_is_left_out():
    middle, size = np.array([[50.0, 50.0]]), np.array([[40.0, 10.0]])
    heap = np.random.default_rng(0).uniform(0, 100, size=(3000, 2))
    assert np.isnan(place_labels(middle, size, heap, np.array([100.0, 100.0]))).all()


def test_a_label_alone_is_at_its_centre():
    center = np.array([[100.0, 60.0]])
    size = np.array([[40.0, 10.0]])
    box = np.array([200.0, 100.0])
    np.testing.assert_array_equal(place_labels(center, size, np.empty((0, 2)), box), center)


def test_a_label_moves_off_a_mark():
    center = np.array([[100.0, 60.0]])
    size = np.array([[40.0, 10.0]])
    (place,) = place_labels(center, size, center, np.array([200.0, 100.0]))
    assert abs(place[1] - 60) > 5
    assert abs(place[0] - 100) + abs(place[1] - 60) < 40


def test_marks_under_a_label_are_counted(rng):
    box, half = np.array([90.0, 60.0]), np.array([12.0, 5.0])
    points = rng.integers(0, [90, 60], size=(300, 2)) + 0.5
    places = rng.integers(0, [91, 61], size=(100, 2)).astype(float)
    inside = (np.abs(places[:, None] - points) < half).all(axis=-1)
    np.testing.assert_array_equal(
        _count_covered(_cumulative_counts(points, box), places, half), inside.sum(axis=1)
    )


# ---- Reliability


def test_reliability_goes_right_with_confidence_and_up_with_accuracy():
    svg = draw_reliability([(0.25, 0.5, 100), (0.75, 0.75, 25), (math.nan, math.nan, 0)], "r")
    circles = list(parsed(svg).iter("circle"))
    assert [(fraction(c.get("cx")), fraction(c.get("cy"))) for c in circles] == [
        (0.25, 0.5),
        (0.75, 0.25),
    ]
    # A quarter of the inputs, a quarter of the area.
    assert float(circles[0].get("r")) == 2 * float(circles[1].get("r"))
    assert lines(svg, "diagonal") == [(0, 1, 1, 0)]
    assert lines(svg, "gap") == [(0.25, 0.75, 0.25, 0.5), (0.75, 0.25, 0.75, 0.25)]
    assert "100 inputs: mean confidence 25.0%, accuracy 50.0%" in svg


def test_bins_before_a_calibration_are_rings_on_the_same_scale():
    svg = draw_reliability([(0.25, 0.5, 25)], "r", [(0.5, 0.25, 100), (math.nan, math.nan, 0)])
    after, before = parsed(svg).iter("circle")
    assert (after.get("class"), before.get("class")) == ("bin", "bin before")
    assert (fraction(before.get("cx")), fraction(before.get("cy"))) == (0.5, 0.75)
    assert float(before.get("r")) == 2 * float(after.get("r"))
    assert "Before: 100 inputs: mean confidence 50.0%" in svg
    assert lines(svg, "gap") == [(0.25, 0.75, 0.25, 0.5)]


@pytest.mark.parametrize(
    "svg",
    [
        draw_intervals([PlotLine("a", (Interval(0.5, 0, 1),))], ["c"], UNIT, "<the> title"),
        draw_reliability([], "<the> title"),
        draw_map(ClassMap(("a",), ("g",), (1.0,), (2.0,)), "<the> title"),
    ],
)
def test_a_chart_is_an_image_with_a_title(svg):
    root = parsed(svg)
    assert root.get("role") == "img"
    assert root[0].tag == "title"
    assert root[0].text == "<the> title"

"""Maps: points are found again from their distances, and no two names overlap."""

import numpy as np
import pytest
from matplotlib.text import Text
from scipy.spatial.distance import cdist, pdist

import rankshot as rs
from rankshot.plots.map import (
    MapDisplay,
    place_labels,
    place_points,
)


def texts_of(axes):
    return [text.get_text() for text in axes.texts]


def test_points_of_a_plane_are_found_but_for_a_turn(rng):
    points = rng.normal(size=(20, 2)) * [3, 1]
    distances = cdist(points, points)
    found = place_points(distances)
    np.testing.assert_allclose(cdist(found, found), distances, atol=1e-9)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    # The longer axis comes first, and the farthest point lies on its positive side.
    assert found[:, 0].var() > found[:, 1].var()
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


@pytest.mark.parametrize("n", [2, 5])
def test_an_axis_that_the_distances_do_not_need_is_zero(n):
    on_a_line = np.arange(float(n))[:, None]
    found = place_points(cdist(on_a_line, on_a_line))
    np.testing.assert_allclose(np.abs(found[:, 0]), np.abs(np.arange(n) - (n - 1) / 2), atol=1e-6)
    np.testing.assert_allclose(found[:, 1], 0, atol=1e-6)
    np.testing.assert_allclose(place_points(np.zeros((n, n))), 0, atol=1e-6)


def test_the_best_line_for_distances_that_are_no_plane(rng):
    """Torgerson's coordinates are those of the principal components."""
    points = rng.normal(size=(30, 5)) * [4, 2, 1, 0.5, 0.25]
    centred = points - points.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found = place_points(cdist(points, points))
    np.testing.assert_allclose(np.abs(found), np.abs(u[:, :2] * s[:2]), atol=1e-9)


# ---- Map


def test_a_map_keeps_distances_and_groups_the_points():
    orders = [list("abc"), list("abc"), list("acb"), list("cba")]
    votes = rs.Rankings.from_orders(orders, targets=["x", "x", "y", "y"])
    display = rs.plots.MapDisplay.from_rankings(votes)
    # Kendall's distances, of three pairs: 0, 1/3 and 1, which fit on a line.
    np.testing.assert_allclose(pdist(display.places), np.array([0, 1, 3, 1, 3, 2]) / 3, atol=1e-7)
    drawn = [
        np.column_stack(line.get_data()) for line in display.ax_.lines if len(line.get_xdata())
    ]
    np.testing.assert_allclose(drawn[0], display.places[:2])
    np.testing.assert_allclose(drawn[1], display.places[2:])
    assert sorted(texts_of(display.ax_)) == ["x", "y"]
    assert display.ax_.get_xlabel() == "Kendall's distance of the first 3 places"
    assert (
        rs.plots.MapDisplay.from_rankings(votes, k=1).ax_.get_xlabel().endswith("the first place")
    )
    other = rs.plots.MapDisplay.from_rankings(votes, groups=[1, 2, 2, 2])
    assert sorted(texts_of(other.ax_)) == ["1", "2"]


def test_a_map_of_targets_by_their_similarities():
    values = [[0.9, 0.1, np.nan], [0.6, 0.5, np.nan], [0.0, 0.1, np.nan], [np.nan] * 3]
    table = rs.Similarity(values, ["cat", "dog", "truck", "blorp"], ["lion", "fox", "qux"])
    display = rs.plots.MapDisplay.from_similarity(table)
    np.testing.assert_allclose(pdist(display.places), [0.5, 0.9, np.hypot(0.6, 0.4)], atol=1e-9)
    assert sorted(texts_of(display.ax_)) == ["cat", "dog", "truck"]
    assert display.ax_.get_xlabel().endswith("; without 'blorp'")


def test_names_on_a_map_do_not_overlap(rng):
    """Forty classes, half of them in one heap."""
    each = 3
    middles = rng.normal(size=(40, 2)) * np.where(np.arange(40) < 20, 0.02, 1)[:, None]
    places = np.repeat(middles, each, axis=0) + 0.05 * rng.normal(size=(40 * each, 2))
    groups = [f"a class of number {i}" for i in range(40) for _ in range(each)]
    display = MapDisplay(places, groups).plot()
    display.figure_.canvas.draw()
    # Of the words alone: the extent of an annotation has its line, too.
    boxes = [Text.get_window_extent(text) for text in display.ax_.texts]
    assert 5 < len(boxes) <= 40
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: MapDisplay.from_rankings(rs.Rankings.from_orders([["a", "b"]])),
            "two rankings or more, .* not 1 groups for 1 rankings",
        ),
        (
            lambda: MapDisplay.from_rankings(
                rs.Rankings.from_orders([["a", "b"]] * 3), groups=["x"]
            ),
            "1 groups for 3 rankings",
        ),
        (
            lambda: MapDisplay.from_similarity(rs.Similarity([[1.0], [np.nan]], ["a", "b"], ["c"])),
            "two targets or more .*; 'b' cannot be placed",
        ),
    ],
)
def test_other_values_are_refused(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call()


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

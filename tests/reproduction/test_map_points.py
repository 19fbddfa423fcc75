"""Maps find points again from their distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import rankshot as rs
from rankshot.ranking.maps import place_points
from rankshot.report.ranking_summaries import map_rankings


def test_points_of_a_plane_are_found_but_for_a_turn(rng):
    points = rng.normal(size=(20, 2)) * [3, 1]
    distances = cdist(points, points)
    found = place_points(distances)
    np.testing.assert_allclose(cdist(found, found), distances, atol=1e-9)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    # The longer axis comes first, and the farthest point lies on its positive side.
    assert found[:, 0].var() > found[:, 1].var()
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


@pytest.mark.parametrize("n", [2, 3, 5, 8])
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


def test_distances_must_be_symmetric():
    with pytest.raises(ValueError, match="symmetric"):
        place_points(np.array([[0.0, 1.0], [2.0, 0.0]]))


@pytest.mark.parametrize("n_reversed", [0, 1, 2])
def test_the_map_of_a_report_needs_no_second_axis(n_reversed):
    orders = [["b", "a"]] * n_reversed + [["a", "b"]] * (4 - n_reversed)
    found = map_rankings(rs.Rankings.from_orders(orders, items=["a", "b"], targets="x"), k=2)
    distance = np.abs(np.subtract.outer(found.x, found.x))
    same = np.equal.outer(np.arange(4) < n_reversed, np.arange(4) < n_reversed)
    np.testing.assert_allclose(distance, np.where(same, 0.0, 1.0), atol=1e-6)
    np.testing.assert_allclose(found.y, 0, atol=1e-6)
    if n_reversed:
        assert found.x[np.argmax(np.abs(found.x))] > 0

"""Classical scaling finds points again from their distances."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import rankshot as rs


def test_points_of_a_plane_are_found_but_for_a_turn(rng):
    points = rng.normal(size=(20, 2)) * [3, 1]
    distances = cdist(points, points)
    found = rs.classical_scaling(distances)
    np.testing.assert_allclose(cdist(found, found), distances, atol=1e-9)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    # The longer axis comes first, and the farthest point lies on its positive side.
    assert found[:, 0].var() > found[:, 1].var()
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


def test_more_axes_than_the_distances_have_room_for():
    found = rs.classical_scaling([[0, 2], [2, 0]], n_dimensions=3)
    np.testing.assert_allclose(np.abs(found), [[1, 0, 0], [1, 0, 0]], atol=1e-12)


def test_the_best_line_for_distances_that_are_no_plane(rng):
    """Torgerson's coordinates are those of the principal components."""
    points = rng.normal(size=(30, 5)) * [4, 2, 1, 0.5, 0.25]
    centred = points - points.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found = rs.classical_scaling(cdist(points, points))
    np.testing.assert_allclose(np.abs(found), np.abs(u[:, :2] * s[:2]), atol=1e-9)


def test_distances_must_be_symmetric():
    with pytest.raises(rs.RankshotError, match=r"symmetric matrix, not of shape \(2, 2\)"):
        rs.classical_scaling([[0, 1], [2, 0]])

"""Maps find points again from their distances."""

import numpy as np
from scipy.spatial.distance import cdist

from rankshot.ranking.maps import place_points


def test_points_of_a_plane_are_found_but_for_a_turn(rng):
    points = rng.normal(size=(20, 2)) * [3, 1]
    distances = cdist(points, points)
    found = place_points(distances)
    np.testing.assert_allclose(cdist(found, found), distances, atol=1e-9)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-9)
    # The longer axis comes first, and the farthest point lies on its positive side.
    assert found[:, 0].var() > found[:, 1].var()
    assert (found[np.abs(found).argmax(axis=0), [0, 1]] > 0).all()


def test_the_best_line_for_distances_that_are_no_plane(rng):
    """Torgerson's coordinates are those of the principal components."""
    points = rng.normal(size=(30, 5)) * [4, 2, 1, 0.5, 0.25]
    centred = points - points.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    found = place_points(cdist(points, points))
    np.testing.assert_allclose(np.abs(found), np.abs(u[:, :2] * s[:2]), atol=1e-9)

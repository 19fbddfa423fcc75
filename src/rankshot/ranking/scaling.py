"""Classical multidimensional scaling: points whose distances are nearly those given."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.errors import RankshotError

Floats = NDArray[np.float64]


def classical_scaling(distances: ArrayLike, n_dimensions: int = 2) -> Floats:
    """Place points so that their Euclidean distances are as near as can be to those given.

    Torgerson's method: squared distances, centred in rows and columns, are inner products up to
    a factor of -2; their largest eigenvalues and vectors give the coordinates. The sign of
    each axis, which is arbitrary, is such that its farthest coordinate is positive.

    Parameters
    ----------
    distances : array-like of shape (n, n)
        Symmetric.
    n_dimensions : int

    Returns
    -------
    ndarray of shape (n, n_dimensions)
        An axis that the distances have no room for is 0 throughout.

    Examples
    --------
    >>> classical_scaling([[0, 3, 5], [3, 0, 4], [5, 4, 0]]).round(2)
    array([[-2.15, -1.07],
           [-0.66,  1.53],
           [ 2.81, -0.46]])
    """
    D = np.asarray(distances, np.float64)
    if D.ndim != 2 or D.shape[0] != D.shape[1] or not np.allclose(D, D.T):
        raise RankshotError(f"distances must be a symmetric matrix, not of shape {D.shape}")
    squared = D**2
    inner = -(squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()) / 2
    values, vectors = np.linalg.eigh(inner)
    points = np.zeros((len(D), n_dimensions))
    for axis in range(min(n_dimensions, len(D))):
        value, vector = values[-1 - axis], vectors[:, -1 - axis]
        if value > 0:
            points[:, axis] = vector * np.sqrt(value) * np.sign(vector[np.argmax(np.abs(vector))])
    return points

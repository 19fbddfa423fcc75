"""Places as numbers that can be averaged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.blocks import ABSENT


def mean_places(table: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return places 1/2, 3/2, … of each row's present items, tied items sharing their mean.

    Examples
    --------
    >>> mean_places(np.array([[0, 1, 1, ABSENT]]))[0, :3]
    array([0.5, 2. , 2. ])
    """
    n, C = table.shape
    cell = np.arange(n)[:, None] * (C + 2) + table + 1
    sizes = np.bincount(cell.ravel(), minlength=n * (C + 2)).reshape(n, C + 2)
    # Level ABSENT has no place.
    sizes[:, ABSENT + 1] = 0
    ends = np.cumsum(sizes, axis=1)
    middles = ends - sizes / 2
    return np.take_along_axis(middles, table + 1, axis=1)

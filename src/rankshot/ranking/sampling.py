"""What every sampler is asked: how many rankings, how long, from which random numbers."""

from __future__ import annotations

import numpy as np

from rankshot.ranking.errors import RankshotError

Seed = int | np.random.Generator | None


def sample_length(n: int, k: int | None, n_items: int) -> int:
    """Return the length of the lists to draw, after checking both numbers."""
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise RankshotError(f"n must be 1 or more, not {n}")
    if k is None:
        return n_items
    if not isinstance(k, (int, np.integer)) or not 1 <= k <= n_items:
        raise RankshotError(f"k={k} is not between 1 and the {n_items} items")
    return int(k)

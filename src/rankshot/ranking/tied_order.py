"""Orders made from numbers, where what is too close to tell apart is tied."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Order = tuple["str | tuple[str, ...]", ...]
"""Names, best first; a tie is a tuple inside the tuple."""


def tied_groups(values: NDArray[np.float64], closer_than: float) -> list[NDArray[np.intp]]:
    """Sort by value, smallest first, and keep together neighbours ``closer_than`` that.

    Examples
    --------
    >>> tied_groups(np.array([3.0, 1.0, 2.0, 1.0]), closer_than=0.1)
    [array([1, 3]), array([2]), array([0])]
    """
    by_value = np.argsort(values, kind="stable")
    gaps = np.flatnonzero(np.diff(values[by_value]) > closer_than) + 1
    return np.split(by_value, gaps)


def named(groups: list[NDArray[np.intp]], items: tuple[str, ...]) -> Order:
    """Return the groups by name; names inside a tie are sorted."""
    names = [tuple(sorted(items[i] for i in group)) for group in groups]
    return tuple(group[0] if len(group) == 1 else group for group in names)

"""Work on large tables, one block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK_CELLS = 1 << 21
"""Cells of the largest dense array that a computation builds besides its answer."""
CACHED_CELLS = 1 << 16
"""Cells of arrays that many steps go over, one after the other: they stay in the cache."""


def row_blocks(n: int, cells_per_row: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Split ``n`` rows into runs whose dense arrays have about ``cells`` cells."""
    size = max(1, cells // max(1, cells_per_row))
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))

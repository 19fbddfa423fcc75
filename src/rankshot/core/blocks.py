"""Blocks of rows, so that computations on large tables need little memory."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK_CELLS = 1 << 21
"""The number of cells of the largest temporary array of a computation."""
CACHED_CELLS = 1 << 16
"""The same for arrays that are used many times in a row: they stay in the cache."""


def row_blocks(n: int, cells_per_row: int, cells: int = BLOCK_CELLS) -> Iterator[slice]:
    """Split ``n`` rows into blocks whose dense arrays have about ``cells`` cells."""
    size = max(1, cells // max(1, cells_per_row))
    return (slice(begin, min(begin + size, n)) for begin in range(0, n, size))

"""Ids of many tables, in different processes: how many of them occur more than once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

HASHED_ROWS = 1 << 16
"""Ids that are read at a time."""
MOST_IDS = 1 << 26
"""Ids that are counted one by one; of more, a part is."""


def hash_ids(file: Any, column: str) -> bytes:
    """Return a number of 8 bytes for each id in a Parquet file, equal for equal ids anywhere.

    It is the sum of the bytes of the id, each times a random number of its place.
    """
    rng, factors, hashes = np.random.default_rng(0), np.empty(0, np.uint64), b""
    for batch in file.iter_batches(HASHED_ROWS, columns=[column]):
        _, offsets, text = batch.column(0).cast("large_binary").buffers()
        ends = np.frombuffer(offsets, np.int64)[: len(batch) + 1]
        values = np.frombuffer(text, np.uint8)[: ends[-1]]
        sizes = np.diff(ends)
        while factors.size < sizes.max(initial=0):
            factors = np.append(factors, rng.integers(2**64 - 1, size=64, dtype=np.uint64))
        place = np.arange(values.size) - np.repeat(ends[:-1], sizes)
        sums = np.zeros(values.size + 1, np.uint64)
        np.cumsum((values + np.uint64(1)) * factors[place], out=sums[1:])
        hashes += (sums[ends[1:]] - sums[ends[:-1]]).tobytes()
    return hashes


class RepeatedIds:
    """Counts repeated ids by their numbers; if there are too many, those of a part of the ids.

    Examples
    --------
    >>> import numpy as np
    >>> from rankshot.core.repeated_ids import RepeatedIds
    >>> found = RepeatedIds()
    >>> for numbers in ([5, 6, 7], [8, 6]):
    ...     found.add(np.array(numbers, np.uint64).tobytes())
    >>> found.count()
    1
    """

    def __init__(self) -> None:
        self._kept: list[NDArray[np.uint64]] = []
        self._n = self._halvings = 0

    def add(self, hashes: bytes) -> None:
        """Add the numbers of some ids, from `hash_ids`."""
        self._kept.append(self._thin(np.frombuffer(hashes, np.uint64)))
        self._n += self._kept[-1].size
        while self._n > MOST_IDS:
            self._halvings += 1
            self._kept = [self._thin(some) for some in self._kept]
            self._n = sum(some.size for some in self._kept)

    def _thin(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return hashes[hashes < 2 ** (64 - self._halvings)] if self._halvings else hashes

    def count(self) -> int:
        """Return how many ids were there before."""
        found = np.sort(np.concatenate([*self._kept, np.empty(0, np.uint64)]))
        return int((found[1:] == found[:-1]).sum()) << self._halvings

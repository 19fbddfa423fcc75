"""Lists of different lengths in flat arrays, as `Rankings` stores them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]
"""One value per ranking, of any type."""


class Entries(NamedTuple):
    """Lists of different lengths in flat arrays, as `Rankings` stores them.

    Row ``i`` lists the items of numbers ``codes[starts[i]:starts[i + 1]]``, best first.
    ``places`` counts 0, 1, 2, … inside a row. Items of equal place are tied; their codes are in
    ascending order, so that equal rankings have equal arrays.
    """

    codes: NDArray[np.int32]
    places: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many entries each row has."""
        return np.asarray(self.starts[1:] - self.starts[:-1])

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row that owns each entry."""
        return np.repeat(np.arange(self.starts.size - 1), self.sizes)

    def take(self, index: NDArray[np.intp]) -> Entries:
        """Return some of the rows, in the order given."""
        sizes = self.sizes[index]
        starts = row_starts(sizes)
        gather = np.arange(starts[-1]) + np.repeat(self.starts[index] - starts[:-1], sizes)
        return Entries(self.codes[gather], self.places[gather], starts)

    @staticmethod
    def concatenate(parts: list[Entries]) -> Entries:
        """Stack the rows of several values."""
        return Entries(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.places for part in parts]),
            row_starts(np.concatenate([part.sizes for part in parts])),
        )

    def rows_by_size(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of each size, and a matrix of where their entries are."""
        sizes = self.sizes
        for size in np.flatnonzero(np.bincount(sizes)).tolist():
            rows = np.flatnonzero(sizes == size)
            yield rows, self.starts[rows][:, None] + np.arange(size)

    def number_equal_rows(self, columns: list[Column]) -> NDArray[np.int64]:
        """Give each row a number; rows with equal entries and equal ``columns`` have the same."""
        number = np.empty(self.starts.size - 1, np.int64)
        used = 0
        for rows, cells in self.rows_by_size():
            # Without ties, the places of all rows are 0, 1, 2, …
            tied = np.any(self.places[cells[:, -1]] + 1 < cells.shape[1])
            listed = (self.codes, self.places) if tied else (self.codes,)
            entries = (values[nth] for values in listed for nth in cells.T)
            number[rows] = used + number_rows(
                chain((column[rows] for column in columns), entries), rows.size
            )
            used = int(number[rows].max()) + 1
        return number

    def group_starts(self) -> NDArray[np.bool_]:
        """Mark the entries that start a new place, and the end of the last one."""
        is_first = np.ones(self.codes.size + 1, bool)
        is_first[1:-1] = self.places[1:] != self.places[:-1]
        is_first[self.starts] = True
        return is_first

    def sort_ties(self) -> Entries:
        """Put tied items in ascending order, so that equal rankings have equal arrays.

        The places of each row must be in ascending order.
        """
        is_first = self.group_starts()
        inside = ~is_first[1:-1]
        if np.all(self.codes[1:][inside] > self.codes[:-1][inside]):
            return self
        tied = ~(is_first[:-1] & is_first[1:])
        # Sorting does not move items between groups, so only the items have to be read back.
        group = np.cumsum(is_first[:-1])[tied] * (int(self.codes.max()) + 1)
        codes = self.codes.copy()
        codes[tied] = np.sort(group + self.codes[tied]) - group
        return self._replace(codes=codes)

    def cut(self, lengths: NDArray[np.int64], keep_rest: NDArray[np.bool_]) -> Entries:
        """Cut each list after its first ``lengths`` items; a tie that is cut is kept whole.

        Later items are dropped, or tied last in the rows of ``keep_rest``.
        """
        rows = self.rows
        last_place = self.places[self.starts[:-1] + lengths - 1][rows]
        inside = self.places <= last_place
        keep = inside | keep_rest[rows]
        places = np.where(inside, self.places, last_place + 1)[keep].astype(np.int32)
        sizes = np.bincount(rows[keep], minlength=lengths.size)
        return Entries(self.codes[keep], places, row_starts(sizes)).sort_ties()


def row_starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each row starts, and where the last one ends."""
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def count_places(starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return 0, 1, 2, … inside each row."""
    return (np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))).astype(np.int32)


def find_row(starts: NDArray[np.int64], entry: int) -> int:
    """Return the row that owns an entry."""
    return int(np.searchsorted(starts, entry, side="right")) - 1


# ---- Equal rows


def number_rows(columns: Iterable[Column], n: int) -> NDArray[np.int64]:
    """Give each of n rows of small whole numbers a number; equal rows have the same.

    Columns are packed into one integer as far as they fit. Before the next column would not
    fit, the packed values are replaced by their numbers, which makes room.
    """
    key = np.zeros(n, np.int64)
    span = 1
    for column in columns:
        low = int(column.min()) if n else 0
        width = int(column.max(initial=low)) - low + 1
        if span * width >= 2**62:
            key, span = _number_values(key, span)
            if span == n:
                break
        if width > 1:
            key = key * width + (column - low)
            span *= width
    return _number_values(key, span)[0]


def _number_values(values: NDArray[np.int64], span: int) -> tuple[NDArray[np.int64], int]:
    """Return a number for each value below ``span`` that occurs, and how many there are."""
    if span > 8 * values.size:
        found, numbers = np.unique(values, return_inverse=True)
        return numbers.astype(np.int64), found.size
    occurs = np.zeros(span, bool)
    occurs[values] = True
    numbers = np.cumsum(occurs)
    return numbers[values] - 1, int(numbers[-1]) if span else 0


def find_first(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the first row of each number."""
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    # Of several values for one cell NumPy keeps the last.
    first[numbers[::-1]] = np.arange(numbers.size)[::-1]
    return first

"""Rows of different lengths in flat arrays: how the lists of `Rankings` are stored."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Entries(NamedTuple):
    """Ragged rankings: row ``i`` owns ``items[starts[i]:starts[i + 1]]``, best first.

    ``places`` counts 0, 1, 2, … inside a row; items of equal place are tied and stand in
    ascending order, so that equal rankings have equal arrays.
    """

    items: NDArray[np.int32]
    places: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many entries each row has."""
        return np.diff(self.starts)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row that owns each entry."""
        return np.repeat(np.arange(self.starts.size - 1), self.sizes)

    def take(self, index: NDArray[np.intp]) -> Entries:
        """Return some of the rows, in the order given."""
        sizes = self.sizes[index]
        starts = starts_of(sizes)
        gather = np.arange(starts[-1]) + np.repeat(self.starts[index] - starts[:-1], sizes)
        return Entries(self.items[gather], self.places[gather], starts)

    @staticmethod
    def concatenate(parts: list[Entries]) -> Entries:
        """Put the rows of several values below one another."""
        return Entries(
            np.concatenate([part.items for part in parts]),
            np.concatenate([part.places for part in parts]),
            starts_of(np.concatenate([part.sizes for part in parts])),
        )

    def numbers(self, beside: list[NDArray[Any]]) -> NDArray[np.int64]:
        """Give rows one number exactly when their entries and all columns ``beside`` are equal."""
        number = np.empty(self.starts.size - 1, np.int64)
        used = 0
        for size in np.unique(self.sizes):
            rows = np.flatnonzero(self.sizes == size)
            gather = self.starts[rows] + np.arange(size)[:, None]
            columns = [column[rows].astype(np.int64) for column in beside]
            number[rows] = number_rows([*columns, *self.items[gather], *self.places[gather]]) + used
            used = int(number[rows].max()) + 1
        return number

    def sorted_inside_ties(self) -> Entries:
        """Put tied items in ascending order, so that equal rankings have equal arrays."""
        by_place = np.lexsort((self.items, self.places, self.rows))
        return self._replace(items=self.items[by_place])

    def cut(self, lengths: NDArray[np.int64], keep_rest: NDArray[np.bool_]) -> Entries:
        """Keep each row up to the place of its ``lengths``-th entry.

        What comes later is dropped, or tied last in rows that ``keep_rest``.
        """
        rows = self.rows
        last_place = self.places[self.starts[:-1] + lengths - 1][rows]
        inside = self.places <= last_place
        keep = inside | keep_rest[rows]
        places = np.where(inside, self.places, last_place + 1)[keep].astype(np.int32)
        sizes = np.bincount(rows[keep], minlength=lengths.size)
        return Entries(self.items[keep], places, starts_of(sizes)).sorted_inside_ties()


def starts_of(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each row starts, and where the last one ends."""
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def number_rows(columns: list[NDArray[Any]]) -> NDArray[np.int64]:
    """Give the rows of a table of small whole numbers one number exactly when they are equal.

    Columns are packed into one integer as far as they fit; numbering what is packed makes room.
    """
    key = np.zeros(len(columns[0]), np.int64)
    span = 1
    for column in columns:
        width = int(column.max(initial=0)) + 1
        if span * width >= 2**62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            span = int(key.max(initial=0)) + 1
        key = key * width + column
        span *= width
    return np.unique(key, return_inverse=True)[1].astype(np.int64)

"""How predictions get into a CSV or a Parquet file, batch after batch."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.blocks import row_blocks
from rankshot.zeroshot.table_files import pyarrow

Put = Callable[[Sequence[str], Sequence[str], NDArray[np.floating], NDArray[np.floating]], None]
"""Takes ids, labels, their probabilities, and those of all targets."""

_GROUP_CELLS = 2**20
"""Cells in a row group of Parquet: readers are slow with thousands of small ones."""

_TEXT_CELLS = 2**14
"""Cells turned into text at a time, which takes many times their memory."""


@contextmanager
def csv_sink(stream: TextIO, columns: Sequence[str]) -> Iterator[Put]:
    """Write the names of the columns, and then all that is put."""
    writer = csv.writer(stream)
    writer.writerow(columns)

    def put(
        ids: Sequence[str],
        labels: Sequence[str],
        chosen: NDArray[np.floating],
        proba: NDArray[np.floating],
    ) -> None:
        numbers = np.column_stack([chosen, proba])
        for some in row_blocks(len(ids), len(columns), _TEXT_CELLS):
            rows = zip(ids[some], labels[some], _digits(numbers[some]), strict=True)
            writer.writerows([name, label, *cells] for name, label, cells in rows)

    yield put


def _digits(table: NDArray[np.floating]) -> list[list[Any]]:
    """Return rows that the writer writes with the fewest digits that tell the numbers apart."""
    # Python's floats are doubles: a float32 would get digits that it does not have.
    return list((table if table.dtype == np.float64 else table.astype(str)).tolist())


class _RowGroups:
    """Collects batches until they fill a row group of Parquet."""

    def __init__(self, stream: TextIO, columns: Sequence[str]) -> None:
        self._arrow, self._parquet = pyarrow(), pyarrow("pyarrow.parquet")
        self._stream, self._columns = stream, columns
        self._held: list[Any] = []
        self._writer: Any = None

    def put(
        self,
        ids: Sequence[str],
        labels: Sequence[str],
        chosen: NDArray[np.floating],
        proba: NDArray[np.floating],
    ) -> None:
        texts = [self._arrow.array(column, self._arrow.string()) for column in (ids, labels)]
        numbers = [self._arrow.array(column) for column in (chosen, *proba.T)]
        table = self._arrow.Table.from_arrays([*texts, *numbers], names=list(self._columns))
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._stream.buffer, table.schema)
        self._held.append(table.cast(self._writer.schema))
        if sum(held.num_rows for held in self._held) * len(self._columns) >= _GROUP_CELLS:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self._writer.write_table(self._arrow.concat_tables(self._held))
            self._held.clear()

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


@contextmanager
def parquet_sink(stream: TextIO, columns: Sequence[str]) -> Iterator[Put]:
    """Write all that is put, in the precision of what comes first."""
    groups = _RowGroups(stream, columns)
    try:
        yield groups.put
        groups.flush()
    finally:
        # Also after a failure: a writer that is not closed writes when it is thrown away.
        groups.close()

"""Score tables as CSV, Parquet and .npz, read in batches.

Scores come by the million, so a table is never in memory: it is read in batches, as often as it
is asked for. Only Parquet takes more than a batch, a page of every column (a few MB): a table of
thousands of columns is better written in row groups of some thousand rows.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from operator import index
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.names import as_names
from rankshot.core.tables import (
    ID,
    number_matrix,
    open_parquet,
    parse_numbers,
    read_csv_rows,
    refuse_text_columns,
    text_array,
    text_column,
    unknown_ending_error,
)
from rankshot.zeroshot.files.npz_scores import open_npz
from rankshot.zeroshot.scores import LARGEST_SCORE, Kind, column_name

Block = tuple[NDArray[np.object_] | None, NDArray[np.floating]]
SCORES_ARE = "scores must be finite numbers (a column of names must be called id)"
BATCH_CELLS = 2**20
"""Scores in a batch, about: eight megabytes."""


@dataclass(frozen=True, eq=False)
class ScoreBatch:
    """Some rows of a score table: their ids, where it has them, and their scores."""

    ids: NDArray[np.object_] | None
    values: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class ScoreTable:
    """A file of scores whose head has been read; `batches` reads the rest.

    Attributes
    ----------
    path : Path
        The file.
    items : tuple of str
        The seen classes.
    n_rows : int or None
        The number of rows; None for CSV, where nobody knows before the end.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        As of `Scores`.
    has_ids : bool
        Whether the rows have names of their own.
    batch_rows : int
        The most rows in a batch.
    """

    path: Path
    items: tuple[str, ...]
    n_rows: int | None
    kind: Kind
    has_ids: bool
    batch_rows: int

    def batches(self) -> Iterator[ScoreBatch]:
        """Yield all rows in batches; every call opens the file anew.

        Raises
        ------
        RankshotError
            Names the line (CSV) or the row (counted from 0) and the column of what is no finite
            number.
        """
        with _opened(self.path) as table:
            if (table.items, table.kind, table.has_ids) != (self.items, self.kind, self.has_ids):
                raise RankshotError(f"{self.path}: another table has taken its place meanwhile")
            row = 0
            for ids, values in table.blocks(self.batch_rows):
                self._refuse_infinite(values, row)
                row += len(values)
                yield ScoreBatch(ids, values)
            if table.n_rows is not None and row != table.n_rows:
                raise RankshotError(f"{self.path}: promises {table.n_rows} rows, but has {row}")

    def _refuse_infinite(self, values: NDArray[np.floating], first: int) -> None:
        # The extremes are NaN if any score is, and need no array as large as the batch.
        if values.max() < LARGEST_SCORE and values.min() > -LARGEST_SCORE:
            return
        row, column = np.argwhere(~(np.abs(values) < LARGEST_SCORE))[0]
        value = values[row, column]
        rule = f"less than {LARGEST_SCORE:g} in size" if np.isfinite(value) else "finite"
        where = f"{self.path}: row {first + row}, {column_name(self.items, self.kind, column)}"
        raise RankshotError(f"{where}: {value}; scores must be {rule}")


def open_scores(path: str | Path, batch_rows: int | None = None) -> ScoreTable:
    r"""Open a table of a classifier's scores: CSV, Parquet or .npz.

    Parameters
    ----------
    path : str or Path
        CSV and Parquet have one column for each seen class, named by it, and perhaps a column
        ``id``. An .npz file has the arrays ``scores``, ``classes`` (their names) and perhaps
        ``id``. Its scores have one column a class or, one-vs-one, one a pair of classes in the
        order of ``numpy.triu_indices``. Three classes have as many pairs, and are taken as
        classes unless an array ``kind`` holds ``"one-vs-one"`` (it may hold any kind of `Scores`).
    batch_rows : int, optional
        The most rows in a batch; by default such that it has about a million scores.

    Returns
    -------
    ScoreTable
        float32 stays so (in Parquet, if all columns are); all other scores become float64.

    Raises
    ------
    RankshotError
        Names the file and what is wrong with it.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from rankshot.zeroshot.files.score_tables import open_scores
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.csv"
    ...     _ = path.write_text("id,leopard,bus\nx1,2.5,-1\nx2,0,1e-3\n")
    ...     table = open_scores(path)
    ...     for batch in table.batches():
    ...         print(table.items, batch.ids, batch.values.tolist())
    ('leopard', 'bus') ['x1' 'x2'] [[2.5, -1.0], [0.0, 0.001]]
    """
    path = Path(path)
    with _opened(path) as table:
        rows = max(1, BATCH_CELLS // table.n_columns) if batch_rows is None else _rows(batch_rows)
        return ScoreTable(path, table.items, table.n_rows, table.kind, table.has_ids, rows)


def _rows(value: Any) -> int:
    try:
        rows = index(value)
    except TypeError:
        rows = 0
    if rows < 1:
        raise RankshotError(f"batch_rows must be a whole number from 1, not {short_repr(value)}")
    return min(rows, sys.maxsize)


# -------------------------------------------------------------------- formats


class _OpenTable(Protocol):
    """An open file of scores: what its head says, and its rows, to be read once."""

    @property
    def items(self) -> tuple[str, ...]: ...
    @property
    def n_rows(self) -> int | None: ...
    @property
    def kind(self) -> Kind: ...
    @property
    def has_ids(self) -> bool: ...
    @property
    def n_columns(self) -> int: ...
    def blocks(self, n_rows: int, /) -> Iterator[Block]: ...


def _opened(path: Path) -> AbstractContextManager[_OpenTable]:
    if path.suffix == ".csv":
        return _opened_csv(path)
    if path.suffix == ".parquet":
        return _opened_parquet(path)
    if path.suffix == ".npz":
        return open_npz(path)
    raise unknown_ending_error(path, (".csv", ".parquet", ".npz"))


@dataclass(frozen=True, eq=False)
class _ColumnTable:
    """A file with one column a class, and perhaps a column ``id``."""

    path: Path
    columns: Sequence[str]
    items: tuple[str, ...]
    n_rows: int | None
    source: Any
    kind: Kind = "multiclass"

    @property
    def has_ids(self) -> bool:
        return len(self.columns) > len(self.items)

    @property
    def n_columns(self) -> int:
        return len(self.items)


def _items(columns: Sequence[str], where: str) -> tuple[str, ...]:
    items = [name for name in columns if name != ID]
    if len(columns) - len(items) > 1:
        raise RankshotError(f"{where}: more than one column {ID!r}")
    if not items:
        raise RankshotError(f"{where}: no column but {ID!r}; each seen class must have one")
    if "" in items:
        raise RankshotError(
            f"{where}: column {columns.index('') + 1} has no name; it must be {ID!r} or a class"
        )
    try:
        return as_names(items, "the header")
    except RankshotError as error:
        raise RankshotError(f"{where}: {error}") from None


class _CsvTable(_ColumnTable):
    def blocks(self, n_rows: int) -> Iterator[Block]:
        place = self.columns.index(ID) if self.has_ids else None
        while rows := _take_rows(self.source, n_rows, place, self.items, self.path):
            ids, cells = rows
            yield text_array(ids) if self.has_ids else None, cells.reshape(-1, self.n_columns)


def _take_rows(
    rows: Iterator[tuple[int, list[str]]],
    n: int,
    place: int | None,
    items: Sequence[str],
    path: Path,
) -> tuple[list[str], NDArray[np.float64]] | None:
    """Read the next n rows of CSV: ids, and all scores in one line; None after the last."""
    ids: list[str] = []
    # Numbers without objects around them: a batch of text would take many times the memory.
    cells = array("d")
    for line, row in islice(rows, n):
        where = f"{path}:{line}"
        if place is not None:
            ids.append(row.pop(place))
            if not ids[-1]:
                raise RankshotError(f"{where}: the row has no id")
        cells.extend(parse_numbers(row, items, SCORES_ARE, where))
    return (ids, np.frombuffer(cells)) if cells else None


@contextmanager
def _opened_csv(path: Path) -> Iterator[_CsvTable]:
    with closing(read_csv_rows(path)) as rows:
        line, columns = next(rows)
        items = _items(columns, f"{path}:{line}")
        first = next(rows, None)
        if first is None:
            raise RankshotError(f"{path}: no rows after the line that names the columns")
        yield _CsvTable(path, columns, items, None, chain([first], rows))


class _ParquetTable(_ColumnTable):
    def blocks(self, n_rows: int) -> Iterator[Block]:
        row = 0
        for batch in self.source.iter_batches(batch_size=n_rows):
            ids = text_column(batch.column(ID), row, ID, self.path) if self.has_ids else None
            yield None if ids is None else text_array(ids), number_matrix(batch, self.items)
            row += batch.num_rows


@contextmanager
def _opened_parquet(path: Path) -> Iterator[_ParquetTable]:
    with open_parquet(path) as file:
        columns = list(file.schema_arrow.names)
        items = _items(columns, f"{path}")
        refuse_text_columns(file.schema_arrow, items, path)
        if file.metadata.num_rows == 0:
            raise RankshotError(f"{path}: the table has no rows")
        yield _ParquetTable(path, columns, items, file.metadata.num_rows, file)

"""Tables of a classifier's scores: CSV, Parquet and .npz, read in batches.

Tables of scores may have millions of rows. So a table is never completely in memory: every call
of `ScoreTable.batches` reads the file again, one batch at a time. Parquet needs a little more
than one batch: one page of every column (a few MB). A Parquet file with thousands of columns
should therefore have row groups of some thousand rows.

CSV and Parquet are read here, .npz archives in `npz_scores`.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, RowError
from rankshot.core.files import require_ending
from rankshot.core.tables import (
    ID,
    as_text_array,
    open_parquet,
    parse_numbers,
    read_csv_rows,
    read_number_matrix,
    read_text_column,
    refuse_text_columns,
)
from rankshot.core.validation import as_names, require_whole_number
from rankshot.zeroshot.files.npz_scores import Block, Header, ReadBlocks, open_npz
from rankshot.zeroshot.scores import LARGEST_SCORE, Kind, Scores, n_columns, refuse_infinite

ENDINGS = (".csv", ".parquet", ".npz")
KIND_KEY, CLASSES_KEY = "rankshot.kind", "rankshot.classes"
"""The keys in the footer of a Parquet file that hold the kind of scores, and the seen classes."""
RULE = "scores must be finite numbers (a column of names must be called id)"
BATCH_CELLS = 2**20
"""Scores in a batch, about: eight megabytes."""


@dataclass(frozen=True)
class ScoreTable:
    """A file of scores, of which only the header has been read; `batches` reads the rows.

    Attributes
    ----------
    path : Path
        The file.
    items : tuple of str
        The seen classes.
    kind : {"multiclass", "one-vs-rest", "one-vs-one"}
        The kind of scores, as in `Scores`.
    has_ids : bool
        Whether the rows have ids.
    n_rows : int or None
        The number of rows; None for CSV, where it is only known at the end.
    batch_rows : int
        The most rows in a batch.
    """

    path: Path
    items: tuple[str, ...]
    kind: Kind
    has_ids: bool
    n_rows: int | None
    batch_rows: int

    def batches(self) -> Iterator[tuple[NDArray[np.object_] | None, Scores]]:
        """Yield the ids (None if the table has none) and the scores of all rows, in batches.

        Every call reads the file again.

        Raises
        ------
        RankshotError
            Names the line (CSV) or the row (counted from 0) and the column of a score that is
            not a finite number.
        """
        with _open_table(self.path) as (header, read_blocks):
            if header[:3] != (self.items, self.kind, self.has_ids):
                raise RankshotError(f"{self.path}: the file was replaced by another table")
            # `parse_numbers` has validated CSV already, and names the line.
            is_csv = self.path.suffix == ".csv"
            row = 0
            for ids, values in read_blocks(self.batch_rows):
                if not is_csv:
                    self._refuse_infinite(values, row)
                row += len(values)
                yield ids, Scores.from_validated(values, self.items, self.kind)
            if header.n_rows is not None and row != header.n_rows:
                raise RankshotError(f"{self.path}: promises {header.n_rows} rows, but has {row}")

    def _refuse_infinite(self, values: NDArray[np.floating], first: int) -> None:
        try:
            refuse_infinite(values, self.items, self.kind)
        except RowError as error:
            problem = f"row {first + error.row}{error.problem}"
            raise RankshotError(f"{self.path}: {problem}") from None


def open_scores(
    path: str | Path, batch_rows: int | None = None, *, allow_empty: bool = False
) -> ScoreTable:
    r"""Open a table of a classifier's scores: CSV, Parquet or .npz.

    Parameters
    ----------
    path : str or Path
        CSV and Parquet have one column per seen class, named by it, and optionally a column
        ``id``. A folder of Parquet parts is read as one table. An .npz file has the arrays
        ``scores``, ``classes`` (the names of the classes) and optionally ``id``. Its scores have
        one column per class or, one-vs-one, one column per pair of classes, in the order of
        ``numpy.triu_indices``. Three classes have three pairs: then the columns are taken as
        classes, unless an array ``kind`` holds ``"one-vs-one"`` (it may hold any kind of `Scores`).
    batch_rows : int, optional
        The most rows in a batch; by default, a batch has about a million scores.
    allow_empty : bool
        Accept a Parquet file without rows, as a part of a dataset may be.

    Returns
    -------
    ScoreTable
        Scores in float32 stay float32 (in Parquet, if all columns are); all others become
        float64.

    Raises
    ------
    RankshotError
        Names the file and what is wrong with it.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import open_scores
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "scores.csv"
    ...     _ = path.write_text("id,leopard,bus\nx1,2.5,-1\nx2,0,1e-3\n")
    ...     for ids, scores in open_scores(path).batches():
    ...         print(scores.items, ids, scores.values.tolist())
    ('leopard', 'bus') ['x1' 'x2'] [[2.5, -1.0], [0.0, 0.001]]
    """
    path = Path(path)
    with _open_table(path) as (header, _):
        if header.n_rows == 0 and not allow_empty:
            raise RankshotError(f"{path}: the table has no rows")
        if batch_rows is None:
            rows = max(1, BATCH_CELLS // n_columns(len(header.items), header.kind))
        else:
            rows = min(require_whole_number("batch_rows", batch_rows), sys.maxsize)
        return ScoreTable(path, *header, rows)


def _open_table(path: Path) -> AbstractContextManager[tuple[Header, ReadBlocks]]:
    if path.is_dir():
        return _open_folder(path)
    formats = {".csv": _open_csv, ".parquet": _open_parquet, ".npz": open_npz}
    return formats[require_ending(path, ENDINGS)](path)


def _find_items(columns: Sequence[str], where: str) -> tuple[str, ...]:
    """Return the seen classes: the names of all columns except ``id``."""
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


# -------------------------------------------------------------------- CSV


@contextmanager
def _open_csv(path: Path) -> Iterator[tuple[Header, ReadBlocks]]:
    with closing(read_csv_rows(path)) as rows:
        line, columns = next(rows)
        items = _find_items(columns, f"{path}:{line}")
        first = next(rows, None)
        if first is None:
            raise RankshotError(f"{path}: no rows after the line that names the columns")
        place = columns.index(ID) if ID in columns else None
        all_rows = chain([first], rows)

        def read_blocks(n_rows: int) -> Iterator[Block]:
            while block := _read_csv_block(all_rows, n_rows, place, items, path):
                yield block

        yield Header(items, "multiclass", place is not None, None), read_blocks


def _read_csv_block(
    rows: Iterator[tuple[int, list[str]]],
    n: int,
    place: int | None,
    items: Sequence[str],
    path: Path,
) -> Block | None:
    """Read the next n rows; return None after the last."""
    ids: list[str] = []
    # Numbers without objects around them: a batch of text would take many times the memory.
    cells = array("d")
    for line, row in islice(rows, n):
        where = f"{path}:{line}"
        if place is not None:
            ids.append(row.pop(place))
            if not ids[-1]:
                raise RankshotError(f"{where}: the row has no id")
        cells.extend(parse_numbers(row, items, RULE, where, limit=LARGEST_SCORE))
    if not cells:
        return None
    return None if place is None else as_text_array(ids), np.frombuffer(cells).reshape(
        -1, len(items)
    )


# -------------------------------------------------------------------- Parquet


@contextmanager
def _open_parquet(path: Path) -> Iterator[tuple[Header, ReadBlocks]]:
    with open_parquet(path) as file:
        columns = list(file.schema_arrow.names)
        items = names = _find_items(columns, f"{path}")
        refuse_text_columns(file.schema_arrow, names, path)
        metadata = file.metadata.metadata or {}
        kind = cast("Kind", metadata.get(KIND_KEY.encode(), b"multiclass").decode())
        if kind != "multiclass":
            items = tuple(json.loads(metadata[CLASSES_KEY.encode()]))
        n_rows = file.metadata.num_rows
        has_ids = ID in columns

        def read_blocks(n_rows: int) -> Iterator[Block]:
            row = 0
            for batch in file.iter_batches(batch_size=n_rows):
                ids = (
                    as_text_array(read_text_column(batch.column(ID), row, ID, path))
                    if has_ids
                    else None
                )
                yield ids, read_number_matrix(batch, names)
                row += batch.num_rows

        yield Header(items, kind, has_ids, n_rows), read_blocks


@contextmanager
def _open_folder(folder: Path) -> Iterator[tuple[Header, ReadBlocks]]:
    """Open the parts of a dataset, sorted by name, as one table."""
    names = sorted(path.relative_to(folder) for path in folder.rglob("*.parquet"))
    parts = [folder / name for name in names if not str(name).startswith(("_", "."))]
    if not parts:
        raise RankshotError(f"{folder}: no parts (.parquet) of a table in it")
    with _open_parquet(parts[0]) as (first, _):
        pass

    def read_blocks(n_rows: int) -> Iterator[Block]:
        for path in parts:
            with _open_parquet(path) as (header, read):
                if header[:3] != first[:3]:
                    raise RankshotError(f"{path}: has other columns than {parts[0]}")
                yield from read(n_rows)

    yield first._replace(n_rows=None), read_blocks

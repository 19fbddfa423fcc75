"""Tables of named columns: CSV and Parquet, read a few rows at a time, and data frames.

Score tables, predictions, true labels, similarities and hit counts are such tables. What their
readers share is here; every message names the file, the line or row, and the column.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.files import NamedFile, decode_lines

ID, LABEL = "id", "label"
TABLE_ENDINGS = (".csv", ".parquet")
_MISSING = re.compile(r"\s*([+-]?nan)?\s*", re.IGNORECASE)
_GROUP_CELLS = 2**20
"""Cells in a row group of Parquet: readers are slow with thousands of small row groups."""
_TEXT_CELLS = 2**14
"""Cells that are turned into text at a time: text takes many times their memory."""
_BUFFER = 2**16
"""Bytes that are read ahead for each column of a Parquet file. By default, PyArrow reads a whole
row group ahead, and most files have only one."""


def find_column(columns: Sequence[str], name: str, path: NamedFile) -> int:
    """Return the position of a column, or raise an error that lists the columns."""
    if (count := columns.count(name)) == 1:
        return columns.index(name)
    if count:
        raise RankshotError(f"{path}: the column {name!r} occurs {count} times")
    raise RankshotError(
        f"{path}: no column {name!r}{suggest_name(name, columns)}; the columns are "
        f"{quote_names(columns)}"
    )


def as_text_array(names: Sequence[str]) -> NDArray[np.object_]:
    """Return names as an array of Python text."""
    return np.array(names, dtype=object)


# -------------------------------------------------------------------- CSV


def read_csv_rows(path: Path) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the names of the columns, then the rows, each with the number of its first line.

    Every row has as many cells as there are columns. Blank lines are skipped. There is one
    exception: in a table with a single column, a blank line before the last row is a row with an
    empty cell.
    """
    blank: int | None = None
    width = 0
    for line, row in _parse_csv(path):
        if not row:
            blank = line if blank is None and width == 1 else blank
            continue
        if blank is not None:
            yield blank, [""]
            blank = None
        width = width or len(row)
        if len(row) != width:
            if len(row) == 1 and not row[0].strip():
                continue
            raise RankshotError(
                f"{path}:{line}: {len(row)} cells, but the first line names {width} columns"
            )
        yield line, row
    if not width:
        raise RankshotError(f"{path}: the file is empty; its first line must name the columns")


def _parse_csv(path: Path) -> Iterator[tuple[int, list[str]]]:
    with path.open("rb") as stream:
        reader = csv.reader((text for _, text in decode_lines(stream, path)), strict=True)
        line = 1
        try:
            for row in reader:
                yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise RankshotError(f"{path}:{line}: not CSV ({error})") from None


def parse_numbers(
    cells: Sequence[str],
    columns: Sequence[str],
    rule: str,
    where: str,
    *,
    allow_missing: bool = False,
    limit: float = inf,
) -> list[float]:
    """Read the cells of a row as finite numbers.

    Parameters
    ----------
    cells, columns : sequences of str
        The cells of the row, and the names of their columns.
    rule : str
        What the numbers must be, for the message.
    where : str
        The file and the line, for the message.
    allow_missing : bool
        Whether a cell may be empty or ``nan``; its number is NaN.
    limit : float
        The numbers must be smaller in size than this.

    Raises
    ------
    RankshotError
        Names the column of the first cell that is not such a number.

    Examples
    --------
    >>> parse_numbers(["1", "2e3"], ["a", "b"], "scores must be finite numbers", "s.csv:2")
    [1.0, 2000.0]
    >>> parse_numbers(["1", "x"], ["a", "b"], "scores must be finite numbers", "s.csv:2")
    Traceback (most recent call last):
        ...
    rankshot.core.errors.RankshotError: s.csv:2: 'b' is 'x'; scores must be finite numbers
    """
    try:
        numbers = list(map(float, cells))
    except ValueError:
        numbers = [_number_or_nan(cell) for cell in cells]
    # A sum costs little, and is below the limit for nearly every row of good numbers.
    if not sum(map(abs, numbers)) < limit:
        for column, cell, number in zip(columns, cells, numbers, strict=True):
            missing = allow_missing and isnan(number) and _MISSING.fullmatch(cell)
            if not (abs(number) < limit or missing):
                what = short_repr(cell) if cell.strip() else "empty"
                if isfinite(number):
                    rule = f"numbers must be less than {limit:g} in size"
                raise RankshotError(f"{where}: {column!r} is {what}; {rule}")
    return numbers


def _number_or_nan(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


class _UnixLines:
    """Ends the rows of a ``csv.writer`` with a line feed alone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, row: str) -> int:
        return self._stream.write(row[:-2] + "\n")


def open_csv_writer(stream: TextIO) -> Any:
    """Return a ``csv.writer`` for rows that end in a line feed.

    It quotes carriage returns as well, which Python's does only if they are part of the line end;
    readers would take them for one.
    """
    return csv.writer(_UnixLines(stream), lineterminator="\r\n")


def write_csv_rows(
    writer: Any, texts: Sequence[Sequence[str]], numbers: NDArray[np.floating]
) -> None:
    """Write columns of text and, after them, columns of numbers, with a ``csv.writer``.

    Numbers have as many digits as tell them apart in their precision.
    """
    for some in row_blocks(len(numbers), len(texts) + numbers.shape[1], _TEXT_CELLS):
        # Python's floats are doubles: a float32 would get digits that it does not have.
        table = numbers[some] if numbers.dtype == np.float64 else numbers[some].astype(str)
        columns = [column[some] for column in texts]
        writer.writerows(
            [*row[:-1], *row[-1]] for row in zip(*columns, table.tolist(), strict=True)
        )


# -------------------------------------------------------------------- Parquet


def import_pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of PyArrow, or raise an error that names the extra to install."""
    try:
        return import_module(module)
    except ImportError:
        raise RankshotError("Parquet files need pyarrow: pip install 'rankshot[parquet]'") from None


@contextmanager
def open_parquet(path: NamedFile, *, dictionaries: bool = False) -> Iterator[Any]:
    """Open a ``pyarrow.parquet.ParquetFile``; errors of PyArrow in the block name the file.

    With ``dictionaries``, columns of text are read as numbers of a dictionary.
    """
    arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    try:
        with path.open("rb") as stream:
            options: dict[str, Any] = {"buffer_size": _BUFFER, "pre_buffer": False}
            file = parquet.ParquetFile(stream, **options)
            if dictionaries:
                columns = (file.schema.column(i) for i in range(len(file.schema)))
                texts = [column.path for column in columns if column.logical_type.type == "STRING"]
                options |= {"metadata": file.metadata, "read_dictionary": texts}
                file = parquet.ParquetFile(stream, **options)
            yield file
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RankshotError(f"{path}: not a complete Parquet file ({error})") from None
    except UnicodeDecodeError as error:
        raise RankshotError(f"{path}: text in it is not UTF-8 ({error.reason})") from None


PutColumns = Callable[[Sequence[Sequence[str]], Sequence[NDArray[np.floating]]], None]
"""Writes some rows: columns of text and, after them, columns of numbers."""


@contextmanager
def open_row_groups(
    stream: TextIO, columns: Sequence[str], metadata: Mapping[str, str] | None = None
) -> Iterator[PutColumns]:
    """Yield the function that writes rows as Parquet, all in the precision of the first.

    Rows are collected until they fill a row group. The footer gets what ``metadata`` holds when
    the block ends.
    """
    groups = _RowGroups(stream, columns)
    try:
        yield groups.put
        groups.flush()
        groups.describe(metadata or {})
    finally:
        # Also after a failure: a writer that is not closed would write when it is deleted.
        groups.close()


class _RowGroups:
    def __init__(self, stream: TextIO, columns: Sequence[str]) -> None:
        self._arrow, self._parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
        self._stream, self._columns = stream, columns
        self._held: list[Any] = []
        self._writer: Any = None

    def put(self, texts: Sequence[Sequence[str]], numbers: Sequence[NDArray[np.floating]]) -> None:
        arrays = [self._arrow.array(column, self._arrow.string()) for column in texts]
        arrays += [self._arrow.array(column) for column in numbers]
        table = self._arrow.Table.from_arrays(arrays, names=list(self._columns))
        if self._writer is None:
            self._writer = self._parquet.ParquetWriter(self._stream.buffer, table.schema)
        self._held.append(table.cast(self._writer.schema))
        if sum(held.num_rows for held in self._held) * len(self._columns) >= _GROUP_CELLS:
            self.flush()

    def flush(self) -> None:
        if self._held:
            self._writer.write_table(self._arrow.concat_tables(self._held))
            self._held.clear()

    def describe(self, metadata: Mapping[str, str]) -> None:
        if self._writer is not None and metadata:
            self._writer.add_key_value_metadata(metadata)

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def read_text_column(column: Any, row: int, what: str, path: Path) -> list[str]:
    """Return an Arrow column of any type as text; ``row`` is the number of its first row."""
    arrow = import_pyarrow()
    if arrow.types.is_nested(column.type):
        texts: list[str] = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    else:
        texts = column.cast(arrow.string(), safe=False).fill_null("").to_pylist()
    if "" in texts:
        raise RankshotError(f"{path}: row {row + texts.index('')} has no {what}")
    return texts


def refuse_text_columns(
    schema: Any, columns: Sequence[str | int], path: NamedFile, *, allow_missing: bool = False
) -> None:
    """Raise for the first of the columns, given by name or position, that does not hold numbers.

    With ``allow_missing`` a column may also be empty throughout, or hold booleans.
    """
    types = import_pyarrow().types
    for column in columns:
        field = schema.field(column)
        kind = field.type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if not (is_number or (allow_missing and (types.is_null(kind) or types.is_boolean(kind)))):
            raise RankshotError(f"{path}: column {field.name!r} holds {kind}, not numbers")


def read_number_matrix(batch: Any, columns: Sequence[str | int]) -> NDArray[np.floating]:
    """Return Arrow columns of numbers side by side: float32 if all are, else float64.

    Missing values become NaN.
    """
    arrow = import_pyarrow()
    arrays = [batch.column(column) for column in columns]
    kind = arrow.float32() if {array.type for array in arrays} == {arrow.float32()} else None
    matrix = np.empty((batch.num_rows, len(arrays)), np.float32 if kind else np.float64)
    for j, array in enumerate(arrays):
        floats = array.cast(kind or arrow.float64(), safe=False)
        matrix[:, j] = floats.to_numpy(zero_copy_only=False)
    return matrix


# -------------------------------------------------------------------- data frames


def as_frame(data: Any) -> Any:
    """Return a data frame of pandas, polars, PyArrow and others as one of narwhals.

    Anything else is returned as None.

    Examples
    --------
    >>> import pandas as pd
    >>> as_frame(pd.DataFrame({"leopard": [1.0], "bus": [2.0]})).columns
    ['leopard', 'bus']
    >>> as_frame([[1.0, 2.0]]) is None
    True
    """
    if isinstance(data, (np.ndarray, list, tuple)):
        return None
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (comes with scikit-learn)
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415

    try:
        frame = nw.from_native(data, eager_only=True, pass_through=True)
    except DuplicateError as error:
        names = " ".join(str(error).split())
        raise RankshotError(f"columns of a data frame must have different names: {names}") from None
    return frame if isinstance(frame, nw.DataFrame) else None


def frame_to_matrix(frame: Any) -> NDArray[np.floating]:
    """Return a data frame of narwhals as numbers: float32 if all columns are, else float64.

    Missing values become NaN.

    Raises
    ------
    RankshotError
        Names the first column that does not hold numbers.
    """
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    try:
        # Polars counts the microseconds of dates; from pandas they come as dates. NumPy before 2.4
        # takes a list of one number for this number.
        if not frame.implementation.is_pandas_like():
            _refuse_dates_and_lists(frame)
        table: NDArray[Any] = frame.to_numpy()
        if table.dtype == np.float32:
            return table
        if table.dtype.kind == "O":
            table = np.where(frame.select(nw.all().is_null()).to_numpy(), np.nan, table)
        elif table.dtype.kind not in "biuf":
            raise TypeError(f"not {table.dtype}")  # noqa: TRY301
        return table.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError) as error:
        columns = list(frame.columns)
        if len(columns) > 1:
            for j in range(len(columns)):
                frame_to_matrix(frame[:, [j]])
        raise RankshotError(
            f"column {short_repr(columns[0])}: expected numbers ({error})"
        ) from None


def _refuse_dates_and_lists(frame: Any) -> None:
    for kind in frame.schema.values():
        if kind.is_temporal() or kind.is_nested():
            raise TypeError(f"not {kind}")

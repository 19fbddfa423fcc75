"""Tables of named columns in CSV and Parquet, read a few rows at a time.

Score tables, predictions and true labels are such tables; what they share is here.
"""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.text_files import MARK

ID, LABEL = "id", "label"
MAX_ROW = 2**26
"""Bytes in a line of CSV: three million scores with all their digits."""
_BUFFER = 2**16
"""Bytes read ahead for each column of a Parquet file. Left to itself PyArrow reads ahead a whole
row group, and most files have but one."""


def unknown_ending_error(path: Path, known: Sequence[str]) -> RankshotError:
    """Say which endings of a file's name there are."""
    return RankshotError(f"{path}: unknown ending {path.suffix!r}; known are {', '.join(known)}")


def find_column(columns: Sequence[str], name: str, path: Path) -> int:
    """Return where a column stands, or say which columns are there instead."""
    if (count := columns.count(name)) == 1:
        return columns.index(name)
    if count:
        raise RankshotError(f"{path}: the column {name!r} stands there {count} times")
    raise RankshotError(
        f"{path}: no column {name!r}{suggest_name(name, columns)}; the columns are "
        f"{quote_names(columns)}"
    )


def text_array(names: Sequence[str]) -> NDArray[np.object_]:
    """Return names as an array of Python text."""
    return np.array(names, dtype=object)


# -------------------------------------------------------------------- CSV


def read_csv_rows(path: Path) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the names of the columns, then the rows, each with the number of its first line.

    Every row has as many cells as there are columns. Blank lines are passed over, but where there
    is a single column, a blank line before the last row is a row: its cell is empty.
    """
    blank: int | None = None
    width = 0
    for line, row in _written_rows(path):
        if not row:
            blank = line if blank is None and width == 1 else blank
            continue
        if blank is not None:
            yield blank, [""]
            blank = None
        width = width or len(row)
        if len(row) != width:
            raise RankshotError(
                f"{path}:{line}: {len(row)} cells, but the first line names {width} columns"
            )
        yield line, row
    if not width:
        raise RankshotError(f"{path}: the file is empty; its first line must name the columns")


def _written_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    with path.open("rb") as stream:
        reader = csv.reader(_decoded_lines(stream, path), strict=True)
        line = 1
        try:
            for row in reader:
                yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise RankshotError(f"{path}:{line}: not CSV ({error})") from None


def _decoded_lines(stream: BinaryIO, path: Path) -> Iterator[str]:
    """Yield lines as text; never hold more than one, of bounded length."""
    number = 0
    while line := stream.readline(MAX_ROW + 1):
        number += 1
        if len(line) > MAX_ROW:
            raise RankshotError(f"{path}:{number}: a line longer than {MAX_ROW:,} bytes")
        try:
            yield (line.removeprefix(MARK) if number == 1 else line).decode()
        except UnicodeDecodeError as error:
            raise RankshotError(f"{path}:{number}: not UTF-8 text ({error.reason})") from None


def parse_numbers(
    cells: Sequence[str], columns: Sequence[str], rule: str, where: str
) -> list[float]:
    """Read the cells of a row as finite numbers, or name the column of the first that is none."""
    try:
        numbers = list(map(float, cells))
    except ValueError:
        numbers = [_number_or_nan(cell) for cell in cells]
    # A sum costs little, and is finite for nearly every row of finite numbers.
    if not isfinite(sum(numbers)):
        odd = np.flatnonzero(~np.isfinite(numbers))
        if odd.size:
            cell = cells[odd[0]]
            what = short_repr(cell) if cell.strip() else "empty"
            raise RankshotError(f"{where}: {columns[odd[0]]!r} is {what}; {rule}")
    return numbers


def _number_or_nan(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        return np.nan


# -------------------------------------------------------------------- Parquet


def import_pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of PyArrow, or say which extra has it."""
    try:
        return import_module(module)
    except ImportError:
        raise RankshotError("Parquet files need pyarrow: pip install 'rankshot[parquet]'") from None


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a ``pyarrow.parquet.ParquetFile`` whose troubles name the file."""
    arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    try:
        with path.open("rb") as stream:
            yield parquet.ParquetFile(stream, buffer_size=_BUFFER, pre_buffer=False)
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RankshotError(f"{path}: not a whole Parquet file ({error})") from None
    except UnicodeDecodeError as error:
        raise RankshotError(f"{path}: text in it is not UTF-8 ({error.reason})") from None


def text_column(column: Any, row: int, what: str, path: Path) -> list[str]:
    """Return an Arrow column of any type as text; ``row`` is the number of its first row."""
    arrow = import_pyarrow()
    if arrow.types.is_nested(column.type):
        texts: list[str] = ["" if cell is None else str(cell) for cell in column.to_pylist()]
    else:
        texts = column.cast(arrow.string(), safe=False).fill_null("").to_pylist()
    if "" in texts:
        raise RankshotError(f"{path}: row {row + texts.index('')} has no {what}")
    return texts


def refuse_text_columns(schema: Any, names: Sequence[str], path: Path) -> None:
    """Raise for the first of the named columns that does not hold numbers."""
    types = import_pyarrow().types
    for name in names:
        kind = schema.field(name).type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)):
            raise RankshotError(f"{path}: column {name!r} holds {kind}, not numbers")


def number_matrix(batch: Any, names: Sequence[str]) -> NDArray[np.floating]:
    """Return Arrow columns of numbers side by side: float32 if all are, else float64.

    What is missing becomes NaN.
    """
    arrow = import_pyarrow()
    columns = [batch.column(name) for name in names]
    kind = arrow.float32() if {column.type for column in columns} == {arrow.float32()} else None
    matrix = np.empty((batch.num_rows, len(names)), np.float32 if kind else np.float64)
    for j, column in enumerate(columns):
        floats = column.cast(kind or arrow.float64(), safe=False)
        matrix[:, j] = floats.to_numpy(zero_copy_only=False)
    return matrix

"""Files of tables, CSV and Parquet, and data frames; `Table` in `core/columns.py` reads them all.

Scores, predictions, true labels, votes, similarities and hit counts are such tables. Messages name
the file, the line (CSV) or the row (Parquet, counted from 0), and the column.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    RankshotError,
    quote_names,
    suggest_name,
)
from rankshot.core.files import (
    decode_lines,
    open_bytes,
    replace_file,
    require_regular,
)
from rankshot.core.validation import require_module

ID, LABEL, FEATURES = "id", "label", "features"
TABLE_ENDINGS = (".csv", ".parquet")
FRAMES = ("pandas", "polars", "pyarrow")
"""What a result becomes as a data frame: the first that is installed."""
GROUP_CELLS = 2**19
"""Cells in a row group of Parquet: readers are slow with thousands of small row groups."""
TEXT_CELLS = 2**14
"""Cells that are turned into text at a time: text takes many times their memory."""
READ_AHEAD_BYTES = 2**16
"""What is read ahead for each column of a Parquet file. By default, PyArrow reads a whole row
group ahead, and most files have only one."""


def find_column(columns: Sequence[str], name: str, path: Path | str) -> int:
    """Position of a column, or raise an error that lists the columns."""
    if (count := columns.count(name)) == 1:
        return columns.index(name)
    if count:
        raise InputError("column", name, f"occurs {count} times", where=str(path))
    rule = f"is missing{suggest_name(name, columns)}; the columns are {quote_names(columns)}"
    raise InputError("column", name, rule, where=str(path))


def as_text_array(names: Sequence[str]) -> NDArray[np.object_]:
    """Names as an array of Python text."""
    return np.array(names, dtype=object)


# -------------------------------------------------------------------- CSV


def read_separator(path: Path) -> str:
    """Separator of the columns of a file: comma, tab or semicolon.

    It is the one that makes most columns, and the comma if it makes as many as another. With
    semicolons, commas may be decimal.
    """
    with open_bytes(path) as stream:
        header = next((text for _, text in decode_lines(stream, path) if text.strip()), "")
    return max(",\t;", key=re.sub('"[^"]*"?', "", header).count)


def iterate_rows(
    path: Path, odd: dict[str, None] | None = None
) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the names of the columns, then the rows, each with the number of its first line.

    Every row has as many cells as there are columns. Blank lines are skipped. With ``odd``, rows of
    another length are left out, and what is wrong with them is put there.
    """
    width = 0
    with open_bytes(path) as stream:
        texts = (text for _, text in decode_lines(stream, path))
        reader = csv.reader(texts, strict=True, delimiter=read_separator(path))
        line = 1
        try:
            for row in reader:
                if not row or (len(row) == 1 and not row[0].strip() and width != 1):
                    pass
                elif width and len(row) != width:
                    rule = f"has {len(row)} cells, but the first line names {width} columns"
                    error = InputError("line", NO_VALUE, rule, where=f"{path}:{line}")
                    if odd is None:
                        raise error
                    odd[str(error)] = None
                else:
                    width = len(row)
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            rule = f"is not CSV ({error})"
            raise InputError("line", NO_VALUE, rule, where=f"{path}:{line}") from None
    if not width:
        rule = "is empty; its first line must name the columns"
        raise InputError("file", NO_VALUE, rule, where=str(path))


# -------------------------------------------------------------------- Parquet


def import_pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of PyArrow, or raise an error that names the extra to install."""
    return require_module(module, "Parquet files", "cli")


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """Open a ``pyarrow.parquet.ParquetFile``; errors of PyArrow in the block name the file.

    Where pages have checksums, as in all files that we write, damage is found.
    """
    arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    require_regular(path)
    try:
        with open_bytes(path) as stream:
            yield parquet.ParquetFile(
                stream,
                buffer_size=READ_AHEAD_BYTES,
                pre_buffer=False,
                page_checksum_verification=True,
            )
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        rule = f"is not a complete Parquet file ({error})"
        raise InputError("file", NO_VALUE, rule, where=str(path)) from None


# -------------------------------------------------------------------- writing

PutRows = Callable[..., None]
"""Writes some rows: columns of text; after them, the other columns as a table of numbers; and, if
given, features, which become a column of lists in Parquet."""


@contextmanager
def open_writer(
    path: Path,
    columns: Sequence[str],
    metadata: Mapping[str, str] | None = None,
    *,
    digits: int | None = None,
) -> Iterator[PutRows]:
    """Yield the function that writes rows to a CSV or Parquet file, which appears when it is whole.

    CSV has this many significant ``digits``, by default as many as tell numbers apart in their
    precision, and Parquet the precision of the first rows; NaN becomes an empty cell. A Parquet
    file is written in row groups, and its footer gets what ``metadata`` holds when the block ends.
    """
    with replace_file(path) as stream, ExitStack() as stack:
        if path.suffix != ".parquet":
            lines = open_csv_writer(stream)
            lines.writerow(columns)
            yield lambda texts, numbers, _=None: _put_csv_rows(lines, texts, numbers, digits)
            return
        arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
        writer: Any = None
        held: list[Any] = []

        def flush() -> None:
            if held:
                writer.write_table(arrow.concat_tables(held))
                held.clear()

        def put(texts: Sequence[Sequence[str]], numbers: Any, features: Any = None) -> None:
            nonlocal writer
            arrays = [arrow.array(column, arrow.string()) for column in texts]
            arrays += [arrow.array(column, from_pandas=True) for column in numbers.T]
            names, width = list(columns), len(columns)
            if features is not None:
                flat, n = arrow.array(features.ravel()), features.shape[1]
                arrays.append(arrow.FixedSizeListArray.from_arrays(flat, n))
                names, width = [*names, FEATURES], width + n
            table = arrow.Table.from_arrays(arrays, names=names)
            if writer is None:
                # Numbers are nearly all different: a dictionary would make the file larger.
                options = {"use_dictionary": list(columns[: len(texts)])}
                new = parquet.ParquetWriter(
                    stream.buffer, table.schema, write_page_checksum=True, **options
                )
                # Closed also after a failure: otherwise it would write when it is deleted.
                writer = stack.enter_context(new)
            held.append(table.cast(writer.schema))
            if sum(some.num_rows for some in held) * width >= GROUP_CELLS:
                flush()

        yield put
        flush()
        if metadata:
            writer.add_key_value_metadata(dict(metadata))


class _UnixLines:
    """Ends the rows of a ``csv.writer`` with a line feed alone."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, row: str) -> int:
        return self._stream.write(row[:-2] + "\n")


def open_csv_writer(stream: TextIO) -> Any:
    """``csv.writer`` in the dialect of all CSV files that are written: rows end in LF.

    It quotes carriage returns as well, which Python's does only if they are part of the line end;
    readers would take them for one.
    """
    return csv.writer(_UnixLines(stream), lineterminator="\r\n")


def _put_csv_rows(
    writer: Any, texts: Sequence[Sequence[str]], numbers: NDArray[np.floating], digits: int | None
) -> None:
    for some in row_blocks(len(numbers), len(texts) + numbers.shape[1], TEXT_CELLS):
        block = numbers[some]
        cells: NDArray[Any] = block
        if digits is not None:
            shorten = f"{{:.{digits}g}}".format
            cells = np.array([list(map(shorten, row)) for row in block.tolist()], object)
        elif block.dtype != np.float64:
            # Python's floats are doubles: a float32 would get digits that it does not have.
            cells = block.astype(str)
        if np.isnan(block).any():
            cells = np.where(np.isnan(block), None, cells)  # type: ignore[call-overload]
        columns = [column[some] for column in texts]
        writer.writerows(
            [*row[:-1], *row[-1]] for row in zip(*columns, cells.tolist(), strict=True)
        )


# -------------------------------------------------------------------- data frames


def as_frame(data: Any) -> Any:
    """Data frame of pandas, polars, PyArrow, datasets and others as one of narwhals.

    Anything else is returned as None.
    """
    if isinstance(data, (np.ndarray, list, tuple, dict)):
        return None
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    if hasattr(data, "column_names") and hasattr(data, "features"):
        data = data.with_format("arrow")[:]  # a datasets.Dataset
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
        frame = frame.collect()
    return frame if isinstance(frame, nw.DataFrame) else None


def make_frame(columns: Mapping[str, object]) -> Any:
    """A pandas, polars or PyArrow table, whichever is installed."""
    backend: Any = next((name for name in FRAMES if find_spec(name)), None)
    if backend is None:
        raise RankshotError(f"to_frame needs one of {quote_names(FRAMES)}: install one of them")
    import narwhals.stable.v2 as nw  # noqa: PLC0415 (only for data frames)

    return nw.from_dict(dict(columns), backend=backend).to_native()


def frame_to_matrix(frame: Any) -> NDArray[np.floating]:
    """Data frame of narwhals as numbers: float32 if all columns are, else float64.

    Missing values become NaN.
    """
    import narwhals.stable.v2 as nw  # noqa: PLC0415

    is_single = all(kind == nw.Float32 for kind in frame.schema.values())
    matrix = np.empty(frame.shape, np.float32 if is_single else np.float64)
    for j, (name, kind) in enumerate(frame.schema.items()):
        column = frame[:, j]
        try:
            if kind.is_temporal() or kind.is_nested():
                raise TypeError(f"not {kind}")  # noqa: TRY301
            cells: NDArray[Any] = column.to_numpy()
            if cells.dtype.kind == "O":
                cells = np.where(column.is_null().to_numpy(), np.nan, cells)
            # NumPy before 2.4 takes a list of one number for this number.
            matrix[:, j] = [float(cell) for cell in cells] if cells.dtype.kind == "O" else cells
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError("column", name, f"must hold numbers ({error})") from None
    return matrix

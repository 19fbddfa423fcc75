"""Similarity tables as CSV, Parquet and data frames.

This is how a source of one's own comes in: a spreadsheet of ratings, hit counts turned into
similarities elsewhere, a table from a notebook.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.names import as_names
from rankshot.core.text_files import replace_file
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.vector_files import bounded_lines

Floats = NDArray[np.float64]
ENDINGS = (".csv", ".parquet")
TARGET = "target"
"""The name of the column that holds the targets."""
MAX_ROW = 2**26
"""Bytes in a line of CSV: three million similarities with all their digits."""
MAX_CELLS = 2**28
"""Cells in a table: a Parquet file of a few bytes can claim any number."""


def read_similarity(path: str | Path, source: str | None = None) -> Similarity:
    """Read a table of similarities from CSV or Parquet.

    Parameters
    ----------
    path : str or Path
        In CSV the first line names the items, the first column the targets (its own heading
        does not matter), and an empty cell is unknown. In Parquet the targets are the
        column ``target`` or, without one, the only column of text.
    source : str, optional
        By default the file's name without its ending.

    Raises
    ------
    RankshotError
        Names the file, and the line (CSV) or column (Parquet) of what is wrong.
    """
    path = Path(path)
    source = path.stem if source is None else source
    if path.suffix == ".csv":
        return _read_csv(path, source)
    if path.suffix == ".parquet":
        return _read_parquet(path, source)
    raise _unknown_ending(path)


def write_similarity(similarity: Similarity, path: str | Path) -> None:
    """Write a table of similarities as CSV or Parquet, every digit kept, unknown cells empty.

    The file appears whole or not at all: it is written beside its place and then renamed.
    The source and the notes are not written.

    Examples
    --------
    >>> import rankshot as rs, tempfile
    >>> from rankshot.semantics.similarity_files import read_similarity, write_similarity
    >>> table = rs.Similarity([[.9, float("nan")]], ["cat"], ["tiger", "bus"], source="me")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_similarity(table, folder + "/me.csv")
    ...     read_similarity(folder + "/me.csv") == table
    True
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise _unknown_ending(path)
    try:
        if path.suffix == ".csv":
            _write_csv(similarity, path)
        else:
            _write_parquet(similarity, path)
    except UnicodeEncodeError as error:
        odd = short_repr(error.object[error.start : error.end])
        raise RankshotError(f"{path}: UTF-8 cannot hold the character {odd}") from None


def similarity_from_frame(frame: Any, source: str = "similarity") -> Similarity:
    """Take a pandas or polars data frame as a table of similarities.

    Parameters
    ----------
    frame : pandas.DataFrame or polars.DataFrame
        One column an item. The targets are the column ``target`` or, without one, the index.
        Missing values are unknown.
    source : str
        The name of the source in the table and its rankings.
    """
    if not hasattr(frame, "to_numpy") or not hasattr(frame, "columns"):
        raise RankshotError(f"expected a pandas or polars data frame, not {short_repr(frame)}")
    columns = list(frame.columns)
    as_names(columns, "columns")
    if TARGET in columns:
        targets = frame[TARGET].to_list()
        columns.remove(TARGET)
    else:
        index = getattr(frame, "index", None)
        if index is None or type(index).__name__ == "RangeIndex":
            raise RankshotError(
                f"the targets must be a column named {TARGET!r} or the index; the columns are "
                f"{short_repr(columns)}"
            )
        targets = index.to_list()
    items = as_names(columns)
    values = [_as_floats(frame[c].to_numpy(), f"column {short_repr(c)}") for c in columns]
    return Similarity(np.column_stack(values), targets, items, source)


def _unknown_ending(path: Path) -> RankshotError:
    return RankshotError(f"{path}: unknown ending {path.suffix!r}; known are {', '.join(ENDINGS)}")


def _as_floats(cells: NDArray[Any], where: str) -> Floats:
    """Return a column as numbers; None and the missing values of pandas and Arrow are NaN."""
    if cells.dtype.kind not in "biufO":
        raise RankshotError(f"{where}: expected numbers, not {cells.dtype}")
    try:
        if cells.dtype.kind != "O":
            floats: Floats = cells.astype(np.float64)
        else:
            floats = np.array([np.nan if _is_missing(cell) else float(cell) for cell in cells])
    except (TypeError, ValueError, OverflowError) as error:
        raise RankshotError(f"{where}: expected numbers ({error})") from None
    infinite = np.flatnonzero(np.isinf(floats))
    if infinite.size:
        raise RankshotError(f"{where}: row {infinite[0]} is infinite")
    return floats


def _is_missing(cell: Any) -> bool:
    return cell is None or type(cell).__name__ == "NAType"


# -------------------------------------------------------------------- CSV


def _read_csv(path: Path, source: str) -> Similarity:
    rows = _csv_rows(path)
    line, header = next(rows, (1, []))
    if len(header) < 2:
        raise RankshotError(
            f"{path}:{line}: the first line must name the items, separated by commas, not "
            f"{short_repr(header)}"
        )
    try:
        items = as_names(header[1:])
    except RankshotError as error:
        raise RankshotError(f"{path}:{line}: {error}") from None
    values: dict[str, Floats] = {}
    for line, (target, *cells) in rows:
        where = f"{path}:{line}"
        if len(cells) != len(items):
            raise RankshotError(
                f"{where}: {len(cells) + 1} cells, but the first line has {len(header)}"
            )
        if not target or target in values:
            problem = f"the target {short_repr(target)} occurs twice" if target else "no target"
            raise RankshotError(f"{where}: {problem}")
        values[target] = _row_floats(cells, items, where)
    if not values:
        raise RankshotError(f"{path}: no line after the one that names the items")
    return Similarity(np.array(list(values.values())), values, items, source)


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, with the number of the line where each starts."""
    with path.open("rb") as stream:
        reader = csv.reader(_decoded(bounded_lines(stream, path, MAX_ROW), path), strict=True)
        line = 1
        try:
            for row in reader:
                if any(row):
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise RankshotError(f"{path}:{line}: not CSV ({error})") from None


def _decoded(lines: Iterable[tuple[int, bytes]], path: Path) -> Iterator[str]:
    for number, line in lines:
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise RankshotError(f"{path}:{number}: not UTF-8 text ({error.reason})") from None


def _row_floats(cells: Sequence[str], items: Sequence[str], where: str) -> Floats:
    try:
        row = np.array([float(cell) if cell else np.nan for cell in cells])
    except ValueError:
        row = np.array([_float_or_nan(cell, items[j], where) for j, cell in enumerate(cells)])
    infinite = np.flatnonzero(np.isinf(row))
    if infinite.size:
        place = infinite[0]
        raise RankshotError(f"{where}: {items[place]!r} is {cells[place]!r}, which is not finite")
    return row


def _float_or_nan(cell: str, item: str, where: str) -> float:
    """Read a cell that may be blank; slow, and so only for rows that need it."""
    try:
        return float(cell) if cell.strip() else np.nan
    except ValueError:
        raise RankshotError(f"{where}: {item!r} is {short_repr(cell)}, not a number") from None


def _write_csv(similarity: Similarity, path: Path) -> None:
    with replace_file(path) as stream:
        writer = csv.writer(stream)
        writer.writerow([TARGET, *similarity.items])
        for target, row in zip(similarity.targets, similarity.values, strict=True):
            # The writer takes floats with all their digits, and None as an empty cell.
            writer.writerow([target, *np.where(np.isnan(row), None, row)])


# -------------------------------------------------------------------- Parquet


def _pyarrow(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise RankshotError("Parquet files need pyarrow: pip install 'rankshot[parquet]'") from None


def _read_parquet(path: Path, source: str) -> Similarity:
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    try:
        with path.open("rb") as stream:
            table = _arrow_table(parquet, stream)
        return _from_arrow(table, source)
    except (arrow.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise RankshotError(f"{path}: not a Parquet file ({error})") from None
    except UnicodeDecodeError as error:
        raise RankshotError(f"{path}: a name is not UTF-8 text ({error.reason})") from None
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def _arrow_table(parquet: Any, stream: BinaryIO) -> Any:
    claimed = parquet.read_metadata(stream)
    if claimed.num_rows * claimed.num_columns > MAX_CELLS:
        raise RankshotError(
            f"claims {claimed.num_rows} rows of {claimed.num_columns} columns, more than "
            f"{MAX_CELLS:,} cells"
        )
    stream.seek(0)
    return parquet.ParquetFile(stream).read()


def _from_arrow(table: Any, source: str) -> Similarity:
    columns = list(table.column_names)
    place = _target_column(columns, [str(kind) for kind in table.schema.types])
    others = [j for j in range(len(columns)) if j != place]
    targets = as_names(table.column(place).to_pylist(), f"column {columns[place]!r}")
    items = as_names([columns[j] for j in others], "the other columns")
    values = [_as_floats(table.column(j).to_numpy(), f"column {columns[j]!r}") for j in others]
    return Similarity(np.column_stack(values), targets, items, source)


def _target_column(columns: list[str], kinds: list[str]) -> int:
    if TARGET in columns:
        return columns.index(TARGET)
    text = [j for j, kind in enumerate(kinds) if "string" in kind]
    if len(text) != 1:
        raise RankshotError(
            f"the targets must be a column named {TARGET!r} or the only column of text; the "
            f"columns are {short_repr(columns)}"
        )
    return text[0]


def _write_parquet(similarity: Similarity, path: Path) -> None:
    arrow, parquet = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    cells = [arrow.array(column, from_pandas=True) for column in similarity.values.T]
    table = arrow.Table.from_arrays(
        [arrow.array(similarity.targets), *cells], names=[TARGET, *similarity.items]
    )
    with replace_file(path) as stream:
        parquet.write_table(table, stream.buffer)

"""Tables of named columns: CSV and Parquet, read and written a few rows at a time; data frames.

`read_batches` yields rows as lists of text and numbers; `ColumnReader` in `core/columns.py` reads
whole columns.

Scores, predictions, true labels, votes, similarities and hit counts are such tables. Their modules
say which columns they have; all reading and writing is here. Messages name the file, the line
(CSV) or the row (Parquet, counted from 0), and the column.
"""

from __future__ import annotations

import csv
import re
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain, islice
from math import inf, isfinite
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple, TextIO

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
    NamedFile,
    decode_lines,
    open_bytes,
    replace_file,
)
from rankshot.core.validation import require_module

ID, LABEL, FEATURES = "id", "label", "features"
TABLE_ENDINGS = (".csv", ".parquet")
FRAMES = ("pandas", "polars", "pyarrow")
"""What a result becomes as a data frame: the first that is installed."""
BATCH_CELLS = 2**19
"""Cells in a batch, about: four megabytes of numbers."""
GROUP_CELLS = 2**19
"""Cells in a row group of Parquet: readers are slow with thousands of small row groups."""
TEXT_CELLS = 2**14
"""Cells that are turned into text at a time: text takes many times their memory."""
READ_AHEAD_BYTES = 2**16
"""What is read ahead for each column of a Parquet file. By default, PyArrow reads a whole row
group ahead, and most files have only one."""

Columns = Sequence[str | int]
"""Columns by their names, or by their positions."""


class NumberCheck(NamedTuple):
    """What numbers must be.

    Attributes
    ----------
    text : str
        The rule in words.
    limit : float
        All must be smaller in size than this.
    allow_missing : bool
        Whether cells may be empty, or NaN.
    """

    text: str = "expected a finite number"
    limit: float = inf
    allow_missing: bool = False


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a table.

    Attributes
    ----------
    path : Path
        The file.
    places : sequence of int
        The line of each row (CSV), or its number from 0 (Parquet).
    names : sequence of str
        The names of the columns of text.
    texts : list of lists of str
        The columns of text; a missing cell is empty.
    numbers : array of shape (n, m)
        The columns of numbers; a missing cell is NaN.
    features : array of shape (n, d), optional
        The column of lists of numbers.
    """

    path: NamedFile
    places: Sequence[int]
    names: Sequence[str]
    texts: list[list[str]]
    numbers: NDArray[np.floating]
    features: NDArray[Any] | None = None

    def where(self, row: int) -> str:
        """File and line or number of a row of the batch, for messages."""
        return f"{self.path}:{'' if type(self.places) is array else ' row '}{self.places[row]}"

    def require_text(self, j: int) -> list[str]:
        """Column of text, or raise for its first empty cell."""
        if "" in self.texts[j]:
            raise InputError(
                repr(self.names[j]), NO_VALUE, "is empty", where=self.where(self.texts[j].index(""))
            )
        return self.texts[j]


def find_column(columns: Sequence[str], name: str, path: NamedFile | str) -> int:
    """Position of a column, or raise an error that lists the columns."""
    if (count := columns.count(name)) == 1:
        return columns.index(name)
    if count:
        raise InputError("column", name, f"occurs {count} times", where=str(path))
    raise InputError(
        "column",
        name,
        f"is missing{suggest_name(name, columns)}; the columns are {quote_names(columns)}",
        where=str(path),
    )


def as_text_array(names: Sequence[str]) -> NDArray[np.object_]:
    """Names as an array of Python text."""
    return np.array(names, dtype=object)


# -------------------------------------------------------------------- reading


def read_columns(path: Path, *, strip: bool = False) -> tuple[list[str], int | None]:
    """Names of the columns, and the number of rows; None for CSV that has some.

    With ``strip``, blanks around the names do not count.
    """
    if path.suffix == ".parquet":
        with open_parquet(path) as file:
            names, n_rows = list(file.schema_arrow.names), file.metadata.num_rows
    else:
        with closing(iterate_rows(path)) as rows:
            names = next(rows)[1]
            n_rows = None if next(rows, None) else 0
    return [name.strip() for name in names] if strip else names, n_rows


def read_batches(
    path: Path,
    texts: Columns,
    numbers: Columns = (),
    *,
    rule: NumberCheck = NumberCheck(),  # noqa: B008 (it cannot change)
    batch_rows: int | None = None,
    strip: bool = False,
    odd: dict[str, None] | None = None,
    features: str | None = None,
) -> Iterator[Batch]:
    """Yield the rows of a table in batches: Parquet by its ending, any other file as CSV.

    Columns are given by name or position; whatever ``texts`` holds becomes text. With ``strip``,
    blanks around names of columns and around text do not count. Columns of CSV are separated by
    commas, tabs or semicolons; see `iterate_rows` for ``odd``. ``features`` is a column of lists of
    numbers, in Parquet.
    """
    size = batch_rows or max(1, BATCH_CELLS // max(1, len(texts) + len(numbers)))
    if path.suffix == ".parquet":
        read = partial(_read_parquet, features=features)
    else:
        read = partial(_read_csv, odd=odd)
    for names, batch in read(path, texts, numbers, rule, size, strip=strip):
        require_numbers(batch.numbers, rule, batch.where, names.__getitem__)
        if strip:
            batch.texts[:] = [[cell.strip() for cell in column] for column in batch.texts]
        yield batch


def read_table(path: Path, texts: Columns, *others: Any, **options: Any) -> Batch:
    """All rows of a table, for which `read_batches` takes the same arguments, as one batch.

    A table without rows raises an error.
    """
    batches = list(read_batches(path, texts, *others, **options))
    if not batches:
        raise InputError("table", NO_VALUE, "has no rows", where=str(path))
    if len(batches) == 1:
        return batches[0]
    places = batches[0].places
    if isinstance(places, array):
        places = array("q", chain.from_iterable(batch.places for batch in batches))
    else:
        places = range(batches[-1].places[-1] + 1)
    columns = zip(*(batch.texts for batch in batches), strict=True)
    return replace(
        batches[0],
        places=places,
        texts=[list(chain.from_iterable(parts)) for parts in columns],
        numbers=np.concatenate([batch.numbers for batch in batches]),
    )


def _find_places(
    header: list[str], wanted: Columns, path: Path, *, strip: bool
) -> tuple[list[int], list[str]]:
    """Positions and names of columns."""
    columns = [name.strip() for name in header] if strip else header
    # Not by `find_column` for each of thousands.
    is_distinct = len({*columns}) == len(columns)
    once: dict[str | int, int] = {name: j for j, name in enumerate(columns) if is_distinct}
    places = [
        j if isinstance(j, int) else find_column(columns, j, path)
        for j in (once.get(one, one) for one in wanted)
    ]
    return places, [columns[j] for j in places]


def require_numbers(
    values: NDArray[np.floating],
    rule: NumberCheck,
    where: Callable[[int], str],
    name: Callable[[int], str],
) -> None:
    """Raise for the first number that breaks a rule, in a row ``where`` and a column ``name``."""
    # The extremes are NaN if any number is, and need no temporary array of the same size.
    if not values.size or (values.max() < rule.limit and values.min() > -rule.limit):
        return
    odd = ~(np.abs(values) < rule.limit)
    if rule.allow_missing:
        odd &= ~np.isnan(values)
    if odd.any():
        row, j = map(int, np.argwhere(odd)[0])
        value = values[row, j]
        size = f"numbers must be less than {rule.limit:g} in absolute value"
        text = size if isfinite(value) else rule.text
        raise InputError(repr(name(j)), float(value), f"is invalid: {text}", where=where(row))


# -------------------------------------------------------------------- CSV


def find_separator(header: str) -> str:
    """Separator of the columns of a header: comma, tab or semicolon.

    It is the one that makes most columns, and the comma if it makes as many as another.
    """
    bare = re.sub('"[^"]*"?', "", header)
    return max(",\t;", key=bare.count)


def iterate_rows(
    path: Path, odd: dict[str, None] | None = None
) -> Generator[tuple[int, list[str]], None, None]:
    """Yield the names of the columns, then the rows, each with the number of its first line.

    Every row has as many cells as there are columns. Blank lines are skipped, but in a table with
    a single column a blank line before the last row is a row with an empty cell. With ``odd``, rows
    of another length are left out, and what is wrong with them is put there.
    """
    blank: int | None = None
    width = 0
    with open_bytes(path) as stream:
        texts = (text for _, text in decode_lines(stream, path))
        begin = list(iterate_until_header(texts))
        separator = find_separator(begin[-1]) if begin else ","
        reader = csv.reader(chain(begin, texts), strict=True, delimiter=separator)
        line = 1
        try:
            for row in reader:
                if not row or (len(row) == 1 != width and not row[0].strip()):
                    blank = line if blank is None and width == 1 else blank
                elif width and len(row) != width:
                    rule = f"has {len(row)} cells, but the first line names {width} columns"
                    error = InputError("line", NO_VALUE, rule, where=f"{path}:{line}")
                    if odd is None:
                        raise error
                    odd[str(error)] = None
                else:
                    width = len(row)
                    if blank is not None:
                        yield blank, [""]
                        blank = None
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise InputError(
                "line", NO_VALUE, f"is not CSV ({error})", where=f"{path}:{line}"
            ) from None
    if not width:
        raise InputError(
            "file", NO_VALUE, "is empty; its first line must name the columns", where=str(path)
        )


def iterate_until_header(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines up to the first that is not blank."""
    for line in lines:
        yield line
        if line.strip():
            return


def read_separator(path: Path) -> str:
    """Separator of the columns of a file; with semicolons, commas may be decimal."""
    with open_bytes(path) as stream:
        begin = list(iterate_until_header(text for _, text in decode_lines(stream, path)))
    return find_separator(begin[-1]) if begin else ","


def _read_csv(
    path: Path,
    texts: Columns,
    numbers: Columns,
    rule: NumberCheck,
    size: int,
    *,
    strip: bool,
    odd: dict[str, None] | None = None,
) -> Iterator[tuple[list[str], Batch]]:
    """Yield batches, each with the names of its columns of numbers."""
    with closing(iterate_rows(path, odd)) as rows:
        _, header = next(rows)
        text_places, text_names = _find_places(header, texts, path, strip=strip)
        places, names = _find_places(header, numbers, path, strip=strip)
        take_texts, take_numbers = _choose(text_places), _choose(places)
        commas: bool | None = None
        while True:
            # Numbers without objects around them: a batch of text would take far more memory.
            lines, cells, values = array("q"), [], array("d")
            for line, row in islice(rows, size):
                cells.append(take_texts(row))
                try:
                    values.extend(map(float, take_numbers(row)))
                except ValueError:
                    del values[len(lines) * len(places) :]
                    commas = read_separator(path) == ";" if commas is None else commas
                    for j, name in zip(places, names, strict=True):
                        try:
                            values.append(_parse_number(row[j], rule, decimal_commas=commas))
                        except ValueError:
                            text = row[j] if row[j].strip() else "empty"
                            raise InputError(
                                repr(name), text, f"is invalid: {rule.text}", where=f"{path}:{line}"
                            ) from None
                lines.append(line)
            if not lines:
                return
            columns = list(map(list, zip(*cells, strict=True)))
            matrix = np.array(values).reshape(len(lines), len(places))
            yield names, Batch(path, lines, text_names, columns, matrix)


def _choose(places: list[int]) -> Callable[[list[str]], Sequence[str]]:
    """Function that takes some cells of a row."""
    first = places[0] if places else 0
    if places == list(range(first, first + len(places))):
        return itemgetter(slice(first, first + len(places)))
    return itemgetter(*places)


def _parse_number(cell: str, rule: NumberCheck, *, decimal_commas: bool) -> float:
    """Number in a cell; `ValueError` if there is none, and none may be missing."""
    if rule.allow_missing and not cell.strip():
        return np.nan
    return float(cell.replace(",", ".") if decimal_commas else cell)


# -------------------------------------------------------------------- Parquet


def import_pyarrow(module: str = "pyarrow") -> Any:
    """Import a module of PyArrow, or raise an error that names the extra to install."""
    return require_module(module, "Parquet files", "cli")


@contextmanager
def open_parquet(path: NamedFile, *, dictionaries: bool = False) -> Iterator[Any]:
    """Open a ``pyarrow.parquet.ParquetFile``; errors of PyArrow in the block name the file.

    Where pages have checksums, as in all files that we write, damage is found.

    With ``dictionaries``, columns of text are read as numbers of a dictionary.
    """
    arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    try:
        with path.open("rb") as stream:
            options: dict[str, Any] = {"buffer_size": READ_AHEAD_BYTES, "pre_buffer": False}
            options["page_checksum_verification"] = True
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
        raise InputError(
            "file", NO_VALUE, f"is not a complete Parquet file ({error})", where=str(path)
        ) from None
    except UnicodeDecodeError as error:
        raise InputError(
            "file", NO_VALUE, f"contains text that is not UTF-8 ({error.reason})", where=str(path)
        ) from None


def _read_parquet(
    path: Path,
    texts: Columns,
    numbers: Columns,
    rule: NumberCheck,
    size: int,
    *,
    strip: bool,
    features: str | None = None,
) -> Iterator[tuple[list[str], Batch]]:
    """Yield batches, each with the names of its columns of numbers."""
    is_nested = import_pyarrow().types.is_nested
    with open_parquet(path) as file:
        schema = file.schema_arrow
        # Arrow makes this list each time it is asked for.
        all_names = schema.names
        text_places, text_names = _find_places(all_names, texts, path, strip=strip)
        places, names = _find_places(all_names, numbers, path, strip=strip)
        for j in text_places:
            if is_nested(schema.types[j]):
                raise InputError(
                    "column", all_names[j], f"holds {schema.types[j]}, not text", where=str(path)
                )
        require_number_types(schema, places, path, allow_missing=rule.allow_missing)
        wanted = [all_names[j] for j in sorted({*text_places, *places})]
        # Names may occur twice where all columns are wanted; then they are taken by position.
        takes_all = features is None and len(wanted) == len(all_names)
        keys: Sequence[Any] = range(len(all_names)) if takes_all else all_names
        listed = [] if features is None else [features]
        row = 0
        for batch in file.iter_batches(size, columns=None if takes_all else [*wanted, *listed]):
            n = batch.num_rows
            columns = [_read_texts(batch.column(keys[j])) for j in text_places]
            matrix = read_matrix([batch.column(keys[j]) for j in places], n)
            more = None if features is None else _read_lists(batch.column(features), features, path)
            yield names, Batch(path, range(row, row + n), text_names, columns, matrix, more)
            row += n
        if row != file.metadata.num_rows:
            raise InputError(
                "file",
                NO_VALUE,
                f"is damaged: it has {row} rows instead of {file.metadata.num_rows}",
                where=str(path),
            )


def require_number_types(
    schema: Any, columns: Columns, path: NamedFile, *, allow_missing: bool = False
) -> None:
    """Raise for the first of the columns that does not hold numbers.

    With ``allow_missing`` a column may also be empty throughout, or hold booleans.
    """
    types = import_pyarrow().types
    for column in columns:
        field = schema.field(column)
        kind = field.type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if not (is_number or (allow_missing and (types.is_null(kind) or types.is_boolean(kind)))):
            raise InputError("column", field.name, f"holds {kind}, not numbers", where=str(path))


def _read_lists(column: Any, name: str, path: Path) -> NDArray[Any]:
    """Column of lists of numbers, all of one length, as a matrix."""
    flat = np.asarray(column.flatten().to_numpy(zero_copy_only=False))
    if len({*column.value_lengths().to_pylist()}) != 1 or flat.dtype.kind not in "fiu":
        raise InputError(
            "column", name, "must have lists of numbers, all of one length", where=str(path)
        )
    return flat.reshape(len(column), -1)


def _read_texts(column: Any) -> list[str]:
    texts: list[str] = column.cast(import_pyarrow().string(), safe=False).fill_null("").to_pylist()
    return texts


def _common_dtype(types: Sequence[Any]) -> np.dtype[Any]:
    """Type float32 if all columns of Arrow have it, else float64."""
    single = {*types} == {import_pyarrow().float32()}
    return np.dtype(np.float32 if single else np.float64)


def read_matrix(
    columns: Sequence[Any], n: int, dtype: np.dtype[Any] | None = None
) -> NDArray[np.floating]:
    """Arrow columns of numbers side by side."""
    matrix = np.empty((n, len(columns)), dtype or _common_dtype([one.type for one in columns]))
    kind = import_pyarrow().from_numpy_dtype(matrix.dtype)
    for j, column in enumerate(columns):
        matrix[:, j] = column.cast(kind, safe=False).to_numpy(zero_copy_only=False)
    return matrix


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
    from narwhals.exceptions import DuplicateError  # noqa: PLC0415

    if hasattr(data, "column_names") and hasattr(data, "features"):
        data = data.with_format("arrow")[:]  # a datasets.Dataset
    try:
        frame = nw.from_native(data, pass_through=True)
        if isinstance(frame, nw.LazyFrame) and frame.implementation.is_polars():
            frame = frame.collect()
    except DuplicateError as error:
        names = " ".join(str(error).split())
        raise InputError(
            "columns", NO_VALUE, f"of a data frame must have different names: {names}"
        ) from None
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

    try:
        # Polars counts the microseconds of dates; from pandas they come as dates. NumPy before 2.4
        # takes a list of one number for this number.
        if not frame.implementation.is_pandas_like():
            for kind in frame.schema.values():
                if kind.is_temporal() or kind.is_nested():
                    raise TypeError(f"not {kind}")  # noqa: TRY301
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
        raise InputError("column", columns[0], f"must hold numbers ({error})") from None

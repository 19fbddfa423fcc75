"""Whole columns of tables by their names: CSV, JSON and Parquet files, data frames and records.

Text is read as numbers of labels: votes have few different names in many rows.
"""

from __future__ import annotations

import json
import warnings
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import NO_VALUE, InputError, RankshotError, format_count, short_repr
from rankshot.core.files import PACKED, open_bytes, read_lines, require_ending
from rankshot.core.tables import (
    as_frame,
    find_column,
    frame_to_matrix,
    import_pyarrow,
    iterate_rows,
    open_parquet,
    read_columns,
    read_separator,
    read_table,
)
from rankshot.core.validation import require_choice

LINES_ENDINGS = (".jsonl", ".ndjson")
TEXT_ENDINGS = (".csv", ".tsv", *LINES_ENDINGS, ".json")
COLUMN_ENDINGS = (*TEXT_ENDINGS, ".parquet", *(f"{ending}{PACKED}" for ending in TEXT_ENDINGS))
MISSING = {
    *("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "None", "<NA>", "NaT"),
    *(".", "#NULL!"),
}
"""The texts of missing values in R, pandas, Excel, databases, SPSS, SAS and Stata."""
PROBLEMS_SHOWN = 3


class Coded(NamedTuple):
    """A column of text: row i has the text ``labels[codes[i]]``; a missing cell is empty."""

    codes: NDArray[np.int32]
    labels: list[str]

    def expand(self, missing: Any = "") -> NDArray[np.object_]:
        """Text of each row, or ``missing`` for empty cells."""
        return np.array([label or missing for label in self.labels] or [""], object)[self.codes]

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which rows are empty."""
        empty = self.labels.index("") if "" in self.labels else -1
        return np.asarray(self.codes == empty)

    def text(self, row: int) -> str:
        """Text of one row."""
        return self.labels[int(self.codes[row])]

    def select(self, rows: Any) -> Coded:
        """Some of the rows."""
        return self._replace(codes=self.codes[rows])


@cache
def plain_name(name: str) -> str:
    """Letters and digits of a name in lower case: ``Model A`` is ``model_a``."""
    return "".join(sign for sign in name.lower() if sign.isalnum())


def is_records(source: Any) -> bool:
    """Whether a table is a dict of columns, or a list of a dict for each row."""
    is_list = isinstance(source, (list, tuple)) and bool(source)
    return isinstance(source, dict) or (is_list and all(isinstance(x, Mapping) for x in source))


class ColumnReader:
    """The columns of a file, a data frame or records, read by their names.

    Blanks around names and text are ignored. CSV is read by PyArrow if it is installed; what it
    cannot read is read by Python's own reader, whose messages name the line.

    Parameters
    ----------
    source : str, Path, data frame, list of dict or dict of lists
    missing : iterable of str, optional
        Texts of missing cells, besides `MISSING`; an empty list means that only empty cells are
        missing.
    on_error : {"stop", "skip"}
        With "skip", lines that cannot be read are left out, and ``odd`` describes them.

    Examples
    --------
    >>> import pandas as pd
    >>> reader = ColumnReader(pd.DataFrame({"winner": ["b", "a ", None]}))
    >>> reader.read_texts(["winner"])[0].labels
    ['b', 'a', '']
    """

    def __init__(
        self, source: Any, missing: Iterable[str] | None = None, on_error: str = "stop"
    ) -> None:
        self._path = Path(source) if isinstance(source, (str, Path)) else None
        self._missing = (
            {""} if missing is not None and not [*missing] else MISSING | {*(missing or ())}
        )
        self.skips = require_choice("on_error", on_error, ("stop", "skip")) == "skip"
        self.odd: dict[str, None] = {}
        self._records: dict[str, list[Any]] | None = None
        self._lines: Sequence[int] | None = None
        self._frame = None
        ending = require_ending(self._path, COLUMN_ENDINGS) if self._path else ""
        if self._path and "json" in ending:
            self._frame = _read_arrow_lines(self._path) if ending in LINES_ENDINGS else None
            if self._frame is None:
                self._records = self._read_json(self._path, ending)
            else:
                names = self._frame.columns
        elif self._path:
            names = read_columns(self._path)[0]
        elif is_records(source):
            self._records = _to_columns(source, "table")
        elif (frame := as_frame(source)) is not None:
            self._frame, names = frame, frame.columns
        else:
            rule = "must be a table, a data frame or the path of a file"
            raise InputError("table", source, rule)
        if self._records is not None:
            names = [*self._records]
        self.columns = [str(name).strip() for name in names]
        self._by_name: dict[str, list[str]] = {}
        for column in self.columns:
            self._by_name.setdefault(plain_name(column), []).append(column)
        self.separator = ","
        if self._path and ending.removesuffix(PACKED) in {".csv", ".tsv"}:
            self.separator = read_separator(self._path)

    def __str__(self) -> str:
        """Name of the table, for messages."""
        if self._path is not None:
            return str(self._path)
        return "data frame" if self._frame is not None else "table"

    def where(self, row: int) -> str:
        """File and line of a row, or its number from 0, for messages."""
        if self._lines is not None:
            return f"{self}:{self._lines[row]}"
        if self._path is not None and self._frame is not None:
            return f"{self}:{next(islice(read_lines(self._path), row, None))[0]}"
        if self._path is None or self._records is not None or self._path.suffix == ".parquet":
            return f"{self}: row {row}"
        with closing(iterate_rows(self._path, {} if self.skips else None)) as rows:
            return f"{self}:{next(islice(rows, row + 1, None))[0]}"

    def find(self, names: Iterable[str]) -> list[str]:
        """Columns with one of these usual names: in any case, with blanks or signs."""
        return [column for name in names for column in self._by_name.get(plain_name(name), ())]

    def read_texts(self, names: Sequence[str]) -> list[Coded]:
        """Columns of text."""
        places = [find_column(self.columns, name, str(self)) for name in names]
        if self._frame is not None:
            return [self._code_series(self._frame[:, j]) for j in places]
        if self._records is not None:
            every = list(self._records.values())
            return [self._code(every[j]) for j in places]
        arrow = self._read_arrow(places)
        if arrow is None:
            assert self._path is not None  # noqa: S101 (for mypy)
            skipped = self.odd if self.skips else None
            rows = read_table(self._path, names, strip=True, odd=skipped)
            return [self._code(column) for column in rows.texts]
        return [self._code_arrow(column) for column in arrow.columns]

    def read_numbers(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Columns of finite numbers, as a matrix."""
        if self._frame is not None:
            places = [find_column(self.columns, name, str(self)) for name in names]
            values = np.asarray(frame_to_matrix(self._frame[:, places]), np.float64)
        else:
            values = np.column_stack([self.parse_numbers(x)[0] for x in self.read_texts(names)])
        if not np.isfinite(values).all():
            row, j = map(int, np.argwhere(~np.isfinite(values))[0])
            text = self.read_texts([names[j]])[0].text(row)
            raise InputError(repr(names[j]), text, "must be a finite number", self.where(row))
        return values

    def parse_numbers(self, column: Coded) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Numbers in a column of text, NaN where there is none, and what is text."""
        values = np.full(len(column.labels), np.nan)
        is_text = np.zeros(len(column.labels), bool)
        for i, label in enumerate(column.labels):
            try:
                values[i] = float(label.replace(",", ".") if self.separator == ";" else label)
            except ValueError:
                is_text[i] = label != ""
        return values[column.codes], is_text[column.codes]

    def is_unique(self, name: str) -> bool:
        """Whether no two cells of a column are equal."""
        j = find_column(self.columns, name, str(self))
        if self._frame is not None:
            return bool(self._frame[:, j].n_unique() == len(self._frame))
        arrow = None if self._records is not None else self._read_arrow([j])
        if arrow is None:
            (column,) = self.read_texts([name])
            return len(column.labels) == len(column.codes)
        return bool(len(arrow.column(0).unique()) == arrow.num_rows)

    def _read_arrow(self, places: list[int]) -> Any:
        """Columns of text of a file as an Arrow table; None if PyArrow cannot read them as such."""
        assert self._path is not None  # noqa: S101 (for mypy)
        if self._path.suffix == ".parquet":
            return _read_arrow_columns(self._path, places)
        try:
            arrow, reader = import_pyarrow(), import_pyarrow("pyarrow.csv")
        except RankshotError:
            return None
        with closing(iterate_rows(self._path)) as rows:
            header = next(rows)[1]
        wanted = [header[j] for j in places]
        try:
            table = reader.read_csv(
                self._path,
                parse_options=reader.ParseOptions(
                    newlines_in_values=True, delimiter=self.separator
                ),
                convert_options=reader.ConvertOptions(
                    column_types=dict.fromkeys(wanted, arrow.string()), include_columns=wanted
                ),
            )
        except (arrow.ArrowException, UnicodeDecodeError, OSError):
            return None
        return table if table.num_rows else None

    def _read_json(self, path: Path, ending: str) -> dict[str, list[Any]]:
        """Columns of JSON lines, or of a list of objects or an object of columns."""
        if ending.removesuffix(PACKED) == ".json":
            try:
                with open_bytes(path) as stream:
                    content = json.loads(stream.read().decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise InputError("file", NO_VALUE, f"is not JSON ({error})", str(path)) from None
            return _to_columns(content, str(path))
        records, lines = [], array("q")
        decode = json.JSONDecoder().decode
        for number, line in read_lines(path):
            try:
                record = decode(line)
            except (ValueError, RecursionError) as error:
                record = f"is not JSON ({error})"
            if not isinstance(record, dict):
                rule = record if isinstance(record, str) else "is not an object"
                problem = InputError("line", line, rule, where=f"{path}:{number}")
                if not self.skips:
                    raise problem
                self.odd[str(problem)] = None
                continue
            lines.append(number)
            records.append(_keep_cells(record))
        self._lines = lines
        return _to_columns(records, str(path))

    def _code_series(self, series: Any) -> Coded:
        import narwhals.stable.v2 as nw  # noqa: PLC0415

        if series.dtype == nw.String and series.null_count() < len(series):
            with suppress(RankshotError):
                import_pyarrow()
                return self._code_arrow(series.to_arrow())
        return self._code(series.to_list())

    def _code(self, values: list[Any]) -> Coded:
        """Give each different value a number, in the order of their first rows."""
        try:
            # 1 and True are equal, and have the same hash.
            keys = [(type(value), value) for value in values] if _mixes(values) else values
            number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
            codes = np.fromiter(map(number.__getitem__, keys), np.int32, len(keys))
        except TypeError:
            raise RankshotError(f"expected text, not {short_repr(values[0])}") from None
        distinct = (key[1] for key in number) if keys is not values else number
        return self._merge_labels(codes, [_to_text(value) for value in distinct])

    def _code_arrow(self, column: Any) -> Coded:
        # One chunk: a dictionary of each chunk would take as long as reading the file.
        whole = column.combine_chunks() if hasattr(column, "combine_chunks") else column
        # PyArrow imports pandas to replace nulls, and for its own conversion.
        coded = (whole.fill_null("") if whole.null_count else whole).dictionary_encode()
        codes = np.frombuffer(coded.indices.buffers()[1], np.int32, len(coded))
        return self._merge_labels(codes, coded.dictionary.to_pylist())

    def _merge_labels(self, codes: NDArray[np.int32], labels: list[str]) -> Coded:
        """Strip labels, empty those of missing values, and give equal ones one number."""
        missing = self._missing
        stripped = ["" if (bare := label.strip()) in missing else bare for label in labels]
        distinct = {label: i for i, label in enumerate(dict.fromkeys(stripped))}
        if len(distinct) == len(labels):
            return Coded(codes, stripped)
        recode = np.array([distinct[label] for label in stripped], np.int32)
        return Coded(recode[codes], list(distinct))


class RowChecks:
    """What is wrong with rows: an error for the first, or such rows are skipped, with a warning.

    Parameters
    ----------
    table : ColumnReader
    n : int
        The number of rows.
    """

    def __init__(self, table: ColumnReader, n: int) -> None:
        self._table = table
        self._problems: list[tuple[int, str]] = []
        self.kept = np.ones(n, bool)

    def check(self, is_bad: NDArray[np.bool_], describe: Callable[[int], str]) -> None:
        """Raise for the first bad row, or mark all of them; ``describe(row)`` is what is wrong."""
        self._check(is_bad, lambda row: InputError("row", NO_VALUE, f"is invalid: {describe(row)}"))

    def check_cells(self, is_bad: NDArray[np.bool_], name: str, cells: Coded, rule: str) -> None:
        """Do the same for bad cells of a column; ``rule`` is what they should be."""
        invalid = f"is invalid: {rule}"
        self._check(is_bad, lambda row: InputError(repr(name), cells.text(row), invalid))

    def _check(self, is_bad: NDArray[np.bool_], make: Callable[[int], InputError]) -> None:
        new = np.flatnonzero(is_bad & self.kept)
        for row in new[:PROBLEMS_SHOWN].tolist():
            error = make(row)
            error.where = self._table.where(row)
            if not self._table.skips:
                raise error
            self._problems.append((row, str(error)))
        self.kept[new] = False

    def try_rows(self, read: Callable[[NDArray[np.int64]], Any]) -> None:
        """Leave out rows for which ``read(rows)`` raises; without skipping, it raises later."""
        if self._table.skips:
            readable, problems = find_readable(np.flatnonzero(self.kept), read)
            self._problems += problems
            self.kept[:] = False
            self.kept[readable] = True

    def finish(self) -> NDArray[np.int64]:
        """Warn of what was skipped, and return the rows that are left."""
        lines = self._table.odd
        problems = [*lines, *(text for _, text in sorted(self._problems))]
        if not self.kept.any():
            rule = f"has no row that can be read; the first: {problems[0]}"
            raise InputError("table", NO_VALUE, rule, where=str(self._table))
        if problems:
            n_skipped = int((~self.kept).sum()) + len(lines)
            warn_of_skipped(n_skipped, self.kept.size + len(lines), problems)
        return np.flatnonzero(self.kept)


def find_readable(rows: Any, read: Callable[[Any], Any]) -> tuple[list[Any], list[tuple[Any, str]]]:
    """Rows that ``read`` can read, and what is wrong with each of the others.

    Rows are halved until one is left that cannot be read: few odd rows cost little.
    """
    try:
        if len(rows):
            read(rows)
    except RankshotError as error:
        if len(rows) == 1:
            return [], [(rows[0], str(error))]
        halves = (rows[: len(rows) // 2], rows[len(rows) // 2 :])
        (first, odd), (second, more) = (find_readable(half, read) for half in halves)
        return first + second, odd + more
    return [*rows], []


def warn_of_skipped(n_odd: int, n: int, told: Sequence[str]) -> None:
    """Warn that some of n rows were skipped; ``told`` says what is wrong with the first."""
    warnings.warn(
        f"{format_count(n_odd, 'row')} of {n:,} skipped: {'; '.join(told[:PROBLEMS_SHOWN])}"
        f"{' …' if n_odd > PROBLEMS_SHOWN else ''}",
        stacklevel=5,
    )


def _read_arrow_lines(path: Path) -> Any:
    """JSON lines as a data frame; None if PyArrow cannot read them."""
    try:
        arrow, reader = import_pyarrow(), import_pyarrow("pyarrow.json")
        table = reader.read_json(path)
        times = [x for x in table.schema if arrow.types.is_temporal(x.type)]
        if times:
            # PyArrow makes times of names that look like them.
            text = arrow.schema([(x.name, arrow.string()) for x in times])
            table = reader.read_json(path, parse_options=reader.ParseOptions(explicit_schema=text))
    except (RankshotError, arrow.ArrowException, UnicodeDecodeError):
        return None
    flat = [x.name for x in table.schema if not arrow.types.is_nested(x.type)]
    if not table.num_rows or len({*flat}) < len(flat):
        return None
    return as_frame(table.select(flat))


def _read_arrow_columns(path: Path, places: list[int]) -> Any:
    """Columns of a Parquet file; None if they are not all text."""
    types = import_pyarrow().types
    with open_parquet(path) as file:
        fields = [file.schema_arrow.field(j) for j in places]
        if not all(types.is_string(x.type) or types.is_large_string(x.type) for x in fields):
            return None
        names = [field.name for field in fields]
        table = file.read(columns=names, use_threads=False)
    return table.select(names) if table.num_rows else None


def _to_columns(records: Any, what: str) -> dict[str, list[Any]]:
    """Records, or columns as lists or as pandas writes them to JSON, as columns."""
    columns: dict[str, list[Any]] = {}
    if isinstance(records, Mapping) and records:
        inner = [
            list(each.values()) if isinstance(each, Mapping) else each for each in records.values()
        ]
        if (
            all(isinstance(x, (list, tuple, np.ndarray)) for x in inner)
            and len({*map(len, inner)}) == 1
        ):
            columns = {str(name): list(x) for name, x in zip(records, inner, strict=True)}
    elif isinstance(records, (list, tuple)) and all(isinstance(x, Mapping) for x in records):
        flat = [_keep_cells(record) for record in records]
        names = dict.fromkeys(name for record in flat for name in record)
        columns = {str(name): [record.get(name) for record in flat] for name in names}
    if not columns:
        rule = "must be a list of objects, one per row, or an object of columns of equal length"
        raise InputError("table", records, rule, where=what)
    return columns


def _keep_cells(record: Mapping[str, Any]) -> dict[str, Any]:
    """Drop nested values, such as chat transcripts."""
    return {name: x for name, x in record.items() if not isinstance(x, (list, dict))}


def _mixes(values: list[Any]) -> bool:
    kinds = {*map(type, values)}
    return bool in kinds and len(kinds) > 1


def _to_text(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124 (NaN)
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)

"""`Table`: columns by name, whatever they come from.

`open_table` opens a CSV, JSON or Parquet file, a data frame or records; `read_batches` yields the
rows of a file some at a time. What a table means (scores, predictions, votes, ballots) is decided
by its readers, who see a `Table` only.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import count, islice
from math import inf, isfinite
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import NO_VALUE, InputError, RankshotError, format_count
from rankshot.core.files import (
    PACKED,
    open_bytes,
    read_json_lines,
    read_lines,
    require_ending,
)
from rankshot.core.tables import (
    as_frame,
    find_column,
    import_pyarrow,
    iterate_rows,
    open_parquet,
    read_separator,
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
BATCH_CELLS = 2**19
"""Cells in a batch, about: four megabytes of numbers."""
TEXT_BATCH_CELLS = 2**14
"""The same for CSV: its cells are text at first, which should stay in the cache."""
PROBLEMS_SHOWN = 3
NESTED = {list, tuple, dict, set, np.ndarray}


Floats = NDArray[np.float64]


class NumberCheck(NamedTuple):
    """What numbers must be.

    Attributes
    ----------
    text : str
        The rule in words.
    limit : float
        All must be smaller than this.
    allow_missing : bool
        Whether cells may be empty, or NaN.
    least : float, optional
        All must be larger than this; by default, than minus the limit.
    """

    text: str = "expected a finite number"
    limit: float = inf
    allow_missing: bool = False
    least: float | None = None

    def refuse_first(
        self,
        values: NDArray[np.floating],
        where: Callable[[int], str],
        name: Callable[[int], str],
    ) -> None:
        """Raise for the first number that breaks the rule; ``name`` is that of a column."""
        least = -self.limit if self.least is None else self.least
        # The extremes are NaN if any number is, and need no temporary array of the same size.
        if not values.size or (values.max() < self.limit and values.min() > least):
            return
        odd = ~((values < self.limit) & (values > least))
        if self.allow_missing:
            odd &= ~np.isnan(values)
        if odd.any():
            row, j = map(int, np.argwhere(odd)[0])
            value = float(values[row, j])
            size = f"numbers must be between {least:g} and {self.limit:g}"
            text = size if isfinite(value) else self.text
            raise InputError(repr(name(j)), value, f"is invalid: {text}", where=where(row))


FINITE = NumberCheck()


class Coded(NamedTuple):
    """A column of text: row i has the text ``labels[codes[i]]``; a missing cell is empty.

    Votes have few different names in many rows.
    """

    codes: NDArray[np.int32]
    labels: list[str]

    def expand(self, missing: Any = "") -> NDArray[np.object_]:
        """Text of each row, or ``missing`` for empty cells."""
        return np.array([label or missing for label in self.labels] or [""], object)[self.codes]

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which rows are empty."""
        return np.array([not label for label in self.labels] or [True])[self.codes]

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


class Source(NamedTuple):
    """Where the rows of a table are.

    Attributes
    ----------
    name : str
        The file, "data frame" or "table", for messages.
    columns : list of str
    read : callable
        Returns the columns at some positions: lists, or arrays of Arrow.
    where : callable
        Returns the file and line of a row, or its number from 0, for messages.
    separator : str, optional
        What separates the columns of CSV, where numbers are text; with semicolons, commas may be
        decimal.
    """

    name: str
    columns: list[str]
    read: Callable[[list[int]], Sequence[Any]]
    where: Callable[[int], str]
    separator: str | None = None


class Table:
    """Columns by name, which are read when they are asked for, and the place of each row.

    Parameters
    ----------
    source : Source
    missing : set of str, optional
        The texts of missing cells. Blanks around names and text do not count then; by default,
        text is not changed.
    odd : dict, optional
        Rows that cannot be read are left out, and described here.
    """

    def __init__(
        self, source: Source, missing: set[str] | None = None, odd: dict[str, None] | None = None
    ) -> None:
        self._source, self._missing, self.odd = source, missing, odd
        self.where = source.where
        self.columns = [x if missing is None else str(x).strip() for x in source.columns]
        times = Counter(self.columns)
        self._place = {name: j for j, name in enumerate(self.columns) if times[name] == 1}

    def __str__(self) -> str:
        return self._source.name

    def _load(self, names: Iterable[str]) -> Sequence[Any]:
        # Not by `find_column` for each of thousands.
        place = self._place
        places = [
            place[name] if name in place else find_column(self.columns, name, str(self))
            for name in names
        ]
        columns = self._source.read(places) if places else []
        if places and not len(columns[0]):
            self.refuse("table", NO_VALUE, "has no rows")
        return columns

    def find(self, names: Iterable[str]) -> list[str]:
        """Columns with one of these usual names: in any case, with blanks or signs."""
        wanted = map(plain_name, names)
        return [column for name in wanted for column in self.columns if plain_name(column) == name]

    def refuse(
        self,
        parameter: str,
        value: object,
        rule: str,
        row: int | None = None,
        hint: str = "",
        choices: Mapping[str, object] | None = None,
    ) -> NoReturn:
        """Raise an `InputError` about the table, or one of its rows."""
        where = str(self) if row is None else self.where(row)
        raise InputError(parameter, value, rule, where, hint, choices)

    # ---- Text

    def read_texts(self, *names: str) -> list[list[str]]:
        """Columns of text; a missing cell is empty."""
        return [column.expand().tolist() for column in self.read_coded(*names)]

    def require_texts(self, name: str) -> list[str]:
        """Column of text, or raise for its first empty cell."""
        (texts,) = self.read_texts(name)
        if "" in texts:
            self.refuse(repr(name), NO_VALUE, "is empty", texts.index(""))
        return texts

    def read_values(self, name: str) -> list[Any]:
        """Column of any values, lists among them, as Python's own; a missing one is None."""
        (column,) = self._load([name])
        return column.to_pylist() if _is_arrow(column) else [*column]

    def read_coded(self, *names: str) -> list[Coded]:
        """Columns of text, as numbers of the labels that occur."""
        return [
            (self._code_arrow if _is_arrow(column) else self._code)(name, column)
            for name, column in zip(names, self._load(names), strict=True)
        ]

    def _code(self, name: str, values: Sequence[Any]) -> Coded:
        kinds = {*map(type, values)}
        if kinds & NESTED:
            self.refuse("column", name, "holds lists, not text")
        texts = values if kinds == {str} else [*map(_to_text, values)]
        return self._merge_labels(*reversed(number_distinct(texts)))

    def _code_arrow(self, name: str, column: Any) -> Coded:
        arrow = import_pyarrow()
        if arrow.types.is_nested(column.type):
            self.refuse("column", name, f"holds {column.type}, not text")
        try:
            column.validate(full=True)
            texts = column.cast(arrow.string())
        except arrow.ArrowException as error:
            self.refuse("file", NO_VALUE, f"contains text that is not UTF-8 ({error})")
        # PyArrow imports pandas to replace nulls, and for its own conversion of the codes.
        texts = texts.fill_null("") if texts.null_count else texts
        # One chunk: a dictionary of each chunk would take as long as reading the file.
        whole = texts.combine_chunks() if hasattr(texts, "combine_chunks") else texts
        coded = whole.dictionary_encode()
        codes = np.frombuffer(coded.indices.buffers()[1], np.int32, len(coded))
        return self._merge_labels(codes, coded.dictionary.to_pylist())

    def _merge_labels(self, codes: NDArray[np.integer], labels: list[str]) -> Coded:
        """Strip labels, empty those of missing values, and give equal ones one number."""
        if (missing := self._missing) is not None:
            labels = ["" if (bare := label.strip()) in missing else bare for label in labels]
        distinct, number = number_distinct(labels)
        return Coded(number.astype(np.int32)[codes], distinct)

    # ---- Numbers

    def read_numbers(
        self, names: Sequence[str], rule: NumberCheck = FINITE
    ) -> NDArray[np.floating]:
        """Columns of numbers, as a matrix; a missing number is NaN.

        Parquet keeps single precision.
        """
        columns = self._load(names)
        is_single = {str(getattr(column, "type", None)) for column in columns} == {"float"}
        n = len(columns[0]) if columns else 0
        matrix = np.empty((n, len(columns)), np.float32 if is_single else np.float64)
        for j, (name, column) in enumerate(zip(names, columns, strict=True)):
            is_typed = self._source.separator is None and _is_arrow(column)
            matrix[:, j] = (
                self._convert_column(name, column, str(matrix.dtype))
                if is_typed
                else self._parse_column(name, column, rule)
            )
        rule.refuse_first(matrix, self.where, names.__getitem__)
        return matrix

    def _convert_column(self, name: str, column: Any, dtype: str) -> NDArray[np.floating]:
        types, kind = import_pyarrow().types, column.type
        is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind)
        if not is_number and not types.is_null(kind):
            self.refuse("column", name, f"holds {kind}, not numbers")
        return np.asarray(column.cast(dtype, safe=False).to_numpy(zero_copy_only=False))

    def _parse_column(self, name: str, column: Any, rule: NumberCheck) -> Sequence[float] | Floats:
        cells = column.to_pylist() if _is_arrow(column) else column
        try:
            return np.fromiter(map(float, cells), np.float64, len(cells))
        except (TypeError, ValueError):
            numbers = []
        for row, cell in enumerate(cells):
            try:
                numbers.append(self._parse(cell, rule))
            except (TypeError, ValueError):
                value = _to_text(cell).strip() or "empty"
                self.refuse(repr(name), value, f"is invalid: {rule.text}", row)
        return numbers

    def _parse(self, cell: Any, rule: NumberCheck) -> float:
        if rule.allow_missing and not _to_text(cell).strip():
            return np.nan
        return float(cell.replace(",", ".") if self._source.separator == ";" else cell)

    def parse_numbers(self, column: Coded) -> tuple[Floats, NDArray[np.bool_]]:
        """Numbers in a column of text, NaN where there is none, and what is text."""
        values = np.full(len(column.labels), np.nan)
        is_text = np.zeros(len(column.labels), bool)
        for i, label in enumerate(column.labels):
            try:
                values[i] = self._parse(label, FINITE)
            except ValueError:
                is_text[i] = label != ""
        return values[column.codes], is_text[column.codes]

    def read_lists(self, name: str, rule: NumberCheck = FINITE) -> NDArray[Any]:
        """Column of lists of numbers, all of one length, as a matrix; in Parquet."""
        (column,) = self._load([name])
        flat = np.asarray(column.flatten().to_numpy(zero_copy_only=False))
        if len({*column.value_lengths().to_pylist()}) != 1 or flat.dtype.kind not in "fiu":
            self.refuse("column", name, "must have lists of numbers, all of one length")
        matrix = flat.reshape(len(column), -1)
        rule.refuse_first(matrix, self.where, "feature {}".format)
        return matrix


def number_distinct(labels: Collection[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Labels that differ, in the order in which they occur, and the number of each."""
    numbers: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(numbers.__getitem__, labels), np.intp, len(labels))
    return [*numbers], codes


def _is_arrow(column: Any) -> bool:
    return hasattr(column, "type")


def _to_text(value: object) -> str:
    if value is None or value != value:  # noqa: PLR0124 (NaN)
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value)


# ---- Where tables come from


def open_table(
    source: Any, missing: set[str] | None = None, on_error: str = "stop", *, nested: bool = False
) -> Table:
    """Open a CSV, JSON or Parquet file, a data frame, a list of dicts or a dict of lists.

    CSV is read by PyArrow if it is installed; what it cannot read is read by Python's own reader,
    whose messages name the line.

    Parameters
    ----------
    source : str, Path, data frame, list of dict or dict of lists
    missing : set of str, optional
        As for `Table`.
    on_error : {"stop", "skip"}
        With "skip", lines that cannot be read are left out.
    nested : bool
        Whether records keep their lists, for `Table.read_values`.

    Examples
    --------
    >>> import pandas as pd
    >>> table = open_table(pd.DataFrame({"winner": ["b", "a ", None]}), {""})
    >>> table.read_coded("winner")[0].labels
    ['b', 'a', '']
    """
    skips = require_choice("on_error", on_error, ("stop", "skip")) == "skip"
    odd: dict[str, None] | None = {} if skips else None
    if isinstance(source, (str, Path)):
        path = Path(source)
        ending = require_ending(path, COLUMN_ENDINGS).removesuffix(PACKED)
        if ending == ".parquet":
            found = _open_parquet(path)
        elif ending == ".json":
            found = _open_records(str(path), _read_json(path))
        else:
            found = (_open_lines if ending in LINES_ENDINGS else _open_csv)(path, odd)
    elif isinstance(source, (dict, list, tuple)):
        found = _open_records("table", source, nested=nested)
    elif (frame := as_frame(source)) is not None:
        found = _open_frame(frame)
    else:
        raise InputError("table", source, "must be a table, a data frame or the path of a file")
    return Table(found, missing, odd)


def read_batches(
    path: Path,
    columns: Sequence[str] = (),
    batch_rows: int | None = None,
    missing: set[str] | None = None,
) -> Iterator[Table]:
    """Yield some rows of a file at a time: JSON lines and Parquet by its ending, otherwise CSV.

    Only Parquet reads no other than the given columns. JSON lines keep their lists.
    """
    width = max(1, len(columns))
    size = batch_rows or max(1, BATCH_CELLS // width)
    ending = Path(str(path).removesuffix(PACKED)).suffix
    if ending == ".parquet":
        sources = _iterate_parquet(path, [*columns] or None, size)
    elif ending in LINES_ENDINGS:
        sources = _iterate_records(path, size)
    else:
        sources = _iterate_csv(path, min(size, max(1, TEXT_BATCH_CELLS // width)))
    return (Table(source, missing) for source in sources)


def _iterate_csv(path: Path, size: int) -> Iterator[Source]:
    separator = read_separator(path)
    with closing(iterate_rows(path)) as rows:
        names = next(rows)[1]
        while some := list(islice(rows, size)):
            lines, cells = zip(*some, strict=True)
            read = partial(_take, list(zip(*cells, strict=True)))
            yield Source(str(path), names, read, partial(name_line, path, lines), separator)


def _iterate_parquet(path: Path, columns: list[str] | None, size: int) -> Iterator[Source]:
    with open_parquet(path) as file:
        row = 0
        for batch in file.iter_batches(size, columns=columns):
            read, where = partial(_take, batch.columns), partial(name_row, path, row)
            yield Source(str(path), batch.schema.names, read, where)
            row += batch.num_rows
        if row != (n_rows := file.metadata.num_rows):
            rule = f"is damaged: it has {row} rows instead of {n_rows}"
            raise InputError("file", NO_VALUE, rule, where=str(path))


def _iterate_records(
    path: Path, size: int | None = None, odd: dict[str, None] | None = None, *, nested: bool = True
) -> Iterator[Source]:
    """Some objects of JSON lines at a time; with ``odd``, other lines are described there."""
    rows = read_json_lines(path, odd)
    while some := list(islice(rows, size)):
        lines, records = zip(*some, strict=True)
        source = _open_records(str(path), records, nested=nested)
        yield source._replace(where=partial(name_line, path, lines))


def _take(columns: Sequence[Any], places: list[int]) -> list[Any]:
    return [columns[j] for j in places]


def name_row(source: object, begin: int, row: int) -> str:
    """A row of a part that begins with the row ``begin``."""
    return f"{source}: row {begin + row}"


def name_line(path: Path, lines: Sequence[int], row: int) -> str:
    """The file and line of a row."""
    return f"{path}:{lines[row]}"


def _open_csv(path: Path, odd: dict[str, None] | None) -> Source:
    with closing(iterate_rows(path)) as rows:
        names = next(rows)[1]
    separator = read_separator(path)

    def read(places: list[int]) -> Sequence[Any]:
        if (found := _read_arrow_csv(path, names, places, separator)) is not None:
            return found
        with closing(iterate_rows(path, odd)) as rows:
            cells = [_take(row, places) for _, row in islice(rows, 1, None)]
        return list(zip(*cells, strict=True)) or [[]]

    def where(row: int) -> str:
        with closing(iterate_rows(path, None if odd is None else {})) as rows:
            return f"{path}:{next(islice(rows, row + 1, None))[0]}"

    return Source(str(path), names, read, where, separator)


def _read_arrow_csv(
    path: Path, names: list[str], places: list[int], separator: str
) -> list[Any] | None:
    """Columns of text; None if PyArrow is not installed, or cannot read them."""
    try:
        arrow, reader = import_pyarrow(), import_pyarrow("pyarrow.csv")
    except RankshotError:
        return None
    wanted = _take(names, places)
    types = dict.fromkeys(wanted, arrow.string())
    try:
        with open_bytes(path) as stream:
            table = reader.read_csv(
                stream,
                parse_options=reader.ParseOptions(newlines_in_values=True, delimiter=separator),
                convert_options=reader.ConvertOptions(column_types=types, include_columns=wanted),
            )
    except (arrow.ArrowException, UnicodeDecodeError, OSError):
        return None
    return list(table.columns) if table.num_rows else None


def _open_parquet(path: Path) -> Source:
    with open_parquet(path) as file:
        names = list(file.schema_arrow.names)

    def read(places: list[int]) -> Sequence[Any]:
        wanted = _take(names, places)
        with open_parquet(path) as file:
            table = file.read(columns=wanted, use_threads=False)
        return [table.column(name) for name in wanted]

    return Source(str(path), names, read, partial(name_row, path, 0))


def _open_frame(frame: Any) -> Source:
    """Columns of a data frame of narwhals."""

    def read(places: list[int]) -> list[list[Any]]:
        return [frame[:, j].to_list() for j in places]

    return Source("data frame", frame.columns, read, partial(name_row, "data frame", 0))


def _open_records(name: str, records: Any, *, nested: bool = False) -> Source:
    """Columns of records, or lists of columns, also as pandas writes them to JSON.

    Nested values, such as chat transcripts, are left out, unless they are asked for.
    """
    columns: dict[str, list[Any]] = {}
    if isinstance(records, Mapping) and records:
        inner = [
            list(each.values()) if isinstance(each, Mapping) else each for each in records.values()
        ]
        are_lists = all(isinstance(x, (list, tuple, np.ndarray)) for x in inner)
        if are_lists and len({*map(len, inner)}) == 1:
            columns = {str(key): list(x) for key, x in zip(records, inner, strict=True)}
    elif isinstance(records, (list, tuple)) and all(isinstance(x, Mapping) for x in records):
        out = () if nested else (list, dict)
        keys = {
            key: None for record in records for key, x in record.items() if not isinstance(x, out)
        }
        columns = {str(key): [record.get(key) for record in records] for key in keys}
    if not columns:
        rule = "must be a list of objects, one per row, or an object of columns of equal length"
        raise InputError("table", records, rule, where=name)
    read = partial(_take, [*columns.values()])
    return Source(name, [*columns], read, partial(name_row, name, 0))


def _read_json(path: Path) -> Any:
    with open_bytes(path) as stream:
        content = stream.read()
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError("file", NO_VALUE, f"is not JSON ({error})", str(path)) from None


def _open_lines(path: Path, odd: dict[str, None] | None) -> Source:
    """Columns of JSON lines, by PyArrow if it is installed, and can read them."""
    if (table := _read_arrow_lines(path)) is None:
        found = next(_iterate_records(path, None, odd, nested=False), None)
        return found or _open_records(str(path), [])

    def where(row: int) -> str:
        return f"{path}:{next(islice(read_lines(path), row, None))[0]}"

    return Source(str(path), table.column_names, partial(_take, table.columns), where)


def _read_arrow_lines(path: Path) -> Any:
    """JSON lines as an Arrow table; None if PyArrow is not installed, or cannot read them."""
    try:
        arrow, reader = import_pyarrow(), import_pyarrow("pyarrow.json")
    except RankshotError:
        return None
    try:
        with open_bytes(path) as stream:
            table = reader.read_json(stream)
    except (arrow.ArrowException, UnicodeDecodeError):
        return None
    types = arrow.types
    # PyArrow makes times of names that look like them.
    if not table.num_rows or any(types.is_temporal(x.type) for x in table.schema):
        return None
    flat = table.select([x.name for x in table.schema if not types.is_nested(x.type)])
    return flat if len({*flat.column_names}) == flat.num_columns else None


# ---- Rows that cannot be read


class RowChecks:
    """What is wrong with rows: an error for the first, or such rows are skipped, with a warning.

    Parameters
    ----------
    table : Table
    n : int
        The number of rows.
    """

    def __init__(self, table: Table, n: int) -> None:
        self._table = table
        self._problems: list[tuple[int, str]] = []
        self.skips = table.odd is not None
        self.kept = np.ones(n, bool)

    def check(self, is_bad: NDArray[np.bool_], problem: str | Callable[[int], InputError]) -> None:
        """Raise for the first bad row, or mark all; ``problem`` is what is wrong, or returns it."""
        new = np.flatnonzero(is_bad & self.kept)
        for row in new[:PROBLEMS_SHOWN].tolist():
            error = problem(row) if callable(problem) else InputError("row", NO_VALUE, problem)
            error.where = self._table.where(row)
            if not self.skips:
                raise error
            self._problems.append((row, str(error)))
        self.kept[new] = False

    def check_cells(self, is_bad: NDArray[np.bool_], name: str, cells: Coded, rule: str) -> None:
        """Do the same for bad cells of a column; ``rule`` is what they should be."""
        self.check(is_bad, lambda row: InputError(repr(name), cells.text(row), rule))

    def check_entries(
        self,
        is_bad: NDArray[np.bool_],
        rows: NDArray[np.int64],
        describe: Callable[[int], InputError],
    ) -> None:
        """Do the same for entries, such as items, of which a row may have several."""
        entries = np.flatnonzero(is_bad)
        bad, first = np.unique(rows[entries], return_index=True)
        entry_of = dict(zip(bad.tolist(), entries[first].tolist(), strict=True))
        is_bad_row = np.bincount(bad, minlength=self.kept.size) > 0
        self.check(is_bad_row, lambda row: describe(entry_of[row]))

    def finish(self) -> NDArray[np.int64]:
        """Warn of what was skipped, and return the rows that are left."""
        lines = self._table.odd or {}
        problems = [*lines, *(text for _, text in sorted(self._problems))]
        if not self.kept.any():
            rule = f"has no row that can be read; the first: {problems[0]}"
            self._table.refuse("table", NO_VALUE, rule)
        if problems:
            n_skipped = int((~self.kept).sum()) + len(lines)
            told = "; ".join(problems[:PROBLEMS_SHOWN]) + " …" * (n_skipped > PROBLEMS_SHOWN)
            counted = f"{format_count(n_skipped, 'row')} of {self.kept.size + len(lines):,}"
            warnings.warn(f"{counted} skipped: {told}", stacklevel=5)
        return np.flatnonzero(self.kept)

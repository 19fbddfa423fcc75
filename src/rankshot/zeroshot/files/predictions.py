"""How predictions get into a CSV or a Parquet file, batch after batch."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.names import as_names
from rankshot.core.tables import (
    ID,
    LABEL,
    find_column,
    import_pyarrow,
    number_matrix,
    open_parquet,
    parse_numbers,
    read_csv_rows,
    refuse_text_columns,
    text_array,
    text_column,
    unknown_ending_error,
)
from rankshot.core.text_files import replace_file
from rankshot.zeroshot.heads.base import REJECTED
from rankshot.zeroshot.metrics import ROUNDING

Put = Callable[[Sequence[str], Sequence[str], NDArray[np.floating], NDArray[np.floating]], None]
"""Takes ids, labels, their probabilities, and those of all targets."""
_GROUP_CELLS = 2**20
"""Cells in a row group of Parquet: readers are slow with thousands of small ones."""
_TEXT_CELLS = 2**14
"""Cells turned into text at a time, which takes many times their memory."""
ENDINGS = (".csv", ".parquet")
PROBABILITY = "probability"


# -------------------- zeroshot.prediction_sinks
# How predictions get into a CSV or a Parquet file, batch after batch.


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
        self._arrow, self._parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
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


# -------------------- zeroshot.prediction_files
# Predictions as CSV and Parquet, written a batch at a time and whole or not at all.


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a file of predictions holds.

    Attributes
    ----------
    ids : array of str, shape (n,)
        What the inputs are called.
    labels : array of str, shape (n,)
        The target that each was given.
    targets : tuple of str
        All L targets, in the order of the columns.
    proba : array of shape (n, L)
        The probability of every target.
    """

    ids: NDArray[np.object_]
    labels: NDArray[np.object_]
    targets: tuple[str, ...]
    proba: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.ids)


class PredictionWriter:
    """Checks predictions and hands them on; made by `writing_predictions`."""

    def __init__(self, targets: tuple[str, ...], put: Put) -> None:
        self.targets = targets
        self.n_rows = 0
        self._code = {name: j for j, name in enumerate(targets)}
        self._put = put

    def write(self, ids: Iterable[Any] | None, labels: Iterable[Any], proba: ArrayLike) -> None:
        """Add some rows.

        Parameters
        ----------
        ids : iterable of str, or None
            None gives each row its number in the whole file, counted from 0.
        labels : iterable of str
            A target for each row, or `REJECTED`.
        proba : array-like of shape (n, L)
            A column for each target, in the order that `writing_predictions` was given.
        """
        table = self._checked(proba)
        rows = np.arange(len(table))
        numbers = map(str, range(self.n_rows, self.n_rows + len(table)))
        names = [str(name) for name in (numbers if ids is None else ids)]
        given = [str(label) for label in labels]
        if not len(table) == len(names) == len(given):
            raise RankshotError(
                f"{len(names)} ids, {len(given)} labels and {len(table)} rows of probabilities"
            )
        if "" in names:
            raise RankshotError(f"row {self.n_rows + names.index('')} has no id")
        _refuse_surrogates(names)
        codes = np.array([self._code.get(label, -1) for label in given], np.intp)
        if (codes < 0).any():
            rejected = (codes < 0) & np.array([label == REJECTED for label in given])
            codes[rejected] = table[rejected].argmax(axis=1)
            unknown = np.flatnonzero(codes < 0)
            if unknown.size:
                raise self._unknown_label(given, int(unknown[0]))
        self._put(names, given, table[rows, codes], table)
        self.n_rows += len(table)

    def _checked(self, proba: ArrayLike) -> NDArray[np.floating]:
        table = np.asarray(proba)
        if table.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
            table = table.astype(np.float64)
        if table.ndim != 2 or table.shape[1] != len(self.targets):
            raise RankshotError(
                f"probabilities of {len(self.targets)} targets must have as many columns, not "
                f"shape {table.shape}"
            )
        odd = _first_no_probability(table)
        if odd is not None:
            row, column = odd
            raise RankshotError(
                f"row {self.n_rows + row}, target {self.targets[column]!r}: "
                f"{table[row, column]} is no probability"
            )
        return table

    def _unknown_label(self, labels: Sequence[str], row: int) -> RankshotError:
        hint = suggest_name(labels[row], self.targets)
        return RankshotError(
            f"row {self.n_rows + row}: the label {short_repr(labels[row])} is no target{hint}"
        )


@contextmanager
def open_predictions(path: str | Path, targets: Iterable[Any]) -> Iterator[PredictionWriter]:
    """Open a file of predictions, CSV or Parquet, for writing in batches.

    The columns are ``id``, ``label``, ``probability`` (that of the label, or the largest where the
    input was rejected) and, for each target, ``P(target)``. CSV has as many digits as tell the
    numbers apart in the precision they come in; Parquet keeps the precision of the first batch.

    The file takes its place when the block ends well. If anything is raised in it, what was there
    before stays, and nothing else is left behind.

    Parameters
    ----------
    path : str or Path
        Ends in .csv or .parquet.
    targets : iterable of names
        In the order of the columns of probabilities.

    Examples
    --------
    >>> import tempfile
    >>> from rankshot.zeroshot.files.predictions import read_predictions, writing_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with writing_predictions(folder + "/predictions.csv", ["cat", "truck"]) as writer:
    ...         writer.write(["x1", "x2"], ["cat", "truck"], [[.75, .25], [.5, .5]])
    ...     print((Path(folder) / "predictions.csv").read_text())
    ...     read_predictions(folder + "/predictions.csv").labels
    id,label,probability,P(cat),P(truck)
    x1,cat,0.75,0.75,0.25
    x2,truck,0.5,0.5,0.5
    <BLANKLINE>
    array(['cat', 'truck'], dtype=object)
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise unknown_ending_error(path, ENDINGS)
    names = as_names(targets, "targets")
    _refuse_surrogates(names)
    columns = [ID, LABEL, PROBABILITY, *(f"P({name})" for name in names)]
    sink = csv_sink if path.suffix == ".csv" else parquet_sink
    with replace_file(path) as stream, sink(stream, columns) as put:
        writer = PredictionWriter(names, put)
        yield writer
        if writer.n_rows == 0:
            raise RankshotError(f"{path}: there are no predictions to write")


def read_predictions(path: str | Path) -> Predictions:
    """Read what `writing_predictions` wrote; columns may stand in any order.

    Raises
    ------
    RankshotError
        Names the file and the column that is missing, or the line (CSV) or row (Parquet, counted
        from 0) of what is wrong.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise unknown_ending_error(path, ENDINGS)
    read = _read_csv if path.suffix == ".csv" else _read_parquet
    predictions, places = read(path)
    if len(predictions) == 0:
        raise RankshotError(f"{path}: there are no predictions in it")
    _check(predictions, lambda row: f"{path}:{places[row]}" if places else f"{path}: row {row}")
    return predictions


def _check(predictions: Predictions, where: Callable[[int], str]) -> None:
    """Refuse labels that are no targets (nor `REJECTED`) and numbers that are no probabilities."""
    known = {*predictions.targets, REJECTED}
    for row, label in enumerate(predictions.labels):
        if label not in known:
            hint = suggest_name(label, known)
            raise RankshotError(f"{where(row)}: no column 'P({label})' for this label{hint}")
    odd = _first_no_probability(predictions.proba)
    if odd is not None:
        row, column = odd
        raise RankshotError(
            f"{where(row)}: 'P({predictions.targets[column]})' is {predictions.proba[row, column]},"
            " which is no probability"
        )


def _first_no_probability(table: NDArray[np.floating]) -> tuple[int, int] | None:
    if not table.size or (table.min() >= -ROUNDING and table.max() <= 1 + ROUNDING):
        return None
    # Not a number is neither less nor more than anything.
    row, column = np.argwhere(~((table >= -ROUNDING) & (table <= 1 + ROUNDING)))[0]
    return int(row), int(column)


def _refuse_surrogates(names: Sequence[str]) -> None:
    try:
        "".join(names).encode()
    except UnicodeEncodeError as error:
        odd = short_repr(error.object[error.start : error.end])
        raise RankshotError(f"UTF-8 cannot hold the character {odd}") from None


def _targets(columns: Sequence[str], path: Path) -> tuple[list[int], tuple[str, ...]]:
    """Return where the columns ``P(target)`` stand, and the targets."""
    places = [j for j, name in enumerate(columns) if name.startswith("P(") and name.endswith(")")]
    if not places:
        raise RankshotError(
            f"{path}: no columns such as 'P(cat)'; the columns are {quote_names(columns)}"
        )
    try:
        return places, as_names([columns[j][2:-1] for j in places], "the header")
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


# -------------------------------------------------------------------- CSV


def _read_csv(path: Path) -> tuple[Predictions, Sequence[int]]:
    rows = read_csv_rows(path)
    _, columns = next(rows)
    id_place, label_place = (find_column(columns, name, path) for name in (ID, LABEL))
    places, targets = _targets(columns, path)
    names = [columns[j] for j in places]
    ids, labels, lines, cells = [], [], array("q"), array("d")
    for line, row in rows:
        where = f"{path}:{line}"
        for name, place in ((ID, id_place), (LABEL, label_place)):
            if not row[place]:
                raise RankshotError(f"{where}: the row has no {name}")
        ids.append(row[id_place])
        labels.append(row[label_place])
        lines.append(line)
        numbers = [row[j] for j in places]
        cells.extend(parse_numbers(numbers, names, "probabilities must be numbers", where))
    proba = np.array(cells).reshape(-1, len(targets))
    return Predictions(text_array(ids), text_array(labels), targets, proba), lines


# -------------------------------------------------------------------- Parquet


def _read_parquet(path: Path) -> tuple[Predictions, Sequence[int]]:
    ids: list[str] = []
    labels: list[str] = []
    with open_parquet(path) as file:
        columns = list(file.schema_arrow.names)
        for name in (ID, LABEL):
            find_column(columns, name, path)
        places, targets = _targets(columns, path)
        names = [columns[j] for j in places]
        refuse_text_columns(file.schema_arrow, names, path)
        parts = []
        for batch in file.iter_batches(columns=[ID, LABEL, *names]):
            row = len(ids)
            ids += text_column(batch.column(ID), row, ID, path)
            labels += text_column(batch.column(LABEL), row, LABEL, path)
            parts.append(number_matrix(batch, names))
    proba = np.concatenate(parts) if parts else np.empty((0, len(targets)))
    return Predictions(text_array(ids), text_array(labels), targets, proba), ()

"""Predictions as CSV and Parquet: written in batches, completely or not at all, and read."""

from __future__ import annotations

import csv
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.files import replace_file, require_ending
from rankshot.core.tables import (
    ID,
    LABEL,
    TABLE_ENDINGS,
    as_text_array,
    find_column,
    open_parquet,
    open_row_groups,
    parse_numbers,
    read_csv_rows,
    read_number_matrix,
    read_text_column,
    refuse_text_columns,
    write_csv_rows,
)
from rankshot.core.validation import as_names
from rankshot.zeroshot.metrics import ROUNDING
from rankshot.zeroshot.runner import REJECTED

WriteRows = Callable[
    [Sequence[str], Sequence[str], NDArray[np.floating], NDArray[np.floating]], None
]
"""Writes ids, labels, the probabilities of the labels, and those of all classes."""
PROBABILITY = "probability"


@dataclass(frozen=True, eq=False)
class Predictions:
    """The content of a file of predictions.

    Attributes
    ----------
    ids : array of str, shape (n,)
        The ids of the inputs.
    labels : array of str, shape (n,)
        The predicted class of each input, or `REJECTED`.
    targets : tuple of str
        All L classes that could be predicted, in the order of the columns.
    proba : array of shape (n, L)
        The probabilities of all these classes.
    """

    ids: NDArray[np.object_]
    labels: NDArray[np.object_]
    targets: tuple[str, ...]
    proba: NDArray[np.floating]

    def __len__(self) -> int:
        return len(self.ids)


@contextmanager
def open_predictions(
    path: str | Path,
    targets: Iterable[Any],
    metadata: Mapping[str, str] | None = None,
    *,
    allow_empty: bool = False,
) -> Iterator[PredictionWriter]:
    """Open a file of predictions, CSV or Parquet, for writing in batches.

    The columns are ``id``, ``label``, ``probability`` (of the label, or the largest one if the
    input was rejected) and one column ``P(class)`` per class. CSV has all digits of the
    precision of the numbers; Parquet keeps the precision of the first batch.

    The file replaces an older one when the block ends. If an exception is raised in the block,
    the older file stays, and nothing else is left behind.

    Parameters
    ----------
    path : str or Path
        Ends in .csv or .parquet.
    targets : iterable of names
        The classes that may be predicted, in the order of the columns of probabilities.
    metadata : mapping of str to str, optional
        What a Parquet file says about itself in its footer. It may be filled until the block ends.
    allow_empty : bool
        Write a file without rows, as a part of a dataset may be, if there are none.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import open_predictions, read_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with open_predictions(folder + "/predictions.csv", ["cat", "truck"]) as writer:
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
    sink = _open_csv_sink if require_ending(path, TABLE_ENDINGS) == ".csv" else _open_parquet_sink
    names = as_names(targets, "targets")
    columns = [ID, LABEL, PROBABILITY, *(f"P({name})" for name in names)]
    with replace_file(path) as stream, sink(stream, columns, metadata) as put:
        writer = PredictionWriter(names, put)
        yield writer
        if writer.n_rows == 0 and allow_empty:
            writer.write([], [], np.empty((0, len(names)), np.float32))
        elif writer.n_rows == 0:
            raise RankshotError(f"{path}: there are no predictions to write")


def read_predictions(path: str | Path) -> Predictions:
    r"""Read a file that `open_predictions` wrote; its columns may be in any order.

    Raises
    ------
    RankshotError
        Names the file and the column that is missing, or the line (CSV) or row (Parquet, counted
        from 0) of what is wrong.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import read_predictions
    >>> text = "id,label,probability,P(cat),P(truck)\nx1,cat,0.75,0.75,0.25\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "predictions.csv")
    ...     _ = path.write_text(text)
    ...     found = read_predictions(path)
    >>> found.ids.tolist(), found.labels.tolist(), found.proba
    (['x1'], ['cat'], array([[0.75, 0.25]]))
    """
    path = Path(path)
    read = _read_csv if require_ending(path, TABLE_ENDINGS) == ".csv" else _read_parquet
    predictions, places = read(path)
    if len(predictions) == 0:
        raise RankshotError(f"{path}: there are no predictions in it")
    _validate(predictions, lambda row: f"{path}:{places[row]}" if places else f"{path}: row {row}")
    return predictions


# -------------------------------------------------------------------- writing


class PredictionWriter:
    """Validates predictions and writes them; `open_predictions` makes it."""

    def __init__(self, targets: tuple[str, ...], put: WriteRows) -> None:
        self.targets = targets
        self.n_rows = 0
        self._code = {name: j for j, name in enumerate(targets)}
        self._put = put

    def write(self, ids: Iterable[Any] | None, labels: Iterable[Any], proba: ArrayLike) -> None:
        """Add some rows.

        Parameters
        ----------
        ids : iterable of str, or None
            With None, the id of a row is its number in the file, counted from 0.
        labels : iterable of str
            The predicted class of each row, or `REJECTED`.
        proba : array-like of shape (n, L)
            One column per class, in the order that was given to `open_predictions`.
        """
        table = self._as_probabilities(proba)
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
        codes = np.array([self._code.get(label, -1) for label in given], np.intp)
        if (codes < 0).any():
            rejected = (codes < 0) & np.array([label == REJECTED for label in given])
            codes[rejected] = table[rejected].argmax(axis=1)
            unknown = np.flatnonzero(codes < 0)
            if unknown.size:
                raise self._unknown_label(given, int(unknown[0]))
        self._put(names, given, table[rows, codes], table)
        self.n_rows += len(table)

    def _as_probabilities(self, proba: ArrayLike) -> NDArray[np.floating]:
        table = np.asarray(proba)
        if table.dtype not in {np.dtype(np.float32), np.dtype(np.float64)}:
            table = table.astype(np.float64)
        if table.ndim != 2 or table.shape[1] != len(self.targets):
            raise RankshotError(
                f"probabilities of {len(self.targets)} classes must have as many columns, not "
                f"shape {table.shape}"
            )
        odd = _find_non_probability(table)
        if odd is not None:
            row, column = odd
            raise RankshotError(
                f"row {self.n_rows + row}, class {self.targets[column]!r}: "
                f"{table[row, column]} is not a probability"
            )
        return table

    def _unknown_label(self, labels: Sequence[str], row: int) -> RankshotError:
        hint = suggest_name(labels[row], self.targets)
        return RankshotError(
            f"row {self.n_rows + row}: the label {short_repr(labels[row])} is not one of the "
            f"classes{hint}"
        )


def _find_non_probability(table: NDArray[np.floating]) -> tuple[int, int] | None:
    """Return the row and column of the first number outside [0, 1], or None."""
    if not table.size or (table.min() >= -ROUNDING and table.max() <= 1 + ROUNDING):
        return None
    # NaN is neither less nor more than anything.
    row, column = np.argwhere(~((table >= -ROUNDING) & (table <= 1 + ROUNDING)))[0]
    return int(row), int(column)


@contextmanager
def _open_csv_sink(
    stream: TextIO, columns: Sequence[str], _metadata: Mapping[str, str] | None
) -> Iterator[WriteRows]:
    """Write the names of the columns; yield the function that writes rows."""
    writer = csv.writer(stream)
    writer.writerow(columns)

    def put(
        ids: Sequence[str],
        labels: Sequence[str],
        chosen: NDArray[np.floating],
        proba: NDArray[np.floating],
    ) -> None:
        numbers = np.column_stack([chosen, proba])
        write_csv_rows(writer, [ids, labels], numbers)

    yield put


@contextmanager
def _open_parquet_sink(
    stream: TextIO, columns: Sequence[str], metadata: Mapping[str, str] | None
) -> Iterator[WriteRows]:
    """Yield the function that writes rows, all in the precision of the first."""
    with open_row_groups(stream, columns, metadata) as put:
        yield lambda ids, labels, chosen, proba: put([ids, labels], [chosen, *proba.T])


# -------------------------------------------------------------------- reading


def _validate(predictions: Predictions, where: Callable[[int], str]) -> None:
    """Refuse labels without a column, except `REJECTED`, and numbers outside [0, 1]."""
    known = {*predictions.targets, REJECTED}
    for row, label in enumerate(predictions.labels):
        if label not in known:
            hint = suggest_name(label, known)
            raise RankshotError(f"{where(row)}: no column 'P({label})' for this label{hint}")
    odd = _find_non_probability(predictions.proba)
    if odd is not None:
        row, column = odd
        raise RankshotError(
            f"{where(row)}: 'P({predictions.targets[column]})' is {predictions.proba[row, column]},"
            " which is not a probability"
        )


def _find_targets(columns: Sequence[str], path: Path) -> tuple[list[int], tuple[str, ...]]:
    """Return the positions of the columns ``P(class)``, and the classes."""
    places = [j for j, name in enumerate(columns) if name.startswith("P(") and name.endswith(")")]
    if not places:
        raise RankshotError(
            f"{path}: no columns such as 'P(cat)'; the columns are {quote_names(columns)}"
        )
    try:
        return places, as_names([columns[j][2:-1] for j in places], "the header")
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def _read_csv(path: Path) -> tuple[Predictions, Sequence[int]]:
    rows = read_csv_rows(path)
    _, columns = next(rows)
    id_place, label_place = (find_column(columns, name, path) for name in (ID, LABEL))
    places, targets = _find_targets(columns, path)
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
    return Predictions(as_text_array(ids), as_text_array(labels), targets, proba), lines


def _read_parquet(path: Path) -> tuple[Predictions, Sequence[int]]:
    ids: list[str] = []
    labels: list[str] = []
    with open_parquet(path) as file:
        columns = list(file.schema_arrow.names)
        for name in (ID, LABEL):
            find_column(columns, name, path)
        places, targets = _find_targets(columns, path)
        names = [columns[j] for j in places]
        refuse_text_columns(file.schema_arrow, names, path)
        parts = []
        for batch in file.iter_batches(columns=[ID, LABEL, *names]):
            row = len(ids)
            ids += read_text_column(batch.column(ID), row, ID, path)
            labels += read_text_column(batch.column(LABEL), row, LABEL, path)
            parts.append(read_number_matrix(batch, names))
    proba = np.concatenate(parts) if parts else np.empty((0, len(targets)))
    return Predictions(as_text_array(ids), as_text_array(labels), targets, proba), ()

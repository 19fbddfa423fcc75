"""The true labels that predictions are held against, from CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.tables import (
    ID,
    LABEL,
    find_column,
    open_parquet,
    read_csv_rows,
    text_array,
    text_column,
    unknown_ending_error,
)

Row = tuple[int, str | None, str]
"""Where it stands, the id where there are any, and the label."""


def read_truth(path: str | Path, ids: Sequence[str]) -> NDArray[np.object_]:
    r"""Read the true labels of some predictions.

    Parameters
    ----------
    path : str or Path
        CSV or Parquet with a column ``label`` and, in any order of rows, a column ``id``. Ids
        that nobody asks for are passed over. Without a column ``id`` the rows must be those of
        the predictions, in their order.
    ids : sequence of str
        Those of the predictions, as `read_predictions` returns them.

    Returns
    -------
    array of str
        A label for each of the ``ids``, in their order.

    Raises
    ------
    RankshotError
        Names the file, and the line (CSV) or row (Parquet, counted from 0) of what is wrong; or
        the ids that have no label.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from rankshot.zeroshot.files.truth import read_truth
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "truth.csv"
    ...     _ = path.write_text("id,label\nx2,truck\nx1,cat\n")
    ...     read_truth(path, ["x1", "x2"])
    array(['cat', 'truck'], dtype=object)
    """
    path = Path(path)
    if path.suffix == ".csv":
        rows, where = _csv_labels(path), f"{path}:"
    elif path.suffix == ".parquet":
        rows, where = _parquet_labels(path), f"{path}: row "
    else:
        raise unknown_ending_error(path, (".csv", ".parquet"))
    labels: list[str] = []
    places: dict[str, tuple[int, int]] = {}
    for place, name, label in rows:
        if not label.strip():
            raise RankshotError(f"{where}{place}: the label is empty")
        if name is not None:
            n, before = places.setdefault(name, (len(labels), place))
            if n != len(labels):
                raise RankshotError(
                    f"{where}{place}: the id {short_repr(name)} stands in {where}{before} already"
                )
        labels.append(label)
    if not labels:
        raise RankshotError(f"{path}: there are no labels in it")
    if places:
        return text_array([labels[n] for n in _rows_of(ids, places, path)])
    if len(labels) != len(ids):
        raise RankshotError(
            f"{path}: {len(labels)} labels for {len(ids)} predictions; without a column {ID!r} "
            "there must be as many"
        )
    return text_array(labels)


def _rows_of(ids: Sequence[str], places: dict[str, tuple[int, int]], path: Path) -> list[int]:
    missing = [name for name in ids if name not in places]
    if missing:
        raise RankshotError(
            f"{path}: no label for {len(missing)} of the {len(ids)} predictions: {quote_names(missing)}"
        )
    return [places[name][0] for name in ids]


def _csv_labels(path: Path) -> Iterator[Row]:
    rows = read_csv_rows(path)
    _, columns = next(rows)
    label = find_column(columns, LABEL, path)
    place = find_column(columns, ID, path) if ID in columns else None
    for line, row in rows:
        name = None if place is None else row[place]
        if name == "":
            raise RankshotError(f"{path}:{line}: the row has no id")
        yield line, name, row[label]


def _parquet_labels(path: Path) -> Iterator[Row]:
    with open_parquet(path) as file:
        columns = list(file.schema_arrow.names)
        find_column(columns, LABEL, path)
        wanted = [name for name in columns if name in {ID, LABEL}]
        has_ids = ID in columns and find_column(columns, ID, path) >= 0
        row = 0
        for batch in file.iter_batches(columns=wanted):
            labels = text_column(batch.column(LABEL), row, LABEL, path)
            ids = text_column(batch.column(ID), row, ID, path) if has_ids else [None] * len(labels)
            yield from zip(range(row, row + len(labels)), ids, labels, strict=True)
            row += len(labels)

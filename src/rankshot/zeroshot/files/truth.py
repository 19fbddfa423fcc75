"""True labels, to evaluate predictions with, from CSV and Parquet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.files import require_ending
from rankshot.core.tables import (
    ID,
    LABEL,
    TABLE_ENDINGS,
    as_text_array,
    find_column,
    open_parquet,
    read_csv_rows,
    read_text_column,
)

Row = tuple[int, str | None, str]
"""The line or row, the id if there is one, and the label."""


def read_truth(path: str | Path, ids: Sequence[str]) -> NDArray[np.object_]:
    r"""Read the true labels of some inputs.

    Parameters
    ----------
    path : str or Path
        CSV or Parquet with a column ``label`` and optionally a column ``id``. With ids, the rows
        may be in any order, and ids that are not among the inputs are ignored. Without ids,
        the rows must be those of the inputs, in the same order.
    ids : sequence of str
        The ids of the inputs, as `read_predictions` returns them.

    Returns
    -------
    array of str
        The label of each of the ``ids``, in their order.

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
    >>> from pathlib import Path
    >>> from rankshot.zeroshot import read_truth
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "truth.csv"
    ...     _ = path.write_text("id,label\nx2,truck\nx1,cat\n")
    ...     read_truth(path, ["x1", "x2"])
    array(['cat', 'truck'], dtype=object)
    """
    path = Path(path)
    if require_ending(path, TABLE_ENDINGS) == ".csv":
        rows, where = _read_csv_labels(path), f"{path}:"
    else:
        rows, where = _read_parquet_labels(path), f"{path}: row "
    labels: list[str] = []
    places: dict[str, tuple[int, int]] = {}
    for place, name, label in rows:
        if not label.strip():
            raise RankshotError(f"{where}{place}: the label is empty")
        if name is not None:
            n, before = places.setdefault(name, (len(labels), place))
            if n != len(labels):
                raise RankshotError(
                    f"{where}{place}: the id {short_repr(name)} occurs already in {where}{before}"
                )
        labels.append(label)
    if not labels:
        raise RankshotError(f"{path}: the file holds no labels")
    if places:
        return as_text_array([labels[n] for n in _find_rows(ids, places, path)])
    if len(labels) != len(ids):
        raise RankshotError(
            f"{path}: {len(labels)} labels for {len(ids)} inputs; without a column {ID!r} there "
            "must be one label per input"
        )
    return as_text_array(labels)


def _find_rows(ids: Sequence[str], places: dict[str, tuple[int, int]], path: Path) -> list[int]:
    missing = [name for name in ids if name not in places]
    if missing:
        raise RankshotError(
            f"{path}: no label for {len(missing)} of the {len(ids)} inputs: {quote_names(missing)}"
        )
    return [places[name][0] for name in ids]


def _read_csv_labels(path: Path) -> Iterator[Row]:
    rows = read_csv_rows(path)
    _, columns = next(rows)
    label = find_column(columns, LABEL, path)
    place = find_column(columns, ID, path) if ID in columns else None
    for line, row in rows:
        name = None if place is None else row[place]
        if name == "":
            raise RankshotError(f"{path}:{line}: the row has no id")
        yield line, name, row[label]


def _read_parquet_labels(path: Path) -> Iterator[Row]:
    with open_parquet(path) as file:
        columns = list(file.schema_arrow.names)
        find_column(columns, LABEL, path)
        wanted = [name for name in columns if name in {ID, LABEL}]
        has_ids = ID in columns and find_column(columns, ID, path) >= 0
        row = 0
        for batch in file.iter_batches(columns=wanted):
            labels = read_text_column(batch.column(LABEL), row, LABEL, path)
            ids = (
                read_text_column(batch.column(ID), row, ID, path)
                if has_ids
                else [None] * len(labels)
            )
            yield from zip(range(row, row + len(labels)), ids, labels, strict=True)
            row += len(labels)

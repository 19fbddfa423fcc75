"""Similarity tables from CSV, Parquet and data frames.

A user's own source comes in this way: a spreadsheet of ratings, similarities that another program
computed, or a table from a notebook.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import replace_file, require_ending
from rankshot.core.tables import (
    TABLE_ENDINGS,
    as_frame,
    frame_to_matrix,
    import_pyarrow,
    open_parquet,
    parse_numbers,
    read_csv_rows,
    read_number_matrix,
    read_text_column,
    refuse_text_columns,
)
from rankshot.core.validation import as_names
from rankshot.sources.similarity import Similarity

Floats = NDArray[np.floating]
TARGET = "target"
"""The name of the column that holds the targets."""
MAX_CELLS = 2**28
"""Cells in a table: a Parquet file of a few bytes can claim any number."""
RULE = "similarities must be finite numbers, or empty where unknown"


def read_similarity(path: str | Path, source: str | None = None) -> Similarity:
    r"""Read a table of similarities from CSV or Parquet.

    Parameters
    ----------
    path : str or Path
        In CSV, the first line names the items and the first column holds the targets (its own
        heading does not matter). In Parquet, the targets are the column ``target`` or, without
        one, the only column of text. An empty cell means that the similarity is unknown.
    source : str, optional
        The name of the source; by default the file's name without its ending.

    Raises
    ------
    RankshotError
        Names the file, and the line (CSV) or column (Parquet) of what is wrong.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("class,tiger,bus\ncat,0.9,0.1\ntruck,0.2,\n")
    ...     table = rs.read_similarity(path)
    >>> table.source, table.values.tolist()
    ('people', [[0.9, 0.1], [0.2, nan]])
    """
    path = Path(path)
    read = _read_csv if require_ending(path, TABLE_ENDINGS) == ".csv" else _read_parquet
    values, targets, items = read(path)
    try:
        return Similarity(values, targets, items, path.stem if source is None else source)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def write_similarity(similarity: Similarity, path: str | Path) -> None:
    """Write a table of similarities as CSV or Parquet, with all digits; unknown cells are empty.

    The file appears complete or not at all: it is written beside its place and then renamed.
    The source and the notes are not written.

    Examples
    --------
    >>> import rankshot as rs, tempfile
    >>> from rankshot.sources import read_similarity, write_similarity
    >>> table = rs.Similarity([[.9, float("nan")]], ["cat"], ["tiger", "bus"], source="me")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_similarity(table, folder + "/me.csv")
    ...     read_similarity(folder + "/me.csv") == table
    True
    """
    path = Path(path)
    write = _write_csv if require_ending(path, TABLE_ENDINGS) == ".csv" else _write_parquet
    write(similarity, path)


def similarity_from_frame(frame: Any, source: str = "similarity") -> Similarity:
    """Take a data frame as a table of similarities.

    Parameters
    ----------
    frame : data frame of pandas, polars, PyArrow or any other library that narwhals supports
        One column per item. The targets are the column ``target`` or, without one, the index of
        a pandas data frame. Missing values are unknown.
    source : str
        The name of the source in the table and its rankings.

    Examples
    --------
    >>> import pandas as pd
    >>> from rankshot import similarity_from_frame
    >>> frame = pd.DataFrame({"tiger": [.9, .2], "bus": [.1, .8]}, index=["cat", "truck"])
    >>> similarity_from_frame(frame).to_rankings()
    Rankings: 2 rankings of 2 items, 2 targets, 1 source
      cat: tiger > bus
      truck: bus > tiger
    """
    table = as_frame(frame)
    if table is None:
        raise RankshotError(
            f"expected a data frame of pandas, polars or PyArrow, not {short_repr(frame)}"
        )
    columns = list(table.columns)
    as_names(columns, "columns")
    if TARGET in columns:
        targets = table[TARGET].to_list()
        table = table.drop(TARGET)
    else:
        # Only pandas has an index, and the default one only counts the rows.
        index = getattr(frame, "index", None)
        if index is None or type(index).__name__ == "RangeIndex":
            raise RankshotError(
                f"the targets must be a column named {TARGET!r} or the index; the columns are "
                f"{short_repr(columns)}"
            )
        targets = index.to_list()
    items = as_names(table.columns)
    return Similarity(frame_to_matrix(table), targets, items, source)


# ---- CSV


def _read_csv(path: Path) -> tuple[Floats, list[str], list[str]]:
    rows = read_csv_rows(path)
    line, header = next(rows)
    items = header[1:]
    if not items:
        raise RankshotError(
            f"{path}:{line}: the first line must name the items, separated by commas, not "
            f"{short_repr(header)}"
        )
    try:
        as_names(items)
    except RankshotError as error:
        raise RankshotError(f"{path}:{line}: {error}") from None
    values: dict[str, Floats] = {}
    for line, (target, *cells) in rows:
        where = f"{path}:{line}"
        if not target and not any(cells):
            # Spreadsheets write such lines for empty rows.
            continue
        if not target or target in values:
            problem = f"the target {short_repr(target)} occurs twice" if target else "no target"
            raise RankshotError(f"{where}: {problem}")
        values[target] = np.array(parse_numbers(cells, items, RULE, where, allow_missing=True))
    if not values:
        raise RankshotError(f"{path}: no line after the one that names the items")
    return np.array(list(values.values())), list(values), items


def _write_csv(similarity: Similarity, path: Path) -> None:
    with replace_file(path) as stream:
        writer = csv.writer(stream)
        writer.writerow([TARGET, *similarity.items])
        for target, row in zip(similarity.targets, similarity.values, strict=True):
            # The writer takes floats with all their digits, and None as an empty cell.
            writer.writerow([target, *np.where(np.isnan(row), None, row)])


# ---- Parquet


def _read_parquet(path: Path) -> tuple[Floats, list[str], list[str]]:
    with open_parquet(path) as file:
        n_rows, n_columns = file.metadata.num_rows, file.metadata.num_columns
        if n_rows * n_columns > MAX_CELLS:
            raise RankshotError(
                f"{path}: claims {n_rows} rows of {n_columns} columns, more than {MAX_CELLS:,} "
                "cells"
            )
        schema = file.schema_arrow
        place = _find_targets(schema, path)
        others = [j for j in range(len(schema.names)) if j != place]
        refuse_text_columns(schema, others, path, allow_missing=True)
        targets: list[str] = []
        parts: list[Floats] = [np.empty((0, len(others)))]
        for batch in file.iter_batches():
            targets += read_text_column(batch.column(place), len(targets), TARGET, path)
            parts.append(read_number_matrix(batch, others))
    return np.concatenate(parts), targets, [schema.names[j] for j in others]


def _find_targets(schema: Any, path: Path) -> int:
    """Return the position of the column that holds the targets."""
    columns = list(schema.names)
    if TARGET in columns:
        return columns.index(TARGET)
    text = [j for j, kind in enumerate(schema.types) if "string" in str(kind)]
    if len(text) != 1:
        raise RankshotError(
            f"{path}: the targets must be a column named {TARGET!r} or the only column of text; "
            f"the columns are {short_repr(columns)}"
        )
    return text[0]


def _write_parquet(similarity: Similarity, path: Path) -> None:
    arrow, parquet = import_pyarrow(), import_pyarrow("pyarrow.parquet")
    with replace_file(path) as stream:
        cells = [arrow.array(column, from_pandas=True) for column in similarity.values.T]
        columns = [arrow.array(similarity.targets), *cells]
        table = arrow.Table.from_arrays(columns, names=[TARGET, *similarity.items])
        parquet.write_table(table, stream.buffer)

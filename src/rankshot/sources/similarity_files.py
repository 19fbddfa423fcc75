"""Similarity tables in CSV and Parquet: a user's own source comes in this way."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.files import require_ending
from rankshot.core.tables import (
    TABLE_ENDINGS,
    Rule,
    open_parquet,
    open_writer,
    read_columns,
    read_table,
)
from rankshot.sources.similarity import MAX_CELLS, Similarity

TARGET = "target"
"""The name of the column that holds the targets."""
RULE = Rule("similarities must be finite numbers, or empty where unknown", allow_missing=True)


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
    require_ending(path, TABLE_ENDINGS)
    columns, n_rows = read_columns(path)
    place = 0
    if path.suffix == ".parquet":
        with open_parquet(path) as file:
            kinds = [str(kind) for kind in file.schema_arrow.types]
        texts = [j for j, kind in enumerate(kinds) if "string" in kind]
        place = columns.index(TARGET) if TARGET in columns else texts[0] if len(texts) == 1 else -1
    others = [j for j in range(len(columns)) if j != place]
    if place < 0 or not others:
        raise RankshotError(
            f"{path}: the columns must be the targets and the items, not {quote_names(columns)}; "
            f"in CSV they are separated by commas, in Parquet the targets are {TARGET!r} or the "
            "only column of text"
        )
    if (n_rows or 0) * len(columns) > MAX_CELLS:
        raise RankshotError(f"{path}: {n_rows} rows of {len(columns)} columns, too many to hold")
    table = read_table(path, [place], others, rule=RULE)
    # Spreadsheets write lines without anything for empty rows.
    is_used = np.array(table.texts[0], bool) | ~np.isnan(table.numbers).all(axis=1)
    targets: set[str] = set()
    for row in np.flatnonzero(is_used).tolist():
        name = table.texts[0][row]
        if not name or name in targets:
            problem = f"the target {short_repr(name)} occurs twice" if name else "no target"
            raise RankshotError(f"{table.where(row)}: {problem}")
        targets.add(name)
    try:
        names = [name for name in table.texts[0] if name]
        items = [columns[j] for j in others]
        return Similarity(table.numbers[is_used], names, items, source or path.stem)
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
    require_ending(path, TABLE_ENDINGS)
    with open_writer(path, [TARGET, *similarity.items]) as put:
        put([similarity.targets], similarity.values)

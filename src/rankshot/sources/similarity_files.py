"""Similarity tables from CSV, Parquet and data frames; hit counts of a search engine.

A user's own source comes in this way: a spreadsheet of ratings, similarities that another program
computed, or a table from a notebook.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.files import require_ending
from rankshot.core.tables import (
    TABLE_ENDINGS,
    Rule,
    as_frame,
    frame_to_matrix,
    open_parquet,
    open_writer,
    read_columns,
    read_table,
)
from rankshot.core.validation import as_names
from rankshot.sources.associations import HitMeasure, resolve_measure
from rankshot.sources.similarity import Similarity

TARGET = "target"
"""The name of the column that holds the targets."""
MAX_CELLS = 2**28
"""Cells in a table: a Parquet file of a few bytes can claim any number."""
RULE = Rule("similarities must be finite numbers, or empty where unknown", allow_missing=True)
HIT_COLUMNS = (TARGET, "item", "n_target", "n_item", "n_both")
HIT_RULE = Rule("counts must be finite numbers, at least 0")


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
    require_ending(path, TABLE_ENDINGS)
    columns, n_rows = read_columns(path)
    if (n_rows or 0) * len(columns) > MAX_CELLS:
        raise RankshotError(
            f"{path}: has {n_rows} rows of {len(columns)} columns, too many to hold"
        )
    place = 0 if path.suffix == ".csv" else _find_targets(path)
    others = [j for j in range(len(columns)) if j != place]
    if not others:
        raise RankshotError(
            f"{path}: the columns must be the targets and the items, not {quote_names(columns)}; "
            "in CSV they are separated by commas"
        )
    try:
        items = as_names([columns[j] for j in others])
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None
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
        values = table.numbers[is_used]
        return Similarity(values, names, items, path.stem if source is None else source)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def _find_targets(path: Path) -> int:
    """Return the position of the column of a Parquet file that holds the targets."""
    with open_parquet(path) as file:
        columns, kinds = file.schema_arrow.names, file.schema_arrow.types
    texts = [j for j, kind in enumerate(kinds) if "string" in str(kind)]
    if TARGET not in columns and len(texts) != 1:
        raise RankshotError(
            f"{path}: the targets must be a column named {TARGET!r} or the only column of text; "
            f"the columns are {quote_names(columns)}"
        )
    return columns.index(TARGET) if TARGET in columns else texts[0]


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
    >>> from rankshot.sources import similarity_from_frame
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


def read_hit_counts(
    path: str | Path, total: float | None = None, measure: HitMeasure = "dice"
) -> Similarity:
    r"""Read hit counts from CSV or Parquet as a similarity table.

    Parameters
    ----------
    path : str or Path
        Has the columns ``target``, ``item``, ``n_target``, ``n_item`` and ``n_both``, in any order;
        other columns are ignored. Every row holds one pair. A pair that is not in the file is
        unknown. The file's name becomes the source.
    total : float, optional
        How many pages the engine searches; Dice does not need it.
    measure : {"dice", "pmi", "nwd"}
        As for `Similarity.from_hit_counts`.

    Raises
    ------
    RankshotError
        Names the file and the line of a cell that is not a count, of counts that are impossible
        (more hits together than alone), of a pair that occurs twice, and of a name that has
        different counts in two lines.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot.sources import read_hit_counts
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flickr.csv"
    ...     lines = ["target,item,n_target,n_item,n_both",
    ...              "cat,tiger,1000,400,140", "cat,bus,1000,3000,20"]
    ...     _ = path.write_text("\n".join(lines))
    ...     read_hit_counts(path).to_rankings()
    Rankings: 1 ranking of 2 items, 1 target, 1 source
      cat: tiger > bus
    """
    path = Path(path)
    resolve_measure(measure, total)
    # The hits of each name alone, and where they are from; then those of each pair.
    targets: dict[str, tuple[float, str]] = {}
    items: dict[str, tuple[float, str]] = {}
    both: dict[tuple[str, str], float] = {}
    table = read_table(path, HIT_COLUMNS[:2], HIT_COLUMNS[2:], rule=HIT_RULE, strip=True)
    names = zip(table.require_text(0), table.require_text(1), strict=True)
    for row, (pair, counts) in enumerate(zip(names, table.numbers.tolist(), strict=True)):
        where, together = table.where(row), counts[2]
        if min(counts) < 0:
            raise RankshotError(f"{where}: {min(counts):.16g} is negative; {HIT_RULE.text}")
        if pair in both:
            raise RankshotError(f"{where}: the pair {pair[0]!r} and {pair[1]!r} occurs twice")
        for name, count, known in zip(pair, counts, (targets, items), strict=False):
            before, place = known.setdefault(name, (count, where))
            for is_odd, problem in (
                (together > count, f"but {together:.16g} together with the other name"),
                (count > (total or np.inf), f"more than the total of {total}"),
                (before != count, f"but {before:.16g} in {place}"),
            ):
                if is_odd:
                    raise RankshotError(f"{where}: {count:.16g} hits of {name!r}, {problem}")
        both[pair] = together
    if len(targets) * len(items) > MAX_CELLS:
        raise RankshotError(f"{path}: {len(targets)} rows of {len(items)} items, too many to hold")
    n_both = np.full((len(targets), len(items)), np.nan)
    row_of = {name: i for i, name in enumerate(targets)}
    column_of = {name: j for j, name in enumerate(items)}
    for (target, item), count in both.items():
        n_both[row_of[target], column_of[item]] = count
    return Similarity.from_hit_counts(
        [count for count, _ in targets.values()],
        [count for count, _ in items.values()],
        n_both,
        total,
        targets=targets,
        items=items,
        measure=measure,
        source=path.stem,
    )

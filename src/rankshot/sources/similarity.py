"""`Similarity`, a named table of similarities (targets by items); its means and its files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.columns import NumberCheck, open_table
from rankshot.core.errors import (
    InputError,
    RankshotError,
    prefix_errors,
    quote_names,
    suggest_name,
)
from rankshot.core.files import require_ending
from rankshot.core.tables import TABLE_ENDINGS
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings

Floats = NDArray[np.float64]
TARGET = "target"
"""The name of the column that holds the targets."""
RULE = NumberCheck(
    "similarities must be finite numbers, or empty where unknown", allow_missing=True
)


@dataclass(frozen=True, eq=False)
class Similarity:
    """A table of similarities between targets and items; larger values mean more similar.

    Unknown values are NaN: a whole row for an unknown target, a whole column for an unknown item,
    or a single cell. No row or column is dropped; `unknown_targets`, `unknown_items` and
    `coverage` report what is missing.

    Parameters
    ----------
    values : array-like of shape (targets, items)
        Finite numbers, or NaN if the similarity is unknown.
    targets, items : iterables of names
        The names of the rows and of the columns.
    source : str
        Where the numbers come from; rankings made from the table keep it.
    notes : tuple of str
        Remarks of the source, such as which sense of a word was chosen. Names that the source
        does not know are not repeated there; see `unknown_targets` and `unknown_items`.

    Examples
    --------
    >>> import rankshot as rs
    >>> table = rs.Similarity([[.9, .2, .2]], ["cat"], ["tiger", "bus", "whale"], source="me")
    >>> table.to_rankings()
    Rankings: 1 ranking of 3 items, 1 target, 1 source
      cat: tiger > bus = whale
    """

    values: Floats
    targets: tuple[str, ...]
    items: tuple[str, ...]
    source: str
    notes: tuple[str, ...] = field(repr=False)

    def __init__(
        self,
        values: ArrayLike,
        targets: Iterable[object],
        items: Iterable[object],
        source: str = "similarity",
        notes: Iterable[str] = (),
    ) -> None:
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        n, m = len(target_names), len(item_names)
        try:
            table = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            table = np.empty(0)
        if table.shape != (n, m):
            raise InputError("values", values, f"must be a table of {n} x {m} numbers")
        if np.isinf(table).any():
            row, column = np.argwhere(np.isinf(table))[0]
            where = f"{target_names[row]!r} and {item_names[column]!r}"
            raise InputError("values", table[row, column], "must be finite", where=where)
        table.flags.writeable = False
        names = {"targets": target_names, "items": item_names}
        vars(self).update(names, values=table, source=source, notes=tuple(notes))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Similarity):
            return NotImplemented
        own, others = ((one.targets, one.items, one.source) for one in (self, other))
        return own == others and np.array_equal(self.values, other.values, equal_nan=True)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, pair: tuple[str, str]) -> float:
        """Return the similarity of a target and an item, by name."""
        target, item = pair
        return float(self.select([target], [item]).values[0, 0])

    @property
    def unknown_targets(self) -> tuple[str, ...]:
        """Targets without any known similarity."""
        return tuple(self.targets[i] for i in np.flatnonzero(np.isnan(self.values).all(axis=1)))

    @property
    def unknown_items(self) -> tuple[str, ...]:
        """Items without any known similarity."""
        return tuple(self.items[j] for j in np.flatnonzero(np.isnan(self.values).all(axis=0)))

    @property
    def coverage(self) -> float:
        """The share of cells whose similarity is known."""
        return float(np.isfinite(self.values).mean())

    def rescale(self) -> Similarity:
        """Rescale all values to [0, 1]: the smallest becomes 0, the largest 1.

        If all values are equal, they become 1.
        """
        known = self.values[np.isfinite(self.values)]
        if known.size == 0:
            return self
        low, high = float(known.min()), float(known.max())
        values = (self.values - low) / (high - low) if high > low else self.values * 0 + 1
        return Similarity(values, self.targets, self.items, self.source, self.notes)

    def select(self, targets: Iterable[object], items: Iterable[object]) -> Similarity:
        """Return the rows and columns of the given names, in the given order."""
        wanted = {"targets": as_names(targets, "targets"), "items": as_names(items)}
        for (kind, names), known in zip(wanted.items(), (self.targets, self.items), strict=True):
            if absent := [name for name in names if name not in known]:
                hint = suggest_name(absent[0], known)
                raise InputError(kind, absent[0], f"is not in the table{hint}")
        return self.reindex(**wanted)

    def reindex(self, targets: Iterable[object], items: Iterable[object]) -> Similarity:
        """Return the rows and columns of the given names; names not in the table get NaN."""
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        row = {name: i for i, name in enumerate(self.targets)}
        column = {name: j for j, name in enumerate(self.items)}
        # The last row and the last column are those of unknown names.
        padded = np.pad(self.values, (0, 1), constant_values=np.nan)
        rows = [row.get(name, -1) for name in target_names]
        columns = [column.get(name, -1) for name in item_names]
        values = padded[np.ix_(rows, columns)]
        return Similarity(values, target_names, item_names, self.source, self.notes)

    def to_rankings(self, k: int | None = None) -> Rankings:
        """Rank the items of each target (the first ``k``), most similar first; equal ones are tied.

        A target with unknown similarities gets a subset ranking: those items were not compared.
        A target without any known similarity gets no ranking; `unknown_targets` names it.
        """
        known = np.isfinite(self.values)
        rows = np.flatnonzero(known.any(axis=1))
        if rows.size == 0:
            targets = quote_names(self.targets)
            raise RankshotError(f"{self.source} has no similarities for the targets {targets}")
        return Rankings.from_scores(
            self.values[rows],
            items=self.items,
            k=k,
            targets=[self.targets[row] for row in rows],
            sources=self.source,
            kind=np.where(known[rows].all(axis=1), "top", "subset").tolist(),
        )


# ---- Means of several tables


def arithmetic_mean(tables: Sequence[Similarity]) -> Similarity:
    """Average similarity tables, each rescaled to [0, 1], as Hamm and Belkin (2015) do.

    A cell is the mean over the sources in which it is known.

    Parameters
    ----------
    tables : sequence of Similarity
        Tables with the same targets and items.

    Examples
    --------
    >>> import rankshot as rs
    >>> one = rs.Similarity([[0, 1, 2]], ["cat"], ["bus", "fox", "tiger"])
    >>> two = rs.Similarity([[10, 30, 20]], ["cat"], ["bus", "fox", "tiger"])
    >>> rs.sources.arithmetic_mean([one, two]).values
    array([[0.  , 0.75, 0.75]])
    """
    return _merge_tables(tables, "arithmetic mean", lambda scaled: scaled)


def geometric_mean(tables: Sequence[Similarity]) -> Similarity:
    """Return the geometric mean of similarity tables, each rescaled to [0, 1].

    Rescaling makes the smallest value of every source 0, and a single 0 would make the mean 0
    regardless of the other sources. So a 0 is replaced by half of that source's smallest positive
    value: it remains the smallest value, but does not override the other sources.

    Parameters
    ----------
    tables : sequence of Similarity
        Tables with the same targets and items.

    Examples
    --------
    >>> import rankshot as rs
    >>> one = rs.Similarity([[0, 1, 2]], ["cat"], ["bus", "fox", "tiger"])
    >>> two = rs.Similarity([[10, 30, 20]], ["cat"], ["bus", "fox", "tiger"])
    >>> rs.sources.geometric_mean([one, two]).values.round(3)
    array([[0.25 , 0.707, 0.707]])
    """

    def take_logs(scaled: Floats) -> Floats:
        least = np.min(scaled, where=scaled > 0, initial=2.0) / 2
        return np.log(np.where(scaled == 0, least, scaled))

    logs = _merge_tables(tables, "geometric mean", take_logs)
    return Similarity(np.exp(logs.values), logs.targets, logs.items, logs.source)


def _merge_tables(
    tables: Sequence[Similarity], name: str, transform: Callable[[Floats], Floats]
) -> Similarity:
    if not isinstance(tables, Sequence) or not tables:
        raise InputError("tables", tables, "must be a list of Similarity tables, at least one")
    first = tables[0]
    values = np.stack(
        [transform(table.select(first.targets, first.items).rescale().values) for table in tables]
    )
    count = np.isfinite(values).sum(axis=0)
    # Summed from the smallest value up, so that rounding does not depend on the order of the
    # sources and breaks no tie.
    total = np.nansum(np.sort(values, axis=0), axis=0)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return Similarity(mean, first.targets, first.items, source=name)


# ---- Files: a user's own source comes in this way


def read_similarity(path: str | Path, source: str | None = None) -> Similarity:
    r"""Read a table of similarities from CSV or Parquet.

    Parameters
    ----------
    path : str or Path
        In CSV, the first line names the items and the first column holds the targets (its own
        heading does not matter). In Parquet, the targets are the column ``target`` or, without
        one, the first column. An empty cell means that the similarity is unknown.
    source : str, optional
        The name of the source; by default the file's name without its extension.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     _ = path.write_text("class,tiger,bus\ncat,0.9,0.1\ntruck,0.2,\n")
    ...     table = rs.sources.read_similarity(path)
    >>> table.source, table.values.tolist()
    ('people', [[0.9, 0.1], [0.2, nan]])
    """
    path = Path(path)
    require_ending(path, TABLE_ENDINGS)
    table = open_table(path)
    has_name = path.suffix == ".parquet" and TARGET in table.columns
    target = TARGET if has_name else table.columns[0]
    items = [name for name in table.columns if name != target]
    names, values = table.read_texts(target)[0], table.read_numbers(items, RULE)
    # Spreadsheets write lines without anything for empty rows.
    is_used = np.array(names, bool) | ~np.isnan(values).all(axis=1)
    targets = [names[row] for row in np.flatnonzero(is_used)]
    with prefix_errors(path):
        return Similarity(values[is_used], targets, items, source or path.stem)

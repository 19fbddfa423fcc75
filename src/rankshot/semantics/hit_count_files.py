"""Reading the hit counts of a search engine from CSV."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.text_files import read_lines
from rankshot.semantics.associations import HitMeasure, resolve_measure
from rankshot.semantics.similarity import Similarity

COLUMNS = ("target", "item", "n_target", "n_item", "n_both")
MAX_CELLS = 1 << 27
"""A gigabyte: more is a mistake in the file, or an attack."""
Alone = dict[str, tuple[float, int]]
"""The hits of each name, and the line that gave them."""


def read_hit_counts(
    path: str | Path, total: float | None = None, measure: HitMeasure = "dice"
) -> Similarity:
    r"""Read hit counts from CSV and make a similarity table of them.

    Parameters
    ----------
    path : str or Path
        UTF-8 text whose first line names the columns ``target``, ``item``, ``n_target``,
        ``n_item`` and ``n_both``, in any order; others are passed over. One pair a line. A pair
        that no line gives is unknown. The file's name becomes the source.
    total : float, optional
        How many pages the engine searches; Dice does without it.
    measure : {"dice", "pmi", "nwd"}
        As for `Similarity.from_hit_counts`.

    Raises
    ------
    RankshotError
        Names the file and the line of what is no count, of counts that cannot be (more hits
        together than alone), and of a pair or a name that two lines count differently.

    Examples
    --------
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
    pairs = _read_pairs(path, total)
    if len(pairs.targets) * len(pairs.items) > MAX_CELLS:
        raise RankshotError(
            f"{path}: {len(pairs.targets):,} targets and {len(pairs.items):,} items make a table "
            "too large to hold"
        )
    n_ab = np.full((len(pairs.targets), len(pairs.items)), np.nan)
    row = {name: i for i, name in enumerate(pairs.targets)}
    column = {name: j for j, name in enumerate(pairs.items)}
    for (target, item), both in pairs.both.items():
        n_ab[row[target], column[item]] = both
    return Similarity.from_hit_counts(
        [count for count, _ in pairs.targets.values()],
        [count for count, _ in pairs.items.values()],
        n_ab,
        total,
        targets=pairs.targets,
        items=pairs.items,
        measure=measure,
        source=path.stem,
    )


@dataclass
class _Pairs:
    targets: Alone = field(default_factory=dict)
    items: Alone = field(default_factory=dict)
    both: dict[tuple[str, str], float] = field(default_factory=dict)


def _read_pairs(path: Path, total: float | None) -> _Pairs:
    pairs = _Pairs()
    places: list[int] | None = None
    width = 0
    for number, line in read_lines(path):
        where = f"{path}:{number}"
        cells = _cells(line, where)
        if places is None:
            places, width = _column_places(cells, where), len(cells)
        elif len(cells) != width:
            raise RankshotError(f"{where}: {len(cells)} cells where the first line has {width}")
        else:
            _add_pair(pairs, [cells[place] for place in places], total, where, number)
    if not pairs.both:
        raise RankshotError(f"{path}: no hit counts in it")
    return pairs


def _cells(line: str, where: str) -> list[str]:
    try:
        return [cell.strip() for cell in next(csv.reader([line], strict=True))]
    except csv.Error as error:
        raise RankshotError(f"{where}: not CSV ({error}): {short_repr(line)}") from None


def _column_places(header: list[str], where: str) -> list[int]:
    for name in COLUMNS:
        if header.count(name) != 1:
            problem = "no column" if name not in header else "more than one column"
            raise RankshotError(f"{where}: {problem} {name!r} in {short_repr(header)}")
    return [header.index(name) for name in COLUMNS]


def _add_pair(
    pairs: _Pairs, cells: list[str], total: float | None, where: str, number: int
) -> None:
    target, item = cells[:2]
    for name, what in ((target, "target"), (item, "item")):
        if not name:
            raise RankshotError(f"{where}: the {what} has no name")
    n_target, n_item, n_both = (
        _count(cell, what, where) for cell, what in zip(cells[2:], COLUMNS[2:], strict=True)
    )
    for name, count, known in ((target, n_target, pairs.targets), (item, n_item, pairs.items)):
        if n_both > count:
            raise RankshotError(
                f"{where}: {n_both:.16g} hits of {target!r} with {item!r} but {count:.16g} of "
                f"{name!r} alone"
            )
        if total is not None and count > total:
            raise RankshotError(f"{where}: {count:.16g} hits of {name!r} of {total:.16g} in all")
        before, line = known.setdefault(name, (count, number))
        if before != count:
            raise RankshotError(
                f"{where}: {count:.16g} hits of {name!r}, but {before:.16g} in line {line}"
            )
    if (target, item) in pairs.both:
        raise RankshotError(f"{where}: {target!r} with {item!r} once more")
    pairs.both[target, item] = n_both


def _count(cell: str, what: str, where: str) -> float:
    try:
        count = float(cell)
    except ValueError:
        count = np.nan
    if not (np.isfinite(count) and count >= 0):
        raise RankshotError(f"{where}: {what} must be a count, not {short_repr(cell)}")
    return count

"""Hit counts of a search engine, read from CSV as a similarity table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from rankshot.core.errors import RankshotError
from rankshot.core.tables import find_column, parse_numbers, read_csv_rows
from rankshot.sources.associations import HitMeasure, resolve_measure
from rankshot.sources.similarity import Similarity

COLUMNS = ("target", "item", "n_target", "n_item", "n_both")
RULE = "counts must be finite numbers, at least 0"
MAX_CELLS = 1 << 27
"""A gigabyte: more is a mistake in the file, or an attack."""
Alone = dict[str, tuple[float, int]]
"""The hits of each name, and the line that gave them."""


def read_hit_counts(
    path: str | Path, total: float | None = None, measure: HitMeasure = "dice"
) -> Similarity:
    r"""Read hit counts from CSV as a similarity table.

    Parameters
    ----------
    path : str or Path
        UTF-8 text whose first line names the columns ``target``, ``item``, ``n_target``,
        ``n_item`` and ``n_both``, in any order; other columns are ignored. Every other line holds
        one pair. A pair that is not in the file is unknown. The file's name becomes the source.
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
    >>> from rankshot import read_hit_counts
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
    rows = read_csv_rows(path)
    header = [cell.strip() for cell in next(rows)[1]]
    places = [find_column(header, name, path) for name in COLUMNS]
    for number, row in rows:
        cells = [row[place].strip() for place in places]
        _add_pair(pairs, cells, total, f"{path}:{number}", number)
    if not pairs.both:
        raise RankshotError(f"{path}: no hit counts in it")
    return pairs


def _add_pair(
    pairs: _Pairs, cells: list[str], total: float | None, where: str, number: int
) -> None:
    target, item = cells[:2]
    for name, what in ((target, "target"), (item, "item")):
        if not name:
            raise RankshotError(f"{where}: the {what} has no name")
    counts = parse_numbers(cells[2:], COLUMNS[2:], RULE, where)
    if min(counts) < 0:
        negative = counts.index(min(counts)) + 2
        raise RankshotError(f"{where}: {COLUMNS[negative]!r} is {cells[negative]!r}; {RULE}")
    n_target, n_item, n_both = counts
    for name, count, known in ((target, n_target, pairs.targets), (item, n_item, pairs.items)):
        if n_both > count:
            raise RankshotError(
                f"{where}: {n_both:.16g} hits of {target!r} with {item!r} but {count:.16g} of "
                f"{name!r} alone"
            )
        if total is not None and count > total:
            raise RankshotError(
                f"{where}: {count:.16g} hits of {name!r}, more than the total of {total:.16g}"
            )
        before, line = known.setdefault(name, (count, number))
        if before != count:
            raise RankshotError(
                f"{where}: {count:.16g} hits of {name!r}, but {before:.16g} in line {line}"
            )
    if (target, item) in pairs.both:
        raise RankshotError(f"{where}: the pair {target!r} and {item!r} occurs twice")
    pairs.both[target, item] = n_both

"""Names of classes in files that belong together: other spellings are matched to the columns.

The columns of a table of scores keep their names. Rankings, similarities, a reference and true
classes may spell them in another way. Exact names cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, UnknownItemError, format_count

if TYPE_CHECKING:
    from rankshot.ranking.rankings import Rankings
    from rankshot.zeroshot.files.score_tables import ScoreTable


def match_columns(
    names: Iterable[str], table: ScoreTable, where: Path, *, quiet: bool = False
) -> dict[str, str]:
    """Return the column that each name means, for names that are not columns; print an example.

    Names that mean no column, or several, are left out. ``where`` is the file of the names.
    """
    from rankshot.zeroshot.files.score_tables import find_columns

    found = find_columns(names, table, where)
    if not quiet:
        say_matched(found, table, where)
    return found


def say_matched(found: dict[str, str], table: ScoreTable, where: Path) -> None:
    """Print how many names were matched to columns of another spelling, and an example."""
    if found:
        name, column = next(iter(found.items()))
        say(
            f"{where}: {format_count(len(found), 'name')} matched to the columns of {table.path}, "
            f"for example {name!r} to {column!r}"
        )


def read_rankings_of(path: Path, table: ScoreTable, *, quiet: bool = False) -> Rankings:
    """Read rankings of the classes of a table of scores."""
    from rankshot.ranking import read_rankings

    try:
        return read_rankings(path, items=table.items)
    except UnknownItemError as error:
        problem = error
    found = read_rankings(path)
    # A target that is no item is a new class, even if a seen class has its name as a synonym.
    rankings = rename(found, match_columns(found.items, table, path, quiet=quiet))
    columns = f"items must be columns of {table.path}"
    if rankings is found:
        raise RankshotError(f"{problem}; {columns}") from None
    try:
        return rankings.change_items(table.items)
    except UnknownItemError as error:
        raise RankshotError(f"{path}: {error}; {columns}") from None


def rename(rankings: Rankings, column_of: dict[str, str]) -> Rankings:
    """Return rankings with other names of some items and targets."""
    from rankshot.core.tables import as_text_array
    from rankshot.zeroshot.files.score_tables import rename_all

    if not column_of:
        return rankings
    targets = [column_of.get(name, name) for name in rankings.targets]
    return replace(
        rankings, items=rename_all(rankings.items, column_of), targets=as_text_array(targets)
    )

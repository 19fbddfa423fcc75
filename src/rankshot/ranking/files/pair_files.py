"""Files of pairs: tables of votes between two items, in CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.files import as_path, require_ending
from rankshot.core.tables import (
    TABLE_ENDINGS,
    find_column,
    import_pyarrow,
    open_parquet,
    read_csv_rows,
)
from rankshot.ranking.construction import Where
from rankshot.ranking.rankings import Rankings

TIE_WORDS = ("tie", "draw", "tie (bothbad)", "both_bad")
"""What tables of votes between language models write for a tie, and sports tables."""
HELP_WITH_BALLOTS = (
    "Ballots of a spreadsheet, one row per person, become rankings in a few lines of Python: with "
    "Rankings.from_orders if there is a column for each place, with Rankings.from_positions if "
    "there is one for each item. The page 'I have rankings' of the guide has both to copy"
)
YES_OR_NO = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def read_pairs(
    path: str | Path,
    items: Iterable[Any] | None = None,
    *,
    first: str = "model_a",
    second: str = "model_b",
    winner: str = "winner",
    loser: str = "loser",
    tie: str = "tie",
    tie_words: Sequence[str] = TIE_WORDS,
    weight: str = "weight",
    rater: str = "rater",
) -> Rankings:
    r"""Read a table of votes between two items, from CSV or Parquet, as subset rankings.

    A table has one of two forms. If it has the column ``loser``, a row names the winner and the
    loser, and a column ``tie``, where there is one, says whether they tied. Otherwise a row names
    two items and who won: ``winner`` holds the name of one of the two columns, one of the two
    items, or a word for a tie. Blanks around names do not count.

    Parameters
    ----------
    path : str or Path
        A .csv file, whose first line names the columns, or a .parquet file.
    items : iterable of names, optional
        All items, in the order wanted. By default those that occur, sorted.
    first, second, winner, loser, tie : str
        The names of the columns.
    tie_words : sequence of str
        What stands for a tie in the column ``winner`` of the second form, in any case.
    weight, rater : str
        The names of two columns that may be left out: how often a vote counts, and who gave it.
        Other columns are ignored.

    Raises
    ------
    RankshotError
        If the file cannot be read; the message names the file and the line or row.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.csv"
    ...     _ = path.write_text("model_a,model_b,winner\nant,bee,model_b\nbee,cat,tie\n")
    ...     rs.read_pairs(path)
    Rankings: 2 rankings of 3 items
      bee > ant (subset)
      bee = cat (subset)
    """
    path = as_path(path)
    ending = require_ending(path, TABLE_ENDINGS)
    if ending == ".csv":
        table = _read_csv(path)
    else:
        table = _read_parquet(path, {first, second, winner, loser, tie, weight, rater})
    weights = _weights(table, weight) if table.has(weight, default="weight") else None
    raters = _labels(table, rater) if table.has(rater, default="rater") else None
    if table.has(loser, default="loser"):
        pairs = table.column(winner), table.column(loser)
        _refuse_sides(table, *pairs, winner, tie_words)
        ties = _yes_or_no(table, tie) if table.has(tie, default="tie") else None
    else:
        winners, losers, ties = _decide(table, first, second, winner, tie_words)
        pairs = winners, losers
    return Rankings.from_pairs(
        *pairs, items=items, ties=ties, weights=weights, raters=raters, where=table.where
    )


class _Table(NamedTuple):
    """The cells of a table as text, an empty text for a missing one."""

    path: Path
    names: list[str]
    columns: dict[str, list[str]]
    where: Where

    def has(self, name: str, *, default: str) -> bool:
        """Whether there is such a column; one that was asked for by name must be there."""
        return name != default or name in self.names

    def column(self, name: str) -> list[str]:
        """Return a column that has no empty cell."""
        cells = self.cells(name)
        if "" in cells:
            raise RankshotError(f"{self.where(cells.index(''))}: {name!r} is empty")
        return cells

    def cells(self, name: str) -> list[str]:
        """Return a column whose cells may be empty, without blanks around them."""
        column = self.columns[self.names[find_column(self.names, name, self.path)]]
        return [cell.strip() for cell in column]


def _read_csv(path: Path) -> _Table:
    with closing(read_csv_rows(path)) as rows:
        _, head = next(rows)
        names = [name.strip() for name in head]
        _refuse_separator(names, path)
        numbered = list(rows)
    lines = [line for line, _ in numbered]
    _require_rows(len(lines), path)
    columns = map(list, zip(*(row for _, row in numbered), strict=True))
    return _Table(
        path, names, dict(zip(names, columns, strict=True)), lambda row: f"{path}:{lines[row]}"
    )


def _read_parquet(path: Path, wanted: set[str]) -> _Table:
    """Read the columns that are wanted: others can hold whole conversations."""
    arrow = import_pyarrow()
    columns = []
    with open_parquet(path) as file:
        _require_rows(file.metadata.num_rows, path)
        names = file.schema_arrow.names
        for name in wanted.intersection(names):
            find_column(names, name, path)
            cells = file.read(columns=[name]).column(name)
            if arrow.types.is_nested(cells.type):
                raise RankshotError(f"{path}: column {name!r} holds {cells.type}, not names")
            columns.append((name, cells.cast(arrow.string()).fill_null("").to_pylist()))
    return _Table(path, names, dict(columns), lambda row: f"{path}: row {row}")


def _require_rows(count: int, path: Path) -> None:
    if count == 0:
        raise RankshotError(f"{path}: no pairs in it")


def _refuse_separator(names: list[str], path: Path) -> None:
    for separator in (";", "\t"):
        if len(names) == 1 and separator in names[0]:
            raise RankshotError(
                f"{path}: the first line has {separator!r} between its names; the columns of a CSV "
                "file are separated by commas"
            )


def _refuse_sides(
    table: _Table, winners: list[str], losers: list[str], winner: str, tie_words: Sequence[str]
) -> None:
    """Refuse winners that are sides or ties: such a table has two items and no loser."""
    words = {*table.names, *(word.lower() for word in tie_words)}
    for name in dict.fromkeys(winners):
        if (name in words or name.lower() in words) and name not in losers:
            raise RankshotError(
                f"{table.where(winners.index(name))}: {winner!r} is {name!r}, which is no item but "
                "a column or a tie. Name the columns of the two items and of the winner with "
                "first=, second= and winner=, and leave out loser="
            )


def _decide(
    table: _Table, first: str, second: str, winner: str, tie_words: Sequence[str]
) -> tuple[list[str], list[str], list[bool]]:
    """Return the winner and the loser of each row, and whether it is a tie."""
    missing = [name for name in (first, second, winner) if name not in table.names]
    if missing:
        # A table that has none of the columns may be none of votes.
        ballots = f". {HELP_WITH_BALLOTS}" if len(missing) == 3 else ""
        raise RankshotError(
            f"{table.path}: no column {missing[0]!r}; the columns are {quote_names(table.names)}. "
            "For votes between two items, name the columns of the two items and of the winner with "
            "first=, second= and winner=, or those of the winner and the loser with winner= and "
            f"loser={ballots}"
        )
    ties = {word.lower() for word in tie_words}
    winners, losers, tied = [], [], []
    sides = table.column(first), table.column(second), table.column(winner)
    for row, (a, b, outcome) in enumerate(zip(*sides, strict=True)):
        is_tie = outcome.lower() in ties and outcome not in (a, b)
        second_won = outcome in (second, b)
        if not is_tie and second_won == (outcome in (first, a)):
            raise RankshotError(
                f"{table.where(row)}: {winner!r} is {short_repr(outcome)}; expected {first!r}, "
                f"{second!r}, {a!r}, {b!r} or a tie ({quote_names(tie_words)})"
            )
        winners.append(b if second_won else a)
        losers.append(a if second_won else b)
        tied.append(is_tie)
    return winners, losers, tied


def _yes_or_no(table: _Table, name: str) -> list[bool]:
    cells = [cell.lower() for cell in table.column(name)]
    for row, cell in enumerate(cells):
        if cell not in YES_OR_NO:
            raise RankshotError(
                f"{table.where(row)}: {name!r} is {short_repr(cell)}; expected true or false"
            )
    return [YES_OR_NO[cell] for cell in cells]


def _weights(table: _Table, name: str) -> list[float]:
    numbers = []
    for row, cell in enumerate(table.column(name)):
        try:
            numbers.append(float(cell))
        except ValueError:
            raise RankshotError(
                f"{table.where(row)}: {name!r} is {short_repr(cell)}; expected a number"
            ) from None
    return numbers


def _labels(table: _Table, name: str) -> list[str | None]:
    """Return a column of names; nobody is named by an empty cell."""
    return [cell or None for cell in table.cells(name)]

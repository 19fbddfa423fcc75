"""Tables of scores, as commands read them: their type, their inputs, and names of their columns.

The columns of a table of scores keep their names. Rankings, similarities, a reference and true
classes may spell them in another way. Exact names cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from rankshot import ranking, zeroshot
from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, UnknownItemError, format_count, quote_names

if TYPE_CHECKING:
    from rankshot.zeroshot.files.score_tables import ScoreTable


ScoreType = Literal[
    "auto",
    "logits",
    "probabilities",
    "one-vs-rest-logits",
    "one-vs-rest-probabilities",
    "one-vs-one",
]
"""What the numbers in a table of scores are: the choices of --score-type."""


def infer_score_type(table: ScoreTable, given: ScoreType, values: Any = None) -> ScoreTable:
    """Return a table with the type that was given or, for auto, that of the first rows; print it.

    ``values`` are the first rows, if they are not in the table.
    """
    from rankshot.zeroshot.files.score_tables import AUTO, LOGITS, guess_score_type

    if given != AUTO or table.score_type != AUTO:
        return table if given == AUTO else replace(table, score_type=given)
    if values is None:
        values = next(table.batches())[1].values
    score_type = guess_score_type(values, table)
    remark = "see --score-type"
    if score_type == LOGITS and values.min() >= 0 and values.max() <= 1:
        remark = (
            "although all are between 0 and 1: if they are probabilities whose rows do not add up "
            "to 1 because they were rounded, write more digits; if each is the probability of a "
            "separate yes-no question, give --score-type one-vs-rest-probabilities"
        )
    say(f"{table.path}: the scores are interpreted as {score_type} ({remark})")
    return replace(table, score_type=score_type)


def read_scores(table: ScoreTable) -> tuple[list[str], zeroshot.Scores]:
    """Return all ids, or row numbers in a table without ids, and all scores with features."""
    names, batches = zip(*table.inputs(features=True), strict=True)
    return [*chain.from_iterable(names)], zeroshot.Scores.concatenate(batches)


def find_rows(
    table: ScoreTable, ids: Collection[str], where: Callable[[str], str] = lambda _: "input "
) -> dict[str, zeroshot.Scores]:
    """Return the scores of some inputs, in the order of the table.

    In a table without ids, the id of an input is the number of its row. ``where`` says how an
    error about an id begins.
    """
    found: dict[str, zeroshot.Scores] = {}
    for names, batch in table.inputs(features=True):
        for i, name in enumerate(names):
            if name in ids and name not in found:
                found[name] = batch[[i]]
        if len(found) == len(ids):
            return found
    missing = [name for name in ids if name not in found]
    rule = "without a column id, inputs are numbered from 0"
    if table.has_ids:
        rule = f"the first ids are {quote_names(read_first_ids(table, 3))}"
    raise RankshotError(
        f"{where(missing[0])}{quote_names(missing)} not found in {table.path}; {rule}"
    )


def read_first_ids(table: ScoreTable, n: int) -> Sequence[str]:
    """Return the ids of the first n inputs, or their row numbers in a table without ids."""
    return next(table.inputs())[0][:n]


# ---- Names of columns


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


def read_rankings_of(path: Path, table: ScoreTable, *, quiet: bool = False) -> ranking.Rankings:
    """Read rankings of the classes of a table of scores."""
    try:
        return ranking.read_rankings(path, items=table.items)
    except UnknownItemError as error:
        problem = error
    found = ranking.read_rankings(path)
    # A target that is not an item is a new class, even if a seen class has its name as a synonym.
    rankings = rename(found, match_columns(found.items, table, path, quiet=quiet))
    columns = f"items must be columns of {table.path}"
    if rankings is found:
        raise RankshotError(f"{problem}; {columns}") from None
    try:
        return rankings.change_items(table.items)
    except UnknownItemError as error:
        raise RankshotError(f"{path}: {error}; {columns}") from None


def rename(rankings: ranking.Rankings, column_of: dict[str, str]) -> ranking.Rankings:
    """Return rankings with other names of some items and targets."""
    from rankshot.core.tables import as_text_array
    from rankshot.zeroshot.files.score_tables import rename_all

    if not column_of:
        return rankings
    targets = [column_of.get(name, name) for name in rankings.targets]
    return replace(
        rankings, items=rename_all(rankings.items, column_of), targets=as_text_array(targets)
    )

"""The score type of a table of scores: given by the user, or inferred from the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, quote_names

if TYPE_CHECKING:
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.scores import Scores


class ScoreType(StrEnum):
    """What the numbers in a table of scores are."""

    AUTO = "auto"
    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    ONE_VS_REST_LOGITS = "one-vs-rest-logits"
    ONE_VS_REST_PROBABILITIES = "one-vs-rest-probabilities"
    ONE_VS_ONE = "one-vs-one"


ScoreTypeOption = Annotated[
    ScoreType,
    typer.Option(
        help="What the scores are. With auto, the type is inferred from the first rows and printed."
    ),
]


def infer_score_type(values: Any, table: ScoreTable) -> ScoreType:
    """Distinguish probabilities, which add up to one in every row, from logits; print the result.

    Parameters
    ----------
    values : ndarray of shape (n, columns)
        The first rows of the table.
    table : ScoreTable
        The table that they are from.
    """
    from rankshot.zeroshot.files.score_tables import guess_score_type

    score_type = ScoreType(guess_score_type(values, table))
    remark = "see --score-type"
    if score_type is ScoreType.LOGITS and values.min() >= 0 and values.max() <= 1:
        remark = (
            "although all are between 0 and 1: if each is the probability of a separate yes-no "
            "question, give --score-type one-vs-rest-probabilities"
        )
    say(f"{table.path}: the scores are taken as {score_type} ({remark})")
    return score_type


def find_inputs(
    table: ScoreTable, ids: Iterable[str], score_type: ScoreType
) -> Iterator[tuple[str, Scores]]:
    """Yield the ids and scores of some inputs, in the order of the table.

    In a table without ids, the id of an input is the number of its row. If several inputs have
    the same id, the first is taken.
    """
    from rankshot.zeroshot.files.score_tables import build_scores

    wanted = set(ids)
    first = 0
    for found, batch in table.batches():
        if score_type is ScoreType.AUTO:
            score_type = infer_score_type(batch.values, table)
        rows = range(first, first + len(batch))
        names = map(str, rows) if found is None else found
        for i, name in enumerate(names):
            if name in wanted:
                wanted.remove(name)
                yield name, build_scores(batch.values[[i]], table, score_type, [rows[i]])
        if not wanted:
            return
        first += len(batch)
    rule = "; without a column id, inputs are numbered from 0"
    if table.has_ids:
        rule = f"; the first ids are {quote_names(read_first_ids(table, 3))}"
    raise RankshotError(f"{table.path}: there is no input {quote_names(sorted(wanted))}{rule}")


def read_first_ids(table: ScoreTable, n: int) -> list[str]:
    """Return the ids of the first n inputs, or their row numbers in a table without ids."""
    ids, batch = next(table.batches())
    names = map(str, range(len(batch))) if ids is None else ids.tolist()
    return list(names)[:n]

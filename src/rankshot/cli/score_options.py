"""The score type of a table of scores: given by the user, or inferred from the numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, RowError, quote_names

if TYPE_CHECKING:
    from rankshot.zeroshot.files.score_tables import ScoreTable
    from rankshot.zeroshot.scores import Kind, Scores


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
    score_type = guess_score_type(values, table)
    remark = "see --score-type"
    if score_type is ScoreType.LOGITS and _are_shares(values):
        remark = (
            "although all are between 0 and 1: if each is the probability of a separate yes-no "
            "question, give --score-type one-vs-rest-probabilities"
        )
    say(f"{table.path}: the scores are taken as {score_type} ({remark})")
    return score_type


def guess_score_type(values: Any, table: ScoreTable) -> ScoreType:
    """Return the score type that the first rows of a table look like."""
    from rankshot.zeroshot.scores import SUM_TOLERANCE

    if table.kind == "one-vs-one":
        return ScoreType.ONE_VS_ONE
    if _are_shares(values) and (abs(values.sum(axis=1) - 1) <= SUM_TOLERANCE).all():
        return ScoreType.PROBABILITIES
    return ScoreType.LOGITS


def _are_shares(values: Any) -> bool:
    return bool(values.shape[1] > 1 and values.min() >= 0 and values.max() <= 1)


def check_score_type(
    table: ScoreTable, score_type: ScoreType, fitted: ScoreType, head: Path
) -> ScoreType:
    """Return the score type that a saved head was fitted for, unless the scores have another."""
    if score_type not in {ScoreType.AUTO, fitted}:
        raise RankshotError(
            f"--score-type {score_type}: the head in {head} was fitted for {fitted}"
        )
    found = guess_score_type(next(table.batches())[1].values, table)
    if ScoreType.ONE_VS_ONE is found is not fitted:
        raise RankshotError(
            f"{table.path}: has one column per pair of classes, and the head in {head} was fitted "
            f"for {fitted}"
        )
    if score_type is ScoreType.AUTO:
        if {found, fitted} == {ScoreType.LOGITS, ScoreType.PROBABILITIES}:
            raise RankshotError(
                f"{table.path}: the scores look like {found}, and the head in {head} was fitted "
                f"for {fitted}; if they are {fitted}, give --score-type {fitted}"
            )
        say(f"{table.path}: the scores are taken as {fitted}, for which {head} was fitted")
    return fitted


def build_scores(
    values: Any, table: ScoreTable, score_type: ScoreType, rows: Sequence[int]
) -> Scores:
    """Return the scores of some rows of a table on a logarithmic scale.

    ``rows`` are the numbers of the rows in the table, for error messages.
    """
    from rankshot.zeroshot.scores import Scores, n_columns

    kind: Kind = "one-vs-rest" if score_type.startswith("one-vs-rest") else table.kind
    if score_type is ScoreType.ONE_VS_ONE and table.kind != "one-vs-one":
        # Three classes have three pairs.
        if values.shape[1] != n_columns(len(table.items), "one-vs-one"):
            raise RankshotError(f"{table.path}: has one column per class, not one per pair")
        kind = "one-vs-one"
    if kind != table.kind == "one-vs-one":
        raise RankshotError(
            f"{table.path}: has one column per pair of classes, which --score-type {score_type} "
            "does not fit"
        )
    if not score_type.endswith("probabilities"):
        return Scores.from_validated(values, table.items, kind)
    try:
        return Scores.from_probabilities(values, table.items, kind)
    except RowError as error:
        raise RankshotError(
            f"{table.path}: row {rows[error.row]}{error.problem}; give the right --score-type "
            "(one-vs-rest-probabilities if each answers a separate yes-no question)"
        ) from None


def find_inputs(
    table: ScoreTable, ids: Iterable[str], score_type: ScoreType
) -> Iterator[tuple[str, Scores]]:
    """Yield the ids and scores of some inputs, in the order of the table.

    In a table without ids, the id of an input is the number of its row. If several inputs have
    the same id, the first is taken.
    """
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

"""What the numbers in a table of scores are, as a person says it or as they show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, quote_names
from rankshot.zeroshot.files.score_tables import ScoreTable
from rankshot.zeroshot.scores import SUM_TOLERANCE, Kind, Scores, column_name, n_columns

Floats = NDArray[np.floating]


# -------------------- cli.score_kinds
# What the numbers in a table of scores are, as a person says it or as they show.


class ScoresAre(StrEnum):
    """What the numbers in a table of scores are."""

    AUTO = "auto"
    LOGITS = "logits"
    PROBABILITIES = "probabilities"
    ONE_VS_REST_LOGITS = "one-vs-rest-logits"
    ONE_VS_REST_PROBABILITIES = "one-vs-rest-probabilities"
    ONE_VS_ONE = "one-vs-one"


ScoresAreOption = Annotated[
    ScoresAre,
    typer.Option(help="What the scores are; by default told from the first rows, and said."),
]


def told_from(values: Floats, table: ScoreTable) -> ScoresAre:
    """Tell probabilities, which add up to one in every row, from logits; say what was found."""
    are, remark = ScoresAre.LOGITS, "see --scores-are"
    if table.kind == "one-vs-one":
        are = ScoresAre.ONE_VS_ONE
    elif values.shape[1] > 1 and not _outside(values).any():
        if not _off(values).any():
            are = ScoresAre.PROBABILITIES
        else:
            remark = (
                "though all lie between 0 and 1: for answers to separate questions, say "
                "--scores-are one-vs-rest-probabilities"
            )
    say(f"{table.path}: the scores are taken as {are} ({remark})")
    return are


def as_scores_of(values: Floats, table: ScoreTable, are: ScoresAre, rows: Sequence[int]) -> Scores:
    """Return a batch, whose rows have these numbers in the table, on the scale of logarithms."""
    kind: Kind = "one-vs-rest" if are.startswith("one-vs-rest") else table.kind
    if are is ScoresAre.ONE_VS_ONE and table.kind != "one-vs-one":
        # Three classes have three pairs.
        if values.shape[1] != n_columns(len(table.items), "one-vs-one"):
            raise RankshotError(f"{table.path}: has a column for each class, not for each pair")
        kind = "one-vs-one"
    if kind != table.kind == "one-vs-one":
        raise RankshotError(
            f"{table.path}: has a column for each pair of classes, which --scores-are {are} "
            "does not fit"
        )
    if not are.endswith("probabilities"):
        return Scores.from_validated(values, table.items, kind)
    if (outside := _outside(values)).any():
        row, column = np.argwhere(outside)[0]
        name = column_name(table.items, kind, int(column))
        raise RankshotError(
            f"{table.path}: row {rows[row]}, {name}: {values[row, column]} is no probability; "
            "say what the scores are with --scores-are"
        )
    if kind == "multiclass" and (off := _off(values)).any():
        row = int(np.argmax(off))
        raise RankshotError(
            f"{table.path}: row {rows[row]}: the probabilities add up to "
            f"{values[row].sum():.3g} instead of 1; --scores-are one-vs-rest-probabilities is for "
            "those of separate questions"
        )
    return Scores.from_probabilities(values, table.items, kind)


def _outside(values: Floats) -> NDArray[np.bool_]:
    return np.asarray((values < 0) | (values > 1))


def _off(values: Floats) -> NDArray[np.bool_]:
    return np.asarray(np.abs(values.sum(axis=1) - 1) > SUM_TOLERANCE)


# -------------------- cli.input_rows
# Single inputs of a table of scores, by their ids.


def inputs_named(
    table: ScoreTable, ids: Iterable[str], are: ScoresAre
) -> Iterator[tuple[str, Scores]]:
    """Yield the scores of some inputs, in the order of the table.

    Without ids in the table, an input is named by the number of its row. Of inputs that share an
    id, the first counts.
    """
    wanted = set(ids)
    first = 0
    for found, batch in table.batches():
        are = told_from(batch.values, table) if are is ScoresAre.AUTO else are
        numbers = range(first, first + len(batch))
        names = map(str, numbers) if found is None else found
        for row, name in enumerate(names):
            if name in wanted:
                wanted.remove(name)
                yield name, as_scores_of(batch.values[[row]], table, are, [numbers[row]])
        if not wanted:
            return
        first += len(batch)
    rule = "" if table.has_ids else "; without a column id, inputs are numbered from 0"
    raise RankshotError(f"{table.path}: there is no input {quote_names(sorted(wanted))}{rule}")


def first_names(table: ScoreTable, n: int) -> list[str]:
    """Return the names of the first inputs."""
    ids, batch = next(table.batches())
    names = map(str, range(len(batch))) if ids is None else ids.tolist()
    return list(names)[:n]

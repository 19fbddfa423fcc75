"""The scores of a table as a head takes them: of the right type, for the head's seen classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, RowError, quote_names
from rankshot.sources.names.labels import read_class_labels
from rankshot.zeroshot.files.score_tables import ScoreTable
from rankshot.zeroshot.heads.base import BaseHead
from rankshot.zeroshot.scores import Kind, Scores, are_probabilities, n_columns

AUTO = "auto"
LOGITS, PROBABILITIES = "logits", "probabilities"
ONE_VS_ONE = "one-vs-one"
SCORE_TYPES = (
    *(AUTO, LOGITS, PROBABILITIES),
    *("one-vs-rest-logits", "one-vs-rest-probabilities", ONE_VS_ONE),
)
"""What the numbers in a table may be; with auto, the first rows tell."""


# -------------------------------------------------------------------- score types


def guess_score_type(values: NDArray[np.floating], table: ScoreTable) -> str:
    """Return the score type that the first rows of a table look like.

    Probabilities add up to one in every row; all others are taken as logits.
    """
    if table.kind == ONE_VS_ONE:
        return ONE_VS_ONE
    return PROBABILITIES if are_probabilities(values) else LOGITS


def require_score_type(table: ScoreTable, given: str, fitted: str, origin: str | Path) -> None:
    """Refuse a table whose scores are not of the type that a head was fitted for.

    Parameters
    ----------
    table : ScoreTable
    given : str
        The type that the user says they have, or auto.
    fitted : str
        The type that they must have.
    origin : str or Path
        The file of the head, for the message.
    """
    if given not in {AUTO, fitted}:
        raise RankshotError(f"--score-type {given}: the head in {origin} was fitted for {fitted}")
    found = guess_score_type(next(table.batches())[1].values, table)
    if found == ONE_VS_ONE != fitted:
        raise RankshotError(
            f"{table.path}: has one column per pair of classes, and the head in {origin} was "
            f"fitted for {fitted}"
        )
    if given == AUTO and {found, fitted} == {LOGITS, PROBABILITIES}:
        raise RankshotError(
            f"{table.path}: the scores look like {found}, and the head in {origin} was fitted for "
            f"{fitted}; if they are {fitted}, give --score-type {fitted}"
        )


def build_scores(
    values: NDArray[np.floating], table: ScoreTable, score_type: str, rows: Sequence[int]
) -> Scores:
    """Return the scores of some rows of a table on a logarithmic scale.

    ``rows`` are the numbers of the rows in the table, for error messages.
    """
    kind: Kind = "one-vs-rest" if score_type.startswith("one-vs-rest") else table.kind
    if score_type == ONE_VS_ONE != table.kind:
        # Three classes have three pairs.
        if values.shape[1] != n_columns(len(table.items), "one-vs-one"):
            raise RankshotError(f"{table.path}: has one column per class, not one per pair")
        kind = "one-vs-one"
    if kind != table.kind == ONE_VS_ONE:
        raise RankshotError(
            f"{table.path}: has one column per pair of classes, which --score-type {score_type} "
            "does not fit"
        )
    if not score_type.endswith(PROBABILITIES):
        return Scores.from_validated(values, table.items, kind)
    try:
        return Scores.from_probabilities(values, table.items, kind)
    except RowError as error:
        raise RankshotError(
            f"{table.path}: row {rows[error.row]}{error.problem}; give the right --score-type "
            "(one-vs-rest-probabilities if each answers a separate yes-no question)"
        ) from None


# -------------------------------------------------------------------- names of columns


def find_columns(names: Iterable[str], table: ScoreTable, origin: str | Path) -> dict[str, str]:
    """Return the column that each name means, for names that are not columns.

    Names that mean no column, or several, are left out. ``origin`` is the file of the names.
    """
    names = dict.fromkeys(names)
    if names.keys() <= set(table.items):
        return {}
    try:
        found = read_class_labels(table.items).match_all(names)
    except RankshotError as error:
        raise RankshotError(f"{origin} and {table.path}: {error}") from None
    return {name: column for name, column in found.items() if name != column}


def rename_all(names: Sequence[str], column_of: dict[str, str]) -> tuple[str, ...]:
    """Return names with some of them replaced."""
    return tuple(column_of.get(name, name) for name in names)


def name_by_columns(
    head: BaseHead, table: ScoreTable, origin: str | Path
) -> tuple[BaseHead, dict[str, str]]:
    """Return a fitted head whose seen classes are called as the columns, and the new names.

    Raises
    ------
    RankshotError
        If the columns are not the seen classes; it names those that are missing or unknown.
    """
    column_of = find_columns(head.items_, table, origin)
    named = _rename_seen(head, column_of) if column_of else head
    missing = sorted(set(named.items_) - set(table.items))
    unknown = sorted(set(table.items) - set(named.items_))
    if missing or unknown:
        told = [f"it has no column {quote_names(missing)}"] if missing else []
        told += [f"{origin} does not know {quote_names(unknown)}"] if unknown else []
        raise RankshotError(
            f"{table.path}: needs the seen classes that {origin} was fitted for: "
            f"{', and '.join(told)}"
        )
    return named, column_of


def _rename_seen(head: Any, column_of: dict[str, str]) -> Any:
    named = copy(head)
    named.items_ = rename_all(head.items_, column_of)
    if getattr(head, "head", None) is not None:
        named.head = _rename_seen(head.head, column_of)
    return named

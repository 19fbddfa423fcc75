"""Votes between two items in tables: which columns they have, and how they name the winner.

All spellings of outcomes and the usual names of columns are here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.tables import Coded, ColumnReader, find_column
from rankshot.ranking.construction import number_items, stack_pairs
from rankshot.ranking.entries import Entries

SIDES = (("model_a", "model_b"), ("a", "b"), ("left", "right"), ("first", "second"))
"""The usual names of the columns of the two items."""
WINNERS = ("winner", "outcome", "result")
RATERS = ("rater", "judge", "voter")
FIRST, SECOND, TIE = 0, 1, 2
OUTCOMES = {
    **dict.fromkeys(("model_a", "a", "left", "first", "1"), FIRST),
    **dict.fromkeys(("model_b", "b", "right", "second", "0"), SECOND),
    **dict.fromkeys(("tie", "draw", "equal", "0.5", "tie (bothbad)", "tie (both bad)"), TIE),
    **dict.fromkeys(("both_bad", "bothbad", "both bad", "both_good", "both good"), TIE),
}
"""How tables name the winner, in any case: a side, the score of the first item, or a tie. The names
of the two columns and of the two items count as well."""
ANSWERS = {"true": TIE, "1": TIE, "yes": TIE, "false": FIRST, "0": FIRST, "no": FIRST}
"""The cells of a column ``tie``, beside those of winner and loser."""


class Votes(NamedTuple):
    """Votes between two items, in the order of the table.

    Attributes
    ----------
    items : tuple of str
    first, second : ndarray of int
        The numbers of the two items.
    outcome : ndarray of int
        `FIRST`, `SECOND` or `TIE`.
    weights : ndarray
    raters, categories : ndarray of str or None
    """

    items: tuple[str, ...]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    outcome: NDArray[np.int8]
    weights: NDArray[np.float64]
    raters: NDArray[np.object_]
    categories: NDArray[np.object_]

    @property
    def entries(self) -> Entries:
        """The votes as lists of two items, the winner first."""
        lost = self.outcome == SECOND
        winners = np.where(lost, self.second, self.first)
        losers = np.where(lost, self.first, self.second)
        return stack_pairs(winners, losers, self.outcome == TIE)


def is_votes(columns: list[str]) -> bool:
    """Whether a table with these columns looks like one of votes between two items."""
    sides = any(a in columns and b in columns for a, b in SIDES)
    return (sides and any(name in columns for name in WINNERS)) or {"winner", "loser"} <= {*columns}


def read_votes(
    table: ColumnReader,
    items: Iterable[Any] | None = None,
    *,
    a: str | None = None,
    b: str | None = None,
    winner: str | None = None,
    loser: str | None = None,
    rater: str | None = None,
    category: str | None = None,
    weight: str | None = None,
    count: str | None = None,
) -> Votes:
    """Read votes; columns that are not named have their usual names."""
    columns = table.columns
    sides = next((pair for pair in SIDES if {*pair} <= {*columns}), SIDES[0])
    if loser is None and a is b is None and sides[0] not in columns and "loser" in columns:
        loser = "loser"
    winner = winner or next((name for name in WINNERS if name in columns), WINNERS[0])
    first, second = (winner, loser) if loser else (a or sides[0], b or sides[1])
    rater = rater or next((name for name in RATERS if name in columns), None)
    weight = weight or ("weight" if "weight" in columns and count is None else None)
    told = ("tie" if "tie" in columns else None) if loser else winner
    _require_votes([first, second, *([] if loser else [winner])], category, table)
    names = [name for name in (first, second, told, rater, category) if name]
    read = dict(zip(names, table.read_texts(names), strict=True))
    for name in (first, second, told):
        _refuse_empty(read, name, table)
    found, codes = _number_items(read[first], read[second], items, table)
    outcome = np.zeros(codes.shape[1], np.int8)
    if told:
        words = ANSWERS if loser else OUTCOMES | {first.lower(): FIRST, second.lower(): SECOND}
        names_too = {} if loser else {name: i for i, name in enumerate(found)}
        outcome = _decide(read[told], codes, words, names_too, f"{told!r}", table)
    else:
        _refuse_tie_words(read[first], read[second], winner, table)
    n = outcome.size
    nobody = np.broadcast_to(np.array(None, object), n)
    labels = (read[name].expand(None) if name else nobody for name in (rater, category))
    weights = _read_weights(table, weight, count, n)
    return Votes(found, codes[0], codes[1], outcome, weights, *labels)


def _require_votes(wanted: list[str], category: str | None, table: ColumnReader) -> None:
    try:
        for name in wanted:
            find_column(table.columns, name, str(table))
    except RankshotError as error:
        raise RankshotError(
            f"{error}. {'Categories need' if category else 'For'} votes between two items: name "
            "the columns of the two items and of the winner with a=, b= and winner=, or those of "
            "the winner and the loser with winner= and loser="
        ) from None


def _refuse_empty(read: dict[str, Coded], name: str | None, table: ColumnReader) -> None:
    if name and "" in read[name].labels:
        row = int(np.argmax(read[name].codes == read[name].labels.index("")))
        raise RankshotError(f"{table.where(row)}: {name!r} is empty")


def _number_items(
    first: Coded, second: Coded, items: Iterable[Any] | None, table: ColumnReader
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the items, by default those that occur, and the numbers of both sides."""
    n, labels = first.codes.size, [*first.labels, *second.labels]
    both = np.column_stack([first.codes, second.codes + len(first.labels)]).ravel()
    names, codes = number_items(labels, both, items, lambda cell: table.where(cell // 2))
    codes = np.ascontiguousarray(codes.reshape(n, 2).T)
    if (same := codes[0] == codes[1]).any():
        row = int(np.argmax(same))
        raise RankshotError(f"{table.where(row)}: item {names[codes[0, row]]!r} against itself")
    return names, codes


def _decide(
    told: Coded,
    codes: NDArray[np.int32],
    words: dict[str, int],
    names: dict[str, int],
    column: str,
    table: ColumnReader,
) -> NDArray[np.int8]:
    """Return the outcome of each row: by the name of an item of the row, or else by a word."""
    by_word = np.array([words.get(_plain(label), -1) for label in told.labels], np.int8)[told.codes]
    item = np.array([names.get(label, -1) for label in told.labels], np.int32)[told.codes]
    by_name = np.where(item == codes[0], FIRST, np.where(item == codes[1], SECOND, -1))
    outcome = np.where((by_name >= 0) & (item >= 0), by_name, by_word).astype(np.int8)
    contradicts = (by_word >= 0) & (by_word != TIE) & (by_word != outcome)
    if (odd := (outcome < 0) | contradicts).any():
        row = int(np.argmax(odd))
        label = told.labels[told.codes[row]]
        rule = f"expected the name of one of the two items, or {quote_names(words, len(words))}"
        if contradicts[row]:
            rule = "it names one of the two items, and the other side: rename the items"
        raise RankshotError(f"{table.where(row)}: {column} is {short_repr(label)}; {rule}")
    return outcome


def _plain(label: str) -> str:
    """Return a word in lower case, and a number without needless digits."""
    try:
        return f"{float(label):g}"
    except ValueError:
        return label.lower()


def _refuse_tie_words(first: Coded, second: Coded, winner: str, table: ColumnReader) -> None:
    """Raise for a word for a tie among winners, in a table of winners and losers."""
    words = {label for label in first.labels if OUTCOMES.get(label.lower()) == TIE}
    if odd := words - {*second.labels}:
        label = min(odd, key=first.labels.index)
        row = int(np.argmax(first.codes == first.labels.index(label)))
        raise RankshotError(
            f"{table.where(row)}: {winner!r} is {short_repr(label)}, a tie and not an item: give "
            "the columns of the two items (a=, b=) and of the outcome (winner=), and not loser="
        )


def _read_weights(
    table: ColumnReader, weight: str | None, count: str | None, n: int
) -> NDArray[np.float64]:
    """Return counts as they are; other weights are divided by their mean."""
    name = count or weight
    if name is None:
        return np.ones(n)
    weights = table.read_numbers([name])[:, 0]
    rule = "a count must be a whole number" if count else "a weight must be a number"
    if (odd := (weights < 0) | (bool(count) & (weights % 1 != 0))).any():
        row = int(np.argmax(odd))
        raise RankshotError(
            f"{table.where(row)}: {name!r} is {weights[row]:g}; {rule} of 0 or more"
        )
    return weights if count or not weights.any() else weights / weights[weights > 0].mean()

"""Votes between two items in tables: which columns they have, and how they name the winner.

All spellings of outcomes and the usual names of columns are here. A usual name counts in any case,
with blanks or signs: ``Model A`` is ``model_a``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.columns import Coded, ColumnReader, plain_name
from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr, suggest_item
from rankshot.core.tables import find_column
from rankshot.core.validation import as_names, require_choice
from rankshot.ranking.construction import number_items, stack_pairs
from rankshot.ranking.entries import Entries, find_first, number_rows

NAMED = (
    "model",
    "item",
    "option",
    "system",
    "player",
    "team",
    "candidate",
    "assistant",
    "generator",
)
SIDES = (
    *((f"{name}_{a}", f"{name}_{b}") for name in NAMED for a, b in ("ab", "12")),
    *(("a", "b"), ("left", "right"), ("first", "second"), ("white", "black")),
)
"""The usual names of the columns of the two items."""
WINNERS = ("outcome", "result", "preference", "preferred", "choice", "vote", "verdict")
"""The usual names of the column of the winner, besides ``winner`` itself."""
ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")
PEOPLE: tuple[str, ...] = (
    "rater",
    "judge",
    "voter",
    "annotator",
    "user",
    "worker",
    "participant",
    "respondent",
)
PEOPLE += ("reviewer", "evaluator", "assessor", "labeler", "session")
RATERS = (*(f"{who}{end}" for end in ("", "_id", "_name") for who in PEOPLE), "response_id")
WEIGHTS, COUNTS, IDS = ("weight",), ("count", "freq", "frequency"), ("id", "vote_id", "battle_id")
FIRST, SECOND, TIE = 0, 1, 2
OUTCOMES = {
    **dict.fromkeys(("model_a", "a", "left", "first", "assistant_a", "response_a"), FIRST),
    **dict.fromkeys(("model_1", "win", "1-0", "a>b", "a>>b", "[[a]]", "white"), FIRST),
    **dict.fromkeys(("model_b", "b", "right", "second", "assistant_b", "response_b"), SECOND),
    **dict.fromkeys(("model_2", "loss", "0-1", "b>a", "b>>a", "[[b]]", "black"), SECOND),
    **dict.fromkeys(("tie", "draw", "equal", "tie (bothbad)", "both_bad", "both_good"), TIE),
    **dict.fromkeys(("neither", "same", "1/2-1/2", "a=b", "[[c]]"), TIE),
}
"""How tables name the winner, in any case: a side, or a tie. The names of the two columns and of
the two items count as well."""
WORDS = OUTCOMES | {plain_name(word): i for word, i in OUTCOMES.items() if word[0].isalpha()}
ANSWERS = {"true": TIE, "1": TIE, "yes": TIE, "false": FIRST, "0": FIRST, "no": FIRST}
"""The cells of a column ``tie``, beside those of winner and loser."""
READINGS: tuple[tuple[str, dict[float, int]], ...] = (
    ("index", {0: FIRST, 0.5: TIE, 1: SECOND}),
    ("index", {1: FIRST, 1.5: TIE, 2: SECOND}),
    ("index", {-1: FIRST, 0: TIE, 1: SECOND}),
    ("score", {1: FIRST, 0.5: TIE, 0: SECOND}),
    ("score", {1: FIRST, 0: TIE, -1: SECOND}),
)
"""What numbers in place of the winner mean: which of the two items won, counted from 0 or from 1 or
from left to right, or what the first item scored. The third and the last need a -1."""
PROBLEMS_SHOWN = 3


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
    rows : ndarray of int
        The rows of the table, counted from 0: some may have been skipped.
    """

    items: tuple[str, ...]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    outcome: NDArray[np.int8]
    weights: NDArray[np.float64]
    raters: NDArray[np.object_]
    categories: NDArray[np.object_]
    rows: NDArray[np.int64]

    @property
    def entries(self) -> Entries:
        """The votes as lists of two items, the winner first."""
        lost = self.outcome == SECOND
        winners = np.where(lost, self.second, self.first)
        losers = np.where(lost, self.first, self.second)
        return stack_pairs(winners, losers, self.outcome == TIE)


class RowChecks:
    """What is wrong with rows: an error for the first, or such rows are skipped, with a warning.

    Parameters
    ----------
    table : ColumnReader
    n : int
        The number of rows.
    """

    def __init__(self, table: ColumnReader, n: int) -> None:
        self._table = table
        self._told: list[tuple[int, str]] = []
        self.kept = np.ones(n, bool)

    def check(self, is_odd: NDArray[np.bool_], describe: Callable[[int], str]) -> None:
        """Raise for the first odd row, or mark all odd ones; ``describe(row)`` is what is wrong."""
        new = is_odd & self.kept
        if not new.any():
            return
        if not self._table.skips:
            row = int(np.argmax(new))
            raise RankshotError(f"{self._table.where(row)}: {describe(row)}")
        self._told += [
            (row, describe(row)) for row in np.flatnonzero(new)[:PROBLEMS_SHOWN].tolist()
        ]
        self.kept &= ~is_odd

    def finish(self) -> NDArray[np.int64]:
        """Warn of what was skipped, and return the rows that are left."""
        odd = self._table.odd
        n = int((~self.kept).sum()) + len(odd)
        told = [
            *odd,
            *(f"{self._table.where(row)}: {text}" for row, text in sorted(self._told)),
        ]
        if not self.kept.any():
            raise RankshotError(f"{self._table}: no row can be read; the first: {told[0]}")
        if n:
            shown = "; ".join(told[:PROBLEMS_SHOWN])
            warnings.warn(
                f"{format_count(n, 'row')} of {self.kept.size + len(odd):,} skipped: {shown}"
                f"{' …' if n > PROBLEMS_SHOWN else ''}",
                stacklevel=4,
            )
        return np.flatnonzero(self.kept)


def is_votes(table: ColumnReader) -> bool:
    """Whether a table looks like one of votes between two items."""
    sides = _find_sides(table)
    told = table.find(("winner", *WINNERS)) or len(table.find(ONE_HOT[:2])) == 2
    # A model_a and a model_b without a winner are votes as well, with an error that says so.
    told = told or any(plain_name(a) == "modela" for a, _ in sides)
    return bool((sides and told) or (table.find(["winner"]) and table.find(["loser"])))


def _find_sides(table: ColumnReader) -> list[tuple[str, str]]:
    """Return the columns that may be those of two items; with a third they are something else."""
    pairs = ((pair, table.find(pair)) for pair in SIDES)
    third = {"b": "c", "2": "3"}
    return [
        (found[0], found[1])
        for (_, b), found in pairs
        if len(found) == 2 and not (b[-1] in third and table.find([b[:-1] + third[b[-1]]]))
    ]


def find_raters(table: ColumnReader, further: Iterable[str] = ()) -> list[str]:
    """Return the columns that may say who voted, the likeliest first; warn if there are several."""
    found = table.find((*RATERS, *further))
    if len(found) > 1:
        warnings.warn(
            f"{table}: raters are those of the column {found[0]!r}; {quote_names(found[1:])} may "
            "name them as well: choose with rater=",
            stacklevel=4,
        )
    return found


class _Columns(NamedTuple):
    """The columns of votes: of the two items, the winner or the tie, or three that mark it."""

    first: str
    second: str
    told: str | None
    is_loser: bool
    marks: list[str]


def _find_columns(
    table: ColumnReader,
    a: str | None,
    b: str | None,
    winner: str | None,
    loser: str | None,
    category: str | None,
) -> _Columns:
    pairs = _find_sides(table)
    if a is None and b is None and loser is None:
        if len(pairs) > 1:
            both = " or ".join(quote_names(pair) for pair in pairs)
            raise RankshotError(f"{table}: the two items may be {both}: choose with a= and b=")
        if not pairs:
            loser = table.find_one(["loser"], "loser")
    marks = [] if winner or loser else [x for name in ONE_HOT for x in table.find([name])]
    others = table.find(WINNERS)
    usual = table.find_one(["winner"], "winner") or (others[0] if others else "winner")
    if not winner and usual in others and len(others) > 1:
        raise RankshotError(
            f"{table}: the winner may be in {quote_names(others)}: choose with winner="
        )
    if usual in table.columns:
        marks = []
    winner = winner or usual
    first, second = pairs[0] if pairs else SIDES[0]
    first, second = (winner, loser) if loser else (a or first, b or second)
    told = table.find_one(["tie"], "tie") if loser else None if marks else winner
    try:
        for name in [first, second, *([] if loser or marks else [winner])]:
            find_column(table.columns, name, str(table))
    except RankshotError as error:
        raise RankshotError(
            f"{error}. {'Categories need' if category else 'For'} votes between two items: name "
            "the columns of the two items and of the winner with a=, b= and winner=, or those of "
            "the winner and the loser with winner= and loser="
        ) from None
    return _Columns(first, second, told, bool(loser), marks)


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
    id: str | None = None,  # noqa: A002 (the name of the column)
    numbers: str | None = None,
) -> Votes:
    """Read votes; columns that are not named have their usual names."""
    if numbers is not None:
        require_choice("numbers", numbers, ("index", "score"))
    columns = _find_columns(table, a, b, winner, loser, category)
    first, second, told, _, marks = columns
    rater = rater or next(iter(find_raters(table)), None)
    wanted = [x for x in (first, second, told, *marks, rater, category) if x]
    read = dict(zip(wanted, table.read_texts(wanted), strict=True))
    n = read[first].codes.size
    checks = RowChecks(table, n)
    for name in (first, second, told):
        if name and "" in read[name].labels:
            advice = "" if name != told else ": write 'tie' for a tie, or skip it: on_error='skip'"
            is_empty = read[name].codes == read[name].labels.index("")
            checks.check(is_empty, lambda _, n=name, x=advice: f"{n!r} is empty{x}")  # type: ignore[misc]
    labels = list(dict.fromkeys((*read[first].labels, *read[second].labels)))
    number = {label: i for i, label in enumerate(labels)}
    pair = [
        np.array([number[label] for label in read[side].labels], np.int32)[read[side].codes]
        for side in (first, second)
    ]
    same = pair[0] == pair[1]
    checks.check(same, lambda row: f"item {labels[pair[0][row]]!r} against itself")
    if items is not None:
        items = as_names(items)
        known = np.array([label in {*items} for label in labels])

        def describe(row: int) -> str:
            name = next(labels[side[row]] for side in pair if not known[side[row]])
            return f"unknown item {short_repr(name)}{suggest_item(name, items or ())}"

        checks.check(~(known[pair[0]] & known[pair[1]]), describe)
    outcome = np.zeros(n, np.int8)
    if marks:
        outcome = _read_marks([read[name] for name in marks], marks, checks)
    elif told:
        outcome = _Decision(read[told], pair, number, columns, table, numbers).find(checks)
    else:
        _refuse_tie_words(read[first], read[second], first, table)
    counts, weights = read_weights(table, weight, count, n, checks)
    beside = [read[name].codes for name in (rater, category) if name]
    _check_copies(table, id, [*pair, outcome, *beside], checks)
    rows = checks.finish()
    whole = rows.size == n
    codes = np.stack(pair, axis=1) if whole else np.stack(pair, axis=1)[rows]
    names, codes = number_items(labels, codes.ravel(), items, lambda i: table.where(rows[i // 2]))
    codes = codes.reshape(-1, 2)
    nobody = np.broadcast_to(np.array(None, object), rows.size)
    who, where = (
        (read[name] if whole else read[name].select(rows)).expand(None) if name else nobody
        for name in (rater, category)
    )
    left, right = (np.ascontiguousarray(side) for side in codes.T)
    combined = combine_weights(counts[rows], weights[rows])
    return Votes(names, left, right, outcome[rows], combined, who, where, rows)


class _Decision:
    """The outcome of each row: by the name of an item of the row, or else by a word or a number."""

    def __init__(
        self,
        told: Coded,
        pair: list[NDArray[np.int32]],
        number: dict[str, int],
        columns: _Columns,
        table: ColumnReader,
        numbers: str | None,
    ) -> None:
        self._told, self._pair, self._columns = told, pair, columns
        self._table, self._numbers = table, numbers
        self._is_answer = columns.is_loser
        self._names = {} if self._is_answer else number

    def find(self, checks: RowChecks) -> NDArray[np.int8]:
        told, pair = self._told, self._pair
        items = np.array([self._names.get(x, -1) for x in told.labels], np.int32)
        by_name = np.full(told.codes.size, -1, np.int8)
        if items.max(initial=-1) >= 0:
            item = items[told.codes]
            by_name[item == pair[1]] = SECOND
            by_name[item == pair[0]] = FIRST
        # Numbers that are names of items in all rows need no other reading.
        is_open = np.zeros(len(told.labels), bool)
        is_open[told.codes[(by_name < 0) & checks.kept]] = True
        words = self._find_words(is_open)
        by_word = np.array([words.get(x, -1) for x in told.labels], np.int8)[told.codes]
        outcome = np.where(by_name >= 0, by_name, by_word)
        contradicts = (by_word >= 0) & (by_word != TIE) & (by_word != outcome)

        def describe(row: int) -> str:
            label = told.labels[told.codes[row]]
            known = ANSWERS if self._is_answer else OUTCOMES
            rule = f"expected the name of one of the two items, or {quote_names(known, 20)}"
            if contradicts[row]:
                rule = "it names one of the two items, and the other side: rename the items"
            return f"{self._columns.told!r} is {short_repr(label)}; {rule}"

        checks.check((outcome < 0) | contradicts, describe)
        return outcome

    def _find_words(self, is_open: NDArray[np.bool_]) -> dict[str, int]:
        """Return the outcome of each label that is a word or a number."""
        own = {plain_name(name): i for i, name in enumerate(self._columns[:2])}
        found, values = {}, {}
        for label in self._told.labels:
            number = _parse_number(label)
            word = label.lower() if number is None else f"{number:g}"
            if self._is_answer:
                found[label] = ANSWERS.get(word, -1)
            elif number is None:
                found[label] = WORDS.get(word, (WORDS | own).get(plain_name(label), -1))
            else:
                values[label] = number
        is_needed = any(is_open[self._told.labels.index(label)] for label in values)
        # Numbers that name items everywhere may only contradict the index of the winner.
        return found | self._read_numbers(values, self._numbers if is_needed else "index")

    def _read_numbers(self, values: dict[str, float], how: str | None) -> dict[str, int]:
        own = {*values.values()}
        readings = [
            {label: words[v] for label, v in values.items()}
            for name, words in READINGS
            if own <= {*words} and how in {None, name} and (-1 in own or -1 not in words)
        ]
        if not readings:
            return {}
        if any(reading != readings[0] for reading in readings):
            told, first = self._columns.told, self._columns.first
            raise RankshotError(
                f"{self._table}: {told!r} is {quote_names([*values], 4)}. It may be the number of "
                f"the item that won (the lowest is {first!r}) or the score of {first!r} (1 if it "
                "won): say which with numbers='index' or numbers='score', or write names of items"
            )
        return readings[0]


def _parse_number(label: str) -> float | None:
    try:
        return float(label)
    except ValueError:
        return None


def _read_marks(read: list[Coded], names: list[str], checks: RowChecks) -> NDArray[np.int8]:
    """Return the outcome that one of two or three columns marks with 1 or true."""
    marked = np.stack(
        [
            np.array([ANSWERS.get(x.lower()) == TIE for x in each.labels])[each.codes]
            for each in read
        ]
    )
    rule = f"exactly one of {quote_names(names)} must be 1"
    checks.check(marked.sum(axis=0) != 1, lambda _: rule)
    return np.asarray(np.argmax(marked, axis=0), np.int8)


def _refuse_tie_words(first: Coded, second: Coded, winner: str, table: ColumnReader) -> None:
    """Raise for a word for a tie among winners, in a table of winners and losers."""
    words = {label for label in first.labels if WORDS.get(label.lower()) == TIE}
    if odd := words - {*second.labels}:
        label = min(odd, key=first.labels.index)
        row = int(np.argmax(first.codes == first.labels.index(label)))
        raise RankshotError(
            f"{table.where(row)}: {winner!r} is {short_repr(label)}, a tie and not an item: give "
            "the columns of the two items (a=, b=) and of the outcome (winner=), and not loser="
        )


def read_weights(
    table: ColumnReader, weight: str | None, count: str | None, n: int, checks: RowChecks
) -> list[NDArray[np.float64]]:
    """Return how often each row was given, and how important it is; 1 by default."""
    weight = weight or table.find_one(WEIGHTS, "weight")
    count = count or table.find_one(COUNTS, "count")
    both = []
    for name, is_count in ((count, True), (weight, False)):
        if name is None:
            both.append(np.ones(n))
            continue
        values = table.parse_numbers(table.read_texts([name])[0])[0]
        is_odd = ~((values >= 0) & (values < np.inf)) | (is_count & (values % 1 != 0))
        rule = "a count must be a whole number" if is_count else "a weight must be a number"

        def describe(row: int, name: str = name, rule: str = rule) -> str:
            (column,) = table.read_texts([name])
            return (
                f"{name!r} is {short_repr(column.labels[column.codes[row]])}; {rule} of 0 or more"
            )

        checks.check(is_odd, describe)
        both.append(np.where(is_odd, 0.0, values))
    return both


def combine_weights(
    counts: NDArray[np.float64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how much rows of votes or ballots count: only ratios of weights matter.

    Weights are divided by their mean, so that the sum is the number of votes.
    """
    total = float(counts[weights > 0].sum())
    mean = float(counts @ weights) / total if total else 1.0
    return np.asarray(counts * weights / (mean or 1.0))


def _check_copies(
    table: ColumnReader,
    id: str | None,  # noqa: A002
    beside: list[NDArray[Any]],
    checks: RowChecks,
) -> None:
    """Warn of votes that have the same id as an earlier one, or leave them out.

    An id that the caller did not name may be that of a prompt: a copy then has to have the same
    items, winner, rater and category.
    """
    name = id or table.find_one(IDS, "id")
    if name is None or table.is_unique(name):
        return
    (column,) = table.read_texts([name])
    number = number_rows([column.codes, *([] if id else beside)], column.codes.size)
    is_copy = np.ones(number.size, bool)
    is_copy[find_first(number)] = False
    is_copy &= np.array([label != "" for label in column.labels])[column.codes] & checks.kept
    if not is_copy.any():
        return

    def describe(row: int) -> str:
        return f"{name!r} is {column.labels[column.codes[row]]!r}, as in an earlier row"

    if table.skips:
        checks.check(is_copy, describe)
        return
    row = int(np.argmax(is_copy))
    warnings.warn(
        f"{format_count(int(is_copy.sum()), 'vote')} of {is_copy.size:,} have the id of an earlier "
        f"vote, and count again ({table.where(row)}: {describe(row)}). on_error='skip' leaves them "
        "out",
        stacklevel=4,
    )

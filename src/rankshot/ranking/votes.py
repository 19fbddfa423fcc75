"""Votes between two items in tables: how they name the items, the winner and ties."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankshot.core.columns import Coded, RowChecks, Table, number_distinct, plain_name
from rankshot.core.errors import InputError, format_count, quote_names, suggest_item
from rankshot.core.validation import require_choice
from rankshot.ranking.column_meanings import NAMED, Meanings, Reading
from rankshot.ranking.construction import (
    find_first,
    number_items,
    number_rows,
    stack_pairs,
)
from rankshot.ranking.rankings import Rankings, are_votes

Floats = NDArray[np.float64]
POSITION = "position"
"""The covariate 1 of every vote: what it is worth to be the first of the two."""
SIDES = (
    *((f"{name}_{a}", f"{name}_{b}") for name in NAMED for a, b in ("ab", "12")),
    *(("a", "b"), ("left", "right"), ("first", "second"), ("white", "black")),
)
"""The usual names of the columns of the two items."""
WINNERS = ("outcome", "result", "preference", "preferred", "choice", "vote", "verdict")
"""The usual names of the column of the winner, besides ``winner`` itself."""
ONE_HOT = ("winner_model_a", "winner_model_b", "winner_tie")
FIRST, SECOND, TIE = 0, 1, 2
OUTCOMES = {
    **dict.fromkeys(("model_a", "a", "left", "first", "assistant_a", "response_a"), FIRST),
    **dict.fromkeys(("model_1", "win", "1-0", "a>b", "a>>b", "[[a]]", "white"), FIRST),
    **dict.fromkeys(("model_b", "b", "right", "second", "assistant_b", "response_b"), SECOND),
    **dict.fromkeys(("model_2", "loss", "0-1", "b>a", "b>>a", "[[b]]", "black"), SECOND),
    **dict.fromkeys(("tie", "draw", "equal", "tie (bothbad)", "both_bad", "both_good"), TIE),
    **dict.fromkeys(("neither", "same", "1/2-1/2", "a=b", "[[c]]", "tie (inconsistent)"), TIE),
}
"""How tables name the winner, in any case: a side, or a tie. The names of the two columns and of
the two items count as well."""
WORDS = OUTCOMES | {plain_name(word): i for word, i in OUTCOMES.items() if word[0].isalpha()}
ANSWERS = {"true": TIE, "1": TIE, "yes": TIE, "false": FIRST, "0": FIRST, "no": FIRST}
"""The cells of a column of ties, beside those of winner and loser."""
DECIDED = {"win", "won", "decisive", "decided", "winner"}
"""What such a column calls a vote that is no tie."""
TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
READINGS: tuple[tuple[str, dict[float, int]], ...] = (
    ("index", {0: FIRST, 0.5: TIE, 1: SECOND}),
    ("index", {1: FIRST, 1.5: TIE, 2: SECOND}),
    ("index", {-1: FIRST, 0: TIE, 1: SECOND}),
    ("score", {1: FIRST, 0.5: TIE, 0: SECOND}),
    ("score", {1: FIRST, 0: TIE, -1: SECOND}),
)
"""What numbers in place of the winner mean: which of the two items won, counted from 0 or from 1 or
from left to right, or what the first item scored. The third and the last need a -1."""


@dataclass(frozen=True, eq=False, repr=False)
class Votes:
    """Votes between two items, or other rankings, with what may explain them.

    Attributes
    ----------
    rankings : Rankings
        One for each vote, the winner first, with weights and raters; their targets are the
        categories.
    covariates : ndarray of shape (votes, covariates)
        Those of the winner minus those of the loser; in a tie, of the first item in the ranking.
    names : tuple of str
        The names of the covariates.
    clusters : ndarray of str or None, optional
        A second reason why votes may be alike, such as the prompt.
    reading : Reading, optional
        Which columns of a table were used.

    Examples
    --------
    >>> from rankshot.leaderboards import read_votes
    >>> read_votes({"model_a": ["x"], "model_b": ["y"], "winner": ["x"], "turn": [1]})
    Votes: 1 vote between 2 items
      columns used: model_a (item), model_b (item), winner (winner); not used: turn
    """

    rankings: Rankings
    covariates: Floats = field(default_factory=lambda: np.empty((0, 0)))
    names: tuple[str, ...] = ()
    clusters: NDArray[np.object_] | None = None
    reading: Reading | None = None

    def __len__(self) -> int:
        return len(self.rankings)

    def __repr__(self) -> str:
        counted = "vote" if self.are_pairs else "ranking"
        between = "between" if self.are_pairs else "of"
        items = format_count(self.rankings.n_items, "item")
        lines = [f"Votes: {format_count(len(self), counted)} {between} {items}"]
        return "\n".join([*lines, *([f"  {self.reading}"] if self.reading else [])])

    @property
    def are_pairs(self) -> bool:
        """Whether all of them compare two items."""
        return are_votes(self.rankings)

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories that occur, sorted."""
        return self.rankings.target_names

    def select(self, rows: NDArray[Any]) -> Votes:
        """Keep some of the votes.

        Parameters
        ----------
        rows : ndarray of bool or int
        """
        clusters = None if self.clusters is None else self.clusters[rows]
        return replace(
            self,
            rankings=self.rankings[rows],
            covariates=self.covariates[rows] if self.names else self.covariates,
            clusters=clusters,
        )

    def of_category(self, name: str) -> Votes:
        """Keep the votes of a category, over the items that these compare.

        Parameters
        ----------
        name : str
        """
        part = self.select(self.rankings.targets == name)
        if not part.rankings.is_subset.all():
            return part
        listed = np.unique(part.rankings.codes)
        items = tuple(part.rankings.items[i] for i in listed)
        return replace(part, rankings=part.rankings.change_items(items))


def is_votes(table: Table) -> bool:
    """Whether a table looks like one of votes between two items."""
    sides = _find_sides(table)
    told = table.find(("winner", *WINNERS)) or len(table.find(ONE_HOT[:2])) == 2
    # A model_a and a model_b without a winner are votes as well, with an error that says so.
    told = told or any(plain_name(a) == "modela" for a, _ in sides)
    return bool((sides and told) or (table.find(["winner"]) and table.find(["loser"])))


def _find_sides(table: Table) -> list[tuple[str, str]]:
    """Return the columns that may be those of two items; with a third they are something else."""
    pairs = ((pair, table.find(pair)) for pair in SIDES)
    third = {"b": "c", "2": "3"}
    return [
        (found[0], found[1])
        for (_, b), found in pairs
        if len(found) == 2 and not (b[-1] in third and table.find([b[:-1] + third[b[-1]]]))
    ]


class _Columns(NamedTuple):
    """The columns of the two items (or of winner and loser), of the outcome, and of ties."""

    first: str
    second: str
    told: str | None
    tie: str | None
    marks: list[str]


def _find_columns(found: Meanings) -> _Columns:
    table, named = found.table, found.named
    sides = [] if found.is_complete else _find_sides(table)
    pairs = [pair for pair in sides if not {*pair} & found.ignored]
    is_open = named.keys().isdisjoint(("a", "b", "loser"))
    if is_open and len(pairs) > 1:
        options = [f"a={a!r}, b={b!r}" for a, b in pairs]
        rule = f"may be the two items: choose with {' or '.join(options)}"
        table.refuse("a", " or ".join(map(quote_names, pairs)), rule)
    loser = found.find("loser") if "loser" in named or (is_open and not pairs) else None
    told = found.find("winner")
    marks = [] if told or loser else found.list_named(ONE_HOT)
    others = found.list_named(WINNERS)
    tie = None
    if loser:
        # Beside winner and loser, a result can only say which votes are ties.
        others += found.list_named(("status", "decision"))
        tie = next((found.use(name, "tie") for name in others if _has_ties(found, name)), None)
    elif not told and not marks and others:
        if len(others) > 1:
            found.ask("winner", others)
        told = found.use(others[0], "winner")
    first, second = pairs[0] if pairs else (None, None)
    first, second = (told, loser) if loser else (named.get("a", first), named.get("b", second))
    if first is None or second is None or not (told or marks):
        missing = "a" if first is None and not loser else "b" if second is None else "winner"
        table.refuse(
            missing, ", ".join(table.columns), "must name one of the columns",
            hint="votes between two items have the columns a=, b= and winner=, or winner= and "
            "loser=",
        )  # fmt: skip
    for name in () if loser else (first, second):
        found.use(name, "item")
    for name in marks:
        found.use(name, "winner")
    tie = tie or (None if marks else found.find("tie"))
    return _Columns(first, second, None if loser else told, tie, marks)


def _has_ties(found: Meanings, name: str) -> bool:
    """Whether cells are words for ties, and otherwise for votes that are none."""
    labels = {label.lower() for label in found.table.read_coded(name)[0].labels if label}
    ties = {label for label in labels if WORDS.get(label) == TIE}
    if ties and not labels <= DECIDED | {*WORDS}:
        found.ask("tie", [name])
    return bool(ties)


def read_votes(
    found: Meanings,
    outcomes: str | None,
    covariates: Iterable[str] = (),
    *,
    has_cluster: bool = False,
) -> Votes:
    """Votes in a table; columns that are not named have their usual names.

    With ``has_cluster``, votes on the same prompt are alike, if there is a column of prompts.
    """
    table = found.table
    pair_of = {name: _find_covariate(table, name) for name in covariates}
    found.ignored |= {x for pair in pair_of.values() for x in pair}
    columns = first, second, told, tie, marks = _find_columns(found)
    rater, category = found.find("rater"), found.find("category")
    weight, count = found.find("weight"), found.find("count")
    id_column = found.find("id")
    prompt = found.find("cluster") if has_cluster else None
    wanted = [x for x in (first, second, told, tie, *marks, rater, category, prompt) if x]
    read = dict(zip(wanted, table.read_coded(*wanted), strict=True))
    checks = RowChecks(table, read[first].codes.size)
    for name in (first, second):
        checks.check(read[name].is_empty, f"has no {name!r}")
        found.refuse_no_items(name, read[name].labels)
    labels, number = number_distinct(read[first].labels + read[second].labels)
    n_first = len(read[first].labels)
    pair = [number[:n_first][read[first].codes], number[n_first:][read[second].codes]]
    rule = "is compared with itself"
    checks.check(pair[0] == pair[1], lambda i: InputError("item", labels[pair[0][i]], rule))
    if found.items:
        both_rows = np.tile(np.arange(checks.kept.size), 2)
        check_known(labels, np.concatenate(pair), both_rows, found.items, checks)
    outcome = _read_outcomes(table, columns, read, pair, labels, outcomes, checks)
    if id_column:
        # An id that the caller did not name may be that of a prompt.
        same: list[NDArray[Any]] = [*pair, outcome]
        same += [read[name].codes for name in (rater, category) if name]
        _check_copies(table, id_column, [] if "id" in found.named else same, checks)
    weights = read_weights(table, weight, count, checks)
    rows = checks.finish()
    names, codes = number_items(labels, np.concatenate([side[rows] for side in pair]), found.items)
    left, right = codes.reshape(2, -1)
    lost = outcome[rows] == SECOND
    entries = stack_pairs(
        np.where(lost, right, left), np.where(lost, left, right), outcome[rows] == TIE
    )
    nobody = np.full(rows.size, None, object)
    who, where, which = (
        read[name].select(rows).expand(None) if name else nobody
        for name in (rater, category, prompt)
    )
    shape = np.full(rows.size, 2), np.ones(rows.size, bool), weights[rows]
    rankings = Rankings(names, *entries, *shape, where, nobody, who)
    X = _read_covariates(table, pair_of, rows, rankings.codes[::2] == left)
    for name, own in pair_of.items():
        found.used |= dict.fromkeys(own, f"covariate {name}")
    clusters = which if prompt else None
    return Votes(rankings, X, tuple(pair_of), clusters, found.finish("votes"))


def _read_covariates(
    table: Table, pair_of: Mapping[str, list[str]], rows: NDArray[np.int64], is_first: NDArray[Any]
) -> Floats:
    """One column per covariate, those of the winner minus those of the loser."""
    X = np.ones((rows.size, len(pair_of)))
    for k, pair in enumerate(pair_of.values()):
        if pair:
            numbers = table.read_numbers(pair)[rows]
            X[:, k] = numbers[:, 0] - (numbers[:, 1] if len(pair) > 1 else 0.0)
    # The winner comes first in rankings.
    return np.asarray(np.where(is_first, 1.0, -1.0)[:, None] * X)


def _find_covariate(table: Table, name: str) -> list[str]:
    """Columns of a covariate: its own, that of each item, or none for the position."""
    pair = [f"{name}_a", f"{name}_b"]
    if name in table.columns:
        return [name]
    if {*pair} <= {*table.columns}:
        return pair
    if name != POSITION:
        rule = f"is no column, nor are {quote_names(pair)}"
        table.refuse("covariates", name, rule, hint=f"the columns are {quote_names(table.columns)}")
    return []


# ---- Who won


def _read_outcomes(
    table: Table,
    columns: _Columns,
    read: Mapping[str, Coded],
    pair: list[NDArray[np.intp]],
    labels: list[str],
    how: str | None,
    checks: RowChecks,
) -> NDArray[np.int8]:
    """Which of the two items won each vote, or whether they tied."""
    first, second, told, tie, marks = columns
    outcome, is_tied = np.zeros(checks.kept.size, np.int8), np.zeros(checks.kept.size, bool)
    if marks:
        marked = np.stack([_find_ties(read[name], name, checks) for name in marks])
        checks.check(marked.sum(axis=0) != 1, f"must have 1 in one of {quote_names(marks)}")
        return np.asarray(np.argmax(marked, axis=0), np.int8)
    if tie:
        is_tied = _find_ties(read[tie], tie, checks)
    if told:
        column = read[told]
        rule = f"has no {told!r}: write 'tie' for a tie, or skip it: on_error='skip'"
        checks.check(column.is_empty & ~is_tied, rule)
        number = {label: i for i, label in enumerate(labels)}
        items = np.array([number.get(label, -1) for label in column.labels])[column.codes]
        by_name = np.select([items == pair[0], items == pair[1]], [FIRST, SECOND], -1)
        readings = _list_readings(table, column, by_name, (first, second))
        outcome = _choose_reading(table, told, column, readings, how, checks.kept & ~is_tied)
        rule = f"is not the name of one of the two items, or {quote_names(OUTCOMES, 20)}"
        checks.check_cells((outcome < 0) & ~is_tied, told, column, rule)
    elif not tie:
        # A word for a tie among winners.
        ties = [x for x in read[first].labels if WORDS.get(x.lower()) == TIE]
        if odd := [label for label in ties if label not in read[second].labels]:
            row = int(np.argmax(read[first].codes == read[first].labels.index(odd[0])))
            table.refuse(
                "winner", odd[0], f"in {first!r} is a tie and not an item", row,
                hint="give the columns of the two items (a=, b=) and of the outcome (winner=), and "
                "not loser=",
            )  # fmt: skip
    outcome[is_tied] = TIE
    return outcome


def _list_readings(
    table: Table, column: Coded, by_name: NDArray[np.int_], sides: tuple[str, str]
) -> list[tuple[str, NDArray[np.int8]]]:
    """What the cells of the winner may mean: each way to read them, and the outcomes, or -1."""
    codes, labels = column
    parsed = table.parse_numbers(Coded(np.arange(len(labels), dtype=np.int32), labels))[0]
    numbers = [TRUTHS.get(x.lower(), y) for x, y in zip(labels, parsed.tolist(), strict=True)]
    known = WORDS | {plain_name(side): i for i, side in enumerate(sides)}
    words = [WORDS.get(label.lower(), known.get(plain_name(label), -1)) for label in labels]
    words = [-1 if np.isfinite(x) else word for x, word in zip(numbers, words, strict=True)]
    ties = [word if word == TIE else -1 for word in words]

    def read(meanings: list[int]) -> NDArray[np.int8]:
        return np.array(meanings, np.int8)[codes]

    readings = [("name", np.where(by_name >= 0, by_name, read(ties))), ("side", read(words))]
    own = {x for x in numbers if np.isfinite(x)}
    for how, meaning in READINGS:
        if own and own <= {*meaning} and (-1 in own or -1 not in meaning):
            cells = zip(numbers, ties, strict=True)
            readings.append((how, read([meaning.get(x, tie) for x, tie in cells])))
    return readings


def _choose_reading(
    table: Table,
    name: str,
    column: Coded,
    readings: list[tuple[str, NDArray[np.int8]]],
    how: str | None,
    rows: NDArray[np.bool_],
) -> NDArray[np.int8]:
    """Return the outcomes by the reading that explains all rows; raise if two differ.

    Names and sides may be mixed. Rows that no reading explains have the outcome -1.
    """
    if how is not None:
        require_choice("outcomes", how, ("name", "side", "index", "score"))
        readings = [each for each in readings if each[0] == how]
    explained = rows & np.any([outcome >= 0 for _, outcome in readings] or [~rows], axis=0)
    whole = [each for each in readings if np.all(each[1][explained] >= 0)]
    if how is None and whole and whole[0][0] == "name":
        # Names in all rows are not the scores of the first item.
        whole = [each for each in whole if each[0] != "score"]
    some = whole or readings[:2]
    if how is None and some[0][0] != "name":
        some = [readings[0], *some]
    merged = np.full(rows.size, -1, np.int8)
    for _, outcome in some:
        differs = explained & (merged >= 0) & (outcome >= 0) & (outcome != merged)
        if differs.any():
            row = int(np.argmax(differs))
            options = dict.fromkeys(each for each, outcome in some if outcome[row] >= 0)
            table.refuse(
                "outcomes", column.text(row), f"in {name!r} may mean either item: the one of this "
                "name (name), on this side (side) or with this number (index), or the one that "
                "this score of the first item makes the winner (score)", row,
                hint="write names of items", choices={"outcomes": tuple(options)},
            )  # fmt: skip
        merged = np.where(merged >= 0, merged, outcome)
    return merged


def check_known(
    labels: list[str],
    codes: NDArray[np.integer],
    rows: NDArray[np.int64],
    items: tuple[str, ...],
    checks: RowChecks,
) -> None:
    """Check that cells have known items: the row and the number of the label of each cell."""
    known = {*items}
    is_known = np.array([label in known for label in labels])

    def describe(entry: int) -> InputError:
        name = labels[codes[entry]]
        return InputError("item", name, f"is not one of the items{suggest_item(name, items)}")

    checks.check_entries(~is_known[codes], rows, describe)


def _find_ties(column: Coded, name: str, checks: RowChecks) -> NDArray[np.bool_]:
    """Return which cells say yes, or are a word for a tie."""
    words = {**WORDS, **dict.fromkeys(DECIDED, FIRST), **ANSWERS}
    answers = [words.get(label.lower().removesuffix(".0"), -1) for label in column.labels]
    found = np.array(answers, np.int8)[column.codes]
    rule = f"is not an answer: {quote_names(ANSWERS, 6)}"
    checks.check_cells((found < 0) & ~column.is_empty, name, column, rule)
    return np.asarray(found == TIE)


def read_weights(
    table: Table, weight: str | None, count: str | None, checks: RowChecks
) -> NDArray[np.float64]:
    """Return how much rows of votes or ballots count, from how often each was given and its weight.

    Only ratios of weights matter: they are divided by their mean, so that the sum is the number of
    votes.
    """
    read = []
    for name, rule in ((count, "a whole number"), (weight, "a number")):
        values = np.ones(checks.kept.size)
        if name:
            (column,) = table.read_coded(name)
            values = table.parse_numbers(column)[0]
            is_odd = ~((values >= 0) & (values < np.inf)) | ((name == count) & (values % 1 != 0))
            checks.check_cells(is_odd, name, column, f"is not {rule} of 0 or more")
            values = np.where(is_odd, 0.0, values)
        read.append(values)
    counts, weights = read
    counts[~checks.kept] = 0.0
    total = float(counts[weights > 0].sum())
    mean = float(counts @ weights) / total if total else 1.0
    return np.asarray(counts * weights / (mean or 1.0))


def _check_copies(table: Table, name: str, beside: list[NDArray[Any]], checks: RowChecks) -> None:
    """Warn of votes that have the id, and what is beside it, of an earlier one, or skip them."""
    (column,) = table.read_coded(name)
    number = number_rows([column.codes, *beside], column.codes.size)
    is_copy = ~column.is_empty & checks.kept
    is_copy[find_first(number)] = False

    if checks.skips:
        checks.check_cells(is_copy, name, column, "is the id of an earlier vote")
    elif is_copy.any():
        first = int(np.argmax(is_copy))
        warnings.warn(
            f"{format_count(int(is_copy.sum()), 'vote')} of {is_copy.size:,} have the id of an "
            f"earlier vote, and are counted again ({table.where(first)}: {name!r} is "
            f"{column.text(first)!r}). on_error='skip' leaves them out",
            stacklevel=4,
        )

"""What the columns of votes or ballots mean: one table of roles, and one place that asks.

A column that is named, or that has one clear meaning, is used. One that may mean two things is an
`InputError` with the option for each meaning and the one that leaves the column out. `Reading`
names all columns: those that were used, as what, and those that were not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import NamedTuple, NoReturn

import numpy as np

from rankshot.core.columns import Coded, Table, plain_name
from rankshot.core.tables import find_column
from rankshot.core.validation import as_names


class Role(NamedTuple):
    """What a column may mean, and the names by which it is recognised.

    Attributes
    ----------
    tables : {"votes", "ballots", "both"}
        The tables that have such a column.
    names : tuple of str
        Its usual names; the first that occurs is used.
    words : str
        A column has the role if its name consists of these words and `FILLERS`, one of these at
        least: ``judge_model``, ``evaluationSessionId``, ``userid``, ``is_tie``.
    perhaps : str
        Words of names that may have the role, or be something else.
    """

    tables: str = "both"
    names: tuple[str, ...] = ()
    words: str = ""
    perhaps: str = ""


NAMED = (
    "model", "item", "option", "system", "player", "team", "candidate", "assistant", "generator",
)  # fmt: skip
"""What tables call an item."""
ROLES = {
    "a": Role("votes"),
    "b": Role("votes"),
    "winner": Role("votes", ("winner",)),
    "loser": Role("votes", ("loser",)),
    "tie": Role("votes", words="tie ties tied draw drawn draws equal stalemate"),
    "category": Role("votes"),
    "id": Role("votes", ("id", "vote_id", "battle_id")),
    "item": Role("ballots", (*NAMED, "alternative", "product", "item_name", "item_id")),
    "rank": Role("ballots", ("rank", "place", "position", "ranking")),
    "score": Role("ballots", ("score", "rating", "points", "grade")),
    "target": Role("ballots", words="target"),
    "weight": Role(words="weight weights"),
    "count": Role(
        words="count counts freq frequency",
        perhaps="n num number times votes total cnt occurrences repeats copies repetitions "
        "multiplicity observations len",
    ),
    "rater": Role(
        names=("response_id",),
        words="rater judge voter annotator user worker participant respondent reviewer evaluator "
        "assessor labeler labeller session turker person coder grader expert juror panelist tester "
        "referee examiner scorer critic prolific mturk rated judged by annotated labeled voted "
        "evaluated submitted worked ip visitor customer student ranker elector ballot moderator "
        "contributor",
        perhaps="subject model llm email uid uuid hash pid human annotation who member client "
        "account author source device cookie fingerprint anon crowd turk assignment employee "
        "doctor teacher physician clinician",
    ),
    "cluster": Role(
        "votes",
        words="prompt question query instruction conversation dialogue dialog",
        perhaps="task qid item example sample input conv thread case doc document scenario problem "
        "stimulus trial",
    ),
    "time": Role("neither", words="time timestamp date datetime tstamp created at updated"),
}
FILLERS = (
    "id ids name no nr number num code key uuid hash uid pid index model llm human anonymous "
    "annotation evaluation crowd hit is was the of vote address hashed mail email text created"
)
FEW_CLUSTERS = 10
"""So few prompts may be categories; more are clusters without being named."""
NO_ITEMS = {
    "overvote", "undervote", "skipped", "skippedranking", "exhausted", "novote", "blank", "writein",
    "noanswer", "notapplicable", "dontknow", "abstain", "abstained", "abstention", "invalid",
    "nowinner", "nopreference", "unsure", "undecided",
}  # fmt: skip
"""What stands in ballots in place of an item, as `plain_name` writes it."""


@cache
def _has_words(words: str, name: str) -> bool:
    """Whether a name consists of these words, at least one of them, and fillers."""
    own, fillers = ("|".join(text.split()) for text in (words, FILLERS))
    pattern = f"(?:{fillers})*(?:{own})(?:{own}|{fillers})*"
    return bool(words and re.fullmatch(pattern, plain_name(name)))


def find_role(name: str) -> str | None:
    """Return the role that the name of a column has in any table.

    Examples
    --------
    >>> [find_role(name) for name in ("judge_model", "promptId", "is_tie", "user_language")]
    ['rater', 'cluster', 'tie', None]
    """
    return next((role for role, each in ROLES.items() if _has_words(each.words, name)), None)


class Reading(NamedTuple):
    """How a table was read.

    Attributes
    ----------
    layout : str
        What the table has: "votes", "orders", "places" or "scores".
    used : dict
        The role of each column that was used.
    unused : tuple of str
        The other columns.

    Examples
    --------
    >>> print(Reading("votes", {"a": "item", "b": "item", "who": "rater"}, ("length",)))
    columns used: a (item), b (item), who (rater); not used: length
    """

    layout: str
    used: dict[str, str]
    unused: tuple[str, ...]

    def __str__(self) -> str:
        used = ", ".join(f"{column} ({role})" for column, role in self.used.items())
        return f"columns used: {used}; not used: {', '.join(self.unused) or 'none'}"


class Meanings:
    """The roles of the columns of a table: named by the caller, or clear from names and cells.

    Parameters
    ----------
    table : Table
    named : dict
        The column of each role that the caller named.
    ignore : list of str, optional
        Columns that are not used, or None if the caller did not name any.
    items : iterable of names, optional
        All items, if the caller listed them.
    is_complete : bool
        Whether the caller named all columns that are used: nothing is guessed.
    """

    def __init__(
        self,
        table: Table,
        named: Mapping[str, str | None],
        ignore: list[str] | None = None,
        items: Iterable[object] | None = None,
        *,
        is_complete: bool = False,
    ) -> None:
        self.table, self.is_complete = table, is_complete
        self.named = {role: name for role, name in named.items() if name}
        self.items = None if items is None else as_names(items)
        self.ignored = {*(ignore or ())}
        self.is_all_used, self.are_chosen = ignore == [], ignore is not None or is_complete
        for name in (*self.ignored, *self.named.values()):
            find_column(table.columns, name, str(table))
        self.used: dict[str, str] = {}

    def use(self, column: str, role: str) -> str:
        """Note that a column is used."""
        self.used[column] = role
        return column

    def finish(self, layout: str) -> Reading:
        """Return which columns were used, and which were not."""
        columns = [name for name in self.table.columns if name]
        used = {name: self.used[name] for name in columns if name in self.used}
        return Reading(layout, used, tuple(name for name in columns if name not in used))

    def free(self) -> list[str]:
        """Return the columns that are neither named, used nor ignored."""
        taken = {*self.named.values(), *self.used, *self.ignored}
        return [name for name in self.table.columns if name not in taken]

    def list_named(self, names: Iterable[str]) -> list[str]:
        """Return the free columns with one of these names, in the order of the names."""
        free = () if self.is_complete else self.free()
        return [column for column in self.table.find(names) if column in free]

    def match(self, role: str, *further: str) -> list[str]:
        """Return the column that was named for a role, or those whose names have it."""
        if role in self.named or self.is_complete:
            return [self.named[role]] if role in self.named else []
        found = [name for name in self.free() if find_role(name) == role]
        for usual in (*ROLES[role].names, *further):
            found = found or self.list_named([usual])
        return found

    def find(self, role: str, *further: str, is_sure: bool = False) -> str | None:
        """Use the column of a role, named or clear; None if there is none.

        ``further`` are more of its usual names. With ``is_sure``, columns that may have the role,
        or be something else, are not asked for.
        """
        found = self.match(role, *further)
        if role in self.named or self.is_complete:
            return self.use(found[0], role) if found else None
        if len(found) > 1 and role in {"rater", "cluster"}:
            found = self._leave_out_alike(found)
        if len(found) > 1:
            self.ask(role, found)
        if role == "cluster" and found:
            (column,) = self.table.read_coded(*found)
            n = _count(column)
            found = found if 1 < n < column.codes.size else []
            if found and n < FEW_CLUSTERS:
                self.ask(role, found, "category")
        for name in self.free() if not found and not is_sure else ():
            if _has_words(ROLES[role].perhaps, name) and self._may_be(role, name):
                self.ask(role, [name])
        return self.use(found[0], role) if found else None

    def ask(self, role: str, columns: list[str], *or_else: str) -> NoReturn:
        """Raise for columns that may have a role, or another one."""
        may = "may be the one" if len(columns) == 1 else "may all be the one"
        others = "".join(f", a {other}" for other in or_else)
        choices: dict[str, object] = {role: tuple(columns), **dict.fromkeys(or_else, columns[0])}
        self.table.refuse(
            role, ", ".join(columns), f"{may}{others}, or something else",
            choices={**choices, "ignore": ",".join(columns)},
        )  # fmt: skip

    def refuse_no_items(self, column: str, labels: Iterable[str]) -> None:
        """Raise for words such as "over vote" among items that the caller did not list."""
        for label in labels:
            if plain_name(label) in NO_ITEMS and label not in (self.items or ()):
                self.table.refuse(
                    "missing", label, f"stands in the column {column!r}, and may be an item, or "
                    "none", hint="if it is an item, list all items with items=",
                    choices={"missing": label},
                )  # fmt: skip

    def _leave_out_alike(self, names: list[str]) -> list[str]:
        """Leave out columns that say no more than another: constant, unique or with equal parts."""
        read = dict(zip(names, self.table.read_coded(*names), strict=True))
        n = read[names[0]].codes.size
        telling = [name for name in names if 1 < _count(read[name]) < n] or names[:1]
        first = read[telling[0]]
        for name in telling[1:]:
            both = first.codes * np.int64(len(read[name].labels)) + read[name].codes
            if np.unique(both).size == _count(first) == _count(read[name]):
                telling.remove(name)
        return telling

    def _may_be(self, role: str, name: str) -> bool:
        """Whether cells fit a role: counts are whole numbers, and names of raters come again."""
        (column,) = self.table.read_coded(name)
        values, is_text = self.table.parse_numbers(column)
        if role == "count":
            is_whole = not is_text.any() and bool(np.all((values >= 0) & (values % 1 == 0)))
            in_line = np.array_equal(values, values[0] + np.arange(values.size))
            return is_whole and not in_line and bool(np.any(values != 1))
        least = FEW_CLUSTERS if role == "cluster" else 2
        # The columns of ballots may be items, and their numbers places.
        are_labels = bool(is_text.any()) or plain_name(name).endswith("id")
        return are_labels and least <= _count(column) < column.codes.size


def _count(column: Coded) -> int:
    """Return the number of different texts in a column."""
    return int(np.unique(column.codes).size)

"""The answers of participants: reading them from forms, and which of them count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from rankshot.core.errors import short_repr
from rankshot.ranking import Rankings
from rankshot_survey.languages import ParticipantError
from rankshot_survey.study import Question

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)
# Items, best first.
NamedOrder = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of one participant to one question.

    Attributes
    ----------
    rater : str
        The participant: a keyed hash of the platform's id.
    question : Question
    number : int
        The number of the question in this participant's sequence, from 1.
    repeat : bool
        Whether this is the planned second answer to the same question.
    shown, order : tuples of str
        All items, in the order shown; and those that were ranked, best first: none if the
        participant skipped the question.
    seconds : float or None
        The time from first showing the question to the answer, None if it is unknown.
    answered_at : float
        A Unix time.

    Examples
    --------
    >>> from rankshot_survey import Answer, Question
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> said = Answer(
    ...     rater="a1", question=cat, number=1, repeat=False, shown=("fox", "bus", "leopard"),
    ...     order=("leopard", "fox"), seconds=7.25, answered_at=0.0)
    >>> said.question.target, said.order
    ('cat', ('leopard', 'fox'))
    """

    rater: str
    question: Question
    number: int
    repeat: bool
    shown: tuple[str, ...]
    order: NamedOrder
    seconds: float | None
    answered_at: float

    @property
    def levels(self) -> dict[str, int]:
        """The level of each item: 0 is best, and what was not ranked comes last."""
        ranked = {item: level for level, item in enumerate(self.order)}
        return dict.fromkeys(self.shown, len(self.order)) | ranked


def read_order(rank: str | int, items: Sequence[str], places: Sequence[str]) -> NamedOrder:
    """Items that somebody ranked, best first, as the study asks for it.

    ``rank`` is that of the study, and ``places`` has the place of each item, from "1"; "" if it has
    none. If they are not 1, 2, 3 and so on, each once, a `ParticipantError` says what to change.
    """
    n = len(items)
    _require(len(places) == n, "errors.n_places", expected=n, n=len(places))
    holder: dict[int, str] = {}
    for item, text in zip(items, places, strict=True):
        if not text:
            continue
        # int() would also accept other digits, signs, spaces and underscores.
        place = int(text) if text.isascii() and text.isdigit() and len(text) <= 3 else 0
        _require(1 <= place <= n, "errors.place", item=item, most=n, text=short_repr(text))
        other = holder.setdefault(place, item)
        _require(other == item, "errors.twice", place=place, item=other, other=item)
    _require(holder, "errors.nothing")
    missing = min(set(range(1, len(holder) + 1)) - set(holder), default=None)
    _require(missing is None, "errors.missing", place=missing)
    wanted = {"any": len(holder), "all": n}.get(str(rank), rank)
    _require(len(holder) == wanted, "question.exactly", expected=wanted, n=len(holder))
    return tuple(holder[place] for place in sorted(holder))


def _require(holds: object, key: str, **fields: object) -> None:
    """Refuse what a participant sent, with one of the texts for participants."""
    if not holds:
        raise ParticipantError(key, **fields)


def is_counted(answer: Answer) -> bool:
    """Return whether an answer counts for the study: no skip, repeat or gold question."""
    return bool(answer.order) and not answer.repeat and not answer.question.is_gold


def group_by(values: Iterable[Value], key: Callable[[Value], Key]) -> dict[Key, list[Value]]:
    """Return one list of values per key; none for a key that does not occur."""
    groups: dict[Key, list[Value]] = defaultdict(list)
    for value in values:
        groups[key(value)].append(value)
    return groups


def as_rankings(
    answers: Sequence[Answer], items: Sequence[str], raters: Sequence[str] | None = None
) -> Rankings:
    """Return answers as rankings of the items that they show.

    The items that an answer shows but does not rank are tied after its last one.
    """
    code = {item: number for number, item in enumerate(items)}
    table = np.zeros((len(answers), len(code)), np.int32)
    for row, answer in zip(table, answers, strict=True):
        levels = answer.levels
        row[[code[item] for item in levels]] = [level + 1 for level in levels.values()]
    rankings = Rankings.from_positions(table, items=items, kind="subset", raters=raters)
    return rankings.top(np.array([len(answer.order) for answer in answers]))

"""The answers of participants: reading them from forms, and which of them count."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from rankshot.core.errors import InputError, short_repr
from rankshot.ranking import Rankings
from rankshot_survey.languages import ParticipantError
from rankshot_survey.study import ExtraQuestion, Question
from rankshot_survey.study_values import UNPRINTABLE_IN_TEXT

Value = TypeVar("Value")
Key = TypeVar("Key", bound=Hashable)
# Items, best first.
NamedOrder = tuple[str, ...]
# The longest text of an extra answer.
MOST_CHARACTERS = 2_000
MOST_DIGITS = 30
# In many languages the decimal point is a comma. With three digits after it, as in 1,000, it may
# also separate thousands, so this is not accepted.
_NUMBER = re.compile(r"([+-]?\d+)(?:\.(\d+)|,(?!\d{3}$)(\d+))?")
_SIGNS = str.maketrans({"\u2212": "-", "\u066b": "."})


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
    seconds, answered_at, shown_at : float or None
        The time from first showing the question to the answer, None if it is unknown; Unix times.
    screen, seen : str, float or None
        Phone, tablet or desktop; the share of the items that were ever on it.

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
    shown_at: float | None = None
    screen: str | None = None
    seen: float | None = None

    @property
    def levels(self) -> dict[str, int]:
        """The level of each item: 0 is best, and what was not ranked comes last."""
        ranked = {item: level for level, item in enumerate(self.order)}
        return dict.fromkeys(self.shown, len(self.order)) | ranked


def order_from_places(items: Sequence[str], places: Sequence[str]) -> tuple[str, ...]:
    """Return the items that have a place, best first.

    ``places`` has the place of each item, from "1"; "" if it has none. If they are not 1, 2, 3 and
    so on, each once, a `ParticipantError` says what to change.
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
    return tuple(holder[place] for place in sorted(holder))


def read_order(rank: str | int, items: Sequence[str], places: Sequence[str]) -> NamedOrder:
    """Items that somebody ranked, best first, as the study asks for it.

    ``rank`` is that of the study, and ``places`` has the place of each item.
    """
    order = order_from_places(items, places)
    wanted = {"any": len(order), "all": len(items)}.get(str(rank), rank)
    _require(len(order) == wanted, "question.exactly", expected=wanted, n=len(order))
    return order


def parse_order(names: Sequence[Any]) -> NamedOrder:
    """Order from the JSON of the database; version 0.3 also stored ties."""
    if not all(isinstance(name, str) for name in names):
        raise InputError(
            "database",
            names,
            "is an answer to a best-worst question, which only rankshot 0.3 reads",
            hint="export its answers with rankshot 0.3",
        )
    return tuple(names)


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


# ---- Extra questions


def check_extra_answers(
    questions: Mapping[str, ExtraQuestion], sent: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, ParticipantError]]:
    """Check the answers that somebody sent; they and their questions have the names of fields.

    Return the values to be stored by the names of the questions ("" if there is no answer), and
    what is to be changed by the names of the fields.
    """
    values, errors = {}, {}
    for field, question in questions.items():
        try:
            values[question.name] = _read_value(question, sent.get(field, ""))
        except ParticipantError as error:
            errors[field] = error
    return values, errors


def _read_value(question: ExtraQuestion, sent: str) -> str:
    text = UNPRINTABLE_IN_TEXT.sub("", sent).strip()
    if not text:
        _require(not question.is_required, "extra.missing")
        return ""
    if question.type == "number":
        return _read_number(question, text)
    _require(question.type != "choice" or text in question.choices, "extra.choice")
    n = len(text)
    _require(n <= MOST_CHARACTERS, "extra.long", most=MOST_CHARACTERS, n=n)
    return text


def _read_number(question: ExtraQuestion, text: str) -> str:
    number = _NUMBER.fullmatch(text.translate(_SIGNS)) if len(text) <= MOST_DIGITS else None
    fraction = number and (number[2] or number[3])
    if number is None or (question.is_whole and fraction):
        raise ParticipantError("extra.whole" if question.is_whole else "extra.number")
    # int() and float() also read the digits of other scripts.
    value = float(f"{number[1]}.{fraction}") if fraction else int(number[1])
    _require(value >= question.least, "extra.least", least=f"{question.least:g}")
    _require(value <= question.most, "extra.most", most=f"{question.most:g}")
    return str(value)

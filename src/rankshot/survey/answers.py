"""An answer: the value, how it is read from the places that a form sends, and which count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rankshot.core.errors import RankshotError, short_repr
from rankshot.survey.study import Question


@dataclass(frozen=True)
class Answer:
    """What one person said to one question.

    Attributes
    ----------
    rater : str
        The participant, as 16 hexadecimal digits: a keyed hash of whoever it was.
    question : Question
    number : int
        Which of this participant's questions it was, from 1.
    repeat : bool
        Whether it was asked a second time, as planned.
    shown : tuple of str
        All items of the question, in the order of the screen.
    order : tuple of str
        The items that were ranked, best first; empty where the person could not say.
    seconds : float
        From the first sight of the question to the answer.
    answered_at : float
        Unix time.
    """

    rater: str
    question: Question
    number: int
    repeat: bool
    shown: tuple[str, ...]
    order: tuple[str, ...]
    seconds: float
    answered_at: float


def order_from_places(items: Sequence[str], places: Sequence[str]) -> tuple[str, ...]:
    """Return the items that have a place, best first.

    Parameters
    ----------
    items : sequence of str
        As they were shown.
    places : sequence of str
        The place of each, from "1"; "" is none.

    Raises
    ------
    RankshotError
        Says what the person may do about it.

    Examples
    --------
    >>> order_of(["fox", "leopard", "bus"], ["2", "1", ""])
    ('leopard', 'fox')
    """
    if len(places) != len(items):
        raise RankshotError(f"Expected {len(items)} places, not {len(places)}")
    holder: dict[int, str] = {}
    for item, text in zip(items, places, strict=True):
        if not text:
            continue
        # int() would take other digits, signs, spaces and underscores, too.
        place = int(text) if text.isascii() and text.isdigit() and len(text) <= 3 else 0
        if not 1 <= place <= len(items):
            raise RankshotError(
                f"Give {item} a place from 1 to {len(items)}, not {short_repr(text)}"
            )
        if place in holder:
            raise RankshotError(f"Place {place} is taken twice, by {holder[place]} and by {item}")
        holder[place] = item
    if not holder:
        raise RankshotError("Nothing is ranked yet: choose at least the most similar one")
    missing = min(set(range(1, len(holder) + 1)) - set(holder), default=None)
    if missing is not None:
        raise RankshotError(f"Place {missing} is empty: give the places 1, 2, 3 and so on")
    return tuple(holder[place] for place in sorted(holder))


def is_counted(answer: Answer) -> bool:
    """Whether this is one of the answers that the study wants: no skip, repeat or gold question."""
    return bool(answer.order) and not answer.repeat and not answer.question.is_gold


def group_by_question(answers: Iterable[Answer]) -> list[list[Answer]]:
    """Return the answers to each question together."""
    groups: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.question.key].append(answer)
    return list(groups.values())

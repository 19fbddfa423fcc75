"""The answers to the extra questions after the last ranking: read from a form, stored, read."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, select

from rankshot.survey.languages import ParticipantError
from rankshot.survey.presentation import ExtraQuestion
from rankshot.survey.store.database import EXTRA_ANSWER
from rankshot.survey.validation import UNPRINTABLE_IN_TEXT

MOST_CHARACTERS = 2_000
"""The longest text."""
MOST_DIGITS = 30
# In many languages the decimal point is a comma. With three digits after it, as in 1,000, it may
# also separate thousands, so this is not accepted.
_NUMBER = re.compile(r"([+-]?\d+)(?:\.(\d+)|,(?!\d{3}$)(\d+))?")
_SIGNS = str.maketrans({"\u2212": "-", "\u066b": "."})


def check_extra_answers(
    questions: Sequence[ExtraQuestion], sent: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, ParticipantError]]:
    """Check the answers that somebody sent.

    Parameters
    ----------
    questions : sequence of ExtraQuestion
    sent : mapping
        The sent text for each name; what is missing was left empty.

    Returns
    -------
    values : dict
        The values to be stored, by name; "" if there is no answer.
    errors : dict
        What is to be changed, by name; empty if everything is fine.

    Examples
    --------
    >>> age = ExtraQuestion("age", "How old are you?", "number", least=18, required=True)
    >>> check_extra_answers([age], {"age": " 42 "})
    ({'age': '42'}, {})
    >>> check_extra_answers([age], {"age": "17"})
    ({}, {'age': ParticipantError('Please write a number that is at least 18.')})
    """
    values, errors = {}, {}
    for question in questions:
        try:
            values[question.name] = _read_value(question, sent.get(question.name, ""))
        except ParticipantError as error:
            errors[question.name] = error
    return values, errors


def _read_value(question: ExtraQuestion, sent: str) -> str:
    text = UNPRINTABLE_IN_TEXT.sub("", sent).strip()
    if not text:
        if question.required:
            raise ParticipantError("extra.missing")
        return ""
    if question.type == "number":
        return _read_number(question, text)
    if question.type == "choice" and text not in question.choices:
        raise ParticipantError("extra.choice")
    if len(text) > MOST_CHARACTERS:
        raise ParticipantError("extra.long", most=MOST_CHARACTERS, n=len(text))
    return text


def _read_number(question: ExtraQuestion, text: str) -> str:
    found = _NUMBER.fullmatch(text.translate(_SIGNS)) if len(text) <= MOST_DIGITS else None
    if question.is_whole and (found is None or found[2] or found[3]):
        raise ParticipantError("extra.whole")
    if found is None:
        raise ParticipantError("extra.number")
    # int() and float() also read the digits of other scripts.
    fraction = found[2] or found[3]
    value = float(f"{found[1]}.{fraction}") if fraction else int(found[1])
    if value < question.least:
        raise ParticipantError("extra.least", least=f"{question.least:g}")
    if value > question.most:
        raise ParticipantError("extra.most", most=f"{question.most:g}")
    return str(value)


def save_extra_answers(connection: Connection, rater: str, values: Mapping[str, str]) -> None:
    """Store values by name. A value that is stored already stays."""
    kept = read_extra_answers(connection, rater).get(rater, {})
    rows = [
        {"rater": rater, "name": name, "value": value}
        for name, value in values.items()
        if name not in kept
    ]
    if rows:
        connection.execute(EXTRA_ANSWER.insert(), rows)


def read_extra_answers(
    connection: Connection, rater: str | None = None
) -> dict[str, dict[str, str]]:
    """Return the stored values by rater and name, of one participant or of all.

    A value of "" means that an optional question was left empty.
    """
    query = select(EXTRA_ANSWER).order_by(EXTRA_ANSWER.c.rater, EXTRA_ANSWER.c.name)
    if rater is not None:
        query = query.where(EXTRA_ANSWER.c.rater == rater)
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for row in connection.execute(query):
        found[row.rater][row.name] = row.value
    return dict(found)

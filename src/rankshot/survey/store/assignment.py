"""The assignment of questions: each participant gets those with the fewest answers so far."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, select

from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT
from rankshot.survey.study import Question, Study

# What an answer fills in.
GIVEN = ("answer", "answered_at", "seconds", "shown_at", "screen", "seen")
# How a skipped question is stored. A skip does not count as an answer.
NO_ANSWER = "[]"
# Who has agreed and not answered anything yet is expected for this share of the idle time.
SHARE_BEFORE_ANSWERS = 1 / 6


def assign_questions(
    counts: Mapping[str, int], n: int, seen: Collection[str], rng: Random
) -> list[str]:
    """Choose n questions for one participant, or fewer if no more are left.

    ``counts`` has the answers given and in progress for each open question; ``seen`` has what the
    participant has had before. Taking the n smallest counts, each once, keeps all counts within one
    of each other: if they were m or m + 1 before, the questions with m are taken first, and none
    with m + 1 is taken while one with m is left. Equal counts are chosen from at random.
    """
    open_questions = [key for key in counts if key not in seen]
    rng.shuffle(open_questions)
    return sorted(open_questions, key=counts.__getitem__)[:n]


def insert_questions(
    connection: Connection, study: Study, rater: str, questions: Sequence[str], rng: Random
) -> None:
    """Assign questions to a participant who has none, with gold questions and repeats.

    Gold questions come at random places. Repeats come last. They repeat the earliest questions,
    at most half of them, so that other questions come in between.
    """
    items = {q.key: q.items for q in (*study.questions, *study.gold)}
    turns = [*questions, *(question.key for question in study.gold)]
    rng.shuffle(turns)
    asked = set(questions)
    again = [key for key in turns if key in asked][: min(study.repeats, len(questions) // 2)]
    rows = [
        {
            "rater": rater,
            "number": number,
            "question": key,
            "repeat": int(number > len(turns)),
            "shown": shuffle_items(items[key], rng),
        }
        for number, key in enumerate([*turns, *again], 1)
    ]
    connection.execute(ASSIGNMENT.insert(), rows)


def replace_closed(
    connection: Connection,
    study: Study,
    loads: Mapping[str, Load],
    rows: Sequence[Row[Any]],
    rng: Random,
) -> None:
    """Replace the questions of a participant that may not be assigned any more.

    ``rows`` are all assignments of the participant; ``loads`` has the answers of each question,
    without those that this participant is still to give.
    """
    counts = find_open(loads, study)
    items = {question.key: question.items for question in study.questions}
    seen = {row.question for row in rows}
    gold = {question.key for question in study.gold}
    is_asked_something = False
    for row in rows:
        if row.question in gold or row.repeat:
            continue
        # A question that the study does not contain any more stays as it is.
        if row.answered_at is not None or row.question not in loads or row.question in counts:
            is_asked_something = True
            continue
        mine = (ASSIGNMENT.c.rater == row.rater) & (ASSIGNMENT.c.question == row.question)
        others = assign_questions(counts, 1, seen, rng)
        if not others:
            connection.execute(ASSIGNMENT.delete().where(mine))
            continue
        is_asked_something = True
        seen.update(others)
        # The question, and its repeat.
        for repeat in (0, 1):
            new = {"question": others[0], "shown": shuffle_items(items[others[0]], rng)}
            which = mine & (ASSIGNMENT.c.repeat == repeat)
            connection.execute(ASSIGNMENT.update().where(which).values(new))
    if not is_asked_something:
        # Gold questions alone are not worth asking.
        left = (ASSIGNMENT.c.rater == rows[0].rater) & ASSIGNMENT.c.answered_at.is_(None)
        connection.execute(ASSIGNMENT.delete().where(left))


def shuffle_items(items: Sequence[str], rng: Random) -> str:
    """Return the items in a random order, so that the order on the screen suggests no answer."""
    return json.dumps(rng.sample(items, len(items)))


def reopen_skipped(connection: Connection, rater: str) -> None:
    """Ask a participant again what was skipped."""
    skipped = (ASSIGNMENT.c.rater == rater) & (ASSIGNMENT.c.answer == NO_ANSWER)
    connection.execute(ASSIGNMENT.update().where(skipped).values(dict.fromkeys(GIVEN)))
    # As after a long absence: the questions may have been assigned to others.
    person = PARTICIPANT.update().where(PARTICIPANT.c.rater == rater)
    connection.execute(person.values(finished_at=None, seen_at=0.0))


# ---- Answer counts

# Whose answers count.
COUNTS = PARTICIPANT.c.excluded_at.is_(None) & PARTICIPANT.c.withdrawn_at.is_(None)


class Load(NamedTuple):
    """How many have answered a question, and how many active participants are still to do so."""

    given: int
    in_progress: int


def count_answers(
    connection: Connection, study: Study, now: float, *, pilot: bool = False
) -> dict[str, Load]:
    """Count the answers of each question, without skips, repeats and who is excluded.

    An assigned question is in progress while its participant is expected (`expected_until`).
    After that, others may get the question. Pilot participants are counted, or all others.
    """
    given = and_(ASSIGNMENT.c.answered_at.is_not(None), ASSIGNMENT.c.answer != NO_ANSWER)
    is_active = expected_until(study) >= now
    counts = (
        select(
            ASSIGNMENT.c.question,
            func.sum(case((given, 1), else_=0)),
            func.sum(case((and_(ASSIGNMENT.c.answered_at.is_(None), is_active), 1), else_=0)),
        )
        .join(PARTICIPANT)
        .where(ASSIGNMENT.c.repeat == 0, PARTICIPANT.c.pilot == int(pilot), COUNTS)
        .group_by(ASSIGNMENT.c.question)
    )
    found = {key: Load(*load) for key, *load in connection.execute(counts)}
    return {question.key: found.get(question.key, Load(0, 0)) for question in study.questions}


def find_open(loads: Mapping[str, Load], study: Study) -> dict[str, int]:
    """Return the questions that may be assigned, with their answers given and in progress.

    A question is closed when it has all its answers. Until then it may be assigned to
    ``spare_answers`` more participants than planned, so that those who replace others find a
    place.
    """
    most = study.answers_per_question + study.n_spare
    return {
        key: sum(load)
        for key, load in loads.items()
        if load.given < study.answers_per_question and sum(load) < most
    }


def seconds_until_place(
    connection: Connection, study: Study, loads: Mapping[str, Load], now: float, *, pilot: bool
) -> float | None:
    """Return when the next participant may have left; None if no answer is missing or expected."""
    if all(load.given >= study.answers_per_question for load in loads.values()):
        return None
    until = expected_until(study)
    waits = select(func.min(until)).join(ASSIGNMENT).where(ASSIGNMENT.c.answered_at.is_(None))
    mine = waits.where(until >= now, PARTICIPANT.c.pilot == int(pilot), COUNTS)
    first = connection.execute(mine).scalar()
    return None if first is None else first - now


def expected_until(study: Study) -> ColumnElement[float]:
    """Return until when a participant keeps the open questions.

    That is an idle time of ``return_after_minutes``, and much less before the first answer: many
    who open a survey never begin.
    """
    own = ASSIGNMENT.alias()
    has_begun = select(own.c.number).where(
        own.c.rater == PARTICIPANT.c.rater, own.c.answered_at.is_not(None)
    )
    share = case((has_begun.exists(), 1.0), else_=SHARE_BEFORE_ANSWERS)
    return PARTICIPANT.c.seen_at + 60 * study.return_after_minutes * share


def question_from_row(row: Row[Any]) -> Question:
    """Return the question of a row that has the columns of the table ``question``."""
    return Question(row.target, tuple(json.loads(row.items)), tuple(json.loads(row.first)))

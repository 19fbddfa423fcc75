"""How many answers every question has, and how many are under way."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select

from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT
from rankshot.survey.study import Question, Study

NO_ANSWER = "[]"
"""How "cannot say" is kept: it fills no place in the plan."""


# -------------------- survey.store.loads
# How many answers every question has, and how many are under way.


def idle_cutoff(study: Study, now: float) -> float:
    """Return the time before which a last sign of life means that somebody has left."""
    return now - 60 * study.return_after_minutes


def count_answers(connection: Connection, study: Study, now: float) -> dict[str, int]:
    """Return for each question of the study the answers given and under way.

    What a participant has not answered is under way while they are; after the study's
    ``return_after_minutes`` without a sign of life it counts no more, and others may get it.
    """
    given = and_(ASSIGNMENT.c.answered_at.is_not(None), ASSIGNMENT.c.answer != NO_ANSWER)
    return _count_by_question(connection, study, or_(given, _is_in_progress(study, now)))


def count_in_progress(connection: Connection, study: Study, now: float) -> dict[str, int]:
    """Return for each question of the study how many people are about to answer it."""
    return _count_by_question(connection, study, _is_in_progress(study, now))


def question_from_row(row: Row[tuple[object, ...]]) -> Question:
    """Return the question of a row that has the columns of one."""
    return Question(row.target, tuple(json.loads(row.items)), tuple(json.loads(row.first)))


def _is_in_progress(study: Study, now: float) -> ColumnElement[bool]:
    alive = PARTICIPANT.c.seen_at >= idle_cutoff(study, now)
    return and_(ASSIGNMENT.c.answered_at.is_(None), alive)


def _count_by_question(
    connection: Connection, study: Study, condition: ColumnElement[bool]
) -> dict[str, int]:
    rows = connection.execute(
        select(ASSIGNMENT.c.question, func.count().label("load"))
        .join(PARTICIPANT)
        .where(ASSIGNMENT.c.repeat == 0, condition)
        .group_by(ASSIGNMENT.c.question)
    )
    found: dict[str, int] = {row.question: row.load for row in rows}
    return {question.key: found.get(question.key, 0) for question in study.questions}


# -------------------- survey.store.allotment
# Which questions a participant gets: always those that have the fewest answers so far.


class Turn(NamedTuple):
    """One question in the sequence that a participant goes through."""

    question: str
    repeat: bool


def assign_questions(
    loads: Mapping[str, int], planned: int, n: int, seen: Collection[str], rng: Random
) -> list[str]:
    """Choose questions for one participant.

    Parameters
    ----------
    loads : mapping
        For each question, by its key, the answers given and under way.
    planned : int
        A question that has so many is not given out any more.
    n : int
        How many are wanted; fewer are returned where no more are left.
    seen : collection of str
        Questions that this participant has had.
    rng : Random
        Chooses among equals.

    Notes
    -----
    Taking the n smallest loads, each once, keeps all loads within one of each other: if they
    were m or m + 1 before, the m's are filled first, and no m + 1 is taken while an m is left.

    Examples
    --------
    >>> allot({"cat": 2, "dog": 1, "cow": 3}, planned=3, n=2, seen=[], rng=Random(0))
    ['dog', 'cat']
    """
    open_ones = [key for key, load in loads.items() if load < planned and key not in seen]
    rng.shuffle(open_ones)
    return sorted(open_ones, key=loads.__getitem__)[:n]


def arrange_turns(
    questions: Sequence[str], gold: Sequence[str], repeats: int, rng: Random
) -> list[Turn]:
    """Return the order in which a participant meets questions, gold ones and repeats.

    Gold questions stand anywhere. Repeats come last and repeat the earliest questions, at most
    half of them, so that there is always something in between.
    """
    turns = [Turn(key, repeat=False) for key in (*questions, *gold)]
    rng.shuffle(turns)
    asked = set(questions)
    early = [turn.question for turn in turns if turn.question in asked]
    early = early[: min(repeats, len(early) // 2)]
    return turns + [Turn(key, repeat=True) for key in early]


def shuffle_items(items: Sequence[str], rng: Random) -> list[str]:
    """Return the items in a random order: nothing that people see is pre-ranked."""
    return rng.sample(items, len(items))

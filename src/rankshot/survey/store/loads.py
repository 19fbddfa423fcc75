"""How many answers every question has, and how many are under way."""

from __future__ import annotations

import json

from sqlalchemy import ColumnElement, Connection, Row, and_, func, or_, select

from rankshot.survey.store.tables import ASSIGNMENT, PARTICIPANT
from rankshot.survey.study import Question, Study

NO_ANSWER = "[]"
"""How "cannot say" is kept: it fills no place in the plan."""


def lapse(study: Study, now: float) -> float:
    """Return the time before which a last sign of life means that somebody has left."""
    return now - 60 * study.return_after_minutes


def loads(connection: Connection, study: Study, now: float) -> dict[str, int]:
    """Return for each question of the study the answers given and under way.

    What a participant has not answered is under way while they are; after the study's
    ``return_after_minutes`` without a sign of life it counts no more, and others may get it.
    """
    given = and_(ASSIGNMENT.c.answered_at.is_not(None), ASSIGNMENT.c.answer != NO_ANSWER)
    return _counted(connection, study, or_(given, _under_way(study, now)))


def under_way(connection: Connection, study: Study, now: float) -> dict[str, int]:
    """Return for each question of the study how many people are about to answer it."""
    return _counted(connection, study, _under_way(study, now))


def question_of(row: Row[tuple[object, ...]]) -> Question:
    """Return the question of a row that has the columns of one."""
    return Question(row.target, tuple(json.loads(row.items)), tuple(json.loads(row.first)))


def _under_way(study: Study, now: float) -> ColumnElement[bool]:
    alive = PARTICIPANT.c.seen_at >= lapse(study, now)
    return and_(ASSIGNMENT.c.answered_at.is_(None), alive)


def _counted(
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

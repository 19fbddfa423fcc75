"""The results of a survey, read from its database: answers and counts."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from rankshot.survey.answers import Answer
from rankshot.survey.store.assignment import NO_ANSWER, idle_cutoff, question_from_row
from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT, QUESTION
from rankshot.survey.study import Study


@dataclass(frozen=True)
class ParticipantCounts:
    """How many participants started, are active, left before the end, and finished."""

    started: int
    active: int
    left: int
    finished: int


def read_answers(connection: Connection) -> list[Answer]:
    """Return all answers, including skips, gold questions and repeats."""
    rows = connection.execute(
        select(ASSIGNMENT, QUESTION)
        .join(QUESTION)
        .where(ASSIGNMENT.c.answered_at.is_not(None))
        .order_by(ASSIGNMENT.c.rater, ASSIGNMENT.c.number)
    )
    return [
        Answer(
            row.rater,
            question_from_row(row),
            row.number,
            bool(row.repeat),
            tuple(json.loads(row.shown)),
            tuple(json.loads(row.answer)),
            row.answered_at - row.shown_at,
            row.answered_at,
        )
        for row in rows
    ]


def count_participants(connection: Connection, study: Study, now: float) -> ParticipantCounts:
    """Count the participants."""
    is_active = PARTICIPANT.c.seen_at >= idle_cutoff(study, now)
    unfinished = PARTICIPANT.c.finished_at.is_(None)
    started, finished, active = connection.execute(
        select(
            func.count(),
            func.count(PARTICIPANT.c.finished_at),
            func.count().filter(unfinished & is_active),
        ).select_from(PARTICIPANT)
    ).one()
    return ParticipantCounts(started, active, started - finished - active, finished)


def read_raters(connection: Connection) -> dict[str, bool]:
    """Return all participants who have started, and whether each has finished."""
    rows = connection.execute(select(PARTICIPANT.c.rater, PARTICIPANT.c.finished_at))
    return {row.rater: row.finished_at is not None for row in rows}


def count_other_answers(connection: Connection, study: Study) -> int:
    """Count the answers to questions that the study does not contain."""
    keys = {question.key for question in (*study.questions, *study.gold)}
    rows = connection.execute(
        select(ASSIGNMENT.c.question, func.count().label("n"))
        .where(ASSIGNMENT.c.answer != NO_ANSWER, ASSIGNMENT.c.repeat == 0)
        .group_by(ASSIGNMENT.c.question)
    )
    return sum(row.n for row in rows if row.question not in keys)

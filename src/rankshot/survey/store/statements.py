"""The statements of participation: a participant, the current question, an answer, the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, Select, and_, bindparam, case, func, select

from rankshot.survey.store.assignment import NO_ANSWER
from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT, QUESTION, SURVEY

# Building a statement takes longer than running it: those of an answer are built once.
OF_RATER = ASSIGNMENT.c.rater == bindparam("of_rater")
OF_NUMBER = ASSIGNMENT.c.number == bindparam("of_number")
WAITS = ASSIGNMENT.c.answered_at.is_(None)
STATE = select(SURVEY.c.state).scalar_subquery().label("state")
CURRENT: Select[Any] = (
    select(
        *(PARTICIPANT.c[name] for name in ("rater", "pilot", "seen_at", "finished_at")),
        *(PARTICIPANT.c[name] for name in ("turk_assignment", "turk_host")),
        *(PARTICIPANT.c[name] for name in ("excluded_at", "withdrawn_at", "language")),
        STATE,
        *(ASSIGNMENT.c[name] for name in ("number", "question", "shown", "repeat")),
        *(
            select(count).where(OF_RATER).correlate(None).scalar_subquery().label(name)
            for name, count in {
                "total": func.count(ASSIGNMENT.c.number),
                "n_answers": func.count(ASSIGNMENT.c.answered_at),
            }.items()
        ),
    )
    .select_from(PARTICIPANT.outerjoin(ASSIGNMENT, and_(OF_RATER, WAITS)))
    .where(PARTICIPANT.c.rater == bindparam("of_rater"))
    .order_by(ASSIGNMENT.c.number)
    .limit(1)
)
# Another tab cannot replace the question before the answer is stored.
ASSIGNED = (
    select(*(ASSIGNMENT.c[name] for name in ("question", "shown", "answer", "answered_at")))
    .where(OF_RATER, OF_NUMBER)
    .with_for_update()
)
ANSWER = (
    ASSIGNMENT.update()
    .where(OF_RATER, OF_NUMBER)
    .values({name: bindparam(name) for name in ("shown_at", "answer", "answered_at", "seconds")})
)
# Activity, unless the last activity is older than `since`; and the end, if nothing is left.
GO_ON = (
    PARTICIPANT.update()
    .where(PARTICIPANT.c.rater == bindparam("of_rater"))
    .values(
        seen_at=case(
            (PARTICIPANT.c.seen_at >= bindparam("since"), bindparam("now")),
            else_=PARTICIPANT.c.seen_at,
        ),
        finished_at=case(
            (
                and_(
                    bindparam("may_end"),
                    # The last answer of somebody who was excluded earns no code.
                    PARTICIPANT.c.excluded_at.is_(None),
                    ~select(ASSIGNMENT.c.number).where(OF_RATER, WAITS).exists(),
                ),
                bindparam("now"),
            ),
            else_=PARTICIPANT.c.finished_at,
        ),
    )
)


def select_participant(connection: Connection, rater: str) -> Row[tuple[object, ...]] | None:
    """Return a participant with the state of the survey."""
    found = select(PARTICIPANT, STATE).where(PARTICIPANT.c.rater == rater)
    return connection.execute(found).first()


def select_assignments(connection: Connection, rater: str) -> Sequence[Row[tuple[object, ...]]]:
    """Return all assignments of a participant, locked until the transaction ends."""
    mine = select(ASSIGNMENT).where(ASSIGNMENT.c.rater == rater)
    return connection.execute(mine.order_by(ASSIGNMENT.c.number).with_for_update()).all()


def record_activity(connection: Connection, rater: str, now: float) -> None:
    """Record that a participant is active."""
    connection.execute(PARTICIPANT.update().where(PARTICIPANT.c.rater == rater).values(seen_at=now))


def record_end(connection: Connection, rater: str, now: float) -> None:
    """Record the end if the participant had questions, all are answered, and these count."""
    mine = select(ASSIGNMENT.c.number).where(ASSIGNMENT.c.rater == rater)
    waiting = mine.where(ASSIGNMENT.c.answered_at.is_(None))
    connection.execute(
        PARTICIPANT.update()
        .where(
            PARTICIPANT.c.rater == rater,
            PARTICIPANT.c.excluded_at.is_(None),
            mine.exists(),
            ~waiting.exists(),
        )
        .values(finished_at=now)
    )


def count_own_answers(connection: Connection, rater: str) -> tuple[int, int]:
    """Return the answers and skips of a participant, without gold questions and repeats."""
    is_skip = ASSIGNMENT.c.answer == NO_ANSWER
    n, n_skipped = connection.execute(
        select(func.count(ASSIGNMENT.c.answered_at), func.sum(case((is_skip, 1), else_=0)))
        .join(QUESTION)
        .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.repeat == 0, QUESTION.c.first == NO_ANSWER)
    ).one()
    return n - (n_skipped or 0), n_skipped or 0

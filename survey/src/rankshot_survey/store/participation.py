"""Taking part in a survey: start, get the current question, submit an answer."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random, SystemRandom
from typing import Any, NamedTuple

from sqlalchemy import Connection, Float, Row, Select, and_, bindparam, case, func, select

from rankshot_survey.answers import NamedOrder, read_order
from rankshot_survey.store.assignment import (
    NO_ANSWER,
    assign_questions,
    count_answers,
    drop_closed,
    find_open,
    insert_questions,
)
from rankshot_survey.store.database import (
    ASSIGNMENT,
    ID_COLUMNS,
    PARTICIPANT,
    QUESTION,
    SURVEY,
    Database,
)
from rankshot_survey.store.people import read_state
from rankshot_survey.study import Study

# Opening a page is recorded if the last activity is older than this share of the idle time.
ACTIVITY_SHARE = 0.02
# For how many questions the time of their first page is kept in memory.
MOST_SHOWN = 100_000
# Building a statement takes longer than running it: those of an answer are built once.
OF_RATER = ASSIGNMENT.c.rater == bindparam("of_rater")
OF_PERSON = PARTICIPANT.c.rater == bindparam("of_rater")
OF_NUMBER = ASSIGNMENT.c.number == bindparam("of_number")
WAITS = ASSIGNMENT.c.answered_at.is_(None)
STATE = select(SURVEY.c.state).scalar_subquery().label("state")
TOTAL, N_ANSWERS = (
    select(func.count(counted)).where(OF_RATER).correlate(None).scalar_subquery().label(name)
    for name, counted in (("total", ASSIGNMENT.c.number), ("n_answers", ASSIGNMENT.c.answered_at))
)
CURRENT: Select[Any] = (
    select(
        PARTICIPANT,
        STATE,
        *(ASSIGNMENT.c[name] for name in ("number", "question", "shown", "repeat")),
        QUESTION.c.target,
        TOTAL,
        N_ANSWERS,
    )
    .select_from(PARTICIPANT.outerjoin(ASSIGNMENT, and_(OF_RATER, WAITS)).outerjoin(QUESTION))
    .where(OF_PERSON)
    .order_by(ASSIGNMENT.c.number)
    .limit(1)
)
# Another tab cannot replace the question before the answer is stored.
ASSIGNED = select(ASSIGNMENT).where(OF_RATER, OF_NUMBER).with_for_update()
ANSWER = (
    ASSIGNMENT.update()
    .where(OF_RATER, OF_NUMBER)
    .values({name: bindparam(name) for name in ("answer", "answered_at", "seconds")})
)
# Participants have ended if no question is left. The last answer of somebody who was excluded earns
# no code.
HAS_ENDED = and_(
    PARTICIPANT.c.excluded_at.is_(None),
    ~select(ASSIGNMENT.c.number).where(OF_RATER, WAITS).exists(),
)
NOW = bindparam("now", type_=Float)
NOTE_END = (
    PARTICIPANT.update()
    .where(OF_PERSON)
    .values(finished_at=case((HAS_ENDED, NOW), else_=PARTICIPANT.c.finished_at))
)
# After a long idle time, `current_question` must first replace lost questions.
IS_RECENT = PARTICIPANT.c.seen_at >= bindparam("recent", type_=Float)
NOTE_ANSWER = NOTE_END.values(seen_at=case((IS_RECENT, NOW), else_=PARTICIPANT.c.seen_at))


class CurrentQuestion(NamedTuple):
    """The question that a participant has to answer now."""

    number: int
    # The key and the target of the question.
    key: str
    target: str
    shown: tuple[str, ...]
    position: int
    total: int
    # The token that an answer to it must have.
    form: str
    # The name of the draft of an answer, the same for every copy of the page.
    draft: str
    pilot: bool
    # The language that the participant chose at the start.
    language: str | None
    repeat: bool


class Finished(NamedTuple):
    """The participant has answered or skipped all questions."""

    # Our own completion code.
    code: str
    # Answers and skips of all questions.
    n_answers: int
    # Answers to the study's questions, without skips, gold questions and repeats.
    n_counted: int
    pilot: bool


class NotAssignedError(Exception):
    """An answer to a question that is not assigned to this participant, or not any more."""


@dataclass(eq=False)
class StoppedError(Exception):
    """Somebody cannot start or go on, for a reason.

    It is full, paused, closed, withdrawn, excluded, or elsewhere: somebody has started with the id,
    and nothing shows that it is the same person.
    """

    reason: str
    has_started: bool = False


@dataclass(eq=False)
class AlreadyAnsweredError(Exception):
    """A second, different answer to a question; ``order`` is the first one, which is kept."""

    order: NamedOrder


class Participation:
    """The actions of the participants of one study.

    ``clock`` returns the time in seconds; ``rng`` shuffles questions and items.
    """

    def __init__(
        self,
        study: Study,
        database: Database,
        clock: Callable[[], float] = time.time,
        rng: Random | None = None,
    ) -> None:
        self._study = study
        # After this time, a participant counts as having left.
        self._idle_seconds = 60 * study.return_after_minutes
        self._database = database
        self._identity = database.identity
        self._clock = clock
        self._rng = rng or SystemRandom()
        # When this process has shown each question first: a page may be loaded again.
        self._first_shown = lru_cache(MOST_SHOWN)(lambda *_question: clock())
        self._register()

    def _register(self) -> None:
        """Store the study's questions; those already stored stay, with their answers."""
        with self._database.begin_assignment() as connection:
            stored = set(connection.execute(select(QUESTION.c.key)).scalars())
            rows = [
                {column.name: getattr(question, column.name) for column in QUESTION.c}
                | {"items": json.dumps(question.items), "first": json.dumps(question.first)}
                for question in (*self._study.asked, *self._study.gold)
                if question.key not in stored
            ]
            if rows:
                connection.execute(QUESTION.insert(), rows)

    def require_place(self) -> bool:
        """Return whether somebody new would be a pilot participant; refuse if nobody can start."""
        with self._database.begin_read() as connection:
            pilot = _require_open(read_state(connection))
            self._require_questions(connection, pilot=pilot)
        return pilot

    def find_own(self, participant: str, form: str, owned: str | None) -> Row[Any] | None:
        """Return the participant with this id, if the visitor is the same person; see `start`.

        ``owned`` is the rater whose link the browser has. Somebody else gets None, as for an
        unknown id.
        """
        with self._database.begin_read() as connection:
            person = select_participant(connection, self._find_rater(connection, participant))
        if person is None or not self._is_own(person, form, owned):
            return None
        _check_going_on(person)
        return person

    def _is_own(self, person: Row[Any], form: str, owned: str | None) -> bool:
        """Return whether somebody who has a form, and the link of a rater, is this person."""
        is_same_form = person.started_by == self._identity.form_token("started", form)
        return person.rater == owned or is_same_form or bool(person.released)

    def start(
        self,
        participant: str,
        ids: Mapping[str, str] | None = None,
        language: str | None = None,
        *,
        form: str = "",
        owned: str | None = None,
    ) -> str:
        """Start or resume; return the rater.

        ``ids`` are the platform's ids of this person, by column of the database. An id is not a
        secret: only somebody who sends the same form again, owns the rater's link or was released
        by a researcher can resume. Others are stopped: it has started elsewhere.
        """
        now = self._clock()
        with self._database.begin_assignment() as connection:
            rater = self._find_rater(connection, participant)
            person = select_participant(connection, rater)
            if person is not None:
                if not self._is_own(person, form, owned):
                    raise StoppedError("elsewhere", has_started=True)
                _check_going_on(person)
            # A participant whose questions were all answered by others starts again.
            if person is None or not select_assignments(connection, rater):
                is_pilot = _require_open(read_state(connection))
                pilot = is_pilot if person is None else bool(person.pilot)
                keys = self._require_questions(connection, pilot=pilot)
                if person is None:
                    token = self._identity.form_token("started", form)
                    new = {"rater": rater, "started_at": now, "seen_at": now, "started_by": token}
                    connection.execute(PARTICIPANT.insert().values(**new, pilot=int(pilot)))
                record_activity(connection, rater, now)
                insert_questions(connection, self._study, rater, keys, now, self._rng)
            mine = PARTICIPANT.update().where(PARTICIPANT.c.rater == rater)
            chosen = {} if language is None else {"language": language}
            connection.execute(mine.values(released=0, **chosen))
            # Who returned a task and accepted it again submits the new one. Who has finished
            # cannot submit a second task for the same work.
            if ids:
                connection.execute(mine.where(PARTICIPANT.c.finished_at.is_(None)).values(**ids))
        return rater

    def find_person(self, rater: str) -> Row[Any] | None:
        """Return the row of a participant."""
        with self._database.begin_read() as connection:
            return select_participant(connection, rater)

    def read_ids(self, rater: str) -> dict[str, str]:
        """Return the platform's ids of a participant by their names, and the completion code."""
        person = self.find_person(rater)
        named = zip(self._study.id_names, ID_COLUMNS, strict=False)
        ids = {name: getattr(person, column, None) or "" for name, column in named}
        return {**ids, "code": self._identity.code(rater)}

    def _find_rater(self, connection: Connection, participant: str) -> str:
        """Return the rater of a visitor. Anyone who took part in the pilot starts again."""
        return self._identity.rater(participant, pilot=read_state(connection) == "pilot")

    def _require_questions(self, connection: Connection, *, pilot: bool) -> list[str]:
        """Choose questions for somebody new."""
        now = self._clock()
        loads = count_answers(connection, self._study, now, pilot=pilot)
        n = self._study.questions_per_participant
        keys = assign_questions(find_open(loads, self._study), n, self._rng)
        if not keys:
            raise StoppedError("full")
        return keys

    def current_question(self, rater: str) -> CurrentQuestion | Finished:
        """Return the first question without an answer, or `Finished`."""
        now = self._clock()
        with self._database.begin_read() as connection:
            row = _select_current(connection, rater)
            _check_going_on(row)
            # A write per page would be slow: activity is recorded if the last is long ago.
            is_recent = row.seen_at >= now - ACTIVITY_SHARE * self._idle_seconds
            if row.finished_at is not None or (row.number is not None and is_recent):
                return self._show(connection, row, now)
        with self._database.begin_assignment() as connection:
            row = _select_current(connection, rater)
            _check_going_on(row)
            if row.seen_at < now - self._idle_seconds:
                # Others may have answered the open questions meanwhile.
                loads = count_answers(connection, self._study, now, pilot=bool(row.pilot))
                if rows := select_assignments(connection, rater):
                    drop_closed(connection, self._study, loads, rows)
                row = _select_current(connection, rater)
            shown = self._show(connection, row, now)
            # Last: to avoid deadlocks, every writer locks assignments before participants.
            if isinstance(shown, CurrentQuestion):
                record_activity(connection, rater, now)
            return shown

    def _show(
        self, connection: Connection, row: Row[Any], now: float
    ) -> CurrentQuestion | Finished:
        """Return the question of a row of `CURRENT`; if none is left, record the end."""
        if row.finished_at is not None or row.number is None:
            if row.finished_at is None and row.total:
                connection.execute(NOTE_END, {"of_rater": row.rater, "now": now})
            n = _count_own_answers(connection, row.rater)
            return Finished(self._identity.code(row.rater), row.n_answers, n, bool(row.pilot))
        # A page of another order would mean other items by the same places.
        key = (row.rater, row.number, row.question, row.shown)
        shown_at = self._first_shown(*key)
        return CurrentQuestion(
            number=row.number,
            key=row.question,
            target=row.target,
            shown=tuple(json.loads(row.shown)),
            position=row.n_answers + 1,
            total=row.total,
            form=self._identity.timed_token(shown_at, *key),
            draft=self._identity.form_token(*key),
            pilot=bool(row.pilot),
            language=row.language,
            repeat=bool(row.repeat),
        )

    def submit(
        self, rater: str, number: int, form: str, places: Sequence[str], *, skip: bool = False
    ) -> None:
        """Store the places of the items, as they were shown. When this returns, they are on disk.

        Sending the same answer again changes nothing. It is a `NotAssignedError` if the question
        was never shown to this participant, or the form token is wrong.
        """
        now, mine = self._clock(), {"of_rater": rater, "of_number": number}
        with self._database.begin_write() as connection:
            row = connection.execute(ASSIGNED, mine).first()
            key = row and (rater, number, row.question, row.shown)
            shown_at = self._identity.read_timed_token(form, *key) if key else None
            if row is None or shown_at is None:
                raise NotAssignedError
            order = () if skip else read_order(self._study.rank, json.loads(row.shown), places)
            if row.answered_at is not None:
                kept = tuple(json.loads(row.answer))
                if kept != order:
                    raise AlreadyAnsweredError(kept)
                return
            # Somebody may have set the computer's time back.
            seconds = now - shown_at if now >= shown_at else None
            stored = {"answered_at": now, "seconds": seconds, "answer": json.dumps(order)}
            connection.execute(ANSWER, {**mine, **stored})
            if not order:
                # A skipped question is not repeated.
                again = (ASSIGNMENT.c.rater == rater) & (ASSIGNMENT.c.number > number)
                same = ASSIGNMENT.c.question == row.question
                connection.execute(ASSIGNMENT.delete().where(again, same))
            then = {"of_rater": rater, "now": now, "recent": now - self._idle_seconds}
            connection.execute(NOTE_ANSWER, then)

    def withdraw(self, rater: str) -> None:
        """Delete all answers of a participant, who cannot start again.

        A server soon empties the log of an SQLite file, which still has the answers. PostgreSQL
        overwrites them when it next cleans its tables by itself (autovacuum).
        """
        with self._database.begin_assignment() as connection:
            connection.execute(ASSIGNMENT.delete().where(ASSIGNMENT.c.rater == rater))
            mine = PARTICIPANT.c.rater == rater, PARTICIPANT.c.withdrawn_at.is_(None)
            values = {"withdrawn_at": self._clock()}
            connection.execute(PARTICIPANT.update().where(*mine).values(values))


def _select_current(connection: Connection, rater: str) -> Row[Any]:
    """Return a participant with the first question without an answer (NULL if there is none)."""
    row = connection.execute(CURRENT, {"of_rater": rater}).first()
    if row is None:
        raise NotAssignedError
    return row


def _check_going_on(person: Row[Any]) -> None:
    """Stop somebody who cannot continue. A finished participant always sees the last page."""
    if person.withdrawn_at is not None:
        raise StoppedError("withdrawn", has_started=True)
    if person.finished_at is None and (person.excluded_at is not None or person.state == "paused"):
        reason = "paused" if person.excluded_at is None else "excluded"
        raise StoppedError(reason, has_started=True)


def _require_open(state: str) -> bool:
    """Return whether a participant who starts now is a pilot participant."""
    if state in ("paused", "closed"):
        raise StoppedError(state)
    return state == "pilot"


# ---- Statements


def select_participant(connection: Connection, rater: str) -> Row[Any] | None:
    """Return a participant with the state of the survey."""
    query = select(PARTICIPANT, STATE).where(PARTICIPANT.c.rater == rater)
    return connection.execute(query).first()


def select_assignments(connection: Connection, rater: str) -> Sequence[Row[Any]]:
    """Return all assignments of a participant, locked until the transaction ends."""
    mine = select(ASSIGNMENT).where(ASSIGNMENT.c.rater == rater)
    return connection.execute(mine.order_by(ASSIGNMENT.c.number).with_for_update()).all()


def record_activity(connection: Connection, rater: str, now: float) -> None:
    """Record that a participant is active."""
    connection.execute(PARTICIPANT.update().where(PARTICIPANT.c.rater == rater).values(seen_at=now))


def _count_own_answers(connection: Connection, rater: str) -> int:
    """Return the answers of a participant, without skips, gold questions and repeats."""
    count = select(func.count()).select_from(ASSIGNMENT.join(QUESTION)).where(OF_RATER)
    is_first = and_(ASSIGNMENT.c.repeat == 0, QUESTION.c.first == NO_ANSWER)
    query = count.where(ASSIGNMENT.c.answer != NO_ANSWER, is_first)
    return connection.execute(query, {"of_rater": rater}).scalar_one()

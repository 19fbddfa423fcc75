"""Taking part in a survey: start, get the current question, submit an answer."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom

from sqlalchemy import Connection, Row, func, select

from rankshot.survey.answers import order_from_places
from rankshot.survey.platforms import TurkTask
from rankshot.survey.store.assignment import (
    arrange_turns,
    assign_questions,
    count_answers,
    idle_cutoff,
    question_from_row,
    shuffle_items,
)
from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT, QUESTION, Database
from rankshot.survey.study import Question, Study


@dataclass(frozen=True)
class CurrentQuestion:
    """The question that a participant has to answer now."""

    number: int
    question: Question
    shown: tuple[str, ...]
    position: int
    total: int
    form: str
    """The token that an answer to it must have."""


@dataclass(frozen=True)
class Finished:
    """All questions of a participant are answered or skipped."""

    code: str
    n_answers: int
    turk: TurkTask | None


class NotAssignedError(Exception):
    """An answer to a question that is not assigned to this participant, or not any more."""


class AlreadyAnsweredError(Exception):
    """A different answer to an answered question; ``order`` is the answer that is kept."""

    def __init__(self, order: tuple[str, ...]) -> None:
        super().__init__("this question has an answer")
        self.order = order


class Participation:
    """The actions of the participants of one study.

    Parameters
    ----------
    study : Study
    database : Database
    clock : callable
        Returns the time in seconds.
    rng : Random
        Shuffles questions and items.
    ticks : callable
        Returns the seconds of a clock that is never set.
    """

    def __init__(
        self,
        study: Study,
        database: Database,
        clock: Callable[[], float] = time.time,
        rng: Random | None = None,
        ticks: Callable[[], float] = time.monotonic,
    ) -> None:
        self._study = study
        self._database = database
        self._identity = database.identity
        self._clock = clock
        self._rng = rng or SystemRandom()
        self._ticks = ticks
        # Ticks of another process, perhaps on another machine, cannot be compared with ours.
        self._run = secrets.token_hex(8)
        self._register()

    def _register(self) -> None:
        """Store the study's questions; those already stored stay, with their answers."""
        with self._database.begin_assignment() as connection:
            known = set(connection.execute(select(QUESTION.c.key)).scalars())
            new = {q.key: q for q in (*self._study.questions, *self._study.gold)}
            rows = [
                {
                    "key": key,
                    "target": q.target,
                    "items": json.dumps(q.items),
                    "first": json.dumps(q.first),
                }
                for key, q in new.items()
                if key not in known
            ]
            if rows:
                connection.execute(QUESTION.insert(), rows)

    def is_full(self, participant: str | None) -> bool:
        """Return whether somebody who has not started yet would get no question."""
        with self._database.begin_read() as connection:
            if participant is not None:
                known = _select_participant(connection, self._identity.rater(participant))
                if known is not None:
                    return False
            counts = count_answers(connection, self._study, self._clock())
        return min(counts.values()) >= self._study.answers_per_question

    def start(self, participant: str, turk: TurkTask | None = None) -> str | None:
        """Start or resume; return the rater, or None if no question is left."""
        rater = self._identity.rater(participant)
        now = self._clock()
        with self._database.begin_assignment() as connection:
            known = _select_participant(connection, rater) is not None
            # A participant whose questions were all answered by others starts again.
            if not known or not _select_assignments(connection, rater):
                study, counts = self._study, count_answers(connection, self._study, now)
                wanted = study.questions_per_participant
                keys = assign_questions(counts, study.answers_per_question, wanted, (), self._rng)
                if not keys:
                    return None
                if not known:
                    connection.execute(
                        PARTICIPANT.insert().values(rater=rater, started_at=now, seen_at=now)
                    )
                _record_activity(connection, rater, now)
                self._assign(connection, rater, keys)
            if turk is not None:
                # A worker who returned a task and accepted it again submits the new one. A worker
                # who has finished cannot submit a second task for the same work.
                connection.execute(
                    PARTICIPANT.update()
                    .where(PARTICIPANT.c.rater == rater, PARTICIPANT.c.finished_at.is_(None))
                    .values(turk_assignment=turk.assignment, turk_host=turk.host)
                )
        return rater

    def _assign(self, connection: Connection, rater: str, keys: list[str]) -> None:
        gold = [question.key for question in self._study.gold]
        items = {q.key: q.items for q in (*self._study.questions, *self._study.gold)}
        turns = arrange_turns(keys, gold, self._study.repeats, self._rng)
        rows = [
            {
                "rater": rater,
                "number": number,
                "question": turn.question,
                "repeat": int(turn.repeat),
                "shown": json.dumps(shuffle_items(items[turn.question], self._rng)),
            }
            for number, turn in enumerate(turns, 1)
        ]
        connection.execute(ASSIGNMENT.insert(), rows)

    def current_question(self, rater: str) -> CurrentQuestion | Finished:
        """Return the first question without an answer, or `Finished`.

        Raises
        ------
        NotAssignedError
            If there is no such participant.
        """
        now = self._clock()
        with self._database.begin_read() as connection:
            person = _select_participant(connection, rater)
            if person is None:
                raise NotAssignedError
            if person.finished_at is not None:
                return self._make_finished(connection, person)
        if person.seen_at < idle_cutoff(self._study, now):
            with self._database.begin_assignment() as connection:
                self._resume(connection, rater, now)
        with self._database.begin_write() as connection:
            row = connection.execute(
                select(ASSIGNMENT, QUESTION)
                .join(QUESTION)
                .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.answered_at.is_(None))
                .order_by(ASSIGNMENT.c.number)
                .limit(1)
            ).first()
            if row is None:
                _record_end(connection, rater, now)
                return self._make_finished(connection, person)
            if row.shown_at is None:
                connection.execute(
                    ASSIGNMENT.update()
                    .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.number == row.number)
                    .values(shown_at=now, shown_tick=self._ticks(), shown_run=self._run)
                )
            total, answered = connection.execute(
                select(func.count(), func.count(ASSIGNMENT.c.answered_at)).where(
                    ASSIGNMENT.c.rater == rater
                )
            ).one()
            # Last: to avoid deadlocks, every writer locks assignments before participants.
            _record_activity(connection, rater, now)
        form = self._identity.form_token(rater, row.number, row.question)
        shown = tuple(json.loads(row.shown))
        return CurrentQuestion(row.number, question_from_row(row), shown, answered + 1, total, form)

    def _resume(self, connection: Connection, rater: str, now: float) -> None:
        """Resume after an idle time: replace questions that others have completed meanwhile."""
        person = _select_participant(connection, rater)
        if person is None or person.seen_at >= idle_cutoff(self._study, now):
            # Another tab did this already.
            return
        counts = count_answers(connection, self._study, now)
        rows = _select_assignments(connection, rater)
        seen = {row.question for row in rows}
        gold = {question.key for question in self._study.gold}
        is_asked_something = False
        for row in rows:
            if row.question in gold or row.repeat:
                continue
            is_settled = row.answered_at is not None or row.question not in counts
            key = (
                row.question
                if is_settled
                else self._choose_open_question(counts, row.question, seen)
            )
            is_asked_something |= key is not None
            if key != row.question:
                self._replace_question(connection, row, key)
        if not is_asked_something:
            # Gold questions alone are not worth asking.
            connection.execute(
                ASSIGNMENT.delete().where(
                    ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.answered_at.is_(None)
                )
            )
        _record_activity(connection, rater, now)

    def _choose_open_question(self, counts: dict[str, int], key: str, seen: set[str]) -> str | None:
        """Return this question if it needs answers, otherwise another that does, or None."""
        planned = self._study.answers_per_question
        if counts[key] >= planned:
            found = assign_questions(counts, planned, 1, seen, self._rng)
            if not found:
                return None
            key = found[0]
            seen.add(key)
        counts[key] += 1
        return key

    def _replace_question(
        self, connection: Connection, row: Row[tuple[object, ...]], key: str | None
    ) -> None:
        """Replace a question and its repeat by another question; None removes both."""
        mine = (ASSIGNMENT.c.rater == row.rater) & (ASSIGNMENT.c.question == row.question)
        if key is None:
            connection.execute(ASSIGNMENT.delete().where(mine))
            return
        items = next(q.items for q in self._study.questions if q.key == key)
        for repeat in (0, 1):
            shown = json.dumps(shuffle_items(items, self._rng))
            connection.execute(
                ASSIGNMENT.update()
                .where(mine, ASSIGNMENT.c.repeat == repeat)
                .values(question=key, shown=shown, shown_at=None)
            )

    def submit(
        self, rater: str, number: int, form: str, places: Sequence[str], *, skip: bool = False
    ) -> None:
        """Store an answer. When this returns, it is on disk.

        Sending the same answer again changes nothing.

        Raises
        ------
        NotAssignedError
            If the question was never shown to this participant, or the form token is wrong.
        AlreadyAnsweredError
            If the question has a different answer, which is kept.
        RankshotError
            If the places are not a ranking. The message says what to change.
        """
        now = self._clock()
        with self._database.begin_write() as connection:
            row = connection.execute(
                select(ASSIGNMENT)
                .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.number == number)
                # Another tab cannot replace the question before the answer is stored.
                .with_for_update()
            ).first()
            if row is None or row.shown_at is None:
                raise NotAssignedError
            if not self._identity.is_form_token(form, rater, number, row.question):
                raise NotAssignedError
            order = () if skip else order_from_places(json.loads(row.shown), places)
            if row.answered_at is not None:
                kept = tuple(json.loads(row.answer))
                if kept != order:
                    raise AlreadyAnsweredError(kept)
                return
            connection.execute(
                ASSIGNMENT.update()
                .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.number == number)
                .values(
                    answer=json.dumps(order),
                    answered_at=now,
                    seconds=self._measure_seconds(row, now),
                )
            )
            if not order:
                # A skipped question is not repeated.
                connection.execute(
                    ASSIGNMENT.delete().where(
                        ASSIGNMENT.c.rater == rater,
                        ASSIGNMENT.c.question == row.question,
                        ASSIGNMENT.c.number > number,
                    )
                )
            # After a long idle time, `current_question` must first replace lost questions.
            _record_activity(connection, rater, now, since=idle_cutoff(self._study, now))
            _record_end(connection, rater, now)

    def _measure_seconds(self, row: Row[tuple[object, ...]], now: float) -> float | None:
        """Return the time since a question was shown; None if it is unknown."""
        if row.shown_run == self._run:
            return self._ticks() - row.shown_tick
        # The server was started again, or another one showed the question. Only the computer's
        # time is left, and somebody may have set it back.
        return now - row.shown_at if now >= row.shown_at else None

    def _make_finished(self, connection: Connection, person: Row[tuple[object, ...]]) -> Finished:
        n_answers = connection.execute(
            select(func.count(ASSIGNMENT.c.answered_at)).where(ASSIGNMENT.c.rater == person.rater)
        ).scalar_one()
        turk = person.turk_assignment and TurkTask(person.turk_assignment, person.turk_host)
        return Finished(self._identity.code(person.rater), n_answers, turk or None)


def _select_participant(connection: Connection, rater: str) -> Row[tuple[object, ...]] | None:
    return connection.execute(select(PARTICIPANT).where(PARTICIPANT.c.rater == rater)).first()


def _select_assignments(connection: Connection, rater: str) -> Sequence[Row[tuple[object, ...]]]:
    """Return all assignments of a participant, locked until the transaction ends."""
    mine = select(ASSIGNMENT).where(ASSIGNMENT.c.rater == rater)
    return connection.execute(mine.order_by(ASSIGNMENT.c.number).with_for_update()).all()


def _record_activity(connection: Connection, rater: str, now: float, since: float = 0.0) -> None:
    """Record activity, unless the last activity is older than ``since``."""
    connection.execute(
        PARTICIPANT.update()
        .where(PARTICIPANT.c.rater == rater, PARTICIPANT.c.seen_at >= since)
        .values(seen_at=now)
    )


def _record_end(connection: Connection, rater: str, now: float) -> None:
    """Record the end if the participant had questions and all are answered."""
    mine = select(ASSIGNMENT.c.number).where(ASSIGNMENT.c.rater == rater)
    waiting = mine.where(ASSIGNMENT.c.answered_at.is_(None))
    connection.execute(
        PARTICIPANT.update()
        .where(PARTICIPANT.c.rater == rater, mine.exists(), ~waiting.exists())
        .values(finished_at=now)
    )

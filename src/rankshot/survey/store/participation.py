"""Taking part: start, the question that comes next, and the answer that is kept."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random, SystemRandom

from sqlalchemy import Connection, Row, func, select

from rankshot.survey.answers import order_from_places
from rankshot.survey.platforms import TurkTask
from rankshot.survey.store.assignment import assign_questions, idle_cutoff, count_answers, question_from_row, arrange_turns, shuffle_items
from rankshot.survey.store.database import ASSIGNMENT, PARTICIPANT, QUESTION, Database
from rankshot.survey.study import Question, Study


@dataclass(frozen=True)
class CurrentQuestion:
    """The question that a participant has in front of them."""

    number: int
    question: Question
    shown: tuple[str, ...]
    position: int
    total: int
    form: str
    """The token that an answer to it carries."""


@dataclass(frozen=True)
class Finished:
    """All of a participant's questions are answered, and kept."""

    code: str
    n_answers: int
    turk: TurkTask | None


class NotAssignedError(Exception):
    """An answer to a question that this participant was not asked, or not any more."""


class AlreadyAnsweredError(Exception):
    """Another answer to a question that has one; ``order`` is the one that is kept."""

    def __init__(self, order: tuple[str, ...]) -> None:
        super().__init__("this question has an answer")
        self.order = order


class Participation:
    """What participants do in one study; each method is one transaction.

    Parameters
    ----------
    study : Study
    database : Database
    clock : callable
        Returns the time in seconds.
    rng : Random
        Orders questions and items.
    """

    def __init__(
        self,
        study: Study,
        database: Database,
        clock: Callable[[], float] = time.time,
        rng: Random | None = None,
    ) -> None:
        self._study = study
        self._database = database
        self._identity = database.identity
        self._clock = clock
        self._rng = rng or SystemRandom()
        self._register()

    def _register(self) -> None:
        """Write down the study's questions; those that are there stay, with their answers."""
        with self._database.allotting() as connection:
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
        """Return whether a visitor, if they are not known yet, would be given no question."""
        with self._database.reading() as connection:
            if participant is not None:
                known = _select_participant(connection, self._identity.rater(participant))
                if known is not None:
                    return False
            counts = count_answers(connection, self._study, self._clock())
        return min(counts.values()) >= self._study.answers_per_question

    def start(self, participant: str, turk: TurkTask | None = None) -> str | None:
        """Let somebody in, or in again; return who they are, or None if nothing is left to ask."""
        rater = self._identity.rater(participant)
        now = self._clock()
        with self._database.allotting() as connection:
            known = _select_participant(connection, rater) is not None
            # Who was away while others answered everything has nothing left, and starts anew.
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
                # Who returned a task and took it again hands in the new one; who has finished
                # does not hand in another one for the same work.
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

    def current(self, rater: str) -> CurrentQuestion | Finished:
        """Return the first question without an answer, or the end.

        Raises
        ------
        NotAskedError
            If nobody of this name takes part.
        """
        now = self._clock()
        with self._database.reading() as connection:
            person = _select_participant(connection, rater)
            if person is None:
                raise NotAssignedError
            if person.finished_at is not None:
                return self._finished(connection, person)
        if person.seen_at < idle_cutoff(self._study, now):
            with self._database.allotting() as connection:
                self._renew(connection, rater, now)
        with self._database.writing() as connection:
            row = connection.execute(
                select(ASSIGNMENT, QUESTION)
                .join(QUESTION)
                .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.answered_at.is_(None))
                .order_by(ASSIGNMENT.c.number)
                .limit(1)
            ).first()
            if row is None:
                _record_end(connection, rater, now)
                return self._finished(connection, person)
            if row.shown_at is None:
                connection.execute(
                    ASSIGNMENT.update()
                    .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.number == row.number)
                    .values(shown_at=now)
                )
            total, answered = connection.execute(
                select(func.count(), func.count(ASSIGNMENT.c.answered_at)).where(
                    ASSIGNMENT.c.rater == rater
                )
            ).one()
            # Last: whoever writes locks questions first and people after them.
            _record_activity(connection, rater, now)
        form = self._identity.form_token(rater, row.number, row.question)
        shown = tuple(json.loads(row.shown))
        return CurrentQuestion(row.number, question_from_row(row), shown, answered + 1, total, form)

    def _renew(self, connection: Connection, rater: str, now: float) -> None:
        """Take up again what lapsed: questions that others have filled meanwhile are exchanged."""
        person = _select_participant(connection, rater)
        if person is None or person.seen_at >= idle_cutoff(self._study, now):
            # Another tab was quicker.
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
            key = row.question if is_settled else self._still_free(counts, row.question, seen)
            is_asked_something |= key is not None
            if key != row.question:
                self._exchange(connection, row, key)
        if not is_asked_something:
            # Gold questions alone are no survey.
            connection.execute(
                ASSIGNMENT.delete().where(
                    ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.answered_at.is_(None)
                )
            )
        _record_activity(connection, rater, now)

    def _still_free(self, counts: dict[str, int], key: str, seen: set[str]) -> str | None:
        """Return a question that wants an answer, this one if it does; None if none does."""
        planned = self._study.answers_per_question
        if counts[key] >= planned:
            found = assign_questions(counts, planned, 1, seen, self._rng)
            if not found:
                return None
            key = found[0]
            seen.add(key)
        counts[key] += 1
        return key

    def _exchange(
        self, connection: Connection, row: Row[tuple[object, ...]], key: str | None
    ) -> None:
        """Put another question in the place of one, and of its repeat; None takes both away."""
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
        """Keep an answer; when this returns, it is on disk.

        The same answer once more changes nothing.

        Raises
        ------
        NotAskedError
            If the question was never shown to this participant, or the form is not ours.
        AnsweredBeforeError
            If there is another answer; that one stays.
        RankshotError
            If the places are no ranking: says what to change.
        """
        now = self._clock()
        with self._database.writing() as connection:
            row = connection.execute(
                select(ASSIGNMENT)
                .where(ASSIGNMENT.c.rater == rater, ASSIGNMENT.c.number == number)
                # Until the answer is kept, no other tab makes another question of it.
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
                .values(answer=json.dumps(order), answered_at=now)
            )
            if not order:
                # What somebody could not say is not asked again.
                connection.execute(
                    ASSIGNMENT.delete().where(
                        ASSIGNMENT.c.rater == rater,
                        ASSIGNMENT.c.question == row.question,
                        ASSIGNMENT.c.number > number,
                    )
                )
            # Who was away too long stays away until `current` has looked at what is left.
            _record_activity(connection, rater, now, since=idle_cutoff(self._study, now))
            _record_end(connection, rater, now)

    def _finished(self, connection: Connection, person: Row[tuple[object, ...]]) -> Finished:
        n_answers = connection.execute(
            select(func.count(ASSIGNMENT.c.answered_at)).where(ASSIGNMENT.c.rater == person.rater)
        ).scalar_one()
        turk = person.turk_assignment and TurkTask(person.turk_assignment, person.turk_host)
        return Finished(self._identity.code(person.rater), n_answers, turk or None)


def _select_participant(connection: Connection, rater: str) -> Row[tuple[object, ...]] | None:
    return connection.execute(select(PARTICIPANT).where(PARTICIPANT.c.rater == rater)).first()


def _select_assignments(connection: Connection, rater: str) -> Sequence[Row[tuple[object, ...]]]:
    """Return all questions of a participant, which nobody else changes until we are done."""
    mine = select(ASSIGNMENT).where(ASSIGNMENT.c.rater == rater)
    return connection.execute(mine.order_by(ASSIGNMENT.c.number).with_for_update()).all()


def _record_activity(connection: Connection, rater: str, now: float, since: float = 0.0) -> None:
    """Note a sign of life, from somebody whose last one is not older than ``since``."""
    connection.execute(
        PARTICIPANT.update()
        .where(PARTICIPANT.c.rater == rater, PARTICIPANT.c.seen_at >= since)
        .values(seen_at=now)
    )


def _record_end(connection: Connection, rater: str, now: float) -> None:
    """Note the end, if nothing is left to answer, and something was."""
    mine = select(ASSIGNMENT.c.number).where(ASSIGNMENT.c.rater == rater)
    waiting = mine.where(ASSIGNMENT.c.answered_at.is_(None))
    connection.execute(
        PARTICIPANT.update()
        .where(PARTICIPANT.c.rater == rater, mine.exists(), ~waiting.exists())
        .values(finished_at=now)
    )

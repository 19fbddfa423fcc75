"""What the researcher sees of a survey, all from one state of its database."""

from __future__ import annotations

import gc
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Row, func, select

from rankshot.survey.answers import Answer
from rankshot.survey.extra_answers import read_extra_answers
from rankshot.survey.progress import (
    Progress,
    RaterProgress,
    TargetMemo,
    read_answers,
    summarize_progress,
    summarize_raters,
)
from rankshot.survey.quality import Flag, find_flags
from rankshot.survey.store.assignment import count_in_progress, idle_cutoff
from rankshot.survey.store.database import (
    ASSIGNMENT,
    EVENT,
    EXTRA_ANSWER,
    PARTICIPANT,
    SURVEY,
    Database,
)
from rankshot.survey.store.identity import Identity
from rankshot.survey.store.people import PAYMENT_IDS, Event, State, read_events, read_state
from rankshot.survey.study import Study

STATES = ("active", "finished", "answered nothing", "left", "withdrawn", "excluded")
"""The states of a participant."""
CHANGING_IDS = ("platform_session", "turk_assignment")
"""Ids of the platform that are new when somebody returns a submission and takes part again."""


@dataclass(frozen=True)
class Participant:
    """One participant.

    Attributes
    ----------
    rater : str
    state : str
        "active", "finished", "answered nothing", "left", "withdrawn" or "excluded". Withdrawn
        comes before excluded, and excluded before finished. Who came to the end without an answer
        that counts has answered nothing.
    started_at, seen_at : float
        Unix times of the start and of the last activity.
    finished_at, withdrawn_at, excluded_at : float or None
    excluded_why : str
        The reason of an exclusion.
    pilot : bool
    language : str or None
    ids : mapping
        The ids by which a platform pays.
    n_answers : int
        Answers that count: no skips, gold questions and repeats.
    n_checks : int
        Answers to gold questions, and repeated answers.
    n_skipped : int
        Skips of any question.
    seconds : float or None
        The median of the known times per answer or skip.
    duration : float or None
        Seconds from the start to the end, or to the last activity. None if the computer's time
        was set back in between.
    flags : tuple of Flag
        Excluded participants are compared with everybody, and others only with those who are not
        excluded: a flag that was the reason of an exclusion stays.
    extra : mapping
        The answers to the extra questions, by name.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import time
    >>> from rankshot.survey import Database, Question, Study, read_overview
    >>> from rankshot.survey.store.participation import Participation
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     visit = Participation(study, database)  # what the web pages call
    ...     rater = visit.start("none:id:ada")
    ...     asked = visit.current_question(rater)
    ...     places = ["1" if item == "leopard" else "" for item in asked.shown]
    ...     visit.submit(rater, asked.number, asked.form, places)
    ...     view = read_overview(study, database, time.time())
    ...     database.close()
    >>> for person in view.people.values():
    ...     print(person.state, person.n_answers)
    finished 1
    """

    rater: str
    state: str
    started_at: float
    seen_at: float
    finished_at: float | None
    withdrawn_at: float | None
    excluded_at: float | None
    excluded_why: str
    pilot: bool
    language: str | None
    ids: Mapping[str, str | None]
    n_answers: int
    n_checks: int
    n_skipped: int
    seconds: float | None
    duration: float | None
    flags: tuple[Flag, ...]
    extra: Mapping[str, str]


@dataclass(frozen=True)
class Overview:
    """What the researcher sees.

    Attributes
    ----------
    study : Study
    state : {"open", "pilot", "paused", "closed"}
    pilot : bool
        Whether this is about the pilot participants, or about all others.
    n_pilot : int
        How many pilot participants there are.
    people : dict
        All participants by rater, in the order of their start.
    answers : list of Answer
        The answers of those who are not excluded.
    excluded_answers : list of Answer
        The answers of the others.
    flags : dict
        The flags of every rater who is not excluded.
    progress : Progress
        Without excluded participants.
    events : list of Event
        What researchers did, the latest first.
    version : str
        Equal for two equal states of the database.
    identity : Identity
        Makes the completion codes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import time
    >>> from rankshot.survey import Database, Question, Study, read_overview
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     view = read_overview(study, database, time.time())
    ...     database.close()
    >>> view.state, len(view.people), view.answers
    ('open', 0, [])
    """

    study: Study
    state: State
    pilot: bool
    n_pilot: int
    people: dict[str, Participant]
    answers: list[Answer]
    excluded_answers: list[Answer]
    flags: dict[str, tuple[Flag, ...]]
    progress: Progress
    events: list[Event]
    version: str
    identity: Identity

    @property
    def counts(self) -> Counter[str]:
        """How many participants are in each state."""
        return Counter(person.state for person in self.people.values())

    @cached_property
    def ids(self) -> dict[str, str]:
        """The id by which the platform knows each participant, or the completion code."""
        return {rater: find_id(person, self.identity) for rater, person in self.people.items()}

    @cached_property
    def codes(self) -> dict[str, str]:
        """The completion code of every participant."""
        return {rater: self.identity.code(rater) for rater in self.people}


def find_id(person: Participant, identity: Identity) -> str:
    """Return the id by which the platform knows a participant; without one, the code."""
    return person.ids["platform_id"] or identity.code(person.rater)


class OverviewReader:
    """Reads the overview of a survey again only if something has changed.

    Parameters
    ----------
    study : Study
    database : Database
    clock : callable
        Returns the time in seconds.
    """

    def __init__(
        self, study: Study, database: Database, clock: Callable[[], float] = time.time
    ) -> None:
        self._study = study
        self._database = database
        self._clock = clock
        # Another process may have another study.
        self._run = secrets.token_hex(8)
        self._last: dict[bool, Overview] = {}
        self._memo: TargetMemo = {}
        self._lock = Lock()

    def read(self, *, pilot: bool = False) -> Overview:
        """Return the overview of all participants, or of the pilot."""
        # Several researchers who look at the same time wait for the one who reads.
        with self._lock, self._database.begin_read() as connection:
            now = self._clock()
            version = self._read_version(connection, now)
            last = self._last.get(pilot)
            if last is None or last.version != version:
                identity = self._database.identity
                last = _summarize(
                    connection, self._study, identity, now, pilot, version, self._memo
                )
                self._last[pilot] = last
            return last

    def _read_version(self, connection: Connection, now: float) -> str:
        """Return a name of the database's state that is quick to find.

        Every answer adds to a count or raises a time, every action of a researcher is an event,
        and participants become inactive when time goes by. Who comes again may have new ids.
        """
        is_active = PARTICIPANT.c.seen_at >= idle_cutoff(self._study, now)
        queries = (
            select(func.count(ASSIGNMENT.c.answered_at), func.max(ASSIGNMENT.c.answered_at)),
            select(
                func.count(),
                func.count().filter(is_active),
                func.max(PARTICIPANT.c.started_at),
                func.max(PARTICIPANT.c.seen_at),
                func.count(PARTICIPANT.c.finished_at),
                func.count(PARTICIPANT.c.withdrawn_at),
                func.count(PARTICIPANT.c.excluded_at),
                *(func.aggregate_strings(PARTICIPANT.c[name], " ") for name in CHANGING_IDS),
            ),
            select(func.count(), func.max(EVENT.c.at)).select_from(EVENT),
            select(func.count()).select_from(EXTRA_ANSWER),
            select(SURVEY.c.state),
        )
        found = [tuple(connection.execute(query).one()) for query in queries]
        return sha256(repr((self._run, found)).encode()).hexdigest()[:32]


def read_overview(study: Study, database: Database, now: float, *, pilot: bool = False) -> Overview:
    """Read the database of a survey, and summarize it.

    Parameters
    ----------
    study : Study
    database : Database
    now : float
        The Unix time, which says who is idle.
    pilot : bool
        Whether to read the participants of the pilot, in place of all others.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import time
    >>> from rankshot.survey import Database, Question, Study, read_overview
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     view = read_overview(study, database, time.time())
    ...     database.close()
    >>> view.state, view.progress.n_answers, view.progress.n_planned
    ('open', 0, 20)
    """
    return OverviewReader(study, database, lambda: now).read(pilot=pilot)


def _summarize(
    connection: Connection,
    study: Study,
    identity: Identity,
    now: float,
    pilot: bool,  # noqa: FBT001
    version: str,
    memo: TargetMemo,
) -> Overview:
    with _pause_garbage_collection():
        rows = connection.execute(
            select(PARTICIPANT).order_by(PARTICIPANT.c.started_at, PARTICIPANT.c.rater)
        ).all()
        is_counted = {row.rater: row.excluded_at is None for row in rows if row.pilot == pilot}
        answers: list[Answer] = []
        excluded: list[Answer] = []
        for answer in read_answers(connection):
            if (counted := is_counted.get(answer.rater)) is not None:
                (answers if counted else excluded).append(answer)
        flags = find_flags(answers, study.quality)
        all_flags = find_flags([*answers, *excluded], study.quality) if excluded else flags
        in_progress = count_in_progress(connection, study, now, pilot=pilot)
        progress = summarize_progress(study, answers, in_progress, flags, memo)
        given = {
            one.rater: one for one in (*progress.raters, *summarize_raters(excluded, all_flags))
        }
        extra = read_extra_answers(connection)
        cutoff = idle_cutoff(study, now)
        people = {
            row.rater: _describe_participant(
                row, given.get(row.rater), extra.get(row.rater, {}), cutoff
            )
            for row in rows
            if row.pilot == pilot
        }
    return Overview(
        study,
        read_state(connection),
        pilot,
        sum(row.pilot for row in rows),
        people,
        answers,
        excluded,
        flags,
        progress,
        read_events(connection),
        version,
        identity,
    )


def _describe_participant(
    row: Row[Any], given: RaterProgress | None, extra: Mapping[str, str], cutoff: float
) -> Participant:
    given = given or RaterProgress(row.rater, 0, 0, 0, None, ())
    end = row.finished_at or row.seen_at
    return Participant(
        row.rater,
        _find_state(row, given.n_answers, cutoff),
        row.started_at,
        row.seen_at,
        row.finished_at,
        row.withdrawn_at,
        row.excluded_at,
        row.excluded_why or "",
        bool(row.pilot),
        row.language,
        {name: getattr(row, name) for name in PAYMENT_IDS},
        given.n_answers,
        given.n_checks,
        given.n_skipped,
        given.seconds,
        end - row.started_at if end >= row.started_at else None,
        given.flags,
        extra,
    )


def _find_state(row: Row[Any], n_answers: int, cutoff: float) -> str:
    if row.withdrawn_at is not None:
        return "withdrawn"
    if row.excluded_at is not None:
        return "excluded"
    if row.finished_at is not None:
        return "finished" if n_answers else "answered nothing"
    return "active" if row.seen_at >= cutoff else "left"


@contextmanager
def _pause_garbage_collection() -> Iterator[None]:
    """Do not look for garbage while many objects are made that all stay: a third of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()

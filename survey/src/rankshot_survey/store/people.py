"""What researchers do with a survey and its participants, each with a record of it.

Every function is one transaction. For a list of raters it does everything or nothing: unknown
raters are named in the error. Those whom an action does not change, such as the restoring of
somebody who is not excluded, stay without a record.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args

from sqlalchemy import ColumnElement, Connection, Row, Select, case, func, or_, select

from rankshot.core.errors import InputError, quote_names
from rankshot.core.validation import require_choice
from rankshot_survey.platforms import ID_COLUMNS, participant_name, pilot_name
from rankshot_survey.store.database import (
    ASSIGNMENT,
    EVENT,
    EXTRA_ANSWER,
    PARTICIPANT,
    SURVEY,
    Database,
    Identity,
)

State = Literal["open", "pilot", "paused", "closed"]
NOBODY, UNCHANGED = "are ids, codes or raters of nobody", "nothing was changed"
# The most characters of the reason for an exclusion.
MOST_REASON = 500
IS_EXCLUDED = PARTICIPANT.c.excluded_at.is_not(None)


# ---- Reading


def read_state(connection: Connection) -> State:
    """Return the state of the survey: open, pilot, paused or closed."""
    return connection.execute(select(SURVEY.c.state)).scalar_one()  # type: ignore[no-any-return]


def read_events(connection: Connection) -> Sequence[Row[Any]]:
    """Return everything that researchers did, the latest first."""
    return connection.execute(select(EVENT).order_by(EVENT.c.at.desc(), EVENT.c.id)).all()


def read_extra_answers(
    connection: Connection, rater: str | None = None
) -> dict[str, dict[str, str]]:
    """Return the answers to extra questions by rater and name, of one participant or of all.

    A value of "" means that an optional question was left empty.
    """
    query = select(EXTRA_ANSWER).order_by(EXTRA_ANSWER.c.rater, EXTRA_ANSWER.c.name)
    if rater is not None:
        query = query.where(EXTRA_ANSWER.c.rater == rater)
    answers: dict[str, dict[str, str]] = defaultdict(dict)
    for row in connection.execute(query):
        answers[row.rater][row.name] = row.value
    return dict(answers)


def find_raters(
    connection: Connection, identity: Identity, platform: str, names: Iterable[str]
) -> list[str]:
    """Return the raters with these names, each once: also those of a pilot.

    A name is an id of the platform, our completion code or a rater.
    """
    holders: dict[str, set[str]] = {}
    for row in connection.execute(select(PARTICIPANT.c.rater, PARTICIPANT.c.platform_id)):
        for name in {*row, identity.code(row.rater)} - {None}:
            holders.setdefault(name, set()).add(row.rater)
    all_raters = {rater for raters in holders.values() for rater in raters}
    chosen: dict[str, None] = {}
    unknown = []
    for name in names:
        # One person has two raters after a pilot.
        own = participant_name(platform, name)
        person = {identity.rater(own), identity.rater(pilot_name(own))}
        fits = holders.get(name, set()) | person & all_raters
        if len(fits) > 1 and not fits <= person:
            raters = f"give one of the raters {quote_names(sorted(fits))}"
            raise InputError("ids", name, f"fits {len(fits)} participants", hint=raters)
        chosen.update(dict.fromkeys(fits))
        if not fits:
            unknown.append(name)
    if unknown:
        raise InputError("ids", unknown, NOBODY, hint=UNCHANGED)
    return list(chosen)


# ---- The survey


def set_state(database: Database, state: State) -> None:
    """Change the state of a survey.

    In a paused survey nobody starts or continues; in a closed one nobody starts. People who start
    in a pilot are marked, and never counted with the others.
    """
    require_choice("state", state, get_args(State))
    with database.begin_assignment() as connection:
        before = read_state(connection)
        if state != before:
            connection.execute(SURVEY.update().values(state=state))
            _record(connection, "state", detail=f"{before} to {state}")


def reset(database: Database, *, pilot_only: bool) -> int:
    """Delete all participants and their answers, or those of the pilot; return how many.

    To delete all, the survey must be paused or closed.
    """
    with database.begin_assignment() as connection:
        state = read_state(connection)
        if not pilot_only and state not in ("paused", "closed"):
            rule = "must be paused or closed before all answers are deleted"
            raise InputError("state", state, rule)
        deleted = PARTICIPANT.c.pilot >= int(pilot_only)
        n = _delete(connection, select(PARTICIPANT.c.rater).where(deleted))
        if n == 0:
            return 0
        what = "pilot participants" if pilot_only else "all participants"
        _record(connection, "reset", detail=f"{what}: {n} deleted")
    database.erase_deleted()
    return n


def forget_ids(database: Database) -> int:
    """Erase the platform ids, after all payments; return how many people had one."""
    with database.begin_assignment() as connection:
        erased = connection.execute(
            PARTICIPANT.update()
            .where(func.coalesce(*(PARTICIPANT.c[name] for name in ID_COLUMNS)).is_not(None))
            .values(dict.fromkeys(ID_COLUMNS))
        ).rowcount
        _record(connection, "forget-ids", detail=f"ids of {erased} participants")
    database.erase_deleted()
    return erased


# ---- Participants


def exclude(database: Database, raters: Collection[str], why: str) -> list[str]:
    """Exclude participants: their answers are kept but do not count, and their places are free.

    Another reason for somebody who is excluded already replaces the first. The record keeps both.
    Return those who were not excluded before for this reason.
    """
    why = " ".join(why.split())
    if not 0 < len(why) <= MOST_REASON:
        raise InputError("why", why, f"must have from 1 to {MOST_REASON} characters")
    is_new = or_(~IS_EXCLUDED, PARTICIPANT.c.excluded_why != why)
    values = {"excluded_at": time.time(), "excluded_why": why}
    with _begin_action(database, raters) as connection:
        return _update(connection, "exclude", raters, values, is_new, detail=why)


def restore(database: Database, raters: Collection[str]) -> list[str]:
    """Undo exclusions; return whose."""
    has_ended = PARTICIPANT.c.finished_at.is_not(None)
    values = {
        "excluded_at": None,
        "excluded_why": None,
        # As if they had been away for long: their questions may have been assigned to others.
        "seen_at": case((has_ended, PARTICIPANT.c.seen_at), else_=0.0),
    }
    with _begin_action(database, raters) as connection:
        return sorted(_update(connection, "restore", raters, values, IS_EXCLUDED))


def release(database: Database, raters: Collection[str]) -> None:
    """Let participants go on in another browser: the next start with their id is theirs."""
    with _begin_action(database, raters) as connection:
        _update(connection, "release", raters, {"released": 1})


def withdraw(database: Database, rater: str, now: float) -> None:
    """Delete all answers of somebody who withdraws, and who cannot start again.

    A server soon empties the log of an SQLite file, which still has the answers. PostgreSQL
    overwrites them when it next cleans its tables by itself (autovacuum).
    """
    with _begin_action(database, [rater]) as connection:
        connection.execute(ASSIGNMENT.delete().where(ASSIGNMENT.c.rater == rater))
        # Who sends extra answers at this moment holds the lock of the participant.
        is_new = PARTICIPANT.c.withdrawn_at.is_(None)
        if _update(connection, "withdraw", [rater], {"withdrawn_at": now}, is_new):
            connection.execute(EXTRA_ANSWER.delete().where(EXTRA_ANSWER.c.rater == rater))


def delete_participants(database: Database, raters: Collection[str]) -> None:
    """Delete everything about participants, from all tables and from the bytes of the file.

    The record says how many were deleted, and not who.
    """
    with _begin_action(database, raters) as connection:
        _delete(connection, raters)
        _record(connection, "delete", detail=f"{len(raters)} deleted")
    database.erase_deleted()


@contextmanager
def _begin_action(database: Database, raters: Collection[str]) -> Iterator[Connection]:
    """Begin a transaction that changes raters, all of whom must be known."""
    with database.begin_assignment() as connection:
        stored = select(PARTICIPANT.c.rater).where(PARTICIPANT.c.rater.in_(raters))
        if unknown := sorted(set(raters) - set(connection.execute(stored).scalars())):
            raise InputError("raters", unknown, NOBODY, hint=UNCHANGED)
        yield connection


def _update(
    connection: Connection,
    action: str,
    raters: Collection[str],
    values: Any,
    *which: ColumnElement[bool],
    detail: str = "",
) -> list[str]:
    """Change those of the raters for whom ``which`` is true, with a record, and return them."""
    theirs = PARTICIPANT.update().where(PARTICIPANT.c.rater.in_(raters), *which).values(values)
    changed = list(connection.execute(theirs.returning(PARTICIPANT.c.rater)).scalars())
    _record(connection, action, changed, detail)
    return changed


def _delete(connection: Connection, raters: Collection[str] | Select[tuple[str]]) -> int:
    """Delete all rows of participants; return how many these were."""
    connection.execute(ASSIGNMENT.delete().where(ASSIGNMENT.c.rater.in_(raters)))
    # Now nobody can add extra answers.
    theirs = select(PARTICIPANT.c.rater).where(PARTICIPANT.c.rater.in_(raters))
    connection.execute(theirs.with_for_update()).all()
    # A reason that was written down may say something about the participant.
    for table in (EXTRA_ANSWER, EVENT, PARTICIPANT):
        deleted = connection.execute(table.delete().where(table.c.rater.in_(raters)))
    return deleted.rowcount


def _record(
    connection: Connection, action: str, raters: Iterable[str | None] = (None,), detail: str = ""
) -> None:
    now = time.time()
    rows = [
        {"id": secrets.token_hex(16), "at": now, "action": action, "rater": r, "detail": detail}
        for r in raters
    ]
    if rows:
        connection.execute(EVENT.insert(), rows)

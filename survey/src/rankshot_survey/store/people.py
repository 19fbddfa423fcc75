"""What researchers do with a survey and its participants, each in one transaction."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from typing import Any, Literal

from sqlalchemy import ColumnElement, Connection, case, func, select

from rankshot.core.errors import InputError, quote_names
from rankshot_survey.store.database import (
    ASSIGNMENT,
    ID_COLUMNS,
    PARTICIPANT,
    SURVEY,
    Database,
    participant_name,
)
from rankshot_survey.store.identity import Identity

State = Literal["open", "pilot", "paused", "closed"]
# The most characters of the reason for an exclusion.
MOST_REASON = 500


# ---- Reading


def read_state(connection: Connection) -> State:
    """Return the state of the survey: open, pilot, paused or closed."""
    return connection.execute(select(SURVEY.c.state)).scalar_one()  # type: ignore[no-any-return]


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
        person = {identity.rater(own, pilot=pilot) for pilot in (False, True)}
        fits = holders.get(name, set()) | person & all_raters
        if len(fits) > 1 and not fits <= person:
            raters = f"give one of the raters {quote_names(sorted(fits))}"
            raise InputError("ids", name, f"fits {len(fits)} participants", hint=raters)
        chosen.update(dict.fromkeys(fits))
        if not fits:
            unknown.append(name)
    if unknown:
        rule = "are ids, codes or raters of nobody"
        raise InputError("ids", unknown, rule, hint="nothing was changed")
    return list(chosen)


# ---- The survey


def set_state(database: Database, state: State) -> None:
    """Change the state of a survey.

    In a paused survey nobody starts or continues; in a closed one nobody starts. People who start
    in a pilot are marked, and never counted with the others.
    """
    with database.begin_assignment() as connection:
        connection.execute(SURVEY.update().values(state=state))


def forget_ids(database: Database) -> int:
    """Erase the platform ids, after all payments; return how many people had one."""
    with database.begin_assignment() as connection:
        erased = connection.execute(
            PARTICIPANT.update()
            .where(func.coalesce(*(PARTICIPANT.c[name] for name in ID_COLUMNS)).is_not(None))
            .values(dict.fromkeys(ID_COLUMNS))
        ).rowcount
    database.erase_deleted()
    return erased


# ---- Participants


def exclude(database: Database, raters: Collection[str], why: str) -> None:
    """Exclude participants: their answers are kept but do not count, and their places are free."""
    why = " ".join(why.split())
    if not 0 < len(why) <= MOST_REASON:
        raise InputError("why", why, f"must have from 1 to {MOST_REASON} characters")
    _update(database, raters, {"excluded_at": time.time(), "excluded_why": why})


def restore(database: Database, raters: Collection[str]) -> int:
    """Undo exclusions; return how many there were."""
    has_ended = PARTICIPANT.c.finished_at.is_not(None)
    values = {
        "excluded_at": None,
        "excluded_why": None,
        # As if they had been away for long: their questions may have been assigned to others.
        "seen_at": case((has_ended, PARTICIPANT.c.seen_at), else_=0.0),
    }
    return _update(database, raters, values, PARTICIPANT.c.excluded_at.is_not(None))


def release(database: Database, raters: Collection[str]) -> None:
    """Let participants go on in another browser: the next start with their id is theirs."""
    _update(database, raters, {"released": 1})


def delete_participants(database: Database, raters: Collection[str]) -> None:
    """Delete everything about participants, from all tables and from the bytes of the file."""
    with database.begin_assignment() as connection:
        for table in (ASSIGNMENT, PARTICIPANT):
            connection.execute(table.delete().where(table.c.rater.in_(raters)))
    database.erase_deleted()


def _update(
    database: Database, raters: Collection[str], values: Any, *which: ColumnElement[bool]
) -> int:
    """Change those of the raters for whom ``which`` is true; return how many these are."""
    theirs = PARTICIPANT.update().where(PARTICIPANT.c.rater.in_(raters), *which).values(values)
    with database.begin_assignment() as connection:
        return connection.execute(theirs).rowcount

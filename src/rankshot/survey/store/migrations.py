"""Schema versions: a database is brought up to date when it is opened, in one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Sequence

from sqlalchemy import Connection, inspect, text

from rankshot.ranking.errors import RankshotError

STEPS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE survey (version INTEGER NOT NULL, secret TEXT NOT NULL)",
        """CREATE TABLE question (
            key TEXT NOT NULL PRIMARY KEY,
            target TEXT NOT NULL,
            items TEXT NOT NULL,
            first TEXT NOT NULL)""",
        """CREATE TABLE participant (
            rater TEXT NOT NULL PRIMARY KEY,
            started_at DOUBLE PRECISION NOT NULL,
            seen_at DOUBLE PRECISION NOT NULL,
            finished_at DOUBLE PRECISION,
            turk_assignment TEXT,
            turk_host TEXT)""",
        """CREATE TABLE assignment (
            rater TEXT NOT NULL REFERENCES participant (rater),
            number INTEGER NOT NULL,
            question TEXT NOT NULL REFERENCES question (key),
            repeat INTEGER NOT NULL,
            shown TEXT NOT NULL,
            shown_at DOUBLE PRECISION,
            answer TEXT,
            answered_at DOUBLE PRECISION,
            PRIMARY KEY (rater, number),
            UNIQUE (rater, question, repeat))""",
        "CREATE INDEX assignment_of_question ON assignment (question)",
    ),
)
"""What leads from each version to the next; both SQLite and PostgreSQL understand it.

A step is never edited once it was released: a later one changes what it made."""


def migrate(connection: Connection, steps: Sequence[Sequence[str]] = STEPS) -> int:
    """Bring a database to the newest version, inside the caller's transaction.

    Returns
    -------
    int
        The version that was found; 0 is an empty database.

    Raises
    ------
    RankshotError
        If a newer rankshot has written it, or if its tables are not ours.
    """
    found = _version(connection)
    if found > len(steps):
        raise RankshotError(
            f"the database has schema version {found}, this rankshot knows {len(steps)}: "
            "a newer one has written it; upgrade with pip install --upgrade rankshot"
        )
    for step in steps[found:]:
        for statement in step:
            connection.execute(text(statement))
    if found == 0:
        connection.execute(
            text("INSERT INTO survey (version, secret) VALUES (0, :secret)"),
            {"secret": secrets.token_hex(32)},
        )
    if found < len(steps):
        connection.execute(text("UPDATE survey SET version = :new"), {"new": len(steps)})
    return found


def _version(connection: Connection) -> int:
    names = inspect(connection).get_table_names()
    if "survey" in names:
        return int(connection.execute(text("SELECT version FROM survey")).scalar_one())
    if names:
        raise RankshotError(
            f"the database holds other tables ({', '.join(sorted(names)[:5])}): give the survey "
            "a database of its own"
        )
    return 0

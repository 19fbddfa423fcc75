"""PostgreSQL: connections, and erasing what was deleted."""

from __future__ import annotations

import time
from contextlib import suppress
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    NoSuchModuleError,
    OperationalError,
)

from rankshot.core.errors import RankshotError

POSTGRESQL = "postgresql+psycopg"
TABLES = "participant, assignment, extra_answer, event"
"""The tables from which people are deleted."""
ERASE_SECONDS = 2.0
"""How long a deletion waits for others who read the tables. Answers wait meanwhile."""
# A transaction that began before this one can still see what was deleted before.
OLD_READERS = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
    AND pid <> pg_backend_pid() AND age(backend_xmin) > age(CAST(CAST(:now AS xid8) AS xid))"""


def create_postgresql_engine(url: str, **options: Any) -> Engine:
    """Return what connects to a PostgreSQL database, again after a restart of its server."""
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() != "postgresql":
            raise RankshotError(
                f"the database must be an SQLite file or a postgresql:// URL, not "
                f"{parsed.drivername}://"
            )
        engine = create_engine(
            parsed.set(drivername=POSTGRESQL),
            **options,
            hide_parameters=True,
        )
    except (ArgumentError, NoSuchModuleError):
        raise RankshotError(
            "the URL of the database is not valid; write postgresql://user@host/name"
        ) from None
    except ImportError as error:
        raise RankshotError(
            f"PostgreSQL needs {error.name}: pip install 'rankshot[postgresql]'"
        ) from None
    event.listen(engine, "checkout", _check_postgresql)
    return engine


def _check_postgresql(connection: Any, _record: Any, _proxy: Any) -> None:
    """Connect again after a restart of the server.

    A server that ends says so, and then the socket has something to read. To look costs less than
    to ask the server.
    """
    with DefaultSelector() as sockets:
        sockets.register(connection, EVENT_READ)
        if sockets.select(0):
            raise DisconnectionError


def erase_tables(plain: Connection) -> str | None:
    """Write the tables anew, without what was deleted; return what is left of it.

    It also stays in the server's own log until that is written over, and in its archive.
    """
    connection = plain.execution_options(isolation_level="AUTOCOMMIT")
    # The rows are deleted already: whatever fails here, that is the result.
    with suppress(DBAPIError):
        connection.execute(text(f"SET lock_timeout = '{1000 * ERASE_SECONDS:.0f}ms'"))
        is_erased = _wait_for_readers(connection) and _vacuum(connection, "VACUUM FULL")
        if not is_erased:
            # It waits for no reader, but leaves the bytes until something else is written there.
            _vacuum(connection, "VACUUM")
        connection.execute(text("RESET lock_timeout"))
        if is_erased:
            return None
    return (
        "the rows are deleted, but the files of the tables still have copies, since the database "
        f"is being read: end the programs that read it for long, and run VACUUM FULL {TABLES} in it"
    )


def _wait_for_readers(connection: Connection) -> bool:
    """Wait until nobody can see any more what is deleted; return False if it takes too long."""
    now = connection.execute(text("SELECT CAST(pg_current_xact_id() AS text)")).scalar_one()
    end = time.monotonic() + ERASE_SECONDS
    while connection.execute(text(OLD_READERS), {"now": now}).scalar_one():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True


def _vacuum(connection: Connection, command: str) -> bool:
    """Run a command for the tables; return False if somebody has locked them for too long."""
    try:
        connection.execute(text(f"{command} {TABLES}"))
    except OperationalError:
        return False
    return True

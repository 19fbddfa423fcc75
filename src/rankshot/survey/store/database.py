"""The database of a survey: its tables, their migration, and transactions."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import Any

from sqlalchemy import (
    Column,
    Connection,
    Double,
    Engine,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, NoSuchModuleError

from rankshot.core.errors import RankshotError
from rankshot.survey.store.identity import Identity

METADATA = MetaData()
SURVEY = Table(
    "survey",
    METADATA,
    Column("version", Integer, nullable=False),
    # The key for hashing participants' ids, links and codes.
    Column("secret", Text, nullable=False),
    # open, pilot, paused or closed.
    Column("state", Text, nullable=False),
    # Whether a server has the database open: if a copy says so, it may lack answers.
    Column("serving", Integer, nullable=False),
)
QUESTION = Table(
    "question",
    METADATA,
    Column("key", Text, primary_key=True),
    Column("target", Text, nullable=False),
    Column("items", Text, nullable=False),
    Column("first", Text, nullable=False),
)
PARTICIPANT = Table(
    "participant",
    METADATA,
    Column("rater", Text, primary_key=True),
    Column("started_at", Double, nullable=False),
    Column("seen_at", Double, nullable=False),
    Column("finished_at", Double),
    # For Mechanical Turk: which task is submitted, and where.
    Column("turk_assignment", Text),
    Column("turk_host", Text),
    # Pilot answers never mix with others.
    Column("pilot", Integer, nullable=False, default=0),
    # The language that the participant has chosen.
    Column("language", Text),
    # For Prolific: by these ids it pays.
    Column("platform_id", Text),
    Column("platform_study", Text),
    Column("platform_session", Text),
    Column("excluded_at", Double),
    Column("excluded_why", Text),
    Column("withdrawn_at", Double),
)
ASSIGNMENT = Table(
    "assignment",
    METADATA,
    Column("rater", Text, ForeignKey("participant.rater"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("question", Text, ForeignKey("question.key"), nullable=False),
    Column("repeat", Integer, nullable=False),
    Column("shown", Text, nullable=False),
    Column("shown_at", Double),
    # A monotonic clock when the question was shown, and which process read it.
    Column("shown_tick", Double),
    Column("shown_run", Text),
    # A JSON list of items, best first; [] is a skip.
    Column("answer", Text),
    Column("answered_at", Double),
    # From showing the question to the answer; NULL if no clock can tell.
    Column("seconds", Double),
    # Nobody gets the same question twice, except as a planned repeat.
    UniqueConstraint("rater", "question", "repeat"),
    Index("assignment_of_question", "question"),
)
EXTRA_ANSWER = Table(
    "extra_answer",
    METADATA,
    Column("rater", Text, ForeignKey("participant.rater"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
EVENT = Table(
    "event",
    METADATA,
    Column("id", Text, primary_key=True),
    Column("at", Double, nullable=False),
    Column("action", Text, nullable=False),
    # NULL if the action concerns no participant, or one who was deleted.
    Column("rater", Text),
    Column("detail", Text, nullable=False),
)
MIGRATIONS: tuple[tuple[str, ...], ...] = (
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
    (
        "ALTER TABLE survey ADD COLUMN state TEXT NOT NULL DEFAULT 'open'",
        "ALTER TABLE survey ADD COLUMN serving INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE participant ADD COLUMN pilot INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE participant ADD COLUMN language TEXT",
        "ALTER TABLE participant ADD COLUMN platform_id TEXT",
        "ALTER TABLE participant ADD COLUMN platform_study TEXT",
        "ALTER TABLE participant ADD COLUMN platform_session TEXT",
        "ALTER TABLE participant ADD COLUMN excluded_at DOUBLE PRECISION",
        "ALTER TABLE participant ADD COLUMN excluded_why TEXT",
        "ALTER TABLE participant ADD COLUMN withdrawn_at DOUBLE PRECISION",
        "ALTER TABLE assignment ADD COLUMN shown_tick DOUBLE PRECISION",
        "ALTER TABLE assignment ADD COLUMN shown_run TEXT",
        "ALTER TABLE assignment ADD COLUMN seconds DOUBLE PRECISION",
        """UPDATE assignment SET seconds = answered_at - shown_at
            WHERE answered_at >= shown_at""",
        """CREATE TABLE extra_answer (
            rater TEXT NOT NULL REFERENCES participant (rater),
            name TEXT NOT NULL,
            value TEXT NOT NULL,
            PRIMARY KEY (rater, name))""",
        """CREATE TABLE event (
            id TEXT NOT NULL PRIMARY KEY,
            at DOUBLE PRECISION NOT NULL,
            action TEXT NOT NULL,
            rater TEXT,
            detail TEXT NOT NULL)""",
    ),
)
"""The SQL statements from each schema version to the next, for SQLite and PostgreSQL.

A released step is never edited; a later step changes what it made."""
CONNECTIONS = 8
"""The size of the connection pool. SQLite has one writer at a time; more would only wait."""
POSTGRESQL = "postgresql+psycopg"
_MIGRATION_LOCK = 7_261_001


class MissingDatabaseError(RankshotError):
    """The file of a database does not exist, and is not to be created."""


class Database:
    """The database of a survey: an SQLite file or a PostgreSQL database.

    Parameters
    ----------
    place : Path or str
        A file, or a URL such as ``postgresql://user@host/name``.
    create : bool
        Whether a missing file is created; if not, it is an error.

    Attributes
    ----------
    identity : Identity
        Makes hashes, links and codes with the survey's own secret.
    """

    def __init__(self, place: Path | str, *, create: bool = False) -> None:
        self._engine = (
            _create_postgresql(place) if isinstance(place, str) else _create_sqlite(place, create)
        )
        is_postgresql = self._engine.dialect.name == "postgresql"
        # In SQLite, the write-ahead log already gives every transaction one state.
        snapshot = {"isolation_level": "REPEATABLE READ"} if is_postgresql else {}
        self._reads = self._engine.execution_options(**snapshot)
        self._writes = self._engine.execution_options(writes=True)
        # SQLite has one writer. Others wait for it here, in turn; SQLite itself would let each of
        # them sleep for a while and try again.
        self._turn: AbstractContextManager[Any] = nullcontext() if is_postgresql else Lock()
        try:
            with self.begin_write() as connection:
                if is_postgresql:
                    # If two servers start at once, only one of them creates the tables.
                    connection.execute(
                        text("SELECT pg_advisory_xact_lock(:n)"), {"n": _MIGRATION_LOCK}
                    )
                migrate(connection)
                secret = connection.execute(select(SURVEY.c.secret)).scalar_one()
        except DBAPIError as error:
            self._engine.dispose()
            # The URL is not in the message: it may contain a password.
            what = place if isinstance(place, Path) else "the survey's database"
            reason = str(error.orig).strip().splitlines()[0]
            raise RankshotError(f"cannot open {what}: {reason}") from None
        except BaseException:
            self._engine.dispose()
            raise
        self.identity = Identity(bytes.fromhex(secret))

    @contextmanager
    def begin_read(self) -> Iterator[Connection]:
        """Begin a transaction that reads one state of the database and blocks nobody."""
        with self._reads.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def begin_write(self) -> Iterator[Connection]:
        """Begin a transaction that is on disk when the block ends, or is rolled back."""
        with self._turn, self._writes.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def begin_assignment(self) -> Iterator[Connection]:
        """Begin a write transaction that assigns questions; only one runs at a time."""
        with self.begin_write() as connection:
            # SQLite has one writer at a time in any case, and ignores FOR UPDATE.
            connection.execute(select(SURVEY.c.version).with_for_update())
            yield connection

    def erase_deleted(self) -> None:
        """Erase what was deleted from the bytes of the database and of its log.

        Without this, deleted rows stay in free space until something else is written there.

        Raises
        ------
        RankshotError
            If somebody reads the database all the time, so that the log cannot be emptied.
        """
        if self._engine.dialect.name == "postgresql":
            with self._engine.connect() as plain:
                connection = plain.execution_options(isolation_level="AUTOCOMMIT")
                connection.execute(text("VACUUM FULL participant, assignment, extra_answer, event"))
            return
        with self._turn, self._engine.connect() as connection:
            # Not through SQLAlchemy, which would begin a transaction.
            driver = connection.connection.cursor()
            driver.execute("VACUUM")
            (is_busy, *_) = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise RankshotError(
                "the rows are deleted, but the log (-wal) still has copies, since the database is "
                "being read: stop the programs that read it, and give the command again"
            )

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


# ---- Migrations


def migrate(connection: Connection, steps: Sequence[Sequence[str]] = MIGRATIONS) -> int:
    """Migrate a database to the newest version, inside the caller's transaction.

    Returns
    -------
    int
        The version before the migration; 0 is an empty database.

    Raises
    ------
    RankshotError
        If a newer rankshot has written the database, or if it has other tables.
    """
    found = _read_version(connection)
    if found > len(steps):
        raise RankshotError(
            f"the database has schema version {found}, this rankshot supports {len(steps)}: "
            "a newer rankshot has written it; upgrade with pip install --upgrade rankshot"
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


def _read_version(connection: Connection) -> int:
    names = inspect(connection).get_table_names()
    if "survey" in names:
        return int(connection.execute(text("SELECT version FROM survey")).scalar_one())
    if names:
        raise RankshotError(
            f"the database has other tables ({', '.join(sorted(names)[:5])}): give the survey "
            "a database of its own"
        )
    return 0


# ---- SQLite and PostgreSQL


def _create_sqlite(path: Path, create: bool) -> Engine:  # noqa: FBT001
    if not create and not path.exists():
        raise MissingDatabaseError(f"{path}: there is no such database")
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise RankshotError(
            f"{path}: cannot create a database there: it is a folder, or its folder is missing"
        )
    if create and not path.exists():
        # These are personal answers: only the owner may read the file.
        path.touch(mode=0o600)
    engine = create_engine(
        # Not a string: in a URL, a ? in the path would begin the options.
        URL.create("sqlite", database=str(path)),
        pool_size=CONNECTIONS,
        max_overflow=0,
        pool_timeout=60,
        # Error messages must not contain what participants sent.
        hide_parameters=True,
        connect_args={"timeout": 60, "check_same_thread": False},
    )
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver would begin transactions itself, and too late; _begin_sqlite begins them.
    connection.isolation_level = None
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL: an acknowledged answer also survives a power cut.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Who withdraws expects that the answers are gone: zeros are written over deleted rows.
    connection.execute("PRAGMA secure_delete = ON")


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE: a writer waits for its turn now, instead of failing later.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _create_postgresql(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() != "postgresql":
            raise RankshotError(
                f"the database must be an SQLite file or a postgresql:// URL, not "
                f"{parsed.drivername}://"
            )
        engine = create_engine(
            parsed.set(drivername=POSTGRESQL),
            pool_size=CONNECTIONS,
            pool_timeout=60,
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

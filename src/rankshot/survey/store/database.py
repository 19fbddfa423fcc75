"""The database of a survey: its tables, their migration, and transactions."""

from __future__ import annotations

import os
import secrets
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
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
    Row,
    Table,
    Text,
    UniqueConstraint,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import StaticPool

from rankshot.core.errors import RankshotError
from rankshot.core.files import TEMPORARY
from rankshot.survey.store.backup import (
    MissingDatabaseError,
    describe_doubt,
    has_log,
    read_into_memory,
)
from rankshot.survey.store.identity import Identity
from rankshot.survey.store.postgresql import create_postgresql_engine, erase_tables
from rankshot.survey.store.sqlite_files import SqliteFile

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
    # The number of the last invitation that was written.
    Column("invited", Integer, nullable=False),
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
    # The number of the invitation.
    Column("invitation", Text),
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
    # Stored with the answer: a page that is only looked at writes nothing.
    Column("shown_at", Double),
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
        "ALTER TABLE survey ADD COLUMN invited INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE participant ADD COLUMN pilot INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE participant ADD COLUMN language TEXT",
        "ALTER TABLE participant ADD COLUMN platform_id TEXT",
        "ALTER TABLE participant ADD COLUMN platform_study TEXT",
        "ALTER TABLE participant ADD COLUMN platform_session TEXT",
        "ALTER TABLE participant ADD COLUMN invitation TEXT",
        "ALTER TABLE participant ADD COLUMN excluded_at DOUBLE PRECISION",
        "ALTER TABLE participant ADD COLUMN excluded_why TEXT",
        "ALTER TABLE participant ADD COLUMN withdrawn_at DOUBLE PRECISION",
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
# SQLite has one writer at a time; more connections would only wait.
_POOL = {"pool_size": 8, "pool_timeout": 60}
_MIGRATION_LOCK = 7_261_001


class Database:
    """The database of a survey: an SQLite file or a PostgreSQL database.

    Parameters
    ----------
    place : Path or str
        A file, or a URL such as ``postgresql://user@host/name``.
    create : bool
        Whether a missing file, or missing tables in PostgreSQL, are created; if not, it is an
        error.
    read_only : bool
        Nothing is written, into the file or beside it. An SQLite file is read into memory; if it
        has an older schema, it is migrated there. An older PostgreSQL database is an error.

    Attributes
    ----------
    identity : Identity
        Makes hashes, links and codes with the survey's own secret.
    path : Path or None
        The SQLite file; None for PostgreSQL.
    doubt : str or None
        Why answers may be missing, if an SQLite file has lost its log.
    remains : str or None
        What the last deletion could not erase from the bytes of the database, and what to do.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.survey import Database
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     database.path.name, database.doubt
    ...     database.close()
    ('study.sqlite', None)
    """

    def __init__(self, place: Path | str, *, create: bool = False, read_only: bool = False) -> None:
        self._file: SqliteFile | None = None
        self._engine: Engine | None = None
        self.path = place if isinstance(place, Path) else None
        self.doubt: str | None = None
        self.remains: str | None = None
        self._watch: AbstractContextManager[None] = nullcontext()
        self._take_turn: Callable[[], AbstractContextManager[None]] = nullcontext
        try:
            if isinstance(place, Path):
                survey = self._open_sqlite(place, create=create, read_only=read_only)
            else:
                survey = self._open_postgresql(place, create=create, read_only=read_only)
        except (DBAPIError, sqlite3.Error) as error:
            self.close()
            # The URL is not in the message: it may contain a password.
            what = place if isinstance(place, Path) else "the survey's database"
            reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
            raise RankshotError(f"cannot open {what}: {reason}") from None
        except BaseException:
            self.close()
            raise
        self.identity = Identity(bytes.fromhex(survey.secret))

    def _open_sqlite(self, path: Path, *, create: bool, read_only: bool) -> Row[tuple[object, ...]]:
        if create and not path.exists():
            _create_file(path)
        lacks_log = not has_log(path)
        if read_only:
            memory = read_into_memory(path)
            self._use(_create_sqlite_engine(path, lambda: memory, poolclass=StaticPool))
        else:
            if not path.exists():
                raise MissingDatabaseError(f"{path}: there is no such database")
            self._file = SqliteFile(path)
            self._watch, self._take_turn = self._file, self._file.take_turn
            self._use(_create_sqlite_engine(path, self._file.connect, **_POOL, max_overflow=0))
        with self.begin_write() as connection:
            migrate(connection)
            survey = connection.execute(select(SURVEY)).one()
        if read_only:
            memory.execute("PRAGMA query_only = ON")
        if survey.serving and lacks_log:
            self.doubt = describe_doubt(path)
        return survey

    def _open_postgresql(
        self, url: str, *, create: bool, read_only: bool
    ) -> Row[tuple[object, ...]]:
        self._use(create_postgresql_engine(url, **_POOL), isolation_level="REPEATABLE READ")
        if read_only:
            with self.begin_read() as connection:
                _require_newest(connection)
                return connection.execute(select(SURVEY)).one()
        with self.begin_write() as connection:
            # If two servers start at once, only one of them creates the tables.
            connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _MIGRATION_LOCK})
            if not create:
                _require_tables(connection)
            migrate(connection)
            return connection.execute(select(SURVEY)).one()

    def _use(self, engine: Engine, **read_options: str) -> None:
        self._engine = engine
        # In SQLite, the write-ahead log already gives every transaction one state.
        self._reads = engine.execution_options(**read_options)
        self._writes = engine.execution_options(writes=True)
        is_postgresql = engine.dialect.name == "postgresql"
        options = {"isolation_level": "AUTOCOMMIT"} if is_postgresql else {}
        self._looks = engine.execution_options(**options)
        # Threads of one process wait for a distant server together, but for a file in turn.
        self.n_threads = 4 if is_postgresql else 1

    @contextmanager
    def look(self) -> Iterator[Connection]:
        """Yield a connection for one statement that reads.

        In PostgreSQL there is no transaction around it, which would take two more messages.
        """
        with self._watch, self._looks.connect() as connection:
            yield connection

    @contextmanager
    def begin_read(self) -> Iterator[Connection]:
        """Begin a transaction that reads one state of the database and blocks nobody."""
        with self._watch, self._reads.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def begin_write(self) -> Iterator[Connection]:
        """Begin a transaction that is on disk when the block ends, or is rolled back.

        Raises
        ------
        DatabaseGoneError
            If the SQLite file was removed or replaced. Then nothing may be acknowledged.
        """
        with (
            self._watch,
            self._take_turn(),
            self._writes.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def begin_assignment(self) -> Iterator[Connection]:
        """Begin a write transaction that assigns questions; only one runs at a time."""
        with self.begin_write() as connection:
            # SQLite has one writer at a time in any case, and ignores FOR UPDATE.
            connection.execute(select(SURVEY.c.version).with_for_update())
            yield connection

    def start_serving(self) -> None:
        """Note in an SQLite file that a server has it open, and move its log into it regularly.

        `close` clears the note. A copy that has it may lack answers; see ``doubt``.
        """
        if self._file is not None:
            self._file.start_serving()

    def erase_deleted(self) -> None:
        """Erase what was deleted from the bytes of the database and of its log.

        Without this, deleted rows stay in free space until something else is written there.
        Readers can prevent it. They are not waited for long, since answers would wait as well:
        then ``remains`` says what is left.
        """
        if self._file is not None:
            self.remains = self._file.erase_deleted()
        else:
            with self._writes.connect() as connection:
                self.remains = erase_tables(connection)

    def close(self) -> None:
        """Close all connections; after this, a copy of an SQLite file is complete."""
        if self._engine is not None:
            self._engine.dispose()
        if self._file is not None:
            self._file.close(is_complete=self.doubt is None)


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
    found = _read_version(connection, len(steps))
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


def _require_tables(connection: Connection) -> int:
    found = _read_version(connection, len(MIGRATIONS))
    if found == 0:
        raise MissingDatabaseError("the database has no tables of a survey")
    return found


def _require_newest(connection: Connection) -> None:
    found, newest = _require_tables(connection), len(MIGRATIONS)
    if found < newest:
        raise RankshotError(
            f"the database has schema version {found}, this rankshot needs {newest}, and reading "
            "does not change it: start `rankshot survey serve` once, with a user who may write"
        )


def _read_version(connection: Connection, newest: int) -> int:
    names = inspect(connection).get_table_names()
    if "survey" in names:
        found = int(connection.execute(text("SELECT version FROM survey")).scalar_one())
        if found > newest:
            raise RankshotError(
                f"the database has schema version {found}, this rankshot supports {newest}: "
                "a newer rankshot has written it; upgrade with pip install --upgrade rankshot"
            )
        return found
    if names:
        raise RankshotError(
            f"the database has other tables ({', '.join(sorted(names)[:5])}): give the survey "
            "a database of its own"
        )
    return 0


# ---- SQLite


def _create_file(path: Path) -> None:
    """Create an SQLite file with its tables; a process that is killed leaves no half of it."""
    try:
        # These are personal answers: only the owner may read the file.
        handle, name = tempfile.mkstemp(
            prefix=f".{path.name}{TEMPORARY}", dir=path.resolve().parent
        )
    except OSError as error:
        raise RankshotError(f"{path}: cannot create a database there ({error.strerror})") from None
    os.close(handle)
    temporary = Path(name)
    try:
        engine = _create_sqlite_engine(temporary, lambda: sqlite3.connect(name), **_POOL)
        with engine.begin() as connection:
            migrate(connection)
        engine.dispose()
        _give_name(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _give_name(temporary: Path, path: Path) -> None:
    """Name a file, unless another server has just created a file of this name."""
    try:
        path.hardlink_to(temporary)
    except FileExistsError:
        return
    except OSError:
        # A disk without hard links.
        temporary.rename(path)


def _create_sqlite_engine(
    path: Path, connect: Callable[[], sqlite3.Connection], **options: Any
) -> Engine:
    # Not a string: in a URL, a ? in the path would begin the options. Error messages must not
    # contain what participants sent.
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, creator=connect, hide_parameters=True, **options)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _begin_sqlite(connection: Connection) -> None:
    # IMMEDIATE: a writer waits for its turn now, instead of failing later.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

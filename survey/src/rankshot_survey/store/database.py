"""The database of a survey: its tables, their migration, transactions, and keyed hashes."""

from __future__ import annotations

import base64
import os
import secrets
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, OperationalError
from sqlalchemy.pool import StaticPool
from sqlalchemy.schema import CreateColumn

from rankshot.core.errors import RankshotError
from rankshot.core.files import TEMPORARY
from rankshot.core.validation import require_module
from rankshot.web.guards import Signer, are_equal
from rankshot_survey.store.sqlite_files import (
    DOUBTED,
    MissingDatabaseError,
    SqliteFile,
    describe_doubt,
    describe_loss,
    find_damage,
    has_log,
    open_read_only,
    read_into_memory,
    require_file,
)

if TYPE_CHECKING:
    import psycopg

METADATA = sa.MetaData()
SURVEY = sa.Table(
    "survey",
    METADATA,
    sa.Column("version", sa.Integer, nullable=False),
    # The key for hashing participants' ids, links and codes.
    sa.Column("secret", sa.Text, nullable=False),
    # open, pilot, paused or closed.
    sa.Column("state", sa.Text, nullable=False, server_default="open"),
    # Whether a server has the database open: if a copy says so, it may lack answers. Or `DOUBTED`.
    sa.Column("serving", sa.Integer, nullable=False, server_default="0"),
    # Researchers who logged in before this time are logged out.
    sa.Column("logged_out_at", sa.Double, nullable=False, server_default="0"),
)
QUESTION = sa.Table(
    "question",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("target", sa.Text, nullable=False),
    sa.Column("items", sa.Text, nullable=False),
    sa.Column("first", sa.Text, nullable=False),
    # How many of the items are drawn for each participant, 0 if all are shown; which of the sets
    # that a participant may get; and the condition of an experiment.
    sa.Column("show", sa.Integer, nullable=False, server_default="0"),
    sa.Column("part", sa.Integer, nullable=False, server_default="0"),
    sa.Column("condition", sa.Text, nullable=False, server_default=""),
)
PARTICIPANT = sa.Table(
    "participant",
    METADATA,
    sa.Column("rater", sa.Text, primary_key=True),
    sa.Column("started_at", sa.Double, nullable=False),
    sa.Column("seen_at", sa.Double, nullable=False),
    sa.Column("finished_at", sa.Double),
    # Pilot answers never mix with others.
    sa.Column("pilot", sa.Integer, nullable=False, server_default="0"),
    # The language that the participant has chosen.
    sa.Column("language", sa.Text),
    # For Prolific: by these ids it pays.
    sa.Column("platform_id", sa.Text),
    sa.Column("platform_study", sa.Text),
    sa.Column("platform_session", sa.Text),
    sa.Column("excluded_at", sa.Double),
    sa.Column("excluded_why", sa.Text),
    sa.Column("withdrawn_at", sa.Double),
    # When the screening did not accept this person.
    sa.Column("screened_at", sa.Double),
    # The version of the text to which the participant agreed last.
    sa.Column("consent", sa.Text),
    # A hash of the form that started: who sends it again, or whose browser has the link, goes
    # on. With the id alone, somebody does if a researcher has released it.
    sa.Column("started_by", sa.Text),
    sa.Column("released", sa.Integer, nullable=False, server_default="0"),
)
CONSENT = sa.Table(
    "consent",
    METADATA,
    sa.Column("version", sa.Text, primary_key=True),
    sa.Column("language", sa.Text, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)
ASSIGNMENT = sa.Table(
    "assignment",
    METADATA,
    sa.Column("rater", sa.Text, sa.ForeignKey("participant.rater"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("question", sa.Text, sa.ForeignKey("question.key"), nullable=False),
    sa.Column("repeat", sa.Integer, nullable=False),
    sa.Column("shown", sa.Text, nullable=False),
    # Stored with the answer: a page that is only looked at writes nothing.
    sa.Column("shown_at", sa.Double),
    # A JSON list of items, best first; [] is a skip.
    sa.Column("answer", sa.Text),
    sa.Column("answered_at", sa.Double),
    # From showing the question to the answer; NULL if no clock can tell.
    sa.Column("seconds", sa.Double),
    # phone, tablet or desktop, and the share of the items that were ever on the screen; NULL
    # without scripts.
    sa.Column("screen", sa.Text),
    sa.Column("seen", sa.Double),
    # Nobody gets the same question twice, except as a planned repeat.
    sa.UniqueConstraint("rater", "question", "repeat"),
    sa.Index("assignment_of_question", "question"),
)
EXTRA_ANSWER = sa.Table(
    "extra_answer",
    METADATA,
    sa.Column("rater", sa.Text, sa.ForeignKey("participant.rater"), primary_key=True),
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
# What somebody had answered who withdrew after the end: for a day, it can be undone.
WITHDRAWN = sa.Table(
    "withdrawn",
    METADATA,
    sa.Column("rater", sa.Text, sa.ForeignKey("participant.rater"), primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    # The rows of other tables, as JSON.
    sa.Column("answers", sa.Text, nullable=False),
)
EVENT = sa.Table(
    "event",
    METADATA,
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    # NULL if the action concerns no participant, or one who was deleted.
    sa.Column("rater", sa.Text),
    sa.Column("detail", sa.Text, nullable=False),
)
NEWEST_VERSION = 4
# That of rankshot 0.2.0.
OLDEST_VERSION = 2
# SQLite has one writer at a time; more connections would only wait.
_POOL = {"pool_size": 8, "pool_timeout": 60}
_MIGRATION_LOCK = 7_261_001
RATER_DIGITS = 16
LINK_DIGITS = 48
# The tables from which people are deleted.
TABLES = "participant, assignment, extra_answer, withdrawn, event"
# How long a deletion waits for others who read the tables. Answers wait meanwhile.
ERASE_SECONDS = 2.0
# A transaction that began before this one can still see what was deleted before.
OLD_READERS = """SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND backend_type = 'client backend'
    AND pid <> pg_backend_pid() AND age(backend_xmin) > age(CAST(CAST(:now AS xid8) AS xid))"""


class Identity(Signer):
    """Names, links and tokens that are derived from a survey's secret key.

    A participant is stored under a keyed hash of the platform's id, and goes on with a link that
    only the server can make. A stolen table of answers identifies nobody. Somebody who also has the
    key can test a guess, but cannot read an id.
    """

    def rater(self, participant: str) -> str:
        """Return the hash under which a participant is stored."""
        return self._hash("rater", participant).hex()[:RATER_DIGITS]

    def link(self, rater: str) -> str:
        """Return the last part of a participant's URL. Whoever has it can answer."""
        return rater + self._hash("link", rater).hex()[: LINK_DIGITS - RATER_DIGITS]

    def verify_link(self, link: str) -> str | None:
        """Return the rater of a link; None if the link is not valid."""
        rater = link[:RATER_DIGITS]
        return rater if are_equal(self.link(rater), link) else None

    def code(self, rater: str) -> str:
        """Return the completion code of a participant."""
        return base64.b32encode(self._hash("code", rater)).decode()[:10]


@contextmanager
def name_failures(what: str) -> Iterator[None]:
    """Turn errors of a database, such as that of a full disk, into one line that names it."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        raise RankshotError(f"cannot open {what}: {reason}") from None


class Database:
    """The database of a survey: an SQLite file or a PostgreSQL database.

    Parameters
    ----------
    place : Path or str
        A file, or a URL such as ``postgresql://user@host/name``.
    create : bool
        Whether a missing file, or missing tables in PostgreSQL, are created.
    read_only : bool
        Nothing is written, into the file or next to it. An SQLite file is read into memory; if it
        has an older schema, it is migrated there. An older PostgreSQL database is an error.

    Attributes
    ----------
    identity : Identity
        Makes hashes, links and codes with the survey's own secret.
    doubt : str or None
        Why answers may be missing, if an SQLite file has lost its log or is damaged.
    remains : str or None
        What the last deletion could not erase from the database files, and what to do.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import Database
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     print(database.doubt)
    ...     database.close()
    None
    """

    def __init__(self, place: Path | str, *, create: bool = False, read_only: bool = False) -> None:
        self._file: SqliteFile | None = None
        self._engine: sa.Engine | None = None
        self.doubt: str | None = None
        self.remains: str | None = None
        self._watch: AbstractContextManager[None] = nullcontext()
        self._take_turn: Callable[[], AbstractContextManager[None]] = nullcontext
        try:
            # The URL is not in the message: it may contain a password.
            with name_failures(f"{place}" if isinstance(place, Path) else "the survey's database"):
                if isinstance(place, Path):
                    survey = self._open_sqlite(place, create=create, read_only=read_only)
                else:
                    survey = self._open_postgresql(place, create=create, read_only=read_only)
        except BaseException:
            self.close()
            raise
        self.identity = Identity(bytes.fromhex(survey.secret))

    def _open_sqlite(self, path: Path, *, create: bool, read_only: bool) -> sa.Row[Any]:
        if create and not path.exists():
            _create_file(path)
        require_file(path)
        lacks_log = not has_log(path)
        if read_only:
            memory, lost = read_into_memory(path)
            self.doubt = describe_loss(lost)
            self._use(_create_sqlite_engine(path, lambda: memory, poolclass=StaticPool))
        else:
            with open_read_only(path) as source:
                if damage := find_damage(source):
                    raise RankshotError(
                        f"{path}: the database is damaged ({damage}). `rankshot-survey backup` "
                        "saves what can be read: put that file in the place of the damaged one"
                    )
            self._file = SqliteFile(path)
            self._watch, self._take_turn = self._file, self._file.take_turn
            self._use(_create_sqlite_engine(path, self._file.connect, **_POOL, max_overflow=0))
        with self.begin_write() as connection:
            migrate(connection)
            survey = connection.execute(sa.select(SURVEY)).one()
            if survey.serving == DOUBTED or (survey.serving and lacks_log):
                connection.execute(SURVEY.update().values(serving=DOUBTED))
                self.doubt = "; ".join(filter(None, [describe_doubt(path), self.doubt]))
        if read_only:
            memory.execute("PRAGMA query_only = ON")
        return survey

    def _open_postgresql(self, url: str, *, create: bool, read_only: bool) -> sa.Row[Any]:
        self._use(_create_postgresql_engine(url), isolation_level="REPEATABLE READ")
        with self.begin_read() if read_only else self.begin_write() as connection:
            if not read_only:
                # If two servers start at once, only one of them creates the tables.
                lock = sa.text("SELECT pg_advisory_xact_lock(:n)")
                connection.execute(lock, {"n": _MIGRATION_LOCK})
            found = read_version(connection)
            if found == 0 and (read_only or not create):
                raise MissingDatabaseError("the database has no tables of a survey")
            if found < NEWEST_VERSION and read_only:
                raise RankshotError(
                    f"the database has schema version {found}, this rankshot needs "
                    f"{NEWEST_VERSION}, and reading does not change it: start the server once, "
                    "with a user who may write"
                )
            migrate(connection)
            return connection.execute(sa.select(SURVEY)).one()

    def _use(self, engine: sa.Engine, **read_options: str) -> None:
        self._engine = engine
        # In SQLite, the write-ahead log already gives every transaction one state.
        self._reads = engine.execution_options(**read_options)
        # IMMEDIATE: a writer waits for its turn now, instead of failing later.
        self._writes = engine.execution_options(begin="BEGIN IMMEDIATE")
        is_postgresql = engine.dialect.name == "postgresql"
        options = {"isolation_level": "AUTOCOMMIT"} if is_postgresql else {"begin": ""}
        self._looks = engine.execution_options(**options)
        # Threads of one process wait for a distant server together, but write to a file in turn.
        self.n_threads = 4 if is_postgresql else 1

    @contextmanager
    def look(self) -> Iterator[sa.Connection]:
        """Yield a connection for one statement that reads, without a transaction around it."""
        with self._watch, self._looks.connect() as connection:
            yield connection

    @contextmanager
    def begin_read(self) -> Iterator[sa.Connection]:
        """Begin a transaction that reads one state of the database, without blocking others."""
        with self._watch, self._reads.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def begin_write(self) -> Iterator[sa.Connection]:
        """Begin a transaction that is on disk when the block ends, or is rolled back.

        If the SQLite file was removed or replaced, `DatabaseGoneError` is raised, and no answer may
        be acknowledged.
        """
        with (
            self._watch,
            self._take_turn(),
            self._writes.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def begin_assignment(self) -> Iterator[sa.Connection]:
        """Begin a write transaction that assigns questions; only one runs at a time."""
        with self.begin_write() as connection:
            # SQLite has one writer at a time in any case, and ignores FOR UPDATE.
            connection.execute(sa.select(SURVEY.c.version).with_for_update())
            yield connection

    def accept_copy(self) -> None:
        """Accept a file that has lost its log: its answers are now considered complete."""
        with self.begin_write() as connection:
            connection.execute(SURVEY.update().values(serving=0))
        self.doubt = None

    def start_serving(self) -> None:
        """Note in an SQLite file that a server has it open, and move its log into it regularly.

        `close` clears the note. A copy that has it may lack answers; see ``doubt``.
        """
        if self._file is not None:
            self._file.start_serving()

    def erase_deleted(self) -> None:
        """Erase what was deleted from the files of the database and of its log.

        Without this, deleted rows stay in free space until something else is written there.
        Programs that read the database can prevent this. They are waited for only briefly, because
        answers would have to wait as well; ``remains`` then describes what is left.
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
            self._file.close()


# ---- Migrations


def migrate(connection: sa.Connection) -> None:
    """Create the tables, or migrate those of an older version, in the caller's transaction."""
    found = read_version(connection)
    if found == NEWEST_VERSION:
        return
    METADATA.create_all(connection)
    if found == 0:
        new = {"version": NEWEST_VERSION, "secret": secrets.token_hex(32)}
        connection.execute(SURVEY.insert().values(new))
        return
    for table in METADATA.sorted_tables:
        known = {column["name"] for column in sa.inspect(connection).get_columns(table.name)}
        for column in table.c:
            if column.name not in known:
                new_column = CreateColumn(column).compile(dialect=connection.dialect)
                connection.execute(sa.text(f"ALTER TABLE {table.name} ADD COLUMN {new_column}"))
    connection.execute(SURVEY.update().values(version=NEWEST_VERSION))


def read_version(connection: sa.Connection) -> int:
    """Return the version of the tables; 0 if there are none."""
    names = sa.inspect(connection).get_table_names()
    if "survey" not in names:
        if names:
            raise RankshotError(
                f"the database has other tables ({', '.join(sorted(names)[:5])}): give the survey "
                "a database of its own"
            )
        return 0
    found = int(connection.execute(sa.select(SURVEY.c.version)).scalar_one())
    if not OLDEST_VERSION <= found <= NEWEST_VERSION:
        raise RankshotError(
            f"the database has schema version {found}, this rankshot supports {OLDEST_VERSION} to "
            f"{NEWEST_VERSION}: upgrade rankshot for a newer one; open older ones with 0.2.0 first"
        )
    return found


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
        try:
            path.hardlink_to(temporary)
        except FileExistsError:
            # Another server has just created it.
            return
        except OSError:
            # A disk without hard links.
            temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)


def _create_sqlite_engine(
    path: Path, connect: Callable[[], sqlite3.Connection], **options: Any
) -> sa.Engine:
    # Not a string: in a URL, a ? in the path would begin the options. Error messages must not
    # contain what participants sent.
    url = URL.create("sqlite", database=str(path))
    engine = sa.create_engine(url, creator=connect, hide_parameters=True, **options)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _begin_sqlite(connection: sa.Connection) -> None:
    if begin := connection.get_execution_options().get("begin", "BEGIN"):
        connection.exec_driver_sql(begin)


# ---- PostgreSQL


def _create_postgresql_engine(url: str) -> sa.Engine:
    """Return what connects to a PostgreSQL database, again after a restart of its server."""
    parsed = None
    with suppress(ArgumentError):
        parsed = make_url(url)
    if parsed is None or not url.startswith("postgresql"):
        # The URL is not in the message: it may contain a password.
        raise RankshotError(
            "the database must be an SQLite file or a URL such as postgresql://user@host/name"
        )
    require_module("psycopg", "surveys in PostgreSQL", "postgresql")
    parsed = parsed.set(drivername="postgresql+psycopg")
    engine = sa.create_engine(parsed, **_POOL, hide_parameters=True)
    sa.event.listen(engine, "checkout", _check_postgresql)
    return engine


def _check_postgresql(connection: psycopg.Connection, _record: object, _proxy: object) -> None:
    """Connect again after a restart of the server.

    A server that ends says so, and then the socket has something to read. To look costs less than
    to ask the server.
    """
    with DefaultSelector() as sockets:
        sockets.register(connection, EVENT_READ)
        if sockets.select(0):
            raise DisconnectionError


def erase_tables(plain: sa.Connection) -> str | None:
    """Rewrite the tables without what was deleted; return what is left of it.

    It also stays in the server's own log until that is written over, and in its archive.
    """
    connection = plain.execution_options(isolation_level="AUTOCOMMIT")
    # Nobody else gets it from the pool, with its timeout.
    connection.detach()
    # The rows are deleted already: whatever fails here, that is the result.
    with suppress(DBAPIError):
        connection.execute(sa.text(f"SET lock_timeout = '{1000 * ERASE_SECONDS:.0f}ms'"))
        if _wait_for_readers(connection):
            with suppress(OperationalError):
                connection.execute(sa.text(f"VACUUM FULL {TABLES}"))
                return None
        # It waits for no reader, but leaves the bytes until something else is written there.
        connection.execute(sa.text(f"VACUUM {TABLES}"))
    return (
        "the rows are deleted, but the files of the tables still contain copies, since the "
        "database is being read: end the programs that read it for a long time, and run "
        f"VACUUM FULL {TABLES} in it"
    )


def _wait_for_readers(connection: sa.Connection) -> bool:
    """Wait until nobody can see any more what is deleted; return False if it takes too long."""
    now = connection.execute(sa.text("SELECT CAST(pg_current_xact_id() AS text)")).scalar_one()
    end = time.monotonic() + ERASE_SECONDS
    while connection.execute(sa.text(OLD_READERS), {"now": now}).scalar_one():
        if time.monotonic() >= end:
            return False
        time.sleep(0.05)
    return True

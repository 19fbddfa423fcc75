"""The database of a survey: its tables, transactions, keyed hashes and backups."""

from __future__ import annotations

import logging
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from threading import Event, Lock, Thread
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import NullPool

from rankshot.core.errors import NO_VALUE, InputError, RankshotError
from rankshot.core.files import replace_path
from rankshot_survey.store.identity import Identity

LOGGER = logging.getLogger("rankshot.survey")
METADATA = sa.MetaData()


def _columns(
    type_: type[sa.types.TypeEngine[Any]], *names: str, **options: Any
) -> list[sa.Column[Any]]:
    return [sa.Column(name, type_, **options) for name in names]


SET: dict[str, Any] = {"nullable": False}
ZERO: dict[str, Any] = {"nullable": False, "server_default": "0"}
# Times are Unix times, and lists are JSON.
SURVEY = sa.Table(
    "survey",
    METADATA,
    # The secret is the key for hashing participants' ids, links and codes.
    sa.Column("version", sa.Integer, **SET),
    sa.Column("secret", sa.Text, **SET),
    # open, pilot, paused or closed.
    sa.Column("state", sa.Text, **SET, server_default="open"),
)
QUESTION = sa.Table(
    "question",
    METADATA,
    sa.Column("key", sa.Text, primary_key=True),
    *_columns(sa.Text, "target", "items", "first", **SET),
    # How many of the items are drawn for each participant, 0 if all are shown; and which of the
    # sets that a participant may get.
    *_columns(sa.Integer, "show", "part", **ZERO),
)
# "excluded" and "withdrawn" say when it happened, and NULL that it did not. Prolific pays by the
# ids of the platform. "started_by" is a hash of the form that started: who sends it again, or whose
# browser has the link, goes on. With the id alone, somebody does if a researcher has released it.
# Pilot answers never mix with others.
PARTICIPANT = sa.Table(
    "participant",
    METADATA,
    sa.Column("rater", sa.Text, primary_key=True),
    *_columns(sa.Double, "started_at", "seen_at", **SET),
    *_columns(sa.Double, "finished_at", "excluded_at", "withdrawn_at"),
    *_columns(sa.Text, "language", "excluded_why", "started_by"),
    *_columns(sa.Text, "platform_id", "platform_study", "platform_session"),
    *_columns(sa.Integer, "pilot", "released", **ZERO),
)
# The columns with the ids of a study, in the order of their names.
ID_COLUMNS = ("platform_id", "platform_study", "platform_session")
# "answer" lists items, best first; [] is a skip. "seconds" are from showing the question to the
# answer, NULL if no clock can tell.
ASSIGNMENT = sa.Table(
    "assignment",
    METADATA,
    sa.Column("rater", sa.Text, sa.ForeignKey("participant.rater"), primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("question", sa.Text, sa.ForeignKey("question.key"), **SET),
    sa.Column("repeat", sa.Integer, **SET),
    sa.Column("shown", sa.Text, **SET),
    sa.Column("answer", sa.Text),
    *_columns(sa.Double, "answered_at", "seconds"),
    # Nobody gets the same question twice, except as a planned repeat.
    sa.UniqueConstraint("rater", "question", "repeat"),
    sa.Index("assignment_of_question", "question"),
)
VERSION = 6
RESTORE = "see 'Restore a backup' in the guide to running a survey on a server"
# How long a writer waits for the others.
BUSY_SECONDS = 60.0
# SQLite has one writer at a time; more connections would only wait.
_POOL: dict[str, Any] = {"pool_size": 8, "max_overflow": 0, "pool_timeout": BUSY_SECONDS}
_CREATION_LOCK = 7_261_001


def participant_name(platform: str, participant: str) -> str:
    """Return the name of a participant who has an id; the database stores a keyed hash of it."""
    return f"{platform}:id:{participant}"


@contextmanager
def name_failures(place: Path | str, what: str = "cannot be opened") -> Iterator[None]:
    """Turn errors of a database, such as that of a full disk, into one that names it."""
    try:
        yield
    except (DBAPIError, sqlite3.Error) as error:
        reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
        raise InputError("database", _show_place(place), f"{what}: {reason}") from None


def _show_place(place: Path | str) -> object:
    """Return the name of a database for messages: a URL may contain a password."""
    return str(place) if isinstance(place, Path) else NO_VALUE


class Database:
    """The database of a survey: an SQLite file or a PostgreSQL database.

    An SQLite file has a write-ahead log, and an answer is on disk before it is acknowledged.

    Parameters
    ----------
    place : Path or str
        A file, or a URL such as ``postgresql://user@host/name``.
    create : bool
        Whether a missing file, or missing tables in PostgreSQL, are created.
    read_only : bool
        Whether nothing is written.

    Attributes
    ----------
    identity : Identity
        Makes hashes, links and codes with the survey's own secret.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import Database
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     print(len(database.identity.code("a participant")))
    ...     database.close()
    10
    """

    def __init__(self, place: Path | str, *, create: bool = False, read_only: bool = False) -> None:
        self.place = place
        self._engine: sa.Engine | None = None
        self._turn: Any = nullcontext()
        try:
            with name_failures(place):
                if isinstance(place, Path):
                    self._open_sqlite(place, create=create, read_only=read_only)
                else:
                    self._open_postgresql(place, create=create, read_only=read_only)
                with self.begin_read() as connection:
                    secret = connection.execute(sa.select(SURVEY.c.secret)).scalar_one()
        except BaseException:
            self.close()
            raise
        self.identity = Identity(bytes.fromhex(secret))

    def _open_sqlite(self, path: Path, *, create: bool, read_only: bool) -> None:
        # A server that was killed may have left an empty file.
        if create and (not path.exists() or path.stat().st_size == 0):
            _create_file(path)
        if not path.exists():
            raise InputError("database", str(path), "does not exist")
        self._use(_create_sqlite_engine(lambda: _open_to_read(path), poolclass=NullPool))
        with self.begin_read() as reader:
            _check_file(reader.connection.driver_connection, path)  # type: ignore[arg-type]
            _has_tables(reader, path)
        if not read_only:
            # SQLite lets writers sleep and try again; so the waiting ones come in turn.
            self._turn = Lock()
            self._use(_create_sqlite_engine(lambda: _connect_to_write(path), **_POOL))

    def _open_postgresql(self, url: str, *, create: bool, read_only: bool) -> None:
        self._use(_create_postgresql_engine(url), isolation_level="REPEATABLE READ")
        with self.begin_read() if read_only else self.begin_write() as connection:
            if create:
                # If two servers start at once, only one of them creates the tables.
                lock = sa.text("SELECT pg_advisory_xact_lock(:n)")
                connection.execute(lock, {"n": _CREATION_LOCK})
            if not _has_tables(connection, url):
                if not create:
                    raise InputError("database", NO_VALUE, "has no tables of a survey")
                _create_tables(connection)

    def _use(self, engine: sa.Engine, **read_options: str) -> None:
        self._engine = engine
        # In SQLite, the write-ahead log already gives every transaction one state.
        self._reads = engine.execution_options(**read_options)
        # IMMEDIATE: a writer waits for its turn now, instead of failing later.
        self._writes = engine.execution_options(begin="BEGIN IMMEDIATE")

    @contextmanager
    def begin_read(self) -> Iterator[sa.Connection]:
        """Begin a transaction that reads one state of the database, without blocking others."""
        with self._reads.begin() as connection:
            yield connection

    @contextmanager
    def begin_write(self) -> Iterator[sa.Connection]:
        """Begin a transaction that is on disk when the block ends, or is rolled back."""
        with self._turn, self._writes.begin() as connection:
            yield connection

    @contextmanager
    def begin_assignment(self) -> Iterator[sa.Connection]:
        """Begin a write transaction that assigns questions; only one runs at a time."""
        with self.begin_write() as connection:
            # SQLite has one writer at a time in any case, and ignores FOR UPDATE.
            connection.execute(sa.select(SURVEY.c.version).with_for_update())
            yield connection

    def erase_deleted(self) -> None:
        """Erase what was deleted from the log of an SQLite file.

        In the file itself, zeros replace deleted rows. PostgreSQL does both by itself, later.
        """
        if isinstance(self.place, Path):
            with self._turn, closing(_connect_to_write(self.place)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close all connections; after this, an SQLite file is complete without its log."""
        if self._engine is not None:
            self._engine.dispose()


# ---- Tables


def _create_tables(connection: sa.Connection) -> None:
    METADATA.create_all(connection)
    new = {"version": VERSION, "secret": secrets.token_hex(32)}
    connection.execute(SURVEY.insert().values(new))


def _has_tables(connection: sa.Connection, place: Path | str) -> bool:
    """Return whether a database has the tables of a survey; refuse other ones."""
    names = sa.inspect(connection).get_table_names()
    if not names:
        return False
    if "survey" not in names:
        rule = f"has other tables ({', '.join(sorted(names)[:5])})"
        hint = "give the survey a database of its own"
        raise InputError("database", _show_place(place), rule, hint=hint)
    version = int(connection.execute(sa.select(SURVEY.c.version)).scalar_one())
    if version != VERSION:
        rule = f"has schema version {version}; only {VERSION} can be read"
        hint = "open older ones with rankshot 0.3; upgrade rankshot-survey for a newer one"
        raise InputError("database", _show_place(place), rule, hint=hint)
    return True


# ---- SQLite


def _create_file(path: Path) -> None:
    """Create an SQLite file with its tables, before it has a log; only the owner may read it."""
    try:
        path.touch(mode=0o600)
    except OSError as error:
        raise InputError("database", str(path), f"cannot be created: {error.strerror}") from None
    engine = _create_sqlite_engine(lambda: _open(path, "mode=rw"), **_POOL)
    with engine.execution_options(begin="BEGIN IMMEDIATE").begin() as connection:
        _create_tables(connection)
    engine.dispose()


def _open_to_read(path: Path) -> sqlite3.Connection:
    """Open a file and its log; nothing is written, and no files are left beside it."""
    log = path.resolve().with_name(f"{path.resolve().name}-wal")
    # Without a log, nobody has the file open, and SQLite would create one.
    return _open(path, "mode=ro" if log.exists() else "immutable=1")


def _open(path: Path, option: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{option}",
        uri=True,
        timeout=BUSY_SECONDS,
        # The driver would begin transactions itself, and too late.
        isolation_level=None,
        check_same_thread=False,
    )


def _check_file(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a damaged file, and one without tables: a copy that lacks its log."""
    try:
        said = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        n_tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    except sqlite3.DatabaseError as error:
        said, n_tables = str(error), 1
    if said != "ok":
        problem = " ".join(said.split())
        raise InputError("database", str(path), f"is damaged ({problem})", hint=RESTORE)
    if not n_tables:
        raise InputError("database", str(path), "has no tables of a survey", hint=RESTORE)


def _connect_to_write(path: Path) -> sqlite3.Connection:
    connection = _open(path, "mode=rw")
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL: an acknowledged answer also survives a power cut.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    # Who withdraws expects that the answers are gone: zeros replace deleted rows.
    connection.execute("PRAGMA secure_delete = ON")
    return connection


def _create_sqlite_engine(connect: Callable[[], sqlite3.Connection], **options: Any) -> sa.Engine:
    # Error messages must not contain what participants sent.
    engine = sa.create_engine("sqlite:///FILE", creator=connect, hide_parameters=True, **options)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("begin", "BEGIN"))


# ---- PostgreSQL


def _create_postgresql_engine(url: str) -> sa.Engine:
    """Connect to a PostgreSQL database, again after a restart of its server."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        parsed = None
    if parsed is None or not parsed.drivername.startswith("postgresql"):
        rule = "must be an SQLite file or a postgresql://user@host/name URL"
        raise InputError("database", NO_VALUE, rule)
    address = parsed.set(drivername="postgresql+psycopg")
    try:
        return sa.create_engine(address, **_POOL, pool_pre_ping=True, hide_parameters=True)
    except ImportError:
        install = "pip install 'rankshot-survey[postgresql]'"
        raise RankshotError(f"surveys in PostgreSQL need psycopg: {install}") from None


# ---- Backups: one consistent copy, also while the survey is running


def backup_database(database: Path | str, target: Path) -> None:
    """Copy the SQLite file of a survey to a new file, even while a server writes to it.

    The copy is one state of the database, with everything that is still in its log.

    Parameters
    ----------
    database : str or Path
        The SQLite file. For the URL of a PostgreSQL database, the error names ``pg_dump``.
    target : Path
        The copy, which only its owner may read. It must not exist: a backup overwrites nothing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import Database, backup_database
    >>> with TemporaryDirectory() as folder:
    ...     study = Path(folder, "study.sqlite")
    ...     Database(study, create=True).close()
    ...     backup_database(study, Path(folder, "backup.sqlite"))
    """
    if isinstance(database, str):
        rule = "is in PostgreSQL, which has its own program for backups"
        hint = "run pg_dump --format=custom --file=FILE URL"
        raise InputError("database", NO_VALUE, rule, hint=hint)
    # It names what cannot be read.
    Database(database, read_only=True).close()
    if target.exists():
        hint = "a backup never overwrites a file"
        raise InputError("output", str(target), "exists already", hint=hint)
    with (
        name_failures(database, "cannot be copied"),
        closing(_open_to_read(database)) as source,
        replace_path(target, private=True) as temporary,
        closing(sqlite3.connect(temporary, isolation_level=None)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")


@contextmanager
def backing_up(database: Path | str, minutes: float) -> Iterator[None]:
    """Make a backup beside the database every few minutes, if it has changed; 0 makes none."""
    if minutes <= 0:
        yield
        return
    if isinstance(database, str):
        backup_database(database, Path())
    ended = Event()
    thread = Thread(target=_back_up, args=(database, minutes, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _back_up(database: Path, minutes: float, ended: Event) -> None:
    before = _find_change(database)
    while not ended.wait(60 * minutes):
        if (now := _find_change(database)) == before:
            continue
        stamp = time.strftime("%Y%m%d-%H%M%S")
        target = database.with_name(f"{database.stem}.backup-{stamp}{database.suffix}")
        try:
            backup_database(database, target)
            before = now
        except (RankshotError, OSError) as error:
            LOGGER.error("no backup was made: %s", error)  # noqa: TRY400 (the reason is enough)


def _find_change(database: Path) -> float:
    """Return when the file or its log was written last."""
    log = database.resolve().with_name(f"{database.resolve().name}-wal")
    return max(path.stat().st_mtime for path in (database, log) if path.exists())

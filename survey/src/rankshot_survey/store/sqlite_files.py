"""The SQLite file of a survey: reading and copying it while it is written to, its log, and damage.

SQLite first writes to a log beside the file (``study.sqlite-wal``), and later moves it into the
file: a checkpoint. A copy of the file alone lacks what is still in the log.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain
from pathlib import Path
from random import uniform
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

from sqlalchemy.exc import DBAPIError, TimeoutError as WaitError

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import replace_path

# What the column ``serving`` says of a file that has lost its log, until somebody accepts that.
DOUBTED = 2
# How long a writer waits for the others.
BUSY_SECONDS = 60.0
# How often a server empties the log into the file, and looks whether the file is still there.
CHECKPOINT_SECONDS = 3.0
# How long a deletion waits for others who read the file, until it leaves the log to a server.
ERASE_SECONDS = 2.0
# How long writers wait while the log is being emptied, and until the next try.
TRY_SECONDS = 0.05
# How long a server that ends waits for others who read the file at this moment.
CLOSE_SECONDS = 1.0


class MissingDatabaseError(RankshotError):
    """The file of a database does not exist, and is not to be created."""


def backup_database(place: Path | str, target: Path, *, force: bool = False) -> Backup:
    """Copy the SQLite file of a survey to another file, even while a server writes to it.

    The copy is one consistent state of the database, with everything that is still in its log.
    Every row of it is read. From a damaged file, everything that can be read is copied. Returns how
    many answers and participants the copy contains, and what may be missing.

    Parameters
    ----------
    place : str or Path
        The SQLite file. For the URL of a PostgreSQL database, the error says how to use
        ``pg_dump``.
    target : Path
        The copy; only its owner may read it.
    force : bool
        Whether an existing file may be replaced. An incomplete copy never replaces a file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import Database, backup_database
    >>> with TemporaryDirectory() as folder:
    ...     study = Path(folder, "study.sqlite")
    ...     Database(study, create=True).close()
    ...     backup_database(study, Path(folder, "backup.sqlite"))
    Backup(n_answers=0, n_participants=0, is_complete=True, lost=())
    """
    if isinstance(place, str):
        raise RankshotError(
            "this is a PostgreSQL database, which has its own program for backups: pg_dump "
            f"--format=custom --file={target.with_suffix('.dump')} URL. To restore it: pg_restore "
            "--clean --if-exists --dbname=URL FILE"
        )
    if target.resolve() == place.resolve() or has_log(target):
        raise RankshotError(f"{target}: this is a database in use; give another file")
    if target.exists() and not force:
        raise RankshotError(f"{target}: the file exists already; give another name, or --force")
    lost_log = not has_log(place)
    try:
        with open_read_only(place) as source:
            require_tables(source, place)
            return write_copy(source, target, lost_log=lost_log)
    except OSError as error:
        raise RankshotError(f"{target}: cannot write there ({error.strerror})") from None
    except sqlite3.Error as error:
        raise RankshotError(f"cannot copy {place} to {target}: {error}") from None


def require_file(path: Path) -> None:
    """Refuse a file that does not exist."""
    if not path.exists():
        raise MissingDatabaseError(f"{path}: there is no such database")


def has_log(path: Path) -> bool:
    """Return whether the log of a file is beside it."""
    return find_beside(path, "-wal").exists()


def describe_doubt(path: Path) -> str:
    """Return why answers may be missing from a file that lost its log."""
    log = find_beside(path, "-wal").name
    return (
        f"{path}: this file was copied while the survey was running, or its log ({log}) is "
        "missing: answers may be missing. Use `rankshot-survey backup`, or accept it with "
        "`rankshot-survey serve --accept-copy`"
    )


def find_beside(path: Path, ending: str) -> Path:
    """Return a file that SQLite puts beside a database, such as -wal."""
    # SQLite also follows links before it adds an ending.
    resolved = path.resolve()
    return resolved.with_name(resolved.name + ending)


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file and its log for reading; nothing is written into the file or its folder."""
    require_file(path)
    parts = [find_beside(path, ending) for ending in ("", "-wal", "-journal")]
    parts = [part for part in parts if part.exists()]
    with ExitStack() as stack:
        if find_beside(path, "-shm").exists():
            # A server has the file open, or was killed.
            option = "mode=ro"
        elif len(parts) == 1:
            # Nobody has the file open. SQLite would create a log even to read.
            option = "immutable=1"
        else:
            # To use this log, SQLite must write. It does so in a copy.
            option = "mode=rw"
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rankshot-")))
            for part in parts:
                shutil.copyfile(part, folder / part.name)
            path = folder / parts[0].name
        yield stack.enter_context(closing(open_uri(path, option)))


def open_uri(path: Path, option: str) -> sqlite3.Connection:
    """Open an existing file with an option of SQLite, such as mode=rw."""
    uri = f"{path.absolute().as_uri()}?{option}"
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=BUSY_SECONDS,
        # The driver would begin transactions itself, and too late.
        isolation_level=None,
        check_same_thread=False,
    )


def require_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file without tables: a copy that lacks its log."""
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        raise RankshotError(
            f"{path}: the file has no tables. It was copied while the survey was running, and the "
            f"answers are in the log that was not copied ({find_beside(path, '-wal').name}), or "
            "another program created it. Use `rankshot-survey backup` to copy a database; for a "
            "new database, remove the file"
        )


def read_into_memory(path: Path) -> tuple[sqlite3.Connection, list[str]]:
    """Return one state of a database, as a private copy in memory, and what of it is lost."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with _closing_on_error(memory), open_read_only(path) as source:
        require_tables(source, path)
        source.backup(memory)
        return memory, repair(memory)


@contextmanager
def _closing_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    with ExitStack() as stack:
        stack.callback(connection.close)
        yield
        stack.pop_all()


class Backup(NamedTuple):
    """What a copy of a database contains; ``n_answers`` includes skips, repeats and gold ones."""

    n_answers: int
    n_participants: int
    # False if the copied file had lost its log, so that answers may be missing.
    is_complete: bool
    # The rows that could not be read, since the file is damaged.
    lost: tuple[str, ...] = ()


def write_copy(source: sqlite3.Connection, target: Path, *, lost_log: bool = False) -> Backup:
    """Write one state of a database to a file that only its owner may read, or nothing at all.

    ``lost_log`` says whether the copied file has no log. If it also says that a server has it open,
    so does the copy: answers may be missing.
    """
    with (
        replace_path(target, private=True) as temporary,
        closing(sqlite3.connect(temporary, isolation_level=None)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        lost = repair(copy)
        if lost and target.exists():
            raise RankshotError(f"{target}: not replaced: {describe_loss(lost)}")
        serving = copy.execute("SELECT serving FROM survey").fetchone()[0]
        is_complete = serving != DOUBTED and not (serving and lost_log)
        copy.execute("UPDATE survey SET serving = ?", [0 if is_complete else DOUBTED])
        counts = "SELECT (SELECT count(answer) FROM assignment), count(*) FROM participant"
        n_answers, n_participants = copy.execute(counts).fetchone()
    return Backup(n_answers, n_participants, is_complete, tuple(lost))


# ---- A file that is written to


class DatabaseGoneError(Exception):
    """The file of a database was removed, replaced or cut off while a server had it open.

    Nothing is stored any more. The message says what to do.
    """


class SqliteFile:
    """An existing SQLite file that is open for writing."""

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._serves = False
        self._gone: str | None = None
        self._ended = Event()
        self._watcher: Thread | None = None
        self._lock = Lock()
        self._turn = Lock()
        # It stays open: through it, the answers can still be read when the file has lost its name.
        self._keeper = self._open()
        self._log, self._shared = (find_beside(self._path, ending) for ending in ("-wal", "-shm"))
        self._identity = _identify(self._path, self._log)
        self._size = 0

    def connect(self) -> sqlite3.Connection:
        """Open a connection; a file that is gone is not created again."""
        connection = self._open()
        with _closing_on_error(connection):
            self.check()
        return connection

    def _open(self) -> sqlite3.Connection:
        connection = open_uri(self._path, "mode=rw")
        with _closing_on_error(connection):
            # First, since even the next line writes to an empty file.
            require_tables(connection, self._path)
            connection.execute("PRAGMA journal_mode = WAL")
            # FULL: an acknowledged answer also survives a power cut.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            # Who withdraws expects that the answers are gone: zeros replace deleted rows.
            connection.execute("PRAGMA secure_delete = ON")
            # SQLite opens the log at the first statement that reads.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return connection

    def check(self) -> None:
        """Raise `DatabaseGoneError` if the path or its log is not the opened file any more."""
        is_ours = _identify(self._path, self._log) == self._identity
        if self._gone is None and is_ours and not self._is_cut_off():
            return
        with self._lock:
            if self._gone is None:
                rescued = self._rescue()
                what = "was cut off" if is_ours else "or its log was removed or replaced"
                self._gone = self._describe_loss(what, rescued)
                if rescued:
                    self._remove_log()
                logging.getLogger(__name__).critical(self._gone)
        raise DatabaseGoneError(self._gone)

    def _is_cut_off(self) -> bool:
        """Return whether the file lacks a part. SQLite would find some rows absent."""
        try:
            size = self._path.stat().st_size
            if size < self._size:
                # Perhaps a deletion has made it smaller.
                with closing(open_uri(self._path, "mode=rw")) as connection:
                    if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                        return True
        except (OSError, sqlite3.Error):
            return True
        self._size = size
        return False

    def __enter__(self) -> None:
        """Check the file before a transaction."""
        self.check()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Check the file after a transaction, also if it failed: perhaps the file is gone."""
        if error is None or issubclass(error, (DBAPIError, sqlite3.Error)):
            self.check()

    @contextmanager
    def take_turn(self) -> Iterator[None]:
        """Wait for the other writers of this process, in turn.

        SQLite has one writer. It would let the others sleep for a while and try again.
        """
        if not self._turn.acquire(timeout=BUSY_SECONDS):
            raise WaitError(f"other writers took more than {BUSY_SECONDS:.0f} seconds")
        try:
            yield
        finally:
            self._turn.release()

    def erase_deleted(self) -> str | None:
        """Rewrite the file without what was deleted, and empty the log; return what is left."""
        left = f"the log ({self._path.name}-wal) still has copies, since the database is being read"
        try:
            with self.take_turn(), closing(self.connect()) as connection:
                connection.execute("VACUUM")
            end = time.monotonic() + ERASE_SECONDS
            while not (is_empty := self._empty_log()) and time.monotonic() < end:
                time.sleep(TRY_SECONDS)
            if is_empty:
                return None
        except (sqlite3.Error, WaitError) as error:
            left = f"the file and its log ({self._path.name}-wal) may have copies ({error})"
        return (
            f"the rows are deleted, but {left}: a running server empties the log as soon as it "
            "can; if none is running, stop the programs that read the database, and start and "
            "stop the server once"
        )

    def _empty_log(self) -> bool:
        """Move the log into the file if nobody else needs it; return whether it is empty."""
        with self.take_turn(), closing(self.connect()) as connection:
            # Nobody can write meanwhile: so only for a moment.
            connection.execute(f"PRAGMA busy_timeout = {1000 * TRY_SECONDS:.0f}")
            is_busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        return not is_busy

    def _rescue(self) -> Path | None:
        """Save what the removed or replaced file contains, as long as we have it open."""
        folder = self._path.parent
        folder = folder if folder.is_dir() else Path(tempfile.gettempdir())
        now = time.strftime("%Y%m%d-%H%M%S")
        rescued = folder / f"{self._path.stem}.rescued-{now}{self._path.suffix}"
        try:
            write_copy(self._keeper, rescued)
        except (OSError, RankshotError, sqlite3.Error):
            return None
        return rescued

    def _remove_log(self) -> None:
        """Remove the log of the lost file. SQLite would add it to another file of this name."""
        found = _identify(self._log)
        if found and found == self._identity[2:]:
            for log in (self._log, self._shared):
                log.unlink(missing_ok=True)

    def _describe_loss(self, what: str, rescued: Path | None) -> str:
        name = self._path.name
        return (
            f"{self._path} {what} while the survey was running. From now on, answers are rejected. "
            + (
                f"All answers so far are in {rescued}. Stop the server, remove {name}, "
                f"{name}-wal and {name}-shm if they are there, rename the rescued file to {name}, "
                "and start the server again."
                if rescued
                else "The answers so far could not be rescued. Stop the server, put the file "
                f"and its log ({name}-wal) back or restore a backup, and start the server again."
            )
        )

    # ---- While a server runs

    def start_serving(self) -> None:
        """Note in the file that a server has it open, and make regular checkpoints."""
        if self._serves:
            return
        self._serves = True
        self._keep()
        self._watcher = Thread(target=self._watch, name="rankshot-checkpoint", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._ended.wait(CHECKPOINT_SECONDS):
            try:
                self.check()
                self._keep()
            except DatabaseGoneError:
                return
            except (sqlite3.Error, WaitError):
                # For example a full disk. A request that writes says so; we try again later.
                continue

    def _keep(self) -> None:
        with self._lock:
            # Another server that ended may have cleared it.
            if not self._keeper.execute("SELECT serving FROM survey").fetchone()[0]:
                self._keeper.execute("UPDATE survey SET serving = 1")
        # The log has what was deleted until it is emptied.
        self._empty_log()

    def close(self) -> None:
        """Move the log into the file, so that a copy of the file alone is complete."""
        if self._ended.is_set():
            return
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()
        with suppress(DatabaseGoneError):
            self.check()
        self._keeper.close()
        # If the end fails, the log stays beside the file and holds everything.
        with suppress(sqlite3.Error):
            if self._gone is None:
                self._finish()

    def _finish(self) -> None:
        end = time.monotonic() + (CLOSE_SECONDS if self._serves else 0.0)
        while True:
            with closing(open_uri(self._path, "mode=rw")) as connection:
                if _give_up_log(connection):
                    connection.execute("UPDATE survey SET serving = 0 WHERE serving = 1")
                    return
                if time.monotonic() >= end:
                    if self._serves:
                        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    return
            # Now it is closed: two servers that end at once do not wait for each other.
            time.sleep(uniform(0.02, 0.1))  # noqa: S311 (no secret)


def _give_up_log(connection: sqlite3.Connection) -> bool:
    """Move the log into the file; return False if others have the file open.

    Without a log, the file is also read from a read-only folder. SQLite gives it up only if nobody
    else has the file open: so we learn whether this was the last server.
    """
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.execute("PRAGMA busy_timeout = 1000")
    return True


def _identify(*paths: Path) -> tuple[int, ...]:
    """Return what tells files from others of the same names; nothing if one is missing."""
    try:
        found = [os.stat(path) for path in paths]  # noqa: PTH116 (faster, and this is called often)
    except OSError:
        return ()
    return tuple(number for file in found for number in (file.st_dev, file.st_ino))


# ---- What can still be read of a damaged file: every row is read, and bad ones are named
#
# A page of the file may be damaged, or the content of a row. SQLite's own check does not find a
# changed letter. The names of tables, in queries, have letters alone.

# Texts that are JSON lists.
LISTS = ("items", "first", "shown", "answer")
# The ways to the rows of a table: by an index, and from the end. Each stops at a damaged page.
WAYS = ("", " NOT INDEXED ORDER BY rowid DESC")
# The most rows that a message names.
MOST_NAMED = 10


def find_damage(connection: sqlite3.Connection) -> str | None:
    """Return the first problem of a database, or None if every row can be read."""
    try:
        found: str = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        of_pages = [] if found == "ok" else [" ".join(found.split())]
        return next(chain(of_pages, _check_rows(connection)), None)
    except sqlite3.DatabaseError as error:
        return str(error)


def repair(connection: sqlite3.Connection) -> list[str]:
    """Replace a damaged database by what can be read of it; return what is lost."""
    if find_damage(connection) is None:
        return []
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as rest:
        schema = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
        for (statement,) in schema.fetchall():
            rest.execute(statement)
        lost = list(_check_rows(connection, rest))
        # Rows whose participant or question is lost.
        while found := rest.execute("PRAGMA foreign_key_check").fetchall():
            for table, rowid, parent, _ in found:
                rest.execute(f"DELETE FROM {table} WHERE rowid = ?", [rowid])  # noqa: S608
                lost.append(f"row {rowid} of {table}: its {parent} is lost")
        if not rest.execute("SELECT count(*) FROM survey").fetchone()[0]:
            raise RankshotError("the database is damaged, without its secret key: restore a backup")
        rest.backup(connection)
    return lost


def describe_loss(lost: Sequence[str]) -> str | None:
    """Return which rows are lost, if some are."""
    if not lost:
        return None
    more = [f"and {len(lost) - MOST_NAMED:,} more"] * (len(lost) > MOST_NAMED)
    named = "; ".join([*lost[:MOST_NAMED], *more])
    return f"the database is damaged. {format_count(len(lost), 'row')} left out: {named}"


def _check_rows(
    connection: sqlite3.Connection, rest: sqlite3.Connection | None = None
) -> Iterator[str]:
    """Yield what is wrong with each bad row, and insert the others into another database."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    before, connection.text_factory = connection.text_factory, bytes
    try:
        for table in (name for (name,) in names if re.fullmatch("(?!sqlite_)[a-z_]+", name)):
            about = connection.execute(f"PRAGMA table_info({table})").fetchall()
            columns = {row[1].decode(): (row[2], row[3]) for row in about}
            quoted = ", ".join(["rowid", *map(json.dumps, columns)])
            insert = f"INSERT OR IGNORE INTO {table} ({quoted}) VALUES (?{', ?' * len(columns)})"  # noqa: S608
            for rowid, values in _fetch_rows(connection, table):
                row = dict(zip(columns, values, strict=False))
                problem = _decode_row(row, columns) if row else "its page is damaged"
                if rest is not None and problem is None:
                    done = rest.execute(insert, [rowid, *row.values()]).rowcount
                    problem = None if done else "another row has the same key"
                if problem is not None:
                    rater = row.get("rater")
                    who = f" (rater {rater})" if isinstance(rater, str) else ""
                    yield f"row {rowid} of {table}{who}: {problem}"
    finally:
        connection.text_factory = before


def _fetch_rows(connection: sqlite3.Connection, table: str) -> Iterator[tuple[int, Sequence[Any]]]:
    """Yield the values of each row, those behind a damaged page one by one; () if it is on it."""
    fetched, others = set(), set()
    with suppress(sqlite3.DatabaseError):
        for rowid, *values in connection.execute(f"SELECT rowid, * FROM {table} NOT INDEXED"):  # noqa: S608
            fetched.add(rowid)
            yield rowid, values
    for way in WAYS:
        with suppress(sqlite3.DatabaseError):
            for (rowid,) in connection.execute(f"SELECT rowid FROM {table}{way}"):  # noqa: S608
                others.add(rowid)
    for rowid in sorted(others - fetched):
        found = None
        with suppress(sqlite3.DatabaseError):
            query = f"SELECT * FROM {table} NOT INDEXED WHERE rowid = ?"  # noqa: S608
            found = connection.execute(query, [rowid]).fetchone()
        yield rowid, found or ()


def _decode_row(row: dict[str, Any], columns: Mapping[str, tuple[bytes, int]]) -> str | None:
    """Decode the texts of a row in place; return what is wrong with it."""
    lists = {}
    for name, value in row.items():
        kind, is_required = columns[name]
        if value is None and is_required:
            return f"{name} is missing"
        if value is not None and (kind == b"TEXT") != isinstance(value, bytes):
            return f"{name} is of another type"
        if isinstance(value, bytes):
            try:
                row[name] = value.decode()
                if name in LISTS:
                    lists[name] = list(json.loads(value))
            except (TypeError, ValueError):
                return f"{name} is not readable"
    answer = lists.get("answer", [])
    ranked = chain.from_iterable(x if isinstance(x, list) else [x] for x in answer)
    is_strange = bool(answer) and not {*map(str, ranked)} <= {*map(str, lists["shown"])}
    return "answer has an item that was not shown" if is_strange else None

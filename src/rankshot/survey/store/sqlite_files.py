"""The SQLite file of a survey: opened, watched while a server runs, and copied as a whole.

SQLite first writes to a log beside the file (``study.sqlite-wal``), and later moves it into the
file: a checkpoint. A copy of the file alone lacks what is still in the log.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Event, Lock, Thread
from typing import NamedTuple

from rankshot.core.errors import RankshotError
from rankshot.core.text_files import TEMPORARY

CHECKPOINT_SECONDS = 3.0
"""How often a server moves the log into the file, and looks whether the file is still there."""
CLOSE_SECONDS = 1.0
"""How long a server that ends waits for others who read the file at this moment."""
BUSY_SECONDS = 60.0
"""How long a writer waits for the others."""


class MissingDatabaseError(RankshotError):
    """The file of a database does not exist, and is not to be created."""


class DatabaseGoneError(Exception):
    """The file of a database was removed or replaced while a server had it open.

    Nothing is stored any more. The message says what to do.
    """


class SqliteFile:
    """An SQLite file that is open for writing.

    Parameters
    ----------
    path : Path
        An existing file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._identity = _identify(self._path)
        self._serves = False
        self._gone: str | None = None
        self._ended = Event()
        self._watcher: Thread | None = None
        self._lock = Lock()
        # It stays open: through it, the answers can still be read when the file has lost its name.
        self._keeper = self._open()

    def connect(self) -> sqlite3.Connection:
        """Open a connection; a file that is gone is not created again."""
        connection = self._open()
        try:
            self.check()
        except DatabaseGoneError:
            connection.close()
            raise
        return connection

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.as_uri()}?mode=rw",
            uri=True,
            timeout=BUSY_SECONDS,
            # The driver would begin transactions itself, and too late.
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            # FULL: an acknowledged answer also survives a power cut.
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA foreign_keys = ON")
            # SQLite opens its files at the first statement that reads.
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def check(self) -> None:
        """Raise `DatabaseGoneError` if the path does not lead to the opened file any more."""
        if self._gone is None and _identify(self._path) == self._identity:
            return
        with self._lock:
            if self._gone is None:
                self._gone = self._describe_loss(self._rescue())
                logging.getLogger(__name__).critical(self._gone)
        raise DatabaseGoneError(self._gone)

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

    def _describe_loss(self, rescued: Path | None) -> str:
        name = self._path.name
        return (
            f"{self._path} was removed or replaced while the survey was running. From now on, "
            "answers are refused. "
            + (
                f"All answers until now are in {rescued}. Stop the server, remove {name}, "
                f"{name}-wal and {name}-shm if they are there, rename the rescued file to {name}, "
                "and start the server again."
                if rescued
                else "The answers until now could not be rescued. Stop the server, put the file "
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
            except sqlite3.Error:
                # For example a full disk. A request that writes says so; we try again later.
                continue

    def _keep(self) -> None:
        with self._lock:
            # Another server that ended may have cleared it.
            if not self._keeper.execute("SELECT serving FROM survey").fetchone()[0]:
                self._keeper.execute("UPDATE survey SET serving = 1")
            # PASSIVE: blocks neither readers nor writers.
            self._keeper.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self, *, is_complete: bool) -> None:
        """Move the log into the file, so that a copy of the file alone is complete.

        Parameters
        ----------
        is_complete : bool
            Whether nothing suggests that the file had lost its log before it was opened.
        """
        self._ended.set()
        if self._watcher is not None:
            self._watcher.join()
        # If the end fails, the log stays beside the file and holds everything.
        with self._lock, closing(self._keeper), suppress(sqlite3.Error):
            if self._gone is None:
                self._finish(is_complete=is_complete)

    def _finish(self, *, is_complete: bool) -> None:
        self._keeper.execute("PRAGMA busy_timeout = 0")
        end = time.monotonic() + (CLOSE_SECONDS if self._serves else 0.0)
        # Without a log, the file is read from read-only folders, too. SQLite gives the log up only
        # if nobody else has the file open: so we also learn whether this was the last server.
        while not self._give_up_log():
            if time.monotonic() >= end:
                if self._serves:
                    self._keeper.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                return
            time.sleep(0.05)
        if self._serves or is_complete:
            self._keeper.execute("UPDATE survey SET serving = 0 WHERE serving <> 0")

    def _give_up_log(self) -> bool:
        try:
            self._keeper.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.OperationalError:
            return False
        return True


def _identify(path: Path) -> tuple[int, int] | None:
    """Return what tells one file from another that has its name; None if there is no file."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


# ---- Reading and copying


def has_log(path: Path) -> bool:
    """Return whether the log of a file is beside it."""
    return _beside(path, "-wal").exists()


def describe_doubt(path: Path) -> str:
    """Return why answers may be missing from a file that lost its log."""
    return (
        f"{path}: this file was copied while the survey was running, or its log "
        f"({_beside(path, '-wal').name}) is missing: answers may be missing. Use `rankshot survey "
        "backup`"
    )


def _beside(path: Path, ending: str) -> Path:
    # SQLite follows links, too, before it adds an ending.
    resolved = path.resolve()
    return resolved.with_name(resolved.name + ending)


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file and its log for reading; nothing is written into the file or its folder."""
    if not path.exists():
        raise MissingDatabaseError(f"{path}: there is no such database")
    parts = [path.resolve(), _beside(path, "-wal"), _beside(path, "-journal")]
    parts = [part for part in parts if part.exists()]
    if _beside(path, "-shm").exists():
        # A server has the file open, or was killed.
        with closing(_open_uri(path, "mode=ro")) as connection:
            yield connection
    elif len(parts) == 1:
        # Nobody has the file open. SQLite would create a log even to read.
        with closing(_open_uri(path, "immutable=1")) as connection:
            yield connection
    else:
        # To use this log, SQLite must write. It does so in a copy.
        with tempfile.TemporaryDirectory(prefix="rankshot-") as folder:
            for part in parts:
                shutil.copyfile(part, Path(folder, part.name))
            with closing(_open_uri(Path(folder, parts[0].name), "mode=rw")) as connection:
                yield connection


def _open_uri(path: Path, option: str) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?{option}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def require_tables(path: Path) -> None:
    """Refuse a file that has no tables, before anything is written to it."""
    with open_read_only(path) as connection:
        if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            raise RankshotError(
                f"{path}: the file has no tables. It was copied while the survey was running, "
                f"and the answers are in the log that was not copied ({path.name}-wal), or "
                "something else made it. Use `rankshot survey backup` to copy a database; for a "
                "new database, remove the file"
            )


def read_into_memory(path: Path) -> sqlite3.Connection:
    """Return one state of a database, as a private copy in memory."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        with open_read_only(path) as source:
            source.backup(memory)
    except BaseException:
        memory.close()
        raise
    return memory


class Contents(NamedTuple):
    """How much a database contains. Skips, repeats and gold questions count as answers."""

    n_answers: int
    n_participants: int


def write_copy(source: sqlite3.Connection, target: Path, *, is_complete: bool = True) -> Contents:
    """Write one state of a database to a file of its own, whole or not at all.

    Parameters
    ----------
    source : connection
    target : Path
        Only the owner may read the new file.
    is_complete : bool
        Whether the copy may say that no server has it open.
    """
    handle, name = tempfile.mkstemp(prefix=f".{target.name}{TEMPORARY}", dir=target.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        with closing(sqlite3.connect(temporary, isolation_level=None)) as copy:
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")
            columns = {row[1] for row in copy.execute("PRAGMA table_info(survey)")}
            if is_complete and "serving" in columns:
                copy.execute("UPDATE survey SET serving = 0")
            problem = copy.execute("PRAGMA integrity_check").fetchone()[0]
            if problem != "ok":
                raise RankshotError(f"{target}: not written: the database is damaged ({problem})")
            counts = "SELECT (SELECT count(answer) FROM assignment), count(*) FROM participant"
            contents = Contents(*copy.execute(counts).fetchone())
        temporary.replace(target)
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(name + ending).unlink(missing_ok=True)
    return contents

"""Reading and copying the SQLite file of a survey, also while a server writes to it.

SQLite first writes to a log beside the file (``study.sqlite-wal``), and later moves it into the
file: a checkpoint. A copy of the file alone lacks what is still in the log.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from rankshot.core.errors import RankshotError
from rankshot.core.files import replace_path

BUSY_SECONDS = 60.0
"""How long a writer waits for the others."""


class MissingDatabaseError(RankshotError):
    """The file of a database does not exist, and is not to be created."""


def backup_database(place: Path | str, target: Path, *, force: bool = False) -> Backup:
    """Copy the SQLite file of a survey to another file, also while a server writes to it.

    The copy is one consistent state of the database, with everything that is still in its log. It
    is checked, and only its owner may read it. It is written beside its target and renamed, so
    that the target is complete or as it was.

    Parameters
    ----------
    place : Path or str
        The file of the database. For the URL of a PostgreSQL database, the error says how to use
        ``pg_dump``.
    target : Path
        The file to write.
    force : bool
        Whether an existing file is replaced; if not, it is an error.

    Returns
    -------
    Backup
        How many answers and participants the copy contains, and whether answers may be missing.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot.survey import Database, backup_database
    >>> with TemporaryDirectory() as folder:
    ...     study = Path(folder, "study.sqlite")
    ...     Database(study, create=True).close()
    ...     backup_database(study, Path(folder, "backup.sqlite"))
    Backup(n_answers=0, n_participants=0, is_complete=True)
    """
    if isinstance(place, str):
        raise RankshotError(
            "this is a PostgreSQL database, which has its own program for backups: pg_dump "
            f"--format=custom --file={target.with_suffix('.dump')} URL. To restore it: pg_restore "
            "--clean --if-exists --dbname=URL FILE"
        )
    _check_target(place, target, force=force)
    lost_log = not has_log(place)
    try:
        with open_read_only(place) as source:
            require_tables(source, place)
            return write_copy(source, target, lost_log=lost_log)
    except OSError as error:
        raise RankshotError(f"{target}: cannot write there ({error.strerror})") from None
    except sqlite3.Error as error:
        raise RankshotError(f"cannot copy {place} to {target}: {error}") from None


def _check_target(place: Path, target: Path, *, force: bool) -> None:
    if target.resolve() == place.resolve():
        raise RankshotError(f"{target}: this is the database itself; give another file")
    if not target.exists():
        return
    if has_log(target):
        raise RankshotError(f"{target}: this is a database in use; give another file")
    if not force:
        raise RankshotError(f"{target}: the file exists already; give another name, or --force")


def has_log(path: Path) -> bool:
    """Return whether the log of a file is beside it."""
    return find_beside(path, "-wal").exists()


def describe_doubt(path: Path) -> str:
    """Return why answers may be missing from a file that lost its log."""
    log = find_beside(path, "-wal").name
    return (
        f"{path}: this file was copied while the survey was running, or its log ({log}) is "
        "missing: answers may be missing. Use `rankshot survey backup`"
    )


def find_beside(path: Path, ending: str) -> Path:
    """Return a file that SQLite puts beside a database, such as -wal."""
    # SQLite follows links, too, before it adds an ending.
    resolved = path.resolve()
    return resolved.with_name(resolved.name + ending)


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a file and its log for reading; nothing is written into the file or its folder."""
    if not path.exists():
        raise MissingDatabaseError(f"{path}: there is no such database")
    if find_beside(path, "-shm").exists():
        # A server has the file open, or was killed.
        with closing(open_uri(path, "mode=ro")) as connection:
            yield connection
    elif len(_list_parts(path)) == 1:
        # Nobody has the file open. SQLite would create a log even to read.
        with closing(open_uri(path, "immutable=1")) as connection:
            yield connection
    else:
        # To use this log, SQLite must write. It does so in a copy.
        with tempfile.TemporaryDirectory(prefix="rankshot-") as folder:
            copy = _copy_parts(path, Path(folder))
            with closing(open_uri(copy, "mode=rw")) as connection:
                yield connection


def _list_parts(path: Path) -> list[Path]:
    """Return the file, and what SQLite has to read with it."""
    logs = [find_beside(path, "-wal"), find_beside(path, "-journal")]
    return [path.resolve(), *(log for log in logs if log.exists())]


def _copy_parts(path: Path, folder: Path) -> Path:
    while True:
        try:
            for part in _list_parts(path):
                shutil.copyfile(part, folder / part.name)
        except FileNotFoundError:
            # A program that ended just now has removed its log.
            if not path.exists():
                raise
        else:
            return folder / path.resolve().name


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
            "something else made it. Use `rankshot survey backup` to copy a database; for a new "
            "database, remove the file"
        )


def read_into_memory(path: Path) -> sqlite3.Connection:
    """Return one state of a database, as a private copy in memory."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    try:
        with open_read_only(path) as source:
            require_tables(source, path)
            source.backup(memory)
    except BaseException:
        memory.close()
        raise
    return memory


class Backup(NamedTuple):
    """What a copy of a database contains.

    Attributes
    ----------
    n_answers : int
        Skips, repeats and gold questions count, too.
    n_participants : int
    is_complete : bool
        False if the copied file had lost its log, so that answers may be missing.
    """

    n_answers: int
    n_participants: int
    is_complete: bool


def write_copy(source: sqlite3.Connection, target: Path, *, lost_log: bool = False) -> Backup:
    """Write one state of a database to a file of its own, whole or not at all.

    Parameters
    ----------
    source : connection
    target : Path
        Only the owner may read the new file.
    lost_log : bool
        Whether the copied file has no log. If it also says that a server has it open, so does the
        copy: answers may be missing.
    """
    with (
        replace_path(target, private=True) as temporary,
        closing(sqlite3.connect(temporary, isolation_level=None)) as copy,
    ):
        source.backup(copy)
        copy.execute("PRAGMA journal_mode = DELETE")
        columns = {row[1] for row in copy.execute("PRAGMA table_info(survey)")}
        is_complete = True
        if "serving" in columns:
            serving = copy.execute("SELECT serving FROM survey").fetchone()[0]
            is_complete = not (serving and lost_log)
            copy.execute("UPDATE survey SET serving = ?", [int(not is_complete)])
        problem = copy.execute("PRAGMA integrity_check").fetchone()[0]
        if problem != "ok":
            raise RankshotError(f"{target}: not written: the database is damaged ({problem})")
        counts = "SELECT (SELECT count(answer) FROM assignment), count(*) FROM participant"
        n_answers, n_participants = copy.execute(counts).fetchone()
    return Backup(n_answers, n_participants, is_complete)

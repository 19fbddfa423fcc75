"""Backups of a survey in SQLite: one consistent copy, also while the survey is running."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread

from rankshot.core.errors import NO_VALUE, InputError, RankshotError
from rankshot.core.files import replace_path
from rankshot_survey.store.database import Database, name_failures, open_to_read

LOGGER = logging.getLogger("rankshot.survey")


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
        raise InputError(
            "database",
            NO_VALUE,
            "is in PostgreSQL, which has its own program for backups",
            hint="run pg_dump --format=custom --file=FILE URL",
        )
    # It names what cannot be read.
    Database(database, read_only=True).close()
    if target.exists():
        raise InputError(
            "output", str(target), "exists already", hint="a backup never overwrites a file"
        )
    with (
        name_failures(database, "cannot be copied"),
        closing(open_to_read(database)) as source,
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

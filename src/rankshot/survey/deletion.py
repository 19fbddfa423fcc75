"""Deletion of participants on request: from the database, and from copies and exported files."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy import select

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.text_files import TEMPORARY, read_lines, replace_file, require_ending
from rankshot.survey.raw_data import MARK
from rankshot.survey.store.database import PARTICIPANT, Database
from rankshot.survey.store.people import IDS, delete_participants, select_known

DATABASE_ENDINGS = (".sqlite", ".sqlite3", ".db")
ENDINGS = (*DATABASE_ENDINGS, ".jsonl", ".csv", ".txt")
DELETED = "deleted"
"""What stands for a rater in the texts of others, such as a flag that names both."""


def delete_everywhere(
    database: Database,
    raters: Collection[str],
    also: Sequence[Path] = (),
    names: Collection[str] = (),
) -> dict[Path, int]:
    """Delete participants from a survey, its backups and exported files.

    Every file is written anew beside the old one. Only if all are complete, they replace the old
    ones; the survey's own database comes last. So an error changes nothing, or can be repaired
    by deleting again.

    Parameters
    ----------
    database : Database
    raters : collection of str
        They may be in the copies only, for example if a backup was forgotten before.
    also : sequence of Path
        Backups (.sqlite) of the same survey, and files that were exported from it: .jsonl, .csv
        and lists of ids (.txt).
    names : collection of str
        Other names that the files may have for these participants.

    Returns
    -------
    dict
        For each of these files, how many participants or lines were deleted from it.

    Raises
    ------
    RankshotError
        If a file cannot be changed, or nobody is found anywhere.
    """
    names = _read_names(database, raters) | set(names)
    with database.begin_read() as connection:
        known = select_known(connection, raters)
    found = {}
    with ExitStack() as stack:
        for path in also:
            if require_ending(path, ENDINGS) in DATABASE_ENDINGS:
                copy = stack.enter_context(_replace_database(path))
                found[path] = _delete_from_backup(database, copy, path, raters)
                continue
            stream = stack.enter_context(replace_file(path))
            clean = _clean_table if path.suffix == ".csv" else _clean_lines
            found[path] = clean(path, stream, names, raters)
        if not known and not any(found.values()):
            raise RankshotError(f"nobody is found by {quote_names(names)}; nothing was changed")
    if known:
        delete_participants(database, known)
    return found


def _read_names(database: Database, raters: Collection[str]) -> set[str]:
    """Return everything by which exported files name these participants."""
    names = {*raters, *map(database.identity.code, raters)}
    columns = [PARTICIPANT.c[name] for name in IDS if name not in ("turk_host", "platform_study")]
    with database.begin_read() as connection:
        for rater, *ids in connection.execute(select(PARTICIPANT.c.rater, *columns)):
            if rater in raters:
                names.update(filter(None, ids))
    return names


# ---- Files


def _clean_lines(
    path: Path, stream: TextIO, names: Collection[str], raters: Collection[str]
) -> int:
    """Copy lines of JSON, or ids, without those of the participants; return how many are left out.

    Raises
    ------
    RankshotError
        If a line of a .jsonl file is not JSON: it cannot be seen whom it is about.
    """
    n = 0
    for number, line in read_lines(path):
        cells: Collection[Any] = (line,)
        if path.suffix == ".jsonl":
            try:
                row = json.loads(line)
            except ValueError:
                raise RankshotError(
                    f"{path}:{number}: not JSON, so nothing was deleted anywhere; correct the "
                    "file, or leave it out"
                ) from None
            cells = row.values() if isinstance(row, dict) else ()
        if any(isinstance(cell, str) and cell in names for cell in cells):
            n += 1
        else:
            stream.write(f"{_hide(line, raters)}\n")
    return n


def _clean_table(
    path: Path, stream: TextIO, names: Collection[str], raters: Collection[str]
) -> int:
    """Copy a CSV table without the rows of the participants; return how many are left out."""
    n = 0
    writer = csv.writer(stream, lineterminator="\n")
    with path.open(encoding="utf-8", newline="") as table:
        # Spreadsheets know by a byte-order mark that a table is UTF-8: it stays.
        mark = table.read(1)
        stream.write(mark if mark == MARK else "")
        table.seek(len(mark.encode()) if mark == MARK else 0)
        for row in csv.reader(table):
            # An apostrophe may stand before a cell, so that no program takes it for a formula.
            if any(cell.removeprefix("'") in names for cell in row):
                n += 1
            else:
                writer.writerow([_hide(cell, raters) for cell in row])
    return n


def _hide(text: str, raters: Collection[str]) -> str:
    for rater in raters:
        text = text.replace(rater, DELETED)
    return text


# ---- Backups


def _delete_from_backup(database: Database, copy: Path, path: Path, raters: Collection[str]) -> int:
    with closing(Database(copy)) as backup:
        if backup.identity.code("") != database.identity.code(""):
            raise RankshotError(
                f"{path}: is not a backup of this survey, so nothing was deleted anywhere; leave "
                "it out"
            )
        with backup.begin_read() as connection:
            known = select_known(connection, raters)
        delete_participants(backup, known)
    return len(known)


@contextmanager
def _replace_database(path: Path) -> Iterator[Path]:
    """Copy an SQLite file; the copy replaces it when the block ends without an exception."""
    place = path.resolve(strict=True)
    try:
        handle, name = tempfile.mkstemp(
            prefix=f".{place.name}{TEMPORARY}", suffix=place.suffix, dir=place.parent
        )
    except OSError as error:
        raise RankshotError(f"{path}: cannot write there ({error.strerror})") from None
    os.close(handle)
    copy = Path(name)
    log = Path(f"{place}-wal")
    try:
        try:
            with (
                closing(sqlite3.connect(place, timeout=1)) as old,
                closing(sqlite3.connect(copy)) as new,
            ):
                # With its log: what is only there belongs to the backup as well.
                old.backup(new)
                old.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except sqlite3.Error as error:
            raise RankshotError(f"{path}: cannot be read as a database ({error})") from None
        if log.exists() and log.stat().st_size:
            raise RankshotError(f"{path}: a program has it open: stop the program, or leave it out")
        yield copy
        shutil.copymode(place, copy)
        copy.replace(place)
    finally:
        for left in (copy, Path(f"{copy}-wal"), Path(f"{copy}-shm")):
            left.unlink(missing_ok=True)

"""Deletion of participants on request: from the database, and from copies and exported files."""

from __future__ import annotations

import csv
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from sqlalchemy import select

from rankshot.core.errors import RankshotError, quote_names
from rankshot.core.files import read_lines, replace_file, replace_path, require_ending
from rankshot.survey.export import MARK, format_row
from rankshot.survey.store.database import PARTICIPANT, Database
from rankshot.survey.store.people import IDS, delete_participants, select_known

DATABASE_ENDINGS = (".sqlite", ".sqlite3", ".db")
ENDINGS = (*DATABASE_ENDINGS, ".jsonl", ".csv", ".txt")
# The columns of exported files that name a participant, where no column has the rater.
NAMING = (
    *("code", "id", "session"),
    *("platform_id", "platform_session", "turk_assignment"),
)
# What stands for a rater in the texts of others, such as a flag that names both.
DELETED = "deleted"


class _Names(NamedTuple):
    """By what exported files name the participants."""

    raters: Collection[str]
    others: Collection[str]


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
    others = _read_names(database, raters) | set(names)
    with database.begin_read() as connection:
        known = select_known(connection, raters)
    found = {}
    with ExitStack() as stack:
        for path in also:
            _require_other_file(database, path)
            if require_ending(path, ENDINGS) in DATABASE_ENDINGS:
                copy = stack.enter_context(_replace_database(path))
                found[path] = _delete_from_backup(database, copy, path, raters)
                continue
            stream = stack.enter_context(replace_file(path))
            clean = _clean_table if path.suffix == ".csv" else _clean_lines
            found[path] = clean(path, stream, _Names(raters, others))
        if not known and not any(found.values()):
            raise RankshotError(f"nobody is found by {quote_names(others)}; nothing was changed")
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


def _require_other_file(database: Database, path: Path) -> None:
    if database.path is not None and path.exists() and path.samefile(database.path):
        raise RankshotError(
            f"{path}: this is the survey's own database, from which participants are deleted in "
            "any case, so nothing was deleted anywhere; leave it out"
        )


def _is_about(row: Mapping[str, Any], names: _Names) -> bool:
    """Return whether a row is about the participants.

    Only columns that name people count: the answers of others may say the same as an id.
    """
    if "rater" in row:
        return row["rater"] in names.raters
    cells = {name: cell for name in NAMING if isinstance(cell := row.get(name), str)}
    # An apostrophe may stand before a cell, so that no program takes it for a formula.
    return any(cell.removeprefix("'") in names.others for cell in cells.values())


def _clean_lines(path: Path, stream: TextIO, names: _Names) -> int:
    """Copy lines of JSON, or ids, without those of the participants; return how many are left out.

    Raises
    ------
    RankshotError
        If a line of a .jsonl file is not JSON: it cannot be seen whom it is about.
    """
    n = 0
    for number, line in read_lines(path):
        row: Any = {"id": line}
        if path.suffix == ".jsonl":
            try:
                row = json.loads(line)
            except ValueError:
                raise RankshotError(
                    f"{path}:{number}: not JSON, so nothing was deleted anywhere; correct the "
                    "file, or leave it out"
                ) from None
        if isinstance(row, dict) and _is_about(row, names):
            n += 1
        else:
            stream.write(f"{_hide(line, names.raters)}\n")
    return n


def _clean_table(path: Path, stream: TextIO, names: _Names) -> int:
    """Copy a CSV table without the rows of the participants; return how many are left out.

    Raises
    ------
    RankshotError
        If no column names participants: it cannot be seen whom a row is about.
    """
    n = 0
    with path.open(encoding="utf-8", newline="") as table:
        # Spreadsheets know by a byte-order mark that a table is UTF-8: it stays.
        mark = table.read(1)
        stream.write(mark if mark == MARK else "")
        table.seek(len(mark.encode()) if mark == MARK else 0)
        rows = csv.reader(table)
        header = next(rows, [])
        if not {"rater", *NAMING} & set(header):
            raise RankshotError(
                f"{path}: no column names participants (rater, {', '.join(NAMING)}), so nothing "
                "was deleted anywhere; correct the first line, or leave the file out"
            )
        stream.write(format_row(header))
        for row in rows:
            if _is_about(dict(zip(header, row, strict=False)), names):
                n += 1
            else:
                stream.write(format_row(_hide(cell, names.raters) for cell in row))
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
    log = Path(f"{place}-wal")
    with replace_path(path) as copy:
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

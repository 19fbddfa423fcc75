"""What can still be read of a damaged SQLite file: every row is read, and bad ones are named.

A page of the file may be damaged, or the content of a row. SQLite's own check does not find a
changed letter.
"""

# ruff: noqa: S608 (the names of tables have letters alone)
from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from typing import Any

from rankshot.core.errors import RankshotError, format_count

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
                rest.execute(f"DELETE FROM {table} WHERE rowid = ?", [rowid])
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
            insert = f"INSERT OR IGNORE INTO {table} ({quoted}) VALUES (?{', ?' * len(columns)})"
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
        for rowid, *values in connection.execute(f"SELECT rowid, * FROM {table} NOT INDEXED"):
            fetched.add(rowid)
            yield rowid, values
    for way in WAYS:
        with suppress(sqlite3.DatabaseError):
            for (rowid,) in connection.execute(f"SELECT rowid FROM {table}{way}"):
                others.add(rowid)
    for rowid in sorted(others - fetched):
        found = None
        with suppress(sqlite3.DatabaseError):
            query = f"SELECT * FROM {table} NOT INDEXED WHERE rowid = ?"
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

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
from contextlib import suppress
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
        if found != "ok":
            return " ".join(found.split())
        for table in _list_tables(connection):
            for rowid, row, problem in _read_rows(connection, table):
                if problem is not None:
                    return _name_row(table, rowid, row, problem)
    except sqlite3.DatabaseError as error:
        return str(error)
    return None


def save_rest(damaged: sqlite3.Connection) -> tuple[sqlite3.Connection, list[str]]:
    """Copy all rows that can be read to a database in memory; return it, and what is lost."""
    rest = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for (statement,) in damaged.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL"):
        rest.execute(statement)
    lost = []
    for table in _list_tables(damaged):
        for rowid, row, problem in _read_rows(damaged, table):
            names, marks = ", ".join(["rowid", *map(json.dumps, row)]), ", ?" * len(row)
            insert = f"INSERT OR IGNORE INTO {table} ({names}) VALUES (?{marks})"
            if problem is not None:
                lost.append(_name_row(table, rowid, row, problem))
            elif not rest.execute(insert, [rowid, *row.values()]).rowcount:
                lost.append(_name_row(table, rowid, row, "another row has the same key"))
    # Rows whose participant or question is lost.
    while found := rest.execute("PRAGMA foreign_key_check").fetchall():
        for table, rowid, parent, _ in found:
            rest.execute(f"DELETE FROM {table} WHERE rowid = ?", [rowid])
            lost.append(f"row {rowid} of {table}: its {parent} is lost")
    if not rest.execute("SELECT count(*) FROM survey").fetchone()[0]:
        raise RankshotError("the database is damaged, and its secret key is lost: restore a backup")
    return rest, lost


def describe_loss(lost: Sequence[str]) -> str | None:
    """Return which rows are lost, if some are."""
    if not lost:
        return None
    more = len(lost) - MOST_NAMED
    named = "; ".join([*lost[:MOST_NAMED], *([f"and {more:,} more"] if more > 0 else [])])
    return f"the database is damaged. {format_count(len(lost), 'row')} left out: {named}"


def _list_tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in found if re.fullmatch("(?!sqlite_)[a-z_]+", name)]


def _read_rows(
    connection: sqlite3.Connection, table: str
) -> Iterator[tuple[int, dict[str, Any], str | None]]:
    """Yield every row with its number, by column, and what is wrong with it."""
    columns = {row[1]: row[2:4] for row in connection.execute(f"PRAGMA table_info({table})")}
    # A text that cannot be decoded would be an error for all rows.
    before, connection.text_factory = connection.text_factory, bytes
    try:
        for rowid, values, problem in _fetch_rows(connection, table):
            row = dict(zip(columns, values, strict=False))
            yield rowid, row, _decode_row(row, columns) if problem is None else problem
    finally:
        connection.text_factory = before


def _fetch_rows(
    connection: sqlite3.Connection, table: str
) -> Iterator[tuple[int, Sequence[Any], str | None]]:
    """Yield the values of each row; those behind a damaged page are looked up one by one."""
    fetched = set()
    with suppress(sqlite3.DatabaseError):
        for rowid, *values in connection.execute(f"SELECT rowid, * FROM {table} NOT INDEXED"):
            fetched.add(rowid)
            yield rowid, values, None
    others: set[int] = set()
    for way in WAYS:
        with suppress(sqlite3.DatabaseError):
            for (rowid,) in connection.execute(f"SELECT rowid FROM {table}{way}"):
                others.add(rowid)
    for rowid in sorted(others - fetched):
        try:
            query = f"SELECT * FROM {table} NOT INDEXED WHERE rowid = ?"
            found = connection.execute(query, [rowid]).fetchone()
            yield rowid, found or (), None if found else "its page is damaged"
        except sqlite3.DatabaseError as error:
            yield rowid, (), str(error)


def _decode_row(row: dict[str, Any], columns: Mapping[str, tuple[str, int]]) -> str | None:
    """Decode the texts of a row in place; return what is wrong with it."""
    lists = {}
    for name, value in row.items():
        kind, is_required = columns[name]
        if value is None:
            if is_required:
                return f"{name} is missing"
        elif (kind == "TEXT") != isinstance(value, bytes):
            return f"{name} is of another type"
        elif isinstance(value, bytes):
            try:
                row[name] = value.decode()
                if name in LISTS:
                    lists[name] = json.loads(value)
            except ValueError:
                return f"{name} is not readable"
    if "answer" in lists and "shown" in lists:
        tied = [name for name in lists["answer"] if isinstance(name, list)]
        alone = [name for name in lists["answer"] if not isinstance(name, list)]
        if not {*alone, *chain(*tied)} <= {*lists["shown"]}:
            return "answer has an item that was not shown"
    return None


def _name_row(table: str, rowid: int, row: dict[str, Any], problem: str) -> str:
    rater = row.get("rater")
    who = f" (rater {rater})" if isinstance(rater, str) else ""
    return f"row {rowid} of {table}{who}: {problem}"

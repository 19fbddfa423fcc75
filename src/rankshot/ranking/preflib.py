"""PrefLib's files of rankings: .soc, .soi, .toc and .toi, as PrefLib writes them since 2022.

A file has the number and the names of its alternatives in lines that begin with #, then orders
with their counts, ``3: 1,{2,4},3``. The endings mean strict (s) or with ties (t), complete (c) or
incomplete (i). The format does not define how the alternatives that an incomplete order leaves out
are interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.arrays import row_blocks
from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.validation import as_names
from rankshot.ranking.construction import (
    Entries,
    Kind,
    Where,
    count_places,
    describe_row,
    row_starts,
    validate_columns,
    validate_entries,
)
from rankshot.ranking.rankings import Rankings

PREFLIB_ENDINGS = (".soc", ".soi", ".toc", ".toi")
NAME = re.compile(r"# ALTERNATIVE NAME ([0-9]{1,6}): (.+)")
COUNT = re.compile(r"# NUMBER ALTERNATIVES: (.+)")
LONGEST_COUNT = 15
"""Digits of a count: more could be too many for a float."""
LINES_PARSED = 1000
"""Lines that are parsed at a time: the arrays of their bytes stay in the cache."""
MOST_DIGITS = 6
"""Of the number of alternatives that a file announces: it need not name them."""


def _table_of_pairs(followers: dict[str, str]) -> NDArray[np.bool_]:
    """Return which pairs of bytes, as numbers of 16 bits, may follow each other."""
    table = np.zeros(2**16, bool)
    table[[256 * ord(a) + ord(b) for a, after in followers.items() for b in after]] = True
    return table


DIGITS = "0123456789"
BYTES = _table_of_pairs(
    {"\n": DIGITS, ":": DIGITS + "{", ",": DIGITS + "{", "{": DIGITS, "}": ",\n"}
    | dict.fromkeys(DIGITS, DIGITS + ",:}\n")
)
MARKS = _table_of_pairs({"\n": ":", ":": "{\n", "{": "}", "}": "{\n"})
"""Which bytes may follow each other in a file, and which where digits and commas are left out."""


# ---- Reading


def read_preflib(path: Path, items: Iterable[object] | None, kind: Kind) -> Rankings:
    """Read a PrefLib file; the names of its alternatives become the items."""
    data = path.read_bytes()
    try:
        every = list(map(str.strip, data.decode("utf-8-sig").split("\n")))
    except UnicodeDecodeError as error:
        at = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            "line", NO_VALUE, f"is not UTF-8 text ({error.reason})", where=f"{path}:{at}"
        ) from None
    lines = [line for line in every if line and line[0] != "#"]
    if not lines:
        raise InputError("file", NO_VALUE, "contains no rankings", where=str(path))

    def where(row: int) -> str:
        numbers = [i for i, line in enumerate(every, 1) if line and line[0] != "#"]
        return f"{path}:{numbers[row]}"

    names = _read_names([(i, line) for i, line in enumerate(every, 1) if line[:1] == "#"], path)
    code_of = np.full(max(names, default=0) + 2, -1, np.int32)
    code_of[list(names)] = np.arange(len(names))
    parts, counts = [], []
    for rows in row_blocks(len(lines), 1, LINES_PARSED):
        text = "\n".join(["", *lines[rows], ""])
        text = text.replace(", ", ",").replace(" ,", ",").replace(": ", ":")
        block = np.frombuffer(text.encode(), np.uint8)
        bad_rows = _find_malformed(block)
        if not bad_rows.size:
            entries, count, bad_rows = _parse_orders(block, code_of)
            parts.append(entries)
            counts.append(count)
        if bad_rows.size:
            row = rows.start + int(bad_rows.min())
            raise InputError(
                "line",
                lines[row],
                "must be 'count: 1,2,{3,4}', as in PrefLib files since 2022, with numbers of "
                "alternatives that the file has",
                where=where(row),
            )
    found = as_names(names.values())
    entries = validate_entries(Entries.concatenate(parts), found, where)
    weights = np.concatenate(counts)
    beside = validate_columns(len(lines), weights=weights, kind=kind, where=where)
    rankings = Rankings(found, *entries, entries.sizes, *beside)
    _require_kind(rankings, path, where)
    return rankings if items is None else rankings.change_items(as_names(items), where)


def _read_names(header: list[tuple[int, str]], path: Path) -> dict[int, str]:
    """Return the names of alternatives by number; the number of one without a name is its name."""
    names: dict[int, str] = {}
    used: set[str] = set()
    announced = ""
    for number, line in header:
        if match := NAME.fullmatch(line):
            if int(match[1]) in names or match[2] in used:
                raise InputError(
                    "line",
                    line,
                    "has a number or name that was given before",
                    where=f"{path}:{number}",
                )
            names[int(match[1])] = match[2]
            used.add(match[2])
        elif match := COUNT.fullmatch(line):
            announced = match[1]
    count = int(announced) if announced.isdecimal() and len(announced) <= MOST_DIGITS else 0
    if announced in ("", str(len(names))):
        return names
    every = {number: names.get(number, str(number)) for number in range(1, count + 1)}
    if not every or not names.keys() <= every.keys() or len(set(every.values())) < count:
        raise InputError(
            "header",
            NO_VALUE,
            f"announces {announced[:20]} alternatives, but {len(names)} are named, and their "
            "numbers or names do not match",
            where=str(path),
        )
    return every


def _find_malformed(data: NDArray[np.uint8]) -> NDArray[np.intp]:
    """Return the lines that are not of the form ``3:1,{2,4},3``; a line break begins the data."""

    def follow(bytes_: NDArray[np.uint8], table: NDArray[np.bool_]) -> NDArray[np.bool_]:
        return np.asarray(table[bytes_[:-1] * np.uint16(256) + bytes_[1:]])

    # Colons and braces come after the digits in ASCII.
    marks = np.flatnonzero((data > ord("9")) | (data == ord("\n")))
    wrong = np.flatnonzero(~follow(data, BYTES)), marks[:-1][~follow(data[marks], MARKS)]
    return np.searchsorted(np.flatnonzero(data == ord("\n")), np.concatenate(wrong), "right") - 1


def _parse_orders(
    data: NDArray[np.uint8], code_of: NDArray[np.int32]
) -> tuple[Entries, NDArray[np.int64], NDArray[np.intp]]:
    """Return the orders of lines ``3:1,{2,4},3``, their counts, and the lines of odd numbers.

    ``code_of`` has the item of each number of an alternative; -1 for others, and at the end.
    """
    marks = np.flatnonzero((data < ord("0")) | (data > ord("9")))
    widths = np.diff(marks) - 1
    has_number = np.flatnonzero(widths)
    widths, ends = widths[has_number], marks[has_number + 1]
    before, after = data[marks[has_number]], data[ends]
    values = (data[ends - 1] - ord("0")).astype(np.int64)
    for nth in range(1, min(widths.max(), LONGEST_COUNT)):
        longer = np.flatnonzero(widths > nth)
        values[longer] += 10**nth * (data[ends[longer] - 1 - nth] - ord("0")).astype(np.int64)

    is_count = before == ord("\n")
    at, listed = np.flatnonzero(is_count), np.flatnonzero(~is_count)
    starts = row_starts(np.diff(at, append=before.size) - 1)
    codes = code_of[np.minimum(values[listed], code_of.size - 1)]
    places = count_places(starts)
    if (opens := before == ord("{")).any():
        is_open = np.cumsum(opens.astype(np.int8) - (after == ord("}")), dtype=np.int32)
        # An item in an open tie has the place of the one before it.
        n_tied = np.cumsum(is_open[listed - 1], dtype=np.int32)
        places -= n_tied - np.repeat(n_tied[starts[:-1]], np.diff(starts))
    bad = np.append(np.flatnonzero(widths > LONGEST_COUNT), listed[codes < 0])
    return Entries(codes, places, starts), values[at], np.searchsorted(at, bad, "right") - 1


# ---- Writing


def write_preflib(rankings: Rankings, stream: TextIO, path: Path) -> None:
    """Write orders with their counts, the most frequent first."""
    _require_kind(rankings, path, describe_row)
    odd_names = any(
        name != name.strip() or not {"\n", "\r"}.isdisjoint(name) for name in rankings.items
    )
    for bad, what in (
        (np.array([len(rankings.target_names) > 1]), "several targets: select one of them"),
        (rankings.weights != np.rint(rankings.weights), "fractional weights"),
        (rankings.weights >= 1e15, "weights of 10^15 or more"),
        (rankings.is_subset, "subset rankings"),
        (rankings.lengths < rankings.n_listed, "ties cut by K"),
        (np.array([odd_names]), "line breaks in names, or blanks around them"),
    ):
        if bad.any():
            raise InputError(
                "rankings",
                NO_VALUE,
                f"have {what}, which PrefLib files cannot hold",
                where=f"ranking {np.argmax(bad)}",
            )
    merged = rankings.unique()
    merged = merged[np.argsort(-merged.weights, kind="stable")]
    stream.write(f"# FILE NAME: {path.name}\n# DATA TYPE: {path.suffix[1:]}\n")
    stream.write(f"# NUMBER ALTERNATIVES: {rankings.n_items}\n")
    stream.write(f"# NUMBER VOTERS: {int(rankings.weights.sum())}\n")
    stream.write(f"# NUMBER UNIQUE ORDERS: {len(merged)}\n")
    for number, name in enumerate(rankings.items, 1):
        print(f"# ALTERNATIVE NAME {number}: {name}", file=stream)
    number_of = {name: str(i) for i, name in enumerate(rankings.items, 1)}
    for weight, order in zip(merged.weights, merged.orders(), strict=True):
        groups = [
            "{" + ",".join(number_of[name] for name in group) + "}"
            if isinstance(group, list)
            else number_of[group]
            for group in order
        ]
        stream.write(f"{int(weight)}: {','.join(groups)}\n")


def _require_kind(rankings: Rankings, path: Path, where: Where) -> None:
    """Raise if rankings do not fit the ending of a file: strict or tied, complete or not."""
    tied = rankings.rows_with_ties
    incomplete = rankings.n_listed < rankings.n_items
    for is_bad, letter, what, instead in (
        (tied, path.suffix[1] == "s", "has ties", ".toc or .toi"),
        (incomplete, path.suffix[3] == "c", "does not list all items", ".soi or .toi"),
    ):
        if letter and is_bad.any():
            row = int(np.argmax(is_bad))
            raise InputError(
                "ranking",
                NO_VALUE,
                f"{what}, which {path.suffix} does not allow",
                where=where(row),
                hint=f"use {instead}",
            )

"""PrefLib's files of rankings: .soc, .soi, .toc and .toi, as PrefLib writes them since 2022.

A file has the number and the names of its alternatives in lines that begin with #, then orders
with their counts, ``3: 1,{2,4},3``. The endings mean strict (s) or with ties (t), complete (c) or
incomplete (i). What comes of the alternatives that an incomplete order leaves out is not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import MARK, read_lines
from rankshot.core.validation import as_names
from rankshot.ranking.construction import (
    Kind,
    Where,
    describe_row,
    validate_columns,
    validate_entries,
)
from rankshot.ranking.entries import Entries, row_starts
from rankshot.ranking.rankings import Rankings

Bytes = NDArray[np.uint8]
PREFLIB_ENDINGS = (".soc", ".soi", ".toc", ".toi")
NAME = re.compile(r"# ALTERNATIVE NAME (\d+): (.+)")
COUNT = re.compile(r"# NUMBER ALTERNATIVES: (.+)")
ORDER = re.compile(r"(\d{1,15}): *(.*[^,])")
GROUP = re.compile(r" *(?:\{([\d, ]*\d[\d, ]*)\}|(\d+)) *(?:,|$)")
NEWLINE, COMMA, COLON, OPEN, CLOSE, ZERO, NINE = b"\n,:{}09"
MOST_UNNAMED = 10**6
"""Alternatives that a file may announce and not name."""
LONGEST = 15
"""Digits of a number: more could be too many for a float."""


# ---- Reading


def read_preflib(path: Path, items: Iterable[Any] | None, kind: Kind) -> Rankings:
    """Read a PrefLib file; the names of its alternatives become the items."""
    rankings, where = _read_regular(path, kind) or _read_line_by_line(path, kind)
    _require_kind(rankings, path, where)
    return rankings if items is None else rankings.change_items(as_names(items), where)


class _Header:
    """The names of alternatives by their numbers, and how many a file announces."""

    def __init__(self, path: Path) -> None:
        self.names: dict[str, str] = {}
        self._used: set[str] = set()
        self._path, self._announced = path, ""

    def read(self, line: str, where: str) -> None:
        if match := NAME.fullmatch(line):
            if match[1] in self.names or match[2] in self._used:
                raise RankshotError(
                    f"{where}: this number or name was given before: {short_repr(line)}"
                )
            self.names[match[1]] = match[2]
            self._used.add(match[2])
        elif match := COUNT.fullmatch(line):
            self._announced = match[1]

    def name_all(self) -> dict[str, str]:
        """Return the names of all alternatives; the number of one without a name is its name."""
        names, announced = self.names, self._announced
        count = int(announced) if announced.isdecimal() and len(announced) <= LONGEST else -1
        if not announced or count == len(names):
            return names
        problem = f"but {len(names)} are named"
        if len(names) < count <= len(names) + MOST_UNNAMED:
            numbers = [str(number) for number in range(1, count + 1)]
            all_names = {number: names.get(number, number) for number in numbers}
            if names.keys() <= all_names.keys() and len(set(all_names.values())) == count:
                return all_names
            problem = "but their numbers are others, or one is named like the number of another"
        raise RankshotError(f"{self._path}: {announced[:20]} alternatives are announced, {problem}")


_Read = tuple[Rankings, Where]
"""Rankings, and how messages name their lines."""


def _read_line_by_line(path: Path, kind: Kind) -> _Read:
    """Read a file of any form; errors name the line."""
    header = _Header(path)
    numbered: list[tuple[int, str]] = []
    for number, line in read_lines(path):
        if line.startswith("#"):
            header.read(line, f"{path}:{number}")
        else:
            numbered.append((number, line))
    if not numbered:
        raise RankshotError(f"{path}: no rankings in it")

    def where(row: int) -> str:
        return f"{path}:{numbered[row][0]}"

    names = header.name_all()
    found = [_read_order(line, names, f"{path}:{number}") for number, line in numbered]
    counts, orders = zip(*found, strict=True)
    rankings = Rankings.from_orders(
        orders, items=names.values(), weights=counts, kind=kind, where=where
    )
    return rankings, where


def _read_order(line: str, names: dict[str, str], where: str) -> tuple[int, list[Any]]:
    match = ORDER.fullmatch(line)
    if match is None:
        raise RankshotError(
            f"{where}: expected 'count: 1,2,{{3,4}}', as PrefLib writes since 2022, "
            f"not {short_repr(line)}"
        )
    order: list[Any] = []
    text, position = match[2], 0
    while position < len(text):
        group = GROUP.match(text, position)
        if group is None:
            raise RankshotError(
                f"{where}: cannot read the order from {short_repr(text[position:])} on"
            )
        numbers = [group[2]] if group[2] else [n.strip() for n in group[1].split(",")]
        for number in numbers:
            if number not in names:
                raise RankshotError(f"{where}: no alternative has the number {short_repr(number)}")
        tie = [names[number] for number in numbers]
        order.append(tie if len(tie) > 1 else tie[0])
        position = group.end()
    return int(match[1]), order


# ---- Reading all numbers at once
#
# Nearly all files are regular: after the header, each line has the same form. Then what separates
# numbers is checked, and the numbers are computed, for the whole file. Any other file, and so any
# wrong one, is read line by line.


class _Votes(NamedTuple):
    counts: NDArray[np.int64]
    lists: Entries


def _read_regular(path: Path, kind: Kind) -> _Read | None:
    """Read a file of regular form; None if it is not."""
    data = path.read_bytes().removeprefix(MARK).replace(b"\r\n", b"\n")
    begin = 0
    while data.startswith(b"#", begin):
        begin = data.find(b"\n", begin) + 1 or len(data)
    votes = _parse_orders(data[begin:])
    try:
        lines = data[:begin].decode().split("\n")[:-1]
    except UnicodeDecodeError:
        return None
    if votes is None:
        return None
    header = _Header(path)
    for number, line in enumerate(lines, 1):
        header.read(line.strip(), f"{path}:{number}")
    names = header.name_all()
    is_usual = list(names) == [str(number) for number in range(1, len(names) + 1)]
    codes = votes.lists.codes - 1
    if not is_usual or codes.min() < 0 or codes.max() >= len(names):
        return None

    def where(row: int) -> str:
        return f"{path}:{len(lines) + row + 1}"

    items = as_names(names.values())
    entries = validate_entries(votes.lists._replace(codes=codes), items, where)
    beside = validate_columns(len(votes.counts), weights=votes.counts, kind=kind, where=where)
    return Rankings(items, *entries, entries.sizes, *beside), where


def _parse_orders(text: bytes) -> _Votes | None:
    """Return the counts and the orders of lines ``count: 1,{2,4},3``; None for any other line."""
    text = text.rstrip().replace(b": ", b":").replace(b", ", b",") + b"\n"
    given = np.frombuffer(text, np.uint8)
    depth = _count_braces(given)
    if depth is None:
        return None
    kept = (given != OPEN) & (given != CLOSE)
    chars, depth = given[kept], depth[kept]
    stops = np.flatnonzero((chars < ZERO) | (chars > NINE))
    marks = chars[stops]
    width = np.diff(stops, prepend=-1) - 1
    # Each line begins with its count.
    is_count = np.append(True, marks[:-1] == NEWLINE)
    if (
        width.min() < 1
        or width.max() > LONGEST
        or not np.array_equal(marks == COLON, is_count)
        or not np.all(is_count | (marks == COMMA) | (marks == NEWLINE))
        or np.any((width > 1) & (chars[stops - width] == ZERO))
    ):
        return None
    values = np.zeros(stops.size, np.int64)
    for power in range(int(width.max())):
        longer = width > power
        values[longer] += (chars[stops[longer] - power - 1] - ZERO) * np.int64(10**power)
    starts = row_starts(np.diff(np.flatnonzero(is_count), append=stops.size) - 1)
    # A comma between braces separates items of the same place.
    place = np.cumsum(np.append(0, depth[stops[:-1]]) == 0)[~is_count]
    place -= np.repeat(place[starts[:-1]], np.diff(starts))
    codes = values[~is_count]
    if codes.max() > np.iinfo(np.int32).max:
        return None
    entries = Entries(codes.astype(np.int32), place.astype(np.int32), starts)
    return _Votes(values[is_count], entries)


def _count_braces(chars: Bytes) -> NDArray[np.int8] | None:
    """Return 1 between braces and 0 elsewhere; None if a brace is not where it should be."""
    opens, closes = np.flatnonzero(chars == OPEN), np.flatnonzero(chars == CLOSE)
    depth = np.zeros(chars.size, np.int8)
    if not opens.size and not closes.size:
        return depth
    if opens.size != closes.size or opens[0] == 0:
        return None
    before, after = chars[opens - 1], chars[closes + 1]
    last = chars[closes - 1]
    depth[opens], depth[closes] = 1, -1
    depth = np.cumsum(depth, dtype=np.int8)
    if (
        depth.min() < 0
        or depth.max() > 1
        or depth[(chars == NEWLINE) | (chars == COLON)].any()
        or not np.all((before == COLON) | (before == COMMA))
        or not np.all((after == COMMA) | (after == NEWLINE))
        or not np.all((last >= ZERO) & (last <= NINE))
    ):
        return None
    return depth


# ---- Writing


def write_preflib(rankings: Rankings, stream: TextIO, path: Path) -> None:
    """Write orders with their counts, the most frequent first."""
    _require_kind(rankings, path, describe_row)
    for bad, what in (
        (np.array([len(rankings.target_names) > 1]), "several targets: select one of them"),
        (rankings.weights != np.rint(rankings.weights), "fractional weights"),
        (rankings.weights >= 1e15, "weights of 10^15 and more"),
        (rankings.is_subset, "subset rankings"),
        (rankings.lengths < rankings.n_listed, "ties cut by K"),
    ):
        if bad.any():
            raise RankshotError(f"ranking {np.argmax(bad)}: PrefLib does not hold {what}")
    for name in rankings.items:
        if name != name.strip() or "\n" in name or "\r" in name:
            raise RankshotError(
                f"{path}: PrefLib cannot hold line breaks in a name, nor space around it, "
                f"as in {short_repr(name)}"
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
            raise RankshotError(
                f"{where(row)}: {what}, which {path.suffix} does not allow; use {instead}"
            )

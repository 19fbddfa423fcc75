"""PrefLib's files of rankings: .soc, .soi, .toc and .toi, as PrefLib writes them since 2022.

A file has the number and the names of its alternatives in lines that begin with #, then orders
with their counts, ``3: 1,{2,4},3``. The endings mean strict (s) or with ties (t), complete (c) or
incomplete (i). What comes of the alternatives that an incomplete order leaves out is not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import read_lines
from rankshot.core.validation import as_names
from rankshot.ranking.construction import Kind, Where, describe_row
from rankshot.ranking.rankings import Rankings

PREFLIB_ENDINGS = (".soc", ".soi", ".toc", ".toi")
NAME = re.compile(r"# ALTERNATIVE NAME (\d+): (.+)")
COUNT = re.compile(r"# NUMBER ALTERNATIVES: (.+)")
LONGEST_COUNT = 15
"""Digits of a count: more could be too many for a float."""
MOST_DIGITS = 6
"""Of the number of alternatives that a file announces: it need not name them."""


# ---- Reading


def read_preflib(path: Path, items: Iterable[Any] | None, kind: Kind) -> Rankings:
    """Read a PrefLib file; the names of its alternatives become the items."""
    header: list[tuple[int, str]] = []
    lines: list[tuple[int, str]] = []
    for number, line in read_lines(path):
        (header if line.startswith("#") else lines).append((number, line))
    if not lines:
        raise RankshotError(f"{path}: no rankings in it")

    def where(row: int) -> str:
        return f"{path}:{lines[row][0]}"

    names = _read_names(header, path)
    counts, orders = [], []
    for row, (_, line) in enumerate(lines):
        count, _, text = line.partition(":")
        order = _read_order(text.strip(), names)
        if order is None or not count.isdecimal() or len(count) > LONGEST_COUNT:
            raise RankshotError(
                f"{where(row)}: expected 'count: 1,2,{{3,4}}', as PrefLib writes since 2022, with "
                f"the numbers of alternatives that the file has, not {short_repr(line)}"
            )
        counts.append(int(count))
        orders.append(order)
    rankings = Rankings.from_orders(
        orders, items=names.values(), weights=counts, kind=kind, where=where
    )
    _require_kind(rankings, path, where)
    return rankings if items is None else rankings.change_items(as_names(items), where)


def _read_names(header: list[tuple[int, str]], path: Path) -> dict[str, str]:
    """Return the names of alternatives by number; the number of one without a name is its name."""
    names: dict[str, str] = {}
    used: set[str] = set()
    announced = ""
    for number, line in header:
        if match := NAME.fullmatch(line):
            if match[1] in names or match[2] in used:
                raise RankshotError(
                    f"{path}:{number}: this number or name was given before: {short_repr(line)}"
                )
            names[match[1]] = match[2]
            used.add(match[2])
        elif match := COUNT.fullmatch(line):
            announced = match[1]
    count = int(announced) if announced.isdecimal() and len(announced) <= MOST_DIGITS else 0
    if announced in ("", str(len(names))):
        return names
    numbers = map(str, range(1, count + 1))
    every = {number: names.get(number, number) for number in numbers}
    if not every or not names.keys() <= every.keys() or len(set(every.values())) < count:
        raise RankshotError(
            f"{path}: {announced[:20]} alternatives are announced, but {len(names)} are named, "
            "with other numbers, or with the number of another"
        )
    return every


def _read_order(text: str, names: dict[str, str]) -> list[Any] | None:
    """Return the names of ``1,{2,4},3``; None if it is not of this form."""
    outside, *pieces = text.replace(", ", ",").replace(" ,", ",").split("{")
    try:
        order: list[Any] = [names[n] for n in outside.removesuffix(",").split(",") if outside]
        for piece in pieces:
            tied, closed, rest = piece.partition("}")
            tie = [names[n] for n in tied.split(",")]
            order.append(tie if len(tie) > 1 else tie[0])
            order += [names[n] for n in rest.strip(",").split(",") if rest.strip(",")]
            if not closed:
                return None
    except KeyError:
        return None
    return order


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
        (rankings.weights >= 1e15, "weights of 10^15 and more"),
        (rankings.is_subset, "subset rankings"),
        (rankings.lengths < rankings.n_listed, "ties cut by K"),
        (np.array([odd_names]), "line breaks in names, or blanks around them"),
    ):
        if bad.any():
            raise RankshotError(f"ranking {np.argmax(bad)}: PrefLib does not hold {what}")
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

"""PrefLib's files of rankings: .soc, .soi, .toc and .toi, as PrefLib writes them since 2022.

A file has the number and the names of its alternatives in lines that begin with #, then orders
with their counts, ``3: 1,{2,4},3``. The endings mean strict (s) or with ties (t), complete (c) or
incomplete (i). The format does not define how the alternatives that an incomplete order leaves out
are interpreted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.files import read_lines
from rankshot.core.validation import as_names
from rankshot.ranking.construction import Kind, Where, describe_row
from rankshot.ranking.rankings import Rankings

PREFLIB_ENDINGS = (".soc", ".soi", ".toc", ".toi")
COUNT = re.compile(r"# NUMBER ALTERNATIVES: (.+)")
NAME = re.compile(r"# ALTERNATIVE NAME ([0-9]{1,6}): (.+)")
PLACE = r"(?:[0-9]{1,6}|\{[0-9]{1,6}(?:,[0-9]{1,6})*\})"
ORDER = re.compile(rf"([0-9]{{1,15}}):({PLACE}(?:,{PLACE})*)")
"""A count and an order, without blanks: ``3:1,{2,4},3``. Longer counts may be too many for a
float."""


# ---- Reading


def read_preflib(path: Path, items: Iterable[object] | None, kind: Kind) -> Rankings:
    """Rankings of a PrefLib file; the names of its alternatives become the items."""
    with closing(read_lines(path)) as stream:
        lines = list(stream)
    names = _read_names([line for line in lines if line[1][0] == "#"], path)
    lines = [line for line in lines if line[1][0] != "#"]
    if not lines:
        raise InputError("file", NO_VALUE, "contains no rankings", where=str(path))

    def where(row: int) -> str:
        return f"{path}:{lines[row][0]}"

    orders: list[list[Any]] = []
    counts = []
    for row, (_, line) in enumerate(lines):
        try:
            count, order = _parse_order(line)
            named = [
                [names[x] for x in (place if isinstance(place, list) else [place])]
                for place in order
            ]
        except (KeyError, ValueError):
            rule = "must be 'count: 1,2,{3,4}', with numbers of alternatives that the file has"
            raise InputError("line", line, rule, where=where(row)) from None
        counts.append(count)
        orders.append(named)
    rankings = Rankings.from_orders(
        orders, items=names.values(), weights=counts, kind=kind, where=where
    )
    _require_kind(rankings, path, where)
    return rankings if items is None else rankings.change_items(as_names(items), where)


def _parse_order(line: str) -> tuple[int, list[int | list[int]]]:
    """Count and order of a line; `ValueError` if it is not ``3: 1,{2,4},3``."""
    bare = line.replace(", ", ",").replace(" ,", ",").replace(": ", ":")
    match = ORDER.fullmatch(bare)
    if match is None:
        raise ValueError(line)
    return int(match[1]), json.loads(f"[{match[2].replace('{', '[').replace('}', ']')}]")


def _read_names(header: list[tuple[int, str]], path: Path) -> dict[int, str]:
    """Names of alternatives by number."""
    names: dict[int, str] = {}
    for number, line in header:
        if match := NAME.fullmatch(line):
            if int(match[1]) in names or match[2] in names.values():
                rule = "has a number or name that was given before"
                raise InputError("line", line, rule, where=f"{path}:{number}")
            names[int(match[1])] = match[2]
    announced = [match[1] for _, line in header if (match := COUNT.fullmatch(line))]
    if announced and announced[-1] != str(len(names)):
        rule = f"announces {announced[-1][:20]} alternatives, but {len(names)} are named"
        raise InputError("header", NO_VALUE, rule, where=str(path))
    return names


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
            rule = f"have {what}, which PrefLib files cannot hold"
            raise InputError("rankings", NO_VALUE, rule, where=f"ranking {np.argmax(bad)}")
    merged = rankings.unique()
    merged = merged[np.argsort(-merged.weights, kind="stable")]
    header = {
        "FILE NAME": path.name,
        "DATA TYPE": path.suffix[1:],
        "NUMBER ALTERNATIVES": rankings.n_items,
        "NUMBER VOTERS": int(rankings.weights.sum()),
        "NUMBER UNIQUE ORDERS": len(merged),
        **{f"ALTERNATIVE NAME {i}": name for i, name in enumerate(rankings.items, 1)},
    }
    stream.writelines(f"# {what}: {value}\n" for what, value in header.items())
    numbers = replace(merged, items=tuple(map(str, range(1, rankings.n_items + 1)))).orders()
    for weight, order in zip(merged.weights, numbers, strict=True):
        groups = ["{" + ",".join(x) + "}" if isinstance(x, list) else x for x in order]
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
            place, hint = where(int(np.argmax(is_bad))), f"use {instead}"
            rule = f"{what}, which {path.suffix} does not allow"
            raise InputError("ranking", NO_VALUE, rule, where=place, hint=hint)

"""Rankings in PrefLib's formats: .soc, .soi, .toc, .toi (the current ones, with # headers).

A file says how many alternatives there are and what they are called, then gives orders with
their counts, ``3: 1,{2,4},3``. The endings say strict (s) or with ties (t), complete (c) or
incomplete (i). An incomplete order is read as a top-K ranking.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rankshot.ranking.encode import Where, as_names, numbered
from rankshot.ranking.errors import RankshotError, shown
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.text_lines import text_lines

PREFLIB_ENDINGS = (".soc", ".soi", ".toc", ".toi")

NAME = re.compile(r"# ALTERNATIVE NAME (\d+): (.+)")
COUNT = re.compile(r"# NUMBER ALTERNATIVES: (.+)")
ORDER = re.compile(r"(\d{1,15}): *(.*[^,])")
GROUP = re.compile(r" *(?:\{([\d, ]*)\}|(\d+)) *(?:,|$)")


def read_preflib(path: Path, items: Iterable[Any] | None) -> Rankings:
    """Read a PrefLib file; its alternatives' names become the items."""
    names: dict[str, str] = {}
    announced: str | None = None
    orders: list[list[Any]] = []
    counts: list[int] = []
    numbers: list[int] = []
    for number, line in text_lines(path):
        line_name = f"{path}:{number}"
        if match := NAME.fullmatch(line):
            if match[1] in names or match[2] in names.values():
                raise RankshotError(
                    f"{line_name}: this number or name was given before: {shown(line)}"
                )
            names[match[1]] = match[2]
        elif match := COUNT.fullmatch(line):
            announced = match[1]
        elif not line.startswith("#"):
            count, order = _read_order(line, names, line_name)
            orders.append(order)
            counts.append(count)
            numbers.append(number)
    if not orders:
        raise RankshotError(f"{path}: no rankings in it")
    if announced is not None and announced != str(len(names)):
        raise RankshotError(
            f"{path}: {announced[:20]} alternatives are announced, but {len(names)} are named"
        )

    def where(row: int) -> str:
        return f"{path}:{numbers[row]}"

    rankings = Rankings.from_orders(orders, items=names.values(), weights=counts, where=where)
    _require_kind(rankings, path, where)
    return rankings if items is None else rankings.over(as_names(items), where)


def _read_order(line: str, names: dict[str, str], where: str) -> tuple[int, list[Any]]:
    match = ORDER.fullmatch(line)
    if match is None:
        raise RankshotError(
            f"{where}: expected 'count: 1,2,{{3,4}}', as PrefLib writes since 2022, "
            f"not {shown(line)}"
        )
    order: list[Any] = []
    text, position = match[2], 0
    while position < len(text):
        group = GROUP.match(text, position)
        if group is None:
            raise RankshotError(f"{where}: cannot read the order from {shown(text[position:])} on")
        if group[1] is not None and not group[1].strip():
            raise RankshotError(f"{where}: an empty tie at place {len(order) + 1}")
        numbers = [group[2]] if group[2] else [n.strip() for n in group[1].split(",")]
        for number in numbers:
            if number not in names:
                raise RankshotError(f"{where}: no alternative has the number {shown(number)}")
        tie = [names[number] for number in numbers]
        order.append(tie if len(tie) > 1 else tie[0])
        position = group.end()
    return int(match[1]), order


def write_preflib(rankings: Rankings, stream: TextIO, path: Path) -> None:
    """Write orders with their counts, the most frequent first."""
    _require_kind(rankings, path, numbered)
    if len(rankings.target_names) > 1:
        raise RankshotError(
            f"{path}: PrefLib has no targets; select one of {rankings.target_names}"
        )
    for bad, what in (
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
                f"as in {shown(name)}"
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
    """Hold a file to what its ending says: strict or tied, complete or not."""
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

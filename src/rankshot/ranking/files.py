"""Files of rankings: JSON lines, PrefLib's formats, and Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.names import as_names
from rankshot.core.text_files import NamedFile, read_lines, replace_file, require_ending
from rankshot.core.validation import require_whole_number
from rankshot.ranking.checks import require_rankings
from rankshot.ranking.encoding import Where, describe_row
from rankshot.ranking.parquet_files import (
    FIELDS,
    join_portions,
    put_rankings,
    read_parquet,
    refuse_misspelt_field,
)
from rankshot.ranking.rankings import Rankings

LINES_AT_ONCE = 20_000
"""Lines are converted to arrays in portions, so that a large file is never held as objects."""
PREFLIB_ENDINGS = (".soc", ".soi", ".toc", ".toi")
NAME = re.compile(r"# ALTERNATIVE NAME (\d+): (.+)")
COUNT = re.compile(r"# NUMBER ALTERNATIVES: (.+)")
ORDER = re.compile(r"(\d{1,15}): *(.*[^,])")
GROUP = re.compile(r" *(?:\{([\d, ]*)\}|(\d+)) *(?:,|$)")
JSONL_ENDINGS = (".jsonl", ".ndjson")
ENDINGS = (*JSONL_ENDINGS, ".parquet", *PREFLIB_ENDINGS)


def read_rankings(path: str | Path, items: Iterable[Any] | None = None) -> Rankings:
    """Read rankings from JSON lines (.jsonl), Parquet or PrefLib (.soc, .soi, .toc, .toi).

    Parameters
    ----------
    path : str or Path
        In JSON lines, one ranking per line, such as
        ``{"target": "cat", "ranking": ["leopard", ["tiger", "lion"], "fox"], "weight": 1}``.
        ``target``, ``source``, ``rater``, ``weight`` and ``kind`` (``"top"``, the default, or
        ``"subset"``) are optional; other fields are ignored. ``k`` says that only the first k
        of the listed items count, which is needed where k cuts a tie.

        A Parquet file has the same fields as columns: ``ranking`` is a list of names or, with
        ties, a list of lists of names. Null means that a field is left out; a weight must be a
        number.
    items : iterable of names, optional
        All items that could be ranked, in the order wanted, such as a classifier's ``classes_``.
        By default those that occur in the file, sorted. PrefLib files, and Parquet files of
        `write_rankings`, name all their items; these are the default then.

    Raises
    ------
    RankshotError
        If the file cannot be read; the message names the file and the line or row.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    require_ending(path, ENDINGS)
    if path.suffix == ".parquet":
        return read_parquet(path, items)
    return read_jsonl(path, items) if path.suffix in JSONL_ENDINGS else read_preflib(path, items)


def write_rankings(rankings: Rankings, path: str | Path) -> None:
    """Write rankings as JSON lines (.jsonl), Parquet or PrefLib (.soc, .soi, .toc, .toi).

    The file is written under another name and then renamed, so that it is never incomplete. A
    JSON lines file names only the items that are listed: to read the same rankings back, give
    `read_rankings` the same ``items``. Parquet files are the fastest to read, and hold all there
    is to a ranking and all items. A PrefLib file names all items, too, but has no targets (there
    may be at most one), sources and raters; they are left out.

    Examples
    --------
    >>> import tempfile
    >>> import rankshot as rs
    >>> votes = rs.Rankings.from_orders([["leopard", ["tiger", "lion"]]], targets="cat")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "votes.jsonl"
    ...     rs.write_rankings(votes, path)
    ...     print(path.read_text().strip())
    ...     again = rs.read_rankings(path)
    {"target": "cat", "ranking": ["leopard", ["lion", "tiger"]]}
    >>> again == votes
    True
    """
    path = Path(path)
    require_rankings(rankings)
    if len(rankings) == 0:
        raise RankshotError(f"{path}: there are no rankings to write")
    require_ending(path, ENDINGS)
    with replace_file(path) as stream:
        if path.suffix == ".parquet":
            put_rankings(rankings, stream.buffer)
        elif path.suffix in JSONL_ENDINGS:
            write_jsonl(rankings, stream, path)
        else:
            write_preflib(rankings, stream, path)


# ---- JSON lines


def read_jsonl(path: Path, items: Iterable[Any] | None) -> Rankings:
    """Read rankings, one JSON object per line; blank lines are skipped."""
    with closing(read_lines(path)) as lines:
        return parse_jsonl(lines, items, path)


def parse_jsonl(
    lines: Iterator[tuple[int, str]], items: Iterable[Any] | None, path: NamedFile
) -> Rankings:
    """Return the rankings of numbered lines; ``path`` is for messages."""
    names = None if items is None else as_names(items)
    portions = iter(lambda: list(islice(lines, LINES_AT_ONCE)), [])
    parts = [_read_portion(portion, names, path) for portion in portions]
    if not parts:
        raise RankshotError(f"{path}: no rankings in it")
    return join_portions(parts, names)


def _read_portion(
    lines: list[tuple[int, str]], items: tuple[str, ...] | None, path: NamedFile
) -> Rankings:
    records: list[dict[str, Any]] = []
    decode = json.JSONDecoder().decode
    for number, line in lines:
        try:
            records.append(decode(line))
        except (ValueError, RecursionError) as error:
            raise RankshotError(
                f"{path}:{number}: not JSON ({error}): {short_repr(line)}"
            ) from None

    def where(row: int) -> str:
        return f"{path}:{lines[row][0]}"

    rankings = Rankings.from_orders(
        _orders(records, where),
        items=items,
        targets=[record.get("target") for record in records],
        sources=[record.get("source") for record in records],
        raters=[record.get("rater") for record in records],
        weights=[record.get("weight", 1) for record in records],
        kind=[record.get("kind", "top") for record in records],
        where=where,
    )
    return _with_cut_ties(rankings, records, where)


def _orders(records: list[dict[str, Any]], where: Where) -> list[list[Any]]:
    harmless: set[str] = set(FIELDS)
    for row, record in enumerate(records):
        if type(record) is not dict or type(record.get("ranking")) is not list:
            raise RankshotError(
                f'{where(row)}: expected an object with a list "ranking", not {short_repr(record)}'
            )
        for field in record.keys() - harmless:
            refuse_misspelt_field(field, where(row))
            harmless.add(field)
    return [record["ranking"] for record in records]


def _with_cut_ties(rankings: Rankings, records: list[dict[str, Any]], where: Where) -> Rankings:
    rows = [row for row, record in enumerate(records) if "k" in record]
    if not rows:
        return rankings
    lengths = rankings.lengths.copy()
    for row in rows:
        most = int(rankings.n_listed[row])
        lengths[row] = require_whole_number(f"{where(row)}: k", records[row]["k"], most)
    return rankings.top(lengths)


def write_jsonl(rankings: Rankings, stream: TextIO, path: Path) -> None:  # noqa: ARG001
    """Write rankings, one per line; default values (weight 1, top-K, no rater) are left out."""
    cut = rankings.lengths < rankings.n_listed
    for row, order in enumerate(rankings.orders()):
        record: dict[str, Any] = {}
        if rankings.targets[row] is not None:
            record["target"] = rankings.targets[row]
        record["ranking"] = order
        if cut[row]:
            record["k"] = int(rankings.lengths[row])
        if rankings.is_subset[row]:
            record["kind"] = "subset"
        if rankings.sources[row] is not None:
            record["source"] = rankings.sources[row]
        if rankings.raters[row] is not None:
            record["rater"] = rankings.raters[row]
        if rankings.weights[row] != 1:
            weight = float(rankings.weights[row])
            record["weight"] = int(weight) if weight.is_integer() else weight
        stream.write(json.dumps(record, ensure_ascii=False) + "\n")


# ---- PrefLib
#
# The current formats, with # headers. A file has the number and the names of its alternatives,
# then orders with their counts, ``3: 1,{2,4},3``. The endings mean strict (s) or with ties (t),
# complete (c) or incomplete (i). An incomplete order is read as a top-K ranking.


def read_preflib(path: Path, items: Iterable[Any] | None) -> Rankings:
    """Read a PrefLib file; the names of its alternatives become the items."""
    names: dict[str, str] = {}
    announced: str | None = None
    orders: list[list[Any]] = []
    counts: list[int] = []
    numbers: list[int] = []
    for number, line in read_lines(path):
        line_name = f"{path}:{number}"
        if match := NAME.fullmatch(line):
            if match[1] in names or match[2] in names.values():
                raise RankshotError(
                    f"{line_name}: this number or name was given before: {short_repr(line)}"
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
    return rankings if items is None else rankings.change_items(as_names(items), where)


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
        if group[1] is not None and not group[1].strip():
            raise RankshotError(f"{where}: an empty tie at place {len(order) + 1}")
        numbers = [group[2]] if group[2] else [n.strip() for n in group[1].split(",")]
        for number in numbers:
            if number not in names:
                raise RankshotError(f"{where}: no alternative has the number {short_repr(number)}")
        tie = [names[number] for number in numbers]
        order.append(tie if len(tie) > 1 else tie[0])
        position = group.end()
    return int(match[1]), order


def write_preflib(rankings: Rankings, stream: TextIO, path: Path) -> None:
    """Write orders with their counts, the most frequent first."""
    _require_kind(rankings, path, describe_row)
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

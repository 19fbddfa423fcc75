"""Files of rankings: JSON lines, PrefLib's formats, and Parquet."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import NamedFile, as_path, read_lines, replace_file, require_ending
from rankshot.core.validation import as_names, require_choice, require_whole_number
from rankshot.ranking.construction import Kind, Where
from rankshot.ranking.files.parquet_files import (
    FIELDS,
    join_portions,
    put_rankings,
    read_parquet,
    refuse_misspelt_field,
)
from rankshot.ranking.files.preflib_files import PREFLIB_ENDINGS, read_preflib, write_preflib
from rankshot.ranking.parts import require_rankings
from rankshot.ranking.rankings import Rankings

LINES_AT_ONCE = 20_000
"""Lines are converted to arrays in portions, so that a large file is never held as objects."""
JSONL_ENDINGS = (".jsonl", ".ndjson")
ENDINGS = (*JSONL_ENDINGS, ".parquet", *PREFLIB_ENDINGS)


def read_rankings(
    path: str | Path, items: Iterable[Any] | None = None, *, kind: Kind = "top"
) -> Rankings:
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
    kind : {"top", "subset"}
        What a ranking is for which the file does not say it, as PrefLib's files never do: a top-K
        ranking, or one of a subset of the items.

    Raises
    ------
    RankshotError
        If the file cannot be read; the message names the file and the line or row.
    FileNotFoundError
        If there is no such file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> line = '{"target": "cat", "ranking": ["leopard", ["tiger", "lion"], "fox"]}'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rankings.jsonl")
    ...     _ = path.write_text(line)
    ...     rs.read_rankings(path)
    Rankings: 1 ranking of 4 items, 1 target
      cat: leopard > lion = tiger > fox
    """
    path = as_path(path)
    require_choice("kind", kind, ("top", "subset"))
    readers = {".parquet": read_parquet, **dict.fromkeys(PREFLIB_ENDINGS, read_preflib)}
    return readers.get(require_ending(path, ENDINGS), read_jsonl)(path, items, kind)


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
    >>> from pathlib import Path
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
    path = as_path(path)
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


def read_jsonl(path: Path, items: Iterable[Any] | None, kind: Kind) -> Rankings:
    """Read rankings, one JSON object per line; blank lines are skipped."""
    with closing(read_lines(path)) as lines:
        return parse_jsonl(lines, items, path, kind)


def parse_jsonl(
    lines: Iterator[tuple[int, str]],
    items: Iterable[Any] | None,
    path: NamedFile,
    kind: Kind = "top",
) -> Rankings:
    """Return the rankings of numbered lines; ``path`` is for messages."""
    names = None if items is None else as_names(items)
    portions = iter(lambda: list(islice(lines, LINES_AT_ONCE)), [])
    parts = [_read_portion(portion, names, path, kind) for portion in portions]
    if not parts:
        raise RankshotError(f"{path}: no rankings in it")
    return join_portions(parts, names)


def _read_portion(
    lines: list[tuple[int, str]], items: tuple[str, ...] | None, path: NamedFile, kind: Kind
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
        kind=[record.get("kind", kind) for record in records],
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

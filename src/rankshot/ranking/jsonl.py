"""Rankings as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from rankshot.ranking.encode import Where, as_names
from rankshot.ranking.errors import RankshotError, shown
from rankshot.ranking.rankings import Rankings
from rankshot.ranking.text_lines import text_lines

FIELDS = ("target", "ranking", "source", "rater", "weight", "kind", "k")

LINES_AT_ONCE = 20_000
"""Text becomes arrays in portions, so that a large file never stands in memory as objects."""


def read_jsonl(path: Path, items: Iterable[Any] | None) -> Rankings:
    """Read rankings, one JSON object a line; blank lines are passed over."""
    names = None if items is None else as_names(items)
    lines = text_lines(path)
    portions = iter(lambda: list(islice(lines, LINES_AT_ONCE)), [])
    parts = [_read_portion(portion, names, path) for portion in portions]
    if not parts:
        raise RankshotError(f"{path}: no rankings in it")
    found = names or tuple(sorted({item for part in parts for item in part.items}))
    return Rankings.concatenate(part.over(found) for part in parts)


def _read_portion(
    lines: list[tuple[int, str]], items: tuple[str, ...] | None, path: Path
) -> Rankings:
    records: list[dict[str, Any]] = []
    decode = json.JSONDecoder().decode
    for number, line in lines:
        try:
            records.append(decode(line))
        except (ValueError, RecursionError) as error:
            raise RankshotError(f"{path}:{number}: not JSON ({error}): {shown(line)}") from None

    def where(row: int) -> str:
        return f"{path}:{lines[row][0]}"

    rankings = Rankings.from_orders(
        _orders(records, where),
        items=items,
        targets=[record.get("target") for record in records],
        sources=[record.get("source") for record in records],
        raters=[record.get("rater") for record in records],
        weights=_weights(records, where),
        kind=[record.get("kind", "top") for record in records],
        where=where,
    )
    return _with_cut_ties(rankings, records, where)


def _orders(records: list[dict[str, Any]], where: Where) -> list[list[Any]]:
    harmless: set[str] = set(FIELDS)
    for row, record in enumerate(records):
        if type(record) is not dict or type(record.get("ranking")) is not list:
            raise RankshotError(
                f'{where(row)}: expected an object with a list "ranking", not {shown(record)}'
            )
        for field in record.keys() - harmless:
            # Other fields are welcome, but a misspelt one would be lost without a word.
            if close := get_close_matches(field.lower(), FIELDS, n=1, cutoff=0.8):
                raise RankshotError(
                    f"{where(row)}: field {shown(field)}: did you mean {close[0]!r}?"
                )
            harmless.add(field)
    return [record["ranking"] for record in records]


def _weights(records: list[dict[str, Any]], where: Where) -> list[float]:
    weights = [record.get("weight", 1) for record in records]
    for row, weight in enumerate(weights):
        if type(weight) is not int and type(weight) is not float:
            raise RankshotError(f"{where(row)}: weight must be a number, not {shown(weight)}")
    return weights


def _with_cut_ties(rankings: Rankings, records: list[dict[str, Any]], where: Where) -> Rankings:
    rows = [row for row, record in enumerate(records) if "k" in record]
    if not rows:
        return rankings
    lengths = rankings.lengths.copy()
    for row in rows:
        k, most = records[row]["k"], int(rankings.n_listed[row])
        if type(k) is not int or not 1 <= k <= most:
            raise RankshotError(
                f"{where(row)}: k must be between 1 and the {most} items listed, not {shown(k)}"
            )
        lengths[row] = k
    return rankings.top(lengths)


def write_jsonl(rankings: Rankings, stream: TextIO, path: Path) -> None:  # noqa: ARG001
    """Write rankings, one a line; what is as usual (weight 1, top-K, no rater) is left out."""
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

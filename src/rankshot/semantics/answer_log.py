"""Answers of a language model: parsing them, and the log file that stores them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.text_files import require_ending
from rankshot.ranking.files import JSONL_ENDINGS

QUESTION_FIELDS = ("target", "rater", "model", "prompt", "k", "temperature", "seed", "items")
"""The fields that identify a question: a stored answer is used only if all of them are equal."""
LINE_START = b'{"target": '
"""The start of every line of a log; it identifies an incomplete last line as part of a log."""
MAX_BROKEN_LISTS = 100
"""The search stops after this number of brackets that start no list, to bound its time."""


def parse_answer(text: str, items: Sequence[str], k: int) -> list[str]:
    """Return the one ranking in an answer, with the items in their original spelling.

    Text around the list is ignored. Differences in case, and between underscores and spaces, are
    ignored as well, unless two items differ only in these.

    Raises
    ------
    RankshotError
        Says what is wrong, in words that can be sent back to the model.

    Examples
    --------
    >>> parse_answer('Surely ["Lion", "sea lion"].', ["lion", "sea_lion", "bus"], k=2)
    ['lion', 'sea_lion']
    >>> parse_answer('["lion", "lion", "lynx"]', ["lion", "sea_lion", "bus"], k=2)
    Traceback (most recent call last):
        ...
    rankshot.core.errors.RankshotError: not among the items: 'lynx'; more than once: 'lion';
    expected 2 names, found 3
    """
    found = _find_json_lists(text)
    if len(found) != 1:
        raise RankshotError(f"expected one complete JSON list, found {len(found)}")
    names = _match_items(found[0], items)
    counts = Counter(name for name in names if name is not None)
    unknown = [name for name, item in zip(found[0], names, strict=True) if item is None]
    repeated = [name for name, count in counts.items() if count > 1]
    faults = [f"not among the items: {_quote_values(unknown)}"] if unknown else []
    faults += [f"more than once: {_quote_values(repeated)}"] if repeated else []
    faults += [f"expected {k} names, found {len(names)}"] if len(names) != k else []
    if faults:
        raise RankshotError("; ".join(faults))
    return list(counts)


def _find_json_lists(text: str) -> list[list[Any]]:
    """Return the outermost JSON lists in a text."""
    found = []
    broken = 0
    decoder = json.JSONDecoder()
    start = text.find("[")
    while start >= 0 and broken < MAX_BROKEN_LISTS:
        try:
            value, end = decoder.raw_decode(text, start)
            found.append(value)
        except (ValueError, RecursionError):
            end = start + 1
            broken += 1
        start = text.find("[", end)
    return found


def _match_items(names: list[Any], items: Sequence[str]) -> list[str | None]:
    """Return the item that each name stands for, or None."""
    same_plain = Counter(map(_normalize_spelling, items))
    known = {
        _normalize_spelling(item): item
        for item in items
        if same_plain[_normalize_spelling(item)] == 1
    }
    exact = set(items)
    return [
        None
        if type(name) is not str
        else name
        if name in exact
        else known.get(_normalize_spelling(name))
        for name in names
    ]


def _normalize_spelling(name: str) -> str:
    return " ".join(name.replace("_", " ").split()).casefold()


def _quote_values(names: list[Any]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(short_repr(name) for name in names[:8]) + more


class AnswerLog:
    """A log of answers: a file of JSON lines, which is also a file of rankings.

    For every answer, one line is appended and flushed to the disk. After a crash, only the last
    line can be incomplete: it is dropped, and its question is asked again. Answers to other
    questions (another model, other items, another prompt) stay in the file and are not used.

    Parameters
    ----------
    path : Path or None
        A .jsonl file, which need not exist yet; None stores nothing.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
    >>> question = {"target": "cat", "rater": "m#1", "model": "m", "k": 1, "items": ["fox", "bus"]}
    >>> AnswerLog(path).add(question, {"ranking": ["fox"]})
    >>> AnswerLog(path).find(question), AnswerLog(path).find(question | {"target": "dog"})
    (['fox'], None)
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._rankings: dict[bytes, list[str]] = {}
        self._mend: tuple[int, bytes] | None = None
        if path is None:
            return
        require_ending(path, JSONL_ENDINGS)
        if path.exists():
            try:
                self._read(path)
            except OSError as error:
                raise RankshotError(f"{path}: cannot read it ({error.strerror})") from None

    def find(self, question: Mapping[str, Any]) -> list[str] | None:
        """Return the stored ranking that answers this question, or None."""
        return self._rankings.get(_fingerprint(question))

    def prepare(self) -> None:
        """Drop an incomplete last line, and raise an error now if the file cannot be written."""
        if self.path is None:
            return
        try:
            with self.path.open("ab") as stream:
                if self._mend is not None:
                    end, missing = self._mend
                    stream.truncate(end)
                    stream.write(missing)
                    self._mend = None
        except OSError as error:
            raise RankshotError(f"{self.path}: cannot write there ({error.strerror})") from None

    def add(self, question: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Append a question and its answer; they are on the disk when this returns."""
        self._rankings[_fingerprint(question)] = answer["ranking"]
        if self.path is None:
            return
        self.prepare()
        # JSON in ASCII: a name that UTF-8 cannot encode must not lose an answer that was paid for.
        line = json.dumps({"target": question["target"], **answer, **question}) + "\n"
        try:
            with self.path.open("ab") as stream:
                stream.write(line.encode())
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise RankshotError(f"{self.path}: cannot write there ({error.strerror})") from None

    def _read(self, path: Path) -> None:
        end = 0
        with path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                is_whole = line.endswith(b"\n")
                record = _parse_record(line)
                if record is not None:
                    if "items" in record:
                        self._rankings.setdefault(_fingerprint(record), record["ranking"])
                    self._mend = None if is_whole else (end + len(line), b"\n")
                elif not is_whole and _is_partial_record(line):
                    self._mend = (end, b"")
                elif line.strip():
                    raise RankshotError(
                        f"{path}:{number}: not a line of a log of answers: "
                        f"{short_repr(line.decode(errors='replace'))}"
                    )
                end += len(line)


def _parse_record(line: bytes) -> dict[str, Any] | None:
    """Return the record of a line, or None if it has no ranking.

    Rankings from other sources, which have no field "items", may be in the same file. An answer
    that has the field must be valid: k of its items, each once.
    """
    try:
        record = json.loads(line)
        ranking, items = record["ranking"], record.get("items")
        is_answer = items is None or (
            len(ranking) == len(set(ranking)) == record["k"] and set(ranking) <= set(items)
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return record if type(ranking) is list and is_answer else None


def _is_partial_record(line: bytes) -> bool:
    """Whether a broken line is the start of a record; a block lost in a crash reads as zeros."""
    line = line.rstrip(b"\0")
    return line.startswith(LINE_START) or LINE_START.startswith(line)


def _fingerprint(question: Mapping[str, Any]) -> bytes:
    text = json.dumps([question.get(name) for name in QUESTION_FIELDS])
    return sha256(text.encode()).digest()

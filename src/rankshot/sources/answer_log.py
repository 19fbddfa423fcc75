"""The log of a language model's answers: a file that several processes can share."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Any, BinaryIO, Self

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import require_ending
from rankshot.ranking.files.ranking_files import JSONL_ENDINGS

try:
    import fcntl
except ImportError:  # Windows: one process at a time
    fcntl = None  # type: ignore[assignment]

QUESTION_FIELDS = ("target", "rater", "model", "prompt", "k", "temperature", "seed", "items")
"""The fields that identify a question: a stored answer is used only if all of them are equal."""
LINE_START = b'{"target": '
"""The start of every line of a log; it identifies an incomplete last line as part of a log."""
OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
WRITE_LOCK = 1 << 40
FIRST_CLAIM = 1 << 41
"""Bytes far beyond the end of the file that are locked, and not written: one by the process that
writes, and one for each question that is being asked."""


class AnswerLog:
    """A log of answers: a file of JSON lines, which is also a file of rankings.

    For every answer, one line is appended and flushed to the disk. After a crash, only the last
    line can be incomplete: it is dropped, and its question is asked again. Answers to other
    questions (another model, other items, another prompt) stay in the file and are not used.

    Several processes can share a log. `claim` gives a question to one of them: the others wait for
    its answer. The claim of a process that ends, in whatever way, ends with it. (Claims are locks
    of single bytes of the file, as POSIX has them. Without them, as on Windows, only one process
    should use a log.)

    Parameters
    ----------
    path : Path or None
        A .jsonl file, which need not exist yet; None stores nothing.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "answers.jsonl"
    >>> question = {"target": "cat", "rater": "m#1", "model": "m", "k": 1, "items": ["fox", "bus"]}
    >>> with AnswerLog(path) as log:
    ...     log.add(question, {"ranking": ["fox"]})
    >>> AnswerLog(path).find(question), AnswerLog(path).find(question | {"target": "dog"})
    (['fox'], None)
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._rankings: dict[bytes, list[str]] = {}
        self._end = self._lines = 0
        self._file: int | None = None
        self._lock = Lock()
        if path is None:
            return
        require_ending(path, JSONL_ENDINGS)
        if path.exists():
            with _naming(path, "read it"), path.open("rb") as stream:
                self._read(stream, path)

    def __enter__(self) -> Self:
        """Open the file, drop an incomplete last line, and raise an error if it is not writable."""
        if self.path is not None:
            with _naming(self.path, "write there"):
                self._file = os.open(self.path, OPEN_FLAGS, 0o666)
            with self._writing(self.path) as file:
                if tail := self._catch_up(file, self.path):
                    self._mend(file, tail)
        return self

    def __exit__(self, *_: object) -> None:
        # With the lock, so that no thread is in the middle of a line.
        with self._lock:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def find(self, question: Mapping[str, Any]) -> list[str] | None:
        """Return the stored ranking that answers this question, or None."""
        return self._rankings.get(_fingerprint(question))

    def claim(self, question: Mapping[str, Any]) -> bool:
        """Return whether to ask this question now: no other process has done so, or is doing so.

        If not, its answer may be there already: see `find`.
        """
        if self.path is None:
            return True
        mark = _fingerprint(question)
        with self._lock:
            if self._file is None:
                return False
            try:
                _lock_byte(self._file, _claim_byte(mark), wait=False)
            except OSError:
                return False
            # In this order: whoever had the claim before has written its answer by now.
            with _naming(self.path, "read it"):
                self._catch_up(self._file, self.path)
            if mark in self._rankings:
                _unlock_byte(self._file, _claim_byte(mark))
            return mark not in self._rankings

    def add(self, question: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        """Append a question and its answer; they are on the disk when this returns."""
        if self.path is not None:
            # JSON in ASCII: a name that UTF-8 cannot encode must not lose an answer that was paid.
            line = json.dumps({"target": question["target"], **answer, **question}) + "\n"
            with self._writing(self.path) as file:
                self._append(file, line.encode())
                _unlock_byte(file, _claim_byte(_fingerprint(question)))
        self._rankings[_fingerprint(question)] = answer["ranking"]

    @contextmanager
    def _writing(self, path: Path) -> Iterator[int]:
        """Let no other thread, and no other process, write."""
        with self._lock, _naming(path, "write there"):
            if self._file is None:
                raise RankshotError(f"{path}: the log is closed")
            _lock_byte(self._file, WRITE_LOCK, wait=True)
            try:
                yield self._file
            finally:
                _unlock_byte(self._file, WRITE_LOCK)

    def _append(self, file: int, line: bytes) -> None:
        """Append a line in one write; if the disk is full, nothing of it stays."""
        end = os.fstat(file).st_size
        try:
            while line:
                line = line[os.write(file, line) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, end)
            raise

    def _mend(self, file: int, tail: bytes) -> None:
        """Complete the last line, or drop it."""
        if _parse_record(tail) is None:
            os.ftruncate(file, self._end)
        else:
            os.write(file, b"\n")
            self._end += len(tail) + 1
            self._lines += 1

    def _catch_up(self, file: int, path: Path) -> bytes:
        """Read what was appended since the last time, by this process or another."""
        size = os.fstat(file).st_size
        if size <= self._end:
            return b""
        os.lseek(file, self._end, os.SEEK_SET)
        content = b""
        while len(content) < size - self._end and (
            block := os.read(file, size - self._end - len(content))
        ):
            content += block
        return self._read(BytesIO(content), path)

    def _read(self, stream: BinaryIO, path: Path) -> bytes:
        """Read lines; return the start of a last line that is not complete."""
        for line in stream:
            record = _parse_record(line)
            is_whole = line.endswith(b"\n")
            if record is not None and "items" in record:
                self._rankings.setdefault(_fingerprint(record), record["ranking"])
            elif record is None and line.strip() and (is_whole or not _is_partial_record(line)):
                raise RankshotError(
                    f"{path}:{self._lines + 1}: not a line of a log of answers: "
                    f"{short_repr(line.decode(errors='replace'))}"
                )
            if not is_whole:
                return line
            self._end += len(line)
            self._lines += 1
        return b""


def _claim_byte(mark: bytes) -> int:
    return FIRST_CLAIM + int.from_bytes(mark[:7])


def _lock_byte(file: int, place: int, *, wait: bool) -> None:
    """Lock a byte for this process; raise OSError if another has it, unless told to wait."""
    if fcntl is not None:
        fcntl.lockf(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, place)


def _unlock_byte(file: int, place: int) -> None:
    if fcntl is not None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, place)


@contextmanager
def _naming(path: Path, what: str) -> Iterator[None]:
    """Name the file in the error if it cannot be read or written."""
    try:
        yield
    except OSError as error:
        raise RankshotError(f"{path}: cannot {what} ({error.strerror})") from None


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

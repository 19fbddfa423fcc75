"""Reading word2vec's binary files, the format of the Google News vectors."""

from __future__ import annotations

import io
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.errors import RankshotError
from rankshot.semantics.vector_files import Vectors, WantedWords, opened, read_header

MAX_WORD = 10_000
"""Bytes in a word: the longest published are web addresses."""

_BLOCK = 2**22


def read_word2vec_binary(path: Path, words: Collection[str]) -> Vectors:
    """Read the vectors of some words; the others are passed over.

    After a line with the number of words and of numbers each, a record is the word, a space and
    little-endian float32; word2vec itself ends it with a newline, gensim does not. There are
    no lines to name, so a complaint names the number of the word.
    """
    wanted = WantedWords(words)
    found: Vectors = {}
    with opened(path) as stream:
        count, dimension = read_header(stream.readline(100), path)
        _check_size(stream, path, count, dimension)
        records = _Records(stream, path, 4 * dimension)
        for number in range(1, count + 1):
            start = records.next_vector(number)
            key = records.word
            if key in wanted.utf8:
                word = wanted.utf8[key]
                if word not in found:
                    where = f"{path}: word {number} ({word!r})"
                    found[word] = _vector(records.buffer, start, dimension, where)
            elif key in wanted.latin1:
                wanted.note_latin1(key, f"{path}: word {number}")
        if records.rest().strip():
            raise RankshotError(
                f"{path}: more follows the {count} words of {dimension} numbers in the header"
            )
    wanted.check_missed(found)
    return found


def _check_size(stream: io.BufferedReader[Any], path: Path, count: int, dimension: int) -> None:
    """Refuse at once what the size of the file gives the lie; a packed file tells on the way."""
    if not isinstance(stream.raw, io.FileIO):
        return
    least, actual = count * (4 * dimension + 1), path.stat().st_size - stream.tell()
    if actual < least:
        raise RankshotError(
            f"{path}: truncated: {count} words of {dimension} numbers are at least {least:,} "
            f"bytes, but {actual:,} follow the header"
        )


def _vector(buffer: bytes, start: int, dimension: int, where: str) -> NDArray[np.float64]:
    vector = np.frombuffer(buffer, "<f4", dimension, start)
    if not np.isfinite(vector).all():
        raise RankshotError(f"{where} is not finite")
    return vector.astype(np.float64)


class _Records:
    """A window that moves over the records: millions of them, so without a call for each read."""

    def __init__(self, stream: io.BufferedReader[Any], path: Path, vector_bytes: int) -> None:
        self.stream = stream
        self.path = path
        self.vector_bytes = vector_bytes
        self.buffer = b""
        self.place = 0
        self.word = b""

    def next_vector(self, number: int) -> int:
        """Move to the next record; return where its vector starts in the buffer."""
        if len(self.buffer) - self.place < MAX_WORD + 1 + self.vector_bytes:
            self.buffer = self.buffer[self.place :] + self.stream.read(_BLOCK)
            self.place = 0
        space = self.buffer.find(b" ", self.place, self.place + MAX_WORD)
        start, end = space + 1, space + 1 + self.vector_bytes
        if space < 0 and len(self.buffer) - self.place >= MAX_WORD:
            raise RankshotError(f"{self.path}: word {number} is longer than {MAX_WORD:,} bytes")
        if space < 0 or end > len(self.buffer):
            raise RankshotError(f"{self.path}: truncated in word {number}")
        self.word = self.buffer[self.place : space].lstrip(b"\n")
        self.place = end
        return start

    def rest(self) -> bytes:
        """Return the start of what has not been read."""
        return self.buffer[self.place :] + self.stream.read(1)

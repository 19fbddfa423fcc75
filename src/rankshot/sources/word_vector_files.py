"""Files of word vectors (GloVe, word2vec, fastText, .npy): reading the vectors of given words.

The files are large (GloVe 5 GB, word2vec 3 GB) and not trusted. So they are streamed, only the
lines of given words are parsed, and every size in a header is checked before it is used. A
malformed line is an error only if it has one of the given words.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.files import MARK, iterate_lines

Vectors = dict[str, NDArray[np.float64]]
"""From words to their vectors."""
FORMATS = ("glove", "word2vec", "fasttext", "word2vec-binary", "npy")
"""The formats that can be read; fastText's .vec has the text format of word2vec."""
MAX_LINE = 2**20
"""The most bytes in a line: a vector of 50,000 numbers."""
MAX_DIMENSION = 2**16
MAX_WORDS = 20_000_000
"""More than any published vocabulary has; it bounds the time that a hostile file can take."""
_SAMPLE, _BUFFER = 2**19, 2**20
_HEADER = re.compile(rb"(\d{1,40})[ \t]+(\d{1,40})[ \t]*\r?\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_NUMPY_ERRORS = (
    *(ValueError, TypeError, EOFError, OverflowError),
    # NumPy parses the header of a matrix as a Python literal, which can raise these.
    *(SyntaxError, TokenError, RecursionError, MemoryError),
)
_FOREIGN = (
    (rb"PK\x03\x04", "a zip archive: unpack it first"),
    (rb"\x80[\x02-\x05]", "a pickle, which can run code: pass gensim's KeyedVectors instead"),
    (rb"\xba\x16\x4f\x2f", "a fastText model: use its .vec file, or load it with gensim"),
)
MAX_WORD = 10_000
"""The most bytes in a word; the longest published ones are web addresses."""
_BLOCK = 2**22


class WantedWords:
    """The words to look for in a file, in the encodings in which they may be there.

    Some files were concatenated from several and have lines in Latin-1. A word that a file
    contains only in Latin-1 is reported as an error, so that it is not silently missed.
    """

    def __init__(self, words: Collection[str]) -> None:
        self.utf8 = {word.encode(errors="surrogatepass"): word for word in words}
        self.latin1 = _only_latin1(words)
        self._misread: dict[str, str] = {}
        self.starts = {key.split(b" ")[0] for key in (*self.utf8, *self.latin1)}

    def note_latin1(self, key: bytes, where: str) -> None:
        """Remember the place of a wanted word in the wrong encoding."""
        if key in self.latin1:
            self._misread.setdefault(self.latin1[key], where)

    def check_missed(self, found: Collection[str]) -> None:
        """Raise an error for a wanted word that the file has only in the wrong encoding."""
        known = {word.casefold() for word in found}
        for word, where in self._misread.items():
            if word.casefold() not in known:
                raise RankshotError(f"{where}: {word!r} is written in Latin-1 instead of UTF-8")


def _only_latin1(words: Collection[str]) -> dict[bytes, str]:
    keys: dict[bytes, str] = {}
    for word in words:
        key = word.encode("latin-1", errors="ignore")
        if len(key) == len(word) and not word.isascii():
            try:
                key.decode()
            except UnicodeDecodeError:
                keys[key] = word
    return keys


# ---- Opening


@contextmanager
def open_unpacked(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a file for reading bytes; gzip files are decompressed."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] != b"\x1f\x8b":
            yield raw
            return
        try:
            with io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER) as stream:
                yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise RankshotError(f"{path}: damaged gzip ({error})") from None


# ---- Detecting the format


def detect_format(path: Path, named: str | None = None) -> str:
    """Return the format of a file, by its content unless it is given."""
    with open_unpacked(path) as stream:
        sample = stream.read(_SAMPLE).removeprefix(MARK)
    if named is not None:
        if named not in FORMATS:
            raise RankshotError(
                f"unknown format {short_repr(named)}{suggest_name(named, FORMATS)}; known are "
                f"{', '.join(FORMATS)}"
            )
        return named
    if not sample.strip():
        raise RankshotError(f"{path}: the file is empty")
    if sample.startswith(b"\x93NUMPY"):
        return "npy"
    for start, what in _FOREIGN:
        if re.match(start, sample):
            raise RankshotError(f"{path}: this is {what}")
    header = _HEADER.match(sample)
    if header is None or _is_one_number_each(sample, header):
        return "glove"
    _, dimension = read_header(header.group(), path)
    return "word2vec-binary" if _is_binary(sample[header.end() :], dimension) else "word2vec"


def _is_one_number_each(sample: bytes, header: re.Match[bytes]) -> bool:
    """Whether ``5 3`` is the word '5' with its number 3, not a header: five words of three."""
    line, newline, _ = sample[header.end() :].partition(b"\n")
    fields = line.split()
    written = newline and not _CONTROL.search(sample)
    return bool(written) and len(fields) == 2 and int(header[2]) != 1 and _is_number(fields[1])


def _is_binary(record: bytes, dimension: int) -> bool:
    """Whether the first vector after the header is binary float32 rather than text."""
    word, _, vector = record.lstrip(b"\n").partition(b" ")
    if _CONTROL.search((vector or word)[: 4 * dimension]):
        return True
    fields = vector.split(b"\n", 1)[0].split()
    if not fields:
        return bool(vector)
    written = all(field.isascii() for field in fields)
    return not (written and (len(fields) == dimension or all(map(_is_number, fields))))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def read_header(line: bytes, path: Path) -> tuple[int, int]:
    """Return the number of words and the dimension from the header of a word2vec file."""
    header = _HEADER.fullmatch(line)
    if header is None:
        raise RankshotError(
            f"{path}:1: expected '<words> <dimension>' as word2vec writes, not {short_repr(line)}"
        )
    words, dimension = int(header[1]), int(header[2])
    if not (1 <= words <= MAX_WORDS and 1 <= dimension <= MAX_DIMENSION):
        raise RankshotError(
            f"{path}:1: the header claims {words} words of {dimension} numbers; at most "
            f"{MAX_WORDS:,} words of {MAX_DIMENSION:,} numbers are supported"
        )
    return words, dimension


# ---- Text


def read_text(path: Path, words: Collection[str], *, header: bool) -> Vectors:
    """Read the vectors of some words from GloVe's or word2vec's text, which has a header."""
    wanted = WantedWords(words)
    found: Vectors = {}
    with open_unpacked(path) as stream:
        lines = iterate_lines(stream, path, MAX_LINE, MAX_WORDS)
        promised = dimension = seen = 0
        if header:
            promised, dimension = read_header(next(lines, (1, b""))[1], path)
        for number, line in lines:
            first = line.split(None, 1)[:1]
            if not first:
                continue
            seen += 1
            if not dimension:
                dimension = _count_numbers(line, f"{path}:{number}")
            if first[0] in wanted.starts:
                _keep_line(line, dimension, wanted, found, f"{path}:{number}")
            if line[-1:] != b"\n" and len(line.split()) <= dimension:
                raise RankshotError(f"{path}:{number}: truncated in the last line")
    if seen < promised:
        raise RankshotError(f"{path}: truncated: {seen} of the {promised} words in its header")
    wanted.check_missed(found)
    return found


def _count_numbers(line: bytes, where: str) -> int:
    fields = line.split()
    if not 2 <= len(fields) <= MAX_DIMENSION + 1 or not _is_number(fields[-1]):
        raise RankshotError(f"{where}: expected a word and its numbers, not {short_repr(line)}")
    return len(fields) - 1


def _keep_line(
    line: bytes, dimension: int, wanted: WantedWords, found: Vectors, where: str
) -> None:
    """Parse a line that begins like a wanted word; only the first line of a word counts."""
    fields = line.split()
    # A word may contain spaces, so the numbers are counted from the end.
    key = b" ".join(fields[:-dimension])
    if key not in wanted.utf8:
        wanted.note_latin1(key, where)
        key = fields[0]
        goes_on = len(fields) > dimension + 1 and not _is_number(fields[1])
        if key not in wanted.utf8 or goes_on:
            return
    word = wanted.utf8[key]
    if word in found:
        return
    numbers = fields[key.count(b" ") + 1 :]
    if len(numbers) != dimension:
        raise RankshotError(f"{where}: {word!r} has {len(numbers)} numbers instead of {dimension}")
    odd = [text for text in numbers if not (_is_number(text) and isfinite(float(text)))]
    if odd:
        text = short_repr(odd[0].decode(errors="replace"))
        raise RankshotError(f"{where}: {word!r} has {text}, which is not a finite number")
    found[word] = np.array([float(number) for number in numbers])


# ---- .npy


def read_npy(path: Path, vocabulary: Path, words: Collection[str]) -> Vectors:
    """Read the rows of some words from a memory-mapped matrix, by a separate vocabulary file."""
    matrix = map_matrix(path)
    wanted = WantedWords(words)
    rows: dict[str, int] = {}
    number = 0
    with open_unpacked(vocabulary) as stream:
        for number, line in iterate_lines(stream, vocabulary, MAX_LINE, MAX_WORDS):
            key = line.rstrip(b"\r\n")
            if key in wanted.utf8:
                rows.setdefault(wanted.utf8[key], number - 1)
            else:
                wanted.note_latin1(key, f"{vocabulary}:{number}")
    if number != len(matrix):
        raise RankshotError(f"{path} has {len(matrix)} rows, {vocabulary} has {number} words")
    wanted.check_missed(rows)
    return take_rows(matrix, rows, path)


def map_matrix(path: Path) -> NDArray[np.floating]:
    """Memory-map a matrix of numbers; nothing is read yet."""
    try:
        # Not np.load: it leaves a file open that begins like an archive and is none.
        matrix = np.lib.format.open_memmap(path, mode="r")
    except _NUMPY_ERRORS as error:
        raise RankshotError(f"{path}: not an uncompressed .npy matrix ({error})") from None
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiu":
        what = f"{matrix.dtype} of shape {matrix.shape}"
        raise RankshotError(f"{path}: expected a matrix of numbers, not {what}")
    return matrix


def take_rows(matrix: NDArray[np.floating], rows: dict[str, int], path: Path) -> Vectors:
    """Copy some rows, by word, out of a matrix."""
    for word, row in rows.items():
        if not np.isfinite(matrix[row]).all():
            raise RankshotError(f"{path}: row {row} ({word!r}) is not finite")
    return {word: np.array(matrix[row], dtype=np.float64) for word, row in rows.items()}


# ---- word2vec's binary format


def read_word2vec_binary(path: Path, words: Collection[str]) -> Vectors:
    """Read the vectors of some words from a binary file, the format of the Google News vectors.

    After a line with the number of words and the dimension, a record is the word, a space and
    little-endian float32 numbers; word2vec itself ends it with a newline, gensim does not. There
    are no lines, so error messages give the number of the word.
    """
    wanted = WantedWords(words)
    found: Vectors = {}
    with open_unpacked(path) as stream:
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
                    found[word] = _parse_vector(records.buffer, start, dimension, where)
            elif key in wanted.latin1:
                wanted.note_latin1(key, f"{path}: word {number}")
        if records.rest().strip():
            raise RankshotError(
                f"{path}: more data follows after the {count} words of {dimension} numbers that "
                "the header announces"
            )
    wanted.check_missed(found)
    return found


def _check_size(stream: io.BufferedReader[Any], path: Path, count: int, dimension: int) -> None:
    """Refuse a file that is too small for its header; compressed files are checked on reading."""
    if not isinstance(stream.raw, io.FileIO):
        return
    least, actual = count * (4 * dimension + 1), path.stat().st_size - stream.tell()
    if actual < least:
        raise RankshotError(
            f"{path}: truncated: {count} words of {dimension} numbers take at least {least:,} "
            f"bytes, but {actual:,} follow the header"
        )


def _parse_vector(buffer: bytes, start: int, dimension: int, where: str) -> NDArray[np.float64]:
    vector = np.frombuffer(buffer, "<f4", dimension, start)
    if not np.isfinite(vector).all():
        raise RankshotError(f"{where} is not finite")
    return vector.astype(np.float64)


class _Records:
    """The records of a file, read in large blocks: one read per record would be slow."""

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
        """Return the unread bytes of the buffer, and one more byte of the file if there is one."""
        return self.buffer[self.place :] + self.stream.read(1)

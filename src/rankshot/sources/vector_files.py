"""Files of word vectors (GloVe, word2vec, fastText): reading the vectors of given words.

The files are large (GloVe 5 GB, word2vec 3 GB). So they are streamed, and only the lines of given
words are parsed. A malformed line is an error only if it has one of the given words.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.files import MARK, iterate_lines

Vectors = dict[str, NDArray[np.float64]]
"""From words to their vectors."""
MAX_LINE_BYTES = 2**20
"""A vector of 50,000 numbers; a longer line is an error, before it fills the memory."""
MAX_DIMENSION = 2**16
MAX_WORD_BYTES = 10_000
"""The longest published words are web addresses."""
_SAMPLE_BYTES, _BLOCK_BYTES = 2**19, 2**22
_HEADER = re.compile(rb"(\d{1,40})[ \t]+(\d{1,40})[ \t]*\r?\n")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_FOREIGN = (
    (rb"PK\x03\x04", "a zip archive: unpack it first"),
    (rb"\x93NUMPY", "a NumPy matrix without words: pass a mapping from words to its rows"),
    (rb"\x80[\x02-\x05]", "a pickle, which can run code: pass gensim's KeyedVectors instead"),
    (rb"\xba\x16\x4f\x2f", "a fastText model: use its .vec file, or load it with gensim"),
)


@contextmanager
def open_unpacked(path: Path) -> Iterator[io.BufferedReader[Any]]:
    """Open a file for reading bytes; gzip files are decompressed."""
    with path.open("rb") as raw:
        if raw.peek(2)[:2] != b"\x1f\x8b":
            yield raw
            return
        try:
            with io.BufferedReader(gzip.GzipFile(fileobj=raw), 2**20) as stream:
                yield stream
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise RankshotError(f"{path}: damaged gzip ({error})") from None


def _encode(words: Collection[str]) -> dict[bytes, str]:
    return {word.encode(errors="surrogatepass"): word for word in words}


# ---- Detecting the format


def detect_format(path: Path) -> str:
    """Return the format of a file by its content: glove, word2vec or word2vec-binary.

    fastText's .vec has the text format of word2vec.
    """
    with open_unpacked(path) as stream:
        sample = stream.read(_SAMPLE_BYTES).removeprefix(MARK)
    foreign = [what for start, what in _FOREIGN if re.match(start, sample)]
    if foreign or not sample.strip():
        raise RankshotError(f"{path}: this is {foreign[0] if foreign else 'an empty file'}")
    header = _HEADER.match(sample)
    if header is None:
        return "glove"
    _, dimension = _read_header(header.group(), path)
    return "word2vec-binary" if _is_binary(sample[header.end() :], dimension) else "word2vec"


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


def _read_header(line: bytes, path: Path) -> tuple[int, int]:
    """Return the number of words and the dimension from the header of a word2vec file."""
    header = _HEADER.fullmatch(line)
    words, dimension = (int(header[1]), int(header[2])) if header else (0, 0)
    if words < 1 or not 1 <= dimension <= MAX_DIMENSION:
        raise RankshotError(
            f"{path}:1: expected '<words> <dimension>' as word2vec writes (the dimension at most "
            f"{MAX_DIMENSION:,}), not {short_repr(line)}"
        )
    return words, dimension


# ---- Text


def read_text(path: Path, words: Collection[str], *, header: bool) -> Vectors:
    """Read the vectors of some words from GloVe's or word2vec's text, which has a header."""
    wanted = _encode(words)
    starts = {key.split(b" ")[0] for key in wanted}
    found: Vectors = {}
    promised = dimension = seen = 0
    last = b""
    with open_unpacked(path) as stream:
        lines = iterate_lines(stream, path, MAX_LINE_BYTES)
        if header:
            promised, dimension = _read_header(next(lines, (1, b""))[1], path)
        for number, line in lines:
            first = line.split(None, 1)[:1]
            if not first:
                continue
            seen, last = seen + 1, line
            fields = line.split() if first[0] in starts or not dimension else []
            if not dimension:
                dimension = len(fields) - 1
                if not 1 <= dimension <= MAX_DIMENSION or not _is_number(fields[-1]):
                    raise RankshotError(
                        f"{path}:{number}: expected a word and its numbers, not {short_repr(line)}"
                    )
            if first[0] in starts:
                word, vector = _parse_fields(fields, dimension, wanted)
                if word is None or word in found:
                    continue
                if vector.size != dimension or not np.isfinite(vector).all():
                    raise RankshotError(
                        f"{path}:{number}: {word!r} must have {dimension} finite numbers, not "
                        f"{short_repr(line)}"
                    )
                found[word] = vector
    if seen < promised or (last[-1:] != b"\n" and len(last.split()) <= dimension):
        raise RankshotError(f"{path}: truncated after {seen} words")
    return found


def _parse_fields(
    fields: list[bytes], dimension: int, wanted: dict[bytes, str]
) -> tuple[str | None, NDArray[np.float64]]:
    """Return the word of a line, None if it is not wanted, and its numbers, NaN if malformed."""
    # A word may contain spaces, so the numbers are counted from the end.
    key = b" ".join(fields[:-dimension])
    if key not in wanted:
        key = fields[0]
        if len(fields) > dimension + 1 and not _is_number(fields[1]):
            key = b""
    try:
        vector = np.array([float(text) for text in fields[key.count(b" ") + 1 :]])
    except ValueError:
        vector = np.full(dimension, np.nan)
    return wanted.get(key), vector


# ---- word2vec's binary format


def read_word2vec_binary(path: Path, words: Collection[str]) -> Vectors:
    """Read the vectors of some words from a binary file, the format of the Google News vectors.

    After a line with the number of words and the dimension, a record is the word, a space and
    little-endian float32 numbers; word2vec itself ends it with a newline, gensim does not. There
    are no lines, so error messages give the number of the word.
    """
    wanted = _encode(words)
    found: Vectors = {}
    with open_unpacked(path) as stream:
        count, dimension = _read_header(stream.readline(100), path)
        buffer, place = b"", 0
        for number in range(1, count + 1):
            if len(buffer) - place < MAX_WORD_BYTES + 1 + 4 * dimension:
                # In large blocks: one read for each record would be slow.
                buffer, place = buffer[place:] + stream.read(_BLOCK_BYTES), 0
            space = buffer.find(b" ", place, place + MAX_WORD_BYTES)
            if space < 0 or space + 1 + 4 * dimension > len(buffer):
                raise RankshotError(f"{path}: truncated in word {number} of {count}")
            word = wanted.get(buffer[place:space].lstrip(b"\n"))
            place = space + 1 + 4 * dimension
            if word is not None and word not in found:
                vector = np.frombuffer(buffer, "<f4", dimension, space + 1)
                found[word] = vector.astype(np.float64)
    return found

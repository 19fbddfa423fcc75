"""`Corpus`: similarities from names that occur together, or in similar contexts, in a text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.errors import RankshotError
from rankshot.core.files import MARK
from rankshot.core.progress import ProgressLine
from rankshot.core.validation import as_names, require_choice, require_whole_number
from rankshot.sources.associations import dice, ppmi
from rankshot.sources.class_names import split_synonyms
from rankshot.sources.class_vectors import cosine
from rankshot.sources.cooccurrence import (
    BlockCounts,
    ContextCounts,
    CountSettings,
    NameIndex,
    count_block,
)
from rankshot.sources.similarity import Similarity

Unit = Literal["window", "document", "paragraph"]
Measure = Literal["dice", "ppmi", "cosine"]
BLOCK_BYTES = 1 << 19
"""Text is counted in blocks of about this size; no line up to this size is cut."""
CONTEXT_WORDS, MAX_WORDS = 5_000, 50_000
"""The length of a vector; and the most words in memory: beyond it, the rarer half is dropped."""
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
CONTINUATIONS = bytes(range(0x80, 0xC0))
BLANK_LINE = re.compile(rb"\n[^\S\n]*(?=\n)")


@dataclass(frozen=True)
class Corpus:
    """A text file as a source of similarities: names that occur together are similar.

    The file is read once, in blocks that are counted in parallel; the memory needed does not
    depend on its length. Words are sequences of letters and digits, in lower case; punctuation
    only separates them. A name is found as it is written, with spaces for underscores, several
    words as a phrase, and also with the regular plural of its last word (-s, -es, -ies). Where
    names overlap, the leftmost one counts, then the longest, and it is one word from then on: a
    "pickup truck" is not also a "truck" if both names are given. Of synonyms separated by commas,
    the first is counted. The name of a WordNet sense, ``crane.n.04``, is read as its word, and an
    id, ``n02012849``, as the first word of its synset.

    Parameters
    ----------
    path : str or Path
        UTF-8 text, plain or compressed (.gz, .bz2, .xz).
    unit : {"window", "document", "paragraph"}
        The unit in which names occur together. A document is one line. A paragraph ends at a
        blank line; where blank lines are rare (fewer than one line in twenty of the first
        512 KiB), it is one line. A window is any ``window`` consecutive words of a paragraph;
        windows that reach over its ends are included, so that every word is in the same number
        of windows. A text longer than 512 KiB may be cut and count as several.
    window : int
        The number of words in a window.
    measure : {"dice", "ppmi", "cosine"}
        `dice` or `ppmi` of the units that contain both names compare what is mentioned together.
        The cosine of context vectors compares what is mentioned in similar contexts, and needs
        less text. A context vector is the `ppmi` of a name with each of the 5,000 most frequent
        words (in windows, a word at distance d counts ``window`` - d times).
    workers : int, optional
        The number of processes that count; by default one for each core, and none for a file of
        one block. With 1, no process is started. The result does not depend on it.
    min_count : int
        Pairs that occur together less often than this have too little evidence to be ranked:
        such items of a target are tied last. For the cosine, each of the two names must occur
        this often.
    verbose : bool
        Show progress.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot import Corpus
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "zoo.txt"
    ...     _ = path.write_text("The cat is a small tiger. " * 9 + "No cat takes the bus.")
    ...     table = Corpus(path).similarity(["cat"], ["tiger", "bus", "whale"])
    >>> table.to_rankings()
    Rankings: 1 ranking of 3 items, 1 target, 1 source
      cat: tiger > bus (subset)
    >>> table.notes[1:]
    ('in the text fewer than 5 times: bus (1)',
     'cat: 1 items with fewer than 5 co-occurrences are tied last')
    """

    path: str | Path
    unit: Unit = "window"
    window: int = 10
    measure: Measure = "dice"
    workers: int | None = None
    min_count: int = 5
    verbose: bool = False

    def __post_init__(self) -> None:
        require_choice("unit", self.unit, get_args(Unit))
        require_choice("measure", self.measure, get_args(Measure))
        require_whole_number("window", self.window, 1000, least=2)
        require_whole_number("min_count", self.min_count, 1000, least=0)
        require_whole_number("workers", 1 if self.workers is None else self.workers, 1000)

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Read the file and compare every target with every item.

        The similarities of a name that never occurs are NaN. The table's ``notes`` list the names
        that rarely occur, and for each target how many items are tied last.
        """
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        words = [split_synonyms(name)[0] for name in (*target_names, *item_names)]
        names, entry = NameIndex.build(words)
        row, column = entry[: len(target_names)], entry[len(target_names) :]
        totals = self._count(names, row, column)
        occurrences, same = totals.occurrences, row[:, None] == column
        if self.measure == "cosine":
            vectors = totals.vectors()
            values = np.nan_to_num(cosine(vectors[row], vectors[column]))
            evidence = np.minimum(occurrences[row][:, None], occurrences[column])
        else:
            n_a, n_b = totals.with_name[row][:, None], totals.with_name[column]
            n_ab = np.where(same, n_a, totals.with_pair[row][:, column].toarray())
            is_dice = self.measure == "dice"
            values = dice(n_a, n_b, n_ab) if is_dice else ppmi(n_a, n_b, n_ab, totals.units)
            meetings = totals.meetings[row][:, column].toarray()
            evidence = np.where(same, occurrences[row][:, None], meetings)
        unknown = (occurrences[row] == 0)[:, None] | (occurrences[column] == 0)
        too_rare = ~unknown & (evidence < self.min_count)
        # Zero is the lowest value of all three measures.
        values = np.where(unknown, np.nan, np.where(too_rare, 0.0, values))
        times = dict(zip((*target_names, *item_names), occurrences[entry].tolist(), strict=True))
        notes = self._notes(totals, times, too_rare.sum(axis=1))
        return Similarity(values, target_names, item_names, f"corpus {self.measure}", notes)

    def _count(
        self, names: NameIndex, row: NDArray[np.int64], column: NDArray[np.int64]
    ) -> CorpusCounts:
        path, totals = Path(self.path), CorpusCounts(len(names.entries))
        rows, columns = (np.isin(np.arange(len(names.entries)), some) for some in (row, column))
        width = self.window if self.unit == "window" else None
        settings = CountSettings(names, rows, columns, width, self.measure == "cosine")
        blocks = read_blocks(path, paragraphs=self.unit != "document")
        with ProgressLine(f"counting {path.name}", enabled=self.verbose) as line:
            for counts in _count_blocks(
                blocks, path, settings, self.workers or os.cpu_count() or 1
            ):
                totals.add(counts)
                line.update(f"{totals.units:,} {self.unit}s")
        return totals

    def _notes(
        self, totals: CorpusCounts, times: dict[str, int], thin: Iterable[int]
    ) -> Iterator[str]:
        """Report how much text was read, and for which names it is too little."""
        yield f"{totals.units:,} {self.unit}s of {Path(self.path).name}"
        if rare := [f"{name} ({n})" for name, n in times.items() if 0 < n < self.min_count]:
            yield f"in the text fewer than {self.min_count} times: {', '.join(rare)}"
        what = "occurrences" if self.measure == "cosine" else "co-occurrences"
        for target, n in zip(times, thin, strict=False):
            if n:
                yield f"{target}: {n} items with fewer than {self.min_count} {what} are tied last"


class CorpusCounts:
    """The counts of all blocks so far; see `BlockCounts`."""

    def __init__(self, n_names: int) -> None:
        self.units = self.total = 0
        self.with_name, self.occurrences, self.near_totals = np.zeros((3, n_names), np.int64)
        self.with_pair = self.meetings = csr_array((n_names, n_names), dtype=np.int64)
        self.words: dict[str, int] = {}
        self.word_totals = np.zeros(0, np.int64)
        self.near = csr_array((n_names, 0), dtype=np.int64)

    def add(self, counts: BlockCounts) -> None:
        """Add the counts of the next block."""
        self.units += counts.units
        self.with_name += counts.with_name
        self.occurrences += counts.occurrences
        self.near_totals += counts.near_totals
        self.with_pair = self.with_pair + counts.with_pair
        self.meetings = self.meetings + counts.meetings
        if counts.contexts is not None:
            self._add_contexts(counts.contexts)

    def _add_contexts(self, contexts: ContextCounts) -> None:
        column = [self.words.setdefault(word, len(self.words)) for word in contexts.words]
        self.word_totals = np.pad(self.word_totals, (0, len(self.words) - self.word_totals.size))
        self.word_totals[column] += contexts.word_totals
        self.total += contexts.total
        shape = self.near.shape[0], len(self.words)
        self.near.resize(shape)
        cells = contexts.near.tocoo()
        places = cells.row, np.array(column, np.int64)[cells.col]
        self.near = self.near + csr_array((cells.data, places), shape=shape)
        if len(self.words) > MAX_WORDS:
            self.keep_words(MAX_WORDS // 2)

    def keep_words(self, n: int) -> None:
        """Keep the ``n`` most frequent words, equally frequent ones in alphabetical order."""
        words = sorted(self.words, key=lambda w: (-self.word_totals[self.words[w]], w))[:n]
        columns = np.array([self.words[word] for word in words], np.int64)
        self.near = self.near[:, columns]
        self.word_totals = self.word_totals[columns]
        self.words = {word: i for i, word in enumerate(words)}

    def vectors(self) -> NDArray[np.float64]:
        """Return the association of every name with the most frequent words."""
        self.keep_words(CONTEXT_WORDS)
        return ppmi(self.near_totals[:, None], self.word_totals, self.near.toarray(), self.total)


class TextBlock(NamedTuple):
    """Some whole texts of a file; ``line`` is the number of the first line."""

    line: int
    data: bytes
    blank_lines: bool

    def text(self, path: Path) -> str:
        """Decode the block, or raise an error that names the line that is not UTF-8."""
        try:
            return self.data.decode()
        except UnicodeDecodeError as error:
            line = self.line + self.data.count(b"\n", 0, error.start)
            raise RankshotError(f"{path}:{line}: not UTF-8 text ({error.reason})") from None


def read_blocks(path: Path, *, paragraphs: bool) -> Iterator[TextBlock]:
    """Read a file in blocks that end with a line or a paragraph, unless that is too long."""
    line, rest, blank_lines = 1, b"", None
    with OPENERS.get(path.suffix, Path.open)(path, "rb") as stream:
        while True:
            try:
                chunk = stream.read(BLOCK_BYTES)
            except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
                last = line + rest.count(b"\n")
                raise RankshotError(f"{path}:{last}: the file is damaged ({error})") from None
            if blank_lines is None:
                rest = chunk.removeprefix(MARK)
                inside = rest.strip()
                n_blank = len(BLANK_LINE.findall(inside))
                blank_lines = paragraphs and 20 * n_blank > inside.count(b"\n")
            else:
                rest += chunk
            cut = (
                len(rest) if len(chunk) < BLOCK_BYTES else _find_cut(rest, blank_lines=blank_lines)
            )
            if cut:
                yield TextBlock(line, rest[:cut], blank_lines)
            if not chunk:
                return
            line += rest.count(b"\n", 0, cut)
            rest = rest[cut:]


def _find_cut(data: bytes, *, blank_lines: bool) -> int:
    """Return where a block ends: after the last whole text, or 0 if none is complete yet."""
    cut = 0 if blank_lines else data.rfind(b"\n") + 1
    for match in BLANK_LINE.finditer(data) if blank_lines else ():
        cut = match.end() + 1
    if cut or len(data) < 2 * BLOCK_BYTES:
        return cut
    # The text is too long: cut it at a space, or else anywhere but inside a character.
    cut = max(data.rfind(b"\n"), data.rfind(b" ")) + 1
    return cut or len(data) - len(data[-4:].lstrip(CONTINUATIONS))


def _count_blocks(
    blocks: Iterator[TextBlock], path: Path, settings: CountSettings, workers: int
) -> Iterator[BlockCounts]:
    """Count the blocks, in their order; only a few are in memory at a time."""
    first = list(islice(blocks, 2))
    blocks = chain(first, blocks)
    if workers == 1 or len(first) < 2:
        yield from (_decode_and_count(block, path, settings) for block in blocks)
        return
    # joblib comes with scikit-learn. Unlike the standard library's process pool, it needs no
    # `if __name__ == "__main__"` in the caller's script.
    from joblib import Parallel, delayed  # noqa: PLC0415 - only needed for several processes

    tasks = (delayed(_decode_and_count)(block, path, settings) for block in blocks)
    yield from Parallel(workers, return_as="generator", pre_dispatch="2 * n_jobs")(tasks)


def _decode_and_count(block: TextBlock, path: Path, settings: CountSettings) -> BlockCounts:
    return count_block(block.text(path), settings, blank_lines=block.blank_lines)

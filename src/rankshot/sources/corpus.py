"""Similarities from counts: `Corpus`, association measures, and hit counts of a search engine.

Names that occur in similar contexts of a text are similar; the file is read in blocks, which are
counted in any number of processes.

The association measures take arrays of counts that broadcast against one another: ``n_a`` units
(windows, documents, web pages) contain the first name, ``n_b`` the second, ``n_ab`` both, out of
``N`` units. A larger value means more similar. A name that never occurs is unknown, NaN. A pair
that never occurs together has the lowest possible value: all such pairs of a table are tied.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import MARK
from rankshot.core.progress import ProgressLine
from rankshot.core.tables import Rule, read_table
from rankshot.core.validation import as_names, require_whole_number
from rankshot.sources.names import split_synonyms
from rankshot.sources.similarity import Similarity, refuse_huge_table
from rankshot.sources.vectors import cosine

BLOCK_BYTES = 1 << 19
"""Text is counted in blocks of about this size; no line up to this size is cut."""
CONTEXT_WORDS, MAX_WORDS = 5_000, 50_000
"""The length of a vector; and the most words in memory: beyond it, the rarer half is dropped."""
OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
CONTINUATIONS = bytes(range(0x80, 0xC0))
BLANK_LINE = re.compile(rb"\n[^\S\n]*(?=\n)")
WORD = re.compile(r"[^\W_]+")
LINES = re.compile(r"[^\W_]+|\n")
PARAGRAPHS = re.compile(r"[^\W_]+|\n(?=[^\S\n]*\n)")
SIBILANTS = ("s", "x", "z", "ch", "sh")
MAX_WORD_LETTERS = 64
"""Longer words are ignored as contexts: a hostile file could fill the memory with them."""
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Corpus:
    """A text file as a source of similarities: names with similar contexts are similar.

    The context vector of a name holds its positive pointwise mutual information (`ppmi`) with each
    of the 5,000 most frequent words, where a word at distance d has the weight ``window`` - d; the
    similarity is the cosine of two vectors.

    The file is read once, in blocks that are counted in parallel; the memory needed does not
    depend on its length. Words are sequences of letters and digits, in lower case; punctuation
    only separates them. A name is found as it is written, with spaces for underscores, several
    words as a phrase, and also with the regular plural of its last word (-s, -es, -ies). Where
    names overlap, the leftmost one is used, then the longest, and it is treated as one word: a
    "pickup truck" is not also a "truck" if both names are given. If a name lists synonyms
    separated by commas, the first one is used. The name of a WordNet sense, ``crane.n.04``, is
    read as its word, and an id, ``n02012849``, as the first word of its synset.

    Parameters
    ----------
    path : str or Path
        UTF-8 text, plain or compressed (.gz, .bz2, .xz). Contexts do not cross blank lines, which
        separate paragraphs. If blank lines are rare (fewer than one line in twenty of the first
        512 KiB), contexts do not cross line ends.
    window : int
        The number of words in a window.
    workers : int, optional
        The number of worker processes; by default one per core, and none for a file of one block.
        With 1, no process is started. The result does not depend on this number.
    min_count : int
        The minimum number of occurrences of a name. A pair with a rarer name has too little
        evidence to be ranked: such items are tied last.
    verbose : bool
        Show progress.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot import Corpus
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "zoo.txt"
    ...     _ = path.write_text("A cat purrs. A tiger purrs. A bus drives. " * 9 + "A tram.")
    ...     table = Corpus(path, window=3).similarity(["cat"], ["tiger", "bus", "tram", "whale"])
    >>> table.to_rankings()
    Rankings: 1 ranking of 4 items, 1 target, 1 source
      cat: tiger > bus > tram (subset)
    >>> table.notes[1:]
    ('in the text fewer than 5 times: tram (1)',
     'cat: 1 item tied last, because a name of the pair occurs fewer than 5 times')
    """

    path: str | Path
    window: int = 10
    workers: int | None = None
    min_count: int = 5
    verbose: bool = False

    def __post_init__(self) -> None:
        require_whole_number("window", self.window, 1000, least=2)
        require_whole_number("min_count", self.min_count, 1000, least=0)
        require_whole_number("workers", 1 if self.workers is None else self.workers, 1000)

    def similarity(self, targets: Iterable[object], items: Iterable[object]) -> Similarity:
        """Read the file and compare all ``targets`` with all ``items``.

        The similarities of a name that never occurs are NaN. The table's ``notes`` list the names
        that rarely occur, and for each target how many items are tied last.
        """
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        words = [split_synonyms(name)[0] for name in (*target_names, *item_names)]
        names, entry = NameIndex.build(words)
        row, column = entry[: len(target_names)], entry[len(target_names) :]
        totals = self._count(names)
        vectors, occurrences = totals.vectors(), totals.occurrences
        values = np.nan_to_num(cosine(vectors[row], vectors[column]))
        evidence = np.minimum(occurrences[row][:, None], occurrences[column])
        # Zero is the lowest cosine of vectors without negative numbers.
        too_rare = (evidence > 0) & (evidence < self.min_count)
        values = np.where(evidence == 0, np.nan, np.where(too_rare, 0.0, values))
        times = dict(zip((*target_names, *item_names), occurrences[entry].tolist(), strict=True))
        notes = [f"{totals.total:,} words of {Path(self.path).name}"]
        if rare := [f"{name} ({n})" for name, n in times.items() if 0 < n < self.min_count]:
            notes.append(f"in the text fewer than {self.min_count} times: {', '.join(rare)}")
        notes += [
            f"{target}: {format_count(int(n), 'item')} tied last, because a name of the pair "
            f"occurs fewer than {self.min_count} times"
            for target, n in zip(target_names, too_rare.sum(axis=1), strict=True)
            if n
        ]
        return Similarity(values, target_names, item_names, "corpus", notes)

    def _count(self, names: NameIndex) -> Counts:
        """Count all blocks, in their order; only a few are in memory at a time."""
        path, workers = Path(self.path), self.workers or os.cpu_count() or 1
        count_one = partial(count_block, path=path, names=names, width=self.window)
        blocks = read_blocks(path)
        first = list(islice(blocks, 2))
        counted: Iterable[Counts] = map(count_one, chain(first, blocks))
        if workers > 1 and len(first) > 1:
            # joblib comes with scikit-learn. Unlike the standard library's process pool, it needs
            # no `if __name__ == "__main__"` in the caller's script.
            from joblib import Parallel, delayed  # noqa: PLC0415 - only for several processes

            tasks = map(delayed(count_one), chain(first, blocks))
            counted = Parallel(workers, return_as="generator", pre_dispatch="2 * n_jobs")(tasks)
        totals = count_one(TextBlock(1, b"", blank_lines=False))
        with ProgressLine(f"counting {path.name}", enabled=self.verbose) as line:
            for counts in counted:
                totals.add(counts)
                line.update(f"{totals.total:,} words")
        return totals


# ---- Blocks of text


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


def read_blocks(path: Path) -> Iterator[TextBlock]:
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
                blank_lines = 20 * n_blank > inside.count(b"\n")
            else:
                rest += chunk
            is_last = len(chunk) < BLOCK_BYTES
            cut = len(rest) if is_last else _find_cut(rest, blank_lines=blank_lines)
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


# ---- Names


@dataclass(frozen=True)
class NameIndex:
    """The names to look for in a text: every spelling of a name leads to one entry.

    Names that differ only in case or in separators (``pine_tree``, ``Pine tree``) share an entry.
    ``forms`` lead from words to the number of their entry, and ``lengths`` from a word to the
    lengths of the phrases that begin with it, longest first.
    """

    entries: tuple[str, ...]
    forms: dict[tuple[str, ...], int]
    lengths: dict[str, list[int]]

    @classmethod
    def build(cls, names: Iterable[str]) -> tuple[NameIndex, Ints]:
        """Return the index of some names, and the number of each name's entry.

        A plural that is itself a name means that name: if "glass" and "glasses" are both given,
        the word "glasses" counts as the second.
        """
        split_names = [tuple(WORD.findall(name.lower())) for name in names]
        # Sorted, so that nothing depends on the order in which names are given.
        entries = sorted(set(split_names))
        forms = {words: i for i, words in enumerate(entries)}
        for i, words in enumerate(entries):
            for last in plurals(words[-1]) if words else ():
                forms.setdefault((*words[:-1], last), i)
        lengths: dict[str, list[int]] = {}
        for words in sorted(forms, key=len, reverse=True):
            if len(words) > 1 and len(words) not in lengths.setdefault(words[0], []):
                lengths[words[0]].append(len(words))
        index = cls(tuple(map(" ".join, entries)), forms, lengths)
        return index, np.array([forms[words] for words in split_names], np.int64)


def plurals(word: str) -> tuple[str, ...]:
    """Return the regular plurals of a word; irregular ones (mice, men) are not known."""
    if word.endswith(SIBILANTS):
        return (word + "es",)
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return (word[:-1] + "ies",)
    return (word + "s", word + "es") if word.endswith("o") else (word + "s",)


class TokenizedText(NamedTuple):
    """A block of text as a sequence of words, in which each name that was found is one word.

    ``tokens`` are indices into the ``vocabulary``, in which the names come last: a name has one
    token of its own, in whatever spelling it was found. ``entries`` are the numbers of the names,
    -1 for other words; ``texts`` are numbers that increase from one text of the block (line or
    paragraph) to the next.
    """

    vocabulary: list[str]
    tokens: Ints
    entries: Ints
    texts: Ints


def tokenize(text: str, names: NameIndex, *, blank_lines: bool) -> TokenizedText:
    """Split text into words and find the names: the leftmost one first, then the longest."""
    run = (PARAGRAPHS if blank_lines else LINES).findall(text.lower())
    code = dict(zip(dict.fromkeys(run), count(), strict=False))
    words = np.fromiter(map(code.__getitem__, run), np.int64, len(run))
    entries = np.array([names.forms.get((word,), -1) for word in code], np.int64)[words]
    begins = np.array([word in names.lengths for word in code], bool)[words]
    ends_text = words == code.get("\n", -1)
    keep = ~ends_text
    end = 0
    for start in np.flatnonzero(begins).tolist():
        if start < end:
            continue
        for size in names.lengths[run[start]]:
            entry = names.forms.get(tuple(run[start : start + size]))
            if entry is not None:
                end = start + size
                entries[start] = entry
                keep[start + 1 : end] = False
                break
    tokens = np.where(entries >= 0, len(code) + entries, words)
    vocabulary = [*code, *names.entries]
    return TokenizedText(vocabulary, tokens[keep], entries[keep], np.cumsum(ends_text)[keep])


# ---- Counting a block


@dataclass
class Counts:
    """The counts of a block, or of several.

    ``occurrences`` counts each name; ``words`` occur ``word_totals`` times, out of ``total``.
    ``near`` (names x words) is the weight of the words near each name, and ``near_totals`` its sum
    over all words, including those that are not listed.
    """

    total: int
    occurrences: Ints
    near_totals: Ints
    words: list[str]
    word_totals: Ints
    near: Any

    def add(self, counts: Counts) -> None:
        """Add the counts of the next block."""
        for field in fields(self)[:3]:
            setattr(self, field.name, getattr(self, field.name) + getattr(counts, field.name))
        place = {word: i for i, word in enumerate(self.words)}
        column = np.array([place.setdefault(word, len(place)) for word in counts.words], np.int64)
        self.words, shape = list(place), (self.near.shape[0], len(place))
        self.word_totals = np.pad(self.word_totals, (0, len(place) - self.word_totals.size))
        self.word_totals[column] += counts.word_totals
        self.near.resize(shape)
        cells = counts.near.tocoo()
        self.near = self.near + csr_array((cells.data, (cells.row, column[cells.col])), shape=shape)
        if len(place) > MAX_WORDS:
            self.keep_words(MAX_WORDS // 2)

    def keep_words(self, n: int) -> None:
        """Keep the ``n`` most frequent words, equally frequent ones in alphabetical order."""
        order = sorted(range(len(self.words)), key=lambda i: (-self.word_totals[i], self.words[i]))
        columns = np.array(order[:n], np.int64)
        self.words = [self.words[i] for i in columns]
        self.near, self.word_totals = self.near[:, columns], self.word_totals[columns]

    def vectors(self) -> NDArray[np.float64]:
        """Return the association of every name with the most frequent words."""
        self.keep_words(CONTEXT_WORDS)
        return ppmi(self.near_totals[:, None], self.word_totals, self.near.toarray(), self.total)


def count_block(block: TextBlock, path: Path, names: NameIndex, width: int) -> Counts:
    """Count the words near each name in a block of text."""
    found = tokenize(block.text(path), names, blank_lines=block.blank_lines)
    vocabulary, tokens, entries, texts = found
    where, shape = np.flatnonzero(entries >= 0), (len(names.entries), len(vocabulary))
    near = csr_array(shape, dtype=np.int64)
    # A word at distance d shares width - d windows with the name.
    for distance in range(1, width):
        for step in (-distance, distance):
            here = where[(where + step >= 0) & (where + step < tokens.size)]
            # A name near itself says nothing.
            is_new = tokens[here] != tokens[here + step]
            here = here[is_new & (texts[here] == texts[here + step])]
            weight = np.full(here.size, width - distance, np.int64)
            near = near + csr_array((weight, (entries[here], tokens[here + step])), shape=shape)
    totals = np.bincount(tokens, minlength=len(vocabulary))
    kept = [i for i in np.flatnonzero(totals).tolist() if len(vocabulary[i]) <= MAX_WORD_LETTERS]
    return Counts(
        tokens.size,
        np.bincount(entries[where], minlength=shape[0]),
        np.asarray(near.sum(axis=1), np.int64),
        [vocabulary[i] for i in kept],
        totals[kept],
        near[:, kept],
    )


# ---- Association measures, and hit counts

HIT_RULE = Rule("counts must be finite numbers, at least 0")


def dice(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike) -> Floats:
    """Return Dice's coefficient 2 n_ab / (n_a + n_b), in [0, 1].

    It does not need N, so it suits search engines, whose size is unknown.

    Parameters
    ----------
    n_a, n_b, n_ab : array of int
        The numbers of units, such as pages, that contain the first name, the second, and both.

    Examples
    --------
    >>> from rankshot.sources import dice
    >>> dice([10, 10, 0], 30, [8, 0, 0])
    array([0.4, 0. , nan])
    """
    a, b, ab = _broadcast_counts(n_a, n_b, n_ab)
    share = np.full(a.shape, np.nan)
    np.divide(2 * ab, a + b, out=share, where=(a > 0) & (b > 0))
    return share


def pmi(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike, N: ArrayLike) -> Floats:
    """Return pointwise mutual information, log(n_ab N / (n_a n_b)).

    For a pair that never occurs together the formula gives minus infinity, which cannot be
    averaged or stored in a table. Such a pair gets -log(2 N) instead. The lowest value of a pair
    that does occur together is -log N (both are in every unit, together in one), so -log(2 N) is
    below it, and the same for all pairs that never occur together.

    Parameters
    ----------
    n_a, n_b, n_ab, N : array of int
        The numbers of units that contain the first name, the second, and both; and of all units.

    Examples
    --------
    >>> from rankshot.sources import pmi
    >>> pmi(10, [20, 20, 0], [2, 0, 0], 100).round(3)
    array([ 0.   , -5.298,    nan])
    """
    a, b, ab, n = _broadcast_counts(n_a, n_b, n_ab, N)
    occurs = (a > 0) & (b > 0)
    met = occurs & (ab > 0)
    # Sums of logarithms, because products of counts of web pages can overflow.
    together = _log(ab, met) + _log(n, met) - _log(a, met) - _log(b, met)
    return np.where(occurs, np.where(met, together, -_log(2 * n, occurs)), np.nan)


def ppmi(n_a: ArrayLike, n_b: ArrayLike, n_ab: ArrayLike, N: ArrayLike) -> Floats:
    """Return positive pointwise mutual information, max(0, `pmi`).

    It takes far more text to show that two names occur together less often than by chance than to
    show that they do so more often. So negative values, which are mostly noise, are set to zero.

    Parameters
    ----------
    n_a, n_b, n_ab, N : array of int
        As for `pmi`.

    Examples
    --------
    >>> from rankshot.sources import ppmi
    >>> ppmi(10, [20, 20, 20], [4, 1, 0], 100).round(3)
    array([0.693, 0.   , 0.   ])
    """
    return np.maximum(pmi(n_a, n_b, n_ab, N), 0)


def _broadcast_counts(*counts: ArrayLike) -> tuple[Floats, ...]:
    return np.broadcast_arrays(*(np.asarray(count, dtype=np.float64) for count in counts))


def _log(values: Floats, where: NDArray[np.bool_]) -> Floats:
    return np.log(values, out=np.zeros(values.shape), where=where)


def read_hit_counts(path: str | Path) -> Similarity:
    r"""Read hit counts from CSV or Parquet as a similarity table, by Dice's coefficient.

    Impossible counts, such as more hits together than alone, raise an error that names the line.

    Parameters
    ----------
    path : str or Path
        A table with the columns ``target``, ``item``, ``n_target``, ``n_item`` and ``n_both``, in
        any order; other columns are ignored. Every row holds one pair. A pair that is not in the
        file is unknown. The file's name becomes the source.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot.sources import read_hit_counts
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flickr.csv"
    ...     lines = ["target,item,n_target,n_item,n_both",
    ...              "cat,tiger,1000,400,140", "cat,bus,1000,3000,20"]
    ...     _ = path.write_text("\n".join(lines))
    ...     read_hit_counts(path).to_rankings()
    Rankings: 1 ranking of 2 items, 1 target, 1 source
      cat: tiger > bus
    """
    path = Path(path)
    columns = ["target", "item"], ["n_target", "n_item", "n_both"]
    table = read_table(path, *columns, rule=HIT_RULE, strip=True)
    alone: tuple[dict[str, float], dict[str, float]] = {}, {}
    both: dict[tuple[str, str], float] = {}
    pairs = zip(table.require_text(0), table.require_text(1), strict=True)
    for row, (pair, counts) in enumerate(zip(pairs, table.numbers.tolist(), strict=True)):
        if pair in both:
            problem = f"the pair {pair[0]!r} and {pair[1]!r} occurs twice"
        else:
            problem = _find_problem(pair, counts, alone)
        if problem:
            raise RankshotError(f"{table.where(row)}: {problem}")
        both[pair] = counts[2]
    targets, items = alone
    refuse_huge_table(path, len(targets), len(items))
    row_of, column_of = ({name: i for i, name in enumerate(names)} for names in alone)
    n_ab = np.full((len(targets), len(items)), np.nan)
    for (target, item), together in both.items():
        n_ab[row_of[target], column_of[item]] = together
    n_a, n_b = np.array([*targets.values()])[:, None], np.array([*items.values()])
    return Similarity(dice(n_a, n_b, n_ab), targets, items, path.stem)


def _find_problem(
    pair: tuple[str, str], counts: list[float], alone: Sequence[dict[str, float]]
) -> str:
    """Return what is wrong with the counts of a pair; add those of its names to ``alone``."""
    *single, together = counts
    if min(counts) < 0:
        return f"{min(counts):.16g} is negative; {HIT_RULE.text}"
    for name, hits, known in zip(pair, single, alone, strict=True):
        before = known.setdefault(name, hits)
        if together > hits:
            return f"{hits:.16g} hits for {name!r}, but {together:.16g} with the other name"
        if before != hits:
            return f"{hits:.16g} hits for {name!r}, but {before:.16g} in an earlier row"
    return ""

"""Similarities from texts and search engines: `Corpus`, and tables of hit counts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rankshot.core.columns import NumberCheck, open_table
from rankshot.core.errors import InputError
from rankshot.core.files import read_lines
from rankshot.core.validation import as_names, require_whole_number
from rankshot.sources.labels import split_synonyms
from rankshot.sources.similarity import Similarity
from rankshot.sources.spelling import WORD
from rankshot.sources.vectors import cosine

CONTEXT_WORDS = 5_000
"""The length of a vector."""
BLOCK_LINES = 1_000
SIBILANTS = ("s", "x", "z", "ch", "sh")
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Corpus:
    """A text file as a source of similarities: names with similar contexts are similar.

    The context vector of a name holds its positive pointwise mutual information with each of the
    5,000 most frequent words, max(0, log(n_ab N / (n_a n_b))), where a word at distance d has the
    weight ``window`` - d; the similarity is the cosine of two vectors.

    Words are sequences of letters and digits, in lower case; punctuation only separates them. A
    name is found as it is written, with spaces for underscores, several words as a phrase, and
    also with the regular plural of its last word (-s, -es, -ies). Where names overlap, the
    leftmost one is used, then the longest, and it is treated as one word: a "pickup truck" is not
    also a "truck" if both names are given. If a name lists synonyms separated by commas, the first
    one is used. The name of a WordNet sense, ``crane.n.04``, is read as its word, and an id,
    ``n02012849``, as the first word of its synset.

    Parameters
    ----------
    path : str or Path
        UTF-8 text with one paragraph or article per line, plain or compressed (.gz, .xz).
    window : int
        The number of words in a window. Windows do not cross line ends.
    min_count : int
        The minimum number of occurrences of a name; a rarer one has too little evidence to be
        compared.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot.sources import Corpus
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "zoo.txt"
    ...     _ = path.write_text("A cat purrs. A tiger purrs. A bus drives. " * 9 + "A tram.")
    ...     table = Corpus(path, window=3).similarity(["cat"], ["tiger", "bus", "tram", "whale"])
    >>> table.to_rankings()
    Rankings: 1 ranking of 4 items, 1 target, 1 source
      cat: tiger > bus (subset)
    >>> table.notes[1:]
    ('in the text fewer than 5 times: tram (1)',)
    """

    path: str | Path
    window: int = 10
    min_count: int = 5

    def __post_init__(self) -> None:
        require_whole_number("window", self.window, 1000, least=2)
        require_whole_number("min_count", self.min_count, 1000)

    def similarity(self, targets: Iterable[object], items: Iterable[object]) -> Similarity:
        """Read the file and compare all ``targets`` with all ``items``.

        The similarities of a name that occurs fewer than ``min_count`` times are NaN. The table's
        ``notes`` list those that occur at all.
        """
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        every, n = (*target_names, *item_names), len(target_names)
        names, entry = index_names([split_synonyms(name)[0] for name in every])
        vectors, occurrences, total = self._count(names)
        count, vectors = occurrences[entry], vectors[entry]
        is_known = count >= self.min_count
        # A known name without any known word near it has the cosine 0 with all others.
        values = np.nan_to_num(cosine(vectors[:n], vectors[n:]))
        values[~np.outer(is_known[:n], is_known[n:])] = np.nan
        notes = [f"{total:,} words of {Path(self.path).name}"]
        times = dict(zip(every, count.tolist(), strict=True))
        if rare := [f"{name} ({n})" for name, n in times.items() if 0 < n < self.min_count]:
            notes.append(f"in the text fewer than {self.min_count} times: {', '.join(rare)}")
        return Similarity(values, target_names, item_names, "corpus", notes)

    def _count(self, names: NameIndex) -> tuple[Floats, Ints, int]:
        """Return the vectors of all names, their occurrences, and the number of words."""
        vocabulary = {entry: i for i, entry in enumerate(names.entries)}
        n_names = len(vocabulary)
        near = csr_array((n_names, n_names), dtype=np.int64)
        totals = np.zeros(n_names, np.int64)
        for lines in read_blocks(Path(self.path)):
            tokens, numbers = tokenize(lines, names, vocabulary)
            n_words = len(vocabulary)
            near.resize((n_names, n_words))
            near = near + _count_near(tokens, numbers, (n_names, n_words), self.window)
            totals = np.pad(totals, (0, n_words - totals.size))
            totals += np.bincount(tokens, minlength=n_words)
        words, whole = list(vocabulary), int(totals.sum())
        order = sorted(np.flatnonzero(totals).tolist(), key=lambda i: (-totals[i], words[i]))
        columns = np.array(order[:CONTEXT_WORDS], np.int64)
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = near.sum(axis=1)[:, None] * (totals[columns] / whole)
            vectors = np.maximum(np.log(near[:, columns].toarray() / expected), 0)
        return vectors, totals[:n_names], whole


def read_blocks(path: Path) -> Iterator[list[str]]:
    """Yield a thousand lines of a text at a time."""
    lines = (line for _, line in read_lines(path))
    while block := list(islice(lines, BLOCK_LINES)):
        yield block


# ---- Names


class NameIndex(NamedTuple):
    """The names to look for in a text: every form of a name leads to the number of its entry.

    Names that differ only in case or in separators (``pine_tree``, ``Pine tree``) are one entry.
    ``words`` finds the words of a text, of which a name of several words is one.
    """

    entries: tuple[str, ...]
    forms: dict[str, int]
    words: re.Pattern[str]


def index_names(names: Iterable[str]) -> tuple[NameIndex, Ints]:
    """Return the index of some names, and the number of each one's entry.

    A plural that is itself a name means that name: if "glass" and "glasses" are both given, the
    word "glasses" counts as the second.
    """
    texts = [join_words(name) for name in names]
    # Sorted, so that nothing depends on the order in which names are given.
    entries = sorted(set(texts))
    forms = {text: i for i, text in enumerate(entries)}
    for i, text in enumerate(entries):
        start, space, last = text.rpartition(" ")
        for plural in plurals(last) if last else ():
            forms.setdefault(f"{start}{space}{plural}", i)
    # The longest comes first.
    phrases = sorted((form for form in forms if " " in form), key=len, reverse=True)
    words = re.compile("|".join([*(rf"{phrase}(?!\S)" for phrase in phrases), r"\S+"]))
    return NameIndex(tuple(entries), forms, words), np.array([forms[text] for text in texts])


def join_words(text: str) -> str:
    """Return the words of a text in lower case, with single spaces between them."""
    return " ".join(WORD.findall(text.lower()))


def plurals(word: str) -> tuple[str, ...]:
    """Return the regular plurals of a word; irregular ones (mice, men) are not known."""
    if word.endswith(SIBILANTS):
        return (word + "es",)
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return (word[:-1] + "ies",)
    return (word + "s", word + "es") if word.endswith("o") else (word + "s",)


def tokenize(
    lines: Sequence[str], names: NameIndex, vocabulary: dict[str, int]
) -> tuple[Ints, Ints]:
    """Split lines into words, and find the names: the leftmost one first, then the longest.

    The words are returned as numbers in the vocabulary, with the numbers of their lines. A name is
    one word, with the number of its entry. New words are added to the vocabulary.
    """
    tokens: list[int] = []
    numbers: list[int] = []
    for number, line in enumerate(lines):
        for word in names.words.findall(join_words(line)):
            token = names.forms.get(word)
            tokens.append(vocabulary.setdefault(word, len(vocabulary)) if token is None else token)
            numbers.append(number)
    return np.array(tokens, np.int64), np.array(numbers, np.int64)


def _count_near(tokens: Ints, lines: Ints, shape: tuple[int, int], width: int) -> csr_array:
    """Return the weights of the words near each name: a word at distance d has width - d."""
    where = np.flatnonzero(tokens < shape[0])
    near = csr_array(shape, dtype=np.int64)
    for distance in range(1, width):
        for step in (-distance, distance):
            here = where[(where + step >= 0) & (where + step < tokens.size)]
            # A name near itself says nothing.
            is_other = tokens[here] != tokens[here + step]
            here = here[is_other & (lines[here] == lines[here + step])]
            weight = np.full(here.size, width - distance, np.int64)
            near = near + csr_array((weight, (tokens[here], tokens[here + step])), shape=shape)
    return near


# ---- Hit counts of a search engine

COUNTS = ("n_target", "n_item", "n_both")
HIT_RULE = NumberCheck("counts must be finite numbers, at least 0")


def read_hit_counts(path: str | Path) -> Similarity:
    r"""Read hit counts from CSV or Parquet as a similarity table, by Dice's coefficient.

    It is 2 n_both / (n_target + n_item), which does not need the size of the search engine. A name
    without hits is unknown.

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
    table = open_table(path, {""})
    pairs = [*zip(table.require_texts("target"), table.require_texts("item"), strict=True)]
    counts = table.read_numbers(COUNTS, HIT_RULE)
    alone, together = counts[:, :2], counts[:, 2]
    is_possible = (together >= 0) & (together <= alone.min(axis=1))
    if not is_possible.all():
        row = int(np.argmin(is_possible))
        rule = "must be 0 or more, and together at most as many as alone"
        raise InputError("counts", counts[row].tolist(), rule, table.where(row))
    row_of = {pair: row for row, pair in reversed([*enumerate(pairs)])}
    for row, pair in enumerate(pairs):
        if row_of[pair] < row:
            raise InputError("pair", pair, "occurs twice", table.where(row))
    targets, items = (tuple(dict.fromkeys(names)) for names in zip(*pairs, strict=True))
    values = np.full((len(targets), len(items)), np.nan)
    for (target, item), row in row_of.items():
        if alone[row].all():
            share = 2 * together[row] / alone[row].sum()
            values[targets.index(target), items.index(item)] = share
    return Similarity(values, targets, items, Path(path).stem)

"""Finding names in a block of text, and counting what they occur with.

Everything here is a function of one block, so that blocks can be counted in any number of
processes; `rankshot.sources.corpus` reads the blocks and adds up their counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

WORD = re.compile(r"[^\W_]+")
LINES = re.compile(r"[^\W_]+|\n")
PARAGRAPHS = re.compile(r"[^\W_]+|\n(?=[^\S\n]*\n)")
SIBILANTS = ("s", "x", "z", "ch", "sh")
MAX_WORD = 64
"""Longer words are ignored as contexts: a hostile file could fill the memory with them."""
Ints = NDArray[np.int64]


# ---- Names


@dataclass(frozen=True)
class NameIndex:
    """The names to look for in a text: every spelling of a name leads to one entry.

    Names that differ only in case or in separators (``pine_tree``, ``Pine tree``) share an entry.

    Attributes
    ----------
    entries : tuple of str
        The distinct names: lower case, one space between words.
    words : dict
        From a single word to the number of its entry.
    phrases : dict
        From several words to the number of their entry.
    lengths : dict
        From a word to the lengths of the phrases that begin with it, longest first.
    """

    entries: tuple[str, ...]
    words: dict[str, int]
    phrases: dict[tuple[str, ...], int]
    lengths: dict[str, tuple[int, ...]]

    @classmethod
    def build(cls, names: Iterable[str]) -> tuple[NameIndex, Ints]:
        """Return the index of some names, and the number of each name's entry.

        A plural that is itself a name means that name: if "glass" and "glasses" are both given,
        the word "glasses" counts as the second.

        Examples
        --------
        >>> names, entry = NameIndex.build(["Pine_tree", "bus", "pine tree"])
        >>> names.entries, entry
        (('bus', 'pine tree'), array([1, 0, 1]))
        >>> sorted(names.words), sorted(names.phrases)
        (['bus', 'buses'], [('pine', 'tree'), ('pine', 'trees')])
        """
        split_names = [tuple(WORD.findall(name.lower())) for name in names]
        # Sorted, so that nothing depends on the order in which names are given.
        entries = sorted(set(split_names))
        forms = {words: i for i, words in enumerate(entries)}
        for i, words in enumerate(entries):
            for last in plurals(words[-1]) if words else ():
                forms.setdefault((*words[:-1], last), i)
        phrases = {words: i for words, i in forms.items() if len(words) > 1}
        lengths: dict[str, set[int]] = {}
        for words in phrases:
            lengths.setdefault(words[0], set()).add(len(words))
        index = cls(
            tuple(map(" ".join, entries)),
            {words[0]: i for words, i in forms.items() if len(words) == 1},
            phrases,
            {word: tuple(sorted(sizes, reverse=True)) for word, sizes in lengths.items()},
        )
        return index, np.array([forms[words] for words in split_names], np.int64)


def plurals(word: str) -> tuple[str, ...]:
    """Return the regular plurals of a word; irregular ones (mice, men) are not known.

    Examples
    --------
    >>> plurals("truck"), plurals("bus"), plurals("poppy"), plurals("mango")
    (('trucks',), ('buses',), ('poppies',), ('mangos', 'mangoes'))
    """
    if word.endswith(SIBILANTS):
        return (word + "es",)
    if word.endswith("y") and word[-2:-1] not in tuple("aeiou"):
        return (word[:-1] + "ies",)
    return (word + "s", word + "es") if word.endswith("o") else (word + "s",)


class TokenizedText(NamedTuple):
    """A block of text as a sequence of words, in which each name that was found is one word.

    ``words`` are indices into the ``vocabulary``; ``entries`` are the numbers of the names, -1
    for other words; ``texts`` are numbers that increase from one text of the block (line or
    paragraph) to the next.
    """

    vocabulary: list[str]
    words: Ints
    entries: Ints
    texts: Ints


def tokenize(text: str, names: NameIndex, *, blank_lines: bool) -> TokenizedText:
    """Split text into words and find the names: the leftmost one first, then the longest.

    Examples
    --------
    >>> names, _ = NameIndex.build(["truck", "pickup_truck"])
    >>> found = tokenize("Pickup trucks, a truck.", names, blank_lines=False)
    >>> [names.entries[i] if i >= 0 else None for i in found.entries]
    ['pickup truck', None, 'truck']
    """
    run = (PARAGRAPHS if blank_lines else LINES).findall(text.lower())
    code = dict(zip(dict.fromkeys(run), count(), strict=False))
    words = np.fromiter(map(code.__getitem__, run), np.int64, len(run))
    entries = np.array([names.words.get(word, -1) for word in code], np.int64)[words]
    begins = np.array([word in names.lengths for word in code], bool)[words]
    ends_text = words == code.get("\n", -1)
    keep = ~ends_text
    end = 0
    for start in np.flatnonzero(begins).tolist():
        if start < end:
            continue
        for size in names.lengths[run[start]]:
            entry = names.phrases.get(tuple(run[start : start + size]))
            if entry is not None:
                end = start + size
                entries[start] = entry
                keep[start + 1 : end] = False
                break
    return TokenizedText(list(code), words[keep], entries[keep], np.cumsum(ends_text)[keep])


# ---- Counting a block


class ContextCounts(NamedTuple):
    """How often words occur, out of ``total``, and near each name (names x words)."""

    total: int
    words: list[str]
    word_totals: Ints
    near: Any


class BlockCounts(NamedTuple):
    """The counts of a block.

    ``units`` is the number of units; ``with_name`` counts those that contain each name, and
    ``with_pair`` those that contain both names of a pair. ``occurrences`` and ``meetings`` are
    the evidence behind them: where windows overlap, one meeting of two names is in several units.
    ``near_totals`` is the total weight of the words near each name.
    """

    units: int
    with_name: Ints
    occurrences: Ints
    with_pair: Any
    meetings: Any
    near_totals: Ints
    contexts: ContextCounts | None


@dataclass(frozen=True)
class CountSettings:
    """What to count: the names, which of them are targets and which items, and in which units.

    ``window`` is None if whole texts are the units.
    """

    names: NameIndex
    is_target: NDArray[np.bool_]
    is_item: NDArray[np.bool_]
    window: int | None
    contexts: bool


def count_block(text: str, settings: CountSettings, *, blank_lines: bool) -> BlockCounts:
    """Count a block of text."""
    found = tokenize(text, settings.names, blank_lines=blank_lines)
    # A name has one token of its own, in whatever spelling it was found.
    plain = len(found.vocabulary)
    tokens = np.where(found.entries >= 0, plain + found.entries, found.words)
    vocabulary = [*found.vocabulary, *settings.names.entries]
    _, texts = np.unique(found.texts, return_inverse=True)
    if settings.window is None:
        return _count_texts(tokens, texts, vocabulary, settings)
    return _count_windows(found.entries, tokens, texts, vocabulary, settings)


def _count_texts(
    tokens: Ints, texts: Ints, vocabulary: list[str], settings: CountSettings
) -> BlockCounts:
    n_texts, M, V = int(texts.max(initial=-1)) + 1, len(settings.names.entries), len(vocabulary)
    text, token = np.divmod(np.unique(texts * V + tokens), V)
    holds = csr_array((np.ones(text.size, np.int64), (text, token)), shape=(n_texts, V))
    names = holds[:, V - M :]
    with_name = np.asarray(names.sum(axis=0), np.int64)
    targets = _zero_other_columns(names, settings.is_target)
    items = _zero_other_columns(names, settings.is_item)
    with_pair = (targets.T @ items).tocsr()
    contexts = None
    if settings.contexts:
        near = _drop_own_name((names.T @ holds).tocoo(), V - M)
        contexts = _make_contexts(n_texts, vocabulary, np.bincount(token, minlength=V), near)
    return BlockCounts(n_texts, with_name, with_name, with_pair, with_pair, with_name, contexts)


def _zero_other_columns(names: Any, kept: NDArray[np.bool_]) -> Any:
    return (names * kept.astype(np.int64)[None, :]).tocsr()


def _count_windows(
    entries: Ints, tokens: Ints, texts: Ints, vocabulary: list[str], settings: CountSettings
) -> BlockCounts:
    width, M = settings.window or 0, len(settings.names.entries)
    n_texts = int(texts.max(initial=-1)) + 1
    units = tokens.size + n_texts * (width - 1)
    where = np.flatnonzero(entries >= 0)
    name = entries[where]
    # Texts are shifted apart, so that no window reaches from one text into the next.
    place = where + texts[where] * width
    first = _first_windows(name, place, width)
    with_name = np.bincount(name, place - first + 1, minlength=M).astype(np.int64)
    occurrences = np.bincount(name, minlength=M)
    with_pair = meetings = csr_array((M, M), dtype=np.int64)
    for step in range(1, min(width, where.size)):
        near = place[step:] - place[:-step] < width
        if not near.any():
            break
        shared = place[:-step] - np.maximum(first[:-step], first[step:]) + 1
        near &= shared > 0
        left, right, shared = name[:-step][near], name[step:][near], shared[near]
        for a, b in ((left, right), (right, left)):
            ranked = settings.is_target[a] & settings.is_item[b]
            cells = a[ranked], b[ranked]
            with_pair = with_pair + csr_array((shared[ranked], cells), shape=(M, M))
            meetings = meetings + csr_array((np.ones_like(cells[0]), cells), shape=(M, M))
    contexts, near_totals = None, with_name
    if settings.contexts:
        near_words = _count_words_near(where, name, tokens, texts, width, (M, len(vocabulary)))
        near_totals = np.asarray(near_words.sum(axis=1), np.int64)
        totals = np.bincount(tokens, minlength=len(vocabulary))
        contexts = _make_contexts(tokens.size, vocabulary, totals, near_words)
    return BlockCounts(units, with_name, occurrences, with_pair, meetings, near_totals, contexts)


def _first_windows(name: Ints, place: Ints, width: int) -> Ints:
    """Return, for each occurrence of a name, the first window that no earlier one is in.

    Windows are numbered by the place where they begin. An occurrence at place p is in the windows
    from p - width + 1 to p. Windows that already contain an earlier occurrence of the same name
    are left out, so that each window of a name is counted once. Two names share the windows in
    which their ranges overlap.
    """
    order = np.argsort(name, kind="stable")
    first = place - width + 1
    again = np.flatnonzero(name[order][1:] == name[order][:-1]) + 1
    first[order[again]] = np.maximum(first[order[again]], place[order[again - 1]] + 1)
    return first


def _count_words_near(
    where: Ints, name: Ints, tokens: Ints, texts: Ints, width: int, shape: tuple[int, int]
) -> Any:
    """Count words near names; a word at distance d shares width - d windows with the name."""
    near = csr_array(shape, dtype=np.int64)
    for distance in range(1, width):
        for step in (-distance, distance):
            other = where + step
            inside = np.flatnonzero((other >= 0) & (other < tokens.size))
            inside = inside[texts[other[inside]] == texts[where[inside]]]
            weight = np.full(inside.size, width - distance, np.int64)
            cells = name[inside], tokens[other[inside]]
            near = near + csr_array((weight, cells), shape=shape)
    return _drop_own_name(near.tocoo(), shape[1] - shape[0])


def _drop_own_name(near: Any, plain: int) -> Any:
    """Drop the count of a name with itself, which every name has."""
    other = near.col != near.row + plain
    cells = near.row[other], near.col[other]
    return csr_array((near.data[other], cells), shape=near.shape)


def _make_contexts(total: int, vocabulary: list[str], totals: Ints, near: Any) -> ContextCounts:
    kept = [i for i in np.flatnonzero(totals).tolist() if len(vocabulary[i]) <= MAX_WORD]
    return ContextCounts(total, [vocabulary[i] for i in kept], totals[kept], near[:, kept])

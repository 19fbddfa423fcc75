"""Finding names in a block of text and counting what stands near them.

Everything here is a plain function of one block, so that blocks can be counted anywhere and in
any number of processes; `rankshot.semantics.corpus` reads the blocks and adds them up.
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
LONGEST_WORD = 64
"""Longer ones are no words, and a hostile file could fill the memory with them."""
Ints = NDArray[np.int64]


# -------------------------------------------------------------------- names


@dataclass(frozen=True)
class NameIndex:
    """What to look for: every way to write every name, each of which means one entry.

    Names that are written alike (``pine_tree``, ``Pine tree``) share an entry.

    Attributes
    ----------
    entries : tuple of str
        The distinct names: lower case, one space between words.
    words : dict
        The entry that a single word means.
    phrases : dict
        The entry that several words mean.
    lengths : dict
        How long the phrases are that begin with a word, longest first.
    """

    entries: tuple[str, ...]
    words: dict[str, int]
    phrases: dict[tuple[str, ...], int]
    lengths: dict[str, tuple[int, ...]]

    @classmethod
    def build(cls, names: Iterable[str]) -> tuple[NameIndex, Ints]:
        """Return the names to look for, and the entry of each name given.

        A plural that is itself a name is that name and no other: with "glass" and "glasses"
        listed, "glasses" counts as the second.

        Examples
        --------
        >>> names, entry = NameIndex.build(["Pine_tree", "bus", "pine tree"])
        >>> names.entries, entry
        (('bus', 'pine tree'), array([1, 0, 1]))
        >>> sorted(names.words), sorted(names.phrases)
        (['bus', 'buses'], [('pine', 'tree'), ('pine', 'trees')])
        """
        written = [tuple(WORD.findall(name.lower())) for name in names]
        # Sorted, so that nothing depends on the order in which names are listed.
        entries = sorted(set(written))
        forms = {words: i for i, words in enumerate(entries)}
        for i, words in enumerate(entries):
            for last in plurals(words[-1]) if words else ():
                forms.setdefault((*words[:-1], last), i)
        phrases = {words: i for words, i in forms.items() if len(words) > 1}
        lengths: dict[str, set[int]] = {}
        for words in phrases:
            lengths.setdefault(words[0], set()).add(len(words))
        found = cls(
            tuple(map(" ".join, entries)),
            {words[0]: i for words, i in forms.items() if len(words) == 1},
            phrases,
            {word: tuple(sorted(sizes, reverse=True)) for word, sizes in lengths.items()},
        )
        return found, np.array([forms[words] for words in written], np.int64)


def plurals(word: str) -> tuple[str, ...]:
    """Return the regular plurals of a word; mice and men are beyond it.

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
    """A block of text as one run of words, each name that was found in it as one word.

    ``words`` number the ``vocabulary``; ``entries`` say which name a word is, -1 for none;
    ``texts`` rise from one text of the block (line or paragraph) to the next.
    """

    vocabulary: list[str]
    words: Ints
    entries: Ints
    texts: Ints


def tokenize(text: str, names: NameIndex, *, blank_lines: bool) -> TokenizedText:
    """Split text into words and find the names: the leftmost first, of these the longest.

    Examples
    --------
    >>> names, _ = NameIndex.build(["truck", "pickup_truck"])
    >>> found = join_names("Pickup trucks, a truck.", names, blank_lines=False)
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


# -------------------------------------------------------------------- counting a block


class ContextCounts(NamedTuple):
    """How often words occur, out of the ``whole``, and near each name (names x words)."""

    whole: int
    words: list[str]
    totals: Ints
    near: Any


class BlockCounts(NamedTuple):
    """What is counted in a block.

    ``units`` is their number; ``holding`` says how many of them hold each name, ``together`` how
    many hold both of a pair. ``seen`` and ``met`` are the evidence behind these: where windows
    overlap, one meeting of two names is in several units. ``spread`` is the total of what is
    near each name, contexts or not.
    """

    units: int
    holding: Ints
    seen: Ints
    together: Any
    met: Any
    spread: Ints
    contexts: ContextCounts | None


@dataclass(frozen=True)
class CountSettings:
    """What to count: the names, which of them are targets and items, and how.

    ``window`` is None where whole texts are the units.
    """

    names: NameIndex
    is_target: NDArray[np.bool_]
    is_item: NDArray[np.bool_]
    window: int | None
    contexts: bool


def count_block(text: str, wanted: CountSettings, *, blank_lines: bool) -> BlockCounts:
    """Count a block of text."""
    joined = tokenize(text, wanted.names, blank_lines=blank_lines)
    # A name has one word of its own, whatever the form in which it was found.
    plain = len(joined.vocabulary)
    tokens = np.where(joined.entries >= 0, plain + joined.entries, joined.words)
    vocabulary = [*joined.vocabulary, *wanted.names.entries]
    _, texts = np.unique(joined.texts, return_inverse=True)
    if wanted.window is None:
        return _count_texts(tokens, texts, vocabulary, wanted)
    return _count_windows(joined.entries, tokens, texts, vocabulary, wanted)


def _count_texts(
    tokens: Ints, texts: Ints, vocabulary: list[str], wanted: CountSettings
) -> BlockCounts:
    n_texts, M, V = int(texts.max(initial=-1)) + 1, len(wanted.names.entries), len(vocabulary)
    text, token = np.divmod(np.unique(texts * V + tokens), V)
    holds = csr_array((np.ones(text.size, np.int64), (text, token)), shape=(n_texts, V))
    names = holds[:, V - M :]
    holding = np.asarray(names.sum(axis=0), np.int64)
    targets, items = (
        _zero_other_columns(names, wanted.is_target),
        _zero_other_columns(names, wanted.is_item),
    )
    together = (targets.T @ items).tocsr()
    contexts = None
    if wanted.contexts:
        near = _drop_own_name((names.T @ holds).tocoo(), V - M)
        contexts = _keep_frequent_contexts(
            n_texts, vocabulary, np.bincount(token, minlength=V), near
        )
    return BlockCounts(n_texts, holding, holding, together, together, holding, contexts)


def _zero_other_columns(names: Any, wanted: NDArray[np.bool_]) -> Any:
    return (names * wanted.astype(np.int64)[None, :]).tocsr()


def _count_windows(
    entries: Ints, tokens: Ints, texts: Ints, vocabulary: list[str], wanted: CountSettings
) -> BlockCounts:
    width, M = wanted.window or 0, len(wanted.names.entries)
    n_texts = int(texts.max(initial=-1)) + 1
    units = tokens.size + n_texts * (width - 1)
    where = np.flatnonzero(entries >= 0)
    name = entries[where]
    # Texts are moved apart, so that no window reaches from one into another.
    place = where + texts[where] * width
    first = _first_windows(name, place, width)
    holding = np.bincount(name, place - first + 1, minlength=M).astype(np.int64)
    seen = np.bincount(name, minlength=M)
    together = met = csr_array((M, M), dtype=np.int64)
    for step in range(1, min(width, where.size)):
        near = place[step:] - place[:-step] < width
        if not near.any():
            break
        shared = place[:-step] - np.maximum(first[:-step], first[step:]) + 1
        near &= shared > 0
        left, right, shared = name[:-step][near], name[step:][near], shared[near]
        for a, b in ((left, right), (right, left)):
            ranked = wanted.is_target[a] & wanted.is_item[b]
            cells = a[ranked], b[ranked]
            together = together + csr_array((shared[ranked], cells), shape=(M, M))
            met = met + csr_array((np.ones_like(cells[0]), cells), shape=(M, M))
    contexts, spread = None, holding
    if wanted.contexts:
        near_words = _count_words_near(where, name, tokens, texts, width, (M, len(vocabulary)))
        spread = np.asarray(near_words.sum(axis=1), np.int64)
        totals = np.bincount(tokens, minlength=len(vocabulary))
        contexts = _keep_frequent_contexts(tokens.size, vocabulary, totals, near_words)
    return BlockCounts(units, holding, seen, together, met, spread, contexts)


def _first_windows(name: Ints, place: Ints, width: int) -> Ints:
    """Return the first of the windows in which an occurrence is the first of its name.

    Windows are numbered by the place where they begin. An occurrence at p is in those from
    p - width + 1 to p; those that an earlier one of the same name is in as well are taken from
    it, so the windows of a name are counted once each, and pairs by where these ranges overlap.
    """
    order = np.argsort(name, kind="stable")
    first = place - width + 1
    again = np.flatnonzero(name[order][1:] == name[order][:-1]) + 1
    first[order[again]] = np.maximum(first[order[again]], place[order[again - 1]] + 1)
    return first


def _count_words_near(
    where: Ints, name: Ints, tokens: Ints, texts: Ints, width: int, shape: tuple[int, int]
) -> Any:
    """Count words near names; one at distance d is in width - d of the same windows."""
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
    """Drop what a name has of itself: every one is in its own company."""
    other = near.col != near.row + plain
    cells = near.row[other], near.col[other]
    return csr_array((near.data[other], cells), shape=near.shape)


def _keep_frequent_contexts(
    whole: int, vocabulary: list[str], totals: Ints, near: Any
) -> ContextCounts:
    kept = [i for i in np.flatnonzero(totals).tolist() if len(vocabulary[i]) <= LONGEST_WORD]
    return ContextCounts(whole, [vocabulary[i] for i in kept], totals[kept], near[:, kept])

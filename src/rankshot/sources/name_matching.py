"""The class that a name means: one matcher for labels, answers, dictionaries and tables.

`NameMatcher` knows normalised spellings, plurals, lists of synonyms, WordNet senses and ids, and
corrects misspellings. `parse_label` reads one label: ``tench``, ``tench, Tinca tinca``,
``n01440764`` and ``n01440764 tench`` name one class.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import NamedTuple, TypeVar

from rankshot.sources.spelling import (
    LONGEST_NAME,
    correct_words,
    reduce_letters,
    reduce_name,
    split_words,
)
from rankshot.sources.wordnet_nouns import is_sense, load_nouns

Key = TypeVar("Key")
WITH_ID = re.compile(r"(n\d{8})(?:[\s,:;_-]+(\S.*))?", re.IGNORECASE | re.DOTALL)
"""A WordNet id, alone or with words."""
_ENUMERATION = re.compile(r"(^|\s)(and|or|&)\s")
"""What the last part of "arts, culture and sports" has: such a name is not a list of synonyms."""
_QUALIFIER = re.compile(r"(?<=\S)\s*\([^()]*\)$")
"""What tells two classes of the same word apart, as in crane (bird)."""


class NameMatcher:
    """Finds the class that is meant by a name in another spelling.

    Case, the signs that separate the words of a name, British or American spelling, and the plural
    count only if classes differ by nothing else. A name that fits several classes equally well is
    not decided.

    Parameters
    ----------
    names : sequence of str
        The names of the classes.
    given, synonyms, synsets : sequences, optional
        For each class, the label as it was given, all its words, and its synset if it is known.
    """

    def __init__(
        self,
        names: Sequence[str],
        given: Sequence[str] | None = None,
        synonyms: Sequence[Sequence[str]] | None = None,
        synsets: Sequence[str | None] | None = None,
    ) -> None:
        self.names = tuple(names)
        self._given = given or self.names
        self._synonyms = synonyms or [(name,) for name in self.names]
        self._synsets = synsets or [None] * len(self.names)
        self._by_synset = index_rows([synset] if synset else [] for synset in self._synsets)
        self._exact = [
            index_rows(map(set, zip(self.names, self._given, strict=True))),
            index_rows({words[0], ", ".join(words)} for words in self._synonyms),
        ]

    def match(self, name: str) -> list[str]:
        """Return the class that a name means; none, or several, if that cannot be said."""
        return [self.names[row] for row in self.find_rows(name)]

    def find_rows(self, name: str) -> list[int]:
        """Return the numbers of the classes that a name may mean."""
        for index in self._exact:
            if rows := index.get(name):
                return rows
        label = parse_label(name)
        words = [name, *label.words]
        if label.synset is not None:
            if rows := self._by_synset.get(label.synset):
                return rows
            words += describe_synset(label.synset)[1]
        letters = dict.fromkeys(map(reduce_letters, words))
        for index, forms in (
            (self._by_letters, letters),
            (self._by_other_synonym, letters),
            (self._by_unqualified, letters),
            (self._by_letters, [form for word in words for form in _singulars(word)]),
            (self._by_singular, letters),
        ):
            for form in forms:
                rows = index.get(form, [])
                if label.synset is not None:
                    # A class with another synset is not meant.
                    rows = [row for row in rows if self._synsets[row] is None]
                if rows:
                    return rows
        return []

    def correct(self, name: str) -> list[int]:
        """Return the numbers of the classes from which a name may be misspelt.

        One letter is wrong, missing or too many, or two neighbours are exchanged. A word that
        WordNet knows is replaced only by another spelling of the same noun, such as racoon.
        """
        words = split_words(name)
        if len(name) > LONGEST_NAME or "," in name or is_sense(name):
            return []
        near = correct_words([*map(reduce_letters, words)], self._by_letters, self._is_word)
        rows = {row for text in near for row in self._by_letters[text]}
        if all(map(self._is_word, words)):
            senses = load_nouns().list_senses(name)
            rows = {row for row in rows if senses & load_nouns().list_senses(self.names[row])}
        # The first letter is seldom wrong.
        first = [row for row in rows if self.names[row][:1].casefold() == name[:1].casefold()]
        return sorted(first or rows)

    def _is_word(self, word: str) -> bool:
        return word in self._words or load_nouns().is_noun(word)

    @cached_property
    def _words(self) -> set[str]:
        return {reduce_letters(word) for name in self.names for word in split_words(name)}

    @cached_property
    def _by_letters(self) -> dict[str, list[int]]:
        """The classes by their names, labels and first synonyms."""
        return index_rows(
            set(map(reduce_letters, (name, given, words[0], ",".join(words))))
            for name, given, words in zip(self.names, self._given, self._synonyms, strict=True)
        )

    @cached_property
    def _by_other_synonym(self) -> dict[str, list[int]]:
        return index_rows(set(map(reduce_letters, words[1:])) for words in self._synonyms)

    @cached_property
    def _by_unqualified(self) -> dict[str, list[int]]:
        return index_rows([reduce_letters(_QUALIFIER.sub("", name))] for name in self.names)

    @cached_property
    def _by_singular(self) -> dict[str, list[int]]:
        return index_rows(map(_singulars, self.names))


def index_rows(keys_of_rows: Iterable[Iterable[Key]]) -> dict[Key, list[int]]:
    """Return the rows of each key."""
    found: dict[Key, list[int]] = defaultdict(list)
    for row, keys in enumerate(keys_of_rows):
        for key in keys:
            found[key].append(row)
    return dict(found)


def _singulars(name: str) -> list[str]:
    return list(dict.fromkeys(map(reduce_letters, load_nouns().singulars(name.casefold()))))


# ---- One label


class Label(NamedTuple):
    """A label as given, the synset that it names, and its words.

    A plain name is its only word; so is the name of a sense, such as ``crane.n.05``.
    """

    given: str
    synset: str | None
    words: tuple[str, ...]

    @property
    def is_plain(self) -> bool:
        """Whether the label is a name that stays as it is."""
        is_exact = self.synset is None or is_sense(self.given)
        return is_exact and self.words == (self.given,)

    def describe(self) -> tuple[str, tuple[str, ...]]:
        """Return a readable name, and all words for the class."""
        if self.synset is None:
            return self.words[0], self.words
        own_name, own_words = describe_synset(self.synset)
        if self.is_plain:
            return self.given, own_words
        own = {reduce_name(own_name), reduce_name(own_words[0])}
        is_own = not self.words or reduce_name(self.words[0]) in own
        # "crane (bird)" is a name, but not a word that sources could look up.
        words = [word for word in self.words if word != own_name or word in own_words]
        spelling: dict[str, str] = {}
        for word in (*words, *own_words):
            spelling.setdefault(reduce_name(word), word)
        return own_name if is_own else self.words[0], tuple(spelling.values())


def parse_label(text: str) -> Label:
    """Return what a text names: an id, a sense, synonyms, or a plain name."""
    if found := WITH_ID.fullmatch(text):
        synset = found[1].lower()
        if synset in load_imagenet() or load_nouns().has_id(synset):
            return Label(text, synset, split_label(found[2]) if found[2] else ())
    elif is_sense(text):
        nouns = load_nouns()
        lemma, _, number = text.lower().rpartition(".n.")
        if lemma in nouns and 1 <= int(number) <= len(nouns.senses(lemma)):
            return Label(text, nouns.id(nouns.synset(text)), (text,))
    elif "," in text:
        return Label(text, None, split_label(text))
    return Label(text, _load_qualified().get(text), (text,))


def split_label(text: str) -> tuple[str, ...]:
    """Return the synonyms in a text, with spaces for underscores."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or _ENUMERATION.search(parts[-1]) or re.search(r"\d,\d", text):
        parts = [text]
    return tuple(part.replace("_", " ").strip() or part for part in parts)


def split_synonyms(name: str) -> list[str]:
    """Return the words that a class name consists of, for a source that knows words only."""
    if is_sense(name):
        word, _, _ = name.lower().rpartition(".n.")
        if word:
            return [word]
        nouns = load_nouns()
        return nouns.words(nouns.synset(name)) if nouns.has_id(name) else [name]
    words = [_QUALIFIER.sub("", word.strip()) for word in name.split(",") if word.strip()]
    return words or [name]


def describe_synset(synset: str) -> tuple[str, tuple[str, ...]]:
    """Return the readable name of a synset, and its words."""
    if synset in load_imagenet():
        return load_imagenet()[synset]
    nouns = load_nouns()
    words = [word.replace("_", " ") for word in nouns.words(nouns.synset(synset))]
    return words[0], tuple(words)


@lru_cache(maxsize=1)
def load_imagenet() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return the name and the synonyms of ImageNet's 1,000 classes, by their synsets, in order.

    The name of a class is its first synonym, except where two classes would have the same one.
    """
    path = files("rankshot.sources") / "data" / "imagenet_classes.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {synset: (name, tuple(words.split(", "))) for synset, name, words in rows}


@lru_cache(maxsize=1)
def _load_qualified() -> dict[str, str]:
    """Return the synsets of ImageNet's names that are not words, such as crane (bird)."""
    return {name: synset for synset, (name, _) in load_imagenet().items() if name.endswith(")")}

"""One label of a class: an id, a sense, synonyms or a plain name, and the words in it.

``tench``, ``tench, Tinca tinca``, ``n01440764`` and ``n01440764 tench`` name one class.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from rankshot.sources.spelling import reduce_name
from rankshot.sources.wordnet_nouns import is_sense, load_nouns

WITH_ID = re.compile(r"(n\d{8})(?:[\s,:;_-]+(\S.*))?", re.IGNORECASE | re.DOTALL)
"""A WordNet id, alone or with words."""
_ENUMERATION = re.compile(r"(^|\s)(and|or|&)\s")
"""What the last part of "arts, culture and sports" has: such a name is not a list of synonyms."""
QUALIFIER = re.compile(r"(?<=\S)\s*\([^()]*\)$")
"""What tells two classes of the same word apart, as in crane (bird)."""


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
        if synset in load_imagenet() or load_nouns().find_synset(synset) is not None:
            return Label(text, synset, split_label(found[2]) if found[2] else ())
    elif is_sense(text):
        if (sense := load_nouns().find_synset(text)) is not None:
            return Label(text, load_nouns().id(sense), (text,))
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
        synset = load_nouns().find_synset(name)
        return [name] if synset is None else load_nouns().words(synset)
    return [QUALIFIER.sub("", word) for word in split_label(name)]


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

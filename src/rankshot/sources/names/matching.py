"""Which class a name means: the one matcher of class names.

It knows normalised spellings, plurals, lists of synonyms, WordNet senses and ids, and misspellings.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import files
from typing import NamedTuple

from rankshot.sources.wordnet_nouns import is_sense, load_nouns, suggest_noun

WITH_ID = re.compile(r"(n\d{8})(?:[\s,:;_-]+(\S.*))?", re.IGNORECASE | re.DOTALL)
"""A WordNet id, alone or with words."""
_ENUMERATION = re.compile(r"(^|\s)(and|or|&)\s")
"""What the last part of "arts, culture and sports" has: such a name is not a list of synonyms."""
_SEPARATOR = re.compile(r"[_\s]|(?<=\w)[-+](?=\w)")
"""What may stand between the words of a name. The signs of "C++" and "-1" are not separators."""


def reduce_name(name: str) -> str:
    """Return the letters of a name: without case and separators."""
    return _SEPARATOR.sub("", name.casefold())


class NameMatcher:
    """Finds the class that is meant by a name in another spelling.

    Case, and what separates the words of a name, count only if classes differ by nothing else. A
    name that fits several classes equally well is not decided.
    """

    def __init__(
        self,
        names: Iterable[str],
        given: Sequence[str] | None = None,
        synonyms: Sequence[Sequence[str]] | None = None,
        synsets: Sequence[str | None] = (),
    ) -> None:
        self.names = tuple(names)
        self._has_labels = synonyms is not None
        self._given = self.names if given is None else given
        self._synonyms = synonyms or [(name,) for name in self.names]
        self._synsets = synsets
        self._by_synset = _index([synset] if synset else [] for synset in synsets)
        self._exact = [
            _index([text] for text in self._given),
            _index([name] for name in self.names),
            _index({words[0], ", ".join(words)} for words in self._synonyms),
        ]

    def match(self, name: str) -> list[str]:
        """Return the class that a name means; none, or several, if that cannot be said."""
        return [self.names[row] for row in self.find_rows(name)]

    def match_misspelt(self, name: str) -> list[str]:
        """Return the class that a misspelt name may mean; see `find_misspellings`."""
        noun = suggest_noun(load_nouns(), name)
        return [] if noun is None else self.match(noun)

    def find_rows(self, name: str) -> list[int]:
        """Return the numbers of the classes that a name may mean."""
        for index in self._exact:
            if rows := index.get(name):
                return rows
        return self._find_label(name) if self._has_labels else self._find_plural(name)

    def _find_label(self, name: str) -> list[int]:
        label = parse_label(name)
        words = [name, *label.words]
        if label.synset is not None:
            if rows := self._by_synset.get(label.synset):
                return rows
            words += describe_synset(label.synset)[1]
        letters = dict.fromkeys(map(reduce_name, words))
        for index in (self._by_letters, self._by_other_synonym):
            for text in letters:
                rows = index.get(text, [])
                if label.synset is not None:
                    rows = [row for row in rows if self._synsets[row] is None]
                if rows:
                    return rows
        return []

    def _find_plural(self, name: str) -> list[int]:
        letters = reduce_name(name)
        return (
            self._by_letters.get(letters)
            or [row for form in _singulars(name) for row in self._by_letters.get(form, [])]
            or self._by_singular.get(letters, [])
        )

    @cached_property
    def _by_letters(self) -> dict[str, list[int]]:
        """The classes by their names, labels and first synonyms."""
        return _index(
            set(map(reduce_name, (name, given, words[0], ",".join(words))))
            for name, given, words in zip(self.names, self._given, self._synonyms, strict=True)
        )

    @cached_property
    def _by_other_synonym(self) -> dict[str, list[int]]:
        return _index(set(map(reduce_name, words[1:])) for words in self._synonyms)

    @cached_property
    def _by_singular(self) -> dict[str, list[int]]:
        return _index(map(_singulars, self.names))


def _index(texts_of_rows: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row, texts in enumerate(texts_of_rows):
        for text in texts:
            found[text].append(row)
    return dict(found)


def _singulars(name: str) -> list[str]:
    return list(dict.fromkeys(map(reduce_name, load_nouns().singulars(name.casefold()))))


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

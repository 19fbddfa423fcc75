"""WordNet's nouns: lemmas, senses and the hierarchy above them, as arrays.

A synset (a sense shared by some words) is a number here, and a name like ``leopard.n.02``: the
second sense of the noun leopard.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from importlib.resources import as_file, files

import numpy as np
from numpy.typing import NDArray

from rankshot.ranking.errors import RankshotError, did_you_mean, shown

Ints = NDArray[np.int64]

CATEGORIES = (
    "tops",
    "act",
    "animal",
    "artifact",
    "attribute",
    "body",
    "cognition",
    "communication",
    "event",
    "feeling",
    "food",
    "group",
    "location",
    "motive",
    "object",
    "person",
    "phenomenon",
    "plant",
    "possession",
    "process",
    "quantity",
    "relation",
    "shape",
    "state",
    "substance",
    "time",
)
"""WordNet's lexical categories of nouns, in the order of their numbers from 3 on."""

FIRST_CATEGORY = 3

PLURALS = (
    ("s", ""),
    ("ses", "s"),
    ("xes", "x"),
    ("zes", "z"),
    ("ches", "ch"),
    ("shes", "sh"),
    ("men", "man"),
    ("ies", "y"),
)
"""WordNet's rules for plurals, in its order: an ending, and what stands there in the singular."""


class Nouns:
    """The noun hierarchy; get it with `load_nouns`, which reads it once.

    Examples
    --------
    >>> nouns = load_nouns()
    >>> [nouns.name(synset) for synset in nouns.senses("leopard")]
    ['leopard.n.01', 'leopard.n.02']
    >>> nouns.category(nouns.synset("leopard.n.02"))
    'animal'
    """

    def __init__(self, arrays: dict[str, NDArray[np.generic]]) -> None:
        lemmas = arrays["lemmas"].tobytes().decode().split("\n")
        self.lemmas = lemmas
        plurals = arrays["plurals"].tobytes().decode().split("\n")
        self._irregular: dict[str, str] = dict(line.split(" ") for line in plurals)
        self._number = {lemma: i for i, lemma in enumerate(lemmas)}
        self._sense_starts = arrays["sense_starts"].astype(np.int64)
        self._senses = arrays["senses"].astype(np.int64)
        self._sense_counts = arrays["sense_counts"].astype(np.int64)
        self._parent_starts = arrays["parent_starts"].astype(np.int64)
        self._parents = arrays["parents"].astype(np.int64)
        self._categories = arrays["categories"].astype(np.int64)
        self._first_lemmas = arrays["first_lemmas"].astype(np.int64)
        self._totals = arrays["totals"].astype(np.float64)
        self.depths: Ints = arrays["depths"].astype(np.int64)
        """The length of the longest way from every synset up to the top."""

    @property
    def n_synsets(self) -> int:
        """How many synsets there are."""
        return self._categories.size

    def __contains__(self, lemma: str) -> bool:
        return lemma in self._number

    def lemma(self, text: str) -> str | None:
        """Return the lemma for a text: as it stands, or without regard to what joins its words.

        Examples
        --------
        >>> load_nouns().lemma("Short Haired German pointer"), load_nouns().lemma("lawn-mower")
        (None, 'lawn_mower')
        """
        plain = text.lower().replace(" ", "_")
        return plain if plain in self._number else self._by_letters.get(_letters(plain))

    @cached_property
    def _by_letters(self) -> dict[str, str]:
        return {_letters(lemma): lemma for lemma in reversed(self.lemmas)}

    def singulars(self, word: str) -> list[str]:
        """Return what a word could be the plural of, by WordNet's own rules; likeliest first."""
        found = [self._irregular[word]] if word in self._irregular else []
        for ending, instead in PLURALS:
            if word.endswith(ending):
                found.append(word.removesuffix(ending) + instead)
        return found

    def senses(self, lemma: str) -> list[int]:
        """Return the synsets of a word (lower case, underscores for spaces), most usual first."""
        i = self._number[lemma]
        senses: list[int] = self._senses[self._sense_starts[i] : self._sense_starts[i + 1]].tolist()
        return senses

    def counts(self, lemma: str) -> list[int]:
        """Return how often each sense of a word was tagged in a corpus."""
        i = self._number[lemma]
        begin, end = self._sense_starts[i], self._sense_starts[i + 1]
        counts: list[int] = self._sense_counts[begin:end].tolist()
        return counts

    def parents(self, synset: int) -> list[int]:
        """Return the hypernyms of a synset: what it is a kind, or an instance, of."""
        begin, end = self._parent_starts[synset], self._parent_starts[synset + 1]
        parents: list[int] = self._parents[begin:end].tolist()
        return parents

    def category(self, synset: int) -> str:
        """Return the lexical category of a synset, such as animal, artifact or plant."""
        return CATEGORIES[int(self._categories[synset]) - FIRST_CATEGORY]

    def word(self, synset: int) -> str:
        """Return the first word of a synset."""
        return self.lemmas[int(self._first_lemmas[synset])]

    def name(self, synset: int) -> str:
        """Return the name of a synset, such as ``leopard.n.02``."""
        word = self.word(synset)
        return f"{word}.n.{self.senses(word).index(synset) + 1:02d}"

    def synset(self, name: str) -> int:
        """Return the synset of a name such as ``leopard.n.02``."""
        lemma, _, number = name.lower().rpartition(".n.") if isinstance(name, str) else ("", "", "")
        if not (number.isdecimal() and len(number) < 4):
            raise RankshotError(f"{shown(name)} is not the name of a sense, such as 'leopard.n.02'")
        if lemma not in self:
            raise RankshotError(f"WordNet has no noun {lemma!r}{did_you_mean(lemma, self.lemmas)}")
        senses = self.senses(lemma)
        if not 1 <= int(number) <= len(senses):
            raise RankshotError(f"{lemma!r} has {len(senses)} senses, so there is no {name!r}")
        return senses[int(number) - 1]

    def ancestors(self, synset: int) -> dict[int, int]:
        """Return all synsets above one, itself included, with the length of the shortest way."""
        return _ancestors(self, synset)

    @property
    def information(self) -> NDArray[np.float64]:
        """The information content -log P of every synset, kinds of it included.

        P comes from how often the senses were tagged, every synset counting once more, so that
        none is impossible.
        """
        return np.asarray(np.log(self._totals.max()) - np.log(self._totals))


@lru_cache(maxsize=1)
def load_nouns() -> Nouns:
    """Read the hierarchy that comes with the package."""
    with (
        as_file(files("rankshot.semantics") / "data" / "wordnet_nouns.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return Nouns(dict(arrays))


@lru_cache(maxsize=1 << 16)
def _ancestors(nouns: Nouns, synset: int) -> dict[int, int]:
    found: dict[int, int] = {}
    level, distance = {synset}, 0
    while level:
        found.update(dict.fromkeys(level, distance))
        level = {parent for child in level for parent in nouns.parents(child)} - found.keys()
        distance += 1
    return found


def _letters(text: str) -> str:
    """Return a text without what may join its words."""
    return re.sub(r"[-_+ ]", "", text)

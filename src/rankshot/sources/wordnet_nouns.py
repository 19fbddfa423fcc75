"""WordNet's noun hierarchy, spelling by its nouns, and the similarity of its senses.

A synset (a sense that some words share) is represented by a number. Its name, such as
``leopard.n.02``, means the second sense of the noun leopard.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError
from rankshot.ranking.construction import row_starts
from rankshot.sources.spelling import LONGEST_NAME, correct_words, reduce_name, split_words

Ints = NDArray[np.int64]
CATEGORIES = (
    *("tops", "act", "animal", "artifact", "attribute", "body", "cognition", "communication"),
    *("event", "feeling", "food", "group", "location", "motive", "object", "person"),
    *("phenomenon", "plant", "possession", "process", "quantity", "relation", "shape"),
    *("state", "substance", "time"),
)
"""WordNet's lexical categories of nouns, in the order of their numbers, which start at 3."""
FIRST_CATEGORY = 3
PLURALS = {"s": "", "ses": "s", "xes": "x", "zes": "z", "ches": "ch", "shes": "sh"}
PLURALS |= {"men": "man", "ies": "y"}
"""WordNet's rules for plurals, in its order: the ending of the plural and of the singular."""
_SENSE = re.compile(r".+\.n\.[0-9]{1,3}|n[0-9]{8}", re.IGNORECASE | re.DOTALL)
Floats = NDArray[np.float64]


class Nouns:
    """The noun hierarchy; get it with `load_nouns`, which reads it once."""

    def __init__(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        def read_words(name: str) -> list[str]:
            return arrays[name].tobytes().decode().split("\n")

        def read_numbers(name: str) -> Ints:
            return arrays[name].astype(np.int64)

        self.lemmas = read_words("lemmas")
        self._number = {lemma: i for i, lemma in enumerate(self.lemmas)}
        self._irregular: dict[str, str] = dict(line.split(" ") for line in read_words("plurals"))
        n_senses = read_numbers("n_senses")
        self._sense_starts = row_starts(n_senses)
        self._senses = read_numbers("senses")
        self._sense_counts = read_numbers("sense_counts")
        self._capitals = np.unpackbits(arrays["sense_capitals"]).astype(bool)
        self._parents = read_numbers("parents")
        self._parent_starts = row_starts(read_numbers("n_parents"))
        self._categories = read_numbers("categories")
        self._offsets: list[int] = np.cumsum(read_numbers("offset_steps")).tolist()
        self._by_offset = {offset: i for i, offset in enumerate(self._offsets)}
        self.sizes = read_numbers("sizes")
        """The number of synsets that every synset has at or below it."""
        self.depths = read_numbers("depths")
        """The length of the longest path from every synset up to the root."""
        self.word_counts: Ints = np.bincount(self._senses)
        """The number of words of every synset."""
        words = np.repeat(np.arange(len(self.lemmas)), n_senses)
        self._words = words[np.argsort(self._senses, kind="stable")]
        self._word_starts = row_starts(self.word_counts)
        self._first_lemmas = self._words[self._word_starts[:-1] + arrays["first_words"]]
        self._ancestors: dict[int, dict[int, int]] = {}

    def __contains__(self, lemma: str) -> bool:
        return lemma in self._number

    def spellings(self, text: str) -> list[str]:
        """Return the lemmas for a text: as it is, then with other separators of its words."""
        plain = text.lower().replace(" ", "_")
        return sorted(self.by_letters.get(reduce_name(text), []), key=plain.__ne__)

    @cached_property
    def by_letters(self) -> dict[str, list[str]]:
        """The lemmas by their letters."""
        found: dict[str, list[str]] = {}
        for lemma in self.lemmas:
            found.setdefault(reduce_name(lemma), []).append(lemma)
        return found

    def is_noun(self, text: str) -> bool:
        """Return whether a text is a noun, in the singular or the plural."""
        return any(self.spellings(form) for form in (text, *self.singulars(text.lower())))

    def list_senses(self, lemmas: Iterable[str]) -> set[int]:
        """Return the synsets of some words."""
        return {synset for lemma in lemmas for synset in self.senses(lemma)}

    def frequency(self, text: str) -> int:
        """Return how often a text was tagged in a corpus, with any sense."""
        return sum(
            count for lemma in self.spellings(text) for _, count, _ in self.tagged_senses(lemma)
        )

    def hint(self, text: str) -> str:
        """Return `` (did you mean 'water_lily'?)``, or an empty text; see `suggest_noun`."""
        noun = suggest_noun(text)
        return "" if noun is None else f" (did you mean {noun!r}?)"

    def singulars(self, word: str) -> list[str]:
        """Return the possible singulars of a word by WordNet's own rules, most likely first."""
        regular = [word.removesuffix(s) + one for s, one in PLURALS.items() if word.endswith(s)]
        return [self._irregular[word], *regular] if word in self._irregular else regular

    def senses(self, lemma: str) -> list[int]:
        """Return the synsets of a word (lower case, underscores for spaces), most common first."""
        return [synset for synset, _, _ in self.tagged_senses(lemma)]

    def tagged_senses(self, lemma: str) -> list[tuple[int, int, bool]]:
        """Return the senses of a word.

        With each, how often it was tagged in a corpus, and whether it has a capital letter.
        """
        start, end = self._sense_starts[self._number[lemma] :][:2].tolist()
        columns = (self._senses, self._sense_counts, self._capitals)
        return list(zip(*(column[start:end].tolist() for column in columns), strict=True))

    def parents(self, synset: int) -> list[int]:
        """Return the hypernyms of a synset, of which it is a kind or an instance."""
        start, end = self._parent_starts[synset : synset + 2].tolist()
        return [int(parent) for parent in self._parents[start:end]]

    def category(self, synset: int) -> str:
        """Return the lexical category of a synset, such as animal, artifact or plant."""
        return CATEGORIES[int(self._categories[synset]) - FIRST_CATEGORY]

    def word(self, synset: int) -> str:
        """Return the first word of a synset."""
        return self.lemmas[int(self._first_lemmas[synset])]

    def words(self, synset: int) -> list[str]:
        """Return all words of a synset, the first word first, the others in alphabetical order."""
        numbers = self._words[self._word_starts[synset] : self._word_starts[synset + 1]]
        first = self.word(synset)
        return [first, *sorted({self.lemmas[i] for i in numbers} - {first})]

    def name(self, synset: int) -> str:
        """Return the name of a synset, such as ``leopard.n.02``."""
        word = self.word(synset)
        return f"{word}.n.{self.senses(word).index(synset) + 1:02d}"

    def synset(self, name: str) -> int:
        """Return the synset of a name such as ``leopard.n.02`` or an id such as ``n02128925``."""
        synset = self.find_synset(name)
        if synset is None:
            lemma = str(name).lower().rpartition(".n.")[0]
            hint = f"{lemma!r} has {len(self.senses(lemma))} senses" if lemma in self else ""
            rule = "must be a sense in WordNet 3.0, such as 'leopard.n.02', or an id: 'n02128925'"
            raise InputError("sense", name, f"{rule}{self.hint(lemma)}", hint=hint)
        return synset

    def find_synset(self, name: str) -> int | None:
        """Return the synset of a sense or an id; None if WordNet does not have it."""
        if not is_sense(name):
            return None
        lemma, _, number = name.lower().rpartition(".n.")
        if not lemma:
            return self._by_offset.get(int(name[1:]))
        senses = self.senses(lemma) if lemma in self else []
        return senses[int(number) - 1] if 1 <= int(number) <= len(senses) else None

    def id(self, synset: int) -> str:
        """Return the id of a synset, such as ``n02128925``."""
        return f"n{self._offsets[synset]:08d}"

    def ancestors(self, synset: int) -> dict[int, int]:
        """Return a synset and all above it, each with the length of the shortest path to it."""
        if synset not in self._ancestors:
            found: dict[int, int] = {}
            level, distance = {synset}, 0
            while level:
                found.update(dict.fromkeys(level, distance))
                level = {parent for child in level for parent in self.parents(child)} - found.keys()
                distance += 1
            self._ancestors[synset] = found
        return self._ancestors[synset]


@lru_cache(maxsize=1)
def load_nouns() -> Nouns:
    """Read the hierarchy that comes with the package."""
    with (
        as_file(files("rankshot.sources") / "data" / "wordnet_nouns.npz") as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        return Nouns(arrays)


def is_sense(text: object) -> bool:
    """Return whether a text has the form of a sense, ``crane.n.04``, or an id, ``n02012849``."""
    return isinstance(text, str) and bool(_SENSE.fullmatch(text))


# ---- Spelling

NUMBER = re.compile(r"[-_+\s]*(\d+|\(\d+\))$")
"""What makes a name different from another one, such as crane 2."""


def suggest_noun(name: str, near_to: Sequence[int] = ()) -> str | None:
    """Return a noun that a name may be misspelt from, or None.

    Of several nouns, the one whose first sense is nearest to one of the synsets ``near_to`` is
    returned. A number at the end of the name is ignored. Senses, ids and synonyms separated by
    commas are not words to correct.
    """
    nouns = load_nouns()
    words = split_words(NUMBER.sub("", name))
    text = "_".join(words)
    if len(name) > LONGEST_NAME or is_sense(name) or "," in name:
        return None
    if not words or nouns.is_noun(name) or nouns.is_noun(text):
        return None
    letters = correct_words(words, nouns.by_letters, nouns.is_noun)

    def rank(noun: str) -> tuple[bool, float, int, str]:
        similarity = compare_synsets("path", nouns.senses(noun)[:1], near_to)
        return noun[0] == text[0], similarity.max(initial=0), nouns.frequency(noun), noun

    near = [lemma for each in letters for lemma in nouns.by_letters[each]]
    # The first letter is seldom wrong; then by meaning; then the more common noun.
    return max(near, key=rank, default=None)


# ---- Similarity measures

MEASURES = ("path", "wup")


def compare_synsets(measure: str, a: Sequence[int], b: Sequence[int]) -> Floats:
    """Return the similarity of every synset of ``a`` with every synset of ``b``.

    It is the maximum over the common ancestors: with d the length of the path from one synset over
    the ancestor to the other, and D the number of synsets from the ancestor to the root,

    - path: 1/(1 + d);
    - wup: 2D/(d + 2D).
    """
    depths = load_nouns().depths
    below_a, below_b = _group_by_ancestor(a), _group_by_ancestor(b)
    best = np.zeros((len(a), len(b)))
    for ancestor in below_a.keys() & below_b.keys():
        (rows, up_a), (columns, up_b) = below_a[ancestor], below_b[ancestor]
        steps = up_a[:, None] + up_b
        weight = 1.0 if measure == "path" else 2 * (1.0 + depths[ancestor])
        cells = np.ix_(rows, columns)
        best[cells] = np.maximum(best[cells], weight / (steps + weight))
    return best


def _group_by_ancestor(synsets: Sequence[int]) -> dict[int, tuple[list[int], Floats]]:
    """Return, for every ancestor, the rows of the synsets below it and their distances."""
    found: dict[int, dict[int, int]] = {}
    for row, synset in enumerate(synsets):
        for ancestor, distance in load_nouns().ancestors(synset).items():
            found.setdefault(ancestor, {})[row] = distance
    return {one: (list(rows), np.array([*rows.values()], float)) for one, rows in found.items()}

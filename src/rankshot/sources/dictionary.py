"""The built-in dictionaries of look-alikes and sound-alikes, and how names are found in them.

An entry of a dictionary is a noun with one list of classes per rater: what a classifier of these
classes would predict for it. A name is looked up as it is written, then by its words, by synonyms
and by a correction of its spelling. A noun that is not there gets a mixture of the entries near it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib.resources import as_file, files
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.preprocessing import normalize

from rankshot.core.errors import quote_names
from rankshot.sources.labels import parse_label
from rankshot.sources.names import ClassLabels, index_rows, load_imagenet_labels
from rankshot.sources.spelling import FEWEST_LETTERS, WORD, stem_words
from rankshot.sources.vectors import GLOVE_PACKAGE, WordVectors, unit_vectors
from rankshot.sources.wordnet import find_candidates
from rankshot.sources.wordnet_nouns import load_nouns

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
FILES = {"images": "look_alikes.npz", "sounds": "sound_alikes.npz"}
"""The dictionaries, by what a classifier gets."""
THINGS = (
    *("animal", "artifact", "body", "food", "group", "object", "person", "phenomenon", "plant"),
    *("possession", "substance"),
)
"""WordNet's categories of what can be photographed."""
USUAL_SENSE = 0.5
"""A thing is what a noun usually means if this sense was tagged at least half as often as any other
sense: "justice" is not a judge."""
DECAY = 0.5
"""The weight of the class at place r of a list is r to the power of minus this, as in the head."""
OWN_WEIGHT = 2.0
"""The weight of a listed class for itself. It was chosen on the lists themselves (see below: .520
with 0, .529 with 1, .531 with 2 and 3) and gives the best mean over held-out seen classes."""
NEAR_ENTRIES, RIDGE = 100, 1.0
"""How many entries are mixed, and the penalty. With each noun of the dictionary taken out in turn,
the cosine of the mixture with its own lists is .531, with word vectors .570 (50 entries or a
penalty of .3: .005 less). The five nearest entries by WordNet have .43."""
NEAR_WORDS = 0.7
"""The cosine of word vectors that makes an entry near, if WordNet does not have a noun: "qwerty" is
near a keyboard (.83); letters typed at random reach .6."""


@dataclass(frozen=True)
class Entry:
    """What a dictionary has for a name.

    Attributes
    ----------
    weights : ndarray of shape (raters, classes)
        How much each rater's list weighs each class.
    note : str
        What was used instead of the name; empty if the name was found as it is written.
    is_certain : bool
        Whether the name, or a synonym, is in the dictionary.
    """

    weights: Floats
    note: str = ""
    is_certain: bool = True


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Nouns with lists of classes; get one with `load_dictionary`.

    Attributes
    ----------
    kind : str
        What a classifier gets: ``images`` or ``sounds``.
    nouns, classes : tuple of str
        The nouns, and the classes in their lists.
    lists : ndarray of shape (nouns, raters, places)
        The numbers of the classes, best first.
    synsets : tuple of int
        WordNet synsets, or -1 if a noun is not a thing in WordNet.
    is_whole : tuple of bool
        Whether the synset is that of the noun, and not only of its last word.
    """

    kind: str
    nouns: tuple[str, ...]
    classes: tuple[str, ...]
    lists: Ints
    synsets: tuple[int, ...]
    is_whole: tuple[bool, ...]

    @property
    def source(self) -> str:
        """The source of its rankings."""
        return "look-alikes" if self.kind == "images" else "sound-alikes"

    @cached_property
    def list_weights(self) -> Floats:
        """The weight of each class in each list, by noun and rater."""
        n_nouns, n_raters, n_places = self.lists.shape
        place_weights = np.arange(1.0, n_places + 1) ** -DECAY
        weights = np.zeros((n_nouns, n_raters, len(self.classes)))
        np.put_along_axis(weights, self.lists, place_weights[None, None], 2)
        return weights

    @cached_property
    def weights(self) -> Floats:
        """The weights of lists in which the listed classes stand first in their own lists."""
        weights = self.list_weights.copy()
        _, rows, columns = np.intersect1d(self.nouns, self.classes, return_indices=True)
        weights[rows, :, columns] = OWN_WEIGHT
        return weights

    # ---- Comparing nouns

    @cached_property
    def _likeness(self) -> Floats:
        """The cosine of every two classes, by the nouns whose lists have them."""
        units = unit_vectors(self.list_weights.mean(axis=1).T)
        return np.asarray(np.nan_to_num(units) @ np.nan_to_num(units).T)

    def project(self, weights: Floats, rater: int) -> Floats:
        """Return vectors of unit length whose products say how alike nouns are.

        Classes that are listed together count as alike, and what all nouns have in common does not
        count. On held-out seen classes (ESC-50, animals, CIFAR) the mean accuracy is .452; without
        the second .438, without both .395.
        """
        common = self.weights[:, rater].mean(axis=0) @ self._likeness
        common /= np.linalg.norm(common)
        rows = np.nan_to_num(unit_vectors(weights @ self._likeness))
        return np.nan_to_num(unit_vectors(rows - np.outer(rows @ common, common)))

    def match_classes(self, names: Sequence[str]) -> dict[str, int]:
        """Return the numbers of the listed classes that some names mean."""
        # Images have ImageNet's, in its order, and people call them by its synonyms and ids.
        is_images = self.kind == "images"
        labels = load_imagenet_labels() if is_images else ClassLabels.from_names(self.classes)
        labels = replace(labels, given=self.classes)
        found: dict[int, str] = {}
        for name in names:
            if len(rows := labels.find_rows(name)) == 1:
                found.setdefault(rows[0], name)
        return {name: row for row, name in found.items()}

    def stack(self, entries: Iterable[Entry]) -> Floats:
        """Return the weights of entries, of shape (entries, raters, classes)."""
        return np.reshape([entry.weights for entry in entries], (-1, *self.weights.shape[1:]))

    # ---- Names

    def find(
        self, names: Iterable[str], synsets: Mapping[str, int] | None = None
    ) -> dict[str, Entry | None]:
        """Return the entry of each name, or a mixture of entries near it; None if none is near.

        Known ``synsets`` take the place of the senses of names.
        """
        synsets, names = synsets or {}, list(names)
        found = {name: self.find_certain(name, synsets.get(name)) for name in names}
        absent = [name for name, entry in found.items() if entry is None]
        return found | self._mix_near(absent, synsets)

    def find_certain(self, name: str, synset: int | None = None) -> Entry | None:
        """Return the entry of a name, as it is written, or by a synonym or a correction."""
        row, note = self._find_noun(name, synset)
        if row is None:
            near = self.labels.correct(name)
            # Of 126 misspelt names of four letters, the most common noun was right for 90, and the
            # only one that is near for 74 of 74; of 203 with five letters for 182, else 98 %.
            if not near or (len(near) > 1 and len(name) <= FEWEST_LETTERS):
                return None
            row = max(near, key=lambda row: load_nouns().frequency(self.nouns[row]))
            note = f"{name!r} is read as {self.nouns[row]!r}"
        return Entry(self.weights[row], note)

    def _find_noun(self, name: str, synset: int | None = None) -> tuple[int | None, str]:
        """Return the number of the noun that a name means, and what was used instead of it."""
        words = [name, *parse_label(name).words, *name.split("/")]
        for word in words:
            if rows := self.labels.find_rows(word):
                return rows[0], ""
        for word in words:
            rows = self._by_words.get(frozenset(stem_words(word)), [])
            if len(rows) == 1:
                return rows[0], f"{name!r} is looked up as {self.nouns[rows[0]]!r}"
        synset, is_whole = self.choose_sense(name) if synset is None else (synset, True)
        if synset is not None and is_whole and (rows := self._by_synset.get(synset, [])):
            return rows[0], f"{name!r} is looked up as {self.nouns[rows[0]]!r}"
        return None, ""

    def choose_sense(self, name: str) -> tuple[int | None, bool]:
        """Return the first sense of a name that is a thing, and whether it is of the whole name.

        None if the name usually is not a thing. Otherwise it may be the sense of the last word.
        """
        nouns = load_nouns()
        found = find_candidates(name)
        if found is None:
            return None, False
        is_whole = "head noun" not in (found.note or "")
        most = max(candidate.count for candidate in found.candidates)
        for candidate in found.candidates:
            is_thing = self.kind != "images" or nouns.category(candidate.synset) in THINGS
            if is_thing and candidate.count >= USUAL_SENSE * most:
                return candidate.synset, is_whole
        return None, is_whole

    def is_abstract(self, name: str) -> bool:
        """Return whether WordNet has a noun that usually is not a thing, such as justice."""
        synset, is_whole = self.choose_sense(name)
        return synset is None and is_whole

    @cached_property
    def labels(self) -> ClassLabels:
        """The nouns as classes, to find the one that a name means."""
        return ClassLabels.from_names(self.nouns)

    @cached_property
    def _by_words(self) -> dict[frozenset[str], list[int]]:
        return index_rows([frozenset(stem_words(noun))] for noun in self.nouns)

    @cached_property
    def _by_synset(self) -> dict[int, list[int]]:
        pairs = zip(self.synsets, self.is_whole, strict=True)
        return index_rows([synset] if synset >= 0 and whole else [] for synset, whole in pairs)

    # ---- Entries near a noun

    def _mix_near(
        self, names: Sequence[str], synsets: Mapping[str, int]
    ) -> dict[str, Entry | None]:
        """Mix the entries near each of some nouns, by ridge regression on how near they are.

        They are near by the kinds that they are of, the words of their names, and word vectors if
        these are installed.
        """
        cosines = np.zeros((len(names), len(self.nouns)))
        if names and self._vectors is not None:
            source, values = self._vectors
            own = np.nan_to_num(source.vectors(names))
            # If none of the names has a vector, their length is unknown.
            if own.shape[1] == values.shape[1]:
                cosines = (values @ own[:, :, None])[..., 0]
        mixed: dict[str, Entry | None] = {}
        for name, by_vectors in zip(names, cosines, strict=True):
            synset = synsets[name] if name in synsets else self.choose_sense(name)[0]
            kinds = () if synset is None else load_nouns().ancestors(synset)
            by_words = self._words.compare(stem_words(name))
            is_word = any(map(str.isalpha, name)) and float(by_vectors.max()) >= NEAR_WORDS
            is_near = synset is not None or (
                (bool(by_words.any()) or is_word) and not self.is_abstract(name)
            )
            near = self._kinds.compare(kinds) + by_words + by_vectors
            mixed[name] = self._mix(name, near) if is_near else None
        return mixed

    def _mix(self, name: str, near: Floats) -> Entry:
        rows = np.argsort(-near, kind="stable")[:NEAR_ENTRIES]
        among = self._kinds.among(rows) + self._words.among(rows)
        if self._vectors is not None:
            among = among + self._vectors[1][rows] @ self._vectors[1][rows].T
        shares = np.linalg.solve(among + RIDGE * np.eye(rows.size), near[rows])
        units = _unit_lists(self.weights[rows])
        mixed = _unit_lists(np.maximum(np.einsum("n,nrc->rc", shares, units), 0))
        used = [self.nouns[row] for row in rows[np.argsort(-shares, kind="stable")][:3]]
        words = WORD.findall(name.replace("_", " "))
        head, _ = self._find_noun(words[-1]) if len(words) > 1 else (None, "")
        if head is not None:
            # For compounds whose last word is an entry: mixture .59, last word .52, both .60.
            mixed = mixed + _unit_lists(self.weights[head])
            used = list(dict.fromkeys([self.nouns[head], *used]))[:3]
        note = f"{name!r} is not in the dictionary: mixed from {quote_names(used)} and others"
        return Entry(mixed, note, is_certain=False)

    @cached_property
    def _kinds(self) -> _Kernel:
        nouns = load_nouns()
        return _Kernel([nouns.ancestors(s) if s >= 0 else () for s in self.synsets])

    @cached_property
    def _words(self) -> _Kernel:
        return _Kernel([stem_words(noun) for noun in self.nouns])

    @cached_property
    def _vectors(self) -> tuple[WordVectors, Floats] | None:
        """Word vectors, if they are installed, and those of the nouns."""
        if find_spec(GLOVE_PACKAGE) is None or find_spec("pyarrow") is None:
            return None
        source = WordVectors.glove()
        return source, np.nan_to_num(source.vectors(self.nouns))


class _Kernel:
    """Cosines of sets, such as the words of nouns, in which rare members count more."""

    def __init__(self, sets: Sequence[Iterable[Any]]) -> None:
        self._counter = CountVectorizer(analyzer=list, binary=True)
        counts = self._counter.fit_transform(sets)
        self._rarity = np.log(len(sets) / counts.sum(axis=0))
        self._table = normalize(counts.multiply(self._rarity).tocsr())

    def compare(self, members: Iterable[Any]) -> Floats:
        """Return the cosine of another set with each of the sets."""
        own = self._counter.transform([members]).multiply(self._rarity)
        return np.asarray((self._table @ normalize(own).T).todense()).ravel()

    def among(self, rows: Ints) -> Floats:
        """Return the cosines of some of the sets with one another."""
        some = self._table[rows]
        return np.asarray((some @ some.T).todense())


def _unit_lists(weights: Floats) -> Floats:
    lengths = np.linalg.norm(weights, axis=-1, keepdims=True)
    return np.asarray(weights / np.where(lengths > 0, lengths, 1))


@lru_cache(maxsize=2)
def load_dictionary(kind: str) -> Dictionary:
    """Read a dictionary that comes with the package, ``"images"`` or ``"sounds"``."""
    with (
        as_file(files("rankshot.sources") / "data" / FILES[kind]) as path,
        np.load(path, allow_pickle=False) as arrays,
    ):
        nouns, classes = (
            arrays[name].tobytes().decode().split("\n") for name in ("nouns", "classes")
        )
        lists, ids = arrays["lists"].astype(np.int64), arrays["synsets"].tolist()
        is_whole = arrays["is_whole"].tolist()
    synsets = [load_nouns().synset(f"n{number:08d}") if number else -1 for number in ids]
    return Dictionary(kind, tuple(nouns), tuple(classes), lists, tuple(synsets), tuple(is_whole))

"""Names of classes: labels in any format, and words to look up.

Label files differ: ``tench``, ``tench, Tinca tinca``, ``n01440764``, ``n01440764 tench``,
``["n01440764", "tench"]``. All of them become one readable name, a synset if it is known, and
synonyms. Plain names stay as they are.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from rankshot.core.columns import read_batches
from rankshot.core.errors import (
    InputError,
    format_count,
    join_some,
    prefix_errors,
    quote_names,
    suggest_name,
)
from rankshot.core.files import iterate_names, read_text
from rankshot.core.validation import as_names, require_whole_number, shuffle_names
from rankshot.sources.labels import (
    QUALIFIER,
    Label,
    describe_synset,
    load_imagenet,
    parse_label,
    split_label,
)
from rankshot.sources.spelling import (
    LONGEST_NAME,
    correct_words,
    reduce_letters,
    reduce_name,
    split_words,
)
from rankshot.sources.wordnet_nouns import is_sense, load_nouns, suggest_noun

# ---- The classes of a classifier

Key = TypeVar("Key")
IMAGENET = "imagenet-1k"
_ID = re.compile(r"n\d{8}")
_PLACEHOLDER = re.compile(r"LABEL_\d+")


@dataclass(frozen=True)
class ClassLabels:
    """The classes of a classifier in the order of its outputs; see `read_class_labels`.

    Attributes
    ----------
    names : tuple of str
        Readable names, all different.
    synsets : tuple of str or None
        The WordNet 3.0 synset of each class, such as ``n02012849``, where it is known.
    synonyms : tuple of tuples of str
        All words for each class, at least one.
    given : tuple of str
        The labels as they were given.
    changes : tuple of str
        Sentences that describe changes and unusual labels; empty if all labels are plain names.

    Examples
    --------
    >>> import rankshot as rs
    >>> labels = rs.sources.read_class_labels("imagenet-1k")
    >>> labels.names[134], labels.synsets[134], labels.synonyms[134]
    ('crane (bird)', 'n02012849', ('crane',))
    >>> for name in ("great_white_shark", "n01484850", "Carcharodon carcharias", "crane.n.05"):
    ...     print(labels.match(name))
    ['great white shark']
    ['great white shark']
    ['great white shark']
    ['crane (bird)']
    >>> labels.match("crane")
    ['crane (bird)', 'crane (machine)']
    """

    names: tuple[str, ...]
    synsets: tuple[str | None, ...]
    synonyms: tuple[tuple[str, ...], ...]
    given: tuple[str, ...]
    changes: tuple[str, ...] = ()

    @classmethod
    def from_names(cls, names: tuple[str, ...]) -> ClassLabels:
        """Return classes of which nothing but the ``names`` is known."""
        return cls(names, (None,) * len(names), tuple((name,) for name in names), names)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def senses(self) -> dict[str, str]:
        """The known synsets by name, for the parameter ``senses`` of `WordNet`."""
        pairs = zip(self.names, self.synsets, strict=True)
        return {name: synset for name, synset in pairs if synset is not None}

    @property
    def words(self) -> dict[str, str]:
        """The synonyms of classes that have more words than their name, for `compare_as`."""
        # Sources that take the first word they know should try the name first. They read the name
        # of a sense as its word.
        return {
            name: ", ".join(sorted(words, key=name.__ne__))
            for name, words in zip(self.names, self.synonyms, strict=True)
            if words != (name,) and not is_sense(name)
        }

    def match(self, name: str) -> list[str]:
        """Return the class that ``name`` means; none or several if this is not clear.

        The name may be written as in ``names``, ``given`` or ``synonyms``, as the whole list of
        synonyms, as a synset or as the name of a WordNet sense. Case, underscores, hyphens and
        spaces are ignored unless classes differ only in these. A class's own name and its first
        synonym take precedence over further synonyms of other classes.
        """
        return [self.names[row] for row in self.find_rows(name)]

    def find_rows(self, name: str) -> list[int]:
        """Return the numbers of the classes that ``name`` may mean."""
        for index in self._exact:
            if rows := index.get(name):
                return rows
        label = parse_label(name)
        words = [name, *label.words]
        if label.synset is not None:
            if rows := [row for row, one in enumerate(self.synsets) if one == label.synset]:
                return rows
            words += describe_synset(label.synset)[1]
        letters = dict.fromkeys(map(reduce_letters, words))
        for index, forms in (
            (self._by_letters, letters),
            (self._by_other_synonym, letters),
            (self._by_letters, [form for word in words for form in _singulars(word)]),
            (self._by_singular, letters),
        ):
            for form in forms:
                # A class with another synset is not meant.
                rows = index.get(form, [])
                if rows := [i for i in rows if label.synset is None or self.synsets[i] is None]:
                    return rows
        return []

    def correct(self, name: str) -> list[int]:
        """Return the numbers of the classes from which ``name`` may be misspelt.

        One letter is wrong, missing or too many, or two neighbours are exchanged. A word that
        WordNet knows is replaced only by another spelling of the same noun, such as racoon.
        """
        words = split_words(name)
        if len(name) > LONGEST_NAME or "," in name or is_sense(name):
            return []
        near = correct_words([*map(reduce_letters, words)], self._by_letters, self._is_word)
        rows = {row for text in near for row in self._by_letters[text]}
        if all(map(self._is_word, words)):
            nouns = load_nouns()
            senses = nouns.list_senses(nouns.spellings(name))
            spellings = {row: nouns.spellings(self.names[row]) for row in rows}
            rows = {row for row in rows if senses & nouns.list_senses(spellings[row])}
        # The first letter is seldom wrong.
        first = [row for row in rows if self.names[row][:1].casefold() == name[:1].casefold()]
        return sorted(first or rows)

    def _is_word(self, word: str) -> bool:
        return word in self._words or load_nouns().is_noun(word)

    def match_all(self, names: Iterable[str]) -> dict[str, str]:
        """Return the given label of the class that each name means.

        Names that mean no class, or several, are left out. The names are read as a list of labels
        as well, so that the cranes of ImageNet's list are distinguished by their places.
        """
        name_of: dict[int, str] = {}
        names = tuple(names)
        for name, readable in zip(names, read_class_labels(names).names, strict=True):
            rows = self.find_rows(name)
            if len(rows) != 1:
                rows = self.find_rows(readable)
            if len(rows) == 1:
                other = name_of.setdefault(rows[0], name)
                if other != name:
                    problem = f"means the class {self.given[rows[0]]!r}, as {other!r} does"
                    raise InputError("names", name, problem)
        return {name: self.given[row] for row, name in name_of.items()}

    @cached_property
    def _exact(self) -> tuple[dict[str, list[int]], ...]:
        """The classes by their names and labels, then by their synonyms, as they are written."""
        return (
            index_rows(map(set, zip(self.names, self.given, strict=True))),
            index_rows({words[0], ", ".join(words)} for words in self.synonyms),
        )

    @cached_property
    def _words(self) -> set[str]:
        return {reduce_letters(word) for name in self.names for word in split_words(name)}

    @cached_property
    def _by_letters(self) -> dict[str, list[int]]:
        """The classes by their names, labels and first synonyms."""
        return index_rows(
            set(map(reduce_letters, (name, given, words[0], ",".join(words))))
            for name, given, words in zip(self.names, self.given, self.synonyms, strict=True)
        )

    @cached_property
    def _by_other_synonym(self) -> dict[str, list[int]]:
        """The classes by their further synonyms, and by names such as crane (bird) without kind."""
        return index_rows(
            set(map(reduce_letters, (*words[1:], QUALIFIER.sub("", name))))
            for name, words in zip(self.names, self.synonyms, strict=True)
        )

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


def read_class_labels(
    seen: str | Path | Sequence[object] | Mapping[object, object] | ClassLabels,
) -> ClassLabels:
    """Read the classes of a classifier, in the order of its outputs, from labels of any format.

    Labels that are lists of synonyms separated by commas (``tench, Tinca tinca``), WordNet ids
    (``n01440764``), or ids with words (``n01440764 tench``, ``["n01440764", "tench"]``) get a
    readable name, which is reported in ``changes``. Plain names stay as they are, underscores
    included. Labels that are ImageNet's 1,000 classes in their order are recognised, and get the
    names and synsets of ``imagenet-1k``.

    Parameters
    ----------
    seen : str, Path, sequence or mapping
        One of

        - ``"imagenet-1k"``, the 1,000 classes of ImageNet;
        - a text file with one label per line (``#`` begins a comment);
        - a JSON file with a list, with an object from index to label or from label to index, or a
          ``config.json`` from transformers (or its folder), of which ``id2label`` is used;
        - such a list or mapping itself, or the `ClassLabels` that an earlier call returned.

    Examples
    --------
    >>> import rankshot as rs
    >>> labels = rs.sources.read_class_labels({"0": "tench, Tinca", "1": "n02012849", "2": "bus"})
    >>> labels.names
    ('tench', 'crane (bird)', 'bus')
    >>> print(*labels.changes)
    2 labels now have readable names: 'tench, Tinca' is 'tench', 'n02012849' is 'crane (bird)'
    """
    if isinstance(seen, ClassLabels):
        return seen
    if isinstance(seen, str) and seen == IMAGENET:
        return load_imagenet_labels()
    raw, where = _list_labels(seen)
    with prefix_errors(where):
        labels, remarks = _recognise_imagenet([_as_label(label, i) for i, label in enumerate(raw)])
        readable, synonyms = zip(*(label.describe() for label in labels), strict=True)
        names = _tell_apart(readable, synonyms, labels)
        return ClassLabels(
            names,
            tuple(label.synset for label in labels),
            synonyms,
            tuple(label.given for label in labels),
            (*remarks, *_describe_changes(labels, names)),
        )


@lru_cache(maxsize=1)
def load_imagenet_labels() -> ClassLabels:
    """Return ImageNet's 1,000 classes, with synsets and synonyms.

    The name of a class is its first synonym, except where two classes would have the same one.
    """
    names, synonyms = zip(*load_imagenet().values(), strict=True)
    return ClassLabels(names, tuple(load_imagenet()), synonyms, names)


# ---- Files and objects that list labels


def _list_labels(source: Any) -> tuple[list[Any], str]:
    """Return the labels of a file or an object, in order, and what to call it in messages."""
    content, where = source, "class labels"
    if isinstance(source, (str, Path)):
        path = Path(source) / "config.json" if Path(source).is_dir() else Path(source)
        if path.name == source and not path.exists() and not path.suffix:
            problem = f"is neither a file nor a built-in list{suggest_name(source, [IMAGENET])}"
            raise InputError("seen", source, problem, hint=f"the list is {IMAGENET!r}")
        content, where = _read_structure(path), str(path)
    labels: list[Any] = []
    if isinstance(content, Mapping):
        labels = _list_mapping(content, where)
    elif isinstance(content, Iterable) and not isinstance(content, (bytes, set, frozenset)):
        labels = list(content)
    if not labels:
        expected = "must be a file with one label per line, a sequence or a mapping of labels"
        raise InputError("seen", content, expected, where=where)
    return labels, where


def _read_structure(path: Path) -> object:
    """Return the list or the object in a file; a text file is a list of its lines."""
    text, is_json = read_text(path), path.suffix.lower() == ".json"
    if is_json or text.lstrip()[:1] in {"[", "{"}:
        # The list of ImageNet's classes that is copied most is a dictionary of Python.
        for parse in (json.loads, ast.literal_eval):
            with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
                return parse(text.strip())
        if is_json:
            raise InputError("seen", str(path), "is not JSON")
    return [name for _, name in iterate_names(path)]


def _list_mapping(mapping: Mapping[Any, Any], where: str) -> list[Any]:
    """Return the labels of a mapping from index to label or from label to index, by index."""
    for field in ("id2label", "label2id"):
        if isinstance(mapping.get(field), Mapping):
            return _list_mapping(mapping[field], f"{where}: {field}")
    keys, values = list(mapping), list(mapping.values())
    if all(map(_is_index, values)) and not all(type(key) is int for key in keys):
        keys, values = values, keys
    label_of = {int(key): label for key, label in zip(keys, values, strict=True) if _is_index(key)}
    wanted = range(len(mapping))
    if missing := [index for index in wanted if index not in label_of]:
        odd = [key for key in keys if not _is_index(key) or int(key) not in wanted]
        problem = f"must have the indices 0 to {len(mapping) - 1}, each once"
        hint = f"missing: {quote_names(missing, 4)}"
        raise InputError("seen", odd, problem, where, hint)
    return [label_of[index] for index in wanted]


def _is_index(value: object) -> bool:
    return isinstance(value, (int, str)) and str(value).isascii() and str(value).isdecimal()


def _as_label(raw: object, number: int) -> Label:
    """Return a label; ``number`` is that of the output, for messages."""
    if isinstance(raw, (list, tuple)) and len(raw) == 2 and _ID.fullmatch(str(raw[0])):
        # Keras lists pairs of a synset and a name.
        raw = f"{raw[0]} {raw[1]}"
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = str(raw)
    if not isinstance(raw, str) or not raw.strip():
        raise InputError("seen", raw, "must be text", where=f"label {number}")
    return parse_label(str(raw).strip())


# ---- From labels to classes


def _recognise_imagenet(labels: Sequence[Label]) -> tuple[Sequence[Label], list[str]]:
    """Give labels that name ImageNet's classes, in ImageNet's order, their synsets.

    More than half of the labels must be at their places. The others keep their own names.
    """
    imagenet = load_imagenet()
    first = len(labels) - len(imagenet)
    if first not in {0, 1} or all(label.synset for label in labels[first:]):
        return labels, []
    found = [
        label.synset is None
        and not {*map(reduce_name, (*words, name))}.isdisjoint(map(reduce_name, label.words))
        for label, (name, words) in zip(labels[first:], imagenet.values(), strict=True)
    ]
    if sum(found) <= len(imagenet) / 2:
        return labels, []
    recognised = [
        Label(label.given, synset, split_label(label.given)) if is_here else label
        for label, synset, is_here in zip(labels[first:], imagenet, found, strict=True)
    ]
    remarks = [f"{format_count(sum(found), 'label')} are classes of {IMAGENET}, with known synsets"]
    return [*labels[:first], *recognised], remarks


def _tell_apart(
    names: Sequence[str], synonyms: Sequence[tuple[str, ...]], labels: Sequence[Label]
) -> tuple[str, ...]:
    """Return names that differ: those of several classes get a word in parentheses.

    Plain names that differ by case or separators alone were written so, and stay.
    """
    found = list(names)
    synsets = [label.synset for label in labels]
    more = list(map(_distinguish, names, synonyms, synsets))
    while words := {
        i: word for i in _find_shared(found, labels) if (word := next(more[i], None)) is not None
    }:
        for i, word in words.items():
            found[i] = f"{names[i]} ({word})"
    if len(set(found)) < len(found):
        given = labels[found.index(Counter(found).most_common(1)[0][0])].given
        problem = "is listed more than once, and nothing distinguishes the classes"
        hint = "give each its own name, or its WordNet id, as in 'n02012849 crane'"
        raise InputError("seen", given, problem, hint=hint)
    return tuple(found)


def _find_shared(names: Sequence[str], labels: Sequence[Label]) -> list[int]:
    exact, letters = Counter(names), Counter(map(reduce_name, names))
    return [
        i
        for i, (name, label) in enumerate(zip(names, labels, strict=True))
        if exact[name] > 1 or (letters[reduce_name(name)] > 1 and not label.is_plain)
    ]


def _distinguish(name: str, words: tuple[str, ...], synset: str | None) -> Iterator[str]:
    """Yield words that tell a class from others of its name, first what it is a kind of."""
    if synset is not None:
        nouns = load_nouns()
        parents = nouns.parents(nouns.synset(synset))
        yield from (nouns.word(parent).replace("_", " ") for parent in parents[:1])
    yield from (word for word in words if reduce_name(word) != reduce_name(name))
    if synset is not None:
        yield synset


def _describe_changes(labels: Sequence[Label], names: Sequence[str]) -> Iterator[str]:
    """Yield what was changed, with a few examples, and what is remarkable."""
    pairs = [(label.given, name) for label, name in zip(labels, names, strict=True)]
    if changed := [f"{given!r} is {name!r}" for given, name in pairs if given != name]:
        verb = "has a readable name" if len(changed) == 1 else "have readable names"
        yield f"{format_count(len(changed), 'label')} now {verb}: {join_some(changed, 3)}"
    if odd := [label.given for label in labels if _PLACEHOLDER.fullmatch(label.given)]:
        yield (
            f"{format_count(len(odd), 'class')} with a placeholder such as {odd[0]!r} instead of a "
            "name: no source knows it. Give the real names"
        )


# ---- What a user does with names

CLASS, LOOK_UP = "class", "look_up"
"""The columns of a file of words to look up."""
FEWEST_RANKED = 2
"""Seen classes that must be left when others are rehearsed: fewer cannot be ranked."""


def read_look_up(path: str | Path, classes: Iterable[object]) -> dict[str, str]:
    r"""Read the words to look up for some classes from a CSV file with these two columns.

    Parameters
    ----------
    path : str or Path
        A CSV file with the header ``class,look_up`` and rows such as ``water_lilly,water lily``,
        or ``seal,seal.n.09`` with a WordNet sense. Other columns are ignored.
    classes : iterable of names
        All classes; the file may name some of them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.sources import read_look_up
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "names.csv")
    ...     _ = path.write_text("class,look_up\nwater_lilly,water lily\n")
    ...     read_look_up(path, ["rose", "water_lilly"])
    {'water_lilly': 'water lily'}
    """
    path = Path(path)
    known = as_names(classes, "classes")
    look_up: dict[str, str] = {}
    for batch in read_batches(path, [CLASS, LOOK_UP], missing={""}):
        for row, (name, words) in enumerate(zip(*batch.read_texts(CLASS, LOOK_UP), strict=True)):
            if not name and not words:
                # Spreadsheets write such lines for empty rows.
                continue
            if name not in known:
                batch.refuse("class", name, f"is not a class{suggest_name(name, known)}", row)
            if name in look_up or not words:
                problem = "occurs twice" if words else "has no words to look up"
                batch.refuse("class", name, problem, row)
            if is_sense(words):
                with prefix_errors(batch.where(row)):
                    load_nouns().synset(words)
            look_up[name] = words
    return look_up


def find_misspellings(names: Iterable[object]) -> dict[str, str]:
    """Return the names that may be misspelt, each with a WordNet noun as a suggestion.

    A name may be misspelt if WordNet does not have it, in the singular or the plural, but has a
    noun that differs by one letter: one too many, one missing, one different, or two neighbours
    exchanged. In a name of several words, this applies to each word that is not in WordNet. A
    number at the end of a name is ignored. Senses (``crane.n.04``), ids (``n02012849``) and
    synonyms separated by commas are never reported. If several nouns are equally near in spelling,
    the one whose meaning is nearest to another of the names is suggested.

    Parameters
    ----------
    names : iterable of names

    Examples
    --------
    >>> from rankshot.sources import find_misspellings
    >>> find_misspellings(["water_lilly", "sea_horses", "maple_tree", "labradore_retreiver"])
    {'water_lilly': 'water_lily', 'labradore_retreiver': 'labrador_retriever'}
    >>> find_misspellings(["okapy", "zebra"]), find_misspellings(["okapy", "approval"])
    ({'okapy': 'okapi'}, {'okapy': 'okay'})
    """
    nouns, names = load_nouns(), as_names(names, "names")
    lemmas = [lemma for name in names for lemma in nouns.spellings(name)[:1]]
    meant = [sense for lemma in lemmas for sense in nouns.senses(lemma)]
    return {name: noun for name in names if (noun := suggest_noun(name, meant)) is not None}


def choose_rehearsed(
    classes: Iterable[object], number: int, seed: int = 0
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Choose seen classes to hold out, and return them and the others.

    The choice depends on the names and the seed alone: it is the same on every machine, for all
    sources, and in whatever order the classes are listed. With the same seed, a larger number
    adds classes to those of a smaller one.

    Parameters
    ----------
    classes : iterable of names
        The seen classes.
    number : int
        How many of them to hold out.
    seed : int
        The seed of the random choice.

    Examples
    --------
    >>> from rankshot.sources import choose_rehearsed
    >>> choose_rehearsed(["tiger", "wolf", "seal", "bus", "tram"], 2)
    (('seal', 'bus'), ('tiger', 'wolf', 'tram'))
    """
    names = as_names(classes, "classes")
    number = require_whole_number("number", number, len(names) - FEWEST_RANKED)
    seed = require_whole_number("seed", seed, least=0)
    chosen = set(shuffle_names(names, [seed, "rehearse"])[:number])
    others = tuple(name for name in names if name not in chosen)
    return tuple(name for name in names if name in chosen), others

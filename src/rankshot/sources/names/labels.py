"""`ClassLabels`: the classes of a classifier, from labels as they come, with their WordNet senses.

Label files differ: ``tench``, ``tench, Tinca tinca``, ``n01440764``, ``n01440764 tench``,
``["n01440764", "tench"]``. All of them become one readable name, a synset if it is known, and
synonyms. Plain names stay as they are.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from rankshot.core.errors import (
    RankshotError,
    format_count,
    join_some,
    prefix_errors,
    quote_names,
    short_repr,
    suggest_name,
)
from rankshot.core.files import decode_lines, iterate_names
from rankshot.sources.names.matching import (
    Label,
    NameMatcher,
    load_imagenet,
    parse_label,
    reduce_name,
    split_label,
)
from rankshot.sources.wordnet_nouns import is_sense, load_nouns

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
        Sentences on what was changed or is remarkable; empty if all labels are plain names.

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
        """The synsets that are known, by name: what `WordNet` takes as ``senses``."""
        pairs = zip(self.names, self.synsets, strict=True)
        return {name: synset for name, synset in pairs if synset is not None}

    @property
    def words(self) -> dict[str, str]:
        """The synonyms, where they say more than the name: what `compare_as` takes."""
        found = {}
        for name, words in zip(self.names, self.synonyms, strict=True):
            # Sources that take the first word they know should try the name first. They read the
            # name of a sense as its word.
            ordered = sorted(words, key=name.__ne__)
            if ordered != [name] and not is_sense(name):
                found[name] = ", ".join(ordered)
        return found

    def match(self, name: str) -> list[str]:
        """Return the class that ``name`` means; none, or several, if that cannot be said.

        The name may be written as in ``names``, ``given`` or ``synonyms``, as the whole list of
        synonyms, as a synset or as the name of a WordNet sense. Case, underscores, hyphens and
        spaces count only if classes differ by nothing else. A class's own name, and its first
        synonym, come before the other synonyms of other classes.
        """
        return self.matcher.match(name)

    def match_all(self, names: Iterable[str]) -> dict[str, str]:
        """Return the given label of the class that each name means.

        Names that mean no class, or several, are left out. The names are read as a list of labels
        as well, so that the cranes of ImageNet's list are distinguished by their places.
        """
        name_of: dict[int, str] = {}
        names = tuple(names)
        for name, readable in zip(names, read_class_labels(names).names, strict=True):
            rows = self.matcher.find_rows(name)
            if len(rows) != 1:
                rows = self.matcher.find_rows(readable)
            if len(rows) == 1:
                other = name_of.setdefault(rows[0], name)
                if other != name:
                    raise RankshotError(
                        f"{other!r} and {name!r} both mean the class {self.given[rows[0]]!r}"
                    )
        return {name: self.given[row] for row, name in name_of.items()}

    @cached_property
    def matcher(self) -> NameMatcher:
        """Finds the class that a name means."""
        return NameMatcher(self.names, self.given, self.synonyms, self.synsets)


def read_class_labels(
    source: str | Path | Sequence[Any] | Mapping[Any, Any] | ClassLabels,
) -> ClassLabels:
    """Read the classes of a classifier, in the order of its outputs, from labels as they come.

    Labels that are lists of synonyms separated by commas (``tench, Tinca tinca``), WordNet ids
    (``n01440764``), or ids with words (``n01440764 tench``, ``["n01440764", "tench"]``) get a
    readable name; ``changes`` says so. Plain names stay as they are, underscores included. Labels
    that are ImageNet's 1,000 classes in their order are recognised, and get the names and synsets
    of ``imagenet-1k``.

    Parameters
    ----------
    source : str, Path, sequence or mapping
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
    if isinstance(source, ClassLabels):
        return source
    if isinstance(source, str) and source == IMAGENET:
        return load_imagenet_labels()
    raw, where = _list_labels(source)
    with prefix_errors(where):
        return _build([_as_label(label, i) for i, label in enumerate(raw)])


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
            raise RankshotError(
                f"{source!r} is neither a file nor a list that is built in"
                f"{suggest_name(source, [IMAGENET])}; built in: {IMAGENET!r}"
            )
        content, where = _read_structure(path), str(path)
    is_ordered = isinstance(content, Iterable) and not isinstance(content, (bytes, set, frozenset))
    labels = list(content) if is_ordered else []
    if isinstance(content, Mapping) and labels:
        labels = _list_mapping(content, where)
    if not labels:
        raise RankshotError(
            f"{where}: no labels in it; expected a file, a sequence or a mapping of labels, not "
            f"{short_repr(content)}"
        )
    return labels, where


def _read_structure(path: Path) -> Any:
    """Return the list or the object in a file; a text file is a list of its lines."""
    with path.open("rb") as stream:
        text = "".join(line for _, line in decode_lines(stream, path))
    is_json = path.suffix.lower() == ".json"
    if is_json or text.lstrip()[:1] in {"[", "{"}:
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            problem = error
        try:
            # The list of ImageNet's classes that is copied most is a dictionary of Python.
            return ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            if is_json:
                raise RankshotError(f"{path}: not JSON: {problem}") from None
    return [name for _, name in iterate_names(path)]


def _list_mapping(mapping: Mapping[Any, Any], where: str) -> list[Any]:
    """Return the labels of a mapping from index to label or from label to index, by index."""
    for field in ("id2label", "label2id"):
        if isinstance(mapping.get(field), Mapping):
            return _list_mapping(mapping[field], f"{where}: {field}")
    if "model_type" in mapping or "architectures" in mapping:
        raise RankshotError(
            f"{where}: has no id2label, so the model has no class names: give a list of them"
        )
    keys, values = list(mapping), list(mapping.values())
    if all(map(_is_index, values)) and not all(type(key) is int for key in keys):
        keys, values = values, keys
    label_of = {int(key): label for key, label in zip(keys, values, strict=True) if _is_index(key)}
    wanted = range(len(mapping))
    if missing := [index for index in wanted if index not in label_of]:
        odd = [key for key in keys if not _is_index(key) or int(key) not in wanted]
        raise RankshotError(
            f"{where}: {len(mapping)} labels must have the indices 0 to {len(mapping) - 1}, each "
            f"once; missing: {quote_names(missing, 4)}; found instead: {quote_names(odd, 4)}"
        )
    return [label_of[index] for index in wanted]


def _is_index(value: object) -> bool:
    return isinstance(value, (int, str)) and str(value).isascii() and str(value).isdecimal()


def _as_label(raw: Any, number: int) -> Label:
    """Return a label; ``number`` is that of the output, for messages."""
    if isinstance(raw, (list, tuple)) and len(raw) == 2 and _ID.fullmatch(str(raw[0])):
        # Keras lists pairs of a synset and a name.
        raw = f"{raw[0]} {raw[1]}"
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = str(raw)
    if not isinstance(raw, str) or not raw.strip():
        raise RankshotError(f"label {number} must be text, not {short_repr(raw)}")
    return parse_label(str(raw).strip())


# ---- From labels to classes


def _build(labels: Sequence[Label]) -> ClassLabels:
    labels, remarks = _recognise_imagenet(labels)
    named = [label.describe() for label in labels]
    synonyms = tuple(words for _, words in named)
    names = _tell_apart([name for name, _ in named], synonyms, labels)
    return ClassLabels(
        names,
        tuple(label.synset for label in labels),
        synonyms,
        tuple(label.given for label in labels),
        (*remarks, *_describe_changes(labels, names)),
    )


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
    more = [
        _distinguish(name, words, label.synset)
        for name, words, label in zip(names, synonyms, labels, strict=True)
    ]
    while shared := _find_shared(found, labels):
        words = {i: word for i in shared if (word := next(more[i], None)) is not None}
        if not words:
            break
        for i, word in words.items():
            found[i] = f"{names[i]} ({word})"
    if len(set(found)) < len(found):
        name = Counter(found).most_common(1)[0][0]
        same = [i for i, other in enumerate(found) if other == name]
        raise RankshotError(
            f"{labels[same[0]].given!r} occurs more than once (labels "
            f"{', '.join(map(str, same))}, counted from 0), and nothing tells the classes apart: "
            "give each its own name, or its WordNet id, as in 'n02012849 crane'"
        )
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
            f"{format_count(len(odd), 'label')}, such as {odd[0]!r}, stand for names that the "
            "model does not have: no source knows them. Give the real names"
        )
    if odd := [
        label.given for label in labels if label.synset is None and _ID.fullmatch(label.given)
    ]:
        yield f"WordNet 3.0 has no noun {quote_names(odd, 4)}: kept as names"

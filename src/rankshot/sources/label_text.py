"""One label as it comes: the WordNet synset that it names, its words, and a readable name."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from rankshot.core.errors import RankshotError, short_repr
from rankshot.sources.class_names import reduce_name
from rankshot.sources.wordnet_nouns import is_sense, load_nouns

WITH_ID = re.compile(r"(n\d{8})(?:[\s,:;_-]+(\S.*))?", re.IGNORECASE | re.DOTALL)
"""A WordNet id, alone or with words."""
_ENUMERATION = re.compile(r"(^|\s)(and|or|&)\s")
"""What the last part of "arts, culture and sports" has: such a name is no list of synonyms."""


@lru_cache(maxsize=1)
def load_imagenet() -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the name and the synonyms of ImageNet's 1,000 classes, by their synsets, in order.

    The name of a class is its first synonym, except where two classes would have the same one.
    """
    path = files("rankshot.sources") / "data" / "imagenet_classes.tsv"
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()[1:]]
    return {synset: (name, tuple(words.split(", "))) for synset, name, words in rows}


@lru_cache(maxsize=1)
def _load_qualified() -> dict[str, str]:
    """Return the synsets of ImageNet's names that are no words, such as crane (bird)."""
    return {name: synset for synset, (name, _) in load_imagenet().items() if name.endswith(")")}


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


def as_label(raw: Any, number: int) -> Label:
    """Return a label; ``number`` is that of the output, for messages."""
    if isinstance(raw, (list, tuple)) and len(raw) == 2 and is_id(raw[0]):
        # Keras lists pairs of a synset and a name.
        raw = f"{raw[0]} {raw[1]}"
    if isinstance(raw, int) and not isinstance(raw, bool):
        raw = str(raw)
    if not isinstance(raw, str) or not raw.strip():
        raise RankshotError(f"label {number} must be text, not {short_repr(raw)}")
    return parse_label(str(raw).strip())


def is_id(text: object) -> bool:
    """Return whether a text has the form of a WordNet id, such as ``n02012849``."""
    return isinstance(text, str) and bool(re.fullmatch(r"n\d{8}", text))


def parse_label(text: str) -> Label:
    """Return what a text names: an id, a sense, synonyms, or a plain name.

    Examples
    --------
    >>> for text in ("n02012849 crane", "tench, Tinca tinca", "crane.n.05", "water_lilly"):
    ...     print(*parse_label(text)[1:])
    n02012849 ('crane',)
    None ('tench', 'Tinca tinca')
    n02012849 ('crane.n.05',)
    None ('water_lilly',)
    """
    if found := WITH_ID.fullmatch(text):
        synset = found[1].lower()
        if _is_known(synset):
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


def _is_known(synset: str) -> bool:
    return synset in load_imagenet() or load_nouns().has_id(synset)


def describe_synset(synset: str) -> tuple[str, tuple[str, ...]]:
    """Return the readable name of a synset, and its words."""
    if synset in load_imagenet():
        return load_imagenet()[synset]
    nouns = load_nouns()
    words = [word.replace("_", " ") for word in nouns.words(nouns.synset(synset))]
    return words[0], tuple(words)


def name_label(label: Label) -> tuple[str, tuple[str, ...]]:
    """Return the readable name of a label, and all words for its class."""
    if label.synset is None:
        return label.words[0], label.words
    own_name, own_words = describe_synset(label.synset)
    if label.is_plain:
        return label.given, own_words
    own = {reduce_name(own_name), reduce_name(own_words[0])}
    is_own = not label.words or reduce_name(label.words[0]) in own
    name = own_name if is_own else label.words[0]
    # "crane (bird)" is a name, but no word that sources could look up.
    words = [word for word in label.words if word != own_name or word in own_words]
    spelling: dict[str, str] = {}
    for word in (*words, *own_words):
        spelling.setdefault(reduce_name(word), word)
    return name, tuple(spelling.values())

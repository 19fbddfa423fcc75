"""`LookAlikes`: rankings of seen classes from the built-in dictionaries, offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, format_count, quote_names
from rankshot.core.validation import as_names, require_choice
from rankshot.ranking.rankings import Rankings
from rankshot.sources.dictionary import FILES, Dictionary, Entry, load_dictionary
from rankshot.sources.prompts import LIST_LENGTH
from rankshot.sources.wordnet_nouns import load_nouns

Floats = NDArray[np.float64]
DIRECT_SHARE = 0.5
"""The share of the listed classes that must be seen for the lists to be used as they are."""
REMEDY = "give another word for what the inputs show, or the list of a language model"
UNCERTAIN_WEIGHT = 0.5
"""The weight of rankings for nouns that are not in the dictionary, beside those that are."""


@dataclass(frozen=True)
class NamedRankings:
    """The rankings of classes of which only the names are known.

    Attributes
    ----------
    rankings : Rankings or None
        The rankings of all sources; None if no class was ranked.
    unknown : tuple of str
        The classes that no source ranked.
    notes : tuple of str
        Which source was used and what would be better; how names were looked up that were not
        found as they are written; and the remedy for unknown classes.

    Examples
    --------
    >>> import rankshot as rs
    >>> found = rs.LookAlikes().look_up(["gerenouk", "justice"], ["gazelle", "bus", "zebra"])
    >>> print(*found.notes, sep="; ")
    'gerenouk' is read as 'gerenuk'; 'justice' is not in the dictionary, and usually is not a
    thing: give another word for what the inputs show, or the list of a language model
    """

    rankings: Rankings | None
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


class LookAlikes:
    """Rankings from a dictionary: which classes look, or sound, like 7,248 things or 1,445 sounds.

    For each noun of the dictionary, two raters (language models that saw only names) wrote down
    which of ImageNet's 1,000 classes, or of AudioSet's 521, a classifier of these would predict
    most often. If the seen classes are most of these classes, the lists are used as they are.
    Otherwise a ranking follows the cosine of the entries of two nouns, in which classes that are
    listed together count as alike; then the seen classes must be in the dictionary as well.

    Names are found in any spelling, in the plural, and by synonyms in WordNet. A noun that is not
    in the dictionary gets a mixture of the entries near it, by WordNet and, if the GloVe vectors
    are installed, by these. `look_up` reports what was used.

    Parameters
    ----------
    kind : {"auto", "images", "sounds"}
        The dictionary. By default it is the one that has more of the seen classes.

    Examples
    --------
    >>> import rankshot as rs
    >>> source = rs.LookAlikes()
    >>> source.rankings(["okapi"], ["zebra", "bus", "tiger", "gazelle"]).select(rater="1")
    Rankings: 1 ranking of 4 items, 1 target, 1 source, 1 rater
      okapi: zebra > gazelle > tiger > bus
    >>> source.look_up(["okapi", "seamonkey"], ["zebra", "bus", "tiger", "gazelle"]).unknown
    ('seamonkey',)
    """

    def __init__(self, kind: str = "auto") -> None:
        self.kind = require_choice("kind", kind, ("auto", *FILES))

    @cached_property
    def dictionaries(self) -> list[Dictionary]:
        """The dictionaries to choose from."""
        return [load_dictionary(kind) for kind in (FILES if self.kind == "auto" else [self.kind])]

    def rankings(self, targets: Iterable[object], items: Iterable[object]) -> Rankings:
        """Rank the first 15 items for each target, by each rater.

        Targets for which there is nothing are left out; `look_up` names them.
        """
        target_names = as_names(targets, "targets")
        found = self.look_up(target_names, items)
        if found.rankings is None:
            problem = "is not in the dictionary, and no noun near it is"
            raise InputError("targets", target_names[0], problem, hint=REMEDY)
        return found.rankings

    def find_items(
        self,
        items: tuple[str, ...],
        senses: Mapping[str, str] | None = None,
        words: Mapping[str, str] | None = None,
    ) -> ItemNames:
        """Find the seen classes in the dictionary that has more of them."""
        synsets = {name: load_nouns().synset(sense) for name, sense in (senses or {}).items()}
        options = [ItemNames(each, items, synsets, words or {}) for each in self.dictionaries]
        # A classifier of the listed classes themselves needs no comparison, which takes a second.
        direct = (option for option in options if option.is_direct)
        # The first of equals: images.
        return next(direct, None) or max(options, key=lambda option: option.known_share)

    def look_up(
        self,
        targets: Iterable[object],
        items: Iterable[object],
        senses: Mapping[str, str] | None = None,
        words: Mapping[str, str] | None = None,
    ) -> NamedRankings:
        """Rank the items, and report how all names were found.

        Parameters
        ----------
        targets, items : iterables of names
            The new classes, and the seen classes.
        senses : mapping of name to sense, optional
            Known WordNet senses or ids of some names, as for `WordNet`.
        words : mapping of name to words, optional
            What is looked up instead of some names.
        """
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        chosen = self.find_items(item_names, senses, words)
        dictionary = chosen.dictionary
        entries = chosen.find(target_names)
        found = {name: entry for name, entry in entries.items() if entry is not None}
        scores = chosen.score(dictionary.stack(found.values()))
        rows: list[tuple[list[str], str, str]] = []
        for target, by_rater in zip(found, scores, strict=True):
            for rater, values in enumerate(by_rater, 1):
                best = [i for i in np.argsort(-values, kind="stable") if values[i] > -np.inf]
                order = [item_names[i] for i in best if item_names[i] != target][:LIST_LENGTH]
                if order:
                    rows.append((order, target, str(rater)))
        listed = {target for _, target, _ in rows}
        notes = [entry.note for name, entry in found.items() if entry.note and name in listed]
        unknown = tuple(name for name in target_names if name not in listed)
        for name in unknown:
            reason = "is not in the dictionary, and no noun near it is"
            if name in found:
                reason = "is not like any of the seen classes in the dictionary"
            elif dictionary.kind == "images" and dictionary.is_abstract(name):
                reason = "is not in the dictionary, and usually is not a thing"
            notes.append(f"{name!r} {reason}: {REMEDY}")
        notes += chosen.notes
        if not rows:
            return NamedRankings(None, unknown, tuple(notes))
        orders, targets, raters = zip(*rows, strict=True)
        rankings = Rankings.from_orders(
            orders,
            items=item_names,
            targets=targets,
            sources=dictionary.source,
            raters=raters,
            weights=[1.0 if found[name].is_certain else UNCERTAIN_WEIGHT for name in targets],
        )
        return NamedRankings(rankings, unknown, tuple(notes))


@dataclass(frozen=True)
class ItemNames:
    """The seen classes in a dictionary: as listed classes, or else as nouns with entries.

    ``synsets`` are known senses of some names, ``words`` what is looked up instead of some.
    """

    dictionary: Dictionary
    items: tuple[str, ...]
    synsets: Mapping[str, int]
    words: Mapping[str, str]

    @cached_property
    def listed(self) -> dict[str, int]:
        """The numbers of the seen classes that are listed classes."""
        return self.dictionary.match_classes(self.items)

    @property
    def is_direct(self) -> bool:
        """Whether the lists are used as they are."""
        return len(self.listed) >= DIRECT_SHARE * len(self.dictionary.classes)

    @cached_property
    def uncertain(self) -> tuple[str, ...]:
        """The seen classes that are not in the dictionary, as written or by a synonym."""
        find, words = self.dictionary.find_certain, self.words
        others = [name for name in self.items if name not in self.listed]
        entries = [find(words.get(name, name), self.synsets.get(name)) for name in others]
        return tuple(name for name, one in zip(others, entries, strict=True) if one is None)

    @property
    def known_share(self) -> float:
        """The share of the other seen classes."""
        return 1 - len(self.uncertain) / len(self.items)

    @cached_property
    def entries(self) -> dict[str, Entry | None]:
        """The entries of the seen classes, where these are compared by them."""
        return {} if self.is_direct else self.find(self.items)

    def find(self, names: Sequence[str]) -> dict[str, Entry | None]:
        """Return the entries of names, or of the words for them."""
        text_of = {name: self.words.get(name, name) for name in names}
        known = {text: self.synsets[n] for n, text in text_of.items() if n in self.synsets}
        found = self.dictionary.find(dict.fromkeys(text_of.values()), known)
        return {name: found[text] for name, text in text_of.items()}

    @property
    def unknown(self) -> tuple[str, ...]:
        """The seen classes that are never listed."""
        known = self.listed if self.is_direct else self.entries
        return tuple(name for name in self.items if known.get(name) is None)

    @property
    def notes(self) -> list[str]:
        """What was used in place of the seen classes that were not found as they are written."""
        notes = [entry.note for entry in self.entries.values() if entry and entry.note]
        if self.unknown:
            count = format_count(len(self.unknown), "seen class")
            notes.append(
                f"{count} not in the dictionary, never listed: {quote_names(self.unknown)}"
            )
        return notes

    def score(self, targets: Floats) -> Floats:
        """Return how similar each item is to each target, by rater; -inf if it is not listed.

        ``targets`` has the shape (targets, raters, classes).
        """
        values = np.full((*targets.shape[:2], len(self.items)), -np.inf)
        known = np.flatnonzero(~np.isin(self.items, self.unknown))
        if self.is_direct:
            weights = targets[:, :, [self.listed[self.items[i]] for i in known]]
            values[:, :, known] = np.where(weights > 0, weights, -np.inf)
            return values
        own = self.dictionary.stack(entry for entry in self.entries.values() if entry is not None)
        for rater in range(targets.shape[1]):
            of_targets, of_items = (
                self.dictionary.project(some[:, rater], rater) for some in (targets, own)
            )
            values[:, rater, known] = of_targets @ of_items.T
        return values

"""From a name to its possible WordNet senses.

A name can be a noun in some spelling, several synonyms separated by commas, the name of a sense
such as ``crane.n.04``, or WordNet's id of a synset such as ``n02012849``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from rankshot.core.errors import RankshotError, quote_names
from rankshot.sources.wordnet_nouns import CATEGORIES, Nouns, is_sense

_NUMBERED = re.compile(r"(.*[^-_+\s\d(])[-_+\s]*(\d+|\(\d+\))", re.DOTALL)
"""A name that a number at its end makes different from another one, such as crane 2."""
_QUALIFIED = re.compile(r"(.*\S)\s*\(([^()]*[^()\d\s][^()]*)\)", re.DOTALL)
"""A name that a word in parentheses makes different from another one, such as crane (bird)."""


class UnknownNounError(RankshotError):
    """WordNet has no noun for a name."""


class ExcludedNounError(UnknownNounError):
    """WordNet has a noun for a name, but none of the categories that the user allows."""


@dataclass(frozen=True)
class SenseCandidate:
    """A possible sense of a name.

    Attributes
    ----------
    synset : int
        The sense.
    count : int
        How often the noun was tagged with this sense in a corpus.
    is_capital : bool
        Whether the noun has a capital letter in this sense.
    is_first : bool
        Whether the noun is the first word of the synset.
    is_complete : bool
        Whether the name has all words of the synset.
    """

    synset: int
    count: int
    is_capital: bool
    is_first: bool
    is_complete: bool


@dataclass(frozen=True)
class SenseCandidates:
    """The possible senses of a name, how it was looked up, if not as it is, and if it is pinned."""

    name: str
    candidates: tuple[SenseCandidate, ...]
    note: str | None
    is_pinned: bool = False

    @property
    def synsets(self) -> tuple[int, ...]:
        """The possible senses."""
        return tuple(candidate.synset for candidate in self.candidates)


def find_candidates(nouns: Nouns, name: str, categories: Collection[str] | None) -> SenseCandidates:
    """Look up a name: as a sense, as synonyms, or as a noun.

    Examples
    --------
    >>> from rankshot.sources.wordnet_nouns import load_nouns
    >>> nouns = load_nouns()
    >>> for name in ("n02012849", "bow, bowknot", "maple_tree", "crane (bird)"):
    ...     print([nouns.name(synset) for synset in find_candidates(nouns, name, None).synsets])
    ['crane.n.05']
    ['bow.n.01']
    ['maple.n.02']
    ['crane.n.05']
    """
    if is_sense(name):
        return pin_sense(nouns, name, name)
    found = _find_synonyms(nouns, name) if "," in name else _find_noun(nouns, name, name)
    kept = [c for c in found.candidates if not categories or nouns.category(c.synset) in categories]
    if not kept:
        there = sorted({nouns.category(synset) for synset in found.synsets})
        raise ExcludedNounError(
            f"{name!r} has no sense in {quote_names(sorted(categories or ()))}, only in "
            f"{quote_names(there)}"
        )
    return replace(found, candidates=tuple(kept))


def pin_sense(nouns: Nouns, name: str, sense: str) -> SenseCandidates:
    """Return the sense of this name or id as the only candidate."""
    only = SenseCandidate(
        nouns.synset(sense), count=0, is_capital=False, is_first=True, is_complete=True
    )
    return SenseCandidates(name, (only,), None, is_pinned=True)


def _find_synonyms(nouns: Nouns, name: str) -> SenseCandidates:
    """Return the synsets that have the most of these words."""
    words = [word.strip() for word in name.split(",") if word.strip()]
    spellings = {word: lemmas for word in words if (lemmas := nouns.spellings(word))}
    if not spellings:
        return _find_noun(nouns, name, words[0] if words else name)
    votes = Counter(
        synset
        for lemmas in spellings.values()
        for synset in {synset for lemma in lemmas for synset in nouns.senses(lemma)}
    )
    most = {synset for synset, count in votes.items() if count == max(votes.values())}
    lemmas = list(dict.fromkeys(lemma for some in spellings.values() for lemma in some))
    unknown = [word for word in words if word not in spellings]
    note = f"{name!r}: WordNet has no noun {quote_names(unknown)}" if unknown else None
    return _collect(nouns, name, lemmas, most, note)


def _find_noun(nouns: Nouns, name: str, text: str) -> SenseCandidates:
    """Look up a text as the noun of a name: as it is, in the singular, or by its head.

    "maple tree" is not in WordNet, but a maple is a kind of tree. "aquarium fish" is not in
    WordNet either, and an aquarium is not a kind of fish, so it is looked up as a fish.
    """
    if lemmas := nouns.spellings(text):
        note = None if text == name else f"{name!r} was looked up as {lemmas[0]!r}"
        return _collect(nouns, name, lemmas, note=note)
    words = re.split(r"[-_+\s]+", text.lower().strip("-_+ "))
    singulars = [" ".join([*words[:-1], last]) for last in nouns.singulars(words[-1])]
    for other in [" ".join(words), *singulars]:
        if words[-1] and (lemmas := nouns.spellings(other)):
            return _collect(nouns, name, lemmas, note=f"{name!r} was looked up as {lemmas[0]!r}")
    if qualified := _QUALIFIED.fullmatch(text):
        return _find_qualified(nouns, name, *qualified.groups())
    if numbered := _NUMBERED.fullmatch(text):
        return _find_noun(nouns, name, numbered[1])
    if len(words) > 1:
        for last in [words[-1], *nouns.singulars(words[-1])]:
            if heads := nouns.spellings(last):
                return _find_by_head_noun(nouns, name, " ".join(words[:-1]), heads)
    raise UnknownNounError(f"WordNet has no noun {name!r}")


def _find_qualified(nouns: Nouns, name: str, noun: str, kind: str) -> SenseCandidates:
    """Return the senses of a noun that are of some kind, or all of them if none is."""
    found = _find_noun(nouns, name, noun)
    above = {synset for lemma in nouns.spellings(kind) for synset in nouns.senses(lemma)}
    kept = tuple(c for c in found.candidates if above & nouns.ancestors(c.synset).keys())
    return replace(found, candidates=kept, note=None) if kept else found


def _find_by_head_noun(
    nouns: Nouns, name: str, first: str, heads: Sequence[str]
) -> SenseCandidates:
    above = set(nouns.senses(heads[0]))
    if lemmas := nouns.spellings(first):
        kinds = {
            synset
            for lemma in lemmas
            for synset in nouns.senses(lemma)
            if above & nouns.ancestors(synset).keys()
        }
        if kinds:
            note = f"{name!r} was looked up as {lemmas[0]!r}, a kind of {heads[0]!r}"
            return _collect(nouns, name, lemmas, kinds, note)
    note = f"{name!r} was looked up as its head noun, {heads[0]!r}"
    return _collect(nouns, name, heads, note=note)


def _collect(
    nouns: Nouns,
    name: str,
    lemmas: Sequence[str],
    allowed: Collection[int] | None = None,
    note: str | None = None,
) -> SenseCandidates:
    """Return the senses of some lemmas, in the order of the name's words and WordNet's."""
    given = Counter(synset for lemma in lemmas for synset in nouns.senses(lemma))
    as_written = nouns.spellings(lemmas[0])
    found: dict[int, SenseCandidate] = {}
    for lemma in lemmas:
        for synset, count, is_capital in zip(
            nouns.senses(lemma), nouns.counts(lemma), nouns.capitals(lemma), strict=True
        ):
            if synset not in found and (allowed is None or synset in allowed):
                is_first = nouns.word(synset) in as_written
                is_complete = given[synset] == int(nouns.word_counts[synset])
                found[synset] = SenseCandidate(synset, count, is_capital, is_first, is_complete)
    return SenseCandidates(name, tuple(found.values()), note)


def require_categories(categories: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the categories as a tuple; they must be WordNet's lexical categories of nouns."""
    if categories is None:
        return None
    if isinstance(categories, str):
        raise RankshotError(f"categories must be a list of names, not {categories!r}")
    chosen = tuple(categories)
    if not chosen:
        raise RankshotError("categories is empty: no sense would be left")
    for category in chosen:
        if category not in CATEGORIES:
            raise RankshotError(f"no category {category!r}; there are {', '.join(CATEGORIES)}")
    return chosen

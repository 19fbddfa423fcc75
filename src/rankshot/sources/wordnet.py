"""`WordNet`: similarities of names by their senses in WordNet's noun hierarchy, offline.

A name can be a noun in some spelling, several synonyms separated by commas, the name of a sense
such as ``crane.n.04``, or WordNet's id of a synset such as ``n02012849``.

The most common sense is often wrong: a leopard is a fur, a seal is wax, a mole is a unit. The
other names help: in a list with tigers, wolves and otters, a seal is an animal. So the senses of
all names of a list are chosen together.

The model is a naive Bayes classifier whose rates are learnt from the list itself. A name i has the
sense s with a probability proportional to the product of

- the density of the list around s: the sum over the synsets v above s, and s itself, of n(v)/|v|,
  where n(v) is the expected number of other names below v, and |v| the number of synsets below v.
  This is a kernel density estimate: draw another name, go up to a synset v above it, and draw any
  synset below v;
- the number of other names in its lexical category, to the power `WEAK_POWER`;
- how often a sense of this list has kinds below it, compared with WordNet, to the power
  `WEAK_POWER`;
- how often the noun was tagged with the sense, to the power `WEAK_POWER`: class lists are not
  running text, and most senses were never tagged;
- how often a name of this list is the first word of its synset, and how often it has all words of
  a synset of several words, as "goldfish, Carassius auratus" does;
- how often a name of this list has a capital letter, if its sense is written with one or without.
  So Cardigan is a dog and cardigan a garment, unless capital letters mean nothing in the list;
- how likely no other name has the sense, as two names rarely mean the same.

All rates and expected numbers come from the posterior of the last round, as in the EM algorithm.
What was seen k times among n has the rate (k + 1/2)/(n + 1).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import InputError, count_others, quote_names, suggest_name
from rankshot.core.validation import as_names, require_choice
from rankshot.sources.similarity import Similarity
from rankshot.sources.spelling import split_words
from rankshot.sources.wordnet_nouns import (
    CATEGORIES,
    MEASURES,
    NUMBER,
    compare_synsets,
    is_sense,
    load_nouns,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
WEAK_POWER = 0.5
"""The power of evidence that is vague or that partly repeats other evidence. Of the 303 names of
ImageNet's classes with several senses, 86.8% get the right one, and with 1, which is the model
without powers, 85.5%; with either, the senses of all of CIFAR's names but one are the same."""
DOUBT_PROBABILITY = 0.9
"""A sense that is less probable is shown with the second most probable one."""
MAX_ROUNDS, SETTLED_CHANGE = 50, 1e-4
_QUALIFIED = re.compile(r"(.*\S)\s*\(([^()]*[^()\d\s][^()]*)\)", re.DOTALL)
"""A name that a word in parentheses makes different from another one, such as crane (bird)."""


class WordNet:
    """Similarities from the noun hierarchy of WordNet 3.0, which comes with the package.

    The choice of the sense of a name matters more than the measure. You can pin the sense of a
    name. Otherwise, the senses of all targets and items are chosen jointly, so that they fit one
    another. The method `senses` reports the chosen senses, and how certain each choice is.

    A name can be a noun, several synonyms separated by commas ("goldfish, Carassius auratus"), the
    name of a sense ("crane.n.04") or WordNet's id of a synset ("n02012849").

    Parameters
    ----------
    measure : {"path", "wup"}
        Path length, or Wu and Palmer (1994).
    senses : mapping of name to sense, optional
        Pinned senses, such as ``{"seal": "seal.n.09"}``; they may be given for names that are not
        in WordNet. `read_look_up` reads them from a file.

    Examples
    --------
    >>> import rankshot as rs
    >>> animals = ["leopard", "seal", "mole", "otter", "wolf"]
    >>> wordnet = rs.WordNet()
    >>> print(wordnet.senses(["tiger", *animals])["seal"])
    seal.n.09 (animal, a kind of pinniped_mammal)
    >>> wordnet.similarity(["tiger"], animals).to_rankings()
    Rankings: 1 ranking of 5 items, 1 target, 1 source
      tiger: leopard > otter = wolf > mole > seal
    """

    def __init__(self, measure: str = "path", *, senses: Mapping[str, str] | None = None) -> None:
        self.measure = require_choice("measure", measure, MEASURES)
        self.pins = dict(senses or {})

    def senses(self, names: Iterable[object]) -> dict[str, Sense]:
        """Return the sense of each of the ``names``; all senses are chosen together.

        Names that WordNet does not know raise an error.
        """
        found, unknown = self._choose(as_names(names, "names"))
        if unknown:
            others = f"{load_nouns().hint(unknown[0])}{count_others(unknown)}"
            hint = "pin such a name to the sense of another word"
            raise InputError("names", unknown[0], f"is not a noun in WordNet{others}", hint=hint)
        return found

    def similarity(self, targets: Iterable[object], items: Iterable[object]) -> Similarity:
        """Return the similarity of ``targets`` with ``items``; NaN for names that WordNet lacks.

        The notes list, in this order: different names with the same sense; doubtful senses with
        the second most probable sense, most doubtful first; and names that were looked up in
        another form. `senses` returns all senses.
        """
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        for name in self.pins:
            if name not in target_names and name not in item_names:
                hint = suggest_name(name, target_names + item_names)
                raise InputError("senses", name, f"is neither a target nor an item{hint}")
        senses, _ = self._choose(tuple(dict.fromkeys(target_names + item_names)))
        rows, columns = (
            [i for i, name in enumerate(names) if name in senses]
            for names in (target_names, item_names)
        )
        nouns = load_nouns()
        values = np.full((len(target_names), len(item_names)), np.nan)
        values[np.ix_(rows, columns)] = compare_synsets(
            self.measure,
            [nouns.synset(senses[target_names[i]].name) for i in rows],
            [nouns.synset(senses[item_names[j]].name) for j in columns],
        )
        source, notes = f"wordnet-{self.measure}", _list_notes(senses)
        return Similarity(values, target_names, item_names, source, notes)

    def _choose(self, names: Sequence[str]) -> tuple[dict[str, Sense], list[str]]:
        """Return the senses of the known names, and the unknown names."""
        candidates = {name: find_candidates(name, self.pins.get(name)) for name in names}
        unknown = [name for name, found in candidates.items() if found is None]
        options = [_prefer_first_words(found) for found in candidates.values() if found is not None]
        senses = {}
        for option, posterior in zip(options, choose_senses(options), strict=True):
            first, *others = (
                make_sense(option.synsets[i], float(posterior[i]))
                for i in np.argsort(-posterior, kind="stable")[:2]
            )
            senses[option.name] = replace(
                first, runner_up=next(iter(others), None), note=option.note
            )
        return senses, unknown


def _list_notes(senses: Mapping[str, Sense]) -> Iterator[str]:
    """Yield what is remarkable: shared senses, doubtful ones, and names in another form."""
    names: dict[str, list[str]] = {}
    for name, sense in senses.items():
        names.setdefault(sense.name, []).append(name)
    for shared, some in names.items():
        if len(some) > 1:
            yield f"WARNING: {quote_names(some)} have the same sense, {shared}"
    for _, name in sorted((one.probability, name) for name, one in senses.items()):
        if senses[name].is_doubtful:
            yield f"{name!r} is read as {senses[name]}; or is it {senses[name].runner_up}?"
    yield from (sense.note for sense in senses.values() if sense.note)


@dataclass(frozen=True)
class Sense:
    """The sense that was chosen for a name.

    Attributes
    ----------
    name : str
        The name of the sense in WordNet, such as ``leopard.n.02``.
    category : str
        Its lexical category, such as ``animal``.
    kind_of : str
        The first word of its hypernym.
    probability : float
        The probability of this sense: 1 for a pinned sense, and for the only sense of a name.
    runner_up : Sense or None
        The second most probable sense.
    note : str or None
        How the name was looked up, if not unchanged.

    Examples
    --------
    >>> import rankshot as rs
    >>> sense = rs.WordNet().senses(["crane", "heron", "stork"])["crane"]
    >>> print(sense)
    crane.n.05 (animal, a kind of wading_bird)
    >>> sense.is_doubtful, sense.runner_up.name
    (False, 'crane.n.04')
    """

    name: str
    category: str
    kind_of: str
    probability: float
    runner_up: Sense | None = None
    note: str | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.category}, a kind of {self.kind_of})"

    @property
    def is_doubtful(self) -> bool:
        """Whether the probability is below 0.9."""
        return self.probability < DOUBT_PROBABILITY


def make_sense(synset: int, probability: float) -> Sense:
    """Describe a synset."""
    nouns = load_nouns()
    parents = nouns.parents(synset)
    kind_of = nouns.word(parents[0]) if parents else "everything"
    return Sense(nouns.name(synset), nouns.category(synset), kind_of, probability)


# ---- The possible senses of a name


@dataclass(frozen=True)
class SenseCandidate:
    """A possible sense of a name.

    ``count`` says how often the noun was tagged with this sense in a corpus, ``is_capital`` whether
    it has a capital letter in this sense, ``is_first`` whether it is the first word of the synset,
    and ``is_complete`` whether the name has all words of the synset.
    """

    synset: int
    count: int = 0
    is_capital: bool = False
    is_first: bool = True
    is_complete: bool = True


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


def find_candidates(name: str, pin: str | None = None) -> SenseCandidates | None:
    """Look up a name: as the sense that it is pinned to, as a sense, synonyms, or a noun.

    None if WordNet has no noun for it.
    """
    if pin is not None or is_sense(name):
        only = SenseCandidate(load_nouns().synset(name if pin is None else pin))
        return SenseCandidates(name, (only,), None, is_pinned=True)
    return _find_synonyms(name) if "," in name else _find_noun(name, name)


def _prefer_first_words(found: SenseCandidates) -> SenseCandidates:
    """Leave out senses that have another first word than a compound name, if not all have.

    A sea horse, or seahorse, is a fish, although walruses have this name as well.
    """
    is_compound = any("_" in lemma for lemma in load_nouns().spellings(found.name))
    first = tuple(candidate for candidate in found.candidates if candidate.is_first)
    return replace(found, candidates=first) if is_compound and first else found


def _find_synonyms(name: str) -> SenseCandidates | None:
    """Return the synsets that have the most of these words."""
    nouns = load_nouns()
    words = [word.strip() for word in name.split(",") if word.strip()]
    spellings = {word: lemmas for word in words if (lemmas := nouns.spellings(word))}
    if not spellings:
        return next(filter(None, (_find_noun(name, word) for word in words)), None)
    votes = Counter(sense for some in spellings.values() for sense in nouns.list_senses(some))
    most = {synset for synset, count in votes.items() if count == max(votes.values())}
    lemmas = list(dict.fromkeys(lemma for some in spellings.values() for lemma in some))
    unknown = [word for word in words if word not in spellings]
    note = f"{name!r}: WordNet has no noun {quote_names(unknown)}" if unknown else None
    return _collect(name, lemmas, most, note)


def _find_noun(name: str, text: str) -> SenseCandidates | None:
    """Look up a text as the noun of a name: as it is, in the singular, or by its head.

    "maple tree" is not in WordNet, but a maple is a kind of tree. "aquarium fish" is not in
    WordNet either, and an aquarium is not a kind of fish, so it is looked up as a fish.
    """
    nouns = load_nouns()
    *first, last = split_words(text) or [""]
    singulars = nouns.singulars(last)
    for other in [text, *(" ".join([*first, word]) for word in (last, *singulars))]:
        if lemmas := nouns.spellings(other):
            note = None if other == name else f"{name!r} was looked up as {lemmas[0]!r}"
            return _collect(name, lemmas, note=note)
    if qualified := _QUALIFIED.fullmatch(text):
        found = _find_noun(name, qualified[1])
        kinds = _find_kinds(found.synsets if found else (), nouns.spellings(qualified[2]))
        kept = tuple(c for c in found.candidates if c.synset in kinds) if found else ()
        return replace(found, candidates=kept, note=None) if found and kept else found
    if (bare := NUMBER.sub("", text)) not in {"", text}:
        return _find_noun(name, bare)
    for head in [last, *singulars] if first else []:
        if heads := nouns.spellings(head):
            lemmas = nouns.spellings(" ".join(first))
            if kinds := _find_kinds(nouns.list_senses(lemmas), heads[:1]):
                note = f"{name!r} was looked up as {lemmas[0]!r}, a kind of {heads[0]!r}"
                return _collect(name, lemmas, kinds, note)
            note = f"{name!r} was looked up as its head noun, {heads[0]!r}"
            return _collect(name, heads, note=note)
    return None


def _find_kinds(synsets: Iterable[int], kinds: Iterable[str]) -> set[int]:
    """Return the synsets that are a kind of one of these nouns."""
    above = load_nouns().list_senses(kinds)
    return {synset for synset in synsets if above & load_nouns().ancestors(synset).keys()}


def _collect(
    name: str,
    lemmas: Sequence[str],
    allowed: Collection[int] | None = None,
    note: str | None = None,
) -> SenseCandidates:
    """Return the senses of some lemmas, in the order of the name's words and WordNet's."""
    nouns = load_nouns()
    given = Counter(synset for lemma in lemmas for synset in nouns.senses(lemma))
    as_written = nouns.spellings(lemmas[0])
    found: dict[int, SenseCandidate] = {}
    for lemma in lemmas:
        for synset, count, is_capital in nouns.tagged_senses(lemma):
            if synset not in found and (allowed is None or synset in allowed):
                is_first = nouns.word(synset) in as_written
                is_complete = given[synset] == int(nouns.word_counts[synset])
                found[synset] = SenseCandidate(synset, count, is_capital, is_first, is_complete)
    return SenseCandidates(name, tuple(found.values()), note)


# ---- The choice among them


def choose_senses(options: Sequence[SenseCandidates]) -> list[Floats]:
    """Return the probability of each candidate of each name, such that all fit one another."""
    if not options:
        return []
    listed = _SenseList(options)
    worth = listed.usage
    posterior = listed.normalize(worth)
    for _ in range(MAX_ROUNDS):
        worth = listed.weigh(posterior)
        last, posterior = posterior, listed.normalize(worth + listed.log_free(posterior))
        if np.abs(posterior - last).max() < SETTLED_CHANGE:
            break
    return listed.choose_in_turn(worth, posterior)


class _SenseList:
    """The candidates of all names of a list, one after the other, and what is known of each."""

    def __init__(self, options: Sequence[SenseCandidates]) -> None:
        nouns = load_nouns()
        every = [candidate for option in options for candidate in option.candidates]
        sizes = [len(option.candidates) for option in options]
        self.owner = np.repeat(np.arange(len(options)), sizes)
        self.is_changed = np.array([option.note is not None for option in options])
        self.names = np.array([option.name for option in options])
        self.starts = np.cumsum([0, *sizes[:-1]])
        # How often two names that can have one sense have it, which is never seen before the end.
        self.shared_rate = 0.5 / (len(options) + 1)
        synsets = [candidate.synset for candidate in every]
        _, self.place = np.unique(synsets, return_inverse=True)
        self.usage = WEAK_POWER * np.log([candidate.count + 0.5 for candidate in every])
        is_first, is_complete, is_capital = np.array(
            [(one.is_first, one.is_complete, one.is_capital) for one in every]
        ).T
        # How a pinned name is spelt says nothing about the others: it can be an id.
        is_spelt = np.array([not option.is_pinned for option in options])[self.owner]
        written = [option.name.partition(",")[0] for option in options]
        has_capital = np.array([text != text.lower() for text in written])[self.owner]
        # Flags of the spelling of candidates, each with the candidates among which it counts.
        self.spelling = (
            (is_first, is_spelt),
            (is_complete, is_spelt & (nouns.word_counts[synsets] > 1)),
            (has_capital, is_spelt & is_capital),
            (has_capital, is_spelt & ~is_capital),
        )
        self.is_leaf = nouns.sizes[synsets] == 1
        self.leaf_share = float((nouns.sizes == 1).mean())
        self.category = np.array([CATEGORIES.index(nouns.category(synset)) for synset in synsets])
        # One row for every candidate and synset above it, and for the candidate itself.
        above = [list(nouns.ancestors(synset)) for synset in synsets]
        self.below = np.repeat(np.arange(len(every)), [len(some) for some in above])
        self.above = np.concatenate([np.array(some) for some in above])
        self.kernel = 1 / nouns.sizes[self.above]

    def normalize(self, worth: Floats) -> Floats:
        """Return the softmax over the candidates of each name."""
        weight = np.exp(worth - np.maximum.reduceat(worth, self.starts)[self.owner])
        return np.asarray(weight / np.add.reduceat(weight, self.starts)[self.owner])

    def weigh(self, posterior: Floats) -> Floats:
        """Return the log-probability of each candidate, up to a constant for each name."""
        others = _sum_others(self.above, self.owner[self.below], posterior[self.below])
        density = np.bincount(self.below, others * self.kernel)
        in_category = _sum_others(self.category, self.owner, posterior)
        leaf = _log_rate(self.is_leaf, posterior)
        usual_leaf = np.log(np.where(self.is_leaf, self.leaf_share, 1 - self.leaf_share))
        return np.asarray(
            self.usage
            # One more name that can be anything: a name can be the only one in its list.
            + np.log(density + self.kernel.min())
            + WEAK_POWER * np.log(in_category + 0.5)
            + WEAK_POWER * (leaf - usual_leaf)
            + sum(_log_rate(flag, posterior, among) for flag, among in self.spelling)
        )

    def log_free(self, posterior: Floats) -> Floats:
        """Return how likely no other name has a candidate's sense."""
        taken = np.bincount(self.place, posterior)[self.place] - posterior
        return np.asarray(np.log(np.maximum(1 - taken, self.shared_rate)))

    def choose_in_turn(self, worth: Floats, posterior: Floats) -> list[Floats]:
        """Return the posteriors if names choose in turn, the surest first.

        Two names with the same candidates, such as crane and crane 2, have the same posterior. So
        the second of them must know what the first one took. Among equally sure names, those come
        first that were looked up as they are, crane before crane 2, and then the first by name.
        """
        ends = np.append(self.starts[1:], self.owner.size)
        free = np.ones(self.place.max() + 1)
        found: dict[int, Floats] = {}
        # Rounded, so that a tie is not decided by the order in which numbers were summed.
        surest = np.round(np.maximum.reduceat(posterior, self.starts), 9)
        for name in np.lexsort((self.names, self.is_changed, -surest)):
            rows = slice(self.starts[name], ends[name])
            own = np.round(worth[rows] + np.log(free[self.place[rows]]), 9)
            found[int(name)] = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
            free[self.place[rows][np.argmax(own)]] = self.shared_rate
        return [found[name] for name in range(len(found))]


def _sum_others(group: NDArray[np.intp], owner: NDArray[np.intp], values: Floats) -> Floats:
    """Return for each row the sum of the values in its group, without those of its own name."""
    _, own = np.unique(group * (owner.max() + 1) + owner, return_inverse=True)
    total = np.bincount(group, values)[group] - np.bincount(own, values)[own]
    return np.asarray(np.maximum(total, 0))


def _log_rate(flag: Bools, posterior: Floats, among: Bools | None = None) -> Floats:
    """Return the log-probability of each candidate's flag, and 0 for candidates not ``among``.

    The rate of the flag is learnt from the list.
    """
    among = np.ones_like(flag) if among is None else among
    weight = posterior * among
    rate = (weight @ flag + 0.5) / (weight.sum() + 1)
    return np.where(among, np.log(np.where(flag, rate, 1 - rate)), 0)

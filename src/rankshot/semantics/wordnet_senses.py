"""Word-sense disambiguation: which WordNet sense a name has.

The most common sense is often wrong: a leopard is a fur, a seal is wax, a mole is a unit. The
other names help: in a list with tigers, wolves and otters, a seal is an animal. So the senses of
all names of a list are chosen together, such that each is similar to its nearest neighbours.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names
from rankshot.semantics.wordnet_nouns import CATEGORIES, Nouns, lin

Floats = NDArray[np.float64]
NEIGHBOURS = 2
"""The number of other names that a sense is compared with: few, as a list may mix topics."""
NEIGHBOUR_WEIGHT = 25.0
"""The log-odds for a sense whose similarity to these neighbours is 1."""
MAX_ROUNDS, SETTLED = 30, 1e-4


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
    others : tuple of str
        The other possible senses of the name.
    note : str or None
        How the name was looked up, if not as it is.
    """

    name: str
    category: str
    kind_of: str
    others: tuple[str, ...]
    note: str | None

    def __str__(self) -> str:
        return f"{self.name} ({self.category}, a kind of {self.kind_of})"


@dataclass(frozen=True)
class SenseCandidates:
    """The possible senses of a name, their tag counts, and how the name was looked up."""

    name: str
    synsets: tuple[int, ...]
    counts: tuple[int, ...]
    note: str | None


def find_candidates(nouns: Nouns, name: str, categories: Collection[str] | None) -> SenseCandidates:
    """Look up a name: as it is, in the singular, as a kind of its head noun, or as its head noun.

    "maple tree" is not in WordNet, but a maple is a kind of tree. "aquarium fish" is not in
    WordNet either, and an aquarium is not a kind of fish, so it is looked up as a fish.
    """
    words = re.split(r"[-_+\s]+", name.lower().strip("-_+ "))
    exact = nouns.lemma(name)
    if exact:
        return _filter_by_category(nouns, name, exact, nouns.senses(exact), None, categories)
    tried = [name, *(" ".join([*words[:-1], last]) for last in nouns.singulars(words[-1]))]
    for text in [" ".join(words), *tried[1:]]:
        if words[-1] and (lemma := nouns.lemma(text)):
            note = f"{name!r} was looked up as {lemma!r}"
            return _filter_by_category(nouns, name, lemma, nouns.senses(lemma), note, categories)
    if len(words) > 1:
        for last in [words[-1], *nouns.singulars(words[-1])]:
            tried.append(last)
            if head := nouns.lemma(last):
                return _find_by_head_noun(nouns, name, " ".join(words[:-1]), head, categories)
    raise RankshotError(f"WordNet has no noun for {name!r} (tried {quote_names(tried)})")


def _find_by_head_noun(
    nouns: Nouns, name: str, first: str, head: str, categories: Collection[str] | None
) -> SenseCandidates:
    above = set(nouns.senses(head))
    if lemma := nouns.lemma(first):
        kinds = [s for s in nouns.senses(lemma) if above & nouns.ancestors(s).keys()]
        if kinds:
            note = f"{name!r} was looked up as {lemma!r}, a kind of {head!r}"
            return _filter_by_category(nouns, name, lemma, kinds, note, categories)
    note = f"{name!r} was looked up as its head noun, {head!r}"
    return _filter_by_category(nouns, name, head, nouns.senses(head), note, categories)


def _filter_by_category(
    nouns: Nouns,
    name: str,
    lemma: str,
    synsets: Sequence[int],
    note: str | None,
    categories: Collection[str] | None,
) -> SenseCandidates:
    usage = dict(zip(nouns.senses(lemma), nouns.counts(lemma), strict=True))
    kept = [s for s in synsets if categories is None or nouns.category(s) in categories]
    if not kept:
        there = sorted({nouns.category(s) for s in synsets})
        raise RankshotError(
            f"{name!r} has no sense in {quote_names(sorted(categories or ()))}, only in "
            f"{quote_names(there)}"
        )
    return SenseCandidates(name, tuple(kept), tuple(usage[s] for s in kept), note)


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


def choose_senses(nouns: Nouns, options: Sequence[SenseCandidates]) -> list[int]:
    """Choose one sense for every name, such that the senses of the list fit one another.

    As in a naive Bayes classifier, three log-odds are added for a sense: how common it is; how
    common its lexical category is in the list, which is learnt from the list itself (an elephant
    can only be an animal, so a leopard is an animal rather than a fur, although foxes, rabbits
    and beavers can be furs as well); and its similarity to the nearest senses of other names. The
    posterior is iterated until it converges, as in the EM algorithm.
    """
    synsets = [synset for option in options for synset in option.synsets]
    owner = np.repeat(np.arange(len(options)), [len(option.synsets) for option in options])
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    distinct, place = np.unique(synsets, return_inverse=True)
    # Single precision saves memory: a list of ambiguous names has many pairs of senses.
    distinct_alike = lin(nouns, distinct.tolist(), distinct.tolist()).astype(np.float32)
    alike = distinct_alike[np.ix_(place, place)]
    # Two names of a list mean different things: a sense that both could have is no evidence.
    alike[place[:, None] == place] = 0
    category = np.array([CATEGORIES.index(nouns.category(synset)) for synset in synsets])
    usage = np.concatenate([_log_usage(option) for option in options])
    posterior = _softmax_per_name(usage, owner, starts)
    for _ in range(MAX_ROUNDS):
        # Each category gets half a name more, so that none is excluded.
        common = 0.5 + np.bincount(category, posterior, minlength=len(CATEGORIES))
        weighted = alike * posterior.astype(np.float32)
        to_names = np.maximum.reduceat(weighted, starts, axis=1)
        worth = (
            usage
            + np.log(common)[category]
            + NEIGHBOUR_WEIGHT * _neighbour_similarity(to_names, owner)
        )
        last, posterior = posterior, _softmax_per_name(worth, owner, starts)
        if np.abs(posterior - last).max() < SETTLED:
            break
    ends = np.append(starts[1:], owner.size)
    return [
        synsets[begin + int(np.argmax(posterior[begin:end]))]
        for begin, end in zip(starts, ends, strict=True)
    ]


def _log_usage(option: SenseCandidates) -> Floats:
    """Return the log-probability of each sense by its tag count; without counts, by its rank."""
    counts = np.array(option.counts) + 1 / (1 + np.arange(len(option.counts)))
    return np.asarray(np.log(counts / counts.sum()))


def _softmax_per_name(worth: Floats, owner: NDArray[np.intp], starts: NDArray[np.intp]) -> Floats:
    """Return the softmax over the senses of each name."""
    weight = np.exp(worth - np.maximum.reduceat(worth, starts)[owner])
    return np.asarray(weight / np.add.reduceat(weight, starts)[owner])


def _neighbour_similarity(to_names: NDArray[np.float32], owner: NDArray[np.intp]) -> Floats:
    """Return the mean similarity of each sense to its nearest other names."""
    others = to_names.copy()
    others[np.arange(len(owner)), owner] = -np.inf
    nearest = min(NEIGHBOURS, others.shape[1] - 1)
    if nearest == 0:
        return np.zeros(len(owner))
    top = np.partition(others, -nearest, axis=1)[:, -nearest:]
    return np.asarray(top.mean(axis=1))

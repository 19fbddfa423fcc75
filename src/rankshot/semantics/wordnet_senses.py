"""Which sense of a word is meant: the choice that matters more than the measure.

First senses mislead: a leopard is a fur, a seal is wax, a mole is a unit. What helps is company: in
a list with tigers, wolves and otters, a seal is an animal. So the senses of all names are
chosen together, each to be near its nearest neighbours in the list.
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
"""How many of the other names a sense should be near: a few, for a list holds many kinds."""
NEIGHBOUR_WEIGHT = 25.0
"""What a similarity of 1 to those neighbours counts, as a log-odds."""
MAX_ROUNDS, SETTLED = 30, 1e-4


@dataclass(frozen=True)
class SenseCandidates:
    """The senses that a name can have, and how it was looked up."""

    name: str
    synsets: tuple[int, ...]
    counts: tuple[int, ...]
    note: str | None


def find_candidates(nouns: Nouns, name: str, categories: Collection[str] | None) -> SenseCandidates:
    """Look up a name: as it is, in the singular, as a kind of its head noun, or as its head noun.

    "maple tree" is not in WordNet, but a maple is a kind of tree; "aquarium fish" is not, and
    an aquarium is no kind of fish, so it is looked up as a fish.
    """
    words = re.split(r"[-_+\s]+", name.lower().strip("-_+ "))
    as_it_stands = nouns.lemma(name)
    if as_it_stands:
        return _filter_by_category(
            nouns, name, as_it_stands, nouns.senses(as_it_stands), None, categories
        )
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
            f"{name!r} has no sense in {quote_names(sorted(categories or ()))}, only in {quote_names(there)}"
        )
    return SenseCandidates(name, tuple(kept), tuple(usage[s] for s in kept), note)


def require_categories(categories: Iterable[str] | None) -> tuple[str, ...] | None:
    """Return the categories, and refuse what is not one of WordNet's categories of nouns."""
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
    """Choose one sense for every name, by what the other names in the list are.

    Three things speak for a sense, as in a naive Bayes classifier: how usual it is; how common
    its lexical category is in the list, which is learnt from the list itself (elephants can
    only be animals, so leopards are animals rather than furs, though foxes, rabbits and beavers
    are furs as well); and how near it is to the nearest senses of other names. The posterior
    is found by going around until it settles, as in the EM algorithm.
    """
    synsets = [synset for option in options for synset in option.synsets]
    owner = np.repeat(np.arange(len(options)), [len(option.synsets) for option in options])
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    distinct, place = np.unique(synsets, return_inverse=True)
    # Single precision: a list of very ambiguous names has many pairs of senses.
    distinct_alike = lin(nouns, distinct.tolist(), distinct.tolist()).astype(np.float32)
    alike = distinct_alike[np.ix_(place, place)]
    # Two names of a list are two things: that they could mean the same speaks for nothing.
    alike[place[:, None] == place] = 0
    category = np.array([CATEGORIES.index(nouns.category(synset)) for synset in synsets])
    usage = np.concatenate([_log_usage(option) for option in options])
    posterior = _softmax_per_name(usage, owner, starts)
    for _ in range(MAX_ROUNDS):
        # Half a name more for every category, so that none is ruled out by accident.
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
    """Return the log of how usual each sense is; where nobody counted, the first is more so."""
    counts = np.array(option.counts) + 1 / (1 + np.arange(len(option.counts)))
    return np.asarray(np.log(counts / counts.sum()))


def _softmax_per_name(worth: Floats, owner: NDArray[np.intp], starts: NDArray[np.intp]) -> Floats:
    """Return the softmax over the senses of each name."""
    weight = np.exp(worth - np.maximum.reduceat(worth, starts)[owner])
    return np.asarray(weight / np.add.reduceat(weight, starts)[owner])


def _neighbour_similarity(to_names: NDArray[np.float32], owner: NDArray[np.intp]) -> Floats:
    """Return the mean similarity of each sense to its nearest names, its own left out."""
    others = to_names.copy()
    others[np.arange(len(owner)), owner] = -np.inf
    nearest = min(NEIGHBOURS, others.shape[1] - 1)
    if nearest == 0:
        return np.zeros(len(owner))
    top = np.partition(others, -nearest, axis=1)[:, -nearest:]
    return np.asarray(top.mean(axis=1))

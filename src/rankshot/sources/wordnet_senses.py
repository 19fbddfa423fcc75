"""Word-sense disambiguation: which WordNet sense each name of a list has.

The most common sense is often wrong: a leopard is a fur, a seal is wax, a mole is a unit. The
other names help: in a list with tigers, wolves and otters, a seal is an animal. So the senses of
all names of a list are chosen together.

The model is a naive Bayes classifier whose rates are learnt from the list itself. A name i has the
sense s with a probability proportional to the product of

- the density of the list around s: the sum over the synsets v above s, and s itself, of n(v)/|v|,
  where n(v) is the expected number of other names below v, and |v| the number of synsets below v.
  This is a kernel density estimate: draw another name, go up to a synset v above it, and draw any
  synset below v;
- the number of other names in its lexical category, to the power `WEAK`;
- how often a sense of this list has kinds below it, compared with WordNet, to the power `WEAK`;
- how often the noun was tagged with the sense, to the power `WEAK`: class lists are not running
  text;
- how often a name of this list is the first word of its synset, and how often it has all words of
  a synset of several words, as "goldfish, Carassius auratus" does;
- how often a name of this list has a capital letter, if its sense is written with one or without.
  So Cardigan is a dog and cardigan a garment, unless capital letters mean nothing in the list;
- how likely no other name has the sense, as two names rarely mean the same.

All rates and expected numbers come from the posterior of the last round, as in the EM algorithm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankshot.sources.wordnet_lookup import SenseCandidates
from rankshot.sources.wordnet_nouns import CATEGORIES, Nouns

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
WEAK = 0.5
"""The power of evidence that is vague or that partly repeats other evidence."""
UNTAGGED = 0.1
"""What is added to the tag counts, as most senses were never tagged."""
SYNONYMS = 0.05
"""The probability that two names which can have the same sense do have it."""
DOUBT = 0.9
"""A sense that is less probable is doubtful."""
MAX_ROUNDS, SETTLED = 50, 1e-4


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
        How sure the choice is: 1 for a pinned sense, and for the only sense of a name.
    others : tuple of str
        The other possible senses of the name, the most probable first.
    runner_up : Sense or None
        The first of them.
    note : str or None
        How the name was looked up, if not as it is.

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
    others: tuple[str, ...] = ()
    runner_up: Sense | None = None
    note: str | None = None

    def __str__(self) -> str:
        return f"{self.name} ({self.category}, a kind of {self.kind_of})"

    @property
    def is_doubtful(self) -> bool:
        """Whether the probability is below 0.9."""
        return self.probability < DOUBT


def choose_senses(nouns: Nouns, options: Sequence[SenseCandidates]) -> list[Floats]:
    """Return the probability of each candidate of each name, such that all fit one another."""
    listed = _SenseList(nouns, options)
    worth = listed.usage
    posterior = listed.normalize(worth)
    for _ in range(MAX_ROUNDS):
        worth = listed.weigh(posterior)
        last, posterior = posterior, listed.normalize(worth + listed.log_free(posterior))
        if np.abs(posterior - last).max() < SETTLED:
            break
    return listed.choose_in_turn(worth, posterior)


class _SenseList:
    """The candidates of all names of a list, one after the other, and what is known of each."""

    def __init__(self, nouns: Nouns, options: Sequence[SenseCandidates]) -> None:
        every = [candidate for option in options for candidate in option.candidates]
        sizes = [len(option.candidates) for option in options]
        self.owner = np.repeat(np.arange(len(options)), sizes)
        self.is_changed = np.array([option.note is not None for option in options])
        self.names = np.array([option.name for option in options])
        self.starts = np.cumsum([0, *sizes[:-1]])
        synsets = [candidate.synset for candidate in every]
        _, self.place = np.unique(synsets, return_inverse=True)
        self.usage = WEAK * np.log([candidate.count + UNTAGGED for candidate in every])
        self.is_first = np.array([candidate.is_first for candidate in every])
        self.is_complete = np.array([candidate.is_complete for candidate in every])
        # How a pinned name is spelt says nothing of the others: it can be an id.
        self.is_spelt = np.array([not option.is_pinned for option in options])[self.owner]
        self.has_synonyms = self.is_spelt & (nouns.word_counts[synsets] > 1)
        self.is_capital = np.array([candidate.is_capital for candidate in every])
        written = [option.name.partition(",")[0] for option in options]
        self.has_capital = np.array([text != text.lower() for text in written])[self.owner]
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
            + WEAK * np.log(in_category + 0.5)
            + WEAK * (leaf - usual_leaf)
            + _log_rate(self.is_first, posterior, self.is_spelt)
            + _log_rate(self.is_complete, posterior, self.has_synonyms)
            + _log_rate(self.has_capital, posterior, self.is_spelt & self.is_capital)
            + _log_rate(self.has_capital, posterior, self.is_spelt & ~self.is_capital)
        )

    def log_free(self, posterior: Floats) -> Floats:
        """Return how likely no other name has a candidate's sense."""
        taken = np.bincount(self.place, posterior)[self.place] - posterior
        return np.asarray(np.log(np.maximum(1 - taken, SYNONYMS)))

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
            free[self.place[rows][np.argmax(own)]] = SYNONYMS
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

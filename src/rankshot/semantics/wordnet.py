"""WordNet as a source of similarities, offline, with the senses chosen and said."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rankshot.ranking.encode import as_names
from rankshot.ranking.errors import RankshotError, did_you_mean, shown
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.wordnet_measures import MEASURES
from rankshot.semantics.wordnet_nouns import Nouns, load_nouns
from rankshot.semantics.wordnet_senses import (
    Candidates,
    candidates,
    checked_categories,
    choose_together,
)


@dataclass(frozen=True)
class Sense:
    """The sense that a name was taken in.

    Attributes
    ----------
    name : str
        WordNet's name of it, such as ``leopard.n.02``.
    category : str
        Its lexical category, such as ``animal``.
    kind_of : str
        The first word of what it is a kind of.
    others : tuple of str
        The other senses that the name could have had.
    note : str or None
        How the name was looked up, if not as it stands.
    """

    name: str
    category: str
    kind_of: str
    others: tuple[str, ...]
    note: str | None

    def __str__(self) -> str:
        return f"{self.name} ({self.category}, a kind of {self.kind_of})"


class WordNet:
    """Similarities from the noun hierarchy of WordNet 3.0, which comes with the package.

    Which sense of a name is meant matters more than the measure. It can be pinned by name,
    restricted by category, and is otherwise chosen by the company that the name keeps: all
    targets and items together (see `choose_together`). `senses` says what was taken.

    Parameters
    ----------
    measure : {"path", "lch", "wup", "resnik", "lin", "jcn"}
        Path length; Leacock-Chodorow; Wu-Palmer; and three by information content, from how
        often senses were tagged: Resnik, Lin, Jiang-Conrath.
    senses : mapping of name to sense, optional
        Pins, such as ``{"seal": "seal.n.09"}``; also for names that WordNet does not have.
    categories : iterable of str, optional
        Only senses of these lexical categories, such as ``["animal"]``, are considered.

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

    def __init__(
        self,
        measure: str = "path",
        *,
        senses: Mapping[str, str] | None = None,
        categories: Iterable[str] | None = None,
    ) -> None:
        if not isinstance(measure, str) or measure not in MEASURES:
            raise RankshotError(f"measure must be one of {', '.join(MEASURES)}, not {measure!r}")
        if senses is not None and not isinstance(senses, Mapping):
            raise RankshotError(f"senses must map names to senses, not be {shown(senses)}")
        self.measure = measure
        self.pins = dict(senses or {})
        self.categories = checked_categories(categories)

    def senses(self, names: Iterable[Any]) -> dict[str, Sense]:
        """Return the sense of each of the names, chosen by the company of the others."""
        nouns = load_nouns()
        options, unknown = [], []
        for name in as_names(names, "names"):
            try:
                options.append(self._candidates(nouns, name))
            except RankshotError as error:
                unknown.append(str(error))
        if unknown:
            more = f"; and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise RankshotError(
                f"{'; '.join(unknown[:5])}{more}. A name can be pinned to a sense of another word"
            )
        found: dict[str, Sense] = {}
        for option, synset in zip(options, choose_together(nouns, options), strict=True):
            parents = nouns.parents(synset)
            others = tuple(nouns.name(other) for other in option.synsets if other != synset)
            kind_of = nouns.word(parents[0]) if parents else "everything"
            found[option.name] = Sense(
                nouns.name(synset), nouns.category(synset), kind_of, others, option.note
            )
        return found

    def _candidates(self, nouns: Nouns, name: str) -> Candidates:
        if name in self.pins:
            return Candidates(name, (nouns.synset(self.pins[name]),), (1,), None)
        return candidates(nouns, name, self.categories)

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the table of similarities; its notes say which sense of each name was taken."""
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        for name in self.pins:
            if name not in target_names and name not in item_names:
                raise RankshotError(
                    f"{name!r} is pinned, but is neither a target nor an item"
                    f"{did_you_mean(name, target_names + item_names)}"
                )
        nouns = load_nouns()
        senses = self.senses(dict.fromkeys(target_names + item_names))
        number = {name: nouns.synset(sense.name) for name, sense in senses.items()}
        values = MEASURES[self.measure](
            nouns, [number[name] for name in target_names], [number[name] for name in item_names]
        )
        notes = [f"{name}: {sense}" for name, sense in senses.items()]
        notes += [sense.note for sense in senses.values() if sense.note]
        return Similarity(values, target_names, item_names, f"wordnet-{self.measure}", notes)

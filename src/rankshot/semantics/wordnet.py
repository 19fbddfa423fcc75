"""`WordNet`: similarities of names by WordNet's noun hierarchy, offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.names import as_names
from rankshot.core.validation import require_choice
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.wordnet_nouns import MEASURES, Nouns, load_nouns
from rankshot.semantics.wordnet_senses import (
    Sense,
    SenseCandidates,
    choose_senses,
    find_candidates,
    require_categories,
)


class WordNet:
    """Similarities from the noun hierarchy of WordNet 3.0, which comes with the package.

    The sense in which a name is understood matters more than the measure. The user can pin the
    sense of a name or restrict senses by category. Otherwise the senses of all targets and items
    are chosen together, so that they fit one another (see `choose_senses`). The method `senses`
    reports what was chosen.

    Parameters
    ----------
    measure : {"path", "lch", "wup", "resnik", "lin", "jcn"}
        Path length, Leacock-Chodorow, Wu-Palmer; and three measures by information content,
        which comes from how often senses were tagged in a corpus: Resnik, Lin, Jiang-Conrath.
    senses : mapping of name to sense, optional
        Pinned senses, such as ``{"seal": "seal.n.09"}``; a name that is not in WordNet can be
        pinned, too.
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
        if senses is not None and not isinstance(senses, Mapping):
            raise RankshotError(f"senses must map names to senses, not be {short_repr(senses)}")
        self.measure = require_choice("measure", measure, MEASURES)
        self.pins = dict(senses or {})
        self.categories = require_categories(categories)

    def senses(self, names: Iterable[Any]) -> dict[str, Sense]:
        """Return the sense of each name; the senses of all names are chosen together."""
        nouns = load_nouns()
        options, unknown = [], []
        for name in as_names(names, "names"):
            try:
                options.append(self._find_candidates(nouns, name))
            except RankshotError as error:
                unknown.append(str(error))
        if unknown:
            more = f"; and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            raise RankshotError(
                f"{'; '.join(unknown[:5])}{more}. Pin such a name to a sense of another word"
            )
        found: dict[str, Sense] = {}
        for option, synset in zip(options, choose_senses(nouns, options), strict=True):
            parents = nouns.parents(synset)
            others = tuple(nouns.name(other) for other in option.synsets if other != synset)
            kind_of = nouns.word(parents[0]) if parents else "everything"
            found[option.name] = Sense(
                nouns.name(synset), nouns.category(synset), kind_of, others, option.note
            )
        return found

    def _find_candidates(self, nouns: Nouns, name: str) -> SenseCandidates:
        if name in self.pins:
            return SenseCandidates(name, (nouns.synset(self.pins[name]),), (1,), None)
        return find_candidates(nouns, name, self.categories)

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the table of similarities; its notes report the sense of each name."""
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        for name in self.pins:
            if name not in target_names and name not in item_names:
                raise RankshotError(
                    f"{name!r} is pinned, but is neither a target nor an item"
                    f"{suggest_name(name, target_names + item_names)}"
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

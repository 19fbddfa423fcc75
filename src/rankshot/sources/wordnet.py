"""`WordNet`: similarities of names by WordNet's noun hierarchy, offline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.core.validation import as_names, require_choice
from rankshot.sources.similarity import Similarity
from rankshot.sources.wordnet_nouns import CATEGORIES, MEASURES, compare_synsets, load_nouns
from rankshot.sources.wordnet_senses import (
    ExcludedNounError,
    Sense,
    SenseCandidates,
    UnknownNounError,
    choose_senses,
    find_candidates,
    make_sense,
    pin_sense,
)

UNKNOWN_SHOWN = 5
"""How many unknown names an error message lists."""


class WordNet:
    """Similarities from the noun hierarchy of WordNet 3.0, which comes with the package.

    The sense in which a name is understood matters more than the measure. The user can pin the
    sense of a name or restrict senses by category. Otherwise the senses of all targets and items
    are chosen together, so that they fit one another. The method `senses` reports what was chosen,
    and how certain the choice is.

    A name can be a noun, several synonyms separated by commas ("goldfish, Carassius auratus"), the
    name of a sense ("crane.n.04") or WordNet's id of a synset ("n02012849").

    Parameters
    ----------
    measure : {"path", "lch", "wup", "resnik", "lin", "jcn"}
        Path length, Leacock-Chodorow, Wu-Palmer; and three measures by information content,
        which comes from how often senses were tagged in a corpus: Resnik, Lin, Jiang-Conrath.
    senses : mapping of name to sense, optional
        Pinned senses, such as ``{"seal": "seal.n.09"}``, also of names that are not in WordNet.
        `read_senses` reads them from a file.
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
        self.measure = require_choice("measure", measure, MEASURES)
        self.pins = dict(senses or {})
        self.categories = None if categories is None else as_names(categories, "categories")
        for category in self.categories or ():
            require_choice("category", category, CATEGORIES)

    def senses(self, names: Iterable[Any]) -> dict[str, Sense]:
        """Return the sense of each name; the senses of all names are chosen together.

        Names that WordNet does not know are refused.
        """
        found, unknown = self._choose(as_names(names, "names"))
        if unknown:
            nouns, shown = load_nouns(), list(unknown.items())[:UNKNOWN_SHOWN]
            some = "; ".join(f"{error}{nouns.hint(name)}" for name, error in shown)
            more = f"; and {len(unknown) - len(shown)} more" if len(unknown) > len(shown) else ""
            raise RankshotError(f"{some}{more}. Pin such a name to a sense of another word")
        return found

    def similarity(self, targets: Iterable[Any], items: Iterable[Any]) -> Similarity:
        """Return the table of similarities; NaN for names that WordNet does not know.

        The notes name, in this order, different names with the same sense, names without a sense
        of the allowed categories, doubtful senses with the second most probable sense (the most
        doubtful first), and names that were looked up as something else. `senses` returns all
        senses.
        """
        target_names, item_names = as_names(targets, "targets"), as_names(items)
        for name in self.pins:
            if name not in target_names and name not in item_names:
                raise RankshotError(
                    f"{name!r} is pinned, but is neither a target nor an item"
                    f"{suggest_name(name, target_names + item_names)}"
                )
        senses, unknown = self._choose(tuple(dict.fromkeys(target_names + item_names)))
        rows, columns = (
            [i for i, name in enumerate(names) if name in senses]
            for names in (target_names, item_names)
        )
        nouns = load_nouns()
        values = np.full((len(target_names), len(item_names)), np.nan)
        values[np.ix_(rows, columns)] = compare_synsets(
            nouns,
            self.measure,
            [nouns.synset(senses[target_names[i]].name) for i in rows],
            [nouns.synset(senses[item_names[j]].name) for j in columns],
        )
        excluded = [
            str(error) for error in unknown.values() if isinstance(error, ExcludedNounError)
        ]
        notes = [*_warn_of_shared(senses), *excluded, *_report_doubts(senses)]
        notes += [sense.note for sense in senses.values() if sense.note]
        return Similarity(values, target_names, item_names, f"wordnet-{self.measure}", notes)

    def _choose(self, names: Sequence[str]) -> tuple[dict[str, Sense], dict[str, UnknownNounError]]:
        """Return the senses of the known names, and what is wrong with the others."""
        nouns = load_nouns()
        options: list[SenseCandidates] = []
        unknown: dict[str, UnknownNounError] = {}
        for name in names:
            try:
                if name in self.pins:
                    options.append(pin_sense(nouns, name, self.pins[name]))
                else:
                    options.append(find_candidates(nouns, name, self.categories))
            except UnknownNounError as error:
                unknown[name] = error
        chosen = choose_senses(nouns, options) if options else []
        senses = {}
        for option, posterior in zip(options, chosen, strict=True):
            order = np.argsort(-posterior, kind="stable")[:2]
            first, *second = (
                make_sense(nouns, option.synsets[i], float(posterior[i])) for i in order
            )
            runner_up = second[0] if second else None
            senses[option.name] = replace(first, runner_up=runner_up, note=option.note)
        return senses, unknown


def _warn_of_shared(senses: Mapping[str, Sense]) -> list[str]:
    names: dict[str, list[str]] = {}
    for name, sense in senses.items():
        names.setdefault(sense.name, []).append(name)
    return [
        f"WARNING: {quote_names(some)} have the same sense, {sense}"
        for sense, some in names.items()
        if len(some) > 1
    ]


def _report_doubts(senses: Mapping[str, Sense]) -> list[str]:
    doubtful = [(sense.probability, name) for name, sense in senses.items() if sense.is_doubtful]
    notes = []
    for _, name in sorted(doubtful):
        first, second = senses[name], senses[name].runner_up
        texts = [str(first), str(second)]
        if second and (first.category, first.kind_of) == (second.category, second.kind_of):
            texts = [_tell_apart(first, second), _tell_apart(second, first)]
        notes.append(f"{name!r} is read as {texts[0]}; or is it {texts[1]}?")
    return notes


def _tell_apart(sense: Sense, other: Sense) -> str:
    """Describe a sense by what another one has not: a synonym, or else a kind above."""
    nouns = load_nouns()
    own, others = (nouns.synset(one.name) for one in (sense, other))
    synonyms = [word for word in nouns.words(own) if word not in nouns.words(others)]
    above, other_kinds = ([nouns.word(v) for v in nouns.ancestors(one)] for one in (own, others))
    only = [f", also called {word}" for word in synonyms]
    only += [f" and of {word}" for word in above if word not in other_kinds]
    return f"{str(sense).removesuffix(')')}{[*only, ''][0]})"

"""`rank_names`: the rankings that names alone give, by the best source that is there.

Answers that the user has come first, then the dictionary, then WordNet. The decision is made here
and nowhere else: `recognise`, in Python and as a command, call it. `OPENERS` has the names that
users give to sources.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from rankshot import sources
from rankshot.core.errors import InputError, quote_names, suggest_name
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.look_alikes import REMEDY, LookAlikes, NamedRankings
from rankshot.sources.names import ClassLabels, find_misspellings
from rankshot.sources.similarity import Similarity

FEWEST_KNOWN = 0.6
"""The share of the seen classes that the dictionary must have. Of image and sound classifiers it
has .8 to 1, and of text classifiers, languages and letters at most .28."""
NOTES_SHOWN = 3
"""The notes of a table of similarities begin with the worst doubts about senses."""
BETTER = (
    "the list of a language model that is asked about these very classes is usually better: paste "
    "a prompt of sources.make_prompts (`rankshot rank --prompts`) into any chat window, or use the "
    "source llm:MODEL"
)
Names = tuple[str, ...]
Compare = Callable[[Names, Names], Similarity]
"""The ``similarity`` of a source: from the names of targets and items to their similarities."""


@runtime_checkable
class SimilaritySource(Protocol):
    """A source of similarities."""

    def similarity(self, targets: Names, items: Names) -> Similarity:
        """Return the similarities of targets and items."""


@runtime_checkable
class RankingSource(Protocol):
    """A source of rankings, such as a language model."""

    def rankings(self, targets: Names, items: Names) -> Rankings:
        """Return the rankings of items for each target."""


Source = SimilaritySource | RankingSource


# ---- Sources by name

ANSWERS, LANGUAGE_MODEL, LOOK_ALIKES, WORDNET = "answers", "llm", "look-alikes", "wordnet"
OPENERS: dict[str, Callable[[str, Mapping[str, str]], Any]] = {
    LOOK_ALIKES: lambda kind, _: LookAlikes(kind or "auto"),
    WORDNET: lambda measure, senses: sources.WordNet(measure or "path", senses=senses),
    "glove": lambda _, __: sources.WordVectors.glove(),
    "vectors": lambda file, _: sources.WordVectors.from_file(file),
    "corpus": lambda file, _: sources.Corpus(file),
    "table": lambda file, _: sources.read_similarity(file),
    "hits": lambda file, _: sources.read_hit_counts(file),
    ANSWERS: lambda folder, _: Path(folder),
    LANGUAGE_MODEL: lambda model, _: sources.LanguageModel(model),
}
"""What opens a source, from what follows its name and a colon, and known WordNet senses of names.
A folder of answers stands for itself: it is read with the length of the lists."""
NEEDS = dict.fromkeys(("vectors", "corpus", "table", "hits"), "FILE")
NEEDS |= {ANSWERS: "FOLDER", LANGUAGE_MODEL: "MODEL"}
"""What must follow the colon."""


def parse_source(text: str) -> tuple[str, str]:
    """Return the name of a source that a user named, such as ``vectors:FILE``, and the rest."""
    name, colon, detail = text.partition(":")
    if name not in OPENERS:
        problem = f"is not a source{suggest_name(name, OPENERS)}"
        raise InputError("source", text, problem, hint=f"the sources are {', '.join(OPENERS)}")
    if colon and name == "glove":
        raise InputError("source", text, "must be 'glove' alone")
    if not detail and (colon or name in NEEDS):
        raise InputError("source", text, f"must be {name}:{NEEDS.get(name, 'KIND')}")
    return name, detail


def choose_source(items: Iterable[object] | ClassLabels) -> tuple[str, str]:
    """Choose between the dictionaries and WordNet by the names of the seen classes.

    Returns the source as it is named on the command line, and one line that says what is used, why,
    and what would be better.

    Parameters
    ----------
    items : iterable of names, or ClassLabels
        The seen classes.

    Examples
    --------
    >>> from rankshot.sources import choose_source
    >>> source, reason = choose_source(["zebra", "grey wolf", "bus"])
    >>> source, reason.partition(";")[0]
    ('look-alikes', 'rankings: from the built-in dictionary of look-alikes')
    >>> choose_source(["door_knock", "siren", "sneezing"])[0]
    'look-alikes:sounds'
    >>> choose_source(["book_flight", "pay_bill", "alarm"])[0]
    'wordnet'
    """
    labels = _as_labels(items)
    seen = LookAlikes().find_items(labels.names, labels.senses, labels.words)
    if seen.known_share >= FEWEST_KNOWN:
        kind = ":sounds" if seen.dictionary.kind == "sounds" else ""
        reason = f"rankings: from the built-in dictionary of {seen.dictionary.source}; {BETTER}"
        return LOOK_ALIKES + kind, reason
    known = round(seen.known_share * len(labels))
    reason = (
        f"rankings: from WordNet, as only {known:,} of {len(labels):,} seen classes are in the "
        f"dictionary (not {quote_names(seen.uncertain, 3)}); {BETTER}"
    )
    return WORDNET, reason


def rank_names(
    targets: Iterable[object],
    items: Iterable[object] | ClassLabels,
    source: Source | str | Sequence[Source | str] | None = None,
    *,
    words: Mapping[str, str] | None = None,
    k: int | None = None,
    compare: bool = False,
) -> NamedRankings:
    """Rank the seen classes for each new class, by their names.

    Parameters
    ----------
    targets : iterable of names
        The new classes.
    items : iterable of names, or ClassLabels
        The seen classes.
    source : source, str, or list of these, optional
        Sources, or their names as on the command line: ``"look-alikes"``, ``"llm:gpt-4o"``. By
        default, what `choose_source` chooses; this also ranks the classes that are missing in
        ``"answers:FOLDER"``, the answers of language models.
    words : mapping of name to words, optional
        What is looked up instead of some names.
    k : int, optional
        How many names the lists in ``"answers:FOLDER"`` should have.
    compare : bool
        If a dictionary is chosen, WordNet ranks its targets as well: a rehearsal can then choose
        between the two. Without one, rankings by WordNet have no weight beside those of raters.

    Examples
    --------
    >>> from rankshot.sources import rank_names
    >>> found = rank_names(["okapi", "zzyzx"], ["zebra", "bus", "gazelle"])
    >>> found.rankings.select(rater="1").orders(), found.unknown
    ([['zebra', 'gazelle', 'bus']], ('zzyzx',))
    """
    names, labels = as_names(targets, "targets"), _as_labels(items)
    look_up = labels.words | dict(words or {})
    several: Any = source if isinstance(source, (list, tuple)) else [source]
    chosen = [each for each in several if each is not None]
    found = [_rank(each, names, labels, look_up, k) for each in chosen]
    open_names = _list_unranked(names, found)
    if open_names and all(str(each).partition(":")[0] == ANSWERS for each in chosen):
        default, reason = choose_source(labels)
        answered = f"no answer for {quote_names(open_names)}; " if chosen else ""
        found.append((None, [answered + reason]))
        found.append(_rank(default, open_names, labels, look_up, k))
        listed = tuple(name for name in open_names if name not in _list_unranked(names, found))
        if compare and listed and default != WORDNET:
            # It has no weight unless the rehearsal gives it one: its notes would only distract.
            found.append((_rank(WORDNET, listed, labels, look_up, k)[0], []))
    unknown = _list_unranked(names, found)
    notes = [note for _, some in found for note in some]
    # A dictionary has said why it has no list.
    if silent := [name for name in unknown if not any(repr(name) in note for note in notes)]:
        near = find_misspellings(dict.fromkeys(look_up.get(n, n) for n in names + labels.names))
        words_for = [look_up.get(name, name) for name in silent]
        hints = [f"{word!r} may be {near[word]!r}" for word in words_for if word in near]
        notes.append(f"no source knows {'; '.join([quote_names(silent), *hints])}: {REMEDY}")
    parts = [rankings for rankings, _ in found if rankings is not None]
    rankings = Rankings.concatenate(_number_sources(parts)) if parts else None
    return NamedRankings(rankings, unknown, tuple(notes))


def _number_sources(parts: Iterable[Rankings]) -> Iterator[Rankings]:
    """The rankings of several sources: of those with one name, the later ones have a number."""
    uses: Counter[str | None] = Counter()
    for part in parts:
        uses.update(part.source_names)
        names = [name if uses[name] < 2 else f"{name} {uses[name]}" for name in part.sources]
        yield replace(part, sources=np.array(names, object))


def _list_unranked(names: Names, found: Iterable[tuple[Rankings | None, object]]) -> Names:
    """The names that no rankings have as a target."""
    ranked = {target for part, _ in found if part is not None for target in part.target_names}
    return tuple(name for name in names if name not in ranked)


def _rank(
    source: Source | str,
    targets: Names,
    labels: ClassLabels,
    words: Mapping[str, str],
    k: int | None,
) -> tuple[Rankings | None, Sequence[str]]:
    """The rankings by one source, and notes."""
    opened: Any = source
    if isinstance(source, str):
        name, detail = parse_source(source)
        opened = OPENERS[name](detail, labels.senses)
    if isinstance(opened, Path):
        found = sources.read_answer_files(opened, targets, labels.names, k)
        return found.rankings, found.notes
    if isinstance(opened, LookAlikes):
        found = opened.look_up(targets, labels.names, labels.senses, words)
        return found.rankings, found.notes
    if isinstance(opened, RankingSource):
        return opened.rankings(targets, labels.names), []
    if isinstance(opened, Similarity):
        table = _use_class_names(opened, targets, labels.names).reindex(targets, labels.names)
    else:
        # A pinned sense needs no words.
        pins = opened.pins if isinstance(opened, sources.WordNet) else {}
        every = {*targets, *labels.names} - {*pins}
        known = {name: text for name, text in words.items() if name in every}
        table = compare_as(opened.similarity, targets, labels.names, known)
    rankings = table.to_rankings() if np.isfinite(table.values).any() else None
    return rankings, table.notes[:NOTES_SHOWN]


def _as_labels(items: Iterable[object] | ClassLabels) -> ClassLabels:
    return items if isinstance(items, ClassLabels) else ClassLabels.from_names(as_names(items))


def _use_class_names(table: Similarity, targets: Names, items: Names) -> Similarity:
    """A table with the names of the classes, where it spells them in another way."""

    def rename(names: Names, wanted: Names) -> Names:
        absent = [name for name in wanted if name not in names]
        found = sources.read_class_labels(names).match_all(absent) if absent else {}
        class_of = {label: name for name, label in found.items() if label not in wanted}
        return tuple(class_of.get(name, name) for name in names)

    return replace(table, targets=rename(table.targets, targets), items=rename(table.items, items))


def compare_as(
    compare: Compare, targets: Iterable[object], items: Iterable[object], look_up: Mapping[str, str]
) -> Similarity:
    """Compare classes by words other than their names; the table keeps the names.

    Parameters
    ----------
    compare : callable
        The ``similarity`` of a source, such as ``WordNet().similarity``.
    targets, items : iterables of names
        The classes to compare.
    look_up : mapping of name to words
        The words that the source looks up instead of a name. Other names are looked up unchanged.
        Two classes may have the same words; they then have the same similarities.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.sources import compare_as
    >>> words = {"water_lilly": "water lily", "T9": "tank"}
    >>> compare_as(rs.WordNet().similarity, ["water_lilly"], ["T9", "daisy"], words).to_rankings()
    Rankings: 1 ranking of 2 items, 1 target, 1 source
      water_lilly: daisy > T9
    """
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    if odd := set(look_up) - {*target_names, *item_names}:
        hint = suggest_name(min(odd), target_names + item_names)
        raise InputError("look_up", min(odd), f"is not a class{hint}")
    words = [[look_up.get(name, name) for name in names] for names in (target_names, item_names)]
    # Each text is looked up once, also where two classes share it.
    rows, columns = ({text: i for i, text in enumerate(dict.fromkeys(some))} for some in words)
    table = compare(tuple(rows), tuple(columns))
    cells = np.ix_([rows[text] for text in words[0]], [columns[text] for text in words[1]])
    return Similarity(table.values[cells], target_names, item_names, table.source, table.notes)

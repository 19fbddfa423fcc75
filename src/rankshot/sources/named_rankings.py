"""`rank_names`: the rankings that names alone give, by the best source that is there.

Answers that the user has come first, then the dictionary, then WordNet. The decision is made here
and nowhere else: `recognise`, in Python and as a command, call it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankshot import sources
from rankshot.core.errors import quote_names
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.look_alikes import REMEDY, LookAlikes
from rankshot.sources.look_up import describe_unknown
from rankshot.sources.names import ClassLabels
from rankshot.sources.registry import (
    ANSWERS,
    LANGUAGE_MODEL,
    LOOK_ALIKES,
    RankingSource,
    Source,
    compare_classes,
    parse_source,
)
from rankshot.sources.similarity import Similarity

FEWEST_KNOWN = 0.6
"""The share of the seen classes that the dictionary must have. Of image and sound classifiers it
has .8 to 1, and of text classifiers, languages and letters at most .28."""
NOTES_SHOWN = 3
"""The notes of a table of similarities begin with the worst doubts about senses."""
BETTER = "the list of a language model that is asked about these very classes is usually better: "
BETTER += "paste a prompt into any chat window, or use the source llm:MODEL"


WORDNET = "wordnet"


class DefaultSource(NamedTuple):
    """The source for names, if the user names none, and the line that says why.

    Attributes
    ----------
    text : str
        The source as it is named on the command line, such as ``"look-alikes"``.
    reason : str
        One line that says what is used, why, and what would be better.

    Examples
    --------
    >>> from rankshot.sources import choose_source
    >>> choose_source(["zebra", "grey wolf", "bus"]).reason.partition(";")[0]
    'rankings: from the built-in dictionary of look-alikes'
    """

    text: str
    reason: str


def choose_source(items: Iterable[object] | ClassLabels) -> DefaultSource:
    """Choose between the dictionaries and WordNet by the names of the seen classes.

    Parameters
    ----------
    items : iterable of names, or ClassLabels
        The seen classes.

    Examples
    --------
    >>> from rankshot.sources import choose_source
    >>> choose_source(["zebra", "grey wolf", "bus"]).text
    'look-alikes'
    >>> choose_source(["door_knock", "siren", "sneezing"]).text
    'look-alikes:sounds'
    >>> choose_source(["book_flight", "pay_bill", "alarm"]).text
    'wordnet'
    """
    labels = _as_labels(items)
    share = LookAlikes().find_share(labels.names, labels.senses, labels.words)
    if share.known_share >= FEWEST_KNOWN:
        is_sounds = share.kind == "sounds"
        what = "sound-alikes" if is_sounds else "look-alikes"
        reason = f"rankings: from the built-in dictionary of {what}; {BETTER}"
        return DefaultSource(f"{LOOK_ALIKES}:sounds" if is_sounds else LOOK_ALIKES, reason)
    known = round(share.known_share * len(labels))
    reason = (
        f"rankings: from WordNet, as only {known:,} of {len(labels):,} seen classes are in the "
        f"dictionary (not {quote_names(share.unknown, 3)}); {BETTER}"
    )
    return DefaultSource(WORDNET, reason)


@dataclass(frozen=True)
class NamedRankings:
    """The rankings of classes of which only the names are known; see `rank_names`.

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
    >>> from rankshot.sources import rank_names
    >>> rank_names(["lion"], ["tiger", "bus"], "wordnet").rankings
    Rankings: 1 ranking of 2 items, 1 target, 1 source
      lion: tiger > bus
    """

    rankings: Rankings | None
    unknown: tuple[str, ...]
    notes: tuple[str, ...]


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
    notes: list[str] = []
    parts: list[Rankings] = []

    def rank(each: Source | str, some: tuple[str, ...]) -> None:
        opened = open_source(each, labels.senses, k) if isinstance(each, str) else each
        found, more = _rank(opened, some, labels, look_up)
        notes.extend(more)
        parts.extend([] if found is None else [found])

    def list_open() -> tuple[str, ...]:
        ranked = {target for part in parts for target in part.target_names}
        return tuple(name for name in names if name not in ranked)

    chosen = _list_sources(source)
    for each in chosen:
        rank(each, names)
    are_answers = all(str(each).partition(":")[0] == ANSWERS for each in chosen)
    if are_answers and (missing := list_open()):
        default = choose_source(labels)
        answered = f"no answer for {quote_names(missing)}; " if chosen else ""
        notes.append(answered + default.reason)
        rank(default.text, missing)
        listed = tuple(name for name in missing if name not in list_open())
        if compare and listed and default.text != WORDNET:
            said = len(notes)
            rank(WORDNET, listed)
            # It has no weight unless the rehearsal gives it one.
            del notes[said:]
    unknown = list_open()
    # A dictionary has said why it has no list.
    if silent := [name for name in unknown if not any(repr(name) in note for note in notes)]:
        notes.append(f"{describe_unknown(silent, names + labels.names, look_up)}: {REMEDY}")
    return NamedRankings(Rankings.concatenate(parts) if parts else None, unknown, tuple(notes))


def _rank(
    source: Source | Similarity,
    targets: tuple[str, ...],
    labels: ClassLabels,
    look_up: Mapping[str, str],
) -> tuple[Rankings | None, Sequence[str]]:
    """The rankings by one source, and notes."""
    if isinstance(source, LookAlikes):
        found = source.look_up(targets, labels.names, labels.senses, look_up)
        return found.rankings, found.notes
    if isinstance(source, _AnswerFolder):
        files = sources.read_answer_files(source.folder, targets, labels.names, source.k)
        by_rater = [(rater, each.notes) for rater, each in files.answers.items()]
        return files.rankings, [f"{rater}: {note}" for rater, notes in by_rater for note in notes]
    if isinstance(source, RankingSource):
        return source.rankings(targets, labels.names), []
    every = {*targets, *labels.names}
    known = {name: text for name, text in look_up.items() if name in every}
    table = compare_classes(source, targets, labels.names, known)
    rankings = table.to_rankings() if np.isfinite(table.values).any() else None
    return rankings, table.notes[:NOTES_SHOWN]


def _list_sources(source: Source | str | Sequence[Source | str] | None) -> list[Source | str]:
    if source is None:
        return []
    is_several = isinstance(source, Sequence) and not isinstance(source, str)
    return [*source] if is_several else [source]  # type: ignore[list-item,misc]


def _as_labels(items: Iterable[object] | ClassLabels) -> ClassLabels:
    return items if isinstance(items, ClassLabels) else ClassLabels.from_names(as_names(items))


@dataclass(frozen=True)
class _AnswerFolder:
    folder: str
    k: int | None

    def rankings(self, targets: Iterable[object], items: Iterable[object]) -> Rankings:
        return sources.read_answer_files(self.folder, targets, items, self.k).rankings


def open_source(
    text: str, senses: Mapping[str, str] | None = None, k: int | None = None
) -> Source | Similarity:
    """Open the source that a text names, such as ``"llm:gpt-4o"`` or ``"wordnet"``.

    Parameters
    ----------
    text : str
        A source as it is named on the command line.
    senses : mapping of name to sense, optional
        Known WordNet senses or ids of some names.
    k : int, optional
        How many names the lists of ``"answers:FOLDER"`` should have.

    Examples
    --------
    >>> from rankshot.sources import open_source
    >>> open_source("llm:gpt-4o").model
    'gpt-4o'
    """
    spec = parse_source(text)
    if spec.name == LANGUAGE_MODEL:
        return sources.LanguageModel(spec.detail)
    if spec.name == ANSWERS:
        return _AnswerFolder(spec.detail, k)
    return spec.open(senses or {})

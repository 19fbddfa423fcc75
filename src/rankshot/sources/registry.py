"""The kinds of sources, by the names that users give them: what each needs, and how it is opened.

A kind is declared here and nowhere else: commands, their help and their messages ask this table.
Importing this module loads no source.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from rankshot import sources
from rankshot.core.errors import InputError, suggest_name

if TYPE_CHECKING:
    from rankshot.ranking.rankings import Rankings
    from rankshot.sources.look_up import Compare
    from rankshot.sources.similarity import Similarity

ANSWERS, LANGUAGE_MODEL, LOOK_ALIKES = "answers", "llm", "look-alikes"
"""The kinds of language models. A folder of answers has the name of its kind."""
Names = tuple[str, ...]


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


@dataclass(frozen=True)
class Kind:
    """A kind of source.

    Attributes
    ----------
    about : str
        What it is, for the help: it begins with the name and what follows this after a colon.
    needs : str
        What follows the name and a colon: "file", "measure", "model", or nothing.
    default : str, optional
        What is used if nothing follows.
    open : callable, optional
        Returns a source, or a table of similarities, from what follows the colon and from the
        WordNet senses of names. None for language models.
    has_own_names : bool
        Whether its files name the classes, so that no words are looked up.
    """

    about: str
    needs: str = ""
    default: str | None = None
    open: Callable[[str, Mapping[str, str]], Source | Similarity] | None = None
    has_own_names: bool = False


KINDS = {
    LOOK_ALIKES: Kind(
        "look-alikes or look-alikes:KIND (the built-in dictionary of images or sounds)",
        "kind",
        "auto",
        lambda kind, _: sources.LookAlikes(kind),
    ),
    "wordnet": Kind(
        "wordnet or wordnet:MEASURE (path, lch, wup, resnik, lin, jcn)",
        "measure",
        "path",
        lambda measure, senses: sources.WordNet(measure, senses=senses),
    ),
    "glove": Kind("glove", open=lambda _, __: sources.WordVectors.glove()),
    "vectors": Kind(
        "vectors:FILE", "file", open=lambda file, _: sources.WordVectors.from_file(file)
    ),
    "corpus": Kind("corpus:FILE", "file", open=lambda file, _: sources.Corpus(file)),
    "table": Kind(
        "table:FILE (similarities as CSV or Parquet)",
        "file",
        open=lambda file, _: sources.read_similarity(Path(file)),
        has_own_names=True,
    ),
    "hits": Kind(
        "hits:FILE (search counts as CSV)",
        "file",
        open=lambda file, _: sources.read_hit_counts(Path(file)),
        has_own_names=True,
    ),
    ANSWERS: Kind(
        "answers:FOLDER (answers to the prompts of `rankshot rank --prompts`; each folder is one "
        "source)",
        "file",
        has_own_names=True,
    ),
    LANGUAGE_MODEL: Kind("llm:MODEL (a language model at an OpenAI-compatible endpoint)", "model"),
}
"""All kinds of sources."""
TABLES = tuple(
    name
    for name, kind in KINDS.items()
    if kind.open and not kind.has_own_names and name != LOOK_ALIKES
)
"""How the names of sources begin that are neither people nor language models."""


class Spec(NamedTuple):
    """A source as a user names it: a kind, and what follows the colon."""

    name: str
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.detail}" if self.detail else self.name

    @property
    def kind(self) -> Kind:
        """What is known of its kind."""
        return KINDS[self.name]

    @property
    def file(self) -> Path | None:
        """The file or folder that it reads."""
        return Path(self.detail) if self.kind.needs == "file" else None

    def open(self, senses: Mapping[str, str]) -> Source | Similarity:
        """Open a source that is not a language model."""
        assert self.kind.open is not None  # noqa: S101 (language models are not opened here)
        return self.kind.open(self.detail or self.kind.default or "", senses)


def parse_source(text: str) -> Spec:
    """Return a source that a user named, such as ``vectors:FILE``."""
    name, colon, detail = text.partition(":")
    if name not in KINDS:
        problem = f"is not a source{suggest_name(name, KINDS)}"
        raise InputError("source", text, problem, hint=f"the sources are {', '.join(KINDS)}")
    needs, default = KINDS[name].needs, KINDS[name].default
    if needs and not detail and (colon or default is None):
        raise InputError("source", text, f"needs a {needs}, as in {name}:{needs.upper()}")
    if colon and not needs:
        raise InputError("source", text, f"must be {name!r} alone")
    return Spec(name, detail)


def compare_classes(
    source: SimilaritySource | Similarity,
    targets: Names,
    items: Names,
    words: Mapping[str, str],
    look_up: Mapping[str, str] | None = None,
) -> Similarity:
    """Return the similarities of classes by a source.

    A source looks up ``words`` in place of some names. A table has names of its own: only the
    words in ``look_up``, which a user gave, take the place of names that it lacks.
    """
    compare: Compare
    if isinstance(source, sources.Similarity):
        look_up = look_up or {}
        table = _use_class_names(source, targets, items, look_up)
        compare, words, own = table.reindex, look_up, {*table.targets, *table.items}
    else:
        # A pinned sense needs no words.
        own = {*source.pins} if isinstance(source, sources.WordNet) else set()
        compare = source.similarity
    words = {name: text for name, text in words.items() if name not in own}
    return sources.compare_as(compare, targets, items, words)


def _use_class_names(
    table: Similarity, targets: Names, items: Names, look_up: Mapping[str, str]
) -> Similarity:
    """Return a table with the names of the classes, where it spells them in another way."""

    def rename(names: Names, wanted: Names) -> Names:
        absent = [name for name in wanted if name not in {*names, *look_up}]
        if not absent:
            return names
        found = sources.read_class_labels(names).match_all(absent)
        class_of = {label: name for name, label in found.items() if label not in wanted}
        return tuple(class_of.get(name, name) for name in names)

    return replace(table, targets=rename(table.targets, targets), items=rename(table.items, items))

"""The sources of ``rankshot rank``: tables of similarities, language models and answers."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from rankshot.cli.class_options import ClassLists, name_by_words
from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, format_count, quote_names, suggest_name

if TYPE_CHECKING:
    from rich.console import Console

    from rankshot.ranking.rankings import Rankings
    from rankshot.sources.language_model import LanguageModel
    from rankshot.sources.similarity import Similarity
    from rankshot.sources.wordnet import WordNet

SOURCES = ("wordnet", "glove", "vectors", "corpus", "table", "hits", "model", "answers")
NEEDS_FILE = ("vectors", "corpus", "table", "hits", "answers")
HAVE_OWN_NAMES = ("table", "hits", "answers")
"""Sources that do not look up words: their files name the classes."""
GIVE_RANKINGS = ("model", "answers")
"""Sources that give rankings, and no similarities."""
MISSPELT_SHOWN = 10
NOTES_SHOWN = 20


@dataclass(frozen=True)
class SourceInput:
    """What the sources get: the classes, and the WordNet senses of their names."""

    classes: ClassLists
    senses: Mapping[str, str]


def parse_senses(classes: ClassLists, options: Sequence[str]) -> dict[str, str]:
    """Return the WordNet senses that labels, files and options give, of classes that exist."""
    from rankshot.sources import read_senses

    names = classes.items + classes.targets
    # Words that the user gives for a class come before its label.
    found = {name: id_ for name, id_ in classes.synsets.items() if name not in classes.look_up}
    for option in options:
        name, equals, sense = option.partition("=")
        if Path(option).is_file():
            given = read_senses(Path(option))
        elif name and equals and sense:
            given = {name: sense}
        else:
            raise RankshotError(f"--sense is a file or has the form seal=seal.n.09, not {option!r}")
        if odd := [name for name in given if name not in names]:
            hint = suggest_name(odd[0], names)
            raise RankshotError(f"--sense {option}: no class {odd[0]!r}{hint}; leave it out")
        found |= given
    return found


def list_files(specs: list[str], kinds: Sequence[str] = NEEDS_FILE) -> list[Path]:
    """Return the files that the sources of some kinds read."""
    parts = [spec.partition(":") for spec in specs]
    return [Path(detail) for kind, _, detail in parts if kind in kinds]


def check_specs(specs: list[str], senses: object = None) -> None:
    """Refuse sources that do not exist, lack a file, or are given twice."""
    for spec in specs:
        _check_spec(spec)
    if repeated := sorted({spec for spec in specs if specs.count(spec) > 1}):
        raise RankshotError(f"sources given more than once: {quote_names(repeated)}")
    if senses and not any(spec.startswith("wordnet") for spec in specs):
        raise RankshotError("--sense and --senses-out are for --source wordnet")


def _check_spec(spec: str) -> None:
    kind, colon, detail = spec.partition(":")
    if kind not in SOURCES:
        raise RankshotError(
            f"no source {kind!r}{suggest_name(kind, SOURCES)}; the sources are {', '.join(SOURCES)}"
        )
    if kind in NEEDS_FILE and not detail:
        raise RankshotError(f"source {kind!r} needs a file, as in {kind}:FILE")
    if kind == "model" and not detail:
        raise RankshotError("source 'model' needs a name, as in model:NAME")
    if kind == "glove" and colon:
        raise RankshotError(f"source 'glove' takes no file or name; it was given as {spec!r}")


def read_source(spec: str, given: SourceInput) -> Similarity:
    """Return the similarities of one source; it must know some of them."""
    from rankshot import sources

    kind, _, detail = spec.partition(":")
    classes = given.classes
    words: Mapping[str, str] = classes.words
    own_names: set[str] = set()
    if kind == "wordnet":
        compare = make_wordnet(given, detail or "path").similarity
        # A pinned sense needs no words.
        own_names = set(given.senses)
    elif kind == "glove":
        compare = sources.WordVectors.glove().similarity
    elif kind == "vectors":
        compare = sources.WordVectors.from_file(detail).similarity
    elif kind == "corpus":
        corpus = sources.Corpus(detail, measure="cosine", verbose=sys.stderr.isatty())
        compare = corpus.similarity
    else:
        read = sources.read_similarity if kind == "table" else sources.read_hit_counts
        table = _use_class_names(read(Path(detail)), classes)
        compare = table.reindex
        words, own_names = classes.look_up, {*table.targets, *table.items}
    words = {name: text for name, text in words.items() if name not in own_names}
    found = sources.compare_as(compare, classes.targets, classes.items, words)
    if found.coverage == 0:
        raise RankshotError(
            f"{found.source}: knows no pair of a {classes.kind} and a seen class, such as "
            f"{classes.targets[0]!r} and {classes.items[0]!r}; leave out this source, or give "
            "words to look up with --names FILE"
        )
    return found


def _use_class_names(table: Similarity, classes: ClassLists) -> Similarity:
    """Return a table with the names of the classes, where it spells them in another way."""
    from rankshot.sources import read_class_labels

    def rename(names: tuple[str, ...], wanted: tuple[str, ...]) -> tuple[str, ...]:
        absent = [name for name in wanted if name not in {*names, *classes.look_up}]
        if not absent:
            return names
        found = read_class_labels(names).match_all(absent)
        class_of = {label: name for name, label in found.items() if label not in wanted}
        return tuple(class_of.get(name, name) for name in names)

    return replace(
        table,
        targets=rename(table.targets, classes.targets),
        items=rename(table.items, classes.items),
    )


def make_wordnet(given: SourceInput, measure: str = "path") -> WordNet:
    """Return the source, with the senses that the user chose."""
    from rankshot.sources import WordNet

    return WordNet(measure, senses=given.senses)


class SourceRankings(NamedTuple):
    """The rankings of all sources, the tables that some of them are from, and what is missing.

    ``missing`` has what answers lack, as `read_pasted_answers` returns it.
    """

    rankings: Rankings
    tables: dict[str, Similarity]
    missing: Mapping[str, Sequence[str]]


def rank_by_sources(
    specs: list[str],
    given: SourceInput,
    open_language_model: Callable[[str], LanguageModel],
    console: Console,
    *,
    k: int | None = None,
    yes: bool = False,
) -> SourceRankings:
    """Read all sources, print what they know, and return their rankings.

    ``open_language_model`` is called with the NAME of each model:NAME.
    """
    classes = given.classes
    if any(spec.partition(":")[0] not in HAVE_OWN_NAMES for spec in specs):
        _print_misspellings(given, console)
    tables = {
        spec: read_source(spec, given)
        for spec in specs
        if spec.partition(":")[0] not in GIVE_RANKINGS
    }
    for table in tables.values():
        _print_coverage(table, classes, console, is_only=len(specs) == 1)
    parts = [table.to_rankings(k) for table in tables.values()]
    missing: Mapping[str, Sequence[str]] = {}
    if answers := list_files(specs, ["answers"]):
        found, missing = read_pasted_answers(answers, classes, k, console)
        parts.append(found)
    # Last, since they cost money: all other sources have been read without an error.
    parts += [
        ask_model(open_language_model(spec.removeprefix("model:")), classes, console, yes=yes)
        for spec in specs
        if spec.startswith("model:")
    ]
    return SourceRankings(merge(parts), tables, missing)


def ask_model(
    model: LanguageModel, classes: ClassLists, console: Console, *, yes: bool
) -> Rankings:
    """Print what the calls of a language model will cost, ask for confirmation, and make them."""
    target_of = name_by_words(classes.targets, classes.look_up)
    item_of = name_by_words(classes.items, classes.look_up)
    estimate = model.estimate(target_of, item_of)
    say(f"{model.model}: {estimate}", console)
    if estimate.calls and not yes:
        typer.confirm("Continue?", abort=True)
    try:
        found = model.rankings(target_of, item_of, verbose=sys.stderr.isatty())
    except KeyboardInterrupt:
        say(f"stopped; the answers so far are in {model.log}: run again to continue", console)
        raise
    return _restore_names(found, classes, target_of)


def read_pasted_answers(
    paths: list[Path], classes: ClassLists, k: int | None, console: Console
) -> tuple[Rankings, Mapping[str, Sequence[str]]]:
    """Read files of answers, print what each of them lacks, and return what to ask again for."""
    from rankshot.sources import read_answer_files

    target_of = name_by_words(classes.targets, classes.look_up)
    item_of = name_by_words(classes.items, classes.look_up)
    found = read_answer_files(paths, target_of, item_of, k)
    for rater, answers in found.answers.items():
        count = format_count(len(answers.orders), "usable list")
        lines = [f"answers, {rater}: {count} for {len(classes.targets):,} classes"]
        print_notes(lines, answers.notes, console)
    return _restore_names(found.rankings, classes, target_of), found.follow_ups


def _restore_names(found: Rankings, classes: ClassLists, target_of: Mapping[str, str]) -> Rankings:
    """Return rankings with the names of the classes, in place of the words for them."""
    from rankshot.core.tables import as_text_array

    names = [target_of[words] for words in found.targets]
    return replace(found, items=classes.items, targets=as_text_array(names))


def print_notes(lines: list[str], notes: Sequence[str], console: Console) -> None:
    """Print lines, and the first notes below them."""
    lines = [*lines, *(f"  {note}" for note in notes[:NOTES_SHOWN])]
    if len(notes) > NOTES_SHOWN:
        lines.append(f"  and {format_count(len(notes) - NOTES_SHOWN, 'more note')}")
    say("\n".join(lines), console)


def merge(parts: list[Rankings]) -> Rankings:
    """Return the rankings of all sources, whose names must differ."""
    from rankshot.ranking import Rankings

    sources = [part.source_names[0] for part in parts]
    if repeated := sorted({name for name in sources if sources.count(name) > 1}):
        raise RankshotError(f"two sources have the name {quote_names(repeated)}; rename a file")
    return Rankings.concatenate(parts)


def _print_misspellings(given: SourceInput, console: Console) -> None:
    """Print the words that may be misspelt, for all sources: word vectors would not say so."""
    from rankshot.sources import find_misspellings

    classes = given.classes
    names = [name for name in classes.targets + classes.items if name not in given.senses]
    words = dict.fromkeys(classes.words.get(name, name) for name in names)
    if found := find_misspellings(words) if words else {}:
        pairs = [f"{word!r} (did you mean {noun!r}?)" for word, noun in found.items()]
        more = f" and {len(pairs) - MISSPELT_SHOWN} more" if len(pairs) > MISSPELT_SHOWN else ""
        say(
            f"warning: not in WordNet, and perhaps misspelt: {', '.join(pairs[:MISSPELT_SHOWN])}"
            f"{more}. Words to look up can be given with --names FILE",
            console,
        )


def _print_coverage(
    table: Similarity, classes: ClassLists, console: Console, *, is_only: bool
) -> None:
    """Print how many of the similarities a source knows, and which names it does not know.

    New classes that the only source does not know are named at the end, as those that no source
    knows.
    """
    lines = [f"{table.source}: covers {_format_share(table.coverage)} of all pairs"]
    for unknown, what, effect in (
        (() if is_only else table.unknown_targets, classes.kind, "has no ranking of"),
        (table.unknown_items, "seen class", "ranks without"),
    ):
        if unknown:
            lines.append(f"  {effect} these {what}es, unknown to it: {quote_names(unknown)}")
    print_notes(lines, table.notes, console)


def _format_share(share: float) -> str:
    """Return a share in per cent; 100% means all, and 0% none."""
    return f"{share:.0%}" if share in {0, 1} else f"{min(max(share, 0.01), 0.99):.0%}"

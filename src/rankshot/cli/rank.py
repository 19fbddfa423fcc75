"""``rankshot rank``: rankings of seen classes from words, corpora and language models."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import SHOWN, check_writable, say
from rankshot.core.errors import RankshotError, format_count, quote_names, suggest_name

if TYPE_CHECKING:
    from rich.console import Console

    from rankshot.ranking.rankings import Rankings
    from rankshot.semantics.language_model import LanguageModel
    from rankshot.semantics.similarity import Similarity
    from rankshot.semantics.wordnet import WordNet

SOURCES = ("wordnet", "glove", "vectors", "corpus", "table", "hits", "model")
NOTES = 10
"""How many notes of a source are printed without --notes."""
NEEDS_FILE = ("vectors", "corpus", "table", "hits")
HAVE_OWN_NAMES = ("table", "hits")
"""Sources that do not look up words: their files name the classes."""
MISSPELT_SHOWN = 10


def rank(
    seen: Annotated[
        Path,
        typer.Option(
            help="A text file that names the seen classes, one per line; # starts a comment."
        ),
    ],
    new: Annotated[
        Path, typer.Option(help="A text file that names the new classes, one per line.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The rankings to write (.jsonl).")],
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<source>",
            help="Where the rankings come from; may be repeated. One of wordnet or wordnet:MEASURE "
            "(path, lch, wup, resnik, lin, jcn), glove, vectors:FILE, corpus:FILE, table:FILE "
            "(similarities as CSV or Parquet), hits:FILE (search counts as CSV) and model:NAME (a "
            "language model, see --base-url). The default is wordnet.",
        ),
    ] = None,
    sense: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<name=sense>",
            help="The WordNet sense of a class name, for example seal=seal.n.09; may be repeated.",
        ),
    ] = None,
    senses: Annotated[
        Path | None,
        typer.Option(
            help="A text file of WordNet senses, one line name = sense per class; see --senses-out."
        ),
    ] = None,
    senses_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the WordNet senses of all classes to this text file, the most doubtful "
            "first. Correct it, and pass it as --senses."
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<category>",
            help="Use only WordNet senses of this category, for example animal; may be repeated.",
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            help="How many places of each ranking are kept. The default is all, and 10 for a "
            "language model. `rankshot classify` has its own --k, 10 by default, and can use a "
            "file with all places. A source that does not know some seen classes lists those that "
            "it compared, tied after the first k."
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="A CSV file with the columns class and look_up: the words that the sources look "
            "up in place of a class name. The output keeps the class name."
        ),
    ] = None,
    similarity_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the similarities as well (.csv, .parquet), for `rankshot classify --head "
            "direct` and `--head conse`. Several sources are rescaled to [0, 1] and averaged."
        ),
    ] = None,
    base_url: Annotated[
        str, typer.Option(help="The endpoint of model:NAME, without /chat/completions.")
    ] = "http://localhost:8080/v1",
    raters: Annotated[
        int, typer.Option(help="How often model:NAME is asked about each new class.")
    ] = 5,
    log: Annotated[
        Path | None,
        typer.Option(
            help="A file that keeps the answers of model:NAME. A run that was stopped continues "
            "from it."
        ),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation before model:NAME is used.")
    ] = False,
    notes: Annotated[
        bool, typer.Option("--notes", help="Show all notes on how the sources read the names.")
    ] = False,
) -> None:
    """Rank the seen classes by their similarity to each new class.

    Example: rankshot rank --seen seen.txt --new new.txt --source wordnet --source glove
    -o rankings.jsonl
    """
    from rich.console import Console

    from rankshot import semantics
    from rankshot.ranking import write_rankings

    specs = source or ["wordnet"]
    _check_specs(specs, senses or senses_out or sense, category)
    _check_outputs(
        {
            "-o": output,
            "--similarity-out": similarity_out,
            "--senses-out": senses_out,
            "--log": log,
        },
        [seen, new, names, senses, *_list_files(specs)],
        specs,
    )
    classes = _read_classes(seen, new, names, senses, sense or [], category, k)
    console = Console()
    if any(spec.partition(":")[0] not in HAVE_OWN_NAMES for spec in specs):
        _print_misspellings(classes, console)
    parts: list[Rankings] = []
    tables: dict[str, Similarity] = {}
    for spec in specs:
        kind, _, detail = spec.partition(":")
        if kind == "model":
            places = k or min(10, len(classes.items))
            model = semantics.LanguageModel(detail, base_url, raters=raters, k=places, log=log)
            parts.append(_ask_model(model, classes, console, yes=yes))
        else:
            tables[spec] = _read_source(kind, detail, classes)
            _print_coverage(tables[spec], console, notes=notes, is_only=len(specs) == 1)
            if kind == "wordnet" and tables[spec].notes and senses_out is None:
                say("  to correct senses, see --senses-out", console)
            parts.append(tables[spec].to_rankings(k))
    rankings = _merge(parts)
    # Files come first: a reader of the output that stops early (`| head`) ends the command.
    write_rankings(rankings, output)
    written = [f"{format_count(len(rankings), 'ranking')} written to {output}"]
    if similarity_out is not None:
        written.append(_write_similarity(list(tables.values()), similarity_out))
    if senses_out is not None:
        by_wordnet = next(tables[spec] for spec in tables if spec.startswith("wordnet"))
        written.append(_write_senses(by_wordnet, classes, senses_out))
    _print_rankings(rankings, classes.targets, console)
    say("\n".join(written), console)
    _warn_of_classes_without_ranking(rankings, classes.targets, console)


# ---- What is given


@dataclass(frozen=True)
class _Classes:
    """The new and the seen classes, and how sources read their names.

    ``look_up`` has the words for some names, ``senses`` their WordNet senses; ``categories`` are
    those that WordNet senses may have.
    """

    targets: tuple[str, ...]
    items: tuple[str, ...]
    look_up: Mapping[str, str]
    senses: Mapping[str, str]
    categories: list[str] | None


def _read_classes(
    seen: Path,
    new: Path,
    names: Path | None,
    senses: Path | None,
    sense: Sequence[str],
    categories: list[str] | None,
    k: int | None,
) -> _Classes:
    from rankshot import semantics
    from rankshot.core.text_files import read_names
    from rankshot.core.validation import require_whole_number

    items, targets = read_names(seen), read_names(new)
    if k is not None:
        # Here the message names the option, before anything is computed.
        require_whole_number("--k", k, len(items))
    if both := [name for name in targets if name in items]:
        raise RankshotError(f"classes are both seen and new: {quote_names(both)}")
    given = {str(senses): semantics.read_senses(senses) if senses else {}}
    given["--sense"] = _parse_senses(sense)
    for where, pins in given.items():
        if odd := [name for name in pins if name not in items and name not in targets]:
            hint = suggest_name(odd[0], items + targets)
            raise RankshotError(f"{where}: no class {odd[0]!r}{hint}; leave out its sense")
    look_up = {} if names is None else semantics.read_look_up(names, items + targets)
    pins = {name: sense for some in given.values() for name, sense in some.items()}
    return _Classes(targets, items, look_up, pins, categories or None)


def _check_outputs(
    outputs: Mapping[str, Path | None], inputs: Sequence[Path | None], specs: list[str]
) -> None:
    """Refuse an output that cannot be written before anything is computed or paid for."""
    from rankshot.core.tables import TABLE_ENDINGS
    from rankshot.core.text_files import require_ending
    from rankshot.ranking.files import ENDINGS

    given = {option: path for option, path in outputs.items() if path is not None}
    endings = {"-o": ENDINGS, "--similarity-out": TABLE_ENDINGS}
    option_of: dict[Path, str] = {}
    for option, path in given.items():
        if option in endings:
            require_ending(path, endings[option])
        other = option_of.setdefault(path.resolve(), option)
        if other != option:
            raise RankshotError(f"{path}: {other} and {option} must be two files")
        check_writable(path, *inputs)
    if "--similarity-out" in given and all(spec.startswith("model:") for spec in specs):
        raise RankshotError(
            "--similarity-out: a language model gives rankings, not similarities; add another "
            "--source"
        )


def _list_files(specs: list[str]) -> list[Path]:
    """Return the files that the sources read."""
    parts = [spec.partition(":") for spec in specs]
    return [Path(detail) for kind, _, detail in parts if kind in NEEDS_FILE]


def _check_specs(specs: list[str], senses: object, categories: list[str] | None) -> None:
    for spec in specs:
        _check_spec(spec)
    if repeated := sorted({spec for spec in specs if specs.count(spec) > 1}):
        raise RankshotError(f"sources given more than once: {quote_names(repeated)}")
    if (senses or categories) and not any(spec.startswith("wordnet") for spec in specs):
        raise RankshotError(
            "--sense, --senses, --senses-out and --category are for --source wordnet"
        )


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


def _parse_senses(options: Sequence[str]) -> dict[str, str]:
    senses = {}
    for option in options:
        name, equals, sense = option.partition("=")
        if not (name and equals and sense):
            raise RankshotError(f"--sense has the form seal=seal.n.09, not {option!r}")
        senses[name] = sense
    return senses


# ---- Sources


def _read_source(kind: str, detail: str, classes: _Classes) -> Similarity:
    """Return the similarities of one source; it must know some of them."""
    from rankshot import semantics

    own_names: set[str] = set()
    if kind == "wordnet":
        compare = _make_wordnet(classes, detail or "path").similarity
        # A pinned sense needs no words.
        own_names = set(classes.senses)
    elif kind == "glove":
        compare = semantics.WordVectors.glove().similarity
    elif kind == "vectors":
        compare = semantics.WordVectors.from_file(detail).similarity
    elif kind == "corpus":
        corpus = semantics.Corpus(detail, measure="cosine", verbose=sys.stderr.isatty())
        compare = corpus.similarity
    else:
        read = semantics.read_similarity if kind == "table" else semantics.read_hit_counts
        table = read(Path(detail))
        compare = table.reindex
        own_names = {*table.targets, *table.items}
    words = {name: text for name, text in classes.look_up.items() if name not in own_names}
    found = semantics.compare_as(compare, classes.targets, classes.items, words)
    if found.coverage == 0:
        raise RankshotError(
            f"{found.source}: knows no pair of a new class and a seen class, such as "
            f"{classes.targets[0]!r} and {classes.items[0]!r}; leave out this source, or give "
            "words to look up with --names FILE"
        )
    return found


def _make_wordnet(classes: _Classes, measure: str = "path") -> WordNet:
    from rankshot.semantics import WordNet

    return WordNet(measure, senses=classes.senses, categories=classes.categories)


def _ask_model(model: LanguageModel, classes: _Classes, console: Console, *, yes: bool) -> Rankings:
    """Print what the calls of a language model will cost, ask for confirmation, and make them."""
    from rankshot.core.tables import as_text_array

    target_of = _name_by_words(classes.targets, classes.look_up)
    item_of = _name_by_words(classes.items, classes.look_up)
    estimate = model.estimate(target_of, item_of)
    say(f"{model.model}: {estimate}", console)
    if estimate.calls and not yes:
        typer.confirm("Continue?", abort=True)
    found = model.rankings(target_of, item_of, verbose=sys.stderr.isatty())
    names = [target_of[words] for words in found.targets]
    return replace(found, items=classes.items, targets=as_text_array(names))


def _name_by_words(names: tuple[str, ...], look_up: Mapping[str, str]) -> dict[str, str]:
    """Return the class of each text that a language model gets."""
    found: dict[str, str] = {}
    for name in names:
        words = look_up.get(name, name)
        if words in found:
            raise RankshotError(
                f"a language model cannot distinguish {found[words]!r} and {name!r}: both are "
                f"looked up as {words!r}"
            )
        found[words] = name
    return found


def _merge(parts: list[Rankings]) -> Rankings:
    from rankshot.ranking import Rankings

    sources = [part.source_names[0] for part in parts]
    if repeated := sorted({name for name in sources if sources.count(name) > 1}):
        raise RankshotError(f"two sources have the name {quote_names(repeated)}; rename a file")
    return Rankings.concatenate(parts)


# ---- What is written


def _write_similarity(tables: list[Similarity], path: Path) -> str:
    """Write the similarities of one source, or the mean of several, without unknown rows.

    Returns what is to be said of the file.
    """
    from rankshot.semantics import arithmetic_mean, write_similarity

    table = tables[0] if len(tables) == 1 else arithmetic_mean(tables)
    known = [name for name in table.targets if name not in set(table.unknown_targets)]
    write_similarity(table.select(known, table.items), path)
    sources = " and ".join(table.source for table in tables)
    what = sources if len(tables) == 1 else f"the mean of {sources}, each rescaled to [0, 1]"
    return f"similarities written to {path}: {what}"


def _write_senses(table: Similarity, classes: _Classes, path: Path) -> str:
    """Write the senses of all classes that WordNet knows, and return what is to be said of it."""
    from rankshot.semantics import write_senses

    unknown = {*table.unknown_targets, *table.unknown_items}
    words = {
        name: name if name in classes.senses else classes.look_up.get(name, name)
        for name in table.targets + table.items
        if name not in unknown
    }
    senses = _make_wordnet(classes).senses(dict.fromkeys(words.values()))
    write_senses({name: senses[text] for name, text in words.items()}, path)
    return f"senses written to {path}"


# ---- What is printed


def _print_misspellings(classes: _Classes, console: Console) -> None:
    """Print the words that may be misspelt, for all sources: word vectors would not say so."""
    from rankshot.semantics import find_misspellings

    names = [name for name in classes.targets + classes.items if name not in classes.senses]
    words = dict.fromkeys(classes.look_up.get(name, name) for name in names)
    if found := find_misspellings(words) if words else {}:
        pairs = [f"{word!r} (did you mean {noun!r}?)" for word, noun in found.items()]
        more = f" and {len(pairs) - MISSPELT_SHOWN} more" if len(pairs) > MISSPELT_SHOWN else ""
        say(
            f"warning: not in WordNet, and perhaps misspelt: {', '.join(pairs[:MISSPELT_SHOWN])}"
            f"{more}. Words to look up can be given with --names FILE",
            console,
        )


def _warn_of_classes_without_ranking(
    rankings: Rankings, targets: tuple[str, ...], console: Console
) -> None:
    ranked = set(rankings.target_names)
    if without := [name for name in targets if name not in ranked]:
        say(
            f"warning: no ranking of {quote_names(without)}, which no source knows: such a class "
            "cannot be predicted. Give words to look up with --names FILE",
            console,
        )


def _print_coverage(table: Similarity, console: Console, *, notes: bool, is_only: bool) -> None:
    """Print how many of the similarities a source knows, and which names it does not know.

    New classes that the only source does not know are named at the end, as those that no source
    knows.
    """
    lines = [f"{table.source}: knows {_format_share(table.coverage)} of all pairs"]
    for unknown, what, effect in (
        (() if is_only else table.unknown_targets, "new", "has no ranking of"),
        (table.unknown_items, "seen", "ranks without"),
    ):
        if unknown:
            lines.append(f"  {effect} these {what} classes, unknown to it: {quote_names(unknown)}")
    shown = len(table.notes) if notes else NOTES
    lines += [f"  {note}" for note in table.notes[:shown]]
    if rest := table.notes[shown:]:
        lines.append(f"  {format_count(len(rest), 'more note')}; --notes shows all of them")
    say("\n".join(lines), console)


def _format_share(share: float) -> str:
    """Return a share in per cent; 100% means all, and 0% none."""
    return f"{share:.0%}" if share in {0, 1} else f"{min(max(share, 0.01), 0.99):.0%}"


def _print_rankings(rankings: Rankings, targets: tuple[str, ...], console: Console) -> None:
    """Print a table of each new class's first seen classes, with one column per source."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title="The seen classes most similar to each new class")
    table.add_column("new class", style="bold")
    for name in rankings.source_names:
        table.add_column(Text(name), overflow="fold")
    for target in targets:
        cells = [_format_first(rankings, target, name) for name in rankings.source_names]
        table.add_row(*(Text(cell) for cell in (target, *cells)))
    console.print(table)


def _format_first(rankings: Rankings, target: str, source: str) -> str:
    """Return the first classes of a ranking, with its ties, as they are in the file."""
    from rankshot.ranking.layouts import iterate_choices

    these = rankings[(rankings.targets == target) & (rankings.sources == source)]
    if len(these) == 0:
        return "-"
    groups: list[str] = []
    left = SHOWN
    for codes, _ in iterate_choices(these[0]):
        names = [these.items[i] for i in codes[:left]]
        # A tie may continue after the last class that is shown.
        more = [f"{len(codes) - left} more"] if len(codes) > left else []
        groups.append(" = ".join(names + more))
        left -= len(names)
        if left == 0:
            break
    others = f" ({format_count(len(these) - 1, 'more rater')})" if len(these) > 1 else ""
    return " > ".join(groups) + others

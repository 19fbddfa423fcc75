"""``rankshot rank``: rankings of seen classes from words, corpora and language models."""

from __future__ import annotations

import sys
from collections.abc import Sequence
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
            "language model."
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
    from rankshot.core.text_files import read_names
    from rankshot.ranking import Rankings, write_rankings

    _check_output(output, log)
    _check_senses_out(senses_out, (output, log, seen, new, senses))
    specs = source or ["wordnet"]
    _check_specs(specs, senses or senses_out or sense, category)
    items, targets = read_names(seen), read_names(new)
    if both := [name for name in targets if name in items]:
        raise RankshotError(f"classes are both seen and new: {quote_names(both)}")
    pins = {**(semantics.read_senses(senses) if senses else {}), **_parse_senses(sense or [])}
    console = Console()
    parts: list[Rankings] = []
    by_wordnet: Similarity | None = None
    for spec in specs:
        kind, _, detail = spec.partition(":")
        if kind == "model":
            places = k or min(10, len(items))
            model = semantics.LanguageModel(detail, base_url, raters=raters, k=places, log=log)
            parts.append(_ask_model(model, targets, items, console, yes=yes))
            continue
        table = _read_source(kind, detail, targets, items, pins, category or None)
        parts.append(table.to_rankings(k))
        _print_coverage(table, console, notes=notes)
        by_wordnet = table if kind == "wordnet" else by_wordnet
    names = [part.source_names[0] for part in parts]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise RankshotError(f"two sources have the name {quote_names(repeated)}; rename a file")
    rankings = Rankings.concatenate(parts)
    _print_rankings(rankings, targets, console)
    write_rankings(rankings, output)
    say(f"{format_count(len(rankings), 'ranking')} written to {output}", console)
    if senses_out and by_wordnet:
        wordnet = semantics.WordNet(senses=pins, categories=category or None)
        _write_senses(by_wordnet, wordnet, senses_out)
        say(f"the senses of the classes written to {senses_out}", console)


def _check_output(output: Path, log: Path | None) -> None:
    """Refuse an output that cannot be written before anything is computed or paid for."""
    from rankshot.core.text_files import require_ending
    from rankshot.ranking.files import ENDINGS

    require_ending(output, ENDINGS)
    if log is not None and log.resolve() == output.resolve():
        raise RankshotError(f"{output}: the log and the output must be two files")
    check_writable(output)


def _check_senses_out(path: Path | None, others: Sequence[Path | None]) -> None:
    if path is not None:
        if path.resolve() in [other.resolve() for other in others if other is not None]:
            raise RankshotError(f"{path}: --senses-out must be a file of its own")
        check_writable(path)


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


def _write_senses(table: Similarity, wordnet: WordNet, path: Path) -> None:
    """Write the senses of all classes that WordNet knows."""
    from rankshot.semantics import write_senses

    unknown = {*table.unknown_targets, *table.unknown_items}
    names = dict.fromkeys(table.targets + table.items)
    write_senses(wordnet.senses([name for name in names if name not in unknown]), path)


def _read_source(
    kind: str,
    detail: str,
    targets: tuple[str, ...],
    items: tuple[str, ...],
    senses: dict[str, str],
    categories: list[str] | None,
) -> Similarity:
    """Return the similarities of one source."""
    from rankshot import semantics

    if kind == "wordnet":
        wordnet = semantics.WordNet(detail or "path", senses=senses, categories=categories)
        return wordnet.similarity(targets, items)
    if kind == "glove":
        return semantics.WordVectors.glove().similarity(targets, items)
    if kind == "vectors":
        return semantics.WordVectors.from_file(detail).similarity(targets, items)
    if kind == "corpus":
        corpus = semantics.Corpus(detail, measure="cosine", verbose=sys.stderr.isatty())
        return corpus.similarity(targets, items)
    read = semantics.read_similarity if kind == "table" else semantics.read_hit_counts
    return read(Path(detail)).select(targets, items)


def _ask_model(
    model: LanguageModel,
    targets: tuple[str, ...],
    items: tuple[str, ...],
    console: Console,
    *,
    yes: bool,
) -> Rankings:
    """Print what the calls of a language model will cost, ask for confirmation, and make them."""
    estimate = model.estimate(targets, items)
    say(f"{model.model}: {estimate}", console)
    if estimate.calls and not yes:
        typer.confirm("Continue?", abort=True)
    return model.rankings(targets, items, verbose=sys.stderr.isatty())


def _print_coverage(table: Similarity, console: Console, *, notes: bool) -> None:
    """Print how many of the similarities a source knows."""
    lines = [f"{table.source}: knows {table.coverage:.0%} of all pairs"]
    if table.unknown_targets:
        lines.append(f"  it does not know the new classes {quote_names(table.unknown_targets)}")
    if table.unknown_items:
        lines.append(f"  it does not know the seen classes {quote_names(table.unknown_items)}")
    shown = len(table.notes) if notes else NOTES
    lines += [f"  {note}" for note in table.notes[:shown]]
    if rest := table.notes[shown:]:
        lines.append(f"  {format_count(len(rest), 'more note')}; --notes shows all of them")
    say("\n".join(lines), console)


def _print_rankings(rankings: Rankings, targets: tuple[str, ...], console: Console) -> None:
    """Print a table of each new class's first seen classes, with one column per source."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"The {SHOWN} seen classes most similar to each new class")
    table.add_column("new class", style="bold")
    for name in rankings.source_names:
        table.add_column(Text(name), overflow="fold")
    for target in targets:
        cells = [_format_first(rankings, target, name) for name in rankings.source_names]
        table.add_row(*(Text(cell) for cell in (target, *cells)))
    console.print(table)


def _format_first(rankings: Rankings, target: str, source: str) -> str:
    these = rankings[(rankings.targets == target) & (rankings.sources == source)]
    if len(these) == 0:
        return "-"
    first = these[0].top(min(SHOWN, int(these.lengths[0])))
    names, places = [first.items[i] for i in first.codes], first.places
    text: str = names[0]
    for i in range(1, min(SHOWN, len(names))):
        text += (" = " if places[i] == places[i - 1] else " > ") + names[i]
    # A tie may continue after the last place that is shown.
    text += f" = {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return text + (f" ({len(these) - 1} more raters)" if len(these) > 1 else "")

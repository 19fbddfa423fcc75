"""``rankshot rank``: rankings of seen classes from words, corpora and language models."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from rankshot.cli.console import SHOWN, check_writable, say
from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.core.text_files import read_names
from rankshot.ranking.files import check_ending, write_rankings
from rankshot.ranking.rankings import Rankings
from rankshot.semantics.corpus import Corpus
from rankshot.semantics.hit_count_files import read_hit_counts
from rankshot.semantics.language_model import LanguageModel
from rankshot.semantics.similarity import Similarity
from rankshot.semantics.similarity_files import read_similarity
from rankshot.semantics.word_vectors import WordVectors
from rankshot.semantics.wordnet import WordNet

SOURCES = ("wordnet", "glove", "vectors", "corpus", "table", "hits", "model")
NEEDS_FILE = ("vectors", "corpus", "table", "hits")


def rank(
    seen: Annotated[
        Path, typer.Option(help="The classes known, one name a line; # starts a remark.")
    ],
    unseen: Annotated[Path, typer.Option(help="The classes wanted, one name a line.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The rankings file to write (.jsonl).")
    ],
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<source>",
            help="Where rankings come from; may be repeated. wordnet, or wordnet:MEASURE (path, "
            "lch, wup, resnik, lin, jcn); glove; vectors:FILE; corpus:FILE; table:FILE "
            "(similarities in CSV or Parquet); hits:FILE (search counts in CSV); model:NAME (a "
            "language model, see --base-url). By default wordnet.",
        ),
    ] = None,
    sense: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<pin>",
            help="Pin a sense for wordnet, as seal=seal.n.09; may be repeated.",
        ),
    ] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<category>",
            help="Only senses of this category for wordnet, as animal; may be repeated.",
        ),
    ] = None,
    k: Annotated[
        int | None, typer.Option(help="Keep the first k; a language model orders k (10).")
    ] = None,
    base_url: Annotated[
        str, typer.Option(help="The endpoint of model:NAME, before /chat/completions.")
    ] = "http://localhost:8080/v1",
    raters: Annotated[int, typer.Option(help="Calls of model:NAME for each target.")] = 5,
    log: Annotated[
        Path | None, typer.Option(help="Keep the answers of model:NAME here, and resume from it.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before model:NAME starts.")
    ] = False,
    notes: Annotated[bool, typer.Option("--notes", help="Show how every name was read.")] = False,
) -> None:
    """Rank the classes a classifier knows by their similarity to new ones.

    Example: rankshot rank --seen seen.txt --unseen unseen.txt --source wordnet --source glove
    -o rankings.jsonl
    """
    _check_output(output, log)
    specs = [_checked_spec(spec) for spec in source or ["wordnet"]]
    _check_together(specs, sense, category)
    items, targets = read_names(seen), read_names(unseen)
    if both := [name for name in targets if name in items]:
        raise RankshotError(f"both seen and unseen: {quote_names(both)}")
    console = Console()
    parts: list[Rankings] = []
    for spec in specs:
        kind, _, detail = spec.partition(":")
        if kind == "model":
            model = LanguageModel(
                detail, base_url, raters=raters, k=k or min(10, len(items)), log=log
            )
            parts.append(_ask(model, targets, items, console, yes=yes))
            continue
        pins = dict(_pins(sense or []))
        table = _table(kind, detail, targets, items, pins, category or None)
        parts.append(table.to_rankings(k))
        _report(table, console, notes=notes)
    names = [part.source_names[0] for part in parts]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise RankshotError(f"two sources have the name {quote_names(repeated)}; rename a file")
    rankings = Rankings.concatenate(parts)
    _show(rankings, targets, console)
    write_rankings(rankings, output)
    say(f"{len(rankings):,} rankings written to {output}", console)


def _check_output(output: Path, log: Path | None) -> None:
    """Refuse what cannot be written before anything is computed or paid for."""
    check_ending(output)
    if log is not None and log.resolve() == output.resolve():
        raise RankshotError(f"{output}: the log and the output must be two files")
    check_writable(output)


def _check_together(
    specs: list[str], senses: list[str] | None, categories: list[str] | None
) -> None:
    if repeated := sorted({spec for spec in specs if specs.count(spec) > 1}):
        raise RankshotError(f"sources given more than once: {quote_names(repeated)}")
    if (senses or categories) and not any(spec.startswith("wordnet") for spec in specs):
        raise RankshotError("--sense and --category are for --source wordnet")


def _checked_spec(spec: str) -> str:
    kind, colon, detail = spec.partition(":")
    if kind not in SOURCES:
        raise RankshotError(
            f"no source {kind!r}{suggest_name(kind, SOURCES)}; there are {', '.join(SOURCES)}"
        )
    if kind in NEEDS_FILE and not detail:
        raise RankshotError(f"source {kind!r} needs a file, as in {kind}:FILE")
    if kind == "model" and not detail:
        raise RankshotError("source 'model' needs a name, as in model:NAME")
    if kind == "glove" and colon:
        raise RankshotError(f"source 'glove' takes nothing behind it, as in {spec!r}")
    return spec


def _pins(senses: Sequence[str]) -> Iterator[tuple[str, str]]:
    for pin in senses:
        name, equals, sense = pin.partition("=")
        if not (name and equals and sense):
            raise RankshotError(f"a pin has the form seal=seal.n.09, not {pin!r}")
        yield name, sense


def _table(
    kind: str,
    detail: str,
    targets: tuple[str, ...],
    items: tuple[str, ...],
    pins: dict[str, str],
    categories: list[str] | None,
) -> Similarity:
    """Get the similarities of one source."""
    if kind == "wordnet":
        wordnet = WordNet(detail or "path", senses=pins, categories=categories)
        return wordnet.similarity(targets, items)
    if kind == "glove":
        return WordVectors.glove().similarity(targets, items)
    if kind == "vectors":
        return WordVectors.from_file(detail).similarity(targets, items)
    if kind == "corpus":
        corpus = Corpus(detail, measure="cosine", verbose=sys.stderr.isatty())
        return corpus.similarity(targets, items)
    table = read_similarity(detail) if kind == "table" else read_hit_counts(Path(detail))
    return table.select(targets, items)


def _ask(
    model: LanguageModel,
    targets: tuple[str, ...],
    items: tuple[str, ...],
    console: Console,
    *,
    yes: bool,
) -> Rankings:
    """Say what asking a language model will take, and ask it."""
    estimate = model.estimate(targets, items)
    say(f"{model.model}: {estimate}", console)
    if estimate.calls and not yes:
        typer.confirm("Go on?", abort=True)
    return model.rankings(targets, items, verbose=sys.stderr.isatty())


def _report(table: Similarity, console: Console, *, notes: bool) -> None:
    """Say how much a source knows."""
    lines = [f"{table.source}: knows {table.coverage:.0%} of all pairs"]
    if table.unknown_targets:
        lines.append(f"  nothing is known of the targets {quote_names(table.unknown_targets)}")
    if table.unknown_items:
        lines.append(f"  nothing is known of the items {quote_names(table.unknown_items)}")
    if notes:
        lines += [f"  {note}" for note in table.notes]
    elif table.notes:
        lines.append(f"  {len(table.notes)} notes on how names were read: --notes shows them")
    say("\n".join(lines), console)


def _show(rankings: Rankings, targets: tuple[str, ...], console: Console) -> None:
    """Print a table of each target's first items, a column a source."""
    table = Table(title=f"The {SHOWN} items most similar to each target")
    table.add_column("target", style="bold")
    for name in rankings.source_names:
        table.add_column(Text(name), overflow="fold")
    for target in targets:
        cells = [_first(rankings, target, name) for name in rankings.source_names]
        table.add_row(*(Text(cell) for cell in (target, *cells)))
    console.print(table)


def _first(rankings: Rankings, target: str, source: str) -> str:
    these = rankings[(rankings.targets == target) & (rankings.sources == source)]
    if len(these) == 0:
        return "-"
    first = these[0].top(min(SHOWN, int(these.lengths[0])))
    names, places = [first.items[i] for i in first.codes], first.places
    text: str = names[0]
    for i in range(1, min(SHOWN, len(names))):
        text += (" = " if places[i] == places[i - 1] else " > ") + names[i]
    # A tie may reach past the last place shown.
    text += f" = {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return text + (f" ({len(these) - 1} more raters)" if len(these) > 1 else "")

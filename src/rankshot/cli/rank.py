"""``rankshot rank``: rankings of seen classes from words, corpora and language models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankshot.cli.class_options import (
    ClassLists,
    NamesOption,
    NewOption,
    QuestionOption,
    RehearseOption,
    SeedOption,
    SeenOption,
    list_label_files,
    name_by_words,
    read_class_lists,
    read_question,
    read_seen_labels,
)
from rankshot.cli.console import SHOWN, check_new_folder, check_writable, say, write_folder
from rankshot.cli.rank_sources import (
    GIVE_RANKINGS,
    SourceInput,
    check_specs,
    list_files,
    make_wordnet,
    parse_senses,
    rank_by_sources,
)
from rankshot.core.errors import RankshotError, format_count, quote_names

if TYPE_CHECKING:
    from rich.console import Console

    from rankshot.ranking.rankings import Rankings
    from rankshot.sources.similarity import Similarity


def rank(
    seen: SeenOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The rankings to write (.jsonl).")],
    new: NewOption = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<source>",
            help="Where the rankings come from; may be repeated. One of wordnet or wordnet:MEASURE "
            "(path, lch, wup, resnik, lin, jcn), glove, vectors:FILE, corpus:FILE, table:FILE "
            "(similarities as CSV or Parquet), hits:FILE (search counts as CSV), model:NAME (a "
            "language model, see --base-url) and answers:FILE (what a chat window answered to the "
            "prompts of `rankshot ask`; a file or a folder). The default is wordnet.",
        ),
    ] = None,
    sense: Annotated[
        list[str] | None,
        typer.Option(
            metavar="<name=sense or file>",
            help="The WordNet sense of a class name, for example seal=seal.n.09; or a text file "
            "with one line name = sense per class (see --senses-out). May be repeated.",
        ),
    ] = None,
    senses_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the WordNet senses of all classes to this text file, the most doubtful "
            "first. Correct it, and pass it as --sense."
        ),
    ] = None,
    k: Annotated[
        int | None,
        typer.Option(
            help="How many places of each ranking are kept. The default is all, and 15 for a "
            "language model. `rankshot classify` has its own --k, and can use a file with "
            "all places. A source that does not know some seen classes lists those that "
            "it compared, tied after the first k."
        ),
    ] = None,
    names: NamesOption = None,
    rehearse: RehearseOption = None,
    seed: SeedOption = 0,
    similarity_out: Annotated[
        Path | None,
        typer.Option(
            help="Write the similarities as well (.csv, .parquet), for `rankshot classify --head "
            "direct` and `--head conse`. Several sources are rescaled to [0, 1] and averaged."
        ),
    ] = None,
    question: QuestionOption = "images",
    base_url: Annotated[
        str | None,
        typer.Option(
            help="The endpoint of model:NAME, without /chat/completions. The default is the "
            "environment variable OPENAI_BASE_URL, or OpenAI's own; the key is in OPENAI_API_KEY."
        ),
    ] = None,
    raters: Annotated[
        int,
        typer.Option(
            help="How often model:NAME is asked about each new class. Its answers are "
            "kept beside the output (.answers.jsonl), so that a run that was stopped goes on."
        ),
    ] = 5,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation before model:NAME is used.")
    ] = False,
    follow_up: Annotated[
        Path | None,
        typer.Option(
            help="A folder for prompts that ask again for what answers:FILE lacks. Save the "
            "answers beside the first ones, under the names of these prompts."
        ),
    ] = None,
) -> None:
    """Rank the seen classes by their similarity to each new class.

    Example: rankshot rank --seen seen.txt --new new.txt --source wordnet --source glove
    -o rankings.jsonl
    """
    from rich.console import Console

    from rankshot.ranking import write_rankings
    from rankshot.sources import LanguageModel

    specs = source or ["wordnet"]
    check_specs(specs, senses_out or sense)
    _check_outputs(
        {
            "-o": output,
            "--similarity-out": similarity_out,
            "--senses-out": senses_out,
        },
        [*list_label_files(seen, new), names, *list_files(specs)],
        specs,
    )
    answers = list_files(specs, ["answers"])
    _check_follow_up(follow_up, answers)
    asked: dict[str, Any] = {"k": k, "seed": seed, **read_question(question)}
    classes = read_class_lists(read_seen_labels(seen), new, names, rehearse, seed, k)
    given = SourceInput(classes, parse_senses(classes, sense or []))
    console = Console()
    open_language_model = partial(
        LanguageModel,
        base_url=base_url,
        raters=raters,
        log=output.with_suffix(".answers.jsonl"),
        **asked,
    )
    rankings, tables, missing = rank_by_sources(
        specs, given, open_language_model, console, k=k, yes=yes
    )
    if senses_out is None and any(tables[spec].notes for spec in tables if "wordnet" in spec):
        say("to correct senses, see --senses-out", console)
    # Files come first: a reader of the output that stops early (`| head`) ends the command.
    write_rankings(rankings, output)
    written = [f"{format_count(len(rankings), 'ranking')} written to {output}"]
    if similarity_out is not None:
        written.append(_write_similarity(list(tables.values()), similarity_out))
    if senses_out is not None:
        by_wordnet = next(tables[spec] for spec in tables if spec.startswith("wordnet"))
        written.append(_write_senses(by_wordnet, given, senses_out))
    if missing:
        written.append(_write_follow_ups(missing, classes, follow_up, asked))
    print_rankings(rankings, classes, console)
    say("\n".join(written), console)
    warn_of_classes_without_ranking(rankings, classes, console)
    _warn_of_equal_classes(rankings, console)
    _warn_of_numbers(classes, console)


# ---- What is given


def _check_outputs(
    outputs: Mapping[str, Path | None], inputs: Sequence[Path | None], specs: list[str]
) -> None:
    """Refuse an output that cannot be written before anything is computed or paid for."""
    from rankshot.core.files import require_ending
    from rankshot.core.tables import TABLE_ENDINGS
    from rankshot.ranking.ranking_files import ENDINGS

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
        if any(path.resolve().parent == folder.resolve() for folder in inputs if folder):
            raise RankshotError(f"{path}: do not write into the folder of answers")
    if "--similarity-out" in given and all(
        spec.partition(":")[0] in GIVE_RANKINGS for spec in specs
    ):
        raise RankshotError(
            "--similarity-out: a language model gives rankings, not similarities; add another "
            "--source"
        )


def _check_follow_up(folder: Path | None, answers: list[Path]) -> None:
    if folder is not None:
        if not answers:
            raise RankshotError("--follow-up is for --source answers:FILE")
        check_new_folder(folder)


# ---- What is written


def _write_similarity(tables: list[Similarity], path: Path) -> str:
    """Write the similarities of one source, or the mean of several, without unknown rows.

    Returns what is to be said of the file.
    """
    from rankshot.sources import arithmetic_mean, write_similarity

    table = tables[0] if len(tables) == 1 else arithmetic_mean(tables)
    known = [name for name in table.targets if name not in set(table.unknown_targets)]
    write_similarity(table.select(known, table.items), path)
    sources = " and ".join(table.source for table in tables)
    what = sources if len(tables) == 1 else f"the mean of {sources}, each rescaled to [0, 1]"
    return f"similarities written to {path}: {what}"


def _write_senses(table: Similarity, given: SourceInput, path: Path) -> str:
    """Write the senses of all classes that WordNet knows, and return what is to be said of it."""
    from rankshot.sources import write_senses

    unknown = {*table.unknown_targets, *table.unknown_items}
    words = {
        name: name if name in given.senses else given.classes.words.get(name, name)
        for name in table.targets + table.items
        if name not in unknown
    }
    senses = make_wordnet(given).senses(dict.fromkeys(words.values()))
    write_senses({name: senses[text] for name, text in words.items()}, path)
    return f"senses written to {path}"


def _write_follow_ups(
    missing: Mapping[str, Sequence[str]],
    classes: ClassLists,
    folder: Path | None,
    asked: Mapping[str, Any],
) -> str:
    """Write prompts for what the answers lack, and return what is to be said of them."""
    from rankshot.sources import make_follow_ups

    lists = format_count(sum(map(len, missing.values())), "list")
    if folder is None:
        return f"missing: {lists}; --follow-up FOLDER writes prompts that ask for them again"
    items = name_by_words(classes.items, classes.look_up)
    prompts = make_follow_ups(missing, items, **asked)
    write_folder(folder, prompts)
    return (
        f"missing: {lists}; paste the {format_count(len(prompts), 'prompt')} in {folder} into a "
        "chat window, save each answer beside the first ones under the name of its prompt, and run "
        "this command again without --follow-up. Give --question as you gave it to "
        "`rankshot ask`: the prompts repeat it"
    )


# ---- What is printed


def warn_of_classes_without_ranking(
    rankings: Rankings, classes: ClassLists, console: Console
) -> None:
    """Name the classes that no source ranks."""
    ranked = set(rankings.target_names)
    if without := [name for name in classes.targets if name not in ranked]:
        say(
            f"warning: no ranking of {quote_names(without)}, which no source knows: such a class "
            "cannot be predicted. Give words to look up with --names FILE",
            console,
        )


def _warn_of_equal_classes(rankings: Rankings, console: Console) -> None:
    """Name the classes that have the same rankings."""
    from rankshot.zeroshot.heads.base import group_equal_classes

    for same in group_equal_classes(rankings):
        say(
            f"warning: {quote_names(same)} have the same ranking: they cannot be told apart. Add a "
            "source that knows how they differ, or correct the file by hand",
            console,
        )


def _warn_of_numbers(classes: ClassLists, console: Console) -> None:
    """Say that columns without names, 0, 1, 2, are ranked as the words zero, one, two."""
    words = {**classes.words, **classes.look_up}
    if all(words.get(name, name).isdecimal() for name in classes.items):
        say(
            f"warning: the seen classes are numbers ({quote_names(classes.items)}): give the "
            "columns the names of the classes, or words to look up with --names FILE",
            console,
        )


def print_rankings(rankings: Rankings, classes: ClassLists, console: Console) -> None:
    """Print a table of each class's first seen classes, with one column per source."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"The seen classes most similar to each {classes.kind}")
    table.add_column(classes.kind, style="bold")
    for name in rankings.source_names:
        table.add_column(Text(name), overflow="fold")
    for target in classes.targets:
        cells = [_format_first(rankings, target, name) for name in rankings.source_names]
        table.add_row(*(Text(cell) for cell in (target, *cells)))
    console.print(table)


def _format_first(rankings: Rankings, target: str, source: str) -> str:
    """Return the first classes of a ranking, with its ties, as they are in the file."""
    from rankshot.ranking.matrices import iterate_choices

    these = rankings[(rankings.targets == target) & (rankings.sources == source)]
    if len(these) == 0:
        return "-"
    groups: list[str] = []
    left = SHOWN
    choices = iter(iterate_choices(these[0]))
    for codes, _ in choices:
        names = [these.items[i] for i in codes[:left]]
        # A tie may continue after the last class that is shown.
        more = [f"{len(codes) - left} more"] if len(codes) > left else []
        groups.append(" = ".join(names + more))
        left -= len(names)
        if left == 0:
            break
    if (rest := sum(len(codes) for codes, _ in choices)) > 0:
        groups.append(f"{rest} more")
    others = f" ({format_count(len(these) - 1, 'more rater')})" if len(these) > 1 else ""
    return " > ".join(groups) + others

"""``rankshot rank`` and ``ask``: rankings of seen classes from words, corpora, language models."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import typer

from rankshot import core, ranking, sources
from rankshot.cli.classes import (
    ClassLists,
    list_label_files,
    read_class_lists,
    read_question,
    read_seen_labels,
)
from rankshot.cli.console import (
    SHOWN,
    check_folder,
    check_output,
    format_order,
    print_table,
    refuse,
    say,
    write_folder,
)
from rankshot.core.errors import RankshotError, format_count, join_some, quote_names
from rankshot.sources.registry import (
    ANSWERS,
    LANGUAGE_MODEL,
    LOOK_ALIKES,
    Spec,
    compare_classes,
    parse_source,
)

DEFAULT_SOURCE = "wordnet"
MISSPELT_SHOWN = 10
NOTES_SHOWN = 20


def rank(
    *,
    seen: str,
    output: Path,
    new: str | None = None,
    source: list[str] | None = None,
    names_out: Path | None = None,
    k: int | None = None,
    names: Path | None = None,
    rehearse: str | None = None,
    seed: int = 0,
    similarity_out: Path | None = None,
    question: str = "images",
    raters: int = 5,
    yes: bool = False,
    follow_up: Path | None = None,
    skip_unknown: bool = False,
) -> None:
    """Rank the seen classes by their similarity to each new class.

    Example: rankshot rank --seen seen.txt --new new.txt --source wordnet --source glove
    -o rankings.jsonl

    Parameters
    ----------
    seen : <file or imagenet-1k>
        The seen classes: a text file with one name per line (# starts a comment), a JSON file (a
        list, an object that maps indices to names, or the config.json of a transformers model), a
        table of scores (.csv, .parquet), or imagenet-1k. Lists of synonyms and WordNet ids
        get readable names, which are printed.
    output
        The rankings to write (.jsonl).
    new : <file or names>
        The new classes: a file as for --seen, or names separated by commas. Required without
        --rehearse.
    source : <source>
        Where the rankings come from; may be repeated. One of {sources}. For llm:MODEL, set the
        environment variable OPENAI_API_KEY to your key and, for an endpoint other than OpenAI's,
        OPENAI_BASE_URL to its address, such as http://localhost:8080/v1. The default is wordnet.
    names_out
        Write the WordNet senses of all classes (.csv), the most doubtful first. Correct the file,
        and give it to --names.
    k
        How many places of each ranking are kept. The default is all, or 15 for a language model. If
        a source does not know some seen classes, its rankings list all classes that it compared,
        and those after the first k are tied.
    names
        A CSV file with the columns class and look_up: the words (or the WordNet sense, such as
        sea_horse.n.02) to look up in the sources instead of a class name. The output keeps the
        class name.
    rehearse : <table, names or number>
        Instead of --new: some seen classes are held out, and the other seen classes are ranked for
        them. Give a table of labelled inputs with a column label, to hold out their classes (or, if
        the table has most of the seen classes, a third of all seen classes, chosen by --seed);
        names separated by commas; a text file with one name per line; or the number of classes to
        hold out, chosen by --seed.
    seed
        The seed of the random choices: the classes of --rehearse, and the order of the names in
        the prompts for a language model.
    similarity_out
        Also write the similarities (.csv, .parquet), for `rankshot classify --head direct` and
        `--head conse`. Several sources are rescaled to [0, 1] and averaged.
    question : <question>
        The question for a language model. images: which seen classes would an image classifier
        predict most often? text: the same for a text classifier. any: the same for other inputs,
        which follow a colon, as in 'any:sound recordings' (the other questions accept this as
        well). contrast: which would it predict more often than for the other new classes? similar:
        which are most similar? Or a text file with a template that has {target}, {items} and {k}.
    raters
        How often llm:MODEL is asked about each new class. The number of tokens is printed first.
        The answers are kept next to the output (.answers.jsonl), so that an interrupted run can
        continue.
    yes
        Do not ask for confirmation before llm:MODEL is used.
    follow_up
        A folder for prompts that ask again for the lists that are missing from answers:FOLDER.
        Save the answers next to the first ones, under the names of these prompts.
    skip_unknown
        Leave out new classes that no source knows. By default, they are an error: the name may be
        misspelt.
    """
    specs = read_sources(source or [DEFAULT_SOURCE])
    by_wordnet = next((spec for spec in specs if spec.name == DEFAULT_SOURCE), None)
    refuse(names_out and by_wordnet is None, "--names-out needs --source wordnet")
    outputs = {"-o": output, "--similarity-out": similarity_out, "--names-out": names_out}
    _check_outputs(outputs, [*list_label_files(seen, new), names, *list_files(specs)], specs)
    if follow_up is not None:
        n_folders = sum(spec.name == ANSWERS for spec in specs)
        refuse(n_folders != 1, "--follow-up needs exactly one --source answers:FOLDER")
        check_folder(follow_up, ())
    asked: dict[str, Any] = {"k": k, "seed": seed, **read_question(question)}
    classes = read_class_lists(read_seen_labels(seen), new, names, rehearse, seed, k)
    log = output.with_suffix(".answers.jsonl")
    open_model = partial(sources.LanguageModel, raters=raters, log=log, **asked)
    may_lack = skip_unknown or follow_up is not None
    rankings, tables, missing = rank_by_sources(
        specs, classes, open_model, k=k, yes=yes, skip_unknown=may_lack
    )
    # Files come first: a reader of the output that stops early (`| head`) ends the command.
    ranking.write_rankings(rankings, output)
    written = [f"{format_count(len(rankings), 'ranking')} written to {output}"]
    if similarity_out is not None:
        written.append(_write_similarity(list(tables.values()), similarity_out))
    if names_out is not None and by_wordnet is not None:
        _write_senses(tables[by_wordnet], classes, names_out)
        written.append(f"senses written to {names_out}")
    if missing:
        written.append(write_follow_ups(missing, classes, follow_up, asked))
    print_rankings(rankings, classes)
    say("\n".join(written))
    print_warnings(rankings, classes)


# ---- What is given


def read_sources(given: list[str]) -> list[Spec]:
    """Return the sources that options name; none may be given twice."""
    for text in given:
        refuse(given.count(text) > 1, f"sources given more than once: {text!r}")
    return [parse_source(text) for text in given]


def list_files(specs: list[Spec]) -> list[Path]:
    """Return the files and folders that sources read."""
    return [spec.file for spec in specs if spec.file is not None]


def _check_outputs(
    outputs: Mapping[str, Path | None], inputs: Sequence[Path | None], specs: list[Spec]
) -> None:
    """Refuse an output that cannot be written before anything is computed or paid for."""
    from rankshot.ranking.ranking_files import ENDINGS

    endings = {"-o": ENDINGS, "--similarity-out": core.TABLE_ENDINGS, "--names-out": (".csv",)}
    folders = [folder.resolve() for folder in inputs if folder]
    has_tables = any(spec.kind.open and spec.name != LOOK_ALIKES for spec in specs)
    option_of: dict[Path, str] = {}
    for option, path in outputs.items():
        if path is None:
            continue
        check_output(path, endings[option], *inputs)
        other = option_of.setdefault(path.resolve(), option)
        refuse(other != option, f"{path}: {other} and {option} must be different files")
        refuse(
            path.resolve().parent in folders,
            f"{path}: is in the folder of answers; write to another",
        )
        refuse(
            option == "--similarity-out" and not has_tables,
            "--similarity-out: a language model gives rankings, not similarities; add another "
            "--source",
        )


# ---- What the sources know


def rank_by_sources(
    specs: list[Spec],
    classes: ClassLists,
    open_model: Callable[[str], sources.LanguageModel],
    *,
    k: int | None = None,
    yes: bool = False,
    skip_unknown: bool = False,
    optional: Collection[str] = (),
) -> tuple[ranking.Rankings, dict[Spec, sources.Similarity], dict[str, Sequence[str]]]:
    """Read all sources, and print what they know.

    Returns their rankings, the tables that some of them are from, and what answers lack, as
    `rankshot.sources.read_answer_files` has it. ``open_model`` is called with the MODEL of each
    llm:MODEL. An ``optional`` source may know none of the names.
    """
    if not all(spec.kind.has_own_names for spec in specs):
        _print_misspellings(classes)
    tables = {}
    for spec in specs:
        if spec.kind.open and spec.name != LOOK_ALIKES:
            table = compare_classes(
                cast("sources.WordNet", spec.open(classes.senses)),
                classes.targets,
                classes.items,
                classes.words,
                classes.look_up,
            )
            if table.coverage:
                tables[spec] = table
            elif spec.name in optional:
                say(f"{table.source}: knows none of the names, and is left out")
            else:
                raise RankshotError(
                    f"{table.source}: has no similarity between a {classes.kind} and a seen class, "
                    f"such as {classes.targets[0]!r} and {classes.items[0]!r}; leave out this "
                    "source, or give words to look up with --names FILE"
                )
    for table in tables.values():
        _print_coverage(table, classes, is_only=len(specs) == 1)
        if any("; or is it " in note for note in table.notes):
            say(
                "  another sense: give --names FILE, a CSV file with the header class,look_up and "
                "a line such as seal,seal.n.09 (`rankshot rank --names-out` writes one)"
            )
    parts = [table.to_rankings(k) for table in tables.values()]
    parts += [found for spec in specs for found in _look_up(spec, classes, k)]
    missing: dict[str, Sequence[str]] = {}
    folders = [Path(spec.detail) for spec in specs if spec.name == ANSWERS]
    for name, paths in _name_folders(folders).items():
        found, lacking = _read_answers(paths, classes, k, name)
        parts.append(found)
        missing |= lacking
    # Last, since they cost money: all other sources have been read without an error.
    parts += [
        _ask_model(open_model(spec.detail), classes, yes=yes)
        for spec in specs
        if spec.name == LANGUAGE_MODEL
    ]
    names = [part.source_names[0] for part in parts]
    repeated = quote_names(sorted({name for name in names if names.count(name) > 1}))
    refuse(repeated, f"two sources have the name {repeated}; rename a file")
    rankings = ranking.Rankings.concatenate(parts)
    if not (skip_unknown or classes.is_rehearsal):
        require_known(rankings, classes, missing)
    return rankings, tables, missing


def _look_up(spec: Spec, classes: ClassLists, k: int | None) -> list[ranking.Rankings]:
    """Rank by a dictionary, and print what was looked up in place of names; other sources: none."""
    if spec.name != LOOK_ALIKES:
        return []
    source = cast("sources.LookAlikes", spec.open({}))
    found = source.look_up(classes.targets, classes.items, classes.senses, classes.words)
    share = f"{found.known_share:.0%} of the seen classes are in the dictionary"
    _print_notes([f"{spec}: {share}"], found.notes)
    if found.rankings is None:
        return []
    return [found.rankings if k is None else found.rankings.top(k)]


def require_known(
    rankings: ranking.Rankings, classes: ClassLists, missing: Mapping[str, Sequence[str]]
) -> None:
    """Refuse new classes that no source knows: their names may be misspelt.

    ``missing`` are the classes that answers lack, or for which their lists are too short.
    """
    from rankshot.sources.names import describe_unknown

    unknown = [name for name in classes.targets if name not in set(rankings.target_names)]
    if not set(unknown).isdisjoint(chain.from_iterable(missing.values())):
        raise RankshotError(
            f"no source has a usable list for {quote_names(unknown)}, for the reasons above. "
            "Correct the answers, or use `rankshot rank`: --k accepts shorter lists, --follow-up "
            "FOLDER asks again, and --skip-unknown leaves the class out"
        )
    if unknown:
        described = describe_unknown(unknown, classes.targets + classes.items, classes.words)
        raise RankshotError(
            f"{described}. Correct the name (here or in saved answers), give words to look up with "
            "--names FILE, or leave it out (`rankshot rank --skip-unknown` does)"
        )


def _name_folders(paths: list[Path]) -> dict[str, list[Path]]:
    """Return the files and folders of each source of answers: several folders are several sources.

    A folder ``answers``, as `rankshot ask` makes it, is named by the folder that it is in.
    """
    folders = [path for path in paths if path.is_dir()]
    found: dict[str, list[Path]] = {}
    for path in paths:
        place = path.resolve()
        own = place.parent.name if place.name == ANSWERS else place.name
        name = own if path in folders and len(folders) > 1 else ANSWERS
        found.setdefault(name, []).append(path)
    return found


def _ask_model(model: sources.LanguageModel, classes: ClassLists, *, yes: bool) -> ranking.Rankings:
    """Print what the calls of a language model will cost, ask for confirmation, and make them."""
    target_of, item_of = classes.target_of, classes.item_of
    estimate = model.estimate(target_of, item_of)
    say(f"{model.model}: {estimate}")
    if estimate.calls and model.ask is None:
        # A missing package or key is named before the question.
        model._connect()
    if estimate.calls and not yes:
        typer.confirm("Continue?", abort=True)
    try:
        found = model.rankings(target_of, item_of, verbose=sys.stderr.isatty())
    except KeyboardInterrupt:
        say(f"stopped; the answers so far are in {model.log}: run again to continue")
        raise
    return _restore_names(found, classes, target_of)


def _read_answers(
    paths: list[Path], classes: ClassLists, k: int | None, source: str
) -> tuple[ranking.Rankings, Mapping[str, Sequence[str]]]:
    """Read files of answers, print what each of them lacks, and return what to ask again for."""
    target_of = classes.target_of
    found = sources.read_answer_files(paths, target_of, classes.item_of, k, source=source)
    for rater, answers in found.answers.items():
        count = format_count(len(answers.orders), "usable list")
        lines = [f"{source}, {rater}: {count} for {len(classes.targets):,} classes"]
        _print_notes(lines, answers.notes)
    return _restore_names(found.rankings, classes, target_of), found.follow_ups


def _restore_names(
    found: ranking.Rankings, classes: ClassLists, target_of: Mapping[str, str]
) -> ranking.Rankings:
    """Return rankings with the names of the classes, in place of the words for them."""
    names = [target_of[words] for words in found.targets]
    return replace(found, items=classes.items, targets=core.as_text_array(names))


def _print_notes(lines: list[str], notes: Sequence[str]) -> None:
    """Print lines, and the first notes below them."""
    lines = [*lines, *(f"  {note}" for note in notes[:NOTES_SHOWN])]
    if len(notes) > NOTES_SHOWN:
        lines.append(f"  and {format_count(len(notes) - NOTES_SHOWN, 'more note')}")
    say("\n".join(lines))


def _print_misspellings(classes: ClassLists) -> None:
    """Print the words that may be misspelt, for all sources: word vectors would not say so."""
    names = [name for name in classes.targets + classes.items if name not in classes.senses]
    words = dict.fromkeys(classes.words.get(name, name) for name in names)
    if found := sources.find_misspellings(words) if words else {}:
        pairs = [f"{word!r} (did you mean {noun!r}?)" for word, noun in found.items()]
        say(
            f"warning: not in WordNet, and perhaps misspelt: {join_some(pairs, MISSPELT_SHOWN)}. "
            "Words to look up can be given with --names FILE"
        )


def _print_coverage(table: sources.Similarity, classes: ClassLists, *, is_only: bool) -> None:
    """Print how many of the similarities a source knows, and which names it does not know.

    New classes that the only source does not know are named at the end, as those that no source
    knows.
    """
    # 100% means all, and 0% none.
    share = table.coverage if table.coverage in {0, 1} else min(max(table.coverage, 0.01), 0.99)
    lines = [f"{table.source}: covers {share:.0%} of all pairs"]
    for unknown, what, effect in (
        (() if is_only else table.unknown_targets, classes.kind, "has no ranking for"),
        (table.unknown_items, "seen class", "ranks without"),
    ):
        if unknown:
            lines.append(
                f"  {effect} these {what}es, which it does not know: {quote_names(unknown)}"
            )
    _print_notes(lines, table.notes)


# ---- What is written


def _write_similarity(tables: list[sources.Similarity], path: Path) -> str:
    """Write the similarities of one source, or the mean of several, without unknown rows.

    Returns what is to be said of the file.
    """
    table = tables[0] if len(tables) == 1 else sources.arithmetic_mean(tables)
    known = [name for name in table.targets if name not in set(table.unknown_targets)]
    sources.write_similarity(table.select(known, table.items), path)
    names = " and ".join(table.source for table in tables)
    what = names if len(tables) == 1 else f"the mean of {names}, each rescaled to [0, 1]"
    return f"similarities written to {path}: {what}"


def _write_senses(table: sources.Similarity, classes: ClassLists, path: Path) -> None:
    """Write the senses of all classes that WordNet knows."""
    unknown = {*table.unknown_targets, *table.unknown_items}
    words = {
        name: name if name in classes.senses else classes.words.get(name, name)
        for name in table.targets + table.items
        if name not in unknown
    }
    found = sources.WordNet(senses=classes.senses).senses(dict.fromkeys(words.values()))
    sources.write_senses({name: found[text] for name, text in words.items()}, path)


def write_follow_ups(
    missing: Mapping[str, Sequence[str]],
    classes: ClassLists,
    folder: Path | None,
    asked: Mapping[str, Any],
) -> str:
    """Write prompts for what the answers lack, and return what is to be said of them."""
    from rankshot.sources.prompts import make_question

    lists = format_count(sum(map(len, missing.values())), "list")
    if folder is None:
        return f"missing: {lists}; --follow-up FOLDER writes prompts that ask for them again"
    question = make_question(asked["question"], asked["inputs"], list(classes.target_of))
    prompts = sources.make_prompts(missing, classes.item_of, **{**asked, "question": question})
    write_folder(folder, prompts)
    return (
        f"missing: {lists}; paste the {format_count(len(prompts), 'prompt')} in {folder} into a "
        "chat window, save each answer next to the first ones under the name of its prompt, and "
        "run this command again (without --follow-up, but with --question, if you gave it)"
    )


# ---- What is printed


def print_warnings(rankings: ranking.Rankings, classes: ClassLists) -> None:
    """Name the classes that no source ranks, those that have the same rankings, and numbers."""
    from rankshot.zeroshot.remarks import group_equal_classes

    ranked = set(rankings.target_names)
    if without := [name for name in classes.targets if name not in ranked]:
        say(
            f"warning: {quote_names(without)} left out: no source knows these new classes. "
            "Words to look up can be given with --names FILE"
        )
    for same in group_equal_classes(rankings):
        say(
            f"warning: {quote_names(same)} have the same ranking: nothing distinguishes them. "
            "Add a source that knows how they differ, or correct the file by hand"
        )
    # Columns without names, 0, 1, 2, are ranked as the words zero, one, two.
    if all(classes.words.get(name, name).isdecimal() for name in classes.items):
        say(
            f"warning: the seen classes are numbers ({quote_names(classes.items)}): give the "
            "columns the names of the classes, or words to look up with --names FILE"
        )


def print_rankings(rankings: ranking.Rankings, classes: ClassLists) -> None:
    """Print a table of each class's first seen classes, with one row per source."""

    def format_first(target: str, source: str) -> str:
        these = rankings[(rankings.targets == target) & (rankings.sources == source)]
        if not len(these):
            return "-"
        others = f" ({format_count(len(these) - 1, 'more rater')})" if len(these) > 1 else ""
        first = these[0]
        # A subset ranking also has items after its first K, all in one tie.
        n_places = int(first.places[first.lengths[0] - 1]) + 1
        return format_order(first.orders()[0][:n_places], most=SHOWN) + others

    names = rankings.source_names
    # One column per source would leave too little width for each.
    columns = ["source", "seen classes"] if len(names) > 1 else [*names]
    rows = [
        [target if name == names[0] else "", *([name] if len(names) > 1 else []), text]
        for target in classes.targets
        for name in names
        for text in [format_first(target, name)]
    ]
    title = f"The seen classes most similar to each {classes.kind}"
    print_table(title, [f"*{classes.kind}", *columns], rows)


# ---- Prompts to paste into any chat window

GUIDE = "READ-ME-FIRST.txt"
GUIDE_TEXT = """\
How to get rankings for {count} from a language model, without an API key

1. Paste the whole text of each of these files into a new conversation of a chat window:

{prompts}

   Each number is one rater, who gets the classes in a different order. A new conversation for
   each file keeps the answers independent. Different models may answer different files.

2. Save each answer unchanged, as a text file of the same name, in this folder:

       {answers}

3. Read the answers:

       {command}

   Lists that are missing or cannot be used are reported. The option --follow-up FOLDER writes
   prompts that ask for them again.

A prompt has up to about {tokens:,} tokens. A language model may know public data sets and their
classes: its answers may be better for these than for your own classes.
"""


def ask(
    *,
    seen: str,
    output: Path,
    new: str | None = None,
    question: str = "images",
    k: int | None = None,
    raters: int = 4,
    names: Path | None = None,
    rehearse: str | None = None,
    seed: int = 0,
    max_tokens: int = 8000,
    overwrite: bool = False,
) -> None:
    """Write prompts for a language model, to paste into any chat.

    Save the answers in the folder `answers` next to the prompts, and give it to `rankshot rank` or
    `recognise` as --source answers:FOLDER. Save the answers to different questions in different
    folders.

    Example: rankshot ask --seen seen.txt --new new.txt -o prompts

    Parameters
    ----------
    output
        The folder to write to.
    k
        The length of the lists to ask for. The default is 15, or all seen classes if there are
        fewer.
    raters
        The number of prompts, each with the classes in a different order.
    max_tokens
        The maximum number of tokens of a prompt and its answer together (an estimate). Many new
        classes are divided among several prompts.
    overwrite
        Replace earlier prompts in the folder, unless it has answers.
    """
    classes = read_class_lists(read_seen_labels(seen), new, names, rehearse, seed, k)
    asked = read_question(question) | {"k": k, "raters": raters, "seed": seed}
    given = {
        "--seen": seen,
        "--new": new,
        "--names": names,
        "--rehearse": rehearse,
        "--seed": seed or None,
        "--question": None if question == "images" else question,
        "--k": k,
        "--source": f"{ANSWERS}:{output / ANSWERS}",
        "-o": "rehearsal.jsonl" if classes.is_rehearsal else "rankings.jsonl",
    }
    words = [(option, str(value)) for option, value in given.items() if value is not None]
    command = shlex.join(["rankshot", "rank", *chain.from_iterable(words)])
    prompts, tokens = write_prompts(
        classes, output, command, overwrite=overwrite, max_tokens=max_tokens, **asked
    )
    say(
        f"{format_count(len(prompts), 'prompt')} written to {output}, up to "
        f"{tokens:,} tokens long (estimated)\n"
        f"paste each into a new conversation, save the answers in {output / ANSWERS} under the "
        f"same names (see {output / GUIDE}), then run\n  {command}"
    )


def write_prompts(
    classes: ClassLists, output: Path, command: str, *, overwrite: bool, **asked: Any
) -> tuple[list[str], int]:
    """Write prompts about some classes, with a guide that ends with a command.

    Returns their names, and about how many tokens the longest has.
    """
    from rankshot.sources.prompts import estimate_tokens

    prompts = sources.make_prompts(tuple(classes.target_of), tuple(classes.item_of), **asked)
    own_files: set[str] = set()
    if overwrite and (output / GUIDE).is_file():
        own_files = {GUIDE, ANSWERS, *(path.name for path in output.glob("rater-*.txt"))}
    check_folder(output, own_files)
    tokens = max(map(estimate_tokens, prompts.values()))
    guide = GUIDE_TEXT.format(
        count=format_count(len(classes.targets), classes.kind),
        prompts="\n".join(f"       {output / name}" for name in prompts),
        answers=output / ANSWERS,
        command=command,
        tokens=tokens,
    )
    write_folder(output, {GUIDE: guide, **prompts}, ANSWERS)
    return list(prompts), tokens

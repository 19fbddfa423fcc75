"""``rankshot rank``: rankings of the seen classes for each new class, from words and models."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankshot import ranking, sources
from rankshot.cli.printing import (
    FileOrName,
    Input,
    Output,
    format_order,
    print_table,
    require_output,
    say,
)
from rankshot.core.errors import NO_VALUE, InputError, count_others, format_count, quote_names

SHOWN = 5
"""How many classes of a ranking are shown, beside others."""
GUIDE, MANIFEST = "READ-ME-FIRST.txt", "prompts.json"
GUIDE_TEXT = """\
How to get rankings for {count} from a language model, without an API key

1. Paste the whole text of each of these files into a new conversation of a chat window:

{prompts}

   Each number is one rater, who gets the classes in a different order. A new conversation for
   each file keeps the answers independent. Different models may answer different files.

2. Save each answer unchanged, as a text file of the same name, in this folder:

       {answers}

3. Read the answers with --source answers:{answers}

A prompt has up to about {tokens:,} tokens. A language model may know public data sets and their
classes: its answers may be better for these than for your own classes.
"""


def rank(
    *,
    seen: FileOrName,
    new: FileOrName | None = None,
    rehearse: int | None = None,
    source: list[str] | None = None,
    names: Input | None = None,
    k: int | None = None,
    question: str = "images",
    raters: int = 5,
    prompts: Path | None = None,
    yes: bool = False,
    overwrite: bool = False,
    output: Output = None,
) -> None:
    """Rank the seen classes for each new class, or write prompts that ask for it.

    Example: rankshot rank --seen seen.txt --new "okapi, menorah" -o rankings.jsonl

    Example: rankshot rank --seen seen.txt --new new.txt --prompts prompts

    Parameters
    ----------
    seen
        The seen classes: a text file with one name per line, a JSON file (a list, an object that
        maps indices to names, or the config.json of a transformers model), a table of scores
        (.csv, .parquet), or imagenet-1k.
    new
        The new classes: a file as for --seen, or names separated by commas.
    rehearse
        Instead of --new: hold out this number of seen classes, and rank the others for them.
    source
        Where the rankings come from; may be repeated: look-alikes, look-alikes:sounds, wordnet,
        glove, vectors:FILE, corpus:FILE, table:FILE, hits:FILE, answers:FOLDER, llm:MODEL. For
        llm:MODEL, set OPENAI_API_KEY, and OPENAI_BASE_URL for an endpoint other than OpenAI's. The
        default is the dictionary of look-alikes where it knows the names, otherwise WordNet.
    names
        A CSV file with the columns class and look_up: the words (or the WordNet sense, such as
        sea_horse.n.02) to look up instead of a class name.
    k
        How many places of each ranking are kept. The default is all, or 15 for a language model.
    question
        What a language model is asked: images, text, any, contrast or similar: see the guide. What
        the classifier gets may follow a colon, as in 'any:sound recordings'. Or a text file with a
        template that has {target}, {items} and {k}.
    raters
        How often llm:MODEL is asked about each new class, or the number of prompts.
    prompts
        A folder for prompts to paste into any chat, instead of rankings.
    yes
        Do not ask for confirmation before llm:MODEL is used.
    overwrite
        Replace rankings that are there, or prompts that were changed.
    output
        The rankings to write (.jsonl).
    """
    from rankshot.ranking.ranking_files import ENDINGS
    from rankshot.sources.named_rankings import LANGUAGE_MODEL, parse_source

    require_output(output, ENDINGS, seen, new, names, overwrite=overwrite)
    known = read_seen(seen)
    targets, known = _choose_targets(new, rehearse, known)
    asked = {**read_question(question), "k": k}
    if prompts is not None:
        write_prompts(prompts, targets, known.names, raters=raters, overwrite=overwrite, **asked)
        return
    if output is None:
        raise InputError("output", NO_VALUE, "must be given", hint="-o FILE, or --prompts FOLDER")
    opened: list[Any] = []
    for text in source or []:
        name, detail = parse_source(text)
        if name == LANGUAGE_MODEL:
            log = output.with_suffix(".answers.jsonl")
            model = sources.LanguageModel(detail, raters=raters, log=log, **asked)
            _confirm(model, targets, known.names, yes=yes)
            opened.append(model)
        else:
            opened.append(text)
    words = None if names is None else sources.read_look_up(names, targets + known.names)
    named = sources.rank_names(targets, known, opened or None, words=words, k=k)
    rankings = named.rankings
    if rankings is None:
        hint = "; ".join(named.notes)
        raise InputError("new", targets[0], "is not known to any source", hint=hint)
    ranking.write_rankings(rankings if k is None else rankings.top(k), output)
    print_rankings(rankings, targets)
    for note in named.notes:
        say(note)
    say(f"{format_count(len(rankings), 'ranking')} written to {output}")


# ---- Names


def read_seen(seen: str) -> sources.ClassLabels:
    """The seen classes that an option names; what was changed in their names is printed."""
    from rankshot.zeroshot import open_scores

    path = Path(seen)
    is_table = path.suffix == ".parquet" or (path.is_dir() and any(path.glob("*.parquet")))
    if path.suffix == ".csv" and path.is_file():
        # A CSV file with one column is a list of names.
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            is_table = "," in file.readline()
    labels = sources.read_class_labels(open_scores(path).items if is_table else seen)
    for change in labels.changes:
        say(f"{seen}: {change}")
    return labels


def read_new(new: str) -> tuple[str, ...]:
    """The new classes that an option names: a file, or names separated by commas."""
    if Path(new).is_file():
        return sources.read_class_labels(Path(new)).names
    names = tuple(name.strip() for name in new.split(",") if name.strip())
    if not names or ("," not in new and Path(new).suffix):
        raise InputError("new", new, "must be a file, or names separated by commas")
    return names


def _choose_targets(
    new: str | None, rehearse: int | None, known: sources.ClassLabels
) -> tuple[tuple[str, ...], sources.ClassLabels]:
    """The classes to rank for, and the seen classes to be ranked."""
    if (new is None) == (rehearse is None):
        raise InputError("new", NO_VALUE, "must be given", hint="or --rehearse, for seen classes")
    if new is not None:
        names = read_new(new)
        if both := [name for name in names if name in known.names]:
            raise InputError("new", both[0], f"is a seen class{count_others(both)}")
        return names, known
    held_out, rest = sources.choose_rehearsed(known.names, rehearse or 0)
    say(f"held out: {quote_names(held_out)}; the other {len(rest):,} are ranked for them")
    return held_out, sources.read_class_labels(rest)


def read_question(question: str) -> dict[str, Any]:
    """The name of a question, or the template in a file, and what the classifier gets."""
    from rankshot.sources.prompts import TEXTS

    name, _, inputs = question.partition(":")
    if name in TEXTS:
        return {"question": name, "inputs": inputs.strip() or None}
    if not Path(question).is_file():
        rule = f"must be a file, or one of {', '.join(TEXTS)}"
        raise InputError("question", question, rule)
    return {"question": Path(question).read_text(encoding="utf-8"), "inputs": None}


# ---- Language models


def _confirm(
    model: sources.LanguageModel, targets: Sequence[str], items: Sequence[str], *, yes: bool
) -> None:
    """Print what the calls will cost, and ask for confirmation."""
    estimate = model.estimate(targets, items)
    say(f"{model.model}: {estimate}")
    if estimate.calls and not yes:
        if not sys.stdin.isatty():
            raise InputError("yes", NO_VALUE, "must be given where nobody can be asked")
        if input("Continue? [y/N] ").strip().casefold() not in {"y", "yes"}:
            raise SystemExit(1)


def write_prompts(
    folder: Path,
    targets: Sequence[str],
    items: Sequence[str],
    *,
    raters: int = 4,
    overwrite: bool = False,
    **asked: Any,
) -> None:
    """Write prompts about some classes, with a guide; those that a person changed are kept."""
    from rankshot.core.files import replace_own
    from rankshot.sources.prompts import estimate_tokens

    texts = sources.make_prompts(targets, items, raters=raters, **asked)
    answers = folder / "answers"
    answers.mkdir(parents=True, exist_ok=True)
    tokens = max(map(estimate_tokens, texts.values()))
    guide = GUIDE_TEXT.format(
        count=format_count(len(targets), "class"),
        prompts="\n".join(f"       {folder / name}" for name in texts),
        answers=answers,
        tokens=tokens,
    )
    for name, text in {GUIDE: guide, **texts}.items():
        with replace_own(folder / name, folder / MANIFEST, overwrite=overwrite) as temporary:
            temporary.write_text(text, encoding="utf-8")
    say(
        f"{format_count(len(texts), 'prompt')} written to {folder}, up to {tokens:,} tokens long: "
        f"paste each into a new conversation, save the answers in {answers} under the "
        f"same names, and give --source answers:{answers}"
    )


# ---- What is printed


def print_rankings(rankings: ranking.Rankings, names: Sequence[str]) -> None:
    """Print the first seen classes of each name, with one row per source that ranks it."""
    rows = []
    for name in names:
        of_name = rankings[rankings.targets == name]
        for source in of_name.source_names:
            these = of_name[of_name.sources == source]
            first, more = these[0], len(these) - 1
            # A subset ranking also has items after its first K, all in one tie.
            n_places = int(first.places[first.lengths[0] - 1]) + 1
            text = format_order(first.orders()[0][:n_places], most=SHOWN)
            others = f" ({format_count(more, 'more rater')})" * bool(more)
            rows.append((name, text + others, source))
    columns = ["*class", "seen classes", "source"]
    print_table("The seen classes most similar to each class", columns, rows)

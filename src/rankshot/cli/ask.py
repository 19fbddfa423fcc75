"""``rankshot ask``: prompts to paste into a chat window, for whoever has no endpoint."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from rankshot.cli.class_options import (
    ClassLists,
    NamesOption,
    NewOption,
    QuestionOption,
    RehearseOption,
    SeedOption,
    SeenOption,
    name_by_words,
    read_class_lists,
    read_question,
    read_seen_labels,
)
from rankshot.cli.console import check_new_folder, say, write_folder
from rankshot.core.errors import format_count

GUIDE = "READ-ME-FIRST.txt"
ANSWERS = "answers"
GUIDE_TEXT = """\
How to get rankings for {count} from a language model, without an endpoint

1. Paste each of these files, whole, into a new conversation of a chat window:

{prompts}

   Each number is one rater, who gets the classes in another order. A new conversation for each
   file keeps the answers independent. Different models may answer different files.

2. Save each answer, as it is, as a text file of the same name in this folder:

       {answers}

3. Read the answers:

       {command}

   What is missing or cannot be used is named. The option --follow-up FOLDER writes prompts that
   ask for it again.

A prompt has up to about {tokens:,} tokens. A language model may have read about public data sets
and their classes: on these, its answers may be better than on your own classes.
"""


def ask(
    seen: SeenOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    new: NewOption = None,
    question: QuestionOption = "images",
    k: Annotated[
        int | None,
        typer.Option(help="How many seen classes are asked for. The default is 15, or all."),
    ] = None,
    raters: Annotated[
        int,
        typer.Option(help="How many prompts are written, each with the classes in another order."),
    ] = 4,
    names: NamesOption = None,
    rehearse: RehearseOption = None,
    seed: SeedOption = 0,
    max_tokens: Annotated[
        int,
        typer.Option(
            help="The most tokens of a prompt and its answer together (an estimate). Many new "
            "classes are divided among several prompts."
        ),
    ] = 8000,
    overwrite: Annotated[
        bool,
        typer.Option(
            "--overwrite", help="Replace the prompts in a folder; never one that has answers."
        ),
    ] = False,
) -> None:
    """Write prompts for a language model, to paste into any chat window.

    Example: rankshot ask --seen seen.txt --new new.txt -o prompts
    """
    from rankshot.sources import make_prompts
    from rankshot.sources.prompts import estimate_tokens

    classes = read_class_lists(read_seen_labels(seen), new, names, rehearse, seed, k)
    prompts = make_prompts(
        name_by_words(classes.targets, classes.look_up),
        name_by_words(classes.items, classes.look_up),
        **read_question(question),
        k=k,
        raters=raters,
        seed=seed,
        max_tokens=max_tokens,
    )
    check_new_folder(output, _list_own_files(output) if overwrite else ())
    given = {
        "--seen": seen,
        "--new": new,
        "--names": names,
        "--rehearse": rehearse,
        "--seed": seed or None,
        "--question": None if question == "images" else question,
        "--k": k,
    }
    command = _format_command(given, output, classes)
    guide = GUIDE_TEXT.format(
        count=format_count(len(classes.targets), classes.kind),
        prompts="\n".join(f"       {output / name}" for name in prompts),
        answers=output / ANSWERS,
        command=command,
        tokens=max(map(estimate_tokens, prompts.values())),
    )
    write_folder(output, {GUIDE: guide, **prompts}, ANSWERS)
    say(
        f"{format_count(len(prompts), 'prompt')} written to {output}, up to "
        f"{max(map(estimate_tokens, prompts.values())):,} tokens long (estimated)\n"
        f"paste each into a new conversation, save the answers in {output / ANSWERS} under the "
        f"same names (see {output / GUIDE}), then run\n  {command}"
    )


def _format_command(given: Mapping[str, object], output: Path, classes: ClassLists) -> str:
    """Return the command that reads the answers."""
    words = ["rankshot", "rank"]
    for option, value in given.items():
        words += [] if value is None else [option, str(value)]
    target = "rehearsal.jsonl" if classes.is_rehearsal else "rankings.jsonl"
    return shlex.join([*words, "--source", f"answers:{output / ANSWERS}", "-o", target])


def _list_own_files(folder: Path) -> set[str]:
    """Return the names in a folder that an earlier run of this command has written."""
    if not (folder / GUIDE).is_file():
        return set()
    return {GUIDE, ANSWERS, *(path.name for path in folder.glob("rater-*.txt"))}

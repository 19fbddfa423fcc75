"""``rankshot ask``: prompts to paste into any chat window."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path
from typing import Any

from rankshot import sources
from rankshot.cli.classes import ClassLists, read_class_lists, read_question, read_seen_labels
from rankshot.cli.console import check_folder, say, write_folder
from rankshot.core.errors import format_count
from rankshot.sources.registry import ANSWERS

GUIDE = "READ-ME-FIRST.txt"
GUIDE_TEXT = """\
How to get rankings for {count} from a language model, without an API key

1. Paste the whole text of each of these files into a new conversation of a chat window:

{prompts}

   Each number is one rater, who gets the classes in another order. A new conversation for each
   file keeps the answers independent. Different models may answer different files.

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
    """Write prompts for a language model, for any chat window.

    Save the answers in the folder `answers` next to the prompts, and give it to `rankshot rank` or
    `recognise` as --source answers:FOLDER. Answers to several questions are several folders.

    Example: rankshot ask --seen seen.txt --new new.txt -o prompts

    Parameters
    ----------
    output
        The folder to write.
    k
        The length of the lists to ask for. The default is 15, or all seen classes if there are
        fewer.
    raters
        The number of prompts, each with the classes in another order.
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

"""The options that name classes and questions, and the lists of names that they give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, quote_names, suggest_name

SeenOption = Annotated[
    Path,
    typer.Option(
        "--seen", help="A text file that names the seen classes, one per line; # starts a comment."
    ),
]
NewOption = Annotated[
    Path | None,
    typer.Option(
        "--new",
        help="A text file that names the new classes, one per line. Required without --rehearse.",
    ),
]
NamesOption = Annotated[
    Path | None,
    typer.Option(
        "--names",
        help="A CSV file with the columns class and look_up: the words that the sources look up, "
        "or that a language model gets, in place of a class name. The output keeps the class name.",
    ),
]
RehearseOption = Annotated[
    str | None,
    typer.Option(
        "--rehearse",
        metavar="<number or names>",
        help="In place of --new: some seen classes play new ones, and the other seen classes are "
        "ranked for them. A number (chosen by --seed), names separated by commas, or a text file "
        "with one name per line.",
    ),
]
SeedOption = Annotated[
    int,
    typer.Option(
        "--seed",
        help="Another seed chooses other classes for --rehearse, and shuffles the lists that a "
        "language model gets in another way.",
    ),
]
QuestionOption = Annotated[
    str,
    typer.Option(
        "--question",
        metavar="<question>",
        help="What a language model is asked. images: which seen classes would an image "
        "classifier say most often? text: the same for a classifier of texts. similar: which are "
        "most similar? Or a text file with a template that has {target}, {items} and {k}.",
    ),
]
InputsOption = Annotated[
    str | None,
    typer.Option(
        "--inputs",
        metavar="<words>",
        help="What the classifier gets, in the plural, for the question: for example 'X-ray images "
        "of hands'. The default is 'ordinary photographs' or 'texts'.",
    ),
]


@dataclass(frozen=True)
class ClassLists:
    """The classes to rank for, the seen classes to be ranked, and the words for some names.

    The first are new classes, or seen classes that play new ones (``is_rehearsal``).
    """

    targets: tuple[str, ...]
    items: tuple[str, ...]
    look_up: Mapping[str, str]
    is_rehearsal: bool

    @property
    def kind(self) -> str:
        """What the targets are, for messages."""
        return "rehearsed class" if self.is_rehearsal else "new class"


def read_class_lists(
    seen: Path,
    new: Path | None,
    names: Path | None,
    rehearse: str | None,
    seed: int,
    k: int | None,
) -> ClassLists:
    """Read the names of the classes, and choose those that are rehearsed."""
    from rankshot.core.text_files import read_names
    from rankshot.core.validation import require_whole_number
    from rankshot.semantics import choose_rehearsed, read_look_up

    known = read_names(seen)
    if rehearse is None:
        if new is None:
            raise RankshotError("give --new FILE, or --rehearse to rank for some seen classes")
        items, targets = known, read_names(new)
    else:
        if new is not None:
            raise RankshotError(
                "--rehearse ranks for seen classes alone: leave out --new, and run once more for "
                "the new classes"
            )
        targets, items = choose_rehearsed(known, _parse_choice(rehearse), seed)
        say(
            f"{len(targets):,} of the {len(known):,} seen classes play new ones; the other "
            f"{len(items):,} are ranked for them: {quote_names(targets)}"
        )
    if k is not None:
        # Here the message names the option, before anything is computed.
        require_whole_number("--k", k, len(items))
    if both := [name for name in targets if name in items]:
        raise RankshotError(f"classes are both seen and new: {quote_names(both)}")
    look_up = {} if names is None else read_look_up(names, items + targets)
    return ClassLists(targets, items, look_up, rehearse is not None)


def _parse_choice(rehearse: str) -> int | tuple[str, ...]:
    from rankshot.core.text_files import read_names

    if rehearse.strip().isdecimal():
        return int(rehearse)
    if Path(rehearse).is_file():
        return read_names(Path(rehearse))
    return tuple(name.strip() for name in rehearse.split(",") if name.strip())


def read_question(question: str) -> str:
    """Return the name of a question, or the template in a file."""
    from rankshot.semantics.questions import TEXTS

    if question in TEXTS:
        return question
    if not Path(question).is_file():
        raise RankshotError(
            f"--question {question!r}: no such question{suggest_name(question, TEXTS)}, and no "
            f"such file; the questions are {', '.join(TEXTS)}"
        )
    try:
        return Path(question).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise RankshotError(f"{question}: not UTF-8 text") from None


def name_by_words(names: tuple[str, ...], look_up: Mapping[str, str]) -> dict[str, str]:
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

"""The options that name classes and questions, and the lists of names that they give."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from rankshot.cli.console import say
from rankshot.core.errors import RankshotError, quote_names, suggest_name

if TYPE_CHECKING:
    from rankshot.sources.names.labels import ClassLabels

SeenOption = Annotated[
    str,
    typer.Option(
        "--seen",
        metavar="<file or imagenet-1k>",
        help="The seen classes: a text file with one name per line (# starts a comment), a JSON "
        "file (a list, an object from index to name, or the config.json of a transformers model), "
        "a table of scores (.csv, .parquet, .npz), or imagenet-1k. Lists of synonyms and WordNet "
        "ids get readable names; it is said which.",
    ),
]
NewOption = Annotated[
    str | None,
    typer.Option(
        "--new",
        metavar="<file or names>",
        help="The new classes: a file as for --seen, or names separated by commas. A file of that "
        "name comes first. Required without --rehearse.",
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
        "most similar? What the classifier gets may follow, as in 'images:X-ray images of hands'. "
        "Or a text file with a template that has {target}, {items} and {k}.",
    ),
]


@dataclass(frozen=True)
class ClassLists:
    """The classes to rank for, the seen classes to be ranked, and what is known of their names.

    The first are new classes, or seen classes that play new ones (``is_rehearsal``).

    Attributes
    ----------
    look_up : mapping from names to words
        The words that the user gives in place of some names.
    synonyms : mapping from names to words
        The synonyms in the labels, for sources that look up words.
    synsets : mapping from names to WordNet ids
        The senses that the labels name.
    """

    targets: tuple[str, ...]
    items: tuple[str, ...]
    look_up: Mapping[str, str]
    synonyms: Mapping[str, str]
    synsets: Mapping[str, str]
    is_rehearsal: bool

    @property
    def words(self) -> dict[str, str]:
        """The words that sources look up in place of a name."""
        return {**self.synonyms, **self.look_up}

    @property
    def target_of(self) -> dict[str, str]:
        """The class to rank for of each text that a language model gets."""
        return self._name_by_words(self.targets)

    @property
    def item_of(self) -> dict[str, str]:
        """The seen class of each text that a language model gets."""
        return self._name_by_words(self.items)

    def _name_by_words(self, names: tuple[str, ...]) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in names:
            words = self.look_up.get(name, name)
            if words in found:
                raise RankshotError(
                    f"a language model cannot distinguish {found[words]!r} and {name!r}: both are "
                    f"looked up as {words!r}"
                )
            found[words] = name
        return found

    @property
    def kind(self) -> str:
        """What the targets are, for messages."""
        return "rehearsed class" if self.is_rehearsal else "new class"


def read_class_lists(
    known: ClassLabels,
    new: str | None,
    names: Path | None,
    rehearse: str | None,
    seed: int,
    k: int | None,
) -> ClassLists:
    """Read the names of the new classes, or choose the seen classes that are rehearsed."""
    from rankshot.core.validation import require_whole_number
    from rankshot.sources import choose_rehearsed, read_look_up

    if (rehearse is None) == (new is None):
        raise RankshotError(
            "give --new NAMES (or a file), or --rehearse to rank for seen classes; for both, run "
            "twice"
        )
    all_labels = [known]
    if new is not None:
        all_labels.append(read_new_labels(new))
        _refuse_seen(all_labels[1], known)
        items, targets = known.names, all_labels[1].names
    else:
        choice = _parse_choice(cast("str", rehearse), known)
        targets, items = choose_rehearsed(known.names, choice, seed)
        say(
            f"{len(targets):,} of the {len(known):,} seen classes play new ones; the other "
            f"{len(items):,} are ranked for them: {quote_names(targets)}"
        )
    if k is not None:
        # Here the message names the option, before anything is computed.
        require_whole_number("--k", k, len(items))
    look_up = {} if names is None else read_look_up(names, items + targets)
    return ClassLists(
        targets,
        items,
        look_up,
        {name: words for labels in all_labels for name, words in labels.words.items()},
        {name: synset for labels in all_labels for name, synset in labels.senses.items()},
        rehearse is not None,
    )


def read_seen_labels(seen: str) -> ClassLabels:
    """Read the seen classes that an option names, and print what was changed."""
    from rankshot.zeroshot.files.score_tables import ENDINGS, open_scores

    path = Path(seen)
    is_table = path.suffix in ENDINGS and path.is_file()
    if is_table and path.suffix == ".csv":
        # A CSV file with one column is a list of names.
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            is_table = "," in file.readline()
    return _read_labels(open_scores(path).items if is_table else seen, seen)


def read_new_labels(new: str) -> ClassLabels:
    """Read the new classes that an option names: a file, or names separated by commas.

    A text with a folder or an ending, such as new.txt, is always a file.
    """
    from rankshot.sources.names.labels import IMAGENET

    path = Path(new)
    looks_like_file = path.name != new or re.fullmatch(r"\S+\.[A-Za-z]+", new)
    if new == IMAGENET or path.exists() or (looks_like_file and "," not in new):
        return _read_labels(path if path.exists() else new, new)
    if not (names := _split_names(new)):
        raise RankshotError(f"--new {new!r}: no names in it")
    return _read_labels(names, "--new")


def _read_labels(given: Any, where: str) -> ClassLabels:
    from rankshot.sources import read_class_labels

    labels = read_class_labels(given)
    for change in labels.changes:
        say(f"{where}: {change}")
    return labels


def list_label_files(*options: str | None) -> list[Path]:
    """Return the files among the options that name classes."""
    return [Path(option) for option in options if option is not None and Path(option).is_file()]


def _refuse_seen(new: ClassLabels, seen: ClassLabels) -> None:
    """Refuse new classes that are seen classes, by name or by synset; print which may be."""
    names, synsets = set(seen.names), set(seen.synsets) - {None}
    pairs = zip(new.names, new.synsets, strict=True)
    if both := [name for name, synset in pairs if name in names or synset in synsets]:
        raise RankshotError(
            f"classes are both seen and new: {quote_names(both)}; leave them out of the new "
            "classes (with --classes all, seen classes are predicted as well)"
        )
    for name in new.names:
        if found := seen.match(name):
            say(f"warning: the new class {name!r} may be the same as the seen {quote_names(found)}")


def _parse_choice(rehearse: str, known: ClassLabels) -> int | tuple[str, ...]:
    from rankshot.core.files import read_names

    if rehearse.strip().isdecimal():
        return int(rehearse)
    path = Path(rehearse)
    matches = {
        name: known.match(name)
        for name in (read_names(path) if path.is_file() else _split_names(rehearse))
    }
    return tuple(found[0] if len(found) == 1 else name for name, found in matches.items())


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def read_question(question: str) -> dict[str, Any]:
    """Return the name of a question, or the template in a file, and what the classifier gets."""
    from rankshot.sources.prompts import TEXTS

    name, _, inputs = question.partition(":")
    if name in TEXTS:
        return {"question": name, "inputs": inputs.strip() or None}
    if not Path(question).is_file():
        raise RankshotError(
            f"--question {question!r}: no such question{suggest_name(name, TEXTS)}, and no "
            f"such file; the questions are {', '.join(TEXTS)}"
        )
    try:
        return {"question": Path(question).read_text(encoding="utf-8-sig"), "inputs": None}
    except UnicodeDecodeError:
        raise RankshotError(f"{question}: not UTF-8 text") from None

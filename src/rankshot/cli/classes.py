"""The options that name classes and questions, and the lists of names that they give."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rankshot import core, sources, zeroshot
from rankshot.cli.console import refuse, say
from rankshot.core.errors import RankshotError, quote_names, suggest_name
from rankshot.core.files import decode_lines, iterate_names


@dataclass(frozen=True)
class ClassLists:
    """The classes to rank for, the seen classes to be ranked, and what is known of their names.

    The first are new classes, or seen classes that are held out (``is_rehearsal``). The user gives
    the words ``look_up`` in place of some names; ``synonyms`` are in the labels, and ``synsets`` in
    the labels or among the words of the user.
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
    def senses(self) -> dict[str, str]:
        """The WordNet senses of names; words that the user gives for a class come before them."""
        return {name: id_ for name, id_ in self.synsets.items() if name not in self.look_up}

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
            if found.setdefault(words, name) != name:
                raise RankshotError(
                    f"a language model cannot distinguish {found[words]!r} and {name!r}: both are "
                    f"looked up as {words!r}"
                )
        return found

    @property
    def kind(self) -> str:
        """What the targets are, for messages."""
        return "rehearsed class" if self.is_rehearsal else "new class"


def read_class_lists(
    known: sources.ClassLabels,
    new: str | None,
    names: Path | None = None,
    rehearse: str | None = None,
    seed: int = 0,
    k: int | None = None,
) -> ClassLists:
    """Read the names of the new classes, or choose the seen classes that are rehearsed."""
    from rankshot.sources.wordnet_nouns import is_sense

    if (rehearse is None) == (new is None):
        raise RankshotError(
            "give --new NAMES (or a file), or --rehearse to rank for seen classes; for both, run "
            "twice"
        )
    all_labels = [known]
    if rehearse is None:
        all_labels.append(read_new_labels(str(new)))
        _refuse_seen(all_labels[1], known)
        items, targets = known.names, all_labels[1].names
    else:
        chosen = _parse_choice(rehearse, known)
        if isinstance(chosen, tuple) and Path(rehearse).is_file() and 2 * len(chosen) > len(known):
            # Labels of all classes leave none to be ranked.
            chosen, _ = sources.choose_rehearsed(chosen, len(known) // 3, seed)
        targets, items = sources.choose_rehearsed(known.names, chosen, seed)
        say(
            f"{len(targets):,} of the {len(known):,} seen classes are held out as new ones; the "
            f"other {len(items):,} are ranked for them: {quote_names(targets)}"
        )
    if k is not None:
        # Here the message names the option, before anything is computed.
        core.require_whole_number("--k", k, len(items))
    given = {} if names is None else sources.read_look_up(names, items + targets)
    senses = {name: words for name, words in given.items() if is_sense(words)}
    synsets = {name: synset for labels in all_labels for name, synset in labels.senses.items()}
    return ClassLists(
        targets,
        items,
        {name: words for name, words in given.items() if name not in senses},
        {name: words for labels in all_labels for name, words in labels.words.items()},
        {**synsets, **senses},
        rehearse is not None,
    )


def read_seen_labels(seen: str) -> sources.ClassLabels:
    """Read the seen classes that an option names, and print what was changed."""
    path = Path(seen)
    refuse(
        path.is_dir() and not any(path.glob("*.parquet")) and not (path / "config.json").is_file(),
        f"--seen {seen}: a folder needs the config.json of a transformers model, or parts of a "
        "table of scores (.parquet)",
    )
    # A folder of parts, not that of a model.
    is_table = (path.suffix in core.TABLE_ENDINGS and path.is_file()) or any(path.glob("*.parquet"))
    if is_table and path.suffix == ".csv":
        # A CSV file with one column is a list of names.
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            is_table = "," in file.readline()
    return _read_labels(zeroshot.open_scores(path).items if is_table else seen, seen)


def read_new_labels(new: str) -> sources.ClassLabels:
    """Read the new classes that an option names: a file, or names separated by commas.

    A text with a folder or an ending, such as new.txt, is always a file.
    """
    from rankshot.sources.names import IMAGENET

    path = Path(new)
    looks_like_file = path.name != new or re.fullmatch(r"\S+\.[A-Za-z]+", new)
    if new == IMAGENET or path.exists() or (looks_like_file and "," not in new):
        return _read_labels(path if path.exists() else new, new)
    names = _split_names(new)
    refuse(not names, f"--new {new!r}: has no names; separate names by commas")
    return _read_labels(names, "--new")


def _read_labels(given: Any, where: str) -> sources.ClassLabels:

    labels = sources.read_class_labels(given)
    for change in labels.changes:
        say(f"{where}: {change}")
    return labels


def list_label_files(*options: str | None) -> list[Path]:
    """Return the files among the options that name classes."""
    return [Path(option) for option in options if option is not None and Path(option).is_file()]


def _refuse_seen(new: sources.ClassLabels, seen: sources.ClassLabels) -> None:
    """Refuse new classes that are seen classes, by name or by synset; print which may be."""
    names, synsets = set(seen.names), set(seen.synsets) - {None}
    pairs = zip(new.names, new.synsets, strict=True)
    both = quote_names(name for name, synset in pairs if name in names or synset in synsets)
    refuse(
        both,
        f"classes are both seen and new: {both}; leave them out of the new classes (with "
        "--classes all, seen classes are predicted as well)",
    )
    for name in new.names:
        if found := seen.match(name):
            same = f"may be the same as a seen class: {quote_names(found)}"
            say(f"warning: the new class {name!r} {same}")


def _parse_choice(rehearse: str, known: sources.ClassLabels) -> int | tuple[str, ...]:
    """Return how many classes are rehearsed, or which: those of a table of labels, or names."""
    if rehearse.strip().isdecimal():
        say(
            f"--rehearse {rehearse}: the held-out classes are chosen at random, and the rehearsal "
            "needs labelled inputs of each; to hold out the classes of inputs that you have, give "
            "their table, with a column label"
        )
        return int(rehearse)
    path = Path(rehearse)
    names = _split_names(rehearse)
    if path.suffix in core.TABLE_ENDINGS and path.is_file():
        names = core.read_table(path, [core.LABEL]).texts[0]
    elif path.is_file():
        names = [name for _, name in iterate_names(path)]
    return tuple(match_seen(dict.fromkeys(filter(None, map(str.strip, names))), known).values())


def match_seen(names: Iterable[str], known: sources.ClassLabels) -> dict[str, str]:
    """Return the seen class that each name means, or the name itself if that cannot be said."""
    matches = {name: known.match(name) for name in names}
    return {name: found[0] if len(found) == 1 else name for name, found in matches.items()}


def _split_names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def read_question(question: str) -> dict[str, Any]:
    """Return the name of a question, or the template in a file, and what the classifier gets."""
    from rankshot.sources.prompts import TEXTS

    name, _, inputs = question.partition(":")
    if name in TEXTS:
        return {"question": name, "inputs": inputs.strip() or None}
    refuse(
        not Path(question).is_file(),
        f"--question {question!r}: no such question{suggest_name(name, TEXTS)}, and no such "
        f"file; the questions are {', '.join(TEXTS)}",
    )
    with Path(question).open("rb") as stream:
        lines = [line for _, line in decode_lines(stream, Path(question))]
    return {"question": "".join(lines), "inputs": None}

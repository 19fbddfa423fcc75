"""Answers of language models, from an endpoint or copied from a chat window.

`read_answers` reports all that it left out or corrected, so that an endpoint can be asked again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from rankshot.core.errors import NO_VALUE, InputError, join_some, suggest_name
from rankshot.core.files import read_text
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.look_alikes import NamedRankings
from rankshot.sources.names import ClassLabels
from rankshot.sources.prompts import PROMPT_END, choose_length

MAX_BROKEN_LISTS = 100
"""The search stops after this number of brackets that start no list, to bound its time."""
OPENING = re.compile(r"[\[{]")
ENTRY = re.compile(r"([-*•–·]|\(?\d{1,3}[.):])\s")
"""What begins an entry of a list: a bullet or a number."""
REMARKS = (" - ", " – ", " — ", ": ", " (", ", ", "; ")
"""What separates a name from a remark on it."""
MARKUP = "*`\"'“”‘’[]{}|,;: "
LONGEST_NAME, LONGEST_NAME_WORDS = 80, 6
"""Letters and words of a name: a longer line is a sentence."""
ENDINGS = (".txt", ".md", ".json", ".jsonl")
"""The files that are read in a folder; a file that is given by name may have any ending."""
PART = ".part-"
"""What the name of a file has after that of its rater: long prompts are divided."""
FAULTS_SHOWN = 3
EXPECTED = (
    'expected JSON such as {"cat": ["tiger", "fox"]}, or the name of each new class with a '
    "numbered or bulleted list below it, or one name per line"
)


class Answers(NamedTuple):
    """The rankings found in an answer, and its problems.

    Attributes
    ----------
    orders : dict of target to list of items
        The usable lists, each with at least half of the number of items asked for.
    notes : tuple of str
        Remarks on what was left out or corrected, and on lists that are not usable.

    Examples
    --------
    >>> from rankshot.sources import read_answers
    >>> read_answers("cat: tiger, fox", ["cat", "truck"], ["tiger", "bus", "fox"], k=2).orders
    {'cat': ['tiger', 'fox']}
    """

    orders: dict[str, list[str]]
    notes: tuple[str, ...]


def read_answers(text: str, targets: Iterable[object], items: Iterable[object], k: int) -> Answers:
    """Read the lists for several targets from an answer copied from a chat window.

    The answer may be a JSON object or JSON lines from targets to lists, or lists with numbers,
    with bullets or with one name per line, each below the name of its target, or after it and a
    colon (names separated by commas). Prose around the lists is ignored. Names may differ in case,
    in the separators of their words and in the plural. A name that is not an item, or that fits
    two, is left out and reported. Only the first k different items of a list are used. A list with
    fewer than half of k is not usable.

    Parameters
    ----------
    text : str
        The answer of the language model. The prompt may precede it.
    targets, items : iterables of names
        The names that were asked about, and those that were to be ranked.
    k : int
        The length of the lists that was asked for.

    Examples
    --------
    >>> from rankshot.sources import read_answers
    >>> answer = '''Gladly!
    ... **Cat**
    ... 1. Tigers - similar fur
    ... 2. lynx
    ... 3. fox'''
    >>> found = read_answers(answer, ["cat", "truck"], ["tiger", "bus", "fox", "tram"], k=3)
    >>> found.orders
    {'cat': ['tiger', 'fox']}
    >>> for note in found.notes[:2]:
    ...     print(note)
    'cat': 'lynx' is not an item: left out
    'cat': 2 of 3 names
    """
    targets, item_names = as_names(targets, "targets"), as_names(items)
    k, matcher = choose_length(k, item_names), ClassLabels.from_names(item_names)
    lists = AnswerReader(ClassLabels.from_names(targets), matcher).read(
        text.rpartition(PROMPT_END)[2]
    )
    by_target: dict[str, list[list[str]]] = {}
    for each in lists:
        if each.target is not None:
            by_target.setdefault(each.target, []).append(each.names)
    others = [each for each in lists if each.target is None and len(each.names) >= min(k, 2)]
    # An answer about one class alone need not name it.
    if len(targets) == len(others) == 1 and not by_target:
        by_target[targets[0]] = [others.pop().names]
    orders: dict[str, list[str]] = {}
    notes: list[str] = []
    for target in targets:
        order, faults = _read_order(by_target.get(target, []), matcher, k)
        notes += [f"{target!r}: {fault}" for fault in faults]
        orders |= {target: order} if order else {}
    if others:
        missing = [target for target in targets if target not in orders]
        hints = [f"{one.label!r}{suggest_name(one.label, missing)}" for one in others]
        notes.append(f"lists that are not below the name of a class, left out: {join_some(hints)}")
    return Answers(orders, tuple(notes))


def _read_order(
    lists: list[list[str]], matcher: ClassLabels, k: int
) -> tuple[list[str], list[str]]:
    """Items in the last usable list for a target, and notes; no items if none is usable."""
    if not lists:
        return [], [f"no answer was found; {EXPECTED}"]
    read = []
    for names in lists:
        found = [_find_item(name, matcher) for name in names]
        order = list(dict.fromkeys(item for item, _ in found if item))
        read.append((order, [note for _, note in found if note]))
    usable = [each for each in read if 2 * len(each[0]) >= k]
    order, notes = (usable or read)[-1]
    if not usable:
        return [], [*notes, f"{len(order)} of {k} names; at least {-(-k // 2)} are needed"]
    if len({tuple(order) for order, _ in usable}) > 1:
        notes.insert(0, f"the last of {len(usable)} lists is used")
    if len(order) != k:
        notes.append(f"{len(order)} of {k} names" + ", the first are used" * (len(order) > k))
    return order[:k], notes


def _find_item(name: str, matcher: ClassLabels) -> tuple[str | None, str]:
    """The item that a name means, or None, and a note if this is not plain."""
    forms = list_forms(name)
    if not forms:
        return None, f"{name[:LONGEST_NAME]!r} is not a name: left out"
    matches = next(filter(None, map(matcher.match, forms)), [])
    note = ""
    if not matches:
        matches = [matcher.names[row] for row in matcher.correct(forms[-1])]
        note = f"{forms[-1]!r} is read as {matches[0]!r}" if matches else ""
    if len(matches) == 1:
        return matches[0], note
    if matches:
        return None, f"{forms[-1]!r} may be {' or '.join(map(repr, matches))}: left out"
    hint = suggest_name(forms[-1], matcher.names)
    return None, f"{forms[-1]!r} is not an item{hint}: left out"


# ---- Files of answers: each is one rater


def read_answer_files(
    path: str | Path, targets: Iterable[object], items: Iterable[object], k: int | None = None
) -> NamedRankings:
    """Read the answers of language models to the prompts of `make_prompts`.

    The notes name what was left out or corrected, for each rater.

    Parameters
    ----------
    path : str or Path
        A folder of text files, or one file. A file is a rater; ``rater-1.part-1.txt`` and
        ``rater-1.part-2.txt`` are one. Answers to a different question are a different source: give
        both folders to `rank_names`.
    targets, items : iterables of names
        The names that were asked about, and those that were to be ranked.
    k : int, optional
        The length of the lists that was asked for: 15, or all items if there are fewer.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.sources import read_answer_files
    >>> path = Path(tempfile.mkdtemp()) / "rater-1.txt"
    >>> path.write_text("cat: tiger, whale, bus")
    22
    >>> read_answer_files(path, ["cat", "truck"], ["tiger", "bus", "whale"]).rankings
    Rankings: 1 ranking of 3 items, 1 target, 1 source, 1 rater
      cat: tiger > whale > bus
    """
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    length = choose_length(k, item_names)
    rows: list[tuple[list[str], str, str]] = []
    notes: list[str] = []
    for rater, paths in _list_files(Path(path)).items():
        # Each part of an answer may follow its prompt.
        answers = [read_text(path).rpartition(PROMPT_END)[2] for path in paths]
        found = read_answers("\n\n".join(answers), target_names, item_names, length)
        if not found.orders:
            rule = f"has no usable list ({'; '.join(found.notes[:FAULTS_SHOWN])})"
            hint = "ask again with these very names of classes, or leave out this file"
            where = " and ".join(map(str, paths))
            raise InputError("answer", NO_VALUE, rule, where, hint)
        rows += [(order, target, rater) for target, order in found.orders.items()]
        notes += [f"{rater}: {note}" for note in found.notes]
    orders, ranked, raters = zip(*rows, strict=True)
    rankings = Rankings.from_orders(
        orders, items=item_names, targets=ranked, sources="answers", raters=raters
    )
    unknown = tuple(name for name in target_names if name not in ranked)
    return NamedRankings(rankings, unknown, tuple(notes))


def _list_files(path: Path) -> dict[str, list[Path]]:
    """The files of each rater, in the order of their parts."""
    files = [path]
    if path.is_dir():
        texts = [file for file in path.iterdir() if file.suffix.lower() in ENDINGS]
        files = [file for file in texts if not file.name.startswith(".")]
    if not files:
        hint = f"save each answer there as a text file ({', '.join(ENDINGS)})"
        raise InputError("path", str(path), "is a folder without answers", hint=hint)
    raters: dict[str, list[Path]] = {}
    # The larger of two numbers is the longer one.
    for file in sorted(files, key=lambda file: (len(file.stem), file.name)):
        raters.setdefault(file.stem.partition(PART)[0], []).append(file)
    return raters


# ---- From the text of an answer to lists of names


@dataclass
class AnswerList:
    """The names in a list, and the line or key above it, which may name a target.

    ``marker`` is what its entries begin with: the spaces before a bullet or a number, and whether
    it is a number. It is None for a list without bullets.
    """

    label: str = ""
    target: str | None = None
    names: list[str] = field(default_factory=list)
    marker: tuple[int, bool] | None = None


class AnswerReader:
    """Finds the ``lists`` in an answer."""

    def __init__(self, targets: ClassLabels, items: ClassLabels) -> None:
        self.targets, self.items = targets, items
        self.lists = [AnswerList()]

    def read(self, text: str) -> list[AnswerList]:
        """All lists in an answer that are not empty, in the order of the text."""
        place = 0
        for start, end, value in find_json(text):
            self._read_lines(text[place:start])
            if isinstance(value, list):
                # It belongs to the heading before it.
                self._add(self.lists[-1].label, self.lists[-1].target, value)
            else:
                for key, names in value.items():
                    self._add(key, self._find_target(key), names)
                self._add("", None, [])
            place = end
        self._read_lines(text[place:])
        return [each for each in self.lists if each.names]

    def _add(self, label: str, target: str | None, names: object) -> None:
        texts = names if isinstance(names, list) else []
        are_names = all(isinstance(name, str) for name in texts)
        self.lists.append(AnswerList(label, target, texts if are_names else []))

    def _read_lines(self, text: str) -> None:
        """Read each line as a whole list, the heading of one, an entry of one, or prose."""
        is_after_blank = True
        for line in text.splitlines():
            body, marker, is_title = _split_line(line)
            if "```" in line or not any(map(str.isalnum, body)):
                is_after_blank = is_after_blank or not body
                continue
            current = self.lists[-1]
            is_next = marker is not None and marker == current.marker
            label, colon, tail = body.partition(":")
            names = [name for part in tail.split(",") if (name := strip_markup(part))]
            n_items = sum(map(self._is_item, names))
            own, target = self._find_target(label), self._find_target(body)
            is_item = self._is_item(body)
            if n_items and (own or (marker is None and 2 * n_items >= len(names))):
                self._add(label, own, names)
            elif target and not is_next and (not is_item or (is_title and marker is None)):
                self._add(body, target, [])
            elif marker is not None:
                # A bullet that differs from those of the list begins a remark on an entry.
                if is_next or not current.names or (is_item and current.marker is None):
                    current.marker = current.marker or marker
                    current.names.append(body)
            elif is_item or (
                _is_short(body) and current.names and not (is_after_blank or is_title)
            ):
                current.names.append(body)
            else:
                # Another class, or prose: what follows does not belong to the list before it.
                self._add(strip_markup(label if colon else body), None, [])
            is_after_blank = False

    def _find_target(self, text: str) -> str | None:
        """Return the target that a heading or a key names, alone or after "For" or "New class:"."""
        name = strip_markup(text)
        if not _is_short(name):
            return None
        letters = name[next((i for i, letter in enumerate(name) if letter.isalnum()), 0) :]
        forms = (name, letters, name.rpartition(": ")[2], name.rpartition("For ")[2])
        match = next(filter(None, map(self.targets.match, forms)), [])
        return match[0] if len(match) == 1 else None

    def _is_item(self, text: str) -> bool:
        return any(map(self.items.match, list_forms(text)))


def _split_line(line: str) -> tuple[str, tuple[int, bool] | None, bool]:
    """The text of a line, the marker that it begins with, and whether it is a title."""
    plain = line.strip().replace("**", "").replace("`", "")
    body = plain.lstrip("#> ")
    is_title = line.strip().startswith(("#", "**")) or body.endswith(":")
    marker, entry = None, ENTRY.match(body)
    if entry is not None and not plain.startswith("#"):
        marker = len(line) - len(line.lstrip()), any(map(str.isdigit, entry[0]))
    return body[entry.end() :].strip() if entry else body, marker, is_title


def list_forms(name: str) -> list[str]:
    """Return the forms of a name that may be an item: as it is, and without a remark on it."""
    bare = strip_markup(name)
    ends = [place for mark in REMARKS if (place := bare.find(mark, 1)) > 0]
    cut = strip_markup(bare[: min(ends, default=len(bare))])
    return [form for form in dict.fromkeys([name.strip(), bare, cut]) if _is_short(form)]


def _is_short(text: str) -> bool:
    return len(text) <= LONGEST_NAME and len(text.split()) <= LONGEST_NAME_WORDS


def strip_markup(text: str) -> str:
    """Return a text with single spaces, without quotes, asterisks and the like around it."""
    return " ".join(text.split()).strip(MARKUP).removesuffix(".")


def find_json(text: str) -> list[tuple[int, int, Any]]:
    """Return the outermost JSON lists and objects in a text, and their places."""
    found: list[tuple[int, int, Any]] = []
    end = broken = 0
    for opening in OPENING.finditer(text):
        if (start := opening.start()) >= end and broken < MAX_BROKEN_LISTS:
            try:
                value, end = json.JSONDecoder().raw_decode(text, start)
                found.append((start, end, value))
            except (ValueError, RecursionError):
                broken += 1
    return found

"""Answers of language models: one list from an endpoint, or many lists from a chat window.

`parse_answer` is strict: an endpoint can be asked again. `read_answers` takes what a person has
copied from a chat window, in whatever form it came, and reports all that it had to leave out.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rankshot.core.errors import (
    RankshotError,
    format_count,
    join_some,
    quote_names,
    short_repr,
    suggest_name,
)
from rankshot.core.validation import as_names
from rankshot.ranking.rankings import Rankings
from rankshot.sources.names import NameMatcher
from rankshot.sources.prompts import PROMPT_END, choose_length

MAX_BROKEN_LISTS = 100
"""The search stops after this number of brackets that start no list, to bound its time."""
MARKER = re.compile(r"(\s*)([-*•+–·]|\(?\d{1,3}[.):\]])\s+")
"""What begins an entry of a list: a bullet or a number."""
KEY = re.compile(r'"((?:[^"\\\n]|\\.)*)"\s*:\s*$')
"""The key of a JSON object, before its value."""
REMARK = re.compile(r"\s+[-–—→=]+>?\s+|:(\s|$)|\s\(|[,;]\s|\s[\d.]+\s*%")
"""What separates a name from a remark on it."""
LABEL_END = re.compile(r":|\s[-–—→=]+>?\s")
NUMBERS_IN_LINE = re.compile(r"(^|.*\s)\(?1[.)]\s.*\s\(?2[.)]\s")
BEFORE_NUMBER = re.compile(r"\s(?=\(?\d{1,3}[.)]\s)")
"""A line such as 1. tiger 2. fox, and where its entries begin."""
SEPARATOR = re.compile(r"\s*[,;>→\t]\s*")
"""What separates the names of a list in one line."""
TABLE_ENTRY = re.compile(r"\s*\|\s*(\d+)\s*\|([^|]*)\|.*")
"""A numbered row of a table."""
MARKUP = "*`\"'“”‘’«»<>[]{}|,; \t"
LONGEST_NAME_WORDS = 6
"""Words of a name: a line with more words is a sentence."""
MAX_JSON_DEPTH = 20
"""Brackets inside brackets of JSON."""
LABEL_DISTANCE = 500
"""Characters before a list in which its label is looked for."""
FEWEST_PROSE_WORDS = 3
"""Words of a line without markup that names no class and ends with a colon: Here they are:"""
ENDINGS = (".txt", ".md", ".json", ".jsonl")
"""The files that are read in a folder; a file that is given by name may have any ending."""
NUMBERED = re.compile(r"\.(again|part)-(\d{1,6})(?=\.|$)")
"""The end of a name such as rater-1.again-1.part-2: a rater has several files."""
FAULTS_SHOWN = 3


def parse_answer(text: str, items: Sequence[str], k: int) -> list[str]:
    """Return the one ranking in an answer, with the items in their original spelling.

    Text around the list is ignored. So are differences in case, in the separators of words and
    between singular and plural, unless a name then fits two items.
    """
    found = [value for _, _, value in find_json(text, "[")]
    names = found[0] if len(found) == 1 else []
    matcher = NameMatcher(items)
    matches = [matcher.match(name) if type(name) is str else [] for name in names]
    counts = Counter(match[0] for match in matches if len(match) == 1)
    unknown = [name for name, match in zip(names, matches, strict=True) if len(match) != 1]
    repeated = [name for name, count in counts.items() if count > 1]
    faults = [f"not among the items: {join_some(map(short_repr, unknown))}"] if unknown else []
    faults += [f"more than once: {join_some(map(short_repr, repeated))}"] if repeated else []
    faults += [f"expected {k} names, found {len(names)}"] if len(names) != k else []
    if len(found) != 1:
        faults = [f"expected one complete JSON list, found {len(found)}"]
    if faults:
        raise RankshotError("; ".join(faults))
    return list(counts)


@dataclass(frozen=True)
class Answers:
    """The rankings found in an answer, and its problems.

    Attributes
    ----------
    orders : dict of target to list of items
        The usable lists, each with at least half of the number of items asked for.
    unanswered : tuple of targets
        The targets without a usable list, which should be asked again.
    notes : tuple of str
        Remarks on what was left out or corrected, and on lists that are not usable.

    Examples
    --------
    >>> from rankshot.sources import read_answers
    >>> found = read_answers("cat: tiger, fox", ["cat", "truck"], ["tiger", "bus", "fox"], k=2)
    >>> found.orders, found.unanswered
    ({'cat': ['tiger', 'fox']}, ('truck',))
    """

    orders: dict[str, list[str]]
    unanswered: tuple[str, ...]
    notes: tuple[str, ...]


def read_answers(text: str, targets: Iterable[object], items: Iterable[object], k: int) -> Answers:
    """Read the lists for several targets from an answer copied from a chat window.

    The answer may be a JSON object, JSON lines, or lists under headings, with numbers or bullets,
    in Markdown or plain, with prose around them. Names may differ in case, in the separators of
    their words and in the plural. A name that is not an item, or that fits two, is left out and
    reported, as are repetitions. Only the first k names of a list are used. A list with fewer than
    half of the k names is not usable.

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
    >>> found.orders, found.unanswered
    ({'cat': ['tiger', 'fox']}, ('truck',))
    >>> for note in found.notes:
    ...     print(note)
    'cat': not among the items, left out: 'lynx'
    'cat': 2 known names, 3 were asked for
    no answer for 'truck'
    """
    targets, item_names = as_names(targets, "targets"), as_names(items)
    k, matcher = choose_length(k, item_names), NameMatcher(item_names)
    answer = text.rpartition(PROMPT_END)[2]
    lists = AnswerText(NameMatcher(targets), matcher).find_lists(answer)
    by_target: dict[str, list[FoundList]] = {}
    others: list[FoundList] = []
    for found in lists:
        if found.target is not None:
            by_target.setdefault(found.target, []).append(found)
        elif len(found.names) > 1:
            others.append(found)
    notes: list[str] = []
    # Who is asked about one class alone need not name it.
    if len(targets) == len(others) == 1 and not by_target and others[0].label is None:
        by_target[targets[0]] = [others.pop()]
        notes.append(
            f"{targets[0]!r}: the list without the name of a class is interpreted as its own"
        )
    orders: dict[str, list[str]] = {}
    for target in targets:
        if target in by_target:
            order, faults = _read_order(by_target[target], matcher, k)
            notes += [f"{target!r}: {fault}" for fault in faults]
            orders |= {target: order} if order else {}
    unanswered = tuple(target for target in targets if target not in orders)
    if lacking := [target for target in targets if target not in by_target]:
        notes.append(f"no answer for {quote_names(lacking)}")
    labels = dict.fromkeys(found.label for found in others if found.label is not None)
    if labels:
        hints = [f"{label!r}{suggest_name(label, unanswered)}" for label in labels]
        notes.insert(0, f"lists for other names, left out: {join_some(hints)}")
    if bare := [found for found in others if found.label is None]:
        notes.append(f"{format_count(len(bare), 'list')} without the name of a class, left out")
    return Answers(orders, unanswered, tuple(notes))


def _read_order(
    found: list[FoundList], matcher: NameMatcher, k: int
) -> tuple[list[str], list[str]]:
    """Return the items in the last usable list for a target, and notes; no items if none is."""
    read = [_read_names(each.names, matcher) for each in found]
    usable = [each for each in read if 2 * len(set(each[0])) >= k]
    items, notes = (usable or read)[-1]
    if any(other != items for other, _ in usable):
        notes = [f"{len(usable)} different lists, only the last is used", *notes]
    order = list(dict.fromkeys(items))
    if repeated := [item for item, count in Counter(items).items() if count > 1]:
        notes.append(f"more than once, only the first is used: {quote_names(repeated)}")
    if not usable:
        known = format_count(len(order), "known name") if order else "no known name"
        least = f"{k} were asked for, and at least {-(-k // 2)} are needed"
        return [], [*notes, f"not usable: {known}, {least}"]
    if len(order) > k:
        notes.append(f"{len(order)} names, only the first {k} are used")
    elif len(order) < k:
        notes.append(f"{format_count(len(order), 'known name')}, {k} were asked for")
    return order[:k], notes


def _read_names(names: list[str], matcher: NameMatcher) -> tuple[list[str], list[str]]:
    """Return the items that names mean, and notes on the names that mean none, or several."""
    items: list[str] = []
    unknown: list[str] = []
    notes: list[str] = []
    for name in names:
        forms = list_forms(name)
        matches = next(filter(None, map(matcher.match, forms)), [])
        # A word in parentheses distinguishes classes of one name, such as crane (bird).
        matches = matches or [
            item
            for item in matcher.names
            if item.casefold().startswith(f"{forms[-1].casefold()} (")
        ]
        if not matches and len(matches := matcher.match_misspelt(forms[-1])) == 1:
            notes.append(f"{forms[-1]!r} is read as {matches[0]!r}")
        if len(matches) == 1:
            items.append(matches[0])
        elif matches:
            notes.append(f"{forms[-1]!r} may be {' or '.join(map(repr, matches))}, left out")
        else:
            unknown.append(forms[-1])
    if unknown:
        hint = suggest_name(unknown[0], matcher.names) if len(unknown) == 1 else ""
        notes.append(f"not among the items, left out: {quote_names(unknown)}{hint}")
    return items, notes


# ---- Files of answers: each is one rater


@dataclass(frozen=True)
class AnswerFiles:
    """The answers of several raters.

    Attributes
    ----------
    rankings : Rankings
        All usable lists; the names of the files are the raters.
    answers : dict of str to Answers
        The answers of each rater, with notes on what was left out.
    follow_ups : dict of str to tuple of targets
        The targets to ask about again. The keys are the names of the raters' next prompts, without
        the file extension.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.sources import read_answer_files
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "rater-1.txt")
    ...     _ = path.write_text("cat: tiger, whale, bus")
    ...     found = read_answer_files([path], ["cat", "truck"], ["tiger", "bus", "whale"])
    >>> found.rankings.orders(), found.follow_ups
    ([['tiger', 'whale', 'bus']], {'rater-1.again-1': ('truck',)})
    """

    rankings: Rankings
    answers: dict[str, Answers]
    follow_ups: dict[str, tuple[str, ...]]


def read_answer_files(
    paths: str | Path | Iterable[str | Path],
    targets: Iterable[object],
    items: Iterable[object],
    k: int | None = None,
    *,
    source: str = "answers",
) -> AnswerFiles:
    """Read the answers of language models to the prompts of `make_prompts`.

    Parameters
    ----------
    paths : path or iterable of paths
        Files of text, or folders of them. A file is a rater; ``rater-1.part-2.txt`` and
        ``rater-1.again-1.txt`` belong to the rater of ``rater-1.txt``.
    targets, items : iterables of names
        The names that were asked about, and those that were to be ranked.
    k : int, optional
        The length of the lists that was asked for: 15, or all items if there are fewer.
    source : str
        The source of the rankings. Answers to a different question are a different source: read
        each folder separately, and join the rankings with `Rankings.concatenate`. If it is not
        ``"answers"``, the names of the raters begin with it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankshot.sources import read_answer_files
    >>> path = Path(tempfile.mkdtemp()) / "rater-1.txt"
    >>> path.write_text("cat: tiger, whale, bus")
    22
    >>> found = read_answer_files(path, ["cat", "truck"], ["tiger", "bus", "whale"])
    >>> found.rankings
    Rankings: 1 ranking of 3 items, 1 target, 1 source, 1 rater
      cat: tiger > whale > bus
    >>> found.follow_ups
    {'rater-1.again-1': ('truck',)}
    """
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    length = choose_length(k, item_names)
    given = [paths] if isinstance(paths, str | Path) else paths
    files = _group_by_rater(_list_files([Path(path) for path in given]))
    answers: dict[str, Answers] = {}
    for rater, names in files.items():
        text = "\n\n".join(_read_answer(path) for path in names)
        answers[rater] = read_answers(text, target_names, item_names, length)
        if not answers[rater].orders:
            raise RankshotError(
                f"{' and '.join(map(str, names))}: no usable list in it "
                f"({'; '.join(answers[rater].notes[:FAULTS_SHOWN])}). It must be the answer to a "
                "prompt with these classes, with their names in the same language; ask again, or "
                "leave out this file"
            )
    chosen = [(rater, target) for rater in answers for target in answers[rater].orders]
    rankings = Rankings.from_orders(
        [answers[rater].orders[target] for rater, target in chosen],
        items=item_names,
        targets=[target for _, target in chosen],
        sources=source,
        raters=[rater if source == "answers" else f"{source}/{rater}" for rater, _ in chosen],
    )
    # The number of files gives each follow-up a name that no answer has yet.
    follow_ups = {
        f"{rater}.again-{len(names)}": answers[rater].unanswered for rater, names in files.items()
    }
    return AnswerFiles(rankings, answers, {name: left for name, left in follow_ups.items() if left})


def _list_files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = [path]
        if path.is_dir():
            texts = [file for file in path.iterdir() if file.suffix.lower() in ENDINGS]
            found = sorted(file for file in texts if not file.name.startswith("."))
        if not found:
            raise RankshotError(
                f"{path}: no answers in this folder; save each answer there as a text file "
                f"({', '.join(ENDINGS)})"
            )
        files += found
    return files


def _group_by_rater(files: Sequence[Path]) -> dict[str, list[Path]]:
    """Return the files of each rater: the answers to the first prompts, then to the later ones."""

    def get_turn(path: Path) -> tuple[int, int]:
        numbers = {word: int(number) for word, number in NUMBERED.findall(path.stem)}
        return numbers.get("again", 0), numbers.get("part", 0)

    raters: dict[str, list[Path]] = {}
    for path in sorted(files, key=get_turn):
        theirs = raters.setdefault(NUMBERED.sub("", path.stem), [])
        if same := [other for other in theirs if other.name == path.name]:
            raise RankshotError(
                f"{same[0]} and {path} have the same name: answers to two questions are two "
                "sources; read each folder separately"
            )
        theirs.append(path)
    return raters


def _read_answer(path: Path) -> str:
    """Return the text of a file, without the prompt if that was copied as well."""
    content = path.read_bytes()
    try:
        # Some editors of Windows write UTF-16, and mark it.
        is_wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        text = content.decode("utf-16" if is_wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise RankshotError(f"{path}: not UTF-8 text; save it as plain text") from None
    _, prompt, answer = text.rpartition(PROMPT_END)
    if not answer.strip():
        what = "contains the prompt, but no answer" if prompt else "is empty"
        raise RankshotError(f"{path}: {what}; copy the answer from the chat window into it")
    return answer


# ---- From the text of an answer to lists of names


@dataclass
class FoundList:
    """Names in the order of the text, and the target or other label that they stand under."""

    target: str | None
    label: str | None
    names: list[str] = field(default_factory=list)
    marker: str | None = None


class AnswerText:
    r"""Finds lists of names in the text of an answer."""

    def __init__(self, targets: NameMatcher, items: NameMatcher) -> None:
        self.targets = targets
        self.items = items

    def find_lists(self, text: str) -> list[FoundList]:
        """Return all lists that are not empty, in the order of the text."""
        found, rest = self._read_json(text)
        if not found:
            found, rest = self._read_json(_repair_quotes(text))
        place, current = 0, FoundList(None, None)
        found.append((place, current))
        for line in _divide_numbered(rest).splitlines(keepends=True):
            if (begun := self._read_line(line, current)) is not None:
                found.append((place, begun))
                current = begun
            place += len(line)
        return [each for _, each in sorted(found, key=lambda pair: pair[0]) if each.names]

    # ---- JSON

    def _read_json(self, text: str) -> tuple[list[tuple[int, FoundList]], str]:
        """Return the lists in JSON, each with its place, and the text without them."""
        found: list[tuple[int, FoundList]] = []
        rest: list[str] = []
        done = 0
        for start, end, value in find_json(text, "[{"):
            before = text[max(done, start - LABEL_DISTANCE) : start]
            key = KEY.search(before)
            label = key[1] if key else _find_label(before)
            if lists := list(self._walk(value, label)):
                found += [(start, each) for each in lists]
                # Lines keep their places.
                first = start - len(key[0]) if key else start
                rest += [text[done:first], re.sub("[^\\n]", " ", text[first:end])]
                done = end
        return found, "".join([*rest, text[done:]])

    def _walk(self, value: object, label: str | None, depth: int = 0) -> Iterator[FoundList]:
        """Yield the lists of names in a JSON value that stands under a label."""
        if depth > MAX_JSON_DEPTH:
            return
        if isinstance(value, dict) and self._is_scored(value):
            yield self._make_list(label, list(value))
        elif isinstance(value, dict):
            for key, part in value.items():
                if isinstance(part, str) and self.targets.match(key) and SEPARATOR.search(part):
                    yield self._make_list(key, split_names(part))
                elif isinstance(part, dict | list):
                    yield from self._walk(part, self._choose_label(value, key, label), depth + 1)
        elif isinstance(value, list):
            names = [name for part in value if (name := self._get_name(part)) is not None]
            if names:
                yield self._make_list(label, names)
            else:
                for part in value:
                    yield from self._walk(part, label, depth + 1)

    def _is_scored(self, record: dict[str, Any]) -> bool:
        """Whether this is a list such as {"tiger": 0.4, "fox": 0.3}, in the order of numbers."""
        numbers = list(record.values())
        if not numbers or any(type(number) not in {int, float} for number in numbers):
            return False
        is_sorted = numbers in (sorted(numbers), sorted(numbers, reverse=True))
        return is_sorted and 2 * sum(map(self.is_entry, record)) >= len(record)

    def _choose_label(self, record: dict[str, Any], key: str, label: str | None) -> str | None:
        """Return the class of a list in a JSON object: its key, or another value of the object."""
        texts = [text for text in record.values() if isinstance(text, str)]
        named = [text for text in texts if self.targets.match(text)]
        if self.targets.match(key) or not (named or texts or label):
            return key
        # A record such as {"class": "cat", "ranking": [...]}, or {"cat": {"ranking": [...]}}.
        if named or (len(record) == 2 and texts):
            return (named or texts)[0]
        return label if self._find_target(label or "") else key

    def _get_name(self, part: Any) -> str | None:
        """Return the name in an element of a list: text, or a flat record with a name in it."""
        if isinstance(part, dict) and not any(isinstance(x, dict | list) for x in part.values()):
            texts = [text for text in part.values() if isinstance(text, str)]
            known = [text for text in texts if self.items.match(text)]
            return next(iter(known or texts), None)
        if isinstance(part, list) and len(part) == 2:
            # A pair such as ["tiger", 0.4].
            texts = [text for text in part if isinstance(text, str)]
            return texts[0] if len(texts) == 1 else None
        return part if isinstance(part, str) else None

    def _make_list(self, label: str | None, names: list[str]) -> FoundList:
        return FoundList(self._find_target(label or ""), label or None, names)

    def _find_target(self, text: str) -> str | None:
        """Return the target that a label names: alone, before a remark, or at its end."""
        plain = strip_markup(text)
        ends = re.split(r":\s+|\bfor\s+|\bclass\s+", plain.rstrip(":"), flags=re.IGNORECASE)
        for form in (*list_forms(plain), strip_markup(ends[-1])):
            if match := self.targets.match(form):
                return match[0] if len(match) == 1 else None
        return None

    # ---- Lines

    def _read_line(self, line: str, current: FoundList) -> FoundList | None:
        """Add the names in a line to the list; or return the list that the line begins."""
        if line.lstrip().startswith("|"):
            # | 1 | tiger | why |, or | cat | tiger | fox |
            line = TABLE_ENTRY.sub(r"\1. \2", line).strip(" |#\n").replace("|", ",")
        plain = line.replace("**", "").replace("`", "").rstrip()
        marked = MARKER.match(plain)
        body = strip_markup(plain[marked.end() :] if marked else plain.lstrip("#> "))
        is_title = re.fullmatch(r"#.*|\*\*[^*]+\*\*:?", line.strip()) is not None
        # Numbers count up; what follows them, and the indent, is the same for all entries.
        marker = f"{marked[1]}{marked[2].strip('(0123456789')}" if marked else None
        begun = self._read_inline(body, marker, current)
        is_label = (is_title or body.endswith(":")) and not self.is_entry(body) and _is_short(body)
        if begun is None and (is_label or self._is_heading(body, marker, current)):
            begun = FoundList(self._find_target(body), body.rstrip(": "))
        if begun is None:
            self._add_names(body, marker, current)
        elif begun.target is None and not is_title and self._is_prose(begun.label or ""):
            begun.label = None
        return begun

    def _add_names(self, body: str, marker: str | None, current: FoundList) -> None:
        """Add the names in a line to a list, unless it is a sentence."""
        names = split_names(body)
        # A name with another bullet is a remark on the entry before it, unless it is an item.
        is_alike = marker is not None and current.marker in (None, marker)
        n_entries = sum(map(self.is_entry, names))
        is_entry = self.is_entry(body) or (is_alike and _is_short(body))
        # A line of items. After a bullet, or with a bracket, what follows a comma is a remark.
        is_line = marker is None and "(" not in body and n_entries > 1
        if (is_line or not is_entry) and len(names) > 1 and 2 * n_entries >= len(names):
            current.names.extend(names)
        elif is_entry:
            current.marker = current.marker or marker
            current.names.append(body)

    def _is_heading(self, body: str, marker: str | None, current: FoundList) -> bool:
        """Whether a line names a target, and is not one more entry of the list before it."""
        name = strip_markup(body.rstrip(": "))
        if marker is None:
            # Or a line such as "New class: cat".
            name = strip_markup(name.rpartition(": ")[2])
        is_target = len(self.targets.match(name)) == 1 or self._is_misspelt(name)
        if not is_target or self.items.match(name):
            return False
        return marker is None or body.endswith(":") or marker != current.marker

    def _read_inline(self, body: str, marker: str | None, current: FoundList) -> FoundList | None:
        """Return the list in a line such as ``cat: tiger, fox`` or ``cat, tiger, fox``.

        In ``catt: tiger, fox``, the name is not a target.
        """
        if end := LABEL_END.search(body):
            label, names = strip_markup(body[: end.start()]), split_names(body[end.end() :])
        else:
            label, *names = split_names(body) or [""]
        n_entries, target = sum(map(self.is_entry, names)), self.targets.match(label)
        if len(target) == 1 and n_entries:
            return FoundList(target[0], label, names)
        is_list = n_entries > 1 and 2 * n_entries >= len(names)
        # A heading needs names, and an entry of its list may have a remark.
        may_begin = current.names if current.label else True
        if not is_list or not may_begin or (marker is not None and marker == current.marker):
            return None
        is_label = self._is_misspelt(label) or (end and _is_short(label))
        return None if self.is_entry(label) or not is_label else FoundList(None, label, names)

    def _is_misspelt(self, name: str) -> bool:
        """Whether a name is none of the targets, but is spelled like one of them."""
        return not self.targets.match(name) and bool(suggest_name(name, self.targets.names))

    def _is_prose(self, label: str) -> bool:
        return len(label.split()) >= FEWEST_PROSE_WORDS and not self._is_misspelt(label)

    def is_entry(self, name: str) -> bool:
        """Return whether a name, with or without a remark, is one of the items."""
        return any(self.items.match(form) for form in list_forms(name))


def list_forms(name: str) -> list[str]:
    """Return a name as it is, without its number, and without a remark on it."""
    marked = MARKER.match(name)
    bare = strip_markup(name[marked.end() :] if marked else name)
    cut = strip_markup(_cut_remark(bare))
    # Without symbols before and after it, such as emoji.
    letters = re.sub(r"^[\W\d_]+|[\W_]+$", "", cut)
    return list(dict.fromkeys([name.strip(), strip_markup(name), bare, letters, cut]))


def _cut_remark(name: str) -> str:
    end = REMARK.search(name, 1)
    return name[: end.start()] if end else name


def _is_short(text: str) -> bool:
    return len(_cut_remark(text).split()) <= LONGEST_NAME_WORDS


def strip_markup(text: str) -> str:
    """Return a text without quotes, brackets, asterisks and the like around it."""
    return text.strip().strip(MARKUP).removesuffix(".")


def split_names(text: str) -> list[str]:
    """Return the names of a list in one line."""
    return [name for part in SEPARATOR.split(text) if (name := strip_markup(part))]


def _divide_numbered(text: str) -> str:
    """Return a text of the same length, with each entry of ``1. tiger 2. fox`` on its own line."""
    return "".join(
        BEFORE_NUMBER.sub("\n", line) if NUMBERS_IN_LINE.match(line) else line
        for line in text.splitlines(keepends=True)
    )


def _find_label(before: str) -> str | None:
    """Return the line before a list, if it is short."""
    lines = [line for line in before.splitlines() if not line.strip().startswith("```")]
    last = next((line for line in reversed(lines) if line.strip()), "")
    label = strip_markup(last.replace("**", "").lstrip("#> ")).rstrip(":= ")
    return label if label and _is_short(label) else None


def _repair_quotes(text: str) -> str:
    """Return JSON for a Python dict or list: other quotes, and no comma after the last element."""
    text = re.sub(r"([\[{,:]\s*)['“”‘’]", r'\1"', text)
    text = re.sub(r"['“”‘’](\s*[\]},:])", r'"\1', text)
    return re.sub(r",(\s*[\]}])", r"\1", text)


def find_json(text: str, brackets: str) -> list[tuple[int, int, Any]]:
    """Return the outermost JSON values in a text that begin with a bracket, and their places."""
    found = []
    broken = 0
    decoder = json.JSONDecoder()
    opening = re.compile(f"[{re.escape(brackets)}]")
    start = opening.search(text)
    while start is not None and broken < MAX_BROKEN_LISTS:
        try:
            value, end = decoder.raw_decode(text, start.start())
            found.append((start.start(), end, value))
        except (ValueError, RecursionError):
            end = start.end()
            broken += 1
        start = opening.search(text, end)
    return found

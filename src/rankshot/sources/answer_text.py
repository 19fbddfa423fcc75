"""From the text of an answer to lists of names: JSON, and lines of text in any form."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from rankshot.sources.class_names import NameMatcher

MAX_BROKEN_LISTS = 100
"""The search stops after this number of brackets that start no list, to bound its time."""
MARKER = re.compile(r"(\s*)([-*•+–·]|\(?\d{1,3}[.):\]])\s+")
"""What begins an entry of a list: a bullet or a number."""
KEY = re.compile(r'"((?:[^"\\\n]|\\.)*)"\s*:\s*$')
"""The key of a JSON object, before its value."""
REMARK = re.compile(r"\s+[-–—→=]+>?\s+|:(\s|$)|\s\(|[,;]\s|\s[\d.]+\s*%")
"""What separates a name from a remark on it."""
LABEL_END = re.compile(r":|\s[-–—→=]+>?\s")
SEPARATOR = re.compile(r"\s*[,;>→\t]\s*")
"""What separates the names of a list in one line."""
MARKUP = "*`\"'“”‘’«»<>[]{}|,; \t"
LONGEST_NAME = 6
"""Words of a name: a line with more words is a sentence."""
DEEPEST = 20
"""Brackets inside brackets of JSON."""
NEAR = 500
"""Characters before a list in which its label is looked for."""
PROSE = 3
"""Words of a line without markup that names no class and ends with a colon: Here they are:"""


@dataclass
class FoundList:
    """Names in the order of the text, and the target or other label that they stand under."""

    target: str | None
    label: str | None
    names: list[str] = field(default_factory=list)
    marker: str | None = None


class AnswerText:
    r"""Finds lists of names in the text of an answer.

    Examples
    --------
    >>> text = AnswerText(NameMatcher(["cat"]), NameMatcher(["fox", "tiger"]))
    >>> for found in text.find_lists("## Cat\n- fox (small)\n- lynx\n"):
    ...     print(found.target, found.names)
    cat ['fox (small)', 'lynx']
    """

    def __init__(self, targets: NameMatcher, items: NameMatcher) -> None:
        self.targets = targets
        self.items = items

    def find_lists(self, text: str) -> list[FoundList]:
        """Return all lists that are not empty, in the order of the text."""
        found, rest = self._read_json(text)
        if not found:
            found, rest = self._read_json(_repair_quotes(text))
        place = 0
        found.append((place, FoundList(None, None)))
        current = found[-1][1]
        for line in rest.splitlines(keepends=True):
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
            before = text[max(done, start - NEAR) : start]
            key = KEY.search(before)
            label = key[1] if key else _find_label(before)
            if lists := list(self._walk(value, label)):
                found += [(start, each) for each in lists]
                # Lines keep their places.
                first = start - len(key[0]) if key else start
                rest += [text[done:first], re.sub("[^\\n]", " ", text[first:end])]
                done = end
        return found, "".join([*rest, text[done:]])

    def _walk(self, value: Any, label: str | None, depth: int = 0) -> Iterator[FoundList]:
        """Yield the lists of names in a JSON value that stands under a label."""
        if depth > DEEPEST:
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
            match = self.targets.match(form)
            if match:
                return match[0] if len(match) == 1 else None
        return None

    # ---- Lines

    def _read_line(self, line: str, current: FoundList) -> FoundList | None:
        """Add the names in a line to the list; or return the list that the line begins."""
        if line.lstrip().startswith("|"):
            return self._read_table_row(line, current)
        plain = line.replace("**", "").replace("`", "").rstrip()
        marked = MARKER.match(plain)
        body = strip_markup(plain[marked.end() :] if marked else plain.lstrip("#> "))
        is_title = re.fullmatch(r"#.*|\*\*[^*]+\*\*:?", line.strip()) is not None
        # Numbers count up; what follows them, and the indent, is the same for all entries.
        marker = f"{marked[1]}{marked[2].strip('(0123456789')}" if marked else None
        begun = self._begin_list(body, marker, current, is_label=is_title or body.endswith(":"))
        if begun is None:
            self._add_names(body, marker, current)
        elif begun.target is None and not is_title and len(body.split()) >= PROSE:
            begun.label = None
        return begun

    def _begin_list(
        self, body: str, marker: str | None, current: FoundList, *, is_label: bool
    ) -> FoundList | None:
        """Return the list that a line begins, or None if it begins none."""
        if (inline := self._read_inline(body)) is not None:
            return inline
        if self._is_heading(body, marker, current):
            return FoundList(self._find_target(body), body.rstrip(": "))
        if is_label and not self.is_entry(body) and _is_short(body):
            return FoundList(self._find_target(body), body.rstrip(": "))
        return None

    def _add_names(self, body: str, marker: str | None, current: FoundList) -> None:
        """Add the names in a line to a list, unless it is a sentence."""
        names = split_names(body)
        # A name with another bullet is a remark on the entry before it, unless it is an item.
        is_alike = marker is not None and current.marker in (None, marker)
        n_entries = sum(map(self.is_entry, names))
        # A line of items. After a bullet, or with a bracket, what follows a comma is a remark.
        is_line = marker is None and "(" not in body and n_entries > 1
        if is_line and 2 * n_entries >= len(names):
            current.names.extend(names)
        elif self.is_entry(body) or (is_alike and _is_short(body)):
            current.marker = current.marker or marker
            current.names.append(body)
        elif len(names) > 1 and 2 * n_entries >= len(names):
            current.names.extend(names)

    def _is_heading(self, body: str, marker: str | None, current: FoundList) -> bool:
        """Whether a line names a target, and is not one more entry of the list before it."""
        name = strip_markup(body.rstrip(": "))
        if marker is None:
            # Or a line such as "New class: cat".
            name = strip_markup(name.rpartition(": ")[2])
        if len(self.targets.match(name)) != 1 or self.items.match(name):
            return False
        return marker is None or body.endswith(":") or marker != current.marker

    def _read_inline(self, body: str) -> FoundList | None:
        """Return the list in a line such as ``cat: tiger, fox`` or ``cat, tiger, fox``."""
        if end := LABEL_END.search(body):
            label, names = strip_markup(body[: end.start()]), split_names(body[end.end() :])
        else:
            label, *names = split_names(body) or [""]
        target = self.targets.match(label)
        is_list = len(target) == 1 and any(map(self.is_entry, names))
        return FoundList(target[0], label, names) if is_list else None

    def _read_table_row(self, line: str, current: FoundList) -> FoundList | None:
        """Read ``| cat | tiger, fox |``, ``| cat | tiger | fox |`` or ``| 1 | tiger | why |``."""
        first, *others = [strip_markup(cell) for cell in line.strip().strip("|").split("|")]
        if first.isdigit() and others and others[0]:
            current.names.append(others[0])
        elif self._find_target(first) is not None:
            names = [name for cell in others for name in split_names(cell)]
            return FoundList(self._find_target(first), first, names)
        return None

    def is_entry(self, name: str) -> bool:
        """Return whether a name, with or without a remark, is one of the items."""
        return any(self.items.match(form) for form in list_forms(name))


def list_forms(name: str) -> list[str]:
    """Return a name as it is, without its number, and without a remark on it.

    Examples
    --------
    >>> list_forms("3. tiger (striped)")
    ['3. tiger (striped)', 'tiger (striped)', 'tiger']
    """
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
    return len(_cut_remark(text).split()) <= LONGEST_NAME


def strip_markup(text: str) -> str:
    """Return a text without quotes, brackets, asterisks and the like around it."""
    return text.strip().strip(MARKUP).removesuffix(".")


def split_names(text: str) -> list[str]:
    """Return the names of a list in one line."""
    return [name for part in SEPARATOR.split(text) if (name := strip_markup(part))]


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

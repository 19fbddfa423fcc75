"""Answers of language models: one list from an endpoint, or many lists from a chat window.

`parse_answer` is strict: an endpoint can be asked again. `read_answers` takes what a person has
copied from a chat window, in whatever form it came, and reports all that it had to leave out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rankshot.core.errors import RankshotError, format_count, quote_names, short_repr, suggest_name
from rankshot.core.validation import as_names, require_whole_number
from rankshot.sources.answer_text import AnswerText, FoundList, find_json, list_forms
from rankshot.sources.class_names import NameMatcher
from rankshot.sources.questions import PROMPT_END

LONGEST_ANSWER = 1 << 20
"""Characters of an answer: hundreds of lists."""


def parse_answer(text: str, items: Sequence[str], k: int) -> list[str]:
    """Return the one ranking in an answer, with the items in their original spelling.

    Text around the list is ignored. So are differences in case, in the separators of words and
    between singular and plural, unless a name then fits two items.

    Raises
    ------
    RankshotError
        Says what is wrong, in words that can be sent back to the model.

    Examples
    --------
    >>> parse_answer('Surely ["Lion", "sea lion"].', ["lion", "sea_lion", "bus"], k=2)
    ['lion', 'sea_lion']
    >>> parse_answer('["lion", "lion", "lynx"]', ["lion", "sea_lion", "bus"], k=2)
    Traceback (most recent call last):
        ...
    rankshot.core.errors.RankshotError: not among the items: 'lynx'; more than once: 'lion';
    expected 2 names, found 3
    """
    found = [value for _, _, value in find_json(text, "[")]
    if len(found) != 1:
        raise RankshotError(f"expected one complete JSON list, found {len(found)}")
    matcher = NameMatcher(items)
    matches = [matcher.match(name) if type(name) is str else [] for name in found[0]]
    counts = Counter(match[0] for match in matches if len(match) == 1)
    unknown = [name for name, match in zip(found[0], matches, strict=True) if len(match) != 1]
    repeated = [name for name, count in counts.items() if count > 1]
    faults = [f"not among the items: {_quote_values(unknown)}"] if unknown else []
    faults += [f"more than once: {_quote_values(repeated)}"] if repeated else []
    faults += [f"expected {k} names, found {len(found[0])}"] if len(found[0]) != k else []
    if faults:
        raise RankshotError("; ".join(faults))
    return list(counts)


def _quote_values(names: list[Any]) -> str:
    more = f" and {len(names) - 8} more" if len(names) > 8 else ""
    return ", ".join(short_repr(name) for name in names[:8]) + more


@dataclass(frozen=True)
class Answers:
    """The rankings that were found in an answer, and what is wrong with it.

    Attributes
    ----------
    orders : dict of target to list of items
        The usable lists. Each has at least half of the items that were asked for.
    unanswered : tuple of targets
        Those without a usable list: to be asked again.
    notes : tuple of str
        What was left out, or not read literally; and why a list is not usable.

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


def read_answers(text: str, targets: Iterable[Any], items: Iterable[Any], k: int) -> Answers:
    """Read the lists for several targets from what a chat window answered.

    The answer may be a JSON object, JSON lines, or lists under headings, with numbers or bullets,
    in Markdown or plain, with prose around them. Names may differ in case, in the separators of
    their words and in the plural. A name that is not an item, or that fits two, is left out and
    reported, as are repetitions. Of longer lists the first k names count. A list with fewer than
    half of the k names is not usable.

    Parameters
    ----------
    text : str
        What the language model wrote. The prompt may come before it.
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
    target_names, item_names = as_names(targets, "targets"), as_names(items)
    k = require_whole_number("k", k, len(item_names))
    if len(text) > LONGEST_ANSWER:
        raise RankshotError(
            f"an answer of {len(text):,} characters; the most are {LONGEST_ANSWER:,}"
        )
    matcher = NameMatcher(item_names)
    answer = text.rpartition(PROMPT_END)[2]
    lists = AnswerText(NameMatcher(target_names), matcher).find_lists(answer)
    return _collect(lists, matcher, target_names, k)


def _collect(
    lists: list[FoundList], matcher: NameMatcher, targets: tuple[str, ...], k: int
) -> Answers:
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
        notes.append(f"{targets[0]!r}: the list without the name of a class is taken as its own")
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
        hint = suggest_name(next(iter(labels)), unanswered)
        notes.append(f"lists for other names, left out: {quote_names(labels)}{hint}")
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
        notes = [f"{len(usable)} different lists, the last counts", *notes]
    order = list(dict.fromkeys(items))
    if repeated := [item for item, count in Counter(items).items() if count > 1]:
        notes.append(f"more than once, the first counts: {quote_names(repeated)}")
    if not usable:
        known = format_count(len(order), "known name") if order else "no known name"
        return [], [*notes, f"not usable: {known}, {k} were asked for"]
    if len(order) > k:
        notes.append(f"{len(order)} names, the first {k} count")
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

"""The definition of a study: questions, quality rules, and reading them from study.toml."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.text_files import MARK
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.survey import validation

Unshown = Literal["after", "unknown"]
Platform = Literal["none", "prolific", "mturk"]
MOST_COUNTED = 1_000_000
"""The largest count that a study may have, such as its answers per question."""
DEFAULT_PROMPT = "Which of these are most like “{target}”?"
CONSENT_PLACEHOLDER = "[name and e-mail address of the researcher]"
"""The text in a new study's consent that the researcher must replace before it is published."""


@dataclass(frozen=True)
class Question:
    """A target with the items that are shown for it.

    Attributes
    ----------
    target : str
        The name that the items are compared with; it is not one of the items.
    items : tuple of str
        From 2 to 50 names, each once.
    first : tuple of str
        If not empty, this is a gold question: a correct answer begins with these items, in any
        order.

    Examples
    --------
    >>> question = Question("wolf", ("dog", "bus", "rose"), first=("dog",))
    >>> question.is_gold, question.key
    (True, '9d03cf5f8314c6b3')
    """

    target: str
    items: tuple[str, ...]
    first: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validation.check_line("target", self.target, validation.NAME_LENGTH)
        # Lists become tuples, so that a question can be a key of a dictionary.
        object.__setattr__(self, "items", validation.require_names("items", self.items))
        object.__setattr__(self, "first", validation.require_names("first", self.first))
        if not 2 <= len(self.items) <= validation.MOST_ITEMS:
            raise RankshotError(
                f"items has {len(self.items)}: a question shows from 2 to {validation.MOST_ITEMS}"
            )
        if self.target in self.items:
            raise RankshotError(
                f"items contains the target {short_repr(self.target)} itself: remove it"
            )
        for name in self.first:
            if name not in self.items:
                hint = suggest_name(name, self.items)
                raise RankshotError(
                    f"first has {short_repr(name)}, which is not one of its items{hint}"
                )
        if len(self.first) == len(self.items):
            raise RankshotError("first has all items, so that no answer is wrong: name fewer")

    @property
    def is_gold(self) -> bool:
        """Whether the correct answer is known."""
        return bool(self.first)

    @cached_property
    def key(self) -> str:
        """The question's identity: 16 hexadecimal digits, for any order of its items."""
        text = json.dumps([self.target, sorted(self.items), sorted(self.first)])
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class QualityRules:
    """When a participant is flagged. No answer is dropped because of a flag.

    Attributes
    ----------
    seconds : float
        An answer that takes less time than this is fast.
    repeat_distance : float
        The largest allowed distance between repeated answers and the first ones. It is a mean
        normalised Kendall distance: 0 is the same order, 0.5 is chance.
    consensus_distance : float
        The largest allowed distance to the consensus of the others, in the same measure.
    gold_failures : int
        How many wrong answers to gold questions are allowed.
    """

    seconds: float = 3.0
    repeat_distance: float = 0.5
    consensus_distance: float = 0.4
    gold_failures: int = 0

    def __post_init__(self) -> None:
        validation.check_number("[quality] seconds", self.seconds, 0, 3_600)
        validation.check_number("[quality] repeat_distance", self.repeat_distance, 0, 1)
        validation.check_number("[quality] consensus_distance", self.consensus_distance, 0, 1)
        require_whole_number("[quality] gold_failures", self.gold_failures, MOST_COUNTED, least=0)


@dataclass(frozen=True)
class Study:
    """The definition of a survey: the content of study.toml.

    Attributes
    ----------
    title, prompt, consent : str
        The texts that participants read. The prompt contains ``{target}`` in the place of the
        target. Blank lines separate the paragraphs of the consent.
    items : tuple of str
        All items (the seen classes). Every question shows some of them.
    unshown : {"after", "unknown"}
        What is known about the items that a question does not show: they come after the items
        that it shows, or nothing is known.
    questions, gold : tuples of Question
        The questions to be answered; and questions whose answer is known, with any items.
    answers_per_question : int
        How many participants answer each question.
    questions_per_participant : int
        How many different questions a participant answers.
    repeats : int
        How many of them are shown to the participant a second time.
    return_after_minutes : float
        After this idle time, the open questions of a participant are assigned to others.
    platform : {"none", "prolific", "mturk"}
        Where participants come from.
    completion_url : str or None
        The https URL to which participants return at the end.
    quality : QualityRules

    Raises
    ------
    RankshotError
        The message names the wrong key and value as in study.toml.
    """

    title: str
    prompt: str
    consent: str
    items: tuple[str, ...]
    unshown: Unshown
    questions: tuple[Question, ...]
    gold: tuple[Question, ...] = ()
    answers_per_question: int = 20
    questions_per_participant: int = 10
    repeats: int = 1
    return_after_minutes: float = 30
    platform: Platform = "none"
    completion_url: str | None = None
    quality: QualityRules = QualityRules()

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", validation.require_names("[items] names", self.items))
        object.__setattr__(self, "questions", tuple(self.questions))
        object.__setattr__(self, "gold", tuple(self.gold))
        self._check_texts()
        self._check_plan()
        self._check_questions()

    def _check_texts(self) -> None:
        validation.check_line("title", self.title, validation.TITLE_LENGTH)
        validation.check_line("prompt", self.prompt, validation.PROMPT_LENGTH)
        if "{target}" not in self.prompt:
            raise RankshotError(
                f"prompt {short_repr(self.prompt)} does not contain {{target}}: write it in the "
                f'place of the target, as in "{DEFAULT_PROMPT}"'
            )
        validation.check_text("consent", self.consent, validation.CONSENT_LENGTH)
        require_choice("[items] unshown", self.unshown, get_args(Unshown))
        require_choice("[platform] name", self.platform, get_args(Platform))
        if self.completion_url is not None:
            validation.check_url("[platform] completion_url", self.completion_url)
            if self.platform == "mturk":
                raise RankshotError(
                    f"[platform] completion_url is {short_repr(self.completion_url)}: remove it, "
                    "Mechanical Turk has its own form at the end"
                )

    def _check_plan(self) -> None:
        for name, least in (
            ("answers_per_question", 1),
            ("questions_per_participant", 1),
            ("repeats", 0),
        ):
            require_whole_number(f"[plan] {name}", getattr(self, name), MOST_COUNTED, least=least)
        if self.repeats > self.questions_per_participant // 2:
            raise RankshotError(
                f"[plan] repeats is {self.repeats}, more than half of the "
                f"{self.questions_per_participant} questions_per_participant: lower it, so that "
                "other questions come between a question and its repeat"
            )
        validation.check_number(
            "[plan] return_after_minutes", self.return_after_minutes, 0.01, 10_080
        )

    def _check_questions(self) -> None:
        for table, asked in (("questions", self.questions), ("gold", self.gold)):
            if len(asked) > validation.MOST_QUESTIONS:
                most = f"{validation.MOST_QUESTIONS:,}"
                raise RankshotError(f"{len(asked):,} [[{table}]] are too many: at most {most}")
        if not self.questions:
            raise RankshotError("there is no question: add at least one")
        known = set(self.items)
        places: dict[tuple[str, frozenset[str]], str] = {}
        first_places: dict[str, str] = {}
        for place, question in self._places():
            if question.is_gold != place.startswith("[[gold]]"):
                raise RankshotError(
                    f"{place}: a question with a known answer (first) belongs under [[gold]], any "
                    "other question under [[questions]]"
                )
            cell = (question.target, frozenset(question.items))
            if cell in places:
                raise RankshotError(
                    f"{place} shows the same items as {places[cell]}: remove one of the two"
                )
            places[cell] = place
            if question.is_gold:
                continue
            if odd := [name for name in question.items if name not in known]:
                hint = suggest_name(odd[0], self.items)
                raise RankshotError(
                    f"{place}: items has {short_repr(odd[0])}, which is not among [items] "
                    f"names{hint}: add it there, or correct it here"
                )
            other = first_places.setdefault(question.target, place)
            if other != place and self.unshown == "after":
                raise RankshotError(
                    f"{place} shows other items than {other}: so the items that a question does "
                    'not show need not come after. Write unshown = "unknown" under [items]'
                )

    def _places(self) -> Iterator[tuple[str, Question]]:
        """Yield all questions, each with its description for messages."""
        for table, asked in (("questions", self.questions), ("gold", self.gold)):
            for number, question in enumerate(asked, 1):
                yield _describe_question(table, number, question.target), question


def _describe_question(table: str, number: int, target: Any) -> str:
    """Describe a question for a message, by its number from 1 and its target."""
    whose = f" (target {short_repr(target)})" if target is not None else ""
    return f"[[{table}]] number {number}{whose}"


# ---- Reading study.toml

# For each table ("" is the top of the file): its keys, and the field of `Study` for each key.
_STUDY_KEYS = {
    "": {"title": "title", "prompt": "prompt", "consent": "consent"},
    "plan": {
        "answers_per_question": "answers_per_question",
        "questions_per_participant": "questions_per_participant",
        "repeats": "repeats",
        "return_after_minutes": "return_after_minutes",
    },
    "items": {"names": "items", "unshown": "unshown"},
    "platform": {"name": "platform", "completion_url": "completion_url"},
}
_QUALITY_KEYS = ("seconds", "repeat_distance", "consensus_distance", "gold_failures")
_QUESTION_KEYS = {"questions": ("target", "items"), "gold": ("target", "items", "first")}
_REQUIRED = {
    "title": 'title is missing: write one, such as title = "Which animals are alike?"',
    "consent": "consent is missing: write what participants agree to before they start",
    "items": "names of [items] is missing: list all items that questions may show",
    "unshown": "unshown of [items] is missing: write 'after' if the items that a question does "
    "not show are less alike than those that it shows, 'unknown' if nothing is known of them",
    "questions": "there is no [[questions]]: write at least one, with a target and items",
}


def read_study(path: str | Path) -> Study:
    """Read a study from a file such as study.toml.

    Raises
    ------
    RankshotError
        The message names the file, the key and the wrong value, and says what to do.
    FileNotFoundError
        If there is no such file.
    """
    path = Path(path)
    document = _parse_toml(path)
    try:
        given = {"prompt": DEFAULT_PROMPT, **_read_fields(document)}
        given["quality"] = QualityRules(**given["quality"])
        for table in ("questions", "gold"):
            given[table] = tuple(_make_question(place, keys) for place, keys in given[table])
        return Study(**given)
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


def _make_question(place: str, keys: dict[str, Any]) -> Question:
    try:
        question = Question(**keys)
    except RankshotError as error:
        raise RankshotError(f"{place}: {error}") from None
    if "first" in keys and not question.is_gold:
        raise RankshotError(
            f"{place}: first is empty: name the items with which a correct answer begins"
        )
    return question


def _parse_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; an error message names the line."""
    raw = path.read_bytes().removeprefix(MARK)
    try:
        return tomllib.loads(raw.decode())
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise RankshotError(f"{path}:{line}: not UTF-8 text ({error.reason})") from None
    except (ValueError, RecursionError) as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column (\d+)\)", str(error), re.DOTALL)
        if found:
            message = f"{path}:{found[2]}: not TOML: {found[1]} in column {found[3]}"
        elif str(error).endswith("(at end of document)"):
            message = f"{path}:{len(raw.splitlines())}: not TOML: {error}"
        else:
            message = f"{path}: not TOML: {error}"
        raise RankshotError(f"{message}; correct it there") from None


def _read_fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of `Study`; the quality rules are a dictionary of their fields.

    Each question is a pair: its description for messages, and a dictionary of its fields.
    """
    _check_keys(
        "", document, (*_STUDY_KEYS[""], "plan", "items", "platform", "quality", *_QUESTION_KEYS)
    )
    given: dict[str, Any] = {}
    for name, keys in _STUDY_KEYS.items():
        table = _read_table(document, name, tuple(keys)) if name else document
        given |= {field: table[key] for key, field in keys.items() if key in table}
    given |= {name: _read_questions(document, name, keys) for name, keys in _QUESTION_KEYS.items()}
    for field, message in _REQUIRED.items():
        if field not in given or given[field] == []:
            raise RankshotError(message)
    given["quality"] = _read_table(document, "quality", _QUALITY_KEYS)
    return given


def _read_table(document: dict[str, Any], name: str, keys: tuple[str, ...]) -> dict[str, Any]:
    table = document.get(name, {})
    if not isinstance(table, dict):
        raise RankshotError(
            f"{name} is {short_repr(table)}: it must be a table, [{name}] with its keys below"
        )
    _check_keys(f"[{name}]", table, keys)
    return table


def _read_questions(
    document: dict[str, Any], name: str, keys: tuple[str, ...]
) -> list[tuple[str, dict[str, Any]]]:
    tables = document.get(name, [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise RankshotError(f"{name} is {short_repr(tables)}: write [[{name}]] above each question")
    found = []
    for number, table in enumerate(tables, 1):
        place = _describe_question(name, number, table.get("target"))
        _check_keys(place, table, keys)
        if absent := [key for key in keys if key not in table]:
            raise RankshotError(f"{place}: {absent[0]} is missing")
        found.append((place, table))
    return found


def _check_keys(place: str, table: dict[str, Any], known: tuple[str, ...]) -> None:
    for key in table:
        if key not in known:
            where = f"{place}: " if place else ""
            hint = _suggest_table(key) or suggest_name(key, known)
            raise RankshotError(
                f"{where}unknown key {short_repr(key)}{hint}; the keys are {', '.join(known)}"
            )


def _suggest_table(key: str) -> str:
    """Say where a key belongs if it is in the wrong table."""
    if key in _STUDY_KEYS[""]:
        return " (it belongs at the top of the file, above the first [table])"
    homes = [f"[{name}]" for name, keys in _STUDY_KEYS.items() if key in keys and key != "name"]
    homes += ["[quality]"] if key in _QUALITY_KEYS else []
    homes += ["[[gold]]"] if key == "first" else []
    return f" (it belongs under {homes[0]})" if homes else ""

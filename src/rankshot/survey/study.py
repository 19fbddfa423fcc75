"""The definition of a study: its questions, its plan and its quality rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot.core.validation import require_choice, require_whole_number
from rankshot.survey import validation
from rankshot.survey.presentation import (
    Example,
    ExtraQuestion,
    Picture,
    Translation,
    check_texts,
)

Unshown = Literal["after", "unknown"]
Platform = Literal["none", "prolific", "mturk"]
MOST_COUNTED = 1_000_000
"""The largest count that a study may have, such as its answers per question."""
DEFAULT_PROMPT = "Which of these are most like “{target}”?"
CONSENT_PLACEHOLDER = "[name and e-mail address of the researcher]"
"""The text in a new study's consent that the researcher must replace before it is published."""
LANGUAGE = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
"""A language tag, such as de or pt-BR."""


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
    >>> from rankshot.survey import Question
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

    Examples
    --------
    >>> from rankshot.survey import QualityRules
    >>> QualityRules(seconds=2)
    QualityRules(seconds=2, repeat_distance=0.5, consensus_distance=0.4, gold_failures=0)
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
        target. The consent is Markdown with paragraphs, lists, emphasis and links.
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
    spare_answers : int or None
        To how many more participants than planned a question may be assigned while some of them
        have not answered it: places for those who replace others. None is half
        of ``answers_per_question``, at least 2, and 0 without a platform.
    platform : {"none", "prolific", "mturk"}
        Where participants come from.
    completion_url, full_url, refusal_url : str or None
        The https URLs to which participants return: at the end; if no question is left; and if
        they do not agree, withdraw or answer nothing.
    invitations : bool
        Whether only signed links (``rankshot survey invite``) may start.
    allowed : frozenset of str or None
        The ids of the participants who may start; None allows all.
    starts_per_hour : int
        How many participants may start from one address per hour.
    contact : str or None
        Whom participants can ask; on the consent page and on error pages.
    instructions : str or None
        Markdown, shown above the fixed instructions.
    example : Example or None
        The example in the instructions.
    language : str
        The language of the study's own texts, such as ``en``.
    languages : tuple of str
        The languages of the fixed texts that participants may get; empty for all that exist.
    catalogues : tuple of Path
        Files with fixed texts in more languages.
    translations : mapping
        The study's own texts in other languages.
    pictures : mapping
        The pictures of items and targets.
    extra : tuple of ExtraQuestion
        Questions that are asked once, after all others.
    quality : QualityRules

    Raises
    ------
    RankshotError
        The message names the wrong key and value as in study.toml.

    Examples
    --------
    >>> from rankshot.survey import Question, Study
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, "after", (cat,))
    >>> study.answers_per_question, study.quality.seconds
    (20, 3.0)
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
    spare_answers: int | None = None
    platform: Platform = "none"
    completion_url: str | None = None
    full_url: str | None = None
    refusal_url: str | None = None
    invitations: bool = False
    allowed: frozenset[str] | None = None
    starts_per_hour: int = 20
    contact: str | None = None
    instructions: str | None = None
    example: Example | None = None
    language: str = "en"
    languages: tuple[str, ...] = ()
    catalogues: tuple[Path, ...] = ()
    translations: Mapping[str, Translation] = field(default_factory=dict, hash=False)
    pictures: Mapping[str, Picture] = field(default_factory=dict, hash=False)
    extra: tuple[ExtraQuestion, ...] = ()
    quality: QualityRules = QualityRules()

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", validation.require_names("[items] names", self.items))
        object.__setattr__(self, "questions", tuple(self.questions))
        object.__setattr__(self, "gold", tuple(self.gold))
        object.__setattr__(self, "extra", tuple(self.extra))
        if self.spare_answers is None:
            spare = default_spare_answers(self.platform, self.answers_per_question)
            object.__setattr__(self, "spare_answers", spare)
        check_texts(self.title, self.prompt, self.consent, self.instructions)
        self._check_platform()
        self._check_languages()
        self._check_plan()
        self._check_questions()
        self._check_names()

    def _check_platform(self) -> None:
        require_choice("[items] unshown", self.unshown, get_args(Unshown))
        require_choice("[platform] name", self.platform, get_args(Platform))
        for name in ("completion_url", "full_url", "refusal_url"):
            url = getattr(self, name)
            if url is not None:
                validation.check_url(f"[platform] {name}", url)
        if self.completion_url is not None and self.platform == "mturk":
            raise RankshotError(
                f"[platform] completion_url is {short_repr(self.completion_url)}: remove it, "
                "Mechanical Turk has its own form at the end"
            )
        validation.check_truth("[access] invitations", self.invitations)
        if self.invitations and self.platform != "none":
            raise RankshotError(
                f"[access] invitations is true, but participants come from {self.platform}: remove "
                "it, or give the ids that may start with allowed"
            )
        if self.invitations and self.allowed is not None:
            raise RankshotError("[access] has both invitations and allowed: remove one of them")

    def _check_languages(self) -> None:
        if self.contact is not None:
            validation.check_line("contact", self.contact, validation.PROMPT_LENGTH)
        for what, tag in (
            ("[language] of_texts", self.language),
            *(("[language] offered", tag) for tag in self.languages),
            *(("[translations]", tag) for tag in self.translations),
        ):
            if not isinstance(tag, str) or not LANGUAGE.fullmatch(tag):
                raise RankshotError(f"{what} has {short_repr(tag)}: write a language such as de")

    def _check_plan(self) -> None:
        for name, least in (
            ("answers_per_question", 1),
            ("questions_per_participant", 1),
            ("repeats", 0),
            ("spare_answers", 0),
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
        require_whole_number("[access] starts_per_hour", self.starts_per_hour, MOST_COUNTED)

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

    def _check_names(self) -> None:
        """Refuse names of pictures, translations and extra questions that nothing has."""
        known = {*self.items}
        for question in (*self.questions, *self.gold):
            known |= {question.target, *question.items}
        for what, names in (
            ("[[pictures]]", self.pictures),
            *((f"[translations.{tag}] names", t.names) for tag, t in self.translations.items()),
        ):
            if odd := [name for name in names if name not in known]:
                hint = suggest_name(odd[0], sorted(known))
                raise RankshotError(
                    f"{what} has {short_repr(odd[0])}, which is no item and no target{hint}"
                )
        validation.require_names("[[extra]] name", tuple(question.name for question in self.extra))
        if len(self.extra) > validation.MOST_ITEMS:
            raise RankshotError(
                f"{len(self.extra)} [[extra]] are too many: at most {validation.MOST_ITEMS}"
            )
        for tag, translation in self.translations.items():
            try:
                translation.check_names(self.pictures, self.extra)
            except RankshotError as error:
                raise RankshotError(f"[translations.{tag}] {error}") from None

    def _places(self) -> Iterator[tuple[str, Question]]:
        """Yield all questions, each with its description for messages."""
        for table, asked in (("questions", self.questions), ("gold", self.gold)):
            for number, question in enumerate(asked, 1):
                yield describe_table(table, number, question.target), question


def default_spare_answers(platform: str, answers_per_question: int) -> int:
    """Return half of the answers per question, at least 2; 0 without a platform.

    A platform replaces everybody who leaves at once, and half of the people may leave.

    Examples
    --------
    >>> default_spare_answers("prolific", 5), default_spare_answers("none", 5)
    (3, 0)
    """
    return 0 if platform == "none" else max(2, -(-answers_per_question // 2))


def describe_table(table: str, number: int, name: Any) -> str:
    """Describe a table of a list for a message, by its number from 1 and its target or name."""
    what = "target" if table in ("questions", "gold") else "name"
    whose = f" ({what} {short_repr(name)})" if name is not None else ""
    return f"[[{table}]] number {number}{whose}"

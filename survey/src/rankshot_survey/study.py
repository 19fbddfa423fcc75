"""The definition of a study, checked by pydantic: questions, plan, texts and quality rules."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import field, fields, replace
from functools import cached_property, wraps
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from rankshot.core.errors import RankshotError, short_repr, suggest_name
from rankshot_survey.study_values import (
    Count,
    File,
    IdName,
    Limit,
    Line,
    Name,
    Names,
    PositiveCount,
    Rank,
    Share,
    Tag,
    Text,
    Truth,
    Url,
    check_unique,
    read_allowed,
    require,
)

Platform = Literal["none", "prolific", "sona", "cint", "cloudresearch", "mturk", "other"]
# The names under which each platform sends its ids: of the person, of the study, and of this
# participation.
PLATFORM_IDS: dict[str, tuple[str, ...]] = {
    "none": ("participant",),
    "prolific": ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "sona": ("survey_code",),
    "cint": ("RID",),
    "cloudresearch": ("participantId", "projectId", "assignmentId"),
    "mturk": ("workerId", "hitId", "assignmentId"),
    "other": (),
}
# The most items on a page, choices of an extra question, and extra questions.
MOST_ITEMS = 50
# The most items from which those of a page are drawn.
MOST_DRAWN_FROM = 1_000
MOST_QUESTIONS = 10_000
DEFAULT_PROMPT = "Which of these are most like “{target}”?"
# The text in a new study's consent that the researcher must replace before it is published.
# What a new study has until somebody writes it.
CONSENT_PLACEHOLDER = "[name and e-mail address of the researcher]"
TITLE_PLACEHOLDER = "A survey"
# For each table of study.toml ("" is the top of the file): its keys, and the field of each key if
# it has another name. The other tables have the names of their fields.
TABLES: dict[str, dict[str, str]] = {
    table: {key: field or key for key, _, field in (word.partition(":") for word in keys.split())}
    for table, keys in {
        "": "title prompt consent contact instructions debriefing",
        "plan": "answers_per_question questions_per_participant repeats rank return_after_minutes "
        "spare_answers",
        "items": "names:items unshown hide_names",
        "platform": "name:platform ids completion_url full_url refusal_url screening_url",
        "access": "allowed starts_per_hour",
        "language": "of_texts:language offered:languages catalogues",
    }.items()
}
_PLACES = {
    field: f"[{table}] {key}" if table else key
    for table, keys in TABLES.items()
    for key, field in keys.items()
}
# The lists of tables, and the key by which a message names one of them.
LISTED = {"questions": "target", "gold": "target", "images": "name", "extra": "name"}
# What to do if a field is missing.
_ADVICE = {
    "title": 'write one, such as title = "Which animals are similar?"',
    "consent": "write what participants agree to before they start",
    "items": "list all items that questions may show",
    "questions": "write at least one, with a target and items",
}
# How pydantic names the types of TOML, and how we do.
_PLAIN_WORDS = {
    " after validation": "",
    "a valid string": "text in quotes",
    "a valid integer": "a whole number",
    "a valid (number|boolean)": r"a \1",
    "a valid tuple": 'a list, such as ["cat", "dog"]',
    "a (valid )?dictionary.*": "a table with its keys below",
}
_Made = TypeVar("_Made", bound=type)


# ---- Errors


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def validated(cls: _Made) -> _Made:
    """Make a frozen dataclass that checks its values; what is wrong is a `RankshotError`."""
    made = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(cls)
    check, names = made.__init__, [part.name for part in fields(made)]

    @wraps(check)
    def init(self: Any, *values: Any, **named: Any) -> None:
        try:
            check(self, **dict(zip(names, values, strict=False)), **named)
        except ValidationError as error:
            raise RankshotError(describe_error(error)) from None

    made.__init__ = init  # type: ignore[method-assign]
    return made  # type: ignore[return-value]


def describe_error(error: ValidationError, document: Mapping[str, Any] | None = None) -> str:
    """Return what is wrong first, with the key and the value as in study.toml.

    ``document`` is the content of the file, in which the tables of a list have names.
    """
    # Of a misspelt key, the key is named, and not that the right one is missing.
    unexpected = "unexpected_keyword_argument"
    found = min(error.errors(include_url=False), key=lambda one: one["type"] != unexpected)
    keys = list(found["loc"])
    value, kind = short_repr(found["input"]), found["type"]
    is_unknown = kind == unexpected
    inside = keys[:-1] if is_unknown else keys
    where = (
        _describe_place(inside, document)
        if error.title == Study.__name__
        else " ".join(key for key in inside if isinstance(key, str))
    )
    if is_unknown:
        return f"{where}{': ' if where else ''}unknown key {keys[-1]!r}: remove or correct it"
    if kind in ("missing", "missing_argument"):
        advice = f": {_ADVICE[str(keys[-1])]}" if len(keys) == 1 and keys[0] in _ADVICE else ""
        return f"{where} is missing{advice}"
    text = re.sub(r"^[A-Z]\w+ should", "it must", found["msg"].removeprefix("Value error, "))
    for words, plain in _PLAIN_WORDS.items():
        text = re.sub(words, plain, text)
    if kind != "value_error":
        return f"{where} is {value}: {text[:1].lower()}{text[1:]}"
    if text.startswith("it ") and keys:
        return f"{where} is {value}: {text}"
    return f"{where}: {text}" if where else text


def _describe_place(keys: list[int | str], document: Mapping[str, Any] | None) -> str:
    """Return where a value is in study.toml."""
    name, *rest = keys or [""]
    if name in LISTED and rest:
        tables, number = (document or {}).get(name, ()), int(rest[0])
        own = tables[number].get(LISTED[str(name)]) if number < len(tables) else None
        place = describe_table(str(name), number + 1, own)
        return f"{place}: {rest[1]}" if len(rest) > 1 else place
    if name in _PLACES or not rest:
        listed = f"[[{name}]]" if name in LISTED else f"[{name}]"
        return _PLACES.get(str(name), listed) if name else ""
    last = f" {rest.pop()}" if len(rest) > 1 or name == "quality" else ""
    return f"[{'.'.join(map(str, [name, *rest]))}]{last}"


def describe_table(table: str, number: int, name: object) -> str:
    """Describe a table of a list for a message, by its number from 1 and its target or name."""
    whose = f" ({LISTED[table]} {short_repr(name)})" if name is not None else ""
    return f"[[{table}]] number {number}{whose}"


# ---- Parts of a study


@validated
class Question:
    """A target with the items that are shown for it.

    Attributes
    ----------
    target : str
        The name that the items are compared with; it is not one of the items.
    items : tuple of str
        From 2 to 50 names, each once; up to 1,000 with ``show``.
    first : tuple of str
        If not empty, this is a gold question: a correct answer begins with these items, in any
        order.
    show : int
        If not 0, each participant gets sets of this many of the items, which are drawn so that all
        items, and all pairs of items, are shown about equally often.
    condition : str
        If not empty, only participants in this condition get the question.
    part : int
        Which of its sets this is, from 1; 0 for the question as a whole. `Study.asked` has the
        parts.

    Examples
    --------
    >>> from rankshot_survey import Question
    >>> question = Question("wolf", ("dog", "bus", "rose"), first=("dog",))
    >>> question.is_gold, question.key
    (True, '9d03cf5f8314c6b3')
    """

    target: Name
    items: Annotated[Names, Field(min_length=2, max_length=MOST_DRAWN_FROM)]
    first: Names = ()
    show: Count = 0
    condition: str = ""
    part: Count = 0

    @model_validator(mode="after")
    def _check(self) -> Question:
        own = f"items contains the target {short_repr(self.target)} itself: remove it"
        require(self.target not in self.items, own)
        _require_known("first", self.first, self.items, "one of its items")
        is_open = len(self.first) < len(self.items)
        require(is_open, "first has all items, so that no answer is wrong: name fewer")
        n, most = len(self.items), min(MOST_ITEMS, len(self.items) - 1)
        is_drawn = 2 <= self.show <= most and not self.first
        require(
            is_drawn if self.show else n <= MOST_ITEMS,
            f"show is {self.show}, of {n} items: a page has at most {MOST_ITEMS}. For more items, "
            "set show to 2 or more, and less than all (not in a gold question); remove show to "
            "show all of them",
        )
        return self

    @property
    def is_gold(self) -> bool:
        """Whether the correct answer is known."""
        return bool(self.first)

    @cached_property
    def key(self) -> str:
        """The question's identity: 16 hexadecimal digits, for any order of its items."""
        return self._hash(self.part)

    @cached_property
    def whole_key(self) -> str:
        """The identity of the question of which this is a part; otherwise, the key."""
        return self._hash(0)

    def _hash(self, part: int) -> str:
        parts = [self.target, sorted(self.items), sorted(self.first)]
        drawn = [self.show, part, self.condition]
        text = json.dumps([*parts, *drawn] if any(drawn) else parts)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def n_parts(self) -> int:
        """How many sets a participant can get: as many as show each item twice, or one."""
        return -(-2 * len(self.items) // self.show) if self.show else 1


@validated
class QualityRules:
    """The rules by which participants are flagged. No answer is dropped because of a flag.

    Attributes
    ----------
    seconds : float
        An answer that takes less time than this is fast; for more than 10 items, the time grows
        with their number.
    repeat_distance : float
        The largest allowed distance between repeated answers and the first ones. It is a mean
        normalised Kendall distance: 0 is the same order, 0.5 is chance.
    consensus_distance : float
        The largest allowed distance to the consensus of the others, in the same measure.
    gold_failures : int
        How many wrong answers to gold questions are allowed.

    Examples
    --------
    >>> from rankshot_survey import QualityRules
    >>> QualityRules(seconds=2)
    QualityRules(seconds=2.0, repeat_distance=0.5, consensus_distance=0.4, gold_failures=0)
    """

    seconds: Annotated[float, Field(strict=True, ge=0, le=3_600)] = 3.0
    repeat_distance: Share = 0.5
    consensus_distance: Share = 0.4
    gold_failures: Count = 0


@validated
class ItemImage:
    """The image of an item or a target.

    Attributes
    ----------
    name : str
        The item or the target.
    file : Path
        A JPEG, PNG or WebP file.
    alt : str
        What it shows, for people who cannot see it.

    Examples
    --------
    >>> from rankshot_survey import ItemImage
    >>> ItemImage("fox", "fox.jpg", alt="a red fox in the snow").file.name
    'fox.jpg'
    """

    name: Name
    file: File
    alt: Line


@validated
class ExtraQuestion:
    """A question that is asked once, after all others.

    Attributes
    ----------
    name : str
        The name of the answer in the data.
    text : str
        What participants read.
    type : {"choice", "number", "text"}
    choices : tuple of str
        For a choice: from 2 to 50 texts.
    least, most : float
        The smallest and the largest number.
    required : bool
        Whether participants must answer.
    accepted : tuple of str
        If not empty, this is a screening question: it is asked before the study, and only those
        who choose one of these may start.

    Examples
    --------
    >>> from rankshot_survey import ExtraQuestion
    >>> ExtraQuestion("age", "How old are you?", "number", least=18, most=120).is_whole
    True
    """

    name: Name
    text: Line
    type: Literal["choice", "number", "text"]
    choices: Annotated[Names, Field(max_length=MOST_ITEMS)] = ()
    least: Limit = -math.inf
    most: Limit = math.inf
    required: Truth = False
    accepted: Names = ()

    @model_validator(mode="after")
    def _check(self) -> ExtraQuestion:
        n = len(self.choices)
        _require_known("accepted", self.accepted, self.choices, "one of its choices")
        is_open = not self.accepted or len(self.accepted) < n
        require(is_open, "accepted has all choices, so that everyone may start: name fewer")
        require(
            n > 1 if self.type == "choice" else n == 0,
            f'type is "{self.type}", with {n} choices: a choice has from 2 to {MOST_ITEMS}, '
            "another type has none",
        )
        require(
            self.type == "number" or (self.least, self.most) == (-math.inf, math.inf),
            f'least and most need type = "number", not "{self.type}"',
        )
        order = f"least is {self.least:g}, more than most, which is {self.most:g}"
        require(self.least <= self.most, order)
        return self

    @property
    def is_required(self) -> bool:
        """Whether participants must answer; always true for a screening question."""
        return self.required or bool(self.accepted)

    @property
    def is_whole(self) -> bool:
        """Whether a number must be whole: its limits are written without a decimal point."""
        return isinstance(self.least, int) or isinstance(self.most, int)


@validated
class ExtraTranslation:
    """An extra question in another language.

    Attributes
    ----------
    text : str
        What participants read.
    choices : tuple of str
        Its choices, in the order of the study. The study's own choices are stored.

    Examples
    --------
    >>> from rankshot_survey import ExtraTranslation
    >>> ExtraTranslation("Haben Sie ein Haustier?", choices=("ja", "nein"))
    ExtraTranslation(text='Haben Sie ein Haustier?', choices=('ja', 'nein'))
    """

    text: Line
    choices: Names = ()


@validated
class Translation:
    """The texts of a study in another language; None means: as in the study.

    Attributes
    ----------
    title, prompt, consent, contact, instructions, debriefing : str or None
    names : mapping
        The names of items and targets as they are shown.
    alts : mapping
        What the images of items and targets show, by the same names.
    extra : mapping
        The extra questions, by name.
    conditions : mapping
        The prompts of the conditions.

    Examples
    --------
    >>> from rankshot_survey import Translation
    >>> Translation(title="Was ist ähnlich?", names={"fox": "Fuchs"}).names["fox"]
    'Fuchs'
    """

    title: Name | None = None
    prompt: Line | None = None
    consent: Text | None = None
    contact: Line | None = None
    instructions: Text | None = None
    debriefing: Text | None = None
    names: dict[str, Name] = field(default_factory=dict, hash=False)
    alts: dict[str, Line] = field(default_factory=dict, hash=False)
    extra: dict[str, ExtraTranslation] = field(default_factory=dict, hash=False)
    conditions: dict[str, Line] = field(default_factory=dict, hash=False)


# ---- The study


@validated
class Study:
    """The definition of a survey: the content of study.toml.

    Attributes
    ----------
    title, prompt, consent : str
        What participants read. The prompt contains ``{target}``, which is optional with
        ``hide_names`` and if all questions have the same target; the consent is Markdown.
    items : tuple of str
        All items (the seen classes). Every question shows some of them.
    questions : tuple of Question
        The questions to be answered.
    unshown : {"after", "unknown"}, optional
        Whether items that a question does not show come after those that it shows, or nothing is
        known about them. Required unless every question shows all items.
    hide_names : bool
        Whether to hide the names of items and targets that have an image. Screen readers read the
        description of the image.
    gold : tuple of Question
        Questions whose answer is known, with any items.
    answers_per_question, questions_per_participant, repeats : int
        How many participants answer each question, or each part of it, in each condition; how many
        of these a participant answers; and how many of them a second time, at most half.
    rank : {"any", "all", "best-worst"} or int
        How many items participants rank: as many as they like, all, or exactly this many; or they
        choose the first and the last item.
    conditions : mapping
        The conditions of an experiment, each with its prompt. Each participant is in one of them,
        and the same number of answers is collected in each.
    return_after_minutes : float
        After this idle time, the open questions of a participant are assigned to others; after a
        sixth of it, if no question has been answered yet.
    spare_answers : int or None
        How many more participants than planned may be assigned a question while some of them
        have not answered it. None means half of ``answers_per_question``, but at least 2; without a
        platform, it means 0.
    platform : {"none", "prolific", "sona", "cint", "cloudresearch", "mturk", "other"}
        Where participants come from.
    ids : tuple of str
        The names of up to three ids in the address of the survey: of the person, of the study, and
        of this participation. By default, those of the platform.
    completion_url, full_url, refusal_url, screening_url : str or None
        The https URLs to which participants return: at the end; if no question is left; if they
        do not agree, withdraw or answer nothing; and if they do not pass the screening. An id
        in braces, such as ``{survey_code}``, is replaced by that of the participant, and ``{code}``
        by the completion code.
    allowed : frozenset of str or None
        The ids of the participants who may start; None allows all.
    starts_per_hour : int
        How many participants may start from one address per hour.
    contact, instructions, debriefing : str or None
        Whom participants can ask; and Markdown that is shown above the fixed instructions, and on
        the last page.
    language : str
        The language of the study's own texts, such as ``en``.
    languages : tuple of str
        The languages of the fixed texts that participants may get; empty for all that exist.
    catalogues : tuple of Path
        Files with fixed texts in more languages.
    translations : mapping
        The study's own texts in other languages.
    images : tuple of ItemImage
    extra : tuple of ExtraQuestion
    quality : QualityRules

    Examples
    --------
    >>> from rankshot_survey import Question, Study
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, (cat,))
    >>> study.answers_per_question, study.quality.seconds
    (20, 3.0)
    """

    title: Name
    prompt: Line
    consent: Text
    items: Names
    questions: Annotated[tuple[Question, ...], Field(min_length=1, max_length=MOST_QUESTIONS)]
    unshown: Literal["after", "unknown"] | None = None
    gold: Annotated[tuple[Question, ...], Field(max_length=MOST_QUESTIONS)] = ()
    answers_per_question: PositiveCount = 20
    questions_per_participant: PositiveCount = 10
    repeats: Count = 1
    rank: Rank = "any"
    return_after_minutes: Annotated[float, Field(strict=True, ge=0.01, le=10_080)] = 30
    spare_answers: Count | None = None
    platform: Platform = "none"
    ids: Annotated[tuple[IdName, ...], AfterValidator(check_unique), Field(max_length=3)] = ()
    completion_url: Url | None = None
    full_url: Url | None = None
    refusal_url: Url | None = None
    screening_url: Url | None = None
    allowed: Annotated[frozenset[str] | None, BeforeValidator(read_allowed)] = None
    starts_per_hour: PositiveCount = 20
    contact: Line | None = None
    instructions: Text | None = None
    debriefing: Text | None = None
    hide_names: Truth = False
    language: Tag = "en"
    languages: tuple[Tag, ...] = ()
    catalogues: tuple[File, ...] = ()
    translations: dict[Tag, Translation] = field(default_factory=dict, hash=False)
    images: tuple[ItemImage, ...] = ()
    extra: Annotated[tuple[ExtraQuestion, ...], Field(max_length=MOST_ITEMS)] = ()
    conditions: dict[Name, Line] = field(default_factory=dict, hash=False)
    quality: QualityRules = QualityRules()

    @cached_property
    def asked(self) -> tuple[Question, ...]:
        """What may be assigned: the parts of all questions, in each condition."""
        return tuple(part for q in self.questions for part in self._split(q))

    @cached_property
    def asked_gold(self) -> tuple[Question, ...]:
        """The gold questions, in each condition."""
        return tuple(part for q in self.gold for part in self._split(q))

    def _split(self, question: Question) -> Iterator[Question]:
        """Yield each part of a question in each condition."""
        own = question.condition
        for condition in [own] if own else self.conditions or [""]:
            for part in range(1, question.n_parts + 1) if question.show else [0]:
                is_same = (condition, part) == (own, question.part)
                yield question if is_same else replace(question, condition=condition, part=part)

    @property
    def n_asked(self) -> int:
        """The largest number of different questions of a participant, without gold questions."""
        most = max(Counter(question.condition for question in self.asked).values())
        return min(self.questions_per_participant, most)

    @property
    def id_names(self) -> tuple[str, ...]:
        """The names of the ids in the address of the survey, that of the person first."""
        return self.ids or PLATFORM_IDS[self.platform]

    @property
    def n_repeated(self) -> int:
        """The largest number of questions that a participant answers a second time."""
        return min(self.repeats, self.n_asked // 2)

    @property
    def n_spare(self) -> int:
        """How many more participants than planned may get a question.

        A platform replaces everybody who leaves at once, and half of the people may leave.
        """
        if self.spare_answers is not None:
            return self.spare_answers
        return 0 if self.platform == "none" else max(2, -(-self.answers_per_question // 2))

    @cached_property
    def screening(self) -> tuple[ExtraQuestion, ...]:
        """The extra questions that decide who may start."""
        return tuple(question for question in self.extra if question.accepted)

    @cached_property
    def last_questions(self) -> tuple[ExtraQuestion, ...]:
        """The extra questions that are asked after all others."""
        return tuple(question for question in self.extra if not question.accepted)

    @cached_property
    def names(self) -> frozenset[str]:
        """All items and targets."""
        asked = (*self.questions, *self.gold)
        return frozenset(self.items).union(*((q.target, *q.items) for q in asked))

    @model_validator(mode="after")
    def _check(self) -> Study:
        require(
            # One repeat, the default, has no effect if there is one question.
            self.repeats <= max(1, self.questions_per_participant // 2),
            f"[plan] repeats is {self.repeats}, more than half of the "
            f"{self.questions_per_participant} questions_per_participant: lower it, so that "
            "other questions come between a question and its repeat",
        )
        fewest = min(q.show or len(q.items) for q in (*self.questions, *self.gold))
        n_ranked = self.rank if isinstance(self.rank, int) else 1
        require(
            n_ranked <= fewest,
            f"[plan] rank is {self.rank}, but a question shows {fewest} items: lower it",
        )
        prompts: dict[str, str | None] = {
            f"[translations.{tag}] prompt": t.prompt for tag, t in self.translations.items()
        }
        prompts |= {f"[conditions] {name}": prompt for name, prompt in self.conditions.items()}
        is_optional = self.hide_names or len({q.target for q in (*self.questions, *self.gold)}) == 1
        for place, prompt in {"prompt": self.prompt, **prompts}.items():
            require(
                prompt is None or is_optional or "{target}" in prompt,
                f"{place} is {short_repr(prompt)}: it does not contain {{target}}, but there are "
                f'several targets: write it in the place of the target, as in "{DEFAULT_PROMPT}"',
            )
        self._check_questions()
        self._check_names()
        self._check_ids()
        return self

    def _check_ids(self) -> None:
        require(self.id_names, '[platform] ids is missing: write the names, such as ["person"]')
        taken = {"form", "language", "lang", "code"} & set(self.id_names)
        require(not taken, f"[platform] ids has {min(taken, default='')!r}, which the survey uses")
        for url in ("completion_url", "full_url", "refusal_url", "screening_url"):
            names = re.findall(r"\{(.*?)\}", getattr(self, url) or "")
            known = (*self.id_names, "code")
            _require_known(f"[platform] {url}", names, known, "one of [platform] ids, or code")

    def _check_questions(self) -> None:
        places: dict[tuple[str, frozenset[str], str], str] = {}
        first_places: dict[tuple[str, str], str] = {}
        known = frozenset(self.items)
        for place, question in self._places():
            require(
                question.is_gold == place.startswith("[[gold]]"),
                f"{place}: a question with a known answer (first) belongs under [[gold]], any "
                "other question under [[questions]]",
            )
            require(not question.part, f"{place}: part cannot be set in the file: remove it")
            if question.condition:
                _require_known(place, [question.condition], self.conditions, "under [conditions]")
            cell = (question.target, frozenset(question.items), question.condition)
            same = places.setdefault(cell, place)
            require(same == place, f"{place} shows the same items as {same}: remove one of them")
            if question.is_gold:
                continue
            _require_known(f"{place}: items", question.items, known, "among [items] names")
            other = first_places.setdefault((question.target, question.condition), place)
            require(
                (other == place and not question.show) or self.unshown == "unknown",
                f"{place} shows different items "
                f"{'each time' if other == place else f'from {other}'}: so items that a question "
                "does not show may belong before those that it shows. Write "
                'unshown = "unknown" under [items]',
            )
        empty = self.conditions.keys() - {question.condition for question in self.asked}
        require(not empty, f"[conditions] {min(empty, default='')} has no question: add one")
        require(
            self.unshown or all(known <= set(question.items) for question in self.questions),
            "[items] unshown is missing: write 'after' if the items that a question does not show "
            "belong after those that it shows, 'unknown' if nothing is known about them",
        )

    def _places(self) -> Iterator[tuple[str, Question]]:
        """Yield all questions, each with its description for messages."""
        for table, asked in (("questions", self.questions), ("gold", self.gold)):
            for number, question in enumerate(asked, 1):
                yield describe_table(table, number, question.target), question

    def _check_names(self) -> None:
        """Refuse names of images, translations and extra questions that nothing has."""
        images = tuple(image.name for image in self.images)
        extra = {question.name: question for question in self.extra}
        double = "has a name more than once: remove the others"
        require(len(set(images)) == len(images), f"[[images]] {double}")
        require(len(extra) == len(self.extra), f"[[extra]] {double}")
        _require_known("[[images]]", images, self.names, "an item or a target")
        require(images or not self.hide_names, "[items] hide_names needs [[images]]: add some")
        for tag, texts in self.translations.items():
            place = f"[translations.{tag}]"
            _require_known(f"{place} names", texts.names, self.names, "an item or a target")
            _require_known(f"{place} alts", texts.alts, images, "the name of an image")
            _require_known(f"{place} extra", texts.extra, extra, "the name of an extra question")
            _require_known(f"{place} conditions", texts.conditions, self.conditions, "a condition")
            for name, translated in texts.extra.items():
                n, n_own = len(translated.choices), len(extra[name].choices)
                require(
                    n == n_own,
                    f"{place} extra {short_repr(name)} has {n} choices, but the study has {n_own}: "
                    "translate all of them, in the same order",
                )


def _require_known(place: str, names: Iterable[str], known: Collection[str], what: str) -> None:
    odd = next((name for name in names if name not in known), None)
    hint = "" if odd is None else suggest_name(odd, sorted(known))
    require(odd is None, f"{place} has {short_repr(odd)}, which is not {what}{hint}")

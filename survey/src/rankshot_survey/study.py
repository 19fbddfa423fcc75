"""The definition of a study, checked by pydantic: questions, plan, texts and quality rules."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import field, fields, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, dataclass_transform

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic.dataclasses import dataclass

from rankshot.core.errors import NO_VALUE, InputError, suggest_name

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
# The languages of the fixed texts.
TAGS = ("ar", "de", "en", "es")
# The most items on a page.
MOST_ITEMS = 50
# The most items from which those of a page are drawn.
MOST_DRAWN_FROM = 1_000
MOST_QUESTIONS = 10_000
DEFAULT_PROMPT = "Which of these are most like “{target}”?"
# What a new study has until somebody writes it.
CONSENT_PLACEHOLDER = "[name and e-mail address of the researcher]"
TITLE_PLACEHOLDER = "A survey"
# The largest count that a study may have, such as its answers per question.
MOST_COUNTED = 1_000_000
# A name is one line of a page.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNPRINTABLE_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_URL = re.compile(r"https://[^/?#@\s\\\"'<>]+([/?#][^\s\\\"'<>]*)?")
_Made = TypeVar("_Made", bound=type)


# ---- Values, each with its check


def _hold(holds: object, rule: str) -> None:
    """Refuse a value by a rule that it breaks."""
    if not holds:
        raise ValueError(rule)


def _check_line(text: str) -> str:
    _hold(text == text.strip(), "must not begin or end with a space")
    _hold(not _UNPRINTABLE.search(text), "must not have control characters")
    return text


def _check_text(text: str) -> str:
    _hold(text.strip(), "must not be empty")
    _hold(not _UNPRINTABLE_IN_TEXT.search(text), "must not have control characters")
    return text


def _check_url(text: str) -> str:
    _hold(_URL.fullmatch(text), "must be a URL that begins with https:// and a host")
    return text


def _check_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    double = next((name for name, n in Counter(names).items() if n > 1), None)
    _hold(double is None, f"must not have {double!r} more than once")
    return names


def _check_rank(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    _hold(is_number or value in ("any", "all"), 'must be "any", "all" or a number from 1')
    return value


def _limited_line(most: int) -> Any:
    return StringConstraints(strict=True, min_length=1, max_length=most)


Name = Annotated[str, _limited_line(200), AfterValidator(_check_line)]
Line = Annotated[str, _limited_line(500), AfterValidator(_check_line)]
Text = Annotated[str, Field(strict=True, max_length=20_000), AfterValidator(_check_text)]
Url = Annotated[str, Field(strict=True, max_length=2_000), AfterValidator(_check_url)]
Names = Annotated[tuple[Name, ...], AfterValidator(_check_unique)]
Tag = Annotated[str, StringConstraints(strict=True, pattern="^[a-z]{2,3}(-[A-Za-z0-9]{2,8})*$")]
IdName = Annotated[str, StringConstraints(strict=True, pattern="^[A-Za-z_][A-Za-z0-9_]{0,49}$")]
IdNames = Annotated[tuple[IdName, ...], AfterValidator(_check_unique), Field(max_length=3)]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST_COUNTED)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=MOST_COUNTED)]
Rank = Annotated[Any, AfterValidator(_check_rank)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Truth = Annotated[bool, Field(strict=True)]


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def _validated(cls: _Made) -> _Made:
    """Make a frozen dataclass that checks its values; what is wrong is an `InputError`."""
    made = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(cls)
    check, names = made.__init__, [part.name for part in fields(made)]

    @wraps(check)
    def init(self: Any, *values: Any, **named: Any) -> None:
        try:
            check(self, **dict(zip(names, values, strict=False)), **named)
        except ValidationError as error:
            raise _find_problem(error) from None

    made.__init__ = init  # type: ignore[method-assign]
    return made  # type: ignore[return-value]


def _find_problem(error: ValidationError) -> InputError:
    """First problem that pydantic has found, with the field as a file writes it."""
    # Of a misspelt key, the key is named, and not that the right one is missing.
    unexpected = "unexpected_keyword_argument"
    first = min(error.errors(include_url=False), key=lambda one: one["type"] != unexpected)
    kind, keys, where = first["type"], list(first["loc"]), ""
    if len(keys) > 1 and isinstance(keys[1], int) and keys[0] in ("questions", "gold", "images"):
        where, keys = _describe_table(str(keys[0]), keys[1]), keys[2:]
    names = [key if isinstance(key, str) else f"[{key}]" for key in keys]
    name = ".".join(names).replace(".[", "[")
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        parameter = name or inner.parameter
        return InputError(parameter, inner.value, inner.rule, where or inner.where, inner.hint)
    if kind in (unexpected, "missing", "missing_argument"):
        rule = "is not a key that exists" if kind == unexpected else "is missing"
        return InputError(name, NO_VALUE, rule, where)
    rule = re.sub(r"^[A-Z]\w+ should", "must", first["msg"].removeprefix("Value error, "))
    return InputError(name, first["input"], rule, where)


def _describe_table(table: str, index: int) -> str:
    """Describe a table of a list: they are counted from 1."""
    return f"[[{table}]] number {index + 1}"


# ---- Parts of a study


@_validated
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
    part: Count = 0

    @model_validator(mode="after")
    def _check(self) -> Question:
        _require(self.target not in self.items, "items", self.target, "is the target itself")
        _require_known("first", self.first, self.items, "one of its items")
        all_first = len(self.first) < len(self.items)
        _require(all_first, "first", self.first, "must leave out an item: no answer would be wrong")
        n, most = len(self.items), min(MOST_ITEMS, len(self.items) - 1)
        if self.show:
            is_drawn = self.show <= most and self.show > 1 and not self.first
            rule = f"must be from 2 to {most}, in a question without a known answer"
            _require(is_drawn, "show", self.show, rule)
        else:
            rule = f"must be set: a page has at most {MOST_ITEMS} of the {n} items"
            _require(n <= MOST_ITEMS, "show", NO_VALUE, rule)
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
        text = json.dumps([*parts, self.show, part] if self.show else parts)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @cached_property
    def n_parts(self) -> int:
        """How many sets a participant can get: as many as show each item twice, or one."""
        return -(-2 * len(self.items) // self.show) if self.show else 1


@_validated
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


@_validated
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
    file: Path
    alt: Line


@_validated
class Translation:
    """The texts of a study in another language; None means: as in the study.

    Attributes
    ----------
    title, prompt, consent, contact, instructions, debriefing : str or None
    names : mapping
        The names of items and targets as they are shown.
    alts : mapping
        What the images of items and targets show, by the same names.

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
    names: dict[str, Name] = field(default_factory=dict)
    alts: dict[str, Line] = field(default_factory=dict)


# ---- The study


@_validated
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
        How many participants answer each question, or each part of it; how many of these a
        participant answers; and how many of them a second time, at most half.
    rank : {"any", "all"} or int
        How many items participants rank: as many as they like, all, or exactly this many.
    return_after_minutes : float
        After this idle time, the open questions of a participant are assigned to others.
    spare_answers : int or None
        How many more participants than planned may be assigned a question while some of them
        have not answered it. None means half of ``answers_per_question``, but at least 2; without a
        platform, it means 0.
    platform : {"none", "prolific", "sona", "cint", "cloudresearch", "mturk", "other"}
        Where participants come from.
    ids : tuple of str
        The names of up to three ids in the address of the survey: of the person, of the study, and
        of this participation. By default, those of the platform.
    completion_url, full_url, refusal_url : str or None
        The https URLs to which participants return: at the end; if no question is left; and if
        they do not agree, withdraw or answer nothing. An id in braces, such as ``{survey_code}``,
        is replaced by that of the participant, and ``{code}`` by the completion code.
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
    translations : mapping
        The study's own texts in other languages.
    images : tuple of ItemImage
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
    platform: str = "none"
    ids: IdNames = ()
    completion_url: Url | None = None
    full_url: Url | None = None
    refusal_url: Url | None = None
    allowed: frozenset[str] | None = None
    starts_per_hour: PositiveCount = 20
    contact: Line | None = None
    instructions: Text | None = None
    debriefing: Text | None = None
    hide_names: Truth = False
    language: Tag = "en"
    languages: tuple[Tag, ...] = ()
    translations: dict[Tag, Translation] = field(default_factory=dict)
    images: tuple[ItemImage, ...] = ()
    quality: QualityRules = QualityRules()

    @cached_property
    def asked(self) -> tuple[Question, ...]:
        """What may be assigned: the parts of all questions."""
        return tuple(
            replace(question, part=part) if part else question
            for question in self.questions
            for part in (range(1, question.n_parts + 1) if question.show else [0])
        )

    @property
    def n_asked(self) -> int:
        """The largest number of different questions of a participant, without gold questions."""
        return min(self.questions_per_participant, len(self.asked))

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

    @model_validator(mode="after")
    def _check(self) -> Study:
        # One repeat, the default, has no effect if there is one question.
        most = max(1, self.questions_per_participant // 2)
        rule = f"must be at most {most}, half of questions_per_participant"
        _require(self.repeats <= most, "repeats", self.repeats, rule)
        every = (*self.questions, *self.gold)
        fewest = min(q.show or len(q.items) for q in every)
        n_ranked = self.rank if isinstance(self.rank, int) else 1
        rule = f"must be at most {fewest}, the items of the smallest question"
        _require(n_ranked <= fewest, "rank", self.rank, rule)
        prompts = {f"translations.{tag}.prompt": t.prompt for tag, t in self.translations.items()}
        is_optional = self.hide_names or len({q.target for q in every}) == 1
        for key, prompt in {"prompt": self.prompt, **prompts}.items():
            holds = prompt is None or is_optional or "{target}" in prompt
            _require(holds, key, prompt, "must contain {target}, since there are several targets")
        self._check_questions()
        self._check_names()
        self._check_ids()
        return self

    def _check_ids(self) -> None:
        _require_known("platform", [self.platform], PLATFORM_IDS, "a platform")
        _require(self.id_names, "ids", NO_VALUE, 'is missing, with the platform "other"')
        taken = {"form", "language", "lang", "code"} & set(self.id_names)
        _require(not taken, "ids", min(taken, default=""), "is a name that the survey uses")
        for url in ("completion_url", "full_url", "refusal_url"):
            names = re.findall(r"\{(.*?)\}", getattr(self, url) or "")
            _require_known(url, names, (*self.id_names, "code"), "one of the ids, or code")

    def _check_questions(self) -> None:
        places: dict[tuple[str, frozenset[str]], str] = {}
        targets: set[str] = set()
        items = set(self.items)
        for place, is_gold, question in self._places():
            rule = "is missing" if is_gold else "belongs to a question under [[gold]]"
            _require(question.is_gold == is_gold, "first", question.first or NO_VALUE, rule, place)
            same = places.setdefault((question.target, frozenset(question.items)), place)
            _require(same == place, "items", question.items, f"are the same as in {same}", place)
            if is_gold:
                continue
            _require_known("items", question.items, items, "one of items.names", place)
            # Items that a question does not show may belong before those that it shows.
            is_one = question.target not in targets and not question.show
            rule = 'must be "unknown", since questions show different items'
            _require(is_one or self.unshown == "unknown", "unshown", self.unshown, rule, place)
            targets.add(question.target)
        is_needless = all(items <= set(question.items) for question in self.questions)
        rule = 'must be "after" or "unknown", since a question does not show all items'
        _require(self.unshown or is_needless, "unshown", NO_VALUE, rule)

    def _places(self) -> Iterator[tuple[str, bool, Question]]:
        """Yield all questions, each with its place in the file and whether it is a gold one."""
        for table, asked in (("questions", self.questions), ("gold", self.gold)):
            for index, question in enumerate(asked):
                yield _describe_table(table, index), table == "gold", question

    def _check_names(self) -> None:
        """Refuse names of images and translations that nothing has."""
        names = {name for _, _, q in self._places() for name in (q.target, *q.items)} | {
            *self.items
        }
        _require_known("languages", self.languages, TAGS, f"one of {', '.join(TAGS)}")
        images = [image.name for image in self.images]
        double = next((name for name in images if images.count(name) > 1), None)
        _require(double is None, "images", double, "is a name that two of them have")
        _require_known("images", images, names, "an item or a target")
        _require(images or not self.hide_names, "hide_names", True, "needs [[images]]")  # noqa: FBT003
        for tag, texts in self.translations.items():
            place = f"translations.{tag}"
            _require_known(f"{place}.names", texts.names, names, "an item or a target")
            _require_known(f"{place}.alts", texts.alts, images, "the name of an image")


def _require(holds: object, key: str, value: object, rule: str, where: str = "") -> None:
    if not holds:
        raise InputError(key, value, rule, where)


def _require_known(
    key: str, names: Iterable[str], known: Collection[str], what: str, where: str = ""
) -> None:
    odd = next((name for name in names if name not in known), None)
    if odd is not None:
        hint = suggest_name(odd, sorted(known)).strip(" ()")
        raise InputError(key, odd, f"is not {what}", where, hint)

"""What participants see beside the questions: pictures, translations, an example, and more."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

from rankshot.core.errors import RankshotError, quote_names, short_repr, suggest_name
from rankshot.core.validation import require_choice
from rankshot.survey import validation

AnswerType = Literal["choice", "number", "text"]
MOST_CHOICES = 50
PICTURE_ENDINGS = (".jpg", ".jpeg", ".png", ".webp")


@dataclass(frozen=True)
class Picture:
    """The picture of an item or a target.

    Attributes
    ----------
    path : Path
        A JPEG, PNG or WebP file.
    alt : str
        What it shows, for people who do not see it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from rankshot.survey import Picture
    >>> picture = Picture(Path("fox.jpg"), alt="a red fox in the snow")
    >>> picture.path.name, picture.alt
    ('fox.jpg', 'a red fox in the snow')
    """

    path: Path
    alt: str

    def __post_init__(self) -> None:
        if self.path.suffix.lower() not in PICTURE_ENDINGS:
            raise RankshotError(
                f"file is {short_repr(str(self.path))}: it must end in {', '.join(PICTURE_ENDINGS)}"
            )
        validation.check_line("alt", self.alt, validation.PROMPT_LENGTH)


@dataclass(frozen=True)
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
        Of a choice: from 2 to 50.
    least, most : float
        The smallest and the largest number.
    required : bool
        Whether participants must answer.

    Examples
    --------
    >>> from rankshot.survey import ExtraQuestion
    >>> ExtraQuestion("age", "How old are you?", "number", least=18, most=120).is_whole
    True
    """

    name: str
    text: str
    type: AnswerType
    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    required: bool = False

    def __post_init__(self) -> None:
        validation.check_line("name", self.name, validation.NAME_LENGTH)
        validation.check_line("text", self.text, validation.PROMPT_LENGTH)
        require_choice("type", self.type, get_args(AnswerType))
        object.__setattr__(self, "choices", validation.require_names("choices", self.choices))
        n = len(self.choices)
        if self.type == "choice" and not 2 <= n <= MOST_CHOICES:
            raise RankshotError(f"choices has {n}: give from 2 to {MOST_CHOICES}")
        if self.type != "choice" and n:
            raise RankshotError(f'choices is given, but type is "{self.type}": remove one of them')
        has_range = (self.least, self.most) != (-math.inf, math.inf)
        if self.type != "number" and has_range:
            raise RankshotError(f'least and most are for type = "number", not "{self.type}"')
        for key in ("least", "most"):
            validation.check_number(key, getattr(self, key), -math.inf, math.inf)
        if not self.least <= self.most:
            raise RankshotError(f"least is {self.least:g}, more than most, which is {self.most:g}")
        validation.check_truth("required", self.required)

    @property
    def is_whole(self) -> bool:
        """Whether a number must be whole: its limits are written without a decimal point."""
        return isinstance(self.least, int) or isinstance(self.most, int)


@dataclass(frozen=True)
class Example:
    """The example on the page with the instructions.

    Attributes
    ----------
    target : str
    items : tuple of str
    order : tuple of str
        The items that the example ranks, best first.

    Examples
    --------
    >>> from rankshot.survey import Example
    >>> Example("wolf", items=("dog", "bus", "rose"), order=("dog", "rose"))
    Example(target='wolf', items=('dog', 'bus', 'rose'), order=('dog', 'rose'))
    """

    target: str
    items: tuple[str, ...]
    order: tuple[str, ...]

    def __post_init__(self) -> None:
        validation.check_line("target", self.target, validation.NAME_LENGTH)
        object.__setattr__(self, "items", validation.require_names("items", self.items))
        object.__setattr__(self, "order", validation.require_names("order", self.order))
        if odd := [name for name in self.order if name not in self.items]:
            raise RankshotError(f"order has {quote_names(odd, 1)}, which is not one of its items")
        if not 1 <= len(self.order) <= len(self.items) <= validation.MOST_ITEMS:
            raise RankshotError(
                f"order has {len(self.order)} of {len(self.items)} items: rank at least one, of "
                f"at most {validation.MOST_ITEMS}"
            )


@dataclass(frozen=True)
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
    >>> from rankshot.survey import ExtraTranslation
    >>> ExtraTranslation("Haben Sie ein Haustier?", choices=("ja", "nein"))
    ExtraTranslation(text='Haben Sie ein Haustier?', choices=('ja', 'nein'))
    """

    text: str
    choices: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        validation.check_line("text", self.text, validation.PROMPT_LENGTH)
        object.__setattr__(self, "choices", validation.require_names("choices", self.choices))


@dataclass(frozen=True)
class Translation:
    """The texts of a study in another language; what is None is shown in the study's own.

    Attributes
    ----------
    title, prompt, consent, contact, instructions : str or None
    names : mapping
        The names of items and targets as they are shown.
    alts : mapping
        What the pictures of items and targets show, by the same names.
    extra : mapping
        The extra questions, by name.

    Examples
    --------
    >>> from rankshot.survey import Translation
    >>> german = Translation(prompt="Was ist {target} am ähnlichsten?", names={"fox": "Fuchs"})
    >>> german.names["fox"], german.title is None
    ('Fuchs', True)
    """

    title: str | None = None
    prompt: str | None = None
    consent: str | None = None
    contact: str | None = None
    instructions: str | None = None
    names: Mapping[str, str] = field(default_factory=dict, hash=False)
    alts: Mapping[str, str] = field(default_factory=dict, hash=False)
    extra: Mapping[str, ExtraTranslation] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        check_texts(self.title, self.prompt, self.consent, self.instructions)
        if self.contact is not None:
            validation.check_line("contact", self.contact, validation.PROMPT_LENGTH)
        for key, longest in (("names", validation.NAME_LENGTH), ("alts", validation.PROMPT_LENGTH)):
            shown = getattr(self, key)
            if not isinstance(shown, Mapping):
                raise RankshotError(
                    f'{key} is {short_repr(shown)}: it must be a table, such as {{ cat = "Katze" }}'
                )
            for name, text in shown.items():
                validation.check_line(f"{key}: the text of {short_repr(name)}", text, longest)

    def check_names(self, pictures: Collection[str], extra: Sequence[ExtraQuestion]) -> None:
        """Refuse texts of pictures and extra questions that a study does not have."""
        questions = {question.name: question for question in extra}
        for key, known in (("alts", pictures), ("extra", questions)):
            if odd := [name for name in getattr(self, key) if name not in known]:
                hint = suggest_name(odd[0], sorted(known))
                what = "picture" if key == "alts" else "extra question"
                raise RankshotError(
                    f"{key} has {short_repr(odd[0])}, which is the name of no {what}{hint}"
                )
        for name, translated in self.extra.items():
            n, n_own = len(translated.choices), len(questions[name].choices)
            if n != n_own:
                raise RankshotError(
                    f"extra {short_repr(name)} has {n} choices, but the study has {n_own}: "
                    "translate all of them, in the same order"
                )


def check_texts(
    title: str | None, prompt: str | None, consent: str | None, instructions: str | None
) -> None:
    """Refuse texts of a study that are too long, or a prompt without its target."""
    if title is not None:
        validation.check_line("title", title, validation.TITLE_LENGTH)
    if prompt is not None:
        validation.check_line("prompt", prompt, validation.PROMPT_LENGTH)
        if "{target}" not in prompt:
            raise RankshotError(
                f"prompt {short_repr(prompt)} does not contain {{target}}: write it in the place "
                'of the target, as in "Which of these are most like “{target}”?"'
            )
    if consent is not None:
        validation.check_text("consent", consent, validation.CONSENT_LENGTH)
    if instructions is not None:
        validation.check_text("instructions", instructions, validation.CONSENT_LENGTH)

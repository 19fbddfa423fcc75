"""The values of a study, each with its check, and what is wrong with a file of them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar, dataclass_transform
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
)
from pydantic.dataclasses import dataclass

from rankshot.core.errors import NO_VALUE, InputError
from rankshot.core.files import read_names

# The largest count that a study may have, such as its answers per question.
MOST_COUNTED = 1_000_000
# A language tag, such as de or pt-BR.
LANGUAGE = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
# A name is one line of a page. Lone surrogates cannot be written to a file.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
UNPRINTABLE_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


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
    field: f"{table}.{key}" if table else key
    for table, keys in TABLES.items()
    for key, field in keys.items()
}
# The lists of tables.
LISTED = ("questions", "gold", "images", "extra")
_Made = TypeVar("_Made", bound=type)


def require(holds: object, rule: str) -> None:
    """Refuse a value by a rule that it breaks."""
    if not holds:
        raise ValueError(rule)


def _check_line(text: str) -> str:
    require(text == text.strip(), "must not begin or end with a space")
    control = _UNPRINTABLE.search(text)
    require(not control, f"must not have the control character {control and control.group()!r}")
    return text


def _check_text(text: str) -> str:
    require(text.strip(), "must not be empty")
    control = UNPRINTABLE_IN_TEXT.search(text)
    require(not control, f"must not have the control character {control and control.group()!r}")
    return text


def _check_url(text: str) -> str:
    try:
        address = urlsplit(text)
        is_safe = address.scheme == "https" and address.hostname and address.username is None
    except ValueError:
        is_safe = False
    is_safe = is_safe and not re.search(r"[\s\\\"'<>]", text)
    require(is_safe, "must be a URL that begins with https:// and a host")
    return text


def check_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a name that occurs twice."""
    double = next((name for name, n in Counter(names).items() if n > 1), None)
    require(double is None, f"must not have {double!r} more than once")
    return names


def _check_limit(value: object) -> object:
    is_number = isinstance(value, (int, float)) and not math.isnan(value)
    require(is_number and not isinstance(value, bool), "must be a number")
    return value


def _check_rank(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    require(is_number or value in ("any", "all"), 'must be "any", "all" or a number from 1')
    return value


def _check_tag(tag: str) -> str:
    require(LANGUAGE.fullmatch(tag), "must be a language such as de")
    return tag


def _find_beside(value: object, info: ValidationInfo) -> object:
    """Return the path of a file beside the study."""
    if not info.context or not isinstance(value, str):
        return value
    path = info.context["folder"] / value
    is_file = "\0" not in value and path.is_file()
    require(is_file, "must be a file next to the study")
    return path


def read_allowed(value: object, info: ValidationInfo) -> object:
    """Return the ids in a file beside the study."""
    path = _find_beside(value, info)
    return read_names(path) if isinstance(path, Path) else path


Name = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=200), AfterValidator(_check_line)
]
Line = Annotated[
    str, StringConstraints(strict=True, min_length=1, max_length=500), AfterValidator(_check_line)
]
Text = Annotated[str, Field(strict=True, max_length=20_000), AfterValidator(_check_text)]
Url = Annotated[str, Field(strict=True, max_length=2_000), AfterValidator(_check_url)]
Names = Annotated[tuple[Name, ...], AfterValidator(check_unique)]
Tag = Annotated[str, Field(strict=True), AfterValidator(_check_tag)]
File = Annotated[Path, BeforeValidator(_find_beside)]
Count = Annotated[int, Field(strict=True, ge=0, le=MOST_COUNTED)]
PositiveCount = Annotated[int, Field(strict=True, ge=1, le=MOST_COUNTED)]
Limit = Annotated[Any, AfterValidator(_check_limit)]
Rank = Annotated[Any, AfterValidator(_check_rank)]
IdName = Annotated[str, StringConstraints(strict=True, pattern="^[A-Za-z_][A-Za-z0-9_]{0,49}$")]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Truth = Annotated[bool, Field(strict=True)]


# ---- Errors


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def validated(cls: _Made) -> _Made:
    """Make a frozen dataclass that checks its values; what is wrong is an `InputError`."""
    made = dataclass(frozen=True, config=ConfigDict(extra="forbid"))(cls)
    check, names = made.__init__, [part.name for part in fields(made)]

    @wraps(check)
    def init(self: Any, *values: Any, **named: Any) -> None:
        try:
            check(self, **dict(zip(names, values, strict=False)), **named)
        except ValidationError as error:
            raise find_problem(error) from None

    made.__init__ = init  # type: ignore[method-assign]
    return made  # type: ignore[return-value]


def find_problem(error: ValidationError) -> InputError:
    """First problem that pydantic has found, with the key as in study.toml."""
    # Of a misspelt key, the key is named, and not that the right one is missing.
    unexpected = "unexpected_keyword_argument"
    first = min(error.errors(include_url=False), key=lambda one: one["type"] != unexpected)
    kind, inner = first["type"], first.get("ctx", {}).get("error")
    places = _PLACES if error.title == "Study" else {}
    where, key = _describe_place(list(first["loc"]), places)
    if isinstance(inner, InputError):
        parameter = inner.parameter
        if not key:
            is_own = not where and not inner.where
            key = places.get(parameter, parameter) if is_own else parameter
        return InputError(key, inner.value, inner.rule, where or inner.where, inner.hint)
    if kind == unexpected:
        return InputError(key, NO_VALUE, "is not a key that exists", where)
    if kind in ("missing", "missing_argument"):
        return InputError(key, NO_VALUE, "is missing", where)
    rule = re.sub(r"^[A-Z]\w+ should", "must", first["msg"].removeprefix("Value error, "))
    return InputError(key, first["input"], rule, where)


def _describe_place(keys: list[int | str], places: Mapping[str, str]) -> tuple[str, str]:
    """Return the table of a list where a value is, if it is in one, and its key."""
    if len(keys) > 1 and keys[0] in LISTED:
        return describe_table(str(keys[0]), int(keys[1])), _join_keys(keys[2:])
    first, *rest = keys or [""]
    return "", _join_keys([places.get(str(first), first), *rest])


def _join_keys(keys: Iterable[int | str]) -> str:
    names = [key if isinstance(key, str) else f"[{key}]" for key in keys]
    return ".".join(names).replace(".[", "[")


def describe_table(table: str, index: int) -> str:
    """Describe a table of a list: they are counted from 1."""
    return f"[[{table}]] number {index + 1}"

"""The values of a study, each with its check, and what is wrong with one as an `InputError`."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field, fields
from functools import wraps
from typing import Annotated, Any, TypeVar, dataclass_transform
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.dataclasses import dataclass

from rankshot.core.errors import NO_VALUE, InputError

# The largest count that a study may have, such as its answers per question.
MOST_COUNTED = 1_000_000
# A name is one line of a page.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_UNPRINTABLE_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_Made = TypeVar("_Made", bound=type)


def _require(holds: object, rule: str) -> None:
    """Refuse a value by a rule that it breaks."""
    if not holds:
        raise ValueError(rule)


def _check_line(text: str) -> str:
    _require(text == text.strip(), "must not begin or end with a space")
    _require(not _UNPRINTABLE.search(text), "must not have control characters")
    return text


def _check_text(text: str) -> str:
    _require(text.strip(), "must not be empty")
    _require(not _UNPRINTABLE_IN_TEXT.search(text), "must not have control characters")
    return text


def _check_url(text: str) -> str:
    try:
        address = urlsplit(text)
        is_safe = address.scheme == "https" and address.hostname and address.username is None
    except ValueError:
        is_safe = False
    is_safe = is_safe and not re.search(r"[\s\\\"'<>]", text)
    _require(is_safe, "must be a URL that begins with https:// and a host")
    return text


def _check_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    double = next((name for name, n in Counter(names).items() if n > 1), None)
    _require(double is None, f"must not have {double!r} more than once")
    return names


def _check_rank(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    _require(is_number or value in ("any", "all"), 'must be "any", "all" or a number from 1')
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
def validated(cls: _Made) -> _Made:
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
        where, keys = describe_table(str(keys[0]), keys[1]), keys[2:]
    names = [key if isinstance(key, str) else f"[{key}]" for key in keys]
    name = ".".join(names).replace(".[", "[")
    inner = first.get("ctx", {}).get("error")
    if isinstance(inner, InputError):
        parameter = name or inner.parameter
        return InputError(parameter, inner.value, inner.rule, where or inner.where, inner.hint)
    if kind == unexpected:
        return InputError(name, NO_VALUE, "is not a key that exists", where)
    if kind in ("missing", "missing_argument"):
        return InputError(name, NO_VALUE, "is missing", where)
    rule = re.sub(r"^[A-Z]\w+ should", "must", first["msg"].removeprefix("Value error, "))
    return InputError(name, first["input"], rule, where)


def describe_table(table: str, index: int) -> str:
    """Describe a table of a list: they are counted from 1."""
    return f"[[{table}]] number {index + 1}"

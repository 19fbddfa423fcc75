"""The values of a study: texts, names, numbers and files, each with its check."""

from __future__ import annotations

import math
import re
from collections import Counter
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    ValidationInfo,
)

from rankshot.core.files import read_names

# The largest count that a study may have, such as its answers per question.
MOST_COUNTED = 1_000_000
# A language tag, such as de or pt-BR.
LANGUAGE = re.compile("[a-z]{2,3}(-[A-Za-z0-9]{2,8})*")
# A name is one line of a page. Lone surrogates cannot be written to a file.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
UNPRINTABLE_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def require(holds: object, problem: str) -> None:
    """Refuse a value; a problem that begins with "it" follows the key and the value."""
    if not holds:
        raise ValueError(problem)


def _check_line(text: str) -> str:
    require(text == text.strip(), "it begins or ends with a space: remove it")
    found = _UNPRINTABLE.search(text)
    require(not found, f"it has the control character {found and found.group()!r}: remove it")
    return text


def _check_text(text: str) -> str:
    require(text.strip(), "it is empty: write some text")
    found = UNPRINTABLE_IN_TEXT.search(text)
    require(not found, f"it has the control character {found and found.group()!r}: remove it")
    return text


def _check_url(text: str) -> str:
    try:
        address = urlsplit(text)
        is_safe = address.scheme == "https" and address.hostname and address.username is None
    except ValueError:
        is_safe = False
    is_safe = is_safe and not re.search(r"[\s\\\"'<>]", text)
    require(is_safe, "it must be a URL that begins with https:// and a host")
    return text


def check_unique(names: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse a name that occurs twice."""
    double = next((name for name, n in Counter(names).items() if n > 1), None)
    require(double is None, f"it has {double!r} more than once: remove the others")
    return names


def _check_limit(value: object) -> object:
    is_number = isinstance(value, (int, float)) and not math.isnan(value)
    require(is_number and not isinstance(value, bool), "it must be a number")
    return value


def _check_rank(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value > 0
    named = '"any", "all", "best-worst" or a number of items from 1'
    require(is_number or value in ("any", "all", "best-worst"), f"it must be {named}")
    return value


def _check_tag(tag: str) -> str:
    require(LANGUAGE.fullmatch(tag), "it must be a language such as de")
    return tag


def _find_beside(value: object, info: ValidationInfo) -> object:
    """Return the path of a file beside the study."""
    if not info.context or not isinstance(value, str):
        return value
    path = info.context["folder"] / value
    is_file = "\0" not in value and path.is_file()
    require(is_file, "it must be a file next to the study: there is no such file")
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

"""Validation of the texts, names and URLs of a study, and of numbers as TOML has them."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import require_number

NAME_LENGTH = 200
TITLE_LENGTH = 200
PROMPT_LENGTH = 500
CONSENT_LENGTH = 20_000
URL_LENGTH = 2_000
MOST_ITEMS = 50
MOST_QUESTIONS = 10_000
# A name is one line of a page. Lone surrogates cannot be written to a file.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
UNPRINTABLE_IN_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def check_line(what: str, value: Any, most: int) -> None:
    """Refuse a value that is not one line of text of at most ``most`` characters."""
    _check_text(what, value, most, _UNPRINTABLE)
    if value != value.strip():
        raise RankshotError(f"{what} {short_repr(value)} begins or ends with a space: remove it")


def check_text(what: str, value: Any, most: int) -> None:
    """Refuse a value that is not text of one or more lines; line breaks and tabs are allowed."""
    _check_text(what, value, most, UNPRINTABLE_IN_TEXT)


def _check_text(what: str, value: Any, most: int, unprintable: re.Pattern[str]) -> None:
    if not isinstance(value, str):
        raise RankshotError(
            f'{what} must be text in quotes, such as "cat", not {short_repr(value)}'
        )
    if not value.strip():
        raise RankshotError(f"{what} is empty: write some text")
    if len(value) > most:
        raise RankshotError(
            f"{what} has {len(value):,} characters ({short_repr(value)}): at most {most:,} are "
            "allowed"
        )
    if found := unprintable.search(value):
        raise RankshotError(
            f"{what} {short_repr(value)} has the control character {found.group()!r}: remove it"
        )


def require_names(what: str, value: Any) -> tuple[str, ...]:
    """Return a list of names as a tuple, after checking that no name occurs twice."""
    if not isinstance(value, (list, tuple)):
        raise RankshotError(
            f'{what} must be a list of names, such as ["cat"], not {short_repr(value)}'
        )
    for name in value:
        check_line(f"a name of {what}", name, NAME_LENGTH)
    names = tuple(value)
    if len(set(names)) < len(names):
        double = next(name for i, name in enumerate(names) if name in names[:i])
        raise RankshotError(f"{what} has {double!r} more than once: remove the others")
    return names


def check_number(what: str, value: Any, least: float, most: float) -> None:
    """Refuse a value that is not a number from ``least`` to ``most``."""
    # `require_number` converts text and truth values to numbers. In study.toml they are mistakes.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise RankshotError(f"{what} must be a number, not {short_repr(value)}")
    require_number(what, value, least=least, most=most)


def check_truth(what: str, value: Any) -> None:
    """Refuse a value that is not true or false."""
    if not isinstance(value, bool):
        raise RankshotError(f"{what} must be true or false, not {short_repr(value)}")


def check_url(what: str, value: Any) -> None:
    """Refuse a value that is not an https URL."""
    check_line(what, value, URL_LENGTH)
    try:
        address = urlsplit(value)
        safe = address.scheme == "https" and address.hostname and address.username is None
    except ValueError:
        safe = False
    if not safe or re.search(r"[\s\\\"'<>]", value):
        raise RankshotError(
            f"{what} is {short_repr(value)}: it must be a URL that begins with https:// and a host"
        )

"""The error class of the package, and how its messages name values."""

from __future__ import annotations

from difflib import get_close_matches
from reprlib import Repr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


class RankshotError(ValueError):
    """Invalid input, or a result that does not exist; the message names the offending value.

    Examples
    --------
    >>> import rankshot as rs
    >>> rs.Rankings.from_orders([["cat", "dgo"]], items=["cat", "dog"])
    Traceback (most recent call last):
        ...
    rankshot.core.errors.RankshotError: ranking 0: unknown item 'dgo' (did you mean 'dog'?)
    """


def short_repr(value: object) -> str:
    """Return the repr of a value for a message, shortened if it is long or deeply nested."""
    try:
        return _SHORT.repr(value)
    except ValueError:
        # Python refuses to convert integers of thousands of digits to text.
        return "a number too long to show"


def suggest_name(name: object, known: Iterable[str]) -> str:
    """Return `` (did you mean 'dog'?)``, or an empty text if no known name is close."""
    close = get_close_matches(str(name), [str(other) for other in known], n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def quote_names(names: Iterable[object], most: int = 8) -> str:
    """Join quoted names for a message; those beyond ``most`` are only counted."""
    quoted = [repr(name) for name in names]
    tail = f" and {len(quoted) - most} more" if len(quoted) > most else ""
    return ", ".join(quoted[:most]) + tail


def format_count(number: int, what: str) -> str:
    """Return a number with its noun: 1 ranking, 2 rankings."""
    return f"{number:,} {what}" + ("" if number == 1 else "s")

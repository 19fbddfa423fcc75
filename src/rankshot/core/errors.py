"""The error classes of the package, and how its messages name values."""

from __future__ import annotations

from contextlib import contextmanager
from difflib import get_close_matches
from enum import Enum
from math import isnan
from reprlib import Repr
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


class RankshotError(ValueError):
    """Every error that the package raises on purpose: bad input, or a result that is undefined.

    Examples
    --------
    >>> import rankshot as rs
    >>> rs.Rankings.from_orders([["cat", "dog", "cat"]])
    Traceback (most recent call last):
        ...
    rankshot.core.errors.InputError: ranking 0: item='cat' is listed more than once
    """


class _NoValue(Enum):
    # A member of an enumeration stays the same object in another process.
    NO_VALUE = "no value"


NO_VALUE = _NoValue.NO_VALUE
"""The value of an `InputError` about a parameter that is missing, or too large to show."""


class InputError(RankshotError):
    """Bad input, as data: which parameter, which value, and which rule it breaks.

    The message is the sentence that these fields make: "decay must be 0 or more, not -1", or
    "item='dgo' is not one of the items" for a rule that does not begin with "must". The command
    replaces the parameter by its option: "--decay must be 0 or more, not -1".

    Attributes
    ----------
    parameter : str
        The name of the parameter, as a caller types it.
    value : object
        The value that breaks the rule: the single cell, name or number, not the table around it.
        `NO_VALUE` if there is none to show.
    rule : str
        The rest of the sentence: "must be 0 or more", "is not one of the items".
    where : str
        The place in the input: "votes.csv, line 3", "ranking 0".
    hint : str
        What to do about it, if the rule does not say so.
    choices : mapping
        Arguments that would help: ``{"overwrite": True}``, or ``{"rater": ("judge", "user")}`` for
        one of several values. The command shows them as options.

    Examples
    --------
    >>> from rankshot import InputError
    >>> error = InputError("decay", -1, "must be 0 or more", where="settings.json")
    >>> print(error)
    settings.json: decay must be 0 or more, not -1
    >>> error.parameter, error.value
    ('decay', -1)
    """

    def __init__(
        self,
        parameter: str,
        value: object,
        rule: str,
        where: str = "",
        hint: str = "",
        choices: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(parameter, value, rule, where, hint, choices)
        self.parameter = parameter
        self.value = value
        self.rule = rule
        self.where = where
        self.hint = hint
        self.choices = choices or {}

    def __str__(self) -> str:
        return self.format(spell_argument)

    def format(self, spell: Callable[[str, object], str]) -> str:
        """Message in which ``spell`` gives parameters and arguments other names, as of options.

        Examples
        --------
        >>> from rankshot import InputError
        >>> InputError("decay", -1, "must be 0 or more").format(lambda name, _: f"--{name}")
        '--decay must be 0 or more, not -1'
        """
        parameter = spell(self.parameter, NO_VALUE)
        if self.value is NO_VALUE:
            sentence = f"{parameter} {self.rule}"
        elif self.rule.startswith("must"):
            sentence = f"{parameter} {self.rule}, not {short_repr(self.value)}"
        else:
            sentence = f"{parameter}={short_repr(self.value)} {self.rule}"
        place = f"{self.where}: " if self.where else ""
        choices = [
            spell(name, value)
            for name, values in self.choices.items()
            for value in (values if isinstance(values, tuple) else (values,))
        ]
        remedy = ", or ".join([*filter(None, [self.hint]), *choices])
        return f"{place}{sentence}{remedy and f'; {remedy}'}"


def spell_argument(name: str, value: object) -> str:
    """A parameter, or an argument with its value, as Python writes them."""
    return name if value is NO_VALUE else f"{name}={value!r}"


class OutputError(RankshotError):
    """A file cannot be written, and trying again would not help."""


@contextmanager
def prefix_errors(*where: object) -> Iterator[None]:
    """Put files, or other places, before the message of a `RankshotError` in the block."""
    place = " and ".join(map(str, where))
    try:
        yield
    except InputError as error:
        error.where = f"{place}, {error.where}" if error.where else place
        raise
    except RankshotError as error:
        raise RankshotError(f"{place}: {error}") from None


def short_repr(value: object) -> str:
    """Return the repr of a value for a message, shortened if it is long or deeply nested."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python does not convert integers of thousands of digits to text.
        return "a number too long to show"


ALIKE = 2 / 3
"""The share of letters that a misspelt name has in common with the right one, as `difflib` counts:
that of a name of three letters with one wrong letter, or two exchanged ones ("dgo")."""


def suggest_name(name: object, known: Iterable[str]) -> str:
    """Return `` (did you mean 'dog'?)``, or an empty text if no known name is close."""
    written = {str(other).casefold(): str(other) for other in known}
    close = get_close_matches(str(name).casefold(), written, n=1, cutoff=ALIKE)
    return f" (did you mean {written[close[0]]!r}?)" if close else ""


def suggest_item(name: object, items: Iterable[str]) -> str:
    """Return a hint for a name that is not an item: a similar name, or what the items are."""
    items = tuple(items)
    return suggest_name(name, items) or f"; the items are {quote_names(items)}"


def quote_names(names: Iterable[object], most: int = 8) -> str:
    """Join quoted names for a message; those beyond ``most`` are only counted."""
    return join_some(map(repr, names), most)


def count_others(names: Sequence[object]) -> str:
    """`` (and 2 others: 'b', 'c')`` for a message about the first of several names, or nothing."""
    others = format_count(len(names) - 1, "other")
    return f" (and {others}: {quote_names(names[1:])})" if len(names) > 1 else ""


def join_some(texts: Iterable[str], most: int = 8) -> str:
    """Join texts for a message; those beyond ``most`` are only counted."""
    every = list(texts)
    tail = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + tail


def format_count(number: int, what: str) -> str:
    """Return a number with its noun: 1 ranking, 2 rankings, 3 classes."""
    plural = "es" if what.endswith("s") else "s"
    return f"{number:,} {what}" + ("" if number == 1 else plural)


def format_share(share: float) -> str:
    """Return a share as ``.445``, with three digits and no zero before the point.

    Examples
    --------
    >>> from rankshot.core.errors import format_share
    >>> [format_share(share) for share in (0.4451, 1, -1e-17, -0.05, float("nan"))]
    ['.445', '1.000', '.000', '-.050', 'n/a']
    """
    if isnan(share):
        return "n/a"
    return f"{share:.3f}".replace("-0.000", "0.000").replace("0.", ".", 1)

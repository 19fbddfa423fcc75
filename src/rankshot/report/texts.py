"""Names and numbers as a reader wants them: no more letters and digits than carry meaning."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

MINUS = "\N{MINUS SIGN}"
NONE = "n/a"


# -------------------- report.texts
# Names and numbers as a reader wants them: no more letters and digits than carry meaning.


def cut(text: str, letters: int) -> str:
    """Return a text of at most so many letters, with an ellipsis where it was longer."""
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


def share_text(share: float) -> str:
    """Return a share as ``.445``.

    Examples
    --------
    >>> from rankshot.report.texts import share_text
    >>> share_text(0.4451), share_text(1), share_text(-1e-17), share_text(float("nan"))
    ('.445', '1.000', '.000', 'n/a')
    """
    if math.isnan(share):
        return NONE
    # Adding 0 turns the -0.0 that rounding leaves into 0.0.
    return f"{round(share, 3) + 0.0:.3f}".removeprefix("0")


def percent_text(share: float, digits: int = 1) -> str:
    """Return a share as ``44.5%``.

    Examples
    --------
    >>> from rankshot.report.texts import percent_text
    >>> percent_text(0.4451), percent_text(0.4451, digits=0)
    ('44.5%', '45%')
    """
    return NONE if math.isnan(share) else f"{round(100 * share, digits) + 0.0:.{digits}f}%"


def number_text(value: float) -> str:
    """Return a number with three digits that count, and thousands set apart.

    Examples
    --------
    >>> from rankshot.report.texts import number_text
    >>> number_text(2.3456), number_text(123456.7), number_text(3.0), number_text(float("inf"))
    ('2.35', '123,457', '3', '∞')
    """
    if not math.isfinite(value):
        return NONE if math.isnan(value) else "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", MINUS)


def aligned_texts(values: Sequence[float], *, signed: bool = False) -> list[str]:
    """Return the numbers of a column, with as many decimals as the largest of them needs.

    Examples
    --------
    >>> from rankshot.report.texts import aligned_texts
    >>> aligned_texts([12.5, 3]), aligned_texts([1200, 3])
    (['12.5', '3.0'], ['1,200', '3'])
    >>> aligned_texts([1.234, -0.5, 0], signed=True)
    ['+1.23', '−0.50', '0.00']
    """
    largest = max(map(abs, values), default=0)
    decimals = min(max(2 - math.floor(math.log10(largest)), 0), 12) if largest else 2
    if all(float(value).is_integer() for value in values) and not signed:
        decimals = 0
    rounded = [round(value, decimals) + 0.0 for value in values]
    plus = "+" if signed else ""
    signs = [plus if value > 0 else MINUS if value < 0 else "" for value in rounded]
    return [f"{s}{abs(v):,.{decimals}f}" for s, v in zip(signs, rounded, strict=True)]


# -------------------- report.bars
# Bars that a table draws beside its numbers.


class Bar(NamedTuple):
    """A name, a number as text, and the length of its bar as a fraction of the longest.

    A bar of negative length goes to the left.
    """

    name: str
    text: str
    length: float


def bars(pairs: Sequence[tuple[str, float]], texts: Sequence[str], longest: float) -> list[Bar]:
    """Return bars for named numbers, the longest possible one being ``longest``."""
    return [
        Bar(name, text, value / longest if longest else 0.0)
        for (name, value), text in zip(pairs, texts, strict=True)
    ]

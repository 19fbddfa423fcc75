"""Bars that a table draws beside its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


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

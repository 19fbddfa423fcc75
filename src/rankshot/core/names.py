"""Names of items, targets and classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, short_repr


def as_names(labels: Iterable[Any], what: str = "items") -> tuple[str, ...]:
    """Return labels as distinct, non-empty text; whole numbers become their digits."""
    if isinstance(labels, (str, set, frozenset)) or not isinstance(labels, Iterable):
        raise RankshotError(f"{what} must be a sequence of names, not {short_repr(labels)}")
    names: dict[str, None] = {}
    for label in labels:
        name = as_name(label)
        if name is None:
            raise RankshotError(f"{what} must be non-empty text, not {short_repr(label)}")
        if name in names:
            raise RankshotError(f"{what} names {short_repr(name)} more than once")
        names[name] = None
    if not names:
        raise RankshotError(f"{what} is empty")
    return tuple(names)


def as_name(label: Any) -> str | None:
    """Return a label as text, or None where it is neither non-empty text nor a whole number."""
    if isinstance(label, str) and label:
        return str(label)
    is_number = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    return str(int(label)) if is_number and abs(label) < 2**63 else None

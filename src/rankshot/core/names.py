"""Names of items, targets and classes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

import numpy as np

from rankshot.core.errors import RankshotError, short_repr


def as_names(labels: Iterable[Any], what: str = "items") -> tuple[str, ...]:
    """Return labels as distinct, non-empty text; whole numbers become their digits."""
    if isinstance(labels, (str, bytes, set, frozenset)) or not isinstance(labels, Iterable):
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


def shuffle_names(names: Iterable[str], key: Sequence[int | str]) -> list[str]:
    """Shuffle names in the same way on every machine, whatever order they are listed in.

    Sorting by a hash does not depend on the version of Python or NumPy, so that the answers in a
    log, and a choice that was made by a seed, stay valid.

    Examples
    --------
    >>> shuffle_names(["a", "b", "c", "d"], [0, "cat", 1])
    ['d', 'b', 'c', 'a']
    """
    start = json.dumps(list(key)).encode()
    return sorted(
        names, key=lambda name: sha256(start + name.encode(errors="surrogatepass")).digest()
    )

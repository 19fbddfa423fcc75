"""Checks of the numbers, options and names that a caller passes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib import import_module
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import NO_VALUE, InputError, RankshotError, quote_names, suggest_name

Seed = int | np.random.Generator | None


def require_number(
    what: str,
    value: float,
    *,
    least: float | None = None,
    above: float | None = None,
    most: float | None = None,
    below: float | None = None,
) -> float:
    """Number as a float, or raise with the value that was passed instead."""
    number = None
    # Text, truth values and arrays of one number would also be converted.
    with suppress(TypeError, ValueError, OverflowError):
        if not isinstance(value, (str, bytes, bool, np.bool_)) and np.shape(value) == ():
            number = float(value)
    if number is None:
        raise InputError(what, value, "must be a number")
    rules = []
    if least is not None:
        rules.append((number >= least, f"{least:g} or more"))
    if above is not None:
        rules.append((number > above, "positive" if above == 0 else f"above {above:g}"))
    if most is not None:
        rules.append((number <= most, f"at most {most:g}"))
    if below is not None:
        rules.append((number < below, "finite" if below == np.inf else f"below {below:g}"))
    if not all(holds for holds, _ in rules):
        text = " and ".join(text for _, text in rules)
        raise InputError(what, value, f"must be {text}")
    return number


def require_whole_number(what: str, value: int, most: float = np.inf, *, least: int = 1) -> int:
    """Whole number from ``least`` to ``most``, or raise with what was passed instead."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not least <= value <= most:
        limit = f"to {most}" if most < np.inf else "on"
        raise InputError(what, value, f"must be a whole number from {least} {limit}")
    return int(value)


def require_whole_numbers(what: str, values: ArrayLike) -> NDArray[Any]:
    """One whole number or an array of them, or raise with what was passed instead."""
    refuse_masked(what, values)
    try:
        numbers = np.asarray(values)
    except ValueError:
        numbers = np.empty(0)
    if not np.issubdtype(numbers.dtype, np.integer):
        raise InputError(what, values, "must be whole numbers")
    return numbers


def refuse_masked(what: str, values: object) -> None:
    """Raise for masked cells of NumPy's masked arrays: what they stand for is unknown."""
    if np.ma.is_masked(values):
        raise InputError(what, NO_VALUE, "must have no masked cell")


def require_generator(random_state: Seed) -> np.random.Generator:
    """Generator of random numbers from a seed, or raise with what was passed instead."""
    with suppress(TypeError, ValueError):
        if not isinstance(random_state, (bool, np.bool_)):
            return np.random.default_rng(random_state)
    raise InputError("random_state", random_state, "must be a seed, a Generator or None")


def require_choice(what: str, value: object, choices: Iterable[str]) -> str:
    """One of the texts that an option can have, or raise with a suggestion."""
    choices = tuple(choices)
    if isinstance(value, str) and value in choices:
        return str(value)
    hint = suggest_name(value, choices) if isinstance(value, str) else ""
    raise InputError(what, value, f"must be one of {quote_names(choices)}", hint=hint.strip(" ()"))


def require_module(name: str, what: str, extra: str) -> Any:
    """Import a module of an extra, or raise an error that says how to install it."""
    try:
        return import_module(name)
    except ImportError as error:
        raise RankshotError(
            f"{what} need {error.name or name}: pip install 'rankshot[{extra}]'"
        ) from None


# ---- Names of items, targets and classes


def as_names(labels: Iterable[object], what: str = "items") -> tuple[str, ...]:
    """Labels as distinct, non-empty text; whole numbers become their digits."""
    if isinstance(labels, (str, bytes, set, frozenset)) or not isinstance(labels, Iterable):
        raise InputError(what, labels, "must be a sequence of names")
    names: dict[str, None] = {}
    for label in labels:
        name = as_name(label)
        if name is None:
            raise InputError(what, label, "must be non-empty text")
        if name in names:
            raise InputError(what, name, "must name each only once")
        names[name] = None
    if not names:
        raise InputError(what, NO_VALUE, "must name at least one")
    return tuple(names)


def as_name(label: Any) -> str | None:
    """Label as text, or None where it is neither non-empty text nor a whole number."""
    if isinstance(label, str) and label:
        return str(label)
    is_number = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    return str(int(label)) if is_number and abs(label) < 2**63 else None


def shuffle_names(names: Iterable[str], key: Sequence[int | str]) -> list[str]:
    """Shuffle names in the same way on every machine, whatever order they are listed in.

    Sorting by a hash does not depend on the version of Python or NumPy, so that the answers in a
    log, and a choice that was made by a seed, stay valid.
    """
    start = json.dumps(list(key)).encode()
    return sorted(
        names, key=lambda name: sha256(start + name.encode(errors="surrogatepass")).digest()
    )

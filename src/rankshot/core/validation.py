"""Checks of the numbers that a caller passes."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from rankshot.core.errors import RankshotError, short_repr

Seed = int | np.random.Generator | None


def require_number(what: str, value: float) -> float:
    """Return a number as a float, or say what was passed instead of one."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise RankshotError(f"{what} must be a number, not {short_repr(value)}") from None


def require_whole_number(what: str, value: int, most: float = np.inf) -> int:
    """Return a positive whole number, or say what was passed instead."""
    if not isinstance(value, Integral) or isinstance(value, bool) or not 1 <= value <= most:
        limit = f"to {most}" if most < np.inf else "on"
        raise RankshotError(
            f"{what} must be a whole number from 1 {limit}, not {short_repr(value)}"
        )
    return int(value)

"""Rankings from tables of numbers: positions, scores and item numbers."""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.validation import refuse_masked, require_whole_numbers
from rankshot.ranking.encoding import (
    LIST_TYPES,
    Entries,
    describe_row,
    row_starts,
    validate_entries,
)

RULES = {
    "positions": "must be 0 (not listed) or more",
    "scores": 'must be numbers (with kind="subset", nan is an item that was not compared)',
}


def require_number_table(values: ArrayLike, n_items: int, what: str) -> NDArray[np.float64]:
    """Return a float matrix with one column per item, or raise for the first wrong cell."""
    refuse_masked(what, values)
    try:
        table = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _odd_cell_error(values, n_items, what) from None
    if table.ndim == 0:
        raise _odd_cell_error(values, n_items, what)
    table = np.atleast_2d(table)
    if table.ndim != 2 or table.shape[1] != n_items:
        raise RankshotError(
            f"{what} must have one column for each of the {n_items} items, not shape {table.shape}"
        )
    return table


def _odd_cell_error(values: ArrayLike, n_items: int, what: str) -> RankshotError:
    """Return an error that names the first cell that is not a number."""
    rows = values if isinstance(values, LIST_TYPES) else []
    if len(rows) and not isinstance(rows[0], LIST_TYPES):
        rows = [rows]
    for row, cells in enumerate(rows):
        if not isinstance(cells, LIST_TYPES) or len(cells) != n_items:
            return RankshotError(
                f"{what}, ranking {row}: expected {n_items} numbers, not {short_repr(cells)}"
            )
        for cell in cells:
            try:
                float(cell)
            except (TypeError, ValueError, OverflowError):
                return RankshotError(f"{what}, ranking {row}: {short_repr(cell)} is not a number")
    return RankshotError(f"{what} must be a table of numbers, not {short_repr(values)}")


def rank_numbers(values: ArrayLike, table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers in the order of ``values``, where ``table``, the same as floats, has ties.

    Floats of 2^53 and more do not hold all whole numbers. Where ``table`` is nan, so is the result.
    """
    known = ~np.isnan(table)
    if np.abs(table).max(initial=0, where=known) < 2**53:
        return table
    exact = np.asarray(values) if isinstance(values, np.ndarray) else np.array(values, object)
    if exact.dtype == np.float64:
        return table
    ranks = np.full(table.shape, np.nan)
    ranks[known] = np.unique(exact.reshape(table.shape)[known], return_inverse=True)[1]
    return ranks


def encode_positions(values: NDArray[np.float64], placed: NDArray[np.bool_]) -> Entries:
    """Sort each row of numbers, smallest first, equal ones tied; list only ``placed`` cells."""
    n, C = values.shape
    order = np.lexsort((values, ~placed))
    ranked = np.take_along_axis(values, order, axis=1)
    step = np.zeros((n, C), np.int32)
    step[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    places = np.cumsum(step, axis=1, dtype=np.int32)
    sizes = placed.sum(axis=1)
    kept = np.arange(C) < sizes[:, None]
    return Entries(order[kept].astype(np.int32), places[kept], row_starts(sizes))


def refuse_cells(
    bad: NDArray[np.bool_], table: NDArray[np.float64], names: tuple[str, ...], what: str
) -> None:
    """Raise for the first bad cell of a table, naming its row, its item and its value."""
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise RankshotError(
            f"ranking {row}, item {names[column]!r}: {what} {RULES[what]}, not {table[row, column]}"
        )


def encode_item_numbers(lists: ArrayLike, items: tuple[str, ...], *, trusted: bool) -> Entries:
    """Return the strict orders of a matrix of item numbers; check them unless they are trusted."""
    table = require_whole_numbers("item numbers", lists)
    if table.ndim != 2:
        raise RankshotError(
            f"item numbers must be a matrix, one row per ranking, not of shape {table.shape}"
        )
    n, k = table.shape
    places = np.tile(np.arange(k, dtype=np.int32), n)
    entries = Entries(table.astype(np.int32).ravel(), places, np.arange(n + 1) * k)
    if trusted:
        return entries
    outside = (table < 0) | (table >= len(items))
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise RankshotError(f"ranking {row}: no item has the number {table[row, column]}")
    return validate_entries(entries, items, describe_row)


def warn_of_counting_from_zero(positions: NDArray[np.float64]) -> None:
    """Warn if every row has the numbers 0, 1, …, C - 1: places are counted from 1."""
    C = positions.shape[1]
    if C > 1 and len(positions) and np.all(np.sort(positions, axis=1) == np.arange(C)):
        warnings.warn(
            f"every row of positions holds 0, 1, …, {C - 1}: places start at 1, and 0 means that "
            "an item is not listed. If you count from 0, add 1 to all of them",
            stacklevel=3,
        )

"""From tables of numbers, positions or scores, to the arrays inside a `Rankings`."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.errors import RankshotError, shown
from rankshot.ranking.ragged import Entries, starts_of

ROW_TYPES = (list, tuple, np.ndarray)


def number_table(values: ArrayLike, n_items: int, what: str) -> NDArray[np.float64]:
    """Return a float matrix with one column an item, or say what is wrong with it."""
    try:
        table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError, OverflowError):
        raise _odd_cell(values, n_items, what) from None
    if table.ndim != 2 or table.shape[1] != n_items:
        raise RankshotError(
            f"{what} must have one column for each of the {n_items} items, not shape {table.shape}"
        )
    return table


def _odd_cell(values: ArrayLike, n_items: int, what: str) -> RankshotError:
    """Find the row that keeps a table from being one of numbers."""
    rows = values if isinstance(values, ROW_TYPES) else []
    if len(rows) and not isinstance(rows[0], ROW_TYPES):
        rows = [rows]
    for row, cells in enumerate(rows):
        if not isinstance(cells, ROW_TYPES) or len(cells) != n_items:
            return RankshotError(
                f"{what}, ranking {row}: expected {n_items} numbers, not {shown(cells)}"
            )
        for cell in cells:
            try:
                float(cell)
            except (TypeError, ValueError, OverflowError):
                return RankshotError(f"{what}, ranking {row}: {shown(cell)} is not a number")
    return RankshotError(f"{what} must be a table of numbers, not {shown(values)}")


def encode_positions(values: NDArray[np.float64], placed: NDArray[np.bool_]) -> Entries:
    """Sort each row of numbers, smallest first, equal ones tied; list only what is ``placed``."""
    n, C = values.shape
    order = np.lexsort((values, ~placed))
    ranked = np.take_along_axis(values, order, axis=1)
    step = np.zeros((n, C), np.int32)
    step[:, 1:] = ranked[:, 1:] != ranked[:, :-1]
    places = np.cumsum(step, axis=1, dtype=np.int32)
    sizes = placed.sum(axis=1)
    kept = np.arange(C) < sizes[:, None]
    return Entries(order[kept].astype(np.int32), places[kept], starts_of(sizes))


def refuse_cells(
    bad: NDArray[np.bool_], table: NDArray[np.float64], names: tuple[str, ...], rule: str
) -> None:
    """Raise for the first bad cell of a table, naming its row, its item and its value."""
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise RankshotError(
            f"ranking {row}, item {names[column]!r}: {rule}, not {table[row, column]}"
        )


def item_numbers(lists: NDArray[Any]) -> NDArray[Any]:
    """Return a matrix of whole numbers, or say what was passed instead."""
    table = np.asarray(lists)
    if table.ndim != 2 or not np.issubdtype(table.dtype, np.integer):
        raise RankshotError(
            f"item numbers must be a matrix of whole numbers, not {table.dtype} of shape "
            f"{table.shape}"
        )
    return table


def refuse_numbers(lists: NDArray[Any], n_items: int) -> None:
    """Raise for the first number that no item has."""
    outside = (lists < 0) | (lists >= n_items)
    if outside.any():
        row, column = np.argwhere(outside)[0]
        raise RankshotError(f"ranking {row}: no item has the number {lists[row, column]}")


def warn_of_counting_from_zero(positions: NDArray[np.float64]) -> None:
    """Warn if every row is 0, 1, …, C - 1: that is how programs count, not places."""
    C = positions.shape[1]
    if C > 1 and len(positions) and np.all(np.sort(positions, axis=1) == np.arange(C)):
        warnings.warn(
            f"every row of positions holds 0, 1, …, {C - 1}: places start at 1, and 0 means that "
            "an item is not listed. If you count from 0, add 1 to all of them",
            stacklevel=3,
        )

"""Pairs: comparisons of two items, from names or from a table of counts to arrays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, UnknownItemError, short_repr, suggest_item
from rankshot.core.validation import as_name, as_names, refuse_masked
from rankshot.ranking.encoding import Entries, Where


def describe_pair(row: int) -> str:
    """Return the name, for messages, of a pair that is not from a file."""
    return f"pair {row}"


# ---- Names of winners and losers


def encode_pairs(
    winners: Iterable[Any],
    losers: Iterable[Any],
    items: Iterable[Any] | None,
    ties: ArrayLike | None,
    where: Where,
) -> tuple[tuple[str, ...], Entries]:
    """Return the names of the items, and the pairs as arrays."""
    columns = [_as_list(winners, "winners"), _as_list(losers, "losers")]
    n = len(columns[0])
    if len(columns[1]) != n:
        raise RankshotError(f"{n:,} winners, but {len(columns[1]):,} losers")
    labels = columns[0] + columns[1]
    names, code = _number_labels(labels, None if items is None else as_names(items), where)
    pairs = np.fromiter(map(code.__getitem__, labels), np.int32, 2 * n).reshape(2, n)
    if (same := pairs[0] == pairs[1]).any():
        row = int(np.argmax(same))
        raise RankshotError(f"{where(row)}: item {names[pairs[0, row]]!r} against itself")
    return names, _stack_pairs(pairs[0], pairs[1], _tie_column(ties, n, where))


def _as_list(values: Iterable[Any], what: str) -> list[Any]:
    if isinstance(values, np.ndarray) and values.ndim == 1:
        return list(values.tolist())
    no_list = (str, bytes, set, frozenset, dict, np.ndarray)
    if isinstance(values, no_list) or not isinstance(values, Iterable):
        raise RankshotError(f"{what} must be a list of names, not {short_repr(values)}")
    return list(values)


def _number_labels(
    labels: list[Any], items: tuple[str, ...] | None, where: Where
) -> tuple[tuple[str, ...], dict[Any, int]]:
    """Return the names of the items, and the number of each label that occurs.

    Labels are checked once each, not once per pair: there are many pairs of few items.
    """
    n = len(labels) // 2
    try:
        name_of = {label: as_name(label) for label in dict.fromkeys(labels)}
        is_name = None not in name_of.values()
    except TypeError:
        is_name = False
    if not is_name:
        row, odd = next((i % n, label) for i, label in enumerate(labels) if as_name(label) is None)
        raise RankshotError(f"{where(row)}: an item must be a name, not {short_repr(odd)}")
    if items is None and not labels:
        raise RankshotError("no items are given, and there are no pairs to take them from")
    names = tuple(sorted({str(name) for name in name_of.values()})) if items is None else items
    code = {name: number for number, name in enumerate(names)}
    for label, name in name_of.items():
        if name not in code:
            row = labels.index(label) % n
            raise UnknownItemError(
                f"{where(row)}: unknown item {short_repr(name)}{suggest_item(name, code)}"
            )
    return names, {label: code[str(name)] for label, name in name_of.items()}


def _tie_column(ties: ArrayLike | None, n: int, where: Where) -> NDArray[np.bool_]:
    if ties is None:
        return np.zeros(n, bool)
    refuse_masked("ties", ties)
    try:
        column = np.asarray(ties)
    except ValueError:
        raise RankshotError(f"ties must be truth values, not {short_repr(ties)}") from None
    if column.shape != (n,):
        raise RankshotError(f"ties has shape {column.shape} for {n:,} pairs")
    if column.dtype != bool:
        for row, tie in enumerate(column.tolist()):
            if not isinstance(tie, bool):
                raise RankshotError(f"{where(row)}: a tie is True or False, not {short_repr(tie)}")
    return column.astype(bool)


def _stack_pairs(winners: NDArray[Any], losers: NDArray[Any], ties: NDArray[np.bool_]) -> Entries:
    n = len(ties)
    codes = np.stack([winners, losers], axis=1).astype(np.int32)
    # Tied items are listed by number, as everywhere.
    codes[ties] = np.sort(codes[ties], axis=1)
    places = np.zeros((n, 2), np.int32)
    places[:, 1] = ~ties
    return Entries(codes.ravel(), places.ravel(), 2 * np.arange(n + 1))


# ---- Tables of counts


def encode_pair_counts(
    wins: ArrayLike, items: Iterable[Any], ties: ArrayLike | None
) -> tuple[tuple[str, ...], Entries, NDArray[np.float64]]:
    """Return the names of the items, and one pair with its weight for each count above zero."""
    names = as_names(items)
    won = _require_counts(wins, names, "wins")
    tied = np.zeros_like(won) if ties is None else _require_counts(ties, names, "ties")
    if (odd := np.argwhere(tied != tied.T)).size:
        i, j = odd[0]
        raise RankshotError(
            f"ties of {names[i]!r} and {names[j]!r}: the table has both {tied[i, j]:g} and "
            f"{tied[j, i]:g}; it must be symmetric"
        )
    winners, losers = np.nonzero(won)
    first, second = np.nonzero(np.triu(tied))
    is_tie = np.arange(winners.size + first.size) >= winners.size
    entries = _stack_pairs(np.append(winners, first), np.append(losers, second), is_tie)
    return names, entries, np.append(won[winners, losers], tied[first, second])


def _require_counts(values: ArrayLike, names: tuple[str, ...], what: str) -> NDArray[np.float64]:
    C = len(names)
    refuse_masked(what, values)
    try:
        table = np.array(values, np.float64)
    except (TypeError, ValueError, OverflowError):
        raise RankshotError(
            f"{what} must be a table of numbers with a row and a column for each of the {C} "
            f"items, not {short_repr(values)}"
        ) from None
    if table.shape != (C, C):
        raise RankshotError(
            f"{what} must have a row and a column for each of the {C} items, not shape "
            f"{table.shape}"
        )
    for bad, rule in (
        (~(np.isfinite(table) & (table >= 0)), "a count must be a finite number of 0 or more"),
        (np.diag(np.diag(table)) != 0, "an item is not compared with itself"),
    ):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            raise RankshotError(
                f"{what} of {names[i]!r} and {names[j]!r}: {rule}, not {table[i, j]:g}"
            )
    return table

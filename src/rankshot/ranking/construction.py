"""How `Rankings` are built: from orders, tables of numbers, pairs and columns to arrays.

Input is validated here, where the message can name the ranking and the value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.blocks import row_blocks
from rankshot.core.errors import (
    RankshotError,
    UnknownItemError,
    quote_names,
    short_repr,
    suggest_item,
)
from rankshot.core.validation import (
    as_name,
    as_names,
    refuse_masked,
    require_whole_number,
    require_whole_numbers,
)
from rankshot.ranking.entries import Entries, row_starts

Order = Sequence["str | Sequence[str]"]
"""Items, best first; a tie is a list inside the list."""
Kind = Literal["top", "subset"]
Labels = Sequence[str | None] | NDArray[np.object_] | str | None
"""One text for all rankings, or one text or None for each."""
Column = NDArray[Any]
Where = Callable[[int], str]
"""A function that names row ``i`` in a message: ``ranking 3``, or ``votes.jsonl:4``."""
LIST_TYPES = (list, tuple, np.ndarray)
TIE_TYPES = (list, tuple, set, frozenset)
NO_WEIGHTS = {bool, str, list, type(None)}
"""JSON has values of these types, and NumPy would convert them to numbers."""
SPARSE = 256
"""Lists of less than one in so many items are sorted to find repeated ones; others are marked in a
table, which is up to ten times as fast."""


def describe_row(row: int) -> str:
    """Return the name, for messages, of a ranking that is not from a file."""
    return f"ranking {row}"


# ---- Orders of names


def different_items_error(wanted: tuple[str, ...], there: tuple[str, ...]) -> RankshotError:
    """Return an error that tells how the items of rankings differ from those that are wanted."""
    if missing := sorted(set(wanted) - set(there)):
        return RankshotError(
            f"these rankings are not over {quote_names(missing)}: "
            "give them the same items= when they are built or read"
        )
    odd = min(set(there) - set(wanted))
    return UnknownItemError(f"unknown item {odd!r}{suggest_item(odd, wanted)}")


def encode_orders(orders: Sequence[Order], items: tuple[str, ...], where: Where) -> Entries:
    """Translate orders of names into arrays; raise for what is not a ranking of ``items``."""
    code = {name: i for i, name in enumerate(items)}
    entries = _encode_quickly(orders, code)
    if entries is None:
        entries = _encode_one_by_one(orders, code, where)
    return validate_entries(entries, items, where)


def _encode_quickly(orders: Sequence[Order], code: dict[str, int]) -> Entries | None:
    """Encode lists of names and of lists of names; return None for anything unexpected."""
    if not all(isinstance(order, LIST_TYPES) for order in orders):
        return None
    groups: list[Any] = list(chain.from_iterable(orders))
    starts = row_starts(np.fromiter(map(len, orders), np.int64, len(orders)))
    places = np.arange(len(groups)) - np.repeat(starts[:-1], np.diff(starts))
    codes = _find_codes(groups, code)
    if codes is None:
        ties = [group if type(group) is list else (group,) for group in groups]
        sizes = np.fromiter(map(len, ties), np.int64, len(ties))
        starts, places = row_starts(sizes)[starts], np.repeat(places, sizes)
        codes = _find_codes(list(chain.from_iterable(ties)), code) if sizes.all() else None
    return None if codes is None else Entries(codes, places.astype(np.int32), starts)


def _find_codes(names: list[Any], code: dict[str, int]) -> NDArray[np.int32] | None:
    """Return the numbers of items; None if anything else, such as a list, is among them."""
    try:
        return np.fromiter(map(code.__getitem__, names), np.int32, len(names))
    except (KeyError, TypeError):
        return None


def _encode_one_by_one(orders: Sequence[Order], code: dict[str, int], where: Where) -> Entries:
    items: list[int] = []
    places: list[int] = []
    sizes = np.zeros(len(orders), np.int64)
    for row, place, name in _walk(orders, where):
        if name not in code:
            raise UnknownItemError(
                f"{where(row)}: unknown item {short_repr(name)}{suggest_item(name, code)}"
            )
        items.append(code[name])
        places.append(place)
        sizes[row] += 1
    return Entries(np.array(items, np.int32), np.array(places, np.int32), row_starts(sizes))


def collect_items(orders: Sequence[Order], where: Where) -> tuple[str, ...]:
    """Collect the items that occur, sorted by name."""
    if not orders:
        raise RankshotError("no items are given, and there are no rankings to take them from")
    found: set[Any] = set()
    if all(isinstance(order, LIST_TYPES) for order in orders):
        groups: list[Any] = list(chain.from_iterable(orders))
        try:
            found = set(groups)
        except TypeError:
            ties = (group if type(group) is list else (group,) for group in groups)
            with suppress(TypeError):
                found = set(chain.from_iterable(ties))
    if not found or "" in found or not all(type(name) is str for name in found):
        # Something unexpected: look at it item by item.
        found = {name for _, _, name in _walk(orders, where)}
    return tuple(sorted(found))


def _walk(orders: Sequence[Order], where: Where) -> Iterator[tuple[int, int, str]]:
    """Yield the row, place and name of every item; raise for what is not a list of names."""
    for row, order in enumerate(orders):
        if not isinstance(order, LIST_TYPES):
            raise RankshotError(
                f"{where(row)}: expected a list of items, not {short_repr(order)} "
                "(a single ranking is a list in a list)"
            )
        if len(order) == 0:
            raise RankshotError(f"{where(row)}: the ranking is empty")
        for place, entry in enumerate(order):
            tie = entry if isinstance(entry, TIE_TYPES) else (entry,)
            if not tie:
                raise RankshotError(f"{where(row)}: an empty tie at place {place + 1}")
            for label in tie:
                name = as_name(label)
                if name is None:
                    raise RankshotError(
                        f"{where(row)}: an item must be a name, not {short_repr(label)}"
                    )
                yield row, place, name


def recode_items(
    entries: Entries, items: tuple[str, ...], wanted: tuple[str, ...], where: Where
) -> NDArray[np.int32]:
    """Return the codes of the same lists over other items; raise for an item not among them."""
    code = {name: i for i, name in enumerate(wanted)}
    codes = np.array([code.get(name, -1) for name in items], np.int32)[entries.codes]
    if np.any(codes < 0):
        first = int(np.argmax(codes < 0))
        name, row = items[entries.codes[first]], int(entries.rows[first])
        raise UnknownItemError(f"{where(row)}: unknown item {name!r}{suggest_item(name, wanted)}")
    return entries._replace(codes=codes).sort_ties().codes


def validate_entries(entries: Entries, items: tuple[str, ...], where: Where) -> Entries:
    """Sort inside ties; raise for an empty ranking, or an item that is listed twice in one."""
    if np.any(entries.sizes == 0):
        row = int(np.argmin(entries.sizes))
        raise RankshotError(f"{where(row)}: the ranking is empty")
    if (cell := _find_repeated(entries, len(items))) is not None:
        row, item = divmod(cell, len(items))
        raise RankshotError(f"{where(row)}: item {items[item]!r} is listed more than once")
    return entries.sort_ties()


def _find_repeated(entries: Entries, n_items: int) -> int | None:
    """Return ``row * n_items + item`` for the first item that a row lists twice, or None."""
    n = entries.starts.size - 1
    if n * n_items > SPARSE * entries.codes.size:
        cells = np.sort(entries.rows * n_items + entries.codes)
        twice = np.flatnonzero(cells[1:] == cells[:-1])
        return int(cells[twice[0]]) if twice.size else None
    for some in row_blocks(n, n_items):
        starts = entries.starts[some.start : some.stop + 1]
        cells = np.repeat(np.arange(starts.size - 1) * n_items, np.diff(starts))
        cells += entries.codes[starts[0] : starts[-1]]
        is_listed = np.zeros((starts.size - 1) * n_items, bool)
        is_listed[cells] = True
        if np.count_nonzero(is_listed) < cells.size:
            return int(some.start * n_items + np.argmax(np.bincount(cells) > 1))
    return None


# ---- Columns: one value per ranking


def validate_columns(
    n: int,
    targets: Labels = None,
    sources: Labels = None,
    raters: Labels = None,
    weights: ArrayLike | None = None,
    kind: Kind | Sequence[Kind] = "top",
    where: Where = describe_row,
) -> tuple[Column, Column, Column, Column, Column]:
    """Return the validated columns of ``n`` rankings: subset, weight, target, source, rater."""
    return (
        _subset_column(kind, n, where),
        _weight_column(weights, n, where),
        _label_column(targets, n, "targets", where),
        _label_column(sources, n, "sources", where),
        _label_column(raters, n, "raters", where),
    )


def require_lengths(k: int | NDArray[np.int64], n: int, n_items: int) -> NDArray[np.int64]:
    """Return K for each of ``n`` rankings, from one number for all or one for each."""
    if not isinstance(k, LIST_TYPES) or (isinstance(k, np.ndarray) and k.ndim == 0):
        return np.full(n, require_whole_number("k", cast("int", k), most=n_items))
    lengths = require_whole_numbers("k", k)
    if lengths.shape != (n,):
        raise RankshotError(f"k has shape {lengths.shape} for {n} rankings")
    bad = (lengths < 1) | (lengths > n_items)
    if bad.any():
        row = int(np.argmax(bad))
        require_whole_number(f"ranking {row}: k", lengths[row], most=n_items)
    return lengths


def _subset_column(kind: Kind | Sequence[Kind], n: int, where: Where) -> NDArray[np.bool_]:
    if not isinstance(kind, Iterable):
        raise RankshotError(
            f"kind must be 'top' or 'subset', or a list of them, not {short_repr(kind)}"
        )
    if isinstance(kind, str) and kind in ("top", "subset"):
        return np.full(n, kind == "subset")
    kinds = [kind] * n if isinstance(kind, str) else list(kind)
    if len(kinds) != n:
        raise RankshotError(f"kind has {len(kinds)} entries for {n} rankings")
    for row, value in enumerate(kinds):
        if not isinstance(value, str) or value not in ("top", "subset"):
            raise RankshotError(
                f"{where(row)}: kind must be 'top' or 'subset', not {short_repr(value)}"
            )
    return np.fromiter((value == "subset" for value in kinds), bool, n)


def _weight_column(weights: ArrayLike | None, n: int, where: Where) -> NDArray[np.float64]:
    if weights is None:
        return np.ones(n)
    refuse_masked("weights", weights)
    if isinstance(weights, (list, tuple)) and NO_WEIGHTS & set(map(type, weights)):
        raise _odd_weight_error(weights, where)
    try:
        values = np.array(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise _odd_weight_error(weights, where) from None
    if values.shape != (n,):
        raise RankshotError(f"weights have shape {values.shape} for {n} rankings")
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise RankshotError(
            f"{where(row)}: the weight {values[row]} is not a finite number of 0 or more"
        )
    return values


def _odd_weight_error(weights: ArrayLike, where: Where) -> RankshotError:
    """Return an error that names the first weight that is not a number."""
    for row, weight in enumerate(weights if isinstance(weights, LIST_TYPES) else []):
        try:
            number = None if isinstance(weight, (bool, str)) else float(weight)
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None:
            return RankshotError(f"{where(row)}: the weight {short_repr(weight)} is not a number")
    return RankshotError(f"weights must be numbers, not {short_repr(weights)}")


def _label_column(labels: Labels, n: int, what: str, where: Where) -> NDArray[np.object_]:
    column = np.full(n, None, object)
    if labels is None:
        return column
    if isinstance(labels, str):
        column[:] = labels
        return column
    if not isinstance(labels, Iterable) or isinstance(labels, (bytes, set, frozenset, dict)):
        raise RankshotError(f"{what} must be text, or a list of text, not {short_repr(labels)}")
    values = list(labels)
    if len(values) != n:
        raise RankshotError(f"{what} has {len(values)} entries for {n} rankings")
    if not {type(label) for label in values} <= {str, type(None)}:
        for row, label in enumerate(values):
            if label is not None and not isinstance(label, str):
                raise RankshotError(
                    f"{where(row)}: {what[:-1]} must be text, not {short_repr(label)}"
                )
        values = [None if label is None else str(label) for label in values]
    if "" in values:
        raise RankshotError(
            f"{where(values.index(''))}: {what[:-1]} is empty: name it, or leave it out"
        )
    column[:] = values
    return column


def distinct_values(labels: NDArray[np.object_]) -> tuple[str, ...]:
    """Return the labels that occur, sorted."""
    return tuple(sorted(set(labels.tolist()) - {None}))


def number_labels(labels: NDArray[np.object_]) -> NDArray[np.int64]:
    """Give each label a number, from 1 and sorted by name; 0 for no label."""
    code = {name: i for i, name in enumerate(distinct_values(labels), 1)}
    if not code:
        return np.zeros(labels.size, np.int64)
    return np.array([code.get(name, 0) for name in labels], np.int64)


# ---- Tables of numbers: positions, scores and item numbers


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


# ---- Pairs: comparisons of two items


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

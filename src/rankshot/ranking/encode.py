"""From what people write (names, positions, scores) to the arrays inside a `Rankings`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.ranking.errors import RankshotError, did_you_mean
from rankshot.ranking.ragged import Entries, starts_of

Order = Sequence["str | Sequence[str]"]
"""Items, best first; a tie is a list inside the list."""

Where = Callable[[int], str]
"""Names the place of row ``i`` in a message: ``ranking 3``, or ``votes.jsonl:4``."""

TIE_TYPES = (list, tuple, set, frozenset)


def numbered(row: int) -> str:
    """Name a row that came from no file."""
    return f"ranking {row}"


def as_names(labels: Iterable[Any], what: str = "items") -> tuple[str, ...]:
    """Return labels as distinct, non-empty text; integers are taken as their digits."""
    if isinstance(labels, str):
        raise RankshotError(f"{what} must be a sequence of names, not the text {labels!r}")
    names = tuple(_name(label, what) for label in labels)
    if not names:
        raise RankshotError(f"{what} is empty: there is nothing to rank")
    if len(set(names)) < len(names):
        repeated = next(name for i, name in enumerate(names) if name in names[:i])
        raise RankshotError(f"{what} names {repeated!r} more than once")
    return names


def _name(label: Any, what: str) -> str:
    if isinstance(label, str) and label:
        return str(label)
    if isinstance(label, (int, np.integer)) and not isinstance(label, bool):
        return str(int(label))
    raise RankshotError(f"{what} must be non-empty text, not {label!r}")


def encode_orders(orders: Sequence[Order], items: tuple[str, ...], where: Where) -> Entries:
    """Translate orders of names into arrays, and refuse what is not a ranking of ``items``."""
    code = {name: i for i, name in enumerate(items)}
    entries = _encode_strict(orders, code)
    if entries is None:
        entries = _encode_tied(orders, code, where)
    return checked(entries, items, where)


def _encode_strict(orders: Sequence[Order], code: dict[str, int]) -> Entries | None:
    """Encode at the speed of a dictionary, or give up on a tie or on anything unexpected."""
    if any(isinstance(order, str) for order in orders):
        return None
    try:
        flat: list[Any] = list(chain.from_iterable(orders))
        items = np.fromiter(map(code.__getitem__, flat), np.int32, len(flat))
        sizes = np.fromiter(map(len, orders), np.int64, len(orders))
    except (KeyError, TypeError):
        return None
    starts = starts_of(sizes)
    places = np.arange(items.size) - np.repeat(starts[:-1], sizes)
    return Entries(items, places.astype(np.int32), starts)


def _encode_tied(orders: Sequence[Order], code: dict[str, int], where: Where) -> Entries:
    items: list[int] = []
    places: list[int] = []
    sizes: list[int] = []
    for row, order in enumerate(orders):
        if isinstance(order, str) or not isinstance(order, Iterable):
            raise RankshotError(f"{where(row)}: expected a list of items, not {order!r}")
        before = len(items)
        for place, entry in enumerate(order):
            tie = entry if isinstance(entry, TIE_TYPES) else (entry,)
            if not tie:
                raise RankshotError(f"{where(row)}: an empty tie at place {place + 1}")
            for label in tie:
                items.append(_code(label, code, row, where))
                places.append(place)
        sizes.append(len(items) - before)
    return Entries(
        np.array(items, np.int32), np.array(places, np.int32), starts_of(np.array(sizes, np.int64))
    )


def _code(label: Any, code: dict[str, int], row: int, where: Where) -> int:
    name = str(label) if isinstance(label, (int, np.integer)) else label
    if isinstance(label, bool) or not isinstance(name, str):
        raise RankshotError(f"{where(row)}: an item must be a name, not {label!r}")
    if name not in code:
        raise RankshotError(f"{where(row)}: unknown item {name!r}{did_you_mean(name, code)}")
    return code[name]


def checked(entries: Entries, items: tuple[str, ...], where: Where) -> Entries:
    """Sort inside ties, and refuse an empty ranking or an item that stands twice in one."""
    if np.any(entries.sizes == 0):
        row = int(np.argmin(entries.sizes))
        raise RankshotError(f"{where(row)}: the ranking is empty")
    rows = entries.rows
    listed_items = np.sort(rows * len(items) + entries.items)
    twice = np.flatnonzero(listed_items[1:] == listed_items[:-1])
    if twice.size:
        row, item = divmod(int(listed_items[twice[0]]), len(items))
        raise RankshotError(f"{where(row)}: item {items[item]!r} is listed more than once")
    strict = entries.places.size == 0 or np.array_equal(
        entries.places, np.arange(rows.size) - entries.starts[rows]
    )
    return entries if strict else entries.sorted_inside_ties()


def decode_orders(entries: Entries, items: tuple[str, ...]) -> list[list[str | list[str]]]:
    """Translate arrays back into lists of names, ties as lists inside the lists."""
    names = np.array(items, dtype=object)[entries.items].tolist()
    places = entries.places.tolist()
    orders: list[list[str | list[str]]] = []
    for begin, end in pairwise(entries.starts.tolist()):
        groups: list[list[str]] = [[] for _ in range(places[end - 1] + 1)]
        for name, place in zip(names[begin:end], places[begin:end], strict=True):
            groups[place].append(name)
        orders.append([group[0] if len(group) == 1 else group for group in groups])
    return orders


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


def number_table(values: ArrayLike, n_items: int, what: str) -> NDArray[np.float64]:
    """Return a float matrix with one column an item, or say what is wrong with it."""
    try:
        table = np.atleast_2d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise RankshotError(f"{what} must be a table of numbers: {error}") from None
    if table.ndim != 2 or table.shape[1] != n_items:
        raise RankshotError(
            f"{what} must have one column for each of the {n_items} items, not shape {table.shape}"
        )
    return table


def items_of(orders: Sequence[Order]) -> tuple[str, ...]:
    """Collect the items that occur, sorted by name."""
    found: set[Any] = set()
    for order in orders:
        for entry in () if isinstance(order, str) else order:
            found.update(entry if isinstance(entry, TIE_TYPES) else (entry,))
    return as_names(sorted(found, key=str))


def refuse_cells(
    bad: NDArray[np.bool_], table: NDArray[np.float64], names: tuple[str, ...], rule: str
) -> None:
    """Raise for the first bad cell of a table, naming its row, its item and its value."""
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise RankshotError(
            f"ranking {row}, item {names[column]!r}: {rule}, not {table[row, column]}"
        )

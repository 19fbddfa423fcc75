"""From what people write, lists of names, to the arrays inside a `Rankings`, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from typing import Any

import numpy as np

from rankshot.ranking.errors import RankshotError, did_you_mean, listed, shown
from rankshot.ranking.ragged import Entries, starts_of

Order = Sequence["str | Sequence[str]"]
"""Items, best first; a tie is a list inside the list."""

Where = Callable[[int], str]
"""Names the place of row ``i`` in a message: ``ranking 3``, or ``votes.jsonl:4``."""

LIST_TYPES = (list, tuple, np.ndarray)
TIE_TYPES = (list, tuple, set, frozenset)


def numbered(row: int) -> str:
    """Name a row that came from no file."""
    return f"ranking {row}"


def as_names(labels: Iterable[Any], what: str = "items") -> tuple[str, ...]:
    """Return labels as distinct, non-empty text; integers are taken as their digits."""
    if isinstance(labels, (str, set, frozenset)) or not isinstance(labels, Iterable):
        raise RankshotError(f"{what} must be a sequence of names, not {shown(labels)}")
    names: dict[str, None] = {}
    for label in labels:
        name = _name(label)
        if name is None:
            raise RankshotError(f"{what} must be non-empty text, not {shown(label)}")
        if name in names:
            raise RankshotError(f"{what} names {shown(name)} more than once")
        names[name] = None
    if not names:
        raise RankshotError(f"{what} is empty: there is nothing to rank")
    return tuple(names)


def _name(label: Any) -> str | None:
    if isinstance(label, str) and label:
        return str(label)
    is_number = isinstance(label, (int, np.integer)) and not isinstance(label, bool)
    return str(int(label)) if is_number and abs(label) < 2**63 else None


def other_items(wanted: tuple[str, ...], there: tuple[str, ...]) -> RankshotError:
    """Say how the items that rankings have differ from those that are wanted."""
    if missing := sorted(set(wanted) - set(there)):
        return RankshotError(
            f"these rankings are not over {listed(missing)}: "
            "give them the same items= when they are built or read"
        )
    odd = min(set(there) - set(wanted))
    return RankshotError(f"unknown item {odd!r}{did_you_mean(odd, wanted)}")


def encode_orders(orders: Sequence[Order], items: tuple[str, ...], where: Where) -> Entries:
    """Translate orders of names into arrays, and refuse what is not a ranking of ``items``."""
    code = {name: i for i, name in enumerate(items)}
    entries = _encode_strict(orders, code)
    if entries is None:
        entries = _encode_tied(orders, code, where)
    return checked(entries, items, where)


def _encode_strict(orders: Sequence[Order], code: dict[str, int]) -> Entries | None:
    """Encode at the speed of a dictionary, or give up on a tie or on anything unexpected."""
    if not all(isinstance(order, LIST_TYPES) for order in orders):
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
    sizes = np.zeros(len(orders), np.int64)
    for row, place, name in _walk(orders, where):
        if name not in code:
            raise RankshotError(
                f"{where(row)}: unknown item {shown(name)}{did_you_mean(name, code)}"
            )
        items.append(code[name])
        places.append(place)
        sizes[row] += 1
    return Entries(np.array(items, np.int32), np.array(places, np.int32), starts_of(sizes))


def items_of(orders: Sequence[Order], where: Where) -> tuple[str, ...]:
    """Collect the items that occur, sorted by name."""
    if not orders:
        raise RankshotError("no items are given, and there are no rankings to take them from")
    found: set[Any] = set()
    try:
        if all(isinstance(order, LIST_TYPES) for order in orders):
            found.update(chain.from_iterable(orders))
    except TypeError:
        found.clear()
    if not found or "" in found or not all(type(name) is str for name in found):
        # A tie, or something unexpected: look at it item by item.
        found = {name for _, _, name in _walk(orders, where)}
    return tuple(sorted(found))


def _walk(orders: Sequence[Order], where: Where) -> Iterator[tuple[int, int, str]]:
    """Go through orders item by item: row, place, name; refuse what is not a list of names."""
    for row, order in enumerate(orders):
        if not isinstance(order, LIST_TYPES):
            raise RankshotError(
                f"{where(row)}: expected a list of items, not {shown(order)} "
                "(a single ranking is a list in a list)"
            )
        if len(order) == 0:
            raise RankshotError(f"{where(row)}: the ranking is empty")
        for place, entry in enumerate(order):
            tie = entry if isinstance(entry, TIE_TYPES) else (entry,)
            if not tie:
                raise RankshotError(f"{where(row)}: an empty tie at place {place + 1}")
            for label in tie:
                name = _name(label)
                if name is None:
                    raise RankshotError(f"{where(row)}: an item must be a name, not {shown(label)}")
                yield row, place, name


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

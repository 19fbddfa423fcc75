"""How `Rankings` are built: from orders and columns to arrays.

Input is validated here, where the message can name the ranking and the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.blocks import row_blocks
from rankshot.core.equal_rows import number_rows
from rankshot.core.errors import (
    RankshotError,
    UnknownItemError,
    quote_names,
    short_repr,
    suggest_item,
)
from rankshot.core.validation import (
    as_name,
    refuse_masked,
    require_whole_number,
    require_whole_numbers,
)

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


class Entries(NamedTuple):
    """Lists of different lengths in flat arrays, as `Rankings` stores them.

    Row ``i`` lists the items of numbers ``codes[starts[i]:starts[i + 1]]``, best first.
    ``places`` counts 0, 1, 2, … inside a row. Items of equal place are tied; their codes are in
    ascending order, so that equal rankings have equal arrays.
    """

    codes: NDArray[np.int32]
    places: NDArray[np.int32]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many entries each row has."""
        return np.diff(self.starts)

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row that owns each entry."""
        return np.repeat(np.arange(self.starts.size - 1), self.sizes)

    def take(self, index: NDArray[np.intp]) -> Entries:
        """Return some of the rows, in the order given."""
        sizes = self.sizes[index]
        starts = row_starts(sizes)
        gather = np.arange(starts[-1]) + np.repeat(self.starts[index] - starts[:-1], sizes)
        return Entries(self.codes[gather], self.places[gather], starts)

    @staticmethod
    def concatenate(parts: list[Entries]) -> Entries:
        """Stack the rows of several values."""
        return Entries(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.places for part in parts]),
            row_starts(np.concatenate([part.sizes for part in parts])),
        )

    def number_equal_rows(self, columns: list[NDArray[Any]]) -> NDArray[np.int64]:
        """Give each row a number; rows with equal entries and equal ``columns`` have the same."""
        number = np.empty(self.starts.size - 1, np.int64)
        used = 0
        for size in np.flatnonzero(np.bincount(self.sizes)).tolist():
            rows = np.flatnonzero(self.sizes == size)
            starts = self.starts[rows]
            # Without ties, the places of all rows are 0, 1, 2, …
            tied = np.any(self.places[starts + size - 1] + 1 < size)
            listed = (self.codes, self.places) if tied else (self.codes,)
            entries = (values[starts + i] for values in listed for i in range(size))
            number[rows] = used + number_rows(
                chain((column[rows] for column in columns), entries), rows.size
            )
            used = int(number[rows].max()) + 1
        return number

    def group_starts(self) -> NDArray[np.bool_]:
        """Mark the entries that start a new place, and the end of the last one."""
        is_first = np.ones(self.codes.size + 1, bool)
        is_first[1:-1] = self.places[1:] != self.places[:-1]
        is_first[self.starts] = True
        return is_first

    def sort_ties(self) -> Entries:
        """Put tied items in ascending order, so that equal rankings have equal arrays.

        The places of each row must be in ascending order.
        """
        is_first = self.group_starts()
        inside = ~is_first[1:-1]
        if np.all(self.codes[1:][inside] > self.codes[:-1][inside]):
            return self
        tied = ~(is_first[:-1] & is_first[1:])
        # Sorting does not move items between groups, so only the items have to be read back.
        group = np.cumsum(is_first[:-1])[tied] * (int(self.codes.max()) + 1)
        codes = self.codes.copy()
        codes[tied] = np.sort(group + self.codes[tied]) - group
        return self._replace(codes=codes)

    def cut(self, lengths: NDArray[np.int64], keep_rest: NDArray[np.bool_]) -> Entries:
        """Cut each list after its first ``lengths`` items; a tie that is cut is kept whole.

        Later items are dropped, or tied last in the rows of ``keep_rest``.
        """
        rows = self.rows
        last_place = self.places[self.starts[:-1] + lengths - 1][rows]
        inside = self.places <= last_place
        keep = inside | keep_rest[rows]
        places = np.where(inside, self.places, last_place + 1)[keep].astype(np.int32)
        sizes = np.bincount(rows[keep], minlength=lengths.size)
        return Entries(self.codes[keep], places, row_starts(sizes)).sort_ties()


def row_starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each row starts, and where the last one ends."""
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


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

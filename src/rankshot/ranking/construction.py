"""How `Rankings` are stored and built: orders, tables of numbers, pairs and columns as arrays.

Input is validated here, where the message can name the ranking and the value.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.columns import number_distinct
from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    quote_names,
    suggest_item,
)
from rankshot.core.tables import as_frame, frame_to_matrix
from rankshot.core.validation import (
    as_name,
    as_names,
    refuse_masked,
    require_whole_number,
    require_whole_numbers,
)

Column = NDArray[Any]
"""One value per ranking, of any type."""


class Groups(NamedTuple):
    """Groups of items of equal place, ranking by ranking; one that is not tied is a group of one.

    Attributes
    ----------
    begin : ndarray of int
        How many items of the ranking come before the group.
    size : ndarray of int
        How many items the group has.
    row : ndarray of int
        The number of the ranking.
    taken : ndarray of int
        How many items of the group belong to the first K: some of them in a tie that K cuts, and
        none in what a subset ranking lists after its first K.
    """

    begin: NDArray[np.int64]
    size: NDArray[np.int64]
    row: NDArray[np.int64]
    taken: NDArray[np.int64]

    @property
    def is_cut(self) -> NDArray[np.bool_]:
        """Whether K cuts the tie."""
        return np.asarray((self.taken > 0) & (self.taken < self.size))


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
        return np.asarray(self.starts[1:] - self.starts[:-1])

    @property
    def rows(self) -> NDArray[np.int64]:
        """The row that owns each entry."""
        return np.repeat(np.arange(self.starts.size - 1), self.sizes)

    def take(self, index: NDArray[np.intp]) -> Entries:
        """Some of the rows, in the order given."""
        sizes = self.sizes[index]
        starts = row_starts(sizes)
        gather = np.arange(starts[-1]) + np.repeat(self.starts[index] - starts[:-1], sizes)
        return Entries(self.codes[gather], self.places[gather], starts)

    def keep(self, which: NDArray[np.bool_]) -> Entries:
        """Some of the entries; a row may become empty."""
        sizes = np.bincount(self.rows[which], minlength=self.starts.size - 1)
        return Entries(self.codes[which], self.places[which], row_starts(sizes))

    @staticmethod
    def concatenate(parts: list[Entries]) -> Entries:
        """Stack the rows of several values."""
        return Entries(
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.places for part in parts]),
            row_starts(np.concatenate([part.sizes for part in parts])),
        )

    def number_equal_rows(self, columns: list[Column]) -> NDArray[np.int64]:
        """Give each row a number; rows with equal entries and equal ``columns`` have the same."""
        sizes, used = self.sizes, 0
        number = np.empty(sizes.size, np.int64)
        for size in np.flatnonzero(np.bincount(sizes)).tolist():
            rows = np.flatnonzero(sizes == size)
            cells = self.starts[rows][:, None] + np.arange(size)
            entries = (values[nth] for values in (self.codes, self.places) for nth in cells.T)
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

    def find_groups(self, lengths: NDArray[np.int64]) -> Groups:
        """Groups of tied items; ``lengths`` has K of each row."""
        ends = np.flatnonzero(self.group_starts())
        row, size = self.rows[ends[:-1]], np.diff(ends)
        begin = ends[:-1] - self.starts[row]
        return Groups(begin, size, row, np.clip(lengths[row] - begin, 0, size))

    def renumber(self) -> Entries:
        """Number the places of each row 0, 1, 2, …, and list tied items in ascending order.

        Equal rankings then have equal arrays. The places may be any numbers that ascend in each
        row; equal ones are tied. No row is empty.
        """
        is_first = self.group_starts()
        group = np.cumsum(is_first[:-1], dtype=np.int32)
        places = group - np.repeat(group[self.starts[:-1]], self.sizes)
        codes = self.codes
        if np.any((codes[1:] < codes[:-1]) & ~is_first[1:-1]):
            tied = ~(is_first[:-1] & is_first[1:])
            # Sorting does not move items between groups, so only the items have to be read back.
            base = group[tied] * (np.int64(codes.max()) + 1)
            codes = codes.copy()
            codes[tied] = np.sort(base + codes[tied]) - base
        return Entries(codes, places, self.starts)

    def cut(self, lengths: NDArray[np.int64], keep_rest: NDArray[np.bool_]) -> Entries:
        """Cut each list after its first ``lengths`` items; a tie that is cut is kept whole.

        Later items are dropped, or tied last in the rows of ``keep_rest``.
        """
        last_place = self.places[self.starts[:-1] + lengths - 1][self.rows]
        places = np.minimum(self.places, last_place + 1)
        return (
            self._replace(places=places)
            .keep((places <= last_place) | keep_rest[self.rows])
            .renumber()
        )


def row_starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Offsets of the rows: where each starts, and where the last one ends."""
    starts = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def count_places(starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """0, 1, 2, … inside each row."""
    return (np.arange(starts[-1]) - np.repeat(starts[:-1], np.diff(starts))).astype(np.int32)


# ---- Equal rows


def number_rows(columns: Iterable[Column], n: int) -> NDArray[np.int64]:
    """Give each of n rows of small whole numbers a number; equal rows have the same.

    Columns are packed into one integer as far as they fit. Before the next column would not
    fit, the packed values are replaced by their numbers, which makes room.
    """
    key = np.zeros(n, np.int64)
    span = 1
    for column in columns:
        low = int(column.min(initial=0))
        width = int(column.max(initial=0)) - low + 1
        if span * width >= 2**62:
            distinct, key = np.unique(key, return_inverse=True)
            span = distinct.size
        key = key * width + (column - low)
        span *= width
    return np.unique(key, return_inverse=True)[1]


def find_first(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """First row of each number."""
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    # Of several values for one cell NumPy keeps the last.
    first[numbers[::-1]] = np.arange(numbers.size)[::-1]
    return first


Order = Sequence["str | Sequence[str]"]
"""Items, best first; a tie is a list inside the list."""
Kind = Literal["top", "subset"]
Labels = Sequence[str | None] | NDArray[np.object_] | str | None
"""One text for all rankings, or one text, whole number or None for each."""
Where = Callable[[int], str]
"""A function that names row ``i`` in a message: ``ranking 3``, or ``votes.jsonl:4``."""
LIST_TYPES = (list, tuple, np.ndarray)
TIE_TYPES = (*LIST_TYPES, set, frozenset)
LARGEST_WEIGHT = float(np.finfo(float).max)
describe_row: Where = "ranking {}".format
"""The name, for messages, of a ranking that is not from a file."""
describe_pair: Where = "pair {}".format


def refuse_first(
    parameter: str,
    values: Sequence[Any],
    is_right: Callable[[Any], bool],
    rule: str,
    where: Where = describe_row,
) -> None:
    """Raise for the first value that breaks a rule."""
    for row, value in enumerate(values):
        if not is_right(value):
            raise InputError(parameter, value, rule, where=where(row))


def encode_names(
    labels: list[Any], items: Iterable[object] | None, where: Where
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Items, by default those that occur, and the number of each label.

    ``where`` names the row of the label at an index.
    """
    try:
        distinct, codes = number_distinct(labels)
    except TypeError:  # a label that has no hash
        distinct, codes = labels, np.arange(len(labels))
    return number_items(distinct, codes, items, where)


def number_items(
    labels: list[Any],
    codes: NDArray[np.integer],
    items: Iterable[object] | None,
    where: Where = describe_row,
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Items, by default those that occur, and that of each cell.

    ``codes`` has the number of the label of each cell, and ``where`` names the row of a cell.
    """
    names_of = [as_name(label) for label in labels]
    if items is None:
        used = np.flatnonzero(np.bincount(codes))
        occurring = sorted({name for i in used if (name := names_of[i])})
        # Without any name, the error is that of the first label.
        names = as_names(occurring) if occurring or not codes.size else ()
    else:
        names = as_names(items)
    number = {name: i for i, name in enumerate(names)}
    numbers = np.array([number.get(name or "", -1) for name in names_of], np.int32)[codes]
    if numbers.min(initial=0) < 0:
        index = int(np.argmax(numbers < 0))
        label, name = labels[codes[index]], names_of[codes[index]]
        if name is None:
            raise InputError("item", label, "must be a name", where=where(index))
        rule = f"is not one of the items{suggest_item(name, names)}"
        raise InputError("item", name, rule, where=where(index))
    return names, numbers


# ---- Orders of names


def encode_orders(
    orders: Sequence[Order], items: Iterable[object] | None, where: Where
) -> tuple[tuple[str, ...], Entries]:
    """Translate orders of names into arrays; raise for what is not a ranking of ``items``."""
    rule = "must be a list of items (a single ranking is a list in a list)"
    refuse_first("ranking", orders, lambda order: isinstance(order, LIST_TYPES), rule, where)
    labels: list[Any] = list(chain.from_iterable(orders))
    starts = row_starts(np.fromiter(map(len, orders), np.int64, len(orders)))
    places = count_places(starts)

    def where_label(index: int) -> str:
        return where(int(np.searchsorted(starts, index, side="right")) - 1)

    refuse_empty(starts, where)
    if any(issubclass(kind, TIE_TYPES) for kind in set(map(type, labels))):
        ties = [
            (entry,) if type(entry) is str or not isinstance(entry, TIE_TYPES) else entry
            for entry in labels
        ]
        sizes = np.fromiter(map(len, ties), np.int64, len(ties))
        if not sizes.all():
            index = int(np.argmin(sizes))
            rule = f"is empty at place {places[index] + 1}"
            raise InputError("tie", NO_VALUE, rule, where=where_label(index))
        starts, places = row_starts(sizes)[starts], np.repeat(places, sizes)
        labels = list(chain.from_iterable(ties))
    names, codes = encode_names(labels, items, where_label)
    return names, validate_entries(Entries(codes, places, starts), names, where)


def split_targets(
    orders: Mapping[str, Order | Sequence[Order]],
) -> tuple[list[Order], list[str]]:
    """The orders in a dict, each with its target.

    A value whose entries are all lists has several orders.
    """
    lists: list[Order] = []
    targets: list[str] = []
    for target, value in orders.items():
        if not isinstance(value, LIST_TYPES):
            raise InputError("orders", value, "must be a list of names", where=f"target {target!r}")
        are_lists = len(value) > 0 and all(isinstance(one, LIST_TYPES) for one in value)
        several = cast("list[Order]", list(value) if are_lists else [value])
        lists += several
        targets += [target] * len(several)
    return lists, targets


def refuse_empty(starts: NDArray[np.int64], where: Where) -> None:
    """Raise for the first list that is empty."""
    if np.any(sizes := np.diff(starts) == 0):
        raise InputError("ranking", NO_VALUE, "is empty", where=where(int(np.argmax(sizes))))


def validate_entries(entries: Entries, items: tuple[str, ...], where: Where) -> Entries:
    """Number the places; raise for an empty ranking, or an item that is listed twice in one."""
    refuse_empty(entries.starts, where)
    cells = np.sort(entries.rows * len(items) + entries.codes)
    twice = np.flatnonzero(cells[1:] == cells[:-1])
    if twice.size:
        row, code = divmod(int(cells[twice[0]]), len(items))
        raise InputError("item", items[code], "is listed more than once", where=where(row))
    return entries.renumber()


def warn_of_votes(entries: Entries, names: tuple[str, ...]) -> None:
    """Warn if lists are short and name different items: they may compare only these."""
    sizes = entries.sizes
    if len(sizes) > 1 and sizes.min() >= 2 and 2 * sizes.max() < len(names):
        warnings.warn(
            f"these lists name at most {sizes.max()} of {len(names)} items, and not the same "
            "ones. Items that a list does not name are placed after it. If they were not compared, "
            'pass kind="subset"; if they were, name all items with items=',
            stacklevel=3,
        )


# ---- Columns: one value per ranking


class Columns(TypedDict, total=False):
    """What stands beside rankings, as `Rankings.from_orders` describes it."""

    targets: Labels
    sources: Labels
    raters: Labels
    weights: ArrayLike | None
    kind: Kind | Sequence[Kind]
    where: Where


def validate_columns(
    n: int,
    targets: Labels = None,
    sources: Labels = None,
    raters: Labels = None,
    weights: ArrayLike | None = None,
    kind: Kind | Sequence[Kind] = "top",
    where: Where = describe_row,
) -> tuple[Column, Column, Column, Column, Column]:
    """Validated columns of ``n`` rankings: subset, weight, target, source, rater."""
    kinds = [kind] if isinstance(kind, str) else require_one_each(kind, n, "kind")
    rule = "must be 'top' or 'subset'"
    refuse_first("kind", kinds, ("top", "subset").__contains__, rule, where)
    values = [] if weights is None else require_one_each(weights, n, "weights")
    refuse_first("weights", values, _is_weight, "must be a finite number of 0 or more", where)
    return (
        np.broadcast_to(np.array([value == "subset" for value in kinds], bool), n).copy(),
        np.ones(n) if weights is None else np.array(values, np.float64),
        _label_column(targets, n, "targets", where),
        _label_column(sources, n, "sources", where),
        _label_column(raters, n, "raters", where),
    )


def as_list(values: object, what: str) -> list[Any]:
    """List of values; masked cells are refused, because what they stand for is unknown."""
    if isinstance(values, (str, set, frozenset)) or not isinstance(values, Iterable):
        raise InputError(what, values, "must be a list")
    refuse_masked(what, values)
    return values.tolist() if isinstance(values, np.ndarray) else list(values)


def require_one_each(values: object, n: int, what: str) -> list[Any]:
    """List of values, one per ranking."""
    entries = as_list(values, what)
    if len(entries) != n:
        rule = f"must have one entry for each of {n} rankings, not {len(entries)} entries"
        raise InputError(what, NO_VALUE, rule)
    return entries


def require_lengths(k: int | NDArray[np.int64], n: int, n_items: int) -> NDArray[np.int64]:
    """K for each of ``n`` rankings, from one number for all or one for each."""
    if np.ndim(k) == 0:
        return np.full(n, require_whole_number("k", cast("int", k), most=n_items))
    lengths = require_one_each(k, n, "k")
    rule = f"must be a whole number from 1 to {n_items}"
    refuse_first("k", lengths, lambda x: isinstance(x, int) and 1 <= x <= n_items, rule)
    return np.array(lengths, np.int64)


def _is_weight(value: Any) -> bool:
    # NumPy would also convert text and truth values.
    is_number = isinstance(value, (float, int, np.number)) and not isinstance(value, bool)
    return is_number and bool(0 <= value <= LARGEST_WEIGHT)


def _label_column(labels: Labels, n: int, what: str, where: Where) -> NDArray[np.object_]:
    if labels is None or isinstance(labels, str):
        return np.full(n, labels, object)
    values = require_one_each(labels, n, what)
    rule = "must be whole numbers or text that is not empty"
    refuse_first(what, values, lambda x: x is None or as_name(x) is not None, rule, where)
    return np.array([None if label is None else as_name(label) for label in values], object)


def distinct_values(labels: NDArray[np.object_]) -> tuple[str, ...]:
    """Labels that occur, sorted."""
    return tuple(sorted(set(labels.tolist()) - {None}))


def number_labels(labels: NDArray[np.object_]) -> NDArray[np.int64]:
    """Give each label a number, from 1 and sorted by name; 0 for no label."""
    distinct, codes = number_distinct(labels.tolist())
    number = {name: i for i, name in enumerate(sorted({*distinct} - {None}), 1)}
    return np.array([number.get(name, 0) for name in distinct], np.int64)[codes]


# ---- Tables of numbers: positions, scores and item numbers


def read_item_table(
    values: object, items: Iterable[object] | None, what: str, *, square: bool = False
) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Items, and a float matrix with one column for each.

    The columns of a data frame are matched by name, and in a square table also the rows, if an
    index of pandas names them. Without ``items``, its columns are the items.
    """
    frame = as_frame(values)
    if frame is not None:
        columns = as_names(frame.columns, f"the columns of {what}")
        names = columns if items is None else as_names(items)
        table = np.asarray(frame_to_matrix(frame), np.float64)
        table = table[:, _match_names(columns, names, f"the columns of {what}")]
    elif items is None:
        raise InputError("items", NO_VALUE, f"must name the columns of {what}")
    else:
        names = as_names(items)
        refuse_masked(what, values)
        try:
            table = np.atleast_2d(np.asarray(values, dtype=np.float64))
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(what, NO_VALUE, f"must be a table of numbers ({error})") from None
    C = len(names)
    if table.ndim != 2 or table.shape[1] != C or (square and len(table) != C):
        lines = "row and one column" if square else "column"
        rule = f"must have one {lines} for each of the {C} items, not shape {table.shape}"
        raise InputError(what, NO_VALUE, rule)
    if frame is not None and square:
        import narwhals.stable.v2 as nw  # noqa: PLC0415 (only for data frames)

        index: Any = nw.maybe_get_index(frame)
        numbered = index is None or list(index) == list(range(C))
        rows = columns if numbered else as_names(index, f"the index of {what}")
        table = table[_match_names(rows, names, f"the rows of {what}")]
    return names, table


def _match_names(columns: tuple[str, ...], names: tuple[str, ...], what: str) -> list[int]:
    """Position of each name; an error if the names are not the same."""
    if {*columns} != {*names}:
        differing = quote_names(sorted({*columns} ^ {*names}))
        raise InputError(what, NO_VALUE, f"must be the items, which differ in {differing}")
    place = {name: j for j, name in enumerate(columns)}
    return [place[name] for name in names]


def refuse_cells(
    bad: NDArray[np.bool_],
    table: NDArray[np.float64],
    names: tuple[str, ...],
    what: str,
    rule: str,
) -> None:
    """Raise for the first bad cell of a table, naming its row, its item and its value."""
    for row, column in np.argwhere(bad).tolist():
        where = f"ranking {row}, item {names[column]!r}"
        raise InputError(what, float(table[row, column]), rule, where=where)


def rank_cells(table: NDArray[np.float64], placed: NDArray[np.bool_]) -> Entries:
    """Rank the ``placed`` cells of each row, the smallest number first; equal ones are tied."""
    rows, codes = np.nonzero(placed)
    return rank_entries(rows, codes, table[placed], len(table))


def rank_entries(
    rows: NDArray[np.integer], codes: NDArray[np.integer], values: Column, n: int
) -> Entries:
    """Rank the items of ``n`` rows, the smallest value first; equal values are tied."""
    starts = row_starts(np.bincount(rows, minlength=n))
    refuse_empty(starts, describe_row)
    order = np.lexsort((values, rows))
    return Entries(codes[order].astype(np.int32), values[order], starts).renumber()


def encode_item_numbers(lists: ArrayLike, items: tuple[str, ...]) -> Entries:
    """Strict orders of a matrix of item numbers."""
    table = np.atleast_2d(require_whole_numbers("lists", lists))
    n, k = table.shape
    outside = np.argwhere((table < 0) | (table >= len(items)))
    for row, column in outside.tolist():
        rule = "is not the number of an item"
        raise InputError("lists", int(table[row, column]), rule, where=f"ranking {row}")
    places = np.tile(np.arange(k, dtype=np.int32), n)
    entries = Entries(table.astype(np.int32).ravel(), places, np.arange(n + 1) * k)
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


def encode_pairs(
    winners: Iterable[object],
    losers: Iterable[object],
    items: Iterable[object] | None,
    ties: ArrayLike | None,
) -> tuple[tuple[str, ...], Entries]:
    """Names of the items, and the pairs as arrays."""
    sides = [as_list(winners, "winners"), as_list(losers, "losers")]
    n = len(sides[0])
    require_one_each(sides[1], n, "losers")
    names, codes = encode_names(sides[0] + sides[1], items, lambda i: describe_pair(i % n))
    values = [False] * n if ties is None else require_one_each(ties, n, "ties")
    is_truth = lambda x: isinstance(x, (bool, np.bool_))  # noqa: E731
    refuse_first("ties", values, is_truth, "must be True or False", describe_pair)
    entries = stack_pairs(codes[:n], codes[n:], np.array(values, bool))
    return names, validate_entries(entries, names, describe_pair)


def stack_pairs(
    winners: NDArray[np.integer], losers: NDArray[np.integer], ties: NDArray[np.bool_]
) -> Entries:
    """Pairs as lists of two items; the two are tied where ``ties`` is true."""
    codes = np.stack([winners, losers], axis=1).astype(np.int32)
    places = np.stack([np.zeros(ties.size, bool), ~ties], axis=1).astype(np.int32)
    return Entries(codes.ravel(), places.ravel(), 2 * np.arange(ties.size + 1)).renumber()


def list_counts(
    wins: object, items: Iterable[object] | None, ties: object
) -> tuple[tuple[str, ...], NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Items, and the winner, the loser and the number of each count, those of ties last."""
    names, won = read_item_table(wins, items, "wins", square=True)
    tied = np.zeros_like(won)
    if ties is not None:
        tied = read_item_table(ties, names, "ties", square=True)[1]
        if (odd := tied != tied.T).any():
            i, j = np.argwhere(odd)[0]
            where = f"{names[i]!r} and {names[j]!r}"
            raise InputError("ties", float(tied[i, j]), "the table must be symmetric", where=where)
    first, second = np.nonzero(np.triu(tied))
    winners, losers = np.nonzero(won)
    counts = np.append(won[winners, losers], tied[first, second])
    return names, np.append(winners, first), np.append(losers, second), counts

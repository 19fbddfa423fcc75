"""`Rankings`: many rankings of named items in one immutable value."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import TypeVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import (
    NO_VALUE,
    InputError,
    format_count,
    quote_names,
    suggest_name,
)
from rankshot.core.validation import as_names, require_whole_number
from rankshot.ranking import construction
from rankshot.ranking.construction import (
    Column,
    Columns,
    Entries,
    Groups,
    Kind,
    Labels,
    Order,
    Where,
    describe_row,
    find_first,
)

T = TypeVar("T")
ROWS_SHOWN = 6
PLACES_SHOWN = 8
MOST_SAMPLES = 2**31
"""Rankings that are drawn at once."""


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Rankings of C named items: full, top-K or of a subset, with ties and weights.

    Build one with `from_orders`, `from_positions`, `from_scores` or `from_pairs`, or read a file
    with `read_rankings`. The arrays are read-only; every method returns a new value.

    A *top-K* ranking orders its first K items and puts all others of ``items`` after them, in
    unspecified order. A *subset* ranking compares only the items that it lists and contains no
    information about the others. A *tie* means that the order of its items is unknown, and every
    order is equally likely. A tie that K cuts (two of three tied items belong to the first K, but
    it is unknown which) is kept whole, and ``lengths`` is the number of items that belong to the
    first K.

    Attributes
    ----------
    items : tuple of str
        What is ranked.
    codes, places, starts : ndarray
        Row ``i`` lists the items of numbers ``codes[starts[i]:starts[i + 1]]``, best first, at
        ``places`` 0, 1, 2, …; equal places are tied.
    lengths : ndarray
        K of each ranking: how many of its items are ordered before the rest.
    is_subset : ndarray of bool
        True for a subset ranking.
    weights : ndarray
        The weight of each ranking.
    targets, sources, raters : ndarray of str or None
        What each ranking describes, where it came from, who gave it.

    Examples
    --------
    >>> import rankshot as rs
    >>> animals = ["leopard", "tiger", "lion", "fox", "whale"]
    >>> rs.Rankings.from_orders(
    ...     [["leopard", ["tiger", "lion"], "fox"], ["lion", "tiger"]],
    ...     items=animals, targets="cat")
    Rankings: 2 rankings of 5 items, 1 target
      cat: leopard > tiger = lion > fox
      cat: lion > tiger
    """

    items: tuple[str, ...]
    codes: NDArray[np.int32]
    places: NDArray[np.int32]
    starts: NDArray[np.int64]
    lengths: NDArray[np.int64]
    is_subset: NDArray[np.bool_]
    weights: NDArray[np.float64]
    targets: NDArray[np.object_]
    sources: NDArray[np.object_]
    raters: NDArray[np.object_]

    def __post_init__(self) -> None:
        for field in fields(self)[1:]:
            getattr(self, field.name).flags.writeable = False

    @classmethod
    def from_orders(
        cls,
        orders: Iterable[Order] | Mapping[str, Order | Sequence[Order]],
        *,
        items: Iterable[object] | None = None,
        targets: Labels = None,
        sources: Labels = None,
        raters: Labels = None,
        weights: ArrayLike | None = None,
        kind: Kind | Sequence[Kind] = "top",
        where: Where = describe_row,
    ) -> Rankings:
        """Build from lists of names, best first; a tie is a list inside the list.

        Parameters
        ----------
        orders : iterable of lists, or dict
            For example ``[["leopard", ["tiger", "lion"], "fox"]]``. The keys of a dict are targets:
            its values are one list of names each, ``{"cat": ["leopard", "tiger"]}``, or several
            lists, ``{"cat": [["leopard", "tiger"], ["lion", "tiger"]]}``.
        items : iterable of names, optional
            All items that could be ranked. By default those that occur, sorted by name; items that
            no ranking lists are then unknown.
        targets, sources, raters : list of str, or one str for all, optional
            What each ranking describes, where it came from, who gave it.
        weights : array-like, optional
            The weight of each ranking; 1 by default.
        kind : {"top", "subset"}, or one for each ranking
            Whether items that are not listed come after the listed ones, or were not compared.
        where : callable, optional
            ``where(i)`` returns the name of row ``i`` for error messages.
        """
        if isinstance(orders, Mapping):
            if targets is not None:
                raise InputError("targets", NO_VALUE, "are the keys of the dict of orders")
            orders, targets = construction.split_targets(orders)
        names, entries = construction.encode_orders(list(orders), items, where)
        if items is None and targets is None and kind == "top":
            construction.warn_of_votes(entries, names)
        n = entries.sizes.size
        metadata = construction.validate_columns(n, targets, sources, raters, weights, kind, where)
        return cls._assemble(names, entries, metadata)

    @classmethod
    def from_positions(
        cls,
        positions: ArrayLike,
        *,
        items: Iterable[object] | None = None,
        **columns: Unpack[Columns],
    ) -> Rankings:
        """Build from ``positions``: 1 is best, equal ones are tied, 0 or NaN is not listed.

        Parameters
        ----------
        positions : array-like or data frame of shape (rankings, items)
        items : iterable of names, optional
            The items of the columns; those of a data frame are matched by name.
        **columns
            ``targets``, ``sources``, ``raters``, ``weights``, ``kind`` and ``where``, as in
            `from_orders`.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> Rankings.from_positions([[2, 1, 0, 1]], items=list("abcd"))
        Rankings: 1 ranking of 4 items
          b = d > a
        """
        names, table = construction.read_item_table(positions, items, "positions")
        metadata = construction.validate_columns(len(table), **columns)
        # A subset ranking of all items but one also has such positions.
        construction.warn_of_counting_from_zero(table[~metadata[0]])
        bad, rule = np.isinf(table) | (table < 0), "must be 0 (not listed) or more"
        construction.refuse_cells(bad, table, names, "positions", rule)
        return cls._assemble(names, construction.rank_cells(table, table > 0), metadata)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        *,
        items: Iterable[object] | None = None,
        k: int | None = None,
        **columns: Unpack[Columns],
    ) -> Rankings:
        """Rank the items of each row of ``scores``, largest first; equal scores are tied.

        ``k`` keeps the first k items, as in `top`. With ``kind="subset"``, items with NaN were not
        compared. The columns of a data frame are matched with ``items`` by name, and are the items
        by default. The other parameters are those of `from_orders`.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> Rankings.from_scores([[.1, .7, .7, .3]], items=list("abcd"), k=3)
        Rankings: 1 ranking of 4 items
          b = c > d
        >>> Rankings.from_scores([[5, float("nan"), 3]], items=list("abc"), kind="subset")
        Rankings: 1 ranking of 3 items
          a > c (subset)
        """
        names, table = construction.read_item_table(scores, items, "scores")
        metadata = construction.validate_columns(len(table), **columns)
        placed = ~np.isnan(table)
        rule = 'must be numbers (with kind="subset", nan is an item that was not compared)'
        construction.refuse_cells(~placed & ~metadata[0][:, None], table, names, "scores", rule)
        full = cls._assemble(names, construction.rank_cells(-table, placed), metadata)
        return full if k is None else full.top(k)

    @classmethod
    def from_item_numbers(cls, lists: NDArray[np.integer], *, items: Iterable[object]) -> Rankings:
        """Build from ``lists``, a matrix of item numbers, best first.

        Examples
        --------
        >>> import numpy as np
        >>> from rankshot import Rankings
        >>> Rankings.from_item_numbers(np.array([[2, 0]]), items=["a", "b", "c"])
        Rankings: 1 ranking of 3 items
          c > a
        """
        names = as_names(items)
        entries = construction.encode_item_numbers(lists, names)
        return cls._assemble(names, entries, construction.validate_columns(entries.sizes.size))

    @classmethod
    def from_pairs(
        cls,
        winners: Iterable[object],
        losers: Iterable[object],
        *,
        items: Iterable[object] | None = None,
        ties: ArrayLike | None = None,
        **columns: Unpack[Columns],
    ) -> Rankings:
        """Build from comparisons of two items: subset rankings, one for each pair.

        Each of the ``winners`` was preferred to the corresponding one of the ``losers``. Where
        ``ties`` is true, the two items are tied, and it does not matter which of them is listed as
        the winner. ``items`` are by default those that occur, sorted by name. The other parameters
        are those of `from_orders`.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> Rankings.from_pairs(["a", "b"], ["b", "c"], ties=[False, True])
        Rankings: 2 rankings of 3 items
          a > b (subset)
          b = c (subset)
        """
        names, entries = construction.encode_pairs(winners, losers, items, ties)
        pairs: Columns = {"kind": "subset", "where": construction.describe_pair, **columns}
        metadata = construction.validate_columns(entries.sizes.size, **pairs)
        return cls._assemble(names, entries, metadata)

    @classmethod
    def from_pair_counts(
        cls,
        wins: ArrayLike,
        *,
        items: Iterable[object] | None = None,
        ties: ArrayLike | None = None,
    ) -> Rankings:
        """Build from tables of counts: ``wins[i, j]`` is how often item i was preferred to j.

        ``ties[i, j]``, equal to ``ties[j, i]``, is how often the two tied. Each nonzero count
        becomes one pair with that weight. The columns of a data frame, and the pandas index, are
        matched with ``items`` by name, and are the items by default.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> Rankings.from_pair_counts([[0, 3], [1, 0]], ties=[[0, 2], [2, 0]], items=["a", "b"])
        Rankings: 3 rankings of 2 items
          a > b (subset, weight 3)
          b > a (subset)
          a = b (subset, weight 2)
        """
        names, first, second, counts = construction.list_counts(wins, items, ties)
        pairs = np.array(names, object)[np.stack([first, second])]
        is_tie = np.arange(counts.size) >= np.count_nonzero(wins)
        return cls.from_pairs(*pairs, items=names, ties=is_tie, weights=counts)

    @classmethod
    def _assemble(
        cls, items: tuple[str, ...], entries: Entries, metadata: tuple[Column, ...]
    ) -> Rankings:
        """Rankings whose first K are all that they list."""
        return cls(items, *entries, entries.sizes, *metadata)

    @property
    def n_items(self) -> int:
        """C: how many items there are."""
        return len(self.items)

    @property
    def n_listed(self) -> NDArray[np.int64]:
        """The number of items that each ranking lists, including all items of a cut tie."""
        return self.lists.sizes

    @property
    def n_compared(self) -> NDArray[np.int64]:
        """The number of items that each ranking compares: all of them, or those of a subset."""
        return np.where(self.is_subset, self.n_listed, self.n_items)

    @property
    def has_ties(self) -> bool:
        """Whether any ranking has ties."""
        return bool(self.rows_with_ties.any())

    @property
    def rows_with_ties(self) -> NDArray[np.bool_]:
        """Which rankings have ties."""
        return np.asarray(self.places[self.starts[1:] - 1] + 1 < self.n_listed)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The targets that occur, sorted."""
        return construction.distinct_values(self.targets)

    @property
    def source_names(self) -> tuple[str, ...]:
        """The sources that occur, sorted."""
        return construction.distinct_values(self.sources)

    @property
    def rater_names(self) -> tuple[str, ...]:
        """The raters that occur, sorted."""
        return construction.distinct_values(self.raters)

    @property
    def lists(self) -> Entries:
        """The items and places of all rankings, as ragged rows."""
        return Entries(self.codes, self.places, self.starts)

    @property
    def groups(self) -> Groups:
        """The groups of tied items of all rankings; an item that is not tied is a group of one."""
        return self.lists.find_groups(self.lengths)

    @property
    def entry_rows(self) -> NDArray[np.int64]:
        """The row that owns each entry."""
        return self.lists.rows

    def orders(self) -> list[list[str | list[str]]]:
        """Rankings as lists of names, best first, ties as lists inside the lists."""
        names = np.array(self.items, dtype=object)[self.codes].tolist()
        places = self.places.tolist()
        orders: list[list[str | list[str]]] = []
        for begin, end in pairwise(self.starts.tolist()):
            groups: list[list[str]] = [[] for _ in range(places[end - 1] + 1)]
            for name, place in zip(names[begin:end], places[begin:end], strict=True):
                groups[place].append(name)
            orders.append([group[0] if len(group) == 1 else group for group in groups])
        return orders

    def positions(self) -> NDArray[np.int32]:
        """Place of every item in every ranking, from 1; 0 where it is not listed."""
        positions = np.zeros((len(self), self.n_items), np.int32)
        positions[self.entry_rows, self.codes] = self.places + 1
        return positions

    def __len__(self) -> int:
        return self.starts.size - 1

    def __iter__(self) -> Iterator[Rankings]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: int | slice | Column) -> Rankings:
        """Select rankings by number, slice, index array or mask; always returns `Rankings`."""
        index = np.atleast_1d(np.arange(len(self))[rows])
        entries = self.lists.take(index)
        return Rankings(self.items, *entries, *(column[index] for column in self._columns()))

    def _columns(self) -> tuple[Column, ...]:
        """Fields that have one value per ranking."""
        return tuple(getattr(self, field.name) for field in fields(self)[4:])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rankings):
            return NotImplemented
        return self.items == other.items and all(
            np.array_equal(getattr(self, field.name), getattr(other, field.name))
            for field in fields(self)[1:]
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Summary line and the first rankings, one per line."""
        counts = [f"{format_count(len(self), 'ranking')} of {format_count(self.n_items, 'item')}"]
        for what in ("target", "source", "rater"):
            n = len(getattr(self, f"{what}_names"))
            counts += [format_count(n, what)] if n else []
        first = self[:ROWS_SHOWN]
        lines = [f"Rankings: {', '.join(counts)}", *map(_format_ranking, first)]
        if len(self) > len(first):
            lines.append(f"  … and {len(self) - len(first):,} more")
        return "\n".join(lines)

    def select(
        self, *, target: str | None = None, source: str | None = None, rater: str | None = None
    ) -> Rankings:
        """Keep the rankings with the given ``target``, ``source`` and ``rater``."""
        keep = np.ones(len(self), bool)
        for what, wanted in (("target", target), ("source", source), ("rater", rater)):
            if wanted is None:
                continue
            labels = getattr(self, f"{what}s")
            labels_present = construction.distinct_values(labels)
            if wanted not in labels_present:
                rule = f"does not occur{suggest_name(wanted, labels_present)}"
                raise InputError(what, wanted, rule)
            keep &= labels == wanted
        return self[keep]

    def by_target(self) -> Mapping[str, Rankings]:
        """Rankings of each target, in the order of `target_names`."""
        return {target: self.select(target=target) for target in self.target_names}

    def top(self, k: int | NDArray[np.int64]) -> Rankings:
        """Keep the first ``k`` items of each ranking; a tie that k cuts is kept whole.

        The later items of a subset ranking are kept, tied last, because they were compared. ``k``
        may be an array with one number per ranking.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> r = Rankings.from_orders([["a", ["b", "c"], "d"]], items=list("abcde")).top(2)
        >>> r, r.lengths
        (Rankings: 1 ranking of 5 items
          a > b = c (first 2), array([2]))
        """
        lengths = np.minimum(self.lengths, construction.require_lengths(k, len(self), self.n_items))
        lists = self.lists.cut(lengths, keep_rest=self.is_subset)
        return replace(self, lengths=lengths, **lists._asdict())

    def unique(self) -> Rankings:
        """Merge equal rankings of the same target and add their weights.

        Sources and raters are dropped, because a merged ranking can have several. Rankings are in
        the order of their first occurrence.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> votes = Rankings.from_orders([["a", "b"], ["b"], ["a", "b"]], items=list("abc"))
        >>> votes.unique().weights
        array([2., 1.])
        """
        merged, _ = merge_copies(self, construction.number_labels(self.targets))
        nobody = np.full(len(merged), None, object)
        return replace(merged, sources=nobody, raters=nobody.copy())

    def with_items(self, items: Iterable[object]) -> Rankings:
        """Same rankings with the items numbered in another order."""
        names = as_names(items)
        if odd := sorted({*names} ^ {*self.items}):
            rule = f"must be those of these rankings, which differ in {quote_names(odd, 3)}"
            hint = "give them the same items= when they are built or read"
            raise InputError("items", NO_VALUE, rule, hint=hint)
        return self.change_items(names)

    def change_items(self, items: tuple[str, ...], where: Where = describe_row) -> Rankings:
        """Same lists over other items, which must include all that are listed.

        This changes the meaning of a top-K ranking: it now places its items before other items.
        `with_items` changes only the order in which the items are numbered.
        """
        if items == self.items:
            return self

        def where_entry(entry: int) -> str:
            return where(int(self.entry_rows[entry]))

        _, codes = construction.number_items([*self.items], self.codes, items, where_entry)
        codes = self.lists._replace(codes=codes).renumber().codes
        return replace(self, items=items, codes=codes)

    @staticmethod
    def concatenate(parts: Iterable[Rankings]) -> Rankings:
        """Join ``parts``, rankings over the same items, into one value."""
        parts = list(parts)
        if not parts or not all(isinstance(part, Rankings) for part in parts):
            raise InputError("rankings", parts, "must be a list of Rankings")
        aligned = [part.with_items(parts[0].items) for part in parts]
        columns = [
            np.concatenate(column) for column in zip(*(p._columns() for p in aligned), strict=True)
        ]
        lists = Entries.concatenate([part.lists for part in aligned])
        return Rankings(parts[0].items, *lists, *columns)


def _format_ranking(one: Rankings) -> str:
    """Line of one ranking: its target, its order, and what is special about it."""
    [order], target = one.orders(), one.targets[0]
    groups = [[group] if isinstance(group, str) else group for group in order]
    text = _join_first([_join_first(group, " = ") for group in groups], " > ")
    remarks = [f"first {one.lengths[0]}"] if one.lengths[0] < one.n_listed[0] else []
    remarks += ["subset"] if one.is_subset[0] else []
    remarks += [f"weight {one.weights[0]:g}"] if one.weights[0] != 1 else []
    return f"  {'' if target is None else f'{target}: '}{text}" + (
        f" ({', '.join(remarks)})" if remarks else ""
    )


def _join_first(texts: list[str], sign: str) -> str:
    return sign.join([*texts[:PLACES_SHOWN], *["…"] * (len(texts) > PLACES_SHOWN)])


def require_rankings(value: object) -> Rankings:
    """The rankings that a caller passes: `Rankings`, or a dict of lists (see `from_orders`)."""
    if isinstance(value, Mapping):
        return Rankings.from_orders(value)
    if not isinstance(value, Rankings):
        hint = "make them with Rankings.from_orders, from_positions or from_scores"
        rule = "must be Rankings, or a dict of lists of names"
        raise InputError("rankings", value, rule, hint=hint)
    return value


# ---- Checks before rankings are merged or fitted, and what is first asked of them


def require_some(rankings: object) -> Rankings:
    """Rankings, of which some count; a dict of lists becomes `Rankings`."""
    some = require_rankings(rankings)
    if not some.weights.sum() > 0:
        raise InputError("rankings", NO_VALUE, "must have a ranking of positive weight")
    return some


def require_one_subject(rankings: object) -> Rankings:
    """Rankings to merge, of which some count; warn if they have several targets."""
    some = require_some(rankings)
    if len(some.target_names) > 1:
        warnings.warn(
            "rankings of several targets are merged into one: "
            f"{quote_names(some.target_names, 4)}. Use select(target=...) or by_target()",
            stacklevel=3,
        )
    return some


def refuse_partial(rankings: Rankings, why: str) -> None:
    """Raise for the first ranking that compares only some of the items."""
    partial = rankings.n_compared < rankings.n_items
    if partial.any():
        where = describe_ranking(rankings, int(partial.argmax()))
        rule = "must compare all items, but this one compares only a subset"
        raise InputError("rankings", NO_VALUE, rule, where=where, hint=why)


def describe_ranking(rankings: Rankings, row: int) -> str:
    """The name of a ranking in an error: its number, its target and who gave it."""
    target, origin = rankings.targets[row], rankings.raters[row] or rankings.sources[row]
    what = f"ranking {row}"
    what += "" if target is None else f" of {target!r}"
    return what + ("" if origin is None else f" by {origin!r}")


def require_model(model: T) -> T:
    """A model that can be fitted."""
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "get_params")):
        raise InputError("model", model, "must be a model like PlackettLuce()")
    return model


def require_sample_length(n: int, k: int | None, n_items: int) -> int:
    """The length of the lists that a sampler draws, after a check of both numbers."""
    require_whole_number("n", n, most=MOST_SAMPLES)
    return n_items if k is None else require_whole_number("k", k, most=n_items)


def keep_counted(rankings: Rankings) -> Rankings:
    """Rankings without those of weight 0; not a copy if there are none."""
    return rankings if np.all(rankings.weights > 0) else rankings[rankings.weights > 0]


def has_pairs(rankings: Rankings) -> bool:
    """Whether there are two rankings to compare: one of weight 2 counts as two."""
    largest = rankings.weights.max(initial=0)
    return bool(rankings.weights.sum() > largest or largest > 1)


def are_votes(rankings: Rankings) -> bool:
    """Whether all rankings are votes between two items."""
    return bool(np.all(rankings.is_subset & (rankings.n_listed == 2)))


def merge_copies(rankings: Rankings, *columns: Column) -> tuple[Rankings, NDArray[np.intp]]:
    """Add up the weights of equal rankings with equal ``columns``; also the number of each.

    Rankings are in the order of their first occurrence.
    """
    number = rankings.lists.number_equal_rows([*columns, rankings.lengths, rankings.is_subset])
    first = find_first(number)
    by_first = np.argsort(first)
    number = np.argsort(by_first)[number]
    if first.size == len(rankings):
        return rankings, number
    weights = np.bincount(number, rankings.weights).astype(float)
    return replace(rankings[first[by_first]], weights=weights), number

"""`Rankings`: many rankings of named items in one immutable value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankshot.core.errors import RankshotError, format_count, short_repr, suggest_name
from rankshot.core.validation import as_names
from rankshot.ranking.construction import (
    Kind,
    Labels,
    Order,
    Where,
    collect_items,
    describe_pair,
    describe_row,
    different_items_error,
    distinct_values,
    encode_item_numbers,
    encode_orders,
    encode_pair_counts,
    encode_pairs,
    encode_positions,
    number_labels,
    rank_numbers,
    recode_items,
    refuse_cells,
    require_lengths,
    require_number_table,
    validate_columns,
    validate_entries,
    warn_of_counting_from_zero,
)
from rankshot.ranking.entries import Entries, find_first


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Rankings of C named items: full, top-K or of a subset, with ties and weights.

    Build one with `from_orders`, `from_positions`, `from_scores` or `from_pairs`, or read a file
    with `read_rankings`. The arrays are read-only; every method returns a new value.

    A *top-K* ranking orders its first K items and puts all others of ``items`` after them, in
    no order. A *subset* ranking compares only the items it lists and says nothing of the
    others. A *tie* means that the order of its items is unknown, and every order is equally
    likely. A tie that K cuts (two of three tied items belong to the first K, but it is unknown
    which) is kept whole, and ``lengths`` says how many of the listed items count.

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
        How often each ranking counts.
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

    def __reduce__(self) -> tuple[type[Rankings], tuple[Any, ...]]:
        """Copy through the constructor, so that the arrays of a copy are read-only, too."""
        return Rankings, tuple(getattr(self, field.name) for field in fields(self))

    @classmethod
    def from_orders(
        cls,
        orders: Iterable[Order],
        *,
        items: Iterable[Any] | None = None,
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
        orders : iterable of lists
            For example ``[["leopard", ["tiger", "lion"], "fox"]]``.
        items : iterable of names, optional
            All items that could be ranked. By default those that occur, sorted by name: then
            an item that no ranking lists does not exist.
        targets, sources, raters : list of str, or one str for all, optional
            What each ranking describes, where it came from, who gave it.
        weights : array-like, optional
            How often each ranking counts; 1 by default.
        kind : {"top", "subset"}, or one for each ranking
            Whether items that are not listed come after the listed ones, or were not compared.
        where : callable, optional
            ``where(i)`` is how an error message names row ``i``.
        """
        if not isinstance(orders, Iterable):
            raise RankshotError(f"orders must be a list of rankings, not {short_repr(orders)}")
        orders = list(orders)
        names = as_names(items) if items is not None else collect_items(orders, where)
        entries = encode_orders(orders, names, where)
        beside = validate_columns(len(orders), targets, sources, raters, weights, kind, where)
        return cls(names, *entries, entries.sizes, *beside)

    @classmethod
    def from_positions(
        cls,
        positions: ArrayLike,
        *,
        items: Iterable[Any],
        targets: Labels = None,
        sources: Labels = None,
        raters: Labels = None,
        weights: ArrayLike | None = None,
        kind: Kind | Sequence[Kind] = "top",
    ) -> Rankings:
        """Build from the place of each item: 1 is best, equal places tie, 0 or nan is not listed.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> Rankings.from_positions([[2, 1, 0, 1]], items=list("abcd"))
        Rankings: 1 ranking of 4 items
          b = d > a
        """
        names = as_names(items)
        table = require_number_table(positions, len(names), "positions")
        beside = validate_columns(len(table), targets, sources, raters, weights, kind, describe_row)
        # A subset ranking of all items but one has such positions, too.
        warn_of_counting_from_zero(table[~beside[0]])
        refuse_cells(np.isinf(table) | (table < 0), table, names, "positions")
        entries = encode_positions(rank_numbers(positions, table), placed=table > 0)
        entries = validate_entries(entries, names, describe_row)
        return cls(names, *entries, entries.sizes, *beside)

    @classmethod
    def from_scores(
        cls,
        scores: ArrayLike,
        *,
        items: Iterable[Any],
        k: int | None = None,
        targets: Labels = None,
        sources: Labels = None,
        raters: Labels = None,
        weights: ArrayLike | None = None,
        kind: Kind | Sequence[Kind] = "top",
    ) -> Rankings:
        """Rank the items of each row by score, largest first; equal scores tie.

        ``k`` keeps the first k, as `top` does. With ``kind="subset"``, nan is not compared.

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
        names = as_names(items)
        table = require_number_table(scores, len(names), "scores")
        beside = validate_columns(len(table), targets, sources, raters, weights, kind, describe_row)
        placed = ~np.isnan(table)
        refuse_cells(~placed & ~beside[0][:, None], table, names, "scores")
        entries = encode_positions(-rank_numbers(scores, table), placed)
        if not placed.all():
            entries = validate_entries(entries, names, describe_row)
        full = cls(names, *entries, entries.sizes, *beside)
        return full if k is None else full.top(k)

    @classmethod
    def from_item_numbers(
        cls, lists: NDArray[Any], *, items: Iterable[Any], trusted: bool = False
    ) -> Rankings:
        """Build from a matrix of item numbers, best first, as computations make them.

        ``trusted`` skips the checks, for lists that are known to be right.

        Examples
        --------
        >>> import numpy as np
        >>> from rankshot import Rankings
        >>> Rankings.from_item_numbers(np.array([[2, 0]]), items=["a", "b", "c"])
        Rankings: 1 ranking of 3 items
          c > a
        """
        names = as_names(items)
        entries = encode_item_numbers(lists, names, trusted=trusted)
        return cls(names, *entries, entries.sizes, *validate_columns(entries.sizes.size))

    @classmethod
    def from_pairs(
        cls,
        winners: Iterable[Any],
        losers: Iterable[Any],
        *,
        items: Iterable[Any] | None = None,
        ties: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        raters: Labels = None,
        sources: Labels = None,
        targets: Labels = None,
        where: Where = describe_pair,
    ) -> Rankings:
        """Build from comparisons of two items: subset rankings, one for each pair.

        Where ``ties`` is true the two items are tied, and it does not matter which is called the
        winner. ``items`` are by default those that occur, sorted by name.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> Rankings.from_pairs(["a", "b"], ["b", "c"], ties=[False, True])
        Rankings: 2 rankings of 3 items
          a > b (subset)
          b = c (subset)
        """
        names, entries = encode_pairs(winners, losers, items, ties, where)
        sizes = entries.sizes
        beside = validate_columns(sizes.size, targets, sources, raters, weights, "subset", where)
        return cls(names, *entries, sizes, *beside)

    @classmethod
    def from_pair_counts(
        cls, wins: ArrayLike, *, items: Iterable[Any], ties: ArrayLike | None = None
    ) -> Rankings:
        """Build from tables of counts: ``wins[i, j]`` is how often item i was preferred to j.

        ``ties[i, j]``, equal to ``ties[j, i]``, is how often the two tied. Each count that is not
        zero becomes one pair of that weight.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> Rankings.from_pair_counts([[0, 3], [1, 0]], ties=[[0, 2], [2, 0]], items=["a", "b"])
        Rankings: 3 rankings of 2 items
          a > b (subset, weight 3)
          b > a (subset)
          a = b (subset, weight 2)
        """
        names, entries, weights = encode_pair_counts(wins, items, ties)
        beside = validate_columns(weights.size, weights=weights, kind="subset")
        return cls(names, *entries, entries.sizes, *beside)

    @property
    def n_items(self) -> int:
        """C: how many items there are."""
        return len(self.items)

    @property
    def n_listed(self) -> NDArray[np.int64]:
        """How many items each ranking lists, those of a cut tie included."""
        return np.diff(self.starts)

    @property
    def has_ties(self) -> bool:
        """Whether any items share a place."""
        return bool(self.rows_with_ties.any())

    @property
    def rows_with_ties(self) -> NDArray[np.bool_]:
        """In which rankings any items share a place."""
        return np.asarray(self.places[self.starts[1:] - 1] + 1 < self.n_listed)

    @property
    def target_names(self) -> tuple[str, ...]:
        """The targets that occur, sorted."""
        return distinct_values(self.targets)

    @property
    def source_names(self) -> tuple[str, ...]:
        """The sources that occur, sorted."""
        return distinct_values(self.sources)

    @property
    def rater_names(self) -> tuple[str, ...]:
        """The raters that occur, sorted."""
        return distinct_values(self.raters)

    @property
    def lists(self) -> Entries:
        """The items and places of all rankings, as ragged rows."""
        return Entries(self.codes, self.places, self.starts)

    @property
    def entry_rows(self) -> NDArray[np.int64]:
        """The row that owns each entry."""
        return self.lists.rows

    def orders(self) -> list[list[str | list[str]]]:
        """Return the rankings as lists of names, best first, ties as lists inside the lists."""
        return decode_orders(self.lists, self.items)

    def positions(self) -> NDArray[np.int32]:
        """Return the place of every item in every ranking, from 1; 0 where it is not listed."""
        positions = np.zeros((len(self), self.n_items), np.int32)
        positions[self.entry_rows, self.codes] = self.places + 1
        return positions

    def __len__(self) -> int:
        return self.starts.size - 1

    def __iter__(self) -> Iterator[Rankings]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: int | slice | NDArray[Any]) -> Rankings:
        """Select rankings by number, slice, index array or mask; always returns `Rankings`."""
        if isinstance(rows, slice) and rows.step in {None, 1}:
            return self._slice(*rows.indices(len(self))[:2])
        index = np.atleast_1d(np.arange(len(self))[rows])
        entries = self.lists.take(index)
        return Rankings(self.items, *entries, *(column[index] for column in self._columns()))

    def _slice(self, begin: int, end: int) -> Rankings:
        """Return rankings in a row, without copying: computations go through blocks of them."""
        end = max(begin, end)
        starts = self.starts[begin : end + 1]
        entries = slice(starts[0], starts[-1])
        columns = (column[begin:end] for column in self._columns())
        return Rankings(
            self.items, self.codes[entries], self.places[entries], starts - starts[0], *columns
        )

    def _columns(self) -> tuple[NDArray[Any], ...]:
        """Return the fields that have one value per ranking."""
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
        """Return a summary line and the first rankings, one per line."""
        return format_text(self._summary(), self._find_first(), len(self))

    def _repr_html_(self) -> str:
        """Return the same as a small table, for notebooks."""
        return format_html(self._summary(), self._find_first(), len(self))

    def _summary(self) -> str:
        labels = {"target": self.target_names, "source": self.source_names}
        return format_summary(len(self), self.n_items, {**labels, "rater": self.rater_names})

    def _find_first(self) -> list[tuple[str | None, str]]:
        """Return the targets and the text of the first rankings."""
        first = self[:ROWS_SHOWN]
        texts = format_rows(first.orders(), first.n_listed, *first._columns()[:3])
        return list(zip(first.targets, texts, strict=True))

    def select(
        self, *, target: str | None = None, source: str | None = None, rater: str | None = None
    ) -> Rankings:
        """Keep the rankings of one target, one source, one rater, or their intersection."""
        keep = np.ones(len(self), bool)
        for what, wanted in (("target", target), ("source", source), ("rater", rater)):
            if wanted is None:
                continue
            labels = getattr(self, f"{what}s")
            known = distinct_values(labels)
            if not isinstance(wanted, str) or wanted not in known:
                raise RankshotError(f"no {what} {short_repr(wanted)}{suggest_name(wanted, known)}")
            keep &= labels == wanted
        return self[keep]

    def by_target(self) -> Mapping[str, Rankings]:
        """Return the rankings of each target, in the order of `target_names`."""
        return {target: self.select(target=target) for target in self.target_names}

    def top(self, k: int | NDArray[np.int64]) -> Rankings:
        """Keep the first ``k`` items of each ranking; a tie that k cuts is kept whole.

        The later items of a subset ranking stay, tied last: they were compared, and came after.
        ``k`` may be an array with one number per ranking.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> r = Rankings.from_orders([["a", ["b", "c"], "d"]], items=list("abcde")).top(2)
        >>> r, r.lengths
        (Rankings: 1 ranking of 5 items
          a > b = c (first 2), array([2]))
        """
        lengths = np.minimum(self.lengths, require_lengths(k, len(self), self.n_items))
        codes, places, starts = self.lists.cut(lengths, keep_rest=self.is_subset)
        return replace(self, codes=codes, places=places, starts=starts, lengths=lengths)

    def unique(self) -> Rankings:
        """Merge equal rankings of the same target and add their weights.

        Sources and raters are dropped, as a merged ranking can have many. The order is that of
        the first of each set of equal rankings.

        Examples
        --------
        >>> from rankshot import Rankings
        >>> votes = Rankings.from_orders([["a", "b"], ["b"], ["a", "b"]], items=list("abc"))
        >>> votes.unique().weights
        array([2., 1.])
        """
        columns = [number_labels(self.targets), self.lengths, self.is_subset]
        first = find_first(number := self.lists.number_equal_rows(columns))
        weights = np.bincount(number, self.weights, minlength=first.size).astype(float)
        by_first = np.argsort(first)
        merged = self[first[by_first]]
        nobody = np.full(len(merged), None, object)
        return replace(merged, weights=weights[by_first], sources=nobody, raters=nobody.copy())

    def with_items(self, items: Iterable[Any]) -> Rankings:
        """Return the same rankings with the items numbered in another order."""
        if items is self.items:
            return self
        names = as_names(items)
        if names == self.items:
            return self
        if set(names) != set(self.items):
            raise different_items_error(names, self.items)
        return self.change_items(names)

    def change_items(self, items: tuple[str, ...], where: Where = describe_row) -> Rankings:
        """Return the same lists over other items, which must include all that are listed.

        This changes what a top-K ranking says: it then places its items before other items than
        it did. `with_items` changes only the order in which the items are numbered.
        """
        if items == self.items:
            return self
        return replace(self, items=items, codes=recode_items(self.lists, self.items, items, where))

    @staticmethod
    def concatenate(parts: Iterable[Rankings]) -> Rankings:
        """Join several values over the same items into one."""
        parts = list(parts) if isinstance(parts, Iterable) else [parts]
        if not parts:
            raise RankshotError("nothing to concatenate")
        for part in parts:
            if not isinstance(part, Rankings):
                raise RankshotError(f"expected Rankings to concatenate, not {short_repr(part)}")
        if len(parts) == 1:
            return parts[0]
        aligned = [part.with_items(parts[0].items) for part in parts]
        columns = [
            np.concatenate(column) for column in zip(*(p._columns() for p in aligned), strict=True)
        ]
        lists = Entries.concatenate([part.lists for part in aligned])
        return Rankings(parts[0].items, *lists, *columns)


# ---- What `Rankings` print


NamedOrders = list[list[str | list[str]]]
"""Items of each ranking, best first; a tie is a list inside the list."""
ROWS_SHOWN = 6
PLACES_SHOWN = 8


def decode_orders(entries: Entries, items: tuple[str, ...]) -> NamedOrders:
    """Translate arrays back into lists of names, ties as lists inside the lists."""
    names = np.array(items, dtype=object)[entries.codes].tolist()
    places = entries.places.tolist()
    orders: NamedOrders = []
    for begin, end in pairwise(entries.starts.tolist()):
        groups: list[list[str]] = [[] for _ in range(places[end - 1] + 1)]
        for name, place in zip(names[begin:end], places[begin:end], strict=True):
            groups[place].append(name)
        orders.append([group[0] if len(group) == 1 else group for group in groups])
    return orders


def format_text(summary: str, rows: Sequence[tuple[str | None, str]], n: int) -> str:
    """Return a summary line and the first of ``n`` rankings, one per line."""
    lines = [f"Rankings: {summary}"]
    lines += [f"  {text}" if target is None else f"  {target}: {text}" for target, text in rows]
    if n > len(rows):
        lines.append(f"  … and {n - len(rows):,} more")
    return "\n".join(lines)


def format_html(summary: str, rows: Sequence[tuple[str | None, str]], n: int) -> str:
    """Return the same as a small table, for notebooks."""
    cells = "".join(
        f"<tr><td>{escape(target or '')}</td><td>{escape(text)}</td></tr>" for target, text in rows
    )
    more = "<tr><td></td><td>…</td></tr>" if n > len(rows) else ""
    return (
        f"<table><caption>Rankings: {escape(summary)}</caption>"
        f"<thead><tr><th>target</th><th>ranking</th></tr></thead>"
        f"<tbody>{cells}{more}</tbody></table>"
    )


def format_summary(n: int, n_items: int, labels: Mapping[str, Sequence[str]]) -> str:
    """Return how many rankings, items, targets, sources and raters there are."""
    parts = [f"{format_count(n, 'ranking')} of {format_count(n_items, 'item')}"]
    parts += [format_count(len(names), what) for what, names in labels.items() if names]
    return ", ".join(parts)


def format_rows(
    orders: NamedOrders,
    n_listed: NDArray[np.int64],
    lengths: NDArray[np.int64],
    is_subset: NDArray[np.bool_],
    weights: NDArray[np.float64],
) -> list[str]:
    """Return the text of each ranking: its order, and what is special about it."""
    texts = []
    for row, order in enumerate(orders):
        remarks = []
        if lengths[row] < n_listed[row]:
            remarks.append(f"first {lengths[row]}")
        if is_subset[row]:
            remarks.append("subset")
        if weights[row] != 1:
            remarks.append(f"weight {weights[row]:g}")
        texts.append(_order_text(order) + (f" ({', '.join(remarks)})" if remarks else ""))
    return texts


def _order_text(order: list[str | list[str]]) -> str:
    groups = [_tie_text(g) if isinstance(g, list) else g for g in order[:PLACES_SHOWN]]
    return " > ".join(groups + (["…"] if len(order) > PLACES_SHOWN else []))


def _tie_text(tie: list[str]) -> str:
    more = [f"{len(tie) - PLACES_SHOWN} more"] if len(tie) > PLACES_SHOWN else []
    return " = ".join(tie[:PLACES_SHOWN] + more)

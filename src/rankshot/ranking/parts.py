"""Rankings in parts: consensus, models and agreement for more rankings than fit in memory.

All of them are computed from sums over rankings. So they are written once, as functions of one
part, and `reduce_parts` adds up the results: `Rankings` are a single part, and `RankingParts`,
such as those of `rankshot.jobs.read_rankings`, are many.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, quote_names, short_repr
from rankshot.core.validation import require_whole_number
from rankshot.ranking.construction import find_first
from rankshot.ranking.rankings import Rankings, require_rankings

T = TypeVar("T")
U = TypeVar("U")
Combine = Callable[[T, T], T]
MOST_SAMPLES = 2**31
"""Rankings that are drawn at once."""


class RankingParts(ABC):
    """Rankings of the same items in several parts, which need not be in memory together.

    Attributes
    ----------
    items : tuple of str
        What is ranked, in all parts.
    """

    items: tuple[str, ...]

    @abstractmethod
    def reduce(
        self, function: Callable[..., T], *arguments: object, combine: Combine[T] | None = None
    ) -> T | None:
        """Return the sum of ``function(part, *arguments)`` over the parts that have a ranking."""

    @abstractmethod
    def map_parts(
        self,
        function: Callable[..., Rankings],
        *arguments: object,
        items: tuple[str, ...] | None = None,
    ) -> RankingParts:
        """Return ``function(part, *arguments)`` for each part; ``items`` if they change."""

    @abstractmethod
    def map_rows(self, function: Callable[..., Any], *arguments: object) -> Any:
        """Return the numbers that ``function`` gives, one per ranking, as a lazy array."""

    def prepare(self, build: Callable[..., Any], *arguments: object) -> Callable[..., Any]:
        """Return a function that adds up ``ask(build(part, *arguments), *more)`` over the parts.

        It is called as ``function(ask, *more)``. What ``build`` gives may be kept between calls.
        """
        return partial(self.reduce, _build_and_ask, build, arguments)

    @property
    def n_items(self) -> int:
        """C: how many items there are."""
        return len(self.items)

    def by_target(self) -> dict[str, RankingParts]:
        """Return the rankings of each target, sorted by name; one pass finds the names."""
        names = count_rankings(self).target_names
        return {name: self.map_parts(select_labelled, name) for name in names}

    def top(self, k: int) -> RankingParts:
        """Keep the first ``k`` items of each ranking, as `Rankings.top` does."""
        return self.map_parts(Rankings.top, k)


AnyRankings = Rankings | RankingParts
Some = TypeVar("Some", bound=AnyRankings)
"""Rankings, or rankings in parts: the result is of the same type."""


def reduce_parts(
    rankings: AnyRankings,
    function: Callable[..., T],
    *arguments: object,
    combine: Combine[T] | None = None,
) -> T:
    """Return ``function(rankings, *arguments)``, summed over the parts if there are several."""
    if isinstance(rankings, Rankings):
        return function(rankings, *arguments)
    found = rankings.reduce(function, *arguments, combine=combine)
    # Without any ranking, what is computed from none of them.
    return function(no_rankings(rankings.items), *arguments) if found is None else found


def map_parts(
    rankings: Some,
    function: Callable[..., Rankings],
    *arguments: object,
    items: tuple[str, ...] | None = None,
) -> Some:
    """Return ``function(rankings, *arguments)``, of each part if there are several.

    ``items`` are given if they change.
    """
    if isinstance(rankings, Rankings):
        return cast("Some", function(rankings, *arguments))
    return cast("Some", rankings.map_parts(function, *arguments, items=items))


def map_rows(rankings: AnyRankings, function: Callable[..., Any], *arguments: object) -> Any:
    """Return what ``function`` gives for each ranking: an array, or a lazy one of parts."""
    if isinstance(rankings, Rankings):
        return function(rankings, *arguments)
    return rankings.map_rows(function, *arguments)


def with_items(rankings: Some, items: tuple[str, ...]) -> Some:
    """Return the same rankings with the items numbered in another order."""
    if isinstance(rankings, RankingParts):
        # Other items are refused here, and not by a worker.
        no_rankings(rankings.items).with_items(items)
    return map_parts(rankings, Rankings.with_items, items, items=items)


def _build_and_ask(
    part: Rankings, build: Callable[..., T], arguments: Any, ask: Callable[..., U], *more: object
) -> U:
    return ask(build(part, *arguments), *more)


def add_results(a: Any, b: Any) -> Any:
    """Add two results of a part: numbers and arrays, or tuples of them."""
    if not isinstance(a, tuple):
        return a + b
    sums = (add_results(x, y) for x, y in zip(a, b, strict=True))
    return type(a)(*sums) if hasattr(a, "_fields") else tuple(sums)


def no_rankings(items: tuple[str, ...]) -> Rankings:
    """Return a value without any ranking."""
    return Rankings.from_item_numbers(np.empty((0, 1), np.int32), items=items, trusted=True)


# ---- What is asked of all rankings first


@dataclass(frozen=True)
class RankingCounts:
    """The size and the kinds of rankings.

    Attributes
    ----------
    n_rankings : int
    weight, largest_weight : float
        The sum of their weights, and the largest.
    targets : frozenset of str or None
        What they describe; None is for rankings without a target.
    longest : int
        The largest of the ``lengths`` of rankings of positive weight.
    """

    n_rankings: int
    weight: float
    largest_weight: float
    targets: frozenset[str | None]
    longest: int

    @property
    def target_names(self) -> tuple[str, ...]:
        """The targets that occur, sorted."""
        return tuple(sorted(name for name in self.targets if name is not None))

    @property
    def has_pairs(self) -> bool:
        """Whether there are two rankings to compare: one of weight 2 counts as two."""
        return self.weight > self.largest_weight or self.largest_weight > 1

    def __add__(self, other: RankingCounts) -> RankingCounts:
        return RankingCounts(
            self.n_rankings + other.n_rankings,
            self.weight + other.weight,
            max(self.largest_weight, other.largest_weight),
            self.targets | other.targets,
            max(self.longest, other.longest),
        )


def count_rankings(rankings: AnyRankings) -> RankingCounts:
    """Return the size and the kinds of rankings."""
    return reduce_parts(rankings, _count_part)


def _count_part(part: Rankings) -> RankingCounts:
    return RankingCounts(
        len(part),
        float(part.weights.sum()),
        float(part.weights.max(initial=0)),
        frozenset(part.targets.tolist()),
        int(part.lengths.max(initial=0, where=part.weights > 0)),
    )


def select_labelled(
    part: Rankings, target: str | None, source: str | None = None, rater: str | None = None
) -> Rankings:
    """Keep the rankings with these labels, of which a part may have none; None is any label."""
    keep = np.ones(len(part), bool)
    for labels, wanted in ((part.targets, target), (part.sources, source), (part.raters, rater)):
        if wanted is not None:
            keep &= labels == wanted
    return part[keep]


def keep_counted(rankings: Some) -> Some:
    """Leave out rankings of weight 0."""
    return map_parts(rankings, _keep_counted)


def _keep_counted(part: Rankings) -> Rankings:
    """Leave out rankings of weight 0; without a copy if there are none."""
    return part if np.all(part.weights > 0) else part[part.weights > 0]


def are_votes(rankings: Rankings) -> bool:
    """Whether all rankings are votes between two items."""
    return bool(np.all(rankings.is_subset & (rankings.n_listed == 2)))


def merge_copies(rankings: Rankings) -> tuple[Rankings, NDArray[np.intp]]:
    """Add up the weights of equal rankings, whatever they describe; return the number of each."""
    number = rankings.lists.number_equal_rows([rankings.lengths, rankings.is_subset])
    first = find_first(number)
    if first.size == len(rankings):
        return rankings, np.arange(first.size)
    weights = np.bincount(number, rankings.weights).astype(float)
    return replace(rankings[first], weights=weights), number


# ---- Checks of what a caller passes


def require_any_rankings(value: Some) -> Some:
    """Return the value if it is `Rankings`, or rankings in parts."""
    if not isinstance(value, RankingParts):
        require_rankings(value)
    return value


def require_some(rankings: AnyRankings) -> RankingCounts:
    """Return an overview of rankings; raise if there are none."""
    found = count_rankings(require_any_rankings(rankings))
    if not found.weight > 0:
        raise RankshotError("there are no rankings to fit or merge (or all have weight 0)")
    return found


def require_one_subject(rankings: AnyRankings) -> RankingCounts:
    """Return an overview of rankings to merge; raise if there are none, warn of several targets."""
    found = require_some(rankings)
    if len(found.target_names) > 1:
        warnings.warn(
            "rankings of several targets are merged into one: "
            f"{quote_names(found.target_names, 4)}. Use select(target=...) or by_target()",
            stacklevel=3,
        )
    return found


def refuse_partial(rankings: Rankings, why: str) -> None:
    """Raise for the first ranking that compares only some of the items."""
    partial = rankings.n_compared < rankings.n_items
    if partial.any():
        what = describe_ranking(rankings, int(partial.argmax()))
        raise RankshotError(f"{what} compares only a subset of the items: {why}")


def describe_ranking(rankings: Rankings, row: int) -> str:
    """Return how an error message names a ranking: its number, its target and who gave it."""
    target, origin = rankings.targets[row], rankings.raters[row] or rankings.sources[row]
    what = f"ranking {row}"
    what += "" if target is None else f" of {target!r}"
    return what + ("" if origin is None else f" by {origin!r}")


def require_model(model: T) -> T:
    """Return a model that can be fitted, or raise with what was passed instead."""
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "get_params")):
        raise RankshotError(f"model must be a model like PlackettLuce(), not {short_repr(model)}")
    return model


def require_sample_length(n: int, k: int | None, n_items: int) -> int:
    """Return the length of the lists that a sampler draws, after a check of both numbers."""
    require_whole_number("n", n, most=MOST_SAMPLES)
    return n_items if k is None else require_whole_number("k", k, most=n_items)

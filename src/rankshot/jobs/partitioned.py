"""`PartitionedRankings`: rankings in parts, on which Dask computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import format_count
from rankshot.core.validation import as_names, require_module
from rankshot.ranking.parts import Combine, RankingParts, add_results, no_rankings
from rankshot.ranking.rankings import Rankings

T = TypeVar("T")
Loader = Callable[[tuple[str, ...]], Rankings | None]
"""Reads the rankings of a part over the items; None if there are none."""
SPLIT_EVERY = 8
"""Results of so many parts, or sums of them, are added in one task."""


def import_dask(module: str = "dask") -> Any:
    """Import a module of Dask, or raise an error that names the extra to install."""
    return require_module(module, "partitioned rankings", "cluster")


def reduce_tree(results: list[Any], combine: Combine[Any]) -> Any:
    """Compute delayed values and merge them as a tree; those that are None are left out."""
    dask = import_dask()
    merge = dask.delayed(_merge, pure=False)
    while len(results) > 1:
        results = [
            merge(combine, results[i : i + SPLIT_EVERY])
            for i in range(0, len(results), SPLIT_EVERY)
        ]
    return dask.compute(*results)[0] if results else None


class PartitionedRankings(RankingParts):
    """Rankings of the same items in many parts, which are read when they are needed.

    `read_rankings` makes them. Consensus, models and agreement take them in place of `Rankings`,
    and then make one or more passes over the parts. In each task, a part is read, used and
    released, and what is left is small. Dask's threads do the work, or the workers of a cluster
    if there is a ``distributed.Client``.

    Parameters
    ----------
    parts : sequence
        For each part a function that reads it, given the items; or its `Rankings`, or a
        ``dask.delayed`` value of them.
    items : sequence of names
        What is ranked, in all parts.

    Examples
    --------
    >>> import rankshot as rs
    >>> from rankshot.jobs import PartitionedRankings
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"], ["a", "b"]])
    >>> parts = PartitionedRankings([votes[:2], votes[2:]], votes.items)
    >>> parts
    PartitionedRankings: 2 parts of rankings of 2 items
    >>> parts.reduce(len)
    3
    >>> parts.compute() == votes
    True
    """

    def __init__(self, parts: Sequence[Loader | Rankings | Any], items: Sequence[str]) -> None:
        self.items = as_names(items)
        self._parts = tuple(parts)
        self._job = _Job(self.items)

    @property
    def n_parts(self) -> int:
        """How many parts there are."""
        return len(self._parts)

    def __repr__(self) -> str:
        return (
            f"PartitionedRankings: {format_count(self.n_parts, 'part')} of rankings of "
            f"{format_count(self.n_items, 'item')}"
        )

    def reduce(
        self, function: Callable[..., T], *arguments: Any, combine: Combine[T] | None = None
    ) -> T | None:
        """Return the sum of ``function(part, *arguments)`` over the parts that have a ranking.

        The tree of sums depends only on the number of parts: the answer
        is the same, to the last bit, wherever the parts are computed.
        """
        found: T | None = reduce_tree(self.delay(function, *arguments), combine or add_results)
        return found

    def delay(
        self, function: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Return ``function(part, *arguments)`` as delayed values, None for parts that are empty.

        One task reads a part and computes its result, so that no part waits in memory or moves
        between workers. All tasks share one value with the function and the arguments.

        Parameters
        ----------
        function : callable
        *arguments : object
            Further arguments, the same for all parts.
        each : sequence, optional
            A further, last argument for each part.
        """
        dask = import_dask()
        job = dask.delayed(self._job.then(function, arguments), traverse=False)
        run = dask.delayed(_run, pure=False)
        if each is None:
            return [run(part, job) for part in self._parts]
        return [run(part, job, last) for part, last in zip(self._parts, each, strict=True)]

    def map_parts(
        self,
        function: Callable[..., Rankings],
        *arguments: Any,
        items: tuple[str, ...] | None = None,
    ) -> PartitionedRankings:
        """Return ``function(part, *arguments)`` for each part; ``items`` if they change."""
        mapped = PartitionedRankings(self._parts, items or self.items)
        mapped._job = self._job.then(function, arguments)
        return mapped

    def map_rows(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the numbers that ``function`` gives, one per ranking, as a Dask array.

        The lengths of its chunks are unknown until it is computed.
        """
        array = import_dask("dask.array")
        rows = self.delay(_compute_rows, function, arguments)
        fill = import_dask().delayed(_or_no_rows, pure=False)
        return array.concatenate(
            [
                array.from_delayed(fill(part), (np.nan,), meta=np.empty(0))
                for part in rows or [None]
            ],
            allow_unknown_chunksizes=True,
        )

    def select(
        self, *, target: str | None = None, source: str | None = None, rater: str | None = None
    ) -> PartitionedRankings:
        """Keep the rankings of one target, one source, one rater, or their intersection.

        There may be none: this is only known when the parts are read.
        """
        return self.map_parts(_select, target, source, rater)

    def top(self, k: int) -> PartitionedRankings:
        """Keep the first ``k`` items of each ranking, as `Rankings.top` does."""
        return self.map_parts(Rankings.top, k)

    def persist(self) -> PartitionedRankings:
        """Read all parts now and keep them in memory: that of the workers, if there are any."""
        parts = import_dask().persist(*self.delay(_keep_part))
        return PartitionedRankings(parts, self.items)

    def compute(self) -> Rankings:
        """Return all rankings, in memory."""
        found = import_dask().compute(*self.delay(_keep_part))
        return Rankings.concatenate(
            [part for part in found if part is not None] or [no_rankings(self.items)]
        )


class _Job(NamedTuple):
    """What is done to each part: functions of `Rankings`, one after the other."""

    items: tuple[str, ...]
    steps: tuple[tuple[Callable[..., Any], tuple[Any, ...]], ...] = ()

    def then(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> _Job:
        return self._replace(steps=(*self.steps, (function, arguments)))


# ---- What workers run


def _run(part: Any, job: _Job, *last: Any) -> Any:
    """Read a part and apply the steps of a job; return None if no ranking is left."""
    value = part(job.items) if callable(part) else part
    if value is None:
        return None
    value = value.with_items(job.items)
    *changes, (function, arguments) = job.steps
    for change, values in changes:
        value = change(value, *values)
    return function(value, *arguments, *last) if len(value) else None


def _merge(combine: Combine[Any], results: list[Any]) -> Any:
    found = [result for result in results if result is not None]
    return reduce(combine, found) if found else None


def _keep_part(part: Rankings) -> Rankings:
    return part


def _compute_rows(
    part: Rankings, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> NDArray[np.float64]:
    return np.asarray(function(part, *arguments), np.float64)


def _or_no_rows(rows: NDArray[np.float64] | None) -> NDArray[np.float64]:
    return np.empty(0) if rows is None else rows


def _select(part: Rankings, target: str | None, source: str | None, rater: str | None) -> Rankings:
    keep = np.ones(len(part), bool)
    for labels, wanted in ((part.targets, target), (part.sources, source), (part.raters, rater)):
        if wanted is not None:
            keep &= labels == wanted
    return part[keep]

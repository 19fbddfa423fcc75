"""`PartitionedRankings`: rankings in parts, on which Dask computes, and their files.

Files are JSON lines, read in blocks, and Parquet, read in row groups.
"""

from __future__ import annotations

import pickle
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from gzip import BadGzipFile
from io import BytesIO
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from rankshot.core.errors import RankshotError, format_count
from rankshot.core.files import has_pattern, skip_blank_lines
from rankshot.core.progress import announce_pass
from rankshot.core.tables import open_parquet
from rankshot.core.validation import as_names, require_whole_number
from rankshot.jobs.executors import import_dask, list_workers
from rankshot.jobs.storage import (
    Part,
    StoredFile,
    as_address,
    join_address,
    list_files,
    list_parts,
    new_part,
    remove_partial_files,
)
from rankshot.ranking.parts import (
    Combine,
    RankingParts,
    add_results,
    no_rankings,
    select_labelled,
)
from rankshot.ranking.ranking_files import (
    GROUP_ENTRIES,
    JSONL_ENDINGS,
    iterate_row_groups,
    join_portions,
    parse_jsonl,
    put_rankings,
    read_item_names,
)
from rankshot.ranking.rankings import Rankings

Items = tuple[str, ...]
ENDINGS = (*JSONL_ENDINGS, *(f"{ending}.gz" for ending in JSONL_ENDINGS), ".parquet")
PART_NAME = re.compile(r"part-(\d+)-of-(\d+)\.parquet")
T = TypeVar("T")
Loader = Callable[[object], Rankings | None]
"""Reads the rankings of a part over the items, or over those that occur for None."""
SPLIT_EVERY = 8
"""Results of this many parts, or sums of them, are added in one task."""
MEMORY_SHARE = 4
"""Parts that need less than this fraction of the memory are read once and kept."""
BUILT_GROWTH = 4
"""What models build of parts takes at most about this many times the memory of the parts."""
BYTES_PER_ENTRY, BYTES_PER_RANKING = 8, 64
"""The memory of a listed item, and what a ranking takes besides."""
JSON_GROWTH, GZIP_GROWTH = 4, 40
"""Rankings in memory take at most about this many times the bytes of their file."""


def reduce_tree(results: list[Any], combine: Combine[Any]) -> Any:
    """Compute delayed values and merge them as a tree; those that are None are left out."""
    dask = import_dask()
    merge = dask.delayed(_merge, pure=False)
    while len(results) > 1:
        results = [
            merge(combine, results[i : i + SPLIT_EVERY])
            for i in range(0, len(results), SPLIT_EVERY)
        ]
    found = dask.compute(*results)[0] if results else None
    announce_pass()
    return found


class PartitionedRankings(RankingParts):
    """Rankings of the same items in many parts, which are read on demand.

    `read_rankings` returns them. Consensus, models and Kendall's W accept them in place of
    `Rankings`, and make one or more passes over the parts. Each task reads a part, computes a
    small result and releases the part. The tasks run in Dask's threads, or on the workers of a
    cluster if there is a ``distributed.Client``.

    Parameters
    ----------
    parts : sequence
        One entry per part: a function that reads it, given the items; its `Rankings`; or a
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

    def __init__(self, parts: Sequence[Loader | Rankings | object], items: Sequence[str]) -> None:
        self.items = as_names(items)
        self._parts = parts if isinstance(parts, _Files) else _Files(parts)
        self._job = _Job(self.items)

    @property
    def n_parts(self) -> int:
        """How many parts there are."""
        return len(self._parts.loaders)

    def __repr__(self) -> str:
        return (
            f"PartitionedRankings: {format_count(self.n_parts, 'part')} of rankings of "
            f"{format_count(self.n_items, 'item')}"
        )

    def reduce(
        self, function: Callable[..., T], *arguments: object, combine: Combine[T] | None = None
    ) -> T | None:
        """Return the sum of ``function(part, *arguments)`` over the parts that have a ranking.

        ``combine`` adds two of them; ``+`` by default.

        The order of summation depends only on the number of parts, so the result is bit-identical
        wherever the parts are computed.
        """
        found: T | None = reduce_tree(self.delay(function, *arguments), combine or add_results)
        return found

    def delay(
        self,
        function: Callable[..., object],
        *arguments: object,
        each: Sequence[object] | None = None,
    ) -> list[object]:
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
        parts = self._parts.choose()
        if each is None:
            return [run(part, job) for part in parts]
        return [run(part, job, last) for part, last in zip(parts, each, strict=True)]

    def map_parts(
        self,
        function: Callable[..., Rankings],
        *arguments: object,
        items: tuple[str, ...] | None = None,
    ) -> PartitionedRankings:
        """Return ``function(part, *arguments)`` of all parts; pass ``items`` if they change."""
        mapped = PartitionedRankings(cast("Any", self._parts), items or self.items)
        mapped._job = self._job.then(function, arguments)
        return mapped

    def map_rows(self, function: Callable[..., object], *arguments: object) -> object:
        """Return the values of ``function``, one per ranking, as a Dask array.

        The lengths of its chunks are unknown until it is computed.
        """
        array = import_dask("dask.array")
        rows = self.delay(_compute_rows, function, arguments) or [None]
        fill = import_dask().delayed(_or_no_rows, pure=False)
        chunks = [array.from_delayed(fill(part), (np.nan,), meta=np.empty(0)) for part in rows]
        return array.concatenate(chunks, allow_unknown_chunksizes=True)

    def select(
        self, *, target: str | None = None, source: str | None = None, rater: str | None = None
    ) -> PartitionedRankings:
        """Keep the rankings with the given ``target``, ``source`` and ``rater``.

        Whether there are any is known only when the parts are read.
        """
        return self.map_parts(select_labelled, target, source, rater)

    def prepare(self, build: Callable[..., object], *arguments: object) -> Callable[..., Any]:
        """Return a function that sums results over prepared parts, which are kept if they fit.

        Parameters
        ----------
        build : callable
            Called with a part and the ``arguments``; prepares the part.
        *arguments : object
        """
        if not self._parts.fit(find_client(), BUILT_GROWTH):
            return super().prepare(build, *arguments)
        return partial(_reduce_kept, import_dask().persist(*self.delay(_build, build, arguments)))

    def compute(self) -> Rankings:
        """Return all rankings, in memory."""
        found = import_dask().compute(*self.delay(Rankings.__getitem__, slice(None)))
        return Rankings.concatenate(
            [part for part in found if part is not None] or [no_rankings(self.items)]
        )


@dataclass
class _Files:
    """Parts, which are read once and kept if they fit in the memory of those that read them.

    ``items`` are those over which each part is kept, None for those that occur in it, and
    ``n_bytes`` is what all need; parts that nobody knows the size of are not kept.
    """

    loaders: Sequence[object]
    items: Sequence[Items | None] = ()
    n_bytes: float = inf
    _chosen: tuple[object, Sequence[object]] | None = None

    def fit(self, client: object, growth: float = 1.0) -> bool:
        """Whether all parts, if they grow, need little of the memory."""
        n_bytes = growth * self.n_bytes
        return n_bytes < inf and MEMORY_SHARE * n_bytes < find_memory(client)

    def choose(self) -> Sequence[object]:
        """Return what reads each part, or what is kept of it."""
        dask, client = import_dask(), find_client()
        if self._chosen is None or self._chosen[0] is not client:
            parts = self.loaders
            if self.fit(client):
                keep = dask.delayed(_keep_part, pure=False)
                parts = dask.persist(*map(keep, self.loaders, self.items))
            self._chosen = client, parts
        return self._chosen[1]


def find_client() -> object:
    """Return the client of Dask whose workers compute, or None if this process does."""
    return getattr(import_dask("dask.base").get_scheduler(), "__self__", None)


def find_memory(client: object) -> int:
    """Return the bytes of memory of all workers of a client, or of this machine."""
    if client is None:
        return int(import_dask("distributed").system.MEMORY_LIMIT)
    return sum(worker["memory_limit"] or 0 for worker in list_workers(client))


class _Job(NamedTuple):
    """What is done to each part: functions of `Rankings`, one after the other."""

    items: tuple[str, ...]
    steps: tuple[tuple[Callable[..., object], tuple[object, ...]], ...] = ()

    def then(self, function: Callable[..., object], arguments: tuple[object, ...]) -> _Job:
        return self._replace(steps=(*self.steps, (function, arguments)))


# ---- What workers run


class _Kept:
    """What workers keep of a part; Dask moves it between workers only if its size allows it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __sizeof__(self) -> int:
        arrays: list[pickle.PickleBuffer] = []  # which are not copied
        rest = pickle.dumps(self.value, protocol=5, buffer_callback=arrays.append)
        return len(rest) + sum(array.raw().nbytes for array in arrays)


def _keep_part(part: Loader, items: Items | None) -> _Kept | None:
    rankings = part(items)
    return None if rankings is None else _Kept(rankings)


def _build(part: Rankings, build: Callable[..., object], arguments: Any) -> _Kept:
    return _Kept(build(part, *arguments))


def _reduce_kept(kept: Iterable[object], ask: Callable[..., object], *more: object) -> Any:
    delayed = import_dask().delayed(_ask_kept, pure=False)
    return reduce_tree([delayed(part, ask, more) for part in kept], add_results)


def _ask_kept(kept: _Kept | None, ask: Callable[..., object], more: Any) -> object:
    return None if kept is None else ask(kept.value, *more)


def _run(part: Any, job: _Job, *last: Any) -> Any:
    """Read a part and apply the steps of a job; return None if no ranking is left."""
    value = part(job.items) if callable(part) else part
    if value is None:
        return None
    # What was kept may have been read before the items of all parts were known.
    is_kept = isinstance(value, _Kept)
    value = value.value.change_items(job.items) if is_kept else value.with_items(job.items)
    *changes, (function, arguments) = job.steps
    for change, values in changes:
        value = change(value, *values)
    return function(value, *arguments, *last) if len(value) else None


def _merge(combine: Combine[object], results: list[object]) -> object:
    found = [result for result in results if result is not None]
    return reduce(combine, found) if found else None


def _compute_rows(
    part: Rankings, function: Callable[..., object], arguments: tuple[object, ...]
) -> NDArray[np.float64]:
    return np.asarray(function(part, *arguments), np.float64)


def _or_no_rows(rows: NDArray[np.float64] | None) -> NDArray[np.float64]:
    return np.empty(0) if rows is None else rows


# -------------------------------------------------------------------- reading


def read_rankings(
    address: str | Path | Iterable[str | Path],
    items: Iterable[object] | None = None,
    *,
    part_bytes: int = 2**24,
) -> PartitionedRankings:
    """Read rankings from many or large files, in parts.

    The rankings are the same as those of `rankshot.read_rankings`, one file after the other. If
    they need less than a quarter of the memory of the workers or of this machine, all files are
    read once and the rankings are kept in memory; otherwise, each pass reads the files again.

    Parameters
    ----------
    address : str, Path or list of them
        JSON lines (.jsonl, .jsonl.gz) or Parquet: a file, a pattern such as ``votes/*.jsonl``, a
        folder with its subfolders, or an fsspec address, such as ``s3://votes/*.parquet``.
    items : iterable of names, optional
        All items that could be ranked. By default those that occur, sorted; to find them, all JSON
        lines are read once. Parquet files of `write_rankings` name their items.
    part_bytes : int
        The number of bytes of JSON lines per part. A compressed file is one part. A part of a
        Parquet file has one row group, or several with up to 2^22 listed items in all.

    See Also
    --------
    write_rankings : JSON lines become Parquet files, which are read many times faster.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> from rankshot.jobs import read_rankings
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"], ["a"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rs.write_rankings(votes, Path(folder) / "votes.jsonl")
    ...     parts = read_rankings(f"{folder}/*.jsonl", part_bytes=30)
    ...     parts, parts.compute() == votes
    (PartitionedRankings: 3 parts of rankings of 2 items, True)
    """
    dask = import_dask()
    require_whole_number("part_bytes", part_bytes)
    plan_parquet = dask.delayed(_plan_parquet, pure=False)
    files = [StoredFile(part.address, part) for part in list_ranking_files(address)]
    plans = dask.compute(
        *(
            plan_parquet(file)
            if file.address.endswith(".parquet")
            else _plan_jsonl(file, part_bytes)
            for file in files
        )
    )
    given = None if items is None else as_names(items)
    parts = _Files(
        [part for plan in plans for part in plan.parts],
        [given or plan.items for plan in plans for _ in plan.parts],
        sum(plan.n_bytes for plan in plans),
    )
    return PartitionedRankings(cast("Any", parts), given or _find_items(parts, plans, address))


def list_ranking_files(address: str | Path | Iterable[str | Path]) -> list[Part]:
    """Return the files of an address, a pattern or a folder, or of a list of them."""
    if not isinstance(address, (str, Path)):
        return [part for one in address for part in list_ranking_files(one)]
    parts = list_parts(address, ENDINGS)
    if len({part.name.endswith(".parquet") for part in parts}) > 1:
        raise RankshotError(
            f"{address}: there are JSON lines and Parquet files, which may hold the same "
            f"rankings; choose one kind, as in {join_address(str(address), '*.parquet')}"
        )
    if has_pattern(str(address)) or parts[0].address == as_address(address):
        return parts
    # In a folder of `write_rankings`, the names of the files say how many there are.
    found = [match for part in parts if (match := PART_NAME.fullmatch(part.name))]
    for n in {int(match[2]) for match in found}:
        missing = set(range(1, n + 1)) - {int(match[1]) for match in found if int(match[2]) == n}
        if missing:
            raise RankshotError(
                f"{address}: {format_count(len(missing), 'part')} of {n} missing, the first is "
                f"part {min(missing)}: the folder was not written completely"
            )
    return parts


# ---- Parts of files


class _Plan(NamedTuple):
    """The parts of a file, its memory at most, about, and its items if it names them."""

    parts: Sequence[Loader]
    n_bytes: int
    items: Items | None = None


def _plan_jsonl(file: StoredFile, part_bytes: int) -> _Plan:
    size = cast("Part", file.part).size
    if file.address.endswith(".gz"):
        return _Plan([partial(_read_packed, file)], GZIP_GROWTH * size)
    blocks = [
        partial(_read_block, file, offset, part_bytes) for offset in range(0, size, part_bytes)
    ]
    return _Plan(blocks, JSON_GROWTH * size)


def _plan_parquet(file: StoredFile) -> _Plan:
    """Put row groups together, up to a number of listed items."""
    with open_parquet(file) as parquet:
        runs: list[list[int]] = []
        size, n_bytes = 0, BYTES_PER_RANKING * parquet.metadata.num_rows
        for number in range(parquet.metadata.num_row_groups):
            group = parquet.metadata.row_group(number)
            columns = [group.column(i) for i in range(group.num_columns)]
            listed = [c.num_values for c in columns if c.path_in_schema.startswith("ranking.")]
            entries = max(listed, default=0)
            if not runs or size + entries > GROUP_ENTRIES:
                runs.append([])
                size = 0
            runs[-1].append(number)
            size += entries
            n_bytes += BYTES_PER_ENTRY * entries
        names = read_item_names(parquet, file)
    return _Plan([partial(_read_row_groups, file, run) for run in runs], n_bytes, names)


def _find_items(parts: _Files, plans: Iterable[_Plan], address: object) -> Items:
    """Return the items that all files name, or those that are named or occur, sorted."""
    named = {plan.items for plan in plans if plan.items is not None}
    if len(named) == 1 and None not in parts.items:
        return named.pop()
    of_part = zip(parts.choose(), parts.items, strict=True)
    unnamed = [part for part, items in of_part if items is None]
    find = import_dask().delayed(_occurring_items, pure=False)
    found = reduce_tree([find(part) for part in unnamed], frozenset.union) or frozenset()
    items = sorted(found.union(*named))
    if not items:
        raise RankshotError(f"{address}: contains no rankings")
    return tuple(items)


# ---- What workers run


def _occurring_items(part: Any) -> frozenset[str]:
    kept = _keep_part(part, None) if callable(part) else part
    return frozenset(kept.value.items if kept else ())


def _read_block(file: StoredFile, offset: int, length: int, items: Items | None) -> Rankings | None:
    """Read the lines that start after ``offset``, and not after ``offset + length``."""
    with file.open() as stream:
        block = import_dask("fsspec.utils").read_block(stream, offset, length, b"\n")

    def parse(lines_before: int) -> Rankings | None:
        lines = skip_blank_lines(BytesIO(block), file)
        return _parse(((number + lines_before, line) for number, line in lines), file, items)

    try:
        return parse(0)
    except RankshotError:
        # The same error again, with the number of the line in the file.
        parse(_count_lines(file, offset))
        raise


def _count_lines(file: StoredFile, offset: int) -> int:
    """Return how many lines start before a block, the one that ``offset`` cuts included."""
    count, left = int(offset > 0), offset
    with file.open() as stream:
        while left and (some := stream.read(min(left, 2**20))):
            count += some.count(b"\n")
            left -= len(some)
    return count


def _read_packed(file: StoredFile, items: Items | None) -> Rankings | None:
    try:
        with file.open() as stream:
            return _parse(skip_blank_lines(stream, file), file, items)
    except (EOFError, BadGzipFile, zlib.error) as error:
        raise RankshotError(f"{file}: not a complete gzip file ({error})") from None


def _parse(
    lines: Iterator[tuple[int, str]], file: StoredFile, items: Items | None
) -> Rankings | None:
    first = next(lines, None)
    return None if first is None else parse_jsonl(chain([first], lines), items, file)


def _read_row_groups(file: StoredFile, groups: list[int], items: Items | None) -> Rankings | None:
    with open_parquet(file, dictionaries=True) as parquet:
        parts = list(iterate_row_groups(parquet, groups, items, file))
    return join_portions(parts, items, file) if parts else None


# ---- Writing


def write_rankings(rankings: PartitionedRankings, folder: str | Path) -> None:
    """Write rankings as a folder of Parquet files, one per part.

    Parquet files are read many times faster than JSON lines. If rankings are read several times,
    as a fit does, convert them first.

    Each file is written under another name and then renamed, so that it is never incomplete. If
    some of the files are missing, `read_rankings` reports this.

    Parameters
    ----------
    rankings : PartitionedRankings
    folder : str or Path
        A new or empty folder, or an fsspec address.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import rankshot as rs
    >>> from rankshot.jobs import PartitionedRankings, read_rankings, write_rankings
    >>> votes = rs.Rankings.from_orders([["a", "b"], ["b", "a"], ["a"]])
    >>> parts = PartitionedRankings([votes[:2], votes[2:]], votes.items)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_rankings(parts, f"{folder}/votes")
    ...     sorted(path.name for path in Path(folder, "votes").iterdir())
    ...     read_rankings(f"{folder}/votes").compute() == votes
    ['part-00001-of-00002.parquet', 'part-00002-of-00002.parquet']
    True
    """
    place = as_address(folder)
    if list_files(place):
        raise RankshotError(f"{folder}: the folder is not empty; give a new folder")
    n = rankings.n_parts
    addresses = [join_address(place, f"part-{i:05}-of-{n:05}.parquet") for i in range(1, n + 1)]
    written = import_dask().compute(*rankings.delay(_write_part, each=addresses))
    for address, is_written in zip(addresses, written, strict=True):
        if not is_written:
            _write_part(no_rankings(rankings.items), address)
    remove_partial_files(place)


def _write_part(part: Rankings, address: str) -> bool:
    with new_part(address) as path, path.open("wb") as stream:
        put_rankings(part, stream)
    return True

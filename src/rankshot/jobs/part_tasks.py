"""What a worker of Dask does with one part of a dataset: one task, one output part."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from time import perf_counter
from typing import Any, Protocol

from rankshot import __version__
from rankshot.core.errors import RankshotError
from rankshot.jobs.manifests import output_name, require_own
from rankshot.jobs.storage import (
    FULL,
    OutputError,
    Part,
    fetch_part,
    join_address,
    new_part,
    read_footer,
    require_unchanged,
)

JOB, INPUT, COUNTS = "rankshot.job", "rankshot.input", "rankshot.counts"
"""The keys in the footer of an output part."""


class JobError(RankshotError):
    """What concerns all parts, such as a model or a folder that a worker cannot read."""


@dataclass(frozen=True)
class Work:
    """What was done for a part.

    Attributes
    ----------
    n_rows : int
        The rows of the output part.
    counts : mapping of str to int
        Sums that the job keeps of them, such as the rows of each class.
    seconds : mapping of str to float
        The time of each stage. That of fetching and publishing the part is added as "storage".
    """

    n_rows: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)


class PartJob(Protocol):
    """What is done with each part; it is sent to the workers.

    Attributes
    ----------
    description : mapping
        What the result depends on (head, settings), by names that a user knows; JSON can hold it.
    """

    @property
    def description(self) -> Mapping[str, Any]:  # noqa: D102 (an attribute)
        ...

    def load(self, content: bytes) -> Any:
        """Return what all parts need (a head, a model); called once in each worker process."""

    def run(
        self, loaded: Any, part: Part, source: Path, target: Path, metadata: dict[str, str]
    ) -> Work:
        """Read ``source``, which has the content of the part, and write the Parquet ``target``.

        The same input must give the same bytes. The target must have the metadata in its footer,
        and in addition the counts as `format_counts` returns them.
        """


def format_counts(counts: Mapping[str, int]) -> dict[str, str]:
    """Return counts as metadata for a footer, from which a second start reads them."""
    return {COUNTS: json.dumps(counts, sort_keys=True)}


@dataclass(frozen=True)
class Result:
    """What became of a part: the work, or the problem, and whether all other parts have it, too."""

    work: Work = field(default_factory=Work)
    was_finished: bool = False
    problem: str = ""
    ends_job: bool = False
    killed: bool = False


_loaded: dict[str, Any] = {}
"""What the last job needs in this process."""
_lock = Lock()


def load_once(job: PartJob, key: str, content: bytes) -> Any:
    """Return what a job needs, which this process keeps until another job comes."""
    with _lock:
        if key not in _loaded:
            _loaded.clear()
            try:
                _loaded[key] = job.load(content)
            except RankshotError as error:
                raise JobError(f"a worker cannot begin: {error}") from None
        return _loaded[key]


def keep_content(content: bytes) -> bytes:
    """Return the content. As the result of a task, it is made again if its worker is lost."""
    return content


def do_part(
    part: Part, *, job: PartJob, fingerprint: str, content: bytes, output: str, version: str
) -> Result:
    """Do one part, unless it is finished.

    Errors of storage are raised, so that Dask tries again; all others are part of the result.
    """
    target = join_address(output, output_name(part))
    metadata = {JOB: fingerprint, INPUT: part.version}
    try:
        _require_version(version)
        # A worker that came later may see another disk.
        require_own(output, fingerprint)
        finished = read_finished(target, metadata)
        if finished is not None:
            return Result(finished, was_finished=True)
        loaded = load_once(job, fingerprint, content)
        begin = perf_counter()
        with fetch_part(part) as source, new_part(target) as path:
            work = job.run(loaded, part, source, path, metadata)
            require_unchanged(part)
            # Of a job that was stopped, a task may be left that nobody could stop.
            require_own(output, fingerprint)
        storage = perf_counter() - begin - sum(work.seconds.values())
        return Result(replace(work, seconds={**work.seconds, "storage": storage}))
    except (OutputError, JobError) as error:
        return Result(problem=str(error), ends_job=True)
    except RankshotError as error:
        return Result(problem=str(error))
    except OSError as error:
        if error.errno in FULL:
            return Result(problem=f"{part.address}: {error}", ends_job=True)
        raise


def _require_version(version: str) -> None:
    if version != __version__:
        raise JobError(
            f"a worker has rankshot {__version__}, and the job began with {version}: install the "
            "same version everywhere"
        )


def read_finished(target: str, metadata: Mapping[str, str]) -> Work | None:
    """Return what an output part holds, if this job wrote it completely from the same input."""
    footer = read_footer(target)
    if footer is None:
        return None
    n_rows, found = footer
    counts = _parse_counts(found.pop(COUNTS, "{}"))
    return Work(n_rows, counts) if found == metadata and counts is not None else None


def _parse_counts(text: str) -> dict[str, int] | None:
    try:
        counts = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_sound = isinstance(counts, dict) and all(type(n) is int for n in counts.values())
    return counts if is_sound else None

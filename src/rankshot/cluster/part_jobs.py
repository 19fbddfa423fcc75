"""Jobs over the parts of a dataset on Dask: one output part for each input part.

A job survives what happens on clusters. An output part is complete or not there, and says in its
footer which job wrote it from which version of its input: so a second start only does what is
missing, and a part that is done twice has the same bytes. A part that is not finished when a
worker is lost is done by another worker. A part that cannot be done is listed with its reason.
"""

from __future__ import annotations

import json
import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from secrets import token_hex
from threading import Lock
from time import monotonic, perf_counter, sleep
from typing import Any, Protocol

from rankshot.cluster.connections import (
    PATIENCE,
    Notify,
    SchedulerLostError,
    connect,
    count_slots,
    errors_of_connection,
    import_distributed,
    require_workers,
)
from rankshot.cluster.manifests import (
    MANIFEST,
    fingerprint as fingerprint_of,
    open_output,
    output_name,
    write_failed,
)
from rankshot.cluster.storage import (
    FULL,
    OutputError,
    Part,
    fetch_part,
    join_address,
    new_part,
    read_footer,
    remove_files,
    remove_leftovers,
    require_unchanged,
)
from rankshot.core.errors import RankshotError, format_count

TASKS_PER_SLOT = 4
"""So many parts are with the scheduler for each that can run: enough that no worker waits."""
RETRIES = 2
"""How often a part is tried again after an error of its storage."""
REFRESH = 10.0
"""Seconds after which the threads of the cluster are counted again: workers come and go."""
JOB, INPUT, COUNTS = "rankshot.job", "rankshot.input", "rankshot.counts"
"""The keys in the footer of an output part."""


class JobError(RankshotError):
    """A worker lacks what all parts need, such as a model or a folder that others can read."""


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


@dataclass
class PartsRun:
    """What a job has done.

    Attributes
    ----------
    n_parts : int
        The parts of the dataset.
    n_done, n_skipped : int
        The parts that were done now, and those that an earlier run has finished.
    n_rows, n_new_rows : int
        The rows in all output parts, and in those that were done now.
    counts : Counter of str
        The sums that the job keeps, over all output parts.
    seconds : dict of str to float
        The time of each stage, summed over the workers.
    elapsed : float
        The seconds since the job began.
    failed : list of (str, str)
        The parts that have no output, and the reasons.
    """

    n_parts: int
    n_done: int = 0
    n_skipped: int = 0
    n_rows: int = 0
    n_new_rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    elapsed: float = 0.0
    failed: list[tuple[str, str]] = field(default_factory=list)

    @property
    def n_finished(self) -> int:
        """The parts that have an output."""
        return self.n_done + self.n_skipped

    def _add(self, result: _Result, name: str) -> None:
        if result.problem:
            self.failed.append((name, result.problem))
            return
        self.n_rows += result.work.n_rows
        self.counts.update(result.work.counts)
        for stage, seconds in result.work.seconds.items():
            self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds
        if result.was_finished:
            self.n_skipped += 1
        else:
            self.n_done += 1
            self.n_new_rows += result.work.n_rows


def run_parts(
    client: Any,
    job: PartJob,
    content: bytes,
    parts: Sequence[Part],
    output: str,
    *,
    again: bool = False,
    stop_on_error: bool = False,
    resource: str | None = None,
    progress: Callable[[PartsRun], None] | None = None,
    notify: Notify = lambda _: None,
) -> PartsRun:
    """Do a job for all parts that are not finished.

    Parameters
    ----------
    client : distributed.Client
    job : PartJob
    content : bytes
        What ``job.load`` gets on each worker, such as the file of a head.
    parts : sequence of Part
        From `list_parts`.
    output : str
        The folder of the output parts, as `as_address` returns it.
    again : bool
        Replace the output of another job, and of parts that changed or vanished.
    stop_on_error : bool
        Raise for the first part that cannot be done.
    resource : str, optional
        A resource of Dask, such as GPU: a part is done where a worker has a free unit of it.
    progress : callable, optional
        Called after each part.
    notify : callable, optional
        Called with messages for the user, such as that the scheduler is lost.

    Raises
    ------
    RankshotError
        If the output belongs to another job or cannot be written, or the scheduler does not come
        back. Output parts that are finished stay: the same call goes on.
    """
    open_output(output, job.description, parts, again=again)
    run = _Run(client, job, content, parts, output, stop_on_error, resource, progress, notify)
    try:
        run.finish_all()
    except (KeyboardInterrupt, SystemExit):
        notify(f"stopped: {run.describe_rest()}")
        raise
    finally:
        run.close()
        # If the disk is full, that is the error to report.
        with suppress(OutputError, OSError):
            write_failed(output, run.state.failed)
    # What an earlier run, or a killed process, has left of a part is not its output.
    remove_files(output, [output_name(part) for part in run.failed])
    remove_leftovers(output)
    return run.state


# -------------------------------------------------------------------- on a worker


@dataclass(frozen=True)
class _Result:
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


def _keep(content: bytes) -> bytes:
    """Return the content. As the result of a task, it is made again if its worker is lost."""
    return content


def _do_part(part: Part, *, job: PartJob, fingerprint: str, content: bytes, output: str) -> _Result:
    """Do one part, unless it is finished.

    Errors of storage are raised, so that Dask tries again; all others are part of the result.
    """
    target = join_address(output, output_name(part))
    metadata = {JOB: fingerprint, INPUT: part.version}
    try:
        finished = _read_finished(target, metadata)
        if finished is not None:
            return _Result(finished, was_finished=True)
        loaded = load_once(job, fingerprint, content)
        begin = perf_counter()
        with fetch_part(part) as source, new_part(target) as path:
            work = job.run(loaded, part, source, path, metadata)
            require_unchanged(part)
        storage = perf_counter() - begin - sum(work.seconds.values())
        return _Result(replace(work, seconds={**work.seconds, "storage": storage}))
    except (OutputError, JobError) as error:
        return _Result(problem=str(error), ends_job=True)
    except RankshotError as error:
        return _Result(problem=str(error))
    except OSError as error:
        if error.errno in FULL:
            return _Result(problem=f"{part.address}: {error}", ends_job=True)
        raise


def _read_finished(target: str, metadata: Mapping[str, str]) -> Work | None:
    """Return what an output part holds, if this job wrote it completely from the same input."""
    footer = read_footer(target)
    if footer is None:
        return None
    n_rows, found = footer
    try:
        counts = json.loads(found.pop(COUNTS, "{}"))
    except ValueError:
        return None
    return Work(n_rows, counts) if found == metadata else None


# -------------------------------------------------------------------- on the client


class _Run:
    """The parts that are not decided yet, and the tasks that are with the scheduler."""

    def __init__(
        self,
        client: Any,
        job: PartJob,
        content: bytes,
        parts: Sequence[Part],
        output: str,
        stop_on_error: bool,  # noqa: FBT001
        resource: str | None,
        progress: Callable[[PartsRun], None] | None,
        notify: Notify,
    ) -> None:
        self.client, self.job, self.content, self.output = client, job, content, output
        self.stop_on_error, self.progress, self.notify = stop_on_error, progress, notify
        self.resource = resource
        self.state = PartsRun(len(parts))
        self.failed: list[Part] = []
        self._begin = monotonic()
        self._name = f"rankshot-{token_hex(8)}"
        self._own_client: Any = None
        self._address, self._security = client.scheduler.address, client.security
        self._left: deque[Part] = deque(parts)
        self._suspects: deque[Part] = deque()
        self._alone: set[Part] = set()
        self._starting: list[Part] = []
        self._running: dict[Any, Part] = {}
        self._n_started = 0

    def finish_all(self) -> None:
        """Do all parts; go on after the scheduler was lost and came back."""
        while self._left or self._suspects:
            try:
                require_workers(self.client, join_address(self.output, MANIFEST), self.notify)
                self._work()
            except errors_of_connection() as error:
                # What was with the scheduler is begun again.
                for part in (*self._starting, *self._running.values()):
                    (self._suspects if part in self._alone else self._left).append(part)
                self._starting = []
                self._running.clear()
                self._reconnect(error)
        if self.state.n_finished + len(self.failed) != self.state.n_parts:
            raise RankshotError(f"parts were lost without a reason; {self.describe_rest()}")

    def _work(self) -> None:
        """Keep the scheduler busy until all parts are decided."""
        distributed = import_distributed()
        key = fingerprint_of(self.job.description)
        with warnings.catch_warnings():
            # Dask warns of large heads, and advises what is lost with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            content = self.client.submit(_keep, self.content, pure=False)
        waiting = distributed.as_completed(loop=self.client.loop)
        counted_at, window = -REFRESH, 0
        while self._left or self._suspects or self._running:
            if monotonic() - counted_at > REFRESH:
                slots = count_slots(self.client, self.resource)
                counted_at, window = monotonic(), max(1, slots) * TASKS_PER_SLOT
            # If they cannot be submitted, they are not forgotten.
            self._starting = self._next_parts(window)
            if self._starting:
                futures = self._submit(key, content, self._starting)
                self._running.update(zip(futures, self._starting, strict=True))
                self._starting = []
                waiting.update(futures)
                del futures
            self._wait(waiting)
            done = waiting.next_batch(block=False)
            for future, result in zip(done, self._judge_all(done), strict=True):
                part = self._running.pop(future)
                if result.killed and part not in self._alone:
                    self._suspects.append(part)
                else:
                    self._record(part, result)

    def _wait(self, waiting: Any) -> None:
        """Return when a task has ended; say if there is nobody left to do it."""
        looked_at, told = monotonic(), False
        while not waiting.has_ready():
            sleep(0.01)
            if not told and monotonic() - looked_at > REFRESH:
                looked_at = monotonic()
                if told := count_slots(self.client, self.resource) == 0:
                    self.notify("all workers are gone: waiting for others")

    def _next_parts(self, window: int) -> list[Part]:
        """Return the parts to begin now, so that the scheduler has enough of them.

        Dask blames the loss of a worker on all tasks that it had. So a part that is said to kill
        workers is tried alone, after all others.
        """
        if self._left:
            n = min(window - len(self._running), len(self._left))
            return [self._left.popleft() for _ in range(n)]
        if self._suspects and not self._running:
            self._alone.add(self._suspects[0])
            return [self._suspects.popleft()]
        return []

    def _submit(self, key: str, content: Any, parts: list[Part]) -> list[Any]:
        first = self._n_started
        self._n_started += len(parts)
        futures: list[Any] = self.client.map(
            _do_part,
            parts,
            job=self.job,
            fingerprint=key,
            content=content,
            output=self.output,
            key=[f"{self._name}-{number}" for number in range(first, self._n_started)],
            retries=RETRIES,
            resources=None if self.resource is None else {self.resource: 1},
            pure=False,
        )
        return futures

    def _judge_all(self, futures: list[Any]) -> list[_Result]:
        """Return the results of tasks that have ended."""
        finished = [future for future in futures if future.status == "finished"]
        try:
            values = dict(zip(finished, self.client.gather(finished), strict=True))
        except Exception as error:
            # A result was lost with its worker. Its part is found to be finished, or done again.
            raise SchedulerLostError(f"{type(error).__name__}: {error}") from error
        return [values.get(future) or self._judge_failure(future) for future in futures]

    def _judge_failure(self, future: Any) -> _Result:
        """Return the result of a task that has failed by itself."""
        if future.status != "error":
            raise SchedulerLostError("its tasks are gone")
        error = future.exception()
        if isinstance(error, ImportError):
            return _Result(problem=f"a worker has no {error.name}: {error}", ends_job=True)
        if isinstance(error, import_distributed().KilledWorker):
            n = format_count(error.allowed_failures + 1, "worker")
            problem = f"{n} died with this part alone; does it fit into their memory?"
            return _Result(problem=problem, killed=True)
        return _Result(problem=f"{type(error).__name__}: {error}")

    def _record(self, part: Part, result: _Result) -> None:
        if result.ends_job:
            raise RankshotError(f"{result.problem}; {self.describe_rest()}")
        self.state._add(result, part.name)
        if result.problem:
            self.failed.append(part)
        self.state.elapsed = monotonic() - self._begin
        if result.problem and self.stop_on_error:
            raise RankshotError(f"{result.problem}; {self.describe_rest()}")
        if self.progress is not None:
            self.progress(self.state)

    def describe_rest(self) -> str:
        """Say how much is finished, and how to go on."""
        return (
            f"{self.state.n_finished:,} of {format_count(self.state.n_parts, 'part')} are "
            "finished, and the same command goes on with the others"
        )

    def _reconnect(self, error: Exception) -> None:
        self.notify(
            f"the scheduler at {self._address} is lost ({error}): waiting {PATIENCE:.0f} s for it"
        )
        self._close_own_client()
        try:
            self._own_client = self.client = connect(self._address, self._security, PATIENCE)
        except RankshotError as problem:
            raise RankshotError(f"{problem}; {self.describe_rest()}") from None
        self.notify("the scheduler is back")

    def _close_own_client(self) -> None:
        if self._own_client is not None:
            self._own_client.close(timeout=5)
            self._own_client = None

    def close(self) -> None:
        """Cancel what is with the scheduler."""
        if self._running and self.client.status == "running":
            self.client.cancel(list(self._running), force=True)
        self._close_own_client()

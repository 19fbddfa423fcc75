"""Jobs over the parts of a dataset on Dask: one output part for each input part.

A job survives what happens on clusters. An output part is complete or not there, and says in its
footer which job wrote it from which version of its input: so a second start only does what is
missing, and a part that is done twice has the same bytes. A part that is not finished when a
worker is lost is done by another worker. A part that cannot be done is listed with its reason.
"""

from __future__ import annotations

import warnings
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

from rankshot import __version__
from rankshot.core.errors import RankshotError, format_count, quote_names
from rankshot.jobs.connections import (
    PATIENCE,
    Notify,
    SchedulerLostError,
    connect,
    count_slots,
    errors_of_connection,
    import_distributed,
    require_workers,
)
from rankshot.jobs.manifests import (
    MANIFEST,
    fingerprint,
    open_output,
    output_name,
    require_own,
    write_failed,
)
from rankshot.jobs.part_tasks import (
    INPUT,
    JOB,
    PartJob,
    Result,
    do_part,
    keep_content,
    read_finished,
)
from rankshot.jobs.storage import (
    OutputError,
    Part,
    join_address,
    list_files,
    remove_files,
    remove_leftovers,
)

TASKS_PER_SLOT = 4
"""So many parts are with the scheduler for each that can run: enough that no worker waits."""
RETRIES = 2
"""How often a part is tried again after an error of its storage."""
VAIN = 5
"""So many losses of the scheduler without a part in between end the job."""
REFRESH = 10.0
"""Seconds after which the threads of the cluster are counted again: workers come and go."""


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

    Examples
    --------
    >>> from rankshot.jobs import PartsRun
    >>> run = PartsRun(n_parts=3, n_done=2, n_rows=2000, failed=[("may.csv", "no such column")])
    >>> run.n_finished, run.failed
    (2, [('may.csv', 'no such column')])
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

    def _add(self, result: Result, name: str) -> None:
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
    update: bool = False,
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
        Remove all that is there first, also the output of another job.
    update : bool
        Do parts again that changed, and remove the output of those that vanished.
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
    open_output(output, job.description, parts, again=again, update=update)
    run = _Run(client, job, content, parts, output, stop_on_error, resource, progress, notify)
    try:
        run.finish_all()
    except (KeyboardInterrupt, SystemExit):
        notify(f"stopped: {run.describe_rest()}")
        raise
    finally:
        run.close()
        # A full disk, or a folder that another job has taken, is the error to report.
        with suppress(OutputError, OSError):
            require_own(output, run.key)
            write_failed(output, run.state.failed)
    run.remove_failed()
    remove_leftovers(output)
    run.require_complete()
    return run.state


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
        self.resource, self.parts = resource, parts
        self.key = fingerprint(job.description)
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
        n_vain, reconnected_at = 0, -1
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
                if reconnected_at == self.state.n_finished:
                    n_vain += 1
                    if n_vain == VAIN:
                        raise RankshotError(
                            f"the scheduler was lost {VAIN} times, and no part was finished in "
                            f"between ({_shorten(error)}); {self.describe_rest()}"
                        ) from error
                else:
                    n_vain, reconnected_at = 0, self.state.n_finished
                self._reconnect(error)
        if self.state.n_finished + len(self.failed) != self.state.n_parts:
            raise RankshotError(f"parts were lost without a reason; {self.describe_rest()}")

    def _work(self) -> None:
        """Keep the scheduler busy until all parts are decided."""
        distributed = import_distributed()
        with warnings.catch_warnings():
            # Dask warns of large heads, and advises what is lost with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            content = self.client.submit(keep_content, self.content, pure=False)
        waiting = distributed.as_completed(loop=self.client.loop)
        counted_at, window = -REFRESH, 0
        while self._left or self._suspects or self._running:
            if monotonic() - counted_at > REFRESH:
                slots = count_slots(self.client, self.resource)
                counted_at, window = monotonic(), max(1, slots) * TASKS_PER_SLOT
            # If they cannot be submitted, they are not forgotten.
            self._starting = self._next_parts(window)
            if self._starting:
                futures = self._submit(content, self._starting)
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
                looked_at, told = monotonic(), self._tell_if_alone()

    def _tell_if_alone(self) -> bool:
        if is_alone := count_slots(self.client, self.resource) == 0:
            self.notify("all workers are gone: waiting for others")
        return is_alone

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

    def _submit(self, content: Any, parts: list[Part]) -> list[Any]:
        first = self._n_started
        self._n_started += len(parts)
        futures: list[Any] = self.client.map(
            do_part,
            parts,
            job=self.job,
            fingerprint=self.key,
            content=content,
            output=self.output,
            version=__version__,
            key=[f"{self._name}-{number}" for number in range(first, self._n_started)],
            retries=RETRIES,
            resources=None if self.resource is None else {self.resource: 1},
            pure=False,
        )
        return futures

    def _judge_all(self, futures: list[Any]) -> list[Result]:
        """Return the results of tasks that have ended."""
        finished = [future for future in futures if future.status == "finished"]
        try:
            values = {future: self._fetch(future) for future in finished}
        except Exception as error:
            # A result was lost with its worker. Its part is found to be finished, or done again.
            raise SchedulerLostError(type(error).__name__) from error
        return [values.get(future) or self._judge_failure(future) for future in futures]

    def _fetch(self, future: Any) -> Result:
        """Return the result of a task; if it was lost with its worker, another one has to come."""
        told = False
        while True:
            try:
                result: Result = future.result(timeout=REFRESH)
            except TimeoutError:
                told = told or self._tell_if_alone()
            else:
                return result

    def _judge_failure(self, future: Any) -> Result:
        """Return the result of a task that has failed by itself."""
        if future.status != "error":
            raise SchedulerLostError("its tasks are gone")
        error = future.exception()
        if isinstance(error, ImportError):
            return Result(problem=f"a worker has no {error.name}: {error}", ends_job=True)
        if isinstance(error, import_distributed().KilledWorker):
            n = format_count(error.allowed_failures + 1, "worker")
            problem = f"{n} died with this part alone; does it fit into their memory?"
            return Result(problem=problem, killed=True)
        return Result(problem=f"{type(error).__name__}: {error}")

    def _record(self, part: Part, result: Result) -> None:
        if result.ends_job:
            raise RankshotError(f"{result.problem}; {self.describe_rest()}")
        self.state._add(result, part.name)
        if result.problem:
            self.failed.append(part)
        self.state.elapsed = monotonic() - self._begin
        if result.problem and self.stop_on_error:
            raise RankshotError(f"{result.problem}; {self.describe_rest()}, once this is mended")
        if self.progress is not None:
            self.progress(self.state)

    def remove_failed(self) -> None:
        """Remove what an earlier run, or a killed process, has left of parts that failed."""
        stale = [
            output_name(part)
            for part in self.failed
            if read_finished(
                join_address(self.output, output_name(part)), {JOB: self.key, INPUT: part.version}
            )
            is None
        ]
        remove_files(self.output, stale)

    def require_complete(self) -> None:
        """Raise if the output of a part is not there, although a worker has written it."""
        require_own(self.output, self.key)
        there = {*list_files(self.output), *(output_name(part) for part in self.failed)}
        missing = [name for part in self.parts if (name := output_name(part)) not in there]
        if missing:
            raise RankshotError(
                f"{self.output}: {quote_names(missing, 3)} {'is' if len(missing) == 1 else 'are'} "
                "not there, although workers have written it; do all of them see the same folder?"
            )

    def describe_rest(self) -> str:
        """Say how much is finished, and how to go on."""
        return (
            f"{self.state.n_finished:,} of {format_count(self.state.n_parts, 'part')} are "
            "finished, and the same command goes on with the others"
        )

    def _reconnect(self, error: Exception) -> None:
        self.notify(
            f"the scheduler at {self._address} is lost ({_shorten(error)}): waiting "
            f"{PATIENCE:.0f} s for it"
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


def _shorten(error: Exception) -> str:
    """Return what happened, without the addresses and ports of Dask's own messages."""
    return str(error) if isinstance(error, SchedulerLostError) else type(error).__name__

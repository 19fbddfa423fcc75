"""Where the parts of a job are done: in this process, by ``concurrent.futures``, or by Dask.

All three do the same: `run_parts` gives out the parts that are not finished and records what became
of them. A job survives what happens on clusters. A part that is not finished when a worker is lost
is done by another worker, a lost scheduler is waited for, and a part that cannot be done is listed
with its reason.
"""

from __future__ import annotations

import logging
import os
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, wait
from contextlib import contextmanager, suppress
from functools import partial
from secrets import token_hex
from time import monotonic, sleep
from typing import Any

from rankshot import __version__
from rankshot.core.errors import OutputError, RankshotError, format_count, quote_names
from rankshot.core.validation import require_module, require_whole_number
from rankshot.inference.inputs import Skipped
from rankshot.inference.scoring import count_cores
from rankshot.jobs.part_jobs import (
    FAILED,
    INPUT_KEY,
    JOB_KEY,
    MANIFEST,
    SKIPPED,
    JobError,
    PartJob,
    PartsRun,
    Result,
    do_part,
    fingerprint,
    open_output,
    output_name,
    read_finished,
    require_own,
    write_list,
    write_skipped,
)
from rankshot.jobs.storage import (
    Part,
    is_file,
    join_address,
    list_files,
    remove_files,
    remove_partial_files,
)

PATIENCE_SECONDS = 60.0
"""For so long a lost scheduler is waited for."""
KEPT_BYTES = 1 << 28
"""Freed memory up to this size stays with a local process."""
TASKS_PER_SLOT = 4
"""So many parts are with the scheduler for each that can run: enough that no worker waits."""
N_RETRIES = 2
"""How often a part is tried again after an error of its storage."""
N_VAIN_LOSSES = 5
"""So many losses of the scheduler without a part in between end the job."""
REFRESH_SECONDS = 10.0
"""After so long the threads of the cluster are counted again: workers come and go."""
GPU = "GPU"
"""The resource that workers with a GPU declare, as in ``dask worker --resources GPU=1``."""
Notify = Callable[[str], None]


def run_parts(
    job: PartJob,
    content: bytes,
    parts: Sequence[Part],
    output: str,
    pool: Pool | None = None,
    *,
    again: bool = False,
    update: bool = False,
    stop_on_error: bool = False,
    progress: Callable[[PartsRun], None] | None = None,
    notify: Notify = lambda _: None,
) -> PartsRun:
    """Do a job for all parts that are not finished.

    Parameters
    ----------
    job : PartJob
    content : bytes
        What ``job.load`` gets on each worker, such as the file of a head.
    parts : sequence of Part
        From `list_parts`.
    output : str
        The folder of the output parts, as `as_address` returns it.
    pool : Pool, optional
        From `open_pool`; by default, the parts are done in this process.
    again : bool
        Remove all that is there first, also the output of another job.
    update : bool
        Do parts again that changed, and remove the output of those that vanished.
    stop_on_error : bool
        Raise for the first part that cannot be done.
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
    run = _Run(job, content, parts, output, pool or Pool(), stop_on_error, progress, notify)
    run.was_again = again
    try:
        run.finish_all()
    except (KeyboardInterrupt, SystemExit):
        notify(f"stopped: {run.describe_rest()}")
        raise
    finally:
        run.pool.close()
        # A full disk, or a folder that another job has taken, is the error to report.
        with suppress(OutputError, OSError):
            require_own(output, run.key)
            run.write_lists()
    run.remove_failed()
    remove_partial_files(output)
    run.require_complete()
    return run.state


class _Run:
    """The parts that are not decided yet, and those that a pool has."""

    def __init__(
        self,
        job: PartJob,
        content: bytes,
        parts: Sequence[Part],
        output: str,
        pool: Pool,
        stop_on_error: bool,  # noqa: FBT001
        progress: Callable[[PartsRun], None] | None,
        notify: Notify,
    ) -> None:
        self.parts, self.output, self.pool = parts, output, pool
        self.stop_on_error, self.progress, self.notify = stop_on_error, progress, notify
        self.key = fingerprint(job.description)
        self.task = partial(do_part, job=job, key=self.key, output=output, version=__version__)
        self.content = content
        self.state = PartsRun(len(parts))
        self.was_again = False
        self.failed: list[Part] = []
        self.skipped: dict[str, Sequence[Skipped]] = {}
        self._begin = monotonic()
        self._left: deque[Part] = deque(parts)
        self._suspects: deque[Part] = deque()
        self._alone: set[Part] = set()
        self._given: dict[str, Part] = {}

    def finish_all(self) -> None:
        """Do all parts; go on after the scheduler was lost and came back."""
        n_vain, reconnected_at = 0, -1
        while self._left or self._suspects:
            try:
                self.pool.open(self.task, self.content, self.output, self.notify)
                self._work()
            except self.pool.losses as error:
                # What the pool had is begun again.
                for part in self._given.values():
                    (self._suspects if part in self._alone else self._left).append(part)
                self._given.clear()
                if reconnected_at == self.state.n_finished:
                    n_vain += 1
                    if n_vain == N_VAIN_LOSSES:
                        raise RankshotError(
                            f"the scheduler was lost {N_VAIN_LOSSES} times, and no part was "
                            f"finished in between ({_shorten(error)}); {self.describe_rest()}"
                        ) from error
                else:
                    n_vain, reconnected_at = 0, self.state.n_finished
                self._reconnect(error)
        if self.state.n_finished + len(self.failed) != self.state.n_parts:
            raise RankshotError(f"parts were lost without a reason; {self.describe_rest()}")

    def _work(self) -> None:
        """Keep the pool busy until all parts are decided."""
        while self._left or self._suspects or self._given:
            parts = self._next_parts()
            # If they cannot be submitted, they are not forgotten.
            self._given |= {part.name: part for part in parts}
            if parts:
                self.pool.start(parts)
            for name, result in self.pool.finish_some():
                part = self._given.pop(name)
                if result.killed and part not in self._alone:
                    self._suspects.append(part)
                else:
                    self._record(part, result)

    def _next_parts(self) -> list[Part]:
        """Return the parts to begin now, so that the pool has enough of them.

        Dask blames the loss of a worker on all tasks that it had. So a part that is said to kill
        workers is tried alone, after all others.
        """
        if self._left:
            n = min(self.pool.count_wanted() - len(self._given), len(self._left))
            return [self._left.popleft() for _ in range(n)]
        if self._suspects and not self._given:
            self._alone.add(self._suspects[0])
            return [self._suspects.popleft()]
        return []

    def _record(self, part: Part, result: Result) -> None:
        if result.ends_job:
            raise RankshotError(f"{result.problem}; {self.describe_rest()}")
        self.state.add(result, part.name)
        self.skipped[part.name] = result.work.skipped
        if result.problem:
            self.failed.append(part)
        self.state.elapsed = monotonic() - self._begin
        if result.problem and self.stop_on_error:
            raise RankshotError(f"{result.problem}; {self.describe_rest()}, once this is mended")
        if self.progress is not None:
            self.progress(self.state)

    def write_lists(self) -> None:
        """List the parts that have no output, and what was skipped, with the reasons."""
        names = (part.name for part in self.parts)
        self.state.skipped = [one for name in names for one in self.skipped.get(name, ())]
        write_list(self.output, FAILED, ["part", "reason"], self.state.failed)
        write_skipped(self.output, SKIPPED, self.state.skipped)

    def remove_failed(self) -> None:
        """Remove what an earlier run, or a killed process, has left of parts that failed."""
        metadata = {part: {JOB_KEY: self.key, INPUT_KEY: part.version} for part in self.failed}
        outputs = {part: output_name(part.name) for part in self.failed}
        stale = [
            name
            for part, name in outputs.items()
            if read_finished(join_address(self.output, name), metadata[part]) is None
        ]
        remove_files(self.output, stale)

    def require_complete(self) -> None:
        """Raise if the output of a part is not there, although a worker has written it."""
        require_own(self.output, self.key)
        there = {*list_files(self.output), *(output_name(part.name) for part in self.failed)}
        missing = [name for part in self.parts if (name := output_name(part.name)) not in there]
        if missing:
            raise RankshotError(
                f"{self.output}: {quote_names(missing, 3)} {'is' if len(missing) == 1 else 'are'} "
                "not there, although workers have written it; do all of them see the same folder?"
            )

    def describe_rest(self) -> str:
        """Say how much is finished, and how to go on."""
        return (
            f"{self.state.n_finished:,} of {format_count(self.state.n_parts, 'part')} are "
            f"finished, and the same command {'without again ' if self.was_again else ''}goes on "
            "with the others"
        )

    def _reconnect(self, error: Exception) -> None:
        self.notify(
            f"the scheduler at {self.pool.name} is lost ({_shorten(error)}): waiting "
            f"{PATIENCE_SECONDS:.0f} s for it"
        )
        try:
            self.pool.reconnect()
        except RankshotError as problem:
            raise RankshotError(f"{problem}; {self.describe_rest()}") from None
        self.notify("the scheduler is back")


def _shorten(error: Exception) -> str:
    """Return what happened, without the addresses and ports of Dask's own messages."""
    return str(error) if isinstance(error, SchedulerLostError) else type(error).__name__


# -------------------------------------------------------------------- this process, and others


class Pool:
    """Does parts in this process, one after the other."""

    name = "this process"
    losses: tuple[type[Exception], ...] = ()
    """What the loss of all workers raises."""
    is_here = True
    """Whether it is this process."""
    _task: Callable[..., Result]

    def open(
        self, task: Callable[..., Result], content: bytes, output: str, notify: Notify
    ) -> None:
        """Be ready for parts of a job; refuse workers that do not see its output."""
        del output, notify
        self._task = partial(_try_part, partial(task, content=content))
        self._started: list[Part] = []

    def count_wanted(self) -> int:
        """Return how many parts it should have."""
        return 1

    def start(self, parts: Sequence[Part]) -> None:
        """Begin parts."""
        self._started += parts

    def finish_some(self) -> list[tuple[str, Result]]:
        """Wait for a part; return the names of those that have ended, with their results."""
        part = self._started.pop()
        return [(part.name, self._task(part))]

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns where the parts are done."""
        return function(*arguments)

    def reconnect(self) -> None:
        """Wait for workers that were lost."""

    def close(self) -> None:
        """Cancel what was not done."""


def _try_part(task: Callable[[Part], Result], part: Part) -> Result:
    """Do a part; try again after an error of its storage."""
    for attempt in range(N_RETRIES + 1):
        try:
            return task(part)
        except Exception as error:  # noqa: BLE001 (Dask does the same)
            result = _judge_error(error)
            if not isinstance(error, OSError) or attempt == N_RETRIES:
                break
    return result


def _judge_error(error: BaseException) -> Result:
    if isinstance(error, ImportError):
        return Result(problem=f"a worker has no {error.name}: {error}", ends_job=True)
    return Result(problem=f"{type(error).__name__}: {error}")


class _FuturesPool(Pool):
    """Does parts by an executor of ``concurrent.futures``."""

    name = "the executor"
    is_here = False

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._running: dict[Any, str] = {}

    def count_wanted(self) -> int:
        return 2 * (getattr(self._executor, "_max_workers", None) or count_cores())

    def start(self, parts: Sequence[Part]) -> None:
        for part in parts:
            self._running[self._executor.submit(self._task, part)] = part.name

    def finish_some(self) -> list[tuple[str, Result]]:
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return [(self._running.pop(future), self._judge(future)) for future in done]

    def _judge(self, future: Any) -> Result:
        try:
            result: Result = future.result()
        except BrokenExecutor:
            problem = "a process of the executor died; do the parts fit into its memory?"
            return Result(problem=problem, ends_job=True)
        return result

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._executor.submit(function, *arguments).result()

    def close(self) -> None:
        for future in self._running:
            future.cancel()
        # What still runs would write into the folder of a job that has ended.
        wait(self._running)
        self._running.clear()


@contextmanager
def open_pool(
    executor: Any,
    scheduler: str | None,
    workers: int | None,
    n_parts: int,
    output: str,
    notify: Notify,
    *,
    use_gpu: bool = False,
) -> Iterator[Pool]:
    """Yield what does the parts of a job; clients and processes of its own are closed in the end.

    Parameters
    ----------
    executor : concurrent.futures.Executor, distributed.Client or None
        Of a caller, who closes it.
    scheduler : str or None
        The address of a scheduler of Dask.
    workers : int or None
        How many local processes are started. With one, or if nothing is given, this process does
        all parts.
    n_parts, output, notify
        As for `run_parts`.
    use_gpu : bool
        Whether only those workers of Dask are used that declare a GPU, if there are any.
    """
    if sum(option is not None for option in (executor, scheduler, workers)) > 1:
        raise RankshotError("give one of executor, scheduler and workers")
    if isinstance(executor, Executor):
        yield _FuturesPool(executor)
    elif executor is not None:
        yield _DaskPool(executor, use_gpu=use_gpu)
    elif scheduler is None and (workers is None or require_whole_number("workers", workers) == 1):
        yield Pool()
    else:
        try:
            with open_client(scheduler, workers, n_parts, notify) as client:
                yield _DaskPool(client, use_gpu=use_gpu)
        finally:
            if scheduler is None:
                # What local processes were writing when they ended is incomplete.
                remove_partial_files(output)


# -------------------------------------------------------------------- Dask


def import_distributed() -> Any:
    """Import Dask's scheduler, or raise an error that names the extra to install."""
    return require_module("distributed", "many processes", "cluster")


class SchedulerLostError(Exception):
    """The scheduler is gone, or has forgotten its tasks."""


class _DaskPool(Pool):
    """Does parts by the workers of a scheduler of Dask."""

    is_here = False

    def __init__(self, client: Any, *, use_gpu: bool) -> None:
        self._client, self._own_client, self._security = client, None, client.security
        self._use_gpu = use_gpu
        self._resources: dict[str, int] = {}
        self._prefix, self._n_started = f"rankshot-{token_hex(8)}", 0
        self._running: dict[Any, str] = {}
        self._counted_at, self._n_wanted = -REFRESH_SECONDS, 0
        self.name = client.scheduler.address
        distributed = import_distributed()
        closed, ended = distributed.comm.core.CommClosedError, distributed.client.ClosedClientError
        self.losses = (SchedulerLostError, CancelledError, closed, ended, TimeoutError)

    def open(
        self, task: Callable[..., Result], content: bytes, output: str, notify: Notify
    ) -> None:
        self._task, self._notify = task, notify
        self._running.clear()
        self._find_workers(join_address(output, MANIFEST), notify)
        with warnings.catch_warnings():
            # Dask warns of large heads, and advises what is lost with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            self._content = self._client.submit(_keep_content, content, pure=False)
        self._waiting = import_distributed().as_completed(loop=self._client.loop)

    def _find_workers(self, seen_by_all: str | None, notify: Notify) -> None:
        require_workers(self._client, seen_by_all, notify)
        self._resources = {GPU: 1} if self._use_gpu and count_slots(self._client, GPU) else {}

    def _count_slots(self) -> int:
        return count_slots(self._client, *self._resources)

    def count_wanted(self) -> int:
        if monotonic() - self._counted_at > REFRESH_SECONDS:
            self._counted_at = monotonic()
            self._n_wanted = max(1, self._count_slots()) * TASKS_PER_SLOT
        return self._n_wanted

    def start(self, parts: Sequence[Part]) -> None:
        first = self._n_started
        self._n_started += len(parts)
        futures = self._client.map(
            self._task,
            parts,
            content=self._content,
            key=[f"{self._prefix}-{number}" for number in range(first, self._n_started)],
            retries=N_RETRIES,
            resources=self._resources or None,
            pure=False,
        )
        self._running.update(zip(futures, (part.name for part in parts), strict=True))
        self._waiting.update(futures)

    def finish_some(self) -> list[tuple[str, Result]]:
        looked_at, told = monotonic(), False
        while not self._waiting.has_ready():
            sleep(0.01)
            if not told and monotonic() - looked_at > REFRESH_SECONDS:
                looked_at, told = monotonic(), self._tell_if_alone()
        done = self._waiting.next_batch(block=False)
        results = [self._judge(future) for future in done]
        return [(self._running.pop(future), one) for future, one in zip(done, results, strict=True)]

    def _tell_if_alone(self) -> bool:
        if is_alone := self._count_slots() == 0:
            self._notify("all workers are gone: waiting for others")
        return is_alone

    def _judge(self, future: Any) -> Result:
        """Return the result of a task that has ended."""
        if future.status == "finished":
            try:
                return self._fetch(future)
            except Exception as error:
                # The result was lost with its worker: the part is finished, or done again.
                raise SchedulerLostError(type(error).__name__) from error
        if future.status != "error":
            raise SchedulerLostError("its tasks are gone")
        cause = future.exception()
        if isinstance(cause, import_distributed().KilledWorker):
            n = format_count(cause.allowed_failures + 1, "worker")
            problem = f"{n} died with this part alone; does it fit into their memory?"
            return Result(problem=problem, killed=True)
        return _judge_error(cause)

    def _fetch(self, future: Any) -> Result:
        """Return the result of a task; if it was lost with its worker, another one has to come."""
        told = False
        while True:
            try:
                result: Result = future.result(timeout=REFRESH_SECONDS)
            except TimeoutError:
                told = told or self._tell_if_alone()
            else:
                return result

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        self._find_workers(None, lambda _: None)
        resources = self._resources or None
        try:
            return self._client.submit(
                function, *arguments, resources=resources, pure=False
            ).result()
        except import_distributed().KilledWorker:
            raise JobError(
                "workers died at the first part; does it fit into their memory?"
            ) from None
        except self.losses as error:
            raise JobError(f"the scheduler is lost ({error}); nothing was begun") from None

    def reconnect(self) -> None:
        self._close_own_client()
        self._own_client = self._client = connect(self.name, self._security, PATIENCE_SECONDS)
        self._counted_at = -REFRESH_SECONDS

    def _close_own_client(self) -> None:
        if self._own_client is not None:
            self._own_client.close(timeout=5)
            self._own_client = None

    def close(self) -> None:
        if self._running and self._client.status == "running":
            self._client.cancel(list(self._running), force=True)
        self._close_own_client()


def _keep_content(content: bytes) -> bytes:
    """Return the content. As the result of a task, it is made again if its worker is lost."""
    return content


@contextmanager
def open_client(
    scheduler: str | None,
    workers: int | None,
    most_workers: int,
    notify: Notify = lambda _: None,
) -> Iterator[Any]:
    """Yield a client of a scheduler, or of local processes with one thread each.

    Parameters
    ----------
    scheduler : str or None
        The address of a scheduler, such as ``tcp://10.0.0.5:8786``.
    workers : int or None
        How many local processes there are; by default, as many as cores.
    most_workers : int
        More local processes than this are not started.
    notify : callable
        Is told what is started.
    """
    distributed = import_distributed()
    if scheduler is not None:
        try:
            distributed.comm.get_address_host_port(scheduler)
        except ValueError as error:
            raise RankshotError(
                f"{scheduler}: not the address of a scheduler, such as tcp://10.0.0.5:8786 "
                f"({error})"
            ) from None
        client = connect(scheduler)
        try:
            yield client
        finally:
            client.close(timeout=5)
        return
    n = count_cores() if workers is None else require_whole_number("workers", workers)
    n = max(1, min(n, most_workers))
    notify(f"starting {format_count(n, 'local worker')}")
    # Dask itself limits the threads of BLAS in these processes to one.
    with (
        _keep_freed_memory(),
        distributed.LocalCluster(
            n_workers=n,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        client.run(_ignore_interrupt)
        yield client


@contextmanager
def _keep_freed_memory() -> Iterator[None]:
    """Let processes that are started in the block use memory again that they have freed.

    By Dask's settings they give every block back to the system at once, and the next block of the
    same size costs as many page faults as the first: a fifth of the time to read a part.
    """
    name = "distributed.nanny.pre-spawn-environ"
    config = require_module("dask", "many processes", "cluster").config
    settings = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), KEPT_BYTES)
    before = {key: os.environ.get(key) for key in settings}
    with config.set({name: {**config.get(name), **settings}}):
        try:
            yield
        finally:
            # Dask sets them in this process, too, in order to pass them on.
            for key, value in before.items():
                os.environ.pop(key, None)
                if value is not None:
                    os.environ[key] = value


def _ignore_interrupt() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the one that started them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def connect(address: str, security: Any = None, patience: float = 10.0) -> Any:
    """Return a client of a scheduler, which may take some seconds to answer."""
    distributed = import_distributed()
    deadline = monotonic() + patience
    while True:
        left = max(1.0, deadline - monotonic())
        try:
            return distributed.Client(
                address, security=security, timeout=min(5.0, left), set_as_default=False
            )
        except (OSError, TimeoutError):
            if monotonic() > deadline:
                raise RankshotError(
                    f"{address}: no scheduler of Dask answers there within {patience:.0f} s"
                ) from None
            sleep(0.5)


def require_workers(client: Any, seen_by_all: str | None, notify: Notify) -> None:
    """Wait for a worker; refuse workers without this version, or that do not see a file.

    Parameters
    ----------
    client : distributed.Client
    seen_by_all : str or None
        The address of a file that every worker must be able to read.
    notify : callable
        Is told what is waited for.
    """
    if not client.nthreads():
        notify("the scheduler has no workers yet: waiting for the first")
        while not client.nthreads():
            sleep(0.5)
    with _name_missing("scheduler"):
        versions = {client.run_on_scheduler(_describe_worker, None)[0]}
    with _name_missing("workers"):
        found = client.run(_describe_worker, seen_by_all)
    versions.update(version for version, _ in found.values())
    if other := versions - {__version__}:
        raise RankshotError(
            f"the cluster has rankshot {', '.join(sorted(other))}, and this is {__version__}: "
            "install the same version everywhere"
        )
    if blind := [address for address, (_, sees) in found.items() if not sees]:
        raise RankshotError(
            f"{seen_by_all}: {format_count(len(blind), 'worker')} of {len(found)} cannot read it "
            f"({quote_names(blind, 2)}); give folders that all machines share, or an address such "
            "as s3://"
        )


def count_slots(client: Any, resource: str | None = None) -> int:
    """Return how many tasks can run at a time: one per thread, or one per unit of a resource."""
    if resource is None:
        return sum(client.nthreads().values())
    workers = client.scheduler_info()["workers"].values()
    return int(sum(worker["resources"].get(resource, 0) for worker in workers))


@contextmanager
def _name_missing(where: str) -> Iterator[None]:
    """Say where rankshot is not installed; Dask passes such errors on as texts."""
    try:
        yield
    except Exception as error:
        if "ModuleNotFoundError" not in repr(error):
            raise
        raise RankshotError(
            f"the {where} cannot import rankshot ({str(error).partition(chr(10))[0]}): install "
            f"rankshot[cluster] {__version__} there"
        ) from None


def _describe_worker(seen_by_all: str | None) -> tuple[str, bool]:
    """Return the version of a worker, and whether it can read a file."""
    try:
        return __version__, seen_by_all is None or is_file(seen_by_all)
    except OSError:
        return __version__, False

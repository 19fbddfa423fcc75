"""Where the parts of a job are done: in this process, by ``concurrent.futures``, or by Dask.

All three do the same: `run_parts` gives out the parts that are not finished and records what became
of them. A job survives what happens on clusters. A part that is not finished when a worker is lost
is done by another worker, a lost scheduler is waited for, and a part that cannot be done is listed
with its reason.
"""

from __future__ import annotations

import logging
import signal
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from time import monotonic, sleep
from typing import Any, NamedTuple

from rankshot import __version__
from rankshot.core.errors import OutputError, RankshotError, format_count, quote_names
from rankshot.core.validation import require_module, require_number, require_whole_number
from rankshot.jobs.part_jobs import (
    FAILED,
    JOB_KEY,
    SKIPPED,
    PartJob,
    PartsRun,
    Work,
    check_output,
    do_part,
    judge_error,
    open_output,
    output_name,
    read_finished,
    read_records,
    require_own,
    write_list,
    write_records,
    write_skipped,
)
from rankshot.jobs.storage import (
    Part,
    RepeatedIds,
    join_address,
    list_files,
    remove_files,
    remove_partial_files,
)
from rankshot.recognition.inputs import Skipped
from rankshot.recognition.model import fingerprint
from rankshot.recognition.scoring import count_cores

PATIENCE_SECONDS = 60.0
"""How long a lost scheduler is waited for."""
WORKER_SECONDS = 600.0
"""How long workers are waited for, unless the user says otherwise."""
KEPT_BYTES = 1 << 28
"""Freed memory up to this size stays with a local process."""
TASKS_PER_SLOT = 4
"""Parts that the scheduler has for each that can run: enough that no worker waits."""
MAX_LOSSES = 5
"""Losses of the scheduler without a finished part in between that end the job."""
REFRESH_SECONDS = 10.0
"""How often the threads of the cluster are counted: workers come and go."""
GPU = "GPU"
"""The resource that workers with a GPU declare, as in ``dask worker --resources GPU=1``."""
Notify = Callable[[str], None]
Progress = Callable[[PartsRun], None]


def run_parts(
    job: PartJob,
    content: bytes,
    parts: Sequence[Part],
    output: str,
    workers: Workers,
    rules: Rules,
) -> PartsRun:
    """Do a job for all parts that are not finished; what is finished stays, whatever happens.

    ``content`` is what ``job.load`` gets on each worker, such as the file of a head.
    """
    # Outputs that are refused are refused before workers start, and nothing is removed before.
    stale = check_output(output, job, parts, again=rules.again, update=rules.update)
    with (
        _open_pool(workers, len(parts), output, rules.notify) as pool,
        open_output(output, job.description, parts, stale, rules.notify),
    ):
        run = _Run(job, content, parts, output, pool, rules)
        try:
            run.finish_all()
        except (KeyboardInterrupt, SystemExit):
            rules.notify(f"stopped: {run.describe_rest()}")
            raise
        finally:
            pool.close()
            # A full disk, or a folder that another job has taken, is the error to report.
            with suppress(OutputError, OSError):
                require_own(output, run.key)
                run.write_lists()
                write_records(output, run.key, run.records)
        run.remove_failed()
        remove_partial_files(output)
        run.require_complete()
        run.state.n_repeated_ids = run.ids.count()
        return run.state


class Rules(NamedTuple):
    """What to do with outputs that are there and with parts that fail, and whom to tell.

    The options of `classify` that have these names.
    """

    again: bool = False
    update: bool = False
    verify: bool = False
    on_error: str = "skip"
    progress: Progress | None = None
    notify: Notify = lambda _: None


@dataclass
class _Run:
    """The parts that are not decided yet, and those that a pool has."""

    job: PartJob
    content: bytes
    parts: Sequence[Part]
    output: str
    pool: Pool
    rules: Rules

    def __post_init__(self) -> None:
        self.key = fingerprint(self.job.description)
        self.state = PartsRun(len(self.parts))
        self.skipped: dict[str, Sequence[Skipped]] = {}
        self._begin = self._saved_at = monotonic()
        kept, names = read_records(self.output, self.key), {part.name for part in self.parts}
        self._left = deque(replace(part, record=kept.get(part.name)) for part in self.parts)
        self.records = {name: record for name, record in kept.items() if name in names}
        self.ids = RepeatedIds()
        self._suspects: deque[Part] = deque()
        self._alone: set[Part] = set()
        self._given: dict[str, Part] = {}
        self._n_losses = 0

    def finish_all(self) -> None:
        """Do all parts; go on after the scheduler was lost and came back."""
        task = partial(do_part, job=self.job, key=self.key, output=self.output)
        task = partial(task, verify=self.rules.verify)
        while self._left or self._suspects:
            try:
                self.pool.open(task, self.content, self.rules.notify, use_gpu=self.job.use_gpu)
                self._work()
            except NoWorkersError as error:
                raise RankshotError(f"{error}; {self.describe_rest()}") from None
            except self.pool.losses as error:
                # What the pool had is begun again.
                for part in self._given.values():
                    (self._suspects if part in self._alone else self._left).append(part)
                self._given.clear()
                why = str(error) if isinstance(error, SchedulerLostError) else type(error).__name__
                self._n_losses += 1
                if self._n_losses > MAX_LOSSES:
                    raise RankshotError(
                        f"the scheduler was lost {self._n_losses} times, and no part was finished "
                        f"in between ({why}); {self.describe_rest()}"
                    ) from error
                self.rules.notify(
                    f"the scheduler at {self.pool.name} was lost ({why}): waiting "
                    f"{PATIENCE_SECONDS:.0f} s for it"
                )
                try:
                    self.pool.reconnect()
                except RankshotError as problem:
                    raise RankshotError(f"{problem}; {self.describe_rest()}") from None
                self.rules.notify("the scheduler is back")

    def _work(self) -> None:
        """Keep the pool busy until all parts are decided."""
        while self._left or self._suspects or self._given:
            parts = self._next_parts()
            # If they cannot be submitted, they are not forgotten.
            self._given |= {part.name: part for part in parts}
            if parts:
                self.pool.start(parts)
            for name, work in self.pool.finish_some():
                part = self._given.pop(name)
                if work.killed and part not in self._alone:
                    self._suspects.append(part)
                else:
                    self._record(part, work)

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

    def _record(self, part: Part, work: Work) -> None:
        if work.ends_job:
            raise RankshotError(f"{work.problem}; {self.describe_rest()}")
        self._n_losses = 0
        self.state.add(part.name, work)
        self.skipped[part.name] = work.skipped
        if work.record is not None:
            self.records[part.name] = work.record
        self.ids.add(work.id_hashes)
        self.state.elapsed = monotonic() - self._begin
        if work.problem and self.rules.on_error == "stop":
            raise RankshotError(f"{work.problem}; {self.describe_rest()}, once this is fixed")
        if self.rules.progress is not None:
            self.rules.progress(self.state)
        if monotonic() - self._saved_at > REFRESH_SECONDS:
            self._saved_at = monotonic()
            with suppress(OutputError, OSError):
                write_records(self.output, self.key, self.records)

    def write_lists(self) -> None:
        """List the parts that have no output, and what was skipped, with the reasons."""
        names = (part.name for part in self.parts)
        self.state.skipped = [one for name in names for one in self.skipped.get(name, ())]
        write_list(self.output, FAILED, ["part", "reason"], self.state.failed)
        write_skipped(self.output, SKIPPED, self.state.skipped)

    def remove_failed(self) -> None:
        """Remove what an earlier run, or a killed process, has left of parts that failed."""
        for name in self._list_failed():
            if read_finished(join_address(self.output, name), {JOB_KEY: self.key}) is None:
                remove_files(self.output, [name])

    def _list_failed(self) -> list[str]:
        return [output_name(name) for name, _ in self.state.failed]

    def require_complete(self) -> None:
        """Raise if the output of a part is not there, although a worker has written it."""
        require_own(self.output, self.key)
        there = {*list_files(self.output), *self._list_failed()}
        missing = [name for part in self.parts if (name := output_name(part.name)) not in there]
        if missing:
            raise RankshotError(
                f"{self.output}: {quote_names(missing, 3)} {'is' if len(missing) == 1 else 'are'} "
                "missing, although a worker has written it; do all workers see the same folder?"
            )

    def describe_rest(self) -> str:
        """Say how much is finished, and how to go on if this can be done."""
        n_parts = format_count(self.state.n_parts, "part")
        told = f"{self.state.n_finished:,} of {n_parts} are finished"
        with suppress(OutputError, OSError):
            require_own(self.output, self.key)
            without = "without again " if self.rules.again else ""
            told += f", and the same command {without}continues with the others"
        return told


# -------------------------------------------------------------------- this process, and others


class Workers(NamedTuple):
    """Who does the parts: this process, unless an executor, a scheduler or a number is given.

    Workers of Dask are waited for at most ``patience`` seconds.
    """

    executor: Any = None
    scheduler: str | None = None
    n_local: int | None = None
    patience: float = WORKER_SECONDS

    @property
    def are_here(self) -> bool:
        """Whether this process does all parts: one worker, or nothing was given."""
        if sum(option is not None for option in self[:3]) > 1:
            raise RankshotError("give one of executor, scheduler and workers")
        require_number("wait_for_workers", self.patience, least=0)
        one = self.n_local is None or require_whole_number("workers", self.n_local) == 1
        return self.executor is None and self.scheduler is None and one


class _Here(Executor):
    """Does in this process, at once, what is submitted."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
        future: Future[object] = Future()
        future.set_result(function(*arguments, **options))
        return future


class Pool:
    """Does parts by an executor of ``concurrent.futures``."""

    name = "the executor"
    losses: tuple[type[Exception], ...] = ()
    """What the loss of all workers raises."""
    _task: Callable[..., Work]

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        n_workers = getattr(executor, "_max_workers", None) or count_cores()
        self._n_wanted = 1 if isinstance(executor, _Here) else 2 * n_workers
        self._running: dict[Any, str] = {}

    def open(
        self, task: Callable[..., Work], content: bytes, notify: Notify, *, use_gpu: bool
    ) -> None:
        """Be ready for parts of a job."""
        del notify, use_gpu
        self._task = partial(task, content=content)

    def count_wanted(self) -> int:
        """Return how many parts it should have."""
        return self._n_wanted

    def start(self, parts: Sequence[Part]) -> None:
        """Begin parts."""
        for part in parts:
            self._running[self._executor.submit(self._task, part)] = part.name

    def finish_some(self) -> list[tuple[str, Work]]:
        """Wait for a part; return the names of those that have ended, with their results."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return [(self._running.pop(future), self._judge(future)) for future in done]

    def _judge(self, future: Any) -> Work:
        try:
            work: Work = future.result()
        except BrokenExecutor:
            problem = "a process of the executor died; do the parts fit into its memory?"
            return Work(problem=problem, ends_job=True)
        return work

    def reconnect(self) -> None:
        """Wait for workers that were lost."""

    def close(self) -> None:
        """Cancel what was not begun, and wait: the rest would write after the job has ended."""
        for future in self._running:
            future.cancel()
        wait(self._running)
        self._running.clear()


@contextmanager
def _open_pool(where: Workers, n_parts: int, output: str, notify: Notify) -> Iterator[Pool]:
    """Yield what does the parts of a job; its own clients and processes are closed at the end."""
    executor = _Here() if where.are_here else where.executor
    if executor is not None:
        is_plain = isinstance(executor, Executor)
        yield Pool(executor) if is_plain else _DaskPool(executor, where.patience)
        return
    try:
        n = max(1, min(where.n_local or 1, n_parts))
        with open_client(where.scheduler, n, notify) as client:
            yield _DaskPool(client, where.patience)
    finally:
        if where.scheduler is None:
            # What local processes were writing when they ended is incomplete.
            remove_partial_files(output)


# -------------------------------------------------------------------- Dask


def import_dask(module: str = "dask") -> Any:
    """Import a module of Dask, or raise an error that names the extra to install."""
    return require_module(module, "many processes and rankings in parts", "cluster")


class SchedulerLostError(Exception):
    """The scheduler is gone, or has forgotten its tasks."""


class NoWorkersError(RankshotError):
    """No worker has come in time."""

    def __init__(self, client: Any, seconds: float) -> None:
        super().__init__(
            f"{client.scheduler.address}: the scheduler has had no workers for {seconds:.0f} s; "
            "workers stop with their scheduler, so restart them after it"
        )


class _DaskPool(Pool):
    """Does parts by the workers of a scheduler of Dask."""

    def __init__(self, client: Any, patience: float) -> None:
        self._client, self._own, self._security = client, ExitStack(), client.security
        self._patience, self._looked_at = patience, 0.0
        self._running = {}
        self._counted_at, self._n_wanted = -REFRESH_SECONDS, 0
        self.name = client.scheduler.address
        distributed = import_dask("distributed")
        closed, ended = distributed.comm.core.CommClosedError, distributed.client.ClosedClientError
        self.losses = (SchedulerLostError, CancelledError, closed, ended, TimeoutError)

    def open(
        self, task: Callable[..., Work], content: bytes, notify: Notify, *, use_gpu: bool
    ) -> None:
        self._task, self._notify = task, notify
        self._running.clear()
        require_workers(self._client, notify, self._patience)
        self._resources = {GPU: 1} if use_gpu and count_slots(self._client, GPU) else {}
        with warnings.catch_warnings():
            # Dask warns of large heads, and advises what is lost with its worker.
            warnings.filterwarnings("ignore", "Sending large graph")
            # As the result of a task, it is made again if its worker is lost.
            self._content = self._client.submit(bytes, content, pure=False)
        self._waiting = import_dask("distributed").as_completed(loop=self._client.loop)

    def count_wanted(self) -> int:
        if monotonic() - self._counted_at > REFRESH_SECONDS:
            self._counted_at = monotonic()
            n_slots = count_slots(self._client, *self._resources)
            self._n_wanted = max(1, n_slots) * TASKS_PER_SLOT
        return self._n_wanted

    def start(self, parts: Sequence[Part]) -> None:
        futures = self._client.map(
            self._task,
            parts,
            content=self._content,
            key="rankshot",
            resources=self._resources or None,
            pure=False,
        )
        self._running.update(zip(futures, (part.name for part in parts), strict=True))
        self._waiting.update(futures)

    def finish_some(self) -> list[tuple[str, Work]]:
        self._looked_at = monotonic()
        while not self._waiting.has_ready():
            sleep(0.01)
            self._watch()
        done = self._waiting.next_batch(block=False)
        return [(self._running.pop(future), self._judge(future)) for future in done]

    def _watch(self) -> None:
        """Look from time to time whether there are workers: no result comes without them."""
        if monotonic() - self._looked_at > REFRESH_SECONDS:
            _wait_for_workers(self._client, self._notify, self._patience, *self._resources)
            self._looked_at = monotonic()

    def _judge(self, future: Any) -> Work:
        """Return the result of a task that has ended."""
        if future.status == "finished":
            try:
                return self._fetch(future)
            except NoWorkersError:
                raise
            except Exception as error:
                # The result was lost with its worker: the part is finished, or done again.
                raise SchedulerLostError(type(error).__name__) from error
        if future.status != "error":
            raise SchedulerLostError("its tasks were lost")
        cause = future.exception()
        if isinstance(cause, import_dask("distributed").KilledWorker):
            n = format_count(cause.allowed_failures + 1, "worker")
            problem = f"{n} died while processing this part alone; does it fit into their memory?"
            return Work(problem=problem, killed=True)
        return judge_error(cause)

    def _fetch(self, future: Any) -> Work:
        """Return the result of a task; if it was lost with its worker, another one has to come."""
        while True:
            with suppress(TimeoutError):
                work: Work = future.result(timeout=REFRESH_SECONDS)
                return work
            self._watch()

    def reconnect(self) -> None:
        self._own.close()
        self._client = connect(self.name, self._security, PATIENCE_SECONDS)
        self._own.callback(self._client.close, timeout=5)
        self._counted_at = -REFRESH_SECONDS

    def close(self) -> None:
        if self._running and self._client.status == "running":
            self._client.cancel(list(self._running), force=True)
        self._own.close()


@contextmanager
def open_client(
    scheduler: str | None, n_local: int, notify: Notify = lambda _: None
) -> Iterator[Any]:
    """Yield a client of a scheduler, or of some local processes."""
    with ExitStack() as stack:
        if scheduler is not None:
            client = connect(scheduler)
            stack.callback(client.close, timeout=5)
        else:
            notify(f"starting {format_count(n_local, 'local worker')}")
            client = stack.enter_context(_start_processes(n_local))
        # Dask has a dashboard if bokeh is installed.
        if find_spec("bokeh") is not None:
            notify(f"dashboard: {client.dashboard_link}")
        yield client


@contextmanager
def _start_processes(n: int) -> Iterator[object]:
    """Yield a client of local processes with one thread each."""
    distributed = import_dask("distributed")
    # By Dask's settings, processes give all freed memory back to the system at once, and the next
    # block of the same size costs as many page faults: a fifth of the time to read a part.
    environment = "distributed.nanny.pre-spawn-environ"
    config = import_dask().config
    kept = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), KEPT_BYTES)
    # Dask itself limits the threads of BLAS in these processes to one.
    with (
        config.set({environment: {**config.get(environment), **kept}}),
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


def _ignore_interrupt() -> None:
    """Leave Ctrl-C, which a terminal sends to all processes, to the one that started them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def connect(address: str, security: Any = None, patience: float = 10.0) -> Any:
    """Return a client of a scheduler, which may take some seconds to answer."""
    try:
        return import_dask("distributed").Client(
            address, security=security, timeout=patience, set_as_default=False
        )
    except ValueError as error:
        raise RankshotError(
            f"{address}: not a scheduler address such as tcp://10.0.0.5:8786 ({error})"
        ) from None
    except (OSError, TimeoutError):
        raise RankshotError(
            f"{address}: no Dask scheduler responded within {patience:.0f} s"
        ) from None


def _wait_for_workers(
    client: object, notify: Notify, seconds: float, resource: str | None = None
) -> None:
    """Return when a worker can do something; say so if there is none, and give up at last."""
    if count_slots(client, resource):
        return
    notify(f"the scheduler has no workers: waiting {seconds:.0f} s for them")
    begin = monotonic()
    while not count_slots(client, resource):
        if monotonic() - begin > seconds:
            raise NoWorkersError(client, seconds)
        sleep(0.5)


def require_workers(client: Any, notify: Notify, seconds: float = WORKER_SECONDS) -> None:
    """Wait for a worker; refuse a cluster without this version of rankshot everywhere."""
    _wait_for_workers(client, notify, seconds)
    try:
        versions = {client.run_on_scheduler(_get_version), *client.run(_get_version).values()}
    except Exception as error:
        # Dask passes such errors on as texts.
        if "ModuleNotFoundError" not in repr(error):
            raise
        raise RankshotError(
            f"the scheduler or a worker cannot import rankshot ({str(error).splitlines()[0]}): "
            f"install rankshot[cluster] {__version__} there"
        ) from None
    if other := versions - {__version__}:
        raise RankshotError(
            f"the cluster has rankshot {', '.join(sorted(other))}, and this is {__version__}: "
            "install the same version everywhere"
        )


def _get_version() -> str:
    return __version__


def count_slots(client: Any, resource: str | None = None) -> int:
    """Return how many tasks can run at a time: one per thread, or one per unit of a resource."""
    if resource is None:
        return sum(client.nthreads().values())
    return int(sum(worker["resources"].get(resource, 0) for worker in list_workers(client)))


def list_workers(client: Any) -> list[dict[str, Any]]:
    """Return what the scheduler knows of each worker."""
    return list(client.scheduler_info(n_workers=-1)["workers"].values())

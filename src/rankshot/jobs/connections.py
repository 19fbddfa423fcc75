"""Clients of Dask: local processes, or a scheduler that exists; and what its workers must have."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any

from rankshot import __version__
from rankshot.core.errors import RankshotError, format_count, quote_names
from rankshot.core.validation import require_module, require_whole_number
from rankshot.inference.scoring import count_cores
from rankshot.jobs.storage import is_file, remove_leftovers

PATIENCE = 60.0
"""Seconds for which a lost scheduler is waited for."""
KEPT_BYTES = 1 << 28
"""Freed memory up to this size stays with a local process."""
Notify = Callable[[str], None]


def import_distributed() -> Any:
    """Import Dask's scheduler, or raise an error that names the extra to install."""
    return require_module("distributed", "many processes", "cluster")


def require_one_way(client: Any, scheduler: str | None, workers: int | None) -> None:
    """Refuse more than one way to say where the workers are."""
    if sum(option is not None for option in (client, scheduler, workers)) > 1:
        raise RankshotError("give one of client, scheduler and workers")


@contextmanager
def use_workers(
    client: Any,
    scheduler: str | None,
    workers: int | None,
    n_parts: int,
    output: str,
    notify: Notify,
) -> Iterator[Any]:
    """Yield the client of a caller as it is, or one that is closed in the end."""
    if client is not None:
        yield client
        return
    try:
        with open_client(scheduler, workers, n_parts, notify) as own:
            yield own
    finally:
        if scheduler is None:
            # What local processes were writing when they ended is incomplete.
            remove_leftovers(output)


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
        _require_address(scheduler)
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
        keep_freed_memory(),
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
def keep_freed_memory() -> Iterator[None]:
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


class SchedulerLostError(Exception):
    """The scheduler is gone, or has forgotten its tasks."""


def errors_of_connection() -> tuple[type[Exception], ...]:
    """Return what the loss of the scheduler raises."""
    closed = import_distributed().comm.core.CommClosedError
    ended = import_distributed().client.ClosedClientError
    return (SchedulerLostError, CancelledError, closed, ended, TimeoutError)


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


def _require_address(address: str) -> None:
    try:
        import_distributed().comm.get_address_host_port(address)
    except ValueError as error:
        raise RankshotError(
            f"{address}: is no address of a scheduler, such as tcp://10.0.0.5:8786 ({error})"
        ) from None


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__


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
        versions = {client.run_on_scheduler(_get_version)}
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


def count_slots(client: Any, resource: str | None) -> int:
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
            f"the {where} cannot import rankshot ({_first_line(error)}): install "
            f"rankshot[cluster] {__version__} there"
        ) from None


def _get_version() -> str:
    return __version__


def _describe_worker(seen_by_all: str | None) -> tuple[str, bool]:
    """Return the version of a worker, and whether it can read a file."""
    try:
        return __version__, seen_by_all is None or is_file(seen_by_all)
    except OSError:
        return __version__, False

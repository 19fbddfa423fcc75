"""Jobs over many parts on Dask, as the command shows them: options, progress and summary."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rankshot.cli.console import progress_bar, say

if TYPE_CHECKING:
    from rankshot.jobs import PartsRun

FAILED_SHOWN = 10
"""How many parts that failed are printed."""
WorkersOption = Annotated[
    int | None,
    typer.Option(
        help="Do it with so many local processes. The default for many files is one process per "
        "core."
    ),
]
UpdateOption = Annotated[
    bool,
    typer.Option(
        "--update",
        help="Do parts of a dataset again that have changed, and remove the output of those that "
        "have vanished.",
    ),
]
SchedulerOption = Annotated[
    str | None,
    typer.Option(
        help="Do it on a cluster: the address of its Dask scheduler, such as tcp://10.0.0.5:8786."
    ),
]


@contextmanager
def show_parts(doing: str, *, on_dask: bool = False) -> Iterator[Callable[[PartsRun], None]]:
    """Yield the function that shows how far a job is; messages of Dask are switched off."""
    if on_dask:
        silence_dask()
    with progress_bar() as bar:
        task = bar.add_task(doing, total=None)

        def show(run: PartsRun) -> None:
            rate = f"{run.n_new_rows / max(run.elapsed, 1e-9):,.0f} per second"
            bar.update(
                task,
                completed=run.n_finished + len(run.failed),
                total=run.n_parts,
                description=f"{doing}: {run.n_rows:,} rows, {rate}; parts",
            )

        yield show


def silence_dask() -> None:
    """Switch off the messages of Dask: the command says itself what happens."""
    import logging

    from rankshot.jobs.executors import import_distributed

    # Its loggers are there, with their levels, when it is imported.
    import_distributed()
    for name in logging.root.manager.loggerDict:
        if name.startswith("distributed"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


def count_default_workers() -> int:
    """Return the number of local processes for many files: one per core, or one without Dask."""
    from importlib.util import find_spec

    from rankshot.inference.scoring import count_cores

    return count_cores() if find_spec("distributed") else 1


def is_dataset(text: str) -> bool:
    """Return whether an argument names many files: a folder, a pattern, or an address."""
    from pathlib import Path

    from rankshot.jobs.storage import has_pattern, is_address

    return is_address(text) or Path(text).is_dir() or has_pattern(text)


def check_cluster_options(workers: int | None, scheduler: str | None) -> None:
    """Refuse a wrong number of workers, and both options together."""
    from rankshot.core.errors import RankshotError
    from rankshot.core.validation import require_whole_number

    if workers is not None:
        require_whole_number("--workers", workers)
        if scheduler is not None:
            raise RankshotError("give --workers for local processes or --scheduler, not both")


def print_parts(run: PartsRun, done: str, output: str) -> None:
    """Print how many parts were done, how long it took, and what failed.

    If a part failed, the command exits with status 1: a script should not take an output with
    gaps for a complete one.
    """
    earlier = f", {run.n_resumed:,} finished earlier" if run.n_resumed else ""
    say(f"parts: {run.n_done:,} {done}{earlier}, {len(run.failed):,} failed")
    if run.n_done:
        stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in run.seconds.items())
        rate = f"{run.n_new_rows / run.elapsed:,.0f} rows per second"
        say(f"time: {run.elapsed:.1f} s ({rate}); of all workers: {stages}")
    for name, reason in run.failed[:FAILED_SHOWN]:
        # Most reasons begin with the address of the part.
        say(f"failed: {reason}" if name in reason else f"failed: {name}: {reason}")
    if run.failed:
        say(f"all failed parts are listed in {output.rstrip('/')}/_failed.csv")
        raise typer.Exit(1)

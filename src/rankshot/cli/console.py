"""What the command prints, and checks of the files and folders that it will write."""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import typer

from rankshot import core
from rankshot.core.errors import RankshotError
from rankshot.core.files import has_pattern, name_disk_errors, require_ending

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from rankshot import jobs


SHOWN = 5
"""How many classes of a ranking are shown, beside others."""
WIDEST = 10_000
"""More columns than any terminal has."""
ITEMS_SHOWN = 10
"""How many items of a consensus are shown."""
FAILED_SHOWN = 10
"""How many parts that failed are printed."""
LAST_PORT = 65535
LOG_SECONDS, JSON_SECONDS = 30.0, 1.0
"""How often a log, and a program, is told how far a job is."""
ProgressKind = Literal["text", "json"]
"""How progress is printed: for people, or as JSON lines for programs."""


# ---- What is printed


def say(text: str, console: Console | None = None) -> None:
    """Print text unchanged: without highlighting, markup or added line breaks."""
    from rich.console import Console

    (console or Console()).print(text, highlight=False, markup=False, soft_wrap=True)


def fail(text: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    from rich.console import Console

    say(f"rankshot: {text}", Console(stderr=True, style="red"))
    raise SystemExit(2)


@contextmanager
def name_options(options: Mapping[str, str], columns: Collection[str] = ()) -> Iterator[None]:
    """Name the options in place of Python's parameters, in errors and warnings.

    ``options`` has the option of each parameter, and ``columns`` are those of --column.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except RankshotError as error:
            raise RankshotError(_name_options(str(error), options, columns)) from None
    for warning in caught:
        warnings.warn(_name_options(str(warning.message), options, columns), stacklevel=3)


def _name_options(text: str, options: Mapping[str, str], columns: Collection[str]) -> str:
    for name, option in options.items():
        text = re.sub(rf"\b{name}='([^' ]+)'", rf"{option} \1", text)
        text = re.sub(rf"\b{name}=(?=')", f"{option} ", text)
        text = re.sub(rf"\b{name}=", option, text)
    if not columns:
        return text
    text = re.sub(rf"\b({'|'.join(columns)})='([^' ]*)'", r"--column \1=\2", text)
    return re.sub(rf"(?<!-column )\b({'|'.join(columns)})=", r"--column \1=", text)


def refuse(applies: object, message: str) -> None:
    """Raise an error with a message if something applies."""
    if applies:
        raise RankshotError(message)


def require_packages(extra: str, names: str) -> None:
    """Refuse to go on without the packages that an extra brings."""
    for name in names.split():
        refuse(
            find_spec(name) is None, f"the {extra} needs {name}: pip install 'rankshot[{extra}]'"
        )


def require_port(port: int) -> None:
    """Refuse a number that is not a port; 0 stands for a free one."""
    refuse(not 0 <= port <= LAST_PORT, f"--port must be from 0 to {LAST_PORT}, not {port}")


def print_table(
    title: str | None, columns: Sequence[str], rows: Iterable[Sequence[Any]], **options: Any
) -> None:
    """Print a table; names of columns that begin with ``>`` are of numbers, with ``*`` bold.

    A row may be empty: a line is drawn there. Texts are printed as they are. A table that is wider
    than the terminal has no vertical lines, so that its texts break less often; numbers do not.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title and Text(title, style="table.title"), **options)
    for name in columns:
        table.add_column(
            Text(name.lstrip(">*")),
            justify="right" if name.startswith(">") else "left",
            style="bold" if name.startswith("*") else "",
            overflow="fold",
            no_wrap=name.startswith(">"),
        )
    for row in rows:
        if not row:
            table.add_section()
        else:
            table.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    console = Console()
    wide = console.options.update_width(WIDEST)
    if console.measure(table, options=wide).maximum > console.width:
        table.box, table.padding, table.show_edge = box.SIMPLE_HEAD, 0, False
    console.print(table)


def format_order(
    order: Iterable[str | Sequence[str]],
    after: Callable[[str], str] = lambda _: "",
    most: int = ITEMS_SHOWN,
) -> str:
    """Return an order as text, with ties; of a long one the first items, and how many follow.

    ``after(name)`` is written after a tie whose first item is ``name``.

    Examples
    --------
    >>> format_order(["tea", ("juice", "beer"), "water"])
    'tea > juice = beer > water'
    >>> format_order(["tea", *map(str, range(20))])
    'tea > 0 > 1 > 2 > 3 > 4 > 5 > 6 > 7 > 8 > 11 more'
    """
    ties = [(tie,) if isinstance(tie, str) else tuple(tie) for tie in order]
    places: list[str] = []
    left, rest = most, sum(map(len, ties))
    for tie in ties:
        if left <= 0:
            break
        cut = (f"{len(tie) - left:,} more",) if len(tie) > left else ()
        places.append(" = ".join((*tie[:left], *cut)) + after(tie[0]))
        left -= len(tie)
        rest -= len(tie)
    return " > ".join([*places, f"{rest:,} more"] if rest else places)


def progress_bar() -> Progress:
    """Return a progress bar on standard error; it is hidden unless that is a terminal."""
    from rich import progress
    from rich.console import Console

    console = Console(stderr=True)
    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def tell_progress(doing: str, kind: ProgressKind) -> Iterator[Callable[..., None]]:
    """Yield a function that prints numbers as a JSON line on standard error, if this is asked for.

    It prints one line per second at most, and the last numbers at the end, with whether all is
    done.
    """
    begin, told, last = monotonic(), 0.0, {}

    def tell(**numbers: int) -> None:
        nonlocal told, last
        last = numbers
        if monotonic() - told >= JSON_SECONDS:
            told = monotonic()
            put(is_done=False)

    def put(*, is_done: bool) -> None:
        if kind == "json":
            seconds = round(monotonic() - begin, 1)
            line = {"doing": doing, **last, "seconds": seconds, "done": is_done}
            sys.stderr.write(f"{json.dumps(line)}\n")
            sys.stderr.flush()

    try:
        yield tell
    except BaseException:
        put(is_done=False)
        raise
    put(is_done=True)


# ---- Where files are written


def check_output(path: Path | None, endings: Sequence[str], *inputs: Path | None) -> None:
    """Refuse an output file with another ending, that cannot be written, or that is an input file.

    Commands call this before they compute, or pay for, anything.
    """
    if path is None:
        return
    is_input = any(path.resolve() == other.resolve() for other in inputs if other is not None)
    refuse(is_input, f"{path}: is also an input file; give another output file")
    require_ending(path, endings)
    _check_parent(path, path.resolve().parent)


def check_page(path: Path) -> None:
    """Refuse a file that a report cannot be written to."""
    check_output(path, (".html", ".htm"))
    core.require_module("jinja2", "reports", "cli")


def check_folder(folder: Path, own_files: Collection[str] | None = None) -> None:
    """Refuse a folder that cannot be created or written to.

    With ``own_files``, also one that has other files than these, or folders with files, in it.
    """
    refuse(folder.is_file(), f"{folder}: is a file, not a folder; give another name")
    _check_parent(folder, next(p for p in (folder, *folder.absolute().parents) if p.exists()))
    for path in folder.iterdir() if folder.is_dir() and own_files is not None else ():
        is_other = path.name not in (own_files or ()) or (path.is_dir() and any(path.iterdir()))
        text = f"{folder}: is not empty ({path.name!r} is in it); give another folder"
        refuse(is_other, text)


def _check_parent(path: Path, folder: Path) -> None:
    refuse(not folder.is_dir(), f"{path}: cannot write there: create the folder {folder} first")
    refuse(
        not os.access(folder, os.W_OK), f"{path}: cannot write there: no permission for {folder}"
    )


def write_folder(folder: Path, files: Mapping[str, str], subfolder: str | None = None) -> None:
    """Write text files into a new folder: all of them, or nothing.

    A folder that exists is replaced; see `check_folder`.
    """
    place = folder.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with (
        name_disk_errors(folder),
        TemporaryDirectory(prefix=f".{place.name}.", dir=place.parent) as temporary,
    ):
        new = Path(temporary, "new")
        (new / (subfolder or "")).mkdir(parents=True)
        for name, text in files.items():
            (new / name).write_bytes(text.encode(errors="backslashreplace"))
        if place.exists():
            place.rename(Path(temporary, "old"))
        new.rename(place)


# ---- Jobs over many parts


@contextmanager
def show_parts(doing: str, kind: ProgressKind = "text") -> Iterator[Callable[[jobs.JobRun], None]]:
    """Yield the function that shows how far a job is.

    Without a terminal, it prints a line from time to time, for a log or for a program.
    """
    told = 0.0
    with tell_progress(doing, kind) as tell, progress_bar() as bar:
        bar.disable = bar.disable or kind == "json"
        task = bar.add_task(doing, total=None)

        def show(run: jobs.JobRun) -> None:
            nonlocal told
            rate = f"{run.n_new_rows / max(run.elapsed, 1e-9):,.0f} per second"
            decided = run.n_done + run.n_kept + len(run.failed)
            what = f"{doing}: {run.n_rows:,} rows, {rate}; parts"
            tell(parts=decided, of_parts=run.n_parts, failed=len(run.failed), rows=run.n_rows)
            bar.update(task, completed=decided, total=run.n_parts, description=what)
            if kind == "text" and bar.disable and run.elapsed - told >= LOG_SECONDS:
                told = run.elapsed
                say(f"{what} {decided:,}/{run.n_parts:,}", bar.console)

        yield show


@contextmanager
def open_executor(scheduler: str | None) -> Iterator[Executor | None]:
    """Yield the workers of a Dask cluster, if the address of a scheduler is given."""
    if scheduler is None:
        yield None
        return
    distributed = core.require_module("distributed", "clusters", "cluster")
    with distributed.Client(scheduler) as client:
        yield client.get_executor()


def is_dataset(text: str, workers: int | None, scheduler: str | None) -> bool:
    """Tell whether many files are to be read: a folder, a pattern, or on workers."""
    if workers is not None:
        core.require_whole_number("--workers", workers)
        refuse(scheduler, "give --workers for local processes or --scheduler, not both")
    on_workers = workers is not None or scheduler is not None
    return on_workers or Path(text).is_dir() or has_pattern(text)


def print_parts(run: jobs.JobRun, done: str) -> None:
    """Print how many parts were done, how long it took, and what failed.

    If a part failed, the command exits with status 1: a script should not take an output with
    gaps for a complete one.
    """
    earlier = f", {run.n_kept:,} finished earlier" if run.n_kept else ""
    say(f"parts: {run.n_done:,} {done}{earlier}, {len(run.failed):,} failed")
    if run.n_done:
        rate = f"{run.n_new_rows / run.elapsed:,.0f} rows per second"
        say(f"time: {run.elapsed:.1f} s ({rate})")
    for name, reason in run.failed[:FAILED_SHOWN]:
        # Most reasons begin with the name of the part.
        say(f"failed: {reason}" if name in reason else f"failed: {name}: {reason}")
    if run.failed:
        raise typer.Exit(1)

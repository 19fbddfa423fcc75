"""What the command prints, and checks of the files and folders that it will write."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from rankshot.core.errors import RankshotError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

SHOWN = 5
"""How many classes of a ranking are shown, beside others."""

ITEMS_SHOWN = 10
"""How many items of a consensus are shown."""


def say(text: str, console: Console | None = None) -> None:
    """Print text unchanged: without highlighting, markup or added line breaks."""
    from rich.console import Console

    (console or Console()).print(text, highlight=False, markup=False, soft_wrap=True)


def format_order(
    order: Sequence[str | Sequence[str]], after: Callable[[str], str] = lambda _: ""
) -> str:
    """Return an order as text, with ties; of a long one the first items, and how many follow.

    ``after(name)`` is written after a tie whose first item is ``name``.

    Examples
    --------
    >>> format_order(["tea", ("juice", "beer"), "water"])
    'tea > juice = beer > water'
    >>> format_order(["tea", *map(str, range(20))])
    'tea > 0 > 1 > 2 > 3 > 4 > 5 > 6 > 7 > 8 > … and 11 more'
    """
    ties = [(tie,) if isinstance(tie, str) else tuple(tie) for tie in order]
    places: list[str] = []
    left, rest = ITEMS_SHOWN, sum(map(len, ties))
    for tie in ties:
        if left <= 0:
            break
        cut = (f"{len(tie) - left:,} more",) if len(tie) > left else ()
        places.append(" = ".join((*tie[:left], *cut)) + after(tie[0]))
        left -= len(tie)
        rest -= len(tie)
    return " > ".join([*places, f"… and {rest:,} more"] if rest else places)


def fail(text: str) -> NoReturn:
    """Print an error message and exit with status 2."""
    from rich.console import Console

    Console(stderr=True).print(
        f"rankshot: {text}", highlight=False, markup=False, style="red", soft_wrap=True
    )
    raise SystemExit(2)


def progress_bar() -> Progress:
    """Return a progress bar on standard error; it is hidden unless that is a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Refuse an output file that cannot be written, or that is one of the input files.

    Commands call this before they compute, or pay for, anything.
    """
    folder = path.resolve().parent
    _check_folder(path, folder)
    if path.is_dir():
        raise RankshotError(f"{path}: cannot write there: it is a folder")
    if any(path.resolve() == other.resolve() for other in inputs if other is not None):
        raise RankshotError(f"{path}: is an input file as well; give another file to write")


def check_page(path: Path) -> None:
    """Refuse a file that a report cannot be written to."""
    from rankshot.core.files import require_ending
    from rankshot.report.page import require_jinja2

    require_ending(path, (".html", ".htm"))
    require_jinja2()
    check_writable(path)


def check_output_folder(folder: Path) -> None:
    """Refuse a folder that does not exist and cannot be created, or that cannot be written to."""
    existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    _check_folder(folder, existing)


def check_new_folder(folder: Path, own_files: Collection[str] = ()) -> None:
    """Refuse a folder that cannot be created, or that has files of the user in it.

    Parameters
    ----------
    folder : Path
        Need not exist.
    own_files : collection of str
        Names of files, or of empty folders, that may be in it, since they will be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise RankshotError(f"{folder}: is a file, not a folder; give another name")
    check_output_folder(folder)
    if folder.is_dir():
        for path in folder.iterdir():
            if path.name not in own_files or (path.is_dir() and any(path.iterdir())):
                raise RankshotError(
                    f"{folder}: is not empty ({path.name!r} is in it); give another folder"
                )


def write_folder(folder: Path, files: Mapping[str, str], subfolder: str | None = None) -> None:
    """Write text files into a new folder: all of them, or nothing.

    A folder that exists is replaced; see `check_new_folder`.
    """
    import shutil
    import tempfile

    place = folder.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        new = temporary / "new"
        new.mkdir()
        for name, text in files.items():
            (new / name).write_bytes(text.encode(errors="backslashreplace"))
        if subfolder is not None:
            (new / subfolder).mkdir()
        if not place.exists():
            new.rename(place)
            return
        place.rename(temporary / "old")
        try:
            new.rename(place)
        except OSError:
            (temporary / "old").rename(place)
            raise
    finally:
        shutil.rmtree(temporary)


def _check_folder(path: Path, folder: Path) -> None:
    if not folder.is_dir():
        raise RankshotError(f"{path}: cannot write there: {folder} is not a folder")
    if not os.access(folder, os.W_OK):
        raise RankshotError(f"{path}: cannot write there: you may not write in {folder}")

"""What the command prints: plain lines, failures, and bars while something takes long."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NoReturn

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from rankshot.core.errors import RankshotError
from rankshot.report.page import require_jinja2

SHOWN = 5
"""How many items of a ranking are shown."""


def say(text: str, console: Console | None = None) -> None:
    """Print text as it is: no colours for numbers, no markup, no line breaks of our own."""
    (console or Console()).print(text, highlight=False, markup=False, soft_wrap=True)


def fail(text: str) -> NoReturn:
    """Say what is wrong, and end with status 2."""
    Console(stderr=True).print(
        f"rankshot: {text}", highlight=False, markup=False, style="red", soft_wrap=True
    )
    raise SystemExit(2)


def progress_bar() -> Progress:
    """Return a bar on the terminal, and nothing where the errors go to a file."""
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
    """Refuse a place where nothing can be written before anything is computed or paid for.

    What is read must not be written over, either.
    """
    folder = path.resolve().parent
    if not folder.is_dir():
        raise RankshotError(f"{path}: cannot write there: {folder} is no folder")
    if path.is_dir():
        raise RankshotError(f"{path}: cannot write there: it is a folder")
    if not os.access(folder, os.W_OK):
        raise RankshotError(f"{path}: cannot write there: {folder} is not yours to write in")
    if any(path.resolve() == other.resolve() for other in inputs if other is not None):
        raise RankshotError(f"{path}: would be written over what is read; give another --output")


def check_page(path: Path) -> None:
    """Refuse a place or a name that a report cannot be written to."""
    if path.suffix not in {".html", ".htm"}:
        raise RankshotError(f"{path}: unknown ending {path.suffix!r}; a report is .html")
    require_jinja2()
    check_writable(path)

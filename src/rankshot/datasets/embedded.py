"""Where the files are that come with the package."""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib.resources import as_file, files
from pathlib import Path


def embedded(file: str) -> AbstractContextManager[Path]:
    """Return the path of a data file, good inside ``with``, even from inside a zip.

    Examples
    --------
    >>> with embedded("cifar10_classes.txt") as path:
    ...     print(path.read_text(encoding="utf-8").split()[0])
    airplane
    """
    return as_file(files("rankshot.datasets") / "data" / file)

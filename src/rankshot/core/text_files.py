"""Text files: read line by line, written whole or not at all."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from rankshot.core.errors import RankshotError
from rankshot.core.names import as_names

MARK = b"\xef\xbb\xbf"
"""The byte-order mark that some editors put before UTF-8."""


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file that are not blank, with their numbers from 1."""
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = (raw.removeprefix(MARK) if number == 1 else raw).decode().strip()
            except UnicodeDecodeError as error:
                raise RankshotError(f"{path}:{number}: not UTF-8 text ({error.reason})") from None
            if line:
                yield number, line


def read_names(path: Path) -> tuple[str, ...]:
    """Read names, one a line; what follows a # at the start or after a space is a remark."""
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for _, line in read_lines(path)]
    try:
        return as_names([line for line in lines if line], "names")
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None


@contextmanager
def replace_file(path: Path) -> Iterator[TextIO]:
    """Open a file that takes the place of ``path`` when, and only when, all went well."""
    path = path.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise RankshotError(f"{path}: cannot write there ({error.strerror})") from None
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(path.stat().st_mode if path.exists() else 0o666 & ~_umask())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

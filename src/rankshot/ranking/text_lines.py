"""Reading text line by line, so that every complaint can name its line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from rankshot.ranking.encode import as_names
from rankshot.ranking.errors import RankshotError

MARK = b"\xef\xbb\xbf"
"""The byte-order mark that some editors put before UTF-8."""


def text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file that are not blank, with their numbers from 1."""
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, 1):
            try:
                line = (raw.removeprefix(MARK) if number == 1 else raw).decode().strip()
            except UnicodeDecodeError as error:
                raise RankshotError(f"{path}:{number}: not UTF-8 text ({error.reason})") from None
            if line:
                yield number, line


def names_in(path: Path) -> tuple[str, ...]:
    """Read names, one a line; what follows a # at the start or after a space is a remark."""
    lines = [re.sub(r"(^|\s)#.*", "", line).strip() for _, line in text_lines(path)]
    try:
        return as_names([line for line in lines if line], "names")
    except RankshotError as error:
        raise RankshotError(f"{path}: {error}") from None

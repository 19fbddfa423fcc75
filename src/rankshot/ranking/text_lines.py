"""Reading text line by line, so that every complaint can name its line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

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

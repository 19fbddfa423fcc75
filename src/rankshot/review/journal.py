"""What people decided, as lines of JSON that are only ever added, each on disk before it counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

from rankshot.core.errors import OutputError, RankshotError
from rankshot.core.files import iterate_lines

MAX_LINE = 2**24
"""Bytes of a line: the labels of a few hundred thousand inputs."""
Event = dict[str, Any]


class Journal:
    """A file of events, which `read` returns in their order.

    A process that is killed can leave an incomplete last line. This event was not acknowledged, so
    it is removed when the file is opened.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        try:
            # Not buffered: what is written goes to the system in one call.
            self._stream = path.open("a+b", buffering=0)
        except OSError as error:
            raise OutputError(f"{path}: cannot write there ({error.strerror})") from None
        self._size = self._cut_incomplete_line()

    def _cut_incomplete_line(self) -> int:
        """Remove what follows the last line end; return the size that is left."""
        size = end = self._stream.seek(0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - MAX_LINE)
            self._stream.seek(begin)
            last = self._stream.read(end - begin).rfind(b"\n")
            end = begin + last + 1 if last >= 0 else begin
            if last >= 0:
                break
        if end < size:
            self._stream.truncate(end)
        return end

    def read(self) -> Iterator[Event]:
        """Yield all events."""
        with self.path.open("rb") as stream:
            for number, line in iterate_lines(stream, self.path, MAX_LINE):
                try:
                    event = json.loads(line)
                except ValueError:
                    event = None
                if not isinstance(event, dict):
                    raise RankshotError(
                        f"{self.path}:{number}: damaged: not a line of JSON; restore the file from "
                        "a copy, or remove the line to lose only what it says"
                    )
                yield event

    def append(self, event: Event) -> None:
        """Add an event; when this returns, it is on disk."""
        line = json.dumps(event, ensure_ascii=True, separators=(",", ":")).encode() + b"\n"
        with self._lock:
            try:
                if os.fstat(self._stream.fileno()).st_nlink == 0:
                    raise FileNotFoundError(0, "the file was removed")
                left = memoryview(line)
                while left:
                    left = left[self._stream.write(left) or 0 :]
                os.fsync(self._stream.fileno())
            except OSError as error:
                # Half a line must not stay: the next event would be part of it.
                self._stream.truncate(self._size)
                raise OutputError(
                    f"{self.path}: cannot be written: {error.strerror}; nothing of this was saved"
                ) from None
            self._size += len(line)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

"""What people decided, as lines of JSON that are only ever added, each on disk before it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankshot.core.errors import OutputError, RankshotError
from rankshot.core.files import append_line

Event = dict[str, Any]


class Journal:
    """A file of events, which `read` returns in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            # Not buffered: what is written goes to the system in one call.
            self._stream = path.open("a+b", buffering=0)
        except OSError as error:
            raise OutputError(f"{path}: cannot write there ({error.strerror})") from None

    def read(self) -> Iterator[Event]:
        """Yield all events, before the first one is added.

        A process that is killed can leave an incomplete last line. Its event was not acknowledged,
        and it is removed.
        """
        end = 0
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, 1):
                if not line.endswith(b"\n"):
                    self._stream.truncate(end)
                    return
                end += len(line)
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
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        append_line(self._stream, line, self.path)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

"""The journal of a review: lines of JSON that are only added, each on disk before it counts."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rankshot.core.errors import InputError, OutputError, short_repr
from rankshot.core.files import append_line

Event = dict[str, Any]
DAMAGED = "is damaged, or was written by another version of rankshot"


def is_event(value: object) -> bool:
    """Whether a value is an event that `Review` understands.

    Examples
    --------
    >>> from rankshot.review.journal import is_event
    >>> is_event({"what": "labels", "labels": {"a.jpg": "cat", "b.jpg": None}})
    True
    >>> is_event({"what": "labels", "labels": {"a.jpg": ["cat"]}}), is_event({"what": "new"})
    (False, False)
    """
    match value:
        case {"what": "labels", "labels": dict(labels)}:
            return all(isinstance(label, str | None) for label in labels.values())
        case {"what": "class", "name": str(), "ranking": [*names]}:
            return all(isinstance(name, str) for name in names)
        case {"what": "audit", "seed": int(seed), "digest": str()}:
            return seed >= 0
        case {"what": "check", "id": str(), "label": str()} | {"what": "uncheck" | "close"}:
            return True
    return False


class Journal:
    """A file of events, which `read` returns in their order; only its owner may read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
            path.chmod(0o600)
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
                except (ValueError, RecursionError):
                    event = line
                if not is_event(event):
                    hint = "restore a copy, or remove this line; only the decision in it is lost"
                    where = f"{self.path}:{number}"
                    raise InputError("event", short_repr(event), DAMAGED, where, hint)
                yield event

    def append(self, event: Event) -> None:
        """Add an event; when this returns, it is on disk."""
        line = json.dumps(event, separators=(",", ":")).encode() + b"\n"
        append_line(self._stream, line, self.path)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

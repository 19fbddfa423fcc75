"""Progress of long computations, for a caller or as a line on the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import Self

Announce = Callable[[int, int, str], None]
"""Called with how much is done, of how much, and of what: bytes of a file, images, or steps."""
INTERVAL = 0.1
"""Seconds between two updates; more frequent ones would flicker."""


class ProgressLine:
    """A line that is rewritten on a terminal; elsewhere only its last text is printed."""

    def __init__(self, label: str, *, enabled: bool) -> None:
        self.label = label
        self.enabled = enabled
        self.stream = sys.stderr
        self._last = ""
        self._shown_at = -INTERVAL

    def __enter__(self) -> Self:
        return self

    def update(self, text: str) -> None:
        """Show ``text`` after the label."""
        if not self.enabled:
            return
        self._last = text
        now = monotonic()
        if self.stream.isatty() and now - self._shown_at >= INTERVAL:
            self._shown_at = now
            self.stream.write(f"\r\x1b[K{self.label}: {text}")
            self.stream.flush()

    def __exit__(self, *exc: object) -> None:
        if self._last:
            start = "\r\x1b[K" if self.stream.isatty() else ""
            self.stream.write(f"{start}{self.label}: {self._last}\n")

"""Calls of an endpoint by several threads, which keep its rate limits together."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from queue import SimpleQueue
from threading import Event, Lock, Thread
from time import monotonic
from typing import Generic, TypeVar

from rankshot.core.http import LONGEST_WAIT

T = TypeVar("T")
POLL = 0.1
"""Seconds after which a task that could not be done yet is tried again."""
GRACE = 0.5
"""Seconds after Ctrl-C in which tasks that have their answer can store it."""
REMAINING = re.compile(
    r"(?:x-|anthropic-)?ratelimit-(?:remaining(?:-(?P<after>[a-z-]+))?|(?P<before>[a-z-]+)-remaining)"
)
"""The headers that say how much is left: OpenAI has x-ratelimit-remaining-requests, Anthropic
anthropic-ratelimit-requests-remaining; both have others for tokens."""
UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "us": 1e-6, "ns": 1e-9}
EPOCH = 1e9
"""A number above this is no span of seconds, but a moment: seconds since 1970."""


class StoppedError(Exception):
    """The run was stopped: no more calls are to be made."""


class Pace:
    """When the next call may be made, for all threads that call one endpoint.

    Examples
    --------
    >>> pace = Pace()
    >>> pace.wait()
    >>> pace.stop()
    >>> pace.wait()
    Traceback (most recent call last):
        ...
    rankshot.sources.pace.StoppedError
    """

    def __init__(self) -> None:
        self._stopped = Event()
        self._lock = Lock()
        self._open_at = -math.inf

    def wait(self) -> None:
        """Wait until a call may be made; raise `StoppedError` if none may be made any more."""
        while (left := self._open_at - monotonic()) > 0:
            self.sleep(left)
        self.sleep(0)

    def sleep(self, seconds: float) -> None:
        """Sleep, unless the run is stopped: then raise `StoppedError` at once."""
        if self._stopped.wait(seconds):
            raise StoppedError

    def postpone(self, seconds: float) -> None:
        """Let no thread call in the next seconds; a minute at most, whatever a server says."""
        if seconds > 0:
            with self._lock:
                self._open_at = max(self._open_at, monotonic() + min(seconds, LONGEST_WAIT))

    def stop(self) -> None:
        """Let nobody call any more; calls under way go on."""
        self._stopped.set()


def call_in_threads(
    task: Callable[[int], T | None],
    numbers: Sequence[int],
    parallel: int,
    pace: Pace,
    announce: Callable[[int], object],
) -> dict[int, T]:
    """Return the result of a task for each number; several threads work on them, in turn.

    After a failure no task is begun, those under way are completed, and the failure is raised: of
    several, that of the lowest number. After Ctrl-C they are given up, except for half a second.

    Parameters
    ----------
    task : callable
        Gets a number. It returns None if it cannot be done yet: then it is done again later.
    numbers : sequence of int
    parallel : int
        The number of threads.
    pace : Pace
        What the tasks wait for; it is stopped after a failure.
    announce : callable
        Called with the number of tasks that are done.

    Examples
    --------
    >>> call_in_threads(lambda number: number**2, range(4), 2, Pace(), announce=lambda done: None)
    {0: 0, 1: 1, 2: 4, 3: 9}
    """
    crew = _Crew(task, numbers, parallel, pace)
    try:
        return crew.collect(announce)
    except BaseException:
        crew.give_up()
        raise


class _Crew(Generic[T]):
    """The threads of `call_in_threads`, the tasks that wait for them, and their results."""

    def __init__(
        self, task: Callable[[int], T | None], numbers: Sequence[int], parallel: int, pace: Pace
    ) -> None:
        self.task = task
        self.pace = pace
        self.todo = deque(numbers)
        self.outcomes: SimpleQueue[tuple[int, T | Exception] | None] = SimpleQueue()
        count = min(parallel, len(numbers))
        self.threads = [Thread(target=self._work, daemon=True) for _ in range(count)]

    def collect(self, announce: Callable[[int], object]) -> dict[int, T]:
        for thread in self.threads:
            thread.start()
        results: dict[int, T] = {}
        failures: dict[int, Exception] = {}
        working = len(self.threads)
        while working:
            match self.outcomes.get():
                case None:
                    working -= 1
                case number, Exception() as failure:
                    failures[number] = failure
                case number, result:
                    results[number] = result
                    announce(len(results))
        for number in sorted(failures):
            if not isinstance(failures[number], StoppedError):
                raise failures[number]
        return dict(sorted(results.items()))

    def give_up(self) -> None:
        self._stop()
        end = monotonic() + GRACE
        for thread in self.threads:
            if thread.is_alive():
                thread.join(max(end - monotonic(), 0))

    def _work(self) -> None:
        while True:
            try:
                number = self.todo.popleft()
            except IndexError:
                break
            try:
                result = self.task(number)
                if result is None:
                    self.pace.sleep(POLL)
                    self.todo.append(number)
                else:
                    self.outcomes.put((number, result))
            except Exception as error:  # noqa: BLE001 - raised again in the caller's thread
                self._stop()
                self.outcomes.put((number, error))
        self.outcomes.put(None)

    def _stop(self) -> None:
        self.pace.stop()
        self.todo.clear()


def find_rate_limit_wait(headers: Mapping[str, str], tokens: int) -> float:
    """Return for how many seconds the headers of an answer forbid another call like it; or 0.

    Parameters
    ----------
    headers : mapping
        ``x-ratelimit-remaining-requests`` and ``x-ratelimit-reset-requests``, or as Anthropic
        names them, and the same for tokens. Some servers leave out the last word.
    tokens : int
        The tokens that the next call may take.

    Examples
    --------
    >>> find_rate_limit_wait({"x-ratelimit-remaining-requests": "0",
    ...     "x-ratelimit-reset-requests": "1m0.5s"}, tokens=100)
    60.5
    >>> find_rate_limit_wait({"x-ratelimit-remaining-tokens": "101",
    ...     "x-ratelimit-reset-tokens": "6s"}, tokens=100)
    0.0
    """
    values = {name.lower(): value for name, value in headers.items()}
    waits = [0.0]
    for name, remaining in values.items():
        if found := REMAINING.fullmatch(name):
            what = found["after"] or found["before"] or "requests"
            needed = max(tokens, 1) if "token" in what else 1
            if re.fullmatch(r"\d{1,18}", remaining.strip()) and int(remaining) < needed:
                waits.append(_parse_reset(values.get(name.replace("remaining", "reset"), "")))
    return max(waits)


def _parse_reset(text: str) -> float:
    """Return the seconds until a limit is reset: 6m0s, 120ms, 1.5, a date, or a moment; else 0."""
    text = text.strip()
    try:
        if re.fullmatch(r"(?:\d+(?:\.\d*)?(?:d|h|ms|m|us|ns|s))+", text):
            parts = re.findall(r"([\d.]+)(ms|us|ns|d|h|m|s)", text)
            seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
        elif re.fullmatch(r"\d{1,15}(?:\.\d{0,9})?", text):
            number = float(text)
            # Some servers count the moment in milliseconds.
            number /= 1000 if number > EPOCH * 1000 else 1
            seconds = number - datetime.now(UTC).timestamp() if number > EPOCH else number
        else:
            date = datetime.fromisoformat(text)
            date = date.replace(tzinfo=UTC) if date.tzinfo is None else date
            seconds = (date - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError):
        return 0.0
    return max(seconds, 0.0)

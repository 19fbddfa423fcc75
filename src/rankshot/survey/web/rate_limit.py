"""How often one address may ask: a bucket each, in memory that does not grow."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from threading import Lock

MOST_ADDRESSES = 10_000
MOST_CHARACTERS = 64


class RateLimit:
    """Allow every address so many requests a minute, all of them at once if it likes.

    Parameters
    ----------
    per_minute : int
        How fast a bucket fills, and how much it holds.
    clock : callable
        Returns the time in seconds.

    Examples
    --------
    >>> limit = RateLimit(2, clock=lambda: 0.0)
    >>> [limit.wait("192.0.2.1") for _ in range(3)]
    [0.0, 0.0, 30.0]
    """

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._size = float(per_minute)
        self._clock = clock
        self._lock = Lock()
        # What is left in each bucket, and when that was; who asked last stands last.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Take one request out; return the seconds to wait if there is none, otherwise 0."""
        owner = _owner(address)
        rate = self._size / 60
        with self._lock:
            now = self._clock()
            left, then = self._buckets.pop(owner, (self._size, now))
            left = min(self._size, left + (now - then) * rate)
            allowed = left >= 1
            self._buckets[owner] = (left - allowed, now)
            if len(self._buckets) > MOST_ADDRESSES:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / rate


def _owner(address: str) -> str:
    """Return whose bucket it is: of IPv6, one household has 2^64 addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        # A proxy may send any text: it is kept, but not all of it.
        return address[:MOST_CHARACTERS]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    # Servers that listen to both kinds write IPv4 so; all of these are in one block.
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> 64:x}::/64"

"""Checks of requests (rate, origin, size, kind), headers of responses, and secrets."""

from __future__ import annotations

import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from ipaddress import ip_address
from math import ceil
from threading import Lock
from typing import Any
from urllib.parse import unquote_to_bytes

from pydantic import BaseModel, ConfigDict
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankshot.core.errors import NO_VALUE, InputError

MOST_ADDRESSES = 10_000
MOST_CHARACTERS = 64
# The largest body of a request; an answer to the largest question is a tenth of it.
MOST_BYTES = 64 * 1024
# The most fields of a form; an answer to the largest question has 52.
MOST_FIELDS = 64
FORM = "application/x-www-form-urlencoded"
# What pages may load and send: only from and to their own host.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# The headers of every response.
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    # No other site may learn a participant's link. Our own forms keep their Origin.
    (b"referrer-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-robots-tag", b"noindex"),
]
# Paths that do not count for the limit; all below those that end in /.
UNCOUNTED = ("/health", "/static/", "/images/")
CACHE = b"cache-control"
# The key of the body in the scope of a request.
SENT = "rankshot.sent"


class RefusedError(Exception):
    """A request that is refused.

    ``message`` is the key of a text, ``values`` are its fields, and ``link`` is where the reader
    can continue. Another page has a template with its values.
    """

    def __init__(
        self,
        status: int,
        message: str = "",
        link: str | None = None,
        *,
        template: str = "",
        headers: dict[str, str] | None = None,
        **values: object,
    ) -> None:
        super().__init__(f"{status} {message or template}")
        self.status = status
        self.template = template
        self.message = message
        self.link = link
        self.headers = headers or {}
        self.values = values


Refuse = Callable[[Any, RefusedError], Response]
"""Makes the page that says why a request is refused."""


@dataclass(frozen=True, eq=False)
class Guard:
    """Middleware that refuses requests against its rules, and adds headers to every response.

    Parameters
    ----------
    app
        The application that answers other requests.
    refuse : callable
        Makes the page that says why a request is refused.
    limit : RateLimit
        For all requests of an address, except for files.
    kind : str
        The only content type that is read. Files and other formats are never parsed.
    most_bytes : int
        The largest body.
    repeated : collection of bytes
        The fields that a form may have several times.
    hosts : collection of str, optional
        The names, with the port, by which browsers may ask for the pages. A page of another site
        can give our address a name of its own, and would then be of the same origin. By default,
        any name.
    """

    app: ASGIApp
    refuse: Refuse
    limit: RateLimit
    kind: str = FORM
    most_bytes: int = MOST_BYTES
    repeated: Collection[bytes] = ()
    hosts: Collection[str] | None = None

    def _check_start(self, scope: Scope, headers: Headers) -> None:
        """Refuse a request of too many, by another name, or from a page of another site."""
        is_counted = not scope["path"].startswith(UNCOUNTED)
        if is_counted and (wait := self.limit.wait(find_address(scope))):
            raise _make_wait_refusal(wait)
        if self.hosts is not None and headers.get("host") not in self.hosts:
            raise RefusedError(421, "host")
        _check_origin(scope, headers)

    def _check_body(self, scope: Scope, headers: Headers, body: bytes) -> None:
        """Refuse a body that is too large, or of a content type that our pages do not send."""
        # Some parsers treat ; like &.
        n_fields = 1 + body.count(b"&") + body.count(b";") if self.kind == FORM else 1
        if len(body) > self.most_bytes or (scope["method"] == "POST" and n_fields > MOST_FIELDS):
            raise RefusedError(413, "large", bytes=self.most_bytes, fields=MOST_FIELDS)
        kind = headers.get("content-type")
        if scope["method"] != "POST" or (kind is None and not body):
            return
        if (kind or "").partition(";")[0].strip().lower() != self.kind:
            raise RefusedError(415, "no_form")
        if self.kind == FORM:
            names = [unquote_to_bytes(one.partition(b"=")[0]) for one in body.split(b"&") if one]
            single = [name for name in names if name not in self.repeated]
            if len(set(single)) < len(single):
                # It is not clear which of the two is meant.
                raise RefusedError(422, "repeated")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; if the application fails, send a page that says so."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_started = False
        headers = Headers(scope=scope)

        async def send_guarded(message: Message) -> None:
            nonlocal has_started
            has_started = True
            if message["type"] == "http.response.start":
                # The Back button and a reload must show the current state.
                is_fresh = all(name != CACHE for name, _ in message["headers"])
                cache = [(CACHE, b"no-store")] if is_fresh else []
                message = {**message, "headers": [*message["headers"], *HEADERS, *cache]}
            await send(message)

        async def refuse(error: RefusedError) -> None:
            page = self.refuse(HTTPConnection(scope), error)
            await page(scope, receive, send_guarded)

        try:
            self._check_start(scope, headers)
            body = await _read_body(headers, receive, self.most_bytes)
            if body is None:
                # The client has gone. Half a form could be a different answer.
                return
            self._check_body(scope, headers, body)
            # HEAD is answered like GET; the server leaves the page out. The page of an error may
            # offer to send the body again.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]
            scope = {**scope, "method": method, SENT: body}
            await self.app(scope, _replay_body(body, receive), send_guarded)
        except RefusedError as error:
            await refuse(error)
        except Exception:
            if not has_started:
                # Starlette's own error page would not have the headers.
                await refuse(RefusedError(500, "failed"))
            raise


def _make_wait_refusal(wait: float) -> RefusedError:
    """Return what refuses a request that came too early by some seconds."""
    seconds = ceil(wait)
    return RefusedError(429, "wait", headers={"retry-after": str(seconds)}, seconds=seconds)


def _check_origin(scope: Scope, headers: Headers) -> None:
    """Refuse a form that a page of another site sends."""
    if scope["method"] in {"GET", "HEAD", "OPTIONS"}:
        return
    origin, site, host = map(headers.get, ("origin", "sec-fetch-site", "host"))
    is_same_host = origin is None or (host and origin.partition("://")[2] == host)
    if not (site in {"same-origin", "none"} if site else is_same_host):
        raise RefusedError(403, "other_site")


def find_address(scope: Scope) -> str:
    """Return the address from which a request comes."""
    client = scope.get("client")
    return client[0] if client else "unknown"


async def _read_body(headers: Headers, receive: Receive, most: int) -> bytes | None:
    """Read a body until it ends or is too large; None if the client disconnects."""
    length = headers.get("content-length", "0")
    # int() would accept other digits, and fail on thousands of them.
    is_count = length.isascii() and length.isdigit() and len(length) < 10
    if not is_count or int(length) > most:
        return bytes(most + 1)
    body = b""
    while len(body) <= most:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if not message.get("more_body", False):
            break
    return body


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that repeats the body, and then passes on what comes."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(messages, None) or await receive()

    return receive_again


# ---- Rate limits


class RateLimit:
    """A token bucket per address, in bounded memory: ``most`` requests in some seconds."""

    def __init__(
        self, most: int, clock: Callable[[], float] = time.monotonic, seconds: float = 60.0
    ) -> None:
        self._size = float(most)
        self._seconds = seconds
        self._clock = clock
        self._lock = Lock()
        # The content of each bucket and its time; the most recent address is last.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Take one request from the bucket; return 0, or the seconds to wait if it is empty."""
        owner = _bucket_key(address)
        rate = self._size / self._seconds
        with self._lock:
            now = self._clock()
            left, then = self._buckets.pop(owner, (self._size, now))
            left = min(self._size, left + (now - then) * rate)
            allowed = left >= 1
            self._buckets[owner] = (left - allowed, now)
            if len(self._buckets) > MOST_ADDRESSES:
                self._buckets.popitem(last=False)
        return 0.0 if allowed else (1 - left) / rate


def _bucket_key(address: str) -> str:
    """Return the key of an address's bucket; a household has 2^64 IPv6 addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        # A proxy may send any text: only its beginning is kept.
        return address[:MOST_CHARACTERS]
    # IPv4 addresses may be written as IPv6; without this, all would share one block.
    ipv4 = getattr(parsed, "ipv4_mapped", parsed)
    return f"{int(parsed) >> 64:x}::/64" if ipv4 is None else str(ipv4)


# ---- The secret with which a person logs in

LEAST_SECRET = 16
MOST_SECRET = 500


def are_equal(expected: str, given: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(expected.encode(), given.encode())


def require_secret(secret: str) -> str:
    """Return the secret with which somebody logs in, if it is long and is sent unchanged."""
    is_sent_unchanged = secret.isascii() and secret.isprintable() and secret == secret.strip()
    if not is_sent_unchanged or not LEAST_SECRET <= len(secret) <= MOST_SECRET:
        rule = f"must have from {LEAST_SECRET} to {MOST_SECRET} ASCII characters, without spaces"
        hint = "make one with python -c 'import secrets; print(secrets.token_hex())'"
        raise InputError("token", NO_VALUE, rule, hint=hint)
    return secret


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def is_secret(request: Request, given: str, secret: str, attempts: RateLimit) -> bool:
    """Return whether somebody sent the secret; ``attempts`` limits wrong ones per address."""
    address = find_address(request.scope)
    is_same = are_equal(secret, given)
    if is_same and is_loopback(address):
        # Whatever else on this machine tried wrong ones does not lock out its owner.
        return True
    if wait := attempts.wait(address):
        raise _make_wait_refusal(wait)
    return is_same


def set_cookie(response: Response, request: Request, name: str, value: str, **rules: Any) -> None:
    """Set a cookie that scripts cannot read, and that HTTPS keeps to itself."""
    is_https = request.scope["scheme"] == "https"
    response.set_cookie(name, value, secure=is_https, httponly=True, **rules)


# ---- Forms


class Sent(BaseModel):
    """What one of our pages sends, in a form, as JSON or in an address: it has no other fields."""

    model_config = ConfigDict(extra="forbid")

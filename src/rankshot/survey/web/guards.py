"""Checks of every request (rate, origin, size, kind), and headers of every response."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from math import ceil
from threading import Lock
from urllib.parse import unquote_to_bytes, urlsplit

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_ADDRESSES = 10_000
MOST_CHARACTERS = 64
MOST_BYTES = 64 * 1024
"""The largest body of a request; an answer to the largest question is a tenth of it."""
MOST_FIELDS = 64
"""The most fields of a form; an answer to the largest question has 52."""
FORM = "application/x-www-form-urlencoded"
"""The only content type that is read: files and other formats are never parsed."""
OWN_ORIGIN = "'self'"
_NO_STORE = (b"cache-control", b"no-store")
Refuse = Callable[[int, str, str], Response]
"""Makes a page from a status, a heading and a text."""


def security_headers(form_hosts: tuple[str, ...], frame_ancestors: str) -> dict[str, str]:
    """Return the headers of every response.

    Parameters
    ----------
    form_hosts : tuple of str
        Other origins to which a form may be sent.
    frame_ancestors : str
        The sites that may show our pages in a frame, as in a content-security policy.
    """
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self'; form-action {' '.join((OWN_ORIGIN, *form_hosts))}; "
        f"frame-ancestors {frame_ancestors}; base-uri 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        # No other site may learn a participant's link. Our own forms keep their Origin.
        "referrer-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-robots-tag": "noindex",
    }


class Guard:
    """Middleware that refuses requests which are too many, too large or from other sites.

    Parameters
    ----------
    app : ASGI application
    headers : dict
        Added to every response.
    limit : RateLimit
        For all requests of an address.
    stricter : dict
        For each of these paths, the limit for forms that are sent to it (POST).
    tokens : RateLimit
        For attempts with a researcher's token, right or wrong.
    refuse : callable
        Makes the page that says why a request was refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        headers: dict[str, str],
        limit: RateLimit,
        stricter: dict[str, RateLimit],
        tokens: RateLimit,
        refuse: Refuse,
    ) -> None:
        self._app = app
        self._headers = [(name.encode(), value.encode()) for name, value in headers.items()]
        self._limit = limit
        self._stricter = stricter
        self._tokens = tokens
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                own = {name for name, _ in message["headers"]}
                # The Back button and a reload must show the current state.
                more = self._headers if b"cache-control" in own else [*self._headers, _NO_STORE]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        headers = Headers(scope=scope)
        body = b""
        refusal = self._check_rates(scope, headers) or self._check_origin(scope, headers)
        if refusal is None:
            read = await _read_body(headers, receive)
            if read is None:
                # The client has gone. Half a form could be a different answer.
                return
            body = read
            refusal = self._check_form(scope, headers, body)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        try:
            await self._app(scope, _replay_body(body, receive), send_with_headers)
        except Exception:
            if not started:
                # Starlette's own error page would not have the headers.
                text = (
                    "Something went wrong on our side, and this answer was not saved. Please "
                    "reload the page to send it again. Your earlier answers are saved."
                )
                await self._refuse(500, "Sorry", text)(scope, receive, send_with_headers)
            raise

    def _check_rates(self, scope: Scope, headers: Headers) -> Response | None:
        client = scope.get("client")
        address = client[0] if client else "unknown"
        limits = [self._limit]
        if scope["method"] == "POST" and scope["path"] in self._stricter:
            limits.append(self._stricter[scope["path"]])
        if _tries_token(scope, headers):
            limits.append(self._tokens)
        wait = next((wait for limit in limits if (wait := limit.wait(address))), 0.0)
        if not wait:
            return None
        seconds = ceil(wait)
        text = (
            f"There were too many requests from your network. Please wait {seconds} seconds, and "
            "then reload the page. Your earlier answers are saved."
        )
        response = self._refuse(429, "Please wait a moment", text)
        response.headers["retry-after"] = str(seconds)
        return response

    def _check_origin(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse a form that a page of another site sends."""
        if scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        ours = site in {"same-origin", "none"} if site else True
        if origin is not None and site is None:
            ours = _is_same_host(origin, headers.get("host"))
        if ours:
            return None
        return self._refuse(
            403, "Wrong site", "The form was sent by another site. Nothing was stored."
        )

    def _check_form(self, scope: Scope, headers: Headers, body: bytes) -> Response | None:
        """Refuse a body that is too large, or of a content type that our pages do not send."""
        # Some parsers treat ; like &.
        n_fields = 1 + body.count(b"&") + body.count(b";")
        if len(body) > MOST_BYTES or (scope["method"] == "POST" and n_fields > MOST_FIELDS):
            text = f"A form has at most {MOST_BYTES:,} bytes and {MOST_FIELDS} fields."
            return self._refuse(413, "Too large", f"{text} Nothing was stored.")
        kind = headers.get("content-type")
        if scope["method"] != "POST" or (kind is None and not body):
            return None
        if (kind or "").partition(";")[0].strip().lower() != FORM:
            return self._refuse(
                415, "Not a form", "The request is not a form of our pages. Nothing was stored."
            )
        if _repeats_field(body):
            # It is not clear which of the two is meant.
            return self._refuse(
                422, "Malformed", "A field of the form was sent twice. Nothing was stored."
            )
        return None


def _tries_token(scope: Scope, headers: Headers) -> bool:
    """Return whether a request has a researcher's token, in the login form or a header."""
    if scope["path"] == "/researcher/login":
        return bool(scope["method"] == "POST")
    scheme, _, _ = headers.get("authorization", "").partition(" ")
    return scope["path"].startswith("/researcher") and scheme.lower() == "bearer"


def _is_same_host(origin: str, host: str | None) -> bool:
    """Return whether a form's origin is the host to which it is sent."""
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:
        return False


def _repeats_field(body: bytes) -> bool:
    """Return whether a form has a field twice; only places and raters may be."""
    names = [unquote_to_bytes(field.partition(b"=")[0]) for field in body.split(b"&") if field]
    others = [name for name in names if name not in {b"place", b"rater"}]
    return len(set(others)) < len(others)


async def _read_body(headers: Headers, receive: Receive) -> bytes | None:
    """Read a body until it ends or is too large; None if the client disconnects."""
    length = headers.get("content-length", "0")
    # int() would accept other digits, and fail on thousands of them.
    is_count = length.isascii() and length.isdigit() and len(length) < 10
    if not is_count or int(length) > MOST_BYTES:
        return bytes(MOST_BYTES + 1)
    body = b""
    while len(body) <= MOST_BYTES:
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
    """A token bucket per address, in bounded memory.

    Parameters
    ----------
    per_minute : int
        How fast a bucket fills, and how many requests it holds.
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
        # The content of each bucket and its time; the most recent address is last.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, address: str) -> float:
        """Take one request from the bucket; return 0, or the seconds to wait if it is empty."""
        owner = _bucket_key(address)
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


def _bucket_key(address: str) -> str:
    """Return the key of an address's bucket; a household has 2^64 IPv6 addresses."""
    try:
        parsed = ip_address(address)
    except ValueError:
        # A proxy may send any text: only its beginning is kept.
        return address[:MOST_CHARACTERS]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    # IPv4 addresses may be written as IPv6; without this, all would share one block.
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return f"{int(parsed) >> 64:x}::/64"

"""What every request passes: rates, an origin, a form's size; and the headers of every response."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv6Address, ip_address
from math import ceil
from threading import Lock
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_ADDRESSES = 10_000
MOST_CHARACTERS = 64
MOST_BYTES = 64 * 1024
"""Of a request's body: an answer to the largest question is a tenth of it."""
MOST_FIELDS = 64
"""Of a form: an answer to the largest question has 52."""
FORM = "application/x-www-form-urlencoded"
"""What our pages send, and so all that is read: files and other formats are parsed by nobody."""
OURSELVES = "'self'"
Refuse = Callable[[int, str, str], Response]
"""Makes a page of a status, a heading and a text."""


# -------------------- survey.web.rate_limit
# How often one address may ask: a bucket each, in memory that does not grow.


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


# -------------------- survey.web.guards
# What every request passes: rates, an origin, a form's size; and the headers of every response.


def security_headers(form_hosts: tuple[str, ...], frame_ancestors: str) -> dict[str, str]:
    """Return the headers that every response has.

    Parameters
    ----------
    form_hosts : tuple of str
        Origins beside our own that a form may be sent to.
    frame_ancestors : str
        Who may show our pages inside theirs, in the words of the content-security policy.
    """
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        f"connect-src 'self'; form-action {' '.join((OURSELVES, *form_hosts))}; "
        f"frame-ancestors {frame_ancestors}; base-uri 'none'"
    )
    return {
        "content-security-policy": policy,
        "x-content-type-options": "nosniff",
        # Links are capabilities: no other site learns them. Our own forms keep their Origin.
        "referrer-policy": "same-origin",
        "permissions-policy": "camera=(), geolocation=(), microphone=()",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-robots-tag": "noindex",
    }


class Guard:
    """Stands before the application, and lets through what is small, slow and from our pages.

    Parameters
    ----------
    app : ASGI application
    headers : dict
        Put on every response.
    limit : RateLimit
        Of all requests of an address.
    stricter : dict
        Of the forms that are sent to these paths (POST).
    tokens : RateLimit
        Of the researcher's tokens that an address may try, right or wrong.
    refuse : callable
        Makes the page that says why not.
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
        self._headers = headers
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
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                # Back and reload ask us, and see what is true now.
                headers.setdefault("cache-control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        body = b""
        refusal = self._too_often(scope, headers) or self._from_elsewhere(scope, headers)
        if refusal is None:
            read = await _read_body(headers, receive)
            if read is None:
                # Half an answer is another answer: nobody is there who could be told.
                return
            body = read
            refusal = self._no_form(scope, headers, body)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        try:
            await self._app(scope, _replay_body(body, receive), send_with_headers)
        except Exception:
            if not started:
                # The page that Starlette makes of an error comes from outside of this guard,
                # and would lack the headers.
                text = (
                    "Something went wrong on our side, and this was not kept. Please reload the "
                    "page to send it again; what you sent before is kept."
                )
                await self._refuse(500, "Sorry", text)(scope, receive, send_with_headers)
            raise

    def _too_often(self, scope: Scope, headers: Headers) -> Response | None:
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
            f"There were many requests from your network. Please wait {seconds} seconds and "
            "reload the page: what you have sent before is kept."
        )
        response = self._refuse(429, "Please wait a moment", text)
        response.headers["retry-after"] = str(seconds)
        return response

    def _from_elsewhere(self, scope: Scope, headers: Headers) -> Response | None:
        """Refuse what a page of another site sends in a visitor's name."""
        if scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        ours = site in {"same-origin", "none"} if site else True
        if origin is not None and site is None:
            ours = _is_same_host(origin, headers.get("host"))
        if ours:
            return None
        return self._refuse(
            403, "Not from here", "The form was sent by another site. Nothing was stored."
        )

    def _no_form(self, scope: Scope, headers: Headers, body: bytes) -> Response | None:
        """Refuse a body that is too large, or of a kind that our pages do not send."""
        # Some parsers take ; for &.
        n_fields = 1 + body.count(b"&") + body.count(b";")
        if len(body) > MOST_BYTES or (scope["method"] == "POST" and n_fields > MOST_FIELDS):
            text = f"A form has at most {MOST_BYTES:,} bytes and {MOST_FIELDS} fields."
            return self._refuse(413, "Too large", f"{text} Nothing was stored.")
        kind = headers.get("content-type")
        if scope["method"] != "POST" or (kind is None and not body):
            return None
        if (kind or "").partition(";")[0].strip().lower() == FORM:
            return None
        return self._refuse(
            415, "Not a form", "Only forms as our pages send them are read. Nothing was stored."
        )


def _tries_token(scope: Scope, headers: Headers) -> bool:
    """Return whether a request shows a researcher's token, by the form or as a header."""
    if scope["path"] == "/researcher/login":
        return bool(scope["method"] == "POST")
    scheme, _, _ = headers.get("authorization", "").partition(" ")
    return scope["path"].startswith("/researcher") and scheme.lower() == "bearer"


def _is_same_host(origin: str, host: str | None) -> bool:
    """Return whether a page's origin is the host that it sends a form to."""
    try:
        return bool(host) and urlsplit(origin).netloc == host
    except ValueError:
        return False


async def _read_body(headers: Headers, receive: Receive) -> bytes | None:
    """Read a body, or as much as shows that it is too large; None if it breaks off."""
    length = headers.get("content-length", "0")
    # int() would take other digits, too, and fail on thousands of them.
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
    """Return a receiver that gives the body again, and then what really comes."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(messages, None) or await receive()

    return receive_again

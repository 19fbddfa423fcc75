"""What every request passes: a rate, a size, an origin; and the headers of every response."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankshot.survey.rate_limit import RateLimit

MOST_BYTES = 64 * 1024
"""Of a request's body: an answer to the largest question is a tenth of it."""

OURSELVES = "'self'"

Refuse = Callable[[int, str, str], Response]
"""Makes a page of a status, a heading and a text."""


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
        Of the requests that are sent to these paths (POST).
    refuse : callable
        Makes the page that says why not.
    """

    def __init__(
        self,
        app: ASGIApp,
        headers: dict[str, str],
        limit: RateLimit,
        stricter: dict[str, RateLimit],
        refuse: Refuse,
    ) -> None:
        self._app = app
        self._headers = headers
        self._limit = limit
        self._stricter = stricter
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                # Back and reload ask us, and see what is true now.
                headers.setdefault("cache-control", "no-store")
            await send(message)

        refusal = self._too_often(scope) or self._from_elsewhere(scope)
        body = b""
        if refusal is None:
            body, complete = await _body(Headers(scope=scope), receive)
            if not complete:
                text = f"A form has at most {MOST_BYTES:,} bytes. Nothing was stored."
                refusal = self._refuse(413, "Too large", text)
        if refusal is not None:
            await refusal(scope, receive, send_with_headers)
            return
        await self._app(scope, _replayed(body, receive), send_with_headers)

    def _too_often(self, scope: Scope) -> Response | None:
        client = scope.get("client")
        address = client[0] if client else "unknown"
        wait = self._limit.wait(address)
        if not wait and scope["method"] == "POST" and scope["path"] in self._stricter:
            wait = self._stricter[scope["path"]].wait(address)
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

    def _from_elsewhere(self, scope: Scope) -> Response | None:
        """Refuse what a page of another site sends in a visitor's name."""
        if scope["method"] in {"GET", "HEAD", "OPTIONS"}:
            return None
        headers = Headers(scope=scope)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        ours = site in {"same-origin", "none"} if site else True
        if origin is not None and site is None:
            ours = urlsplit(origin).netloc == headers.get("host")
        if ours:
            return None
        return self._refuse(
            403, "Not from here", "The form was sent by another site. Nothing was stored."
        )


async def _body(headers: Headers, receive: Receive) -> tuple[bytes, bool]:
    """Read a request's body; False if it is larger than we read."""
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BYTES:
        return b"", False
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return body, True
        body += message.get("body", b"")
        if len(body) > MOST_BYTES:
            return b"", False
        if not message.get("more_body", False):
            return body, True


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that gives the body again, and then what really comes."""
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive_again() -> Message:
        return next(messages, None) or await receive()

    return receive_again

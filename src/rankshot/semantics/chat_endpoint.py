"""Talking to a chat endpoint over HTTP: keys, time-outs, retries, and nothing taken on trust."""

from __future__ import annotations

import ipaddress
import json
import math
import os
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from queue import Empty, SimpleQueue
from random import uniform
from threading import Thread
from time import monotonic, sleep
from typing import Any, NamedTuple
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, OpenerDirector, ProxyHandler, Request, build_opener

from rankshot.core.errors import RankshotError, short_repr

LARGEST_BODY = 4 << 20
"""Bytes read of one answer: far more than any order needs, far less than memory holds."""
LARGEST_COMPLAINT = 4096
"""Bytes read of a page that says what went wrong."""
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the first retry, and at most before any, whatever a server asks for."""
GRACE = 0.5
"""Seconds for what ends by itself at its time-out to say so, with the better message."""
SHORTEST_SECRET = 8
"""Characters of a key worth hiding; local servers take a dummy, which an item may contain."""
ADVICE = {
    400: "check the model's name, and whether it takes this temperature",
    401: "check the key",
    403: "the key may not use this model or endpoint",
    404: "check base_url (it mostly ends in /v1) and the model's name",
}


class Reply(NamedTuple):
    """What a chat endpoint answered, and the tokens it says that took (None: it does not say)."""

    text: str
    prompt_tokens: int | None
    answer_tokens: int | None


class _TryAgainError(Exception):
    """A failure that may pass; ``wait`` is what the server asked for, in seconds."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class _NoRedirects(HTTPRedirectHandler):
    """Follow nothing: urllib would carry the key along to whatever host is named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class ChatEndpoint:
    """An address that speaks OpenAI's chat protocol.

    The key is read from the environment when a call is made and lives no longer than the call:
    it is no attribute, so nothing that prints or stores this object can show it. It goes into
    the Authorization header, over https or to this very machine, and nowhere else.

    Parameters
    ----------
    base_url : str
        What stands before ``/chat/completions``, such as ``http://localhost:8080/v1``.
    timeout : float
        Seconds for one answer, from the first byte to the last.
    max_retries : int
        How often a call is repeated after a failure that may pass: 408, 429, 5xx, a time-out,
        a dropped connection, a body that is no answer.
    key_variable : str or None
        The environment variable that holds the key; None sends none. Servers on this machine
        need no key, so there the variable may be unset.

    Examples
    --------
    >>> ChatEndpoint("http://localhost:8080/v1", timeout=60, max_retries=5, key_variable=None).url
    'http://localhost:8080/v1/chat/completions'
    """

    base_url: str
    timeout: float
    max_retries: int
    key_variable: str | None

    def __post_init__(self) -> None:
        _check_address(self.base_url)
        # A key given in place of a variable's name must not reach the screen: it is not shown.
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.key_variable or "NONE"):
            raise RankshotError("key_variable must be the NAME_OF_A_VARIABLE, and not a key")

    @property
    def url(self) -> str:
        """Where calls go."""
        return f"{self.base_url.rstrip('/')}/chat/completions"

    @property
    def is_local(self) -> bool:
        """Whether the address is of this very machine, by its form (no name is looked up)."""
        host = urlsplit(self.base_url).hostname or ""
        try:
            return host == "localhost" or ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def complete(
        self, model: str, messages: Sequence[Mapping[str, str]], temperature: float
    ) -> Reply:
        """Return the model's answer to a conversation, with retries.

        Raises
        ------
        RankshotError
            At once where trying again would not help, else after ``max_retries`` retries.
        """
        key = self._key()
        question = {"model": model, "messages": list(messages), "temperature": temperature}
        body = json.dumps(question).encode()
        for attempt in range(self.max_retries + 1):
            try:
                return self._bounded_exchange(body, key)
            except _TryAgainError as failure:
                problem = failure
            if attempt < self.max_retries:
                backoff = min(FIRST_WAIT * 2 ** min(attempt, 10), LONGEST_WAIT)
                backoff *= uniform(0.5, 1)  # noqa: S311 (no secret: raters must not march in step)
                sleep(max(backoff, min(problem.wait, LONGEST_WAIT)))
        raise RankshotError(
            f"no answer from {self.url} after {self.max_retries + 1} tries; the last: {problem}"
        )

    def _key(self) -> str | None:
        if self.key_variable is None:
            return None
        key = os.environ.get(self.key_variable, "").strip()
        if not key and self.is_local:
            return None
        if not key:
            raise RankshotError(
                f"{self.base_url} needs a key: set the environment variable {self.key_variable}"
            )
        # http.client would repeat a malformed header, key and all, in its own message.
        if not re.fullmatch(r"[!-~]+", key):
            raise RankshotError(f"the key in {self.key_variable} holds characters no key has")
        if urlsplit(self.base_url).scheme != "https" and not self.is_local:
            raise RankshotError(
                f"{self.base_url} would carry the key in {self.key_variable} in the clear: use "
                "https, or key_variable=None for a server that needs no key"
            )
        return key

    def _bounded_exchange(self, body: bytes, key: str | None) -> Reply:
        """Exchange, but give up when the time is over, whatever the server is doing.

        A socket's time-out is for a single wait: a server that sends its headers byte by byte
        never exceeds it. Waiting for a thread can be given up.
        """
        outcome: SimpleQueue[Reply | Exception] = SimpleQueue()

        def exchange() -> None:
            try:
                outcome.put(self._exchange(body, key))
            except Exception as error:  # noqa: BLE001 - raised again below, in the caller's thread
                outcome.put(error)

        Thread(target=exchange, daemon=True).start()
        try:
            result = outcome.get(timeout=self.timeout + GRACE)
        except Empty:
            raise _TryAgainError(f"it took longer than {self.timeout:g} seconds") from None
        if isinstance(result, Exception):
            raise result
        return result

    def _exchange(self, body: bytes, key: str | None) -> Reply:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        request = Request(self.url, body, headers)  # noqa: S310 (http and https alone get here)
        deadline = monotonic() + self.timeout
        try:
            with self._opener().open(request, timeout=self.timeout) as response:
                content = _read_until(response, deadline, LARGEST_BODY + 1)
        except HTTPError as error:
            with error:
                raise self._refusal(error, deadline) from None
        except (OSError, HTTPException) as error:
            raise self._failure(error) from None
        if len(content) > LARGEST_BODY:
            raise RankshotError(f"{self.url} answered with more than {LARGEST_BODY >> 20} MiB")
        reply = _reply(content)
        if reply is None:
            start = short_repr(self._hide_key(content.decode(errors="replace")))
            raise _TryAgainError(f"not the answer of a chat endpoint: {start}")
        return reply._replace(text=self._hide_key(reply.text))

    def _hide_key(self, text: str) -> str:
        """Take the key out of what a server says, which may end on a screen."""
        key = os.environ.get(self.key_variable or "", "").strip()
        if len(key) < SHORTEST_SECRET:
            return text
        # As it stands, and as addresses and JSON write it.
        for spelling in (key, quote(key, safe=""), key.replace("/", "\\/")):
            text = text.replace(spelling, "[key]")
        return text

    def _opener(self) -> OpenerDirector:
        # A proxy cannot reach this machine's own servers, so it is not asked to.
        proxies = [ProxyHandler({})] if self.is_local else []
        return build_opener(_NoRedirects, *proxies)

    def _refusal(self, error: HTTPError, deadline: float) -> Exception:
        said = self._hide_key(_complaint(error, deadline))[:300]
        what = f"{self.url} answered {error.code}" + (f" ({said!r})" if said else "")
        if error.code in (408, 429) or error.code >= 500:
            return _TryAgainError(what, _seconds(error.headers.get("Retry-After", "")))
        if 300 <= error.code < 400:
            where = short_repr(self._hide_key(error.headers.get("Location", "nowhere")))
            return RankshotError(
                f"{what}: it sends us on to {where}, which is not followed; if that is right, "
                "give it as base_url"
            )
        if error.code == 401 and self.key_variable is not None:
            return RankshotError(f"{what}: check the key in {self.key_variable}")
        advice = ADVICE.get(error.code)
        return RankshotError(f"{what}: {advice}" if advice else what)

    def _failure(self, error: OSError | HTTPException) -> Exception:
        reason = error.reason if isinstance(error, URLError) else error
        if isinstance(reason, ssl.SSLCertVerificationError):
            return RankshotError(f"{self.url}: its certificate is not valid ({reason})")
        if isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME:
            return RankshotError(f"{self.url}: there is no such host; check base_url")
        if isinstance(reason, TimeoutError):
            return _TryAgainError(f"it took longer than {self.timeout:g} seconds")
        said = short_repr(self._hide_key(str(reason)))
        return _TryAgainError(f"the connection failed ({type(reason).__name__}: {said})")


def _check_address(base_url: str) -> None:
    """Refuse addresses that are none, or that carry a password; nothing of them is shown."""
    try:
        parts = urlsplit(base_url if re.fullmatch(r"[!-~]+", base_url) else "")
        host = (parts.hostname or "").encode("idna")
        is_address = parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except (ValueError, TypeError):
        is_address = False
    if not is_address:
        raise RankshotError(
            "base_url must be an address such as 'https://host/v1' or 'http://localhost:8080/v1'"
        )
    if "@" in parts.netloc or "?" in base_url or "#" in base_url:
        raise RankshotError(
            "base_url must hold no user, password, question mark or number sign: a key belongs "
            "in the environment"
        )


def _read_until(response: HTTPResponse | HTTPError, deadline: float, most: int) -> bytes:
    """Read at most ``most`` bytes, and stop a server that drips them past the deadline.

    The time-out of a socket starts afresh with every byte, so it does not bound an answer.
    """
    parts: list[bytes] = []
    left = most
    while left and (part := response.read1(min(left, 1 << 16))):
        parts.append(part)
        left -= len(part)
        if monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts)


def _complaint(error: HTTPError, deadline: float) -> str:
    """Return what the server says went wrong, or nothing."""
    try:
        text = _read_until(error, deadline, LARGEST_COMPLAINT).decode(errors="replace").strip()
    except (OSError, HTTPException):
        return ""
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return text


def _seconds(retry_after: str) -> float:
    """Return what a Retry-After header asks for: a number of seconds, or a date."""
    try:
        seconds = float(retry_after)
    except ValueError:
        try:
            date = parsedate_to_datetime(retry_after)
        except (ValueError, OverflowError):
            return 0.0
        # "-0000", a date that does not say where it was written, is read as one without a zone.
        date = date.replace(tzinfo=UTC) if date.tzinfo is None else date
        seconds = (date - datetime.now(UTC)).total_seconds()
    return seconds if math.isfinite(seconds) else 0.0


def _reply(content: bytes) -> Reply | None:
    """Return the answer in a body, or None where there is none."""
    try:
        answer = json.loads(content)
        text = answer["choices"][0]["message"]["content"]
        usage = answer.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    # Models that decline to answer leave the content empty: that is asked again like any other.
    prompt, completion = (n if type(n) is int and 0 <= n < 2**53 else None for n in counts)
    return Reply(text if isinstance(text, str) else "", prompt, completion)

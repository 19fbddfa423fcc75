"""Calls of a chat endpoint over HTTP, with keys, time-outs and retries.

Nothing that the server sends is trusted: neither its length, nor its speed, nor its format.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.client import HTTPException
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import HTTPRedirectHandler, Request

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.http import (
    PermanentError,
    TransientError,
    explain_failure,
    is_local,
    is_private,
    is_transient,
    is_web_address,
    make_opener,
    parse_retry_after,
    read_until,
    retry,
)
from rankshot.sources.pace import Pace, find_rate_limit_wait

LARGEST_BODY = 4 << 20
"""Bytes that are read of one answer: far more than any ranking needs."""
LARGEST_COMPLAINT = 4096
"""Bytes that are read of an error page."""
GRACE = 0.5
"""Seconds after the time-out in which the exchange may still report it, with a better message."""
SHORTEST_SECRET = 8
"""Characters of a key that is hidden; local servers take a dummy, which an item may contain."""
ADVICE = {
    400: "check the model's name, and whether it takes this temperature",
    401: "check the key",
    403: "the key may not use this model or endpoint",
    404: "check base_url (it usually ends in /v1) and the model's name",
}


class Reply(NamedTuple):
    """The answer of a chat endpoint, and its counts of tokens (None if it does not send them)."""

    text: str
    prompt_tokens: int | None
    answer_tokens: int | None


class _NoRedirects(HTTPRedirectHandler):
    """Follow no redirects: urllib would send the key to any host that is named."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None


@dataclass(frozen=True)
class ChatEndpoint:
    """A server that supports OpenAI's chat protocol.

    The key is read from the environment for each call and is not kept after it. It is not an
    attribute, so nothing that prints or stores this object can show it. It is only sent in the
    Authorization header, and only over https or to this machine.

    Parameters
    ----------
    base_url : str
        The address without ``/chat/completions``, such as ``http://localhost:8080/v1``.
    timeout : float
        Seconds for one answer, from the first byte to the last.
    max_retries : int
        How often a call is repeated after a failure that may pass: status 408, 429 or 5xx, a
        time-out, a dropped connection, a body that is not an answer.
    key_variable : str or None
        The environment variable that holds the key; with None, no key is sent. Servers on this
        machine need no key, so the variable may be unset for them.
    pace : Pace
        Shared by all threads that call the endpoint: if one is told to wait, all do. A server
        tells it by Retry-After, or by the headers of its rate limits when nothing is left.

    Examples
    --------
    >>> ChatEndpoint("http://localhost:8080/v1", timeout=60, max_retries=5, key_variable=None).url
    'http://localhost:8080/v1/chat/completions'
    """

    base_url: str
    timeout: float
    max_retries: int
    key_variable: str | None
    pace: Pace = field(default_factory=Pace)

    def __post_init__(self) -> None:
        _check_address(self.base_url)
        # The message does not show the value, which may be a key.
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", self.key_variable or "NONE"):
            raise RankshotError(
                "key_variable must be the name of an environment variable, such as OPENAI_API_KEY, "
                "and not a key"
            )

    @property
    def url(self) -> str:
        """The address of the calls."""
        return f"{self.base_url.rstrip('/')}/chat/completions"

    def complete(
        self, model: str, messages: Sequence[Mapping[str, str]], temperature: float
    ) -> Reply:
        """Return the model's answer to a conversation, with retries.

        Raises
        ------
        RankshotError
            At once if a retry cannot help, otherwise after ``max_retries`` retries.
        StoppedError
            If the pace was stopped.
        """
        key = self._read_key()
        question = {"model": model, "messages": list(messages), "temperature": temperature}
        body = json.dumps(question).encode()
        tries = self.max_retries + 1
        try:
            return retry(
                lambda: self._exchange_in_time(body, key),
                tries,
                jitter=True,
                pause=self.pace.sleep,
            )
        except TransientError as failure:
            raise RankshotError(
                f"no answer from {self.url} after {tries} tries; the last: {failure}"
            ) from None
        except PermanentError as failure:
            raise RankshotError(f"{self.url}: {failure}") from None

    def _read_key(self) -> str | None:
        if self.key_variable is None:
            return None
        key = os.environ.get(self.key_variable, "").strip()
        if not key and is_local(self.base_url):
            return None
        if not key:
            raise RankshotError(
                f"{self.base_url} needs a key: set the environment variable {self.key_variable}"
            )
        # http.client would show a malformed header, key included, in its own message.
        if not re.fullmatch(r"[!-~]+", key):
            raise RankshotError(
                f"the key in {self.key_variable} holds characters that a key cannot have"
            )
        if not is_private(self.base_url):
            raise RankshotError(
                f"{self.base_url} would transmit the key in {self.key_variable} unencrypted: use "
                "https, or key_variable=None for a server that needs no key"
            )
        return key

    def _exchange_in_time(self, body: bytes, key: str | None) -> Reply:
        """Exchange in a thread, and stop waiting for it when the time is over.

        The time-out of a socket is for a single wait: a server that sends its headers byte by
        byte never exceeds it.
        """
        self.pace.wait()
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
            raise TransientError(self._slow) from None
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
            with make_opener(self.url, _NoRedirects).open(
                request, timeout=self.timeout
            ) as response:
                content = read_until(response, deadline, LARGEST_BODY + 1)
                limits = dict(response.headers.items())
        except HTTPError as error:
            with error:
                raise self._explain_refusal(error, deadline) from None
        except (OSError, HTTPException) as error:
            raise explain_failure(error, self._slow, self._hide_key) from None
        if len(content) > LARGEST_BODY:
            raise RankshotError(f"{self.url} answered with more than {LARGEST_BODY >> 20} MiB")
        reply = _parse_reply(content)
        if reply is None:
            start = short_repr(self._hide_key(content.decode(errors="replace")))
            raise TransientError(f"not the answer of a chat endpoint: {start}")
        tokens = (reply.prompt_tokens or 0) + (reply.answer_tokens or 0)
        self.pace.postpone(find_rate_limit_wait(limits, tokens))
        return reply._replace(text=self._hide_key(reply.text))

    def _hide_key(self, text: str) -> str:
        """Remove the key from a server's text, which may be shown to the user."""
        key = os.environ.get(self.key_variable or "", "").strip()
        if len(key) < SHORTEST_SECRET:
            return text
        # As it is, and as addresses and JSON write it.
        for spelling in (key, quote(key, safe=""), key.replace("/", "\\/")):
            text = text.replace(spelling, "[key]")
        return text

    @property
    def _slow(self) -> str:
        return f"it took longer than {self.timeout:g} seconds"

    def _explain_refusal(self, error: HTTPError, deadline: float) -> Exception:
        text = self._hide_key(_read_complaint(error, deadline))[:300]
        what = f"{self.url} answered {error.code}" + (f" ({text!r})" if text else "")
        if is_transient(error):
            wait = max(
                parse_retry_after(error), find_rate_limit_wait(dict(error.headers.items()), 1)
            )
            self.pace.postpone(wait)
            return TransientError(what, wait)
        if 300 <= error.code < 400:
            where = short_repr(self._hide_key(error.headers.get("Location", "nowhere")))
            return RankshotError(
                f"{what}: it redirects to {where}, which is not followed; if that address is "
                "right, give it as base_url"
            )
        if error.code == 401 and self.key_variable is not None:
            return RankshotError(f"{what}: check the key in {self.key_variable}")
        advice = ADVICE.get(error.code)
        return RankshotError(f"{what}: {advice}" if advice else what)


def _check_address(base_url: str) -> None:
    """Refuse what is not an address, or holds a password; the message shows nothing of it."""
    if not is_web_address(base_url):
        raise RankshotError(
            "base_url must be an address such as 'https://host/v1' or 'http://localhost:8080/v1'"
        )
    if "@" in urlsplit(base_url).netloc or "?" in base_url or "#" in base_url:
        raise RankshotError(
            "base_url must not contain a user, a password, a question mark or a number sign: a key "
            "belongs in the environment"
        )


def _read_complaint(error: HTTPError, deadline: float) -> str:
    """Return the message of an error page, or nothing."""
    try:
        text = read_until(error, deadline, LARGEST_COMPLAINT).decode(errors="replace").strip()
    except (OSError, HTTPException):
        return ""
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return text


def _parse_reply(content: bytes) -> Reply | None:
    """Return the answer in a body, or None if there is none."""
    try:
        answer = json.loads(content)
        text = answer["choices"][0]["message"]["content"]
        usage = answer.get("usage") or {}
        counts = [usage.get(name) for name in ("prompt_tokens", "completion_tokens")]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    # Models that decline to answer send an empty content; the caller asks again.
    prompt, completion = (n if type(n) is int and 0 <= n < 2**53 else None for n in counts)
    return Reply(text if isinstance(text, str) else "", prompt, completion)

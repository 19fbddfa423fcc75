"""HTTP: which addresses are safe, which failures are tried again, and downloads that resume.

`download` and the chat endpoint of language models share the first half of this file. What is
special to a download is in the second half.
"""

from __future__ import annotations

import hashlib
import ipaddress
import math
import os
import re
import socket
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from random import uniform
from time import monotonic, sleep
from typing import IO, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import (
    HTTPRedirectHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
    build_opener,
)

from rankshot.core.errors import RankshotError, short_repr
from rankshot.core.progress import Announce

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 1.0, 60.0
"""Seconds before the first retry, and the most before any, whatever a server asks for."""
TIMEOUT = 30.0
"""Seconds without a single byte after which the connection of a download is given up."""
TRIES = 5
"""How often a server is asked for a file."""
LARGEST_FILE = 1 << 30
"""Bytes of a file: far more than any that is wanted here; it protects the disk."""
BLOCK = 1 << 16
"""Bytes that are read at a time."""


class TransientError(Exception):
    """A failure that may pass; ``wait`` is how many seconds the server asks to wait."""

    def __init__(self, message: str, wait: float = 0.0) -> None:
        super().__init__(message)
        self.wait = wait


class PermanentError(Exception):
    """A failure that would occur again."""


# ---- Addresses


def is_web_address(url: object) -> bool:
    """Return whether this is an http or https address with a valid host and port.

    Examples
    --------
    >>> is_web_address("https://example.org/data.gz"), is_web_address("file:///etc/hosts")
    (True, False)
    """
    try:
        parts = urlsplit(url if isinstance(url, str) and re.fullmatch(r"[!-~]+", url) else "")
        host = (parts.hostname or "").encode("idna")
        return parts.scheme in ("http", "https") and bool(host) and parts.port != 0
    except ValueError:
        return False


def is_local(url: str) -> bool:
    """Return whether a web address is of this machine, by its form; no name is looked up.

    Examples
    --------
    >>> is_local("http://127.0.0.1:8080/v1"), is_local("http://127.0.0.1.example.org/v1")
    (True, False)
    """
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_private(url: str) -> bool:
    """Return whether nobody on the way can read what is sent: https, or this machine itself."""
    return urlsplit(url).scheme == "https" or is_local(url)


def make_opener(url: str, redirects: type[HTTPRedirectHandler]) -> OpenerDirector:
    """Return urllib's opener for an address, with a policy for redirects."""
    # A proxy cannot reach this machine's own servers, so it is not used for them.
    return build_opener(redirects, *([ProxyHandler({})] if is_local(url) else []))


# ---- Failures and retries


def retry(
    call: Callable[[], T],
    tries: int,
    *,
    jitter: bool = False,
    pause: Callable[[float], object] | None = None,
) -> T:
    """Call until it succeeds, and wait between two tries; the waits double.

    Parameters
    ----------
    call : callable
        Raises `TransientError` for a failure that may pass; all other exceptions end the tries.
    tries : int
        The most calls. The `TransientError` of the last one is raised.
    jitter : bool
        Whether waits are shortened at random, so that many clients do not return in step.
    pause : callable, optional
        Waits for some seconds, or raises to end the tries; `time.sleep` by default.

    Examples
    --------
    >>> retry(lambda: "answer", tries=3)
    'answer'
    """
    for attempt in range(tries - 1):
        try:
            return call()
        except TransientError as failure:
            backoff = min(FIRST_WAIT * 2 ** min(attempt, 10), LONGEST_WAIT)
            backoff *= uniform(0.5, 1) if jitter else 1  # noqa: S311 (no secret)
            (pause or sleep)(max(backoff, min(failure.wait, LONGEST_WAIT)))
    return call()


def is_transient(error: HTTPError) -> bool:
    """Return whether the same request may succeed later: a time-out, too many requests, 5xx."""
    return error.code in (408, 429) or error.code >= 500


def parse_retry_after(error: HTTPError) -> float:
    """Return the seconds that the Retry-After header asks for, as a number or a date; else 0."""
    header = error.headers.get("Retry-After", "")
    try:
        seconds = float(header)
    except ValueError:
        try:
            date = parsedate_to_datetime(header)
        except (ValueError, OverflowError):
            return 0.0
        # "-0000", a date that does not say where it was written, is read as one without a zone.
        date = date.replace(tzinfo=UTC) if date.tzinfo is None else date
        seconds = (date - datetime.now(UTC)).total_seconds()
    return seconds if math.isfinite(seconds) else 0.0


def explain_failure(
    error: OSError | HTTPException, slow: str, hide: Callable[[str], str] = str
) -> TransientError | PermanentError:
    """Return what a failed connection means.

    Parameters
    ----------
    error : exception
        What urllib raised.
    slow : str
        The message for a time-out.
    hide : callable
        Removes secrets from the text of the error.
    """
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return PermanentError(f"its certificate is not valid ({reason.verify_message})")
    if isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME:
        return PermanentError("there is no such host: check the address")
    if isinstance(reason, TimeoutError):
        return TransientError(slow)
    text = short_repr(hide(str(reason)))
    return TransientError(f"the connection failed ({type(reason).__name__}: {text})")


def read_until(response: HTTPResponse | HTTPError, deadline: float, most: int) -> bytes:
    """Read at most ``most`` bytes; raise TimeoutError if the clock `monotonic` passes ``deadline``.

    The time-out of a socket starts again with every byte, so it does not limit the whole answer.
    """
    parts: list[bytes] = []
    left = most
    while left and (part := response.read1(min(left, BLOCK))):
        parts.append(part)
        left -= len(part)
        if monotonic() > deadline:
            raise TimeoutError
    return b"".join(parts)


# ---- Downloads


class _SafeRedirects(HTTPRedirectHandler):
    """Follow redirects only to addresses that `download` accepts."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        _require_private(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    url: str,
    path: str | Path,
    *,
    announce: Announce,
    md5: str | None = None,
    sha256: str | None = None,
) -> None:
    """Download a file, unless it exists already; an interrupted download is resumed.

    Until it is complete and its checksum is right, the file is named ``path`` followed by
    ``.part``. After an interruption, another call downloads the rest.

    Parameters
    ----------
    url : str
        An https address; http is accepted only for servers on this machine.
    path : str or Path
        Where the file goes. A file that exists there is checked, and not downloaded again.
    announce : callable
        Called often, with the number of bytes done, of all bytes, and the file's name.
    md5, sha256 : str
        The checksum, in hexadecimal digits; one of the two.

    Raises
    ------
    RankshotError
        Names the address, or the file, and says what to do.

    Examples
    --------
    >>> download("http://example.org/a.gz", "a.gz", announce=print, md5="0" * 32)
    Traceback (most recent call last):
        ...
    rankshot.core.errors.RankshotError: 'http://example.org/a.gz' is not an https address
    """
    path = Path(path)
    algorithm, digest = _choose_checksum(md5, sha256)
    _require_private(url)
    if path.exists():
        if _compute_digest(path, algorithm) != digest:
            raise RankshotError(
                f"{path} exists, but it is not the file of {url} (its {algorithm} is not "
                f"{digest}): delete it or move it away, then try again"
            )
        return
    part = path.with_name(f"{path.name}.part")
    _fetch(url, part, path, announce)
    if (found := _compute_digest(part, algorithm)) != digest:
        part.unlink()
        raise RankshotError(
            f"{url} sent another file than expected: its {algorithm} is {found}, not {digest}. It "
            f"was deleted; try again, or get the file elsewhere and put it at {path}"
        )
    part.replace(path)


def _choose_checksum(md5: str | None, sha256: str | None) -> tuple[str, str]:
    given = [(name, digest) for name, digest in (("md5", md5), ("sha256", sha256)) if digest]
    if len(given) != 1:
        raise RankshotError("give md5 or sha256, one of the two")
    algorithm, digest = given[0]
    if not re.fullmatch({"md5": "[0-9a-f]{32}", "sha256": "[0-9a-f]{64}"}[algorithm], digest):
        raise RankshotError(
            f"{short_repr(digest)} is not a checksum ({algorithm}) in lower-case hexadecimal digits"
        )
    return algorithm, digest


def _compute_digest(path: Path, algorithm: str) -> str:
    """Return the checksum of a file; md5 only finds accidents, sha256 also malice."""
    with path.open("rb") as stream:
        start_hash = partial(hashlib.new, algorithm, usedforsecurity=False)
        return hashlib.file_digest(stream, start_hash).hexdigest()


def _require_private(url: str) -> None:
    """Refuse plain http, except to this machine: others on the way could read and change it."""
    if not (is_web_address(url) and is_private(url)):
        raise RankshotError(f"{short_repr(url)} is not an https address")


def _fetch(url: str, part: Path, path: Path, announce: Announce) -> None:
    """Ask until the partial file has all its bytes, or no try is left."""

    def tell(done: int, total: int) -> None:
        announce(done, total, path.name)

    try:
        return retry(lambda: _fetch_rest(url, part, tell), TRIES)
    except TransientError as failure:
        problem = f"{failure}, after {TRIES} tries"
    except PermanentError as failure:
        problem = str(failure)
    kept = f"; {part.name} keeps what was received" if part.exists() else ""
    raise RankshotError(
        f"{url}: {problem}{kept}. Try again later, or get the file elsewhere and put it at {path}"
    )


def _fetch_rest(url: str, part: Path, tell: Callable[[int, int], None]) -> None:
    """Ask once for the bytes that are missing, and append what comes."""
    done = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "rankshot"})  # noqa: S310 (checked before)
    if done:
        request.add_header("Range", f"bytes={done}-")
    try:
        with make_opener(url, _SafeRedirects).open(request, timeout=TIMEOUT) as response:
            start, total = _read_extent(response, part, done)
            _append(response, part, start, total, tell)
    except HTTPError as error:
        with error:
            # 416: nothing is left to send. If all bytes are here, that is success.
            if error.code != 416 or error.headers.get("Content-Range") != f"bytes */{done}":
                raise _explain_refusal(error, part) from None
    except (OSError, HTTPException) as error:
        raise explain_failure(error, f"nothing came for {TIMEOUT:g} seconds") from None


def _read_extent(response: HTTPResponse, part: Path, done: int) -> tuple[int, int]:
    """Return at which byte the answer begins, and how long the whole file is."""
    if response.status == 206:
        sent = response.headers.get("Content-Range", "")
        found = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})", sent)
        if found is None or not int(found[1]) == done < int(found[2]):
            # The answer does not continue the partial file: start again at the next try.
            part.unlink(missing_ok=True)
            raise TransientError(f"asked for the bytes from {done} on, it sends {short_repr(sent)}")
        start, total = done, int(found[2])
    else:
        # The server sends the whole file, whatever it was asked for.
        sent = response.headers.get("Content-Length", "")
        if not re.fullmatch(r"\d{1,18}", sent):
            raise PermanentError("the server does not say how many bytes it sends")
        start, total = 0, int(sent)
    if total > LARGEST_FILE:
        raise PermanentError(
            f"the server announces {total:,} bytes, more than any file wanted here"
        )
    return start, total


def _append(
    response: HTTPResponse, part: Path, start: int, total: int, tell: Callable[[int, int], None]
) -> None:
    """Append the bytes that come to the partial file; no more than were announced."""
    done = start
    with _open_part(part, "ab" if start else "wb") as stream:
        tell(done, total)
        # One byte more than is left, to notice a server that sends more.
        while block := response.read1(min(BLOCK, total - done + 1)):
            done += len(block)
            if done > total:
                raise PermanentError(f"the server sends more than the {total:,} bytes it announced")
            _write(stream, block, part)
            tell(done, total)
        os.fsync(stream.fileno())
    if done < total:
        raise TransientError(f"the connection ended after {done:,} of {total:,} bytes")


def _open_part(part: Path, mode: str) -> IO[bytes]:
    try:
        return part.open(mode)
    except OSError as error:
        raise RankshotError(f"{part}: cannot write there ({error.strerror})") from None


def _write(stream: IO[bytes], block: bytes, part: Path) -> None:
    """Write at once, so that a full disk is not mistaken for a failed connection, and retried."""
    try:
        stream.write(block)
        stream.flush()
    except OSError as error:
        raise RankshotError(f"{part}: cannot write there ({error.strerror})") from None


def _explain_refusal(error: HTTPError, part: Path) -> TransientError | PermanentError:
    problem = f"the server answered {error.code} ({error.reason})"
    if error.code == 416:
        # The partial file is longer than the server's: start again at the next try.
        part.unlink(missing_ok=True)
    elif not is_transient(error):
        return PermanentError(problem)
    return TransientError(problem, parse_retry_after(error))

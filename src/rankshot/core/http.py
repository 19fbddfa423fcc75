"""Fetching a large file: in pieces that outlive an interruption, and checked before it counts."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import re
import ssl
from collections.abc import Callable
from functools import partial
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from time import sleep
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from rankshot.core.errors import RankshotError, short_repr

Announce = Callable[[int, int, str], None]
"""Told how much is done, of how much, and of what: bytes of a file, or images of a network."""
TIMEOUT = 30.0
"""Seconds without a single byte after which a connection counts as dead."""
TRIES, FIRST_WAIT = 5, 1.0
"""How often a server is asked, and the seconds before the second time; they double."""
LARGEST_FILE = 1 << 30
"""Bytes of a file: far more than any that we ask for, and a full disk helps nobody."""
BLOCK = 1 << 16


class _TryAgainError(Exception):
    """A failure that may pass."""


class _GiveUpError(Exception):
    """A failure that will not."""


class _SafeRedirects(HTTPRedirectHandler):
    """Follow a server to another address only where we would have gone ourselves."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        _check_address(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    url: str,
    path: str | Path,
    *,
    announce: Announce,
    md5: str | None = None,
    sha256: str | None = None,
) -> None:
    """Fetch a file, unless it is there already; what an earlier call got of it is kept.

    Until it is complete and its checksum is right, the file is called ``path`` with ``.part``
    behind it. Call again after an interruption and the rest is fetched.

    Parameters
    ----------
    url : str
        An https address; http is for servers on this very machine.
    path : str or Path
        Where the file goes. A file that is there already is checked, and not fetched again.
    announce : callable
        Called with the bytes done, the bytes in all and the file's name, often.
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
    algorithm, digest = _checksum(md5, sha256)
    _check_address(url)
    if path.exists():
        if _digest(path, algorithm) != digest:
            raise RankshotError(
                f"{path} is there, but it is not the file of {url} (its {algorithm} is not "
                f"{digest}): delete it or move it away, then try again"
            )
        return
    part = path.with_name(f"{path.name}.part")
    _fetch(url, part, path, announce)
    if (found := _digest(part, algorithm)) != digest:
        part.unlink()
        raise RankshotError(
            f"{url} sent another file than expected: its {algorithm} is {found}, not {digest}. It "
            f"was deleted; try again, or get the file elsewhere and put it at {path}"
        )
    part.replace(path)


def _checksum(md5: str | None, sha256: str | None) -> tuple[str, str]:
    given = [(name, digest) for name, digest in (("md5", md5), ("sha256", sha256)) if digest]
    if len(given) != 1:
        raise RankshotError("give md5 or sha256, one of the two")
    algorithm, digest = given[0]
    if not re.fullmatch({"md5": "[0-9a-f]{32}", "sha256": "[0-9a-f]{64}"}[algorithm], digest):
        raise RankshotError(f"{short_repr(digest)} is no {algorithm} in small hexadecimal digits")
    return algorithm, digest


def _digest(path: Path, algorithm: str) -> str:
    """Return the checksum of a file: against accidents (md5), or also against malice."""
    with path.open("rb") as stream:
        hashing = partial(hashlib.new, algorithm, usedforsecurity=False)
        return hashlib.file_digest(stream, hashing).hexdigest()


def _check_address(url: str) -> None:
    """Refuse what is neither https nor on this very machine: others on the way could read it."""
    try:
        parts = urlsplit(url)
        ok = bool(parts.hostname) and (parts.scheme == "https" or _is_local(url))
    except ValueError:
        ok = False
    if not ok:
        raise RankshotError(f"{short_repr(url)} is not an https address")


def _is_local(url: str) -> bool:
    """Whether this is a web server of this very machine, by the form of its address."""
    parts = urlsplit(url)
    try:
        return parts.scheme == "http" and ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


# -------------------------------------------------------------------- asking the server


def _fetch(url: str, part: Path, path: Path, announce: Announce) -> None:
    """Fetch until the partial file has all its bytes, or no try is left."""

    def tell(done: int, total: int) -> None:
        announce(done, total, path.name)

    for attempt in range(TRIES):
        if attempt:
            sleep(FIRST_WAIT * 2 ** (attempt - 1))
        try:
            return _fetch_rest(url, part, tell)
        except _TryAgainError as failure:
            problem = f"{failure}, after {TRIES} tries"
        except _GiveUpError as failure:
            problem = str(failure)
            break
    kept = f"; {part.name} keeps what came" if part.exists() else ""
    raise RankshotError(
        f"{url}: {problem}{kept}. Try again later, or get the file elsewhere and put it at {path}"
    )


def _fetch_rest(url: str, part: Path, tell: Callable[[int, int], None]) -> None:
    """Ask once for what is still missing, and append what comes."""
    done = part.stat().st_size if part.exists() else 0
    request = Request(url, headers={"User-Agent": "rankshot"})  # noqa: S310 (checked before)
    if done:
        request.add_header("Range", f"bytes={done}-")
    # A proxy cannot reach this machine's own servers, so it is not asked to.
    proxies = [ProxyHandler({})] if _is_local(url) else []
    try:
        with build_opener(_SafeRedirects, *proxies).open(request, timeout=TIMEOUT) as response:
            start, total = _extent(response, part, done)
            _append(response, part, start, total, tell)
    except HTTPError as error:
        with error:
            # 416: nothing is left to send. If that is so because all is here, all is well.
            if error.code != 416 or error.headers.get("Content-Range") != f"bytes */{done}":
                raise _refusal(error, part) from None
    except (OSError, HTTPException) as error:
        raise _failure(error) from None


def _extent(response: HTTPResponse, part: Path, done: int) -> tuple[int, int]:
    """Return where the bytes that come begin, and how long the whole file is."""
    if response.status == 206:
        said = response.headers.get("Content-Range", "")
        found = re.fullmatch(r"bytes (\d{1,18})-\d{1,18}/(\d{1,18})", said)
        if found is None or not int(found[1]) == done < int(found[2]):
            # What is here and what comes do not fit together: from zero, next time.
            part.unlink(missing_ok=True)
            raise _TryAgainError(f"asked for the bytes from {done} on, it sends {short_repr(said)}")
        start, total = done, int(found[2])
    else:
        # The server sends the whole file, whatever it was asked for.
        said = response.headers.get("Content-Length", "")
        if not re.fullmatch(r"\d{1,18}", said):
            raise _GiveUpError("the server does not say how many bytes it sends")
        start, total = 0, int(said)
    if total > LARGEST_FILE:
        raise _GiveUpError(f"the server announces {total:,} bytes, more than any file wanted here")
    return start, total


def _append(
    response: HTTPResponse, part: Path, start: int, total: int, tell: Callable[[int, int], None]
) -> None:
    """Write the bytes that come behind those that are there; no more than announced."""
    done = start
    with _opened(part, "ab" if start else "wb") as stream:
        tell(done, total)
        # One byte more than is left: so a server that goes on is noticed.
        while block := response.read1(min(BLOCK, total - done + 1)):
            done += len(block)
            if done > total:
                raise _GiveUpError(f"the server sends more than the {total:,} bytes it announced")
            _write(stream, block, part)
            tell(done, total)
        os.fsync(stream.fileno())
    if done < total:
        raise _TryAgainError(f"the connection ended after {done:,} of {total:,} bytes")


def _opened(part: Path, mode: str) -> IO[bytes]:
    try:
        return part.open(mode)
    except OSError as error:
        raise RankshotError(f"{part}: cannot write there ({error.strerror})") from None


def _write(stream: IO[bytes], block: bytes, part: Path) -> None:
    """Write at once: so a full disk is told from a failing connection, and not tried again."""
    try:
        stream.write(block)
        stream.flush()
    except OSError as error:
        raise RankshotError(f"{part}: cannot write there ({error.strerror})") from None


def _refusal(error: HTTPError, part: Path) -> Exception:
    if error.code == 416:
        # More is here than the server has: the rest can never fit.
        part.unlink(missing_ok=True)
    elif error.code not in (408, 429) and error.code < 500:
        return _GiveUpError(f"the server answered {error.code} ({error.reason})")
    return _TryAgainError(f"the server answered {error.code} ({error.reason})")


def _failure(error: OSError | HTTPException) -> Exception:
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, ssl.SSLCertVerificationError):
        return _GiveUpError(f"its certificate is not valid ({reason.verify_message})")
    if isinstance(reason, TimeoutError):
        return _TryAgainError(f"nothing came for {TIMEOUT:g} seconds")
    return _TryAgainError(
        f"the connection failed ({type(reason).__name__}: {short_repr(str(reason))})"
    )

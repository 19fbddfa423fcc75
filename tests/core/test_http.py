"""Addresses, retries, and downloads from a real HTTP server that misbehaves when told to."""

import hashlib
import re
import socket
import ssl
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import URLError

import numpy as np
import pytest

from rankshot import RankshotError
from rankshot.core import http as module
from rankshot.core.http import download

CONTENT = np.random.default_rng(3).bytes(300_000)
MD5 = hashlib.md5(CONTENT).hexdigest()
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Server(ThreadingHTTPServer):
    """Serves `content`; `script` holds what happens to the next calls instead, in turn."""

    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.script, self.ranges = CONTENT, [], []
        self.stopping = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/data.gz"

    def stop(self):
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Clients that hang up in the middle are what this server is for."""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.ranges.append(self.headers["Range"])
        script = self.server.script
        (script.pop(0) if script else behave)(self)

    def log_message(self, *_):
        pass

    def send(self, status, payload, length=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(payload) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        with suppress(OSError):
            self.wfile.write(payload)


def behave(handler):
    content, asked = handler.server.content, handler.headers["Range"]
    start = int(re.fullmatch(r"bytes=(\d+)-", asked)[1]) if asked else 0
    total = len(content)
    if start >= total:
        handler.send(416, b"", Content_Range=f"bytes */{total}")
    elif asked:
        span = f"bytes {start}-{total - 1}/{total}"
        handler.send(206, content[start:], Content_Range=span)
    else:
        handler.send(200, content)


def ignore_range(handler):
    handler.send(200, handler.server.content)


def truncate(n_bytes):
    """Send so many bytes of what was asked for, and hang up."""

    def behaviour(handler):
        asked = handler.headers["Range"]
        start = int(asked[6:-1]) if asked else 0
        rest = handler.server.content[start:]
        span = f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}"
        headers = {"Content_Range": span} if asked else {}
        handler.send(206 if asked else 200, rest[:n_bytes], len(rest), **headers)

    return behaviour


def send(status, payload=b"", length=None, **headers):
    return lambda handler: handler.send(status, payload, length, **headers)


def hang(handler):
    handler.server.stopping.wait(30)


def hang_in_the_middle(handler):
    handler.send(200, CONTENT[:1000], len(CONTENT))
    handler.server.stopping.wait(30)


def hang_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)


def say_no_length(handler):
    handler.send_response(200)
    handler.end_headers()
    handler.wfile.write(CONTENT)


def send_too_much(handler):
    """Announce the rest, in a range, and send more; no length bounds what is read."""
    start = int(handler.headers["Range"][6:-1])
    handler.send_response(206)
    handler.send_header("Content-Range", f"bytes {start}-{len(CONTENT) - 1}/{len(CONTENT)}")
    handler.end_headers()
    with suppress(OSError):
        handler.wfile.write(CONTENT[start:])
        while not handler.server.stopping.is_set():
            handler.wfile.write(b"x" * 65536)


@pytest.fixture
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def slept(monkeypatch):
    """Nobody sleeps: the seconds asked for are listed instead."""
    seconds = []
    monkeypatch.setattr(module, "sleep", seconds.append)
    return seconds


@pytest.fixture
def path(tmp_path):
    return tmp_path / "data.gz"


@pytest.fixture
def part(tmp_path):
    return tmp_path / "data.gz.part"


@pytest.fixture
def fetch(server, path, slept):
    """Fetch, and return what was announced."""

    def fetch(**checksum):
        announced = []
        download(
            server.url,
            path,
            announce=lambda *all_: announced.append(all_),
            **checksum or {"md5": MD5},
        )
        return announced

    return fetch


# ---- All is well


@pytest.mark.parametrize("checksum", [{"md5": MD5}, {"sha256": SHA256}], ids=["md5", "sha256"])
def test_a_file_comes_whole(fetch, server, path, part, checksum):
    announced = fetch(**checksum)
    assert path.read_bytes() == CONTENT
    assert not part.exists()
    assert server.ranges == [None]
    done, totals, whats = zip(*announced, strict=True)
    assert (done[0], done[-1]) == (0, len(CONTENT))
    assert list(done) == sorted(set(done))
    assert (set(totals), set(whats)) == ({len(CONTENT)}, {"data.gz"})


def test_a_file_that_is_there_is_not_fetched(fetch, server, path):
    path.write_bytes(CONTENT)
    assert fetch() == []
    assert server.ranges == []


def test_another_file_in_its_place_is_kept(fetch, server, path):
    path.write_bytes(b"somebody's own")
    with pytest.raises(RankshotError, match=r"data\.gz exists, but it is not the file of http"):
        fetch()
    assert path.read_bytes() == b"somebody's own"
    assert server.ranges == []


def test_a_redirect_is_followed(fetch, server, path):
    server.script = [send(302, Location=server.url)]
    fetch()
    assert path.read_bytes() == CONTENT


# ---- Interrupted


def test_what_is_there_is_not_fetched_again(fetch, server, path, part):
    part.write_bytes(CONTENT[:100_000])
    announced = fetch()
    assert path.read_bytes() == CONTENT
    assert server.ranges == ["bytes=100000-"]
    assert announced[0] == (100_000, len(CONTENT), "data.gz")


def test_a_failing_connection_is_tried_again(fetch, server, path, slept):
    server.script = [truncate(1000), hang_up, send(503), truncate(5000)]
    fetch()
    assert path.read_bytes() == CONTENT
    assert server.ranges == [None, *["bytes=1000-"] * 3, "bytes=6000-"]
    assert slept == [1, 2, 4, 8]


def test_a_server_may_ask_for_a_longer_wait(fetch, server, path, slept):
    server.script = [send(429, Retry_After="7"), send(503, Retry_After="1000"), send(503)]
    fetch()
    assert path.read_bytes() == CONTENT
    assert slept == [7, 60, 4]


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "there is no such host"),
        (ssl.SSLCertVerificationError(1, "bad"), "its certificate is not valid"),
    ],
)
def test_failures_that_stay_are_not_tried_again(fetch, slept, monkeypatch, reason, message):
    class Opener:
        def open(self, *_, **__):
            raise URLError(reason)

    reason.verify_message = "self-signed"
    monkeypatch.setattr(module, "make_opener", lambda *_: Opener())
    with pytest.raises(RankshotError, match=message):
        fetch()
    assert slept == []


def test_patience_ends(fetch, server, path, part, slept):
    server.script = [truncate(1000)] * 9
    with pytest.raises(
        RankshotError, match=r"5,000 of 300,000 bytes, after 5 tries; data\.gz\.part"
    ):
        fetch()
    assert (len(server.ranges), len(slept)) == (5, 4)
    assert part.read_bytes() == CONTENT[:5000]
    assert not path.exists()
    server.script = []
    fetch()
    assert path.read_bytes() == CONTENT
    assert server.ranges[-1] == "bytes=5000-"


def test_an_interruption_keeps_what_came(server, path, part):
    def interrupt(done, *_):
        if done > 100_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(server.url, path, announce=interrupt, md5=MD5)
    assert len(part.read_bytes()) > 100_000
    assert CONTENT.startswith(part.read_bytes())
    download(server.url, path, announce=lambda *_: None, md5=MD5)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("behaviour", [hang, hang_in_the_middle])
def test_a_silent_server_is_left(fetch, server, path, monkeypatch, behaviour):
    monkeypatch.setattr(module, "TIMEOUT", 0.1)
    server.script = [behaviour]
    fetch()
    assert path.read_bytes() == CONTENT
    server.script = [behaviour] * 5
    path.unlink()
    with pytest.raises(RankshotError, match=r"nothing came for 0\.1 seconds, after 5 tries"):
        fetch()


def test_a_server_that_ignores_ranges_starts_from_zero(fetch, server, path, part):
    part.write_bytes(b"x" * 100_000)
    server.script = [ignore_range]
    announced = fetch()
    assert path.read_bytes() == CONTENT
    assert announced[0] == (0, len(CONTENT), "data.gz")


@pytest.mark.parametrize(
    "span", ["bytes 7-299999/300000", "bytes 100000-299999/*", "bytes 100000-299999/100000", "odd"]
)
def test_a_range_that_does_not_fit_starts_from_zero(fetch, server, path, part, span):
    part.write_bytes(CONTENT[:100_000])
    server.script = [send(206, CONTENT[7:], Content_Range=span)]
    fetch()
    assert path.read_bytes() == CONTENT
    assert server.ranges == ["bytes=100000-", None]


def test_a_complete_part_is_checked_and_taken(fetch, server, path, part):
    part.write_bytes(CONTENT)
    fetch()
    assert path.read_bytes() == CONTENT
    assert not part.exists()
    assert len(server.ranges) == 1


def test_more_than_the_server_has_is_dropped(fetch, server, path, part):
    part.write_bytes(CONTENT + b"x")
    fetch()
    assert path.read_bytes() == CONTENT
    assert server.ranges == ["bytes=300001-", None]


# ---- The wrong file


@pytest.mark.parametrize("there", [0, 1000, 300_000])
def test_the_wrong_file_is_deleted(fetch, server, path, part, there):
    server.content = b"y" + CONTENT[1:]
    if there:
        part.write_bytes(server.content[:there])
    with pytest.raises(RankshotError, match=rf"sent another file .* not {MD5}\. It was deleted"):
        fetch()
    assert not path.exists()
    assert not part.exists()


@pytest.mark.parametrize("status", [403, 404, 410])
def test_what_is_not_there_is_not_asked_for_again(fetch, server, slept, path, part, status):
    server.script = [send(status, b"<html>no</html>")]
    with pytest.raises(RankshotError) as caught:
        fetch()
    message = str(caught.value)
    assert message.startswith(f"{server.url}: the server answered {status} (")
    assert message.endswith(f"get the file elsewhere and put it at {path}")
    assert slept == []
    assert not part.exists()


def test_no_more_is_taken_than_announced(fetch, server, part, slept):
    part.write_bytes(CONTENT[:1000])
    server.script = [send_too_much]
    with pytest.raises(RankshotError, match="sends more than the 300,000 bytes it announced"):
        fetch()
    assert part.stat().st_size <= len(CONTENT)
    assert slept == []


def test_a_length_is_needed_and_has_a_limit(fetch, server, part):
    server.script = [say_no_length, send(200, b"x", 1 << 40)]
    with pytest.raises(RankshotError, match="does not say how many bytes"):
        fetch()
    with pytest.raises(RankshotError, match="announces 1,099,511,627,776 bytes"):
        fetch()
    assert not part.exists()


# ---- The caller


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/a",
        "ftp://127.0.0.1/a",
        "file:///etc/hosts",
        "a",
        "http://[",
        "https:///a",
    ],
)
def test_only_safe_addresses_are_asked(path, url):
    with pytest.raises(RankshotError, match=f"{re.escape(repr(url))} is not an https address"):
        download(url, path, announce=print, md5=MD5)


def test_addresses_of_this_machine():
    for url in ("http://127.0.0.1:80/a", "http://[::1]/a", "http://localhost/a"):
        assert module.is_web_address(url)
        assert module.is_local(url)
        assert module.is_private(url)
    for host in ("10.0.0.1", "127.0.0.1.example.org", "localhost.example.org", "example.org"):
        assert not module.is_local(f"https://{host}/a")
        assert module.is_private(f"https://{host}/a")
        assert not module.is_private(f"http://{host}/a")
    for url in ("http://a..b/", "http://host:99999/", "http://host:0/", "http://ho st/", None, 3):
        assert not module.is_web_address(url)


def test_a_redirect_does_not_leave_safe_addresses(fetch, server):
    server.script = [send(302, Location="http://example.org/a")]
    with pytest.raises(RankshotError, match=r"'http://example\.org/a' is not an https address"):
        fetch()


@pytest.mark.parametrize(
    "checksum",
    [{"md5": MD5, "sha256": SHA256}, {"md5": None}, {"md5": SHA256}, {"sha256": MD5}, {"md5": "?"}],
)
def test_a_checksum_is_needed(path, checksum):
    with pytest.raises(RankshotError, match=r"one of the two|in lower-case hexadecimal digits"):
        download("https://example.org/a", path, announce=print, **checksum)


def test_a_place_that_cannot_be_written_is_named(fetch, server, part, slept):
    part.mkdir()
    with pytest.raises(RankshotError, match=r"data\.gz\.part: cannot write there"):
        fetch()
    assert slept == []

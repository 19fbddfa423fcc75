"""The server itself: its port, and connections that end in time."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest
import uvicorn
from starlette.responses import PlainTextResponse

from rankshot.web import server as module
from rankshot.web.guards import RateLimit
from rankshot.web.server import create_application, open_port, serve
from refusals import refuses

GET = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"


@contextmanager
def serving(monkeypatch):
    """Serve in a thread; yield the address."""
    servers, start = [], uvicorn.Server.__init__

    def note(self, config):
        start(self, config)
        servers.append(self)

    monkeypatch.setattr(uvicorn.Server, "__init__", note)
    app = create_application(
        lambda _, error: PlainTextResponse(error.message, error.status), limit=RateLimit(100)
    )
    with open_port("127.0.0.1", 0) as port:
        address = port.getsockname()
        thread = threading.Thread(target=serve, args=(app, port))
        thread.start()
        while not (servers and servers[0].started):
            assert thread.is_alive()
            time.sleep(0.01)
        try:
            yield address
        finally:
            servers[0].should_exit = True
            thread.join(300)
    assert not thread.is_alive()


def receive_all(line):
    """Return all that comes until the server hangs up."""
    received = b""
    while chunk := line.recv(65536):
        received += chunk
    return received


@pytest.mark.parametrize(
    ("sent", "n_replies"),
    [
        ([b""], 0),
        ([b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nform"], 0),
        ([GET], 1),
        ([GET, GET[:20], GET[20:]], 2),
        ([GET, GET[:20]], 1),
    ],
)
def test_a_connection_on_which_nothing_happens_is_closed(monkeypatch, sent, n_replies):
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.5)
    with (
        serving(monkeypatch) as address,
        socket.create_connection(address, timeout=30) as line,
    ):
        received = b""
        for part in sent:
            line.sendall(part)
            if part.endswith(b"\r\n\r\n") and part.startswith(b"GET"):
                received += line.recv(65536)
        received += receive_all(line)
    assert received.count(b"HTTP/1.1 200") == n_replies


def test_the_time_begins_again_with_each_request(monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 2)
    with serving(monkeypatch) as address, socket.create_connection(address, timeout=30) as line:
        for _ in range(5):
            line.sendall(GET)
            received = b""
            while not received.endswith(b"\r\n\r\nok"):
                received += (chunk := line.recv(65536))
                assert chunk, "it has hung up"
            time.sleep(0.6)


def test_what_the_server_says_of_itself_and_of_upgrades(monkeypatch, caplog):
    upgrade = GET.replace(b"Host: x", b"Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket")
    with serving(monkeypatch) as address, socket.create_connection(address, timeout=30) as line:
        line.sendall(upgrade)
        received = line.recv(65536)
    assert received.startswith(b"HTTP/1.1 200")
    assert b"\r\nserver:" not in received.lower()
    own = [record for record in caplog.records if record.name == "rankshot"]
    assert [record.levelname for record in own] == ["INFO", "INFO"], "begin and end"
    assert not any("/health" in record.getMessage() for record in caplog.records)


def test_more_connections_than_the_limit_are_turned_away(monkeypatch):
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 2)
    with (
        serving(monkeypatch) as address,
        socket.create_connection(address, timeout=30) as first,
        socket.create_connection(address, timeout=30) as second,
    ):
        first.sendall(GET[:20])
        second.sendall(GET)
        assert second.recv(65536).startswith(b"HTTP/1.1 503")


def test_a_port_that_cannot_be_opened_is_named():
    with open_port("127.0.0.1", 0) as taken:
        number = taken.getsockname()[1]
        with refuses("port", number):
            open_port("127.0.0.1", number)
    if socket.has_ipv6:
        with open_port("::1", 0) as port:
            assert port.family == socket.AF_INET6

"""The server itself: its connections, its log, its health, and a database that is gone."""

import json
import re
import socket
import threading
from contextlib import contextmanager

import pytest
import uvicorn
from asgi_client import Client, open_survey
from server_process import wait_until
from small_studies import small_study
from sqlalchemy.exc import OperationalError

from rankshot.survey.store.database import Database
from rankshot.survey.web import app as app_module, server as module
from rankshot.survey.web.app import Rates
from rankshot.survey.web.server import open_port, serve


@contextmanager
def serving(app, monkeypatch, **options):
    """Serve in a thread; yield the address and the connections that the server has."""
    servers = []
    start = uvicorn.Server.__init__

    def note(self, config):
        start(self, config)
        servers.append(self)

    monkeypatch.setattr(uvicorn.Server, "__init__", note)
    port = open_port("127.0.0.1", 0)
    address = port.getsockname()
    thread = threading.Thread(target=serve, args=(app, port), kwargs=options)
    thread.start()
    try:
        wait_until(lambda: servers and servers[0].started)
        yield address, servers[0].server_state.connections
    finally:
        servers[0].should_exit = True
        thread.join(30)
    assert not thread.is_alive()


def receive_all(line):
    """Return all that comes until the server hangs up."""
    received = b""
    while chunk := line.recv(65536):
        received += chunk
    return received


# ---- Connections


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"POST /start HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nform",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=["nothing", "half a body", "one request"],
)
def test_a_connection_on_which_nothing_happens_is_closed(monkeypatch, tmp_path, sent):
    with (
        open_survey(small_study(), tmp_path) as (app, _),
        serving(app, monkeypatch, idle_seconds=1) as (address, _),
        socket.create_connection(address, timeout=10) as line,
    ):
        line.sendall(sent)
        received = receive_all(line)
    assert received.count(b"HTTP/1.1 200") == sent.count(b"\r\n\r\n") * sent.startswith(b"GET")


# ---- Health, and a database that is gone


def fail(*_):
    raise OperationalError("SELECT a secret", {}, Exception("connection refused\nmore"))


def test_health_and_readiness(tmp_path, monkeypatch):
    with open_survey(small_study(), tmp_path, rates=Rates(requests=1)) as (app, database):
        client = Client(app)
        assert {client.get("/health").text for _ in range(5)} == {"ok"}
        monkeypatch.setattr(app_module, "READY_SECONDS", 0.0)
        for _ in range(5):
            ready = client.get("/ready")
            assert (ready.status, json.loads(ready.text)) == (200, {"ready": True, "state": "open"})
        with database.begin_write() as connection:
            connection.exec_driver_sql("UPDATE survey SET state = 'paused'")
        assert json.loads(client.get("/ready").text)["state"] == "paused"
        monkeypatch.setattr(Database, "begin_read", fail)
        assert client.get("/health").status == 200
        ready = client.get("/ready")
        assert (ready.status, json.loads(ready.text)) == (503, {"ready": False, "state": None})
        assert client.get("/").status == 503, "the first that counts"
        assert client.get("/").status == 429


# ---- Logs


def test_an_outage_is_a_few_lines(tmp_path, monkeypatch, capsys):
    """Hundreds of requests without a database, and errors of our own: less than 20 KB."""
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.3)
    with open_survey(small_study(), tmp_path) as (app, _):

        @app.get("/broken")
        def broken():
            raise RuntimeError("not of the database")

        monkeypatch.setattr(Database, "begin_read", fail)
        with serving(app, monkeypatch) as (address, _):
            for path in ("/", "/broken") * 150:
                with socket.create_connection(address, timeout=10) as line:
                    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                    line.sendall(request.encode())
                    assert receive_all(line).startswith(b"HTTP/1.1 50")
    written = capsys.readouterr().err
    assert len(written) < 20_000
    events = [line for line in written.splitlines() if re.match(r"\d{4}-\d\d-\d\dT", line)]
    for text, kind in (("connection refused", "database"), ("RuntimeError", "ASGI")):
        found = [event for event in events if text in event]
        assert all(kind in event for event in found)
        assert 1 <= len(found) < 50
        counts = [re.search(r"\(([0-9,]+) times since", event) for event in found]
        assert sum(int(count[1]) if count else 1 for count in counts) <= 150
        assert any(counts), "those in between are counted"
    assert written.count("Traceback") == 1
    assert "secret" not in written
    assert "the server has started" in events[0]
    assert "the server has stopped" in events[-1]

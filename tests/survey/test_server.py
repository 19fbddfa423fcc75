"""The server itself: its connections, its log, its health, and a database that is gone."""

import asyncio
import io
import json
import logging
import re
import socket
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import pytest
import uvicorn
from asgi_client import Client, begin, form_of, open_survey
from server_process import TOKEN, Server, wait_until
from small_studies import small_study
from sqlalchemy.exc import OperationalError
from starlette.responses import PlainTextResponse

from command_line import rankshot
from rankshot.survey.store.database import Database
from rankshot.survey.web import app as app_module, server as module
from rankshot.survey.web.app import Rates
from rankshot.survey.web.server import QuietHandler, open_port, serve


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


def test_an_accepted_connection_sends_without_delay(monkeypatch):
    with (
        serving(PlainTextResponse("hello"), monkeypatch) as (address, connections),
        socket.create_connection(address, timeout=10),
    ):
        wait_until(lambda: connections)
        (accepted,) = connections
        own = accepted.transport.get_extra_info("socket")
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n",
        b"POST /start HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nform",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET",
    ],
    ids=["nothing", "half a head", "half a body", "one request", "one and a half"],
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


def test_a_request_that_comes_byte_by_byte_does_not_hold_its_connection(monkeypatch):
    with (
        serving(PlainTextResponse("hello"), monkeypatch, idle_seconds=1) as (address, _),
        socket.create_connection(address, timeout=10) as line,
    ):
        closed = []

        def drip():
            try:
                line.sendall(b"x")
                line.setblocking(False)
                closed.append(line.recv(1) == b"")
            except BlockingIOError:
                time.sleep(0.05)
            except OSError:
                closed.append(True)
            return bool(closed)

        line.sendall(b"GET / HTTP/1.1\r\nX: ")
        wait_until(drip, 10)


def test_a_slow_answer_is_waited_for(monkeypatch):
    async def slow(scope, receive, send):
        if scope["type"] == "http":
            await asyncio.sleep(1.5)
            await PlainTextResponse("at last")(scope, receive, send)

    with (
        serving(slow, monkeypatch, idle_seconds=1) as (address, _),
        socket.create_connection(address, timeout=10) as line,
    ):
        line.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert receive_all(line).endswith(b"at last")


def test_browsers_of_a_thousand_participants_are_let_in(monkeypatch):
    configured = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: configured.append(self.config))
    serve(None, None)
    assert configured[0].limit_concurrency >= 6 * 1000


# ---- HEAD and addresses


def test_head_is_get_without_the_body(tmp_path):
    with open_survey(small_study(), tmp_path) as (app, _):
        client = Client(app)
        home = begin(client)
        paths = ["/", home, f"{home}/instructions", "/static/survey.css", "/researcher", "/health"]
        for path in [*paths, "/ready", "/openapi.json", "/nowhere", "/researcher/progress"]:
            got, head = client.get(path), client.send("HEAD", path)
            assert (head.status, head.body) == (got.status, b""), path
            assert head["content-length"] == str(len(got.body)), path
            assert head["content-type"] == got["content-type"], path
        assert client.send("HEAD", "/start").status == 405


@pytest.mark.parametrize("prefix", ["", "/a/survey"])
def test_with_a_root_pages_open_with_a_proxy_and_without(tmp_path, prefix):
    with open_survey(small_study(), tmp_path, root="/a/survey") as (app, _):
        client = Client(app)
        form = form_of(client.get(f"{prefix}/").text)
        assert form.action == "/a/survey/start"
        reply = client.post(
            form.action.removeprefix("/a/survey" if not prefix else ""), form.fields
        )
        assert reply.status == 303
        assert client.get(reply["location"]).status == 200
        assert client.get(f"{prefix}/static/survey.css").status == 200
        assert client.get("/a/surveys").status == 404


def test_the_address_that_is_printed_opens(tmp_path):
    server = Server(small_study(), tmp_path, None, "--root", "/survey")
    server.start()
    try:
        (address,) = re.findall(r"Participants +(\S+)", server.said)
        assert address == f"{server.url}/survey/"
        assert httpx.get(address, trust_env=False).status_code == 200
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("root", "says"),
    [("survey", "begin it with a slash"), ("/x/", "end it without"), ("/static", "itself begin")],
)
def test_a_root_that_cannot_be_says_so(tmp_path, root, says):
    done = rankshot(f"survey serve {tmp_path}/study.toml --root {root}")
    assert done.status == 2
    assert says in done.err


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


def test_who_asks_often_whether_all_is_well_does_not_read_the_database(tmp_path, monkeypatch):
    with open_survey(small_study(), tmp_path) as (app, _):
        client = Client(app)
        first = client.get("/ready")
        monkeypatch.setattr(Database, "begin_read", fail)
        assert client.get("/ready").body == first.body
        monkeypatch.setattr(app_module, "READY_SECONDS", 0.0)
        assert client.get("/ready").status == 503


def test_a_full_disk_is_not_ready(tmp_path, monkeypatch):
    with open_survey(small_study(), tmp_path) as (app, _):
        full = SimpleNamespace(total=10**9, used=10**9 - 4096, free=4096)
        monkeypatch.setattr(app_module.shutil, "disk_usage", lambda _: full)
        ready = Client(app).get("/ready")
        assert (ready.status, json.loads(ready.text)) == (503, {"ready": False, "state": "open"})


def test_without_a_database_participants_are_told_that_nothing_was_saved(tmp_path, monkeypatch):
    with open_survey(small_study(), tmp_path) as (app, _):
        client = Client(app)
        home = begin(client)
        form = form_of(client.get(home).text)
        with monkeypatch.context() as gone:
            gone.setattr(Database, "begin_write", fail)
            gone.setattr(Database, "look", fail)
            for reply in (client.post(form.action, form.answer("1")), client.get(home)):
                assert reply.status == 503
                assert "was not saved" in reply.text
                assert int(reply["retry-after"]) > 0
                assert "secret" not in reply.text
        assert client.post(form.action, form.answer("1")).status == 303


# ---- Logs


@pytest.fixture
def log():
    """Return a function that makes a logger, and the stream to which it writes."""
    made = []

    def make(form):
        stream = io.StringIO()
        logger = logging.getLogger(f"test of {form}")
        logger.propagate = False
        made.append(QuietHandler(form, stream))
        logger.addHandler(made[-1])
        return logger, stream

    yield make
    for handler in made:
        handler.close()
        for name in ("text", "json"):
            logging.getLogger(f"test of {name}").removeHandler(handler)


def test_an_outage_is_a_few_lines(tmp_path, monkeypatch, capsys):
    """Hundreds of requests without a database, and errors of our own: less than 20 KB."""
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.5)
    with open_survey(small_study(), tmp_path) as (app, _):

        @app.get("/broken")
        def broken():
            raise RuntimeError("not of the database")

        monkeypatch.setattr(Database, "begin_read", fail)
        with serving(app, monkeypatch, log="json") as (address, _):
            for path in ("/", "/broken") * 300:
                with socket.create_connection(address, timeout=10) as line:
                    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                    line.sendall(request.encode())
                    assert receive_all(line).startswith(b"HTTP/1.1 50")
    written = capsys.readouterr().err
    assert len(written) < 20_000
    events = [json.loads(line) for line in written.splitlines()]
    for text, kind in (("connection refused", "database"), ("RuntimeError", "ASGI")):
        found = [event for event in events if text in event["event"]]
        assert all(kind in event["event"] for event in found)
        assert sum(event.get("count", 1) for event in found) == 300, "all are counted"
        assert 2 <= len(found) < 50
    assert sum("traceback" in event for event in events) == 1
    assert "secret" not in written
    assert {"the server has started", "the server has stopped"} < {e["event"] for e in events}


def test_text_and_json_say_the_same(log):
    for form in ("text", "json"):
        logger, stream = log(form)
        for number in range(58):
            logger.error("it happened: %s", number)
        logger.warning("something\nelse")
        logger.handlers[0].close()
        lines = stream.getvalue().splitlines()
        if form == "json":
            events = [json.loads(line) for line in lines]
            assert [(e["level"], e["event"], e.get("count", 1)) for e in events] == [
                ("error", "it happened: 0", 1),
                ("warning", "something\nelse", 1),
                ("error", "it happened: 1", 57),
            ]
        else:
            assert lines[0].endswith("ERROR: it happened: 0")
            assert lines[-1].endswith("ERROR: it happened: 1 (57 times in the last 10 s)")


def test_counts_are_reported_when_the_time_is_over(log, monkeypatch):
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.1)
    logger, stream = log("text")
    for _ in range(3):
        logger.error("again")
    wait_until(lambda: "2 times" in stream.getvalue(), 10)
    logger.error("again")
    wait_until(lambda: stream.getvalue().count("again") == 3, 10)


def test_the_command_writes_json(tmp_path):
    server = Server(small_study(), tmp_path, None, "--log", "json")
    server.start()
    assert httpx.get(f"{server.url}/health", trust_env=False).text == "ok"
    server.stop()
    written = (tmp_path / "errors.txt").read_text()
    assert [json.loads(line)["event"] for line in written.splitlines()] == [
        "the server has started",
        "the server has stopped",
    ]
    assert TOKEN not in written

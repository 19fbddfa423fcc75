"""A web application and its server: templates, files, errors, the port, connections and logs."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import logging
import signal
import socket
import sys
import threading
import time
from importlib.resources import files
from typing import Any, NamedTuple

import h11
import uvicorn
from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import PlainTextResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from rankshot.core.errors import InputError
from rankshot.web.guards import Guard, Refuse, RefusedError

KINDS = {"css": "text/css", "svg": "image/svg+xml", "js": "text/javascript"}
FOR_EVER = "public, max-age=31536000, immutable"
VERSION_DIGITS = 8


def create_application(refuse: Refuse, **rules: Any) -> FastAPI:
    """Create an application in which every request is checked, and every error has a page.

    ``rules`` are those of `Guard`. The only address is ``/health``, which says that the process
    answers.
    """
    app = FastAPI(
        openapi_url=None,
        # A redirect would lead to whatever host the request names.
        redirect_slashes=False,
    )
    app.exception_handler(RefusedError)(refuse)

    @app.exception_handler(RequestValidationError)
    def show_malformed_request(request: Request, _error: RequestValidationError) -> Response:
        # The page does not repeat what was sent, since nothing of it is trusted.
        return refuse(request, RefusedError(422, "malformed"))

    @app.exception_handler(StarletteHTTPException)
    def show_http_error(request: Request, error: HTTPException) -> Response:
        message = "no_page" if error.status_code == 404 else "address"
        refusal = RefusedError(error.status_code, message, headers=dict(error.headers or {}))
        return refuse(request, refusal)

    @app.get("/health", response_class=PlainTextResponse)
    async def health() -> str:
        """Say that the process answers."""
        return "ok"

    app.add_middleware(Guard, refuse=refuse, **rules)
    return app


def create_environment(
    package: str, static: dict[str, File], root: str = "/", **values: object
) -> Environment:
    """Return the templates of a package, and those of all pages; what people wrote is escaped.

    ``values`` are known to all templates, and so is ``static``, which returns the address of a
    static file, below ``root``.
    """
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(package), PackageLoader("rankshot.web")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # Templates do not change while the server runs.
        auto_reload=False,
    )
    environment.globals |= {
        "static": lambda name: f"{root}static/{name}?v={static[name].version}",
        **values,
    }
    return environment


class File(NamedTuple):
    """A file that stays in memory; ``version`` is what its address says of its content."""

    content: bytes
    kind: str
    version: str = ""


def load_static_files(package: str) -> dict[str, File]:
    """Return style sheets and scripts of a package, by name, and what all pages share."""
    found = {}
    folders = [files(each) / "static" for each in (__package__, package)]
    for file in [file for folder in folders for file in folder.iterdir()]:
        kind, content = KINDS[file.name.rpartition(".")[2]], file.read_bytes()
        version = hashlib.sha256(content).hexdigest()[:VERSION_DIGITS]
        found[file.name] = File(content, f"{kind}; charset=utf-8", version)
    return found


def add_files(app: FastAPI, path: str, found: dict[str, File]) -> None:
    """Add files at a path such as ``/static/{name}``.

    A browser keeps what it got for ever if the address names the content: so after an upgrade no
    page has an old script, and no script is asked for twice.
    """

    @app.get(path)
    async def file(name: str, v: str = "") -> Response:
        """Return a file."""
        if name not in found:
            raise RefusedError(404, "no_file")
        file = found[name]
        cache = FOR_EVER if v == file.version else "no-cache"
        return Response(file.content, media_type=file.kind, headers={"cache-control": cache})


# ---- The server: its port, and connections that end in time

# The events of all applications.
LOGGER = logging.getLogger("rankshot")
# A browser opens up to six: this is enough for more than 1,000 people at a time, if the system
# permits that many open files.
MOST_CONNECTIONS = 10_000
# A connection without a request is closed after so long, and so is one on which a request does not
# come to its end.
IDLE_SECONDS = 30
# A thread that comes back from the disk waits so long for another one: Python's 5 ms, several times
# per page, would be most of its time.
SWITCH_SECONDS = 0.0005


def open_port(host: str, port: int) -> socket.socket:
    """Open a port; 0 takes any free port."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        rule = f"cannot be opened on {host}: {error.strerror}"
        raise InputError("port", port, rule, hint="give another one") from None


def serve(app: FastAPI, port: socket.socket) -> None:
    """Serve requests until a signal comes; open requests are finished first."""
    sys.setswitchinterval(SWITCH_SECONDS)
    # What is there now stays: it is not searched for garbage again and again.
    gc.freeze()
    config = uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        log_config=None,
        # URLs contain ids, links and tokens: they must not be logged.
        access_log=False,
        server_header=False,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=30,
        limit_concurrency=MOST_CONNECTIONS,
    )
    if threading.current_thread() is threading.main_thread():
        # uvicorn finishes open requests, and then lets the signal come again. Without a handler
        # it would end the process before the database is closed.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter("%(asctime)s %(levelname)s: %(message)s", "%Y-%m-%dT%H:%M:%SZ"))
    logging.basicConfig(handlers=[handler])
    LOGGER.setLevel(logging.INFO)
    LOGGER.info("the server has started")
    try:
        uvicorn.Server(config).run(sockets=[port])
    finally:
        LOGGER.info("the server has stopped")


class _Formatter(logging.Formatter):
    converter = staticmethod(time.gmtime)


class _Protocol(H11Protocol):
    """HTTP that sends without delay, and does not wait for ever for a request."""

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # asyncio sets this only on sockets that name their protocol. Sockets from `create_server`
        # do not, and without it each response waits 40 ms for an acknowledgement.
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        if self._deadline is None:
            self._expect_request()
        super().data_received(data)
        if self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}:
            self._forget_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _expect_request(self) -> None:
        self._deadline = self.loop.call_later(self.timeout_keep_alive, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

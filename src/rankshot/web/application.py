"""A web application: its templates, its files, and a page for every error."""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import NamedTuple

from fastapi import FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import PlainTextResponse, Response

from rankshot.web.guards import Guard, Refuse, RefusedError, Rules

KINDS = {"css": "text/css", "svg": "image/svg+xml", "js": "text/javascript"}
FOR_EVER = "public, max-age=31536000, immutable"
VERSION_DIGITS = 8


def create_application(refuse: Refuse, rules: Rules) -> FastAPI:
    """Create an application in which every request is checked, and every error has a page.

    Its only address is ``/health``, which says that the process answers.
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

    app.add_middleware(Guard, rules=rules, refuse=refuse)
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

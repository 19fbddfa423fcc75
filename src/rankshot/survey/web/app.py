"""The web application of a study, and the server that runs it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated, Any

import uvicorn
from fastapi import Depends, FastAPI, HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import HTMLResponse, Response

from rankshot import __version__
from rankshot.core.errors import RankshotError
from rankshot.survey.platforms import TURK_FORM_ACTIONS
from rankshot.survey.store.database import Database
from rankshot.survey.store.participation import Participation
from rankshot.survey.study import Study
from rankshot.survey.web.guards import Guard, RateLimit, security_headers
from rankshot.survey.web.pages import (
    STATIC,
    Pages,
    RefusedError,
    describe_refusals,
    load_static_files,
)
from rankshot.survey.web.participant_routes import ParticipantRoutes
from rankshot.survey.web.researcher_routes import Login, ResearcherRoutes

StaticName = Annotated[str, Path(json_schema_extra={"enum": list(STATIC)})]


@dataclass(frozen=True)
class Rates:
    """How many requests one address may make per minute.

    A whole university or telephone company may share one address. These limits are meant for
    programs that send too much, not for many people.
    """

    requests: int = 600
    starts: int = 60
    logins: int = 10
    """Attempts with a researcher's token, in the login form or a header, right or wrong."""


def create_app(
    study: Study,
    database: Database,
    *,
    token: str | None = None,
    rates: Rates | None = None,
    root: str = "",
) -> FastAPI:
    """Create the web application of a study.

    Parameters
    ----------
    study : Study
    database : Database
        Where answers are stored.
    token : str, optional
        Gives access to the researcher's page. Without a token there is no such page.
    rates : Rates, optional
    root : str
        The prefix of every path, if a proxy serves the survey below a path of another site.
    """
    rates = rates or Rates()
    pages = Pages(study, root)
    app = FastAPI(
        title="rankshot survey",
        version=__version__,
        # FastAPI's documentation pages load scripts from another host.
        docs_url=None,
        redoc_url=None,
        # A redirect would lead to whatever host the request names.
        redirect_slashes=False,
        dependencies=[Depends(_refuse_repeated_fields)],
    )
    participation = Participation(study, database)
    visitors = ParticipantRoutes(study, participation, database.identity, pages)
    app.include_router(visitors.router())
    if token is not None:
        app.state.login = Login(token, database.identity)
        researcher = ResearcherRoutes(study, database, app.state.login, pages)
        app.include_router(researcher.router())
    _add_static_files(app)
    _add_error_pages(app, pages)
    turk = study.platform == "mturk"
    app.add_middleware(
        Guard,
        headers=security_headers(
            TURK_FORM_ACTIONS if turk else (), "https://*.mturk.com" if turk else "'none'"
        ),
        limit=RateLimit(rates.requests),
        stricter={"/start": RateLimit(rates.starts)},
        tokens=RateLimit(rates.logins),
        refuse=pages.render_message,
    )
    return app


async def _refuse_repeated_fields(request: Request) -> None:
    """Refuse a form that has a field twice: it is not clear which of the two is meant."""
    if request.method != "POST":
        return
    form = await request.form()
    for name in form:
        if name not in {"place", "rater"} and len(form.getlist(name)) > 1:
            raise RefusedError(422, "Malformed", "A field of the form was sent twice.")


def _add_static_files(app: FastAPI) -> None:
    found = load_static_files()
    kinds = {kind: {"schema": {"type": "string"}} for kind in sorted(set(STATIC.values()))}
    files: dict[int | str, dict[str, Any]] = {200: {"content": kinds}}

    @app.get(
        "/static/{name}", response_class=Response, responses={**files, **describe_refusals(404)}
    )
    def static(name: StaticName) -> Response:
        """Return a style sheet, a script or the icon."""
        if name not in found:
            raise RefusedError(404, "No such file", "The survey has no such file.")
        return found[name]


def _add_error_pages(app: FastAPI, pages: Pages) -> None:
    """Answer every error with a page that a person can read."""

    @app.exception_handler(RefusedError)
    def show_refusal(_request: Request, error: RefusedError) -> HTMLResponse:
        page = pages.render(error.template, error.status, **error.values)
        page.headers.update(error.headers)
        if error.status == 401:
            page.headers["www-authenticate"] = "Bearer"
        return page

    @app.exception_handler(RequestValidationError)
    def show_malformed_request(_request: Request, _error: RequestValidationError) -> HTMLResponse:
        # The page does not repeat what was sent, since nothing of it is trusted.
        return pages.render_message(
            422, "Malformed", "This request does not come from our pages. Nothing was stored."
        )

    @app.exception_handler(StarletteHTTPException)
    def show_http_error(_request: Request, error: HTTPException) -> HTMLResponse:
        phrase = HTTPStatus(error.status_code).phrase
        page = pages.render_message(error.status_code, phrase, "Please check the address.")
        page.headers.update(error.headers or {})
        return page


# ---- The server


def open_port(host: str, port: int) -> socket.socket:
    """Open a port; 0 takes any free port."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise RankshotError(f"cannot listen at {host}:{port} ({error.strerror})") from None


def is_loopback(host: str) -> bool:
    """Return whether an address can be reached only from this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def serve(app: FastAPI, port: socket.socket) -> None:
    """Serve requests until a signal comes; open requests are finished first."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        # URLs contain participants' ids and links: they must not be logged.
        access_log=False,
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=30,
        limit_concurrency=2_000,
    )
    uvicorn.Server(config).run(sockets=[port])

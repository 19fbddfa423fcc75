"""The web application of a study, and the server that runs it."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from typing import Annotated, Any

import uvicorn
from fastapi import FastAPI, HTTPException, Path, Request
from fastapi.exceptions import RequestValidationError
from sqlalchemy.exc import OperationalError, TimeoutError as WaitError
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.responses import HTMLResponse, Response

from rankshot import __version__
from rankshot.core.errors import RankshotError
from rankshot.survey.platforms import TURK_FORM_ACTIONS
from rankshot.survey.store.database import Database
from rankshot.survey.store.participation import Participation
from rankshot.survey.store.sqlite_files import DatabaseGoneError
from rankshot.survey.study import Study
from rankshot.survey.web.extra_routes import ExtraRoutes
from rankshot.survey.web.guards import Guard, RateLimit, security_headers
from rankshot.survey.web.pages import (
    STATIC,
    Pages,
    RefusedError,
    describe_refusals,
    load_static_files,
)
from rankshot.survey.web.participant_routes import ParticipantRoutes
from rankshot.survey.web.pictures import Pictures
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
    pictures = Pictures(study.pictures, root)
    pages = Pages(study, root, pictures.shown)
    app = FastAPI(
        title="rankshot survey",
        version=__version__,
        # FastAPI's documentation pages load scripts from another host.
        docs_url=None,
        redoc_url=None,
        # A redirect would lead to whatever host the request names.
        redirect_slashes=False,
    )
    participation = Participation(study, database)
    database.start_serving()
    visitors = ParticipantRoutes(study, participation, database.identity, pages)
    extra = ExtraRoutes(study, participation, database.identity, pages)
    # First: otherwise its address would be a question with the number "extra".
    app.routes.extend(extra.router().routes)
    app.routes.extend(visitors.router().routes)
    if token is not None:
        app.state.login = Login(token, database.identity)
        researcher = ResearcherRoutes(study, database, app.state.login, pages)
        app.routes.extend(researcher.router().routes)
    _add_static_files(app)
    app.routes.extend(pictures.router().routes)
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


def _add_static_files(app: FastAPI) -> None:
    found = load_static_files()
    kinds = {kind: {"schema": {"type": "string"}} for kind in sorted(set(STATIC.values()))}
    files: dict[int | str, dict[str, Any]] = {200: {"content": kinds}}

    @app.get(
        "/static/{name}", response_class=Response, responses={**files, **describe_refusals(404)}
    )
    async def static(name: StaticName) -> Response:
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

    @app.exception_handler(DatabaseGoneError)
    @app.exception_handler(OperationalError)
    @app.exception_handler(WaitError)
    def show_outage(_request: Request, error: Exception) -> HTMLResponse:
        if not isinstance(error, DatabaseGoneError):
            # Such as a full disk. A file that is gone was reported when it was noticed.
            reason = str(getattr(error, "orig", error)).strip().splitlines()[0]
            logging.getLogger(__name__).error("the database does not work: %s", reason)
        page = pages.render_message(
            503,
            "Not saved",
            "The survey cannot save anything at the moment: what you sent was not saved. Earlier "
            "answers are safe. Please keep this page open, and try again later.",
        )
        page.headers["retry-after"] = "60"
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

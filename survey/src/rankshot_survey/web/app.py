"""The web application of a study: all routes, files, the state of the server and errors."""

from __future__ import annotations

from contextlib import suppress
from math import ceil

from fastapi import FastAPI, Request
from sqlalchemy.exc import DBAPIError, SQLAlchemyError, TimeoutError as WaitError
from starlette.responses import HTMLResponse, Response

from rankshot.web.guards import RateLimit, RefusedError
from rankshot.web.server import add_files, create_application, load_static_files
from rankshot_survey.store.database import LOGGER, Database, name_failures
from rankshot_survey.store.participation import NotAssignedError, Participation, StoppedError
from rankshot_survey.store.people import read_state
from rankshot_survey.study import Study
from rankshot_survey.web.pages import PACKAGE, Pages, load_images
from rankshot_survey.web.participant_routes import PLACE, ParticipantRoutes
from rankshot_survey.web.researcher_routes import ResearcherRoutes


def create_app(
    study: Study,
    database: Database,
    *,
    token: str | None = None,
    requests: int = 600,
) -> FastAPI:
    """Create the web application of a study.

    Parameters
    ----------
    study : Study
    database : Database
        Where answers are stored.
    token : str, optional
        Gives access to the researcher's page. Without a token there is no such page.
    requests : int
        How many requests per minute one address may make. Many people may share an address: the
        limit is meant for programs.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from rankshot_survey import Database, Question, Study, create_app
    >>> cat = Question("cat", ("leopard", "fox", "bus"))
    >>> study = Study("Alike", "What is like {target}?", "Agreed?", cat.items, (cat,))
    >>> with TemporaryDirectory() as folder:
    ...     database = Database(Path(folder, "study.sqlite"), create=True)
    ...     app = create_app(study, database, token="a secret of 16 characters or more")
    ...     database.close()

    An ASGI server serves it, until it is stopped, as long as the database is open:
    ``uvicorn.run(app, host="127.0.0.1", port=8000)``.
    """
    addresses, images = load_images(study.images)
    static = load_static_files(PACKAGE)
    with name_failures(database.place):
        participation = Participation(study, database)
    pages = Pages(study, addresses, static, participation)
    app = create_application(pages.refuse, limit=RateLimit(requests), repeated={PLACE})
    app.state.identity = database.identity
    app.routes.extend(ParticipantRoutes(study, participation, database, pages).router().routes)
    if token is not None:
        researcher = ResearcherRoutes(study, database, token, pages)
        app.routes.extend(researcher.router().routes)
    add_files(app, "/static/{name}", static)
    add_files(app, "/images/{name}", images)
    _add_readiness(app, database)
    _add_error_pages(app, study, pages)
    return app


def _add_readiness(app: FastAPI, database: Database) -> None:
    """Add the address that a proxy or a service manager asks whether all is well."""

    @app.get("/ready")
    def ready(response: Response) -> dict[str, object]:
        """Say whether the database answers, and the state of the survey."""
        with suppress(SQLAlchemyError), database.begin_read() as connection:
            return {"ready": True, "state": read_state(connection)}
        response.status_code = 503
        return {"ready": False, "state": None}


def _add_error_pages(app: FastAPI, study: Study, pages: Pages) -> None:
    """Answer the errors of a survey with a page that a person can read."""

    @app.exception_handler(StoppedError)
    def show_stopped(request: Request, error: StoppedError) -> HTMLResponse:
        if error.reason == "full":
            # By then, those who are expected have answered or left.
            minutes = ceil(study.return_after_minutes)
            page = pages.render("full.html", 503, reader=request, minutes=minutes)
            page.headers["retry-after"] = str(60 * minutes)
            return page
        if error.reason in ("withdrawn", "excluded"):
            link = study.refusal_url or study.full_url
        else:
            # Who has started a paused study may go on later, and gets no code that ends it.
            link = None if error.has_started else study.full_url or study.refusal_url
        status = {"paused": 503, "elsewhere": 409}.get(error.reason, 410)
        link = pages.way_back(request, link)
        return pages.render("stopped.html", status, reader=request, reason=error.reason, link=link)

    @app.exception_handler(NotAssignedError)
    def show_not_started(request: Request, _error: NotAssignedError) -> HTMLResponse:
        return pages.refuse(request, RefusedError(404, "not_started"))

    @app.exception_handler(DBAPIError)
    @app.exception_handler(WaitError)
    def show_outage(request: Request, error: Exception) -> HTMLResponse:
        # Such as a full disk.
        reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
        LOGGER.error("the database does not work: %s", reason)
        return pages.refuse(request, RefusedError(503, "outage", headers={"retry-after": "60"}))

"""The routes of the researcher, behind a token: login, progress and downloads.

The pages only show; ``rankshot-survey`` changes things.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Literal, NoReturn

from fastapi import APIRouter, Depends, Form, Query, Request
from pydantic import StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.core.errors import RankshotError
from rankshot.web.guards import (
    MOST_SECRET,
    RateLimit,
    RefusedError,
    Sent,
    is_secret,
    require_secret,
    set_cookie,
)
from rankshot_survey.export import format_csv, format_jsonl, make_records
from rankshot_survey.overview import Overview, read_overview
from rankshot_survey.store.database import Database
from rankshot_survey.study import Study
from rankshot_survey.web.pages import Pages

COOKIE = "rankshot_researcher"
HOME = "/researcher"
# How long a login lasts.
LOGIN_SECONDS = 12 * 3600


class LoginForm(Sent):
    """What the login page sends."""

    token: Annotated[str, StringConstraints(min_length=1, max_length=MOST_SECRET)]


class ViewQuery(Sent):
    """What a page or a file is about: the pilot participants or the others, flagged ones or not."""

    pilot: bool = False
    exclude_flagged: bool = False


FileName = Literal["rankings.jsonl", "answers.csv", "participants.csv", "payments.csv"]


def format_time(at: float | None) -> str:
    """Return a Unix time for people, in UTC; a dash if there is none."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M") if at else "–"


class ResearcherRoutes:
    """The routes of a study's researcher, who has the token."""

    def __init__(self, study: Study, database: Database, token: str, pages: Pages) -> None:
        # An address may send so many wrong tokens per minute.
        self._attempts = RateLimit(10)
        self._database = database
        self._identity = database.identity
        self._study = study
        self._token = require_secret(token)
        self._pages = pages

    def router(self) -> APIRouter:
        """Return the router with all routes."""
        router = APIRouter(prefix=HOME)
        locked = [Depends(self.require_session)]
        # Without a login, this is the page that asks for the token.
        router.get("")(self.page)
        router.post("/login")(self.log_in)
        router.post("/logout", dependencies=locked)(self.log_out)
        router.get("/files/{name}", dependencies=locked)(self.file)
        return router

    # ---- Login

    def _has_session(self, request: Request) -> bool:
        """Return whether the cookie of a login is valid."""
        cookie = request.cookies.get(COOKIE, "")
        began = self._identity.read_timed_token(cookie, "login", self._token)
        return began is not None and time.time() < began + LOGIN_SECONDS

    def require_session(self, request: Request) -> None:
        """Refuse a request without a login."""
        if not self._has_session(request):
            text = "Please log in first. A login ends after 12 hours."
            _refuse(401, "Not logged in", text, label="Log in")

    def log_in(self, request: Request, form: Annotated[LoginForm, Form()]) -> Response:
        """Check the token, and set the login cookie."""
        if not is_secret(request, form.token, self._token, self._attempts):
            error = "This is not the token that the survey was started with."
            raise RefusedError(401, template="login.html", error=error)
        response = RedirectResponse(HOME, 303)
        # It needs the token and the survey's secret key. So a cookie is invalid after a change of
        # the token, and a guessed token can only be tested by sending it to the server.
        cookie = self._identity.timed_token(time.time(), "login", self._token)
        set_cookie(
            response, request, COOKIE, cookie, max_age=LOGIN_SECONDS, path=HOME, samesite="strict"
        )
        return response

    def log_out(self) -> Response:
        """End the login of this browser."""
        response = RedirectResponse(HOME, 303)
        response.delete_cookie(COOKIE, path=HOME, httponly=True, samesite="strict")
        return response

    # ---- Pages

    def page(self, request: Request, query: Annotated[ViewQuery, Query()]) -> HTMLResponse:
        """Show the progress of the survey and its participants, or ask for the token."""
        if not self._has_session(request):
            return self._pages.render("login.html", error=None)
        view = self._read(pilot=query.pilot)
        # Those with most flags come first, and then those who started first.
        people = sorted(view.people.values(), key=lambda one: -len(one.flags))
        return self._pages.render(
            "researcher.html",
            view=view,
            people=people,
            id_heading="Code" if self._study.platform == "none" else self._study.id_names[0],
            at=time.time(),
            format_time=format_time,
        )

    def _read(self, *, pilot: bool) -> Overview:
        return read_overview(self._study, self._database, time.time(), pilot=pilot)

    def file(self, name: FileName, query: Annotated[ViewQuery, Query()]) -> Response:
        """Return the rankings, every answer, every participant, or who is to be paid."""
        view = self._read(pilot=query.pilot)
        kind, _, ending = name.partition(".")
        try:
            records = make_records(view, kind, exclude_flagged=query.exclude_flagged)
        except RankshotError as error:
            _refuse(404, "Nothing to download", f"{error}.")
        headers = {"content-disposition": f'attachment; filename="{name}"'}
        if ending == "csv":
            return Response(format_csv(records), media_type="text/csv", headers=headers)
        return Response(format_jsonl(records), media_type="application/x-ndjson", headers=headers)


def _refuse(status: int, heading: str, text: str, label: str = "Back to the survey") -> NoReturn:
    raise RefusedError(status, template="refused.html", heading=heading, text=text, label=label)

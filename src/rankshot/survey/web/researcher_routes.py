"""The researcher's page: how the survey stands, and the download; behind a token."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.ranking.errors import RankshotError
from rankshot.survey.overview import Overview, overview
from rankshot.survey.store.database import Database
from rankshot.survey.study import Study
from rankshot.survey.web.login import (
    COOKIE,
    MOST_CHARACTERS,
    SECONDS,
    Login,
    logged_in,
    require_login,
)
from rankshot.survey.web.pages import Pages
from rankshot.survey.web.refusal import RefusedError, refusals, takes_form

FormToken = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


class LoginForm(BaseModel):
    """What the page of login sends."""

    model_config = ConfigDict(extra="forbid")
    form: FormToken
    token: Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]


class LogoutForm(BaseModel):
    """What the button that logs out sends."""

    model_config = ConfigDict(extra="forbid")
    form: FormToken


class ResearcherRoutes:
    """The routes of a study's researcher.

    Parameters
    ----------
    study : Study
    database : Database
    login : Login
    pages : Pages
    """

    def __init__(self, study: Study, database: Database, login: Login, pages: Pages) -> None:
        self._study = study
        self._database = database
        self._identity = database.identity
        self._login = login
        self._pages = pages
        self._home = f"{pages.root}/researcher"

    def router(self) -> APIRouter:
        """Return them."""
        router = APIRouter(prefix="/researcher", default_response_class=HTMLResponse)
        locked: dict[str, Any] = {"dependencies": [Depends(require_login)]}
        lines = {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
        # Who is not logged in gets the page that asks for the token.
        router.get("", responses=refusals(), openapi_extra={"security": [{}]})(self.page)
        router.post("/login", **takes_form(401))(self.log_in)
        router.post("/logout", **takes_form(401), **locked)(self.log_out)
        router.get("/standing", responses=refusals(401), **locked)(self.standing)
        router.get(
            "/rankings.jsonl",
            response_class=Response,
            responses={200: lines, **refusals(401, 404)},
            **locked,
        )(self.rankings)
        return router

    def page(self, known: Annotated[bool, Depends(logged_in)]) -> HTMLResponse:
        """Show how the survey stands, or ask for the token."""
        if not known:
            return self._pages.page("login.html", fields=self._fields("login"), error=None)
        fields = self._fields("logout")
        return self._pages.page("researcher.html", fields=fields, view=self._overview())

    def log_in(self, request: Request, form: Annotated[LoginForm, Form()]) -> Response:
        """Take the token, and remember it in a cookie: its one purpose."""
        self._check(form.form, "login")
        if not self._login.knows(form.token):
            error = "This is not the token that the survey was started with."
            fields = self._fields("login")
            raise RefusedError(401, template="login.html", fields=fields, error=error)
        response = RedirectResponse(self._home, 303)
        response.set_cookie(
            COOKIE,
            self._login.cookie(time.time()),
            max_age=SECONDS,
            path=self._home,
            secure=request.scope["scheme"] == "https",
            httponly=True,
            samesite="strict",
        )
        return response

    def log_out(self, form: Annotated[LogoutForm, Form()]) -> Response:
        """Forget the token."""
        self._check(form.form, "logout")
        response = RedirectResponse(self._home, 303)
        response.delete_cookie(COOKIE, path=self._home, httponly=True, samesite="strict")
        return response

    def standing(self) -> HTMLResponse:
        """Return the part of the page that changes, for the page to renew itself."""
        return self._pages.page("standing.html", view=self._overview())

    def rankings(
        self,
        exclude_flagged: Annotated[bool, Query()] = False,  # noqa: FBT002
    ) -> Response:
        """Return the answers as a rankings file."""
        try:
            export = self._overview().export(exclude_flagged=exclude_flagged)
        except RankshotError as error:
            raise RefusedError(404, "Nothing to download", f"{error}.", link=self._home) from None
        return Response(
            "".join(f"{line}\n" for line in export.lines),
            media_type="application/x-ndjson",
            headers={"content-disposition": 'attachment; filename="rankings.jsonl"'},
        )

    def _overview(self) -> Overview:
        return overview(self._study, self._database, time.time())

    def _fields(self, purpose: str) -> dict[str, str]:
        return {"form": self._identity.nonce(purpose)}

    def _check(self, form: str, purpose: str) -> None:
        if not self._identity.is_nonce(form, purpose):
            raise RefusedError(403, "This form is not ours", "Please open the page again.")

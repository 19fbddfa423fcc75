"""The routes of the researcher, behind a token: login, progress and downloads."""

from __future__ import annotations

import hmac
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.core.errors import RankshotError
from rankshot.survey.export import export_lines
from rankshot.survey.progress import Overview, read_overview
from rankshot.survey.store.database import Database
from rankshot.survey.store.identity import Identity
from rankshot.survey.study import Study
from rankshot.survey.web.pages import (
    FormNonce,
    Pages,
    RefusedError,
    SentForm,
    describe_form,
    describe_refusals,
)

COOKIE = "rankshot_researcher"
SECONDS = 12 * 3600
"""How long a login lasts."""
LEAST_CHARACTERS = 16
MOST_CHARACTERS = 500
_COOKIE = APIKeyCookie(
    name=COOKIE, scheme_name="cookie", description="Set by the login form.", auto_error=False
)
_BEARER = HTTPBearer(
    scheme_name="token",
    description="The token with which the survey was started.",
    auto_error=False,
)


# ---- Login


class Login:
    """A token, and a cookie that proves that the browser has sent it.

    The cookie is an expiry time with a signature. The signature needs the token and the survey's
    secret key. So a cookie is invalid after a change of the token, and a guessed token can only
    be tested by sending it to the server.

    Examples
    --------
    >>> login = Login("a-token-that-nobody-guesses", Identity(b"a key"))
    >>> cookie = login.cookie(now=1000.0)
    >>> login.accepts(cookie, now=2000.0), login.accepts(cookie, now=99_000.0)
    (True, False)
    """

    def __init__(self, token: str, identity: Identity) -> None:
        how = "for example from python -c 'import secrets; print(secrets.token_hex())'"
        if not LEAST_CHARACTERS <= len(token) <= MOST_CHARACTERS:
            raise RankshotError(
                f"the researcher's token has {len(token)} characters; give at least "
                f"{LEAST_CHARACTERS} and at most {MOST_CHARACTERS}, {how}"
            )
        # Other characters cannot be sent in a header unchanged.
        if not (token.isascii() and token.isprintable() and token == token.strip()):
            raise RankshotError(
                "the researcher's token has characters that are not ASCII, or begins or ends with "
                f"a space; give another, {how}"
            )
        self._token = token.encode()
        self._key = identity.login_key(token)

    def is_token(self, token: str) -> bool:
        """Return whether this is the token, in constant time."""
        return hmac.compare_digest(self._token, token.encode())

    def cookie(self, now: float) -> str:
        """Return the value of a new cookie."""
        end = str(int(now) + SECONDS)
        return f"{end}.{self._sign(end)}"

    def accepts(self, cookie: str, now: float) -> bool:
        """Return whether a cookie is valid and has not expired."""
        end, _, signature = cookie.partition(".")
        signed = hmac.compare_digest(self._sign(end).encode(), signature.encode())
        return signed and int(end) > now

    def _sign(self, end: str) -> str:
        return hmac.digest(self._key, end.encode(), "sha256").hex()


def is_logged_in(
    request: Request,
    cookie: Annotated[str | None, Depends(_COOKIE)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> bool:
    """Return whether a request has the cookie, or the token as ``Authorization: Bearer``."""
    login: Login = request.app.state.login
    if bearer is not None:
        return login.is_token(bearer.credentials)
    return cookie is not None and login.accepts(cookie, time.time())


def require_login(logged_in: Annotated[bool, Depends(is_logged_in)]) -> None:
    """Refuse a request without a login."""
    if not logged_in:
        raise RefusedError(401, "Not logged in", "Please log in first.")


# ---- Routes


class LoginForm(SentForm):
    """What the login page sends."""

    form: FormNonce
    token: Annotated[str, StringConstraints(min_length=1, max_length=MOST_CHARACTERS)]


class LogoutForm(SentForm):
    """What the logout button sends."""

    form: FormNonce


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
        """Return the router with all routes."""
        router = APIRouter(prefix="/researcher", default_response_class=HTMLResponse)
        locked: dict[str, Any] = {"dependencies": [Depends(require_login)]}
        lines = {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
        # Without a login, this is the page that asks for the token.
        router.get("", responses=describe_refusals(), openapi_extra={"security": [{}]})(self.page)
        router.post("/login", **describe_form(401))(self.log_in)
        router.post("/logout", **describe_form(401), **locked)(self.log_out)
        router.get("/progress", responses=describe_refusals(401), **locked)(self.progress)
        router.get(
            "/rankings.jsonl",
            response_class=Response,
            responses={200: lines, **describe_refusals(401, 404)},
            **locked,
        )(self.rankings)
        return router

    def page(self, logged_in: Annotated[bool, Depends(is_logged_in)]) -> HTMLResponse:
        """Show the progress of the survey, or ask for the token."""
        if not logged_in:
            return self._pages.render("login.html", fields=self._fields("login"), error=None)
        fields = self._fields("logout")
        return self._pages.render("researcher.html", fields=fields, view=self._read_overview())

    def log_in(self, request: Request, form: Annotated[LoginForm, Form()]) -> Response:
        """Check the token, and set the login cookie."""
        self._require_nonce(form.form, "login")
        if not self._login.is_token(form.token):
            error = "This is not the token with which the survey was started."
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
        """Delete the login cookie."""
        self._require_nonce(form.form, "logout")
        response = RedirectResponse(self._home, 303)
        response.delete_cookie(COOKIE, path=self._home, httponly=True, samesite="strict")
        return response

    def progress(self) -> HTMLResponse:
        """Return the part of the page that changes, for its script."""
        return self._pages.render("progress.html", view=self._read_overview())

    def rankings(
        self,
        exclude_flagged: Annotated[bool, Query()] = False,  # noqa: FBT002
    ) -> Response:
        """Return the answers as a rankings file."""
        view = self._read_overview()
        try:
            export = export_lines(
                view.study, view.answers, view.flags, exclude_flagged=exclude_flagged
            )
        except RankshotError as error:
            raise RefusedError(404, "Nothing to download", f"{error}.", link=self._home) from None
        return Response(
            "".join(f"{line}\n" for line in export.lines),
            media_type="application/x-ndjson",
            headers={"content-disposition": 'attachment; filename="rankings.jsonl"'},
        )

    def _read_overview(self) -> Overview:
        return read_overview(self._study, self._database, time.time())

    def _fields(self, purpose: str) -> dict[str, str]:
        return {"form": self._identity.nonce(purpose)}

    def _require_nonce(self, form: str, purpose: str) -> None:
        if not self._identity.is_nonce(form, purpose):
            raise RefusedError(403, "Invalid form", "Please open the page again.")

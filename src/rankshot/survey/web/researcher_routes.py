"""The researcher's page: how the survey stands, and the download; behind a token."""

from __future__ import annotations

import hmac
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.responses import HTMLResponse, RedirectResponse, Response

from rankshot.core.errors import RankshotError
from rankshot.survey.progress import Overview, read_overview
from rankshot.survey.store.database import Database
from rankshot.survey.store.identity import Identity
from rankshot.survey.study import Study
from rankshot.survey.web.pages import Pages, RefusedError, describe_refusals, describe_form

COOKIE = "rankshot_researcher"
SECONDS = 12 * 3600
"""A login lasts so long."""
LEAST_CHARACTERS = 16
MOST_CHARACTERS = 500
_COOKIE = APIKeyCookie(
    name=COOKIE, scheme_name="cookie", description="What logging in sets.", auto_error=False
)
_BEARER = HTTPBearer(
    scheme_name="token",
    description="The token that the survey was started with.",
    auto_error=False,
)
FormToken = Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")]


# -------------------- survey.web.login
# Who may see the researcher's page: whoever knows the token that the survey was started with.


class Login:
    """A token, and the cookie that remembers it: an end of validity, signed.

    The signature needs the token and the survey's own key. So a cookie ends with another token,
    and somebody who guesses tokens has to ask us about each guess.

    Examples
    --------
    >>> login = Login("a-token-that-nobody-guesses", Identity(b"a key"))
    >>> cookie = login.cookie(now=1000.0)
    >>> login.accepts(cookie, now=2000.0), login.accepts(cookie, now=99_000.0)
    (True, False)
    """

    def __init__(self, token: str, identity: Identity) -> None:
        how = "as by python -c 'import secrets; print(secrets.token_hex())'"
        if not LEAST_CHARACTERS <= len(token) <= MOST_CHARACTERS:
            raise RankshotError(
                f"the researcher's token has {len(token)} characters; give at least "
                f"{LEAST_CHARACTERS} and at most {MOST_CHARACTERS}, {how}"
            )
        # Others do not come through a header as they are, and the token would never fit.
        if not (token.isascii() and token.isprintable() and token == token.strip()):
            raise RankshotError(
                "the researcher's token has characters that are not ASCII, or begins or ends with "
                f"a space; give another, {how}"
            )
        self._token = token.encode()
        self._key = identity.login_key(token)

    def knows(self, token: str) -> bool:
        """Return whether it is the token, in constant time."""
        return hmac.compare_digest(self._token, token.encode())

    def cookie(self, now: float) -> str:
        """Return what a browser keeps; it ends by itself, and with another token."""
        end = str(int(now) + SECONDS)
        return f"{end}.{self._sign(end)}"

    def accepts(self, cookie: str, now: float) -> bool:
        """Return whether a cookie is ours, and not over."""
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
        return login.knows(bearer.credentials)
    return cookie is not None and login.accepts(cookie, time.time())


def require_login(known: Annotated[bool, Depends(is_logged_in)]) -> None:
    """Refuse everybody else."""
    if not known:
        raise RefusedError(401, "Not logged in", "Please log in first.")


# -------------------- survey.web.researcher_routes
# The researcher's page: how the survey stands, and the download; behind a token.


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
        router.get("", responses=describe_refusals(), openapi_extra={"security": [{}]})(self.page)
        router.post("/login", **describe_form(401))(self.log_in)
        router.post("/logout", **describe_form(401), **locked)(self.log_out)
        router.get("/standing", responses=describe_refusals(401), **locked)(self.standing)
        router.get(
            "/rankings.jsonl",
            response_class=Response,
            responses={200: lines, **describe_refusals(401, 404)},
            **locked,
        )(self.rankings)
        return router

    def page(self, known: Annotated[bool, Depends(is_logged_in)]) -> HTMLResponse:
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
        return read_overview(self._study, self._database, time.time())

    def _fields(self, purpose: str) -> dict[str, str]:
        return {"form": self._identity.nonce(purpose)}

    def _check(self, form: str, purpose: str) -> None:
        if not self._identity.is_nonce(form, purpose):
            raise RefusedError(403, "This form is not ours", "Please open the page again.")

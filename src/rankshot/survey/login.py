"""Who may see the researcher's page: whoever knows the token that the survey was started with."""

from __future__ import annotations

import hmac
import time
from typing import Annotated

from fastapi import Cookie, Depends, Header, Request

from rankshot.ranking.errors import RankshotError
from rankshot.survey.refusal import RefusedError

COOKIE = "rankshot_researcher"
SECONDS = 12 * 3600
"""A login lasts so long."""

LEAST_CHARACTERS = 16


class Login:
    """A token, and the cookie that remembers it: an end of validity, signed with the token.

    Examples
    --------
    >>> login = Login("a-token-that-nobody-guesses")
    >>> cookie = login.cookie(now=1000.0)
    >>> login.accepts(cookie, now=2000.0), login.accepts(cookie, now=99_000.0)
    (True, False)
    """

    def __init__(self, token: str) -> None:
        if len(token) < LEAST_CHARACTERS:
            raise RankshotError(
                f"the researcher's token has {len(token)} characters; give at least "
                f"{LEAST_CHARACTERS}, as by python -c 'import secrets; print(secrets.token_hex())'"
            )
        self._token = token.encode()

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
        return hmac.digest(self._token, f"researcher\n{end}".encode(), "sha256").hex()


def logged_in(
    request: Request,
    cookie: Annotated[str, Cookie(alias=COOKIE, max_length=200)] = "",
    authorization: Annotated[str, Header(max_length=600)] = "",
) -> bool:
    """Return whether a request has the cookie, or the token as ``Authorization: Bearer``."""
    login: Login = request.app.state.login
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() == "bearer":
        return login.knows(token)
    return login.accepts(cookie, time.time())


def require_login(known: Annotated[bool, Depends(logged_in)]) -> None:
    """Refuse everybody else."""
    if not known:
        raise RefusedError(401, "Not logged in", "Please log in first.")

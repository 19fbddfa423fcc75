"""Who may see the researcher's page: whoever knows the token that the survey was started with."""

from __future__ import annotations

import hmac
import time
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from rankshot.ranking.errors import RankshotError
from rankshot.survey.store.identity import Identity
from rankshot.survey.web.refusal import RefusedError

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


def logged_in(
    request: Request,
    cookie: Annotated[str | None, Depends(_COOKIE)],
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
) -> bool:
    """Return whether a request has the cookie, or the token as ``Authorization: Bearer``."""
    login: Login = request.app.state.login
    if bearer is not None:
        return login.knows(bearer.credentials)
    return cookie is not None and login.accepts(cookie, time.time())


def require_login(known: Annotated[bool, Depends(logged_in)]) -> None:
    """Refuse everybody else."""
    if not known:
        raise RefusedError(401, "Not logged in", "Please log in first.")

"""Tokens that a server signs with a key of its own, and the secret with which a person logs in."""

from __future__ import annotations

import hmac
import secrets
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from rankshot.core.errors import RankshotError

TOKEN_DIGITS = 32
# The time at the beginning of a timed token, in milliseconds.
STAMP_DIGITS = 12
# A nonce is a random number and its token, each of half this length.
NONCE_DIGITS = 64
LEAST_SECRET = 16
MOST_SECRET = 500


class Signer:
    """Makes and verifies tokens; somebody without the key can do neither."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def _hash(self, purpose: str, *parts: object) -> bytes:
        # No part contains the separator, except perhaps the last: they are digits or numbers.
        message = "\n".join([purpose, *map(str, parts)])
        return hmac.digest(self._key, message.encode(), "sha256")

    def form_token(self, *parts: object) -> str:
        """Return the token of one form, which a page of another site cannot know."""
        return self._hash("form", *parts).hex()[:TOKEN_DIGITS]

    def is_form_token(self, token: str, *parts: object) -> bool:
        """Return whether a token is valid for a form with these parts."""
        return are_equal(self.form_token(*parts), token)

    def timed_token(self, at: float, *parts: object) -> str:
        """Return a token that says when it was made, such as that of a question's form."""
        stamp = f"{int(1000 * at):0{STAMP_DIGITS}x}"
        return stamp + self.form_token(*parts, stamp)

    def read_timed_token(self, token: str, *parts: object) -> float | None:
        """Return when a token was made; None if `timed_token` did not make it."""
        stamp, signature = token[:STAMP_DIGITS], token[STAMP_DIGITS:]
        return int(stamp, 16) / 1000 if self.is_form_token(signature, *parts, stamp) else None

    def nonce(self, purpose: str) -> str:
        """Return a new token for one copy of a form, for this purpose only."""
        fresh = secrets.token_hex((NONCE_DIGITS - TOKEN_DIGITS) // 2)
        return fresh + self.form_token(purpose, fresh)

    def is_nonce(self, nonce: str, purpose: str) -> bool:
        """Return whether `nonce` made this token, for this purpose."""
        fresh, token = nonce[:-TOKEN_DIGITS], nonce[-TOKEN_DIGITS:]
        return self.is_form_token(token, purpose, fresh)


def are_equal(expected: str, given: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(expected.encode(), given.encode())


def require_secret(secret: str) -> str:
    """Return the secret with which somebody logs in, if it is long and is sent unchanged."""
    is_sent_unchanged = secret.isascii() and secret.isprintable() and secret == secret.strip()
    n = len(secret)
    if not is_sent_unchanged or not LEAST_SECRET <= n <= MOST_SECRET:
        raise RankshotError(
            f"the token has {n} characters; give from {LEAST_SECRET} to {MOST_SECRET} ASCII "
            "characters, no space at the ends, for example from "
            "python -c 'import secrets; print(secrets.token_hex())'"
        )
    return secret


def set_cookie(
    response: Response,
    request: Request,
    name: str,
    value: str,
    *,
    max_age: int | None = None,
    path: str = "/",
    samesite: Literal["lax", "strict"],
) -> None:
    """Set a cookie that scripts cannot read, and that HTTPS keeps to itself."""
    is_https = request.scope["scheme"] == "https"
    response.set_cookie(
        name, value, max_age, path=path, secure=is_https, httponly=True, samesite=samesite
    )


# ---- Forms


def _hex_digits(n: int) -> StringConstraints:
    return StringConstraints(pattern=f"^[0-9a-f]{{{n}}}$")


FormToken = Annotated[str, _hex_digits(TOKEN_DIGITS)]
TimedToken = Annotated[str, _hex_digits(STAMP_DIGITS + TOKEN_DIGITS)]
FormNonce = Annotated[str, _hex_digits(NONCE_DIGITS)]


class SentForm(BaseModel):
    """A form that one of our pages sends: it has no other fields."""

    model_config = ConfigDict(extra="forbid")

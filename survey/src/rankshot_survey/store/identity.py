"""Names, links and tokens that are derived from the secret key of a survey."""

from __future__ import annotations

import base64
import hmac
import secrets

from rankshot.web.guards import are_equal

RATER_DIGITS = 16
LINK_DIGITS = 48
TOKEN_DIGITS = 32
# The time at the beginning of a timed token, in milliseconds.
STAMP_DIGITS = 12


class Identity:
    """Makes and verifies names, links and tokens; somebody without the key can do neither.

    A participant is stored under a keyed hash of the platform's id, and goes on with a link that
    only the server can make. A stolen table of answers identifies nobody. Somebody who also has the
    key can test a guess, but cannot read an id.
    """

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
        # The token has as many digits as the random number before it.
        fresh = secrets.token_hex(TOKEN_DIGITS // 2)
        return fresh + self.form_token(purpose, fresh)

    def is_nonce(self, nonce: str, purpose: str) -> bool:
        """Return whether `nonce` made this token, for this purpose."""
        fresh, token = nonce[:-TOKEN_DIGITS], nonce[-TOKEN_DIGITS:]
        return self.is_form_token(token, purpose, fresh)

    def rater(self, participant: str, *, pilot: bool = False) -> str:
        """Hash under which a participant is stored; in the pilot, it is another one."""
        name = f"pilot:{participant}" if pilot else participant
        return self._hash("rater", name).hex()[:RATER_DIGITS]

    def link(self, rater: str) -> str:
        """Last part of a participant's URL. Whoever has it can answer."""
        return rater + self._hash("link", rater).hex()[: LINK_DIGITS - RATER_DIGITS]

    def verify_link(self, link: str) -> str | None:
        """Rater of a link; None if the link is not valid."""
        rater = link[:RATER_DIGITS]
        return rater if are_equal(self.link(rater), link) else None

    def code(self, rater: str) -> str:
        """Completion code of a participant."""
        return base64.b32encode(self._hash("code", rater)).decode()[:10]

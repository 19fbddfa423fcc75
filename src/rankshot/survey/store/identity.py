"""Keyed hashes: participants' ids, links, form tokens and completion codes."""

from __future__ import annotations

import base64
import hmac
import secrets

RATER_DIGITS = 16
LINK_DIGITS = 48
TOKEN_DIGITS = 32
INVITATION_DIGITS = 24
STAMP_DIGITS = 12
"""The time at the beginning of an answer's token, in milliseconds."""
NONCE_DIGITS = 64
"""A nonce is a random number and its token, each of half this length."""


class Identity:
    """Names, links and tokens that are derived from a survey's secret key.

    A participant is identified by a keyed hash of the platform's id, and by a link that only the
    server can make. So participants need no cookie, and a stolen table of answers identifies
    nobody. Somebody who also has the key can test a guess, but cannot read an id.

    Examples
    --------
    >>> identity = Identity(b"a key")
    >>> rater = identity.rater("prolific:5f1e")
    >>> identity.verify_link(identity.link(rater)) == rater
    True
    >>> identity.verify_link("0" * 48) is None
    True
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def _hash(self, purpose: str, *parts: object) -> bytes:
        # No part contains the separator, except perhaps the last: they are digits or numbers.
        message = "\n".join([purpose, *map(str, parts)])
        return hmac.digest(self._key, message.encode(), "sha256")

    def rater(self, participant: str) -> str:
        """Return the hash under which a participant is stored."""
        return self._hash("rater", participant).hex()[:RATER_DIGITS]

    def link(self, rater: str) -> str:
        """Return the last part of a participant's URL. Whoever has it can answer."""
        return rater + self._hash("link", rater).hex()[: LINK_DIGITS - RATER_DIGITS]

    def verify_link(self, link: str) -> str | None:
        """Return the rater of a link; None if the link is not valid."""
        rater = link[:RATER_DIGITS]
        return rater if _are_equal(self.link(rater), link) else None

    def invitation(self, number: int) -> str:
        """Return the token of an invitation, which nobody can make for another number."""
        return f"{number}-{self._hash('invitation', number).hex()[:INVITATION_DIGITS]}"

    def verify_invitation(self, token: str) -> str | None:
        """Return the number of an invitation; None if the token is not valid."""
        number = token.partition("-")[0]
        is_number = number.isascii() and number.isdigit() and len(number) < 10
        return number if is_number and _are_equal(self.invitation(int(number)), token) else None

    def code(self, rater: str) -> str:
        """Return the completion code of a participant."""
        return base64.b32encode(self._hash("code", rater)).decode()[:10]

    def form_token(self, *parts: object) -> str:
        """Return the token of one form, which a page of another site cannot know."""
        return self._hash("form", *parts).hex()[:TOKEN_DIGITS]

    def is_form_token(self, token: str, *parts: object) -> bool:
        """Return whether a token is valid for a form with these parts."""
        return _are_equal(self.form_token(*parts), token)

    def answer_token(self, shown_at: float, *parts: object) -> str:
        """Return the token of a question's form, which says when the question was shown."""
        stamp = f"{int(1000 * shown_at):0{STAMP_DIGITS}x}"
        return stamp + self.form_token(*parts, stamp)

    def read_answer_token(self, token: str, *parts: object) -> float | None:
        """Return when the question was shown; None if `answer_token` did not make this token."""
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

    def login_key(self, token: str) -> bytes:
        """Return the key that signs a researcher's cookie; it needs the secret and the token."""
        return self._hash("login", token)


def _are_equal(expected: str, given: str) -> bool:
    """Compare two texts in constant time."""
    return hmac.compare_digest(expected.encode(), given.encode())

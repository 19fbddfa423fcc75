"""Who is who: hashed ids, links, the tokens of forms, completion codes; all keyed, none stored."""

from __future__ import annotations

import base64
import hmac
import secrets

RATER_DIGITS = 16
LINK_DIGITS = 48
NONCE_DIGITS = 32


class Identity:
    """What a survey's secret key makes of participants and forms.

    A participant is known by a keyed hash of the id that a platform gave, and by a link that
    only the server can make. So participants need no cookie, and a stolen table of answers names
    nobody; whoever has the key as well can test a guess, but not read an id.

    Examples
    --------
    >>> identity = Identity(b"a key")
    >>> rater = identity.rater("prolific:5f1e")
    >>> identity.rater_of(identity.link(rater)) == rater
    True
    >>> identity.rater_of("0" * 48) is None
    True
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def _hash(self, purpose: str, *parts: object) -> bytes:
        # Parts never hold the separator: they are digits, numbers, or the last one.
        message = "\n".join([purpose, *map(str, parts)])
        return hmac.digest(self._key, message.encode(), "sha256")

    def rater(self, participant: str) -> str:
        """Return what a participant's id is kept as."""
        return self._hash("rater", participant).hex()[:RATER_DIGITS]

    def link(self, rater: str) -> str:
        """Return the last part of a participant's own address: who has it may answer."""
        return rater + self._hash("link", rater).hex()[: LINK_DIGITS - RATER_DIGITS]

    def rater_of(self, link: str) -> str | None:
        """Return whose link it is; None if we never made it."""
        rater = link[:RATER_DIGITS]
        return rater if _are_equal(self.link(rater), link) else None

    def code(self, rater: str) -> str:
        """Return the completion code of a participant."""
        return base64.b32encode(self._hash("code", rater)).decode()[:10]

    def form_token(self, *parts: object) -> str:
        """Return a token for one form: a page of another site cannot know it."""
        return self._hash("form", *parts).hex()[:32]

    def is_form_token(self, token: str, *parts: object) -> bool:
        """Return whether a form came from us, and is for this."""
        return _are_equal(self.form_token(*parts), token)

    def nonce(self, purpose: str) -> str:
        """Return a new token for a form that nobody has filled in before, and for no other form."""
        fresh = secrets.token_hex(NONCE_DIGITS // 2)
        return fresh + self.form_token(purpose, fresh)

    def is_nonce(self, nonce: str, purpose: str) -> bool:
        """Return whether `nonce` made it for this purpose."""
        fresh, token = nonce[:NONCE_DIGITS], nonce[NONCE_DIGITS:]
        return self.is_form_token(token, purpose, fresh)

    def login_key(self, token: str) -> bytes:
        """Return what signs a researcher's cookie: nobody can make one from a guessed token."""
        return self._hash("login", token)


def _are_equal(expected: str, given: str) -> bool:
    """Compare in constant time; what is not ASCII is never the same."""
    return hmac.compare_digest(expected.encode(), given.encode())

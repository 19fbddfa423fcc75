"""Tokens that only a server with the key can make."""

import pytest
from pydantic import TypeAdapter, ValidationError

from rankshot_survey.store.identity import Identity
from rankshot_survey.web.participant_routes import FormNonce, TimedToken


def test_a_token_is_valid_for_what_it_was_made_for_alone():
    signer, other = Identity(b"a key"), Identity(b"another key")
    token, timed = signer.form_token("ann", 1), signer.timed_token(1_700_000_000.5, "ann", 1)
    nonce = signer.nonce("start")
    assert signer.is_form_token(token, "ann", 1)
    assert signer.read_timed_token(timed, "ann", 1) == 1_700_000_000.5
    assert signer.is_nonce(nonce, "start")
    assert signer.nonce("start") != nonce
    assert TypeAdapter(TimedToken).validate_python(timed) == timed
    assert TypeAdapter(FormNonce).validate_python(nonce) == nonce
    for kind, text in ((TimedToken, timed), (FormNonce, nonce)):
        for malformed in (text[:-1], text + "0", "g" + text[1:], text + "\n"):
            with pytest.raises(ValidationError):
                TypeAdapter(kind).validate_python(malformed)
    changes = (lambda text: text[:-1] + "-", lambda text: "0" + text[:-1], lambda _: "")
    for forged in (change(text) for change in changes for text in (token, timed, nonce)):
        assert not signer.is_form_token(forged, "ann", 1)
        assert signer.read_timed_token(forged, "ann", 1) is None
        assert not signer.is_nonce(forged, "start")
    for one, parts in ((other, ("ann", 1)), (signer, ("ann", 2)), (signer, ("bob", 1))):
        assert not one.is_form_token(token, *parts)
        assert one.read_timed_token(timed, *parts) is None
    assert not signer.is_nonce(nonce, "login")
    assert not other.is_nonce(nonce, "start")

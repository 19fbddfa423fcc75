"""What tests ask of an `InputError`: its fields, never its sentence."""

from contextlib import contextmanager

import pytest

from rankshot.core.errors import InputError

ANY = object()


@contextmanager
def refuses(parameter, value=ANY, where=None):
    """Expect an `InputError` about a parameter, and its value and place if they are given."""
    with pytest.raises(InputError) as caught:
        yield caught
    error = caught.value
    assert error.parameter == parameter
    assert value is ANY or error.value == value
    assert where is None or error.where == where

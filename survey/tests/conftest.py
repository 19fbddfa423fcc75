import secrets
import sys
from pathlib import Path

import numpy as np
import pytest

# What the tests of both distributions use: requests, browsers, served commands.
sys.path.append(str(Path(__file__).parents[2] / "tests"))
from asgi_client import Survey, open_survey
from postgres_server import MissingProgramsError, running_server
from small_studies import small_study


@pytest.fixture
def rng():
    return np.random.default_rng(20150701)


@pytest.fixture(scope="session")
def postgresql():
    """Return a function that makes an empty PostgreSQL database; skips where there is no server."""
    try:
        with running_server() as fresh:
            yield fresh
    except MissingProgramsError as error:
        pytest.skip(str(error))


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where answers are kept: a new file, or the URL of a new database."""
    if request.param == "sqlite":
        return tmp_path / "study.sqlite"
    return request.getfixturevalue("postgresql")()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    with open_survey(small_study(), tmp_path_factory.mktemp("survey")) as made:
        yield made


@pytest.fixture(scope="module")
def survey(made):
    """A survey for tests that store nothing."""
    return Survey(*made)


@pytest.fixture
def fresh(made):
    """The same survey with new people in it, for tests that do."""
    name = secrets.token_hex(8)
    return Survey(*made, (f"a-{name}", f"b-{name}"))

import secrets
import sys
from pathlib import Path

import numpy as np
import pytest

# It holds no doctests, and two files of this name cannot both be modules.
collect_ignore_glob = ["*conftest.py"]
# What the tests of both distributions use: requests, browsers, served commands.
sys.path.append(str(Path(__file__).parents[2] / "tests"))
from asgi_client import Survey, open_survey  # noqa: E402
from postgres_server import MissingProgramsError, running_server  # noqa: E402
from small_studies import small_study  # noqa: E402


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

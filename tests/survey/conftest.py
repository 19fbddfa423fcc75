import pytest
from postgres_server import running_server


@pytest.fixture(scope="session")
def postgresql():
    """Return a function that makes an empty PostgreSQL database; skips where there is no server."""
    with running_server() as fresh:
        yield fresh


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where answers are kept: a new file, or the URL of a new database."""
    if request.param == "sqlite":
        return tmp_path / "study.sqlite"
    return request.getfixturevalue("postgresql")()

import pytest
from distributed import Client, LocalCluster

from rankshot.jobs import score_parts


@pytest.fixture(scope="session")
def workers():
    """Two processes on this machine."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as workers:
        yield workers


@pytest.fixture(scope="module")
def client(workers):
    with Client(workers, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def default_client(workers):
    """The same, for what takes the client that Dask knows."""
    with Client(workers) as client:
        yield client


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of one batch, if there are at most 64."""
    monkeypatch.setattr(score_parts, "MIN_BATCHES", 1)
    monkeypatch.setattr(score_parts, "MIN_PARTS", 64)

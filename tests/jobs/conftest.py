import pytest
from distributed import Client, LocalCluster

from rankshot.jobs import score_parts


@pytest.fixture(scope="module")
def workers():
    """Two processes on this machine, for what kills or changes them."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0"
    ) as workers:
        yield workers


@pytest.fixture(scope="module")
def processes(workers):
    with Client(workers, set_as_default=False) as client:
        yield client


@pytest.fixture(scope="module")
def client():
    """Two workers in this process, which start at once.

    They end with their module: their threads draw random numbers, which Hypothesis forbids.
    """
    where = {"processes": False, "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, **where) as workers,
        Client(workers, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of one batch, if there are at most 64."""
    monkeypatch.setattr(score_parts, "MIN_BATCHES", 1)
    monkeypatch.setattr(score_parts, "MIN_PARTS", 64)

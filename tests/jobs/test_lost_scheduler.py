"""A scheduler that is lost: the job waits for it, goes on when it is back, or says how to."""

import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from distributed import Client

import rankshot as rs
from command_line import rankings, write_scores
from rankshot.jobs import classify, executors

pytestmark = pytest.mark.slow

N_PARTS = 12
PLACE = ["--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]


def start(name, *words):
    """Start a part of a cluster as its own process, as a user does on another machine."""
    command = [sys.executable, "-W", "ignore", "-m", f"distributed.cli.dask_{name}", *words]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, **quiet)


def end(*processes):
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
        process.wait()


class LoopbackCluster:
    """A scheduler and one worker without a nanny, all of which can be killed."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes = []

    def start(self):
        self.processes = [start("scheduler", "--port", str(self.port), *PLACE)]
        self.start_worker()

    def is_there(self):
        with socket.socket() as other:
            return other.connect_ex(("127.0.0.1", self.port)) == 0

    def start_worker(self):
        worker = start("worker", self.address, "--nthreads", "1", "--no-nanny", *PLACE)
        self.processes.append(worker)

    def kill(self):
        end(*self.processes)


@pytest.fixture
def cluster():
    cluster = LoopbackCluster()
    cluster.start()
    # A busy machine takes longer to start a scheduler than a command waits for it.
    while not cluster.is_there():
        time.sleep(0.1)
    yield cluster
    cluster.kill()


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores").mkdir()
    values = np.random.default_rng(3).normal(size=(N_PARTS, 30, 5))
    for number in range(N_PARTS):
        write_scores(tmp_path / f"scores/{number:02}.csv", values[number], ids=[])
    rs.WeightedMean().fit(rankings()).save("new.rankshot")
    return tmp_path


def test_workers_that_are_lost_are_waited_for(place, cluster, monkeypatch):
    def kill_worker(run):
        if run.n_finished == 2:
            end(cluster.processes[1])

    waits = []

    def say(message):
        # A second message comes if a result was lost with its worker.
        if message.startswith("the scheduler has no workers"):
            if not waits:
                cluster.start_worker()
            waits.append(message)

    monkeypatch.setattr(executors, "REFRESH_SECONDS", 0.5)
    where = {"scheduler": cluster.address, "notify": say}
    run = classify("scores", "new.rankshot", "later", progress=kill_worker, **where)
    assert waits
    assert run.n_rows == N_PARTS * 30


def test_a_scheduler_that_comes_back_and_one_that_does_not(place, cluster, monkeypatch):
    messages, lost = [], []

    def restart(run):
        if run.n_finished == 3 and not lost:
            lost.append(run.n_finished)
            cluster.kill()
            cluster.start()

    where = {"scheduler": cluster.address, "notify": messages.append}
    run = classify("scores", "new.rankshot", "out", progress=restart, **where)
    assert lost == [3]
    assert f"the scheduler at {cluster.address} was lost" in " ".join(messages)
    assert "the scheduler is back" in messages
    assert run.n_finished == N_PARTS
    assert run.n_rows == N_PARTS * 30
    names = [*(f"{number:02}.parquet" for number in range(N_PARTS)), "_rankshot.json"]
    assert {path.name for path in place.glob("out/*")} == {*names, "_checksums.json"}

    def kill(run):
        if run.n_finished == 2:
            cluster.kill()

    monkeypatch.setattr(executors, "PATIENCE_SECONDS", 1.0)
    with Client(cluster.address, set_as_default=False, timeout=300) as client:
        # To connect may take long; once the scheduler is killed, nothing is worth waiting for.
        client._timeout = 1
        with pytest.raises(rs.RankshotError) as error:
            classify("scores", "new.rankshot", "again", executor=client, progress=kill)
    assert f"{cluster.address}: no Dask scheduler responded" in str(error.value)
    assert f"of {N_PARTS} parts are finished, and the same command continues" in str(error.value)
    with Client(processes=False, dashboard_address="127.0.0.1:0") as client:
        run = classify("scores", "new.rankshot", "again", executor=client)
    assert run.n_resumed >= 2
    assert run.n_rows == N_PARTS * 30
    for name in names:
        assert (place / "out" / name).read_bytes() == (place / "again" / name).read_bytes()

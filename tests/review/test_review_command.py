"""``rankshot review`` in a process of its own: what it reads, and what a kill leaves."""

import json
import urllib.request
from contextlib import contextmanager
from http.client import HTTPException
from threading import Event, Thread
from urllib.parse import urljoin

import numpy as np
import pytest

from asgi import JSON
from command_line import rankshot, write_small_run
from served_command import ServedCommand


class Server(ServedCommand):
    """``rankshot review``, and what a person at a browser can ask it."""

    def __init__(self, folder, *words):
        super().__init__(["review", *map(str, words)], folder, r"Open (http://[^:]+:(\d+)/\?\S+)")

    @contextmanager
    def running(self):
        """Run while the block runs; it is killed at the end, as by a power cut."""
        self.start()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        self._opener.open(self.url).close()
        try:
            yield self
        finally:
            self.kill()

    def ask(self, path, value=None):
        body = None if value is None else json.dumps(value).encode()
        request = urllib.request.Request(
            urljoin(self.url, path), body, {"content-type": JSON} if body else {}
        )
        with self._opener.open(request, timeout=60) as reply:
            return json.loads(reply.read())


@pytest.fixture
def folder(tmp_path):
    write_small_run(tmp_path)
    return tmp_path


def write_many(folder, n=300):
    """Write the scores of n inputs, and their texts."""
    rng = np.random.default_rng(0)
    rows = [f"t{i},{','.join(f'{x:.3f}' for x in rng.normal(size=5))}" for i in range(n)]
    (folder / "many.csv").write_text("\n".join(["id,bus,fox,leopard,tiger,tram", *rows]) + "\n")
    texts = [f't{i},"a text, number {i}"' for i in range(n)]
    (folder / "texts.csv").write_text("\n".join(["id,text", *texts]) + "\n")
    words = f"recognise {folder}/many.csv --rankings {folder}/rankings.jsonl --folder {folder}/many"
    assert rankshot(words).status == 0


def test_a_kill_under_load_loses_nothing_acknowledged(folder):
    """Four people label all the time."""
    write_many(folder)
    server, acknowledged, enough = Server(folder, "many", "--inputs", "texts.csv"), {}, Event()

    def label(begin):
        for row in range(begin, 300, 4):
            name = ("cat", "dog", "truck")[row % 3]
            try:
                server.ask("api/labels", {"labels": [[row, name]]})
            except (OSError, HTTPException):
                # It may or may not be on disk: nobody said so.
                return
            acknowledged[row] = name
            if row > 10:
                enough.set()

    with server.running():
        found = server.ask("api/rows?text=number%2017")["rows"]
        assert {row["text"] for row in found} == {
            f"a text, number {i}" for i in (17, *range(170, 180))
        }
        assert "300 inputs, 0 labels so far; kept in many/review" in server.said
        threads = [Thread(target=label, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        enough.wait()
        server.kill()
        for thread in threads:
            thread.join()
    with server.running():
        # The results are there from the beginning, and `--examples` takes the labels.
        head, *lines = (folder / "many" / "review" / "labels.csv").read_text().split()
        labels = {int(line[1:].split(",")[0]): line.split(",")[1] for line in lines}
        assert head == "id,label"
        assert acknowledged
        assert {row: labels.get(row) for row in acknowledged} == acknowledged
        assert f" {server.ask('api/state')['n_labelled']} labels so far" in server.said
        assert "in use by another process" in rankshot(f"review {folder}/many").err


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("review run --host 0.0.0.0", "--host"),
        ("review empty", "empty"),
        ("review run --inputs empty", "empty"),
        ("review run --port 70000", "--port"),
        ("review run --csv rankings.jsonl", "rankings.jsonl"),
    ],
)
def test_what_cannot_be_reviewed(folder, monkeypatch, words, named):
    monkeypatch.chdir(folder)
    (folder / "empty").mkdir()
    assert rankshot("recognise scores.csv --rankings rankings.jsonl --folder run").status == 0
    done = rankshot(words)
    assert done.status == 2
    assert named in done.err

"""Runs the command in this process, and writes small files for it to work on."""

import csv
import io
import json
import shlex
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

import rankshot as rs
from rankshot import jobs
from rankshot.cli import main
from rankshot.zeroshot.tables import write_score_table

SEEN = ["bus", "fox", "leopard", "tiger", "tram"]
TARGETS = ["cat", "dog", "truck"]
IDS = ["x1", "x2", "x3", "x4", "x5", "x6", "x7"]
TRUTH = ["cat", "dog", "truck", "truck", "cat", "dog", "cat"]
LOGITS = np.array(
    [
        [-1.0, 1.5, 3.0, 2.5, -2.0],
        [-0.5, 2.5, 0.5, 1.0, -1.0],
        [3.0, -1.0, 0.0, -0.5, 2.0],
        [1.0, 0.0, -1.0, -0.5, 2.5],
        [0.0, 1.0, 1.2, 1.1, -0.2],
        [2.0, 0.5, 0.0, 0.2, 1.5],
        [0.3, 0.2, 0.1, 0.25, 0.15],
    ]
)
USUAL = np.random.default_rng(7).normal(size=(40, 5)) * [0.5, 2, 1, 1.5, 1] + [4, -1, 0, 0.5, 3]
"""A reference: scores of inputs of seen classes, where bus and tram are high for all inputs."""

RANKINGS = """\
{"target": "cat", "ranking": ["leopard", "tiger", "fox"], "source": "zoo", "rater": "ann"}
{"target": "cat", "ranking": ["tiger", "leopard", "fox"], "source": "zoo", "rater": "bob"}
{"target": "cat", "ranking": ["leopard", ["tiger", "fox"]], "source": "web", "rater": "eve"}
{"target": "dog", "ranking": ["fox", "tiger", "leopard"], "source": "zoo", "rater": "ann"}
{"target": "dog", "ranking": ["fox", "leopard", "bus"], "source": "zoo", "rater": "bob"}
{"target": "truck", "ranking": ["bus", "tram", "fox"], "source": "zoo", "rater": "ann"}
{"target": "truck", "ranking": ["tram", "bus", "tiger"], "source": "zoo", "rater": "bob"}
"""
SIMILARITY = """\
target,bus,fox,leopard,tiger,tram
truck,.9,.1,.1,.15,.8
cat,.1,.5,.9,.8,.05
dog,.15,.8,.5,.45,.1
"""


class Done(NamedTuple):
    """The exit status and the output of a run of the command."""

    status: int
    out: str
    err: str


def rankshot(words, typed="", main=main):
    """Run the command, or another, in this process: a new process takes seconds to start."""
    out, err = io.StringIO(), io.StringIO()
    words = shlex.split(words) if isinstance(words, str) else list(map(str, words))
    before = signal.getsignal(signal.SIGTERM)
    try:
        with (
            patch.object(sys, "argv", ["rankshot", *words]),
            patch.object(sys, "stdin", io.StringIO(typed)),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            main()
        status = 0
    except SystemExit as end:
        status = end.code or 0
    finally:
        signal.signal(signal.SIGTERM, before)
    return Done(status, out.getvalue(), err.getvalue())


def stop_after(n, monkeypatch, error):
    """End jobs of this process with an error after n parts."""
    run_part, done = jobs._run_part, []

    def run_some(*call):
        if len(done) == n:
            raise error
        done.append(call)
        return run_part(*call)

    monkeypatch.setattr(jobs, "_run_part", run_some)


def write_scores(path, values, items=SEEN, ids=IDS):
    """Write a table of scores as CSV or Parquet, by the ending."""
    if path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream)
            writer.writerow([*(["id"] if ids else []), *items])
            writer.writerows([*ids[i : i + 1], *row] for i, row in enumerate(values.tolist()))
    else:
        import pyarrow as pa
        from pyarrow import parquet

        columns = [*([pa.array(ids)] if ids else []), *map(pa.array, values.T)]
        names = [*(["id"] if ids else []), *items]
        parquet.write_table(pa.Table.from_arrays(columns, names=names), path)


def read_scores(path):
    """Return the ids and the values of a table of scores, its items and its kind."""
    ids, values, kinds = [], [], set()
    for some, scores in rs.zeroshot.open_scores(path).batches():
        ids += some.tolist()
        values.append(scores.values)
        kinds.add((scores.items, scores.kind))
    (kind,) = kinds
    return ids, np.concatenate(values), *kind


def write_small_run(folder):
    """Write scores, rankings and the true classes of seven inputs.

    The files ``usual*`` are references: the scores of forty inputs of seen classes.
    """
    write_scores(folder / "scores.csv", LOGITS)
    write_scores(folder / "scores.parquet", LOGITS)
    first, second = np.triu_indices(5, 1)
    pairs = rs.Scores(LOGITS[:, first] - LOGITS[:, second], SEEN, "one-vs-one")
    write_score_table(folder / "pairs.parquet", SEEN, [(IDS, pairs)], "one-vs-one")
    write_scores(folder / "usual.csv", USUAL, ids=[])
    write_scores(folder / "usual.parquet", USUAL[:, ::-1], SEEN[::-1], ids=[])
    (folder / "rankings.jsonl").write_text(RANKINGS, encoding="utf-8")
    rows = "".join(f"{name},{label}\n" for name, label in zip(IDS, TRUTH, strict=True))
    (folder / "truth.csv").write_text(f"id,label\n{rows}", encoding="utf-8")


def rankings():
    """Return the rankings that are in rankings.jsonl."""
    lines = [json.loads(line) for line in RANKINGS.splitlines()]
    return rs.Rankings.from_orders(
        [line["ranking"] for line in lines],
        items=SEEN,
        targets=[line["target"] for line in lines],
        sources=[line["source"] for line in lines],
        raters=[line.get("rater") for line in lines],
    )


def softmax(values):
    powers = np.exp(values)
    return powers / powers.sum(axis=1, keepdims=True)


def read_csv(path):
    """Return the rows of a CSV file, each by the names of the columns."""
    with Path(path).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def table_rows(text):
    """Return the cells of a printed table, rows of several lines joined, by the first cell."""
    rows = {}
    name = None
    for line in text.splitlines():
        if line.startswith("│"):
            cells = [cell.strip() for cell in line.split("│")[1:-1]]
            name = cells[0] or name
            old = rows.get(name, [""] * len(cells))
            rows[name] = [" ".join(both).strip() for both in zip(old, cells, strict=True)]
    return rows


def run_well(words):
    """Run a command that must succeed and warn of nothing; return what it prints."""
    done = rankshot(words)
    assert (done.status, done.err) == (0, "")
    return done.out

"""Jobs over many files: every row once whatever interrupts them, or an error about the part."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

import rankshot as rs
from command_line import (
    LOGITS,
    SEEN,
    rankings,
    rankshot,
    run_well,
    softmax,
    stop_after,
    write_scores,
)
from rankshot.jobs import classify, list_parts

PARTS = ["a.parquet", "b.csv", "deep/a.parquet", "deep/er/c.parquet", "z.csv"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a dataset of scores, some parts without ids, and two heads."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for number, name in enumerate(PARTS):
        path = tmp_path / "scores" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_scores(path, 2 * rng.normal(size=(40 + number, 5)), ids=[])
    rs.WeightedMean().fit(rankings()).save("new.rankshot")
    rs.WeightedMean().fit(rankings()[:5]).save("other.rankshot")
    return tmp_path


def list_outputs(folder="out"):
    """The files of an output folder by name, with all that is hidden."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def outputs_of(names):
    return {name.rpartition(".")[0] + ".parquet" for name in names}


def read_rows(folder="out"):
    """All rows of an output folder: a dictionary of probabilities by id."""
    table = parquet.read_table(folder).to_pydict()
    ids = table.pop("id")
    assert len(set(ids)) == len(ids)
    return dict(zip(ids, zip(*table.values(), strict=True), strict=True))


SPAWN = get_context("spawn")


@pytest.mark.parametrize(
    "start",
    [
        lambda: None,
        lambda: ThreadPoolExecutor(2),
        pytest.param(lambda: ProcessPoolExecutor(2, SPAWN), marks=pytest.mark.slow),
    ],
)
def test_the_predictions_are_those_of_one_table(place, start):
    if (executor := start()) is None:
        run = classify("scores", "new.rankshot", "out", reject_below=0.4)
    else:
        with executor:
            run = classify("scores", "new.rankshot", "out", reject_below=0.4, executor=executor)
    assert list_outputs().keys() == outputs_of(PARTS)
    values = {
        name: rs.zeroshot.open_scores(place / "scores" / name).read().scores.values
        for name in PARTS
    }
    ids = [f"{name.rpartition('.')[0]}:{i}" for name in PARTS for i in range(len(values[name]))]
    write_scores(place / "all.parquet", np.concatenate(list(values.values())), ids=ids)
    run_well("classify all.parquet --head new.rankshot -o all-out.parquet --reject-below 0.4")
    assert read_rows() == read_rows("all-out.parquet")
    labels = parquet.read_table("all-out.parquet")["label"].to_pylist()
    assert run.n_rows == len(ids)
    assert run.counts == {label: labels.count(label) for label in set(labels)}
    assert "rejected" in run.counts
    assert (run.n_done, run.n_kept, run.failed) == (5, 0, [])


@pytest.mark.slow
def test_a_cluster(place):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        run = classify("scores", "new.rankshot", "out", executor=client.get_executor())
    classify("scores", "new.rankshot", "alone")
    assert run.n_done == 5
    assert list_outputs() == list_outputs("alone")


def test_the_score_type_is_that_of_the_first_part(place):
    proba = softmax(LOGITS)
    (place / "mixed").mkdir()
    for name, values in (("1", proba), ("2", LOGITS), ("3", proba)):
        write_scores(place / f"mixed/{name}.csv", values)
    run = classify("mixed", "new.rankshot", "out", on_error="skip")
    assert run.n_done == 2
    assert [name for name, _ in run.failed] == ["2"]


# -------------------------------------------------------------------- a second start


def test_a_second_start_does_what_is_missing_or_has_changed(place):
    classify("scores", "new.rankshot", "out")
    before = list_outputs()
    (place / "out/a.parquet").unlink()
    kept = place / "out/b.parquet"
    written = kept.stat().st_mtime_ns
    # The output of another part.
    (place / "out/z.parquet").write_bytes(kept.read_bytes())
    # What a process that was killed has left.
    (place / "out/deep/.a.parquet.rankshot-0123abcd.parquet").write_bytes(b"half")
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.n_kept) == (2, 3)
    assert list_outputs() == before
    assert run.n_rows == run.counts.total() == len(read_rows())
    assert kept.stat().st_mtime_ns == written
    write_scores(place / "scores/new.csv", LOGITS)
    write_scores(place / "scores/b.csv", LOGITS[:3])
    (place / "scores/z.csv").unlink()
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.n_kept) == (2, 3)
    assert list_outputs().keys() == outputs_of([*PARTS[:-1], "new.csv"])
    assert len(rs.zeroshot.read_predictions("out/b.parquet").ids) == 3


def test_the_output_of_another_job_is_replaced_only_if_asked(place):
    classify("scores", "new.rankshot", "out")
    before = list_outputs()
    for head, options in (("new.rankshot", {"reject_below": 0.5}), ("other.rankshot", {})):
        with pytest.raises(rs.RankshotError):
            classify("scores", head, "out", **options)
    assert list_outputs() == before
    classify("scores", "other.rankshot", "out", overwrite=True)
    classify("scores", "other.rankshot", "fresh")
    assert list_outputs() == list_outputs("fresh") != before


@pytest.mark.parametrize("name", ["notes.txt", "mine.parquet"])
def test_files_that_no_job_has_written_are_not_touched(place, name):
    (place / "out").mkdir()
    write_scores(place / "mine.parquet", LOGITS)
    (place / "notes.txt").write_text("mine")
    content = (place / name).rename(place / "out" / name).read_bytes()
    with pytest.raises(rs.RankshotError):
        classify("scores", "new.rankshot", "out", overwrite=True)
    assert list_outputs() == {name: content}


def test_ctrl_c_keeps_what_is_finished(place, monkeypatch):
    with monkeypatch.context() as patched:
        stop_after(2, patched, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            classify("scores", "new.rankshot", "out")
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_kept, run.n_done) == (2, 3)
    assert len(read_rows()) == run.n_rows


# -------------------------------------------------------------------- what goes wrong


def test_a_bad_part_is_named_and_the_rest_can_be_done(place):
    part = place / "scores/deep/a.parquet"
    part.write_bytes(part.read_bytes()[:-50])
    write_scores(place / "scores/animals.csv", LOGITS[:, 1:4], SEEN[1:4])
    with (place / "scores/z.csv").open("a") as stream:
        stream.write("1,2,3,4,nan\n")
    with pytest.raises(rs.RankshotError):
        classify("scores", "new.rankshot", "out")
    run = classify("scores", "new.rankshot", "out", on_error="skip")
    assert run.n_done + run.n_kept == 3
    assert [name for name, _ in run.failed] == ["animals", "deep/a", "z"]
    assert [
        place_ in reason
        for place_, (_, reason) in zip(
            ["animals.csv", "deep/a.parquet", "z.csv:46"], run.failed, strict=True
        )
    ] == [True] * 3
    done = rankshot("classify scores --head new.rankshot -o out --on-error skip")
    assert done.status == 1


def test_a_dataset_is_refused_before_anything_is_written(place):
    write_scores(place / "scores/a.csv", LOGITS)
    for dataset, output in [
        ("scores", "out"),
        ("nothing", "out"),
        ("scores/deep", "scores/deep/out"),
        ("scores/deep", "scores/deep"),
        ("scores/deep", "scores"),
        ("scores/deep", "out.csv"),
    ]:
        with pytest.raises(rs.RankshotError):
            classify(dataset, "new.rankshot", output)
    assert not (place / "out").exists()


def test_parts_that_would_be_left_out_are_refused(place):
    (place / "scores/_notes").mkdir()
    write_scores(place / "scores/_notes/x.csv", LOGITS)
    assert [part.name for part in list_parts("scores")] == sorted(
        name.rpartition(".")[0] for name in PARTS
    )
    for name in ("c.CSV", "c.csv.gz"):
        (place / "scores" / name).touch()
        with pytest.raises(rs.RankshotError, match=name):
            list_parts("scores")
        (place / "scores" / name).unlink()


SLOWLY = """
import sys, time
import rankshot.jobs as jobs
from slow_task import write
if __name__ == "__main__":
    parts = jobs.list_parts("many")
    jobs.map_files(write, parts, "out", {}, workers=2)
"""
TASK = """
import time
import pyarrow as pa, pyarrow.parquet as pq
def write(source, target, metadata):
    rows = source.read_text().split()[1:]
    with pq.ParquetWriter(target, pa.schema([("x", "string")], metadata=metadata)) as writer:
        for row in rows:
            time.sleep(0.001)
            writer.write_table(pa.table({"x": [row]}, schema=writer.schema))
"""


@pytest.mark.slow
def test_all_rows_are_there_after_ten_kills(tmp_path):
    (tmp_path / "many").mkdir()
    for i in range(60):
        rows = [f"{i}-{j}" for j in range(20)]
        (tmp_path / f"many/{i}.csv").write_text("\n".join(["x", *rows]))
    (tmp_path / "slow_task.py").write_text(TASK)
    (tmp_path / "slowly.py").write_text(SLOWLY)
    start = [sys.executable, "slowly.py"]
    kills = 0
    while kills < 10:
        before = len(list(tmp_path.glob("out/*.parquet")))
        process = subprocess.Popen(start, cwd=tmp_path, stderr=subprocess.DEVNULL)
        while process.poll() is None and len(list(tmp_path.glob("out/*.parquet"))) < before + 3:
            time.sleep(0.005)
        assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
    subprocess.run(start, cwd=tmp_path, check=True, stderr=subprocess.DEVNULL)
    rows = sorted(parquet.read_table(tmp_path / "out")["x"].to_pylist())
    assert rows == sorted(f"{i}-{j}" for i in range(60) for j in range(20))
    assert [path.name for path in (tmp_path / "out").glob(".*")] == []

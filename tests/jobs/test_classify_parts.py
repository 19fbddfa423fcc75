"""Datasets of many parts on a local cluster of two processes: every row once, or a named error."""

import csv
import json
import os
import shutil
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from socket import gethostname
from time import sleep

import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.comm import CommClosedError
from faults import DeadlyJob, die_once, heal, limit_file_size
from pyarrow import parquet

import rankshot as rs
from command_line import LOGITS, SEEN, rankings, rankshot, run_well, softmax, write_scores
from rankshot.cli import console
from rankshot.jobs import classify, executors, storage
from rankshot.jobs.classify_parts import _ClassifyJob
from rankshot.jobs.executors import Rules, Workers, run_parts
from rankshot.jobs.storage import list_parts
from rankshot.recognition import scoring
from rankshot.zeroshot import read_predictions

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
    rs.ProbabilisticRanking(k=2).fit(rankings()).save("other.rankshot")
    return tmp_path


def list_outputs(folder="out"):
    """The files of an output folder by name, with all that is hidden."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and path.name != "_checksums.json"
    }


def read_rows(folder="out"):
    """All rows of an output folder: a dictionary of probabilities by id."""
    table = parquet.read_table(folder).to_pydict()
    ids = table.pop("id")
    assert len(set(ids)) == len(ids)
    rows = zip(*(table[name] for name in table), strict=True)
    return dict(zip(ids, rows, strict=True))


def outputs_of(names):
    return {name.rpartition(".")[0] + ".parquet" for name in names} | {"_rankshot.json"}


# -------------------------------------------------------------------- the answers


def choose_workers(where, client, stack):
    """Return the options that let the parts be done there."""
    if where == "threads":
        return {"executor": stack.enter_context(ThreadPoolExecutor(2))}
    if where == "processes":
        spawn = get_context("spawn")
        return {"executor": stack.enter_context(ProcessPoolExecutor(2, mp_context=spawn))}
    return {"here": {}, "local": {"workers": 2}, "dask": {"executor": client}}[where]


SLOW = [pytest.param(where, marks=pytest.mark.slow) for where in ("processes", "local")]


@pytest.mark.parametrize("where", ["here", "threads", "dask", *SLOW])
def test_the_answers_are_those_of_one_table(place, client, where):
    with ExitStack() as stack:
        options = choose_workers(where, client, stack)
        run = classify("scores", "new.rankshot", "out", reject_below=0.4, **options)
    assert list_outputs().keys() == outputs_of(PARTS)
    tables = {name: rs.zeroshot.open_scores(place / "scores" / name).batches() for name in PARTS}
    values = {name: np.concatenate([batch.values for _, batch in tables[name]]) for name in PARTS}
    ids = [f"{name.rpartition('.')[0]}:{i}" for name in PARTS for i in range(len(values[name]))]
    write_scores(place / "all.parquet", np.concatenate(list(values.values())), ids=ids)
    run_well("classify all.parquet --head new.rankshot -o all-out.parquet --reject-below 0.4")
    one = parquet.read_table("all-out.parquet").to_pydict()
    rows = zip(*(one[name] for name in one if name != "id"), strict=True)
    assert read_rows() == dict(zip(one["id"], rows, strict=True))
    assert run.n_rows == len(ids)
    assert run.counts == {label: one["label"].count(label) for label in set(one["label"])}
    assert "rejected" in run.counts
    assert (run.n_done, run.n_resumed, run.failed) == (5, 0, [])


def test_the_score_type_is_that_of_the_first_part(place):
    proba = softmax(LOGITS)
    write_scores(place / "mixed-1.csv", proba)
    write_scores(place / "mixed-2.csv", LOGITS)
    write_scores(place / "mixed-3.csv", proba)
    run = classify("mixed-*.csv", "new.rankshot", "out")
    assert run.n_done == 2
    [(name, reason)] = run.failed
    assert name == "mixed-2.csv"
    assert "the scores look like logits, and those of the dataset are interpreted as prob" in reason


# -------------------------------------------------------------------- a second start


def test_a_second_start_does_what_is_missing(place):
    classify("scores", "new.rankshot", "out")
    before = list_outputs()
    written = {path: path.stat().st_mtime_ns for path in place.glob("out/**/*.parquet")}
    (place / "out/a.parquet").unlink()
    damaged = place / "out/deep/a.parquet"
    damaged.write_bytes(damaged.read_bytes()[:-100])
    # The output of another part, or of an older version, is complete, and still not trusted.
    shutil.copy("out/b.parquet", "out/z.parquet")
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.n_resumed) == (3, 2)
    assert list_outputs() == before
    assert run.n_rows == run.counts.total() == len(read_rows())
    kept = place / "out/b.parquet"
    assert kept.stat().st_mtime_ns == written[kept]


def test_parts_may_be_added_but_not_changed(place):
    classify("scores", "new.rankshot", "out")
    write_scores(place / "scores/new.csv", LOGITS)
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.n_resumed) == (1, 5)
    before = list_outputs()
    write_scores(place / "scores/new.csv", LOGITS[:3])
    (place / "scores/z.csv").unlink()
    message = r"'new.parquet' changed and 'z.parquet' vanished; update"
    with pytest.raises(rs.RankshotError, match=message):
        classify("scores", "new.rankshot", "out")
    assert list_outputs() == before
    run = classify("scores", "new.rankshot", "out", update=True)
    assert (run.n_done, run.n_resumed) == (1, 4)
    assert list_outputs().keys() == outputs_of([*PARTS[:-1], "new.csv"])
    assert len(read_predictions("out/new.parquet")) == 3
    run = classify("scores", "new.rankshot", "out", again=True)
    assert (run.n_done, run.n_resumed) == (5, 0)


def flip_byte(path, *, at=100, keep_time=False):
    """Change one byte in the middle of a file, as a bad disk does if it keeps the time."""
    status, content = path.stat(), bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    if keep_time:
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize("at", [100, -20], ids=["page", "footer"])
def test_a_flipped_byte_in_an_output_is_found(place, at):
    classify("scores", "new.rankshot", "out")
    before = list_outputs()
    flip_byte(place / "out/a.parquet", at=at)
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.n_resumed) == (1, 4)
    assert list_outputs() == before
    flip_byte(place / "out/deep/a.parquet", at=at, keep_time=True)
    run = classify("scores", "new.rankshot", "out", verify=True)
    assert (run.n_done, run.n_resumed) == (1, 4)
    assert list_outputs() == before
    # A client that was killed has kept no checksums.
    (place / "out/_checksums.json").unlink()
    flip_byte(place / "out/a.parquet", keep_time=True)
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.n_resumed) == (1, 4)
    assert list_outputs() == before


def test_times_of_change_alone_change_nothing(place):
    classify("scores", "new.rankshot", "out")
    before = list_outputs()
    for name in PARTS:
        os.utime(place / "scores" / name, ns=(1, 1))
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.n_resumed) == (0, 5)
    classify("scores", "new.rankshot", "later")
    assert list_outputs("later") == list_outputs()
    del before["_rankshot.json"]
    assert before.items() <= list_outputs().items()
    # An input that is another one at the same time and size is found if all is read again.
    path = place / "scores/z.csv"
    path.write_bytes(path.read_bytes().replace(b"-", b"+", 1))
    os.utime(path, ns=(1, 1))
    assert classify("scores", "new.rankshot", "out").n_done == 0
    assert classify("scores", "new.rankshot", "out", verify=True).n_done == 1


def test_ids_in_more_than_one_part_are_counted(place, monkeypatch):
    for name, first in (("x.csv", 0), ("y.csv", 7)):
        ids = [f"é{i}" for i in range(first, first + 12)]
        write_scores(
            place / "scores" / name, np.random.default_rng(0).normal(size=(12, 5)), ids=ids
        )
    assert classify("scores", "new.rankshot", "out").n_repeated_ids == 5
    out = run_well("classify scores --head new.rankshot -o out --workers 1")
    assert "ids: 5 rows have the same id as another row\n" in out
    counter = storage.RepeatedIds()
    monkeypatch.setattr(storage, "MOST_IDS", 1000)
    hashes = np.random.default_rng(0).integers(2**64 - 1, size=20_000, dtype=np.uint64)
    for some in np.split(np.append(hashes, hashes[:10_000]), 30):
        counter.add(some.tobytes())
    assert counter.count() == pytest.approx(10_000, rel=0.2)


def test_another_job_is_refused(place, monkeypatch):
    classify("scores", "new.rankshot", "out")
    before = list_outputs()
    with pytest.raises(
        rs.RankshotError, match=r"\(reject below was None, is now 0.5\); give another"
    ):
        classify("scores", "new.rankshot", "out", reject_below=0.5)
    # Before workers start.
    monkeypatch.delattr(executors, "open_client")
    with pytest.raises(rs.RankshotError, match=r"out: belongs to another job \(another head\)"):
        classify("scores", "other.rankshot", "out", workers=2)
    assert list_outputs() == before
    classify("scores", "other.rankshot", "out", again=True)
    classify("scores", "other.rankshot", "fresh")
    assert list_outputs() == list_outputs("fresh")


# -------------------------------------------------------------------- what goes wrong


def test_a_bad_part_names_itself_and_the_rest_is_done(place):
    part = place / "scores/deep/a.parquet"
    whole = part.read_bytes()
    part.write_bytes(whole[:-50])
    write_scores(place / "scores/animals.csv", LOGITS[:, 1:4], SEEN[1:4])
    with (place / "scores/z.csv").open("a") as stream:
        stream.write("1,2,3,4,nan\n")
    run = classify("scores", "new.rankshot", "out")
    assert run.n_done == 3
    assert sorted(name for name, _ in run.failed) == ["animals.csv", "deep/a.parquet", "z.csv"]
    reasons = dict(run.failed)
    assert f"{part}: not a complete Parquet file" in reasons["deep/a.parquet"]
    assert "it has no column 'bus', 'tram'" in reasons["animals.csv"]
    assert f"{place}/scores/z.csv:46: 'tram' is nan; scores must be finite" in reasons["z.csv"]
    assert list_outputs().keys() == outputs_of(["a.x", "b.x", "deep/er/c.x"]) | {"_failed.csv"}
    with (place / "out/_failed.csv").open(newline="") as stream:
        assert list(csv.reader(stream)) == [["part", "reason"], *map(list, run.failed)]
    with pytest.raises(rs.RankshotError, match="of 6 parts are finished, and the same command"):
        classify("scores", "new.rankshot", "out", on_error="stop")
    (place / "scores/animals.csv").unlink()
    write_scores(place / "scores/z.csv", LOGITS)
    part.write_bytes(whole)
    # Nothing is lost by doing a part that had no output: nobody is asked.
    run = classify("scores", "new.rankshot", "out")
    assert (run.n_done, run.failed) == (2, [])
    assert list_outputs().keys() == outputs_of(PARTS)


def test_half_an_output_does_not_stay_for_a_bad_part(place):
    classify("scores", "new.rankshot", "out")
    half = place / "out/z.parquet"
    half.write_bytes(half.read_bytes()[:-10])
    part = place / "scores/z.csv"
    status = part.stat()
    part.write_bytes(part.read_bytes().replace(b".", b"x"))
    os.utime(part, ns=(status.st_atime_ns, status.st_mtime_ns))
    run = classify("scores", "new.rankshot", "out")
    assert [name for name, _ in run.failed] == ["z.csv"]
    assert not half.exists()


def test_a_part_that_changes_while_it_is_read_has_no_output(place):
    parts = [replace(part, version="older") for part in list_parts("scores/*.csv")]
    job = _ClassifyJob("head", "new.rankshot", "logits", True, None, None)
    content = Path("new.rankshot").read_bytes()
    run = run_parts(job, content, parts, str(place / "out"), Workers(), Rules())
    reason = f"{place}/scores/b.csv: was changed while it was being read"
    assert run.failed[0] == ("b.csv", reason)
    assert list_outputs().keys() == {"_failed.csv", "_rankshot.json"}


def test_ctrl_c_keeps_what_is_finished(place, client):
    def interrupt(run):
        if run.n_finished == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        classify("scores", "new.rankshot", "out", executor=client, progress=interrupt)
    run = classify("scores", "new.rankshot", "out", executor=client)
    assert run.n_resumed >= 2
    assert list_outputs().keys() == outputs_of(PARTS)
    assert len(read_rows()) == run.n_rows


@pytest.mark.slow
def test_a_worker_is_killed_in_the_middle(place, processes):
    classify("scores", "new.rankshot", "undisturbed", executor=processes)
    processes.run(die_once, str(place / "died"))
    run = classify("scores", "new.rankshot", "out", executor=processes)
    processes.run(heal)
    assert (place / "died").exists()
    assert (run.n_done, run.failed) == (5, [])
    assert list_outputs() == list_outputs("undisturbed")


def test_parts_that_cannot_be_submitted_are_not_forgotten(place, client, monkeypatch):
    submit, failures = Client.map, []

    def fail_once(self, *arguments, **options):
        if not failures:
            failures.append(CommClosedError("the connection broke"))
            raise failures[0]
        return submit(self, *arguments, **options)

    monkeypatch.setattr(Client, "map", fail_once)
    messages = []
    run = classify("scores", "new.rankshot", "out", executor=client, notify=messages.append)
    assert failures
    assert "was lost (CommClosedError): waiting 60 s for it" in messages[1]
    assert (run.n_done, run.failed) == (5, [])
    assert list_outputs().keys() == outputs_of(PARTS)


def test_another_job_in_the_same_folder_ends_this_one(place, client):
    """Whatever a task of the first job still writes, the second one finds no part of it."""

    def intrude(run):
        if run.n_finished == 1:
            classify("scores", "other.rankshot", "out", executor=client, again=True)

    with pytest.raises(rs.RankshotError, match="out: another job has started there since") as error:
        classify("scores", "new.rankshot", "out", executor=client, progress=intrude)
    # The same command would be refused.
    assert "continues" not in str(error.value)
    classify("scores", "other.rankshot", "fresh", executor=client)
    assert list_outputs() == list_outputs("fresh")


def test_a_second_client_says_that_there_is_another(place):
    classify("scores", "new.rankshot", "out")
    before, note = list_outputs(), place / "out/_running.json"
    here = gethostname()
    for found, is_said in {
        (here, os.getppid()): True,
        ("elsewhere", 5): True,
        (here, 2**30): False,
        (here, os.getpid()): False,
    }.items():
        note.write_text(json.dumps(found))
        said, notes = [], []

        def look(_, notes=notes):
            notes.append(json.loads(note.read_text()))

        classify("scores", "new.rankshot", "out", progress=look, notify=said.append)
        assert (
            any("is running the same job, unless it was killed" in text for text in said) == is_said
        )
        assert notes == [[here, os.getpid()]] * 5
        assert list_outputs() == before


def test_a_worker_that_sees_another_disk_ends_the_job(place, client, monkeypatch):
    """It came after the workers were looked at."""
    monkeypatch.setattr(executors, "require_workers", lambda *_: None)
    write = executors.open_output

    @contextmanager
    def hide(*arguments):
        with write(*arguments):
            (place / "out/_rankshot.json").unlink()
            yield

    monkeypatch.setattr(executors, "open_output", hide)
    with pytest.raises(rs.RankshotError, match=r"a worker does not see _rankshot.json there"):
        classify("scores", "new.rankshot", "out", executor=client)


def test_an_output_that_is_not_there_at_the_end_is_missed(place):
    def remove(run):
        if run.n_finished == 5:
            (place / "out/z.parquet").unlink()

    with pytest.raises(rs.RankshotError, match=r"out: 'z.parquet' is missing, although"):
        classify("scores", "new.rankshot", "out", progress=remove)


def test_the_failure_of_one_client_does_not_remove_what_another_has_done(place):
    """Both do the same job, and the disk of one fails."""
    classify("scores", "new.rankshot", "out")
    given = json.loads((place / "out/_rankshot.json").read_text())["job"]
    job = _ClassifyJob(given["head"], "new.rankshot", given["score type"], False, None, None)
    parts, out = list_parts("scores"), str(place / "out")
    run = executors._Run(job, b"", parts, out, None, Rules())
    run.state.failed = [(part.name, "the disk failed") for part in parts]
    run.remove_failed()
    assert list_outputs().keys() == outputs_of(PARTS)


@pytest.mark.slow
def test_a_disk_that_fills_ends_the_job(place, processes):
    classify("scores", "new.rankshot", "undisturbed", executor=processes)
    largest = place / "scores/m.parquet"
    write_scores(largest, np.random.default_rng(0).normal(size=(5000, 5)), ids=[])
    processes.run(limit_file_size, 50_000)
    try:
        with pytest.raises(rs.RankshotError) as error:
            classify("scores", "new.rankshot", "out", executor=processes)
    finally:
        processes.run(limit_file_size, None)
    assert f"{place}/out/m.parquet: cannot be written: File too large; " in str(error.value)
    assert "of 6 parts are finished, and the same command continues" in str(error.value)
    # What other workers had in hand they finish, or remove.
    while any(place.glob("out/**/.*")):
        sleep(0.05)
    kept = list_outputs()
    del kept["_rankshot.json"]
    assert kept.items() <= list_outputs("undisturbed").items()
    run = classify("scores", "new.rankshot", "out", executor=processes)
    assert run.n_resumed + run.n_done == 6
    assert list_outputs().keys() == outputs_of([*PARTS, "m.parquet"])
    assert len(read_rows()) == run.n_rows


@pytest.mark.slow
def test_parts_that_kill_workers_and_stores_that_fail(place, processes, monkeypatch):
    # Dask gives a task up that kills four workers: that takes long.
    monkeypatch.setattr(processes.cluster.scheduler, "allowed_failures", 0)
    for name in ("deadly", "flaky", "good", "odd"):
        (place / f"p/{name}.csv").parent.mkdir(exist_ok=True)
        (place / f"p/{name}.csv").write_text(name)
    log = place / "log"
    job, out = DeadlyJob(str(log)), str(place / "out")
    run = run_parts(job, b"", list_parts("p"), out, Workers(processes), Rules())
    # A result that is lost with its worker is found in the folder, as one of an earlier run.
    assert run.n_finished == 2
    assert dict(run.failed) == {
        "deadly.csv": "1 worker died while processing this part alone; does it fit into their "
        "memory?",
        "odd.csv": "ZeroDivisionError: never met before",
    }
    assert log.read_text().count("flaky\n") >= 3
    assert list_outputs().keys() == {*outputs_of(["flaky.x", "good.x"]), "_failed.csv"}


# -------------------------------------------------------------------- the command


def test_one_process_classifies_a_small_dataset(place, monkeypatch):
    monkeypatch.setattr(scoring, "count_cores", lambda: 7)
    assert console.choose_workers(None, None, "scores") == 1
    assert console.choose_workers(3, None, "scores") == 3
    monkeypatch.setattr(console, "SMALL_BYTES", 1)
    assert console.choose_workers(None, None, "scores") == 7
    assert console.choose_workers(None, None) == 7


def test_a_log_says_how_far_a_job_is(place, monkeypatch):
    monkeypatch.setattr(console, "LOG_SECONDS", 0.0)
    done = rankshot("classify scores --head new.rankshot -o out --workers 1")
    lines = done.err.splitlines()
    assert [line.rpartition("; ")[2] for line in lines] == [f"parts {i}/5" for i in range(1, 6)]
    assert lines[-1].startswith("classifying: 210 rows, ")


def test_a_program_is_told_how_far_a_job_is(place, monkeypatch):
    monkeypatch.setattr(console, "JSON_SECONDS", 0.0)

    def read(words):
        lines = [json.loads(line) for line in rankshot(f"{words} --progress json").err.splitlines()]
        assert [line["done"] for line in lines] == [False] * (len(lines) - 1) + [True]
        return lines

    lines = read("classify scores --head new.rankshot -o out --workers 1")
    assert [line["parts"] for line in lines] == [1, 2, 3, 4, 5, 5]
    del lines[-1]["seconds"]
    last = {"parts": 5, "of_parts": 5, "failed": 0, "rows": 210, "done": True}
    assert lines[-1] == {"doing": "classifying", **last}
    lines = read("classify scores/a.parquet --head new.rankshot -o out.csv")
    assert (lines[-1]["rows"], lines[-1]["of_rows"]) == (40, 40)
    rs.write_rankings(rankings(), "votes.jsonl")
    assert read("consensus votes.jsonl")[-1]["rankings"] == len(rankings())
    (place / "scores/bad.csv").write_text("no numbers\n")
    stopped = rankshot(
        "classify scores --head new.rankshot -o out --workers 1 --on-error stop --progress json"
    )
    assert stopped.status == 2
    assert "bad.csv: needs the seen classes" in stopped.err


def test_a_scheduler_without_workers_is_not_waited_for_without_end(place):
    where = {"processes": False, "protocol": "tcp", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=0, **where) as cluster:
        address = cluster.scheduler_address
        done = rankshot(
            f"classify scores --head new.rankshot -o out --scheduler {address} "
            "--wait-for-workers 0.1"
        )
    assert done.status == 2
    assert f"{address}: the scheduler has had no workers for 0 s; workers stop with" in done.err
    assert "0 of 5 parts are finished, and the same command continues" in done.err


def test_the_command(place, client):
    (place / "scores/bad.csv").write_text("no numbers\n")
    address = client.scheduler.address
    words = f"classify scores --head new.rankshot -o out --scheduler {address} --reject-below .4"
    done = rankshot(words)
    assert done.status == 1
    assert done.err == ""
    assert f"{place}/scores: 6 parts; the scores are interpreted as logits\n" in done.out
    assert "210 predictions written to out\n" in done.out
    assert "parts: 5 classified, 1 failed\n" in done.out
    assert f"failed: {place}/scores/bad.csv: needs the seen classes" in done.out
    (place / "scores/bad.csv").unlink()
    assert "parts: 0 classified, 5 finished earlier, 0 failed" in run_well(f"{words} --update")


def test_the_most_probable_classes_of_a_dataset(place):
    run_well("classify scores --head new.rankshot -o out --workers 1 --top 2")
    done = rankshot("classify scores --head new.rankshot -o out --workers 1")
    assert "out: belongs to another job" in done.err
    run_well("classify scores/a.parquet --head new.rankshot -o out.csv --top 2")
    assert Path("out.csv").read_text().startswith("id,label,label_2,probability,probability_2\n")


REFUSED = {
    "scores -o out": "a dataset needs a fitted head, --head FILE.rankshot; fit one with",
    "scores -o scores/out --head new.rankshot": "is the dataset itself, or inside it",
    "scores -o out.csv --head new.rankshot": "give a name without an extension",
    "packed --head new.rankshot -o out": "'b.csv.gz', 'c.CSV' would be left out",
    "links --head new.rankshot -o out": "links/deep: is a link to a folder",
    "scores -o out --head new.rankshot --workers 1 --scheduler tcp://x:1": "not both",
    "scores/a.parquet -o out.csv --head new.rankshot --update": "--update needs a dataset",
}


def test_refused_before_anything_starts(place):
    shutil.copytree(place / "scores/deep", place / "links")
    (place / "links/deep").symlink_to(place / "scores/deep")
    shutil.copytree(place / "scores/deep", place / "packed")
    for name in ("b.csv.gz", "c.CSV", "notes.txt"):
        (place / "packed" / name).touch()
    for words, message in REFUSED.items():
        done = rankshot(f"classify {words}")
        assert message in done.err
        assert done.status == 2
        assert not (place / "out").exists()


def test_outputs_that_are_refused(place):
    def refuse(message, output="out", dataset="scores"):
        with pytest.raises(rs.RankshotError, match=message):
            classify(dataset, "new.rankshot", output)

    (place / "out").mkdir()
    (place / "out/diary.txt").touch()
    refuse(r"out: is not empty \('diary.txt'\), and it does not belong to a rankshot job; give")
    (place / "out/diary.txt").unlink()
    (place / "out/_rankshot.json").write_text("{}")
    refuse("_rankshot.json: damaged, or written by another version")
    (place / "out/_rankshot.json").unlink()
    classify("scores/deep", "new.rankshot", "out")
    shutil.copy("out/a.parquet", "out/copy.parquet")
    refuse(r"'copy.parquet'\), and the job there has no such part", dataset="scores/deep")
    write_scores(place / "scores/a.csv", LOGITS)
    refuse("a.parquet: would get the same output file as .*a.csv, 'a.parquet'; rename one", "fresh")

"""Scores in one process, into one table: what is left behind, and after a stop or a kill."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVC

import rankshot as rs
from command_line import read_scores
from rankshot.jobs import score
from rankshot.recognition import Preprocessing
from tiny_models import CLASSES, PLAIN, write_images, write_onnx

pytestmark = pytest.mark.usefixtures("short_parts")
PLAIN = Preprocessing(**PLAIN)
N_PARTS = 8
"""31 entries in parts of one batch of four."""


@pytest.fixture
def place(tmp_path):
    """A folder with a network and thirty images, of which two are damaged."""
    write_images(tmp_path / "photos", 30)
    (tmp_path / "photos/0003.png").write_bytes(b"x")
    (tmp_path / "photos/0017.png").write_bytes(b"")
    (tmp_path / "photos/notes.txt").touch()
    write_onnx(tmp_path / "net.onnx", metadata={"classes": CLASSES})
    return tmp_path


def run(place, name="scores.parquet", model=None, **options):
    given = {"preprocessing": PLAIN, "batch_size": 4, "on_error": "skip"} | options
    return score(model or place / "net.onnx", place / "photos", place / name, **given)


class StopError(Exception):
    pass


def stop_after(n):
    def progress(state):
        if state.n_finished >= n:
            raise StopError

    return progress


def is_read_as(path, whole):
    ids, values, *_ = read_scores(path)
    assert ids == whole[0]
    assert len(set(ids)) == len(ids) == 28
    np.testing.assert_array_equal(values, whole[1])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_table_has_what_score_returns(place, ending):
    done = run(place, f"scores.{ending}")
    found = rs.recognition.score(
        place / "net.onnx", place / "photos", preprocessing=PLAIN, batch_size=4, on_error="skip"
    )
    ids, values, items, kind = read_scores(place / f"scores.{ending}")
    assert (ids, items, kind) == (found.ids.tolist(), tuple(CLASSES), "multiclass")
    np.testing.assert_array_equal(values.astype(np.float32), found.scores.values)
    assert (done.n_rows, done.n_parts, done.n_done) == (28, N_PARTS, N_PARTS)
    assert done.skipped == list(found.skipped)
    with (place / "scores.skipped.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == ["0003.png", "0017.png", "notes.txt"]
    assert [row["input"] for row in rows] == ["yes", "yes", "no"]
    assert done.count_reasons() == {"not an image": 1, "an empty file": 1}
    left = {file.name for file in place.iterdir()} - {"photos", "net.onnx"}
    assert left == {f"scores.{ending}", f"scores.{ending}.json", "scores.skipped.csv"}
    # Once more: nothing is done, and it is known what was skipped.
    before = (place / f"scores.{ending}").stat().st_mtime_ns
    again = run(place, f"scores.{ending}")
    assert (again.n_done, again.n_resumed, again.n_rows) == (0, N_PARTS, 28)
    assert again.skipped == done.skipped
    assert (place / f"scores.{ending}").stat().st_mtime_ns == before
    with pytest.raises(rs.RankshotError, match=r"0003\.png: not an image"):
        run(place, f"scores.{ending}", on_error="stop")
    for name in ("0003.png", "0017.png", "notes.txt"):
        (place / "photos" / name).unlink()
    assert run(place, f"scores.{ending}", again=True).skipped == []
    assert not (place / "scores.skipped.csv").exists()


@pytest.mark.parametrize("what", ["model", "preprocessing", "inputs", "table"])
def test_the_table_of_another_job_is_not_replaced(place, what):
    run(place)
    table, options = place / "scores.parquet", {}
    if what == "model":
        write_onnx(place / "net.onnx", metadata={"classes": CLASSES, "version": 2})
    elif what == "preprocessing":
        options["preprocessing"] = Preprocessing(8, 0.500001, 0.25, resize=8)
    elif what == "inputs":
        shutil.copy(place / "photos/0002.png", place / "photos/0001.png")
    else:
        table.write_bytes(b"another file")
    before = table.read_bytes()
    with pytest.raises(rs.RankshotError, match=r"another model, or of|was changed after the job"):
        run(place, **options)
    assert table.read_bytes() == before
    assert not (place / "scores.parquet.parts").exists()
    assert run(place, **options, again=True).n_done == N_PARTS
    (place / "scores.parquet.json").write_text("{")
    assert run(place, **options).n_done == N_PARTS


def test_a_stopped_run_goes_on(place):
    run(place, "whole.parquet")
    whole = read_scores(place / "whole.parquet")
    with pytest.raises(StopError):
        run(place, progress=stop_after(4))
    assert not (place / "scores.parquet").exists()
    folder = place / "scores.parquet.parts"
    parts = sorted(folder.glob("part-*"))
    assert [file.name for file in parts] == [f"part-{i:06d}.parquet" for i in range(4)]
    # Another job is refused, also by what an earlier part had skipped.
    with pytest.raises(rs.RankshotError, match=r"belongs to another job .another classes"):
        run(place, classes=["r", "g", "b"])
    with pytest.raises(rs.RankshotError, match=r"0003\.png: not an image"):
        run(place, on_error="stop")
    # A part that is damaged, and one that is not there, are done again.
    parts[1].write_bytes(parts[1].read_bytes()[:100])
    parts[2].unlink()
    batches = []
    model = rs.recognition.open_model(place / "net.onnx")
    inner = model.run_with_features
    object.__setattr__(
        model, "run_with_features", lambda batch: batches.append(len(batch)) or inner(batch)
    )
    done = run(place, model=model)
    assert (done.n_resumed, done.n_done) == (2, 6)
    assert sum(batches) == 28 - 7
    is_read_as(place / "scores.parquet", whole)
    assert (place / "scores.skipped.csv").read_text().count("\n") == 4
    assert not folder.exists()


def test_an_error_leaves_the_older_table_and_nothing_else(place):
    (place / "photos/0003.png").rename(place / "photos/0000.png")
    run(place)
    before = {file.name: file.stat().st_size for file in place.iterdir()}
    with pytest.raises(rs.RankshotError, match=r"0000\.png: not an image"):
        run(place, on_error="stop", again=True)
    assert {file.name: file.stat().st_size for file in place.iterdir()} == before


def test_a_part_of_which_a_byte_was_changed_is_scored_again(place):
    """Its footer is as it was, but its checksum is not."""
    run(place, "whole.parquet")
    with pytest.raises(StopError):
        run(place, progress=stop_after(4))
    part = place / "scores.parquet.parts/part-000001.parquet"
    content = bytearray(part.read_bytes())
    # The last byte of the scores: the footer, its length and a mark come after them.
    content[-9 - int.from_bytes(content[-8:-4], "little")] ^= 1
    part.write_bytes(content)
    done = run(place)
    assert (done.n_done, done.n_resumed) == (N_PARTS - 3, 3)
    assert (place / "scores.parquet").read_bytes() == (place / "whole.parquet").read_bytes()


def test_times_of_images_alone_change_nothing(place):
    run(place)
    for path in place.glob("photos/*"):
        os.utime(path, ns=(1, 1))
    assert run(place).n_done == 0
    run(place, "later.parquet")
    assert (place / "later.parquet").read_bytes() == (place / "scores.parquet").read_bytes()


def test_a_function_is_always_run_from_the_start(tmp_path):
    def model(batch):
        return [[1.0, 2.0, 3.0] for _ in batch]

    def run_function(**options):
        return score(model, list("abcdefgh"), tmp_path / "s.csv", CLASSES, batch_size=2, **options)

    with pytest.raises(StopError):
        run_function(progress=stop_after(2))
    assert (run_function().n_resumed, run_function().n_rows) == (0, 8)


def test_probabilities_stay_so_after_a_stop(tmp_path):
    """The first batch after the stop has rows that alone do not say what they are."""
    write_images(tmp_path / "photos", 12)
    write_onnx(tmp_path / "net.onnx", softmax=True, metadata={"classes": CLASSES})
    assert run(tmp_path, "whole.parquet").counts == {"probabilities": 12}
    with pytest.raises(StopError):
        run(tmp_path, "s.parquet", progress=stop_after(2))
    assert run(tmp_path, "s.parquet").counts == {"probabilities": 12}
    np.testing.assert_array_equal(
        read_scores(tmp_path / "s.parquet")[1], read_scores(tmp_path / "whole.parquet")[1]
    )


def test_one_vs_one_scores_keep_their_kind(tmp_path, rng):
    X, y = rng.normal(size=(20, 3)), np.repeat(list("abcd"), 5)
    model = SVC().fit(X, y)
    for name in ("s.parquet", "parts"):
        score(model, X, tmp_path / name)
        _, values, items, kind = read_scores(tmp_path / name)
        assert (items, kind) == (tuple("abcd"), "one-vs-one")
        np.testing.assert_array_equal(values, rs.scores_of(model, X).values)
    with pytest.raises(rs.RankshotError, match=r"one-vs-one .*write .parquet"):
        score(model, X, tmp_path / "s.csv")
    with pytest.raises(rs.RankshotError, match=r"'.npz'; expected .csv, .parquet"):
        score(model, X, tmp_path / "s.npz")


def test_odd_ids_are_read_back(tmp_path):
    ids = ["a\rb", "\r", "a\r\nb", "a\nb", 'a"b', "a,b", " a ", "é\u2028"]
    rows = [json.dumps({"id": name, "text": "t"}) for name in ids]
    rows.append(json.dumps({"id": "skipped\r", "text": ""}))
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    model = rs.recognition.open_model(lambda texts: [[1.5, 2.5]] * len(texts))
    model = replace(model, takes="texts")
    for table in (tmp_path / f"s.{ending}" for ending in ("csv", "parquet")):
        score(model, tmp_path / "t.jsonl", table, ["one", "two\rthree"], on_error="skip")
        assert read_scores(table)[0] == ids
    with (tmp_path / "s.skipped.csv").open(newline="") as stream:
        assert [row[0] for row in csv.reader(stream)] == ["id", "skipped\r"]


PROGRAM = """
import sys, time
from pathlib import Path
from rankshot.recognition import Preprocessing
from rankshot.jobs import score, score_parts
score_parts.MIN_BATCHES = 1
place = Path(sys.argv[1])
slow = lambda run: (print(run.n_finished, flush=True), time.sleep(.05))
plain = Preprocessing(size=8, mean=.5, std=.25, resize=8)
score(place / "net.onnx", place / "photos", place / "scores.csv",
      preprocessing=plain, batch_size=4, on_error="skip", progress=slow)
"""


@pytest.mark.slow
def test_killed_and_started_again(place):
    """SIGKILL in the middle: no table is there; the next run has every input once."""
    run(place, "whole.csv")
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(place)], stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if int(line) >= 3:
            break
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    process.stdout.close()
    assert not (place / "scores.csv").exists()
    assert 3 <= run(place, "scores.csv").n_resumed < N_PARTS
    is_read_as(place / "scores.csv", read_scores(place / "whole.csv"))

"""Runs into a file: the table, what is left behind, and going on after a kill."""

import csv
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import rankshot as rs
from rankshot.inference import Preprocessing, score_runs
from rankshot.zeroshot.files.score_tables import open_scores
from tiny_models import CLASSES, PLAIN, write_onnx, write_pictures

PLAIN = Preprocessing(**PLAIN)


def read(path):
    ids, values, kinds = [], [], set()
    for some, scores in open_scores(path).batches():
        ids += some.tolist()
        values.append(scores.values)
        kinds.add((scores.items, scores.kind))
    assert len(kinds) == 1
    return ids, np.concatenate(values), *kinds.pop()


@pytest.fixture
def place(tmp_path):
    """A folder with a network and thirty pictures, of which two are damaged."""
    write_pictures(tmp_path / "photos", 30)
    (tmp_path / "photos/0003.png").write_bytes(b"x")
    (tmp_path / "photos/0017.png").write_bytes(b"")
    (tmp_path / "photos/notes.txt").touch()
    write_onnx(tmp_path / "net.onnx", metadata={"classes": CLASSES})
    return tmp_path


@pytest.fixture
def small_parts(monkeypatch):
    """A part for each batch of four."""
    monkeypatch.setattr(score_runs, "PART_ROWS", 4)


def run(place, name="scores.parquet", **options):
    given = {"preprocessing": PLAIN, "batch_size": 4, "on_error": "skip"} | options
    return rs.inference.score_to_file(place / "net.onnx", place / "photos", place / name, **given)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_the_table_has_what_score_returns(place, ending, small_parts):
    done = run(place, f"scores.{ending}")
    found = rs.inference.score(
        place / "net.onnx",
        place / "photos",
        preprocessing=PLAIN,
        batch_size=4,
        on_error="skip",
    )
    ids, values, items, kind = read(done.path)
    assert (ids, items, kind) == (found.ids.tolist(), tuple(CLASSES), "multiclass")
    np.testing.assert_array_equal(values.astype(np.float32), found.scores.values)
    assert (done.n_rows, done.n_skipped) == (28, 2)
    with done.skipped_path.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["id"] for row in rows] == ["0003.png", "0017.png", "notes.txt"]
    assert [row["reason"] for row in rows] == [one.reason for one in found.skipped]
    assert [row["input"] for row in rows] == ["yes", "yes", "no"]
    assert done.reasons == {"not a picture": 1, "an empty file": 1}
    assert done.others == {"not named like a picture": 1}
    left = {file.name for file in place.iterdir()} - {"photos", "net.onnx"}
    assert left == {f"scores.{ending}", f"scores.{ending}.json", "scores.skipped.csv"}


def test_no_list_of_skipped_inputs_without_any(place):
    run(place)
    assert (place / "scores.skipped.csv").exists()
    for name in ("0003.png", "0017.png", "notes.txt"):
        (place / "photos" / name).unlink()
    done = run(place, again=True)
    assert (done.n_rows, done.reasons, done.others) == (28, {}, {})
    assert not (place / "scores.skipped.csv").exists()


# ---- once more, and after a stop


def test_a_finished_run_is_not_done_again(place):
    first = run(place)
    before = first.path.stat().st_mtime_ns
    second = run(place)
    assert second.was_finished
    assert not first.was_finished
    assert (second.n_rows, second.n_skipped, second.reasons) == (28, 2, first.reasons)
    assert first.path.stat().st_mtime_ns == before
    assert not run(place, again=True).was_finished


@pytest.mark.parametrize("what", ["model", "preprocessing", "classes", "inputs", "table"])
def test_the_table_of_another_run_is_not_replaced(place, what):
    done = run(place)
    options = {}
    if what == "model":
        write_onnx(place / "net.onnx", metadata={"classes": CLASSES, "version": 2})
    elif what == "preprocessing":
        options["preprocessing"] = Preprocessing(8, 0, 1, resize=8)
    elif what == "classes":
        options["classes"] = ["r", "g", "b"]
    elif what == "inputs":
        os.utime(place / "photos/0001.png", ns=(1, 1))
    elif what == "table":
        done.path.write_bytes(b"another file")
    before = done.path.read_bytes()
    why = f"from another run .not with the same {what}" if what != "table" else "but was changed"
    with pytest.raises(rs.RankshotError, match=rf"is there, {why}.*; --again .* replaces it"):
        run(place, **options)
    assert done.path.read_bytes() == before
    assert not (place / "scores.parquet.parts").exists()
    assert not run(place, **options, again=True).was_finished


def test_a_run_that_replaces_another_goes_on_after_a_stop(place, small_parts):
    run(place)
    (place / "photos/0000.png").unlink()
    with pytest.raises(StopError):
        run(place, again=True, progress=stop_after(12))
    assert run(place).n_resumed == 12


def test_a_file_of_which_nothing_is_known_is_replaced(place):
    run(place)
    (place / "scores.parquet.json").write_text("{")
    assert not run(place).was_finished


def test_a_preprocessing_counts_with_all_its_digits(place):
    run(place, preprocessing=Preprocessing(8, 0.5, 0.25, resize=8))
    with pytest.raises(rs.RankshotError, match="not with the same preprocessing"):
        run(place, preprocessing=Preprocessing(8, 0.500001, 0.25, resize=8))


def test_a_run_that_skipped_inputs_is_not_one_without_errors(place, small_parts):
    run(place)
    with pytest.raises(rs.RankshotError, match=r"0003\.png: not a picture"):
        run(place, on_error="raise")
    with pytest.raises(StopError):
        run(place, "other.csv", progress=stop_after(12))
    with pytest.raises(rs.RankshotError, match=r"0003\.png: not a picture"):
        run(place, "other.csv", on_error="raise")
    assert run(place, "other.csv").n_resumed == 12


class StopError(Exception):
    pass


def stop_after(n):
    def progress(done, total, what):
        if done >= n:
            raise StopError

    return progress


def test_a_stopped_run_goes_on(place, small_parts):
    whole = read(run(place, "whole.parquet").path)
    with pytest.raises(StopError):
        run(place, progress=stop_after(12))
    assert not (place / "scores.parquet").exists()
    parts = sorted((place / "scores.parquet.parts").glob("part-*"))
    assert [file.name for file in parts] == [f"part-{i:012d}.npz" for i in (0, 4, 8)]
    batches = []
    model = rs.inference.open_model(place / "net.onnx")
    inner = model.run
    object.__setattr__(model, "run", lambda batch: batches.append(len(batch)) or inner(batch))
    done = rs.inference.score_to_file(
        model,
        place / "photos",
        place / "scores.parquet",
        preprocessing=PLAIN,
        batch_size=4,
        on_error="skip",
    )
    assert done.n_resumed == 12
    assert sum(batches) == 28 - 11
    ids, values, *_ = read(done.path)
    assert ids == whole[0]
    np.testing.assert_array_equal(values, whole[1])
    assert [row.split(",")[0] for row in done.skipped_path.read_text().splitlines()[1:]] == [
        "0003.png",
        "0017.png",
        "notes.txt",
    ]
    assert not (place / "scores.parquet.parts").exists()


def test_a_damaged_part_and_those_after_a_gap_are_done_again(place, small_parts):
    whole = read(run(place, "whole.parquet").path)
    with pytest.raises(StopError):
        run(place, progress=stop_after(16))
    part = place / "scores.parquet.parts" / "part-000000000004.npz"
    part.write_bytes(part.read_bytes()[:100])
    done = run(place)
    assert done.n_resumed == 4
    np.testing.assert_array_equal(read(done.path)[1], whole[1])


def test_parts_of_another_run_are_refused(place, small_parts):
    with pytest.raises(StopError):
        run(place, progress=stop_after(12))
    for options, what in (
        ({"classes": ["r", "g", "b"]}, "classes"),
        ({"preprocessing": Preprocessing(8, 0, 1)}, "preprocessing"),
    ):
        with pytest.raises(rs.RankshotError, match=rf"not with the same {what}; .*--again"):
            run(place, **options)
    (place / "photos/0000.png").unlink()
    with pytest.raises(rs.RankshotError, match="not with the same inputs"):
        run(place)
    assert run(place, again=True).n_rows == 27


def test_an_error_leaves_the_older_table_and_nothing_else(place):
    run(place)
    before = {file.name: file.stat().st_size for file in place.iterdir()}
    with pytest.raises(rs.RankshotError, match=r"0003\.png: not a picture"):
        run(place, on_error="raise", again=True)
    assert {file.name: file.stat().st_size for file in place.iterdir()} == before


def test_a_folder_of_another_kind_is_not_removed(place):
    (place / "scores.parquet.parts").mkdir()
    (place / "scores.parquet.parts/thesis.doc").touch()
    with pytest.raises(rs.RankshotError, match=r"'thesis.doc' is no part of a run"):
        run(place)
    assert (place / "scores.parquet.parts/thesis.doc").exists()


def test_a_function_is_always_run_from_the_start(tmp_path, small_parts):
    def model(batch):
        return [[1.0, 2.0, 3.0] for _ in batch]

    texts = list("abcdefgh")
    path = tmp_path / "s.csv"
    with pytest.raises(StopError):
        rs.inference.score_to_file(
            model, texts, path, CLASSES, batch_size=2, progress=stop_after(4)
        )
    done = rs.inference.score_to_file(model, texts, path, CLASSES, batch_size=2)
    assert (done.n_resumed, done.n_rows) == (0, 8)
    assert not rs.inference.score_to_file(model, texts, path, CLASSES).was_finished


def test_probabilities_stay_so_after_a_stop(tmp_path, small_parts):
    """The first batch after the stop has rows that alone do not say what they are."""
    write_pictures(tmp_path / "photos", 12)
    write_onnx(tmp_path / "net.onnx", softmax=True, metadata={"classes": CLASSES})
    whole = run(tmp_path, "whole.npz")
    assert whole.had_probabilities
    with pytest.raises(StopError):
        run(tmp_path, "s.npz", progress=stop_after(8))
    done = run(tmp_path, "s.npz")
    assert (done.had_probabilities, done.n_resumed) == (True, 8)
    np.testing.assert_array_equal(read(done.path)[1], read(whole.path)[1])


def test_one_vs_one_scores_go_into_npz_alone(tmp_path, rng):
    from sklearn.svm import SVC

    X, y = rng.normal(size=(20, 3)), np.repeat(list("abcd"), 5)
    model = SVC().fit(X, y)
    done = rs.inference.score_to_file(model, X, tmp_path / "s.npz")
    _, values, items, kind = read(done.path)
    assert (items, kind) == (tuple("abcd"), "one-vs-one")
    np.testing.assert_array_equal(values, rs.scores_of(model, X).values)
    with pytest.raises(rs.RankshotError, match=r"one-vs-one .*write .npz"):
        rs.inference.score_to_file(model, X, tmp_path / "s.csv")


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_odd_ids_are_read_back(tmp_path, ending):
    ids = ["a\rb", "\r", "a\r\nb", "a\nb", 'a"b', "a,b", " a ", "é\u2028"]
    rows = [json.dumps({"id": name, "text": "t"}) for name in ids]
    rows.append(json.dumps({"id": "skipped\r", "text": ""}))
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    done = rs.inference.score_to_file(
        replace(rs.inference.open_model(lambda texts: [[1.5, 2.5]] * len(texts)), takes="texts"),
        tmp_path / "t.jsonl",
        tmp_path / f"s.{ending}",
        ["one", "two\rthree"],
        on_error="skip",
    )
    assert read(done.path)[0] == ids
    with done.skipped_path.open(newline="") as stream:
        assert [row[0] for row in csv.reader(stream)] == ["id", "skipped\r"]


def test_names_that_a_table_cannot_have(tmp_path):
    with pytest.raises(rs.RankshotError, match="a class is called 'id'"):
        rs.inference.score_to_file(len, ["a"], tmp_path / "s.csv", ["id", "b"])
    with pytest.raises(rs.RankshotError, match=r"unknown ending '.txt'"):
        rs.inference.score_to_file(len, ["a"], tmp_path / "s.txt", ["a", "b"])


PROGRAM = """
import sys, time
from pathlib import Path
import rankshot as rs
from rankshot.inference import Preprocessing, score_runs
score_runs.PART_ROWS = 4
place = Path(sys.argv[1])
slow = lambda done, total, what: (print(done, flush=True), time.sleep(.05))
plain = Preprocessing(size=8, mean=.5, std=.25, resize=8)
rs.inference.score_to_file(place / "net.onnx", place / "photos", place / "scores.csv",
                 preprocessing=plain, batch_size=4, on_error="skip", progress=slow)
"""


def test_killed_and_started_again(place):
    """SIGKILL in the middle: no table is there; the next run has every input once."""
    whole = read(run(place, "whole.csv").path)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(place)], stdout=subprocess.PIPE, text=True
    )
    for line in process.stdout:
        if int(line) >= 12:
            break
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=20) == -signal.SIGKILL
    process.stdout.close()
    assert not (place / "scores.csv").exists()
    done = run(place, "scores.csv")
    assert 12 <= done.n_resumed < 31
    ids, values, *_ = read(done.path)
    assert ids == whole[0]
    assert len(set(ids)) == len(ids) == 28
    np.testing.assert_array_equal(values, whole[1])
    assert json.loads((place / "scores.csv.json").read_text())["result"]["n_rows"] == 28

"""Scores of many inputs, in a folder of parts or one table: what is kept, and after a stop."""

import csv
import json
import shutil
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from sklearn.svm import SVC

import rankshot as rs
from command_line import read_scores
from rankshot.jobs import classify
from rankshot.recognition import Preprocessing, score_parts, write_scores
from rankshot.recognition.inputs import Input
from rankshot.recognition.score_parts import _divide
from tiny_models import CLASSES, PLAIN, write_images, write_onnx, write_text_onnx

PLAIN = Preprocessing(**PLAIN)
N_PARTS = 8
"""31 entries in parts of one batch of four."""


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of one batch, if there are at most 64."""
    monkeypatch.setattr(score_parts, "MIN_BATCHES", 1)
    monkeypatch.setattr(score_parts, "MIN_PARTS", 64)


@pytest.fixture
def place(tmp_path, short_parts):
    """A folder with a network and thirty images, of which two are damaged."""
    write_images(tmp_path / "photos", 30)
    (tmp_path / "photos/0003.png").write_bytes(b"x")
    (tmp_path / "photos/0017.png").write_bytes(b"")
    (tmp_path / "photos/notes.txt").touch()
    write_onnx(tmp_path / "net.onnx", metadata={"classes": CLASSES})
    return tmp_path


def run(place, name="scores.parquet", model=None, **options):
    options = {"preprocessing": PLAIN, "batch_size": 4, "on_error": "skip"} | options
    return write_scores(model or place / "net.onnx", place / "photos", place / name, **options)


class StopError(Exception):
    pass


def stop_after(n):
    def progress(state):
        if state.n_done >= n:
            raise StopError

    return progress


def test_parts_are_few_and_not_large():
    """Eight parts, if each of them has 16 batches and at most 1,000 inputs."""
    for n, batch, sizes in [
        (4000, 1, [500] * 8),
        (100, 2, [32, 32, 32, 4]),
        (9000, 7, [1001] * 8 + [992]),
    ]:
        parts = _divide((Input(str(i), "text") for i in range(n)), batch)
        assert [len(part.source) for part in parts] == sizes


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_table_has_what_score_returns(place, ending):
    done = run(place, f"scores.{ending}")
    scored = rs.recognition.score(
        place / "net.onnx", place / "photos", preprocessing=PLAIN, batch_size=4, on_error="skip"
    )
    ids, values, items, kind = read_scores(place / f"scores.{ending}")
    assert (ids, items, kind) == (scored.ids.tolist(), tuple(CLASSES), "multiclass")
    np.testing.assert_array_equal(values.astype(np.float32), scored.scores.values)
    assert (done.n_rows, done.n_parts, done.n_done) == (28, N_PARTS, N_PARTS)
    assert done.skipped == list(scored.skipped)
    with (place / "scores.skipped.csv").open() as stream:
        rows = [(row["id"], row["input"]) for row in csv.DictReader(stream)]
    assert rows == [("0003.png", "yes"), ("0017.png", "yes"), ("notes.txt", "no")]
    assert done.count_reasons() == {"not an image": 1, "an empty file": 1}
    left = {file.name for file in place.iterdir()} - {"photos", "net.onnx"}
    assert left == {f"scores.{ending}", f"scores.{ending}.json", "scores.skipped.csv"}
    # Once more: nothing is done, and it is known what was skipped.
    again = run(place, f"scores.{ending}")
    assert (again.n_done, again.n_kept, again.n_rows) == (0, N_PARTS, 28)
    assert again.skipped == done.skipped
    with pytest.raises(rs.RankshotError, match=r"0003\.png"):
        run(place, f"scores.{ending}", on_error="stop")
    for name in ("0003.png", "0017.png", "notes.txt"):
        (place / "photos" / name).unlink()
    assert run(place, f"scores.{ending}", overwrite=True).skipped == []
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
    with pytest.raises(rs.RankshotError):
        run(place, **options)
    assert table.read_bytes() == before
    assert not (place / "scores.parquet.parts").exists()
    assert run(place, **options, overwrite=True).n_done == N_PARTS


def test_a_stopped_run_goes_on(place):
    run(place, "whole.parquet")
    with pytest.raises(StopError):
        run(place, progress=stop_after(4))
    assert not (place / "scores.parquet").exists()
    parts = sorted((place / "scores.parquet.parts").glob("part-*"))
    assert [file.name for file in parts] == [f"part-{i:06d}.parquet" for i in range(4)]
    with pytest.raises(rs.RankshotError):
        run(place, seen=["r", "g", "b"])
    with pytest.raises(rs.RankshotError, match=r"00\d\d\.png"):
        run(place, on_error="stop")
    parts[2].unlink()
    done = run(place)
    assert done.n_kept + done.n_done == N_PARTS
    assert done.n_kept >= 3
    assert (place / "scores.parquet").read_bytes() == (place / "whole.parquet").read_bytes()
    assert not (place / "scores.parquet.parts").exists()


@pytest.mark.slow
def test_processes_give_the_scores_of_one(place):
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        run(place, "out", executor=pool)
    run(place, "plain.parquet")
    ids, values, *_ = read_scores(place / "out")
    plain_ids, plain, *_ = read_scores(place / "plain.parquet")
    assert ids == plain_ids
    np.testing.assert_array_equal(values, plain)


def test_tables_of_texts_are_parts(tmp_path, monkeypatch):
    """One part per table; a table without any text has a part without rows."""
    monkeypatch.chdir(tmp_path)
    write_text_onnx(tmp_path / "texts.onnx")
    Path("texts/may").mkdir(parents=True)
    Path("texts/may/a.csv").write_text("text\nplay\nset\n")
    Path("texts/b.jsonl").write_text('{"text": "play", "id": "x1"}\n{"text": "", "id": "x2"}\n')
    Path("texts/c.csv").write_text('text\n""\n')
    run = write_scores("texts.onnx", "texts", "out", on_error="skip")
    assert (run.n_parts, run.n_rows) == (3, 3)
    assert parquet.read_table("out/may/a.parquet").to_pydict() == {
        "id": ["may/a:0", "may/a:1"],
        "one": [1.0, 1.0],
        "two": [2.0, 2.0],
    }
    assert parquet.read_table("out/c.parquet").to_pydict() == {"id": [], "one": [], "two": []}
    assert run.count_reasons() == {"no text in the column 'text'": 2}
    rankings = rs.Rankings.from_orders([["one"], ["two"]], items=["one", "two"], targets=["a", "b"])
    rs.WeightedMean().fit(rankings).save("new.rankshot")
    assert classify("out", "new.rankshot", "predictions").n_rows == 3


@pytest.mark.usefixtures("short_parts")
def test_a_function_is_always_run_from_the_start(tmp_path):
    def run_function(**options):
        table = tmp_path / "s.csv"
        model = lambda batch: [[1.0, 2.0, 3.0] for _ in batch]  # noqa: E731
        return write_scores(model, list("abcdefgh"), table, CLASSES, batch_size=2, **options)

    with pytest.raises(StopError):
        run_function(progress=stop_after(2))
    done = run_function()
    assert (done.n_kept, done.n_rows) == (0, 8)
    with pytest.raises(rs.RankshotError):
        run_function(workers=2)


def test_probabilities_stay_so_after_a_stop(tmp_path, short_parts):
    """The first batch after the stop has rows that alone do not say what they are."""
    write_images(tmp_path / "photos", 12)
    write_onnx(tmp_path / "net.onnx", softmax=True, metadata={"classes": CLASSES})
    assert run(tmp_path, "whole.parquet").counts == {"probabilities": 12}
    with pytest.raises(StopError):
        run(tmp_path, "s.parquet", progress=stop_after(2))
    assert run(tmp_path, "s.parquet").counts == {"probabilities": 12}
    assert (tmp_path / "s.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()


def test_one_vs_one_scores_keep_their_kind(tmp_path, rng):
    X, y = rng.normal(size=(20, 3)), np.repeat(list("abcd"), 5)
    model = SVC().fit(X, y)
    for name in ("s.parquet", "parts"):
        write_scores(model, X, tmp_path / name)
        _, values, items, kind = read_scores(tmp_path / name)
        assert (items, kind) == (tuple("abcd"), "one-vs-one")
        np.testing.assert_array_equal(values, rs.scores_of(model, X).values)
    with pytest.raises(rs.RankshotError):
        write_scores(model, X, tmp_path / "s.csv")


def test_odd_ids_are_read_back(tmp_path):
    ids = ["a\rb", "\r", "a\r\nb", "a\nb", 'a"b', "a,b", " a ", "é\u2028"]
    rows = [json.dumps({"id": name, "text": "t"}) for name in ids]
    rows.append(json.dumps({"id": "skipped\r", "text": ""}))
    (tmp_path / "t.jsonl").write_text("\n".join(rows))
    model = rs.recognition.open_model(lambda texts: [[1.5, 2.5]] * len(texts))
    model = replace(model, takes="texts")
    for table in (tmp_path / "s.csv", tmp_path / "t.parquet"):
        write_scores(model, tmp_path / "t.jsonl", table, ["one", "two\rthree"], on_error="skip")
        assert read_scores(table)[0] == ids
    with (tmp_path / "s.skipped.csv").open(newline="") as stream:
        assert [row[0] for row in csv.reader(stream)] == ["id", "skipped\r"]

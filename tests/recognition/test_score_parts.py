"""Scores of many inputs, in one table or a folder of parts: what is kept, and after a stop."""

import csv
import shutil

import numpy as np
import pytest
from sklearn.svm import SVC

import rankshot as rs
from command_line import read_scores, stop_after
from rankshot.jobs import classify
from rankshot.recognition import Preprocessing, score_parts, write_scores
from rankshot.recognition.inputs import Input
from rankshot.recognition.score_parts import _divide
from refusals import refuses
from tiny_models import CLASSES, PLAIN, write_images, write_onnx

PLAIN = Preprocessing(**PLAIN)
N_PARTS = 8
"""31 entries in parts of one batch of four."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a network and thirty images, of which two are damaged; parts are one batch."""
    monkeypatch.setattr(score_parts, "PART_INPUTS", 3)
    write_images(tmp_path / "photos", 30)
    (tmp_path / "photos/0003.png").write_bytes(b"x")
    (tmp_path / "photos/0017.png").write_bytes(b"")
    (tmp_path / "photos/notes.txt").touch()
    write_onnx(tmp_path / "net.onnx", metadata={"classes": CLASSES})
    return tmp_path


def run(place, name="scores", model=None, **options):
    options = {"preprocessing": PLAIN, "batch_size": 4, "on_error": "skip"} | options
    return write_scores(model or place / "net.onnx", place / "photos", place / name, **options)


class StopError(KeyboardInterrupt):
    pass


def test_parts_have_a_thousand_inputs_or_whole_batches():
    for n, batch, sizes in [(2500, 1, [1000, 1000, 500]), (2500, 7, [1001, 1001, 498])]:
        parts = _divide((Input(str(i), "text") for i in range(n)), batch)
        assert [len(part.source) for part in parts] == sizes
        assert [part.name for part in parts] == ["part-000000", "part-000001", "part-000002"]


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet", "scores"])
def test_files_have_what_score_returns(place, name):
    done = run(place, name)
    scored = rs.recognition.score(
        place / "net.onnx", place / "photos", preprocessing=PLAIN, batch_size=4, on_error="skip"
    )
    ids, values, items, kind = read_scores(place / name)
    assert (ids, items, kind) == (scored.ids.tolist(), tuple(CLASSES), "multiclass")
    np.testing.assert_array_equal(values.astype(np.float32), scored.scores.values)
    assert (done.n_rows, done.n_done) == (28, 1 if "." in name else N_PARTS)
    assert done.skipped == list(scored.skipped)
    listed = place / ("scores.skipped.csv" if "." in name else "scores/_skipped.csv")
    with listed.open() as stream:
        rows = [(row["id"], row["input"]) for row in csv.DictReader(stream)]
    assert rows == [("0003.png", "yes"), ("0017.png", "yes"), ("notes.txt", "no")]
    with refuses("inputs", "0003.png"):
        run(place, name, on_error="stop", overwrite=True)
    if "." in name:
        before = (place / name).read_bytes()
        with refuses("output"):
            run(place, name)
        assert (place / name).read_bytes() == before
    for image in ("0003.png", "0017.png", "notes.txt"):
        (place / "photos" / image).unlink()
    assert run(place, name, overwrite=True).skipped == []
    assert not listed.exists()


@pytest.mark.parametrize("what", ["model", "preprocessing", "inputs"])
def test_parts_of_another_job_are_not_replaced(place, what):
    run(place)
    options = {}
    if what == "model":
        write_onnx(place / "net.onnx", metadata={"classes": CLASSES, "version": 2})
    elif what == "preprocessing":
        options["preprocessing"] = Preprocessing(8, 0.500001, 0.25, resize=8)
    else:
        shutil.copy(place / "photos/0002.png", place / "photos/0001.png")
        assert (run(place).n_done, run(place).n_kept) == (1, N_PARTS)
        return
    with refuses("output"):
        run(place, **options)
    assert run(place, **options, overwrite=True).n_done == N_PARTS


def test_a_stopped_run_goes_on(place, monkeypatch):
    run(place, "whole")
    with monkeypatch.context() as patched:
        stop_after(4, patched, StopError)
        with pytest.raises(StopError):
            run(place)
    parts = sorted((place / "scores").glob("part-*"))
    assert [file.name for file in parts] == [f"part-{i:06d}.parquet" for i in range(4)]
    with refuses("output"):
        run(place, seen=["r", "g", "b"])
    parts[2].unlink()
    done = run(place)
    assert (done.n_kept, done.n_done) == (3, N_PARTS - 3)
    for file in (place / "whole").iterdir():
        assert (place / "scores" / file.name).read_bytes() == file.read_bytes()
    rankings = {"a": CLASSES[:1], "b": CLASSES[1:]}
    rs.WeightedMean().fit(rs.Rankings.from_orders(rankings, items=CLASSES)).save(
        place / "h.rankshot"
    )
    assert classify(place / "scores", place / "h.rankshot", place / "predictions").n_rows == 28


def test_a_function_is_always_run_from_the_start(tmp_path):
    def run_function(**options):
        model = lambda batch: [[1.0, 2.0, 3.0] for _ in batch]  # noqa: E731
        return write_scores(model, list("abcdefgh"), tmp_path / "out", CLASSES, **options)

    run_function()
    assert (run_function().n_kept, run_function().n_rows) == (0, 8)


def test_parts_that_the_model_cannot_score_are_named_and_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(score_parts, "PART_INPUTS", 16)

    def model(batch):
        if batch == ["17"]:
            raise ValueError(batch)
        return [[1.0, 2.0, float(text)] for text in batch]

    texts = list(map(str, range(40)))
    with pytest.raises(ValueError, match="17"):
        write_scores(model, texts, tmp_path / "all", CLASSES, batch_size=1)
    found = write_scores(model, texts, tmp_path / "s", CLASSES, batch_size=1, on_error="skip")
    ((name, reason),) = found.failed
    assert ("17" in reason, name) == (True, "part-000001")
    ids, values, *_ = read_scores(tmp_path / "s")
    assert ids == [text for text in texts if not 16 <= int(text) < 32]
    assert values[:, 2].tolist() == list(map(float, ids))


def test_probabilities_stay_so_after_a_stop(place, monkeypatch):
    """Parts may have rows that alone do not say what they are."""
    write_onnx(place / "net.onnx", softmax=True, metadata={"classes": CLASSES})
    with monkeypatch.context() as patched:
        stop_after(2, patched, StopError)
        with pytest.raises(StopError):
            run(place)
    run(place)
    run(place, "s.parquet")
    np.testing.assert_array_equal(
        read_scores(place / "scores")[1], read_scores(place / "s.parquet")[1]
    )


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

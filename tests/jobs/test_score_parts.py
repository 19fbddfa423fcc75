"""Scores of a model on a local cluster of two processes: those of one process, to the last bit."""

import csv
import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

import rankshot as rs
from command_line import read_scores, run_well
from rankshot.jobs import classify, part_jobs, score, score_parts
from rankshot.jobs.part_jobs import JobError
from rankshot.jobs.score_parts import _divide, _read_packed, list_inputs
from rankshot.jobs.storage import fetch_part
from rankshot.recognition import Preprocessing, open_model
from rankshot.recognition.inputs import Input
from rankshot.recognition.scoring import plan_scoring
from tiny_models import CLASSES, PLAIN, write_images, write_onnx, write_text_onnx

pytestmark = pytest.mark.usefixtures("short_parts")
PREPARE = Preprocessing(**PLAIN)
KNOWN = "not an image (JPEG, PNG, GIF, WEBP, BMP, TIFF, PPM, AVIF are known)"
N, BATCH = 40, 2
"""Images, and how many of them are in a batch: more parts than one, of several batches."""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Images, one of them damaged, with a file beside them that is none."""
    folder = tmp_path_factory.mktemp("inputs") / "photos"
    write_images(folder, N)
    (folder / "0007.png").write_bytes(b"damaged")
    (folder / "notes.md").touch()
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch, photos):
    monkeypatch.chdir(tmp_path)
    write_onnx(tmp_path / "net.onnx")
    write_onnx(tmp_path / "softmax.onnx", softmax=True)
    (tmp_path / "classes.txt").write_text("\n".join(CLASSES))
    (tmp_path / "photos").symlink_to(photos)
    return tmp_path


def forget_models():
    """Let a worker open the next model again."""
    part_jobs._loaded.clear()


def run_parts(client, inputs="photos", model="net.onnx", output="out", **options):
    settings = {"preprocessing": PREPARE, "batch_size": BATCH, "on_error": "skip", **options}
    return score(model, inputs, output, CLASSES, executor=client, **settings)


def require_same_as_plain(inputs="photos", model="net.onnx"):
    run_parts(None, inputs, model, "plain.parquet")
    (ids, values, *about), (plain_ids, plain, *plain_about) = map(
        read_scores, ("out", "plain.parquet")
    )
    assert (ids, about) == (plain_ids, plain_about)
    assert values.dtype == plain.dtype
    np.testing.assert_array_equal(values, plain)


def read_skipped(path="out/_skipped.csv"):
    with Path(path).open(newline="") as stream:
        return list(csv.reader(stream))[1:]


@pytest.mark.parametrize(
    ("n", "batch", "sizes"),
    [
        # Eight parts, if each of them has 16 batches and at most 1,000 inputs.
        (4000, 1, [500] * 8),
        (100, 2, [32, 32, 32, 4]),
        (9000, 7, [1001] * 8 + [992]),
    ],
)
def test_parts_are_few_and_not_large(monkeypatch, n, batch, sizes):
    monkeypatch.undo()
    parts = _divide((Input(str(i), "text") for i in range(n)), batch)
    found = []
    for part in parts:
        with fetch_part(part) as entries:
            found.append(len(entries))
    assert found == sizes


# -------------------------------------------------------------------- the same scores


def test_the_first_scores_tell_for_all_parts_what_they_are(place, client):
    """Scores that only look like probabilities, at the beginning of a later part, are logits."""
    write_images(place / "few", 8)
    pixels = np.full((8, 8, 3), [143, 143, 160], np.uint8)
    pixels[:2, :, 2] = 161
    assert ((pixels.mean(axis=(0, 1)) / 255 - 0.5) / 0.25).sum() == pytest.approx(1, abs=1e-4)
    for number in (2, 3):
        Image.fromarray(pixels).save(f"few/{number:04d}.png")
    assert run_parts(client, "few").n_parts == 4
    require_same_as_plain("few")


def test_a_list_of_images(place):
    """Also with an image that is not there, and one that is named twice."""
    names = [f"photos/{i:04d}.png" for i in (3, 1, 2)]
    Path("list.txt").write_text("\n".join([*names, "photos/missing.png", names[0]]) + "\n")
    run = run_parts(None, "list.txt")
    require_same_as_plain("list.txt")
    assert (run.n_parts, run.n_rows) == (3, 3)
    assert [row[0] for row in read_skipped()] == ["photos/missing.png", names[0]]


def test_tables_of_texts_are_parts(place):
    """One part per table; a table without any text has a part without rows."""
    write_text_onnx(place / "texts.onnx")
    Path("texts/may").mkdir(parents=True)
    Path("texts/may/a.csv").write_text("text\nplay\nset\n")
    Path("texts/b.jsonl").write_text('{"text": "play", "id": "x1"}\n{"text": "", "id": "x2"}\n')
    Path("texts/c.csv").write_text('text\n""\n')
    run = score("texts.onnx", "texts", "out", on_error="skip")
    assert (run.n_parts, run.n_rows) == (3, 3)
    assert parquet.read_table("out/may/a.parquet").to_pydict() == {
        "id": ["may/a:0", "may/a:1"],
        "one": [1.0, 1.0],
        "two": [2.0, 2.0],
    }
    assert parquet.read_table("out/b.parquet")["id"].to_pylist() == ["x1"]
    assert parquet.read_table("out/c.parquet").to_pydict() == {"id": [], "one": [], "two": []}
    assert run.count_reasons() == {"no text in the column 'text'": 2}
    rankings = rs.Rankings.from_orders([["one"], ["two"]], items=["one", "two"], targets=["a", "b"])
    rs.WeightedMean().fit(rankings).save("new.rankshot")
    done = classify("out", "new.rankshot", "predictions")
    assert (done.n_rows, done.n_done, done.failed) == (3, 3, [])
    assert parquet.read_metadata("predictions/c.parquet").num_rows == 0


def test_the_command(place, client):
    crop = {"size": {"shortest_edge": 8}, "do_center_crop": True, "crop_size": 8, "resample": 2}
    config = {**crop, "image_mean": 0.5, "image_std": 0.25}
    (place / "plain.json").write_text(json.dumps(config))
    command = "score photos --model net.onnx --seen classes.txt --preprocessing plain.json "
    command += f"-o out --batch 16 --scheduler {client.scheduler.address}"
    out = run_well(command)
    assert "39 inputs written to out\n" in out
    assert "parts: 3 scored, 0 failed\n" in out


# -------------------------------------------------------------------- workers


@pytest.mark.slow
def test_a_worker_that_is_killed_costs_only_what_it_had(place, processes):
    marker = str(place / "killed")

    def die_once():
        write = score_parts.write_score_table

        def write_or_die(path, *arguments, **options):
            n_rows = write(path, *arguments, **options)
            if "part-000005" in str(path) and not Path(marker).exists():
                Path(marker).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return n_rows

        score_parts.write_score_table = write_or_die

    processes.run(die_once)
    run = run_parts(processes, model="softmax.onnx")
    processes.wait_for_workers(2, timeout=300)
    assert Path(marker).exists()
    # A part may be finished, and its worker dead before it could say so. There are 41 entries in
    # parts of one batch.
    assert (run.n_finished, run.failed, run.n_rows) == (21, [], N - 1)
    require_same_as_plain(model="softmax.onnx")
    assert read_skipped() == [
        ["0007.png", KNOWN, "yes"],
        ["notes.md", "not named like an image (.md)", "no"],
    ]
    assert run.count_reasons() == {"not an image": 1}
    assert run.count_reasons(is_input=False) == {"not named like an image": 1}
    assert run.counts == {"probabilities": N - 1}
    assert [path.name for path in Path("out").glob(".*")] == []


@pytest.mark.slow
def test_only_workers_with_a_gpu_score_if_there_are_any(place, processes):
    async def set_gpus(n, dask_worker):
        await dask_worker.set_resources(GPU=n)

    def has_model():
        return bool(part_jobs._loaded)

    processes.run(forget_models)
    chosen, other = processes.scheduler_info()["workers"]
    processes.run(set_gpus, 1, workers=[chosen])
    run_parts(processes)
    assert processes.run(has_model) == {chosen: True, other: False}
    processes.run(set_gpus, 0, workers=[chosen])
    run_parts(processes, again=True, batch_size=4)
    assert processes.run(has_model) == {chosen: True, other: True}


@pytest.mark.slow
def test_a_worker_without_the_model_ends_the_job(place, processes):
    """Before anything is written, and with a message that says where it happened."""

    def hide_model():
        forget_models()
        score_parts.open_model = lambda _: open_model("elsewhere.onnx")

    def show_model():
        score_parts.open_model = open_model

    processes.run(hide_model)
    try:
        with pytest.raises(
            rs.RankshotError, match=r"a worker cannot start: elsewhere.onnx: there is no"
        ):
            run_parts(processes)
    finally:
        processes.run(show_model)
    assert not Path("out").exists()


def test_an_image_that_a_worker_does_not_find_is_no_skipped_input(place):
    """It was there when the inputs were listed: skipping it would be a silent gap."""
    write_images(place / "few", 3)
    plan = plan_scoring("net.onnx", CLASSES, PREPARE)
    [part] = list_inputs(plan, "few", batch_size=3).parts
    Path("few/0001.png").unlink()
    with fetch_part(part) as source, pytest.raises(JobError, match=r"0001.png: a worker cannot"):
        list(_read_packed(source))


# -------------------------------------------------------------------- what is refused


def test_what_cannot_be_scored_is_refused_at_once(place):
    for model, inputs, output, message in [
        (len, "photos", "out", "workers open the model themselves"),
        ("net.onnx", "photos/*.csv", "out", "only text models accept datasets of tables"),
    ]:
        with pytest.raises(rs.RankshotError, match=message):
            score(model, inputs, output, CLASSES, preprocessing=PREPARE, workers=2)

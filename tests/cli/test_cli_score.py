"""``rankshot score``: from a model and inputs to a table that the other commands read."""

import json

import numpy as np
import pytest
from PIL import Image

from command_line import check_refused, rankshot, run_well
from rankshot.recognition import Preprocessing, score_parts
from rankshot.recognition.score_parts import read_origin
from rankshot.recognition.scoring import ScoringPlan
from rankshot.zeroshot import read_predictions
from rankshot.zeroshot.files.score_tables import open_scores
from tiny_models import (
    CLASSES,
    CONFIG,
    mean_colors,
    write_images,
    write_onnx,
    write_text_transformer,
)

PLAIN = "--preprocessing plain.json"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with photos and networks, as the current folder."""
    monkeypatch.chdir(tmp_path)
    write_images(tmp_path / "photos", 6)
    (tmp_path / "photos/bad.jpg").write_bytes(b"damaged")
    (tmp_path / "photos/notes.txt").touch()
    write_onnx(tmp_path / "net.onnx")
    (tmp_path / "plain.json").write_text(json.dumps(CONFIG))
    (tmp_path / "classes.txt").write_text("\n".join(CLASSES) + "\n")
    return tmp_path


def read(path):
    ((ids, scores),) = open_scores(path).batches()
    return ids.tolist(), scores


def test_a_network_and_a_folder(place):
    out = run_well(f"score photos --model net.onnx --seen classes.txt {PLAIN} -o s.parquet")
    assert "model: net.onnx, on CPU\n" in out
    assert (
        "preprocessing: shorter side to 8 (bilinear), middle 8 x 8, minus 0.5, divided by 0.25, "
        "NCHW\n" in out
    )
    assert "6 inputs written to s.parquet\n" in out
    assert "skipped 1 input: 1 not an image; not inputs: 1 not named like an image; all" in out
    assert "all are listed in s.skipped.csv" in out
    ids, scores = read("s.parquet")
    prepare = Preprocessing(8, 0.5, 0.25, resize=8)
    wanted = mean_colors([prepare(Image.open(place / "photos" / name)) for name in ids])
    np.testing.assert_allclose(scores.values, wanted, atol=1e-5)
    assert scores.items == tuple(CLASSES)
    assert len((place / "s.skipped.csv").read_text().splitlines()) == 3


def test_features_are_kept_and_serve_examples(place):
    """In one table and in parts; the tiny network's last layer gets the mean colours."""
    with_net = f"--model net.onnx --seen classes.txt {PLAIN}"
    out = run_well(f"score photos {with_net} -o s.parquet")
    assert "features: 3 per input, the input of the model's last layer (`rankshot score " in out
    ((ids, scores),) = open_scores("s.parquet").batches(features=True)
    np.testing.assert_allclose(scores.features, scores.values, atol=1e-6)
    out = run_well(f"score photos {with_net} -o s.csv")
    assert "features: none: CSV has one column per class; write .parquet to keep them" in out
    done = rankshot(f"score photos {with_net} --no-features -o s.parquet")
    assert done.status == 2
    out = run_well(f"score photos {with_net} --no-features --again -o plain.parquet")
    assert "features" not in out
    assert open_scores("plain.parquet").n_features == 0
    lists = [{"target": "fire", "ranking": ["red"]}, {"target": "sky", "ranking": ["blue"]}]
    (place / "r.jsonl").write_text("\n".join(map(json.dumps, lists)))
    (place / "labels.csv").write_text(f"id,label\n{ids[0]},fire\n{ids[1]},sky\n")
    words = "--rankings r.jsonl --examples labels.csv"
    out = run_well(f"classify s.parquet {words} -o one.csv")
    assert "examples: 2, compared by 3 features" in out
    assert "features" not in run_well(f"classify plain.parquet {words} -o two.csv")
    run_well(f"fit --seen s.parquet {words} -o h.rankshot")
    run_well(f"score photos {with_net} --workers 1 -o parts")
    run_well("classify parts --head h.rankshot --workers 1 -o predicted")
    whole = read_predictions("one.csv")
    (part,) = (place / "predicted").glob("*.parquet")
    np.testing.assert_allclose(read_predictions(part).proba, whole.proba, atol=1e-6)
    assert "3 features, and " in rankshot("classify plain.parquet --head h.rankshot -o n.csv").err
    run_well("suggest s.parquet --head h.rankshot -n 2 -o todo.csv")
    run_well("explain s.parquet --head h.rankshot")
    shown = run_well("export h.rankshot --attach net.onnx -o new.onnx")
    assert "the 3 features are the input of the last layer of net.onnx" in shown


def test_what_the_network_itself_says_is_printed(place):
    out = run_well(f"score photos --model net.onnx --seen classes.txt {PLAIN} -o s.csv")
    _, scores = read("s.csv")
    first = np.bincount(scores.values.argmax(axis=1)).max() / 6
    assert "top predictions of the model itself (6 inputs): " in out
    assert f" {first:.0%}" in out
    assert "; mean top probability ." in out
    run_well(f"score photos --model net.onnx --seen classes.txt {PLAIN} --workers 1 -o parts")
    for path in ("s.csv", "parts"):
        origin = read_origin(place / path)
        assert origin["model"] == "net.onnx, on CPU"
        assert origin["preprocessing"].startswith("shorter side to 8")
        assert origin["skipped inputs"] == "1 not an image"
    assert read_origin(place / "photos") == {}


def stop_at_batch(monkeypatch, last):
    calls, call = [], ScoringPlan._call

    def stop(plan, batch):
        calls.append(1)
        if len(calls) == last:
            raise KeyboardInterrupt
        return call(plan, batch)

    monkeypatch.setattr(ScoringPlan, "_call", stop)


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of one batch."""
    monkeypatch.setattr(score_parts, "MIN_BATCHES", 1)


@pytest.mark.parametrize("again", ["", " --again"])
@pytest.mark.usefixtures("short_parts")
def test_what_is_kept_after_ctrl_c(place, monkeypatch, again):
    command = f"score photos --model net.onnx --seen classes.txt {PLAIN} --batch 2 -o s.csv"
    # The first batch alone tells what the scores are.
    stop_at_batch(monkeypatch, 4)
    done = rankshot(command + again)
    assert done.status == 130
    assert "parts: 2 scored, 2 finished earlier, 0 failed" in run_well(command)


@pytest.mark.slow
def test_texts(place):
    write_text_transformer(place / "bert")
    (place / "t.csv").write_text("id,request\na,play music\nb,\nc,set alarm\n")
    out = run_well("score t.csv --model ./bert -o s.csv")
    assert "model: ./bert, on CPU" in out
    assert "preprocessing" not in out
    assert "skipped 1 input: 1 no text in the column 'request'; all are listed" in out
    done = rankshot("score t.csv --model ./bert --preprocessing imagenet -o other.csv")
    assert "./bert: takes texts, which need no preprocessing" in done.err
    assert read("s.csv")[0] == ["a", "c"]


REFUSED = {
    "photos --model net.onnx -o s.csv": "seen",
    "photos --model net.onnx --seen classes.txt -o s.csv": "preprocessing",
    f"photos --model net.onnx {PLAIN} -o s.csv": "seen",
    "photos --model net.onnx --preprocessing imagnet -o s.csv": "seen",
    "photos --model net.onnx -o s.txt": "s.txt",
    "photo --model net.onnx -o s.csv": "photo",
    "photos --model net.pt -o s.csv": "model",
    "photos --model net.onnx --batch 0 -o s.csv": "batch",
    f"empty --model net.onnx --seen classes.txt {PLAIN} -o s.csv": "inputs",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_wrong_is_said_and_nothing_is_written(place, words):
    (place / "empty").mkdir()
    check_refused(place, f"score {words}", {}, REFUSED[words])


@pytest.mark.usefixtures("short_parts")
def test_after_a_bad_input_the_same_command_may_skip_it(place):
    command = f"score photos --model net.onnx --seen classes.txt {PLAIN} --batch 2 -o s.csv"
    assert rankshot(f"{command} --on-error stop").status == 2
    assert (place / "s.csv.parts").is_dir()
    assert "parts: 1 scored, 3 finished earlier, 0 failed" in run_well(command)
    assert not (place / "s.csv.parts").exists()
    assert len(read("s.csv")[0]) == 6
    assert "bad.jpg" in rankshot(f"{command} --on-error stop").err

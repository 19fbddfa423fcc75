"""`recognise` of the command and of Python: the same labels, probabilities and notes."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import read_csv, run_well
from rankshot.zeroshot import open_scores
from tiny_models import CONFIG, write_images, write_onnx

CLASSES = ["leopard", "bus", "daisy"]
RANKINGS = rs.Rankings.from_orders(
    [["leopard", "daisy"], ["bus", "leopard"], ["daisy", "bus"], ["leopard", "bus"]],
    items=CLASSES,
    targets=["cat", "truck", "tulip", "cat"],
    sources=["panel", "panel", "panel", "table"],
    raters=["a", "a", "a", None],
)
CASES = {
    "rankings alone": ("--batch no", {"batch": False}),
    "the batch": ("--batch yes", {"batch": True}),
    "the batch, if possible": ("", {}),
    "seen classes": ("--classes all", {"classes": "all"}),
    "none of these": ("--classes new-or-none", {"none": True}),
    "all or none": (
        "--classes all-or-none --rehearse seen.csv",
        {"classes": "all", "none": True, "reference": None},
    ),
    "a reference": ("--rehearse seen.csv --batch no", {"reference": None, "batch": False}),
    "examples": ("--examples labels.csv", {"examples": None}),
    "evidence": ("--evidence evidence.csv --batch no", {"evidence": None, "batch": False}),
    "all of these": (
        "--rehearse seen.csv --examples labels.csv --evidence evidence.csv",
        {"reference": None, "examples": None, "evidence": None},
    ),
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Photographs of new and of seen classes, a network, rankings, labels and evidence."""
    monkeypatch.chdir(tmp_path)
    write_images(Path("photos"), 18)
    write_images(Path("seen"), 12, seed=1)
    write_onnx(Path("net.onnx"), metadata={"classes": CLASSES})
    Path("preprocessor_config.json").write_text(json.dumps(CONFIG))
    rs.write_rankings(RANKINGS, "rankings.jsonl")
    seen = [f"seen/{i:04d}.png,{CLASSES[i % 3]}" for i in range(12)]
    Path("seen.csv").write_text("\n".join(["path,label", *seen]))
    labels = [f"{i:04d}.png,{name}" for i, name in enumerate(["cat", "truck", "tulip"])]
    Path("labels.csv").write_text("\n".join(["id,label", *labels]))
    numbers = np.random.default_rng(0).normal(size=(18, 3)).round(3)
    rows = [",".join([f"{i:04d}.png", *map(str, row)]) for i, row in enumerate(numbers.tolist())]
    Path("evidence.csv").write_text("\n".join(["id,cat,truck,tulip", *rows]))
    return numbers


@pytest.mark.parametrize(("words", "given"), CASES.values(), ids=CASES)
def test_the_command_and_python_agree(place, words, given):
    base = "recognise photos --model net.onnx --rankings rankings.jsonl --folder kept -o out.csv"
    out = run_well(f"{base} {words}")
    _, scores = next(open_scores("kept/scores").batches(features=True))
    more = dict(given)
    if "reference" in more:
        _, usual = next(open_scores("kept/labelled").batches(features=True))
        more["reference"] = usual, np.resize(CLASSES, 12)
    if more.pop("evidence", scores) is None:
        evidence = rs.Scores(place, ["cat", "truck", "tulip"])
        scores = rs.Scores(scores.values, CLASSES, features=scores.features, evidence=evidence)
    if "examples" in more:
        more["examples"] = scores[:3], ["cat", "truck", "tulip"]
    found = rs.recognise(scores, RANKINGS, **more)
    written = rs.zeroshot.read_predictions("out.csv")
    assert written.labels.tolist() == found.labels.tolist()
    assert written.targets == tuple(found.head.classes_)
    np.testing.assert_allclose(written.proba, found.proba, rtol=2e-6, atol=1e-9)
    lines = out.splitlines()
    assert [note for note in found.notes if note not in lines] == []
    assert [row["id"] for row in read_csv("out.csv")] == [f"{i:04d}.png" for i in range(18)]
    # The head that is kept decides as the one in memory, without another fit.
    again = rs.load_head("kept/out.rankshot")
    np.testing.assert_allclose(again.predict_proba(scores), found.proba, rtol=2e-6, atol=1e-9)

"""What the README claims beyond its examples, which run as doctests."""

import re
from pathlib import Path

import numpy as np
import pytest

import rankshot as rs
from command_line import LOGITS, rankings, run_well, write_scores
from tiny_models import write_onnx, write_pictures

ROOT = Path(__file__).parents[1]


def test_the_percentages_in_the_picture_come_from_its_scores_and_rankings():
    picture = (ROOT / "docs" / "images" / "idea.svg").read_text(encoding="utf-8")
    text = re.sub(r"<[^>]+>", "", picture.replace("</text>", "\n").replace("&gt;", ">"))
    orders = {
        target: [item.strip() for item in order.split(">")]
        for target, order in re.findall(r"^\s*(\w+): (.+ > .+)$", text, re.MULTILINE)
    }
    shares = {"leopard": 46, "tiger": 28, "wolf": 15, "bus": 5, "tank": 4, "lawn mower": 2}
    for share in (*shares.values(), 56, 42, 2):
        assert f">{share} %<" in picture
    rankings = rs.Rankings.from_orders(list(orders.values()), items=shares, targets=list(orders))
    head = rs.WeightedMean().fit(rankings)
    proba = head.predict_proba(np.log([list(shares.values())]))[0]
    assert head.classes_.tolist() == ["cat", "dog", "truck"]
    assert (100 * proba).round().tolist() == [56, 42, 2]


def test_the_first_screen_has_all_that_a_visitor_needs():
    first_screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:40]
    text = "\n".join(first_screen)
    for part in (
        "pip install",
        "ZeroShotClassifier",
        "![",
        "docs/guide/zeroshot.md",
        "docs/guide/ranking.md",
    ):
        assert part in text


def test_the_commands_for_a_network_and_a_folder_run_as_printed(tmp_path, monkeypatch):
    """Every command of the first section on the command line that names the file network.onnx."""
    for package in ("onnx", "onnxruntime", "ndonnx", "PIL", "pyarrow"):
        pytest.importorskip(package)
    monkeypatch.chdir(tmp_path)
    write_onnx("network.onnx", shape=("n", 3, 224, 224), extra=997)
    ids = write_pictures(Path("photos"), 6)
    Path("new.txt").write_text("okapi\nmenorah\npagoda\n", encoding="utf-8")
    truth = "\n".join(f"{name},okapi" for name in ids)
    Path("labels.csv").write_text(f"id,label\n{truth}\n", encoding="utf-8")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## On the command line")[1].split("### ")[0]
    commands = re.findall(r"^rankshot (.+?)(?:\s+#.*)?$", section, re.MULTILINE)
    run = [command for command in commands if "efficientnet" not in command]
    assert [command.split()[0] for command in run] == [
        *("recognise", "export", "score", "rank", "classify", "report")
    ]
    for command in run:
        run_well(command)
    for name in ("predictions.csv", "zero-shot.onnx", "scores.parquet", "report.html"):
        assert Path(name).stat().st_size > 100


def test_the_commands_for_many_machines_run_as_printed(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.chdir(tmp_path)
    rs.write_rankings(rankings(), "rankings.jsonl")
    Path("scores").mkdir()
    for number in range(2):
        write_scores(Path(f"scores/part-{number}.parquet"), LOGITS, ids=[])
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split("## On many machines")[1].split("## ")[0]
    commands = re.findall(r"^rankshot (.+?)(?:\s+#.*)?$", section, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["fit", "classify"]
    for command in commands:
        run_well(command)
    assert sorted(path.name for path in Path("predictions").glob("part-*")) == [
        *("part-0.parquet", "part-1.parquet")
    ]

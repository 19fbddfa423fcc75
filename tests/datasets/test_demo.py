"""The demonstration: its numbers, its table and its page."""

import numpy as np
import pytest

import rankshot as rs
from command_line import rankshot, run_well
from rankshot.datasets import load_photographs
from rankshot.datasets.demo import DR, DS, PR, demo_report, run_demo, write_demo
from rankshot.datasets.example_files import EXAMPLE_FILES
from rankshot.pages import render_report
from rankshot.zeroshot.metrics import reliability
from refusals import refuses

TOLERANCE = 0.01
"""Other processors and libraries round otherwise, and move some images across a border."""

# The figures of one run.
EXPECTED = {
    (DS, "WordNet"): 0.288,
    (DS, "GloVe"): 0.347,
    (DS, "Wikipedia"): 0.391,
    (DR, "WordNet"): 0.237,
    (DR, "GloVe"): 0.264,
    (DR, "Wikipedia"): 0.354,
    (PR, "WordNet"): 0.245,
    (PR, "GloVe"): 0.329,
    (PR, "Wikipedia"): 0.409,
    (PR, "linguistic"): 0.440,
    (PR, "panel"): 0.464,
    ("ConSE", "GloVe"): 0.310,
    ("Weighted Mean", "panel, similar + reference"): 0.514,
    ("Weighted Mean", "panel, contrast + reference"): 0.577,
    ("Weighted Mean", "panel, photographs + reference"): 0.570,
    ("Weighted Mean", "panel, all questions + reference"): 0.581,
}


@pytest.fixture(scope="module")
def demo():
    return run_demo()


def test_the_numbers(demo):
    found = {
        (method, source): accuracy.estimate
        for method, rows in demo.comparison.items()
        for source, accuracy in rows.items()
    }
    assert found == pytest.approx(EXPECTED, abs=TOLERANCE)
    assert list(found) == list(EXPECTED), "the order of the table"
    assert demo.seen_accuracy == pytest.approx(0.653, abs=TOLERANCE)


def test_the_command_writes_photographs_with_their_rankings_and_a_report(
    demo, monkeypatch, tmp_path
):
    def write_few(folder):
        for name in EXAMPLE_FILES:
            (folder / name).write_text("id,label\n")

    # Both train a classifier.
    monkeypatch.setattr("rankshot.datasets.demo.run_demo", lambda: demo)
    monkeypatch.setattr("rankshot.datasets.demo.write_example_files", write_few)
    monkeypatch.chdir(tmp_path)
    out = run_well("demo")
    # A second run replaces what the first has written.
    assert run_well("demo") == out
    folder = tmp_path / "rankshot-demo"
    names = {path.name for path in (folder / "photographs").iterdir()}
    assert names == {*load_photographs().ids.tolist()}
    assert len(rs.read_rankings(folder / "photographs.jsonl")) == len(names)
    assert "</html>" in (folder / "report.html").read_text("utf-8")
    assert "recognise rankshot-demo/photographs --model efficientnet-lite0" in out
    assert f"{demo.seen_accuracy:.1%}" in out
    assert str(demo.forecast.predicted) in out
    labels = folder / "labels.csv"
    labels.write_text(labels.read_text() + "x,cat\n")
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    with refuses("output", str(labels)):
        write_demo(folder, files_only=False, overwrite=False)
    assert {path: path.read_bytes() for path in folder.rglob("*.*")} == before
    (tmp_path / "thesis.txt").write_text("mine", "utf-8")
    assert rankshot("demo -o .").status == 2
    assert (tmp_path / "thesis.txt").read_text("utf-8") == "mine"


def test_the_page_shows_all_that_was_promised(demo):
    report = demo_report(demo)
    assert report.comparison == demo.comparison
    assert [card.target for card in report.consensuses] == demo.head.classes_.tolist()
    assert all(0 <= share <= 1 for card in report.consensuses for _, share in card.disagreement)
    assert report.evaluation.confusion.sum() == len(demo.truth) == 4000
    assert any(one.why for one in report.inputs)
    assert {one.label == one.truth for one in report.inputs} == {True, False}
    assert all(one.thumbnail and one.supporters for one in report.inputs)
    page = render_report(report)
    for text in ("Comparison", "Consensus", "Similar classes", "Explanations", "forecast"):
        assert text in page
    # The rehearsal chose the settings of the head.
    assert report.evaluation.accuracy.estimate == pytest.approx(0.559, abs=TOLERANCE)


def test_the_rehearsal_promises_what_comes_out(demo):
    assert len(demo.forecast.classes) == 20
    right = np.mean(demo.head.predict(demo.scores) == demo.truth)
    assert demo.forecast.predicted.low < right < demo.forecast.predicted.high
    proba = demo.head.predict_proba(demo.scores)
    found = reliability(demo.truth, proba, demo.head.classes_)
    assert found.expected_calibration_error < 0.05

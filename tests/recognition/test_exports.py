"""Results for Label Studio, and labels that come from it."""

import json
from xml.etree import ElementTree as ET

import pytest

import rankshot as rs
from rankshot.recognition.label_studio import match_ids, read_labels
from refusals import refuses

NEW = {"volume": ["music"], "timer": ["alarm"]}


def recognise(inputs, **options):
    def run(some):
        return [[str(one).count("s"), str(one).count("b")] for one in some]

    return rs.recognise(inputs, NEW, model=run, seen=["music", "alarm"], **options)


@pytest.fixture
def texts():
    model = rs.recognition.Model("m", "texts", lambda some: [[len(x), 3] for x in some])
    return rs.recognise(["a song", "b"], NEW, model=model, seen=["music", "alarm"])


def test_label_studio_and_back(texts, tmp_path):
    tasks = texts.to_label_studio(tmp_path / "tasks.json")
    assert tasks == json.loads((tmp_path / "tasks.json").read_text())
    assert [task["data"] for task in tasks] == [
        {"id": "0", "text": "a song"},
        {"id": "1", "text": "b"},
    ]
    [prediction] = tasks[0]["predictions"]
    assert 0 < prediction["score"] <= 1
    config = ET.parse(tmp_path / "tasks.xml").getroot()
    controls = {one.get("name"): one for one in config}
    result = prediction["result"][0]
    choices = {choice.get("value") for choice in controls[result["from_name"]]}
    assert controls[result["from_name"]].get("toName") == result["to_name"] in controls
    assert {result["value"]["choices"][0]} < choices == {"volume", "timer"}
    with refuses("output"):
        texts.to_label_studio(tmp_path / "tasks.json")
    tasks[0]["annotations"] = [{"result": prediction["result"]}]
    (tmp_path / "labelled.json").write_text(json.dumps(tasks))
    found = recognise(["a song", "b"], examples=tmp_path / "labelled.json")
    assert found.knowledge.examples[1].tolist() == prediction["result"][0]["value"]["choices"]


def test_scores_alone_cannot_be_shown():
    found = rs.recognise(rs.Scores([[1.0, 0.0]], ["music", "alarm"]), NEW)
    with refuses("inputs"):
        found.to_label_studio()


TASK = '[{"data": {"image": "p"}, "annotations": [%s]}]'
CHOICE = '{"result": [{"value": {"choices": %s}}]}'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", "id,label\np,cat\nq.jpg,\n"),
        ("t.csv", "image,choice,annotator\np,cat,1\n"),
        ("t.json", TASK % (CHOICE % '["cat"]')),
    ],
)
def test_exported_labels(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    assert read_labels(tmp_path / name) == {"p": "cat"}


@pytest.mark.parametrize(
    "content",
    [
        *("{", "[" * 100_000, "[3]", '{"a": 1}', '[{"data": 3}]', "[]", TASK % ""),
        TASK % (CHOICE % '["a", "b"]'),
        TASK % (CHOICE % '["a"]') + ", " + TASK % (CHOICE % '["b"]'),
        '[{"data": {"id": 3}}]',
    ],
)
def test_bad_exports(tmp_path, content):
    (tmp_path / "t.json").write_text(content)
    with refuses("examples"):
        read_labels(tmp_path / "t.json")


def test_tables_of_scores_are_no_labels(tmp_path):
    (tmp_path / "s.csv").write_text("id,label,a,b\np,cat,1,2\n")
    assert read_labels(tmp_path / "s.csv") is None
    assert read_labels(tmp_path) is None


def test_cancelled_annotations_and_ambiguous_paths_are_not_labels(tmp_path):
    def annotate(label, **more):
        return {"result": [{"value": {"choices": [label]}}], **more}

    tasks = [
        {"data": {"id": "a"}, "annotations": [annotate("cat", was_cancelled=True)]},
        {"data": {"id": "b"}, "annotations": [annotate("x", was_cancelled=True), annotate("dog")]},
    ]
    path = tmp_path / "tasks.json"
    path.write_text(json.dumps(tasks))
    assert read_labels(path) == {"b": "dog"}
    ids = ["one/a.jpg", "two/a.jpg", "one/b.jpg"]
    names = ["a.jpg", "upload/b.jpg", "two/a.jpg"]
    assert match_ids(names, ids) == {"upload/b.jpg": "one/b.jpg", "two/a.jpg": "two/a.jpg"}

"""A run folder has all that was known, can be moved, and loses nothing that a person wrote."""

import json
import shutil

import numpy as np
import pytest

import rankshot as rs
from rankshot.recognition import open_run, run_folder
from rankshot.recognition.run_report import examine_run
from refusals import refuses

NAMES = ["a", "b", "c", "d"]
RANKINGS = {"x": ["a", "b"], "y": ["c", "d"]}


def run_model(inputs):
    return [[len(str(one)), 3, str(one).count("o"), 1] for one in inputs]


@pytest.fixture
def found(rng):
    tables = [rng.normal(size=(n, 4)) for n in (12, 15, 3)]
    inputs, reference, few = (rs.Scores(table, NAMES, features=table[:, :2]) for table in tables)
    return rs.recognise(
        inputs, RANKINGS, reference=(reference, rng.choice(NAMES, 15)), examples=(few, list("xyx"))
    )


def read_all(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_was_known_and_predicted_is_read_back_and_can_be_fitted_again(found, tmp_path):
    found.save(tmp_path / "run")
    (tmp_path / "run").rename(tmp_path / "moved")
    run = open_run(tmp_path / "moved")
    assert (run.labels.tolist(), run.ids.tolist()) == (found.labels.tolist(), found.ids.tolist())
    np.testing.assert_allclose(run.proba, found.proba, atol=1e-6)
    np.testing.assert_array_equal(run.head.predict_proba(run.knowledge.batch), found.proba)
    again = run.knowledge.fit(run.settings)
    np.testing.assert_allclose(again.predict_proba(run.knowledge.batch), found.proba, atol=1e-12)
    assert run.knowledge.reference[1].tolist() == found.knowledge.reference[1].tolist()
    assert run.notes == found.notes


def test_seen_classes_that_the_reference_lacks_are_named(tmp_path, rng):
    names = list("abcdefgh")
    usual = rs.Scores(6 * np.eye(8)[[0, 4] * 30] + rng.normal(size=(60, 8)), names)
    found = rs.recognise(usual, {"x": names[:4], "y": names[4:]}, reference=usual, batch=False)
    found.save(tmp_path)
    (text,) = (text for text, words in examine_run(tmp_path)[1] if "--reference" in words)
    assert "'a'" not in text
    assert "'e'" not in text
    assert "'b'" in text


@pytest.mark.parametrize(("seen", "new"), [("id", "features"), ("features", "id")])
@pytest.mark.parametrize("has_pyarrow", [True, False])
def test_classes_may_be_named_as_other_columns(tmp_path, monkeypatch, rng, has_pyarrow, seen, new):
    if not has_pyarrow:
        monkeypatch.setattr(run_folder, "find_spec", lambda name: None)
    names, other = (
        [seen, "label", "a", f"class {seen}"],
        rs.Scores(rng.normal(size=(9, 2)), [new, "y"]),
    )
    rankings = {new: [seen, "label"], "y": [f"class {seen}"]}
    for kind, columns in [("multiclass", 4), ("one-vs-one", 6)]:
        features = rng.normal(size=(21, 2)) if has_pyarrow else None
        scores = rs.Scores(rng.normal(size=(21, columns)), names, kind, features=features)
        inputs = scores[:9].with_blocks(features=scores[:9].features, evidence=other)
        found = rs.recognise(inputs, rankings, reference=(scores[9:], names * 3))
        found.save(tmp_path / kind)
        run = open_run(tmp_path / kind)
        (scores_file,) = (tmp_path / kind).glob("scores.*")
        # Whatever reads tables of scores reads these.
        assert rs.zeroshot.open_scores(scores_file).items == tuple(names)
        batch, known = run.knowledge.batch, found.knowledge.batch
        assert (batch.items, batch.evidence.items) == (known.items, known.evidence.items)
        np.testing.assert_allclose(batch.values, known.values)
        assert (run.labels.tolist(), run.head.seen) == (found.labels.tolist(), found.head.seen)
        assert run.knowledge.reference[1].tolist() == names * 3
        if has_pyarrow:
            np.testing.assert_array_equal(batch.features, known.features)


def test_a_changed_file_is_named_and_not_replaced(found, tmp_path):
    found.save(tmp_path)
    found.save(tmp_path)
    (tmp_path / "labels.csv").write_text("by a person")
    changed = tmp_path / "rankings.jsonl"
    changed.write_text(changed.read_text() + "\n")
    before = read_all(tmp_path)
    with refuses("output", str(changed)):
        found.save(tmp_path)
    assert read_all(tmp_path) == before
    found.save(tmp_path, overwrite=True)
    assert changed.read_text() == before["rankings.jsonl"].decode().removesuffix("\n")
    assert (tmp_path / "labels.csv").read_text() == "by a person"


def test_a_run_that_fails_leaves_the_old_one(found, tmp_path, monkeypatch):
    found.save(tmp_path)
    before = read_all(tmp_path)
    monkeypatch.setattr("rankshot.recognition.recognition.open_predictions", None)
    with pytest.raises(TypeError):
        found.save(tmp_path)
    assert read_all(tmp_path) == before


def test_what_is_no_run(found, tmp_path):
    with refuses("folder", str(tmp_path)):
        open_run(tmp_path)
    (tmp_path / "notes.txt").touch()
    with refuses("folder", str(tmp_path)):
        found.save(tmp_path)
    run = tmp_path / "run"
    found.save(run)
    content = json.loads((run / "run.json").read_text())
    for wrong in ({"format": "rankshot run 3"}, {"format": 3}, {"seen": 3}, {"files": []}):
        (run / "run.json").write_text(json.dumps(content | wrong))
        with refuses("folder"):
            open_run(run)
    (run / "run.json").write_text(json.dumps(content))
    (run / "head.rankshot").unlink()
    with refuses("folder", str(run)):
        open_run(run)


def test_inputs_are_kept_by_relative_paths(tmp_path):
    texts = rs.recognise(["one", "two oo"], RANKINGS, model=run_model, seen=NAMES)
    texts.save(tmp_path / "texts")
    assert '"text": "two oo"' in open_run(tmp_path / "texts").inputs.read_text()
    folder = tmp_path / "a"
    (folder / "photos").mkdir(parents=True)
    files = [folder / "photos" / f"{name}.txt" for name in "pq"]
    for file in files:
        file.write_text(file.name)
    found = rs.recognise(files, RANKINGS, model=run_model, seen=NAMES)
    found.save(folder / "run")
    shutil.copytree(folder, tmp_path / "b")
    shutil.rmtree(folder)
    run = open_run(tmp_path / "b" / "run")
    rows = [json.loads(line) for line in run.inputs.read_text().splitlines()]
    assert [row["id"] for row in rows] == run.ids.tolist()
    for row in rows:
        assert (run.folder / row["path"]).read_text() == row["path"].rpartition("/")[2]
    with_labels = rs.recognise(
        ["one", "two"], RANKINGS, model=run_model, seen=NAMES, examples={"1": "x", "0": "y"}
    )
    with_labels.save(tmp_path / "labels")
    assert open_run(tmp_path / "labels").labelled == {"1": "x", "0": "y"}


def test_a_file_that_was_changed_stays_when_the_new_run_has_none_of_its_name(tmp_path):
    scores = rs.Scores(np.random.default_rng(0).normal(size=(20, 4)), NAMES)
    labels = [NAMES[i % 3] for i in range(20)]
    rs.recognise(scores, RANKINGS, reference=(scores, labels)).save(tmp_path / "run")
    changed, untouched = tmp_path / "run/reference-labels.csv", tmp_path / "run/reference.parquet"
    changed.write_text("id,label\n0,mine\n")
    assert untouched.exists()
    rs.recognise(scores, RANKINGS).save(tmp_path / "run")
    assert changed.read_text() == "id,label\n0,mine\n"
    assert not untouched.exists()
    assert open_run(tmp_path / "run").knowledge.reference is None

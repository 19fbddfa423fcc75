"""Results are written over no file that a person has written or changed."""

import csv
from dataclasses import replace

import pytest
from small_review import RANKINGS, make_scores

import rankshot as rs
from rankshot.recognition import open_run
from rankshot.review.learning import suggest_for_run
from rankshot.review.results import HEAD, LABELS, MANIFEST, PREDICTIONS, Results
from refusals import refuses


@pytest.mark.parametrize("name", [LABELS, HEAD, PREDICTIONS])
def test_a_file_that_was_there_is_refused_at_the_start(review, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with refuses("output", str(tmp_path / name)):
        Results(review, tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert not (tmp_path / MANIFEST).exists()
    Results(review, tmp_path, overwrite=True).write(name)
    assert (tmp_path / name).read_bytes() != b"mine"
    Results(review, tmp_path).write(name)


def test_a_file_that_was_changed_is_refused_now_and_later(review, tmp_path):
    results = Results(review, tmp_path)
    results.write_all()
    review.set_labels({0: "cat"})
    results.write_all()
    with (tmp_path / LABELS).open("a") as stream:
        stream.write("x1,dog\n")
    changed = (tmp_path / LABELS).read_text()
    for attempt in (results.write_all, lambda: Results(review, tmp_path)):
        with refuses("output", str(tmp_path / LABELS)):
            attempt()
    assert (tmp_path / LABELS).read_text() == changed
    Results(review, tmp_path, overwrite=True).write_all()
    assert (tmp_path / LABELS).read_text() == "id,label\nx0,cat\n"


# ---- Tables to fill in


def test_a_table_has_the_inputs_whose_labels_help_most_and_replaces_none(tmp_path):
    rs.recognise(make_scores(40)[0], RANKINGS).save(tmp_path / "run")
    run, path = open_run(tmp_path / "run"), tmp_path / "labels.csv"
    assert suggest_for_run(run, path, 5) == 5
    rows = list(csv.DictReader(path.read_text().splitlines()))
    best = rs.zeroshot.suggest(run.knowledge.batch, 5)
    assert [row["id"] for row in rows] == run.ids[best].tolist()
    assert [row["guess"] for row in rows] == run.labels[best].tolist()
    assert [float(row["probability"]) for row in rows] == run.proba[best].max(axis=1).round(
        3
    ).tolist()
    assert {row["label"] for row in rows} == {""}
    with refuses("csv", str(path)):
        suggest_for_run(run, path, 5)
    path.unlink()
    known = replace(run, labelled={"3": "cat"})
    assert suggest_for_run(known, path, 100) == 39
    path.unlink()
    with refuses("csv", str(path)):
        suggest_for_run(replace(run, labelled=dict.fromkeys(run.ids, "cat")), path, 5)
    with refuses("number", 0):
        suggest_for_run(run, path, 0)

"""Results are written over no file that a person has written or changed."""

import csv
from dataclasses import replace

import pytest
from small_review import RANKINGS, make_scores

import rankshot as rs
from rankshot.core.files import remember_own
from rankshot.recognition import open_run
from rankshot.review.inputs import ShownInputs
from rankshot.review.learning import suggest_for_run
from rankshot.review.results import HEAD, LABELS, MANIFEST, PREDICTIONS, REPORT, Results
from refusals import refuses

FILES = (LABELS, HEAD, PREDICTIONS, REPORT)


def make_results(review, folder, **options):
    inputs = ShownInputs(review.ids, review.learner.scores)
    return Results(review, inputs, folder, **options)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_was_there_is_refused_at_the_start(review, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with refuses("output", str(tmp_path / name)):
        make_results(review, tmp_path)
    assert (tmp_path / name).read_text() == "mine"
    assert not (tmp_path / MANIFEST).exists()
    make_results(review, tmp_path, overwrite=True).write(name)
    assert (tmp_path / name).read_bytes() != b"mine"
    make_results(review, tmp_path).write(name)


def test_a_file_that_was_changed_is_refused_now_and_later(review, tmp_path):
    results = make_results(review, tmp_path)
    results.write_all()
    review.set_labels({0: "cat"})
    results.write_all()
    with (tmp_path / LABELS).open("a") as stream:
        stream.write("x1,dog\n")
    changed = (tmp_path / LABELS).read_text()
    for attempt in (results.write_all, lambda: make_results(review, tmp_path)):
        with refuses("output", str(tmp_path / LABELS)):
            attempt()
    assert (tmp_path / LABELS).read_text() == changed
    make_results(review, tmp_path, overwrite=True).write_all()
    assert (tmp_path / LABELS).read_text() == "id,label\nx0,cat\n"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_a_file_is_written_refuses_nothing(review, tmp_path, monkeypatch, when):
    """Just before or after the manifest is replaced, but not yet the file."""
    make_results(review, tmp_path).write_all()
    review.set_labels({0: "cat"})
    results = make_results(review, tmp_path)

    def die(*what):
        if when == "after":
            remember_own(*what)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("rankshot.core.files.remember_own", die)
        with pytest.raises(KeyboardInterrupt):
            results.write(LABELS)
    make_results(review, tmp_path).write_all()
    assert (tmp_path / LABELS).read_text() == "id,label\nx0,cat\n"


def test_the_folder_can_be_moved(review, tmp_path):
    (tmp_path / "one").mkdir()
    make_results(review, tmp_path / "one").write_all()
    (tmp_path / "one").rename(tmp_path / "two")
    make_results(review, tmp_path / "two").write_all()


# ---- Tables to fill in


@pytest.fixture
def suggest(tmp_path):
    """A function that adds suggestions of a run to a table."""
    rs.recognise(make_scores(40)[0], RANKINGS).save(tmp_path / "run")
    run = open_run(tmp_path / "run")
    return lambda path, number=5, **values: suggest_for_run(replace(run, **values), path, number)


def read(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_labels_that_were_filled_in_stay(suggest, tmp_path):
    path = tmp_path / "labels.csv"
    assert suggest(path) == 5
    first = read(path)
    assert [row["label"] for row in first] == [""] * 5
    assert suggest(path) == 5
    assert read(path) == first
    text = path.read_text().replace("\n", ",remark\n", 1).replace(",\n", ",dog,a dog?\n", 2)
    path.write_text(text.replace(",\n", ",,\n"))
    filled = read(path)
    assert suggest(path) == 5
    again = read(path)
    assert again[:5] == filled
    assert len({row["id"] for row in again}) == len(again) == 7
    assert [row["label"] for row in again] == ["dog", "dog", *[""] * 5]
    assert suggest(path, number=2) == 5
    assert read(path) == again


def test_labels_from_elsewhere_are_in_the_table(suggest, tmp_path):
    path = tmp_path / "labels.csv"
    suggest(path, number=1, labelled={"3": "cat"})
    first = read(path)[0]
    assert (first["id"], first["label"]) == ("3", "cat")
    assert suggest(path, number=100, labelled={"3": "cat"}) == 39


def test_another_file_is_refused(suggest, tmp_path):
    path = tmp_path / "thesis.csv"
    path.write_text("name\nmine\n")
    with refuses("csv", str(path)):
        suggest(path)
    assert path.read_text() == "name\nmine\n"

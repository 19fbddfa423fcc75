"""A run folder is reviewed and reported as it was recognised, wherever it is."""

import numpy as np
import pytest
from small_review import ORDERS, make_scores

import rankshot as rs
from asgi import Client
from rankshot.recognition import Preprocessing, open_run
from rankshot.recognition.run_report import explain_run, report_run
from rankshot.review.inputs import find_inputs
from rankshot.review.serve import review_run, serve_review
from refusals import refuses
from tiny_models import mean_colors, write_images

RANKINGS = dict(zip(("cat", "dog", "truck"), ORDERS, strict=True))


@pytest.fixture
def run(tmp_path):
    scores, _ = make_scores(40)
    rs.recognise(scores, RANKINGS).save(tmp_path / "run")
    return open_run(tmp_path / "run")


@pytest.mark.parametrize("batch", [True, False])
def test_a_review_begins_with_the_predictions_of_the_run(tmp_path, batch):
    found = rs.recognise(make_scores(60)[0], RANKINGS, batch=batch)
    found.save(tmp_path)
    reviewed = review_run(open_run(tmp_path))
    predicted = reviewed.learner.fit({}, {})
    assert reviewed.inputs.ids == found.ids.tolist()
    assert predicted.labels.tolist() == found.labels.tolist()
    np.testing.assert_allclose(predicted.proba, found.proba.max(axis=1), atol=1e-9)
    assert reviewed.inputs.find_kind(0) == "row"


def test_images_are_found_where_the_run_was_moved(tmp_path):
    write_images(tmp_path / "one" / "photos", n=6)
    found = rs.recognise(
        tmp_path / "one" / "photos",
        {"poppy": ["red"], "grass": ["green"]},
        model=mean_colors,
        preprocessing=Preprocessing(8, 0, 1),
        seen=["red", "green", "blue"],
    )
    found.save(tmp_path / "one" / "run")
    (tmp_path / "one").rename(tmp_path / "two")
    photos = sorted((tmp_path / "two" / "photos").rglob("*.*"))
    photos[3].unlink()
    reviewed = review_run(open_run(tmp_path / "two" / "run"))
    inputs = reviewed.inputs
    kinds = [inputs.find_kind(row) for row in range(len(found.ids))]
    assert sorted(kinds) == ["image"] * (len(photos) - 1) + ["row"]
    assert len(reviewed.notes) == 1
    assert inputs.read_thumbnail(kinds.index("image")).data
    page = report_run(open_run(tmp_path / "two" / "run"))
    assert page.inputs
    assert str(tmp_path) not in str(page)


def test_inputs_are_found_in_tables_and_folders(tmp_path):
    write_images(tmp_path / "photos", n=2)
    one, two = sorted((tmp_path / "photos").rglob("*.png"))
    (tmp_path / "texts.csv").write_text('id,text\na,"one, two"\nb,three\n')
    (tmp_path / "paths.csv").write_text(f"id,path\na,{one.relative_to(tmp_path)}\nb,{two}\n")
    ids = ["a", "b"]
    assert find_inputs(ids, tmp_path / "texts.csv") == {"a": "one, two", "b": "three"}
    found = find_inputs(ids, tmp_path / "paths.csv")
    assert {name: path.resolve() for name, path in found.items()} == {"a": one, "b": two}
    for place in (one.parent, one):
        assert find_inputs([one.stem, two.name, "c"], place) == {one.stem: one, two.name: two}


@pytest.mark.parametrize("token", [None, "a token of the tests"])
def test_the_page_opens_by_its_address_and_a_secret_of_ones_own_is_not_printed(
    run, tmp_path, monkeypatch, token
):
    monkeypatch.delenv("RANKSHOT_REVIEW_TOKEN", raising=False)
    if token:
        monkeypatch.setenv("RANKSHOT_REVIEW_TOKEN", token)
    said, opened, replies = [], [], []

    def ask(app, port):
        number = port.getsockname()[1]
        assert opened[0].startswith(f"http://127.0.0.1:{number}/?token=")
        for host in (f"127.0.0.1:{number}", f"localhost:{number}", "proxy.example"):
            client = Client(app, headers={"host": host})
            reply = client.get(f"/?{opened[0].partition('?')[2]}".replace(" ", "+"))
            replies.append((reply.status, client.get("/").status))

    learned = []
    monkeypatch.setattr("rankshot.review.serve.serve", ask)
    monkeypatch.setattr(
        "rankshot.review.session.Review.start", lambda _, write: learned.append(write)
    )
    monkeypatch.setattr("webbrowser.open", opened.append)
    folder = tmp_path / "run" / "review"
    options = {"overwrite": False, "open_browser": True, "say": said.append}
    serve_review(review_run(run), folder, title="t", host="127.0.0.1", port=0, **options)
    assert replies == [(303, 200)] * 2 + [(303, 200) if token else (421, 421)]
    assert any(opened[0] in line for line in said) == (token is None)
    (folder / "labels.csv").unlink()
    learned[0]()
    assert (folder / "labels.csv").read_text() == "id,label\n"
    assert not any("a token of the tests" in line for line in said)
    assert (folder / "predictions.csv").exists()
    if token is None:
        with refuses("host", "0.0.0.0"):
            serve_review(review_run(run), folder, title="t", host="0.0.0.0", port=0, **options)


def test_inputs_of_another_folder_are_refused(run, tmp_path):
    (tmp_path / "empty").mkdir()
    with refuses("inputs", str(tmp_path / "empty")):
        review_run(run, tmp_path / "empty")


def test_a_report_of_a_run(run, tmp_path):
    page = report_run(run)
    assert page.overview.n_inputs == 40
    assert {one.why.target for one in page.inputs if one.why} <= {*RANKINGS}
    assert [card.target for card in page.consensuses] == sorted(RANKINGS)
    truth = make_scores(40)[1]
    rows = [f"{name},{label}\n" for name, label in zip(run.ids, truth, strict=True)]
    (tmp_path / "truth.csv").write_text("".join(["id,label\n", *rows[:30]]))
    some = report_run(run, tmp_path / "truth.csv")
    assert sum(some.evaluation.n_inputs) == 30
    assert some.evaluation.accuracy.estimate == np.mean(run.labels[:30] == truth[:30])
    (tmp_path / "truth.csv").write_text("id,label\n0,okapi\n")
    with refuses("truth", "okapi"):
        report_run(run, tmp_path / "truth.csv")


def test_some_inputs_of_a_run_are_explained(run):
    found = explain_run(run, ["3", "0"], against="truck")
    assert list(found) == ["3", "0"]
    scores = run.knowledge.batch[[3]]
    assert str(found["3"]) == str(rs.explain(run.head, scores, against="truck")[0])
    with refuses("ids", "99"):
        explain_run(run, ["99"])

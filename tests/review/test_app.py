"""Requests to the application: access, hostile names and paths, refusals, files."""

import csv
import io
import json
import wave
from types import SimpleNamespace

import pytest
from PIL import Image
from small_review import SEEN, TOKEN, make_scores, open_review

import rankshot as rs
from asgi import Client
from rankshot.review.app import create_app
from rankshot.review.inputs import ShownInputs, find_inputs
from rankshot.review.results import Results

HOST = "127.0.0.1:8000"
BAD = "<img src=x onerror=alert(1)>"
NAMES = [BAD + ".png", "../secret.png", "/etc/passwd", "link.png", 'b/ü &amp; ".png', "clip.wav"]
NAMES += ["missing.png", "broken.png"]


@pytest.fixture
def folder(tmp_path):
    """Inputs with odd names, beside a file that must never be served."""
    inputs = tmp_path / "inputs"
    (inputs / "b").mkdir(parents=True)
    image = Image.new("RGB", (300, 200), "red")
    for place in ("secret.png", 'inputs/b/ü &amp; ".png'):
        image.save(tmp_path / place)
    (inputs / NAMES[0].replace("/", "_")).write_bytes((tmp_path / "secret.png").read_bytes())
    (inputs / "link.png").symlink_to(tmp_path / "secret.png")
    (inputs / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    with wave.open(str(inputs / "clip.wav"), "wb") as clip:
        clip.setparams((1, 2, 8000, 0, "NONE", ""))
        clip.writeframes(bytes(1600))
    return tmp_path


@pytest.fixture
def served(folder):
    ids = [*NAMES, *(f"x{i}" for i in range(40 - len(NAMES)))]
    with open_review(folder, ids=ids) as review:
        found = find_inputs(ids, folder / "inputs")
        inputs = ShownInputs(ids, review.learner.scores, found)
        results = Results(review, folder)
        app = create_app(review, inputs, results, token=TOKEN, title="Review", hosts={HOST})
        client = Client(app, headers={"host": HOST})
        assert client.get(f"/?token={TOKEN.replace(' ', '%20').replace(',', '%2C')}").status == 303
        yield SimpleNamespace(app=app, client=client, review=review, folder=folder)


def test_without_the_token_there_is_nothing(served):
    stranger = Client(served.app, headers={"host": HOST})
    for path in ("/", "/api/state", "/api/rows", "/images/0", "/sounds/5"):
        assert stranger.get(path).status == 403, path
    assert stranger.get("/files/labels.csv").status == 403
    assert stranger.post_json("/api/labels", {"labels": [[0, "cat"]]}).status == 403
    reply = stranger.get(f"/?token={TOKEN.replace(' ', '+')}")
    assert "SameSite=strict" in reply["set-cookie"]
    assert reply["location"] == "./"
    assert stranger.get("/", {"host": "evil.example"}).status == 421
    wrong = [stranger.get("/?token=wrong").status for _ in range(12)]
    assert wrong[:8] == [403] * 8
    assert wrong[10:] == [429, 429]
    assert served.review.labels == {}


def test_a_page_that_asks_too_often_is_told_when_to_ask_again(tmp_path, monkeypatch):
    monkeypatch.setattr("rankshot.review.app.REQUESTS", 1)
    with open_review(tmp_path) as review:
        inputs = ShownInputs(review.ids, review.learner.scores)
        app = create_app(review, inputs, Results(review, tmp_path), token=TOKEN, title="t")
        replies = [Client(app).get("/api/state") for _ in range(3)]
    assert [reply.status for reply in replies] == [403, 429, 429]
    assert 0 < int(replies[-1]["retry-after"]) <= 60
    assert set(json.loads(replies[-1].text)) == {"error"}


@pytest.mark.parametrize(
    "body",
    [
        {"labels": [[0, "cat"]], "more": 1},
        {"labels": []},
        {"labels": [["0", "cat"]]},
        {"labels": [[True, "cat"]]},
        {"labels": [[0, ""]]},
        {"labels": [[0, {"a": 1}]]},
        {"labels": [[10**30, "cat"]]},
        {"labels": [[0, "no such class"]]},
        [],
        "text",
    ],
)
def test_malformed_labels_are_refused(served, body):
    reply = served.client.post_json("/api/labels", body)
    assert reply.status == 422
    assert set(json.loads(reply.text)) == {"error"}
    assert served.review.labels == {}


def test_nothing_outside_the_folder_is_served(served):
    kinds = [row["kind"] for row in served.client.read("/api/rows?only=0,1,2,3,4,5,6,7")["rows"]]
    assert kinds[1:] == ["row", "row", "row", "image", "sound", "row", "image"]
    # The link leads out of the folder, and the last file is not an image.
    found = {row: served.client.get(f"/images/{row}").status for row in (1, 2, 3, 4, 5, 6, 7)}
    assert found == {1: 422, 2: 422, 3: 422, 4: 200, 5: 422, 6: 422, 7: 422}
    for path in ("/static/..%2Fapp.py", "/files/..%2Fsecret.png", "/sounds/-1", "/images/40"):
        assert served.client.get(path).status in {404, 422}, path
    for path in ("/images/../secret.png", "/images/1e3", "/files/review.jsonl"):
        assert served.client.get(path).status in {404, 422}, path


def test_images_are_made_anew_and_sounds_have_their_type(served):
    reply = served.client.get("/images/4")
    with Image.open(io.BytesIO(reply.body)) as image:
        assert (image.format, image.size) == ("JPEG", (192, 128))
    with Image.open(io.BytesIO(served.client.get("/images/4?large=true").body)) as image:
        assert image.size == (300, 200)
    assert reply.all("x-content-type-options") == ["nosniff"]
    assert "media-src 'self'" in reply.all("content-security-policy")[0]
    sound = served.client.get("/sounds/5", {"range": "bytes=0-99"})
    assert (sound.status, sound.all("content-type"), len(sound.body)) == (206, ["audio/wav"], 100)


def test_names_are_never_html(served):
    served.client.post_json("/api/classes", {"name": BAD, "ranking": ["fox"]})
    served.client.post_json("/api/labels", {"labels": [[0, BAD]]})
    page = served.client.get("/")
    assert BAD not in page.text
    rows = served.client.get("/api/rows?only=0")
    assert rows.all("content-type") == ["application/json"]
    assert json.loads(rows.text)["rows"][0]["given"] == BAD
    assert BAD not in served.client.get("/nowhere").text


def test_filters(served):
    predicted, ids = served.review.predicted, served.review.ids
    everything = served.client.read("/api/rows")
    assert (everything["n"], everything["n_pages"]) == (40, 1)
    order = [(row["label"], -row["proba"]) for row in everything["rows"]]
    assert order == sorted(order)
    served.client.post_json("/api/labels", {"labels": [[20, "cat"], [21, "none of these"]]})
    for query, rows in {
        "name=dog": [i for i in range(40) if predicted.labels[i] == "dog" and i not in {20, 21}],
        "name=cat": [
            20,
            *(i for i in range(40) if predicted.labels[i] == "cat" and i not in {20, 21}),
        ],
        "is_open=true": [i for i in range(40) if i not in {20, 21}],
        "text=X1": [i for i in range(40) if "x1" in ids[i]],
        "text=nothing": [],
    }.items():
        found = served.client.read(f"/api/rows?{query}")
        assert sorted(row["row"] for row in found["rows"]) == sorted(rows), query
    uncertain = served.client.read("/api/rows?order=uncertain")["rows"]
    assert [row["proba"] for row in uncertain] == sorted(predicted.proba)
    useful = served.client.read("/api/rows?order=useful")["rows"]
    assert useful
    assert not {20, 21} & {row["row"] for row in useful}


def test_pages_of_sixty_and_the_largest_scores_of_a_row(tmp_path):
    ids = [f"x{i}" for i in range(130)]
    with open_review(tmp_path, n=130) as review:
        inputs = ShownInputs(ids, review.learner.scores)
        app = create_app(review, inputs, Results(review, tmp_path), token=TOKEN, title=BAD)
        client = Client(app)
        client.get(f"/?token={TOKEN.replace(' ', '+')}")
        pages = [client.read(f"/api/rows?page={page}") for page in (0, 1, 2, 99)]
        useful = client.read("/api/rows?order=useful")
    assert [(each["page"], each["n_pages"], each["n"]) for each in pages] == [
        *((page, 3, 130) for page in (0, 1, 2, 2))
    ]
    assert [len(each["rows"]) for each in pages] == [60, 60, 10, 10]
    rows = [row["row"] for each in pages[:3] for row in each["rows"]]
    assert rows == review.predicted.order.tolist()
    assert useful["n"] == 30
    scores = make_scores(130)[0].values[0]
    best = sorted(zip(scores, SEEN, strict=True), reverse=True)
    (first,) = (row for each in pages for row in each["rows"] if row["row"] == 0)
    assert first["text"] == ", ".join(f"{name} {score:.3g}" for score, name in best)


def test_an_audit_by_requests(served):
    audit = served.client.post_json("/api/audit", {"action": "open"}).json["audit"]
    assert audit["n_inputs"] == 40
    check = {"action": "check", "row": audit["row"], "label": "dog"}
    assert served.client.post_json("/api/audit", check).json["audit"]["n_checked"] == 1
    again = served.client.post_json("/api/audit", check)
    assert (again.status, "checked already" in again.text) == (409, True)
    assert served.client.post_json("/api/audit", {"action": "undo"}).json["audit"]["n_checked"] == 0
    assert served.client.post_json("/api/audit", check).json["audit"]["n_checked"] == 1
    assert served.client.post_json("/api/audit", {"action": "check"}).status == 409
    assert served.client.post_json("/api/audit", {"action": "close"}).json == {"audit": None}
    assert served.client.read("/api/state")["last_audit"]["n_checked"] == 1


def test_files_to_take_away(served, tmp_path):
    served.client.post_json("/api/classes", {"name": "quokka"})
    labels = [[10, "cat"], [11, "quokka"], [12, "none of these"]]
    served.client.post_json("/api/labels", {"labels": labels})
    served.review.learn()
    reply = served.client.get("/files/labels.csv")
    assert reply["content-disposition"] == 'attachment; filename="labels.csv"'
    given = list(csv.reader(io.StringIO(reply.text)))
    ids = served.review.ids
    assert given == [["id", "label"], [ids[10], "cat"], [ids[11], "quokka"]]
    assert served.client.get("/files/predictions.csv").status == 200
    found = rs.zeroshot.read_predictions(served.folder / "predictions.csv")
    assert found.labels[10:13].tolist() == ["cat", "quokka", "none of these"]
    assert found.ids.tolist() == list(ids)
    certain = [[float(name == target) for target in found.targets] for name in found.labels[10:13]]
    assert found.proba[10:13].tolist() == certain
    others = [i for i in range(40) if i not in {10, 11, 12}]
    assert found.labels[others].tolist() == served.review.predicted.labels[others].tolist()
    assert served.client.get("/files/head.rankshot").status == 200
    head = rs.load_head(served.folder / "head.rankshot")
    scores = make_scores(40)[0]
    assert head.predict(scores).tolist() == served.review.predicted.labels.tolist()
    explained = served.client.read("/api/explanation/10")
    assert explained["target"] == served.review.predicted.labels[10]
    bars = [bar for table in explained["tables"] for bar in table["bars"]]
    assert any(bar["name"] in SEEN for bar in bars)
    assert max(abs(bar["length"]) for bar in bars) == 1

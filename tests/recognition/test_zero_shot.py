"""`zero_shot` and heads on the hub."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import rankshot as rs
from rankshot.recognition import from_pretrained, push_to_hub, save_pretrained
from refusals import refuses

SEEN = ["music", "alarm"]
RANKINGS = {"volume": ["music"], "timer": ["alarm"]}


def count(texts):
    return [[text.count("song"), text.count("clock")] for text in texts]


def test_the_interface_is_that_of_transformers():
    zs = rs.zero_shot(count, rankings=RANKINGS, seen=SEEN)
    found = zs("play a song", candidate_labels=["volume", "timer"])
    assert found["sequence"] == "play a song"
    assert found["labels"] == ["volume", "timer"]
    assert sum(found["scores"]) == pytest.approx(1)
    assert zs(["play a song", "clock"], "volume, timer")[0] == found
    everything = zs(["a song"], ["timer"], with_seen=True)
    assert {*everything[0]["labels"]} == {"timer", *SEEN}
    head = rs.Knowledge(RANKINGS, batch=rs.Scores(np.zeros((0, 2)), SEEN)).fit()
    np.testing.assert_allclose(found["scores"][::-1], head.predict_proba([[2.0, 0.0]])[0])


def test_a_label_without_a_ranking_is_named():
    zs = rs.zero_shot(count, rankings=RANKINGS, seen=SEEN)
    with refuses("candidate_labels", "timmer"):
        zs("a song", ["timmer"])
    both = rs.zero_shot(count, "wordnet", RANKINGS, seen=SEEN)
    assert {*both("a song", ["volume", "bell"])["labels"]} == {"volume", "bell"}
    with refuses("candidate_labels", "zzyzx"):
        both("a song", ["volume", "zzyzx"])
    model = rs.recognition.Model("m", "texts", lambda texts: np.array(count(texts)), classes=SEEN)
    with refuses("candidate_labels", "bell"):
        rs.zero_shot(model)("a song", ["bell"])


def test_a_folder_of_a_head_has_a_card_and_is_read_back(tmp_path):
    scores = rs.Scores([[4.0, 0.5]], SEEN)
    found = rs.recognise(scores, RANKINGS)
    save_pretrained(found, tmp_path, license="cc-by-4.0", base_model="me/sounds")
    head = from_pretrained(tmp_path)
    np.testing.assert_array_equal(head.predict_proba(scores), found.proba)
    card = (tmp_path / "README.md").read_text()
    front = card.split("---")[1]
    assert {'license: "cc-by-4.0"', 'base_model: "me/sounds"'} < {*front.splitlines()}
    assert all(name in card for name in (*SEEN, *RANKINGS, *found.notes))
    estimator = rs.WeightedMean().fit(found.knowledge.rankings)
    both = rs.zeroshot.SeenAndNew(estimator).fit()
    for other in (estimator, both):
        save_pretrained(other, tmp_path)
        np.testing.assert_array_equal(
            from_pretrained(tmp_path).predict_proba(scores), other.predict_proba(scores)
        )


def test_uploads_and_downloads(tmp_path, monkeypatch):
    done = []

    class Api:
        def __init__(self, token):
            done.append(token)

        def create_repo(self, name, **options):
            done.append((name, options))

        def upload_folder(self, repo_id, folder_path):
            head = from_pretrained(folder_path)
            save_pretrained(head, tmp_path / repo_id)
            return "an address"

    def download(name, file, revision):
        return str(tmp_path / name / file)

    fake = SimpleNamespace(HfApi=Api, hf_hub_download=download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", fake)
    head = rs.recognise(rs.Scores([[4.0, 0.5]], SEEN), RANKINGS).head
    assert push_to_hub(head, "me/head", private=True) == "an address"
    assert done == [None, ("me/head", {"private": True, "exist_ok": True})]
    assert from_pretrained("me/head").classes_.tolist() == ["timer", "volume"]
    with refuses("source", "nowhere"):
        from_pretrained("nowhere")

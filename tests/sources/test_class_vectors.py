"""One vector a class: chosen by name, compared by cosine, and what is refused."""

import numpy as np
import pytest

from rankshot.core.errors import RankshotError
from rankshot.sources.vectors import ClassVectors, WordVectors

NAMES = ["cat", "dog", "bus", "tree"]


@pytest.fixture
def vectors(rng):
    return ClassVectors(NAMES, rng.normal(size=(4, 5)), "me")


def test_what_it_holds(vectors):
    assert (len(vectors), vectors.dimension, vectors.names) == (4, 5, tuple(NAMES))
    assert repr(vectors) == "ClassVectors: 4 names with 5 numbers each, of me"


def test_values_are_a_copy_that_nobody_changes():
    values = np.eye(2, dtype=np.float32)
    vectors = ClassVectors(["a", "b"], values)
    values[0, 0] = 5
    assert vectors.values.tolist() == [[1, 0], [0, 1]]
    assert vectors.values.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        vectors.values[0, 0] = 5
    with pytest.raises(AttributeError):
        vectors.names = ("x", "y")


def test_select_keeps_the_order_asked_for(vectors):
    some = vectors.select(["tree", "cat"])
    assert (some.names, some.source) == (("tree", "cat"), "me")
    np.testing.assert_array_equal(some.values, vectors.values[[3, 0]])


def test_cosines_are_dot_products_over_lengths(vectors):
    table = vectors.cosines(["cat", "dog"], ["tree", "bus", "cat"])
    assert (table.targets, table.items) == (("cat", "dog"), ("tree", "bus", "cat"))
    assert table.source == "me"
    for i, a in enumerate(vectors.values[[0, 1]]):
        for j, b in enumerate(vectors.values[[3, 2, 0]]):
            expected = a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)
            assert table.values[i, j] == pytest.approx(expected, abs=1e-14)


def test_what_is_missing_has_no_cosine():
    vectors = ClassVectors(["a", "b", "c"], [[1, 0], [np.nan, 1], [0, 0]])
    table = vectors.cosines(["a", "b", "c"], ["a"])
    np.testing.assert_array_equal(table.values[:, 0], [1, np.nan, np.nan])


@pytest.mark.parametrize(
    ("names", "values", "message"),
    [
        (["a", "a"], [[1], [2]], "names names 'a' more than once"),
        ([], [[1]], "names is empty"),
        ("ab", [[1], [2]], "names must be a sequence of names"),
        (["a", "b"], [[1]], r"2 names need a table of 2 rows, not shape \(1, 1\)"),
        (["a", "b"], [1, 2], r"not shape \(2,\)"),
        (["a", "b"], [[], []], r"not shape \(2, 0\)"),
        (["a", "b"], [[1, 2], [3]], "must be a table of numbers"),
        (["a", "b"], [["x"], ["y"]], "must be a table of numbers"),
        (["a", "b"], [[1, 2], [3, -np.inf]], "vector of 'b' is infinite at place 1"),
    ],
)
def test_bad_vectors(names, values, message):
    with pytest.raises(RankshotError, match=message):
        ClassVectors(names, values)


def test_an_unknown_name(vectors):
    with pytest.raises(RankshotError, match=r"no vector of 'tre' \(did you mean 'tree'\?\)"):
        vectors.select(["cat", "tre"])
    with pytest.raises(RankshotError, match=r"me has no vector of 'yeti'$"):
        vectors.cosines(["cat"], ["yeti"])


# ---- Of words

WORDS = {"maple": [3, 4], "tree": [0, 2], "fish": [-1, 1], "zero": [0, 0]}


def test_words_give_vectors_of_length_one():
    vectors = WordVectors(WORDS, "words").vectors(["Tree", "maple_tree", "aquarium_fish", "yeti"])
    mean = np.array([0.6, 1.8]) / 2
    expected = [[0, 1], mean / np.linalg.norm(mean), [-(0.5**0.5), 0.5**0.5], [np.nan, np.nan]]
    np.testing.assert_allclose(vectors.values, expected, rtol=1e-15)
    assert vectors.names == ("Tree", "maple_tree", "aquarium_fish", "yeti")
    assert vectors.source == "words"


def test_vectors_of_words_compare_as_words_do():
    words, names = WordVectors(WORDS), ["tree", "maple_tree", "fish", "yeti", "zero"]
    np.testing.assert_allclose(
        words.vectors(names).cosines(names, names).values,
        words.similarity(names, names).values,
        rtol=0,
        atol=1e-15,
    )


def test_words_that_are_all_unknown():
    assert np.isnan(WordVectors({}).vectors(["a", "b"]).values).all()

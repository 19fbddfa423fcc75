"""Any embedding model: the cosine, the template, the batches, and functions that misbehave."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from rankshot import RankshotError
from rankshot.sources.vectors import Embedding, cosine


class Model:
    """Embeds texts by a table, and remembers how it was called."""

    def __init__(self, dimension=3, seed=0):
        self.calls = []
        self.dimension = dimension
        self.seed = seed

    def __call__(self, texts):
        assert isinstance(texts, list)
        self.calls.append(texts)
        return np.array([self.vector(text) for text in texts])

    def vector(self, text):
        key = [self.seed, *text.encode()]
        return np.random.default_rng(key).normal(size=self.dimension)


def by_hand(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / (
        sum(x * x for x in a) ** 0.5 * sum(y * y for y in b) ** 0.5
    )


def test_similarities_are_the_cosines_of_the_filled_templates():
    model = Model()
    table = Embedding(model, "a {}!", source="mine").similarity(["sea_lion", "cat"], ["bus", "cat"])
    for target in table.targets:
        for item in table.items:
            left, right = (model.vector(f"a {n.replace('_', ' ')}!") for n in (target, item))
            assert table[target, item] == pytest.approx(by_hand(left, right), abs=1e-15)
    assert table.source == "mine"
    assert table["cat", "cat"] == pytest.approx(1)


def test_each_distinct_text_is_asked_for_once_in_bounded_batches():
    model = Model()
    names = [f"n{i}" for i in range(10)]
    Embedding(model, batch_size=4).similarity(names, [*reversed(names), "new"])
    assert [len(call) for call in model.calls] == [4, 4, 3]
    asked = [text for call in model.calls for text in call]
    assert sorted(asked) == sorted(f"a photo of a {name}" for name in [*names, "new"])


def test_batches_do_not_change_the_answer():
    names = [f"n{i}" for i in range(7)]
    tables = [Embedding(Model(), batch_size=n).similarity(names, names) for n in (1, 3, 100)]
    assert tables[0] == tables[1] == tables[2]


def test_braces_in_names_and_templates_mean_nothing():
    model = Model()
    Embedding(model, "{0.__class__} {}").similarity(["{x}"], ["{}"])
    assert model.calls == [["{0.__class__} {x}", "{0.__class__} {}"]]


vectors = st.integers(1, 4).flatmap(
    lambda d: st.integers(1, 6).flatmap(
        lambda n: arrays(np.float64, (n, d), elements=st.floats(-1e300, 1e300)).filter(
            lambda rows: rows.any(axis=1).all()
        )
    )
)


@given(vectors, st.randoms(use_true_random=False))
def test_permuting_permutes_and_equal_vectors_tie(rows, random):
    rows = np.concatenate([rows, rows])
    table = cosine(rows, rows)
    half = len(rows) // 2
    np.testing.assert_array_equal(table[:, :half], table[:, half:])
    order = list(range(len(rows)))
    random.shuffle(order)
    np.testing.assert_array_equal(cosine(rows[order], rows), table[order])
    np.testing.assert_array_equal(cosine(rows, rows[order]), table[:, order])
    assert np.abs(table).max() <= 1
    np.testing.assert_allclose(np.diag(table), 1, atol=1e-12)


def test_equal_vectors_tie_in_tables_large_enough_for_any_matrix_kernel():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(37, 301))
    again = rng.integers(37, size=301)
    table = cosine(rng.normal(size=(53, 301)), rows[again])
    for copy in range(37):
        same = table[:, again == copy]
        assert (same == same[:, :1]).all()


def answering(answer):
    return lambda texts: answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, r"must return an array of shape \(2, d\) for 2 texts, not shape \(\): None"),
        ("abc", "not 'abc'"),
        ([[1.0], [1.0, 2.0]], r"not \[\[1.0\], \[1.0, 2.0\]\]"),
        (np.ones((3, 2)), r"not shape \(3, 2\)"),
        (np.ones(2), r"not shape \(2,\)"),
        (np.ones((2, 0)), r"not shape \(2, 0\)"),
        (np.ones((2, 2, 2)), r"not shape \(2, 2, 2\)"),
        ([[1, 2], [np.nan, 1]], "embedding of 'a photo of a bus' has nan at place 0"),
        ([[1, np.inf], [2, 1]], "embedding of 'a photo of a cat' has inf at place 1"),
        ([[1, 2], [0, 0]], "embedding of 'a photo of a bus' is 2 zeros"),
    ],
)
def test_bad_answers_are_repeated(answer, message):
    with pytest.raises(RankshotError, match=message):
        Embedding(answering(answer)).similarity(["cat"], ["bus"])


def test_a_dimension_that_changes_between_batches():
    def growing(texts):
        return np.ones((1, 2 if "cat" in texts[0] else 5))

    with pytest.raises(RankshotError, match="2 numbers at first, and of 5 from 'a photo of a bus'"):
        Embedding(growing, batch_size=1).similarity(["cat"], ["bus"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"function": "encode"}, "a function of texts, not 'encode'"),
        ({"template": "a photo"}, "'a photo' has no {}"),
        ({"template": None}, "None has no {}"),
        ({"batch_size": 0}, "batch_size must be a whole number from 1 on, not 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(RankshotError, match=message):
        Embedding(**{"function": Model(), **arguments})

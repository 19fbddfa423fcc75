"""`Scores`: accepted and refused values, error messages, and the order of classes."""

from itertools import permutations

import numpy as np
import pytest
from scipy.stats import zscore

import rankshot as rs
from exact import by_pair
from rankshot.core.errors import NO_VALUE
from rankshot.zeroshot.scores import LEAST_PROBABILITY, standardize_rows
from rankshot.zeroshot.tables import as_scores
from refusals import refuses

ITEMS = ("a", "b", "c", "d")
ABC = ("a", "b", "c")


def pairs(rng, n=3, items=ITEMS):
    size = (n, len(items) * (len(items) - 1) // 2)
    return rs.Scores(rng.normal(size=size), items, "one-vs-one")


# ------------------------------------------------------------------ numbers of any type


def test_types_of_numbers():
    kept = {np.float64: "f8", np.float32: "f4", np.float16: "f4", np.int32: "f8", bool: "f8"}
    for given, dtype in {**kept, object: "f8", ">f8": "f8", ">f4": "f4", "g": "f8"}.items():
        scores = rs.Scores(np.array([[1, 0, 1]]).astype(given), ABC)
        assert scores.values.dtype == np.dtype(dtype)
        assert scores.values.tolist() == [[1.0, 0.0, 1.0]]


def test_single_precision_is_standardised_in_double_precision(rng):
    values = rng.normal(50, 1e-3, size=(4, 9)).astype(np.float32)
    expected = zscore(values.astype(np.float64), axis=1)
    np.testing.assert_allclose(standardize_rows(values), expected, rtol=1e-9)


def test_dicts_have_the_same_classes_in_any_order():
    scores = rs.Scores.from_dicts([{"a": 1.0, "b": 2.0}, {"b": 4.0, "a": 3.0}], "one-vs-rest")
    assert scores.items == ("a", "b")
    assert scores.kind == "one-vs-rest"
    assert scores.values.tolist() == [[1, 2], [3, 4]]
    with refuses("rows", ["b", "c"], "row 1"):
        rs.Scores.from_dicts([{"a": 1.0, "b": 2.0}, {"a": 3.0, "c": 4.0}])
    with refuses("items"):
        rs.Scores.from_dicts([])


def test_a_tensor_that_cannot_be_read():
    class Tensor:
        def __array__(self, dtype=None, copy=None):
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use detach()")

    with refuses("scores") as caught:
        rs.Scores(Tensor(), ABC)
    assert "detach" in caught.value.hint


@pytest.mark.parametrize(
    ("values", "items", "kind", "parameter", "value"),
    [
        ([["x", 1, 2]], ABC, "multiclass", "scores", NO_VALUE),
        ([[-1e15, 2, 1]], ABC, "multiclass", "'a'", -1e15),
        ([[1, 2]], "ab", "multiclass", "items", "ab"),
        ([[1, 2]], ABC, "multiclass", "scores", (1, 2)),
        ([1, 2, 3], ABC, "multiclass", "scores", (3,)),
        ([[1, 2, 3]], ABC, "ovr", "kind", "ovr"),
        ([[0, 0, 0, 0, np.inf, 0]], ITEMS, "one-vs-one", "'b | d'", np.inf),
    ],
)
def test_what_is_wrong_and_where(values, items, kind, parameter, value):
    is_cell = parameter.startswith("'")
    with refuses(parameter, value, where="row 0" if is_cell else None):
        rs.Scores(values, items, kind)


# ------------------------------------------------------------------ probabilities


@pytest.mark.parametrize("kind", ["one-vs-rest", "one-vs-one"])
def test_other_probabilities_become_log_odds(rng, kind):
    p = rng.dirichlet(np.ones(3), size=5)
    np.testing.assert_allclose(rs.Scores.from_probabilities(p, ABC).values, np.log(p))
    scores = rs.Scores.from_probabilities(p, ABC, kind)
    np.testing.assert_allclose(scores.columns, np.log(p / (1 - p)))
    assert scores.kind == kind


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_zero_is_less_than_all_others(dtype):
    """A millionth, or half of the smallest other if that is less."""
    p = np.array([[0.5, 0.5, 0], [0.9, 0.1, 0], [1, 1e-30, 0], [1, 0, 0]], dtype)
    least = np.nextafter(dtype(0), dtype(1))
    # The smallest number that there is has no half.
    tied = rs.Scores.from_probabilities(np.array([[1, least, 0]], dtype), ABC).values[0]
    assert np.isfinite(tied).all()
    assert tied[1] == tied[2]
    values = rs.Scores.from_probabilities(p, ABC).values
    assert values.dtype == dtype
    floors = [LEAST_PROBABILITY, LEAST_PROBABILITY, 5e-31, LEAST_PROBABILITY]
    np.testing.assert_allclose(np.exp(values[:, 2]), floors, rtol=1e-4)
    np.testing.assert_allclose(np.exp(values[:, 0]), p[:, 0], rtol=1e-5)


# ------------------------------------------------------------------ classes by name


def test_columns_move_with_their_names(rng):
    scores = rs.Scores(rng.normal(size=(3, 4)), ITEMS, "one-vs-rest")
    for order in permutations(range(4)):
        names = tuple(ITEMS[i] for i in order)
        moved = scores.with_items(names)
        assert (moved.items, moved.kind) == (names, "one-vs-rest")
        np.testing.assert_array_equal(moved.values, scores.values[:, order])


def test_pairs_move_with_their_signs_and_a_selection_keeps_them(rng):
    scores = pairs(rng)
    f = by_pair(scores.pairs[0], ITEMS)
    for some in [*permutations(ITEMS, 3), *permutations(ITEMS)]:
        chosen = by_pair(scores.select(some).pairs[0], some)
        assert chosen == {pair: f[pair] for pair in permutations(some, 2)}
    assert scores.select(["c"]).pairs.shape == (3, 0)


def test_rows_by_slice_index_and_mask(rng):
    scores = pairs(rng, n=5)
    for rows in (slice(1, 3), np.array([4, 0]), np.arange(5) % 2 == 0):
        chosen = scores[rows]
        assert (chosen.items, chosen.kind) == (scores.items, scores.kind)
        np.testing.assert_array_equal(chosen.pairs, scores.pairs[rows])
    assert len(scores) == 5


# ------------------------------------------------------------------ what a head is passed


def test_the_width_of_an_array_tells_its_kind():
    cases = [(4, ITEMS, "multiclass"), (6, ITEMS, "one-vs-one"), (3, ABC, "multiclass")]
    for columns, items, kind in cases:
        assert as_scores(np.zeros((2, columns)), items).kind == kind


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_data_frames_of_several_libraries(library):
    module = pytest.importorskip(library)
    make = module.table if library == "pyarrow" else module.DataFrame
    single = np.array([1.0, 2.0], np.float32)
    found = as_scores(make({"b": single, "a": single + 2}), ("a", "b")).values
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[3, 1], [4, 2]])
    named = make({"id": ["x", "y"], "b": single, "a": single + 2})
    np.testing.assert_array_equal(as_scores(named, ("a", "b")).values, found)
    numbered = make({"b": single, "id": single + 2})
    np.testing.assert_array_equal(as_scores(numbered, ("id", "b")).values, found)
    with refuses("'b'", where="row 1"):
        as_scores(make({"a": [1.0, 2.0], "b": [1.0, None]}), ("a", "b"))

"""The value type `Rankings`: building, reading, deriving, showing."""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from random_rankings import tied_groups
from rankshot import Rankings
from rankshot.ranking.construction import find_first, number_rows

ANIMALS = ["leopard", "tiger", "lion", "fox", "whale"]


def groups_of(order):
    return [list(entry) if isinstance(entry, list) else [entry] for entry in order]


def as_order(groups):
    return [group[0] if len(group) == 1 else group for group in groups]


@st.composite
def orders_over(draw, items):
    """A ranking of some of the items; the names of a tie stand in the order of ``items``."""
    groups = draw(tied_groups(items))
    return as_order([sorted(group, key=items.index) for group in groups])


@st.composite
def cases(draw):
    """Items in a random order, and a few rankings of them."""
    items = draw(st.permutations("abcdefg"[: draw(st.integers(1, 7))]))
    return items, draw(st.lists(orders_over(items), max_size=6))


quick = settings(max_examples=20, deadline=None)


# ---- Building and reading


def test_the_arrays_of_a_small_value():
    value = Rankings.from_orders(
        [["fox", ["lion", "tiger"]], ["whale"]],
        items=ANIMALS,
        targets=["cat", None],
        sources="web",
        raters=[None, np.int64(7)],
        weights=[2, 0.5],
        kind=["top", "subset"],
    )
    assert value.items == tuple(ANIMALS)
    assert value.codes.tolist() == [3, 1, 2, 4]
    assert value.places.tolist() == [0, 1, 1, 0]
    assert value.starts.tolist() == [0, 3, 4]
    assert value.lengths.tolist() == [3, 1]
    assert value.entry_rows.tolist() == [0, 0, 0, 1]
    assert value.is_subset.tolist() == [False, True]
    assert value.weights.tolist() == [2, 0.5]
    beside = (value.targets.tolist(), value.sources.tolist(), value.raters.tolist())
    assert beside == (["cat", None], ["web", "web"], [None, "7"])
    assert value.has_ties
    names = (value.target_names, value.source_names, value.rater_names)
    assert names == (("cat",), ("web",), ("7",))


@pytest.mark.parametrize("tie", [["c", "b"], ("c", "b"), {"c", "b"}, frozenset("cb")])
def test_orders_and_ties_may_be_any_plain_collections(tie):
    orders = (order for order in [("a", tie), np.array(["c", "a"])])
    value = Rankings.from_orders(orders, items=iter("abc"), targets=np.array(["x", "y"]))
    assert value.orders() == [["a", ["b", "c"]], ["c", "a"]]
    assert {type(name) for name in (*value.items, *value.targets)} == {str}


@pytest.mark.filterwarnings("ignore:every row of positions holds 0")
@quick
@given(cases())
def test_orders_and_positions_come_back_as_they_went_in(case):
    items, orders = case
    expected = np.zeros((len(orders), len(items)), int)
    for row, order in enumerate(orders):
        for place, group in enumerate(groups_of(order), 1):
            for name in group:
                expected[row, items.index(name)] = place
    value = Rankings.from_orders(orders, items=items)
    assert value.orders() == orders
    assert np.array_equal(value.positions(), expected)
    assert Rankings.from_positions(expected, items=items) == value


@quick
@given(st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=5))
def test_from_scores_agrees_with_sorting_each_row(scores):
    expected = [
        as_order([
            [name for name, score in zip("abcd", row, strict=True) if score == level]
            for level in sorted(set(row), reverse=True)
        ])
        for row in scores
    ]  # fmt: skip
    assert Rankings.from_scores(scores, items=list("abcd")).orders() == expected


def test_a_missing_score_is_not_compared_and_a_missing_place_is_not_listed():
    nan = np.nan
    orders = [["a", ["b", "c"]], ["c", "b"], ["d"]]
    names = list("abcd")
    beside = {"items": names, "raters": ["p", "q", "r"], "kind": "subset"}
    expected = Rankings.from_orders(orders, **beside)
    scores = [[5, 3, 3, nan], [nan, -2, np.inf, None], [nan, nan, nan, 1]]
    assert Rankings.from_scores(scores, **beside) == expected
    places = [[1, 2, 2, nan], [nan, 4, 3, 0], [nan, None, nan, 1]]
    assert Rankings.from_positions(places, **beside) == expected
    listed = Rankings.from_positions(places, items=names)
    assert listed == Rankings.from_orders(orders, items=names)
    # nan says that the item is not listed: nobody counts from 0 here.
    Rankings.from_positions([[nan, 1, 2, 3]], items=names)


# ---- Top


@quick
@given(cases(), st.data())
def test_top_agrees_with_counting_places_by_hand(case, data):
    items, orders = case
    ks = [data.draw(st.integers(1, len(items))) for _ in orders]
    kinds = [data.draw(st.sampled_from(["top", "subset"])) for _ in orders]
    expected, lengths = [], []
    for order, kind, k in zip(orders, kinds, ks, strict=True):
        kept, rest, listed = [], [], 0
        for group in groups_of(order):
            (kept.append if listed < k else rest.extend)(group)
            listed += len(group)
        if kind == "subset" and rest:
            kept.append(sorted(rest, key=items.index))
        expected.append(as_order(kept))
        lengths.append(min(k, listed))
    value = Rankings.from_orders(orders, items=items, kind=kinds).top(np.array(ks, int))
    assert value.orders() == expected
    assert value.lengths.tolist() == lengths


# ---- Choosing and merging


@pytest.fixture
def votes():
    return Rankings.from_orders(
        [["a", "b"], ["b"], [["a", "b"], "c"], ["c", "a"]],
        items=list("abc"),
        targets=["x", "y", "x", None],
        sources=["s", "s", "t", "t"],
        raters=["p", "q", "p", "q"],
        weights=[1, 2, 3, 4],
        kind=["top", "subset", "top", "top"],
    )


def test_select_keeps_what_matches_all_that_is_asked(votes):
    assert votes.select(target="x").weights.tolist() == [1, 3]
    assert votes.select(source="t").weights.tolist() == [3, 4]
    assert votes.select(rater="q", source="s").weights.tolist() == [2]
    assert votes.select(target="y", rater="p").weights.tolist() == []
    assert votes.select() == votes
    assert [list(part.weights) for part in votes.by_target().values()] == [[1, 3], [2]]
    assert votes[:0].unique().top(1).orders() == []


@pytest.mark.parametrize(
    ("rows", "weights"),
    [
        (0, [1]),
        (-1, [4]),
        (np.int64(2), [3]),
        (slice(1, 3), [2, 3]),
        (slice(None, None, -1), [4, 3, 2, 1]),
        ([3, 0, 3], [4, 1, 4]),
        ([], []),
        (np.array([True, False, False, True]), [1, 4]),
    ],
)
def test_indexing_gives_rankings_with_all_that_stands_beside(votes, rows, weights):
    chosen = votes[rows]
    assert isinstance(chosen, Rankings)
    assert chosen.weights.tolist() == weights
    wanted = [int(weight) - 1 for weight in weights]
    assert chosen.orders() == [votes.orders()[row] for row in wanted]
    for column in ("targets", "sources", "raters", "is_subset", "lengths"):
        values = getattr(votes, column).tolist()
        assert getattr(chosen, column).tolist() == [values[row] for row in wanted]


@quick
@given(cases(), st.data())
def test_unique_agrees_with_a_dictionary(case, data):
    items, orders = case
    orders = [order for order in orders for _ in range(data.draw(st.integers(1, 3)))]
    orders = data.draw(st.permutations(orders))
    targets = [data.draw(st.sampled_from(["x", "y", None])) for _ in orders]
    weights = [data.draw(st.integers(0, 9)) for _ in orders]
    expected = {}
    for order, target, weight in zip(orders, targets, weights, strict=True):
        key = (repr(order), target)
        expected[key] = expected.get(key, 0) + weight
    merged = Rankings.from_orders(orders, items=items, targets=targets, weights=weights).unique()
    keys = zip(map(repr, merged.orders()), merged.targets, strict=True)
    assert list(zip(keys, merged.weights, strict=True)) == list(expected.items())


def test_concatenate_puts_rankings_in_order_over_the_items_of_the_first(votes):
    other = Rankings.from_orders([["c", ["b", "a"]]], items=["c", "b", "a"], targets="z").top(2)
    both = Rankings.concatenate(part for part in (votes, other))
    assert both.items == ("a", "b", "c")
    assert both[:4] == votes
    assert both[4].orders() == [["c", ["a", "b"]]]
    assert both[4].lengths.tolist() == [2]
    assert both[4].targets.tolist() == ["z"]


# ---- Equality, immutability


ARRAYS = [field.name for field in fields(Rankings)][1:]


def test_values_are_read_only_however_they_were_made(votes):
    some = Rankings.from_positions([[1, 2]], items=["a", "b"])
    for value in (votes[1:], votes.top(1), votes.change_items(("c", "b", "a", "z")), some):
        assert not any(getattr(value, name).flags.writeable for name in ARRAYS)
        assert value.codes.dtype == value.places.dtype == np.int32
    with pytest.raises(FrozenInstanceError):
        votes.items = ("a",)
    with pytest.raises(TypeError, match="unhashable"):
        hash(votes)


# ---- Showing


def test_repr_shows_counts_ties_and_remarks():
    value = Rankings.from_orders(
        [["leopard", ["tiger", "lion"], "fox"], ["lion"], [["fox", "lion"]]],
        items=ANIMALS,
        targets=["cat", None, "cat"],
        sources=["web", "book", "web"],
        raters="eve",
        weights=[1, 2.5, 1],
        kind=["top", "subset", "top"],
    )
    cut = Rankings.concatenate([value[:2], value[2].top(1)])
    assert repr(cut) == (
        "Rankings: 3 rankings of 5 items, 1 target, 2 sources, 1 rater\n"
        "  cat: leopard > tiger = lion > fox\n"
        "  lion (subset, weight 2.5)\n"
        "  cat: lion = fox (first 1)"
    )


# ---- Pairs


def test_pairs_are_the_same_from_every_kind_of_column():
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    winners, losers, ties = ["x", "y", "x"], ["y", "z", "z"], [True, False, False]
    expected = Rankings.from_pairs(winners, losers, ties=ties)
    for make in (np.array, iter, pandas.Series, pandas.Categorical, polars.Series):
        pairs = Rankings.from_pairs(
            make(winners), make(losers), items=make(["x", "y", "z"]), ties=ties
        )
        assert pairs == expected
    for marks in (pandas.Series(ties), pandas.Series(ties, dtype="boolean")):
        assert Rankings.from_pairs(winners, losers, ties=marks) == expected


# ---- Equal rows


@pytest.mark.parametrize("k", [1, 3, 15])
def test_equal_rows_have_equal_numbers(rng, k):
    """Narrow columns are counted, wide ones sorted, and long rows packed more than once."""
    for n_values in (2, 40, 10**6):
        table = rng.integers(0, n_values, (12, k))[rng.integers(0, 12, 200)]
        numbers = number_rows(table.T, 200)
        expected = (table[:, None] == table).all(axis=2)
        assert np.array_equal(numbers[:, None] == numbers, expected)
        first = find_first(numbers)
        assert first.tolist() == [np.flatnonzero(numbers == i)[0] for i in range(first.size)]

"""Kendall's distances by their definitions."""

from itertools import combinations, permutations, product

import numpy as np
import pytest
from brute import hausdorff, kendall
from hypothesis import given, strategies as st
from scipy.stats import kendalltau

import rankshot as rs
from rankshot.ranking import distances
from rankshot.ranking.distances import count_inversions
from rankshot.ranking.mean_distances import mean_distance_by_places, mean_distance_by_sorting


@pytest.mark.parametrize("n_items", [1, 2, 3, 4, 5])
def test_full_distance_counts_opposite_pairs(n_items):
    full = list(permutations(range(n_items)))
    rankings = rs.Rankings.from_orders(full, items=range(n_items))
    expected = [[kendall(a, b) for b in full] for a in full]
    assert np.array_equal(rs.kendall_distance(rankings), expected)


@pytest.mark.parametrize(("n_items", "k"), [(C, k) for C in range(1, 6) for k in range(1, C + 1)])
def test_top_k_distance_is_the_hausdorff_distance(n_items, k):
    """Every pair of top-K lists for C up to 4. For C = 5 every list against the first: renaming
    the items makes any list the first one, so these are all pairs there are."""
    lists = list(permutations(range(n_items), k))
    others = lists if n_items < 5 else lists[:1]
    rankings = rs.Rankings.from_orders(lists, items=range(n_items))
    expected = [[hausdorff(a, b, range(n_items)) for b in others] for a in lists]
    found = rs.kendall_distance(rankings, rankings[: len(others)])
    assert np.array_equal(found, expected)


def critchlow(a, b, k, n_items):
    """The paper's equation 5, with D as Critchlow has it; a and b give places from 1."""
    A = [i for i in range(n_items) if a[i] <= k and b[i] <= k]
    B = [i for i in range(n_items) if a[i] <= k < b[i]]
    D = [i for i in range(n_items) if b[i] <= k < a[i]]
    inverted = sum(a[i] < a[j] and b[i] > b[j] for i in A for j in A)
    shared = len(B) * (n_items + k - (len(B) - 1) / 2)
    return inverted + shared - sum(a[i] for i in B) - sum(b[i] for i in D)


def misprinted(a, b, k, n_items):
    """The same with the paper's D: items that neither list names."""
    D = [i for i in range(n_items) if a[i] > k and b[i] > k]
    B = [i for i in range(n_items) if a[i] <= k < b[i]]
    A = [i for i in range(n_items) if a[i] <= k and b[i] <= k]
    inverted = sum(a[i] < a[j] and b[i] > b[j] for i in A for j in A)
    shared = len(B) * (n_items + k - (len(B) - 1) / 2)
    return inverted + shared - sum(a[i] for i in B) - sum(b[i] for i in D)


@pytest.mark.parametrize("k", [1, 3, 10, 19, 20])
def test_equation_5_kendall_top_k(rng, k):
    places = np.array([rng.permutation(20) + 1 for _ in range(25)])
    rankings = rs.Rankings.from_positions(places, items=range(20))
    expected = [[critchlow(a, b, k, 20) for b in places] for a in places]
    assert np.array_equal(rs.kendall_distance(rankings, k=k), expected)
    if k < 19:
        wrong = [[misprinted(a, b, k, 20) for b in places] for a in places]
        assert not np.array_equal(wrong, expected)


def test_ties_and_unequal_lengths_are_hausdorff_too(random_rankings):
    rankings = random_rankings(n_items=4, n=25)
    orders = rankings.orders()
    expected = [[hausdorff(a, b, "abcd") for b in orders] for a in orders]
    assert np.array_equal(rs.kendall_distance(rankings), expected)


def test_a_tie_that_k_cuts_is_kept_whole():
    rankings = rs.Rankings.from_orders([["a", ["b", "c"], "d"], ["a", "b"]], items=list("abcd"))
    found = rs.kendall_distance(rankings, k=2)[0, 1]
    assert found == hausdorff(["a", ["b", "c"]], ["a", "b"], "abcd")


@pytest.mark.parametrize("tiles", [(3, 5), (4, 1), (100, 10_000)])
def test_the_size_of_the_tiles_changes_nothing(random_rankings, monkeypatch, tiles):
    rankings = random_rankings(n_items=9, n=10)
    others = random_rankings(n_items=9, n=7)
    expected = rs.kendall_distance(rankings), rs.kendall_distance(rankings, others)
    monkeypatch.setattr(distances, "TILE_ROWS", tiles[0])
    monkeypatch.setattr(distances, "TILE_PAIRS", tiles[1])
    assert np.array_equal(rs.kendall_distance(rankings), expected[0])
    assert np.array_equal(rs.kendall_distance(rankings, others), expected[1])


@pytest.mark.parametrize("sparse", [True, False])
def test_both_ways_to_count_inversions_agree_with_the_definition(
    random_rankings, monkeypatch, sparse
):
    rankings = random_rankings(n_items=5, n=12, ties=False)
    orders = rankings.orders()
    monkeypatch.setattr(distances, "_sparse_is_cheaper", lambda *_: sparse)
    expected = [[hausdorff(a, b, "abcde") for b in orders] for a in orders]
    assert np.array_equal(rs.kendall_distance(rankings), expected)


def test_full_distance_agrees_with_scipy(rng):
    places = np.array([rng.permutation(60) + 1 for _ in range(6)])
    found = rs.kendall_distance(rs.Rankings.from_positions(places, items=range(60)))
    for i, j in combinations(range(6), 2):
        tau = kendalltau(places[i], places[j]).statistic
        assert found[i, j] == pytest.approx(60 * 59 / 4 * (1 - tau), abs=1e-9)


def test_more_pairs_than_single_precision_counts(rng):
    """6,000 items have 18 million pairs: past 2^24, where float32 stops counting by ones."""
    n_items = 6000
    up = np.arange(n_items)
    one_swap = up.copy()
    one_swap[[10, 11]] = one_swap[[11, 10]]
    rankings = rs.Rankings.from_item_numbers(
        np.array([up, up[::-1], one_swap]), items=range(n_items)
    )
    pairs = n_items * (n_items - 1) // 2
    expected = [[0, pairs, 1], [pairs, 0, pairs - 1], [1, pairs - 1, 0]]
    assert np.array_equal(rs.kendall_distance(rankings), expected)


def test_items_are_matched_by_name():
    one = rs.Rankings.from_orders([["a", "b", "c"]], items=["a", "b", "c"])
    other = rs.Rankings.from_orders([["a", "b", "c"]], items=["c", "a", "b"])
    assert rs.kendall_distance(one, other) == 0


def test_subset_rankings_are_refused():
    rankings = rs.Rankings.from_orders([["a", "b"]], items=list("abc"), kind="subset")
    with pytest.raises(rs.RankshotError, match="ranking 0 compares only a subset"):
        rs.kendall_distance(rankings)


# ---- Mean distances, against all strict lists that ties allow

ITEMS = list("abcde")


@st.composite
def tied_orders(draw):
    rest = draw(st.permutations(ITEMS))[: draw(st.integers(1, 5))]
    order = []
    while rest:
        size = draw(st.integers(1, len(rest)))
        order.append(list(rest[:size]))
        rest = rest[size:]
    return order


def strict_lists(order, k):
    """Every strict list of k items that a tied order allows, as often as it is likely."""
    listed = [item for tie in order for item in tie]
    groups = [*order, [item for item in ITEMS if item not in listed]]
    return [
        [item for group in orders for item in group][:k]
        for orders in product(*(permutations(group) for group in groups))
    ]


@given(tied_orders(), tied_orders(), st.integers(1, 5))
def test_the_mean_distance_is_the_mean_over_strict_lists(one, two, k):
    a, b = (rs.Rankings.from_orders(strict_lists(order, k), items=ITEMS) for order in (one, two))
    expected = rs.kendall_distance(a.unique(), b.unique())
    expected = a.unique().weights @ expected @ b.unique().weights / (len(a) * len(b))
    both = rs.Rankings.from_orders([one, two], items=ITEMS)
    for found in (
        rs.ranking.mean_kendall_distance(both, k=k),
        distances._mean_by_pairs(both, both, k),
        mean_distance_by_places(both, both, k),
        mean_distance_by_sorting(both.top(k), both.top(k), k),
    ):
        assert found[0, 1] == pytest.approx(expected, abs=1e-12)
        assert found[1, 0] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 3, 10])
def test_short_lists_of_many_items_need_no_table_of_pairs(rng, monkeypatch, k):
    """Ties, lists that end before k, and strict ones, against the tables of pairs."""
    scores = rng.integers(0, 40, (8, 60)).astype(float)
    tied = rs.Rankings.from_scores(scores, items=range(60), k=12)
    short = rs.Rankings.from_scores(rng.normal(size=(4, 60)), items=range(60), k=2)
    strict = rs.Rankings.from_scores(rng.normal(size=(9, 60)), items=range(60), k=k)
    rankings = rs.Rankings.concatenate([tied, short])
    expected = (
        distances._mean_by_pairs(rankings, strict, k),
        distances._mean_by_pairs(rankings, rankings, k),
    )
    monkeypatch.setattr(distances, "_mean_by_pairs", None)
    found = (
        rs.ranking.mean_kendall_distance(rankings, strict, k=k),
        rs.ranking.mean_kendall_distance(rankings, k=k),
    )
    np.testing.assert_allclose(found[0], expected[0], atol=1e-10)
    np.testing.assert_allclose(found[1], expected[1], atol=1e-10)


def test_without_ties_it_is_kendalls_distance(rng):
    lists = np.array([rng.permutation(12)[:5] for _ in range(30)])
    rankings = rs.Rankings.from_item_numbers(lists, items=[f"i{i}" for i in range(12)])
    found = rs.ranking.mean_kendall_distance(rankings, rankings[:7], k=5)
    np.testing.assert_allclose(found, rs.kendall_distance(rankings, rankings[:7]), atol=1e-10)


def test_blocks_and_the_order_of_items_change_nothing(rng, monkeypatch):
    scores = rng.integers(0, 4, size=(9, 5)).astype(float)
    rankings = rs.Rankings.from_scores(scores, items=ITEMS)
    whole = rs.ranking.mean_kendall_distance(rankings, k=3)
    turned = rs.ranking.mean_kendall_distance(rankings.with_items(ITEMS[::-1]), k=3)
    np.testing.assert_allclose(turned, whole, atol=1e-12)
    monkeypatch.setattr(
        "rankshot.ranking.mean_distances.row_blocks",
        lambda n, _: [slice(i, i + 1) for i in range(n)],
    )
    np.testing.assert_allclose(rs.ranking.mean_kendall_distance(rankings, k=3), whole, atol=1e-12)
    found = mean_distance_by_places(rankings, rankings, 3)
    np.testing.assert_allclose(found, whole, atol=1e-12)


def test_what_is_refused():
    subset = rs.Rankings.from_orders([["a", "b"]], items=ITEMS, kind="subset")
    with pytest.raises(rs.RankshotError, match="ranking 0 compares only a subset"):
        rs.ranking.mean_kendall_distance(subset)
    whole = rs.Rankings.from_orders([["a", "b"]], items=ITEMS)
    with pytest.raises(rs.RankshotError, match="k"):
        rs.ranking.mean_kendall_distance(whole, k=6)


# ---- Few long rankings, by sorting


@given(st.lists(tied_orders(), min_size=1, max_size=4), st.lists(tied_orders(), max_size=3))
def test_sorting_agrees_with_the_definition(some, others):
    a, b = (rs.Rankings.from_orders(orders, items=ITEMS) for orders in (some, others or some))
    expected = distances._tile(a, b)
    assert np.array_equal(distances._compare_by_sorting(a, b, symmetric=False), expected)
    square = distances._compare_by_sorting(a, a, symmetric=True)
    assert np.array_equal(square, distances._tile(a, a))
    assert expected[0, -1] == hausdorff(some[0], (others or some)[-1], ITEMS)


@pytest.mark.parametrize("n_items", [1, 2, 7, 8, 15, 16, 17, 31, 33, 100])
def test_inversions_are_counted_by_halves(rng, n_items):
    rows = np.argsort(rng.random((5, n_items)), axis=1)
    expected = [sum(x > y for x, y in combinations(row, 2)) for row in rows.tolist()]
    assert count_inversions(rows).tolist() == expected


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [None, 400])
def test_few_long_rankings_take_the_way_of_sorting(rng, monkeypatch, ties, k):
    scores = rng.random((4, 500)).round(2 if ties else 9)
    rankings = rs.Rankings.from_scores(scores, items=range(500))
    found = rs.kendall_distance(rankings, k=k), rs.kendall_distance(rankings, rankings[:2], k=k)
    monkeypatch.setattr(distances, "_compare_by_sorting", None)
    monkeypatch.setattr(distances, "_sorting_is_cheaper", lambda *_, **__: False)
    assert np.array_equal(found[0], rs.kendall_distance(rankings, k=k))
    assert np.array_equal(found[1], found[0][:, :2])


def test_int16_holds_the_places_of_few_items_and_int32_those_of_many():
    n_items = 2**15 + 5
    rankings = rs.Rankings.from_item_numbers(
        np.array([np.arange(n_items), np.arange(n_items)[::-1]]), items=range(n_items)
    )
    assert rs.kendall_distance(rankings)[0, 1] == n_items * (n_items - 1) / 2


@pytest.mark.parametrize("distance", [rs.kendall_distance, rs.ranking.mean_kendall_distance])
@pytest.mark.parametrize("k", [np.array([1, 2]), 0, 4, 2.0, True])
def test_k_is_one_whole_number(distance, k):
    rankings = rs.Rankings.from_orders([["a", "b", "c"], ["c"]])
    with pytest.raises(rs.RankshotError, match="k must be a whole number from 1 to 3"):
        distance(rankings, k=k)


@pytest.mark.parametrize("k", [1, 37, 200, 499, 500])
def test_mean_distances_of_few_long_rankings(rng, monkeypatch, k):
    """Ties, cut ties, and lists that end before k, against the tables of pairs."""
    tied = rs.Rankings.from_scores(rng.random((2, 500)).round(2), items=range(500))
    short = rs.Rankings.from_scores(rng.random((1, 500)), items=range(500), k=100)
    rankings = rs.Rankings.concatenate([tied, short])
    expected = distances._mean_by_pairs(rankings.top(k), rankings.top(k), k)
    monkeypatch.setattr(distances, "_mean_by_pairs", None)
    np.testing.assert_allclose(
        rs.ranking.mean_kendall_distance(rankings, k=k), expected, rtol=1e-12
    )

"""Kendall's distances, by their definitions."""

from itertools import permutations, product

import numpy as np
import pytest
from brute import hausdorff
from hypothesis import given, strategies as st

import rankshot as rs
from random_rankings import tied_groups
from rankshot.ranking import distances
from rankshot.ranking.distances import compare_common_items


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


@pytest.mark.parametrize("k", [1, 3, 10, 19, 20])
def test_equation_5_kendall_top_k(rng, k):
    places = np.array([rng.permutation(20) + 1 for _ in range(25)])
    rankings = rs.Rankings.from_positions(places, items=range(20))
    expected = [[critchlow(a, b, k, 20) for b in places] for a in places]
    assert np.array_equal(rs.kendall_distance(rankings, k=k), expected)
    found = rs.ranking.mean_kendall_distance(rankings, rankings[:7], k=k)
    np.testing.assert_allclose(found, np.array(expected)[:, :7], atol=1e-10)


@pytest.mark.parametrize("way", ["places", "pairs"])
@pytest.mark.parametrize("ties", [True, False])
def test_ties_and_unequal_lengths_are_hausdorff_too(random_rankings, monkeypatch, way, ties):
    """Items are matched by name, and a tie that k cuts is kept whole."""
    monkeypatch.setattr(distances, "DENSE_ADVANTAGE", 0 if way == "places" else np.inf)
    monkeypatch.setattr(distances, "TILE_ROWS", 5)
    rankings = random_rankings(n_items=4, n=12, ties=ties)
    for some in (rankings, rankings.top(2)):
        orders = some.orders()
        expected = [[hausdorff(a, b, "abcd") for b in orders] for a in orders]
        turned = some.with_items(list("dbca"))
        assert np.array_equal(rs.kendall_distance(some, turned), expected)
    assert np.array_equal(rs.kendall_distance(rankings, k=2), expected)


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


# ---- Mean distances, against all strict lists that ties allow

ITEMS = list("abcde")


def strict_lists(order, k):
    """Every strict list of k items that a tied order allows, as often as it is likely."""
    listed = [item for tie in order for item in tie]
    groups = [*order, [item for item in ITEMS if item not in listed]]
    return [
        [item for group in orders for item in group][:k]
        for orders in product(*(permutations(group) for group in groups))
    ]


@given(tied_groups(ITEMS), tied_groups(ITEMS), st.integers(1, 5))
def test_the_mean_distance_is_the_mean_over_strict_lists(one, two, k):
    a, b = (rs.Rankings.from_orders(strict_lists(order, k), items=ITEMS) for order in (one, two))
    expected = rs.kendall_distance(a.unique(), b.unique())
    expected = a.unique().weights @ expected @ b.unique().weights / (len(a) * len(b))
    both = rs.Rankings.from_orders([one, two], items=ITEMS)
    found = rs.ranking.mean_kendall_distance(both, k=k)
    assert found[0, 1] == pytest.approx(expected, abs=1e-12)
    assert found[1, 0] == pytest.approx(expected, abs=1e-12)


def test_blocks_and_the_order_of_items_change_nothing(rng, monkeypatch):
    scores = rng.integers(0, 4, size=(9, 5)).astype(float)
    rankings = rs.Rankings.from_scores(scores, items=ITEMS)
    whole = rs.ranking.mean_kendall_distance(rankings, k=3)
    turned = rs.ranking.mean_kendall_distance(rankings.with_items(ITEMS[::-1]), k=3)
    np.testing.assert_allclose(turned, whole, atol=1e-12)
    one_by_one = [slice(i, i + 1) for i in range(len(rankings))]
    monkeypatch.setattr(distances, "row_blocks", lambda *_: one_by_one)
    np.testing.assert_allclose(rs.ranking.mean_kendall_distance(rankings, k=3), whole, atol=1e-12)


# ---- Distances over the items that both rankings compare


def list_first_groups(order, k):
    """Return the items of the groups that begin within the first k places."""
    listed = []
    for group in order:
        if len(listed) >= k:
            break
        listed += group if isinstance(group, list) else [group]
    return listed


def restrict(order, common):
    kept = [[x for x in (g if isinstance(g, list) else [g]) if x in common] for g in order]
    return [group for group in kept if group]


def test_each_pair_of_rankings_is_compared_on_the_items_that_both_know(random_rankings, rng):
    """Held against the distance of the two orders without the other items."""
    for _ in range(12):
        rankings = random_rankings(n_items=8, n=6, kind=["subset"] * 4 + ["top"] * 2)
        orders, items = rankings.orders(), rankings.items
        k = int(rng.integers(1, 9))
        found = compare_common_items(rankings, k=k)
        np.testing.assert_allclose(found, found.T, atol=1e-12)
        for i, j in product(range(6), repeat=2):
            known = [{x for g in orders[r] for x in g} if r < 4 else set(items) for r in (i, j)]
            common = sorted(known[0] & known[1])
            listed = [set(list_first_groups(orders[r], k)) & set(common) for r in (i, j)]
            places = min(k, *(int(rankings.lengths[r]) for r in (i, j)), *map(len, listed))
            if len(common) < 2 or places == 0:
                assert np.isnan(found[i, j])
                continue
            both = rs.Rankings.from_orders(
                [restrict(orders[r], common) for r in (i, j)], items=common
            )
            largest = places * (2 * len(common) - places - 1) / 2
            expected = rs.ranking.mean_kendall_distance(both[:1], both[1:], places)[0, 0] / largest
            assert found[i, j] == pytest.approx(expected, abs=1e-12)

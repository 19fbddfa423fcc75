"""Distances between rankings, each pair over the items that both compare."""

from itertools import pairwise, product

import numpy as np
import pytest

import rankshot as rs
from peak_memory import peak_of
from rankshot.core.blocks import BLOCK_CELLS
from rankshot.ranking.mean_distances import compare_common_items


def random_order(rng, items):
    """Return items in a random order, with random ties."""
    order = [str(item) for item in rng.permutation(items)]
    cuts = [0, *np.flatnonzero(rng.random(len(order) - 1) < 0.6) + 1, len(order)]
    groups = [order[i:j] for i, j in pairwise(cuts)]
    return [group[0] if len(group) == 1 else group for group in groups]


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


def test_each_pair_of_rankings_is_compared_on_the_items_that_both_know(rng):
    """Held against the distance of the two orders without the other items."""
    items = list("abcdefgh")
    for _ in range(60):
        orders = [
            random_order(rng, rng.choice(items, rng.integers(2, 9), replace=False))
            for _ in range(4)
        ]
        orders += [random_order(rng, items)[: rng.integers(1, 9)] for _ in range(2)]
        kinds = ["subset"] * 4 + ["top"] * 2
        rankings = rs.Rankings.from_orders(orders, items=items, kind=kinds)
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


def test_rankings_of_all_items_have_the_distance_of_the_shorter_list(rng):
    items = list("abcdefg")
    orders = [random_order(rng, items)[: rng.integers(1, 6)] for _ in range(30)]
    a, b = (
        rs.Rankings.from_orders(orders, items=items),
        rs.Rankings.from_orders(orders[:7], items=items).with_items(items[::-1]),
    )
    found = compare_common_items(a, b, k=4)
    for i, j in product(range(30), range(7)):
        k = min(4, int(a.lengths[i]), int(b.lengths[j]))
        expected = rs.ranking.mean_kendall_distance(a[i], b[j], k)[0, 0] / (k * (13 - k) / 2)
        assert found[i, j] == pytest.approx(expected, abs=1e-12)


def test_hundreds_of_long_rankings_take_little_memory(rng):
    """A table of all pairs of items for each ranking would have a million cells."""
    similarity = rng.integers(0, 30, size=(300, 1000))
    rankings = rs.Rankings.from_scores(similarity, items=[f"class {i}" for i in range(1000)])
    taken, distance = peak_of(lambda: compare_common_items(rankings))
    assert taken < 2 * 8 * BLOCK_CELLS
    expected = rs.ranking.mean_kendall_distance(rankings[:2], k=10) / (10 * 1989 / 2)
    np.testing.assert_allclose(distance[:2, :2], expected, atol=1e-12)

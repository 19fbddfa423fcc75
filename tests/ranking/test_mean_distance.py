"""The mean distance against all strict lists that ties allow."""

from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankshot as rs

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
def test_it_is_the_mean_over_strict_lists(one, two, k):
    a, b = (rs.Rankings.from_orders(strict_lists(order, k), items=ITEMS) for order in (one, two))
    expected = rs.kendall_distance(a.unique(), b.unique())
    expected = a.unique().weights @ expected @ b.unique().weights / (len(a) * len(b))
    both = rs.Rankings.from_orders([one, two], items=ITEMS)
    found = rs.mean_kendall_distance(both, k=k)
    assert found[0, 1] == pytest.approx(expected, abs=1e-12)
    assert found[1, 0] == pytest.approx(expected, abs=1e-12)


def test_without_ties_it_is_kendalls_distance(rng):
    lists = np.array([rng.permutation(12)[:5] for _ in range(30)])
    rankings = rs.Rankings.from_item_numbers(lists, items=[f"i{i}" for i in range(12)])
    found = rs.mean_kendall_distance(rankings, rankings[:7], k=5)
    np.testing.assert_allclose(found, rs.kendall_distance(rankings, rankings[:7]), atol=1e-10)


def test_blocks_and_the_order_of_items_change_nothing(rng, monkeypatch):
    scores = rng.integers(0, 4, size=(9, 5)).astype(float)
    rankings = rs.Rankings.from_scores(scores, items=ITEMS)
    whole = rs.mean_kendall_distance(rankings, k=3)
    turned = rs.mean_kendall_distance(rankings.with_items(ITEMS[::-1]), k=3)
    np.testing.assert_allclose(turned, whole, atol=1e-12)
    monkeypatch.setattr(
        "rankshot.ranking.distances.row_blocks",
        lambda n, _: [slice(i, i + 1) for i in range(n)],
    )
    np.testing.assert_allclose(rs.mean_kendall_distance(rankings, k=3), whole, atol=1e-12)


def test_what_is_refused():
    subset = rs.Rankings.from_orders([["a", "b"]], items=ITEMS, kind="subset")
    with pytest.raises(rs.RankshotError, match="ranking 0 compares only a subset"):
        rs.mean_kendall_distance(subset)
    whole = rs.Rankings.from_orders([["a", "b"]], items=ITEMS)
    with pytest.raises(rs.RankshotError, match="k"):
        rs.mean_kendall_distance(whole, k=6)

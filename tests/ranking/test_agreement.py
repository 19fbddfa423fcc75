import numpy as np
import pytest

import rankshot as rs
from rankshot.ranking.concordance import concordance


def test_kendalls_w_of_kendalls_own_kind_of_example():
    """Six people judging five things without ties, by the textbook formula."""
    places = np.array([[1, 2, 3, 4, 5], [2, 1, 3, 5, 4], [1, 3, 2, 4, 5], [3, 1, 2, 4, 5]])
    rankings = rs.Rankings.from_positions(places, items=range(5))
    totals = places.sum(axis=0)
    expected = 12 * ((totals - totals.mean()) ** 2).sum() / (4**2 * (5**3 - 5))
    assert concordance(rankings) == pytest.approx(expected, abs=1e-12)


def test_kendalls_w_with_ties_follows_the_mean_spearman_correlation(rng):
    """W = (1 + (m - 1) ρ)/m where ρ is the mean correlation of mid-ranks with equal ties."""
    orders = [["a", ["b", "c"], "d"], [["a", "c"], "b", "d"][::-1], ["b", ["a", "d"], "c"]]
    rankings = rs.Rankings.from_orders(orders)
    mid = np.array([[1, 2.5, 2.5, 4], [3.5, 2, 3.5, 1], [2.5, 1, 4, 2.5]])
    rho = np.mean([np.corrcoef(mid[i], mid[j])[0, 1] for i, j in ((0, 1), (0, 2), (1, 2))])
    assert concordance(rankings) == pytest.approx((1 + 2 * rho) / 3, abs=1e-12)


def test_weights_count_as_copies():
    once = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"], ["b", "a", "c"]])
    weighted = once.unique()
    assert weighted.weights.tolist() == [1, 2]
    one, two = rs.agreement(once), rs.agreement(weighted)
    assert one.concordance == pytest.approx(two.concordance, abs=1e-12)
    assert one.mean_distance == pytest.approx(two.mean_distance, abs=1e-12)
    assert one.distance_to_others[:2] == pytest.approx(two.distance_to_others, abs=1e-12)


def test_equal_rankings_agree_entirely():
    found = rs.agreement(rs.Rankings.from_orders([["a", "b"]] * 3, items=list("abcd")))
    assert found.concordance == pytest.approx(1, abs=1e-12)
    assert found.mean_distance == 0


def test_a_single_ranking_has_nobody_to_agree_with():
    with pytest.raises(rs.RankshotError, match="at least two rankings"):
        rs.agreement(rs.Rankings.from_orders([["a", "b"]]))


def test_concordance_of_different_items_is_refused():
    rankings = rs.Rankings.from_orders([["a"], ["b"]], items=list("ab"), kind="subset")
    with pytest.raises(rs.RankshotError, match="different items"):
        concordance(rankings)

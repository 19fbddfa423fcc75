"""A ranking of weight w counts as w equal rankings, in all statistics."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import rankshot as rs
from random_rankings import rankings_of
from refusals import refuses

ITEMS = list("abcde")


def weighted(**options):
    """Rankings with small whole weights, of which there may be one line."""
    return rankings_of(ITEMS, st.integers(1, 3), most=4, raters=st.sampled_from("xyz"), **options)


def copy(rankings):
    """The same rankings, each as often as its weight says, of weight 1."""
    again = rankings[np.repeat(np.arange(len(rankings)), rankings.weights.astype(int))]
    return rs.Rankings.from_orders(
        again.orders(),
        items=ITEMS,
        raters=again.raters,
        kind=["subset" if is_subset else "top" for is_subset in again.is_subset],
    ).top(again.lengths)


def approx(value):
    return None if value is None else pytest.approx(value, rel=1e-9, abs=1e-9)


@settings(max_examples=15, deadline=None)
@given(rankings=weighted())
def test_concordance_and_agreement(rankings):
    copies = copy(rankings)
    W = rs.ranking.concordance(rankings)
    assert approx(rs.ranking.concordance(copies)) == W
    if W is None:
        with refuses("rankings"):
            rs.agreement(rankings)
        return
    one, two = (rs.agreement(some, n_resamples=9) for some in (rankings, copies))
    assert one.concordance == approx(W)
    assert [two.chi_square, two.chance] == pytest.approx([one.chi_square, one.chance])


@settings(max_examples=15, deadline=None)
@given(rankings=weighted(), k=st.integers(1, 5) | st.none())
def test_summarize(rankings, k):
    (one,), (two,) = rs.ranking.summarize(rankings, k=k), rs.ranking.summarize(copy(rankings), k=k)
    assert one.order == two.order
    assert one.k == two.k
    assert one.concordance == approx(two.concordance)
    assert one.mean_distance == approx(two.mean_distance)
    assert dict(one.disagreement) == approx(dict(two.disagreement))


@pytest.mark.filterwarnings("ignore:.* pairs of items were never compared:UserWarning")
@pytest.mark.parametrize("merge", [rs.borda, lambda votes: rs.kemeny(votes, "exact")])
@settings(max_examples=12, deadline=None)
@given(rankings=weighted())
def test_consensus(merge, rankings):
    one, two = merge(rankings), merge(copy(rankings))
    assert one.order == two.order
    assert one.score == approx(two.score)
    assert one.bound == approx(two.bound)


def test_fractions_of_a_ranking_are_no_pair():
    """A weight below 1 is less than one ranking: there is nobody it can agree with."""
    half = rs.Rankings.from_orders([["a", "b"]], weights=[0.5])
    with refuses("rankings"):
        rs.agreement(half)
    assert rs.ranking.concordance(half) is None
    assert rs.agreement(rs.Rankings.concatenate([half, half])).concordance == 1

"""Rank-biased overlap, by its definition."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

import rankshot as rs

ITEMS = list("abcd")


@st.composite
def tied_orders(draw):
    rest = draw(st.permutations(ITEMS))[: draw(st.integers(1, 4))]
    order = []
    while rest:
        size = draw(st.integers(1, len(rest)))
        order.append(list(rest[:size]))
        rest = rest[size:]
    return order


def overlap(one, two, p):
    """The sum over depths by definition, far past the end of both lists."""
    short, long = sorted(
        ([set(x) if isinstance(x, list) else {x} for x in order] for order in (one, two)),
        key=lambda order: sum(map(len, order)),
    )

    def seen(order, depth):
        found = set()
        for group in order:
            if len(found) < depth:
                found |= group
        return found

    s, l = (sum(map(len, order)) for order in (short, long))
    total, agreement, at_short = 0.0, 0.0, 0.0
    for d in range(1, 600):
        if d <= l:
            a, b = seen(short, d), seen(long, d)
            extra = max(d - s, 0)
            agreement = 2 * (len(a & b) + at_short * extra) / (len(a) + extra + len(b))
            at_short = agreement if d == s else at_short
        total += (1 - p) * p ** (d - 1) * agreement
    return total


@given(tied_orders(), tied_orders(), st.sampled_from([0.3, 0.9]))
def test_overlap_is_the_sum_over_depths(one, two, p):
    found = rs.rank_biased_overlap(rs.Rankings.from_orders([one, two], items=ITEMS), p=p)
    assert found[0, 1] == pytest.approx(overlap(one, two, p), abs=1e-12)
    assert found[1, 0] == pytest.approx(found[0, 1], abs=1e-15)
    assert np.diag(found) == pytest.approx(1)


def test_published_overlaps():
    """Equation 32 as others print it: b4ny4n/rankmeasures, and Corsi and Urbano (2024) with ties
    in the way of Webber et al., julian-urbano/sigir2024-rbo."""
    full = rs.Rankings.from_orders([[1, 2, 3, 4, 5], [2, 3, 4, 1, 5]])
    assert rs.rank_biased_overlap(full)[0, 1] == pytest.approx(0.828, abs=5e-4)
    colours = rs.Rankings.from_orders(
        [
            ["red", ["blue", "green"], "yellow", "pink"],
            [["blue", "red"], "white", ["yellow", "black", "purple"], "green"],
        ]
    )
    assert rs.rank_biased_overlap(colours, p=0.95)[0, 1] == pytest.approx(0.7068257, abs=5e-8)


def test_the_first_places_have_most_of_the_weight():
    """The docstring's 86 %: 1 - p^10 (1 - …), equation 21 of the paper."""
    p, d = 0.9, 10
    weight = (
        1
        - p ** (d - 1)
        + (1 - p) / p * d * (np.log(1 / (1 - p)) - sum(p**i / i for i in range(1, d)))
    )
    assert weight == pytest.approx(0.86, abs=0.005)


@pytest.mark.parametrize("p", [0, 1, "x"])
def test_p_is_between_0_and_1(p):
    with pytest.raises(rs.RankshotError, match="p must be"):
        rs.rank_biased_overlap(rs.Rankings.from_orders([["a"]]), p=p)

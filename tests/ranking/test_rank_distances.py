"""Footrule, Spearman, Cayley, Hamming and rank-biased overlap, by their definitions."""

from itertools import permutations

import numpy as np
import pytest
from brute import hausdorff
from hypothesis import given, strategies as st
from scipy.stats import spearmanr

import rankshot as rs

ITEMS = list("abcd")


def footrule(a, b):
    return sum(abs(a.index(item) - b.index(item)) for item in a)


def spearman(a, b):
    return sum((a.index(item) - b.index(item)) ** 2 for item in a)


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


def cayley(a, b):
    """Swap items into their places one after the other, and count."""
    a, swaps = list(a), 0
    for place, item in enumerate(b):
        other = a.index(item)
        if other != place:
            a[place], a[other] = a[other], a[place]
            swaps += 1
    return swaps


DEFINITIONS = {
    rs.ranking.footrule_distance: footrule,
    rs.ranking.spearman_distance: spearman,
    rs.ranking.cayley_distance: cayley,
    rs.ranking.hamming_distance: hamming,
}


@pytest.mark.parametrize("distance", DEFINITIONS, ids=lambda f: f.__name__)
def test_full_rankings_have_the_classical_distance(distance):
    full = list(permutations(range(5)))
    rankings = rs.Rankings.from_orders(full, items=range(5))
    expected = [[DEFINITIONS[distance](a, b) for b in full[:40]] for a in full]
    assert np.array_equal(distance(rankings, rankings[:40]), expected)
    assert np.array_equal(distance(rankings[:40]), expected[:40])


@pytest.mark.parametrize("distance", DEFINITIONS, ids=lambda f: f.__name__)
def test_the_last_item_need_not_be_listed_and_items_match_by_name(distance):
    a = rs.Rankings.from_orders([["b", "a", "c"]], items=list("abcd"))
    b = rs.Rankings.from_orders([["a", "b", "d", "c"]], items=list("dcba"))
    assert distance(a, b) == DEFINITIONS[distance](list("bacd"), list("abdc"))


def test_the_least_number_of_swaps_is_cayleys_distance():
    """Breadth-first search over all swaps, for all permutations of five items."""
    start = tuple(range(5))
    found, front = {start: 0}, [start]
    while front:
        reached = []
        for order in front:
            for i in range(5):
                for j in range(i):
                    swapped = list(order)
                    swapped[i], swapped[j] = swapped[j], swapped[i]
                    if tuple(swapped) not in found:
                        found[tuple(swapped)] = found[order] + 1
                        reached.append(tuple(swapped))
        front = reached
    rankings = rs.Rankings.from_orders(list(found), items=range(5))
    assert rs.ranking.cayley_distance(rankings, rankings[:1])[:, 0].tolist() == list(found.values())


@st.composite
def tied_orders(draw):
    rest = draw(st.permutations(ITEMS))[: draw(st.integers(1, 4))]
    order = []
    while rest:
        size = draw(st.integers(1, len(rest)))
        order.append(list(rest[:size]))
        rest = rest[size:]
    return order


@pytest.mark.parametrize("distance", [rs.ranking.footrule_distance, rs.ranking.spearman_distance])
@given(one=tied_orders(), two=tied_orders())
def test_ties_and_top_lists_have_the_hausdorff_distance(distance, one, two):
    expected = hausdorff(one, two, ITEMS, DEFINITIONS[distance])
    found = distance(rs.Rankings.from_orders([one, two], items=ITEMS))
    assert found.tolist() == [[0, expected], [expected, 0]]


@pytest.mark.parametrize("distance", [rs.ranking.footrule_distance, rs.ranking.spearman_distance])
def test_k_keeps_the_first_places(distance, random_rankings):
    rankings = random_rankings(n_items=6, n=8)
    assert np.array_equal(distance(rankings, k=2), distance(rankings.top(2)))


def test_spearmans_correlation_follows_from_the_distance(rng):
    places = np.array([rng.permutation(30) + 1 for _ in range(4)])
    found = rs.ranking.spearman_distance(rs.Rankings.from_positions(places, items=range(30)))
    expected = spearmanr(places, axis=1).statistic
    np.testing.assert_allclose(1 - 6 * found / (30**3 - 30), expected, atol=1e-12)


@pytest.mark.parametrize("distance", [rs.ranking.cayley_distance, rs.ranking.hamming_distance])
@pytest.mark.parametrize(
    ("order", "message"),
    [(["a", ["b", "c"], "d"], "ranking 0 has ties"), (["a", "b"], "does not order all items")],
)
def test_distances_of_permutations_refuse_the_rest(distance, order, message):
    with pytest.raises(rs.RankshotError, match=message):
        distance(rs.Rankings.from_orders([order], items=ITEMS))


@pytest.mark.parametrize("distance", [*DEFINITIONS, rs.rank_biased_overlap])
def test_subsets_are_refused(distance):
    with pytest.raises(rs.RankshotError, match="ranking 0 compares only a subset"):
        distance(rs.Rankings.from_orders([["a", "b"]], items=ITEMS, kind="subset"))


# ---- Rank-biased overlap


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

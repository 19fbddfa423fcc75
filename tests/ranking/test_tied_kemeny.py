"""Kemeny's consensus with ties: against all weak orders, and corankco's scores."""

from itertools import product

import numpy as np
import pytest
from test_parts import cut

import rankshot as rs


def weak_orders(n):
    """All ways to give n items levels without a gap."""
    return [lv for lv in product(range(n), repeat=n) if set(lv) == set(range(max(lv) + 1))]


def cost_of(level, rankings, ties):
    """The score by its definition, pair by pair and ranking by ranking."""
    total = 0.0
    for positions, subset, weight in zip(
        rankings.positions(), rankings.is_subset, rankings.weights, strict=True
    ):
        own = np.where(positions == 0, 99, positions)
        for i in range(len(level)):
            for j in range(i):
                if subset and 99 in (own[i], own[j]):
                    continue
                here, there = np.sign(level[i] - level[j]), np.sign(own[i] - own[j])
                if here != there:
                    total += weight * (1 if here * there < 0 else ties)
    return total


def levels_of(order, items):
    level = {}
    for number, group in enumerate(order):
        level |= dict.fromkeys([group] if isinstance(group, str) else group, number)
    return [level[name] for name in items]


@pytest.mark.parametrize("kind", ["top", "subset"])
@pytest.mark.parametrize("ties", [0.3, 0.5, 1, 1.7])
def test_exact_is_the_best_of_all_weak_orders(random_rankings, rng, kind, ties):
    every = weak_orders(4)
    for _ in range(8):
        rankings = random_rankings(n_items=4, n=5, kind=kind, weights=rng.integers(1, 4, 5))
        best = min(cost_of(level, rankings, ties) for level in every)
        found = rs.kemeny(rankings, "exact", ties=ties)
        level = levels_of(found.order, rankings.items)
        assert found.score == pytest.approx(best, rel=1e-9)
        assert cost_of(level, rankings, ties) == pytest.approx(best, rel=1e-9)
        assert found.optimal
        assert found.bound == found.score
        search = rs.kemeny(rankings, ties=ties)
        level = levels_of(search.order, rankings.items)
        assert search.score == pytest.approx(cost_of(level, rankings, ties), rel=1e-9)
        assert search.bound <= best + 1e-9 <= search.score + 2e-9


def test_fractional_weights_and_five_items(random_rankings, rng):
    every = weak_orders(5)
    for _ in range(2):
        rankings = random_rankings(n_items=5, n=4, weights=rng.random(4) + 0.1)
        found = rs.kemeny(rankings, "exact", ties=0.7)
        best = min(cost_of(level, rankings, 0.7) for level in every)
        assert found.score == pytest.approx(best, rel=1e-6)
        assert found.optimal


def tables(rng, C, m):
    """Noisy scores on a coarse scale: many ties, and cycles."""
    scores = np.floor(2 * (rng.normal(size=C) + rng.normal(size=(m, C))))
    return rs.Rankings.from_scores(scores, items=range(C))


POSITIONS = [
    [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    [2, 1, 1, 5, 4, 4, 9, 7, 7, 3],
    [5, 5, 3, 1, 1, 2, 2, 4, 6, 6],
    [3, 1, 4, 1, 5, 9, 2, 6, 5, 3],
    [2, 7, 1, 8, 2, 8, 1, 8, 2, 8],
    [1, 6, 1, 8, 3, 3, 9, 8, 8, 7],
    [9, 8, 7, 6, 5, 4, 3, 2, 1, 1],
]
LISTS = [[3, 0, 4, 6], [5, 1, 0], [6, 5, 3, 2, 1, 0], [2, 4], [1, 2, 3, 4], [0, 6, 2, 5]]


@pytest.mark.parametrize(("ties", "score"), [(0.5, 112.0), (1.0, 126.0)])
def test_corankco_finds_the_same_score(ties, score):
    """ExactAlgorithmPulp of corankco 7.2, B = [0, 1, p, 0, 1, p], T = [p, p, 0, p, p, 0]."""
    rankings = rs.Rankings.from_positions(POSITIONS, items=range(10))
    found = rs.kemeny(rankings, "exact", ties=ties)
    assert (found.score, found.optimal) == (score, True)
    assert cost_of(levels_of(found.order, rankings.items), rankings, ties) == score


@pytest.mark.parametrize(("kind", "score"), [("top", 49.5), ("subset", 10.0)])
def test_corankco_on_incomplete_rankings(kind, score):
    """Unifying: the items left out are tied at the end. Induced: they are ignored. p = 1/2."""
    found = rs.kemeny(rs.Rankings.from_orders(LISTS, kind=kind), "exact", ties=0.5)
    assert (found.score, found.optimal) == (score, True)


def test_larger_problems_are_proven_and_the_search_is_near(rng):
    for ties in (0.5, 1):
        rankings = tables(rng, 40, 9)
        exact = rs.kemeny(rankings, "exact", ties=ties)
        search = rs.kemeny(rankings, ties=ties)
        assert exact.optimal
        assert exact.score <= search.score <= 1.01 * exact.score
        assert search.bound <= exact.score


def test_a_relaxation_that_is_not_integral_goes_to_the_integer_solver():
    """Majorities of the Paley tournament of 7 items, and few ties: against all weak orders."""
    pairs = [(i, (i + s) % 7) for i in range(7) for s in (1, 2, 4)]
    rankings = rs.Rankings.from_orders([list(p) for p in pairs], items=range(7), kind="subset")
    found = rs.kemeny(rankings, "exact", ties=1)
    strict = rs.kemeny(rankings, "exact")
    assert found.optimal
    assert found.score == strict.score == 7


def test_cheap_ties_tie_and_expensive_ties_do_not(random_rankings):
    votes = rs.Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]])
    assert rs.kemeny(votes, "exact", ties=0.4).order == (("a", "b"), "c")
    assert rs.kemeny(votes, "exact", ties=3).order == ("a", "b", "c")
    strict = random_rankings(n_items=6, n=7, ties=False, shortest=6)
    assert rs.kemeny(strict, "exact", ties=100).score == rs.kemeny(strict, "exact").score


def test_the_order_of_items_and_the_parts_of_rankings_change_nothing(random_rankings, rng):
    for kind in ("top", "subset"):
        rankings = random_rankings(n_items=6, n=12, kind=kind)
        shuffled = rankings.with_items([rankings.items[i] for i in rng.permutation(6)])
        parts, _ = cut(rankings, rng)
        for method in ("insertion", "exact"):
            found = rs.kemeny(rankings, method, ties=0.5)
            assert rs.kemeny(shuffled, method, ties=0.5) == found
            assert rs.kemeny(parts, method, ties=0.5) == found


def test_a_tie_that_k_cuts_counts_in_parts():
    """Of a, b and c two are among the first two: each is before d with probability 2/3."""
    votes = rs.Rankings.from_orders([[["a", "b", "c"]]], items=list("abcd")).top(2)
    found = rs.kemeny(votes, "exact", ties=0.6)
    # Tie of all: 3 · 0.6 · 2/3. The tie before d: 3 · 0.6 · 1/3.
    assert found.order == (("a", "b", "c"), "d")
    assert found.score == pytest.approx(0.6)

"""Distances of raters, by their definitions."""

from itertools import combinations, permutations

import numpy as np
import pytest

from rankshot.ranking import Rankings
from rankshot.ranking.consensus.precedence import precedence
from rankshot.ranking.distances import distances_to_majority, paired_distances

ITEMS = list("abcde")


def draw_orders(rng, n, items=ITEMS):
    """Some rankings of all items, of which only the first places are known."""
    return [rng.permutation(items)[: rng.integers(1, len(items) + 1)].tolist() for _ in range(n)]


@pytest.mark.parametrize("n_items", [2, 3, 5])
def test_the_distance_of_two_rankings_is_its_definition(rng, n_items):
    items = ITEMS[:n_items]
    first, second = (draw_orders(rng, 60, items) for _ in range(2))
    found = paired_distances(*(Rankings.from_orders(x, items=items) for x in (first, second)))

    def sign(order, i, j):
        place = [order.index(x) if x in order else n_items for x in (i, j)]
        return np.sign(place[1] - place[0])

    for a, b, distance in zip(first, second, found, strict=True):
        pairs = [(sign(a, i, j), sign(b, i, j)) for i, j in combinations(items, 2)]
        costs = [0.5 if 0 in pair else float(pair[0] != pair[1]) for pair in pairs if any(pair)]
        assert distance == pytest.approx(np.mean(costs), abs=1e-14)


@pytest.mark.parametrize("n_raters", [20, 4])
def test_the_distance_to_the_majority_is_that_of_others_who_compared_the_pair(rng, n_raters):
    """Rankings of subsets; with 4 raters, each has several, and none counts against itself."""
    orders = [rng.permutation(ITEMS)[: rng.integers(2, 5)].tolist() for _ in range(20)]
    raters = [f"r{i % n_raters}" for i in range(20)]
    table = Rankings.from_orders(orders, items=ITEMS, kind="subset", raters=raters)
    found = distances_to_majority(table, 3)
    assert np.isnan(found).sum() < 20
    for row, distance in enumerate(found):
        others = [i for i, rater in enumerate(raters) if rater != raters[row]]
        W = precedence(table[others])
        own = (precedence(table[[row]]) > 0) & (W + W.T >= 3)
        costs = (1 + np.sign(W.T - W)[own]) / 2
        expected = costs.mean() if costs.size else np.nan
        assert distance == pytest.approx(expected, abs=1e-14, nan_ok=True)


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_a_random_ranking_has_a_mean_distance_of_exactly_one_half(rng, length):
    others = [rng.permutation(list("abcd"))[:k].tolist() for k in (4, 2, 1, 3, 3)]
    apart = [
        distances_to_majority(
            Rankings.from_orders([*others, order], items=list("abcd"), raters=list("uvwxyz")), 3
        )[-1]
        for order in permutations("abcd", length)
    ]
    assert np.mean(apart) == pytest.approx(0.5, abs=1e-14)
    assert np.std(apart) > 0

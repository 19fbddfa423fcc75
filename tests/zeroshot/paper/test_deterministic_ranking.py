"""Deterministic Ranking: the distance, and the order of classes from pairwise scores."""

from itertools import combinations, permutations

import numpy as np
import pytest

import rankshot as rs
from exact import by_pair, mean_distance
from rankshot.zeroshot.paper.ranking_methods import score_by_pair_wins
from refusals import refuses

ITEMS = list("abcd")


def groups_of(row):
    """Items by score, equal ones together."""
    levels = sorted(set(row), reverse=True)
    return [[x for x, f in zip(ITEMS, row, strict=True) if f == level] for level in levels]


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_distances_by_enumeration(rng, k):
    """Tied scores, tied rankings and ties that k cuts."""
    consensus = {"u": [["a"], ["b", "c"]], "v": [["d"], ["c"], ["a"]], "w": [["a", "b", "d"]]}
    rankings = rs.Rankings.from_orders(consensus.values(), items=ITEMS, targets=list(consensus))
    head = rs.zeroshot.paper.DeterministicRanking(k=k).fit(rankings)
    for row in rng.integers(0, 3, (15, 4)).astype(float):
        mine = groups_of(row.tolist())
        d = np.array([float(mean_distance(order, mine, ITEMS, k)) for order in consensus.values()])
        expected = np.exp(-d) / np.exp(-d).sum()
        scores = rs.Scores([row], ITEMS)
        np.testing.assert_allclose(head.predict_proba(scores), [expected])
        assert head.predict(scores) == [list(consensus)[int(np.argmax(d <= d.min() + 1e-9))]]


@pytest.mark.parametrize("columns", list(permutations("abe")))
def test_classes_with_the_same_pairwise_scores_tie(columns):
    """c and d win by 0.1 and 0.2, lose by 0.3 and 0.1: the order of summation does not decide."""
    f = {"ca": 0.1, "cb": 0.2, "ce": -0.3, "cg": -0.1}
    f |= {"da": 0.1, "db": -0.3, "de": 0.2, "dg": -0.1}
    items = [*columns, "g", "c", "d"]
    row = [f.get(i + j, -f.get(j + i, 0.0)) for i, j in combinations(items, 2)]
    rankings = rs.Rankings.from_orders(
        [["g", "b", "e", "c", "d"], ["g", "b", "e", "d", "c"]], items=items, targets=["p", "q"]
    )
    head = rs.zeroshot.paper.DeterministicRanking(k=None).fit(rankings)
    proba = head.predict_proba(rs.Scores([row], items, "one-vs-one"))
    np.testing.assert_allclose(proba, [[0.5, 0.5]])


def test_subset_rankings_are_refused():
    rankings = rs.Rankings.from_orders([list("bdc")], items=ITEMS, targets=["u"], kind="subset")
    with refuses("rankings", "subset"):
        rs.zeroshot.paper.DeterministicRanking().fit(rankings)


def test_votes_then_sums_order_the_classes(rng):
    """A pair of score 0 is half a win for each; equal wins go by the sum of scores."""
    for row in rng.integers(-2, 3, (50, 6)).astype(float):
        f = by_pair(row.tolist(), ITEMS)
        key = {}
        for i in ITEMS:
            mine = [f[i, j] for j in ITEMS if j != i]
            key[i] = (sum((x > 0) + (x == 0) / 2 for x in mine), sum(mine))
        found = score_by_pair_wins(row[None], 4)[0]
        for (i, x), (j, y) in permutations(zip(ITEMS, found.tolist(), strict=True), 2):
            assert (x > y) == (key[i] > key[j])

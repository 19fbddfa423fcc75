"""Groups of raters are named where they are, and nowhere else."""

from dataclasses import replace

import numpy as np
import pytest

import rankshot as rs
from rankshot.ranking.rater_groups import find_rater_groups, has_too_many_raters

ITEMS = [f"item {i}" for i in range(8)]


def name_raters(rankings, start=0):
    raters = [f"p{i:03}" for i in range(start, start + len(rankings))]
    return rs.Rankings.from_orders(rankings.orders(), items=rankings.items, raters=raters)


def draw(center, n, k, seed, spread=0.7):
    return rs.Mallows.from_center(center, spread).sample(n, k, random_state=seed)


@pytest.mark.parametrize("k", [3, 8])
def test_two_groups_are_found(k):
    one, two = draw(ITEMS, 14, k, 0), draw(ITEMS[::-1], 9, k, 1)
    groups = find_rater_groups(name_raters(rs.Rankings.concatenate([one, two])))
    assert [len(group.raters) for group in groups] == [14, 9]
    assert set(groups[1].raters) == {f"p{i:03}" for i in range(14, 23)}
    assert groups[0].order[0] in ITEMS[:2]
    assert groups[1].order[0] in ITEMS[-2:]
    assert len(groups[0].order) <= k


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("n", "k"), [(12, 3), (30, 8)])
def test_random_raters_are_no_groups(n, k, seed):
    drawn = draw(ITEMS, n, k, seed, spread=0.0)
    assert find_rater_groups(name_raters(drawn)) == ()


@pytest.mark.parametrize("spread", [0.2, 1.0, 3.0, np.inf])
def test_raters_who_agree_are_no_groups(spread):
    for seed in range(2):
        assert find_rater_groups(name_raters(draw(ITEMS, 25, 8, seed, spread))) == ()


def test_few_raters_or_none_or_too_many():
    opposite = rs.Rankings.concatenate([draw(ITEMS, 4, 8, 0, 3.0), draw(ITEMS[::-1], 4, 8, 1, 3.0)])
    assert find_rater_groups(name_raters(opposite)) == ()
    many = rs.Rankings.concatenate([opposite] * 5)
    assert find_rater_groups(many) == ()
    assert len(find_rater_groups(name_raters(many))) == 2
    assert not has_too_many_raters(many)
    assert has_too_many_raters(draw(ITEMS, 16_000, 8, 0))


def test_raters_of_subsets_and_of_several_rankings():
    orders, raters, kinds = [], [], []
    rng = np.random.default_rng(0)
    for i in range(16):
        center = ITEMS if i < 9 else ITEMS[::-1]
        for _ in range(4):
            shown = sorted(rng.choice(8, 4, replace=False))
            orders.append([center[j] for j in shown])
            raters.append(f"p{i:02}")
            kinds.append("subset")
    rankings = rs.Rankings.from_orders(orders, items=ITEMS, raters=raters, kind=kinds)
    assert [len(group.raters) for group in find_rater_groups(rankings)] == [9, 7]


@pytest.mark.parametrize("weight", [0.1, 10.0])
def test_neither_weights_nor_repetitions_make_or_hide_groups(weight):
    """12 raters with random orders of 6 items were always two groups at weight 10."""
    orders = np.argsort(np.random.default_rng(3).random((12, 6)), axis=1)
    random = name_raters(rs.Rankings.from_item_numbers(orders, items=list("abcdef")))
    assert find_rater_groups(replace(random, weights=np.full(12, weight))) == ()
    assert find_rater_groups(rs.Rankings.concatenate([random] * 4)) == ()
    clear = rs.Rankings.concatenate([draw(ITEMS, 12, 8, 1, 2.0), draw(ITEMS[::-1], 9, 8, 2, 2.0)])
    clear = name_raters(clear)
    found = find_rater_groups(replace(clear, weights=np.full(21, weight)))
    assert found == find_rater_groups(clear)
    assert [len(group.raters) for group in found] == [12, 9]

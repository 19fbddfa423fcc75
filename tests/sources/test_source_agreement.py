import numpy as np
import pytest
from rankshot.sources.source_comparison import nearest_is_correct

import rankshot as rs

ITEMS = ["a", "b", "c", "d"]


def test_distances_are_means_over_the_targets_that_two_sources_share():
    rankings = rs.Rankings.from_orders(
        [list("abcd"), list("bacd"), list("dcba"), list("dcab"), list("abdc")],
        items=ITEMS,
        targets=["x", "x", "y", "y", "x"],
        sources=["s", "t", "s", "t", "t"],
    )
    found = rs.sources.source_agreement(rankings)
    assert found.sources == ("s", "t")
    # x: abcd to bacd 1, to abdc 1; y: dcba to dcab 1. Within t: bacd to abdc 2.
    assert found.distances[0, 1] == found.distances[1, 0] == 1
    assert np.isnan(found.distances[0, 0])
    assert found.distances[1, 1] == 2


def test_accuracy_by_hand_with_ties_shared():
    distance = np.array([[0.0, 1, 1, 9], [1, 0, 5, 9], [1, 5, 0, 2], [9, 9, 2, 0]])
    labels = np.array(["x", "x", "y", "y"], dtype=object)
    # 0: nearest 1 (right) and 2 (wrong), half; 1: 0, right; 2: 0, wrong; 3: 2, right.
    assert nearest_is_correct(distance, labels).tolist() == [0.5, 1, 0, 1]


def test_orders_agree_where_numbers_do_not():
    """One source speaks in hundreds: its numbers are near one another, its orders are not."""
    one = rs.Similarity([[3.0, 2, 1, 0], [0, 1, 2, 3]], ["x", "y"], ITEMS, source="one")
    two = rs.Similarity(
        [[103.0, 102, 101, 100], [100, 101, 102, 103]], ["x", "y"], ITEMS, source="two"
    )
    assert rs.sources.similarity_accuracy([one, two]) == 0
    both = rs.Rankings.concatenate([one.to_rankings(), two.to_rankings()])
    assert rs.sources.source_agreement(both).accuracy == 1
    assert rs.sources.source_agreement(both, k=1).accuracy == 1


def test_normalising_divides_rows_by_their_sum():
    one = rs.Similarity([[1.0, 0, 0, 1], [0, 1, 1, 0]], ["x", "y"], ITEMS)
    two = rs.Similarity([[9.0, 0, 0, 9], [0, 9, 9, 0]], ["x", "y"], ITEMS)
    # As they are, the rows of one are nearer to each other than to those of two.
    assert rs.sources.similarity_accuracy([one, two]) == 0.5
    assert rs.sources.similarity_accuracy([one, two], normalized=True) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: rs.sources.source_agreement(rs.Rankings.from_orders([["a"]])),
            "targets and sources",
        ),
        (lambda: rs.sources.source_agreement([["a"]]), "expected Rankings"),
        (lambda: rs.sources.similarity_accuracy([]), "at least two tables"),
        (
            lambda: rs.sources.similarity_accuracy([rs.Similarity([[np.nan]], ["x"], ["a"])] * 2),
            "unknown, for example that of 'x' and 'a'",
        ),
    ],
)
def test_bad_calls(call, message):
    with pytest.raises(rs.RankshotError, match=message):
        call()

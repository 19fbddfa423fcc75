"""Sections made from what was measured."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.report.from_results import (
    class_map,
    consensus_cards,
    evaluation_of,
    example_rows,
    explanation_card,
)
from rankshot.zeroshot.metrics import pairwise_accuracy, wilson_interval

CLASSES = ["cat", "dog", "ship"]
TRUTH = np.array(["cat", "cat", "dog", "ship"])
GIVEN = np.array(["cat", "rejected", "cat", "ship"])
PROBA = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8]])


def test_an_evaluation_counts_rejected_inputs_as_wrong():
    found = evaluation_of(TRUTH, GIVEN, PROBA, CLASSES)
    assert found.accuracy == wilson_interval(2, 4)
    assert found.per_class == (0.5, 0.0, 1.0)
    assert found.n_inputs == (2, 1, 1)
    assert found.confusion.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_array_equal(found.pairwise, pairwise_accuracy(TRUTH, PROBA, CLASSES))
    assert found.top_k == ((2, 1.0),)
    assert sum(count for _, _, count in found.reliability) == 4
    assert found.log_loss == pytest.approx(-np.log([0.7, 0.4, 0.4, 0.8]).mean())


def test_a_single_class_and_impossible_truths():
    one = evaluation_of(TRUTH[:2], TRUTH[:2], np.ones((2, 1)), ["cat"])
    assert one.confusion.tolist() == [[2]]
    sure = evaluation_of(TRUTH[2:3], GIVEN[2:3], np.array([[1.0, 0, 0]]), CLASSES)
    assert sure.log_loss == np.inf


def rankings():
    return rs.Rankings.from_orders(
        [["a", "b"], ["b", "a"], ["d", "c"], ["a", "c"]],
        items=list("abcd"),
        targets=["x", "x", "y", "x"],
        raters=["r1", "r2", "r1", None],
        sources=["panel", "panel", "panel", "web"],
    )


def test_consensus_cards_show_raters_or_the_sources_of_others():
    briefs = rs.summarize(rankings())
    cards = consensus_cards(briefs)
    assert [card.target for card in cards] == ["x", "y"]
    assert cards[0].sources == briefs[0].disagreement
    assert {name for name, _ in consensus_cards(briefs, rankings())[0].sources} == {"panel", "web"}


def test_the_map_has_a_point_for_each_ranking_that_compares_all_items():
    found = class_map(rankings(), k=5)
    assert found.groups == ("x", "x", "y", "x")
    assert found.names == ("r1", "r2", "r1", "web")
    points = np.column_stack([found.x, found.y])
    distance = rs.mean_kendall_distance(rankings(), k=2)
    near = np.linalg.norm(points[0] - points[1])
    far = np.linalg.norm(points[0] - points[2])
    assert (near < far) == (distance[0, 1] < distance[0, 2])
    assert class_map(rankings()[:2], k=2) is None
    assert class_map(rs.Rankings.from_orders([["a"]] * 4, items=["a", "b"]), k=1) is None


def test_examples_are_right_and_wrong_in_turn():
    given = np.array(["cat", "dog", "cat", "ship", "dog"])
    truth = np.array(["cat", "cat", "dog", "ship", "dog"])
    assert example_rows(given, truth, CLASSES) == [0, 2, 3]


def test_an_explanation_card_lists_the_other_targets():
    head = rs.ProbabilisticRanking(k=2).fit(rankings())
    why = rs.explain(head, [[3.0, 2.0, 1.0, 0.0]])[0]
    card = explanation_card("input 1", why, "y")
    assert (card.predicted, card.truth, card.pushes) == ("x", "y", why.items)
    assert [name for name, _ in card.alternatives] == ["y"]

"""The contents of a report are those of the results, computed by other means."""

import math

import numpy as np
import pytest

import rankshot as rs
from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.matrices import restrict_items
from rankshot.report.predictions import (
    count_predictions,
    evaluate_predictions,
    format_overview,
    undo_temperature,
)
from rankshot.report.rankings import (
    compare_sources,
    format_consensus,
    format_sources,
    map_rankings,
    summarize_rankings,
)
from rankshot.zeroshot.metrics import pairwise_accuracy, wilson_interval

CLASSES = ["cat", "dog", "ship"]
TRUTH = np.array(["cat", "cat", "dog", "ship"])
GIVEN = np.array(["cat", "rejected", "cat", "ship"])
PROBA = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8]])


def test_an_evaluation_counts_rejected_inputs_as_wrong():
    found = evaluate_predictions(TRUTH, GIVEN, PROBA, CLASSES)
    assert found.accuracy == wilson_interval(2, 4)
    # Classes with 2, 1 and 1 inputs are as informative as 9 / (1/2 + 1 + 1) inputs.
    assert found.mean_class_accuracy == pytest.approx(wilson_interval(0.5 * 3.6, 3.6))
    assert found.per_class == (0.5, 0.0, 1.0)
    assert found.n_inputs == (2, 1, 1)
    assert found.confusion.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    np.testing.assert_array_equal(found.pairwise, pairwise_accuracy(TRUTH, PROBA, CLASSES))
    assert found.top_k == ((2, 1.0),)
    assert found.calibration.reliability.count.sum() == 4
    assert found.calibration.log_loss == pytest.approx(-np.log([0.7, 0.4, 0.4, 0.8]).mean())


@pytest.mark.parametrize("temperature", [0.2, 5.0])
def test_the_calibration_before_is_that_of_the_head_as_it_comes(rng, temperature):
    rankings = rs.Rankings.from_orders(
        [["a", "b"], ["c", "d"], ["d", "a"]], items=list("abcd"), targets=CLASSES
    )
    scores, truth = rng.normal(size=(300, 4)), rng.choice(CLASSES, 300)
    head = rs.WeightedMean().fit(rankings)
    calibrated = rs.WeightedMean(temperature=temperature).fit(rankings)
    found = undo_temperature(
        truth, calibrated.predict_proba(scores), CLASSES, temperature, head.temperature_
    )
    wanted = evaluate_predictions(truth, truth, head.predict_proba(scores), CLASSES).calibration
    for name in ("confidence", "accuracy", "count", "expected_calibration_error"):
        expected = getattr(wanted.reliability, name)
        np.testing.assert_allclose(getattr(found.reliability, name), expected, rtol=1e-9)
    assert found.log_loss == pytest.approx(wanted.log_loss, rel=1e-9)


def rankings():
    return rs.Rankings.from_orders(
        [["a", "b"], ["b", "a"], ["d", "c"], ["a", "c"]],
        items=list("abcd"),
        targets=["x", "x", "y", "x"],
        raters=["r1", "r2", "r1", None],
        sources=["panel", "panel", "panel", "web"],
    )


def merge(rankings, k):
    return rs.ProbabilisticRanking(k=k, posterior="consensus").fit(rankings).consensus_


def test_a_consensus_shows_raters_or_the_sources_of_all_rankings():
    consensus = merge(rankings(), 2)
    briefs = summarize_rankings(rankings(), consensus, 2)
    cards = format_consensus(briefs)["summaries"]
    assert [card["target"] for card in cards] == ["x", "y"]
    assert [bar.name for bar in cards[0]["distances"]] == [
        name for name, _ in briefs[0].disagreement
    ]
    assert {name for name, _ in briefs[0].disagreement} == {"r1", "r2", "web"}
    # A single ranking is its own consensus: there is nothing to compare.
    assert briefs[1].disagreement == ()
    assert briefs[1].mean_distance is None


def partial_rankings():
    """Two sources know all six seen classes; the third knows four of them."""
    kinds = ["top", "top", "subset"] * 2
    return rs.Rankings.from_orders(
        [list("abc"), list("bac"), list("bafe"), list("fed"), list("def"), list("feab")],
        items=list("abcdef"),
        targets=["x"] * 3 + ["y"] * 3,
        sources=["wordnet", "glove", "wikipedia"] * 2,
        kind=kinds,
    )


def test_a_source_that_knows_some_of_the_seen_classes_is_compared_on_these():
    votes = partial_rankings()
    consensus = merge(votes, 3)
    (x, _) = summarize_rankings(votes, consensus, 3)
    assert {name for name, _ in x.disagreement} == {"wordnet", "glove", "wikipedia"}
    # Nobody has d or e among the first three.
    among, center = (restrict_items(r, list("abcf")) for r in (votes[:3], consensus[:1]))
    assert x.mean_distance == pytest.approx(compare_common_items(among, center, k=3).mean())
    table = compare_sources(votes, consensus, 3)
    assert [line.name for line in table.lines] == ["glove", "wikipedia", "wordnet"]
    assert [line.known for line in table.lines] == [6, 4, 6]
    # glove and wikipedia both say b > a before f; for y, one has e > f and one f > e before a,
    # which is one of the three pairs.
    assert table.lines[0].to_others[1] == pytest.approx((0 + 1 / 3) / 2)
    assert math.isnan(table.lines[0].to_others[0])
    (note,) = format_sources(table)["notes"]
    assert note.startswith("wikipedia knows only 4 of the 6 seen classes.")
    points = map_rankings(votes, 3)
    assert "Rankings that know only some of the seen classes" in points.caption


def test_predictions_without_truth_are_counted():
    found = count_predictions(GIVEN, PROBA, CLASSES)
    assert (found.counts, found.n_inputs) == ((2, 0, 1), 4)
    assert found.median_confidence == pytest.approx(0.65)
    assert [n for _, _, n in found.confidences] == [0, 0, 0, 0, 1, 0, 1, 1, 1, 0]
    section = format_overview(found)
    assert [(bar.name, bar.text) for bar in section["first"]] == [
        *(("cat", "2"), ("ship", "1"), ("dog", "0"))
    ]
    sure = count_predictions(TRUTH[:1], np.array([[1.0, 0, 0]]), CLASSES)
    assert sure.confidences[-1] == (0.9, 1.0, 1)


def test_the_map_has_a_point_for_each_ranking_that_compares_all_items():
    found = map_rankings(rankings(), k=5)
    assert found.groups == ["x", "x", "y", "x"]
    points = found.places
    distance = rs.ranking.mean_kendall_distance(rankings(), k=2)
    near = np.linalg.norm(points[0] - points[1])
    far = np.linalg.norm(points[0] - points[2])
    assert (near < far) == (distance[0, 1] < distance[0, 2])
    assert map_rankings(rankings()[:2], k=2) is None
    assert map_rankings(rs.Rankings.from_orders([["a"]] * 4, items=["a", "b"]), k=1) is None

"""The contents of a report are those of the results, computed by other means."""

import numpy as np
import pytest

import rankshot as rs
from rankshot.pages.page import find_similar_classes, format_consensus, summarize_rankings
from rankshot.pages.predictions import (
    count_predictions,
    evaluate_predictions,
    format_overview,
    list_findings,
    list_steps,
    write_verdict,
)
from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.matrices import restrict_items
from rankshot.zeroshot.metrics import Interval, wilson_interval

CLASSES = ["cat", "dog", "ship"]
TRUTH = np.array(["cat", "cat", "dog", "ship"])
GIVEN = np.array(["cat", "rejected", "cat", "ship"])
PROBA = np.array([[0.7, 0.2, 0.1], [0.4, 0.3, 0.3], [0.6, 0.4, 0.0], [0.1, 0.1, 0.8]])


def test_the_next_steps_name_the_classes_that_are_confused():
    truth = np.repeat(["octopus", "squid"], 20)
    predicted = np.repeat(["octopus", "squid"], [3, 37])
    proba = np.eye(2)[(predicted == "squid").astype(int)]
    found = evaluate_predictions(truth, predicted, proba, ["octopus", "squid"])
    assert list_steps(found)[0].endswith("contrast them: octopus and squid.")
    certain = np.eye(2)[(truth == "squid").astype(int)]
    right = evaluate_predictions(truth, truth, certain, found.classes)
    assert list_findings(right) == []
    assert "No class was confused" in list_steps(right)[0]
    even = evaluate_predictions(truth, np.tile(["octopus", "squid"], 20), proba, found.classes)
    assert "No class is clearly less accurate" in list_steps(even)[0]
    overview = count_predictions(predicted, proba, ["octopus", "squid"])
    assert "drawn at random" in list_steps(overview)[0]
    checked = overview._replace(audited=Interval(0.9, 0.8, 0.95))
    assert "A random sample was checked: 90.0% (95% interval 80.0–95.0%)" in write_verdict(checked)
    assert list_steps(checked)[0].startswith("Label more inputs")
    # A third class makes two others, which are confused with each other, stand out.
    truth, swapped = np.repeat(["octopus", "squid", "whale"], 40), np.repeat([1, 0, 2], 40)
    names = np.array(["octopus", "squid", "whale"])
    both = evaluate_predictions(truth, names[swapped], np.eye(3)[swapped], names.tolist())
    assert list_steps(both)[0].endswith("contrast them: octopus and squid.")


def test_an_evaluation_counts_rejected_inputs_as_wrong():
    found = evaluate_predictions(TRUTH, GIVEN, PROBA, CLASSES)
    assert found.accuracy == wilson_interval(2, 4)
    # Classes with 2, 1 and 1 inputs are as informative as 9 / (1/2 + 1 + 1) inputs.
    assert found.mean_class_accuracy == pytest.approx(wilson_interval(0.5 * 3.6, 3.6))
    assert found.per_class == (0.5, 0.0, 1.0)
    assert found.n_inputs == (2, 1, 1)
    assert found.confusion.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert found.calibration.count.sum() == 4


def test_a_page_opens_with_one_verdict():
    found = evaluate_predictions(TRUTH, GIVEN, PROBA, CLASSES)
    assert write_verdict(found, Interval(0.78, 0.6, 0.92)) == (
        "2 of 4 inputs of 3 new classes were classified correctly: 50.0% (95% interval "
        "15.0–85.0%). Random guessing reaches 33.3%. The rehearsal on seen classes had predicted "
        "78.0% (95% interval 60.0–92.0%)."
    )
    counted = count_predictions(GIVEN, PROBA, CLASSES)
    assert write_verdict(counted) == (
        "4 predictions of 3 new classes. The true classes are not given, so the accuracy is not "
        "known."
    )


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


def test_similar_classes_are_the_pairs_at_the_smallest_distance(rng):
    orders = [rng.permutation(list("abcdef"))[:4].tolist() for _ in range(12)]
    consensus = rs.Rankings.from_orders(orders, items=list("abcdef"), targets=list("qrstuvwxyzmn"))
    found = find_similar_classes(consensus, 3)
    distance = rs.ranking.mean_kendall_distance(consensus, k=3)
    names = consensus.targets
    expected = sorted(
        (distance[i, j] / 12, *sorted((names[i], names[j]))) for i in range(12) for j in range(i)
    )
    assert [pair[:2] for pair in found.pairs] == [pair[1:] for pair in expected[:10]]
    np.testing.assert_allclose([pair[2] for pair in found.pairs], [e[0] for e in expected[:10]])
    apart = rs.Rankings.from_orders([["a"], ["b"]], items=list("abc"), targets=["x", "y"])
    assert find_similar_classes(apart, 1) is None


def test_equal_rankings_with_ties_have_no_distance():
    tied = [["a", ["b", "c", "d"], ["e", "f"]], ["a", ["b", "c", "d"], ["e", "f"]], [*"fedcba"]]
    consensus = rs.Rankings.from_orders(tied, items=[*"abcdefgh"], targets=["x", "y", "z"])
    (first, second, distance), (*_, next_distance), _ = find_similar_classes(consensus, 6).pairs
    assert (first, second, distance) == ("x", "y", 0)
    assert 0.3 < next_distance < 1

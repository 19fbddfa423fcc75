"""The consensus of each class, and the most similar classes, computed by other means."""

import re

import numpy as np
import pytest

import rankshot as rs
from rankshot.pages import Outcomes, build_report, find_similar_classes, render_report
from rankshot.ranking.distances import compare_common_items
from rankshot.ranking.matrices import restrict_items


def rankings():
    return rs.Rankings.from_orders(
        [["a", "b"], ["b", "a"], ["d", "c"], ["a", "c"]],
        items=list("abcd"),
        targets=["x", "x", "y", "x"],
        raters=["r1", "r2", "r1", None],
        sources=["panel", "panel", "panel", "web"],
    )


def report(rankings, k):
    """Return the report of no input with these rankings, and their consensus."""
    consensus = rs.ProbabilisticRanking(k=k, posterior="consensus").fit(rankings).consensus_
    classes = [str(name) for name in rankings.target_names]
    some = Outcomes(["1"], np.array(classes[:1]), np.ones((1, len(classes))), None, classes)
    known = {"rankings": rankings, "consensus": consensus, "n_places": k}
    return build_report("t", some, **known), consensus


def test_a_consensus_shows_raters_or_the_sources_of_all_rankings():
    briefs = report(rankings(), 2)[0].consensuses
    assert [one.target for one in briefs] == ["x", "y"]
    assert {name for name, _ in briefs[0].disagreement} == {"r1", "r2", "web"}
    # A single ranking is its own consensus: there is nothing to compare.
    assert briefs[1].disagreement == ()
    assert briefs[1].mean_distance is None
    some = Outcomes(["1"], np.array(["x"]), np.ones((1, 1)), None, ["x"])
    assert build_report("t", some, rankings=rankings()).consensuses == ()


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
    found, consensus = report(votes, 3)
    x, _ = found.consensuses
    assert {name for name, _ in x.disagreement} == {"wordnet", "glove", "wikipedia"}
    # Nobody has d or e among the first three.
    among, center = (restrict_items(r, list("abcf")) for r in (votes[:3], consensus[:1]))
    assert x.mean_distance == pytest.approx(compare_common_items(among, center, k=3).mean())


def test_similar_classes_are_the_pairs_at_the_smallest_distance(rng):
    orders = [rng.permutation(list("abcdef"))[:4].tolist() for _ in range(12)]
    consensus = rs.Rankings.from_orders(orders, items=list("abcdef"), targets=list("qrstuvwxyzmn"))
    found = find_similar_classes(consensus, 3)
    distance = rs.ranking.mean_kendall_distance(consensus, k=3)
    names = consensus.targets
    expected = sorted(
        (distance[i, j] / 12, *sorted((names[i], names[j]))) for i in range(12) for j in range(i)
    )
    assert [pair[:2] for pair in found] == [pair[1:] for pair in expected[:10]]
    np.testing.assert_allclose([pair[2] for pair in found], [e[0] for e in expected[:10]])
    apart = rs.Rankings.from_orders([["a"], ["b"]], items=list("abc"), targets=["x", "y"])
    assert find_similar_classes(apart, 1) == ()


def test_equal_rankings_with_ties_have_no_distance():
    tied = [["a", ["b", "c", "d"], ["e", "f"]], ["a", ["b", "c", "d"], ["e", "f"]], [*"fedcba"]]
    consensus = rs.Rankings.from_orders(tied, items=[*"abcdefgh"], targets=["x", "y", "z"])
    (first, second, distance), (*_, next_distance), _ = find_similar_classes(consensus, 6)
    assert (first, second, distance) == ("x", "y", 0)
    assert 0.3 < next_distance < 1


def test_a_tie_takes_the_places_of_all_its_items():
    votes = rs.Rankings.from_orders([["a", ["b", "c"], "d"]], items=list("abcd"), targets="x")
    page = render_report(report(votes, 4)[0])
    assert re.findall(r'<li value="(\d)">', page) == ["1", "2", "4"]
